"""The parameters of ``hartsift.SIFT`` in OpenCV's FileStorage files, byte for byte as ``cv2.SIFT`` writes them."""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

from ._errors import ArgumentError, FileError

#: Name of OpenCV's class in files.
NAME = "Feature2D.SIFT"


def _cv2_for_files() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise ImportError("files of parameters need the package opencv-python") from error
    return cv2


def write_parameters(parameters: Dict[str, Any], target: Any, name: Optional[str]) -> None:
    """Writes the parameters to a file by its name, or to an open FileStorage as a map called ``name``."""
    cv2 = _cv2_for_files()
    if isinstance(target, (str, os.PathLike)):
        storage = cv2.FileStorage(os.fspath(target), cv2.FILE_STORAGE_WRITE)
        if not storage.isOpened():
            raise FileError(f"{os.fspath(target)}: cannot be written")
        _write_map(storage, parameters)
        storage.release()
        return
    if not name:
        raise ArgumentError("name is missing: expected the name of the map in the FileStorage")
    target.startWriteStruct(name, cv2.FILE_NODE_MAP)
    _write_map(target, parameters)
    target.endWriteStruct()


def _write_map(storage: Any, parameters: Dict[str, Any]) -> None:
    storage.write("name", NAME)
    for name, value in parameters.items():
        if name != "enable_precise_upscale" or value:  # OpenCV does not know this parameter, and ignores it
            storage.write(name, value)


def read_parameters(parameters: Dict[str, Any], source: Any) -> Dict[str, Any]:
    """The parameters with the values from a file, given by its name, or from a ``cv2.FileNode``."""
    cv2 = _cv2_for_files()
    if not isinstance(source, (str, os.PathLike)):
        return _read_map(parameters, source)
    try:
        storage = cv2.FileStorage(os.fspath(source), cv2.FILE_STORAGE_READ)
        root = storage.root() if storage.isOpened() else None
    except (cv2.error, SystemError) as error:  # which one depends on OpenCV's version
        raise FileError(f"{os.fspath(source)}: is no FileStorage: expected YAML, XML or JSON as write makes it") from error
    if root is None:
        raise FileError(f"{os.fspath(source)}: cannot be read")
    if root.isSeq():
        raise FileError(f"{os.fspath(source)}: is a list, expected parameters with names")
    found = _read_map(parameters, root)
    storage.release()
    return found


def _read_map(parameters: Dict[str, Any], node: Any) -> Dict[str, Any]:
    return {name: _number(node, name, default) for name, default in parameters.items()}


def _number(node: Any, name: str, default: Any) -> Any:
    child = node.getNode(name)
    if child.empty():
        return default
    if not (child.isInt() or child.isReal()):
        raise ArgumentError(f"{name} is no number in the file")
    value = child.real()
    if isinstance(default, int) and not value.is_integer():
        raise ArgumentError(f"{name} is {value} in the file, expected a whole number")
    return type(default)(value)
