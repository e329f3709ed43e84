"""Value ranges of arrays: the sample values of black and white, and checks of samples against them."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

from . import _library
from ._errors import ArgumentError, ArrayTypeError

if TYPE_CHECKING:
    import numpy.typing as npt

#: The sample values of black and white.
ValueRange = Tuple[float, float]

#: The library's sample types, by NumPy's letter and size.
SAMPLE_TYPES = {("u", 1): _library.HS_U8, ("u", 2): _library.HS_U16, ("f", 4): _library.HS_F32}
_WHITE = {("u", 1): 255.0, ("u", 2): 65535.0}
#: Common ranges, of which a message may name one.
_USUAL_RANGES = ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0), (0.0, 1023.0), (0.0, 4095.0), (0.0, 16383.0), (0.0, 65535.0))
#: Filters and resampling overshoot by up to this share of the range; if samples are farther outside, the range must be
#: wrong.
_OVERSHOOT = 0.5
#: If the brightest sample is below this share of the range, the range may be too large.
_DARK = 0.25
#: If a 16-bit picture has less contrast than this share, the range may be too large (temperatures, for example).
_FLAT = 0.125


def unusable(dtype: object, what: str) -> ArrayTypeError:
    """The exception for samples that cannot be brightness."""
    return ArrayTypeError(f"{what} has samples of type {dtype}, expected integers, floats or bool")


def same_as_default(kind: str, itemsize: int, value_range: Optional[ValueRange]) -> bool:
    """True if the library reads these samples unchanged."""
    if (kind, itemsize) not in SAMPLE_TYPES:
        return False
    return kind == "f" or value_range is None or tuple(value_range) == (0, _WHITE[kind, itemsize])


def checked_range(value_range: Optional[ValueRange]) -> Optional[ValueRange]:
    """Checks a given range: two numbers in order."""
    if value_range is None:
        return None
    numbers = tuple(float(number) for number in value_range)
    if len(numbers) != 2 or not numbers[0] < numbers[1] or not np.isfinite(numbers).all():
        raise ArgumentError(f"value_range is {value_range!r}, expected (black, white) with black below white")
    return numbers


def check_extremes(
    kind: str, itemsize: int, low: float, high: float, value_range: Optional[ValueRange], what: str
) -> None:
    """Refuses values outside the range. Warns if a picture is dark in a default range."""
    # integers of a type without a defined white are treated as bytes
    black, white = value_range or (0.0, 1.0 if kind in "bf" else _WHITE.get((kind, itemsize), 255.0))
    if not np.isfinite(low) or not np.isfinite(high):
        raise ArgumentError(
            f"{what} has samples that are NaN or infinite: replace them (numpy.nan_to_num), and give a mask that is "
            "zero around them if no keypoints are wanted there"
        )
    room = 0.0 if kind != "f" and value_range is None else _OVERSHOOT * (white - black)
    fits = [usual for usual in _USUAL_RANGES if usual[0] <= low and high <= usual[1]]
    advice = f"value_range=({fits[0][0]:g}, {fits[0][1]:g})" if fits else "value_range=(black, white)"
    if low < black - room or high > white + room:
        raise ArgumentError(
            f"{what} has samples from {low:g} to {high:g}, where black is {black:g} and white is {white:g}: "
            f"say what is black and white there, such as {advice}"
        )
    is_flat = (kind, itemsize) == ("u", 2) and high - low < _FLAT * (white - black)
    if value_range is None and low < high and (is_flat or high < black + _DARK * (white - black)):
        if (kind, itemsize) == ("u", 2) and high - low < _FLAT * (fits[0][1] - fits[0][0]):
            advice = f"value_range=({low:g}, {high:g})"
        elif fits and fits[0] == (black, white):  # no smaller common range contains the samples
            advice = "value_range=(black, white)"
        seen = f"no sample above {high:g}" if not is_flat or low == black else f"samples from {low:g} to {high:g} only"
        warn(
            f"{what} has {seen}, where white is {white:g}: few features or none will be found; "
            f"give value_range if white is less there, such as {advice}, or ({black:g}, {white:g}) if this is meant"
        )


def warn(text: str) -> None:
    """Warns with the line of the program that called the package."""
    package = os.path.dirname(__file__) + os.sep
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=depth)


def readable_samples(
    array: "npt.NDArray[Any]", value_range: Optional[ValueRange], what: str
) -> "Tuple[npt.NDArray[Any], Optional[ValueRange]]":
    """The array with samples for the library, and the range of floats.

    uint8, uint16 and float32 stay unchanged. Without a range black is 0; white is 65535 for uint16, 255 for other
    integers, 1 for floats and bool. With another range integers are converted to float32.
    """
    kind, itemsize = array.dtype.kind, array.dtype.itemsize
    if kind not in "buif":
        raise unusable(array.dtype, what)
    if kind == "u" and itemsize == 1 and same_as_default(kind, itemsize, value_range):
        return array, None
    if kind == "b" and value_range is None:
        # bool arrays of PIL contain bytes other than 0 and 1
        return (array.view(np.uint8) != 0) * np.uint8(255), None
    if kind == "f" and itemsize != 4:
        with np.errstate(over="ignore"):  # infinite values are refused later
            array = array.astype(np.float32)
        itemsize = 4
    check_extremes(kind, itemsize, float(array.min()), float(array.max()), value_range, what)
    if same_as_default(kind, itemsize, value_range):
        return array, value_range
    if value_range is None and kind != "f":
        return array.astype(np.uint8), None
    return array.astype(np.float32, copy=False), value_range
