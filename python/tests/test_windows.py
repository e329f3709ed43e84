"""The package on Windows: its modules and paths are faked on Linux."""

import os
import signal
import subprocess
import sys

import pytest

from hartsift import __main__, _library


def test_package_on_windows(tmp_path):
    """Modules of POSIX are missing, and the lock and the process group of the command are those of Windows."""
    script = """
import fcntl, numpy, os, pathlib, signal, subprocess, sys, types
import shutil, sqlite3, tempfile  # their own imports depend on the system
fake = types.ModuleType("msvcrt")
fake.LK_NBLCK = fcntl.LOCK_EX | fcntl.LOCK_NB
def locking(descriptor, mode, length):
    try:
        fcntl.flock(descriptor, mode)
    except BlockingIOError as error:
        raise PermissionError(*error.args)
fake.locking = locking
sys.modules.update(msvcrt=fake, fcntl=None, resource=None, pwd=None, grp=None, termios=None)
folder = pathlib.Path(sys.argv[1])
sys.platform, os.O_NOINHERIT = "win32", 0
del signal.SIGHUP, os.O_DIRECTORY, os.set_blocking, os.register_at_fork
import hartsift
from hartsift import _progress
from hartsift import _reconstruct_steps as steps
_progress._WAIT_S, said = 0, []
with _progress.locked(folder, said.append):
    try:
        with _progress.locked(folder, said.append):
            sys.exit("two processes hold the lock")
    except hartsift.FileError as error:
        assert "another run is at work there" in str(error) and len(said) == 1
with _progress.locked(folder, said.append):
    pass
subprocess.CREATE_NEW_PROCESS_GROUP, signal.CTRL_BREAK_EVENT, calls = 512, 1, []
class Stopped:
    stdout = property(lambda self: iter([b"{}"]))
    stderr = ()
    def __init__(self, arguments, **settings): calls.append(settings)
    def __enter__(self): return self
    def __exit__(self, *error): return False
    def send_signal(self, number): calls.append(number)
    def wait(self): return 0
subprocess.Popen, steps._library.command_path = Stopped, lambda: "hartsift.exe"
def interrupt(number): raise KeyboardInterrupt
try:
    steps.run_command(["batch"], 5, said.append, interrupt)
except KeyboardInterrupt:
    pass
assert calls[0]["creationflags"] == 512 and "pass_fds" not in calls[0] and calls[1] == 1
"""
    environment = {**os.environ, "HARTSIFT_LIBRARY": str(_library.library_path())}
    run = subprocess.run([sys.executable, "-B", "-c", script, str(tmp_path)], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_command_of_a_wheel_for_windows(tmp_path, monkeypatch):
    """python -m hartsift finds it in the user's folder of scripts, which is not on the PATH, and ends with its status."""
    program = tmp_path / "hartsift.exe"
    program.write_text('#!/bin/sh\n[ "$1" = info ] && exit 7\n')
    program.chmod(0o755)
    monkeypatch.setenv("HARTSIFT_LIBRARY", str(tmp_path / "hartsift" / "hartsift.dll"))
    monkeypatch.setattr(_library.sysconfig, "get_path", lambda name, scheme: str(tmp_path / ("" if scheme.endswith("_user") else "absent")))
    monkeypatch.setattr(sys, "platform", "win32")
    assert _library.command_path() == str(program)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as end:
            __main__.main(["info"])
    finally:
        signal.signal(signal.SIGINT, handler)
    assert end.value.code == 7
