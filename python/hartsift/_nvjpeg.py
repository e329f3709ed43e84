"""nvJPEG as PyPI's packages bring it, which no search path of the system has."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Optional

#: Names under which the library looks for it, and where nvidia-nvjpeg and nvidia-nvjpeg-cu12 put it.
_PLACES = (
    ("libnvjpeg.so.13", os.path.join("cu13", "lib")),
    ("libnvjpeg.so.12", os.path.join("nvjpeg", "lib")),
)


def _loaded(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _is_current_folder(entry: str) -> bool:
    try:
        return os.path.samefile(entry or os.curdir, os.curdir)
    except OSError:
        return not os.path.isabs(entry)


@functools.lru_cache(maxsize=None)
def bring_nvjpeg() -> Optional[str]:
    """Loads it where only a package has it, so that the library finds it by its name; its path, None where there is none
    or none is needed. What lies in the current folder is not looked at: it may come with the pictures."""
    if any(_loaded(name) for name, _ in _PLACES):
        return None
    for entry in sys.path:
        if _is_current_folder(entry):
            continue
        for name, place in _PLACES:
            path = os.path.join(entry, "nvidia", place, name)
            if os.path.isfile(path) and _loaded(path):
                return path
    return None
