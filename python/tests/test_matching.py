"""Matching and verification through the package, compared with NumPy and known geometry."""

import pathlib

import numpy as np
import pytest

import hartsift

HOMOGRAPHY = np.array([[0.9, -0.25, 60.0], [0.22, 0.95, -20.0], [1e-4, -5e-5, 1.0]])


@pytest.fixture(scope="module")
def views():
    """Features of two views of a plane; HOMOGRAPHY maps points of the first to the second."""
    plain = hartsift.render_scene(400, 300, 9)
    view = hartsift.render_scene(400, 300, 9, HOMOGRAPHY)
    return hartsift.extract(plain), hartsift.extract(view)


def transfer(matrix, points):
    mapped = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return mapped[:, :2] / mapped[:, 2:]


def expected_pairs(a, b, ratio):
    """For every row of a: its nearest row of b, if it passes the ratio test."""
    products = a.astype(np.int64) @ b.astype(np.int64).T
    squares = (a.astype(np.int64) ** 2).sum(1)[:, None] + (b.astype(np.int64) ** 2).sum(1)[None] - 2 * products
    order = np.argsort(squares, axis=1, kind="stable")
    rows = np.arange(len(a))
    nearest, second = squares[rows, order[:, 0]], squares[rows, order[:, 1]]
    kept = nearest < ratio * ratio * second
    return np.column_stack([rows, order[:, 0]])[kept], np.sqrt(nearest[kept].astype(np.float32))


def test_pairs_are_the_nearest(views):
    a, b = views
    matches = hartsift.match(a, b, mutual=False)
    pairs, distances = expected_pairs(a.descriptors, b.descriptors, 0.8)
    assert len(matches) > 100 and np.array_equal(matches.pairs, pairs)
    assert np.allclose(matches.distances, distances, rtol=1e-6)
    assert np.array_equal(hartsift.match(a.descriptors, b.descriptors, mutual=False).records, matches.records)
    both_ways = hartsift.match(a, b)
    assert 0 < len(both_ways) < len(matches)
    back = hartsift.match(b, a)
    assert set(map(tuple, both_ways.pairs.tolist())) == {(j, i) for i, j in back.pairs.tolist()}
    assert np.array_equal(hartsift.match(a, b, extractor=hartsift.Extractor(threads=1)).records, both_ways.records)


def test_tests_of_distance(views):
    a, b = views
    near = hartsift.match(a, b, ratio=0, max_distance=150)
    assert len(near) > 0 and near.distances.max() <= 150
    assert len(hartsift.match(a, b, ratio=0, mutual=False)) == len(a)
    floats = hartsift.match(a.descriptors.astype(np.float32), b.descriptors.astype(np.float32))
    assert np.array_equal(floats.pairs, hartsift.match(a, b).pairs)
    guided = hartsift.match(a, b, guide="homography", guide_matrix=HOMOGRAPHY, guide_tolerance=2)
    error = np.linalg.norm(transfer(HOMOGRAPHY, a.points[guided.first]) - b.points[guided.second], axis=1)
    assert len(guided) > len(hartsift.match(a, b)) // 2 and error.max() <= 2.001


def test_empty_lists(views):
    a, _ = views
    none = a[:0]
    assert len(hartsift.match(a, none)) == len(hartsift.match(none, a)) == len(hartsift.match(none, none)) == 0
    assert hartsift.match(none, a).pairs.shape == (0, 2)


def test_lists_are_iterable(views):
    a, b = views
    matches = hartsift.match(a, b)[:5]
    assert [int(m.first[0]) for m in matches] == matches.first.tolist() and len(list(iter(matches))) == 5
    assert [f.points.tolist() for f in iter(a[:3])] == [[p] for p in a.points[:3].tolist()]


def test_selections(views):
    matches = hartsift.match(*views)
    near = matches[matches.distances < 200]
    assert 0 < len(near) < len(matches) and isinstance(near, hartsift.Matches)
    assert len(matches[3]) == 1 and len(matches[:7]) == 7


@pytest.mark.parametrize("name", ["a.jpg", pathlib.Path("a.npz")])
def test_names_in_place_of_features(views, name):
    with pytest.raises(hartsift.ArrayTypeError, match="is a name, expected features.*hartsift.extract"):
        hartsift.match(views[0], name)


def test_wrong_arguments(views):
    a, b = views
    with pytest.raises(hartsift.Error):
        hartsift.match(a.descriptors, b.descriptors.astype(np.float32))
    with pytest.raises(hartsift.ArgumentError, match="ratio"):
        hartsift.match(a, b, ratio=-1)
    with pytest.raises(hartsift.ArrayTypeError, match="float64"):
        hartsift.match(a.descriptors.astype(np.float64), b)
    with pytest.raises(hartsift.ArgumentError, match="128"):
        hartsift.match(a.descriptors[:, :64], b)
    with pytest.raises(hartsift.ArgumentError, match="belong together"):
        hartsift.match(a, b, guide="homography")
    with pytest.raises(hartsift.ArgumentError, match="positions"):
        hartsift.match(a.descriptors, b.descriptors, guide="homography", guide_matrix=HOMOGRAPHY)


def test_verification_finds_the_homography(views):
    a, b = views
    matches = hartsift.match(a, b)
    geometry = hartsift.verify(a, b, matches, tolerance=3, seed=4)
    assert geometry.found and geometry.model == "homography" and geometry.inliers.sum() == geometry.inlier_count
    assert geometry.inlier_count > 0.7 * len(matches) and geometry.inliers.dtype == np.bool_
    corners = np.array([[0, 0], [399, 0], [399, 299], [0, 299]], float)
    assert np.abs(transfer(geometry.matrix, corners) - transfer(HOMOGRAPHY, corners)).max() < 1.5
    again = hartsift.verify(a.points[matches.first], b.points[matches.second], tolerance=3, seed=4)
    assert again.matrix.tobytes() == geometry.matrix.tobytes() and np.array_equal(again.inliers, geometry.inliers)
    assert np.array_equal(
        hartsift.verify(a, b, matches.pairs.astype(np.int64), tolerance=3, seed=4).inliers, geometry.inliers
    )
    good = matches[geometry.inliers]
    error = np.linalg.norm(transfer(HOMOGRAPHY, a.points[good.first]) - b.points[good.second], axis=1)
    assert np.median(error) < 0.5


def two_cameras():
    """Points of a scene in two views, the rotation and the direction between the cameras, and their intrinsics."""
    random = np.random.default_rng(5)
    scene = random.uniform([-2, -2, 4], [2, 2, 9], (200, 3))
    angle = 0.2
    rotation = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    translation = np.array([-1.0, 0.1, 0.2])
    camera = np.array([[600.0, 0, 320], [0, 620, 240], [0, 0, 1]])
    views = []
    for points in (scene, scene @ rotation.T + translation):
        projected = points @ camera.T
        views.append(projected[:, :2] / projected[:, 2:])
    views[1][::10] += random.uniform(30, 60, (20, 2))
    return views[0], views[1], rotation, translation / np.linalg.norm(translation), camera


def test_relative_pose():
    a, b, rotation, direction, camera = two_cameras()
    geometry = hartsift.verify(a, b, model="essential", camera_a=camera, camera_b=(600, 620, 320, 240))
    assert geometry.found and 170 <= geometry.inlier_count <= 190
    pose = hartsift.relative_pose(geometry.matrix, camera, camera, a, b, inliers=geometry.inliers)
    assert np.abs(pose.rotation - rotation).max() < 1e-3 and np.abs(pose.translation - direction).max() < 1e-2
    assert pose.used == geometry.inlier_count and pose.in_front == pose.used
    fundamental = hartsift.verify(a, b, model="fundamental")
    assert fundamental.found and np.linalg.matrix_rank(fundamental.matrix, tol=1e-9) == 2


def test_nothing_to_find(views):
    a, b = views
    nothing = hartsift.verify(a, b, np.zeros((0, 2), int))
    assert not nothing.found and not nothing.matrix.any() and nothing.inliers.shape == (0,)
    with pytest.raises(hartsift.ArgumentError, match="beyond"):
        hartsift.verify(a, b, np.array([[0, len(b)]]))
    with pytest.raises(hartsift.ArgumentError, match="beyond"):
        hartsift.verify(a, b, np.array([[-1, 0]]))
    with pytest.raises(TypeError, match="did you mean 'tolerance'.*confidence.*seed"):
        hartsift.verify(a, b, np.zeros((0, 2), int), tolerence=2)
    with pytest.raises(TypeError, match="'threshold'.*tolerance"):
        hartsift.verify(a, b, np.zeros((0, 2), int), threshold=2)
    for hidden in ("struct_size", "message", "camera_a_", "allocator"):
        with pytest.raises(TypeError, match=f"unknown option '{hidden}'"):
            hartsift.verify(a, b, np.zeros((0, 2), int), **{hidden: 1})
    with pytest.raises(hartsift.ArgumentError, match="model"):
        hartsift.verify(a, b, np.zeros((0, 2), int), "affine")
    with pytest.raises(hartsift.ArgumentError, match="tolerance"):
        hartsift.verify(a, b, np.zeros((0, 2), int), tolerance=-1)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.verify(a, b, np.zeros((0, 2), int), "essential")
    with pytest.raises(hartsift.ArgumentError, match="camera"):
        hartsift.verify(a, b, np.zeros((0, 2), int), "essential", camera_a=(1, 2), camera_b=(1, 2))
