"""help() of the public functions names every argument, and answers questions of users of other packages."""

import inspect
import re

import pytest

import hartsift

#: Names of objects that only the package itself creates.
INTERNAL = {"hartsift.DeviceFeatures.__init__", "hartsift.DeviceMemory.__init__"}


def functions_of(module):
    """The public functions and methods of public classes, by name, with their help texts."""
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            own = {key: getattr(value, "__func__", value) for key, value in vars(thing).items()}
            for key, value in own.items():
                if inspect.isfunction(value) and (key == "__init__" or not key.startswith("_")):
                    of_class = inspect.getdoc(thing) if key == "__init__" else ""
                    yield f"{module.__name__}.{name}.{key}", value, f"{of_class} {inspect.getdoc(value) or ''}"
        elif inspect.isfunction(thing):
            yield f"{module.__name__}.{name}", thing, inspect.getdoc(thing) or ""


@pytest.mark.parametrize("name", ["hartsift", "parquet", "ray", "pypopsift", "alicevision", "openmvg", "bundler", "torch"])
def test_every_argument_is_named(name):
    if name == "torch":
        pytest.importorskip("torch", reason="needs the PyTorch of a GPU host, too large to install for this alone")
    module = pytest.importorskip(name if name == "hartsift" else f"hartsift.{name}")
    missing = []
    for function, thing, text in functions_of(module):
        names = [one for one in inspect.signature(thing).parameters if one not in ("self", "cls")]
        if function not in INTERNAL and not issubclass(getattr(module, function.split(".")[-2], object), (Exception, dict)):
            missing += [f"{function}: {one}" for one in names if not re.search(rf"\b{one}\b", text)]
    assert not missing


def test_main_arguments_of_extract():
    text = inspect.getdoc(hartsift.extract)
    for word in ("image", "mask", "channels", "value_range", "profile", "max_features", "contrast", "norm", "device", "threads"):
        assert word in text
    for function in (hartsift.extract, hartsift.extract_batch, hartsift.extract_many, hartsift.extract_patches):
        assert re.search("rgb", inspect.getdoc(function), re.I), function
    assert '"bgr"' in text and "cv2.imread" in text
    assert "BGR" in inspect.getdoc(hartsift.SIFT_create) and "BGR" in inspect.getdoc(hartsift.SIFT)


def test_help_shows_the_arguments_of_the_drop_ins():
    assert list(inspect.signature(hartsift.SIFT.detectAndCompute).parameters) == [
        "self", "image", "mask", "descriptors", "useProvidedKeypoints", "as_cv2"
    ]
    assert list(inspect.signature(hartsift.BFMatcher.knnMatch).parameters)[1:6] == [
        "queryDescriptors", "trainDescriptors", "k", "mask", "compactResult"
    ]
