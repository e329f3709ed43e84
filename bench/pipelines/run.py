"""From photographs to poses: features, matches and mappers on scenes with true cameras. Writes total times and errors
as JSON and Markdown.

usage: run.py [SCENE...] [-o PREFIX] [options]                                                        (see README.md)
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pairs_truth  # noqa: E402
import scene_truth  # noqa: E402

try:
    import pycolmap

    import pipeline_steps as steps
    import room_scene
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
COURTYARD = {"--scenes": 1, "--views": 24, "--others": 0}
COLUMNS = {"features_s": 2, "match_s": 2, "map_s": 2, "map_cpu_s": 2, "all_s": 2, "images": 0, "points": 0, "track_length": 2, "reprojection_px": 3,
           "rotation_deg": 3, "rotation_deg_90": 3, "position_percent": 3}  # values in the tables and their decimal places
HEADING = ("| front end | mapper | features s | match s | map s | map processor s | all s | images | points | track | reprojection px |"
           " rotation median deg | rotation 90 % deg | position % |\n|---|---|" + "--:|" * len(COLUMNS))


# ------------------------------------------------------------------ scenes

def scene_folders(folder):
    """Returns the folders of a scene, or of all scenes in a folder."""
    if scene_truth.pictures_in(folder) or (folder / "cameras.txt").exists():
        return [folder]
    return [inner for inner in sorted(folder.iterdir()) if scene_truth.pictures_in(inner) or (inner / "cameras.txt").exists()]


def default_folders(settings, work):
    """Returns the scenes of HARTSIFT_SCENES, or else the photographs of HARTSIFT_DATA and a room rendered from some of
    them. Adds a generated collection if its program is built."""
    data = pathlib.Path(os.environ.get("HARTSIFT_DATA", ROOT.parent / "shared" / "data"))
    places = [os.environ["HARTSIFT_SCENES"]] if "HARTSIFT_SCENES" in os.environ else [data / "sfm", data / "slam" / "desk"]
    folders = [folder for place in map(pathlib.Path, places) if place.is_dir() for folder in scene_folders(place)]
    if "HARTSIFT_SCENES" not in os.environ and (data / "stitching").is_dir():
        room_scene.make_memory(data, work / "room")
        folders.append(work / "room")
    program = settings.hartsift.parent / "bench" / "make_collection"
    if program.exists() and "courtyard" not in [folder.name for folder in folders]:
        options = [str(word) for option in COURTYARD.items() for word in option]
        subprocess.run([program, work / "courtyard", *options], check=True, stdout=subprocess.DEVNULL)
        folders.append(work / "courtyard")
    return folders


# ------------------------------------------------------------------ one run

@contextlib.contextmanager
def timed(row, name):
    start = time.perf_counter()
    yield
    row[name] = time.perf_counter() - start


def make_database(settings, scene, front_end, database, seed, focal_known):
    features, matcher = front_end.split("+")
    row = {}
    with timed(row, "features_s"):
        steps.EXTRACTORS[features](settings, scene, database)
    if focal_known:
        steps.tell_focal_length(database, scene)
    with timed(row, "match_s"):
        steps.MATCHERS[matcher](settings, database, seed)
    if scene.poses:
        pairs, row["features"] = pairs_truth.judge_pairs(database, scene)
        row["pairs"] = pairs_truth.totals(pairs)
    return row


def pose_row(reconstructions, scene):
    """Returns the errors of the largest reconstruction."""
    if not reconstructions:
        return {"models": 0, "images": 0}
    model = max(reconstructions.values(), key=lambda one: one.num_reg_images())
    found = {image.name: image.cam_from_world().matrix() for image in model.images.values() if image.has_pose}
    return {"models": len(reconstructions), "images": len(found), "points": model.num_points3D(),
            "observations": model.compute_num_observations(), "track_length": model.compute_mean_track_length(),
            "reprojection_px": model.compute_mean_reprojection_error(), **(scene_truth.pose_errors(found, scene.poses) or {})}


def run_mapper(settings, mapper, scene, database, seed, focal_known):
    row = {"mapper": mapper, "seed": seed}
    processor_start = time.process_time()
    with tempfile.TemporaryDirectory() as folder, timed(row, "map_s"):
        try:
            models = steps.MAPPERS[mapper](settings, database, scene, folder, seed, focal_known)
        except RuntimeError as error:
            print(f"  {scene.name}, {mapper}: {error}", file=sys.stderr, flush=True)
            models = {}
        row["map_cpu_s"] = time.process_time() - processor_start
        row.update(pose_row(models, scene))
    return row


def run_front_end(arguments, settings, scene, front_end, work):
    """Returns a row for each run and mapper."""
    rows, database = [], work / f"{scene.name}.{front_end}.db"
    for seed in range(1, arguments.runs + 1):
        if seed == 1 or not arguments.reuse:
            database.unlink(missing_ok=True)
            first = make_database(settings, scene, front_end, database, seed, scene.name in arguments.known_focal)
        for mapper in arguments.mappers:
            row = run_mapper(settings, mapper, scene, database, seed, scene.name in arguments.known_focal)
            row = {"scene": scene.name, "front_end": front_end, "of": len(scene.images), **first, **row}
            row["all_s"] = row["features_s"] + row["match_s"] + row["map_s"]
            rows.append(row)
            print(f"  {scene.name}, {front_end}, {mapper}, seed {seed}: " + ", ".join(
                f"{name} {row[name]:.3f}" for name in COLUMNS if name in row), file=sys.stderr, flush=True)
    return rows


# ------------------------------------------------------------------ tables

def median(rows, name):
    """Returns None unless more than half of the runs have the value, because a run without a value counts as the worst."""
    values = sorted(row.get(name, float("inf")) for row in rows)
    middle = statistics.median(values)
    return None if middle == float("inf") else middle


def groups(rows, *names):
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def poses_table(rows):
    lines = [HEADING]
    for (front_end, mapper), some in groups(rows, "front_end", "mapper").items():
        cells = [(name, median(some, name), digits) for name, digits in COLUMNS.items()]
        texts = ["—" if value is None else f"{value:.{digits}f}" + (f" of {some[0]['of']}" if name == "images" else "")
                 for name, value, digits in cells]
        lines.append(f"| {front_end} | {mapper} | " + " | ".join(texts) + " |")
    return lines


def pairs_table(rows):
    lines = ["| front end | features an image | right pairs | right inliers | share right | wrong pairs | their inliers |\n|---|"
             + "--:|" * 6]
    for (front_end,), some in groups(rows, "front_end").items():
        right, wrong = some[0]["pairs"]["right"], some[0]["pairs"]["wrong"]
        lines.append(f"| {front_end} | {some[0]['features']:.0f} | {right['pairs']} | {right['right']} | {right['share']:.4f} |"
                     f" {wrong['pairs']} | {wrong['inliers']} |")
    return lines


def markdown(report):
    lines = ["# From photographs to poses", "", f"Written by `python3 bench/pipelines/run.py` on {report['date']}: "
             f"{report['hartsift']}; pycolmap {report['pycolmap']}; {report['host']}; device {report['settings']['device']}. "
             f"Medians of {report['runs']} runs with different seeds. Rotation: angles between relative rotations, all pairs of "
             "images. Position: root mean square after the best similarity, in % of the largest distance between cameras. A right "
             "inlier is at most 4 px from both true epipolar lines, at least half of a right pair's inliers are right."]
    lines += [f"Options: {json.dumps(report['settings'])}"]
    for (scene,), rows in groups(report["rows"], "scene").items():
        lines += ["", f"## {scene}", "", *poses_table(rows)]
        if "pairs" in rows[0]:
            lines += ["", *pairs_table(rows)]
    return "\n".join(lines) + "\n"


def write_report(report, prefix):
    for ending, text in ((".json", json.dumps(report, indent=1) + "\n"), (".md", markdown(report))):
        prefix.with_name(prefix.name + ending).write_text(text)


# ------------------------------------------------------------------ command line

def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenes", nargs="*", type=pathlib.Path, help="scenes, or folders of scenes")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("pipelines"), help="PREFIX of .json and .md")
    parser.add_argument("--hartsift", type=pathlib.Path, default=ROOT / "build" / "cpu" / "hartsift")
    parser.add_argument("--front-ends", default="hartsift+hartsift,colmap+colmap,opencv+colmap", help="FEATURES+MATCHER,...")
    parser.add_argument("--mappers", default=",".join(steps.MAPPERS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--reuse", action="store_true", help="features and matches once, only the mapper again in each run")
    parser.add_argument("--known-focal", default="desk", help="scenes whose true focal lengths the mapper is told")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--affine-dsp", action="store_true")
    parser.add_argument("--guided", action="store_true")
    parser.add_argument("--extract-options", default="", help="more options of hartsift extract, in one word")
    parser.add_argument("--match-options", default="", help="more options of hartsift match, in one word")
    parser.add_argument("--work", type=pathlib.Path, help="where databases are kept; else in a temporary folder")
    arguments = parser.parse_args()
    for name in ("front_ends", "mappers", "known_focal"):
        setattr(arguments, name, [word for word in getattr(arguments, name).split(",") if word])
    known = {"front end": [f"{features}+{matcher}" for features in steps.EXTRACTORS for matcher in steps.MATCHERS],
             "mapper": list(steps.MAPPERS)}
    for kind, words in (("front end", arguments.front_ends), ("mapper", arguments.mappers)):
        for word in set(words) - set(known[kind]):
            parser.error(f"no {kind} {word}; there are {', '.join(known[kind])}")
    for place in arguments.scenes:
        if not place.is_dir() or not scene_folders(place):
            parser.error(f"{place}: neither a scene nor a folder of scenes")
    if not arguments.hartsift.exists():
        parser.error(f"{arguments.hartsift} does not exist; name the command with --hartsift")
    arguments.scenes = [folder for place in arguments.scenes for folder in scene_folders(place)]
    return arguments


def first_line(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def run_all(arguments, work):
    settings = steps.Settings(arguments.hartsift.resolve(), arguments.device, arguments.threads, arguments.affine_dsp,
                              arguments.guided, tuple(arguments.extract_options.split()), tuple(arguments.match_options.split()))
    folders = arguments.scenes or default_folders(settings, work)
    report = {"date": time.strftime("%Y-%m-%d"), "hartsift": first_line(settings.hartsift, "--version"),
              "pycolmap": pycolmap.__version__, "runs": arguments.runs,
              "host": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the start",
              "settings": {**dataclasses.asdict(settings), "hartsift": settings.hartsift.name, "reuse": arguments.reuse}, "rows": []}
    for folder in folders:
        scene = scene_truth.read_scene(folder)
        for front_end in arguments.front_ends:
            report["rows"] += run_front_end(arguments, settings, scene, front_end, work)
            write_report(report, arguments.output)
    return report


def main():
    arguments = read_arguments()
    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    with contextlib.ExitStack() as stack:
        work = arguments.work or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        report = run_all(arguments, work)
    if not report["rows"]:
        print("skipped: no scenes; name them, or set HARTSIFT_SCENES or HARTSIFT_DATA")
        return 77
    print(markdown(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
