#!/usr/bin/env python3
"""Lists the GPU code in a library: for each architecture the number of fat binaries that have code for it, and the bytes.

usage: kernels.py LIBRARY
"""
import collections
import pathlib
import struct
import sys

MAGIC = struct.pack("<IH", 0xBA55ED50, 1)
KINDS = {1: "virtual", 2: "real"}  # PTX and machine code, named as in CMAKE_CUDA_ARCHITECTURES


def entries(data):
    """Yields the fat binary's number, architecture ("90-real") and bytes of each entry, in the layout of the program fatbinary."""
    start, number = data.find(MAGIC), 0
    while start >= 0:
        header, size = struct.unpack_from("<HQ", data, start + 6)
        at, end = start + header, start + header + size
        while at < end:
            kind, version, head, length = struct.unpack_from("<HHIQ", data, at)
            if kind not in KINDS or version != 0x101:
                break
            yield number, f"{struct.unpack_from('<I', data, at + 28)[0]}-{KINDS[kind]}", head + length
            at += head + length
        start, number = data.find(MAGIC, max(at, start + 1)), number + 1


def main(path):
    count, total = collections.Counter(), collections.Counter()
    for _, architecture, size in entries(pathlib.Path(path).read_bytes()):
        count[architecture] += 1
        total[architecture] += size
    for architecture in sorted(count, key=lambda name: (name.endswith("virtual"), int(name.split("-")[0]))):
        print(f"{architecture:12} {count[architecture]:3} {total[architecture]:9}")


if __name__ == "__main__":
    main(sys.argv[1])
