"""Cameras and positions of images in a database: from EXIF, and from --camera-model and --camera-params.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import math
import os
import shutil
import sqlite3
import struct
import sys

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
        self.make_once("draw", f"@scene:{WIDTH}x{HEIGHT}:5", "--max-features", "1", "-q", "-o", "plain.jpg")
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

    def cameras(self, name="d.db"):
        """Returns, by image name: model, whether the focal length is known, and the parameters."""
        found = self.ask("SELECT images.name, model, prior_focal_length, params FROM images JOIN cameras USING (camera_id)"
                         " ORDER BY name", name=name)
        return {image[:1]: (model, prior, struct.unpack(f"<{len(data) // 8}d", data)) for image, model, prior, data in found}

    def positions(self, name="d.db"):
        found = self.ask("SELECT images.name, position, coordinate_system, prior_tx, prior_ty, prior_tz FROM images"
                         " JOIN pose_priors USING (image_id)", name=name)
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
        self.assertEqual(set(positions), {"a", "b"})  # COLMAP accepts no position without an altitude
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
        """An image keeps the camera and position that the database has for it. An image without a position gets one."""
        self.extract(*self.photos, "-o", "d.db", "-q")
        with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database:
            database.execute("UPDATE pose_priors SET coordinate_system = 1, position = ? WHERE image_id = 1",
                             (struct.pack("<3d", 7, 8, 9),))
            database.execute("DELETE FROM pose_priors WHERE image_id = 2")
            database.execute("UPDATE images SET prior_tx = NULL")
            database.execute("UPDATE cameras SET prior_focal_length = 1 WHERE camera_id = 4")
            database.commit()
        self.extract(*self.photos, "-o", "d.db", "-q")
        found = self.ask("SELECT image_id, coordinate_system, position FROM pose_priors ORDER BY image_id")
        self.assertEqual(found[0], (1, 1, struct.pack("<3d", 7, 8, 9)))
        self.assertEqual(found[1][:2], (2, 0))
        self.assertEqual(self.cameras()["d"][1], 1)

    def test_shared_cameras(self):
        """As in COLMAP, the first image decides. A message reports other focal lengths."""
        self.write("photos/e.jpg", self.read("photos/a.jpg"))
        errors = self.extract(*self.photos, "photos/e.jpg", "-o", "d.db", "--single-camera")[1]
        self.assertEqual(self.ask("SELECT DISTINCT camera_id FROM images"), [(1,)])
        self.assertEqual(self.cameras()["d"], self.cameras()["a"])
        self.assertEqual(self.cameras()["a"][1], 1)
        self.assertIn("1 image has in EXIF a focal length that differs", errors)
        errors = self.batch("photos", "-o", "e.db", "--single-camera")[1]
        self.assertIn("1 image has in EXIF a focal length that differs", errors)
        self.extract("photos/d.jpg", "photos/a.jpg", "-o", "f.db", "--single-camera", "-q")
        self.assertEqual(self.cameras("f.db")["a"][1:], (0, (1.2 * WIDTH, WIDTH / 2, HEIGHT / 2, 0)))


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
        self.assertEqual(self.ask("SELECT count(*), min(model), max(model) FROM cameras"), [(1, 2, 2)])

    def test_blanks_between_parameters(self):
        self.extract(*self.photos, "-o", "d.db", "--camera-params", " 300, 120 ,80,0 ", "-q")
        self.assertEqual(set(self.cameras().values()), {(2, 1, (300, 120, 80, 0))})

    def test_parameters_of_another_size(self):
        """COLMAP's mapper skips cameras whose principal point is outside the picture."""
        for model, text in (("SIMPLE_RADIAL", "3000,1200,800,0"), ("PINHOLE", "300,300,-1,80"), ("EQUIRECTANGULAR", "240,161")):
            errors = self.extract("photos/a.jpg", "-o", "d.db", "--camera-model", model, "--camera-params", text, "-q",
                                  status=FAILED)[1]
            self.assertIn("240x160", errors)
            self.assertFalse(os.path.exists(self.path("d.db")))
        self.extract("photos/a.jpg", "-o", "d.db", "--camera-model", "EQUIRECTANGULAR", "--camera-params", "240,160", "-q")
        self.run_it("draw", "@scene:160x240:5", "-o", "photos/z.jpg", "--max-features", "1", "-q")
        for options, reason in ((["--camera-params", "300,100,80,0"], "--camera-params describe"), (["--single-camera"], "share a camera")):
            errors = self.batch("photos", "-o", "e.db", *options)[1]
            self.assertIn("1 image is of another size than the first, 240x160: ", errors)
            self.assertIn(reason, errors)
            os.remove(self.path("e.db"))

    def test_refused(self):
        for command, operands in (("extract", self.photos), ("batch", ["photos"])):
            for text in ("1,2,3", "1,2,3,4,5", "1,2,,4", "1,2,3,x", "1,2,3,nan", "1,2,3,4,", ",".join("1" * 17)):
                errors = self.run_it(command, *operands, "-o", "d.db", "--camera-params", text, status=USAGE)[1]
                self.assertIn("expected the 4 numbers of SIMPLE_RADIAL", errors, text)
            errors = self.run_it(command, *operands, "-o", "d.db", "--camera-model", "radial", status=USAGE)[1]
            self.assertIn("SIMPLE_PINHOLE, PINHOLE", errors)
            for option in (("--camera-model", "RADIAL"), ("--camera-params", "1,2,3,4"), ("--single-camera",), ("--replace",),
                           ("--single-camera-per-folder",), ("--camera-id", "1")):
                errors = self.run_it(command, *operands, "-o", "folder/", *option, status=USAGE)[1]
                self.assertIn(f"{option[0]} is for databases", errors)
        errors = self.run_it("extract", *self.photos, "-o", "folder/", "--image-path", "photos", status=USAGE)[1]
        self.assertIn("--image-path is for databases", errors)
        errors = self.extract(*self.photos, "-o", "d.db", "--camera-params", "0,120,80,0", status=FAILED)[1]
        self.assertIn("a focal length of the camera is not above 0", errors)
        self.assertFalse(os.path.exists(self.path("d.db")))

    def test_resume_tells_them_apart(self):
        self.batch("photos", "-o", "d.db", "-q", "--camera-model", "RADIAL")
        self.assertIn("4 kept", self.batch("photos", "-o", "d.db", "--resume", "--camera-model", "RADIAL")[1])
        for options in ((), ("--camera-model", "OPENCV")):
            self.assertIn("camera-model", self.batch("photos", "-o", "d.db", "--resume", *options, status=USAGE)[1])


class FolderCase(CameraCase):
    """Pictures of two cameras in two folders."""

    def setUp(self):
        super().setUp()
        self.folders = {}
        for folder in ("left", "right"):
            os.mkdir(self.path("photos", folder))
            for number in range(1, 4):
                name = f"{folder}/{number}.jpg"
                focal = {"exif": equivalent_focal_length(20 + number)} if folder == "left" else {}
                self.write(f"photos/{name}", with_exif(self.read("photos/d.jpg"), **focal))
                self.folders.setdefault(folder, []).append(f"photos/{name}")
        for name in "abcd":
            os.remove(self.path("photos", f"{name}.jpg"))
        self.photos = [name for names in self.folders.values() for name in names]

    def add(self, photos, *options, name="d.db", status=0):
        return self.run_it("extract", *photos, "--image-path", "photos", "-o", name, "-q", "--max-features", "20", "--first-octave", "0", *options,
                           status=status)[1]

    def of_images(self, name="d.db"):
        return {image: camera for image, camera in self.ask("SELECT name, camera_id FROM images ORDER BY name", name=name)}

    def content(self, name="d.db"):
        """Returns the sets of images that share a camera, with that camera."""
        found = self.ask("SELECT images.name, model, width, prior_focal_length, params, camera_id FROM images"
                         " LEFT JOIN cameras USING (camera_id) ORDER BY images.name", name=name)
        return [(*row[:-1], min(other[0] for other in found if other[-1] == row[-1])) for row in found]

    def change(self, script, name="d.db"):
        with contextlib.closing(sqlite3.connect(self.path(name))) as database:
            database.executescript(script)


class Folders(FolderCase):
    def test_one_camera_each(self):
        self.add(self.photos, "--single-camera-per-folder", name="one.db")
        self.assertEqual(self.of_images("one.db"), {f"{folder}/{i}.jpg": camera for folder, camera in (("left", 1), ("right", 2))
                                                    for i in (1, 2, 3)})
        self.assertEqual(self.ask("SELECT prior_focal_length FROM cameras", name="one.db"), [(1,), (0,)])
        for folder in ("left", "right"):
            self.add(self.folders[folder], "--single-camera-per-folder")
        self.assertEqual(self.content(), self.content("one.db"))
        self.add(self.photos[:2], "--single-camera-per-folder", name="e.db")
        self.add(self.photos, "--single-camera-per-folder", name="e.db")  # adds the remaining images, with those that exist
        self.assertEqual(self.content("e.db"), self.content("one.db"))
        self.batch("photos", "-o", "f.db", "-q", "--max-features", "20", "--single-camera-per-folder")
        self.assertEqual(self.content("f.db"), self.content("one.db"))

    def test_folders_below_and_above_are_others(self):
        names = ["photos/left/1.jpg", "photos/left/in/2.jpg", "photos/left-in/3.jpg", "photos/left0/4.jpg", "photos/5.jpg",
                 "photos/6.jpg"]
        for name in names[1:]:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.write(name, self.read("photos/right/1.jpg"))
        for name in reversed(names):
            self.add([name], "--single-camera-per-folder")
        self.assertEqual(len(self.of_images()), 6)
        self.assertEqual(len(set(self.of_images().values())), 5)
        self.assertEqual(self.of_images()["5.jpg"], self.of_images()["6.jpg"])

    def test_odd_names_of_folders(self):
        """Folder names contain quotes, wildcards, line ends, and bytes that are not UTF-8."""
        folders = [os.fsdecode(name) for name in (b"le ft'%", b"*", b"new\nline", b"\xff\xfe", "\u00fcn".encode())]
        for folder in folders:
            os.makedirs(self.path("odd", folder))
            for name in ("1.jpg", "2?.jpg"):
                shutil.copy(self.path(self.photos[0]), self.path("odd", folder, name))
        for _ in range(2):
            self.batch("odd", "-o", "d.db", "-q", "--single-camera-per-folder")
            self.assertEqual(self.ask("SELECT count(*) FROM images GROUP BY camera_id"), [(2,)] * len(folders))

    def test_names_without_folders_are_refused(self):
        errors = self.extract(*self.photos, "-o", "d.db", "--single-camera-per-folder", status=USAGE)[1]
        self.assertIn("expected --image-path", errors)
        self.assertFalse(os.path.exists(self.path("d.db")))

    def test_shards_are_as_one_run(self):
        for options in ([], ["--single-camera"], ["--single-camera-per-folder"], ["--camera-params", "90,120,80,0", "--single-camera"]):
            self.batch("photos", "-o", "one.db", "-q", *options)
            for shard in (1, 2, 3):
                self.batch("photos", "-o", f"{shard}.db", "-q", "--shard", f"{shard}/3", *options)
            self.run_it("merge", "1.db", "2.db", "3.db", "-o", "merged.db", "-q")
            self.assertEqual(self.content("merged.db"), self.content("one.db"), options)
            self.assertEqual(self.read("merged.db.manifest.csv"), self.read("one.db.manifest.csv"), options)
            self.run_it("merge", "1.db", "2.db", "3.db", "-o", "merged.db", "-q")  # overwrites the existing ones
            self.assertEqual(self.content("merged.db"), self.content("one.db"), options)
            for name in os.listdir(self.folder):
                if ".db" in name:
                    os.remove(self.path(name))

    def test_merge_shares_cameras(self):
        self.batch("photos", "-o", "files", "-q", "--no-exif")
        self.batch("photos", "-o", "own.db", "-q")
        self.assertIn("new cameras are guesses", self.run_it("merge", "files", "-o", "guesses.db")[1])
        self.assertNotIn("guesses", self.run_it("merge", "own.db", "-o", "own2.db")[1])
        for source in ("files", "own.db"):
            self.run_it("merge", source, "-o", "d.db", "-q", "--single-camera-per-folder")
            self.assertEqual(len(set(self.of_images().values())), 2, source)
            self.assertIn("single-camera-per-folder=1", self.read("d.db.manifest.csv").decode())
            os.remove(self.path("d.db"))
            errors = self.run_it("merge", source, "-o", "e.db", "--camera-id", "1", status=FAILED)[1]
            self.assertIn("no camera of the number 1", errors)
        errors = self.run_it("merge", "files", "-o", "other", "--single-camera-per-folder", status=USAGE)[1]
        self.assertIn("--single-camera-per-folder is for databases", errors)
        self.batch("photos", "-o", "shared.db", "-q", "--single-camera")
        errors = self.run_it("merge", "shared.db", "-o", "d.db", "--single-camera-per-folder", status=USAGE)[1]
        self.assertIn("share cameras in another way", errors)
        self.extract(self.photos[0], "--image-path", "photos", "-o", "d.db", "-q")
        self.run_it("merge", "files", "-o", "d.db", "-q", "--camera-id", "1")
        self.assertEqual(set(self.of_images().values()), {1})

    def test_resumed_with_the_same_options_only(self):
        self.batch("photos", "-o", "d.db", "-q", "--single-camera-per-folder")
        self.assertIn("6 kept", self.batch("photos", "-o", "d.db", "--resume", "--single-camera-per-folder")[1])
        for options in ((), ("--single-camera",), ("--camera-id", "1")):
            self.batch("photos", "-o", "d.db", "--resume", *options, status=USAGE)

    def test_images_of_several_sizes(self):
        self.run_it("draw", "@scene:160x240:5", "-o", "photos/left/4.jpg", "--max-features", "1", "-q")
        for option, cameras in (("--single-camera", 2), ("--single-camera-per-folder", 3)):
            self.add([*self.photos, "photos/left/4.jpg"], option, name=f"{cameras}.db")
            self.assertEqual(len(set(self.of_images(f"{cameras}.db").values())), cameras)


class There(FolderCase):
    """Tests images that the database has already."""

    def test_refused_and_replaced(self):
        for number, options in enumerate((["--camera-model", "PINHOLE"], ["--camera-params", "90,120,80,0"], ["--single-camera"],
                                          ["--single-camera-per-folder"], ["--camera-id", "3"])):
            name = f"{number}.db"
            self.add(self.photos, name=name)
            before = self.read(name)
            errors = self.add(self.photos[:3], *options, name=name, status=FAILED)
            self.assertIn("--replace", errors, options)
            self.assertEqual(self.read(name), before, options)
            self.add(self.photos, *options, "--replace", name=name)
            if number < 4:
                self.add(self.photos, *options, name="new.db")
                self.assertEqual(self.content(name), self.content("new.db"), options)
                os.remove(self.path("new.db"))
            else:
                self.assertEqual(set(self.of_images(name).values()), {3})
            cameras = len(set(self.of_images(name).values()))
            self.assertEqual(self.ask("SELECT count(*) FROM cameras", name=name), [(cameras,)], options)
            self.add(self.photos, *options, name=name)  # now cameras are as requested

    def test_the_same_camera_is_no_change(self):
        for options in ([], ["--camera-params", "90,120,80,0"]):
            self.add(self.photos, *options)
            self.add(self.photos, *options)
            os.remove(self.path("d.db"))

    def test_others_keep_a_shared_camera(self):
        self.add(self.photos, "--single-camera")
        self.add(self.photos[:1], "--camera-params", "90,120,80,0", "--replace")
        self.assertEqual(self.of_images(), {"left/1.jpg": 2, **{name[7:]: 1 for name in self.photos[1:]}})
        self.assertEqual(self.ask("SELECT count(*) FROM keypoints"), [(6,)])

    def test_what_was_verified_with_the_old_camera_goes(self):
        self.add(self.photos[:3])
        self.run_it("match", "--database", "d.db", "-q")
        self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries"), [(3,)])
        self.add(self.photos[:3], "--replace")
        self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries"), [(3,)])
        self.add(self.photos[:1], "--camera-params", "90,120,80,0", "--replace")
        self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries"), [(1,)])
        self.assertEqual(self.ask("SELECT count(*) FROM matches"), [(3,)])

    def test_several_cameras_to_share(self):
        """If a folder has several cameras, a new image's camera is not guessed among them."""
        self.add(self.photos[:2])
        for option, where in (("--single-camera", "240x160 have"), ("--single-camera-per-folder", "240x160 in its folder have")):
            errors = self.add(self.photos[2:3], option, status=FAILED)
            self.assertIn(where + " 2 cameras already; expected one by number (--camera-id)", errors)
        self.add(self.photos[2:3], "--camera-id", "2")
        self.assertEqual(self.of_images(), {"left/1.jpg": 1, "left/2.jpg": 2, "left/3.jpg": 2})

    def test_a_camera_that_is_missing(self):
        self.add(self.photos[:2])
        self.change("DELETE FROM cameras WHERE camera_id = 1")
        for options in (["--single-camera"], ["--camera-model", "PINHOLE"]):
            self.assertIn("camera 1 (which is missing)", self.add(self.photos[:1], *options, status=FAILED))
        self.add(self.photos[:1], "--single-camera", "--replace")
        self.assertEqual(set(self.of_images().values()), {2})

    def test_a_picture_of_another_size(self):
        self.add(self.photos[:2], "--single-camera")
        self.run_it("draw", "@scene:160x240:5", "-o", "photos/left/1.jpg", "--max-features", "1", "-q")
        for options in ([], ["--replace"], ["--replace", "--single-camera"]):
            errors = self.add(self.photos[:1], *options, status=FAILED)
            self.assertIn("is already there with a camera of 240x160, not 160x240; a camera that is given", errors)
        self.add(self.photos[:1], "--replace", "--camera-model", "SIMPLE_RADIAL")
        self.assertEqual(self.ask("SELECT name, width FROM images JOIN cameras USING (camera_id) ORDER BY name"),
                         [("left/1.jpg", 160), ("left/2.jpg", 240)])

    def test_by_number(self):
        self.add(self.photos[:1], "--camera-params", "90,120,80,0")
        self.add(self.photos[1:], "--camera-id", "1")
        self.assertEqual(set(self.of_images().values()), {1})
        self.assertEqual(self.ask("SELECT count(*) FROM cameras"), [(1,)])
        errors = self.add(self.photos[:1], "--camera-id", "7", status=FAILED)
        self.assertIn("no camera of the number 7", errors)
        self.run_it("draw", "@scene:160x240:5", "-o", "photos/left/4.jpg", "--max-features", "1", "-q")
        errors = self.add(["photos/left/4.jpg"], "--camera-id", "1", status=FAILED)
        self.assertIn("camera 1 is of 240x160, and the image left/4.jpg of 160x240", errors)
        for other in (["--single-camera"], ["--camera-model", "OPENCV"], ["--camera-params", "1,2,3,4"]):
            self.assertIn("expected one of them", self.add(self.photos, "--camera-id", "1", *other, status=USAGE))
        self.assertIn("expected one of them",
                      self.add(self.photos, "--single-camera", "--single-camera-per-folder", status=USAGE))


main()
