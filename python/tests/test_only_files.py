"""File names from untrusted users, and files that exceed the memory limit."""

import pathlib

import pytest

import hartsift

PICTURE = b"P5 3 2 255\nabcdef"


def test_names_of_files_mean_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("-", pathlib.Path("-"), pathlib.Path("@scene:5x5")):
        with pytest.raises(hartsift.FileError):  # nothing is read from standard input, nothing is rendered
            hartsift.load_image(name)
        pathlib.Path(name).write_bytes(PICTURE)
        assert hartsift.load_image(name).tobytes() == b"abcdef"
        pathlib.Path(name).unlink()
    assert hartsift.load_image("@scene:5x5").shape == (5, 5)
    features = hartsift.extract("@scene:120x90")
    hartsift.write_features("-", features, "npz")
    assert hartsift.read_features("-", "npz") == features


def test_memory_is_limited(tmp_path):
    features = hartsift.extract("@scene:120x90")
    path = tmp_path / "features.npz"
    hartsift.write_features(path, features)
    with pytest.raises(hartsift.Error, match="max_memory_bytes"):
        hartsift.read_features(path, max_memory_bytes=path.stat().st_size)
    assert hartsift.read_features(path, max_memory_bytes=2**64 - 1) == features
    with pytest.raises(hartsift.Error, match="max_memory_bytes"):
        hartsift.load_image("@scene:120x90", max_memory_bytes=120 * 90 - 1)
