"""Features as NumPy arrays that refer to the library's memory."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple, Type, Union, cast

import numpy as np

from . import _library
from ._errors import ArgumentError, ArrayTypeError, check
from ._images import array_of_memory, path_bytes
from ._library import DESCRIPTOR_LENGTH, library
from ._options import LAYOUTS, NORMS, PROFILES, enumerator
from ._structures import HsFeatures, HsFileOptions

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._hints import FileFormat, Layout, Norm, Profile

#: One keypoint as the library stores it: pixels of the image (x to the right, y down, the centre of the top-left pixel
#: at 0, 0), sigma in the same pixels, orientation in radians (y down), response ``|D|``, octave and level of the pyramid.
KEYPOINT_DTYPE = np.dtype(
    [
        ("x", np.float32),
        ("y", np.float32),
        ("sigma", np.float32),
        ("orientation", np.float32),
        ("response", np.float32),
        ("octave", np.int16),
        ("level", np.int16),
    ]
)

DESCRIPTOR_DTYPES: Dict[int, Any] = {_library.HS_DESCRIPTOR_U8: np.uint8, _library.HS_DESCRIPTOR_F32: np.float32}


class Origin(NamedTuple):
    """Provenance of descriptors. ``match`` refuses lists of features whose norm, pooling or layout differ."""

    #: version of the library's method.
    method_version: int
    #: profile of the extraction.
    profile: "Profile"
    #: ``"l2"``, or ``"root"`` for RootSIFT.
    norm: "Norm"
    #: descriptors are pooled over domain sizes.
    dsp: bool = False


def _float32(values: "npt.ArrayLike") -> "npt.NDArray[np.float32]":
    """Converts to float32. Numbers beyond its range become infinite, which readers refuse."""
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float32)


def _whole_numbers(values: "npt.ArrayLike", name: str) -> "npt.NDArray[Any]":
    given, limits = np.asarray(values, np.float64), np.iinfo(KEYPOINT_DTYPE[name])
    if not ((given >= limits.min) & (given <= limits.max) & (given == np.floor(given))).all():
        raise ArgumentError(f"{name}s are not whole numbers from {limits.min} to {limits.max}")
    return given.astype(KEYPOINT_DTYPE[name])


class Features:
    """The features of one image, in the library's order. Behaves as a sequence: ``len``, and slices, masks and index
    arrays give the features they select.

    Attributes:
        records: structured array [N] of ``KEYPOINT_DTYPE``.
        descriptors: uint8 or float32 [N, 128], or None if none were requested.
        image_size: (width, height) of the image, (0, 0) when unknown.
        layout: the order of the bins in the descriptors, ``"ubc"`` or ``"vlfeat"``.
        exif_orientation: EXIF orientation that was applied to the picture before extraction, 2..8; 0: none, or unknown.
        origin: provenance of the descriptors; None: unknown, as for arrays and files without it.
        frames: float32 [N, 2, 2] for the option affine: the point (u, v), in units of the scale, is at (x, y) + frame @
            (u, v); the first column has the direction of the orientation. None: features are circles.
    """

    __slots__ = ("records", "descriptors", "image_size", "layout", "exif_orientation", "origin", "frames")

    def __init__(
        self,
        records: "npt.NDArray[Any]",
        descriptors: "Optional[npt.NDArray[Any]]" = None,
        image_size: Tuple[int, int] = (0, 0),
        layout: "Layout" = "ubc",
        exif_orientation: int = 0,
        origin: Optional[Origin] = None,
        frames: "Optional[npt.NDArray[np.float32]]" = None,
    ) -> None:
        if records.dtype != KEYPOINT_DTYPE or records.ndim != 1:
            raise ArrayTypeError("records must be a one-dimensional array of hartsift.KEYPOINT_DTYPE")
        if descriptors is not None:
            if descriptors.dtype not in (np.dtype(np.uint8), np.dtype(np.float32)):
                raise ArrayTypeError(f"descriptors have type {descriptors.dtype}, expected uint8 or float32")
            if descriptors.shape != (len(records), DESCRIPTOR_LENGTH):
                raise ArgumentError(
                    f"descriptors have shape {descriptors.shape}, expected ({len(records)}, {DESCRIPTOR_LENGTH})"
                )
        if frames is not None and (frames.dtype != np.float32 or frames.shape != (len(records), 2, 2)):
            raise ArgumentError(f"frames are {frames.dtype} {frames.shape}, expected float32 ({len(records)}, 2, 2)")
        self.records = records
        self.descriptors = descriptors
        self.frames = frames
        self.image_size = (int(image_size[0]), int(image_size[1]))
        self.layout = layout
        self.exif_orientation = exif_orientation
        self.origin = origin

    @classmethod
    def from_arrays(
        cls: "Type[Features]",
        keypoints: "npt.ArrayLike",
        descriptors: "Optional[npt.ArrayLike]" = None,
        *,
        responses: "Optional[npt.ArrayLike]" = None,
        octaves: "Optional[npt.ArrayLike]" = None,
        levels: "Optional[npt.ArrayLike]" = None,
        image_size: Tuple[int, int] = (0, 0),
        layout: "Layout" = "ubc",
        origin: Optional[Origin] = None,
    ) -> "Features":
        """Features from separate arrays, copied.

        Args:
            keypoints: [N, 4] = x, y, sigma, orientation (radians); [N, 2] = x, y with sigma 1 and orientation 0.
            descriptors: [N, 128], uint8 or a float type.
            responses, octaves, levels: [N]; None: 0.
            image_size: (width, height) of the image, pixels; (0, 0): unknown.
            layout: order of the descriptors' bins.
            origin: provenance of the descriptors, if known.
        """
        points = _float32(keypoints)
        if points.ndim != 2 or points.shape[1] not in (2, 4):
            raise ArgumentError(f"keypoints have shape {points.shape}, expected (N, 4) or (N, 2)")
        records = np.zeros(len(points), KEYPOINT_DTYPE)
        records["sigma"] = 1.0
        for column, name in enumerate(("x", "y", "sigma", "orientation")[: points.shape[1]]):
            records[name] = points[:, column]
        if responses is not None:
            records["response"] = _float32(responses)
        for name, values in (("octave", octaves), ("level", levels)):
            if values is not None:
                records[name] = _whole_numbers(values, name)
        rows = None
        if descriptors is not None:
            rows = np.array(descriptors)
            rows = rows if rows.dtype == np.uint8 else _float32(rows)
        return cls(records, rows, image_size, layout, origin=origin)

    @property
    def keypoints(self) -> "npt.NDArray[np.float32]":
        """float32 [N, 4] = x, y, sigma, orientation; a view of ``records``."""
        return self._columns("x", 4)

    @property
    def points(self) -> "npt.NDArray[np.float32]":
        """float32 [N, 2] = x, y; a view of ``records``."""
        return self._columns("x", 2)

    @property
    def sigmas(self) -> "npt.NDArray[np.float32]":
        """float32 [N], pixels; a view."""
        return self._field("sigma")

    @property
    def orientations(self) -> "npt.NDArray[np.float32]":
        """float32 [N], radians, clockwise on the screen; a view."""
        return self._field("orientation")

    @property
    def responses(self) -> "npt.NDArray[np.float32]":
        """float32 [N], ``|D|`` of the refined extremum; a view."""
        return self._field("response")

    @property
    def octaves(self) -> "npt.NDArray[np.int8]":
        """int8 [N], as in npz files; a copy (``records["octave"]`` is a view)."""
        return self.records["octave"].astype(np.int8)

    @property
    def levels(self) -> "npt.NDArray[np.int8]":
        """int8 [N], as in npz files; a copy (``records["level"]`` is a view)."""
        return self.records["level"].astype(np.int8)

    def _field(self, name: str) -> "npt.NDArray[np.float32]":
        field: npt.NDArray[np.float32] = self.records[name]
        return field

    def _columns(self, first: str, count: int) -> "npt.NDArray[np.float32]":
        column = self._field(first)
        return np.lib.stride_tricks.as_strided(column, (len(column), count), (column.strides[0], column.itemsize))

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, selection: Any) -> "Features":
        """The selected features. selection: a slice, a mask, an array of indices, or one index."""
        if isinstance(selection, (int, np.integer)):
            index = int(selection)
            if not -len(self) <= index < len(self):
                raise IndexError(f"feature {index} of {len(self)}")
            index %= len(self)
            selection = slice(index, index + 1)
        rows = None if self.descriptors is None else self.descriptors[selection]
        frames = None if self.frames is None else self.frames[selection]
        return Features(self.records[selection], rows, *self._facts(), frames)

    def _facts(self) -> "Tuple[Tuple[int, int], Layout, int, Optional[Origin]]":
        """Properties that all features have in common."""
        return self.image_size, self.layout, self.exif_orientation, self.origin

    def __iter__(self) -> "Iterator[Features]":
        """Iterates over the features, each as a list of one."""
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """True if both have the same bytes."""
        if not isinstance(other, Features):
            return NotImplemented
        if (self.image_size, self.layout) != (other.image_size, other.layout):
            return False
        pairs = ((self.records, other.records), (self.descriptors, other.descriptors), (self.frames, other.frames))
        return all(_same_bytes(mine, theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Tuple[Type["Features"], Tuple[Any, ...]]:
        records = np.array(self.records)
        descriptors = None if self.descriptors is None else np.array(self.descriptors)
        return Features, (records, descriptors, *self._facts(), None if self.frames is None else np.array(self.frames))

    def __copy__(self) -> "Features":
        return Features(self.records, self.descriptors, *self._facts(), self.frames)

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Features":
        make, arguments = self.__reduce__()
        return make(*arguments)

    def __repr__(self) -> str:
        kind = "no" if self.descriptors is None else str(self.descriptors.dtype)
        return f"<hartsift.Features: {len(self)} of {self.image_size[0]}x{self.image_size[1]}, {kind} descriptors>"

    @property
    def digest(self) -> str:
        """Digest of all features, 16 hexadecimal digits; equal bytes give equal digests. Manifests of ``hartsift batch``
        contain the same digest."""
        view, arrays = view_of_features(self)
        digest = ctypes.c_uint64()
        check(library.hs_digest_features(ctypes.byref(view), ctypes.byref(digest)))
        del arrays
        return f"{digest.value:016x}"

    def save(
        self,
        path: "Union[str, os.PathLike[str]]",
        format: "FileFormat" = "auto",
        *,  # noqa: A002
        image_name: Optional[str] = None,
        exif: bool = False,
    ) -> None:
        """Writes the features to a file.

        Args:
            path, format, image_name, exif: as for ``hartsift.write_features``.
        """
        write_features(path, self, format, image_name=image_name, exif=exif)


_PROFILE_NAMES: "Dict[int, Profile]" = {number: cast("Profile", name) for name, number in PROFILES.items()}
_NORM_NAMES: "Dict[int, Norm]" = {number: cast("Norm", name) for name, number in NORMS.items()}


def _same_bytes(a: "Optional[npt.NDArray[Any]]", b: "Optional[npt.NDArray[Any]]") -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def refuse_turned(features: Features, exif: bool, program: str) -> None:
    """Refuses features of a rotated picture for a program that reads it as stored."""
    if features.exif_orientation and not exif:
        raise ArgumentError(
            f"these features are of a photograph turned by its EXIF orientation {features.exif_orientation}, and "
            f"{program} reads it as stored: extract with exif=False, or say exif=True where it has turned copies"
        )


class _FeatureMemory:
    """A list of features of the library, freed with this object."""

    __slots__ = ("view", "__weakref__")

    def __init__(self) -> None:
        self.view = HsFeatures()

    # Functions are bound as defaults, because the names of the module may no longer exist when this object is freed at
    # the end of the interpreter.
    def __del__(self, free: Callable[[Any], None] = library.hs_features_free, reference: Any = ctypes.byref) -> None:
        free(reference(self.view))


def _origin_of(view: Any) -> Optional[Origin]:
    """Converts the library's origin; None: unknown."""
    if view.method_version == 0 or view.profile not in _PROFILE_NAMES or view.norm not in _NORM_NAMES:
        return None
    return Origin(view.method_version, _PROFILE_NAMES[view.profile], _NORM_NAMES[view.norm], view.dsp != 0)


def fill_features(fill: Callable[[Any], int], check_status: Callable[[int], None], layout: "Layout") -> Features:
    """Calls a function of the library that fills a list of features; returns arrays that refer to its memory."""
    memory = _FeatureMemory()
    check_status(fill(ctypes.byref(memory.view)))
    view = memory.view
    records = array_of_memory(memory, view.keypoints, (view.count,), KEYPOINT_DTYPE)
    descriptors = None
    if view.descriptor_type != _library.HS_DESCRIPTOR_NONE:
        descriptors = array_of_memory(
            memory, view.descriptors, (view.count, DESCRIPTOR_LENGTH), DESCRIPTOR_DTYPES[view.descriptor_type]
        )
    frames = None
    if view.frames:
        frames = array_of_memory(memory, view.frames, (view.count, 2, 2), np.dtype(np.float32))
    size, origin = (view.image_width, view.image_height), view.origin
    return Features(records, descriptors, size, layout, origin.exif_orientation, _origin_of(origin), frames)


def view_of_features(features: Features) -> Tuple[HsFeatures, Tuple[Any, ...]]:
    """The library's form of features, and objects that must outlive it."""
    records = np.ascontiguousarray(features.records)
    view = HsFeatures(
        count=len(records),
        keypoints=records.ctypes.data,
        descriptor_type=_library.HS_DESCRIPTOR_NONE,
        image_width=features.image_size[0],
        image_height=features.image_size[1],
    )
    view.origin.exif_orientation = features.exif_orientation
    if features.origin is not None:
        version, profile, norm, dsp = features.origin
        view.origin.method_version = version
        view.origin.profile = enumerator("profile", PROFILES, profile)
        view.origin.norm = enumerator("norm", NORMS, norm)
        view.origin.dsp = int(dsp)
        view.origin.layout = LAYOUTS[features.layout]
    frames = None if features.frames is None else np.ascontiguousarray(features.frames)
    if frames is not None:
        view.frames = frames.ctypes.data
    if features.descriptors is None:
        return view, (records, frames)
    descriptors = np.ascontiguousarray(features.descriptors)
    view.descriptors = descriptors.ctypes.data
    view.descriptor_type = _library.HS_DESCRIPTOR_U8 if descriptors.dtype == np.uint8 else _library.HS_DESCRIPTOR_F32
    return view, (records, descriptors, frames)


# ---- files


def _formats() -> Dict[str, int]:
    names, number = {"auto": 0}, 1
    while name := library.hs_format_name(number):
        names[name.decode("ascii")] = number
        number += 1
    return names


#: Numbers of formats by their names in the command's option --format.
FORMATS: Dict[str, int] = _formats()

PathLike = Union[str, "os.PathLike[str]"]


def file_options(file_format: "FileFormat", message: Any) -> HsFileOptions:
    """Options of the library for a file of features; `message` gets the reason of a failure."""
    return HsFileOptions(
        struct_size=ctypes.sizeof(HsFileOptions),
        format=enumerator("format", FORMATS, file_format),
        message=ctypes.addressof(message),
        message_bytes=_library.MESSAGE_BYTES,
        only_files=1,
    )


def write_features(
    path: PathLike,
    features: Features,
    format: "FileFormat" = "auto",
    *,  # noqa: A002
    image_name: Optional[str] = None,
    exif: bool = False,
) -> None:
    """Writes a feature file, which appears complete or not at all. In a COLMAP database (``.db``), which may exist, the
    features are added in one transaction.

    Args:
        path: the file.
        features: features to write; descriptors are converted to the format's type.
        format: one of ``hartsift.FORMATS``; ``"auto"``: by the ending of the path.
        image_name: stored if the format has a field for it; required for a COLMAP database.
        exif: formats whose programs read JPEGs as stored (colmap, colmap-db, openmvg, visualsfm) refuse features of a
            JPEG that was rotated by its EXIF orientation, unless this is True.
    """
    message = _library.message_buffer()
    options = file_options(format, message)
    if library.hs_format_ignores_exif(options.format or library.hs_format_of_name(path_bytes(path))):
        refuse_turned(features, exif, "the program of this format")
    options.layout = enumerator("layout", LAYOUTS, features.layout)
    options.image_name = None if image_name is None else image_name.encode("utf-8")
    view, arrays = view_of_features(features)
    if exif:
        view.origin.exif_orientation = 0
    status = library.hs_save_features(path_bytes(path), ctypes.byref(view), ctypes.byref(options))
    del arrays
    check(status, message.value)
