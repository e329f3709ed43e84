"""Mutation testing: applies one fault of mutants.py at a time to a copy of the tree, builds the tests that should
notice it, runs them, and lists the faults that no test noticed.

usage: run_mutants.py [--check] [--only REGEX] [--some N] [--folder FOLDER] [-j JOBS]
--check: only checks that each fault still fits its file and names existing tests; takes a second. --some N: N faults,
others each day, in turn. Exit status 1 if a fault survives, does not fit or does not build, or a test fails without a
fault.
"""
import argparse
import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import mutants

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST_SECONDS = 240
OPTIONS = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1 -DNDEBUG", "-DHARTSIFT_CUDA=OFF", "-DHARTSIFT_PEERS=OFF",
           "-DHARTSIFT_BENCH=OFF", f"-DPython3_EXECUTABLE={sys.executable}", f"-DHARTSIFT_TEST_SECONDS={TEST_SECONDS}"]


@dataclasses.dataclass(frozen=True)
class Outcome:
    name: str
    what: str  # "killed", "killed (hang)", "lives", or what went wrong
    seconds: float = 0.0


def mutate(text, mutant):
    """Returns the text with the fault, or None unless the replaced text occurs exactly once."""
    return text.replace(mutant.old, mutant.new) if text.count(mutant.old) == 1 else None


def test_source(name):
    """Returns the file of a test by the test's name; None if it has no separate file."""
    folder, stem = name.split(".", 1)
    found = [path for path in (ROOT / "tests" / folder).glob(f"*{stem}.*") if path.stem in (f"test_{stem}", f"check_{stem}")]
    return found[0] if found else None


def check(chosen):
    """Returns errors of the list itself."""
    faults = []
    for mutant in chosen:
        path = ROOT / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.old) if path.is_file() else -1
        if count != 1:
            faults.append(f"{mutant.name}: {mutant.file} has its line {count} times, expected once: {mutant.old!r}")
        if mutant.old == mutant.new:
            faults.append(f"{mutant.name}: changes nothing")
        faults += [f"{mutant.name}: there is no test {test}" for test in mutant.tests if not test_source(test)]
    names = [mutant.name for mutant in chosen]
    return faults + [f"{name}: stands in the list twice" for name in {name for name in names if names.count(name) > 1}]


class Tree:
    """The copy of the tree, and its build."""

    def __init__(self, folder, jobs):
        self.copy, self.build, self.jobs = folder / "tree", folder / "build", str(jobs)
        names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"], check=True,
                               capture_output=True, text=True).stdout.split("\0")
        names = {name for name in names if name and (ROOT / name).is_file()}
        for path in [p for p in self.copy.rglob("*") if p.is_file() and str(p.relative_to(self.copy)) not in names]:
            path.unlink()
        for name in names:
            source, target = ROOT / name, self.copy / name
            # Unchanged files keep their time, so that they are not rebuilt.
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    def run(self, *command, seconds=None):
        try:
            done = subprocess.run(command, cwd=self.copy, capture_output=True, text=True, errors="replace", timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout + done.stderr

    def configure(self):
        return self.run("cmake", "-G", "Ninja", "-S", ".", "-B", str(self.build), *OPTIONS)

    def targets(self, tests):
        wanted = set()
        for test in tests:
            source = test_source(test)
            if source.suffix == ".c":
                wanted.add(source.stem)
            elif source.stem.startswith("test_"):
                wanted |= {"hartsift_command", "hartsift", "write_sample_features"}
            if test.startswith("faults."):
                wanted.add("hartsift_faults")
        return sorted(wanted)

    def compile(self, tests):
        targets = self.targets(tests)
        return self.run("ninja", "-C", str(self.build), "-j", self.jobs, *targets) if targets else (0, "")

    def test(self, tests):
        pattern = "^(" + "|".join(re.escape(test) for test in tests) + ")$"
        return self.run("ctest", "--test-dir", str(self.build), "-R", pattern, "--no-tests=error", "--output-on-failure", "--stop-on-failure",
                        "--parallel", self.jobs)


def try_mutant(tree, mutant):
    path = tree.copy / mutant.file
    text = path.read_text(encoding="utf-8")
    changed = mutate(text, mutant)
    start = time.monotonic()
    if changed is None:
        return Outcome(mutant.name, "does not fit its file any more")
    try:
        path.write_text(changed, encoding="utf-8")
        status, output = tree.compile(mutant.tests)
        if status != 0:
            return Outcome(mutant.name, f"does not build:\n{output[-1500:]}", time.monotonic() - start)
        status, output = tree.test(mutant.tests)
        what = "lives" if status == 0 else "killed (hang)" if "***Timeout" in output else "killed"
        return Outcome(mutant.name, what, time.monotonic() - start)
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, None)


def choose(arguments):
    chosen = [mutant for mutant in mutants.MUTANTS if re.search(arguments.only, mutant.name)]
    if arguments.some:
        first = datetime.date.today().toordinal() * arguments.some % len(chosen)
        chosen = (chosen + chosen)[first:first + min(arguments.some, len(chosen))]
    return chosen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--some", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutation")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    chosen = choose(arguments)
    faults = check(chosen)
    for fault in faults:
        print(fault)
    if arguments.check or faults or not chosen:
        print(f"{len(chosen)} faults, {len(faults)} of them do not fit")
        return 1 if faults or not chosen else 0
    tree = Tree(arguments.folder.resolve(), arguments.j)
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    for step, (status, output) in (("configure", tree.configure()), ("build", tree.compile(tests)), ("test", tree.test(tests))):
        if status != 0:
            print(f"{step} without any fault:\n{output[-4000:]}")
            return 1
    outcomes = []
    for mutant in chosen:
        outcomes.append(try_mutant(tree, mutant))
        print(f"{outcomes[-1].name:36} {outcomes[-1].seconds:6.1f} s  {outcomes[-1].what}", flush=True)
    left = [outcome for outcome in outcomes if not outcome.what.startswith("killed")]
    print(f"{len(outcomes)} faults, {len(outcomes) - len(left)} noticed, {len(left)} not: {', '.join(o.name for o in left)}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
