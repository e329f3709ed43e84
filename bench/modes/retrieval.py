"""Share of overlapping pairs that retrieval and COLMAP's vocabulary tree propose.

usage: retrieval DATABASE PAIRS [--neighbors K ...] [--shapes CENTRESxCOMPONENTS ...] [--colmap-words N]

DATABASE: a COLMAP database with features. PAIRS: the overlapping pairs, two names a line, as make_collection writes
them. --colmap-words (needs pycolmap) trains a vocabulary tree of N words on descriptors of the same collection and
queries it for the same numbers of neighbours. Needs the package hartsift (HARTSIFT_LIBRARY and PYTHONPATH, or an
installation) and NumPy.
"""
import argparse
import sys
import time

import numpy as np

import hartsift

SAMPLE = 262144


def report(label, neighbors, pairs, truth, seconds):
    found = {tuple(sorted(map(int, pair))) for pair in pairs}
    print(f"| {label} | {neighbors} | {len(found)} | {len(found & truth) / len(truth):.3f} | {seconds:.1f} |", flush=True)


def ours(lists, shapes, neighbors, truth):
    for shape in shapes:
        centres, components = map(int, shape.split("x"))
        start = time.perf_counter()
        retrieval = hartsift.Retrieval(centres=centres, components=components)
        retrieval.train(lists, per_image=-(-SAMPLE // len(lists)))
        vectors = np.stack([retrieval.describe(features) for features in lists])
        seconds = time.perf_counter() - start
        blended = hartsift.blend_similar(vectors)
        for name, rows in (("", vectors), (", blended", blended)):
            for count in neighbors:
                report(f"hartsift {shape}{name}", count, hartsift.similar_pairs(rows, count), truth, seconds)
        for count in neighbors:
            start = time.perf_counter()
            candidates = hartsift.similar_pairs(blended, hartsift.shortlist_length(count))
            pairs = hartsift.matching_pairs(lists, candidates, count)
            report(f"hartsift {shape}, blended, matched", count, pairs, truth, seconds + time.perf_counter() - start)


def colmap(database, numbers, lists, words, neighbors, truth):
    import pycolmap  # imported only if requested

    build = pycolmap.VisualIndex.BuildOptions()
    build.num_visual_words, build.num_rounds, build.num_iterations = words, 1, 5
    index = pycolmap.VisualIndex.create(128, 64)
    sample = np.concatenate([features.descriptors[:: max(1, len(features) * len(lists) // SAMPLE)] for features in lists])
    sift = pycolmap.FeatureExtractorType.SIFT
    start = time.perf_counter()
    index.build(build, pycolmap.FeatureDescriptorsFloat(data=sample.astype(np.float32), type=sift))
    print(f"vocabulary tree of {words} words from {len(sample)} descriptors: {time.perf_counter() - start:.0f} s",
          file=sys.stderr)
    index.write(database + ".tree")
    options = pycolmap.VocabTreePairingOptions()
    options.vocab_tree_path = database + ".tree"
    for count in neighbors:
        options.num_images = count + 1  # the image itself is among the results
        start = time.perf_counter()
        proposed = pycolmap.VocabTreePairGenerator(options, pycolmap.Database.open(database)).all_pairs()
        pairs = [(numbers[a], numbers[b]) for a, b in proposed if a != b]
        report(f"COLMAP's tree, {words} words", count, pairs, truth, time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("pairs")
    parser.add_argument("--neighbors", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--shapes", nargs="+", default=["256x32"])
    parser.add_argument("--colmap-words", type=int)
    options = parser.parse_args()
    with hartsift.ColmapDatabase(options.database, read_only=True) as database:
        images = list(database.images())
        lists = [database.read_features(image.image_id) for image in images]
    places = {image.name: place for place, image in enumerate(images)}
    with open(options.pairs, encoding="utf-8") as lines:
        truth = {tuple(sorted(places[name] for name in line.split())) for line in lines if line.strip()}
    print(f"{len(images)} images, {sum(map(len, lists))} features, {len(truth)} pairs overlap\n")
    print("| | neighbours | pairs | recall | s |\n|---|--:|--:|--:|--:|")
    ours(lists, options.shapes, options.neighbors, truth)
    if options.colmap_words:
        numbers = {image.image_id: place for place, image in enumerate(images)}
        colmap(options.database, numbers, lists, options.colmap_words, options.neighbors, truth)


if __name__ == "__main__":
    main()
