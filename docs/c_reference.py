"""Pages of the C reference: for each public header its functions, types and macros in their order, under the header's headings.
Descriptions come from Doxygen, through Breathe."""
import re

ENTITY = re.compile(r"""
    ^/\*\ -{2,}\ (?P<section>.*?)\*/
  | ^HS_API\ [^;=]*?\b(?P<function>\w+)\(
  | ^static\ inline\ [^;=]*?\b(?P<inline>\w+)\(
  | ^\#\s*define\ (?P<define>(?:HS|hs)_\w+)
  | ^typedef\ enum\ (?P<enum>\w+)\ {
  | ^(?:typedef\ )?struct\ (?P<struct>\w+)\ {
  | ^enum\ {\ (?P<enumvalue>\w+)
  | ^typedef\ struct\ (?P<opaque>\w+)\ \w+;
  | ^typedef\ [\w ]+[ *]\(\*(?P<callback>\w+)\)\(
  | ^class\ (?P<klass>\w+)
""", re.M | re.S | re.X)
DIRECTIVES = {"function": "doxygenfunction", "inline": "doxygenfunction", "define": "doxygendefine", "enum": "doxygenenum",
              "struct": "doxygenstruct", "enumvalue": "doxygenenumvalue", "opaque": "doxygentypedef", "callback":
              "doxygentypedef", "klass": "doxygenclass"}


def _section(words):
    """The text of the header below a heading, with the heading."""
    title, _, rest = re.sub(r"^-+ *", "", words).strip().partition("\n")
    rest = "\n".join(re.sub(r"([*_`<|])", r"\\\1", line.strip()) for line in rest.strip().split("\n"))
    title = title[0].upper() + title[1:]
    return f"{title}\n{'-' * len(title)}\n\n{rest}\n"


def page(header):
    """The page of a header as reStructuredText."""
    text = header.read_text(encoding="utf-8")
    defined = {match.group("struct") for match in ENTITY.finditer(text)}
    parts, seen = [f"{header.name}\n{'=' * len(header.name)}\n", f".. doxygenfile:: {header.name}\n   :sections: detaileddescription\n"], set()
    for match in ENTITY.finditer(text):
        kind, name = match.lastgroup, match.group(match.lastgroup)
        if kind == "section":
            parts.append(_section(name))
        elif kind == "opaque" and name in defined:
            continue
        elif name not in seen:
            name = f"hartsift::{name}" if kind == "klass" else name
            members = "   :members:\n" if kind in ("struct", "klass") else ""
            parts.append(f".. {DIRECTIVES[kind]}:: {name}\n{members}")
        seen.add(name)
    return "\n".join(parts)
