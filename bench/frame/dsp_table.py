"""Accuracy and time of pooled descriptors (dsp) and affine shape beside plain ones and COLMAP's with the same options.

usage: dsp_table.py COMMAND EVALUATE SEQUENCES... [--add NAME=OPTIONS]... [--colmap] [--time IMAGE] [--rounds N]
       [--only REGEX] [--rows REGEX]

COMMAND: the command hartsift. EVALUATE: the folder of evaluate.py, whose sequences and measures these are. Each NAME=OPTIONS
is one more row: options of `hartsift extract`. With --colmap also pycolmap's CPU extractor (VLFeat), plain, with
domain_size_pooling, with estimate_affine_shape, and with both, at Lowe's contrast, RootSIFT, no limit of features.
--rows: only the rows whose names match. --time: processor time of one thread on that
picture, every extractor its own process, by turns, the median of N rounds (3); COLMAP's extraction alone, hartsift's with
start, decoding and writing. Needs NumPy, SciPy, OpenCV, and pycolmap for --colmap.
"""
import argparse
import os
import pathlib
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile

import numpy

COLUMNS = ("feat", "rep", "put", "corr", "prec", "ms", "med", "ori", "c1", "c3", "c5", "mAA")
LOWE, COLMAP = "--norm root", "--profile colmap --contrast 0.04 --max-features 0"
OURS = {"lowe": "", "lowe, root": LOWE, "lowe, root, dsp": LOWE + " --dsp",
        "lowe, root, affine": LOWE + " --affine", "lowe, root, affine, dsp": LOWE + " --affine --dsp",
        "colmap": COLMAP, "colmap, dsp": COLMAP + " --dsp", "colmap, affine": COLMAP + " --affine"}
POOLED, SHAPED = "domain_size_pooling", "estimate_affine_shape"
THEIRS = {"COLMAP": "", f"COLMAP, {POOLED}": POOLED, f"COLMAP, {SHAPED}": SHAPED, "COLMAP, both": f"{POOLED} {SHAPED}"}


def ours(command, options, image):
    """Keypoints (x, y, sigma, orientation) and descriptors by the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "features.npz")
        subprocess.run([command, "extract", image, "-o", path, "--quiet", *shlex.split(options)], check=True)
        with numpy.load(path) as arrays:
            return arrays["keypoints"].astype(float), arrays["descriptors"].astype(numpy.float32)


def colmap_extractor(switches):
    """pycolmap's CPU extractor, on one thread, with the named ones of its options."""
    import pycolmap  # pylint: disable=import-outside-toplevel
    options = pycolmap.FeatureExtractionOptions()
    options.use_gpu, options.num_threads, options.max_image_size = False, 1, 100000
    options.sift.max_num_features, options.sift.peak_threshold = 262144, 0.04 / 3
    for name in switches.split():
        setattr(options.sift, name, True)
    return pycolmap.FeatureExtractor.create(options, pycolmap.Device.cpu)


def theirs(extractor, picture):
    """The same by COLMAP; its pixels' centres lie at (0.5, 0.5)."""
    found, descriptors = extractor.extract_from_uint8_array(picture)
    matrix = numpy.array([(k.x, k.y, k.a11, k.a12, k.a21, k.a22) for k in found], float).reshape(-1, 6)
    sigma = numpy.sqrt(numpy.abs(matrix[:, 2] * matrix[:, 5] - matrix[:, 3] * matrix[:, 4]))
    places = numpy.c_[matrix[:, :2] - 0.5, sigma, numpy.arctan2(matrix[:, 4], matrix[:, 2])]
    return places, numpy.asarray(descriptors.data, numpy.float32)


def score(arguments, evaluate):
    """Rows of every extractor: {name: [measures of a pair, ...]}, the pairs of all in one order."""
    rows = {}
    extractors = {name: colmap_extractor(switches) for name, switches in arguments.theirs.items()}
    for sequence in evaluate.find_sequences(arguments.sequences):
        if not re.search(arguments.only, sequence["set"] + "/" + sequence["name"]):
            continue
        pictures = {k: evaluate.gray(path) for k, path in sequence["images"].items()}
        with tempfile.TemporaryDirectory() as folder:
            for number, picture in pictures.items():
                evaluate.cv2.imwrite(f"{folder}/{number}.pgm", picture)
            for name in [*arguments.ours, *extractors]:
                def features(k):
                    if name in extractors:
                        return theirs(extractors[name], pictures[k])
                    return ours(arguments.command, arguments.ours[name], f"{folder}/{k}.pgm")
                first = features(1)
                for k, homography in sorted(sequence["H"].items()):
                    pair = evaluate.evaluate_pair(first, features(k), homography, pictures[1].shape, pictures[k].shape)
                    rows.setdefault(name, []).append(dict(pair, set=sequence["set"]))
        print(f"# {sequence['set']}/{sequence['name']}", file=sys.stderr, flush=True)
    return rows


def print_table(heading, rows):
    print(f"| {heading} | " + " | ".join(COLUMNS) + " |\n|---|" + "--:|" * len(COLUMNS))
    digits = {"feat": 0, "put": 0, "corr": 0, "ori": 2}
    for name, pairs in rows.items():
        means = [(c, numpy.mean([p[c] for p in pairs if c in p])) for c in COLUMNS]
        print(f"| {name} | " + " | ".join(f"{v:.{digits.get(c, 3)}f}" for c, v in means) + " |")
    print()


def print_differences(rows, base):
    columns = ("corr", "prec", "ms", "mAA")
    print(f"Paired differences from `{base}`, mean over all pairs +- standard error:\n")
    print("| all pairs | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for name, pairs in rows.items():
        cells = []
        for column in columns:
            d = numpy.array([a[column] - b[column] for a, b in zip(pairs, rows[base])])
            cells.append(f"{d.mean():+.3g} ± {d.std(ddof=1) / len(d) ** 0.5:.2g}")
        if name != base:
            print(f"| {name} | " + " | ".join(cells) + " |")
    print()


def spent(command):
    """Processor milliseconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def time_colmap(picture, switches):
    """In a process of its own: processor milliseconds of one extraction."""
    import cv2  # pylint: disable=import-outside-toplevel
    import time  # pylint: disable=import-outside-toplevel
    extractor, gray = colmap_extractor(switches), cv2.imread(picture, 0)
    extractor.extract_from_uint8_array(gray[:64, :64].copy())
    start = time.process_time()
    extractor.extract_from_uint8_array(gray)
    print((time.process_time() - start) * 1e3)


def print_times(arguments):
    times = {}
    for _ in range(arguments.rounds):
        for name, options in arguments.ours.items():
            run = [arguments.command, "extract", arguments.time, "--device", "cpu", "--threads", "1", "--quiet", "-o",
                   os.path.join(arguments.folder, "f.npz"), *shlex.split(options)]
            times.setdefault(name, []).append(spent(run))
        for name, switches in arguments.theirs.items():
            run = [sys.executable, "-B", __file__, "--time-colmap", arguments.time, switches]
            times.setdefault(name, []).append(float(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
    print(f"| one thread, {pathlib.Path(arguments.time).name} | median ms | least ms |\n|---|--:|--:|")
    for name, found in times.items():
        print(f"| {name} | {statistics.median(found):.1f} | {min(found):.1f} |")
    print()


def main():
    if sys.argv[1:2] == ["--time-colmap"]:
        return time_colmap(sys.argv[2], sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("evaluate")
    parser.add_argument("sequences", nargs="*")
    parser.add_argument("--add", action="append", default=[])
    parser.add_argument("--colmap", action="store_true")
    parser.add_argument("--time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", default="")
    arguments = parser.parse_args()
    def wanted(rows):
        return {name: row for name, row in rows.items() if re.search(arguments.rows, name)}
    arguments.ours = {**wanted(OURS), **dict(a.split("=", 1) for a in arguments.add)}
    arguments.theirs = wanted(THEIRS) if arguments.colmap else {}
    sys.path.insert(0, arguments.evaluate)
    import evaluate  # pylint: disable=import-error,import-outside-toplevel
    rows = score(arguments, evaluate) if arguments.sequences else {}
    for name in sorted({p["set"] for pairs in rows.values() for p in pairs}):
        print_table(name, {n: [p for p in pairs if p["set"] == name] for n, pairs in rows.items()})
    if "lowe, root" in rows:
        print_differences(rows, "lowe, root")
    if arguments.time:
        with tempfile.TemporaryDirectory() as arguments.folder:
            print_times(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
