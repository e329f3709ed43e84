"""Functions for AliceVision and openMVG: reads a project's views, and writes their feature files to a folder."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Dict, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from ._errors import ArgumentError, FileError
from ._extractor import Extractor
from ._features import write_features
from ._images import load_image
from ._reading import Reading

PathLike = Union[str, "os.PathLike[str]"]


class View(NamedTuple):
    """An image of a project.

    Attributes:
        number: number of the view.
        stem: name of the view's files without their endings.
        path: the image.
    """

    number: int
    stem: str
    path: pathlib.Path


def read_project(path: PathLike) -> Dict[str, Any]:
    """Reads a project's JSON file, which has a list of views."""
    try:
        with open(path, encoding="utf-8") as file:
            project = json.load(file)
    except (OSError, RecursionError, ValueError) as error:
        raise FileError(f"{os.fspath(path)}: cannot be read as JSON: {error}") from error
    if not isinstance(project, dict) or not isinstance(project.get("views"), list):
        raise FileError(f"{os.fspath(path)}: is no project: it has no list of views")
    return project


def extract_views(
    views: Sequence[View],
    masks: Mapping[int, pathlib.Path],
    folder: PathLike,
    options: Mapping[str, Any],
    *,
    again: bool = False,
    inverted: bool = False,
) -> int:
    """Writes STEM.feat and STEM.desc for every view that lacks one of the two, or for all.

    JPEG files are read as stored, as both programs read them. Several images are in flight at once.

    Args:
        masks: mask files by the view's number, of the pictures' size; keypoints where a mask is black are dropped.
        again: write files also for views that have both.
        inverted: keypoints where a mask is not black are dropped.

    Returns:
        Number of views for which files were written.
    """
    where = pathlib.Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    stems = [view.stem for view in views]
    if len(set(stems)) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise ArgumentError(f"several images are called {twice}, and their features would go to the same files")
    wanted = [view for view in views if again or not _is_done(where, view)]
    pairs = ((str(view.path), _mask(masks.get(view.number), inverted)) for view in wanted)
    with Extractor(**options) as extractor:
        found: Iterator[Any] = extractor._extract_each(pairs, Reading(exif=False), False)
        for view, features in zip(wanted, found):
            write_features(where / f"{view.stem}.feat", features, "openmvg")
    return len(wanted)


def check_place(path: pathlib.Path) -> None:
    """Refuses to replace a path that is not a regular file, such as a device."""
    if path.exists() and not path.is_file():
        raise FileError(f"{path}: cannot be written: is no regular file")


def write_lines(path: pathlib.Path, lines: Iterable[str]) -> None:
    """Writes a text file atomically."""
    check_place(path)
    new = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(new, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        new.replace(path)
    except (OSError, UnicodeEncodeError) as error:
        raise FileError(f"{path}: cannot be written: {error}") from error
    finally:
        new.unlink(missing_ok=True)


def write_json(path: pathlib.Path, content: Mapping[str, Any]) -> None:
    """Writes a JSON file atomically."""
    write_lines(path, [json.dumps(content, indent=4)])


def _is_done(folder: pathlib.Path, view: View) -> bool:
    return all(os.path.exists(folder / f"{view.stem}{ending}") for ending in (".feat", ".desc"))


def _mask(path: Optional[pathlib.Path], inverted: bool) -> Any:
    if path is None:
        return None
    samples = load_image(path, exif=False)
    return (samples == 0) if inverted else (samples != 0)
