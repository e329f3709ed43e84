"""Many pairs at once equal match and verify pair by pair."""

import numpy as np
import pytest

import hartsift


@pytest.fixture(scope="module")
def views():
    """Features of views of two scenes, and an empty list."""
    found = [
        hartsift.extract(hartsift.render_scene(260, 200, seed, [[1, 0, 12 * view], [0, 1, 4 * view], [0, 0, 1]]))
        for seed in (3, 4)
        for view in range(3)
    ]
    return [*found, found[0][:0]]


def test_pair_by_pair(views):
    results = list(hartsift.match_many(views, verify="homography", guided=False, threads=2, device="cpu"))
    expected = [(i, k) for i in range(len(views)) for k in range(i + 1, len(views))]
    assert [(r.first, r.second) for r in results] == expected
    for r in results:
        matches = hartsift.match(views[r.first], views[r.second])
        assert r.matches.records.tobytes() == matches.records.tobytes()
        geometry = hartsift.verify(views[r.first], views[r.second], matches, "homography")
        assert r.geometry.found == geometry.found and r.geometry.inlier_count == geometry.inlier_count
        assert np.array_equal(r.geometry.matrix, geometry.matrix)
        assert np.array_equal(r.geometry.inliers, geometry.inliers) and r.plane is None
    assert results[0].geometry.found and not results[2].geometry.found


def test_chosen_pairs_and_guided(views):
    pairs = np.array([[2, 0], [4, 3], [0, 5]])
    plain = list(hartsift.match_many(views, pairs, ratio=0.6, verify="fundamental", find_plane=True, device="cpu"))
    guided = list(hartsift.match_many(views, pairs, ratio=0.6, verify="fundamental", guided=True, device="cpu"))
    assert [(r.first, r.second) for r in guided] == [(2, 0), (4, 3), (0, 5)]
    assert guided[0].geometry.inlier_count > plain[0].geometry.inlier_count
    matches, inliers = guided[0].unguided
    assert (matches, inliers) == (len(plain[0].matches), plain[0].geometry.inlier_count) and plain[0].unguided is None
    assert plain[0].plane.model == "homography" and plain[0].plane.found  # a picture, shifted
    alone = list(hartsift.match_many([v.descriptors for v in views], pairs, device="cpu"))
    assert alone[0].geometry is None and len(alone[0].matches) > 50
    (nearest,) = hartsift.match_many(views, pairs[:1], next_distance=False, device="cpu")
    assert np.array_equal(nearest.matches.distances, alone[0].matches.distances)
    assert not nearest.matches.records["next_distance"].any()


def test_several_devices(views):
    one = list(hartsift.match_many(views, verify="fundamental", device="cpu"))
    two = list(hartsift.match_many(views, verify="fundamental", devices=["cpu", "cpu"], threads=1))
    assert [(r.first, r.second, r.matches.pairs.tobytes()) for r in two] == [
        (r.first, r.second, r.matches.pairs.tobytes()) for r in one
    ]
    assert {r.device for r in two} == {0}
    with pytest.raises(hartsift.ArgumentError, match="devices is empty"):
        hartsift.match_many(views, devices=[])


@pytest.mark.parametrize(
    ("lost", "text"),
    [
        (1, r"^devices\[2\] failed, and the other devices matched its pairs: launch failure$"),
        (2, r"^2 devices failed, and the others matched their pairs; the last, devices\[2\]: launch failure$"),
    ],
)
def test_devices_that_fail(views, monkeypatch, lost, text):
    def lost_devices(_run, last, message, _bytes):
        last._obj.value, message.value = 2, b"launch failure"
        return lost

    monkeypatch.setattr(hartsift._pairs.library, "hs_pairs_lost_devices", lost_devices)
    with pytest.warns(UserWarning, match=text) as warned:
        assert len(list(hartsift.match_many(views, devices=["cpu", "cpu", "cpu"], threads=1))) == 21
    assert warned[0].filename == __file__


def test_given_up_half_way(views):
    iterator = hartsift.match_many(views, device="cpu")
    first = next(iterator)
    iterator.close()
    assert len(first.matches) > 50 and first.matches.first[0] >= 0
    assert list(hartsift.match_many([], device="cpu")) == []


def test_refused(views):
    for bad in (
        {"pairs": [[0, 0]]},
        {"pairs": [[0, len(views)]]},
        {"pairs": [0, 1]},
        {"verify": "affine"},
        {"guided": True},
        {"verify": "essential", "cameras": [None]},
        {"verify_options": {"tolerance": 1.0}},
        {"ratio": 2.0},
    ):
        with pytest.raises(hartsift.Error):
            list(hartsift.match_many(views, **bad, device="cpu"))
    with pytest.raises(hartsift.ArgumentError):
        hartsift.match_many([v.descriptors for v in views], verify="homography")
    floats = [views[0], views[1].descriptors.astype(np.float32)]
    with pytest.raises(hartsift.ArgumentError, match="images 0 and 1"):
        list(hartsift.match_many(floats, device="cpu"))
