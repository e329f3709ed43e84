"""NaN, infinities and numbers beyond float32: NumPy gives no warning, and the functions refuse or accept them."""

import warnings

import numpy as np
import pytest

import hartsift

EXTREMES = (np.nan, np.inf, -np.inf, 1e300, -1e300, 3e38, 1e-300, 0.0, -1.0)


@pytest.fixture(autouse=True)
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


@pytest.fixture(scope="module")
def features():
    return hartsift.extract("@scene:160x120:3")


def refuse_or_go_on(call):
    try:
        return call()
    except hartsift.Error as error:
        assert str(error)
        return None


@pytest.mark.parametrize("number", EXTREMES)
def test_given_keypoints(image, number):
    for columns in (range(4), (0,), (1,), (2,), (3,)):
        rows = np.tile([50.0, 60.0, 2.0, 1.0], (3, 1))
        rows[1, list(columns)] = number
        given = hartsift.Features.from_arrays(rows, np.zeros((3, 128), np.float32), responses=[1, number, 1])
        described, statuses = hartsift.Extractor().describe(image, given)
        assert len(described) == len(statuses) == 3 and statuses[0] == statuses[2] == 0
        refuse_or_go_on(lambda rows=rows: hartsift.extract_patches(image, rows))
        records = hartsift.to_cv_records(given)
        assert len(hartsift.SIFT().compute(image, records)[1]) == 3
        if not (0 <= number < 1e38):
            continue
        assert len(hartsift.SIFT().compute(image, given)[0]) == 3


@pytest.mark.parametrize("number", EXTREMES)
def test_given_descriptors(features, number):
    rows = features.descriptors.astype(np.float64)
    rows[1] = number
    given = hartsift.Features.from_arrays(features.keypoints, rows)
    other = features.descriptors.astype(np.float32)
    for call in (
        lambda: hartsift.match(given, other),
        lambda: hartsift.find_k_nearest(given, other, 3),
        lambda: hartsift.find_within(other, given, 300.0),
        lambda: given.digest,
    ):
        refuse_or_go_on(call)


@pytest.mark.parametrize("number", EXTREMES)
def test_images_and_places(number):
    picture = np.full((40, 50), number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for value_range in (None, (0.0, 1.0), (0.0, 1e305)):
            refuse_or_go_on(lambda value_range=value_range: hartsift.extract(picture, value_range=value_range))
    for function in (hartsift.reduce_sum, hartsift.reduce_mean, hartsift.reduce_min, lambda a: hartsift.tile_stats(a, (7, 7))):
        function(picture)
    points = np.full((20, 2), number)
    refuse_or_go_on(lambda: hartsift.verify(points, points))
    refuse_or_go_on(lambda: hartsift.nearby_pairs(np.full((3, 3), number), 5))
    refuse_or_go_on(lambda: hartsift.earth_places([number, 50], [8, number], [number, 100]))
    with pytest.raises(hartsift.ArgumentError, match="latitude is 95 and longitude 8, expected at most 90 and 360"):
        hartsift.earth_places(95, 8)


def test_levels_that_are_no_numbers():
    for name in ("octaves", "levels"):
        for values in ([0.5], [np.nan], [1 << 20]):
            with pytest.raises(hartsift.ArgumentError, match=f"{name} are not whole numbers"):
                hartsift.Features.from_arrays(np.zeros((1, 4)), **{name: values})
        assert len(hartsift.Features.from_arrays(np.zeros((1, 4)), **{name: [3.0]})) == 1


def test_rows_of_unit_length(features, tmp_path):
    h5py = pytest.importorskip("h5py")
    rows = np.zeros((3, 128), np.float32)
    rows[1], rows[2] = 3e38, 2.0
    hartsift.write_hdf5(tmp_path / "a.h5", "x", hartsift.Features.from_arrays(np.ones((3, 4)), rows))
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.linalg.norm(file["x"]["descriptors"][:, 2]) == pytest.approx(1, rel=1e-3)
