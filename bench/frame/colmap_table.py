"""Reconstructions by COLMAP's mapper from COLMAP's own features and from hartsift's, side by side, as Markdown.

usage: colmap_table.py COMMAND DATA WORK [REPEATS [SET...]]
       (the command hartsift, the folder of photographs, a folder to work in, which of the sets of pictures)

Sets: desk (slam/desk), eight frames of a hand-held camera with true poses and its known focal length, which is not refined:
so little travel leaves it in doubt; and room, rendered from photographs as walls, floor and boards, with exact poses and
the focal length left to COLMAP. For each set, for Debian's colmap and for pycolmap (where they are): COLMAP's own CPU
extraction, matching and verification; hartsift's features with COLMAP's matching; hartsift's features, matches and
verification. The mapper is COLMAP's in every row. That of pycolmap does not repeat itself exactly: its rows are the median
of REPEATS (3) reconstructions from one database.
"""
import contextlib
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

import cv2
import numpy

try:
    import pycolmap
except ImportError:
    pycolmap = None

THREADS = "2"
PROFILES = {"colmap": ["--profile", "colmap"], "lowe, root": ["--profile", "lowe", "--norm", "root"],
            "lowe, root, contrast 0.02": ["--profile", "lowe", "--norm", "root", "--contrast", "0.02", "--max-features", "8192"]}
ROOM_VIEWS, ROOM_SIZE, ROOM_FOCAL, SUPERSAMPLING = 12, (512, 384), 500.0, 3


# ------------------------------------------------------------------ the room

def walls(data):
    """Rectangles in space: texture, corner, and its edges along the texture's width and height."""
    def photo(name):
        return cv2.imread(str(data / name), cv2.IMREAD_GRAYSCALE)
    return [
        (photo("formats/exif/Landscape_1.jpg"), (-4.0, -2.4, 6.0), (8.0, 0, 0), (0, 4.4, 0)),
        (photo("stitching/river/1.jpg"), (-4.0, 2.0, 6.0), (8.0, 0, 0), (0, 0, -5.0)),
        (photo("pairs/building.jpg"), (-3.2, -2.4, 1.5), (0, 0, 4.5), (0, 4.4, 0)),
        (photo("homography/graf/1.png"), (0.6, -0.2, 4.0), (1.9, 0, 0.5), (0, 1.5, 0)),
        (photo("homography/boat/1.png"), (-2.0, 0.1, 4.4), (1.7, 0, -0.4), (0, 1.4, 0)),
    ]


def rotation_towards(centre, target, roll):
    """World to camera, y down."""
    forward = numpy.subtract(target, centre) / numpy.linalg.norm(numpy.subtract(target, centre))
    right = numpy.cross([0, 1, 0], forward)
    right /= numpy.linalg.norm(right)
    level = numpy.stack([right, numpy.cross(forward, right), forward])
    turn = numpy.array([[numpy.cos(roll), -numpy.sin(roll), 0], [numpy.sin(roll), numpy.cos(roll), 0], [0, 0, 1]])
    return turn @ level


def render(rectangles, rotation, centre, noise):
    """The nearest rectangle along each ray, sampled finely and averaged."""
    width, height = (side * SUPERSAMPLING for side in ROOM_SIZE)
    x, y = numpy.meshgrid(numpy.arange(width), numpy.arange(height))
    focal = ROOM_FOCAL * SUPERSAMPLING
    rays = numpy.stack([(x + 0.5 - width / 2) / focal, (y + 0.5 - height / 2) / focal, numpy.ones(x.shape)], axis=-1) @ rotation
    nearest = numpy.full(x.shape, numpy.inf)
    picture = numpy.full(x.shape, 90, numpy.float32)
    for texture, corner, along, down in rectangles:
        frame = numpy.stack([along, down, numpy.cross(along, down)], axis=1).astype(float)
        place = numpy.linalg.solve(frame, numpy.subtract(centre, corner))
        step = rays @ numpy.linalg.inv(frame).T
        with numpy.errstate(divide="ignore", invalid="ignore"):
            depth = -place[2] / step[..., 2]
            u, v = (place[i] + depth * step[..., i] for i in (0, 1))
        hit = (depth > 0.05) & (depth < nearest) & (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
        sampled = cv2.remap(texture.astype(numpy.float32), (u * texture.shape[1] - 0.5).astype(numpy.float32),
                            (v * texture.shape[0] - 0.5).astype(numpy.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        picture[hit] = sampled[hit]
        nearest[hit] = depth[hit]
    small = cv2.resize(picture, ROOM_SIZE, interpolation=cv2.INTER_AREA)
    return numpy.clip(numpy.round(small + noise), 0, 255).astype(numpy.uint8)


def make_room(data, folder):
    """Pictures from an arc around the middle of the room; returns the true centres by name."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rectangles = walls(data)
    random = numpy.random.default_rng(7)
    centres = {}
    for i in range(ROOM_VIEWS):
        t = i / (ROOM_VIEWS - 1) * 2 - 1
        centre = numpy.array([1.6 * t, -0.3 + 0.35 * numpy.sin(5 * t), -0.6 + 0.8 * t * t])
        rotation = rotation_towards(centre, (-0.2 - 0.4 * t, 0.1, 5.0), 0.12 * numpy.cos(4 * t))
        name = f"{i:02}.png"
        cv2.imwrite(str(folder / name), render(rectangles, rotation, centre, random.normal(0, 1.5, ROOM_SIZE[::-1])))
        centres[name] = centre
    return centres


def desk_centres(data):
    lines = [line.split() for line in (data / "slam/desk/poses.txt").read_text().splitlines() if not line.startswith("#")]
    return {line[0]: numpy.array(line[2:5], dtype=float) for line in lines}


def desk_pictures(data, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for picture in sorted((data / "slam/desk").glob("*.png")):
        shutil.copy(picture, folder)


# ------------------------------------------------------------------ what a reconstruction is worth

def read_model(folder):
    """Camera centres by name, and points as (error, track length), of a model in COLMAP's text format."""
    centres = {}
    lines = [line for line in (folder / "images.txt").read_text().split("\n") if not line.startswith("#")]
    for line in lines[0::2]:
        fields = line.split()
        if len(fields) >= 10:
            w, x, y, z = map(float, fields[1:5])
            rotation = numpy.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                                    [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                                    [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
            centres[fields[9]] = -rotation.T @ numpy.array(fields[5:8], dtype=float)
    points = []
    for line in (folder / "points3D.txt").read_text().split("\n"):
        fields = line.split()
        if fields and not line.startswith("#"):
            points.append((float(fields[7]), (len(fields) - 8) // 2))
    return centres, points


def position_error(found, truth):
    """Root mean square distance of the camera centres after the best similarity, in the truth's unit."""
    names = sorted(set(found) & set(truth))
    if len(names) < 3:
        return float("nan")
    a, b = (numpy.array([centres[name] for name in names]) for centres in (found, truth))
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    u, s, vt = numpy.linalg.svd(b.T @ a)
    d = numpy.diag([1, 1, numpy.sign(numpy.linalg.det(u @ vt))])
    scale = (s * numpy.diag(d)).sum() / (a * a).sum()
    return float(numpy.sqrt(((scale * a @ (u @ d @ vt).T - b) ** 2).sum(axis=1).mean()))


def score(model, truth):
    if model is None:
        return (0, 0, 0.0, float("nan"), float("nan"))
    centres, points = read_model(model)
    lengths = [length for _, length in points]
    # COLMAP's own mean error is over points here, as in its model_analyzer.
    return (len(centres), len(points), sum(lengths) / max(1, len(points)),
            sum(error for error, _ in points) / max(1, len(points)), 1000 * position_error(centres, truth))


# ------------------------------------------------------------------ the two programs

def run(*arguments):
    environment = dict(os.environ, QT_QPA_PLATFORM="offscreen")
    finished = subprocess.run([str(a) for a in arguments], check=False, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    if finished.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{finished.stdout[-2000:]}")
    return finished.stdout


class Debian:
    """COLMAP 3.8 through its command."""
    name = "COLMAP 3.8 (Debian)"
    repeats_itself = True

    @staticmethod
    def extract(database, pictures):
        run("colmap", "feature_extractor", "--database_path", database, "--image_path", pictures,
            "--ImageReader.single_camera", 1, "--SiftExtraction.use_gpu", 0, "--SiftExtraction.num_threads", THREADS)

    @staticmethod
    def match(database):
        run("colmap", "exhaustive_matcher", "--database_path", database, "--SiftMatching.use_gpu", 0,
            "--SiftMatching.num_threads", THREADS)

    @staticmethod
    def reconstruct(database, pictures, folder, focal):
        run("colmap", "mapper", "--database_path", database, "--image_path", pictures, "--output_path", folder,
            "--Mapper.num_threads", THREADS, "--Mapper.ba_refine_focal_length", 0 if focal else 1)
        models = sorted(path for path in folder.iterdir() if path.is_dir())
        for model in models:
            run("colmap", "model_converter", "--input_path", model, "--output_path", model, "--output_type", "TXT")
        return models


class Pycolmap:
    """The current COLMAP through its Python package."""
    name = f"pycolmap {pycolmap.__version__}" if pycolmap else ""
    repeats_itself = False

    @staticmethod
    def extract(database, pictures):
        options = pycolmap.FeatureExtractionOptions()
        options.use_gpu, options.num_threads = False, int(THREADS)
        pycolmap.extract_features(str(database), str(pictures), camera_mode=pycolmap.CameraMode.SINGLE,
                                  extraction_options=options)

    @staticmethod
    def match(database):
        options = pycolmap.FeatureMatchingOptions()
        options.use_gpu, options.num_threads = False, int(THREADS)
        pycolmap.match_exhaustive(str(database), matching_options=options)

    @staticmethod
    def reconstruct(database, pictures, folder, focal):
        options = pycolmap.IncrementalPipelineOptions()
        options.num_threads = int(THREADS)
        options.ba_refine_focal_length = not focal
        models = []
        for index, model in pycolmap.incremental_mapping(str(database), str(pictures), str(folder), options).items():
            path = folder / f"text{index}"
            path.mkdir()
            model.write_text(str(path))
            models.append(path)
        return models


# ------------------------------------------------------------------ rows

def tell_focal_length(database, focal):
    with contextlib.closing(sqlite3.connect(database)) as connection:
        size, = connection.execute("SELECT width, height FROM cameras").fetchall()
        parameters = numpy.array([focal, size[0] / 2, size[1] / 2, 0], "<f8").tobytes()
        connection.execute("UPDATE cameras SET params = ?, prior_focal_length = 1", [parameters])
        connection.commit()


def features_and_matches(program, command, row, database, pictures, focal):
    """Fills the database; returns the seconds of extraction and of matching with verification."""
    _, profile, matcher = row
    start = time.monotonic()
    if profile is None:
        program.extract(database, pictures)
    else:
        run(command, "extract", *sorted(pictures.glob("*.png")), "-o", database, "--single-camera", "--threads", THREADS,
            "--device", "cpu", "-q", *PROFILES[profile])
    extraction = time.monotonic() - start
    if focal:
        tell_focal_length(database, focal)
    start = time.monotonic()
    if matcher == "hartsift":
        run(command, "match", "--database", database, "--threads", THREADS, "--device", "cpu", "-q")
    else:
        program.match(database)
    return extraction, time.monotonic() - start


def one_row(program, command, row, pictures, truth, focal, work, repeats):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    database = work / "database.db"
    seconds = features_and_matches(program, command, row, database, pictures, focal)
    results = []
    for repeat in range(1 if program.repeats_itself else repeats):
        folder = work / f"models{repeat}"
        folder.mkdir()
        models = program.reconstruct(database, pictures, folder, focal)
        largest = max(models, key=lambda model: len(read_model(model)[0]), default=None)
        results.append(score(largest, truth) + seconds)
        print(f"  {program.name}: {row[0]}, {repeat + 1} of {repeats}: {results[-1]}", file=sys.stderr, flush=True)
    return [statistics.median(column) for column in zip(*results)]


def main():
    command, data, work = (pathlib.Path(name).resolve() for name in sys.argv[1:4])
    repeats = int(sys.argv[4]) if len(sys.argv) > 4 else 3
    desk_focal = float((data / "slam/desk/intrinsics.txt").read_text().splitlines()[1].split()[2])
    chosen = sys.argv[5:] or ["desk", "room"]
    sets = {}
    if "desk" in chosen:
        desk_pictures(data, work / "desk")
        sets["desk"] = (desk_centres(data), desk_focal)
    if "room" in chosen:
        sets["room"] = (make_room(data, work / "room"), None)
    programs = ([Debian] if shutil.which("colmap") else []) + ([Pycolmap] if pycolmap else [])
    rows = [("COLMAP's own features and matches", None, "COLMAP")]
    for profile in PROFILES:
        rows.append((f"hartsift `{profile}`, COLMAP's matches", profile, "COLMAP"))
        rows.append((f"hartsift `{profile}`, hartsift's matches", profile, "hartsift"))
    for name, (truth, focal) in sets.items():
        for program in programs:
            print(f"\n## {name}, {len(truth)} pictures, {program.name}\n\n"
                  "| features, matches and verification | registered | points | track length | reprojection error, px |"
                  " position error, mm | extract, s | match, s |\n|---|--:|--:|--:|--:|--:|--:|--:|")
            for row in rows:
                images, points, track, error, position, extract, match = one_row(
                    program, command, row, work / name, truth, focal, work / "run", repeats)
                print(f"| {row[0]} | {images:.0f} | {points:.0f} | {track:.2f} | {error:.3f} | {position:.1f} |"
                      f" {extract:.1f} | {match:.1f} |", flush=True)


if __name__ == "__main__":
    main()
