#!/usr/bin/env python3
"""Checks that every row of tests/ATTACKS.md ends with existing tests: files below tests/ or at a path of the
repository, each with functions in it, as `file`: `function` `function`."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = {"attack": 3, "report": 3}  # by the first column's title
CODE = re.compile(r"`([^`]+)`")


def faults_of_tests(cell):
    """Faults of the tests that a row names."""
    text, file, named = None, "", 0
    for word in CODE.findall(cell):
        if re.fullmatch(r"\w+", word):
            named += 1
            if text is not None and not re.search(r"\b(def|void) " + word + r"\(", text):
                yield f"{file} has no {word}"
            continue
        file = word
        paths = [path for path in (ROOT / "tests" / file, ROOT / file) if path.is_file()]
        text = paths[0].read_text(encoding="utf-8") if paths else ""
        if not paths:
            yield f"there is no {file}"
    if text is None or named == 0:
        yield "names no test"


def faults_of(line, number, columns):
    """Faults of one row that must have this number of columns."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if len(cells) != columns or not all(cells):
        return [f"ATTACKS.md:{number}: is no row of {columns} columns"]
    return [f"ATTACKS.md:{number}: {fault}" for fault in faults_of_tests(cells[-1])]


def main():
    lines = (ROOT / "tests" / "ATTACKS.md").read_text(encoding="utf-8").splitlines()
    rows, faults, columns = 0, [], 0
    for number, line in enumerate(lines, 1):
        if not line.startswith("|") or line.startswith("|---"):
            continue
        title = line.split("|")[1].strip()
        if title in COLUMNS:
            columns = COLUMNS[title]
        else:
            rows += 1
            faults += faults_of(line, number, columns)
    print("\n".join(faults + [f"{rows} attacks and reports, {len(faults)} faults"]))
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
