"""Public pictures with known geometry: their files, pairs and truth. Pixel centres have whole coordinates."""
import dataclasses
import functools
import hashlib
import itertools
import pathlib
import re

import cv2
import numpy as np

FILES = pathlib.Path(__file__).resolve().parent / "files.txt"
OXFORD = "kozinove/opencv_extra/testdata/cv/detectors_descriptors_evaluation/images_datasets"
SUPERGLUE = "magicleap/SuperGluePretrainedNetwork/assets"
REICHSTAG = "borglab/gtsfm/tests/data/imb_reichstag"
STRECHA = "openMVG/SfM_quality_evaluation/Benchmarking_Camera_Calibration_2008"
SCENES = ("fountain-P11", "Herz-Jesus-P8")
QUARTER = 4  # Strecha's pictures are reduced to a quarter of their width and height
VIEW_SIDE, VIEW_PICTURES, OVERSAMPLING, TURNED_SCALE = 640, 8, 3, 1.7
NIGHT_PHOTONS, NIGHT_READ_NOISE, BLUR_SIGMA = 4, 1.0, 4.0
SCANNET_SIZE = (640, 480)


@dataclasses.dataclass
class Pair:
    group: str  # set of pictures, with its own tables
    scene: str
    first: str  # names of pictures
    second: str
    homography: np.ndarray = None  # first to second picture
    cameras: tuple = ()  # calibration matrices
    pose: np.ndarray = None  # second_from_first, 3 x 4


@dataclasses.dataclass
class Group:
    pairs: list
    read: dict  # name -> function that returns the picture, 8 bit, blue green red
    poses: dict = dataclasses.field(default_factory=dict)  # scene -> {name: (calibration, cam_from_world)}
    kept: dict = dataclasses.field(default_factory=dict)  # name -> picture, read once for all rows

    def picture(self, name):
        if name not in self.kept:
            self.kept[name] = self.read[name]()
        return self.kept[name]


def listed_files():
    """Returns {path: SHA-256 digest}; a path begins with the owner and name of its repository."""
    lines = [line.split(maxsplit=1) for line in FILES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {path: digest for digest, path in lines}


def listed_in(folder, part):
    """Returns paths of the listed files and folders directly in a part of the folder. Others may be there too, such as those that
    a file manager makes."""
    return sorted({folder / part / path[len(part) + 1:].split("/")[0] for path in listed_files() if path.startswith(part + "/")})


def check_files(folder):
    """Returns what is wrong with the files in a folder: missing ones and those with another digest."""
    faults = []
    for path, digest in listed_files().items():
        file = pathlib.Path(folder) / path
        if not file.is_file():
            faults.append(f"missing: {path}")
        elif hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            faults.append(f"other bytes than listed: {path}")
    return faults


def picture(path, size=None):
    found = cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    return found if size is None else cv2.resize(found, size, interpolation=cv2.INTER_AREA)


def scaled(matrix, x, y):
    """Returns a calibration matrix, whose first pixel's centre is (0.5, 0.5), for a picture resized by factors x and y, whose
    first pixel's centre is (0, 0)."""
    return np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]]) @ np.diag([x, y, 1.0]) @ matrix


def relative(first, second):
    """Returns second_from_first of two cam_from_world."""
    rotation = second[:, :3] @ first[:, :3].T
    return np.c_[rotation, second[:, 3] - rotation @ first[:, 3]]


def oxford(folder):
    group = Group([], {})
    for scene in listed_in(folder, OXFORD):
        for number in range(1, 7):
            group.read[f"{scene.name}/{number}"] = functools.partial(picture, scene / f"img{number}.png")
        for number in range(2, 7):
            text = (scene / f"H1to{number}p.xml").read_text(encoding="utf-8")
            values = re.search(r"<data>(.*?)</data>", text, re.DOTALL)[1].split()
            group.pairs.append(Pair("oxford", scene.name, f"{scene.name}/1", f"{scene.name}/{number}",
                                    np.array(values, float).reshape(3, 3)))
    return group


# ------------------------------------------------------------------ views made here

def moved_corners(random, width, height):
    """Returns a homography that moves each corner outwards by up to a quarter of the sides, so that nothing outside is seen."""
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    outwards = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * random.uniform(0, 0.25, (4, 2)) * (width, height)
    return cv2.getPerspectiveTransform(corners, (corners + outwards).astype(np.float32))


def turned(angle, scale, width, height):
    rotation = cv2.getRotationMatrix2D((width / 2, height / 2), angle, scale)
    return np.vstack([rotation, (0, 0, 1)])


def warped(image, homography, width, height):
    """Returns the picture seen through a homography, sampled at several points of each pixel and averaged."""
    fine = np.array([[OVERSAMPLING, 0, (OVERSAMPLING - 1) / 2], [0, OVERSAMPLING, (OVERSAMPLING - 1) / 2], [0, 0, 1]])
    seen = cv2.warpPerspective(image, fine @ homography, (width * OVERSAMPLING, height * OVERSAMPLING), flags=cv2.INTER_CUBIC)
    return cv2.resize(seen, (width, height), interpolation=cv2.INTER_AREA)


def at_night(image, random):
    """Returns the picture as few photons show it: shot noise, read noise, and an exposure that is corrected afterwards."""
    photons = random.poisson((image / 255.0) ** 2.2 * NIGHT_PHOTONS) + random.normal(0, NIGHT_READ_NOISE, image.shape)
    return np.round(255 * np.clip(photons / NIGHT_PHOTONS, 0, 1) ** (1 / 2.2)).astype(np.uint8)


def view_size(path):
    """Returns the width and height of a photograph reduced to VIEW_SIDE."""
    height, width = picture(path).shape[:2]
    return tuple(round(side * VIEW_SIDE / max(height, width)) for side in (width, height))


def view_homography(kind, seed, width, height):
    random = np.random.default_rng(seed)
    if kind in ("reduced", "blur"):
        return np.eye(3)
    return turned(random.uniform(30, 150), TURNED_SCALE, width, height) if kind == "turned" else moved_corners(random, width, height)


def view(path, kind, seed):
    """Returns a view of a photograph, from all its pixels."""
    size = view_size(path)
    if kind == "reduced":
        return picture(path, size)
    if kind == "blur":
        return cv2.GaussianBlur(picture(path, size), (0, 0), BLUR_SIGMA)
    image = picture(path)
    x, y = size[0] / image.shape[1], size[1] / image.shape[0]
    reduced = np.array([[x, 0, (x - 1) / 2], [0, y, (y - 1) / 2], [0, 0, 1]])
    seen = warped(image, view_homography(kind, seed, *size) @ reduced, *size)
    return at_night(seen, np.random.default_rng(seed + 1)) if kind == "night" else seen


def view_groups(folder, name, kinds):
    group = Group([], {})
    for number, path in enumerate(listed_in(folder, SUPERGLUE + "/phototourism_sample_images")[:VIEW_PICTURES]):
        first = f"{path.stem}/reduced"
        group.read[first] = functools.partial(view, path, "reduced", 0)
        for kind in kinds:
            second, seed = f"{path.stem}/{kind}", 10 * number + len(kind)
            group.read[second] = functools.partial(view, path, kind, seed)
            group.pairs.append(Pair(name, path.stem, first, second, view_homography(kind, seed, *view_size(path))))
    return group


# ------------------------------------------------------------------ pictures with true cameras

def scannet(folder):
    group = Group([], {})
    for line in (folder / SUPERGLUE / "scannet_sample_pairs_with_gt.txt").read_text(encoding="utf-8").splitlines():
        first, second, _, _, *values = line.split()
        numbers = np.array(values, float)
        for name in (first, second):
            group.read[name] = functools.partial(picture, folder / SUPERGLUE / "scannet_sample_images" / name, SCANNET_SIZE)
        height, width = picture(folder / SUPERGLUE / "scannet_sample_images" / first).shape[:2]
        factors = SCANNET_SIZE[0] / width, SCANNET_SIZE[1] / height
        cameras = tuple(scaled(numbers[k:k + 9].reshape(3, 3), *factors) for k in (0, 9))
        group.pairs.append(Pair("scannet", first[:9], first, second, None, cameras, numbers[18:34].reshape(4, 4)[:3]))
    return group


def reichstag(folder):
    import h5py  # pylint: disable=import-outside-toplevel

    group, cameras = Group([], {}), {}
    for path in listed_in(folder, REICHSTAG + "/images"):
        group.read[path.stem] = functools.partial(picture, path)
        with h5py.File(folder / REICHSTAG / "calibration" / f"calibration_{path.stem}.h5") as file:
            cameras[path.stem] = scaled(file["K"][()], 1, 1), np.c_[file["R"][()], file["T"][()].reshape(3)]
    for key in np.load(folder / REICHSTAG / "new-vis-pairs" / "keys-th-0.1.npy", allow_pickle=False):
        first, second = key.split("-")
        matrices = cameras[first][0], cameras[second][0]
        group.pairs.append(Pair("reichstag", "reichstag", first, second, None, matrices, relative(cameras[first][1], cameras[second][1])))
    return group


def strecha(folder):
    group = Group([], {})
    for scene in SCENES:
        cameras = group.poses.setdefault(scene, {})
        for path in listed_in(folder, f"{STRECHA}/{scene}/images"):
            text = (folder / STRECHA / scene / "gt_dense_cameras" / f"{path.name}.camera").read_text(encoding="utf-8")
            numbers = np.array(text.split(), float)
            rotation = numbers[12:21].reshape(3, 3).T
            matrix = scaled(numbers[:9].reshape(3, 3), 1 / QUARTER, 1 / QUARTER)
            cameras[f"{scene}/{path.name}"] = matrix, np.c_[rotation, -rotation @ numbers[21:24]]
            size = int(numbers[24]) // QUARTER, int(numbers[25]) // QUARTER
            group.read[f"{scene}/{path.name}"] = functools.partial(picture, path, size)
        for first, second in itertools.combinations(cameras, 2):
            matrices = cameras[first][0], cameras[second][0]
            group.pairs.append(Pair("strecha", scene, first, second, None, matrices, relative(cameras[first][1], cameras[second][1])))
    return group


GROUPS = {
    "oxford": oxford, "reichstag": reichstag, "scannet": scannet, "strecha": strecha,
    "views": lambda folder: view_groups(folder, "views", ("corners", "other corners", "turned")),
    "night": lambda folder: view_groups(folder, "night", ("night",)),
    "blur": lambda folder: view_groups(folder, "blur", ("blur",)),
}
