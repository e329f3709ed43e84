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


RIGHT = """
import hartsift
features = hartsift.extract("photo.jpg", profile="lowe", norm="root", device="cuda:1", region=(0, 0, 9, 9))
for one in features:
    one.save("one.npz", "npz")
geometry = hartsift.verify(features, features, None, "essential", tolerance=2.0, check_plane=True)
kind: str = geometry.model
sift = hartsift.SIFT_create(100, sigma=1.5, device="cpu", as_cv2=False)
count: int = sift.getNFeatures()
"""
#: Each line is one mistake.
WRONG = """
hartsift.extract("photo.jpg", profile="sift")
hartsift.extract("photo.jpg", norm="l1")
hartsift.extract("photo.jpg", channels="gbr")
hartsift.verify(features, features, None, "affine")
hartsift.verify(features, features, threshold=3)
hartsift.match(features, features, guide="essential")
hartsift.SIFT_create(nfeature=100)
hartsift.SIFT_create(profile="sift")
hartsift.SIFT.create(sigma="large")
hartsift.write_features("a.npz", features, "nzp")
hartsift.convolve1d([1.0], [1.0], "wrap")
"""


def test_names_are_checked_before_anything_runs(cache, tmp_path):
    (tmp_path / "user.py").write_text(RIGHT + WRONG)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "user.py"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(pathlib.Path(hartsift.__file__).parents[1])},
    )
    found = {int(line.split(":")[1]) for line in run.stdout.splitlines() if ": error:" in line}
    first = len(RIGHT.splitlines()) + 2
    assert found == set(range(first, first + len(WRONG.split("\n")) - 2)), run.stdout + run.stderr


def test_hints_are_those_of_the_library():
    root = pathlib.Path(__file__).parents[2]
    program = root / "tests" / "support" / "make_python_hints.py"
    if not program.exists():
        pytest.skip("the tree of the library is not next to the tests")
    run = subprocess.run([sys.executable, "-B", program], check=True, capture_output=True, text=True)
    written = (pathlib.Path(hartsift.__file__).parent / "_hints.py").read_text(encoding="utf-8")
    assert run.stdout == written, "make_python_hints.py > python/hartsift/_hints.py renews them"


def test_everything_public_is_documented():
    for name in hartsift.__all__:
        thing = getattr(hartsift, name)
        if callable(thing):
            assert thing.__doc__, name
            for member, value in vars(thing).items() if isinstance(thing, type) else ():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert value.__doc__, f"{name}.{member}"
