"""Which verified pairs a collection's tracks contradict."""

import numpy as np
import pytest

import hartsift

COUNTS = [400] * 6


def pair(first, second, matches, inliers, start=0, shift=0):
    """A pair in which feature k of each image shows point k. For a pair of look-alikes the features are shifted."""
    features = np.arange(start, start + inliers)
    return first, second, matches, np.stack([features, features + shift], 1)


SURE = [pair(0, 1, 240, 200), pair(1, 2, 240, 200), pair(3, 4, 240, 200)]
WEAK = [
    pair(0, 2, 100, 40),
    pair(0, 2, 100, 40, shift=60),
    pair(0, 3, 100, 40, shift=60),
    pair(0, 1, 100, 40, start=190),
]
EXPECTED = [
    hartsift.PairVerdict("supported", 40, 40),
    hartsift.PairVerdict("doubtful", 40, 0),
    hartsift.PairVerdict("only-link", 40, 0),
    hartsift.PairVerdict("supported", 10, 10),
]


def test_verdicts():
    pairs = SURE + WEAK
    found = hartsift.judge_pairs(COUNTS, pairs)
    assert found == [hartsift.PairVerdict("sure", 0, 0)] * 3 + EXPECTED
    assert hartsift.judge_pairs(np.array(COUNTS), iter(pairs[::-1])) == found[::-1]
    mixed = pair(0, 2, 100, 40, start=190)  # 10 inliers have both features on one track, one of them on two tracks instead, 30 on none
    mixed[3][9, 1] = 5
    assert hartsift.judge_pairs(COUNTS, [*pairs, mixed])[-1] == hartsift.PairVerdict("supported", 10, 9)
    assert hartsift.judge_pairs(COUNTS, [*pairs, mixed], least_support=0.3)[-1].verdict == "doubtful"
    assert hartsift.judge_pairs(COUNTS, pairs, doubtful_share=0.0)[-3].verdict == "doubtful"
    assert hartsift.judge_pairs(COUNTS, pairs, sure_inliers=201)[3].verdict == "only-link"
    assert hartsift.judge_pairs(COUNTS, pairs, sure_inliers=40, sure_share=0.4)[4].verdict == "sure"


def test_nothing_to_judge():
    assert hartsift.judge_pairs([], []) == [] == hartsift.judge_pairs(COUNTS, ())
    assert hartsift.judge_pairs(COUNTS, [(0, 1, 0, []), (2, 1, 7, np.empty((0, 2), np.uint32))]) == [
        hartsift.PairVerdict("only-link", 0, 0)
    ] * 2


def test_refused():
    for counts, pairs, options in (
        (COUNTS, [pair(0, 6, 9, 5)], {}),
        (COUNTS, [pair(2, 2, 9, 5)], {}),
        (COUNTS, [pair(-1, 2, 9, 5)], {}),
        (COUNTS, [pair(0, 2, -9, 5)], {}),
        (COUNTS, [pair(0, 2, 9, 5, start=396)], {}),
        (COUNTS, [pair(0, 2, 9, 5, shift=-1)], {}),
        (COUNTS, [(0, 2, 9, [[0, 2**32]])], {}),
        (COUNTS, [(0, 2, 9, [[0.5, 1.0]])], {}),
        (COUNTS, [(0, 2, 9, [0, 1])], {}),
        (COUNTS, [(0, 2.5, 9, [[0, 1]])], {}),
        ([[400, 400]], [], {}),
        ([400, -1], [], {}),
        (COUNTS, SURE, {"sure_share": 1.5}),
        (COUNTS, SURE, {"doubtful_share": float("nan")}),
        (COUNTS, SURE, {"least_support": -0.1}),
        (COUNTS, SURE, {"sure_inliers": -1}),
    ):
        with pytest.raises(hartsift.ArgumentError):
            hartsift.judge_pairs(counts, pairs, **options)
    with pytest.raises(hartsift.ArgumentError, match="beyond its image's features"):
        hartsift.judge_pairs(COUNTS, [pair(0, 2, 9, 5, start=396)])
    with pytest.raises(hartsift.Error, match="2\\^32"):
        hartsift.judge_pairs([2**32 - 1, 1], [])


def test_pairs_that_were_matched():
    """The output of match_many is a valid input, as documented."""
    features = [hartsift.extract(hartsift.render_scene(260, 200, 3, [[1, 0, 12 * i], [0, 1, 4 * i], [0, 0, 1]])) for i in range(3)]
    found = [r for r in hartsift.match_many(features, verify="homography", device="cpu") if r.geometry.found]
    verdicts = hartsift.judge_pairs(
        [len(f) for f in features],
        [(r.first, r.second, len(r.matches), r.matches.pairs[r.geometry.inliers]) for r in found],
    )
    assert [v.verdict for v in verdicts] == ["sure"] * 3
