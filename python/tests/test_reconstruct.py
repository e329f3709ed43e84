"""From photographs to a model: choice of frames, pairs and cameras, transforms.json, resumed runs, errors."""

import io
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

import hartsift
from hartsift import _model_files as files
from hartsift import _progress
from hartsift import _reconstruct as reconstruct_module
from hartsift import _reconstruct_steps as steps
from hartsift import _video as video

TUTORIALS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tutorials"
FAKE_MAPPER = """
import ctypes, os, sys
__version__ = "0"
class Options: pass
IncrementalPipelineOptions = GlobalPipelineOptions = Options
def incremental_mapping(database, images, output, options, next_image_callback):
    if os.environ.get("HANG"):
        print("mapping", file=sys.stderr, flush=True)
        ctypes.CDLL(None).sleep(300)  # native code: Python's handlers of signals wait for its end
    return {}
def global_mapping(database, images, output, options): return {}
"""


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Returns five photographs of a rendered courtyard."""
    if not (TUTORIALS / "scenery.py").exists():
        pytest.skip("the courtyard of the tutorials is not there")
    sys.path.insert(0, str(TUTORIALS))
    try:
        import scenery
    finally:
        sys.path.pop(0)
    folder = tmp_path_factory.mktemp("fotos é 1")
    yard = scenery.courtyard(24)
    for i in range(5):
        view = scenery.camera((-4.5 + 1.1 * i, -5, 1.6), (0.3 * i - 0.5, 3, 1.2), (400, 300))
        video.write_png(folder / f"bild {i} ü.png", scenery.photograph(yard, view))
    return folder


def content(database):
    """Returns all rows that are made before the mapper."""
    with sqlite3.connect(database) as connection:
        return [connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in
                ("images", "cameras", "keypoints", "descriptors", "matches", "two_view_geometries")]


# ---- frames of a video


def moving_picture(width=96, height=64, count=24, sharp=lambda number: number % 6 == 3):
    """Returns frames at 12 per second, only some of which are sharp."""
    noise = np.random.default_rng(5).integers(0, 256, (height, width + count, 3), np.uint8)
    blurred = np.repeat(np.repeat(noise[::8, ::8] // 2 + 64, 8, 0), 8, 1)[:height, : width + count]
    return [np.ascontiguousarray((noise if sharp(number) else blurred)[:, number : number + width]) for number in range(count)]


def test_sharpest_frame_of_each_moment():
    pictures = moving_picture()
    frames = [video.Frame(number / 12, lambda number=number: pictures[number]) for number in range(24)]
    chosen = dict(video.sharpest_frames(frames, 2.0))
    assert [moment for moment in chosen] == [0, 1, 2, 3]
    for moment, picture in chosen.items():
        assert np.array_equal(picture, pictures[6 * moment + 3]), moment
    # A sharp frame at the edge of a moment is not taken, because neighbouring frames would be too close.
    edge = moving_picture(sharp=lambda number: number % 6 == 0)
    frames = [video.Frame(number / 12, lambda number=number: edge[number]) for number in range(24)]
    assert all(not np.array_equal(picture, edge[6 * moment]) for moment, picture in video.sharpest_frames(frames, 2.0))
    # Fewer frames than moments: all are taken.
    assert len(list(video.sharpest_frames(frames[::6], 2.0))) == 4


def test_frames_are_written_once(tmp_path, monkeypatch):
    pictures = moving_picture()
    (tmp_path / "clip.mp4").write_bytes(b"a video")
    read = []

    def frames(path, rate):
        read.append(path)
        return iter([video.Frame(number / 12, lambda number=number: pictures[number]) for number in range(24)])

    monkeypatch.setattr(video, "_reader", lambda: frames)
    clip, out = str(tmp_path / "clip.mp4"), tmp_path / "frames"
    assert video.extract_frames(clip, out, 2.0, lambda count: None) == 4
    names = sorted(path.name for path in out.glob("*.png"))
    assert names == [f"frame_{number:05d}.png" for number in (1, 2, 3, 4)]
    cv2 = pytest.importorskip("cv2")
    assert np.array_equal(cv2.imread(str(out / names[1]))[:, :, ::-1], pictures[9])
    before = (out / names[0]).stat().st_mtime_ns
    assert video.extract_frames(clip, out, 2.0, lambda count: None) == 4 and len(read) == 1
    (out / names[2]).unlink()
    (out / video.DONE).write_text((out / video.DONE).read_text().replace('"frames": 4', '"frames": 0'))  # stopped
    assert video.extract_frames(clip, out, 2.0, lambda count: None) == 4 and len(read) == 2
    assert (out / names[2]).exists() and (out / names[0]).stat().st_mtime_ns == before
    assert video.extract_frames(clip, out, 4.0, lambda count: None) == 8, "another rate makes them anew"


def test_other_frames_wait_for_the_checks(tmp_path, monkeypatch):
    fake = type(sys)("pycolmap")
    exec(FAKE_MAPPER, fake.__dict__)
    monkeypatch.setitem(sys.modules, "pycolmap", fake)
    pictures = moving_picture(160, 120)
    monkeypatch.setattr(video, "_reader", lambda: lambda path, rate: iter(
        [video.Frame(number / 12, lambda number=number: pictures[number]) for number in range(24)]))
    (tmp_path / "clip.mp4").write_bytes(b"a video")
    frames = tmp_path / "out" / "frames"

    def run(words, **options):
        with pytest.raises(hartsift.Error, match=words):
            hartsift.reconstruct(tmp_path / "clip.mp4", tmp_path / "out", device="cpu", **options)
        return steps.digests_below(frames)

    before = run("no model")
    assert len(before) == 4 + 1
    (tmp_path / "out" / ".frames.tmp").mkdir()
    (tmp_path / "out" / ".frames.tmp" / "frame_00001.png").write_bytes(b"of a stopped run with another rate")
    assert run("no model") == before and not (tmp_path / "out" / ".frames.tmp").exists()
    (tmp_path / "pairs").write_text("frame_00001.png frame_00009.png\n")
    assert run("the earlier results stay: .*focal length", frames_per_second=4, camera_params=(0, 80, 60, 0)) == before
    assert run("frame_00009.png", frames_per_second=4, pairs=tmp_path / "pairs") == before
    assert not (tmp_path / "out" / ".frames.tmp").exists()
    after = run("no model", frames_per_second=4)
    assert len(after) == 8 + 1 and not (tmp_path / "out" / ".frames.tmp").exists()


def test_video_by_opencv(tmp_path):
    cv2 = pytest.importorskip("cv2")
    path = str(tmp_path / "clip.avi")
    writer = cv2.VideoWriter(path, cv2.VideoWriter_fourcc(*"MJPG"), 12, (96, 64))
    pictures = moving_picture()
    for picture in pictures:
        writer.write(np.ascontiguousarray(picture[:, :, ::-1]))
    writer.release()
    for moment, picture in video.sharpest_frames(video._frames_by_opencv(path, 2.0), 2.0):
        away = [np.abs(picture.astype(int) - one).mean() for one in pictures]
        assert int(np.argmin(away)) == 6 * moment + 3


def test_video_by_the_program(tmp_path, monkeypatch):
    program = tmp_path / "ffmpeg"
    program.write_text(f"#!{sys.executable}\nimport sys\nassert sys.argv[sys.argv.index('-i') + 1].startswith('file:/')\n"
                       "for i in range(12): sys.stdout.buffer.write(b'P6\\n4 3\\n255\\n' + bytes([i]) * 36)\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(video.importlib.util, "find_spec", lambda name: None)
    frames = list(video._reader()("-clip.mp4", 2.0))
    assert [int(frame.read()[0, 0, 0]) for frame in frames] == list(range(12))
    assert frames[0].read().shape == (3, 4, 3) and 0 < frames[0].seconds < frames[11].seconds < 1
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModuleNotFoundError, match="pip install opencv-python-headless"):
        video._reader()


# ---- pairs and cameras


@pytest.mark.parametrize("names,known,positions,is_video,rules", [
    ([f"{i}.jpg" for i in range(300)], 0, 300, True, ["all"]),
    ([f"frame_{i:05d}.png" for i in range(301)], 0, 0, False, ["sequential:10", "retrieval:20"]),
    ([f"DSC{i:04d}.JPG" for i in range(301)], 301, 0, False, ["retrieval:40"]),
    ([f"{i * i}.jpg" for i in range(301)], 0, 0, False, ["retrieval:40"]),
    ([f"{i * i}.jpg" for i in range(301)], 0, 301, False, ["spatial:1000,40"]),
    ([f"{i * i}.jpg" for i in range(301)], 0, 290, False, ["spatial:1000,40", "retrieval:20"]),
    ([f"{i * i}.jpg" for i in range(301)], 0, 100, True, ["sequential:10", "retrieval:20"]),
])
def test_pairs_follow_the_collection(names, known, positions, is_video, rules):
    assert steps.choose_pairs(names, steps.Counts(len(names), 0, known, positions), is_video)[0] == rules


def test_number_of_pairs(tmp_path):
    for rule, pairs in {"all": 4950, "sequential:3,quadratic": 600, "spatial:50,7": 700, "retrieval:3,v 1.npy": 300}.items():
        assert steps.pairs_at_most(rule, 100) == pairs
    for end in (b"\n", b"\r\n", b"\r"):
        (tmp_path / "pairs").write_bytes(b"a b" + end + b"c d" + end)
        assert steps.pairs_at_most(str(tmp_path / "pairs"), 100) == 2
        steps.check_pairs([str(tmp_path / "pairs")], ["c", "d"])


def test_vectors_of_a_file(tmp_path, monkeypatch):
    """The file counts by its absolute path and its content; a missing one is refused before anything is done."""
    monkeypatch.chdir(tmp_path)
    rule = steps.full_rule("retrieval:3,v,1.npy")
    assert rule == f"retrieval:3,{tmp_path / 'v,1.npy'}" and steps.full_rule("retrieval:3") == steps.pairs_key("retrieval:3") == "retrieval:3"
    for name, reason in (("v,1.npy", "v,1.npy"), ("v,1.txt", "v,1.txt")):
        with pytest.raises(hartsift.ArgumentError, match=f"there is no file '.*{reason}'"):
            steps.check_settings({"frames_per_second": 2.0, "masks": None, "pairs": [rule]})
        (tmp_path / name).write_text("")
    keys = {steps.pairs_key(rule)}
    for name in ("v,1.npy", "v,1.txt"):
        (tmp_path / name).write_text("changed")
        keys.add(steps.pairs_key(rule))
    assert len(keys) == 3


@pytest.mark.parametrize("rule,groups", [
    ("single", [[1, 2, 3, 4, 5], [6]]), ("folder", [[1, 2], [3, 4, 5], [6]]), ("file", [[1], [2], [3], [4], [5], [6]]),
    ("auto", [[1], [2, 3], [4, 5], [6]]),
])
def test_cameras(tmp_path, image, rule, groups):
    large, small = hartsift.extract(image, max_features=5), hartsift.extract(image[:100], max_features=5)
    with hartsift.ColmapDatabase(tmp_path / "a.db") as database:
        for name, features, focal in (("a/1", large, 300), ("a/2", large, 400), ("b/1", large, 400), ("b/2", large, 0),
                                      ("b/3", large, 0), ("b/4", small, 0)):
            database.add_image(f"{name}.jpg", features, focal_length=focal)
    assert steps.digest_of(tmp_path / "a.db", ["a/1.jpg"]) != steps.digest_of(tmp_path / "a.db", ["a/1.jpg", "a/2.jpg"])
    for _ in range(2):  # the second time nothing is left to do
        assert steps.share_cameras(tmp_path / "a.db", rule) == len(groups)
        with sqlite3.connect(tmp_path / "a.db") as connection:
            rows = connection.execute("SELECT image_id, camera_id FROM images").fetchall()
            assert connection.execute("SELECT count(*) FROM cameras").fetchone()[0] == len(groups)
        assert sorted([one for one, camera in rows if camera == number] for number in {camera for _, camera in rows}) == groups


# ---- transforms.json


def project_colmap(model, photograph, points):
    """Projects points by COLMAP's OPENCV camera."""
    fx, fy, cx, cy, k1, k2, p1, p2 = model.cameras[photograph.camera][3]
    return distort(points @ photograph.pose[:, :3].T + photograph.pose[:, 3], (fx, fy, cx, cy, k1, k2, p1, p2))


def distort(local, parameters):
    fx, fy, cx, cy, k1, k2, p1, p2 = parameters
    x, y = (local[:, :2] / local[:, 2:]).T
    r = x * x + y * y
    radial = 1 + k1 * r + k2 * r * r
    u, v = x * radial + 2 * p1 * x * y + p2 * (r + 2 * x * x), y * radial + 2 * p2 * x * y + p1 * (r + 2 * y * y)
    return np.c_[fx * u + cx, fy * v + cy]


def project_transforms(content, frame, points):
    """Projects points as nerfstudio does: from its world, by an OpenGL camera, to COLMAP's pixels."""
    applied = np.array(content["applied_transform"])
    to_camera = np.linalg.inv(np.array(frame["transform_matrix"]))
    local = (points @ applied[:, :3].T + applied[:, 3]) @ to_camera[:3, :3].T + to_camera[:3, 3]
    fields = {**content, **frame}
    return distort(local * [1, -1, -1], [fields[name] for name in ("fl_x", "fl_y", "cx", "cy", "k1", "k2", "p1", "p2")])


def known_model(cameras):
    random = np.random.default_rng(1)
    photographs = []
    for number in range(4):
        turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
        turn *= np.sign(np.linalg.det(turn))
        photographs.append(files.Photograph(number + 1, f"a b/{number}.jpg", sorted(cameras)[number % len(cameras)],
                                            np.c_[turn, random.normal(size=3) + [0, 0, 9]]))
    points = random.normal(size=(30, 3))
    return files.Model(cameras, photographs, points, random.integers(0, 256, (30, 3), np.uint8), np.full(30, 4), 0.5)


ONE = ("OPENCV", 640, 480, (500.0, 510.0, 321.0, 239.0, 0.1, -0.02, 0.003, -0.001))
TWO = ("SIMPLE_RADIAL", 320, 240, (300.0, 160.0, 120.0, 0.05))


@pytest.mark.parametrize("cameras", [{3: ONE}, {3: ONE, 7: TWO}])
def test_transforms_project_as_colmap(tmp_path, cameras):
    model = known_model(cameras)
    (tmp_path / "out").mkdir()
    files.write_transforms(tmp_path / "out" / "transforms.json", model, tmp_path / "photos",
                           lambda name: tmp_path / "masks" / f"{name}.png" if "2" in name else None)
    content = json.loads((tmp_path / "out" / "transforms.json").read_text())
    assert content["camera_model"] == "OPENCV" and content["ply_file_path"] == "sparse_pc.ply"
    assert [frame.get("mask_path") for frame in content["frames"]] == [None, None, "../masks/a b/2.jpg.png", None]
    assert len(content["frames"]) == 4 and ("w" in content) == (len(cameras) == 1)
    full = {number: (*one[:3], one[3] if one[0] == "OPENCV" else (one[3][0], *one[3], 0, 0, 0)) for number, one in cameras.items()}
    for frame, photograph in zip(content["frames"], model.photographs):
        assert frame["file_path"] == f"../photos/{photograph.name}" and frame["colmap_im_id"] == photograph.number
        wanted = project_colmap(files.Model(full, [], None, None, None, 0), photograph, model.points)
        np.testing.assert_allclose(project_transforms(content, frame, model.points), wanted, atol=1e-8)
        # instant-ngp: the middle of what the cameras see is the middle of its cube.
        at = np.array(frame["transform_matrix"])[:3, 3] * content["scale"] + content["offset"]
        assert np.linalg.norm(at - 0.5) < 3
    rows = (tmp_path / "out" / "sparse_pc.ply").read_text().splitlines()
    assert rows[2] == "element vertex 30" and len(rows) == 10 + 30
    first = model.points[0] @ np.array(content["applied_transform"])[:, :3].T
    np.testing.assert_allclose(np.array(rows[10].split()[:3], float), first, rtol=1e-6)


def test_report_is_one_page(tmp_path):
    model = known_model({3: ONE})
    files.write_report(tmp_path / "report.html", "<A & B>", model, {"points": "30"}, ["x<y>.jpg"], ["sparse/0"])
    page = (tmp_path / "report.html").read_text()
    assert "&lt;A &amp; B&gt;" in page and "x&lt;y&gt;.jpg" in page and "<td>30</td>" in page and "a b/3.jpg" in page
    assert "http" not in page and "src=" not in page and "@" not in page


# ---- the whole


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bar_over_all_steps():
    shown = {}
    for stream in (Terminal(), io.StringIO()):
        progress = _progress.Progress(stream, {"features": 0.25, "pairs": 0.75}, False)
        for step in ("features", "pairs"):
            with progress.step(step):
                progress._drawn = 0.0
                progress.show(5, 10)
            progress.say(f"{step} done")
        progress.end()
        shown[stream.isatty()] = stream.getvalue()
    assert shown[False] == "features done\npairs done\n"
    assert re.findall(r"(\d+) %", shown[True]) == ["0", "12", "25", "62"] and "pairs 5 of 10" in shown[True]
    assert shown[True].endswith("\r\x1b[K")


def refuse_and_keep(tmp_path, photographs, out):
    """Refuses settings, and checks that the results of the earlier run stay."""
    before = steps.digests_below(out)
    changing = {"database.db", "reconstruct.json"}
    (tmp_path / "masks").mkdir()
    for path in photographs.iterdir():
        (tmp_path / "masks" / f"{path.name}.png").write_text("no picture")
    for name, text in (("one", "bild\n"), ("unknown", "a.png b.png\n"), ("empty", "# none\n")):
        (tmp_path / name).write_text(text)
    for options, words in (
        ({"camera_params": (0, 200, 150, 0)}, "the earlier results stay: .*a focal length of the camera is not above 0"),
        ({"camera_params": (500, -9, 150, 0)}, "the earlier results stay: .*the principal point"),
        ({"masks": tmp_path / "masks"}, "the earlier results stay: .*.png: the content is neither PNG"),
        ({"masks": photographs}, "is the folder of the photographs"),
        ({"pairs": tmp_path / "one"}, "line 1: has one name, 'bild'"),
        ({"pairs": [tmp_path / "unknown"]}, "its first is 'a.png' and 'b.png'"),
        ({"pairs": tmp_path / "empty"}, "has no pairs"),
        ({"pairs": "spatial:10"}, "no photograph has a GPS position"),
    ):
        with pytest.raises(hartsift.Error, match=words):
            hartsift.reconstruct(photographs, out, undistorted=True, device="cpu", **options)
        after = steps.digests_below(out)
        assert after.keys() == before.keys(), options
        assert [name for name in before if after[name] != before[name] and name not in changing] == [], options


def test_poses_of_a_courtyard(tmp_path, photographs):
    pycolmap = pytest.importorskip("pycolmap")
    said = io.StringIO()
    found = hartsift.reconstruct(photographs, tmp_path / "out ö", progress=said, undistorted=True, device="cpu")
    assert (found.images, found.registered, found.failed, found.cameras, found.pairs) == (5, 5, 0, 1, ("all",))
    assert found.points > 100 and found.reprojection_error < 1 and "features: 5 images, 1 camera" in said.getvalue()
    out = pathlib.Path(found.folder)
    model = pycolmap.Reconstruction(str(out / "sparse" / "0"))
    content = json.loads((out / "transforms.json").read_text())
    points = np.array([one.xyz for one in model.points3D.values()])
    for frame in content["frames"]:
        assert (out / frame["file_path"]).exists()
        image = model.images[frame["colmap_im_id"]]
        pose = image.cam_from_world().matrix()
        pixels = model.cameras[image.camera_id].img_from_cam(points @ pose[:, :3].T + pose[:, 3])
        np.testing.assert_allclose(project_transforms(content, frame, points), pixels, atol=1e-6)
    assert len(list((out / "undistorted" / "images").iterdir())) == 5
    flat = pycolmap.Reconstruction(str(out / "undistorted" / "sparse" / "0"))  # as gaussian-splatting reads it
    assert {camera.model.name for camera in flat.cameras.values()} <= {"PINHOLE", "SIMPLE_PINHOLE"} and len(flat.images) == 5
    page, place = out / "report.html", out / "transforms.json"
    page.write_text("mine")
    place.write_text("{}")
    again = hartsift.reconstruct(photographs, out, progress=said, undistorted=True, device="cpu")
    assert again == found
    assert page.read_text() == "mine" and place.read_text() == "{}" and "transforms.json was changed since, and stays" in said.getvalue()
    with pytest.raises(hartsift.FileError, match="transforms.json: was changed after an earlier run, and is to be replaced"):
        hartsift.reconstruct(photographs, out, tracks=50, undistorted=True, device="cpu")
    page.unlink()
    place.unlink()
    assert hartsift.reconstruct(photographs, out, undistorted=True, device="cpu") == found
    assert json.loads(place.read_text()) == content and page.exists()
    refuse_and_keep(tmp_path, photographs, out)
    assert hartsift.reconstruct(photographs, out, undistorted=True, device="cpu") == found
    points_file = out / "sparse" / "0" / "points3D.bin"
    whole = points_file.stat().st_size
    os.truncate(points_file, whole // 2)  # a damaged model, which may be the user's, is not removed
    with pytest.raises(hartsift.FileError, match="points3D.bin: was changed after an earlier run, and is damaged: remove "):
        hartsift.reconstruct(photographs, out, progress=said, undistorted=True, device="cpu")
    assert points_file.stat().st_size == whole // 2
    shutil.rmtree(out / "sparse" / "0")
    hartsift.reconstruct(photographs, out, progress=said, undistorted=True, device="cpu")
    assert points_file.stat().st_size > whole // 2 and pycolmap.Reconstruction(str(out / "sparse" / "0")).num_points3D() > 100
    assert "sparse/0 was changed" not in said.getvalue()
    before = points_file.stat().st_mtime_ns
    assert "no pose" not in said.getvalue()
    picture = next((out / "undistorted" / "images").iterdir())
    picture.unlink()  # an incomplete folder is made again when asked for
    hartsift.reconstruct(photographs, out, progress=said, undistorted=True, device="cpu")
    assert picture.exists()
    mine = out / "undistorted" / "sparse" / "0" / "mine.txt"
    mine.write_text("mine")
    with pytest.raises(hartsift.FileError, match="mine.txt: is not from an earlier run"):
        hartsift.reconstruct(photographs, out, progress=said, tracks=50, mapper="incremental", device="cpu")
    assert mine.exists() and picture.exists() and points_file.stat().st_mtime_ns == before
    mine.unlink()
    hartsift.reconstruct(photographs, out, progress=said, tracks=50, mapper="incremental", device="cpu")
    assert "tracks was 2000, is 50: the mapper is done again" in said.getvalue()
    assert points_file.stat().st_mtime_ns != before and not (out / "undistorted").exists()


def without_digests(out, parts):
    """Changes the state of a reconstruction to one of a version that stored these parts of it."""
    state = json.loads((out / "reconstruct.json").read_text())
    written = {name: list(digests) for name, digests in state.pop("written").items()}
    state.update(model={path.name: path.stat().st_size for path in (out / "sparse" / "0").glob("*.bin")}, undistorted=state["mapped"])
    (out / "reconstruct.json").write_text(json.dumps({**state, **({"written": written} if "names" in parts else {})}))


def test_changed_models_are_kept(tmp_path, photographs):
    pycolmap = pytest.importorskip("pycolmap")
    out, said = tmp_path / "out", io.StringIO()
    sparse = out / "sparse" / "0"

    def run(**options):
        return hartsift.reconstruct(photographs, out, progress=said, mapper="incremental", device="cpu", **options)

    def points(folder):
        return pycolmap.Reconstruction(str(folder)).num_points3D()

    first = run(undistorted=True)
    # Damaged models are refused; earlier versions of pycolmap write no frames.
    checks = {"cameras": steps.read_model, **dict.fromkeys(("images", "points3D", "frames"), steps.check_changed)}
    for name, check in [one for one in checks.items() if (sparse / f"{one[0]}.bin").exists()]:
        for size in (0, 20, (sparse / f"{name}.bin").stat().st_size - 1):
            shutil.rmtree(tmp_path / "short", ignore_errors=True)
            shutil.copytree(sparse, tmp_path / "short")
            check(tmp_path / "short")
            os.truncate(tmp_path / "short" / f"{name}.bin", size)
            with pytest.raises(hartsift.FileError, match="short.*remove .*, and the same command makes it again"):
                check(tmp_path / "short")
    # A version that stored names and sizes, or sizes only: its results are known, also those of another size.
    picture = next((out / "undistorted" / "images").iterdir())
    for parts in ("names", ""):
        without_digests(out, parts)
        before = picture.stat().st_mtime_ns
        assert run(undistorted=True) == first and picture.stat().st_mtime_ns == before
    assert "changed" not in said.getvalue()
    model = pycolmap.Reconstruction(str(sparse))
    for number in list(model.points3D)[::2]:
        model.delete_point3D(number)
    without_digests(out, "")
    model.write(str(sparse))
    left = model.num_points3D()
    assert run(undistorted=True).points == left == points(out / "undistorted" / "sparse" / "0")
    assert f"element vertex {left}\n" in (out / "sparse_pc.ply").read_text() and "sparse/0 was changed since" in said.getvalue()
    # A change that keeps the sizes.
    pose = (out / "transforms.json").read_text()
    model.transform(pycolmap.Sim3d(2.0, pycolmap.Rotation3d(), np.zeros(3)))
    model.write(str(sparse))
    before = steps.model_digests(out / "undistorted" / "sparse" / "0")
    run(undistorted=True)
    assert (out / "transforms.json").read_text() != pose and steps.model_digests(out / "undistorted" / "sparse" / "0") != before
    with pytest.raises(hartsift.FileError, match=r"sparse.0.\w+.bin: was changed after an earlier run.*move the folder .*sparse elsewhere"):
        run(undistorted=True, tracks=50)
    assert points(sparse) == left and picture.exists()
    model.delete_point3D(next(iter(model.points3D)))
    model.write(str(sparse))
    assert run().points == left - 1 and not (out / "undistorted").exists() and "undistorted: removed" in said.getvalue()
    (out / "sparse").rename(tmp_path / "mine")
    assert run(tracks=50).points not in (left - 1, first.points) and "tracks was 2000, is 50" in said.getvalue()
    # Results of a version that stored no names are replaced, other files are not.
    without_digests(out, "")
    (sparse / "mine.txt").write_text("mine")
    with pytest.raises(hartsift.FileError, match="mine.txt: is not from an earlier run"):
        run(tracks=60)
    (sparse / "mine.txt").unlink()
    (tmp_path / "notes").mkdir()
    for make, remove in ((lambda path: path.mkdir(), pathlib.Path.rmdir), (lambda path: path.symlink_to(tmp_path / "notes"), pathlib.Path.unlink)):
        make(out / "sparse" / "notes")
        with pytest.raises(hartsift.FileError, match="sparse/notes: is not from an earlier run"):
            run(tracks=60)
        remove(out / "sparse" / "notes")
    before = (sparse / "points3D.bin").stat().st_mtime_ns
    run(tracks=60)
    assert (sparse / "points3D.bin").stat().st_mtime_ns != before and not (out / "undistorted").exists()


@pytest.fixture
def program(tmp_path, photographs):
    """Starts the command with a mapper that finds nothing."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "pycolmap.py").write_text(FAKE_MAPPER)
    paths = [str(tmp_path / "fake"), str(pathlib.Path(hartsift.__file__).parents[1])]

    def start(*arguments):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "hartsift", "reconstruct", *map(str, arguments), "--device", "cpu", "--threads", "1"]
        return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)

    return start


def test_killed_and_continued(tmp_path, photographs, program):
    with program(photographs, "-o", tmp_path / "whole") as whole:
        assert "no model: 10 pairs match" in whole.stderr.read() and whole.wait() == 1
    for out in (tmp_path / f"out{number}" for number in range(20)):  # the second run may end before the signal
        with program(photographs, "-o", out) as first:
            while not (out / "database.db").exists() and first.poll() is None:
                time.sleep(0.005)
            first.kill()
        with program(photographs, "-o", out) as second:
            for line in second.stderr:
                if line.startswith("pairs: all"):
                    second.send_signal(signal.SIGINT)
                    break
            text, status = second.stderr.read(), second.wait()
        if status == 130:
            break
    assert "stopped; the same command continues" in text and status == 130
    with program(photographs, "-o", out) as third:
        assert "no model: 10 pairs match" in third.stderr.read() and third.wait() == 1
    assert content(out / "database.db") == content(tmp_path / "whole" / "database.db")


@pytest.mark.parametrize("number,status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_in_the_mapper(tmp_path, photographs, program, monkeypatch, number, status):
    monkeypatch.setenv("HANG", "1")
    with program(photographs, "-o", tmp_path / "out", "--mapper", "incremental") as running:
        for line in running.stderr:
            if line == "mapping\n":
                running.send_signal(number)
                break
        assert running.stderr.read() == "stopped; the same command continues\n" and running.wait() == status
    assert not (tmp_path / "out" / ".sparse.tmp").exists()


def test_stopped_in_the_import(tmp_path):
    (tmp_path / "numpy.py").write_text("import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(300)\n")
    paths = os.pathsep.join([str(tmp_path), str(pathlib.Path(hartsift.__file__).parents[1])])
    with subprocess.Popen([sys.executable, "-m", "hartsift", "reconstruct", "-h"], env={**os.environ, "PYTHONPATH": paths},
                          stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline() == "importing\n"
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == "" and running.wait() == -signal.SIGINT


def test_changed_options_and_photographs(tmp_path, photographs, program):
    folder, out = tmp_path / "photos", tmp_path / "out"
    shutil.copytree(photographs, folder)
    pictures = sorted(folder.iterdir())
    video.write_png(folder / "other size.png", np.dstack([hartsift.load_image(pictures[0])[:200]] * 3))
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno")

    def run(*arguments):
        with program(folder, "-o", out, *arguments) as running:
            return running.stderr.read()

    text = run()
    assert text.count("broken.png") == 1 and "6 images, 2 cameras" in text
    assert "broken.png: damaged PNG" in run("-q").splitlines()[0]
    (out / "transforms.json").mkdir()
    mine = [out / "database.db-backup", out / "database.db.manifest-mine.txt", out / "database.db.manifest.csv.old"]
    for path in mine:
        path.write_text("mine")
    assert "transforms.json: is a folder" in run("--camera", "file") and (out / "database.db").exists()
    (out / "transforms.json").rmdir()
    text = run("--pairs", "sequential:1", "--camera", "file")
    assert all(path.exists() for path in mine)
    assert "camera was 'auto', is 'file': features are done again" in text and "6 images, 6 cameras" in text
    assert "pairs: sequential:1 (given" in text
    with sqlite3.connect(out / "database.db") as connection:
        assert connection.execute("SELECT count(*) FROM matches").fetchone()[0] == 5
    for number in (1, 2):  # the content of a file of pairs counts
        (tmp_path / "pairs").write_text("".join(f"{pictures[0].name}\t{path.name}\n" for path in pictures[1 : 1 + number]))
        text = run("--pairs", tmp_path / "pairs", "--camera", "file")
        assert "pairs are done again" in text
        with sqlite3.connect(out / "database.db") as connection:
            assert connection.execute("SELECT count(*) FROM matches").fetchone()[0] == number
    pictures[0].unlink()
    text = run("--pairs", "all", "--camera", "file")
    assert "1 images of the database are no longer there" in text and "5 images" in text
    pictures[1].write_bytes(b"")  # its features are still in the database
    text = run("--pairs", "all", "--camera", "file")
    assert f"{pictures[1].name}: the file is empty" in text and "features: 4 images" in text


# ---- errors


def test_errors_name_the_folder_and_the_way_out(tmp_path, photographs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycolmap", type(sys)("pycolmap"))
    one, none, foreign, damaged = (tmp_path / name for name in ("one", "none", "foreign", "damaged"))
    for folder in (one, none, foreign, damaged):
        folder.mkdir()
    (damaged / "reconstruct.json").write_text('{"settings": {}, "written": {"sparse": 3}}')
    for text in ('{"written": {"sparse": [3]}}', '{"written": {"sparse": {"a": 3}}}', '{"model": {"a": "b"}}', '{"files": {"a": 3}}',
                 '{"pairs": 3}', '{"mapper": null}', "[]"):
        assert not reconstruct_module._is_sound(json.loads(text))
    (foreign / ".DS_Store").write_text("of no importance")
    shutil.copy(sorted(photographs.iterdir())[0], one)
    (none / "notes.txt").write_text("no picture")
    (foreign / "thesis.tex").write_text("mine")
    out = tmp_path / "out"
    for photos, output, options, kind, words in (
        (none, out, {}, hartsift.FileError, "no photographs there.*1 .txt"),
        (one, tmp_path / "out1", {}, hartsift.FileError, "one photograph there: a reconstruction needs two"),
        (photographs, foreign, {}, hartsift.FileError, r"^[^:]*foreign: is not empty and no .*\(it has thesis.tex\): choose"),
        (photographs, damaged, {}, hartsift.FileError, "reconstruct.json: is damaged: choose another"),
        (photographs, foreign / "thesis.tex", {}, hartsift.FileError, "is a file: expected a new folder"),
        (photographs, "", {}, hartsift.ArgumentError, "name of the output is empty"),
        (photographs, foreign / "thesis.tex" / "x", {}, hartsift.FileError, "Not a directory"),
        (photographs, photographs / "out", {}, hartsift.ArgumentError, "in the folder of the photographs"),
        (photographs, out, {}, hartsift.ArgumentError, "is the reconstruction of .*none, not of"),
        (tmp_path / "nowhere", out, {}, hartsift.FileError, "no such folder or video"),
        (none / "notes.txt", out, {}, hartsift.ArgumentError, "expected a folder of photographs, or a video"),
        (photographs, tmp_path / "out2", {"mapper": "best"}, hartsift.ArgumentError, "mapper is 'best', expected one of 'auto'"),
        (photographs, tmp_path / "out2", {"trakcs": 3}, hartsift.ArgumentError, "trakcs: there is no such option"),
        (photographs, tmp_path / "out2", {"camera_model": "ROUND"}, hartsift.ArgumentError, "^--camera-model.*ROUND"),
        (photographs, tmp_path / "out2", {"pairs": "nonsense"}, hartsift.ArgumentError, "^--pairs '.*nonsense': there is no such file"),
        (photographs, tmp_path / "out2", {"pairs": "retrieval:x"}, hartsift.ArgumentError, "^--pairs 'retrieval:x': expected retrieval:K"),
        (photographs, tmp_path / "out2", {"tracks": -5}, hartsift.ArgumentError, "^--tracks '-5'"),
        (photographs, tmp_path / "out2", {"masks": str(none / "x")}, hartsift.ArgumentError, "^--masks"),
        (photographs, tmp_path / "out2", {"frames_per_second": float("nan")}, hartsift.ArgumentError, "frames_per_second is nan"),
    ):
        with pytest.raises(kind, match=words):
            hartsift.reconstruct(photos, output, **options)
    assert not (tmp_path / "out2").exists()


def test_unreadable_photographs(tmp_path, monkeypatch):
    fake = type(sys)("pycolmap")
    exec(FAKE_MAPPER, fake.__dict__)
    monkeypatch.setitem(sys.modules, "pycolmap", fake)
    photos = tmp_path / "photos"
    photos.mkdir()
    for name in ("a.png", "b.jpg"):
        (photos / name).write_text("no picture")
    with pytest.raises(hartsift.FileError, match="none of the 2 photographs can be read; .*[ab].(png|jpg): the content is neither PNG"):
        hartsift.reconstruct(photos, tmp_path / "out", device="cpu")
    video.write_png(photos / "a.png", np.dstack([hartsift.load_image("@scene:160x120:1")] * 3))
    with pytest.raises(hartsift.FileError, match="only one of the 2 photographs can be read; .*b.jpg"):
        hartsift.reconstruct(photos, tmp_path / "out", device="cpu")


def test_failures_of_the_command(tmp_path, monkeypatch):
    command = tmp_path / "command"
    command.write_text(f"""#!{sys.executable}
import sys
print('{{"image": "a.png", "status": "HS_OK", "error": null}}\\n{{"image": "b.png", "status": "HS_ERR_FORMAT", "error": "empty"}}')
print('{{"summary": {{"images": ' + sys.argv[1] + ', "done": 1, "kept": 0, "failed": 1}}}}')
print("hartsift batch: a.db: the disk is full; stopped, --resume continues", file=sys.stderr)
sys.exit(1)
""")
    command.chmod(0o755)
    monkeypatch.setattr(steps._library, "command_path", lambda: str(command))
    said = []
    assert steps.run_command(["2"], -1, said.append, lambda number: None) == ["b.png"] and len(said) == 1
    with pytest.raises(hartsift.FileError, match="^a.db: the disk is full; the same command continues$"):  # a third image is missing
        steps.run_command(["3"], -1, said.append, lambda number: None)


def test_photographs_without_overlap(tmp_path, monkeypatch):
    fake = type(sys)("pycolmap")
    exec(FAKE_MAPPER, fake.__dict__)
    monkeypatch.setitem(sys.modules, "pycolmap", fake)
    photos = tmp_path / "data" / "images"  # where InstantSfM wants them
    photos.mkdir(parents=True)
    for seed in (1, 2, 3):
        video.write_png(photos / f"{seed}.png", np.dstack([hartsift.load_image(f"@scene:160x120:{seed}")] * 3))
    with pytest.raises(hartsift.FileError, match="no two of the 3 photographs show the same place with enough overlap"):
        hartsift.reconstruct(photos, tmp_path / "data", device="cpu")
    assert (tmp_path / "data" / "database.db").exists()


def test_command_names_the_package():
    program = os.environ.get("HARTSIFT_COMMAND") or pytest.skip("HARTSIFT_COMMAND does not name the command")
    ended = subprocess.run([program, "reconstruct", "photos"], check=False, capture_output=True, text=True)
    assert ended.returncode == 2 and "python -m hartsift reconstruct" in ended.stderr


def test_lines_of_the_page_are_understood():
    page = TUTORIALS.parent / "guide" / "tools.md"
    if not page.exists():
        pytest.skip("the page is not there")
    lines = re.findall(r"python -m hartsift reconstruct ([^#`\n]*)", page.read_text(encoding="utf-8"))
    assert len(lines) > 1
    for line in lines:
        assert reconstruct_module._parser().parse_args(line.split()).output


def test_missing_pycolmap(tmp_path, photographs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycolmap", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pycolmap"):
        hartsift.reconstruct(photographs, tmp_path / "out")
    assert not (tmp_path / "out").exists()
