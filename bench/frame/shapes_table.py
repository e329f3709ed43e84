"""Two views and reconstructions by COLMAP from features with and without affine shape and pooling, COLMAP's and hartsift's.

usage: shapes_table.py COMMAND DATA WORK [REPEATS [SET...]]
       (the command hartsift, the folder of photographs, a folder to work in, which of the sets of pictures)

Sets: desk and room of colmap_table.py, and walk: the room seen from six places on a wide arc, neighbours 18 degrees
apart, so that walls appear from far to the side. Poses are exact in both rooms. Every row has the same matcher,
verification and mapper, pycolmap's with default options; features are RootSIFT at contrast 0.04 with COLMAP's limit of
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
import sys
import time

import cv2
import numpy
import pycolmap

import colmap_table

OPTIONS = ("", "dsp", "affine", "affine dsp")
THEIRS = {"dsp": "domain_size_pooling", "affine": "estimate_affine_shape"}
COLUMNS = {"matches a pair": 0, "AUC 5": 1, "AUC 10": 1, "AUC 20": 1, "registered": 0, "points": 0, "track length": 2,
           "reprojection error, px": 3, "position error, mm": 1, "extract, CPU s": 1, "match, CPU s": 1}  # and their digits
PROFILE = ("--profile", "colmap", "--contrast", "0.04")
LIMITS, ERROR_PX, LEAST_MATCHES = (5, 10, 20), 1.0, 8
WALK_VIEWS, WALK_STEP, WALK_RADIUS = 6, 18.0, 4.2


class Scene:
    """Pictures in a folder with the true cameras: matrix of the camera, rotations (world to camera) and centres by name."""

    def __init__(self, camera, poses, focal):
        self.camera, self.poses, self.focal = camera, poses, focal
        self.centres = {name: centre for name, (_, centre) in poses.items()}


def turn_of_quaternion(x, y, z, w):
    return numpy.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def desk(data, folder):
    colmap_table.desk_pictures(data, folder)
    values = [float(v) for v in (data / "slam/desk/intrinsics.txt").read_text().splitlines()[1].split()]
    camera = numpy.array([[values[2], 0, values[4]], [0, values[3], values[5]], [0, 0, 1]])
    lines = [line.split() for line in (data / "slam/desk/poses.txt").read_text().splitlines() if not line.startswith("#")]
    return Scene(camera, {line[0]: (turn_of_quaternion(*map(float, line[5:9])).T, numpy.array(line[2:5], dtype=float))
                          for line in lines}, values[2])


def rooms_camera():
    (width, height), focal = colmap_table.ROOM_SIZE, colmap_table.ROOM_FOCAL
    return numpy.array([[focal, 0, width / 2 - 0.5], [0, focal, height / 2 - 0.5], [0, 0, 1]])


def room(data, folder):
    """The room of colmap_table.py; rotations as it has them."""
    poses = {}
    for name, centre in colmap_table.make_room(data, folder).items():
        t = int(name[:2]) / (colmap_table.ROOM_VIEWS - 1) * 2 - 1
        poses[name] = colmap_table.rotation_towards(centre, (-0.2 - 0.4 * t, 0.1, 5.0), 0.12 * numpy.cos(4 * t)), centre
    return Scene(rooms_camera(), poses, None)


def walk(data, folder):
    """Around the two boards in the middle of the room, from one side wall to the other."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rectangles, random, poses = colmap_table.walls(data), numpy.random.default_rng(11), {}
    for i in range(WALK_VIEWS):
        angle = numpy.radians((i - (WALK_VIEWS - 1) / 2) * WALK_STEP)
        centre = numpy.array([WALK_RADIUS * numpy.sin(angle), -0.3 + 0.2 * (i % 3), 5.0 - WALK_RADIUS * numpy.cos(angle)])
        rotation = colmap_table.rotation_towards(centre, (0.0, 0.2, 5.0), 0.1 * (i % 2))
        name = f"{i:02}.png"
        noise = random.normal(0, 1.5, colmap_table.ROOM_SIZE[::-1])
        cv2.imwrite(str(folder / name), colmap_table.render(rectangles, rotation, centre, noise))
        poses[name] = rotation, centre
    return Scene(rooms_camera(), poses, None)


# ------------------------------------------------------------------ features

def extract_theirs(options, database, pictures):
    extraction = pycolmap.FeatureExtractionOptions()
    extraction.use_gpu, extraction.num_threads = False, int(colmap_table.THREADS)
    extraction.sift.peak_threshold = 0.04 / 3
    for option in options.split():
        setattr(extraction.sift, THEIRS[option], True)
    pycolmap.extract_features(str(database), str(pictures), camera_mode=pycolmap.CameraMode.SINGLE,
                              extraction_options=extraction)


def extract_ours(command, options, database, pictures):
    colmap_table.run(command, "extract", *sorted(pictures.glob("*.png")), "-o", database, "--single-camera", "--threads",
                     colmap_table.THREADS, "--device", "cpu", "-q", *PROFILE, *(f"--{option}" for option in options.split()))


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


def one_row(command, options, scene, pictures, work, repeats):
    """command None: COLMAP's features."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    database, results = work / "database.db", []
    start = spent()
    if command is None:
        extract_theirs(options, database, pictures)
    else:
        extract_ours(command, options, database, pictures)
    extraction = spent() - start
    if scene.focal:
        colmap_table.tell_focal_length(database, scene.focal)
    start = spent()
    colmap_table.Pycolmap.match(database)
    matching = spent() - start
    pairs = two_views(scene, database)
    for repeat in range(repeats):
        folder = work / f"models{repeat}"
        folder.mkdir()
        models = colmap_table.Pycolmap.reconstruct(database, pictures, folder, scene.focal)
        largest = max(models, key=lambda model: len(colmap_table.read_model(model)[0]), default=None)
        results.append(colmap_table.score(largest, scene.centres))
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
