#!/usr/bin/env python3
"""Seconds of each COLMAP command that published scripts run, by hartsift-colmap and by COLMAP, on the same photographs.

usage: colmap_scripts --photos FOLDER [--scripts NAME,...] [--rounds N] [--gpu 0|1] NAME=PROGRAM NAME=PROGRAM ...

The calls are those of tests/support/colmap_calls.py. PROGRAM is COLMAP, hartsift-colmap, or `pycolmap`: this file, which runs
COLMAP's own extraction and matching by the pycolmap of this interpreter. Commands after matching go to pycolmap for hartsift-colmap and
`pycolmap` alike. nerfstudio's vocabulary tree is replaced by exhaustive matching, as its option `--matching-method` does, since the
tree is a download. --gpu sets use_gpu in all calls. Programs take turns; cells are medians. A `pycolmap` command includes 0.2 to 0.5 s for
the start of Python.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "python")]
import colmap_calls  # noqa: E402


def run_by_pycolmap(arguments):
    """Runs one command of COLMAP by pycolmap, in this process."""
    import pycolmap
    from hartsift import colmap_commands

    command = arguments[0]
    if command != "feature_extractor" and not command.endswith("_matcher"):
        return colmap_commands.main(arguments)
    given = colmap_commands._Arguments(command, arguments[1:])
    settings = {name: value for name, value in given.settings.items() if value and not name.endswith(".use_gpu")}
    gpu = [value for name, value in given.settings.items() if name.endswith(".use_gpu")]
    device = pycolmap.Device.auto if not gpu else pycolmap.Device.cuda if gpu[0] in ("1", "true") else pycolmap.Device.cpu
    given.settings = settings
    database = given.take("database_path")
    if command == "feature_extractor":
        single = settings.pop("ImageReader.single_camera", "0") == "1"
        settings.pop("ImageReader.single_camera_per_folder", "0")
        reader = given.fill(pycolmap.ImageReaderOptions(), "ImageReader")
        options = given.fill(pycolmap.FeatureExtractionOptions(), "SiftExtraction", "FeatureExtraction")
        mode = pycolmap.CameraMode.SINGLE if single else pycolmap.CameraMode.AUTO
        pycolmap.extract_features(database, given.take("image_path"), camera_mode=mode, reader_options=reader, extraction_options=options,
                                  device=device)
        return 0
    options = given.fill(pycolmap.FeatureMatchingOptions(), "SiftMatching", "FeatureMatching")
    match = {"exhaustive_matcher": pycolmap.match_exhaustive, "sequential_matcher": pycolmap.match_sequential}[command]
    match(database, matching_options=options, device=device)
    return 0


def calls(script, folder, gpu):
    """Returns the arguments of a script's calls, without the one that asks for the version."""
    found = []
    for text in colmap_calls.calls(script):
        text = re.sub(r"vocab_tree_matcher(.*?) --VocabTreeMatching\S* \S*", r"exhaustive_matcher\1", text, flags=re.S)
        if gpu is not None:
            text = re.sub(r"use_gpu [01]", f"use_gpu {gpu}", text)
        arguments = shlex.split(text.replace("WORK", folder))
        if arguments[0] != "-h":
            found.append(arguments)
    return found


def run(script, program, photos, gpu):
    """Runs a script's calls in a new folder. Returns the commands, the seconds of each, and the images and points of the model."""
    command = [sys.executable, __file__, "--run"] if program == "pycolmap" else [program]
    environment = {**os.environ, "HARTSIFT_COLMAP": "pycolmap", "HARTSIFT_PYTHON": sys.executable,
                   "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])}
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(photos, os.path.join(folder, "photos"))
        for name in ("sparse", "text"):
            os.mkdir(os.path.join(folder, name))
        commands = calls(script, folder, gpu)
        for arguments in commands:
            start = time.perf_counter()
            done = subprocess.run([*command, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            seconds.append(time.perf_counter() - start)
            if done.returncode:
                sys.exit(f"{program} {' '.join(arguments)}\n{done.stdout[-3000:]}")
        return [arguments[0] for arguments in commands], seconds, model_of(folder)


def model_of(folder):
    import pycolmap
    path = os.path.join(folder, "sparse", "0")
    if not os.path.isdir(path):
        return "-"
    model = pycolmap.Reconstruction(path)
    return f"{model.num_reg_images()} images, {model.num_points3D()} points, {model.compute_mean_reprojection_error():.2f} px"


def main():
    if sys.argv[1:2] == ["--run"]:
        return run_by_pycolmap(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", required=True)
    parser.add_argument("--scripts", default=",".join(colmap_calls.CALLS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gpu", choices=("0", "1"))
    parser.add_argument("programs", nargs="+", metavar="NAME=PROGRAM")
    arguments = parser.parse_args()
    programs = dict(entry.split("=", 1) for entry in arguments.programs)
    print("| script | command | " + " | ".join(f"{name} s" for name in programs) + " |\n|---|---" + "|--:" * len(programs) + "|")
    for script in arguments.scripts.split(","):
        found = {name: [] for name in programs}
        for number in range(arguments.rounds):
            order = list(programs)[number % len(programs):] + list(programs)[:number % len(programs)]
            for name in order:
                found[name].append(run(script, programs[name], arguments.photos, arguments.gpu))
        commands = next(iter(found.values()))[0][0]
        rows = [[statistics.median(result[1][step] for result in results) for results in found.values()] for step in range(len(commands))]
        for command, row in zip(commands, rows):
            print(f"| {script} | {command} | " + " | ".join(f"{cell:.2f}" for cell in row) + " |")
        wholes = [statistics.median(sum(result[1]) for result in results) for results in found.values()]
        print(f"| {script} | whole | " + " | ".join(f"{cell:.2f}" for cell in wholes) + " |")
        print(f"| {script} | model | " + " | ".join(results[-1][2] for results in found.values()) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
