"""Where the rows of a Parquet file come from: files that the library reads, and those that pyarrow reads."""

import contextlib
import shutil
import threading

import numpy as np
import pytest

from pictures import write_picture, write_pictures

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("hartsift.parquet")

import hartsift  # noqa: E402
from hartsift._arrow import ImageRow, iterate_features, options_text, table_of_rows  # noqa: E402
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


def test_descriptors_of_a_table():
    """Each image has its own, also beside images without features or without descriptors."""
    with_some, without = (hartsift.extract("@scene:90x80:1", device="cpu", descriptor=kind) for kind in ("u8", "none"))
    given = [with_some, None, without, with_some[:0], with_some]
    failed = hartsift.FileError("absent", 1)
    rows = [ImageRow("a", one, failed if one is None else None, {}) for one in given]
    table = table_of_rows(rows, options_text({}), "u8")
    table.validate(full=True)
    read = [one for _, one in iterate_features(table)]
    assert [None if one is None else len(one) for one in read] == [None if one is None else len(one) for one in given]
    assert read[2].descriptors is None and len(read[3].descriptors) == 0
    for one in (read[0], read[4]):
        assert np.array_equal(one.descriptors, with_some.descriptors) and len(one) > 0
