"""Arrays in the memory of a CUDA device: reads __cuda_array_interface__ and DLPack without any CUDA package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from ._dlpack import CPU, CUDA, CUDA_MANAGED, CUDA_PINNED, KINDS, tensor_of
from ._errors import ArgumentError, ArrayTypeError

#: NumPy's letters for PyTorch's types of samples, by their names and, once met, by the types themselves.
_TENSOR_KINDS: Dict[Any, str] = {"uint8": "u", "uint16": "u", "float32": "f", "float64": "f", "bool": "b"}
#: Number of the legacy default stream, in CUDA and in both protocols.
LEGACY_STREAM = 1


@dataclass
class DeviceArray:
    """Address, shape and type of an array on a device."""

    pointer: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # bytes
    kind: str  # NumPy's letter: "u", "f", "b", ...
    itemsize: int
    stream: Optional[int]  # the content is complete in the order of this stream; None: it is already complete
    owner: object  # keeps the memory alive
    device: Optional[int] = None  # number of the device; None: unknown


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
    # Before version 3 the protocol has no stream, so the default stream is waited for.
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


def _from_dlpack(array: Any) -> DeviceArray:
    try:
        capsule = array.__dlpack__(stream=LEGACY_STREAM, max_version=(1, 0))
    except TypeError:  # the package does not know versions of DLPack
        capsule = array.__dlpack__(stream=LEGACY_STREAM)
    tensor = tensor_of(capsule)
    if tensor.type_lanes != 1 or tensor.type_bits % 8 != 0:
        raise ArrayTypeError(
            "an array on a device has samples of a vector or sub-byte type, expected uint8, uint16 or float32"
        )
    shape = tuple(int(tensor.shape[i]) for i in range(tensor.ndim))
    itemsize = tensor.type_bits // 8
    strides = _contiguous_strides(shape, itemsize)
    if tensor.strides:
        strides = tuple(int(tensor.strides[i]) * itemsize for i in range(tensor.ndim))
    kind = KINDS.get(tensor.type_code, "?")
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, strides, kind, itemsize, LEGACY_STREAM, capsule)


def _from_tensor(tensor: Any) -> Optional[DeviceArray]:
    """Describes a dense CUDA tensor of PyTorch from its attributes, in a tenth of DLPack's time; None for others."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
        return None
    kind = _TENSOR_KINDS.get(tensor.dtype)
    if kind is None:
        kind = _TENSOR_KINDS.get(str(tensor.dtype)[6:])  # the name after "torch."
        if kind is not None:
            _TENSOR_KINDS[tensor.dtype] = kind
    if kind is None or tensor.layout is not torch.strided or tensor.requires_grad or tensor.is_neg():
        return None
    itemsize = tensor.element_size()
    number = tensor.get_device()
    # PyTorch's stream 0 is the legacy default stream. The raw number takes a tenth of the time of a stream object.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    current = raw(number) if raw is not None else torch.cuda.current_stream(number).cuda_stream
    strides = tuple([step * itemsize for step in tensor.stride()])
    return DeviceArray(
        tensor.data_ptr(), tuple(tensor.shape), strides, kind, itemsize, current or LEGACY_STREAM, tensor, number
    )


def device_array(array: Any) -> Optional[DeviceArray]:
    """Describes an array on a CUDA device; None for host memory."""
    tensor = _from_tensor(array)
    if tensor is not None:
        return tensor
    interface = getattr(array, "__cuda_array_interface__", None)
    exchanges = hasattr(array, "__dlpack_device__") and hasattr(array, "__dlpack__")
    # Before version 3 (which PyTorch has) the interface does not name the stream on which the array is written, but
    # DLPack does.
    if interface is not None and (interface.get("version", 0) >= 3 or not exchanges):
        return _from_cuda_array_interface(array)
    if exchanges:
        kind = int(array.__dlpack_device__()[0])
        if kind in (CUDA, CUDA_MANAGED):
            return _from_dlpack(array)
        if kind not in (CPU, CUDA_PINNED):
            raise ArrayTypeError(f"arrays on DLPack devices of type {kind} cannot be read: only the CPU's and CUDA's")
    return None
