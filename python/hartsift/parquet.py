"""Features of many images in Parquet files, a row for each image (FORMATS.md, "Parquet"). Needs the package pyarrow.

>>> import hartsift.parquet
>>> hartsift.parquet.batch("photos/", "features.parquet", max_features=4000)
>>> for row, features in hartsift.parquet.read("features.parquet"):
...     row["image"], row["digest"], features                       # None where row["error"] says why
>>> hartsift.parquet.merge(["shard-1.parquet", "shard-2.parquet"], "database.db")
"""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

try:
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}: pip install pyarrow", name=error.name) from error

from ._arrow import (
    ROW_GROUP_IMAGES,
    feature_schema,
    iterate_features,
    table_of_rows,
)
from ._errors import ArgumentError
from ._features import Features
from ._merge import find_files, merge, naming, write_whole
from ._samples import ValueRange, checked_range
from ._sources import RowStream, at, find_images, parse_shard, path_of_shard, resolve

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._hints import Options

__all__ = ["batch", "feature_schema", "merge", "read"]

PathLike = Union[str, "os.PathLike[str]"]
_DEFAULT_READERS = 2


def batch(
    images: Union[PathLike, Iterable[str]],
    output: PathLike,
    *,
    shard: str = "1/1",
    filesystem: Any = None,
    exif: bool = True,
    jpeg_scale: int = 1,
    strict: bool = False,
    value_range: Optional[ValueRange] = None,
    readers: int = _DEFAULT_READERS,
    **options: "Unpack[Options]",
) -> Tuple[int, int]:
    """Extracts the features of many images into a Parquet file, which appears complete or not at all.

    Args:
        images: a folder, or a file with a list, by path or URI (``s3://...``); or names of images; as in ``hartsift
            batch``.
        output: a name that ends in ``.parquet``; for a shard it becomes NAME-I-of-N.parquet.
        shard: ``"I/N"``, ``"slurm"`` or ``"env:INDEX,COUNT"``: process only the images I, I+N, I+2N, ...
        filesystem: pyarrow's file system of images and output.
        exif, jpeg_scale, strict, value_range: as for ``hartsift.extract``.
        readers: number of threads that read images in advance, and as many that decode them.
        options: see ``hartsift.Options``.

    Returns:
        Number of images, and number of images that failed, whose rows have the error. A warning says how many images
        have no features.
    """
    index, count = parse_shard(shard)
    system, path = resolve(os.fspath(output), filesystem)
    if not path.endswith(".parquet"):
        raise ArgumentError(f"{path}: expected a name that ends in .parquet")
    path = path_of_shard(path, index, count)
    value_range = checked_range(value_range)
    sources = find_images(images, filesystem)[index - 1 :: count]
    counted = [0, 0, 0]
    stream = RowStream(dict(options), readers, filesystem, exif, jpeg_scale, strict, value_range)
    descriptor = stream.extraction["descriptor"]
    with contextlib.closing(stream):
        rows = stream.rows(sources)

        def tables() -> Iterator[Any]:
            for some in iter(lambda: list(itertools.islice(rows, ROW_GROUP_IMAGES)), []):
                counted[0] += len(some)
                counted[1] += sum(row.error is not None for row in some)
                counted[2] += sum(row.features is not None and len(row.features) == 0 for row in some)
                yield table_of_rows(some, stream.text, descriptor)

        write_whole(system, path, tables(), feature_schema(descriptor))
    if counted[2]:
        warnings.warn(f"{counted[2]} of {counted[0]} images have no features", UserWarning, stacklevel=2)
    return counted[0], counted[1]


def read(
    files: Union[PathLike, Sequence[PathLike]], columns: Optional[List[str]] = None, *, filesystem: Any = None
) -> Iterator[Tuple[Dict[str, Any], Optional[Features]]]:
    """Yields for each image the columns without lists, by name, and the features; None if it failed.

    Args:
        files: a file, a folder of files, or several of either, by path or URI.
        columns: columns to read; None: all. Keypoints need x, y, sigma and orientation.
        filesystem: pyarrow's file system of the files.
    """
    for system, path in find_files(files, filesystem):
        with naming(path), system.open_input_file(at(system, path)) as file:
            opened = pq.ParquetFile(file)
            for group in range(opened.num_row_groups):
                yield from iterate_features(opened.read_row_group(group, columns=columns))
