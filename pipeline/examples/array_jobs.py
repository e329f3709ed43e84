"""Four jobs on arrays: the sum of a gray picture, statistics of its tiles, its histogram and equalisation, and a mean filter over
ten million numbers. With "cuda" as second argument a GPU does them, and prints the same.

usage: array_jobs.py [picture.pgm [cuda]]
"""
import sys

import numpy as np

import hartsift

NUMBERS = 10_000_000


def main() -> int:
    name = sys.argv[1] if len(sys.argv) > 1 else "@scene:8000x1000"
    try:
        # Without an extractor one thread of the CPU works; arrays of PyTorch or CuPy on a GPU are processed there.
        worker = hartsift.Extractor(device=sys.argv[2] if len(sys.argv) > 2 else "cpu")
        picture = np.asarray(hartsift.load_image(name))
        i = np.arange(NUMBERS)
        signal = (i % 1000) / 1000 + (i * 7919 % 101) / 10100

        total = hartsift.reduce_sum(picture, worker)
        tiles = hartsift.tile_stats(picture, (40, 40), 127.0, worker).reshape(-1)
        counts = hartsift.histogram256(picture, extractor=worker)
        equalized = hartsift.equalize(picture, worker)
        smooth = hartsift.convolve1d(signal, [0.2] * 5, "zero", worker)
        mean = hartsift.reduce_mean(smooth, worker)
    except hartsift.Error as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    brightest = int(tiles["mean"].argmax())
    print(f"sum {total:.0f}")
    print(f"{len(tiles)} tiles, the brightest: {brightest}, mean {tiles['mean'][brightest]:.6f}, {tiles['above'][brightest]} values above 127")
    print(f"values of 0: {counts[0]}, of 255: {counts[255]}; first value equalized: {equalized.flat[0]}")
    print(f"filtered: first {smooth[0]:.17g}, last {smooth[-1]:.17g}, mean {mean:.17g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
