"""Images of a collection: listed and read through pyarrow's file systems, divided into shards, and their rows."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import posixpath
import re
import threading
import warnings
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, Union

import pyarrow as pa
from pyarrow import fs

from . import _library
from ._arrow import ImageRow, options_text
from ._batch import PASSED_OVER_BYTES, Batch, HsImageSearch, find_image_paths, image_search
from ._errors import ArgumentError, Error, FileError, check, reason_of
from ._library import library
from ._options import make_options
from ._samples import ValueRange

_READERS_MAX = 1024  # of a batch


@dataclass(frozen=True)
class ImageSource:
    """An image of a collection.

    Attributes:
        name: name in results.
        path: path in the file system; without a file system a URI (``s3://...``); ``"@scene..."`` renders a picture.
        content: bytes of the file, if it was already read.
    """

    name: str
    path: str
    content: Optional[bytes] = None

    def local_path(self, filesystem: Any) -> Optional[str]:
        """What the library reads itself: a path on this machine, or the name of a scene. None: it cannot. Asks no remote
        file system."""
        if self.content is not None:
            return None
        if self.path.startswith("@scene") and not os.path.exists(self.path):
            return self.path
        root, path = "", self.path
        if filesystem is None:
            root, path, _ = _parts_of(self.path)
        if root or not isinstance(filesystem, (type(None), fs.LocalFileSystem)):
            return None
        return f"./{path}" if path.startswith("@") else path  # a file, though it may have the name of a scene

    def read(self, filesystem: Any) -> bytes:
        """The bytes of the file."""
        if self.content is not None:
            return self.content
        try:
            system, path = resolve(self.path, filesystem)
            with system.open_input_stream(at(system, path), compression=None) as stream:
                content: bytes = stream.read()
        except (OSError, ValueError, pa.ArrowException) as error:  # for example a URI of an unknown file system
            raise FileError(f"{self.path}: cannot be read: {error}", _library.HS_ERR_IO) from None
        return content


def at(system: Any, path: str) -> Union[str, bytes]:
    """A path for pyarrow, which accepts bytes if a name on this machine is not UTF-8."""
    return os.fsencode(path) if isinstance(system, fs.LocalFileSystem) else path


@functools.lru_cache(maxsize=64)
def _system_of(root: str) -> Any:
    return fs.FileSystem.from_uri(root)[0] if root else fs.LocalFileSystem()


def _parts_of(path: str) -> Tuple[str, str, str]:
    """The beginning of a URI, its path and its query. On this machine there is only a path, also of a URI."""
    parts = re.match(r"([a-z][a-z0-9+.-]+://[^/?]*)(/[^?]*)?(\?.*)?$", path, re.S)
    if parts is None:
        return "", path, ""
    root, rest, query = parts.group(1), parts.group(2) or "", parts.group(3) or ""
    return ("", rest, "") if root.startswith("file:") else (root, rest, query)


def resolve(path: str, filesystem: Any = None) -> Tuple[Any, str]:
    """The file system of a path or URI, and the path in that system."""
    if filesystem is not None:
        return filesystem, path
    root, rest, query = _parts_of(path)
    if not root:
        return _system_of(""), rest
    # in this file system the bucket is part of the path
    return _system_of(root + "/" + query), root.split("://", 1)[1] + rest


library.hs_read_image_list.restype = ctypes.c_int
library.hs_read_image_list.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int32,
                                       ctypes.POINTER(HsImageSearch), ctypes.c_char_p, ctypes.c_size_t]
library.hs_is_image_name.restype, library.hs_is_image_name.argtypes = ctypes.c_int32, [ctypes.c_char_p]
library.hs_explain_passed_over.restype = ctypes.c_int
library.hs_explain_passed_over.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]


def _is_image(path: str) -> bool:
    return bool(library.hs_is_image_name(os.fsencode(path)))


def _warn_of_others(place: str, passed_over: bytes) -> None:
    if passed_over:
        warnings.warn(f"{place}: {os.fsdecode(passed_over)}", UserWarning, stacklevel=2)


def _local_images(place: str, folder: str) -> List[Tuple[str, str]]:
    """Names of a folder's images below the folder, and their paths."""
    paths, unreadable, passed_over = find_image_paths(folder)
    for message in unreadable:
        warnings.warn(f"{message}: its images are left out", UserWarning, stacklevel=2)
    _warn_of_others(place, passed_over)
    return [(os.path.relpath(path, folder).replace(os.sep, "/"), path) for path in paths]


def _remote_images(place: str, system: Any, folder: str) -> List[Tuple[str, str]]:
    """As ``_local_images``, for a file system that only pyarrow can read."""
    files: List[Tuple[str, str]] = []
    for info in system.get_file_info(fs.FileSelector(folder, recursive=True)):
        name = posixpath.relpath(info.path, folder)
        if info.type == fs.FileType.File and not any(part.startswith(".") for part in name.split("/")):
            files.append((name, info.path))
    names = (ctypes.c_char_p * len(files))(*(os.fsencode(name) for name, _ in files))
    text = ctypes.create_string_buffer(PASSED_OVER_BYTES)
    check(library.hs_explain_passed_over(names, len(files), text, PASSED_OVER_BYTES))
    _warn_of_others(place, text.value)
    return [one for one in files if _is_image(one[0])]


def _names_of_list(content: bytes, place: str) -> List[str]:
    names: List[str] = []
    message = _library.message_buffer()
    search = image_search(names, [])
    status = library.hs_read_image_list(
        content, len(content), os.fsencode(place), 0, ctypes.byref(search), message, _library.MESSAGE_BYTES
    )
    check(status, message.value)
    return names


def find_images(given: Union[str, "os.PathLike[str]", Iterable[str]], filesystem: Any = None) -> List[ImageSource]:
    """The images of a folder, sorted by the bytes of their names below the folder; or the images of a list in its
    order, which is a file with one name per line, or the names themselves. The rules are those of ``hartsift batch``. A
    warning counts the files of a folder that were passed over, by their endings.

    Args:
        given: folder or file (a path, or a URI such as ``s3://bucket/folder``), or names of images.
        filesystem: pyarrow's file system of the paths; None: the local one, or that of the URI.
    """
    if not isinstance(given, (str, os.PathLike)):
        return [ImageSource(name, name) for name in given]
    place = os.fspath(given)
    system, path = resolve(place, filesystem)
    kind = system.get_file_info(at(system, path.rstrip("/") or "/")).type
    if kind == fs.FileType.NotFound:
        raise FileError(f"{place}: there is no such folder and no such list", _library.HS_ERR_IO)
    if kind == fs.FileType.Directory:
        is_local = isinstance(system, fs.LocalFileSystem)
        found = _local_images(place, path) if is_local else _remote_images(place, system, path.rstrip("/"))
        # Paths that were found through a URI are opened by URI again, because workers have no file system object.
        shown = (lambda its: its) if is_local or filesystem is not None else functools.partial(_uri_of, place)
        return [ImageSource(name, shown(its)) for name, its in sorted(found, key=lambda one: os.fsencode(one[0]))]
    if _is_image(path):
        raise ArgumentError(f"{place}: is an image: expected a folder, or a list with one image a line")
    with system.open_input_stream(at(system, path), compression=None) as stream:
        return [ImageSource(name, name) for name in _names_of_list(stream.read(), place)]


def _uri_of(place: str, path: str) -> str:
    """The URI of a path in the file system of the URI `place`."""
    scheme, _, rest = place.partition("://")
    query = rest.partition("?")[2]
    return f"{scheme}://{path}" + (f"?{query}" if query else "")


# ---- shards


_VARIABLE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
library.hs_find_shard.restype = ctypes.c_int
library.hs_find_shard.argtypes = [ctypes.c_char_p, _VARIABLE, ctypes.c_void_p, *2 * [ctypes.POINTER(ctypes.c_int32)],
                                  ctypes.c_char_p, ctypes.c_size_t]


def parse_shard(text: str, environment: Optional[Mapping[str, str]] = None) -> Tuple[int, int]:
    """I and N of the option ``--shard``: ``I/N``, ``slurm``, or ``env:INDEX,COUNT``, as in ``hartsift batch``."""
    shard, shards, message = ctypes.c_int32(), ctypes.c_int32(), _library.message_buffer()
    values: List[Any] = []  # keeps the values alive until the call has ended

    def variable(_: Any, name: bytes) -> Optional[int]:
        value = (os.environ if environment is None else environment).get(os.fsdecode(name))
        if value is None:
            return None
        values.append(ctypes.create_string_buffer(os.fsencode(value)))
        return ctypes.addressof(values[-1])

    status = library.hs_find_shard(
        os.fsencode(text), _VARIABLE(variable), None, ctypes.byref(shard), ctypes.byref(shards), message, _library.MESSAGE_BYTES
    )
    check(status, message.value)
    return shard.value, shards.value


def path_of_shard(path: str, shard: int, shards: int) -> str:
    """NAME.parquet; with several shards NAME-I-of-N.parquet."""
    return path if shards == 1 else f"{path[: -len('.parquet')]}-{shard:0{len(str(shards))}d}-of-{shards}.parquet"


# ---- rows of images


def reading_options(
    extraction: Dict[str, Any], exif: bool, jpeg_scale: int, strict: bool, value_range: Optional[ValueRange]
) -> str:
    """The text of the options for rows; it contains strict and value_range if given."""
    options = {**extraction, "exif": exif, "jpeg_scale": jpeg_scale}
    if strict:
        options["strict"] = True
    if value_range is not None:
        options["value_range"] = list(value_range)
    return options_text(options)


class RowStream:
    """Rows of images, for one caller or several at once, at the rate of ``hartsift batch``: the library reads local files,
    and threads read others through pyarrow's file systems; the library decodes them and extracts their features, and each
    caller gets its rows in order. An image that fails gives a row with its error.

    Args:
        options: those of ``Batch``; some change no result, see ``options_text``.
        readers: number of threads of the library that read and decode, and as many that read through pyarrow.
        filesystem: pyarrow's file system of the paths; None: the local one, or that of the URI.
        exif, jpeg_scale, strict, value_range: as for ``hartsift.extract``.

    Attributes:
        text: all settings on which the rows depend.
        extraction: all options of extraction by name.

    If a GPU was lost, the next call of ``rows`` begins with new contexts.
    """

    def __init__(
        self,
        options: Dict[str, Any],
        readers: int,
        filesystem: Any = None,
        exif: bool = True,
        jpeg_scale: int = 1,
        strict: bool = False,
        value_range: Optional[ValueRange] = None,
    ) -> None:
        self._pictures: Dict[str, Any] = dict(exif=exif, jpeg_scale=jpeg_scale, strict=strict, value_range=value_range)
        self.extraction = make_options(options).as_dict()
        self.text = reading_options(self.extraction, **self._pictures)
        self._options = options
        self._filesystem = filesystem
        self._count = min(max(readers, 1), _READERS_MAX)
        self._readers = ThreadPoolExecutor(self._count)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._run = self._open()

    def rows(self, sources: Iterable[ImageSource]) -> Iterator[ImageRow]:
        """Yields a row for each image, in order."""
        if self._process != os.getpid():
            raise ArgumentError("the rows belong to the process that forked this one: make others here")
        with self._lock:
            if self._run.has_lost_device:
                with contextlib.suppress(Error):  # else the rows have the reason, as before
                    self._run = self._open()
            run = self._run
        more = iter(sources)
        ahead = run.batch.progress.capacity + self._count  # number of images that are begun in advance
        begun: Deque[Union[_Begun, Future[_Begun]]] = deque()
        awaited: Optional[_Begun] = None
        try:
            while True:
                begun.extend(self._begin(run, one) for one in itertools.islice(more, ahead - len(begun)))
                if not begun:
                    return
                awaited = _result_of(begun.popleft())
                row = awaited if isinstance(awaited, ImageRow) else run.wait(awaited)
                awaited = None
                yield row
        finally:
            running = [one for one in begun if not (isinstance(one, Future) and one.cancel())]
            run.forget([awaited, *(_result_of(one) for one in running)])

    def _begin(self, run: "_Run", source: ImageSource) -> "Union[_Begun, Future[_Begun]]":
        path = source.local_path(self._filesystem)
        if path is None:
            return self._readers.submit(run.begin, source, functools.partial(source.read, self._filesystem))
        return run.begin(source, lambda: path)

    def close(self) -> None:
        """Ends the threads. Callers must have ended."""
        self._readers.shutdown(cancel_futures=True)
        self._run.batch.close()

    def _open(self) -> "_Run":
        return _Run(Batch(readers=self._count, **self._pictures, **self._options))


_Begun = Union[int, ImageRow]  # the number of an image in the batch, or its row if it cannot be read


def _result_of(begun: "Union[_Begun, Future[_Begun]]") -> _Begun:
    return begun.result() if isinstance(begun, Future) else begun


class _Run:
    """A batch whose results several callers share."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.has_lost_device = False
        self._changed = threading.Condition()  # protects the fields below
        self._rows: Dict[int, ImageRow] = {}  # rows for which no caller has asked yet, by the image's number in the batch
        self._unwanted: Set[int] = set()
        self._is_waiting = False  # whether a caller waits for the batch
        self._failure: Optional[Exception] = None  # of the batch itself

    def begin(self, source: ImageSource, given: "Callable[[], Union[bytes, str]]") -> _Begun:
        """Adds an image to the batch. given: returns its content, its path or the name of a scene."""
        try:
            return self.batch.add(given(), name=source.name)
        except Exception as error:
            return ImageRow(source.name, None, reason_of(error), {})

    def wait(self, number: int) -> ImageRow:
        """Waits for a row. One caller takes results from the batch for all of them, until its own comes."""
        with self._changed:
            while number not in self._rows:
                if self._failure is not None:
                    raise self._failure
                if self._is_waiting:
                    self._changed.wait()
                else:
                    self._take_result()
            return self._rows.pop(number)

    def forget(self, begun: Iterable[Optional[_Begun]]) -> None:
        """Drops the rows of these numbers, now or when they come."""
        with self._changed:
            for number in begun:
                if isinstance(number, int) and self._rows.pop(number, None) is None:
                    self._unwanted.add(number)

    def _take_result(self) -> None:
        """Call with the lock, which is released meanwhile."""
        result = None
        self._is_waiting = True
        self._changed.release()
        try:
            result = self.batch.next()
            if result is None:
                raise ArgumentError("the batch was stopped")
        except Exception as failure:
            self._failure = failure
        finally:
            self._changed.acquire()
            self._is_waiting = False
            self._changed.notify_all()
        if result is None:
            return
        self.has_lost_device |= result.error is not None and result.error.status == _library.HS_ERR_NO_DEVICE
        if result.index in self._unwanted:
            self._unwanted.remove(result.index)
        else:
            self._rows[result.index] = ImageRow(result.name, result.features, result.error, result.priors)
