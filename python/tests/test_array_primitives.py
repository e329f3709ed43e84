"""Reductions, tiles, histograms and convolution compared with NumPy."""

import numpy as np
import pytest

import hartsift


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_reductions(image, dtype):
    array = image.astype(dtype)
    for view in (
        array,
        array[3:77, 5:91],
        array[::2, ::3],
        array[::-1],
        array.T,
        array.reshape(8, 30, 320),
        array[0],
        array.astype(array.dtype.newbyteorder()),
    ):
        assert hartsift.reduce_sum(view) == view.astype(np.float64).sum()
        assert hartsift.reduce_mean(view) == pytest.approx(view.astype(np.float64).mean(), rel=1e-14)
        assert (hartsift.reduce_min(view), hartsift.reduce_max(view)) == (view.min(), view.max())


def test_wrong_arrays():
    with pytest.raises(hartsift.ArrayTypeError, match="int64"):
        hartsift.reduce_sum([1, 2, 3])
    with pytest.raises(hartsift.ArgumentError, match="no elements"):
        hartsift.reduce_max(np.zeros((0, 3)))
    with pytest.raises(hartsift.ArgumentError, match="tile"):
        hartsift.tile_stats(np.zeros((3, 3)), (0, 2))
    colour = np.zeros((4, 5, 3), np.uint8)
    for function in (
        lambda: hartsift.tile_stats(colour, (2, 2)),
        lambda: hartsift.equalize(colour),
        lambda: hartsift.convolve1d(colour.astype(np.float32), [1.0]),
    ):
        with pytest.raises(hartsift.ArgumentError, match="dimensions"):
            function()


def test_tiles(image):
    tiles = hartsift.tile_stats(image, (64, 50), threshold=128)
    assert tiles.shape == (5, 5) and tiles.dtype == hartsift.TILE_DTYPE
    for row in range(5):
        for column in range(5):
            part = image[50 * row : 50 * row + 50, 64 * column : 64 * column + 64]
            tile = tiles[row, column]
            assert tile["sum"] == part.sum() and tile["above"] == (part > 128).sum()
            assert (tile["min"], tile["max"]) == (part.min(), part.max())
            assert tile["mean"] == pytest.approx(part.mean(), rel=1e-14)


def test_histograms(image):
    counts = hartsift.histogram256(image)
    assert np.array_equal(counts, np.bincount(image.reshape(-1), minlength=256))
    mask = image > 100
    assert np.array_equal(hartsift.histogram256(image, mask), np.bincount(image[mask], minlength=256))
    # any number other than zero keeps an element, even if its low byte is zero
    for numbers in (256 * mask.astype(np.int32), 0.25 * mask):
        assert np.array_equal(hartsift.histogram256(image, numbers), np.bincount(image[mask], minlength=256))
    with pytest.raises(hartsift.ArgumentError):
        hartsift.histogram256(image.astype(np.uint16))


def test_equalisation(image):
    spread = hartsift.equalize(image)
    assert spread.shape == image.shape and spread.min() == 0 and spread.max() == 255
    assert np.array_equal(hartsift.equalize(image[:, ::-1]), spread[:, ::-1])
    assert np.array_equal(hartsift.equalize(image.reshape(-1)), spread.reshape(-1))
    cv2 = pytest.importorskip("cv2")
    assert np.array_equal(spread, cv2.equalizeHist(image))


@pytest.mark.parametrize("dtype, bound", [(np.float32, 1e-3), (np.float64, 1e-10)])
def test_convolution(image, dtype, bound):
    signal = image[:5].astype(dtype)
    taps = np.array([0.1, -0.4, 1.5, 0.3, 0.2])
    for ends, mode in (("zero", "constant"), ("replicate", "edge"), ("reflect-101", "reflect")):
        padded = np.pad(signal.astype(np.float64), ((0, 0), (2, 2)), mode=mode)
        expected = np.array([np.convolve(row, taps, mode="valid") for row in padded])
        result = hartsift.convolve1d(signal, taps, ends)
        assert result.dtype == dtype and np.abs(result - expected).max() < bound
    assert hartsift.convolve1d(signal[0], taps).shape == (320,)
    with pytest.raises(hartsift.ArgumentError):
        hartsift.convolve1d(signal, taps[:4])
    with pytest.raises(hartsift.ArgumentError, match="zero, replicate"):
        hartsift.convolve1d(signal, taps, "wrap")


def results(array, extractor=None):
    """Every primitive of an 8-bit array."""
    signal = array.astype(np.float32) if isinstance(array, np.ndarray) else array.float()
    return [
        *(f(array, extractor=extractor) for f in (hartsift.reduce_sum, hartsift.reduce_mean, hartsift.reduce_min, hartsift.reduce_max)),
        hartsift.tile_stats(array, (64, 50), 128, extractor=extractor),
        hartsift.histogram256(array, extractor=extractor),
        hartsift.equalize(array, extractor=extractor),
        hartsift.convolve1d(signal, [0.25, 0.5, 0.25], extractor=extractor),
    ]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_extractor_does_the_work(image, device):
    """Threads of an extractor, or its GPU, give the bytes of the calling thread."""
    try:
        extractor = hartsift.Extractor(device=device, threads=2)
    except hartsift.DeviceError as error:
        pytest.skip(f"needs a GPU: {error}")
    with extractor:
        for wide in (image, image[:, ::-1][3:, 7:]):
            for got, expected in zip(results(wide, extractor), results(wide)):
                assert np.array_equal(got, expected)
        mask = image > 100
        assert np.array_equal(hartsift.histogram256(image, mask, extractor), hartsift.histogram256(image, mask))


def test_arrays_on_a_device(image):
    torch = pytest.importorskip("torch", reason="needs the PyTorch of a GPU host")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU: PyTorch sees none")
    on_gpu = torch.from_numpy(image).cuda()
    got = results(on_gpu)
    assert got[6].is_cuda and got[7].is_cuda and got[7].dtype == torch.float32
    for one, expected in zip(got, results(image)):
        assert np.array_equal(one.cpu().numpy() if isinstance(one, torch.Tensor) else one, expected)
    with pytest.raises(hartsift.ArgumentError, match="one after the other"):
        hartsift.reduce_sum(on_gpu[:, ::2])
    with pytest.raises(hartsift.ArgumentError, match="on a device"):
        hartsift.histogram256(on_gpu, image)
