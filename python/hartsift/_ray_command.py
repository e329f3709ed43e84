"""``python -m hartsift.ray``: extraction and matching on a Ray cluster, into Parquet files, with Ray's progress."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Dict, Optional, Sequence

import pyarrow.compute as pc
import pyarrow.dataset as pd
import ray
from pyarrow import fs

from . import ray as hartsift_ray
from ._arguments import add_extraction_options, extraction_options, run
from ._errors import ArgumentError
from ._merge import find_files
from ._sources import ImageSource, find_images, resolve

# A writing task waits for storage, and must find room beside actors that wait for it.
_WRITER_CPUS = 0.05


def _existing_images(output: str, resume: bool) -> "set[str]":
    """The images that an earlier run has written."""
    system, path = resolve(output)
    if system.get_file_info(path.rstrip("/")).type == fs.FileType.NotFound:
        return set()
    inside = system.get_file_info(fs.FileSelector(path.rstrip("/"), recursive=True))
    files = [one.path for one in inside if one.path.endswith(".parquet")]
    if files and not resume:
        raise ArgumentError(f"{output}: has Parquet files already: expected another folder, or --resume, which adds images")
    names: "set[str]" = set()
    if files:
        names.update(pd.dataset(files, filesystem=system).to_table(columns=["image"])["image"].to_pylist())
    return names


def _write(dataset: Any, output: str) -> None:
    system, path = resolve(output)
    dataset.write_parquet(
        path,
        filesystem=system,
        ray_remote_args={"num_cpus": _WRITER_CPUS},
        concurrency=len(ray.nodes()),
        compression="zstd",
        use_dictionary=["status", "method", "options"],
    )


def _pool(arguments: argparse.Namespace) -> Dict[str, Any]:
    return {"num_cpus": arguments.num_cpus, "num_gpus": arguments.num_gpus, "concurrency": arguments.concurrency}


def _failures(output: str, column: str) -> int:
    """Counts rows with errors and prints how many there are."""
    count = failed = 0
    for system, path in find_files(output):
        statuses = pd.dataset(path, filesystem=system).to_table(columns=["status"])["status"]
        count += len(statuses)
        failed += pc.sum(pc.not_equal(statuses, "HS_OK")).as_py() or 0
    print(f"{count} {column}, {failed} of them failed: {output}", file=sys.stderr)
    return 1 if failed else 0


def _extract(arguments: argparse.Namespace) -> int:
    done = _existing_images(arguments.output, arguments.resume)
    sources = [source for source in find_images(arguments.images) if source.name not in done]
    if sources:
        ray.init(address=arguments.address, ignore_reinit_error=True)
        options = extraction_options(arguments)
        dataset = hartsift_ray.extract(
            _dataset(sources, arguments.batch_size), batch_size=arguments.batch_size, **_pool(arguments), **options
        )
        _write(dataset, arguments.output)
    return _failures(arguments.output, "images")


def _dataset(sources: Sequence[ImageSource], batch_size: int) -> Any:
    from ._ray_extract import dataset_of_images

    return dataset_of_images(list(sources), batch_size)


def _match(arguments: argparse.Namespace) -> int:
    _existing_images(arguments.output, False)
    ray.init(address=arguments.address, ignore_reinit_error=True)
    model = None if arguments.model == "none" else arguments.model
    dataset = hartsift_ray.match_pairs(
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


def _add_pool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", help="of the Ray cluster [RAY_ADDRESS, else one of this machine is started]")
    parser.add_argument("--num-cpus", type=float, default=1, metavar="N", help="CPUs, and threads, of an actor [1]")
    parser.add_argument("--num-gpus", type=float, default=0, metavar="N", help="GPUs of an actor [0: CPU]")
    parser.add_argument("--concurrency", type=int, metavar="N", help="actors [as many as there is room for]")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hartsift.ray", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    extract = commands.add_parser("extract", help="features of many images")
    extract.add_argument("images", help="a folder or a list, by path or URI, that every node can read")
    extract.add_argument("output", help="a folder for Parquet files, by path or URI, that every node can write to")
    extract.add_argument("--resume", action="store_true", help="leave the images that OUT has already")
    extract.add_argument("--batch-size", type=int, default=32, metavar="N", help="images that an actor gets at once [32]")
    _add_pool(extract)
    add_extraction_options(extract)
    extract.set_defaults(run=_extract)
    match = commands.add_parser("match", help="verified matches of pairs of images")
    match.add_argument("features", help="the folder of Parquet files that extract has written")
    match.add_argument("output", help="a folder for Parquet files of matches")
    match.add_argument("--pairs", required=True, help="all, sequential:K, spatial:METRES, retrieval:K, or a file with two names a line")
    match.add_argument("--model", choices=["fundamental", "homography", "none"], default="fundamental")
    match.add_argument("--ratio", type=float, default=0.8)
    match.add_argument("--no-mutual", dest="mutual", action="store_false")
    match.add_argument("--max-distance", type=float, default=0.0)
    match.add_argument("--tolerance", type=float, default=4.0, help="largest error of an inlier, pixels [4]")
    _add_pool(match)
    match.set_defaults(run=_match)
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line."""
    return run(_parser(), arguments)
