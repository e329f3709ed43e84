"""The calls of COLMAP by published scripts, replayed with hartsift-colmap: features, matches and a model; pycolmap reads the database.

Runs the program next to HARTSIFT_COMMAND. Ends with 77, skipped, without NumPy or pycolmap.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
try:
    import numpy
    import pycolmap
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(SKIPPED)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import colmap_calls  # noqa: E402
import plane_views  # noqa: E402
from plane_views import VIEWS  # noqa: E402

COMMAND = os.environ.get("HARTSIFT_COMMAND", "")
PROGRAM = os.path.join(os.path.dirname(COMMAND), "hartsift-colmap")
PACKAGES = str(pathlib.Path(__file__).resolve().parents[2] / "python")

class Defaults(unittest.TestCase):
    @unittest.skipUnless(shutil.which("colmap"), "COLMAP is not installed")
    def test_options_and_defaults_are_those_of_installed_colmap(self):
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "HARTSIFT_COLMAP": "/absent"}
        def run(program, *arguments):
            run = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, timeout=800, check=True)
            return run.stdout + run.stderr
        own = {}
        for line in run(PROGRAM, "options").splitlines()[1:]:
            command, names, default, *_ = line.split("\t")
            own.setdefault(command, {}).update(dict.fromkeys(names.split(", "), default))
        for command, options in own.items():
            found = re.findall(r"^  (--[\w.]+) arg(?: \(=([^)]*)\))?", run(shutil.which("colmap"), command, "-h"), flags=re.M)
            self.assertGreater(len(found), 3, command)
            for name, default in found:
                self.assertIn(name, options, command)
                wanted = options[name]
                if re.fullmatch(r"[-\d.]+", wanted):
                    self.assertEqual(float(wanted), float(default), name)
                elif wanted:
                    self.assertEqual(wanted, default, name)


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)
        if not hasattr(Scripts, "views"):
            plane_views.make_views(self.draw, self.work / "photos")
            Scripts.views = {path.name: path.read_bytes() for path in (self.work / "photos").iterdir()}
        (self.work / "photos").mkdir(exist_ok=True)
        for name, data in Scripts.views.items():
            (self.work / "photos" / name).write_bytes(data)
        for name in ("sparse", "text"):
            (self.work / name).mkdir()
        os.symlink(PROGRAM, self.work / "colmap")

    def draw(self, *arguments):
        subprocess.run([COMMAND, *map(str, arguments)], cwd=self.work, check=True)
        return self.work

    def colmap(self, *arguments, other="pycolmap"):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HARTSIFT_")}
        environment.update(HARTSIFT_COLMAP=other, HARTSIFT_PYTHON=sys.executable, PYTHONPATH=PACKAGES, CUDA_VISIBLE_DEVICES="")
        return subprocess.run([self.work / "colmap", *arguments], cwd=self.work, env=environment, capture_output=True, text=True, timeout=800,
                              check=False)

    def fake_colmap(self):
        """Makes a COLMAP that writes the arguments it gets to the file passed_on."""
        fake = self.work / "fake"
        fake.write_text(f"#!/bin/sh\nif [ \"$1\" = -h ]; then echo 'COLMAP 3.8 -- x'; else echo \"$@\" >>{self.work}/passed_on; fi\n")
        fake.chmod(0o755)
        return str(fake)

    def check_passed_on(self, script):
        """Checks that the calls after matching were passed to COLMAP unchanged."""
        wanted = [" ".join(shlex.split(call.replace("WORK", str(self.work)))) for call in colmap_calls.calls(script)]
        self.assertEqual((self.work / "passed_on").read_text().splitlines(),
                         [call for call in wanted if not call.startswith(("-h", "feature_extractor")) and "_matcher" not in call])

    def replay(self, script, colmap="pycolmap"):
        """Runs the calls; returns their outputs. colmap: program for the commands that hartsift-colmap passes on."""
        outputs = []
        for call in colmap_calls.calls(script):
            arguments = shlex.split(call.replace("WORK", str(self.work)))
            run = self.colmap(*arguments, other=colmap)
            self.assertEqual(run.returncode, 0, f"{arguments}: {run.stderr[-2000:]}")
            outputs.append(run.stdout + run.stderr)
        return outputs

    def check_database(self, cameras):
        with pycolmap.Database.open(str(self.work / "database.db")) as database:
            self.assertEqual((database.num_images(), database.num_cameras()), (VIEWS, cameras))
            for image in database.read_all_images():
                keypoints = database.read_keypoints(image.image_id)
                descriptors = database.read_descriptors(image.image_id)
                self.assertEqual(len(keypoints), len(descriptors.data if hasattr(descriptors, "data") else descriptors))
                self.assertGreater(len(keypoints), 100)
            self.assertGreaterEqual(database.num_verified_image_pairs(), VIEWS - 1)

    def check_model(self, images):
        model = pycolmap.Reconstruction(str(self.work / "sparse/0"))
        self.assertEqual(model.num_reg_images(), images)
        self.assertGreater(model.num_points3D(), 100)
        self.assertLess(model.compute_mean_reprojection_error(), 1.5)

    def test_nerfstudio(self):
        outputs = self.replay("nerfstudio", self.fake_colmap())
        versions = [line.split(" ")[1] for line in outputs[0].split("\n") if line.startswith("COLMAP")]
        self.assertEqual(versions, ["3.8"])
        self.assertEqual(outputs[1].count("no GPU is usable"), 1)
        self.assertEqual(outputs[2].count("vocab_tree_path"), 1)
        self.check_database(1)
        self.check_passed_on("nerfstudio")

    def test_gaussian_splatting(self):
        self.replay("gaussian-splatting", self.fake_colmap())
        self.check_database(1)
        self.check_passed_on("gaussian-splatting")

    def test_instant_ngp(self):
        """The calls lead to a model, computed by pycolmap."""
        self.replay("instant-ngp")
        self.check_database(1)
        self.check_model(VIEWS)
        pictures = self.colmap("image_undistorter", "--image_path", "photos", "--input_path", "sparse/0", "--output_path", "flat",
                               "--output_type", "COLMAP", "--max_image_size", "200")
        self.assertEqual((len(list((self.work / "flat/images").iterdir())), pictures.returncode), (VIEWS, 0))
        self.assertIn(f"Registered images: {VIEWS}\n", self.colmap("model_analyzer", "--path", "sparse/0").stdout)
        self.assertEqual(self.colmap("model_aligner", "--input_path", "sparse/0", "--output_path", "aligned", "--alignment_type", "plane").returncode, 0)
        aligned = pycolmap.Reconstruction(str(self.work / "aligned"))
        middle = numpy.mean([point.xyz for point in aligned.points3D.values()], axis=0)
        self.assertLess(numpy.abs(middle).max(), 1e-6)
        self.assertGreater(numpy.median([aligned.image(image).projection_center()[2] for image in aligned.reg_image_ids()]), 0)
        for arguments in (("model_aligner", "--input_path", "sparse/0", "--output_path", "x"), ("stereo_fusion",), ("model_analyzer", "--path", "absent"), ("mapper",),
                          ("bundle_adjuster", "--input_path", "sparse/0", "--output_path", "x", "--BundleAdjustment.foo", "1")):
            run = self.colmap(*arguments)
            self.assertEqual(run.returncode, 1, arguments)
            self.assertNotIn(".cc:", run.stderr)
        self.assertIn("OPENCV", (self.work / "text/cameras.txt").read_text())

    def test_instant_sfm(self):
        self.replay("InstantSfM")
        self.check_database(VIEWS)

    def test_fastmap(self):
        self.replay("FastMap")
        self.check_database(VIEWS)


if __name__ == "__main__":
    if not os.path.exists(PROGRAM):
        print("skipped: hartsift-colmap was not built next to HARTSIFT_COMMAND")
        sys.exit(SKIPPED)
    unittest.main()
