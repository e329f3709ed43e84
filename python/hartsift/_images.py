"""Conversion of NumPy arrays, device arrays and files to the library's images, and of its images to arrays."""

from __future__ import annotations

import ctypes
import errno
import os
import pathlib
import re
import warnings
import weakref
from dataclasses import dataclass
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Callable,
    Literal,
    Optional,
    Tuple,
    Union,
    cast,
)

import numpy as np

from . import _library
from ._device import DeviceArray, device_array
from ._errors import ArgumentError, ArrayTypeError, Error, FileError, check
from ._foreign import contiguous_there, converted_there, extremes_there, plain_array
from ._library import library
from ._samples import (
    SAMPLE_TYPES,
    ValueRange,
    check_extremes,
    checked_range,
    readable_samples,
    same_as_default,
    unusable,
    warn,
)
from ._structures import HsExif, HsImage, HsLoadNotes, HsLoadOptions

if TYPE_CHECKING:
    import numpy.typing as npt

#: Accepted pictures: an array (of NumPy, of another package, or on a device), a PIL image, a file's name, an open file,
#: or the bytes of a file.
ImageLike = Union["npt.NDArray[Any]", str, "os.PathLike[str]", bytes, bytearray, memoryview, IO[bytes], Any]
#: Types that load_image accepts.
FileLike = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, IO[bytes]]

#: The order of colour channels in arrays.
Channels = Literal["rgb", "bgr"]

_INT32_MAX = (1 << 31) - 1
_LAYOUTS = {
    "rgb": {1: _library.HS_GRAY, 2: _library.HS_GRAY_ALPHA, 3: _library.HS_RGB, 4: _library.HS_RGBA},
    "bgr": {1: _library.HS_GRAY, 2: _library.HS_GRAY_ALPHA, 3: _library.HS_BGR, 4: _library.HS_BGRA},
}
_JPEG_SCALES = (0, 1, 2, 4, 8)


@dataclass
class Picture:
    """An image in the library's form, and objects that must outlive it."""

    view: HsImage
    owner: object
    on_device: bool = False
    stream: Optional[int] = None


class LibraryMemory:
    """Memory of the library in the form of NumPy's array interface. It keeps its owner alive."""

    __slots__ = ("_owner", "__array_interface__")

    def __init__(self, owner: object, address: int, shape: Tuple[int, ...], typestr: str) -> None:
        self._owner = owner
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": typestr}


def array_of_memory(owner: object, address: Optional[int], shape: Tuple[int, ...], dtype: Any) -> "npt.NDArray[Any]":
    """An array that refers to memory, without a copy. The memory is freed with its owner."""
    if not address or 0 in shape:
        return np.empty(shape, dtype)
    dtype = np.dtype(dtype)
    array = np.asarray(LibraryMemory(owner, address, shape, dtype.str))
    # The array is viewed, because NumPy takes 8 us to read the fields of a structured type from the interface.
    return array if dtype.names is None else array.view(dtype)


class _ImageMemory:
    """A picture that the library made, freed with this object."""

    def __init__(self) -> None:
        self.view = HsImage()
        self.exif = HsExif()
        self.notes = HsLoadNotes()
        weakref.finalize(self, library.hs_image_free, ctypes.byref(self.view)).atexit = False


def _row_stride(shape: Tuple[int, ...], strides: Tuple[int, ...], itemsize: int) -> Optional[int]:
    """Bytes between rows if the library can read the samples in place, else None."""
    height, width = shape[0], shape[1]
    channels = shape[2] if len(shape) == 3 else 1
    if channels > 1 and strides[2] != itemsize:
        return None
    if width > 1 and strides[1] != channels * itemsize:
        return None
    row = width * channels * itemsize
    if height == 1:
        return row
    return strides[0] if strides[0] >= row and strides[0] % itemsize == 0 else None


def _check_shape(shape: Tuple[int, ...], what: str, channels: Channels) -> int:
    """The pixel layout for the shape of an array."""
    if len(shape) == 4:
        raise ArgumentError(
            f"{what} is a batch of {shape[0]}, of 4 dimensions: hartsift.extract_batch gives a list of features"
        )
    if len(shape) not in (2, 3):
        raise ArgumentError(
            f"{what} has {len(shape)} dimensions, expected (height, width) or (height, width, channels)"
        )
    if 0 in shape:
        raise ArgumentError(f"{what} has no pixels: its shape is {tuple(shape)}")
    if shape[0] > _INT32_MAX or shape[1] > _INT32_MAX:
        raise ArgumentError(f"{what} is too large: its shape is {tuple(shape)}")
    count = shape[2] if len(shape) == 3 else 1
    if channels not in _LAYOUTS:
        raise ArgumentError(f"channels is {channels!r}, expected 'rgb' or 'bgr'")
    layout = _LAYOUTS[channels].get(count)
    if layout is None:
        hint = "; channels come last" if len(shape) == 3 and shape[0] in _LAYOUTS[channels] else ""
        raise ArgumentError(f"{what} has {count} channels, expected 1 to 4 (shape {tuple(shape)}){hint}")
    return layout


def _fill_view(
    pointer: int,
    shape: Tuple[int, ...],
    stride: int,
    sample_type: int,
    layout: int,
    value_range: Optional[ValueRange],
) -> HsImage:
    low, high = value_range if value_range is not None else (0.0, 0.0)
    return HsImage(pointer, shape[1], shape[0], stride, sample_type, layout, low, high)


def _converted(image: Any, dtype: str, seen: DeviceArray, what: str) -> Any:
    converted = converted_there(image, dtype)
    if converted is None:
        raise ArrayTypeError(
            f"{what} on a device has samples of type {seen.kind}{seen.itemsize}, expected uint8, uint16 or float32"
        )
    return converted


def _readable_there(image: Any, seen: DeviceArray, value_range: Optional[ValueRange], what: str) -> Any:
    """As ``readable_samples``, for an array on a device, which its package converts. The array itself if no conversion is
    needed."""
    if seen.kind not in "buif":
        raise unusable(f"{seen.kind}{seen.itemsize}", what)
    if seen.kind == "b" and value_range is None:
        return _converted(image, "uint8", seen, what) * 255
    # With a given range no extremes are needed, and their computation would wait for the device.
    extremes = None if value_range is not None or (seen.kind, seen.itemsize) == ("u", 1) else extremes_there(image)
    if extremes is not None:
        check_extremes(seen.kind, seen.itemsize, *extremes, None, what)
    if not same_as_default(seen.kind, seen.itemsize, value_range):
        bytes_only = value_range is None and seen.kind != "f"
        return _converted(image, "uint8" if bytes_only else "float32", seen, what)
    contiguous = None
    if _row_stride(seen.shape, seen.strides, seen.itemsize) is None:
        contiguous = contiguous_there(image)
    return image if contiguous is None else contiguous


def _device_picture(
    image: Any, seen: DeviceArray, channels: Channels, value_range: Optional[ValueRange], what: str
) -> Picture:
    layout = _check_shape(seen.shape, what, channels)
    readable = _readable_there(image, seen, value_range, what)
    if readable is not image:
        seen = device_array(readable) or seen
    return _picture_there(seen, layout, value_range, what)


def _picture_there(seen: DeviceArray, layout: int, value_range: Optional[ValueRange], what: str) -> Picture:
    stride = _row_stride(seen.shape, seen.strides, seen.itemsize)
    if stride is None:
        raise ArgumentError(
            f"{what}: strides {seen.strides} of an array on a device cannot be read in place; "
            "make a contiguous copy there"
        )
    sample_type = SAMPLE_TYPES[seen.kind, seen.itemsize]
    view = _fill_view(seen.pointer, seen.shape, stride, sample_type, layout, value_range)
    return Picture(view, seen, True, seen.stream)


def _readable(array: "npt.NDArray[Any]") -> "npt.NDArray[Any]":
    """The array itself, or a copy if the library cannot read its byte order or strides."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned or _row_stride(array.shape, array.strides, array.itemsize) is None:
        array = np.array(array, order="C")
    return array


def _plain_gray(image: "npt.NDArray[Any]") -> Optional[Picture]:
    """Fast path for the most common picture: contiguous gray bytes."""
    if image.dtype != np.uint8 or image.ndim != 2 or not image.flags.c_contiguous:
        return None
    height, width = image.shape
    if not 0 < height <= _INT32_MAX or not 0 < width <= _INT32_MAX:
        return None
    pointer = image.__array_interface__["data"][0]
    return Picture(HsImage(pointer, width, height, width, _library.HS_U8, _library.HS_GRAY), image)


def picture_of_array(
    image: Any, channels: Channels = "rgb", value_range: Optional[ValueRange] = None, what: str = "the image"
) -> Picture:
    """An image in the library's form. On the CPU everything that NumPy accepts; copied only if necessary."""
    if image is None:
        raise ArrayTypeError(f"{what} is None (cv2.imread returns that for a file that it cannot read)")
    if type(image) is np.ndarray and value_range is None and channels in _LAYOUTS:
        gray = _plain_gray(image)
        if gray is not None:
            return gray
    image, value_range = plain_array(image, checked_range(value_range))
    if image is None:
        raise ArgumentError(f"{what} has no pixels: it is an empty cv2.UMat")
    seen = device_array(image)
    if seen is not None:
        return _device_picture(image, seen, channels, value_range, what)
    if not isinstance(image, np.ndarray) and not hasattr(image, "__array__") and hasattr(image, "__dlpack__"):
        image = np.from_dlpack(image)
    array = np.asarray(image)
    if array.dtype.kind not in "buif":
        raise unusable(array.dtype, what)
    layout = _check_shape(array.shape, what, channels)
    array, value_range = readable_samples(array, value_range, what)
    array = _readable(array)
    stride = _row_stride(array.shape, array.strides, array.itemsize)
    assert stride is not None
    sample_type = SAMPLE_TYPES[array.dtype.kind, array.itemsize]
    view = _fill_view(array.ctypes.data, array.shape, stride, sample_type, layout, value_range)
    return Picture(view, array)


def plain_mask(mask: Any) -> Any:
    """A masked array (numpy.ma) as a mask that is 0 at masked samples. Other masks stay unchanged."""
    return mask.filled(0) if isinstance(mask, np.ma.MaskedArray) else mask


def without_masked(image: "np.ma.MaskedArray[Any, Any]", mask: Any) -> "Tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]":
    """The pixels of a masked array, and a mask that drops keypoints at its masked pixels and where ``mask`` is zero.

    Masked samples are undefined (they may be NaN), so they are replaced by the mean of the others.
    """
    if image.ndim not in (2, 3):
        raise ArgumentError(
            f"the image has {image.ndim} dimensions, expected (height, width) or (height, width, channels)"
        )
    masked = np.ma.getmaskarray(image)
    valid: "npt.NDArray[np.bool_]" = ~(np.logical_or.reduce(masked, axis=2) if image.ndim == 3 else masked)
    pixels = np.array(image.data)
    if not valid.all():
        usual = pixels[valid].mean(axis=0, dtype=np.float64) if valid.any() else 0
        pixels[~valid] = usual if pixels.dtype.kind == "f" else np.rint(usual).astype(pixels.dtype)
    if mask is not None:
        other, _ = plain_array(mask, None)
        if device_array(other) is not None:
            raise ArgumentError("the image is a masked array in host memory, and the mask is on a device")
        wanted = np.asarray(other)
        if wanted.shape not in (valid.shape, (*valid.shape, 1)):
            raise ArgumentError(f"the mask has shape {wanted.shape}, the image {valid.shape}")
        valid &= wanted.reshape(valid.shape) != 0
    return pixels, valid.view(np.uint8)


def picture_of_mask(mask: Any) -> Picture:
    """A mask in the library's form: uint8 or bool, zero where keypoints are dropped."""
    mask, _ = plain_array(mask, None)
    seen = device_array(mask)
    mask = mask if seen is not None else np.asarray(mask)
    shape, kind, itemsize = (
        (seen.shape, seen.kind, seen.itemsize) if seen else (mask.shape, mask.dtype.kind, mask.itemsize)
    )
    if itemsize != 1 or kind not in "bu" or len(shape) not in (2, 3) or shape[2:] not in ((), (1,)):
        raise ArrayTypeError(
            f"the mask must be an array (height, width) of uint8 or bool, not of shape {tuple(shape)} and type "
            f"{getattr(mask, 'dtype', kind)}"
        )
    if seen is None:
        return picture_of_array(mask.view(np.uint8) if kind == "b" else mask, what="the mask")
    seen.kind = "u"
    return _picture_there(seen, _check_shape(shape, "the mask", "rgb"), None, "the mask")


def check_sizes(jpeg_scale: int, max_image_size: int) -> None:
    """Checks the sizes, because a C integer would wrap around."""
    if jpeg_scale not in _JPEG_SCALES:
        raise ArgumentError(f"jpeg_scale is {jpeg_scale!r}, expected 1, 2, 4 or 8")
    if not 0 <= max_image_size < 1 << 63:
        raise ArgumentError(f"max_image_size is {max_image_size!r}, expected 0 or more, below 2^63")


def _load(
    read: Callable[[Any, Any], int],
    max_pixels: int,
    max_memory_bytes: int,
    exif: bool,
    colour: bool,
    jpeg_scale: int,
    max_image_size: int = 0,
    strict: bool = False,
    value_range: Optional[ValueRange] = None,
    only_files: bool = True,
) -> _ImageMemory:
    low, high = checked_range(value_range) or (0.0, 0.0)
    check_sizes(jpeg_scale, max_image_size)
    message = _library.message_buffer()
    options = HsLoadOptions(
        struct_size=ctypes.sizeof(HsLoadOptions),
        max_pixels=max_pixels,
        max_memory_bytes=max_memory_bytes,
        ignore_exif=not exif,
        keep_colour=colour,
        message=ctypes.addressof(message),
        message_bytes=_library.MESSAGE_BYTES,
        jpeg_scale=jpeg_scale,
        max_image_size=max_image_size,
        only_files=only_files,
        strict=strict,
        range_low=low,
        range_high=high,
    )
    memory = _ImageMemory()
    options.exif = ctypes.addressof(memory.exif)
    options.notes = ctypes.addressof(memory.notes)
    check(read(ctypes.byref(options), ctypes.byref(memory.view)), message.value)
    warn_of_damage(memory.notes)
    return memory


def warn_of_damage(notes: HsLoadNotes, name: str = "") -> None:
    """Warns if the decoder of a file reported damage. name: name of the file, if its bytes were passed."""
    if notes.damages > 0:
        more = f"; {notes.damages} such reports" if notes.damages > 1 else ""
        text = notes.damage.decode("utf-8", "replace")
        if name:
            text = text.replace("the image in memory", name, 1)
        warn(f"{text}{more}: pixels may be wrong, strict=True refuses them")


def warn_of_range(notes: HsLoadNotes, name: str) -> None:
    """Warns if a file's samples use little of their type's range, and no range was given."""
    if notes.is_low_range:
        warn(
            f"{name or 'the image'} has samples from {notes.lowest:g} to {notes.highest:g} only: few features or none will be "
            f"found; give value_range if white is less there, such as value_range=({notes.range_low:g}, {notes.range_high:g}), "
            "or the whole range of the type if this is meant"
        )


def path_bytes(path: Union[str, "os.PathLike[str]"]) -> bytes:
    """A file's name for the library."""
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise ArgumentError(f"the file name {path!r} can be no name: {error}") from error
    if b"\0" in name:
        raise ArgumentError(f"the file name {path!r} has a null character")
    return name


def is_file_source(image: object) -> bool:
    """True for encoded pictures: a file's name, an open file, or bytes without a shape."""
    if isinstance(image, memoryview):
        return image.ndim == 1 and image.itemsize == 1
    return isinstance(image, (str, bytes, bytearray, os.PathLike)) or callable(getattr(image, "read", None))


def content_of(source: Any) -> Optional[bytes]:
    """The bytes of an encoded file; None for a file's name."""
    if isinstance(source, (str, os.PathLike)):
        return None
    if not isinstance(source, (bytes, bytearray, memoryview)):
        source = source.read()
        if not isinstance(source, (bytes, bytearray, memoryview)):
            raise ArrayTypeError(
                f"the file's read() gave {type(source).__name__}, expected bytes: open it in binary mode ('rb')"
            )
    return bytes(source)


def load_memory(
    source: FileLike,
    max_pixels: int,
    max_memory_bytes: int,
    exif: bool,
    colour: bool,
    jpeg_scale: int,
    max_image_size: int = 0,
    strict: bool = False,
    value_range: Optional[ValueRange] = None,
) -> _ImageMemory:
    """Decodes a file or its bytes, or renders a scene. max_pixels 0: 2^31."""
    limits = max_pixels, max_memory_bytes, exif, colour, jpeg_scale, max_image_size, strict, value_range
    encoded = content_of(source)
    if encoded is not None:
        return _load(lambda options, view: library.hs_load_image_memory(encoded, len(encoded), options, view), *limits)
    path = path_bytes(cast("Union[str, os.PathLike[str]]", source))
    is_scene = isinstance(source, str) and source.startswith("@scene")
    return _load(lambda options, view: library.hs_load_image(path, options, view), *limits, only_files=not is_scene)


def picture_of_file(
    source: Any,
    limits: Tuple[int, int],
    exif: bool,
    jpeg_scale: int,
    value_range: Optional[ValueRange],
    max_image_size: int = 0,
    strict: bool = False,
) -> Picture:
    """A gray picture from a file, as the command reads it. limits: of pixels and of bytes."""
    memory = load_memory(source, *limits, exif, False, jpeg_scale, max_image_size, strict, value_range)
    if memory.notes.is_low_range:
        kind, itemsize = ("u", 2) if memory.view.type == _library.HS_U16 else ("f", 4)
        what = os.fsdecode(source) if isinstance(source, (str, os.PathLike)) else "the image"
        check_extremes(kind, itemsize, memory.notes.lowest, memory.notes.highest, None, what)
    return Picture(memory.view, memory)


def fit_mask(mask: Any, view: HsImage) -> Any:
    """Samples a mask of the original's size at the pixel centres of the reduced picture."""
    if view.original_width == 0 or getattr(mask, "shape", ())[:2] != (view.original_height, view.original_width):
        return mask
    rows = (2 * np.arange(view.height) + 1) * view.original_height // (2 * view.height)
    columns = (2 * np.arange(view.width) + 1) * view.original_width // (2 * view.width)
    return np.asarray(mask)[rows[:, None], columns]


def _below_folder(name: str) -> str:
    """Removes the parts of an image's name that leave the folder. Otherwise FOLDER/../photos/a.png would be the photograph
    itself."""
    return re.sub(r"^(?:\.{0,2}/)+", "", name)


def mask_path(folder: "Union[str, os.PathLike[str]]", name: Any) -> Optional[str]:
    """Path of an image's mask by COLMAP's rule: FOLDER/NAME.png, or FOLDER/NAME with its ending replaced by .png; None: no
    mask."""
    if not isinstance(name, (str, os.PathLike)):
        raise ArgumentError(f"masks by name are for files: {type(name).__name__} has no name")
    whole = _below_folder(os.fspath(name))
    for stem in (whole, os.path.splitext(whole)[0]):
        path = os.path.join(os.fspath(folder), stem + ".png")
        try:
            os.lstat(path)  # a dangling link counts as an unreadable mask
            return path
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
                raise FileError(f"{path}: the mask cannot be read: {error}") from error
    return None


def named_mask(folder: "Union[str, os.PathLike[str]]", name: Any) -> "Optional[npt.NDArray[np.bool_]]":
    """The mask of an image by COLMAP's rule; None: no mask."""
    path = mask_path(folder, name)
    if path is None:
        return None
    mask: "npt.NDArray[np.bool_]" = load_image(pathlib.Path(path)) != 0
    return mask


class MaskCount:
    """Counts the images that have a mask in a folder, for a final warning."""

    def __init__(self, folder: "Union[str, os.PathLike[str]]") -> None:
        self.folder = os.fspath(folder)
        self.count = self.found = 0
        self.first = ""

    def add(self, name: Any) -> None:
        """Counts an image. Errors of its name appear at extraction."""
        try:
            self.found += mask_path(self.folder, name) is not None
        except Error:
            self.found += 1
        self.first = self.first or str(name)
        self.count += 1

    def conclude(self) -> None:
        """Raises an error if no image has a mask; warns if some have none."""
        if self.count and not self.found:
            name = _below_folder(self.first)
            stem = os.path.splitext(name)[0]
            raise FileError(f"masks {self.folder!r}: 0 of {self.count} images have a mask there: for {self.first} expected "
                            f"{name}.png, or else {stem}.png")
        if self.found < self.count:
            text = f"{self.found} of {self.count} images have a mask in {self.folder}, the others are used whole"
            warnings.warn(text, UserWarning, stacklevel=3)


def array_of_file(
    source: Any, exif: bool, max_pixels: int = 0, max_memory_bytes: int = 0
) -> "Tuple[npt.NDArray[Any], _ImageMemory]":
    """The gray pixels of a file, and the object that owns their memory."""
    memory = load_memory(source, max_pixels, max_memory_bytes, exif, False, 1)
    return _array_of_image(memory), memory


def _array_of_image(memory: _ImageMemory) -> "npt.NDArray[Any]":
    view = memory.view
    channels = {
        _library.HS_GRAY: 1,
        _library.HS_GRAY_ALPHA: 2,
        _library.HS_RGB: 3,
        _library.HS_BGR: 3,
        _library.HS_RGBA: 4,
        _library.HS_BGRA: 4,
    }[view.layout]
    dtype = {_library.HS_U8: np.uint8, _library.HS_U16: np.uint16, _library.HS_F32: np.float32}[view.type]
    row = view.stride_bytes or view.width * channels * np.dtype(dtype).itemsize
    data = array_of_memory(memory, view.data, (view.height, row), np.uint8)
    pixels = data[:, : view.width * channels * np.dtype(dtype).itemsize].view(dtype)
    return pixels if channels == 1 else pixels.reshape(view.height, view.width, channels)


def load_image(
    source: FileLike,
    *,
    colour: bool = False,
    exif: bool = True,
    max_pixels: int = 1 << 31,
    max_memory_bytes: int = 0,
    jpeg_scale: int = 1,
    max_image_size: int = 0,
    strict: bool = False,
    value_range: Optional[ValueRange] = None,
) -> "npt.NDArray[Any]":
    """Decodes a PNG, JPEG, TIFF, WebP, BMP or PNM file, whose kind is detected by its content.

    Args:
        source: the file's name, the file opened in binary mode, its bytes, or ``"@scene[:WxH[:SEED]]"`` for a rendered
            picture. A ``pathlib.Path`` always names a file.
        colour: True: RGB if the file has colour; False: gray, as ``extract`` reads files.
        exif: for JPEG, PNG, TIFF and WebP files: apply the orientation that is stored in them.
        max_pixels: refuse larger pictures before anything is allocated; 0: 2^31.
        max_memory_bytes: refuse pictures whose decoding needs more memory; 0: half the memory that this process may
            hold (limited by the machine, its control groups, RLIMIT_AS); 2**64 - 1: no limit.
        jpeg_scale: 1, 2, 4 or 8: decode a JPEG to 1/N of its width and height, rounded up; limits refer to the decoded
            picture. With a value above 1 other files and scenes are refused.
        max_image_size: reduce a picture whose larger side has more pixels, by exact area averaging; 0: never.
        strict: refuse files whose decoder reports damage; otherwise damage gives a warning.
        value_range: sample values (black, white) of a TIFF file with signed or float samples. Without it such files are
            refused, unless the file declares the range, or its floats are within 0 to 1.

    Returns:
        An array ``(height, width)`` or ``(height, width, 3)`` of uint8; for files of 16 bits uint16; with a
        value_range, and for floats, float32 with the file's values. It refers to memory of the library, which is freed
        with the array.
    """
    return _array_of_image(load_memory(source, max_pixels, max_memory_bytes, exif, colour, jpeg_scale, max_image_size, strict,
                                       value_range))


def render_scene(
    width: int, height: int, seed: int = 1, homography: Optional["npt.ArrayLike"] = None
) -> "npt.NDArray[np.uint8]":
    """Renders a picture with natural statistics (dead leaves). Its pixels are the same on every machine.

    Args:
        width, height: pixels.
        seed: number of the picture.
        homography: 3 x 3 matrix that maps points of the plain scene to points of the rendered view.
    """
    if not (1 <= width <= _INT32_MAX and 1 <= height <= _INT32_MAX):
        raise ArgumentError(f"width and height are {width} and {height}, expected 1 or more")
    numbers = None if homography is None else np.ascontiguousarray(homography, np.float64).reshape(-1)
    if numbers is not None and numbers.size != 9:
        raise ArgumentError(f"homography has {numbers.size} numbers, expected 9")
    memory = _ImageMemory()
    pointer = None if numbers is None else numbers.ctypes.data
    check(library.hs_render_scene(width, height, seed, pointer, None, ctypes.byref(memory.view)))
    return _array_of_image(memory)
