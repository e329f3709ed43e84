#!/usr/bin/env python3
"""hartsift next to other SIFT programs at equal numbers of features: time and accuracy of each in one table.

usage: HARTSIFT_LIBRARY=BUILD/libhartsift.so PYTHONPATH=python bench/bench.py peers BUILD [--cudasift PROGRAM]
       [--popsift PROGRAM] [--images WIDTHxHEIGHT,...] [--photo IMAGE] [--rounds N] [--repeats N]

Contenders are those that are there: OpenCV (cv2), SiftGPU (pycolmap with CUDA, as COLMAP ships it), CV-CUDA (cvcuda and
torch), and CudaSift and PopSift as programs made from their public sources SRC with bench/frame/peer_gpu.cu:

  nvcc -O3 -std=c++17 -arch=native -DPEER_CUDASIFT -ISRC bench/frame/peer_gpu.cu SRC/cudaImage.cu SRC/cudaSiftH.cu -o PROGRAM
  nvcc -O3 -std=c++17 -arch=native -rdc=true -DPEER_POPSIFT -ISRC/src -ICONFIG bench/frame/peer_gpu.cu \\
       $(find SRC/src/popsift -name '*.cu' -o -name '*.cpp') -o PROGRAM       # CONFIG: the folder of its sift_config.h

Each threshold is searched until the number of features is within 2 % of hartsift's (profile lowe, contrast 0.04); so
OpenCV's or SiftGPU's own defaults are not what is timed. Times: 8-bit pixels of the host to features of the host, a
context made before; medians of rounds in which the contenders take turns. CudaSift's pixels are floats already, and
programs of their own have no Python around them, so hartsift has a row for C and one for Python.
Accuracy: a photograph and nine views turned about its middle, whose geometry is exact. Two rows of hartsift show what fast
programs leave out: doubling, and the fit of the extremum's position. The constant shift of a program's
coordinates (OpenCV's, by a quarter of a pixel) is estimated from its matches and taken off: column "shift".
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import numpy as np

import hartsift

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOUBLED, PLAIN = -1, 0
ANGLES = [18 + 36.5 * i for i in range(9)]
RATIO, NEAR_PX, SCALE_RATIO = 0.8, 2.5, 1.5
PAPER = {"OpenCV, all threads": "59 to 76", "SiftGPU (pycolmap)": "4.0 to 6.5", "CudaSift": "about 1"}


class Contender:
    """One program with one setting. threshold: its own unit; more is fewer features. slow: has few repeats."""
    slow, exact = False, False

    def __init__(self, name, threshold, octave):
        self.name, self.threshold, self.octave = name, threshold, octave

    def prepare(self):
        """Makes what the program keeps between pictures, after a change of the threshold."""

    def extract(self, picture):
        """Returns keypoints [N, 4] (x, y, sigma, orientation) and descriptors [N, 128]."""
        raise NotImplementedError

    def time(self, picture, repeats):
        """Returns the median time of a frame in milliseconds."""
        times = []
        for i in range(-2, 2 if self.slow else repeats):
            start = time.perf_counter()
            self.once(picture)
            if i >= 0:
                times.append((time.perf_counter() - start) * 1e3)
        return statistics.median(times)

    def once(self, picture):
        self.extract(picture)


class Hartsift(Contender):
    exact = True

    def __init__(self, name, octave, **options):
        super().__init__(name, options.pop("contrast", 0.04), octave)
        self.options, self.extractor = options, None
        self.exact = not options.get("profile")

    def prepare(self):
        self.extractor = hartsift.Extractor(contrast=self.threshold, first_octave=self.octave, descriptor="u8", **self.options)

    def once(self, picture):
        self.extractor.extract(picture)

    def extract(self, picture):
        found = self.extractor.extract(picture)
        return found.keypoints.astype(np.float64), found.descriptors.astype(np.float32)


class Unfitted(Hartsift):
    """hartsift without the fit: keypoints at the samples and levels where their extrema are, described there."""
    def extract(self, picture):
        found = self.extractor.extract(picture)
        records = found.records[np.r_[True, np.any(np.diff(found.keypoints[:, :3], axis=0) != 0, axis=1)]]  # one for all orientations
        records = records.copy()
        step = 2.0 ** records["octave"]
        for axis in ("x", "y"):
            records[axis] = np.round(records[axis] / step) * step
        records["sigma"] = 1.6 * step * 2.0 ** (records["level"] / 3.0)
        records["orientation"] = np.nan
        described, _ = self.extractor.describe(picture, records)
        return described.keypoints.astype(np.float64), described.descriptors.astype(np.float32)


class HartsiftC(Hartsift):
    """The same features, timed by bench_hartsift frames: pinned memory, borrowed results."""
    build = None

    def time(self, picture, repeats):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "picture.pgm"), os.path.join(folder, "out.json")
            cv2.imwrite(path, picture)
            subprocess.run([f"{self.build}/bench/bench_hartsift", "frames", "--repeats", str(repeats), "--json", out, path],
                           check=True, stdout=subprocess.DEVNULL)
            records = json.loads(pathlib.Path(out).read_text(encoding="utf-8"))
        wanted = [r for r in records if r["doubled"] == (self.octave < 0) and not r["name"].endswith("resident")]
        return wanted[0]["median_ms"]


class OpenCV(Contender):
    slow = True

    def __init__(self, name, threads):
        super().__init__(name, 0.04, DOUBLED)
        self.threads, self.sift = threads, None

    def prepare(self):
        self.sift = cv2.SIFT_create(0, 3, self.threshold, 10, 1.6)

    def once(self, picture):
        cv2.setNumThreads(self.threads)
        self.sift.detectAndCompute(picture, None)

    def extract(self, picture):
        cv2.setNumThreads(0 if self.threads == 1 else self.threads)
        keypoints, descriptors = self.sift.detectAndCompute(picture, None)
        rows = [(k.pt[0], k.pt[1], k.size / 2, math.radians(k.angle)) for k in keypoints]
        return np.array(rows, np.float64).reshape(-1, 4), descriptors


class SiftGPU(Contender):
    def __init__(self, octave):
        super().__init__("SiftGPU (pycolmap)", 0.0066, octave)
        import pycolmap
        if not pycolmap.has_cuda:
            raise ImportError("pycolmap without CUDA")
        self.pycolmap, self.sift = pycolmap, None

    def prepare(self):
        options = self.pycolmap.FeatureExtractionOptions()
        options.max_image_size = 100000
        options.sift.max_num_features, options.sift.num_octaves = 1 << 18, 8
        options.sift.first_octave, options.sift.peak_threshold = self.octave, self.threshold
        self.sift = self.pycolmap.Sift(options, device=self.pycolmap.Device.cuda)

    def once(self, picture):
        self.sift.extract(picture)

    def extract(self, picture):
        keypoints, descriptors = self.sift.extract(picture)
        return keypoints.astype(np.float64), descriptors.astype(np.float32)


class CvCuda(Contender):
    """Its tensors are made once for a picture's size; of its lists as many rows are copied as it found."""
    capacity = 1 << 17

    def __init__(self, octave):
        super().__init__("CV-CUDA", 0.04, octave)
        import torch
        torch.zeros(1, device="cuda")
        import cvcuda
        self.cvcuda, self.torch, self.shape = cvcuda, torch, None
        self.flags = cvcuda.SIFT.USE_EXPANDED_INPUT if octave < 0 else cvcuda.SIFT.USE_ORIGINAL_INPUT

    def make(self, picture):
        self.on_device = self.torch.zeros((1, *picture.shape, 1), dtype=self.torch.uint8, device="cuda")
        self.source, self.shape = self.cvcuda.as_tensor(self.on_device, "NHWC"), picture.shape
        self.stream = self.cvcuda.as_stream(self.torch.cuda.current_stream())
        self.lists = self.cvcuda.sift(self.source, self.capacity, 3, self.threshold, 10.0, 1.6, self.flags, stream=self.stream)
        self.views = [self.torch.as_tensor(t.cuda(), device="cuda") for t in self.lists]

    def run(self, picture):
        if self.shape != picture.shape:
            self.make(picture)
        self.on_device.copy_(self.torch.from_numpy(picture[None, :, :, None]))
        self.cvcuda.sift_into(*self.lists, self.source, 3, self.threshold, 10.0, 1.6, self.flags, stream=self.stream)
        count = min(int(self.views[3].flatten()[0]), self.capacity)
        return [view[0, :count].cpu().numpy() for view in self.views[:3]]

    def once(self, picture):
        self.run(picture)

    def extract(self, picture):
        coords, meta, descriptors = self.run(picture)  # x, y, octave, layer; angle, response, size
        rows = np.stack([coords[:, 0], coords[:, 1], meta[:, 2] / 2, np.radians(meta[:, 0])], axis=1)
        return rows.astype(np.float64), descriptors.astype(np.float32)


class Program(Contender):
    """bench/frame/peer_gpu.cu with the sources of one of its programs."""
    def __init__(self, name, path, threshold, octave):
        super().__init__(name, threshold, octave)
        self.path = os.path.abspath(path)

    def run(self, picture, repeats):
        with tempfile.TemporaryDirectory() as folder:
            path, out = os.path.join(folder, "picture.pgm"), os.path.join(folder, "out")
            cv2.imwrite(path, picture)
            done = subprocess.run([self.path, path, out, repr(self.threshold), str(self.octave), str(repeats)], check=True,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            rows = np.fromfile(out, np.float32, offset=4).reshape(-1, 132)
        result = [line.split() for line in done.stderr.splitlines() if line.startswith("result ")][-1]
        return rows, float(result[2])

    def extract(self, picture):
        rows, _ = self.run(picture, 1)
        return rows[:, :4].astype(np.float64), rows[:, 4:]

    def time(self, picture, repeats):
        return self.run(picture, repeats)[1]


def contenders(given, octave):
    """Returns those that can run here, for pictures doubled or not."""
    HartsiftC.build = given.build
    made = [HartsiftC("hartsift, C", octave, device="cuda"), Hartsift("hartsift, Python", octave, device="cuda"),
            Hartsift("hartsift, profile opencv, Python", octave, profile="opencv", device="cuda")]
    if octave == DOUBLED:
        made += [Hartsift("hartsift, CPU, all threads", octave, device="cpu"), OpenCV("OpenCV, 1 thread", 1),
                 OpenCV("OpenCV, all threads", os.cpu_count())]
        made[3].slow = True
    for make in (SiftGPU, CvCuda):
        try:
            made.append(make(octave))
        except ImportError as missing:
            print(f"left out: {make.__name__}: {missing}", file=sys.stderr)
    if given.cudasift:
        made.append(Program("CudaSift", given.cudasift, 3.5, octave))
    if given.popsift:
        made.append(Program("PopSift", given.popsift, 0.04 / 3, octave))
    return made


def equalise(contender, picture, wanted):
    """Searches the threshold that gives `wanted` features within 2 %: secants of the logarithms. Returns the number found."""
    tried = []
    for _ in range(7):
        contender.prepare()
        count = len(contender.extract(picture)[0])
        tried.append((math.log(contender.threshold), math.log(max(count, 1))))
        if contender.exact or abs(count - wanted) <= 0.02 * wanted:
            return count
        slope = -1.0
        if len(tried) > 1 and tried[-1][0] != tried[-2][0]:
            slope = min(-0.2, (tried[-1][1] - tried[-2][1]) / (tried[-1][0] - tried[-2][0]))
        contender.threshold = math.exp(tried[-1][0] + (math.log(wanted) - tried[-1][1]) / slope)
    return count


def attempt(contender, work, *arguments):
    """Calls work; a contender that fails is named and left out of its table."""
    try:
        return work(contender, *arguments)
    except Exception as fault:  # of a foreign program: any
        detail = getattr(fault, "stderr", None) or fault
        print(f"left out: {contender.name}: {str(detail).strip()[-200:]}", file=sys.stderr)
        return None


def time_table(given, size, octave):
    picture = np.array(hartsift.load_image(f"@scene:{size}"))
    made = contenders(given, octave)
    wanted = equalise(made[0], picture, 0)
    counts = {c: attempt(c, equalise, picture, wanted) for c in made}
    made = [c for c in made if counts[c] is not None]
    times = {c: [] for c in made}
    for _ in range(given.rounds):
        for c in made:
            ms = attempt(c, lambda c: c.time(picture, given.repeats))
            if ms is not None:
                times[c].append(ms)
    print(f"\n{size}, {'doubled' if octave < 0 else 'not doubled'}\n\n| program | features | ms | of rounds | times hartsift, C | the paper's |")
    print("|---|--:|--:|---|--:|--:|")
    least = statistics.median(times[made[0]])
    for c in made:
        if times[c]:
            ms = statistics.median(times[c])
            print(f"| {c.name} | {counts[c]} | {ms:.3f} | {min(times[c]):.3f} to {max(times[c]):.3f} | {ms / least:.2f} | "
                  f"{PAPER.get(c.name, '') if octave < 0 else ''} |", flush=True)


def turned(picture, degrees):
    """Returns the picture turned about its middle, and the matrix from its samples to the view's."""
    height, width = picture.shape
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    return cv2.warpAffine(picture, matrix, (width, height), flags=cv2.INTER_LANCZOS4, borderMode=cv2.BORDER_REFLECT), matrix


def mapped(matrix, points):
    return points @ matrix[:, :2].T + matrix[:, 2]


def inside(points, shape, margin=8):
    return np.all((points >= margin) & (points <= np.array(shape[::-1]) - 1 - margin), axis=1)


def nearest_two(a, b):
    """Returns for each row of a the index of its nearest row of b, and the ratio of the two smallest distances."""
    square = np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T, 0)
    first = square.argmin(1)
    rows = np.arange(len(a))
    best = square[rows, first].copy()
    square[rows, first] = np.inf
    return first, np.sqrt(best / np.maximum(square.min(1), 1e-12))


def repeated(ours, theirs, matrix):
    """Returns the share of keypoints, of either side's fewer, with a partner near them and of like scale, mutually nearest."""
    ours, theirs = np.unique(ours[:, :3], axis=0), np.unique(theirs[:, :3], axis=0)  # one for all orientations
    at, to = mapped(matrix, ours[:, :2]).astype(np.float32), theirs.astype(np.float32)
    square = (at[:, None, 0] - to[None, :, 0]) ** 2
    square += (at[:, None, 1] - to[None, :, 1]) ** 2
    there, back = square.argmin(1), square.argmin(0)
    rows = np.arange(len(ours))
    ratio = np.abs(np.log(ours[:, 2] / theirs[there, 2]))
    found = (square[rows, there] < NEAR_PX ** 2) & (back[there] == rows) & (ratio < math.log(SCALE_RATIO))
    return found.sum() / min(len(ours), len(theirs))


def view_figures(first, second, matrix, shape):
    """Compares features of the picture with those of a view. Residuals are in the view."""
    keep = inside(mapped(matrix, first[0][:, :2]), shape)
    back = cv2.invertAffineTransform(matrix)
    other = inside(mapped(back, second[0][:, :2]), shape)
    a, da, b, db = first[0][keep], first[1][keep], second[0][other], second[1][other]
    there, ratio = nearest_two(da, db)
    again, _ = nearest_two(db, da)
    rows = np.flatnonzero((ratio < RATIO) & (again[there] == np.arange(len(a))))
    residual = b[there[rows], :2] - mapped(matrix, a[rows, :2])
    right = (residual ** 2).sum(1) < 3.0 ** 2
    turn = b[there[rows], 3] - a[rows, 3]
    return {"common": min(len(a), len(b)), "put": len(rows), "right": int(right.sum()), "residual": residual[right],
            "turn": turn[right], "linear": matrix[:, :2], "repeated": repeated(a, b, matrix)}


def accuracy_row(contender, picture, views):
    first = contender.extract(picture)
    figures = [dict(view_figures(first, contender.extract(view), matrix, picture.shape), degrees=degrees)
               for degrees, (view, matrix) in zip(ANGLES, views)]
    # A program that reports p + d for p leaves (I - A) d: least squares over all views.
    design = np.concatenate([np.repeat((np.eye(2) - f["linear"])[None], len(f["residual"]), 0).reshape(-1, 2) for f in figures])
    observed = np.concatenate([f["residual"].ravel() for f in figures])
    shift = np.linalg.lstsq(design, observed, rcond=None)[0]
    error = np.hypot(*(observed - design @ shift).reshape(-1, 2).T)
    orientation = min(np.median(np.concatenate([np.abs(np.degrees(np.angle(np.exp(1j * (f["turn"] - sign * math.radians(f["degrees"]))))))
                                                for f in figures])) for sign in (1, -1))
    total = {key: sum(f[key] for f in figures) for key in ("common", "put", "right")}
    return (len(first[0]), statistics.mean(f["repeated"] for f in figures), total["right"] / max(total["put"], 1),
            total["right"] / total["common"], np.median(error), orientation, shift)


def accuracy_table(given):
    picture = cv2.imread(given.photo, cv2.IMREAD_GRAYSCALE)
    views = [turned(picture, degrees) for degrees in ANGLES]
    print(f"\n{os.path.basename(given.photo)}, {picture.shape[1]}x{picture.shape[0]}, and {len(views)} views turned about its middle\n")
    print("| program | features | repeatability | precision | matching score | median error px | orientation error deg | shift x, y px |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    made = [(c, "") for c in contenders(given, DOUBLED) if c.name not in ("hartsift, C", "OpenCV, all threads", "hartsift, CPU, all threads")]
    made.insert(1, (Unfitted("hartsift, without the fit", DOUBLED, device="cuda"), ""))
    made += [(c, ", not doubled") for c in contenders(given, PLAIN) if c.name != "hartsift, C"]
    wanted = equalise(made[0][0], picture, 0)
    for c, suffix in made:
        c.exact = c is made[0][0]
        if suffix:
            c.threshold /= 4
        if attempt(c, equalise, picture, wanted) is None:
            continue
        row = attempt(c, accuracy_row, picture, views)
        if row:
            print(f"| {c.name.replace(', Python', '')}{suffix} | {row[0]} | {row[1]:.3f} | {row[2]:.3f} | {row[3]:.3f} | {row[4]:.3f} | {row[5]:.2f} | "
                  f"{row[6][0]:+.2f}, {row[6][1]:+.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name in ("--cudasift", "--popsift"):
        parser.add_argument(name)
    parser.add_argument("--images", default="640x480,1920x1080")
    parser.add_argument("--photo", default=str(ROOT / "pipeline/examples/photos/leuvenA.jpg"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    accuracy_table(given)
    for size in given.images.split(","):
        for octave in (DOUBLED, PLAIN):
            time_table(given, size, octave)


if __name__ == "__main__":
    main()
