"""Follows the calls between the object files of the library and the command. Each stays within the table of rooms.py,
files do not call each other in a circle, and the library has nothing unreachable for users.

usage: check_call_graph.py --root SOURCES --nm NM --exports exports.txt [--map MAP] --library OBJECTS --command OBJECTS
OBJECTS: a file with one object file a line. MAP: the linker's map of the shared library. The linker dropped the
functions listed there because no exported function leads to them; another program of the tree must use them.
Calls through a table of functions are not seen.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

import rooms

SYMBOL = re.compile(r"^(.*?):(?: *|[0-9a-fA-F]+ )([A-Za-z]) (\S+)$")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
DROPPED = re.compile(r"^ \.text\.(?:unlikely\.|hot\.|startup\.)?(\w+?)(?:\.\w+)*\s", re.M)


def source_of(objects_path, root):
    """Returns the source of an object: pipeline/CMakeFiles/part.dir/frame/extract.c.o -> pipeline/frame/extract.c; None for objects from elsewhere."""
    match = re.search(r"(\w+)/CMakeFiles/[^/]+\.dir/(.+)\.o(?:bj)?$", objects_path)
    source = str(pathlib.PurePosixPath(match.group(1), match.group(2))) if match else None
    return source if source and (root / source).is_file() else None


def read_symbols(nm, objects, root):
    """Returns, for each source, the names that it defines for others and the names that it needs. Variants of a source
    count as one."""
    defined, needed = collections.defaultdict(set), collections.defaultdict(set)
    objects = [path for path in objects if "/kernels/" not in path]  # bytes of compiled kernels, no code
    sources = {path: source_of(path, root) for path in objects}
    strangers = [path for path, source in sources.items() if source is None]
    if strangers:
        sys.exit(f"no source of this tree: {', '.join(strangers)}")
    for line in subprocess.run([nm, "-A", *objects], check=True, capture_output=True, text=True).stdout.splitlines():
        match = SYMBOL.match(line)
        if match and match.group(2) in "TDBRVW":
            defined[sources[match.group(1)]].add(match.group(3))
        elif match and match.group(2) == "U":
            needed[sources[match.group(1)]].add(match.group(3))
    return defined, needed


def make_graph(defined, needed):
    """Returns graph[user][used]: the names by which one source uses another."""
    owner = {name: source for source, names in defined.items() for name in names}
    graph = {source: collections.defaultdict(set) for source in set(defined) | set(needed)}
    for source, names in needed.items():
        for name in names:
            if owner.get(name, source) != source:
                graph[source][owner[name]].add(name)
    return graph


def check_rooms(graph, exports):
    faults = []
    for source, uses in sorted(graph.items()):
        room = rooms.room_of(source)
        for used, names in sorted(uses.items()):
            other = rooms.room_of(used)
            if other in (room, *rooms.ROOMS[room]):
                continue
            # The command may call everything that any program may call.
            inner = sorted(names - exports if room.startswith("pipeline/cli") else names)
            if inner:
                faults.append(f"{source} ({room}) may not use {used} ({other}): {', '.join(inner)}")
    return faults


def circles(graph):
    """Returns the sets of sources that call each other in a circle (Tarjan's strongly connected components)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            members = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def check_reached(graph, defined, exports):
    """Returns the sources of the library that no exported function leads to."""
    reached = {source for source, names in defined.items() if names & exports}
    waiting = list(reached)
    while waiting:
        for used in graph[waiting.pop()]:
            if used not in reached:
                reached.add(used)
                waiting.append(used)
    return [f"{source}: no exported function leads to it" for source in sorted(set(graph) - reached)]


def check_dropped(map_path, root):
    """Returns the functions that the linker dropped and that no source uses. The command, tests and benches may use some.
    Others are used only in their own file, where the compiler inlined them."""
    text = map_path.read_text(errors="replace")
    begin = text.find("Discarded input sections")
    names = set(DROPPED.findall(text[begin:text.find("Memory Configuration", begin)])) if begin >= 0 else set()
    uses = collections.Counter()
    for folder in ("os", "stages", "cpu", "cuda", "pipeline", "tests", "bench"):
        for path in sorted((root / folder).rglob("*.c*")):
            if path.suffix in (".c", ".cu", ".cpp"):
                uses.update(re.findall(r"\w+", COMMENT.sub("", path.read_text(errors="replace"))))
    print(f"{len(names)} functions are not in the shared library")
    return [f"{name}: defined, and used by nothing" for name in sorted(names) if uses[name] == 1]


def main():
    parser = argparse.ArgumentParser()
    for name in ("--root", "--exports", "--library", "--command"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--map", type=pathlib.Path)
    parser.add_argument("--nm", default="nm")
    options = parser.parse_args()
    exports = {line.split()[0] for line in options.exports.read_text().splitlines() if line.split("#")[0].split()}
    library = options.library.read_text().split()
    defined, needed = read_symbols(options.nm, library, options.root)
    faults = rooms.table_faults() + check_reached(make_graph(defined, needed), defined, exports)
    defined, needed = read_symbols(options.nm, library + options.command.read_text().split(), options.root)
    graph = make_graph(defined, needed)
    faults += check_rooms(graph, exports)
    faults += ["circle of calls: " + ", ".join(members) for members in circles(graph)]
    if options.map:
        faults += check_dropped(options.map, options.root)
    for fault in faults:
        print(fault)
    print(f"{len(graph)} sources, {sum(len(uses) for uses in graph.values())} uses, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())
