"""The shared library as ctypes sees it: where it lies, the layout of its structures, the prototypes of its functions.

The structures follow hartsift.h and its parts field by field; python/tests/test_layouts.py compares sizes and offsets
with what a C compiler makes of the headers. ctypes.CDLL releases the GIL for the time of every call.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
from ctypes import (
    POINTER,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int16,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any, Dict, List, Tuple

DESCRIPTOR_LENGTH = 128
#: Room for the reason of a failure, with the terminating zero.
MESSAGE_BYTES = 1024
#: The interface that the structures below follow, as major * 100 + minor; until 1.0 a minor version may change it.
_INTERFACE = 1

# Values of the enumerations that the package itself tells apart.
HS_OK = 0
HS_ERR_ARGUMENT = 1
HS_ERR_CAPACITY = 5
HS_ERR_UNSUPPORTED = 8
HS_ERR_IO = 33
HS_CLASS_ARGUMENT, HS_CLASS_RESOURCE, HS_CLASS_DEVICE = 1, 2, 3
HS_U8, HS_U16, HS_F32 = 0, 1, 2
HS_GRAY, HS_GRAY_ALPHA, HS_RGB, HS_BGR, HS_RGBA, HS_BGRA = range(6)
HS_DESCRIPTOR_U8, HS_DESCRIPTOR_F32, HS_DESCRIPTOR_NONE = 0, 1, 2


class HsImage(ctypes.Structure):
    """hs_image"""

    _fields_ = [
        ("data", c_void_p),
        ("width", c_int32),
        ("height", c_int32),
        ("stride_bytes", c_size_t),
        ("type", c_int),
        ("layout", c_int),
        ("range_low", c_float),
        ("range_high", c_float),
        ("memory", c_void_p),
        ("allocator", c_void_p),
        ("exif_orientation", c_int32),
        ("original_width", c_int32),
        ("original_height", c_int32),
        ("reserved", c_int32 * 5),
    ]


class HsKeypoint(ctypes.Structure):
    """hs_keypoint"""

    _fields_ = [
        ("x", c_float),
        ("y", c_float),
        ("sigma", c_float),
        ("orientation", c_float),
        ("response", c_float),
        ("octave", c_int16),
        ("level", c_int16),
    ]


class HsOrigin(ctypes.Structure):
    """hs_origin"""

    _fields_ = [
        ("method_version", c_int32),
        ("profile", c_int),
        ("norm", c_int),
        ("layout", c_int),
        ("exif_orientation", c_int32),
        ("dsp", c_int32),
        ("reserved", c_int32 * 2),
    ]


class HsFeatures(ctypes.Structure):
    """hs_features"""

    _fields_ = [
        ("count", c_size_t),
        ("keypoints", c_void_p),
        ("descriptors", c_void_p),
        ("descriptor_type", c_int),
        ("image_width", c_int32),
        ("image_height", c_int32),
        ("origin", HsOrigin),
        ("capacity", c_size_t),
        ("descriptor_capacity_bytes", c_size_t),
        ("allocator", c_void_p),
        ("frames", c_void_p),
        ("frame_capacity", c_size_t),
        ("reserved", c_int32 * (16 - 2 * ctypes.sizeof(c_void_p) // 4)),
    ]


class HsOptions(ctypes.Structure):
    """hs_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("profile", c_int),
        ("threads", c_int32),
        ("device", c_int),
        ("device_index", c_int32),
        ("split", c_int32),
        ("in_flight", c_int32),
        ("images_per_launch", c_int32),
        ("max_pixels", c_uint64),
        ("max_memory_bytes", c_uint64),
        ("allocator", c_void_p),
        ("max_features", c_int32),
        ("selection", c_int),
        ("region_x", c_int32),
        ("region_y", c_int32),
        ("region_width", c_int32),
        ("region_height", c_int32),
        ("grid_columns", c_int32),
        ("grid_rows", c_int32),
        ("equalize", c_int32),
        ("first_octave", c_int32),
        ("octaves", c_int32),
        ("scales", c_int32),
        ("upsample", c_int),
        ("sigma", c_float),
        ("input_blur", c_float),
        ("border", c_int32),
        ("contrast", c_float),
        ("settle", c_float),
        ("edge", c_float),
        ("max_orientations", c_int32),
        ("upright", c_int32),
        ("norm", c_int),
        ("layout", c_int),
        ("descriptor", c_int),
        ("expert", c_void_p),
        ("dsp", c_int32),
        ("dsp_sizes", c_int32),
        ("dsp_smallest", c_float),
        ("dsp_largest", c_float),
        ("decoder", c_int),
        ("affine", c_int32),
    ]


class HsExpertOptions(ctypes.Structure):
    """hs_expert_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("octave_rule", c_int),
        ("blur_radius_rule", c_int),
        ("border_rule", c_int),
        ("candidate_rule", c_int),
        ("refine_rule", c_int),
        ("orientation_rule", c_int),
        ("descriptor_rule", c_int),
        ("variant", c_char_p),
    ]


class HsExif(ctypes.Structure):
    """hs_exif"""

    _fields_ = [
        ("focal_length", c_double),
        ("latitude", c_double),
        ("longitude", c_double),
        ("altitude", c_double),
        ("has_place", c_int32),
        ("has_altitude", c_int32),
        ("reserved", c_int32 * 14),
    ]


class HsLoadOptions(ctypes.Structure):
    """hs_load_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("max_pixels", c_uint64),
        ("max_memory_bytes", c_uint64),
        ("ignore_exif", c_int32),
        ("keep_colour", c_int32),
        ("jpeg_scale", c_int32),
        ("allocator", c_void_p),
        ("message", c_void_p),
        ("message_bytes", c_size_t),
        ("exif", c_void_p),
        ("max_image_size", c_int64),
        ("keep_encoded", c_int32),
        ("only_files", c_int32),
    ]


class HsFileOptions(ctypes.Structure):
    """hs_file_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("format", c_int),
        ("layout", c_int),
        ("image_name", c_char_p),
        ("max_features", c_uint64),
        ("allocator", c_void_p),
        ("message", c_void_p),
        ("message_bytes", c_size_t),
        ("max_memory_bytes", c_uint64),
        ("only_files", c_int32),
        ("unused", c_int32),
    ]


class HsStatistics(ctypes.Structure):
    """hs_statistics"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("frames", c_uint64),
        ("regrown_frames", c_uint64),
        ("candidates", c_uint64),
        ("keypoints", c_uint64),
        ("features", c_uint64),
        ("workspace_bytes", c_uint64),
        ("device_bytes", c_uint64),
    ]


class HsCamera(ctypes.Structure):
    """hs_camera"""

    _fields_ = [("fx", c_double), ("fy", c_double), ("cx", c_double), ("cy", c_double)]


class HsVerifyOptions(ctypes.Structure):
    """hs_verify_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("model", c_int),
        ("tolerance", c_double),
        ("confidence", c_double),
        ("min_iterations", c_int32),
        ("max_iterations", c_int32),
        ("min_inliers", c_int32),
        ("check_plane", c_int32),
        ("seed", c_uint64),
        ("camera_a", HsCamera),
        ("camera_b", HsCamera),
        ("allocator", c_void_p),
        ("message", c_void_p),
        ("message_bytes", c_size_t),
    ]


class HsGeometry(ctypes.Structure):
    """hs_geometry"""

    _fields_ = [
        ("model", c_int),
        ("found", c_int32),
        ("matrix", c_double * 9),
        ("inlier_count", c_size_t),
        ("rms_error", c_double),
        ("plane_inliers", c_size_t),
        ("iterations", c_int32),
        ("reserved", c_int32 * 9),
    ]


class HsPose(ctypes.Structure):
    """hs_pose"""

    _fields_ = [
        ("rotation", c_double * 9),
        ("translation", c_double * 3),
        ("in_front", c_size_t),
        ("used", c_size_t),
        ("reserved", c_int32 * 8),
    ]


class HsMatchOptions(ctypes.Structure):
    """hs_match_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("ratio", c_double),
        ("max_distance", c_double),
        ("mutual", c_int32),
        ("guide", c_int),
        ("guide_matrix", c_double * 9),
        ("guide_tolerance", c_double),
    ]


class HsMatches(ctypes.Structure):
    """hs_matches"""

    _fields_ = [
        ("count", c_size_t),
        ("pairs", c_void_p),
        ("capacity", c_size_t),
        ("allocator", c_void_p),
        ("reserved", c_int32 * 8),
    ]


class HsColmapOptions(ctypes.Structure):
    """hs_colmap_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("read_only", c_int32),
        ("replace", c_int32),
        ("share_cameras", c_int32),
        ("wait_ms", c_int32),
        ("layout", c_int),
        ("max_features", c_uint64),
        ("allocator", c_void_p),
        ("message", c_void_p),
        ("message_bytes", c_size_t),
    ]


class HsColmapCamera(ctypes.Structure):
    """hs_colmap_camera"""

    _fields_ = [
        ("model", c_int32),
        ("width", c_int32),
        ("height", c_int32),
        ("prior_focal_length", c_int32),
        ("parameter_count", c_int32),
        ("reserved", c_int32 * 3),
        ("parameters", c_double * 16),
    ]


class HsColmapImage(ctypes.Structure):
    """hs_colmap_image"""

    _fields_ = [
        ("found", c_int32),
        ("image_id", c_uint32),
        ("camera_id", c_uint32),
        ("reserved", c_int32 * 9),
        ("name", c_char_p),
        ("features", c_int64),
        ("camera", HsColmapCamera),
    ]


class HsColmapPosition(ctypes.Structure):
    """hs_colmap_position"""

    _fields_ = [
        ("found", c_int32),
        ("is_cartesian", c_int32),
        ("coordinates", c_double * 3),
        ("reserved", c_int32 * 8),
    ]


class HsColmapMatches(ctypes.Structure):
    """hs_colmap_matches"""

    _fields_ = [
        ("pairs", c_void_p),
        ("pair_stride_bytes", c_size_t),
        ("count", c_size_t),
        ("inliers", c_void_p),
        ("fundamental", c_void_p),
        ("essential", c_void_p),
        ("homography", c_void_p),
        ("reserved", c_int32 * 8),
    ]


class HsArray(ctypes.Structure):
    """hs_array"""

    _fields_ = [
        ("data", c_void_p),
        ("width", c_size_t),
        ("height", c_size_t),
        ("stride_bytes", c_size_t),
        ("type", c_int),
    ]


class HsTiling(ctypes.Structure):
    """hs_tiling"""

    _fields_ = [("width", c_size_t), ("height", c_size_t), ("threshold", c_double)]


class HsTile(ctypes.Structure):
    """hs_tile"""

    _fields_ = [("sum", c_double), ("mean", c_double), ("min", c_double), ("max", c_double), ("above", c_uint64)]


class HsCudaFeatures(ctypes.Structure):
    """hs_cuda_features"""

    _fields_ = [
        ("count", c_size_t),
        ("keypoints", c_void_p),
        ("descriptors", c_void_p),
        ("descriptor_type", c_int),
        ("image_width", c_int32),
        ("image_height", c_int32),
        ("origin", HsOrigin),
        ("reserved", c_int32 * 15),
    ]


#: Every structure above by its C name; the test of the layouts goes through these.
STRUCTURES: Dict[str, Any] = {
    "hs_image": HsImage,
    "hs_keypoint": HsKeypoint,
    "hs_origin": HsOrigin,
    "hs_features": HsFeatures,
    "hs_options": HsOptions,
    "hs_expert_options": HsExpertOptions,
    "hs_exif": HsExif,
    "hs_load_options": HsLoadOptions,
    "hs_file_options": HsFileOptions,
    "hs_statistics": HsStatistics,
    "hs_camera": HsCamera,
    "hs_verify_options": HsVerifyOptions,
    "hs_geometry": HsGeometry,
    "hs_pose": HsPose,
    "hs_match_options": HsMatchOptions,
    "hs_matches": HsMatches,
    "hs_colmap_options": HsColmapOptions,
    "hs_colmap_camera": HsColmapCamera,
    "hs_colmap_image": HsColmapImage,
    "hs_colmap_position": HsColmapPosition,
    "hs_colmap_matches": HsColmapMatches,
    "hs_array": HsArray,
    "hs_tiling": HsTiling,
    "hs_tile": HsTile,
    "hs_cuda_features": HsCudaFeatures,
}

_IMAGE, _FEATURES, _OPTIONS = POINTER(HsImage), POINTER(HsFeatures), POINTER(HsOptions)
_ARRAY, _CAMERA = POINTER(HsArray), POINTER(HsCamera)

#: Result and arguments of every function that the package calls.
_PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "hs_options_init_sized": (c_int, [_OPTIONS, c_size_t, c_int]),
    "hs_expert_options_init_sized": (c_int, [POINTER(HsExpertOptions), c_size_t, c_int]),
    "hs_create_explained": (c_int, [POINTER(c_void_p), _OPTIONS, c_void_p, c_size_t]),
    "hs_destroy": (None, [c_void_p]),
    "hs_workspace_query": (c_int, [_OPTIONS, c_int32, c_int32, POINTER(c_uint64), POINTER(c_uint64)]),
    "hs_extract": (c_int, [c_void_p, _IMAGE, _IMAGE, _FEATURES]),
    "hs_extract_into": (c_int, [c_void_p, _IMAGE, _IMAGE, c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "hs_detect": (c_int, [c_void_p, _IMAGE, _IMAGE, _FEATURES]),
    "hs_describe": (c_int, [c_void_p, _IMAGE, c_void_p, c_size_t, _FEATURES, c_void_p]),
    "hs_features_free": (None, [_FEATURES]),
    "hs_submit": (c_int, [c_void_p, _IMAGE, _IMAGE]),
    "hs_wait": (c_int, [c_void_p, _FEATURES]),
    "hs_load_image": (c_int, [c_char_p, POINTER(HsLoadOptions), _IMAGE]),
    "hs_load_image_memory": (c_int, [c_char_p, c_size_t, POINTER(HsLoadOptions), _IMAGE]),
    "hs_extract_file": (c_int, [c_void_p, c_char_p, POINTER(HsLoadOptions), _IMAGE, _FEATURES]),
    "hs_extract_encoded": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(HsLoadOptions), _IMAGE, _FEATURES]),
    "hs_submit_file": (c_int, [c_void_p, c_char_p, POINTER(HsLoadOptions), _IMAGE]),
    "hs_submit_encoded": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(HsLoadOptions), _IMAGE]),
    "hs_image_free": (None, [_IMAGE]),
    "hs_format_of_name": (c_int, [c_char_p]),
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
    "hs_backend_report": (c_char_p, [c_void_p]),
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
    "hs_reduce_sum": (c_int, [c_void_p, _ARRAY, POINTER(c_double)]),
    "hs_reduce_mean": (c_int, [c_void_p, _ARRAY, POINTER(c_double)]),
    "hs_reduce_min": (c_int, [c_void_p, _ARRAY, POINTER(c_double)]),
    "hs_reduce_max": (c_int, [c_void_p, _ARRAY, POINTER(c_double)]),
    "hs_tile_stats": (c_int, [c_void_p, _ARRAY, POINTER(HsTiling), c_void_p, c_size_t, POINTER(c_size_t)]),
    "hs_histogram256": (c_int, [c_void_p, _ARRAY, _ARRAY, c_void_p]),
    "hs_equalize": (c_int, [c_void_p, _ARRAY, c_void_p, c_size_t]),
    "hs_convolve1d": (c_int, [c_void_p, _ARRAY, c_void_p, c_size_t, c_int, c_void_p, c_size_t]),
}

#: Of these a build without CUDA has none.
_CUDA_PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "hs_cuda_extract": (c_int, [c_void_p, _IMAGE, _IMAGE, c_void_p, _FEATURES]),
    "hs_cuda_extract_resident": (c_int, [c_void_p, _IMAGE, _IMAGE, c_void_p, POINTER(HsCudaFeatures)]),
}


def library_path() -> pathlib.Path:
    """The library beside this file, or the one that the environment variable HARTSIFT_LIBRARY names."""
    named = os.environ.get("HARTSIFT_LIBRARY")
    if named:
        return pathlib.Path(named)
    name = {"darwin": "libhartsift.dylib", "win32": "hartsift.dll"}.get(sys.platform, "libhartsift.so")
    return pathlib.Path(__file__).with_name(name)


def _bind(loaded: ctypes.CDLL, path: pathlib.Path) -> bool:
    """Sets the prototypes; says whether the CUDA functions are there."""
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
    """Structures of options may differ in length, so only another interface is refused. number: hs_version_number()."""
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


#: Whether the library was built with its CUDA part; whether there is a GPU is seen when an extractor is made.
library, HAS_CUDA = _load()

_number = library.hs_version_number()
#: Of the library, such as ``"0.1.0"``.
VERSION: str = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}"
#: Of the arithmetic. Results are comparable byte for byte only within one value.
METHOD_VERSION: int = library.hs_method_version()


def message_room() -> Any:
    """A buffer that the library may write the reason of a failure to."""
    return ctypes.create_string_buffer(MESSAGE_BYTES)
