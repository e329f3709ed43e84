"""``python -m hartsift.ray``: extraction and matching on a Ray cluster, into Parquet files, with Ray's progress."""

from __future__ import annotations

import argparse
import importlib
from typing import Any, Optional, Sequence

from ._arguments import add_extraction_options, run


def _work() -> Any:
    """Loads the functions of the subcommands after the arguments are parsed, because --help must not need Ray."""
    try:
        return importlib.import_module("hartsift._ray_work")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}: pip install pyarrow 'ray[data]'", name=error.name) from error


def _extract(arguments: argparse.Namespace) -> int:
    return int(_work().extract_images(arguments))


def _match(arguments: argparse.Namespace) -> int:
    return int(_work().match_features(arguments))


def _add_pool(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", help="address of the Ray cluster [RAY_ADDRESS, else a cluster is started on this machine]")
    parser.add_argument("--num-cpus", type=float, default=1, metavar="N", help="number of CPUs and threads per actor [1]")
    parser.add_argument("--num-gpus", type=float, default=0, metavar="N", help="number of GPUs per actor [0: the CPU computes]")
    parser.add_argument("--concurrency", type=int, metavar="N", help="number of actors [as many as the cluster has resources for]")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hartsift.ray", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    extract = commands.add_parser("extract", help="features of many images")
    extract.add_argument("images", help="a folder or a list, by path or URI, that every node can read")
    extract.add_argument("output", help="a folder for Parquet files, by path or URI, that every node can write to")
    extract.add_argument("--resume", action="store_true", help="leave out images that the output has already")
    extract.add_argument("--batch-size", type=int, default=32, metavar="N", help="images that an actor gets at once [32]")
    _add_pool(extract)
    add_extraction_options(extract)
    extract.set_defaults(run=_extract)
    match = commands.add_parser("match", help="verified matches of pairs of images")
    match.add_argument("features", help="the folder of Parquet files that extract has written")
    match.add_argument("output", help="a folder for Parquet files of matches")
    match.add_argument("--pairs", required=True, metavar="WHICH",
                       help="all, sequential:K, spatial:METRES, retrieval:K (by image vectors alone), or a file with two names a line")
    match.add_argument("--model", choices=["fundamental", "homography", "none"], default="fundamental",
                       help="geometry by which matches are verified [fundamental]")
    match.add_argument("--ratio", type=float, default=0.8, metavar="R",
                       help="keep a match if its distance is below R times that of the second nearest, 0: no such test [0.8]")
    match.add_argument("--no-mutual", dest="mutual", action="store_false", help="search from the first image to the second only")
    match.add_argument("--max-distance", type=float, default=0.0, metavar="D",
                       help="largest distance of a match, in units of the descriptors, 0: no limit [0]")
    match.add_argument("--tolerance", type=float, default=4.0, metavar="T", help="largest error of an inlier, pixels [4]")
    _add_pool(match)
    match.set_defaults(run=_match)
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line."""
    return run(_parser(), arguments)
