"""``python -m hartsift``: runs the command; ``reconstruct``, and ``batch`` and ``merge`` for Parquet files, are Python."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn, Optional, Sequence

from . import _library
from ._arguments import add_extraction_options, extraction_options, run

_OF_THE_PACKAGE = """Commands of the package (python -m hartsift COMMAND --help):
  reconstruct               photographs to poses, with pycolmap
  batch, merge              with Parquet files; otherwise the command's, below
Programs: python -m hartsift.ray, .alicevision, .openmvg, .bundler
"""


def _is_parquet(command: str, argument: str) -> bool:
    """True if an argument of batch or merge names Parquet: as a format, file or URI; for merge also as a folder of files."""
    value = argument.rpartition("=")[2] if argument.startswith("-") else argument
    if value == "parquet" or value.endswith(".parquet") or "://" in value:
        return True
    return command == "merge" and os.path.isdir(value) and any(name.endswith(".parquet") for name in os.listdir(value))


def _run_command(arguments: Sequence[str]) -> NoReturn:
    """Replaces this process by the command, which is next to the library or, in a system's packages, on the PATH."""
    program = _library.command_path()
    try:
        if sys.platform == "win32":  # execv would end this process at once, with status 0
            import signal
            import subprocess

            with subprocess.Popen([program, *arguments]) as process:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command
                sys.exit(process.wait())
        os.execv(program, ["hartsift", *arguments])
    except OSError as error:
        sys.exit(f"python -m hartsift: {program} does not start: {error.strerror}; install the package again")


def _batch(arguments: argparse.Namespace) -> int:
    from . import parquet
    from ._sources import parse_shard, path_of_shard

    images, failed = parquet.batch(
        arguments.images, arguments.output, shard=arguments.shard, **extraction_options(arguments)
    )
    output = path_of_shard(arguments.output, *parse_shard(arguments.shard))
    print(f"{images} images, {failed} of them failed: {output}", file=sys.stderr)
    return 1 if failed else 0


def _merge(arguments: argparse.Namespace) -> int:
    from . import parquet

    images, files = parquet.merge(
        arguments.inputs,
        arguments.output,
        matches=arguments.matches,
        exif=arguments.exif,
        share_cameras=arguments.share_cameras,
        camera=arguments.camera_id,
    )
    print(f"{images} images of {files} files: {arguments.output}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    description = "Features of many images in Parquet files; needs pyarrow."
    parser = argparse.ArgumentParser(prog="python -m hartsift", description=description)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    batch = commands.add_parser("batch", help="extract the features of many images into a Parquet file")
    batch.add_argument("images", help="a folder or a list with one image a line; a path, or a URI such as s3://bucket/folder")
    batch.add_argument("-o", "--output", required=True, help="NAME.parquet; of a shard it becomes NAME-I-of-N.parquet")
    batch.add_argument("--format", choices=["parquet"], default="parquet", help="other formats are the command's")
    batch.add_argument("--shard", default="1/1", help="I/N, slurm or env:INDEX,COUNT, as the command has it")
    add_extraction_options(batch)
    batch.set_defaults(run=_batch)
    merge = commands.add_parser("merge", help="put Parquet files together")
    merge.add_argument("inputs", nargs="+", help="files, or folders of them, by path or URI")
    merge.add_argument("-o", "--output", required=True, help="NAME.parquet, or NAME.db for a COLMAP database")
    merge.add_argument("--matches", nargs="+", default=(), help="NAME.db: files of matches, of hartsift.ray match")
    merge.add_argument("--exif", action="store_true", help="NAME.db: COLMAP gets copies of JPEG files that are turned")
    cameras = merge.add_mutually_exclusive_group()
    cameras.add_argument("--single-camera", dest="share_cameras", action="store_const", const="size", default=False,
                         help="NAME.db: let the images of one size share one camera")
    cameras.add_argument("--single-camera-per-folder", dest="share_cameras", action="store_const", const="folder",
                         help="NAME.db: let the images of one size in one folder share one camera")
    cameras.add_argument("--camera-id", type=int, metavar="N", help="NAME.db: give all images this camera, which it has")
    merge.set_defaults(run=_merge)
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line: Parquet and ``reconstruct`` in Python, everything else by the command."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["reconstruct"]:
        from ._reconstruct import main as reconstruct

        return reconstruct(given[1:])
    if given in (["-h"], ["--help"]):
        print(_OF_THE_PACKAGE, flush=True)
    if given[:1] not in (["batch"], ["merge"]) or not any(_is_parquet(given[0], value) for value in given[1:]):
        _run_command(given)
    return run(_parser(), given)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
