"""
Stitch a panorama
=================

A camera that only turns sees the world through a homography: nine numbers that map each pixel of one photograph to
the next. Matches determine it, and with it photographs can be aligned.
"""

# %%
# Four photographs
# ----------------
#
# From one place, each turned by 20 degrees, so that neighbours overlap.

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np

import hartsift
import scenery
from stitch_photos import stitch

yard = scenery.courtyard()
centre = np.array([0.3, -4.0, 1.6])
angles = np.radians([-30, -10, 10, 30])
cameras = [
    scenery.camera(centre, centre + [np.sin(a), np.cos(a), -0.05], (480, 400), 480)
    for a in angles
]
photos = [scenery.photograph(yard, camera) for camera in cameras]

figure, axes = plt.subplots(1, 4, figsize=(10, 2.4))
for axis, photo in zip(axes, photos):
    axis.imshow(photo)
    axis.set(xticks=[], yticks=[])
figure.tight_layout()

# %%
# From one to the next
# --------------------
#
# Match neighbours, and find the homography that the matches agree with.

first, second = hartsift.extract_batch(photos[1:3])
matches = hartsift.match(second, first)
geometry = hartsift.verify(second, first, matches, "homography")
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


outline = np.array([[0, 0], [479, 0], [479, 399], [0, 399], [0, 0]])
figure, axis = plt.subplots(figsize=(7, 4))
axis.imshow(photos[1])
axis.plot(*through(geometry.matrix, outline).T, color="#35d07f", linewidth=2)
axis.scatter(*first.points[matches.second[geometry.inliers]].T, s=6, color="#ffd21f")
axis.set(title="the third photograph in the second", aspect="equal")
figure.tight_layout()

# %%
# How far off is it? The cameras are known: a point seen by one is at ``K R2 R1' K^-1`` in the other.

fx, fy, cx, cy = cameras[1].intrinsics
intrinsics = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
truth = (
    intrinsics @ cameras[1].rotation @ cameras[2].rotation.T @ np.linalg.inv(intrinsics)
)
corners = np.linalg.norm(
    through(geometry.matrix, outline) - through(truth, outline), axis=1
)
print(f"corners are {corners.max():.2f} pixels off")
assert corners.max() < 1.5

# %%
# All of them
# -----------
#
# ``stitch`` chains the homographies to the photograph in the middle and lets photographs fade into each other where they
# overlap. It is one of the :doc:`/examples`, in Python and in C.

panorama = stitch(photos)
print(panorama.shape)

figure, axis = plt.subplots(figsize=(10, 4.4))
axis.imshow(panorama)
axis.set_axis_off()
figure.tight_layout()

# %%
# From a shell:
#
# .. code-block:: sh
#
#    python pipeline/examples/stitch_photos.py one.jpg two.jpg three.jpg >panorama.ppm
#
# Photographs of a hand-held camera that also moved fit less well the nearer things are: then it takes a reconstruction
# (:doc:`/tutorials/reconstruction`), not a homography.
