"""Functions of the subcommands of ``python -m hartsift.ray``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any, Dict, Iterator, Optional

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import ray
from pyarrow import fs

from . import _library
from ._arguments import extraction_options
from ._errors import ArgumentError, Error, FileError
from ._merge import files_below, find_files
from ._names import name_of_text, printable
from ._ray_extract import dataset_of_images, extract_into
from ._ray_match import match_pairs
from ._sources import at, find_images, resolve

# A task that writes waits for storage, and must fit next to the actors that wait for it.
_WRITER_CPUS = 0.05


def _existing_images(output: str, resume: bool) -> "set[str]":
    """The images that an earlier run has written."""
    if not _is_utf8(output):
        raise ArgumentError(f"{printable(output)}: Ray writes only where all names are UTF-8: expected another output")
    system, path = resolve(output)
    if system.get_file_info(at(system, path.rstrip("/"))).type == fs.FileType.NotFound:
        return set()
    files = [one for one in files_below(system, path.rstrip("/")) if one.endswith(".parquet")]
    if files and not resume:
        raise ArgumentError(f"{output}: has Parquet files already: expected another folder, or --resume, which adds images")
    names: "set[str]" = set()
    for file in files:
        names.update(map(name_of_text, _column(system, file, "image").to_pylist()))
    return names


def _is_utf8(path: str) -> bool:
    return printable(path) == path


def _column(system: Any, path: str, name: str) -> Any:
    try:
        with system.open_input_file(at(system, path)) as file:
            return pq.read_table(file, columns=[name])[name]
    except (OSError, pa.ArrowException) as error:
        text = f"{path}: is incomplete, for example after a full disk: remove it, and continue with --resume: {error}"
        raise FileError(text, _library.HS_ERR_IO) from error


@contextlib.contextmanager
def _naming(output: str) -> Iterator[None]:
    """Names the output in the failure of a Ray task that is due to files."""
    try:
        yield
    except Exception as error:
        reason = _reason_of(error)
        if reason is None:
            raise
        text = f"{output}: the run ended before its end: {reason}: complete files are kept"
        raise FileError(text, _library.HS_ERR_IO) from error


def _write(dataset: Any, output: str) -> None:
    system, path = resolve(output)
    with _naming(output):
        dataset.write_parquet(
            path,
            filesystem=system,
            ray_remote_args={"num_cpus": _WRITER_CPUS},
            concurrency=len(ray.nodes()),
            compression="zstd",
            use_dictionary=["status", "method", "options"],
        )


def _count_unwritten(dataset: Any, output: str) -> int:
    """Runs the extraction, and returns how many images could not be written. Prints each reason once."""
    counts: "Dict[str, int]" = {}
    with _naming(output):
        for some in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
            for image, error in zip(some["image"].to_pylist(), some["error"].to_pylist()):
                if error is None:
                    continue
                reason = error.rpartition(": ")[2]
                if reason not in counts:
                    print(f"{image}: {error}", file=sys.stderr)
                counts[reason] = counts.get(reason, 0) + 1
    for reason, count in counts.items():
        print(f"{output}: {count} images could not be written ({reason}); --resume adds them", file=sys.stderr)
    return sum(counts.values())


def _reason_of(error: Optional[BaseException]) -> Optional[BaseException]:
    """The cause of the failure of a Ray task, if it is an error of files or of this package."""
    while error is not None:
        inner = getattr(error, "cause", None) or error.__cause__
        if inner is None or inner is error:
            return error if isinstance(error, (OSError, Error)) else None
        error = inner
    return None


def _pool(arguments: argparse.Namespace) -> Dict[str, Any]:
    return {"num_cpus": arguments.num_cpus, "num_gpus": arguments.num_gpus, "concurrency": arguments.concurrency}


def _failures(output: str, column: str) -> int:
    """Counts the rows with errors, and prints their number."""
    count = failed = 0
    for system, path in find_files(output):
        statuses = _column(system, path, "status")
        count += len(statuses)
        failed += pc.sum(pc.not_equal(statuses, "HS_OK")).as_py() or 0
    print(f"{count} {column}, {failed} of them failed: {output}", file=sys.stderr)
    return 1 if failed else 0


def extract_images(arguments: argparse.Namespace) -> int:
    """Runs ``extract``. The exit status is 1 if images failed."""
    done = _existing_images(arguments.output, arguments.resume)
    sources = [source for source in find_images(arguments.images) if source.name not in done]
    unwritten = 0
    if sources:
        ray.init(address=arguments.address, ignore_reinit_error=True)
        options = extraction_options(arguments)
        images = dataset_of_images(sources, arguments.batch_size)
        system, path = resolve(arguments.output)
        system.create_dir(at(system, path.rstrip("/")), recursive=True)
        pool = _pool(arguments)
        unwritten = _count_unwritten(
            extract_into(arguments.output, images, batch_size=arguments.batch_size, **pool, **options), arguments.output
        )
    return max(_failures(arguments.output, "images"), 1 if unwritten else 0)


def match_features(arguments: argparse.Namespace) -> int:
    """Runs ``match``. The exit status is 1 if pairs failed."""
    _existing_images(arguments.output, False)
    ray.init(address=arguments.address, ignore_reinit_error=True)
    model = None if arguments.model == "none" else arguments.model
    dataset = match_pairs(
        arguments.features,
        arguments.pairs,
        model=model,
        ratio=arguments.ratio,
        mutual=arguments.mutual,
        max_distance=arguments.max_distance,
        tolerance=arguments.tolerance,
        **_pool(arguments),
    )
    _write(dataset, arguments.output)
    return _failures(arguments.output, "pairs")
