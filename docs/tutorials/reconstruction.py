"""
Reconstruct a place with COLMAP
===============================

From photographs alone to a model in space: where each camera stood, and a cloud of points. hartsift finds and matches the
features and writes COLMAP's database; COLMAP's mapper does the rest.

Needs ``pip install pycolmap``; the command line at the end needs ``colmap``.
"""

# %%
# Photographs
# -----------
#
# Twelve of them, on a walk around the boxes in the middle of the courtyard.

# sphinx_gallery_thumbnail_number = 3
import pathlib
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pycolmap

import hartsift
import scenery

yard = scenery.courtyard()
angles = np.radians(np.linspace(-150, -20, 12))
cameras = [
    scenery.camera(
        (4.4 * np.cos(a), 4.4 * np.sin(a), 1.7 + 0.3 * (i % 2)),
        (0, 1.6, 1.0),
        (512, 384),
        440,
    )
    for i, a in enumerate(angles)
]
photos = [scenery.photograph(yard, camera) for camera in cameras]
names = [f"{i:02}.jpg" for i in range(len(photos))]

figure, axes = plt.subplots(3, 4, figsize=(10, 5.9))
for axis, photo in zip(axes.ravel(), photos):
    axis.imshow(photo)
    axis.set_axis_off()
figure.tight_layout(pad=0.3)

# %%
# Features and matches
# --------------------
#
# With COLMAP's own parameters. ``match_many`` works on all pairs at once, on every core or on the GPU; a fundamental matrix
# tells which matches agree.

features = hartsift.extract_batch(photos, profile="colmap", max_features=2000)
settings = {
    "find_plane": True,
    "plane_tolerance": 4 * 0.5**0.5,
    "verify_options": {"tolerance": 4},
}
pairs = list(hartsift.match_many(features, verify="fundamental", **settings))
print(
    f"{len(pairs)} pairs, {sum(pair.geometry.found for pair in pairs)} of them overlap"
)

# %%
# Which photographs see the same things? Neighbours, as one would expect of a walk.

common = np.zeros((len(photos), len(photos)))
for pair in pairs:
    common[pair.first, pair.second] = common[pair.second, pair.first] = (
        pair.geometry.inlier_count
    )
figure, axis = plt.subplots(figsize=(5, 4.2))
figure.colorbar(axis.imshow(common, cmap="viridis"), label="verified matches")
axis.set(xlabel="photograph", ylabel="photograph")
figure.tight_layout()

# %%
# COLMAP's database
# -----------------
#
# The cameras are one and the same, with a known focal length.

scratch = tempfile.TemporaryDirectory(prefix="hartsift-")  # deleted when the program ends
folder = pathlib.Path(scratch.name)
camera = hartsift.colmap_camera(512, 384, focal_length=440, model="SIMPLE_PINHOLE")
with hartsift.ColmapDatabase(folder / "database.db", share_cameras=True) as database:
    numbers = [
        database.add_image(name, some, camera) for name, some in zip(names, features)
    ]
    for pair in pairs:
        found = [
            geometry for geometry in (pair.geometry, pair.plane) if geometry is not None
        ]
        database.add_matches(
            numbers[pair.first], numbers[pair.second], pair.matches, found
        )

# %%
# The mapper
# ----------
#
# (COLMAP gives points the colours of the photographs in this folder.)

for name, photo in zip(names, photos):
    plt.imsave(folder / name, photo)
options = pycolmap.IncrementalPipelineOptions()
options.random_seed = 1
options.ba_refine_focal_length = False
pycolmap.logging.minloglevel = 2
models = pycolmap.incremental_mapping(folder / "database.db", folder, folder, options)
model = models[0]
print(model.summary())

# %%
# Where the cameras were
# ----------------------
#
# A reconstruction has an arbitrary scale and position, so it is aligned with the truth by the best similarity (Umeyama 1991)
# before the comparison.

registered = sorted(model.images.values(), key=lambda image: image.name)
found = np.array([image.projection_center() for image in registered])
truth = np.array([cameras[names.index(image.name)].centre for image in registered])


def similarity(points, to):
    """Finds scale s, rotation R and shift t for which s R points + t is nearest to `to`."""
    a, b = points - points.mean(0), to - to.mean(0)
    left, spread, right = np.linalg.svd(b.T @ a)
    turn = np.diag([1, 1, np.sign(np.linalg.det(left @ right))])
    rotation = left @ turn @ right
    scale = np.trace(np.diag(spread) @ turn) / (a**2).sum()
    return scale, rotation, to.mean(0) - scale * rotation @ points.mean(0)


scale, rotation, shift = similarity(found, truth)
centres = scale * found @ rotation.T + shift
errors = np.linalg.norm(centres - truth, axis=1)
print(
    f"{len(registered)} of {len(photos)} cameras, {1000 * errors.max():.1f} mm off at most on a walk of 10 m"
)
assert len(registered) == len(photos) and errors.max() < 0.05

# %%
# The model
# ---------

points = [
    point
    for point in model.points3D.values()
    if point.track.length() > 2 and point.error < 1
]
cloud = scale * np.array([point.xyz for point in points]) @ rotation.T + shift
colours = np.array([point.color for point in points]) / 255

figure = plt.figure(figsize=(10, 6.4))
axis = figure.add_subplot(projection="3d")
near = np.linalg.norm(cloud - (0, 1, 1), axis=1) < 8
axis.scatter(*cloud[near].T, c=colours[near], s=5, depthshade=False)
axis.plot(*centres.T, "o-", color="#d6336c", markersize=4, linewidth=1, label="cameras")
axis.set(xlim=(-6, 6), ylim=(-6, 6), zlim=(0, 4), box_aspect=(12, 12, 4))
axis.view_init(elev=38, azim=-80)
axis.legend()
figure.tight_layout()

# %%
# The same from a shell
# ---------------------
#
# .. code-block:: sh
#
#    hartsift extract photos/*.jpg -o database.db --profile colmap
#    hartsift match --database database.db
#    mkdir sparse && colmap mapper --database_path database.db --image_path photos --output_path sparse
#
# For more than a thousand photographs let ``--pairs retrieval:20`` choose the pairs: :doc:`/guide/matching`.
