"""Functions of the classes that replace OpenCV's: cv2.UMat, output arguments, optional numbers, errors that are also
cv2.error."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, Dict, Optional, Tuple, Type, TypeVar, Union, cast

import numpy as np

from ._errors import ArgumentError, ArrayTypeError, Error

F = TypeVar("F", bound=Callable[..., Any])


class _Missing:
    """Default of an argument for which None is a valid value."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()


# ---- errors


def _cv2_error() -> Optional[Type[Exception]]:
    """The class cv2.error, if the program has imported cv2."""
    kind = getattr(sys.modules.get("cv2"), "error", None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else None


_JOINED: Dict[Tuple[Type[Error], Type[Exception]], Type[Error]] = {}


def _joined_kind(kind: Type[Error], other: Type[Exception]) -> Type[Error]:
    """A class that ``except`` finds by either of two classes. It prints like the package's class."""
    if (kind, other) in _JOINED:
        return _JOINED[kind, other]
    text = {"__doc__": kind.__doc__, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    reduced = {"__reduce__": lambda self: (as_cv2_error, (kind(self.message, self.status), self.func))}
    joined = cast(Type[Error], type(kind.__name__, (kind, other), {**text, **reduced}))
    return _JOINED.setdefault((kind, other), joined)


def as_cv2_error(error: Error, function: str = "") -> Error:
    """Converts an error so that ``except cv2.error`` catches it too, if cv2 is imported."""
    other = _cv2_error()
    if other is None or isinstance(error, other):
        return error
    joined = _joined_kind(type(error), other)(error.message, error.status)
    # The attributes of a cv2.error; code -5 is cv2.Error.StsBadArg.
    values = {"code": -5, "err": error.message, "msg": error.message, "func": function, "file": "", "line": 0}
    for name, value in values.items():
        setattr(joined, name, value)
    return joined


def _own_error(error: Exception) -> Error:
    if isinstance(error, Error):
        return error
    return (ArrayTypeError if isinstance(error, TypeError) else ArgumentError)(str(error))


def raises_like_cv2(function: F) -> F:
    """Decorator: errors, including those of the number and types of arguments, become hartsift.Error and, if cv2 is
    imported, cv2.error."""

    @functools.wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except (Error, TypeError, ValueError, OverflowError) as error:
            raised: Exception = error
        except Exception as error:
            if not isinstance(error, _cv2_error() or ()):
                raise
            raised = error
        own = as_cv2_error(_own_error(raised), function.__qualname__)
        raise own.with_traceback(raised.__traceback__) from None

    # help() then shows the arguments of the function.
    called.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return cast(F, called)


# ---- cv2.UMat


def is_umat(value: object) -> bool:
    """True for a cv2.UMat. cv2 is not imported."""
    kind = getattr(sys.modules.get("cv2"), "UMat", None)
    return isinstance(kind, type) and isinstance(value, kind)


def array_of(value: Any) -> Any:
    """The array of a cv2.UMat (None for an empty one); other values unchanged."""
    return value.get() if is_umat(value) else value


def is_empty(value: Any) -> bool:
    """True for a matrix that OpenCV regards as empty: None, or an array without elements."""
    return value is None or (isinstance(value, np.ndarray) and value.size == 0)


def output(result: "Optional[np.ndarray[Any, Any]]", given: Any, as_umat: bool) -> Any:
    """The output to return: the given array if the result fits it, or a cv2.UMat if requested."""
    if as_umat or is_umat(given):
        cv2: Any = sys.modules["cv2"]
        if result is None:
            return cv2.UMat()
        if is_umat(given) and given.get() is not None:
            return cv2.copyTo(result, None, given)
        return cv2.UMat(np.ascontiguousarray(result))
    fits = isinstance(given, np.ndarray) and result is not None and given.flags.writeable
    if result is None or not fits or given.dtype != result.dtype or given.shape != result.shape:
        return result
    given[...] = result
    return given


def check_output(given: Any) -> None:
    """Refuses outputs other than None, an array or a cv2.UMat. Numbers are ignored, as OpenCV does."""
    if not (given is None or isinstance(given, (np.ndarray, int, float)) or is_umat(given)):
        raise ArrayTypeError(f"descriptors is {type(given).__name__}, expected None, or an array for the result")


# ---- numbers, of which None means the default


def whole(value: Any, name: str, default: int) -> int:
    """An integer argument; None: the default."""
    if value is None:
        return default
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ArrayTypeError(f"{name} is {value!r}, expected a whole number")
    return int(value)


def real(value: Any, name: str, default: float) -> float:
    """A number argument; an integer stays one; None: the default."""
    if value is None:
        return default
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArrayTypeError(f"{name} is {value!r}, expected a number")
    return value.item() if isinstance(value, np.generic) else value


def flag(value: Any, name: str) -> bool:
    """A switch argument; None: off."""
    if value is not None and not isinstance(value, (bool, int, np.bool_, np.integer)):
        raise ArrayTypeError(f"{name} is {value!r}, expected True or False")
    return bool(value)


def either(image: Any, images: Any) -> Any:
    """The image argument, which OpenCV names differently for one image and for a list."""
    if (image is MISSING) == (images is MISSING):
        raise ArrayTypeError("image is missing" if image is MISSING else "image and images are given, expected one of them")
    return images if image is MISSING else image


#: Types that OpenCV accepts as a list of images.
def as_list(image: Any) -> "Union[None, Tuple[Any, ...]]":
    """The images of a list as a tuple; None: a single image."""
    if isinstance(image, (list, tuple)) or (isinstance(image, np.ndarray) and image.dtype == object and image.ndim == 1):
        return tuple(image)
    return None


def per_image(given: Any, count: int, name: str) -> Tuple[Any, ...]:
    """One value per image of a list; if no values are given, None for each."""
    values = () if given is None else as_list(given)
    if values is None or (len(values) not in (0, count)):
        what = type(given).__name__ if values is None else f"{len(values)} {name}"
        raise ArgumentError(f"{what} for {count} images: expected a list with one for each")
    return values or (None,) * count


def names_as_cv2(error: Error, names: Dict[str, str]) -> Error:
    """Replaces an option at the beginning of the library's message by OpenCV's name."""
    first, _, rest = error.message.partition(" ")
    return type(error)(f"{names[first]} {rest}", error.status) if first in names else error
