"""Many images at the rate of ``hartsift batch``: takes files, bytes and arrays, returns results as they finish."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_size_t, c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Type, Union, cast

from . import _library
from ._errors import ArgumentError, ArrayTypeError, Error, check, know_fields, make_error, reason_of
from ._features import Features, fill_features
from ._images import ImageLike, Picture, check_sizes, content_of, is_file_source, path_bytes, picture_of_array, picture_of_mask
from ._images import warn_of_damage, warn_of_range
from ._library import library
from ._options import HsOptions, OptionsSet, make_options, name_of
from ._samples import ValueRange, checked_range
from ._structures import HsExif, HsLoadNotes, HsLoadOptions, HsSource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._hints import Layout, Options


PASSED_OVER_BYTES = 512  #: capacity of hs_image_findings.passed_over_text
_LOOK_AGAIN_S = 0.001  #: interval of looking again, after other threads took all results that may be held at one time


class HsBatchImage(ctypes.Structure):
    """hs_batch_image"""

    _fields_ = [
        ("source", HsSource),
        ("name", c_char_p),
        ("user", c_void_p),
        ("reserved", c_int32 * 8),
    ]


class HsBatchResult(ctypes.Structure):
    """hs_batch_result"""

    _fields_ = [
        ("index", c_size_t),
        ("name", c_char_p),
        ("user", c_void_p),
        ("status", c_int),
        ("skipped", c_int32),
        ("message", c_char_p),
        ("features", c_void_p),
        ("width", c_int32),
        ("height", c_int32),
        ("device", c_int32),
        ("way", c_int32),
        ("milliseconds", c_double),
        ("exif", POINTER(HsExif)),
        ("notes", POINTER(HsLoadNotes)),
        ("way_reason", c_char_p),
        ("reserved", c_int32 * 6),
    ]


class HsBatchOptions(ctypes.Structure):
    """hs_batch_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("devices", POINTER(POINTER(HsOptions))),
        ("device_count", c_int32),
        ("readers", c_int32),
        ("held", c_int32),
        ("in_order", c_int32),
        ("load", POINTER(HsLoadOptions)),
        ("allocator", c_void_p),
        ("wanted", c_void_p),
        ("loaded", c_void_p),
        ("mask", c_void_p),
        ("user", c_void_p),
    ]


class HsBatchProgress(ctypes.Structure):
    """hs_batch_progress"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("added", c_size_t),
        ("begun", c_size_t),
        ("given", c_size_t),
        ("capacity", c_size_t),
        ("readers", c_int32),
        ("held", c_int32),
        ("ended", c_int32),
        ("unused", c_int32),
    ]


class HsImageSearch(ctypes.Structure):
    """hs_image_search"""

    _fields_ = [
        ("take", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_char_p)),
        ("warn", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)),
        ("user", ctypes.c_void_p),
        ("left_out", ctypes.c_char_p),
        ("reserved", ctypes.c_int32 * 8),
    ]


class HsImageFindings(ctypes.Structure):
    """hs_image_findings"""

    _fields_ = [
        ("unreadable", ctypes.c_size_t),
        ("repeated", ctypes.c_size_t),
        ("has_left_out", ctypes.c_int32),
        ("unused", ctypes.c_int32),
        ("passed_over_text", ctypes.c_char * PASSED_OVER_BYTES),
        ("repeated_path", ctypes.c_char * 1024),
        ("endings", ctypes.c_char * 256),
    ]


STRUCTURES: Dict[str, Type[ctypes.Structure]] = {
    str(structure.__doc__): structure
    for structure in (HsBatchImage, HsBatchResult, HsBatchOptions, HsBatchProgress, HsImageSearch, HsImageFindings)
}
know_fields(STRUCTURES)

_RESULT = POINTER(HsBatchResult)
library.hs_batch_open.restype = c_int
library.hs_batch_open.argtypes = [POINTER(c_void_p), POINTER(HsBatchOptions), c_char_p, c_size_t]
library.hs_batch_add.restype, library.hs_batch_add.argtypes = c_int, [c_void_p, POINTER(HsBatchImage)]
library.hs_batch_end.restype, library.hs_batch_end.argtypes = c_int, [c_void_p]
library.hs_batch_stop.restype, library.hs_batch_stop.argtypes = None, [c_void_p]
library.hs_batch_next.restype, library.hs_batch_next.argtypes = c_int, [c_void_p, c_int32, POINTER(_RESULT)]
library.hs_batch_take_features.restype, library.hs_batch_take_features.argtypes = c_int, [c_void_p, _RESULT, c_void_p]
library.hs_batch_release.restype, library.hs_batch_release.argtypes = c_int, [c_void_p, _RESULT]
library.hs_batch_get_progress.restype, library.hs_batch_get_progress.argtypes = c_int, [c_void_p, POINTER(HsBatchProgress)]
library.hs_batch_backend_report.restype, library.hs_batch_backend_report.argtypes = c_char_p, [c_void_p, c_int32]
library.hs_batch_destroy.restype, library.hs_batch_destroy.argtypes = None, [c_void_p]
library.hs_find_images.restype = c_int
library.hs_find_images.argtypes = [c_char_p, POINTER(HsImageSearch), POINTER(HsImageFindings)]


@dataclass(frozen=True)
class BatchResult:
    """Result of one image of a ``Batch``.

    Attributes:
        index: number of the image in the order of ``Batch.add``, from 0 on.
        name: the given name, or the path; "" for bytes and arrays without a name.
        features: None if it failed.
        error: the reason if it failed, else None.
        size: width and height of the original, (0, 0) if it could not be read.
        device: index in ``Batch.devices`` of the device that extracted the features, else None.
        priors: from a file's EXIF: ``focal_length`` in pixels, ``latitude``, ``longitude`` in degrees, ``altitude`` in
            metres; unknown values are left out.
        way, way_reason: as in ``Extractor.statistics``; "none" and "" if it failed.
    """

    index: int
    name: str
    features: Optional[Features]
    error: Optional[Error]
    size: Tuple[int, int]
    device: Optional[int]
    priors: Dict[str, float]
    way: str
    way_reason: str


@dataclass(frozen=True)
class BatchProgress:
    """Progress of a ``Batch``.

    Attributes:
        added, begun, given: numbers of images added, of images begun by a thread, and of results returned.
        capacity: maximum number of images in progress or held at one time.
    """

    added: int
    begun: int
    given: int
    capacity: int


def image_search(found: List[str], unreadable: List[str]) -> HsImageSearch:
    """Appends what the library finds, and messages about what it cannot read."""

    def take(_: Any, path: bytes) -> int:
        found.append(os.fsdecode(path))
        return 1

    def warn(_: Any, message: bytes) -> None:
        unreadable.append(os.fsdecode(message))

    kinds: Dict[str, Any] = dict(HsImageSearch._fields_)  # type: ignore[arg-type]
    return HsImageSearch(take=kinds["take"](take), warn=kinds["warn"](warn))


def find_image_paths(folder: str, left_out: Optional[str] = None) -> Tuple[List[str], List[str], bytes]:
    """Paths of the images below a folder but for those below `left_out`; messages about folders that cannot be read; a text
    about passed over files."""
    paths: List[str] = []
    unreadable: List[str] = []
    findings, search = HsImageFindings(), image_search(paths, unreadable)
    if left_out is not None:
        search.left_out = os.fsencode(left_out)
    check(library.hs_find_images(os.fsencode(folder), ctypes.byref(search), ctypes.byref(findings)))
    return paths, unreadable, findings.passed_over_text


def priors_of(exif: HsExif) -> Dict[str, float]:
    """The known ones of focal length and position."""
    priors = {"focal_length": exif.focal_length} if exif.focal_length > 0 else {}
    if exif.has_place:
        priors.update(latitude=exif.latitude, longitude=exif.longitude)
    if exif.has_altitude:
        priors["altitude"] = exif.altitude
    return priors


class Batch:
    """Features of many images at the rate of ``hartsift batch``: threads of the library read and decode files, one or
    several devices extract features, and results are returned as they finish. An image that fails gives a result with
    its error.

    >>> with hartsift.Batch(max_features=2000) as batch:
    ...     for result in batch.run(paths):
    ...         print(result.name, result.error or len(result.features))

    ``add``, ``next`` and ``stop`` may be called by several threads at once.

    Args:
        devices: ``"cpu"``, ``"cuda:1"``, or a list of such names: a faster device takes more images; None: ``device``.
        readers: threads that read and decode, 0: chosen by devices and cores.
        in_order: results are returned in the order of ``add``.
        value_range, exif, jpeg_scale, max_image_size, strict: of files, as for ``hartsift.extract``.
        options: as for ``Extractor``.

    The environment variable ``CUDA_DEVICE_MAX_CONNECTIONS``, set before the GPU is first used, is best 2 for fewer than
    500 images, 8 (CUDA's default) for more, and 16 from 3500 on.
    """

    def __init__(
        self,
        devices: Union[None, str, Sequence[str]] = None,
        *,
        readers: int = 0,
        in_order: bool = False,
        value_range: Optional[ValueRange] = None,
        exif: bool = True,
        jpeg_scale: int = 1,
        max_image_size: int = 0,
        strict: bool = False,
        **options: "Unpack[Options]",
    ) -> None:
        names: List[Any] = [devices] if devices is None or isinstance(devices, str) else list(devices)
        sets = [make_options({**options, **({} if name is None else {"device": name})}) for name in names]
        if not sets:
            raise ArgumentError("devices is empty, expected one or more")
        view = sets[0].view
        low, high = checked_range(value_range) or (0.0, 0.0)
        check_sizes(jpeg_scale, max_image_size)
        load = HsLoadOptions(
            struct_size=ctypes.sizeof(HsLoadOptions),
            max_pixels=view.max_pixels,
            max_memory_bytes=view.max_memory_bytes,
            ignore_exif=not exif,
            jpeg_scale=jpeg_scale,
            max_image_size=max_image_size,
            strict=strict,
            range_low=low,
            range_high=high,
        )
        self._handle = _open(sets, load, readers, in_order)
        self._process = os.getpid()
        self._layout = cast("Layout", name_of("layout", view.layout))
        self._lock = threading.Lock()
        self._closed = False
        # Memory that the library reads until the result is returned, by the image's index.
        self._owners: Dict[int, Tuple[Any, ...]] = {}
        self._count = 0
        self._end = weakref.finalize(self, library.hs_batch_destroy, self._handle)

    def add(self, image: ImageLike, mask: Any = None, *, name: Optional[str] = None) -> int:
        """Adds an image and returns its number at once. An array must not be changed until its result is returned.

        Args:
            image: a file, its bytes or an array in host memory; as for ``extract``.
            mask: None, or an array of the image's size; keypoints where it is zero are dropped.
            name: name in the result; None: the path.
        """
        given, owners = _batch_image(image, mask, name)
        with self._lock:
            self._check_open()
            index = self._count
            self._owners[index] = owners
            status = library.hs_batch_add(self._handle, ctypes.byref(given))
            if status != _library.HS_OK:
                del self._owners[index]
            check(status)
            self._count += 1
        return index

    def end(self) -> None:
        """Ends the input: after the results of all added images ``next`` returns None."""
        self._check_open()
        check(library.hs_batch_end(self._handle))

    def stop(self) -> None:
        """Stops the batch. Images on a device are finished; other images get no result."""
        if not self._closed:
            library.hs_batch_stop(self._handle)

    def next(self, timeout: Optional[float] = None) -> Optional[BatchResult]:
        """Returns the next result; None: there are no more, or none within the timeout.

        Args:
            timeout: seconds; None: waits without a limit.
        """
        found = _RESULT()
        end = None if timeout is None else time.monotonic() + timeout
        status = _library.HS_ERR_CAPACITY
        try:
            while status == _library.HS_ERR_CAPACITY:
                self._check_open()
                left = None if end is None else end - time.monotonic()
                wait_ms = -1 if left is None else int(min(max(left * 1000, 0), 2**31 - 1))
                status = library.hs_batch_next(self._handle, wait_ms, ctypes.byref(found))
                if status == _library.HS_ERR_CAPACITY:  # other threads copy results, and will release them soon
                    if left is not None and left <= 0:
                        return None
                    time.sleep(_LOOK_AGAIN_S)
            check(status)
            return self._result_of(found) if found else None
        finally:  # also if the program was interrupted before the result could be used
            if found:
                with self._lock:
                    self._owners.pop(found.contents.index, None)
                library.hs_batch_release(self._handle, found)

    def _result_of(self, found: Any) -> BatchResult:
        view = found.contents
        name = "" if not view.name else os.fsdecode(view.name)
        features = error = None
        if view.status != _library.HS_OK:
            error = make_error(view.status, view.message.decode("utf-8", "surrogateescape"))
        else:
            try:
                features = fill_features(
                    lambda reference: library.hs_batch_take_features(self._handle, found, reference), check, self._layout
                )
                warn_of_damage(view.notes.contents, name)
                warn_of_range(view.notes.contents, name)
            except Exception as failure:  # too little memory, or a warning that is an error; other images may succeed
                features, error = None, reason_of(failure)
        device = None if view.device < 0 else int(view.device)
        size = (int(view.width), int(view.height))
        priors = priors_of(view.exif.contents)
        way = library.hs_frame_way_name(view.way).decode() if error is None else "none"
        reason = (view.way_reason or b"").decode() if error is None else ""
        return BatchResult(int(view.index), name, features, error, size, device, priors, way, reason)

    def run(self, images: Iterable[ImageLike]) -> Iterator[BatchResult]:
        """Adds images, of which only a bounded number waits for results, ends the batch, and yields the results.

        Args:
            images: as for ``add``, taken one after another.
        """
        capacity, source, is_ended = self.progress.capacity, iter(images), False
        while True:
            while not is_ended and len(self._owners) < capacity:
                is_ended = not self._add_next(source)
            result = self.next()
            if result is None:
                return
            yield result

    def _add_next(self, source: Iterator[ImageLike]) -> bool:
        """Adds the next image. False: there are no more, or the batch is stopped."""
        try:
            self.add(next(source))
        except StopIteration:
            self.end()
            return False
        except ArgumentError as error:
            if error.status != _library.HS_ERR_CANCELLED:
                raise
            return False
        return True

    @property
    def progress(self) -> BatchProgress:
        """Progress of the batch."""
        self._check_open()
        view = HsBatchProgress(struct_size=ctypes.sizeof(HsBatchProgress))
        check(library.hs_batch_get_progress(self._handle, ctypes.byref(view)))
        return BatchProgress(view.added, view.begun, view.given, view.capacity)

    def close(self) -> None:
        """Stops the batch, waits for images on a device, and frees everything except results that were returned."""
        if not self._closed:
            self._closed = True
            self._end()
            self._owners.clear()

    def __enter__(self) -> "Batch":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the batch is closed")
        if self._process != os.getpid():
            raise ArgumentError("the batch belongs to the process that forked this one: make another one here")


def _open(sets: List[OptionsSet], load: HsLoadOptions, readers: int, in_order: bool) -> c_void_p:
    handle, message = c_void_p(), _library.message_buffer()
    pointers = (POINTER(HsOptions) * len(sets))(*(ctypes.pointer(one.view) for one in sets))
    options = HsBatchOptions(
        struct_size=ctypes.sizeof(HsBatchOptions),
        devices=pointers,
        device_count=len(sets),
        readers=min(max(readers, -1), 2**31 - 1),  # limits the numbers, because ctypes would drop higher bits; the library refuses the limits
        in_order=bool(in_order),
        load=ctypes.pointer(load),
    )
    check(library.hs_batch_open(ctypes.byref(handle), ctypes.byref(options), message, _library.MESSAGE_BYTES), message.value)
    return handle


def _host_picture(picture: Picture) -> Picture:
    if picture.on_device:
        raise ArrayTypeError("a batch takes images and masks in host memory")
    return picture


def _batch_image(image: ImageLike, mask: Any, name: Optional[str]) -> Tuple[HsBatchImage, Tuple[Any, ...]]:
    """The library's form of an image, and objects that must stay alive until its result."""
    added = HsBatchImage(name=None if name is None else path_bytes(name))
    source = added.source
    masking = None if mask is None else _host_picture(picture_of_mask(mask))
    if masking is not None:
        source.mask = ctypes.pointer(masking.view)
    if not is_file_source(image):
        picture = _host_picture(picture_of_array(image))
        source.kind, source.image = _library.HS_SOURCE_PIXELS, picture.view
        return added, (picture, masking)
    content = content_of(image)
    if content is not None:
        content = bytes(content)
        source.kind, source.size = _library.HS_SOURCE_ENCODED, len(content)
        source.bytes = ctypes.cast(c_char_p(content), c_void_p)
        return added, (content, masking)
    path = path_bytes(cast("Union[str, os.PathLike[str]]", image))
    if path == b"-":  # for the library "-" would be standard input, but here it is a file's name
        path, added.name = b"./-", added.name or b"-"
    source.kind, source.path = _library.HS_SOURCE_FILE, path
    return added, (masking,)
