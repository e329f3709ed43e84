"""Looks into the built library and command for the hardening that pipeline/cmake/hardening.cmake asked for, as it shows in what the
linker made: checked copies, stack protectors, probed stacks, landing places of indirect jumps, relocations that are read-only.

usage: check_hardening.py --readelf READELF --objdump OBJDUMP --expect KIND,... LIBRARY COMMAND
"""
import argparse
import re
import subprocess
import sys

# Kind -> what shows it in `readelf -hldW --dyn-syms`; pie is a program's alone.
SHOWN_BY = {
    "fortify": r"UND __(?!stack)\w+_chk(?:@|\s|$)",
    "stack-protector-strong": r"UND __stack_chk_fail(?:@|\s|$)",
    "relro": r"^\s*GNU_RELRO\s",
    "now": r"\(FLAGS(?:_1)?\).*\b(?:BIND_NOW|NOW)\b",
    "noexecstack": r"^\s*GNU_STACK(?:\s+0x[0-9a-f]+){5}\s+RW\s",
    "pie": r"\(FLAGS_1\).*\bPIE\b",
}
# Kind -> an instruction of x86-64 that shows it, and how many there are at least. A probe is GCC's of each page of a large frame;
# landing places are in every file, but the few of the C library's start code are not ours. (The note of both in the ELF file goes
# where that start code was built without, as Debian's is.)
INSTRUCTIONS = {
    "stack-clash-protection": (re.compile(r"\bor[lq]\s+\$0x0,(?:0x[0-9a-f]+)?\(%[re]sp\)"), 1),
    "cf-protection": (re.compile(r"\bendbr64\b"), 100),
}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def is_shown(kind, elf, code):
    """None where nothing could show it: C libraries without checked copies, other processors' instructions."""
    if (kind == "fortify" and "GLIBC" not in elf) or (kind in INSTRUCTIONS and "X86-64" not in elf):
        return None
    if kind in INSTRUCTIONS:
        instruction, least = INSTRUCTIONS[kind]
        return len(instruction.findall(code)) >= least
    return bool(re.search(SHOWN_BY[kind], elf, re.M))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--readelf", required=True)
    parser.add_argument("--objdump", required=True)
    parser.add_argument("--expect", required=True, type=lambda text: text.split(","))
    parser.add_argument("library")
    parser.add_argument("command")
    options = parser.parse_args()
    faults, seen = [], 0
    for path in (options.library, options.command):
        elf = output_of(options.readelf, "-hldW", "--dyn-syms", path)
        code = output_of(options.objdump, "-d", "--no-show-raw-insn", path)
        for kind in options.expect:
            if kind == "pie" and path == options.library:
                continue
            shown = is_shown(kind, elf, code)
            seen += shown is not None
            if shown is False:
                faults.append(f"{path}: built without {kind}")
    for fault in faults:
        print(fault)
    print(f"{seen} marks of hardening looked for, {len(faults)} missing")
    return 1 if faults or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
