#!/usr/bin/env python3
"""--max-image-size and --masks through the command, and --nearest and --radius of match."""
import csv
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command_case
from command_case import FAILED, USAGE, CommandCase, pgm

SCENE = "@scene:400x300:5"


def blocks(width, height, black):
    """Returns a mask that is black on half of the picture: "left", "right" or "none"."""
    half = {"left": lambda x: x >= width // 2, "right": lambda x: x < width // 2, "none": lambda x: True}[black]
    return pgm(width, height, lambda x, y: 255 if half(x) else 0)


class Sizes(CommandCase):
    def test_coordinates_are_of_the_original(self):
        full, half = self.features(SCENE), self.features(SCENE, "--max-image-size", "200")
        self.assertLess(len(half), len(full))
        self.assertGreater(len(half), 50)
        self.assertGreater(max(f["x"] for f in half), 300)
        self.assertEqual(self.features(SCENE, "--max-image-size", "400"), full)
        self.assertEqual(self.features(SCENE, "--max-image-size", "0"), full)
        # Features of the reduced picture get coordinates doubled about the corners of pixels.
        self.run_it("extract", SCENE, "--max-image-size", "200", "-o", "half.npz", "--quiet")
        self.run_it("match", "half.npz", SCENE, "--verify", "homography", "--json", "-o", "m.json", "--quiet")
        self.assertIn(b'"found": true', self.read("m.json"))

    def test_batch_gives_what_extract_gives(self):
        self.write("photos/a.pgm", pgm(300, 200, lambda x, y: (x * x // 40 + y * 3) % 256))
        self.write("photos/sub/b.pgm", pgm(120, 260, lambda x, y: (x * 5 + y * y // 30) % 256))
        options = ("--max-image-size", "100", "--quiet", "--format", "csv")
        self.run_it("batch", "photos", "-o", "out", *options)
        for name, size in (("a.pgm", "300,200"), ("sub/b.pgm", "120,260")):
            output, _ = self.run_it("extract", "photos/" + name, *options)
            place = "out/" + name.replace(".pgm", ".csv")
            self.assertEqual(self.read(place), output)
            lines = [line for line in self.read("out", "manifest.csv").decode().splitlines() if line[0] != "#"]
            rows = list(csv.DictReader(lines))
            row = next(row for row in rows if row["image"] == name)
            self.assertEqual(row["width"] + "," + row["height"], size)
        _, errors = self.run_it("batch", "photos", "-o", "out", "--resume", "--quiet", "--format", "csv", status=USAGE)
        self.assertIn("with other options: max-image-size=100; now: the defaults; expected the same", errors)

    def test_refusals(self):
        for option in (("--region", "1,1,9,9"), ("--keypoints", "k.csv")):
            _, errors = self.run_it("extract", SCENE, "--max-image-size", "100", *option, status=USAGE)
            self.assertIn("without --max-image-size", errors)
        _, errors = self.run_it("batch", ".", "-o", "out", "--max-image-size", "100", "--region", "1,1,9,9", status=USAGE)
        self.assertIn("without --max-image-size", errors)
        self.run_it("extract", SCENE, "--max-image-size", "-1", status=USAGE)


class Masks(CommandCase):
    def check(self, image, name, black, size=()):
        """Checks that with masks/NAME.png an image has the features of the unmasked half."""
        self.write("masks/" + name + ".png", blocks(400, 300, black))
        masked = self.features(image, "--masks", "masks", *size)
        whole = self.features(image, *size)
        edge = 199.5
        kept = [f for f in whole if black == "none" or (f["x"] >= edge) == (black == "left")]
        # Positions close to the edge may fall on either side in the reduced picture.
        close = [f for f in whole if abs(f["x"] - edge) <= 2]
        self.assertLessEqual(abs(len(masked) - len(kept)), len(close))
        self.assertTrue(len(masked) > 20 and (black == "none" or len(masked) < len(whole)))
        self.assertTrue(all(f in whole for f in masked))

    def test_masks_by_name(self):
        self.write("photo.pgm", pgm(400, 300, lambda x, y: (x * x // 29 ^ y * y // 23) % 256))
        for black in ("left", "right", "none"):
            self.check("photo.pgm", "photo.pgm", black)
            self.check("photo.pgm", "photo.pgm", black, ("--max-image-size", "200"))

    def test_shared_masks_are_made_smaller_too(self):
        self.write("photo.pgm", pgm(400, 300, lambda x, y: (x * x // 29 ^ y * y // 23) % 256))
        self.write("masks/photo.pgm.png", blocks(400, 300, "left"))
        size = ("--max-image-size", "150")
        self.assertEqual(self.features("photo.pgm", "--masks", "masks", *size),
                         self.features("photo.pgm", "--mask", "masks/photo.pgm.png", *size))

    def test_batch_takes_masks_below_its_folder(self):
        picture = pgm(400, 300, lambda x, y: (x * x // 29 ^ y * y // 23) % 256)
        for name in ("a.pgm", "sub/a.pgm", "sub/b.pgm"):
            self.write("photos/" + name, picture)
        self.write("masks/a.pgm.png", blocks(400, 300, "left"))
        self.write("masks/sub/a.pgm.png", blocks(400, 300, "right"))
        self.run_it("batch", "photos", "-o", "out", "--masks", "masks", "--format", "csv", "--quiet")
        sides = [self.read("out", *name) for name in (("a.csv",), ("sub", "a.csv"), ("sub", "b.csv"))]
        counts = [side.count(b"\n") for side in sides]
        self.assertTrue(counts[0] < counts[2] and counts[1] < counts[2])
        self.assertNotEqual(sides[0], sides[1])

    def test_refusals(self):
        self.write("photo.pgm", pgm(40, 30))
        self.write("masks/photo.pgm.png", blocks(41, 30, "left"))
        _, errors = self.run_it("extract", "photo.pgm", "--masks", "masks", "-o", "f.csv", status=FAILED)
        self.assertIn("the mask is 41x30: expected the image's 40x30", errors)
        _, errors = self.run_it("extract", "photo.pgm", "--masks", "absent", "-o", "f.csv", status=FAILED)
        self.assertIn("expected a folder", errors)
        _, errors = self.run_it("batch", ".", "--masks", "absent", "-o", "out", status=FAILED)
        self.assertIn("expected a folder", errors)
        for command in ("batch", "."), ("extract", "photo.pgm"):
            _, errors = self.run_it(*command, "--masks", "masks", "--mask", "photo.pgm", "-o", "out/", status=USAGE)
            self.assertIn("--mask and --masks: expected one of them", errors)
        self.write("masks/photo.pgm.png", b"no picture")
        _, errors = self.run_it("extract", "photo.pgm", "--masks", "masks", "-o", "f.csv", status=FAILED)
        self.assertIn("photo.pgm.png", errors)

    def test_a_mask_that_cannot_be_read_is_not_passed_over(self):
        self.write("photo.pgm", pgm(40, 30))
        os.makedirs(self.path("masks"))
        for target in ("nowhere", "photo.pgm.png"):
            os.symlink(target, self.path("masks", "photo.pgm.png"))
            _, errors = self.run_it("extract", "photo.pgm", "--masks", "masks", "-o", "f.csv", status=FAILED)
            self.assertIn("photo.pgm.png", errors)
            os.unlink(self.path("masks", "photo.pgm.png"))

    def test_the_ending_may_be_replaced(self):
        """COLMAP's second choice for a.jpg is DIR/a.png, if DIR/a.jpg.png does not exist."""
        picture = pgm(400, 300, lambda x, y: (x * x // 29 ^ y * y // 23) % 256)
        for name in ("a.pgm", "sub/b.c.pgm", "sub.d/e.pgm"):
            self.write("photos/" + name, picture)
        self.write("plain/whole.csv", b"")
        self.write("masks/sub/b.c.png", blocks(400, 300, "left"))
        self.write("masks/a.png", blocks(400, 300, "right"))
        self.write("masks/a.pgm.png", blocks(400, 300, "left"))  # COLMAP's first choice
        self.write("masks/sub.png", blocks(400, 300, "left"))  # the name has no ending: its dot is in the folder's name
        _, errors = self.run_it("batch", "photos", "-o", "out", "--masks", "masks", "--format", "csv")
        self.assertIn("2 of 3 images have a mask in masks\n", errors)
        found = {name: self.read("out", name) for name in ("a.csv", "sub/b.c.csv", "sub.d/e.csv")}
        self.assertEqual(found["a.csv"], found["sub/b.c.csv"])
        self.assertGreater(found["sub.d/e.csv"].count(b"\n"), found["a.csv"].count(b"\n"))
        lines = self.read("out", "manifest.csv").decode().splitlines()[3:]
        self.assertEqual([bool(line.split(",")[8]) for line in lines], [True, False, True])
        self.extract("photos/sub/b.c.pgm", "--masks", "masks/sub", "-o", "b.csv", "-q")
        self.assertEqual(self.read("b.csv"), found["sub/b.c.csv"])

    def test_masks_that_match_nothing(self):
        """A folder of masks with other names is an error. If only some images have no mask, they are counted."""
        for name in ("a.pgm", "b.pgm"):
            self.write("photos/" + name, pgm(60, 40, lambda x, y: (x * x // 9 + y * 5) % 256))
        os.makedirs(self.path("masks"))
        for other in ("", "c.pgm.png", "a.pgm.PNG", "a.pgm", "photos/a.pgm.png", "A.png"):
            if other:
                self.write("masks/" + other, pgm(60, 40))
            _, errors = self.run_it("batch", "photos", "-o", "out", "--masks", "masks", status=FAILED)
            self.assertIn("--masks 'masks': 0 of 2 images have a mask there: for a.pgm expected a.pgm.png, or else a.png", errors)
            self.assertFalse(os.path.exists(self.path("out")))
            _, errors = self.extract("photos/a.pgm", "-o", "f.npz", "--masks", "masks", status=FAILED)
            self.assertIn("0 of 1 image", errors)
            self.assertFalse(os.path.exists(self.path("f.npz")))
        self.write("masks/b.png", pgm(60, 40))
        self.assertIn("1 of 2 images has a mask in masks", self.extract("photos/a.pgm", "photos/b.pgm", "-o", "x/", "--masks", "masks")[1])
        _, errors = self.extract("photos/a.pgm", "photos/b.pgm", "-o", "x/", "--masks", "masks", "--quiet")
        self.assertEqual(errors, "")

    def test_names_that_lead_out_of_the_folder(self):
        """masks/../photos/a.pgm.png is not a mask: leading parts of a name that leave the folder are dropped."""
        home = os.path.basename(self.folder)
        self.write("photos/a.pgm", pgm(60, 40, lambda x, y: (x * x // 9 + y * 5) % 256))
        self.write("photos/a.png", pgm(60, 40))
        self.write("list.txt", f"../{home}/photos/a.pgm\n{self.path('photos/a.pgm')}\n".encode())
        self.write("masks/photos/b.png", pgm(60, 40))
        _, errors = self.run_it("batch", "list.txt", "-o", "out", "--masks", "masks", status=FAILED)
        self.assertIn(f"for ../{home}/photos/a.pgm expected {home}/photos/a.pgm.png, or else {home}/photos/a.png", errors)
        self.write(f"masks/{home}/photos/a.png", pgm(60, 40))
        _, errors = self.run_it("batch", "list.txt", "-o", "out", "--masks", "masks")
        self.assertIn("1 of 2 images has a mask", errors)

    def test_masks_among_the_images(self):
        """Masks are no images, but in the images' own folder they would be taken for images."""
        for name in ("photos/a.png", "photos/masks/a.png"):
            self.write(name, pgm(60, 40, lambda x, y: (x * x // 9 + y * 5) % 256))
        os.symlink("masks", self.path("photos/link"))
        _, errors = self.run_it("batch", "photos", "-o", "out", "--masks", "photos/masks")
        self.assertIn("photos/masks: is the folder of --masks: its files are not taken for images", errors)
        self.assertIn("1 image: 1 done", errors)
        _, errors = self.run_it("batch", "photos", "-o", "out", "--masks", "photos/./", status=USAGE)
        self.assertIn("is the folder of the images", errors)

    def test_region_outside_the_picture(self):
        self.write("photo.pgm", pgm(60, 40, lambda x, y: (x * x // 9 + y * 5) % 256))
        for region in ("60,0,10,10", "0,40,10,10", "5000,5000,1,1"):
            for arguments in (["extract", "photo.pgm", "-o", "f.npz"], ["batch", "list", "-o", "out"]):
                self.write("list", b"photo.pgm\n")
                _, errors = self.run_it(*arguments, "--region", region, status=FAILED)
                self.assertIn(f"photo.pgm: the region {region} has no pixel of the image of 60 x 40", errors)
        self.extract("photo.pgm", "-o", "f.npz", "--region", "59,39,10,10", "-q")

    def test_changed_masks_are_noticed(self):
        """--resume repeats an image whose mask has other bytes, was removed or added, whatever the files' times."""
        for name in "abcd":
            self.write(f"photos/{name}.pgm", pgm(60, 40, lambda x, y: (x * x // 9 + y * 5) % 256))
        for name in "abc":
            self.write(f"masks/{name}.pgm.png", pgm(60, 40, lambda x, y: 255 * (x < 30)))
        for output, arguments in (("out", ()), ("out.db", ("--format", "colmap-db"))):
            arguments = ("batch", "photos", "--masks", "masks", *arguments, "-o")
            if output == "out.db" and not re.search(rb"COLMAP databases +yes", self.run_it("info")[0]):
                continue
            self.run_it(*arguments, output, "--quiet")
            self.assertIn("4 kept", self.run_it(*arguments, output, "--resume")[1])
            old = os.stat(self.path("masks", "a.pgm.png"))
            self.write("masks/a.pgm.png", pgm(60, 40, lambda x, y: 255 * (x >= 30)))
            os.utime(self.path("masks", "a.pgm.png"), ns=(old.st_atime_ns, old.st_mtime_ns))
            os.rename(self.path("masks", "b.pgm.png"), self.path("masks", "d.pgm.png"))
            self.assertIn("3 done, 1 kept", self.run_it(*arguments, output, "--resume")[1])
            self.run_it(*arguments, "again" + output, "--quiet")
            manifests = [self.read(name) for name in (("out/manifest.csv", "againout/manifest.csv") if output == "out" else
                                                      ("out.db.manifest.csv", "againout.db.manifest.csv"))]
            self.assertEqual(*manifests)
            os.rename(self.path("masks", "d.pgm.png"), self.path("masks", "b.pgm.png"))
            self.write("masks/a.pgm.png", pgm(60, 40, lambda x, y: 255 * (x < 30)))

    def test_a_mask_that_can_no_longer_be_read_is_noticed(self):
        for name in "ab":
            self.write(f"photos/{name}.pgm", pgm(60, 40, lambda x, y: (x * x // 9 + y * 5) % 256))
        self.write("masks/b.pgm.png", pgm(60, 40))
        arguments = ("batch", "photos", "--masks", "masks", "-o", "out")
        self.run_it(*arguments, "--quiet")
        os.symlink("absent", self.path("masks", "a.pgm.png"))
        self.assertIn("1 failed", self.run_it(*arguments, "--resume", status=FAILED)[1])
        os.unlink(self.path("masks", "a.pgm.png"))
        self.assertIn("1 done, 1 kept", self.run_it(*arguments, "--resume")[1])

    def test_manifests_without_digests_of_masks_are_done_again(self):
        self.write("photos/a.pgm", pgm(60, 40, lambda x, y: (x * x // 9 + y * 5) % 256))
        self.write("masks/a.pgm.png", pgm(60, 40, lambda x, y: 255 * (x < 30)))
        arguments = ("batch", "photos", "--masks", "masks", "-o", "out")
        self.run_it(*arguments, "--quiet")
        title, settings, columns, row = self.read("out/manifest.csv").splitlines()
        old = [title, settings, b",".join(columns.split(b",")[:8]), b",".join(row.split(b",")[:8]), b""]
        self.write("out/manifest.csv", b"\n".join(old))
        _, errors = self.run_it(*arguments, "--resume")
        self.assertIn("manifest.csv: has another version's beginning", errors)
        self.assertIn("1 done, 0 kept", errors)
        self.assertEqual(self.run_it(*arguments, "--resume")[1].count("otherwise"), 0)

    def test_a_folder_with_a_line_break_stays_in_its_line(self):
        self.write("photos/a.pgm", pgm(40, 30))
        self.write("ma\nsks/a.pgm.png", pgm(40, 30))
        arguments = ("batch", "photos", "-o", "out", "--masks", "ma\nsks", "--quiet")
        self.run_it(*arguments)
        lines = self.read("out", "manifest.csv").decode().splitlines()
        self.assertIn("masks=ma%0Asks", lines[1])
        self.assertTrue(lines[2].startswith("image,"))
        self.run_it(*arguments, "--resume")


class Neighbours(CommandCase):
    def rows(self, *options):
        output, _ = self.run_it("match", SCENE, "@scene:300x300:6", "--quiet", *options)
        return [row.split(",") for row in output.decode().splitlines()[1:]]

    def test_nearest_and_radius(self):
        three = self.rows("--nearest", "3")
        count = len(self.features(SCENE))
        self.assertEqual(len(three), 3 * count)
        self.assertEqual([int(row[0]) for row in three], [i // 3 for i in range(3 * count)])
        for i in range(0, len(three), 3):
            distances = [float(row[2]) for row in three[i:i + 3]]
            self.assertEqual(distances, sorted(distances))
        radius = sorted(float(row[2]) for row in three)[len(three) // 4] + 1e-3  # just above that distance, however it was rounded
        within = self.rows("--radius", repr(radius))
        self.assertTrue(within and all(float(row[2]) <= radius for row in within))
        near = [row for row in three if float(row[2]) <= radius]
        self.assertTrue(all(row in within for row in near))
        single = self.rows("--no-mutual", "--ratio", "0")
        self.assertEqual([row[:3] for row in three[::3]], [row[:3] for row in single])

    def test_refusals(self):
        for other in (("--ratio", "0.9"), ("--no-mutual",), ("--verify", "homography"), ("--radius", "3")):
            self.run_it("match", SCENE, SCENE, "--nearest", "2", *other, status=USAGE)
        self.run_it("match", SCENE, SCENE, "--nearest", "0", status=USAGE)
        self.run_it("match", SCENE, SCENE, "--nearest", "1025", status=USAGE)
        self.run_it("match", "--database", "x.db", "--nearest", "2", status=USAGE)


if __name__ == "__main__":
    command_case.main()
