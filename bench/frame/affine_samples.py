"""Whether keypoints' frames help verification: samples that a search needs from points alone and from frames.

usage: affine_samples.py BUILD EVALUATE DATA SEQUENCES... [--work FOLDER] [--scenes NAME...] [--every N]

BUILD: a build with the command and the library. EVALUATE, SEQUENCES: as dsp_table.py (homographies). DATA: the
photographs, of which shapes_table.py makes the scenes desk and walk (fundamental matrices). Features RootSIFT, contrast
0.04, at most 4000, plain (frame: sigma and orientation) and with affine shape. Matches: mutual with ratio 0.8, mutual,
and the nearest of every feature; of each list at most 1000, at random. The reference is the true model after local
optimisation on these matches; pairs whose reference has fewer inliers than verification wants are counted as poor and
left out of the rest. --every: only every Nth pair.

Hypotheses: of a homography four points, two frames, two frames by an affine map, one frame (an affine map); of a
fundamental matrix seven points, three frames. A sample succeeds when, after local optimisation, its candidate has nine
tenths of the reference's score, and before it more than every sample that holds an outlier and does not get there (of
400). Numbers below a hypothesis: samples until one has succeeded with probability .99, ln .01 / ln (1 - P(all inliers)
success), medians and 90th percentiles over pairs; success is the share of samples of inliers that succeed, share their
score before local optimisation over the reference's, px the mean distance from the true mapping before and after.
Local optimisation: four rounds of weighted least squares from twice the threshold to once, as the library; for frames
from eight times, and their first score has four times the threshold. Library: hs_verify_points at its defaults, three
seeds; failed: the model has less than nine tenths of the reference's score; helped: of the pairs whose first seed failed
the share that ten times the samples help. Check: of samples of four points with an outlier, and of inliers, the share
that the four frames reject.
Needs NumPy, SciPy, OpenCV, and pycolmap for scenes.
"""
import argparse
import functools
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

from compare_verification import FUNDAMENTAL, HOMOGRAPHY, Library, homography_error
from two_view_models import MAKERS, improve, jacobians, score, squares

KINDS = {"plain": "", "affine": "--affine"}
OPTIONS = "--norm root --max-features 4000 --device cpu --quiet"
RATIO, MOST_MATCHES, SAMPLES, CHANCE, SEEDS, MANY = 0.8, 1000, 40, 400, 3, 100000
THRESHOLD, LEAST = {HOMOGRAPHY: 3.0, FUNDAMENTAL: 2.0}, {HOMOGRAPHY: 8, FUNDAMENTAL: 15}
ENOUGH, CONFIDENCE = 0.9, 0.99
LIKELIEST = 20  # of the samples that hold an outlier, those that are improved
NARROW, WIDE = ((2.0, 5 / 3, 4 / 3, 1.0), 1.0), ((8.0, 4.0, 2.0, 1.0), 4.0)  # improvement, first score: times threshold
CHECK_STRETCH, CHECK_TURN, CHECK_AREA = 2.5, 45.0, 3.0  # what the check allows: quotient of axes, degrees, areas
TRUTH_ROUNDS = 4, 3, 2, 1, 1, 1, 1


# ------------------------------------------------------------------ features and matches

@functools.lru_cache(maxsize=16)
def features(build, options, path):
    """Places [n, 2], frames [n, 2, 2], descriptors."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "features.npz")
        subprocess.run([build / "hartsift", "extract", path, "-o", out, *OPTIONS.split(), *options.split()], check=True)
        with numpy.load(out) as arrays:
            x, y, sigma, angle = arrays["keypoints"].astype(float).T
            upright = sigma * numpy.array([(numpy.cos(angle), -numpy.sin(angle)), (numpy.sin(angle), numpy.cos(angle))])
            frames = arrays["frames"] if "frames" in arrays else upright.transpose(2, 0, 1)
            return numpy.c_[x, y], frames.reshape(-1, 2, 2).astype(float), arrays["descriptors"].astype(numpy.float32)


def lists(one, two):
    """{name: indices [n, 2]} of the three lists of matches, shuffled and cut."""
    near = one @ two.T
    near *= -2
    near += (one ** 2).sum(1)[:, None] + (two ** 2).sum(1)
    best, rows = near.argmin(1), numpy.arange(len(one))
    first = numpy.maximum(near[rows, best], 0)
    mutual = near.argmin(0)[best] == rows
    near[rows, best] = numpy.inf
    clear = first < RATIO ** 2 * near.min(1)
    random = numpy.random.default_rng(5)
    found = {"ratio, mutual": mutual & clear, "mutual": mutual, "nearest": rows >= 0}
    return {name: numpy.c_[rows, best][random.permutation(rows[kept])[:MOST_MATCHES]] for name, kept in found.items()}


def searches(model):
    """{name: arguments of Pair.trial}."""
    return {label: (maker, *(WIDE if maker[3] else NARROW)) for label, maker in MAKERS[model].items()}


# ------------------------------------------------------------------ one list of matches

def needed(inliers, count, size, success):
    chance = success
    for i in range(size):
        chance *= max(0, inliers - i) / (count - i)
    return numpy.inf if chance <= 0 else 1 if chance >= CONFIDENCE else numpy.log(1 - CONFIDENCE) / numpy.log1p(-chance)


class Pair:
    """A list of matches in working coordinates (mean 0, mean distance 1) with its reference model."""

    def __init__(self, model, a, b, frames_a, frames_b, truth):
        self.model, self.pixels, self.random = model, (a, b), numpy.random.default_rng(3)
        centre = a.mean(0), b.mean(0)
        self.scale = numpy.sqrt(2 / (((a - centre[0]) ** 2).sum(1) + ((b - centre[1]) ** 2).sum(1)).mean())
        self.moves = [numpy.array([[self.scale, 0, -self.scale * c[0]], [0, self.scale, -self.scale * c[1]], [0, 0, 1]])
                      for c in centre]
        self.a, self.b = (a - centre[0]) * self.scale, (b - centre[1]) * self.scale
        self.frames = frames_a * self.scale, frames_b * self.scale
        self.threshold = THRESHOLD[model] * self.scale
        self.reference = improve(model, self.to_working(truth)[None], self.a, self.b, self.threshold, TRUTH_ROUNDS)
        self.best = self.score(self.reference)[0]
        right = squares(model, self.reference, self.a, self.b)[0][0] <= self.threshold ** 2
        self.inliers, self.outliers = numpy.flatnonzero(right), numpy.flatnonzero(~right)

    def to_working(self, m):
        left, right = numpy.linalg.inv(self.moves[0]), self.moves[1]
        return right @ m @ left if self.model == HOMOGRAPHY else numpy.linalg.inv(right).T @ m @ left

    def to_pixels(self, h):
        return numpy.linalg.inv(self.moves[1]) @ h @ self.moves[0]

    def score(self, m, wider=1.0):
        return score(self.model, m, self.a, self.b, wider * self.threshold)

    def candidates(self, maker, samples):
        _, _, make, with_frames = maker
        frames = [f[samples] for f in self.frames] if with_frames else []
        with numpy.errstate(all="ignore"):
            found = make(self.a[samples], self.b[samples], *frames)
        return numpy.where(numpy.isfinite(found), found, 0.0)

    def samples(self, size, count, good):
        """Of inliers alone, or with an outlier at least."""
        every = len(self.a)
        drawn = self.random.random((count, len(self.inliers) if good else every)).argpartition(size - 1, axis=1)[:, :size]
        if good:
            return self.inliers[drawn]
        if len(self.outliers) and every > size:
            bad = numpy.isin(drawn, self.outliers).any(1)
            drawn = drawn[bad]
        return drawn

    def trial(self, maker, rounds, wider):
        """Success, samples needed, the first score's share, and the models before and after improvement."""
        size, several, *_ = maker
        samples = [self.samples(size, SAMPLES, True), self.samples(size, CHANCE, False)]
        models, others = (self.candidates(maker, part) for part in samples)
        first, chance = (self.score(m, wider) for m in (models, others))
        others = others[numpy.argsort(-chance)[:LIKELIEST]]
        improved = [improve(self.model, m, self.a, self.b, self.threshold, rounds) for m in (models, others)]
        good, lucky = (self.score(m) > ENOUGH * self.best for m in improved)
        bar = numpy.sort(chance)[::-1][:LIKELIEST][~lucky].max(initial=0.0)
        success = (good & (first > bar)).reshape(-1, several).any(1).mean()
        share = self.score(models).reshape(-1, several).max(1).mean() / self.best
        return {"success": success, "needed": needed(len(self.inliers), len(self.a), size, success), "share": share,
                "models": (models, improved[0])}

    def frame_noise(self):
        """Medians over inliers: stretch, turn (degrees) and quotient of areas between the frames and the reference."""
        j = jacobians(self.reference, self.a[self.inliers])[0]
        return [numpy.median(v) for v in difference(j, self.frames[0][self.inliers], self.frames[1][self.inliers])]

    def check(self):
        """Of samples of four points with an outlier whose triangles keep their sense the share that frames reject, and
        of those of inliers."""
        shares = []
        for good in (False, True):
            samples = self.samples(4, CHANCE, good)
            samples = samples[same_sense(self.a[samples], self.b[samples])]
            j = jacobians(self.candidates(MAKERS[HOMOGRAPHY]["4 points"], samples), self.a[samples])
            stretch, turn, area = difference(j, self.frames[0][samples], self.frames[1][samples])
            rejected = ((stretch > CHECK_STRETCH) | (turn > CHECK_TURN) | (area > CHECK_AREA)).any(1)
            shares.append(rejected.mean() if len(rejected) else numpy.nan)
        return shares

    def library(self, library):
        """Iterations, milliseconds, the share of seeds that fail, and of these the share that more samples help."""
        a, b = (numpy.ascontiguousarray(p) for p in self.pixels)
        iterations, spent, missed, helped = [], [], [], []
        found_by = self.model, THRESHOLD[self.model]
        for seed in range(SEEDS):
            start = time.process_time()
            matrix, _, geometry = library.verify(a, b, *found_by, seed=seed)
            spent.append((time.process_time() - start) * 1e3)
            iterations.append(geometry.iterations)
            missed.append(self.lacks(matrix))
            if missed[-1] and seed == 0:
                helped.append(not self.lacks(library.verify(a, b, *found_by, seed=seed, most=MANY)[0]))
        return [numpy.median(iterations), numpy.median(spent), numpy.mean(missed), helped[0] if helped else numpy.nan]

    def lacks(self, matrix):
        return matrix is None or self.score(self.to_working(matrix)[None])[0] <= ENOUGH * self.best


def difference(j, frames_a, frames_b):
    """Of j frames_a from frames_b: quotient of axes, turn in degrees, quotient of areas (1 or more)."""
    with numpy.errstate(all="ignore"):
        maps = numpy.linalg.inv(frames_b) @ j @ frames_a
        values = numpy.linalg.svd(numpy.nan_to_num(maps), compute_uv=False)
        turn = numpy.degrees(abs(numpy.arctan2(maps[..., 1, 0] - maps[..., 0, 1], maps[..., 0, 0] + maps[..., 1, 1])))
        area = abs(numpy.linalg.det(maps))
        return values[..., 0] / values[..., 1], turn, numpy.maximum(area, 1 / area)


def same_sense(a, b):
    kept = numpy.ones(len(a), bool)
    signs = []
    for i, j, k in ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)):
        areas = [numpy.linalg.det(numpy.stack([p[:, j] - p[:, i], p[:, k] - p[:, i]], 1)) for p in (a, b)]
        signs.append(areas[0] * areas[1] > 0)
    for sign in signs:
        kept &= sign == signs[0]
    return kept


# ------------------------------------------------------------------ all pairs

def homography_pairs(arguments, evaluate):
    """(set, truth, path, path, size of the first picture)."""
    for sequence in evaluate.find_sequences(arguments.sequences):
        size = evaluate.gray(sequence["images"][1]).shape[::-1]
        for k, truth in sorted(sequence["H"].items()):
            tilt = f" {(1.4, 2.0, 2.8, 4.0)[k - 2]}" if sequence["set"] == "tilts" else ""
            yield sequence["set"] + tilt, truth, sequence["images"][1], sequence["images"][k], size


def scene_pairs(arguments):
    import shapes_table  # pylint: disable=import-outside-toplevel
    for name in arguments.scenes:
        folder = arguments.work / name
        scene = {"desk": shapes_table.desk, "walk": shapes_table.walk}[name](arguments.data, folder)
        inverse, names = numpy.linalg.inv(scene.camera), sorted(scene.poses)
        for i, one in enumerate(names):
            for two in names[i + 1:]:
                (r1, c1), (r2, c2) = scene.poses[one], scene.poses[two]
                t = r2 @ (c1 - c2)
                skew = numpy.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])
                yield name, inverse.T @ skew @ r2 @ r1.T @ inverse, folder / one, folder / two, None


def measure(arguments, library, model, pairs):
    """{(set, kind of features, list): [{measure: value} of a pair, None for a poor one]}."""
    rows = {}
    for where, truth, first, second, size in itertools.islice(pairs, 0, None, arguments.every):
        for kind, options in KINDS.items():
            one, two = (features(arguments.build, options, path) for path in (first, second))
            for name, m in lists(one[2], two[2]).items():
                where_to = rows.setdefault((where, kind, name), [])
                if len(m) < LEAST[model]:
                    where_to.append(None)
                    continue
                pair = Pair(model, one[0][m[:, 0]], two[0][m[:, 1]], one[1][m[:, 0]], two[1][m[:, 1]], truth)
                if len(pair.inliers) < LEAST[model]:
                    where_to.append(None)
                    continue
                row = {"matches": len(m), "inlier share": len(pair.inliers) / len(m), "library": pair.library(library)}
                for label, maker in searches(model).items():
                    row[label] = trial = pair.trial(*maker)
                    models = trial.pop("models")
                    if model == HOMOGRAPHY:
                        trial["px"] = [numpy.median(numpy.nan_to_num([homography_error(pair.to_pixels(h), truth, size)
                                                                      for h in part[:20]], nan=1e9)) for part in models]
                if model == HOMOGRAPHY:
                    row["noise"], row["check"] = pair.frame_noise(), pair.check()
                where_to.append(row)
        print(f"# {where} {first} {second}", file=sys.stderr, flush=True)
    return rows


def cell(values):
    """Median and 90th percentile."""
    middle, high = (numpy.percentile(values, q, method="higher") for q in (50, 90))
    return " | ".join(f"{v:.0f}" if v < 1e5 else f"{v:.1g}" for v in (middle, high))


def print_samples(model, rows):
    labels = list(searches(model))
    print("\n| | pairs | poor | matches | inliers | library: samples | ms | failed | helped | "
          + " | ".join(f"{label} | 90 %" for label in labels) + " |\n|---|" + "--:|" * (8 + 2 * len(labels)))
    for key, found in rows.items():
        good = [row for row in found if row]
        if not good:
            continue
        library = numpy.array([row["library"] for row in good])
        helped = library[~numpy.isnan(library[:, 3]), 3]
        cells = [len(found), len(found) - len(good), f"{numpy.median([r['matches'] for r in good]):.0f}",
                 f"{numpy.median([r['inlier share'] for r in good]):.2f}", f"{numpy.median(library[:, 0]):.0f}",
                 f"{library[:, 1].mean():.2f}", f"{library[:, 2].mean():.3f}",
                 f"{helped.mean():.2f}" if len(helped) else ""]
        cells += [cell([r[label]["needed"] for r in good]) for label in labels]
        print(f"| {', '.join(key)} | " + " | ".join(map(str, cells)) + " |")


def print_success(model, rows):
    planar = model == HOMOGRAPHY
    labels = list(searches(model))
    print("\n| | " + " | ".join(f"{label}: success | share" + " | px | improved" * planar for label in labels)
          + " | noise: axes | turn | area | check: bad | good" * planar + " |\n|---|"
          + "--:|" * ((4 if planar else 2) * len(labels) + 5 * planar))
    for key, found in rows.items():
        good, cells = [row for row in found if row], []
        if not good:
            continue
        for label in labels:
            cells += [f"{numpy.mean([r[label][name] for r in good]):.2f}" for name in ("success", "share")]
            cells += [f"{numpy.median([r[label]['px'][i] for r in good]):.3g}" for i in range(2 * planar)]
        if planar:
            cells += [f"{numpy.median([r['noise'][i] for r in good]):.2f}" for i in range(3)]
            cells += [f"{numpy.nanmean([r['check'][i] for r in good]):.2f}" for i in range(2)]
        print(f"| {', '.join(key)} | " + " | ".join(cells) + " |")


def print_tables(model, rows):
    print_samples(model, rows)
    print_success(model, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("evaluate")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("sequences", nargs="*")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--scenes", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.evaluate)
    import evaluate  # pylint: disable=import-error,import-outside-toplevel
    library = Library(arguments.build / "libhartsift.so")
    if arguments.sequences:
        print_tables(HOMOGRAPHY, measure(arguments, library, HOMOGRAPHY, homography_pairs(arguments, evaluate)))
    if arguments.scenes:
        print_tables(FUNDAMENTAL, measure(arguments, library, FUNDAMENTAL, scene_pairs(arguments)))


if __name__ == "__main__":
    main()
