"""A run of a reconstruction: its lock, its progress as a bar or lines, and its end by signals also in native code."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import shutil
import signal
import sys
import threading
import time
from typing import Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, TextIO

from ._errors import FileError
from ._names import printable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

STOPPED = "stopped; the same command continues"
_WAIT_S, _LOOK_S = 60, 0.2  # seconds to wait for the end of another run, and between two looks
_BAR = 24  # characters
_NATIVE = ("mapper", "files")  # steps that are in pycolmap's code for long


def _open_lock(folder: pathlib.Path) -> int:
    if sys.platform == "win32":  # where folders cannot be opened
        return os.open(folder / ".hartsift-lock", os.O_RDWR | os.O_CREAT | os.O_NOINHERIT)
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def _try_lock(descriptor: int) -> bool:
    """Returns False if another process holds the lock."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # the file system has no locks
        pass
    return True


@contextlib.contextmanager
def locked(folder: pathlib.Path, say: Callable[[str], None]) -> Iterator[int]:
    """Keeps other runs out of the folder. Gives a descriptor; a process that inherits it holds the lock as well, so that
    the next run waits for a command whose parent was killed. On Windows no process inherits it.
    """
    descriptor = _open_lock(folder)
    try:
        for attempt in itertools.count():
            if _try_lock(descriptor):
                break
            if attempt == 0:
                say(f"{folder}: another run is at work there; waiting up to {_WAIT_S} s for its end")
            if attempt * _LOOK_S >= _WAIT_S:
                raise FileError(f"{folder}: another run is at work there")
            time.sleep(_LOOK_S)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _ending_by_signals(end: Callable[[int], NoReturn]) -> Iterator[None]:
    """Lets a thread call end(number) after a signal, because Python's own handlers wait for the end of native code."""
    ending = [getattr(signal, name, 0) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")]
    source, target = os.pipe()
    if sys.platform != "win32":
        os.set_blocking(target, False)

    def watch() -> None:
        while (number := os.read(source, 1)[0]) != 0:
            if number in ending:
                end(number)

    before = signal.set_wakeup_fd(target)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(target, b"\0")
        watcher.join()
        os.close(source)
        os.close(target)


class Progress:
    """A bar over all steps on a terminal, lines on other streams.

    is_program: a signal ends the process also while native code runs.
    """

    def __init__(self, stream: Optional[TextIO], parts: Mapping[str, float], is_program: bool) -> None:
        self._stream, self._is_program = stream, is_program
        self._is_terminal = stream is not None and stream.isatty()
        self._parts, self._before, self._step = parts, 0.0, ""
        self._drawn = 0.0
        self.unfinished: List[pathlib.Path] = []  # folders to remove when a signal ends the process
        self.seconds: Dict[str, float] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Shows a step while it runs."""
        start, self._step = time.monotonic(), name
        self.show(0, 0)
        with _ending_by_signals(self._stop) if self._is_program and name in _NATIVE else contextlib.nullcontext():
            yield
        self.seconds[name] = time.monotonic() - start
        self._before += self._parts[name]

    def show(self, done: int, total: int) -> None:
        """Redraws the bar for a step of which `done` of `total` parts are done. total 0: unknown."""
        now = time.monotonic()
        if not self._is_terminal or self._stream is None or (done and now - self._drawn < 0.1):
            return
        self._drawn = now
        part = self._before + self._parts[self._step] * (min(done / total, 1.0) if total else 0.0)
        bar = "#" * round(part * _BAR)
        of = f" {done} of {total}" if total else ""
        self._stream.write(f"\r[{bar:-<{_BAR}}] {100 * part:3.0f} % {self._step}{of}\x1b[K")
        self._stream.flush()

    def say(self, text: str) -> None:
        """Prints a line."""
        if self._stream is not None:
            self._stream.write(("\r\x1b[K" if self._is_terminal else "") + printable(text) + "\n")
            self._stream.flush()

    def complain(self, text: str) -> None:
        """Prints a line about a failure, even if the program is quiet."""
        if self._stream is None and self._is_program:
            print(printable(text), file=sys.stderr)
        else:
            self.say(text)

    def _stop(self, number: int) -> NoReturn:
        """Ends the process while native code runs."""
        self.end()
        print(STOPPED, file=sys.stderr, flush=True)
        for folder in self.unfinished:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + number)

    def end(self) -> None:
        """Removes the bar."""
        if self._is_terminal and self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
