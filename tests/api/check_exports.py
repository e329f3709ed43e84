"""Compares the names the shared library exports with pipeline/include/exports.txt, and both with the public headers. Also looks
for the CUDA runtime and driver and C++ among the names that it has or needs: the library loads the driver itself.

usage: check_exports.py --nm NM --list EXPORTS [--cuda] LIBRARY
A line of the list is a name; "name cuda" marks one that only a build with CUDA exports; # starts a comment.
"""
import argparse
import pathlib
import re
import subprocess
import sys


def read_list(path, with_cuda):
    names = []
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if words and (with_cuda or words[1:] != ["cuda"]):
            names.append(words[0])
    return names


def exported_names(nm, library):
    output = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in output.splitlines() if line.strip()}


def unwanted_names(nm, library):
    output = subprocess.run([nm, library], check=True, capture_output=True, text=True, errors="replace").stdout
    output += subprocess.run([nm, "-D", library], check=True, capture_output=True, text=True).stdout
    return {words[-1] for words in map(str.split, output.splitlines())
            if words and re.match(r"__cuda|cudart|cuda[A-Z]|cu[A-Z]|_Z|__gxx|__cxa_(?!finalize)", words[-1])}


def declared_names(folder):
    names = set()
    for path in folder.glob("hartsift*.h"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        names |= set(re.findall(r"^HS_API\b[^;(]*?\b(hs_\w+)\s*\(", text, flags=re.M))
    return names


def report(what, names):
    for name in sorted(names):
        print(f"{what}: {name}")
    return len(names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--list", type=pathlib.Path, required=True)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("shared_object", metavar="library")
    options = parser.parse_args()
    listed = read_list(options.list, options.cuda)
    exported = exported_names(options.nm, options.shared_object)
    declared = declared_names(options.list.parent)
    if not options.cuda:
        declared -= set(read_list(options.list, True)) - set(listed)
    faults = report("listed twice", {name for name in listed if listed.count(name) > 1})
    faults += report("exported, but not in the list", exported - set(listed))
    faults += report("in the list, but not exported", set(listed) - exported)
    faults += report("declared with HS_API, but not in the list", declared - set(listed))
    faults += report("in the list, but not declared with HS_API", set(listed) - declared)
    faults += report("of the CUDA runtime or driver, or of C++", unwanted_names(options.nm, options.shared_object))
    if faults == 0:
        print(f"{len(exported)} exported names, as listed")
    return 1 if faults else 0


sys.exit(main())
