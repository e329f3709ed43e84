#!/usr/bin/env python3
"""Adds up the rows of HOURS.md: its first table, a row for each target, is made anew from the second, a row for each search.

usage: sum_hours.py [FILE]     FILE: HOURS.md beside this script
"""
import collections
import pathlib
import sys

HEAD = ("| target | searches | CPU hours | executions | failures |", "|---|--:|--:|--:|--:|")
ROW_CELLS = 7


def cells_of(line):
    """The cells of a row of a search; none of any other line."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return cells if line.startswith("| 2") and len(cells) == ROW_CELLS else []


def sums_of(lines):
    """The lines of the first table."""
    sums = collections.defaultdict(lambda: [0, 0.0, 0, 0])
    for cells in filter(None, map(cells_of, lines)):
        for target in (cells[2], "all"):
            row = sums[target]
            row[0] += 1
            row[1] += float(cells[4])
            row[2] += int(cells[5])
            row[3] += int(cells[6])
    names = sorted(name for name in sums if name != "all") + ["all"]
    return [*HEAD, *(f"| {name} | {row[0]} | {row[1]:.3f} | {row[2]} | {row[3]} |" for name in names for row in [sums[name]])]


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("HOURS.md"))
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = lines.index(HEAD[0])
    end = begin
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    path.write_text("\n".join(lines[:begin] + sums_of(lines[end:]) + lines[end:]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
