"""Follows features through a video, image files in order: "frame track x y" of every feature seen in the frame before too.

usage: follow_video.py frame1.png frame2.png ... >tracks.txt
"""
import sys

import numpy as np

import hartsift


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    tracks, before, track_before = 0, None, None
    try:
        for frame, now in enumerate(hartsift.extract_many(sys.argv[1:], max_features=2000, in_flight=4), 1):
            track = np.zeros(len(now), int)
            for a, b in hartsift.match(before, now).pairs if before is not None else ():
                if track_before[a] == 0:
                    tracks += 1
                track[b] = track_before[a] or tracks
                print(f"{frame} {track[b]} {now.points[b, 0]:.2f} {now.points[b, 1]:.2f}")
            before, track_before = now, track
    except hartsift.Error as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{tracks} tracks", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
