"""Messages name the caller's Python arguments, not fields of C or options of the command."""

import re

import numpy as np
import pytest

import hartsift

IMAGE = np.zeros((40, 60), np.uint8)
FEATURES = hartsift.extract("@scene:200x150:3")


def twice_in_a_database(path):
    with hartsift.ColmapDatabase(path / "a.db") as database:
        database.add_image("a.png", FEATURES)
        database.add_image("a.png", FEATURES[:5])


CALLS = {
    "contrast is 9, expected 0..1": lambda path: hartsift.extract(IMAGE, contrast=9),
    "threads is -1, expected": lambda path: hartsift.Extractor(threads=-1),
    "ratio is 3, expected 0..1": lambda path: hartsift.match(FEATURES, FEATURES, ratio=3),
    "guide_tolerance is -1": lambda path: hartsift.match(
        FEATURES, FEATURES, guide="homography", guide_matrix=np.eye(3), guide_tolerance=-1
    ),
    "scale is -1, expected above 0": lambda path: hartsift.extract_patches("@scene:60x60", FEATURES, scale=-1),
    "max_features is 0, expected": lambda path: hartsift.extract(IMAGE, grid=(3, 3)),
    "with replace=True they are overwritten": twice_in_a_database,
    "the 1000 bytes of max_memory_bytes": lambda path: hartsift.extract("@scene:200x150", max_memory_bytes=1000),
    "the 999 bytes of max_memory_bytes": lambda path: hartsift.load_image("@scene:200x150", max_memory_bytes=999),
    "max_memory_bytes is 998": lambda path: hartsift.extract(IMAGE, max_memory_bytes=998),
    "max_memory_bytes is 997": lambda path: hartsift.match(
        FEATURES, FEATURES, extractor=hartsift.Extractor(max_memory_bytes=997)
    ),
    "the 996 bytes of max_memory_bytes": lambda path: hartsift.ColmapDatabase(path / "m.db").add_image(
        "a", "@scene:200x150", max_memory_bytes=996
    ),
    "metres is -1, expected": lambda path: hartsift.nearby_pairs(np.zeros((2, 3)), -1),
    "width and height are 10 and -1": lambda path: hartsift.workspace_bytes(10, -1),
    "width and height are 0 and 5": lambda path: hartsift.render_scene(0, 5),
    "the image has elements of type float64, expected uint8": lambda path: hartsift.equalize(np.zeros((3, 3))),
    "the signal has elements of type uint8, expected float32 or float64": lambda path: hartsift.convolve1d(IMAGE, [1]),
    "taps has 2 numbers, expected an odd": lambda path: hartsift.convolve1d(np.zeros((3, 3)), [1, 2]),
    "the array has elements of type float64, expected uint8": lambda path: hartsift.histogram256(np.zeros((3, 3))),
    "the mask has shape": lambda path: hartsift.histogram256(IMAGE, IMAGE[:3]),
}


@pytest.mark.parametrize("words", CALLS)
def test_names(words, tmp_path):
    with pytest.raises(hartsift.Error, match=re.escape(words)) as caught:
        CALLS[words](tmp_path)
    text = str(caught.value)
    assert not re.search(r"options\.|HS_|hs_|--[a-z]|pointer", text), text


def test_values_have_the_package_s_names():
    from hartsift._errors import in_python

    text = "options.decoder is HS_DECODER_GPU, but no GPU decodes JPEGs: see hs_load_options.max_pixels"
    assert in_python(text) == "decoder is 'gpu', but no GPU decodes JPEGs: see max_pixels"
    assert in_python("pairs options.dsp is 1, verify options.tolerance is 2") == "dsp is 1, tolerance is 2"
    for name in ("/options.txt: options are missing", "options.txt is no image", "/a/options.sigma: is damaged"):
        assert in_python(name) == name
