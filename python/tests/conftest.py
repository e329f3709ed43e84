"""Shared fixtures of the Python package's tests.

The library is the installed package's or HARTSIFT_LIBRARY; the command, for comparisons, is HARTSIFT_COMMAND.
"""

import os
import signal
import subprocess

import numpy as np
import pytest

import hartsift

SCENE = "@scene:320x240:5"


def pytest_configure(config):
    """Turns NumPy's warnings into errors, because the package must cause none. Ends that signals are ignored, as a shell
    without job control does for background processes, and nohup for SIGHUP: programs that tests start would ignore them too."""
    config.addinivalue_line("filterwarnings", "error::RuntimeWarning")
    for name, handler in (("SIGHUP", signal.SIG_DFL), ("SIGINT", signal.default_int_handler), ("SIGTERM", signal.SIG_DFL)):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def image():
    """A picture of 320 x 240, uint8."""
    return hartsift.load_image(SCENE)


@pytest.fixture(scope="session")
def command():
    """Runs the command hartsift with arguments."""
    program = os.environ.get("HARTSIFT_COMMAND")
    if not program:
        pytest.skip("HARTSIFT_COMMAND does not name the command")

    def run(*arguments, status=0):
        environment = {name: value for name, value in os.environ.items() if name != "HARTSIFT_DEVICE"}
        ended = subprocess.run([program, *map(str, arguments)], check=False, env=environment)
        assert ended.returncode == status, arguments

    return run


@pytest.fixture
def colour_image(image):
    """A picture with three different channels."""
    return np.dstack([image, 255 - image, np.roll(image, 7, axis=1)])
