"""Killed, interrupted and sharded runs of hartsift batch: --resume completes them to the result of an undisturbed run;
the same for databases.
"""
import fcntl
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest
import zlib

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, EndlessCase, blots, digest_of, scenes, waiting_in
from command_case import COMMAND, DONE, FAILED, USAGE, is_short, main
from exif_segment import position, with_exif


def journal_row(row):
    """Returns a journal row for a manifest row: with milliseconds, and the CRC-32 of everything before its comma."""
    row = row.rstrip(b"\n") + b",1.000"
    return row + b",%08x\n" % zlib.crc32(row)


class Resuming(EndlessCase):
    def test_changed_digit_in_a_journal(self):
        """An image whose row was altered is done again, and the manifest has the true digests."""
        self.list_of(scenes(3, "40x30"))
        self.batch("list.txt", "-o", "whole")
        title, head, columns, *rows = self.read("whole", "manifest.csv").splitlines(keepends=True)
        rows = [journal_row(row) for row in rows]
        fields = rows[1].split(b",")
        for place in range(1, 12):  # columns: width, height, features, both digests, status, error, the file's columns, milliseconds
            damaged = list(fields)
            damaged[place] = (b"1" if damaged[place][:1] != b"1" else b"2") + damaged[place][1:]
            ways = (b",".join(damaged), b",".join(damaged[:place] + [damaged[place] + b"\0"] + damaged[place + 1:]))
            for row in ways[place % 2:place % 2 + 1] if is_short() else ways:
                shutil.rmtree(self.path("out"), ignore_errors=True)
                shutil.copytree(self.path("whole"), self.path("out"))
                os.unlink(self.path("out", "manifest.csv"))
                journal = title + head + columns.replace(b"\n", b",milliseconds,check\n") + rows[0] + row + rows[2]
                self.write("out/manifest.journal", journal)
                self.assertIn("2 done, 1 kept", self.batch("list.txt", "-o", "out", "--resume")[1], row)
                self.assertEqual(self.tree(), self.tree("whole"))

    def test_keeps_what_is_intact(self):
        names = ["a.pgm", "b.pgm", "c.pgm", "d.pgm", "e.pgm"]
        for number, name in enumerate(names):
            self.write("images/" + name, blots(60, 45, number))
        self.batch("images", "-o", "out")
        files = self.tree()
        os.unlink(self.path("out", "a.npz"))
        self.write("out/b.npz", files["b.npz"][:-1])
        self.write("out/c.npz", files["c.npz"][:100] + b"?" + files["c.npz"][101:])
        self.write("images/d.pgm", blots(60, 45, 77))
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
        self.assertNotIn(b"dsp", self.read("out", "manifest.csv"))  # manifests without this option stay as they were before it existed
        self.assertNotIn(b"affine", self.read("out", "manifest.csv"))
        for arguments, word in ((["--contrast", "0.03"], "contrast=0.03"), (["--profile", "colmap"], "profile=colmap"),
                                (["--format", "csv"], "format=csv"), (["--upright"], "upright=1"),
                                (["--region", "1,2,30,30"], "region=1,2,30,30"), (["--no-exif"], "no-exif=1"),
                                (["--decode-scale", "2"], "decode-scale=2"), (["--dsp"], "dsp-sizes=4"),
                                (["--affine"], "affine=1")):
            _, errors = self.batch("list.txt", "-o", "out", "--resume", *arguments, status=USAGE)
            self.assertIn(word, errors)
            self.assertEqual(self.tree(), files)
        for arguments in (["--threads", "1"], ["--jobs", "2"], ["--device", "cpu"], ["--max-memory", "1G"],
                          ["--decode-scale", "1"]):
            self.assertIn("3 kept", self.batch("list.txt", "-o", "out", "--resume", *arguments)[1])
        self.batch("list.txt", "-o", "out", "--contrast", "0.03")
        self.assertNotEqual(self.tree(), files)

    def test_another_method_version_is_noticed(self):
        """Affine shapes have changed since version 2: features of that version are not continued."""
        self.list_of(scenes(2))
        self.batch("list.txt", "-o", "out", "--affine")
        self.assertIn("2 kept", self.batch("list.txt", "-o", "out", "--affine", "--resume")[1])
        manifest = self.read("out", "manifest.csv")
        self.assertIn(b"# method=3 ", manifest)
        self.write("out/manifest.csv", manifest.replace(b"# method=3 ", b"# method=2 "))
        files = self.tree()
        _, errors = self.batch("list.txt", "-o", "out", "--affine", "--resume", status=USAGE)
        self.assertIn("method=3", errors)
        self.assertEqual(self.tree(), files)

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
        journal = b"# hartsift batch 1\n" + head + columns.replace(b"\n", b",milliseconds,check\n")
        start = len(journal)
        journal += b"".join(map(journal_row, rows))
        generator = random.Random(5)
        cuts = [0, 5, start - 1, start, start + 1, len(journal) - 1, len(journal)]
        cuts += [generator.randrange(len(journal)) for _ in range(2 if is_short() else 8)]
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
        self.endless_list_of(scenes(2))
        first = self.start("endless.txt", "-o", "out", "--devices", "cpu", "--jobs", "1")
        self.wait_for(lambda: self.rows_done() > 0)  # then the run has the journal's lock
        self.assertIn("another run", self.batch("list.txt", "-o", "out", "--resume", status=FAILED)[1])
        self.assertIn("another run", self.batch("list.txt", "-o", "out", status=FAILED)[1])
        self.end(first, signal.SIGINT)

    def test_staging_folder_keeps_what_others_put_there(self):
        """Files that appear while the batch runs stay, and so does their folder."""
        self.endless_list_of(scenes(2))
        run = self.start("endless.txt", "-o", "out", "--jobs", "1")
        self.wait_for(lambda: self.rows_done() > 0)
        self.write("out/.hartsift-batch/letter.txt", b"foreign")
        self.end(run, signal.SIGINT)
        self.assertEqual(os.listdir(self.path("out", ".hartsift-batch")), ["letter.txt"])
        self.assertEqual(self.read("out/.hartsift-batch", "letter.txt"), b"foreign")

    def test_signals_stop_cleanly(self):
        self.endless_list_of(scenes(20, "120x90"))
        self.batch("list.txt", "-o", "whole")
        for number in (signal.SIGINT, signal.SIGTERM):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            run = self.start("endless.txt", "-o", "out", "--jobs", "1", "--threads", "1")
            self.wait_for(lambda: self.rows_done() >= 3)
            self.assertIn(f"stopped by {number.name}", self.end(run, number))
            self.assertEqual([name for name in os.listdir(self.path("out")) if name.startswith(".")], [])
            done = self.rows_done()
            self.assertEqual(len([name for name in os.listdir(self.path("out")) if name.endswith(".npz")]), done)
            self.assertGreaterEqual(done, 3)
            self.assertIn(f"{min(done, 20)} kept", self.batch("list.txt", "-o", "out", "--resume")[1])
            self.assert_same_outputs()

    @unittest.skipUnless(hasattr(fcntl, "F_SETPIPE_SZ"), "the size of a pipe cannot be set")
    def test_signals_are_seen_while_nobody_reads_standard_output(self):
        self.list_of(scenes(2000, "20x20"))
        run = self.start("list.txt", "-o", "out", "--json", "--devices", "cpu")
        try:
            room = fcntl.fcntl(run.stdout, fcntl.F_SETPIPE_SZ, 4096)
            self.assertLess(room, 2000 * 50, "the pipe holds the records of all images")
            self.wait_for(lambda: waiting_in(run.stdout) > room - 1024)  # the pipe is full except for a few records
            looks = []
            while len(looks) < 10 or len(set(looks[-10:])) > 1:  # until nothing more arrives
                looks.append((self.rows_done(), waiting_in(run.stdout)))
                time.sleep(0.1)
            self.assertIsNone(run.poll())
            until = time.monotonic() + 300
            while run.poll() is None and time.monotonic() < until:  # the first signal stops the batch, the second one ends it
                run.send_signal(signal.SIGTERM)
                time.sleep(0.3)
            self.assertIn(run.poll(), (-signal.SIGTERM, FAILED))  # FAILED: the last records did fit into the pipe
        finally:
            run.kill()
            run.communicate()
        shutil.rmtree(self.path("out"))

    def test_signals_reach_no_other_thread(self):
        if not os.path.isdir("/proc/self/task"):
            self.skipTest("no /proc")
        self.endless_list_of(scenes(2))
        run = self.start("endless.txt", "-o", "out", "--threads", "2")
        try:
            self.wait_for(lambda: self.rows_done() >= 2)
            blocked = []
            for thread in os.listdir(f"/proc/{run.pid}/task"):
                with open(f"/proc/{run.pid}/task/{thread}/status", encoding="ascii") as file:
                    blocked += [int(line.split()[1], 16) for line in file if line.startswith("SigBlk:")]
            self.assertGreater(len(blocked), 2)
            for number in (signal.SIGINT, signal.SIGTERM):
                self.assertTrue(all(mask >> (number - 1) & 1 for mask in blocked), blocked)
        finally:
            run.kill()
            run.communicate()

    def test_ignored_signals_stay_ignored(self):
        self.list_of(scenes(30, "120x90"))
        for number in (signal.SIGINT, signal.SIGTERM):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            # A signal is ignored from the start, as by nohup and by a shell without job control for background
            # processes.
            run = self.start("list.txt", "-o", "out", "--jobs", "1", "--threads", "1",
                             preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
            self.wait_for(lambda: self.rows_done() >= 2 or run.poll() is not None)
            run.send_signal(number)
            errors = run.communicate(timeout=300)[1].decode()
            self.assertEqual(run.returncode, DONE, errors)
            self.assertIn("30 done", errors)

    def test_killed_at_any_moment(self):
        self.endless_list_of(scenes(25 if is_short() else 50, "120x90"))
        self.batch("list.txt", "-o", "whole")
        generator = random.Random(1)
        for _ in range(2 if is_short() else 4):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            for _ in range(3 if is_short() else 4):
                run = self.start("endless.txt", "-o", "out", "--resume")
                wanted = self.rows_done() + generator.randrange(0, 12)
                self.wait_for(lambda: self.rows_done() >= wanted)
                self.end(run, signal.SIGKILL)
            self.batch("list.txt", "-o", "out", "--resume")
            self.assert_same_outputs()

    def test_killed_while_the_manifest_is_written(self):
        """The next run removes leftovers of a killed run. Files that another process writes, and files that are no
        leftovers, stay."""
        self.list_of(scenes(2))
        self.batch("list.txt", "-o", "whole")
        os.makedirs(self.path("out"))
        shutil.copytree(self.path("whole"), self.path("out"), dirs_exist_ok=True)
        left, written, other = ".hartsift-0123456789abcdef.tmp", ".hartsift-fedcba9876543210.tmp", ".hartsift-notes"
        for name in (left, written, other):
            self.write("out/" + name, b"# hartsift batch 1\n# meth")
        with open(self.path("out", written), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the name of a shard's manifest while it is written
            self.batch("list.txt", "-o", "out", "--resume")
            hidden = sorted(name for name in os.listdir(self.path("out")) if name.startswith("."))
        self.assertEqual(hidden, [written, other])
        self.assertEqual(self.read("out", "manifest.csv"), self.read("whole", "manifest.csv"))


class Sources(BatchCase):
    """Photographs are changed, replaced by others, touched, or removed."""

    def setUp(self):
        super().setUp()
        for name in "abc":
            self.write(f"images/{name}.pgm", blots(120, 90, ord(name)))

    def replace(self, name, data, keeps_times=True):
        """Replaces a photograph as cp -p, rsync -a, or a copy from another card would."""
        path = self.path("images", name)
        info = os.stat(path)
        self.write("images/" + name, data)
        if keeps_times:
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))

    def outputs(self):
        yield "out"
        info = subprocess.run([COMMAND, "info", "--json"], capture_output=True, check=False)
        if json.loads(info.stdout)["build"].get("sqlite"):
            yield "out.db"

    def rows(self, output):
        return self.manifest("", output + ("/" if output == "out" else ".") + "manifest.csv")

    def ask(self, sql, *parameters, name="out.db"):
        return super().ask(sql, *parameters, name=name)

    def test_rows_tell_what_was_read(self):
        self.batch("images", "-o", "out")
        for row in self.rows("out"):
            info = os.stat(self.path("images", row["image"]))
            self.assertEqual((row["source_bytes"], row["source_time"]), (str(info.st_size), str(info.st_mtime_ns)))
            self.assertEqual(row["source_digest"], digest_of(self.read("images", row["image"])))
        self.list_of([*scenes(1), "images/a.pgm"])
        self.batch("list.txt", "-o", "scenes")
        self.assertEqual([bool(row["source_digest"]) for row in self.manifest("scenes")], [False, True])

    def test_changed_photographs_are_done_again(self):
        """The file has the same size, and the same or an older time, so its content decides."""
        for output in self.outputs():
            self.batch("images", "-o", output)
            before = {row["image"]: row["digest"] for row in self.rows(output)}
            self.replace("a.pgm", blots(120, 90, 7))
            old = os.stat(self.path("images", "b.pgm")).st_mtime - 1e6
            self.replace("b.pgm", blots(120, 90, 8), keeps_times=False)
            os.utime(self.path("images", "b.pgm"), (old, old))
            out, errors = self.batch("images", "-o", output, "--resume", "--json")
            self.assertIn("2 done, 1 kept, 0 failed, 2 changed since they were done", errors)
            self.assertEqual(json.loads(out.splitlines()[-1])["summary"]["changed"], 2)
            after = {row["image"]: row["digest"] for row in self.rows(output)}
            self.assertEqual([after[name] == before[name] for name in ("a.pgm", "b.pgm", "c.pgm")], [False, False, True])
            self.batch("images", "-o", "whole" + output)
            self.assertEqual(self.rows("whole" + output) if output != "out" else self.tree("wholeout"),
                             self.rows(output) if output != "out" else self.tree("out"))
            self.assertNotIn("changed", self.batch("images", "-o", output, "--resume")[1])
            for name in "ab":
                self.replace(f"{name}.pgm", blots(120, 90, ord(name)))

    def test_touched_photographs_are_kept(self):
        for output in self.outputs():
            self.batch("images", "-o", output)
            later = time.time() + 50
            os.utime(self.path("images", "a.pgm"), (later, later))
            self.assertIn("3 kept", self.batch("images", "-o", output, "--resume")[1])
            self.assertIn(str(os.stat(self.path("images", "a.pgm")).st_mtime_ns), self.rows(output)[0]["source_time"])

    def test_removed_photographs_are_named(self):
        for output in self.outputs():
            self.batch("images", "-o", output)
            os.unlink(self.path("images", "b.pgm"))
            out, errors = self.batch("images", "-o", output, "--resume", "--json")
            self.assertIn(f"b.pgm: is gone; its features stay in {output}\n", errors)
            self.assertIn("2 kept, 0 failed, 1 gone", errors)
            self.assertEqual(json.loads(out.splitlines()[-1])["summary"]["gone"], 1)
            self.assertNotIn("gone", self.batch("images", "-o", output, "--resume")[1])
            self.write("images/b.pgm", blots(120, 90, ord("b")))
        names = ["images/a.pgm", "images/b.pgm", *scenes(2)]
        self.list_of(names)
        self.batch("list.txt", "-o", "listed")
        self.list_of(names[1:3])  # an image that is missing from the list is kept
        os.unlink(self.path("images", "b.pgm"))
        _, errors = self.batch("list.txt", "-o", "listed", "--resume")
        self.assertIn("images/b.pgm: is gone", errors)
        self.assertIn("2 kept, 0 failed, 1 gone", errors)

    def test_features_of_the_old_photograph_go_with_their_matches(self):
        if "out.db" not in list(self.outputs()):
            self.skipTest("built without SQLite")
        self.batch("images", "-o", "out.db")
        subprocess.run([COMMAND, "match", "--database", "out.db", "--quiet", "--no-verify"], cwd=self.folder, check=True)
        pairs = "SELECT pair_id / 2147483647, pair_id % 2147483647 FROM matches ORDER BY pair_id"
        self.assertEqual(self.ask(pairs), [(1, 2), (1, 3), (2, 3)])
        self.replace("a.pgm", blots(160, 100, 9))  # another picture of another size
        self.assertIn("1 done, 2 kept", self.batch("images", "-o", "out.db", "--resume")[1])
        self.assertEqual(self.ask(pairs), [(2, 3)])
        self.assertEqual(self.ask("SELECT width, height FROM cameras JOIN images USING (camera_id) WHERE name = 'a.pgm'"),
                         [(160, 100)])
        self.assertIn("3 kept", self.batch("images", "-o", "out.db", "--resume")[1])
        # Files that the batch did not write stay without --replace.
        self.ask("UPDATE keypoints SET data = zeroblob(length(data)) WHERE image_id = 2")
        self.replace("b.pgm", blots(120, 90, 10))
        self.assertIn("--replace", self.batch("images", "-o", "out.db", "--resume", status=FAILED)[1])
        # If several images share a camera, the camera stays. The new picture gets the camera that a single run would
        # give it.
        cameras = "SELECT name, camera_id, width, height FROM cameras JOIN images USING (camera_id) ORDER BY name"
        self.batch("images", "-o", "shared.db", "--single-camera")
        self.replace("c.pgm", blots(100, 90, 11))
        self.batch("images", "-o", "shared.db", "--single-camera", "--resume")
        resumed = self.ask(cameras, name="shared.db")
        self.assertEqual(resumed, [("a.pgm", 1, 160, 100), ("b.pgm", 2, 120, 90), ("c.pgm", 3, 100, 90)])
        self.batch("images", "-o", "one.db", "--single-camera")
        self.assertEqual(self.ask(cameras, name="one.db"), resumed)

    def test_position_of_the_new_photograph(self):
        if "out.db" not in list(self.outputs()):
            self.skipTest("built without SQLite")
        for name in ("a", "b"):
            self.run_it("draw", f"@scene:120x90:{ord(name)}", "-o", f"{name}.jpg", "-q", "--max-features", "1")
        self.write("photos/x.jpg", with_exif(self.read("a.jpg"), gps=position(10.5, 20.5, 30)))
        self.batch("photos", "-o", "out.db")
        self.write("photos/x.jpg", with_exif(self.read("b.jpg"), gps=position(-40.5, 50.5, 60)))
        self.batch("photos", "-o", "out.db", "--resume")
        (found,), = self.ask("SELECT position FROM pose_priors")
        self.assertEqual([round(value, 6) for value in struct.unpack("<3d", found)], [-40.5, 50.5, 60])
        self.write("photos/x.jpg", self.read("a.jpg"))  # a file without a known header may belong to somebody else
        self.batch("photos", "-o", "out.db", "--resume")
        self.assertEqual(self.ask("SELECT position FROM pose_priors"), [(found,)])

    def test_what_changes_while_it_is_read_is_done_again(self):
        self.batch("images", "-o", "out")
        manifest = self.read("out", "manifest.csv")
        digest = self.rows("out")[1]["source_digest"].encode()
        self.write("out/manifest.csv", manifest.replace(digest, b""))  # manifest as an earlier version left it
        self.assertIn("1 done, 2 kept", self.batch("images", "-o", "out", "--resume")[1])
        self.assertEqual(self.read("out", "manifest.csv"), manifest)

    def earlier(self, data):
        """Returns a manifest of the previous version, without the columns of the photographs."""
        head, rows = data.splitlines(keepends=True)[:2], data.splitlines()[2:]
        return b"".join([*head, *(b",".join(row.split(b",")[:8]) + b"\n" for row in rows)])

    def test_manifests_of_earlier_versions(self):
        for output in self.outputs():
            self.batch("images", "-o", output)
            name = output + ("/" if output == "out" else ".") + "manifest.csv"
            whole = self.read(name)
            self.write(name, self.earlier(whole))
            self.assertIn("3 kept", self.batch("images", "-o", output, "--resume")[1])
            self.assertEqual(self.read(name), whole)
            self.replace("c.pgm", blots(120, 90, 20))
            self.assertIn("1 done, 2 kept", self.batch("images", "-o", output, "--resume")[1])
            self.replace("c.pgm", blots(120, 90, ord("c")))
        # A journal keeps the columns of its first run.
        self.batch("images", "-o", "out")
        title, head, columns, *rows = self.earlier(self.read("out", "manifest.csv")).splitlines(keepends=True)
        whole = self.tree()
        os.unlink(self.path("out", "manifest.csv"))
        os.unlink(self.path("out", "c.npz"))
        journal = title + head + columns.replace(b"\n", b",milliseconds,check\n") + b"".join(map(journal_row, rows[:2]))
        self.write("out/manifest.journal", journal)
        self.write("images/d.pgm", b"P5 broken")
        self.assertIn("1 done, 2 kept, 1 failed", self.batch("images", "-o", "out", "--resume", status=FAILED)[1])
        os.unlink(self.path("images", "d.pgm"))
        self.assertIn("3 kept", self.batch("images", "-o", "out", "--resume")[1])
        self.assertEqual(self.tree(), whole)


class Shards(BatchCase):
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
        # The documented way to a single manifest is one more run with --resume.
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


class Databases(EndlessCase):
    @classmethod
    def setUpClass(cls):
        cls.need_databases()

    def size(self, name):
        return os.path.getsize(self.path(name)) if os.path.exists(self.path(name)) else 0

    def content(self, name="out.db"):
        """Returns the results of every image, in the order of image numbers."""
        return self.ask(
            "SELECT i.image_id, i.camera_id, i.name, k.rows, k.data, d.data FROM images i "
            "JOIN keypoints k USING (image_id) JOIN descriptors d USING (image_id) ORDER BY i.image_id", name=name)

    def test_images_stand_in_order(self):
        names = ["b.pgm", "a/c.pgm", "a/b/d.pgm"]
        for name in names:
            self.write("images/" + name, blots(60, 45, len(name)))
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
        self.ask("DELETE FROM keypoints WHERE image_id = 2", name="out.db")
        self.ask("DELETE FROM descriptors WHERE image_id IN (2, 3)", name="out.db")
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
        self.assertIn("--replace", self.batch("list.txt", "-o", "out.db", "--edge", "3", status=FAILED)[1])
        self.assertEqual(self.content(), before)
        self.assertIn("2 kept", self.batch("list.txt", "-o", "out.db", "--resume")[1])  # the existing manifest shows that both are done
        self.list_of(scenes(3, "120x90"))
        self.batch("list.txt", "-o", "out.db", "--edge", "3", status=FAILED)  # this run does one image
        self.assertEqual([row["status"] == "HS_OK" for row in self.manifest("", "out.db.manifest.csv")], [False, False, True])
        self.batch("list.txt", "-o", "out.db", "--edge", "3", "--replace")
        self.assertNotEqual(self.content()[:2], before)

    def test_wrong_usage(self):
        self.list_of(scenes(1))
        os.makedirs(self.path("folder"))
        self.write("file.db", b"no database at all, but long enough to be looked at" * 9)
        self.batch("list.txt", "-o", "folder", "--format", "colmap-db", status=USAGE)
        self.batch("list.txt", "-o", "folder", "--replace", status=USAGE)
        self.batch("list.txt", "-o", "file.db", status=FAILED)
        self.batch("list.txt", "-o", "absent/out.db", status=FAILED)

    def test_killed_at_any_moment(self):
        count = 25 if is_short() else 50
        self.endless_list_of(scenes(count, "120x90"))
        self.batch("list.txt", "-o", "whole.db")
        generator = random.Random(2)
        for number in range(4 if is_short() else 6):
            rows = self.size("out.db.manifest.journal")
            run = self.start("endless.txt", "-o", "out.db", "--resume")
            # In every other round, kills between two commits, which are a second apart; in the others, before or after
            # a commit.
            self.wait_for(lambda: self.size("out.db.manifest.journal") > (rows if number % 2 else 0))
            time.sleep(0.3 * generator.random())  # the moment is arbitrary, because the result does not depend on it
            self.end(run, signal.SIGKILL)
        self.batch("list.txt", "-o", "out.db", "--resume")
        self.assertEqual(self.content()[:count], self.content("whole.db"))
        self.assertEqual(self.read("out.db.manifest.csv"), self.read("whole.db.manifest.csv"))


if __name__ == "__main__":
    main()
