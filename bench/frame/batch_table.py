#!/usr/bin/env python3
"""From JPEG files to features, beside the rate of the same pictures in flight from pinned memory: one table in Markdown.

usage: batch_table.py BUILD_FOLDER MOSAIC.png SMALL_MOSAIC.png [--images N] [--runs N] [--manifests N]

Makes three collections in /dev/shm (or TMPDIR) with OpenCV, of crops of a large mosaic (bench_3840x2160.png) and of a
smaller one (bench_1920x1080.png), and of hartsift's generated scenes: dense 1920x1080, 1500x1000, and nine sizes from 0.5 to
20 megapixels. A collection has --images files (960), of which the first 96 (mixed: 90) are different pictures. Every way to
run is run --runs times (2), and the last counts. Decoders: gpu is the GPU, cpu the cores. --manifests N: as many
small files of all kinds of JPEG, whose manifests must be equal decoded by the GPU, by the cores and without a GPU.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from multiprocessing import Pool

import cv2

COLLECTIONS = {"dense 1920x1080": 96, "1500x1000": 96, "mixed sizes": 90}
MIXED = [(870, 580), (1200, 800), (1500, 1000), (1740, 1160), (2450, 1630), (3000, 2000), (3460, 2310), (4240, 2830),
         (5470, 3650)]
SMALL = [(64, 64), (97, 61), (128, 200), (160, 120), (251, 83), (320, 240), (333, 250), (400, 300)]
WAYS = {  # options, and decoders
    "files, 2000 features": (["--format", "bin", "--max-features", "2000"], ["gpu", "cpu"]),
    "files, all features": (["--format", "bin"], ["gpu", "cpu"]),
    "database, 2000 features": (["--max-features", "2000"], ["gpu"]),
    "database, all features": ([], ["gpu"]),
}
QUALITY = 92
SCENES_EVERY = 4  # one picture in so many is a generated scene


class Maker:
    """Pictures of the collections; one a process, because a mosaic is large."""

    def __init__(self, command, folder, mosaics):
        self.command, self.folder = command, folder
        self.large, self.small = (cv2.imread(name) for name in mosaics)
        cv2.setNumThreads(1)

    def scene(self, width, height, seed):
        path = f"{self.folder}/scene-{os.getpid()}.png"
        subprocess.run([self.command, "draw", f"@scene:{width}x{height}:{seed}", "--contrast", "1", "--first-octave", "0",
                        "--device", "cpu", "--threads", "1", "--quiet", "-o", path], check=True)
        return cv2.imread(path)

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
        is_mixed = name.startswith("mixed")
        size = MIXED[number % len(MIXED)] if is_mixed else tuple(int(side) for side in name.split()[-1].split("x"))
        is_scene = number % SCENES_EVERY == SCENES_EVERY - 1
        picture = self.scene(*size, number + 1) if is_scene else self.crop(*size, drawn)
        cv2.imwrite(f"{self.folder}/{name}/{number:04}.jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])

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


def make(command, folder, mosaics, images, kinds):
    jobs = [("kinds", number) for number in range(kinds)]
    for name, different in COLLECTIONS.items():
        jobs += [(name, number) for number in range(min(images, different))]
    for name in {job[0] for job in jobs}:
        os.mkdir(f"{folder}/{name}")
    with Pool(len(os.sched_getaffinity(0)), make_in_process, (command, folder, mosaics)) as pool:
        pool.map(make_one, jobs, 4)
    for name, different in COLLECTIONS.items():
        for number in range(different, images):
            os.link(f"{folder}/{name}/{number % different:04}.jpg", f"{folder}/{name}/{number:04}.jpg")


def rate_in_memory(build, folder, name, options):
    files = sorted(os.listdir(f"{folder}/{name}"))[: COLLECTIONS[name]]
    command = [f"{build}/bench/bench_collection_rate", *options, *(f"{folder}/{name}/{file}" for file in files)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])


def batch(build, folder, name, options):
    """The summary of a run; its outputs are left."""
    for path in os.listdir(folder):
        if path.startswith("out"):
            shutil.rmtree(f"{folder}/{path}") if os.path.isdir(f"{folder}/{path}") else os.remove(f"{folder}/{path}")
    output = f"{folder}/out" if "--format" in options else f"{folder}/out.db"
    ended = subprocess.run([f"{build}/hartsift", "batch", f"{folder}/{name}", "-o", output, "--json", "--quiet", *options],
                           check=True, capture_output=True, text=True)
    return json.loads(ended.stdout.strip().split("\n")[-1])["summary"]


def row(build, folder, name, way, decoder, memory, runs):
    options = ["--devices", "cuda:0", "--decoder", decoder, *WAYS[way][0]]
    summary = [batch(build, folder, name, options) for _ in range(runs)][-1]
    cpu = {stage: 1000 * seconds / summary["done"] for stage, seconds in summary["cpu_seconds"].items()}
    cores = sum(summary["cpu_seconds"].values()) / summary["seconds"] / len(os.sched_getaffinity(0))
    rate = summary["images_per_second"]
    print(f"| {name} | {way} | {decoder} | {summary['done']} | {memory:.0f} | {rate:.0f} | {100 * rate / memory:.0f} % "
          f"| {100 * cores:.0f} % | {cpu['read']:.2f} | {cpu['extract']:.2f} | {cpu['write']:.2f} |", flush=True)


def compare_manifests(build, folder):
    manifests, rates = [], []
    for options in ["cuda:0", "--decoder", "gpu"], ["cuda:0", "--decoder", "cpu"], ["cpu"]:
        summary = batch(build, folder, "kinds", ["--format", "bin", "--devices", *options])
        rates.append(summary["images_per_second"])
        with open(f"{folder}/out/manifest.csv", encoding="utf-8") as file:
            manifests.append(file.read())
    equal = all(manifest == manifests[0] for manifest in manifests)
    print(f"\n{len(manifests[0].splitlines()) - 1} lines of manifests {'equal' if equal else 'DIFFER'}: decoded by the GPU, "
          f"by the cores, without a GPU ({', '.join(f'{rate:.0f}' for rate in rates)} images/s)")
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("mosaics", nargs=2)
    parser.add_argument("--images", type=int, default=960)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--manifests", type=int, default=0)
    given = parser.parse_args()
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, prefix="hartsift-") as folder:
        make(f"{given.build}/hartsift", folder, given.mosaics, given.images, given.manifests)
        print("| pictures | way | decoder | number | images/s in flight from memory | images/s | part | cores "
              "| CPU ms an image: read | extract | write |", flush=True)
        print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for name in COLLECTIONS:
            memory = {way: rate_in_memory(given.build, folder, name, ["--max-features", "2000"] if "2000" in way else [])
                      for way in list(WAYS)[:2]}
            for way, (_, decoders) in WAYS.items():
                for decoder in decoders:
                    row(given.build, folder, name, way, decoder, memory["files" + way[way.index(",") :]], given.runs)
        return 0 if given.manifests == 0 or compare_manifests(given.build, folder) else 1


if __name__ == "__main__":
    sys.exit(main())
