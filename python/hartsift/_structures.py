"""The layout of the library's structures, as ctypes sees them: images, features, files, arrays. Options: _options.py.

These and _pair_structures.py follow the C headers field by field; python/tests/test_layouts.py compares sizes and
offsets with those of a C compiler.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_float, c_int, c_int16, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any, Dict


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


class HsOptionInfo(ctypes.Structure):
    """hs_option_info"""

    _fields_ = [
        ("name", c_char_p),
        ("command", c_char_p),
        ("help", c_char_p),
        ("values", c_char_p),
        ("type", c_int),
        ("group", c_int),
        ("of_expert", c_int32),
        ("offset", c_size_t),
        ("low", c_double),
        ("high", c_double),
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
        ("camera", c_uint64),
        ("reserved", c_int32 * 12),
    ]


class HsLoadNotes(ctypes.Structure):
    """hs_load_notes"""

    _fields_ = [
        ("damages", c_int32),
        ("is_low_range", c_int32),
        ("lowest", c_double),
        ("highest", c_double),
        ("range_low", c_float),
        ("range_high", c_float),
        ("damage", c_char * 256),
        ("low_range", c_char * 256),
        ("reserved", c_int32 * 16),
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
        ("strict", c_int32),
        ("unused", c_int32),
        ("notes", c_void_p),
        ("range_low", c_float),
        ("range_high", c_float),
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


class HsRowReader(ctypes.Structure):
    """hs_row_reader"""

    _fields_ = [("rewind", c_void_p), ("read", c_void_p), ("user", c_void_p)]


class HsSource(ctypes.Structure):
    """hs_source"""

    _fields_ = [
        ("image", HsImage),
        ("kind", c_int),
        ("refuse_damage", c_int32),
        ("path", c_char_p),
        ("bytes", c_void_p),
        ("size", c_size_t),
        ("rows", HsRowReader),
        ("load", POINTER(HsLoadOptions)),
        ("mask", POINTER(HsImage)),
        ("reserved", c_int32 * 8),
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
        ("way", c_int),
        ("way_reason", c_char_p),
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
        ("frames", c_void_p),
        ("reserved", c_int32 * 12),
    ]


#: All structures above, by their C names; the test of layouts uses them.
STRUCTURES: Dict[str, Any] = {
    "hs_image": HsImage,
    "hs_keypoint": HsKeypoint,
    "hs_origin": HsOrigin,
    "hs_row_reader": HsRowReader,
    "hs_source": HsSource,
    "hs_features": HsFeatures,
    "hs_option_info": HsOptionInfo,
    "hs_exif": HsExif,
    "hs_load_notes": HsLoadNotes,
    "hs_load_options": HsLoadOptions,
    "hs_file_options": HsFileOptions,
    "hs_statistics": HsStatistics,
    "hs_array": HsArray,
    "hs_tiling": HsTiling,
    "hs_tile": HsTile,
    "hs_cuda_features": HsCudaFeatures,
}
