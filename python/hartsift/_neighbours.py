"""The k nearest descriptors, and all descriptors within a radius."""

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
    import numpy.typing as npt

#: One neighbour: its index in the second list, and the distance; NO_FEATURE at infinity if there are fewer.
NEIGHBOUR_DTYPE = np.dtype([("index", np.uint32), ("distance", np.float32)])
#: The index that stands for no feature.
NO_FEATURE = 0xFFFFFFFF
#: Maximum k.
NEIGHBOURS_MAX = 1024


class HsMatchPair(ctypes.Structure):
    """hs_match_pair, whose arrays have the type ``MATCH_DTYPE``."""

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
    """Neighbours of each feature of the first list, nearest first: ``lists[i]`` is an array of ``NEIGHBOUR_DTYPE``.

    Attributes:
        starts: uint64 [N + 1]; the neighbours of feature i are ``neighbours[starts[i] : starts[i + 1]]``.
        neighbours: the neighbours of all features, one list after the other, [M] of ``NEIGHBOUR_DTYPE``.
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
        raise ArgumentError("a guide needs the positions of the features: give Features, not descriptors alone")
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
    """Finds exactly the k nearest features in ``second`` for every feature of ``first``; of equal distances the lower
    index comes first.

    Args:
        first, second: features, or only their descriptors [N, 128]; both uint8 or both float32.
        k: 1 to 1024.
        guide, guide_matrix, guide_tolerance: as for ``match``.
        extractor: its threads and device do the work; None: an extractor that is kept for this thread.

    Returns:
        [N, k] of ``NEIGHBOUR_DTYPE``, nearest first; if there are fewer, a row ends with ``NO_FEATURE`` at infinity.
    """
    if not 1 <= k <= NEIGHBOURS_MAX:
        raise ArgumentError(f"k is {k}, expected 1 to {NEIGHBOURS_MAX}")
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
    """Finds for every feature of ``first`` all features in ``second`` at a distance of at most ``radius``, nearest
    first.

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
