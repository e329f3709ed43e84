"""Statements of python/README.md about PyTorch and CuPy on a GPU; each result is compared with the CPU's bytes."""

import gc
import subprocess
import sys

import numpy as np
import pytest

import hartsift


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch", reason="needs the PyTorch of a GPU host")
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU: PyTorch sees none")
    if not hartsift.HAS_CUDA:
        pytest.skip("needs a GPU: built without CUDA")
    return torch


@pytest.fixture(scope="module")
def cupy():
    cupy = pytest.importorskip("cupy", reason="needs the CuPy of a GPU host")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("needs a GPU: CuPy sees none")
    if not hartsift.HAS_CUDA:
        pytest.skip("needs a GPU: built without CUDA")
    return cupy


@pytest.fixture
def extractor():
    with hartsift.Extractor(device="cuda:0") as extractor:
        yield extractor


@pytest.fixture(scope="module")
def expected(image):
    return hartsift.extract(image, device="cpu")


def test_torch_images(torch, extractor, image, colour_image, expected):
    on_gpu = torch.from_numpy(image).cuda()
    assert extractor.extract(on_gpu) == expected
    assert extractor.extract(on_gpu[None]) == expected
    in_colour = hartsift.extract(colour_image, device="cpu")
    planes = torch.from_numpy(np.ascontiguousarray(colour_image.transpose(2, 0, 1))).cuda()
    assert extractor.extract(planes) == in_colour
    assert extractor.extract(torch.from_numpy(colour_image).cuda()) == in_colour
    assert extractor.extract(on_gpu.t()) == hartsift.extract(np.ascontiguousarray(image.T), device="cpu")
    mask = torch.zeros(image.shape, dtype=torch.bool, device="cuda")
    mask[:, :100] = True
    assert extractor.extract(on_gpu, mask) == hartsift.extract(image, mask.cpu().numpy(), device="cpu")


def test_torch_types(torch, extractor, image, expected):
    on_gpu = torch.from_numpy(image).cuda()
    unit = on_gpu.float() / 255
    as_float = hartsift.extract(unit.cpu().numpy(), device="cpu")
    assert extractor.extract(unit[None]) == as_float
    assert extractor.extract(unit.double()) == as_float
    assert extractor.extract(unit.clone().requires_grad_()) == as_float
    for rough in (unit.half(), unit.bfloat16()):
        assert extractor.extract(rough) == hartsift.extract(rough.float().cpu().numpy(), device="cpu")
    assert extractor.extract(on_gpu.long()) == expected
    assert extractor.extract(on_gpu > 128) == hartsift.extract(image > 128, device="cpu")
    deep = image.astype(np.int32) * 16
    assert extractor.extract(torch.from_numpy(deep).cuda(), value_range=(0, 4095)) == hartsift.extract(
        deep, value_range=(0, 4095), device="cpu"
    )
    with pytest.raises(hartsift.ArgumentError, match=r"value_range=\(0, 255\)"):
        extractor.extract(unit * 255)
    unit[5, 5] = float("nan")
    with pytest.raises(hartsift.ArgumentError, match="NaN"):
        extractor.extract(unit)


def test_torch_batches(torch, extractor, image):
    pictures = [np.roll(image, 17 * i, axis=1) for i in range(4)]
    batch = torch.from_numpy(np.stack(pictures)).cuda()[:, None]
    expected = [hartsift.extract(picture, device="cpu") for picture in pictures]
    assert extractor.extract_batch(batch) == expected
    assert hartsift.extract_batch(batch, device="cuda:0") == expected
    assert list(extractor.extract_many(batch)) == expected


def takers(torch):
    yield torch.as_tensor
    yield torch.from_dlpack
    yield lambda memory: torch.utils.dlpack.from_dlpack(memory.__dlpack__())


@pytest.mark.parametrize("descriptor", ["u8", "f32"])
def test_torch_takes_results(torch, image, descriptor):
    expected = hartsift.extract(image, device="cpu", descriptor=descriptor)
    extractor = hartsift.Extractor(device="cuda:0", descriptor=descriptor)
    resident = extractor.extract_resident(torch.from_numpy(image).cuda())
    assert len(resident) == len(expected) and resident.device == 0
    for take in takers(torch):
        descriptors, keypoints, records = map(take, (resident.descriptors, resident.keypoints, resident.records))
        assert descriptors.is_cuda and keypoints.is_cuda and descriptors.shape == (len(expected), 128)
        assert descriptors.cpu().numpy().tobytes() == expected.descriptors.tobytes()
        assert np.array_equal(keypoints.cpu().numpy(), expected.keypoints)
        assert records.cpu().numpy().tobytes() == expected.records.tobytes()
        first = descriptors[0].clone()
        descriptors[0] += 1  # writable, and no copy
        assert np.array_equal(take(resident.descriptors)[0].cpu().numpy(), expected.descriptors[0] + 1)
        descriptors[0] = first


def test_torch_results_in_use(torch, extractor, image, expected):
    picture = torch.from_numpy(image).cuda()
    for take in takers(torch):
        tensor = take(extractor.extract_resident(picture).descriptors)
        with pytest.raises(hartsift.ArgumentError, match="still in use"):
            extractor.extract(picture)
        assert tensor.cpu().numpy().tobytes() == expected.descriptors.tobytes()
        kept = tensor.clone()
        del tensor
        assert extractor.extract(picture.flip(0)) != expected
        assert kept.cpu().numpy().tobytes() == expected.descriptors.tobytes()


def test_torch_results_outlive_the_extractor(torch, image, expected):
    for take in takers(torch):
        with hartsift.Extractor(device="cuda:0") as extractor:
            end = extractor._context._end
            tensor = take(extractor.extract_resident(torch.from_numpy(image).cuda()).descriptors)
        del extractor
        gc.collect()
        assert end.alive
        hartsift.extract(image[::-1], device="cuda:0")
        assert tensor.cpu().numpy().tobytes() == expected.descriptors.tobytes()
        del tensor
        gc.collect()
        assert not end.alive


def test_torch_without_features(torch, extractor):
    resident = extractor.extract_resident(torch.zeros((64, 80), dtype=torch.uint8, device="cuda"))
    for take in takers(torch):
        assert take(resident.descriptors).shape == (0, 128) and take(resident.keypoints).shape == (0, 4)


def test_torch_streams(torch, extractor, image, expected):
    """The picture is written on a separate stream after long work."""
    late = torch.zeros(image.shape, dtype=torch.uint8, device="cuda")
    source = torch.from_numpy(image).cuda()
    heavy = torch.ones((4096, 4096), device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(20):
            heavy = heavy @ heavy * 1e-4
        late.copy_(source)
        assert extractor.extract(late) == expected
        tensor = torch.from_dlpack(extractor.extract_resident(late).descriptors)
        assert tensor.cpu().numpy().tobytes() == expected.descriptors.tobytes()


def test_cupy(cupy, extractor, image, colour_image, expected):
    assert extractor.extract(cupy.asarray(image)) == expected
    assert extractor.extract(cupy.asarray(colour_image)) == hartsift.extract(colour_image, device="cpu")
    assert extractor.extract(cupy.asarray(image)[:, ::-1]) == hartsift.extract(image[:, ::-1], device="cpu")
    unit = image / np.float32(255)
    assert extractor.extract(cupy.asarray(unit.astype(np.float64))) == hartsift.extract(unit, device="cpu")
    assert extractor.extract(cupy.asarray(image > 128)) == hartsift.extract(image > 128, device="cpu")
    assert extractor.extract(cupy.asarray(image), cupy.asarray(image > 99)) == hartsift.extract(
        image, image > 99, device="cpu"
    )
    with pytest.raises(hartsift.ArgumentError, match=r"value_range=\(0, 255\)"):
        extractor.extract(cupy.asarray(image.astype(np.float32)))
    with pytest.warns(UserWarning, match=r"\(0, 4095\)"):
        extractor.extract(cupy.asarray(image.astype(np.uint16) * 16))
    planes = np.stack([colour_image.transpose(2, 0, 1)] * 2)
    in_colour = hartsift.extract(colour_image, device="cpu")
    assert extractor.extract_batch(cupy.asarray(planes)) == [in_colour] * 2


def test_cupy_takes_results(cupy, extractor, image, expected):
    for take in (cupy.asarray, cupy.from_dlpack):
        resident = extractor.extract_resident(cupy.asarray(image))
        descriptors, keypoints = take(resident.descriptors), take(resident.keypoints)
        assert cupy.asnumpy(descriptors).tobytes() == expected.descriptors.tobytes()
        assert np.array_equal(cupy.asnumpy(keypoints), expected.keypoints)
        with pytest.raises(hartsift.ArgumentError, match="2 arrays"):
            extractor.extract(image)
        del descriptors, keypoints


def test_cupy_streams(cupy, extractor, image, expected):
    late, source = cupy.zeros(image.shape, cupy.uint8), cupy.asarray(image)
    heavy = cupy.ones((4096, 4096), cupy.float32)
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True):
        for _ in range(20):
            heavy = heavy @ heavy * 1e-4
        late[...] = source
        assert extractor.extract(late) == expected


def test_tensors_alive_when_python_ends(torch):
    """The deleters run while the interpreter shuts down."""
    code = """
import torch, hartsift
extractor = hartsift.Extractor(device="cuda:0")
picture = torch.from_numpy(hartsift.load_image("@scene:320x240:5")).cuda()
resident = extractor.extract_resident(picture)
tensors = [torch.from_dlpack(resident.descriptors), torch.as_tensor(resident.keypoints)]
capsule = resident.records.__dlpack__()
torch.kept = tensors
print(len(tensors[0]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and int(run.stdout) > 100, run.stdout + run.stderr
    assert "Exception" not in run.stderr and "Traceback" not in run.stderr, run.stderr
