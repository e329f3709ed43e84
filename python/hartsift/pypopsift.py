"""The functions of ``pypopsift`` that OpenSfM and OpenDroneMap call for ``feature_type: SIFT_GPU``, with a GPU or without.

They import it as ``opensfm.pypopsift``: a file ``pypopsift.py`` in OpenSfM's folder ``opensfm`` with this line takes the
place of the compiled module.

    from hartsift.pypopsift import *

Works for pictures of any size, also in several processes; without a usable GPU the CPU gives the same bytes, and says so.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, List

import numpy as np

from ._calls import cached_extractor, workspace_bytes
from ._errors import ArgumentError, Error

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["fits_texture", "popsift"]

#: OpenSfM's own search for a threshold ends at this value too.
_LOWEST_THRESHOLD = 0.0001


def fits_texture(width: float, height: float, downsampling: float = -1) -> bool:
    """True if a GPU can extract the features of pictures up to this size. (hartsift does not use textures.)

    Sizes may be floats, for callers that scale them; they are rounded up. NaN and infinity do not fit.

    Args:
        width, height: pixels.
        downsampling: as for ``popsift``.
    """
    if not (math.isfinite(width) and math.isfinite(height)):
        return False
    first_octave = _octave_of(downsampling)
    try:
        workspace_bytes(math.ceil(width), math.ceil(height), device="cuda", first_octave=first_octave)
    except Error:
        return False
    return True


def _octave_of(downsampling: float) -> int:
    if not float(downsampling).is_integer():
        raise ArgumentError(f"downsampling is {downsampling!r}, expected -1, 0 or 1: octaves are whole")
    return int(downsampling)


def popsift(
    image: "npt.NDArray[Any]",
    peak_threshold: float = 0.1,
    edge_threshold: float = 10.0,
    target_num_features: int = 4000,
    use_root: bool = True,
    downsampling: float = -1,
) -> "List[npt.NDArray[np.float32]]":
    """Extracts features with a threshold that is low enough for the requested number, as OpenSfM's other detectors do.

    Args:
        image: uint8 (height, width) or (height, width, 1).
        peak_threshold: first threshold to try, as OpenCV's contrastThreshold. While there are too few features, it is
            multiplied by 2/3.
        edge_threshold: maximum ratio of principal curvatures.
        target_num_features: minimum number of features, if the picture has as many; there may be more.
        use_root: RootSIFT.
        downsampling: -1 doubles the picture first, 0 does not, 1 halves it.

    Returns:
        Keypoints float32 [N, 4] = x, y, sigma, orientation in radians, with sub-pixel positions; and descriptors
        float32 [N, 128] of unit length.
    """
    first_octave = _octave_of(downsampling)
    while True:
        extractor = cached_extractor(
            {
                "contrast": peak_threshold,
                "edge": edge_threshold,
                "norm": "root" if use_root else "l2",
                "first_octave": first_octave,
                "descriptor": "f32",
            }
        )
        if not extractor.backends.get("device", "").startswith("CUDA "):
            warnings.warn("no GPU is used: the features are computed on the CPU, the same bytes", stacklevel=2)
        features = extractor.extract(image)
        if len(features) >= target_num_features or peak_threshold < _LOWEST_THRESHOLD:
            assert features.descriptors is not None
            return [np.array(features.keypoints), np.array(features.descriptors)]
        peak_threshold = peak_threshold * 2 / 3
