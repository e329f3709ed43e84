"""nvJPEG as PyPI's packages bring it, which no search path of the system has."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
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


@functools.lru_cache(maxsize=None)
def bring_nvjpeg() -> Optional[str]:
    """Loads it where only a package has it, so that the library finds it by its name; its path, None where there is none
    or none is needed."""
    if any(_loaded(name) for name, _ in _PLACES):
        return None
    found = importlib.util.find_spec("nvidia")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for name, place in _PLACES:
            path = os.path.join(folder, place, name)
            if os.path.isfile(path) and _loaded(path):
                return path
    return None
