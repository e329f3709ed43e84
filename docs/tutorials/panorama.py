"""
Stitch a panorama
=================

A camera that only turns sees the world through a homography: nine numbers that map each pixel of one photograph to
the next. Matches determine it, and with it photographs can be aligned.
"""

# %%
# Two photographs
# ---------------
#
# From one place in a street, with the camera turned to the left for the second.

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np

import hartsift
import scenery
from stitch_photos import stitch

photos = [scenery.photo("leuvenA.jpg"), scenery.photo("leuvenB.jpg")]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.9))
for axis, photo in zip(axes, photos):
    axis.imshow(photo)
    axis.set(xticks=[], yticks=[])
figure.tight_layout()

# %%
# From one to the next
# --------------------
#
# Match them, and find the homography that the matches agree with.

first, second = hartsift.extract_batch(photos)
matches = hartsift.match(first, second)
geometry = hartsift.verify(first, second, matches, "homography")
print(
    f"{geometry.inlier_count} of {len(matches)} matches agree, to {geometry.rms_error:.2f} pixels"
)
print(geometry.matrix.round(4))

# %%
# A homography takes the outline of one photograph to its place in the other:


def through(homography, points):
    """Maps points [N, 2] of one picture to the other."""
    x, y, w = homography @ np.c_[points, np.ones(len(points))].T
    return np.stack([x / w, y / w], 1)


height, width = photos[0].shape[:2]
outline = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) * (width, height)
figure, axis = plt.subplots(figsize=(7, 4))
axis.imshow(photos[1])
axis.plot(*through(geometry.matrix, outline).T, color="#35d07f", linewidth=2)
axis.scatter(*second.points[matches.second[geometry.inliers]].T, s=6, color="#ffd21f")
axis.set(title="the first photograph in the second", aspect="equal")
figure.tight_layout()

# %%
# Both in one
# -----------
#
# ``stitch`` chains the homographies to the photograph in the middle and lets photographs fade into each other where they
# overlap. It is one of the :doc:`/examples`, in Python and in C.

panorama = stitch(photos)
print(panorama.shape)
assert geometry.inlier_count > 100 and panorama.shape[1] > 1.3 * width

figure, axis = plt.subplots(figsize=(10, 4.4))
axis.imshow(panorama)
axis.set_axis_off()
figure.tight_layout()

# %%
# From a shell:
#
# .. code-block:: sh
#
#    python pipeline/examples/stitch_photos.py one.jpg two.jpg >panorama.ppm
#
# This camera was held by hand, so it also moved a little: the nearest things fit least. Where it moved far, it takes a
# reconstruction (:doc:`/tutorials/reconstruction`), not a homography.
