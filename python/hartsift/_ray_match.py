"""Matching on a Ray cluster: pairs are grouped by blocks of images, so that each image's descriptors are transferred few
times."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import ray
import ray.data

from ._arrow import iterate_features
from ._errors import ArgumentError
from ._extractor import Extractor
from ._features import Features
from ._matching import Model
from ._merge import find_files
from ._names import name_of_text, text_of_name
from ._pair_lists import MatchSettings, Pair, PairsLike, match_named_pairs, select_pairs, selection_of
from ._ray_extract import actors
from ._retrieval import Retrieval
from ._sources import at

if TYPE_CHECKING:
    import numpy.typing as npt

_FACTS = ["image", "features", "latitude", "longitude"]
_PLACE = ["latitude", "longitude"]
_COLUMNS = [*_FACTS, "width", "height", "x", "y", "sigma", "orientation", "descriptors", "method", "options"]
_BLOCKS_KEPT = 4
_SAMPLE_BLOCKS = 16  # number of blocks of 64 images, from which retrieval is trained
_SHORTLIST_FEATURES = 512  # as HS_SHORTLIST_FEATURES in hartsift_retrieval.h
_TASK_SCHEMA = pa.schema(
    [
        ("block_a", pa.int64()),
        ("block_b", pa.int64()),
        ("names_a", pa.list_(pa.string())),
        ("names_b", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True)
class FileBlock:
    """Features in row groups of Parquet files.

    Attributes:
        groups: file system, path and number of each row group.
    """

    groups: Tuple[Tuple[Any, str, int], ...]

    def read(self) -> pa.Table:
        """Reads the rows, without columns that matching does not need."""
        tables = []
        for system, path, group in self.groups:
            with system.open_input_file(at(system, path)) as file:
                tables.append(pq.ParquetFile(file).read_row_group(group, columns=_COLUMNS))
        return pa.concat_tables(tables)


def _facts_of_block(block: pa.Table) -> pa.Table:
    return block.select(_FACTS).combine_chunks()


def _blocks_of_files(files: List[Tuple[Any, str]], least: int) -> Tuple[List[FileBlock], List[pa.Table]]:
    """Combines row groups in the order of files, so that each block except the last has at least ``least`` images. Also
    returns names and positions of the images of each block."""
    blocks: List[FileBlock] = []
    facts: List[pa.Table] = []
    groups: List[Tuple[Any, str, int]] = []
    some: List[pa.Table] = []

    def close() -> None:
        if groups:
            blocks.append(FileBlock(tuple(groups)))
            facts.append(pa.concat_tables(some))
            groups.clear()
            some.clear()

    for system, path in files:
        with system.open_input_file(at(system, path)) as file:
            opened = pq.ParquetFile(file)
            for group in range(opened.num_row_groups):
                some.append(opened.read_row_group(group, columns=_FACTS))
                groups.append((system, path, group))
                if sum(map(len, some)) >= least:
                    close()
    close()
    return blocks, facts


class _Blocks:
    """Blocks of features, from files or the object store; the last ones are cached."""

    def __init__(self, blocks: List[Any]) -> None:
        self._blocks = blocks
        self._kept: "OrderedDict[int, Dict[str, Features]]" = OrderedDict()

    def features(self, number: int) -> Dict[str, Features]:
        """The features of a block, by the names of its images."""
        if number not in self._kept:
            block = self._blocks[number]
            rows = iterate_features(block.read() if isinstance(block, FileBlock) else ray.get(block))
            self._kept[number] = {row["image"]: features for row, features in rows if features is not None}
            while len(self._kept) > _BLOCKS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(number)
        return self._kept[number]


class MatchingActor:
    """An actor that matches: reads blocks of features from files or the object store, and caches the last ones."""

    def __init__(self, blocks: List[Any], settings: MatchSettings, device: str, threads: int) -> None:
        self._blocks = _Blocks(blocks)
        self._settings = settings
        self._options = {"device": device, "threads": threads}

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Matches the pairs of one task, or of several."""
        return pa.concat_tables([self._match(task) for task in batch.to_pylist()])

    def _match(self, task: Dict[str, Any]) -> pa.Table:
        features: Dict[str, Features] = {}
        for number in (task["block_a"], task["block_b"]):
            if number >= 0:
                features.update(self._blocks.features(number))
        pairs = list(zip(map(name_of_text, task["names_a"]), map(name_of_text, task["names_b"])))
        return match_named_pairs(features, pairs, self._settings, **self._options)


def _largest_descriptors(features: Features) -> "npt.NDArray[Any]":
    """Descriptors of the features with the largest scale, which ``hartsift.matching_pairs`` compares."""
    if features.descriptors is None:
        return np.zeros((0, 128), np.uint8)
    scales = np.where(np.isnan(features.sigmas), -np.inf, features.sigmas)
    return features.descriptors[np.argsort(-scales, kind="stable")[:_SHORTLIST_FEATURES]]


class DescribingActor:
    """An actor that describes images for retrieval: vectors, and descriptors of the largest features. All actors are
    trained with the same images, so their vectors are equal."""

    def __init__(self, blocks: List[Any], sampled: List[int], device: str, threads: int) -> None:
        self._blocks = _Blocks(blocks)
        self._extractor = Extractor(device=device, threads=threads)
        sample = (one for number in sampled for one in self._blocks.features(number).values())
        self._retrieval = Retrieval().train(sample, extractor=self._extractor)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Names, vectors and descriptors of the images of some blocks."""
        names: List[str] = []
        arrays: List[Tuple[bytes, bytes, str]] = []
        for number in batch["block"].to_pylist():
            for name, features in self._blocks.features(number).items():
                largest = _largest_descriptors(features)
                vector = self._retrieval.describe(features, extractor=self._extractor)
                names.append(text_of_name(name))
                arrays.append((vector.tobytes(), largest.tobytes(), largest.dtype.str))
        columns = list(zip(*arrays)) or [(), (), ()]
        types = [pa.binary(), pa.binary(), pa.string()]
        found = {name: pa.array(column, kind) for name, column, kind in zip(("vector", "largest", "type"), columns, types)}
        return pa.table({"image": pa.array(names, pa.string()), **found})


def _described(
    blocks: List[Any], facts: List[pa.Table], names: List[str], work: Dict[str, Any], pool: Dict[str, Any]
) -> "Tuple[npt.NDArray[np.int8], List[npt.NDArray[Any]]]":
    """Vectors int8 [N, length] and the descriptors of the largest features of each image. The driver holds all of them,
    72 KB per image with descriptors of bytes."""
    filled = [number for number, some in enumerate(facts) if any(some["features"].to_pylist())]
    if not filled:
        raise ArgumentError("no image has features, so similar images cannot be found")
    sampled = filled[:: max(1, len(filled) // _SAMPLE_BLOCKS)]
    numbers = [pa.table({"block": [number]}) for number in range(len(blocks))]
    rows_of_images = ray.data.from_arrow(numbers).map_batches(
        DescribingActor,
        fn_constructor_kwargs={"blocks": blocks, "sampled": sampled, **work},
        batch_size=1,
        batch_format="pyarrow",
        **pool,
    )
    found = {name_of_text(row["image"]): row for row in rows_of_images.take_all()}
    length = len(next(iter(found.values()))["vector"])
    nothing = {"vector": bytes(length), "largest": b"", "type": "|u1"}
    rows = [found.get(name, nothing) for name in names]
    vectors = np.stack([np.frombuffer(row["vector"], np.int8) for row in rows])
    return vectors, [np.frombuffer(row["largest"], row["type"]).reshape(-1, 128) for row in rows]


def _tasks(pairs: Iterable[Pair], block_of: Dict[str, int], most: int) -> List[pa.Table]:
    """Groups the pairs of the same two blocks, at most ``most`` per task. Consecutive tasks share a block."""
    groups: Dict[Tuple[int, int], List[Pair]] = {}
    for a, b in pairs:
        groups.setdefault((block_of.get(a, -1), block_of.get(b, -1)), []).append((a, b))
    tasks = []
    for (block_a, block_b), group in sorted(groups.items()):
        for first in range(0, len(group), most):
            names_a, names_b = zip(*((text_of_name(a), text_of_name(b)) for a, b in group[first : first + most]))
            columns = [[block_a], [block_b], [list(names_a)], [list(names_b)]]
            tasks.append(pa.table([pa.array(one, field.type) for one, field in zip(columns, _TASK_SCHEMA)], _TASK_SCHEMA))
    return tasks


def _degrees(column: pa.ChunkedArray) -> List[float]:
    return [float("nan") if value is None else value for value in column.to_pylist()]


def match_pairs(
    features: "Union[str, os.PathLike[str], List[str], ray.data.Dataset]",
    pairs: PairsLike,
    *,
    model: Optional[Model] = "fundamental",
    ratio: float = 0.8,
    mutual: bool = True,
    max_distance: float = 0.0,
    tolerance: float = 4.0,
    num_cpus: float = 1,
    num_gpus: float = 0,
    concurrency: Optional[int] = None,
    images_per_block: int = 64,
    pairs_per_task: int = 512,
    filesystem: Any = None,
    ray_remote_args: Optional[Dict[str, Any]] = None,
) -> "ray.data.Dataset":
    """Matches pairs of images on the cluster and verifies the matches.

    Features are transferred in blocks of many images: row groups of the files, or blocks of the Dataset in Ray's object
    store. A task consists of the pairs of two blocks; consecutive tasks share a block, and actors cache the last
    blocks. So an image's descriptors are read about once for each block with which it has pairs, not once for each
    pair.

    Args:
        features: a Dataset of ``extract``, or Parquet files of one.
        pairs: ``"all"``; ``"sequential:K"``: each image and the K after it in the natural order of names;
            ``"spatial:M"``: images at most M metres apart by GPS; ``"retrieval:K"``: each image and the K most similar
            ones (``hartsift.Retrieval``) by their matches (``hartsift.matching_pairs``, on the driver); a file with two
            names per line, or the pairs of names themselves. A pair with an image that has no features gives a row with
            its error. Rules choose only among images that did not fail, as ``hartsift match --database`` does.
        model: ``"fundamental"`` or ``"homography"``; None: matches are not verified.
        ratio, mutual, max_distance: as for ``hartsift.match``.
        tolerance: maximum error of an inlier, pixels.
        num_cpus, num_gpus, concurrency, ray_remote_args: for the actors, as for ``extract``.
        images_per_block: minimum number of images whose features are transferred together; a Dataset keeps its own
            blocks.
        pairs_per_task: maximum number of pairs that an actor gets at once; they are repeated if it is lost.
        filesystem: pyarrow's file system of the files.

    Returns:
        A row for each pair (FORMATS.md, "Parquet"), in no defined order.
    """
    settings = MatchSettings(model, ratio, mutual, max_distance, tolerance)
    settings.check()
    if images_per_block < 1 or pairs_per_task < 1:
        raise ArgumentError(f"images_per_block is {images_per_block}, pairs_per_task {pairs_per_task}: expected 1 or more")
    rule = selection_of(pairs)[0]
    if not rule:
        # wrong pairs are refused before the features of a dataset are computed
        pairs = list(select_pairs((), pairs))
        if not pairs:
            raise ArgumentError("there are no pairs to match")
    if isinstance(features, ray.data.Dataset):
        blocks: List[Any] = features.select_columns(_COLUMNS).materialize().to_arrow_refs()
        facts_of = ray.remote(_facts_of_block)
        facts = ray.get([facts_of.remote(block) for block in blocks])
    else:
        blocks, facts = _blocks_of_files(find_files(features, filesystem), images_per_block)
    work = {"device": "cuda" if num_gpus else "cpu", "threads": max(1, int(num_cpus))}
    pool = {**actors(concurrency, num_cpus, num_gpus), **(ray_remote_args or {})}
    facts = [some.filter(pc.is_valid(some["features"])) for some in facts]
    block_of = {name_of_text(name): number for number, some in enumerate(facts) for name in some["image"].to_pylist()}
    names = list(block_of)
    described = _described(blocks, facts, names, work, pool) if rule == "retrieval" else None
    places = [one for some in facts for one in zip(*(_degrees(some[name]) for name in _PLACE))]
    tasks = _tasks(select_pairs(names, pairs, places, described), block_of, pairs_per_task)
    if not tasks:
        raise ArgumentError("there are no pairs to match")
    return ray.data.from_arrow(tasks).map_batches(
        MatchingActor,
        fn_constructor_kwargs={"blocks": blocks, "settings": settings, **work},
        batch_size=1,
        batch_format="pyarrow",
        **pool,
    )

