"""Selection of the pairs of a collection's images to match: neighbours by name or position, and similar images."""

from __future__ import annotations

import ctypes
import functools
import operator
import os
import weakref
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_void_p
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Sized, Tuple, Type, Union

import numpy as np

from ._calls import cached_extractor
from ._errors import ArgumentError, ArrayTypeError, check
from ._extractor import Extractor
from ._features import Features, view_of_features
from ._library import library
from ._matching import CameraLike, _camera, features_of_descriptors
from ._pair_structures import HsCamera
from ._structures import HsFeatures

if TYPE_CHECKING:
    import numpy.typing as npt

_SAMPLE = 262144  # number of descriptors that suffices for training
_DESCRIBED_AT_ONCE = 1024  # number of images whose lists are made for one call


class HsImagePair(ctypes.Structure):
    """hs_image_pair"""

    _fields_ = [("first", c_uint32), ("second", c_uint32)]


class HsImagePairs(ctypes.Structure):
    """hs_image_pairs"""

    _fields_ = [
        ("count", c_size_t),
        ("pairs", c_void_p),
        ("capacity", c_size_t),
        ("allocator", c_void_p),
        ("reserved", c_int32 * 8),
    ]


class HsRetrievalOptions(ctypes.Structure):
    """hs_retrieval_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("centres", c_int32),
        ("components", c_int32),
        ("rounds", c_int32),
        ("reserved", c_int32),
        ("allocator", c_void_p),
    ]


class HsCollectionImage(ctypes.Structure):
    """hs_collection_image"""

    _fields_ = [
        ("features", POINTER(HsFeatures)),
        ("feature_count", c_size_t),
        ("camera", HsCamera),
        ("reserved", c_int32 * 8),
    ]


class HsCollection(ctypes.Structure):
    """hs_collection"""

    _fields_ = [
        ("images", POINTER(HsCollectionImage)),
        ("image_count", c_size_t),
        ("read", c_void_p),
        ("user", c_void_p),
        ("reserved", c_int32 * 8),
    ]


STRUCTURES: Dict[str, Type[ctypes.Structure]] = {
    str(structure.__doc__): structure for structure in (HsImagePair, HsImagePairs, HsCollectionImage, HsCollection, HsRetrievalOptions)
}

_PAIRS, _FEATURES, _OPTIONS = POINTER(HsImagePairs), POINTER(HsFeatures), POINTER(HsRetrievalOptions)
for _name, _arguments in {
    "hs_pair_sequence": [POINTER(c_char_p), c_size_t, c_uint32, c_int32, _PAIRS],
    "hs_pair_nearby": [c_void_p, c_size_t, c_double, c_uint32, _PAIRS],
    "hs_earth_place": [c_double, c_double, c_double, POINTER(c_double)],
    "hs_retrieval_options_init_sized": [_OPTIONS, c_size_t],
    "hs_retrieval_create": [POINTER(c_void_p), _OPTIONS],
    "hs_retrieval_sample": [c_void_p, _FEATURES, c_size_t],
    "hs_retrieval_train": [c_void_p, c_void_p],
    "hs_retrieval_describe": [c_void_p, c_void_p, _FEATURES, c_void_p],
    "hs_retrieval_describe_all": [c_void_p, c_void_p, POINTER(HsCollection), c_void_p],
    "hs_blend_similar": [c_void_p, c_void_p, c_size_t, c_size_t, c_uint32, c_void_p],
    "hs_round_vectors": [c_void_p, c_size_t, c_size_t, c_void_p],
    "hs_pair_similar": [c_void_p, c_void_p, c_size_t, c_size_t, c_uint32, _PAIRS],
}.items():
    getattr(library, _name).restype, getattr(library, _name).argtypes = c_int, _arguments
library.hs_image_pairs_free.restype, library.hs_image_pairs_free.argtypes = None, [_PAIRS]
library.hs_retrieval_destroy.restype, library.hs_retrieval_destroy.argtypes = None, [c_void_p]
library.hs_retrieval_length.restype, library.hs_retrieval_length.argtypes = c_size_t, [c_void_p]


#: Maximum of the latitude and of the longitude, degrees.
LATITUDE_MAX, LONGITUDE_MAX = 90, 360


def _take(pairs: HsImagePairs) -> "npt.NDArray[np.uint32]":
    """Copies the pairs to an array, and frees the library's list."""
    taken = np.zeros((pairs.count, 2), np.uint32)
    if pairs.count:
        ctypes.memmove(taken.ctypes.data, pairs.pairs, taken.nbytes)
    library.hs_image_pairs_free(ctypes.byref(pairs))
    return taken


def _count(value: int, what: str) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{what} is {value!r}, expected a whole number") from None
    if not 0 <= number < 1 << 32:
        raise ArgumentError(f"{what} is {number}, expected 0..2^32 - 1")
    return number


def _collection(
    lists: Sequence[Features], cameras: "Optional[Sequence[Optional[CameraLike]]]" = None
) -> Tuple[HsCollection, Any]:
    """The collection of these images, and what has to live as long as it."""
    views: List[Tuple[Any, Any]] = [view_of_features(given) for given in lists]
    images = (HsCollectionImage * max(len(lists), 1))()
    for index, (view, _) in enumerate(views):
        images[index].features = ctypes.pointer(view)
        camera = None if cameras is None else cameras[index]
        if camera is not None:
            images[index].camera = _camera(camera)
    return HsCollection(images=images, image_count=len(lists)), (views, images)


def sequential_pairs(names: Sequence[str], neighbors: int, *, quadratic: bool = False) -> "npt.NDArray[np.uint32]":
    """Pairs each image with the ``neighbors`` images that follow it in the natural order of names (img2 before img10).

    Args:
        names: names of the images.
        quadratic: also with the images 1, 2, 4, ..., 2^(neighbors - 1) positions later.

    Returns:
        Array uint32 [P, 2] of indices into ``names``, in each pair the smaller first, in ascending order.
    """
    if isinstance(names, (str, bytes)):
        raise ArrayTypeError("names is one text, expected a sequence of them")
    texts = (c_char_p * len(names))(*(os.fsencode(name) for name in names))
    pairs = HsImagePairs()
    check(library.hs_pair_sequence(texts, len(names), _count(neighbors, "neighbors"), int(quadratic), ctypes.byref(pairs)))
    return _take(pairs)


def nearby_pairs(places: "npt.ArrayLike", metres: float, *, at_most: int = 0) -> "npt.NDArray[np.uint32]":
    """Finds all pairs of images that are at most ``metres`` apart. The search is exact.

    Args:
        places: [N, 3], positions in metres in any Cartesian frame (``earth_places`` computes them from GPS positions);
            an image with a number that is not finite has no position and is in no pair.
        at_most: number of nearest images that each image proposes as partners; 0: no limit.

    Returns:
        Array uint32 [P, 2] of indices into ``places``, in each pair the smaller first, in ascending order.
    """
    rows = np.ascontiguousarray(places, np.float64)
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ArgumentError(f"places have shape {rows.shape}, expected (N, 3)")
    if not metres >= 0:
        raise ArgumentError(f"metres is {metres}, expected 0 or more")
    pairs = HsImagePairs()
    check(library.hs_pair_nearby(rows.ctypes.data, len(rows), metres, _count(at_most, "at_most"), ctypes.byref(pairs)))
    return _take(pairs)


def earth_places(
    latitude: "npt.ArrayLike", longitude: "npt.ArrayLike", altitude: "npt.ArrayLike" = 0.0
) -> "npt.NDArray[np.float64]":
    """Converts GPS positions to the Cartesian frame of the earth [..., 3], metres. A position that is not finite gives
    NaN.

    Args:
        latitude, longitude: degrees, north and east above 0.
        altitude: metres above the ellipsoid of WGS 84; leave it out if the altitudes are unreliable, as those of
            cameras are.
    """
    given = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (latitude, longitude, altitude)))
    rows = np.stack(given, -1).reshape(-1, 3)
    places = np.full(rows.shape, np.nan)
    for row, place in zip(rows, places):
        if np.isfinite(row).all():
            if abs(row[0]) > LATITUDE_MAX or abs(row[1]) > LONGITUDE_MAX:
                raise ArgumentError(
                    f"latitude is {row[0]:g} and longitude {row[1]:g}, expected at most {LATITUDE_MAX} and {LONGITUDE_MAX}"
                )
            check(library.hs_earth_place(*row, place.ctypes.data_as(POINTER(c_double))))
    return places.reshape(given[0].shape + (3,))


class Retrieval:
    """Describes each image by one vector (VLAD), with which ``similar_pairs`` finds images that show the same objects.

    >>> retrieval = hartsift.Retrieval().train(features_of_some_images)
    >>> vectors = retrieval.describe_all(all_features)
    >>> candidates = hartsift.similar_pairs(hartsift.blend_similar(vectors), hartsift.shortlist_length(20))
    >>> pairs = hartsift.matching_pairs(all_features, candidates, 20)

    Args:
        centres, components: a vector has centres * components bytes.
        rounds: maximum number of rounds of k-means.
    """

    def __init__(self, *, centres: int = 256, components: int = 32, rounds: int = 15) -> None:
        options = HsRetrievalOptions()
        check(library.hs_retrieval_options_init_sized(ctypes.byref(options), ctypes.sizeof(options)))
        options.centres, options.components, options.rounds = centres, components, rounds
        handle = c_void_p()
        if library.hs_retrieval_create(ctypes.byref(handle), ctypes.byref(options)):
            raise ArgumentError(
                f"centres {centres}, components {components}, rounds {rounds}: expected 1..4096, 1..128 with a product "
                "of at most 65536, and 1..1000"
            )
        self._handle = handle
        self._trained = False
        weakref.finalize(self, library.hs_retrieval_destroy, handle).atexit = False

    @property
    def length(self) -> int:
        """Length of a vector in bytes."""
        return int(library.hs_retrieval_length(self._handle))

    def train(
        self,
        images: "Iterable[Union[Features, npt.NDArray[Any]]]",
        *,
        per_image: Optional[int] = None,
        extractor: Optional[Extractor] = None,
    ) -> "Retrieval":
        """Trains with descriptors of each of these images, evenly spread over the list of its features.

        Args:
            images: features, or only their descriptors, uint8 [N, 128]; a thousand images from the whole collection are
                enough.
            per_image: number of descriptors of each image; None: 262144 in total if ``images`` has a length (as
                ``hartsift match --pairs retrieval:K`` does with up to 2048 images), else 200.
            extractor: its threads and device do the work; None: an extractor that is kept for this thread.
        """
        if self._trained:
            raise ArgumentError("trained already: make another Retrieval")
        if per_image is None:
            per_image = -(-_SAMPLE // max(len(images), 1)) if isinstance(images, Sized) else 200
        sampled = 0
        for image in images:
            view, arrays = view_of_features(_bytes_of(image))
            check(library.hs_retrieval_sample(self._handle, ctypes.byref(view), per_image))
            sampled += min(view.count, per_image)
            del arrays
        if sampled == 0:
            raise ArgumentError("there are no descriptors to learn from")
        (extractor or cached_extractor({}))._run(lambda context: library.hs_retrieval_train(self._handle, context))
        self._trained = True
        return self

    def describe(
        self, features: "Union[Features, npt.NDArray[Any]]", *, extractor: Optional[Extractor] = None
    ) -> "npt.NDArray[np.int8]":
        """Computes the vector of an image, int8 [length]; zeros if it has no features.

        Args:
            features: features of the image, or only its descriptors, uint8 [N, 128].
            extractor: its threads and device do the work; None: an extractor that is kept for this thread.
        """
        if not self._trained:
            raise ArgumentError("not trained yet: call train first")
        vector = np.zeros(self.length, np.int8)
        view, arrays = view_of_features(_bytes_of(features))
        (extractor or cached_extractor({}))._run(
            lambda context: library.hs_retrieval_describe(
                self._handle, context, ctypes.byref(view), vector.ctypes.data
            )
        )
        del arrays
        return vector

    def describe_all(
        self, images: "Sequence[Union[Features, npt.NDArray[Any]]]", *, extractor: Optional[Extractor] = None
    ) -> "npt.NDArray[np.int8]":
        """Computes the vectors of all images, int8 [images, length]; zeros for an image without features.

        Args:
            images: features of each image, or only its descriptors, uint8 [N, 128].
            extractor: its threads do the work, a GPU does not; None: an extractor that is kept for this thread.
        """
        if not self._trained:
            raise ArgumentError("not trained yet: call train first")
        vectors = np.zeros((len(images), self.length), np.int8)
        used = extractor or cached_extractor({})
        for first in range(0, len(images), _DESCRIBED_AT_ONCE):
            part = vectors[first : first + _DESCRIBED_AT_ONCE]
            collection, kept = _collection([_bytes_of(given) for given in images[first : first + len(part)]])
            used._run(functools.partial(self._describe_part, collection, part))
            del kept
        return vectors

    def _describe_part(self, collection: HsCollection, vectors: "npt.NDArray[np.int8]", context: Any) -> int:
        status: int = library.hs_retrieval_describe_all(self._handle, context, ctypes.byref(collection), vectors.ctypes.data)
        return status


def _bytes_of(given: "Union[Features, npt.NDArray[Any]]") -> Features:
    """Features whose descriptors are bytes."""
    features = features_of_descriptors(given)
    if len(features) and (features.descriptors is None or features.descriptors.dtype != np.uint8):
        raise ArrayTypeError("images are described by uint8 descriptors: extract with descriptor='u8'")
    return features


def _vector_rows(vectors: "npt.ArrayLike") -> "npt.NDArray[np.int8]":
    rows = np.ascontiguousarray(vectors)
    if rows.dtype != np.int8 and rows.dtype.kind != "f":
        raise ArrayTypeError(f"vectors have type {rows.dtype}, expected int8 or floats")
    if rows.ndim != 2 or not 1 <= rows.shape[1] <= 65536:
        raise ArgumentError(f"vectors have shape {rows.shape}, expected (N, length), length 1..65536")
    if rows.dtype == np.int8:
        return rows
    with np.errstate(over="ignore"):
        values, rounded = np.ascontiguousarray(rows, np.float32), np.empty(rows.shape, np.int8)
    if not np.isfinite(values).all():
        fault = "beyond the range of float32" if np.isfinite(rows).all() else "that is not finite"
        raise ArgumentError(f"vectors have a value {fault}")
    check(library.hs_round_vectors(values.ctypes.data, *values.shape, rounded.ctypes.data))
    return rounded


def blend_similar(
    vectors: "npt.ArrayLike", neighbors: int = 3, *, extractor: Optional[Extractor] = None
) -> "npt.NDArray[np.int8]":
    """Adds to each image's vector the vectors of the most similar others, by the cosine of the angle: what images of
    one thing
    share is strengthened.

    Args:
        vectors: int8 [N, length], from ``Retrieval.describe``.
        neighbors: number of other images.
        extractor: its threads do the work; None: an extractor that is kept for this thread.

    Returns:
        int8 [N, length].
    """
    rows, wanted = _vector_rows(vectors), _count(neighbors, "neighbors")
    blended = np.empty_like(rows)
    (extractor or cached_extractor({}))._run(
        lambda context: library.hs_blend_similar(
            context, rows.ctypes.data, rows.shape[0], rows.shape[1], wanted, blended.ctypes.data
        )
    )
    return blended


def similar_pairs(
    vectors: "npt.ArrayLike", neighbors: int, *, extractor: Optional[Extractor] = None
) -> "npt.NDArray[np.uint32]":
    """Pairs each image with the ``neighbors`` other images whose vectors have the smallest angle to its vector. The
    search is exact.

    Args:
        vectors: int8 [N, length], from ``Retrieval.describe``, or floats of another description, which are rounded to 8
            bits; an image whose vector is all 0 is in no pair.
        extractor: its threads do the work; None: an extractor that is kept for this thread.

    Returns:
        Array uint32 [P, 2] of indices into ``vectors``, in each pair the smaller first, in ascending order.
    """
    rows = _vector_rows(vectors)
    pairs = HsImagePairs()
    wanted = _count(neighbors, "neighbors")
    (extractor or cached_extractor({}))._run(
        lambda context: library.hs_pair_similar(
            context, rows.ctypes.data, rows.shape[0], rows.shape[1], wanted, ctypes.byref(pairs)
        )
    )
    return _take(pairs)
