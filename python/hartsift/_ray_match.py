"""Matching on a Ray cluster: pairs in blocks, so that each image's descriptors travel few times."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import pyarrow as pa
import pyarrow.parquet as pq
import ray
import ray.data

from ._arrow import iterate_features
from ._errors import ArgumentError
from ._extractor import Extractor
from ._features import Features
from ._merge import find_files
from ._pair_lists import MatchSettings, Pair, PairsLike, match_named_pairs, select_pairs
from ._ray_extract import pool_of_actors

_COLUMNS = ["image", "width", "height", "x", "y", "sigma", "orientation", "descriptors", "options"]
_BLOCKS_KEPT = 4
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
    """Features that lie in row groups of Parquet files.

    Attributes:
        groups: file system, path and number of each row group.
    """

    groups: Tuple[Tuple[Any, str, int], ...]

    def read(self) -> pa.Table:
        """The rows, without the columns that matching does not need."""
        tables = []
        for system, path, group in self.groups:
            with system.open_input_file(path) as file:
                tables.append(pq.ParquetFile(file).read_row_group(group, columns=_COLUMNS))
        return pa.concat_tables(tables)


def _names_of_block(block: pa.Table) -> List[str]:
    names: List[str] = block.column("image").to_pylist()
    return names


def _blocks_of_files(files: List[Tuple[Any, str]], least: int) -> Tuple[List[FileBlock], List[List[str]]]:
    """Row groups in the order of files, so many together that each block but the last has at least so many images; and
    the names of each block's images."""
    blocks: List[FileBlock] = []
    names: List[List[str]] = []
    groups: List[Tuple[Any, str, int]] = []
    some: List[str] = []
    for system, path in files:
        with system.open_input_file(path) as file:
            opened = pq.ParquetFile(file)
            for group in range(opened.num_row_groups):
                some += opened.read_row_group(group, columns=["image"])["image"].to_pylist()
                groups.append((system, path, group))
                if len(some) >= least:
                    blocks.append(FileBlock(tuple(groups)))
                    names.append(some)
                    groups, some = [], []
    if some:
        blocks.append(FileBlock(tuple(groups)))
        names.append(some)
    return blocks, names


class MatchingActor:
    """What an actor runs: takes blocks of features from files or from the object store, and keeps those it used last."""

    def __init__(self, blocks: List[Any], settings: MatchSettings, device: str, threads: int) -> None:
        self._blocks = blocks
        self._settings = settings
        self._extractor = Extractor(device=device, threads=threads)
        self._kept: "OrderedDict[int, Dict[str, Features]]" = OrderedDict()

    def _block(self, number: int) -> Dict[str, Features]:
        if number not in self._kept:
            block = self._blocks[number]
            rows = iterate_features(block.read() if isinstance(block, FileBlock) else ray.get(block))
            self._kept[number] = {row["image"]: features for row, features in rows if features is not None}
            while len(self._kept) > _BLOCKS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(number)
        return self._kept[number]

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Matches of the pairs of a task, or of several."""
        return pa.concat_tables([self._match(task) for task in batch.to_pylist()])

    def _match(self, task: Dict[str, Any]) -> pa.Table:
        features: Dict[str, Features] = {}
        for number in (task["block_a"], task["block_b"]):
            if number >= 0:
                features.update(self._block(number))
        pairs = list(zip(task["names_a"], task["names_b"]))
        return match_named_pairs(features, pairs, self._settings, self._extractor)


def _tasks(pairs: Iterable[Pair], block_of: Dict[str, int], most: int) -> List[pa.Table]:
    """Pairs of the same two blocks together, at most so many in a task; neighbouring tasks share a block."""
    groups: Dict[Tuple[int, int], List[Pair]] = {}
    for a, b in pairs:
        groups.setdefault((block_of.get(a, -1), block_of.get(b, -1)), []).append((a, b))
    tasks = []
    for (block_a, block_b), group in sorted(groups.items()):
        for first in range(0, len(group), most):
            names_a, names_b = zip(*group[first : first + most])
            columns = [[block_a], [block_b], [list(names_a)], [list(names_b)]]
            tasks.append(pa.table([pa.array(one, field.type) for one, field in zip(columns, _TASK_SCHEMA)], _TASK_SCHEMA))
    return tasks


def match_pairs(
    features: "Union[str, os.PathLike[str], List[str], ray.data.Dataset]",
    pairs: PairsLike,
    *,
    model: Optional[str] = "fundamental",
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

    Features travel in blocks of many images: row groups of the files, or blocks of the Dataset in Ray's object store. A
    task is the pairs of two blocks, tasks that share one follow each other, and actors keep the blocks they used last; so
    an image's descriptors are read about once for each block that it has pairs with, not once for each pair.

    Args:
        features: a Dataset of ``extract``, or Parquet files of one.
        pairs: ``"exhaustive"``, ``"sequential:K"`` (each image and the K after it, by name), a file with two names a line,
            or the pairs of names themselves. A pair with an image that has no features is a row with its error.
        model: ``"fundamental"`` or ``"homography"``; None: matches are not verified.
        ratio, mutual, max_distance: as for ``hartsift.match``.
        tolerance: largest error of an inlier, pixels.
        num_cpus, num_gpus, concurrency, ray_remote_args: of actors, as for ``extract``.
        images_per_block: images whose features travel together, at least; of a Dataset its own blocks do.
        pairs_per_task: pairs that an actor gets at once, and does again if it is lost.
        filesystem: of pyarrow, that files are in.

    Returns:
        a row for each pair (FORMATS.md, "Parquet"), in no particular order.
    """
    settings = MatchSettings(model, ratio, mutual, max_distance, tolerance)
    settings.check()
    if images_per_block < 1 or pairs_per_task < 1:
        raise ArgumentError(f"images_per_block is {images_per_block}, pairs_per_task {pairs_per_task}: expected 1 or more")
    if isinstance(features, ray.data.Dataset):
        blocks: List[Any] = features.select_columns(_COLUMNS).materialize().to_arrow_refs()
        names_of = ray.remote(_names_of_block)
        names = ray.get([names_of.remote(block) for block in blocks])
    else:
        blocks, names = _blocks_of_files(find_files(features, filesystem), images_per_block)
    block_of = {name: number for number, some in enumerate(names) for name in some}
    tasks = _tasks(select_pairs(list(block_of), pairs), block_of, pairs_per_task)
    if not tasks:
        raise ArgumentError("there are no pairs to match")
    return ray.data.from_arrow(tasks).map_batches(
        MatchingActor,
        fn_constructor_kwargs={
            "blocks": blocks,
            "settings": settings,
            "device": "cuda" if num_gpus else "cpu",
            "threads": max(1, int(num_cpus)),
        },
        batch_size=1,
        batch_format="pyarrow",
        compute=pool_of_actors(concurrency, num_cpus, num_gpus),
        num_cpus=num_cpus,
        num_gpus=num_gpus or None,
        **(ray_remote_args or {}),
    )

