"""More neighbours than two: the k nearest descriptors, and all within a radius; and OpenCV's matcher made of them."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import POINTER, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._calls import cached_extractor
from ._errors import ArgumentError
from ._extractor import Extractor
from ._features import Features, view_of_features
from ._images import array_of_memory
from ._library import library
from ._matching import Guide, features_of_descriptors, match_options
from ._pair_structures import HsMatchOptions
from ._structures import HsFeatures

if TYPE_CHECKING:
    import cv2
    import numpy.typing as npt

#: One neighbour: its index in the second list and the distance; NO_FEATURE at infinity where there is none.
NEIGHBOUR_DTYPE = np.dtype([("index", np.uint32), ("distance", np.float32)])
#: The index of no feature.
NO_FEATURE = 0xFFFFFFFF
#: The largest k.
NEIGHBOURS_MOST = 1024


class HsMatchPair(ctypes.Structure):
    """hs_match_pair, what ``MATCH_DTYPE`` views."""

    _fields_ = [("first", c_uint32), ("second", c_uint32), ("distance", c_float), ("next_distance", c_float)]


class HsNeighbour(ctypes.Structure):
    """hs_neighbour"""

    _fields_ = [("index", c_uint32), ("distance", c_float)]


class HsNeighbourLists(ctypes.Structure):
    """hs_neighbour_lists"""

    _fields_ = [
        ("feature_count", c_size_t),
        ("starts", c_void_p),
        ("neighbours", c_void_p),
        ("starts_capacity", c_size_t),
        ("capacity", c_size_t),
        ("allocator", c_void_p),
        ("reserved", c_int32 * 8),
    ]


STRUCTURES = {
    "hs_match_pair": HsMatchPair,
    "hs_neighbour": HsNeighbour,
    "hs_neighbour_lists": HsNeighbourLists,
}
_CALL: List[Any] = [c_void_p, POINTER(HsFeatures), POINTER(HsFeatures), POINTER(HsMatchOptions)]
library.hs_find_k_nearest.restype = c_int
library.hs_find_k_nearest.argtypes = [*_CALL, c_int32, c_void_p]
library.hs_find_within.restype = c_int
library.hs_find_within.argtypes = [*_CALL, c_double, POINTER(HsNeighbourLists)]
library.hs_neighbour_lists_free.restype = None
library.hs_neighbour_lists_free.argtypes = [POINTER(HsNeighbourLists)]

DescriptorsLike = Union[Features, "npt.NDArray[Any]"]


class NeighbourLists(Sequence["npt.NDArray[Any]"]):
    """For each feature of the first list its neighbours, nearest first: ``lists[i]`` is an array of ``NEIGHBOUR_DTYPE``.

    Attributes:
        starts: uint64 [N + 1]; the neighbours of feature i are ``neighbours[starts[i] : starts[i + 1]]``.
        neighbours: all of them, one list after the other, [M] of ``NEIGHBOUR_DTYPE``.
    """

    __slots__ = ("starts", "neighbours")

    def __init__(self, starts: "npt.NDArray[Any]", neighbours: "npt.NDArray[Any]") -> None:
        self.starts, self.neighbours = starts, neighbours

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        return self.neighbours[int(self.starts[place]) : int(self.starts[place + 1])]

    def __repr__(self) -> str:
        return f"<hartsift.NeighbourLists: {len(self.neighbours)} neighbours of {len(self)} features>"


class _ListMemory:
    """Lists of the library, freed with this object."""

    def __init__(self) -> None:
        self.view = HsNeighbourLists()
        weakref.finalize(self, library.hs_neighbour_lists_free, ctypes.byref(self.view)).atexit = False


def _lists(
    first: DescriptorsLike,
    second: DescriptorsLike,
    guide: Optional[Guide],
    guide_matrix: "Optional[npt.ArrayLike]",
    guide_tolerance: float,
) -> Tuple[Any, Any, Any, HsMatchOptions]:
    a, b = features_of_descriptors(first), features_of_descriptors(second)
    if guide is not None and not (isinstance(first, Features) and isinstance(second, Features)):
        raise ArgumentError("a guide needs the places of the features: give Features, not descriptors alone")
    (view_a, arrays_a), (view_b, arrays_b) = view_of_features(a), view_of_features(b)
    options = match_options(0.0, 0.0, False, guide, guide_matrix, guide_tolerance)
    return (arrays_a, arrays_b, len(a)), view_a, view_b, options


def find_k_nearest(
    first: DescriptorsLike,
    second: DescriptorsLike,
    k: int,
    *,
    guide: Optional[Guide] = None,
    guide_matrix: "Optional[npt.ArrayLike]" = None,
    guide_tolerance: float = 4.0,
    extractor: Optional[Extractor] = None,
) -> "npt.NDArray[Any]":
    """The k nearest in ``second`` of every feature of ``first``, exactly; of equal distances the lower index first.

    Args:
        first, second: features, or their descriptors alone [N, 128]; both uint8 or both float32.
        k: 1 to 1024.
        guide, guide_matrix, guide_tolerance: as for ``match``.
        extractor: whose threads and device do the work; None: one kept for this thread.

    Returns:
        [N, k] of ``NEIGHBOUR_DTYPE``, nearest first; where there are fewer, a row ends with ``NO_FEATURE`` at infinity.
    """
    if not 1 <= k <= NEIGHBOURS_MOST:
        raise ArgumentError(f"k is {k}, expected 1 to {NEIGHBOURS_MOST}")
    kept, view_a, view_b, options = _lists(first, second, guide, guide_matrix, guide_tolerance)
    found = np.empty((kept[2], k), NEIGHBOUR_DTYPE)
    (extractor or cached_extractor({}))._run(
        lambda context: library.hs_find_k_nearest(
            context, ctypes.byref(view_a), ctypes.byref(view_b), ctypes.byref(options), k, found.ctypes.data
        )
    )
    return found


def find_within(
    first: DescriptorsLike,
    second: DescriptorsLike,
    radius: float,
    *,
    guide: Optional[Guide] = None,
    guide_matrix: "Optional[npt.ArrayLike]" = None,
    guide_tolerance: float = 4.0,
    extractor: Optional[Extractor] = None,
) -> NeighbourLists:
    """All in ``second`` that are at most ``radius`` from a feature of ``first``, nearest first.

    Args:
        radius: in the unit of the descriptors (8-bit ones have a norm of about 512), 0 or more.
        first, second, guide, guide_matrix, guide_tolerance, extractor: as for ``find_k_nearest``.
    """
    kept, view_a, view_b, options = _lists(first, second, guide, guide_matrix, guide_tolerance)
    memory = _ListMemory()
    (extractor or cached_extractor({}))._run(
        lambda context: library.hs_find_within(
            context, ctypes.byref(view_a), ctypes.byref(view_b), ctypes.byref(options), radius, ctypes.byref(memory.view)
        )
    )
    starts = array_of_memory(memory, memory.view.starts, (kept[2] + 1,), np.uintp)
    return NeighbourLists(starts, array_of_memory(memory, memory.view.neighbours, (int(starts[-1]),), NEIGHBOUR_DTYPE))


_NORM_L2 = 4


class BFMatcher:
    """Takes the place of ``cv2.BFMatcher(cv2.NORM_L2, crossCheck)`` for SIFT's descriptors, uint8 or float32 [N, 128].

    ``match``, ``knnMatch`` and ``radiusMatch`` return cv2.DMatch as OpenCV's do; distances are exact, and of equal ones
    the lower index comes first. Needs the package cv2.

    Args:
        normType: 4, ``cv2.NORM_L2``, the only one.
        crossCheck: keep a match only if it is found from both sides; then ``knnMatch`` takes k = 1 alone, as OpenCV's.
        extractor: whose threads and device do the work; None: one kept for this thread.
    """

    def __init__(
        self, normType: int = _NORM_L2, crossCheck: bool = False, *, extractor: Optional[Extractor] = None
    ) -> None:
        if normType != _NORM_L2:
            raise ArgumentError(f"normType is {normType}, expected {_NORM_L2} (NORM_L2)")
        self._cross, self._extractor = bool(crossCheck), extractor

    create = classmethod(lambda cls, *arguments, **named: cls(*arguments, **named))

    def match(self, queryDescriptors: Any, trainDescriptors: Any) -> "Tuple[cv2.DMatch, ...]":
        """The nearest of every query descriptor."""
        return tuple(row[0] for row in self._nearest(queryDescriptors, trainDescriptors, 1) if row)

    def knnMatch(
        self, queryDescriptors: Any, trainDescriptors: Any, k: int, mask: None = None, compactResult: bool = False
    ) -> "Tuple[Tuple[cv2.DMatch, ...], ...]":
        """The k nearest of every query descriptor. compactResult is about masks, and changes nothing here."""
        if mask is not None:
            raise ArgumentError("masks of pairs are not supported: expected mask=None")
        if self._cross and k != 1:
            raise ArgumentError(f"k is {k} with crossCheck, expected 1")
        rows = self._nearest(queryDescriptors, trainDescriptors, k)
        return tuple(map(tuple, rows))

    def radiusMatch(
        self,
        queryDescriptors: Any,
        trainDescriptors: Any,
        maxDistance: float,
        mask: None = None,
        compactResult: bool = False,
    ) -> "Tuple[Tuple[cv2.DMatch, ...], ...]":
        """All within a distance of every query descriptor, nearest first. compactResult changes nothing, as above."""
        import cv2

        if mask is not None:
            raise ArgumentError("masks of pairs are not supported: expected mask=None")
        if self._cross:
            raise ArgumentError("radiusMatch means nothing with crossCheck")
        lists = find_within(queryDescriptors, trainDescriptors, maxDistance, extractor=self._extractor)
        return tuple(
            tuple(cv2.DMatch(i, int(n["index"]), 0, float(n["distance"])) for n in found) for i, found in enumerate(lists)
        )

    def _nearest(self, query: Any, train: Any, k: int) -> "List[List[cv2.DMatch]]":
        import cv2

        k = min(k, NEIGHBOURS_MOST) if len(train) <= NEIGHBOURS_MOST else k
        found = find_k_nearest(query, train, k, extractor=self._extractor)
        if self._cross:
            back = find_k_nearest(train, query, 1, extractor=self._extractor)["index"][:, 0]
            mutual = [
                n["index"] != NO_FEATURE and int(back[n["index"]]) == i for i, n in enumerate(found[:, 0])
            ]
            return [
                [cv2.DMatch(i, int(n["index"]), 0, float(n["distance"]))] if mutual[i] else []
                for i, n in enumerate(found[:, 0])
            ]
        return [
            [cv2.DMatch(i, int(n["index"]), 0, float(n["distance"])) for n in row if n["index"] != NO_FEATURE]
            for i, row in enumerate(found)
        ]
