"""The rooms of the tree and what each may know: the one table behind check_layout.py (include lines) and check_call_graph.py
(calls between object files).

A room is a folder; a file belongs to the nearest room above it, so a folder that is not listed is part of the one it
lies in. A room may use itself and those named, each of which stands above it in the table: so there is no circle.
pipeline/include is the public interface; a room of the command may call every function declared there.
"""
import pathlib

_BASE = ("pipeline/include", "pipeline/base")
_CPU = ("cpu/ref", "cpu/schedule", "cpu/simd", "cpu/primitives", "cpu")
_CONTEXT = _BASE + ("stages", *_CPU, "pipeline/context")
_KERNELS = ("stages", "cuda/runtime", "cuda/prim")
_CUDA = ("cuda/runtime", "cuda/jpeg", "cuda/pyramid", "cuda/keypoints", "cuda/match", "cuda/primitives")
_DEVICE = _CONTEXT + ("pipeline/device",)
# Formats take their sines and logarithms from stages/table_math.h: the C library's differ from machine to machine.
# Public functions of every room enter cpu/schedule/float_environment.h.
_FORMATS = _BASE + ("stages", *_CPU, "pipeline/formats/common")
_CLI = _BASE + (*_CPU, "pipeline/formats/common", "pipeline/formats/colmap", "pipeline/formats", "pipeline/image_io", "pipeline/cli/options",
                "pipeline/cli/common")

ROOMS = {
    "stages": (),
    # Plain C, the oracle.
    "cpu/ref": ("stages",),
    # Threads, the graph of jobs, and how stages are divided into chunks; knows no instruction set.
    "cpu/schedule": ("stages",),
    # One source for each stage, built once for each instruction set.
    "cpu/simd": ("stages", "cpu/ref", "cpu/schedule"),
    # Sums, tiles, histogram, convolution: a library of their own.
    "cpu/primitives": ("stages", "cpu/schedule", "cpu/simd"),
    # The choice of variants.
    "cpu": ("stages", "cpu/ref", "cpu/schedule", "cpu/simd", "cpu/primitives"),
    # The CUDA runtime behind C functions, launches, and what is wrong with a device; knows no stage.
    "cuda/runtime": ("stages",),
    # What kernels are made of: reductions, histograms, compaction, copies to shared memory.
    "cuda/prim": ("stages",),
    # JPEGs decoded on a GPU, and turned there.
    "cuda/jpeg": _KERNELS,
    "cuda/pyramid": _KERNELS,
    "cuda/keypoints": _KERNELS + ("cuda/pyramid",),
    "cuda/match": _KERNELS,
    "cuda/primitives": _KERNELS,
    "pipeline/include": (),
    "pipeline/base": ("pipeline/include",),
    # What a context holds and what a stage may ask of it; knows no stage and no device.
    "pipeline/context": _BASE + ("stages", *_CPU),
    "pipeline/device": _CONTEXT + _CUDA,
    "pipeline/image_io": _BASE + ("stages", *_CPU),
    # Where pictures come from: read, and JPEGs decoded, on the device or here, in front of a frame.
    "pipeline/source": _CONTEXT + ("pipeline/image_io",),
    "pipeline/frame": _CONTEXT + ("pipeline/source",),
    "pipeline/matching": _CONTEXT,
    "pipeline/primitives": _CONTEXT,
    # Which images to match; the exact matching assigns descriptors to centres.
    "pipeline/retrieval": _CONTEXT + ("pipeline/matching",),
    "pipeline/geometry": _BASE + ("stages", *_CPU),
    # Many pairs of a collection, matched and verified beside each other.
    "pipeline/pairs": _CONTEXT + ("pipeline/matching", "pipeline/geometry"),
    # hs_create and hs_destroy see all that a context may hold, and list the engines.
    "pipeline/lifetime": _DEVICE + ("pipeline/source", "pipeline/frame", "pipeline/pairs"),
    # Many images: read by threads, extracted by one or several devices.
    "pipeline/batch": _CONTEXT + ("pipeline/source", "pipeline/frame", "pipeline/image_io", "pipeline/lifetime"),
    "pipeline/formats/common": _BASE,
    "pipeline/formats/colmap": _FORMATS,
    "pipeline/formats": _FORMATS + ("pipeline/formats/colmap",),
    # Of the context only its table of options.
    "pipeline/cli/options": _BASE + ("pipeline/context",),
    "pipeline/cli/common": _CLI,
    "pipeline/cli/draw": _CLI,
    "pipeline/cli/bench": _CLI,
    # Which GPUs there are.
    "pipeline/cli/batch": _CLI + ("pipeline/lifetime",),
    "pipeline/cli/pairs": _CLI,
    "pipeline/cli/merge": _CLI + ("pipeline/cli/batch",),
    "pipeline/cli": _CLI + ("pipeline/cli/draw", "pipeline/cli/bench", "pipeline/cli/batch", "pipeline/cli/pairs",
                            "pipeline/cli/merge"),
}


def room_of(path):
    """The room that a file of the tree belongs to, None for tests, benches, examples and bindings."""
    for folder in pathlib.PurePosixPath(path).parents:
        if str(folder) in ROOMS:
            return str(folder)
    return None


def table_faults():
    """What is wrong with the table itself: a room named before it is built."""
    faults, known = [], set()
    for room, below in ROOMS.items():
        faults += [f"rooms.py: {room} may not use {other}, which is not above it in the table"
                   for other in below if other not in known and other != room]
        known.add(room)
    return faults
