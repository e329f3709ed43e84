"""Images of other packages: PIL images (by mode), PyTorch tensors (by order of axes), cv2.UMat, batches."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from ._errors import ArgumentError
from ._opencv import array_of
from ._samples import ValueRange

#: Modes of PIL whose samples are read unchanged. Images of all other modes are converted to RGB first.
_PIL_AS_IS = {"1", "L", "LA", "I", "F", "RGB", "RGBA", "RGBX", "I;16", "I;16L", "I;16B", "I;16N"}
_CHANNELS = (1, 2, 3, 4)


def is_tensor(image: object) -> bool:
    """True for a PyTorch tensor, whose channels come first. PyTorch is not imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(image, torch.Tensor)


def _array_of_pil(image: Any, value_range: Optional[ValueRange]) -> Tuple[Any, Optional[ValueRange]]:
    # PIL converts between "L" and "F" without scaling, so 255 is white in both.
    if image.mode == "F" and value_range is None:
        value_range = (0.0, 255.0)
    if image.mode not in _PIL_AS_IS:
        try:
            image = image.convert("RGB")
        except ValueError as error:
            raise ArgumentError(f"the image has mode {image.mode}, which PIL cannot convert: {error}") from error
    return np.asarray(image), value_range


def channels_last(image: Any) -> Any:
    """Converts a tensor (channels, height, width) to (height, width[, channels]). Other arrays stay unchanged."""
    if image.ndim != 3 or image.shape[0] not in _CHANNELS:
        return image
    return image[0] if image.shape[0] == 1 else image.permute(1, 2, 0)


def _plain_tensor(tensor: Any) -> Any:
    torch: Any = sys.modules["torch"]

    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_floating_point() and tensor.dtype != torch.float32:
        tensor = tensor.float()  # also for bfloat16, which NumPy lacks
    return channels_last(tensor)


def plain_array(image: Any, value_range: Optional[ValueRange]) -> Tuple[Any, Optional[ValueRange]]:
    """An image of another package as an array (height, width[, channels]), and the value range that its kind implies."""
    pil = sys.modules.get("PIL.Image")
    if pil is not None and isinstance(image, pil.Image):
        return _array_of_pil(image, value_range)
    return (_plain_tensor(image) if is_tensor(image) else array_of(image)), value_range


def converted_there(image: Any, dtype: str) -> Any:
    """Converts the samples of an array on a device with the array's package. The result is contiguous."""
    if is_tensor(image):
        return image.to(getattr(sys.modules["torch"], dtype)).contiguous()
    return image.astype(dtype).copy() if hasattr(image, "astype") and hasattr(image, "copy") else None


def contiguous_there(image: Any) -> Any:
    """A contiguous copy of an array on a device, made by the array's package; None: not supported."""
    for name in ("contiguous", "copy"):
        if hasattr(image, name):
            return getattr(image, name)()
    return None


def extremes_there(image: Any) -> Optional[Tuple[float, float]]:
    """Minimum and maximum of an array on a device, computed on the device; None: not supported."""
    if is_tensor(image):
        low, high = image.aminmax()
        return float(low), float(high)
    if hasattr(image, "min") and hasattr(image, "max"):
        return float(image.min()), float(image.max())
    return None


def is_batch(images: Any) -> bool:
    """True for an array that contains several images."""
    return getattr(images, "ndim", 0) == 4


def images_of_batch(images: Any) -> Sequence[Any]:
    """The images of a batch: an array of four dimensions, or any sequence of images.

    PyTorch tensors are (N, channels, height, width) if the second length can be a number of channels (1 to 4), else (N,
    height, width, channels). For arrays of other packages channels are the last dimension if its length can be one,
    else the second.
    """
    if not is_batch(images):
        if isinstance(images, (list, tuple)):
            return images
        raise ArgumentError(
            f"a batch is an array of four dimensions or a list of images, not {type(images).__name__}"
            + (f" of {images.ndim} dimensions" if hasattr(images, "ndim") else "")
            + ("; list(...) of it is a list of gray images" if getattr(images, "ndim", 0) == 3 else "")
        )
    split: List[Any] = [images[i] for i in range(images.shape[0])]
    if is_tensor(images) or images.shape[3] in _CHANNELS or images.shape[1] not in _CHANNELS:
        return split
    return [image[0] if image.shape[0] == 1 else image.transpose(1, 2, 0) for image in split]


def masks_of_batch(masks: Any) -> Sequence[Any]:
    """The masks of a batch: (N, height, width), a batch of one channel, or any sequence of masks."""
    if getattr(masks, "ndim", 0) == 3:
        return [masks[i] for i in range(masks.shape[0])]
    return images_of_batch(masks)
