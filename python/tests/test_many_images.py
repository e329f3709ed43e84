"""Many images in flight: order, bytes, failures, and resources after the end."""

import gc
import warnings

import numpy as np
import pytest

import hartsift


def pictures_of(image, count):
    return [np.roll(image, 13 * i, axis=1)[: 240 - 7 * (i % 3)] for i in range(count)]


def test_results_come_in_order_with_the_same_bytes(image):
    pictures = pictures_of(image, 21)
    expected = [hartsift.extract(picture) for picture in pictures]
    assert list(hartsift.extract_many(pictures)) == expected
    assert list(hartsift.extract_many(iter(pictures), in_flight=2, threads=2)) == expected
    assert list(hartsift.extract_many([])) == []
    assert list(hartsift.extract_many(["@scene:320x240:5"])) == [hartsift.extract("@scene:320x240:5")]


def test_submit_and_wait(image):
    pictures = pictures_of(image, 3)
    mask = np.ones(pictures[1].shape, bool)
    mask[:, 100:] = False
    with hartsift.Extractor(in_flight=3) as extractor:
        extractor.submit(pictures[0])
        extractor.submit(pictures[1], mask)
        extractor.submit(pictures[2].copy())  # kept alive by the extractor
        assert extractor.in_flight == 3
        with pytest.raises(hartsift.ArgumentError) as caught:
            extractor.submit(image)
        assert caught.value.name == "HS_ERR_CAPACITY"
        gc.collect()
        meanwhile = extractor.extract(image)
        results = [extractor.wait() for _ in range(3)]
        assert extractor.in_flight == 0
        with pytest.raises(hartsift.ArgumentError):
            extractor.wait()
    assert meanwhile == hartsift.extract(image)
    assert results == [
        hartsift.extract(pictures[0]),
        hartsift.extract(pictures[1], mask),
        hartsift.extract(pictures[2]),
    ]


def test_failures_keep_their_place(image):
    wrong = [image, np.zeros((4, 4), np.complex64), "absent.png", image, np.zeros((5, 0), np.uint8)]
    results = list(hartsift.extract_many(wrong * 4, return_errors=True, in_flight=3))
    expected = hartsift.extract(image)
    kinds = [hartsift.Features, hartsift.ArrayTypeError, hartsift.FileError, hartsift.Features, hartsift.ArgumentError]
    assert [type(result) for result in results] == kinds * 4
    assert all(result == expected for result in results if isinstance(result, hartsift.Features))
    taken = []
    with pytest.raises(hartsift.FileError):
        for features in hartsift.extract_many([image, image, "absent.png", image]):
            taken.append(features)
    assert taken == [expected, expected]


def test_masks_by_name(image, tmp_path, monkeypatch):
    """COLMAP's naming rule, both forms; the number of images with a mask; a folder that fits no image is refused."""
    monkeypatch.chdir(tmp_path)
    names = ["a.pgm", "sub/b.c.pgm", "d.pgm"]
    mask = np.zeros(image.shape, np.uint8)
    mask[:, :160] = 255
    for name in [*names, "masks/a.png", "masks/a.pgm.png", "masks/sub/b.c.png", "empty/x.png"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = image if "." in name and "/" not in name or name == names[1] else mask
        (tmp_path / name).write_bytes(b"P5 320 240 255\n" + (255 - mask if name == "masks/a.png" else pixels).tobytes())
    whole, left = hartsift.extract(image), hartsift.extract(image, mask)
    for given in (names, iter(names)):
        with pytest.warns(UserWarning, match="2 of 3 images have a mask in masks"):
            assert list(hartsift.extract_many(given, masks="masks")) == [left, left, whole]
    outside = f"../{tmp_path.name}/a.pgm"  # masks/../NAME/a.pgm.png is not a mask
    with pytest.raises(hartsift.FileError, match=f"for {outside} expected {tmp_path.name}/a.pgm.png, or else {tmp_path.name}/a.png"):
        next(hartsift.extract_many([outside], masks="masks"))
    with pytest.raises(hartsift.FileError, match="0 of 3 images have a mask there: for a.pgm expected a.pgm.png, or else a.png"):
        next(hartsift.extract_many(names, masks="empty"))
    taken = []
    with pytest.raises(hartsift.FileError, match="0 of 3 images"):
        taken.extend(hartsift.extract_many(iter(names), masks="empty"))
    assert len(taken) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(hartsift.extract_many(names[:2], masks="masks")) == [left, left]


def test_a_region_outside(image):
    with pytest.raises(hartsift.ArgumentError, match="has no pixel of the image of 320 x 240"):
        hartsift.extract(image, region=(320, 0, 10, 10))


def test_failures_of_the_frame_keep_their_place(image):
    results = list(
        hartsift.extract_many([image[:100, :100], image, image[:90, :90]], max_pixels=10000, return_errors=True)
    )
    assert [isinstance(result, hartsift.ArgumentError) for result in results] == [False, True, False]


def test_an_abandoned_generator_leaves_the_extractor_usable(image):
    extractor = hartsift.Extractor()
    generator = extractor.extract_many([image] * 12)
    first = next(generator)
    assert extractor.in_flight > 0
    generator.close()
    assert extractor.in_flight == 0
    assert extractor.extract(image) == first


def test_closing_with_images_in_flight(image):
    extractor = hartsift.Extractor()
    for _ in range(4):
        extractor.submit(image)
    extractor.close()
    assert extractor.in_flight == 0
    dropped = hartsift.Extractor()
    dropped.submit(image.copy())
    del dropped
    gc.collect()
