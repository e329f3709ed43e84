"""Features for AliceVision and Meshroom: ``<viewId>.sift.feat`` and ``.desc`` for the views of a project, or for a
chunk of them.

>>> import hartsift.alicevision
>>> hartsift.alicevision.extract("cameraInit.sfm", "features", max_features=10000)

On the command line it has the options of ``aliceVision_featureExtraction``, which it can replace:

    python -m hartsift.alicevision --input cameraInit.sfm --output features --rangeStart 0 --rangeSize 40
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from ._arguments import run_parsed
from ._errors import ArgumentError, FileError
from ._project import PathLike, View, extract_views, read_project

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._hints import Options

__all__ = ["extract"]

#: Maximum number of features for AliceVision's presets.
_PRESETS = {"low": 1000, "medium": 5000, "normal": 10000, "high": 50000, "ultra": 100000}
#: Grid over which the features of a preset are spread.
_GRID = (4, 4)


def _views(sfm_data: PathLike) -> List[View]:
    """The views in the order of their numbers, in which AliceVision's ranges count."""
    base = pathlib.Path(sfm_data).parent
    views = []
    for one in read_project(sfm_data)["views"]:
        try:
            number, path = int(one["viewId"]), pathlib.Path(one["path"])
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise FileError(f"{sfm_data}: a view without viewId or path: {one}") from error
        views.append(View(number, f"{number}.sift", base / path))
    return sorted(views)


def _masks(views: Sequence[View], folder: Optional[PathLike], ending: str) -> Dict[int, pathlib.Path]:
    """Masks of views, named by the view's number or else by the image's name, as AliceVision finds them."""
    masks: Dict[int, pathlib.Path] = {}
    for view in views if folder is not None else ():
        assert folder is not None
        for stem in (str(view.number), view.path.stem):
            mask = pathlib.Path(folder, f"{stem}.{ending.lstrip('.')}")
            if os.path.exists(mask):
                masks.setdefault(view.number, mask)
    return masks


def extract(
    sfm_data: PathLike,
    folder: PathLike,
    *,
    range_start: int = -1,
    range_size: int = 1,
    masks: Optional[PathLike] = None,
    mask_ending: str = "png",
    mask_inverted: bool = False,
    again: bool = False,
    **options: "Unpack[Options]",
) -> int:
    """Writes the features of a project's views, or of a chunk of them, and returns the number of views.

    Args:
        sfm_data: the project in JSON (``cameraInit.sfm``).
        folder: folder for ``<viewId>.sift.feat`` and ``.desc``; created if it does not exist.
        range_start, range_size: first view and number of views of the chunk, in the order of view numbers; range_start
            -1: all views.
        masks: a folder of masks named by view number or image; keypoints where a mask is black are dropped.
        mask_ending: ending of the masks' names.
        mask_inverted: keypoints where a mask is not black are dropped.
        again: also process views whose two files exist; without it an interrupted run is continued.
        options: see ``hartsift.Options``; without ``norm`` descriptors are RootSIFT, as in AliceVision.
    """
    views = _views(sfm_data)
    if range_start != -1:
        if range_start < 0 or range_size < 0:
            raise ArgumentError(f"the range of {range_size} views from {range_start} on does not exist")
        views = views[range_start : range_start + range_size]
    settings: Dict[str, Any] = {"norm": "root", **options}
    found = _masks(views, masks, mask_ending)
    return extract_views(views, found, folder, settings, again=again, inverted=mask_inverted)


def _is_yes(text: str) -> bool:
    return text.lower() in ("1", "true", "on", "yes")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hartsift.alicevision",
        allow_abbrev=False,
        description="Extracts SIFT features instead of aliceVision_featureExtraction; its other options have no effect.",
    )
    parser.add_argument("-i", "--input", required=True, help="the project, an SfMData file in JSON")
    parser.add_argument("-o", "--output", required=True, help="the folder of the features")
    parser.add_argument("-d", "--describerTypes", default="sift", help="sift is the only one here")
    parser.add_argument("-p", "--describerPreset", default="normal", choices=sorted(_PRESETS))
    parser.add_argument("--maxNbFeatures", type=int, default=0, help="0: by the preset")
    parser.add_argument("--gridFiltering", type=_is_yes, default=True, help="spread the features over the picture")
    parser.add_argument("--forceCpuExtraction", type=_is_yes, default=False)
    parser.add_argument("--masksFolder")
    parser.add_argument("--maskExtension", default="png")
    parser.add_argument("--maskInvert", type=_is_yes, default=False)
    parser.add_argument("--rangeStart", type=int, default=-1)
    parser.add_argument("--rangeSize", type=int, default=1)
    parser.set_defaults(run=_run)
    return parser


def _run(given: argparse.Namespace) -> int:
    if given.describerTypes != "sift":
        raise ArgumentError(f"describerTypes is {given.describerTypes!r}: sift is the only one here")
    options: "Options" = {
        "max_features": given.maxNbFeatures or _PRESETS[given.describerPreset],
        "device": "cpu" if given.forceCpuExtraction else "auto",
    }
    if given.gridFiltering:
        options["grid"] = _GRID
    count = extract(
        given.input,
        given.output,
        range_start=given.rangeStart,
        range_size=given.rangeSize,
        masks=given.masksFolder or None,
        mask_ending=given.maskExtension,
        mask_inverted=given.maskInvert,
        **options,
    )
    print(f"{count} views: {given.output}", file=sys.stderr)
    return 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line."""
    parser = _parser()
    given, others = parser.parse_known_args(arguments)
    if others:
        print(f"{parser.prog}: without effect: {' '.join(others)}", file=sys.stderr)
    return run_parsed(parser, given)


if __name__ == "__main__":
    sys.exit(main())
