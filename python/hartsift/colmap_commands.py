"""Commands of COLMAP by pycolmap, for ``hartsift-colmap`` on machines without COLMAP: ``python -m hartsift.colmap_commands COMMAND ...``.

Options are those of COLMAP's command line; a dotted one such as ``--Mapper.ba_global_function_tolerance`` sets the attribute of this
name in pycolmap's options.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple

# Option names of earlier versions of COLMAP, and the present names.
_RENAMED = {
    "ba_global_images_ratio": "ba_global_frames_ratio",
    "ba_global_images_freq": "ba_global_frames_freq",
    "snapshot_images_freq": "snapshot_frames_freq",
    "fix_existing_images": "fix_existing_frames",
    "refine_extrinsics": "refine_rig_from_world",
    "ba_global_use_pba": "",
    "ba_global_pba_gpu_index": "",
    "ba_global_ignore_redundant_points3D_min_coverage_gain": "ba_global_prune_points_min_coverage_gain",
}
# Prefixes that select a part of pycolmap's options.
_PARTS = {
    "tri_": ("triangulation", "retriangulation"),
    "gp_": ("global_positioning",),
    "ra_": ("rotation_averaging",),
    "ba_ceres_": ("ceres",),
    "ba_": ("bundle_adjustment",),
}
_LOGGING = ("log_to_stderr", "log_level", "log_target", "log_path", "log_severity", "log_color")


class CommandError(Exception):
    """A message for the user."""


def _fail(message: str) -> NoReturn:
    raise CommandError(message)


def _parts(options: Any) -> List[Tuple[str, Any]]:
    """Returns the attributes of pycolmap's options that are themselves option objects."""
    pairs = ((name, getattr(options, name, None)) for name in dir(options) if not name.startswith("_"))
    return [(name, value) for name, value in pairs if hasattr(value, "todict") and not callable(value)]


def _owner(options: Any, name: str) -> Optional[Tuple[Any, str]]:
    """Returns the option object that has an attribute of this name, and the attribute's name."""
    if hasattr(options, name) and not callable(getattr(options, name)):
        return options, name
    parts = _parts(options)
    for part, value in parts:
        for prefix, wanted in _PARTS.items():
            found = _owner(value, name[len(prefix) :]) if part in wanted and name.startswith(prefix) else None
            if found:
                return found
    for _, value in parts:
        found = _owner(value, name)
        if found:
            return found
    return None


def _flag(name: str, text: str) -> bool:
    words = {"0": False, "false": False, "no": False, "off": False, "1": True, "true": True, "yes": True, "on": True}
    if text.lower() not in words:
        _fail(f"--{name} '{text}': expected 0, 1, false or true")
    return words[text.lower()]


def _convert(name: str, text: str, current: Any) -> Any:
    """Converts the text to the type of the attribute's current value."""
    if isinstance(current, bool):
        return _flag(name, text)
    members = getattr(type(current), "__members__", None)
    if members is not None:
        if text.upper() not in members:
            _fail(f"--{name} '{text}': expected one of {', '.join(members)}")
        return members[text.upper()]
    for kind, described in ((int, "a whole number"), (float, "a number")):
        if isinstance(current, kind):
            try:
                return kind(text)
            except ValueError:
                _fail(f"--{name} '{text}': expected {described}")
    if isinstance(current, (str, os.PathLike)):
        return text
    _fail(f"--{name}: pycolmap takes no text for it: COLMAP itself is needed")


class _Arguments:
    """The options of a command line: in `plain` by name, in `settings` those with a dot in their name."""

    def __init__(self, command: str, arguments: Sequence[str]) -> None:
        self.command = command
        self.plain: Dict[str, str] = {}
        self.settings: Dict[str, str] = {}
        self._used: List[str] = []
        values = iter(arguments)
        for argument in values:
            if not argument.startswith("--") or argument == "--":
                _fail(f"'{argument}' is no option: expected --NAME VALUE or --NAME=VALUE")
            name, equals, value = argument[2:].partition("=")
            if not equals:
                given = next(values, None)
                if given is None:
                    _fail(f"--{name} needs a value")
                value = given
            if name == "project_path":
                self._read_project(value)
            else:
                (self.settings if "." in name else self.plain)[name] = value

    def _read_project(self, path: str) -> None:
        """Reads values of a project file; options of the command line keep their values."""
        section = ""
        with open(path, encoding="utf-8") as file:
            for line in map(str.strip, file):
                name, equals, value = (part.strip() for part in line.partition("="))
                if line.startswith("[") and line.endswith("]"):
                    section = line[1:-1].strip() + "."
                elif equals and line[0] not in "#;":
                    (self.settings if section else self.plain).setdefault(section + name, value)
        self._used += [name for name in self.settings] + [name for name in self.plain]  # options of other commands are allowed

    def take(self, name: str, default: Optional[str] = None) -> str:
        """Returns a plain option. Without a default it must be given."""
        self._used.append(name)
        value = self.plain.get(name, default)
        if value is None or (value == "" and default is None):
            _fail(f"the option '--{name}' is required but missing")
        return value

    def integer(self, name: str, default: str) -> int:
        """Returns a plain option that is a whole number."""
        return int(_convert(name, self.take(name, default), 0))

    def names(self, option: str = "image_list_path") -> List[str]:
        """Returns the names in a list of images."""
        path = self.take(option, "") or self.settings.pop(f"Mapper.{option}", "")
        if not path:
            return []
        with open(path, encoding="utf-8") as file:
            return [line.strip() for line in file if line.strip() and not line.startswith("#")]

    def fill(self, options: Any, *groups: str) -> Any:
        """Sets the attributes that dotted options of these groups name. Group "": the remaining plain options."""
        chosen = {name: value for name, value in self.settings.items() if name.partition(".")[0] in groups}
        if "" in groups:
            chosen.update({name: value for name, value in self.plain.items() if name not in self._used})
        for name, text in chosen.items():
            self._used.append(name)
            attribute = name.rpartition(".")[2]
            attribute = _RENAMED.get(attribute, attribute)
            found = _owner(options, attribute) if attribute else None
            if attribute and not found:
                _fail(f"--{name}: pycolmap has no such option for {self.command}")
            if found:
                setattr(found[0], found[1], _convert(name, text, getattr(*found)))
        return options

    def seed(self, pycolmap: Any) -> None:
        for name in ("random_seed", "default_random_seed"):
            if self.take(name, ""):
                pycolmap.set_random_seed(self.integer(name, ""))
        self._used += _LOGGING

    def finish(self) -> None:
        """Refuses options that no call has used."""
        for name in (*self.plain, *self.settings):
            if name not in self._used:
                _fail(f"unknown option --{name} of {self.command}, as far as pycolmap does it")


def _model(pycolmap: Any, path: str) -> Any:
    """Reads the model in a folder."""
    if not os.path.isdir(path):
        _fail(f"{path}: expected a folder with a model")
    return pycolmap.Reconstruction(path)


def _ended(models: Dict[int, Any]) -> None:
    if not models:
        _fail("failed to create a sparse model: too few images have enough matches")
    for number, model in sorted(models.items()):
        print(f"model {number}: {model.num_reg_images()} images, {model.num_points3D()} points", file=sys.stderr)


def _mapper(pycolmap: Any, given: _Arguments) -> None:
    options = pycolmap.IncrementalPipelineOptions()
    database, images, output = (given.take(name) for name in ("database_path", "image_path", "output_path"))
    before = given.take("input_path", "")
    names = given.names()
    given.fill(options, "Mapper")
    given.finish()
    if names:
        options.image_names = names
    os.makedirs(output, exist_ok=True)
    _ended(pycolmap.incremental_mapping(database, images, output, options=options, input_path=before))


def _global_mapper(pycolmap: Any, given: _Arguments) -> None:
    options = given.fill(pycolmap.GlobalPipelineOptions(), "GlobalMapper")
    database, images, output = (given.take(name) for name in ("database_path", "image_path", "output_path"))
    given.finish()
    os.makedirs(output, exist_ok=True)
    _ended(pycolmap.global_mapping(database, images, output, options=options))


def _bundle_adjuster(pycolmap: Any, given: _Arguments) -> None:
    options = given.fill(pycolmap.BundleAdjustmentOptions(), "BundleAdjustment", "BundleAdjustmentCeres")
    model, output = _model(pycolmap, given.take("input_path")), given.take("output_path")
    given.finish()
    pycolmap.bundle_adjustment(model, options)
    os.makedirs(output, exist_ok=True)
    model.write(output)


def _image_undistorter(pycolmap: Any, given: _Arguments) -> None:
    images, model, output = (given.take(name) for name in ("image_path", "input_path", "output_path"))
    keywords: Dict[str, Any] = {"output_type": given.take("output_type", "COLMAP"), "image_names": given.names()}
    for name in ("num_patch_match_src_images", "jpeg_quality", "num_threads"):
        keywords[name] = given.integer(name, "-1")
    policies = {"copy": "copy", "soft-link": "softlink", "hard-link": "hardlink"}
    policy = given.take("copy_policy", "copy")
    if policy not in policies:
        _fail(f"--copy_policy '{policy}': expected {', '.join(policies)}")
    keywords["copy_policy"] = getattr(pycolmap.FileCopyType, policies[policy])
    keywords["undistort_options"] = given.fill(pycolmap.UndistortCameraOptions(), "")
    given.finish()
    if not os.path.isdir(model):
        _fail(f"{model}: expected a folder with a model")
    os.makedirs(output, exist_ok=True)
    pycolmap.undistort_images(output, model, images, **keywords)


def _model_converter(pycolmap: Any, given: _Arguments) -> None:
    model, output = _model(pycolmap, given.take("input_path")), given.take("output_path")
    kind = given.take("output_type").lower()
    given.finish()
    if kind == "ply":
        model.export_PLY(output)
        return
    if kind not in ("bin", "txt"):
        _fail(f"--output_type '{kind}': pycolmap writes BIN, TXT and PLY: COLMAP itself is needed")
    os.makedirs(output, exist_ok=True)
    (model.write_binary if kind == "bin" else model.write_text)(output)


def _model_analyzer(pycolmap: Any, given: _Arguments) -> None:
    model = _model(pycolmap, given.take("path"))
    given.take("verbose", "0")
    given.finish()
    print(f"Rigs: {model.num_rigs()}")
    print(f"Cameras: {model.num_cameras()}")
    print(f"Frames: {model.num_frames()}")
    print(f"Registered frames: {model.num_reg_frames()}")
    print(f"Images: {model.num_images()}")
    print(f"Registered images: {model.num_reg_images()}")
    print(f"Points: {model.num_points3D()}")
    print(f"Observations: {model.compute_num_observations()}")
    print(f"Mean track length: {model.compute_mean_track_length():f}")
    print(f"Mean observations per image: {model.compute_mean_observations_per_reg_image():f}")
    print(f"Mean reprojection error: {model.compute_mean_reprojection_error():f}px")


def _point_triangulator(pycolmap: Any, given: _Arguments) -> None:
    options = given.fill(pycolmap.IncrementalPipelineOptions(), "Mapper")
    database, images, output = (given.take(name) for name in ("database_path", "image_path", "output_path"))
    model = _model(pycolmap, given.take("input_path"))
    clear, refine = (_flag(name, given.take(name, default)) for name, default in (("clear_points", "1"), ("refine_intrinsics", "0")))
    given.finish()
    os.makedirs(output, exist_ok=True)
    pycolmap.triangulate_points(model, database, images, output, clear_points=clear, options=options, refine_intrinsics=refine)


def _model_aligner(pycolmap: Any, given: _Arguments) -> None:
    """Turns a model so that the plane of its points is the plane of x and y, with most cameras above it."""
    import numpy

    model, output = _model(pycolmap, given.take("input_path")), given.take("output_path")
    kind = given.take("alignment_type", "custom")
    for name in ("database_path", "alignment_max_error", "robust_alignment_max_error", "min_common_images"):
        given.take(name, "")  # options for positions of cameras, which are ignored
    given.finish()
    if kind != "plane":
        _fail(f"--alignment_type '{kind}': only plane is done without COLMAP itself")
    points = numpy.array([point.xyz for point in model.points3D.values()])
    cameras = numpy.array([model.image(image).projection_center() for image in model.reg_image_ids()])
    if len(points) < 3:
        _fail("the model has too few points for a plane")
    centre = points.mean(axis=0)
    axes = numpy.linalg.svd(points - centre, full_matrices=False)[2]
    if numpy.median((cameras - centre) @ axes[2]) < 0:
        axes[2] = -axes[2]
    axes[1] = numpy.cross(axes[2], axes[0])
    model.transform(pycolmap.Sim3d(1.0, pycolmap.Rotation3d(axes), -axes @ centre))
    os.makedirs(output, exist_ok=True)
    model.write(output)


_COMMANDS: Dict[str, Callable[[Any, _Arguments], None]] = {
    "mapper": _mapper,
    "global_mapper": _global_mapper,
    "bundle_adjuster": _bundle_adjuster,
    "image_undistorter": _image_undistorter,
    "model_aligner": _model_aligner,
    "model_converter": _model_converter,
    "model_analyzer": _model_analyzer,
    "point_triangulator": _point_triangulator,
}


def _reason(error: Exception) -> str:
    """Returns a message without the source lines of pycolmap."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return re.sub(r"^\[[\w.]+:\d+\] (Check failed: \S+ )?", "", str(error))


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit status, 0 or 1, as COLMAP's."""
    command = arguments[0] if arguments else ""
    if command not in _COMMANDS:
        commands = ", ".join(_COMMANDS)
        print(
            f"hartsift-colmap: '{command}' needs COLMAP, and pycolmap does only {commands}: install COLMAP (apt install colmap), "
            "or name its program by HARTSIFT_COLMAP",
            file=sys.stderr,
        )
        return 1
    if any(argument in ("-h", "--help") for argument in arguments[1:]):
        print(f"{command}, by pycolmap\n\nThe options are COLMAP's: https://colmap.github.io/cli.html")
        return 0
    try:
        import pycolmap
    except ImportError as error:
        print(f"hartsift-colmap {command}: pycolmap cannot be imported ({error}): pip install pycolmap, or install COLMAP", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):  # end also native code at once, and print no stack
        signal.signal(number, signal.SIG_DFL)
    try:
        given = _Arguments(command, arguments[1:])
        given.seed(pycolmap)
        _COMMANDS[command](pycolmap, given)
    except (CommandError, OSError, ValueError, RuntimeError, IndexError) as error:
        print(f"hartsift-colmap {command}: {_reason(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
