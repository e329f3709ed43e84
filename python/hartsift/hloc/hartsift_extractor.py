"""hloc's extractor model: RootSIFT with the response as score, so that the strongest features are kept."""

from __future__ import annotations

from typing import Any, Dict

import torch
from hloc.utils.base_model import BaseModel

from hartsift.torch import SIFT


class HartsiftExtractor(BaseModel):  # type: ignore[misc]
    """Positions refer to the picture as stored, because hloc reads photographs without their EXIF orientation."""

    default_conf: Dict[str, Any] = {"norm": "root", "max_features": 8192, "selection": "response"}
    required_inputs = ["image"]
    detection_noise = 1.0

    def _init(self, conf: Dict[str, Any]) -> None:
        self.sift = SIFT(**{name: value for name, value in conf.items() if name != "name"})

    def _forward(self, data: Dict[str, Any]) -> Dict[str, Any]:
        found = self.sift(data["image"])
        return {
            "keypoints": found["keypoints"],
            "scales": found["scales"],
            "oris": torch.rad2deg(found["oris"]),
            "scores": found["keypoint_scores"],
            "descriptors": found["descriptors"].transpose(1, 2),
        }
