"""Extraction: the command's bytes from files and from arrays of every kind, options, errors, memory, threads, forks."""

import concurrent.futures
import gc
import multiprocessing
import pathlib
import weakref

import numpy as np
import pytest

import hartsift
from conftest import SCENE

PROFILES = ("lowe", "opencv", "vlfeat", "colmap")


def assert_npz_has(path, features):
    """Every array of the file has the bytes of the features."""
    with np.load(path) as stored:
        assert stored["keypoints"].tobytes() == features.keypoints.tobytes()
        assert stored["responses"].tobytes() == features.responses.tobytes()
        assert stored["octaves"].tobytes() == features.octaves.tobytes()
        assert stored["levels"].tobytes() == features.levels.tobytes()
        assert tuple(stored["image_size"]) == features.image_size
        if features.descriptors is None:
            assert "descriptors" not in stored
        else:
            assert stored["descriptors"].dtype == features.descriptors.dtype


@pytest.mark.parametrize("profile", PROFILES)
def test_bytes_of_the_command(profile, image, command, tmp_path):
    command("extract", SCENE, "--profile", profile, "--quiet", "-o", tmp_path / "command.npz")
    features = hartsift.extract(image, profile=profile)
    assert len(features) > 100
    assert_npz_has(tmp_path / "command.npz", features)
    # complete files are compared, so that the order of descriptors is the format's too
    features.save(tmp_path / "python.npz")
    assert (tmp_path / "python.npz").read_bytes() == (tmp_path / "command.npz").read_bytes()
    assert hartsift.extract(SCENE, profile=profile) == features


@pytest.mark.parametrize(
    "arguments, options",
    [
        (["--max-features", "50"], {"max_features": 50}),
        (["--profile", "colmap", "--max-features", "50"], {"profile": "colmap", "max_features": 50}),
        (
            ["--profile", "colmap", "--max-features", "50", "--selection", "levels"],
            {"profile": "colmap", "max_features": 50, "selection": "levels"},
        ),
        (["--norm", "root", "--descriptor", "f32"], {"norm": "root", "descriptor": "f32"}),
        (["--descriptor", "none"], {"descriptor": "none"}),
        (["--first-octave", "0", "--scales", "4"], {"first_octave": 0, "scales": 4}),
        (["--region", "20,30,100,90", "--upright"], {"region": (20, 30, 100, 90), "upright": True}),
        (["--upsample", "aligned", "--contrast", "0.01"], {"upsample": "aligned", "contrast": 0.01}),
        (["--device", "cpu", "--threads", "1"], {"device": "cpu", "threads": 1}),
    ],
)
def test_options_of_the_command(arguments, options, image, command, tmp_path):
    command("extract", SCENE, *arguments, "--quiet", "-o", tmp_path / "command.npz")
    assert_npz_has(tmp_path / "command.npz", hartsift.extract(image, **options))


def test_masks(image, command, tmp_path):
    mask = np.zeros(image.shape, np.uint8)
    mask[:, :160] = 255
    (tmp_path / "mask.pgm").write_bytes(b"P5 320 240 255\n" + mask.tobytes())
    command("extract", SCENE, "--mask", tmp_path / "mask.pgm", "--quiet", "-o", tmp_path / "command.npz")
    features = hartsift.extract(image, mask)
    assert 0 < len(features) < len(hartsift.extract(image))
    assert_npz_has(tmp_path / "command.npz", features)
    assert hartsift.extract(image, mask > 0) == features
    assert hartsift.extract(image, np.repeat(mask, 2, axis=1)[:, ::2]) == features
    with pytest.raises(hartsift.ArgumentError, match="319 x 240"):
        hartsift.extract(image, mask[:, :319])
    with pytest.raises(hartsift.ArrayTypeError, match="uint8 or bool"):
        hartsift.extract(image, mask.astype(np.uint16))


def views_of(image):
    """The same pixels in other memory layouts."""
    padded = np.zeros((image.shape[0] + 3, image.shape[1] + 13), image.dtype)
    padded[2:-1, 5:-8] = image
    bytes_off_by_one = np.zeros(image.nbytes + 1, np.uint8)
    bytes_off_by_one[1:] = image.reshape(-1).view(np.uint8)
    yield "C order", np.ascontiguousarray(image)
    yield "Fortran order", np.asfortranarray(image)
    yield "part of a larger one", padded[2:-1, 5:-8]
    yield "upside down twice", np.ascontiguousarray(image[::-1])[::-1]
    yield "mirrored twice", np.ascontiguousarray(image[:, ::-1])[:, ::-1]
    yield "every second column", np.repeat(image, 2, axis=1)[:, ::2]
    yield "every second row", np.repeat(image, 2, axis=0)[::2]
    yield "three dimensions", image[:, :, np.newaxis]
    yield "a subclass", image.view(np.recarray) if image.dtype.names else image.view(type("Sub", (np.ndarray,), {}))
    yield "not aligned", bytes_off_by_one[1:].view(image.dtype).reshape(image.shape)
    if image.dtype.itemsize > 1:
        yield "other byte order", image.astype(image.dtype.newbyteorder())


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_arrays_in_any_memory(image, dtype):
    picture = (
        (image * np.float32(1 / 255)).astype(np.float32)
        if dtype == np.float32
        else image.astype(dtype) * (257 if dtype == np.uint16 else 1)
    )
    expected = hartsift.extract(picture)
    assert len(expected) > 100
    for name, view in views_of(picture):
        before = view.copy()
        assert hartsift.extract(view) == expected, name
        assert np.array_equal(view, before), name


def test_read_only_arrays_and_buffers(image):
    frozen = image.copy()
    frozen.flags.writeable = False
    assert hartsift.extract(frozen) == hartsift.extract(image)
    assert hartsift.extract(memoryview(image.copy())) == hartsift.extract(image)


def test_sample_types_agree(image):
    expected = hartsift.extract(image)
    assert hartsift.extract(image.astype(np.uint16) * 257) == expected
    as_float = image.astype(np.float32)
    features = hartsift.extract(as_float, value_range=(0, 255))
    assert abs(len(features) - len(expected)) <= 5
    assert hartsift.extract(as_float.astype(np.float64), value_range=(0, 255)) == features


def test_colour(colour_image, image):
    features = hartsift.extract(colour_image)
    assert hartsift.extract(np.ascontiguousarray(colour_image[..., ::-1]), channels="bgr") == features
    assert hartsift.extract(colour_image[..., ::-1], channels="bgr") == features
    assert hartsift.extract(colour_image, channels="bgr") != features
    opaque = np.dstack([colour_image, np.full_like(image, 9)])
    assert hartsift.extract(opaque) == features
    assert hartsift.extract(np.dstack([image, image // 2])) == hartsift.extract(image)
    weights = np.array([9798, 19235, 3735], np.int64)
    gray = ((colour_image.astype(np.int64) @ weights + 16384) >> 15).astype(np.uint8)
    assert hartsift.extract(gray) == features


@pytest.mark.parametrize(
    "wrong, kind, words",
    [
        (np.zeros((20, 20), np.complex64), TypeError, "complex64"),
        (np.array([["a", "b"]]), TypeError, "<U1"),
        (np.array([[None, 1]]), TypeError, "object"),
        (None, TypeError, "None"),
        (np.zeros(20, np.uint8), ValueError, "1 dimensions"),
        (np.zeros((2, 3, 20, 20), np.uint8), ValueError, "4 dimensions: hartsift.extract_batch"),
        (np.zeros((3, 20, 20), np.uint8), ValueError, "channels come last"),
        (np.zeros((0, 20), np.uint8), ValueError, "no pixels"),
        (np.zeros((20, 0, 3), np.uint8), ValueError, "no pixels"),
    ],
)
def test_wrong_arrays(wrong, kind, words):
    with pytest.raises(hartsift.Error, match=words) as caught:
        hartsift.extract(wrong)
    assert isinstance(caught.value, kind)


def test_wrong_options(image):
    with pytest.raises(TypeError, match="did you mean 'contrast'.*images_per_launch.*upright"):
        hartsift.extract(image, contast=0.1)
    for options, words in (
        ({"contrast": 7}, "contrast is 7"),
        ({"norm": "l3"}, "norm is 'l3', expected"),
        ({"profile": "sift"}, "lowe, opencv"),
        ({"max_features": 1 << 40}, "max_features"),
        ({"region": (1, 2)}, "region takes 4"),
        ({"threads": -1}, "threads"),
        ({"variant": "blur=none"}, "none"),
        ({"grid": (8, 8)}, "max_features is 0, expected how many features the grid is to spread"),
        ({"device": "tpu"}, "device is 'tpu'"),
    ):
        with pytest.raises(hartsift.ArgumentError, match=words):
            hartsift.extract(image, **options)
    with pytest.raises(TypeError, match="whole number"):
        hartsift.extract(image, max_features=1.5)
    with pytest.raises(hartsift.ArgumentError) as caught:
        hartsift.extract(image, max_pixels=100)
    assert caught.value.name == "HS_ERR_LIMIT" and "100" in str(caught.value)
    with pytest.raises(hartsift.ArgumentError, match="channels"):
        hartsift.extract(image, channels="hsv")


def test_wrong_files(tmp_path):
    with pytest.raises(hartsift.FileError, match="absent.png"):
        hartsift.extract(tmp_path / "absent.png")
    (tmp_path / "text.png").write_text("not a picture")
    with pytest.raises(hartsift.ArgumentError) as caught:
        hartsift.extract(tmp_path / "text.png")
    assert caught.value.name in ("HS_ERR_FORMAT", "HS_ERR_UNSUPPORTED")
    with pytest.raises(hartsift.ArgumentError, match="null"):
        hartsift.extract("a\0b")


def test_bytes_of_a_file(image, tmp_path):
    encoded = b"P5 320 240 255\n" + image.tobytes()
    (tmp_path / "scene.pgm").write_bytes(encoded)
    expected = hartsift.extract(image)
    assert hartsift.extract(encoded) == expected
    assert hartsift.extract(tmp_path / "scene.pgm") == expected
    assert hartsift.extract(str(tmp_path / "scene.pgm")) == expected
    assert np.array_equal(hartsift.load_image(encoded), image)


def test_jpeg_scale(image):
    path = pathlib.Path(__file__).parents[2] / "tests/data/images/jpeg_exif6.jpg"
    try:
        full = hartsift.load_image(path)
    except hartsift.Error as error:
        pytest.skip(str(error))
    assert full.shape == (24, 16)
    for scale in (1, 2, 4, 8):
        part = hartsift.load_image(path, jpeg_scale=scale)
        assert part.shape == (24 // scale, 16 // scale)
        assert np.array_equal(hartsift.load_image(path.read_bytes(), jpeg_scale=scale), part)
        features = hartsift.extract(path, jpeg_scale=scale)
        assert features == hartsift.extract(part) and features.image_size == (16 // scale, 24 // scale)
        assert next(hartsift.extract_many([path], jpeg_scale=scale)) == features
    with pytest.raises(hartsift.Error, match="only a JPEG") as caught:
        hartsift.extract(SCENE, jpeg_scale=2)
    assert caught.value.name == "HS_ERR_UNSUPPORTED"
    for scale in (-1, 3, 16, 2**32 + 2):
        with pytest.raises(hartsift.ArgumentError, match="jpeg_scale"):
            hartsift.load_image(path, jpeg_scale=scale)
    with pytest.raises(hartsift.ArgumentError, match="array"):
        hartsift.extract(image, jpeg_scale=2)


def test_load_colour_and_scenes(image):
    pixels = bytes(range(48))
    colour = hartsift.load_image(b"P6 4 4 255\n" + pixels, colour=True)
    assert colour.shape == (4, 4, 3) and colour.tobytes() == pixels
    deep = hartsift.load_image(b"P5 2 2 65535\n" + bytes([0, 1, 0, 2, 1, 0, 255, 255]))
    assert deep.dtype == np.uint16 and deep.tolist() == [[1, 2], [256, 65535]]
    assert np.array_equal(hartsift.render_scene(320, 240, 5), image)
    assert np.array_equal(hartsift.render_scene(320, 240, 5, np.eye(3)), image)
    with pytest.raises(hartsift.ArgumentError, match="expected 9"):
        hartsift.render_scene(32, 24, 5, np.eye(2))


def test_images_without_features():
    flat = np.full((60, 80), 100, np.uint8)
    features = hartsift.extract(flat)
    assert len(features) == 0 and features.keypoints.shape == (0, 4) and features.descriptors.shape == (0, 128)
    assert features.image_size == (80, 60)
    assert len(hartsift.extract(np.zeros((1, 1), np.uint8))) == 0
    assert len(hartsift.extract(flat, descriptor="none")) == 0


def test_arrays_outlive_the_extractor(image):
    with hartsift.Extractor() as extractor:
        features = extractor.extract(image)
        kept = features.keypoints
        expected = np.array(kept)
        owner = weakref.ref(features.descriptors.base._owner)
        del features
    with pytest.raises(hartsift.ArgumentError, match="closed"):
        extractor.extract(image)
    del extractor
    gc.collect()
    hartsift.extract(image, threads=1)
    assert owner() is not None and np.array_equal(kept, expected)
    del kept
    gc.collect()
    assert owner() is None


def test_results_are_views_of_the_library(image):
    features = hartsift.extract(image)
    assert not features.records.flags.owndata and not features.descriptors.flags.owndata
    assert np.shares_memory(features.keypoints, features.records)
    assert np.shares_memory(features.responses, features.records)
    features.keypoints[0, 0] = 5
    assert features.records["x"][0] == 5


def test_extract_into(image):
    expected = hartsift.extract(image)
    extractor = hartsift.Extractor()
    records = np.zeros(len(expected), hartsift.KEYPOINT_DTYPE)
    descriptors = np.zeros((len(expected), 128), np.uint8)
    assert extractor.extract_into(image, records, descriptors) == len(expected)
    assert records.tobytes() == expected.records.tobytes()
    assert descriptors.tobytes() == expected.descriptors.tobytes()
    few = np.zeros(10, hartsift.KEYPOINT_DTYPE)
    assert extractor.extract_into(image, few) == len(expected)
    assert few.tobytes() == expected.records[:10].tobytes()
    with pytest.raises(hartsift.ArrayTypeError, match="descriptors must be uint8"):
        extractor.extract_into(image, records, descriptors.astype(np.float32))
    with pytest.raises(hartsift.ArgumentError, match="contiguous"):
        extractor.extract_into(image, records[::2], None)


def test_detect_and_describe(image):
    extractor = hartsift.Extractor()
    whole = extractor.extract(image)
    detected = extractor.detect(image)
    assert detected.descriptors is None and detected.records.tobytes() == whole.records.tobytes()
    described, statuses = extractor.describe(image, detected)
    assert described == whole and not statuses.any()
    again, _ = extractor.describe(image, whole.records[::3])
    assert again == whole[::3]
    plain, statuses = extractor.describe(image, np.array([[160, 120, 3, 0], [160, 120, 0, 0], [99999, 0, 3, 0]]))
    assert len(plain) == 3 and statuses[0] == 0 and (statuses[1:] != 0).all() and not plain.descriptors[1:].any()
    edges = [-0.5, 0, 2, image.shape[1] - 3, image.shape[1] - 1, image.shape[1] - 0.5]
    grid = np.array([[x, 100, sigma, 0] for x in edges for sigma in (0.1, 2, 20, 5000)])
    dense, statuses = extractor.describe(image, grid)
    assert not statuses.any() and dense.descriptors.any(1).all()
    np.testing.assert_array_equal(dense.keypoints, grid.astype(np.float32))
    turned = whole.records.copy()
    turned["orientation"] = np.nan
    oriented, _ = extractor.describe(image, turned[:1])
    assert whole.orientations[0] in oriented.orientations
    with pytest.raises(hartsift.ArgumentError, match=r"expected \(N, 4\)"):
        extractor.describe(image, np.zeros((3, 2)))


def test_threads_share_nothing(image):
    pictures = [np.roll(image, 11 * i, axis=1) for i in range(6)]
    expected = [hartsift.extract(picture, threads=1) for picture in pictures]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            assert list(pool.map(lambda picture: hartsift.extract(picture, threads=1), pictures)) == expected
        shared = hartsift.Extractor(threads=2)
        assert list(pool.map(shared.extract, pictures)) == expected


def _extract_in_child(extractor, image, results):
    results.put((len(extractor.extract(image)), len(hartsift.extract(image, threads=2))))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forked_children_start_afresh(image):
    extractor = hartsift.Extractor(threads=2)
    count = len(extractor.extract(image))
    hartsift.extract(image, threads=2)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_extract_in_child, args=(extractor, image, results))
    child.start()
    assert results.get(timeout=300) == (count, count)
    child.join(60)
    assert child.exitcode == 0
    assert len(extractor.extract(image)) == count


def test_facts(image):
    extractor = hartsift.Extractor(profile="opencv", max_features=7, grid=(3, 2), device="cpu")
    assert extractor.options["profile"] == "opencv" and extractor.options["max_features"] == 7
    assert extractor.options["descriptor"] == "f32" and extractor.options["grid_columns"] == 3
    assert {"detect", "describe"} <= set(extractor.backends)
    assert extractor.statistics.way == "none" and extractor.statistics.way_reason == ""
    extractor.extract(image)
    assert extractor.statistics.frames == 1 and extractor.statistics.features == 7
    assert extractor.statistics.way.startswith("cpu-") and extractor.statistics.way_reason
    host, device = hartsift.workspace_bytes(640, 480, device="cpu")
    assert host > 640 * 480 * 16 and device == 0
    limit = {"device": "cpu", "threads": 2, "first_octave": 0, "max_memory_bytes": 20 << 20}
    held, _ = hartsift.workspace_bytes(1400, 1400, **limit)
    rows = [hartsift.workspace_bytes(1400, 1400, file_dtype=dtype, **limit)[0] for dtype in ("uint8", np.uint16)]
    assert held <= rows[0] < rows[1] and rows[0] == hartsift.workspace_bytes(1400, 1400, file_dtype="u1", **limit)[0]
    with pytest.raises(hartsift.Error):
        hartsift.workspace_bytes(1400, 1400, file_dtype="float32", **limit)
    assert hartsift.__version__.count(".") == 2 and hartsift.METHOD_VERSION_AFFINE > hartsift.METHOD_VERSION >= 1
    assert "opencv" in repr(extractor)
