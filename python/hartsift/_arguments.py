"""Command lines of the package's modules, with every field of ``hartsift.Options`` as an option."""

from __future__ import annotations

import argparse
import math
import re
import signal
import sys
from typing import Any, Callable, Dict, NoReturn, Optional, Sequence, Union

from ._errors import ArgumentError, Error
from ._hints import Options


def _value(text: str) -> Union[int, float, str, "tuple[int, ...]"]:
    """Parses a number, numbers separated by commas (as a tuple), or a text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return tuple(map(int, text.split(","))) if re.fullmatch(r"-?\d+(,-?\d+)+", text) else text


def _range(text: str) -> "tuple[float, float]":
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        low = high = math.nan
    if not -math.inf < low < high < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected LOW:HIGH, two numbers, LOW below HIGH")
    return low, high


def add_extraction_options(parser: argparse.ArgumentParser) -> None:
    """Adds all options of extraction and of reading images."""
    reading = parser.add_argument_group("reading of images")
    reading.add_argument("--no-exif", dest="exif", action="store_false", help="leave images as stored")
    reading.add_argument("--jpeg-scale", type=int, default=1, metavar="N", help="decode JPEG files to 1/N of their size")
    reading.add_argument("--strict", action="store_true", help="refuse images whose decoder reports damage")
    reading.add_argument("--value-range", type=_range, default=None, metavar="LOW:HIGH",
                         help="samples that are black and white, as 0:4095 for 12 bits in 16-bit files")
    reading.add_argument("--readers", type=int, default=None, metavar="N", help="threads that read ahead, and as many that decode")
    add_option_arguments(parser)


def add_option_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the fields of ``hartsift.Options``."""
    group = parser.add_argument_group("extraction", "as keyword arguments of hartsift.extract; python/README.md")
    for name in (*Options.__annotations__, "sigma"):
        option = f"--{name.replace('_', '-')}"
        if option not in parser._option_string_actions:
            # An option without a value is a flag that is on.
            group.add_argument(option, dest=f"option_{name}", type=_value, nargs="?", const=1, metavar="VALUE")


def extraction_options(arguments: argparse.Namespace) -> Dict[str, Any]:
    """The given options of extraction and reading, as keyword arguments."""
    found = option_arguments(arguments)
    found.update(exif=arguments.exif, jpeg_scale=arguments.jpeg_scale, strict=arguments.strict)
    if arguments.value_range is not None:
        found["value_range"] = arguments.value_range
    if arguments.readers is not None:
        found["readers"] = arguments.readers
    return found


def option_arguments(arguments: argparse.Namespace) -> Dict[str, Any]:
    """The fields of ``hartsift.Options`` that were given."""
    given = {name[len("option_") :]: value for name, value in vars(arguments).items() if name.startswith("option_")}
    return {name: value for name, value in given.items() if value is not None}


def _end(number: int, frame: object) -> NoReturn:
    """Signal handler that raises an exception, so that unfinished files are removed."""
    sys.exit(128 + number)


def _status_of(error: Exception) -> int:
    """Returns the command's exit status for an error: 2 for a wrong argument, 3 for an unusable device, 1 for other
    failures, such as a file or a missing package."""
    if isinstance(error, Error) and error.name == "HS_ERR_NO_DEVICE":
        return 3
    return 2 if isinstance(error, (ArgumentError, TypeError)) else 1


def run(parser: argparse.ArgumentParser, arguments: Optional[Sequence[str]]) -> int:
    """Calls the function that the chosen subcommand has set as `run`, and returns its exit status. An error of
    arguments or files prints a line on standard error; the status is then 1, 2 or 3, as in the command. After SIGTERM
    and SIGHUP unfinished files are removed, and the status is the one that shells use."""
    return run_parsed(parser, parser.parse_args(arguments))


def run_parsed(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> int:
    """As ``run``, for parsed arguments."""
    for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):  # Windows has the last one in place of SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    work: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return work(parsed)
    except (Error, ModuleNotFoundError, TypeError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return _status_of(error)
