"""Two views and reconstructions by COLMAP from features with and without affine shape and pooling, COLMAP's and hartsift's.

usage: shapes_table.py COMMAND DATA WORK [REPEATS [SET...]]
       (the command hartsift, the folder of photographs, a folder to work in, which of the sets of pictures)

Sets: desk (slam/desk), eight frames of a hand-held camera with true poses and its known focal length; room of
bench/pipelines/room_scene.py; and walk: the room seen from six places on a wide arc, neighbours 18 degrees
apart, so that walls appear from far to the side. Poses are exact in both rooms. Every row has the same
matcher, verification and mapper, pycolmap's with default options; features are RootSIFT at contrast 0.04 with COLMAP's limit of
8192, and both programs' options are COLMAP's. Two views: every pair of pictures with 8 matches or more, an essential
matrix by OpenCV's USAC_MAGSAC at 1 px from the raw matches and the true camera; the error is the larger of the angles of
rotation and translation, a pair without a matrix counts as failed; AUC: the area under the recall's curve up to 5, 10 and
20 degrees, in percent.
Seconds of processor time, both cores together. Needs NumPy, OpenCV and pycolmap.
"""
import contextlib
import pathlib
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

import cv2
import numpy
import pycolmap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pipelines"))
import pipeline_steps  # noqa: E402
import room_scene  # noqa: E402
import scene_truth  # noqa: E402

THREADS = 2
OPTIONS = ("", "dsp", "affine", "affine dsp")
THEIRS = {"dsp": "domain_size_pooling", "affine": "estimate_affine_shape"}
COLUMNS = {"matches a pair": 0, "AUC 5": 1, "AUC 10": 1, "AUC 20": 1, "registered": 0, "points": 0, "track length": 2,
           "reprojection error, px": 3, "position error, mm": 1, "extract, CPU s": 1, "match, CPU s": 1}  # and their digits
PROFILE = ("--profile", "colmap", "--contrast", "0.04")
LIMITS, ERROR_PX, LEAST_MATCHES = (5, 10, 20), 1.0, 8
WALK_VIEWS, WALK_STEP, WALK_RADIUS = 6, 18.0, 4.2


class Scene:
    """Pictures in a folder with the true cameras: matrix of the camera, rotations (world to camera) and centres by name."""

    def __init__(self, folder, first_pixel, focal_known):
        self.truth, self.focal_known = scene_truth.read_scene(folder), focal_known
        self.camera = next(iter(self.truth.cameras.values())).matrix.copy()
        self.camera[:2, 2] -= first_pixel  # here the centre of the first pixel is (0, 0)
        self.poses = {name: (pose[:, :3], scene_truth.centre(pose)) for name, pose in self.truth.poses.items()}


def desk(data, folder):
    shutil.copytree(data / "slam" / "desk", folder, dirs_exist_ok=True)
    return Scene(folder, 0, True)


def room(data, folder):
    room_scene.make_room(data, folder)
    return Scene(folder, 0.5, False)


def walk(data, folder):
    """Around the two boards in the middle of the room, from one side wall to the other."""
    cameras = []
    for i in range(WALK_VIEWS):
        angle = numpy.radians((i - (WALK_VIEWS - 1) / 2) * WALK_STEP)
        centre = numpy.array([WALK_RADIUS * numpy.sin(angle), -0.3 + 0.2 * (i % 3), 5.0 - WALK_RADIUS * numpy.cos(angle)])
        cameras.append((room_scene.rotation_towards(centre, (0.0, 0.2, 5.0), 0.1 * (i % 2)), centre))
    room_scene.make_room(data, folder, cameras, seed=11)
    return Scene(folder, 0.5, False)


# ------------------------------------------------------------------ features

def extract_theirs(options, database, pictures):
    extraction = pycolmap.FeatureExtractionOptions()
    extraction.use_gpu, extraction.num_threads = False, THREADS
    extraction.sift.peak_threshold = 0.04 / 3
    for option in options.split():
        setattr(extraction.sift, THEIRS[option], True)
    pycolmap.extract_features(str(database), str(pictures), camera_mode=pycolmap.CameraMode.SINGLE,
                              extraction_options=extraction)


def extract_ours(command, options, database, pictures):
    subprocess.run([command, "extract", *sorted(pictures.glob("*.png")), "-o", database, "--single-camera", "--threads",
                    str(THREADS), "--device", "cpu", "-q", *PROFILE, *(f"--{option}" for option in options.split())], check=True)


# ------------------------------------------------------------------ two views

def matched_places(database):
    """{(name, name): (places, places)} of the raw matches, in COLMAP's coordinates less half a pixel."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        names = dict(connection.execute("SELECT image_id, name FROM images"))
        rows = {i: numpy.frombuffer(blob, "<f4").reshape(n, columns)[:, :2] - 0.5
                for i, n, columns, blob in connection.execute("SELECT image_id, rows, cols, data FROM keypoints") if n}
        pairs = {}
        for pair, n, blob in connection.execute("SELECT pair_id, rows, data FROM matches"):
            first, second = divmod(pair, 2147483647)
            matches = numpy.frombuffer(blob or b"", "<u4").reshape(n, 2)
            if n >= LEAST_MATCHES:
                pairs[names[first], names[second]] = rows[first][matches[:, 0]], rows[second][matches[:, 1]]
    return pairs


def angle_between(a, b):
    return numpy.degrees(numpy.arccos(numpy.clip(abs(a @ b) / numpy.linalg.norm(a) / numpy.linalg.norm(b), 0, 1)))


def pose_error(scene, names, places):
    """Degrees; infinite where no essential matrix is found."""
    a, b = (numpy.ascontiguousarray(p, dtype=float) for p in places)
    cv2.setRNGSeed(0)
    essential, inliers = cv2.findEssentialMat(a, b, scene.camera, cv2.USAC_MAGSAC, 0.9999, ERROR_PX, 10000)
    if essential is None or essential.shape != (3, 3):
        return numpy.inf
    _, turn, shift, _ = cv2.recoverPose(essential, a, b, scene.camera, mask=inliers)
    (r1, c1), (r2, c2) = (scene.poses[name] for name in names)
    cosine = (numpy.trace(turn @ (r2 @ r1.T).T) - 1) / 2
    return max(numpy.degrees(numpy.arccos(numpy.clip(cosine, -1, 1))), angle_between(shift[:, 0], r2 @ (c1 - c2)))


def areas(errors, pairs):
    """AUC of the recall over `pairs` pairs."""
    found = numpy.sort(errors)
    return [100 * numpy.maximum(limit - found, 0).sum() / limit / pairs for limit in LIMITS]


def two_views(scene, database):
    pairs = matched_places(database)
    errors = [pose_error(scene, names, places) for names, places in pairs.items()]
    count = len(scene.poses) * (len(scene.poses) - 1) // 2
    return [sum(len(places[0]) for places in pairs.values()) / count, *areas(numpy.array(errors), count)]


# ------------------------------------------------------------------ rows

def spent():
    """Processor seconds of this process and of those it has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def reconstruct(settings, scene, database, work, seed):
    """Registered pictures, points, track length, reprojection error and position error in mm of the largest model."""
    folder = work / f"models{seed}"
    folder.mkdir()
    models = pipeline_steps.map_incremental(settings, database, scene.truth, folder, seed, scene.focal_known)
    if not models:
        return 0, 0, 0.0, float("nan"), float("nan")
    model = max(models.values(), key=lambda one: one.num_reg_images())
    found = {image.name: image.cam_from_world().matrix() for image in model.images.values() if image.has_pose}
    errors = scene_truth.pose_errors(found, scene.truth.poses)
    return (len(found), model.num_points3D(), model.compute_mean_track_length(), model.compute_mean_reprojection_error(),
            1000 * errors["position"] if errors else float("nan"))


def one_row(command, options, scene, pictures, work, repeats):
    """command None: COLMAP's features."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    settings, database = pipeline_steps.Settings(command, threads=THREADS), work / "database.db"
    start = spent()
    if command is None:
        extract_theirs(options, database, pictures)
    else:
        extract_ours(command, options, database, pictures)
    extraction = spent() - start
    if scene.focal_known:
        pipeline_steps.tell_focal_length(database, scene.truth)
    start = spent()
    pipeline_steps.match_colmap(settings, database, 0)
    matching = spent() - start
    pairs = two_views(scene, database)
    results = [reconstruct(settings, scene, database, work, seed) for seed in range(repeats)]
    return [*pairs, *(statistics.median(column) for column in zip(*results)), extraction, matching]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    command, data, work = (pathlib.Path(name).resolve() for name in sys.argv[1:4])
    repeats = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    for name in sys.argv[5:] or ["desk", "room", "walk"]:
        scene = {"desk": desk, "room": room, "walk": walk}[name](data, work / name)
        heading = " | ".join([f"{name}, {len(scene.poses)} pictures", *COLUMNS])
        print(f"\n| {heading} |\n|---|" + "--:|" * len(COLUMNS), flush=True)
        for options in OPTIONS:
            for label, program in (("COLMAP", None), ("hartsift", command)):
                row = one_row(program, options, scene, work / name, work / "run", repeats)
                cells = " | ".join(f"{value:.{digits}f}" for value, digits in zip(row, COLUMNS.values()))
                print(f"| {', '.join([label, *options.split()])} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
