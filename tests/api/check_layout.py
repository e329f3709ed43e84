"""Checks the rules of the tree's layout: includes follow rooms.py, no circle of includes or of Python modules, unique
file names, only known files at the top level, headers of the system in os/ alone, no marks of unfinished work in sources; documents name existing files,
and the README is short.

usage: check_layout.py [ROOT]
"""
import ast
import collections
import os
import pathlib
import re
import subprocess
import sys

import rooms

TOP_LEVEL = {
    "ARCHITECTURE.md", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CMakePresets.json", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md",
    "README.md", "LICENSE", "SECURITY.md", "pyproject.toml", ".ci", ".clang-format", ".clang-tidy", ".github", ".pre-commit-config.yaml",
    ".gitignore", ".gitattributes", "bench", "cpu", "cuda", "docs", "os", "packaging", "pipeline", "python", "stages", "tests",
}
INSTALLED_HEADERS = {"hartsift.h", "hartsift_colmap.h", "hartsift_cuda.h", "hartsift_geometry.h", "hartsift_match.h",
                     "hartsift_opencv.hpp", "hartsift_batch.h", "hartsift_pairs.h", "hartsift_patches.h", "hartsift_primitives.h",
                     "hartsift_retrieval.h", "hartsift_source.h", "hartsift_types.h"}
# Files for users, who have only the installed headers.
USER_CODE = ("docs/", "pipeline/examples/", "python/", "tests/api/consumer/")
# Sources of pipeline/ outside the library and the command.
ROOMLESS = ("pipeline/examples/", "pipeline/integrations/")
NAMES_THAT_REPEAT = {"CMakeLists.txt", "README.md", "__init__.py", "Makefile"}
SOURCE_ENDINGS = {".c", ".h", ".cu", ".cuh", ".cpp", ".py", ".sh", ".cmake"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
# A file named in backquotes with its folder; a stem of one capital letter is a placeholder.
DOCUMENT_NAME = re.compile(r"`((?:\w+/)+(?![A-Z]_?[a-z]*\.)\w+\.(?:c|h|hpp|cu|cuh|py|sh|md|cmake|txt))`")
# The list of engines, the only file above the engines that names one.
KNOWS_ENGINES = ("pipeline/lifetime/engines.c",)
NAMES_DEVICE = re.compile(r"(?<![\w/\"])cuda_\w+|->cuda\b|#\s*if\s+HARTSIFT_HAVE_CUDA|pipeline/device/")
README_WORDS = 1200
# Headers in <> that every room may include: those of C11 that need no system, of processors, and of libraries. Times and
# signals belong to the system.
PORTABLE_HEADERS = {
    "assert.h", "ctype.h", "errno.h", "fenv.h", "float.h", "inttypes.h", "limits.h", "math.h", "setjmp.h", "stdalign.h", "stdarg.h",
    "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h",
    "arm_acle.h", "arm_neon.h", "emmintrin.h", "immintrin.h", "wmmintrin.h",
    "jerror.h", "jpeglib.h", "png.h", "sqlite3.h", "tiffio.h", "webp/decode.h", "webp/demux.h", "zlib.h", "zstd.h",
}
# The words are assembled from halves so that this file does not match itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", "not imple" + "mented", "unimple" + "mented"]) + r")\b")


def tree_files(root):
    """Returns every file of the tree: tracked and untracked files of git if there is a repository, else all files except
    build output."""
    try:
        command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
        return sorted({name for name in listed if name and (root / name).is_file()})
    except (OSError, subprocess.CalledProcessError):
        files = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in {".git", "build", "__pycache__"}]
            files += [(pathlib.Path(folder) / name).relative_to(root).as_posix() for name in names if name != ".git"]
        return sorted(files)


def check_top_level(files):
    return [f"{name}: does not belong at the top level" for name in sorted({file.split("/")[0] for file in files} - TOP_LEVEL)]


def check_rooms(files):
    """Checks that sources of the library and the command are in rooms. A file at the top of pipeline/ would be in none."""
    return [f"{file}: stands in no room of tests/api/rooms.py" for file in files
            if file.startswith(("os/", "stages/", "cpu/", "cuda/", "pipeline/")) and file.endswith((".c", ".h", ".cu", ".cuh"))
            and not file.startswith(ROOMLESS) and rooms.room_of(file) is None]


def check_names(files):
    paths = collections.defaultdict(list)
    for file in files:
        name = file.rsplit("/", 1)[-1]
        if name not in NAMES_THAT_REPEAT and not name.startswith(".git") and not file.startswith("tests/data/"):
            paths[name].append(file)
    return [f"{name}: the name stands for {len(places)} files: {', '.join(places)}"
            for name, places in paths.items() if len(places) > 1]


def included_file(root, file, bracket, name):
    """Returns the project's file for an include line of `file`, or None for headers from elsewhere."""
    candidates = [root / name]
    if bracket == '"':
        candidates.insert(0, (root / file).parent / name)
    elif name in INSTALLED_HEADERS:
        candidates.append(root / "pipeline" / "include" / name)
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve().relative_to(root).as_posix()
    return None


def check_includes(root, file, text, graph):
    room = rooms.room_of(file)
    user_code = file.startswith(USER_CODE)
    faults = []
    for match in INCLUDE.finditer(text):
        bracket, name = match.groups()
        place = f"{file}:{text.count(chr(10), 0, match.start(2)) + 1}"
        target = included_file(root, file, bracket, name)
        if target:
            graph[file].add(target)
        if user_code:
            if target and (bracket == '"' or name not in INSTALLED_HEADERS):
                faults.append(f"{place}: may include only the installed headers, as <hartsift.h>; includes {name}")
        elif room:
            if bracket == '"' and target is None:
                faults.append(f"{place}: includes {name}, which is not in the tree (headers from elsewhere stand in <>)")
            elif not target and room != "os" and not file.startswith("pipeline/include/") and name not in PORTABLE_HEADERS:
                faults.append(f"{place}: includes <{name}>: headers of the system belong to os/")
            elif target and rooms.room_of(target) not in (room, *rooms.ROOMS[room]):
                faults.append(f"{place}: {room}/ may not include {target} (tests/api/rooms.py)")
    if file == "pipeline/include/hartsift.h" and re.search(r"include\s*[<\"]cuda", text):
        faults.append(f"{file}: the public header must not need CUDA")
    return faults


def check_engine(file, text):
    """Checks that no file above the engines asks for the kind of device: pipeline/context/engine.h is their only
    interface."""
    if not file.startswith("pipeline/") or file.startswith(("pipeline/device/", "pipeline/include/")) or file in KNOWS_ENGINES:
        return []
    return [f"{file}:{text.count(chr(10), 0, match.start()) + 1}: names a device, which only engines do: {match.group()}"
            for match in NAMES_DEVICE.finditer(text)]


def check_circles(graph):
    """Reports each circle of includes once, as a list of its files."""
    faults, done, path = [], set(), []

    def visit(file):
        if file in path:
            faults.append("circle of includes or imports: " + " -> ".join(path[path.index(file):] + [file]))
        elif file not in done:
            path.append(file)
            for target in sorted(graph.get(file, ())):
                visit(target)
            path.pop()
            done.add(file)

    for file in sorted(graph):
        visit(file)
    return faults


def imports(root, file):
    """Returns the package modules that a Python file imports at run time, also inside functions and by import_module."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    only_hints = {id(node) for branch in ast.walk(tree) if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
                  for statement in branch.body for node in ast.walk(statement)}
    names = set()
    for node in (node for node in ast.walk(tree) if id(node) not in only_hints):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names |= {node.module} if node.module else {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and isinstance(node.args[0], ast.Constant):
            names.add(str(node.args[0].value).split(".")[-1])
    folder = pathlib.PurePosixPath(file).parent
    return {str(folder / f"{name}.py") for name in names if (root / folder / f"{name}.py").is_file()}


def check_source(root, file, graph):
    text = (root / file).read_text(encoding="utf-8", errors="replace")
    code = file.endswith((".c", ".h", ".cu", ".cuh", ".cpp"))
    if file.startswith("python/hartsift/"):
        graph[file] |= imports(root, file)
    faults = check_includes(root, file, text, graph) + check_engine(file, text) if code else []
    for match in UNFINISHED.finditer(text):
        faults.append(f"{file}:{text.count(chr(10), 0, match.start()) + 1}: unfinished by its own words: {match.group()}")
    return faults


def check_document(root, file):
    """Checks that links and file names in a document exist. Links are relative to the document's folder, names to the
    root, to pipeline/ or to that folder."""
    text = (root / file).read_text(encoding="utf-8")
    here = (root / file).parent
    to_pages = file.startswith("docs/") and not file.startswith("docs/guide/")
    links = [] if to_pages else re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    faults = [f"{file}: links to {link}, which does not exist" for link in links if not (here / link).exists()]
    for name in re.findall(DOCUMENT_NAME, text):
        if not any((folder / name).is_file() for folder in (root, root / "pipeline", here)):
            faults.append(f"{file}: names {name}, which does not exist")
    if file == "README.md" and len(text.split()) > README_WORDS:
        faults.append(f"README.md: {len(text.split())} words, at most {README_WORDS}")
    return faults


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    files = tree_files(root)
    if not files:
        print(f"no files under {root}")
        return 1
    faults = rooms.table_faults() + check_top_level(files) + check_rooms(files) + check_names(files)
    sources = [file for file in files if pathlib.PurePosixPath(file).suffix in SOURCE_ENDINGS
               or file.endswith("CMakeLists.txt") or file == ".ci/run"]
    graph = collections.defaultdict(set)
    for file in sources:
        faults += check_source(root, file, graph)
    faults += check_circles(graph)
    for file in files:
        if file.endswith(".md"):
            faults += check_document(root, file)
    for fault in faults:
        print(fault)
    print(f"{len(files)} files, {len(sources)} sources, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
