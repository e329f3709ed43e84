"""Reductions, tile statistics, histograms and 1-D convolution over NumPy arrays; the same bytes on every machine."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Tuple

import numpy as np

from ._errors import ArgumentError, ArrayTypeError, check
from ._images import plain_mask
from ._library import library
from ._options import enumerator
from ._structures import HsArray, HsTiling

if TYPE_CHECKING:
    import numpy.typing as npt

#: Statistics of one tile.
TILE_DTYPE = np.dtype(
    [("sum", np.float64), ("mean", np.float64), ("min", np.float64), ("max", np.float64), ("above", np.uint64)]
)
_ELEMENTS = {np.dtype(np.uint8): 0, np.dtype(np.uint16): 1, np.dtype(np.float32): 2, np.dtype(np.float64): 3}
_TYPES = ("uint8", "uint16", "float32", "float64")
Ends = Literal["zero", "replicate", "reflect-101"]
ENDS = {"zero": 0, "replicate": 1, "reflect-101": 2}


def _view(
    given: "npt.ArrayLike", what: str = "the array", types: Sequence[str] = _TYPES
) -> "Tuple[HsArray, npt.NDArray[Any]]":
    """A view of an array of up to two dimensions (more are flattened to one row), and the array, copied if necessary."""
    if isinstance(given, np.ma.MaskedArray):
        raise ArrayTypeError(f"{what} is a masked array: give its compressed() or filled(value)")
    array = np.asarray(given)
    element = _ELEMENTS.get(array.dtype.newbyteorder("="))
    if element is None or str(array.dtype.newbyteorder("=")) not in types:
        expected = " or ".join(filter(None, (", ".join(types[:-1]), types[-1])))
        kind = ArrayTypeError if element is None else ArgumentError
        raise kind(f"{what} has elements of type {array.dtype}, expected {expected}")
    if array.size == 0:
        raise ArgumentError(f"{what} has no elements: its shape is {array.shape}")
    rows = array if array.ndim == 2 else array.reshape(1, -1)
    in_place = (rows.shape[1] == 1 or rows.strides[1] == rows.itemsize) and rows.dtype.isnative and rows.flags.aligned
    row_bytes = rows.shape[1] * rows.itemsize
    if not in_place or (rows.shape[0] > 1 and (rows.strides[0] < row_bytes or rows.strides[0] % rows.itemsize)):
        rows = np.array(rows, rows.dtype.newbyteorder("="), order="C")
    stride = rows.strides[0] if rows.shape[0] > 1 else row_bytes
    view = HsArray(data=rows.ctypes.data, width=rows.shape[1], height=rows.shape[0], stride_bytes=stride, type=element)
    return view, rows


def _rows_view(
    given: "npt.ArrayLike", what: str, types: Sequence[str] = _TYPES
) -> "Tuple[HsArray, npt.NDArray[Any]]":
    """As above for functions with rows: more than two dimensions are refused."""
    if np.ndim(given) > 2:
        raise ArgumentError(f"{what} has shape {np.shape(given)}, expected one or two dimensions")
    return _view(given, what, types)


def _reduce(function: Any, given: "npt.ArrayLike") -> float:
    view, rows = _view(given)
    result = ctypes.c_double()
    check(function(None, ctypes.byref(view), ctypes.byref(result)))
    del rows
    return result.value


def reduce_sum(array: "npt.ArrayLike") -> float:
    """The sum of a uint8, uint16, float32 or float64 array: of integers exact, of floats by a fixed tree in double."""
    return _reduce(library.hs_reduce_sum, array)


def reduce_mean(array: "npt.ArrayLike") -> float:
    """``reduce_sum`` of an array over its number of elements."""
    return _reduce(library.hs_reduce_mean, array)


def reduce_min(array: "npt.ArrayLike") -> float:
    """The smallest element of an array as for ``reduce_sum``; NaN elements are passed over."""
    return _reduce(library.hs_reduce_min, array)


def reduce_max(array: "npt.ArrayLike") -> float:
    """The largest element of an array as for ``reduce_sum``; NaN elements are passed over."""
    return _reduce(library.hs_reduce_max, array)


def tile_stats(array: "npt.ArrayLike", tile: Tuple[int, int], threshold: float = 0.0) -> "npt.NDArray[Any]":
    """Sum, mean, min, max and the count of elements above the threshold, for every tile.

    Args:
        array: two-dimensional; one-dimensional: a single row.
        tile: (width, height).

    Returns:
        Structured array (rows of tiles, tiles a row) of ``TILE_DTYPE``.
    """
    view, rows = _rows_view(array, "the array")
    if min(tile) < 1:
        raise ArgumentError(f"tile is {tile}, expected a width and a height of 1 or more")
    tiling = HsTiling(width=tile[0], height=tile[1], threshold=threshold)
    shape = (-(-view.height // tile[1]), -(-view.width // tile[0]))
    tiles = np.empty(shape, TILE_DTYPE)
    count = ctypes.c_size_t()
    check(
        library.hs_tile_stats(
            None, ctypes.byref(view), ctypes.byref(tiling), tiles.ctypes.data, tiles.size, ctypes.byref(count)
        )
    )
    del rows
    return tiles


def histogram256(array: "npt.ArrayLike", mask: "Optional[npt.ArrayLike]" = None) -> "npt.NDArray[np.uint64]":
    """How many elements of a uint8 array have each value; uint64 [256]. Where the mask is zero they are left out."""
    view, rows = _view(array, types=_TYPES[:1])
    if mask is not None and np.shape(mask) != np.shape(array):
        raise ArgumentError(f"the mask has shape {np.shape(mask)}, expected the array's {np.shape(array)}")
    masking, mask_rows = (None, None) if mask is None else _view((np.asarray(plain_mask(mask)) != 0).view(np.uint8), "the mask")
    counts = np.zeros(256, np.uint64)
    check(
        library.hs_histogram256(
            None, ctypes.byref(view), None if masking is None else ctypes.byref(masking), counts.ctypes.data
        )
    )
    del rows, mask_rows
    return counts


def equalize(image: "npt.ArrayLike") -> "npt.NDArray[np.uint8]":
    """An 8-bit image with its levels spread by its own histogram, with the bytes of OpenCV's equalizeHist."""
    view, rows = _rows_view(image, "the image", _TYPES[:1])
    result = np.empty(rows.shape, np.uint8)
    check(library.hs_equalize(None, ctypes.byref(view), result.ctypes.data, 0))
    return result.reshape(np.shape(image))


def convolve1d(signal: "npt.ArrayLike", taps: "npt.ArrayLike", ends: Ends = "zero") -> "npt.NDArray[Any]":
    """Convolves each row of a float32 or float64 array with an odd number of taps.

    Args:
        signal: one- or two-dimensional.
        taps: 2 r + 1 numbers.
        ends: what a row is continued with: ``"zero"``, ``"replicate"`` or ``"reflect-101"``.
    """
    view, rows = _rows_view(signal, "the signal", _TYPES[2:])
    numbers = np.ascontiguousarray(taps, np.float64).reshape(-1)
    if numbers.size % 2 == 0:
        raise ArgumentError(f"taps has {numbers.size} numbers, expected an odd number of them")
    result = np.empty(rows.shape, rows.dtype)
    check(
        library.hs_convolve1d(
            None,
            ctypes.byref(view),
            numbers.ctypes.data,
            numbers.size,
            enumerator("ends", ENDS, ends),
            result.ctypes.data,
            0,
        )
    )
    return result.reshape(np.shape(signal))
