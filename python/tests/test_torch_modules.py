"""hartsift.torch: batches in, padded tensors on their device out, with the bytes of hartsift.extract."""

import concurrent.futures
import copy
import pickle

import numpy as np
import pytest

import hartsift


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="needs the PyTorch of a GPU host")


@pytest.fixture(params=["cpu", "cuda"])
def device(request, torch):
    if request.param == "cuda" and not (torch.cuda.is_available() and hartsift.HAS_CUDA):
        pytest.skip("needs a GPU")
    return torch.device(request.param)


@pytest.fixture(scope="module")
def modules(torch):
    import hartsift.torch

    return hartsift.torch


@pytest.fixture(scope="module")
def images():
    """uint8 [3, 240, 320], the last one without features."""
    scenes = [hartsift.load_image(f"@scene:320x240:{seed}") for seed in (5, 6)]
    return np.stack([*scenes, np.full_like(scenes[0], 77)])


def assert_batch(found, wanted, device):
    """The tensors of a batch are these features, followed by zeros."""
    assert found["counts"].tolist() == [len(one) for one in wanted]
    assert all(tensor.device.type == device.type for tensor in found.values())
    most = max(map(len, wanted))
    for i, one in enumerate(wanted):
        columns = {"keypoints": one.points, "scales": one.sigmas, "oris": one.orientations, "keypoint_scores": one.responses}
        for name, column in {**columns, "descriptors": one.descriptors}.items():
            rows = found[name][i].cpu().numpy()
            assert len(rows) == most and rows.dtype == column.dtype
            np.testing.assert_array_equal(rows[: len(one)], column)
            assert not rows[len(one) :].any()


def test_batch_of_bytes(torch, modules, device, images):
    sift = modules.SIFT(norm="root")
    wanted = [hartsift.extract(one, norm="root", descriptor="f32", device="cpu") for one in images]
    assert len(wanted[0]) != len(wanted[1]) and len(wanted[2]) == 0
    batch = torch.from_numpy(images)[:, None].to(device)
    found = sift(batch)
    assert_batch(found, wanted, device)
    assert found["image_size"].tolist() == [[320, 240]] * 3
    assert_batch(sift(batch[2:]), wanted[2:], device)  # none at all
    assert_batch(sift(batch[1:2]), wanted[1:2], device)
    assert_batch(found, wanted, device)  # unchanged after further calls


def test_floats_and_colours(torch, modules, device, images):
    sift = modules.SIFT(descriptor="u8")
    batch = torch.from_numpy(images)[:2, None].to(device)
    floats = (batch.double() / 255).float()
    wanted = [hartsift.extract(one, value_range=(0, 1), device="cpu") for one in floats[:, 0].cpu().numpy()]
    assert_batch(sift(floats), wanted, device)
    planes = torch.cat([batch, 255 - batch, batch.flip(2)], 1)
    wanted = [hartsift.extract(one.permute(1, 2, 0).contiguous().numpy(), device="cpu") for one in planes.cpu()]
    assert_batch(sift(planes), wanted, device)


def test_masks(torch, modules, device, images):
    sift = modules.SIFT(descriptor="u8", max_features=50)
    batch = torch.from_numpy(images)[:2, None].to(device)
    masks = torch.zeros(2, 1, 240, 320, device=device)
    masks[0, :, :, :100] = 0.5
    masks[1, :, 90:] = 1
    kept = masks[:, 0].cpu().numpy() != 0
    wanted = [hartsift.extract(i, m, max_features=50, device="cpu") for i, m in zip(images, kept)]
    assert_batch(sift(batch, masks), wanted, device)
    assert_batch(sift(batch, masks[:, 0] > 0), wanted, device)


def test_no_descriptors(torch, modules, device, images):
    found = modules.SIFT(descriptor="none")(torch.from_numpy(images)[:1, None].to(device))
    assert "descriptors" not in found
    np.testing.assert_array_equal(found["keypoints"][0].cpu().numpy(), hartsift.extract(images[0], device="cpu").points)


def test_streams_take_turns(torch, modules, device, images):
    """An extractor's memory is reused only after the previous call's copies are done."""
    if device.type == "cpu":
        pytest.skip("needs a GPU: the CPU has no streams")
    sift = modules.SIFT(max_features=3000)
    batches = [torch.from_numpy(images)[i : i + 1, None].to(device) for i in (0, 1)]
    torch.cuda.synchronize()
    wanted = [hartsift.extract(images[i], descriptor="f32", device="cpu", max_features=3000) for i in (0, 1)]
    streams = [torch.cuda.Stream() for _ in range(2)]
    results = []
    for turn in range(20):
        with torch.cuda.stream(streams[turn % 2]):
            torch.cuda._sleep(200000)  # later work on this stream waits
            results.append(sift(batches[turn % 2]))
    torch.cuda.synchronize()
    for turn, found in enumerate(results):
        assert_batch(found, [wanted[turn % 2]], device)


def test_threads_take_turns(torch, modules, device, images):
    sift = modules.SIFT()
    wanted = [hartsift.extract(one, descriptor="f32", device="cpu") for one in images[:2]]
    batch = torch.from_numpy(images)[:, None].to(device)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: sift(batch[i % 2 : i % 2 + 1]), range(12)))
    for i, one in enumerate(found):
        assert_batch(one, wanted[i % 2 : i % 2 + 1], device)


def test_copies_of_a_module(torch, modules, images):
    sift = modules.SIFT(max_features=20)
    batch = torch.from_numpy(images)[:1, None]
    wanted = sift(batch)["descriptors"]
    for other in (copy.deepcopy(sift), pickle.loads(pickle.dumps(sift))):
        assert torch.equal(other(batch)["descriptors"], wanted)


def test_refused(torch, modules):
    for images in (torch.zeros(3, 40, 40), np.zeros((1, 1, 40, 40)), torch.zeros(0, 1, 40, 40)):
        with pytest.raises(hartsift.ArgumentError, match="B, C, H, W"):
            modules.SIFT()(images)
    with pytest.raises(hartsift.ArgumentError, match="as many"):
        modules.SIFT()(torch.zeros(2, 1, 40, 40), torch.ones(1, 40, 40))
    with pytest.raises(hartsift.ArgumentError, match="that of the images"):
        modules.SIFT(device="cuda")
    with pytest.raises(TypeError, match="max_features"):
        modules.SIFT(max_featurs=3)


def test_local_feature(torch, modules, device, images):
    """Frames by their definition: the unit vector along x maps to the orientation, 6 sigma long."""
    batch = torch.from_numpy(images)[:2, None].to(device)
    lafs, responses, descriptors = modules.LocalFeature(max_features=100)(batch)
    assert lafs.shape == (2, 100, 2, 3) and responses.shape == (2, 100) and descriptors.shape == (2, 100, 128)
    for i in range(2):
        wanted = hartsift.extract(images[i], max_features=100, norm="root", descriptor="f32", device="cpu")
        np.testing.assert_array_equal(lafs[i, :, :, 2].cpu(), wanted.points)
        np.testing.assert_array_equal(descriptors[i].cpu(), wanted.descriptors)
        along = 6 * wanted.sigmas[:, None] * np.stack([np.cos(wanted.orientations), np.sin(wanted.orientations)], 1)
        across = along[:, ::-1] * [-1, 1]
        np.testing.assert_allclose(lafs[i, :, :, 0].cpu(), along, rtol=0, atol=1e-4)
        np.testing.assert_allclose(lafs[i, :, :, 1].cpu(), across, rtol=0, atol=1e-4)
    with pytest.raises(hartsift.ArgumentError, match="features"):
        modules.LocalFeature()(batch)
