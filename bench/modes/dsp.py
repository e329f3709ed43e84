"""Accuracy and time of pooled descriptors (dsp) and affine shape compared with plain descriptors and COLMAP.

usage: dsp COMMAND EVALUATE SEQUENCES... [--add NAME=OPTIONS]... [--colmap] [--time IMAGE]... [--rounds N]
       [--only REGEX] [--rows REGEX] [--equal REGEX] [--base NAME]...

COMMAND: the command hartsift. EVALUATE: the folder of evaluate.py, which defines sequences and measures. Each
NAME=OPTIONS adds a row with these options of `hartsift extract`. With --colmap also pycolmap's CPU extractor (VLFeat),
plain, with domain_size_pooling, with estimate_affine_shape, and with both, at Lowe's contrast, RootSIFT, no limit of
features.
--rows: only the rows whose names match. --equal: repeats the rows that match, with each picture's features cut to the
smallest number among these rows; features of largest sigma are kept, which is COLMAP's rule. --base: prints paired
differences from that row; where the column needs a correct match (ori), over pairs in which both rows have one. --time:
processor time of one thread on that picture (repeatable), from an array of pixels to arrays of features in a Python
process, for hartsift and COLMAP alike. Each extractor runs in a separate process, interleaved; the second extraction of
the picture counts, median of N rounds (3). Needs NumPy, SciPy, OpenCV, and pycolmap for --colmap.
"""
import argparse
import os
import pathlib
import re
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
        "colmap": COLMAP, "colmap, dsp": COLMAP + " --dsp", "colmap, affine": COLMAP + " --affine",
        "colmap, affine, dsp": COLMAP + " --affine --dsp"}
EQUAL = ", equal number"
POOLED, SHAPED = "domain_size_pooling", "estimate_affine_shape"
THEIRS = {"COLMAP": "", f"COLMAP, {POOLED}": POOLED, f"COLMAP, {SHAPED}": SHAPED, "COLMAP, both": f"{POOLED} {SHAPED}"}


def ours(command, options, image):
    """Returns keypoints (x, y, sigma, orientation) and descriptors from the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "features.npz")
        subprocess.run([command, "extract", image, "-o", path, "--quiet", *shlex.split(options)], check=True)
        with numpy.load(path) as arrays:
            return arrays["keypoints"].astype(float), arrays["descriptors"].astype(numpy.float32)


def colmap_extractor(switches):
    """Returns pycolmap's CPU extractor on one thread, with the named options on."""
    import pycolmap  # pylint: disable=import-outside-toplevel
    options = pycolmap.FeatureExtractionOptions()
    options.use_gpu, options.num_threads, options.max_image_size = False, 1, 100000
    options.sift.max_num_features, options.sift.peak_threshold = 262144, 0.04 / 3
    for name in switches.split():
        setattr(options.sift, name, True)
    return pycolmap.FeatureExtractor.create(options, pycolmap.Device.cpu)


def theirs(extractor, picture):
    """Returns keypoints and descriptors from COLMAP, whose pixel centres are at (0.5, 0.5)."""
    found, descriptors = extractor.extract_from_uint8_array(picture)
    matrix = numpy.array([(k.x, k.y, k.a11, k.a12, k.a21, k.a22) for k in found], float).reshape(-1, 6)
    sigma = numpy.sqrt(numpy.abs(matrix[:, 2] * matrix[:, 5] - matrix[:, 3] * matrix[:, 4]))
    places = numpy.c_[matrix[:, :2] - 0.5, sigma, numpy.arctan2(matrix[:, 4], matrix[:, 2])]
    return places, numpy.asarray(descriptors.data, numpy.float32)


def largest(features, count):
    """Returns the `count` features of largest sigma; among equal ones, the first."""
    chosen = numpy.sort(numpy.argsort(-features[0][:, 2], kind="stable")[:count])
    return features[0][chosen], features[1][chosen]


def features_of(arguments, extractors, picture, path):
    """Returns {name: features} of every extractor, and of the rows cut to an equal number."""
    found = {name: ours(arguments.command, options, path) for name, options in arguments.ours.items()}
    found.update({name: theirs(extractor, picture) for name, extractor in extractors.items()})
    cut = [name for name in found if arguments.equal and re.search(arguments.equal, name)]
    count = min((len(found[name][0]) for name in cut), default=0)
    return {**found, **{name + EQUAL: largest(found[name], count) for name in cut}}


def score(arguments, evaluate):
    """Returns the rows of every extractor: {name: [measures of a pair, ...]}. All rows have the pairs in one order."""
    rows = {}
    extractors = {name: colmap_extractor(switches) for name, switches in arguments.theirs.items()}
    for sequence in evaluate.find_sequences(arguments.sequences):
        if not re.search(arguments.only, sequence["set"] + "/" + sequence["name"]):
            continue
        pictures = {k: evaluate.gray(path) for k, path in sequence["images"].items()}
        with tempfile.TemporaryDirectory() as folder:
            found = {}
            for k, picture in pictures.items():
                evaluate.cv2.imwrite(f"{folder}/{k}.pgm", picture)
                found[k] = features_of(arguments, extractors, picture, f"{folder}/{k}.pgm")
        for name in found[1]:
            for k, homography in sorted(sequence["H"].items()):
                shapes = pictures[1].shape, pictures[k].shape
                pair = evaluate.evaluate_pair(found[1][name], found[k][name], homography, *shapes)
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
    columns = ("rep", "corr", "prec", "ms", "ori", "mAA")
    print(f"Paired differences from `{base}`, mean over all pairs +- standard error:\n")
    print("| all pairs | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
    for name, pairs in rows.items():
        cells = []
        for column in columns:
            d = numpy.array([a[column] - b[column] for a, b in zip(pairs, rows[base]) if column in a and column in b])
            cells.append(f"{d.mean():+.3g} ± {d.std(ddof=1) / len(d) ** 0.5:.2g}")
        if name != base:
            print(f"| {name} | " + " | ".join(cells) + " |")
    print()


def hartsift_options(command, options):
    """Returns options of the command as options of hartsift.Extractor. The library is in the command's folder."""
    os.environ["HARTSIFT_LIBRARY"] = str(pathlib.Path(command).resolve().parent / "libhartsift.so")
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
    found, words = {"device": "cpu", "threads": 1}, shlex.split(options)
    for word, value in zip(words, [*words[1:], "--"]):
        if word.startswith("--"):
            number = re.fullmatch(r"([0-9]+)|[0-9.]+", value)
            read = str if not number else int if number[1] else float
            found[word[2:].replace("-", "_")] = True if value.startswith("--") else read(value)
    return found


def time_one(image, command, options):
    """Runs in a child process: prints the processor milliseconds of an extraction on one thread; of COLMAP's if no command
    is given."""
    import cv2  # pylint: disable=import-outside-toplevel
    import time  # pylint: disable=import-outside-toplevel
    picture = cv2.imread(image, 0)
    if command:
        options = hartsift_options(command, options)
        import hartsift  # pylint: disable=import-error,import-outside-toplevel
        extract = hartsift.Extractor(**options).extract
    else:
        extract = colmap_extractor(options).extract_from_uint8_array
    extract(picture)
    start = time.process_time()
    extract(picture)
    print((time.process_time() - start) * 1e3)


def print_times(arguments, image):
    times = {}
    rows = [(name, arguments.command, options) for name, options in arguments.ours.items()]
    rows += [(name, "", switches) for name, switches in arguments.theirs.items()]
    for _ in range(arguments.rounds):
        for name, command, options in rows:
            run = [sys.executable, "-B", __file__, "--time-one", image, command, options]
            times.setdefault(name, []).append(float(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
    print(f"| one thread, {pathlib.Path(image).name} | median ms | least ms |\n|---|--:|--:|")
    for name, found in times.items():
        print(f"| {name} | {statistics.median(found):.1f} | {min(found):.1f} |")
    print()


def main():
    if sys.argv[1:2] == ["--time-one"]:
        return time_one(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("evaluate")
    parser.add_argument("sequences", nargs="*")
    parser.add_argument("--add", action="append", default=[])
    parser.add_argument("--colmap", action="store_true")
    parser.add_argument("--time", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", default="")
    parser.add_argument("--equal")
    parser.add_argument("--base", action="append", default=[])
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
    for base in arguments.base:
        same = base.endswith(EQUAL)
        print_differences({name: pairs for name, pairs in rows.items() if name.endswith(EQUAL) == same}, base)
    for image in arguments.time:
        print_times(arguments, image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
