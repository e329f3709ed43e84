"""Checks one style in all C and CUDA sources: the layout of .clang-format, and rules that it cannot express.

Those are i++ instead of ++i if the value is unused, pointer tests as `p` and `!p` (a value made of one as `p != NULL`), and
header guards named after their paths.

usage: check_style.py [ROOT]
The layout needs clang-format 14, since versions differ slightly; exit status 77 if it is missing and nothing else is
wrong.
"""
import pathlib
import re
import shutil
import subprocess
import sys

VERSION = "14"
NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
RULES = (
    (re.compile(r"(?:^|[;{}])\s*(?:\+\+|--)[\w.>\[\]*()-]+;", re.M), "++ stands before: i++ where the value is not used"),
    (re.compile(r"\bfor \([^;{]*;[^;{]*;[^;{)]*?(?:\+\+|--)\w"), "++ stands before in a for: i++"),
    (re.compile(r"(?:\bif|\bwhile) \((?:[^;{}]*(?:&&|\|\|)\s*)?[\w.>\[\]-]+ [!=]= NULL\b"), "a pointer is tested as p or !p"),
    (re.compile(r"^(?!.*\bassert).*[\w\])] == NULL\b", re.M), "a null pointer is tested as !p"),
)
SUFFIXES = (".c", ".h", ".cu", ".cuh", ".cpp", ".hpp")


def sources(root):
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(root).as_posix() for folder in ("bench", "cpu", "cuda", "os", "pipeline", "python", "stages", "tests")
                 for path in root.glob(f"{folder}/**/*")]
    # Files below tests/data stay unchanged, as their programs wrote them.
    return sorted(name for name in set(names) if name.endswith(SUFFIXES) and not name.startswith("tests/data/")
                  and (root / name).is_file())


def blank(match):
    """Replaces a comment or string by spaces, so that offsets stay valid."""
    return re.sub(r"[^\n]", " ", match.group())


def guard_of(name):
    path = re.sub(r"^pipeline/(?:include/)?", "", name)
    word = re.sub(r"\W", "_", path).upper()
    return word if word.startswith("HARTSIFT") else "HARTSIFT_" + word


def check_text(name, text):
    code = NO_CODE.sub(blank, text)
    faults = [f"{name}:{code.count(chr(10), 0, match.end()) + 1}: {what}" for rule, what in RULES for match in rule.finditer(code)]
    if name.endswith((".h", ".cuh", ".hpp")):
        match = re.search(r"^#ifndef (\w+)\n#define (\w+)\n", code, re.M)
        if not match or match.group(1) != guard_of(name) or match.group(2) != guard_of(name):
            faults.append(f"{name}: the guard is not {guard_of(name)}")
    return faults


def formatter():
    for program in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(program)
        if path and re.search(rf"version {VERSION}\.", subprocess.run([path, "--version"], capture_output=True, text=True).stdout):
            return path
    return None


def check_layout(program, root, names):
    run = subprocess.run([program, "--dry-run", "--style=file", *names], cwd=root, capture_output=True, text=True)
    return sorted({line.split(": warning:")[0] + ": not as .clang-format lays it out"
                   for line in run.stderr.splitlines() if ": warning:" in line})


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    names = sources(root)
    faults = [] if names else [f"no sources under {root}"]
    for name in names:
        faults += check_text(name, (root / name).read_text(encoding="utf-8"))
    program = formatter()
    if program:
        faults += check_layout(program, root, names)
    for fault in faults:
        print(fault)
    print(f"{len(names)} sources, {len(faults)} faults" + ("" if program else f"; skipped: no clang-format {VERSION}"))
    return 1 if faults else 0 if program else 77


sys.exit(main())
