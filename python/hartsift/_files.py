"""Feature files: every format of the library, and hloc's HDF5."""

from __future__ import annotations

import ctypes
import importlib
import os
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from . import _library
from ._errors import ArgumentError, check
from ._features import Features, PathLike, file_options, fill_features, refuse_turned
from ._images import path_bytes
from ._library import library

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._hints import FileFormat


def read_features(
    path: PathLike,
    format: "FileFormat" = "auto",
    *,
    image_name: Optional[str] = None,  # noqa: A002
    max_features: int = 0,
    max_memory_bytes: int = 0,
) -> Features:
    """Reads a feature file that hartsift or the original tool wrote.

    Args:
        path: the file.
        format: one of ``hartsift.FORMATS``; ``"auto"``: by ending and content.
        image_name: for a COLMAP database: name of the image; None: the only one.
        max_features: refuse files that claim more features; 0: 2**27.
        max_memory_bytes: refuse files that need more memory; 0: half the memory that this process may hold.
    """
    message = _library.message_buffer()
    options = file_options(format, message)
    options.image_name = None if image_name is None else image_name.encode("utf-8")
    options.max_features = max_features
    options.max_memory_bytes = max_memory_bytes
    name = path_bytes(path)
    return fill_features(
        lambda features: library.hs_load_features(name, features, ctypes.byref(options)),
        lambda status: check(status, message.value),
        "ubc",
    )


def _unit_rows(descriptors: "npt.NDArray[Any]") -> "npt.NDArray[np.float32]":
    rows = descriptors.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(norms > 0, norms, np.float32(1))
    return rows


def write_hdf5(file: Any, name: str, features: Features, *, exif: bool = False) -> None:
    """Adds an image's features to an HDF5 file in the layout of hloc's feature files.

    The group ``name`` gets ``keypoints`` float32 [N, 2] (centre of the top-left pixel at 0, 0), ``scales``, ``oris``
    (degrees) and ``scores`` [N], ``descriptors`` float32 [128, N] of unit length, and ``image_size`` [2]. An existing
    group with that name is replaced. Needs the package h5py.

    Args:
        file: path of the file, which is created if it does not exist, or an open ``h5py.File``.
        name: name of the image; slashes in it make nested groups, as hloc expects.
        features: must have descriptors in the layout "ubc" (hloc compares only features of the same kind).
        exif: hloc reads JPEGs as stored, so features of a JPEG that was rotated by its EXIF orientation are refused,
            unless this is True.
    """
    if features.descriptors is None:
        raise ArgumentError("features without descriptors cannot be matched, so they are not written for hloc")
    refuse_turned(features, exif, "hloc")
    if isinstance(file, (str, os.PathLike)):
        # Imported dynamically: the package is optional, and not every release has type hints.
        try:
            h5py = importlib.import_module("h5py")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{error}: pip install h5py", name=error.name) from error
        with h5py.File(os.fspath(file), "a") as opened:
            write_hdf5(opened, name, features, exif=exif)
        return
    if name in file:
        del file[name]
    group = file.create_group(name)
    group.create_dataset("keypoints", data=features.points)
    group.create_dataset("scales", data=features.sigmas)
    group.create_dataset("oris", data=np.rad2deg(features.orientations))
    group.create_dataset("scores", data=features.responses)
    group.create_dataset("descriptors", data=_unit_rows(features.descriptors).T)
    group.create_dataset("image_size", data=np.array(features.image_size))
