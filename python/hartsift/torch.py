"""SIFT as modules of PyTorch: a batch of images in, tensors on the same device out. Needs PyTorch.

>>> import hartsift.torch
>>> sift = hartsift.torch.SIFT(max_features=2048, norm="root")
>>> found = sift(images)                           # (B, C, H, W), uint8, or floats from 0 to 1; on the CPU or a GPU
>>> found["keypoints"], found["descriptors"]       # (B, N, 2), (B, N, 128), on the device of the images

The dictionary has the names and conventions of LightGlue and hloc. ``LocalFeature`` has the results of kornia's
modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import numpy as np
import torch

from ._errors import ArgumentError
from ._extractor import Extractor
from ._features import KEYPOINT_DTYPE
from ._foreign import channels_last

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._hints import Options

__all__ = ["LocalFeature", "SIFT"]

#: Number of floats per keypoint: x, y, sigma, orientation, response.
_COLUMNS = 5


class SIFT(torch.nn.Module):  # type: ignore[misc]
    """Exact SIFT of a batch, with keyword arguments of ``hartsift.Options``; descriptors are float32 by default.

    Images on a GPU are read there (uint8 or float32 with one channel in place, others after a conversion on the GPU),
    and the results never leave it: they are copied on the device from the extractor's memory, which the next image
    reuses. ``Extractor.extract_resident`` avoids that copy too. Images on the CPU are processed as by
    ``hartsift.extract``. The bytes are the same on both.

    A module has one extractor for each device that it has used; calls from several threads run one after another. The
    features have no gradient.

    Args:
        options: ``hartsift.Options`` except ``device``.
    """

    def __init__(self, **options: "Unpack[Options]") -> None:
        super().__init__()
        if "device" in options:
            raise ArgumentError("device is that of the images: leave it out")
        self._options: Dict[str, Any] = {"descriptor": "f32", **options}
        self._extractors: Dict[str, Extractor] = {}
        self._copied: Dict[str, Any] = {}  # [device]: event after which the extractor's memory may be overwritten
        self._extractor(torch.device("cpu"))  # refuses wrong options when the module is created

    def forward(self, images: Any, masks: Any = None) -> Dict[str, Any]:
        """Extracts the features of every image.

        Args:
            images: (B, C, H, W) with 1 to 4 channels: uint8, or floats with black at 0 and white at 1.
            masks: (B, 1, H, W) or (B, H, W) of any type; keypoints where it is 0 are dropped.

        Returns:
            Tensors on the images' device, float32 unless another type is given. N is the largest number of features in
            the batch; missing features of an image are 0: ``keypoints`` (B, N, 2): x, y in pixels, the centre of the
            top-left pixel at 0, 0; ``scales`` (B, N): sigma in pixels;
            ``oris`` (B, N): radians from 0 to 2 pi, clockwise on the screen;
            ``keypoint_scores`` (B, N): the response;
            ``descriptors`` (B, N, 128): float32 or uint8, depending on the options; absent with ``descriptor="none"``;
            ``counts`` (B), int64: number of features of each image;
            ``image_size`` (B, 2): width and height.
        """
        if not isinstance(images, torch.Tensor) or images.ndim != 4 or len(images) == 0:
            raise ArgumentError("images must be a tensor (B, C, H, W) with B above 0; image[None] makes one of an image")
        if masks is not None:
            masks = (masks[:, 0] if masks.ndim == 4 else masks) != 0
            if masks.device != images.device or len(masks) != len(images):
                raise ArgumentError("masks must be as many as the images, and on their device")
        with torch.no_grad():
            each = [self._one(image, None if masks is None else masks[i]) for i, image in enumerate(images)]
            return self._joined(each, images)

    def _extractor(self, device: Any) -> Extractor:
        name = str(device)
        if name not in self._extractors:
            self._extractors[name] = Extractor(**{**self._options, "device": name})
        return self._extractors[name]

    def _one(self, image: Any, mask: Any) -> Tuple[Any, Any]:
        """Floats [N, 5] and descriptors [N, 128] (or None) of an image (C, H, W)."""
        value_range = (0.0, 1.0) if image.is_floating_point() else None
        image = channels_last(image)
        extractor = self._extractor(image.device)
        if image.device.type == "cpu":
            features = extractor.extract(image, None if mask is None else mask.numpy(), value_range=value_range)
            records = features.records.view(np.uint8).reshape(len(features), KEYPOINT_DTYPE.itemsize)
            rows = None if features.descriptors is None else torch.from_numpy(features.descriptors)
            return _floats(torch.from_numpy(records)), rows
        with extractor._lock:  # the extractor is locked until the copy is enqueued and no object refers to its memory
            return self._copy(extractor, image, mask, value_range)

    def _copy(self, extractor: Extractor, image: Any, mask: Any, value_range: Any) -> Tuple[Any, Any]:
        """As ``_one``, for an image on a GPU; the results are copied from the extractor's memory."""
        stream = torch.cuda.current_stream(image.device)
        if str(image.device) in self._copied:
            stream.wait_event(self._copied[str(image.device)])
        resident = extractor.extract_resident(image, mask, value_range=value_range)
        floats = _floats(torch.from_dlpack(resident.records)).clone()
        rows = None if resident.descriptors is None else torch.from_dlpack(resident.descriptors).clone()
        self._copied[str(image.device)] = stream.record_event()
        return floats, rows

    def _joined(self, each: List[Tuple[Any, Any]], images: Any) -> Dict[str, Any]:
        floats = _stacked([one for one, _ in each])
        # They are filled element by element on the device, because a copy from the host would wait for it.
        counts, size = images.new_empty(len(each), dtype=torch.int64), images.new_empty((len(each), 2), dtype=torch.float32)
        for i, (one, _) in enumerate(each):
            counts[i] = len(one)
        for i in (0, 1):
            size[:, i] = images.shape[3 - i]
        found = {
            "keypoints": floats[..., :2],
            "scales": floats[..., 2],
            "oris": floats[..., 3],
            "keypoint_scores": floats[..., 4],
            "counts": counts,
            "image_size": size,
        }
        if self._options["descriptor"] != "none":
            found["descriptors"] = _stacked([rows for _, rows in each])
        return found

    def __getstate__(self) -> Dict[str, Any]:
        # copies and unpickled modules create their own contexts
        return {**self.__dict__, "_extractors": {}, "_copied": {}}


def _floats(records: Any) -> Any:
    """The float fields of records, which are given as bytes [N, 24]."""
    return records.view(torch.float32)[:, :_COLUMNS] if len(records) else records.new_zeros((0, _COLUMNS)).float()


def _stacked(rows: List[Any]) -> Any:
    """Stacks arrays [N, K] of the images to (B, N, K), padded with zeros; for a single image without a copy."""
    return rows[0][None] if len(rows) == 1 else torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


class LocalFeature(torch.nn.Module):  # type: ignore[misc]
    """``SIFT`` with the results of kornia's feature modules, for ``kornia.feature.LocalFeatureMatcher``.

    Args:
        mr_size: scale of a frame in units of sigma, as in kornia.
        options: as for ``SIFT``; without ``norm`` descriptors are RootSIFT.
    """

    def __init__(self, mr_size: float = 6.0, **options: "Unpack[Options]") -> None:
        super().__init__()
        self.mr_size = mr_size
        settings: "Options" = {"norm": "root", **options}
        self.sift = SIFT(**settings)

    def forward(self, img: Any, mask: Optional[Any] = None) -> Tuple[Any, Any, Any]:
        """Features of images (B, C, H, W). All images must have the same number of features: use ``max_features``, or
        batches of one.

        Args:
            img: as ``images`` of ``SIFT.forward``.
            mask: as ``masks`` of ``SIFT.forward``; None: no mask.

        Returns:
            Local affine frames (B, N, 2, 3), responses (B, N), descriptors (B, N, 128).
        """
        found = self.sift(img, mask)
        if int(found["counts"].min()) != found["keypoints"].shape[1]:
            raise ArgumentError(
                f"the images have {found['counts'].tolist()} features, and frames cannot be padded: give one image at a "
                "time, or max_features that all of them reach"
            )
        cos, sin = found["oris"].cos(), found["oris"].sin()
        turned = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
        shapes = turned * (self.mr_size * found["scales"])[..., None, None]
        lafs = torch.cat([shapes, found["keypoints"].unsqueeze(-1)], -1)
        return lafs, found["keypoint_scores"], found["descriptors"]
