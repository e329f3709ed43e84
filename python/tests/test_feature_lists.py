"""Features as a sequence, copied and pickled, and in files."""

import copy
import pickle
import re
import sys

import numpy as np
import pytest

import hartsift
from conftest import SCENE

FORMATS = {
    "npz": ".npz",
    "csv": ".csv",
    "json": ".json",
    "lowe": ".key",
    "vlfeat": ".sift",
    "opencv": ".yml",
    "openmvg": ".feat",
    "bin": ".hsf",
    "colmap": ".txt",
}


@pytest.fixture(scope="module")
def features():
    return hartsift.extract(SCENE)


def test_selections(features):
    assert len(features[10:20]) == 10 and features[10:20] == features[np.arange(10, 20)]
    strong = features[features.responses > 0.05]
    assert 0 < len(strong) < len(features) and (strong.responses > 0.05).all()
    assert features[-1] == features[len(features) - 1 :] and len(features[3]) == 1
    assert features[::2].keypoints.tobytes() == features.keypoints[::2].tobytes()
    assert sum(1 for _ in features) == len(features)
    with pytest.raises(IndexError):
        features[len(features)]
    assert "uint8" in repr(features)


def test_attributes(features):
    assert features.points.tobytes() == features.keypoints[:, :2].tobytes()
    assert features.sigmas.tobytes() == features.keypoints[:, 2].tobytes()
    assert features.orientations.tobytes() == features.keypoints[:, 3].tobytes()
    assert features.octaves.dtype == features.levels.dtype == np.int8
    assert features.image_size == (320, 240) and features.layout == "ubc"


def test_copies_are_independent(features):
    for twin in (copy.deepcopy(features), pickle.loads(pickle.dumps(features)), copy.copy(features[:5])):
        assert twin == features[: len(twin)]
    deep = copy.deepcopy(features)
    deep.records["x"] += 1
    deep.descriptors[0] ^= 1
    assert deep != features and deep.records["x"][0] == features.records["x"][0] + 1
    with pytest.raises(TypeError):
        hash(features)
    assert pickle.loads(pickle.dumps(hartsift.extract(SCENE, descriptor="none"))).descriptors is None


def test_errors_are_pickled():
    with pytest.raises(hartsift.FileError) as caught:
        hartsift.extract("absent.png")
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (type(twin), str(twin), twin.status) == (hartsift.FileError, str(caught.value), caught.value.status)


def test_from_arrays(features):
    twin = hartsift.Features.from_arrays(
        features.keypoints,
        features.descriptors,
        responses=features.responses,
        octaves=features.octaves,
        levels=features.levels,
        image_size=(320, 240),
    )
    assert twin == features
    assert hartsift.Features.from_arrays([[1, 2], [3, 4]]).keypoints.tolist() == [[1, 2, 1, 0], [3, 4, 1, 0]]
    with pytest.raises(hartsift.ArgumentError):
        hartsift.Features.from_arrays(np.zeros((3, 3)))
    with pytest.raises(hartsift.ArgumentError, match=r"\(3, 128\)"):
        hartsift.Features.from_arrays(np.zeros((3, 4)), np.zeros((2, 128), np.uint8))
    with pytest.raises(hartsift.ArrayTypeError):
        hartsift.Features(np.zeros(3))


@pytest.mark.parametrize("name", FORMATS)
def test_files(features, name, tmp_path, command):
    path = tmp_path / f"features{FORMATS[name]}"
    hartsift.write_features(path, features)
    again = hartsift.read_features(path)
    assert len(again) == len(features) and again.descriptors.shape == features.descriptors.shape
    assert np.abs(again.keypoints - features.keypoints).max() < 1e-3
    named = [tmp_path / f"{who}{FORMATS[name]}" for who in ("python", "command")]
    hartsift.write_features(named[0], features, format=name, image_name=SCENE)
    command("extract", SCENE, "--format", name, "--quiet", "-o", named[1])
    assert named[0].read_bytes() == named[1].read_bytes()
    if name in ("npz", "csv", "json", "bin"):
        assert again.keypoints.tobytes() == features.keypoints.tobytes()
        assert again.descriptors.tobytes() == features.descriptors.tobytes()


def test_colmap_databases(features, tmp_path):
    path = tmp_path / "database.db"
    try:
        features.save(path, image_name="a.jpg")
    except hartsift.ArgumentError as error:
        assert error.name == "HS_ERR_UNSUPPORTED"
        pytest.skip("built without SQLite")
    hartsift.write_features(path, features[:20], image_name="b.jpg")
    again = hartsift.read_features(path, image_name="a.jpg")
    assert again.descriptors.tobytes() == features.descriptors.tobytes()
    assert np.abs(again.keypoints - features.keypoints).max() < 1e-3
    assert len(hartsift.read_features(path, image_name="b.jpg")) == 20
    with pytest.raises(hartsift.Error, match="c.jpg"):
        hartsift.read_features(path, image_name="c.jpg")


def test_vlfeat_order_is_converted(tmp_path):
    features = hartsift.extract(SCENE, profile="vlfeat")
    assert features.layout == "vlfeat"
    features[:10].save(tmp_path / "f.hsf")
    again = hartsift.read_features(tmp_path / "f.hsf")
    assert again.layout == "ubc"
    back = again.descriptors.reshape(10, 16, 8)[:, :, [0, 7, 6, 5, 4, 3, 2, 1]].reshape(10, 128)
    assert back.tobytes() == features.descriptors[:10].tobytes()


def test_broken_files(features, tmp_path):
    with pytest.raises(hartsift.FileError, match="absent"):
        hartsift.read_features(tmp_path / "absent.npz")
    (tmp_path / "broken.hsf").write_bytes(b"nothing of the kind")
    with pytest.raises(hartsift.ArgumentError) as caught:
        hartsift.read_features(tmp_path / "broken.hsf")
    assert caught.value.name == "HS_ERR_FORMAT"
    with pytest.raises(hartsift.FileError):
        features.save(tmp_path / "no folder" / "f.npz")
    with pytest.raises(hartsift.ArgumentError, match="format"):
        features.save(tmp_path / "f", format="xml")
    features.save(tmp_path / "f.hsf")
    with pytest.raises(hartsift.ArgumentError):
        hartsift.read_features(tmp_path / "f.hsf", max_features=10)


def test_hdf5(features, tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "features.h5"
    hartsift.write_hdf5(path, "db/1.jpg", features)
    hartsift.write_hdf5(path, "db/1.jpg", features)
    with h5py.File(path, "r") as file:
        group = file["db/1.jpg"]
        assert group["keypoints"].shape == (len(features), 2) and group["descriptors"].shape == (128, len(features))
        assert group["keypoints"][:].tobytes() == features.points.tobytes()
        assert np.allclose(np.linalg.norm(group["descriptors"][:], axis=0), 1, atol=1e-5)
        assert group["image_size"][:].tolist() == [320, 240]
        assert group["scores"][:].tobytes() == features.responses.tobytes()
    with pytest.raises(hartsift.ArgumentError):
        hartsift.write_hdf5(path, "x", hartsift.extract(SCENE, descriptor="none"))


def test_hdf5_names_what_is_not_installed(features, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ModuleNotFoundError, match="pip install h5py"):
        hartsift.write_hdf5(tmp_path / "features.h5", "a", features)


@pytest.mark.parametrize("descriptor", ["u8", "f32", "none"])
def test_digest_is_the_manifest_s(tmp_path, command, descriptor):
    (tmp_path / "list.txt").write_text(SCENE + "\n")
    command("batch", tmp_path / "list.txt", "-o", tmp_path / "out", "--descriptor", descriptor, "--format", "bin", "-q")
    rows = (tmp_path / "out" / "manifest.csv").read_text().splitlines()[3:]
    features = hartsift.extract(SCENE, descriptor=descriptor, device="cpu")
    assert [row.split(",")[4] for row in rows] == [features.digest]
    assert hartsift.read_features(tmp_path / "out" / "scene_320x240_5.hsf").digest == features.digest
    assert features[1:].digest != features.digest
    assert len({features[:0].digest, hartsift.Features.from_arrays(np.zeros((0, 2)))[:0].digest}) == 1


def test_origins(tmp_path):
    plain, root = (hartsift.extract("@scene:160x120:1", norm=norm, device="cpu") for norm in ("l2", "root"))
    assert plain.origin == hartsift.Origin(hartsift.METHOD_VERSION, "lowe", "l2")
    assert root.origin.norm == "root" and root[3:].origin == copy.copy(root).origin == pickle.loads(pickle.dumps(root)).origin
    with pytest.raises(hartsift.ArgumentError, match="norm l2 in the first list .*root in the second"):
        hartsift.match(plain, root)
    for ending in ("npz", "json", "yml", "hsf", "csv"):
        root.save(tmp_path / f"f.{ending}")
        read = hartsift.read_features(tmp_path / f"f.{ending}")
        assert read.origin == (None if ending == "csv" else root.origin)
        if read.origin is None:
            assert len(hartsift.match(plain, read)) >= 0
        else:
            with pytest.raises(hartsift.ArgumentError):
                hartsift.match(plain, read)
    swapped = hartsift.extract("@scene:160x120:1", layout="vlfeat", device="cpu")
    with pytest.raises(hartsift.ArgumentError, match="bin order"):
        hartsift.match(plain, swapped)
    swapped.save(tmp_path / "swapped.npz")
    assert hartsift.read_features(tmp_path / "swapped.npz") == plain
    made = hartsift.Features.from_arrays(root.keypoints, root.descriptors)
    assert made.origin is None
    made = hartsift.Features.from_arrays(root.keypoints, root.descriptors, origin=hartsift.Origin(2, "colmap", "root"))
    with pytest.raises(hartsift.ArgumentError):
        hartsift.match(plain, made)


def test_pooled_descriptors(tmp_path):
    plain, pooled = (hartsift.extract("@scene:160x120:1", norm="root", dsp=dsp, device="cpu") for dsp in (False, True))
    assert (plain.keypoints == pooled.keypoints).all() and (plain.descriptors != pooled.descriptors).any()
    assert pooled.origin == hartsift.Origin(hartsift.METHOD_VERSION, "lowe", "root", True)
    for ending in ("npz", "json", "yml", "hsf"):
        pooled.save(tmp_path / f"f.{ending}")
        assert hartsift.read_features(tmp_path / f"f.{ending}").origin == pooled.origin
    with pytest.raises(hartsift.ArgumentError, match="root in the first list .*root-dsp in the second.*option dsp"):
        hartsift.match(plain, pooled)
    few = hartsift.extract("@scene:160x120:1", norm="root", dsp=True, dsp_sizes=2, dsp_largest=1.5, device="cpu")
    assert (few.descriptors != pooled.descriptors).any() and len(hartsift.match(few, pooled)) > 0.9 * len(few)
    with pytest.raises(hartsift.ArgumentError, match="dsp_sizes is 17, expected 2..16"):
        hartsift.extract("@scene", dsp=True, dsp_sizes=17)
    with pytest.raises(hartsift.ArgumentError, match="dsp_largest is for dsp: expected dsp=True too"):
        hartsift.extract("@scene", dsp_largest=2)


def test_frames_of_affine_features(tmp_path):
    plain = hartsift.extract("@scene:160x120:1", device="cpu")
    found = hartsift.extract("@scene:160x120:1", affine=True)
    assert found.origin == hartsift.Origin(hartsift.METHOD_VERSION_AFFINE, "lowe", "l2") != plain.origin
    assert plain.frames is None and found.frames.shape == (len(found), 2, 2) and found.frames.dtype == np.float32
    axes = np.linalg.svd(found.frames, compute_uv=False)
    np.testing.assert_allclose(axes[:, 1], found.sigmas, rtol=1e-3)
    turns = np.arctan2(found.frames[:, 1, 0], found.frames[:, 0, 0]) - found.orientations
    assert np.abs(np.sin(turns)).max() < 1e-4
    for same in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found)), found[:]):
        assert same == found and same.frames.tobytes() == found.frames.tobytes()
    assert (found[3].frames == found.frames[3:4]).all()
    found.save(tmp_path / "f.npz")
    assert hartsift.read_features(tmp_path / "f.npz") == found
    assert np.load(tmp_path / "f.npz")["frames"].shape == (len(found), 4)
    arrays = dict(np.load(tmp_path / "f.npz"))
    np.savez(tmp_path / "g.npz", **dict(arrays, frames=arrays["frames"][:, [0, 1, 0, 1]]))
    with pytest.raises(hartsift.ArgumentError, match="feature 0: a frame has no inverse"):
        hartsift.read_features(tmp_path / "g.npz")
    for name in ("f.json", "f.hsf"):
        found.save(tmp_path / name)
        assert hartsift.read_features(tmp_path / name) == found
    found.save(tmp_path / "f.csv")
    assert hartsift.read_features(tmp_path / "f.csv").frames is None
    circles = hartsift.Features(found.records, found.descriptors, found.image_size)
    assert circles.digest != found.digest
    with pytest.raises(hartsift.ArgumentError, match="frames are"):
        hartsift.Features(found.records, found.descriptors, frames=found.frames[1:])


def test_packed_octaves_are_those_of_the_file(tmp_path):
    """The library and NumPy compute the written values with different logarithms; still no keypoint may differ."""
    for profile in ("opencv", "lowe"):
        features = hartsift.extract("@scene:500x400:2", profile=profile, descriptor="none", device="cpu")
        features.save(tmp_path / "f.yml")
        lines = re.findall(r"- \[ ([^]]*) \]", (tmp_path / "f.yml").read_text())
        packed = [int(line.split(",")[5]) for line in lines]
        assert len(packed) == len(features) > 1000
        assert packed == hartsift.to_cv_records(features)["octave"].tolist()
