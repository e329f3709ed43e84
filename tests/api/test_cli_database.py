"""COLMAP databases through the command: extract into one, match in it, draw from it, and refusals.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import json
import math
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, DONE, FAILED, USAGE, CommandCase, built_with, give_up_privileges, is_short, main  # noqa: E402

PAIR_BASE = 2147483647
# Two overlapping views: crops of one scene.
WIDTH, HEIGHT = 400, 300


class Case(CommandCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("photos/left"))
        whole = self.scene()
        self.view("photos/left/a.pgm", whole, 0)
        self.view("photos/b.pgm", whole, 30)
        self.view("photos/c.pgm", whole, 60)

    def scene(self):
        """Returns rows of a generated picture, 60 pixels wider than a view."""
        self.make_once("draw", f"@scene:{WIDTH + 60}x{HEIGHT}:5", "--max-features", "1", "--circle-scale", "0.1", "-q", "-o",
                       "scene.ppm")
        row = 3 * (WIDTH + 60)
        pixels = self.read("scene.ppm")[-row * HEIGHT:]
        return [pixels[row * y:row * (y + 1):3] for y in range(HEIGHT)]

    def view(self, name, rows, shift):
        self.write(name, b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + b"".join(row[shift:shift + WIDTH] for row in rows))

    def content(self):
        return self.read("d.db")


class Extract(Case):
    def test_images_and_names(self):
        self.run_it("extract", "photos/left/a.pgm", "photos/b.pgm", "-o", "d.db", "-q")
        self.assertEqual(self.ask("SELECT image_id, name FROM images ORDER BY 1"), [(1, "a.pgm"), (2, "b.pgm")])
        counts = self.ask("SELECT k.rows, d.rows, length(k.data), length(d.data) FROM keypoints k JOIN descriptors d"
                          " USING (image_id)")
        for keypoints, descriptors, keypoint_bytes, descriptor_bytes in counts:
            self.assertGreater(keypoints, 50)
            self.assertEqual((descriptors, keypoint_bytes, descriptor_bytes), (keypoints, 24 * keypoints, 128 * keypoints))
        self.assertEqual(self.ask("SELECT DISTINCT width, height, model FROM cameras"), [(WIDTH, HEIGHT, 2)])
        self.assertEqual(sorted(os.listdir(self.folder)), ["d.db", "photos", "scene.ppm"])

    def test_names_below_a_folder(self):
        self.run_it("extract", "photos/left/a.pgm", "./photos//b.pgm", "-o", "d.db", "--image-path", "photos/", "-q")
        self.assertEqual(self.ask("SELECT name FROM images ORDER BY 1"), [("b.pgm",), ("left/a.pgm",)])
        _, errors = self.run_it("extract", "photos/b.pgm", "-o", "e.db", "--image-path", "photos/left", status=FAILED)
        self.assertIn("--image-path", errors)
        self.assertFalse(os.path.exists(self.path("e.db")))
        _, errors = self.run_it("extract", "photos/b.pgm", "-o", "e.db", "--image-path", "nowhere", status=FAILED)
        self.assertIn("nowhere", errors)

    def test_one_camera_or_many(self):
        self.run_it("extract", "photos/b.pgm", "photos/c.pgm", "-o", "d.db", "--single-camera", "-q")
        self.assertEqual(self.ask("SELECT count(*) FROM cameras"), [(1,)])
        self.run_it("extract", "photos/left/a.pgm", "-o", "d.db", "-q")
        self.assertEqual(self.ask("SELECT count(*) FROM cameras"), [(2,)])

    def test_again_and_otherwise(self):
        self.run_it("extract", "photos/b.pgm", "photos/c.pgm", "-o", "d.db", "-q")
        before = self.content()
        self.run_it("extract", "photos/b.pgm", "-o", "d.db", "-q")
        self.assertEqual(self.content(), before)
        _, errors = self.run_it("extract", "photos/b.pgm", "-o", "d.db", "--upright", "-q", status=FAILED)
        self.assertIn("has other features", errors)
        self.assertEqual(self.content(), before)
        self.run_it("match", "--database", "d.db", "-q")
        self.assertEqual(self.ask("SELECT count(*) FROM matches"), [(1,)])
        self.run_it("extract", "photos/b.pgm", "-o", "d.db", "--upright", "--replace", "-q")
        self.assertEqual(self.ask("SELECT count(*) FROM matches"), [(0,)])
        self.assertEqual(self.ask("SELECT image_id FROM images WHERE name = 'b.pgm'"), [(1,)])

    def test_descriptors_that_cannot_be_compared(self):
        self.run_it("extract", "photos/b.pgm", "-o", "d.db", "--profile", "lowe", "-q")
        self.run_it("extract", "photos/c.pgm", "-o", "d.db", "--profile", "colmap", "-q")
        self.assertEqual(self.ask("SELECT profile, norm FROM hartsift_origins ORDER BY image_id"),
                         [("lowe", "l2"), ("colmap", "root")])
        _, errors = self.run_it("match", "--database", "d.db", "-q", status=FAILED)
        self.assertIn("norm l2 in the first list (profile lowe), root in the second (profile colmap)", errors)
        self.assertEqual(self.ask("SELECT count(*) FROM matches"), [(0,)])

    def test_failures_among_images(self):
        self.write("photos/broken.pgm", b"P5 10 10 255\nshort")
        _, errors = self.run_it("extract", "photos/b.pgm", "photos/broken.pgm", "photos/left/../b.pgm", "-o", "d.db",
                                "--json", status=FAILED)
        self.assertIn("broken.pgm", errors)
        self.assertIn("the same name b.pgm", errors)
        self.assertEqual(self.ask("SELECT name FROM images"), [("b.pgm",)])
        self.run_it("extract", "photos/broken.pgm", "-o", "e.db", status=FAILED)
        self.assertFalse(os.path.exists(self.path("e.db")))

    def test_interrupted_leaves_no_new_database(self):
        """The command waits for the writer of a pipe when it is interrupted."""
        os.mkfifo(self.path("pipe.pgm"))
        self.run_it("extract", "photos/b.pgm", "-o", "d.db", "-q")
        before, files = self.content(), self.files()
        os.symlink("absent.db", self.path("link.db"))
        for number in (signal.SIGINT, signal.SIGTERM):
            for output in ("d.db", "new.db", "link.db"):
                run = subprocess.Popen([COMMAND, "extract", "pipe.pgm", "-o", output], cwd=self.folder, env=self.environment())
                with open(self.path("pipe.pgm"), "wb"):  # opens once the command has opened the pipe
                    self.assertTrue(os.path.exists(self.path(output)))  # the database is made before
                    run.send_signal(number)
                    self.assertEqual(run.wait(300), -number)
                self.assertEqual(self.files(), sorted([*files, "link.db"]), output)
        self.assertEqual(self.content(), before)

    def test_interrupted_while_the_database_is_made(self):
        os.mkfifo(self.path("pipe.pgm"))  # nobody writes, so no run ends by itself
        os.symlink("absent.db", self.path("link.db"))
        before = self.files()
        for moment in range(12 if is_short() else 40):
            output, made = (("new.db", "new.db"), ("new.db", "new.db-journal"), ("link.db", "absent.db"))[moment % 3]
            run = subprocess.Popen([COMMAND, "extract", "pipe.pgm", "-o", output], cwd=self.folder, env=self.environment())
            self.end_when_made(run, made, moment // 3 % 4, signal.SIGTERM)
            self.assertEqual(self.files(), before, moment)

    def test_interrupted_while_the_database_is_stored(self):
        """The database is whole, or not there."""
        before = self.files()
        self.run_it("extract", "photos/b.pgm", "-o", "new.db", "-q")
        whole = self.ask("SELECT * FROM keypoints", name="new.db")
        os.unlink(self.path("new.db"))
        for moment in range(12 if is_short() else 40):
            run = subprocess.Popen([COMMAND, "extract", "photos/b.pgm", "-o", "new.db", "-q"], cwd=self.folder, env=self.environment())
            while not os.path.exists(self.path("new.db")) and run.poll() is None:
                pass
            time.sleep(moment % 10 / 1000)
            run.send_signal(signal.SIGINT)
            self.assertIn(run.wait(300), (DONE, -signal.SIGINT))
            if self.files() != before:
                self.assertEqual(self.files(), sorted([*before, "new.db"]), moment)
                self.assertEqual(self.ask("SELECT * FROM keypoints", name="new.db"), whole)
                os.unlink(self.path("new.db"))

    def test_interrupted_leaves_the_database_of_another_run(self):
        """A database that took the place of the interrupted run's own one stays."""
        os.mkfifo(self.path("pipe.pgm"))
        run = subprocess.Popen([COMMAND, "extract", "pipe.pgm", "-o", "new.db"], cwd=self.folder, env=self.environment())
        with open(self.path("pipe.pgm"), "wb"):
            os.rename(self.path("new.db"), self.path("old.db"))  # the number of a deleted file could be used again
            for name in ("new.db-journal", "new.db-wal", "new.db-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path(name))
            self.run_it("extract", "photos/b.pgm", "-o", "new.db", "-q")
            run.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(300), -signal.SIGTERM)
        self.assertEqual(self.ask("SELECT name FROM images", name="new.db"), [("b.pgm",)])

    def test_protected_folder(self):
        os.mkdir(self.path("kept"))
        self.run_it("extract", "photos/b.pgm", "photos/c.pgm", "-o", "kept/d.db", "-q")
        os.chmod(self.path("kept"), 0o555)
        self.addCleanup(os.chmod, self.path("kept"), 0o755)
        for arguments, reason in ((["extract", "photos/b.pgm", "-o", "kept/new.db"], "kept/new.db: cannot be created: Permission denied"),
                                  (["extract", "photos/b.pgm", "-o", "absent/new.db"], "absent/new.db: cannot be created: No such file"),
                                  (["match", "--database", "kept/d.db"], "readonly database: its folder may not be written to")):
            self.assertIn(reason, self.run_it(*arguments, status=FAILED, preexec_fn=give_up_privileges)[1])
        os.chmod(self.path("kept/d.db"), 0o000)
        _, errors = self.run_it("draw", "photos/b.pgm", "kept/d.db", "-o", "b.ppm", status=FAILED, preexec_fn=give_up_privileges)
        self.assertIn("kept/d.db: cannot open: Permission denied", errors)

    def test_long_names(self):
        deep = os.path.join(*["x" * 200] * 3)
        os.makedirs(self.path(deep))
        _, errors = self.run_it("extract", "photos/b.pgm", "-o", f"{deep}/d.db", status=FAILED)
        self.assertRegex(errors, r"/d\.db: cannot open: with its folders the name has \d+ bytes too many for SQLite")
        _, errors = self.run_it("extract", "photos/b.pgm", "-o", "y" * 250 + ".db", status=FAILED)
        self.assertIn("or its journal (the name with -journal)", errors)
        self.assertEqual(self.files(), ["photos", "scene.ppm", "x" * 200])

    def test_what_is_no_database(self):
        self.write("d.db", b"notes that happen to be here\n")
        before = self.content()
        _, errors = self.run_it("extract", "photos/b.pgm", "-o", "d.db", status=FAILED)
        self.assertIn("not an SQLite database", errors)
        self.assertEqual(self.content(), before)
        for output in ([], ["-o", "-"], ["-o", "photos"], ["-o", "folder/"]):
            _, errors = self.run_it("extract", "photos/b.pgm", "--format", "colmap-db", *output, status=USAGE)
            self.assertIn("-o FILE", errors)

    def test_draw_one_of_several(self):
        self.run_it("extract", "photos/left/a.pgm", "photos/b.pgm", "-o", "d.db", "--max-features", "20", "-q")
        self.run_it("draw", "photos/left/a.pgm", "d.db", "-o", "one.ppm", "-q")
        self.run_it("extract", "photos/left/a.pgm", "-o", "a.npz", "--max-features", "20", "-q")
        _, errors = self.run_it("draw", "photos/c.pgm", "d.db", "-o", "none.ppm", status=FAILED)
        self.assertIn("no image", errors)
        self.assertTrue(os.path.getsize(self.path("one.ppm")) > WIDTH * HEIGHT)


class Match(Case):
    def setUp(self):
        super().setUp()
        self.run_it("extract", "photos/left/a.pgm", "photos/b.pgm", "photos/c.pgm", "-o", "d.db", "--max-features", "400",
                    "-q")

    def test_every_pair(self):
        output, errors = self.run_it("match", "--database", "d.db", "--json")
        records = [json.loads(line) for line in output.decode().splitlines()]
        self.assertEqual([(record["image_a"], record["image_b"]) for record in records],
                         [("a.pgm", "b.pgm"), ("a.pgm", "c.pgm"), ("b.pgm", "c.pgm")])
        self.assertIn("3 pairs verified", errors)
        self.assertRegex(errors, r", \d+ ms, \d+\.\d pairs a second\n$")
        rows = self.ask("SELECT m.pair_id, m.rows, g.rows, g.config, length(m.data), length(g.data), length(F), length(H)"
                        " FROM matches m JOIN two_view_geometries g USING (pair_id) ORDER BY 1")
        self.assertEqual([row[0] for row in rows], [PAIR_BASE + 2, PAIR_BASE + 3, 2 * PAIR_BASE + 3])
        for record, (_, matches, inliers, config, match_bytes, inlier_bytes, fundamental, homography) in zip(records, rows):
            self.assertEqual((record["matches"], record["inliers"]), (matches, inliers))
            self.assertGreater(inliers, 100)
            self.assertEqual((match_bytes, inlier_bytes), (8 * matches, 8 * inliers))
            # Shifted copies of one picture are views of a plane.
            self.assertEqual((config, fundamental, homography), (6, 72, 72))

    def test_again(self):
        self.run_it("match", "--database", "d.db", "-q")
        before = self.content()
        output, errors = self.run_it("match", "--database", "d.db", "--json")
        self.assertEqual(output, b"")
        self.assertRegex(errors, r"\(3 already had matches, 0 failed\), 0 matches.*, \d+ ms\n$")  # there was nothing to do
        self.assertEqual(self.content(), before)
        self.run_it("match", "--database", "d.db", "--replace", "--ratio", "0.5", "--verify", "homography", "-q")
        self.assertEqual(self.ask("SELECT count(*) FROM two_view_geometries WHERE config = 6 AND F IS NULL"), [(3,)])

    def test_guided(self):
        """The guide restricts candidates to those that fit the geometry, so more of them pass the ratio test. A pair of
        files gives the same matches."""
        plain, _ = self.run_it("match", "--database", "d.db", "--ratio", "0.6", "--verify", "homography", "--json")
        guided, _ = self.run_it("match", "--database", "d.db", "--ratio", "0.6", "--verify", "homography", "--guided", "--replace",
                                "--json")
        counts = [[json.loads(line)["inliers"] for line in output.decode().splitlines()] for output in (plain, guided)]
        self.assertEqual(len(counts[0]), 3)
        for before, after in zip(*counts):
            self.assertGreater(after, before)
        self.run_it("extract", "photos/left/a.pgm", "--max-features", "400", "-o", "a.npz", "-q")
        self.run_it("extract", "photos/b.pgm", "--max-features", "400", "-o", "b.npz", "-q")
        output, _ = self.run_it("match", "a.npz", "b.npz", "--ratio", "0.6", "--verify", "homography", "--tolerance", "4", "--guided",
                                "--json", "-q")
        pair = json.loads(output)
        self.assertEqual(sum(match["inlier"] for match in pair["matches"]), counts[1][0])

    def test_without_verification(self):
        self.run_it("match", "--database", "d.db", "--no-verify", "-q")
        self.assertEqual(self.ask("SELECT (SELECT count(*) FROM matches), (SELECT count(*) FROM two_view_geometries)"), [(3, 0)])

    def test_calibrated(self):
        """An essential matrix is only estimated for known cameras."""
        with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database:
            database.execute("UPDATE cameras SET prior_focal_length = 1")
            # An impossible camera counts as unknown.
            database.execute("UPDATE cameras SET params = ? WHERE camera_id = 3", (struct.pack("<4d", 100, math.inf, 9, 0),))
            database.commit()
        output, _ = self.run_it("match", "--database", "d.db", "--verify", "essential", "--json")
        models = [json.loads(line)["model"] for line in output.decode().splitlines()]
        self.assertEqual(models, ["essential", "fundamental", "fundamental"])
        self.assertEqual(self.ask("SELECT length(E) FROM two_view_geometries WHERE pair_id = ?", PAIR_BASE + 2), [(72,)])

    def test_list_of_pairs(self):
        self.write("pairs.txt", b"# first second\n\nc.pgm a.pgm\nb.pgm\tc.pgm\r\n")
        self.run_it("match", "--database", "d.db", "--pairs", "pairs.txt", "-q")
        self.assertEqual(self.ask("SELECT pair_id FROM matches ORDER BY 1"), [(PAIR_BASE + 3,), (2 * PAIR_BASE + 3,)])
        # The lower number comes first, whichever image was named first.
        data = self.ask("SELECT data FROM matches WHERE pair_id = ?", PAIR_BASE + 3)[0][0]
        self.run_it("match", "--database", "d.db", "--replace", "-q")
        again = self.ask("SELECT data FROM matches WHERE pair_id = ?", PAIR_BASE + 3)[0][0]
        pairs = {data[i:i + 8] for i in range(0, len(data), 8)}
        self.assertEqual(pairs, {again[i:i + 8] for i in range(0, len(again), 8)})
        for line, reason in (("a.pgm x.pgm", "x.pgm"), ("a.pgm", "expected two"), ("a.pgm a.pgm", "itself")):
            self.write("wrong.txt", line.encode())
            _, errors = self.run_it("match", "--database", "d.db", "--pairs", "wrong.txt", status=FAILED)
            self.assertIn("wrong.txt:1: ", errors)
            self.assertIn(reason, errors)
        # A failed image, for example in a list, does not end the run.
        self.write("some.txt", ("a.pgm x.pgm\nx.pgm b.pgm\n" + "".join(f"y{i}.pgm a.pgm\n" for i in range(50)) + "a.pgm b.pgm\n").encode())
        output, errors = self.run_it("match", "--database", "d.db", "--pairs", "some.txt", "--json", "--replace", status=FAILED)
        self.assertEqual([json.loads(line)["image_b"] for line in output.decode().splitlines()], ["b.pgm"])
        self.assertEqual(errors.count("x.pgm"), 1)
        self.assertIn("19 more lines with other images", errors)
        self.assertIn("53 pairs (0 already had matches, 52 failed)", errors)
        _, errors = self.run_it("match", "--database", "d.db", "--pairs", "sequentiel:5", status=FAILED)
        self.assertIn("--pairs 'sequentiel:5': cannot be opened", errors)
        self.assertIn("expected all, sequential:N", errors)

    def test_a_lost_transaction_ends_the_run(self):
        self.ask("CREATE TRIGGER lose BEFORE INSERT ON matches BEGIN SELECT RAISE(ROLLBACK, 'lost'); END")
        self.write("pairs.txt", b"a.pgm b.pgm\na.pgm c.pgm\nb.pgm c.pgm\n")
        _, errors = self.run_it("match", "--database", "d.db", "--pairs", "pairs.txt", status=FAILED)
        self.assertEqual(errors.count("lost; nothing of the open transaction was kept"), 1, errors)
        self.assertNotIn("an earlier failure", errors)
        self.assertEqual(self.ask("SELECT count(*) FROM matches"), [(0,)])

    def test_an_image_without_features(self):
        self.ask("DELETE FROM keypoints WHERE image_id = 2")
        _, errors = self.run_it("match", "--database", "d.db")
        self.assertIn("d.db: 1 of 3 images has no features and is in no pair", errors)
        self.assertIn("d.db: 2 images, 1 pair ", errors)
        self.assertNotIn("no features", self.run_it("match", "--database", "d.db", "--quiet")[1])

    def test_an_image_without_descriptors(self):
        self.ask("DELETE FROM descriptors WHERE image_id = 2")
        _, errors = self.run_it("match", "--database", "d.db", status=FAILED)
        self.assertIn("b.pgm has no descriptors", errors)
        self.assertIn("2 failed", errors)
        self.assertEqual(self.ask("SELECT pair_id FROM matches"), [(PAIR_BASE + 3,)])

    def test_usage(self):
        for arguments, word in (
                (["--database", "d.db", "a.pgm"], "operand"),
                (["--database", "d.db", "-o", "x.csv"], "--output"),
                (["--database", "d.db", "--camera", "1,1,1,1"], "--camera"),
                (["--database", "d.db", "--contrast", "0.1"], "--contrast"),
                (["--database", "d.db", "--verify", "homography", "--no-verify"], "--no-verify"),
                (["--database", "d.db", "--no-verify", "--tolerance", "3"], "--tolerance"),
                (["--database", "d.db", "--no-verify", "--guided"], "--guided"),
                (["photos/b.pgm", "photos/c.pgm", "--guided"], "--guided"),
                (["photos/b.pgm", "photos/c.pgm", "--pairs", "p.txt"], "--database"),
                (["photos/b.pgm"], "operand is missing")):
            _, errors = self.run_it("match", *arguments, status=USAGE)
            self.assertIn(word, errors)
        _, errors = self.run_it("match", "--database", "absent.db", status=FAILED)
        self.assertIn("absent.db", errors)
        self.assertFalse(os.path.exists(self.path("absent.db")))


class WithoutSqlite(CommandCase):
    def test_message(self):
        _, errors = self.run_it("extract", "@scene:64x48", "-o", "d.db", status=FAILED)
        self.assertIn("SQLite", errors)
        self.assertEqual(self.files(), [])


def load_tests(loader, _tests, _pattern):
    cases = [Extract, Match] if built_with("sqlite") else [WithoutSqlite]
    return unittest.TestSuite(map(loader.loadTestsFromTestCase, cases))


main()
