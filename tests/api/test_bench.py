"""The command hartsift bench: its records and table, the programs it compares with, and the page made from its records.

Runs HARTSIFT_COMMAND (or the program named as first argument).
"""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, FAILED, USAGE, CommandCase, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENES = ("@scene:64x48", "@scene:33x97:2")
QUICK = ("--repeats", "3", "--threads", "1", "--device", "cpu")
FIELDS = {"name", "width", "height", "program", "profile", "device", "threads", "features", "median_ms", "min_ms", "p90_ms",
          "ratio"}


class Bench(CommandCase):
    def records(self, *arguments, **settings):
        return json.loads(self.run_it("bench", *arguments, "--json", **settings)[0])

    def test_records_on_standard_output(self):
        records = self.records(*SCENES, *QUICK, "--profile", "opencv")
        self.assertEqual([record.keys() for record in records], [FIELDS, FIELDS])
        self.assertEqual([(r["name"], r["width"], r["height"]) for r in records], [("@scene:64x48", 64, 48), ("@scene:33x97:2", 33, 97)])
        for record in records:
            self.assertEqual((record["profile"], record["device"], record["threads"]), ("opencv", "cpu", 1))
            self.assertTrue(0 < record["min_ms"] <= record["median_ms"])

    def test_table(self):
        table = self.run_it("bench", *SCENES, *QUICK)[0].decode().splitlines()
        self.assertEqual(len(table), 4)
        self.assertEqual({line.count("|") for line in table}, {11})

    def test_one_thread_and_more(self):
        records = self.records("@scene:64x48", "--repeats", "3", "--device", "cpu")
        self.assertEqual(records[0]["threads"], 1)
        self.assertEqual(len({record["features"] for record in records}), 1)

    def test_goes_on_after_a_failed_image(self):
        output, errors = self.run_it("bench", "absent.png", "@scene:32x32", *QUICK, "--json", status=FAILED)
        self.assertIn("absent.png", errors)
        self.assertEqual([record["name"] for record in json.loads(output)], ["@scene:32x32"])

    def test_options_that_the_comparison_sets(self):
        self.assertIn("--profile", self.run_it("bench", "--against", "opencv", "--profile", "lowe", status=USAGE)[1])


class Peers(CommandCase):
    def against(self, peer, *arguments):
        folder = os.path.dirname(COMMAND)
        if not os.path.exists(os.path.join(folder, "hartsift-bench-peers")):
            self.assertIn("libopencv-dev", self.run_it("bench", "--against", peer, status=FAILED)[1])
            self.skipTest("built without the programs to compare with")
        return self.run_it("bench", "--against", peer, *SCENES, "--repeats", "2", "--threads", "1", *arguments)[0].decode()

    def check(self, peer, program):
        records = json.loads(self.against(peer, "--json"))
        self.assertEqual([(r["program"].split()[0], r["profile"]) for r in records[:3]],
                         [("hartsift", "lowe"), ("hartsift", peer), (program, peer)])
        self.assertEqual(len(records), 3 * len(SCENES))
        memory, speed = self.against(peer).split("\n\n")
        self.assertEqual(len(memory.splitlines()), 2 + 3 * len(SCENES))
        self.assertEqual(len(speed.splitlines()), 2 + 3 * len(SCENES))

    def test_opencv(self):
        self.check("opencv", "OpenCV")

    def test_vlfeat(self):
        self.check("vlfeat", "VLFeat")


class Page(CommandCase):
    def page(self, records, *arguments, status=0):
        run = subprocess.run([sys.executable, "-B", str(ROOT / "bench/modes/page.py"), *arguments], input=records,
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, status, run.stderr)
        return run.stdout

    def test_page(self):
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest("no Matplotlib")
        self.write("<b>&.pgm", b"P5 32 32 255\n" + bytes((x * y) % 251 for x in range(32) for y in range(32)))
        records, _ = self.run_it("bench", "@scene:64x48", "<b>&.pgm", *QUICK, "--json")
        accuracy = ROOT / "bench/results/accuracy.md"
        page = self.page(records.decode(), "--accuracy", str(accuracy))
        self.assertEqual(page.count("<svg"), 1)
        self.assertIn("<td>&lt;b&gt;&amp;.pgm</td>", page)
        for record in json.loads(records):
            self.assertIn(f"<td>{record['median_ms']}</td>", page)
        rows = [line for line in accuracy.read_text(encoding="utf-8").splitlines()
                if line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line)]
        self.assertEqual(page.count("<tr>"), 3 + len(rows))
        self.page("[]", status=1)


if __name__ == "__main__":
    main()
