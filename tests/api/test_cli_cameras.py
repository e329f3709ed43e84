"""Cameras and positions of images in a database: from EXIF, and from --camera-model and --camera-params.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import math
import os
import sqlite3
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase  # noqa: E402
from command_case import FAILED, USAGE, main  # noqa: E402
from exif_segment import equivalent_focal_length, focal_plane, orientation, position, with_exif  # noqa: E402

WIDTH, HEIGHT = 240, 160
DIAGONAL = math.hypot(WIDTH, HEIGHT)
OPERA = (-33.856784, 151.215297, 4.25)


class CameraCase(BatchCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("photos"))
        self.run_it("draw", f"@scene:{WIDTH}x{HEIGHT}:5", "-o", "plain.jpg", "--max-features", "1", "-q")
        jpeg = self.read("plain.jpg")
        photos = {
            "a": with_exif(jpeg, exif=equivalent_focal_length(28), gps=position(*OPERA)),
            "b": with_exif(jpeg, orientation(6), focal_plane(7, 100, 4), position(12.5, -70.25, -3)),
            "c": with_exif(jpeg, gps=position(1, 2)),
            "d": jpeg,
        }
        for name, data in photos.items():
            self.write(f"photos/{name}.jpg", data)
        self.photos = [f"photos/{name}.jpg" for name in photos]

    def rows(self, sql, name="d.db"):
        with contextlib.closing(sqlite3.connect(self.path(name))) as database:
            return database.execute(sql).fetchall()

    def cameras(self, name="d.db"):
        """Model, whether the focal length is known, and the parameters, by the images' names."""
        found = self.rows("SELECT images.name, model, prior_focal_length, params FROM images JOIN cameras USING (camera_id)"
                          " ORDER BY name", name)
        return {image[:1]: (model, prior, struct.unpack(f"<{len(data) // 8}d", data)) for image, model, prior, data in found}

    def positions(self, name="d.db"):
        found = self.rows("SELECT images.name, position, coordinate_system, prior_tx, prior_ty, prior_tz FROM images"
                          " JOIN pose_priors USING (image_id)", name)
        for image, data, system, *columns in found:
            self.assertEqual((list(struct.unpack("<3d", data)), system), (columns, 0), image)
        return {image[:1]: columns for image, _, _, *columns in found}


class FromExif(CameraCase):
    def check(self, name="d.db", scale=1):
        cameras = self.cameras(name)
        centre = (WIDTH / 2 / scale, HEIGHT / 2 / scale, 0)
        for image, expected in (("a", (2, 1, (28 / 43.27 * DIAGONAL / scale, *centre))),
                                ("b", (2, 1, (700 / scale, *centre))),
                                ("c", (2, 0, (1.2 * WIDTH / scale, *centre))),
                                ("d", (2, 0, (1.2 * WIDTH / scale, *centre)))):
            self.assertEqual(cameras[image][:2], expected[:2], image)
            for value, wanted in zip(cameras[image][2], expected[2]):
                self.assertAlmostEqual(value, wanted, 9, image)
        positions = self.positions(name)
        self.assertEqual(set(positions), {"a", "b"})  # COLMAP takes none without an altitude
        for value, wanted in zip(positions["a"] + positions["b"], [*OPERA, 12.5, -70.25, -3]):
            self.assertAlmostEqual(value, wanted, 7)

    def test_extract(self):
        self.extract(*self.photos, "-o", "d.db", "-q")
        self.check()
        before = self.read("d.db")
        self.extract(*self.photos, "-o", "d.db", "-q")
        self.check()
        self.assertEqual(len(before), len(self.read("d.db")))

    def test_batch(self):
        self.batch("photos", "-o", "d.db", "-q")
        self.check()

    def test_smaller_pictures(self):
        self.extract(*self.photos, "-o", "d.db", "--decode-scale", "2", "-q")
        self.check(scale=2)

    def test_what_is_there_stays(self):
        """Cameras and positions of an image that the database has; an image without a position gets one."""
        self.extract(*self.photos, "-o", "d.db", "-q")
        with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database:
            database.execute("UPDATE pose_priors SET coordinate_system = 1, position = ? WHERE image_id = 1",
                             (struct.pack("<3d", 7, 8, 9),))
            database.execute("DELETE FROM pose_priors WHERE image_id = 2")
            database.execute("UPDATE images SET prior_tx = NULL")
            database.execute("UPDATE cameras SET prior_focal_length = 1 WHERE camera_id = 4")
            database.commit()
        self.extract(*self.photos, "-o", "d.db", "-q")
        found = self.rows("SELECT image_id, coordinate_system, position FROM pose_priors ORDER BY image_id")
        self.assertEqual(found[0], (1, 1, struct.pack("<3d", 7, 8, 9)))
        self.assertEqual(found[1][:2], (2, 0))
        self.assertEqual(self.cameras()["d"][1], 1)

    def test_shared_cameras(self):
        self.write("photos/e.jpg", self.read("photos/a.jpg"))
        self.extract(*self.photos, "photos/e.jpg", "-o", "d.db", "--single-camera", "-q")
        self.assertEqual(self.rows("SELECT camera_id FROM images ORDER BY name"), [(1,), (2,), (3,), (3,), (1,)])


class Chosen(CameraCase):
    def test_model(self):
        for command in ("extract", "batch"):
            operands = self.photos if command == "extract" else ["photos"]
            self.run_it(command, *operands, "-o", f"{command}.db", "--camera-model", "OPENCV", "-q")
            focal = 28 / 43.27 * DIAGONAL
            self.assertEqual(self.cameras(f"{command}.db")["a"], (4, 1, (focal, focal, WIDTH / 2, HEIGHT / 2, 0, 0, 0, 0)))
            self.assertEqual(self.cameras(f"{command}.db")["d"][:2], (4, 0))

    def test_parameters(self):
        for command in ("extract", "batch"):
            operands = self.photos if command == "extract" else ["photos"]
            self.run_it(command, *operands, "-o", f"{command}.db", "--camera-model", "PINHOLE", "--camera-params",
                        "300.5,301,120,8e1", "-q")
            self.assertEqual(set(self.cameras(f"{command}.db").values()), {(1, 1, (300.5, 301, 120, 80))})
            self.assertEqual(set(self.positions(f"{command}.db")), {"a", "b"})
        self.extract(*self.photos, "-o", "d.db", "--camera-params", "300,120,80,0.125", "--single-camera", "-q")
        self.assertEqual(self.rows("SELECT count(*), min(model), max(model) FROM cameras"), [(1, 2, 2)])

    def test_refused(self):
        for command, operands in (("extract", self.photos), ("batch", ["photos"])):
            for text in ("1,2,3", "1,2,3,4,5", "1,2,,4", "1,2,3,x", "1,2,3,nan", "1,2,3,4,", ",".join("1" * 17)):
                errors = self.run_it(command, *operands, "-o", "d.db", "--camera-params", text, status=USAGE)[1]
                self.assertIn("expected the 4 numbers of SIMPLE_RADIAL", errors, text)
            errors = self.run_it(command, *operands, "-o", "d.db", "--camera-model", "radial", status=USAGE)[1]
            self.assertIn("SIMPLE_PINHOLE, PINHOLE", errors)
            for option in (("--camera-model", "RADIAL"), ("--camera-params", "1,2,3,4"), ("--single-camera",), ("--replace",)):
                errors = self.run_it(command, *operands, "-o", "folder/", *option, status=USAGE)[1]
                self.assertIn(f"{option[0]} is for databases", errors)
        errors = self.extract(*self.photos, "-o", "d.db", "--camera-params", "0,120,80,0", status=FAILED)[1]
        self.assertIn("a focal length of the camera is not above 0", errors)
        self.assertFalse(os.path.exists(self.path("d.db")))

    def test_resume_tells_them_apart(self):
        self.batch("photos", "-o", "d.db", "-q", "--camera-model", "RADIAL")
        self.assertIn("4 kept", self.batch("photos", "-o", "d.db", "--resume", "--camera-model", "RADIAL")[1])
        for options in ((), ("--camera-model", "OPENCV")):
            self.assertIn("camera-model", self.batch("photos", "-o", "d.db", "--resume", *options, status=USAGE)[1])


main()
