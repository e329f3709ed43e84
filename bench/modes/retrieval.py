"""Share of overlapping pairs that retrieval and COLMAP's vocabulary tree propose.

usage: retrieval DATABASE PAIRS [--neighbors K ...] [--shapes CENTRESxCOMPONENTS ...] [--colmap-words N]
       retrieval DATABASE --generate N [--neighbors K] [--device cpu|cuda] [--threads N]

DATABASE: a COLMAP database with features. PAIRS: the overlapping pairs, two names a line, as make_collection writes
them. --colmap-words (needs pycolmap) trains a vocabulary tree of N words on descriptors of the same collection and
queries it for the same numbers of neighbours. --generate measures time, memory and recall of N images that are made of
DATABASE's descriptors, 20 of each scene, for the first K (default 10). An image has 19 partners, of which a smaller K
cannot propose all. Needs the package hartsift (HARTSIFT_LIBRARY and PYTHONPATH, or an installation) and NumPy.
"""
import argparse
import resource
import sys
import time

import numpy as np

import hartsift

SAMPLE = 262144
FEATURES, VIEWS = 256, 20  # of a generated image, of a generated scene


def report(label, neighbors, pairs, truth, seconds):
    found = {tuple(sorted(map(int, pair))) for pair in pairs}
    print(f"| {label} | {neighbors} | {len(found)} | {len(found & truth) / len(truth):.3f} | {seconds:.1f} |", flush=True)


def ours(lists, shapes, neighbors, truth):
    for shape in shapes:
        centres, components = map(int, shape.split("x"))
        start = time.perf_counter()
        retrieval = hartsift.Retrieval(centres=centres, components=components)
        retrieval.train(lists, per_image=-(-SAMPLE // len(lists)))
        vectors = retrieval.describe_all(lists)
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


def generate(pool, count):
    """uint8 descriptors [count, FEATURES, 128] of images in random order, and the scene of each.

    A scene has 400 descriptors of the pool. Each of its VIEWS images has FEATURES / 2 of them, every entry changed by
    at most 8, and as many others of the pool.
    """
    random = np.random.default_rng(7)
    half = FEATURES // 2
    noise = random.integers(-8, 9, (1 << 22) + half * 128, dtype=np.int16)
    lists = np.empty((count, FEATURES, 128), np.uint8)
    order = random.permutation(count)
    scenes = np.empty(count, np.int64)
    for first in range(0, count, VIEWS):
        scene = pool[random.integers(0, len(pool), 400)]
        for image in order[first : first + VIEWS]:
            at = random.integers(0, 1 << 22)
            changed = scene[random.permutation(400)[:half]] + noise[at : at + half * 128].reshape(half, 128)
            lists[image, :half] = np.clip(changed, 0, 255)
            lists[image, half:] = pool[random.integers(0, len(pool), half)]
            scenes[image] = first
    return lists, scenes


def measure_generated(lists, count, neighbors, extractor):
    """Prints time, processor time, memory and recall of each step of `--pairs retrieval:K` on generated images."""
    clocks = [time.perf_counter(), time.process_time()]

    def step(name, scenes=None, pairs=None):
        used = resource.getrusage(resource.RUSAGE_SELF)
        now, processor = time.perf_counter(), used.ru_utime + used.ru_stime
        recall = ""
        if pairs is not None:
            sizes = np.unique(scenes, return_counts=True)[1]
            right = (scenes[pairs[:, 0]] == scenes[pairs[:, 1]]).sum()
            recall = f"{len(pairs)} pairs, recall {right / (sizes * (sizes - 1) // 2).sum():.4f}"
        print(f"| {name} | {now - clocks[0]:.1f} | {processor - clocks[1]:.1f} | {used.ru_maxrss / 2**20:.2f} | {recall} |",
              flush=True)
        clocks[:] = time.perf_counter(), processor

    pool = np.concatenate([features.descriptors for features in lists])
    print("| step | s | processor s | peak GiB | |\n|---|--:|--:|--:|---|")
    images, scenes = generate(pool, count)
    step(f"{count} images with {FEATURES} descriptors generated")
    shown = images[np.linspace(0, count - 1, min(count, 2048), dtype=np.int64)]
    retrieval = hartsift.Retrieval().train(list(shown), extractor=extractor)
    step("trained")
    vectors = retrieval.describe_all(images, extractor=extractor)
    step("described")
    vectors = hartsift.blend_similar(vectors, extractor=extractor)
    step("blended")
    candidates = hartsift.similar_pairs(vectors, hartsift.shortlist_length(neighbors), extractor=extractor)
    step("candidates", scenes, candidates)
    pairs = hartsift.matching_pairs(list(images), candidates, neighbors, extractor=extractor)
    step("matched", scenes, pairs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("pairs", nargs="?")
    parser.add_argument("--neighbors", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--shapes", nargs="+", default=["256x32"])
    parser.add_argument("--colmap-words", type=int)
    parser.add_argument("--generate", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if (options.pairs is None) == (options.generate is None) or (options.generate is not None and options.generate < 1):
        parser.error("PAIRS or --generate N of at least 1 is needed, and not both")
    with hartsift.ColmapDatabase(options.database, read_only=True) as database:
        images = list(database.images())
        lists = [database.read_features(image.image_id) for image in images]
    if options.generate:
        extractor = hartsift.Extractor(device=options.device, threads=options.threads)
        measure_generated(lists, options.generate, options.neighbors[0], extractor)
        return
    places = {image.name: place for place, image in enumerate(images)}
    with open(options.pairs, encoding="utf-8") as lines:
        truth = {tuple(sorted(places[name] for name in line.split())) for line in lines if line.strip()}
    if not truth:
        parser.error(f"{options.pairs} has no pairs")
    print(f"{len(images)} images, {sum(map(len, lists))} features, {len(truth)} pairs overlap\n")
    print("| | neighbours | pairs | recall | s |\n|---|--:|--:|--:|--:|")
    ours(lists, options.shapes, options.neighbors, truth)
    if options.colmap_words:
        numbers = {image.image_id: place for place, image in enumerate(images)}
        colmap(options.database, numbers, lists, options.colmap_words, options.neighbors, truth)


if __name__ == "__main__":
    main()
