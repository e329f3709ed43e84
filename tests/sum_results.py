"""Sums JUnit files that ctest wrote: prints what failed and, last, "N passed, N failed, N skipped". Ends with 1 on a failure.

usage: sum_results.py FILE...
A cmocka program counts with each of its cases, everything else as one. A test that did not run for any other reason than
being skipped on purpose counts as failed.
"""
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


def outcome(case):
    """PASSED, FAILED or SKIPPED for one ctest test."""
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
        # Not a cmocka program, or one that failed outside its cases (a crash, a leak found at the end).
        counts[whole] += 1
    return counts


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            counts = counts_of(case)
            if counts[FAILED]:
                print(f"failed: {case.get('name')} ({path})")
            total = [a + b for a, b in zip(total, counts)]
    print(f"{total[PASSED]} passed, {total[FAILED]} failed, {total[SKIPPED]} skipped")
    return 1 if total[FAILED] else 0


sys.exit(main())
