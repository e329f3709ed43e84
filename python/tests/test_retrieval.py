"""Pairs of a collection: by names, positions and similar content."""

import numpy as np
import pytest

import hartsift

SCENES, VIEWS = 4, 3


@pytest.fixture(scope="module")
def collection():
    """Features of views, VIEWS of each scene."""
    return [
        hartsift.extract(hartsift.render_scene(240, 180, seed, [[1, 0, 15 * view], [0, 1, 5 * view], [0, 0, 1]]))
        for seed in range(SCENES)
        for view in range(VIEWS)
    ]


def test_size_of_the_sample(collection):
    """A collection with a known length gives as many pairs as the command."""

    def vector(images, **settings):
        retrieval = hartsift.Retrieval(centres=8, rounds=2).train(images, **settings)
        return retrieval.describe(collection[0]).tobytes()

    assert min(len(features) for features in collection) > 200
    assert vector(collection) == vector(collection, per_image=-(-262144 // len(collection)))
    assert vector(iter(collection)) == vector(collection, per_image=200) != vector(collection)


def test_sequential_pairs():
    names = ["img10.png", "img2.png", "img1.png", "img3.png"]
    assert hartsift.sequential_pairs(names, 1).tolist() == [[0, 3], [1, 2], [1, 3]]
    assert hartsift.sequential_pairs([str(i) for i in range(9)], 3, quadratic=True).tolist() == [
        [a, b] for a in range(9) for b in range(a + 1, 9) if b - a in (1, 2, 3, 4)
    ]
    assert hartsift.sequential_pairs([], 1).shape == (0, 2)
    with pytest.raises(hartsift.ArrayTypeError):
        hartsift.sequential_pairs("img", 1)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.sequential_pairs(names, -1)


def test_nearby_pairs():
    places = hartsift.earth_places([47.0, 47.0001, 47.0003, -47.0, np.nan], 8.0)
    assert places.shape == (5, 3) and np.isnan(places[4]).all()
    assert hartsift.nearby_pairs(places, 12).tolist() == [[0, 1]]
    assert hartsift.nearby_pairs(places, 40).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert hartsift.nearby_pairs(places, 40, at_most=1).tolist() == [[0, 1], [1, 2]]
    with pytest.raises(hartsift.ArgumentError):
        hartsift.nearby_pairs(places[:, :2], 5)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.earth_places(91, 0)


def test_retrieval_finds_the_views_of_a_scene(collection):
    retrieval = hartsift.Retrieval(centres=16, components=32).train(collection)
    vectors = np.stack([retrieval.describe(features) for features in collection])
    assert vectors.shape == (SCENES * VIEWS, retrieval.length) == (SCENES * VIEWS, 512)
    pairs = hartsift.similar_pairs(vectors, VIEWS - 1)
    expected = [[a, b] for a in range(len(vectors)) for b in range(a + 1, len(vectors)) if a // VIEWS == b // VIEWS]
    assert pairs.tolist() == expected and pairs.dtype == np.uint32
    blended = hartsift.blend_similar(vectors)
    assert blended.shape == vectors.shape and blended.dtype == np.int8 and not np.array_equal(blended, vectors)
    assert hartsift.similar_pairs(blended, VIEWS - 1).tolist() == expected
    one = hartsift.Extractor(threads=1, device="cpu")
    again = hartsift.Retrieval(centres=16, components=32).train([f.descriptors for f in collection], extractor=one)
    assert np.array_equal(again.describe(collection[0].descriptors, extractor=one), vectors[0])
    assert not retrieval.describe(collection[0][:0]).any()
    for extractor in (one, hartsift.Extractor(threads=3, device="cpu")):
        assert np.array_equal(retrieval.describe_all(collection, extractor=extractor), vectors)
    assert np.array_equal(retrieval.describe_all([f.descriptors for f in collection]), vectors)
    assert retrieval.describe_all([]).shape == (0, 512)


def test_pairs_that_match_best(collection):
    retrieval = hartsift.Retrieval(centres=16, components=32).train(collection)
    vectors = np.stack([retrieval.describe(features) for features in collection])
    candidates = hartsift.similar_pairs(vectors, hartsift.shortlist_length(1))
    assert hartsift.shortlist_length(1) == 60 and len(candidates) == len(collection) * (len(collection) - 1) // 2
    largest = [features[np.argsort(-features.records["sigma"], kind="stable")[:512]] for features in collection]
    counts = np.full((len(collection), len(collection)), -1)
    for a, b in candidates:
        counts[a, b] = counts[b, a] = len(hartsift.match(largest[a], largest[b]))
    best = counts.argmax(axis=1)
    expected = sorted({(min(a, b), max(a, b)) for a, b in enumerate(best.tolist())})
    found = hartsift.matching_pairs(collection, candidates, 1)
    assert list(map(tuple, found.tolist())) == expected and found.dtype == np.uint32
    one = hartsift.Extractor(threads=1, device="cpu")
    assert np.array_equal(hartsift.matching_pairs(collection, candidates, 1, extractor=one), found)
    assert hartsift.matching_pairs(collection, [], 1).shape == (0, 2)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.matching_pairs(collection, [[0, len(collection)]], 1)


def test_vectors_of_another_description():
    angles = np.array([0, 0.1, 0.25, 2, 2.2])
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1)
    for kind in (np.float16, np.float32, np.float64):
        assert hartsift.similar_pairs(vectors.astype(kind), 1).tolist() == [[0, 1], [1, 2], [3, 4]]
    assert hartsift.blend_similar(vectors).dtype == np.int8
    for number, reason in ((np.nan, "not finite"), (1e300, "beyond the range of float32")):
        vectors[2, 1] = number
        with pytest.raises(hartsift.ArgumentError, match=reason):
            hartsift.similar_pairs(vectors, 1)


def test_wrong_arguments(collection):
    for options in ({"centres": 0}, {"components": 129}, {"rounds": 0}, {"centres": 1024, "components": 128}):
        with pytest.raises(hartsift.ArgumentError, match="expected"):
            hartsift.Retrieval(**options)
    retrieval = hartsift.Retrieval(centres=4, components=4, rounds=1)
    with pytest.raises(hartsift.ArgumentError, match="train first"):
        retrieval.describe(collection[0])
    with pytest.raises(hartsift.ArgumentError, match="no descriptor"):
        retrieval.train([collection[0][:0]])
    with pytest.raises(hartsift.ArrayTypeError, match="uint8"):
        retrieval.train([collection[0].descriptors.astype(np.float32)])
    retrieval.train(collection[:1])
    with pytest.raises(hartsift.ArgumentError, match="already"):
        retrieval.train(collection)
    with pytest.raises(hartsift.ArrayTypeError):
        hartsift.similar_pairs(np.zeros((2, 4), np.uint8), 1)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.similar_pairs(np.zeros(4, np.int8), 1)
    for neighbors in (2.0, None, "2", [1]):
        with pytest.raises(hartsift.ArgumentError, match="whole number"):
            hartsift.similar_pairs(np.zeros((2, 4), np.int8), neighbors)
