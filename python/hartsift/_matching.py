"""Matching of descriptors, and verification of matches by the geometry of two views."""

from __future__ import annotations

import ctypes
import os
import weakref
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Iterator,
    List,
    Literal,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypedDict,
    Union,
    cast,
)

import numpy as np

from . import _library
from ._calls import cached_extractor
from ._errors import ArgumentError, ArrayTypeError, check
from ._extractor import Extractor
from ._features import Features, view_of_features
from ._images import array_of_memory
from ._library import library
from ._opencv import array_of
from ._options import enumerator, set_field, unknown_name
from ._pair_structures import HsCamera, HsGeometry, HsMatches, HsMatchOptions, HsPose, HsVerifyOptions

if TYPE_CHECKING:
    import cv2
    import numpy.typing as npt
    from typing_extensions import Unpack

#: One match: indices into the two lists, the distance, and the distance to the second nearest (infinity if there is
#: none).
MATCH_DTYPE = np.dtype(
    [("first", np.uint32), ("second", np.uint32), ("distance", np.float32), ("next_distance", np.float32)]
)
Guide = Literal["homography", "fundamental"]
Model = Literal["homography", "fundamental", "essential"]
GUIDES = {"homography": 1, "fundamental": 2}
MODELS = {"homography": 1, "fundamental": 2, "essential": 3}

#: Focal lengths and principal point fx, fy, cx, cy in pixels; or the 3 x 3 matrix of a camera without skew.
CameraLike = Union[Sequence[float], "npt.NDArray[Any]"]


class Matches:
    """Pairs of features, ordered by the index of the first. Slices, masks and index arrays give the matches they
    select.

    Attributes:
        records: structured array [M] of ``MATCH_DTYPE``.
    """

    __slots__ = ("records",)

    def __init__(self, records: "npt.NDArray[Any]") -> None:
        if records.dtype != MATCH_DTYPE or records.ndim != 1:
            raise ArrayTypeError("records must be a one-dimensional array of hartsift.MATCH_DTYPE")
        self.records = records

    @property
    def first(self) -> "npt.NDArray[np.uint32]":
        """uint32 [M], indices of the first list; a view."""
        column: npt.NDArray[np.uint32] = self.records["first"]
        return column

    @property
    def second(self) -> "npt.NDArray[np.uint32]":
        """uint32 [M], indices of the second list; a view."""
        column: npt.NDArray[np.uint32] = self.records["second"]
        return column

    @property
    def pairs(self) -> "npt.NDArray[np.uint32]":
        """uint32 [M, 2]; a view."""
        column = self.first
        return np.lib.stride_tricks.as_strided(column, (len(column), 2), (column.strides[0], column.itemsize))

    @property
    def distances(self) -> "npt.NDArray[np.float32]":
        """float32 [M], in the unit of the descriptors (8-bit ones have a norm of about 512); a view."""
        column: npt.NDArray[np.float32] = self.records["distance"]
        return column

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, selection: Any) -> "Matches":
        return Matches(np.atleast_1d(self.records[selection]))

    def __iter__(self) -> "Iterator[Matches]":
        """Iterates over the matches, each as a list of one."""
        return (self[index] for index in range(len(self)))

    def to_cv2(self) -> "List[cv2.DMatch]":
        """The matches as cv2.DMatch, for OpenCV's drawing functions. Needs the package cv2."""
        import cv2

        return [cv2.DMatch(int(r["first"]), int(r["second"]), float(r["distance"])) for r in self.records]

    def __repr__(self) -> str:
        return f"<hartsift.Matches: {len(self)}>"


class _MatchMemory:
    """A list of matches of the library, freed with this object."""

    def __init__(self) -> None:
        self.view = HsMatches()
        weakref.finalize(self, library.hs_matches_free, ctypes.byref(self.view)).atexit = False


def features_of_descriptors(given: "Union[Features, npt.NDArray[Any]]") -> Features:
    """Features to match: the given ones, or descriptors without positions."""
    if isinstance(given, Features):
        return given
    if isinstance(given, (str, bytes, os.PathLike)):
        raise ArrayTypeError(
            f"{given!r} is a name, expected features: those of hartsift.extract (an image) or hartsift.read_features "
            "(a feature file), or an array of descriptors"
        )
    given = array_of(given)
    if given is None:
        raise ArrayTypeError(
            "descriptors are None: SIFT_create gives that for an image without keypoints, where SIFT gives an array without "
            'rows; and Features have none with descriptor="none"'
        )
    rows = np.asarray(given)
    if rows.dtype not in (np.dtype(np.uint8), np.dtype(np.float32)):
        raise ArrayTypeError(f"descriptors have type {rows.dtype}, expected uint8 or float32")
    if rows.ndim != 2:
        raise ArgumentError(f"descriptors have shape {rows.shape}, expected (N, 128)")
    return Features.from_arrays(np.zeros((len(rows), 2), np.float32), rows)


def match_options(
    ratio: float,
    max_distance: float,
    mutual: bool,
    guide: Optional[Guide],
    guide_matrix: "Optional[npt.ArrayLike]",
    guide_tolerance: float,
) -> HsMatchOptions:
    options = HsMatchOptions()
    check(library.hs_match_options_init_sized(ctypes.byref(options), ctypes.sizeof(options)))
    options.ratio, options.max_distance, options.mutual = ratio, max_distance, int(bool(mutual))
    if (guide is None) != (guide_matrix is None):
        raise ArgumentError("guide and guide_matrix belong together")
    if guide is not None and guide_matrix is not None:
        options.guide = enumerator("guide", GUIDES, guide)
        options.guide_matrix[:] = _nine_numbers(guide_matrix, "guide_matrix")
        options.guide_tolerance = guide_tolerance
    return options


def _nine_numbers(matrix: "npt.ArrayLike", what: str) -> List[float]:
    numbers = np.asarray(matrix, np.float64).reshape(-1)
    if numbers.size != 9:
        raise ArgumentError(f"{what} has {numbers.size} numbers, expected 3 x 3")
    values: List[float] = numbers.tolist()
    return values


def match(
    first: "Union[Features, npt.NDArray[Any]]",
    second: "Union[Features, npt.NDArray[Any]]",
    *,
    ratio: float = 0.8,
    mutual: bool = True,
    max_distance: float = 0.0,
    guide: Optional[Guide] = None,
    guide_matrix: "Optional[npt.ArrayLike]" = None,
    guide_tolerance: float = 4.0,
    extractor: Optional[Extractor] = None,
) -> Matches:
    """Matches features exactly: every descriptor is compared with every other.

    Args:
        first, second: features, or only their descriptors [N, 128]; both uint8 or both float32.
        ratio: keep a pair if its distance is below ratio times the distance to the second nearest; 0: no test.
        mutual: cross-check: each feature must be the other's match, and all tests must pass in both directions.
        max_distance: maximum distance of a pair, in the unit of the descriptors; 0: no limit.
        guide: ``"homography"`` or ``"fundamental"``: a pair is a candidate only if its positions agree with
            ``guide_matrix`` (from points of the first image to the second) within ``guide_tolerance`` pixels.
        extractor: its threads and device do the work; None: an extractor that is kept for this thread.
    """
    a, b = features_of_descriptors(first), features_of_descriptors(second)
    if guide is not None and not (isinstance(first, Features) and isinstance(second, Features)):
        raise ArgumentError("a guide needs the positions of the features: give Features, not descriptors alone")
    options = match_options(ratio, max_distance, mutual, guide, guide_matrix, guide_tolerance)
    (view_a, arrays_a), (view_b, arrays_b) = view_of_features(a), view_of_features(b)
    memory = _MatchMemory()
    (extractor or cached_extractor({}))._run(
        lambda context: library.hs_match(
            context, ctypes.byref(view_a), ctypes.byref(view_b), ctypes.byref(options), ctypes.byref(memory.view)
        )
    )
    del arrays_a, arrays_b
    return Matches(array_of_memory(memory, memory.view.pairs, (memory.view.count,), MATCH_DTYPE))


@dataclass(frozen=True)
class Geometry:
    """The geometry that most matches agree with. Points x of the first image and x' of the second satisfy x' ~ H x,
    x'^T F x = 0, or x'^T Kb^-T E Ka^-1 x = 0.

    Attributes:
        model: ``"homography"``, ``"fundamental"`` or ``"essential"``.
        found: whether a model with enough inliers was found; if not, the matrix is zero and there are no inliers.
        matrix: float64 [3, 3].
        inliers: bool [M], True for matches that agree with the matrix.
        inlier_count: number of inliers.
        rms_error: root mean square of the inliers' errors, pixels.
        plane_inliers: number of inliers that one homography explains too; if it is near inlier_count, F and E are not
            determined.
        iterations: number of samples of the first search.
        plane_only: True: too few matches are off a plane to determine a fundamental matrix; the inliers are those of
            the plane.
        tolerance: maximum error of an inlier, pixels: that of the option, or the smaller one of the second search.
    """

    model: Model
    found: bool
    matrix: "npt.NDArray[np.float64]"
    inliers: "npt.NDArray[np.bool_]"
    inlier_count: int
    rms_error: float
    plane_inliers: int
    iterations: int
    plane_only: bool = False
    tolerance: float = 0.0


@dataclass(frozen=True)
class Pose:
    """Pose of the second camera relative to the first: X_b = R X_a + t.

    Attributes:
        rotation: float64 [3, 3].
        translation: float64 [3], of unit length.
        in_front: number of matches triangulated in front of both cameras.
        used: number of matches used.
    """

    rotation: "npt.NDArray[np.float64]"
    translation: "npt.NDArray[np.float64]"
    in_front: int
    used: int


def _points(
    given: "Union[Features, npt.ArrayLike]", indices: "Optional[npt.NDArray[Any]]"
) -> "npt.NDArray[np.float64]":
    points = np.asarray(given.points if isinstance(given, Features) else given, np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ArgumentError(f"points have shape {points.shape}, expected (N, 2)")
    if indices is not None:
        if indices.size and not (0 <= int(indices.min()) and int(indices.max()) < len(points)):
            raise ArgumentError("a match points beyond its list of features")
        points = points[indices]
    return np.ascontiguousarray(points)


def index_pairs(matches: "Union[Matches, npt.ArrayLike]") -> "npt.NDArray[Any]":
    """Matches as index pairs [M, 2]."""
    pairs = matches.pairs if isinstance(matches, Matches) else np.asarray(matches)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ArgumentError(f"matches are {pairs.dtype} of shape {pairs.shape}, expected whole numbers (M, 2)")
    return pairs


def _matched_points(
    first: "Union[Features, npt.ArrayLike]",
    second: "Union[Features, npt.ArrayLike]",
    matches: "Union[Matches, npt.ArrayLike, None]",
) -> "Tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]":
    """The positions of matched features, one row per match."""
    columns: Tuple[Optional[Any], Optional[Any]] = (None, None)
    if matches is not None:
        pairs = index_pairs(matches)
        columns = (pairs[:, 0], pairs[:, 1])
    a, b = _points(first, columns[0]), _points(second, columns[1])
    if len(a) != len(b):
        raise ArgumentError(f"{len(a)} and {len(b)} points without matches: expected equally many")
    return a, b


def _camera(given: CameraLike) -> HsCamera:
    numbers = np.asarray(given, np.float64)
    if numbers.shape == (3, 3):
        if numbers[0, 1] != 0 or not np.array_equal(numbers[2], [0, 0, 1]) or numbers[1, 0] != 0:
            raise ArgumentError("a camera matrix must be [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]")
        numbers = numbers[[0, 1, 0, 1], [0, 1, 2, 2]]
    if numbers.shape != (4,):
        raise ArgumentError(f"a camera has shape {numbers.shape}, expected (fx, fy, cx, cy) or 3 x 3")
    return HsCamera(*numbers.tolist())


class VerifyOptions(TypedDict, total=False):
    """Options of ``verify`` besides the model. Defaults are in ``hartsift_geometry.h``."""

    tolerance: float  #: maximum error of an inlier, pixels
    confidence: float  #: probability of having drawn a sample without outliers
    min_iterations: int  #: minimum number of samples
    max_iterations: int  #: maximum number of samples
    min_inliers: int  #: minimum number of inliers; with fewer nothing is found
    check_plane: bool  #: complete a fundamental matrix whose inliers are mostly in one plane
    seed: int  #: seed of the random samples
    refine: bool  #: a second search with the measured precision, among matches that move like their neighbours
    refine_matches: int  #: minimum number of inliers for a second search


def _set_verify_options(options: HsVerifyOptions, settings: Mapping[str, Any]) -> None:
    kinds = {field[0]: field[1] for field in HsVerifyOptions._fields_}
    for name, value in settings.items():
        if name not in VerifyOptions.__annotations__:
            raise unknown_name("option", name, VerifyOptions.__annotations__)
        set_field(options, kinds[name], name, value)


def verify(
    first: "Union[Features, npt.ArrayLike]",
    second: "Union[Features, npt.ArrayLike]",
    matches: "Union[Matches, npt.ArrayLike, None]" = None,
    model: Model = "homography",
    *,
    camera_a: Optional[CameraLike] = None,
    camera_b: Optional[CameraLike] = None,
    **options: "Unpack[VerifyOptions]",
) -> Geometry:
    """Finds the geometry that most matches agree with, and marks these matches. Equal seeds give equal bytes.

    Args:
        first, second: features, or points [N, 2] in pixels.
        matches: result of ``match``, or index pairs [M, 2]; None: row i of the first points matches row i of the
            second.
        model: ``"homography"``, ``"fundamental"`` or ``"essential"``, which needs both cameras.
        camera_a, camera_b: (fx, fy, cx, cy) in pixels, or 3 x 3.
        options: see ``hartsift.VerifyOptions``.
    """
    a, b = _matched_points(first, second, matches)
    message = _library.message_buffer()
    view = HsVerifyOptions()
    check(
        library.hs_verify_options_init_sized(
            ctypes.byref(view), ctypes.sizeof(view), enumerator("model", MODELS, model)
        )
    )
    _set_verify_options(view, options)
    if camera_a is not None and camera_b is not None:
        view.camera_a, view.camera_b = _camera(camera_a), _camera(camera_b)
    view.message, view.message_bytes = ctypes.addressof(message), _library.MESSAGE_BYTES
    inliers = np.zeros(len(a), np.uint8)
    geometry = HsGeometry()
    bytes_of_inliers = inliers.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
    status = library.hs_verify_points(
        a.ctypes.data, b.ctypes.data, len(a), ctypes.byref(view), bytes_of_inliers, ctypes.byref(geometry)
    )
    check(status, message.value)
    return Geometry(
        cast(Model, next(name for name, number in MODELS.items() if number == geometry.model)),
        bool(geometry.found),
        np.array(geometry.matrix).reshape(3, 3),
        inliers.view(np.bool_),
        geometry.inlier_count,
        geometry.rms_error,
        geometry.plane_inliers,
        geometry.iterations,
        bool(geometry.plane_only),
        geometry.tolerance,
    )


def relative_pose(
    essential: "npt.ArrayLike",
    camera_a: CameraLike,
    camera_b: CameraLike,
    first: "Union[Features, npt.ArrayLike]",
    second: "Union[Features, npt.ArrayLike]",
    matches: "Union[Matches, npt.ArrayLike, None]" = None,
    inliers: "Optional[npt.ArrayLike]" = None,
) -> Pose:
    """Chooses from the four poses of an essential matrix the pose with the most matches in front of both cameras.

    Args:
        essential: ``Geometry.matrix`` of the model "essential".
        camera_a, camera_b, first, second, matches: as for ``verify``.
        inliers: bool [M], the matches to use; None: all.
    """
    a, b = _matched_points(first, second, matches)
    chosen = None if inliers is None else np.ascontiguousarray(np.asarray(inliers) != 0).view(np.uint8)
    if chosen is not None and chosen.shape != (len(a),):
        raise ArgumentError(f"inliers have shape {chosen.shape}, expected ({len(a)},)")
    matrix = (ctypes.c_double * 9)(*_nine_numbers(essential, "essential"))
    pose = HsPose()
    first_camera, second_camera = _camera(camera_a), _camera(camera_b)
    check(
        library.hs_relative_pose(
            matrix,
            ctypes.byref(first_camera),
            ctypes.byref(second_camera),
            a.ctypes.data,
            b.ctypes.data,
            len(a),
            None if chosen is None else chosen.ctypes.data,
            ctypes.byref(pose),
        )
    )
    return Pose(np.array(pose.rotation).reshape(3, 3), np.array(pose.translation), pose.in_front, pose.used)
