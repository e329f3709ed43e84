"""The shared library for ctypes: its path, the prototypes of its functions. Structures are in _structures.py.

ctypes.CDLL releases the GIL during every call.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import sys
import sysconfig
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Dict, List, Tuple

from ._pair_structures import (
    HsCamera,
    HsColmapCamera,
    HsColmapImage,
    HsColmapMatches,
    HsColmapOptions,
    HsColmapPosition,
    HsGeometry,
    HsMatchOptions,
    HsMatches,
    HsPose,
    HsVerifyOptions,
)
from ._structures import (
    HsArray,
    HsCudaFeatures,
    HsFeatures,
    HsFileOptions,
    HsImage,
    HsLoadOptions,
    HsOptionInfo,
    HsSource,
    HsStatistics,
    HsTiling,
)

DESCRIPTOR_LENGTH = 128
#: Size of the buffer for the reason of a failure, with the terminating zero.
MESSAGE_BYTES = 1024
#: Version of the interface that the structures follow, as major * 100 + minor; until 1.0 a minor version may change it.
_INTERFACE = 1

# Values of enumerations that the package itself distinguishes.
HS_OK = 0
HS_ERR_ARGUMENT = 1
HS_ERR_CAPACITY = 5
HS_ERR_CANCELLED = 9
HS_ERR_UNSUPPORTED = 8
HS_ERR_MEMORY = 32
HS_ERR_IO = 33
HS_ERR_NO_DEVICE = 35
HS_CLASS_ARGUMENT, HS_CLASS_RESOURCE, HS_CLASS_DEVICE = 1, 2, 3
HS_U8, HS_U16, HS_F32 = 0, 1, 2
HS_GRAY, HS_GRAY_ALPHA, HS_RGB, HS_BGR, HS_RGBA, HS_BGRA = range(6)
HS_SOURCE_PIXELS, HS_SOURCE_FILE, HS_SOURCE_ENCODED = 0, 1, 2
HS_DESCRIPTOR_U8, HS_DESCRIPTOR_F32, HS_DESCRIPTOR_NONE = 0, 1, 2

_IMAGE, _FEATURES = POINTER(HsImage), POINTER(HsFeatures)
_ARRAY, _CAMERA = POINTER(HsArray), POINTER(HsCamera)

#: Result and arguments of every function that the package calls. hs_options is a c_void_p, because the library itself
#: describes its fields.
_PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "hs_options_init_sized": (c_int, [c_void_p, c_size_t, c_int]),
    "hs_expert_options_init_sized": (c_int, [c_void_p, c_size_t, c_int]),
    "hs_option_describe": (POINTER(HsOptionInfo), [c_size_t]),
    "hs_create_explained": (c_int, [POINTER(c_void_p), c_void_p, c_void_p, c_size_t]),
    "hs_destroy": (None, [c_void_p]),
    "hs_workspace_query": (c_int, [c_void_p, c_int32, c_int32, POINTER(c_uint64), POINTER(c_uint64)]),
    "hs_workspace_query_rows": (c_int, [c_void_p, c_int32, c_int32, c_int, POINTER(c_uint64), POINTER(c_uint64)]),
    "hs_extract": (c_int, [c_void_p, _IMAGE, _IMAGE, _FEATURES]),
    "hs_extract_into": (c_int, [c_void_p, _IMAGE, _IMAGE, c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "hs_detect": (c_int, [c_void_p, _IMAGE, _IMAGE, _FEATURES]),
    "hs_describe": (c_int, [c_void_p, _IMAGE, c_void_p, c_size_t, _FEATURES, c_void_p]),
    "hs_features_free": (None, [_FEATURES]),
    "hs_submit": (c_int, [c_void_p, _IMAGE, _IMAGE]),
    "hs_wait": (c_int, [c_void_p, _FEATURES]),
    "hs_load_image": (c_int, [c_char_p, POINTER(HsLoadOptions), _IMAGE]),
    "hs_load_image_memory": (c_int, [c_char_p, c_size_t, POINTER(HsLoadOptions), _IMAGE]),
    "hs_extract_source": (c_int, [c_void_p, POINTER(HsSource), _FEATURES]),
    "hs_submit_source": (c_int, [c_void_p, POINTER(HsSource)]),
    "hs_image_free": (None, [_IMAGE]),
    "hs_format_of_name": (c_int, [c_char_p]),
    "hs_format_name": (c_char_p, [c_int]),
    "hs_format_ignores_exif": (c_int32, [c_int]),
    "hs_digest_features": (c_int, [_FEATURES, POINTER(c_uint64)]),
    "hs_render_scene": (c_int, [c_int32, c_int32, c_uint32, c_void_p, c_void_p, _IMAGE]),
    "hs_save_features": (c_int, [c_char_p, _FEATURES, POINTER(HsFileOptions)]),
    "hs_load_features": (c_int, [c_char_p, _FEATURES, POINTER(HsFileOptions)]),
    "hs_status_name": (c_char_p, [c_int]),
    "hs_status_string": (c_char_p, [c_int]),
    "hs_status_class_of": (c_int, [c_int]),
    "hs_last_error": (c_char_p, [c_void_p]),
    "hs_version_string": (c_char_p, []),
    "hs_version_number": (c_int32, []),
    "hs_method_version": (c_int32, []),
    "hs_method_version_affine": (c_int32, []),
    "hs_backend_report": (c_char_p, [c_void_p]),
    "hs_frame_way_name": (c_char_p, [c_int]),
    "hs_get_statistics": (c_int, [c_void_p, POINTER(HsStatistics)]),
    "hs_verify_options_init_sized": (c_int, [POINTER(HsVerifyOptions), c_size_t, c_int]),
    "hs_verify_points": (
        c_int,
        [c_void_p, c_void_p, c_size_t, POINTER(HsVerifyOptions), POINTER(c_uint8), POINTER(HsGeometry)],
    ),
    "hs_relative_pose": (
        c_int,
        [POINTER(c_double), _CAMERA, _CAMERA, c_void_p, c_void_p, c_size_t, c_void_p, POINTER(HsPose)],
    ),
    "hs_match_options_init_sized": (c_int, [POINTER(HsMatchOptions), c_size_t]),
    "hs_match": (c_int, [c_void_p, _FEATURES, _FEATURES, POINTER(HsMatchOptions), POINTER(HsMatches)]),
    "hs_features_to_original": (c_int, [_FEATURES, _IMAGE]),
    "hs_matches_free": (None, [POINTER(HsMatches)]),
    "hs_colmap_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(HsColmapOptions)]),
    "hs_colmap_commit": (c_int, [c_void_p]),
    "hs_colmap_close": (None, [c_void_p]),
    "hs_colmap_last_error": (c_char_p, [c_void_p]),
    "hs_colmap_camera_init_model": (c_int, [POINTER(HsColmapCamera), c_int32, c_int32, c_int32, c_double]),
    "hs_colmap_model_of_name": (c_int32, [c_char_p]),
    "hs_colmap_set_position": (c_int, [c_void_p, c_uint32, POINTER(HsColmapPosition)]),
    "hs_colmap_read_position": (c_int, [c_void_p, c_uint32, POINTER(HsColmapPosition)]),
    "hs_colmap_add_image": (c_int, [c_void_p, c_char_p, POINTER(HsColmapCamera), _FEATURES, POINTER(c_uint32)]),
    "hs_colmap_copy_image": (c_int, [c_void_p, c_void_p, c_uint32, POINTER(c_uint32)]),
    "hs_colmap_find_image": (c_int, [c_void_p, c_char_p, POINTER(HsColmapImage)]),
    "hs_colmap_next_image": (c_int, [c_void_p, c_int64, POINTER(HsColmapImage)]),
    "hs_colmap_read_features": (c_int, [c_void_p, c_uint32, _FEATURES]),
    "hs_colmap_add_matches": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(HsColmapMatches)]),
    "hs_colmap_count_matches": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(c_int64), POINTER(c_int64)]),
    "hs_reduce_sum": (c_int, [c_void_p, _ARRAY, c_void_p]),
    "hs_reduce_mean": (c_int, [c_void_p, _ARRAY, c_void_p]),
    "hs_reduce_min": (c_int, [c_void_p, _ARRAY, c_void_p]),
    "hs_reduce_max": (c_int, [c_void_p, _ARRAY, c_void_p]),
    "hs_tile_stats": (c_int, [c_void_p, _ARRAY, POINTER(HsTiling), c_void_p, c_size_t, POINTER(c_size_t)]),
    "hs_histogram256": (c_int, [c_void_p, _ARRAY, _ARRAY, c_void_p]),
    "hs_equalize": (c_int, [c_void_p, _ARRAY, c_void_p, c_size_t]),
    "hs_convolve1d": (c_int, [c_void_p, _ARRAY, c_void_p, c_size_t, c_int, c_void_p, c_size_t]),
    "hs_cuda_alloc_host": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "hs_cuda_free_host": (None, [c_void_p, c_void_p]),
    "hs_cuda_finish": (c_int, [c_void_p]),
    "hs_cuda_reduce_sum": (c_int, [c_void_p, _ARRAY, c_void_p, c_void_p]),
    "hs_cuda_reduce_mean": (c_int, [c_void_p, _ARRAY, c_void_p, c_void_p]),
    "hs_cuda_reduce_min": (c_int, [c_void_p, _ARRAY, c_void_p, c_void_p]),
    "hs_cuda_reduce_max": (c_int, [c_void_p, _ARRAY, c_void_p, c_void_p]),
    "hs_cuda_tile_stats": (
        c_int,
        [c_void_p, _ARRAY, POINTER(HsTiling), c_void_p, c_void_p, c_size_t, POINTER(c_size_t)],
    ),
    "hs_cuda_histogram256": (c_int, [c_void_p, _ARRAY, _ARRAY, c_void_p, c_void_p]),
    "hs_cuda_equalize": (c_int, [c_void_p, _ARRAY, c_void_p, c_void_p, c_size_t]),
    "hs_cuda_convolve1d": (
        c_int,
        [c_void_p, _ARRAY, c_void_p, c_size_t, c_int, c_void_p, c_void_p, c_size_t],
    ),
}

#: Functions that a build without CUDA lacks.
_CUDA_PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "hs_cuda_extract": (c_int, [c_void_p, _IMAGE, _IMAGE, c_void_p, _FEATURES]),
    "hs_cuda_extract_resident": (c_int, [c_void_p, _IMAGE, _IMAGE, c_void_p, POINTER(HsCudaFeatures)]),
}


def library_path() -> pathlib.Path:
    """Path of the library next to this file, or of the one that the environment variable HARTSIFT_LIBRARY names."""
    named = os.environ.get("HARTSIFT_LIBRARY")
    if named:
        return pathlib.Path(named)
    name = {"darwin": "libhartsift.dylib", "win32": "hartsift.dll"}.get(sys.platform, "libhartsift.so")
    return pathlib.Path(__file__).with_name(name)


def command_path() -> str:
    """The command: next to the library; of a wheel for Windows in a folder of scripts; of a system's packages on the PATH."""
    program = str(library_path().with_name("hartsift.exe" if sys.platform == "win32" else "hartsift"))
    if os.path.exists(program):
        return program
    if sys.platform == "win32":
        schemes = sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")
        scripts = (os.path.join(sysconfig.get_path("scripts", scheme), "hartsift.exe") for scheme in schemes)
        program = next(filter(os.path.exists, scripts), program)
        if os.path.exists(program):
            return program
    return shutil.which("hartsift") or program


def _bind(loaded: ctypes.CDLL, path: pathlib.Path) -> bool:
    """Sets the prototypes. Returns whether the library has the CUDA functions."""
    for name, (result, arguments) in _PROTOTYPES.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise ImportError(f"{path} has no function {name}: it belongs to another version of this package") from None
        function.restype, function.argtypes = result, arguments
    with_cuda = hasattr(loaded, "hs_cuda_extract")
    if with_cuda:
        for name, (result, arguments) in _CUDA_PROTOTYPES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    return with_cuda


def _check_version(path: pathlib.Path, number: int) -> None:
    """Refuses a library with another interface. Structures of options may differ in length. number: hs_version_number()."""
    if number // 100 != _INTERFACE:
        raise ImportError(
            f"{path} is hartsift {number // 10000}.{number // 100 % 100}, "
            f"this package is for {_INTERFACE // 100}.{_INTERFACE % 100}: install both of one version"
        )


def _load() -> Tuple[ctypes.CDLL, bool]:
    path = library_path()
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"the shared library of hartsift cannot be loaded: {error}") from error
    with_cuda = _bind(loaded, path)
    _check_version(path, loaded.hs_version_number())
    return loaded, with_cuda


#: Whether the library was built with CUDA. A GPU is searched for only when an extractor is created.
library, HAS_CUDA = _load()

_number = library.hs_version_number()
#: Version of the library, such as ``"0.1.0"``.
VERSION: str = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}"
#: Version of the arithmetic. Results are comparable byte for byte only within one version.
METHOD_VERSION: int = library.hs_method_version()
#: The same for features of the option ``affine``.
METHOD_VERSION_AFFINE: int = library.hs_method_version_affine()


def message_buffer() -> Any:
    """A buffer for the reason of a failure."""
    return ctypes.create_string_buffer(MESSAGE_BYTES)
