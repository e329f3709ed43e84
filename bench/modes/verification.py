"""Compares geometric verification with OpenCV's USAC_MAGSAC (poses also with PoseLib) on the same matches.

Estimates homographies of the sequences graf, boat and leuven, and relative poses between the frames of a hand-held
camera, whose true geometry is known. Prints number of inliers, error against the truth, and time. Features and matches
(mutual, ratio 0.8) come from the hartsift command, so that all estimators see identical points.

usage: verification [--rate] [--build DIR] [--data DIR] [--rounds N] [-o FILE.md]
--rate: instead, the time of all pairs of photographs.
"""
import argparse
import concurrent.futures
import ctypes
import itertools
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOMOGRAPHY, FUNDAMENTAL, ESSENTIAL = 1, 2, 3
THRESHOLD = {HOMOGRAPHY: 3.0, FUNDAMENTAL: 2.0, ESSENTIAL: 2.0}
SEEDS = range(5)


class Camera(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("fx", "fy", "cx", "cy")]


class VerifyOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("model", ctypes.c_int), ("tolerance", ctypes.c_double),
                ("confidence", ctypes.c_double), ("min_iterations", ctypes.c_int32), ("max_iterations", ctypes.c_int32),
                ("min_inliers", ctypes.c_int32), ("check_plane", ctypes.c_int32), ("seed", ctypes.c_uint64),
                ("camera_a", Camera), ("camera_b", Camera), ("allocator", ctypes.c_void_p),
                ("message", ctypes.c_void_p), ("message_bytes", ctypes.c_size_t), ("refine", ctypes.c_int32),
                ("refine_matches", ctypes.c_int32)]


class Geometry(ctypes.Structure):
    _fields_ = [("model", ctypes.c_int), ("found", ctypes.c_int32), ("matrix", ctypes.c_double * 9),
                ("inlier_count", ctypes.c_size_t), ("rms_error", ctypes.c_double), ("plane_inliers", ctypes.c_size_t),
                ("iterations", ctypes.c_int32), ("plane_only", ctypes.c_int32), ("tolerance", ctypes.c_double),
                ("reserved", ctypes.c_int32 * 6)]


class Pose(ctypes.Structure):
    _fields_ = [("rotation", ctypes.c_double * 9), ("translation", ctypes.c_double * 3),
                ("in_front", ctypes.c_size_t), ("used", ctypes.c_size_t),
                ("reserved", ctypes.c_int32 * 8)]


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Library:
    """Calls the two functions of the shared library that are compared."""

    def __init__(self, path):
        self.binding = ctypes.CDLL(str(path))

    def verify(self, a, b, model, threshold, camera=None, seed=0, most=None):
        options, geometry = VerifyOptions(), Geometry()
        size = ctypes.c_size_t(ctypes.sizeof(options))
        if self.binding.hs_verify_options_init_sized(ctypes.byref(options), size, model) != 0:
            raise RuntimeError("hs_verify_options_init_sized failed")
        options.tolerance, options.seed = threshold, seed
        if most:
            options.max_iterations = most
        if camera:
            options.camera_a = options.camera_b = Camera(*camera)
        mask = np.zeros(len(a), np.uint8)
        status = self.binding.hs_verify_points(pointer(a), pointer(b), ctypes.c_size_t(len(a)), ctypes.byref(options),
                                               pointer(mask), ctypes.byref(geometry))
        if status != 0:
            raise RuntimeError(f"hs_verify_points: status {status}")
        matrix = np.array(geometry.matrix).reshape(3, 3) if geometry.found else None
        return matrix, mask.astype(bool), geometry

    def pose(self, essential, a, b, camera, mask):
        pose, camera = Pose(), Camera(*camera)
        essential, mask = np.ascontiguousarray(essential), mask.astype(np.uint8)
        status = self.binding.hs_relative_pose(pointer(essential), ctypes.byref(camera), ctypes.byref(camera),
                                               pointer(a), pointer(b), ctypes.c_size_t(len(a)), pointer(mask),
                                               ctypes.byref(pose))
        if status != 0:
            raise RuntimeError(f"hs_relative_pose: status {status}")
        return np.array(pose.rotation).reshape(3, 3), np.array(pose.translation)


def extract(command, images, folder):
    """Returns a feature file and the keypoints (x, y) of each image."""
    features = []
    for image in images:
        out = pathlib.Path(folder) / (image.parent.name + "_" + image.stem + ".npz")
        subprocess.run([command, "extract", image, "-o", out, "--device", "cpu", "--max-features", "4000", "--quiet"],
                       check=True)
        with np.load(out) as data:
            features.append((out, data["keypoints"][:, :2].astype(np.float64)))
    return features


def match(command, first, second):
    """Returns points of both images from the matches that the command finds."""
    text = subprocess.run([command, "match", first[0], second[0], "--device", "cpu", "--quiet"], check=True,
                          capture_output=True, text=True).stdout
    rows = np.array([line.split(",")[:2] for line in text.splitlines()[1:]], dtype=int).reshape(-1, 2)
    return np.ascontiguousarray(first[1][rows[:, 0]]), np.ascontiguousarray(second[1][rows[:, 1]])


def timed(functions, rounds):
    """Returns results and median milliseconds of several functions, interleaved."""
    results, times = [None] * len(functions), [[] for _ in functions]
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            results[i] = function()
            times[i].append((time.perf_counter() - start) * 1e3)
    return results, [statistics.median(t) for t in times]


def mapped(h, points):
    image = np.c_[points, np.ones(len(points))] @ h.T
    return image[:, :2] / image[:, 2:]


def homography_error(h, truth, size):
    """Returns the mean distance between both mappings over a grid of points of image a that are visible in image b."""
    if h is None:
        return float("nan")
    grid = np.stack(np.meshgrid(np.linspace(0, size[0], 17), np.linspace(0, size[1], 17)), -1).reshape(-1, 2)
    expected = mapped(truth, grid)
    visible = (expected >= 0).all(1) & (expected[:, 0] <= size[0]) & (expected[:, 1] <= size[1])
    return float(np.linalg.norm(mapped(h, grid[visible]) - expected[visible], axis=1).mean())


def compare_homographies(library, cv2, command, data, folder, rounds, lines):
    lines += ["## Homographies", "",
              "True inliers: matches within 3 px of the true homography (forward), of those each method kept. Error: "
              "mean distance from the true mapping over the part of image 1 that image k shows, px; this library's is "
              "the median over five seeds.", "",
              "| pair | matches | true | inliers | of them true | error | ms "
              "| MAGSAC inliers | of them true | error | ms |",
              "|---|---|---|---|---|---|---|---|---|---|---|"]
    errors = []
    for name in ("graf", "boat", "leuven"):
        images = [data / "homography" / name / f"{k}.png" for k in range(1, 7)]
        features = extract(command, images, folder)
        height, width = cv2.imread(str(images[0]), 0).shape
        for k in range(2, 7):
            truth = np.loadtxt(data / "homography" / name / f"H_1_{k}")
            a, b = match(command, features[0], features[k - 1])
            right = np.linalg.norm(mapped(truth, a) - b, axis=1) < 3.0
            ours = lambda: library.verify(a, b, HOMOGRAPHY, THRESHOLD[HOMOGRAPHY])
            theirs = lambda: cv2.findHomography(a, b, cv2.USAC_MAGSAC, 3.0, maxIters=10000, confidence=0.9999)
            (mine, other), milliseconds = timed([ours, theirs], rounds)
            found = [library.verify(a, b, HOMOGRAPHY, THRESHOLD[HOMOGRAPHY], seed=seed)[0] for seed in SEEDS]
            error = statistics.median(homography_error(matrix, truth, (width, height)) for matrix in found)
            other_error = homography_error(other[0], truth, (width, height))
            if mine[0] is not None:
                errors.append((error, other_error))
            other_mask = other[1].ravel().astype(bool) if other[0] is not None else np.zeros(len(a), bool)
            lines.append(f"| {name} 1-{k} | {len(a)} | {right.sum()} | {mine[1].sum()} | {(mine[1] & right).sum()} | "
                         f"{error:.2f} | {milliseconds[0]:.1f} | "
                         f"{other_mask.sum()} | {(other_mask & right).sum()} | "
                         f"{other_error:.2f} | {milliseconds[1]:.1f} |")
    mine, other = (geometric_mean([pair[i] for pair in errors]) for i in range(2))
    lines.append(f"| **geometric mean of those found** | | | | | {mine:.3f} | | | | {other:.3f} | |")


def geometric_mean(values):
    return float(np.exp(np.log(values).mean()))


def read_poses(path):
    """Returns camera-to-world rotation and centre of each frame."""
    poses = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split()
        t, (x, y, z, w) = np.array(fields[2:5], float), np.array(fields[5:9], float)
        rotation = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                             [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                             [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])
        poses.append((fields[0], rotation, t))
    return poses


def angle_between(u, v):
    return np.degrees(np.arccos(np.clip(u @ v / np.linalg.norm(u) / np.linalg.norm(v), -1, 1)))


def rotation_angle(p, q):
    return np.degrees(np.arccos(np.clip((np.trace(p.T @ q) - 1) / 2, -1, 1)))


def epipolar_distance(f, a, b):
    """Returns Sampson distances in pixels."""
    x, y = np.c_[a, np.ones(len(a))], np.c_[b, np.ones(len(b))]
    line, back = x @ f.T, y @ f
    value = (y * line).sum(1)
    return np.abs(value) / np.sqrt((line[:, :2] ** 2).sum(1) + (back[:, :2] ** 2).sum(1))


def poselib_pose(a, b, camera):
    """Returns rotation and translation by PoseLib; NaN where it is not installed."""
    try:
        import poselib
    except ImportError:
        return np.full((3, 3), np.nan), np.full(3, np.nan)
    pinhole = {"model": "PINHOLE", "width": 640, "height": 480, "params": list(camera)}
    settings = {"max_epipolar_error": 1.0, "success_prob": 0.9999, "max_iterations": 10000}
    pose, _ = poselib.estimate_relative_pose(a, b, pinhole, pinhole, settings, {})
    return pose.R, pose.t


def compare_poses(library, cv2, command, data, folder, rounds, lines):
    desk = data / "slam" / "desk"
    values = [line for line in (desk / "intrinsics.txt").read_text().splitlines() if line.strip() and line[0] != "#"]
    _, _, fx, fy, cx, cy, *distortion = [float(v) for v in values[0].split()]
    matrix, camera = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]), (fx, fy, cx, cy)
    poses = read_poses(desk / "poses.txt")
    features = []
    for file, points in extract(command, [desk / pose[0] for pose in poses], folder):
        straight = cv2.undistortPoints(points.reshape(-1, 1, 2), matrix, np.array(distortion), P=matrix)
        features.append((file, straight.reshape(-1, 2)))
    lines += ["", "## Relative poses", "",
              "Essential matrix from undistorted points, then the relative pose, against the recorded trajectory "
              "(degrees); F: median Sampson distance (px) from the estimated fundamental matrix of the matches that "
              "the true one explains within 2 px. This library's angles are medians over five seeds.", "",
              "| frames | metres | matches | E inliers | rotation | translation | ms | MAGSAC inliers | rotation "
              "| translation | ms | PoseLib rotation | translation | F inliers | F | ms | MAGSAC inliers | F | ms |",
              "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    columns = []
    for i, j in itertools.combinations(range(len(poses)), 2):
        rotation = poses[j][1].T @ poses[i][1]
        translation = poses[j][1].T @ (poses[i][2] - poses[j][2])
        skew = np.array([[0, -translation[2], translation[1]], [translation[2], 0, -translation[0]],
                         [-translation[1], translation[0], 0]])
        inverse = np.linalg.inv(matrix)
        truth = inverse.T @ skew @ rotation @ inverse
        a, b = match(command, features[i], features[j])
        right = epipolar_distance(truth, a, b) < 2.0
        functions = [lambda: library.verify(a, b, ESSENTIAL, THRESHOLD[ESSENTIAL], camera),
                     lambda: cv2.findEssentialMat(a, b, matrix, method=cv2.USAC_MAGSAC, prob=0.9999, threshold=1.0,
                                                  maxIters=10000),
                     lambda: library.verify(a, b, FUNDAMENTAL, THRESHOLD[FUNDAMENTAL]),
                     lambda: cv2.findFundamentalMat(a, b, cv2.USAC_MAGSAC, 1.5, 0.9999, 10000)]
        (mine, other, mine_f, other_f), milliseconds = timed(functions, rounds)
        angles = []
        for seed in SEEDS:
            essential, mask, _ = library.verify(a, b, ESSENTIAL, THRESHOLD[ESSENTIAL], camera, seed)
            r, t = library.pose(essential, a, b, camera, mask)
            angles.append((rotation_angle(rotation, r), angle_between(translation, t)))
        turned, moved = (statistics.median(a[i] for a in angles) for i in range(2))
        _, r_other, t_other, _ = cv2.recoverPose(other[0][:3], a, b, matrix, mask=other[1].copy())
        r_poselib, t_poselib = poselib_pose(a, b, camera)
        row = [len(a), mine[1].sum(), turned, moved, milliseconds[0],
               int(other[1].sum()), rotation_angle(rotation, r_other), angle_between(translation, t_other.ravel()),
               milliseconds[1], rotation_angle(rotation, r_poselib), angle_between(translation, t_poselib),
               mine_f[1].sum(), np.median(epipolar_distance(mine_f[0], a, b)[right]), milliseconds[2],
               int(other_f[1].sum()), np.median(epipolar_distance(other_f[0], a, b)[right]), milliseconds[3]]
        columns.append(row)
        lines.append(f"| {poses[i][0][:2]}-{poses[j][0][:2]} | {np.linalg.norm(translation):.2f} | " + " | ".join(
            f"{v:.2f}" if isinstance(v, float) else str(v) for v in row) + " |")
    medians = np.median(np.array(columns, float), axis=0)
    lines.append("| **median** | | " + " | ".join(f"{v:.2f}" for v in medians) + " |")
    below = {name: sum(row[column] < 5.0 for row in columns) for name, column in (("here", 3), ("MAGSAC", 7), ("PoseLib", 10))}
    lines += ["", f"Translations less than 5 degrees off, of {len(columns)}: "
              + ", ".join(f"{name} {count}" for name, count in below.items()) + "."]


TOLERANCE, CONFIDENCE, ITERATIONS = 4.0, 0.9999, 10000
OTHERS_TOLERANCE = TOLERANCE / np.sqrt(2.0)


def scene_of(path, data):
    """Returns the scene of a photograph, or None if no other photograph shows it."""
    parts = path.relative_to(data).parts
    if parts[0] == "pairs":
        return {"box.png": "box", "box_in_scene.png": "box", "aero1.jpg": "aero", "aero3.jpg": "aero"}.get(parts[1])
    return parts[1] if len(parts) > 2 else None


def matched_pairs(command, data, folder):
    """Returns [(is related, points of a, points of b)] of all pairs of photographs."""
    images = sorted(path for name in ("homography", "slam", "pairs", "stitching")
                    for path in (data / name).glob("**/*.[pj][np]g"))
    names = {f"{number:03d}{path.suffix}": path for number, path in enumerate(images)}
    pictures = pathlib.Path(folder) / "pictures"
    pictures.mkdir()
    for name, path in names.items():
        (pictures / name).symlink_to(path.resolve())
    database = pathlib.Path(folder) / "pairs.db"
    subprocess.run([command, "extract", *sorted(pictures.iterdir()), "-o", database, "--profile", "colmap", "--device", "cpu",
                    "--quiet"], check=True)
    subprocess.run([command, "match", "--database", database, "--no-verify", "--device", "cpu", "--quiet"], check=True)
    connection = sqlite3.connect(database)
    scenes = {number: scene_of(names[name], data) for number, name in connection.execute("SELECT image_id, name FROM images")}
    places = {number: np.frombuffer(blob, np.float32).reshape(rows, columns)[:, :2].astype(float) for number, rows, columns, blob
              in connection.execute("SELECT image_id, rows, cols, data FROM keypoints")}
    pairs = []
    for pair, blob in connection.execute("SELECT pair_id, data FROM matches ORDER BY pair_id"):
        a, b = divmod(pair, 2147483647)
        rows = np.frombuffer(blob or b"", np.uint32).reshape(-1, 2)
        pairs.append((scenes[a] is not None and scenes[a] == scenes[b], np.ascontiguousarray(places[a][rows[:, 0]]),
                      np.ascontiguousarray(places[b][rows[:, 1]])))
    return pairs


def contenders(library):
    """Returns {name: function}. A function takes two arrays of points and returns the number of inliers."""
    found = {"hartsift": lambda a, b: library.verify(a, b, FUNDAMENTAL, TOLERANCE)[2].inlier_count}
    try:
        import cv2
        cv2.setNumThreads(1)
        for name in ("USAC_MAGSAC", "USAC_FAST"):
            def estimate(a, b, method=getattr(cv2, name)):
                if len(a) < 8:
                    return 0
                matrix, mask = cv2.findFundamentalMat(a, b, method, OTHERS_TOLERANCE, CONFIDENCE, ITERATIONS)
                return 0 if matrix is None else int(mask.sum())
            found[f"OpenCV {cv2.__version__} {name}"] = estimate
    except ImportError:
        print("skipped: OpenCV is not there")
    try:
        import poselib
        settings = {"max_epipolar_error": OTHERS_TOLERANCE, "success_prob": CONFIDENCE, "max_iterations": ITERATIONS}
        found["PoseLib"] = lambda a, b: poselib.estimate_fundamental(a, b, settings, {})[1]["num_inliers"] if len(a) > 6 else 0
    except ImportError:
        print("skipped: PoseLib is not there")
    try:
        import pycolmap
        options = pycolmap.RANSACOptions(max_error=OTHERS_TOLERANCE, confidence=CONFIDENCE, max_num_trials=ITERATIONS)

        def colmap(a, b):
            result = pycolmap.estimate_fundamental_matrix(a, b, options) if len(a) > 6 else None
            return 0 if result is None else int(result["num_inliers"])
        found[f"pycolmap {pycolmap.__version__}"] = colmap
    except ImportError:
        print("skipped: pycolmap is not there")
    return found


def time_all(functions, pairs, rounds):
    """Returns the shortest time (ms) and the number of inliers of each function and pair."""
    times = np.full((len(functions), len(pairs)), np.inf)
    inliers = np.zeros(times.shape, int)
    for _ in range(rounds):
        for p, (_, a, b) in enumerate(pairs):
            for f, function in enumerate(functions):
                start = time.perf_counter()
                inliers[f, p] = function(a, b)
                times[f, p] = min(times[f, p], (time.perf_counter() - start) * 1e3)
    return times, inliers


def print_rates(library, pairs, rounds):
    """Prints pairs per second on 1, 2, 4, ... threads. The library's calls release Python's lock."""
    cores, repeated = len(os.sched_getaffinity(0)), pairs * max(1, 4000 // len(pairs))
    threads = 1
    while threads <= cores:
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            best = float("inf")
            for _ in range(rounds):
                start = time.perf_counter()
                list(pool.map(lambda part: [library.verify(a, b, FUNDAMENTAL, TOLERANCE) for _, a, b in part],
                              [repeated[first::8 * threads] for first in range(8 * threads)]))
                best = min(best, time.perf_counter() - start)
        print(f"{threads} threads: {len(repeated) / best:.0f} pairs/s")
        threads *= 2


def compare_rates(library, command, data, rounds):
    """Prints the time per pair, compared with OpenCV's USAC, PoseLib and pycolmap on the same points in one interleaved
    run.

    All pairs of photographs are matched (profile colmap, at most 8192 features, mutual, ratio 0.8), so most pairs are
    unrelated. Photographs of one scene are known by their names. Our tolerance is 4 px for both points together, the
    others' threshold 2.8 px for one point. A pair's time is its minimum over the rounds.
"""
    with tempfile.TemporaryDirectory() as folder:
        pairs = matched_pairs(command, data, folder)
    found = contenders(library)
    times, inliers = time_all(list(found.values()), pairs, rounds)
    related = np.array([pair[0] for pair in pairs])
    counts = np.array([len(pair[1]) for pair in pairs])
    print(f"{related.sum()} related pairs of {counts[related].mean():.0f} matches on average, {(~related).sum()} unrelated ones of "
          f"{counts[~related].mean():.0f}; ms a pair, one thread (mean, 95 %, most):\n")
    print("| | related | | | unrelated | | | inliers, related | at least 15, unrelated |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, time_of, count_of in zip(found, times, inliers):
        cells = [f"{value:.3f}" for which in (related, ~related)
                 for value in (time_of[which].mean(), np.percentile(time_of[which], 95), time_of[which].max())]
        print(f"| {name} | " + " | ".join(cells) + f" | {count_of[related].sum()} | {(count_of[~related] >= 15).sum()} |")
    print()
    print_rates(library, pairs, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu")
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("HARTSIFT_DATA", ROOT.parent / "shared" / "data")))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", action="store_true", help="time of every two photographs instead of accuracy")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        import cv2
    except ImportError:
        print("skipped: no OpenCV for Python")
        return 77
    if not (arguments.data / "homography").is_dir():
        print("skipped: no image pairs; set HARTSIFT_DATA")
        return 77
    cv2.setNumThreads(1)
    library, command = Library(arguments.build / "libhartsift.so"), arguments.build / "hartsift"
    if arguments.rate:
        compare_rates(library, command, arguments.data, arguments.rounds)
        return 0
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        compare_homographies(library, cv2, command, arguments.data, folder, arguments.rounds, lines)
        compare_poses(library, cv2, command, arguments.data, folder, arguments.rounds, lines)
    text = "\n".join(["# Geometric verification beside OpenCV's USAC_MAGSAC", "",
                      f"OpenCV {cv2.__version__}, one thread each, run in turn, medians of {arguments.rounds} rounds; "
                      "at most 4000 features an image, matches of `hartsift match`; confidence 0.9999, at most 10000 "
                      f"iterations. Thresholds (px): homography {THRESHOLD[HOMOGRAPHY]:g} (Sampson) and 3 (forward); "
                      f"essential {THRESHOLD[ESSENTIAL]:g} and 1; fundamental {THRESHOLD[FUNDAMENTAL]:g} and 1.5.", "",
                      "Made by `python3 bench/bench.py verification` on "
                      f"{time.strftime('%Y-%m-%d')}.", ""]
                     + lines) + "\n"
    if arguments.output:
        arguments.output.write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
