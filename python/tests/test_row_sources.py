"""Where the rows of a Parquet file come from: files that the library reads, and those that pyarrow reads."""

import contextlib
import shutil
import threading

import numpy as np
import pytest

from pictures import write_picture, write_pictures

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("hartsift.parquet")

from hartsift._sources import ImageSource, RowStream  # noqa: E402


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    write_pictures(folder, 1)
    return folder


@pytest.fixture
def stream():
    """Rows on the CPU, read by two threads."""
    with contextlib.closing(RowStream({"device": "cpu"}, 2)) as made:
        yield made


def test_rows_of_the_library_that_nobody_takes(photos, stream):
    """Files that the library reads itself leave nothing behind either."""
    sources = [ImageSource("a.png", str(photos / "0/im0.png"))] * 40
    rows = stream.rows(sources)
    next(rows)
    rows.close()
    assert [row.error for row in stream.rows(sources)] == [None] * 40
    assert stream._run._rows == {}


def test_paths_of_files(photos, stream, tmp_path, monkeypatch):
    """The library opens the path that is given: a link is followed before "..", and errors show the path."""
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere/deep")
    shutil.copy(photos / "0/im0.png", tmp_path / "elsewhere/a.png")
    write_picture(tmp_path / "a.png", np.full((60, 70), 99, np.uint8))
    for name in ("-", "@scene.png", "@scene", "@odd.png"):
        shutil.copy(tmp_path / "a.png", tmp_path / name)
    monkeypatch.chdir(tmp_path)

    def read(*paths):
        return list(stream.rows([ImageSource("a name", path) for path in paths]))

    assert len(read("link/../a.png")[0].features) > 0
    assert [len(row.features) for row in read("a.png", "-", "@scene.png", "@scene", "@odd.png")] == [0] * 5
    assert [row.error.name for row in read("a.png/", "")] == ["HS_ERR_IO", "HS_ERR_ARGUMENT"]
    (row,) = read("absent.png")
    assert str(row.error).startswith("absent.png: ")


def test_a_working_directory_that_is_gone(photos, stream, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    relative, absolute = stream.rows([ImageSource("a", "a.png"), ImageSource("b", str(photos / "0/im0.png"))])
    assert relative.error.name == "HS_ERR_IO" and absolute.error is None


def test_remote_file_systems_are_asked_by_readers(photos, stream, monkeypatch):
    """The caller does not wait for a remote file system, and any error of it is a row's."""
    from hartsift import _sources

    def ask(root):
        callers.append(threading.current_thread())
        raise RuntimeError("no network")

    callers = []
    monkeypatch.setattr(_sources, "_system_of", ask)
    remote, local = stream.rows([ImageSource("a", "s3://bucket/a.png"), ImageSource("b", str(photos / "0/im0.png"))])
    assert "no network" in str(remote.error) and local.error is None
    assert callers and threading.current_thread() not in callers
