"""Arrays of other libraries: DLPack and __cuda_array_interface__ on the CPU, and on a GPU if available."""

import ctypes
import sys
import types

import numpy as np
import pytest

import hartsift
from hartsift import _device


class DlpackOnly:
    """An array of another library in host memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class SaysItIsOnADevice(DlpackOnly):
    """Host memory that claims to be on a CUDA device, for tests of the protocol that never read pixels."""

    def __dlpack__(self, stream=None):
        assert stream == _device.LEGACY_STREAM
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (2, 0)


class CudaArray:
    """The __cuda_array_interface__ of an array at a given address."""

    def __init__(self, pointer, array, **changes):
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (pointer, True),
            "shape": array.shape,
            "strides": None,
            "typestr": array.dtype.str,
            "stream": None,
            **changes,
        }


def test_dlpack_in_host_memory(image):
    assert hartsift.extract(DlpackOnly(image.copy())) == hartsift.extract(image)
    part = image.copy()[10:200:2, 5:300]
    assert hartsift.extract(DlpackOnly(part)) == hartsift.extract(part)


@pytest.mark.parametrize(
    "array", [np.zeros((4, 6), np.uint8), np.zeros((4, 6, 3), np.uint16), np.zeros((9, 8), np.float32)[::2, :5]]
)
def test_dlpack_on_a_device_is_understood(array):
    seen = _device.device_array(SaysItIsOnADevice(array))
    assert (seen.pointer, seen.shape, seen.strides) == (array.ctypes.data, array.shape, array.strides)
    assert (seen.kind, seen.itemsize, seen.stream) == (array.dtype.kind, array.itemsize, _device.LEGACY_STREAM)


def test_cuda_array_interface_is_understood():
    array = np.zeros((4, 6, 3), np.uint16)
    seen = _device.device_array(CudaArray(4096, array, stream=7))
    assert (seen.pointer, seen.shape, seen.strides) == (4096, array.shape, array.strides)
    assert (seen.kind, seen.itemsize, seen.stream) == ("u", 2, 7)
    assert _device.device_array(CudaArray(4096, array, version=2)).stream == _device.LEGACY_STREAM
    assert _device.device_array(CudaArray(4096, array, strides=(64, 6, 2))).strides == (64, 6, 2)
    assert _device.device_array(array) is None


def test_tensors_are_read_by_their_own_attributes(monkeypatch):
    class Tensor:
        """The attributes of a CUDA tensor that the package reads. Its DLPack must not be used, because it is slow."""

        is_cuda, requires_grad, layout, device = True, False, "strided", "cuda:0"

        def __init__(self, dtype, shape, strides, negative=False):
            self.dtype, self.shape, self._strides, self._negative = dtype, shape, strides, negative

        def is_neg(self):
            return self._negative

        def element_size(self):
            return 4 if self.dtype == "torch.float32" else 1

        def stride(self):
            return self._strides

        def data_ptr(self):
            return 4096

        def get_device(self):
            return 3

    handles = [0, 77]
    torch = types.SimpleNamespace(
        Tensor=Tensor,
        strided="strided",
        _C=types.SimpleNamespace(),
        cuda=types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=handles.pop(0))),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    seen = _device.device_array(Tensor("torch.float32", (4, 6), (8, 1)))
    assert (seen.pointer, seen.shape, seen.strides, seen.kind, seen.itemsize) == (4096, (4, 6), (32, 4), "f", 4)
    assert seen.stream == _device.LEGACY_STREAM and seen.device == 3
    assert _device.device_array(Tensor("torch.uint8", (4, 6), (6, 1))).stream == 77
    torch._C._cuda_getCurrentRawStream = lambda number: 88 + number
    assert _device.device_array(Tensor("torch.uint8", (4, 6), (6, 1))).stream == 91
    assert _device.device_array(Tensor("torch.complex64", (4, 6), (6, 1))) is None  # described by the protocols instead
    assert _device.device_array(Tensor("torch.float32", (4, 6), (6, 1), negative=True)) is None


def test_what_a_device_array_must_be(image):
    array = np.zeros((40, 60), np.uint8)
    for changes, words in (
        ({"typestr": "<i4"}, "expected uint8"),
        ({"typestr": ">u2"}, "byte order"),
        ({"strides": (-60, 1)}, "contiguous"),
        ({"shape": (0, 3)}, "no pixels"),
        ({"mask": object()}, "mask"),
    ):
        with pytest.raises(hartsift.Error, match=words):
            hartsift.extract(CudaArray(4096, array, **changes), device="cpu")
    with pytest.raises(hartsift.ArgumentError, match="both"):
        hartsift.extract(CudaArray(4096, array), np.ones((40, 60), bool), device="cpu")
    with pytest.raises(hartsift.DeviceError):
        hartsift.extract(CudaArray(4096, array), device="cpu")
    extractor = hartsift.Extractor(device="cpu")
    for call in (extractor.detect, extractor.submit):
        with pytest.raises(hartsift.ArgumentError, match="host memory"):
            call(CudaArray(4096, array))
    with pytest.raises(hartsift.ArgumentError, match="on the device"):
        extractor.extract_resident(image)


class Driver:
    """The part of CUDA's driver interface that an array on device 0 needs."""

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            pytest.skip("needs a GPU: no CUDA driver")
        if self.cuda.cuInit(0) != 0:
            pytest.skip("needs a GPU: no usable CUDA device")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.do("cuDeviceGet", ctypes.byref(device), 0)
        self.do("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.do("cuCtxSetCurrent", context)

    def do(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def array(self, host):
        host = np.ascontiguousarray(host)
        pointer = ctypes.c_uint64()
        self.do("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(host.nbytes))
        self.do("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes))
        self.do("cuCtxSynchronize")
        return CudaArray(pointer.value, host)

    def read(self, array):
        described = array.__cuda_array_interface__
        assert described["strides"] is None
        host = np.empty(described["shape"], described["typestr"])
        self.do(
            "cuMemcpyDtoH_v2",
            ctypes.c_void_p(host.ctypes.data),
            ctypes.c_uint64(described["data"][0]),
            ctypes.c_size_t(host.nbytes),
        )
        return host


@pytest.fixture(scope="module")
def driver():
    if not hartsift.HAS_CUDA:
        pytest.skip("needs a GPU: built without CUDA")
    return Driver()


def test_images_on_a_gpu(driver, image, colour_image):
    expected = hartsift.extract(image, device="cpu")
    assert hartsift.extract(image, device="cuda:0") == expected
    assert hartsift.extract(driver.array(image), device="cuda:0") == expected
    assert hartsift.extract(driver.array(colour_image), device="cuda:0") == hartsift.extract(colour_image, device="cpu")
    mask = np.zeros(image.shape, np.uint8)
    mask[:, :100] = 1
    masked = hartsift.extract(driver.array(image), driver.array(mask), device="cuda:0")
    assert masked == hartsift.extract(image, mask, device="cpu")
    as_float = image.astype(np.float32)
    on_device = hartsift.extract(driver.array(as_float), device="cuda:0", value_range=(0, 255))
    assert on_device == hartsift.extract(as_float, device="cpu", value_range=(0, 255))


def test_features_that_stay_on_a_gpu(driver, image):
    expected = hartsift.extract(image, device="cpu")
    extractor = hartsift.Extractor(device="cuda:0")
    picture = driver.array(image)
    resident = extractor.extract_resident(picture)
    assert len(resident) == len(expected) and resident.image_size == (320, 240)
    assert driver.read(resident.records).tobytes() == expected.records.tobytes()
    assert driver.read(resident.descriptors).tobytes() == expected.descriptors.tobytes()
    keypoints = resident.keypoints.__cuda_array_interface__
    assert keypoints["shape"] == (len(expected), 4) and keypoints["strides"] == (24, 4)
    extractor.extract(image)
    with pytest.raises(hartsift.ArgumentError, match="called again"):
        resident.records.__cuda_array_interface__


def test_frames_that_stay_on_a_gpu(driver, image):
    expected = hartsift.extract(image, device="cpu", affine=True)
    assert hartsift.extract(image, device="cuda", affine=True) == expected
    resident = hartsift.Extractor(device="cuda:0", affine=True).extract_resident(driver.array(image))
    assert driver.read(resident.frames).tobytes() == expected.frames.tobytes()


def test_many_images_on_a_gpu(driver, image):
    pictures = [np.roll(image, 9 * i, axis=0) for i in range(12)]
    expected = [hartsift.extract(picture, device="cpu") for picture in pictures]
    assert list(hartsift.extract_many(pictures, device="cuda:0")) == expected
