"""Checks every place where a stage, a variant of the CPU or a kernel has to be registered, and names missing entries.
The checklists are in the code: stages/ops.h, cpu/dispatch.c, cuda/keypoints/frame_view.h.

usage: check_places.py [ROOT]
"""
import collections
import pathlib
import re
import sys
import tarfile

# Kernels that only test whether the device runs any kernel.
KERNELS_OF_NO_STAGE = {"device_probe_kernel"}
KERNEL = re.compile(r"^extern \"C\" __global__[^{;]*?\b(\w+_kernel)\s*\(", re.M)
# A macro that makes kernels of a device function; the function is described.
KERNEL_MACRO = re.compile(r"^#define (?:[^\n]*\\\n)*[^\n]*__global__(?:[^\n]*\\\n)+[^\n]*$", re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# A kernel in a header's list, with the types of its parameters; or listed by a launcher's file.
LISTED = re.compile(r"\bK\(\w+, (\w+),")
LISTED_IN_C = re.compile(r"LAUNCH_(?:ENTRY|KERNEL)\(\w+, (\w+)")
# In a launcher's file, without the lists: a call of the function that launches a kernel, or the kernel's entry.
LAUNCHED = re.compile(r"(?:\blaunch_|&)(\w+)")
MACRO = re.compile(r"^#define (\w+)\(([\w, .]*)\) (.*)$", re.M)


# Callers of stages that run_frame.c does not call.
CALLERS = {"match": "pipeline/matching/match.c", "select": "pipeline/frame/select_best.c"}


class Tree:
    """The files to check, each read once."""

    def __init__(self, root):
        self.root = root
        self.texts = {}

    def text(self, path):
        if path not in self.texts:
            files = sorted(self.root.glob(path))
            self.texts[path] = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
        return self.texts[path]

    def forgotten(self, what, places):
        """Reports places where `what` is missing. places: (file or pattern of files, regular expression that must match
        there)."""
        return [f"{what}: nothing in {path} matches {pattern}" for path, pattern in places
                if not re.search(pattern, self.text(path), re.M)]


def check_stages(tree):
    names = re.findall(r"^  STAGE_(?!COUNT)(\w+),?$", tree.text("stages/ops.h"), re.M)
    faults = [] if len(names) > 5 else ["stages/ops.h: no stages found"]
    for name in (name.lower() for name in names):
        faults += tree.forgotten(f"stage {name}", [
            ("stages/ops.h", rf"\(\*{name}\)\(stage_queue"),
            ("stages/ops.h", rf'"{name}"'),
            ("cpu/dispatch.c", rf"TAKE\(STAGE_{name.upper()}, {name}\)"),
            ("cpu/dispatch.c", rf"\.{name} = {name}_ref\b"),
            ("cpu/ref/*_ref.c", rf"\b{name}_ref\("),
            (CALLERS.get(name, "pipeline/frame/run_frame.c"), rf"ops(\.|->){name}\("),
            ("tests/**/test_*.c", rf"\b{name}_"),
        ])
    return faults


def check_variants(tree):
    text = COMMENT.sub("", tree.text("cpu/dispatch.c"))
    table = text[text.index("static const cpu_variant variants[]"):]
    table = table[:table.index("\n};")]
    names = re.findall(r"SIMD_VARIANT\((\w+),", table) + re.findall(r'\.name = "(\w+)"', table)
    faults = [] if len(names) > 3 else ["cpu/dispatch.c: no variants found"]
    for name in names:
        faults += tree.forgotten(f"variant {name}", [
            ("pipeline/include/hartsift.h", rf"HARTSIFT_CPU\s[^.;]*\b{name}\b"),
            ("README.md", rf"\b{name}\b"),
        ])
        if name != "ref":
            faults += tree.forgotten(f"variant {name}", [
                ("cpu/CMakeLists.txt", rf"flags_{name}\b"),
                ("cpu/CMakeLists.txt", rf"foreach\(isa [^)]*\b{name}\b[^)]*\)\n +set\(have"),
                ("cpu/dispatch.c", rf"HARTSIFT_HAVE_ISA_{name.upper()}\b"),
                ("cpu/simd/simd.h", rf"\b{name}\b"),
                ("cpu/simd/stages_simd.h", rf"\b{name}\b"),
            ])
    return faults


def without_macros(text, lists):
    """Returns the text, in which names that macros paste together are complete. lists: text with the macros that give
    the arguments, X(5) X(6)."""
    text, lists = (COMMENT.sub("", part).replace("\\\n", " ") for part in (text, lists))
    arguments_of = {name: re.findall(rf"\b{given}\(([^()]*)\)", body) for name, given, body in MACRO.findall(lists)}
    found = []
    for name, parameters, body in MACRO.findall(text):
        uses = re.findall(rf"(?<!#define )\b{name}\(([^()]*)\)", text)
        for user in re.findall(rf"\b(\w+)\({name}\)", text):
            uses += arguments_of.get(user, [])
        for use in uses:
            values = dict(zip((p.strip() for p in parameters.split(",")), (a.strip() for a in use.split(","))))
            parts = [values.get(word, word) for word in re.split(r"(\w+)", body)]
            found.append(re.sub(r"\s*##\s*", "", "".join(parts)))
    return "\n".join([MACRO.sub("", text)] + found)


def check_launches(tree, kernels):
    """Checks that each kernel is in a list, and launched by a file of C."""
    lists = "\n".join(tree.text(pattern) for pattern in ("cuda/*/*.h", "cuda/*/*.cuh"))
    hosts = [without_macros(path.read_text(encoding="utf-8"), lists) for path in sorted(tree.root.glob("cuda/*/*.c"))]
    listed = set(LISTED.findall(COMMENT.sub("", lists).replace("\\\n", " "))).union(*map(LISTED_IN_C.findall, hosts))
    launched = set().union(*map(LAUNCHED.findall, hosts))
    faults = [] if len(listed) > 100 else ["cuda/: no lists of kernels found"]
    faults += [f"cuda/: {name} is in no list of kernels" for name in sorted(kernels - listed)]
    return faults + [f"cuda/: nothing launches {name}" for name in sorted(listed - launched)]


def check_kernels(tree):
    """Checks that each kernel has its description and is launched, and that each launcher of a header has a caller in
    another file."""
    faults, kernels = [], set()
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(tree.root.glob("cuda/**/*.*")) if path.suffix != ".md"}
    words = collections.Counter(word for text in sources.values() for word in re.findall(r"\w+", text))
    for path, text in sources.items():
        made = {name for macro in KERNEL_MACRO.findall(text) for name in re.findall(r"\b(\w+)<[\w, ]*>\(", macro)}
        made |= set(re.findall(r"^\w+_KERNEL\(\w+_kernel, .*\b(\w+)<", text, re.M))
        functions = rf"|^(?:template <[^>]*>\s*)?static __device__ __forceinline__ void ({'|'.join(sorted(made))})\(" if made else ""
        described_from = 0
        for match in re.finditer(KERNEL.pattern + functions, text, re.M):
            name = match.group(1) or match.group(2)
            kernels.add(match.group(1))
            if not re.search(r"\bDoes\b", text[described_from:match.start()]) and name not in KERNELS_OF_NO_STAGE:
                faults.append(f"{path.relative_to(tree.root)}: no description (Does ...) before {name}")
            described_from = match.end()
            if words[name] < 2:
                faults.append(f"{path.relative_to(tree.root)}: nothing calls {name}")
    for pattern in ("pipeline/device/*.c", "tests/**/*.c*", "bench/**/*.c*"):
        for path in tree.root.glob(pattern):
            words.update(re.findall(r"\w+_launch(?=\()", path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""))
    for header in sorted(tree.root.glob("cuda/**/*.h")):
        for name in re.findall(r"^stage_status (\w+_launch)\(", header.read_text(encoding="utf-8"), re.M):
            if words[name] < 2:  # the only match is the definition
                faults.append(f"{header.relative_to(tree.root)}: nothing calls {name}")
    kernels.update(name for text in sources.values() for name in re.findall(r"^\w+_KERNEL\((\w+_kernel)\b", text, re.M))
    faults += check_launches(tree, kernels - {None})
    return faults if len(kernels) > 10 else faults + ["cuda/: no kernels found"]


def check_formats(tree):
    """Checks that each format has a seed of the fuzzer and is in README's list. If another entry is missing, compiling or
    linking fails."""
    names = re.findall(r"\.name = \"([\w-]+)\"", tree.text("pipeline/formats/format_*.c"))
    faults = [] if len(names) > 5 else ["pipeline/formats/format_*.c: no formats found"]
    with tarfile.open(tree.root / "tests/fuzz/corpus.tar.xz") as corpus:
        seeds = corpus.getnames()
    for name in names:
        if name != "colmap-db":  # databases are read by SQLite, in a separate source file
            faults += [] if any(seed.startswith(f"./features/{name}_") for seed in seeds) else [
                f"format {name}: no seed in tests/fuzz/corpus.tar.xz"]
        faults += tree.forgotten(f"format {name}", [("README.md", rf"^Formats: [\w, -]*\b{name}\b(?!-)")])
    return faults


def main():
    tree = Tree(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve())
    faults = (check_stages(tree) + check_variants(tree) + check_kernels(tree) + check_formats(tree))
    for fault in faults:
        print(fault)
    print(f"{len(faults)} places forgotten")
    return 1 if faults else 0


sys.exit(main())
