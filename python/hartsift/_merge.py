"""Merges Parquet files of features to one file, or to a COLMAP database."""

from __future__ import annotations

import contextlib
import functools
import os
import posixpath
import threading
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from . import _library
from ._arrow import ROW_GROUP_IMAGES, differing_options, iterate_features, write_arguments
from ._colmap import ColmapCamera, ColmapDatabase
from ._pair_lists import geometry_of_row
from ._errors import ArgumentError, Error, FileError
from ._names import name_of_text
from ._sources import at, resolve

PathLike = Union[str, "os.PathLike[str]"]
_OPEN_ROW_GROUPS = 16
_FIRST_COLUMNS = ["image", "method", "options"]


class _Place(NamedTuple):
    """Position of an image's row in the files."""

    image: str
    file: int
    group: int
    row: int


def find_files(files: Union[PathLike, Sequence[PathLike]], filesystem: Any = None) -> List[Tuple[Any, str]]:
    """File system and path of the given Parquet files, and of those in given folders, sorted within each folder. Names
    that begin with '.' or '_' are skipped, as in other programs."""
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    found: List[Tuple[Any, str]] = []
    for place in given:
        system, path = resolve(os.fspath(place), filesystem)
        kind = system.get_file_info(at(system, path.rstrip("/") or "/")).type
        if kind == fs.FileType.File:
            found.append((system, path))
            continue
        if kind == fs.FileType.NotFound:
            raise FileError(f"{place}: there is no such file and no such folder", _library.HS_ERR_IO)
        paths = [one for one in sorted(files_below(system, path.rstrip("/"))) if one.endswith(".parquet")]
        paths = [one for one in paths if posixpath.basename(one)[0] not in "._"]
        if not paths:
            raise FileError(f"{place}: there are no Parquet files there", _library.HS_ERR_IO)
        found += [(system, one) for one in paths]
    return found


def files_below(system: Any, folder: str) -> Iterator[str]:
    """The files of a folder and of all folders below it, in no defined order."""
    if isinstance(system, fs.LocalFileSystem):  # pyarrow gives the names of files only if they are UTF-8
        yield from (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    else:
        inside = system.get_file_info(fs.FileSelector(folder, recursive=True))
        yield from (one.path for one in inside if one.type == fs.FileType.File)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Adds the name of the file to errors of pyarrow, which omits it."""
    try:
        yield
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from None
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{path}: {error}", _library.HS_ERR_IO) from error


class _Inputs:
    """The rows of several files, ordered by the bytes of the image name."""

    def __init__(self, files: List[Tuple[Any, str]]) -> None:
        self.files = files
        self._settings: Optional[Tuple[int, str, str]] = None  # settings of the first row: method, options, file
        self._group = functools.lru_cache(maxsize=_OPEN_ROW_GROUPS)(self._read_group)
        self.places: List[_Place] = []
        for number in range(len(files)):
            self._index_file(number)
        self.places.sort(key=lambda place: os.fsencode(place.image))
        for one, other in zip(self.places, self.places[1:]):
            if one.image == other.image:
                raise ArgumentError(
                    f"{one.image} occurs twice, in {files[one.file][1]} and {files[other.file][1]}: expected each "
                    "image once"
                )

    def _index_file(self, number: int) -> None:
        system, path = self.files[number]
        with naming(path), system.open_input_file(at(system, path)) as file:
            opened = pq.ParquetFile(file)
            missing = [name for name in _FIRST_COLUMNS if name not in opened.schema_arrow.names]
            if missing:
                raise ArgumentError(f"is no file of features: it has no column {missing[0]}")
            tables = [opened.read_row_group(group, columns=_FIRST_COLUMNS) for group in range(opened.num_row_groups)]
        for group, table in enumerate(tables):
            for settings in set(zip(table["method"].to_pylist(), table["options"].to_pylist())):
                self._check_settings(path, *settings)
            names = map(name_of_text, table["image"].to_pylist())
            self.places += [_Place(name, number, group, row) for row, name in enumerate(names)]

    def _check_settings(self, path: str, method: int, options: str) -> None:
        if self._settings is None:
            self._settings = method, options, path
        first_method, first_options, first_path = self._settings
        if method != first_method:
            raise ArgumentError(
                f"{path} was made by method version {method} and {first_path} by {first_method}: their features do not "
                "match as those of one do, so all must be made by one"
            )
        if options != first_options:
            raise ArgumentError(
                f"{path} was made with other options: {', '.join(differing_options(options, first_options))}; "
                f"{first_path} has {', '.join(differing_options(first_options, options))}: expected the same"
            )

    def _read_group(self, file: int, group: int) -> Any:
        system, path = self.files[file]
        with naming(path), system.open_input_file(at(system, path)) as opened:
            return pq.ParquetFile(opened).read_row_group(group)

    def tables(self) -> Iterator[Any]:
        """Yields tables of one row, one for each image."""
        for place in self.places:
            yield self._group(place.file, place.group).slice(place.row, 1)

    def batches(self) -> Iterator[Any]:
        """As ``tables``, but with many rows per table."""
        some: List[Any] = []
        for table in self.tables():
            some.append(table)
            if len(some) == ROW_GROUP_IMAGES:
                yield pa.concat_tables(some).combine_chunks()
                some = []
        if some:
            yield pa.concat_tables(some).combine_chunks()


def write_whole(system: Any, path: str, tables: Iterator[Any], schema: Any, is_quick: bool = False) -> None:
    """Writes a file under a temporary name and renames it. In object stores a file appears when it is closed. is_quick: as
    of write_arguments."""
    temporary = posixpath.join(posixpath.dirname(path), f".{posixpath.basename(path)}.{os.getpid()}.{threading.get_ident()}")
    try:
        with system.open_output_stream(at(system, temporary)) as stream, pq.ParquetWriter(
            stream, schema, **write_arguments(schema, is_quick)
        ) as out:
            for table in tables:
                out.write_table(table, row_group_size=ROW_GROUP_IMAGES)
        system.move(at(system, temporary), at(system, path))
    except BaseException as error:
        if system.get_file_info(at(system, temporary)).type == fs.FileType.File:
            system.delete_file(at(system, temporary))
        if isinstance(error, OSError) and not isinstance(error, Error):
            raise FileError(f"{path}: cannot be written, nothing of it is kept: {error}", _library.HS_ERR_IO) from error
        raise


def _table_of(system: Any, path: str) -> Any:
    with naming(path), system.open_input_file(at(system, path)) as file:
        return pq.read_table(file)


def _add_matches(database: ColmapDatabase, numbers: Dict[str, int], files: List[Tuple[Any, str]]) -> None:
    """Adds the matches, pair by pair in the order of names."""
    rows = pa.concat_tables([_table_of(system, path) for system, path in files])
    names_a, names_b = (map(name_of_text, rows[name].to_pylist()) for name in ("image_a", "image_b"))
    order = sorted(zip(map(os.fsencode, names_a), map(os.fsencode, names_b), range(len(rows))))
    pairs = {frozenset(one[:2]) for one in order}
    if len(pairs) != len(order):
        raise ArgumentError(f"{len(order) - len(pairs)} pairs of images have matches twice: expected each pair once")
    methods = {row["method"] for row in rows.select(["method", "error"]).to_pylist() if row["error"] is None}
    if len(set(rows["options"].to_pylist())) > 1 or len(methods) > 1:
        raise ArgumentError("the matches were made with different options or method versions: expected the same")
    for _, _, index in order:
        row = rows.slice(index, 1).to_pylist()[0]
        if row["error"] is not None:
            continue
        names = name_of_text(row["image_a"]), name_of_text(row["image_b"])
        for name in names:
            if name not in numbers:
                raise ArgumentError(f"there are matches of {name}, but no features")
        database.add_matches(numbers[names[0]], numbers[names[1]], *geometry_of_row(row))


class _Cameras(NamedTuple):
    """How cameras of a database are chosen; see ``ColmapDatabase``."""

    share: Union[bool, str]
    camera: Union[ColmapCamera, int, None]


def _merge_into_database(
    inputs: _Inputs, output: str, matches: List[Tuple[Any, str]], exif: bool, cameras: _Cameras
) -> None:
    numbers: Dict[str, int] = {}
    with ColmapDatabase(output, share_cameras=cameras.share) as database:
        for table in inputs.tables():
            row, features = next(iterate_features(table))
            if features is None:
                continue
            focal = row.get("focal_length") or 0.0
            number = database.add_image(row["image"], features, cameras.camera, exif=exif, focal_length=focal)
            numbers[row["image"]] = number
            place = [row[name] for name in ("latitude", "longitude", "altitude") if row.get(name) is not None]
            if len(place) == 3 and database.read_position(number) is None:  # COLMAP accepts no position without altitude
                database.set_position(number, place)
        if matches:
            _add_matches(database, numbers, matches)


def merge(
    inputs: Union[PathLike, Sequence[PathLike]],
    output: PathLike,
    *,
    matches: Union[PathLike, Sequence[PathLike]] = (),
    exif: bool = False,
    share_cameras: Union[bool, str] = False,
    camera: Union[ColmapCamera, int, None] = None,
    filesystem: Any = None,
) -> Tuple[int, int]:
    """Merges Parquet files of features in the order of the images' names. The result does not depend on how the images
    were divided among the files.

    Args:
        inputs: files, or folders of files as Ray and Spark write them, by path or URI.
        output: NAME.parquet, or NAME.db for a local COLMAP database. It appears complete or not at all.
        matches: for a database: files of ``hartsift.ray.match_pairs``, or folders of such files.
        exif: add features of photographs that were rotated by their EXIF orientation to a database; see
            ``ColmapDatabase.add_image``.
        share_cameras: for a database; see ``ColmapDatabase``.
        camera: for a database: camera of all images, or the number of an existing camera; see
            ``ColmapDatabase.add_image``.
        filesystem: pyarrow's file system of the inputs and of a Parquet output.

    Returns:
        Number of images, and number of files.

    Raises:
        hartsift.ArgumentError: an image appears twice, or files have different options or method versions.
    """
    found = _Inputs(find_files(inputs, filesystem))
    name = os.fspath(output)
    if name.endswith(".db"):
        _merge_into_database(found, name, find_files(matches, filesystem), exif, _Cameras(share_cameras, camera))
    elif share_cameras is not False or camera is not None:
        raise ArgumentError("share_cameras and camera are for databases: expected a name that ends in .db")
    elif name.endswith(".parquet"):
        system, path = resolve(name, filesystem)
        first = next(found.tables(), None)
        if first is None:
            raise ArgumentError("there are no images to merge")
        write_whole(system, path, found.batches(), first.schema)
    else:
        raise ArgumentError(f"{name}: expected a name that ends in .parquet or .db")
    return len(found.places), len(found.files)
