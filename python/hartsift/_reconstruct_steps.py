"""Steps of a reconstruction in COLMAP's database: features, cameras, pairs and matches by the command, poses by pycolmap."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _library
from ._errors import ArgumentError, DeviceError, FileError

ALL_PAIRS_MAX = 300  #: largest number of photographs of which all pairs are matched
_NEIGHBOURS = 40  # pairs per image in a larger collection
_GPS_SHARE = 0.9  # share of images with a position from which on positions choose the pairs
_SEQUENCE_SHARE = 0.95  # share of equal steps between the numbers in names from which on images are frames of a video
_SEED = 1
_ENOUGH = 0.9  # share of images with a pose at which no second mapper runs
_VECTORS = re.compile(r"(retrieval:\d+,)(.+\.[nN][pP][yY])", re.DOTALL)  # K, and the file of vectors
_NUMBERED = re.compile(r"(.*?)(\d+)\.[^.]*", re.DOTALL)
_MODEL = ("cameras.bin", "images.bin", "points3D.bin")  # files without which there is no model
#: Names in folders of results of versions that stored no names; pictures are named as the photographs.
_EARLIER = {
    "sparse": re.compile(r"\d+/(cameras|frames|images|points3D|rigs)\.bin"),
    "undistorted": re.compile(r"sparse/0/(cameras|frames|images|points3D|rigs)\.bin|stereo/(fusion|patch-match)\.cfg|"
                              r"run-colmap-(geo|photo)metric\.sh"),
}
_EMPTY = re.compile(r"stereo/(consistency_graphs|depth_maps|normal_maps)(/|$)")


class Counts(NamedTuple):
    """Numbers of rows in the database.

    Attributes:
        images: images with features.
        pairs: verified pairs.
        known_focal_lengths: images with a focal length from EXIF.
        positions: images with a GPS position from EXIF.
    """

    images: int
    pairs: int
    known_focal_lengths: int
    positions: int


# ------------------------------------------------------------------ the command


def _forward_lines(stream: Any, say: Callable[[str], None], last: List[str], is_stopped: threading.Event) -> None:
    """Passes all lines on except the last, which may be the reason of a failure."""
    for line in stream:
        text = re.sub("^hartsift [a-z]+: ", "", line.decode("utf-8", "surrogateescape").rstrip())
        for earlier in last:
            if not is_stopped.is_set():  # the command's advice on how to continue does not apply here
                say(earlier)
        last[:] = [text]


def extraction_options(given: Mapping[str, Any]) -> List[str]:
    """Returns the options of ``hartsift batch`` for settings of a reconstruction."""
    options = ["--profile", "colmap", "--camera-model", given["camera_model"]]
    options += ["--max-features", str(given["max_features"])] if given["max_features"] else []
    options += ["--camera-params", ",".join(map(repr, given["camera_params"]))] if given["camera_params"] else []
    options += [f"--{name}" for name in ("affine", "dsp") if given[name]]
    return options + (["--masks", given["masks"]] if given["masks"] else []) + device_options(given)


def device_options(given: Mapping[str, Any]) -> List[str]:
    """Returns the options of device and threads."""
    return ["--device", given["device"], "--threads", str(given["threads"])]


def check_settings(given: Mapping[str, Any]) -> None:
    """Refuses wrong settings before anything is done or removed. The command itself checks its options: it extracts no
    images, and finds no database to match."""
    if not 0 < given["frames_per_second"] < 1000:
        raise ArgumentError(f"frames_per_second is {given['frames_per_second']}, expected more than 0 and less than 1000")
    if given["masks"] is not None and not os.path.isdir(given["masks"]):
        raise ArgumentError(f"--masks '{given['masks']}': expected a folder with NAME.png for the image NAME")
    for rule in given["pairs"]:
        if is_file_rule(rule):
            _names_of_pairs(rule)
        for path in () if is_file_rule(rule) else _files_of(rule):
            if not os.path.isfile(path):
                raise ArgumentError(f"--pairs '{rule}': there is no file '{path}'; expected vectors, and the name of each one's photograph")
    _mappers(pycolmap_module(), given["mapper"])
    with tempfile.TemporaryDirectory() as folder:
        options = extraction_options({**given, "device": "cpu" if given["device"] == "auto" else given["device"]})
        run_command(["batch", os.devnull, "-o", os.path.join(folder, "none.db"), *options], -1, lambda line: None, lambda count: None)
        for rule in given["pairs"] or ["all"]:
            tracks = ["--tracks", str(given["tracks"])] if given["tracks"] else []
            with contextlib.suppress(FileError):  # there is no database
                run_command(["match", "--database", os.path.join(folder, "absent.db"), "--pairs", rule, *tracks], -1, lambda line: None,
                            lambda count: None)


def _link_or_copy(source: pathlib.Path, target: pathlib.Path) -> None:
    try:
        target.symlink_to(source)
    except OSError:  # Windows allows links to some users only
        shutil.copyfile(source, target)


def check_extraction(given: Mapping[str, Any], images: pathlib.Path, names: Sequence[str]) -> None:
    """Refuses settings with which no two photographs give features, such as masks that cannot be read. Tries a few of them
    in a database of its own."""
    said: List[str] = []
    with tempfile.TemporaryDirectory() as folder:
        photographs, database = pathlib.Path(folder, "photographs"), pathlib.Path(folder, "trial.db")
        done, count = 0, 2
        while done < len(names):
            for name in names[done : done + count]:
                (photographs / name).parent.mkdir(parents=True, exist_ok=True)
                _link_or_copy(images.absolute() / name, photographs / name)
            said.clear()
            run_command(["batch", str(photographs), "-o", str(database), "--resume", "--replace", *extraction_options(given)], -1, said.append,
                        lambda number: None)
            if len(names_in(database)) >= 2:
                return
            done, count = done + count, 4 * count
    reason = said[0].replace(f"{database}: ", "").replace(str(photographs), str(images)) if said else "no features"
    raise FileError(f"{images}: fewer than two photographs give features with these settings, and the earlier results stay: {reason}")


def _failed_image(record: bytes) -> List[str]:
    """Returns the name in a record of hartsift batch about an image that failed; empty for other records."""
    if not record.startswith(b'{"image"') or b'"status": "HS_OK"' in record:
        return []
    return [str(json.loads(record.decode("utf-8", "surrogateescape"))["image"])]


def _ended_early(summary: bytes) -> bool:
    """Returns whether the summary of hartsift batch lacks images that it did not come to."""
    counts = json.loads(summary)["summary"]
    return "done" in counts and counts["done"] + counts["kept"] + counts["failed"] < counts["images"]


def run_command(arguments: Sequence[str], lock: int, say: Callable[[str], None], count: Callable[[int], None]) -> List[str]:
    """Runs the command with --json. Images that fail are messages. An interruption stops it in order, so that the next run
    continues.

    Args:
        arguments: arguments of the command.
        lock: descriptor that the command inherits; -1: none.
        say: called with each line of its messages.
        count: called with the number of records so far.

    Returns:
        Names of the images that failed.
    """
    failed: List[str] = []
    program = _library.command_path()
    # The command has its own process group, so that a terminal's Ctrl-C reaches it only once, through this process.
    apart: Dict[str, Any] = {"start_new_session": True, "pass_fds": [lock] if lock >= 0 else []}
    stop: int = signal.SIGINT
    if sys.platform == "win32":
        apart, stop = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}, signal.CTRL_BREAK_EVENT
    with subprocess.Popen([program, *arguments, "--json", "-q"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **apart) as running:
        assert running.stdout is not None
        last: List[str] = []
        is_stopped = threading.Event()
        forwarding = threading.Thread(target=_forward_lines, args=(running.stderr, say, last, is_stopped), daemon=True)
        forwarding.start()
        try:
            record = b""
            for number, record in enumerate(running.stdout, 1):
                count(number)
                failed += _failed_image(record)
            status = running.wait()
        except BaseException:
            is_stopped.set()
            running.send_signal(stop)
            running.wait()
            raise
        forwarding.join()
    if status == 0 or (status == 1 and record.startswith(b'{"summary"') and not _ended_early(record)):  # 1: some images failed
        for text in last:
            say(text)
        return failed
    reason = last[0].replace("; stopped, --resume continues", "; the same command continues") if last else f"hartsift {arguments[0]} ended with status {status}"
    if status == 3:
        raise DeviceError(reason, _library.HS_ERR_NO_DEVICE)
    raise (ArgumentError if status == 2 else FileError)(reason)


# ------------------------------------------------------------------ the database


@contextlib.contextmanager
def _connection(database: pathlib.Path) -> Iterator[sqlite3.Connection]:
    """One transaction."""
    try:
        with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection, connection:
            connection.text_factory = os.fsdecode
            yield connection
    except sqlite3.Error as error:
        raise FileError(f"{database}: {error}; delete it, and the next run makes it again") from error


def count_rows(database: pathlib.Path) -> Counts:
    """Counts the rows on which the mapper and the choice of pairs depend."""
    with _connection(database) as connection:
        def count(query: str) -> int:
            return int(connection.execute(query).fetchone()[0])

        return Counts(
            count("SELECT count(*) FROM keypoints WHERE rows > 0"),
            count("SELECT count(*) FROM two_view_geometries WHERE rows > 0 AND config > 1"),
            count("SELECT count(*) FROM images JOIN cameras USING (camera_id) WHERE prior_focal_length"),
            count("SELECT count(*) FROM pose_priors"),
        )


def names_in(database: pathlib.Path) -> List[str]:
    """Returns the names of the images; none if the database was never written."""
    with _connection(database) as connection:
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'images'").fetchone()[0] == 0:
            return []
        return [name for (name,) in connection.execute("SELECT name FROM images ORDER BY image_id")]


def digest_of(database: pathlib.Path, names: Sequence[str]) -> str:
    """Returns a digest of all rows that a mapper of these images reads. It does not depend on the order of rows."""
    digest = hashlib.sha256(b"".join(os.fsencode(name) + b"\0" for name in names))
    queries = ("SELECT image_id, name, camera_id FROM images ORDER BY image_id",
               "SELECT camera_id, model, width, height, params, prior_focal_length FROM cameras ORDER BY camera_id",
               "SELECT image_id, rows, data FROM keypoints ORDER BY image_id",
               "SELECT pair_id, rows, data, config, F, E, H FROM two_view_geometries ORDER BY pair_id")
    with _connection(database) as connection:
        for query in queries:
            for row in connection.execute(query):
                for value in row:
                    data = value if isinstance(value, bytes) else os.fsencode(str(value))
                    digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


def _camera_key(rule: str, row: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Returns the key of an image; images with equal keys share a camera."""
    image, name, _, model, width, height, parameters, is_known = row
    if rule == "file":
        return (image,)
    folder = os.path.dirname(name)
    if rule == "auto":
        return (model, width, height, parameters if is_known else folder)
    return (model, width, height, folder if rule == "folder" else None)


def share_cameras(database: pathlib.Path, rule: str) -> int:
    """Lets images share cameras, and removes cameras that no image uses.

    Args:
        database: COLMAP's, in which each new image has its own camera.
        rule: "single": images of one size; "folder": of one size in one folder; "file": none; "auto": of one size and
            one focal length in EXIF, without EXIF of one size in one folder.

    Returns:
        Number of cameras.
    """
    first: Dict[Tuple[Any, ...], int] = {}
    with _connection(database) as connection:
        rows = connection.execute(
            "SELECT image_id, name, camera_id, model, width, height, params, prior_focal_length "
            "FROM images JOIN cameras USING (camera_id) ORDER BY image_id").fetchall()
        for row in rows:
            camera = first.setdefault(_camera_key(rule, row), row[2])
            if camera != row[2]:
                connection.execute("UPDATE images SET camera_id = ? WHERE image_id = ?", [camera, row[0]])
        connection.execute("DELETE FROM cameras WHERE camera_id NOT IN (SELECT camera_id FROM images)")
    return len(first)


def count_doubtful(database: pathlib.Path) -> int:
    """Returns the number of verified pairs that the command left out."""
    with _connection(database) as connection:
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'hartsift_doubtful_pairs'").fetchone()[0] == 0:
            return 0
        return int(connection.execute("SELECT count(*) FROM hartsift_doubtful_pairs WHERE reason != 'short tracks'").fetchone()[0])


def forget_pairs(database: pathlib.Path) -> None:
    """Removes all matches."""
    with _connection(database) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in ("matches", "two_view_geometries", "hartsift_doubtful_pairs", "hartsift_guided"):
            if table in tables:
                connection.execute(f"DELETE FROM {table}")


# ------------------------------------------------------------------ pairs


def is_file_rule(rule: str) -> bool:
    """Returns whether a rule is the name of a file of pairs."""
    return rule != "all" and re.match("(sequential|retrieval|spatial):", rule) is None


def _files_of(rule: str) -> List[str]:
    """Returns the files of a rule: a file of pairs, or the vectors of retrieval:K,FILE.npy and the names of their images."""
    if is_file_rule(rule):
        return [rule]
    found = _VECTORS.fullmatch(rule)
    return [] if found is None else [found.group(2), found.group(2)[:-4] + ".txt"]


def full_rule(rule: Union[str, "os.PathLike[str]"]) -> str:
    """Returns a rule, its file by its absolute path."""
    text = os.fspath(rule)
    found = _VECTORS.fullmatch(text)
    if found is not None:
        return found.group(1) + os.path.abspath(found.group(2))
    return os.path.abspath(text) if is_file_rule(text) else text


def pairs_key(rule: str) -> str:
    """Returns a rule, with the digests of its files."""
    return " ".join([rule, *(digest_of_file(pathlib.Path(path)) for path in _files_of(rule))])


def _names_of_pairs(path: str) -> List[Tuple[str, str]]:
    """Returns the pairs of a file, in which a space or a tab is between two names."""
    if not os.path.isfile(path):
        raise ArgumentError(f"--pairs '{path}': there is no such file; expected all, sequential:N, spatial:METRES,N, retrieval:K or a "
                            "file of pairs")
    try:
        text = pathlib.Path(path).read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise FileError(f"--pairs '{path}': cannot be read: {error.strerror}") from error
    found = []
    for number, line in enumerate(re.split("\r\n|[\r\n]", text), 1):
        if line and not line.startswith("#"):
            first, separator, second = line.partition("\t" if "\t" in line else " ")
            if not separator:
                raise ArgumentError(f"--pairs '{path}', line {number}: has one name, '{line}': expected two, with a space or a tab between")
            found.append((first, second))
    if not found:
        raise ArgumentError(f"--pairs '{path}': has no pairs: expected two names a line, with a space or a tab between")
    return found


def check_pairs(rules: Sequence[str], names: Sequence[str]) -> None:
    """Refuses files of pairs that name no two of the photographs."""
    known = set(names)
    for rule in filter(is_file_rule, rules):
        pairs = _names_of_pairs(rule)
        if not any(first != second and first in known and second in known for first, second in pairs):
            raise ArgumentError(f"--pairs '{rule}': none of its pairs is of two of the photographs, such as '{names[0]}' and '{names[1]}'; "
                                f"its first is '{pairs[0][0]}' and '{pairs[0][1]}'")


def are_numbered_frames(names: Sequence[str]) -> bool:
    """Returns whether the names differ in a number that nearly always grows by the same step, such as frame_0001.png."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    parts = [(one.group(1), int(one.group(2))) for one in found if one is not None]
    if len(parts) < len(names) or len(parts) < 3 or len({stem for stem, _ in parts}) > 1:
        return False
    numbers = sorted(number for _, number in parts)
    steps = [later - earlier for earlier, later in zip(numbers, numbers[1:])]
    usual = sorted(steps)[len(steps) // 2]
    return steps.count(usual) >= _SEQUENCE_SHARE * len(steps)


def choose_pairs(names: Sequence[str], counts: Counts, is_video: bool) -> Tuple[List[str], str]:
    """Returns the rules that choose the pairs, as values of ``hartsift match --pairs``, and the reason for the choice."""
    if len(names) <= ALL_PAIRS_MAX:
        return ["all"], f"{ALL_PAIRS_MAX} photographs or fewer"
    # A photographer's files are numbered too, but have the lens's focal length.
    if is_video or (counts.known_focal_lengths == 0 and are_numbered_frames(names)):
        return ["sequential:10", "retrieval:20"], "frames of a video"
    if counts.positions >= _GPS_SHARE * len(names):
        rules = [f"spatial:1000,{_NEIGHBOURS}"]
        rules += ["retrieval:20"] if counts.positions < len(names) else []
        return rules, f"{counts.positions} of {len(names)} have a GPS position"
    return [f"retrieval:{_NEIGHBOURS}"], "no order and no positions"


def pairs_at_most(rule: str, images: int) -> int:
    """Returns the maximum number of pairs that a rule gives; for a file, its number of lines."""
    every = images * (images - 1) // 2
    found = re.fullmatch(r"(?:sequential|retrieval):(\d+)(,quadratic)?|spatial:[^,]*,(\d+)", _VECTORS.sub(r"\1", rule).rstrip(","))
    if found is not None:
        return min(every, images * int(found.group(1) or found.group(3)) * (2 if found.group(2) else 1))
    try:
        with open(rule, encoding="utf-8", errors="replace") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return every


# ------------------------------------------------------------------ poses


class MapperOptions(NamedTuple):
    """Options of the mapper.

    Attributes:
        names: images that it may use.
        mapper: "incremental", "global", or "auto": the global one, and where it leaves out a tenth of the images also the
            incremental one; the larger model stays.
        threads: number of threads; 0: all cores.
        are_cameras_known: whether the cameras are not changed.
    """

    names: Sequence[str]
    mapper: str
    threads: int
    are_cameras_known: bool


def pycolmap_module() -> Any:
    """pycolmap, quiet."""
    try:
        module = importlib.import_module("pycolmap")
    except ImportError as error:
        reason = f"the mapper is pycolmap's, which does not load ({error}): pip install pycolmap"
        raise ModuleNotFoundError(reason, name="pycolmap") from error
    with contextlib.suppress(AttributeError):
        module.logging.minloglevel = module.logging.Level.FATAL.value  # a failure raises an exception or gives no model
    handler = signal.getsignal(signal.SIGTERM)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # in place of the handler of pycolmap's, which prints a stack
    return module


def _run_mapper(
    module: Any, mapper: str, options: MapperOptions, places: Tuple[str, str, str], registered: Callable[[int], None]
) -> List[Any]:
    """Returns the models, the largest first. places: paths of database, images and output."""
    settings = module.IncrementalPipelineOptions() if mapper == "incremental" else module.GlobalPipelineOptions()
    settings.num_threads, settings.random_seed, settings.image_names = options.threads or -1, _SEED, list(options.names)
    if mapper == "global":
        if options.are_cameras_known:
            adjustment = settings.mapper.bundle_adjustment
            adjustment.refine_focal_length = adjustment.refine_extra_params = False
        found = module.global_mapping(*places, settings)
    else:
        if options.are_cameras_known:
            settings.ba_refine_focal_length = settings.ba_refine_extra_params = False
        numbers = itertools.count(2)  # the first two images are not reported
        found = module.incremental_mapping(*places, settings, next_image_callback=lambda: registered(next(numbers)))
    models = sorted(found.values(), key=lambda one: (-one.num_reg_images(), -one.num_points3D()))
    return [one for one in models if one.num_reg_images() > 1]


def _mappers(module: Any, wanted: str) -> List[str]:
    """Returns the mappers to try, in this order."""
    has_global = hasattr(module, "global_mapping")
    if wanted == "global" and not has_global:
        raise ModuleNotFoundError(f"pycolmap {module.__version__} has no global mapper: pip install -U pycolmap", name="pycolmap")
    return [wanted] if wanted != "auto" else [*(["global"] if has_global else []), "incremental"]


def model_digests(folder: pathlib.Path) -> Dict[str, str]:
    """Returns the digest of each file of a model; empty if one is missing."""
    found = {path.name: digest_of_file(path) for path in sorted(folder.glob("*.bin"))}
    return found if found.keys() >= set(_MODEL) else {}


def _holds_its_records(path: pathlib.Path, head: int, count: "struct.Struct", item: int) -> bool:
    """Returns whether a file of a model is as long as its counts say. A record has `head` bytes, in images.bin a name, a
    count, and as many items of `item` bytes."""
    data = path.read_bytes()
    at = 8
    try:
        for _ in range(struct.unpack_from("<Q", data)[0]):
            at = data.index(0, at + head) + 1 if path.name == "images.bin" else at + head
            at += count.size + item * count.unpack_from(data, at)[0]
    except (struct.error, ValueError):  # the file ends before
        return False
    return at == len(data)


def check_changed(folder: pathlib.Path) -> None:
    """Refuses a model that its user changed if its files end too early: pycolmap would use up the memory."""
    wide, narrow = struct.Struct("<Q"), struct.Struct("<I")
    for name, head, count, item in (("images.bin", 64, wide, 24), ("points3D.bin", 43, wide, 8), ("frames.bin", 64, narrow, 16)):
        path = folder / name
        if path.exists() and not _holds_its_records(path, head, count, item):
            raise FileError(f"{path}: was changed after an earlier run, and is damaged: remove {folder}, and the same command makes it again")


def read_model(folder: pathlib.Path) -> Any:
    """Returns the model of a folder, which its user may have changed."""
    try:
        model = pycolmap_module().Reconstruction(str(folder))
        if (folder / "cameras.bin").stat().st_size != 8 + sum(24 + 8 * len(camera.params) for camera in model.cameras.values()):
            raise ValueError("cameras.bin is damaged")  # pycolmap reads zeros where the file ends
        if model.num_reg_images() == 0:
            raise ValueError("it has no images")
    except (MemoryError, OSError, RuntimeError, ValueError, IndexError) as error:
        raise FileError(f"{folder}: cannot be read: {error}; remove this folder, and the same command makes it again") from error
    return model


def _check_written(model: Any, folder: pathlib.Path) -> None:
    """Refuses a model that is not completely on disk: pycolmap does not report a full disk."""
    points = sum(51 + 8 * point.track.length() for point in model.points3D.values())
    images = sum(73 + len(image.name.encode()) + 24 * image.num_points2D() for image in model.images.values())
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.bin")}
    if sizes.get("points3D.bin") != 8 + points or sizes.get("images.bin") != 8 + images or min(sizes.values()) <= 8:
        raise OSError(errno.ENOSPC, "the model could not be written completely: is the disk full?")


def estimate_poses(
    database: pathlib.Path, images: pathlib.Path, folder: pathlib.Path, options: MapperOptions, registered: Callable[[int], None],
    written: Callable[[Dict[str, str]], None],
) -> str:
    """Writes the models into numbered folders, the largest as 0.

    Args:
        database: COLMAP's database, which is not changed.
        images: folder of the photographs.
        folder: folder for the models, which must be absent or empty.
        options: options of the mapper.
        registered: the incremental mapper calls it with the number of images that have a pose.
        written: called with the names and digests of the files in the folder, before they are there.

    Returns:
        Name of the mapper; "" if there is no model.
    """
    module = pycolmap_module()
    work = unfinished(folder)
    shutil.rmtree(work, ignore_errors=True)
    models: List[Any] = []
    used = ""
    try:
        for mapper in _mappers(module, options.mapper):
            (work / mapper).mkdir(parents=True)
            copy = work / "database.db"
            shutil.copyfile(database, copy)  # pycolmap adds tables to the database that it opens
            found = _run_mapper(module, mapper, options, (str(copy), str(images), str(work / mapper)), registered)
            if found and (not models or found[0].num_reg_images() > models[0].num_reg_images()):
                models, used = found, mapper
            if models and models[0].num_reg_images() >= _ENOUGH * len(options.names):
                break
        for number, model in enumerate(models):
            (work / "models" / str(number)).mkdir(parents=True)
            model.write(str(work / "models" / str(number)))
            _check_written(model, work / "models" / str(number))
        if models:
            written(digests_below(work / "models"))
            (work / "models").rename(folder)
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(f"{folder}: the mapper of pycolmap failed: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return used


def undistort(model: pathlib.Path, images: pathlib.Path, folder: pathlib.Path, written: Callable[[Dict[str, str]], None]) -> None:
    """Writes undistorted pictures with the model of pinhole cameras: folder/images and folder/sparse/0. folder, written: as
    in estimate_poses."""
    module = pycolmap_module()
    work = unfinished(folder)
    shutil.rmtree(work, ignore_errors=True)
    try:
        work.mkdir(parents=True)
        module.undistort_images(str(work), str(model), str(images))
        (work / "sparse").rename(work / "0")
        (work / "sparse").mkdir()
        (work / "0").rename(work / "sparse" / "0")
        written(digests_below(work))
        work.rename(folder)
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(f"{folder}: undistorting failed: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


# ------------------------------------------------------------------ folders of results


def unfinished(folder: pathlib.Path) -> pathlib.Path:
    """Returns the folder in which the content of a folder is prepared."""
    return folder.with_name(f".{folder.name}.tmp")


def files_below(folder: pathlib.Path) -> List[str]:
    """Returns the names of all files in a folder and its subfolders."""
    found = (os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names)
    return sorted((name.replace(os.sep, "/") for name in found), key=os.fsencode)


def digest_of_file(path: pathlib.Path) -> str:
    """Returns the digest of a file's bytes."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def digests_below(folder: pathlib.Path) -> Dict[str, str]:
    """Returns the digest of each file in a folder and its subfolders."""
    return {name: digest_of_file(folder / name) for name in files_below(folder)}


def earlier_names(folder: pathlib.Path, photographs: Sequence[str]) -> List[str]:
    """Returns the names of the files that a version which stored no names wrote into a folder of results."""
    pictures = {f"images/{name}" for name in photographs}
    return [name for name in files_below(folder) if _EARLIER[folder.name].fullmatch(name) or name in pictures]


def adopted(folder: pathlib.Path, names: Sequence[str], sizes: Mapping[str, int]) -> Dict[str, str]:
    """Returns digests of files of a version that stored none. "", which no file has, if the size is not the stored one."""
    there = set(files_below(folder)).intersection(names)
    return {name: digest_of_file(folder / name) if sizes.get(name) in (None, (folder / name).stat().st_size) else "" for name in sorted(there)}


def _empty_folders(folder: pathlib.Path) -> List[str]:
    """Returns the names of links to folders, and of empty folders except those that pycolmap makes in stereo/."""
    found = []
    for place, folders, names in os.walk(folder):
        found += [os.path.join(place, name) for name in folders if os.path.islink(os.path.join(place, name))]
        if not folders and not names and place != str(folder):
            found.append(place)
    there = sorted(os.path.relpath(place, folder).replace(os.sep, "/") for place in found)
    return [name for name in there if not _EMPTY.match(name)]


def check_own(folder: pathlib.Path, own: Mapping[str, str]) -> None:
    """Refuses a folder with other files or folders than these, or with a changed file, because they would be lost or would
    belong to another model. own: names and digests of files."""
    there = files_below(folder)
    for name in [*there, *(one for one in _empty_folders(folder) if not any(file.startswith(f"{one}/") for file in own))]:
        if name not in own:
            raise FileError(f"{folder / name}: is not from an earlier run, and this folder is to be replaced: move the file elsewhere, or choose "
                            "another output")
    for name in there:
        if digest_of_file(folder / name) != own[name]:
            raise FileError(f"{folder / name}: was changed after an earlier run, and is to be replaced: move the folder {folder} elsewhere, or "
                            "choose another output")


def remove_own(folder: pathlib.Path) -> None:
    """Removes a folder that check_own has checked."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def mask_of(masks: Optional[str], name: str) -> Optional[pathlib.Path]:
    """Returns the mask of an image by COLMAP's rule: MASKS/NAME.png, or else with NAME's ending replaced by .png."""
    if masks is None:
        return None
    path = pathlib.Path(masks, f"{name}.png")
    path = path if path.exists() else pathlib.Path(masks, name).with_suffix(".png")
    return path if path.exists() else None
