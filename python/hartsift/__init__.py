"""Exact SIFT features (Lowe, IJCV 2004), the same bytes on every machine.

>>> import hartsift
>>> features = hartsift.extract("photo.jpg", max_features=2000)      # or a NumPy array
>>> features.keypoints, features.descriptors                         # float32 [N, 4], uint8 [N, 128]
>>> matches = hartsift.match(features, hartsift.extract("other.jpg"))
>>> sift = hartsift.SIFT_create()                                    # replaces cv2.SIFT_create()

Everything runs in the shared library of the package, without the GIL; results view the memory that it wrote.
"""

import signal as _signal
import sys as _sys

# sys.argv[0] is "-m" while the package of a program is imported. Ctrl-C then ends the program without a traceback.
_is_program = _sys.argv[:1] == ["-m"] and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _is_program:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from ._batch import Batch, BatchProgress, BatchResult
from ._bfmatcher import BFMatcher, BFMatcher_create
from ._calls import extract, extract_batch, extract_many, workspace_bytes
from ._colmap import ColmapCamera, ColmapDatabase, ColmapImage, ColmapPosition, colmap_camera
from ._context import Statistics
from ._errors import ArgumentError, ArrayTypeError, DamagedFileError, DeviceError, Error, FileError, OutOfMemoryError
from ._extractor import Extractor
from ._features import FORMATS, KEYPOINT_DTYPE, Features, Origin, write_features
from ._files import read_features, write_hdf5
from ._images import load_image, render_scene
from ._judging import PairVerdict, judge_pairs
from ._library import HAS_CUDA, METHOD_VERSION, METHOD_VERSION_AFFINE
from ._library import VERSION as __version__
from ._matching import MATCH_DTYPE, Geometry, Matches, Pose, VerifyOptions, match, relative_pose, verify
from ._neighbours import NEIGHBOUR_DTYPE, NO_FEATURE, NeighbourLists, find_k_nearest, find_within
from ._hints import Options
from ._patches import extract_patches
from ._primitives import (
    TILE_DTYPE,
    convolve1d,
    equalize,
    histogram256,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
    tile_stats,
)
from ._reconstruct import Reconstruction, ReconstructOptions, reconstruct
from ._resident import DeviceFeatures, DeviceMemory
from ._pairs import PairMatches, match_many, matching_pairs, shortlist_length
from ._retrieval import Retrieval, blend_similar, earth_places, nearby_pairs, sequential_pairs, similar_pairs
from ._sift import CV_KEYPOINT_DTYPE, SIFT, CvKeypoint, SIFT_create, to_cv2, to_cv_records

if _is_program:
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)

__all__ = [
    "ArgumentError",
    "ArrayTypeError",
    "BFMatcher",
    "BFMatcher_create",
    "Batch",
    "BatchProgress",
    "BatchResult",
    "CV_KEYPOINT_DTYPE",
    "ColmapCamera",
    "ColmapDatabase",
    "ColmapImage",
    "ColmapPosition",
    "CvKeypoint",
    "DamagedFileError",
    "DeviceError",
    "DeviceFeatures",
    "DeviceMemory",
    "Error",
    "Extractor",
    "FORMATS",
    "Features",
    "FileError",
    "Geometry",
    "HAS_CUDA",
    "KEYPOINT_DTYPE",
    "MATCH_DTYPE",
    "METHOD_VERSION",
    "METHOD_VERSION_AFFINE",
    "Matches",
    "NEIGHBOUR_DTYPE",
    "NO_FEATURE",
    "NeighbourLists",
    "Options",
    "Origin",
    "OutOfMemoryError",
    "PairMatches",
    "PairVerdict",
    "Pose",
    "ReconstructOptions",
    "Reconstruction",
    "Retrieval",
    "SIFT",
    "SIFT_create",
    "Statistics",
    "TILE_DTYPE",
    "VerifyOptions",
    "__version__",
    "blend_similar",
    "colmap_camera",
    "convolve1d",
    "earth_places",
    "equalize",
    "extract",
    "extract_batch",
    "extract_many",
    "extract_patches",
    "find_k_nearest",
    "find_within",
    "histogram256",
    "judge_pairs",
    "load_image",
    "match",
    "match_many",
    "matching_pairs",
    "nearby_pairs",
    "read_features",
    "reconstruct",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "relative_pose",
    "render_scene",
    "sequential_pairs",
    "shortlist_length",
    "similar_pairs",
    "tile_stats",
    "to_cv2",
    "to_cv_records",
    "verify",
    "workspace_bytes",
    "write_features",
    "write_hdf5",
]
