#!/usr/bin/env python3
"""Rate from JPEG files to features on a GPU, and the rate of the same pictures from pinned memory.

usage: batch BUILD_FOLDER MOSAIC.png SMALL_MOSAIC.png [--images N] [--runs N] [--manifests N]
       batch BUILD_FOLDER MOSAIC.png SMALL_MOSAIC.png --gpus 1,2,4 [--images N] [--runs N]
       batch BUILD_FOLDER --folder FOLDER

Makes three collections in /dev/shm (or TMPDIR) with OpenCV, from crops of a large mosaic (bench_3840x2160.png) and a
smaller one (bench_1920x1080.png), quality 92, 4:2:0: dense 1920x1080, 1500x1000, and nine sizes from 0.5 to 20
megapixels. A collection has --images files (960), of which the first 96 (mixed: 45) are different pictures. Every
configuration runs --runs times (1), and the last run counts. --manifests N: also extracts N (10000) small files of all
kinds of JPEG, whose manifests must be equal when the GPU decodes, when the cores decode and without a GPU; 0: none.
Lines are printed as they are measured. With 16 cores and an H200 the defaults take 60 s.

--gpus LIST: instead, extracts 2000 features an image on each number of GPUs, interleaved, and prints the rate and its
multiple of the rate on the first number of GPUs; medians of the runs. The manifests must be equal.

--folder FOLDER: only compares manifests of all files in and below the folder that begin like a JPEG, whatever their
names, damaged ones included. All runs must refuse the same files.
"""
import argparse
import collections
import csv
import datetime
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing import Pool

import cv2

COLLECTIONS = {"dense 1920x1080": 96, "1500x1000": 96, "mixed": 45}
MIXED = [(870, 580), (1200, 800), (1500, 1000), (1740, 1160), (2450, 1630), (3000, 2000), (3460, 2310), (4240, 2830),
         (5470, 3650)]
SMALL = [(64, 64), (97, 61), (128, 200), (160, 120), (251, 83), (320, 240), (333, 250), (400, 300)]
QUALITY = 92
COLUMNS = ("pictures", "features", "from memory", "`--decoder cpu`", "the GPU decodes", "part", "read", "extract", "write",
           "cores", "into `database.db`")


class Maker:
    """Makes the pictures of a collection. Each collection has its own process, because a mosaic is large."""

    def __init__(self, folder, mosaics):
        self.folder = folder
        self.large, self.small = (cv2.imread(name) for name in mosaics)
        cv2.setNumThreads(1)

    def crop(self, width, height, drawn):
        source = self.large if width > self.small.shape[1] or drawn.random() < 0.5 else self.small
        rows, columns = source.shape[:2]
        if width > columns or height > rows:
            source = cv2.resize(source, (width, height), interpolation=cv2.INTER_CUBIC)
            rows, columns = height, width
        y, x = drawn.randrange(rows - height + 1), drawn.randrange(columns - width + 1)
        return cv2.flip(source[y : y + height, x : x + width], drawn.randrange(-1, 2))

    def collection(self, name, number):
        drawn = random.Random(1000 * number + len(name))
        size = MIXED[number % len(MIXED)] if name == "mixed" else tuple(int(side) for side in name.split()[-1].split("x"))
        cv2.imwrite(f"{self.folder}/{name}/{number:04}.jpg", self.crop(*size, drawn), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])

    def every_kind(self, number):
        drawn = random.Random(number)
        picture = self.crop(*drawn.choice(SMALL), drawn)
        options = [cv2.IMWRITE_JPEG_QUALITY, drawn.choice([10, 30, 50, 75, 90, 95, 100])]
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, drawn.choice([0x411111, 0x211111, 0x221111, 0x121111, 0x111111])]
        options += [cv2.IMWRITE_JPEG_RST_INTERVAL, drawn.choice([0, 0, 1, 7])]
        options += [cv2.IMWRITE_JPEG_PROGRESSIVE, int(drawn.random() < 0.05), cv2.IMWRITE_JPEG_OPTIMIZE, drawn.randrange(2)]
        if drawn.random() < 0.2:
            picture = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
        cv2.imwrite(f"{self.folder}/kinds/{number:05}.jpg", picture, options)


def make_in_process(*given):
    global maker
    maker = Maker(*given)


def make_one(job):
    name, number = job
    if name == "kinds":
        maker.every_kind(number)
    else:
        maker.collection(name, number)


def make(folder, mosaics, images, kinds):
    jobs = []
    for name, different in sorted(COLLECTIONS.items(), reverse=True):  # the largest pictures first
        jobs += [(name, number) for number in reversed(range(min(images, different)))]
    jobs += [("kinds", number) for number in range(kinds)]
    for name in {job[0] for job in jobs}:
        os.mkdir(f"{folder}/{name}")
    with Pool(len(os.sched_getaffinity(0)), make_in_process, (folder, mosaics)) as pool:
        pool.map(make_one, jobs, 4)
    for name, different in COLLECTIONS.items():
        for number in range(different, images):
            os.link(f"{folder}/{name}/{number % different:04}.jpg", f"{folder}/{name}/{number:04}.jpg")


def rate_in_memory(build, folder, name, options):
    """Returns images per second, and features per image."""
    files = sorted(os.listdir(f"{folder}/{name}"))[: min(COLLECTIONS[name], 48)]
    command = [f"{build}/bench/bench_hartsift", "collection", "--rounds", "2", *options]
    command += [f"{folder}/{name}/{file}" for file in files]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(words[0]), int(words[2])


def batch(build, folder, images, options, some_are_refused=False):
    """Returns the summary of a run, whose outputs are kept."""
    for path in os.listdir(folder):
        if path.startswith("out"):
            shutil.rmtree(f"{folder}/{path}") if os.path.isdir(f"{folder}/{path}") else os.remove(f"{folder}/{path}")
    output = f"{folder}/out" if "--format" in options else f"{folder}/out.db"
    ended = subprocess.run([f"{build}/hartsift", "batch", images, "-o", output, "--json", "--quiet", *options],
                           check=not some_are_refused, capture_output=True, text=True)
    return json.loads(ended.stdout.strip().split("\n")[-1])["summary"]


def row(build, folder, name, features, runs):
    """Returns a line of the table. Its columns "CPU ms" and "cores" belong to the run in which the GPU decodes."""
    options = ["--max-features", "2000"] if features == "2000" else []
    memory, found = rate_in_memory(build, folder, name, options)
    ways = {"cpu": ["--decoder", "cpu", "--format", "bin"], "gpu": ["--decoder", "auto", "--format", "bin"], "database": []}
    last = {}
    for _ in range(runs):
        for way, chosen in ways.items():
            last[way] = batch(build, folder, f"{folder}/{name}", ["--devices", "cuda:0", *chosen, *options])
    rate = {way: summary["images_per_second"] for way, summary in last.items()}
    seconds = last["gpu"]["cpu_seconds"]
    cpu = [f"{1000 * seconds[stage] / last['gpu']['done']:.2f}" for stage in ("read", "extract", "write")]
    cores = sum(seconds.values()) / last["gpu"]["seconds"] / len(os.sched_getaffinity(0))
    cells = [name, features if options else f"all ({found})", f"{memory:.0f}", f"{rate['cpu']:.0f}", f"{rate['gpu']:.0f}",
             f"{100 * rate['gpu'] / memory:.0f} %", *cpu, f"{100 * cores:.0f} %", f"{rate['database']:.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def compare_manifests(build, folder, images, some_are_refused=False):
    """Returns whether the manifests are equal, their number of rows, and the rate of each configuration."""
    ways = {"decoded by the GPU": ["cuda:0", "--decoder", "gpu"], "by the cores": ["cuda:0", "--decoder", "cpu"],
            "by `--decoder auto`": ["cuda:0"], "without a GPU": ["cpu"]}
    manifests, rates = [], []
    for way, options in ways.items():
        options = ["--format", "bin", "--max-features", "2000", "--devices", *options]
        summary = batch(build, folder, images, options, some_are_refused)
        rates.append(f"{way} {summary['images_per_second']:.0f}{'' if rates else ' images a second'}")
        manifests.append(manifest_of(folder))
    return all(manifest == manifests[0] for manifest in manifests), manifests[0], ", ".join(rates)


def compare_kinds(build, folder):
    equal, rows, rates = compare_manifests(build, folder, f"{folder}/kinds")
    print(f"\n{len(rows)} small files of all kinds (4:1:1, 4:2:2, 4:2:0, 4:4:0, 4:4:4, gray, restart intervals, "
          f"progressive ones): manifests\n{'equal' if equal else 'DIFFER'}: {rates}.", flush=True)
    return equal


def manifest_of(folder):
    with open(f"{folder}/out/manifest.csv", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def several_gpus(build, folder, name, counts, runs):
    """Returns the lines of the table of several GPUs, and whether their manifests are equal."""
    rates = collections.defaultdict(list)
    manifests = {}
    for _ in range(runs):
        for count in counts:
            devices = ",".join(f"cuda:{device}" for device in range(count))
            options = ["--devices", devices, "--format", "bin", "--max-features", "2000"]
            summary = batch(build, folder, f"{folder}/{name}", options)
            rates[count].append(summary["images_per_second"])
            manifests[count] = manifest_of(folder)
    for count in counts:
        rate = statistics.median(rates[count])
        print(f"| {name} | {count} | {rate:.0f} | {rate / statistics.median(rates[counts[0]]):.2f} |", flush=True)
    return all(manifest == manifests[counts[0]] for manifest in manifests.values())


def begins_as_jpeg(name):
    with open(name, "rb") as file:
        return file.read(2) == b"\xff\xd8"


def compare_folder(build, folder, images):
    names = sorted(os.path.join(at, name) for at, _, files in os.walk(images) for name in files)
    with open(f"{folder}/list.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{os.path.abspath(name)}\n" for name in names if begins_as_jpeg(name))
    equal, rows, rates = compare_manifests(build, folder, f"{folder}/list.txt", some_are_refused=True)
    refused = collections.Counter(row["status"] for row in rows if row["status"] != "HS_OK")
    print(f"{len(rows)} JPEGs of {images}, {refused.total()} of them refused "
          f"({', '.join(f'{count} {status}' for status, count in sorted(refused.items()))}): manifests, statuses and messages\n"
          f"{'equal' if equal else 'DIFFER'}: {rates}.", flush=True)
    return equal and len(rows) > refused.total()


def device_of(build):
    text = subprocess.run([f"{build}/hartsift", "info"], check=True, capture_output=True, text=True).stdout
    lines = [line.split("device: ", 1)[1] for line in text.splitlines() if "device: " in line]
    return lines[0] if lines else "no device"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("mosaics", nargs="*")
    parser.add_argument("--folder")
    parser.add_argument("--images", type=int, default=960)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--manifests", type=int, default=10000)
    parser.add_argument("--gpus", type=lambda text: [int(word) for word in text.split(",")], default=[])
    given = parser.parse_args()
    if given.folder and given.gpus:
        parser.error("--gpus needs two mosaics")
    if len(given.mosaics) != (0 if given.folder else 2):
        parser.error("expected two mosaics, or --folder")
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=place, prefix="hartsift-") as folder:
        if given.folder:
            return 0 if compare_folder(given.build, folder, given.folder) else 1
        make(folder, given.mosaics, given.images, 0 if given.gpus else given.manifests)
        if given.gpus:
            print("| pictures | GPUs | images a second | times the first |\n|---|--:|--:|--:|", flush=True)
            equal = [several_gpus(given.build, folder, name, given.gpus, given.runs) for name in COLLECTIONS]
            print(f"\nManifests {'equal' if all(equal) else 'DIFFER'}.", flush=True)
            return 0 if all(equal) else 1
        print(f"{datetime.date.today()}; {device_of(given.build)}; {len(os.sched_getaffinity(0))} cores. `python3 "
              f"bench/bench.py batch`, {given.images} files a collection, {given.runs} run(s)\neach; made in "
              f"{time.monotonic() - begun:.0f} s. *From memory*: `bench_hartsift collection`. Images a second, and CPU ms an "
              "image where the GPU decodes:\n", flush=True)
        print(f"| {' | '.join(COLUMNS)} |\n|---|---|{'--:|' * (len(COLUMNS) - 2)}", flush=True)
        for name in COLLECTIONS:
            for features in ("2000", "all"):
                row(given.build, folder, name, features, given.runs)
        equal = given.manifests == 0 or compare_kinds(given.build, folder)
        print(f"\nIn {time.monotonic() - begun:.0f} s.", flush=True)
        return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
