#!/usr/bin/env python3
"""Time from JPEG files to a COLMAP database: `hartsift batch -o FILE.db` and pycolmap's extract_features.

usage: extraction BUILD_FOLDER MOSAIC.png SMALL_MOSAIC.png [--pycolmap PYTHON] [--device cuda|cpu] [--images N]
[--rounds N]

The collections are those of the mode batch, --images (48) different files of each, in /dev/shm (or TMPDIR). The two are
interleaved, --rounds times (3), each on a new database: profile `colmap` and COLMAP's defaults (doubled, peak threshold
0.02 / 3), pictures in their own size, with COLMAP's limit of 8192 (counted before orientations) and without a limit.
hartsift: the seconds of its summary. pycolmap: seconds of extract_features alone, in an interpreter (--pycolmap,
default: this one) that has extracted one picture before. Prints medians, and the mean number of features per image from
the databases.
"""
import argparse
import contextlib
import datetime
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile

import batch

MOST = {"as COLMAP": 8192, "all": 262144}
COLMAP = """
import sys, tempfile, time, os, pycolmap
database, folder, most, device = sys.argv[1:]
options = pycolmap.FeatureExtractionOptions()
options.max_image_size = 100000
options.sift.max_num_features = int(most)
options.use_gpu = device == "cuda"
def extract(database, names):
    pycolmap.extract_features(database, folder, image_names=names, extraction_options=options,
                              device=getattr(pycolmap.Device, device))
names = sorted(os.listdir(folder))
with tempfile.TemporaryDirectory() as place:
    extract(os.path.join(place, "first.db"), names[:1])
start = time.perf_counter()
extract(database, names)
print("seconds", time.perf_counter() - start)
"""


def features(database):
    with contextlib.closing(sqlite3.connect(database)) as opened:
        return opened.execute("SELECT count(*), avg(rows) FROM keypoints").fetchone()


def by_hartsift(given, place, name, room):
    """Returns the seconds of an extraction, and its database."""
    options = ["--profile", "colmap", "--devices", "cpu" if given.device == "cpu" else "cuda:0"]
    options += ["--max-features", "0"] if room == "all" else []
    return batch.batch(given.build, place, name, options)["seconds"], f"{place}/out.db"


def by_colmap(given, place, name, room):
    database = f"{place}/colmap.db"
    with contextlib.suppress(FileNotFoundError):
        os.remove(database)
    ended = subprocess.run([given.pycolmap, "-c", COLMAP, database, f"{place}/{name}", str(MOST[room]), given.device],
                           check=True, capture_output=True, text=True)
    return float(ended.stdout.split("seconds")[-1]), database


def row(given, place, name, room):
    ways = {"hartsift": by_hartsift, "COLMAP": by_colmap}
    seconds, found = {way: [] for way in ways}, {}
    for turn in range(given.rounds):
        for way in sorted(ways, reverse=turn % 2 == 1):
            passed, database = ways[way](given, place, name, room)
            seconds[way].append(passed)
            found[way] = features(database)
    if found["hartsift"][0] != found["COLMAP"][0]:
        raise SystemExit(f"{name}: images in the databases: {found}")
    rate = {way: found[way][0] / statistics.median(seconds[way]) for way in ways}
    cells = [name, room, *(f"{found[way][1]:.0f}" for way in ways), *(f"{rate[way]:.1f}" for way in ways),
             f"{rate['hartsift'] / rate['COLMAP']:.1f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("mosaics", nargs=2)
    parser.add_argument("--pycolmap", default=sys.executable)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where, prefix="hartsift-") as place:
        batch.make(place, given.mosaics, given.images, 0)
        print(f"{datetime.date.today()}; {batch.device_of(given.build)}; {len(os.sched_getaffinity(0))} cores; device "
              f"{given.device}; {given.images} files a collection, {given.rounds} rounds\n", flush=True)
        print("| pictures | at most | features, hartsift | COLMAP | images/s, hartsift | COLMAP | factor |\n|---|---|--:|--:|--:|--:|--:|")
        for name in batch.COLLECTIONS:
            for room in MOST:
                row(given, place, name, room)


if __name__ == "__main__":
    sys.exit(main())
