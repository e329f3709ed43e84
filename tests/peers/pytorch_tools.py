"""hartsift.torch and hartsift.hloc inside hloc, LightGlue and kornia, and their conventions compared with pycolmap's
extractor.

usage: PYTHONPATH=python python3 tests/peers/pytorch_tools.py
Needs PyTorch, hloc, LightGlue, kornia, pycolmap and h5py, too large for the other tests, so it is run manually. A
missing package is a failure, not a skip.
"""
import pathlib
import struct
import tempfile
import unittest
import zlib

import numpy as np
import torch

import hartsift
import hartsift.torch

SIZE = (320, 240)


def pictures():
    """Returns two views of a scene, uint8. The second is 30 pixels further right and 20 further down."""
    scene = hartsift.render_scene(SIZE[0] + 30, SIZE[1] + 20, 5)
    return [np.ascontiguousarray(scene[y : y + SIZE[1], x : x + SIZE[0]]) for x, y in ((0, 0), (30, 20))]


def write_png(path, pixels):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    content = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + content)


def tensors():
    return [torch.from_numpy(one)[None, None] for one in pictures()]


class Hloc(unittest.TestCase):
    def test_files(self):
        """hloc's own programs run from pictures to matches: features with scores, and the exact matches."""
        import h5py
        from hloc import extract_features, match_features, pairs_from_exhaustive
        from hloc.utils.io import get_matches

        import hartsift.hloc

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "photos").mkdir()
            for i, one in enumerate(pictures()):
                write_png(folder / "photos" / f"{i}.png", one)
            conf = {**hartsift.hloc.EXTRACT, "model": {**hartsift.hloc.EXTRACT["model"], "max_features": 300}}
            features = extract_features.main(conf, folder / "photos", folder, as_half=False)
            pairs_from_exhaustive.main(folder / "pairs.txt", image_list=["0.png", "1.png"])
            matches = match_features.main(hartsift.hloc.MATCH, folder / "pairs.txt", conf["output"], folder)
            wanted = [
                hartsift.extract(one, norm="root", descriptor="f32", max_features=300) for one in pictures()
            ]
            with h5py.File(features) as file:
                for i, one in enumerate(wanted):
                    group = file[f"{i}.png"]
                    np.testing.assert_allclose(group["keypoints"], one.points, atol=1e-4)  # hloc adds and subtracts 0.5
                    np.testing.assert_array_equal(group["scores"], one.responses)
                    np.testing.assert_array_equal(group["scales"], one.sigmas)
                    np.testing.assert_allclose(group["oris"], np.rad2deg(one.orientations), rtol=1e-6)
                    np.testing.assert_array_equal(np.array(group["descriptors"]).T, one.descriptors)
            found, scores = get_matches(matches, "0.png", "1.png")
            exact = hartsift.match(*wanted)
            self.assertGreater(len(exact), 50)
            np.testing.assert_array_equal(found, exact.pairs)
            np.testing.assert_allclose(scores, 1 - exact.distances / exact.records["next_distance"], atol=1e-3)

    def test_matcher_beside_hlocs(self):
        """With equal settings, hloc's exact matcher finds the same pairs, up to ties from its rounding."""
        from hloc import matchers
        from hloc.utils.base_model import dynamic_load

        import hartsift.hloc  # noqa: F401

        sift = hartsift.torch.SIFT(norm="root")
        data = {f"descriptors{i}": sift(one)["descriptors"].transpose(1, 2) for i, one in enumerate(tensors())}
        theirs = dynamic_load(matchers, "nearest_neighbor")({"ratio_threshold": 0.8, "do_mutual_check": True})(data)["matches0"]
        mine = dynamic_load(matchers, "hartsift_matcher")({})(data)["matches0"]
        self.assertGreater(int((mine >= 0).sum()), 100)
        self.assertLessEqual(int((mine != theirs).sum()), 2)
        empty = {"descriptors0": data["descriptors0"], "descriptors1": torch.zeros(1, 128, 0)}
        self.assertTrue((dynamic_load(matchers, "hartsift_matcher")({})(empty)["matches0"] == -1).all())


class LightGlue(unittest.TestCase):
    def test_input(self):
        """LightGlue for SIFT accepts the dictionary. It runs without weights, so its matches mean nothing."""
        from lightglue import LightGlue

        torch.manual_seed(0)
        net = LightGlue(features=None, input_dim=128, add_scale_ori=True, depth_confidence=-1, width_confidence=-1).eval()
        sift = hartsift.torch.SIFT(profile="colmap", norm="root", max_features=200)
        found = [sift(one) for one in tensors()]
        with torch.no_grad():
            result = net({"image0": found[0], "image1": found[1]})
        self.assertEqual(tuple(result["matches0"].shape), (1, 200))
        self.assertTrue(torch.isfinite(result["matching_scores0"]).all())
        norms = found[0]["descriptors"].norm(dim=-1)
        self.assertLess(float((norms - 1).abs().max()), 1e-3)

    def test_conventions_are_those_of_pycolmap(self):
        """Position (minus 0.5), scale, orientation and descriptor equal those of COLMAP's extractor, on which the weights
        were trained."""
        import pycolmap

        picture = pictures()[0]
        options = pycolmap.FeatureExtractionOptions()
        options.use_gpu = False
        keypoints, descriptors = pycolmap.FeatureExtractor.create(options).extract(pycolmap.Bitmap.from_array(picture))
        theirs = keypoints if isinstance(keypoints, np.ndarray) else np.array(
            [(k.x, k.y, k.compute_scale(), k.compute_orientation()) for k in keypoints]
        )
        rows = np.asarray(getattr(descriptors, "data", descriptors)).astype(np.float32)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        mine = hartsift.torch.SIFT(profile="colmap", norm="root")(tensors()[0])
        mine = {name: value[0].numpy() for name, value in mine.items()}
        turn = np.abs((mine["oris"][:, None] - theirs[None, :, 3] + np.pi) % (2 * np.pi) - np.pi)
        near = np.linalg.norm(mine["keypoints"][:, None] - (theirs[None, :, :2] - 0.5), axis=2) + turn
        best = near.argmin(axis=1)
        same = near.min(axis=1) < 0.1
        self.assertGreater(same.mean(), 0.85)
        self.assertLess(np.median(np.abs(mine["scales"][same] / theirs[best[same], 2] - 1)), 0.01)
        self.assertGreater(np.median((mine["descriptors"][same] * rows[best[same]]).sum(axis=1)), 0.98)


class Kornia(unittest.TestCase):
    def test_frames(self):
        import kornia.feature

        found = hartsift.torch.SIFT(norm="root", max_features=200)(torch.cat(tensors()))
        lafs, responses, descriptors = hartsift.torch.LocalFeature(max_features=200)(torch.cat(tensors()))
        theirs = kornia.feature.laf_from_center_scale_ori(
            found["keypoints"], 6 * found["scales"][..., None, None], -torch.rad2deg(found["oris"])[..., None]
        )
        self.assertLess(float((lafs - theirs).abs().max()), 1e-3)
        self.assertTrue(torch.equal(responses, found["keypoint_scores"]))
        self.assertTrue(torch.equal(descriptors, found["descriptors"]))

    def test_matcher(self):
        """With these features kornia's matcher finds the shift between the views."""
        import kornia.feature

        local = hartsift.torch.LocalFeature(max_features=300)
        matcher = kornia.feature.LocalFeatureMatcher(local, kornia.feature.DescriptorMatcher("smnn", 0.8))
        first, second = (one.float() / 255 for one in tensors())
        found = matcher({"image0": first, "image1": second})
        shift = found["keypoints0"] - found["keypoints1"]
        self.assertGreater(len(shift), 50)
        self.assertLess(float((shift - torch.tensor([30.0, 20.0])).norm(dim=1).median()), 0.1)


if __name__ == "__main__":
    unittest.main()
