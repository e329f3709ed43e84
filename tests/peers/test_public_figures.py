"""bench/public: its list of files, its measures on made matches, its tables and the mode's driver.

Ends with 77, skipped, without NumPy or OpenCV.
"""
import hashlib
import importlib.util
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "public"))
try:
    import numpy
    import public_data
    import public_extractors
    import public_measures as measures
    import public_saved
    import public_scenes
    import public_tables
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MODE = ROOT / "bench/modes/public.py"
SHAPES = (480, 640), (480, 640)


def public_mode():
    spec = importlib.util.spec_from_file_location("public_mode", MODE)
    mode = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mode)
    return mode


def turned(angle):
    cosine, sine = numpy.cos(angle), numpy.sin(angle)
    return numpy.array([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]])


class Planar(unittest.TestCase):
    def setUp(self):
        self.points = numpy.random.default_rng(1).uniform(60, 400, (200, 2))
        self.shift = numpy.array([[1, 0, 10], [0, 1, -5], [0, 0, 1.0]])
        self.others = measures.project(self.shift, self.points)
        self.matches = numpy.stack([numpy.arange(200)] * 2, 1)

    def found(self, others=None, matches=None):
        return measures.homography_measures(self.shift, self.points, self.others if others is None else others,
                                            self.matches if matches is None else matches, SHAPES)

    def test_exact_matches(self):
        found = self.found()
        self.assertEqual([found[name] for name in ("rep", "score", "mma1", "mma3", "maa")], [1] * 5)

    def test_shifted_matches_and_wrong_ones(self):
        found = self.found(self.others + (2, 0))
        self.assertEqual((found["mma1"], found["mma3"], found["maa"]), (0, 1, 2 / 3))
        wrong = self.matches.copy()
        wrong[:100, 1] = numpy.roll(wrong[:100, 1], 50)
        found = self.found(matches=wrong)
        self.assertAlmostEqual(found["mma3"], 0.5, delta=0.02)
        self.assertEqual((found["rep"], found["maa"]), (1, 1))

    def test_no_matches(self):
        found = self.found(matches=numpy.zeros((0, 2), int))
        self.assertEqual((found["matches"], found["score"], found["mma5"], found["maa"]), (0, 0, 0, 0))

    def test_points_outside_of_the_other_picture_do_not_count(self):
        far = numpy.vstack([self.points, numpy.full((50, 2), (635.0, 240.0)) + numpy.arange(50)[:, None] * (0, 1)])
        found = measures.homography_measures(self.shift, far, self.others, self.matches, SHAPES)
        self.assertEqual(found["rep"], 1)

    def test_each_point_has_one_partner(self):
        self.assertEqual(measures.one_to_one(numpy.array([(0.0, 0), (1, 0)]), numpy.array([(0.5, 0.0)])), 1)
        self.assertEqual(measures.one_to_one(numpy.array([(0.0, 0), (1, 0)]), numpy.array([(1.0, 0), (2.5, 0)])), 2)
        self.assertEqual(measures.one_to_one(numpy.zeros((0, 2)), numpy.array([(0.5, 0.0)])), 0)

    def test_near_points_of_all_cells_are_found(self):
        first, second = numpy.random.default_rng(4).uniform(0, 40, (2, 150, 2))
        rows, columns, distances = measures.near_pairs(first, second, 3.0)
        expected = numpy.argwhere(numpy.linalg.norm(first[:, None] - second, axis=2) <= 3)
        self.assertEqual(sorted(zip(rows, columns)), list(map(tuple, expected)))
        self.assertLessEqual(distances.max(), 3)


class Poses(unittest.TestCase):
    def test_pose_error(self):
        truth = numpy.c_[turned(0.3), (1, 0, 0)]
        self.assertAlmostEqual(measures.pose_error(truth, truth), 0)
        self.assertAlmostEqual(measures.pose_error(numpy.c_[turned(0.3), (-7, 0, 0)], truth), 0)
        self.assertAlmostEqual(measures.pose_error(numpy.c_[turned(0.3 + numpy.radians(4)), (1, 0, 0)], truth), 4)
        self.assertAlmostEqual(measures.pose_error(numpy.c_[turned(0.3), (1, 1, 0)], truth), 45)
        self.assertEqual(measures.pose_error(numpy.c_[turned(0.3), (0, 0, 0)], truth), measures.FAILED)

    def test_area(self):
        self.assertEqual(measures.area_under_recall([0, 2.5, 5, 180], 5).tolist(), [1, 0.5, 0, 0])

    def test_standard_error(self):
        values = numpy.random.default_rng(2).normal(3, 1, 400)
        mean, error = measures.mean_and_error(values)
        self.assertAlmostEqual(mean, values.mean())
        self.assertAlmostEqual(error, 0.05, delta=0.01)
        self.assertEqual(measures.mean_and_error(values), (mean, error))

    def test_epipolar_share(self):
        random, matrix = numpy.random.default_rng(3), numpy.array([[500, 0, 319.5], [0, 500, 239.5], [0, 0, 1]])
        pose = numpy.c_[turned(0.1), (1, 0.2, 0)]
        space = random.uniform((-2, -2, 4), (2, 2, 8), (100, 3))
        seen = [points @ matrix.T for points in (space, space @ pose[:, :3].T + pose[:, 3])]
        first, second = (points[:, :2] / points[:, 2:] for points in seen)
        pair = public_data.Pair("", "", "", "", None, (matrix, matrix), pose)
        self.assertEqual(measures.epipolar_share(pair, first, second), 1)
        self.assertLess(measures.epipolar_share(pair, first, second + (0, 3)), 0.1)

    def test_cameras_of_reduced_pictures(self):
        """The centre of a picture stays its centre."""
        found = public_data.scaled(numpy.array([[800, 0, 320], [0, 800, 240], [0, 0, 1.0]]), 0.5, 0.5)
        numpy.testing.assert_allclose(found, [[400, 0, 159.5], [0, 400, 119.5], [0, 0, 1]])


class Views(unittest.TestCase):
    def test_a_view_shows_what_its_homography_says(self):
        """A bright square of a photograph is where the homography maps it."""
        import cv2

        with tempfile.TemporaryDirectory() as folder:
            path, image = pathlib.Path(folder) / "photo.png", numpy.zeros((640, 1280, 3), numpy.uint8)
            image[300:340, 620:660] = 255
            cv2.imwrite(str(path), image)
            for kind in ("corners", "turned"):
                seen = public_data.view(path, kind, 5)[:, :, 0].astype(float)
                y, x = (numpy.indices(seen.shape) * seen).sum((1, 2)) / seen.sum()
                expected = measures.project(public_data.view_homography(kind, 5, 640, 320), numpy.array([(319.5, 159.5)]))[0]
                numpy.testing.assert_allclose((x, y), expected, atol=0.3)


@unittest.skipUnless(importlib.util.find_spec("pycolmap"), "no pycolmap")
class Scenes(unittest.TestCase):
    def test_exact_matches_give_the_true_cameras(self):
        matrix = numpy.array([[500, 0, 319.5], [0, 500, 239.5], [0, 0, 1]])
        space = numpy.random.default_rng(4).uniform((-2, -1.5, 4), (2, 1.5, 8), (300, 3))
        cameras, features = {}, {}
        for number in range(4):
            pose = numpy.c_[turned(0.05 * number), (-0.4 * number, 0.05 * number, 0)]
            seen = (space @ pose[:, :3].T + pose[:, 3]) @ matrix.T
            cameras[f"{number}.jpg"] = matrix, pose
            features[f"{number}.jpg"] = public_extractors.Features(seen[:, :2] / seen[:, 2:])
        pairs = numpy.stack([numpy.arange(300)] * 2, 1)
        matches = {(a, b): pairs for a in cameras for b in cameras if a < b}
        found = public_scenes.reconstruct(cameras, dict.fromkeys(cameras, (480, 640)), features, matches)
        self.assertEqual(found["images"], 4)
        self.assertLess(found["rotation_deg"], 0.01)
        self.assertLess(found["position_percent"], 0.1)


class Files(unittest.TestCase):
    def test_list(self):
        listed = subprocess.run([sys.executable, "-B", str(MODE), "--list"], capture_output=True, text=True, check=True).stdout
        repositories = re.findall(r"^# https://github\.com/(\S+) [0-9a-f]{40}$", listed, re.M)
        paths = public_data.listed_files()
        self.assertEqual(len(paths) + len(repositories), len(listed.splitlines()))
        for path, digest in paths.items():
            self.assertRegex(digest, r"^[0-9a-f]{64}$")
            self.assertIn("/".join(path.split("/")[:2]), repositories)

    def test_digests_are_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a").write_bytes(b"right")
            digest = hashlib.sha256(b"right").hexdigest()
            with mock.patch.object(public_data, "listed_files", return_value={"a": digest}):
                self.assertEqual(public_data.check_files(folder), [])
            with mock.patch.object(public_data, "listed_files", return_value={"a": "0" * 64, "b": digest}):
                self.assertEqual(public_data.check_files(folder), ["other bytes than listed: a", "missing: b"])

    def test_other_files_are_no_pictures(self):
        part = public_data.SUPERGLUE + "/phototourism_sample_images"
        listed = {f"{part}/{name}.jpg": "" for name in ("c", "b")}
        with mock.patch.object(public_data, "listed_files", return_value={**listed, f"{part}2/d.jpg": "", "a/b/c": ""}):
            with tempfile.TemporaryDirectory() as folder:
                made = pathlib.Path(folder) / part
                made.mkdir(parents=True)
                (made / ".DS_Store").write_bytes(b"")
                (made / "a.jpg").write_bytes(b"")
                self.assertEqual([path.name for path in public_data.listed_in(pathlib.Path(folder), part)], ["b.jpg", "c.jpg"])
                with mock.patch.object(public_data, "view_homography"), mock.patch.object(public_data, "view_size", return_value=(1, 1)):
                    group = public_data.view_groups(pathlib.Path(folder), "blur", ("blur",))
                self.assertEqual([pair.scene for pair in group.pairs], ["b", "c"])

    def test_an_empty_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([sys.executable, "-B", str(MODE), folder, folder + "/out"], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn("missing: ", run.stderr)

    def test_a_part_of_a_line_is_dropped(self):
        mode = public_mode()
        with tempfile.TemporaryDirectory() as folder:
            measures_file = pathlib.Path(folder) / "measures.jsonl"
            measures_file.write_text('{"row": "a"}\n{"row": "b', encoding="utf-8")
            self.assertEqual(mode.read_records(measures_file), [{"row": "a"}])
            mode.Store(pathlib.Path(folder), False).add({"row": "b"})
            self.assertEqual(measures_file.read_text(encoding="utf-8"), '{"row": "a"}\n{"row": "b"}\n')


class Machines(unittest.TestCase):
    """Measures of a machine with a GPU and of another one."""

    def test_saved_features_give_the_same_measures(self):
        mode, shift = public_mode(), numpy.array([[1, 0, 3], [0, 1, 0], [0, 0, 1.0]])
        points = {"a": numpy.random.default_rng(5).uniform(20, 90, (60, 2)).astype(numpy.float32)}
        points["b"] = points["a"] + numpy.array((3, 0), numpy.float32)
        group = public_data.Group([public_data.Pair("oxford", "s", "a", "b", shift)],
                                  {name: lambda: numpy.zeros((100, 120, 3), numpy.uint8) for name in "ab"})
        method = mock.Mock(gray=True)
        method.extract.side_effect = [public_extractors.Features(points[name].astype(float)) for name in "abab"]
        method.match.return_value = numpy.stack([numpy.arange(50), numpy.arange(50) + 1], 1)
        found = []
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            public_saved.save(out / "row.npz", method, {"oxford": group}, public_extractors.prepared)
            for name, kind, source in (("run", mode.Run, method), ("saved", mode.SavedRun, public_saved.Saved(out / "row.npz"))):
                store = mode.Store(out / name, False)
                kind(store, source, group, {"row": "x, 9", "group": "oxford"}).all(1)
                found.append([{key: value for key, value in record.items() if "ms" not in key} for record in store.records])
        self.assertEqual(len(found[0]), 3)
        self.assertEqual(found[0], found[1])

    def test_measures_of_two_machines_are_joined(self):
        mode = public_mode()
        pair = {"group": "oxford", "scene": "a", "kind": "pair", "first": "1", "second": "2", "matches": 9, "rep": 0.5, "score": 0.4,
                "mma1": 0.1, "mma3": 0.2, "mma5": 0.3, "maa": 1.0}
        picture = {"group": "oxford", "kind": "picture", "first": "1", "features": 7}
        with tempfile.TemporaryDirectory() as folder:
            for machine, rows in (("cpu", {"hartsift root, 2000": 1.0, "PopSift, 2000": 0.75}), ("gpu", {"PopSift, 2000": 0.25, "CV-CUDA, 2000": 0.5})):
                store = mode.Store(pathlib.Path(folder) / machine, False)
                for row, maa in rows.items():
                    store.add({**pair, "row": row, "maa": maa})
                    store.add({**picture, "row": row})
                about = {"date": "day", "commit": "c", "processor": machine, "versions": {}, **({"gpu": "H100"} if machine == "gpu" else {})}
                (pathlib.Path(folder) / machine / "machine.json").write_text(json.dumps(about))
                times = {"hartsift root, 2000": {"extract_ms": len(rows), "match_ms": 1}}
                (pathlib.Path(folder) / machine / f"times_{machine.upper()}.json").write_text(json.dumps(times))
            run = subprocess.run([sys.executable, "-B", str(MODE), "--tables", f"{folder}/cpu", f"{folder}/gpu"], capture_output=True, text=True,
                                 check=True)
        self.assertIn("day, commit c, cpu; .\n\nday, commit c, H100, gpu; .", run.stdout)
        self.assertIn("|-root|CPU ms|GPU ms|", run.stdout)
        self.assertIn("|1.000±.000||2/1|2/1|", run.stdout)
        self.assertIn("|PopSift|2000|7|9|.500±.000|.400±.000|.100±.000|.200±.000|.750±.000|-.250±.000|||", run.stdout)
        self.assertIn("|CV-CUDA|2000|7|9|.500±.000|.400±.000|.100±.000|.200±.000|.500±.000|-.500±.000|||", run.stdout)

    def test_missing_files_of_saved_rows_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = pathlib.Path(folder) / "saved"
            saved.mkdir()
            (saved / public_saved.file_name("CV-CUDA, 2000")).touch()
            arguments = mock.Mock(device="cuda", popsift=None, rows="^CV-CUDA, [24]", saved=True, output=pathlib.Path(folder))
            with mock.patch("sys.stderr", new_callable=io.StringIO) as said:
                found = public_mode().creators(arguments)
        self.assertEqual(list(found), ["CV-CUDA, 2000"])
        self.assertEqual(said.getvalue(), f"left out: CV-CUDA, 4000: {saved / 'CV_CUDA_4000.npz'} does not exist\n")

    @unittest.skipIf(shutil.which("nvidia-smi"), "a GPU")
    def test_a_missing_gpu_is_named(self):
        run = subprocess.run([sys.executable, "-B", str(MODE), "none", "none", "--device", "cuda"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--device cuda needs a GPU", run.stderr)

    def test_rows_of_devices(self):
        cpu, gpu = public_extractors.methods(), public_extractors.methods("cuda")
        self.assertEqual({row for row in cpu if row in gpu}, set(public_extractors.networks()))
        self.assertTrue({"COLMAP GPU, 8000", "CV-CUDA, 4000", "PopSift, 2000"} <= set(gpu))
        self.assertIn("hartsift root, 2000", public_extractors.timed_methods("cuda"))


class Tables(unittest.TestCase):
    def test_rows_share_their_pairs(self):
        """A row with fewer pairs is compared on the pairs that all rows have, and times come from files."""
        records = []
        for row, scenes, good in (("hartsift root, 2000", "abcd", 1.0), ("OpenCV SIFT, 2000", "abcd", 0.5), ("DISK+LightGlue, 2000", "ab", 1.0)):
            for scene in scenes:
                records.append({"row": row, "group": "oxford", "scene": scene, "kind": "pair", "first": scene, "second": scene + "2",
                                "match_ms": 1, "rep": 0.5, "matches": 9, "score": 0.4, "mma1": 0.1, "mma3": 0.2, "mma5": 0.3, "maa": good})
                records.append({"row": row, "group": "oxford", "kind": "picture", "first": scene, "features": 7, "ms": 12})
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "times_gpu.json").write_text(json.dumps({"hartsift root, 2000": {"extract_ms": 0.5, "match_ms": 0.25}}))
            text = public_tables.tables([pathlib.Path(folder)], records)
        self.assertEqual(re.findall(r"^\|(\d) pairs\|", text, re.M), ["4", "2"])
        self.assertEqual(text.count("|DISK+LightGlue|2000|7|"), 1)
        self.assertEqual(text.count("|.500±.000|-.500±.000||"), 2)
        self.assertEqual(public_tables.name_cells("hartsift root affine, 4000"), "root+affine|4000")
        self.assertIn("|1.000±.000||0.5/0.25|", text)


if __name__ == "__main__":
    unittest.main()
