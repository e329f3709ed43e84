"""What tests of hartsift batch share: running it, stopping it, and reading the manifests and outputs that it leaves."""
import csv
import io
import os
import random
import subprocess
import time

from command_case import COMMAND, CommandCase


def blots(width, height, seed):
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


class BatchCase(CommandCase):
    def list_of(self, names, name="list.txt"):
        return self.write(name, "".join(line + "\n" for line in names).encode("utf-8", "surrogateescape"))

    def start(self, *arguments, **settings):
        settings.setdefault("stdin", subprocess.DEVNULL)
        settings.setdefault("stdout", subprocess.PIPE)
        settings.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([COMMAND, "batch", *arguments], cwd=self.folder, env=self.environment(), **settings)

    def batch(self, *arguments, **settings):
        """Runs it; returns standard output (bytes) and standard error (text)."""
        return self.run_it("batch", *arguments, **settings)

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
