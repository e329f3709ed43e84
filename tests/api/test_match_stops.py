"""match --database that is killed at any moment or interrupted: the database stays valid, commits stay, and the next
run completes it to the result of an undisturbed run.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import json
import os
import pty
import random
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, DONE, FAILED, CommandCase, built_with, is_short, main  # noqa: E402

# Matching all pairs takes more than a second, so that a run commits before its end. A sanitizer makes it twelve times as long.
IMAGES, FEATURES = 36 if is_short() else 90, 260
KILLS = 10 if is_short() else 20


def fill(path):
    """Makes images that share features with their neighbours and adds them to a database with one image."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        for image in range(2, IMAGES + 1):
            chance = random.Random(image)
            keypoints, descriptors = [], []
            for index in range(FEATURES):
                point = image // 10 * 1000 + index if index % 3 else 10 ** 6 * image + index
                own = random.Random(point)
                x, y = 600 * own.random() + 3 * (image % 10), 400 * own.random()
                keypoints.append(struct.pack("<6f", x, y, 2, 0, 0, 2))
                look = bytearray(own.randbytes(128))
                look[chance.randrange(128)] ^= 7
                descriptors.append(bytes(look))
            database.execute("INSERT INTO images(image_id, name, camera_id) VALUES(?, ?, 1)", (image, f"{image}.pgm"))
            database.execute("INSERT INTO keypoints VALUES(?, ?, 6, ?)", (image, FEATURES, b"".join(keypoints)))
            database.execute("INSERT INTO descriptors VALUES(?, ?, 128, ?)", (image, FEATURES, b"".join(descriptors)))
        database.commit()


class Stops(CommandCase):
    whole, start = [], []

    def setUp(self):
        super().setUp()
        if not self.start:  # all tests begin with the same database, so it is made once
            subprocess.run([COMMAND, "extract", "@scene:640x480:3", "-o", "start.db", "--max-features", "50", "-q"],
                           cwd=self.folder, check=True)
            fill(self.path("start.db"))
            self.start.append(self.read("start.db"))
        self.write("start.db", self.start[0])

    def fresh(self, name):
        shutil.copy(self.path("start.db"), self.path(name))
        return [COMMAND, "match", "--database", name, "--device", "cpu", "--threads", "1"]

    def content(self, name):
        with contextlib.closing(sqlite3.connect(self.path(name))) as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return [database.execute(f"SELECT * FROM {table} ORDER BY pair_id").fetchall()
                    for table in ("matches", "two_view_geometries")]

    def count(self, name):
        with contextlib.closing(sqlite3.connect(self.path(name), timeout=300)) as database:
            return database.execute("SELECT count(*) FROM matches").fetchone()[0]

    def undisturbed(self):
        """Returns the content after a run to the end. All tests start from the same database, so it is made once."""
        if not self.whole:
            subprocess.run([*self.fresh("whole.db"), "-q"], cwd=self.folder, check=True, timeout=300)
            self.whole.extend(self.content("whole.db"))
            self.assertEqual(len(self.whole[0]), IMAGES * (IMAGES - 1) // 2)
            self.assertGreater(sum(row[4] > 1 for row in self.whole[1]), IMAGES)
        return self.whole

    def wait_for_commit(self, run, name, before):
        """Waits until more is committed than before, or the run has ended."""
        while run.poll() is None:
            if self.count(name) > before:
                return True
            time.sleep(0.005)
        return False

    def test_killed_at_any_moment(self):
        expected, command = self.undisturbed(), self.fresh("killed.db")
        chance, kept, ended = random.Random(5), 0, False
        for kill in range(KILLS):
            with subprocess.Popen([*command, "-q"], cwd=self.folder) as run:
                if kill % 3 == 0:
                    self.wait_for_commit(run, "killed.db", kept)
                time.sleep(0.12 * chance.random())
                run.kill()
                ended = run.wait() == DONE or ended
            now = self.content("killed.db")
            self.assertGreaterEqual(len(now[0]), kept)
            kept = len(now[0])
            self.assertEqual([row[0] for row in now[0]], [row[0] for row in now[1]])
        self.assertTrue(0 < kept)
        if not ended:
            subprocess.run([*command, "-q"], cwd=self.folder, check=True, timeout=300)
        self.assertEqual(self.content("killed.db"), expected)

    def test_told_to_end(self):
        expected = self.undisturbed()
        for number in (signal.SIGINT, signal.SIGTERM):
            kept, tries = len(expected[0]), 0
            while kept == len(expected[0]) and tries < 20:  # the run may finish before the signal arrives
                command = self.fresh("told.db")
                with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True) as run:
                    self.wait_for_commit(run, "told.db", 0)
                    run.send_signal(number)
                    _, errors = run.communicate(timeout=300)
                kept, tries = self.count("told.db"), tries + 1
            self.assertEqual(run.returncode, FAILED, errors)
            self.assertIn(f"stopped by {number.name} with {len(expected[0]) - kept} of {len(expected[0])} pairs left",
                          errors)
            finish = subprocess.run(command, cwd=self.folder, check=True, stderr=subprocess.PIPE, text=True, timeout=300)
            self.assertRegex(finish.stderr, r"[1-9]\d* already had matches, 0 failed")
            self.assertEqual(self.content("told.db"), expected)

    def test_told_to_end_before_the_first_pair(self):
        # The list of pairs is a pipe without data, so the command is reading the pairs to match.
        for number in (signal.SIGINT, signal.SIGTERM):
            command = self.fresh("early.db")
            os.mkfifo(self.path(f"{number.name}.txt"))
            with subprocess.Popen([*command, "--pairs", f"{number.name}.txt"], cwd=self.folder) as run:
                with open(self.path(f"{number.name}.txt"), "wb"):  # open returns once the command has opened the pipe too
                    run.send_signal(number)
                    try:
                        self.assertEqual(run.wait(timeout=300), -number)
                    finally:
                        run.kill()
            self.assertEqual(self.count("early.db"), 0)

    def test_others_write_while_pairs_are_selected(self):
        os.mkfifo(self.path("pairs.txt"))
        command = self.fresh("shared.db")
        with subprocess.Popen([*command, "--pairs", "pairs.txt", "-q"], cwd=self.folder) as run:
            with open(self.path("pairs.txt"), "wb") as pairs, \
                    contextlib.closing(sqlite3.connect(self.path("shared.db"), timeout=0)) as other, other:
                other.execute("UPDATE images SET name = 'other.pgm' WHERE image_id = 4")
                pairs.write(b"2.pgm 3.pgm\n")
            self.assertEqual(run.wait(timeout=300), DONE)
        self.assertEqual(self.count("shared.db"), 1)

    def test_features_changed_while_pairs_are_selected(self):
        os.mkfifo(self.path("changed.txt"))
        command = self.fresh("changed.db")
        with subprocess.Popen([*command, "--pairs", "changed.txt", "-q"], cwd=self.folder, stderr=subprocess.PIPE, text=True) as run:
            with open(self.path("changed.txt"), "wb") as pairs, \
                    contextlib.closing(sqlite3.connect(self.path("changed.db"), timeout=0)) as other, other:
                for table, bytes_each in (("keypoints", 4), ("descriptors", 1)):
                    other.execute(f"UPDATE {table} SET rows = rows - 1, data = substr(data, 1, (rows - 1) * cols * {bytes_each}) "
                                  "WHERE image_id = 3")
                pairs.write(b"2.pgm 3.pgm\n3.pgm 4.pgm\n2.pgm 4.pgm\n")
            errors = run.communicate(timeout=300)[1]
        self.assertEqual(run.returncode, FAILED)
        self.assertIn("3.pgm: another program has changed its features: start again", errors)
        self.assertEqual(self.count("changed.db"), 1)
        self.assertEqual(subprocess.run([*command, "--pairs", "all", "-q"], cwd=self.folder).returncode, DONE)

    def test_told_to_end_while_pairs_are_selected(self):
        """The progress at a terminal tells when the selection has begun. It may be over before the signal arrives."""
        for number in (signal.SIGINT, signal.SIGTERM):
            status, tries = None, 0
            while status != -number and tries < 20:
                terminal, inner = pty.openpty()
                with subprocess.Popen([*self.fresh("early.db"), "--pairs", "retrieval:9"], cwd=self.folder, stderr=inner) as run:
                    os.close(inner)
                    shown = b""
                    while b"describing" not in shown:
                        shown += os.read(terminal, 4096)
                    run.send_signal(number)
                    status, tries = run.wait(timeout=300), tries + 1
                os.close(terminal)
            self.assertEqual(status, -number)
            self.assertEqual(self.count("early.db"), 0)

    def test_disk_that_fills(self):
        """Records and counts are those of stored pairs if the database cannot grow any more."""
        pairs = IMAGES * (IMAGES - 1) // 2
        command = [*self.fresh("full.db")[:4], "--devices", "cpu", "--json"]
        size = os.path.getsize(self.path("full.db")) + 170 * pairs
        run = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=False,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        self.assertEqual(run.returncode, FAILED, run.stderr)
        self.assertIn("File too large", run.stderr)
        matches, _ = self.content("full.db")
        self.assertLess(len(matches), pairs)
        records = [json.loads(line) for line in run.stdout.splitlines()]
        summary = records.pop()["summary"]
        self.assertEqual(sorted(record["matches"] for record in records), sorted(row[1] for row in matches))
        self.assertEqual((summary["pairs"], summary["done"]), (pairs, len(matches)))
        self.assertEqual([device["pairs"] for device in summary["devices"]], [len(matches)])
        self.assertIn(f" {sum(row[1] for row in matches)} matches", run.stderr)
        self.assertIn(f"stopped with {pairs - len(matches) - summary['failed']} of {pairs} pairs left", run.stderr)


if built_with("sqlite"):
    main()
else:
    print("not for a build without SQLite, which has no match --database")
