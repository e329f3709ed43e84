"""Subcommands stats, hist and convolve, and the options --grid and --equalize, through the command.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library; compares
with OpenCV if available.
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, DONE, FAILED, USAGE, CommandCase, main  # noqa: E402

WIDTH, HEIGHT = 53, 37


def sums(rows, x, y, width, height, threshold):
    """Returns the record of one tile, computed from its pixels."""
    pixels = [value for row in rows[y:y + height] for value in row[x:x + width]]
    return {"x": x, "y": y, "width": min(width, len(rows[0]) - x), "height": min(height, len(rows) - y),
            "sum": sum(pixels), "mean": sum(pixels) / len(pixels), "min": min(pixels), "max": max(pixels),
            "above": sum(value > threshold for value in pixels)}


class Case(CommandCase):
    def setUp(self):
        super().setUp()
        numbers = random.Random(7)
        self.rows = [[numbers.randrange(256) for _ in range(WIDTH)] for _ in range(HEIGHT)]
        self.write("image.pgm", b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + b"".join(bytes(row) for row in self.rows))

    def records(self, *arguments, **settings):
        return json.loads(self.run_it("stats", *arguments, "--json", **settings)[0])

    def assert_tiles(self, tiles, expected):
        self.assertEqual(len(tiles), len(expected))
        for tile, wanted in zip(tiles, expected):
            self.assertEqual(list(tile), list(wanted))
            self.assertAlmostEqual(tile.pop("mean"), wanted.pop("mean"), places=8)
            self.assertEqual(tile, wanted)


class Stats(Case):
    def test_whole_image(self):
        tiles = self.records("image.pgm")
        self.assertEqual(list(tiles), ["tiles"])
        self.assert_tiles(tiles["tiles"], [sums(self.rows, 0, 0, WIDTH, HEIGHT, 0)])

    def test_tiles_row_by_row(self):
        for width, height, threshold in ((20, 10, 127), (1, 1, 200.5), (500, 7, -1), (53, 37, 255)):
            tiles = self.records("image.pgm", "--tile", f"{width}x{height}", "--threshold", str(threshold))["tiles"]
            self.assert_tiles(tiles, [sums(self.rows, x, y, width, height, threshold)
                                      for y in range(0, HEIGHT, height) for x in range(0, WIDTH, width)])

    def test_csv_has_the_same(self):
        lines = self.run_it("stats", "image.pgm", "--tile", "20x10")[0].decode().splitlines()
        tiles = self.records("image.pgm", "--tile", "20x10")["tiles"]
        self.assertEqual(lines[0], "x,y,width,height,sum,mean,min,max,above")
        self.assertEqual([[float(value) for value in line.split(",")] for line in lines[1:]],
                         [[float(value) for value in tile.values()] for tile in tiles])

    def test_sixteen_bits(self):
        values = [0, 65535, 300, 4000]
        self.write("deep.pgm", b"P5 2 2 65535\n" + b"".join(value.to_bytes(2, "big") for value in values))
        tile = self.records("deep.pgm", "--threshold", "3999.5")["tiles"][0]
        self.assertEqual((tile["sum"], tile["min"], tile["max"], tile["above"]), (sum(values), 0, 65535, 2))

    def test_floats_without_a_range(self):
        def tiff(name, samples):
            data = struct.pack(f"<{len(samples)}f", *samples)
            entries = ((256, len(samples)), (257, 1), (258, 32), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1), (279, len(data)), (339, 3))
            self.write(name, b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(entries)) +
                       b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries) + bytes(4))
        tiff("heights.tif", [-300.0, 0.5, 2000.25])
        tile = self.records("heights.tif", "--threshold", "0.5")["tiles"][0]
        self.assertEqual((tile["sum"], tile["min"], tile["max"], tile["above"]), (1700.75, -300.0, 2000.25, 1))
        self.assertEqual(self.records("-", stdin=self.read("heights.tif"))["tiles"][0]["max"], 2000.25)
        tiff("gap.tif", [1.0, float("nan")])
        for command in ("stats", "hist"):
            errors = self.run_it(command, "gap.tif", status=FAILED)[1]
            self.assertIn("gap.tif: samples are NaN", errors)
            self.assertNotIn("mask", errors)
        self.assertIn("heights.tif: samples are -300 to 2000.25", self.run_it("hist", "heights.tif", status=FAILED)[1])
        tiff("below.tif", [-999.501343, -0.300690085])  # the range that the message proposes holds them
        limits = self.run_it("hist", "below.tif", status=FAILED)[1].split("such as ")[1].split()
        self.assertIn(b"255,1", self.run_it("hist", "below.tif", "--value-range", f"{limits[0]}:{limits[2]}")[0])

    def test_same_bytes_everywhere(self):
        expected = self.run_it("stats", "@scene:700x500", "--tile", "33x21", environment={"HARTSIFT_CPU": "ref"})[0]
        for threads in ("1", "3"):
            self.assertEqual(self.run_it("stats", "@scene:700x500", "--tile", "33x21", "--threads", threads)[0], expected)

    def test_outputs(self):
        plain = self.run_it("stats", "image.pgm")[0]
        self.assertEqual(self.run_it("stats", "-", stdin=self.read("image.pgm"))[0], plain)
        self.assertEqual(self.run_it("stats", "image.pgm", "-o", "tiles.csv"), (b"", ""))
        self.assertEqual(self.read("tiles.csv"), plain)
        self.run_it("stats", "image.pgm", "-o", "tiles.json")
        self.assertEqual(json.loads(self.read("tiles.json")), self.records("image.pgm"))
        for name in ("/dev/stdout", "/proc/self/fd/1"):  # an open file keeps what it has
            self.write("log", b"before\n")
            with open(self.path("log"), "ab") as log:
                subprocess.run([COMMAND, "stats", "image.pgm", "-o", name], cwd=self.folder, env=self.environment(), stdout=log, check=True)
            self.assertEqual(self.read("log"), b"before\n" + plain)
        with open(self.path("log"), "rb") as log:  # refused before the image is read
            name = f"/dev/fd/{log.fileno()}"
            run = subprocess.run([COMMAND, "stats", "absent.pgm", "-o", name], cwd=self.folder, env=self.environment(), check=False,
                                 pass_fds=[log.fileno()], stderr=subprocess.PIPE)
        self.assertEqual((run.returncode, run.stderr), (FAILED, f"hartsift stats: cannot write to {name}: it is not open for writing\n".encode()))

    def test_pipes_with_a_late_writer(self):
        os.mkfifo(self.path("pipe.pgm"))
        image = self.read("image.pgm")
        for data, arguments, status in ((image, ["stats"], DONE), (image, ["extract"], DONE), (image, ["draw", "-o", "drawn.ppm"], DONE),
                                        (b"", ["stats"], FAILED), (image[:90], ["extract"], FAILED)):
            command = subprocess.Popen([COMMAND, arguments[0], "pipe.pgm", *arguments[1:]], cwd=self.folder, env=self.environment(),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.1)
            self.assertIsNone(command.poll())
            self.write("pipe.pgm", data)
            output, errors = command.communicate(timeout=300)
            self.assertEqual(command.returncode, status, errors)
            if status == DONE:
                self.assertEqual(output, self.run_it(arguments[0], "image.pgm", *arguments[1:])[0])
            else:
                self.assertIn(b": pipe.pgm: the file is empty\n" if not data else b": pipe.pgm: damaged PNM", errors)

    def test_failures(self):
        for arguments, expected in ((["image.pgm", "--tile", "0x3"], "--tile"), (["image.pgm", "--tile", "3"], "WxH"),
                                    (["image.pgm", "--tile", "3x+4"], "WxH"), (["image.pgm", "x"], "'x'"),
                                    (["image.pgm", "--threshold", "nan"], "--threshold"), ([], "IMAGE")):
            self.assertIn(expected, self.run_it("stats", *arguments, status=USAGE)[1])
        self.assertIn("absent.pgm", self.run_it("stats", "absent.pgm", status=FAILED)[1])
        before = self.read("image.pgm")
        self.assertIn("overwrite", self.run_it("stats", "image.pgm", "-o", "image.pgm", status=FAILED)[1])
        self.assertEqual(self.read("image.pgm"), before)
        self.assertIn("none", self.run_it("stats", "image.pgm", "-o", "none/tiles.csv", status=FAILED)[1])


class Convolve(Case):
    """Signals are text, .npy and .bin. Expected values are computed by the definition."""

    def filtered(self, values, taps, ends):
        radius, last = len(taps) // 2, len(values) - 1

        def sample(i):
            if ends == "zero":
                return values[i] if 0 <= i <= last else 0.0
            if ends == "replicate":
                return values[min(max(i, 0), last)]
            while last > 0 and not 0 <= i <= last:
                i = -i if i < 0 else 2 * last - i
            return values[i if last > 0 else 0]
        return [sum(tap * sample(i + radius - j) for j, tap in enumerate(taps)) for i in range(len(values))]

    def numbers(self, *arguments, **settings):
        return [float(line) for line in self.run_it("convolve", *arguments, **settings)[0].decode().split()]

    def test_text(self):
        random_numbers = random.Random(3)
        for length in (1, 2, 3, 200):
            values = [random_numbers.gauss(0, 1) for _ in range(length)]
            text = "# noise\n\n" + "\n".join(map(repr, values))  # the last line has no line end
            self.write("signal.txt", text.encode())
            for ends in ("zero", "replicate", "reflect-101"):
                for option, taps in (("mean:5", [0.2] * 5), ("1,2.5,-3", [1, 2.5, -3]), ("@taps.txt", [0.5, 0.25, 0.125])):
                    self.write("taps.txt", b"0.5 0.25 0.125")
                    got = self.numbers("signal.txt", "--taps", option, "--ends", ends)
                    for value, expected in zip(got, self.filtered(values, taps, ends), strict=True):
                        self.assertAlmostEqual(value, expected, delta=1e-14)

    def test_forms_agree(self):
        values = [0.1 * i for i in range(50)]
        self.write("signal.txt", "\n".join(map(repr, values)).encode())
        self.write("signal.bin", struct.pack("<50d", *values))
        expected = self.numbers("signal.txt", "--taps", "gauss:1.5")
        self.assertAlmostEqual(expected[25], values[25], delta=1e-12)
        self.assertEqual(self.numbers("signal.bin", "--taps", "gauss:1.5"), expected)
        self.assertEqual(self.numbers("-", "--taps", "gauss:1.5", stdin=self.read("signal.txt")), expected)
        self.run_it("convolve", "signal.txt", "--taps", "gauss:1.5", "-o", "out.npy")
        self.assertEqual(list(struct.unpack("<50d", self.read("out.npy")[-400:])), expected)
        self.assertEqual(self.numbers("out.npy", "--taps", "1"), expected)
        self.run_it("convolve", "signal.txt", "--taps", "gauss:1.5", "-o", "out.bin")
        self.assertEqual(list(struct.unpack("<50d", self.read("out.bin"))), expected)
        printed = self.run_it("convolve", "signal.txt", "--taps", "gauss:1.5", "--json")[0]
        self.assertEqual(json.loads(printed), {"values": expected})
        for threads in ("1", "3"):
            self.assertEqual(self.numbers("signal.txt", "--taps", "gauss:1.5", "--threads", threads, environment={"HARTSIFT_CPU": "ref"}), expected)

    def write_floats(self, name, shape):
        """Writes 1, 2, 4, 8, ... as a NumPy array."""
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % repr(shape).encode()
        header += b" " * (128 - 10 - 1 - len(header)) + b"\n"
        count = math.prod(shape)
        self.write(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack(f"<{count}f", *(1 << i for i in range(count))))

    def test_rows_of_floats(self):
        self.write_floats("rows.npy", (2, 3))
        self.assertEqual(self.run_it("convolve", "rows.npy", "--taps", "0,0,1")[0], b"0 1 2\n0 8 16\n")
        self.run_it("convolve", "rows.npy", "--taps", "0,1,0", "-o", "same.npy")
        self.assertEqual(self.read("same.npy"), self.read("rows.npy"))
        self.assertEqual(json.loads(self.run_it("convolve", "rows.npy", "--taps", "1", "--json")[0]), {"values": [[1, 2, 4], [8, 16, 32]]})
        self.run_it("convolve", "rows.npy", "--taps", "1", "-o", "same.bin")
        self.assertEqual(struct.unpack("<6d", self.read("same.bin")), (1, 2, 4, 8, 16, 32))

    def test_failures(self):
        self.write("signal.txt", b"1\n2\nx3\n")
        self.write("odd.bin", b"12345")
        self.write("long.bin", bytes(480000))
        self.write("odd.txt", b"1 2 3")
        self.write("taps.txt", b"1 2 3")
        self.write("empty.txt", b"# nothing\n")
        self.write("table.txt", b"1 2 3\n# row\n4 5 6\n")
        self.write_floats("3.npy", (2, 1, 3))
        self.write_floats("table.npy", (3, 3))
        for arguments, expected in ((["signal.txt"], "--taps is missing"), (["signal.txt", "--taps", "mean:4"], "odd"),
                                    (["signal.txt", "--taps", "1,2"], "odd"), (["signal.txt", "--taps", "1,x,2"], "T1,T2"),
                                    (["signal.txt", "--taps", "1,,2"], "tap 2 is empty"), (["signal.txt", "--taps", "@"], "name of a file"), (["-", "--taps", "@-"], "both be standard input"),
                                    (["signal.txt", "--taps", "1", "--json", "-o", "x.npy"], "two formats"),
                                    (["signal.txt", "--taps", "gauss:0"], "gauss:SIGMA"),
                                    (["signal.txt", "--taps", "1", "--ends", "wrap"], "zero")):
            self.assertIn(expected, self.run_it("convolve", *arguments, status=USAGE)[1])
        for arguments, expected in ((["signal.txt", "--taps", "1"], "signal.txt:3"), (["odd.bin", "--taps", "1"], "doubles"),
                                    (["empty.txt", "--taps", "1"], "no number"), (["none", "--taps", "1"], "none: No such"),
                                    (["signal.txt", "--taps", "1", "-o", "signal.txt"], "overwrite"),
                                    (["signal.txt", "--taps", "@none"], "none"),
                                    (["odd.txt", "--taps", "@taps.txt", "-o", "taps.txt"], "overwrite"),
                                    (["table.txt", "--taps", "1"], "table.txt: 6 numbers in 2 lines: expected one number a line"),
                                    (["3.npy", "--taps", "1"], "3.npy: a NumPy array of more than two dimensions"),
                                    (["odd.txt", "--taps", "@table.npy"], "table.npy: a table of numbers"),
                                    (["signal.txt", "--taps", "1", "--max-memory", "1K"], "--max-memory"),
                                    (["long.bin", "--taps", "mean:16777215"], "products")):
            self.assertIn(expected, self.run_it("convolve", *arguments, status=FAILED)[1])
        self.assertEqual(self.read("signal.txt"), b"1\n2\nx3\n")


class Hist(Case):
    def test_deep_samples(self):
        values = [0, 255, 256, 65535, 65279, 40000]
        self.write("deep.pgm", b"P5 3 2 65535\n" + b"".join(value.to_bytes(2, "big") for value in values))
        for options, levels in (([], [value >> 8 for value in values]),
                                (["--value-range", "0:131072"], [value >> 9 for value in values])):
            counts = json.loads(self.run_it("hist", "deep.pgm", "--json", *options)[0])["histogram"]
            self.assertEqual(counts, [levels.count(level) for level in range(256)])
        self.assertIn("8 bits", self.run_it("hist", "deep.pgm", "--equalize", "out.png", status=FAILED)[1])

    def counts(self, keep=lambda x, y: True):
        counts = [0] * 256
        for y, row in enumerate(self.rows):
            for x, value in enumerate(row):
                counts[value] += keep(x, y)
        return counts

    def test_histogram(self):
        self.assertEqual(json.loads(self.run_it("hist", "image.pgm", "--json")[0]), {"histogram": self.counts()})
        lines = self.run_it("hist", "image.pgm")[0].decode().splitlines()
        self.assertEqual(lines, ["level,count"] + [f"{level},{count}" for level, count in enumerate(self.counts())])

    def test_mask(self):
        def keep(x, y):
            return (x * y) % 3 == 1
        self.write("mask.pgm", b"P5 %d %d 255\n" % (WIDTH, HEIGHT) +
                   bytes(9 * keep(x, y) for y in range(HEIGHT) for x in range(WIDTH)))
        output = self.run_it("hist", "image.pgm", "--json", "--mask", "mask.pgm")[0]
        self.assertEqual(json.loads(output), {"histogram": self.counts(keep)})
        self.write("small.pgm", b"P5 1 1 255\n\1")
        self.assertIn("mask", self.run_it("hist", "image.pgm", "--mask", "small.pgm", status=FAILED)[1])

    def test_equalize(self):
        output = self.run_it("hist", "image.pgm", "--json", "--equalize", "out.pgm")[0]
        self.assertEqual(json.loads(output), {"histogram": self.counts()})
        pixels = self.read("out.pgm")[-WIDTH * HEIGHT:]
        levels = {}
        for before, after in zip((value for row in self.rows for value in row), pixels):
            self.assertEqual(levels.setdefault(before, after), after)
        order = [levels[level] for level in sorted(levels)]
        self.assertEqual(order, sorted(order))
        self.assertEqual((order[0], order[-1]), (0, 255))

    def test_equalize_is_opencvs(self):
        try:
            import cv2  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("no OpenCV for Python")
        for values in (range(256), range(60, 90), (0, 0, 0, 7, 255), (9,)):
            pixels = bytes(random.Random(3).choices(list(values), k=301 * 173))
            self.write("in.pgm", b"P5 301 173 255\n" + pixels)
            self.run_it("hist", "in.pgm", "--equalize", "out.pgm")
            picture = cv2.imread(self.path("in.pgm"), cv2.IMREAD_GRAYSCALE)
            equalized = cv2.imread(self.path("out.pgm"), cv2.IMREAD_GRAYSCALE)
            self.assertTrue((cv2.equalizeHist(picture) == equalized).all())

    def test_failures(self):
        errors = self.run_it("hist", "image.pgm", "--equalize", "-", status=USAGE)[1]
        self.assertIn("standard output", errors)
        self.run_it("hist", "image.pgm", "--equalize", "x.png", "-o", "x.png", status=USAGE)
        # The other name denotes the same file, which can only be known when the file exists.
        errors = self.run_it("hist", "image.pgm", "--equalize", "y.pgm", "-o", "./y.pgm", status=FAILED)[1]
        self.assertIn("overwrite", errors)
        with open(self.path("y.pgm"), "rb") as file:
            self.assertEqual(file.read(2), b"P5")
        self.run_it("hist", "image.pgm", "--equalize", "y.pgm", "-o", "./y.pgm", status=USAGE)
        self.assertIn("overwrite", self.run_it("hist", "image.pgm", "--equalize", "image.pgm", status=FAILED)[1])
        self.write("mask.pgm", self.read("image.pgm"))
        for option in ("-o", "--equalize"):
            self.assertIn("overwrite", self.run_it("hist", "image.pgm", "--mask", "mask.pgm", option, "mask.pgm", status=FAILED)[1])
        self.assertEqual(self.read("mask.pgm"), self.read("image.pgm"))
        self.assertIn(".gif", self.run_it("hist", "image.pgm", "--equalize", "x.gif", status=FAILED)[1])


class Extraction(Case):
    def places(self, *arguments):
        lines = self.run_it("extract", "@scene:320x200", "--descriptor", "none", *arguments)[0].decode().splitlines()
        return [tuple(map(float, line.split(",")[:2])) for line in lines[1:]]

    def test_grid_spreads(self):
        plain = self.places("--max-features", "32")
        spread = self.places("--max-features", "32", "--grid", "8x4")
        self.assertEqual(len(spread), 32)

        def cells(places):
            return len({(int((x + 0.5) * 8 / 320), int((y + 0.5) * 4 / 200)) for x, y in places})
        self.assertGreater(cells(spread), cells(plain))
        errors = self.run_it("extract", "@scene:320x200", "--grid", "8x4", status=USAGE)[1]
        self.assertIn("--max-features is 0, expected how many", errors)
        for grid in ("8", "0x4", "4x", "5000x1"):
            errors = self.run_it("extract", "image.pgm", "--grid", grid, status=USAGE)[1]
            self.assertIn("--grid", errors)

    def test_equalize_first(self):
        self.run_it("hist", "@scene:320x200", "--equalize", "equalized.pgm", "-o", "counts.csv")
        expected = self.run_it("extract", "equalized.pgm")[0]
        self.assertEqual(self.run_it("extract", "@scene:320x200", "--equalize")[0], expected)
        self.assertNotEqual(self.run_it("extract", "@scene:320x200")[0], expected)
        self.write("deep.pgm", b"P5 20 20 65535\n" + bytes(800))
        self.assertIn("8-bit", self.run_it("extract", "deep.pgm", "--equalize", status=FAILED)[1])

    def test_draw_and_batch_take_them(self):
        self.run_it("draw", "@scene:320x200", "--equalize", "--grid", "3x2", "--max-features", "6", "-o", "x.ppm", "-q")
        os.mkdir(self.path("photos"))
        os.rename(self.path("image.pgm"), self.path("photos/image.pgm"))
        self.run_it("batch", "photos", "-o", "features", "--equalize", "--grid", "2x2", "--max-features", "4",
                    "--format", "csv", "--device", "cpu", "-q")
        alone = self.run_it("extract", "photos/image.pgm", "--equalize", "--grid", "2x2", "--max-features", "4")[0]
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self.path("features")) for name in names
                 if name.startswith("image") and name.endswith(".csv")]
        self.assertEqual(len(found), 1)
        with open(found[0], "rb") as file:
            self.assertEqual(file.read(), alone)


if __name__ == "__main__":
    main()
