"""Writes python/hartsift/_hints.py: keywords of options and names of formats for type checkers, from the library's
descriptions (hs_option_describe, hs_format_name). python/tests/test_types.py compares.

usage: HARTSIFT_LIBRARY=libhartsift.so PYTHONPATH=python make_python_hints.py > python/hartsift/_hints.py
"""
import re
import sys
import textwrap

from hartsift import _features, _options

HEAD = '''"""Type hints of options and formats. Made by tests/support/make_python_hints.py: do not edit."""

from __future__ import annotations

from typing import Literal, Tuple, TypedDict
'''
TYPES = {_options.INTEGER: "int", _options.FLAG: "bool", _options.NUMBER: "float", _options.COUNT: "int",
         _options.BYTES: "int", _options.TEXT: "str"}
#: Names for types that users write.
NAMED = {"profile": "Profile", "norm": "Norm", "layout": "Layout"}
SHORTHANDS = {
    "region_x": ("region", "Tuple[int, int, int, int]", "x, y, width, height of the region in which keypoints are kept"),
    "grid_columns": ("grid", "Tuple[int, int]", "columns, rows of the grid over which max_features is spread"),
}
#: Differences between the library's value of an option and the command's.
COMMENTS = {
    "split": "with device hybrid: number of octaves on the GPU; the CPU computes the smaller ones; 0 measures [0]",
    "max_pixels": "refuse larger images, 0: the default [2147483648]",
    "max_memory_bytes": "refuse images that need more memory, even in tiles, 0: no limit [0]",
}
WIDTH = 120


def literal(names):
    text = f"Literal[{', '.join(chr(34) + name + chr(34) for name in names)}]"
    return text if len(text) < 90 else "Literal[\n" + "".join(f'    "{name}",\n' for name in names) + "]"


def field(name, kind, comment):
    """Returns a field on one line, or below its comment."""
    line = f"    {name}: {kind}  #: {comment}"
    if len(line) <= WIDTH:
        return line
    lines = textwrap.wrap(comment, WIDTH, initial_indent="    #: ", subsequent_indent="    #: ")
    return "\n".join([*lines, f"    {name}: {kind}"])


def option(info):
    name = info.name.decode()
    names = _options.ENUMERATIONS.get(name)
    # Names options as keywords. Each is also an option of the command.
    comment = re.sub(r"--([a-z-]+)", lambda found: found.group(1).replace("-", "_"), info.help.decode())
    comment = COMMENTS.get(name, comment)
    if name == "device":
        return [field(name, "str", f'{comment}; "auto", "cpu", "cuda", "cuda:N" or "hybrid"')]
    if names and name.endswith("_rule") and list(names) == list(_options.ENUMERATIONS["refine_rule"]):
        return [field(name, "Rule", comment)]
    kind = NAMED.get(name) or (literal(names) if names else TYPES[info.type])
    shorthand = [field(*SHORTHANDS[name])] if name in SHORTHANDS else []
    return [*shorthand, field(name, kind, comment)]


def main():
    named = {**NAMED, "refine_rule": "Rule"}
    parts = [HEAD]
    for name, alias in named.items():
        parts.append(f"{alias} = {literal(_options.ENUMERATIONS[name])}\n")
    parts.append(f"FileFormat = {literal(_features.FORMATS)}\n")
    parts.append('\n\nclass OptionsBesideSigma(TypedDict, total=False):\n'
                 '    """All of Options but sigma, which ``SIFT`` has among its own arguments."""\n\n')
    fields = {info.name.decode(): option(info) for info in _options.described_options() if _options.is_offered(info)}
    sigma = fields.pop("sigma")
    parts.append("\n".join(line for lines in fields.values() for line in lines) + "\n")
    parts.append('\n\nclass Options(OptionsBesideSigma, total=False):\n'
                 '    """The options of an extraction. What is left out has the profile\'s value, in brackets.\n\n'
                 '    Enumerations are given by name, as on the command line (``norm="root"``, ``device="cuda:1"``). Ranges and\n'
                 '    defaults of all fields are in ``hartsift.h``.\n    """\n\n')
    parts.append("\n".join(sigma) + "\n")
    sys.stdout.write("\n".join(parts[:1]) + "\n" + "".join(parts[1:]))


if __name__ == "__main__":
    main()
