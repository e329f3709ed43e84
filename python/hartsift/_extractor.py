"""Extraction by an object that has a context."""

from __future__ import annotations

import ctypes
import operator
import os
import re
import threading
import weakref
from collections import deque
from types import TracebackType
from typing import (
    TYPE_CHECKING, Any, Callable, Deque, Dict, Generator, Iterable, Iterator, List, Optional, Tuple, Type, Union,
)

import numpy as np

from . import _library
from ._context import Context, Statistics
from ._encoded import EncodedFile
from ._errors import ArgumentError, ArrayTypeError, DeviceError, Error, FileError, make_error
from ._features import KEYPOINT_DTYPE, Features, fill_features
from ._foreign import images_of_batch, is_batch, masks_of_batch
from ._images import Channels, ImageLike, MaskCount, Picture, named_mask
from ._library import DESCRIPTOR_LENGTH, library
from ._options import LAYOUTS, make_options, name_of
from ._reading import Pictures, Reading, Sources, pictures_of, sources_of, stream_of
from ._resident import DeviceFeatures, DeviceMemory
from ._structures import HsCudaFeatures, HsImage, HsStatistics

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack

    from ._hints import Layout, Options

#: From this number of files on, decoding on the GPU saves more time than its comparison with libjpeg takes.
_FILES_WORTH_COMPARING = 16
#: The library's largest default of images in flight. If the library allows fewer, it reports that.
_IN_FLIGHT_MAX = 64


class Extractor:
    """Extracts features with fixed options; keeps its memory and worker threads from image to image.

    Options are keyword arguments, see ``hartsift.Options``: ``Extractor(profile="opencv", max_features=2000)``. Calls
    from several threads run one after another; for parallel work use one extractor per thread. It ends with ``close``,
    at the end of a ``with`` block, or when the object is freed; features outlive it. In a forked child process it
    creates a new context.
    """

    def __init__(self, **options: "Unpack[Options]") -> None:
        self._options = make_options(options)
        self._layout: "Layout" = "vlfeat" if self._options.view.layout == LAYOUTS["vlfeat"] else "ubc"
        self._lock = threading.RLock()
        self._context: Optional[Context] = None
        self._closed = False
        self._borrowed: "weakref.WeakSet[DeviceMemory]" = weakref.WeakSet()  # arrays of the last resident result that are still in use
        self._call_number = 0
        self._handle()
        _living.add(self)

    # ---- the context

    def _handle(self) -> ctypes.c_void_p:
        """The context. It is created at first use, after a fork, and after a failure of the device."""
        if self._closed:
            raise ArgumentError("the extractor is closed")
        if self._context is None:
            self._context = Context(self._options)
        return self._context.handle

    def _check(self, status: int) -> None:
        if status == _library.HS_OK:
            return
        text = library.hs_last_error(self._handle())
        error = make_error(status, text.decode("utf-8", "replace"))
        if library.hs_status_class_of(status) == _library.HS_CLASS_DEVICE:
            self._drop_context()
        raise error

    def _drop_context(self) -> None:
        self._context = None
        self._borrowed = weakref.WeakSet()

    def _forget_context(self) -> None:
        """Forgets the context in a forked child: its threads exist only in the parent, so it can be neither used nor
        destroyed."""
        self._lock = threading.RLock()
        if self._context is not None:
            self._context.forget()
        self._drop_context()

    def close(self) -> None:
        """Ends the context and frees its memory; memory of features on a device is freed when no object refers to it.
        Images in flight are dropped. Further calls raise an error."""
        with self._lock:
            self._drop_context()
            self._closed = True

    def __enter__(self) -> "Extractor":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        profile = name_of("profile", self._options.view.profile)
        return f"<hartsift.Extractor: profile {profile}{', closed' if self._closed else ''}>"

    def _pictures(self, image: ImageLike, mask: Any, reading: Reading) -> Pictures:
        return pictures_of(image, mask, reading, self._options.view)

    def _sources(self, image: ImageLike, mask: Any, reading: Reading) -> Sources:
        return sources_of(image, mask, reading, self._options.view)

    # ---- one image

    def extract(
        self,
        image: ImageLike,
        mask: Any = None,
        *,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
        exif: bool = True,
        jpeg_scale: int = 1,
        max_image_size: int = 0,
        strict: bool = False,
    ) -> Features:
        """Extracts the features of one image.

        Args:
            image: an array (height, width[, channels]), in any order of memory, or a PyTorch tensor (channels, height,
                width); if the first length of a tensor cannot be a number of channels (1 to 4), it is read as an array.
                Arrays on a CUDA device (``__cuda_array_interface__`` or DLPack) are read there. Or a PIL image,
                converted by its mode. Or a file (PNG, JPEG, TIFF, WebP, BMP, PNM): its name, the file opened in binary
                mode, or its bytes (bytes, bytearray, a flat memoryview). The name ``"@scene"`` renders a picture.
                Samples of uint8, uint16 and float32 are read in place; other types, and unusual strides, are copied
                first. In a masked array (``numpy.ma``) masked pixels have no keypoints; their samples are replaced by
                the mean of the others.
            mask: uint8 or bool (height, width); keypoints where it is zero are dropped. Masked elements of a masked
                array count as zero.
            channels: order of the colour channels, ``"rgb"``, or ``"bgr"`` as in arrays of cv2.
            value_range: (black, white). None: (0, 65535) for uint16, (0, 1) for floats and bool, (0, 255) for other
                integers and for PIL's mode "F". Values outside are clamped, because filters overshoot; but images with
                values half a range or more outside are refused, and images with NaN or infinity. Without a range,
                integers other than uint16 that are outside 0..255 are refused, and a picture whose brightest sample is
                below a quarter of white (for example 12 bits in uint16) gets a warning. On a device, floats with a
                range are not checked, and NaN counts as black.
            exif: for JPEG, PNG, TIFF and WebP files: apply the orientation that is stored in them.
            jpeg_scale: 1, 2, 4 or 8: decode JPEG files to 1/N of their width and height; coordinates, and the mask's
                size, then refer to the decoded picture. With a value above 1 other images are refused.
            max_image_size: for files: reduce a larger picture first, so that its larger side has this many pixels;
                coordinates and mask still refer to the original picture. 0: never.
            strict: for files: refuse those whose decoder reports damage; otherwise damage gives a warning.

        Returns:
            Features whose arrays refer to memory that the library wrote; it is freed with the last array.

        Raises:
            hartsift.Error: the library refuses the image or an argument; the message is the reason.
            hartsift.ArrayTypeError: samples that are not numbers (a hartsift.Error and a TypeError).
        """
        reading = Reading(channels, value_range, exif, jpeg_scale, max_image_size, strict=strict)
        return self._extract(*self._sources(image, mask, reading))

    def _extract(self, picture: Union[Picture, EncodedFile], masking: Optional[Picture]) -> Features:
        view, masking_view = ctypes.byref(picture.view), None if masking is None else ctypes.byref(masking.view)
        with self._lock:
            context = self._begin()
            if isinstance(picture, EncodedFile):
                found = fill_features(
                    lambda features: picture.extract(context, None if masking is None else masking.view, features), self._check, self._layout
                )
                picture.warn()
                return found
            if not picture.on_device:
                return fill_features(
                    lambda features: library.hs_extract(context, view, masking_view, features)
                    or library.hs_features_to_original(features, view),
                    self._check,
                    self._layout,
                )
            self._need_cuda()
            stream = stream_of(picture, masking)
            return fill_features(
                lambda features: library.hs_cuda_extract(context, view, masking_view, stream, features),
                self._check,
                self._layout,
            )

    def _begin(self) -> ctypes.c_void_p:
        handle = self._handle()
        if self._borrowed:
            raise ArgumentError(
                f"{len(self._borrowed)} arrays of the last result on the device are still in use, and this call would "
                "write over them: drop them first, and keep copies (clone, copy) of what is needed"
            )
        self._call_number += 1
        return handle

    @staticmethod
    def _need_cuda() -> None:
        if not _library.HAS_CUDA:
            raise DeviceError("the image is on a CUDA device, but this build of hartsift has no CUDA part")

    def extract_resident(
        self,
        image: Any,
        mask: Any = None,
        *,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
    ) -> DeviceFeatures:
        """Extracts from an array on the device and leaves the features there, until the extractor's next call.

        PyTorch, CuPy and others use the arrays without a copy (``torch.from_dlpack(resident.descriptors)``). While such
        an object lives, the next call is refused; ``close`` is allowed, and the memory outlives it. Before the next
        call, work that reads the arrays must be complete, or be enqueued before the next image on that image's stream.

        Args:
            image: an array on the extractor's device.
            mask, channels, value_range: as for ``extract``.
        """
        picture, masking = self._pictures(image, mask, Reading(channels, value_range))
        if not picture.on_device:
            raise ArgumentError("extract_resident needs an image on the device")
        masking_view = None if masking is None else ctypes.byref(masking.view)
        view = HsCudaFeatures()
        with self._lock:
            context = self._begin()
            self._need_cuda()
            stream = stream_of(picture, masking)
            self._check(
                library.hs_cuda_extract_resident(
                    context, ctypes.byref(picture.view), masking_view, stream, ctypes.byref(view)
                )
            )
            return DeviceFeatures(self, view)

    def extract_into(
        self,
        image: ImageLike,
        records: "npt.NDArray[Any]",
        descriptors: "Optional[npt.NDArray[Any]]" = None,
        mask: Any = None,
        *,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
    ) -> int:
        """Extracts into arrays of the caller.

        Args:
            records: contiguous [M] of ``KEYPOINT_DTYPE``.
            descriptors: contiguous [M, 128] of the options' descriptor type, or None for no descriptors.
            image, mask, channels, value_range: as for ``extract``.

        Returns:
            Number of features of the image. If it is more than M, the first M in the library's order are written.
        """
        picture, masking = self._pictures(image, mask, Reading(channels, value_range))
        if picture.on_device:
            raise ArgumentError("extract_into takes images in host memory")
        self._check_arrays(records, descriptors)
        count = ctypes.c_size_t()
        with self._lock:
            context = self._begin()
            status = library.hs_extract_into(
                context,
                ctypes.byref(picture.view),
                None if masking is None else ctypes.byref(masking.view),
                records.ctypes.data,
                None if descriptors is None else descriptors.ctypes.data,
                len(records),
                ctypes.byref(count),
            )
            if status != _library.HS_ERR_CAPACITY:
                self._check(status)
        return count.value

    def _check_arrays(self, records: "npt.NDArray[Any]", descriptors: "Optional[npt.NDArray[Any]]") -> None:
        if records.dtype != KEYPOINT_DTYPE or records.ndim != 1:
            raise ArrayTypeError("records must be a one-dimensional array of hartsift.KEYPOINT_DTYPE")
        arrays = [("records", records)]
        if descriptors is not None:
            kinds = {_library.HS_DESCRIPTOR_U8: np.uint8, _library.HS_DESCRIPTOR_F32: np.float32}
            dtype = kinds.get(self._options.view.descriptor)
            if dtype is None:
                raise ArgumentError('descriptor is "none": there are no descriptors to write')
            if descriptors.dtype != dtype or descriptors.shape != (len(records), DESCRIPTOR_LENGTH):
                raise ArrayTypeError(
                    f"descriptors must be {np.dtype(dtype)} of shape ({len(records)}, {DESCRIPTOR_LENGTH}), not "
                    f"{descriptors.dtype} of shape {descriptors.shape}"
                )
            arrays.append(("descriptors", descriptors))
        for name, array in arrays:
            if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
                raise ArgumentError(f"{name} must be contiguous, aligned and writable")

    def detect(
        self,
        image: ImageLike,
        mask: Any = None,
        *,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
        exif: bool = True,
        jpeg_scale: int = 1,
        strict: bool = False,
    ) -> Features:
        """As ``extract``, without descriptors.

        Args:
            image, mask, channels, value_range, exif, jpeg_scale, strict: as for ``extract``.
        """
        picture, masking = self._pictures(image, mask, Reading(channels, value_range, exif, jpeg_scale, strict=strict))
        if picture.on_device:
            raise ArgumentError('detect takes images in host memory; on a device use extract with descriptor="none"')
        with self._lock:
            context = self._begin()
            return fill_features(
                lambda features: library.hs_detect(
                    context,
                    ctypes.byref(picture.view),
                    None if masking is None else ctypes.byref(masking.view),
                    features,
                ),
                self._check,
                self._layout,
            )

    def describe(
        self,
        image: ImageLike,
        keypoints: Union[Features, "npt.NDArray[Any]"],
        *,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
        exif: bool = True,
        jpeg_scale: int = 1,
        strict: bool = False,
    ) -> Tuple[Features, "npt.NDArray[np.int32]"]:
        """Describes user keypoints, on the extractor's device.

        Args:
            keypoints: features, an array of ``KEYPOINT_DTYPE``, or float [N, 4] = x, y, sigma, orientation. Level 0 (as
                for plain floats): octave and level are derived from sigma. Orientation NaN: orientations are computed,
                and the keypoint yields a feature for each of them, possibly none.
            image, channels, value_range, exif, jpeg_scale, strict: as for ``extract``.

        Returns:
            The features in the order of the keypoints, and int32 [N] statuses: 0, or the status of a keypoint that
            cannot be described (it is outside the image, or its sigma is 0 or not a number), whose descriptor is zero.
            Every keypoint in the image is described, up to the borders and at any size.
        """
        picture, _ = self._pictures(image, None, Reading(channels, value_range, exif, jpeg_scale, strict=strict))
        if picture.on_device:
            raise ArgumentError("describe takes images in host memory")
        records = records_of(keypoints)
        statuses = np.zeros(len(records), np.int32)
        with self._lock:
            context = self._begin()
            features = fill_features(
                lambda filled: library.hs_describe(
                    context, ctypes.byref(picture.view), records.ctypes.data, len(records), filled, statuses.ctypes.data
                ),
                self._check,
                self._layout,
            )
        return features, statuses

    # ---- many images in flight

    def submit(
        self,
        image: ImageLike,
        mask: Any = None,
        *,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
        exif: bool = True,
        jpeg_scale: int = 1,
        strict: bool = False,
    ) -> None:
        """Submits an image in host memory and returns without waiting for it. Its array must not be changed until
        ``wait`` has returned its features. Raises ``ArgumentError`` if ``in_flight`` images are in flight.

        Args:
            image, mask, channels, value_range, exif, jpeg_scale, strict: as for ``extract``.
        """
        picture, masking = self._pictures(image, mask, Reading(channels, value_range, exif, jpeg_scale, strict=strict))
        if picture.on_device:
            raise ArgumentError("submit takes images in host memory")
        self._submit(picture, masking)

    def _submit(self, picture: Union[Picture, EncodedFile], masking: Optional[Picture]) -> None:
        masking_view = None if masking is None else ctypes.byref(masking.view)
        with self._lock:
            context = self._begin()
            if isinstance(picture, EncodedFile):
                self._check(picture.submit(context, None if masking is None else masking.view))
            else:
                self._check(library.hs_submit(context, ctypes.byref(picture.view), masking_view))
            self._flying.append((picture, masking))

    def wait(self) -> Features:
        """Waits for the oldest image in flight and returns its features. A failure concerns only that image."""
        with self._lock:
            context = self._begin()
            picture = self._flying[0][0] if self._flying else None
            view = HsImage() if picture is None else picture.view
            try:
                found = fill_features(
                    lambda features: library.hs_wait(context, features)
                    or library.hs_features_to_original(features, ctypes.byref(view)),
                    self._check,
                    self._layout,
                )
                if isinstance(picture, EncodedFile):
                    picture.warn()
                return found
            finally:
                if self._flying:
                    self._flying.popleft()

    @property
    def in_flight(self) -> int:
        """Number of images that are submitted and not yet waited for."""
        return len(self._flying)

    @property
    def _flying(self) -> Deque[Sources]:
        return deque() if self._context is None else self._context.in_flight

    def extract_many(
        self,
        images: Iterable[ImageLike],
        *,
        return_errors: bool = False,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
        exif: bool = True,
        jpeg_scale: int = 1,
        max_image_size: int = 0,
        masks: "Union[None, str, os.PathLike[str]]" = None,
        strict: bool = False,
    ) -> Generator[Union[Features, Error], None, None]:
        """Yields the features of every image, in their order, with several images in flight.

        Args:
            images: arrays or files, taken one after the other, a few before their features are yielded; or a batch, see
                ``extract_batch``. Images on a device are processed one after the other. The library's threads read and
                decode JPEG, WebP, BMP and PNG files of 8 bits, several at once; this thread decodes other files. A file
                must exist until its features are yielded.
            return_errors: True: yield the exception of an image that failed, and continue; False: raise it.
            channels, value_range, exif, jpeg_scale, max_image_size, strict: as for ``extract``.
            masks: a folder with the mask of photo.jpg as photo.jpg.png, or else photo.png, of sub/photo.jpg as
                sub/photo.jpg.png, by the names given (COLMAP's rule). An image without a mask is used completely; a
                warning says how many images have one. If no image has a mask, that is an error: for a list or a tuple
                before the first image, for other iterables after the last.
        """
        if masks is not None and not os.path.isdir(masks):
            raise FileError(f"masks {os.fspath(masks)!r}: expected a folder with NAME.png for the image NAME")
        given = images_of_batch(images) if is_batch(images) else images
        counter = None if masks is None else MaskCount(masks)
        if counter is not None and isinstance(given, (list, tuple)):
            for image in given:
                counter.add(image)
            counter.conclude()
            counter = None
        keep_encoded = operator.length_hint(given, 0) >= _FILES_WORTH_COMPARING
        reading = Reading(channels, value_range, exif, jpeg_scale, max_image_size, keep_encoded, strict)

        def named() -> Iterator[Tuple[ImageLike, Any]]:
            for image in given:
                if counter is not None:
                    counter.add(image)
                yield image, masks

        def each() -> Generator[Union[Features, Error], None, None]:
            yield from self._extract_each(named(), reading, return_errors)
            if counter is not None:
                counter.conclude()

        return each()

    def extract_batch(
        self,
        images: Any,
        masks: Any = None,
        *,
        channels: Channels = "rgb",
        value_range: Optional[Tuple[float, float]] = None,
    ) -> List[Features]:
        """Extracts the features of several images, with several in flight.

        Args:
            images: an array of four dimensions, or a list of images as for ``extract``. PyTorch tensors are (N,
                channels, height, width), arrays of other packages (N, height, width, channels). If the length of
                channels is then not 1 to 4, the other order is assumed.
            masks: None, or one mask for each image: an array (N, height, width), a batch of one channel, or a list in
                which None means no mask.
            channels, value_range: as for ``extract``.

        Returns:
            One ``Features`` for each image.
        """
        given = images_of_batch(images)
        masking = [None] * len(given) if masks is None else masks_of_batch(masks)
        if len(masking) != len(given):
            raise ArgumentError(f"{len(masking)} masks for {len(given)} images: expected one for each")
        reading = Reading(channels, value_range)
        return [one for one in self._extract_each(zip(given, masking), reading, False) if isinstance(one, Features)]

    def _extract_each(
        self, pairs: Iterable[Tuple[Any, Any]], reading: Reading, return_errors: bool
    ) -> Generator[Union[Features, Error], None, None]:
        """Yields the results of images and masks, in order."""
        if self.in_flight:
            raise ArgumentError("extract_many needs an extractor without images in flight")
        most = self._options.view.in_flight or _IN_FLIGHT_MAX
        # Results in the order of submission: None for an image in flight, else a result that is already known.
        places: Deque[Union[None, Features, Error]] = deque()
        try:
            for image, mask in pairs:
                while self.in_flight >= most or len(places) > most:
                    yield self._next(places, return_errors)
                sources = self._prepare(image, mask, reading)
                begun = self._begin_one(sources)
                while self.in_flight and isinstance(begun, Error) and begun.status == _library.HS_ERR_CAPACITY:
                    yield self._next(places, return_errors)
                    begun = self._begin_one(sources)
                places.append(begun)
            while places:
                yield self._next(places, return_errors)
        finally:
            while self.in_flight:
                self._discard()

    def _prepare(self, image: Any, mask: Any, reading: Reading) -> Union[Sources, Error]:
        """The sources of an extraction, or the reason of a failure."""
        try:
            by_name = isinstance(mask, (str, os.PathLike))
            return self._sources(image, named_mask(mask, image) if by_name else mask, reading)
        except Error as error:
            return error

    def _begin_one(self, sources: Union[Sources, Error]) -> Union[None, Features, Error]:
        """Submits an image, or returns the error. An image on a device is extracted at once."""
        if isinstance(sources, Error):
            return sources
        picture, masking = sources
        try:
            if picture.on_device:
                return self._extract(picture, masking)
            self._submit(picture, masking)
        except Error as error:
            return error
        return None

    def _next(self, places: Deque[Union[None, Features, Error]], return_errors: bool) -> Union[Features, Error]:
        result = places.popleft()
        if result is None:
            try:
                result = self.wait()
            except Error as failure:
                result = failure
        if isinstance(result, Error) and not return_errors:
            raise result
        return result

    def _discard(self) -> None:
        try:
            self.wait()
        except Error:
            pass  # a failure of an image that is no longer wanted

    # ---- facts and other work

    def _run(self, call: Callable[[ctypes.c_void_p], int]) -> None:
        """Calls a function of the library with the context; used by other modules of the package."""
        with self._lock:
            self._check(call(self._begin()))

    @property
    def options(self) -> Dict[str, Any]:
        """All options by name."""
        return self._options.as_dict()

    @property
    def backends(self) -> Dict[str, str]:
        """The variant of each stage, and the report of the library."""
        with self._lock:
            text = library.hs_backend_report(self._handle()).decode("utf-8", "replace")
        lines = [line.split(": ", 1) for line in text.splitlines() if ": " in line]
        return dict((name, value) for name, value in lines)

    def _device_number(self) -> int:
        """Number of the context's CUDA device. It is cached, because it is parsed from the report."""
        context = self._context
        if context is None:
            return 0
        if context.device_number is None:
            number = re.search(r"CUDA (\d+)", self.backends.get("device", ""))
            context.device_number = int(number.group(1)) if number else 0
        return context.device_number

    @property
    def statistics(self) -> Statistics:
        """Statistics of the context."""
        view = HsStatistics(struct_size=ctypes.sizeof(HsStatistics))
        with self._lock:
            self._check(library.hs_get_statistics(self._handle(), ctypes.byref(view)))
        return Statistics(
            view.frames,
            view.regrown_frames,
            view.candidates,
            view.keypoints,
            view.features,
            view.workspace_bytes,
            view.device_bytes,
            library.hs_frame_way_name(view.way).decode(),
            (view.way_reason or b"").decode(),
        )


def records_of(keypoints: Union[Features, "npt.NDArray[Any]"]) -> "npt.NDArray[Any]":
    """Keypoints, in any of the accepted shapes, as contiguous records."""
    if isinstance(keypoints, Features):
        return np.ascontiguousarray(keypoints.records)
    array = np.asarray(keypoints)
    if array.dtype == KEYPOINT_DTYPE:
        return np.ascontiguousarray(array.reshape(-1))
    if array.dtype.kind not in "fiu":
        raise ArrayTypeError("keypoints must be Features, an array of hartsift.KEYPOINT_DTYPE, or float (N, 4)")
    if array.ndim != 2 or array.shape[1] != 4:
        raise ArgumentError(f"keypoints have shape {array.shape}, expected (N, 4)")
    return Features.from_arrays(array).records


_living: "weakref.WeakSet[Extractor]" = weakref.WeakSet()


def _after_fork() -> None:
    for extractor in list(_living):
        extractor._forget_context()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
