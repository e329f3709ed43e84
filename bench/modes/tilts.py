"""Renders photographs as seen by a distant tilted camera, for the mode dsp.

usage: tilts FOLDER IMAGE...

Each IMAGE, gray and at most 640 samples wide and high, makes two sequences FOLDER/tilts/NAME-ANGLE: 1.png is the
picture, 2.png to 5.png are the picture compressed by a tilt of 1.4, 2, 2.8 and 4 along the direction of 30 or 110
degrees, and H_1_K maps 1.png to K.png. The picture is first smoothed along that direction by 0.8 sqrt(tilt^2 - 1),
which keeps its blur at 0.8 samples (Morel & Yu, ASIFT, SIIMS 2009, section 5).
"""
import pathlib
import sys

import cv2
import numpy

SIDE, TILTS, ANGLES = 640, (1.4, 2.0, 2.8, 4.0), (30, 110)
BLUR, ACROSS = 0.8, 0.3  # blur in samples; across the direction nearly none


def smoothed(picture, tilt, direction):
    """Blurs with a Gaussian along `direction` only."""
    sigma = BLUR * numpy.sqrt(tilt * tilt - 1)
    radius = int(4 * sigma) + 1
    y, x = numpy.mgrid[-radius : radius + 1, -radius : radius + 1]
    along = x * direction[0] + y * direction[1]
    across = y * direction[0] - x * direction[1]
    kernel = numpy.exp(-0.5 * ((along / sigma) ** 2 + (across / ACROSS) ** 2))
    return cv2.filter2D(picture.astype(numpy.float32), -1, kernel / kernel.sum(), borderType=cv2.BORDER_REPLICATE)


def tilted(picture, tilt, angle):
    """Returns the tilted picture, and the homography to it."""
    direction = numpy.cos(numpy.deg2rad(angle)), numpy.sin(numpy.deg2rad(angle))
    linear = numpy.diag([1 / tilt, 1.0]) @ numpy.array([direction, (-direction[1], direction[0])])
    rows, columns = picture.shape
    corners = numpy.array([(0, 0), (columns - 1, 0), (columns - 1, rows - 1), (0, rows - 1)], float) @ linear.T
    width, height = numpy.ceil(numpy.ptp(corners, axis=0)).astype(int) + 1
    homography = numpy.eye(3)
    homography[:2, :2], homography[:2, 2] = linear, -corners.min(0)
    seen = cv2.warpPerspective(smoothed(picture, tilt, direction), homography, (int(width), int(height)), flags=cv2.INTER_CUBIC,
                               borderValue=float(picture.mean()))
    return numpy.clip(seen + 0.5, 0, 255).astype(numpy.uint8), homography


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in map(pathlib.Path, sys.argv[2:]):
        picture = cv2.imread(str(name), cv2.IMREAD_GRAYSCALE)
        if picture is None:
            sys.exit(f"{name}: cannot be read")
        scale = SIDE / max(picture.shape)
        if scale < 1:
            picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        for angle in ANGLES:
            folder = pathlib.Path(sys.argv[1]) / "tilts" / f"{name.parent.name}-{name.stem}-{angle}"
            folder.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(folder / "1.png"), picture)
            for number, tilt in enumerate(TILTS, 2):
                seen, homography = tilted(picture, tilt, angle)
                cv2.imwrite(str(folder / f"{number}.png"), seen)
                numpy.savetxt(folder / f"H_1_{number}", homography)


if __name__ == "__main__":
    main()
