"""From photographs or a video to COLMAP's model, transforms.json and a report, in steps that a later run continues."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Mapping, Optional, Sequence, TextIO, Tuple, TypedDict, Union

from . import _model_files as files
from . import _reconstruct_steps as steps
from ._arguments import run
from ._batch import find_image_paths
from ._errors import ArgumentError, Error, FileError
from ._library import VERSION
from ._names import printable
from ._progress import STOPPED, Progress, locked
from ._project import write_json
from ._video import VIDEO_ENDINGS, extract_frames, has_other_frames, replace_frames

if TYPE_CHECKING:
    from typing_extensions import Unpack

_STATE = "reconstruct.json"
# Share of each step in the progress bar, roughly as the times on a CPU.
_PARTS = {"frames": 0.1, "features": 0.3, "pairs": 0.25, "mapper": 0.3, "files": 0.05}


class ReconstructOptions(TypedDict, total=False):
    """Options of ``hartsift.reconstruct``, and of ``python -m hartsift reconstruct``."""

    frames_per_second: float  #: frames taken per second of a video, each the sharpest of its moment [2]
    masks: Optional[str]  #: folder of masks, MASKS/NAME.png; black pixels get no features [None]
    #: which images share a camera: "single": images of one size; "folder": images of one size in one folder; "file": none;
    #: "auto": images of one size and one focal length in EXIF, without EXIF images of one size in one folder ["auto"]
    camera: Literal["auto", "single", "folder", "file"]
    camera_model: str  #: name of COLMAP's camera model ["SIMPLE_RADIAL"]
    camera_params: Sequence[float]  #: known parameters of the model; then only poses are estimated [()]
    affine: bool  #: describe keypoints with affine shape adaptation [False]
    dsp: bool  #: pool descriptors over sizes (DSP-SIFT) [False]
    max_features: int  #: maximum per image, the largest first; 0: as COLMAP, whole levels until there are 8192 or more [0]
    #: rules of ``hartsift match --pairs`` or files of pairs, matched in turn; (): chosen from the collection [()]
    pairs: Sequence[str]
    guided: bool  #: match verified pairs again, along their geometry [False]
    tracks: int  #: number of longest tracks of each image whose inliers go to the mapper; 0: all [2000]
    #: pycolmap's mapper; "auto": global, then incremental if it leaves out a tenth of the images ["auto"]
    mapper: Literal["auto", "global", "incremental"]
    undistorted: bool  #: also write undistorted pictures and their model [False]
    device: str  #: device of features and matches: "auto", "cpu", "cuda", "cuda:N" ["auto"]
    threads: int  #: threads on the CPU, 0: all cores [0]


_DEFAULTS: Dict[str, Any] = {
    "frames_per_second": 2.0, "masks": None, "camera": "auto", "camera_model": "SIMPLE_RADIAL", "camera_params": (),
    "affine": False, "dsp": False, "max_features": 0, "pairs": (), "guided": False, "tracks": 2000,
    "mapper": "auto", "undistorted": False, "device": "auto", "threads": 0,
}
#: The steps that are repeated after a change of an option. Options that are not named change no result.
_REPEATED = {
    **dict.fromkeys(("frames_per_second", "masks", "camera", "camera_model", "camera_params"), "features"),
    **dict.fromkeys(("affine", "dsp", "max_features"), "features"),
    **dict.fromkeys(("pairs", "guided"), "pairs"),
    **dict.fromkeys(("tracks", "mapper"), "mapper"),
}
_KEPT = ("pairs", "mapped", "mapper", "undistorted", "written", "files")  # what the state has besides the settings
_RESULTS = ("sparse", "undistorted")  # folders made of the database
_FILES = ("transforms.json", "sparse_pc.ply", "report.html")  # files made of the model
# The database, SQLite's files of it, and those of hartsift batch.
_DATABASE = tuple(f"database.db{end}" for end in ("", "-journal", "-wal", "-shm", ".manifest.csv", ".manifest.journal"))
_CHOICES = {"camera": ("auto", "single", "folder", "file"), "mapper": ("auto", "global", "incremental")}


@dataclass(frozen=True)
class Reconstruction:
    """Result of ``hartsift.reconstruct``.

    Attributes:
        folder: the output folder.
        images: number of photographs or frames.
        failed: number of images that could not be read.
        registered: number of images with a pose in sparse/0.
        models: number of models that share no point; sparse/0 is the largest.
        points, observations: their numbers in sparse/0.
        track_length: mean number of images that see a point.
        reprojection_error: mean reprojection error, pixels.
        pairs: rules that chose the pairs.
        mapper: "global" or "incremental".
        cameras: number of cameras in the database.
        seconds: seconds of each step in this run.
    """

    folder: str
    images: int
    failed: int
    registered: int
    models: int
    points: int
    observations: int
    track_length: float
    reprojection_error: float
    pairs: Tuple[str, ...]
    mapper: str
    cameras: int
    seconds: Dict[str, float] = field(compare=False)


def _settings_of(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns all options, checked, as values that JSON can store."""
    unknown = sorted(set(options) - set(_DEFAULTS))
    if unknown:
        raise ArgumentError(f"{unknown[0]}: there is no such option, expected one of {', '.join(_DEFAULTS)}")
    found = {**_DEFAULTS, **options}
    for name, choices in _CHOICES.items():
        if found[name] not in choices:
            raise ArgumentError(f"{name} is {found[name]!r}, expected one of {', '.join(map(repr, choices))}")
    if isinstance(found["pairs"], (str, os.PathLike)):
        found["pairs"] = [found["pairs"]]
    found["pairs"], found["camera_params"] = list(map(steps.full_rule, found["pairs"])), list(map(float, found["camera_params"]))
    found["masks"] = None if found["masks"] is None else os.path.abspath(found["masks"])
    found["frames_per_second"] = float(found["frames_per_second"])
    return found


def _is_sound(content: Any) -> bool:
    """Returns whether the content of the state's file has the types that are written there, now or by earlier versions."""
    kinds: Dict[str, Any] = {"photographs": str, "settings": dict, "written": dict, "files": dict, "model": dict, "pairs": list, "mapped": str,
                             "mapper": str, "undistorted": (str, dict)}
    if not isinstance(content, dict) or not all(isinstance(content[name], kind) for name, kind in kinds.items() if name in content):
        return False
    written = content.get("written", {}).values()
    if not all(isinstance(names, (dict, list)) for names in written) or not all(type(size) is int for size in content.get("model", {}).values()):
        return False
    names_of = (names.values() if isinstance(names, dict) else names for names in (*written, content.get("files", {})))
    return all(isinstance(one, str) for names in names_of for one in names)


class _Work:
    """A reconstruction in its folder."""

    def __init__(self, photos: str, folder: pathlib.Path, settings: Dict[str, Any], progress: Progress) -> None:
        self.photos, self.folder, self.settings, self.progress = photos, folder, settings, progress
        self.is_video = os.path.isfile(photos)
        self.frames = folder / "frames"
        self.images = self.frames if self.is_video else pathlib.Path(photos)
        self.database = folder / "database.db"
        self.names: List[str] = []
        self.failed = self.cameras = 0
        self.lock = -1
        self.rules: List[str] = []
        self.state: Dict[str, Any] = {}
        self.old: Dict[str, Any] = settings  # settings of the earlier run
        self.complaints: List[str] = []

    # ---- the folder and its state

    def make_folder(self) -> None:
        """Makes the folder if it is missing."""
        if self.folder.is_file():
            raise FileError(f"{self.folder}: is a file: expected a new folder, or one of an earlier run")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be made: {error.strerror}") from error

    def open(self) -> None:
        """Checks the folder and the results of an earlier run, before anything is changed."""
        before = self._read_state()
        self.state = {name: before[name] for name in _KEPT if name in before}
        self._adopt(before.get("model", {}))
        self._refuse_folders()
        self.old = before.get("settings", self.settings)
        if self._changed():
            self._check_results()
        if not before:
            self._write_state()

    def _changed(self) -> List[str]:
        """Returns the names of the settings that another run had otherwise."""
        return [name for name in self.settings if name in _REPEATED and self.old.get(name) != self.settings[name]]

    def check_images(self) -> None:
        """Finds the images, and checks changed settings with them, before results of an earlier run are changed."""
        try:
            self._find_images()
            if self.settings["pairs"]:
                steps.check_pairs(self.settings["pairs"], self.names)
            if self.database.exists() and any(_REPEATED[name] == "features" for name in self._changed()):
                steps.check_extraction(self.settings, self.images, self.names)
        except Error:
            shutil.rmtree(steps.unfinished(self.frames), ignore_errors=True)
            raise

    def begin(self) -> None:
        """Replaces other frames, and removes the features of other settings. Results stay until there are new ones."""
        changed = self._changed()
        again = {_REPEATED[name] for name in changed}
        for name in (one for one in changed if _REPEATED[one] != "pairs"):  # match says whether there are other pairs
            self.progress.say(f"{name} was {self.old.get(name)!r}, is {self.settings[name]!r}: {_REPEATED[name]} are done again"
                              .replace("mapper are", "the mapper is"))
        if "features" in again:
            for name in _DATABASE:
                (self.folder / name).unlink(missing_ok=True)
        if again & {"features", "mapper"}:
            self.state.pop("mapped", None)
        if self.is_video and self.images != self.frames:
            replace_frames(self.images, self.frames)
            self.images = self.frames
        self._write_state()

    def _refuse_folders(self) -> None:
        """Refuses folders with names of files that are to be written."""
        for name in (*_FILES, *_DATABASE):
            path = self.folder / name
            if path.is_dir() and not path.is_symlink():
                raise FileError(f"{path}: is a folder, and a file of this name is to be written: move it elsewhere, or choose another output")

    def _check_results(self) -> None:
        """Refuses results with files of others."""
        for name in _RESULTS:
            steps.check_own(self.folder / name, self._own(name))
        for name in self._changed_files():
            raise FileError(f"{self.folder / name}: was changed after an earlier run, and is to be replaced: move it elsewhere, or choose "
                            "another output")

    def _changed_files(self) -> List[str]:
        """Returns the names of files made of the model that their user changed."""
        known = self.state.get("files", {})
        there = [name for name in _FILES if name in known and (self.folder / name).exists()]
        return [name for name in there if steps.digest_of_file(self.folder / name) != known[name]]

    def remove_results(self) -> None:
        """Removes the model and all that was made of it, but no file of others."""
        self._check_results()
        for name in _RESULTS:
            steps.remove_own(self.folder / name)
        for name in _FILES:
            (self.folder / name).unlink(missing_ok=True)
        for name in ("mapped", "mapper", "undistorted", "written", "files"):
            self.state.pop(name, None)

    def _own(self, folder: str) -> Dict[str, str]:
        """Returns names and digests of the files that were written into a folder of results."""
        found: Dict[str, str] = self.state.get("written", {}).get(folder, {})
        return found

    def _note_written(self, folder: str, digests: Dict[str, str]) -> None:
        """Notes the files of a folder before they are there."""
        self.state.setdefault("written", {})[folder] = digests
        self._write_state()

    def _adopt(self, sizes: Mapping[str, int]) -> None:
        """Adds the digests of results of versions that stored no digests. sizes: of the files of sparse/0, which they stored."""
        written: Dict[str, Any] = dict(self.state.get("written", {}))
        for name, made in (("sparse", "mapped"), ("undistorted", "undistorted")):
            names = written.get(name)
            if names is None and made in self.state:
                photographs = steps.names_in(self.database) if self.database.exists() else []
                names = steps.earlier_names(self.folder / name, photographs)
            if isinstance(names, list):
                known = {f"0/{file}": size for file, size in sizes.items()} if name == "sparse" else {}
                written[name] = steps.adopted(self.folder / name, names, known)
        self.state["written"] = written
        if isinstance(self.state.get("undistorted"), str):  # what the mapper's model was made of
            is_current = self.state["undistorted"] == self.state.get("mapped")
            self.state["undistorted"] = self._mapped_model() if is_current else {}

    def _mapped_model(self) -> Dict[str, str]:
        """Returns the digests of the files of sparse/0, as the mapper wrote them."""
        return {name[2:]: digest for name, digest in self._own("sparse").items() if name.startswith("0/")}

    def _complain(self, text: str) -> None:
        self.complaints.append(text)
        self.progress.complain(text)

    def _read_state(self) -> Dict[str, Any]:
        path = self.folder / _STATE
        if not path.exists():
            self._refuse_foreign()
            return {}
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise FileError(f"{path}: cannot be read: {error}; choose another folder") from error
        if not _is_sound(content):
            raise FileError(f"{path}: is damaged: choose another folder")
        known = content.get("photographs", "")
        if os.path.realpath(known) != os.path.realpath(self.photos):
            raise ArgumentError(f"{self.folder} is the reconstruction of {known}, not of {self.photos}: choose another folder")
        return dict(content)

    def _refuse_foreign(self) -> None:
        """Refuses folders with files of others, except the photographs, which other programs want in DATA/images."""
        given = [os.path.realpath(path) for path in (self.photos, self.settings["masks"]) if path]
        for entry in self.folder.iterdir():
            place = os.path.realpath(entry)
            if not entry.name.startswith(".") and not any(one == place or one.startswith(place + os.sep) for one in given):
                raise FileError(f"{self.folder}: is not empty and no reconstruction of hartsift (it has {printable(entry.name)}): "
                                "choose another folder")

    def _write_state(self) -> None:
        write_json(self.folder / _STATE, {"hartsift": VERSION, "photographs": self.photos, "settings": self.settings, **self.state})

    # ---- steps

    def _find_images(self) -> None:
        """Extracts frames of a video, or lists the photographs."""
        if self.is_video:
            with self.progress.step("frames"):
                rate = self.settings["frames_per_second"]
                if has_other_frames(self.photos, self.frames, rate):
                    self.images = steps.unfinished(self.frames)
                else:  # a stopped run with another rate may have left some
                    shutil.rmtree(steps.unfinished(self.frames), ignore_errors=True)
                count = extract_frames(self.photos, self.images, rate, lambda done: self.progress.show(done, 0))
                self.progress.say(f"frames: {count}, the sharpest of each {1 / rate:.3g} s")
        paths, unreadable, passed_over = find_image_paths(str(self.images), self.settings["masks"])
        for message in unreadable:
            self._complain(message)
        self.names = sorted((os.path.relpath(path, self.images).replace(os.sep, "/") for path in paths), key=os.fsencode)
        for name in self.names:
            if not name.isascii() and printable(name) != name:
                raise FileError(f"{printable(name)}: the name is not UTF-8, which pycolmap needs: rename it")
        if len(self.names) < 2:
            other = f"; {os.fsdecode(passed_over)}" if passed_over and not self.names else ""
            number = "one photograph" if self.names else "no photographs"
            raise FileError(f"{self.images}: {number} there{other}: a reconstruction needs two or more")

    def extract(self) -> None:
        """Extracts the features of all images, and assigns cameras."""
        given = self.settings
        arguments = ["batch", str(self.images), "-o", str(self.database), "--resume", "--replace", *steps.extraction_options(given)]
        total = len(self.names)
        with self.progress.step("features"):
            failed = steps.run_command(arguments, self.lock, self._complain, lambda done: self.progress.show(done, total))
            there = set(steps.names_in(self.database))
            known = there.difference(failed)  # a photograph that became unreadable has earlier features
            self._check_readable(known)
            self.cameras = steps.share_cameras(self.database, given["camera"])
        self.failed = sum(name not in known for name in self.names)
        gone = len(there - set(self.names))
        if gone:
            self.progress.say(f"{gone} images of the database are no longer there and are left out")
        self.names = [name for name in self.names if name in known]
        self.progress.say(f"features: {len(self.names)} images, {self.cameras} camera{'s' * (self.cameras > 1)}{self._took('features')}")

    def _check_readable(self, known: "set[str]") -> None:
        """Refuses a collection of which fewer than two images are in the database."""
        readable = sum(name in known for name in self.names)
        if readable < 2:
            number = "none" if readable == 0 else "only one"
            reason = f"; {self.complaints[0]}" if self.complaints else ""
            raise FileError(f"{self.images}: {number} of the {len(self.names)} photographs can be read{reason}")

    def match(self) -> None:
        """Matches and verifies the pairs that are chosen from the collection."""
        given = self.settings
        counts = steps.count_rows(self.database)
        self.rules, reason = given["pairs"], "given"
        if not self.rules:
            self.rules, reason = steps.choose_pairs(self.names, counts, self.is_video)
        if counts.positions == 0 and any(rule.startswith("spatial:") for rule in self.rules):
            raise FileError(f"{self.images}: no photograph has a GPS position in its EXIF, which --pairs spatial needs: choose other --pairs")
        made_by = [steps.pairs_key(rule) for rule in self.rules] + ["guided"] * given["guided"]
        if self.state.get("pairs", made_by) != made_by:
            self.progress.say("pairs: other options or another file than in the earlier run: pairs are done again")
            steps.forget_pairs(self.database)
        self.state["pairs"] = made_by
        self._write_state()
        self.progress.say(f"pairs: {' and '.join(self.rules)} ({reason}; --pairs chooses others)")
        arguments = ["match", "--database", str(self.database), *(["--guided"] if given["guided"] else [])]
        with self.progress.step("pairs"):
            done = 0
            total = sum(steps.pairs_at_most(rule, len(self.names)) for rule in self.rules)
            for number, rule in enumerate(self.rules):
                is_last = number == len(self.rules) - 1
                tracks = ["--tracks", str(given["tracks"])] if given["tracks"] and is_last else []
                before = done

                def count(records: int, before: int = before) -> None:
                    nonlocal done
                    done = before + records
                    self.progress.show(done, total)

                steps.run_command([*arguments, "--pairs", rule, *tracks, *steps.device_options(given)], self.lock, self.progress.complain, count)
        doubtful = steps.count_doubtful(self.database)
        left_out = f", {doubtful} more left out as look-alikes" if doubtful else ""
        self.progress.say(f"pairs: {steps.count_rows(self.database).pairs} verified{left_out}{self._took('pairs')}")

    def _took(self, step: str) -> str:
        return f", {self.progress.seconds[step]:.1f} s"

    def map(self) -> Dict[str, str]:
        """Computes poses, unless there are poses of the same matches. Returns the digests of the model's files."""
        given, folder = self.settings, self.folder / "sparse"
        made_of = f"{steps.digest_of(self.database, self.names)} {given['mapper']} {steps.pycolmap_module().__version__}"
        with self.progress.step("mapper"):
            model = steps.model_digests(folder / "0")
            if self.state.get("mapped") != made_of or not model:
                self._check_results()
                options = steps.MapperOptions(self.names, given["mapper"], given["threads"], bool(given["camera_params"]))
                used = steps.estimate_poses(self.database, self.images, folder, options,
                                            lambda done: self.progress.show(done, len(self.names)),
                                            self._replace_model)
                if not used:
                    raise FileError(self._why_no_model())
                self.state.update(mapped=made_of, mapper=used)
                self._write_state()
                model = self._mapped_model()
            is_changed = model != self._mapped_model()
            if is_changed:
                steps.check_changed(folder / "0")
        changed = "; sparse/0 was changed since, and is used as it is" if is_changed else ""
        self.progress.say(f"mapper: {self.state['mapper']}{self._took('mapper')}{changed}")
        return model

    def _replace_model(self, digests: Dict[str, str]) -> None:
        """Removes the results of an earlier model. digests: of the new one, which is to be put there."""
        self.remove_results()
        self._note_written("sparse", digests)

    def _why_no_model(self) -> str:
        kept = "; sparse/ stays as the earlier run made it" if (self.folder / "sparse").exists() else ""
        pairs = steps.count_rows(self.database).pairs
        if pairs == 0:
            return (f"{self.photos}: no model: no two of the {len(self.names)} photographs show the same place with enough overlap. "
                    f"Take photographs that overlap by more than half, or try --affine --dsp{kept}")
        return (f"{self.photos}: no model: {pairs} pairs match, but the mapper found none to begin with. Move between the photographs "
                f"instead of only turning the camera, and try another --mapper, --tracks 0 or --camera-params{kept}")

    def write(self, digests: Dict[str, str]) -> Reconstruction:
        """Writes transforms.json, undistorted pictures and the report. digests: of the files of sparse/0."""
        sparse, kept = self.folder / "sparse", self._changed_files()
        known = self.state.get("files", {})
        self.state["files"] = {name: known[name] for name in kept}  # a digest is noted when its file is written
        with self.progress.step("files"):
            model = files.model_of(steps.read_model(sparse / "0"))
            self._undistort(digests)
            self._write_state()
            links = self._write_transforms(model, kept)
        observations = int(model.track_lengths.sum())
        result = Reconstruction(
            str(self.folder), len(self.names) + self.failed, self.failed, len(model.photographs),
            sum(entry.name.isdigit() for entry in sparse.iterdir()), len(model.points), observations,
            observations / max(len(model.points), 1), model.reprojection_error, tuple(self.rules), self.state["mapper"],
            self.cameras, self.progress.seconds)
        missing = sorted(set(self.names) - {one.name for one in model.photographs})
        if missing:
            self.progress.say(f"{len(missing)} images have no pose, such as {missing[0]}; report.html names all")
        title = os.path.basename(self.photos.rstrip("/")) or self.photos
        if "report.html" not in kept:
            files.write_report(self.folder / "report.html", title, model, _table(result), missing, links)
        for name in kept:
            self.progress.say(f"{name} was changed since, and stays as it is; if it is removed, the same command makes it again")
        for name in _FILES:
            if name not in kept and (self.folder / name).exists():
                self.state["files"][name] = steps.digest_of_file(self.folder / name)
        self._write_state()
        return result

    def _write_transforms(self, model: files.Model, kept: Sequence[str]) -> List[str]:
        """Writes transforms.json and sparse_pc.ply. Returns the names of files for the report."""
        undistorted = ["undistorted"] if self.settings["undistorted"] else []
        try:
            files.write_transforms(self.folder / "transforms.json", model, self.images,
                                   lambda name: steps.mask_of(self.settings["masks"], name), kept)
        except ArgumentError as error:  # a camera model that only COLMAP knows
            for name in {"transforms.json", "sparse_pc.ply"}.difference(kept):
                (self.folder / name).unlink(missing_ok=True)
            self.progress.say(str(error))
            return ["sparse/0", "database.db", *undistorted]
        return ["sparse/0", "transforms.json", "database.db", *undistorted]

    def _undistort(self, digests: Dict[str, str]) -> None:
        """Writes undistorted pictures of the model, unless all are there. Without the option, removes those of another model."""
        folder, own, found = self.folder / "undistorted", self._own("undistorted"), self.state.get("undistorted")
        is_wanted = self.settings["undistorted"]
        if found == digests and (not is_wanted or all((folder / name).exists() for name in own)) or (found is None and not is_wanted):
            return
        steps.check_own(folder, own)
        steps.remove_own(folder)
        self.state.pop("undistorted", None)
        if is_wanted:
            steps.undistort(self.folder / "sparse" / "0", self.images, folder, lambda made: self._note_written("undistorted", made))
            self.state["undistorted"] = digests
        else:
            self.progress.say("undistorted: removed, because sparse/0 was changed; --undistorted makes it again")
        self._write_state()


def _table(result: Reconstruction) -> Dict[str, str]:
    rows = {
        "images": str(result.images),
        "registered": str(result.registered),
        "cameras": str(result.cameras),
        "points": str(result.points),
        "observations": str(result.observations),
        "mean track length": f"{result.track_length:.2f}",
        "mean reprojection error": f"{result.reprojection_error:.3f} px",
        "models": str(result.models),
        "pairs": " and ".join(result.pairs),
        "mapper": result.mapper,
    }
    rows.update({f"{step}, this run": f"{seconds:.1f} s" for step, seconds in result.seconds.items()})
    return rows


def reconstruct(
    photos: Union[str, "os.PathLike[str]"],
    output: Union[str, "os.PathLike[str]"],
    *,
    progress: Optional[TextIO] = None,
    **options: "Unpack[ReconstructOptions]",
) -> Reconstruction:
    """Computes poses of photographs: features, pairs and matches by hartsift, the mapper by pycolmap (``pip install
    hartsift[reconstruct]``).

    Writes database.db, sparse/0 (COLMAP), transforms.json and sparse_pc.ply (nerfstudio, instant-ngp), report.html and, if wanted,
    undistorted/ (images and sparse/0, as gaussian-splatting reads them). An interrupted call, called again with the same
    arguments, continues with the features, pairs or poses that are missing; changed options repeat what depends on them.

    Args:
        photos: a folder of photographs, or a video.
        output: a folder that is new, empty, or the output of an earlier call.
        progress: a stream such as ``sys.stderr``; shows a bar if it is a terminal, else lines.
        options: fields of ``ReconstructOptions``.

    Raises:
        FileError: no model was found; the message says why and what to try.
    """
    return _reconstruct(os.fspath(photos), os.fspath(output), _settings_of(options), progress, False)


def _check_paths(source: str, folder: str, masks: Optional[str]) -> None:
    if not os.path.exists(source):
        raise FileError(f"{source}: there is no such folder or video")
    if os.path.isfile(source) and not source.lower().endswith(VIDEO_ENDINGS):
        raise ArgumentError(f"{source}: expected a folder of photographs, or a video: {', '.join(VIDEO_ENDINGS)}")
    if masks is not None and os.path.realpath(masks) == os.path.realpath(source):
        raise ArgumentError(f"--masks '{masks}': is the folder of the photographs: expected another one, with NAME.png for the image NAME")
    if os.path.isdir(source) and os.path.join(os.path.realpath(folder), "").startswith(os.path.join(os.path.realpath(source), "")):
        raise ArgumentError(f"{folder}: the output is in the folder of the photographs, and would be read as some: choose another folder")


def _reconstruct(photos: str, output: str, settings: Dict[str, Any], stream: Optional[TextIO], is_program: bool) -> Reconstruction:
    if not photos or not output:
        raise ArgumentError(f"the name of the {'output' if photos else 'folder of photographs'} is empty")
    source, folder = os.path.abspath(photos), os.path.abspath(output)
    _check_paths(source, folder, settings["masks"])
    steps.pycolmap_module()
    steps.check_settings(settings)
    parts = {name: part for name, part in _PARTS.items() if name != "frames" or os.path.isfile(source)}
    whole = sum(parts.values())
    shown = Progress(stream, {name: part / whole for name, part in parts.items()}, is_program)
    work = _Work(source, pathlib.Path(folder), settings, shown)
    shown.unfinished = [steps.unfinished(work.folder / name) for name in _RESULTS]
    work.make_folder()
    try:
        with locked(work.folder, shown.say) as work.lock:
            work.open()
            work.check_images()
            work.begin()
            work.extract()
            work.match()
            return work.write(work.map())
    finally:
        shown.end()


# ------------------------------------------------------------------ command line


def _numbers(text: str) -> List[float]:
    return [float(part) for part in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hartsift reconstruct",
        description="Poses of photographs, or of the frames of a video: features and matches by hartsift, the mapper by pycolmap. "
                    "Ctrl-C stops, the same command continues.",
        epilog="Exit status: 0: done; 1: a photograph cannot be read (the others are used), or no model; 2: wrong usage; "
               "3: no such device.")
    parser.add_argument("photos", help="a folder of photographs, or a video")
    parser.add_argument("-o", "--output", required=True, metavar="OUT",
                        help="folder for database.db, sparse/0, transforms.json, sparse_pc.ply and report.html")
    parser.add_argument("--frames-per-second", type=float, metavar="N", help="of a video; the sharpest frame of each moment [2]")
    parser.add_argument("--masks", metavar="DIR", help="masks DIR/NAME.png: no features where they are black")
    parser.add_argument("--camera", choices=_CHOICES["camera"],
                        help="which images share a camera: all of one size, those of one size in one folder, none; auto: images of one size and one "
                             "focal length in EXIF, without EXIF of one folder [auto]")
    parser.add_argument("--camera-model", metavar="MODEL", help="COLMAP's [SIMPLE_RADIAL]")
    parser.add_argument("--camera-params", type=_numbers, metavar="P1,P2,...", help="known parameters, which stay as they are")
    parser.add_argument("--affine", action="store_true", default=None, help="features of affine shape")
    parser.add_argument("--dsp", action="store_true", default=None, help="descriptors pooled over sizes")
    parser.add_argument("--max-features", type=int, metavar="N",
                        help="of an image, the largest [as COLMAP: whole levels until they are 8192 or more]")
    parser.add_argument("--pairs", action="append", metavar="WHICH",
                        help="all, sequential:N, spatial:METRES,N, retrieval:K[,V.npy] or a file; may be repeated "
                             f"[all of up to {steps.ALL_PAIRS_MAX} photographs, else by sequence, GPS or retrieval]")
    parser.add_argument("--guided", action="store_true", default=None, help="match verified pairs again, along their geometry")
    parser.add_argument("--tracks", type=int, metavar="N",
                        help="inliers of the N longest tracks of each image go to the mapper: equal poses, sooner; 0: all, for more "
                             "points [2000]")
    parser.add_argument("--mapper", choices=_CHOICES["mapper"],
                        help="of pycolmap; auto: global, and incremental if it leaves out a tenth of the images [auto]")
    parser.add_argument("--undistorted", action="store_true", default=None,
                        help="also undistorted/: images and sparse/0 of pinhole cameras")
    parser.add_argument("--device", metavar="auto|cpu|cuda[:N]", help="for features and matches [auto]")
    parser.add_argument("--threads", type=int, metavar="N", help="on the CPU, 0: all [0]")
    parser.add_argument("-q", "--quiet", action="store_true", help="only errors")
    parser.set_defaults(run=_run)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    given: Any = {name: value for name, value in vars(arguments).items() if name in _DEFAULTS and value is not None}
    try:
        found = _reconstruct(arguments.photos, arguments.output, _settings_of(given), None if arguments.quiet else sys.stderr, True)
    except (KeyboardInterrupt, SystemExit) as stop:  # SystemExit: SIGTERM or SIGHUP
        print(STOPPED, file=sys.stderr)
        return int(stop.code or 1) if isinstance(stop, SystemExit) else 130
    if not arguments.quiet:
        print(f"{found.registered} of {found.images} images, {found.points} points, {found.reprojection_error:.3f} px: "
              f"{os.path.join(found.folder, 'report.html')}", file=sys.stderr)
    return 1 if found.failed else 0


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line."""
    return run(_parser(), arguments)
