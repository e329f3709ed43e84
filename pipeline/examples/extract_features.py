"""Prints position, scale and orientation of every feature of an image file, or of a generated scene when no file is named.

usage: extract_features.py [photo.jpg]
"""
import sys

import hartsift


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "@scene"
    try:
        features = hartsift.extract(hartsift.load_image(name), max_features=1000)
    except hartsift.Error as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    for x, y, sigma, orientation in features.keypoints:
        print(f"{x:.2f} {y:.2f} {sigma:.3f} {orientation:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
