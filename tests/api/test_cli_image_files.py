"""Metadata of image files, and messages about files that are damaged, reduced copies, or use little of their sample
range.

Every file is made here. Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's
standard library.
"""
import contextlib
import json
import os
import sqlite3
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, FAILED, USAGE, main  # noqa: E402
from batch_case import BatchCase, blots  # noqa: E402
from exif_segment import equivalent_focal_length, focal_plane, orientation, position, with_exif  # noqa: E402

WIDTH, HEIGHT = 97, 71
BYTE, SHORT, LONG, DOUBLE = 1, 3, 4, 12
SIZES = {BYTE: "B", SHORT: "H", LONG: "I", DOUBLE: "d"}


def gray():
    """Returns gray samples of a picture with structure, row by row."""
    data = blots(WIDTH, HEIGHT, 7)[-WIDTH * HEIGHT:]
    return [data[y * WIDTH:(y + 1) * WIDTH] for y in range(HEIGHT)]


def chunk(name, data, checksum=0):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data) ^ checksum)


def png(rows, bits=8, before=b"", after=b"", end=True):
    """Returns a gray PNG from rows of bytes. before, after: chunks before and after the pixels."""
    width = len(rows[0]) * 8 // bits
    header = struct.pack(">IIBBBBB", width, len(rows), bits, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    half = len(data) // 2
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", data[:half]) +
            chunk(b"IDAT", data[half:]) + after + (chunk(b"IEND", b"") if end else b""))


def exif_chunk(*entries, checksum=0):
    """Returns an eXIf chunk. Entries have the form of with_exif."""
    segment = with_exif(b"\xff\xd8", *entries)[6:]
    return chunk(b"eXIf", segment[6:], checksum)


class Page:
    """A page of a little-endian TIFF, in one strip."""

    def __init__(self, width, height, data, photometric=1, bits=(8,), extra=(), sub=()):
        self.data, self.sub = data, sub
        self.entries = {256: (LONG, [width]), 257: (LONG, [height]), 258: (SHORT, bits), 259: (SHORT, [1]),
                        262: (SHORT, [photometric]), 273: (LONG, [0]), 277: (SHORT, [len(bits)]),
                        278: (LONG, [height]), 279: (LONG, [len(data)]), **{e[0]: e[1:] for e in extra}}

    def put(self, out, next_page):
        """Appends strip and directory. next_page sets the offset of the next page. Returns the directory's offset."""
        below = [page.put(out, 0) for page in self.sub]
        strip = len(out)
        out += self.data + bytes(len(self.data) % 2)
        entries = {**self.entries, 273: (LONG, [strip]), **({330: (LONG, below)} if below else {})}
        at = len(out)
        outside = at + 2 + 12 * len(entries) + 4
        body, tail = struct.pack("<H", len(entries)), b""
        for tag in sorted(entries):
            kind, values = entries[tag]
            packed = struct.pack(f"<{len(values)}{SIZES[kind]}", *values)
            if len(packed) > 4:
                packed, tail = struct.pack("<I", outside + len(tail)), tail + packed + bytes(len(packed) % 2)
            body += struct.pack("<HHI", tag, kind, len(values)) + packed.ljust(4, b"\0")
        out += body + struct.pack("<I", next_page) + tail
        return at


def tiff(*pages):
    """Returns a TIFF of pages in this order. They are written from the last to the first."""
    out, following = bytearray(b"II*\0\0\0\0\0"), 0
    for page in reversed(pages):
        following = page.put(out, following)
    out[4:8] = struct.pack("<I", following)
    return bytes(out)


def gray_page(rows, **settings):
    return Page(len(rows[0]), len(rows), b"".join(rows), **settings)


def words(rows, of=lambda value: value):
    """Returns rows of 16-bit samples."""
    return [struct.pack(f"<{len(row)}H", *map(of, row)) for row in rows]


def gray16(rows, of, **settings):
    return Page(WIDTH, HEIGHT, b"".join(words(rows, of)), bits=(16,), **settings)


class ImageCase(BatchCase):
    def record(self, name, *options, **settings):
        """Returns the JSON record of extract, and its standard error."""
        output, errors = self.extract(name, "--json", "-o", "out.npz", "-q", *options, **settings)
        return json.loads(output), errors

    def camera_and_place(self, name):
        self.need_databases()
        self.extract(name, "-o", name + ".db", "-q")
        with contextlib.closing(sqlite3.connect(self.path(name + ".db"))) as database:
            width, height, params, prior = database.execute(
                "SELECT width, height, params, prior_focal_length FROM cameras").fetchone()
            place = database.execute("SELECT position FROM pose_priors").fetchone()
        return (width, height, round(struct.unpack_from("<d", params)[0], 6), prior,
                None if place is None else struct.unpack("<3d", place[0]))


class ExifOfPng(ImageCase):
    ENTRIES = (orientation(6), equivalent_focal_length(24), position(47.5, -8.25, 400.0))

    def test_all_that_the_chunk_says(self):
        self.run_it("draw", "@scene:97x71:5", "--contrast", "1", "-o", "plain.jpg", "-q")
        self.write("a.jpg", with_exif(self.read("plain.jpg"), *self.ENTRIES))
        expected = self.camera_and_place("a.jpg")
        self.assertEqual(expected[3], 1)
        for name, settings in (("before.png", {"before": exif_chunk(*self.ENTRIES)}),
                               ("after.png", {"after": exif_chunk(*self.ENTRIES)})):
            self.write(name, png(gray(), **settings))
            self.assertEqual(self.camera_and_place(name), expected, name)

    def test_orientation(self):
        rows = gray()
        self.write("stored.png", png(rows))
        turned = [bytes(rows[HEIGHT - 1 - x][y] for x in range(HEIGHT)) for y in range(WIDTH)]
        self.write("seen.png", png(turned))
        deep = [b"".join(bytes([v, 255 - v]) for v in row) for row in rows]
        turned_deep = [b"".join(deep[HEIGHT - 1 - x][2 * y:2 * y + 2] for x in range(HEIGHT)) for y in range(WIDTH)]
        self.write("deep_seen.png", png(turned_deep, 16))
        for place in ("before", "after"):
            self.write("turned.png", png(rows, **{place: exif_chunk(orientation(6))}))
            self.write("deep.png", png(deep, 16, **{place: exif_chunk(orientation(6))}))
            self.assertEqual(self.features("turned.png"), self.features("seen.png"))
            self.assertEqual(self.features("deep.png"), self.features("deep_seen.png"))
            self.assertEqual(self.features("turned.png", "--no-exif"), self.features("stored.png"))
            record = self.record("turned.png", "--max-memory", "500M")[0]
            self.assertEqual((record["width"], record["height"]), (HEIGHT, WIDTH))

    def test_a_chunk_with_a_wrong_checksum_says_nothing(self):
        self.write("a.png", png(gray(), before=exif_chunk(orientation(6), checksum=1)))
        record, errors = self.record("a.png")
        self.assertEqual((record["width"], record["height"]), (WIDTH, HEIGHT))
        self.assertIn("eXIf", errors)

    def test_focal_plane_without_a_unit_is_of_inches(self):
        """In EXIF 2.32 the default of FocalPlaneResolutionUnit is 2, inches."""
        entries = focal_plane(7.0, 5080.0, 2)
        self.write("with.png", png(gray(), before=exif_chunk([], entries)))
        self.write("without.png", png(gray(), before=exif_chunk([], entries[:2])))
        self.assertEqual(self.camera_and_place("with.png")[2:4], (1400.0, 1))
        self.assertEqual(self.camera_and_place("without.png")[2:4], (1400.0, 1))


class Pages(ImageCase):
    REDUCED = ((254, LONG, [1]),)
    OLD_REDUCED = ((255, SHORT, [2]),)

    def setUp(self):
        super().setUp()
        self.rows = gray()
        self.small = [row[::3] for row in self.rows[::3]]
        self.write("full.tif", tiff(gray_page(self.rows)))
        self.expected = self.features("full.tif")

    def test_full_page_is_taken(self):
        for extra in (self.REDUCED, self.OLD_REDUCED):
            thumbnail = gray_page(self.small, extra=extra)
            files = {"next": tiff(thumbnail, gray_page(self.rows)),
                     "third": tiff(thumbnail, gray_page(self.small, extra=extra), gray_page(self.rows)),
                     "below": tiff(gray_page(self.small, extra=extra, sub=(gray_page(self.rows),)))}
            for name, data in files.items():
                self.write(name + ".tif", data)
                self.assertEqual(self.features(name + ".tif"), self.expected, name)
        self.write("unsaid.tif", tiff(gray_page(self.small, sub=(gray_page(self.rows),))))
        self.assertEqual(self.features("unsaid.tif"), self.expected)

    def test_masks_are_passed_over(self):
        """A page that is the transparency mask of another page is skipped. Alone it is an ordinary picture."""
        white = [b"\xff" * len(row) for row in self.rows]
        mask = gray_page(white, extra=((254, LONG, [4]),))
        for pages in ((mask, gray_page(self.rows)), (mask, gray_page(self.small, extra=self.REDUCED), gray_page(self.rows))):
            self.write("a.tif", tiff(*pages))
            self.assertEqual(self.features("a.tif"), self.expected)
        self.write("a.tif", tiff(mask))
        self.assertEqual(self.features("full.tif", "--mask", "a.tif"), self.expected)

    def test_first_page_stays_where_nothing_says_otherwise(self):
        mask = gray_page(self.rows, extra=((254, LONG, [4]),))
        for pages in ((gray_page(self.rows), gray_page(self.small, extra=self.REDUCED)),
                      (gray_page(self.rows, sub=(gray_page(self.small, extra=self.REDUCED), mask)),)):
            self.write("a.tif", tiff(*pages))
            self.assertEqual(self.features("a.tif"), self.expected)

    def test_copies_alone_and_raw_data_are_refused(self):
        version = (50706, BYTE, [1, 4, 0, 0])
        raw = gray_page(self.rows, photometric=32803, extra=((33421, SHORT, [2, 2]), (33422, BYTE, [0, 1, 1, 2])))
        files = {"alone": (tiff(gray_page(self.small, extra=self.REDUCED)), "reduced copies"),
                 "raw_below": (tiff(gray_page(self.small, extra=(*self.REDUCED, version), sub=(raw,))), "raw data"),
                 "raw_next": (tiff(gray_page(self.small, extra=(version,)), raw), "raw data"),
                 "raw": (tiff(raw), "raw data"),
                 "no_raw": (tiff(gray_page(self.small, extra=(*self.REDUCED, version))), "develop")}
        for name, (data, reason) in files.items():
            self.write(name + ".dng", data)
            self.assertIn(reason, self.extract(name + ".dng", "-q", status=FAILED)[1], name)


class Samples(ImageCase):
    def setUp(self):
        super().setUp()
        self.rows = gray()

    def same_as_8_bits(self, *arguments):
        """Checks that there are about as many features as in the 8-bit picture."""
        self.write("eight.png", png(self.rows))
        expected = len(self.features("eight.png"))
        found = len(self.features(*arguments))
        self.assertGreater(expected, 20)
        self.assertLess(abs(found - expected), 0.1 * expected + 2, arguments)

    def test_cmyk(self):
        """Without ink other than black, CMYK is gray."""
        data = b"".join(bytes([0, 0, 0, 255 - value]) for row in self.rows for value in row)
        self.write("a.tif", tiff(Page(WIDTH, HEIGHT, data, photometric=5, bits=(8,) * 4)))
        deep = b"".join(struct.pack("<4H", 0, 0, 0, 65535 - 257 * value) for row in self.rows for value in row)
        self.write("deep.tif", tiff(Page(WIDTH, HEIGHT, deep, photometric=5, bits=(16,) * 4)))
        self.write("gray.png", png(self.rows))
        self.assertEqual(self.features("a.tif"), self.features("gray.png"))
        self.same_as_8_bits("deep.tif")

    def test_signed_and_float(self):
        kinds = {"int16": ("h", 16, 2, lambda v: v * 20 - 2560, "-2560:2540"),
                 "int32": ("i", 32, 2, lambda v: v * 1000 - 128000, "-128000:127000"),
                 "float": ("f", 32, 3, lambda v: v * 0.5 - 10, "-10:117.5"),
                 "double": ("d", 64, 3, lambda v: v * 3.0 + 1e4, "10000:10765")}
        for name, (letter, bits, sample_format, of, value_range) in kinds.items():
            data = b"".join(struct.pack(f"<{WIDTH}{letter}", *map(of, row)) for row in self.rows)
            page = {"bits": (bits,), "extra": ((339, SHORT, [sample_format]),)}
            self.write(name + ".tif", tiff(Page(WIDTH, HEIGHT, data, **page)))
            self.same_as_8_bits(name + ".tif", f"--value-range={value_range}")
            errors = self.extract(name + ".tif", "-q", status=FAILED)[1]
            self.assertIn("give a value range", errors)
            low, high = map(float, value_range.split(":"))
            page["extra"] += ((340, DOUBLE, [low]), (341, DOUBLE, [high]))
            self.write(name + "_said.tif", tiff(Page(WIDTH, HEIGHT, data, **page)))
            self.same_as_8_bits(name + "_said.tif")
            self.run_it("draw", name + ".tif", "-o", "a.png", f"--value-range={value_range}", "-q")

    def test_float_from_0_to_1_needs_no_range(self):
        data = b"".join(struct.pack(f"<{WIDTH}f", *(v / 255 for v in row)) for row in self.rows)
        self.write("a.tif", tiff(Page(WIDTH, HEIGHT, data, bits=(32,), extra=((339, SHORT, [3]),))))
        self.same_as_8_bits("a.tif")
        self.run_it("stats", "a.tif", "-o", "stats.json")
        self.write("nan.tif", tiff(Page(WIDTH, HEIGHT, struct.pack("<f", float("nan")) + data[4:], bits=(32,),
                                        extra=((339, SHORT, [3]),))))
        self.assertIn("NaN", self.extract("nan.tif", "-q", status=FAILED)[1])
        self.write("large.tif", tiff(Page(WIDTH, HEIGHT, struct.pack("<f", 1.2e38) + data[4:], bits=(32,), extra=((339, SHORT, [3]),))))
        self.assertIn("such as 0 to 1.2", self.run_it("hist", "large.tif", status=FAILED)[1])
        self.assertIn(b"\n255,1\n", self.run_it("hist", "large.tif", "--value-range", "0:1.2e38")[0])
        self.assertIn("from -1.5e+38 to 1.5e+38", self.run_it("hist", "large.tif", "--value-range", "0:2e38", status=USAGE)[1])

    def test_low_range_is_said_and_mended(self):
        twelve = [b"".join(struct.pack(">H", v * 4095 // 255) for v in row) for row in self.rows]
        thermal = [b"".join(struct.pack(">H", 29500 + 3 * v) for v in row) for row in self.rows]
        for name, rows, value_range in (("twelve.png", twelve, "0:4095"), ("thermal.png", thermal, "29500:30265")):
            self.write(name, png(rows, 16))
            record, errors = self.record(name)
            self.assertLess(record["features"], 5)
            self.assertIn("warning", errors)
            self.assertIn("--value-range", errors)
            self.assertEqual(self.record(name, "--value-range", value_range)[1], "")
            self.same_as_8_bits(name, "--value-range", value_range)
            for command in (["match", name, name], ["draw", name, "-o", "a.ppm", "-q"]):
                self.assertEqual(self.run_it(*command)[1].count("--value-range"), 1 + (command[0] == "match"))
                self.assertNotIn("warning", self.run_it(*command, "--value-range", value_range)[1])
        self.assertIn("such as 0 to 4095", self.record("twelve.png")[1])
        full = [b"".join(struct.pack(">H", v * 257) for v in row) for row in self.rows]
        self.write("full.png", png(full, 16))
        self.assertEqual(self.record("full.png")[1], "")

    def test_declared_range(self):
        page = gray16(self.rows, lambda v: v * 4095 // 255, extra=((281, SHORT, [4095]),))
        self.write("a.tif", tiff(page))
        self.assertEqual(self.record("a.tif")[1], "")
        self.same_as_8_bits("a.tif")
        self.write("b.tif", tiff(gray16(self.rows, lambda v: 7000 + 3 * v, extra=((280, SHORT, [7000]),
                                                                                  (281, SHORT, [7765])))))
        self.same_as_8_bits("b.tif")
        self.write("wrong.tif", tiff(gray16(self.rows, lambda v: v * 257, extra=((281, SHORT, [255]),))))
        self.same_as_8_bits("wrong.tif")

    def test_range_of_a_picture_that_is_not_held(self):
        """Decoded row by row, within a limit that the float samples exceed, the picture has the same features."""
        rows = [b"".join(struct.pack(">H", row[x // 12] * 4095 // 255) for x in range(12 * WIDTH)) for row in self.rows]
        self.write("a.png", png([row for row in rows for _ in range(12)], 16))
        ranged = ["a.png", "--value-range", "0:4095", "--first-octave", "1", "--threads", "1"]
        expected = self.features(*ranged)
        self.assertGreater(len(expected), 20)
        self.assertEqual(self.features(*ranged, "--max-memory", "3800K"), expected)
        self.assertIn("as floats", self.extract(*ranged, "--mask", "a.png", "--max-memory", "3800K", "-q", status=FAILED)[1])

    def test_wrong_ranges(self):
        self.write("a.png", png(self.rows))
        for text in ("1", "2:1", "1:1", "a:b", "0:nan", ":", "0:", "0,5"):
            self.assertIn("LOW:HIGH", self.extract("a.png", f"--value-range={text}", status=USAGE)[1])
        self.assertIn("give a value range", self.extract("a.png", "--value-range=0:1", status=FAILED)[1])

    def test_batch(self):
        os.mkdir(self.path("photos"))
        twelve = [b"".join(struct.pack(">H", v * 4095 // 255) for v in row) for row in self.rows]
        for name in "abc":
            self.write(f"photos/{name}.png", png(twelve, 16))
        errors = self.run_it("batch", "photos", "-o", "out", "-q")[1]
        self.assertEqual(errors.count("samples are"), 1)
        self.assertIn("3 of 3 images done use little of the range", errors)
        ranged = ["batch", "photos", "-o", "ranged", "-q", "--value-range", "0:4095"]
        self.assertEqual(self.run_it(*ranged)[1], "")
        self.assertEqual(self.run_it(*ranged, "--resume")[1], "")
        errors = self.run_it(*ranged[:5], "-q", "--resume", status=USAGE)[1]
        self.assertIn("value-range", errors)


class Damage(ImageCase):
    """Files that their decoder accepts and reports as damaged."""

    def setUp(self):
        super().setUp()
        self.run_it("draw", "@scene:97x71:5", "--contrast", "1", "-o", "plain.jpg", "-q")
        self.jpeg = self.read("plain.jpg")
        self.assertEqual(self.jpeg[-2:], b"\xff\xd9")
        rows = gray()
        two = tiff(gray_page(rows))
        self.sound = {"a.jpg": self.jpeg, "b.png": png(rows, before=chunk(b"tEXt", b"Title\0x")), "c.tif": two}
        self.damaged = {
            "surplus.jpg": self.jpeg[:-2] + bytes(40) + self.jpeg[-2:],
            "no_end.jpg": self.jpeg[:-2],
            "between.jpg": self.jpeg[:2] + b"\xff\xfe\x00\x04ab" + b"xyz" + self.jpeg[2:],
            "version.jpg": self.jpeg.replace(b"JFIF\0\1", b"JFIF\0\7", 1),
            "text.png": png(rows, before=chunk(b"tEXt", b"Title\0x", 1)),
            "text_after.png": png(rows, after=chunk(b"tEXt", b"Title\0x", 1)),
            "cut.png": png(rows, end=False),
            "counted.tif": tiff(gray_page(rows, extra=((274, SHORT, [1, 1, 1]),))),
        }

    def test_sound_files_say_nothing(self):
        for name, data in self.sound.items():
            self.write(name, data)
            self.assertEqual(self.record(name, "--strict")[1], "", name)
        self.write("later.jpg", self.jpeg + b"\xff\xd8\xff\xd9 what follows the end marker is another file's")
        self.assertEqual(self.record("later.jpg", "--strict")[1], "")

    def test_damage_is_named_and_strict_refuses(self):
        for name, data in self.damaged.items():
            self.write(name, data)
            record, errors = self.record(name)
            self.assertIn(f"warning: {name}: ", errors, name)
            self.assertIn("--strict", errors)
            self.assertGreater(record["features"], 5)
            for command in (["extract"], ["match", "a.csv"], ["draw", "-o", "a.png"], ["stats"], ["hist"]):
                if command[0] == "match":
                    self.write("a.csv", self.extract(name, "--format", "csv")[0])
                errors = self.run_it(command[0], name, *command[1:], "--strict", status=FAILED)[1]
                self.assertIn(name, errors, command)
            # The picture is now read without being held in memory.
            self.assertEqual(self.record(name, "--max-memory", "500M")[1].count("warning"), 1)
            self.extract(name, "--max-memory", "500M", "--strict", "-q", status=FAILED)

    def test_pixels_are_those_of_the_sound_file(self):
        self.write("a.png", self.sound["b.png"])
        self.write("text.png", self.damaged["text.png"])
        self.assertEqual(self.features("text.png"), self.features("a.png"))

    def test_pixels_with_a_wrong_checksum_are_refused(self):
        data = self.sound["b.png"]
        at = data.index(b"IDAT") + 20
        self.write("a.png", data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        self.assertIn("damaged PNG", self.extract("a.png", "-q", status=FAILED)[1])

    def test_batch_counts_and_names(self):
        for name, data in {**self.sound, **self.damaged}.items():
            self.write(os.path.join("photos", name), data)
        errors = self.run_it("batch", "photos", "-o", "out", "-q")[1]
        for name in self.damaged:
            self.assertEqual(errors.count(f"{name}: lib") + errors.count(f"{name}: the end"), 1, errors)
        total = len(self.sound) + len(self.damaged)
        self.assertIn(f"decoders reported damage in {len(self.damaged)} of {total} images done", errors)
        errors = self.run_it("batch", "photos", "-o", "strict", "-q", "--strict", status=FAILED)[1]
        self.assertEqual(sum(name in errors for name in self.damaged), len(self.damaged))
        self.assertEqual(len(self.files("strict")) - 1, len(self.sound))


class Streams(ImageCase):
    """A stream is read only up to the header that shows that it is no image."""
    MOST = 64 << 20

    def taken(self, start, *options):
        """Returns the number of bytes read from an endless stream, and the message."""
        run = subprocess.Popen([COMMAND, "extract", "-", "-o", "out.npz", *options], cwd=self.folder,
                               env=self.environment(), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        count, data = 0, start + bytes(1 << 16)
        with contextlib.suppress(BrokenPipeError), run.stdin as pipe:
            while count < self.MOST:
                pipe.write(data)
                count += len(data)
                data = bytes(1 << 16)
        errors = run.stderr.read().decode()
        run.stderr.close()
        self.assertEqual(run.wait(), FAILED)
        return count, errors

    def test_refused_by_the_header(self):
        def segment(marker, data):
            return bytes([0xff, marker]) + struct.pack(">H", len(data) + 2) + data

        def png_header(width, height, depth=8, colour=0):
            return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))

        frame = struct.pack(">BHHB", 8, 60000, 60000, 1) + b"\1\x11\0"
        scan = segment(0xda, b"\1\1\0\0\x3f\0")
        bmp = b"BM" + bytes(8) + struct.pack("<IIiiHHI", 54, 40, 100, 100, 1, 8, 1) + bytes(20)
        webp = b"RIFF\xff\xff\xff\x7fWEBPVP8X" + struct.pack("<I", 10) + b"\2\0\0\0" + b"\x63\0\0" * 2
        self.assertIn(b"VP8X", webp)
        cases = [(b"P5 100000 100000 255\n", "more than the limit", ()), (b"P5 100 100 70000\n", "the maximum", ()),
                 (b"P7\nWIDTH 9\nHEIGHT 9\nDEPTH 7\nMAXVAL 255\nENDHDR\n", "depth 7", ()),
                 (b"P5 9000 9000 255\n", "--max-pixels is 1000", ("--max-pixels", "1000")),
                 (b"P5 30000 30000 255\n", "decoding 30000 x 30000", ("--max-memory", "64M")),
                 (b"P5 100 100 255\n", "only a JPEG", ("--decode-scale", "2")),
                 (png_header(100000, 100000) + chunk(b"IDAT", b""), "more than the limit", ()),
                 (png_header(100, 100, depth=7), "damaged PNG", ()),
                 (b"\xff\xd8" + segment(0xc0, frame) + scan, "more than the limit", ()),
                 (b"\xff\xd8" + segment(0xe1, bytes(60000)) * 4 + segment(0xc0, frame) + scan, "more than the limit", ()),
                 (bmp, "compression", ()), (webp, "WebP", ())]
        for start, reason, options in cases:
            count, errors = self.taken(start, *options)
            self.assertIn(reason, errors, start[:40])
            self.assertLess(count, 4 << 20, start[:40])

    def test_streams_that_become_images(self):
        for name, data in (("a.png", png(gray())), ("b.pgm", blots(900, 700, 3)), ("c.tif", tiff(gray_page(gray())))):
            self.write(name, data)
            self.assertEqual(self.features("-", stdin=data), self.features(name), name)
        self.run_it("draw", "@scene:900x700:5", "--contrast", "1", "-o", "d.jpg", "-q")
        self.assertEqual(self.features("-", stdin=self.read("d.jpg")), self.features("d.jpg"))


if __name__ == "__main__":
    main()
