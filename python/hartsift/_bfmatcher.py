"""OpenCV's brute-force matcher over the library's exact neighbours."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from ._errors import ArgumentError, ArrayTypeError
from ._extractor import Extractor
from ._features import Features
from ._library import DESCRIPTOR_LENGTH
from ._neighbours import NEIGHBOURS_MAX, NO_FEATURE, find_k_nearest, find_within
from ._opencv import MISSING, array_of, flag, is_empty, is_umat, raises_like_cv2, real, whole

if TYPE_CHECKING:
    import cv2
    import numpy.typing as npt

    Row = Tuple[cv2.DMatch, ...]

NORM_L2 = 4
#: OpenCV refuses radii up to the epsilon of float32.
_LEAST_RADIUS = float(np.finfo(np.float32).eps)


def _rows(given: Any, name: str) -> Any:
    """Descriptors as an array [N, length]; None for no descriptors."""
    if isinstance(given, Features):
        if given.descriptors is None and len(given) > 0:
            raise ArgumentError(f'{name} has no descriptors: it was extracted with descriptor="none"')
        given = given.descriptors
    given = array_of(given)
    if given is None:
        return None
    rows = given if isinstance(given, np.ndarray) or not hasattr(given, "__array__") else np.asarray(given)
    if not isinstance(rows, np.ndarray) or rows.dtype.kind not in "buif":
        kind = rows.dtype if isinstance(rows, np.ndarray) else type(given).__name__
        raise ArrayTypeError(f"{name} is {kind}, expected an array of descriptors, Features, a cv2.UMat or None")
    rows = rows[None] if rows.ndim == 1 and rows.size > 0 else rows
    if rows.ndim != 2 and rows.size > 0:
        raise ArgumentError(f"{name} has shape {rows.shape}, expected (N, {DESCRIPTOR_LENGTH})")
    return rows


def _mask(given: Any, shape: Tuple[int, int]) -> Any:
    """A mask of pairs; None: all pairs may match."""
    mask = array_of(given)
    if is_empty(mask):
        return None
    if not isinstance(mask, np.ndarray) or mask.dtype not in (np.dtype(np.uint8), np.dtype(np.bool_)):
        kind = mask.dtype if isinstance(mask, np.ndarray) else type(given).__name__
        raise ArrayTypeError(f"the mask of pairs is {kind}, expected an array of uint8 or bool")
    if mask.shape != shape:
        raise ArgumentError(f"the mask of pairs has shape {mask.shape}, expected {shape}: query by train descriptors")
    return mask.view(np.uint8)


def _matches(query: Sequence[int], train: Any, images: Any, distances: Any) -> "Row":
    import cv2

    return tuple(map(cv2.DMatch, query, train.tolist(), images.tolist(), distances.tolist()))


class _Call:
    """Descriptors and masks of one call: of the query, and of one image or of all added images."""

    def __init__(self, query: Any, train: Any, masks: Any, added: List[Any]) -> None:
        self.query = _rows(query, "queryDescriptors")
        self.of_added = train is MISSING
        self.empty = is_empty(self.query) or (self.of_added and not added)
        self.sets: List[Any] = []
        self.masks: List[Any] = []
        if self.empty:
            return
        self.sets = [_rows(one, "trainDescriptors") for one in (added if self.of_added else [train])]
        if any(one is None or one.ndim != 2 for one in self.sets):
            raise ArgumentError(
                "trainDescriptors is None: expected an array; SIFT_create gives None for an image without keypoints, which "
                "nothing can match"
            )
        if any(one.dtype != self.query.dtype for one in self.sets):
            kinds = ", ".join(sorted({str(one.dtype) for one in self.sets}))
            raise ArrayTypeError(f"queryDescriptors are {self.query.dtype} and trainDescriptors {kinds}: expected one type")
        self._set_masks(masks)

    def _set_masks(self, given: Any) -> None:
        masks = [given] if not self.of_added else list(given) if given is not None else []
        if masks and len(masks) != len(self.sets):
            raise ArgumentError(f"{len(masks)} masks for {len(self.sets)} images that were added: expected one for each")
        self.masks = [_mask(mask, (len(self.query), len(one))) for mask, one in zip(masks, self.sets)]

    @property
    def count(self) -> int:
        """Number of train descriptors."""
        return sum(map(len, self.sets))

    def is_plain(self) -> bool:
        """True if the library can match these descriptors: they are SIFT's, and every pair may match."""
        if any(mask is not None for mask in self.masks) or self.query.dtype not in (np.dtype("u1"), np.dtype("f4")):
            return False
        if any(one.shape[1] != DESCRIPTOR_LENGTH for one in (self.query, *self.sets)):
            return False
        return self.query.dtype == np.uint8 or all(bool(np.isfinite(one).all()) for one in (self.query, *self.sets))

    def whole_train(self) -> Any:
        """The concatenated train descriptors of all images."""
        return self.sets[0] if len(self.sets) == 1 else np.concatenate(self.sets)

    def places(self, indices: "npt.NDArray[Any]") -> "Tuple[npt.NDArray[Any], npt.NDArray[Any]]":
        """Converts indices into ``whole_train`` to indices in the list of an image, and the numbers of the images."""
        starts = np.cumsum([0, *map(len, self.sets)])
        images = np.searchsorted(starts, indices, side="right") - 1
        return indices - starts[images], images


class BFMatcher:
    """Replaces ``cv2.BFMatcher(cv2.NORM_L2, crossCheck)`` for SIFT's descriptors, uint8 or float32 [N, 128].

    All methods and forms of OpenCV's calls work (python/OPENCV.md lists differences): with train descriptors or with
    added ones, None or an empty array for no descriptors, ``cv2.UMat``, masks of pairs; also ``hartsift.Features``.
    They return cv2.DMatch as OpenCV's methods do; distances are exact, and of equal distances the lower index comes
    first. OpenCV's own matcher handles everything else (masks, other norms, types and lengths, more than 1024
    neighbours). An error is a ``hartsift.Error`` and a ``cv2.error``. Needs the package cv2.

    Args:
        normType: 4, which is ``cv2.NORM_L2``, or another norm of OpenCV.
        crossCheck: keep a match only if each descriptor is the other's nearest; ``knnMatch`` then allows only k = 1, as
            OpenCV's does.
        extractor: its threads and device do the work; None: an extractor that is kept for this thread.
    """

    @raises_like_cv2
    def __init__(
        self, normType: int = NORM_L2, crossCheck: bool = False, *, extractor: Optional[Extractor] = None
    ) -> None:
        self._norm, self._cross = whole(normType, "normType", NORM_L2), flag(crossCheck, "crossCheck")
        self._extractor = extractor
        self._train: List[Any] = []

    @staticmethod
    @raises_like_cv2
    def create(
        normType: int = NORM_L2, crossCheck: bool = False, *, extractor: Optional[Extractor] = None
    ) -> "BFMatcher":
        """As ``cv2.BFMatcher.create``.

        Args:
            normType, crossCheck, extractor: as for ``hartsift.BFMatcher``.
        """
        return BFMatcher(normType, crossCheck, extractor=extractor)

    # ---- the collection of train descriptors

    @raises_like_cv2
    def add(self, descriptors: Any) -> None:
        """Adds train descriptors, for calls without train descriptors.

        Args:
            descriptors: a list with an array, a cv2.UMat or Features for each image. They are not copied.
        """
        if is_umat(descriptors) or isinstance(descriptors, (str, bytes, os.PathLike, Features)):
            raise ArrayTypeError(f"descriptors is {type(descriptors).__name__}, expected a list with an array for each image")
        sets = [] if descriptors is None else list(descriptors)
        for one in sets:
            _rows(one, "descriptors")
        self._train.extend(sets)

    @raises_like_cv2
    def train(self) -> None:
        """Does nothing, as OpenCV's, because there is no index."""

    @raises_like_cv2
    def clear(self) -> None:
        """Removes all added descriptors."""
        self._train.clear()

    @raises_like_cv2
    def empty(self) -> bool:
        """True if no descriptors were added."""
        return not self._train

    @raises_like_cv2
    def getTrainDescriptors(self) -> Tuple[Any, ...]:
        """The added descriptors, one array per image."""
        return tuple(one.descriptors if isinstance(one, Features) else array_of(one) for one in self._train)

    @raises_like_cv2
    def clone(self, emptyTrainData: bool = False) -> "BFMatcher":
        """Returns another matcher with copies of the added descriptors, or without them if ``emptyTrainData`` is true."""
        copy = BFMatcher(self._norm, self._cross, extractor=self._extractor)
        if not flag(emptyTrainData, "emptyTrainData"):
            copy.add([None if one is None else np.array(one) for one in self.getTrainDescriptors()])
        return copy

    def isMaskSupported(self) -> bool:
        """True."""
        return True

    # ---- matching

    @raises_like_cv2
    def match(
        self, queryDescriptors: Any, trainDescriptors: Any = MISSING, mask: Any = None, *, masks: Any = None
    ) -> "Row":
        """The nearest neighbour of every query descriptor: ``match(query, train, mask)``, or ``match(query, masks)``
        among the added descriptors.

        Args:
            queryDescriptors: descriptors; None or an empty array: there are no matches.
            trainDescriptors: descriptors; left out: the added ones; imgIdx is then the number of the image.
            mask: uint8 or bool [query, train], zero for pairs that may not match.
            masks: a list with such a mask, or None, for each added image.
        """
        if isinstance(trainDescriptors, (list, tuple)):
            trainDescriptors, masks = MISSING, trainDescriptors
        call = self._call(queryDescriptors, trainDescriptors, mask, masks)
        if call.empty:
            return ()
        if not self._is_ours(call, 1):
            return tuple(self._by_opencv("match", call))
        return tuple(row[0] for row in self._nearest(call, 1) if row)

    @raises_like_cv2
    def knnMatch(
        self,
        queryDescriptors: Any,
        trainDescriptors: Any = MISSING,
        k: Any = MISSING,
        mask: Any = None,
        compactResult: bool = False,
        *,
        masks: Any = None,
    ) -> "Tuple[Row, ...]":
        """The k nearest neighbours of every query descriptor: ``knnMatch(query, train, k, mask, compactResult)``, or
        ``knnMatch(query, k, masks, compactResult)`` among the added descriptors.

        Args:
            queryDescriptors, trainDescriptors, mask, masks: as for ``match``.
            k: number of neighbours, 1 or more; if there are fewer train descriptors, all are returned.
            compactResult: leave out query descriptors without matches.
        """
        if _is_number(trainDescriptors):
            trainDescriptors, k, masks, compactResult = _second_form("k", trainDescriptors, k, mask, masks, compactResult)
            mask = None
        if k is MISSING:
            raise ArrayTypeError("k is missing")
        k = whole(k, "k", 0)
        call = self._call(queryDescriptors, trainDescriptors, mask, masks)
        if call.empty:
            return ()
        if k < 1:
            raise ArgumentError(f"k is {k}, expected 1 or more")
        if self._cross and k != 1:
            raise ArgumentError(f"k is {k} with crossCheck, expected 1")
        if self._is_ours(call, k):
            return _compacted(self._nearest(call, k), compactResult)
        return _compacted(self._by_opencv("knnMatch", call, k), compactResult)

    @raises_like_cv2
    def radiusMatch(
        self,
        queryDescriptors: Any,
        trainDescriptors: Any = MISSING,
        maxDistance: Any = MISSING,
        mask: Any = None,
        compactResult: bool = False,
        *,
        masks: Any = None,
    ) -> "Tuple[Row, ...]":
        """All neighbours within a distance of every query descriptor, nearest first: ``radiusMatch(query, train,
        maxDistance, mask, compactResult)``, or ``radiusMatch(query, maxDistance, masks, compactResult)`` among the
        added descriptors. crossCheck has no effect here, as in OpenCV.

        Args:
            queryDescriptors, trainDescriptors, mask, masks: as for ``match``.
            maxDistance: more than 0, in the unit of the descriptors.
            compactResult: leave out query descriptors without matches.
        """
        if _is_number(trainDescriptors):
            trainDescriptors, maxDistance, masks, compactResult = _second_form(
                "maxDistance", trainDescriptors, maxDistance, mask, masks, compactResult
            )
            mask = None
        if maxDistance is MISSING:
            raise ArrayTypeError("maxDistance is missing")
        radius = real(maxDistance, "maxDistance", 0.0)
        call = self._call(queryDescriptors, trainDescriptors, mask, masks)
        if call.empty:
            return ()
        if not radius > _LEAST_RADIUS:
            raise ArgumentError(f"maxDistance is {radius}, expected more than 0")
        if self._norm != NORM_L2 or not call.is_plain():
            return _compacted(self._by_opencv("radiusMatch", call, radius), compactResult)
        lists = find_within(call.query, call.whole_train(), radius, extractor=self._extractor)
        indices, images = call.places(lists.neighbours["index"].astype(np.int64))
        ends = lists.starts.tolist()
        queries = [row for row, (a, b) in enumerate(zip(ends, ends[1:])) for _ in range(a, b)]
        found = _matches(queries, indices, images, lists.neighbours["distance"])
        return _compacted([found[a:b] for a, b in zip(ends, ends[1:])], compactResult)

    def _call(self, query: Any, train: Any, mask: Any, masks: Any) -> _Call:
        if mask is not None and train is MISSING:
            raise ArgumentError("mask is for trainDescriptors: expected masks, a list with one for each image that was added")
        if masks is not None and train is not MISSING:
            raise ArgumentError("masks is for what was added: expected mask, the one for trainDescriptors")
        return _Call(query, train, mask if train is not MISSING else masks, self._train)

    def _is_ours(self, call: _Call, k: int) -> bool:
        if self._norm != NORM_L2 or not call.is_plain() or min(k, call.count) > NEIGHBOURS_MAX:
            return False
        if self._cross and len(call.sets) > 1:
            raise ArgumentError(f"crossCheck with {len(call.sets)} images that were added, expected one")
        return True

    def _nearest(self, call: _Call, k: int) -> "List[Row]":
        train = call.whole_train()
        found = find_k_nearest(call.query, train, min(k, max(len(train), 1)), extractor=self._extractor)
        kept = found["index"] != NO_FEATURE
        if self._cross and len(train) > 0:
            back = find_k_nearest(train, call.query, 1, extractor=self._extractor)["index"][:, 0]
            kept[:, 0] &= back[np.where(kept[:, 0], found["index"][:, 0], 0)] == np.arange(len(found))
        counts = kept.sum(1)
        indices, images = call.places(found["index"][kept].astype(np.int64))
        queries = np.repeat(np.arange(len(found)), counts).tolist()
        matches = _matches(queries, indices, images, found["distance"][kept])
        ends = np.cumsum([0, *counts]).tolist()
        return [matches[a:b] for a, b in zip(ends, ends[1:])]

    def _by_opencv(self, name: str, call: _Call, *number: Union[int, float]) -> Any:
        """Result of cv2's matcher for the same call, as a list for each query descriptor."""
        import cv2

        matcher = cv2.BFMatcher(self._norm, self._cross)
        method: Callable[..., Any] = getattr(matcher, name)
        query = np.ascontiguousarray(call.query)
        sets = [np.ascontiguousarray(one) for one in call.sets]
        if not call.of_added:
            return method(query, sets[0], *number, call.masks[0])
        matcher.add(sets)
        return method(query, *number, call.masks or None) if call.masks else method(query, *number)

    # ---- methods of OpenCV's Algorithm

    def getDefaultName(self) -> str:
        """As OpenCV's."""
        return "my_object"

    @raises_like_cv2
    def write(self, target: Any, name: Optional[str] = None) -> None:
        """Writes as OpenCV's matcher does, which has no parameters. target: name of a file, or a FileStorage, which
        gets an empty map called ``name``."""
        path = os.fspath(target) if isinstance(target, (str, os.PathLike)) else target
        self._algorithm().write(*([path] if name is None else [path, name]))

    @raises_like_cv2
    def save(self, filename: "Union[str, os.PathLike[str]]") -> None:
        """Writes to the file ``filename``, as OpenCV's matcher does."""
        self._algorithm().save(os.fspath(filename))

    @raises_like_cv2
    def read(self, source: Any) -> None:
        """Reads no parameters, as OpenCV's matcher. source: name of a file, or a FileNode."""
        self._algorithm().read(os.fspath(source) if isinstance(source, (str, os.PathLike)) else source)

    def _algorithm(self) -> Any:
        import cv2

        return cv2.BFMatcher(self._norm, self._cross)


#: As ``cv2.BFMatcher_create``; see ``BFMatcher``.
BFMatcher_create = BFMatcher.create


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.integer, np.floating))


def _second_form(name: str, number: Any, keyword: Any, mask: Any, masks: Any, compact: Any) -> Tuple[Any, Any, Any, Any]:
    """Arguments of a call (query, number, masks, compactResult): they are in the positions of train and of the arguments
    after it."""
    given = None if keyword is MISSING else keyword
    if given is not None and not isinstance(given, (list, tuple)):
        raise ArrayTypeError(f"trainDescriptors is {number!r} and {name} is given: expected an array, or {name} in its place")
    if given is not None and masks is not None:
        raise ArrayTypeError("masks is given twice")
    if mask is not None:
        if not isinstance(mask, (bool, int, np.bool_)):
            raise ArrayTypeError("mask is for trainDescriptors: expected masks, a list with one for each image that was added")
        compact = mask  # in this form the fourth position is compactResult
    return MISSING, number, given if given is not None else masks, compact


def _compacted(rows: Sequence[Any], compact: Any) -> "Tuple[Row, ...]":
    return tuple(tuple(row) for row in rows if row) if flag(compact, "compactResult") else tuple(map(tuple, rows))
