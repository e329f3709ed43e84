"""The image pairs of a database that the command matches: all, neighbours by name or by GPS, similar images, a list.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import itertools
import json
import math
import os
import sqlite3
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import DONE, FAILED, USAGE, CommandCase, main, read_ppm  # noqa: E402
from exif_segment import position, with_exif  # noqa: E402

SCENES, VIEWS = 5, 3
WIDTH, HEIGHT = 240, 180


class PairsCase(CommandCase):
    def pairs(self, *arguments, status=DONE):
        """Returns the matched pairs of names, in their order."""
        output, self.errors = self.run_it("match", "--database", "d.db", *arguments, "--json", "--no-verify", status=status)
        return [(record["image_a"], record["image_b"]) for record in map(json.loads, output.decode().splitlines())]


class Scenes(PairsCase):
    """Views of generated scenes: view V of scene S is frameN.pgm, N = V * SCENES + S."""

    database = None  # the database's bytes, set by the first test

    def setUp(self):
        super().setUp()
        if Scenes.database is None:
            Scenes.database = self.make_database()
        self.write("d.db", Scenes.database)

    def make_database(self):
        for scene in range(SCENES):
            self.run_it("draw", f"@scene:{WIDTH + 20 * VIEWS}x{HEIGHT}:{scene + 1}", "-o", "scene.ppm", "--max-features",
                        "1", "--circle-scale", "0.1", "-q")
            width, _, pixels = read_ppm(self.read("scene.ppm"))
            for view in range(VIEWS):
                rows = (pixels[3 * (width * y + 20 * view):][:3 * WIDTH:3] for y in range(HEIGHT))
                self.write(f"frame{view * SCENES + scene}.pgm", b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + b"".join(rows))
        self.extract(*sorted(name for name in self.files() if name.endswith(".pgm")), "-o", "d.db", "-q")
        return self.read("d.db")

    def same_scene(self):
        frames = [[f"frame{view * SCENES + scene}.pgm" for view in range(VIEWS)] for scene in range(SCENES)]
        return {tuple(sorted(pair)) for group in frames for pair in itertools.combinations(group, 2)}

    def test_list_with_a_byte_order_mark(self):
        for text in (b"frame0.pgm frame5.pgm\r\n", b"\nframe0.pgm frame5.pgm", b"# x\nframe0.pgm frame5.pgm", b"# x\rframe0.pgm frame5.pgm\r"):
            self.write("pairs.txt", b"\xef\xbb\xbf" + text)
            self.assertEqual(self.pairs("--replace", "--pairs", "pairs.txt"), [("frame0.pgm", "frame5.pgm")])
        self.write("pairs.txt", "frame0.pgm frame5.pgm\n".encode("utf-16"))
        self.pairs("--pairs", "pairs.txt", status=FAILED)
        self.assertIn("UTF-16", self.errors)

    def test_all(self):
        expected = list(itertools.combinations(sorted(f"frame{i}.pgm" for i in range(SCENES * VIEWS)), 2))
        self.assertEqual(self.pairs(), expected)
        self.assertEqual(self.pairs("--replace", "--pairs", "all"), expected)

    def test_sequential(self):
        # Image numbers follow the byte order frame0, frame1, frame10, ...; neighbours follow numeric order.
        order = sorted(f"frame{i}.pgm" for i in range(SCENES * VIEWS))
        def neighbors(*steps):
            numbered = [(order.index(f"frame{i}.pgm"), order.index(f"frame{i + step}.pgm"))
                        for step in steps for i in range(SCENES * VIEWS - step)]
            return [(order[a], order[b]) for a, b in sorted(map(sorted, numbered))]
        self.assertEqual(self.pairs("--pairs", "sequential:2"), neighbors(1, 2))
        self.assertEqual(self.pairs("--pairs", "sequential:4,quadratic", "--replace"), neighbors(1, 2, 3, 4, 8))
        self.assertEqual(self.pairs("--pairs", "sequential:4,quadratic"), [])  # these pairs are matched already
        self.assertEqual(len(self.pairs("--pairs", "sequential:1000", "--replace")), SCENES * VIEWS * (SCENES * VIEWS - 1) // 2)

    def test_retrieval_finds_the_views_of_a_scene(self):
        found = self.pairs("--pairs", f"retrieval:{VIEWS - 1}", "--threads", "1")
        self.assertEqual({tuple(sorted(pair)) for pair in found}, self.same_scene())
        self.assertEqual(found, sorted(found))
        self.assertEqual(self.pairs("--pairs", f"retrieval:{VIEWS - 1}", "--threads", "3", "--replace"), found)
        self.assertEqual(len(self.pairs("--pairs", "retrieval:99", "--replace")), SCENES * VIEWS * (SCENES * VIEWS - 1) // 2)

    def test_retrieval_leaves_empty_images_alone(self):
        self.ask("UPDATE keypoints SET rows = 0, data = x'' WHERE image_id = 1")
        self.ask("UPDATE descriptors SET rows = 0, data = x'' WHERE image_id = 1")
        found = self.pairs("--pairs", "retrieval:99")
        self.assertEqual(len(found), (SCENES * VIEWS - 1) * (SCENES * VIEWS - 2) // 2)
        self.assertNotIn("frame0.pgm", {name for pair in found for name in pair})
        self.ask("UPDATE keypoints SET rows = 0, data = x''")
        self.ask("UPDATE descriptors SET rows = 0, data = x''")
        self.assertEqual(self.pairs("--pairs", "retrieval:5"), [])

    def test_retrieval_names_images_without_descriptors(self):
        self.ask("DELETE FROM descriptors WHERE image_id = 1")
        self.assertNotIn("frame0.pgm", itertools.chain.from_iterable(self.pairs("--pairs", "retrieval:99")))
        self.assertIn("1 of 15 images have no descriptors", self.errors)
        self.ask("DELETE FROM descriptors")
        self.pairs("--pairs", "retrieval:99", status=FAILED)
        self.assertIn("none of its images has descriptors", self.errors)

    def test_damaged_features_are_reported(self):
        self.ask("UPDATE descriptors SET data = x'00' WHERE image_id = 2")
        self.assertEqual(self.pairs("--pairs", "retrieval:3", status=FAILED), [])
        self.assertIn("d.db", self.errors)

    def test_retrieval_within_memory(self):
        # The vectors take 0.25 million bytes, the sample of descriptors more.
        for limit in ("100k", "600k"):
            self.assertEqual(self.pairs("--pairs", "retrieval:3", "--max-memory", limit, status=FAILED), [])
            self.assertIn("expected a larger --max-memory", self.errors)
        self.assertNotEqual(self.pairs("--pairs", "retrieval:3", "--max-memory", "20M"), [])

    def write_vectors(self, name, rows, names, descr="<f4", code="f", order=False, shape=None, version=1):
        """Writes a .npy file and its names."""
        length = len(rows[0])
        header = repr({"descr": descr, "fortran_order": order, "shape": shape or (len(rows), length)}).encode() + b"\n"
        size = struct.pack("<H" if version == 1 else "<I", len(header))
        numbers = b"".join(struct.pack(f"{descr[0]}{length}{code}".replace("|", "<"), *row) for row in rows)
        self.write(f"{name}.npy", b"\x93NUMPY" + bytes([version, 0]) + size + header + numbers)
        self.write(f"{name}.txt", "".join(line + "\n" for line in names).encode())

    def test_retrieval_by_vectors_of_a_file(self):
        """Rows in any order; frame0 is not in the file, and a name of the file is not in the database."""
        names = [f"frame{i}.pgm" for i in range(1, SCENES * VIEWS)][::-1] + ["elsewhere.pgm"]
        angles = {name: 0.1 * i for i, name in enumerate(names)}
        rows = [[math.cos(angles[name]), math.sin(angles[name]), 0] for name in names]
        expected = set()
        for name in names[:-1]:
            others = sorted((abs(angles[name] - angles[other]), other) for other in names[:-1] if other != name)
            expected |= {tuple(sorted((name, other))) for distance, other in others if distance < 0.11}
        for descr, code, version, scale in (("<f4", "f", 1, 1), (">f4", "f", 1, 1), ("<f8", "d", 2, 1e-3), ("<f2", "e", 3, 0.5)):
            self.write_vectors("v", [[scale * x for x in row] for row in rows], names, descr, code, version=version)
            found = self.pairs("--pairs", "retrieval:2,v.npy", "--replace")
            ends = {names[0], names[-2]}  # they have one such neighbour, and propose a farther one too
            self.assertEqual({pair for pair in map(lambda p: tuple(sorted(p)), found)} - expected,
                             {tuple(sorted((names[0], names[2]))), tuple(sorted((names[-2], names[-4])))}, (descr, ends))
            self.assertEqual(expected - {tuple(sorted(pair)) for pair in found}, set())
            self.assertIn("1 of 15 images have no vector in v.npy", self.errors)
        self.write_vectors("v", [[round(100 * x) for x in row] for row in rows], names, "|i1", "b")
        self.assertEqual(self.pairs("--pairs", "retrieval:2,v.npy", "--replace"), found)
        self.write_vectors("v", [[0, 0, 0], *rows[1:]], names)
        self.assertNotIn(names[0], itertools.chain.from_iterable(self.pairs("--pairs", "retrieval:2,v.npy", "--replace")))
        self.assertIn("2 of 15 images have no vector in v.npy, or one of zeros", self.errors)
        self.assertEqual(self.pairs("--pairs", "retrieval:99,v.npy", "--max-memory", "2k", status=FAILED), [])
        self.assertIn("expected a larger --max-memory", self.errors)

    def test_files_that_are_no_vectors(self):
        names, rows = [f"frame{i}.pgm" for i in range(4)], [[1, 2], [3, 4], [5, 6], [7, 8]]

        def refused(reason, *, names=names, **options):
            self.write_vectors("v", rows, names, **options)
            self.check_refused(reason)

        refused("another type", descr="<u2", code="H")
        refused("another type", descr="<i8", code="q")
        refused("Fortran order", order=True)
        refused("another shape", shape=(8,))
        refused("more than two dimensions", shape=(2, 2, 2))
        refused("do not agree", shape=(8, 0))
        refused("do not agree", shape=(1, 1 << 40))
        refused("do not agree", shape=(1 << 30, 65536))
        refused("do not agree", shape=(3, 2))
        refused("unknown version", version=4)
        refused("expected a name for each", names=names[:3])
        refused("more lines than the 4 rows", names=names + ["x"])
        refused("twice", names=names[:3] + names[:1])
        refused("v.txt:2: expected the name of an image", names=[names[0], "", *names[2:]])
        refused("none of its names is an image", names=["a", "b", "c", "d"])
        self.write_vectors("v", [[1, 2], [3, math.nan], [5, 6], [7, 8]], names)
        self.check_refused("not finite")
        for number in (3.5e38, -1e300):
            self.write_vectors("v", [[1, 2], [3, number], [5, 6], [7, 8]], names, "<f8", "d")
            self.check_refused("beyond the range of float32")
        self.write_vectors("v", rows, names)
        for end in (b"frame3.pgm\0", b"frame3\0.pgm\n", b"\0", b"x" * 9000):
            self.write("v.txt", b"frame0.pgm\nframe1.pgm\r\nframe2.pgm\r" + end)
            self.check_refused("v.txt:4: is longer than 8191 bytes or has a zero byte")
        self.write("v.txt", "\n".join(names).encode("utf-16"))
        self.check_refused("UTF-16")
        self.write_vectors("v", rows, names)
        whole = self.read("v.npy")
        for size in (0, 5, 9, 11, 40, len(whole) - 1):
            self.write("v.npy", whole[:size])
            self.check_refused("v.npy: ")
        self.write("v.npy", whole + b"x")
        self.check_refused("do not agree")
        self.write("v.npy", b"\x93NUMPY\x02\0\xff\xff\xff\xff" + whole)
        self.check_refused("header of the NumPy array is cut off")
        os.remove(self.path("v.txt"))
        self.write("v.npy", whole)
        self.check_refused("v.txt: cannot be opened")
        os.remove(self.path("v.npy"))
        self.check_refused("v.npy: cannot be opened")

    def check_refused(self, reason):
        self.assertEqual(self.pairs("--pairs", "retrieval:2,v.npy", status=FAILED), [])
        self.assertIn(reason, self.errors)

    def test_list_of_names(self):
        self.write("list.txt", b"# pairs\nframe3.pgm frame1.pgm\n\nframe0.pgm frame14.pgm\n")
        self.assertEqual(self.pairs("--pairs", "list.txt"), [("frame3.pgm", "frame1.pgm"), ("frame0.pgm", "frame14.pgm")])
        os.rename(self.path("list.txt"), self.path("sequential:x"))
        self.assertEqual(len(self.pairs("--pairs", "./sequential:x", "--replace")), 2)

    def test_pairs_listed_twice_count_once(self):
        self.write("list.txt", b"frame4.pgm frame1.pgm\nframe0.pgm frame10.pgm\nframe10.pgm frame0.pgm\n"
                               b"frame4.pgm frame1.pgm\nframe0.pgm frame5.pgm")
        self.assertEqual(self.pairs("--pairs", "list.txt"), [("frame4.pgm", "frame1.pgm"), ("frame0.pgm", "frame10.pgm"),
                                                             ("frame0.pgm", "frame5.pgm")])

    def test_lines_that_are_none(self):
        for line in (b"frame0.pgm frame10.pgm\0frame5.pgm\n", b"\0" * 9000 + b"\n", b"x" * 9000 + b"\n",
                     b"frame0.pgm frame10.pgm\0", b"\0"):
            self.write("list.txt", b"frame0.pgm frame5.pgm\n" + line)
            self.assertEqual(self.pairs("--pairs", "list.txt", status=FAILED), [])
            self.assertIn("list.txt:2: is longer than ", self.errors)

    def test_counts_that_are_none_fail_their_own_pairs(self):
        """A false count in one image's row does not affect pairs of other images."""
        before = self.read("d.db")
        for rows in (-5, 2 ** 31 - 1, 2 ** 62, 2 ** 63 - 1):
            self.write("d.db", before)
            self.ask("UPDATE keypoints SET rows = ? WHERE image_id = 3", rows)
            self.assertEqual(len(self.pairs(status=FAILED)), (SCENES * VIEWS - 1) * (SCENES * VIEWS - 2) // 2, rows)

    def test_few_descriptors_are_found_too(self):
        self.ask("UPDATE keypoints SET rows = 8, data = substr(data, 1, 8 * 24)")
        self.ask("UPDATE descriptors SET rows = 8, data = substr(data, 1, 8 * 128)")
        found = self.pairs("--pairs", "retrieval:2")
        self.assertEqual({name for pair in found for name in pair}, {f"frame{i}.pgm" for i in range(SCENES * VIEWS)})

    def test_wrong_forms(self):
        for text in ("sequential:", "sequential:0", "sequential:-1", "sequential:2,", "sequential:2,square", "spatial:",
                     "spatial:-1", "spatial:nan", "spatial:5,0", "spatial:5,x", "retrieval:", "retrieval:0", "retrieval:2.5", "retrieval:2,", "retrieval:2,v.txt", "retrieval:,v.npy",
                     "retrieval:99999999999", "retrieval:4294967296", "retrieval:+1",
                     "retrieval: 1", "retrieval:01", "sequential:+2", "sequential:02", "spatial:5,+1"):
            before = self.read("d.db")
            self.assertEqual(self.pairs("--pairs", text, status=USAGE), [], text)
            self.assertIn(f"--pairs '{text}': expected ", self.errors)
            self.assertEqual(self.read("d.db"), before)


class Rigs(PairsCase):
    """In databases with rigs, the images of neighbouring frames are paired."""

    TABLES = """CREATE TABLE rigs (rig_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, ref_sensor_id INTEGER NOT NULL,
        ref_sensor_type INTEGER NOT NULL);
        CREATE TABLE rig_sensors (rig_id INTEGER NOT NULL, sensor_id INTEGER NOT NULL, sensor_type INTEGER NOT NULL,
        sensor_from_rig BLOB);
        CREATE TABLE frames (frame_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, rig_id INTEGER NOT NULL);
        CREATE TABLE frame_data (frame_id INTEGER NOT NULL, data_id INTEGER NOT NULL, sensor_id INTEGER NOT NULL,
        sensor_type INTEGER NOT NULL)"""

    def make(self, *rigs):
        """Makes rigs. Each rig is a list of frames; each frame is a list of the names that its cameras took, with None for
        a camera that took none. Images are numbered by name."""
        self.extract("@scene:64x48", "-o", "d.db", "-q")
        numbers = {name: i for i, name in enumerate(sorted(name for rig in rigs for frame in rig for name in frame if name), 1)}
        with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database, database:
            database.executescript("DELETE FROM images; DELETE FROM keypoints; DELETE FROM descriptors;" + self.TABLES)
            for name, number in numbers.items():
                database.execute("INSERT INTO images(image_id, name, camera_id) VALUES(?, ?, 1)", (number, name))
                database.execute("INSERT INTO keypoints VALUES(?, 0, 6, NULL)", (number,))
            for rig, frames in enumerate(rigs, 1):
                database.execute("INSERT INTO rigs VALUES(?, ?, 0)", (rig, 10 * rig))
                for camera in range(1, len(frames[0])):
                    database.execute("INSERT INTO rig_sensors VALUES(?, ?, 0, NULL)", (rig, 10 * rig + camera))
                for frame in frames:
                    number = database.execute("INSERT INTO frames(rig_id) VALUES(?)", (rig,)).lastrowid
                    for camera, name in enumerate(frame):
                        if name:
                            database.execute("INSERT INTO frame_data VALUES(?, ?, ?, 0)", (number, numbers[name], 10 * rig + camera))

    def follow(self, frames, *steps):
        """Returns all pairs of images of frames up to this distance, and within each frame."""
        frames = [[name for name in frame if name] for frame in frames]
        found = [pair for frame in frames for pair in itertools.combinations(frame, 2)]
        for step in steps:
            for one, other in zip(frames, frames[step:]):
                found += itertools.product(one, other)
        return sorted({tuple(sorted(pair)) for pair in found})

    def test_frames_of_folders(self):
        rig = [[f"left/f{i}", f"right/f{i}"] for i in range(8)]
        self.make(rig)
        found = self.pairs("--pairs", "sequential:1")
        self.assertEqual(found, self.follow(rig, 1))
        self.assertEqual(len(found), 36)
        self.assertEqual(sum(a[0] != b[0] for a, b in found), 22)
        self.assertEqual(self.pairs("--pairs", "sequential:3", "--replace"), self.follow(rig, 1, 2, 3))
        self.assertEqual(self.pairs("--pairs", "sequential:3,quadratic", "--replace"), self.follow(rig, 1, 2, 3, 4))
        self.assertEqual(len(self.pairs("--pairs", "sequential:99", "--replace")), 16 * 15 // 2)

    def test_other_names(self):
        """The order of images within a camera counts, not the prefix of a name. Numbers in names compare as numbers."""
        rig = [[f"{i}_front", f"{i}_back", f"up{i}"] for i in (2, 9, 10, 11)]
        self.make(rig)
        self.assertEqual(sorted(tuple(sorted(pair)) for pair in self.pairs("--pairs", "sequential:1")), self.follow(rig, 1))

    def test_images_that_are_missing(self):
        """If a camera missed a frame, its next image follows. Images of other cameras in that frame still follow each
        other."""
        rig = [["a/0", "b/0"], ["a/1", None], ["a/2", "b/2"], [None, "b/3"], ["a/4", "b/4"]]
        self.make(rig)
        found = self.pairs("--pairs", "sequential:1")
        gaps = itertools.chain(itertools.product(rig[0], rig[2]), itertools.product(rig[2], rig[4]))
        self.assertEqual(found, sorted({*self.follow(rig, 1), *(tuple(sorted(pair)) for pair in gaps)}))

    def test_several_rigs_and_cameras_alone(self):
        first, second = ([[f"{name}/l{i}", f"{name}/r{i}"] for i in range(3)] for name in "bd")
        alone = [[f"{name}/{i}"] for name in "ac" for i in range(2)]
        self.make(first, alone[:2], second, alone[2:])
        expected = [*self.follow(first, 1), *self.follow(second, 1), *self.follow(alone, 1)]
        self.assertEqual(self.pairs("--pairs", "sequential:1"), sorted(expected))

    def test_images_without_a_frame(self):
        rig = [[f"left/f{i}", f"right/f{i}"] for i in range(2)]
        self.make(rig, [["s0"]], [["s1"]])
        self.ask("DELETE FROM frame_data WHERE data_id > 4")
        self.assertEqual(self.pairs("--pairs", "sequential:1"), sorted([*self.follow(rig, 1), ("s0", "s1")]))


class Places(PairsCase):
    """Photographs with and without GPS."""

    PLACES = {"a.jpg": (47.0, 8.0, 400.0), "b.jpg": (47.0001, 8.0, -100.0), "c.jpg": (47.0003, 8.0, 0.0),
              "d.jpg": (-47.0, 8.0, 400.0), "e.jpg": (47.0, -8.0, 400.0), "f.jpg": None, "g.jpg": (-47.0, 8.0002, 0.0),
              "h.jpg": (47.0, 8.0, None)}

    def setUp(self):
        super().setUp()
        self.make_once("draw", f"@scene:{WIDTH}x{HEIGHT}:3", "--max-features", "1", "-q", "-o", "plain.jpg")
        plain = self.read("plain.jpg")
        for name, place in self.PLACES.items():
            self.write(name, with_exif(plain, gps=position(*place)) if place else plain)
        self.make_once("extract", *self.PLACES, "-q", "--max-features", "50", "-o", "d.db")

    def test_within_metres(self):
        # As in COLMAP, h has no position because it has no altitude. To the north of a: b 11.1 m, c 33.4 m; d and g
        # 15.2 m apart in the south; altitudes do not count.
        self.assertEqual(self.pairs("--pairs", "spatial:12"), [("a.jpg", "b.jpg")])
        self.assertIn("2 of 8 images have no position", self.errors)
        self.assertEqual(self.pairs("--pairs", "spatial:25", "--replace"),
                         [("a.jpg", "b.jpg"), ("b.jpg", "c.jpg"), ("d.jpg", "g.jpg")])
        self.assertEqual(self.pairs("--pairs", "spatial:34", "--replace"),
                         [("a.jpg", "b.jpg"), ("a.jpg", "c.jpg"), ("b.jpg", "c.jpg"), ("d.jpg", "g.jpg")])
        self.assertEqual(self.pairs("--pairs", "spatial:34,1", "--replace"),
                         [("a.jpg", "b.jpg"), ("b.jpg", "c.jpg"), ("d.jpg", "g.jpg")])
        self.assertEqual(len(self.pairs("--pairs", "spatial:1e8", "--replace")), 15)
        self.assertEqual(self.pairs("--pairs", "spatial:0", "--replace"), [])

    def test_without_any_position(self):
        os.remove(self.path("d.db"))
        self.extract("f.jpg", "plain.jpg", "-o", "d.db", "-q", "--max-features", "50")
        self.assertEqual(self.pairs("--pairs", "spatial:10", status=FAILED), [])
        self.assertIn("none of its images has a position", self.errors)


if __name__ == "__main__":
    main()
