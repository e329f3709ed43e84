"""Pictures in the forms of other packages: every sample type, PIL's modes, files, tensors and batches."""

import io
import warnings

import numpy as np
import pytest

import hartsift

#: Integers without a conventional white level: 0..255 is assumed.
PLAIN_INTEGERS = [np.int16, np.int32, np.int64, np.uint32, np.uint64]


@pytest.fixture(scope="module")
def expected(image):
    return hartsift.extract(image)


@pytest.fixture(autouse=True)
def no_warnings():
    """An unexpected warning is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def nearly(features, expected):
    return abs(len(features) - len(expected)) <= 0.01 * len(expected)


# ---- types of samples


@pytest.mark.parametrize("dtype", PLAIN_INTEGERS)
def test_integers_of_bytes(image, expected, dtype):
    assert hartsift.extract(image.astype(dtype)) == expected
    too_large = image.astype(dtype)
    too_large[3, 4] = 256
    with pytest.raises(hartsift.ArgumentError, match=r"to 256, where black is 0 and white is 255.*\(0, 1023\)"):
        hartsift.extract(too_large)


def test_signed_integers(image, expected):
    with pytest.raises(hartsift.ArgumentError, match=r"value_range=\(black, white\)"):
        hartsift.extract(image.astype(np.int16) - 128)
    assert nearly(hartsift.extract(image.astype(np.int16) - 128, value_range=(-128, 127)), expected)
    assert nearly(hartsift.extract((image // 2).astype(np.int8), value_range=(0, 127)), expected)
    assert hartsift.extract((image // 2).astype(np.int8)) == hartsift.extract(image // 2)


def test_bool_is_black_and_white(image):
    assert len(hartsift.extract(image > 128)) > 100
    assert hartsift.extract(image > 128) == hartsift.extract((image > 128) * np.uint8(255))
    assert hartsift.extract((image > 128)[:, ::-1][:, ::-1]) == hartsift.extract(image > 128)


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float32, np.float64])
def test_range_is_heeded_by_every_type(image, expected, dtype):
    deep = (image.astype(np.int32) * 16 + 7).astype(dtype)
    assert nearly(hartsift.extract(deep, value_range=(0, 4095)), expected)
    assert len(hartsift.extract(deep, value_range=(0, 65535))) < 0.1 * len(expected)


def test_default_ranges_named_are_the_same_bytes(image, expected):
    assert hartsift.extract(image, value_range=(0, 255)) == expected
    deep = image.astype(np.uint16) * 257
    assert hartsift.extract(deep, value_range=(0, 65535)) == hartsift.extract(deep)
    unit = (image / np.float32(255)).astype(np.float32)
    assert hartsift.extract(unit, value_range=(0, 1)) == hartsift.extract(unit)
    studio = hartsift.extract((16 + image * (219 / 255)).astype(np.uint8), value_range=(16, 235))
    assert abs(len(studio) - len(expected)) < 0.05 * len(expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_of_bytes_are_refused(image, expected, dtype):
    with pytest.raises(hartsift.ArgumentError, match=r"white is 1: .*value_range=\(0, 255\)"):
        hartsift.extract(image.astype(dtype))
    assert nearly(hartsift.extract(image.astype(dtype), value_range=(0, 255)), expected)
    centred = image / np.float32(127.5) - 1
    with pytest.raises(hartsift.ArgumentError, match=r"value_range=\(-1, 1\)"):
        hartsift.extract(centred.astype(dtype))
    assert nearly(hartsift.extract(centred, value_range=(-1, 1)), expected)


def test_overshoot_is_clamped(image):
    unit = image / np.float32(255)
    over = unit * np.float32(1.4) - np.float32(0.2)
    assert hartsift.extract(over) == hartsift.extract(np.clip(over, 0, 1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_floats_that_are_not_finite_are_refused(image, bad):
    unit = image / np.float32(255)
    unit[9, 9] = bad
    for options in ({}, {"value_range": (0, 1)}):
        with pytest.raises(hartsift.ArgumentError, match="nan_to_num.*mask"):
            hartsift.extract(unit, **options)
    with pytest.raises(hartsift.ArgumentError, match="NaN or infinite"):
        hartsift.extract(np.where(unit == bad, 1e300, unit.astype(np.float64)) if bad == np.inf else unit)


@pytest.mark.parametrize(
    "scale, dtype, advice",
    [
        (16, np.uint16, r"\(0, 4095\)"),
        (4, np.uint16, r"\(0, 1023\)"),
        (1 / 2550, np.float32, r"\(black, white\)|\(0, 1\)"),
    ],
)
def test_dark_pictures_warn(image, scale, dtype, advice):
    dark = (image.astype(np.float64) * scale).astype(dtype)
    white = 65535 if dtype == np.uint16 else 1
    with pytest.warns(UserWarning, match="no sample above.*" + advice):
        hartsift.extract(dark)
    hartsift.extract(dark, value_range=(0, white))  # documented: no warning
    hartsift.extract(np.full_like(dark, dark.max()))  # no features with any range


def test_dark_pictures_warn_at_the_line_of_the_caller(image):
    with pytest.warns(UserWarning, match="no sample above") as caught:
        hartsift.extract(image.astype(np.uint16))
        hartsift.extract_batch([image.astype(np.uint16)])
    assert [warning.filename for warning in caught] == [__file__, __file__]


def test_almost_black_pictures_get_no_advice_to_say_what_is_assumed(image):
    with pytest.warns(UserWarning, match=r"such as value_range=\(black, white\), or \(0, 255\) if this is meant"):
        hartsift.extract((image // 64).astype(np.int64))


def test_gray_images_in_one_array_get_advice(image):
    with pytest.raises(hartsift.ArgumentError, match=r"of 3 dimensions; list\(\.\.\.\)"):
        hartsift.extract_batch(np.stack([image, image]))
    assert len(hartsift.extract_batch(list(np.stack([image, image])))) == 2


@pytest.mark.parametrize("wrong", [(1, 0), (0, 0), (0, np.inf), (np.nan, 1), (1,), (0, 1, 2)])
def test_wrong_ranges(image, wrong):
    for picture in (image, image / np.float32(255)):
        with pytest.raises(hartsift.ArgumentError, match="value_range is"):
            hartsift.extract(picture, value_range=wrong)


# ---- PIL


@pytest.fixture
def pil():
    return pytest.importorskip("PIL.Image")


def test_pil_images_of_gray(pil, image, expected):
    gray = pil.fromarray(image)
    assert hartsift.extract(gray) == expected
    assert nearly(hartsift.extract(gray.convert("F")), expected)
    assert hartsift.extract(gray.convert("I")) == expected
    assert hartsift.extract(gray.convert("LA")) == expected
    assert hartsift.extract(gray.convert("RGBA")) == expected
    assert hartsift.extract(gray.convert("CMYK")) == expected
    assert nearly(hartsift.extract(gray.convert("YCbCr")), expected)
    black_and_white = gray.point(lambda v: 255 if v > 128 else 0).convert("1")
    assert hartsift.extract(black_and_white) == hartsift.extract(image > 128)
    deep = pil.fromarray(image.astype(np.uint16) * 257)
    assert deep.mode == "I;16" and hartsift.extract(deep) == expected


def test_pil_palettes(pil, image, expected):
    # Level 255 - i at index i: indices read as levels would give the negative.
    palette = pil.fromarray(255 - image)
    palette.putpalette([level for i in range(256) for level in (255 - i,) * 3])
    assert palette.mode == "P" and hartsift.extract(palette) == expected


def test_pil_colour(pil, colour_image):
    colour = pil.fromarray(colour_image)
    expected = hartsift.extract(colour_image)
    assert hartsift.extract(colour) == expected
    assert hartsift.extract(colour.convert("CMYK")) == expected
    assert hartsift.extract(colour.convert("RGBA")) == expected
    reduced = colour.quantize(64)
    assert hartsift.extract(reduced) == hartsift.extract(np.asarray(reduced.convert("RGB")))


def test_pil_modes_that_pil_cannot_convert(pil, monkeypatch):
    def refuse(image, mode):
        raise ValueError(f"conversion from {image.mode} to {mode} not supported")

    monkeypatch.setattr(pil.Image, "convert", refuse)
    with pytest.raises(hartsift.ArgumentError, match="mode LAB"):
        hartsift.extract(pil.new("LAB", (30, 20)))


# ---- files


def test_open_files_and_buffers(image, expected, tmp_path):
    encoded = b"P5 320 240 255\n" + image.tobytes()
    (tmp_path / "scene.pgm").write_bytes(encoded)
    for source in (encoded, bytearray(encoded), memoryview(encoded), io.BytesIO(encoded)):
        assert hartsift.extract(source) == expected
    with open(tmp_path / "scene.pgm", "rb") as opened:
        assert hartsift.extract(opened) == expected
    assert np.array_equal(hartsift.load_image(io.BytesIO(encoded)), image)
    with open(tmp_path / "scene.pgm", encoding="latin-1") as opened, pytest.raises(hartsift.Error, match="'rb'"):
        hartsift.extract(opened)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.extract(io.BytesIO(b""))
    assert hartsift.extract(memoryview(image)) == expected  # it has a shape: no file
    assert list(hartsift.extract_many([io.BytesIO(encoded), bytearray(encoded)])) == [expected, expected]


def test_deep_files_are_read_like_arrays(image, expected):
    deep = image.astype(np.uint16) * 16
    encoded = b"P5 320 240 65535\n" + deep.astype(">u2").tobytes()
    with pytest.warns(UserWarning, match=r"no sample above.*\(0, 4095\)"):
        assert hartsift.extract(encoded, value_range=None).image_size == (320, 240)
    assert hartsift.extract(encoded, value_range=(0, 4095)) == hartsift.extract(deep, value_range=(0, 4095))
    assert nearly(hartsift.extract(encoded, value_range=(0, 4095)), expected)
    eight = b"P5 320 240 255\n" + image.tobytes()
    assert hartsift.extract(eight, value_range=(0, 255)) == expected
    assert hartsift.extract(eight, value_range=(0, 510)) == hartsift.extract(image, value_range=(0, 510))


# ---- tensors and batches


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="needs the PyTorch of a GPU host, too large to install for this alone")


@pytest.fixture
def pictures(image):
    return [np.roll(image, 31 * i, axis=1) for i in range(5)]


def test_tensors_have_their_channels_first(torch, image, colour_image):
    expected, in_colour = hartsift.extract(image), hartsift.extract(colour_image)
    assert hartsift.extract(torch.from_numpy(image)) == expected
    assert hartsift.extract(torch.from_numpy(image)[None]) == expected
    planes = np.ascontiguousarray(colour_image.transpose(2, 0, 1))
    assert hartsift.extract(torch.from_numpy(planes)) == in_colour
    assert hartsift.extract(torch.from_numpy(planes).contiguous(), channels="bgr") != in_colour
    assert hartsift.extract(torch.from_numpy(colour_image)) == in_colour  # 240 is no number of channels
    # If both axis orders are possible, a tensor's channels come first and an array's last.
    narrow = planes[:, :, :3]
    assert hartsift.extract(torch.from_numpy(narrow)).image_size == (3, 240)
    assert hartsift.extract(narrow).image_size == (240, 3)
    with pytest.raises(hartsift.ArgumentError, match="channels come last"):
        hartsift.extract(planes)


def test_tensors_as_kornia_has_them(torch, image):
    unit = torch.from_numpy(image).float() / 255
    expected = hartsift.extract(image / np.float32(255))
    assert hartsift.extract(unit[None]) == expected
    assert hartsift.extract(unit[None].requires_grad_()) == expected
    assert hartsift.extract(torch.nn.Parameter(unit)) == expected
    assert hartsift.extract(unit.double()) == expected
    for rough in (unit.bfloat16(), unit.half()):
        assert hartsift.extract(rough) == hartsift.extract(rough.float())
    assert hartsift.extract(torch.from_numpy(image) > 128) == hartsift.extract(image > 128)
    assert hartsift.extract(torch.from_numpy(image).long()) == hartsift.extract(image)
    with pytest.raises(hartsift.ArgumentError, match=r"value_range=\(0, 255\)"):
        hartsift.extract(unit * 255)
    mask = torch.zeros((1, 240, 320), dtype=torch.bool)
    mask[..., :160] = True
    assert hartsift.extract(unit[None], mask) == hartsift.extract(unit, mask[0].numpy())


def test_batches_of_tensors(torch, pictures, colour_image):
    stack = torch.from_numpy(np.stack(pictures))[:, None]
    expected = [hartsift.extract(picture) for picture in pictures]
    assert hartsift.extract_batch(stack) == expected
    assert list(hartsift.extract_many(stack)) == expected
    assert hartsift.extract_batch(stack.float() / 255) == [hartsift.extract(p / np.float32(255)) for p in pictures]
    planes = torch.from_numpy(np.stack([colour_image.transpose(2, 0, 1)] * 2))
    assert hartsift.extract_batch(planes) == [hartsift.extract(colour_image)] * 2
    assert hartsift.extract_batch(planes.to(memory_format=torch.channels_last)) == [hartsift.extract(colour_image)] * 2
    assert hartsift.extract_batch(torch.from_numpy(np.stack([colour_image]))) == [hartsift.extract(colour_image)]


def test_batches_of_arrays(pictures, colour_image):
    expected = [hartsift.extract(picture) for picture in pictures]
    stack = np.stack(pictures)
    assert hartsift.extract_batch(stack[:, None]) == hartsift.extract_batch(stack[..., None]) == expected
    assert hartsift.extract_batch(pictures) == hartsift.extract_batch(tuple(pictures)) == expected
    in_colour = [hartsift.extract(colour_image)] * 3
    assert hartsift.extract_batch(np.stack([colour_image] * 3)) == in_colour
    assert hartsift.extract_batch(np.stack([colour_image] * 3).transpose(0, 3, 1, 2)) == in_colour
    assert hartsift.extract_batch([]) == [] and hartsift.extract_batch(stack[:0, None]) == []
    few = hartsift.extract_batch(stack[:, None], max_features=7)
    assert [len(one) for one in few] == [7] * 5


def test_masks_of_batches(pictures):
    masks = np.zeros((5, 240, 320), np.uint8)
    for i in range(5):
        masks[i, :, : 60 * (i + 1)] = 1
    expected = [hartsift.extract(picture, mask) for picture, mask in zip(pictures, masks)]
    stack = np.stack(pictures)[:, None]
    assert hartsift.extract_batch(stack, masks) == hartsift.extract_batch(stack, masks[:, None] > 0) == expected
    assert hartsift.extract_batch(stack, [None, *masks[1:]])[1:] == expected[1:]
    with pytest.raises(hartsift.ArgumentError, match="4 masks for 5 images"):
        hartsift.extract_batch(stack, masks[1:])


def test_wrong_batches(pictures):
    stack = np.stack(pictures)[:, None]
    with pytest.raises(hartsift.ArgumentError, match="batch of 5.*extract_batch"):
        hartsift.extract(stack)
    with pytest.raises(hartsift.ArgumentError, match="of 3 dimensions"):
        hartsift.extract_batch(stack[0])
    with pytest.raises(hartsift.ArgumentError, match="8 channels"):
        hartsift.extract_batch(np.zeros((2, 9, 10, 8), np.uint8))
    with pytest.raises(hartsift.Error, match="None"):
        hartsift.extract_batch([pictures[0], None])
    assert hartsift.extract_batch(stack) == [hartsift.extract(picture) for picture in pictures]  # still usable


# ---- masked arrays of numpy.ma


def test_masked_arrays_as_masks(image):
    """Masked pixels of a mask are zero, whatever their values."""
    mask = np.ones(image.shape, np.uint8)
    mask[:40] = 0
    expected = hartsift.extract(image, mask)
    hidden = np.ma.masked_array(np.ones(image.shape, np.uint8), mask=mask == 0)
    for given in (hidden, hidden.astype(bool), np.ma.masked_array(mask)):
        assert hartsift.extract(image, given) == expected
        assert hartsift.Extractor().detect(image, given).keypoints.tolist() == expected.keypoints.tolist()
    assert 0 < len(expected) < len(hartsift.extract(image))
    np.testing.assert_array_equal(hartsift.histogram256(image, hidden), hartsift.histogram256(image[40:]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_masked_arrays_as_images(image, dtype):
    """Masked pixels have no keypoints, and their samples have no effect."""
    scale = {"u": 1, "f": 255}[np.dtype(dtype).kind]
    pixels = (image / scale).astype(dtype)
    bad = np.zeros(image.shape, bool)
    bad[60:100, 80:120] = True
    value_range = (0, 255) if dtype == np.uint16 else None
    lists = []
    for junk in (0, 200) if np.dtype(dtype).kind == "u" else (0, np.nan, -9999):
        spoiled = pixels.copy()
        spoiled[bad] = junk
        lists.append(hartsift.extract(np.ma.masked_array(spoiled, bad), value_range=value_range))
    assert all(features == lists[0] for features in lists)
    x, y = np.rint(lists[0].keypoints[:, :2]).astype(int).T
    assert len(x) > 20 and not bad[y, x].any()
    filled = pixels.copy()
    usual = pixels[~bad].mean(dtype=np.float64)
    filled[bad] = usual if np.dtype(dtype).kind == "f" else np.rint(usual)
    assert lists[0] == hartsift.extract(filled, ~bad, value_range=value_range)
    upper = np.zeros(image.shape, bool)
    upper[:50] = True
    both = hartsift.extract(np.ma.masked_array(pixels, bad), upper, value_range=value_range)
    assert both == hartsift.extract(filled, upper & ~bad, value_range=value_range)


def test_masked_arrays_of_other_kinds(image, expected):
    assert hartsift.extract(np.ma.masked_array(image)) == expected  # nothing is masked
    assert len(hartsift.extract(np.ma.masked_all(image.shape, np.uint8) * 0)) == 0  # all is
    colour = np.ma.masked_array(np.stack([image] * 3, 2))
    colour[60:100, 80:120, 1] = np.ma.masked  # one channel is enough
    gray = np.ma.masked_array(image)
    gray[60:100, 80:120] = np.ma.masked
    assert hartsift.extract(colour) == hartsift.extract(gray)
    assert hartsift.extract_batch(np.ma.stack([gray[..., None]] * 2)) == [hartsift.extract(gray)] * 2
    features, statuses = hartsift.Extractor().describe(gray, expected)
    assert len(features) == len(expected) and not statuses.any()
    with pytest.raises(hartsift.ArgumentError, match="mask has shape"):
        hartsift.extract(gray, np.ones((3, 4), np.uint8))
    with pytest.raises(hartsift.ArgumentError, match="1 dimensions"):
        hartsift.extract(np.ma.masked_array(np.ones(5, np.uint8)))
    with pytest.raises(hartsift.ArrayTypeError, match="masked array"):
        hartsift.reduce_sum(gray)
