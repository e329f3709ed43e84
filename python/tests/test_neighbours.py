"""The k nearest and all within a radius, compared with NumPy and OpenCV's brute-force matcher."""

import numpy as np
import pytest

import hartsift


@pytest.fixture(scope="module")
def lists():
    return hartsift.extract("@scene:300x220:3"), hartsift.extract("@scene:300x220:4")


def sorted_squares(a, b):
    """Squared distances of every row, sorted with the lower index first, and the indices."""
    a, b = a.astype(np.int64), b.astype(np.int64)
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T
    order = np.argsort(squares, axis=1, kind="stable")
    return np.take_along_axis(squares, order, 1), order


@pytest.mark.parametrize("k", [1, 2, 7, 1024])
def test_k_nearest(lists, k):
    a, b = lists
    squares, order = sorted_squares(a.descriptors, b.descriptors)
    found = hartsift.find_k_nearest(a, b, k)
    there = min(k, len(b))
    assert found.shape == (len(a), k)
    assert np.array_equal(found["index"][:, :there], order[:, :there])
    assert np.array_equal(found["distance"][:, :there], np.sqrt(squares[:, :there].astype(np.float32)))
    assert (found["index"][:, there:] == hartsift.NO_FEATURE).all() and np.isinf(found["distance"][:, there:]).all()


@pytest.mark.parametrize("radius", [0, 150, 320.5, np.inf])
def test_within_a_radius(lists, radius):
    a, b = lists
    squares, order = sorted_squares(a.descriptors, b.descriptors)
    found = hartsift.find_within(a, b, radius)
    counts = (squares <= radius**2).sum(1)
    assert np.array_equal(np.diff(found.starts), counts) and len(found) == len(a)
    assert np.array_equal(found.neighbours["index"], np.concatenate([o[:n] for o, n in zip(order, counts)]))
    assert np.array_equal(found[len(a) - 1]["index"], order[-1, : counts[-1]])
    assert np.array_equal(found[-1], found[len(a) - 1]) and len(found[1:3]) == 2


def test_a_guide_restricts(lists):
    a, b = lists
    found = hartsift.find_k_nearest(a, b, 3, guide="homography", guide_matrix=np.eye(3), guide_tolerance=20)
    for row, point in zip(found, a.points):
        near = row["index"][row["index"] != hartsift.NO_FEATURE]
        assert (np.hypot(*(b.points[near] - point).T) <= 20.001).all()


def test_arguments_are_checked(lists):
    a, b = lists
    for k in (0, 1025):
        with pytest.raises(hartsift.ArgumentError, match="expected 1 to 1024"):
            hartsift.find_k_nearest(a, b, k)
    with pytest.raises(hartsift.ArgumentError, match="radius is -1"):
        hartsift.find_within(a, b, -1)
    with pytest.raises(hartsift.ArgumentError, match="give Features"):
        hartsift.find_within(a.descriptors, b.descriptors, 1, guide="homography", guide_matrix=np.eye(3))
    none = hartsift.find_k_nearest(a[:0], b, 2)
    assert none.shape == (0, 2) and len(hartsift.find_within(a[:0], b, 9)) == 0


# ---- OpenCV's matcher


@pytest.fixture(scope="module")
def matchers(lists):
    cv2 = pytest.importorskip("cv2")
    a, b = (features.descriptors.astype(np.float32) for features in lists)
    return cv2, a, b


def members(rows):
    return [[(m.queryIdx, m.trainIdx, m.imgIdx, m.distance) for m in row] for row in rows]


@pytest.mark.parametrize("k", [1, 2, 5])
def test_knn_match_is_opencv_s(matchers, k):
    cv2, a, b = matchers
    assert members(hartsift.BFMatcher().knnMatch(a, b, k)) == members(cv2.BFMatcher().knnMatch(a, b, k))


def test_radius_match_is_opencv_s(matchers):
    cv2, a, b = matchers
    for radius in (150.0, 320.0):
        theirs = members(cv2.BFMatcher().radiusMatch(a, b, radius))
        # The order of equal distances is unspecified in OpenCV.
        expected = [sorted(row, key=lambda m: (m[3], m[1])) for row in theirs]
        assert members(hartsift.BFMatcher().radiusMatch(a, b, radius)) == expected


def test_match_is_opencv_s(matchers):
    cv2, a, b = matchers
    for cross in (False, True):
        ours = hartsift.BFMatcher(cv2.NORM_L2, cross).match(a, b)
        assert members([ours]) == members([cv2.BFMatcher(cv2.NORM_L2, cross).match(a, b)])
    ours = hartsift.BFMatcher(crossCheck=True).knnMatch(a, b, 1)
    assert members(ours) == members(cv2.BFMatcher(cv2.NORM_L2, True).knnMatch(a, b, 1))


def test_what_opencv_s_matcher_cannot_be(matchers):
    _, a, b = matchers
    with pytest.raises(hartsift.ArgumentError, match="crossCheck"):
        hartsift.BFMatcher(crossCheck=True).knnMatch(a, b, 2)
    with pytest.raises(hartsift.ArgumentError, match=r"mask of pairs has shape \(3, 4\)"):
        hartsift.BFMatcher().knnMatch(a, b, 2, mask=np.ones((3, 4), np.uint8))
