"""The command hartsift batch: what is done, in which order, what a killed, interrupted or sharded run leaves behind, and
that --resume makes of it what an undisturbed run makes.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import csv
import io
import json
import os
import pty
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

COMMAND = os.environ.get("HARTSIFT_COMMAND", "")
SKIPPED = 77
DONE, FAILED, USAGE, NO_DEVICE = 0, 1, 2, 3
FORMATS = {"colmap": ".txt", "npz": ".npz", "csv": ".csv", "json": ".json", "lowe": ".key", "vlfeat": ".sift",
           "opencv": ".yml", "openmvg": ".feat", "bin": ".hsf", "visualsfm": ".sift", "oxford": ".hesaff"}
COLUMNS = "image width height features digest output_digest status error".split()


def fnv(data, digest=0xCBF29CE484222325):
    """FNV-1a, 64 bits."""
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def digest_of(data):
    """The digest of manifests: FNV-1a of the FNV-1a of every eighth byte from the first, the second, ... on."""
    return f"{fnv(b''.join(fnv(data[lane::8]).to_bytes(8, 'little') for lane in range(8))):016x}"


def pgm(width, height, seed):
    """A PGM file of blots, so that there is something to find."""
    generator = random.Random(seed)
    rows = [bytearray([128] * width) for _ in range(height)]
    for _ in range(width * height // 60):
        x, y, radius, value = (generator.randrange(width), generator.randrange(height), generator.randrange(1, 7),
                               generator.randrange(256))
        for row in range(max(0, y - radius), min(height, y + radius + 1)):
            for column in range(max(0, x - radius), min(width, x + radius + 1)):
                if (row - y) ** 2 + (column - x) ** 2 <= radius * radius:
                    rows[row][column] = value
    return b"P5 %d %d 255\n" % (width, height) + b"".join(rows)


def scenes(count, size="60x45"):
    return [f"@scene:{size}:{seed}" for seed in range(1, count + 1)]


def manifest_rows(data):
    """The rows of a manifest or journal, as dictionaries."""
    text = data.decode("utf-8", "surrogateescape")
    title, settings, rest = text.split("\n", 2)
    assert title == "# hartsift batch 1" and settings.startswith("# method="), text[:200]
    return list(csv.DictReader(io.StringIO(rest)))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data)
        return name

    def read(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()

    def list_of(self, names, name="list.txt"):
        return self.write(name, "".join(line + "\n" for line in names).encode("utf-8", "surrogateescape"))

    def environment(self):
        return {name: value for name, value in os.environ.items() if not name.startswith("HARTSIFT_")}

    def start(self, *arguments, **settings):
        settings.setdefault("stdin", subprocess.DEVNULL)
        settings.setdefault("stdout", subprocess.PIPE)
        settings.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([COMMAND, "batch", *arguments], cwd=self.folder, env=self.environment(), **settings)

    def batch(self, *arguments, status=DONE, stdin=b"", **settings):
        """Runs it; returns standard output (bytes) and standard error (text)."""
        run = subprocess.run([COMMAND, "batch", *arguments], cwd=self.folder, env=self.environment(), input=stdin,
                             timeout=800, check=False, capture_output=True, **settings)
        errors = run.stderr.decode("utf-8", "replace")
        self.assertEqual(run.returncode, status, f"{arguments}: {errors}")
        return run.stdout, errors

    def manifest(self, folder="out", name="manifest.csv"):
        return manifest_rows(self.read(folder, name))

    def tree(self, folder="out"):
        """Every file below a folder with its bytes."""
        found = {}
        for root, folders, names in os.walk(self.path(folder)):
            for name in names:
                path = os.path.join(root, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.path(folder))] = file.read()
            self.assertTrue(names or folders or root == self.path(folder), f"empty folder {root}")
        return found


class Inputs(Case):
    def test_folder_is_searched_and_mirrored(self):
        for name in ("b.pgm", "a/c.pgm", "a/b/d.PGM", "a.pgm", ".hidden.pgm", ".git/e.pgm"):
            self.write("images/" + name, pgm(50, 40, len(name)))
        self.write("images/notes.txt", b"no image")
        os.symlink(self.path("images", "a"), self.path("images", "loop"))
        os.symlink(self.path("images", "b.pgm"), self.path("images", "linked.pgm"))
        self.batch("images", "-o", "out")
        names = ["a.pgm", "a/b/d.PGM", "a/c.pgm", "b.pgm", "linked.pgm"]
        self.assertEqual([row["image"] for row in self.manifest()], names)
        self.assertEqual(sorted(self.tree()), sorted([os.path.splitext(name)[0] + ".npz" for name in names]
                                                     + ["manifest.csv"]))

    def test_outputs_are_those_of_extract(self):
        self.write("one.pgm", pgm(80, 60, 1))
        self.list_of(["one.pgm", "@scene:90x70:3"])
        self.batch("list.txt", "-o", "out", "--profile", "vlfeat", "--max-features", "50", "--descriptor", "f32")
        subprocess.run([COMMAND, "extract", "one.pgm", "@scene:90x70:3", "-o", "plain/", "--quiet", "--profile", "vlfeat",
                        "--max-features", "50", "--descriptor", "f32"], cwd=self.folder, check=True)
        expected = self.tree("plain")
        found = self.tree()
        del found["manifest.csv"]
        self.assertEqual(found, expected)

    def test_manifest_tells_size_count_and_digests(self):
        self.list_of(["@scene:90x70:3"])
        self.batch("list.txt", "-o", "out/", "--format", "bin")
        row, = self.manifest()
        self.assertEqual(list(row), COLUMNS)
        data = self.read("out", "scene_90x70_3.hsf")
        count = int.from_bytes(data[24:32], "little")
        descriptors = int.from_bytes(data[40:48], "little")
        self.assertGreater(count, 5)
        self.assertEqual((row["width"], row["height"], row["features"]), ("90", "70", str(count)))
        self.assertEqual((row["status"], row["error"]), ("HS_OK", ""))
        self.assertEqual(row["output_digest"], digest_of(data))
        content = count.to_bytes(8, "little") + data[64:64 + 24 * count] + data[descriptors:descriptors + 128 * count]
        self.assertEqual(row["digest"], digest_of(content))

    def test_list_on_standard_input(self):
        self.write("a.pgm", pgm(50, 40, 1))
        self.write("-", pgm(50, 40, 2))
        self.batch("-", "-o", "out", stdin=b"@scene:40x40\r\n\n./a.pgm\n-")
        self.assertEqual([row["image"] for row in self.manifest()], ["@scene:40x40", "./a.pgm", "./-"])
        self.assertEqual(sorted(self.tree()), ["-.npz", "a.npz", "manifest.csv", "scene_40x40.npz"])

    def test_outputs_stay_below_the_folder(self):
        os.makedirs(self.path("work"))
        self.write("up.pgm", pgm(50, 40, 1))
        self.write("x/y.pgm", pgm(50, 40, 2))
        names = ["../up.pgm", "../x/../x/./y.pgm", self.path("up.pgm")]
        self.write("work/list", "\n".join(names).encode())
        run = subprocess.run([COMMAND, "batch", "list", "-o", "out"], cwd=self.path("work"), capture_output=True, check=False)
        self.assertEqual(run.returncode, DONE, run.stderr)
        absolute = os.path.splitext(self.path("up"))[0].lstrip("/") + ".npz"
        self.assertEqual(sorted(self.tree("work/out")), sorted(["up.npz", "x/y.npz", absolute, "manifest.csv"]))

    def test_odd_names(self):
        names = ["a,b.pgm", 'quote".pgm', "#hash.pgm", " space .pgm", "line\nend.pgm", "f\udcff.pgm", "ä.pgm"]
        for name in names:
            self.write("images/" + name, pgm(50, 40, 1))
        self.batch("images", "-o", "out")
        expected = sorted(names, key=lambda name: name.encode("utf-8", "surrogateescape"))
        self.assertEqual([row["image"] for row in self.manifest()], expected)
        before = self.tree()
        _, errors = self.batch("images", "-o", "out", "--resume")
        self.assertIn(f"{len(names)} kept", errors)
        self.assertEqual(self.tree(), before)

    def test_nothing_to_do(self):
        os.makedirs(self.path("empty"))
        for arguments, stdin in ((["-"], b""), (["empty"], b""), (["-"], b"\n\n")):
            _, errors = self.batch(*arguments, "-o", "out", stdin=stdin)
            self.assertIn("no images", errors)
            self.assertEqual(self.manifest(), [])
            self.assertEqual(list(self.tree()), ["manifest.csv"])

    def test_unreadable_lists(self):
        self.write("binary", b"\x89PNG\r\n\x1a\n\0\0\0\n")
        self.assertIn("no text", self.batch("binary", "-o", "out", status=USAGE)[1])
        self.assertIn("absent", self.batch("absent", "-o", "out", status=FAILED)[1])
        self.assertFalse(os.path.exists(self.path("out")))


class Options(Case):
    def test_wrong_usage(self):
        self.list_of(scenes(1))
        self.write("file", b"")
        wrong = ((["--shard", "0/3"], "--shard"), (["--shard", "4/3"], "--shard"), (["--shard", "1"], "--shard"),
                 (["--shard", "1/3x"], "--shard"), (["--shard", "-1/3"], "--shard"), (["--jobs", "-1"], "--jobs"),
                 (["--devices", "gpu"], "--devices"), (["--devices", "cpu,cpu"], "twice"), (["--devices", ","], "--devices"),
                 (["--devices", "cpu", "--device", "cpu"], "one of them"), (["--format", "xml"], "--format"),
                 (["--keypoints", "x"], "--keypoints"), (["--input-blur", "3"], "--input-blur"),
                 (["--descriptor", "none", "--format", "lowe"], "--format lowe"))
        for arguments, word in wrong:
            self.assertIn(word, self.batch("list.txt", "-o", "out", *arguments, status=USAGE)[1])
        self.assertIn("--output", self.batch("list.txt", status=USAGE)[1])
        self.assertIn("--output", self.batch("list.txt", "-o", "-", status=USAGE)[1])
        self.assertIn("directory", self.batch("list.txt", "-o", "file", status=USAGE)[1])
        self.assertIn("operand", self.batch("list.txt", "list.txt", "-o", "out", status=USAGE)[1])
        self.assertFalse(os.path.exists(self.path("out", "manifest.csv")))

    def test_device_that_is_not_there(self):
        self.list_of(scenes(1))
        self.batch("list.txt", "-o", "out", "--devices", "cpu,cuda:63", status=NO_DEVICE)
        self.assertFalse(os.path.exists(self.path("out", "manifest.journal")))

    def test_result_depends_on_no_thread(self):
        self.list_of(scenes(12))
        self.batch("list.txt", "-o", "out", "--devices", "cpu")
        for arguments in (["--jobs", "1", "--threads", "1"], ["--jobs", "5", "--threads", "3"], ["--device", "cpu"]):
            shutil.rmtree(self.path("other"), ignore_errors=True)
            self.batch("list.txt", "-o", "other", *arguments)
            self.assertEqual(self.tree("other"), self.tree())

    def test_every_format(self):
        self.list_of(scenes(3))
        for name, ending in FORMATS.items():
            self.batch("list.txt", "-o", name, "--format", name)
            files = self.tree(name)
            self.assertIn("scene_60x45_2" + ending if name != "colmap" else "scene_60x45_2.txt", files)
            self.assertEqual(len(files), 7 if name == "openmvg" else 4)
            self.assertIn("3 kept", self.batch("list.txt", "-o", name, "--format", name, "--resume")[1])
            self.assertEqual(self.tree(name), files)

    def test_second_file_of_a_format_counts(self):
        self.list_of(scenes(2))
        arguments = ("list.txt", "-o", "out", "--format", "openmvg")
        self.batch(*arguments)
        files = self.tree()
        os.unlink(self.path("out", "scene_60x45_1.desc"))
        self.assertIn("1 done, 1 kept", self.batch(*arguments, "--resume")[1])
        self.assertEqual(self.tree(), files)

    def test_mask(self):
        half = b"P5 60 45 255\n" + (b"\xff" * 30 + b"\0" * 30) * 45
        self.write("mask.pgm", half)
        self.list_of(["@scene:60x45:1", "@scene:61x45:1"])
        _, errors = self.batch("list.txt", "-o", "out", "--mask", "mask.pgm", "--format", "csv", status=FAILED)
        self.assertIn("@scene:61x45:1", errors)
        rows = list(csv.DictReader(io.StringIO(self.read("out", "scene_60x45_1.csv").decode())))
        self.assertTrue(rows and all(float(row["x"]) < 30 for row in rows))
        self.write("mask.pgm", half.replace(b"\0", b"\1"))
        self.assertIn("mask=", self.batch("list.txt", "-o", "out", "--mask", "mask.pgm", "--format", "csv", "--resume",
                                          status=USAGE)[1])

    def test_records(self):
        self.list_of([*scenes(3), "absent.pgm"])
        output, errors = self.batch("list.txt", "-o", "out", "--json", "--quiet", status=FAILED)
        *records, last = [json.loads(line) for line in output.splitlines()]
        by_name = {record["image"]: record for record in records}
        self.assertEqual(sorted(by_name), sorted([*scenes(3), "absent.pgm"]))
        for row in self.manifest():
            record = by_name[row["image"]]
            self.assertEqual(record["status"], row["status"])
            self.assertEqual(record["digest"] or "", row["digest"])
            self.assertFalse(record["kept"])
        self.assertGreater(by_name["@scene:60x45:1"]["milliseconds"], 0)
        self.assertIsNone(by_name["absent.pgm"]["milliseconds"])
        self.assertEqual(errors.count("\n"), 1)
        summary = last["summary"]
        self.assertEqual([summary[key] for key in ("images", "done", "kept", "failed")], [4, 3, 0, 1])
        self.assertEqual(set(summary["cpu_seconds"]), {"read", "extract", "write"})
        self.assertEqual(sum(device["images"] for device in summary["devices"]), 3)
        output, _ = self.batch("list.txt", "-o", "out", "--json", "--quiet", "--resume", status=FAILED)
        self.assertEqual(json.loads(output.splitlines()[-1])["summary"]["kept"], 3)

    def test_progress_is_for_terminals(self):
        self.list_of(scenes(60, "160x120"))
        _, errors = self.batch("list.txt", "-o", "out")
        self.assertRegex(errors, r"^60 images: 60 done, 0 kept, 0 failed, [0-9.]+ s, [0-9.]+ a second\n$")
        terminal, inner = pty.openpty()
        run = self.start("list.txt", "-o", "out", stderr=inner)
        os.close(inner)
        shown = b""
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        self.assertEqual(run.wait(), DONE)
        run.stdout.close()
        self.assertRegex(shown.decode(), r"\r\[#* *\] \d+ of 60, [0-9.]+ a second, [-0-9:]+ left")
        self.assertIn("60 done", shown.decode())


class Failures(Case):
    def test_broken_among_good(self):
        good = pgm(60, 45, 1)
        for name, data in (("a.pgm", good), ("b.pgm", good[:200]), ("c.pgm", pgm(60, 45, 2)), ("d.png", b"\x89PNG\r\n\x1a\n"),
                           ("e.jpg", b""), ("f.pgm", pgm(60, 45, 3))):
            self.write("images/" + name, data)
        os.symlink("nowhere", self.path("images", "g.pgm"))
        _, errors = self.batch("images", "-o", "out", status=FAILED)
        rows = self.manifest()
        self.assertEqual([row["status"] == "HS_OK" for row in rows], [True, False, True, False, False, True, False])
        for row in rows:
            if row["status"] != "HS_OK":
                self.assertTrue(row["error"])
                self.assertIn(row["image"], errors)
                self.assertEqual((row["features"], row["digest"], row["output_digest"]), ("", "", ""))
        self.assertEqual(sorted(self.tree()), ["a.npz", "c.npz", "f.npz", "manifest.csv"])
        # Failed images are tried again, and only those.
        self.write("images/b.pgm", good)
        _, errors = self.batch("images", "-o", "out", "--resume", status=FAILED)
        self.assertIn("1 done, 3 kept, 3 failed", errors)
        self.assertEqual(self.manifest()[1]["digest"], self.manifest()[0]["digest"])

    def test_two_images_with_one_output(self):
        self.write("images/a.pgm", pgm(60, 45, 1))
        self.write("images/a.pnm", pgm(60, 45, 2))
        _, errors = self.batch("images", "-o", "out", status=FAILED)
        self.assertIn("a.pnm: an earlier image has the same output a.npz", errors)
        self.batch("images", "-o", "colmap", "--format", "colmap")
        self.assertEqual(sorted(self.tree("colmap")), ["a.pgm.txt", "a.pnm.txt", "manifest.csv"])
        self.list_of(["images/a.pgm", "images/../images/a.pgm"])
        for arguments in ([], ["--resume"]):
            self.batch("list.txt", "-o", "twice", *arguments, status=FAILED)
            self.assertEqual([row["status"] for row in self.manifest("twice")], ["HS_OK", "HS_ERR_ARGUMENT"])

    def test_manifest_is_never_an_output(self):
        self.write("images/manifest.pgm", pgm(60, 45, 1))
        self.write("images/x.pgm", pgm(60, 45, 1))
        _, errors = self.batch("images", "-o", "out", "--format", "csv", status=FAILED)
        self.assertIn("name of a manifest", errors)
        self.assertEqual([row["status"] == "HS_OK" for row in self.manifest()], [False, True])

    def test_outputs_that_cannot_be_written(self):
        self.list_of(scenes(2))
        self.write("file", b"")
        self.assertIn("file/out", self.batch("list.txt", "-o", "file/out", status=FAILED)[1])
        # A folder where a file should go; the other image is done.
        os.makedirs(self.path("out", "scene_60x45_1.npz"))
        _, errors = self.batch("list.txt", "-o", "out", status=FAILED)
        self.assertIn("scene_60x45_1.npz", errors)
        self.assertEqual([row["status"] for row in self.manifest()], ["HS_ERR_IO", "HS_OK"])

    def test_write_protected_folder(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        self.list_of(scenes(2))
        os.makedirs(self.path("out"))
        os.chmod(self.path("out"), 0o500)
        self.assertIn("out", self.batch("list.txt", "-o", "out", status=FAILED)[1])

    def limited(self, size):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        return limit

    def test_outputs_too_large_for_the_disk(self):
        self.list_of([*scenes(2), "@scene:400x300:1", "@scene:60x45:9"])
        self.batch("list.txt", "-o", "whole")
        _, errors = self.batch("list.txt", "-o", "out", status=FAILED, preexec_fn=self.limited(40000))
        self.assertIn("@scene:400x300:1", errors)
        self.assertEqual([row["status"] for row in self.manifest()], ["HS_OK", "HS_OK", "HS_ERR_IO", "HS_OK"])
        self.assertNotIn(".hartsift", self.manifest()[2]["error"])
        self.assertNotIn("scene_400x300_1.npz", self.tree())
        self.assertIn("1 done, 3 kept", self.batch("list.txt", "-o", "out", "--resume")[1])
        self.assertEqual(self.tree(), self.tree("whole"))

    def test_journal_that_cannot_be_written(self):
        self.list_of(scenes(40, "20x20"))
        arguments = ("list.txt", "--format", "vlfeat", "-o")  # outputs smaller than the journal
        self.batch(*arguments, "whole")
        longest = max(len(data) for name, data in self.tree("whole").items() if name != "manifest.csv")
        _, errors = self.batch(*arguments, "out", status=FAILED, preexec_fn=self.limited(max(1500, longest)))
        self.assertIn("manifest.journal: cannot be written", errors)
        self.assertFalse(os.path.exists(self.path("out", "manifest.csv")))
        _, errors = self.batch(*arguments, "out", "--resume")
        self.assertRegex(errors, r"[1-9]\d* kept")
        self.assertEqual(self.tree(), self.tree("whole"))

    def test_full_disk(self):
        os.makedirs(self.path("small"))
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.path("small")], check=False,
                               capture_output=True)
        if mount.returncode != 0:
            self.skipTest("no file system can be mounted here")
        try:
            self.list_of(scenes(20, "160x120"))
            self.batch("list.txt", "-o", "whole")
            _, errors = self.batch("list.txt", "-o", "small/out", status=FAILED)
            self.assertIn("No space left", errors)
            subprocess.run(["mount", "-o", "remount,size=16m", self.path("small")], check=True)
            self.batch("list.txt", "-o", "small/out", "--resume")
            self.assertEqual(self.tree("small/out"), self.tree("whole"))
        finally:
            subprocess.run(["umount", self.path("small")], check=True)


class Resuming(Case):
    def test_keeps_what_is_intact(self):
        names = ["a.pgm", "b.pgm", "c.pgm", "d.pgm", "e.pgm"]
        for number, name in enumerate(names):
            self.write("images/" + name, pgm(60, 45, number))
        self.batch("images", "-o", "out")
        files = self.tree()
        os.unlink(self.path("out", "a.npz"))
        self.write("out/b.npz", files["b.npz"][:-1])
        self.write("out/c.npz", files["c.npz"][:100] + b"?" + files["c.npz"][101:])
        self.write("images/d.pgm", pgm(60, 45, 77))
        later = time.time() + 5
        os.utime(self.path("images", "d.pgm"), (later, later))
        _, errors = self.batch("images", "-o", "out", "--resume")
        self.assertIn("4 done, 1 kept", errors)
        found = self.tree()
        for name in "abce":
            self.assertEqual(found[name + ".npz"], files[name + ".npz"])
        self.assertNotEqual(found["d.npz"], files["d.npz"])

    def test_other_options_are_noticed(self):
        self.list_of(scenes(3))
        self.batch("list.txt", "-o", "out")
        files = self.tree()
        for arguments, word in ((["--contrast", "0.03"], "contrast=0.03"), (["--profile", "colmap"], "profile=colmap"),
                                (["--format", "csv"], "format=csv"), (["--upright"], "upright=1"),
                                (["--region", "1,2,30,30"], "region=1,2,30,30"), (["--no-exif"], "no-exif=1"),
                                (["--decode-scale", "2"], "decode-scale=2")):
            _, errors = self.batch("list.txt", "-o", "out", "--resume", *arguments, status=USAGE)
            self.assertIn(word, errors)
            self.assertEqual(self.tree(), files)
        for arguments in (["--threads", "1"], ["--jobs", "2"], ["--device", "cpu"], ["--max-memory", "1G"],
                          ["--decode-scale", "1"]):
            self.assertIn("3 kept", self.batch("list.txt", "-o", "out", "--resume", *arguments)[1])
        self.batch("list.txt", "-o", "out", "--contrast", "0.03")
        self.assertNotEqual(self.tree(), files)

    def test_list_may_grow(self):
        self.list_of(scenes(3))
        self.batch("list.txt", "-o", "out")
        self.list_of(["@scene:60x45:9", *reversed(scenes(3))])
        self.assertIn("1 done, 3 kept", self.batch("list.txt", "-o", "out", "--resume")[1])
        self.batch("list.txt", "-o", "whole")
        self.assertEqual(self.tree(), self.tree("whole"))

    def test_torn_journal(self):
        self.list_of(scenes(4, "20x20"))
        self.batch("list.txt", "-o", "whole")
        head, *rows = self.read("whole", "manifest.csv").splitlines(keepends=True)[1:]
        columns, *rows = rows
        journal = b"# hartsift batch 1\n" + head + columns.replace(b"\n", b",milliseconds\n")
        start = len(journal)
        journal += b"".join(row.replace(b"\n", b",1.000\n") for row in rows)
        generator = random.Random(5)
        cuts = [0, 5, start - 1, start, start + 1, len(journal) - 1, len(journal)]
        cuts += [generator.randrange(len(journal)) for _ in range(8)]
        for cut in cuts:
            shutil.rmtree(self.path("out"), ignore_errors=True)
            shutil.copytree(self.path("whole"), self.path("out"))
            os.unlink(self.path("out", "manifest.csv"))
            self.write("out/manifest.journal", journal[:cut])
            _, errors = self.batch("list.txt", "-o", "out", "--resume")
            whole_rows = journal[:cut].count(b"\n") - 3 if cut >= start else 0
            self.assertIn(f"{whole_rows} kept", errors, cut)
            self.assertEqual(self.tree(), self.tree("whole"))
        for damage in (b"\0" * 50, b'"', b"a,b\n", b"@scene:20x20:1,x,20,1,0,0,HS_OK,,1\n"):
            self.write("out/manifest.journal", journal[:start] + damage + journal[start:])
            os.unlink(self.path("out", "manifest.csv"))
            self.batch("list.txt", "-o", "out", "--resume")
            self.assertEqual(self.tree(), self.tree("whole"))

    def test_one_run_at_a_time(self):
        self.list_of(scenes(400, "320x240"))
        first = self.start("list.txt", "-o", "out")
        self.wait_for(lambda: os.path.exists(self.path("out", "manifest.journal")))
        self.assertIn("another run", self.batch("list.txt", "-o", "out", "--resume", status=FAILED)[1])
        self.assertIn("another run", self.batch("list.txt", "-o", "out", status=FAILED)[1])
        first.send_signal(signal.SIGINT)
        first.communicate()

    def wait_for(self, condition):
        until = time.time() + 60
        while not condition() and time.time() < until:
            time.sleep(0.005)
        self.assertTrue(condition())

    def rows_done(self):
        try:
            return self.read("out", "manifest.journal").count(b"\n") - 3
        except OSError:
            return 0

    def test_signals_stop_cleanly(self):
        self.list_of(scenes(60, "120x90"))
        self.batch("list.txt", "-o", "whole")
        for number in (signal.SIGINT, signal.SIGTERM):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            run = self.start("list.txt", "-o", "out", "--jobs", "1", "--threads", "1")
            self.wait_for(lambda: self.rows_done() >= 3)
            run.send_signal(number)
            errors = run.communicate(timeout=60)[1].decode()
            if run.returncode == DONE:
                continue  # it was faster than the signal
            self.assertEqual(run.returncode, FAILED, errors)
            self.assertIn(f"stopped by {number.name}", errors)
            self.assertEqual([name for name in os.listdir(self.path("out")) if name.startswith(".")], [])
            done = self.rows_done()
            self.assertEqual(len([name for name in os.listdir(self.path("out")) if name.endswith(".npz")]), done)
            self.assertIn(f"{done} kept", self.batch("list.txt", "-o", "out", "--resume")[1])
            self.assertEqual(self.tree(), self.tree("whole"))

    def test_killed_at_any_moment(self):
        self.list_of(scenes(50, "120x90"))
        started = time.time()
        self.batch("list.txt", "-o", "whole")
        duration = time.time() - started
        generator = random.Random(1)
        kills = 0
        for _ in range(4):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            for _ in range(4):
                run = self.start("list.txt", "-o", "out", "--resume")
                time.sleep(generator.random() * duration * 0.6)
                run.kill()
                run.communicate()
                kills += run.returncode == -signal.SIGKILL
            self.batch("list.txt", "-o", "out", "--resume")
            self.assertEqual(self.tree(), self.tree("whole"))
        self.assertGreater(kills, 0)


class Shards(Case):
    def test_union_is_the_whole(self):
        self.list_of([*scenes(10), "absent.pgm", *scenes(1)])
        self.batch("list.txt", "-o", "whole", status=FAILED)
        statuses = [self.batch_status("list.txt", "-o", "out", "--shard", f"{shard}/3") for shard in (1, 2, 3)]
        self.assertEqual(statuses, [DONE, FAILED, FAILED])
        shards = [self.manifest(name=f"manifest-{shard}-of-3.csv") for shard in (1, 2, 3)]
        whole = self.manifest("whole")
        for shard, rows in enumerate(shards):
            self.assertEqual(rows, whole[shard::3])
        expected = self.tree("whole")
        del expected["manifest.csv"]
        found = {name: data for name, data in self.tree().items() if not name.startswith("manifest")}
        self.assertEqual(found, expected)
        # The documented way to one manifest.
        _, errors = self.batch("list.txt", "-o", "out", "--resume", status=FAILED)
        self.assertIn("0 done, 10 kept, 2 failed", errors)
        self.assertEqual(self.read("out", "manifest.csv"), self.read("whole", "manifest.csv"))

    def batch_status(self, *arguments):
        run = self.start(*arguments)
        run.communicate()
        return run.returncode

    def test_at_the_same_time(self):
        self.list_of(scenes(24))
        self.batch("list.txt", "-o", "whole")
        runs = [self.start("list.txt", "-o", "out", "--shard", f"{shard}/12", "--resume") for shard in range(1, 13)]
        for run in runs:
            errors = run.communicate()[1]
            self.assertEqual(run.returncode, DONE, errors)
        self.assertTrue(os.path.exists(self.path("out", "manifest-01-of-12.csv")))
        self.assertIn("24 kept", self.batch("list.txt", "-o", "out", "--resume")[1])
        self.assertEqual(self.read("out", "manifest.csv"), self.read("whole", "manifest.csv"))

    def test_more_shards_than_images(self):
        self.list_of(scenes(2))
        self.batch("list.txt", "-o", "out", "--shard", "3/3")
        self.assertEqual(self.manifest(name="manifest-3-of-3.csv"), [])

    def test_shards_of_one_job_agree_on_options(self):
        self.list_of(scenes(4))
        self.batch("list.txt", "-o", "out", "--shard", "1/2")
        _, errors = self.batch("list.txt", "-o", "out", "--shard", "2/2", "--resume", "--edge", "9", status=USAGE)
        self.assertIn("manifest-1-of-2.csv", errors)


class Databases(Case):
    @classmethod
    def setUpClass(cls):
        info = subprocess.run([COMMAND, "info", "--json"], capture_output=True, check=False)
        if not json.loads(info.stdout)["build"].get("sqlite"):
            raise unittest.SkipTest("built without SQLite")

    def content(self, name="out.db"):
        """Everything that says what was found in which image, in the order of the images' numbers."""
        connection = sqlite3.connect(self.path(name))
        try:
            return connection.execute(
                "SELECT i.image_id, i.camera_id, i.name, k.rows, k.data, d.data FROM images i JOIN keypoints k USING (image_id) "
                "JOIN descriptors d USING (image_id) ORDER BY i.image_id").fetchall()
        finally:
            connection.close()

    def test_images_stand_in_order(self):
        names = ["b.pgm", "a/c.pgm", "a/b/d.pgm"]
        for name in names:
            self.write("images/" + name, pgm(60, 45, len(name)))
        self.write("images/a/broken.pgm", b"P5 4 4 255\n")
        self.batch("images", "-o", "out.db", "--jobs", "4", status=FAILED)
        self.assertEqual([row[2] for row in self.content()], ["a/b/d.pgm", "a/c.pgm", "b.pgm"])
        rows = self.manifest("", "out.db.manifest.csv")
        self.assertEqual([row["status"] == "HS_OK" for row in rows], [True, False, True, True])
        self.assertEqual([row["features"] for row in rows if row["features"]], [str(row[3]) for row in self.content()])

    def test_resume_verifies_the_database(self):
        self.list_of(scenes(5))
        self.batch("list.txt", "-o", "out.db")
        before = self.content()
        self.assertIn("5 kept", self.batch("list.txt", "-o", "out.db", "--resume")[1])
        connection = sqlite3.connect(self.path("out.db"))
        connection.execute("DELETE FROM keypoints WHERE image_id = 2")
        connection.execute("DELETE FROM descriptors WHERE image_id IN (2, 3)")
        connection.commit()
        connection.close()
        _, errors = self.batch("list.txt", "-o", "out.db", "--resume", "--replace")
        self.assertIn("2 done, 3 kept", errors)
        self.assertEqual(self.content(), before)
        os.unlink(self.path("out.db"))
        self.assertIn("5 done", self.batch("list.txt", "-o", "out.db", "--resume")[1])
        self.assertEqual(self.content(), before)

    def test_other_features_need_replace(self):
        self.list_of(scenes(2, "120x90"))
        self.batch("list.txt", "-o", "out.db")
        before = self.content()
        self.assertIn("already", self.batch("list.txt", "-o", "out.db", "--edge", "3", status=FAILED)[1])
        self.assertEqual(self.content(), before)
        self.batch("list.txt", "-o", "out.db", "--edge", "3", "--replace")
        self.assertNotEqual(self.content(), before)

    def test_wrong_usage(self):
        self.list_of(scenes(1))
        os.makedirs(self.path("folder"))
        self.write("file.db", b"no database at all, but long enough to be looked at" * 9)
        self.batch("list.txt", "-o", "folder", "--format", "colmap-db", status=USAGE)
        self.batch("list.txt", "-o", "folder", "--replace", status=USAGE)
        self.batch("list.txt", "-o", "file.db", status=FAILED)
        self.batch("list.txt", "-o", "absent/out.db", status=FAILED)

    def test_killed_at_any_moment(self):
        self.list_of(scenes(150, "120x90"))
        started = time.time()
        self.batch("list.txt", "-o", "whole.db")
        duration = time.time() - started
        generator = random.Random(2)
        for _ in range(6):
            run = self.start("list.txt", "-o", "out.db", "--resume")
            time.sleep((0.3 + 0.7 * generator.random()) * duration)
            run.kill()
            run.communicate()
        self.batch("list.txt", "-o", "out.db", "--resume")
        self.assertEqual(self.content(), self.content("whole.db"))
        self.assertEqual(self.read("out.db.manifest.csv"), self.read("whole.db.manifest.csv"))


class Memory(Case):
    def peak_kib(self, count):
        """Peak resident memory of a run over so many images of changing sizes."""
        names = "".join(f"@scene:{40 + seed % 37}x{30 + seed % 23}:{seed}\n" for seed in range(count)).encode()
        run = self.start("-", "-o", f"out{count}", "--quiet", "--threads", "1", "--jobs", "1", stdin=subprocess.PIPE)
        run.stdin.write(names)
        run.stdin.close()
        drains = [threading.Thread(target=stream.read) for stream in (run.stdout, run.stderr)]
        for drain in drains:
            drain.start()
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
        for drain in drains:
            drain.join()
        run.stdout.close()
        run.stderr.close()
        self.assertEqual(run.returncode, DONE)
        return usage.ru_maxrss

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "the sanitizer keeps freed memory")
    def test_does_not_grow_with_the_number_of_images(self):
        few = self.peak_kib(200)
        many = self.peak_kib(2000)
        # Names and records take less than a KiB an image.
        self.assertLess(many, few + 1800 + 2048, f"{few} and {many} KiB")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and os.access(sys.argv[1], os.X_OK):
        COMMAND = os.path.abspath(sys.argv.pop(1))
    if not COMMAND:
        print("skipped: no command was built (HARTSIFT_COMMAND)")
        sys.exit(SKIPPED)
    unittest.main()
