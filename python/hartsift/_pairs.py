"""Matches and verifies many pairs of a collection's images, on all cores or a GPU."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple, Type, Union, cast

import numpy as np

from . import _library
from ._calls import cached_extractor
from ._context import Context
from ._errors import ArgumentError, check, know_fields, make_error
from ._extractor import Extractor
from ._features import Features
from ._library import library
from ._matching import (
    MATCH_DTYPE,
    MODELS,
    CameraLike,
    Geometry,
    Matches,
    Model,
    Pose,
    VerifyOptions,
    match_options,
    _set_verify_options,
    features_of_descriptors,
)
from ._options import enumerator, make_options
from ._pair_structures import HsGeometry, HsMatchOptions, HsPose, HsVerifyOptions
from ._retrieval import HsCollection, HsImagePair, HsImagePairs, _collection, _count, _take
from ._samples import warn

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._hints import Options


class HsPairsOptions(ctypes.Structure):
    """hs_pairs_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("match", POINTER(HsMatchOptions)),
        ("verify", POINTER(HsVerifyOptions)),
        ("guided", c_int32),
        ("find_plane", c_int32),
        ("plane_tolerance", c_double),
        ("find_essential", c_int32),
        ("skip_next_distance", c_int32),
        ("contexts", POINTER(c_void_p)),
        ("context_count", c_size_t),
    ]


class HsPairResult(ctypes.Structure):
    """hs_pair_result"""

    _fields_ = [
        ("index", c_size_t),
        ("images", HsImagePair),
        ("status", c_int),
        ("message", c_char_p),
        ("match_count", c_size_t),
        ("matches", c_void_p),
        ("inliers", c_void_p),
        ("geometry", POINTER(HsGeometry)),
        ("plane", POINTER(HsGeometry)),
        ("fundamental", POINTER(HsGeometry)),
        ("pose", POINTER(HsPose)),
        ("watermark", c_int32),
        ("device", c_int32),
        ("unguided_matches", c_size_t),
        ("unguided_inliers", c_size_t),
    ]


STRUCTURES: Dict[str, Type[ctypes.Structure]] = {
    str(structure.__doc__): structure for structure in (HsPairsOptions, HsPairResult)
}
know_fields(STRUCTURES)

library.hs_shortlist_length.restype, library.hs_shortlist_length.argtypes = c_uint32, [c_uint32]
library.hs_pair_matching.restype = c_int
library.hs_pair_matching.argtypes = [
    c_void_p,
    POINTER(HsCollection),
    c_void_p,
    c_size_t,
    c_uint32,
    POINTER(HsImagePairs),
]
library.hs_pairs_start.restype = library.hs_pairs_next.restype = c_int
library.hs_pairs_start.argtypes = [
    POINTER(c_void_p),
    c_void_p,
    POINTER(HsCollection),
    c_void_p,
    c_size_t,
    POINTER(HsPairsOptions),
]
library.hs_pairs_next.argtypes = [c_void_p, c_int32, POINTER(POINTER(HsPairResult))]
library.hs_pairs_last_error.restype, library.hs_pairs_last_error.argtypes = c_char_p, [c_void_p]
library.hs_pairs_lost_devices.restype = c_int32
library.hs_pairs_lost_devices.argtypes = [c_void_p, POINTER(c_int32), c_char_p, c_size_t]
library.hs_pairs_end.restype, library.hs_pairs_end.argtypes = None, [c_void_p]


@dataclass(frozen=True)
class PairMatches:
    """Result of one pair.

    Attributes:
        first, second: indices of the two images.
        matches: of the two images.
        geometry: the verified geometry; None without ``verify``.
        plane: the homography that at least half of another model's inliers agree with; None: none, or not requested.
        fundamental: the fundamental matrix, if ``find_essential`` replaced it by the essential matrix in ``geometry``;
            else None.
        pose: pose of the second camera, if ``geometry`` is an essential matrix; else None.
        watermark: True: the inliers are in a caption, a logo or a frame in the border of both images.
        unguided: numbers of matches and inliers of the first pass, if the pair was matched again, guided by its
            geometry (``guided``); else None.
        device: index in ``devices`` of the device that matched the pair.
    """

    first: int
    second: int
    matches: Matches
    geometry: Optional[Geometry]
    plane: Optional[Geometry]
    fundamental: Optional[Geometry] = None
    pose: Optional[Pose] = None
    watermark: bool = False
    unguided: Optional[Tuple[int, int]] = None
    device: int = 0


def _geometry(view: HsGeometry, inliers: "npt.NDArray[np.bool_]") -> Geometry:
    return Geometry(
        cast(Model, next(name for name, number in MODELS.items() if number == view.model)),
        bool(view.found),
        np.array(view.matrix).reshape(3, 3),
        inliers,
        view.inlier_count,
        view.rms_error,
        view.plane_inliers,
        view.iterations,
        bool(view.plane_only),
        view.tolerance,
    )


def _copied(address: Optional[int], count: int, kind: Any) -> "npt.NDArray[Any]":
    """A copy of the result, because the library's memory is valid only until the next pair."""
    if not count or not address:
        return np.empty(0, kind)
    return np.frombuffer(ctypes.string_at(address, count * np.dtype(kind).itemsize), kind)


def _outcome(result: HsPairResult) -> PairMatches:
    matches = Matches(_copied(result.matches, result.match_count, MATCH_DTYPE))
    geometry = plane = fundamental = pose = None
    if result.geometry:
        geometry = _geometry(result.geometry.contents, _copied(result.inliers, result.match_count, np.bool_))
    if result.plane:
        plane = _geometry(result.plane.contents, np.empty(0, np.bool_))
    if result.fundamental:
        fundamental = _geometry(result.fundamental.contents, np.empty(0, np.bool_))
    if result.pose:
        view = result.pose.contents
        pose = Pose(np.array(view.rotation).reshape(3, 3), np.array(view.translation), view.in_front, view.used)
    first, second = result.images.first, result.images.second
    unguided = (result.unguided_matches, result.unguided_inliers) if result.unguided_matches else None
    watermark = bool(result.watermark)
    return PairMatches(first, second, matches, geometry, plane, fundamental, pose, watermark, unguided, result.device)


def _pair_list(pairs: "Optional[npt.ArrayLike]", images: int) -> "npt.NDArray[np.uint32]":
    if pairs is None:
        return np.stack(np.triu_indices(images, 1), 1).astype(np.uint32)
    given = np.asarray(pairs)
    if given.size == 0:
        return np.empty((0, 2), np.uint32)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        raise ArgumentError(f"pairs are {given.dtype} of shape {given.shape}, expected whole numbers (P, 2)")
    if given.min() < 0 or given.max() >= images:
        raise ArgumentError(f"a pair is of images {given.min()} to {given.max()} of {images}")
    return np.ascontiguousarray(given, np.uint32)


class _Run:
    """A run of the library, with its inputs. It ends when this object is freed."""

    def __init__(
        self, contexts: List[Context], collection: HsCollection, pairs: "npt.NDArray[np.uint32]", options: HsPairsOptions
    ) -> None:
        context = contexts[0]
        further = (c_void_p * len(contexts))(*(other.handle for other in contexts[1:]))
        options.contexts, options.context_count = further, len(contexts) - 1
        self._kept = (contexts, collection, pairs, options)
        self._handle = ctypes.c_void_p()
        status = library.hs_pairs_start(
            ctypes.byref(self._handle),
            context.handle,
            ctypes.byref(collection),
            pairs.ctypes.data,
            len(pairs),
            ctypes.byref(options),
        )
        check(status, library.hs_last_error(context.handle))
        self.end = weakref.finalize(self, library.hs_pairs_end, self._handle)
        self.end.atexit = False

    def next(self) -> Optional[PairMatches]:
        """Returns the result of the next pair; None: there are no more."""
        result = POINTER(HsPairResult)()
        status = library.hs_pairs_next(self._handle, -1, ctypes.byref(result))
        check(status, library.hs_pairs_last_error(self._handle))
        if not result:
            self._warn_of_lost()
            return None
        if result.contents.status != _library.HS_OK:
            pair, text = result.contents.images, result.contents.message.decode("utf-8", "replace")
            raise make_error(result.contents.status, f"images {pair.first} and {pair.second}: {text}")
        return _outcome(result.contents)


    def _warn_of_lost(self) -> None:
        """Warns of devices that failed in a run that others completed."""
        last, reason = c_int32(), ctypes.create_string_buffer(512)
        lost = library.hs_pairs_lost_devices(self._handle, ctypes.byref(last), reason, len(reason))
        text = reason.value.decode("utf-8", "replace")
        if lost == 1:
            warn(f"devices[{last.value}] failed, and the other devices matched its pairs: {text}")
        elif lost > 1:
            warn(f"{lost} devices failed, and the others matched their pairs; the last, devices[{last.value}]: {text}")


def _results(run: _Run, *_kept: Any) -> Iterator[PairMatches]:
    """Yields the run's results. Keeps its inputs alive."""
    try:
        found = run.next()
        while found is not None:
            yield found
            found = run.next()
    finally:
        run.end()


def _contexts(devices: Union[None, str, Sequence[str]], options: "Options") -> List[Context]:
    names: List[Any] = [devices] if devices is None or isinstance(devices, str) else list(devices)
    if not names:
        raise ArgumentError("devices is empty, expected one or more")
    return [Context(make_options({**options, **({} if name is None else {"device": name})})) for name in names]


def match_many(
    features: "Sequence[Union[Features, npt.NDArray[Any]]]",
    pairs: "Optional[npt.ArrayLike]" = None,
    *,
    ratio: float = 0.8,
    mutual: bool = True,
    max_distance: float = 0.0,
    verify: Optional[Model] = None,
    guided: bool = False,
    find_plane: bool = False,
    plane_tolerance: float = 0.0,
    find_essential: bool = False,
    next_distance: bool = True,
    cameras: "Optional[Sequence[Optional[CameraLike]]]" = None,
    verify_options: Optional[VerifyOptions] = None,
    devices: Union[None, str, Sequence[str]] = None,
    **options: "Unpack[Options]",
) -> Iterator[PairMatches]:
    """Matches many pairs of a collection at once. Results have the same bytes as ``match`` and ``verify`` for each
    pair.

    Threads work on different pairs, or verify a GPU's matches; results come in the order of the pairs while later pairs
    are processed, without the GIL. Closing the iterator ends the run.

    Args:
        features: features of each image, or without verification only its descriptors [N, 128].
        pairs: indices of images [P, 2]; None: all pairs.
        ratio, mutual, max_distance: as for ``match``.
        verify: ``"homography"``, ``"fundamental"`` or ``"essential"``; None: no verification. Pairs without both
            cameras get a fundamental matrix instead of an essential one.
        guided: if a geometry was found, match again among positions that agree with it, and verify again.
        find_plane: if at least half of the inliers are on one plane, estimate its homography too.
        plane_tolerance: tolerance of that homography, pixels; 0: the tolerance of ``verify_options``.
        find_essential: with ``verify="fundamental"``: if both cameras are known, estimate an essential matrix too, and
            use it if it has at least 0.95 times as many inliers.
        next_distance: False: ``next_distance`` of matches is 0 and is not computed, which saves time on a CPU.
        cameras: camera of each image, as for ``verify``; None: unknown.
        verify_options: see ``hartsift.VerifyOptions``.
        devices: ``"cuda:1"``, or a list of such names, which share the pairs; None: ``device``. A GPU that fails leaves
            its pairs to the others, and a warning at the end says why.
        options: options of the run's context, see ``hartsift.Options``: device, threads, max_memory_bytes.

    Raises:
        hartsift.Error: raised at once for wrong arguments; by the iterator if a pair cannot be matched.
    """
    lists = [features_of_descriptors(given) for given in features]
    if verify is not None and not all(isinstance(given, Features) for given in features):
        raise ArgumentError("verification needs the positions of the features: give Features, not descriptors alone")
    if cameras is not None and len(cameras) != len(lists):
        raise ArgumentError(f"{len(cameras)} cameras for {len(lists)} images")
    collection, kept = _collection(lists, cameras)
    wanted = HsPairsOptions(
        struct_size=ctypes.sizeof(HsPairsOptions),
        guided=bool(guided),
        find_plane=bool(find_plane),
        plane_tolerance=plane_tolerance,
        find_essential=bool(find_essential),
        skip_next_distance=not next_distance,
    )
    matching = match_options(ratio, max_distance, mutual, None, None, 4.0)
    wanted.match = ctypes.pointer(matching)
    if verify is not None:
        verifying = HsVerifyOptions()
        check(
            library.hs_verify_options_init_sized(
                ctypes.byref(verifying), ctypes.sizeof(verifying), enumerator("model", MODELS, verify)
            )
        )
        _set_verify_options(verifying, verify_options or {})
        wanted.verify = ctypes.pointer(verifying)
    elif verify_options:
        raise ArgumentError("verify_options are given without verify")
    contexts = _contexts(devices, options)
    return _results(_Run(contexts, collection, _pair_list(pairs, len(lists)), wanted), kept)


def shortlist_length(neighbors: int) -> int:
    """Number of most similar images among which ``matching_pairs`` should choose ``neighbors``: three times as many, at
    least 60."""
    return int(library.hs_shortlist_length(_count(neighbors, "neighbors")))


def matching_pairs(
    features: "Sequence[Union[Features, npt.NDArray[Any]]]",
    candidates: "npt.ArrayLike",
    neighbors: int,
    *,
    extractor: Optional[Extractor] = None,
) -> "npt.NDArray[np.uint32]":
    """Chooses from candidate pairs those whose images match best: each image proposes the ``neighbors`` partners with
    most matches among the 512 features of largest scale of both. Two images that match a third well are candidates too.

    Args:
        features: features of each image, or only its descriptors [N, 128], of which the first 512 count.
        candidates: indices of images [P, 2], each pair once: ``similar_pairs(vectors, shortlist_length(neighbors))``.
        extractor: its threads and device do the work; None: an extractor that is kept for this thread.

    Returns:
        Array uint32 [P, 2], in each pair the smaller first, in ascending order.
    """
    lists = [features_of_descriptors(given) for given in features]
    rows, wanted, pairs = _pair_list(candidates, len(lists)), _count(neighbors, "neighbors"), HsImagePairs()
    collection, kept = _collection(lists)
    (extractor or cached_extractor({}))._run(
        lambda context: library.hs_pair_matching(
            context, ctypes.byref(collection), rows.ctypes.data, len(rows), wanted, ctypes.byref(pairs)
        )
    )
    del kept
    return _take(pairs)
