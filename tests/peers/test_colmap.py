"""COLMAP databases read by COLMAP itself: Debian's colmap and the Python package pycolmap, if installed.

Runs HARTSIFT_COMMAND (or the program named as first argument). Ends with 77, skipped, without NumPy, without both
peers, or if the command was built without SQLite.
"""
import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
try:
    import numpy
except ImportError:
    print("skipped: no NumPy")
    sys.exit(SKIPPED)
try:
    import pycolmap
except ImportError:
    pycolmap = None

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import plane_views  # noqa: E402
from exif_segment import equivalent_focal_length, focal_plane, orientation, position, with_exif  # noqa: E402
from plane_views import HEIGHT, VIEWS, WIDTH  # noqa: E402

COMMAND = os.environ.get("HARTSIFT_COMMAND", "")
DEBIAN = shutil.which("colmap")
FEATURES = 500  # maximum number in a view


def run(*arguments, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HARTSIFT_")}
    environment["QT_QPA_PLATFORM"] = "offscreen"
    finished = subprocess.run([str(a) for a in arguments], cwd=folder, env=environment, check=False, timeout=800,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert finished.returncode == 0, f"{arguments}\n{finished.stdout.decode('utf-8', 'replace')[-2000:]}"
    return finished.stdout


def command_in(folder):
    """Runs the command in a folder and returns it, for plane_views."""
    def in_folder(*arguments):
        run(COMMAND, *arguments, folder=folder)
        return folder
    return in_folder


def make_views(folder):
    plane_views.make_views(command_in(folder), folder / "photos")


def store_turned(picture, path):
    """Writes a portrait picture like a phone: stored in landscape, with the orientation that rotates it."""
    lying = numpy.ascontiguousarray(numpy.rot90(picture))
    assert pycolmap.Bitmap.from_array(lying).write(str(path))
    path.write_bytes(with_exif(path.read_bytes(), orientation(6)))


def rows(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as database:
        return database.execute(sql).fetchall()


class Case(unittest.TestCase):
    folder = None

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        make_views(cls.folder)
        cls.photos = sorted((cls.folder / "photos").glob("*.pgm"))

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def fresh(self, name="database.db"):
        path = self.folder / name
        for old in self.folder.glob(f"{name}*"):
            old.unlink()
        return path

    def extract(self, path, *options):
        run(COMMAND, "extract", *self.photos, "-o", path, "-q", "--single-camera", "--max-features", FEATURES, *options,
            folder=self.folder)

    def match(self, path, *options):
        output = run(COMMAND, "match", "--database", path, "--json", "-q", *options, folder=self.folder)
        return [json.loads(line) for line in output.decode().splitlines()]

    def check_reconstruction(self, images, points, error):
        self.assertEqual(images, VIEWS)
        self.assertGreater(points, 150)
        self.assertLess(error, 1.0)

    def make_photographs(self):
        """Makes JPEGs with EXIF of their camera; returns the folder."""
        folder = self.folder / "taken"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        run(COMMAND, "draw", f"@scene:{WIDTH}x{HEIGHT}:5", "-o", folder / "plain.jpg", "--max-features", 1, "-q",
            folder=self.folder)
        jpeg = (folder / "plain.jpg").read_bytes()
        for name, entries in {
            "equivalent": {"exif": equivalent_focal_length(35), "gps": position(-33.856784, 151.215297, 4.25)},
            "plane": {"exif": focal_plane(7.5, 254, 2), "gps": position(12.5, -70.25, -3)},
            "centimetres": {"exif": focal_plane(24, 400, 3), "gps": position(0.001, 0.002)},
            "turned": {"first": orientation(6), "exif": equivalent_focal_length(50)},
        }.items():
            (folder / f"{name}.jpg").write_bytes(with_exif(jpeg, **entries))
        return folder

    CAMERAS = ("SELECT images.name, model, width, height, prior_focal_length, params FROM images JOIN cameras USING (camera_id)"
               " ORDER BY name")

    def check_cameras(self, ours, theirs, unknown=(), precision=1e-5):
        """Compares cameras with those of COLMAP's extractor. unknown: photographs without a focal length that COLMAP can
        use."""
        mine, others = ([row for row in rows(path, self.CAMERAS) if row[0] not in unknown] for path in (ours, theirs))
        self.assertEqual([row[:5] for row in mine], [row[:5] for row in others])
        self.assertEqual([name for name, *_, known, _ in rows(ours, self.CAMERAS) if not known], ["plain.jpg"])
        for one, other in zip(mine, others):
            parameters = [numpy.frombuffer(row[5], "<f8") for row in (one, other)]
            self.assertLess(numpy.abs(parameters[0] - parameters[1]).max(), precision * WIDTH, one[0])

    def compare_with_colmap(self, ours, theirs, least=0.9):
        """Checks that keypoints of both extractors with equal position and scale have equal orientation."""
        shares = []
        for (mine,), (other,) in zip(rows(ours, "SELECT data FROM keypoints ORDER BY image_id"),
                                     rows(theirs, "SELECT data FROM keypoints ORDER BY image_id")):
            a, b = (numpy.frombuffer(data, "<f4").reshape(-1, 6).astype(float) for data in (mine, other))
            near = numpy.abs(a[:, None, :2] - b[None, :, :2]).max(axis=2) < 0.1
            shape = numpy.abs(a[:, None, 2:] - b[None, :, 2:]).max(axis=2) < 0.05 * numpy.hypot(a[:, 2], a[:, 4])[:, None]
            shares.append((near & shape).any(axis=1).mean())
        self.assertGreater(min(shares), least, shares)


@unittest.skipUnless(DEBIAN, "no colmap")
class Debian(Case):
    def colmap(self, command, path, *options):
        return run(DEBIAN, command, "--database_path", path, *options, folder=self.folder)

    def mapper(self, path):
        shutil.rmtree(self.folder / "model", ignore_errors=True)
        (self.folder / "model").mkdir()
        # The pictures have no distortion; COLMAP 3.8's last adjustment may refine it to a value at which no point
        # stays.
        self.colmap("mapper", path, "--image_path", "photos", "--output_path", "model", "--Mapper.num_threads", 1,
                    "--Mapper.ba_refine_extra_params", 0)
        text = run(DEBIAN, "model_analyzer", "--path", "model/0", folder=self.folder).decode()
        facts = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
        self.check_reconstruction(int(facts["Registered images"]), int(facts["Points"]),
                                  float(facts["Mean reprojection error"].rstrip("px")))

    def test_features_matches_and_mapper(self):
        path = self.fresh()
        self.extract(path)
        self.assertEqual(len(self.match(path)), VIEWS * (VIEWS - 1) // 2)
        self.mapper(path)

    def test_cameras_and_positions_of_photographs(self):
        photos, ours, theirs = self.make_photographs(), self.fresh(), self.fresh("theirs.db")
        run(COMMAND, "extract", *sorted(photos.glob("*.jpg")), "-o", ours, "-q", folder=self.folder)
        self.colmap("feature_extractor", theirs, "--image_path", photos, "--SiftExtraction.use_gpu", 0,
                    "--SiftExtraction.num_threads", 1)
        # FreeImage, with which 3.8 reads, gives it no usable resolution of the focal plane. 3.8 takes an equivalent
        # focal length as relative to 35 mm along the larger side, later versions to 43.27 mm along the diagonal.
        self.check_cameras(ours, theirs, ("plane.jpg", "centimetres.jpg"), 0.02)
        priors = [numpy.array(rows(path, "SELECT prior_tx, prior_ty, prior_tz FROM images ORDER BY name"), float)
                  for path in (ours, theirs)]
        known = numpy.isfinite(priors[0]).all(axis=1)
        self.assertEqual(known.tolist(), [False, True, False, True, False])
        priors[1][:, 2] *= numpy.where(priors[0][:, 2] < 0, -1, 1)  # COLMAP 3.8 ignores the sign of altitudes below the sea
        self.assertLess(numpy.abs(priors[0] - priors[1])[known].max(), 1e-5)
        # COLMAP's own spatial matcher reads the positions in our tables.
        self.colmap("spatial_matcher", ours, "--SpatialMatching.max_distance", 1, "--SiftMatching.use_gpu", 0,
                    "--SiftMatching.num_threads", 1)

    def test_matcher_of_colmap(self):
        """COLMAP also verifies hartsift's unverified matches."""
        path = self.fresh()
        self.extract(path, "--profile", "colmap")
        self.match(path, "--no-verify")
        self.colmap("exhaustive_matcher", path, "--SiftMatching.use_gpu", 0, "--SiftMatching.num_threads", 1)
        verified = rows(path, "SELECT count(*), min(rows) FROM two_view_geometries WHERE config BETWEEN 2 AND 6")
        self.assertEqual(verified[0][0], VIEWS * (VIEWS - 1) // 2)
        self.mapper(path)

    def test_its_own_database(self):
        """hartsift writes into tables made by COLMAP, and matches features made by COLMAP."""
        path = self.fresh()
        self.colmap("database_creator", path)
        self.extract(path, "--profile", "colmap")
        theirs = self.fresh("theirs.db")
        self.colmap("feature_extractor", theirs, "--image_path", "photos", "--ImageReader.single_camera", 1,
                    "--SiftExtraction.use_gpu", 0, "--SiftExtraction.num_threads", 1, "--SiftExtraction.max_num_features", FEATURES)
        self.compare_with_colmap(path, theirs)
        before = rows(theirs, "SELECT * FROM keypoints") + rows(theirs, "SELECT * FROM images")
        records = self.match(theirs)
        self.assertGreater(min(record["inliers"] for record in records), 15)
        self.assertEqual(rows(theirs, "SELECT * FROM keypoints") + rows(theirs, "SELECT * FROM images"), before)
        self.mapper(theirs)


@unittest.skipUnless(pycolmap, "no pycolmap")
class Pycolmap(Case):
    def mapper(self, path):
        options = pycolmap.IncrementalPipelineOptions()
        options.num_threads = 1
        (self.folder / "models").mkdir(exist_ok=True)
        models = pycolmap.incremental_mapping(str(path), str(self.folder / "photos"), str(self.folder / "models"), options)
        self.check_reconstruction(models[0].num_reg_images(), models[0].num_points3D(),
                                  models[0].compute_mean_reprojection_error())

    def check_content(self, path):
        """Checks that pycolmap reads the content of the tables, also after extending them to its own version."""
        keypoints = dict(rows(path, "SELECT image_id, data FROM keypoints"))
        descriptors = dict(rows(path, "SELECT image_id, data FROM descriptors"))
        matches = rows(path, "SELECT pair_id, data FROM matches")
        geometries = rows(path, "SELECT pair_id, data, config, F FROM two_view_geometries")
        with contextlib.closing(pycolmap.Database.open(str(path))) as database:
            self.assertEqual(database.num_images(), VIEWS)
            camera = database.read_camera(1)
            self.assertEqual((camera.width, camera.height, camera.model.name), (WIDTH, HEIGHT, "SIMPLE_RADIAL"))
            self.assertEqual(list(camera.params), [1.2 * WIDTH, WIDTH / 2, HEIGHT / 2, 0])
            for image_id, data in keypoints.items():
                read = numpy.asarray(database.read_keypoints(image_id))
                self.assertEqual(read.astype("<f4").tobytes(), data)
                described = database.read_descriptors(image_id)
                self.assertEqual(numpy.asarray(getattr(described, "data", described)).tobytes(), descriptors[image_id])
            for pair_id, data in matches:
                pair = divmod(pair_id, 2147483647)
                self.assertEqual(numpy.asarray(database.read_matches(*pair)).astype("<u4").tobytes(), data)
            for pair_id, data, config, fundamental in geometries:
                geometry = database.read_two_view_geometry(*divmod(pair_id, 2147483647))
                self.assertEqual(numpy.asarray(geometry.inlier_matches).astype("<u4").tobytes(), data)
                self.assertEqual(int(geometry.config), config)
                self.check_fundamental(geometry, fundamental, keypoints, divmod(pair_id, 2147483647))

    def check_fundamental(self, geometry, fundamental, keypoints, pair):
        """Checks that the inliers are on their epipolar lines in COLMAP's coordinates."""
        matrix = numpy.asarray(geometry.F)
        self.assertTrue(numpy.array_equal(matrix.reshape(-1), numpy.frombuffer(fundamental, "<f8")))
        a, b = (numpy.frombuffer(keypoints[image], "<f4").reshape(-1, 6)[:, :2].astype(float) for image in pair)
        inliers = numpy.asarray(geometry.inlier_matches).astype(int)
        a, b = (numpy.concatenate([points, numpy.ones((len(points), 1))], axis=1)
                for points in (a[inliers[:, 0]], b[inliers[:, 1]]))
        lines, back = a @ matrix.T, b @ matrix
        distance = numpy.abs((b * lines).sum(axis=1)) / numpy.sqrt((lines[:, :2] ** 2).sum(axis=1) + (back[:, :2] ** 2).sum(axis=1))
        self.assertLess(distance.max(), 4.001)

    def test_old_tables_are_taken_over(self):
        path = self.fresh()
        self.extract(path)
        self.match(path)
        self.check_content(path)
        self.mapper(path)

    def positions(self, path):
        """Returns the positions that pycolmap reads, by image. pycolmap first extends the tables to its version."""
        with contextlib.closing(pycolmap.Database.open(str(path))) as database:
            names = {image.image_id: image.name for image in database.read_all_images()}
            return {names[prior.corr_data_id.id]: prior for prior in database.read_all_pose_priors()
                    if prior.has_position()}

    def test_cameras_and_positions_of_photographs(self):
        photos, theirs = self.make_photographs(), self.fresh("theirs.db")
        options = pycolmap.FeatureExtractionOptions()
        options.use_gpu, options.num_threads = False, 1
        pycolmap.extract_features(str(theirs), str(photos), extraction_options=options)
        expected = self.positions(theirs)
        self.assertEqual(set(expected), {"equivalent.jpg", "plane.jpg"})
        for made_by_colmap in (False, True):
            ours = self.fresh()
            if made_by_colmap:
                pycolmap.Database.open(str(ours)).close()
            run(COMMAND, "extract", *sorted(photos.glob("*.jpg")), "-o", ours, "-q", folder=self.folder)
            self.check_cameras(ours, theirs)
            found = self.positions(ours)
            self.assertEqual(set(found), set(expected))
            for name, prior in found.items():
                self.assertEqual(prior.coordinate_system, pycolmap.PosePriorCoordinateSystem.WGS84)
                self.assertLess(numpy.abs(prior.position - expected[name].position).max(), 1e-5)
                self.assertFalse(prior.has_position_cov() or prior.has_gravity())

    def test_its_own_database(self):
        path = self.fresh()
        pycolmap.Database.open(str(path)).close()
        self.extract(path, "--profile", "colmap")
        self.match(path)
        self.check_content(path)
        with contextlib.closing(pycolmap.Database.open(str(path))) as database:
            self.assertEqual((database.num_rigs(), database.num_frames()), (1, VIEWS))
        self.mapper(path)

    def test_its_features(self):
        ours, theirs = self.fresh(), self.fresh("theirs.db")
        self.extract(ours, "--profile", "colmap")
        options = pycolmap.FeatureExtractionOptions()
        options.use_gpu, options.num_threads, options.sift.max_num_features = False, 1, FEATURES
        pycolmap.extract_features(str(theirs), str(self.folder / "photos"), camera_mode=pycolmap.CameraMode.SINGLE,
                                  extraction_options=options)
        self.compare_with_colmap(ours, theirs)
        self.match(theirs)
        self.check_content_of_matches(theirs)
        self.mapper(theirs)

    def reconstruct(self, path, folder):
        """Maps a folder of photographs and undistorts them, in a separate process because COLMAP aborts its process on
        failure."""
        script = """if True:
            import pycolmap, sys
            options = pycolmap.IncrementalPipelineOptions()
            options.num_threads = 1
            models = pycolmap.incremental_mapping(sys.argv[1], sys.argv[2], "turned", options)
            pycolmap.undistort_images("flat", "turned/0", sys.argv[2])
        """
        for name in ("turned", "flat"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / "turned").mkdir()
        run(sys.executable, "-c", script, path, folder, folder=self.folder)
        return pycolmap.Reconstruction(str(self.folder / "turned/0"))

    def check_turned(self, folder, size, darkest):
        """Checks photographs whose storage is rotated: cameras and colours equal COLMAP's, and all are undistorted.
        darkest: minimum gray of the pictures; a point that projects to outside them is black."""
        photos = sorted(folder.glob("*.jpg"))
        ours, theirs = self.fresh(), self.fresh("theirs.db")
        run(COMMAND, "extract", *photos, "-o", ours, "-q", "--single-camera", "--profile", "colmap", folder=self.folder)
        self.match(ours)
        options = pycolmap.FeatureExtractionOptions()
        options.use_gpu, options.num_threads = False, 1
        pycolmap.extract_features(str(theirs), str(folder), camera_mode=pycolmap.CameraMode.SINGLE,
                                  extraction_options=options)
        self.assertEqual(rows(ours, "SELECT model, width, height, params FROM cameras"),
                         rows(theirs, "SELECT model, width, height, params FROM cameras"))
        self.assertEqual(rows(ours, "SELECT width, height FROM cameras"), [size])
        # COLMAP converts JPEGs to gray with other weights, and extracts from a rotated copy.
        self.compare_with_colmap(ours, theirs, 0.5)
        model = self.reconstruct(ours, folder)
        self.assertEqual(model.num_reg_images(), len(photos))
        colours = numpy.array([point.color for point in model.points3D.values()]).max(axis=1)
        self.assertGreater(len(colours), 150)
        # COLMAP's last steps add a few points that stay black, with its own features too. With wrongly rotated
        # coordinates a fifth would be black.
        self.assertLess((colours < darkest).mean(), 0.06)
        flat = sorted((self.folder / "flat/images").iterdir())
        self.assertEqual([path.name for path in flat], [path.name for path in photos])

    def two_folders(self):
        """Makes small pictures of two cameras, some with a focal length in EXIF."""
        photos = self.folder / "cameras"
        if not photos.exists():
            for name, focal in zip(("left/1", "left/2", "right/1", "right/2", "right/3"), (None, 28, 24, None, 35)):
                path = photos / f"{name}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                picture = plane_views.texture(command_in(self.folder), 3)[:160, :240].astype("u1")
                assert pycolmap.Bitmap.from_array(numpy.ascontiguousarray(picture)).write(str(path))
                path.write_bytes(with_exif(path.read_bytes(), exif=equivalent_focal_length(focal) if focal else ()))
        return photos

    @staticmethod
    def shared_cameras(path):
        """Returns the camera of each image, and the first image that has it."""
        found = rows(path, "SELECT name, model, prior_focal_length, params, camera_id FROM images JOIN cameras USING (camera_id)"
                           " ORDER BY name")
        return [(*row[:3], numpy.frombuffer(row[3], "<f8").round(6).tolist(), min(other[0] for other in found if other[4] == row[4]))
                for row in found]

    def test_shared_cameras(self):
        photos = self.two_folders()
        extraction = pycolmap.FeatureExtractionOptions()
        extraction.use_gpu, extraction.num_threads, extraction.sift.max_num_features = False, 1, 30
        for mode, share in (("PER_IMAGE", []), ("SINGLE", ["--single-camera"]), ("PER_FOLDER", ["--single-camera-per-folder"])):
            for model, parameters in (("SIMPLE_RADIAL", ""), ("OPENCV_FISHEYE", ""), ("PINHOLE", "300,301,120,80")):
                theirs, ours = self.fresh("theirs.db"), self.fresh("ours.db")
                reader = pycolmap.ImageReaderOptions()
                reader.camera_model, reader.camera_params = model, parameters
                pycolmap.extract_features(str(theirs), str(photos), camera_mode=getattr(pycolmap.CameraMode, mode),
                                          reader_options=reader, extraction_options=extraction)
                options = [*share, "--camera-model", model] + (["--camera-params", parameters] if parameters else [])
                run(COMMAND, "batch", photos, "-o", ours, "-q", "--max-features", 30, *options, folder=self.folder)
                self.assertEqual(self.shared_cameras(ours), self.shared_cameras(theirs), (mode, model))

    def test_cameras_of_its_rigs(self):
        """Pictures added to a rig keep its cameras, so that the rig can be rebuilt from all images."""
        photos, path = self.two_folders(), self.fresh("rig.db")
        part = pycolmap.RigConfigCamera
        rig = pycolmap.RigConfig(cameras=[part(ref_sensor=True, image_prefix="left/"),
                                          part(image_prefix="right/", cam_from_rig=pycolmap.Rigid3d())])
        for names in (["left/1.jpg", "right/1.jpg"], ["left/2.jpg", "right/2.jpg"]):
            run(COMMAND, "extract", *(photos / name for name in names), "--image-path", photos, "-o", path, "-q",
                "--single-camera-per-folder", folder=self.folder)
            with contextlib.closing(pycolmap.Database.open(str(path))) as database:
                pycolmap.apply_rig_config([rig], database)
        self.assertEqual(rows(path, "SELECT name, camera_id FROM images ORDER BY image_id"),
                         [("left/1.jpg", 1), ("right/1.jpg", 2), ("left/2.jpg", 1), ("right/2.jpg", 2)])
        self.assertEqual(rows(path, "SELECT count(*) FROM rigs"), [(1,)])
        self.assertEqual(rows(path, "SELECT count(DISTINCT frame_id), count(*) FROM frame_data"), [(2, 4)])
        with self.assertRaisesRegex(AssertionError, "one of a rig of several"):
            run(COMMAND, "extract", photos / "right/3.jpg", "--image-path", photos, "-o", path, "-q", "--single-camera",
                folder=self.folder)

    def test_turned_scenes(self):
        folder = self.folder / "lying"
        folder.mkdir()
        for photo in self.photos:
            gray = numpy.frombuffer(photo.read_bytes()[-WIDTH * HEIGHT:], "u1").reshape(HEIGHT, WIDTH)
            brighter = (90 + gray * (165 / 255)).astype(numpy.uint8)
            store_turned(numpy.repeat(brighter[..., None], 3, axis=2), folder / f"{photo.stem}.jpg")
        self.check_turned(folder, (HEIGHT, WIDTH), 60)

    def test_turned_photographs(self):
        desk = pathlib.Path(__file__).resolve().parents[3] / "shared/data/slam/desk"
        if not desk.is_dir():
            self.skipTest("no photographs beside the checkout")
        folder = self.folder / "desk"
        folder.mkdir()
        for photo in sorted(desk.glob("*.png")):
            colours = numpy.asarray(pycolmap.Bitmap.read(str(photo), True).to_array())
            store_turned((60 + colours * (195 / 255)).astype(numpy.uint8), folder / f"{photo.stem}.jpg")
        self.check_turned(folder, (480, 640), 40)

    def test_its_number_of_features(self):
        """COLMAP's limit keeps whole levels, so there are more features than the limit, in COLMAP and in hartsift."""
        ours, theirs = self.fresh(), self.fresh("theirs.db")
        options = pycolmap.FeatureExtractionOptions()
        options.use_gpu, options.num_threads = False, 1
        for most in (40, 150):
            options.sift.max_num_features = most
            pycolmap.extract_features(str(self.fresh("theirs.db")), str(self.folder / "photos"),
                                      camera_mode=pycolmap.CameraMode.SINGLE, extraction_options=options)
            run(COMMAND, "extract", *self.photos, "-o", self.fresh(), "-q", "--single-camera", "--profile", "colmap",
                "--max-features", most, "--selection", "levels", folder=self.folder)
            counts = [[count for (count,) in rows(path, "SELECT rows FROM keypoints ORDER BY image_id")]
                      for path in (ours, theirs)]
            for mine, other in zip(*counts):
                self.assertGreater(other, most)
                self.assertLessEqual(abs(mine - other), max(2, 0.02 * other), counts)

    def check_content_of_matches(self, path):
        with contextlib.closing(pycolmap.Database.open(str(path))) as database:
            self.assertEqual(database.num_verified_image_pairs(), VIEWS * (VIEWS - 1) // 2)

    def make_rig(self, path, cameras, frames):
        """Makes a rig with a picture of each camera in each frame, without features."""
        with contextlib.closing(pycolmap.Database.open(str(path))) as database:
            rig, sensors = pycolmap.Rig(), []
            for _ in cameras:
                number = database.write_camera(pycolmap.Camera(model="SIMPLE_PINHOLE", width=9, height=9, params=[9, 4, 4]))
                sensors.append(pycolmap.sensor_t(pycolmap.SensorType.CAMERA, number))
            rig.add_ref_sensor(sensors[0])
            for sensor in sensors[1:]:
                rig.add_sensor(sensor, None)
            rig_id = database.write_rig(rig)
            taken = [[database.write_image(pycolmap.Image(name=f"{camera}/f{i}", camera_id=sensor.id)) for i in range(frames)]
                     for camera, sensor in zip(cameras, sensors)]
            for images in zip(*taken):
                frame = pycolmap.Frame()
                frame.rig_id = rig_id
                for sensor, image in zip(sensors, images):
                    frame.add_data_id(pycolmap.data_t(sensor, image))
                    database.write_keypoints(image, numpy.zeros((0, 6), "f4"))
                database.write_frame(frame)

    def test_frames_of_a_rig_in_sequence(self):
        if not hasattr(pycolmap, "SequentialPairGenerator") or "expand_rig_images" not in pycolmap.SequentialPairingOptions().todict():
            self.skipTest("this pycolmap knows no sequences of frames")
        for cameras, overlap in (("lr", 1), ("lr", 3), ("abc", 2)):
            path = self.fresh()
            self.make_rig(path, cameras, 7)
            with contextlib.closing(pycolmap.Database.open(str(path))) as database:
                options = pycolmap.SequentialPairingOptions()
                options.overlap, options.quadratic_overlap = overlap, False
                expected = {tuple(sorted(pair)) for pair in pycolmap.SequentialPairGenerator(options, database).all_pairs()}
            self.match(path, "--pairs", f"sequential:{overlap}", "--no-verify")
            found = {divmod(number, 2147483647) for number, in rows(path, "SELECT pair_id FROM matches")}
            self.assertEqual(found, expected)

    def test_a_migrated_database(self):
        """Old images have no frames. pycolmap extends the tables, then hartsift adds more images. COLMAP still loads all
        of them."""
        path = self.fresh()
        run(COMMAND, "extract", *self.photos[:2], "-o", path, "-q", "--single-camera", "--max-features", FEATURES,
            folder=self.folder)
        pycolmap.Database.open(str(path)).close()
        self.extract(path)
        self.match(path)
        self.mapper(path)


def main():
    global COMMAND
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and os.path.exists(sys.argv[1]):
        COMMAND = sys.argv.pop(1)
    if not COMMAND or not (DEBIAN or pycolmap):
        print("skipped: " + ("neither colmap nor pycolmap" if COMMAND else "no command to test"))
        sys.exit(SKIPPED)
    COMMAND = os.path.abspath(COMMAND)
    if not json.loads(subprocess.run([COMMAND, "info", "--json"], check=True, stdout=subprocess.PIPE).stdout)["build"]["sqlite"]:
        print("skipped: built without SQLite")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)


main()
