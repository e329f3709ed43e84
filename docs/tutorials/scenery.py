"""Photographs for the tutorials: OpenCV's, and those of a rendered courtyard where the true cameras must be known.

The courtyard has walls, ground and boxes covered with pictures that hartsift renders. The world is in metres, z is up.
"""
import pathlib
from typing import List, NamedTuple, Tuple

import numpy as np

import hartsift

HERE = pathlib.Path(__file__).resolve().parent
PHOTOS = (HERE, HERE.parents[1] / "pipeline/examples/photos")  # downloaded next to this file, or a checkout
SKY = np.array([[206, 222, 236], [128, 170, 214]], float)  # at the horizon, overhead
SUN = np.array([0.36, -0.48, 0.8])
PALETTES = (  # from dark to light
    ((38, 30, 40), (122, 62, 58), (206, 140, 96), (246, 226, 186)),
    ((20, 34, 52), (44, 92, 120), (120, 172, 170), (232, 236, 214)),
    ((34, 44, 30), (86, 112, 62), (166, 170, 98), (238, 232, 190)),
    ((44, 28, 54), (116, 70, 118), (206, 130, 140), (250, 220, 196)),
    ((52, 46, 42), (112, 104, 96), (170, 162, 150), (228, 222, 210)),
)


class Surface(NamedTuple):
    """A rectangle: origin + s u + t v for 0 <= s <= width and 0 <= t <= height; seen from the side that v x u points to."""

    origin: np.ndarray
    u: np.ndarray
    v: np.ndarray
    size: Tuple[float, float]
    texels: float  # texels per metre in the first level
    levels: List[np.ndarray]  # the texture, then levels of which each has half the side of the previous one


class Camera(NamedTuple):
    """A pinhole camera. A point X of the world has camera coordinates rotation (X - centre)."""

    centre: np.ndarray
    rotation: np.ndarray
    focal: float
    size: Tuple[int, int]

    @property
    def intrinsics(self) -> Tuple[float, float, float, float]:
        """Intrinsic parameters fx, fy, cx, cy in pixels; the centre of the top-left pixel is (0, 0)."""
        return self.focal, self.focal, (self.size[0] - 1) / 2, (self.size[1] - 1) / 2


def photo(name: str) -> np.ndarray:
    """A photograph of OpenCV's samples: uint8 [height, width, 3]."""
    return hartsift.load_image(next(folder / name for folder in PHOTOS if (folder / name).exists()), colour=True)


def camera(centre, target, size=(640, 480), focal=None) -> Camera:
    """A camera at `centre`, held upright, that looks at `target`. focal: pixels; by default as wide a view as a phone's."""
    forward = np.subtract(target, centre).astype(float)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 0, 1])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    return Camera(np.asarray(centre, float), rotation, focal or 0.8 * size[0], size)


def _surface(origin, u, v, width, height, texels, seed) -> Surface:
    u, v = np.asarray(u, float), np.asarray(v, float)
    gray = hartsift.render_scene(int(width * texels), int(height * texels), seed)
    stops = np.array(PALETTES[seed % len(PALETTES)], float)
    table = np.stack([np.interp(np.arange(256), np.linspace(0, 255, len(stops)), channel) for channel in stops.T], 1)
    light = 0.62 + 0.38 * abs(np.cross(u, v) @ SUN)
    levels = [(table[gray] * light).astype(np.float32)]
    while min(levels[-1].shape[:2]) > 8:
        h, w = (n // 2 * 2 for n in levels[-1].shape[:2])
        levels.append(levels[-1][:h, :w].reshape(h // 2, 2, w // 2, 2, 3).mean((1, 3)))
    return Surface(np.asarray(origin, float), u, v, (width, height), texels, levels)


def courtyard(texels: float = 60.0) -> List[Surface]:
    """Makes the courtyard: ground of 12 x 12 m, four walls 4 m high, and boxes. A metre of texture has `texels` samples."""
    x, y, z = np.eye(3)
    surfaces = [_surface((-6, -6, 0), y, x, 12, 12, 0.7 * texels, 4)]
    for seed, (origin, u) in enumerate([((-6, 6, 4), x), ((6, 6, 4), -y), ((6, -6, 4), -x), ((-6, -6, 4), y)], 5):
        surfaces.append(_surface(origin, u, -z, 12, 4, texels, seed))
    for seed, (left, near, side, high) in enumerate([(-3.2, 2.2, 1.5, 1.6), (1.4, 3.0, 1.8, 2.3), (-0.6, 0.4, 0.9, 0.8)], 10):
        right, far = left + side, near + side
        faces = [((left, near, high), x), ((right, near, high), y), ((right, far, high), -x), ((left, far, high), -y)]
        surfaces += [_surface(origin, u, -z, side, high, texels, 7 * seed + i) for i, (origin, u) in enumerate(faces)]
        surfaces.append(_surface((left, near, high), y, x, side, side, texels, 7 * seed + 4))
    return surfaces


def _sample(surface: Surface, s, t, level) -> np.ndarray:
    """Colours at positions (s, t) of a surface. Each is interpolated bilinearly in one level of the texture."""
    colours = np.empty((len(s), 3), np.float32)
    level = np.clip(level, 0, len(surface.levels) - 1).astype(int)
    for number in np.unique(level):
        texture, chosen = surface.levels[number], level == number
        h, w = texture.shape[:2]
        x = np.clip(s[chosen] * surface.texels / 2**number - 0.5, 0, w - 1.001)
        y = np.clip(t[chosen] * surface.texels / 2**number - 0.5, 0, h - 1.001)
        i, j = x.astype(int), y.astype(int)
        a, b = (x - i)[:, None], (y - j)[:, None]
        top = (1 - a) * texture[j, i] + a * texture[j, i + 1]
        colours[chosen] = (1 - b) * top + b * ((1 - a) * texture[j + 1, i] + a * texture[j + 1, i + 1])
    return colours


def photograph(world: List[Surface], view: Camera) -> np.ndarray:
    """Renders the camera's picture: uint8 [height, width, 3]."""
    (width, height), (fx, fy, cx, cy) = view.size, view.intrinsics
    x, y = np.meshgrid((np.arange(width) - cx) / fx, (np.arange(height) - cy) / fy)
    rays = (np.stack([x.ravel(), y.ravel(), np.ones(width * height)], 1) @ view.rotation).astype(np.float32)
    up = np.clip(rays[:, 2:] / np.linalg.norm(rays, axis=1, keepdims=True) * 2, 0, 1)
    colours = ((1 - up) * SKY[0] + up * SKY[1]).astype(np.float32)
    depths = np.full(len(rays), np.inf, np.float32)
    for surface in world:
        normal = np.cross(surface.u, surface.v)
        away, aside = surface.origin - view.centre, view.centre - surface.origin
        if normal @ away <= 0:
            continue
        # A ray r meets the plane at depth k / w with w = normal . r. There s and t are linear functions of r, divided
        # by w.
        k = normal @ away
        columns = [(aside @ side) * normal + k * side for side in (surface.u, surface.v)] + [normal]
        s, t, w = (rays @ np.stack(columns, 1).astype(np.float32)).T
        inside = (s >= 0) & (s <= surface.size[0] * w) & (t >= 0) & (t <= surface.size[1] * w)
        seen = np.flatnonzero(inside & (w * depths > k))
        if len(seen):
            s, t, depths[seen] = s[seen] / w[seen], t[seen] / w[seen], k / w[seen]
            # Number of texels under a pixel, for a surface that faces the camera; half a level more for an oblique
            # surface.
            spread = depths[seen] * surface.texels / view.focal
            colours[seen] = _sample(surface, s, t, np.floor(np.log2(np.maximum(spread, 1)) + 0.5))
    return np.clip(colours + 0.5, 0, 255).astype(np.uint8).reshape(height, width, 3)
