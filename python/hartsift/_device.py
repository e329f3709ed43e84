"""Arrays in the memory of a CUDA device: __cuda_array_interface__ and DLPack, read without any CUDA package."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Optional, Tuple

from ._errors import ArgumentError, ArrayTypeError

#: The legacy default stream, as CUDA's handles and both protocols number it.
LEGACY_STREAM = 1
_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_CUDA_PINNED, _DLPACK_CUDA_MANAGED = 1, 2, 3, 13
_DLPACK_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}


class _DlTensor(ctypes.Structure):
    """DLTensor of DLPack's C interface"""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("type_code", c_uint8),
        ("type_bits", c_uint8),
        ("type_lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


@dataclass
class DeviceArray:
    """Where an array on a device lies and what it holds."""

    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # bytes
    kind: str  # NumPy's letter: "u", "f", "b", ...
    itemsize: int
    stream: Optional[int]  # the stream in whose order the content is complete; None: it is complete
    owner: object  # what keeps the memory


def _contiguous_strides(shape: Tuple[int, ...], itemsize: int) -> Tuple[int, ...]:
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def _from_cuda_array_interface(array: Any) -> DeviceArray:
    described = array.__cuda_array_interface__
    if described.get("mask") is not None:
        raise ArgumentError("arrays with a mask of their own (__cuda_array_interface__) are not read")
    typestr = described["typestr"]
    if typestr[0] == ">":
        raise ArrayTypeError(f"an array on a device has samples of type {typestr}, expected the machine's byte order")
    shape = tuple(int(length) for length in described["shape"])
    itemsize = int(typestr[2:])
    strides = described.get("strides")
    # Before version 3 the protocol had no stream: what was queued on the default stream comes first.
    stream = described.get("stream") if described.get("version", 0) >= 3 else LEGACY_STREAM
    return DeviceArray(
        int(described["data"][0]),
        shape,
        tuple(strides) if strides is not None else _contiguous_strides(shape, itemsize),
        typestr[1],
        itemsize,
        stream,
        array,
    )


def _capsule_pointer(capsule: object) -> int:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
    pointer: int = get_pointer(capsule, b"dltensor")
    return pointer


def _from_dlpack(array: Any) -> DeviceArray:
    # The capsule keeps its name and with it the duty to free the tensor when it is dropped.
    capsule = array.__dlpack__(stream=LEGACY_STREAM)
    tensor = _DlTensor.from_address(_capsule_pointer(capsule))
    if tensor.type_lanes != 1 or tensor.type_bits % 8 != 0:
        raise ArrayTypeError(
            "an array on a device has samples of a vector or sub-byte type, expected uint8, uint16 or float32"
        )
    shape = tuple(int(tensor.shape[i]) for i in range(tensor.ndim))
    itemsize = tensor.type_bits // 8
    strides = _contiguous_strides(shape, itemsize)
    if tensor.strides:
        strides = tuple(int(tensor.strides[i]) * itemsize for i in range(tensor.ndim))
    kind = _DLPACK_KINDS.get(tensor.type_code, "?")
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, strides, kind, itemsize, LEGACY_STREAM, capsule)


def device_array(array: Any) -> Optional[DeviceArray]:
    """What an array on a CUDA device says of itself; None for everything that lies in host memory."""
    interface = getattr(array, "__cuda_array_interface__", None)
    exchanges = hasattr(array, "__dlpack_device__") and hasattr(array, "__dlpack__")
    # Before version 3 (PyTorch's) the interface cannot say on which stream the array is written: DLPack puts that right.
    if interface is not None and (interface.get("version", 0) >= 3 or not exchanges):
        return _from_cuda_array_interface(array)
    if exchanges:
        kind = int(array.__dlpack_device__()[0])
        if kind in (_DLPACK_CUDA, _DLPACK_CUDA_MANAGED):
            return _from_dlpack(array)
        if kind not in (_DLPACK_CPU, _DLPACK_CUDA_PINNED):
            raise ArrayTypeError(f"arrays on DLPack devices of type {kind} cannot be read: only the CPU's and CUDA's")
    return None
