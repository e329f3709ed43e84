"""Option --decode-scale of extract, batch, draw and match, through the command, on JPEG files that draw writes.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import FAILED, SKIPPED, USAGE, CommandCase, built_with, main  # noqa: E402

# Neither side can be divided by 2, 4 or 8.
WIDTH, HEIGHT = 301, 217


def scaled(side, scale):
    """Returns the number of pixels of a side at 1/scale."""
    return -(-side // scale)


class Case(CommandCase):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("photos"))
        self.run_it("draw", f"@scene:{WIDTH}x{HEIGHT}:5", "-o", "photos/a.jpg", "--max-features", "1", "-q")
        stored = self.read("photos/a.jpg")
        # The same picture has an orientation of 90 degrees.
        exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
        segment = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
        self.write("photos/turned.jpg", stored[:2] + segment + stored[2:])

    def features(self, *arguments, **settings):
        """Returns the content of format json."""
        return json.loads(self.run_it("extract", *arguments, "--format", "json", "-o", "-", **settings)[0])


class DecodeScale(Case):
    def test_sizes_and_coordinates(self):
        full = self.features("photos/a.jpg")
        for scale in (1, 2, 4, 8):
            found = self.features("photos/a.jpg", "--decode-scale", str(scale))
            self.assertEqual((found["image_width"], found["image_height"]),
                             (scaled(WIDTH, scale), scaled(HEIGHT, scale)))
            self.assertGreater(len(found["features"]), 0)
            self.assertEqual(found["features"] == full["features"], scale == 1)
            for feature in found["features"]:
                self.assertTrue(-1 < feature["x"] < found["image_width"] and -1 < feature["y"] < found["image_height"])
            turned = self.features("photos/turned.jpg", "--decode-scale", str(scale))
            self.assertEqual((turned["image_width"], turned["image_height"]),
                             (found["image_height"], found["image_width"]))
            stored = self.features("photos/turned.jpg", "--decode-scale", str(scale), "--no-exif")
            self.assertEqual(stored["features"], found["features"])

    def test_standard_input(self):
        named = self.features("photos/a.jpg", "--decode-scale", "2")
        piped = self.features("-", "--decode-scale", "2", stdin=self.read("photos/a.jpg"))
        self.assertEqual(piped["features"], named["features"])

    def test_batch(self):
        self.run_it("batch", "photos", "-o", "out", "--format", "json", "--decode-scale", "4")
        rows = [line.split(",")[:3] for line in self.read("out/manifest.csv").decode().splitlines()[3:]]
        size = [str(scaled(WIDTH, 4)), str(scaled(HEIGHT, 4))]
        self.assertEqual(rows, [["a.jpg", *size], ["turned.jpg", *reversed(size)]])
        alone = self.features("photos/a.jpg", "--decode-scale", "4")
        self.assertEqual(json.loads(self.read("out/a.json"))["features"], alone["features"])
        resume = ["batch", "photos", "-o", "out", "--format", "json", "--resume"]
        self.assertIn("2 kept", self.run_it(*resume, "--decode-scale", "4")[1])
        for other in ([], ["--decode-scale", "2"]):
            self.assertIn("decode-scale=4", self.run_it(*resume, *other, status=USAGE)[1])

    def test_draw(self):
        self.run_it("draw", "photos/a.jpg", "-o", "a.ppm", "--decode-scale", "2")
        self.assertEqual(self.read("a.ppm").split()[1:3], [b"%d" % scaled(WIDTH, 2), b"%d" % scaled(HEIGHT, 2)])
        self.run_it("extract", "photos/a.jpg", "-o", "a.npz", "--decode-scale", "2")
        self.run_it("draw", "photos/a.jpg", "a.npz", "-o", "given.ppm", "--decode-scale", "2")
        self.assertEqual(self.read("given.ppm"), self.read("a.ppm"))
        self.assertIn("151x109", self.run_it("draw", "photos/a.jpg", "a.npz", "-o", "x.ppm", status=FAILED)[1])

    def test_match(self):
        self.run_it("extract", "photos/a.jpg", "-o", "a.npz", "--decode-scale", "2")
        output, _ = self.run_it("match", "photos/a.jpg", "a.npz", "--decode-scale", "2")
        rows = [line.split(",") for line in output.decode().splitlines()[1:]]
        self.assertGreater(len(rows), 10)
        self.assertTrue(all(row[0] == row[1] and row[2] == "0" for row in rows))
        _, errors = self.run_it("match", "--database", "x.db", "--decode-scale", "2", status=USAGE)
        self.assertIn("--decode-scale", errors)

    def test_mask_is_of_the_decoded_size(self):
        width, height = scaled(WIDTH, 2), scaled(HEIGHT, 2)
        half = b"".join(bytes([0 if x < width // 2 else 255 for x in range(width)]) for _ in range(height))
        self.write("mask.pgm", b"P5 %d %d 255\n" % (width, height) + half)
        whole = self.features("photos/a.jpg", "--decode-scale", "2")["features"]
        kept = self.features("photos/a.jpg", "--decode-scale", "2", "--mask", "mask.pgm")["features"]
        self.assertTrue(0 < len(kept) < len(whole))
        self.run_it("extract", "photos/a.jpg", "--mask", "mask.pgm", status=FAILED)

    def test_only_jpeg(self):
        self.write("a.pgm", b"P5 8 8 255\n" + bytes(64))
        for image in ("a.pgm", "@scene:64x64"):
            for arguments in (["extract", image], ["draw", image, "-o", "x.ppm"], ["match", image, "photos/a.jpg"]):
                self.assertIn("only a JPEG", self.run_it(*arguments, "--decode-scale", "2", status=FAILED)[1])
                self.run_it(*arguments, "--decode-scale", "1")
        self.write("list.txt", b"a.pgm\nphotos/a.jpg\n")
        errors = self.run_it("batch", "list.txt", "-o", "out", "--decode-scale", "8", status=FAILED)[1]
        self.assertIn("only a JPEG", errors)
        self.assertIn("HS_ERR_UNSUPPORTED", self.read("out/manifest.csv").decode())
        self.assertTrue(os.path.exists(self.path("out/photos/a.npz")))

    def test_values(self):
        for value in ("0", "3", "16", "-2", "2.0", ""):
            errors = self.run_it("extract", "photos/a.jpg", "--decode-scale", value, status=USAGE)[1]
            self.assertIn("1, 2, 4 or 8", errors)
        for command in ("stats", "hist"):
            self.run_it(command, "photos/a.jpg", "--decode-scale", "2", status=USAGE)

    def test_pixel_limit_is_for_what_is_decoded(self):
        limit = ["--max-pixels", str(scaled(WIDTH, 4) * scaled(HEIGHT, 4))]
        self.run_it("extract", "photos/a.jpg", "--decode-scale", "4", *limit)
        self.run_it("extract", "photos/a.jpg", "--decode-scale", "2", *limit, status=FAILED)


if not built_with("jpeg"):
    print("skipped: built without JPEG support")
    sys.exit(SKIPPED)
main()
