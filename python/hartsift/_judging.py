"""Judges whether verified pairs show the same place, by the tracks of a collection's sure pairs."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_double, c_int, c_int32, c_size_t, c_void_p
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Sequence, Tuple, Type, cast

import numpy as np

from . import _library
from ._errors import ArgumentError, check
from ._library import library
from ._retrieval import HsImagePair

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Literal

    Verdict = Literal["supported", "sure", "only-link", "doubtful"]

#: HS_PAIR_...
VERDICTS = {"supported": 0, "sure": 1, "only-link": 2, "doubtful": 3}

_LARGEST = (1 << 32) - 1
_MESSAGE_BYTES = 256
_READ = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)


class HsJudgedPair(ctypes.Structure):
    """hs_judged_pair"""

    _fields_ = [
        ("images", HsImagePair),
        ("match_count", c_size_t),
        ("inlier_count", c_size_t),
        ("verdict", c_int),
        ("on_tracks", c_size_t),
        ("supported", c_size_t),
        ("reserved", c_int32 * 4),
    ]


class HsPairInliers(ctypes.Structure):
    """hs_pair_inliers"""

    _fields_ = [("feature_counts", c_void_p), ("image_count", c_size_t), ("read", _READ), ("user", c_void_p)]


class HsJudgeOptions(ctypes.Structure):
    """hs_judge_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("sure_inliers", c_size_t),
        ("sure_share", c_double),
        ("doubtful_share", c_double),
        ("least_support", c_double),
        ("allocator", c_void_p),
        ("message", c_void_p),
        ("message_bytes", c_size_t),
    ]


STRUCTURES: Dict[str, Type[ctypes.Structure]] = {
    str(structure.__doc__): structure for structure in (HsJudgedPair, HsPairInliers, HsJudgeOptions)
}

library.hs_judge_options_init_sized.restype = library.hs_judge_pairs.restype = c_int
library.hs_judge_options_init_sized.argtypes = [POINTER(HsJudgeOptions), c_size_t]
library.hs_judge_pairs.argtypes = [POINTER(HsPairInliers), c_void_p, c_size_t, POINTER(HsJudgeOptions)]


@dataclass(frozen=True)
class PairVerdict:
    """Verdict of the collection on a verified pair.

    Attributes:
        verdict: ``"sure"``: many inliers, and most of its matches; its inliers join features to tracks.
            ``"supported"``: the tracks confirm the pair, or do not contradict it. ``"only-link"``: no chain of sure
            pairs connects its images, or only chains of four or more, so that the pair may close a loop.
            ``"doubtful"``: sure pairs connect its images, but their tracks do not confirm the pair, for example because
            two buildings look alike.
        on_tracks: inliers with both features on tracks; 0 for a sure pair.
        supported: inliers with both features on the same track.
    """

    verdict: "Verdict"
    on_tracks: int
    supported: int


def _whole(values: Any, what: str) -> "npt.NDArray[np.int64]":
    """Checks integers from 0 to 2^32 - 1."""
    given = np.asarray(values)
    if given.size == 0:
        return np.zeros(given.shape, np.int64)
    if given.dtype.kind not in "iu":
        raise ArgumentError(f"{what} are {given.dtype}, expected whole numbers")
    if given.min() < 0 or given.max() > _LARGEST:
        raise ArgumentError(f"{what} are {given.min()} to {given.max()}, expected 0..2^32 - 1")
    return cast("npt.NDArray[np.int64]", given.astype(np.int64))


def _inliers_of(pair: int, inliers: Any) -> "npt.NDArray[np.uint32]":
    given = _whole(inliers, f"inliers of pair {pair}")
    if given.size == 0:
        return np.zeros((0, 2), np.uint32)
    if given.ndim != 2 or given.shape[1] != 2:
        raise ArgumentError(f"inliers of pair {pair} have shape {given.shape}, expected (N, 2)")
    return np.ascontiguousarray(given, np.uint32)


def judge_pairs(
    feature_counts: "npt.ArrayLike",
    pairs: "Iterable[Tuple[int, int, int, npt.ArrayLike]]",
    *,
    sure_inliers: int = 100,
    sure_share: float = 0.6,
    doubtful_share: float = 0.5,
    least_support: float = 0.15,
) -> List[PairVerdict]:
    """Judges which verified pairs contradict the other pairs of their collection, as ``hartsift match --database``
    does.

    Buildings repeat: pictures of two facades with the same windows can agree with a geometry although they show
    different places. Pairs with many inliers join features to tracks; the two features of an inlier of another pair
    should be on the same track. Leave out pairs that are ``"doubtful"``. Sure pairs that are wrong, and collections
    without sure pairs, cannot be judged.

    Args:
        feature_counts: number of features of each image.
        pairs: for each verified pair its two images, the number of its matches before verification, and its inliers [N,
            2], indices of a feature of the first and of the second image. For a pair that was matched again, guided by
            its geometry, the number of matches must be the one that gives the share of inliers of the first pass:
            inliers / share.
        sure_inliers: minimum number of inliers of a sure pair.
        sure_share: minimum share of the matches of a sure pair that are inliers.
        doubtful_share: a pair with a smaller share of inliers is doubtful if its support is below ``least_support``, or
            if ten or more inliers have their features on different tracks and fewer on the same track. From this share
            to ``sure_share`` a pair is doubtful if four or more inliers have their features on different tracks and
            none on the same track.
        least_support: minimum share of the inliers with both features on the same track, of a pair that is not
            doubtful.

    Returns:
        One verdict for each pair, in the order of the pairs. The verdicts do not depend on the order.

    Raises:
        hartsift.ArgumentError: an image or a feature that does not exist, or an option out of its range.

    >>> features = [hartsift.extract(name) for name in names]
    >>> found = [r for r in hartsift.match_many(features, verify="fundamental") if r.geometry.found]
    >>> verdicts = hartsift.judge_pairs(
    ...     [len(f) for f in features],
    ...     [(r.first, r.second, len(r.matches), r.matches.pairs[r.geometry.inliers]) for r in found],
    ... )
    >>> found = [r for r, v in zip(found, verdicts) if v.verdict != "doubtful"]
    """
    counts = np.ascontiguousarray(_whole(feature_counts, "feature_counts"), np.uintp)
    if counts.ndim != 1:
        raise ArgumentError(f"feature_counts have shape {counts.shape}, expected (N,)")
    given: Sequence[Tuple[int, int, int, Any]] = list(pairs)
    numbers = _whole([pair[:3] for pair in given], "images and numbers of matches of pairs").reshape(-1, 3)
    lists = [_inliers_of(index, pair[3]) for index, pair in enumerate(given)]
    judged = (HsJudgedPair * max(len(given), 1))()
    for pair, (first, second, matches), inliers in zip(judged, numbers.tolist(), lists):
        pair.images.first, pair.images.second = first, second
        pair.match_count, pair.inlier_count = matches, len(inliers)

    def read(_user: Any, pair: int, inliers: int) -> int:
        ctypes.memmove(inliers, lists[pair].ctypes.data, lists[pair].nbytes)
        return _library.HS_OK

    source = HsPairInliers(counts.ctypes.data, len(counts), _READ(read), None)
    options, message = HsJudgeOptions(), (c_char * _MESSAGE_BYTES)()
    check(library.hs_judge_options_init_sized(ctypes.byref(options), ctypes.sizeof(options)))
    if not 0 <= sure_inliers <= _LARGEST:
        raise ArgumentError(f"sure_inliers is {sure_inliers}, expected 0..2^32 - 1")
    options.sure_inliers, options.sure_share = sure_inliers, sure_share
    options.doubtful_share, options.least_support = doubtful_share, least_support
    options.message, options.message_bytes = ctypes.addressof(message), _MESSAGE_BYTES
    status = library.hs_judge_pairs(ctypes.byref(source), ctypes.addressof(judged), len(given), ctypes.byref(options))
    check(status, message.value)
    names = {number: cast("Verdict", name) for name, number in VERDICTS.items()}
    return [PairVerdict(names[pair.verdict], pair.on_tracks, pair.supported) for pair in judged[: len(given)]]
