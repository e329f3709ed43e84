"""Renders a scene with exact poses: a room whose walls, floor and boards are photographs.

usage: room_scene.py DATA FOLDER                  (the folder of photographs, a folder that becomes the scene)
"""
import pathlib
import sys

import cv2
import numpy

VIEWS, SIZE, FOCAL, SUPERSAMPLING = 12, (512, 384), 500.0, 3


def walls(data):
    """Returns rectangles in space: texture, corner, and edges along the texture's width and height."""
    def photo(name):
        return cv2.imread(str(data / name), cv2.IMREAD_GRAYSCALE)
    return [
        (photo("formats/exif/Landscape_1.jpg"), (-4.0, -2.4, 6.0), (8.0, 0, 0), (0, 4.4, 0)),
        (photo("stitching/river/1.jpg"), (-4.0, 2.0, 6.0), (8.0, 0, 0), (0, 0, -5.0)),
        (photo("pairs/building.jpg"), (-3.2, -2.4, 1.5), (0, 0, 4.5), (0, 4.4, 0)),
        (photo("homography/graf/1.png"), (0.6, -0.2, 4.0), (1.9, 0, 0.5), (0, 1.5, 0)),
        (photo("homography/boat/1.png"), (-2.0, 0.1, 4.4), (1.7, 0, -0.4), (0, 1.4, 0)),
    ]


def rotation_towards(centre, target, roll):
    """Returns a world-to-camera rotation, with y down."""
    forward = numpy.subtract(target, centre) / numpy.linalg.norm(numpy.subtract(target, centre))
    right = numpy.cross([0, 1, 0], forward)
    right /= numpy.linalg.norm(right)
    level = numpy.stack([right, numpy.cross(forward, right), forward])
    turn = numpy.array([[numpy.cos(roll), -numpy.sin(roll), 0], [numpy.sin(roll), numpy.cos(roll), 0], [0, 0, 1]])
    return turn @ level


def render(rectangles, rotation, centre, noise):
    """Samples the nearest rectangle along each ray, on a fine grid that is then averaged."""
    width, height = (side * SUPERSAMPLING for side in SIZE)
    x, y = numpy.meshgrid(numpy.arange(width), numpy.arange(height))
    focal = FOCAL * SUPERSAMPLING
    rays = numpy.stack([(x + 0.5 - width / 2) / focal, (y + 0.5 - height / 2) / focal, numpy.ones(x.shape)], axis=-1) @ rotation
    nearest = numpy.full(x.shape, numpy.inf)
    picture = numpy.full(x.shape, 90, numpy.float32)
    for texture, corner, along, down in rectangles:
        frame = numpy.stack([along, down, numpy.cross(along, down)], axis=1).astype(float)
        place = numpy.linalg.solve(frame, numpy.subtract(centre, corner))
        step = rays @ numpy.linalg.inv(frame).T
        with numpy.errstate(divide="ignore", invalid="ignore"):
            depth = -place[2] / step[..., 2]
            u, v = (place[i] + depth * step[..., i] for i in (0, 1))
        hit = (depth > 0.05) & (depth < nearest) & (u >= 0) & (u < 1) & (v >= 0) & (v < 1)
        sampled = cv2.remap(texture.astype(numpy.float32), (u * texture.shape[1] - 0.5).astype(numpy.float32),
                            (v * texture.shape[0] - 0.5).astype(numpy.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        picture[hit] = sampled[hit]
        nearest[hit] = depth[hit]
    small = cv2.resize(picture, SIZE, interpolation=cv2.INTER_AREA)
    return numpy.clip(numpy.round(small + noise), 0, 255).astype(numpy.uint8)


def arc():
    """Returns rotations (world to camera) and centres on an arc around the middle of the room."""
    for i in range(VIEWS):
        t = i / (VIEWS - 1) * 2 - 1
        centre = numpy.array([1.6 * t, -0.3 + 0.35 * numpy.sin(5 * t), -0.6 + 0.8 * t * t])
        yield rotation_towards(centre, (-0.2 - 0.4 * t, 0.1, 5.0), 0.12 * numpy.cos(4 * t)), centre


def make_memory(data, folder, cameras=None, seed=7):
    """Writes the views of `cameras` (rotations and centres; the arc if None), poses.txt and intrinsics.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    rectangles, random, rows = walls(data), numpy.random.default_rng(seed), ["# image, then cam_from_world [R|t] row by row"]
    for i, (rotation, centre) in enumerate(cameras or arc()):
        name = f"{i:02}.png"
        cv2.imwrite(str(folder / name), render(rectangles, rotation, centre, random.normal(0, 1.5, SIZE[::-1])))
        rows.append(f"{name} " + " ".join(f"{value:.17g}" for value in numpy.c_[rotation, -rotation @ centre].flat))
    (folder / "poses.txt").write_text("\n".join(rows) + "\n")
    width, height = SIZE
    (folder / "intrinsics.txt").write_text("# width height fx fy cx cy (the centre of the top-left pixel is 0.5, 0.5)\n"
                                           f"{width} {height} {FOCAL} {FOCAL} {width / 2} {height / 2}\n")


if __name__ == "__main__":
    make_memory(*map(pathlib.Path, sys.argv[1:3]))
