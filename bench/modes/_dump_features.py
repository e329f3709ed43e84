"""
Extracts one image with the command hartsift and writes the features as the text dump that the evaluation of several
SIFT programs reads: a line with their number, then x y sigma orientation and 128 descriptor entries each.

usage: _dump_features.py COMMAND IMAGE OUT [--shift PIXELS] [option of hartsift extract ...]
--shift is added to x and y (profile opencv carries OpenCV's quarter-pixel drift: -0.25 removes it).
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np


def extract(command, image, options):
    """Returns the arrays of the .npz file that the command writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'features.npz')
        subprocess.run([command, 'extract', image, '-o', path, '--quiet', *options], check=True)
        with np.load(path) as arrays:
            return arrays['keypoints'].astype(np.float64), arrays['descriptors'].astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    for name in ('command', 'image', 'out'):
        parser.add_argument(name)
    parser.add_argument('--shift', type=float, default=0.0)
    given, options = parser.parse_known_args()
    keypoints, descriptors = extract(given.command, given.image, options)
    keypoints[:, :2] += given.shift
    with open(given.out, 'w', encoding='ascii') as out:
        out.write(f'{len(keypoints)}\n')
        if len(keypoints):
            np.savetxt(out, np.hstack([keypoints, descriptors]), fmt=['%.5f'] * 3 + ['%.6f'] + ['%.6g'] * 128)


if __name__ == '__main__':
    sys.exit(main())
