"""Writes the NumPy files of this folder with numpy.savez and numpy.savez_compressed.

python3 make_numpy_features.py    (in this folder; NumPy 2.4 wrote the files that are kept)

Values are computed from the row number, so tests/unit/test_formats_foreign.c computes them again.
"""
import numpy as np

COUNT = 5
row = np.arange(COUNT)
keypoints = np.stack([10.25 + 3 * row, 7.5 + 2 * row, 1.5 + 0.25 * row, 0.5 + row], axis=1)
entries = (row[:, None] * 7 + np.arange(128)[None, :]) % 256
common = dict(responses=(row / 64).astype(np.float32), octaves=(row - 1).astype(np.int8),
              image_size=np.array([640, 480], dtype=np.int32), convention="made by numpy")

np.savez("numpy_u8.npz", keypoints=keypoints.astype(np.float32), descriptors=entries.astype(np.uint8), **common)
np.savez_compressed("numpy_deflated_f32.npz", keypoints=keypoints.astype(np.float32),
                    descriptors=(entries / 256).astype(np.float32), **common)
# Users who do not think of types get doubles, 64-bit integers, column-major and big-endian arrays.
np.savez("numpy_other_types.npz", keypoints=np.asfortranarray(keypoints), descriptors=(entries / 256).astype(">f4"),
         octaves=row - 1, responses=(row / 64).astype(np.float16), image_size=np.array([640, 480]))
np.savez("numpy_no_descriptors.npz", keypoints=keypoints.astype(np.float32))
