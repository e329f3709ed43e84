"""Arrays that other packages use without a copy: capsules over host memory, consumed or dropped, and a fake GPU."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

import hartsift
from hartsift import _device, _dlpack, _library
from hartsift._structures import HsCudaFeatures, HsFeatures

#: NumPy supports versions and devices of DLPack from 2.1 on.
NUMPY = tuple(map(int, np.__version__.split(".")[:2]))


class Lender:
    """Host memory in capsules as they are made for a device."""

    def __init__(self, array, newest=1):
        self.array, self.newest, self.versioned = array, newest, None

    def __dlpack_device__(self):
        return _dlpack.CPU, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.versioned = max_version is not None and max_version[0] >= self.newest
        steps = tuple(step // self.array.itemsize for step in self.array.strides)
        sample = self.array.dtype.kind, self.array.itemsize
        return _dlpack.lend(
            self, self.array.ctypes.data, self.array.shape, steps, sample, (_dlpack.CPU, 0), self.versioned
        )


def consumers():
    """Packages, and the functions by which they take a capsule."""
    found = [("numpy", np.from_dlpack)]
    try:
        import torch
    except ImportError:
        return found
    return [*found, ("torch", torch.from_dlpack)]


ARRAYS = [
    np.arange(24, dtype=np.uint8).reshape(4, 6),
    np.arange(256, dtype=np.float32).reshape(2, 128),
    np.arange(36, dtype=np.float32).reshape(6, 6)[:, :4],
    np.zeros((0, 128), np.uint8),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
@pytest.mark.parametrize("newest", [1, 99], ids=["versioned", "unversioned"])
@pytest.mark.parametrize("consumer", consumers(), ids=lambda consumer: consumer[0])
def test_capsules_are_consumed_and_given_back(array, newest, consumer):
    lender = Lender(array, newest)
    owner, before = weakref.ref(lender), len(_dlpack._borrowed)
    taken = consumer[1](lender)
    if newest == 99:
        assert lender.versioned is False
    assert np.array_equal(np.asarray(taken), array) and tuple(taken.shape) == array.shape
    if array.size:
        array[1, 2] += 1
        assert taken[1, 2] == array[1, 2]  # no copy
    del lender
    gc.collect()
    assert owner() is not None and len(_dlpack._borrowed) == before + 1
    part = taken[1:]
    del taken
    gc.collect()
    assert owner() is not None  # the consumer still holds a view
    del part
    gc.collect()
    assert owner() is None and len(_dlpack._borrowed) == before


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (0, 8), (2, 0)])
def test_capsules_that_nobody_consumes(version):
    lender = Lender(ARRAYS[0])
    owner, before = weakref.ref(lender), len(_dlpack._borrowed)
    capsule = lender.__dlpack__(max_version=version)
    wanted = "dltensor_versioned" if version and version[0] >= 1 else "dltensor"
    assert f'"{wanted}"' in repr(capsule)
    seen = _dlpack.tensor_of(capsule)
    assert seen.data == ARRAYS[0].ctypes.data and list(seen.shape[:2]) == [4, 6] and list(seen.strides[:2]) == [6, 1]
    del lender
    assert owner() is not None
    del capsule
    assert owner() is None and len(_dlpack._borrowed) == before


def test_capsules_are_given_back_from_any_thread():
    lender = Lender(ARRAYS[1])
    owner = weakref.ref(lender)
    box = [np.from_dlpack(lender)]
    del lender
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert owner() is None


def test_capsules_of_others_are_read():
    array = np.arange(12, dtype=np.uint16).reshape(3, 4)
    assert _dlpack.tensor_of(array.__dlpack__()).data == array.ctypes.data
    if NUMPY >= (2, 1):
        assert _dlpack.tensor_of(array.__dlpack__(max_version=(1, 0))).data == array.ctypes.data
    with pytest.raises(ValueError):
        _dlpack.tensor_of(_dlpack._new(8, b"used_dltensor", None))


# ---- a fake GPU: device memory is host memory, and the CPU executes the library's CUDA calls


class FakeArray:
    """An array of a GPU package with the usual protocols."""

    def __init__(self, array):
        self.array, self.shape, self.ndim, self.dtype = array, array.shape, array.ndim, array.dtype

    def __dlpack_device__(self):
        return _dlpack.CUDA, 0

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream == _device.LEGACY_STREAM
        if self.array.dtype.kind not in _dlpack.KINDS.values():
            return self.array.__dlpack__()
        steps = tuple(step // self.array.itemsize for step in self.array.strides)
        sample = self.array.dtype.kind, self.array.itemsize
        versioned = max_version is not None
        return _dlpack.lend(
            self, self.array.ctypes.data, self.shape, steps, sample, self.__dlpack_device__(), versioned
        )

    def __getitem__(self, part):
        return FakeArray(self.array[part])

    def __mul__(self, factor):
        return FakeArray(self.array * np.uint8(factor))

    def transpose(self, *axes):
        return FakeArray(self.array.transpose(*axes))

    def astype(self, dtype):
        return FakeArray(self.array.astype(dtype))

    def copy(self):
        return FakeArray(self.array.copy())

    def min(self):
        return self.array.min()

    def max(self):
        return self.array.max()


@pytest.fixture
def fake_gpu(monkeypatch):
    """Executes the library's calls for a GPU; each result overwrites the previous one."""
    library = _library.library
    slots = {}

    def extract(context, image, mask, stream, features):
        return library.hs_extract(context, image, mask, features)

    def resident(context, image, mask, stream, view):
        found = HsFeatures()
        status = library.hs_extract(context, image, mask, ctypes.byref(found))
        room = slots.setdefault(
            context.value, [ctypes.create_string_buffer(1 << bits) for bits in (20, 22, 20)]
        )
        width = 4 if found.descriptor_type == _library.HS_DESCRIPTOR_F32 else 1
        ctypes.memmove(room[0], found.keypoints, 24 * found.count)
        ctypes.memmove(room[1], found.descriptors or 0, 128 * width * found.count if found.descriptors else 0)
        answer = ctypes.cast(view, ctypes.POINTER(HsCudaFeatures)).contents
        answer.count, answer.descriptor_type = found.count, found.descriptor_type
        answer.keypoints, answer.descriptors = ctypes.addressof(room[0]), ctypes.addressof(room[1])
        if found.frames:
            ctypes.memmove(room[2], found.frames, 16 * found.count)
            answer.frames = ctypes.addressof(room[2])
        answer.image_width, answer.image_height = found.image_width, found.image_height
        library.hs_features_free(ctypes.byref(found))
        return status

    monkeypatch.setattr(_library, "HAS_CUDA", True)
    monkeypatch.setattr(library, "hs_cuda_extract", extract, raising=False)
    monkeypatch.setattr(library, "hs_cuda_extract_resident", resident, raising=False)
    return slots


def host(memory):
    """The content of an array on the fake device, from its capsule."""
    seen = _device.device_array(memory)
    base = (ctypes.c_char * max(1, seen.shape[0] * seen.strides[0])).from_address(seen.pointer)
    return np.ndarray(seen.shape, f"{seen.kind}{seen.itemsize}", base, strides=seen.strides)


class ByDlpack:
    """Offers a reader one of the two protocols."""

    def __init__(self, memory):
        self.__dlpack__, self.__dlpack_device__ = memory.__dlpack__, memory.__dlpack_device__


@pytest.mark.parametrize("descriptor", ["u8", "f32"])
@pytest.mark.parametrize("protocol", [lambda memory: memory, ByDlpack], ids=["cuda_array_interface", "dlpack"])
def test_what_lent_features_say(fake_gpu, image, descriptor, protocol):
    expected = hartsift.extract(image, descriptor=descriptor)
    resident = hartsift.Extractor(descriptor=descriptor).extract_resident(FakeArray(image))
    assert len(resident) == len(expected) and resident.image_size == (320, 240)
    assert host(protocol(resident.records)).tobytes() == expected.records.tobytes()
    assert np.array_equal(host(protocol(resident.keypoints)), expected.keypoints)
    assert host(protocol(resident.descriptors)).tobytes() == expected.descriptors.tobytes()
    assert resident.descriptors.__dlpack_device__() == (_dlpack.CUDA, 0)
    assert hartsift.Extractor(descriptor="none").extract_resident(FakeArray(image)).descriptors is None


@pytest.mark.parametrize("protocol", [lambda memory: memory, ByDlpack], ids=["cuda_array_interface", "dlpack"])
def test_frames_that_are_lent(fake_gpu, image, protocol):
    expected = hartsift.extract(image, affine=True)
    resident = hartsift.Extractor(affine=True).extract_resident(FakeArray(image))
    assert np.array_equal(host(protocol(resident.frames)), expected.frames)
    assert hartsift.Extractor().extract_resident(FakeArray(image)).frames is None


def test_interface_that_torch_takes(fake_gpu, image):
    resident = hartsift.Extractor().extract_resident(FakeArray(image))
    count = len(resident)
    described = resident.descriptors.__cuda_array_interface__
    assert described["data"][1] is False and described["strides"] is None and described["typestr"] == "|u1"
    assert described["shape"] == (count, 128) and described["version"] == 3 and described["stream"] is None
    assert resident.keypoints.__cuda_array_interface__["strides"] == (24, 4)


def test_what_a_capsule_may_be_asked(fake_gpu, image):
    memory = hartsift.Extractor().extract_resident(FakeArray(image)).keypoints
    for stream in (None, -1, 1, 2, 1 << 40):
        capsule = memory.__dlpack__(stream=stream)
        tensor = _dlpack.tensor_of(capsule)
        assert (tensor.device_type, tensor.device_id) == (_dlpack.CUDA, 0)
        assert (tensor.type_code, tensor.type_bits, tensor.type_lanes, tensor.ndim) == (2, 32, 1, 2)
        assert list(tensor.strides[:2]) == [6, 1]
    for stream in (0, -2, "1", 1.0):
        with pytest.raises(ValueError, match="stream"):
            memory.__dlpack__(stream=stream)
    memory.__dlpack__(copy=False, dl_device=(_dlpack.CUDA, 0))
    with pytest.raises(BufferError, match="clone"):
        memory.__dlpack__(copy=True)
    for device in ((_dlpack.CPU, 0), (_dlpack.CUDA, 1)):
        with pytest.raises(BufferError, match="CUDA device 0"):
            memory.__dlpack__(dl_device=device)
    if NUMPY >= (2, 1):
        with pytest.raises(BufferError):
            np.from_dlpack(memory, device="cpu")


@pytest.fixture
def on_host(monkeypatch):
    """The fake device's memory declared as the host's, for consumers without a GPU."""
    monkeypatch.setattr(_dlpack, "CUDA", _dlpack.CPU)


@pytest.mark.parametrize("consumer", consumers(), ids=lambda consumer: consumer[0])
def test_results_in_use_are_not_written_over(fake_gpu, on_host, image, consumer, monkeypatch):
    picture = image.copy()
    device_picture = FakeArray(picture)
    monkeypatch.setattr(_device, "CUDA", 2)
    monkeypatch.setattr(FakeArray, "__dlpack_device__", lambda self: (2, 0))
    expected = hartsift.extract(image)
    extractor = hartsift.Extractor()
    resident = extractor.extract_resident(device_picture)
    tensor = consumer[1](resident.descriptors)
    assert np.array_equal(np.asarray(tensor), expected.descriptors)
    for call in (
        lambda: extractor.extract_resident(device_picture),
        lambda: extractor.extract(image),
        lambda: extractor.detect(image),
        lambda: hartsift.match(expected, expected, extractor=extractor),
    ):
        with pytest.raises(hartsift.ArgumentError, match="1 arrays of the last result.*clone"):
            call()
    assert np.array_equal(np.asarray(tensor), expected.descriptors)
    del tensor
    assert extractor.extract(image[::-1]) != expected
    with pytest.raises(hartsift.ArgumentError, match="called again"):
        consumer[1](resident.descriptors)
    with pytest.raises(hartsift.ArgumentError, match="called again"):
        resident.records.__cuda_array_interface__


@pytest.mark.parametrize("consumer", consumers(), ids=lambda consumer: consumer[0])
def test_memory_outlives_the_extractor(fake_gpu, on_host, image, consumer, monkeypatch):
    monkeypatch.setattr(_device, "CUDA", 2)
    monkeypatch.setattr(FakeArray, "__dlpack_device__", lambda self: (2, 0))
    with hartsift.Extractor() as extractor:
        context = weakref.ref(extractor._context)
        end = extractor._context._end
        tensor = consumer[1](extractor.extract_resident(FakeArray(image)).keypoints)
    del extractor
    gc.collect()
    assert context() is not None and end.alive
    assert np.array_equal(np.asarray(tensor), hartsift.extract(image).keypoints)
    del tensor
    gc.collect()
    assert context() is None and not end.alive


def test_close_without_lent_arrays_ends_the_context(fake_gpu, image):
    extractor = hartsift.Extractor()
    resident = extractor.extract_resident(FakeArray(image))
    end = extractor._context._end
    extractor.close()
    assert end.alive  # a result may still be read
    del resident
    gc.collect()
    assert not end.alive
    flying = hartsift.Extractor()
    flying.submit(image.copy())
    end = flying._context._end
    flying.close()
    assert not end.alive and flying.in_flight == 0


# ---- images on the fake GPU


def test_images_on_a_device_by_type(fake_gpu, image):
    expected = hartsift.extract(image)
    assert hartsift.extract(FakeArray(image)) == expected
    for dtype in (np.int16, np.int64):
        assert hartsift.extract(FakeArray(image.astype(dtype))) == expected
    assert hartsift.extract(FakeArray(image > 128)) == hartsift.extract(image > 128)
    unit = image / np.float32(255)
    assert hartsift.extract(FakeArray(unit)) == hartsift.extract(unit)
    assert hartsift.extract(FakeArray(unit.astype(np.float64))) == hartsift.extract(unit)
    deep = image.astype(np.uint16) * 16
    assert hartsift.extract(FakeArray(deep), value_range=(0, 4095)) == hartsift.extract(deep, value_range=(0, 4095))
    assert hartsift.extract(FakeArray(image[:, ::-1])) == hartsift.extract(image[:, ::-1])
    assert hartsift.extract(FakeArray(image), FakeArray(image > 99)) == hartsift.extract(image, image > 99)


def test_images_on_a_device_that_cannot_be_meant(fake_gpu, image):
    with pytest.raises(hartsift.ArgumentError, match=r"value_range=\(0, 255\)"):
        hartsift.extract(FakeArray(image.astype(np.float32)))
    with pytest.raises(hartsift.ArgumentError, match="where black is 0 and white is 255"):
        hartsift.extract(FakeArray(image.astype(np.int32) * 9))
    unit = image / np.float32(255)
    unit[0, 0] = np.nan
    with pytest.raises(hartsift.ArgumentError, match="NaN"):
        hartsift.extract(FakeArray(unit))
    with pytest.warns(UserWarning, match=r"\(0, 4095\)"):
        hartsift.extract(FakeArray(image.astype(np.uint16) * 16))
    with pytest.raises(hartsift.ArrayTypeError, match="integers, floats or bool"):
        hartsift.extract(FakeArray(image.astype(np.complex64)))


def test_batches_on_a_device(fake_gpu, image, colour_image):
    pictures = [np.roll(image, 9 * i, axis=0) for i in range(3)]
    stack = np.stack(pictures)
    expected = [hartsift.extract(picture) for picture in pictures]
    assert hartsift.extract_batch(FakeArray(stack[:, None])) == expected
    assert list(hartsift.extract_many([FakeArray(pictures[0]), *pictures[1:]])) == expected
    planes = np.stack([colour_image.transpose(2, 0, 1)])
    assert hartsift.extract_batch(FakeArray(planes)) == [hartsift.extract(colour_image)]
    masks = np.ones((3, 240, 320), np.uint8)
    masks[:, :, 160:] = 0
    masked = [hartsift.extract(picture, masks[0]) for picture in pictures]
    assert hartsift.extract_batch(FakeArray(stack[:, None]), FakeArray(masks)) == masked


def test_streams_are_asked_for_where_the_interface_has_none(fake_gpu, image):
    class LikeTorch(FakeArray):
        """Version 2 of the interface, without a stream, and DLPack, with one."""

        asked = 0

        @property
        def __cuda_array_interface__(self):
            return {"version": 2, "data": (1, False), "shape": self.shape, "strides": None, "typestr": "|u1"}

        def __dlpack__(self, **keywords):
            LikeTorch.asked += 1
            return super().__dlpack__(**keywords)

    assert hartsift.extract(LikeTorch(image)) == hartsift.extract(image) and LikeTorch.asked > 0
