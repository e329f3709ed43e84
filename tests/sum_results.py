"""Sums JUnit files that ctest wrote: lists skipped tests with reasons and failed tests, and ends with the line
"N passed, N failed, N skipped". Exit status 1 on a failure.

usage: sum_results.py [--strict] FILE...
A cmocka program counts with each of its cases, everything else as one. A test that did not run counts as failed unless
it was skipped on purpose. --strict: a skipped test counts as failed too, unless it lacks a GPU, photographs or root,
which no package provides.
"""
import argparse
import collections
import re
import sys
import xml.etree.ElementTree

PASSED, FAILED, SKIPPED = range(3)
# cmocka's closing lines, one set for each group: "[  PASSED  ] 5 test(s)." and, since 1.1.6, "[  FAILED  ] tests: 1 test(s), ..."
CLOSING_LINES = {
    PASSED: re.compile(r"^\[  PASSED  \] (?:tests: )?(\d+) test\(s\)", re.M),
    FAILED: re.compile(r"^\[  FAILED  \] (?:tests: )?(\d+) test\(s\)", re.M),
    SKIPPED: re.compile(r"^\[  SKIPPED \] (?:tests: )?(\d+) test\(s\)", re.M),
}
# "skipped: REASON" is printed by this project's tests; the others are pytest's and unittest's own lines.
REASONS = re.compile(r"^skipped: (.*)$|^SKIPPED \[\d+\] \S+ (.*)$|\.\.\. skipped '(.*)'$|\.\.\. skipped \"(.*)\"$", re.M)
MAY_BE_MISSING = re.compile(r"\b(GPU|photographs|root)\b")


def outcome(case):
    """Returns PASSED, FAILED or SKIPPED for one ctest test."""
    if case.get("status") == "run":
        return PASSED
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return SKIPPED
    return FAILED


def counts_of(case):
    whole = outcome(case)
    output = case.findtext("system-out") or ""
    counts = [sum(int(number) for number in CLOSING_LINES[kind].findall(output)) for kind in (PASSED, FAILED, SKIPPED)]
    if sum(counts) == 0 or (whole == FAILED) != (counts[FAILED] > 0):
        # The program is not cmocka's, or it failed outside its cases (a crash, a leak found at the end).
        counts[whole] += 1
    return counts


def reasons_of(case, skipped):
    """Returns the reasons of a test's skipped cases. A skip without a message gets a default reason."""
    found = ["".join(groups) for groups in REASONS.findall(case.findtext("system-out") or "")]
    return found or ["no reason given"] * skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    total = [0, 0, 0]
    skipped = collections.defaultdict(list)
    for path in arguments.files:
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            counts = counts_of(case)
            if counts[FAILED]:
                print(f"failed: {case.get('name')} ({path})")
            for reason in reasons_of(case, counts[SKIPPED]):
                skipped[reason].append(case.get("name"))
            total = [a + b for a, b in zip(total, counts)]
    for reason, names in sorted(skipped.items()):
        print(f"skipped {len(names)} times: {reason} ({', '.join(dict.fromkeys(names))})")
        if arguments.strict and not MAY_BE_MISSING.search(reason):
            print("failed: nothing but a GPU, photographs or root may be missing here")
            total[FAILED] += 1
    print(f"{total[PASSED]} passed, {total[FAILED]} failed, {total[SKIPPED]} skipped")
    return 1 if total[FAILED] else 0


sys.exit(main())
