"""hartsift in hloc's pipelines: an extractor with real scores, and an exact matcher. Needs hloc and its dependencies.

>>> import hartsift.hloc
>>> from hloc import extract_features, match_features, reconstruction
>>> features = extract_features.main(hartsift.hloc.EXTRACT, images, outputs)
>>> matches = match_features.main(hartsift.hloc.MATCH, pairs, hartsift.hloc.EXTRACT["output"], outputs)

After this module is imported, hloc finds both models by their names, ``hartsift_extractor`` and ``hartsift_matcher``.
"""

from __future__ import annotations

from typing import Any, Dict

try:
    import hloc.extractors
    import hloc.matchers
except ModuleNotFoundError as error:
    _missing = f"{error}: hartsift.hloc needs hloc (github.com/cvg/Hierarchical-Localization) and what its setup installs"
    raise ModuleNotFoundError(_missing, name=error.name) from error

__all__ = ["EXTRACT", "MATCH"]

#: A configuration for ``hloc.extract_features.main``; ``model`` accepts every keyword of ``hartsift.Options``.
EXTRACT: Dict[str, Any] = {
    "output": "feats-hartsift",
    "model": {"name": "hartsift_extractor", "max_features": 8192},
    "preprocessing": {"grayscale": True, "resize_max": 1600},
}
#: A configuration for ``hloc.match_features.main``.
MATCH: Dict[str, Any] = {"output": "matches-hartsift", "model": {"name": "hartsift_matcher", "ratio": 0.8}}

# hloc imports hloc.extractors.NAME, and uses the model that is defined in it.
for _package in (hloc.extractors, hloc.matchers):
    if __path__[0] not in _package.__path__:
        _package.__path__.append(__path__[0])
