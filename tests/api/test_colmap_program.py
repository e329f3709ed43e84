"""hartsift-colmap: COLMAP's command line. Spellings, refusals, project files, cameras, masks, faulty inputs, and commands passed on.

Runs the program hartsift-colmap next to HARTSIFT_COMMAND. Needs nothing but Python's standard library.
"""
import contextlib
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, DONE, FAILED, CommandCase, main  # noqa: E402
from exif_segment import camera_model, equivalent_focal_length, focal_plane, position, with_exif  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(COMMAND), "hartsift-colmap")
WIDTH, HEIGHT = 240, 160
USE_CPU = ("--SiftExtraction.use_gpu", "0")
MATCH_ON_CPU = ("--SiftMatching.use_gpu", "0")


class ColmapCase(CommandCase):
    pictures = {}  # JPEGs by seed, which all tests share

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("photos"))

    def picture(self, seed):
        if seed not in ColmapCase.pictures:
            self.run_it("draw", f"@scene:{WIDTH}x{HEIGHT}:{seed}", "-o", "scene.jpg", "--max-features", "1", "-q")
            ColmapCase.pictures[seed] = self.read("scene.jpg")
        return ColmapCase.pictures[seed]

    def photo(self, name, data=None):
        self.write(f"photos/{name}", self.picture(5) if data is None else data)

    def environment(self):
        return {**super().environment(), "PATH": "/usr/bin:/bin", "HARTSIFT_COLMAP": "/absent/colmap"}

    def colmap(self, *arguments, status=DONE, program=PROGRAM, **variables):
        """Runs hartsift-colmap; returns both outputs as texts."""
        run = subprocess.run([program, *arguments], cwd=self.folder, env={**self.environment(), **variables}, timeout=800,
                             check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        output, errors = run.stdout.decode("utf-8", "replace"), run.stderr.decode("utf-8", "replace")
        self.assertEqual(run.returncode, status, f"{arguments}: {errors}")
        return output, errors

    def extract(self, *options, status=DONE):
        return self.colmap("feature_extractor", "--database_path", "d.db", "--image_path", "photos", *USE_CPU, *options, status=status)[1]

    def match(self, command, *options, status=DONE):
        return self.colmap(command, "--database_path", "d.db", *MATCH_ON_CPU, *options, status=status)[1]

    def names(self):
        return [name for (name,) in self.ask("SELECT name FROM images ORDER BY image_id")]

    def cameras(self):
        """Returns the cameras of the images, in their order."""
        return [camera for (camera,) in self.ask("SELECT camera_id FROM images ORDER BY name")]

    def script(self, name, text):
        """Writes a program into a folder of PATH."""
        self.write(name, text.encode())
        os.chmod(self.path(name), 0o755)
        return self.path(name)


class Texts(ColmapCase):
    def test_version_as_scripts_parse_it(self):
        for word in ((), ("-h",), ("--help",), ("help",), ("version",)):
            line = self.colmap(*word)[0].splitlines()[0]
            self.assertTrue(line.startswith("COLMAP "), line)
            self.assertTrue(all(part.isdigit() for part in line.split(" ")[1].split(".")), line)
            self.assertIn("hartsift", line)

    def test_version_of_the_colmap_that_maps(self):
        fake = self.script("fake", "#!/bin/sh\necho 'COLMAP 3.8 -- Structure-from-Motion'\n")
        line = self.colmap("version", HARTSIFT_COLMAP=fake)[0]
        self.assertEqual(line.split()[:2], ["COLMAP", "3.8"])
        self.assertIn(fake, line)

    def test_help_of_commands_has_every_option(self):
        table = [line.split("\t") for line in self.colmap("options")[0].splitlines()[1:]]
        self.assertEqual({len(row) for row in table}, {5})
        for command in sorted({row[0] for row in table}):
            text = self.colmap(command, "-h")[0]
            for _, names, _, effect, note in (row for row in table if row[0] == command):
                self.assertTrue(effect in ("taken", "without effect") or effect.startswith("refused"), effect)
                self.assertIn(names, text)
                self.assertIn(note, text)
        page = self.colmap("man")[0]
        for row in table:
            for name in row[1].split(", "):
                self.assertIn(name.replace("-", "\\-"), page)


# The options of COLMAP's option_manager.cc in its releases 3.6, 3.7, 3.8, 3.9.1, 3.10, 3.11.1, 3.12.6, 3.13.0, 4.0.0, 4.1.1 and on 8 August
# 2026 (4.2), by the command that has the group.
EXTRACTION = {
    "": "default_random_seed log_color log_level log_path log_severity log_target log_to_stderr random_seed",
    "FeatureExtraction": "gpu_index max_image_size num_threads type use_gpu",
    "ImageReader": "camera_mask_path camera_model camera_params default_focal_length_factor existing_camera_id mask_path single_camera "
                   "single_camera_per_folder single_camera_per_image",
    "SiftExtraction": "domain_size_pooling dsp_max_scale dsp_min_scale dsp_num_scales edge_threshold estimate_affine_shape first_octave gpu_index "
                      "max_image_size max_num_features max_num_orientations num_octaves num_threads octave_resolution peak_threshold upright use_gpu",
    "AlikedExtraction": "max_num_features min_score n16rot_model_path n32_model_path",
}
MATCHING = {
    "": EXTRACTION[""],
    "FeatureMatching": "gpu_index guided_matching max_num_matches num_threads rig_verification skip_geometric_verification "
                       "skip_image_pairs_in_same_frame type use_gpu",
    "SiftMatching": "compute_relative_pose confidence cpu_brute_force_matcher cross_check gpu_index guided_matching lightglue_min_score "
                    "lightglue_model_path max_distance max_error max_num_matches max_num_trials max_ratio min_inlier_ratio min_num_inliers "
                    "multiple_models num_threads planar_scene use_gpu",
    "TwoViewGeometry": "compute_relative_pose confidence detect_watermark filter_stationary_matches max_error max_num_trials min_inlier_ratio "
                       "min_num_inliers multiple_ignore_watermark multiple_models random_seed stationary_matches_max_error use_degensac "
                       "watermark_detection_max_error",
}
OF_COMMANDS = {
    "feature_extractor": {**EXTRACTION, "": EXTRACTION[""] + " camera_mode image_list_path descriptor_normalization"},
    "feature_importer": {**EXTRACTION, "": EXTRACTION[""] + " camera_mode image_list_path import_path"},
    "exhaustive_matcher": {**MATCHING, "ExhaustiveMatching": "block_size"},
    "sequential_matcher": {
        **MATCHING,
        "SequentialMatching": "expand_rig_images loop_detection loop_detection_max_num_features loop_detection_num_checks loop_detection_num_images "
                              "loop_detection_num_images_after_verification loop_detection_num_nearest_neighbors loop_detection_period num_threads "
                              "overlap quadratic_overlap vocab_tree_path"},
    "spatial_matcher": {**MATCHING, "SpatialMatching": "ignore_z is_gps max_distance max_num_neighbors min_num_neighbors"},
    "vocab_tree_matcher": {**MATCHING, "VocabTreeMatching": "match_list_path max_num_features num_checks num_images num_images_after_verification "
                                                            "num_nearest_neighbors num_threads vocab_tree_path"},
    "transitive_matcher": {**MATCHING, "TransitiveMatching": "batch_size num_iterations"},
    "matches_importer": {**MATCHING, "": MATCHING[""] + " match_list_path match_type", "ImagePairsMatching": "block_size"},
    "database_creator": {"": EXTRACTION[""]},
}


class Options(ColmapCase):
    def setUp(self):
        super().setUp()
        self.photo("a.jpg")

    def test_spellings_give_the_same_features(self):
        found = []
        for number, (group, value) in enumerate((("SiftExtraction", "=true"), ("FeatureExtraction", " 1"), ("FeatureExtraction", "=ON"))):
            self.colmap("feature_extractor", f"--database_path={number}.db", "--image_path", "photos",
                        *f"--{group}.use_gpu=false".split(), *f"--{group}.max_image_size 200".split(),
                        *f"--SiftExtraction.upright{value}".split())
            with contextlib.closing(sqlite3.connect(self.path(f"{number}.db"))) as database:
                found.append(database.execute("SELECT data FROM keypoints").fetchall())
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    def test_options_change_the_features(self):
        def count(*options):
            self.extract(*options)
            rows = self.ask("SELECT rows FROM keypoints")[0][0]
            os.remove(self.path("d.db"))
            return rows
        usual = count()
        self.assertLess(count("--SiftExtraction.peak_threshold", "0.02"), usual)
        self.assertLess(count("--SiftExtraction.first_octave", "0"), usual)
        self.assertLess(count("--FeatureExtraction.max_image_size", "120"), usual)
        self.assertNotEqual(count("--SiftExtraction.estimate_affine_shape=true", "--SiftExtraction.domain_size_pooling=true"), 0)

    def test_an_option_that_cannot_matter_is_named_once(self):
        errors = self.extract("--log_level", "1", "--log_to_stderr=1", "--random_seed", "7")
        self.assertEqual(errors.count("without effect here: --log_level, --log_to_stderr, --random_seed"), 1)
        self.assertNotIn("without effect", self.extract("--random_seed", "0"))

    def test_unsupported_options_are_refused_by_name(self):
        for option, value, usual in (("FeatureExtraction.type", "ALIKED_N16ROT", "SIFT"), ("SiftExtraction.darkness_adaptivity", "1", "0")):
            self.assertIn(f"--{option} '{value}' is not supported", self.extract(f"--{option}", value, status=FAILED))
            self.extract(f"--{option}", usual)
        for option, value in (("SiftMatching.multiple_models", "1"), ("FeatureMatching.type", "SIFT_LIGHTGLUE"),
                              ("FeatureMatching.rig_verification", "true"), ("TwoViewGeometry.detect_watermark", "0")):
            self.assertIn(f"--{option} '{value}' is not supported", self.match("exhaustive_matcher", f"--{option}", value, status=FAILED))
        self.assertIn("match_list_path", self.match("vocab_tree_matcher", "--VocabTreeMatching.match_list_path", "x", status=FAILED))

    def test_the_table_has_every_option_of_colmap(self):
        known = {}
        for line in self.colmap("options")[0].splitlines()[1:]:
            command, names = line.split("\t")[:2]
            known.setdefault(command, set()).update(name[2:] for name in names.split(", "))
        self.assertEqual(sorted(known), sorted(OF_COMMANDS))
        for command, groups in OF_COMMANDS.items():
            wanted = {f"{group}.{name}" if group else name for group, names in groups.items() for name in names.split()}
            families = tuple(name[:-1] for name in known[command] if name.endswith("*"))
            self.assertEqual({name for name in wanted - known[command] if not name.startswith(families)}, set(), command)

    def test_wrong_command_lines(self):
        for options, message in (
            (("--Sift.foo", "1"), "unknown option --Sift.foo"),
            (("--SiftMatching.max_ratio", "1"), "unknown option --SiftMatching.max_ratio"),
            (("--SiftExtraction.upright", "2"), "--SiftExtraction.upright '2': expected 0, 1, false or true"),
            (("--SiftExtraction.num_octaves", "four"), "expected a whole number"),
            (("--SiftExtraction.num_octaves",), "--SiftExtraction.num_octaves needs a value"),
            (("photos",), "'photos' is no option"),
            (("--ImageReader.camera_model", "ROUND"), "'ROUND': is no camera model"),
            (("--ImageReader.camera_params", "1,2"), "expected the 4 numbers of SIMPLE_RADIAL"),
            (("--camera_mode", "4"), "--camera_mode '4'"),
            (("--descriptor_normalization", "max"), "expected l1_root or l2"),
            (("--SiftExtraction.first_octave", "9"), "--SiftExtraction.first_octave '9'"),
            *(((f"--SiftExtraction.{name}", value), f"--SiftExtraction.{name} '{value}': expected") for name, value in (
                ("num_octaves", "0"), ("max_num_orientations", "0"), ("max_image_size", "0"), ("max_image_size", "-2"),
                ("peak_threshold", "0"), ("edge_threshold", "0"), ("octave_resolution", "9"), ("max_num_features", "99999999999"))),
            (("--SiftExtraction.upright", "0", "--SiftExtraction.upright=1"),
             "--SiftExtraction.upright '1': the option was given before, as --SiftExtraction.upright '0'"),
            (("--FeatureExtraction.use_gpu", "1"), "given before, as --SiftExtraction.use_gpu '0'"),
            (("--SiftExtraction.domain_size_pooling", "1", "--SiftExtraction.dsp_max_scale", "9"), "--SiftExtraction.dsp_max_scale '9'"),
            (("--ImageReader.existing_camera_id", "7"), "--ImageReader.existing_camera_id '7'"),
        ):
            self.assertIn(message, self.extract(*options, status=FAILED))
        self.assertFalse(os.path.exists(self.path("d.db")))
        self.assertIn("--FeatureExtraction.gpu_index 'abc'", self.colmap("feature_extractor", "--database_path", "d.db", "--image_path", "photos",
                                                                         "--FeatureExtraction.gpu_index", "abc", status=FAILED)[1])
        self.assertIn("'--image_path' is required", self.colmap("feature_extractor", "--database_path", "d.db", status=FAILED)[1])
        self.assertIn("'--database_path' is required", self.colmap("exhaustive_matcher", status=FAILED)[1])

    def test_project_file(self):
        self.write("project.ini", b"# all options of a project\ndatabase_path = d.db\nimage_path=photos\nrandom_seed=0\n\n[ImageReader]\n"
                                  b"camera_model=PINHOLE#fx, fy, cx, cy\n[SiftExtraction] # of features\nuse_gpu=false\nmax_num_features=50\n"
                                  b"[SiftMatching]\nmultiple_models=true\n[Mapper]\nmin_num_matches=15\n")
        self.extract("--SiftExtraction.max_num_features", "20", "--SiftExtraction.gpu_index", "0,0")
        expected = self.ask("SELECT data FROM keypoints")
        os.remove(self.path("d.db"))
        self.colmap("feature_extractor", "--project_path", "project.ini", "--SiftExtraction.max_num_features", "20")
        self.assertEqual(self.ask("SELECT model FROM cameras"), [(1,)])
        self.assertEqual(self.ask("SELECT data FROM keypoints"), expected)
        self.assertIn("project.ini:12: --SiftMatching.multiple_models",
                      self.colmap("exhaustive_matcher", "--project_path", "project.ini", status=FAILED)[1])
        for text, message in ((b"database_path=d.db\n[Wrong]\nx=1\n", "project.ini:3: 'Wrong.x'"), (b"nothing\n", "project.ini:1: 'nothing'"),
                              (b"database_path=d.db\ndatabase_path=e.db\n", "project.ini:2: --database_path 'e.db': the option was given before")):
            self.write("project.ini", text)
            self.assertIn(message, self.colmap("exhaustive_matcher", "--project_path", "project.ini", status=FAILED)[1])
        self.assertIn("cannot be opened", self.colmap("exhaustive_matcher", "--project_path", "absent.ini", status=FAILED)[1])


class Cameras(ColmapCase):
    def setUp(self):
        super().setUp()
        for name in ("a.jpg", "b.jpg", "in/c.jpg", "in/d.jpg"):
            self.photo(name)

    def parameters(self):
        (model, known, data), = self.ask("SELECT model, prior_focal_length, params FROM cameras WHERE camera_id = 1")
        return model, known, struct.unpack(f"<{len(data) // 8}d", data)

    def test_sharing(self):
        for options, expected in (((), [1, 2, 3, 4]), (("--ImageReader.single_camera", "1"), [1, 1, 1, 1]),
                                  (("--ImageReader.single_camera_per_folder", "1"), [1, 1, 2, 2]), (("--camera_mode", "1"), [1, 1, 1, 1]),
                                  (("--camera_mode", "2"), [1, 1, 2, 2]), (("--ImageReader.single_camera_per_image", "1"), [1, 2, 3, 4])):
            self.extract(*options)
            self.assertEqual(self.cameras(), expected, options)
            os.remove(self.path("d.db"))

    def test_images_of_one_model_and_focal_length_in_exif_share_a_camera(self):
        def check(make, focals, cameras):
            for name, focal in zip(("a.jpg", "b.jpg", "in/c.jpg"), focals):
                self.photo(name, with_exif(self.picture(5), first=camera_model(*make) if make else (), exif=focal, gps=position(1, 2, 3)))
            self.extract()
            self.assertEqual((self.cameras(), len(self.ask("SELECT * FROM pose_priors"))), (cameras, 3))
            known = self.parameters()[1]
            os.remove(self.path("d.db"))
            return known
        wide, narrow = equivalent_focal_length(28), equivalent_focal_length(35)
        self.assertEqual(check(("Maker", "One"), (wide, wide, narrow), [1, 1, 2, 3]), 1)
        # a focal length in millimetres alone gives none in pixels, but the images are of one camera
        self.assertEqual(check(("Maker", "One"), [focal_plane(8, 0, 2)[:1]] * 3, [1, 1, 1, 2]), 0)
        self.assertEqual(check((), (wide, wide, narrow), [1, 2, 3, 4]), 1)

    def test_parameters(self):
        self.extract("--ImageReader.single_camera", "1", "--ImageReader.default_focal_length_factor", "2", "--ImageReader.camera_model",
                     "OPENCV", "--ImageReader.camera_params", "")
        self.assertEqual(self.parameters(), (4, 0, (2.0 * WIDTH, 2.0 * WIDTH, WIDTH / 2, HEIGHT / 2, 0, 0, 0, 0)))
        os.remove(self.path("d.db"))
        self.extract("--ImageReader.single_camera", "1", "--ImageReader.camera_model", "PINHOLE", "--ImageReader.camera_params",
                     "250, 251,120,80")
        self.assertEqual(self.parameters(), (1, 1, (250, 251, 120, 80)))

    def test_a_later_run_skips_images_and_keeps_the_camera(self):
        os.rename(self.path("photos/in"), self.path("later"))
        self.extract("--ImageReader.single_camera", "1")
        before = self.ask("SELECT * FROM keypoints")
        os.rename(self.path("later"), self.path("photos/in"))
        errors = self.extract("--ImageReader.single_camera", "1", "--SiftExtraction.max_num_features", "20")
        self.assertEqual(errors.count("IMAGE_EXISTS"), 2)
        self.assertIn("Processed file [4/4]\n  Name:            in/d.jpg\n  Dimensions:      240 x 160\n"
                      "  Camera:          #1 - SIMPLE_RADIAL\n  Focal Length:    288.00px\n  Features: ", errors)
        self.assertEqual(self.names(), ["a.jpg", "b.jpg", "in/c.jpg", "in/d.jpg"])
        self.assertEqual(self.cameras(), [1, 1, 1, 1])
        self.assertEqual(self.ask("SELECT * FROM keypoints")[:2], before)
        self.photo("e.jpg")
        self.extract("--ImageReader.existing_camera_id", "1")
        self.assertEqual(self.cameras(), [1, 1, 1, 1, 1])

    def test_another_size_does_not_fit_a_single_camera(self):
        self.run_it("draw", "@scene:200x160:1", "-o", "photos/b.jpg", "--max-features", "1", "-q")
        self.assertIn("b.jpg: is 200x160", self.extract("--ImageReader.single_camera", "1"))
        self.assertEqual(self.names(), ["a.jpg", "in/c.jpg", "in/d.jpg"])


class Inputs(ColmapCase):
    def test_good_images_among_bad_ones(self):
        self.photo("a.jpg")
        self.photo("b.jpg", self.picture(5)[:300])
        self.photo("c.png", b"no picture")
        self.photo("d.jpg")
        self.photo("notes.txt", b"text")
        errors = self.extract()
        self.assertEqual(self.names(), ["a.jpg", "d.jpg"])
        self.assertIn("b.jpg", errors)
        self.assertIn("c.png", errors)
        self.assertIn("2 of 4 images could not be processed", errors)
        self.extract(status=DONE)

    def test_nothing_but_bad_images_fails(self):
        self.photo("c.png", b"no picture")
        self.extract(status=FAILED)

    def test_folders(self):
        self.assertIn("photos: no images there", self.extract(status=FAILED))
        self.assertIn("expected a folder of images", self.colmap("feature_extractor", "--database_path", "d.db", "--image_path", "absent",
                                                                 status=FAILED)[1])
        self.photo("a.jpg")
        self.assertIn("absent/d.db", self.colmap("feature_extractor", "--database_path", "absent/d.db", "--image_path", "photos", *USE_CPU,
                                                 status=FAILED)[1])
        self.assertIn("d.db: is no database", self.match("exhaustive_matcher", status=FAILED))
        self.write("d.db", b"no database at all, but longer than a head" * 100)
        self.extract(status=FAILED)
        self.match("exhaustive_matcher", status=FAILED)

    def test_names(self):
        for name in ("one two.jpg", "b/Ä\u00e9\u4e2d.jpg", "b/c/d.jpg", "  lead.jpg", "# e.jpg"):
            self.photo(name)
        self.extract()
        self.assertEqual(self.names(), ["  lead.jpg", "# e.jpg", "b/c/d.jpg", "b/Ä\u00e9\u4e2d.jpg", "one two.jpg"])
        os.rename(self.path("photos"), self.path("my photos \u4e2d"))
        self.colmap("feature_extractor", "--database_path", "a database.db", "--image_path", "my photos \u4e2d/", *USE_CPU)
        self.assertTrue(os.path.exists(self.path("a database.db")))

    def test_list_of_images(self):
        for name in ("a.jpg", "b.jpg", "c.jpg"):
            self.photo(name)
        self.write("list.txt", b"c.jpg\r\n\na.jpg \nabsent.jpg\n")
        self.assertIn("absent.jpg", self.extract("--image_list_path", "list.txt"))
        self.assertEqual(self.names(), ["a.jpg", "c.jpg"])
        self.write("list.txt", b"\n")
        self.assertIn("list.txt: no images there", self.extract("--image_list_path", "list.txt"))
        self.assertIn("cannot be read", self.extract("--image_list_path", "absent.txt", status=FAILED))

    def mask(self, left, right):
        return b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + (bytes([left]) * (WIDTH // 2) + bytes([right]) * (WIDTH // 2)) * HEIGHT

    def columns(self, name):
        (data,), = self.ask(f"SELECT data FROM keypoints JOIN images USING (image_id) WHERE name = '{name}'")
        return [x for x, *_ in struct.iter_unpack("<6f", data)]

    def test_masks(self):
        self.photo("a.jpg")
        self.photo("b.jpg")
        self.write("masks/a.jpg.png", self.mask(0, 255))
        errors = self.extract("--ImageReader.mask_path", "masks")
        self.assertIn("b.jpg: has no mask in masks", errors)
        self.assertEqual(self.names(), ["a.jpg"])
        self.assertGreater(min(self.columns("a.jpg")), WIDTH / 2 - 1)
        os.remove(self.path("d.db"))
        self.write("camera.png", self.mask(255, 0))
        self.extract("--ImageReader.camera_mask_path", "camera.png")
        self.assertEqual(self.names(), ["a.jpg", "b.jpg"])
        self.assertLess(max(self.columns("b.jpg")), WIDTH / 2 + 1)
        os.remove(self.path("d.db"))
        self.extract("--ImageReader.camera_mask_path", "camera.png", "--ImageReader.mask_path", "masks")
        self.assertEqual(self.columns("a.jpg"), [])
        self.assertIn("camera_mask_path", self.extract("--ImageReader.camera_mask_path", "absent.png", status=FAILED))

    def test_locked_database(self):
        self.photo("a.jpg")
        self.colmap("database_creator", "--database_path", "d.db")
        with contextlib.closing(sqlite3.connect(self.path("d.db"), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = subprocess.Popen([PROGRAM, "feature_extractor", "--database_path", "d.db", "--image_path", "photos", *USE_CPU],
                                       cwd=self.folder, env=self.environment(), stderr=subprocess.PIPE)
            time.sleep(0.2)
            other.execute("COMMIT")
            self.assertEqual((waiting.wait(300), waiting.stderr.read().count(b"Processed file")), (0, 1))
            waiting.stderr.close()

    def test_interrupted(self):
        for number in range(40):
            self.photo(f"{number}.jpg")
        running = subprocess.Popen([PROGRAM, "feature_extractor", "--database_path", "d.db", "--image_path", "photos", *USE_CPU,
                                    "--SiftExtraction.num_threads", "1"], cwd=self.folder, env=self.environment(), stderr=subprocess.PIPE)
        first = running.stderr.readline()
        running.send_signal(signal.SIGINT)
        errors = first + running.stderr.read()
        running.stderr.close()
        done = running.wait(300) in (0, -signal.SIGINT)  # the program may have finished before the signal, or before looking for one
        self.assertTrue(done or b"the same command continues" in errors, errors)
        self.extract()
        self.assertEqual(len(self.names()), 40)


    def test_interrupted_while_the_database_is_made(self):
        """A new database is whole, or not there."""
        for number in range(8):
            self.photo(f"{number}.jpg")
        before = self.files()
        for moment in range(24):
            command = ("database_creator",) if moment % 4 == 0 else ("feature_extractor", "--image_path", "photos", *USE_CPU)
            number = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)[moment % 3]
            run = subprocess.Popen([PROGRAM, *command, "--database_path", "new.db"], cwd=self.folder, env=self.environment(),
                                   stderr=subprocess.DEVNULL)
            while not os.path.exists(self.path("new.db")) and run.poll() is None:
                time.sleep(0.0002)
            time.sleep(moment // 12 / 1000)
            run.send_signal(number)
            self.assertIn(run.wait(300), (DONE, FAILED, -number))
            if self.files() != before:
                # a whole database may have the journal of a second transaction
                self.assertLessEqual({"new.db"}, set(self.files()) - set(before), moment)
                self.assertLessEqual(set(self.files()) - set(before), {"new.db", "new.db-journal"}, moment)
                self.assertLessEqual(self.ask("SELECT count(*) FROM images", name="new.db")[0][0], 8)
                for name in set(self.files()) - set(before):
                    os.unlink(self.path(name))


class Matches(ColmapCase):
    database = None  # the database's bytes, set by the first test

    def setUp(self):
        super().setUp()
        for name in ("1.jpg", "2.jpg", "3.jpg", "4.jpg"):
            self.photo(name)
        if Matches.database is None:
            self.extract()
            Matches.database = self.read("d.db")
        self.write("d.db", Matches.database)

    def pairs(self):
        """Returns the verified pairs, by the numbers in their names."""
        ids = {image: int(name.lstrip("# ")[0]) for image, name in self.ask("SELECT image_id, name FROM images")}
        found = self.ask("SELECT pair_id, rows FROM two_view_geometries")
        return sorted((ids[pair // 2147483647], ids[pair % 2147483647]) for pair, rows in found if rows > 0)

    ALL = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]

    def test_exhaustive(self):
        self.match("exhaustive_matcher", "--ExhaustivePairing.block_size", "50")
        self.assertEqual(self.pairs(), self.ALL)
        self.assertIn("6 already had matches", self.match("exhaustive_matcher"))

    def test_without_verification(self):
        self.assertIn("--Hartsift.keep_doubtful '1': expected 0 with skip_geometric_verification",
                      self.match("exhaustive_matcher", "--FeatureMatching.skip_geometric_verification", "1", "--Hartsift.keep_doubtful", "1",
                                 status=FAILED))
        self.match("exhaustive_matcher", "--FeatureMatching.skip_geometric_verification", "1")
        self.assertEqual((self.pairs(), len(self.ask("SELECT * FROM matches"))), ([], 6))

    def test_options_of_matching(self):
        self.match("exhaustive_matcher", "--TwoViewGeometry.min_num_inliers", "1000000")
        self.assertEqual(self.pairs(), [])
        self.write("d.db", Matches.database)
        self.match("exhaustive_matcher", "--SiftMatching.planar_scene", "1", "--SiftMatching.guided_matching=true")
        self.assertEqual({config for (config,) in self.ask("SELECT config FROM two_view_geometries")}, {6})
        for option, value in (("SiftMatching.max_ratio", "0"), ("SiftMatching.max_distance", "-1"), ("TwoViewGeometry.confidence", "2"),
                              ("TwoViewGeometry.max_error", "0"), ("TwoViewGeometry.max_num_trials", "0")):
            self.assertIn(option.rpartition(".")[2], self.match("exhaustive_matcher", f"--{option}", value, status=FAILED))

    def test_sequential(self):
        self.match("sequential_matcher", "--SequentialMatching.overlap", "1", "--SequentialPairing.quadratic_overlap", "0")
        self.assertEqual(self.pairs(), [(1, 2), (2, 3), (3, 4)])
        self.match("sequential_matcher", "--SequentialMatching.overlap", "1", "--SequentialMatching.loop_detection", "1")
        self.assertGreater(len(self.pairs()), 3)
        self.assertIn("overlap", self.match("sequential_matcher", "--SequentialMatching.overlap", "0", status=FAILED))

    def test_transitive(self):
        with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database, database:
            database.execute("UPDATE images SET name = '# ' || name")  # a list of pairs would have comments
        self.match("sequential_matcher", "--SequentialMatching.overlap", "1", "--SequentialMatching.quadratic_overlap", "0")
        self.match("transitive_matcher", "--TransitiveMatching.num_iterations", "1")
        self.assertEqual(self.pairs(), [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)])
        self.match("transitive_matcher")
        self.assertEqual(self.pairs(), self.ALL)

    def test_vocab_tree(self):
        errors = self.match("vocab_tree_matcher", "--VocabTreeMatching.vocab_tree_path", "/absent/tree.bin")
        self.assertEqual((errors.count("vocab_tree_path"), errors.count("no vocabulary tree is read")), (1, 1))
        self.assertEqual(self.pairs(), self.ALL)

    def test_spatial(self):
        self.assertIn("none of its images has a position", self.match("spatial_matcher", status=FAILED))
        os.remove(self.path("d.db"))
        for number in range(1, 5):
            self.photo(f"{number}.jpg", with_exif(self.picture(5), gps=position(47, 8 + number * 1e-3, 400)))
        self.extract()
        self.match("spatial_matcher", "--SpatialMatching.max_distance", "100")
        self.assertEqual(self.pairs(), [(1, 2), (2, 3), (3, 4)])

    def test_list_of_pairs(self):
        self.write("sequential:1", b"# pairs\n2.jpg 2.jpg\n1.jpg 3.jpg\n1.jpg absent.jpg\n\n3.jpg 1.jpg\n")
        errors = self.match("matches_importer", "--match_list_path", "sequential:1", "--match_type", "pairs")
        self.assertIn("'absent.jpg' is not an image", errors)
        self.assertNotIn("--pairs", errors)
        self.assertEqual(self.pairs(), [(1, 3)])
        self.assertIn("cannot be read", self.match("matches_importer", "--match_list_path", "absent", status=FAILED))
        self.assertIn("match_type", self.match("matches_importer", "--match_list_path", "x", "--match_type", "y", status=FAILED))

    def test_matches_of_a_file(self):
        count = self.ask("SELECT min(rows) FROM keypoints")[0][0]
        same = "".join(f"{i} {i}\n" for i in range(count))
        self.write("matches.txt", f"1.jpg 2.jpg\n{same}\n2.jpg absent.jpg\n0 0\n\n3.jpg 4.jpg\n{same}".encode())
        self.match("matches_importer", "--match_list_path", "matches.txt", "--match_type", "raw")
        self.assertEqual(self.pairs(), [(1, 2), (3, 4)])
        verified = self.ask("SELECT config FROM two_view_geometries")
        self.write("d.db", Matches.database)
        self.match("matches_importer", "--match_list_path", "matches.txt", "--match_type", "inliers")
        self.assertEqual(self.pairs(), [(1, 2), (3, 4)])
        self.assertEqual(self.ask("SELECT rows, config FROM two_view_geometries"), [(count, 3), (count, 3)])
        self.assertNotEqual(verified, [])
        self.write("d.db", Matches.database)
        for text, reason in ((b"1.jpg 2.jpg\n0 0\0\n", "m.txt:2: is longer than 8191 bytes or has a zero byte"),
                             (b"1.jpg 2.jpg\n0 0\n\n3.jpg 4.jpg\0", "m.txt:4: is longer than"),
                             ("1.jpg 2.jpg\n0 0\n".encode("utf-16"), "m.txt: is in UTF-16")):
            self.write("m.txt", text)
            self.assertIn(reason, self.match("matches_importer", "--match_list_path", "m.txt", "--match_type", "raw", status=FAILED))
        for kind, name, reason in (("raw", ".", ".: is a folder"), ("pairs", ".", ".: is a folder"),
                                   ("raw", "absent", "absent: cannot be opened: No such file"), ("pairs", "absent", "absent: cannot be read: No such file")):
            self.assertIn(reason, self.match("matches_importer", "--match_list_path", name, "--match_type", kind, status=FAILED))
        self.assertEqual(self.pairs(), [])
        for text in ("1.jpg 2.jpg\n0 x\n", "1.jpg\n0 1\n", f"1.jpg 3.jpg\n0 {count}\n"):
            self.write("matches.txt", text.encode())
            self.assertIn("matches.txt:", self.match("matches_importer", "--match_list_path", "matches.txt", "--match_type", "raw",
                                                     status=FAILED))

    def test_matches_of_a_file_need_no_descriptors(self):
        """Keypoints of a network have none that hartsift reads: its matches are verified all the same."""
        with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database:
            database.execute("DELETE FROM descriptors")
            database.commit()
        count = self.ask("SELECT min(rows) FROM keypoints")[0][0]
        self.write("matches.txt", "1.jpg 2.jpg\n".encode() + "".join(f"{i} {i}\n" for i in range(count)).encode())
        self.match("matches_importer", "--match_list_path", "matches.txt", "--match_type", "raw")
        self.assertEqual((self.pairs(), self.ask("SELECT rows FROM matches")), ([(1, 2)], [(count,)]))

    def test_feature_importer(self):
        os.mkdir(self.path("texts"))
        self.run_it("batch", "photos", "-o", "texts", "--format", "colmap", "--profile", "colmap", "-q")
        os.remove(self.path("texts/4.jpg.txt"))
        errors = self.colmap("feature_importer", "--database_path", "i.db", "--image_path", "photos", "--import_path", "texts",
                             "--ImageReader.single_camera", "1")[1]
        self.assertIn("4.jpg", errors)
        shutil.copy(self.path("i.db"), self.path("d.db"))
        self.assertEqual(self.names(), ["1.jpg", "2.jpg", "3.jpg"])
        self.match("exhaustive_matcher")
        self.assertEqual(len(self.pairs()), 3)
        self.assertIn("import_path", self.colmap("feature_importer", "--database_path", "i.db", "--image_path", "photos", "--import_path",
                                                 "absent", status=FAILED)[1])


class PassedOn(ColmapCase):
    """Tests commands that are passed to COLMAP."""

    FAKE = "#!/bin/sh\necho \"$0\" \"$@\"\nexit 7\n"

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))

    def test_named_program_gets_all_arguments(self):
        fake = self.script("fake", self.FAKE)
        output = self.colmap("mapper", "--Mapper.x=1", "a b", "-h", HARTSIFT_COLMAP=fake, status=7)[0]
        self.assertEqual(output, f"{fake} mapper --Mapper.x=1 a b -h\n")

    def test_program_in_path(self):
        fake = self.script("bin/colmap", self.FAKE)
        output = self.colmap("image_undistorter", PATH=self.path("bin"), HARTSIFT_COLMAP="", status=7)[0]
        self.assertEqual(output, f"{fake} image_undistorter\n")

    def test_named_program_that_is_none(self):
        for name in ("/absent/colmap", PROGRAM, self.folder):
            self.assertIn(f"HARTSIFT_COLMAP '{name}'", self.colmap("mapper", HARTSIFT_COLMAP=name, status=FAILED)[1])

    def test_links_and_copies_named_colmap_do_not_start_each_other(self):
        os.mkdir(self.path("other"))
        os.symlink(PROGRAM, self.path("bin/colmap"))
        shutil.copy(PROGRAM, self.path("other/colmap"))
        path = f"{self.path('bin')}:{self.path('other')}"
        for program in (PROGRAM, self.path("bin/colmap"), self.path("other/colmap")):
            errors = self.colmap("mapper", program=program, PATH=path, HARTSIFT_COLMAP="", status=FAILED)[1]
            self.assertIn("'mapper' needs COLMAP", errors)
            self.assertEqual(self.colmap("version", program=program, PATH=path, HARTSIFT_COLMAP="")[0].split()[0], "COLMAP")
            self.colmap("database_creator", "--database_path", "d.db", program=program, PATH=path, HARTSIFT_COLMAP="")
        os.mkdir(self.path("third"))
        fake = self.script("third/colmap", self.FAKE)
        for program in (PROGRAM, self.path("bin/colmap"), self.path("other/colmap")):
            output = self.colmap("mapper", program=program, PATH=f"{path}:{self.path('third')}", HARTSIFT_COLMAP="", status=7)[0]
            self.assertEqual(output, f"{fake} mapper\n")

    def test_the_script_that_starts_the_program_is_not_colmap(self):
        script = self.script("script", self.FAKE)
        os.symlink(script, self.path("bin/colmap"))
        variables = {"PATH": self.path("bin"), "HARTSIFT_COLMAP": ""}
        self.colmap("mapper", **variables, status=7)
        self.assertIn("needs COLMAP", self.colmap("mapper", **variables, HARTSIFT_COLMAP_SCRIPT=script, status=FAILED)[1])

    def test_without_colmap(self):
        errors = self.colmap("mapper", PATH=self.path("bin"), HARTSIFT_COLMAP="", status=FAILED)[1]
        self.assertIn("'mapper' needs COLMAP", errors)
        self.assertIn("pip install hartsift pycolmap", errors)

    def test_python_without_packages(self):
        errors = self.colmap("mapper", HARTSIFT_COLMAP="pycolmap", HARTSIFT_PYTHON=sys.executable, PYTHONPATH=self.folder,
                             PYTHONNOUSERSITE="1", status=FAILED)[1]
        self.assertIn("COLMAP", errors)
        errors = self.colmap("mapper", HARTSIFT_COLMAP="pycolmap", HARTSIFT_PYTHON="/absent/python", status=FAILED)[1]
        self.assertIn("HARTSIFT_PYTHON '/absent/python': cannot be started", errors)

    def test_ignored_signals_are_not_ignored_by_colmap(self):
        fake = self.script("fake", "#!/bin/sh\ngrep SigIgn /proc/self/status\n")
        ignored = int(self.colmap("mapper", HARTSIFT_COLMAP=fake)[0].split()[1], 16)
        self.assertEqual(ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)), 0)


if __name__ == "__main__":
    if COMMAND and not os.path.exists(PROGRAM):
        print(f"skipped: {PROGRAM} was not built")
        sys.exit(77)
    unittest.TestCase.maxDiff = None
    main()
