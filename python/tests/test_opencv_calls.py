"""Every form of a call of python/OPENCV.md, by OpenCV and by hartsift: the results are equal or of the documented
kind."""

import pickle
import warnings

import numpy as np
import pytest

import hartsift
import opencv_calls

cv2 = pytest.importorskip("cv2")
if not hasattr(cv2, "SIFT_create") or not hasattr(cv2.SIFT_create(), "getNFeatures"):
    pytest.skip("this OpenCV has no SIFT, or one without these functions", allow_module_level=True)

VERSION = int(cv2.__version__.split(".")[0])
PARAMETERS = "NFeatures", "NOctaveLayers", "ContrastThreshold", "EdgeThreshold", "Sigma"


def parameters(sift):
    values = [getattr(sift, "get" + name)() for name in PARAMETERS]
    return [*(round(value, 6) for value in values), sift.descriptorType()]


@pytest.fixture(scope="module")
def names():
    image, other = (hartsift.load_image(f"@scene:240x180:{seed}").copy() for seed in (3, 4))
    mask = np.zeros_like(image)
    mask[:, 100:] = 255
    (kp, q), (kp2, t) = (cv2.SIFT_create().detectAndCompute(one, None) for one in (image, other))
    pairs = np.zeros((len(q), len(t)), np.uint8)
    pairs[:, :5] = 1
    pairs[3] = 0
    names = dict(image=image, other=other, mask=mask, kp=kp, kp2=kp2, q=q, t=t, pairs=pairs, few=t[:3].copy())
    names.update(flat=np.full((60, 60), 7, np.uint8), bgr=np.dstack([image, 255 - image, image // 2]), none=t[:0])
    names.update(q8=q.astype(np.uint8), t8=t.astype(np.uint8), U=cv2.UMat, K=cv2.KeyPoint, nan=float("nan"))
    return {**names, "np": np, "cv2": cv2, "parameters": parameters}


def play(library, call, names, folder):
    """The result of a call, or its exception."""
    *first, last = call.split("; ")
    local = {**names, "lib": library, "file": str(folder / f"{library.__name__}.yml")}
    local.update(sift=library.SIFT_create(), matcher=library.BFMatcher(cv2.NORM_L2), cross=library.BFMatcher(crossCheck=True))
    for statement in first:
        exec(statement, local)
    try:
        return eval(last, local)
    except Exception as error:
        return error


def kind(value):
    """In the form of the table."""
    if isinstance(value, Exception):
        return opencv_calls.ERROR
    if isinstance(value, cv2.UMat):
        return "empty UMat" if value.get() is None else f"UMat [N, {value.get().shape[1]}]"
    if isinstance(value, np.ndarray):
        return f"{value.dtype if value.any() else 'zeros'} [N, {value.shape[-1]}]"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if not isinstance(value, tuple):
        return type(value).__name__ if hasattr(value, "getNFeatures") else repr(value)
    if value and all(isinstance(one, cv2.KeyPoint) for one in value):
        return opencv_calls.KEYPOINTS
    if value and all(isinstance(one, cv2.DMatch) for one in value):
        return opencv_calls.MATCHES
    if len(value) > 2 or any(isinstance(one, tuple) and one and isinstance(one[0], cv2.DMatch) for one in value):
        assert all(isinstance(one, cv2.DMatch) for row in value for one in row)
        return opencv_calls.ROWS
    return f"({', '.join(map(kind, value))})"


def is_of(value, *types):
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], types)


def assert_equal(ours, theirs):
    assert type(ours) is type(theirs)
    if is_of(theirs, cv2.KeyPoint):
        assert_keypoints(ours, theirs)
    elif is_of(theirs, cv2.DMatch):
        assert [(m.queryIdx, m.trainIdx, m.imgIdx) for m in ours] == [(m.queryIdx, m.trainIdx, m.imgIdx) for m in theirs]
        np.testing.assert_allclose([m.distance for m in ours], [m.distance for m in theirs], rtol=1e-5)
    elif isinstance(theirs, cv2.UMat):
        assert_equal(ours.get(), theirs.get())
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype and ours.shape[1:] == theirs.shape[1:]
        assert abs(len(ours) - len(theirs)) <= 2 + len(theirs) // 50
    elif isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            assert_equal(one, other)
        if len(theirs) == 2 and is_of(theirs[0], cv2.KeyPoint):
            assert_described(ours, theirs)
    else:
        assert ours == theirs


def places(keypoints):
    return np.array([k.pt for k in keypoints])


def assert_keypoints(ours, theirs):
    """Equal keypoints if they were passed, else OpenCV's keypoints must be found by hartsift."""
    assert abs(len(ours) - len(theirs)) <= 2 + len(theirs) // 50
    a, b = places(ours), places(theirs)
    assert (np.hypot(*np.moveaxis(a[:, None] - b[None], -1, 0)).min(1) < 0.1).mean() > 0.94 or np.array_equal(a, b, True)


def assert_described(ours, theirs):
    """User keypoints have OpenCV's descriptors, or zeros where OpenCV has zeros."""
    (a, rows), (b, their_rows) = ours, theirs
    if not isinstance(rows, np.ndarray) or len(a) != len(b) or not np.array_equal(places(a), places(b), True):
        return
    assert len(rows) == len(a)
    assert np.abs(rows - their_rows).max() <= 6 and np.array_equal(rows.any(1), their_rows.any(1))


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:the image is None")
@pytest.mark.parametrize("form", [form for rows in opencv_calls.SECTIONS.values() for form in rows], ids=lambda f: f.call)
def test_form(names, tmp_path, form):
    if VERSION < form.least:
        pytest.skip(f"OpenCV {VERSION} refuses it")
    ours = play(hartsift, form.call, names, tmp_path)
    theirs = play(cv2, form.call, names, tmp_path)
    assert kind(theirs) == form.result
    assert kind(ours) == form.result, repr(ours)
    if form.result == opencv_calls.ERROR:
        assert isinstance(ours, hartsift.Error) and isinstance(ours, cv2.error) and str(ours)
        assert isinstance(ours, (TypeError, ValueError)) or isinstance(theirs, cv2.error)
    else:
        assert_equal(ours, theirs)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("form", opencv_calls.DIFFERENCES, ids=lambda f: f.call)
def test_difference(names, tmp_path, form):
    ours = play(hartsift, form.call, names, tmp_path)
    assert kind(ours).replace(",)", ")") == form.ours, repr(ours)
    if not opencv_calls.is_told(form):
        assert kind(play(cv2, form.call, names, tmp_path)) == form.theirs


def test_page_is_the_table():
    assert opencv_calls.PAGE.read_text(encoding="utf-8") == opencv_calls.page()


def test_page_has_every_method():
    """No method of OpenCV's classes is missing, here or in the table."""
    calls = " ".join(form.call for rows in opencv_calls.SECTIONS.values() for form in rows)
    calls += " ".join(form.call for form in opencv_calls.DIFFERENCES)
    for theirs, ours in ((cv2.SIFT, hartsift.SIFT), (cv2.BFMatcher, hartsift.BFMatcher)):
        for name in (name for name in dir(theirs) if not name.startswith("_")):
            assert hasattr(ours, name), name
            assert f".{name}(" in calls or f"get{name[3:]}" in calls or name[3:] in PARAMETERS, name


def test_either_takes_what_the_other_returns(names):
    image, flat = names["image"], names["flat"]
    for one, other in ((cv2, hartsift), (hartsift, cv2)):
        for picture in (image, flat, cv2.UMat(image), cv2.UMat(flat)):
            keypoints, descriptors = one.SIFT_create().detectAndCompute(picture, None)
            again, computed = other.SIFT_create().compute(picture, keypoints)
            assert places(again).tolist() == places(keypoints).tolist()
            for rows in (descriptors, computed):
                for method, numbers in (("match", ()), ("knnMatch", (2,)), ("radiusMatch", (250.0,))):
                    for maker in (one, other):
                        found = getattr(maker.BFMatcher(), method)(rows, names["t"], *numbers)
                        assert len(found) == len(keypoints)
        matcher = one.BFMatcher()
        matcher.add(list(other.BFMatcher().getTrainDescriptors()) + [names["t"]])
        copy = other.BFMatcher()
        copy.add(matcher.getTrainDescriptors())
        assert len(copy.match(names["q"])) == len(names["q"])


def test_output_arguments(names):
    """A fitting array receives the result, also a view; a UMat is filled."""
    image, kp = names["image"], names["kp"][:5]
    for library in (cv2, hartsift):
        sift = library.SIFT_create()
        room = np.zeros((9, 256), np.float32)
        expected = sift.compute(image, kp)[1]
        for given in (np.zeros((5, 128), np.float32), room[2:7, :128]):
            assert sift.compute(image, kp, given)[1] is given and np.array_equal(given, expected)
        for given in (np.zeros((4, 128), np.float32), np.zeros((5, 128), np.uint8)):
            assert sift.compute(image, kp, given)[1] is not given and not given.any()
        umat = cv2.UMat(np.zeros((5, 128), np.float32))
        assert np.array_equal(sift.compute(image, kp, umat)[1].get(), expected) and np.array_equal(umat.get(), expected)


def test_mask_selects_of_the_strongest(names):
    """As in OpenCV: nfeatures applies to the whole image."""
    sift = hartsift.SIFT(40)
    whole, inside = sift.detect(names["image"]), sift.detect(names["image"], names["mask"])
    expected = whole[np.floor(whole["pt"][:, 0] + 0.5) >= 100]
    assert 0 < len(inside) < 40 and inside.tobytes() == expected.tobytes()
    assert sift.detectAndCompute(names["image"], names["mask"])[0].tobytes() == expected.tobytes()


def test_an_image_that_is_none_is_warned_of(names):
    with pytest.warns(UserWarning, match="the image is None") as caught:
        assert hartsift.SIFT_create().detect(None) == ()
    assert caught[0].filename == __file__
    with pytest.raises(hartsift.ArgumentError, match="imread"):
        hartsift.SIFT_create().detectAndCompute(None, None)


def test_errors_are_those_of_both(names):
    with pytest.raises(cv2.error) as caught:
        hartsift.BFMatcher().match(names["q"], None)
    error = caught.value
    assert isinstance(error, hartsift.ArgumentError) and type(error).__name__ == "ArgumentError"
    assert "SIFT_create gives None" in str(error) and error.code == cv2.Error.StsBadArg and error.msg == str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error) and str(copy) == str(error)
    with pytest.raises(hartsift.ArgumentError, match="nOctaveLayers is 0, expected 1..8") as caught:
        hartsift.SIFT_create(nOctaveLayers=0)
    with pytest.raises(hartsift.ArrayTypeError, match="descriptors is str"):
        hartsift.BFMatcher().add("ab")


def test_matches_of_features(names):
    """hartsift's own features are accepted too."""
    a, b = hartsift.extract(names["image"]), hartsift.extract(names["other"])
    found = hartsift.BFMatcher().match(a, b)
    assert [(m.trainIdx, m.distance) for m in found] == hartsift.find_k_nearest(a, b, 1)[:, 0].tolist()
    matcher = hartsift.BFMatcher()
    matcher.add([b, a[:0], a])
    assert all(m.imgIdx == 2 and m.trainIdx == m.queryIdx and m.distance == 0 for m in matcher.match(a))


def test_nothing_is_warned_of(names):
    """Invalid sizes and positions cause no RuntimeWarning, in records either."""
    records = np.zeros(6, hartsift.CV_KEYPOINT_DTYPE)
    records["pt"], records["size"] = 50, [0, -1, np.nan, np.inf, 5, 1e-30]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        keypoints, descriptors = hartsift.SIFT().compute(names["image"], records)
        assert len(keypoints) == len(descriptors) == 6 and not descriptors[:4].any() and descriptors[4].any()
        assert len(hartsift.to_cv2(keypoints)) == 6
