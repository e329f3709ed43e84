"""Existing matches in `match --database`: matches that fit their features are verified or kept, others are matched
anew; and messages about images that prevent their pairs.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import itertools
import json
import os
import sqlite3
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import DONE, FAILED, CommandCase, main, read_ppm  # noqa: E402

PAIR_BASE = 2147483647
WIDTH, HEIGHT, VIEWS = 300, 220, 4
NAMES = [f"{i}.pgm" for i in range(VIEWS)]
GEOMETRY = "SELECT pair_id, rows, data, config, F, E, H FROM two_view_geometries ORDER BY 1"
MATCHES = "SELECT pair_id, rows, data FROM matches ORDER BY 1"


class Case(CommandCase):
    start = None  # the database's bytes, set by the first test

    def setUp(self):
        super().setUp()
        self.make_views()
        if Case.start is None:
            self.extract(*NAMES, "-o", "d.db", "--max-features", "250", "-q")
            Case.start = self.read("d.db")
        self.write("d.db", Case.start)

    def make_views(self):
        self.run_it("draw", f"@scene:{WIDTH + 20 * VIEWS}x{HEIGHT}:4", "-o", "scene.ppm", "--max-features", "1",
                    "--circle-scale", "0.1", "-q")
        width, _, pixels = read_ppm(self.read("scene.ppm"))
        for view, name in enumerate(NAMES):
            rows = (pixels[3 * (width * y + 20 * view):][:3 * WIDTH:3] for y in range(HEIGHT))
            self.write(name, b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + b"".join(rows))

    def match(self, *arguments, status=DONE):
        """Returns the records and standard error."""
        output, errors = self.run_it("match", "--database", "d.db", "--json", *arguments, status=status)
        return [json.loads(line) for line in output.decode().splitlines()], errors

    def lines(self, errors, word):
        return [line for line in errors.splitlines() if word in line]


class Stale(Case):
    """Tests matches whose indices refer to deleted features."""

    def assert_within(self):
        features = dict(self.ask("SELECT image_id, rows FROM keypoints"))
        for table in ("matches", "two_view_geometries"):
            for pair, data in self.ask(f"SELECT pair_id, data FROM {table} WHERE rows > 0"):
                for first, second in struct.iter_unpack("<2I", data):
                    self.assertLess(first, features[pair // PAIR_BASE])
                    self.assertLess(second, features[pair % PAIR_BASE])

    def test_features_that_were_cleared(self):
        """COLMAP's database_cleaner deletes the features of all images or of one. An image that gets new features loses
        all its matches."""
        self.match("-q")
        matched = self.read("d.db")
        for where, left in (("", 0), (" WHERE image_id = 2", 3)):
            self.write("d.db", matched)
            self.ask("DELETE FROM keypoints" + where)
            self.ask("DELETE FROM descriptors" + where)
            self.extract(*NAMES[1:2 if where else VIEWS], *NAMES[:0 if where else 1], "-o", "d.db", "--max-features", "90", "-q")
            self.assertEqual(self.ask("SELECT count(*) FROM matches"), [(left,)])
            self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries"), [(left,)])
            records, errors = self.match()
            self.assertEqual(len(records), 6 - left, errors)
            self.assert_within()

    def test_indices_beyond_the_features(self):
        """Another program replaced features. The pairs of these images are named and matched anew."""
        self.match("-q")
        self.ask("UPDATE keypoints SET rows = 60, data = substr(data, 1, 60 * 24) WHERE image_id = 2")
        self.ask("UPDATE descriptors SET rows = 60, data = substr(data, 1, 60 * 128) WHERE image_id = 2")
        records, errors = self.match()
        told = self.lines(errors, "made for other features")
        self.assertEqual(len(told), 1, errors)
        self.assertIn("1.pgm has 60 features, and its matches with 0.pgm, 2.pgm and 3.pgm are of features up to number 2", told[0])
        self.assertEqual([(r["image_a"], r["image_b"]) for r in records],
                         [("0.pgm", "1.pgm"), ("1.pgm", "2.pgm"), ("1.pgm", "3.pgm")])
        self.assertIn("(3 already had matches, 0 failed)", errors)
        self.assert_within()
        self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries WHERE config > 1"), [(6,)])

    def test_geometry_beyond_the_features(self):
        """Only verified matches, which the mapper reads, refer to missing features."""
        self.match("-q")
        self.ask("DELETE FROM matches")
        self.ask("UPDATE two_view_geometries SET rows = 1, data = ? WHERE pair_id = ?", struct.pack("<2I", 3, 250), PAIR_BASE + 2)
        records, errors = self.match()
        self.assertEqual([(r["image_a"], r["image_b"]) for r in records], [("0.pgm", "1.pgm")])
        self.assertIn("its matches with 0.pgm are of features up to number 250", errors)
        self.assert_within()

    def test_lists_that_are_damaged(self):
        self.match("-q")
        self.ask("UPDATE matches SET data = substr(data, 1, 13) WHERE pair_id = ?", PAIR_BASE + 2)
        self.ask("UPDATE two_view_geometries SET rows = -1 WHERE pair_id = ?", PAIR_BASE + 3)
        records, errors = self.match()
        self.assertEqual(len(records), 2)
        self.assertIn("the matches of 0.pgm with 1.pgm and 2.pgm are damaged, and are made anew", errors)
        self.assertEqual(self.ask("SELECT count(*) FROM matches WHERE length(data) = 8 * rows"), [(6,)])

    def test_without_descriptors_they_stay(self):
        self.match("-q")
        self.ask("UPDATE keypoints SET rows = 60, data = substr(data, 1, 60 * 24) WHERE image_id = 2")
        self.ask("DELETE FROM descriptors WHERE image_id = 2")
        before = self.ask(MATCHES)
        _, errors = self.match(status=FAILED)
        self.assertIn("1.pgm has 60 features", errors)
        self.assertIn("3 failed", errors)
        self.assertEqual(self.ask(MATCHES), before)


class WithoutGeometry(Case):
    def geometry_of_one_run(self, *arguments):
        self.match("-q", *arguments)
        geometry = self.ask(GEOMETRY)
        self.assertEqual(len(geometry), 6)
        return geometry

    def check_verified(self, *arguments):
        """Checks that one more run completes the rest with the result of a single run, and that existing matches stay."""
        before = self.ask(MATCHES)
        records, errors = self.match(*arguments)
        self.assertEqual(len(records), 6)
        for record in records:
            self.assertGreater(record["inliers"], 30)
        self.assertIn("(0 already had matches, 6 had matches without geometry, 0 failed)", errors)
        self.assertEqual(self.ask(MATCHES), before)
        _, errors = self.match()
        self.assertIn("(6 already had matches, 0 failed)", errors)

    def test_of_an_earlier_run(self):
        for arguments in ((), ("--verify", "homography"), ("--threads", "1")):
            self.write("d.db", Case.start)
            wanted = self.geometry_of_one_run(*arguments)
            self.write("d.db", Case.start)
            self.match("-q", "--no-verify")
            self.check_verified(*arguments)
            self.assertEqual(self.ask(GEOMETRY), wanted)

    def test_of_known_cameras(self):
        self.ask("UPDATE cameras SET prior_focal_length = 1 WHERE camera_id <> 3")
        start = self.read("d.db")
        wanted = self.geometry_of_one_run("--verify", "essential")
        self.write("d.db", start)
        self.match("-q", "--no-verify")
        self.check_verified("--verify", "essential")
        self.assertEqual(self.ask(GEOMETRY), wanted)
        self.assertEqual(sum(row[5] is not None for row in wanted), 3)

    def test_removed_by_the_cleaner(self):
        wanted = self.geometry_of_one_run()
        self.ask("DELETE FROM two_view_geometries")
        self.check_verified()
        self.assertEqual(self.ask(GEOMETRY), wanted)

    def test_of_another_program(self):
        """Raw matches are between keypoints without descriptors, or with another program's descriptors, in any order of
        images."""
        self.match("-q", "--no-verify")
        for change in ("DELETE FROM descriptors", "UPDATE descriptors SET cols = 256, data = data || data"):
            matched = self.read("d.db")
            self.ask(change)
            self.ask("UPDATE keypoints SET cols = 6")
            self.check_verified()
            self.write("d.db", matched)

    def test_in_the_order_of_a_list(self):
        self.match("-q", "--no-verify")
        before = self.ask(MATCHES)
        self.write("list.txt", b"3.pgm 0.pgm\n2.pgm 1.pgm\n")
        records, _ = self.match("--pairs", "list.txt")
        self.assertEqual([(r["image_a"], r["image_b"]) for r in records], [("3.pgm", "0.pgm"), ("2.pgm", "1.pgm")])
        self.assertEqual(self.ask(MATCHES), before)
        self.assertEqual(self.ask("SELECT pair_id FROM two_view_geometries ORDER BY 1"),
                         [(PAIR_BASE + 4,), (2 * PAIR_BASE + 3,)])

    def test_some_of_them(self):
        """One run has matched pairs, pairs to verify, and new pairs."""
        self.match("-q")
        self.ask("DELETE FROM two_view_geometries WHERE pair_id > ?", 2 * PAIR_BASE)
        self.ask("DELETE FROM matches WHERE pair_id > ?", 3 * PAIR_BASE)
        records, errors = self.match()
        self.assertEqual(len(records), 3)
        self.assertIn("6 pairs (3 already had matches, 2 had matches without geometry, 0 failed)", errors)
        self.assertEqual(self.ask("SELECT (SELECT count(*) FROM matches), (SELECT count(*) FROM two_view_geometries)"), [(6, 6)])

    def test_left_where_nothing_is_verified(self):
        self.match("-q", "--no-verify")
        _, errors = self.match("--no-verify")
        self.assertIn("(6 already had matches, 0 failed)", errors)
        self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries"), [(0,)])

    def test_no_matches_at_all(self):
        """Verification of an empty list fails, with the result of a single run."""
        self.ask("INSERT INTO matches(pair_id, rows, cols, data) VALUES(?, 0, 2, NULL)", PAIR_BASE + 2)
        records, errors = self.match()
        self.assertEqual(records[0], {"image_a": "0.pgm", "image_b": "1.pgm", "matches": 0, "inliers": 0, "model": None})
        self.assertIn("1 had matches without geometry", errors)
        self.assertEqual(self.ask("SELECT rows, config FROM two_view_geometries WHERE pair_id = ?", PAIR_BASE + 2), [(0, 1)])

    def test_replaced_is_said(self):
        self.match("-q", "--no-verify")
        self.ask("DELETE FROM matches WHERE pair_id > ?", 3 * PAIR_BASE)
        _, errors = self.match("--replace", "--pairs", "sequential:3")
        self.assertIn("--replace: 5 pairs have matches, 5 of them without geometry, as other programs leave them", errors)
        _, errors = self.match("--replace")
        self.assertIn("--replace: 6 pairs have matches; what is matched now", errors)

    def test_replaced_only_by_something(self):
        """Images without descriptors keep their matches, because nothing could replace them."""
        self.match("-q", "--no-verify")
        self.ask("DELETE FROM descriptors")
        before = self.ask(MATCHES)
        self.match("--replace", status=FAILED)
        self.assertEqual(self.ask(MATCHES), before)


class Failures(Case):
    """Failures give one line per image, or one for all, and never one per pair."""

    def expect(self, errors, lines, failed):
        self.assertEqual(len(errors.splitlines()), lines + 1, errors)
        self.assertIn(f"{failed} failed", errors.splitlines()[-1])

    def test_no_descriptors(self):
        for images, failed in ((1, 3), (2, 5), (VIEWS, 6)):
            self.write("d.db", Case.start)
            self.ask("DELETE FROM descriptors WHERE image_id <= ?", images)
            _, errors = self.match(status=FAILED)
            self.expect(errors, images, failed)
            for name in NAMES[:images]:
                self.assertEqual(len(self.lines(errors, f"{name} has no descriptors: none of its pairs can be matched")), 1)

    def test_descriptors_of_another_kind(self):
        for change in ("UPDATE descriptors SET cols = 256, data = data || data", "UPDATE descriptors SET rows = rows - 1",
                       "UPDATE keypoints SET data = substr(data, 1, 9)"):
            self.write("d.db", Case.start)
            self.ask(change)
            _, errors = self.match(status=FAILED)
            self.expect(errors, VIEWS, 6)

    def test_too_little_memory(self):
        _, errors = self.match("--max-memory", "1k", status=FAILED)
        self.expect(errors, 2, 6)
        self.assertEqual(len(self.lines(errors, "5 more pairs: ")), 1, errors)

    def test_that_cannot_be_compared(self):
        """If two images have the same property, the reason is printed once."""
        self.extract(*NAMES[2:], "-o", "d.db", "--max-features", "250", "--profile", "colmap", "--replace", "-q")
        _, errors = self.match(status=FAILED)
        self.expect(errors, 2, 4)
        self.assertIn("3 more pairs: ", errors)

    def test_that_cannot_be_stored(self):
        self.ask("CREATE TRIGGER refuse BEFORE INSERT ON matches BEGIN SELECT RAISE(ABORT, 'not here'); END")
        _, errors = self.match(status=FAILED)
        self.expect(errors, 2, 6)
        self.assertIn("not here", errors)

    def test_in_verification(self):
        self.match("-q", "--no-verify")
        self.ask("UPDATE keypoints SET data = substr(data, 1, 9) WHERE image_id = 1")
        _, errors = self.match(status=FAILED)
        self.expect(errors, 1, 3)
        self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries"), [(3,)])

    def test_of_many_pairs(self):
        """An image with a fault gives one line, however many pairs it has."""
        with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database, database:
            for number in range(10, 50):
                database.execute("INSERT INTO images(image_id, name, camera_id) VALUES(?, ?, 1)", (number, f"n{number}"))
                database.execute("INSERT INTO keypoints SELECT ?, rows, cols, data FROM keypoints WHERE image_id = 1", (number,))
        _, errors = self.match(status=FAILED)
        self.expect(errors, 40, 40 * 39 // 2 + 40 * VIEWS)
        self.assertEqual(len(list(itertools.combinations(range(VIEWS), 2))), self.ask("SELECT count(*) FROM matches")[0][0])


if __name__ == "__main__":
    main()
