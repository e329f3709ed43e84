"""The layout of the library's structures, as ctypes sees them: matches, geometry, COLMAP's databases. See _structures.py."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict


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
        ("refine", c_int32),
        ("refine_matches", c_int32),
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
        ("plane_only", c_int32),
        ("tolerance", c_double),
        ("reserved", c_int32 * 6),
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
        ("camera_id", c_uint32),
        ("tentative", c_int32),
        ("reserved", c_int32 * 1),
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
        ("pose", c_void_p),
        ("watermark", c_int32),
        ("reserved", c_int32 * 5),
    ]


#: All structures above, by their C names; the test of layouts uses them.
STRUCTURES: Dict[str, Any] = {
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
}
