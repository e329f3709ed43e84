"""Replays inputs that once gave wrong results silently, one folder each with a README (../shared/data/faults, or faults
in
HARTSIFT_DATA). The command's result must be the one that the README describes.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs Python's standard library; rigs are made with
pycolmap. Statements of READMEs about the Python package are tested in python/tests/test_faults_played.py.
"""
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, DONE, FAILED, SKIPPED, CommandCase, main, read_ppm  # noqa: E402

try:
    import pycolmap
except ImportError:
    pycolmap = None

DATA = pathlib.Path(os.environ.get("HARTSIFT_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))
FAULTS = DATA / "faults"
BY_PYTHON = {"bfmatcher-none", "cv2_dropin_arguments"}  # replayed in python/tests only
PAIR_BASE = 2147483647
TWO_VIEWS = "two_view_geometries"
WATERMARK = 7


class Case(CommandCase):
    def copy(self, source, name):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        shutil.copyfile(source, self.path(name))
        return name

    def make_scenes(self, names, size="120x90"):
        """Makes a generated picture under each of these names."""
        for seed, name in enumerate(names, 1):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.run_it("draw", f"@scene:{size}:{seed}", "-o", name, "--max-features", "1", "-q")
        return list(names)

    def count(self, picture, *options):
        """Returns the number of features, and the messages."""
        output, errors = self.extract(str(picture), "--json", "-o", "counted.npz", *options)
        return json.loads(output)["features"], errors

    def matched(self, *options, status=DONE, name="d.db"):
        """Returns the records of pairs, and the messages."""
        output, errors = self.run_it("match", "--database", name, "--json", *options, status=status)
        return [json.loads(line) for line in output.decode().splitlines()], errors

    def pairs(self, table="matches", name="d.db"):
        names = dict(self.ask("SELECT image_id, name FROM images", name=name))
        numbers = self.ask(f"SELECT pair_id FROM {table} ORDER BY pair_id", name=name)
        return {tuple(sorted((names[pair // PAIR_BASE], names[pair % PAIR_BASE]))) for pair, in numbers}


class Files(Case):
    """Tests photographs and their files."""

    def test_batch_skips_silently(self):
        _, errors = self.run_it("batch", str(FAULTS / "batch_skips_silently/photos"), "-o", "x/")
        self.assertIn("5 images: 5 done", errors)
        self.assertIn("2 files were passed over by their endings: 1 .dng, 1 .heic", errors)
        self.assertEqual([name for name in self.files("x") if name.endswith(".npz")],
                         ["a.npz", "b.npz", "c.npz", "d.npz", "e.npz"])

    def test_png_exif(self):
        folder = FAULTS / "png_exif"
        self.extract(*(str(folder / f"photo.{ending}") for ending in ("png", "tif", "webp")), "-o", "d.db")
        cameras = self.ask("SELECT width, height, params, prior_focal_length FROM cameras")
        self.assertEqual(len(set(cameras)), 1)
        width, height, parameters, prior = cameras[0]
        self.assertEqual((width, height, prior), (200, 150, 1))
        self.assertAlmostEqual(struct.unpack("<4d", parameters)[0], 138.66, delta=0.01)
        self.assertEqual(self.ask("SELECT count(DISTINCT position), count(*) FROM pose_priors"), [(1, 3)])
        for ending in ("png", "tif", "webp"):  # upright, unless the format is COLMAP's, which reads pictures as stored
            self.assertIn("150x200", self.extract(str(folder / f"photo.{ending}"), "-o", "x.npz")[1])

    def test_tiff_thumbnail_first(self):
        folder = FAULTS / "tiff_thumbnail_first"
        self.assertIn("200x150", self.extract(str(folder / "thumb_then_full.tif"), "-o", "x.npz")[1])
        _, errors = self.extract(str(folder / "like_dji.dng"), "-o", "y.npz", status=FAILED)
        self.assertIn("raw data", errors)
        self.assertNotIn("y.npz", self.files())

    def test_sixteen_bit_low_range(self):
        folder = FAULTS / "sixteen_bit_low_range"
        right, errors = self.count(folder / "same_as_8bit.png")
        self.assertEqual((right, errors.count("warning")), (64, 0))
        # MaxSampleValue or the option gives the range.
        for options in ((), ("--value-range", "0:4095")):
            self.assertAlmostEqual(self.count(folder / "twelve_bit.tif", *options)[0], right, delta=3)
        found, errors = self.count(folder / "thermal.tif")
        self.assertEqual(found, 0)
        self.assertIn("--value-range", errors)
        self.assertAlmostEqual(self.count(folder / "thermal.tif", "--value-range", "7000:7765")[0], right, delta=3)
        _, errors = self.run_it("batch", str(folder), "-o", "x/")
        self.assertIn("3 done, 0 kept, 0 failed, 1 without a feature", errors)

    def test_describe_near_right_border(self):
        folder = FAULTS / "describe_near_right_border"
        self.extract(str(folder / "odd.png"), "--keypoints", str(folder / "keys.frame"), "-o", "x.json")
        features = json.loads(self.read("x.json"))["features"]
        self.assertEqual(len(features), 4)
        for feature in features:
            self.assertTrue(any(feature["descriptor"]), feature)


class Masks(Case):
    def test_masks_that_match_nothing(self):
        photo = str(FAULTS / "resume_database_stale/v1.jpg")
        os.mkdir(self.path("empty"))
        for command, output in (("extract", "x.npz"), ("extract", "x.db"), ("batch", "x/")):
            operand = photo if command == "extract" else os.path.dirname(photo)
            _, errors = self.run_it(command, operand, "--masks", "empty", "-o", output, status=FAILED)
            self.assertIn("have a mask there: for v1.jpg expected v1.jpg.png, or else v1.png", errors)

    def test_masks_colmap_rule(self):
        folder = FAULTS / "masks_colmap_rule"
        for output in ("x/", "x.db"):
            _, errors = self.run_it("batch", str(folder / "images"), "-o", output, "--masks", str(folder / "masks"))
            self.assertIn("1 of 2 images has a mask", errors)
        whole, _ = self.count(folder / "images/IMG_1.jpg")
        (masked,), = self.ask("SELECT rows FROM keypoints JOIN images USING (image_id) WHERE name = 'IMG_1.jpg'", name="x.db")
        self.assertTrue(0 < masked < whole, (masked, whole))


class Resumed(Case):
    def test_resume_database_stale(self):
        folder = FAULTS / "resume_database_stale"
        self.copy(folder / "v1.jpg", "p/a.jpg")
        os.utime(self.path("p/a.jpg"), (2e9, 2e9))
        self.run_it("batch", "p", "-o", "x.db")
        self.run_it("batch", "p", "-o", "f/")
        self.copy(folder / "v2.jpg", "p/a.jpg")
        for time in (2e9 + 5, 1e9):  # a newer time, then an older one, as after cp -p and rsync -a
            os.utime(self.path("p/a.jpg"), (time, time))
            for output, options in (("x.db", ()), ("x.db", ("--replace",)), ("f/", ())):
                _, errors = self.run_it("batch", "p", "-o", output, "--resume", *options)
                first = time > 2e9 and not options
                self.assertIn("1 done, 0 kept" if first else "0 done, 1 kept", errors, (time, output, options))
                self.assertEqual("1 changed since they were done" in errors, first)
        self.run_it("batch", "p", "-o", "one.db")
        self.assertEqual(self.ask("SELECT rows, data FROM keypoints", name="x.db"),
                         self.ask("SELECT rows, data FROM keypoints", name="one.db"))


class Cameras(Case):
    CAMERAS = "SELECT camera_id, model, width, height, prior_focal_length FROM cameras"

    def test_camera_options_ignored(self):
        images = self.make_scenes(["A.png", "B.png", "C.png"])
        self.extract(*images, "-o", "d.db", "--profile", "colmap")
        before = self.ask(self.CAMERAS)
        known = ("--single-camera", "--camera-model", "PINHOLE", "--camera-params", "145.2,145.2,60,45")
        _, errors = self.extract(*images, "-o", "d.db", "--profile", "colmap", *known, status=FAILED)
        self.assertIn("camera", errors)
        self.assertEqual(self.ask(self.CAMERAS), before)
        self.extract(*images, "-o", "d.db", "--profile", "colmap", *known, "--replace")
        self.assertEqual(self.ask(self.CAMERAS), [(1, 1, 120, 90, 1)])

    def test_camera_per_folder(self):
        images = self.make_scenes([f"images/{side}/{i}.png" for side in ("left", "right") for i in (1, 2)])
        option = ("--image-path", "images", "--single-camera-per-folder")
        self.extract(*images, *option, "-o", "d.db")
        self.extract(*images[:2], *option, "-o", "two.db")
        self.extract(*images[2:], *option, "-o", "two.db")
        rows = "SELECT name, camera_id FROM images ORDER BY name"
        self.assertEqual([camera for _, camera in self.ask(rows)], [1, 1, 2, 2])
        self.assertEqual(self.ask(rows, name="two.db"), self.ask(rows))
        self.assertEqual(len(self.ask(self.CAMERAS, name="two.db")), 2)
        # Added pictures keep the cameras of their rig.
        make_rig(self.path("two.db"))
        images += self.make_scenes(["images/left/3.png", "images/right/3.png"])
        self.extract(*images[-2:], *option, "-o", "two.db")
        make_rig(self.path("two.db"))
        self.assertEqual(self.ask("SELECT count(DISTINCT camera_id), count(*) FROM images", name="two.db"), [(2, 6)])
        self.assertEqual(self.ask("SELECT count(*) FROM rigs", name="two.db"), [(1,)])

    def test_rig_sequential(self):
        folder = "images/{}/f{}.png"
        images = self.make_scenes([folder.format(side, i) for side in ("left", "right") for i in range(8)], "60x45")
        self.extract(*images, "--image-path", "images", "--single-camera-per-folder", "-o", "d.db")
        make_rig(self.path("d.db"))
        self.matched("--pairs", "sequential:1", "--no-verify")
        found = self.pairs()
        self.assertEqual(len(found), 36)
        self.assertEqual(sum(a.startswith("left") and b.startswith("right") for a, b in found), 22)
        self.assertNotIn(("left/f7.png", "right/f0.png"), found)


def make_rig(path):
    """Makes one rig of the cameras of left/ and right/."""
    if pycolmap is None:
        raise unittest.SkipTest("pycolmap is not installed")
    part = pycolmap.RigConfigCamera
    rig = pycolmap.RigConfig(cameras=[part(ref_sensor=True, image_prefix="left/"),
                                      part(image_prefix="right/", cam_from_rig=pycolmap.Rigid3d())])
    with contextlib.closing(pycolmap.Database.open(path)) as database:
        pycolmap.apply_rig_config([rig], database)


class Pairs(Case):
    """Tests databases: matches and their geometry."""

    def photographs(self, *sources):
        """Makes JPEG files, each decoded at half its size."""
        for source in sources:
            self.run_it("draw", str(source), "-o", f"{source.stem}.ppm", "--decode-scale", "2", "--max-features", "1",
                        "--circle-scale", "0.1", "-q")
        return [f"{source.stem}.ppm" for source in sources]

    def facade(self, count):
        return self.photographs(*sorted((DATA / "sfm/facade").glob("*.jpg"))[:count])

    def test_matches_without_geometry(self):
        images = self.facade(2)
        self.extract(*images, "-o", "d.db", "--profile", "colmap", "--max-features", "1500", "-q")
        unmatched = self.read("d.db")
        self.matched()
        right = self.ask(f"SELECT * FROM {TWO_VIEWS}")
        self.assertGreater(right[0][1], 100)
        # Matches were made by match --no-verify, left by COLMAP's cleaner, or made by another program without
        # descriptors.
        for way in ("--no-verify", "cleaner", "raw"):
            self.write("d.db", unmatched)
            self.matched(*(["--no-verify"] if way == "--no-verify" else []))
            self.ask(f"DELETE FROM {TWO_VIEWS}")
            if way == "raw":
                self.ask("DELETE FROM descriptors")
            _, errors = self.matched()
            self.assertIn("1 had matches without geometry", errors)
            self.assertEqual(self.ask(f"SELECT * FROM {TWO_VIEWS}"), right, way)

    def test_stale_matches_after_cleared_features(self):
        images = self.facade(3)
        options = ("--profile", "colmap", "--selection", "scale", "--max-features")
        self.extract(*images, "-o", "one.db", *options, "300", "-q")
        self.matched(name="one.db")
        self.extract(*images, "-o", "d.db", *options, "800", "-q")
        self.matched()
        for where in ("", " WHERE image_id = 2"):
            self.ask("DELETE FROM keypoints" + where)
            self.ask("DELETE FROM descriptors" + where)
            self.extract(*images, "-o", "d.db", *options, "300", "-q")
            _, errors = self.matched()
            self.assertIn(f"({0 if not where else 1} already had matches, 0 failed)", errors)
            for table in ("matches", TWO_VIEWS):
                self.assertEqual(self.ask(f"SELECT pair_id, rows, data FROM {table} ORDER BY 1"),
                                 self.ask(f"SELECT pair_id, rows, data FROM {table} ORDER BY 1", name="one.db"))

    def test_per_pair_error_flood(self):
        self.extract(*(f"@scene:64x48:{seed}" for seed in range(1, 12)), "-o", "d.db", "-q")
        start = self.read("d.db")
        for fault in ("DELETE FROM descriptors", "ALTER TABLE descriptors ADD COLUMN type INTEGER DEFAULT 2", None):
            self.write("d.db", start)
            if fault:
                self.ask(fault)
            _, errors = self.matched(*([] if fault else ["--max-memory", "1000"]), status=FAILED)
            self.assertLessEqual(len(errors.splitlines()), 12, errors)
            self.assertIn("55 failed", errors)

    def test_ray_sequential_failed_image(self):
        """Tests the command; python/tests/test_ray.py compares Ray with it."""
        images = self.make_scenes(["p/cam1/00.png", "p/cam1/01.png", "p/cam1/02.png", "p/cam2/03.png", "p/cam2/04.png"])
        self.write("p/cam1/bad.jpg", b"no jpg")
        self.run_it("batch", "p", "-o", "d.db", status=FAILED)
        self.matched("--pairs", "sequential:1")
        names = [name[2:] for name in images]
        self.assertEqual(self.pairs(TWO_VIEWS), set(zip(names, names[1:])))

    def caption(self, name):
        """Appends a bar of 64 rows below a picture: black, with the same white strokes each time."""
        width, height, pixels = read_ppm(self.read(name))
        rows = []
        for y in range(64):
            row = bytearray(3 * width)
            for letter in range(24):
                for stroke in range(5):
                    left, top = 20 + 24 * letter + letter * stroke % 13, 12 + (7 * letter + 9 * stroke) % 30
                    if top <= y < top + 3 + stroke:
                        row[3 * left:3 * (left + 7 + 2 * stroke)] = b"\xff" * (3 * (7 + 2 * stroke))
            rows.append(bytes(row))
        self.write(name, b"P6 %d %d 255\n" % (width, height) + pixels[:-3 * 64 * width] + b"".join(rows))

    def test_watermark_pairs_not_marked(self):
        castle = self.facade(3)
        others = self.photographs(DATA / "sfm/fountain/0000.jpg")
        for name in castle + others:
            self.caption(name)
        self.extract(*castle, *others, "-o", "d.db", "--profile", "colmap", "--max-features", "2500", "-q")
        self.matched("--doubtful", "keep")
        names = dict(self.ask("SELECT image_id, name FROM images"))
        found = {frozenset((names[pair // PAIR_BASE], names[pair % PAIR_BASE])): config
                 for pair, config in self.ask(f"SELECT pair_id, config FROM {TWO_VIEWS} WHERE rows > 0")}
        for pair in itertools.combinations(castle + others, 2):
            config = found[frozenset(pair)]
            self.assertEqual(config == WATERMARK, pair[1] in others, (pair, config))


class Coverage(Case):
    def test_every_folder_is_played(self):
        played = {name[len("test_"):] for case in (Files, Masks, Resumed, Cameras, Pairs) for name in dir(case)
                  if name.startswith("test_")}
        folders = {path.name for path in FAULTS.iterdir() if path.is_dir()}
        self.assertEqual({folder for folder in folders - BY_PYTHON if folder.replace("-", "_") not in played}, set())


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


if not COMMAND:
    skip("HARTSIFT_COMMAND does not name the command")
if not FAULTS.is_dir():
    skip("no folders of faults with the photographs beside the checkout; set HARTSIFT_DATA")
main()
