#!/usr/bin/env python3
"""Every row of tests/ATTACKS.md names a test that exists: a file below tests/ or python/tests/ and a function in it."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (?!attack )(?P<attack>[^|]+) \|(?P<outcome>[^|]+)\| `(?P<file>[^`]+)`: (?P<names>.+) \|$")
NAME = re.compile(r"`(\w+)`")


def faults_of(line, number):
    """What is wrong with one row."""
    row = ROW.match(line)
    if not row:
        return [f"ATTACKS.md:{number}: is no row of attack, outcome and test"]
    files = [path for path in (ROOT / "tests" / row["file"], ROOT / row["file"]) if path.is_file()]
    names = NAME.findall(row["names"])
    if not files or not names:
        return [f"ATTACKS.md:{number}: there is no {row['file']}, or no test of it is named"]
    text = files[0].read_text(encoding="utf-8")
    return [f"ATTACKS.md:{number}: {row['file']} has no {name}" for name in names
            if not re.search(r"\b(def|void) " + name + r"\(", text)]


def main():
    lines = (ROOT / "tests" / "ATTACKS.md").read_text(encoding="utf-8").splitlines()
    rows = [(number, line) for number, line in enumerate(lines, 1)
            if line.startswith("|") and not line.startswith(("| attack |", "|---"))]
    faults = [fault for number, line in rows for fault in faults_of(line, number)]
    print("\n".join(faults + [f"{len(rows)} attacks, {len(faults)} faults"]))
    return 1 if faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
