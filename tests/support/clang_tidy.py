"""Runs clang-tidy with the checks of .clang-tidy on the product sources, each with its first compile command (not once
for each instruction set). clang_tidy_findings.txt lists false findings with their reasons, as CHECK:FILE; any other
finding gives exit status 1. Takes some minutes on two cores.

usage: clang_tidy.py BUILD [FOLDER...]     (BUILD: a configured build folder; FOLDERs: of sources, default all)
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("stages", "cpu", "pipeline")
FINDING = re.compile(r"^(?P<file>/[^:\n]+):(?P<place>\d+:\d+): (?:warning|error): (?P<text>.*) \[(?P<checks>[\w.,-]+)\]$", re.M)


def explained():
    lines = (ROOT / "tests" / "support" / "clang_tidy_findings.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def chosen_commands(build, folders):
    """Returns one entry of the build's compile commands for each source below the folders."""
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        name = os.path.relpath(os.path.realpath(entry["file"]), ROOT)
        if any(name.startswith(folder.rstrip("/") + "/") for folder in folders):
            entries.setdefault(name, entry)
    return entries


def findings_of(name, database):
    """Returns the findings for one source: a set of (file, position, text, check). None if clang-tidy failed."""
    done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", "-p", database, str(ROOT / name)],
                          capture_output=True, text=True, errors="replace", check=False)
    found = {(os.path.relpath(os.path.realpath(m["file"]), ROOT), m["place"], m["text"], m["checks"].split(",")[0])
             for m in FINDING.finditer(done.stdout)}
    return found if done.returncode == 0 else None


def main():
    build, folders = pathlib.Path(sys.argv[1]).resolve(), tuple(sys.argv[2:]) or FOLDERS
    entries, known, left, broken = chosen_commands(build, folders), explained(), set(), []
    with tempfile.TemporaryDirectory() as database, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        pathlib.Path(database, "compile_commands.json").write_text(json.dumps(list(entries.values())), encoding="utf-8")
        for name, found in zip(entries, pool.map(lambda name: findings_of(name, database), entries)):
            broken += [name] if found is None else []
            left |= {finding for finding in found or () if f"{finding[3]}:{finding[0]}" not in known}
    for file, place, text, check in sorted(left):
        print(f"{file}:{place}: {text} [{check}]")
    for name in broken:
        print(f"{name}: clang-tidy did not get through it")
    print(f"clang-tidy: {len(entries)} sources, {len(left)} findings left unexplained")
    return 1 if left or broken or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
