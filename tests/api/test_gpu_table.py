"""The table of GPUs in docs/guide/install.md against the architectures that a build has by default for each processor
(pipeline/cmake/cuda_toolkit.cmake) and, in a build with CUDA, against the fat binaries in the library.

usage: test_gpu_table.py [BUILD_FOLDER]
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import kernels


def default_architectures():
    """For each processor the architectures with machine code, and the one with PTX."""
    text = (ROOT / "pipeline/cmake/cuda_toolkit.cmake").read_text(encoding="utf-8")
    x86, aarch64 = ([int(word) for word in found.split()] for found in re.findall(r"^ *set\(list ([\d ]+)\)", text, re.M))
    ptx = int(re.search(r"\$\{wanted\} (\d+)-virtual", text)[1])
    return {"x86-64": x86, "aarch64": aarch64}, ptx


def code_for(capability, machine_code, ptx):
    """What a GPU runs; Orin takes code of its own alone."""
    if capability == 87:
        return "machine code" if 87 in machine_code else "none"
    if any(number // 10 == capability // 10 and number <= capability for number in machine_code if number != 87):
        return "machine code"
    return "PTX" if capability >= ptx else "not served"


def table():
    text = (ROOT / "docs/guide/install.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if len(row) == 5 and re.fullmatch(r"\d+\.\d", row[1])]


def test_table():
    lists, ptx = default_architectures()
    rows = table()
    assert len(rows) > 10, rows
    for name, capability, x86, aarch64, _ in rows:
        number = int(capability.replace(".", ""))
        for processor, said in (("x86-64", x86), ("aarch64", aarch64)):
            expected = code_for(number, lists[processor], ptx)
            assert said in (expected, ""), f"{name}, {processor}: install.md says '{said}', the build has {expected}"
            assert said or processor == "x86-64", f"{name}: nothing is said"
    named = {int(row[1].replace(".", "")) for row in rows}
    for numbers in lists.values():
        assert set(numbers) <= named, f"not in install.md: {set(numbers) - named}"


def test_library(build):
    """Each fat binary has code for every architecture of the build."""
    found = list(kernels.entries((build / "libhartsift.so").read_bytes()))
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    works = re.search(r"^HARTSIFT_NVCC_WORKS:INTERNAL=(.*)$", cache, re.M)
    if not works or re.search(r"^HARTSIFT_CUDA:\w+=OFF$", cache, re.M):
        assert not found, "GPU code in a build without CUDA"
        return
    expected = set()
    for codes in re.findall(r"code=\[([^\]]*)\]", works[1]):
        expected |= {f"{code.split('_')[1].rstrip('a')}-{'real' if code.startswith('sm_') else 'virtual'}" for code in codes.split(",")}
    if len(expected) == 1 and not found:
        return  # code for one architecture may be stored without the fat binary around it
    binaries = {}
    for number, architecture, _ in found:
        binaries.setdefault(number, set()).add(architecture)
    assert len(binaries) > 20, f"{len(binaries)} fat binaries"
    for number, architectures in binaries.items():
        assert architectures == expected, f"fat binary {number}: {sorted(architectures)}, not {sorted(expected)}"


test_table()
command = os.environ.get("HARTSIFT_COMMAND")
folder = pathlib.Path(sys.argv[1]) if sys.argv[1:] else command and pathlib.Path(command).parent
if folder and (folder / "libhartsift.so").exists():
    test_library(folder)
print("the table of GPUs is what builds have")
