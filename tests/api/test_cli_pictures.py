"""Subcommands match and draw: pairs of images, their matches as files, pictures of features and of matches."""
import json
import os
import struct
import sys
import zlib

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import CommandCase, DONE, FAILED, USAGE, main, pgm, read_ppm


class Match(CommandCase):
    SCENE = "@scene:320x240:3"

    def match(self, *arguments, **settings):
        return self.run_it("match", *arguments, **settings)

    def rows(self, *arguments, **settings):
        output, _ = self.match(*arguments, **settings)
        lines = output.decode().splitlines()
        names = lines[0].split(",")
        return [dict(zip(names, line.split(","))) for line in lines[1:]]

    def test_scene_matches_itself(self):
        rows = self.rows(self.SCENE, self.SCENE)
        self.assertGreater(len(rows), 50)
        self.assertTrue(all(row["index_a"] == row["index_b"] and row["distance"] == "0" for row in rows))
        self.assertEqual(list(rows[0]), ["index_a", "index_b", "distance"])

    def test_files_and_images_give_the_same(self):
        for number, name in ((3, "a.npz"), (4, "b.hsf")):
            self.extract(f"@scene:320x240:{number}", "-o", name)
        os.rename(self.path("b.hsf"), self.path("b.unknown"))
        files, _ = self.match("a.npz", "b.unknown", "--ratio", "0")
        images, _ = self.match("@scene:320x240:3", "-", "--ratio", "0", stdin=self.scene_file(4))
        self.assertEqual(files, images)

    def scene_file(self, number):
        """Writes the generated scene as a picture file: draw without features does so."""
        self.run_it("draw", f"@scene:320x240:{number}", "--contrast", "1", "-o", "scene.png")
        return self.read("scene.png")

    def test_tests_of_pairs(self):
        pair = (self.SCENE, "@scene:320x240:4")
        loose = self.rows(*pair, "--ratio", "0", "--no-mutual")
        mutual = self.rows(*pair, "--ratio", "0", "--mutual")
        swapped = self.rows(*reversed(pair), "--ratio", "0")
        near = self.rows(*pair, "--ratio", "0", "--no-mutual", "--max-distance", "200")
        as_pairs = lambda rows: [(row["index_a"], row["index_b"]) for row in rows]
        self.assertLess(len(mutual), len(loose))
        self.assertLessEqual(set(as_pairs(mutual)), set(as_pairs(loose)))
        self.assertEqual(sorted((b, a) for a, b in as_pairs(swapped)), sorted(as_pairs(mutual)))
        self.assertEqual(near, [row for row in loose if float(row["distance"]) <= 200])
        self.assertLess(len(self.rows(*pair, "--ratio", "0.7")), len(mutual))

    def test_names_in_folders(self):
        """COLMAP's text names images by paths relative to their common folder, or to --image-path."""
        picture = self.scene_file(3)
        for name in ("left/a.png", "right/a.png", "photos/left/b.png", "photos/right/b c/d.png", "one.png"):
            self.write(name, picture)
        for name in ("left", "right"):
            os.makedirs(self.path("features", name))
        self.extract("left/a.png", "-o", "features/left/a.png.txt", "-q")
        self.extract("right/a.png", "-o", "features/right/a.png.txt", "-q")
        for first, second, more, names in (
                ("left/a.png", "right/a.png", (), "left/a.png right/a.png"),
                ("./left//a.png", self.path("photos/../right/a.png"), (), "left/a.png right/a.png"),
                ("photos/left/b.png", "photos/left/b.png", (), "b.png b.png"),
                ("photos/left/b.png", "photos/left/b.png", ("--image-path", "photos/"), "left/b.png left/b.png"),
                ("left/a.png", "one.png", (), "left/a.png one.png"),
                ("one.png", "photos/left/b.png", ("--image-path", "."), "one.png photos/left/b.png"),
                ("features/left/a.png.txt", "features/right/a.png.txt", (), "left/a.png right/a.png")):
            self.match(first, second, "-o", "m.txt", *more, "-q")
            self.assertEqual(self.read("m.txt").decode().split("\n")[0], names)
        _, errors = self.match("one.png", "photos/right/b c/d.png", "-o", "n.txt", status=FAILED)
        self.assertIn("an image's name with a blank", errors)
        _, errors = self.match("photos/left/b.png", "one.png", "-o", "n.txt", "--image-path", "photos", status=FAILED)
        self.assertIn("one.png: is not in the folder of --image-path, photos", errors)
        _, errors = self.match("left/a.png", "right/a.png", "-o", "n.csv", "--image-path", ".", status=USAGE)
        self.assertIn("--image-path is for the text of COLMAP", errors)
        self.assertFalse(os.path.exists(self.path("n.txt")) or os.path.exists(self.path("n.csv")))

    def test_one_way_against_a_single_feature(self):
        self.extract("@scene:320x240:3", "-o", "all.npz", "-q")
        self.extract("@scene:320x240:3", "-o", "one.npz", "--max-features", "1", "-q")
        both = self.rows("all.npz", "one.npz")
        self.assertEqual(len(both), 1)
        self.assertEqual(self.rows("all.npz", "one.npz", "--no-mutual"), both)
        self.assertGreater(len(self.rows("all.npz", "one.npz", "--no-mutual", "--ratio", "0")), 50)

    def test_verification(self):
        rows = self.rows(self.SCENE, self.SCENE, "--verify", "homography", "--tolerance", "1")
        self.assertTrue(rows and all(row["inlier"] == "1" for row in rows))
        output, errors = self.match(self.SCENE, self.SCENE, "--verify", "homography", "--json")
        record = json.loads(output)
        self.assertEqual((record["format"], record["version"], record["count"]), ("hartsift-matches", 1, len(rows)))
        self.assertEqual(record["verified"]["model"], "homography")
        self.assertTrue(record["verified"]["found"])
        for found, expected in zip(record["verified"]["matrix"], (1, 0, 0, 0, 1, 0, 0, 0, 1)):
            self.assertAlmostEqual(found, expected, places=6)
        self.assertTrue(all(match["inlier"] for match in record["matches"]))
        self.assertIn("inliers", errors)
        rows = self.rows(self.SCENE, self.SCENE, "--verify", "essential", "--camera", "300,300,160,120")
        self.assertEqual(set(rows[0]), {"index_a", "index_b", "distance", "inlier"})

    def test_nothing_to_verify(self):
        self.write("flat.pgm", pgm(64, 48, lambda x, y: 9))
        output, errors = self.match("flat.pgm", self.SCENE, "--verify", "fundamental", "--json")
        record = json.loads(output)
        self.assertEqual((record["count"], record["matches"], record["verified"]["found"]), (0, [], False))
        self.assertIn("no geometry found", errors)

    def test_formats_by_ending(self):
        self.match(self.SCENE, self.SCENE, "-o", "m.json", "-q")
        count = json.loads(self.read("m.json"))["count"]
        self.match(self.SCENE, self.SCENE, "-o", "m.txt", "--quiet")
        lines = self.read("m.txt").decode().splitlines()
        self.assertEqual(lines[0], f"{self.SCENE} {self.SCENE}")
        indices = [int(line.split()[0]) for line in lines[1:count + 1]]
        self.assertEqual(lines[1:count + 1], [f"{i} {i}" for i in indices])
        self.assertEqual(lines[count + 1:], [""])
        self.match(self.SCENE, self.SCENE, "-o", "m.dat")
        self.assertEqual(self.read("m.dat").decode().splitlines()[0], "index_a,index_b,distance")
        self.assertEqual(self.files(), ["m.dat", "m.json", "m.txt"])

    def test_never_replaces_features_or_databases(self):
        for name in ("all.db", "f.npz", "f.hsf", "f.KEY", "f.feat", "f.yml"):
            self.write(name, b"precious")
            _, errors = self.match(self.SCENE, self.SCENE, "-o", name, status=USAGE)
            self.assertIn(name, errors)
            self.assertIn(".json", errors)
            self.assertEqual(self.read(name), b"precious")
        database = b"SQLite format 3\0" + bytes(84)
        self.write("all", database)
        _, errors = self.match(self.SCENE, self.SCENE, "-o", "all", status=FAILED)
        self.assertIn("SQLite", errors)
        self.assertEqual(self.read("all"), database)

    def test_same_bytes_from_every_backend(self):
        expected, _ = self.match(self.SCENE, "@scene:320x240:4", environment={"HARTSIFT_CPU": "ref"})
        for threads in ("1", "3"):
            found, _ = self.match(self.SCENE, "@scene:320x240:4", "--threads", threads)
            self.assertEqual(found, expected)

    def test_usage(self):
        for arguments, words in (
                ((self.SCENE,), "operand"),
                (("-", "-"), "standard input holds one"),
                ((self.SCENE, self.SCENE, "--ratio", "1.5"), "from 0 to 1"),
                ((self.SCENE, self.SCENE, "--mutual", "--no-mutual"), "one of them"),
                ((self.SCENE, self.SCENE, "--descriptor", "none"), "u8 or f32"),
                ((self.SCENE, self.SCENE, "--json", "--format", "csv"), "one of them"),
                ((self.SCENE, self.SCENE, "--tolerance", "2"), "--verify"),
                ((self.SCENE, self.SCENE, "--verify", "essential"), "--camera"),
                ((self.SCENE, self.SCENE, "--verify", "essential", "--camera", "1,2,3"), "FX,FY,CX,CY"),
                ((self.SCENE, self.SCENE, "--verify", "essential", "--camera", "0,2,3,4"), "above 0"),
                ((self.SCENE, self.SCENE, "--verify", "homography", "--camera", "1,1,3,4"), "essential")):
            _, errors = self.match(*arguments, status=USAGE)
            self.assertIn(words, errors)

    def test_failures(self):
        self.write("noise", b"neither picture nor features")
        _, errors = self.match("noise", self.SCENE, status=FAILED)
        self.assertIn("noise", errors)
        _, errors = self.match(self.SCENE, "absent.npz", status=FAILED)
        self.assertIn("absent.npz", errors)
        self.extract(self.SCENE, "--descriptor", "none", "-o", "bare.csv")
        _, errors = self.match("bare.csv", self.SCENE, status=FAILED)
        self.assertIn("without descriptors", errors)
        self.extract(self.SCENE, "--descriptor", "f32", "-o", "floats.csv")
        _, errors = self.match("floats.csv", self.SCENE, status=FAILED)
        self.assertIn("8-bit", errors)
        self.extract(self.SCENE, "-o", "bytes.csv")
        before = self.read("bytes.csv")
        _, errors = self.match("bytes.csv", self.SCENE, "-o", "bytes.csv", status=FAILED)
        self.assertIn("overwrite", errors)
        self.assertEqual(self.read("bytes.csv"), before)


class Draw(CommandCase):
    def test_picture_of_features(self):
        rows = self.features("@scene:200x150", "--max-features", "1")
        self.extract("@scene:200x150", "--max-features", "1", "-q", "-o", "one.csv")
        output, errors = self.run_it("draw", "@scene:200x150", "one.csv", "-o", "one.ppm", "--circle-scale", "5")
        self.assertEqual(output, b"")
        self.assertIn("1 features", errors)
        self.run_it("draw", "@scene:200x150", "-o", "same.ppm", "--max-features", "1", "--circle-scale", "5", "-q")
        self.assertEqual(self.read("one.ppm"), self.read("same.ppm"))
        width, height, pixels = read_ppm(self.read("one.ppm"))
        self.assertEqual((width, height), (200, 150))
        coloured = [(i % width, i // width) for i in range(width * height)
                    if len(set(pixels[3 * i:3 * i + 3])) > 1]  # a coloured pixel, because the scene is gray
        radius = 5 * rows[0]["sigma"] + 3
        self.assertGreater(len(coloured), 10)
        for x, y in coloured:
            self.assertLessEqual((x - rows[0]["x"]) ** 2 + (y - rows[0]["y"]) ** 2, radius ** 2)

    def test_formats_and_streams(self):
        picture = pgm(60, 40)
        for name, start in (("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8"), ("a.ppm", b"P6")):
            self.run_it("draw", "-", "-o", name, stdin=picture)
            self.assertTrue(self.read(name).startswith(start))
        output, _ = self.run_it("draw", "-", "-o", "-", stdin=picture)
        self.assertEqual(output, self.read("a.png"))

    def test_png_is_sound(self):
        self.run_it("draw", "@scene:33x21", "-o", "a.png")
        data = self.read("a.png")
        width, height = struct.unpack(">II", data[16:24])
        self.assertEqual((width, height), (33, 21))
        chunks, position = b"", 8
        while position < len(data):
            size, kind = struct.unpack(">I4s", data[position:position + 8])
            body = data[position + 8:position + 8 + size]
            checksum = struct.unpack(">I", data[position + 8 + size:position + 12 + size])[0]
            self.assertEqual(checksum, zlib.crc32(kind + body))
            chunks += body if kind == b"IDAT" else b""
            position += 12 + size
        self.assertEqual(len(zlib.decompress(chunks)), 21 * (1 + 3 * 33))

    def test_failures(self):
        self.extract("@scene:64x48", "-q", "-o", "f.json")
        errors = self.run_it("draw", "@scene:65x48", "f.json", "-o", "x.png", status=FAILED)[1]
        self.assertIn("64x48", errors)
        self.run_it("draw", "none.png", "-o", "x.png", status=FAILED)
        self.run_it("draw", "@scene:65x48", "none.csv", "-o", "x.png", status=FAILED)
        self.run_it("draw", "@scene:65x48", "-o", "none/x.png", status=FAILED)
        self.assertEqual(self.files(), ["f.json"])


class DrawMatches(CommandCase):
    """Tests two flat pictures of 40x30 and 50x20 with two features each, at known positions."""
    INLIER, OUTLIER = (86, 180, 233), (213, 94, 0)

    def setUp(self):
        super().setUp()
        self.write("a.pgm", pgm(40, 30, lambda x, y: 100))
        self.write("b.pgm", pgm(50, 20, lambda x, y: 200))
        self.write("a.csv", b"x,y,sigma,orientation\n10,5,2,0\n20,25,2,0\n")
        self.write("b.csv", b"x,y,sigma,orientation\n30,5,2,0\n40,15,2,0\n")

    def draw(self, matches, status=DONE):
        self.write("m.csv", matches)
        _, errors = self.run_it("draw", "a.pgm", "b.pgm", "m.csv", "a.csv", "b.csv", "-o", "x.ppm", status=status)
        if status != DONE:
            return None, errors
        width, height, pixels = read_ppm(self.read("x.ppm"))
        self.assertEqual((width, height), (94, 30))
        return lambda x, y: tuple(pixels[3 * (y * width + x):3 * (y * width + x) + 3]), errors

    def near(self, colour, pixel):
        return max(abs(c - p) for c, p in zip(colour, pixel)) < 60

    def test_side_by_side(self):
        pixel, errors = self.draw(b"index_a,index_b,distance,inlier\n")
        self.assertIn("0 matches, 0 inliers", errors)
        expected = ((0, 0, 100), (39, 29, 100), (40, 0, 0), (43, 29, 0), (44, 0, 200), (93, 19, 200), (93, 20, 0))
        for x, y, value in expected:
            self.assertEqual(pixel(x, y), (value,) * 3)

    def test_lines_and_colours(self):
        pixel, errors = self.draw(b"index_a,index_b,distance,inlier\n0,0,1,1\n1,1,1,0\n")
        self.assertIn("a.pgm, b.pgm: 94x30, 2 matches, 1 inliers -> x.ppm", errors)
        for x in (20, 30, 41, 50, 60):  # the line from (10, 5) to (44 + 30, 5)
            self.assertTrue(self.near(self.INLIER, pixel(x, 5)), (x, pixel(x, 5)))
        self.assertEqual(pixel(8, 12), (100,) * 3)
        middle = pixel(52, 20)  # the line from (20, 25) to (44 + 40, 15) is half transparent over black
        self.assertGreater(middle[0], middle[2] + 40)
        self.assertGreater(middle[0], middle[1] + 20)

    def test_right_matches_lie_on_top(self):
        for rows in (b"0,0,1,1\n0,0,1,0\n", b"0,0,1,0\n0,0,1,1\n"):
            pixel, _ = self.draw(b"index_a,index_b,distance,inlier\n" + rows)
            self.assertTrue(self.near(self.INLIER, pixel(42, 5)), pixel(42, 5))

    def test_without_verification(self):
        pixel, errors = self.draw(b"index_a,index_b,distance\n0,0,1\n1,1,1\n")
        self.assertIn("2 matches -> x.ppm", errors)
        self.assertFalse(self.near(pixel(30, 5), pixel(52, 20)))
        self.assertNotEqual(pixel(30, 5), (100,) * 3)

    def test_extracts_as_match_does(self):
        scenes = ["@scene:160x120:3", "@scene:150x130:3"]
        options = ["--max-features", "60", "--upright"]
        for name in ("m.csv", "m.json", "m.txt"):
            self.run_it("match", *scenes, *options, "--verify", "homography", "-o", name, "-q")
            self.run_it("draw", *scenes, name, *options, "-o", name + ".png")
        for name, scene in zip(("a.npz", "b.npz"), scenes):
            self.extract(scene, *options, "-o", name, "-q")
        self.run_it("draw", *scenes, "m.csv", "a.npz", "b.npz", "-o", "files.png", "-q")
        self.assertEqual(self.read("m.csv.png"), self.read("files.png"))
        self.assertEqual(self.read("m.csv.png"), self.read("m.json.png"))
        one = pgm(160, 120)
        self.run_it("match", "-", scenes[1], "-o", "s.csv", "-q", stdin=one)
        self.run_it("draw", "-", scenes[1], "s.csv", "-o", "s.png", stdin=one)

    def test_other_features_than_those_matched(self):
        """The features are more, because of other options, so the indices of the matches would not fit."""
        scenes = ["@scene:160x120:3", "@scene:150x130:3"]
        for i, scene in enumerate(scenes):
            self.extract(scene, "-o", f"{i}.npz", "-q")
            self.extract(scene, "--contrast", "0.02", "-o", f"more{i}.npz", "-q")
            self.extract(scene, "-o", f"{i}.key", "-q")  # the same features in another format
            self.extract(scene, "--descriptor", "f32", "-o", f"float{i}.npz", "-q")
        for name in ("m.csv", "m.json"):
            self.run_it("match", "0.npz", "1.npz", "-o", name, "-q")
            for features in (("0.npz", "1.npz"), ("0.key", "1.key"), ("float0.npz", "float1.npz"), ()):
                self.run_it("draw", *scenes, name, *features, "-o", "x.png", "-q")
            for features in (("more0.npz", "1.npz"), ("0.npz", "more1.npz")):
                _, errors = self.run_it("draw", *scenes, name, *features, "-o", "y.png", status=FAILED)
                self.assertIn(name, errors)
            _, errors = self.run_it("draw", *scenes, name, "--contrast", "0.02", "-o", "y.png", status=FAILED)
            self.assertIn("not the features that were matched" if name == "m.csv" else "not those that were matched", errors)
        self.assertFalse(os.path.exists(self.path("y.png")))

    def test_drawn_by_match(self):
        scenes = ["@scene:160x120:3", "@scene:150x130:3"]
        self.run_it("match", *scenes, "--verify", "homography", "-o", "m.csv", "--draw", "pair.png", "-q")
        self.run_it("draw", *scenes, "m.csv", "-o", "drawn.png", "-q")
        self.assertEqual(self.read("pair.png"), self.read("drawn.png"))
        _, errors = self.run_it("match", "-", scenes[1], "-o", "s.csv", "--draw", "pair.ppm", stdin=pgm(160, 120))
        self.assertIn("0 matches -> pair.ppm", errors)
        self.extract(scenes[0], "-o", "0.npz", "-q")
        _, errors = self.run_it("match", "0.npz", scenes[1], "-o", "m.csv", "--draw", "z.png", status=USAGE)
        self.assertIn("0.npz is a file of features", errors)
        for wrong in ("z.csv", "-", "z"):
            _, errors = self.run_it("match", *scenes, "-o", "m.csv", "--draw", wrong, status=USAGE)
            self.assertIn("--draw", errors)
        _, errors = self.run_it("match", "--database", "d.db", "--draw", "z.png", status=USAGE)
        self.assertIn("--draw", errors)
        _, errors = self.run_it("match", *scenes, "-o", "m.csv", "--draw", "none/z.png", "-q", status=FAILED)
        self.assertTrue(errors.startswith("hartsift match: ") and "none/z.png" in errors, errors)

    def test_failures(self):
        before = self.files()
        for rows in (b"2,0,1,1\n", b"0,-1,1,1\n", b"0,0,1,2\n", b"x\n"):
            _, errors = self.draw(b"index_a,index_b,distance,inlier\n" + rows, status=FAILED)
            self.assertIn("m.csv", errors)
        self.assertEqual(self.files(), sorted(before + ["m.csv"]))
        for arguments in (("a.pgm", "none.pgm", "m.csv"), ("a.pgm", "b.pgm", "none.csv"), ("a.csv", "b.pgm", "m.csv"),
                          ("a.pgm", "b.pgm", "m.csv", "a.csv", "none.csv")):
            self.run_it("draw", *arguments, "-o", "x.png", status=FAILED)
        self.write("m.csv", b"index_a,index_b,distance,inlier\n0,0,1,1\n")
        self.run_it("draw", "a.pgm", "b.pgm", "m.csv", "a.csv", "b.csv", "-o", "none/x.png", status=FAILED)
        self.write("c.ppm", pgm(4, 4))
        self.run_it("draw", "c.ppm", "b.pgm", "m.csv", "a.csv", "b.csv", "-o", "c.ppm", status=FAILED)
        self.assertEqual(self.read("c.ppm"), pgm(4, 4))


if __name__ == "__main__":
    main()
