"""
Match two photographs
=====================

SIFT on one page: find points in one photograph, find them again in another, and match them.

To use your own photographs, put a file's name where an array stands: ``hartsift.extract("photo.jpg")``.
"""

# %%
# Two photographs of one thing
# ----------------------------
#
# The second one is taken from further to the right, and closer.

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import hartsift
import scenery

first, second = scenery.photo("left.jpg"), scenery.photo("right.jpg")
height, width = first.shape[:2]

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
    """Draws features: a circle shows position and size, a line in it the orientation."""
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
    title="the 300 largest features", xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[]
)
figure.tight_layout()

# %%
# The descriptor
# --------------
#
# What the blob looks like is kept in 128 numbers: a window around it, turned to its direction, is cut into 4 x 4 cells, and in
# each cell gradients vote for one of 8 directions. Two features are of the same thing if these numbers are much alike.

x, y = features.points.T
far_from_edges = (abs(x - width / 2) < 0.4 * width) & (abs(y - height / 2) < 0.35 * height)
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
# Some matches are wrong. Two photographs of one scene obey a fundamental matrix: a point of the first is on a line of the
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
# The cameras are not known, but the lines can be looked at: each point of the first photograph and its line in the second, which
# must go through the same thing. (:doc:`/tutorials/odometry` measures errors, in a scene whose cameras are known.)

some = good[np.argsort(-features.sigmas[good.first])[:8]]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9))
left.imshow(first)
right.imshow(second)
for number, (x, y) in enumerate(features.points[some.first]):
    a, b, c = geometry.matrix @ (x, y, 1)
    left.plot(x, y, "o", color=f"C{number}")
    right.plot([0, width], [-c / b, -(c + a * width) / b], color=f"C{number}")
for axis in (left, right):
    axis.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
figure.tight_layout()
assert len(good) > 100 and geometry.rms_error < 0.6

# %%
# The same from a shell, and from C
# ---------------------------------
#
# .. code-block:: sh
#
#    hartsift match first.jpg second.jpg --verify fundamental --draw pair.png -o matches.csv
#
# The whole program in Python and in C: :doc:`/examples`.
