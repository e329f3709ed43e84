"""Compares reconstructions of hloc and OpenSfM from their own SIFT features and from hartsift's, as Markdown.

usage: hloc_opensfm.py WORK SCENE...      (a folder to work in, scenes with poses.txt and intrinsics.txt, see
scene_truth.py)

hloc and its dependencies (PyTorch, pycolmap, h5py, kornia) must be importable. OpenSfM runs as a separate program:
OPENSFM names the folder of its source, built in place, and OPENSFM_PYTHON a Python with its dependencies and the
package hartsift (PYTHONPATH, HARTSIFT_LIBRARY). Without these variables its rows are left out. For a scene named desk
the true focal length is passed, since 0.33 m of camera motion do not determine it. COLMAP's own features: run.py.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import cv2
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import scene_truth  # noqa: E402

try:
    import pycolmap
    from hloc import extract_features, match_features, pairs_from_exhaustive, reconstruction

    import hartsift.hloc
except ImportError as error:
    print(f"hloc is left out: {error}", file=sys.stderr)
    reconstruction = None

OPENSFM, OPENSFM_PYTHON = os.environ.get("OPENSFM"), os.environ.get("OPENSFM_PYTHON")
STEPS = ("extract_metadata", "detect_features", "match_features", "create_tracks", "reconstruct", "compute_statistics")


# ------------------------------------------------------------------ hloc

def hloc_rows():
    """Returns name, extractor and matcher of each row. Threshold and size of the extractor are COLMAP's."""
    own = {**extract_features.confs["sift"],
           "model": {"name": "dog", "options": {"first_octave": -1, "peak_threshold": 0.02 / 3, "max_num_features": 8192}}}
    mine = {**hartsift.hloc.EXTRACT, "model": {**hartsift.hloc.EXTRACT["model"], "profile": "colmap"}}
    nearest = match_features.confs["NN-ratio"]
    return [("hloc: its SIFT, its NN-ratio", own, nearest), ("hloc: its SIFT, hartsift's matcher", own, hartsift.hloc.MATCH),
            ("hloc: hartsift's SIFT, its NN-ratio", mine, nearest),
            ("hloc: hartsift's SIFT and matcher", mine, hartsift.hloc.MATCH)]


def run_hloc(row, pictures, focal, work):
    """Returns camera centres by name, number of points, track length, error, seconds of extraction and of matching."""
    _, extractor, matcher = row
    names = scene_truth.pictures_in(pictures)
    pairs = work / "pairs.txt"
    start = time.monotonic()
    features = extract_features.main(extractor, pictures, work, as_half=False)
    extraction = time.monotonic() - start
    pairs_from_exhaustive.main(pairs, image_list=names)
    start = time.monotonic()
    matches = match_features.main(matcher, pairs, extractor["output"], work)
    matching = time.monotonic() - start
    image, mapper = {"camera_model": "SIMPLE_RADIAL"}, {}
    if focal:
        height, width = cv2.imread(str(pictures / names[0]), 0).shape
        image["camera_params"] = f"{focal},{width / 2},{height / 2},0"
        mapper["ba_refine_focal_length"] = False
    model = reconstruction.main(work / "sfm", pictures, pairs, features, matches, camera_mode=pycolmap.CameraMode.SINGLE,
                                image_options=image, mapper_options=mapper)
    centres = {one.name: one.projection_center() for one in model.images.values() if one.has_pose}
    return (centres, model.num_points3D(), model.compute_mean_track_length(), model.compute_mean_reprojection_error(),
            extraction, matching)


# ------------------------------------------------------------------ OpenSfM

def opensfm_rows():
    """Returns name, type of features and matcher of each row."""
    return [("OpenSfM: its SIFT (OpenCV)", "SIFT", "BRUTEFORCE"), ("OpenSfM: hartsift as its SIFT_GPU", "SIFT_GPU", "BRUTEFORCE")]


def run_opensfm(row, pictures, focal, work):
    _, features, matcher = row
    shutil.copytree(pictures, work / "images")
    height, width = cv2.imread(str(pictures / scene_truth.pictures_in(pictures)[0]), 0).shape
    settings = {"feature_type": features, "matcher_type": matcher, "feature_min_frames": 1500, "sift_peak_threshold": 0.04,
                "optimize_camera_parameters": "no" if focal else "yes", "processes": 2}
    (work / "config.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    camera = {"projection_type": "perspective", "width": width, "height": height, "k1": 0.0, "k2": 0.0,
              "focal": (focal or 1.2 * width) / max(width, height)}
    (work / "camera_models_overrides.json").write_text(json.dumps({"all": camera}))
    shim = pathlib.Path(OPENSFM, "opensfm", "pypopsift.py")
    shim.write_text("from hartsift.pypopsift import *\n")
    seconds = {}
    for step in STEPS:
        start = time.monotonic()
        command = [OPENSFM_PYTHON, pathlib.Path(OPENSFM, "bin", "opensfm_main.py"), step, work]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(f"opensfm {step}: {ended.stderr[-3000:]}")
        seconds[step] = time.monotonic() - start
    models = json.loads((work / "reconstruction.json").read_text())
    largest = max(models, key=lambda model: len(model["shots"]))
    centres = {}
    for name, shot in largest["shots"].items():
        rotation = cv2.Rodrigues(numpy.array(shot["rotation"]))[0]
        centres[name] = -rotation.T @ numpy.array(shot["translation"])
    said = json.loads((work / "stats" / "stats.json").read_text())["reconstruction_statistics"]
    return (centres, len(largest["points"]), said["average_track_length"], said["reprojection_error_pixels"],
            seconds["detect_features"], seconds["match_features"])


# ------------------------------------------------------------------ the table

def position_percent(centres, scene):
    names = sorted(set(centres) & set(scene.poses))
    if len(names) < 3:
        return float("nan")
    error, size = scene_truth.position_error([centres[name] for name in names],
                                             [scene_truth.centre(scene.poses[name]) for name in names])
    return 100 * error / size


def main():
    work, *folders = (pathlib.Path(name).resolve() for name in sys.argv[1:])
    rows = [(row, run_hloc) for row in hloc_rows()] if reconstruction else []
    rows += [(row, run_opensfm) for row in opensfm_rows()] if OPENSFM and OPENSFM_PYTHON else []
    for scene in map(scene_truth.read_scene, folders):
        focal = scene.cameras[scene.images[0]].matrix[0, 0] if scene.name == "desk" else None
        print(f"\n## {scene.name}, {len(scene.images)} pictures\n\n| pipeline | registered | points | track length |"
              " reprojection error, px | position error, % | extract, s | match, s |\n|---|--:|--:|--:|--:|--:|--:|--:|")
        for row, function in rows:
            shutil.rmtree(work / "run", ignore_errors=True)
            (work / "run").mkdir(parents=True)
            centres, points, length, error, extraction, matching = function(row, scene.folder, focal, work / "run")
            print(f"| {row[0]} | {len(centres)} | {points} | {length:.2f} | {error:.3f} |"
                  f" {position_percent(centres, scene):.3f} | {extraction:.1f} | {matching:.1f} |", flush=True)


if __name__ == "__main__":
    main()
