"""COLMAP's database: features, matches and verified geometry for its mapper."""

from __future__ import annotations

import ctypes
import operator
import os
import threading
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type, Union

import numpy as np

from . import _library
from ._errors import ArgumentError, check, make_error
from ._calls import extract
from ._features import Features, fill_features, refuse_turned, view_of_features
from ._images import ImageLike, array_of_file, is_file_source, path_bytes
from ._library import library
from ._matching import MODELS, Geometry, Matches, index_pairs
from ._options import set_field
from ._pair_structures import (
    HsColmapCamera,
    HsColmapImage,
    HsColmapMatches,
    HsColmapOptions,
    HsColmapPosition,
    HsGeometry,
)
from ._structures import HsExif

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._hints import Options

_VLFEAT_BINS = [0, 7, 6, 5, 4, 3, 2, 1]
_TENTATIVE_CAMERA = 2  # HS_TENTATIVE_CAMERA: the camera is a default, for a new image that shares no camera
_SHARING: Dict[Union[bool, str], int] = {False: 0, True: 1, "size": 2, "folder": 3}  # numbers as HS_CAMERAS_OWN and so on
_CAMERAS = 1 << 32


@dataclass(frozen=True)
class ColmapCamera:
    """A camera in COLMAP's form. Lengths are in pixels; the corner of the top-left pixel is (0, 0).

    Attributes:
        model: COLMAP's number: 0 SIMPLE_PINHOLE, 1 PINHOLE, 2 SIMPLE_RADIAL, 3 RADIAL, 4 OPENCV, ...
        width, height: size of its images.
        parameters: numbers in the model's order.
        prior_focal_length: True: the focal length is known; False: it is a guess.
    """

    model: int
    width: int
    height: int
    parameters: Tuple[float, ...]
    prior_focal_length: bool = False


@dataclass(frozen=True)
class ColmapImage:
    """An image of the database.

    Attributes:
        image_id: number of the image.
        name: name with which the image was added.
        features: number of features; None: features were never written.
        camera_id: number of the camera.
        camera: that camera.
    """

    image_id: int
    name: str
    features: Optional[int]
    camera_id: int
    camera: ColmapCamera


class ColmapPosition(NamedTuple):
    """Position of an image."""

    #: latitude and longitude in degrees (WGS 84, north and east above 0) and altitude in metres, or x, y, z.
    coordinates: Tuple[float, float, float]
    #: True: x, y, z in a frame that the user defines.
    cartesian: bool = False


def _numbered_camera(number: int) -> HsColmapCamera:
    """Refers to a camera of the database by its id."""
    value = operator.index(number)
    if not 1 <= value < _CAMERAS:
        raise ArgumentError(f"there is no camera of the number {value}")
    return HsColmapCamera(camera_id=value)


def _sharing(share_cameras: Union[bool, str]) -> int:
    if share_cameras not in _SHARING:
        raise ArgumentError(f"share_cameras is {share_cameras!r}, expected False, True, 'size' or 'folder'")
    return _SHARING[share_cameras]


def _camera_view(camera: ColmapCamera) -> HsColmapCamera:
    view = HsColmapCamera(
        model=camera.model,
        width=camera.width,
        height=camera.height,
        prior_focal_length=int(camera.prior_focal_length),
        parameter_count=len(camera.parameters),
    )
    if len(camera.parameters) > len(view.parameters):
        raise ArgumentError(
            f"the camera has {len(camera.parameters)} parameters, expected {len(view.parameters)} or fewer"
        )
    view.parameters[: len(camera.parameters)] = camera.parameters
    return view


def _camera_of(view: HsColmapCamera) -> ColmapCamera:
    return ColmapCamera(
        view.model,
        view.width,
        view.height,
        tuple(view.parameters[: view.parameter_count]),
        bool(view.prior_focal_length),
    )


def colmap_camera(
    width: int, height: int, focal_length: float = 0.0, model: str = "SIMPLE_RADIAL"
) -> ColmapCamera:
    """COLMAP's default camera for an image: principal point in the middle, no distortion.

    Args:
        width, height: size of the image.
        focal_length: pixels; 0: unknown; 1.2 times the larger side is used.
        model: COLMAP's name of the model.
    """
    view = HsColmapCamera()
    number = library.hs_colmap_model_of_name(model.encode())
    if number < 0:
        raise ArgumentError(f"model is {model!r}, expected a name of COLMAP's such as 'SIMPLE_RADIAL' or 'OPENCV'")
    check(library.hs_colmap_camera_init_model(ctypes.byref(view), number, width, height, focal_length))
    return _camera_of(view)


def _in_ubc_order(features: Features) -> Features:
    if features.layout == "ubc" or features.descriptors is None:
        return features
    rows = features.descriptors.reshape(-1, 16, 8)[:, :, _VLFEAT_BINS].reshape(-1, _library.DESCRIPTOR_LENGTH)
    size, turned = features.image_size, features.exif_orientation
    return Features(features.records, rows, size, exif_orientation=turned, origin=features.origin, frames=features.frames)


def _geometry_view(geometry: Geometry) -> HsGeometry:
    view = HsGeometry(
        model=MODELS[geometry.model],
        found=int(geometry.found),
        inlier_count=geometry.inlier_count,
        rms_error=geometry.rms_error,
        plane_inliers=geometry.plane_inliers,
        iterations=geometry.iterations,
    )
    view.matrix[:] = np.asarray(geometry.matrix, np.float64).reshape(9).tolist()
    return view


class ColmapDatabase:
    """A database for COLMAP's mapper. It is created if it does not exist. All changes are one transaction.

    >>> with hartsift.ColmapDatabase("database.db") as database:
    ...     a = database.add_image("a.jpg", features_a)
    ...     b = database.add_image("b.jpg", features_b)
    ...     matches = hartsift.match(features_a, features_b)
    ...     database.add_matches(a, b, matches, hartsift.verify(features_a, features_b, matches, "fundamental"))

    The end of the ``with`` block commits; after an exception in the block the database is unchanged. Calls from several
    threads run one after another. In a forked child process the database is closed.

    Args:
        path: the file.
        read_only: the file must exist, and is only read.
        replace: replace existing features, matches and cameras that differ from new ones; otherwise different ones are
            refused.
        share_cameras: a new image gets its own camera (False), the first of the same model, size and parameters (True),
            the camera of the images of the same size ("size"), or of the images of the same size in its folder
            ("folder"). The last two are COLMAP's ``single_camera`` and ``single_camera_per_folder``: the focal length
            is from the EXIF of the first image. An existing image must have the camera that the rule gives.
        wait_ms: how long to wait while another program writes, milliseconds; 0: 10000.
    """

    def __init__(
        self,
        path: "Union[str, os.PathLike[str]]",
        *,
        read_only: bool = False,
        replace: bool = False,
        share_cameras: Union[bool, str] = False,
        wait_ms: int = 0,
    ) -> None:
        message = _library.message_buffer()
        options = HsColmapOptions(
            struct_size=ctypes.sizeof(HsColmapOptions),
            read_only=int(read_only),
            replace=int(replace),
            share_cameras=_sharing(share_cameras),
            message=ctypes.addressof(message),
            message_bytes=_library.MESSAGE_BYTES,
        )
        set_field(options, ctypes.c_int32, "wait_ms", wait_ms)
        handle = ctypes.c_void_p()
        check(library.hs_colmap_open(ctypes.byref(handle), path_bytes(path), ctypes.byref(options)), message.value)
        self._handle: Optional[ctypes.c_void_p] = handle
        self._read_only = read_only
        self._lock = threading.RLock()
        self._end = weakref.finalize(self, library.hs_colmap_close, handle)
        self._forked = False
        _living.add(self)

    def _open_handle(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ArgumentError("the database was opened before a fork" if self._forked else "the database is closed")
        return self._handle

    def _check(self, status: int) -> None:
        if status != _library.HS_OK:
            raise make_error(status, library.hs_colmap_last_error(self._handle).decode("utf-8", "replace"))

    def commit(self) -> None:
        """Commits everything added so far and begins a new transaction."""
        with self._lock:
            self._check(library.hs_colmap_commit(self._open_handle()))

    def close(self) -> None:
        """Closes the database; changes without a commit are dropped."""
        with self._lock:
            self._end()
            self._handle = None

    def _forget_handle(self) -> None:
        """Forgets the handle in a forked child. SQLite's locks and journal belong to the parent, so the handle is neither
        used nor closed."""
        self._lock = threading.RLock()
        self._end.detach()
        self._forked = self._handle is not None
        self._handle = None

    def __enter__(self) -> "ColmapDatabase":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if kind is None and self._handle is not None and not self._read_only:
                self.commit()
        finally:
            self.close()

    def add_image(
        self,
        name: str,
        features: Union[Features, ImageLike],
        camera: Union[ColmapCamera, int, None] = None,
        *,
        exif: bool = False,
        focal_length: float = 0.0,
        **options: "Unpack[Options]",
    ) -> int:
        """Adds an image with its features and returns its number.

        Args:
            name: the path below COLMAP's folder of images.
            features: descriptors are converted to bytes; without descriptors only keypoints are added. Or the image
                itself, as a file's name or an array, from which features are extracted with the options. A file's EXIF
                gives a new camera its focal length, unless one is given, and the image its position, unless it has one.
            exif: True: the JPEGs in COLMAP's folder have been rotated by their EXIF orientation. COLMAP itself does not
                rotate them, so by default files are read as stored, and features of a rotated photograph are refused.
            camera: the camera that the image must have, or the number of a camera in the database. If the image exists
                with another camera, it is refused; with the database's ``replace`` it gets this camera. None: a new
                image without a shared camera gets ``colmap_camera`` of the features' image size.
            focal_length: for a new image without ``camera``, pixels; 0: from EXIF, or unknown.
        """
        taken = HsExif()
        if not isinstance(features, Features) and is_file_source(features):
            pixels, memory = array_of_file(
                features, exif, options.get("max_pixels", 0), options.get("max_memory_bytes", 0)
            )
            features, taken = extract(pixels, **options), memory.exif
        elif not isinstance(features, Features):
            features = extract(features, exif=exif, **options)
        elif options:
            raise ArgumentError(f"{', '.join(options)}: these are for an image, and its features are given")
        refuse_turned(features, exif, "COLMAP")
        view, arrays = view_of_features(_in_ubc_order(features))
        view.origin.exif_orientation = 0  # the picture was not rotated, or COLMAP's copies are rotated too
        camera_view = self._wanted_camera(camera, features, focal_length or taken.focal_length)
        image_id = ctypes.c_uint32()
        with self._lock:
            self._check(
                library.hs_colmap_add_image(
                    self._open_handle(), path_bytes(name), camera_view, ctypes.byref(view), ctypes.byref(image_id)
                )
            )
        del arrays
        if taken.has_altitude and self.read_position(image_id.value) is None:  # COLMAP accepts no position without altitude
            self.set_position(image_id.value, (taken.latitude, taken.longitude, taken.altitude))
        return image_id.value

    @staticmethod
    def _wanted_camera(camera: Union[ColmapCamera, int, None], features: Features, focal_length: float) -> Any:
        if camera is None and not focal_length:
            return None
        if camera is None:
            view = _camera_view(colmap_camera(*features.image_size, focal_length))
            view.tentative = _TENTATIVE_CAMERA
        else:
            view = _camera_view(camera) if isinstance(camera, ColmapCamera) else _numbered_camera(camera)
        return ctypes.byref(view)

    def set_position(
        self, image_id: int, coordinates: Union[Sequence[float], ColmapPosition], cartesian: Optional[bool] = None
    ) -> None:
        """Sets an image's position; replaces an existing one.

        Args:
            image_id: the image's number.
            coordinates: as in ``ColmapPosition``, or a ``ColmapPosition``, as ``read_position`` gives it.
            cartesian: True: x, y, z; False: latitude, longitude, altitude; None: as the ``ColmapPosition`` says, else
                False.
        """
        if coordinates is None:
            raise ArgumentError("the position is None, as read_position gives it where none is known")
        if isinstance(coordinates, ColmapPosition):
            if cartesian is not None and bool(cartesian) != coordinates.cartesian:
                raise ArgumentError(f"cartesian is {cartesian}, and the position says {coordinates.cartesian}")
            coordinates, cartesian = coordinates
        numbers = [float(value) for value in coordinates]
        if len(numbers) != 3:
            raise ArgumentError(f"a position has {len(numbers)} coordinates, expected 3")
        view = HsColmapPosition(is_cartesian=int(bool(cartesian)))
        view.coordinates[:] = numbers
        with self._lock:
            handle = self._open_handle()
            self._check(library.hs_colmap_set_position(handle, _image_number(image_id), ctypes.byref(view)))

    def read_position(self, image_id: int) -> Optional[ColmapPosition]:
        """The position of image ``image_id``; None: unknown."""
        view = HsColmapPosition()
        with self._lock:
            handle = self._open_handle()
            self._check(library.hs_colmap_read_position(handle, _image_number(image_id), ctypes.byref(view)))
        x, y, z = view.coordinates
        return ColmapPosition((x, y, z), bool(view.is_cartesian)) if view.found else None

    def copy_image(self, source: "ColmapDatabase", image_id: int) -> int:
        """Adds an image of another database with its camera and, byte for byte, its features, but without its matches
        and its position. Returns its number in this database.

        Args:
            source: the other database.
            image_id: number of the image in that database.
        """
        new_id = ctypes.c_uint32()
        with self._lock, source._lock:
            self._check(
                library.hs_colmap_copy_image(
                    self._open_handle(), source._open_handle(), _image_number(image_id), ctypes.byref(new_id)
                )
            )
        return new_id.value

    def find_image(self, name: str) -> Optional[ColmapImage]:
        """The image of that name, or None."""
        view = HsColmapImage()
        with self._lock:
            self._check(library.hs_colmap_find_image(self._open_handle(), path_bytes(name), ctypes.byref(view)))
            return _image_of(view)

    def images(self) -> Iterator[ColmapImage]:
        """All images in the order of their numbers."""
        after = -1
        while True:
            view = HsColmapImage()
            with self._lock:
                self._check(library.hs_colmap_next_image(self._open_handle(), after, ctypes.byref(view)))
                image = _image_of(view)
            if image is None:
                return
            yield image
            after = image.image_id

    def read_features(self, image: Union[int, str]) -> Features:
        """The features of an image, given by number or name."""
        if isinstance(image, str):
            found = self.find_image(image)
            if found is None:
                raise ArgumentError(f"the database has no image {image!r}")
            image = found.image_id
        image_id = _image_number(image)
        with self._lock:
            handle = self._open_handle()
            return fill_features(
                lambda features: library.hs_colmap_read_features(handle, image_id, features), self._check, "ubc"
            )

    def add_matches(
        self,
        image_a: int,
        image_b: int,
        matches: "Union[Matches, npt.ArrayLike]",
        geometry: Union[Geometry, Sequence[Geometry]] = (),
        inliers: "Optional[npt.ArrayLike]" = None,
    ) -> None:
        """Adds the matches of two images, and their verified geometry.

        Args:
            image_a, image_b: numbers of the two images.
            matches: result of ``match``, or index pairs [M, 2].
            geometry: results of ``verify``, at most one per model; none: COLMAP verifies the matches.
            inliers: bool [M], the matches that agree with the geometry; None: the inliers of the first geometry.
        """
        geometries: List[Geometry] = [geometry] if isinstance(geometry, Geometry) else list(geometry)
        given = index_pairs(matches)
        if given.size > 0 and not 0 <= int(given.min()) <= int(given.max()) < 1 << 32:
            raise ArgumentError(f"matches are of features {given.min()} to {given.max()}, which no image can have")
        pairs = np.ascontiguousarray(given.astype(np.uint32))
        if inliers is None and geometries:
            inliers = geometries[0].inliers
        chosen = None if inliers is None else np.ascontiguousarray(np.asarray(inliers) != 0).view(np.uint8)
        if chosen is not None and chosen.shape != (len(pairs),):
            raise ArgumentError(f"inliers have shape {chosen.shape}, expected ({len(pairs)},)")
        view = HsColmapMatches(
            pairs=pairs.ctypes.data,
            pair_stride_bytes=8,
            count=len(pairs),
            inliers=None if chosen is None else chosen.ctypes.data,
        )
        views = {one.model: _geometry_view(one) for one in geometries}
        for model, its_view in views.items():
            setattr(view, model, ctypes.addressof(its_view))
        numbers = _image_number(image_a), _image_number(image_b)
        with self._lock:
            self._check(library.hs_colmap_add_matches(self._open_handle(), *numbers, ctypes.byref(view)))
        del views

    def count_matches(self, image_a: int, image_b: int) -> Tuple[Optional[int], Optional[int]]:
        """Numbers of matches and of verified matches of the images ``image_a`` and ``image_b`` (given by their numbers);
        None: the pair has no entry."""
        matches, verified = ctypes.c_int64(), ctypes.c_int64()
        with self._lock:
            self._check(
                library.hs_colmap_count_matches(
                    self._open_handle(),
                    _image_number(image_a),
                    _image_number(image_b),
                    ctypes.byref(matches),
                    ctypes.byref(verified),
                )
            )
        return (matches.value if matches.value >= 0 else None), (verified.value if verified.value >= 0 else None)


def _image_number(value: int) -> int:
    """Checks the number of an image, because ctypes would truncate it."""
    number = operator.index(value)
    if not 0 <= number < 1 << 32:
        raise ArgumentError(f"there is no image of the number {number}")
    return number


def _image_of(view: Any) -> Optional[ColmapImage]:
    if not view.found:
        return None
    return ColmapImage(
        view.image_id,
        os.fsdecode(view.name),
        view.features if view.features >= 0 else None,
        view.camera_id,
        _camera_of(view.camera),
    )


_living: "weakref.WeakSet[ColmapDatabase]" = weakref.WeakSet()


def _after_fork() -> None:
    for database in list(_living):
        database._forget_handle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
