"""The command hartsift on malicious files: their effect on memory, and the messages about them."""
import os
import re
import resource
import struct
import subprocess
import sys
import zipfile
import zlib

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, CommandCase, FAILED, main, pgm

MEGABYTE = 1 << 20


def npy_header(descr, shape):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text


def jpeg_of_little(width, height):
    """Returns a progressive JPEG of a hundred bytes with arithmetic coding, from which the decoder can produce zeros
    without end. libjpeg keeps all coefficients (ITU-T T.81, B.2)."""
    steps = b"\xff\xdb" + struct.pack(">HB", 67, 0) + b"\x01" * 64
    frame = b"\xff\xca" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    scan = b"\xff\xda" + struct.pack(">HB", 8, 1) + b"\x01\x00" + b"\x00\x00\x00"
    return b"\xff\xd8" + steps + frame + scan + b"\x00" * 16 + b"\xff\xd9"


def png_16(side, rows):
    """Returns a PNG of 16-bit gray samples."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 16, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


class HostileCase(CommandCase):
    def peak_of(self, *arguments, **settings):
        """Returns exit status, standard error and the peak memory of the command in bytes."""
        with open(self.path("errors"), "wb") as errors:
            run = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, env=self.environment(), stderr=errors,
                                   stdout=subprocess.DEVNULL, **settings)
            _, status, usage = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
        return run.returncode, self.read("errors").decode(), usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def assert_small_failure(self, said, *arguments, **settings):
        """Checks that the command fails with this message, and that its peak memory exceeds that of a trivial picture by a
        bounded amount."""
        self.write("small.pgm", pgm(8, 8))
        _, _, small = self.peak_of("stats", "small.pgm")
        status, errors, peak = self.peak_of(*arguments, **settings)
        self.assertEqual(status, FAILED, errors)
        self.assertIn(said, errors)
        self.assertLess(peak - small, 80 * MEGABYTE, arguments)


class Pictures(HostileCase):
    def setUp(self):
        super().setUp()
        self.info = self.run_it("info")[0]

    def test_coefficients_count_at_every_scale(self):
        if not re.search(rb"JPEG images +yes", self.info):
            self.skipTest("no JPEG")
        self.write("bomb.jpg", jpeg_of_little(16000, 16000))
        self.assertLess(os.path.getsize(self.path("bomb.jpg")), 206)
        self.assert_small_failure("decoding 16000 x 16000 pixels needs", "stats", "bomb.jpg", "--max-memory", "600M")
        self.assert_small_failure("decoding 2000 x 2000 pixels needs", "extract", "bomb.jpg", "--decode-scale", "8",
                                  "--max-memory", "480M")

    def test_scenes_are_refused_before_they_are_rendered(self):
        """Rendering 30 000 x 30 000 samples would take the better part of an hour."""
        for command in ("extract", "match"):
            self.assert_small_failure("even in the smallest tiles", command, *["@scene:30000x30000"] * (1 + (command == "match")),
                                      "--max-memory", "1G")

    def test_endless_standard_input(self):
        """Only a TIFF is read further than its header, because its directory may be at any offset."""
        endless = subprocess.Popen([sys.executable, "-c", "import sys\nwrite = sys.stdout.buffer.write\n"
                                    "write(b'II*\\0\\0\\0\\0\\xff')\nwhile True: write(bytes(1 << 20))"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with endless.stdout:
            self.assert_small_failure("the 67108864 bytes of --max-memory", "extract", "-", "--max-memory", "64M",
                                      stdin=endless.stdout)
        endless.wait()

    def test_rows_within_a_limit(self):
        """A picture that does not fit into the limit is decoded row by row and has the features of the whole picture."""
        if not re.search(rb"PNG images +yes", self.info):
            self.skipTest("no PNG")
        side = 2400
        rows = [struct.pack(f">{side}H", *(((x >> 5) * 40503 + y * 25173) % 65521 for x in range(side))) for y in range(20)]
        rows = [rows[y // 40 * 7 % 20] for y in range(side)]
        self.write("big.png", png_16(side, rows))
        self.write("big.pgm", b"P5 %d %d 65535\n" % (side, side) + b"".join(rows))
        coarse = ("--first-octave", "2", "-q", "--threads", "2")  # each thread needs memory
        expected = self.extract("big.png", *coarse)[0]
        self.assertGreater(len(expected), 10000)
        self.assertEqual(self.extract("big.png", *coarse, "--max-memory", "9M")[0], expected)
        errors = self.extract("big.pgm", *coarse, "--max-memory", "9M", status=FAILED)[1]
        self.assertIn("--max-memory", errors)
        for name, limit in (("big.png", "100K"), ("big.pgm", "12M")):  # the limit in the message suffices for the whole run
            errors = self.extract(name, *coarse, "--max-memory", limit, status=FAILED)[1]
            enough = re.search(r"smallest tiles (\d+) are enough", errors)
            self.assertIsNotNone(enough, errors)
            self.assertEqual(self.extract(name, *coarse, "--max-memory", enough.group(1))[0], expected)

    def test_what_a_pipe_had_is_not_read_again(self):
        if not re.search(rb"PNG images +yes", self.info) or not os.path.exists("/dev/stdin"):
            self.skipTest("no PNG, or no name of standard input")
        damaged = png_16(64, [bytes(128)] * 64)[:-40]
        for limit in ((), ("--max-memory", "64M")):
            errors = self.extract("/dev/stdin", "--no-exif", *limit, stdin=damaged, status=FAILED)[1]
            self.assertIn("damaged PNG", errors, limit)

    def test_limit_that_nobody_gave(self):
        """Without a limit the command uses half of the memory that the process may use, which is its address space here."""
        def narrow():
            resource.setrlimit(resource.RLIMIT_AS, (768 * MEGABYTE, resource.RLIM_INFINITY))
        runs = subprocess.run([COMMAND, "info", "--threads", "2"], preexec_fn=narrow, env=self.environment(), check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        if not runs:
            self.skipTest("the sanitizer's memory is larger than the limit")
        self.assert_small_failure("more than the 402653184 bytes that are half the memory of the limit of the address space",
                                  "stats", "@scene:30000x30000", "--threads", "2", preexec_fn=narrow)
        _, errors, _ = self.peak_of("stats", "@scene:30000x30000", "--threads", "2", "--max-memory", "0", preexec_fn=narrow)
        self.assertNotIn("half the memory", errors)  # no limit was set, but the system has no memory


class Archives(HostileCase):
    def archive(self, keypoints, descriptor_count, megabytes, compression):
        """Returns an archive of [keypoints, 4] keypoints and `megabytes` of zeros as descriptors, whose stated shape is
        false."""
        with zipfile.ZipFile(self.path("bomb.npz"), "w", compression) as archive:
            with archive.open("keypoints.npy", "w") as entry:
                entry.write(npy_header("<f4", (keypoints, 4)) + bytes(16 * keypoints))
            with archive.open("descriptors.npy", "w") as entry:
                entry.write(npy_header("<f8", (descriptor_count, 128)))
                for _ in range(megabytes):
                    entry.write(bytes(MEGABYTE))

    def test_headers_are_compared_before_anything_is_inflated(self):
        if not re.search(rb"compressed npz files +yes", self.run_it("info")[0]):
            self.skipTest("no zlib")
        self.archive(1, 1024, 1, zipfile.ZIP_DEFLATED)
        _, _, small = self.peak_of("match", "bomb.npz", "bomb.npz")
        self.archive(1, 400 * 1024, 400, zipfile.ZIP_DEFLATED)
        self.assertLess(os.path.getsize(self.path("bomb.npz")), MEGABYTE)
        status, errors, peak = self.peak_of("match", "bomb.npz", "bomb.npz")
        self.assertEqual(status, FAILED)
        self.assertIn("descriptors is not of shape [N,128] with the N of keypoints", errors)
        self.assertLess(peak - small, 100 * MEGABYTE)

    def test_memory_of_features_is_limited(self):
        self.run_it("extract", "@scene:120x90", "-o", "f.npz", "--quiet")
        size = str(os.path.getsize(self.path("f.npz")))
        for arguments in (("match", "f.npz", "f.npz"), ("extract", "@scene:120x90", "--keypoints", "f.npz")):
            _, errors = self.run_it(*arguments, "--max-memory", size, status=FAILED)
            self.assertIn(f"more than the {size} bytes of --max-memory", errors)
            self.run_it(*arguments, "--max-memory", "64M")

    def test_size_that_the_shape_does_not_give(self):
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.archive(1, 1, 1, compression)
            status, errors, _ = self.peak_of("match", "bomb.npz", "bomb.npz")
            self.assertEqual(status, FAILED)
            self.assertIn("bomb.npz", errors)


if __name__ == "__main__":
    main()
