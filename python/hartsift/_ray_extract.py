"""Extraction on a Ray cluster: actors that take tables of images."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import os
import posixpath
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Union

import pyarrow as pa
import pyarrow.fs
import ray
import ray.data

from ._arrow import ImageRow, feature_schema, table_of_rows
from ._errors import ArgumentError, reason_of
from ._merge import write_whole
from ._names import printable, text_of_name
from ._options import make_options
from ._samples import ValueRange, checked_range
from ._sources import ImageSource, RowStream, find_images, resolve

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._hints import Options

# An actor reserves less than half of its CPUs. If a node is lost, Ray restarts its actors only on free CPUs, and until
# then it waits for their results. With this share all actors of half the nodes fit on the other half, which is then
# slower. It also leaves CPUs for writers. Ray fills nodes up to a half first, so the actors are spread.
_CLAIM = 0.45
_BLOCKS_MAX = 4096  # maximum number of blocks of names from a driver, because Ray tracks each of them
_TURNS = 64
_FILE_BYTES = 32 << 20  # features in memory that WritingActor writes to one file
# Tables for which an actor is called at once: a GPU has the features of one sooner than those of another are written.
_CALLS_GPU, _CALLS_CPU = 4, 2


class ExtractionActor:
    """An actor with one batch of the library for all tables of images. Where Ray can, it calls it for several tables at
    once: while images of one are extracted, those of the next are read, and the results of others are made and written.
    """

    def __init__(
        self,
        options: Dict[str, Any],
        exif: bool,
        jpeg_scale: int,
        readers: int,
        filesystem: Any = None,
        strict: bool = False,
        value_range: Optional[ValueRange] = None,
    ) -> None:
        self._stream = RowStream(options, readers, filesystem, exif, jpeg_scale, strict, value_range)
        self._descriptor = self._stream.extraction["descriptor"]

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Extracts the features of the images in a table, which has a column `path` (or `bytes`) and possibly `image`."""
        return table_of_rows(list(self._stream.rows(_sources_of(batch))), self._stream.text, self._descriptor)


def _sources_of(batch: pa.Table) -> List[ImageSource]:
    columns = batch.to_pydict()
    paths = [os.fsdecode(one or "") for one in columns["path" if "path" in columns else "image"]]
    names = [os.fsdecode(one or "") for one in columns.get("image", paths)]
    contents = columns.get("bytes", [None] * len(paths))
    return [ImageSource(*one) for one in zip(names, paths, contents)]


class _Written(NamedTuple):
    """What WritingActor returns for an image: its name, and why its features could not be written, else None."""

    image: str
    error: Optional[str]


def _bytes_of(row: ImageRow) -> int:
    features = row.features
    if features is None:
        return 0
    return int(features.records.nbytes + (0 if features.descriptors is None else features.descriptors.nbytes))


def _files_of(rows: Iterable[ImageRow]) -> Iterator[List[ImageRow]]:
    """Divides rows among files."""
    some: List[ImageRow] = []
    size = 0
    for row in rows:
        some.append(row)
        size += _bytes_of(row)
        if size >= _FILE_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


class WritingActor(ExtractionActor):
    """Writes the features to Parquet files in the folder `output`. Through Ray's object store and a task that writes, all
    features of an image take longer than their extraction.

    The names of files depend on the images only, so a batch that Ray repeats replaces its files. Features from a GPU come
    faster than they could be compressed.
    """

    def __init__(self, output: str, **named: Any) -> None:
        super().__init__(**named)
        self._system, self._folder = resolve(output)
        self._writers = ThreadPoolExecutor(max(named["readers"], 1))
        self._turns = [threading.Lock() for _ in range(_TURNS)]
        self._is_quick = self._stream.extraction["device"] == "cuda"

    def __call__(self, batch: pa.Table) -> pa.Table:
        """As of ExtractionActor; the result has a row for each image: `image`, and `error` if it could not be written."""
        sources = _sources_of(batch)
        names = b"\0".join(itertools.chain.from_iterable((os.fsencode(one.name), os.fsencode(one.path)) for one in sources))
        key = hashlib.blake2b(names, digest_size=10).hexdigest()
        with self._turns[int(key, 16) % _TURNS]:  # a table that Ray repeats has the same files
            writing: List[Future[List[_Written]]] = [
                self._writers.submit(self._write, some, f"{key}-{number}")
                for number, some in enumerate(_files_of(self._stream.rows(sources)))
            ]
            written = [one for future in writing for one in future.result()]
        columns = {"image": [text_of_name(one.image) for one in written], "error": [one.error for one in written]}
        return pa.table(columns, schema=pa.schema([("image", pa.string()), ("error", pa.string())]))

    def _write(self, rows: List[ImageRow], name: str) -> List[_Written]:
        """Writes a file. If that fails, writes a file for each image, so that only what cannot be written is left out."""
        parts = [f"{name}-{number}" for number in range(len(rows))] if len(rows) > 1 else []
        try:
            table = table_of_rows(rows, self._stream.text, self._descriptor)
            write_whole(self._system, self._path(name), iter([table]), table.schema, self._is_quick)
            self._remove(parts)
        except Exception as error:
            if not parts:
                return [_Written(rows[0].image, printable(str(reason_of(error))))]
            with contextlib.suppress(OSError):  # each part names the reason
                self._remove([name])
            return [one for row, part in zip(rows, parts) for one in self._write([row], part)]
        return [_Written(row.image, None) for row in rows]

    def _path(self, name: str) -> str:
        return posixpath.join(self._folder, f"{name}.parquet")

    def _remove(self, names: List[str]) -> None:
        """Removes what an earlier run of the same batch wrote, if Ray repeats it and it ends in another way."""
        for found in self._system.get_file_info([self._path(name) for name in names]):
            if found.type == pa.fs.FileType.File:
                self._system.delete_file(found.path)


def actors(concurrency: Optional[int], num_cpus: float, num_gpus: float, calls: int = 1) -> Dict[str, Any]:
    """Arguments of map_batches: the number of actors (as requested, or as many as fit), their resources, and the number of
    batches for which an actor is called at once."""
    if concurrency is None:
        have = ray.cluster_resources()
        room = have.get("GPU", 0) / num_gpus if num_gpus else have.get("CPU", 1) / num_cpus
        concurrency = max(1, math.floor(room))
    sizes: Dict[str, Any] = {"min_size": 1, "max_size": concurrency, "initial_size": concurrency}
    together = {"max_concurrent_calls_per_actor": calls, "enable_true_multi_threading": True} if calls > 1 else {}
    try:
        pool = ray.data.ActorPoolStrategy(**sizes, **together)
    except TypeError:  # an older Ray, which calls an actor for one table at a time
        pool = ray.data.ActorPoolStrategy(**sizes)
    return {
        "compute": pool,
        "num_cpus": _CLAIM * num_cpus,
        "num_gpus": num_gpus or None,
    }


def dataset_of_images(sources: List[ImageSource], batch_size: int) -> Any:
    """Names and paths of the images in blocks. A block is one batch, or several if there would be too many blocks."""
    size = batch_size * max(1, math.ceil(len(sources) / batch_size / _BLOCKS_MAX))
    schema = pa.schema([("image", pa.binary()), ("path", pa.binary())])  # bytes, because names may not be UTF-8
    tables = [
        pa.table([[os.fsencode(one.name) for one in some], [os.fsencode(one.path) for one in some]], schema=schema)
        for some in (sources[first : first + size] for first in range(0, max(len(sources), 1), size))
    ]
    return ray.data.from_arrow(tables)


def extract(
    images: "Union[str, os.PathLike[str], Iterable[str], ray.data.Dataset]",
    *,
    num_cpus: float = 1,
    num_gpus: float = 0,
    concurrency: Optional[int] = None,
    batch_size: int = 32,
    filesystem: Any = None,
    exif: bool = True,
    jpeg_scale: int = 1,
    strict: bool = False,
    value_range: Optional[ValueRange] = None,
    readers: Optional[int] = None,
    ray_remote_args: Optional[Dict[str, Any]] = None,
    **options: "Unpack[Options]",
) -> "ray.data.Dataset":
    """Extracts the features of many images on the cluster. The result is lazy, as everything in ``ray.data``.

    Each actor keeps one context, with several images in flight; images are read through pyarrow's file systems and
    decoded in the actor. An image that fails gives a row with its error. If a node or an actor is lost, Ray repeats its
    work.

    Args:
        images: a folder, or a file with a list, by path or URI (``s3://...``); names of images; or a Dataset with a
            column `path`, or `bytes` as from ``ray.data.read_binary_files(..., include_paths=True)``, and a column
            `image` if names differ from paths.
        num_cpus: CPUs of an actor, and number of its threads unless the option ``threads`` is given.
        num_gpus: GPUs of an actor; if above 0 it uses its GPU, else the CPU. With three actors for each GPU (0.33), two
            prepare and write results while the GPU works for the third. If a node is lost, so are the GPUs of its
            actors: add a node to the cluster, or leave GPUs free with `concurrency`; otherwise Ray waits.
        concurrency: number of actors; None: as many as fit the cluster.
        batch_size: number of images that an actor gets at once; they are repeated if it is lost.
        filesystem: pyarrow's file system of the paths; None: the local one of each node, or that of the URI.
        exif, jpeg_scale, strict, value_range: as for ``hartsift.extract``.
        readers: number of threads of an actor that read images, and as many that decode them; None: one for each CPU.
        ray_remote_args: further arguments of the actors.
        options: see ``hartsift.Options``.

    Returns:
        Rows as in Parquet files of features (FORMATS.md, "Parquet"), in no defined order.
    """
    return _mapped(
        ExtractionActor, {}, images, num_cpus=num_cpus, num_gpus=num_gpus, concurrency=concurrency, batch_size=batch_size,
        filesystem=filesystem, exif=exif, jpeg_scale=jpeg_scale, strict=strict, value_range=value_range, readers=readers,
        ray_remote_args=ray_remote_args, **options
    )  # fmt: skip


def extract_into(output: str, images: Any, **given: Any) -> Any:
    """As ``extract``, into Parquet files in a folder that exists. The Dataset's rows are those of WritingActor."""
    return _mapped(WritingActor, {"output": output}, images, **{**(extract.__kwdefaults__ or {}), **given})


def _mapped(
    actor: type,
    arguments: Dict[str, Any],
    images: Any,
    *,
    num_cpus: float,
    num_gpus: float,
    concurrency: Optional[int],
    batch_size: int,
    filesystem: Any,
    exif: bool,
    jpeg_scale: int,
    strict: bool,
    value_range: Optional[ValueRange],
    readers: Optional[int],
    ray_remote_args: Optional[Dict[str, Any]],
    **options: Any,
) -> Any:
    """A Dataset of what an actor makes of the images. arguments: those of its constructor besides ExtractionActor's."""
    settings: Dict[str, Any] = dict(options)
    settings.setdefault("device", "cuda" if num_gpus else "cpu")
    settings.setdefault("threads", max(1, int(num_cpus)))
    make_options(settings)  # wrong options must fail here, not in an actor, which then could not start
    if batch_size < 1 or num_cpus <= 0:
        raise ArgumentError(f"batch_size is {batch_size} and num_cpus {num_cpus}: expected at least 1, and more than 0")
    if isinstance(images, ray.data.Dataset):
        names = images
    else:
        names = dataset_of_images(find_images(images, filesystem), batch_size)
    return names.map_batches(
        actor,
        fn_constructor_kwargs={
            **arguments,
            "options": settings,
            "exif": exif,
            "jpeg_scale": jpeg_scale,
            "strict": strict,
            "value_range": checked_range(value_range),
            "readers": readers or max(1, int(num_cpus)),
            "filesystem": filesystem,
        },
        batch_size=batch_size,
        batch_format="pyarrow",
        zero_copy_batch=True,
        **actors(concurrency, num_cpus, num_gpus, calls=_CALLS_GPU if num_gpus else _CALLS_CPU),
        **(ray_remote_args or {}),
    )
