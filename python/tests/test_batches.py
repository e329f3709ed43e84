"""Batches return every image exactly once, whether it succeeds or fails, with the bytes of extraction."""

import os
import struct
import threading
import time
import zlib

import numpy as np
import pytest

import hartsift

NAMES = [f"@scene:{60 + 7 * i}x{80 - 3 * i}:{i + 1}" for i in range(12)]


def expected_of(names, **options):
    return [hartsift.extract(name, **options) for name in names]


@pytest.mark.parametrize("devices", [None, "cpu", ["cpu", "cpu"]])
def test_results_are_those_of_extract(devices):
    with hartsift.Batch(devices, max_features=50, threads=1) as batch:
        results = list(batch.run(NAMES))
        progress = batch.progress
    assert (progress.added, progress.begun, progress.given) == (12, 12, 12) and progress.capacity > 0
    assert sorted(result.index for result in results) == list(range(12))
    expected = expected_of(NAMES, max_features=50)
    for result in results:
        assert result.name == NAMES[result.index] and result.error is None and result.priors == {}
        assert result.features == expected[result.index] and result.size == result.features.image_size
        assert result.device in ([0, 1] if isinstance(devices, list) else [0])
        assert result.way.startswith(("cpu-", "gpu-") if devices is None else "cpu-") and result.way_reason


def test_failures_are_results(tmp_path, image):
    torn = tmp_path / "torn.png"
    torn.write_bytes(b"\x89PNG\r\n\x1a\n")
    images = [NAMES[0], tmp_path / "absent.png", torn, b"no image", image, NAMES[1]]
    with hartsift.Batch("cpu", in_order=True) as batch:
        results = list(batch.run(images))
    assert [result.index for result in results] == list(range(6))
    assert [type(result.error) for result in results] == [
        type(None), hartsift.FileError, hartsift.DamagedFileError, hartsift.DamagedFileError, type(None), type(None)
    ]
    assert results[1].name == str(tmp_path / "absent.png") and "absent.png" in str(results[1].error)
    assert results[1].features is None and results[1].size == (0, 0) and results[1].device is None
    assert results[4].features == hartsift.extract(image) and results[4].name == ""


def test_more_images_than_capacity():
    with hartsift.Batch("cpu", threads=1, readers=1) as batch:
        count = 3 * batch.progress.capacity
        found = [len(result.features) for result in batch.run("@scene:40x30:3" for _ in range(count))]
    assert len(found) == count and len(set(found)) == 1


def test_arrays_bytes_and_masks(image):
    mask = np.ones(image.shape, bool)
    mask[:, 100:] = False
    header = f"P5 {image.shape[1]} {image.shape[0]} 255\n".encode()
    with hartsift.Batch("cpu", in_order=True) as batch:
        assert batch.add(image.copy(), mask, name="array") == 0
        assert batch.add(header + image.tobytes(), mask) == 1
        batch.end()
        array, encoded = batch.next(), batch.next()
        assert batch.next() is None
        with pytest.raises(hartsift.ArgumentError):
            batch.add(image)
    assert array.name == "array" and array.features == encoded.features == hartsift.extract(image, mask)


def test_a_thread_adds(image):
    batch = hartsift.Batch("cpu", threads=1)
    assert batch.next(timeout=0) is None

    def add():
        for name in NAMES:
            batch.add(name)
        batch.end()

    thread = threading.Thread(target=add)
    thread.start()
    found = {}
    while (result := batch.next()) is not None:
        found[result.index] = result.features
    thread.join()
    batch.close()
    batch.close()
    assert [found[i] for i in range(12)] == expected_of(NAMES)
    with pytest.raises(hartsift.ArgumentError, match="closed"):
        batch.next()


def test_threads_take_results(monkeypatch):
    """One thread waits while another one still copies the only result that may be held."""
    copy = hartsift.Batch._result_of
    found, ended = [], []

    def copy_slowly(batch, result):
        time.sleep(0.01)
        return copy(batch, result)

    def take():
        for result in iter(batch.next, None):
            found.append(result.index)
        ended.append(True)

    monkeypatch.setattr(hartsift.Batch, "_result_of", copy_slowly)
    with hartsift.Batch("cpu", readers=1) as batch:
        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for name in NAMES * 3:
            batch.add(name)
        batch.end()
        for thread in threads:
            thread.join()
    assert len(ended) == len(threads)  # no thread ended with an exception
    assert sorted(found) == list(range(3 * len(NAMES)))


def test_interrupted(monkeypatch):
    """Ctrl-C loses the result that was being returned, and no other."""
    with hartsift.Batch(device="cpu", readers=1) as batch:
        for _ in range(40):
            batch.add("@scene:64x48:1")
        batch.end()
        with monkeypatch.context() as patch:
            patch.setattr(hartsift.Batch, "_result_of", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            for _ in range(20):
                with pytest.raises(KeyboardInterrupt):
                    batch.next(timeout=60)
        assert [batch.next(timeout=60).error for _ in range(20)] == [None] * 20
        assert batch.next(timeout=60) is None and batch._owners == {}


def test_times_out_of_the_ordinary():
    with hartsift.Batch("cpu") as batch:
        assert batch.next(timeout=-1) is None
        batch.add(NAMES[0])
        assert batch.next(timeout=float("inf")).error is None
        batch.end()
        assert batch.next(timeout=1e12) is None


def test_stop_and_close_in_the_middle():
    batch = hartsift.Batch("cpu", threads=1)
    results = batch.run("@scene:200x150:3" for _ in range(500))
    first = next(results)
    batch.stop()
    assert len(list(results)) < 499  # only images that a device already had are returned
    assert first.features == hartsift.extract("@scene:200x150:3")
    batch.close()
    with hartsift.Batch("cpu") as other:
        for name in NAMES:
            other.add(name)  # no thread takes a result


def test_options_are_checked():
    for readers in (-1, 1025, 2**32, -(2**32)):
        with pytest.raises(hartsift.ArgumentError, match="readers is .*expected 0..1024"):
            hartsift.Batch("cpu", readers=readers)
    for options, message in (
        ({"readers": 2000}, "readers is 2000, expected 0..1024"),
        ({"scales": 99}, "scales is 99"),
        ({"devices": []}, "devices is empty"),
        ({"jpeg_scale": 3}, "jpeg_scale"),
    ):
        with pytest.raises(hartsift.ArgumentError, match=message):
            hartsift.Batch(**{"devices": "cpu", **options})


def test_damage_is_a_warning(image):
    def chunk(kind, content, checksum=None):
        checksum = zlib.crc32(kind + content) if checksum is None else checksum
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    rows = b"".join(b"\0" + row.tobytes() for row in image)
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 8, 0, 0, 0, 0)
    damaged = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"tEXt", b"Title\0x", checksum=1)
    damaged += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    with hartsift.Batch("cpu") as batch, pytest.warns(UserWarning, match="tEXt: CRC error.*strict=True"):
        (result,) = batch.run([damaged])
    assert result.features == hartsift.extract(image)
    with hartsift.Batch("cpu", strict=True) as batch:
        (result,) = batch.run([damaged])
    assert isinstance(result.error, hartsift.DamagedFileError)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_no_batch():
    with hartsift.Batch("cpu") as batch:
        batch.add(NAMES[0])
        child = os.fork()
        if child == 0:
            try:
                batch.next(timeout=0)
            except hartsift.ArgumentError as error:
                batch.close()
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        batch.end()
        assert batch.next().features == hartsift.extract(NAMES[0])
