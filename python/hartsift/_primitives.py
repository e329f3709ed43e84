"""Reductions, tile statistics, histograms and 1-D convolution over NumPy and CUDA arrays; the same bytes everywhere.

A NumPy array is processed by the calling thread, or by the threads or the GPU of ``extractor``. An array on a CUDA
device (of any package with ``__cuda_array_interface__`` or DLPack, such as PyTorch and CuPy) is processed there, in the
order of its stream. Numbers, tiles and histograms are returned as NumPy's types.
"""

from __future__ import annotations

import ctypes
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Literal, Optional, Sequence, Tuple

import numpy as np

from ._calls import cached_extractor
from ._device import DeviceArray, device_array
from ._errors import ArgumentError, ArrayTypeError, check
from ._images import plain_mask
from ._library import library
from ._options import enumerator
from ._structures import HsArray, HsTiling

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._extractor import Extractor

#: Statistics of one tile.
TILE_DTYPE = np.dtype(
    [("sum", np.float64), ("mean", np.float64), ("min", np.float64), ("max", np.float64), ("above", np.uint64)]
)
_ELEMENTS: Dict[Any, int] = {np.dtype(np.uint8): 0, np.dtype(np.uint16): 1, np.dtype(np.float32): 2, np.dtype(np.float64): 3}
_TYPES = ("uint8", "uint16", "float32", "float64")
_DEVICE_TYPES: Dict[Tuple[str, int], Any] = {(dtype.kind, dtype.itemsize): dtype for dtype in _ELEMENTS}
Ends = Literal["zero", "replicate", "reflect-101"]
ENDS = {"zero": 0, "replicate": 1, "reflect-101": 2}
#: Alignment of arrays in pinned memory.
_ALIGNMENT = 256
_NUMBER_BYTES, _COUNTS_BYTES = 8, 256 * 8


@dataclass
class _Array:
    """An array in the library's form."""

    view: HsArray
    owner: Any  # keeps the memory alive
    shape: Tuple[int, ...]
    dtype: Any
    on_device: bool = False
    stream: Optional[int] = None
    device: int = 0


def _element(dtype: Any, what: str, types: Sequence[str]) -> int:
    element = _ELEMENTS.get(dtype.newbyteorder("="))
    if element is None or str(dtype.newbyteorder("=")) not in types:
        expected = " or ".join(filter(None, (", ".join(types[:-1]), types[-1])))
        kind = ArrayTypeError if element is None else ArgumentError
        raise kind(f"{what} has elements of type {dtype}, expected {expected}")
    return element


def _rows_of(shape: Tuple[int, ...], what: str) -> Tuple[int, int]:
    """Height and width of an array. Two dimensions stay; any other number becomes one row."""
    if 0 in shape:
        raise ArgumentError(f"{what} has no elements: its shape is {shape}")
    return (shape[0], shape[1]) if len(shape) == 2 else (1, math.prod(shape))


def _device_array(given: DeviceArray, array: Any, what: str, types: Sequence[str]) -> _Array:
    dtype = _DEVICE_TYPES.get((given.kind, given.itemsize))
    if dtype is None or dtype.name not in types:
        _element(dtype or np.dtype(object), what, types)  # raises
    assert dtype is not None
    height, width = _rows_of(given.shape, what)
    row_bytes = width * given.itemsize
    rows = len(given.shape) == 2
    stride = given.strides[0] if rows and height > 1 else row_bytes
    step, tight = given.itemsize, stride >= row_bytes
    for axis in range(len(given.shape) - 1, 0 if rows else -1, -1):
        tight = tight and (given.shape[axis] == 1 or given.strides[axis] == step)
        step *= given.shape[axis]
    if not tight:
        raise ArgumentError(f"{what} is on a device and its elements are not one after the other: copy it first")
    view = HsArray(given.pointer, width, height, stride, _ELEMENTS[dtype])
    number = given.device
    if number is None:
        where = getattr(array, "__dlpack_device__", None)
        number = int(where()[1]) if where is not None else 0
    return _Array(view, given, given.shape, dtype, True, given.stream, number)


def _view(given: Any, what: str = "the array", types: Sequence[str] = _TYPES, rows: bool = False) -> _Array:
    """An array in the library's form; a NumPy array that the library cannot read in place is copied. rows: at most two
    dimensions are allowed."""
    if isinstance(given, np.ma.MaskedArray):
        raise ArrayTypeError(f"{what} is a masked array: give its compressed() or filled(value)")
    described = device_array(given)
    array = None if described is not None else np.asarray(given)
    shape = tuple(described.shape) if described is not None else array.shape  # type: ignore[union-attr]
    if rows and len(shape) > 2:
        raise ArgumentError(f"{what} has shape {shape}, expected one or two dimensions")
    if described is not None:
        return _device_array(described, given, what, types)
    assert array is not None
    element = _element(array.dtype, what, types)
    height, width = _rows_of(shape, what)
    lines = array if array.ndim == 2 else array.reshape(1, -1)
    in_place = (width == 1 or lines.strides[1] == lines.itemsize) and lines.dtype.isnative and lines.flags.aligned
    row_bytes = width * lines.itemsize
    if not in_place or (height > 1 and (lines.strides[0] < row_bytes or lines.strides[0] % lines.itemsize)):
        lines = np.array(lines, lines.dtype.newbyteorder("="), order="C")
    stride = lines.strides[0] if height > 1 else row_bytes
    view = HsArray(data=lines.ctypes.data, width=width, height=height, stride_bytes=stride, type=element)
    return _Array(view, lines, shape, lines.dtype)


class _Pinned:
    """Pinned memory of a context, of which arrays get parts."""

    def __init__(self, address: int) -> None:
        self._next = address

    def take(self, size: int) -> int:
        address = self._next
        self._next += -(-size // _ALIGNMENT) * _ALIGNMENT
        return address

    @staticmethod
    def bytes_for(sizes: Sequence[int]) -> int:
        return sum(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)

    def copy(self, array: _Array) -> HsArray:
        """A copy of a NumPy array."""
        lines = array.owner
        view = HsArray(array.view.data, array.view.width, array.view.height, 0, array.view.type)
        view.data = self.take(lines.size * lines.itemsize)
        np.ctypeslib.as_array((ctypes.c_uint8 * (lines.size * lines.itemsize)).from_address(view.data)).view(
            lines.dtype
        ).reshape(lines.shape)[...] = lines
        return view


#: Makes a function that calls one primitive, from its name, the arrays in the library's form, the address of the
#: result, and for a device the stream.
_Call = Callable[[str, List[HsArray], int, Tuple[Any, ...]], Callable[[Any], int]]


def _compute(name: str, arrays: List[_Array], result: "npt.NDArray[Any]", call: _Call, extractor: "Optional[Extractor]") -> None:
    """Fills a NumPy array from NumPy arrays, by hs_NAME or, if the extractor is on a GPU, by hs_cuda_NAME."""
    if extractor is None:
        check(call("hs_" + name, [array.view for array in arrays], result.ctypes.data, ())(None))
        return

    def run(context: ctypes.c_void_p) -> int:
        assert extractor is not None and extractor._context is not None
        sizes = [array.owner.size * array.owner.itemsize for array in arrays]
        address = extractor._context.pinned(_Pinned.bytes_for([*sizes, result.nbytes]))
        if address is None:
            return int(call("hs_" + name, [array.view for array in arrays], result.ctypes.data, ())(context))
        pinned = _Pinned(address)
        views = [pinned.copy(array) for array in arrays]
        target = pinned.take(result.nbytes)
        status = int(call("hs_cuda_" + name, views, target, (None,))(context))
        if status == 0:
            ctypes.memmove(result.ctypes.data, target, result.nbytes)
        return status

    extractor._run(run)


def _on_device(
    call: Callable[[ctypes.c_void_p, Optional[int]], int],
    source: _Array,
    size: int,
    take: Callable[[int], Any],
    extractor: "Optional[Extractor]",
) -> Any:
    """A result of `size` bytes from an array on a device: by call(context, address of pinned memory), then take(address).
    Few steps, because a kernel for a small array takes ten microseconds."""
    worker = extractor or cached_extractor({"device": f"cuda:{source.device}"})
    result = None

    def run(context: ctypes.c_void_p) -> int:
        nonlocal result
        assert worker._context is not None
        address = worker._context.pinned(size)
        status = call(context, address)
        if status == 0 and source.stream is not None:
            status = library.hs_cuda_finish(context)
        if status == 0 and address is not None:
            result = take(address)
        return int(status)

    worker._run(run)
    return result


def _number_at(address: int) -> float:
    return ctypes.c_double.from_address(address).value


def _counts_at(address: int) -> "npt.NDArray[np.uint64]":
    return np.frombuffer(ctypes.string_at(address, _COUNTS_BYTES), np.uint64).copy()


def _reduce(name: str, given: Any, extractor: "Optional[Extractor]") -> float:
    source = _view(given)
    if source.on_device:
        function = getattr(library, "hs_cuda_" + name)
        return float(
            _on_device(lambda c, out: function(c, source.view, source.stream, out), source, _NUMBER_BYTES, _number_at, extractor)
        )
    result = np.empty(1, np.float64)
    _compute(
        name,
        [source],
        result,
        lambda function, views, out, stream: lambda context: getattr(library, function)(
            context, ctypes.byref(views[0]), *stream, out
        ),
        extractor,
    )
    return float(result[0])


def reduce_sum(array: Any, extractor: "Optional[Extractor]" = None) -> float:
    """The sum of a uint8, uint16, float32 or float64 array: exact for integers, by a fixed tree in double for floats.

    extractor: its threads or GPU do the work; None: the calling thread, or the device of a CUDA array.
    """
    return _reduce("reduce_sum", array, extractor)


def reduce_mean(array: Any, extractor: "Optional[Extractor]" = None) -> float:
    """The mean of an array: ``reduce_sum`` divided by the number of elements. array and extractor as for ``reduce_sum``."""
    return _reduce("reduce_mean", array, extractor)


def reduce_min(array: Any, extractor: "Optional[Extractor]" = None) -> float:
    """The smallest element of an array; array and extractor as for ``reduce_sum``. NaN elements are ignored."""
    return _reduce("reduce_min", array, extractor)


def reduce_max(array: Any, extractor: "Optional[Extractor]" = None) -> float:
    """The largest element of an array; array and extractor as for ``reduce_sum``. NaN elements are ignored."""
    return _reduce("reduce_max", array, extractor)


def tile_stats(
    array: Any, tile: Tuple[int, int], threshold: float = 0.0, extractor: "Optional[Extractor]" = None
) -> "npt.NDArray[Any]":
    """Sum, mean, min, max, and number of elements above the threshold, for every tile.

    Args:
        array: two-dimensional; a one-dimensional array is a single row.
        tile: (width, height).
        extractor: its threads or GPU do the work; None: the calling thread, or the array's device.

    Returns:
        Structured array (rows of tiles, tiles a row) of ``TILE_DTYPE``.
    """
    source = _view(array, "the array", rows=True)
    if min(tile) < 1:
        raise ArgumentError(f"tile is {tile}, expected a width and a height of 1 or more")
    tiling = HsTiling(width=tile[0], height=tile[1], threshold=threshold)
    tiles = np.empty((-(-source.view.height // tile[1]), -(-source.view.width // tile[0])), TILE_DTYPE)
    count = ctypes.c_size_t()
    if source.on_device:
        _on_device(
            lambda c, out: library.hs_cuda_tile_stats(c, source.view, tiling, source.stream, out, tiles.size, count),
            source,
            tiles.nbytes,
            lambda address: ctypes.memmove(tiles.ctypes.data, address, tiles.nbytes),
            extractor,
        )
        return tiles
    _compute(
        "tile_stats",
        [source],
        tiles,
        lambda function, views, out, stream: lambda context: getattr(library, function)(
            context, ctypes.byref(views[0]), ctypes.byref(tiling), *stream, out, tiles.size, ctypes.byref(count)
        ),
        extractor,
    )
    return tiles


def histogram256(array: Any, mask: Any = None, extractor: "Optional[Extractor]" = None) -> "npt.NDArray[np.uint64]":
    """Number of elements of a uint8 array with each value; uint64 [256]. Elements where the mask is zero are not
    counted.

    extractor: as for ``reduce_sum``.
    """
    sources = [_view(array, types=_TYPES[:1])]
    first = sources[0]
    if mask is not None:
        if tuple(np.shape(mask)) != sources[0].shape:
            raise ArgumentError(f"the mask has shape {np.shape(mask)}, expected the array's {sources[0].shape}")
        on_device = device_array(mask) is not None
        plain = mask if on_device else (np.asarray(plain_mask(mask)) != 0).view(np.uint8)
        sources.append(_view(plain, "the mask", _TYPES[:1]))
        if sources[1].on_device != first.on_device:
            raise ArgumentError("one array is on a device, the other is not")
    if first.on_device:
        masking = sources[1].view if mask is not None else None
        counted: "npt.NDArray[np.uint64]" = _on_device(
            lambda c, out: library.hs_cuda_histogram256(c, first.view, masking, first.stream, out),
            first,
            _COUNTS_BYTES,
            _counts_at,
            extractor,
        )
        return counted
    counts = np.zeros(256, np.uint64)
    _compute(
        "histogram256",
        sources,
        counts,
        lambda function, views, out, stream: lambda context: getattr(library, function)(
            context, ctypes.byref(views[0]), ctypes.byref(views[1]) if len(views) > 1 else None, *stream, out
        ),
        extractor,
    )
    return counts


def _like(array: Any, what: str) -> Any:
    """An uninitialised array on the device, of the same package as the given array."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(array, torch.Tensor):
        return torch.empty(array.shape, dtype=array.dtype, device=array.device)
    if cupy is not None and isinstance(array, cupy.ndarray):
        return cupy.empty(array.shape, array.dtype)
    raise ArgumentError(f"{what} is on a device and neither PyTorch's nor CuPy's: copy it to one of them")


def _map(name: str, source: _Array, given: Any, call: _Call, extractor: "Optional[Extractor]") -> Any:
    """An array with the shape and type of the source, in the same memory space."""
    if not source.on_device:
        result = np.empty((source.view.height, source.view.width), source.dtype)
        _compute(name, [source], result, call, extractor)
        return result.reshape(source.shape)
    filled = _like(given, "the array")
    target = device_array(filled)
    assert target is not None
    worker = extractor or cached_extractor({"device": f"cuda:{source.device}"})
    worker._run(call("hs_cuda_" + name, [source.view], target.pointer, (source.stream,)))
    return filled


def equalize(image: Any, extractor: "Optional[Extractor]" = None) -> Any:
    """Equalises an 8-bit image by its histogram. The result has the bytes of OpenCV's equalizeHist.

    extractor: as for ``reduce_sum``. The result is an array of the image's package: NumPy, PyTorch or CuPy.
    """
    return _map(
        "equalize",
        _view(image, "the image", _TYPES[:1], rows=True),
        image,
        lambda function, views, out, stream: lambda context: getattr(library, function)(
            context, ctypes.byref(views[0]), *stream, out, 0
        ),
        extractor,
    )


def convolve1d(signal: Any, taps: "npt.ArrayLike", ends: Ends = "zero", extractor: "Optional[Extractor]" = None) -> Any:
    """Convolves each row of a float32 or float64 array with an odd number of taps.

    Args:
        signal: one- or two-dimensional.
        taps: 2 r + 1 numbers in host memory.
        ends: continuation of a row beyond its ends: ``"zero"``, ``"replicate"`` or ``"reflect-101"``.
        extractor: its threads or GPU do the work; None: the calling thread, or the array's device.

    Returns:
        An array with the signal's shape and type, of the signal's package: NumPy, PyTorch or CuPy.
    """
    source = _view(signal, "the signal", _TYPES[2:], rows=True)
    numbers = np.ascontiguousarray(taps, np.float64).reshape(-1)
    if numbers.size % 2 == 0:
        raise ArgumentError(f"taps has {numbers.size} numbers, expected an odd number of them")
    rule = enumerator("ends", ENDS, ends)
    return _map(
        "convolve1d",
        source,
        signal,
        lambda function, views, out, stream: lambda context: getattr(library, function)(
            context, ctypes.byref(views[0]), numbers.ctypes.data, numbers.size, rule, *stream, out, 0
        ),
        extractor,
    )
