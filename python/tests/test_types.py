"""The package's type hints."""

import os
import pathlib
import subprocess
import sys

import pytest

import hartsift


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    pytest.importorskip("mypy")
    return tmp_path_factory.mktemp("mypy")


def test_hints_hold(cache):
    package = pathlib.Path(hartsift.__file__).parent
    assert (package / "py.typed").exists()
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, package],
        check=False,
        capture_output=True,
        text=True,
        cwd=package.parent,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_hints_of_users_code(cache, tmp_path):
    (tmp_path / "user.py").write_text(
        "import hartsift\n"
        'features = hartsift.extract("photo.jpg", profile="opencv", max_features=10)\n'
        "count: int = len(features)\n"
        'hartsift.extract("photo.jpg", max_featurs=10)\n'
    )
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "user.py"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(pathlib.Path(hartsift.__file__).parents[1])},
    )
    assert run.stdout.count("error:") == 1 and "max_featurs" in run.stdout, run.stdout + run.stderr


def test_everything_public_is_documented():
    for name in hartsift.__all__:
        thing = getattr(hartsift, name)
        if callable(thing):
            assert thing.__doc__, name
            for member, value in vars(thing).items() if isinstance(thing, type) else ():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"
