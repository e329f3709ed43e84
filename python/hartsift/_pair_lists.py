"""Pairs of images by name: their selection, and their results as rows of an Arrow table."""

from __future__ import annotations

import itertools
import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import pyarrow as pa

from ._errors import ArgumentError, Error, FileError, reason_of
from ._features import Features
from ._library import METHOD_VERSION
from ._matching import Geometry, Model
from ._names import printable, text_of_name
from ._pairs import PairMatches, match_many, matching_pairs, shortlist_length
from ._retrieval import LATITUDE_MAX, LONGITUDE_MAX, blend_similar, earth_places, nearby_pairs, sequential_pairs, similar_pairs

if TYPE_CHECKING:
    import numpy.typing as npt

Pair = Tuple[str, str]
PairsLike = Union[str, "os.PathLike[str]", Iterable[Pair]]
_MODELS = ("homography", "fundamental")

#: Columns of a table of matches, see FORMATS.md.
MATCH_SCHEMA = pa.schema(
    [
        pa.field("image_a", pa.string(), nullable=False),
        pa.field("image_b", pa.string(), nullable=False),
        ("matches", pa.int64()),
        ("inliers", pa.int64()),
        ("index_a", pa.list_(pa.uint32())),
        ("index_b", pa.list_(pa.uint32())),
        ("distance", pa.list_(pa.float32())),
        ("inlier", pa.list_(pa.bool_())),
        ("model", pa.string()),
        ("found", pa.bool_()),
        ("matrix", pa.list_(pa.float64())),
        ("rms_error", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
        ("error", pa.string()),
        pa.field("method", pa.int32(), nullable=False),
        pa.field("options", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True)
class MatchSettings:
    """Settings of matching and verification.

    Attributes:
        model: ``"fundamental"`` or ``"homography"``; None: matches are not verified.
        ratio, mutual, max_distance: as for ``hartsift.match``.
        tolerance: maximum error of an inlier, pixels.
    """

    model: Optional[Model] = "fundamental"
    ratio: float = 0.8
    mutual: bool = True
    max_distance: float = 0.0
    tolerance: float = 4.0

    def check(self) -> None:
        """Refuses invalid settings."""
        if self.model is not None and self.model not in _MODELS:
            raise ArgumentError(f"model is {self.model!r}, expected {' or '.join(map(repr, _MODELS))} or None")

    def text(self) -> str:
        """All settings on which results depend, as JSON with sorted names."""
        return json.dumps(vars(self), sort_keys=True)


def selection_of(pairs: PairsLike) -> Tuple[str, int]:
    """The rule that selects pairs (``"all"``, ``"sequential"``, ``"spatial"``, ``"retrieval"``, or ``""`` for given
    pairs), and its number."""
    found = re.fullmatch(r"(all)|(sequential|spatial|retrieval):([1-9][0-9]{0,9})", pairs) if isinstance(pairs, str) else None
    if found is None or int(found.group(3) or 0) >= 1 << 32:
        return "", 0
    return ("all", 0) if found.group(1) else (found.group(2), int(found.group(3)))


def select_pairs(
    names: Sequence[str], pairs: PairsLike, places: "Optional[npt.ArrayLike]" = None, described: Any = None
) -> Iterator[Pair]:
    """Pairs of a collection.

    Args:
        names: names of its images.
        pairs: ``"all"``: all; ``"sequential:K"``: each image and the K after it in the natural order of names;
            ``"spatial:M"``: images at most M metres apart; ``"retrieval:K"``: each image and the K most similar ones; a
            file with two names per line (separated by a tab if they contain spaces); or the pairs themselves.
        places: for ``"spatial"``: latitude and longitude of each image in degrees, [N, 2]; NaN: unknown.
        described: for ``"retrieval"``: vectors of ``hartsift.Retrieval``, int8 [N, length], and a list with the features of
            each image as for ``hartsift.matching_pairs``.
    """
    rule, number = selection_of(pairs)
    if rule == "all":
        yield from itertools.combinations(sorted(names, key=os.fsencode), 2)
    elif rule:
        if rule == "sequential":
            chosen = sequential_pairs(names, number)
        elif rule == "spatial":
            degrees = np.array(places, np.float64).reshape(len(names), 2)
            # An image with an impossible position gets no neighbours; the other images are not affected.
            degrees[~(np.abs(degrees) <= [LATITUDE_MAX, LONGITUDE_MAX]).all(1)] = np.nan
            chosen = nearby_pairs(earth_places(degrees[:, 0], degrees[:, 1]), number)
        else:
            vectors, features = described
            candidates = similar_pairs(blend_similar(vectors), shortlist_length(number))
            chosen = matching_pairs(features, candidates, number)
        yield from ((names[a], names[b]) for a, b in chosen.tolist())
    elif isinstance(pairs, (str, os.PathLike)):
        yield from _pairs_of_file(os.fspath(pairs))
    else:
        yield from ((str(a), str(b)) for a, b in pairs)


def _pairs_of_file(path: str) -> Iterator[Pair]:
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = [line.rstrip("\r\n") for line in file]
            if lines and lines[0].startswith(("\udcff\udcfe", "\udcfe\udcff")):
                raise ArgumentError(f"{path}: is in UTF-16: expected UTF-8, with two names a line")
    except OSError as error:
        # A text with a colon is probably a misspelt rule.
        kind = ArgumentError if ":" in path and isinstance(error, FileNotFoundError) else FileError
        raise kind(
            f"{path}: {error.strerror}: expected 'all', 'sequential:K', 'spatial:M', 'retrieval:K' or a file "
            "with two names a line"
        ) from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t") if "\t" in line else line.split()
        if len(parts) != 2:
            raise ArgumentError(f"{path}:{number}: {len(parts)} names, expected two, with a tab between if they have spaces")
        yield parts[0], parts[1]


def match_named_pairs(
    features: Mapping[str, Features], pairs: Sequence[Pair], settings: MatchSettings, **options: Any
) -> pa.Table:
    """A table with a row for each pair, in order: its matches and their geometry. options: as for
    ``hartsift.match_many``."""
    places = {name: place for place, name in enumerate(features)}
    known = [(places[a], places[b]) for a, b in pairs if a in places and b in places]
    outcomes = _outcomes(list(features.values()), known, settings, options)
    rows: List[Dict[str, Any]] = []
    for name_a, name_b in pairs:
        missing = [name for name in (name_a, name_b) if name not in places]
        found = ArgumentError(f"there are no features of {missing[0]}") if missing else next(outcomes)
        row: Dict[str, Any] = {"image_a": text_of_name(name_a), "image_b": text_of_name(name_b), "status": "HS_OK"}
        if isinstance(found, Error):
            row.update(status=found.name or "HS_ERR_ARGUMENT", error=printable(str(found)))
        else:
            row.update(_row_of(found))
        method = METHOD_VERSION if missing else _method_of(features[name_a], features[name_b])
        rows.append({**row, "method": method, "options": settings.text()})
    return pa.Table.from_pylist(rows, MATCH_SCHEMA)


def _method_of(*pair: Features) -> int:
    """The newest method version of the features, the library's if unknown."""
    return max((one.origin.method_version for one in pair if one.origin is not None), default=METHOD_VERSION)


def _outcomes(
    features: List[Features], pairs: List[Tuple[int, int]], settings: MatchSettings, options: Mapping[str, Any]
) -> "Iterator[Union[PairMatches, Error]]":
    """Yields the results of the pairs. If a pair fails, the run is started again with the pairs after it."""
    done = 0
    while done < len(pairs):
        try:
            for found in match_many(
                features,
                pairs[done:],
                ratio=settings.ratio,
                mutual=settings.mutual,
                max_distance=settings.max_distance,
                verify=settings.model,
                verify_options=None if settings.model is None else {"tolerance": settings.tolerance},
                **options,
            ):
                done += 1
                yield found
        except Exception as error:  # the failure of a pair must not end the others
            done += 1
            yield reason_of(error)


def _row_of(found: PairMatches) -> Dict[str, Any]:
    matches, geometry = found.matches, found.geometry
    row: Dict[str, Any] = {
        "matches": len(matches),
        "index_a": matches.first,
        "index_b": matches.second,
        "distance": matches.distances,
    }
    if geometry is not None:
        row.update(
            inliers=geometry.inlier_count,
            inlier=geometry.inliers,
            model=geometry.model,
            found=geometry.found,
            matrix=geometry.matrix.reshape(9),
            rms_error=geometry.rms_error,
        )
    return row


def geometry_of_row(row: Mapping[str, Any]) -> Tuple["npt.NDArray[Any]", List[Geometry]]:
    """Index pairs [M, 2] of a row of matches, and its geometry if the matches were verified."""
    pairs = np.stack([np.asarray(row["index_a"], np.uint32), np.asarray(row["index_b"], np.uint32)], 1)
    if row["model"] is None:
        return pairs, []
    inliers = np.asarray(row["inlier"], np.bool_)
    matrix = np.asarray(row["matrix"], np.float64).reshape(3, 3)
    return pairs, [Geometry(row["model"], row["found"], matrix, inliers, row["inliers"], row["rms_error"], 0, 0)]
