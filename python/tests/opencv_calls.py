"""The forms of calls of cv2.SIFT and cv2.BFMatcher, and the result of each; the source of python/OPENCV.md.

``python3 python/tests/opencv_calls.py`` writes the page; test_opencv_calls.py calls every form on both libraries.
"""

import pathlib
from typing import NamedTuple

PAGE = pathlib.Path(__file__).parents[1] / "OPENCV.md"

#: Meaning of the names in the calls. The forms also use: pictures `other` and `flat` (of one gray, without keypoints),
#: keypoints `kp2`, descriptors `q8` and `t8` in uint8, and `few` with three rows; `K` is `cv2.KeyPoint`, `nan` is
#: `float("nan")`; `parameters` returns the results of the functions `get...`.
NAMES = """`lib` is cv2 or hartsift, `sift` is `lib.SIFT_create()`, `matcher` is `lib.BFMatcher(cv2.NORM_L2)`, `cross` is
`lib.BFMatcher(crossCheck=True)`. `image` is a uint8 picture, `bgr` has three channels, `mask` the size of `image`. `kp` are keypoints of
cv2.SIFT, `q` and `t` descriptors (float32), `none` has no row, `pairs` is a mask [len(q), len(t)]. `U` is `cv2.UMat`, `file` a name ending in
.yml."""


class Form(NamedTuple):
    """A call, and the result that both libraries give; `least`: the lowest version of OpenCV that has the form."""

    call: str
    result: str
    least: int = 0


class Difference(NamedTuple):
    """A call whose result in hartsift differs on purpose. If `theirs` is in capital letters, OpenCV's side is not
    executed."""

    call: str
    theirs: str
    ours: str
    reason: str


KEYPOINTS, MATCHES, ROWS, ERROR = "keypoints", "matches", "rows of matches", "error"
LISTS = "(keypoints, keypoints)"
BOTH, NOTHING = "(keypoints, float32 [N, 128])", "((), None)"
UMATS, NO_UMAT = "(keypoints, UMat [N, 128])", "((), empty UMat)"
SEVERAL = f"({LISTS}, (float32 [N, 128], float32 [N, 128]))"


def forms(result, *calls, least=0):
    return [Form(call, result, least) for call in calls]


MAKING = [
    *forms(
        "0, 3, 0.04, 10.0, 1.6, 5",
        "parameters(lib.SIFT_create())",
        "parameters(lib.SIFT.create())",
        "parameters(lib.SIFT_create(None, None, None, None, None))",
        "parameters(lib.SIFT_create(nfeatures=None))",
        "parameters(lib.SIFT_create(0, 3, 0.04, 10, 1.6, False))",
        "parameters(lib.SIFT_create(0, 3, 0.04, 10, 1.6, enable_precise_upscale=True))",
    ),
    *forms(
        "5, 4, 0.03, 12.0, 1.5, 5",
        "parameters(lib.SIFT_create(5, 4, 0.03, 12, 1.5))",
        "parameters(lib.SIFT.create(np.int64(5), 4, np.float32(0.03), 12, 1.5))",
        "parameters(lib.SIFT_create(nfeatures=5, nOctaveLayers=4, contrastThreshold=0.03, edgeThreshold=12, sigma=1.5))",
    ),
    *forms(
        "0, 3, 0.04, 10.0, 1.6, 0",
        "parameters(lib.SIFT_create(0, 3, 0.04, 10, 1.6, descriptorType=cv2.CV_8U))",
        "parameters(lib.SIFT_create(0, 3, 0.04, 10, 1.6, cv2.CV_8U, False))",
    ),
    *forms("-5, 3, -1.0, 10.0, 1.6, 5", "parameters(lib.SIFT_create(-5, contrastThreshold=-1))"),
    *forms(
        ERROR,
        "lib.SIFT_create(5.0)",
        'lib.SIFT_create("5")',
        "lib.SIFT_create(True)",
        "lib.SIFT_create(sigma=True)",
        'lib.SIFT_create(sigma="1.6")',
        "lib.SIFT_create(wrong=1)",
        "lib.SIFT_create(0, 3, 0.04, 10, 1.6, cv2.CV_32F, False, 1)",
    ),
    *forms("7", "sift.setNFeatures(7); sift.getNFeatures()", "sift.setNFeatures(maxFeatures=7); sift.getNFeatures()"),
    *forms("-3", "sift.setNFeatures(-3); sift.getNFeatures()"),
    *forms("0", "sift.setNFeatures(None); sift.getNFeatures()"),
    *forms("4", "sift.setNOctaveLayers(nOctaveLayers=4); sift.getNOctaveLayers()"),
    *forms("0.05", "sift.setContrastThreshold(contrastThreshold=0.05); sift.getContrastThreshold()"),
    *forms("11.0", "sift.setEdgeThreshold(edgeThreshold=11); sift.getEdgeThreshold()"),
    *forms("1.5", "sift.setSigma(sigma=1.5); sift.getSigma()"),
    *forms(ERROR, "sift.setNFeatures(2.5)", 'sift.setNFeatures("2")', 'sift.setSigma("a")', "sift.setSigma()"),
    *forms("128", "sift.descriptorSize()"),
    *forms("5", "sift.descriptorType()"),
    *forms("4", "sift.defaultNorm()"),
    *forms("'Feature2D.SIFT'", "sift.getDefaultName()"),
    *forms("True", "sift.empty()", "isinstance(sift, lib.SIFT)"),
    *forms("None", "sift.clear()", "sift.write(file)", "sift.write(file); sift.read(file)"),
]

DETECT = [
    *forms(
        KEYPOINTS,
        "sift.detect(image)",
        "sift.detect(image, None)",
        "sift.detect(image, mask)",
        "sift.detect(image=image, mask=mask)",
        "sift.detect(image, mask[:, :, None])",
        "sift.detect(image, np.zeros((0, 0), np.uint8))",
        "sift.detect(image, U(mask))",
        "sift.detect(U(image))",
        "sift.detect(U(image), mask)",
        "sift.detect(U(image), U(mask))",
        "sift.detect(image[:, :, None])",
        "sift.detect(image[:, ::2])",
        "sift.detect(image[::-1])",
        "sift.detect(np.asfortranarray(image))",
        "sift.detect(bgr)",
        "sift.detect(np.dstack([bgr, image]))",
        "sift.setNFeatures(40); sift.detect(image, mask)",
    ),
    *forms(
        "()",
        "sift.detect(flat)",
        "sift.detect(image, np.zeros_like(mask))",
        "sift.detect(image[:1])",
        "sift.detect(image[:, :1])",
        "sift.detect(image[:1, :1])",
        "sift.detect(None)",
        "sift.detect(U())",
        "sift.detect(np.zeros((0, 0), np.uint8))",
        "sift.detect(np.array([]))",
        "sift.detect([])",
        "sift.detect(())",
    ),
    *forms(
        LISTS,
        "sift.detect([image, other])",
        "sift.detect((image, other))",
        "sift.detect(images=[image, other])",
        "sift.detect([image, other], None)",
        "sift.detect([image, other], [])",
        "sift.detect([image, other], [mask, mask])",
        "sift.detect([image, other], masks=[mask, mask])",
        "sift.detect(images=[image, other], masks=[mask, mask])",
        "sift.detect([image, other], [None, mask])",
        "sift.detect([image, other], [np.array([]), mask])",
        "sift.detect([image, U(other)])",
        "sift.detect([U(image), U(other)], [U(mask), U(mask)])",
    ),
    *forms("(keypoints, ())", "sift.detect([image, None])", "sift.detect([image, flat])"),
    *forms(
        ERROR,
        "sift.detect()",
        "sift.detect(image, None, None)",
        "sift.detect(image, image=image)",
        "sift.detect(image, keypoints=None)",
        "sift.detect(image, mask.astype(np.float32))",
        "sift.detect(image, np.dstack([mask, mask, mask]))",
        "sift.detect(image, 3)",
        "sift.detect([image, other], [mask])",
        "sift.detect([[image]])",
        "sift.detect(image.astype(np.float32))",
        "sift.detect(image.astype(np.int8))",
        "sift.detect(image > 9)",
        "sift.detect(image.tolist())",
        "sift.detect(3)",
    ),
]

DETECT_AND_COMPUTE = [
    *forms(
        BOTH,
        "sift.detectAndCompute(image, None)",
        "sift.detectAndCompute(image, mask)",
        "sift.detectAndCompute(image=image, mask=None)",
        "sift.detectAndCompute(image, mask, None)",
        "sift.detectAndCompute(image, None, None, False)",
        "sift.detectAndCompute(image, None, None, None)",
        "sift.detectAndCompute(image, None, None, 0)",
        "sift.detectAndCompute(image, None, None, np.False_)",
        "sift.detectAndCompute(image, None, descriptors=None)",
        "sift.detectAndCompute(image, None, useProvidedKeypoints=False)",
        "sift.detectAndCompute(image, None, descriptors=None, useProvidedKeypoints=False)",
        "sift.detectAndCompute(image, None, np.zeros((3, 7)))",
        "sift.detectAndCompute(image, None, 0)",
        "sift.setNFeatures(40); sift.detectAndCompute(image, mask)",
    ),
    *forms(
        UMATS,
        "sift.detectAndCompute(U(image), None)",
        "sift.detectAndCompute(U(image), U(mask))",
        "sift.detectAndCompute(image, U(mask))",
        "sift.detectAndCompute(image, None, U(np.zeros((3, 128), np.float32)))",
    ),
    *forms(
        NOTHING,
        "sift.detectAndCompute(flat, None)",
        "sift.detectAndCompute(image, None, None, True)",
        "sift.detectAndCompute(image, None, useProvidedKeypoints=True)",
    ),
    *forms(NO_UMAT, "sift.detectAndCompute(U(flat), None)"),
    *forms(
        ERROR,
        "sift.detectAndCompute()",
        "sift.detectAndCompute(None, None)",
        "sift.detectAndCompute(U(), None)",
        "sift.detectAndCompute(np.array([]), None)",
        "sift.detectAndCompute([image, other], None)",
        'sift.detectAndCompute(image, None, "x")',
        'sift.detectAndCompute(image, None, None, "x")',
        "sift.detectAndCompute(image, None, None, False, 1)",
    ),
]

COMPUTE = [
    *forms(
        BOTH,
        "sift.compute(image, kp)",
        "sift.compute(image, list(kp))",
        "sift.compute(image, np.array(kp))",
        "sift.compute(image, kp[:1])",
        "sift.compute(image, kp, None)",
        "sift.compute(image, kp, np.zeros((3, 128), np.float32))",
        "sift.compute(image=image, keypoints=kp, descriptors=None)",
        "sift.compute(bgr, kp)",
    ),
    *forms(UMATS, "sift.compute(U(image), kp)", "sift.compute(image, kp, U(np.zeros((3, 128), np.float32)))"),
    *forms(NOTHING, "sift.compute(image, None)", "sift.compute(image, [])", "sift.compute(image, ())", "sift.compute(None, [])"),
    *forms(NO_UMAT, "sift.compute(U(image), [])"),
    *forms("(keypoints, None)", "sift.compute(None, kp)", "sift.compute(np.array([]), kp)"),
    # Keypoints without a descriptor: returned at their positions, with zeros.
    *forms(
        "(keypoints, zeros [N, 128])",
        "sift.compute(image, [K(50, 50, 0)])",
        "sift.compute(image, [K(50, 50, 0, 0, 1, 0)])",
        "sift.compute(image, [K(50, 50, -3)])",
        "sift.compute(image, [K(50, 50, nan)])",
        'sift.compute(image, [K(50, 50, float("inf"))])',
        "sift.compute(image, [K(nan, 50, 5)])",
        "sift.compute(image, [K(50, 50, 5, nan)])",
        'sift.compute(image, [K(50, 50, 5, float("inf"))])',
        "sift.compute(image, [K(-50, 50, 5)])",
        "sift.compute(image, [K(5000, 50, 5)])",
        "sift.compute(image, [K()])",
    ),
    *forms(BOTH, "sift.compute(image, [K(50, 50, 0), *kp[:3], K(-50, 50, 5)])", "sift.compute(image, [kp[0]] * 3)"),
    *forms(
        SEVERAL,
        "sift.compute([image, other], [kp, kp2])",
        "sift.compute((image, other), (kp, kp2))",
        "sift.compute(images=[image, other], keypoints=[kp, kp2])",
        "sift.compute([image, other], [kp, kp2], None)",
        "sift.compute([image, other], [kp, kp2], [])",
    ),
    *forms(f"({LISTS}, (UMat [N, 128], UMat [N, 128]))", "sift.compute([U(image), U(other)], [kp, kp2])"),
    *forms("(((), keypoints), (None, float32 [N, 128]))", "sift.compute([image, other], [[], kp])", "sift.compute([image, other], [None, kp])"),
    *forms("((), ())", "sift.compute([], [])"),
    *forms(
        ERROR,
        "sift.compute(image)",
        "sift.compute(image, kp[0])",
        "sift.compute(image, [1, 2])",
        'sift.compute(image, "ab")',
        "sift.compute(image, 0)",
        "sift.compute([image, other], [kp])",
        "sift.compute([image, other], None)",
        "sift.compute(image.astype(np.float32), kp)",
        "sift.compute(image, [K(50, 50, 5, 0, 1, 7 << 8)])",
        "sift.compute(image, [K(50, 50, 5, 0, 1, -1)])",
        "sift.compute(image, [K(50, 50, 5, 0, 1, 254 | 1 << 8)])",
    ),
]

MATCH = [
    *forms(
        MATCHES,
        "matcher.match(q, t)",
        "matcher.match(q8, t8)",
        "matcher.match(queryDescriptors=q, trainDescriptors=t)",
        "matcher.match(q, t, None)",
        "matcher.match(q, t, pairs)",
        "matcher.match(q, t, mask=pairs)",
        "matcher.match(q, t, U(pairs))",
        "matcher.match(U(q), U(t))",
        "matcher.match(q, U(t))",
        "matcher.match(q[::2], t[::-1])",
        "matcher.match(np.asfortranarray(q), t)",
        "matcher.match(q[:, :64], t[:, :64])",
        "matcher.match(q / 512, t / 512)",
        "matcher.match(np.where(np.arange(len(q))[:, None] == 1, np.float32(nan), q), t)",
        "cross.match(q, t)",
        "lib.BFMatcher(None, None).match(q, t)",
        "lib.BFMatcher(normType=cv2.NORM_L2, crossCheck=False).match(q, t)",
        "lib.BFMatcher_create(cv2.NORM_L2, True).match(q, t)",
        "lib.BFMatcher.create(cv2.NORM_L2, crossCheck=1).match(q, t)",
        "lib.BFMatcher(cv2.NORM_L1).match(q, t)",
        "lib.BFMatcher(cv2.NORM_L2SQR).match(q, t)",
        "lib.BFMatcher(cv2.NORM_HAMMING).match(q8, t8)",
    ),
    *forms(MATCHES, "matcher.match(q[0], t)", "matcher.add(t[:4]); matcher.match(q)", least=5),
    *forms(
        "()",
        "matcher.match(None, t)",
        "matcher.match(None, None)",
        "matcher.match(none, t)",
        "matcher.match(q, none)",
        "matcher.match(none, none)",
        "matcher.match(np.array([]), t)",
        "matcher.match(U(), t)",
        "matcher.match(q)",
        "matcher.match(None)",
        "matcher.match(q, t, pairs * 0)",
        "cross.match(None, t)",
        "cross.match(none, t)",
    ),
    *forms(
        ROWS,
        "matcher.knnMatch(q, t, 2)",
        "matcher.knnMatch(q, t, k=2)",
        "matcher.knnMatch(queryDescriptors=q, trainDescriptors=t, k=2)",
        "matcher.knnMatch(q, t, np.int64(2))",
        "matcher.knnMatch(q, t, 2, None, False)",
        "matcher.knnMatch(q, t, 2, None, True)",
        "matcher.knnMatch(q, t, 2, pairs)",
        "matcher.knnMatch(q, t, 2, pairs, True)",
        "matcher.knnMatch(q, t, 2, mask=pairs, compactResult=True)",
        "matcher.knnMatch(q, few, 5)",
        "matcher.knnMatch(q, few[:1], 2)",
        "matcher.knnMatch(q[:3], t, 2000)",
        "matcher.knnMatch(q[:3], np.tile(t, (4, 1)), 1500)",
        "matcher.knnMatch(q, none, 2)",
        "matcher.knnMatch(U(q), t, 2)",
        "cross.knnMatch(q, t, 1)",
        "cross.knnMatch(q, t, k=1, compactResult=True)",
    ),
    *forms(
        "()",
        "matcher.knnMatch(None, t, 2)",
        "matcher.knnMatch(None, t, k=2)",
        "matcher.knnMatch(None, None, 2)",
        "matcher.knnMatch(none, t, 2)",
        "matcher.knnMatch(q, k=2)",
        "matcher.knnMatch(q, 2)",
        "matcher.knnMatch(q, t, 2, pairs * 0, True)",
        "matcher.knnMatch(q, none, 2, None, True)",
        "cross.knnMatch(None, t, 2)",
    ),
    *forms(
        ROWS,
        "matcher.radiusMatch(q, t, 300)",
        "matcher.radiusMatch(q, t, maxDistance=300.5)",
        "matcher.radiusMatch(q, t, 300, None)",
        "matcher.radiusMatch(q, t, 300, pairs)",
        "matcher.radiusMatch(q, t, 300, None, False)",
        'matcher.radiusMatch(q[:3], t, float("inf"))',
        "matcher.radiusMatch(q, none, 300)",
        "matcher.radiusMatch(U(q), U(t), 300)",
        "cross.radiusMatch(q, t, 300)",
    ),
    *forms(
        "()",
        "matcher.radiusMatch(None, t, 300)",
        "matcher.radiusMatch(None, None, 300)",
        "matcher.radiusMatch(none, t, 300)",
        "matcher.radiusMatch(q, 300)",
        "matcher.radiusMatch(q, maxDistance=300)",
    ),
    *forms(
        ERROR,
        "matcher.match()",
        "matcher.match(q, None)",
        "cross.match(q, None)",
        "matcher.match(q, U())",
        "matcher.match(q8, t)",
        "matcher.match(q, t8)",
        "matcher.match(q.astype(np.float64), t.astype(np.float64))",
        "matcher.match(q.astype(np.int32), t.astype(np.int32))",
        "matcher.match(q, t[:, :64])",
        "matcher.match(q[None], t)",
        "matcher.match(q.tolist(), t)",
        "matcher.match([q], t)",
        'matcher.match("a", "b")',
        "matcher.match(1, 2)",
        "matcher.match(q, t, pairs[:3])",
        "matcher.match(q, t, pairs.astype(np.float32))",
        "cross.match(q, t, pairs)",
        "matcher.knnMatch(q, t)",
        "matcher.knnMatch(q, t, 0)",
        "matcher.knnMatch(q, t, -1)",
        "matcher.knnMatch(q, t, None)",
        "matcher.knnMatch(q, t, 2.0)",
        "matcher.knnMatch(q, t, True)",
        'matcher.knnMatch(q, t, "2")',
        "matcher.knnMatch(q, None, 2)",
        "cross.knnMatch(q, t, 2)",
        "matcher.radiusMatch(q, t)",
        "matcher.radiusMatch(q, t, 0)",
        "matcher.radiusMatch(q, t, -1)",
        "matcher.radiusMatch(q, t, nan)",
        "matcher.radiusMatch(q, t, None)",
        'matcher.radiusMatch(q, t, "3")',
        "matcher.radiusMatch(q, None, 300)",
        'lib.BFMatcher("x")',
        'lib.BFMatcher(4, "x")',
        "lib.BFMatcher(4, False, 1)",
        "lib.BFMatcher(99).match(q, t)",
        "lib.BFMatcher(cv2.NORM_HAMMING).match(q, t)",
    ),
]

ADDED = [
    *forms(
        MATCHES,
        "matcher.add([t]); matcher.match(q)",
        "matcher.add([t, q]); matcher.match(q)",
        "matcher.add((t, q)); matcher.match(queryDescriptors=q)",
        "matcher.add(descriptors=[t]); matcher.add([q]); matcher.match(q)",
        "matcher.add([U(t)]); matcher.match(q)",
        "matcher.add([t]); matcher.match(U(q))",
        "matcher.add([t8]); matcher.match(q8)",
        "matcher.add([t]); matcher.train(); matcher.match(q)",
        "matcher.add([t]); matcher.match(q, q)",
        "matcher.add([t]); matcher.match(q, [pairs])",
        "matcher.add([t, t]); matcher.match(q, masks=[pairs, None])",
        "matcher.add([t]); matcher.match(q, masks=None)",
        "matcher.add([t]); matcher.clone().match(q)",
        "cross.add([t]); cross.match(q)",
    ),
    *forms(
        ROWS,
        "matcher.add([t, q]); matcher.knnMatch(q, 2)",
        "matcher.add([t, q]); matcher.knnMatch(q, k=3)",
        "matcher.add([t, q]); matcher.knnMatch(q, 2, masks=None, compactResult=True)",
        "matcher.add([t, t]); matcher.knnMatch(q, 2, [pairs, pairs])",
        "matcher.add([t, t]); matcher.knnMatch(q, 2, [pairs, pairs], True)",
        "matcher.add([t, q]); matcher.radiusMatch(q, 150)",
        "matcher.add([t, q]); matcher.radiusMatch(q, maxDistance=150)",
        "matcher.add([t, t]); matcher.radiusMatch(q, 400, [pairs, pairs])",
        "cross.add([t]); cross.knnMatch(q, 1)",
    ),
    *forms(
        "()",
        "matcher.add([t]); matcher.match(None)",
        "matcher.add([none]); matcher.match(q)",
        "matcher.add([t]); matcher.clear(); matcher.match(q)",
        "matcher.add([t]); matcher.knnMatch(None, 2)",
        "matcher.getTrainDescriptors()",
        "matcher.add([]); matcher.getTrainDescriptors()",
        "matcher.add([t]); matcher.clone(True).getTrainDescriptors()",
        "matcher.add([t]); matcher.clone(emptyTrainData=True).getTrainDescriptors()",
    ),
    *forms("(float32 [N, 128], float32 [N, 128])", "matcher.add([t]); matcher.add([q]); matcher.getTrainDescriptors()"),
    *forms("(float32 [N, 128], None)", "matcher.add([t, None]); matcher.getTrainDescriptors()"),
    *forms("None", "matcher.add([t])", "matcher.add(None)", "matcher.add([])", "matcher.add([None])", "matcher.train()", "matcher.clear()"),
    *forms(
        "True",
        "matcher.empty()",
        "matcher.add([]); matcher.empty()",
        "matcher.add([t]); matcher.clear(); matcher.empty()",
        "matcher.isMaskSupported()",
        "cross.isMaskSupported()",
        "matcher.add([t]); matcher.getTrainDescriptors()[0] is t",
    ),
    *forms("False", "matcher.add([t]); matcher.empty()", "matcher.add([none]); matcher.empty()", "matcher.add([t]); matcher.clone().empty()"),
    *forms("'my_object'", "matcher.getDefaultName()"),
    *forms("None", "matcher.write(file)", "matcher.save(file)", "matcher.write(file); matcher.read(file)"),
    *forms(
        ERROR,
        "matcher.add(U(t))",
        'matcher.add("ab")',
        "matcher.add([[1, 2]])",
        "matcher.add([t]); matcher.match(q, None)",
        "matcher.add([t, None]); matcher.match(q)",
        "matcher.add([t, t8]); matcher.match(q)",
        "matcher.add([t, t[:, :64]]); matcher.match(q)",
        "matcher.add([t, t]); matcher.match(q, [pairs])",
        "matcher.add([t]); matcher.match(q, mask=pairs)",
        "matcher.match(q, t, masks=None, mask=3)",
        "cross.add([t, q]); cross.match(q)",
    ),
]

DIFFERENCES = [
    Difference("sift.detectAndCompute(image)", ERROR, BOTH, "the mask may be left out"),
    Difference("sift.detect(image, mask > 0)", ERROR, KEYPOINTS, "masks may be bool"),
    Difference("matcher.match(q, t, pairs > 0)", ERROR, MATCHES, "masks may be bool"),
    Difference("sift.compute(image, iter(kp))", ERROR, BOTH, "keypoints may come one by one"),
    Difference("sift.detect(image, mask[:10])", "READS BEYOND THE MASK", ERROR, "a mask has the image's size"),
    Difference("matcher.match(q, t, np.zeros((0, 0), np.uint8))", "READS BEYOND THE MASK", MATCHES, "an empty mask is none"),
    Difference("sift.detect(np.dstack([bgr, bgr]))", KEYPOINTS, ERROR, "images have 1 to 4 channels"),
    Difference("sift.compute(image, [None])", BOTH.replace("float32", "zeros"), ERROR, "None is no keypoint"),
    Difference("sift.setNOctaveLayers(0)", "None", ERROR, "what no image could be worked on with is refused at once"),
    Difference("lib.SIFT_create(sigma=0.3)", "SIFT", ERROR, "sigma is 0.8 to 4"),
    Difference("lib.SIFT_create(edgeThreshold=0)", "SIFT", ERROR, "edgeThreshold is 1 to 1000"),
    Difference(
        "lib.SIFT_create(0, 3, 0.04, 10, 1.6, cv2.CV_8U).descriptorType()",
        "5",
        "0",
        "a sixth number is the type of descriptors, as in C++; OpenCV's Python takes it for enable_precise_upscale",
    ),
    Difference("lib.SIFT_create(descriptorType=cv2.CV_8U).descriptorType()", ERROR, "0", "any argument may stand alone"),
    Difference("sift.save(file)", ERROR, "None", "OpenCV refuses its own name of the class as a key"),
    Difference('sift.read("absent.yml")', "None", ERROR, "a file that is missing is an error"),
    Difference("cross.match(q, none)", ERROR, "()", "nothing to match is no error"),
    Difference("cross.add([none]); cross.match(q)", ERROR, "()", "nothing to match is no error"),
    Difference(
        "len(matcher.radiusMatch(q[:3], q[:1], 9, None, True))", "3", "1", "OpenCV moves the rows and keeps their number"
    ),
    Difference(
        "matcher.add([t[:1], q[:1]]); len(matcher.knnMatch(q, 5)[0])",
        "1",
        "2",
        "OpenCV finds no more than the smallest image has",
    ),
    Difference("matcher.add([U(t)]); matcher.getTrainDescriptors()", "()", "(float32 [N, 128])", "OpenCV leaves them out"),
    Difference("matcher.add([t]); matcher.knnMatch(q, 2, None)", ERROR, ROWS, "masks may be None by position too"),
    Difference("isinstance(sift, cv2.Feature2D)", "True", "False", "C++ code that wants a Feature2D: hartsift_opencv.hpp"),
]

SECTIONS = {
    "Parameters": MAKING,
    "detect": DETECT,
    "detectAndCompute": DETECT_AND_COMPUTE,
    "compute": COMPUTE,
    "BFMatcher with train descriptors": MATCH,
    "BFMatcher with descriptors that were added": ADDED,
}

_HEAD = f"""# Calls of cv2.SIFT and cv2.BFMatcher

`hartsift.SIFT_create()` and `hartsift.BFMatcher()` take OpenCV's calls in every form: {sum(map(len, SECTIONS.values()))} forms give what OpenCV gives
(types, shapes, numbers, matches one by one). `tests/opencv_calls.py` lists them: {", ".join(SECTIONS)}. `tests/test_opencv_calls.py` calls
each on both libraries.

- `detect` gives a tuple of `cv2.KeyPoint`, `match` of `cv2.DMatch`, `knnMatch` and `radiusMatch` tuples of such tuples. A keypoint that cannot be
  described is returned with a row of zeros.
- Where OpenCV raises `cv2.error` or `TypeError`, hartsift raises a `hartsift.Error` with its reason, which is a `ValueError` or `TypeError` too,
  and a `cv2.error`: `except cv2.error` catches it.
- An array given for `descriptors` is filled and returned if its shape and type fit, else a new one is returned.
- An image that is `None` has no keypoints in `detect` and `compute`, with a warning; `detectAndCompute` refuses it.
- The order of keypoints is hartsift's; `nfeatures` is exact, where OpenCV keeps all that are as strong as the last. Keypoints of other detectors
  (packed octave without a layer) are described at the level nearest to their size. Of equal distances the lower index comes first.

## Where they differ

On purpose; also tested. {NAMES}

| call | OpenCV | hartsift | why |
|---|---|---|---|
"""


def is_told(difference):
    """True if OpenCV's side is described in words, because it cannot be executed."""
    return difference.theirs.isupper() and " " in difference.theirs


def _cell(text):
    return "`" + text.replace("|", "\\|") + "`"


def page():
    """The text of python/OPENCV.md."""
    rows = [f"| {_cell(row.call)} | {row.theirs.lower() if is_told(row) else row.theirs} | {row.ours} | {row.reason} |" for row in DIFFERENCES]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
