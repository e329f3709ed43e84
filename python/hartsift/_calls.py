"""Extraction without an object: functions whose every call takes options."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Dict, Generator, Iterable, List, Optional, Tuple, Union

import numpy as np

from ._errors import ArgumentError, Error, check
from ._extractor import Extractor
from ._features import Features
from ._images import Channels, ImageLike
from ._library import library
from ._options import make_options
from ._samples import SAMPLE_TYPES

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._hints import Options

_CACHED_EXTRACTORS = 4


class _Cache(threading.local):
    """The last extractors of a thread, for functions whose every call takes options."""

    def __init__(self) -> None:
        self.extractors: "OrderedDict[Tuple[Any, ...], Extractor]" = OrderedDict()


_cache = _Cache()


def cached_extractor(options: Dict[str, Any]) -> Extractor:
    """This thread's extractor for the options. A new extractor replaces the least recently used one."""
    try:
        key = tuple(sorted(options.items()))
        hash(key)
    except TypeError:  # for example a region as a list
        key = make_options(options).key()
    extractor = _cache.extractors.pop(key, None) or Extractor(**options)
    _cache.extractors[key] = extractor
    while len(_cache.extractors) > _CACHED_EXTRACTORS:
        _cache.extractors.popitem(last=False)[1].close()
    return extractor


def extract(
    image: ImageLike,
    mask: Any = None,
    *,
    channels: Channels = "rgb",
    value_range: Optional[Tuple[float, float]] = None,
    exif: bool = True,
    jpeg_scale: int = 1,
    max_image_size: int = 0,
    strict: bool = False,
    **options: "Unpack[Options]",
) -> Features:
    """Extracts the features of one image.

    >>> features = hartsift.extract("photo.jpg", profile="opencv", max_features=2000)
    >>> features = hartsift.extract(cv2.imread("photo.jpg"), channels="bgr")

    A thread keeps the contexts of its last few sets of options, so repeated calls need no set-up.

    Args:
        image: an array (height, width[, channels]), a tensor of PyTorch, a PIL image, a cv2.UMat, or a file: its name,
            the file opened in binary mode, or its bytes. ``Extractor.extract`` describes each in detail.
        mask: uint8 or bool (height, width); keypoints where it is zero are dropped.
        channels: order of an array's colours, by default ``"rgb"``. Arrays of cv2.imread are ``"bgr"``; if they are
            read as ``"rgb"``, the features differ and there is no error.
        value_range: (black, white) of an array. None: 0 to 255 for uint8, to 65535 for uint16, to 1 for floats.
        exif: for files: apply the orientation that is stored in them.
        jpeg_scale: 1, 2, 4 or 8: decode JPEG files to 1/N of their width and height.
        max_image_size: for files: reduce a larger picture to this size first; 0: never.
        strict: for files: refuse those whose decoder reports damage; otherwise damage gives a warning.
        options: any of ``hartsift.Options``. The main ones:
            ``profile``: "lowe" (the default), "opencv", "vlfeat" or "colmap", whose parameters and rules are taken;
            ``max_features``: number of strongest features that are kept; 0: all;
            ``contrast``, ``edge``: thresholds of contrast (a lower one finds more) and of edges (a higher one finds
            more); ``first_octave``: -1 doubles the image first (finds more), 0 does not;
            ``norm``: "l2", or "root" for RootSIFT;
            ``descriptor``: "u8", "f32" or "none";
            ``upright``, ``dsp``, ``affine``: no orientation; descriptors pooled over sizes; affine shapes;
            ``device``: "auto", "cpu", "cuda", "cuda:N"; ``threads``: number of CPU threads, 0: one for each core;
            ``max_memory_bytes``: memory for an image; an image that needs more is processed in tiles, or refused.

    Returns:
        Features: ``keypoints`` [N, 4], ``descriptors`` [N, 128], and more.

    Raises:
        hartsift.Error: the library refuses the image or an option; the message is the reason.
    """
    extractor = cached_extractor(dict(options))
    return extractor.extract(
        image,
        mask,
        channels=channels,
        value_range=value_range,
        exif=exif,
        jpeg_scale=jpeg_scale,
        max_image_size=max_image_size,
        strict=strict,
    )


def extract_batch(
    images: Any,
    masks: Any = None,
    *,
    channels: Channels = "rgb",
    value_range: Optional[Tuple[float, float]] = None,
    **options: "Unpack[Options]",
) -> List[Features]:
    """Extracts the features of a batch as in kornia, for example a tensor (N, channels, height, width).

    >>> features = hartsift.extract_batch(tensor, max_features=2000)     # a list of N

    Args:
        images, masks: as for ``Extractor.extract_batch``.
        channels, value_range, options: as for ``hartsift.extract``; colours are RGB by default.
    """
    return cached_extractor(dict(options)).extract_batch(images, masks, channels=channels, value_range=value_range)


def extract_many(
    images: Iterable[ImageLike],
    *,
    return_errors: bool = False,
    channels: Channels = "rgb",
    value_range: Optional[Tuple[float, float]] = None,
    exif: bool = True,
    jpeg_scale: int = 1,
    max_image_size: int = 0,
    masks: "Union[None, str, os.PathLike[str]]" = None,
    strict: bool = False,
    **options: "Unpack[Options]",
) -> Generator[Union[Features, Error], None, None]:
    """Yields the features of every image in order, with several images in flight.

    >>> for features in hartsift.extract_many(paths, max_features=2000): ...

    Args:
        images, return_errors, masks: as for ``Extractor.extract_many``.
        channels, value_range, exif, jpeg_scale, max_image_size, strict, options: as for ``hartsift.extract``; colours are RGB
            unless said otherwise.
    """
    with Extractor(**options) as extractor:
        yield from extractor.extract_many(
            images,
            return_errors=return_errors,
            channels=channels,
            value_range=value_range,
            exif=exif,
            jpeg_scale=jpeg_scale,
            max_image_size=max_image_size,
            masks=masks,
            strict=strict,
        )


def workspace_bytes(
    width: int, height: int, *, file_dtype: Optional["npt.DTypeLike"] = None, **options: "Unpack[Options]"
) -> Tuple[int, int]:
    """Bytes of (host, device) memory that images up to this size need. Nothing is allocated.

    Args:
        width, height: pixels.
        file_dtype: uint8 or uint16: for a file with samples of this type, which is decoded row by row if
            ``max_memory_bytes`` requires tiles; a band of its rows is then included. None: the image is in memory.
        options: as for ``Extractor``.

    Raises:
        hartsift.Error: the library refuses an option, or another file_dtype.
    """
    if not (1 <= width < 1 << 31 and 1 <= height < 1 << 31):
        raise ArgumentError(f"width and height are {width} and {height}, expected 1 or more")
    wanted = make_options(options)
    host, device = ctypes.c_uint64(), ctypes.c_uint64()
    bytes_of = (ctypes.byref(host), ctypes.byref(device))
    if file_dtype is None:
        check(library.hs_workspace_query(ctypes.byref(wanted.view), width, height, *bytes_of))
    else:
        dtype = np.dtype(file_dtype)
        sample = SAMPLE_TYPES.get((dtype.kind, dtype.itemsize), -1)
        check(library.hs_workspace_query_rows(ctypes.byref(wanted.view), width, height, sample, *bytes_of))
    return host.value, device.value
