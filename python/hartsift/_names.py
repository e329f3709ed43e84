"""Names of images, which are bytes for the file system, as the texts in UTF-8 that Arrow's tables hold."""

from __future__ import annotations

import os
import re

# Bytes that are no UTF-8 become characters of the private use area, 0x80..0xff as U+F780..U+F7FF. A name that has such characters
# itself has the bytes of their UTF-8 in this form, so every name has one text and every text one name.
_BASE = 0xF700
_ESCAPED = re.compile("[\uf780-\uf7ff]+")
_TO_ESCAPE = re.compile("[\udc80-\udcff\uf780-\uf7ff]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def text_of_name(name: str) -> str:
    """The text for a name as ``os.fsdecode`` gives it; nearly all names are their own."""
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
    """The name for a text of ``text_of_name``."""
    if text.isascii() or not _ESCAPED.search(text):
        return text
    parts = (bytes(ord(one) - _BASE for one in part) if _ESCAPED.match(part) else part.encode("utf-8")
             for part in re.findall("[\uf780-\uf7ff]+|[^\uf780-\uf7ff]+", text))
    return os.fsdecode(b"".join(parts))


def printable(text: str) -> str:
    """A message with names in it, as UTF-8: bytes that are none as \\xNN."""
    return _SURROGATE.sub(lambda found: f"\\x{ord(found.group()) & 0xFF:02x}", text)
