"""Measures of matches against true geometry, and their standard errors."""
import cv2
import numpy as np

NEAR = 3.0  # pixels within which keypoints repeat and matches are correct
MATCH_LIMITS, CORNER_LIMITS, ANGLE_LIMITS = (1, 3, 5), (1, 3, 5), (5, 10, 20)
EPIPOLAR_LIMIT, RESAMPLES = 1.5, 1000
FAILED = 180.0  # degrees, error of a pair without a pose


def project(homography, points):
    mapped = np.c_[points, np.ones(len(points))] @ homography.T
    return mapped[:, :2] / np.where(mapped[:, 2:] == 0, 1e-12, mapped[:, 2:])


def inside(points, shape):
    return ((points >= 0) & (points <= (shape[1] - 1, shape[0] - 1))).all(1)


def near_pairs(first, second, limit):
    """Returns indices and distances of all pairs of points at most `limit` apart. Compares points of neighbouring cells of a grid."""
    lowest = np.minimum(first.min(0), second.min(0)) - limit
    cells, others = ((points - lowest) // limit for points in (first, second))
    across = max(cells[:, 0].max(), others[:, 0].max()) + 2
    keys = others @ (1, across)
    order = np.argsort(keys, kind="stable")
    found = []
    for step in (dx + dy * across for dy in (-1, 0, 1) for dx in (-1, 0, 1)):
        wanted = cells @ (1, across) + step
        start, end = (np.searchsorted(keys[order], wanted, side) for side in ("left", "right"))
        rows = np.repeat(np.arange(len(first)), end - start)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(end - start) - (end - start), end - start)
        found.append((rows, order[start[rows] + within]))
    rows, columns = (np.concatenate(part) for part in zip(*found))
    distances = np.linalg.norm(first[rows] - second[columns], axis=1)
    kept = distances <= limit
    return rows[kept], columns[kept], distances[kept]


def one_to_one(first, second, limit=NEAR):
    """Returns the number of pairs of points at most `limit` apart, each point in one pair, nearest pairs first."""
    if not len(first) or not len(second):
        return 0
    rows, columns, distances = near_pairs(first, second, limit)
    order = np.argsort(distances, kind="stable")
    used_first, used_second, count = set(), set(), 0
    for a, b in zip(rows[order].tolist(), columns[order].tolist()):
        if a not in used_first and b not in used_second:
            used_first.add(a)
            used_second.add(b)
            count += 1
    return count


def corner_error(homography, points, others, shape):
    """Returns the mean distance of the corners of the first picture mapped by the homography of the matches from where the true
    one maps them; infinity without a homography."""
    if len(points) < 4:
        return np.inf
    found, _ = cv2.findHomography(points, others, cv2.USAC_MAGSAC, 3.0, maxIters=10000, confidence=0.9999)
    if found is None:
        return np.inf
    height, width = shape[:2]
    corners = np.array([(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)], float)
    return float(np.linalg.norm(project(found, corners) - project(homography, corners), axis=1).mean())


def homography_measures(homography, first, second, matches, shapes):
    """Returns the measures of a pair with a homography. first, second: positions; matches: pairs of indices."""
    seen_first = np.unique(first, axis=0)
    seen_first = seen_first[inside(project(homography, seen_first), shapes[1])]
    seen_second = np.unique(second, axis=0)
    seen_second = seen_second[inside(project(np.linalg.inv(homography), seen_second), shapes[0])]
    fewest = max(1, min(len(seen_first), len(seen_second)))
    points, others = first[matches[:, 0]], second[matches[:, 1]]
    errors = np.linalg.norm(project(homography, points) - others, axis=1)
    found = {"rep": one_to_one(project(homography, seen_first), seen_second) / fewest, "matches": len(matches),
             "score": float((errors <= NEAR).sum()) / fewest}
    found.update({f"mma{limit}": float((errors <= limit).mean()) if len(errors) else 0.0 for limit in MATCH_LIMITS})
    error = corner_error(homography, points, others, shapes[0])
    return {**found, "maa": float(np.mean([error <= limit for limit in CORNER_LIMITS]))}


def angle(a, b):
    """Returns the degrees between two directions; exact for small angles."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    return float(np.degrees(2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))))


def pose_error(found, true):
    """Returns the larger of the errors of rotation and of direction of translation in degrees. The sign of the translation does
    not count."""
    if not found[:, 3].any():
        return FAILED
    turn = found[:, :3] @ true[:, :3].T
    rotation = float(np.degrees(2 * np.arcsin(min(1.0, np.linalg.norm(turn - np.eye(3)) / np.sqrt(8)))))
    translation = angle(found[:, 3], true[:, 3])
    return max(rotation, min(translation, 180 - translation))


def pinhole(matrix, shape):
    return {"model": "PINHOLE", "width": shape[1], "height": shape[0], "params": [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]]}


def pose_measures(pair, first, second, matches, shapes):
    """Returns the number of matches, their share within EPIPOLAR_LIMIT of the true epipolar lines, and the error of the pose."""
    import poselib  # pylint: disable=import-outside-toplevel

    points, others = first[matches[:, 0]], second[matches[:, 1]]
    measures = {"matches": len(matches), "precision": epipolar_share(pair, points, others), "error": FAILED}
    if len(matches) >= 5:
        cameras = [pinhole(matrix, shape) for matrix, shape in zip(pair.cameras, shapes)]
        pose, _ = poselib.estimate_relative_pose(points, others, *cameras, {"max_epipolar_error": EPIPOLAR_LIMIT, "seed": 0}, {})
        measures["error"] = pose_error(np.c_[pose.R, pose.t], pair.pose)
    return measures


def epipolar_share(pair, points, others):
    """Returns the share of matches with both points at most EPIPOLAR_LIMIT pixels from the true epipolar lines."""
    if not len(points):
        return 0.0
    x, y, z = pair.pose[:, 3]
    essential = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ pair.pose[:, :3]
    fundamental = np.linalg.inv(pair.cameras[1]).T @ essential @ np.linalg.inv(pair.cameras[0])
    u, v = np.c_[points, np.ones(len(points))], np.c_[others, np.ones(len(points))]
    lines_second, lines_first = u @ fundamental.T, v @ fundamental
    norms = np.minimum(np.hypot(*lines_second[:, :2].T), np.hypot(*lines_first[:, :2].T))
    distances = np.abs((v * lines_second).sum(1)) / np.maximum(norms, 1e-300)
    return float((distances <= EPIPOLAR_LIMIT).mean())


def area_under_recall(errors, limit):
    """Returns the area under the curve of recall over the error up to `limit`, divided by `limit`: each pair counts 1 - error / limit,
    or 0."""
    return np.maximum(0.0, 1 - np.asarray(errors, float) / limit)


def mean_and_error(values, seed=0):
    """Returns the mean and its standard error: the spread of the means of RESAMPLES bootstrap samples."""
    values = np.asarray(values, float)
    if not len(values):
        return float("nan"), float("nan")
    drawn = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    return float(values.mean()), float(values[drawn].mean(1).std())
