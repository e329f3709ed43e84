"""Patches around keypoints, for external descriptors."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_float, c_int, c_int32, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Optional, Tuple, Union

import numpy as np

from ._calls import cached_extractor
from ._errors import ArgumentError, ArrayTypeError, know_fields
from ._extractor import Extractor, records_of
from ._features import Features
from ._images import Channels, ImageLike
from ._library import library
from ._reading import Reading
from ._structures import HsImage

if TYPE_CHECKING:
    import numpy.typing as npt


class HsFrame(ctypes.Structure):
    """hs_frame"""

    _fields_ = [("a11", c_float), ("a12", c_float), ("a21", c_float), ("a22", c_float)]


class HsPatchOptions(ctypes.Structure):
    """hs_patch_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("size", c_int32),
        ("scale", c_float),
        ("blur", c_float),
        ("upright", c_int32),
        ("type", c_int),
        ("unused", c_int32),
    ]


STRUCTURES = {"hs_frame": HsFrame, "hs_patch_options": HsPatchOptions}
know_fields(STRUCTURES)
TYPES = {"u8": 0, "f32": 1}
_DTYPES = {np.dtype(np.uint8): "u8", np.dtype(np.float32): "f32"}
_SIZE_MAX = 1024

library.hs_patch_options_init_sized.restype = c_int
library.hs_patch_options_init_sized.argtypes = [POINTER(HsPatchOptions), c_size_t]
library.hs_extract_patches.restype = c_int
library.hs_extract_patches.argtypes = [
    c_void_p, POINTER(HsImage), c_void_p, c_void_p, c_size_t, POINTER(HsPatchOptions), c_void_p, c_void_p,
]


def _frames_of(frames: Any, count: int) -> "npt.NDArray[np.float32]":
    array = np.ascontiguousarray(frames, np.float32)
    if array.shape != (count, 2, 2):
        raise ArgumentError(f"frames have shape {array.shape}, expected ({count}, 2, 2)")
    return array


def extract_patches(
    image: ImageLike,
    keypoints: Union[Features, "npt.NDArray[Any]"],
    *,
    size: int = 32,
    scale: float = 12.0,
    blur: float = 0.5,
    upright: bool = False,
    frames: "Optional[npt.ArrayLike]" = None,
    dtype: "npt.DTypeLike" = np.uint8,
    channels: Channels = "rgb",
    value_range: Optional[Tuple[float, float]] = None,
    exif: bool = True,
    jpeg_scale: int = 1,
    extractor: Optional[Extractor] = None,
) -> "Tuple[npt.NDArray[Any], npt.NDArray[np.int32]]":
    """Square gray patches around keypoints, turned to their orientations and scaled with their sigma.

    >>> features = hartsift.extract(image, descriptor="none")
    >>> patches, _ = hartsift.extract_patches(image, features, dtype=np.float32)
    >>> descriptors = hardnet(torch.from_numpy(patches)[:, None])

    Args:
        image: in host memory, as for ``Extractor.extract``.
        keypoints: features, an array of ``KEYPOINT_DTYPE``, or float [N, 4] = x, y, sigma, orientation, of any
            detector.
        size: number of samples along a side, 1 to 1024.
        scale: length of a side in units of sigma; 12 as in SIFT, and in HardNet with ``mrSize`` 6.
        blur: maximum blur of the Gaussian level from which a patch is sampled, in distances between samples. The most
            blurred level within this limit is used; without such a level, the image. 0: always the image.
        upright: ignore orientations; not with frames, which include an orientation.
        frames: float [N, 2, 2], instead of sigma and orientation: the point (u, v), in units of the scale, is at (x, y)
            + frame @ (u, v).
        dtype: uint8, or float32 (black 0, white 1).
        channels, value_range, exif, jpeg_scale: as for ``hartsift.extract``; colours are RGB by default.
        extractor: its options determine the pyramid, and its threads do the work; None: an extractor that is kept for
            this thread.

    Returns:
        Patches [N, size, size], and int32 [N] statuses: 0, or the status of a keypoint without a valid patch (which is
        0). Interpolation is bilinear; outside the image its edge repeats.
    """
    kind = _DTYPES.get(np.dtype(dtype))
    if kind is None:
        raise ArrayTypeError(f"dtype is {np.dtype(dtype)}, expected uint8 or float32")
    if not 1 <= size <= _SIZE_MAX:
        raise ArgumentError(f"size is {size}, expected 1 to {_SIZE_MAX}")
    records = records_of(keypoints)
    given = None if frames is None else _frames_of(frames, len(records))
    worker = extractor or cached_extractor({})
    picture, _ = worker._pictures(image, None, Reading(channels, value_range, exif, jpeg_scale))
    if picture.on_device:
        raise ArgumentError("extract_patches takes images in host memory")
    options = HsPatchOptions()
    library.hs_patch_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
    options.size, options.scale, options.blur = size, scale, blur
    options.upright, options.type = int(bool(upright)), TYPES[kind]
    patches = np.empty((len(records), size, size), dtype)
    statuses = np.zeros(len(records), np.int32)
    worker._run(
        lambda context: library.hs_extract_patches(
            context,
            ctypes.byref(picture.view),
            records.ctypes.data,
            None if given is None else given.ctypes.data,
            len(records),
            ctypes.byref(options),
            patches.ctypes.data,
            statuses.ctypes.data,
        )
    )
    return patches, statuses
