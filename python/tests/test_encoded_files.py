"""Files that the library reads and decodes in its own threads: the features equal those of load_image's pixels, and
errors stay at their positions."""

import io

import numpy as np
import pytest

import hartsift
from hartsift._encoded import encoded_file


@pytest.fixture(scope="module")
def photographs(command, tmp_path_factory):
    """JPEG files of several sizes, and one PNG."""
    folder = tmp_path_factory.mktemp("photographs")
    names = [folder / f"{i}.{'png' if i == 3 else 'jpg'}" for i in range(6)]
    for i, name in enumerate(names):
        command("draw", f"@scene:{200 + 30 * i}x160:{i + 1}", "--contrast", 1, "--quiet", "-o", name)
    return names


def masked(name):
    mask = np.ones(hartsift.load_image(name).shape, bool)
    mask[:, :80] = False
    return mask


def test_features_are_those_of_the_pixels(photographs):
    expected = [hartsift.extract(hartsift.load_image(name)) for name in photographs]
    assert all(encoded_file(name, True, 1, 0, False) for name in photographs)
    assert [hartsift.extract(name) for name in photographs] == expected
    assert [hartsift.extract(name.read_bytes()) for name in photographs] == expected
    with open(photographs[0], "rb") as file:
        assert hartsift.extract(file) == expected[0]
    kinds = [name if i % 3 == 0 else name.read_bytes() if i % 3 == 1 else io.BytesIO(name.read_bytes())
             for i, name in enumerate(photographs)]
    assert list(hartsift.extract_many(kinds)) == expected
    for options in {"in_flight": 2}, {"threads": 3, "in_flight": 7}, {"threads": 1}:
        assert list(hartsift.extract_many(photographs * 4, **options)) == expected * 4


def test_arguments_of_loading(photographs):
    name = photographs[1]
    for loading in {"max_image_size": 100}, {"jpeg_scale": 2}, {"exif": False}:
        pixels = hartsift.load_image(name, **loading)
        found = hartsift.extract(name, **loading)
        assert np.array_equal(found.descriptors, hartsift.extract(pixels).descriptors)
        assert next(hartsift.extract_many([name], **loading)) == found
    mask = masked(name)
    assert hartsift.extract(name, mask) == hartsift.extract(hartsift.load_image(name), mask)
    smaller = hartsift.extract(name, mask, max_image_size=100)
    assert 0 < len(smaller) < len(hartsift.extract(name, max_image_size=100)) and smaller.points[:, 0].min() > 75
    assert smaller.image_size == (230, 160)
    with pytest.raises(hartsift.ArgumentError, match="mask is"):
        hartsift.extract(name, mask[:50])
    with pytest.raises(hartsift.ArgumentError, match="jpeg_scale"):
        hartsift.extract(name, jpeg_scale=2**32 + 2)
    with pytest.raises(hartsift.ArgumentError, match="max_pixels|pixels"):
        hartsift.extract(name, max_pixels=1000)
    with pytest.raises(hartsift.ArgumentError, match="without max_image_size"):
        hartsift.extract(name, max_image_size=100, region=(0, 0, 50, 50))


def test_errors_keep_their_place(photographs, tmp_path):
    cut, none = tmp_path / "cut.jpg", tmp_path / "none.jpg"
    cut.write_bytes(photographs[0].read_bytes()[:3000])
    given = [photographs[0], cut, none, photographs[1], b"\xff\xd8", tmp_path]
    results = list(hartsift.extract_many(given * 3, return_errors=True))
    kinds = [hartsift.Features, hartsift.DamagedFileError, hartsift.FileError, hartsift.Features, hartsift.DamagedFileError,
             hartsift.FileError]
    assert [type(result) for result in results] == kinds * 3
    assert "cut.jpg" in str(results[1]) and "none.jpg" in str(results[2])
    with pytest.raises(hartsift.ArgumentError, match="cut.jpg"):
        hartsift.extract(cut)
    with hartsift.Extractor() as extractor:
        generator = extractor.extract_many(photographs * 10)
        first = next(generator)
        generator.close()
        assert extractor.in_flight == 0 and extractor.extract(photographs[0]) == first


def test_files_of_more_than_bytes_are_looked_at_here(tmp_path):
    dark = np.arange(6000, dtype=">u2").reshape(60, 100)
    path = tmp_path / "dark.pgm"
    path.write_bytes(b"P5 100 60 65535\n" + dark.tobytes())
    assert encoded_file(path, True, 1, 0, False) is None
    assert encoded_file(io.BytesIO(b"P5 none"), True, 1, 0, False) == b"P5 none"  # the open file is read only once
    with pytest.warns(UserWarning):
        hartsift.extract(path)


def test_the_decoder_is_an_option(photographs):
    expected = hartsift.extract(photographs[0])
    for decoder in "auto", "cpu":
        assert hartsift.extract(photographs[0], decoder=decoder) == expected
        assert hartsift.Extractor(decoder=decoder).options["decoder"] == decoder
    with pytest.raises(hartsift.ArgumentError, match="decoder is 'both', expected one of auto, cpu, gpu"):
        hartsift.extract(photographs[0], decoder="both")
    with pytest.raises(hartsift.DeviceError, match="no GPU decodes JPEGs"):
        hartsift.extract(photographs[0], decoder="gpu", device="cpu")
