#!/usr/bin/env python3
"""What part of the cores a batch could use: its threads that run or wait for a core, sampled while it works, at most as many as
there are cores, divided by that number. Unlike CPU time over wall time it says the same on a machine that others use too.

usage: batch_demand.py COMMAND batch IMAGES -o OUTPUT [OPTION ...]

--json and --quiet are added. Prints a row in Markdown: the part over the whole batch and in each tenth of its time, and the CPU seconds of
reading, extracting and writing.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

PAUSE_S = 0.004


def count_runnable(process):
    """Threads in state R (running, or waiting for a core) or D (in a system call that ends by itself)."""
    count = 0
    for task in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{task}/stat", encoding="ascii") as file:
                count += file.read().rsplit(")", 1)[1].split()[0] in "RD"
        except OSError:  # it has ended
            pass
    return count


def sample(process, cores):
    """Parts of the cores, at even times, until the process ends."""
    parts = []
    while process.poll() is None:
        try:
            parts.append(min(cores, count_runnable(process.pid)) / cores)
        except OSError:
            break
        time.sleep(PAUSE_S)
    return parts


def main():
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    cores = len(os.sched_getaffinity(0))
    command = [*sys.argv[1:], "--json", "--quiet"]
    with tempfile.TemporaryFile("w+") as records:
        with subprocess.Popen(command, stdout=records) as process:
            parts = sample(process, cores)
        records.seek(0)
        summary = json.loads(records.read().strip().split("\n")[-1])["summary"]
    tenths = [parts[len(parts) * i // 10 : len(parts) * (i + 1) // 10] for i in range(10)]
    seconds = summary["cpu_seconds"]
    print(
        f"| {sys.argv[3]} | {summary['done']} | {100 * sum(parts) / len(parts):.1f} % | "
        + " ".join(f"{100 * sum(tenth) / max(1, len(tenth)):.0f}" for tenth in tenths)
        + f" | {seconds['read']:.2f} | {seconds['extract']:.2f} | {seconds['write']:.2f} |"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
