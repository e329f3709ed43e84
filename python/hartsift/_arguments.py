"""Command lines of the package's modules: every field of ``hartsift.Options`` as an option."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, Callable, Dict, Optional, Sequence, Union

from ._errors import Error
from ._options import Options


def _value(text: str) -> Union[int, float, str, "tuple[int, ...]"]:
    """A number where it is one, numbers with commas between as a tuple, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return tuple(map(int, text.split(","))) if re.fullmatch(r"-?\d+(,-?\d+)+", text) else text


def add_extraction_options(parser: argparse.ArgumentParser) -> None:
    """Adds all options, and those of reading images."""
    reading = parser.add_argument_group("reading of images")
    reading.add_argument("--no-exif", dest="exif", action="store_false", help="leave JPEG files as stored")
    reading.add_argument("--jpeg-scale", type=int, default=1, metavar="N", help="decode JPEG files to 1/N of their size")
    reading.add_argument("--readers", type=int, default=None, metavar="N", help="threads that read and decode ahead")
    group = parser.add_argument_group("extraction", "as keyword arguments of hartsift.extract; python/README.md")
    for name in (*Options.__annotations__, "sigma"):
        option = f"--{name.replace('_', '-')}"
        if option not in parser._option_string_actions:
            # A flag without a value means yes.
            group.add_argument(option, dest=f"option_{name}", type=_value, nargs="?", const=1, metavar="VALUE")


def extraction_options(arguments: argparse.Namespace) -> Dict[str, Any]:
    """The options given, as keyword arguments."""
    given = {name[len("option_") :]: value for name, value in vars(arguments).items() if name.startswith("option_")}
    found = {name: value for name, value in given.items() if value is not None}
    found.update(exif=arguments.exif, jpeg_scale=arguments.jpeg_scale)
    if arguments.readers is not None:
        found["readers"] = arguments.readers
    return found


def run(parser: argparse.ArgumentParser, arguments: Optional[Sequence[str]]) -> int:
    """Calls the function that the chosen subcommand has set as `run`; its result is the exit status. What is wrong with
    the arguments or files ends with a line on standard error and status 2."""
    parsed = parser.parse_args(arguments)
    work: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return work(parsed)
    except (Error, TypeError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
