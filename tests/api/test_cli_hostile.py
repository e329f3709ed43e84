"""The command hartsift on files that are made to harm it: how much memory they make it use, and what it says of them."""
import os
import re
import struct
import subprocess
import sys
import zipfile

# Beside the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, CommandCase, FAILED, main

MEGABYTE = 1 << 20


def npy_header(descr, shape):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text


class Archives(CommandCase):
    def peak_of(self, *arguments):
        """Exit status, standard error and the most memory that the command held, in bytes."""
        with open(self.path("errors"), "wb") as errors:
            run = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, env=self.environment(), stderr=errors,
                                   stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
        return run.returncode, self.read("errors").decode(), usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def archive(self, keypoints, descriptor_count, megabytes, compression):
        """An archive of [keypoints, 4] keypoints beside descriptors of `megabytes` of zeros, said to be of a shape."""
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

    def test_size_that_the_shape_does_not_give(self):
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            self.archive(1, 1, 1, compression)
            status, errors, _ = self.peak_of("match", "bomb.npz", "bomb.npz")
            self.assertEqual(status, FAILED)
            self.assertIn("bomb.npz", errors)


if __name__ == "__main__":
    main()
