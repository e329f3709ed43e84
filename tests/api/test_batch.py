"""The command hartsift batch: choice and order of images, outputs and messages, failures, and memory.
"""
import csv
import io
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import threading

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, blots, digest_of, scenes
from command_case import COMMAND, DONE, FAILED, NO_DEVICE, USAGE, give_up_privileges, main

FORMATS = {"colmap": ".txt", "npz": ".npz", "csv": ".csv", "json": ".json", "lowe": ".key", "vlfeat": ".sift",
           "opencv": ".yml", "openmvg": ".feat", "bin": ".hsf", "visualsfm": ".sift", "oxford": ".hesaff"}
COLUMNS = "image width height features digest output_digest status error source_bytes source_time source_digest".split()


class Inputs(BatchCase):
    def test_folder_is_searched_and_mirrored(self):
        for name in ("b.pgm", "a/c.pgm", "a/b/d.PGM", "a.pgm", ".hidden.pgm", ".git/e.pgm"):
            self.write("images/" + name, blots(50, 40, len(name)))
        self.write("images/notes.txt", b"no image")
        os.symlink(self.path("images", "b.pgm"), self.path("images", "linked.pgm"))
        self.batch("images", "-o", "out")
        names = ["a.pgm", "a/b/d.PGM", "a/c.pgm", "b.pgm", "linked.pgm"]
        self.assertEqual([row["image"] for row in self.manifest()], names)
        self.assertEqual(sorted(self.tree()), sorted([os.path.splitext(name)[0] + ".npz" for name in names]
                                                     + ["manifest.csv"]))

    def test_endings_of_images(self):
        for number, name in enumerate(("a.jfif", "b.JPE", "c.Mpo", "d.pbm", "e.DIB", "f.jif", "g.jpg", "h.PGM")):
            self.write("images/" + name, blots(50, 40, number))  # each picture can be identified by its content
        self.batch("images", "-o", "out")
        self.assertEqual([row["image"][0] for row in self.manifest()], list("abcdefgh"))

    def test_files_passed_over_are_counted(self):
        self.write("images/a.pgm", blots(50, 40, 1))
        for name in ("b.HEIC", "b/c.heic", "d.DNG", "e.avif", "notes", "v1.2/notes", ".hidden.cr2", ".git/f.cr2", "x." + "y" * 40):
            self.write("images/" + name, b"no image")
        _, errors = self.batch("images", "-o", "out")
        self.assertIn("images: 7 files were passed over by their endings: 3 without one, 2 .heic, 1 .avif, 1 .dng\n", errors)
        self.assertNotIn("passed over", self.batch("images", "-o", "out", "--quiet")[1])
        os.unlink(self.path("images", "a.pgm"))
        self.assertIn("2 .heic", self.batch("images", "-o", "none", status=FAILED)[1])
        for number in range(100):
            self.write(f"images/x.e{number}", b"")
        self.write("images/a.pgm", blots(50, 40, 1))
        self.assertRegex(self.batch("images", "-o", "out")[1], r"107 files were passed over .*, 96 others\n")

    def test_links_to_folders(self):
        """Links are followed; a file that is also there without a link keeps its own name, and a circle of links
        ends."""
        for name in ("images/a/b.pgm", "far/c.pgm", "far/deep/d.pgm", "other/e.pgm"):
            self.write(name, blots(50, 40, len(name)))
        for link, target in (("images/linked", "far"), ("images/again", "images/a"), ("far/up", "images"), ("far/deep/on", "other"),
                             ("other/round", "far"), ("images/zz", "other")):
            os.symlink(self.path(*target.split("/")), self.path(*link.split("/")))
        os.symlink("nowhere", self.path("images", "gone"))
        _, errors = self.batch("images", "-o", "out")
        self.assertEqual([row["image"] for row in self.manifest()],
                         ["a/b.pgm", "linked/c.pgm", "linked/deep/d.pgm", "zz/e.pgm"])
        self.assertIn("images/again: is skipped, because it was already searched under another name", errors)
        self.assertIn("1 file was passed over", errors)
        os.symlink(self.path("images"), self.path("door"))
        self.batch("door", "-o", "through")
        self.assertEqual(self.tree("through"), self.tree())

    def test_byte_order_mark(self):
        self.write("a.pgm", blots(50, 40, 1))
        for text in (b"\xef\xbb\xbfa.pgm\r\n", b"\xef\xbb\xbf\r\na.pgm"):
            self.write("list.txt", text)
            self.batch("list.txt", "-o", "out")
            self.assertEqual([row["image"] for row in self.manifest()], ["a.pgm"])
        self.batch("-", "-o", "out", "--null", stdin=b"\xef\xbb\xbfa.pgm\0")
        self.assertEqual([row["image"] for row in self.manifest()], ["a.pgm"])
        for encoding in ("utf-16", "utf-16-be"):
            self.write("list.txt", ("\ufeff" if encoding.endswith("be") else "").encode(encoding) + "a.pgm\n".encode(encoding))
            self.assertIn("UTF-16", self.batch("list.txt", "-o", "out", status=USAGE)[1])

    def test_images_without_features_are_counted(self):
        self.write("images/a.pgm", blots(50, 40, 1))
        for name in ("b.pgm", "c.pgm"):
            self.write("images/" + name, b"P5 50 40 255\n" + bytes(2000))
        for arguments in ([], ["--resume"]):
            output, errors = self.batch("images", "-o", "out", "--json", *arguments)
            self.assertIn(", 0 failed, 2 without a feature, ", errors)
            self.assertEqual(json.loads(output.splitlines()[-1])["summary"]["without_features"], 2)
        os.unlink(self.path("images", "b.pgm"))
        os.unlink(self.path("images", "c.pgm"))
        self.assertNotIn("without a feature", self.batch("images", "-o", "other")[1])

    def test_outputs_are_those_of_extract(self):
        self.write("one.pgm", blots(80, 60, 1))
        self.list_of(["one.pgm", "@scene:90x70:3"])
        self.batch("list.txt", "-o", "out", "--profile", "vlfeat", "--max-features", "50", "--descriptor", "f32")
        subprocess.run([COMMAND, "extract", "one.pgm", "@scene:90x70:3", "-o", "plain/", "--quiet", "--profile",
                        "vlfeat", "--max-features", "50", "--descriptor", "f32"], cwd=self.folder, check=True)
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
        self.write("a.pgm", blots(50, 40, 1))
        self.write("-", blots(50, 40, 2))
        self.batch("-", "-o", "out", stdin=b"@scene:40x40\r\n\n./a.pgm\n-")
        self.assertEqual([row["image"] for row in self.manifest()], ["@scene:40x40", "./a.pgm", "./-"])
        self.assertEqual(sorted(self.tree()), ["-.npz", "a.npz", "manifest.csv", "scene_40x40.npz"])

    def test_folders_named_like_scenes(self):
        names = ["@scene/x.pgm", "@scenery/x.pgm", "@scene.pgm", "@scene:40x40"]
        for name in names[:3]:
            self.write("images/" + name, blots(50, 40, len(name)))
        self.list_of(names)
        subprocess.run([COMMAND, "batch", "../list.txt", "-o", "../out", "--quiet"], cwd=self.path("images"), check=True)
        self.assertEqual(sorted(self.tree()), ["@scene.npz", "@scene/x.npz", "@scenery/x.npz", "manifest.csv",
                                               "scene_40x40.npz"])
        subprocess.run([COMMAND, "extract", "@scenery/x.pgm", "@scene.pgm", "-o", "../plain/", "--quiet"],
                       cwd=self.path("images"), check=True)
        self.assertEqual(sorted(self.tree("plain")), ["@scene.npz", "x.npz"])

    def test_outputs_stay_below_the_folder(self):
        os.makedirs(self.path("work"))
        self.write("up.pgm", blots(50, 40, 1))
        self.write("x/y.pgm", blots(50, 40, 2))
        names = ["../up.pgm", "../x/../x/./y.pgm", self.path("up.pgm")]
        self.write("work/list", "\n".join(names).encode())
        run = subprocess.run([COMMAND, "batch", "list", "-o", "out"], cwd=self.path("work"),
                             capture_output=True, check=False)
        self.assertEqual(run.returncode, DONE, run.stderr)
        absolute = os.path.splitext(self.path("up"))[0].lstrip("/") + ".npz"
        self.assertEqual(sorted(self.tree("work/out")), sorted(["up.npz", "x/y.npz", absolute, "manifest.csv"]))

    def test_odd_names(self):
        names = ["a,b.pgm", 'quote".pgm', "#hash.pgm", " space .pgm", "line\nend.pgm", "f\udcff.pgm", "ä.pgm"]
        for name in names:
            self.write("images/" + name, blots(50, 40, 1))
        self.batch("images", "-o", "out")
        expected = sorted(names, key=lambda name: name.encode("utf-8", "surrogateescape"))
        self.assertEqual([row["image"] for row in self.manifest()], expected)
        before = self.tree()
        _, errors = self.batch("images", "-o", "out", "--resume")
        self.assertIn(f"{len(names)} kept", errors)
        self.assertEqual(self.tree(), before)

    def test_nothing_to_do(self):
        for arguments, stdin in ((["-"], b""), (["-"], b"\n\n")):
            _, errors = self.batch(*arguments, "-o", "out", stdin=stdin)
            self.assertIn("no images", errors)
            self.assertEqual(self.manifest(), [])
            self.assertEqual(list(self.tree()), ["manifest.csv"])

    def test_folder_without_images(self):
        self.write("notes/readme.txt", b"no image")
        self.assertIn(".jpg", self.batch("notes", "-o", "out", status=FAILED)[1])
        self.assertFalse(os.path.exists(self.path("out")))

    def test_images_on_the_command_line(self):
        for name in ("a.jpg", "b.jpg"):
            self.write(name, b"\xff\xd8\xff")
        for operands in (["a.jpg"], ["a.jpg", "b.jpg"]):
            self.assertIn("hartsift extract IMAGE", self.batch(*operands, "-o", "out", status=USAGE)[1])

    def test_names_ended_by_zero_bytes(self):
        names = ["line\nfeed.pgm", " space.pgm", "plain.pgm"]
        for name in names:
            self.write(name, blots(50, 40, 1))
        for ending in (b"", b"\0"):
            self.batch("-", "-0", "-o", "out", stdin=b"\0".join(name.encode() for name in names) + ending)
            self.assertEqual([row["image"] for row in self.manifest()], names)
        self.assertIn("--null", self.batch("-", "-o", "out", stdin=b"a.pgm\0b.pgm\0", status=USAGE)[1])

    def test_unreadable_lists(self):
        self.write("binary", b"\x89PNG\r\n\x1a\n\0\0\0\n")
        self.assertIn("no text", self.batch("binary", "-o", "out", status=USAGE)[1])
        self.assertIn("absent", self.batch("absent", "-o", "out", status=FAILED)[1])
        self.assertFalse(os.path.exists(self.path("out")))


class Options(BatchCase):
    def test_wrong_usage(self):
        self.list_of(scenes(1))
        self.write("file", b"")
        wrong = ((["--shard", "0/3"], "--shard"), (["--shard", "4/3"], "--shard"), (["--shard", "1"], "--shard"),
                 (["--shard", "1/3x"], "--shard"), (["--shard", "-1/3"], "--shard"), (["--jobs", "-1"], "--jobs"),
                 (["--devices", "gpu"], "--devices"), (["--devices", "cpu,cpu"], "twice"),
                 (["--devices", "cpu,"], "--devices: a name between commas"), (["--devices", "cpu", "--device", "cpu"], "one of them"),
                 (["--format", "xml"], "--format"), (["--keypoints", "x"], "--keypoints"),
                 (["--input-blur", "3"], "--input-blur"),
                 (["--descriptor", "none", "--format", "lowe"], "--format lowe"))
        for arguments, word in wrong:
            self.assertIn(word, self.batch("list.txt", "-o", "out", *arguments, status=USAGE)[1])
        self.assertIn("--output", self.batch("list.txt", status=USAGE)[1])
        self.assertIn("--output", self.batch("list.txt", "-o", "-", status=USAGE)[1])
        self.assertIn("python -m hartsift batch", self.batch("list.txt", "-o", "all.parquet", status=USAGE)[1])
        self.assertIn("'all.npz': expected a directory", self.batch("list.txt", "-o", "all.npz", status=USAGE)[1])
        self.assertFalse(os.path.exists(self.path("all.npz")))
        self.batch("list.txt", "-o", "all.npz/")
        self.assertTrue(os.path.isdir(self.path("all.npz")))
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
        output, errors = self.batch("list.txt", "-o", "out", "--json", "--quiet", "--devices", "cpu", status=FAILED)
        *records, last = [json.loads(line) for line in output.splitlines()]
        by_name = {record["image"]: record for record in records}
        self.assertEqual(sorted(by_name), sorted([*scenes(3), "absent.pgm"]))
        for row in self.manifest():
            record = by_name[row["image"]]
            self.assertEqual(record["status"], row["status"])
            self.assertEqual(record["digest"] or "", row["digest"])
            self.assertFalse(record["kept"])
        self.assertGreater(by_name["@scene:60x45:1"]["milliseconds"], 0)
        self.assertRegex(by_name["@scene:60x45:1"]["way"], "^cpu-")
        self.assertIsNone(by_name["absent.pgm"]["milliseconds"])
        self.assertRegex(by_name["@scene:60x45:1"]["way_reason"], "[a-z]")
        self.assertIsNone(by_name["absent.pgm"]["way"])
        self.assertIsNone(by_name["absent.pgm"]["way_reason"])
        self.assertEqual(errors.count("\n"), 1)
        summary = last["summary"]
        self.assertEqual([summary[key] for key in ("images", "done", "kept", "failed")], [4, 3, 0, 1])
        # The rate counts completed images. The seconds are rounded to thousandths, of which a quick run has few.
        self.assertLess(summary["images_per_second"] * (summary["seconds"] - 0.0005), 3.5)
        self.assertEqual(set(summary["cpu_seconds"]), {"read", "extract", "write"})
        self.assertEqual(set(summary["busy"]), {"read", "write", "devices"})
        for part in (summary["busy"]["read"], summary["busy"]["write"], *summary["busy"]["devices"]):
            self.assertTrue(0 <= part <= 1, summary)
        self.assertEqual(len(summary["busy"]["devices"]), 1)
        self.assertTrue(0 <= summary["first_second"] <= summary["seconds"], summary)
        self.assertEqual(summary["devices"], [{"device": "cpu", "images": 3}])
        output, _ = self.batch("list.txt", "-o", "out", "--json", "--quiet", "--resume", status=FAILED)
        self.assertEqual(json.loads(output.splitlines()[-1])["summary"]["kept"], 3)

    def test_progress_is_for_terminals(self):
        self.list_of(scenes(60, "160x120"))
        _, errors = self.batch("list.txt", "-o", "out", "--devices", "cpu")
        self.assertRegex(errors, r"^60 images: 60 done, 0 kept, 0 failed, [0-9.]+ s, [0-9.]+ a second on cpu\n$")
        for count in (60, 600, 6000):  # a run on a fast machine may end before the first line is due
            self.list_of(scenes(count, "160x120"))
            shown = self.batch_at_a_terminal()
            self.assertIn(f"{count} done", shown)
            if "left" in shown:
                break
        self.assertRegex(shown, rf"\r\[#* *\] \d+ of {count}, [0-9.]+ a second, [-0-9:]+ left")

    def batch_at_a_terminal(self):
        """Returns what a batch over the list shows."""
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
        return shown.decode()


class Failures(BatchCase):
    def test_broken_among_good(self):
        good = blots(60, 45, 1)
        for name, data in (("a.pgm", good), ("b.pgm", good[:200]), ("c.pgm", blots(60, 45, 2)),
                           ("d.png", b"\x89PNG\r\n\x1a\n"), ("e.jpg", b""), ("f.pgm", blots(60, 45, 3))):
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
        # Failed images, and only those, are tried again.
        self.write("images/b.pgm", good)
        _, errors = self.batch("images", "-o", "out", "--resume", status=FAILED)
        self.assertIn("1 done, 3 kept, 3 failed", errors)
        self.assertEqual(self.manifest()[1]["digest"], self.manifest()[0]["digest"])

    def test_two_images_with_one_output(self):
        self.write("images/a.pgm", blots(60, 45, 1))
        self.write("images/a.pnm", blots(60, 45, 2))
        _, errors = self.batch("images", "-o", "out", status=FAILED)
        self.assertIn("a.pnm: an earlier image has the same output a.npz", errors)
        self.batch("images", "-o", "colmap", "--format", "colmap")
        self.assertEqual(sorted(self.tree("colmap")), ["a.pgm.txt", "a.pnm.txt", "manifest.csv"])
        self.list_of(["images/a.pgm", "images/../images/a.pgm"])
        for arguments in ([], ["--resume"]):
            self.batch("list.txt", "-o", "twice", *arguments, status=FAILED)
            self.assertEqual([row["status"] for row in self.manifest("twice")], ["HS_OK", "HS_ERR_ARGUMENT"])

    def test_manifest_is_never_an_output(self):
        self.write("images/manifest.pgm", blots(60, 45, 1))
        self.write("images/x.pgm", blots(60, 45, 1))
        _, errors = self.batch("images", "-o", "out", "--format", "csv", status=FAILED)
        self.assertIn("name of a manifest", errors)
        self.assertEqual([row["status"] == "HS_OK" for row in self.manifest()], [False, True])

    def test_staging_folder_that_is_not_its_own(self):
        """A link in place of the folder, or other files in it, may have been made by somebody so that a batch deletes more
        than its own files."""
        self.list_of(scenes(1))
        self.write("precious/0.npz", b"features")
        os.makedirs(self.path("out"))
        os.symlink(self.path("precious"), self.path("out", ".hartsift-batch"))
        _, errors = self.batch("list.txt", "-o", "out", status=FAILED)
        self.assertIn(".hartsift-batch", errors)
        self.assertEqual(self.read("precious", "0.npz"), b"features")
        os.unlink(self.path("out", ".hartsift-batch"))
        self.write("out/.hartsift-batch/0.npz", b"left by a killed run")
        self.write("out/.hartsift-batch/letter.txt", b"foreign")
        _, errors = self.batch("list.txt", "-o", "out", status=FAILED)
        self.assertIn("letter.txt", errors)
        self.assertEqual(self.read("out/.hartsift-batch", "0.npz"), b"left by a killed run")
        os.unlink(self.path("out/.hartsift-batch", "letter.txt"))
        self.write("out/.hartsift-batch/.hartsift-0123456789abcdef.tmp", b"half")
        self.batch("list.txt", "-o", "out")
        self.assertEqual(sorted(self.tree()), ["manifest.csv", "scene_60x45_1.npz"])

    def test_staging_folder_of_another_user(self):
        self.list_of(scenes(1))
        if os.geteuid() != 0:
            self.skipTest("only the administrator can give a folder to another user")
        os.makedirs(self.path("out", ".hartsift-batch"))
        os.chown(self.path("out", ".hartsift-batch"), 65501, 65501)
        _, errors = self.batch("list.txt", "-o", "out", status=FAILED)
        self.assertIn("another user", errors)
        self.assertTrue(os.path.isdir(self.path("out", ".hartsift-batch")))

    def test_manifest_of_somebody_else(self):
        self.list_of(scenes(1))
        for name in ("manifest.csv", "manifest.journal"):
            for arguments in ([], ["--resume"]):
                self.write("out/" + name, b"image,label\n1.jpg,cat\n")
                _, errors = self.batch("list.txt", "-o", "out", *arguments, status=FAILED)
                self.assertIn(name, errors)
                self.assertEqual(self.tree(), {name: b"image,label\n1.jpg,cat\n"})
            os.unlink(self.path("out", name))
        self.batch("list.txt", "-o", "out")
        self.batch("list.txt", "-o", "out")

    def test_outputs_that_cannot_be_written(self):
        self.list_of(scenes(2))
        self.write("file", b"")
        self.assertIn("file/out", self.batch("list.txt", "-o", "file/out", status=FAILED)[1])
        # There is a folder where a file should be written. The other image succeeds.
        os.makedirs(self.path("out", "scene_60x45_1.npz"))
        _, errors = self.batch("list.txt", "-o", "out", status=FAILED)
        self.assertIn("scene_60x45_1.npz", errors)
        self.assertEqual([row["status"] for row in self.manifest()], ["HS_ERR_IO", "HS_OK"])

    def test_write_protected_folder(self):
        self.list_of(scenes(2))
        os.makedirs(self.path("out"))
        os.chmod(self.path("out"), 0o500)
        self.assertIn("out", self.batch("list.txt", "-o", "out", status=FAILED, preexec_fn=give_up_privileges)[1])

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
        arguments = ("list.txt", "--format", "vlfeat", "-o")  # formats whose outputs are smaller than the journal
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
            self.skipTest("needs root, to mount a small file system")
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


class Memory(BatchCase):
    def peak_kib(self, count):
        """Returns the peak resident memory of a run over this number of images of changing sizes."""
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

    # Sanitizers delay the release of memory.
    if not {"ASAN_OPTIONS", "TSAN_OPTIONS"} & os.environ.keys():
        def test_does_not_grow_with_the_number_of_images(self):
            few = self.peak_kib(200)
            many = self.peak_kib(2000)
            # Names and records take less than a KiB per image.
            self.assertLess(many, few + 1800 + 2048, f"{few} and {many} KiB")


if __name__ == "__main__":
    main()
