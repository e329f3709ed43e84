"""The command hartsift at a terminal: widths of help and progress, binary output, messages in terms of its options; and
limits of the shell (ulimit), under which nothing half done remains.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import contextlib
import fcntl
import json
import os
import pty
import re
import resource
import sqlite3
import struct
import subprocess
import sys
import termios

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, blots, scenes  # noqa: E402
from command_case import COMMAND, DONE, FAILED, NO_DEVICE, USAGE, built_with, main, pgm  # noqa: E402

SUBCOMMANDS = ("extract", "batch", "match", "merge", "draw", "stats", "hist", "convolve", "info", "selftest", "bench")


class Terminals(BatchCase):
    def at_terminal(self, *arguments, columns=80, stream="stderr", environment=()):
        """Runs the command with one of its streams at a terminal of this width; returns the status and that stream's
        output."""
        terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: inner}
        run = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, env={**self.environment(), **dict(environment)},
                               stdin=subprocess.DEVNULL, **streams)
        os.close(inner)
        shown = b""
        try:
            while piece := os.read(terminal, 65536):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(terminal)
        return run.wait(), shown.decode()

    def assert_wrapped(self, text, columns):
        """Checks the widths of lines. Only a line without a space at which to break may be wider."""
        for line in text.splitlines():
            if len(line) > columns:
                self.assertNotIn(" ", line.strip(), f"{columns}: {line}")

    def test_help_at_any_width(self):
        plain = {command: self.run_it(*command, "--help", environment={"COLUMNS": ""})[0].decode()
                 for command in ((), *((name,) for name in SUBCOMMANDS))}
        for command, text in plain.items():
            self.assert_wrapped(text, 80)
            for columns in (12, 20, 33, 57, 120, 400):
                narrow = self.run_it(*command, "--help", environment={"COLUMNS": str(columns)})[0].decode()
                self.assert_wrapped(narrow, columns)
                self.assertEqual(narrow.split(), text.split())
            for senseless in ("0", "-5", "x", "99999999999"):
                self.assertEqual(self.run_it(*command, "--help", environment={"COLUMNS": senseless})[0].decode(), text)
        self.assertGreater(len(plain["extract",].splitlines()), len(self.run_it("extract", "--help", environment={"COLUMNS": "120"})[0].splitlines()))

    def test_help_at_a_terminal(self):
        for columns in (24, 60):
            status, shown = self.at_terminal("match", "--help", columns=columns, stream="stdout", environment={"COLUMNS": ""})
            self.assertEqual(status, DONE)
            self.assert_wrapped(shown, columns)
        self.assertEqual(self.at_terminal("match", "--help", columns=200, stream="stdout", environment={"COLUMNS": ""})[1].replace("\r", ""),
                         self.run_it("match", "--help", environment={"COLUMNS": ""})[0].decode())

    def test_without_arguments(self):
        output, errors = self.run_it(status=USAGE)
        self.assertEqual(output, b"")
        for command in SUBCOMMANDS:
            self.assertRegex(errors, rf"\n  {command} +\w")

    def test_progress_within_the_width(self):
        count = 40
        for columns in (8, 20, 36, 60, 200):
            drawn = []
            while not drawn and count < 10000:
                self.list_of(scenes(count, "160x120"))
                status, shown = self.at_terminal("batch", "list.txt", "-o", "out", columns=columns)
                self.assertEqual(status, DONE)
                drawn = re.findall(r"\r([^\r\n]+)\x1b\[K", shown)
                if not drawn:  # the run ended before the first line was due
                    count *= 5
            self.assertTrue(drawn)
            self.assertTrue(all(len(line) < columns for line in drawn), drawn)
            self.assertEqual(any("[" in line for line in drawn), columns >= 60)

    if built_with("sqlite"):
        def test_progress_of_the_search_for_pairs(self):
            self.extract(*scenes(3, "160x120"), "-o", "d.db", "-q")
            for columns in (20, 80):
                status, shown = self.at_terminal("match", "--database", "d.db", "--pairs", "retrieval:1", "--replace", columns=columns)
                self.assertEqual(status, DONE)
                drawn = re.findall(r"\r([^\r\n]+)\x1b\[K", shown)
                self.assertTrue(all(len(line) < columns for line in drawn), drawn)
                for step in ("learning from images", "describing images", "blending images", "comparing images", "comparing pairs"):
                    self.assertIn(f"{step}: 0 of 3"[:columns - 1], shown)
            for more in (["-q"], []):
                self.assertNotIn("images: ", self.run_it("match", "--database", "d.db", "--pairs", "retrieval:1", *more)[1])
            with contextlib.closing(sqlite3.connect(self.path("d.db"))) as database, database:
                database.execute("UPDATE descriptors SET data = x'00' WHERE image_id = 3")
            status, shown = self.at_terminal("match", "--database", "d.db", "--pairs", "retrieval:1", "--replace")
            self.assertEqual(status, FAILED)
            self.assertRegex(shown, r"\r\x1b\[Khartsift match: d\.db: ")  # the line is removed first

    def test_what_is_no_text_is_kept_from_terminals(self):
        self.write("photo.pgm", blots(60, 45, 1))
        for name in ("npz", "bin", "visualsfm"):
            for output in ([], ["-o", "-"]):
                status, shown = self.at_terminal("extract", "photo.pgm", "--format", name, *output, stream="stdout")
                self.assertEqual((status, shown), (USAGE, ""))
                self.assertTrue(self.extract("photo.pgm", "--format", name, *output)[0])
        for arguments in (["draw", "photo.pgm", "-o", "-"], ["hist", "photo.pgm", "--equalize", "-", "-o", "hist.csv"]):
            self.assertEqual(self.at_terminal(*arguments, stream="stdout"), (USAGE, ""))
            self.assertTrue(self.run_it(*arguments)[0])
        status, shown = self.at_terminal("extract", "photo.pgm", stream="stdout")
        self.assertEqual(status, DONE)
        self.assertIn("orientation", shown)
        output, inner = pty.openpty()
        self.addCleanup(os.close, output)
        self.addCleanup(os.close, inner)
        _, errors = self.extract("photo.pgm", "--format", "npz", stdout=inner, status=USAGE)
        self.assertIn("--format npz is not text, and standard output is a terminal: expected -o FILE", errors)


class Messages(BatchCase):
    def test_limits_are_named_as_options(self):
        self.write("photo.pgm", pgm(2000, 1500))
        for arguments in (["extract", "photo.pgm", "-o", "f.npz", "--json"], ["batch", "list", "-o", "out", "--json"],
                          ["draw", "photo.pgm", "-o", "x.png"], ["stats", "photo.pgm"], ["match", "photo.pgm", "photo.pgm"]):
            self.write("list", b"photo.pgm\n")
            for option, value in (("--max-memory", "1M"), ("--max-memory", "5M"), ("--max-pixels", "1000")):
                output, errors = self.run_it(*arguments, option, value, status=FAILED)
                self.assertIn(option, errors)
                self.assertNotRegex(errors + output.decode(), "max_(memory_bytes|pixels)")
                if "--json" in arguments:
                    self.assertIn(option, json.loads(output.splitlines()[0])["error"])
        os.rename(self.path("photo.pgm"), self.path("max_memory_bytes.pgm"))
        self.assertIn("max_memory_bytes.pgm", self.extract("max_memory_bytes.pgm", "--max-memory", "1M", status=FAILED)[1])

    def test_options_are_named_as_options(self):
        self.write("deep.pgm", b"P5 60 40 65535\n" + bytes(range(240)) * 20)
        for arguments in (["extract", "deep.pgm", "-o", "f.npz"], ["batch", "deep", "-o", "out"], ["match", "deep.pgm", "deep.pgm"]):
            self.write("deep", b"deep.pgm\n")
            errors = self.run_it(*arguments, "--equalize", status=FAILED)[1]
            self.assertIn("deep.pgm: --equalize is for 8-bit images", errors)
        errors = self.extract("deep.pgm", "-o", "f.npz", "--device", "cpu", "--decoder", "gpu", status=NO_DEVICE)[1]
        self.assertIn("--decoder asks for a GPU", errors)

    def test_equal_names_of_a_database(self):
        self.need_databases()
        for name in ("a/x.pgm", "b/x.pgm"):
            self.write(name, blots(60, 45, len(name)))
        _, errors = self.extract("a/x.pgm", "b/x.pgm", "-o", "d.db", status=FAILED)
        self.assertIn("b/x.pgm: an earlier image has the same name x.pgm; --image-path DIR tells", errors)
        self.extract("a/x.pgm", "b/x.pgm", "-o", "e.db", "--image-path", ".")
        _, errors = self.extract("a/x.pgm", "a/x.pgm", "-o", "f.db", "--image-path", ".", status=FAILED)
        self.assertNotIn("--image-path", errors)

    def test_bench_says_how_long_it_takes(self):
        arguments = ("@scene:64x48", "@scene:128x96", "--repeats", "3", "--threads", "1", "--device", "cpu")
        _, errors = self.run_it("bench", *arguments)
        self.assertRegex(errors, r"^2 images, 1 way of each: about \d+ s\n$")
        self.assertEqual(self.run_it("bench", *arguments, "--json")[1].count("\n"), 1)  # standard output has only the records


class Limits(BatchCase):
    """Tests the signal that ulimit -f causes."""

    def limit(self, kind, value):
        return lambda: resource.setrlimit(kind, (value, resource.RLIM_INFINITY))

    def test_files_that_grow_too_large(self):
        self.write("photo.pgm", blots(400, 300, 1))
        for name in ("f.npz", "f.csv", "f.json", "f.hsf"):
            _, errors = self.extract("photo.pgm", "-o", name, status=FAILED, preexec_fn=self.limit(resource.RLIMIT_FSIZE, 4096))
            self.assertIn("File too large", errors)
            self.assertEqual(self.files(), ["photo.pgm"])
        _, errors = self.run_it("draw", "photo.pgm", "-o", "x.ppm", status=FAILED, preexec_fn=self.limit(resource.RLIMIT_FSIZE, 4096))
        self.assertEqual(self.files(), ["photo.pgm"])
        self.list_of(["photo.pgm"])
        self.batch("list.txt", "-o", "out", status=FAILED, preexec_fn=self.limit(resource.RLIMIT_FSIZE, 4096))
        self.assertEqual([row["status"] for row in self.manifest()], ["HS_ERR_IO"])
        self.assertEqual(list(self.tree()), ["manifest.csv"])

    def test_databases_that_grow_too_large(self):
        self.need_databases()
        self.write("photo.pgm", blots(400, 300, 1))
        for size in (4096, 40960, 140000):
            _, errors = self.extract("photo.pgm", "-o", "d.db", status=FAILED, preexec_fn=self.limit(resource.RLIMIT_FSIZE, size))
            self.assertIn("(File too large); nothing of the open transaction was kept", errors)
            self.extract("photo.pgm", "-o", "d.db")
            os.unlink(self.path("d.db"))


if __name__ == "__main__":
    main()
