"""How long verification of a pair takes, beside OpenCV's USAC, PoseLib and pycolmap on the same points in one interleaved run.

Every two of the photographs are matched (COLMAP's profile, at most 8192 features, mutual, ratio 0.8), so that most pairs are
unrelated; those of one scene are known by their names. Fundamental matrices, tolerance 4 px (of both points together; the
others' threshold is 2.8 px of one), confidence 0.9999, at most 10000 iterations. A pair's time is its shortest of the rounds.

usage: verification_rate.py [--build DIR] [--data DIR] [--rounds N]
"""
import argparse
import concurrent.futures
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

import numpy as np

from compare_verification import FUNDAMENTAL, ROOT, Library

TOLERANCE, CONFIDENCE, ITERATIONS = 4.0, 0.9999, 10000
OTHERS_TOLERANCE = TOLERANCE / np.sqrt(2.0)


def scene_of(path, data):
    """Photographs with the same answer show the same scene; None: of a scene alone."""
    parts = path.relative_to(data).parts
    if parts[0] == "pairs":
        return {"box.png": "box", "box_in_scene.png": "box", "aero1.jpg": "aero", "aero3.jpg": "aero"}.get(parts[1])
    return parts[1] if len(parts) > 2 else None


def matched_pairs(command, data, folder):
    """[(is related, points of a, points of b)] of every two photographs."""
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
    """name: function of two arrays of points that says how many inliers it found."""
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
    """The shortest time (ms) and the number of inliers of each function and pair."""
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
    """Pairs a second on 1, 2, 4, ... threads; the library's calls let other threads run."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "cpu")
    parser.add_argument("--data", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("HARTSIFT_DATA", ROOT.parent / "shared" / "data")))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not (arguments.data / "homography").is_dir():
        print("skipped: no photographs; set HARTSIFT_DATA")
        return 77
    library = Library(arguments.build / "libhartsift.so")
    with tempfile.TemporaryDirectory() as folder:
        pairs = matched_pairs(arguments.build / "hartsift", arguments.data, folder)
    found = contenders(library)
    times, inliers = time_all(list(found.values()), pairs, arguments.rounds)
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
    print_rates(library, pairs, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
