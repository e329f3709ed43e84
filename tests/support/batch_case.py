"""Shared parts of the tests of hartsift batch: running it, stopping it, and reading its manifests and outputs."""
import csv
import fcntl
import io
import os
import random
import signal
import struct
import subprocess
import termios
import time
import unittest

from command_case import COMMAND, FAILED, CommandCase, built_with, is_short


def blots(width, height, seed):
    """Returns a PGM file with blots, which give features."""
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


def fnv(data, digest=0xCBF29CE484222325):
    """Returns the 64-bit FNV-1a hash."""
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def digest_of(data):
    """Returns the digest that manifests contain: FNV-1a over eight FNV-1a digests, of every eighth byte from the first,
    the second, ... on."""
    return f"{fnv(b''.join(fnv(data[lane::8]).to_bytes(8, 'little') for lane in range(8))):016x}"


def scenes(count, size="60x45"):
    return [f"@scene:{size}:{seed}" for seed in range(1, count + 1)]


def manifest_rows(data):
    """Returns the rows of a manifest or journal, as dictionaries."""
    text = data.decode("utf-8", "surrogateescape")
    title, settings, rest = text.split("\n", 2)
    assert title == "# hartsift batch 1" and settings.startswith("# method="), text[:200]
    return list(csv.DictReader(io.StringIO(rest)))


def waiting_in(pipe):
    """Returns the number of bytes in a pipe that nobody has read yet."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0]


class BatchCase(CommandCase):
    @staticmethod
    def need_databases():
        if not built_with("sqlite"):
            raise unittest.SkipTest("built without SQLite")

    def list_of(self, names, name="list.txt"):
        return self.write(name, "".join(line + "\n" for line in names).encode("utf-8", "surrogateescape"))

    def start(self, *arguments, **settings):
        settings.setdefault("stdin", subprocess.DEVNULL)
        settings.setdefault("stdout", subprocess.PIPE)
        settings.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([COMMAND, "batch", *arguments], cwd=self.folder, env=self.environment(), **settings)

    def batch(self, *arguments, **settings):
        """Runs hartsift batch; returns standard output (bytes) and standard error (text)."""
        return self.run_it("batch", *arguments, **settings)

    def manifest(self, folder="out", name="manifest.csv"):
        return manifest_rows(self.read(folder, name))

    def tree(self, folder="out"):
        """Returns every file below a folder with its bytes."""
        found = {}
        for root, folders, names in os.walk(self.path(folder)):
            for name in names:
                path = os.path.join(root, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.path(folder))] = file.read()
            self.assertTrue(names or folders or root == self.path(folder), f"empty folder {root}")
        return found

    def wait_for(self, condition):
        until = time.monotonic() + 300
        while not condition() and time.monotonic() < until:
            time.sleep(0.005)
        self.assertTrue(condition())

    def rows_done(self):
        try:
            return self.read("out", "manifest.journal").count(b"\n") - 3
        except OSError:
            return 0


class EndlessCase(BatchCase):
    """A list that begins with the images that tests check and is so long that no run reaches its end. The test's signal
    ends the run, however fast the machine is."""

    def endless_list_of(self, names):
        size = "160x120" if is_short() else "320x240"
        self.list_of(names)
        self.list_of([*names, *(f"@scene:{size}:{seed}" for seed in range(1, 20001))], "endless.txt")

    def assert_same_outputs(self):
        """Checks the outputs of the first images; outputs of others may also exist."""
        found, expected = self.tree(), self.tree("whole")
        self.assertEqual({name: found.get(name) for name in expected}, expected)

    def end(self, run, number):
        run.send_signal(number)
        errors = run.communicate(timeout=300)[1].decode()
        self.assertEqual(run.returncode, -signal.SIGKILL if number == signal.SIGKILL else FAILED, errors)
        return errors
