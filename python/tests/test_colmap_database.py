"""COLMAP's database through the package, and as SQLite sees it."""

import multiprocessing
import sqlite3

import numpy as np
import pytest

import hartsift

HOMOGRAPHY = np.array([[0.95, -0.1, 20.0], [0.1, 0.97, -9.0], [0, 0, 1.0]])


@pytest.fixture(scope="module")
def views():
    return (
        hartsift.extract(hartsift.render_scene(320, 240, 2)),
        hartsift.extract(hartsift.render_scene(320, 240, 2, HOMOGRAPHY)),
    )


@pytest.fixture
def path(tmp_path):
    try:
        hartsift.ColmapDatabase(tmp_path / "trial.db").close()
    except hartsift.ArgumentError as error:
        assert error.name == "HS_ERR_UNSUPPORTED"
        pytest.skip("built without SQLite")
    return tmp_path / "database.db"


def rows(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_images_matches_and_geometry(views, path):
    a, b = views
    matches = hartsift.match(a, b)
    geometries = [hartsift.verify(a, b, matches, model) for model in ("fundamental", "homography")]
    camera = hartsift.ColmapCamera(1, 320, 240, (300.0, 310.0, 160.0, 120.0), True)
    with hartsift.ColmapDatabase(path) as database:
        first = database.add_image("left/a.jpg", a)
        second = database.add_image("b.jpg", b, camera)
        database.add_matches(first, second, matches, geometries)
        assert database.count_matches(first, second) == (len(matches), geometries[0].inlier_count)
        assert database.count_matches(first, 77) == (None, None)
    assert rows(path, "SELECT COUNT(*) FROM images") == [(2,)]
    ((count, columns, blob),) = rows(path, f"SELECT rows, cols, data FROM descriptors WHERE image_id = {first}")
    assert (count, columns) == (len(a), 128) and blob == a.descriptors.tobytes()
    ((blob,),) = rows(path, "SELECT data FROM matches")
    assert set(map(tuple, np.frombuffer(blob, np.uint32).reshape(-1, 2).tolist())) in (
        set(map(tuple, matches.pairs.tolist())),
        set(map(tuple, matches.pairs[:, ::-1].tolist())),
    )
    with hartsift.ColmapDatabase(path, read_only=True) as database:
        images = list(database.images())
        assert {image.name for image in images} == {"left/a.jpg", "b.jpg"}
        found = database.find_image("b.jpg")
        assert found.image_id == second and found.features == len(b) and found.camera == camera
        assert database.find_image("c.jpg") is None
        again = database.read_features("left/a.jpg")
        assert again.descriptors.tobytes() == a.descriptors.tobytes()
        assert np.abs(again.points - a.points).max() < 1e-3
        assert len(database.read_features(second)) == len(b)
        with pytest.raises(hartsift.ArgumentError, match="c.jpg"):
            database.read_features("c.jpg")
        with pytest.raises(hartsift.Error):
            database.add_image("c.jpg", a)


def test_plain_pairs_and_other_layouts(path):
    features = hartsift.extract("@scene:200x150", profile="vlfeat")
    assert features.layout == "vlfeat"
    with hartsift.ColmapDatabase(path) as database:
        first = database.add_image("a", features)
        second = database.add_image("b", features)
        database.add_matches(first, second, np.array([[0, 1], [1, 0]]))
        assert database.count_matches(first, second) == (2, None)
        with pytest.raises(hartsift.Error):
            database.add_matches(first, second, [[0, len(features)]])
        with pytest.raises(hartsift.ArgumentError, match="inliers"):
            database.add_matches(first, second, [[0, 1]], inliers=[True, False])
        assert len(database.read_features(first)) == len(features)
    hartsift.write_features(path.with_name("other.db"), features, image_name="a")
    assert (
        hartsift.read_features(path.with_name("other.db")).descriptors.tobytes()
        == hartsift.read_features(path, image_name="a").descriptors.tobytes()
    )


def test_failures_leave_no_trace(views, path, tmp_path):
    with pytest.raises(KeyError):
        with hartsift.ColmapDatabase(path) as database:
            database.add_image("a.jpg", views[0])
            raise KeyError
    assert not path.exists()
    with pytest.raises(hartsift.ArgumentError, match="closed"):
        database.commit()
    with pytest.raises(hartsift.FileError, match="absent"):
        hartsift.ColmapDatabase(tmp_path / "absent.db", read_only=True)
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.ColmapDatabase(tmp_path / "text.db")
    with hartsift.ColmapDatabase(path) as database:
        database.add_image("a.jpg", views[0])
        with pytest.raises(hartsift.ArgumentError):
            database.add_image("a.jpg", views[1])
    with hartsift.ColmapDatabase(path, replace=True) as database:
        database.add_image("a.jpg", views[1])
    assert rows(path, "SELECT rows FROM keypoints") == [(len(views[1]),)]


def test_cameras():
    guess = hartsift.colmap_camera(640, 480)
    assert guess == hartsift.ColmapCamera(2, 640, 480, (768.0, 320.0, 240.0, 0.0), False)
    assert hartsift.colmap_camera(640, 480, 500).prior_focal_length
    with pytest.raises(hartsift.ArgumentError):
        hartsift.colmap_camera(0, 480)


def _use_in_child(database, results):
    with pytest.raises(hartsift.ArgumentError, match="before a fork"):
        database.find_image("a.jpg")
    database.close()
    del database
    results.put(True)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forked_children_leave_it_alone(views, path):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with hartsift.ColmapDatabase(path) as database:
        database.add_image("a.jpg", views[0])
        child = context.Process(target=_use_in_child, args=(database, results))
        child.start()
        assert results.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0
        database.add_image("b.jpg", views[1])
    assert rows(path, "SELECT name FROM images ORDER BY 1") == [("a.jpg",), ("b.jpg",)]
