"""max_image_size of files, masks by name, and the file kinds that need optional libraries."""

import pathlib

import numpy as np
import pytest

import hartsift

SCENE = "@scene:400x300:5"
IMAGES = pathlib.Path(__file__).parents[2] / "tests" / "data" / "images"


def test_the_picture_is_the_mean_of_areas():
    full, small = hartsift.load_image(SCENE), hartsift.load_image(SCENE, max_image_size=200)
    blocks = full.astype(np.uint32).reshape(150, 2, 200, 2).sum((1, 3))
    assert np.array_equal(small, (blocks + 2) // 4)
    assert np.array_equal(hartsift.load_image(SCENE, max_image_size=400), full)


def test_coordinates_are_of_the_original(command, tmp_path):
    found = hartsift.extract(SCENE, max_image_size=200)
    assert found.image_size == (400, 300) and found.points[:, 0].max() > 300
    small = hartsift.extract(hartsift.load_image(SCENE, max_image_size=200))
    assert np.array_equal(found.points, ((small.points.astype(np.float64) + 0.5) * 2 - 0.5).astype(np.float32))
    assert np.array_equal(found.descriptors, small.descriptors)
    assert list(hartsift.extract_many([SCENE, SCENE], max_image_size=200)) == [found, found]
    command("extract", SCENE, "--max-image-size", 200, "--quiet", "-o", tmp_path / "command.npz")
    assert hartsift.read_features(tmp_path / "command.npz") == found
    with pytest.raises(hartsift.ArgumentError, match="for files"):
        hartsift.extract(np.zeros((30, 40), np.uint8), max_image_size=20)
    for name in SCENE, str(IMAGES / "bmp_24.bmp"):
        for size in -1, 1 << 63, (1 << 64) + 60:
            with pytest.raises(hartsift.ArgumentError, match=f"max_image_size is {size}, expected 0 or more"):
                hartsift.extract(name, max_image_size=size)


def test_masks_by_name(tmp_path, command):
    picture, mask = hartsift.load_image(SCENE), np.full((300, 400), 255, np.uint8)
    mask[:, :200] = 0
    header = b"P5 400 300 255\n"
    (tmp_path / "photo.pgm").write_bytes(header + picture.tobytes())
    masks = tmp_path / "masks"
    # By name: the content decides, so a PNM may replace a PNG.
    place = masks / (str(tmp_path / "photo.pgm").lstrip("/") + ".png")
    place.parent.mkdir(parents=True)
    place.write_bytes(header + mask.tobytes())
    name = tmp_path / "photo.pgm"
    masked, whole = hartsift.extract_many([name, SCENE], masks=masks)
    assert masked == hartsift.extract(name, mask) and whole == hartsift.extract(SCENE)
    smaller, = hartsift.extract_many([name], masks=masks, max_image_size=150)
    assert smaller == hartsift.extract(name, mask, max_image_size=150)
    (masks / "shared").mkdir()
    (masks / "shared" / "photo.pgm.png").write_bytes(header + mask.tobytes())
    command("extract", name, "--masks", masks / "shared", "--max-image-size", 150, "--quiet", "-o", tmp_path / "f.npz")
    assert hartsift.read_features(tmp_path / "f.npz") == smaller
    place.write_bytes(b"no picture")
    broken, whole = hartsift.extract_many([name, SCENE], masks=masks, return_errors=True)
    assert isinstance(broken, hartsift.Error) and isinstance(whole, hartsift.Features)
    place.unlink()
    place.symlink_to("nowhere")
    with pytest.raises(hartsift.FileError, match="photo.pgm.png"):
        list(hartsift.extract_many([name], masks=masks))
    with pytest.raises(hartsift.ArgumentError, match="without max_image_size"):
        hartsift.extract(SCENE, max_image_size=200, region=(0, 0, 50, 50))
    with pytest.raises(hartsift.ArgumentError, match="has no name"):
        list(hartsift.extract_many([picture], masks=masks))
    with pytest.raises(hartsift.FileError, match="expected a folder"):
        list(hartsift.extract_many([name], masks=tmp_path / "absent"))


@pytest.mark.parametrize("name", ["tiff_rgb8_little.tif", "webp_lossless.webp", "bmp_24.bmp"])
def test_other_kinds_of_files(name):
    if not IMAGES.exists():
        pytest.skip("the pictures are not beside the tests")
    try:
        read = hartsift.load_image(IMAGES / name, colour=True)
    except hartsift.Error as error:
        if "built without" in str(error):
            pytest.skip(str(error))
        raise
    assert np.array_equal(read, hartsift.load_image(IMAGES / "pnm_p6.ppm", colour=True))
