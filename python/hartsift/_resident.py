"""Features that stay in the memory of a CUDA device, and their use by other packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

import numpy as np

from . import _dlpack, _library
from ._errors import ArgumentError
from ._features import DESCRIPTOR_DTYPES, KEYPOINT_DTYPE
from ._library import DESCRIPTOR_LENGTH
from ._structures import HsCudaFeatures

if TYPE_CHECKING:
    from ._extractor import Extractor


class DeviceMemory:
    """An array that an extractor left on its device. ``torch.as_tensor``, ``torch.from_dlpack``, ``cupy.asarray`` and
    all other functions that support ``__cuda_array_interface__`` or DLPack use it without a copy. It may be written to.

    The memory belongs to the extractor's context, and lives as long as any object made from it. While such an object is
    in use, the extractor's next call is refused, because it would overwrite the memory. To read the interface after
    that call is an error.

    Attributes:
        shape: lengths.
        strides: bytes.
        dtype: NumPy's.
    """

    def __init__(
        self,
        result: "DeviceFeatures",
        address: int,
        shape: Tuple[int, ...],
        dtype: Any,
        row_bytes: Optional[int] = None,
    ) -> None:
        self._result = result
        self._address = address
        self.shape = shape
        self.dtype = np.dtype(dtype)
        steps = [self.dtype.itemsize]
        for length in shape[:0:-1]:
            steps.insert(0, steps[0] * length)
        self._contiguous = row_bytes is None
        self.strides: Tuple[int, ...] = (steps[0] if row_bytes is None else row_bytes, *steps[1:])

    def _borrow(self) -> None:
        """Marks this memory as in use for as long as this object lives."""
        extractor = self._result._extractor
        if extractor._call_number != self._result._call:
            raise ArgumentError("the extractor was called again, so these arrays on the device are no longer valid")
        extractor._borrowed.add(self)

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        self._borrow()
        return {
            "version": 3,
            "data": (self._address, False),
            "shape": self.shape,
            "strides": None if self._contiguous else self.strides,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "stream": None,  # the content is complete
        }

    def __dlpack_device__(self) -> Tuple[int, int]:
        """Type and number of the device in DLPack: (2, N) is CUDA device N."""
        return _dlpack.CUDA, self._result.device

    def __dlpack__(
        self,
        *,
        stream: Optional[int] = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> object:
        """A DLPack capsule, of version 1 if ``max_version`` allows it. The content is complete, so no stream has to
        wait. Raises ``BufferError`` if another device or a copy is requested."""
        _dlpack.check_stream(stream)
        if copy:
            raise BufferError("hartsift makes no copies on a device: take the array and copy it there (clone, copy)")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(
                f"the array lies on CUDA device {self._result.device}; hartsift.extract gives host arrays"
            )
        self._borrow()
        itemsize = self.dtype.itemsize
        steps = tuple(step // itemsize for step in self.strides)
        versioned = max_version is not None and max_version[0] >= 1
        sample = self.dtype.kind, itemsize
        return _dlpack.lend(self, self._address, self.shape, steps, sample, self.__dlpack_device__(), versioned)

    def __repr__(self) -> str:
        return f"<hartsift.DeviceMemory: {self.dtype} {self.shape} on CUDA device {self._result.device}>"


class DeviceFeatures:
    """Features in the memory of a device, valid until the extractor's next call.

    Attributes:
        image_size: (width, height).
        device: the number of the CUDA device.
    """

    def __init__(self, extractor: "Extractor", view: HsCudaFeatures) -> None:
        self._extractor = extractor
        self._context = extractor._context  # the context frees the memory when no object refers to it
        self._call = extractor._call_number
        self._view = view
        self.image_size: Tuple[int, int] = (view.image_width, view.image_height)
        self.device = extractor._device_number()

    @property
    def records(self) -> DeviceMemory:
        """Bytes uint8 [N, 24]. On the host, view them as ``KEYPOINT_DTYPE``."""
        return DeviceMemory(self, self._view.keypoints or 0, (len(self), KEYPOINT_DTYPE.itemsize), np.uint8)

    @property
    def keypoints(self) -> DeviceMemory:
        """float32 [N, 4] = x, y, sigma, orientation; rows are 24 bytes apart."""
        return DeviceMemory(self, self._view.keypoints or 0, (len(self), 4), np.float32, KEYPOINT_DTYPE.itemsize)

    @property
    def descriptors(self) -> Optional[DeviceMemory]:
        """uint8 or float32 [N, 128], or None."""
        kind = self._view.descriptor_type
        if kind == _library.HS_DESCRIPTOR_NONE:
            return None
        return DeviceMemory(self, self._view.descriptors or 0, (len(self), DESCRIPTOR_LENGTH), DESCRIPTOR_DTYPES[kind])

    @property
    def frames(self) -> Optional[DeviceMemory]:
        """Frames float32 [N, 2, 2] for the option affine, as ``Features.frames``; else None."""
        if not self._view.frames:
            return None
        return DeviceMemory(self, self._view.frames, (len(self), 2, 2), np.float32)

    def __len__(self) -> int:
        return int(self._view.count)

    def __repr__(self) -> str:
        return f"<hartsift.DeviceFeatures: {len(self)} on CUDA device {self.device}>"
