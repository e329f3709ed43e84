"""COLMAP databases through the package, checked with SQLite."""

import copy
import multiprocessing
import pathlib
import sqlite3
import sys

import numpy as np
import pytest

import hartsift

SQUARE = "@scene:40x40"
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


@pytest.fixture
def lying():
    """A photograph of 16 x 24 pixels that is stored as 24 x 16, with EXIF orientation 6."""
    return pathlib.Path(__file__).parents[2] / "tests/data/images/jpeg_exif6.jpg"


def test_photographs_stay_as_stored(lying, path, tmp_path):
    settings = {"contrast": 0.0, "descriptor": "u8", "device": "cpu"}
    turned, stored = (hartsift.extract(lying, exif=exif, **settings) for exif in (True, False))
    assert turned.image_size == (16, 24) and stored.image_size == (24, 16)
    assert turned.exif_orientation == turned[:1].exif_orientation == copy.deepcopy(turned).exif_orientation == 6
    assert stored.exif_orientation == 0
    with hartsift.ColmapDatabase(path) as database:
        with pytest.raises(hartsift.ArgumentError, match="EXIF orientation 6.*exif=False"):
            database.add_image("turned.jpg", turned)
        for name, features in (("stored.jpg", stored), ("path.jpg", lying), ("bytes.jpg", lying.read_bytes())):
            options = {} if features is stored else settings
            database.add_image(name, features, **options)
            camera = database.find_image(name).camera
            assert (camera.width, camera.height) == (24, 16)
            assert len(database.read_features(name)) == len(stored)
        database.add_image("copy.jpg", turned, exif=True)
        database.add_image("read.jpg", lying, exif=True, **settings)
        assert database.find_image("read.jpg").camera.width == database.find_image("copy.jpg").camera.width == 16
        with pytest.raises(hartsift.ArgumentError, match="contrast"):
            database.add_image("both.jpg", stored, contrast=0.1)


def test_files_of_programs_that_do_not_turn(lying, tmp_path):
    turned = hartsift.extract(lying, contrast=0.0, device="cpu")
    with hartsift.Extractor(contrast=0.0, device="cpu") as extractor:
        assert [features.exif_orientation for features in extractor.extract_many([lying, SQUARE, lying])] == [6, 0, 6]
    for name in ("f.txt", "f.feat"):
        with pytest.raises(hartsift.ArgumentError, match="EXIF orientation 6"):
            turned.save(tmp_path / name)
        turned.save(tmp_path / name, exif=True)
    with pytest.raises(hartsift.ArgumentError, match="EXIF orientation 6"):
        turned.save(tmp_path / "f.sift", "visualsfm")
    turned.save(tmp_path / "f.npz")
    with pytest.raises(hartsift.ArgumentError, match="hloc"):
        hartsift.write_hdf5(tmp_path / "f.h5", "f.jpg", turned)


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


def test_numbers_that_do_not_fit_are_refused(views, path):
    beyond = 1 << 32
    with hartsift.ColmapDatabase(path) as database:
        one, other = (database.add_image(name, view) for name, view in zip(("a.jpg", "b.jpg"), views))
        for wrong in (beyond + one, one - beyond):
            with pytest.raises(hartsift.ArgumentError, match="no image of the number"):
                database.read_features(wrong)
            with pytest.raises(hartsift.ArgumentError, match="no image of the number"):
                database.add_matches(wrong, other, [[0, 0]])
            with pytest.raises(hartsift.ArgumentError, match="no image of the number"):
                database.count_matches(other, wrong)
        for pair in ([0, beyond], [-beyond, 0], [0, -1]):
            with pytest.raises(hartsift.ArgumentError, match="matches are of features"):
                database.add_matches(one, other, [pair])
        assert database.count_matches(one, other) == (None, None)
    with pytest.raises(hartsift.ArgumentError, match="wait_ms"):
        hartsift.ColmapDatabase(path, wait_ms=beyond)


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
        assert results.get(timeout=300)
        child.join(60)
        assert child.exitcode == 0
        database.add_image("b.jpg", views[1])
    assert rows(path, "SELECT name FROM images ORDER BY 1") == [("a.jpg",), ("b.jpg",)]


def test_images_are_copied_byte_for_byte(path, tmp_path, image):
    features = hartsift.extract(image, device="cpu")
    with hartsift.ColmapDatabase(tmp_path / "source.db") as source:
        source.add_image("a/1.png", features, hartsift.colmap_camera(320, 240, 300.0))
        source.add_image("b.png", hartsift.extract(image, device="cpu", descriptor="none"))
    source = hartsift.ColmapDatabase(tmp_path / "source.db", read_only=True)
    with hartsift.ColmapDatabase(tmp_path / "target.db") as target:
        copies = [target.copy_image(source, one.image_id) for one in reversed(list(source.images()))]
        assert copies == [1, 2]
        assert target.copy_image(source, 1) == 2  # copying the same image again changes nothing
        for bad, words in ((7, "no image of the number 7"), (0, "no image of the number 0")):
            with pytest.raises(hartsift.Error, match=words):
                target.copy_image(source, bad)
        with pytest.raises(hartsift.Error, match="itself"):
            target.copy_image(target, 1)
        target.add_image("c.png", features[:3])
    source.close()
    query = (
        "SELECT images.name, model, width, height, params, prior_focal_length, keypoints.data, descriptors.data "
        "FROM images JOIN cameras USING (camera_id) JOIN keypoints USING (image_id) "
        "LEFT JOIN descriptors USING (image_id) WHERE name != 'c.png' ORDER BY name"
    )
    copied = rows(tmp_path / "target.db", query)
    assert copied == rows(tmp_path / "source.db", query)
    assert len(copied) == 2


def test_other_features_are_not_overwritten_by_a_copy(path, tmp_path, image):
    features = hartsift.extract(image, device="cpu")
    for name, some in (("source.db", features), ("target.db", features[:5])):
        with hartsift.ColmapDatabase(tmp_path / name) as database:
            database.add_image("a.png", some)
    source = hartsift.ColmapDatabase(tmp_path / "source.db", read_only=True)
    with hartsift.ColmapDatabase(tmp_path / "target.db") as target:
        with pytest.raises(hartsift.Error, match="other features of the image a.png"):
            target.copy_image(source, 1)
    with hartsift.ColmapDatabase(tmp_path / "target.db", replace=True) as target:
        target.copy_image(source, 1)
        assert len(target.read_features("a.png")) == len(features)
    source.close()
    connection = sqlite3.connect(tmp_path / "source.db")
    with connection:
        connection.execute("UPDATE keypoints SET rows = rows - 1")
    connection.close()
    with hartsift.ColmapDatabase(tmp_path / "other.db") as target:
        with pytest.raises(hartsift.Error, match="keypoints of image 1 are damaged"):
            target.copy_image(hartsift.ColmapDatabase(tmp_path / "source.db", read_only=True), 1)
        target.add_image("a.png", features)


def test_cameras_and_positions(path, tmp_path):
    support = str(pathlib.Path(__file__).parents[2] / "tests/support")
    sys.path.insert(0, support)
    try:
        from exif_segment import equivalent_focal_length, position, with_exif
    finally:
        sys.path.remove(support)
    plain = pathlib.Path(__file__).parents[2] / "tests/data/images/jpeg_gray.jpg"
    where = (-33.85, 151.25, -2.5)
    taken = with_exif(plain.read_bytes(), exif=equivalent_focal_length(28), gps=position(*where))
    (tmp_path / "taken.jpg").write_bytes(taken)
    with hartsift.ColmapDatabase(path) as database:
        named = database.add_image("named.jpg", tmp_path / "taken.jpg", max_features=5, device="cpu")
        given = database.add_image("bytes.jpg", taken, hartsift.colmap_camera(21, 13, 99.0, "OPENCV"), device="cpu")
        bare = database.add_image("plain.jpg", plain, device="cpu")
        assert database.read_position(bare) is None
        for number in (named, given):
            found = database.read_position(number)
            assert not found.cartesian and np.allclose(found.coordinates, where, atol=1e-7)
        cameras = {image.image_id: image.camera for image in database.images()}
        size = cameras[named].width, cameras[named].height
        assert cameras[named].prior_focal_length and not cameras[bare].prior_focal_length
        assert cameras[named].parameters[0] == pytest.approx(28 / 43.27 * np.hypot(*size))
        assert cameras[given].model == 4 and cameras[given].parameters[:2] == (99.0, 99.0)
        database.set_position(named, (1, 2, 3), cartesian=True)
        assert database.read_position(named) == hartsift.ColmapPosition((1.0, 2.0, 3.0), True)
        for source in (given, named):  # first latitude and longitude, then x, y, z
            database.set_position(bare, database.read_position(source))
            assert database.read_position(bare) == database.read_position(source)
        with pytest.raises(hartsift.ArgumentError, match="cartesian is False, and the position says True"):
            database.set_position(bare, database.read_position(named), cartesian=False)
        with pytest.raises(hartsift.ArgumentError, match="position is None"):
            database.set_position(bare, None)
        for wrong in ((1, 2), (91, 0, 0), (0, 0, float("nan"))):
            with pytest.raises(hartsift.ArgumentError):
                database.set_position(named, wrong)
        with pytest.raises(hartsift.ArgumentError):
            database.read_position(99)
    with pytest.raises(hartsift.ArgumentError, match="OPENCV"):
        hartsift.colmap_camera(10, 10, model="opencv")


def test_which_camera(path):
    features = hartsift.extract("@scene:60x45:1", device="cpu")
    names = ["left/1.png", "left/2.png", "right/1.png", "3.png"]

    def cameras_of(**options):
        focal_lengths = iter((50.0, 60.0, 0.0, 70.0))
        with hartsift.ColmapDatabase(path, **options) as database:
            for name in names:
                database.add_image(name, features, focal_length=next(focal_lengths))
            found = [database.find_image(name) for name in names]
        return [image.camera_id for image in found], [image.camera.prior_focal_length for image in found]

    for share, numbers, known in (
        (False, [1, 2, 3, 4], [True, True, False, True]),
        (True, [1, 2, 3, 4], [True, True, False, True]),
        ("size", [1, 1, 1, 1], [True, True, True, True]),
        ("folder", [1, 1, 2, 3], [True, True, False, True]),
    ):
        assert cameras_of(share_cameras=share) == (numbers, known)
        assert cameras_of(share_cameras=share) == (numbers, known)  # again
        path.unlink()
    with pytest.raises(hartsift.ArgumentError, match="'size' or 'folder'"):
        hartsift.ColmapDatabase(path, share_cameras="both")
    assert not path.exists()


def test_cameras_that_are_there(path):
    features = hartsift.extract("@scene:60x45:1", device="cpu")
    known = hartsift.colmap_camera(60, 45, 50.0, "PINHOLE")
    with hartsift.ColmapDatabase(path) as database:
        first = database.add_image("1.png", features)
        database.add_image("2.png", features, known)
        assert database.add_image("3.png", features, 2) == 3
        assert database.find_image("3.png").camera_id == 2
        assert database.add_image("1.png", features) == first
        assert database.add_image("2.png", features, known) == 2
        for camera in (known, 2):
            with pytest.raises(hartsift.ArgumentError, match="1.png is there already with camera 1 .SIMPLE_RADIAL."):
                database.add_image("1.png", features, camera)
        for number in (9, 0, -1, 1 << 32):
            with pytest.raises(hartsift.ArgumentError, match="no camera of the number"):
                database.add_image("4.png", features, number)
        with pytest.raises(hartsift.ArgumentError, match="60x46"):
            database.add_image("4.png", features, hartsift.colmap_camera(60, 46))
    with hartsift.ColmapDatabase(path, replace=True) as database:
        database.add_image("1.png", features, known)
        assert database.find_image("1.png").camera == known
        database.add_image("1.png", features, 2)
        assert {image.camera_id for image in database.images()} == {2}


def test_origins(path):
    first, second = (hartsift.extract("@scene:160x120:1", profile=p, device="cpu") for p in ("lowe", "colmap"))
    with hartsift.ColmapDatabase(path) as database:
        numbers = [database.add_image(f"{i}.jpg", features) for i, features in enumerate((first, second))]
        read = [database.read_features(number) for number in numbers]
    assert [features.origin for features in read] == [first.origin, second.origin]
    with pytest.raises(hartsift.ArgumentError, match="norm l2 in the first list .*root in the second"):
        hartsift.match(*read)


def learned(image):
    """Positions, and descriptors of a network with random weights: two layers over patches."""
    features = hartsift.extract(image, descriptor="none", max_features=400)
    patches, _ = hartsift.extract_patches(image, features, dtype=np.float32)
    random = np.random.default_rng(7)
    values = patches.reshape(len(patches), -1) - patches.mean((1, 2))[:, None]
    values = values / (np.linalg.norm(values, axis=1, keepdims=True) + 1e-6)
    values = np.maximum(values @ random.normal(size=(values.shape[1], 512)), 0) @ random.normal(size=(512, 128))
    return features.points, values / np.linalg.norm(values, axis=1, keepdims=True)


def test_geometry_of_learned_matches(path):
    """Positions and index pairs of a network are enough to verify matches and to write them to a database."""
    (points_a, a), (points_b, b) = (
        learned(hartsift.render_scene(320, 240, 2, *homography)) for homography in ((), (HOMOGRAPHY,))
    )
    similar = a @ b.T
    pairs = np.c_[: len(a), similar.argmax(1)]
    pairs = pairs[similar.argmax(0)[pairs[:, 1]] == pairs[:, 0]]
    geometry = hartsift.verify(points_a, points_b, pairs, "homography")
    assert geometry.found and 30 < geometry.inliers.sum() < len(pairs)
    corners = np.array([(0, 0, 1), (319, 0, 1), (319, 239, 1), (0, 239, 1.0)])
    mapped, wanted = (corners @ np.asarray(matrix).T for matrix in (geometry.matrix, HOMOGRAPHY))
    np.testing.assert_allclose(mapped[:, :2] / mapped[:, 2:], wanted[:, :2] / wanted[:, 2:], atol=2)
    with hartsift.ColmapDatabase(path) as database:
        numbers = []
        for name, points in (("a.png", points_a), ("b.png", points_b)):
            records = np.zeros(len(points), hartsift.KEYPOINT_DTYPE)
            records["x"], records["y"], records["sigma"] = *points.T, 1
            numbers.append(database.add_image(name, hartsift.Features(records, image_size=(320, 240))))
        database.add_matches(*numbers, pairs, geometry)
    assert rows(path, "SELECT * FROM descriptors") == []
    (count, keypoints), = rows(path, "SELECT rows, data FROM keypoints WHERE image_id = 1")
    positions = np.frombuffer(keypoints, np.float32).reshape(count, -1)[:, :2]
    np.testing.assert_allclose(positions, points_a + 0.5, atol=1e-4)
    assert rows(path, "SELECT rows FROM matches") == [(len(pairs),)]
    assert rows(path, "SELECT rows, config FROM two_view_geometries") == [(geometry.inliers.sum(), 6)]
