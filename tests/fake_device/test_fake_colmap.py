"""hartsift-colmap on fake GPUs: gpu_index names the GPUs of extraction and of matching, -1 means all, and the database does
not depend on them.

usage: test_fake_colmap.py PROGRAM     (the command, built on tests/support/fake_device, next to colmap_on_fake_gpus)
"""
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, blots  # noqa: E402
from command_case import COMMAND, DONE, FAILED, main  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(COMMAND), "colmap_on_fake_gpus")
IMAGES, PAIRS, GPUS = 12, 66, 3
TABLES = ("SELECT name, rows, data FROM images NATURAL JOIN keypoints ORDER BY name",
          "SELECT name, rows, data FROM images NATURAL JOIN descriptors ORDER BY name",
          "SELECT pair_id, rows, data FROM matches ORDER BY pair_id",
          "SELECT * FROM two_view_geometries ORDER BY pair_id")


class FakeColmap(BatchCase):
    def setUp(self):
        super().setUp()
        for number in range(IMAGES):
            self.write(f"in/{number:02}.pgm", blots(90 + number % 3 * 17, 70, number // 2))

    def colmap(self, command, name, *options, status=DONE, **variables):
        """Runs a command over a database; returns its messages, which GPUs were entered, and their hardware queues. Others
        than a single GPU of the list must be hidden from CUDA, which starts every GPU that it sees."""
        log = self.path("log.txt")
        environment = {**self.environment(), "HARTSIFT_FAKE_DEVICE": f"gpus={GPUS},log={log}", **variables}
        run = subprocess.run([PROGRAM, command, "--database_path", name, *options], cwd=self.folder, env=environment, timeout=300,
                             check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(run.returncode, status, run.stderr)
        lines = self.read("log.txt").decode().splitlines() if os.path.exists(log) else []
        if os.path.exists(log):
            self.assertEqual(lines[-1], "alive: 0")
            os.unlink(log)
        shown = [number for number, line in enumerate(lines[:GPUS]) if ": hidden" not in line]
        named = [options[at + 1] for at, option in enumerate(options) if option.endswith(".gpu_index") and at % 2 == 0]
        if lines and named and named[0] in ("0", "1", "2"):
            self.assertEqual(shown, [int(named[0])], options)
        elif lines:
            self.assertEqual(shown, list(range(GPUS)), options)
        entered = [number for number, line in enumerate(lines[:GPUS]) if ": entered" in line]
        return run.stderr, entered, [line for line in lines if line.startswith("queues")]

    def extract(self, name, *options, **settings):
        return self.colmap("feature_extractor", name, "--image_path", "in", *options, **settings)

    def content(self, name):
        with sqlite3.connect(self.path(name)) as database:
            return [database.execute(sql).fetchall() for sql in TABLES]

    def test_every_gpu_of_the_list(self):
        self.extract("cpu.db", "--SiftExtraction.use_gpu", "0")
        self.colmap("exhaustive_matcher", "cpu.db", "--SiftMatching.use_gpu", "0")
        expected = self.content("cpu.db")
        self.assertEqual([len(rows) for rows in expected], [IMAGES, IMAGES, PAIRS, PAIRS])
        for number, (indices, wanted) in enumerate((("0", [0]), ("1", [1]), ("1,2", [1, 2]), ("2,0,2", [0, 2]), ("-1", [0, 1, 2]), (None, [0, 1, 2]))):
            for group in ("Sift", "Feature"):
                name = f"{group}{number}.db"
                _, entered, _ = self.extract(name, *([f"--{group}Extraction.gpu_index", indices] if indices else []))
                self.assertEqual(entered, wanted, indices)
                _, entered, _ = self.colmap("exhaustive_matcher", name, *([f"--{group}Matching.gpu_index", indices] if indices else []))
                self.assertEqual(entered, wanted, indices)
                self.assertEqual(self.content(name), expected, indices)

    def test_other_matchers(self):
        self.extract("source.db", "--SiftExtraction.use_gpu", "0")
        for overlap in ("1", "3"):  # the second run has further pairs
            _, entered, _ = self.colmap("sequential_matcher", "source.db", "--SiftMatching.gpu_index", "0,2", "--SequentialMatching.overlap", overlap)
            self.assertEqual(entered, [0, 2], overlap)

    def test_a_gpu_that_is_not_there(self):
        self.extract("source.db", "--SiftExtraction.use_gpu", "0")
        for indices in ("0,3", "0,", "a", "-2"):
            errors, entered, _ = self.extract("new.db", "--SiftExtraction.gpu_index", indices, status=FAILED)
            self.assertIn("--SiftExtraction.gpu_index", errors)
            self.assertEqual(entered, [])
            errors, entered, _ = self.colmap("exhaustive_matcher", "source.db", "--SiftMatching.gpu_index", indices, status=FAILED)
            self.assertIn("--SiftMatching.gpu_index", errors)
            self.assertEqual(entered, [])
        self.assertFalse(os.path.exists(self.path("new.db")))

    def test_queues_by_the_number_of_images(self):
        self.assertEqual(self.extract("few.db")[2], ["queues: 2"])
        self.assertEqual(self.extract("own.db", CUDA_DEVICE_MAX_CONNECTIONS="5")[2], ["queues: 5"])
        for number in range(500):
            self.write(f"in/more/{number}.jpg", b"no image")
        self.assertEqual(self.extract("many.db")[2], ["queues: 8"])


if __name__ == "__main__":
    main()
