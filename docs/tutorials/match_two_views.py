"""
Match two photographs
=====================

SIFT on one page: find points in one photograph, find them again in another, and match them.

The photographs of these tutorials are taken in a courtyard that hartsift renders (:doc:`scenery.py </files/scenery.py>`), so every
page runs without data. To use your own, put a file's name where an array stands: ``hartsift.extract("photo.jpg")``.
"""

# %%
# Two photographs of one place
# ----------------------------
#
# The second one is taken from further to the right, and from higher up.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import hartsift
import scenery

yard = scenery.courtyard()
first_camera = scenery.camera(centre=(0.5, -4.5, 1.6), target=(0, 3, 1.4))
second_camera = scenery.camera(centre=(4.2, -2.6, 2.3), target=(-0.8, 3, 1.0))
first = scenery.photograph(yard, first_camera)
second = scenery.photograph(yard, second_camera)

figure, axes = plt.subplots(1, 2, figsize=(10, 4))
for axis, picture, title in zip(axes, (first, second), ("first", "second")):
    axis.imshow(picture)
    axis.set(title=title, xticks=[], yticks=[])
figure.tight_layout()

# %%
# Features
# --------
#
# A feature is a blob that stands out from its surroundings, at its own size: place, size and direction. All three follow the
# picture when the camera moves, so the same blob is found again.

features = hartsift.extract(first, max_features=1500)
print(features)
print(features.keypoints[0], "= x, y, sigma, orientation")
print(features.descriptors[0, :8], "= the first 8 of 128 numbers")


def draw_features(axis, features):
    """Circle: where and how large; its line: the direction."""
    for x, y, sigma, angle in features.keypoints:
        radius = 3 * sigma
        axis.add_patch(
            plt.Circle((x, y), radius, fill=False, color="#ffd21f", linewidth=0.7)
        )
        axis.plot(
            [x, x + radius * np.cos(angle)],
            [y, y + radius * np.sin(angle)],
            color="#ffd21f",
            linewidth=0.7,
        )


figure, axis = plt.subplots(figsize=(10, 7.5))
axis.imshow(first)
draw_features(axis, features[np.argsort(-features.sigmas)[:300]])
axis.set(
    title="the 300 largest features", xlim=(0, 639), ylim=(479, 0), xticks=[], yticks=[]
)
figure.tight_layout()

# %%
# The descriptor
# --------------
#
# What the blob looks like is kept in 128 numbers: a window around it, turned to its direction, is cut into 4 x 4 cells, and in
# each cell gradients vote for one of 8 directions. Two features are of the same thing if these numbers are much alike.

x, y = features.points.T
far_from_edges = (abs(x - 320) < 250) & (abs(y - 240) < 170)
one = features[int(np.argmax(features.sigmas * far_from_edges * features.responses))]
votes = one.descriptors[0].reshape(4, 4, 8).astype(float)
directions = np.arange(8) * np.pi / 4

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4))
x, y, sigma, angle = one.keypoints[0]
left.imshow(first)
draw_features(left, one)
half = 10 * sigma
left.set(xlim=(x - half, x + half), ylim=(y + half, y - half), title="a feature")
left.set(xticks=[], yticks=[])
for row in range(4):
    for column in range(4):
        lengths = votes[row, column] / 350
        u, v = np.cos(directions) * lengths, np.sin(directions) * lengths
        arrows = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.006}
        right.quiver(np.full(8, column), np.full(8, row), u, v, **arrows)
right.set(xlim=(-0.6, 3.6), ylim=(3.6, -0.6), title="its descriptor", aspect="equal")
right.set(xticks=[], yticks=[])
figure.tight_layout()

# %%
# Matches
# -------
#
# Every descriptor of one photograph is compared with every one of the other, exactly. A pair is kept where each is the other's
# nearest, and nearer than the second nearest by some margin (Lowe's ratio test). His 0.8 is the default; 0.9 is generous and lets
# more wrong ones through, so that there is something to see below.

other = hartsift.extract(second, max_features=1500)
matches = hartsift.match(features, other, ratio=0.9)
print(matches, "distances", matches.distances[:4])

# %%
# Geometry
# --------
#
# Some matches are wrong. Two photographs of one place obey a fundamental matrix: a point of the first is on a line of the
# second. ``verify`` finds the matrix that most matches agree with, and which they are.

geometry = hartsift.verify(features, other, matches, "fundamental")
good, bad = matches[geometry.inliers], matches[~geometry.inliers]
print(
    f"{len(good)} of {len(matches)} matches agree, to {geometry.rms_error:.2f} pixels"
)

figure, axis = plt.subplots(figsize=(10, 3.9))
axis.imshow(np.hstack([first, second]))
shift = np.array([first.shape[1], 0])
for some, colour in ((good[::3], "#35d07f"), (bad, "#ff4b4b")):
    a, b = features.points[some.first], other.points[some.second] + shift
    axis.plot(*np.stack([a, b]).transpose(2, 0, 1), color=colour, linewidth=0.7)
axis.set(
    title="green: every third match that agrees, red: the others", xticks=[], yticks=[]
)
figure.tight_layout()

# %%
# Was that right?
# ---------------
#
# Both cameras are known here, so the true fundamental matrix is, too: the distance of each matched point from its true
# line.


def camera_matrix(view):
    fx, fy, cx, cy = view.intrinsics
    return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])


rotation = second_camera.rotation @ first_camera.rotation.T
x, y, z = second_camera.rotation @ (first_camera.centre - second_camera.centre)
across = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
inverse_a, inverse_b = (
    np.linalg.inv(camera_matrix(view)) for view in (first_camera, second_camera)
)
truth = inverse_b.T @ across @ rotation @ inverse_a
points_a = np.c_[features.points[good.first], np.ones(len(good))]
points_b = np.c_[other.points[good.second], np.ones(len(good))]
lines = points_a @ truth.T
distances = np.abs((lines * points_b).sum(1)) / np.hypot(lines[:, 0], lines[:, 1])
print(
    f"median distance from the true line {np.median(distances):.2f} pixels, {np.mean(distances < 2):.0%} within 2"
)
assert len(good) > 100 and np.median(distances) < 0.5

# %%
# The same from a shell, and from C
# ---------------------------------
#
# .. code-block:: sh
#
#    hartsift match first.jpg second.jpg --verify fundamental --draw pair.png -o matches.csv
#
# The whole program in Python and in C: :doc:`/examples`.
