"""Features for openMVG: a pair of files for each view of a project, and their ``image_describer.json``.

>>> import hartsift.openmvg
>>> hartsift.openmvg.extract("matches/sfm_data.json", "matches", max_features=10000)

This replaces ``openMVG_main_ComputeFeatures``; ``openMVG_main_ComputeMatches`` and later steps work with its files. On the
command line, with every field of ``hartsift.Options``:

    python -m hartsift.openmvg -i matches/sfm_data.json -o matches --max-features 10000
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

from ._arguments import add_option_arguments, option_arguments, run
from ._errors import FileError
from ._options import make_options
from ._project import PathLike, View, extract_views, read_project, write_json

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._hints import Options

__all__ = ["extract"]

#: First number of cereal's types of polymorphic pointers; after a new number its name follows.
_FIRST_TYPE = 0x80000001


def _views(project: Mapping[str, Any], name: PathLike) -> List[View]:
    views = []
    for one in project["views"]:
        try:
            data = one["value"]["ptr_wrapper"]["data"]
            path = pathlib.Path(project["root_path"], data.get("local_path", ""), data["filename"])
            if not path.name:
                raise ValueError(f"{path} names no file")
            views.append(View(int(data["id_view"]), path.stem, path))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise FileError(f"{os.fspath(name)}: a view without file name or number, or no root_path: {error}") from error
    return views


def _masks(views: Sequence[View]) -> Dict[int, pathlib.Path]:
    """Masks of views: NAME_mask.png in the folder of the image, or else mask.png there."""
    masks: Dict[int, pathlib.Path] = {}
    for view in views:
        for mask in (view.path.with_name(f"{view.stem}_mask.png"), view.path.with_name("mask.png")):
            if os.path.exists(mask):
                masks.setdefault(view.number, mask)
    return masks


def _pointer(number: int, name: str, data: Mapping[str, Any]) -> Dict[str, Any]:
    """A polymorphic pointer in cereal's JSON."""
    return {
        "polymorphic_id": _FIRST_TYPE + number,
        "polymorphic_name": name,
        "ptr_wrapper": {"valid": 1, "data": data},
    }


def _describer(options: Mapping[str, Any]) -> Dict[str, Any]:
    """openMVG's description of its SIFT, with the values of these options where openMVG has them."""
    params = {
        "first_octave": options["first_octave"],
        "num_octaves": options["octaves"] or 6,
        "num_scales": options["scales"],
        "edge_threshold": options["edge"],
        "peak_threshold": options["contrast"],
        "root_sift": options["norm"] == "root",
    }
    describer = {"params": params, "bOrientation": not options["upright"]}
    return {
        "image_describer": _pointer(0, "SIFT_Image_describer", describer),
        "regions_type": _pointer(1, "SIFT_Regions", {"value0": [], "value1": []}),
    }


def extract(sfm_data: PathLike, folder: PathLike, *, again: bool = False, **options: "Unpack[Options]") -> int:
    """Writes the features of a project's views and ``image_describer.json``, and returns the number of views.

    If both files of a view exist, they belong together: when a pair is replaced, the old ``.feat`` is removed first.
    Masks are found as in openMVG: ``NAME_mask.png`` in the folder of an image, or ``mask.png``.

    Args:
        sfm_data: the project in JSON (``sfm_data.json``).
        folder: folder for the files; created if it does not exist.
        again: also process views whose two files exist; without it an interrupted run is continued.
        options: see ``hartsift.Options``; without ``norm`` descriptors are RootSIFT, as in openMVG.
    """
    views = _views(read_project(sfm_data), sfm_data)
    settings: Dict[str, Any] = {"norm": "root", **options}
    count = extract_views(views, _masks(views), folder, settings, again=again)
    write_json(pathlib.Path(folder, "image_describer.json"), _describer(make_options(settings).as_dict()))
    return count


def _run(given: argparse.Namespace) -> int:
    count = extract(given.input, given.output, again=given.force, **option_arguments(given))
    print(f"{count} views: {given.output}", file=sys.stderr)
    return 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m hartsift.openmvg", description="Extracts features for openMVG.")
    parser.add_argument("-i", "--input", required=True, help="the project, sfm_data.json")
    parser.add_argument("-o", "--output", required=True, help="the folder of the features")
    parser.add_argument("-f", "--force", action="store_true", help="also extract views whose files exist")
    add_option_arguments(parser)
    parser.set_defaults(run=_run)
    return run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
