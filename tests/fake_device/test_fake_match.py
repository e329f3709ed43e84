"""`match --database --devices` on fake GPUs: the same database whatever the devices; a GPU that fails, a stopped run.

usage: test_fake_match.py PROGRAM     (the command, built on tests/support/fake_device)
"""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, blots  # noqa: E402
from command_case import COMMAND, FAILED, NO_DEVICE, USAGE, main  # noqa: E402

IMAGES, PAIRS = 12, 66


class FakeMatch(BatchCase):
    def setUp(self):
        super().setUp()
        for number in range(IMAGES):
            self.write(f"in/{number:02}.pgm", blots(90 + number % 3 * 17, 70, number // 2))
        self.run_it("batch", "in", "-o", "source.db", "--profile", "colmap", "--device", "cpu", "--quiet")

    def match(self, name, devices, machine="gpus=3", *arguments, **settings):
        """Matches a copy of the database; returns the content of its tables, the output and the messages."""
        if not os.path.exists(self.path(name)):
            shutil.copy(self.path("source.db"), self.path(name))
        log = self.path("log.txt")
        output, errors = self.run_it("match", "--database", name, *devices, *arguments,
                                     environment={"HARTSIFT_FAKE_DEVICE": f"{machine},log={log}"}, **settings)
        if os.path.exists(log):  # a GPU was looked for, with signals blocked for the driver's threads
            self.assertNotIn(b"signals: open\n", self.read("log.txt"))
            self.assertTrue(self.read("log.txt").endswith(b"alive: 0\n"))
        return self.content(name), output.decode(), errors

    def content(self, name):
        with sqlite3.connect(self.path(name)) as database:
            return [database.execute(f"SELECT * FROM {table} ORDER BY pair_id").fetchall()
                    for table in ("matches", "two_view_geometries")]

    def test_any_devices_give_the_same_database(self):
        expected, _, _ = self.match("cpu.db", ["--device", "cpu"])
        self.assertEqual(len(self.content("cpu.db")[0]), PAIRS)
        for devices in ("cuda:0", "cuda:0,cuda:1", "all", "cuda:2,cpu", "cpu,cuda:1", "hybrid,cuda:1"):
            name = devices.replace(":", "").replace(",", "-") + ".db"
            found, output, errors = self.match(name, ["--devices", devices], "gpus=3", "--json")
            self.assertEqual(found, expected, devices)
            summary = json.loads(output.splitlines()[-1])["summary"]
            names = "cuda:0,cuda:1,cuda:2" if devices == "all" else devices.replace("hybrid", "hybrid:0")
            self.assertEqual([entry["device"] for entry in summary["devices"]], names.split(","))
            self.assertEqual(sum(entry["pairs"] for entry in summary["devices"]), PAIRS)
            self.assertEqual((summary["pairs"], summary["done"], summary["failed"]), (PAIRS, PAIRS, 0))
            self.assertIn("on " + names.replace(",", ", "), errors)
        self.assertEqual(self.match("list.db", ["--device", "cuda"])[0], expected)

    def test_one_gpu_hides_the_others(self):
        """CUDA starts every GPU that it sees."""
        expected = self.match("cpu.db", ["--device", "cpu"])[0]
        shown = {"--device cuda:1": [1], "--device cuda:0": [0], "--devices cuda:2": [2], "--devices cuda:1,cpu": [1],
                 "--devices cuda:0,cuda:2": [0, 1, 2], "--devices all": [0, 1, 2]}
        for number, (devices, gpus) in enumerate(shown.items()):
            found, _, _ = self.match(f"shown-{number}.db", devices.split())
            lines = self.read("log.txt").decode().splitlines()[:3]
            self.assertEqual(found, expected, devices)
            self.assertEqual([gpu for gpu, line in enumerate(lines) if ": hidden" not in line], gpus, devices)
        _, _, errors = self.match("cpu.db", ["--device", "cuda:3"], status=NO_DEVICE)
        self.assertIn("3, but there are 3 CUDA devices", errors)

    def run_and_lose(self, name, devices, machine):
        shutil.copy(self.path("source.db"), self.path(name))
        command = [COMMAND, "match", "--database", name, "--devices", devices]
        return subprocess.run(command, cwd=self.folder, capture_output=True, timeout=300, check=False, text=True,
                              env={**self.environment(), "HARTSIFT_FAKE_DEVICE": machine})

    def test_a_gpu_that_fails(self):
        expected = self.match("cpu.db", ["--device", "cpu"])[0]
        warned = 0
        for at in range(174, 204, 2):  # after the contexts and matchers are open
            name = f"lost-{at}.db"
            run = self.run_and_lose(name, "cuda:0,cuda:1", f"gpus=2,fail={at},losing=1")
            warned += "failed, and the other devices matched its pairs: unspecified launch failure" in run.stderr
            self.assertNotIn("no error", run.stderr)
            self.assertEqual((run.returncode, self.content(name)), (0, expected), f"{at}: {run.stderr}")
        self.assertGreater(warned, 0)

    def test_every_gpu_fails(self):
        """The warning says that others matched the pairs only if they did."""
        expected = self.match("cpu.db", ["--device", "cpu"])[0]
        failed = warned = tries = 0
        while not (failed and warned) and tries < 30:  # a lost GPU that has no pairs left is not noticed
            tries += 1
            for at in range(174, 204, 6):
                run = self.run_and_lose(f"none-{at}.db", "cuda:0,cuda:1", f"gpus=2,fail={at},all=1")
                self.assertNotRegex(run.stderr, "matched (its|their) pairs|no error")
                failed += run.returncode == FAILED
                name = f"cpu-{at}.db"
                run = self.run_and_lose(name, "cuda:0,cuda:1,cpu", f"gpus=2,fail={at},all=1")
                self.assertEqual((run.returncode, self.content(name)), (0, expected), f"{at}: {run.stderr}")
                warned += "2 devices failed, and the others matched their pairs; the last, cuda:" in run.stderr
        self.assertGreater(failed, 0)
        self.assertGreater(warned, 0)

    def test_stopped_and_continued(self):
        self.match("whole.db", ["--device", "cpu"])
        shutil.copy(self.path("source.db"), self.path("stopped.db"))
        command = [COMMAND, "match", "--database", "stopped.db", "--devices", "all"]
        environment = {**self.environment(), "HARTSIFT_FAKE_DEVICE": "gpus=2"}
        for number in (signal.SIGTERM, signal.SIGKILL):
            with subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as run:
                time.sleep(0.03)
                run.send_signal(number)
        self.match("stopped.db", ["--devices", "all"])
        self.assertEqual(self.content("stopped.db"), self.content("whole.db"))

    def test_refused(self):
        for devices, status, said in ((["--devices", "all", "--device", "cpu"], USAGE, "expected one of them"),
                                      (["--devices", "cuda:0,cuda:0"], USAGE, "given twice"),
                                      (["--devices", "auto,cuda:0"], USAGE, "1 (cuda:0) and 2 (cuda:0) are the same GPU"),
                                      (["--devices", "cpu,cuda:0,hybrid"], USAGE, "are the same GPU"),
                                      (["--devices", "cuda:0,gpu"], USAGE, "expected 'all', or a list"),
                                      (["--devices", "cuda:0,cuda:7"], NO_DEVICE, "there are 3 CUDA devices")):
            self.assertIn(said, self.match("refused.db", devices, status=status)[2])
        self.assertIn("no GPU is usable", self.match("refused.db", ["--devices", "all"], "gpus=0", status=NO_DEVICE)[2])
        _, errors = self.run_it("match", "in/00.pgm", "in/01.pgm", "--devices", "cpu", status=USAGE)
        self.assertIn("--devices are for --database", errors)


if __name__ == "__main__":
    main()
