"""Doxygen input filter: converts plain comments of a public header to Doxygen's form.

usage: doxygen_filter.py HEADER

A comment before a declaration, or after it on the same line, describes it. If several functions follow one comment without a
blank line, the first gets it and the others refer to the first. In a struct, a comment before a field that also has a trailing
comment is the heading of a group of fields.
"""
import pathlib
import re
import sys

TRAILING = re.compile(r"^([ \t]*(?:[^\s/*]|\*\w)[^\n]*?)[ \t]*(/\*(?!\*).*?\*/)", re.M | re.S)
LEADING = re.compile(r"^([ \t]*)(/\*(?!\*).*?\*/)[ \t]*\n", re.M | re.S)
NAME = re.compile(r"\b(?:hs_\w+|HS_[A-Z0-9_]+)\b")
FUNCTION = re.compile(r"#define (\w+)|HS_API [^;=(]*?[ *](\w+)\(|  \w+(?:::\w+)? (\w+)\(\) const override")
SEVERAL_FIELDS = re.compile(r"\s*((?:const )?(?:struct )?\w+) (\*?\w+(?:\[\w+\])?(?:, \*?\w+(?:\[\w+\])?)+);")


def plain_lines(comment):
    """Lines of a comment. With a margin of stars, further indentation is kept; otherwise indentation is removed."""
    lines = comment[2:-2].strip("\n").rstrip().split("\n")
    if len(lines) > 1 and all(re.match(r" \*( |$)", line) for line in lines[1:]):
        return [line.strip(" *") if i == 0 else line[3:] for i, line in enumerate(lines)]
    if re.match(r" \* ", lines[0]):
        return [line[3:] for line in lines]
    return [line.strip() for line in lines]


def marked_up(comment, run_in=False):
    """Text for Doxygen: nothing in it is a command by chance, names are links, what is indented is code; with run_in the words
    that a paragraph starts with, as in `Coordinates. x to the right`, are bold."""
    text, is_code = [], False
    for line in plain_lines(comment):
        is_code = line.startswith("    ") and (is_code or not text or not text[-1].strip())
        if not is_code:
            starts = not text or not text[-1].strip()
            line = re.sub(r"([\\@<>#*%&|~])", r"\\\1", line)
            line = re.sub(r"`([^`]+)`", r"<tt>\1</tt>", line)
            line = NAME.sub(r"#\g<0>", line)
            line = re.sub(r"^([A-Z][\w ]{2,30})\. (?=[A-Z\"x\d])", r"<b>\1.</b> ", line) if starts and run_in else line
            line = re.sub(r"(^|(?<=[.)] ))(Statuses(?: of all)?): ", r"\n\n<b>\2:</b> ", line)
        text.append(line)
    return "\n".join(text)


def described(comment, command=""):
    return f"/**{command}\n{marked_up(comment, bool(command))}\n*/\n"


def split_fields(declaration, note):
    """Splits `float x, y;` into one field per line, each with the same comment."""
    match = SEVERAL_FIELDS.match(declaration)
    if not match:
        return f"{declaration} {note}"
    return "\n".join(f"{match.group(1)} {name}; {note}" for name in match.group(2).split(", "))


def with_trailing(match):
    if re.fullmatch(r"struct \w+;", match.group(1)):
        return match.group(1)  # the kind of definition is dropped, because the reference describes a name only once
    return split_fields(match.group(1), f"/**< {marked_up(match.group(2))} */")


def with_leading(match):
    indent, comment = match.groups()
    following = match.string[match.end():]
    if plain_lines(comment)[0].startswith("--") and not indent:
        return "\n"  # a section of the file becomes a heading of its page
    if not indent:
        return described(comment)
    statement = following.partition(";")[0]
    if re.match(r"[^\n;]*,[ \t]*/\*", following):
        return ""  # a comment on several enumerators at once has no place in the reference
    if following.startswith("\n") or re.match(r"[^;]*;[ \t]*/\*", following):
        title = re.sub(r"^[- \d.]+", "", " ".join(plain_lines(comment)))
        return f"/** @name {title}\n@{{ */\n"
    if SEVERAL_FIELDS.match(statement + ";"):
        return f"@@several {' '.join(marked_up(comment).split())}\n"
    return described(comment)


def with_structure(text):
    """Ends groups of fields, spreads comments over several fields, and lets functions share the comment before them."""
    lines, group_open, first, before = [], False, None, ""
    note = None
    for line in text.split("\n"):
        if line.startswith("/** @name"):
            lines += ["/** @} */"] if group_open else []
            group_open = True
        elif line.startswith("}") and group_open:
            lines.append("/** @} */")
            group_open = False
        if line.startswith("@@several "):
            note = line.partition(" ")[2]
            continue
        if note:
            line, note = split_fields(line, f"/**< {note} */"), None
        match = FUNCTION.match(line)
        if not line.strip() or line.startswith("/**"):
            first = None
        elif match and first:
            lines.append(f"/** See #{first}. */")
        elif match and before.endswith("*/"):
            first = match.group(match.lastindex)
        lines.append(line)
        before = line
    return "\n".join(lines)


def filtered(path):
    text = path.read_text(encoding="utf-8")
    head = LEADING.search(text)
    words = head.group(2).replace(f"{path.name} - ", "", 1)
    text = text[:head.start()] + described(words, f" @file {path.name}") + text[head.end():]
    text = TRAILING.sub(with_trailing, text)
    return with_structure(LEADING.sub(with_leading, text))


if __name__ == "__main__":
    print(filtered(pathlib.Path(sys.argv[1])))
