"""Matches as tracks in a Bundler file, the only format of features that Metashape imports.

>>> import hartsift.bundler
>>> tracks = hartsift.bundler.build_tracks(features, matched)      # matched: of hartsift.match_many, say
>>> hartsift.bundler.write("bundle.out", names, features, tracks)
>>> hartsift.bundler.convert("database.db", "bundle.out")                            # what COLMAP's database has

The cameras and points in the file are placeholders: the program aligns the cameras from the tracks. On the command
line: ``python -m hartsift.bundler database.db -o bundle.out``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import sqlite3
import sys
from typing import TYPE_CHECKING, Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ._arguments import run
from ._colmap import ColmapDatabase
from ._errors import ArgumentError, FileError
from ._features import Features
from ._matching import Matches, index_pairs
from ._pairs import PairMatches
from ._project import check_place, write_lines

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Tracks", "build_tracks", "convert", "write"]

PathLike = Union[str, "os.PathLike[str]"]
#: A pair of images by their numbers, and index pairs [M, 2] of its matched features.
MatchedPair = Tuple[int, int, "Union[Matches, npt.ArrayLike]"]

#: COLMAP's number of a pair of images is 2147483647 * lower + higher.
_PAIR_BASE = 2147483647


class Tracks(NamedTuple):
    """Points that several images see.

    Attributes:
        images, features: int64 [K], members of the tracks, track by track, ordered by image within a track.
        starts: int64 [T + 1]; the members of track t are ``starts[t]`` up to ``starts[t + 1]``.
        dropped: number of tracks that were left out because they contain two features of one image, so that one of
            their matches is wrong.
    """

    images: "npt.NDArray[np.int64]"
    features: "npt.NDArray[np.int64]"
    starts: "npt.NDArray[np.int64]"
    dropped: int

    def __len__(self) -> int:
        return len(self.starts) - 1


def _first_at_place(features: Features) -> "npt.NDArray[np.int64]":
    """For each feature the first feature at its position: features that differ only in orientation are one point."""
    places = np.ascontiguousarray(features.points).view(np.uint64).reshape(-1)
    _, first, inverse = np.unique(places, return_index=True, return_inverse=True)
    index: npt.NDArray[np.int64] = first[inverse.reshape(-1)]
    return index


def _edges(
    matched: "Iterable[Union[PairMatches, MatchedPair]]",
    offsets: "npt.NDArray[np.int64]",
    firsts: "Sequence[npt.NDArray[np.int64]]",
) -> "npt.NDArray[np.int64]":
    """Matches [E, 2] as numbers that count the features of all images. For verified pairs only the inliers."""
    rows = [np.empty((0, 2), np.int64)]
    for one in matched:
        if isinstance(one, PairMatches):
            first, second, pairs = one.first, one.second, index_pairs(one.matches)
            pairs = pairs if one.geometry is None else pairs[one.geometry.inliers]
        else:
            first, second, pairs = one[0], one[1], index_pairs(one[2])
        for image, column in ((first, pairs[:, 0]), (second, pairs[:, 1])):
            if not 0 <= image < len(offsets) - 1:
                raise ArgumentError(f"a pair names image {image} of {len(offsets) - 1}")
            if len(column) and not 0 <= int(column.min()) <= int(column.max()) < offsets[image + 1] - offsets[image]:
                raise ArgumentError(f"a match of images {first} and {second} points beyond the features of image {image}")
        rows.append(np.stack([offsets[first] + firsts[first][pairs[:, 0]], offsets[second] + firsts[second][pairs[:, 1]]], 1))
    return np.concatenate(rows)


def _roots(count: int, edges: "npt.NDArray[np.int64]") -> "npt.NDArray[np.int64]":
    """For each node the smallest node of its connected component."""
    roots = np.arange(count, dtype=np.int64)
    while True:
        least = np.minimum(roots[edges[:, 0]], roots[edges[:, 1]])
        before = roots.copy()
        # both ends and their parents get the smallest label; then every node gets the parent of its parent
        for column in (edges[:, 0], edges[:, 1]):
            np.minimum.at(roots, before[column], least)
            np.minimum.at(roots, column, least)
        roots = roots[roots]
        if np.array_equal(roots, before):
            return roots


def build_tracks(
    features: Sequence[Features], matched: "Iterable[Union[PairMatches, MatchedPair]]", least: int = 2
) -> Tracks:
    """Joins matches to tracks: features connected by matches, or at the same position, are one point.

    Args:
        features: features of each image.
        matched: results of ``match_many``, whose inliers are used if they were verified; or tuples of two image numbers
            and index pairs.
        least: minimum number of images of a track.
    """
    offsets = np.cumsum([0, *map(len, features)])
    edges = _edges(matched, offsets, [_first_at_place(one) for one in features])
    nodes = np.unique(edges)
    edges = np.searchsorted(nodes, edges)
    roots = _roots(len(nodes), edges)
    order = np.argsort(roots, kind="stable")
    nodes, roots = nodes[order], roots[order]
    images = np.searchsorted(offsets, nodes, side="right") - 1
    numbers = np.cumsum(np.concatenate([[False], roots[1:] != roots[:-1]])) if len(roots) else roots
    lengths = np.bincount(numbers)
    twice = np.zeros(len(lengths), bool)
    twice[numbers[1:][(images[1:] == images[:-1]) & (numbers[1:] == numbers[:-1])]] = True
    kept = ~twice & (lengths >= least)
    members = kept[numbers]
    starts = np.concatenate([[0], np.cumsum(lengths[kept])])
    return Tracks(images[members], (nodes - offsets[images])[members], starts, int(twice.sum()))


def write(
    path: PathLike,
    names: Sequence[str],
    features: Sequence[Features],
    tracks: Tracks,
    focal_lengths: Optional[Sequence[float]] = None,
) -> None:
    """Writes ``path``, a Bundler file of version 0.3, and next to it ``path.list.txt`` with the names of the images.

    Positions have their origin in the middle of the image, with y upwards, as in Bundler. Each file is written
    atomically.

    Args:
        names: names of the images, as the importing program knows them.
        features: features of each image, with ``image_size``.
        tracks: result of ``build_tracks``.
        focal_lengths: pixels; None: 1.2 times the larger side, as COLMAP assumes.
    """
    if not len(names) == len(features) or (focal_lengths is not None and len(focal_lengths) != len(names)):
        raise ArgumentError(f"{len(names)} names for {len(features)} images: expected one for each, and a focal length")
    broken = [name for name in names if "\n" in name or "\r" in name]
    if broken:
        raise ArgumentError(f"the name {broken[0]!r} has a line break, and the list of names has one name a line")
    unknown = [name for name, one in zip(names, features) if min(one.image_size) < 1]
    if unknown:
        raise ArgumentError(f"the size of {unknown[0]} is not known: features of a file that does not say it")
    target = pathlib.Path(path)
    check_place(target)
    focal = focal_lengths or [1.2 * max(one.image_size) for one in features]
    write_lines(target.with_name(f"{target.name}.list.txt"), names)
    write_lines(target, _lines(features, tracks, focal))


def _lines(features: Sequence[Features], tracks: Tracks, focal: Sequence[float]) -> Iterable[str]:
    yield "# Bundle file v0.3"
    yield f"{len(features)} {len(tracks)}"
    for length in focal:
        yield f"{length:.9g} 0 0\n1 0 0\n0 1 0\n0 0 1\n0 0 0"
    places = [_centred(one) for one in features]
    for start, end in zip(tracks.starts[:-1].tolist(), tracks.starts[1:].tolist()):
        seen = zip(tracks.images[start:end].tolist(), tracks.features[start:end].tolist())
        views = " ".join(f"{i} {k} {places[i][k, 0]:.9g} {places[i][k, 1]:.9g}" for i, k in seen)
        yield f"0 0 0\n128 128 128\n{end - start} {views}"


def _centred(features: Features) -> "npt.NDArray[np.float64]":
    width, height = features.image_size
    points = features.points.astype(np.float64) + 0.5  # Bundler's origin is the corner of the first pixel
    centred: npt.NDArray[np.float64] = np.stack([points[:, 0] - width / 2, height / 2 - points[:, 1]], axis=1)
    return centred


def convert(database: PathLike, path: PathLike, least: int = 2) -> Tracks:
    """Writes the verified matches of a COLMAP database, hartsift's or COLMAP's own, as a Bundler file.

    Args:
        database: the database's file.
        path: the Bundler file; ``path.list.txt`` gets the names.
        least: minimum number of images of a track.

    Returns:
        The tracks; images are in the order of their numbers in the database.
    """
    with ColmapDatabase(database, read_only=True) as source:
        images = list(source.images())
        features = [source.read_features(image.image_id) for image in images]
    focal = [image.camera.parameters[0] for image in images]
    places = {image.image_id: i for i, image in enumerate(images)}
    tracks = build_tracks(features, _verified(database, places), least)
    write(path, [image.name for image in images], features, tracks, focal)
    return tracks


def _verified(database: PathLike, places: "dict[int, int]") -> Iterable[MatchedPair]:
    with contextlib.closing(sqlite3.connect(pathlib.Path(database).absolute().as_uri() + "?mode=ro", uri=True)) as sql:
        # leaves out COLMAP's degenerate pairs and watermarks
        query = "SELECT pair_id, data FROM two_view_geometries WHERE rows > 0 AND config NOT IN (1, 7) ORDER BY pair_id"
        try:
            rows: List[Any] = sql.execute(query).fetchall()
        except sqlite3.Error as error:
            raise FileError(f"{os.fspath(database)}: its verified pairs cannot be read: {error}") from error
    if not rows:
        raise FileError(f"{database}: has no verified matches: hartsift match --database makes them")
    for number, data in rows:
        try:
            pairs = np.frombuffer(data, "<u4").reshape(-1, 2)
            first, second = places[number // _PAIR_BASE], places[number % _PAIR_BASE]
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"{os.fspath(database)}: the verified pair {number} is damaged, or of no image") from error
        yield first, second, pairs


def _run(given: argparse.Namespace) -> int:
    tracks = convert(given.database, given.output, given.least)
    print(f"{len(tracks)} tracks, {tracks.dropped} dropped: {given.output}", file=sys.stderr)
    return 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m hartsift.bundler", description="Writes the verified matches of a COLMAP database as tracks."
    )
    parser.add_argument("database", help="database.db, verified: by hartsift match --database, or by COLMAP")
    parser.add_argument("-o", "--output", required=True, help="bundle.out; the names of the images go to bundle.out.list.txt")
    parser.add_argument("--least", type=int, default=2, metavar="N", help="leave out tracks of fewer images; 2")
    parser.set_defaults(run=_run)
    return run(parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
