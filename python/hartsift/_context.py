"""The library's context as an object, and its statistics."""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Deque, Optional, Tuple, Union

from . import _library
from ._encoded import EncodedFile
from ._errors import check
from ._images import Picture
from ._library import library
from ._options import OptionsSet


#: HS_ERR_NO_DEVICE
_NO_DEVICE = 35


@dataclass(frozen=True)
class Statistics:
    """Statistics of an extractor.

    Attributes:
        frames: images extracted so far.
        regrown_frames: number of images that were processed again because a list was longer than planned.
        candidates, keypoints, features: counts of the last image.
        workspace_bytes, device_bytes: memory held now, on the host and on a GPU.
        way: how the last image was computed: "cpu-jobs", "gpu-graph", ...; "none" before the first image.
        way_reason: the reason for that way.
    """

    frames: int
    regrown_frames: int
    candidates: int
    keypoints: int
    features: int
    workspace_bytes: int
    device_bytes: int
    way: str
    way_reason: str


def _destroy(handle: ctypes.c_void_p, pinned: ctypes.c_void_p) -> None:
    library.hs_cuda_free_host(handle, pinned)
    library.hs_destroy(handle)


class Context:
    """A context of the library. Destroyed when neither its extractor nor an array on its device refers to it."""

    def __init__(self, options: OptionsSet) -> None:
        self.handle = ctypes.c_void_p()
        message = _library.message_buffer()
        check(
            library.hs_create_explained(
                ctypes.byref(self.handle), ctypes.byref(options.view), message, _library.MESSAGE_BYTES
            ),
            message.value,
        )
        # Memory that the context's workers read; freed after the workers have ended.
        self.in_flight: Deque[Tuple[Union[Picture, EncodedFile], Optional[Picture]]] = deque()
        self.device_number: Optional[int] = None  # number of its CUDA device, once it is known
        self._pinned = ctypes.c_void_p()
        self._pinned_bytes = 0
        self._end = weakref.finalize(self, _destroy, self.handle, self._pinned)
        self._end.atexit = False

    def pinned(self, size: int) -> Optional[int]:
        """Address of pinned memory of at least `size` bytes, valid until the next call of this function; None on the CPU."""
        if size > self._pinned_bytes:
            grown = ctypes.c_void_p()
            status = library.hs_cuda_alloc_host(self.handle, size, ctypes.byref(grown))
            if status == _NO_DEVICE:
                return None
            check(status, library.hs_last_error(self.handle))
            library.hs_cuda_free_host(self.handle, self._pinned)
            self._pinned.value, self._pinned_bytes = grown.value, size
        return self._pinned.value

    def forget(self) -> None:
        """Drops the context without destroying it."""
        self._end.detach()
