"""Where keypoints with affine shape are lost between two pictures, step by step: hartsift's and COLMAP's.

usage: affine_losses.py COMMAND EVALUATE SEQUENCES...     (as dsp_table.py; RootSIFT, contrast 0.04, no limit of features)

For the pairs (1, K), means over pairs: keypoints of image 1; features a keypoint (directions); the quotient of the axes
(median); of the keypoints whose place both images show, the share that image K has too (2.5 px, sigma within a factor of
1.5); of these, the shares whose shape agrees (A2^-1 J A1, J the Jacobian of the homography, stretches by less than a
factor of 1.5), whose direction agrees as well (some pair of features, 20 degrees), and that are matched rightly (mutual,
ratio 0.8, 3 px); and of those whose shape and direction agree the share that is matched.
"""
import os
import subprocess
import sys
import tempfile

import numpy

import dsp_table

COLUMNS = ("keypoints", "features each", "quotient", "found again", "same shape", "and direction", "matched",
           "matched of those")
NEAR_PX, SIGMAS, STRETCH, TURN_DEGREES, RIGHT_PX = 2.5, 1.5, 1.5, 20.0, 3.0


def ours(command, options, image):
    """Places [n, 2], frames [n, 2, 2] and descriptors."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "features.npz")
        subprocess.run([command, "extract", image, "-o", path, "--quiet", *options.split()], check=True)
        with numpy.load(path) as arrays:
            return (arrays["keypoints"][:, :2].astype(float), arrays["frames"].reshape(-1, 2, 2).astype(float),
                    arrays["descriptors"].astype(numpy.float32))


def theirs(extractor, picture):
    found, descriptors = extractor.extract_from_uint8_array(picture)
    values = numpy.array([(k.x - 0.5, k.y - 0.5, k.a11, k.a12, k.a21, k.a22) for k in found], float).reshape(-1, 6)
    return values[:, :2], values[:, 2:].reshape(-1, 2, 2), numpy.asarray(descriptors.data, numpy.float32)


def keypoints_of(places, frames):
    """Features by keypoint: the first feature of each, and the keypoint of every feature."""
    sigma = numpy.sqrt(numpy.abs(numpy.linalg.det(frames)))
    rounded = numpy.round(numpy.c_[places, sigma], 3)
    _, first, keypoint = numpy.unique(rounded, axis=0, return_index=True, return_inverse=True)
    return first, keypoint.reshape(-1), sigma


def correspondences(evaluate, one, two, homography, shapes):
    """Pairs of keypoints (first features) of the same place and size, each nearest to the other, and how many might be."""
    (places1, first1, sigma1), (places2, first2, sigma2) = one, two
    inside = evaluate.inside(evaluate.project(homography, places1[first1]), shapes[1])
    first1 = first1[inside]
    area = numpy.sqrt(numpy.abs(numpy.linalg.det(evaluate.jacobian(homography, places1[first1]))))
    tree = evaluate.cKDTree(places2[first2])
    candidates = []
    for i, (place, size) in enumerate(zip(evaluate.project(homography, places1[first1]), sigma1[first1] * area)):
        for j in tree.query_ball_point(place, NEAR_PX):
            if abs(numpy.log(sigma2[first2[j]] / size)) <= numpy.log(SIGMAS):
                candidates.append((numpy.hypot(*(places2[first2[j]] - place)), i, j))
    used, pairs = (set(), set()), []
    for _, i, j in sorted(candidates):
        if i not in used[0] and j not in used[1]:
            used[0].add(i)
            used[1].add(j)
            pairs.append((first1[i], first2[j]))
    return pairs, len(first1)


def agreement(jacobian, frames1, frames2):
    """Whether the shape agrees, and whether some two directions do: frames of one keypoint in either picture."""
    maps = numpy.linalg.inv(frames2)[None] @ (jacobian @ frames1)[:, None]
    stretch = numpy.linalg.svd(maps[0, 0], compute_uv=False)
    turns = numpy.degrees(numpy.arctan2(maps[..., 1, 0] - maps[..., 0, 1], maps[..., 0, 0] + maps[..., 1, 1]))
    return stretch[0] / stretch[1] < STRETCH, bool((numpy.abs(turns) < TURN_DEGREES).any())


def measure(evaluate, one, two, homography, shapes):
    (places1, frames1, descriptors1), (places2, frames2, descriptors2) = one, two
    first1, keypoint1, sigma1 = keypoints_of(places1, frames1)
    first2, keypoint2, sigma2 = keypoints_of(places2, frames2)
    pairs, visible = correspondences(evaluate, (places1, first1, sigma1), (places2, first2, sigma2), homography, shapes)
    matches = evaluate.mutual_matches(descriptors1, descriptors2)
    error = numpy.hypot(*(places2[matches[:, 1]] - evaluate.project(homography, places1[matches[:, 0]])).T)
    matched = set(keypoint1[matches[error < RIGHT_PX, 0]])
    rows = []
    for i, j in pairs:
        jacobian = evaluate.jacobian(homography, places1[i : i + 1])[0]
        shape, direction = agreement(jacobian, frames1[keypoint1 == keypoint1[i]], frames2[keypoint2 == keypoint2[j]])
        rows.append((shape, shape and direction, keypoint1[i] in matched, shape and direction and keypoint1[i] in matched))
    shares = numpy.array(rows, float).reshape(-1, 4).mean(axis=0) if rows else numpy.zeros(4)
    axes = numpy.linalg.svd(frames1[first1], compute_uv=False)
    return [len(first1), len(places1) / len(first1), numpy.median(axes[:, 0] / axes[:, 1]), len(pairs) / max(1, visible),
            shares[0], shares[1], shares[2], shares[3] / max(shares[1], 1e-9)]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[2])
    import evaluate  # pylint: disable=import-error,import-outside-toplevel
    extractor = dsp_table.colmap_extractor(dsp_table.SHAPED)
    names = ("lowe, root, affine", "colmap, affine")
    rows = {}
    for sequence in evaluate.find_sequences(sys.argv[3:]):
        pictures = {k: evaluate.gray(path) for k, path in sequence["images"].items()}
        found = {name: {k: ours(sys.argv[1], dsp_table.OURS[name], path) for k, path in sequence["images"].items()}
                 for name in names}
        found["COLMAP, estimate_affine_shape"] = {k: theirs(extractor, picture) for k, picture in pictures.items()}
        for name, features in found.items():
            for k, homography in sequence["H"].items():
                shapes = pictures[1].shape, pictures[k].shape
                rows.setdefault((sequence["set"], name), []).append(
                    measure(evaluate, features[1], features[k], homography, shapes))
        print(f"# {sequence['set']}/{sequence['name']}", file=sys.stderr, flush=True)
    for heading in sorted({key[0] for key in rows}):
        print(f"| {heading} | " + " | ".join(COLUMNS) + " |\n|---|" + "--:|" * len(COLUMNS))
        for (where, name), values in rows.items():
            if where == heading:
                means = numpy.mean(values, axis=0)
                print(f"| {name} | {means[0]:.0f} | " + " | ".join(f"{v:.3f}" for v in means[1:]) + " |")
        print()


if __name__ == "__main__":
    main()
