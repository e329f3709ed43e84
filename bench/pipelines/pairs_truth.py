"""Compares the verified pairs of a COLMAP database with a scene's true cameras.

usage: pairs_truth.py DATABASE SCENE [--pairs | --wrong] [--limit PIXELS] [--json FILE]

An inlier is right if it is at most LIMIT (4) pixels from both true epipolar lines; a pair is right if at least half of
its inliers are. Prints pairs with their measures (--pairs: all, --wrong: wrong ones, both by falling number of
inliers), then totals: all right pairs, right pairs by COLMAP's configuration (2 calibrated, 3 uncalibrated, 4 planar, 5
panoramic, 6 planar or panoramic, 7 watermark, 8 several), and wrong pairs. The column "behind" counts the right inliers
with a negative depth in a camera.
"""
import argparse
import contextlib
import dataclasses
import json
import pathlib
import sqlite3
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from scene_truth import epipolar_errors, read_scene  # noqa: E402

PAIR_BASE = 2147483647  # COLMAP's rule: pair_id = PAIR_BASE * smaller image_id + larger


@dataclasses.dataclass
class Pair:
    a: str
    b: str
    config: int
    matches: int
    inliers: int
    right: int  # inliers
    behind: int

    @property
    def share(self):
        return self.right / self.inliers

    @property
    def is_right(self):
        return 2 * self.right >= self.inliers


def judge_pairs(database, scene, limit=4.0):
    """Returns a Pair for each verified pair whose two images have true poses, and the mean number of features per image."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as c:
        names = {number: name.split("/")[-1] for number, name in c.execute("SELECT image_id, name FROM images")}
        places = {number: np.frombuffer(data, np.float32).reshape(rows, cols)[:, :2].astype(float) for number, rows, cols, data in
                  c.execute("SELECT image_id, rows, cols, data FROM keypoints WHERE rows > 0")}
        matches = dict(c.execute("SELECT pair_id, rows FROM matches"))
        rows = c.execute("SELECT pair_id, config, rows, data FROM two_view_geometries WHERE rows > 0 ORDER BY pair_id").fetchall()
    pairs = []
    for number, config, count, data in rows:
        a, b = divmod(number, PAIR_BASE)
        if names[a] not in scene.poses or names[b] not in scene.poses:
            continue
        inliers = np.frombuffer(data, np.uint32).reshape(count, 2)
        errors, in_front = epipolar_errors(scene, names[a], names[b], places[a][inliers[:, 0]], places[b][inliers[:, 1]])
        right = errors <= limit
        behind = int((right & ~in_front).sum())
        pairs.append(Pair(names[a], names[b], config, matches.get(number, 0), count, int(right.sum()), behind))
    return pairs, sum(map(len, places.values())) / max(1, len(names))


def total(pairs):
    sums = {field: sum(getattr(pair, field) for pair in pairs) for field in ("inliers", "right", "behind")}
    return {"pairs": len(pairs), **sums, "share": sums["right"] / max(1, sums["inliers"])}


def totals(pairs):
    right = [pair for pair in pairs if pair.is_right]
    kinds = {f"right, configuration {k}": [p for p in right if p.config == k] for k in sorted({p.config for p in right})}
    return {name: total(some) for name, some in {"right": right, **kinds, "wrong": [p for p in pairs if not p.is_right]}.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database")
    parser.add_argument("scene")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--limit", type=float, default=4.0)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    pairs, features = judge_pairs(arguments.database, read_scene(arguments.scene), arguments.limit)
    shown = [pair for pair in pairs if arguments.pairs or (arguments.wrong and not pair.is_right)]
    if shown:
        print("| pair | configuration | matches | inliers | share right | behind |\n|---|--:|--:|--:|--:|--:|")
    for pair in sorted(shown, key=lambda pair: -pair.inliers):
        print(f"| {pair.a} {pair.b} | {pair.config} | {pair.matches} | {pair.inliers} | {pair.share:.3f} | {pair.behind} |")
    sums = totals(pairs)
    print(f"\n{features:.0f} features an image\n\n| pairs | number | inliers | right inliers | share right | behind |"
          "\n|---|--:|--:|--:|--:|--:|")
    for name, row in sums.items():
        print(f"| {name} | {row['pairs']} | {row['inliers']} | {row['right']} | {row['share']:.4f} | {row['behind']} |")
    if arguments.json:
        arguments.json.write_text(json.dumps({"features": features, "totals": sums, "pairs": [
            {**dataclasses.asdict(pair), "is_right": pair.is_right} for pair in pairs]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
