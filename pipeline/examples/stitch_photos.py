"""Panorama of photographs, each overlapping the one named before it: homographies between neighbours, chained to the photo in
the middle; where photos overlap they fade into each other.

usage: stitch_photos.py one.jpg two.jpg ... >panorama.ppm
"""
import sys

import numpy as np

import hartsift

CANVAS_MAX = 1 << 28  # pixels


def relate(first, second):
    """The homography from photo `second` to photo `first`, both as features."""
    matches = hartsift.match(second, first)
    geometry = hartsift.verify(second, first, matches, "homography")
    if not geometry.found:
        raise ValueError(f"does not overlap the one before it: {len(matches)} matches")
    return geometry.matrix


def homographies_to_middle(features):
    """For each photo the homography to the one in the middle."""
    steps = [relate(first, second) for first, second in zip(features, features[1:])]
    middle = len(features) // 2
    chain = {middle: np.eye(3)}
    for i in range(middle, len(steps)):
        chain[i + 1] = chain[i] @ steps[i]
    for i in reversed(range(middle)):
        chain[i] = chain[i + 1] @ np.linalg.inv(steps[i])
    return [chain[i] for i in range(len(features))]


def through(homography, x, y):
    """Maps points to the other picture; NaN if they are at its camera's back."""
    u, v, w = np.tensordot(homography, np.stack([x, y, np.ones_like(x)]), 1)
    w = np.where(w > 0, w, np.nan)
    return u / w, v / w


def add_photo(total, photo, x, y):
    """Adds a photo's colours at (x, y), bilinear, to the sums of colours and weights: a pixel's weight is the distance to its
    nearest edge."""
    height, width = photo.shape[:2]
    with np.errstate(invalid="ignore"):
        inside = (x >= 0) & (y >= 0) & (x < width - 1) & (y < height - 1)
    x, y = x[inside], y[inside]
    i, j = x.astype(int), y.astype(int)
    u, v = (x - i)[:, None], (y - j)[:, None]
    photo = photo.reshape(height, width, -1).astype(float)
    colour = (1 - v) * ((1 - u) * photo[j, i] + u * photo[j, i + 1])
    colour += v * ((1 - u) * photo[j + 1, i] + u * photo[j + 1, i + 1])
    weight = 1e-3 + np.minimum(np.minimum(x, width - 1 - x), np.minimum(y, height - 1 - y))[:, None]
    total[inside, :3] += weight * colour
    total[inside, 3:] += weight


def stitch(photos):
    """The panorama of photos [height, width] or [height, width, 3], uint8, as the one in the middle sees it."""
    if any(photo.dtype != np.uint8 for photo in photos):
        raise ValueError("a photo has more than 8 bits a sample: expected uint8")
    to_middle = homographies_to_middle(hartsift.extract_batch(photos))
    corners = np.concatenate([
        np.stack(through(h, np.array([0.0, w - 1, 0, w - 1]), np.array([0.0, 0, v - 1, v - 1])))
        for h, (v, w) in zip(to_middle, (photo.shape[:2] for photo in photos))
    ], axis=1)
    low, high = np.floor(corners.min(1)), np.ceil(corners.max(1))
    width, height = high - low + 1
    if not width * height < CANVAS_MAX:
        raise ValueError("the photographs turn too far for one plane")
    y, x = np.mgrid[low[1] : high[1] + 1, low[0] : high[0] + 1]
    total = np.zeros((*x.shape, 4))
    for photo, homography in zip(photos, to_middle):
        back = np.linalg.inv(homography)
        add_photo(total, photo, *through(back / back[2, 2], x, y))
    return (total[..., :3] / np.maximum(total[..., 3:], 1e-9) + 0.5).astype(np.uint8)


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        panorama = stitch([hartsift.load_image(name, colour=True) for name in sys.argv[1:]])
    except (ValueError, hartsift.Error) as error:
        print(error, file=sys.stderr)
        return 1
    try:
        with open(sys.stdout.fileno(), "wb", closefd=False) as out:
            out.write(b"P6 %d %d 255\n" % panorama.shape[1::-1] + panorama.tobytes())
    except OSError as error:
        print(f"the panorama cannot be written: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
