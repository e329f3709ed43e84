"""Files that the library reads and decodes in its own threads."""

from __future__ import annotations

import ctypes
import os
import stat
from typing import Any, Optional, Union

from ._images import check_sizes, content_of, path_bytes, warn_of_damage
from ._library import HS_SOURCE_ENCODED, HS_SOURCE_FILE, library
from ._structures import HsImage, HsLoadNotes, HsLoadOptions, HsSource

_HEAD_BYTES = 32
_PNG_DEPTH_AT = 24  # offset in the header chunk, which is the first chunk


def _has_bytes(head: bytes) -> bool:
    """True if a file with this beginning has samples of 8 bits. Other files are decoded in Python's thread, which checks
    their value range."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return len(head) > _PNG_DEPTH_AT and head[_PNG_DEPTH_AT] <= 8
    return head.startswith((b"\xff\xd8", b"BM")) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def _head_of(path: bytes) -> bytes:
    """The beginning of a regular file; empty for missing files, and for pipes, which reading would change."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


class EncodedFile:
    """A file as a source of the library. The object must live until the features are computed."""

    on_device = False
    stream = None

    def __init__(self, path: Optional[bytes], content: Optional[bytes], options: HsLoadOptions) -> None:
        self._content = content  # kept alive, because the source points to it
        self.notes = HsLoadNotes()
        self.options = options
        self.options.notes = ctypes.addressof(self.notes)
        self.view = HsImage()  # without a size, because its features are already in pixels of the original
        self.source = HsSource(kind=HS_SOURCE_FILE, path=path, load=ctypes.pointer(self.options))
        if content is not None:
            self.source.kind = HS_SOURCE_ENCODED
            self.source.bytes = ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p)
            self.source.size = len(content)

    def warn(self) -> None:
        """Warns about the file. Call after its features were computed."""
        warn_of_damage(self.notes)

    def _masked(self, mask: Optional[HsImage]) -> Any:
        self.source.mask = None if mask is None else ctypes.pointer(mask)
        return ctypes.byref(self.source)

    def extract(self, context: ctypes.c_void_p, mask: Optional[HsImage], features: Any) -> int:
        """Calls ``hs_extract_source`` and returns the status."""
        status: int = library.hs_extract_source(context, self._masked(mask), features)
        return status

    def submit(self, context: ctypes.c_void_p, mask: Optional[HsImage]) -> int:
        """Calls ``hs_submit_source`` and returns the status."""
        status: int = library.hs_submit_source(context, self._masked(mask))
        return status


def encoded_file(
    source: Any, exif: bool, jpeg_scale: int, max_image_size: int, keep_encoded: bool, strict: bool = False
) -> Union[EncodedFile, bytes, None]:
    """The file, if the library can decode it itself; otherwise the bytes that were read from an open file, or None."""
    if isinstance(source, str) and source.startswith("@scene"):
        return None
    content = content_of(source)
    path = path_bytes(source) if content is None else None
    if not _has_bytes(_head_of(path) if path is not None else (content or b"")[:_HEAD_BYTES]):
        return content
    check_sizes(jpeg_scale, max_image_size)
    options = HsLoadOptions(
        struct_size=ctypes.sizeof(HsLoadOptions),
        ignore_exif=not exif,
        jpeg_scale=jpeg_scale,
        max_image_size=max_image_size,
        keep_encoded=keep_encoded,
        only_files=1,
        strict=strict,
    )
    return EncodedFile(path, content, options)
