"""Converts names of images (bytes in the file system) to UTF-8 texts for Arrow tables, and back."""

from __future__ import annotations

import os
import re

# Bytes that are not UTF-8 become characters of the private use area: 0x80..0xff become U+F780..U+F7FF. If a name itself
# contains such characters, the bytes of their UTF-8 are converted too, so that names and texts correspond one to one.
_BASE = 0xF700
_ESCAPED = re.compile("[\uf780-\uf7ff]+")
_TO_ESCAPE = re.compile("[\udc80-\udcff\uf780-\uf7ff]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def text_of_name(name: str) -> str:
    """Converts a name from ``os.fsdecode`` to a text. Nearly all names stay unchanged."""
    if name.isascii():
        return name
    try:
        decoded = os.fsencode(name).decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # no file can have this name
        return printable(name)
    return _TO_ESCAPE.sub(lambda found: "".join(chr(_BASE + byte) for byte in _bytes_of(found.group())), decoded)


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def name_of_text(text: str) -> str:
    """Converts a text from ``text_of_name`` back to the name."""
    if text.isascii() or not _ESCAPED.search(text):
        return text
    parts = (bytes(ord(one) - _BASE for one in part) if _ESCAPED.match(part) else part.encode("utf-8")
             for part in re.findall("[\uf780-\uf7ff]+|[^\uf780-\uf7ff]+", text))
    return os.fsdecode(b"".join(parts))


def printable(text: str) -> str:
    """A message that contains names, as UTF-8; other bytes become \\xNN."""
    return _SURROGATE.sub(lambda found: f"\\x{ord(found.group()) & 0xFF:02x}", text)
