"""The rooms of the tree and their permitted dependencies: the table for check_layout.py (include lines) and
check_call_graph.py (calls between object files).

A room is a folder. A file belongs to its nearest listed ancestor folder. A room may use itself and the rooms named in
its entry, which precede it in the table, so there is no circle. pipeline/include is the public interface; a room of the
command may call every function declared there.
"""
import pathlib

_BASE = ("os", "pipeline/include", "pipeline/base")
_CPU = ("cpu/ref", "cpu/schedule", "cpu/simd", "cpu/primitives", "cpu")
_CONTEXT = _BASE + ("stages", *_CPU, "pipeline/context")
_KERNELS = ("os", "stages", "cuda/runtime", "cuda/prim")
_CUDA = ("cuda/runtime", "cuda/jpeg", "cuda/pyramid", "cuda/keypoints", "cuda/match", "cuda/primitives")
_DEVICE = _CONTEXT + ("pipeline/device",)
# Formats take sines and logarithms from stages/table_math.h, because the C library's differ between machines. Public
# functions of every room enter cpu/schedule/float_environment.h.
_FORMATS = _BASE + ("stages", *_CPU, "pipeline/formats/common")
_CLI = _BASE + (*_CPU, "pipeline/formats/common", "pipeline/formats/colmap", "pipeline/formats", "pipeline/image_io", "pipeline/cli/options",
                "pipeline/cli/common")

ROOMS = {
    # The system: files, threads, processes. The only room that includes headers of the system; check_layout.py.
    "os": (),
    "stages": (),
    # The reference stages, in plain C.
    "cpu/ref": ("stages",),
    # Threads, the work graph, and the division of stages into chunks; knows no instruction set.
    "cpu/schedule": ("os", "stages"),
    # One source for each stage, built once for each instruction set.
    "cpu/simd": ("os", "stages", "cpu/ref", "cpu/schedule"),
    # Sums, tiles, histograms and convolution, which form a separate library.
    "cpu/primitives": ("os", "stages", "cpu/schedule", "cpu/simd"),
    # The choice of variants.
    "cpu": ("os", "stages", "cpu/ref", "cpu/schedule", "cpu/simd", "cpu/primitives"),
    # The CUDA driver as C functions, launches, and diagnosis of a device; knows no stage.
    "cuda/runtime": ("os", "stages"),
    # Building blocks of kernels: reductions, histograms, compaction, copies to shared memory.
    "cuda/prim": ("stages",),
    # JPEG decoding and rotation on a GPU.
    "cuda/jpeg": _KERNELS,
    "cuda/pyramid": _KERNELS,
    "cuda/keypoints": _KERNELS + ("cuda/pyramid",),
    "cuda/match": _KERNELS,
    "cuda/primitives": _KERNELS,
    "pipeline/include": (),
    "pipeline/base": ("os", "pipeline/include"),
    # The content of a context, and the services for stages. This room knows no stage and no device.
    "pipeline/context": _BASE + ("stages", *_CPU),
    "pipeline/device": _CONTEXT + _CUDA,
    "pipeline/image_io": _BASE + ("stages", *_CPU),
    # Sources of pictures: reading files and decoding JPEGs, on the device or the host, before a frame.
    "pipeline/source": _CONTEXT + ("pipeline/image_io",),
    "pipeline/frame": _CONTEXT + ("pipeline/source",),
    "pipeline/matching": _CONTEXT,
    "pipeline/primitives": _CONTEXT,
    "pipeline/matching/geometry": _BASE + ("stages", *_CPU),
    # Matching and verification of many pairs of a collection, concurrently.
    "pipeline/matching/pairs": _CONTEXT + ("pipeline/matching", "pipeline/matching/geometry"),
    # Choice of the images to match; uses exact matching to assign descriptors to centres, and a run over candidate pairs.
    "pipeline/matching/retrieval": _CONTEXT + ("pipeline/matching", "pipeline/matching/pairs"),
    # hs_create and hs_destroy know everything that a context may own, and list the engines.
    "pipeline/lifetime": _DEVICE + ("pipeline/source", "pipeline/frame", "pipeline/matching/pairs"),
    # Many images: read by threads, extracted by one or several devices.
    "pipeline/batch": _CONTEXT + ("pipeline/source", "pipeline/frame", "pipeline/image_io", "pipeline/lifetime"),
    "pipeline/formats/common": _BASE,
    "pipeline/formats/colmap": _FORMATS,
    "pipeline/formats": _FORMATS + ("pipeline/formats/colmap",),
    # Uses only the option table of the context.
    "pipeline/cli/options": _BASE + ("pipeline/context",),
    # The list of GPUs.
    "pipeline/cli/common": _CLI + ("pipeline/lifetime",),
    "pipeline/cli/draw": _CLI,
    "pipeline/cli/bench": _CLI,
    "pipeline/cli/batch": _CLI,
    "pipeline/cli/pairs": _CLI,
    "pipeline/cli/merge": _CLI + ("pipeline/cli/batch",),
    # COLMAP's command line: batches of images, and matches of a database; the list of GPUs.
    "pipeline/cli/colmap": _CLI + ("pipeline/lifetime", "pipeline/cli/pairs"),
    "pipeline/cli": _CLI + ("stages", "pipeline/cli/draw", "pipeline/cli/bench", "pipeline/cli/batch", "pipeline/cli/pairs",
                            "pipeline/cli/merge", "pipeline/cli/colmap"),
}


def room_of(path):
    """Returns the room of a file; None for tests, benches, examples and bindings."""
    for folder in pathlib.PurePosixPath(path).parents:
        if str(folder) in ROOMS:
            return str(folder)
    return None


def table_faults():
    """Returns faults of the table itself: rooms that are named before their entry."""
    faults, known = [], set()
    for room, below in ROOMS.items():
        faults += [f"rooms.py: {room} may not use {other}, which is not above it in the table"
                   for other in below if other not in known and other != room]
        known.add(room)
    return faults
