"""Scenes with true cameras, and errors of estimated cameras and matches against them.

A scene is a folder of pictures. intrinsics.txt has, after a comment, width height fx fy cx cy [k1 k2 p1 p2 k3]; the
top-left pixel's centre is (0.5, 0.5). poses.txt has a line an image: its name and cam_from_world [R|t] row by row, or
its name, a time, the camera's position and its rotation to the world as qx qy qz qw (layout of the TUM data sets). Both
files may be missing.
A folder written by make_collection, with images/ and cameras.txt, is a scene too.
"""
import dataclasses
import itertools
import pathlib

import numpy as np

SUFFIXES = {".jpg", ".jpeg", ".png", ".pgm", ".ppm"}


@dataclasses.dataclass
class Camera:
    matrix: np.ndarray  # 3 x 3
    distortion: np.ndarray  # k1 k2 p1 p2 k3


@dataclasses.dataclass
class Scene:
    name: str
    folder: pathlib.Path  # folder of the pictures
    images: list  # file names
    poses: dict  # name -> cam_from_world, 3 x 4
    cameras: dict  # name -> Camera

    @property
    def one_camera(self):
        return len({tuple(camera.matrix.flat) for camera in self.cameras.values()}) <= 1


def rotation_of(*quaternion):
    x, y, z, w = np.array(quaternion) / np.linalg.norm(quaternion)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def rows_of(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def read_pose(fields):
    if len(fields) == 13:
        return np.array(fields[1:], float).reshape(3, 4)
    position, turn = np.array(fields[2:5], float), rotation_of(*map(float, fields[5:9])).T
    return np.c_[turn, -turn @ position]


def calibration(fx, fy, cx, cy):
    return np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])


def pictures_in(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix.lower() in SUFFIXES) if folder.is_dir() else []


def read_collection(folder):
    """Returns a scene from the output of make_collection."""
    scene = Scene(folder.name, folder / "images", pictures_in(folder / "images"), {}, {})
    for name, _, _, focal, cx, cy, *values in rows_of(folder / "cameras.txt"):
        rotation, centre = np.array(values[:9], float).reshape(3, 3), np.array(values[9:], float)
        scene.poses[name] = np.c_[rotation, -rotation @ centre]
        scene.cameras[name] = Camera(calibration(float(focal), float(focal), float(cx) + 0.5, float(cy) + 0.5), np.zeros(5))
    return scene


def read_scene(folder):
    folder = pathlib.Path(folder)
    if (folder / "cameras.txt").exists():
        return read_collection(folder)
    scene = Scene(folder.name, folder, pictures_in(folder), {}, {})
    scene.poses = {fields[0]: read_pose(fields) for fields in rows_of(folder / "poses.txt")}
    for fields in rows_of(folder / "intrinsics.txt")[:1]:
        _, _, fx, fy, cx, cy, *terms = map(float, fields)
        scene.cameras = dict.fromkeys(scene.images, Camera(calibration(fx, fy, cx, cy), np.array(terms or [0.0] * 5)))
    return scene


def rays(camera, points):
    """Returns directions of pixels in the camera's frame, with third component 1."""
    distorted = (points - camera.matrix[:2, 2]) / camera.matrix[[0, 1], [0, 1]]
    k1, k2, p1, p2, k3 = camera.distortion
    x, y = distorted.T
    for _ in range(20 if camera.distortion.any() else 0):
        r = x * x + y * y
        radial = 1 + r * (k1 + r * (k2 + r * k3))
        x = (distorted[:, 0] - 2 * p1 * x * y - p2 * (r + 2 * x * x)) / radial
        y = (distorted[:, 1] - p1 * (r + 2 * y * y) - 2 * p2 * x * y) / radial
    return np.c_[x, y, np.ones(len(points))]


def epipolar_errors(scene, a, b, points_a, points_b):
    """Returns two values for each match between the images a and b: the larger of its distances from the true epipolar
    lines in pixels, and whether the point is in front of both cameras."""
    rotation = scene.poses[b][:, :3] @ scene.poses[a][:, :3].T
    x, y, z = translation = scene.poses[b][:, 3] - rotation @ scene.poses[a][:, 3]
    essential = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ rotation
    u, v = rays(scene.cameras[a], points_a), rays(scene.cameras[b], points_b)
    lines_b, lines_a = u @ essential.T, v @ essential
    pixels = [np.hypot(*lines.T[:2]) / scene.cameras[name].matrix[0, 0] for name, lines in ((a, lines_a), (b, lines_b))]
    errors = np.abs((v * lines_b).sum(1)) / np.maximum(np.minimum(*pixels), 1e-300)
    # Signs of the depths at the points where the rays are closest. Parallel rays meet at infinity, in front.
    u = u @ rotation.T
    cross = np.cross(u, v)
    norm = (cross * cross).sum(1)
    behind = (np.cross(v, cross) @ translation > 0) | (np.cross(u, cross) @ translation > 0)
    return errors, (norm < 1e-8) | ~behind


def centre(pose):
    return -pose[:, :3].T @ pose[:, 3]


def position_error(found, truth):
    """Compares estimated positions with true ones in the same order. Returns the root mean square distance after the
    best similarity transform, and the largest distance between true positions."""
    p, q = np.array(found), np.array(truth)
    size = max(np.linalg.norm(a - b) for a, b in itertools.combinations(q, 2))
    p, q = p - p.mean(0), q - q.mean(0)
    u, s, vt = np.linalg.svd(q.T @ p)
    signs = np.array([1, 1, np.sign(np.linalg.det(u @ vt))])
    aligned = (s * signs).sum() / (p * p).sum() * p @ (u * signs @ vt).T
    return float(np.sqrt(((aligned - q) ** 2).sum(1).mean())), float(size)


def pose_errors(found, truth):
    """Compares estimated poses with true ones by name. Returns median and 90th percentile of the angles between
    relative rotations in degrees, and the error of the positions in the truth's unit and in % of the largest distance
    between true cameras."""
    names = sorted(set(found) & set(truth))
    if len(names) < 3:
        return None
    angles = []
    for a, b in itertools.combinations(names, 2):
        turn, right = (p[a][:, :3] @ p[b][:, :3].T for p in (found, truth))
        # The chord is exact for small angles, where the trace loses digits.
        angles.append(np.degrees(2 * np.arcsin(min(1.0, np.linalg.norm(turn - right) / np.sqrt(8)))))
    error, size = position_error(*([centre(poses[name]) for name in names] for poses in (found, truth)))
    return {"rotation_deg": float(np.median(angles)), "rotation_deg_90": float(np.quantile(angles, 0.9)), "position": error,
            "position_percent": 100 * error / size}
