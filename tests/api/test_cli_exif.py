"""JPEGs with an EXIF orientation through the command: rotated by default, as stored for formats whose programs read
them so; and the message when sizes do not fit.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import json
import os
import sqlite3
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import FAILED, USAGE, main, pgm, read_ppm  # noqa: E402
from batch_case import BatchCase  # noqa: E402
from exif_segment import orientation, with_exif  # noqa: E402

WIDTH, HEIGHT = 301, 217
AS_STORED = {"colmap": ".txt", "openmvg": ".feat", "visualsfm": ".sift"}
TURNED = {"npz": ".npz", "csv": ".csv", "json": ".json", "bin": ".hsf", "lowe": ".key", "vlfeat": ".sift",
          "opencv": ".yml", "oxford": ".hesaff"}


class ExifCase(BatchCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("photos"))
        self.run_it("draw", f"@scene:{WIDTH}x{HEIGHT}:5", "-o", "plain.jpg", "--max-features", "1", "-q")
        self.write("photos/p.jpg", with_exif(self.read("plain.jpg"), orientation(6)))
        os.mkdir(self.path("stored"))
        self.write("stored/p.jpg", self.read("plain.jpg"))

    def sizes(self, *arguments, **settings):
        lines = self.extract(*arguments, "--json", "-q", **settings)[0].decode().splitlines()
        return [(record["width"], record["height"]) for record in map(json.loads, lines)]

    def database(self, name):
        with contextlib.closing(sqlite3.connect(self.path(name))) as database:
            return [database.execute(f"SELECT * FROM {table}").fetchall()
                    for table in ("cameras", "images", "keypoints", "descriptors")]


class Extract(ExifCase):
    def test_formats_of_programs_that_do_not_turn(self):
        for name, ending in AS_STORED.items():
            for folder in ("photos", "stored"):
                size = self.sizes(f"{folder}/p.jpg", "--format", name, "-o", folder + ending)
                self.assertEqual(size, [(WIDTH, HEIGHT)], name)
            self.assertEqual(self.read("photos" + ending), self.read("stored" + ending), name)
        self.assertEqual(self.read("photos.desc"), self.read("stored.desc"))
        for folder in ("photos", "stored"):
            self.extract(f"{folder}/p.jpg", "-o", folder + ".db", "-q")
        self.assertEqual(self.database("photos.db"), self.database("stored.db"))
        self.assertEqual(self.database("photos.db")[0][0][2:4], (WIDTH, HEIGHT))

    def test_other_formats_are_turned(self):
        for name, ending in TURNED.items():
            self.assertEqual(self.sizes("photos/p.jpg", "--format", name, "-o", "out" + ending), [(HEIGHT, WIDTH)], name)
        self.assertEqual(self.sizes("photos/p.jpg", "--format", "csv", "-o", "out.csv", "--no-exif"), [(WIDTH, HEIGHT)])
        self.assertEqual({*AS_STORED, *TURNED, "colmap-db"}, self.known_formats())

    def known_formats(self):
        errors = self.extract("photos/p.jpg", "--format", "?", status=USAGE)[1]
        return set(errors.split("expected ")[1].replace(" or ", ", ").strip().split(", "))

    def test_options_override(self):
        for name, ending in AS_STORED.items():
            size = self.sizes("photos/p.jpg", "--format", name, "-o", "turned" + ending, "--exif")
            self.assertEqual(size, [(HEIGHT, WIDTH)], name)
        self.extract("photos/p.jpg", "-o", "d.db", "-q", "--exif")
        self.assertEqual(self.database("d.db")[0][0][2:4], (HEIGHT, WIDTH))
        errors = self.extract("photos/p.jpg", "--exif", "--no-exif", status=USAGE)[1]
        self.assertIn("--exif and --no-exif: expected one of them", errors)

    def test_mask_and_region(self):
        """Mask and region are in pixels of the picture as the format's programs read it."""
        self.write("wide.pgm", pgm(WIDTH, HEIGHT, lambda x, y: 255 if x < WIDTH // 2 else 0))
        self.write("tall.pgm", pgm(HEIGHT, WIDTH, lambda x, y: 255))
        for folder in ("photos", "stored"):
            self.extract(f"{folder}/p.jpg", "-o", folder + ".db", "--mask", "wide.pgm", "--region", "20,30,90,100", "-q")
        self.assertEqual(self.database("photos.db"), self.database("stored.db"))
        self.assertGreater(self.database("photos.db")[2][0][1], 0)
        errors = self.extract("photos/p.jpg", "-o", "new.db", "--mask", "tall.pgm", status=FAILED)[1]
        self.assertIn(f"the mask is {HEIGHT}x{WIDTH}: expected the image's {WIDTH}x{HEIGHT} as stored; --exif", errors)
        errors = self.extract("photos/p.jpg", "-o", "new.npz", "--mask", "wide.pgm", status=FAILED)[1]
        self.assertIn(f"the mask is {WIDTH}x{HEIGHT}: expected the image's {HEIGHT}x{WIDTH}; --no-exif", errors)

    def test_keypoints_of_the_turned_picture(self):
        self.extract("photos/p.jpg", "-o", "turned.npz", "-q")
        errors = self.extract("photos/p.jpg", "--keypoints", "turned.npz", "-o", "d.db", status=FAILED)[1]
        self.assertIn(f"of a picture of {HEIGHT}x{WIDTH}: expected the image's {WIDTH}x{HEIGHT} as stored; --exif", errors)
        self.extract("photos/p.jpg", "--keypoints", "turned.npz", "-o", "d.db", "-q", "--exif")
        self.extract("photos/p.jpg", "--no-exif", "-o", "stored.npz", "-q")
        self.extract("photos/p.jpg", "--keypoints", "stored.npz", "-o", "d.db", "-q", "--replace", status=FAILED)
        self.extract("photos/p.jpg", "--keypoints", "stored.npz", "-o", "other.db", "-q")


class Batch(ExifCase):
    def test_as_extract(self):
        for name, folder in (("colmap", "text"), ("npz", "arrays")):
            self.batch("photos", "-o", folder, "--format", name, "-q")
        self.batch("photos", "-o", "d.db", "-q")
        self.assertEqual((self.manifest("text")[0]["width"], self.manifest("arrays")[0]["width"]),
                         (str(WIDTH), str(HEIGHT)))
        self.assertEqual(self.database("d.db")[0][0][2:4], (WIDTH, HEIGHT))
        self.extract("stored/p.jpg", "-o", "text.txt", "--format", "colmap", "-q")
        self.assertEqual(self.read("text", "p.jpg.txt"), self.read("text.txt"))

    def test_resume_tells_them_apart(self):
        self.batch("photos", "-o", "text", "--format", "colmap", "-q")
        self.assertIn("1 kept", self.batch("photos", "-o", "text", "--format", "colmap", "--resume", "--no-exif")[1])
        errors = self.batch("photos", "-o", "text", "--format", "colmap", "--resume", "--exif", status=USAGE)[1]
        self.assertIn("no-exif", errors)


class MatchAndDraw(ExifCase):
    def test_indices_for_colmap(self):
        """Indices refer to the features that extract writes for COLMAP, whose order differs if the picture is rotated."""
        for name in ("photos", "stored"):
            self.run_it("match", f"{name}/p.jpg", "plain.jpg", "-o", name + ".txt", "-q")
            self.run_it("match", f"{name}/p.jpg", "plain.jpg", "-o", name + ".csv", "-q")
        names, matches = zip(*(self.read(name + ".txt").split(b"\n", 1) for name in ("photos", "stored")))
        self.assertEqual(names, (b"photos/p.jpg plain.jpg", b"stored/p.jpg plain.jpg"))
        self.assertEqual(*matches)
        self.assertNotEqual(self.read("photos.csv"), self.read("stored.csv"))

    def size_drawn(self, *arguments):
        self.run_it("draw", *arguments, "-o", "out.ppm", "-q")
        return read_ppm(self.read("out.ppm"))[:2]

    def test_features_are_drawn_where_they_were_found(self):
        self.extract("photos/p.jpg", "-o", "p.npz", "-q")
        self.assertEqual(self.size_drawn("photos/p.jpg", "p.npz"), (HEIGHT, WIDTH))
        self.assertEqual(self.size_drawn("photos/p.jpg"), (HEIGHT, WIDTH))
        for name, ending in {**AS_STORED, "colmap-db": ".db"}.items():
            self.extract("photos/p.jpg", "--format", name, "-o", "p" + ending, "-q")
            self.assertEqual(self.size_drawn("photos/p.jpg", "p" + ending), (WIDTH, HEIGHT), name)
        self.extract("photos/p.jpg", "--format", "colmap", "-o", "turned.txt", "-q", "--exif")
        self.assertEqual(self.size_drawn("photos/p.jpg", "turned.txt", "--exif"), (HEIGHT, WIDTH))

    def test_features_of_the_other_orientation_name_the_option(self):
        self.extract("photos/p.jpg", "-o", "turned.npz", "-q")
        self.extract("photos/p.jpg", "--no-exif", "-o", "stored.npz", "-q")
        for arguments, option in ((["turned.npz", "--no-exif"], "--exif turns"), (["stored.npz"], "--no-exif leaves")):
            errors = self.run_it("draw", "photos/p.jpg", *arguments, "-o", "out.ppm", status=FAILED)[1]
            self.assertIn(option, errors)

    def test_matches_are_drawn_where_they_were_found(self):
        for ending, width in ((".txt", 2 * WIDTH), (".csv", HEIGHT + WIDTH), (".json", HEIGHT + WIDTH)):
            self.run_it("match", "photos/p.jpg", "plain.jpg", "-o", "m" + ending, "-q")
            size = self.size_drawn("photos/p.jpg", "plain.jpg", "m" + ending)
            self.assertGreaterEqual(size[0], width, ending)
            self.assertLess(size[0], width + 40, ending)


if __name__ == "__main__":
    main()
