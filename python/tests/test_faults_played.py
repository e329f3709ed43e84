"""Replays inputs that once gave wrong results silently (../shared/data/faults, or faults in HARTSIFT_DATA): the results
must be those that their READMEs describe for the Python package. The command: tests/api/test_fault_folders.py."""

import os
import pathlib

import numpy as np
import pytest

import hartsift

DATA = pathlib.Path(os.environ.get("HARTSIFT_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))
FAULTS = DATA / "faults"
if not FAULTS.is_dir():
    pytest.skip("no folders of faults with the photographs beside the checkout; set HARTSIFT_DATA", allow_module_level=True)
cv2 = pytest.importorskip("cv2")

BORDER = FAULTS / "describe_near_right_border"


def gray(path):
    return cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)


def test_bfmatcher_none():
    some = hartsift.SIFT_create().detectAndCompute(gray(FAULTS / "cv2_dropin_arguments/a.png"), None)[1]
    none = hartsift.SIFT_create().detectAndCompute(np.full((200, 200), 127, np.uint8), None)[1]
    assert none is None
    for module in (cv2, hartsift):
        matcher = module.BFMatcher(cv2.NORM_L2)
        assert matcher.match(none, some) == matcher.knnMatch(none, some, 2) == matcher.radiusMatch(none, some, 100.0) == ()
    with pytest.raises(cv2.error, match="train"):
        hartsift.BFMatcher().match(some, None)


def test_cv2_dropin_arguments():
    picture = gray(FAULTS / "cv2_dropin_arguments/a.png")
    descriptors = cv2.SIFT_create().detectAndCompute(picture, None)[1]

    def played(module):
        sift, matcher = module.SIFT_create(), module.BFMatcher(cv2.NORM_L2)
        nothing = sift.detectAndCompute(picture * 0, None)[1]
        return [
            len(sift.detectAndCompute(picture, None, useProvidedKeypoints=False)[0]),
            len(sift.detectAndCompute(picture, None, None, False)[0]),
            len(sift.compute(picture, sift.detect(picture), None)[0]),
            len(sift.detect(cv2.UMat(picture))),
            matcher.knnMatch(nothing, descriptors, k=2),
            matcher.match(nothing, nothing),
            len(sift.compute(picture, [cv2.KeyPoint(50, 50, 0, 0, 1, 0)])[0]),
        ]

    assert played(hartsift) == played(cv2)


def described(picture, keypoints):
    """Number of keypoints returned with non-zero descriptors."""
    kept, descriptors = hartsift.SIFT_create().compute(picture, keypoints)
    assert len(kept) == len(descriptors)
    return int(descriptors.any(axis=1).sum())


@pytest.mark.parametrize("size", [32, 128])
def test_describe_near_right_border(size):
    picture = gray(BORDER / "odd.png")
    height, width = picture.shape
    grid = [cv2.KeyPoint(float(x), float(y), size, 0) for y in range(0, height, 4) for x in range(0, width, 4)]
    assert described(picture, grid) == len(grid) == 4332
    mirrored = np.ascontiguousarray(picture[:, ::-1])
    assert described(picture, [cv2.KeyPoint(6, 100, size, 0)]) == 1
    assert described(mirrored, [cv2.KeyPoint(width - 1 - 6, 100, size, 0)]) == 1


def test_masks(tmp_path, monkeypatch):
    """Masks that fit no image are an error. A mask with another ending than its image is found."""
    folder = FAULTS / "masks_colmap_rule"
    monkeypatch.chdir(folder / "images")
    names = ["IMG_1.jpg", "sub/IMG_2.jpg"]
    with hartsift.Extractor(device="cpu") as extractor:
        with pytest.raises(hartsift.Error, match="0 of 2"):
            list(extractor.extract_many(names, masks=tmp_path))
        with pytest.warns(UserWarning, match="1 of 2 images have a mask"):
            found = list(extractor.extract_many(names, masks=folder / "masks"))
        whole = [len(extractor.extract(name)) for name in names]
    assert 0 < len(found[0]) < whole[0] and len(found[1]) == whole[1]


def test_sixteen_bit_low_range():
    folder = FAULTS / "sixteen_bit_low_range"
    right = len(hartsift.extract(folder / "same_as_8bit.png"))
    assert abs(len(hartsift.extract(folder / "twelve_bit.tif")) - right) <= 3
    with pytest.warns(UserWarning, match="value_range"):
        assert len(hartsift.extract(folder / "thermal.tif")) == 0
    assert abs(len(hartsift.extract(folder / "thermal.tif", value_range=(7000, 7765))) - right) <= 3
