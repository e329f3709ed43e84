"""Statuses of the library as exceptions."""

from __future__ import annotations

import re
from typing import Any, Dict, Mapping, Set, Tuple, Type

from . import _library, _pair_structures, _structures
from ._library import library


class Error(Exception):
    """A failure that the library reported.

    Attributes:
        status: number of the ``hs_status``; 0 if the package itself detected the error.
        name: name of the status, such as ``"HS_ERR_OPTION"``.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.name: str = library.hs_status_name(status).decode("ascii") if status else ""

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> Tuple[Type["Error"], Tuple[str, int]]:
        return type(self), (self.message, self.status)


class ArgumentError(Error, ValueError):
    """A wrong argument: an option, an image, the content of a file. The called object stays usable."""


class ArrayTypeError(Error, TypeError):
    """An argument, or the elements of an array, have an unsupported type."""


class FileError(Error, OSError):
    """A file cannot be opened, read, written or renamed."""


class DamagedFileError(FileError, ArgumentError):
    """A file is empty, damaged, or of an unknown kind. ``except FileError`` catches it too."""


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed. The object is usable again once memory is available."""


class DeviceError(Error, RuntimeError):
    """A device is not usable, or has failed. After a failure of the device the next call creates a new context."""


_BY_NAME: Dict[str, Type[Error]] = {"HS_ERR_MEMORY": OutOfMemoryError, "HS_ERR_IO": FileError, "HS_ERR_FORMAT": DamagedFileError}


# Names of arguments in the library's messages, which differ from the package's: "match options.ratio is 3",
# "HS_DECODER_GPU", "with the option replace (--replace)".
_FIELD = re.compile(r"(?<![\w/.-])(?:(?:match|verify|pairs|patch) )?(?:hs_\w+_)?options\.([a-z]\w*)")
_ENUMERATOR = re.compile(r"\bHS_(?:DECODER|DESCRIPTOR|DEVICE|LAYOUT|NORM|PROFILE|RULE|UPSAMPLE)_([A-Z0-9_]+)")
_SWITCH = re.compile(r"\bthe option (\w+) \(--[\w-]+\)")


_field_names: Set[str] = set()


def know_fields(structures: Mapping[str, Any]) -> None:
    """Registers the fields of these structures (by their C names) for ``in_python``."""
    _field_names.update(field[0] for kind in structures.values() for field in kind._fields_)


know_fields(_structures.STRUCTURES)
know_fields(_pair_structures.STRUCTURES)


def in_python(text: str) -> str:
    """Replaces the library's names of options in a message by the package's. Names of files stay unchanged."""
    text = _FIELD.sub(lambda found: found.group(1) if found.group(1) in _field_names else found.group(), text)
    text = _SWITCH.sub(r"\1=True", text)
    return _ENUMERATOR.sub(lambda found: repr(found.group(1).lower().replace("_", "-")), text)


def make_error(status: int, message: str = "") -> Error:
    """The exception for a status. Without a message, the library's sentence for the status is used."""
    text = in_python(message) or library.hs_status_string(status).decode("utf-8", "replace")
    name = library.hs_status_name(status).decode("ascii")
    kind: Type[Error] = DeviceError
    if library.hs_status_class_of(status) == _library.HS_CLASS_ARGUMENT:
        kind = ArgumentError
    return _BY_NAME.get(name, kind)(text, status)


def check(status: int, message: bytes = b"") -> None:
    """Raises the exception for a status that is not HS_OK."""
    if status != _library.HS_OK:
        raise make_error(status, message.decode("utf-8", "replace"))


def reason_of(error: Exception) -> Error:
    """Converts any exception of an image to an Error, because the failure of an image must not end the others."""
    if isinstance(error, Error):
        return error
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError):
        return OutOfMemoryError(f"out of memory: {text}", _library.HS_ERR_MEMORY)
    return FileError(text, _library.HS_ERR_IO) if isinstance(error, OSError) else ArgumentError(text)
