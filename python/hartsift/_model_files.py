"""Files of a reconstruction: transforms.json and sparse_pc.ply for nerfstudio and instant-ngp, report.html for people."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import pathlib
import re
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._errors import ArgumentError
from ._project import write_json, write_lines

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

# Names of distortion parameters of COLMAP's models, after focal lengths and principal point.
_PINHOLE = {"SIMPLE_PINHOLE": (), "PINHOLE": (), "SIMPLE_RADIAL": ("k1",), "RADIAL": ("k1", "k2"), "OPENCV": ("k1", "k2", "p1", "p2")}
_FISHEYE = {"SIMPLE_RADIAL_FISHEYE": ("k1",), "RADIAL_FISHEYE": ("k1", "k2"), "OPENCV_FISHEYE": ("k1", "k2", "k3", "k4")}
_ONE_FOCAL_LENGTH = ("SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL", "SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE")
#: COLMAP's world to nerfstudio's, as in its ns-process-data: x, z, -y.
APPLIED_TRANSFORM = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0]])
# instant-ngp needs the scene's middle at (0.5, 0.5, 0.5) and cameras at about this distance from it, in units of its cube.
_NGP_DISTANCE = 1.3
_DRAWN_POINTS = 40000


@dataclass(frozen=True)
class Photograph:
    """A registered image.

    Attributes:
        number: COLMAP's image_id.
        name: path in the folder of images.
        camera: number of its camera.
        pose: cam_from_world [R|t], float64 [3, 4], COLMAP's axes.
    """

    number: int
    name: str
    camera: int
    pose: "Array"


@dataclass(frozen=True)
class Model:
    """A reconstruction.

    Attributes:
        cameras: {number: (name of the model, width, height, parameters)}.
        photographs: photographs in the order of names.
        points: float64 [N, 3]; colors: uint8 [N, 3]; track_lengths: of the points.
        reprojection_error: mean reprojection error, pixels.
    """

    cameras: Dict[int, Tuple[str, int, int, Tuple[float, ...]]]
    photographs: List[Photograph]
    points: "Array"
    colors: "npt.NDArray[np.uint8]"
    track_lengths: "npt.NDArray[np.int64]"
    reprojection_error: float


def model_of(found: Any) -> Model:
    """Makes a Model from a ``pycolmap.Reconstruction``."""
    cameras = {
        int(number): (str(one.model.name), int(one.width), int(one.height), tuple(map(float, one.params)))
        for number, one in found.cameras.items()
    }
    photographs = []
    for number in found.reg_image_ids():
        image = found.images[number]
        pose = image.cam_from_world
        pose = pose() if callable(pose) else pose  # a property in older versions of pycolmap
        photographs.append(Photograph(int(number), str(image.name), int(image.camera_id), np.array(pose.matrix(), np.float64)))
    points = [found.points3D[number] for number in sorted(found.points3D)]
    return Model(
        cameras,
        sorted(photographs, key=lambda one: os.fsencode(one.name)),
        np.array([one.xyz for one in points], np.float64).reshape(-1, 3),
        np.array([one.color for one in points], np.uint8).reshape(-1, 3),
        np.array([one.track.length() for one in points], np.int64),
        float(found.compute_mean_reprojection_error()) if points else 0.0,
    )


# ------------------------------------------------------------------ transforms.json


def _camera_fields(camera: Tuple[str, int, int, Tuple[float, ...]]) -> Dict[str, Any]:
    name, width, height, parameters = camera
    terms = {**_PINHOLE, **_FISHEYE}.get(name)
    if terms is None:
        known = ", ".join([*_PINHOLE, *_FISHEYE])
        raise ArgumentError(f"transforms.json has no camera model {name}: expected one of {known}")
    values = list(parameters)
    if name in _ONE_FOCAL_LENGTH:
        values.insert(0, values[0])
    is_fisheye = name in _FISHEYE
    fields: Dict[str, Any] = {"w": width, "h": height, "fl_x": values[0], "fl_y": values[1], "cx": values[2], "cy": values[3]}
    fields.update(dict.fromkeys(("k1", "k2", "k3", "k4") if is_fisheye else ("k1", "k2", "p1", "p2"), 0.0))
    fields.update(zip(terms, values[4:]))
    if is_fisheye:
        fields["is_fisheye"] = True  # instant-ngp's
    else:
        fields["camera_angle_x"] = 2 * math.atan(width / (2 * values[0]))
        fields["camera_angle_y"] = 2 * math.atan(height / (2 * values[1]))
    return {"camera_model": "OPENCV_FISHEYE" if is_fisheye else "OPENCV", **fields}


def transform_of(pose: "Array") -> "Array":
    """Returns camera to world, [4, 4], in OpenGL's axes (x right, y up, looking along -z) and nerfstudio's world."""
    turn, shift = pose[:, :3], pose[:, 3]
    to_world = np.eye(4)
    to_world[:3, :3] = turn.T @ np.diag([1.0, -1.0, -1.0])
    to_world[:3, 3] = -turn.T @ shift
    return np.vstack([APPLIED_TRANSFORM, [0, 0, 0, 1]]) @ to_world


def _middle(transforms: Sequence["Array"]) -> "Array":
    """Returns the point nearest to all optical axes; if they are parallel, the mean position of the cameras."""
    centres = np.array([one[:3, 3] for one in transforms])
    across = [np.eye(3) - np.outer(one[:3, 2], one[:3, 2]) for one in transforms]
    total = np.sum(across, axis=0)
    mean: "Array" = centres.mean(0)
    if np.linalg.cond(total) > 1e6:
        return mean
    found: "Array" = np.linalg.solve(total, np.einsum("nij,nj->i", across, centres))
    return found


def _ngp_fields(transforms: Sequence["Array"]) -> Dict[str, Any]:
    """Returns instant-ngp's scale and offset: position * scale + offset is in its cube."""
    middle = _middle(transforms)
    distance = float(np.mean([np.linalg.norm(one[:3, 3] - middle) for one in transforms])) or 1.0
    scale = _NGP_DISTANCE / distance
    return {"aabb_scale": 16, "scale": scale, "offset": (0.5 - scale * middle).tolist()}


def write_transforms(
    path: pathlib.Path, model: Model, images: pathlib.Path, mask_of: Callable[[str], Optional[pathlib.Path]] = lambda _: None,
    kept: Sequence[str] = (),
) -> None:
    """Writes transforms.json as nerfstudio's ns-process-data does, with scale and offset for instant-ngp, and sparse_pc.ply.

    Args:
        path: of transforms.json; the names of images in it are relative to its folder.
        model: the reconstruction.
        images: folder of the photographs.
        mask_of: the mask of a name, if it has one.
        kept: names of the two files that are not written.
    """
    folder = path.parent
    used = sorted({one.camera for one in model.photographs})
    fields = {number: _camera_fields(model.cameras[number]) for number in used}
    frames = []
    for one in model.photographs:
        frame: Dict[str, Any] = {
            "file_path": _relative(images / one.name, folder),
            "transform_matrix": transform_of(one.pose).tolist(),
            "colmap_im_id": one.number,
        }
        mask = mask_of(one.name)
        if mask is not None:
            frame["mask_path"] = _relative(mask, folder)
        if len(used) > 1:
            frame.update(fields[one.camera])
        frames.append(frame)
    top = fields[used[0]] if len(used) == 1 else {"camera_model": fields[used[0]]["camera_model"]}
    content = {**top, **_ngp_fields([transform_of(one.pose) for one in model.photographs])}
    content.update(applied_transform=APPLIED_TRANSFORM.tolist(), ply_file_path="sparse_pc.ply", frames=frames)
    if "sparse_pc.ply" not in kept:
        _write_ply(folder / "sparse_pc.ply", model.points @ APPLIED_TRANSFORM[:, :3].T, model.colors)
    if path.name not in kept:
        write_json(path, content)


def _relative(path: pathlib.Path, folder: pathlib.Path) -> str:
    return pathlib.Path(os.path.relpath(path, folder)).as_posix()


def _write_ply(path: pathlib.Path, points: "Array", colors: "npt.NDArray[np.uint8]") -> None:
    head = ["ply", "format ascii 1.0", f"element vertex {len(points)}", *(f"property float {axis}" for axis in "xyz"),
            *(f"property uint8 {color}" for color in ("red", "green", "blue")), "end_header"]
    rows = (f"{x:.8g} {y:.8g} {z:.8g} {r} {g} {b}" for (x, y, z), (r, g, b) in zip(points.tolist(), colors.tolist()))
    write_lines(path, [*head, *rows])


# ------------------------------------------------------------------ report.html


def _drawing(model: Model) -> Dict[str, Any]:
    """Returns points and cameras for the page, with the scene's middle at 0, a size of about 1, and z up."""
    centres = np.array([-one.pose[:, :3].T @ one.pose[:, 3] for one in model.photographs])
    up = -np.mean([one.pose[1, :3] for one in model.photographs], axis=0)
    up /= np.linalg.norm(up) or 1.0
    side = np.cross(up, [0.0, 0, 1] if abs(up[2]) < 0.9 else [0.0, 1, 0])
    side /= np.linalg.norm(side)
    turn = np.array([side, np.cross(up, side), up])
    everything = np.vstack([model.points, centres])
    middle = np.median(everything, axis=0)
    size = float(np.quantile(np.linalg.norm(everything - middle, axis=1), 0.8)) or 1.0
    step = max(1, -(-len(model.points) // _DRAWN_POINTS))
    forward = turn @ np.mean([one.pose[2, :3] for one in model.photographs], axis=0)
    points = ((model.points[::step] - middle) @ turn.T / size).astype("<f4")
    cameras = []
    for one, centre in zip(model.photographs, centres):
        _, width, height, parameters = model.cameras[one.camera]
        x, y = width / (2 * parameters[0]), height / (2 * parameters[0])
        corners = np.array([[0, 0, 0], [-x, -y, 1], [x, -y, 1], [x, y, 1], [-x, y, 1]])
        cameras.append(((centre - middle) @ turn.T / size, corners @ one.pose[:, :3] @ turn.T))
    return {
        "points": base64.b64encode(points.tobytes()).decode("ascii"),
        "colors": base64.b64encode(model.colors[::step].tobytes()).decode("ascii"),
        "cameras": [[np.round(at, 5).tolist(), np.round(corners, 4).tolist()] for at, corners in cameras],
        "yaw": round(math.atan2(-forward[0], forward[1]) + 0.4, 3),  # looks in the cameras' direction, a little from the side
        "names": [one.name.encode("utf-8", "replace").decode("utf-8") for one in model.photographs],
    }


def write_report(
    path: pathlib.Path, title: str, model: Model, numbers: Mapping[str, str], missing: Sequence[str], links: Sequence[str]
) -> None:
    """Writes one page without references to other places: a drawing to turn, and numbers.

    Args:
        path: path of the page.
        title: title of the page.
        model: the reconstruction.
        numbers: rows of the table.
        missing: names of images without a pose.
        links: files next to the page.
    """

    def safe(text: str) -> str:
        return html.escape(text.encode("utf-8", "replace").decode("utf-8"))

    rows = "\n".join(f"<tr><th>{safe(name)}</th><td>{safe(value)}</td></tr>" for name, value in numbers.items())
    absent = f"<p>Without a pose: {', '.join(map(safe, missing))}</p>" if missing else ""
    files = " · ".join(f'<a href="{urllib.parse.quote(name)}">{safe(name)}</a>' for name in links)
    data = json.dumps(_drawing(model)).replace("<", "\\u003c")
    parts = {"TITLE": safe(title), "ROWS": rows, "MISSING": absent, "FILES": files, "DATA": data}
    write_lines(path, [re.sub("@([A-Z]+)@", lambda found: parts[found.group(1)], _PAGE)])


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@</title>
<style>
body { font: 15px system-ui, sans-serif; margin: 1.5em auto; max-width: 70em; padding: 0 1em; color: #222; background: #fff }
canvas { width: 100%; height: 34em; background: #f4f4f2; border: 1px solid #ccc; cursor: grab; touch-action: none }
table { border-collapse: collapse; margin: 1em 0 } th { text-align: left; font-weight: normal; padding-right: 2em; color: #666 }
p { color: #555; max-width: 100%; overflow-wrap: anywhere }
</style></head><body>
<h1>@TITLE@</h1>
<canvas id="view"></canvas>
<p>Drag: turn. Wheel: distance. Shift and drag: move. <span id="name"></span></p>
<table>
@ROWS@
</table>
@MISSING@
<p>@FILES@</p>
<script>
const data = @DATA@;
const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
const points = new Float32Array(bytes(data.points).buffer), colors = bytes(data.colors);
const canvas = document.getElementById("view"), draw = canvas.getContext("2d");
let yaw = data.yaw, pitch = 0.4, distance = 4, move = [0, 0], held = null, near = -1;
function projector(width, height) {
  const cy = Math.cos(yaw), sy = Math.sin(yaw), cp = Math.cos(pitch), sp = Math.sin(pitch), f = 0.9 * Math.min(width, height);
  return (x, y, z) => {
    const a = cy * x + sy * y, b = -sy * x + cy * y, depth = distance + cp * b - sp * z;
    return depth < 0.05 ? null : [width / 2 + move[0] + f * a / depth, height / 2 + move[1] - f * (sp * b + cp * z) / depth];
  };
}
function paint() {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale; canvas.height = height * scale; draw.scale(scale, scale);
  const project = projector(width, height);
  for (let i = 0; i < points.length / 3; i++) {
    const at = project(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
    if (!at) continue;
    draw.fillStyle = `rgb(${colors[3 * i]},${colors[3 * i + 1]},${colors[3 * i + 2]})`;
    draw.fillRect(at[0], at[1], 1.6, 1.6);
  }
  const size = 0.5 / Math.sqrt(data.cameras.length + 8);
  data.cameras.forEach(([centre, corners], i) => {
    draw.strokeStyle = i === near ? "#06c" : "#c22"; draw.lineWidth = i === near ? 2 : 1;
    const c = corners.map(q => project(...q.map((v, k) => centre[k] + size * v)));
    if (c.some(q => !q)) return;
    draw.beginPath();
    for (let k = 1; k < 5; k++) { draw.moveTo(...c[0]); draw.lineTo(...c[k]); draw.lineTo(...c[k % 4 + 1]); }
    draw.stroke();
  });
}
canvas.onpointerdown = e => { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); };
canvas.onpointerup = () => { held = null; };
canvas.onpointermove = e => {
  if (held) {
    const dx = e.clientX - held[0], dy = e.clientY - held[1];
    held = [e.clientX, e.clientY];
    if (e.shiftKey) move = [move[0] + dx, move[1] + dy];
    else { yaw -= dx / 150; pitch = Math.max(-1.57, Math.min(1.57, pitch + dy / 150)); }
  } else {
    const box = canvas.getBoundingClientRect(), project = projector(box.width, box.height);
    let best = 144; near = -1;
    data.cameras.forEach(([centre], i) => {
      const at = project(...centre); if (!at) return;
      const d = (at[0] - e.clientX + box.left) ** 2 + (at[1] - e.clientY + box.top) ** 2;
      if (d < best) { best = d; near = i; }
    });
    document.getElementById("name").textContent = near < 0 ? "" : data.names[near];
  }
  paint();
};
canvas.onwheel = e => { e.preventDefault(); distance = Math.max(0.2, Math.min(50, distance * Math.exp(e.deltaY / 500))); paint(); };
window.onresize = paint; paint();
</script></body></html>"""
