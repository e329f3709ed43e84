"""
Visual odometry
===============

A camera moves through the courtyard. From its pictures alone: which way did it go?

Between two frames the essential matrix tells how the camera turned and in which direction it moved, but not how far: a small
model seen from close looks like a large one from afar. How far is carried on from step to step by the points that three frames
see. Only the length of the first step is given.
"""

# %%
# The frames
# ----------

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

import hartsift
import scenery

yard = scenery.courtyard()
steps = np.linspace(0, 1, 21)
centres = np.stack(
    [
        -2.6 + 5 * steps,
        -4.6 + 1.6 * np.sin(2.6 * steps),
        1.5 + 0.15 * np.sin(9 * steps),
    ],
    1,
)
targets = np.stack(
    [0.8 * np.sin(5 * steps), np.full_like(steps, 3.5), np.full_like(steps, 1.3)], 1
)
cameras = [
    scenery.camera(centre, target, (400, 300), 333)
    for centre, target in zip(centres, targets)
]
frames = [scenery.photograph(yard, camera) for camera in cameras]

figure, axes = plt.subplots(1, 4, figsize=(10, 2.1))
for axis, number in zip(axes, (0, 7, 14, 20)):
    axis.imshow(frames[number])
    axis.set(title=f"frame {number}", xticks=[], yticks=[])
figure.tight_layout()

# %%
# Features of each frame
# ----------------------
#
# ``extract_many`` takes any iterable, a video's decoder say; it keeps several frames under way and gives results in order.

features = list(hartsift.extract_many(frames, max_features=1200))
print(features[0])

# %%
# From one frame to the next
# --------------------------
#
# With known cameras the geometry of two views is an essential matrix. It holds a turn and a direction; of the four poses that
# fit, ``relative_pose`` takes the one that has the matches in front of both cameras.

intrinsics = cameras[0].intrinsics


def step(first, second):
    """The camera's motion between two frames: its pose, and the matches that agree with it."""
    matches = hartsift.match(first, second)
    views = {"camera_a": intrinsics, "camera_b": intrinsics}
    geometry = hartsift.verify(first, second, matches, "essential", **views)
    good = matches[geometry.inliers]
    return (
        hartsift.relative_pose(
            geometry.matrix, intrinsics, intrinsics, first, second, good
        ),
        good,
    )


pose, good = step(features[8], features[9])
print(f"{len(good)} matches; direction {pose.translation.round(3)}")

figure, axis = plt.subplots(figsize=(7, 5.2))
axis.imshow(frames[8], cmap="gray")
a, b = features[8].points[good.first], features[9].points[good.second]
axis.quiver(
    *a.T,
    *(b - a).T,
    angles="xy",
    scale_units="xy",
    scale=0.5,
    color="#ffd21f",
    width=0.003,
)
axis.set(title="where features go, twice as long", xticks=[], yticks=[])
figure.tight_layout()

# %%
# How far
# -------
#
# Two rays that meet give the depth of a point, in lengths of the step between them. A point that was seen in the step before
# has a depth from there: the ratio of the two is the length of this step. The median of some hundred points decides.

fx, fy, cx, cy = intrinsics


def rays(features, indices):
    x, y = features.points[indices].T
    return np.stack([(x - cx) / fx, (y - cy) / fy, np.ones(len(indices))], 1)


def depths(pose, a, b):
    """Depths, in the first camera, of points on the rays a and b: d (R a) + t is parallel to b."""
    turned = a @ pose.rotation.T
    across = np.cross(b, turned)
    return -(np.cross(b, pose.translation) * across).sum(1) / (across**2).sum(1)


rotation, centre = cameras[0].rotation, centres[0]
path, known = [centre], None
for first, second in zip(features, features[1:]):
    pose, good = step(first, second)
    a, b = rays(first, good.first), rays(second, good.second)
    depth = depths(pose, a, b)
    if known is None:
        length = np.linalg.norm(centres[1] - centres[0])  # the only length that is given
    else:
        ratios = known[good.first] / depth
        length = np.median(ratios[ratios > 0])
    known = np.full(len(second), np.nan)
    known[good.second] = (
        length * (depth[:, None] * a @ pose.rotation.T + pose.translation)[:, 2]
    )
    rotation = pose.rotation @ rotation
    centre = centre - length * rotation.T @ pose.translation
    path.append(centre)
path = np.array(path)

# %%
# The path
# --------

travelled = np.linalg.norm(np.diff(centres, axis=0), axis=1).sum()
drift = np.linalg.norm(path[-1] - centres[-1])
turn = rotation @ cameras[-1].rotation.T
degrees = np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)))
print(
    f"after {travelled:.2f} m: {100 * drift:.1f} cm off ({drift / travelled:.1%}), turned {degrees:.2f} degrees too far"
)
assert drift < 0.05 * travelled

figure, axis = plt.subplots(figsize=(7.5, 6.5))
for surface in yard:
    corners = [surface.origin, surface.origin + surface.size[0] * surface.u]
    axis.plot(*np.array(corners)[:, :2].T, color="#888888", linewidth=1)
axis.plot(*centres[:, :2].T, "o", color="#35d07f", markersize=8, label="true")
axis.plot(*path[:, :2].T, ".-", color="#d6336c", label="from the pictures")
axis.set(
    aspect="equal", xlabel="metres", ylabel="metres", title="the courtyard from above"
)
axis.legend(loc="lower left")
figure.tight_layout()

# %%
# Errors add up, as they must where each step leans on the one before. What a full system adds, a map that is refined as a whole
# and places that are recognised again, needs the same features: :doc:`/tutorials/reconstruction` and
# :doc:`/tutorials/million`. Features followed through a video as tracks: :doc:`/examples`.
