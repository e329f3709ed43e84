"""bench/pipelines: its measures for known cameras and matches, and its driver on a small generated scene with pycolmap.

Runs HARTSIFT_COMMAND. Ends with 77, skipped, without NumPy; the driver's test is skipped without pycolmap, OpenCV or
the command.
"""
import contextlib
import importlib.util
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "bench" / "pipelines")]
import pairs_truth  # noqa: E402
import plane_views  # noqa: E402
import scene_truth  # noqa: E402

COMMAND = os.path.abspath(os.environ["HARTSIFT_COMMAND"]) if os.environ.get("HARTSIFT_COMMAND") else ""
TOOLS = all(importlib.util.find_spec(name) for name in ("pycolmap", "cv2"))


def turn_about(axis, angle):
    x, y, z = numpy.array(axis) / numpy.linalg.norm(axis)
    cross = numpy.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return numpy.eye(3) + numpy.sin(angle) * cross + (1 - numpy.cos(angle)) * cross @ cross


def some_poses(count, seed=3):
    random = numpy.random.default_rng(seed)
    return {f"{i}.pgm": numpy.c_[turn_about(random.normal(size=3), 0.3), random.normal(size=3)] for i in range(count)}


class Truth(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = pathlib.Path(self.place.name)

    def test_errors_do_not_depend_on_the_frame(self):
        """A reconstruction in another coordinate system and scale has no error. If one camera is rotated by 1 degree, the
        error shows it."""
        truth, turn, shift, scale = some_poses(6), turn_about((1, 2, 3), 1.1), numpy.array([4, 5, 6]), 2.5
        found = {name: numpy.c_[pose[:, :3] @ turn.T, scale * pose[:, 3] - pose[:, :3] @ turn.T @ shift]
                 for name, pose in truth.items()}
        errors = scene_truth.pose_errors(found, truth)
        self.assertLess(max(errors.values()), 1e-5)
        centre = scene_truth.centre(found["0.pgm"])
        turned = turn_about((0, 1, 0), numpy.radians(1)) @ found["0.pgm"][:, :3]
        errors = scene_truth.pose_errors({**found, "0.pgm": numpy.c_[turned, -turned @ centre]}, truth)
        self.assertLess(errors["rotation_deg"], 1e-5)  # 10 of 15 pairs do not contain that camera
        self.assertAlmostEqual(errors["rotation_deg_90"], 1, places=5)
        self.assertLess(errors["position_percent"], 1e-5)
        self.assertIsNone(scene_truth.pose_errors(dict(list(found.items())[:2]), truth))

    def test_both_layouts_of_poses(self):
        """A quarter turn about y is read as [R|t], and as position and quaternion to the world."""
        (self.folder / "poses.txt").write_text("# comment\n"
                                               "a.png 0 0 -1 3 0 1 0 -2 1 0 0 -1\n"
                                               "b.png 12.5 1 2 3 0 0.70710678118654752 0 0.70710678118654752\n")
        poses = scene_truth.read_scene(self.folder).poses
        self.assertLess(numpy.abs(poses["a.png"] - poses["b.png"]).max(), 1e-12)

    def test_rays_undo_distortion(self):
        k1, k2, p1, p2, k3 = terms = numpy.array([0.23, -0.78, -0.003, -0.0001, 0.9])
        x, y = numpy.random.default_rng(1).uniform(-0.4, 0.4, (2, 50))
        r = x * x + y * y
        radial = 1 + k1 * r + k2 * r ** 2 + k3 * r ** 3
        seen = numpy.c_[500 * (x * radial + 2 * p1 * x * y + p2 * (r + 2 * x * x)) + 320,
                        510 * (y * radial + p1 * (r + 2 * y * y) + 2 * p2 * x * y) + 240]
        camera = scene_truth.Camera(scene_truth.calibration(500, 510, 320, 240), terms)
        self.assertLess(numpy.abs(scene_truth.rays(camera, seen)[:, :2] - numpy.c_[x, y]).max(), 1e-6)

    def make_database(self, places, inliers):
        """Makes two images and one verified pair; returns the path."""
        path = self.folder / "database.db"
        with contextlib.closing(sqlite3.connect(path)) as c:
            c.executescript("CREATE TABLE images(image_id, name); CREATE TABLE keypoints(image_id, rows, cols, data);"
                            "CREATE TABLE matches(pair_id, rows); CREATE TABLE two_view_geometries(pair_id, config, rows, data);"
                            "INSERT INTO images VALUES(1, '0.pgm'), (2, '1.pgm')")
            for image, points in enumerate(places, 1):
                c.execute("INSERT INTO keypoints VALUES(?, ?, 2, ?)", [image, len(points), points.astype("<f4").tobytes()])
            pair = pairs_truth.PAIR_BASE + 2
            c.execute("INSERT INTO matches VALUES(?, ?)", [pair, len(inliers)])
            c.execute("INSERT INTO two_view_geometries VALUES(?, 3, ?, ?)",
                      [pair, len(inliers), inliers.astype("<u4").tobytes()])
            c.commit()
        return path

    def test_right_and_wrong_inliers(self):
        """Some of ten points are shifted off their epipolar lines or have a negative depth."""
        plane_views.write_truth(self.folder)
        for name in ("0.pgm", "1.pgm"):
            (self.folder / name).touch()
        scene = scene_truth.read_scene(self.folder)
        space = numpy.random.default_rng(2).uniform((-1, -1, 4), (1, 1, 6), (10, 3))
        space[9, 2] = -5
        places = []
        for name in ("0.pgm", "1.pgm"):
            seen = space @ scene.poses[name][:, :3].T + scene.poses[name][:, 3]
            places.append(plane_views.FOCAL * seen[:, :2] / seen[:, 2:] + (plane_views.WIDTH / 2, plane_views.HEIGHT / 2))
        along = scene.poses["1.pgm"][:, 3] - scene.poses["0.pgm"][:, 3]
        across = numpy.array([-along[1], along[0]]) / numpy.hypot(*along[:2])
        for shift, right in ((3.5, 10), (5, 6), (-5, 6)):
            moved = places[1] + numpy.where(numpy.arange(10) < 4, shift, 0)[:, None] * across
            path = self.make_database([places[0], moved], numpy.c_[:10, :10])
            (pair,), features = pairs_truth.judge_pairs(path, scene)
            path.unlink()
            self.assertEqual((features, pair.inliers, pair.right, pair.behind, pair.is_right), (10, 10, right, 1, True), shift)
        path = self.make_database(places, numpy.c_[:10, numpy.roll(numpy.arange(10), 3)])
        (pair,), _ = pairs_truth.judge_pairs(path, scene)
        self.assertFalse(pair.is_right)
        sums = pairs_truth.totals([pair])
        self.assertEqual((sums["right"]["pairs"], sums["wrong"]["pairs"], sums["wrong"]["inliers"]), (0, 1, 10))


def writes_databases():
    asked = subprocess.run([COMMAND, "info", "--json"], check=True, capture_output=True)
    return json.loads(asked.stdout)["build"]["sqlite"]


@unittest.skipUnless(TOOLS and COMMAND and writes_databases(), "no pycolmap, no OpenCV, or no command that writes databases")
class Driver(unittest.TestCase):
    def test_small_scene(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)

            def in_folder(*arguments):
                subprocess.run([COMMAND, *map(str, arguments)], cwd=folder, check=True, capture_output=True)
                return folder
            plane_views.make_views(in_folder, folder / "planes")
            plane_views.write_truth(folder / "planes")
            command = [sys.executable, "-B", ROOT / "bench/pipelines/run.py", folder / "planes", "-o", folder / "table",
                       "--hartsift", COMMAND, "--front-ends", "hartsift+hartsift,opencv+hartsift", "--mappers", "incremental",
                       "--runs", "1", "--threads", "1", "--known-focal", "planes"]
            finished = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
            self.assertEqual(finished.returncode, 0, finished.stderr)
            rows = json.loads((folder / "table.json").read_text())["rows"]
            self.assertEqual([row["front_end"] for row in rows], ["hartsift+hartsift", "opencv+hartsift"])
            for row in rows:
                self.assertEqual((row["images"], row["of"]), (plane_views.VIEWS, plane_views.VIEWS))
                self.assertLess(row["rotation_deg_90"], 1)
                self.assertLess(row["position_percent"], 0.5)
                self.assertEqual(row["pairs"]["wrong"]["pairs"], 0)
                self.assertGreater(row["pairs"]["right"]["share"], 0.95)
            table = (folder / "table.md").read_text()
            self.assertEqual(table, finished.stdout[:-1])
            self.assertIn("| hartsift+hartsift | incremental |", table)

    def test_words_that_mean_nothing(self):
        """Unknown words are refused before anything is computed."""
        for words in (["--front-ends", "colmap"], ["--mappers", "local"], [ROOT / "no_such_scene"], [ROOT / "tests" / "peers"]):
            command = [sys.executable, "-B", ROOT / "bench/pipelines/run.py", "--hartsift", COMMAND, *words]
            finished = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
            self.assertEqual(finished.returncode, 2, finished.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
