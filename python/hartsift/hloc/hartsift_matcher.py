"""hloc's matcher model: compares every descriptor with every other; ratio test and mutual check are exact."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np
import torch
from hloc.utils.base_model import BaseModel

from hartsift import match


class HartsiftMatcher(BaseModel):  # type: ignore[misc]
    """Works with descriptors of 128 floats from any extractor. A score is 1 minus the ratio of the two distances."""

    default_conf: Dict[str, Any] = {"ratio": 0.8, "mutual": True, "max_distance": 0.0}
    required_inputs = ["descriptors0", "descriptors1"]

    def _init(self, conf: Dict[str, Any]) -> None:
        self.settings = {name: self.conf[name] for name in self.default_conf}

    def _forward(self, data: Dict[str, Any]) -> Dict[str, Any]:
        first, second = (np.ascontiguousarray(data[f"descriptors{i}"][0].T.float().cpu().numpy()) for i in (0, 1))
        found = match(first, second, **self.settings).records
        matches = np.full(len(first), -1, np.int64)
        scores = np.zeros(len(first), np.float32)
        matches[found["first"]] = found["second"]
        # The second distance of a lone candidate is infinite, so its score is 1.
        scores[found["first"]] = 1 - found["distance"] / np.maximum(found["next_distance"], np.finfo(np.float32).tiny)
        return {"matches0": torch.from_numpy(matches)[None], "matching_scores0": torch.from_numpy(scores)[None]}
