"""Converts the caller's image and mask to the library's input: pixels in memory, or a file that the library decodes."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, Optional, Tuple, Union

import numpy as np

from ._encoded import EncodedFile, encoded_file
from ._errors import ArgumentError
from ._images import (
    Channels, ImageLike, Picture, fit_mask, is_file_source, picture_of_array, picture_of_file, picture_of_mask, plain_mask,
    without_masked,
)

#: The pixels of one image and of its mask.
Pictures = Tuple[Picture, Optional[Picture]]
#: The source of one image, and its mask.
Sources = Tuple[Union[Picture, EncodedFile], Optional[Picture]]


class Reading(NamedTuple):
    """How an image is read; see ``Extractor.extract``."""

    channels: Channels = "rgb"
    value_range: Optional[Tuple[float, float]] = None
    exif: bool = True
    jpeg_scale: int = 1
    max_image_size: int = 0
    keep_encoded: bool = False  # JPEG files stay encoded for the GPU
    strict: bool = False


def pictures_of(image: ImageLike, mask: Any, reading: Reading, options: ctypes.Structure) -> Pictures:
    """Decodes files and converts arrays."""
    mask = plain_mask(mask)
    if isinstance(image, np.ma.MaskedArray):
        image, mask = without_masked(image, mask)
    if type(image) is not np.ndarray and is_file_source(image):
        _check_region(reading, options)
        limits = options.max_pixels, options.max_memory_bytes
        picture = picture_of_file(
            image, limits, reading.exif, reading.jpeg_scale, reading.value_range, reading.max_image_size, reading.strict
        )
    elif reading.jpeg_scale not in (0, 1) or reading.max_image_size:
        raise ArgumentError("jpeg_scale and max_image_size are for files: an array is taken as it is")
    else:
        picture = picture_of_array(image, reading.channels, reading.value_range)
    masking = None if mask is None else picture_of_mask(fit_mask(mask, picture.view))
    if masking is not None and masking.on_device != picture.on_device:
        raise ArgumentError("image and mask must both be on the device, or neither")
    return picture, masking


def sources_of(image: ImageLike, mask: Any, reading: Reading, options: ctypes.Structure) -> Sources:
    """As ``pictures_of``, but files that the library can decode stay encoded for its threads."""
    if type(image) is not np.ndarray and reading.value_range is None and is_file_source(image):
        _check_region(reading, options)
        file = encoded_file(
            image, reading.exif, reading.jpeg_scale, reading.max_image_size, reading.keep_encoded, reading.strict
        )
        if isinstance(file, EncodedFile):
            masking = None if mask is None else picture_of_mask(plain_mask(mask))
            if masking is not None and masking.on_device:
                raise ArgumentError("the mask of a file must be in host memory")
            return file, masking
        image = image if file is None else file
    return pictures_of(image, mask, reading, options)


def stream_of(picture: Picture, mask: Optional[Picture]) -> Optional[int]:
    """The stream in whose order both picture and mask are complete."""
    streams = {p.stream for p in (picture, mask) if p is not None and p.stream is not None}
    if len(streams) > 1:
        raise ArgumentError("image and mask come from different streams: synchronise one of them first")
    return streams.pop() if streams else None


def _check_region(reading: Reading, options: ctypes.Structure) -> None:
    if reading.max_image_size and options.region_width:
        raise ArgumentError("region is of the image as it is: expected without max_image_size")
