"""Matches two photographs and verifies the matches by a fundamental matrix: "x1 y1 x2 y2" of each match that agrees.

usage: match_photos.py one.jpg two.jpg
"""
import sys

import hartsift


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        first, second = hartsift.extract_many(sys.argv[1:])
    except hartsift.Error as error:
        print(error, file=sys.stderr)
        return 1
    matches = hartsift.match(first, second)
    geometry = hartsift.verify(first, second, matches, "fundamental")
    for a, b in matches.pairs[geometry.inliers]:
        x1, y1, x2, y2 = *first.points[a], *second.points[b]
        print(f"{x1:.2f} {y1:.2f} {x2:.2f} {y2:.2f}")
    print(f"{len(matches)} matches, {geometry.inlier_count} agree", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
