"""Pairs that the command sets aside because the collection contradicts them: which pairs, for how long, and in which
databases.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import itertools
import json
import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, DONE, FAILED, USAGE, CommandCase, main  # noqa: E402

TABLES = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL, width INTEGER NOT NULL,
 height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);
CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE, camera_id INTEGER NOT NULL,
 prior_qw REAL, prior_qx REAL, prior_qy REAL, prior_qz REAL, prior_tx REAL, prior_ty REAL, prior_tz REAL);
CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);
CREATE TABLE matches (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);
CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB,
 config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB);
"""
BASE = 2147483647
FACADE, WINDOWS, CLUTTER, CORNER = 200, 45, 80, 270
WIDTH, HEIGHT, FOCAL = 1200, 900, 900
# Images 1 to 3 see one facade, 4 to 6 another one with the same windows; 3 and 4 see the corner between them.
IMAGES = 6
SURE = {(1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (4, 6), (5, 6)}
ALIKE = set(itertools.combinations(range(1, IMAGES + 1), 2)) - SURE


def descriptor(dice):
    values = [dice.random() ** 3 for _ in range(128)]
    length = sum(value * value for value in values) ** 0.5
    return bytes(min(255, int(512 * value / length)) for value in values)


def points(dice, count):
    return [(dice.uniform(-5, 5), dice.uniform(-4, 4), dice.uniform(9, 14)) for _ in range(count)]


def facades():
    """Returns the (point, descriptor) lists of the six images. Windows are at the same positions of both facades; other
    points are not."""
    dice = random.Random(7)
    windows, clutter = [[descriptor(dice) for _ in range(count)] for count in (WINDOWS, CLUTTER)]
    window_places = points(dice, WINDOWS)
    corner = [(place, descriptor(dice)) for place in points(dice, CORNER)]
    of_facade = []
    for _ in range(2):
        of_facade.append([(place, descriptor(dice)) for place in points(dice, FACADE)] + list(zip(window_places, windows))
                         + list(zip(points(dice, CLUTTER), clutter)))
    return [of_facade[image // 3] + (corner if image in (2, 3) else []) for image in range(IMAGES)]


def keypoint(point, image, is_corner):
    """Returns a keypoint. The camera moves sideways along a facade and a little forward, and upward past the corner."""
    x, y, z = point
    step = image % 3 - 1
    sideways, up, forward = (0.1, 0.9, -0.2) if is_corner else (0.7, -0.2, 0.4)
    z -= forward * step
    return FOCAL * (x - sideways * step) / z + WIDTH / 2, FOCAL * (y - up * step) / z + HEIGHT / 2, 3.0, 0.0, 0.0, 3.0


class Doubtful(CommandCase):
    features = None

    def setUp(self):
        super().setUp()
        if Doubtful.features is None:
            Doubtful.features = facades()
        self.make("d.db", range(1, IMAGES + 1))

    def make(self, name, images):
        """Makes a database of some of the six images, numbered from 1."""
        with contextlib.closing(sqlite3.connect(self.path(name))) as database, database:
            database.executescript(TABLES)
            for number, image in enumerate(images, 1):
                features = self.features[image - 1]
                places = [keypoint(point, image - 1, i >= FACADE + WINDOWS + CLUTTER) for i, (point, _) in enumerate(features)]
                database.execute("INSERT INTO cameras VALUES(?, 2, ?, ?, ?, 0)",
                                 (number, WIDTH, HEIGHT, struct.pack("<4d", 1.2 * WIDTH, WIDTH / 2, HEIGHT / 2, 0)))
                database.execute("INSERT INTO images(image_id, name, camera_id) VALUES(?, ?, ?)", (number, f"{image}.jpg", number))
                database.execute("INSERT INTO keypoints VALUES(?, ?, 6, ?)",
                                 (number, len(features), b"".join(struct.pack("<6f", *place) for place in places)))
                database.execute("INSERT INTO descriptors VALUES(?, ?, 128, ?)",
                                 (number, len(features), b"".join(d for _, d in features)))

    def rows(self, name="d.db"):
        """Returns the content of all pair tables, by image names."""
        names = dict(self.ask("SELECT image_id, name FROM images", name=name))
        present = {table for table, in self.ask("SELECT name FROM sqlite_master WHERE type = 'table'", name=name)}
        return {table: [(names.get(row[0] // BASE), names.get(row[0] % BASE), *row[1:])
                        for row in self.ask(f"SELECT * FROM {table} ORDER BY pair_id", name=name)]
                for table in ("matches", "two_view_geometries", "hartsift_doubtful_pairs", "hartsift_guided") if table in present}

    def aside(self, name="d.db"):
        return {tuple(int(image.split(".")[0]) for image in row[:2]) for row in self.rows(name)["hartsift_doubtful_pairs"]}

    def match(self, *arguments, status=DONE, name="d.db"):
        self.output, self.errors = self.run_it("match", "--database", name, "--device", "cpu", *arguments, status=status)
        return self.output.decode()

    # ---------------------------------------------------------------- the decision

    def test_look_alikes_are_left_out(self):
        self.match("--doubtful", "keep")
        kept = self.rows()
        self.assertNotIn("hartsift_doubtful_pairs", kept)
        inliers = {(int(a[0]), int(b[0])): rows for a, b, rows, *_ in kept["two_view_geometries"]}
        self.assertTrue(all(inliers[pair] >= 20 for pair in ALIKE), inliers)  # verified alone, each pair is accepted
        self.assertTrue(all(inliers[pair] >= 100 for pair in SURE), inliers)
        records = [json.loads(line) for line in self.match("--json").splitlines()]
        self.assertEqual({(int(r["image_a"][0]), int(r["image_b"][0])) for r in records}, ALIKE)
        self.assertIn(f"{len(ALIKE)} of {len(ALIKE) + len(SURE)} verified pairs left out", self.errors)
        for record in records:
            self.assertIs(record["doubtful"], True)
            self.assertLess(record["supported"], 0.15 * record["inliers"])
            self.assertGreaterEqual(record["on_tracks"], record["supported"])
        self.assertEqual(self.aside(), ALIKE)
        self.assertEqual(self.rows()["matches"], kept["matches"])
        for before, row in zip(kept["two_view_geometries"], self.rows()["two_view_geometries"]):
            if (int(row[0][0]), int(row[1][0])) in SURE:
                self.assertEqual(row, before)
            else:
                self.assertEqual(row[2:], (0, 2, b"", 1, None, None, None, None, None))
        self.match("--doubtful", "keep")
        self.assertIn(f"{len(ALIKE)} doubtful pairs restored", self.errors)
        self.assertEqual({**self.rows(), "hartsift_doubtful_pairs": []}, {**kept, "hartsift_doubtful_pairs": []})

    def test_hartsift_colmap_leaves_them_out_unless_told(self):
        program = os.path.join(os.path.dirname(COMMAND), "hartsift-colmap")
        if not os.path.exists(program):
            self.skipTest("hartsift-colmap was not built")
        arguments = [program, "exhaustive_matcher", "--database_path", "d.db", "--SiftMatching.use_gpu", "0"]
        for option, aside in (("0", ALIKE), ("1", set())):
            run = subprocess.run([*arguments, "--Hartsift.keep_doubtful", option], cwd=self.folder, env=self.environment(), check=True,
                                 capture_output=True, text=True)
            self.assertEqual(self.aside(), aside)
            self.assertEqual("(--Hartsift.keep_doubtful 1 restores them)" in run.stderr, bool(aside), run.stderr)

    def test_again_and_again(self):
        self.match("-q")
        self.assertEqual(self.errors, "")
        once = self.rows()
        self.assertEqual(self.aside(), ALIKE)
        for arguments in ((), ("--threads", "3"), ("--pairs", "sequential:1"), ("--replace",)):
            self.match(*arguments)
            self.assertEqual(self.rows(), once, arguments)
        self.match("--no-verify")  # there is nothing to judge, and all pairs are done
        self.assertEqual(self.rows(), once)

    def test_guided_pairs_are_judged_by_their_first_pass(self):
        self.match("--guided")
        once = self.rows()
        self.assertEqual(self.aside(), ALIKE)
        self.assertNotEqual(once["hartsift_guided"], [])
        self.match("--guided")
        self.assertEqual(self.rows(), once)

    def test_only_link_stays(self):
        """Without the pair at the corner nothing is certain about the two facades."""
        self.match("--doubtful", "keep")
        self.ask("UPDATE two_view_geometries SET rows = 0, data = x'', config = 1 WHERE pair_id = ?", 3 * BASE + 4)
        before = self.rows()["two_view_geometries"]
        self.match()
        self.assertEqual(self.rows()["two_view_geometries"], before)
        self.assertEqual(self.match("--json"), "")

    def test_a_pair_that_may_close_a_loop_stays(self):
        """When the pairs 1-3 and 4-6 are removed, images 1 and 6 are four sure pairs apart."""
        self.match("--doubtful", "keep")
        for pair in (BASE + 3, 4 * BASE + 6):
            self.ask("DELETE FROM two_view_geometries WHERE pair_id = ?", pair)
            self.ask("DELETE FROM matches WHERE pair_id = ?", pair)
        self.write("listed.txt", b"1.jpg 2.jpg\n")
        self.match("--pairs", "listed.txt")
        self.assertEqual(self.aside(), {pair for pair in ALIKE if pair not in ((1, 5), (1, 6), (2, 6))})

    def test_usage(self):
        for arguments in (("--doubtful", "keep", "--no-verify"), ("--doubtful", "perhaps"), ("--doubtful",),
                          ("--tracks", "9", "--no-verify"), ("--tracks", "0"), ("--tracks",)):
            self.match(*arguments, status=USAGE)
        self.write("a.pgm", b"P5 9 9 255\n" + bytes(81))
        self.run_it("match", "a.pgm", "a.pgm", "--doubtful", "drop", status=USAGE)
        self.run_it("match", "a.pgm", "a.pgm", "--tracks", "9", status=USAGE)

    # ---------------------------------------------------------------- the longest tracks

    def inliers(self):
        return {pair: [(pair // BASE, a, pair % BASE, b) for a, b in struct.iter_unpack("<2I", data)] for pair, data in
                self.ask("SELECT pair_id, data FROM two_view_geometries WHERE rows > 0 ORDER BY pair_id")}

    def test_longest_tracks(self):
        wanted, fewest = 90, 50
        self.match()
        whole, before = self.rows(), self.inliers()
        self.match("--tracks", str(wanted))
        after = self.inliers()
        self.assertIn(f"{sum(map(len, after.values()))} of {sum(map(len, before.values()))} inliers stay", self.errors)
        self.assertEqual(after.keys(), before.keys())
        track = {}
        for matches in before.values():  # the features of each feature's track
            for image_a, a, image_b, b in matches:
                joined = track.get((image_a, a), {(image_a, a)}) | track.get((image_b, b), {(image_b, b)})
                track.update((feature, joined) for feature in joined)
        length = {feature: len({image for image, _ in joined}) for feature, joined in track.items()}
        least = {image: sorted((length[f] for f in length if f[0] == image), reverse=True)[:wanted][-1]
                 for image in range(1, IMAGES + 1)}
        self.assertGreater(len(set(length.values())), 1)
        for pair, matches in after.items():
            left_out = [match for match in before[pair] if match not in matches]
            self.assertEqual([match for match in before[pair] if match in matches], matches)  # matches keep their order
            self.assertGreaterEqual(len(matches), min(fewest, len(before[pair])))
            for image_a, a, image_b, b in left_out:
                self.assertTrue(all(length[f] <= least[f[0]] for f in track[image_a, a]))
            for image_a, a, image_b, b in matches if len(matches) > fewest else ():
                self.assertTrue(any(length[f] >= least[f[0]] for f in track[image_a, a]))
        once = self.rows()
        self.assertLess(sum(map(len, after.values())), sum(map(len, before.values())))
        for arguments in (("--tracks", str(wanted)), ("--tracks", str(wanted), "--threads", "3")):
            self.match(*arguments)
            self.assertEqual(self.rows(), once)
        self.match()
        self.assertEqual(self.rows(), whole)

    def test_tracks_need_memory(self):
        """The message advises options that differ from the requested ones."""
        self.match()
        whole = self.rows()
        for arguments, reason in (((), "judge its 15 verified pairs: expected a larger --max-memory, or --doubtful keep"),
                                  (("--tracks", "9"), "judge its 15 verified pairs: expected a larger --max-memory, or no --tracks"),
                                  (("--tracks", "9", "--doubtful", "keep"),
                                   "follow the tracks of its 15 verified pairs: expected a larger --max-memory, or no --tracks")):
            self.match("--max-memory", "1000", *arguments, status=FAILED)
            self.assertIn(reason, self.errors)
            self.assertEqual(self.rows(), whole)

    def test_merged_with_all_inliers(self):
        self.write("list.txt", b"@scene:320x240:1\n@scene:320x240:3\n@scene:320x240:5\n")
        self.run_it("batch", "list.txt", "-o", "a.db", "-q", "--device", "cpu", "--profile", "colmap")
        self.write_pairs("a.db", [("1", "3", 120, 140, 0), ("3", "5", 110, 130, 0)])
        self.write("a.db.txt", b"# none\n")
        whole = self.rows("a.db")["two_view_geometries"]
        self.match("--pairs", "a.db.txt", "--tracks", "60", name="a.db")
        self.assertTrue(all(50 <= row[2] < before[2] for row, before in
                            zip(self.rows("a.db")["two_view_geometries"], whole)))
        self.run_it("merge", "a.db", "-o", "all.db", "-q")
        self.assertEqual(self.rows("all.db")["two_view_geometries"], whole)

    def test_tracks_of_other_geometry(self):
        """If another program has verified a pair again, the pair keeps that result."""
        self.match()
        self.match("--tracks", "60")
        pair, rows = self.ask("SELECT pair_id, rows FROM hartsift_doubtful_pairs WHERE reason = 'short tracks'")[0]
        self.ask("UPDATE two_view_geometries SET rows = 30, data = substr(data, 1, 240) WHERE pair_id = ?", pair)
        self.match()
        self.assertEqual(self.ask("SELECT rows FROM two_view_geometries WHERE pair_id = ?", pair), [(30,)])
        self.assertGreater(rows, 30)
        self.assertEqual(self.ask("SELECT count(*) FROM hartsift_doubtful_pairs WHERE reason = 'short tracks'"), [(0,)])

    # ---------------------------------------------------------------- partial and interrupted runs

    def test_killed_runs(self):
        self.make("one.db", range(1, IMAGES + 1))
        self.match(name="one.db")
        for kind in (signal.SIGKILL, signal.SIGINT):
            os.remove(self.path("d.db"))
            self.make("d.db", range(1, IMAGES + 1))
            for pause in (0.005, 0.02, 0.05, 0.1, 0.2, 0.4):
                process = subprocess.Popen([COMMAND, "match", "--database", "d.db", "--device", "cpu"], cwd=self.folder,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(pause)
                process.send_signal(kind)
                process.wait()
                doubtful = self.rows().get("hartsift_doubtful_pairs", [])
                self.assertIn(len(doubtful), (0, len(ALIKE)))  # all doubtful pairs are moved, or none
            self.match()
            self.assertEqual(self.rows(), self.rows("one.db"))

    def write_pairs(self, name, pairs):
        """Writes verified pairs of synthetic scenes: (first, second, inliers, matches, feature of the second - feature of
        the first)."""
        numbers = {scene.split("_")[-1]: number for number, scene in self.ask("SELECT image_id, name FROM images", name=name)}
        for first, second, inliers, matches, shift in pairs:
            if not {first, second} <= set(numbers):
                continue
            rows = [(i, i + shift) if i + shift < inliers else (i, i + shift - inliers) for i in range(inliers)]
            rows += [(i, inliers + matches - 1 - i) for i in range(inliers, matches)]
            if numbers[first] > numbers[second]:
                rows = [row[::-1] for row in rows]
            pair = BASE * min(numbers[first], numbers[second]) + max(numbers[first], numbers[second])
            data = b"".join(struct.pack("<2I", *row) for row in rows)
            self.ask("INSERT OR IGNORE INTO matches VALUES(?, ?, 2, ?)", pair, matches, data, name=name)
            self.ask("INSERT OR IGNORE INTO two_view_geometries(pair_id, rows, cols, data, config, F) VALUES(?, ?, 2, ?, 3, ?)", pair,
                     inliers, data[:8 * inliers], struct.pack("<9d", 0, 0, inliers, 0, 0, 2, 3, 4, matches), name=name)

    def test_parts_that_are_merged(self):
        """Shards that were matched and judged separately, then merged and matched, equal a single run."""
        scenes = [f"@scene:320x240:{i}" for i in range(1, 7)]
        self.write("list.txt", "\n".join(scenes).encode())
        for output, more in (("whole.db", ()), ("a.db", ("--shard", "1/2")), ("b.db", ("--shard", "2/2"))):
            self.run_it("batch", "list.txt", "-o", output, "-q", "--device", "cpu", "--profile", "colmap", *more)
        self.assertGreater(min(self.ask("SELECT min(rows) FROM keypoints", name="whole.db")[0]), 150)
        # Odd scenes are one shard, even scenes the other; 1 and 5 contradict 3, and only 1 and 2 link the shards.
        pairs = [("1", "3", 120, 140, 0), ("3", "5", 110, 130, 0), ("2", "4", 120, 140, 0),
                 ("4", "6", 40, 90, 0), ("5", "1", 45, 110, 9)]
        links = [("1", "2", 105, 120, 0), ("2", "3", 50, 120, 20), ("1", "4", 50, 120, 0)]
        for name in ("a.db", "b.db"):
            self.write_pairs(name, pairs)
            self.write(f"{name}.txt", b"# none\n")
            self.match("--pairs", f"{name}.txt", name=name)
        self.assertEqual(self.ask("SELECT on_tracks, supported FROM hartsift_doubtful_pairs", name="a.db"), [(45, 0)])
        self.write_pairs("whole.db", pairs + links)
        untouched = self.rows("whole.db")
        self.match("--pairs", "a.db.txt", name="whole.db")
        self.assertEqual(len(self.rows("whole.db")["hartsift_doubtful_pairs"]), 2)
        for order in (("a.db", "b.db"), ("b.db", "a.db")):
            for _ in range(2):  # the second merge overwrites a judged output
                self.run_it("merge", *order, "-o", "all.db", "-q")
                self.write_pairs("all.db", links)
                self.match("--pairs", "a.db.txt", "--doubtful", "keep", name="all.db")
                self.assertEqual(self.rows("all.db")["two_view_geometries"], untouched["two_view_geometries"])
                self.match("--pairs", "a.db.txt", name="all.db")
                self.assertEqual(self.rows("all.db"), self.rows("whole.db"))
            os.remove(self.path("all.db"))
            os.remove(self.path("all.db.manifest.csv"))

    # ---------------------------------------------------------------- corrupt databases

    def test_damaged_rows_take_no_other_along(self):
        self.match("--doubtful", "keep")
        self.write("listed.txt", b"2.jpg 3.jpg\n")
        before = self.read("d.db")
        pair = BASE + 2  # a sure pair, next to others
        beyond = struct.pack("<2I", 5000000, 1)
        for damage, values in (("rows = 7", ()), ("rows = 4611686018427387904", ()), ("data = NULL", ()),
                               ("data = substr(data, 9) || ?", (beyond,)), ("data = CAST(substr(data, 9) AS BLOB) || ?", (beyond,)),
                               ("rows = 1, data = ?", (beyond,)), ("rows = 1, data = ?", (struct.pack("<2I", 1, 2 ** 32 - 1),)),
                               ("pair_id = ?", (BASE + 1,)), ("pair_id = ?", (2 * BASE + 1,)), ("pair_id = ?", (2 ** 63 - 1,)),
                               ("pair_id = ?", (-7,)), ("pair_id = ?", (77 * BASE + 99,))):
            self.write("d.db", before)
            self.ask(f"UPDATE two_view_geometries SET {damage} WHERE pair_id = {pair}", *values)
            self.match("--pairs", "listed.txt")
            self.assertEqual(self.aside(), ALIKE, damage)
            if values not in ((-7,), (77 * BASE + 99,)):
                self.assertIn("1 verified pair not judged", self.errors)

    def test_counts_of_features_that_lie(self):
        self.match("--doubtful", "keep")
        self.write("listed.txt", b"1.jpg 2.jpg\n")
        before = self.read("d.db")
        for rows in (0, -1, 2 ** 31 - 1, 2 ** 32, 2 ** 62, 2 ** 63 - 1):
            self.write("d.db", before)
            self.ask("UPDATE keypoints SET rows = ? WHERE image_id = 6", rows)
            self.match("--pairs", "listed.txt")
            self.assertEqual(self.aside(), {pair for pair in ALIKE if 6 not in pair}, rows)
        self.write("d.db", before)
        self.ask("DELETE FROM images WHERE image_id = 6")
        self.match("--pairs", "listed.txt")
        self.assertEqual(len(self.ask("SELECT * FROM hartsift_doubtful_pairs")), len([p for p in ALIKE if 6 not in p]))

    def test_counts_of_matches_that_lie(self):
        """Corrupt counts do not remove a pair that would have stayed, and no printed number is out of range."""
        self.match("--doubtful", "keep")
        self.write("listed.txt", b"1.jpg 2.jpg\n")
        self.ask("UPDATE matches SET rows = 4611686018427387904 WHERE pair_id = ?", 2 * BASE + 3)
        self.ask("CREATE TABLE hartsift_guided (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL,"
                 " matches INTEGER NOT NULL, inliers INTEGER NOT NULL)")
        self.ask("INSERT INTO hartsift_guided SELECT pair_id, rows, 9223372036854775807, 1 FROM two_view_geometries")
        self.match("--pairs", "listed.txt")
        self.assertEqual(self.aside(), ALIKE)

    def test_matches_that_were_deleted(self):
        """COLMAP keeps geometries whose matches are deleted. The number of other matches is then unknown, so the pairs
        stay."""
        self.match("--doubtful", "keep")
        self.ask("DELETE FROM matches WHERE pair_id = ?", BASE + 6)
        self.write("listed.txt", b"1.jpg 2.jpg\n")
        for _ in range(2):
            self.match("--pairs", "listed.txt")
            self.assertEqual(self.aside(), ALIKE - {(1, 6)})

    def test_memory(self):
        self.match("--doubtful", "keep")
        before = self.rows()
        self.match("--max-memory", "50k", status=FAILED)
        self.assertIn("expected a larger --max-memory, or --doubtful keep", self.errors)
        self.assertEqual(self.rows(), before)
        self.match("--max-memory", "50k", "--doubtful", "keep")
        self.match("--max-memory", "5M")
        self.assertEqual(self.aside(), ALIKE)


if __name__ == "__main__":
    main()
