"""DLPack's C interface with ctypes, as in dlpack.h 1.0: exports tensors to other packages, and reads their tensors."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, Tuple

CPU, CUDA, CUDA_PINNED, CUDA_MANAGED = 1, 2, 3, 13
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
#: NumPy's letters for DLPack's types of samples.
KINDS = {code: kind for kind, code in _CODES.items()}


class DlTensor(ctypes.Structure):
    """DLTensor"""

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


class _Managed(ctypes.Structure):
    """DLManagedTensor"""

    _fields_ = [("tensor", DlTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    """DLManagedTensorVersioned; the flags lack the read-only bit, because PyTorch refuses it"""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", DlTensor),
    ]


#: Objects that borrowed tensors keep alive, by the address of the managed tensor. The consumer passes that address to
#: the deleter.
_borrowed: Dict[int, Tuple[Any, ...]] = {}

_NAME, _NAME_VERSIONED = b"dltensor", b"dltensor_versioned"
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


# Both functions may run at the end of the interpreter, when the names of this module no longer exist, so they use only
# bound arguments.
def _give_back(address: int, borrowed: Dict[int, Tuple[Any, ...]] = _borrowed) -> None:
    borrowed.pop(address, None)


def _free_capsule(
    capsule: int,  # an address, because the object is being freed
    borrowed: Dict[int, Tuple[Any, ...]] = _borrowed,
    names: Tuple[bytes, ...] = (_NAME, _NAME_VERSIONED),
    is_valid: Any = _is_valid,
    pointer_of: Any = _pointer_of,
) -> None:
    # A consumer renames the capsule and calls the deleter itself; a capsule that still has its first name was not
    # consumed.
    for name in names:
        if is_valid(capsule, name):
            borrowed.pop(pointer_of(capsule, name), None)


_delete = ctypes.CFUNCTYPE(None, c_void_p)(_give_back)
_drop_capsule = ctypes.CFUNCTYPE(None, c_void_p)(_free_capsule)
for _kept in (_delete, _drop_capsule, _NAME, _NAME_VERSIONED):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_kept))  # consumers may use the addresses until the end of the process


def lend(
    owner: object,
    pointer: int,
    shape: Tuple[int, ...],
    strides: Tuple[int, ...],
    sample: Tuple[str, int],
    device: Tuple[int, int],
    versioned: bool,
) -> object:
    """A capsule for memory of `owner`, which is kept alive until the consumer of the capsule frees it, or the unused
    capsule is freed.

    Args:
        strides: in samples.
        sample: NumPy's letter of the type, and bytes per sample.
        device: type and number, as ``__dlpack_device__`` gives them.
        versioned: "dltensor_versioned" (DLPack 1.0) instead of "dltensor".
    """
    lengths, steps = (c_int64 * len(shape))(*shape), (c_int64 * len(shape))(*strides)
    managed = _ManagedVersioned(major=1, minor=0) if versioned else _Managed()
    managed.deleter = ctypes.cast(_delete, c_void_p).value
    tensor = managed.tensor
    tensor.data, tensor.ndim = pointer, len(shape)
    tensor.device_type, tensor.device_id = device
    tensor.type_code, tensor.type_bits, tensor.type_lanes = _CODES[sample[0]], 8 * sample[1], 1
    tensor.shape, tensor.strides = ctypes.cast(lengths, POINTER(c_int64)), ctypes.cast(steps, POINTER(c_int64))
    address = ctypes.addressof(managed)
    _borrowed[address] = (managed, lengths, steps, owner)
    try:
        return _new(address, _NAME_VERSIONED if versioned else _NAME, ctypes.cast(_drop_capsule, c_void_p))
    except BaseException:
        del _borrowed[address]
        raise


def tensor_of(capsule: object) -> DlTensor:
    """The tensor in another package's capsule. The capsule is not consumed, and still frees the tensor."""
    address = id(capsule)
    if _is_valid(address, _NAME_VERSIONED):
        managed = _ManagedVersioned.from_address(_pointer_of(address, _NAME_VERSIONED))
        if managed.major != 1:
            raise BufferError(f"a DLPack capsule of version {managed.major}.{managed.minor}, expected 1")
        versioned: DlTensor = managed.tensor
        return versioned
    plain: DlTensor = _Managed.from_address(_pointer_of(address, _NAME)).tensor
    return plain


def check_stream(stream: Any) -> None:
    """Refuses streams that the protocol forbids, such as 0, which is ambiguous."""
    if stream is not None and (not isinstance(stream, int) or stream < -1 or stream == 0):
        raise ValueError(
            f"stream is {stream!r}, expected None, -1 (no waiting), 1 (legacy default), 2 (per thread) or an address"
        )
