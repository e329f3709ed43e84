"""
A million photographs
=====================

What changes when a collection outgrows one machine and one evening: the work is divided, results are kept in files that can be
checked, and which photographs to compare has to be chosen, since a million of them have 500 billion pairs.

This page does with 24 photographs what one would do with a million. Needs ``pip install '.[parquet]'`` (in a checkout).
"""

# %%
# A collection
# ------------
#
# Three places, eight photographs of each, in one folder in no order.

# sphinx_gallery_thumbnail_number = 3
import pathlib
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import hartsift
import hartsift.parquet
import scenery

scratch = tempfile.TemporaryDirectory(prefix="hartsift-")  # deleted when the program ends
folder = pathlib.Path(scratch.name)
(folder / "photos").mkdir()
yard = scenery.courtyard()
targets = [(0, 6, 2), (6, 0, 2), (-6, 0, 2)]  # three of the walls
generator = np.random.default_rng(3)
places = {}
for number in generator.permutation(24):
    at = np.array(targets[number % 3], float)
    where = at * (-0.3, -0.3, 0) + generator.uniform((-1, -1, 1.4), (1, 1, 1.8))
    view = scenery.camera(
        where,
        at + generator.uniform(-1, 1, 3) * (at[1] != 0, at[0] != 0, 0.2),
        (400, 300),
    )
    name = f"{len(places):02}.png"
    plt.imsave(folder / "photos" / name, scenery.photograph(yard, view))
    places[name] = number % 3

figure, axes = plt.subplots(3, 8, figsize=(10, 3.1))
for axis, name in zip(axes.ravel(), sorted(places)):
    axis.imshow(plt.imread(folder / "photos" / name))
    axis.set_axis_off()
figure.tight_layout(pad=0.3)

# %%
# Divided
# -------
#
# Machine 1 of 2 and machine 2 of 2 run the same line; an array of jobs (Slurm, Kubernetes, AWS Batch) says ``shard="slurm"`` or
# ``"env:INDEX,COUNT"``. A photograph that cannot be read becomes a row with its error and stops nothing.

for shard in ("1/2", "2/2"):
    count, failed = hartsift.parquet.batch(
        folder / "photos",
        folder / "features.parquet",
        shard=shard,
        profile="colmap",
        max_features=1000,
    )
    print(f"shard {shard}: {count} photographs, {failed} failed")

# %%
# Each row has a digest of its features. They are the same bytes on every machine, so it tells whether two runs, or the CPU and
# the GPU, agree, without comparing the features themselves.

rows = list(hartsift.parquet.read(sorted(folder.glob("features-*.parquet"))))
rows.sort(key=lambda row: row[0]["image"])
names = [row["image"] for row, _ in rows]
features = [some for _, some in rows]
print(names[0], rows[0][0]["digest"], features[0])

# %%
# Which pairs
# -----------
#
# Each photograph becomes one vector that says what it looks like, learned from a sample of the collection. All vectors
# are compared, exactly; photographs of one place look alike.

retrieval = hartsift.Retrieval(centres=64).train(features)
vectors = hartsift.blend_similar(
    np.stack([retrieval.describe(some) for some in features])
)
pairs = hartsift.similar_pairs(vectors, 4)

order = sorted(range(len(names)), key=lambda i: places[names[i]])
unit = vectors[order] / np.linalg.norm(
    vectors[order].astype(float), axis=1, keepdims=True
)
figure, axis = plt.subplots(figsize=(5.2, 4.4))
figure.colorbar(axis.imshow(unit @ unit.T, cmap="magma", vmax=0.6), label="cosine")
axis.set(title="how alike, by place", xlabel="photograph", ylabel="photograph")
figure.tight_layout()

same = np.mean([places[names[a]] == places[names[b]] for a, b in pairs])
print(
    f"{len(pairs)} of {len(names) * (len(names) - 1) // 2} pairs proposed, {same:.0%} of them of one place"
)
assert same > 0.8

# %%
# Matched
# -------
#
# Only those pairs, each exactly, and verified.

verified = [
    pair
    for pair in hartsift.match_many(features, pairs, verify="fundamental")
    if pair.geometry.found
]
print(
    f"{len(verified)} pairs verified, {sum(pair.geometry.inlier_count for pair in verified)} matches"
)

angle = np.pi / 2 + 2 * np.pi * np.argsort(order) / len(names)
spots = np.stack([np.cos(angle), np.sin(angle)], 1)
figure, axis = plt.subplots(figsize=(5.5, 5.5))
for pair in verified:
    axis.plot(
        *spots[[pair.first, pair.second]].T,
        color="#888888",
        linewidth=0.3 + pair.geometry.inlier_count / 150,
    )
colours = np.array(["#d6336c", "#1c7ed6", "#2f9e44"])
axis.scatter(*spots.T, c=colours[[places[name] for name in names]], s=60, zorder=2)
axis.set(title="verified pairs; a colour for each place", aspect="equal")
axis.set_axis_off()
figure.tight_layout()

# %%
# Put together
# ------------
#
# ``merge`` takes the parts only if they are complete, of one method version and of the same options, and writes one file, or
# COLMAP's database.

hartsift.parquet.merge(
    sorted(folder.glob("features-*.parquet")), folder / "database.db"
)
with hartsift.ColmapDatabase(folder / "database.db", read_only=True) as database:
    print(sum(1 for _ in database.images()), "images in the database")

# %%
# How long for a million
# ----------------------
#
# On one machine with a GPU that decodes baseline JPEGs too, the GPU is what all wait for; where the cores decode, it is they.
# :doc:`/guide/collections` has the measured rates and the arithmetic up to a hundred million, and how to run this on a Ray cluster
# (``hartsift.ray``). The command does the same without Python:
#
# .. code-block:: sh
#
#    hartsift batch photos/ -o part-1.db --shard 1/2 --devices all --resume
#    hartsift batch photos/ -o part-2.db --shard 2/2 --devices all --resume
#    hartsift merge part-*.db -o database.db
#    hartsift match --database database.db --pairs retrieval:20
