"""Patches compared with NumPy, in the types that networks take."""

import numpy as np
import pytest

import hartsift


@pytest.fixture(scope="module")
def image():
    return hartsift.render_scene(160, 120, 5)


def bilinear(gray, x, y):
    height, width = gray.shape
    x, y = np.clip(x, 0, width - 1), np.clip(y, 0, height - 1)
    left, top = x.astype(int), y.astype(int)
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    u, v = x - left, y - top
    upper = (1 - u) * gray[top, left] + u * gray[top, right]
    lower = (1 - u) * gray[bottom, left] + u * gray[bottom, right]
    return (1 - v) * upper + v * lower


def test_patches_of_the_image(image):
    features = hartsift.extract(image, descriptor="none")
    patches, statuses = hartsift.extract_patches(image, features, size=24, scale=10, blur=0, dtype=np.float32)
    assert patches.shape == (len(features), 24, 24) and patches.dtype == np.float32 and not statuses.any()
    offsets = ((np.arange(24) + 0.5) / 24 - 0.5) * 10
    u, v = np.meshgrid(offsets, offsets)
    frames = []
    for patch, (x, y, sigma, angle) in zip(patches, features.keypoints.astype(float)):
        frame = sigma * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        frames.append(frame)
        expected = bilinear(image / 255.0, x + frame[0, 0] * u + frame[0, 1] * v, y + frame[1, 0] * u + frame[1, 1] * v)
        assert np.abs(patch - expected).max() < 2e-4
    framed, _ = hartsift.extract_patches(
        image, features.keypoints, size=24, scale=10, blur=0, frames=np.array(frames), dtype="float32"
    )
    assert np.abs(framed - patches).max() < 2e-4


def test_bytes_and_statuses(image):
    places = np.array([[80, 60, 3, 0.5], [np.nan, 60, 3, 0], [80, 60, -3, 0]])
    patches, statuses = hartsift.extract_patches(image, places)
    floats, _ = hartsift.extract_patches(image, places, dtype=np.float32)
    assert patches.shape == (3, 32, 32) and patches.dtype == np.uint8
    assert statuses[0] == 0 and (statuses[1:] != 0).all() and not patches[1:].any()
    assert np.array_equal(patches, np.floor(255 * floats + np.float32(0.5)).astype(np.uint8))
    upright, _ = hartsift.extract_patches(image, places[:1], upright=True)
    level, _ = hartsift.extract_patches(image, places[:1] * [1, 1, 1, 0])
    assert np.array_equal(upright, level) and not np.array_equal(upright, patches[:1])
    none, _ = hartsift.extract_patches(image, np.zeros((0, 4)))
    assert none.shape == (0, 32, 32)
    other = hartsift.Extractor(device="cpu", threads=1)
    assert np.array_equal(hartsift.extract_patches(image, places, extractor=other)[0], patches)


def test_arguments_are_checked(image):
    one = np.array([[80, 60, 3, 0.0]])
    with pytest.raises(hartsift.ArrayTypeError, match="expected uint8 or float32"):
        hartsift.extract_patches(image, one, dtype=np.float64)
    with pytest.raises(hartsift.ArgumentError, match="size is 0"):
        hartsift.extract_patches(image, one, size=0)
    with pytest.raises(hartsift.ArgumentError, match=r"expected \(1, 2, 2\)"):
        hartsift.extract_patches(image, one, frames=np.eye(2))
    with pytest.raises(hartsift.ArgumentError, match="scale"):
        hartsift.extract_patches(image, one, scale=0)
