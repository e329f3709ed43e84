"""What a Ray cluster of three nodes on this machine shows, as Markdown: the digests of `hartsift batch` on one process, also
with a node killed and with an actor crashing in the middle; matching as in one process; the rate beside `hartsift batch`.

usage: ray_cluster_report.py [--images 1000] [--pairs-of 60] [--rounds 3] COMMAND
COMMAND is hartsift of a build whose library the package uses (HARTSIFT_LIBRARY, PYTHONPATH). Needs hartsift[ray], Pillow.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))
from pictures import manifest_digests, write_picture, write_pictures
from ray_cluster import InTheMiddle, crash_actor, kill_node, three_nodes

import hartsift.ray
from hartsift import parquet
from hartsift._pair_lists import MatchSettings, match_named_pairs, select_pairs

RATE_IMAGES, RATE_CORES = 160, 2
WRITING = {"ray_remote_args": {"num_cpus": 0.05}, "concurrency": 3, "compression": "zstd"}


def run_batch(command, photos, out, threads):
    """Seconds that the command takes."""
    start = time.perf_counter()
    subprocess.run([command, "batch", photos, "-o", out, "-q", "--device", "cpu", "--threads", str(threads)], check=False)
    return time.perf_counter() - start


def extract(photos, out):
    start = time.perf_counter()
    hartsift.ray.extract(photos, batch_size=16).write_parquet(str(out), **WRITING)
    return time.perf_counter() - start


def digests_of(folder):
    return {row["image"]: row["digest"] for row, _ in parquet.read(folder, ["image", "digest", "x", "y"])}


def report(what, good, more=""):
    print(f"- {'yes' if good else 'NO'}: {what}{more}", flush=True)
    return good


def show_extraction(photos, digests, work, only):
    good = True
    for name, actions in (("as it is", ()), ("an actor crashes in the middle", (crash_actor,)),
                          ("a node is killed in the middle", (kill_node,))):
        if only not in (None, "extract", name.split()[1]):
            continue
        out = work / name.split()[1]
        with three_nodes() as cluster:
            with InTheMiddle(out, *[lambda action=action: action(cluster) for action in actions]) as middle:
                seconds = extract(photos, out)
            done = len(middle.done) == len(actions)
        found = digests_of(out)
        good &= report(f"digests of one process, {name}", done and found == digests,
                       f" ({len(found)} images, {sum(one is None for one in found.values())} failed, {seconds:.1f} s with "
                       "the start of actors)")
    return good


def show_matching(photos, count, work):
    parquet.batch([str(path) for path in sorted(photos.rglob("*.*"))[:count]], work / "some.parquet", device="cpu")
    found = {row["image"]: features for row, features in parquet.read(work / "some.parquet")}
    pairs = list(select_pairs(list(found), "all"))
    known = {name: features for name, features in found.items() if features is not None}
    expected = match_named_pairs(known, pairs, MatchSettings(), device="cpu").to_pylist()
    with three_nodes():
        matched = hartsift.ray.match_pairs(str(work / "some.parquet"), pairs, images_per_block=16)
        matched.write_parquet(str(work / "matches"), **WRITING)
    rows = sorted(pq.read_table(work / "matches").to_pylist(), key=lambda row: (row["image_a"], row["image_b"]))
    expected.sort(key=lambda row: (row["image_a"], row["image_b"]))
    return report(f"all {len(pairs)} pairs of {count} images as in one process", rows == expected,
                  f" ({sum(row['matches'] or 0 for row in rows)} matches, {sum(bool(row['found']) for row in rows)} pairs "
                  "with a geometry)")


def rate_of_batch(command, photos, out, threads):
    """Images a second, as the command tells it."""
    run = subprocess.run([command, "batch", photos, "-o", out, "-q", "--json", "--device", "cpu", "--threads", str(threads)],
                         stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout.decode().splitlines()[-1])["summary"]["images_per_second"]


def rate_of_ray(photos, out, actors):
    """Images a second between the first file of results and the last, so without the start of actors."""
    hartsift.ray.extract(photos, batch_size=4, concurrency=actors).write_parquet(str(out), **WRITING)
    ends = sorted((path.stat().st_mtime, pq.read_metadata(path).num_rows) for path in out.glob("*.parquet"))
    return sum(rows for _, rows in ends[1:]) / (ends[-1][0] - ends[0][0])


def show_rate(command, rounds, work):
    """Both on two cores, in turns; 640x480, where a frame is most of the work, as it is of photographs."""
    for number in range(RATE_IMAGES):
        write_picture(work / "large" / f"{number}.jpg", hartsift.render_scene(640, 480, number % 24 + 1))
    rates = {"batch": [], "ray": []}
    with three_nodes():
        for turn in range(rounds):
            rates["batch"].append(rate_of_batch(command, work / "large", work / f"batch-{turn}", RATE_CORES))
            rates["ray"].append(rate_of_ray(work / "large", work / f"ray-{turn}", RATE_CORES))
    print(f"\n| way | images/s in {rounds} rounds | median |\n|---|---|--:|")
    for name, values in rates.items():
        print(f"| {name} | {', '.join(f'{value:.1f}' for value in values)} | {statistics.median(values):.1f} |")
    shares = [one / other for one, other in zip(rates["ray"], rates["batch"])]
    print(f"\nRay's rate by batch's, round by round: {', '.join(f'{share:.0%}' for share in shares)}.")


def main():
    # Ray's workers are nice 15: beside other work on the machine they would be measured, not what they do.
    os.environ["RAY_worker_niceness"] = "0"
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--pairs-of", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["extract", "it", "actor", "node", "match", "rate"])
    parser.add_argument("command")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        photos = work / "photos"
        write_pictures(photos, arguments.images, broken=set(range(arguments.images // 20, arguments.images,
                                                                  max(1, arguments.images // 10))))
        run_batch(arguments.command, photos, work / "batch", 1)
        digests = manifest_digests(work / "batch" / "manifest.csv")
        print(f"{len(digests)} images, {sum(one is None for one in digests.values())} of them broken\n", flush=True)
        good = True
        if arguments.only not in ("match", "rate"):
            good &= show_extraction(photos, digests, work, arguments.only)
        if arguments.only in (None, "match"):
            good &= show_matching(photos, arguments.pairs_of, work)
        if arguments.only in (None, "rate"):
            show_rate(arguments.command, arguments.rounds, work)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
