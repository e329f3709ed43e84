"""Extraction on a Ray cluster: actors with one context each, fed with batches of images."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

import pyarrow as pa
import ray
import ray.data

from ._arrow import table_of_rows
from ._errors import ArgumentError
from ._extractor import Extractor
from ._options import make_options
from ._samples import ValueRange, checked_range
from ._sources import ImageSource, extract_rows, find_images, reading_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._hints import Options

# An actor reserves less than half of its CPUs. If a node is lost, Ray restarts its actors only on free CPUs, and until
# then it waits for their results. With this share all actors of half the nodes fit on the other half, which is then
# slower. It also leaves CPUs for writers. Ray fills nodes up to a half first, so the actors are spread.
_CLAIM = 0.45
_BLOCKS_MAX = 4096  # maximum number of blocks of names from a driver, because Ray tracks each of them


class ExtractionActor:
    """An actor with one extractor for all its batches."""

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
        self._extractor = Extractor(**options)
        pictures: Dict[str, Any] = dict(exif=exif, jpeg_scale=jpeg_scale, strict=strict, value_range=value_range)
        self._reading: Dict[str, Any] = dict(readers=readers, filesystem=filesystem, **pictures)
        self._descriptor = self._extractor.options["descriptor"]
        self._text = reading_options(self._extractor, **pictures)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Extracts the features of the images in a table, which has a column `path` (or `bytes`) and possibly `image`."""
        columns = batch.to_pydict()
        paths = [os.fsdecode(one or "") for one in columns.get("path") or columns["image"]]
        names = [os.fsdecode(one or "") for one in columns.get("image") or paths]
        contents = columns.get("bytes") or [None] * len(paths)
        sources = [ImageSource(*one) for one in zip(names, paths, contents)]
        rows = list(extract_rows(self._extractor, sources, **self._reading))
        return table_of_rows(rows, self._text, self._descriptor)


def actors(concurrency: Optional[int], num_cpus: float, num_gpus: float) -> Dict[str, Any]:
    """Arguments of map_batches: the number of actors (as requested, or as many as fit) and their resources."""
    if concurrency is None:
        have = ray.cluster_resources()
        room = have.get("GPU", 0) / num_gpus if num_gpus else have.get("CPU", 1) / num_cpus
        concurrency = max(1, math.floor(room))
    return {
        "compute": ray.data.ActorPoolStrategy(min_size=1, max_size=concurrency, initial_size=concurrency),
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
        num_gpus: GPUs of an actor; if above 0 it uses its GPU, else the CPU. With two actors for each GPU (0.5), one
            actor prepares results while the GPU works for the other. If a node is lost, so are the GPUs of its actors:
            add a node to the cluster, or leave GPUs free with `concurrency`; otherwise Ray waits.
        concurrency: number of actors; None: as many as fit the cluster.
        batch_size: number of images that an actor gets at once; they are repeated if it is lost.
        filesystem: pyarrow's file system of the paths; None: the local one of each node, or that of the URI.
        exif, jpeg_scale, strict, value_range: as for ``hartsift.extract``.
        readers: number of threads of an actor that read and decode images in advance; None: one for each of its CPUs.
        ray_remote_args: further arguments of the actors.
        options: see ``hartsift.Options``.

    Returns:
        Rows as in Parquet files of features (FORMATS.md, "Parquet"), in no defined order.
    """
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
        ExtractionActor,
        fn_constructor_kwargs={
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
        **actors(concurrency, num_cpus, num_gpus),
        **(ray_remote_args or {}),
    )
