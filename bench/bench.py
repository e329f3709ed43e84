#!/usr/bin/env python3
"""Benches around hartsift: compares, sweeps and prints tables in Markdown.

usage: bench.py [MODE [ARGUMENT ...]]
Without a mode, lists the modes. MODE --help prints the usage of a mode, which is the top of its script in bench/modes.

Modes in Python that use the package need HARTSIFT_LIBRARY=BUILD/libhartsift.so and PYTHONPATH=python. The C program
they share is BUILD/bench/bench_hartsift.
"""
import itertools
import pathlib
import subprocess
import sys

MODES = {path.stem: path for path in sorted((pathlib.Path(__file__).parent / "modes").glob("[a-z]*.*"))}


def usage(path):
    """Returns the lines of a mode's header comment. The mode is not started, because its packages may be missing."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#!")]
    if path.suffix == ".sh":
        return [line[2:] for line in itertools.takewhile(lambda line: line.startswith("#"), lines)]
    return "\n".join(lines).split('"""')[1].splitlines()


def main():
    helps = {"-h", "--help"}.intersection(sys.argv[1:])
    if len(sys.argv) < 2 or sys.argv[1] in helps:
        print((__doc__ + "\n" if helps else "") + "\n".join(f"{name:<16}{usage(path)[0]}" for name, path in MODES.items()))
        return 0
    path = MODES.get(sys.argv[1])
    if not path:
        print(f"bench.py: there is no mode '{sys.argv[1]}'", file=sys.stderr)
        return 2
    if helps:
        print("\n".join(usage(path)))
        return 0
    interpreter = ["bash"] if path.suffix == ".sh" else [sys.executable, "-B"]
    return subprocess.run([*interpreter, path, *sys.argv[2:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
