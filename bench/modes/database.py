#!/usr/bin/env python3
"""Pairs a second of `hartsift match --database` on a database with features, and of pycolmap on the same features.

usage: database --hartsift COMMAND [--rounds N] [--threads 1,2,0] [--devices cpu,cuda] [--pycolmap PYTHON] DATABASE

Every round runs each contender once on a fresh copy of the database without matches and starts with a different
contender. The table has medians of wall time of whole commands (pycolmap: of match_exhaustive alone, without starting
Python) and of the processor time of all threads, which other work on the machine disturbs least. --threads: threads of
hartsift on the CPU, 0: all cores. --pycolmap: an interpreter that has the package; it uses all cores, and a GPU if
--devices names one. Matches and verified pairs are printed to show that the contenders did the same work. A database is
made by `make_collection` (bench/collection) and `hartsift batch
--profile colmap`.
"""
import argparse
import contextlib
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import time

COLMAP = """
import sys, time, pycolmap
device = sys.argv[2]
options = pycolmap.FeatureMatchingOptions()
options.use_gpu = device == "cuda"
start = time.perf_counter()
pycolmap.match_exhaustive(sys.argv[1], matching_options=options, device=getattr(pycolmap.Device, device))
print("seconds", time.perf_counter() - start)
"""


def clear(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("DELETE FROM matches")
        database.execute("DELETE FROM two_view_geometries")
        database.commit()
        images = database.execute("SELECT count(*), avg(rows) FROM keypoints").fetchone()
    return images


def outcome(path):
    with contextlib.closing(sqlite3.connect(path)) as database:
        pairs, matches = database.execute("SELECT count(*), sum(rows) FROM matches").fetchone()
        verified, inliers = database.execute(
            "SELECT count(*), sum(rows) FROM two_view_geometries WHERE config > 1").fetchone()
    return pairs, matches, verified, inliers


def contenders(arguments):
    """Returns name and command of each contender; DATABASE in a command stands for the copy."""
    found = []
    for device in arguments.devices.split(","):
        for threads in arguments.threads.split(",") if device == "cpu" else ["0"]:
            for extra in ([], ["--no-verify"]):
                name = f"hartsift {device}" + (f", {threads} threads" if threads != "0" else "") + "".join(extra).replace("--", ", ")
                found.append((name, [arguments.hartsift, "match", "--database", "DATABASE", "--device", device, "--threads",
                                     threads, "-q", *extra]))
        if arguments.pycolmap:
            found.append((f"pycolmap {device}", [arguments.pycolmap, "-c", COLMAP, "DATABASE", device]))
    return found


def run(command, source, folder):
    """Returns wall seconds, processor seconds, and the counts in the database afterwards."""
    path = os.path.join(folder, "run.db")
    shutil.copy(source, path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([path if word == "DATABASE" else word for word in command], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for line in done.stdout.splitlines():
        if line.startswith("seconds "):
            seconds = float(line.split()[1])
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, outcome(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hartsift", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,0")
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("--pycolmap", metavar="PYTHON")
    parser.add_argument("database")
    arguments = parser.parse_args()
    runs = contenders(arguments)
    results = {name: [] for name, _ in runs}
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.db")
        shutil.copy(arguments.database, source)
        images, features = clear(source)
        for number in range(arguments.rounds):
            for name, command in runs[number % len(runs):] + runs[:number % len(runs)]:
                results[name].append(run(command, source, folder))
    print(f"{images} images of {features:.0f} features on average, {os.cpu_count()} cores, median of {arguments.rounds}\n")
    print("| contender | s | pairs a second | processor s | matches | pairs verified | inliers |\n|---|--:|--:|--:|--:|--:|--:|")
    for name, found in results.items():
        seconds, processor = (statistics.median(entry[column] for entry in found) for column in (0, 1))
        pairs, matches, verified, inliers = found[-1][2]
        print(f"| {name} | {seconds:.2f} | {pairs / seconds:.0f} | {processor:.2f} | {matches or 0} | {verified} | {inliers or 0} |")


main()
