#!/usr/bin/env python3
"""Checks that every item of tests/ATTACKS.md ends with existing tests: files below tests/ or at a path of the repository,
each with functions in it, as `file`: `function` `function`."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ITEM = re.compile(r"^- (.*(?:\n  .*)*)", re.M)
TESTS = re.compile(r"`((?:\w+/)+test_\w+\.\w+)`((?::\s+(?:`\w+`\s*)+)?)")


def faults_of(item):
    """Returns the faults of the tests that an item names."""
    named = 0
    for file, functions in TESTS.findall(item):
        path = next((path for path in (ROOT / "tests" / file, ROOT / file) if path.is_file()), None)
        text = path.read_text(encoding="utf-8") if path else ""
        if path is None:
            yield f"there is no {file}"
        for function in re.findall(r"\w+", functions):
            named += 1
            if path and not re.search(r"\b(def |void |\w*TEST\w*\((.*, )?)" + function + r"\b", text):
                yield f"{file} has no {function}"
    if TESTS.split(item)[-1].strip() or named == 0:
        yield "does not end with its tests"


def main():
    items = ITEM.findall((ROOT / "tests" / "ATTACKS.md").read_text(encoding="utf-8"))
    faults = [f"ATTACKS.md: {item[:60]}: {fault}" for item in items for fault in faults_of(item)]
    print("\n".join(faults + [f"{len(items)} attacks and reports, {len(faults)} faults"]))
    return 1 if faults or not items else 0


if __name__ == "__main__":
    sys.exit(main())
