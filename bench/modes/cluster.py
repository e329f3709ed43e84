"""A Ray cluster of three nodes on this machine, compared with one process.

Checks that its digests equal those of `hartsift batch`, also with a killed node and a crashing actor, and that matching
equals matching in one process. Measures the rates of both.

usage: cluster [--images 1000] [--pairs-of 60] [--rounds 3] [--cores 2] [--rate-of N,WIDTH,HEIGHT] [--cuda ACTORS]
           [--max-features 0] [--only extract|it|actor|node|match|rate] COMMAND
COMMAND is hartsift of a build whose library the package uses (HARTSIFT_LIBRARY, PYTHONPATH). Needs hartsift[ray],
Pillow.
Rates are measured on one node with --cores cores; with --cuda also one GPU, shared by ACTORS actors.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "tests"))
from pictures import manifest_digests, write_picture, write_pictures
from ray_cluster import InTheMiddle, crash_actor, kill_node, one_node, three_nodes

import hartsift.ray
from hartsift import parquet
from hartsift._pair_lists import MatchSettings, match_named_pairs, select_pairs
from hartsift._ray_extract import extract_into

RATE_SCENES = 24
WRITING = {"ray_remote_args": {"num_cpus": 0.05}, "compression": "zstd"}
EVENTS = {"as it is": (), "an actor crashes in the middle": (crash_actor,), "a node is killed in the middle": (kill_node,)}


def run_batch(command, photos, out, threads):
    """Returns the seconds that the command takes."""
    start = time.perf_counter()
    subprocess.run([command, "batch", photos, "-o", out, "-q", "--device", "cpu", "--threads", str(threads)], check=False)
    return time.perf_counter() - start


def extract(photos, out):
    start = time.perf_counter()
    hartsift.ray.extract(photos, batch_size=16).write_parquet(str(out), concurrency=3, **WRITING)
    return time.perf_counter() - start


def digests_of(folder):
    return {row["image"]: row["digest"] for row, _ in parquet.read(folder, ["image", "digest", "x", "y"])}


def report(what, good, more=""):
    print(f"- {'yes' if good else 'NO'}: {what}{more}", flush=True)
    return good


def show_extraction(photos, digests, work, only):
    good = True
    for name, actions in EVENTS.items():
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
    expected.sort(key=lambda row: (row["image_a"], row["image_b"]))
    good = True
    for name, actions in EVENTS.items():
        out = work / f"matches-{name.split()[1]}"
        with three_nodes() as cluster:
            with InTheMiddle(out, *[lambda action=action: action(cluster, "MatchingActor") for action in actions]) as middle:
                matched = hartsift.ray.match_pairs(str(work / "some.parquet"), pairs, images_per_block=16, pairs_per_task=32)
                matched.write_parquet(str(out), concurrency=3, **WRITING)
            done = len(middle.done) == len(actions)
        rows = sorted(pq.read_table(out).to_pylist(), key=lambda row: (row["image_a"], row["image_b"]))
        good &= report(f"all {len(pairs)} pairs of {count} images as in one process, {name}", done and rows == expected,
                       f" ({sum(row['matches'] or 0 for row in rows)} matches, {sum(bool(row['found']) for row in rows)} "
                       "pairs with a geometry)")
    return good


def rate_of_batch(device, arguments, photos, out):
    """Returns images per second, from the command's summary. Removes the outputs, as rate_of_ray does: runs on a RAM disk
    then find the same memory free."""
    run = subprocess.run([arguments.command, "batch", photos, "-o", out, "-q", "--json", "--device", device, "--threads",
                          str(arguments.cores), "--max-features", str(arguments.max_features)],
                         stdout=subprocess.PIPE, check=True)
    shutil.rmtree(out)
    return json.loads(run.stdout.decode().splitlines()[-1])["summary"]["images_per_second"]


def rate_of_ray(arguments, photos, out):
    """Returns images per second of `python -m hartsift.ray extract` between its first and its last file, which excludes
    the start of actors."""
    if arguments.cuda:
        share = arguments.cores / arguments.cuda
        actors = {"num_gpus": 1 / arguments.cuda, "num_cpus": share, "concurrency": arguments.cuda}
    else:
        actors = {"concurrency": arguments.cores}
    out.mkdir()
    for _ in extract_into(str(out), photos, max_features=arguments.max_features, **actors).iter_batches(batch_size=None):
        pass
    ends = sorted((path.stat().st_mtime, pq.read_metadata(path).num_rows) for path in out.glob("*.parquet"))
    shutil.rmtree(out)
    return sum(rows for _, rows in ends[1:]) / (ends[-1][0] - ends[0][0])


def show_rate(arguments, work):
    """Prints the rates of both on the same cores, interleaved. One node is used, because three nodes on one machine would
    compete."""
    count, width, height = map(int, arguments.rate_of.split(","))
    photos = work / "large"
    for number in range(min(count, RATE_SCENES)):
        write_picture(photos / f"{number}.jpg", hartsift.render_scene(width, height, number + 1))
    for number in range(RATE_SCENES, count):
        os.link(photos / f"{number % RATE_SCENES}.jpg", photos / f"{number}.jpg")
    device = "cuda:0" if arguments.cuda else "cpu"
    rates = {"batch": [], "ray": []}
    with one_node(arguments.cores):
        for turn in range(arguments.rounds):
            rates["batch"].append(rate_of_batch(device, arguments, photos, work / f"batch-{turn}"))
            rates["ray"].append(rate_of_ray(arguments, photos, work / f"ray-{turn}"))
    print(f"\n{count} JPEGs of {width} x {height}, {device}, {arguments.cores} cores, "
          f"--max-features {arguments.max_features}\n")
    print(f"| way | images/s in {arguments.rounds} rounds | median |\n|---|---|--:|")
    for name, values in rates.items():
        print(f"| {name} | {', '.join(f'{value:.1f}' for value in values)} | {statistics.median(values):.1f} |")
    shares = [one / other for one, other in zip(rates["ray"], rates["batch"])]
    print(f"\nRay's rate by batch's, round by round: {', '.join(f'{share:.0%}' for share in shares)}.")


def main():
    # Ray's workers are nice 15: other work on the machine would slow them and distort the rates.
    os.environ["RAY_worker_niceness"] = "0"
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--pairs-of", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rate-of", default="1200,640,480")
    parser.add_argument("--cuda", type=int, default=0)
    parser.add_argument("--max-features", type=int, default=0)
    parser.add_argument("--only", choices=["extract", "it", "actor", "node", "match", "rate"])
    parser.add_argument("command")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        photos = work / "photos"
        good = True
        if arguments.only != "rate":
            write_pictures(photos, arguments.images, broken=set(range(arguments.images // 20, arguments.images,
                                                                      max(1, arguments.images // 10))))
        if arguments.only not in ("match", "rate"):
            run_batch(arguments.command, photos, work / "batch", 1)
            digests = manifest_digests(work / "batch" / "manifest.csv")
            print(f"{len(digests)} images, {sum(one is None for one in digests.values())} of them broken\n", flush=True)
            good &= show_extraction(photos, digests, work, arguments.only)
        if arguments.only in (None, "match"):
            good &= show_matching(photos, arguments.pairs_of, work)
        if arguments.only in (None, "rate"):
            show_rate(arguments, work)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
