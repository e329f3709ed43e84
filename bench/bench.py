#!/usr/bin/env python3
"""Benches around hartsift: compares, sweeps and prints tables in Markdown.

usage: bench.py [MODE [ARGUMENT ...]]
Without a mode, lists the modes. MODE --help, or the top of bench/modes/MODE, gives the usage of a mode.

Each mode is a script of bench/modes. Those in Python that use the package need HARTSIFT_LIBRARY=BUILD/libhartsift.so
and PYTHONPATH=python. The C program they share is BUILD/bench/bench_hartsift.
"""
import pathlib
import subprocess
import sys

MODES = {path.stem: path for path in sorted((pathlib.Path(__file__).parent / "modes").glob("[a-z]*.*"))}


def first_line(path):
    """Returns the summary of a mode: the first line of its header comment."""
    lines = [line.strip('"# ') for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#!")]
    return lines[0]


def main():
    if len(sys.argv) < 2:
        print("\n".join(f"{name:<14}{first_line(path)}" for name, path in MODES.items()))
        return 0
    path = MODES.get(sys.argv[1])
    if not path:
        print(f"bench.py: there is no mode '{sys.argv[1]}'", file=sys.stderr)
        return 2
    interpreter = ["bash"] if path.suffix == ".sh" else [sys.executable, "-B"]
    return subprocess.run([*interpreter, path, *sys.argv[2:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
