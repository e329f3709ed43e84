#!/usr/bin/env python3
"""Checks what cannot be run here: the programs and libraries for macOS in a wheel or an installed tree.

Each must be for PROCESSOR and for macOS 11.0, need no library but the system's and those in the same wheel or tree, and find
these relative to itself; its signature must fit its bytes, without which Macs with ARM processors do not start it. A library
exports hs_ names alone. No file may contain a PATH, such as the folder of the build. A wheel must be named after what it has
inside.

usage: mach_o.py WHEEL|FOLDER arm64|x86_64 [PATH]...
"""
import hashlib
import pathlib
import posixpath
import struct
import sys
import zipfile

MAGIC = b"\xcf\xfa\xed\xfe"  # 64 bits, little endian
PROCESSORS = {"arm64": 0x0100000C, "x86_64": 0x01000007}
PROGRAM, LIBRARY = 2, 6
POSITION_INDEPENDENT = 0x200000
SYMBOLS, LOAD_LIBRARY, LIBRARY_NAME, SIGNATURE, RUN_PATH, BUILD_VERSION = 2, 0xC, 0xD, 0x1D, 0x8000001C, 0x32
OTHER_LIBRARIES = {0x80000018, 0x8000001F, 0x20, 0x80000023}  # weak, re-exported, lazy, upward
MACOS, VERSION = 1, (11, 0)
SYSTEM = "/usr/lib/libSystem.B.dylib"
OF_THE_LINKER = ("__mh_dylib_header", "___dso_handle")
SIGNATURES, DIRECTORY = 0xFADE0CC0, 0xFADE0C02  # big endian, unlike the rest
SHA256 = 2
# Texts of the libraries that a wheel has inside.
CODECS = {
    "zlib": b"invalid distance too far back",
    "libpng": b"PNG unsigned integer out of range",
    "libjpeg-turbo": b"Improper call to JPEG library",
    "SQLite": b"sqlite_autoindex_",
}


def commands(data):
    """Yields number and bytes of each load command."""
    count = struct.unpack_from("<I", data, 16)[0]
    at = 32
    for _ in range(count):
        number, size = struct.unpack_from("<II", data, at)
        if size < 8:
            raise ValueError(f"a load command has {size} bytes")
        yield number, data[at:at + size]
        at += size


def text(command):
    """The text that a command has at the offset in its third word."""
    return command[struct.unpack_from("<I", command, 8)[0]:].split(b"\0")[0].decode()


def signature_faults(data, command):
    """Compares the hash of each page with the file's bytes."""
    start, size = struct.unpack_from("<II", command, 8)
    blob = data[start:start + size]
    magic, _, count = struct.unpack_from(">III", blob)
    offsets = [struct.unpack_from(">II", blob, 12 + 8 * i)[1] for i in range(count)] if magic == SIGNATURES else []
    directories = [at for at in offsets if struct.unpack_from(">I", blob, at)[0] == DIRECTORY]
    if not directories:
        return ["its signature names no pages"]
    at = directories[0]
    hashes, _, _, pages, limit, length, kind, _, shift = struct.unpack_from(">5I4B", blob, at + 16)
    if kind != SHA256 or length != 32 or limit != start or pages != -(-limit >> shift):
        return ["its signature does not cover it"]
    page = 1 << shift
    wrong = [i for i in range(pages) if hashlib.sha256(data[i * page:min(limit, i * page + page)]).digest()
             != blob[at + hashes + 32 * i:at + hashes + 32 * i + 32]]
    return [f"its signature does not fit {len(wrong)} of {pages} pages"] if wrong else []


def symbol_faults(data, command):
    """A library exports names of its interface alone."""
    start, count, texts, _ = struct.unpack_from("<4I", command, 8)
    exported = []
    for at in range(start, start + 16 * count, 16):
        offset, kind = struct.unpack_from("<IB", data, at)
        if kind & 0x1F == 0xF:  # defined in a section, external and not private
            exported.append(data[texts + offset:data.index(b"\0", texts + offset)].decode())
    others = [name for name in exported if not name.startswith("_hs_") and name not in OF_THE_LINKER]
    if not exported:
        return ["it exports nothing"]
    return [f"it exports {len(others)} names of others, such as {others[0]}"] if others else []


def version_faults(command):
    platform, least = struct.unpack_from("<II", command, 8)
    if platform == MACOS and (least >> 16, least >> 8 & 0xFF) == VERSION:
        return []
    return [f"it is for platform {platform}, version {least >> 16}.{least >> 8 & 0xFF}"]


def library_faults(name, libraries, run_paths, names):
    """Looks for each library in the folders of run_paths, as the system's loader does."""
    faults = [f"it looks for libraries in {path}" for path in run_paths if not path.startswith("@loader_path")]
    for library in libraries:
        if library == SYSTEM:
            continue
        found = [posixpath.normpath(posixpath.join(posixpath.dirname(name), path[len("@loader_path"):].lstrip("/"), library[len("@rpath/"):]))
                 for path in run_paths] if library.startswith("@rpath/") else []
        if not any(path in names for path in found):
            faults.append(f"it needs {library}, which it does not find")
    return faults


def faults_of(name, data, processor, names):
    """What is wrong with a program or library."""
    kind, flags = struct.unpack_from("<I", data, 12)[0], struct.unpack_from("<I", data, 24)[0]
    faults, libraries, run_paths, seen = [], [], [], set()
    if struct.unpack_from("<I", data, 4)[0] != PROCESSORS[processor]:
        faults.append(f"it is not for {processor}")
    if kind not in (PROGRAM, LIBRARY) or (kind == PROGRAM and not flags & POSITION_INDEPENDENT):
        faults.append(f"it is of kind {kind} with flags {flags:x}")
    for number, command in commands(data):
        seen.add(number)
        if number == LOAD_LIBRARY or number in OTHER_LIBRARIES:
            libraries.append(text(command))
        elif number == RUN_PATH:
            run_paths.append(text(command))
        elif number == LIBRARY_NAME and not text(command).startswith("@rpath/"):
            faults.append(f"its name is {text(command)}")
        elif number == SYMBOLS and kind == LIBRARY:
            faults += symbol_faults(data, command)
        elif number == BUILD_VERSION:
            faults += version_faults(command)
        elif number == SIGNATURE:
            faults += signature_faults(data, command)
    if BUILD_VERSION not in seen:
        faults.append("it names no system version")
    if SIGNATURE not in seen and processor == "arm64":
        faults.append("it has no signature")
    return faults + library_faults(name, libraries, run_paths, names)


def faults_found(*inputs):
    """As faults_of, also for a file that is damaged."""
    try:
        return faults_of(*inputs)
    except (struct.error, ValueError, IndexError) as error:
        return [f"it is damaged: {error}"]


def wheel_faults(name, files, processor):
    tag = f"py3-none-macosx_11_0_{processor}"
    binaries = b"".join(data for data in files.values() if data.startswith(MAGIC))
    faults = [] if name.endswith(f"-{tag}.whl") else [f"{name}: its name does not end with {tag}"]
    if not any(path.endswith(".dist-info/WHEEL") and f"Tag: {tag}\n".encode() in data for path, data in files.items()):
        faults.append(f"{name}: its WHEEL file does not name {tag}")
    return faults + [f"{name}: {codec} is not inside" for codec, words in CODECS.items() if words not in binaries]


def read(path):
    """Bytes and modes of all files, by their names; links count as the files that they name."""
    if path.is_dir():
        names = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
        return {name: file.read_bytes() for name, file in names.items()}, {name: file.stat().st_mode for name, file in names.items()}
    with zipfile.ZipFile(path) as archive:
        modes = {item.filename: item.external_attr >> 16 for item in archive.infolist()}
        return {name: archive.read(name) for name in modes}, modes


def main(path, processor, *unwanted):
    files, modes = read(path)
    faults = wheel_faults(path.name, files, processor) if path.suffix == ".whl" else []
    binaries = sorted(name for name, data in files.items() if data.startswith(MAGIC))
    if not binaries:
        faults.append(f"{path}: no program or library for macOS is inside")
    for name in binaries:
        faults += [f"{name}: {fault}" for fault in faults_found(name, files[name], processor, files)]
        if not modes[name] & 0o100:
            faults.append(f"{name}: it may not be executed")
    faults += [f"{name}: it contains {word}" for name, data in files.items() for word in unwanted if word.encode() in data]
    print("\n".join(faults) or f"{path.name}: {', '.join(binaries)}: no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in PROCESSORS:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
