"""Checks the built library and command for the hardening of pipeline/cmake/hardening.cmake, as visible in the linker's
output: checked copies, stack protectors, probed stacks, landing pads of indirect jumps, read-only relocations.

usage: check_hardening.py --readelf READELF --objdump OBJDUMP --expect KIND,... LIBRARY COMMAND
"""
import argparse
import re
import subprocess
import sys

# Kind -> pattern of the kind in the output of `readelf -hldW --dyn-syms`. Only a program has pie.
SHOWN_BY = {
    "fortify": r"UND __(?!stack)\w+_chk(?:@|\s|$)",
    "stack-protector-strong": r"UND __stack_chk_fail(?:@|\s|$)",
    "relro": r"^\s*GNU_RELRO\s",
    "now": r"\(FLAGS(?:_1)?\).*\b(?:BIND_NOW|NOW)\b",
    "noexecstack": r"^\s*GNU_STACK(?:\s+0x[0-9a-f]+){5}\s+RW\s",
    "pie": r"\(FLAGS_1\).*\bPIE\b",
}
# Kind -> an x86-64 instruction that shows it, and its minimum number. GCC probes each page of a large frame. Every file
# has landing pads, and the few of the C library's start code do not count. (The linker drops the ELF note of both if
# that start code was built without them, as on Debian.)
INSTRUCTIONS = {
    "stack-clash-protection": (re.compile(r"\bor[lq]\s+\$0x0,(?:0x[0-9a-f]+)?\(%[re]sp\)"), 1),
    "cf-protection": (re.compile(r"\bendbr64\b"), 100),
}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def is_shown(kind, elf, code):
    """Returns whether the files show a kind of hardening. Returns None if the build cannot show it: C libraries without
    checked copies, instructions of other processors."""
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
