"""hartsift.SIFT instead of cv2.SIFT_create: results compared with OpenCV's, and OpenCV's own feature matching
program."""

import pickle
import sys

import numpy as np
import pytest

import hartsift

cv2 = pytest.importorskip("cv2")
if not hasattr(cv2, "SIFT_create"):
    pytest.skip("this OpenCV has no SIFT", allow_module_level=True)


@pytest.fixture(scope="module")
def scene():
    return hartsift.load_image("@scene:400x300:3")


@pytest.fixture(scope="module")
def turned(scene):
    """The scene rotated by 20 degrees, and the homography from the scene to it."""
    matrix = np.vstack([cv2.getRotationMatrix2D((200, 150), 20, 0.9), [0, 0, 1]])
    return cv2.warpPerspective(scene, matrix, (400, 300)), matrix


def partner_share(ours, theirs):
    """Share of our keypoints with one of theirs within 0.1 px, 1 % of size and 1 degree."""
    a = np.array([(*k.pt, k.size, k.angle) for k in ours])
    b = np.array([(*k.pt, k.size, k.angle) for k in theirs])
    close = np.hypot(*(a[:, None, i] - b[None, :, i] for i in (0, 1))) < 0.1
    close &= np.abs(a[:, None, 2] / b[None, :, 2] - 1) < 0.01
    close &= np.abs((a[:, None, 3] - b[None, :, 3] + 180) % 360 - 180) < 1
    return close.any(axis=1).mean()


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"nOctaveLayers": 4, "contrastThreshold": 0.02},
        {"sigma": 1.3},
        {"edgeThreshold": 5},
        {"enable_precise_upscale": True},
    ],
)
def test_keypoints_are_those_of_opencv(scene, parameters):
    try:
        theirs = cv2.SIFT_create(**parameters).detect(scene, None)
    except (TypeError, cv2.error):
        pytest.skip("this OpenCV does not know the parameter")
    ours = hartsift.SIFT(**parameters).detect(scene, None, as_cv2=True)
    assert len(ours) > 300
    assert partner_share(ours, theirs) > 0.97 and partner_share(theirs, ours) > 0.97


def test_as_cv2_is_what_opencv_returns(scene):
    keypoints, descriptors = hartsift.SIFT(as_cv2=True).detectAndCompute(scene, None)
    theirs, their_descriptors = cv2.SIFT_create().detectAndCompute(scene, None)
    assert type(keypoints) is type(theirs) and type(keypoints[0]) is cv2.KeyPoint
    assert descriptors.dtype == their_descriptors.dtype and descriptors.shape == (len(keypoints), 128)
    by_place = {tuple(np.round(k.pt, 1)) + (round(k.angle),): k for k in theirs}
    same = [(k, by_place.get(tuple(np.round(k.pt, 1)) + (round(k.angle),))) for k in keypoints]
    pairs = [(a, b) for a, b in same if b is not None]
    assert len(pairs) > 0.9 * len(keypoints)
    # Octave and layer equal; the offset between layers to one step of its 255.
    assert all((a.octave & 0xFFFF) == (b.octave & 0xFFFF) for a, b in pairs)
    assert np.mean([abs((a.octave >> 16) - (b.octave >> 16)) <= 1 for a, b in pairs]) > 0.99
    assert all(abs(a.response - b.response) < 1e-4 and a.class_id == b.class_id for a, b in pairs)
    empty = np.full((50, 50), 7, np.uint8)
    assert hartsift.SIFT(as_cv2=True).detectAndCompute(empty, None) == cv2.SIFT_create().detectAndCompute(empty, None)
    assert hartsift.SIFT().detectAndCompute(empty, None)[1].shape == (0, 128)


def as_tuple(keypoint):
    return keypoint.pt, keypoint.size, keypoint.angle, keypoint.response, keypoint.octave, keypoint.class_id


@pytest.mark.parametrize("create", [hartsift.SIFT_create, hartsift.SIFT.create])
def test_opencvs_names_behave_as_opencvs(scene, create):
    keypoints, descriptors = create(nfeatures=50).detectAndCompute(scene, None)
    assert type(keypoints) is tuple and all(type(k) is cv2.KeyPoint for k in keypoints)
    records, expected = create(nfeatures=50, as_cv2=False).detectAndCompute(scene, None)
    assert [as_tuple(k) for k in keypoints] == [as_tuple(r) for r in records]
    assert descriptors.tobytes() == expected.tobytes() and 1 not in records["size"]
    assert create().detectAndCompute(np.full((50, 50), 7, np.uint8), None) == ((), None)
    with pytest.raises(TypeError):
        create(no_such_option=1)


def test_records_are_read_like_keypoints(scene):
    records = hartsift.SIFT(nfeatures=20).detect(scene)
    sizes = records["size"].tolist()
    for part in (records, records[:], records[::-1][::-1], records[np.arange(20)], pickle.loads(pickle.dumps(records))):
        assert isinstance(part[3], hartsift.CvKeypoint) and [k.size for k in part] == sizes
        assert part[3].pt == tuple(part["pt"][3].tolist()) and part["pt"].tolist() == part.pt.tolist()
    assert len(records) == records.size == 20
    records[0].size, records[0].pt = 9, (3, 4)
    assert records["size"][0] == 9 and records[0].pt == (3, 4)


def test_keypoints_in_any_array_become_opencvs():
    given = np.zeros(3, hartsift.CV_KEYPOINT_DTYPE)
    given["pt"], given["class_id"], given["octave"] = [[1, 2], [3, 4], [5, 6]], [7, -1, 8], [255, 511, 66047]
    assert [as_tuple(k) for k in hartsift.to_cv2(given)] == [as_tuple(r) for r in given]
    assert hartsift.to_cv2(given[:0]) == ()


@pytest.mark.parametrize("dtype", [bool, np.uint16, np.int16, np.int32, np.float32, np.float64])
def test_arrays_that_opencvs_sift_refuses_are_refused(scene, dtype):
    picture = (scene > 128) if dtype is bool else scene.astype(dtype)
    with pytest.raises((cv2.error, TypeError)):
        cv2.SIFT_create().detect(picture, None)
    sift = hartsift.SIFT()
    for call in (
        lambda: sift.detect(picture),
        lambda: sift.detectAndCompute(picture, None),
        lambda: sift.compute(picture, []),
        lambda: sift.detect([scene, picture]),
    ):
        with pytest.raises(hartsift.ArrayTypeError, match="uint8 only"):
            call()


def test_without_opencv_the_remedy_is_said(scene, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match="as_cv2=False"):
        hartsift.SIFT_create().detect(scene)


def test_compute_of_opencvs_keypoints(scene):
    theirs, expected = cv2.SIFT_create().detectAndCompute(scene, None)
    keypoints, descriptors = hartsift.SIFT().compute(scene, theirs)
    assert isinstance(keypoints[0], cv2.KeyPoint) and len(keypoints) == len(theirs)
    assert [(k.pt, k.octave, k.angle) for k in keypoints] == [(k.pt, k.octave, k.angle) for k in theirs]
    assert np.abs(descriptors - expected).max() <= 6 and np.abs(descriptors - expected).mean() < 0.01


def test_opencv_computes_ours(scene):
    ours, expected = hartsift.SIFT(as_cv2=True).detectAndCompute(scene, None)
    keypoints, descriptors = cv2.SIFT_create().compute(scene, ours)
    assert len(keypoints) == len(ours)
    assert np.abs(descriptors - expected).max() <= 6 and np.abs(descriptors - expected).mean() < 0.01


def test_compute_after_detect_gives_the_same_bytes(scene):
    sift = hartsift.SIFT(nfeatures=200)
    keypoints, descriptors = sift.detectAndCompute(scene, None)
    assert len(keypoints) == 200
    detected = sift.detect(scene)
    again, computed = sift.compute(scene, detected)
    assert detected.tobytes() == keypoints.tobytes() == again.tobytes()
    assert computed.tobytes() == descriptors.tobytes()
    chosen = keypoints[::-5]
    assert sift.compute(scene, chosen)[1].tobytes() == descriptors[::-5].tobytes()
    as_cv2 = sift.detect(scene, as_cv2=True)
    assert np.abs(sift.compute(scene, as_cv2)[1] - descriptors).max() <= 2


def test_the_command_gives_the_same_bytes(scene, command, tmp_path):
    command("extract", "@scene:400x300:3", "--profile", "opencv", "--quiet", "-o", tmp_path / "f.npz")
    keypoints, descriptors = hartsift.SIFT().detectAndCompute(scene, None)
    with np.load(tmp_path / "f.npz") as stored:
        assert stored["descriptors"].tobytes() == descriptors.tobytes()
        assert stored["keypoints"][:, :2].tobytes() == keypoints["pt"].tobytes()
    command(
        "extract", "@scene:400x300:3", "--profile", "opencv", "--format", "opencv", "--quiet", "-o", tmp_path / "f.yml"
    )
    storage = cv2.FileStorage(str(tmp_path / "f.yml"), cv2.FILE_STORAGE_READ)
    octaves = [int(storage.getNode("keypoints").at(i).at(5).real()) for i in range(len(keypoints))]
    assert octaves == keypoints["octave"].tolist()


def test_keypoints_of_another_detector(scene):
    corners = cv2.FastFeatureDetector_create(40).detect(scene, None)
    far = cv2.KeyPoint(-200, 150, 10)
    keypoints, descriptors = hartsift.SIFT().compute(scene, [*corners, far])
    assert [k.pt for k in keypoints] == [k.pt for k in (*corners, far)] and len(descriptors) == len(keypoints)
    keypoints, descriptors = keypoints[:-1], descriptors[:-1]
    assert all((k.octave >> 8) & 255 for k in keypoints)  # the level that was used
    assert (np.linalg.norm(descriptors, axis=1) > 0).mean() > 0.99
    assert hartsift.SIFT().compute(scene, [])[1].shape == (0, 128)
    with pytest.raises(hartsift.ArrayTypeError, match="KeyPoints"):
        hartsift.SIFT().compute(scene, np.zeros((3, 4)))


def match_flann(a, b):
    return cv2.FlannBasedMatcher({"algorithm": 1, "trees": 5}, {"checks": 50}).knnMatch(a, b, k=2)


def match_brute_force(a, b):
    return cv2.BFMatcher(cv2.NORM_L2).knnMatch(a, b, k=2)


@pytest.mark.parametrize("as_cv2", [False, True])
@pytest.mark.parametrize("knn_match", [match_brute_force, match_flann])
def test_flow_of_feature_matching(scene, turned, knn_match, as_cv2):
    picture, truth = turned
    sift = hartsift.SIFT(as_cv2=as_cv2)
    kp1, des1 = sift.detectAndCompute(scene, None)
    kp2, des2 = sift.detectAndCompute(picture, None)
    good = [m for m, n in knn_match(des1, des2) if m.distance < 0.7 * n.distance]
    assert len(good) > 100
    src = np.float32([kp1[m.queryIdx].pt for m in good]).reshape(-1, 1, 2)
    dst = np.float32([kp2[m.trainIdx].pt for m in good]).reshape(-1, 1, 2)
    found, mask = cv2.findHomography(src, dst, cv2.RANSAC, 3.0)
    assert mask.mean() > 0.8
    corners = np.float32([[0, 0], [399, 0], [399, 299], [0, 299]]).reshape(-1, 1, 2)
    error = cv2.perspectiveTransform(corners, found) - cv2.perspectiveTransform(corners, truth)
    assert np.abs(error).max() < 1.5
    if not as_cv2:
        kp1, kp2 = hartsift.to_cv2(kp1), hartsift.to_cv2(kp2)
    drawn = cv2.drawMatches(scene, kp1, picture, kp2, good, None, matchesMask=mask.ravel().tolist())
    assert drawn.shape == (300, 800, 3)
    assert cv2.drawKeypoints(scene, kp1, None, flags=cv2.DRAW_MATCHES_FLAGS_DRAW_RICH_KEYPOINTS).shape == (300, 400, 3)


def test_colour_is_bgr_as_in_opencv(scene):
    colour = cv2.merge([scene, 255 - scene, scene // 2])
    ours = hartsift.SIFT().detect(colour, as_cv2=True)
    assert partner_share(ours, cv2.SIFT_create().detect(colour, None)) > 0.97


def test_masks_and_lists(scene):
    mask = np.zeros(scene.shape, np.uint8)
    mask[:, 200:] = 255
    sift = hartsift.SIFT()
    inside = sift.detect(scene, mask)
    assert 0 < len(inside) and (inside["pt"][:, 0] >= 199.5).all()
    several = sift.detect([scene, scene], [None, mask])
    assert len(several) == 2 and several[1].tobytes() == inside.tobytes()
    keypoints, descriptors = sift.compute([scene, scene], several)
    assert descriptors[1].tobytes() == sift.compute(scene, inside)[1].tobytes() and len(keypoints) == 2
    with pytest.raises(ValueError):
        sift.detect([scene, scene], [mask])


def test_parameters(scene):
    sift = hartsift.SIFT_create(100, 4, 0.03, 12, 1.5, cv2.CV_8U, as_cv2=False)
    theirs = cv2.SIFT_create(100, 4, 0.03, 12, 1.5, cv2.CV_8U)
    assert sift.getNFeatures() == 100 and sift.getNOctaveLayers() == 4 and sift.getContrastThreshold() == 0.03
    assert sift.getEdgeThreshold() == 12 and sift.getSigma() == 1.5
    assert sift.descriptorType() == cv2.CV_8U and hartsift.SIFT().descriptorType() == cv2.CV_32F
    for name in ("descriptorSize", "defaultNorm", "getDefaultName"):
        assert getattr(sift, name)() == getattr(theirs, name)(), name
    keypoints, descriptors = sift.detectAndCompute(scene, None)
    assert descriptors.dtype == np.uint8 and len(keypoints) == 100
    sift.setNFeatures(0)
    sift.setContrastThreshold(0.06)
    sift.setEdgeThreshold(8)
    sift.setNOctaveLayers(3)
    sift.setSigma(1.6)
    changed = sift.detect(scene)
    same = hartsift.SIFT.create(0, 3, 0.06, 8, 1.6, cv2.CV_8U, as_cv2=False)
    assert same.detect(scene).tobytes() == changed.tobytes()
    assert (
        hartsift.SIFT(0, 3, 0.04, 10, 1.6, True).detect(scene).tobytes()
        == hartsift.SIFT(enable_precise_upscale=True).detect(scene).tobytes()
    )
    with pytest.raises(hartsift.ArgumentError, match="descriptorType"):
        hartsift.SIFT(descriptorType=6)
    with pytest.raises(hartsift.ArgumentError, match="nOctaveLayers is 0"):
        hartsift.SIFT(nOctaveLayers=0)
    with pytest.raises(hartsift.Error, match="None"):
        hartsift.SIFT().detectAndCompute(None)


def test_matches_as_opencv_takes_them(scene, turned):
    a, b = hartsift.extract(scene), hartsift.extract(turned[0])
    matches = hartsift.match(a, b)
    drawn = cv2.drawMatches(scene, hartsift.to_cv2(a), turned[0], hartsift.to_cv2(b), matches.to_cv2(), None)
    assert drawn.shape == (300, 800, 3)
    brute = cv2.BFMatcher(cv2.NORM_L2).knnMatch(a.descriptors.astype(np.float32), b.descriptors.astype(np.float32), k=2)
    kept = {(m.queryIdx, m.trainIdx) for m, n in brute if m.distance < 0.8 * n.distance}
    ours = hartsift.match(a, b, mutual=False)
    assert {(int(i), int(j)) for i, j in ours.pairs} == kept


def test_umat_and_none_in_the_package_s_own_functions(scene):
    a = hartsift.extract(cv2.UMat(scene), cv2.UMat(np.full(scene.shape, 255, np.uint8)))
    assert a == hartsift.extract(scene)
    rows = a.descriptors.astype(np.float32)
    assert len(hartsift.match(cv2.UMat(rows), rows, mutual=False)) == len(hartsift.match(rows, rows, mutual=False)) > 0
    with pytest.raises(hartsift.ArgumentError, match="empty cv2.UMat"):
        hartsift.extract(cv2.UMat())
    none = hartsift.SIFT_create().detectAndCompute(np.full((50, 50), 7, np.uint8), None)[1]
    for call in (hartsift.match, lambda a, b: hartsift.find_k_nearest(a, b, 2), lambda a, b: hartsift.find_within(a, b, 9)):
        for pair in ((none, rows), (rows, none)):
            with pytest.raises(hartsift.ArrayTypeError, match="SIFT_create gives that for an image without keypoints"):
                call(*pair)


# ---- parameters in files of OpenCV's FileStorage


def test_parameters_without_opencv(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "cv2", None)
    for call in (hartsift.SIFT().write, hartsift.SIFT().read):
        with pytest.raises(ImportError, match="opencv-python"):
            call(str(tmp_path / "f.yml"))


PARAMETERS = ("getNFeatures", "getNOctaveLayers", "getContrastThreshold", "getEdgeThreshold", "getSigma")


def parameters(sift):
    return [getattr(sift, name)() for name in PARAMETERS] + [sift.descriptorType()]


@pytest.mark.parametrize("ending", [".yml", ".xml", ".json"])
def test_parameters_go_both_ways(tmp_path, ending):
    cv2 = pytest.importorskip("cv2")
    settings = dict(nOctaveLayers=4, contrastThreshold=0.03, edgeThreshold=12, sigma=1.5, descriptorType=cv2.CV_8U)
    theirs, ours = cv2.SIFT_create(500, **settings), hartsift.SIFT_create(500, **settings)
    storage = cv2.FileStorage(str(tmp_path / ("theirs" + ending)), cv2.FILE_STORAGE_WRITE)
    theirs.write(storage, "sift")
    storage.release()
    storage = cv2.FileStorage(str(tmp_path / ("ours" + ending)), cv2.FILE_STORAGE_WRITE)
    ours.write(storage, "sift")
    storage.release()
    written = (tmp_path / ("ours" + ending)).read_text()
    expected = (tmp_path / ("theirs" + ending)).read_text()
    if "nfeatures" not in expected:
        pytest.skip("this OpenCV writes no parameters of SIFT")
    assert written == expected
    ours.write(tmp_path / ("own" + ending))
    for reader in (hartsift.SIFT_create(), cv2.SIFT_create()):
        storage = cv2.FileStorage(str(tmp_path / ("ours" + ending)), cv2.FILE_STORAGE_READ)
        reader.read(storage.getNode("sift"))
        storage.release()
        assert parameters(reader) == parameters(theirs)
    reader = hartsift.SIFT_create()
    reader.read(str(tmp_path / ("own" + ending)))
    assert parameters(reader) == parameters(ours)


def test_parameters_that_are_missing_or_wrong(tmp_path):
    pytest.importorskip("cv2")
    sift = hartsift.SIFT_create(7, sigma=1.7, enable_precise_upscale=True)
    sift.write(tmp_path / "all.yml")
    other = hartsift.SIFT_create()
    other.read(tmp_path / "all.yml")
    assert other._settings == sift._settings
    (tmp_path / "some.yml").write_text("%YAML:1.0\n---\nedgeThreshold: 12.\n")
    sift.read(tmp_path / "some.yml")
    assert sift.getEdgeThreshold() == 12 and sift.getNFeatures() == 7
    (tmp_path / "wrong.yml").write_text("%YAML:1.0\n---\nnfeatures: 9\nsigma: 99.\n")
    with pytest.raises(hartsift.Error, match="sigma"):
        sift.read(tmp_path / "wrong.yml")
    assert sift.getNFeatures() == 7
    (tmp_path / "text.yml").write_text('%YAML:1.0\n---\nsigma: "large"\n')
    with pytest.raises(hartsift.ArgumentError, match="sigma is no number"):
        sift.read(tmp_path / "text.yml")
    with pytest.raises(hartsift.FileError, match="cannot be read"):
        sift.read(tmp_path / "absent.yml")
    (tmp_path / "table.csv").write_text("x,y\n1,2\n")
    with pytest.raises(hartsift.FileError, match="no FileStorage"):
        sift.read(tmp_path / "table.csv")
    (tmp_path / "list.json").write_text("[]")
    try:
        sift.read(tmp_path / "list.json")  # some versions of OpenCV take it for an empty map
    except hartsift.FileError as error:
        assert "list" in str(error) or "no FileStorage" in str(error)
    for text in ("nfeatures: .nan", "nOctaveLayers: 3.7", "descriptorType: .inf"):
        (tmp_path / "whole.yml").write_text(f"%YAML:1.0\n---\n{text}\n")
        with pytest.raises(hartsift.ArgumentError, match="whole number"):
            sift.read(tmp_path / "whole.yml")
    whole = hartsift.SIFT_create(edgeThreshold=10)
    (tmp_path / "edge.yml").write_text("%YAML:1.0\n---\nedgeThreshold: 12.5\n")
    whole.read(tmp_path / "edge.yml")
    assert whole.getEdgeThreshold() == 12.5
