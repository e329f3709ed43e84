"""Writes a sheet of the patches about the 100 strongest features of an image file, or of a generated scene when no file is
named, as a PGM file to standard output: what a learned descriptor such as HardNet takes.

usage: cut_patches.py [photo.jpg] > sheet.pgm
"""
import sys

import numpy as np

import hartsift

SIDE, COLUMNS, ROWS = 32, 10, 10


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "@scene"
    try:
        image = hartsift.load_image(name)
        features = hartsift.extract(image, max_features=COLUMNS * ROWS, descriptor="none")
        patches, _ = hartsift.extract_patches(image, features, size=SIDE)
    except hartsift.Error as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    sheet = np.zeros((ROWS * COLUMNS, SIDE, SIDE), np.uint8)  # those that are not filled stay black
    sheet[: len(patches)] = patches
    rows = sheet.reshape(ROWS, COLUMNS, SIDE, SIDE).swapaxes(1, 2)
    sys.stdout.buffer.write(b"P5\n%d %d\n255\n" % (COLUMNS * SIDE, ROWS * SIDE) + rows.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
