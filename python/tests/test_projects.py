"""Features in the files of AliceVision, openMVG and Bundler, each read back as the program's sources read it."""

import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest

import hartsift
import hartsift.alicevision
import hartsift.bundler
import hartsift.openmvg
import hartsift.pypopsift

SIZE = "160x120"


def write_pgm(path, pixels):
    path.write_bytes(b"P5\n%d %d\n255\n" % pixels.shape[::-1] + np.ascontiguousarray(pixels).tobytes())


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of four pictures, 0.pgm to 3.pgm."""
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(4):
        write_pgm(folder / f"{number}.pgm", hartsift.load_image(f"@scene:{SIZE}:{number + 1}"))
    return folder


def read_pair(stem):
    """Both files as AliceVision and openMVG read them: floats in text; a 64-bit count and 128 bytes each."""
    places = [[float(word) for word in line.split()] for line in pathlib.Path(f"{stem}.feat").read_text().splitlines()]
    content = pathlib.Path(f"{stem}.desc").read_bytes()
    (count,) = struct.unpack_from("<Q", content)
    return np.array(places, np.float32), np.frombuffer(content, np.uint8, offset=8).reshape(count, 128)


def expected_pair(picture, **options):
    features = hartsift.extract(picture, norm="root", layout="vlfeat", **options)
    return features.keypoints, features.descriptors


def assert_pair(stem, picture, **options):
    for mine, wanted in zip(read_pair(stem), expected_pair(picture, **options)):
        np.testing.assert_array_equal(mine, wanted)


# ---- AliceVision

VIEW_IDS = (4294967290, 77, 1203, 5)


@pytest.fixture
def sfm_data(pictures, tmp_path):
    """In the form of Meshroom's CameraInit: numbers are text, in any order."""
    views = [
        {"viewId": str(number), "poseId": str(number), "path": str(pictures / f"{i}.pgm"), "width": "160", "height": "120"}
        for i, number in enumerate(VIEW_IDS)
    ]
    path = tmp_path / "cameraInit.sfm"
    path.write_text(json.dumps({"version": ["1", "2", "8"], "views": views, "intrinsics": []}))
    return path


def test_alicevision_views(sfm_data, pictures, tmp_path):
    out = tmp_path / "features"
    assert hartsift.alicevision.extract(sfm_data, out, max_features=100) == 4
    assert sorted(one.name for one in out.iterdir()) == sorted(
        f"{number}.sift.{ending}" for number in VIEW_IDS for ending in ("feat", "desc")
    )
    for i, number in enumerate(VIEW_IDS):
        assert_pair(out / f"{number}.sift", pictures / f"{i}.pgm", max_features=100)


def test_alicevision_chunks_are_by_number(sfm_data, tmp_path):
    """Chunk by chunk, in the order of view ids, as in AliceVision's map of views."""
    out = tmp_path / "features"
    order = sorted(VIEW_IDS)
    for start, expected in ((0, order[:3]), (3, order[3:]), (6, [])):
        before = {one.name for one in out.iterdir()} if out.exists() else set()
        count = hartsift.alicevision.extract(sfm_data, out, range_start=start, range_size=3, max_features=10)
        new = {one.name for one in out.iterdir()} - before
        assert count == len(expected)
        assert new == {f"{number}.sift.{ending}" for number in expected for ending in ("feat", "desc")}
    with pytest.raises(hartsift.ArgumentError, match="range"):
        hartsift.alicevision.extract(sfm_data, out, range_start=-2)


def test_alicevision_goes_on_where_it_was_interrupted(sfm_data, tmp_path):
    out = tmp_path / "features"
    hartsift.alicevision.extract(sfm_data, out, max_features=10)
    (out / "77.sift.feat").unlink()
    (out / "5.sift.desc").unlink()
    kept = (out / "1203.sift.feat").stat().st_mtime_ns
    assert hartsift.alicevision.extract(sfm_data, out, max_features=10) == 2
    assert (out / "1203.sift.feat").stat().st_mtime_ns == kept
    assert hartsift.alicevision.extract(sfm_data, out, max_features=10, again=True) == 4


def test_alicevision_masks(sfm_data, pictures, tmp_path):
    """By view id, or else by name; black drops keypoints, or white if inverted."""
    masks = tmp_path / "masks"
    masks.mkdir()
    left = np.zeros((120, 160), np.uint8)
    left[:, :80] = 255
    write_pgm(masks / "77.pgm", left)
    write_pgm(masks / "3.pgm", left)
    for inverted in (False, True):
        out = tmp_path / f"features{inverted}"
        hartsift.alicevision.extract(sfm_data, out, masks=masks, mask_ending=".pgm", mask_inverted=inverted)
        for number, name in ((77, "1.pgm"), (5, "3.pgm")):
            wanted = hartsift.extract(pictures / name, left if not inverted else 255 - left, norm="root")
            np.testing.assert_array_equal(read_pair(out / f"{number}.sift")[0], wanted.keypoints)
        assert_pair(out / "1203.sift", pictures / "2.pgm")


def run_module(name, *arguments, status=0):
    command = [sys.executable, "-m", f"hartsift.{name}", *map(str, arguments)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == status, ended.stderr
    return ended.stderr


def test_alicevision_program(sfm_data, pictures, tmp_path):
    """The arguments that Meshroom gives aliceVision_featureExtraction."""
    out = tmp_path / "features"
    said = run_module(
        "alicevision", "--input", sfm_data, "--masksFolder", "", "--maskExtension", "png", "--maskInvert", "False", "--describerTypes",
        "sift", "--describerPreset", "normal", "--describerQuality", "normal", "--contrastFiltering", "GridSort",
        "--gridFiltering", "True", "--maxNbFeatures", "50", "--workingColorSpace", "sRGB", "--forceCpuExtraction", "True",
        "--maxThreads", "0", "--verboseLevel", "info", "--output", out, "--rangeStart", "1", "--rangeSize", "2",
    )  # fmt: skip
    assert "2 views" in said and "--describerQuality normal" in said
    assert_pair(out / "77.sift", pictures / "1.pgm", max_features=50, grid=(4, 4))
    assert "sift is the only one" in run_module("alicevision", "-i", sfm_data, "-o", out, "-d", "akaze", status=2)


def test_alicevision_refuses(pictures, tmp_path):
    project = tmp_path / "no.sfm"
    with pytest.raises(hartsift.FileError, match="cannot be read"):
        hartsift.alicevision.extract(project, tmp_path)
    for content, why in (("[]", "no list of views"), ('{"views": [{"path": "a.png"}]}', "without viewId"), ("{", "JSON")):
        project.write_text(content)
        with pytest.raises(hartsift.FileError, match=why):
            hartsift.alicevision.extract(project, tmp_path)


# ---- openMVG


@pytest.fixture
def openmvg_data(pictures, tmp_path):
    """In the form of openMVG_main_SfMInit_ImageListing."""
    views = [
        {
            "key": i,
            "value": {
                "polymorphic_id": 1073741824,
                "ptr_wrapper": {
                    "id": 2147483649 + i,
                    "data": {"local_path": "", "filename": f"{i}.pgm", "width": 160, "height": 120, "id_view": i,
                             "id_intrinsic": 0, "id_pose": i},
                },
            },
        }
        for i in range(4)
    ]  # fmt: skip
    path = tmp_path / "sfm_data.json"
    path.write_text(json.dumps({"sfm_data_version": "0.3", "root_path": str(pictures), "views": views}))
    return path


def test_openmvg_folder(openmvg_data, pictures, tmp_path):
    out = tmp_path / "matches"
    assert hartsift.openmvg.extract(openmvg_data, out, max_features=80, upright=True, contrast=0.03) == 4
    for i in range(4):
        assert_pair(out / str(i), pictures / f"{i}.pgm", max_features=80, upright=True, contrast=0.03)
    said = json.loads((out / "image_describer.json").read_text())
    assert said["regions_type"]["polymorphic_name"] == "SIFT_Regions"
    assert said["regions_type"]["ptr_wrapper"] == {"valid": 1, "data": {"value0": [], "value1": []}}
    describer = said["image_describer"]["ptr_wrapper"]["data"]
    assert describer["bOrientation"] is False
    assert describer["params"]["peak_threshold"] == pytest.approx(0.03)
    assert describer["params"]["root_sift"] is True and describer["params"]["first_octave"] == -1
    assert not [one for one in out.iterdir() if one.name.startswith(".")]
    assert hartsift.openmvg.extract(openmvg_data, out) == 0


def test_openmvg_program_and_masks(openmvg_data, pictures, tmp_path):
    images = tmp_path / "images"
    shutil.copytree(pictures, images)
    content = json.loads(openmvg_data.read_text())
    content["root_path"] = str(images)
    openmvg_data.write_text(json.dumps(content))
    mask = np.zeros((120, 160), np.uint8)
    mask[60:] = 1
    (images / "2_mask.png").write_bytes(b"P5\n160 120\n255\n" + mask.tobytes())  # told apart by content
    out = tmp_path / "matches"
    assert "4 views" in run_module("openmvg", "-i", openmvg_data, "-o", out, "--max-features", 60)
    assert_pair(out / "1", images / "1.pgm", max_features=60)
    wanted = hartsift.extract(images / "2.pgm", mask, norm="root", max_features=60)
    np.testing.assert_array_equal(read_pair(out / "2")[0], wanted.keypoints)


def test_openmvg_refuses_names_that_repeat(openmvg_data, tmp_path):
    content = json.loads(openmvg_data.read_text())
    content["views"][1]["value"]["ptr_wrapper"]["data"].update(local_path="below", filename="0.jpg")
    openmvg_data.write_text(json.dumps(content))
    with pytest.raises(hartsift.ArgumentError, match="called 0"):
        hartsift.openmvg.extract(openmvg_data, tmp_path / "matches")


# ---- Bundler


def lists(*counts):
    """Features with unique positions."""
    return [
        hartsift.Features.from_arrays(np.arange(2 * n).reshape(n, 2), image_size=(100, 80)) for n in counts
    ]


def tracks_of(tracks):
    return [
        list(zip(tracks.images[a:b].tolist(), tracks.features[a:b].tolist()))
        for a, b in zip(tracks.starts, tracks.starts[1:])
    ]


def test_tracks_by_hand():
    matched = [(0, 1, [[0, 1], [1, 0]]), (1, 2, [[1, 4]]), (2, 3, [[4, 0], [2, 2]]), (0, 3, np.empty((0, 2), int))]
    tracks = hartsift.bundler.build_tracks(lists(2, 2, 5, 3), matched)
    assert tracks_of(tracks) == [[(0, 0), (1, 1), (2, 4), (3, 0)], [(0, 1), (1, 0)], [(2, 2), (3, 2)]]
    assert tracks.dropped == 0 and len(tracks) == 3
    assert tracks_of(hartsift.bundler.build_tracks(lists(2, 2, 5, 3), matched, least=3)) == tracks_of(tracks)[:1]
    assert len(hartsift.bundler.build_tracks(lists(3, 3), [])) == 0


def test_tracks_with_two_features_of_an_image_are_dropped():
    matched = [(0, 1, [[0, 0], [2, 2]]), (1, 2, [[0, 0]]), (0, 2, [[1, 0]])]
    tracks = hartsift.bundler.build_tracks(lists(3, 3, 3), matched)
    assert tracks_of(tracks) == [[(0, 2), (1, 2)]] and tracks.dropped == 1
    # Features at one position are one point with two orientations.
    first, second, third = lists(3, 3, 3)
    first.records["x"][1], first.records["y"][1] = first.records["x"][0], first.records["y"][0]
    tracks = hartsift.bundler.build_tracks([first, second, third], matched)
    assert tracks_of(tracks) == [[(0, 0), (1, 0), (2, 0)], [(0, 2), (1, 2)]] and tracks.dropped == 0


def test_tracks_are_connected_components():
    """Compared with a search of the graph, node by node."""
    random = np.random.default_rng(4)
    for _ in range(20):
        counts = random.integers(1, 40, 5)
        matched = []
        for _ in range(12):
            a, b = random.choice(5, 2, replace=False)
            pairs = np.stack([random.integers(0, counts[a], 4), random.integers(0, counts[b], 4)], 1)
            matched.append((int(a), int(b), pairs))
        near = {}
        for a, b, pairs in matched:
            for i, j in pairs.tolist():
                near.setdefault((a, i), set()).add((b, j))
                near.setdefault((b, j), set()).add((a, i))
        components, seen = [], set()
        for node in sorted(near):
            if node not in seen:
                component, ahead = set(), [node]
                while ahead:
                    one = ahead.pop()
                    if one not in component:
                        component.add(one)
                        ahead.extend(near[one])
                seen |= component
                components.append(sorted(component))
        clean = [c for c in components if len({image for image, _ in c}) == len(c)]
        tracks = hartsift.bundler.build_tracks(lists(*counts), matched)
        assert tracks_of(tracks) == clean and tracks.dropped == len(components) - len(clean)


def test_tracks_refuse_what_is_not_there():
    with pytest.raises(hartsift.ArgumentError, match="image 2 of 2"):
        hartsift.bundler.build_tracks(lists(3, 3), [(0, 2, [[0, 0]])])
    with pytest.raises(hartsift.ArgumentError, match="beyond the features of image 1"):
        hartsift.bundler.build_tracks(lists(3, 3), [(0, 1, [[0, 3]])])


def test_bundle_refuses_names_and_places_that_would_spoil_it(tmp_path):
    features = [hartsift.Features.from_arrays([[3, 4]], image_size=(16, 12))] * 2
    tracks = hartsift.bundler.build_tracks(features, [(0, 1, [[0, 0]])])
    with pytest.raises(hartsift.ArgumentError, match="line break"):
        hartsift.bundler.write(tmp_path / "b.out", ["a\nb", "c"], features, tracks)
    with pytest.raises(hartsift.FileError, match="surrogates"):
        hartsift.bundler.write(tmp_path / "b.out", ["\udcff", "c"], features, tracks)
    assert not list(tmp_path.iterdir())
    os.mkfifo(tmp_path / "pipe")  # stands for /dev/stdout and other devices
    with pytest.raises(hartsift.FileError, match="no regular file"):
        hartsift.bundler.write(tmp_path / "pipe", ["a", "c"], features, tracks)
    assert (tmp_path / "pipe").is_fifo() and [one.name for one in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("pair, data", [(2, None), (2, b"abc"), (2, "text"), (9, bytes(8))])
def test_bundle_of_a_damaged_database(tmp_path, pair, data):
    features = hartsift.Features.from_arrays([[3, 4]], image_size=(16, 12))
    with hartsift.ColmapDatabase(tmp_path / "d.db") as database:
        for name in ("0.jpg", "1.jpg"):
            database.add_image(name, features)
    with contextlib.closing(sqlite3.connect(str(tmp_path / "d.db"))) as sql:
        row = "INSERT INTO two_view_geometries (pair_id, rows, cols, data, config) VALUES (?, 1, 2, ?, 2)"
        sql.execute(row, (2147483647 + pair, data))
        sql.commit()
    with pytest.raises(hartsift.FileError, match="damaged, or of no image"):
        hartsift.bundler.convert(tmp_path / "d.db", tmp_path / "bundle.out")


@pytest.mark.parametrize("view", [{"data": "x"}, {"data": {"filename": "/", "id_view": 1}},
                                  {"data": {"filename": "a.pgm", "id_view": float("inf")}}])  # fmt: skip
def test_openmvg_views_that_are_none(tmp_path, view):
    project = {"root_path": str(tmp_path), "views": [{"value": {"ptr_wrapper": view}}]}
    (tmp_path / "sfm_data.json").write_text(json.dumps(project))
    with pytest.raises(hartsift.FileError, match="a view without"):
        hartsift.openmvg.extract(tmp_path / "sfm_data.json", tmp_path / "out")


def read_bundle(path):
    """Cameras and points with (camera, key, x, y) of a Bundler file, by its specification."""
    lines = path.read_text().splitlines()
    assert lines[0] == "# Bundle file v0.3"
    cameras, points = map(int, lines[1].split())
    words = iter(" ".join(lines[2:]).split())
    focal = [[float(next(words)) for _ in range(15)][0] for _ in range(cameras)]
    tracks = []
    for _ in range(points):
        for _ in range(6):
            next(words)
        length = int(next(words))
        tracks.append([(int(next(words)), int(next(words)), float(next(words)), float(next(words))) for _ in range(length)])
    assert next(words, None) is None
    return focal, tracks


def test_bundle_of_a_database(tmp_path):
    """hartsift's database of two overlapping views becomes tracks; positions have their origin in the centre and y
    upwards."""
    scene = hartsift.load_image("@scene:260x200:9")
    features = [hartsift.extract(np.ascontiguousarray(scene[:, x : x + 200]), profile="colmap") for x in (0, 60)]
    (found,) = hartsift.match_many(features, [(0, 1)], verify="fundamental")
    with hartsift.ColmapDatabase(tmp_path / "d.db") as database:
        numbers = [database.add_image(f"{i}.jpg", one) for i, one in enumerate(features)]
        database.add_matches(*numbers, found.matches, found.geometry)
    tracks = hartsift.bundler.convert(tmp_path / "d.db", tmp_path / "bundle.out")
    assert (tmp_path / "bundle.out.list.txt").read_text() == "0.jpg\n1.jpg\n"
    focal, seen = read_bundle(tmp_path / "bundle.out")
    assert focal == pytest.approx([240, 240]) and len(seen) == len(tracks) > 50
    for (a, i, x, y), (b, j, u, v) in seen:
        assert (a, b) == (0, 1)
        assert (x, y) == pytest.approx((features[0].points[i] + 0.5 - [100, 100]) * [1, -1], abs=1e-4)
        assert (x - 60, y) == pytest.approx((u, v), abs=3)  # the second view begins 60 pixels further right
    assert "tracks" in run_module("bundler", tmp_path / "d.db", "-o", tmp_path / "again.out")
    assert (tmp_path / "again.out").read_bytes() == (tmp_path / "bundle.out").read_bytes()
    with hartsift.ColmapDatabase(tmp_path / "unmatched.db") as database:
        database.add_image("0.jpg", features[0])
    with pytest.raises(hartsift.FileError, match="no verified matches: hartsift match --database"):
        hartsift.bundler.convert(tmp_path / "unmatched.db", tmp_path / "none.out")
    assert not (tmp_path / "none.out").exists()
    direct = hartsift.bundler.build_tracks(features, [found])
    assert tracks_of(direct) == tracks_of(tracks)


def test_bundle_beside_colmaps(tmp_path):
    """The observations that COLMAP's model_converter writes for a model with the same tracks."""
    colmap = shutil.which("colmap")
    if not colmap:
        pytest.skip("needs Debian's colmap, which a GPU host may lack")
    random = np.random.default_rng(2)
    features = [hartsift.Features.from_arrays(random.uniform(0, 119, (20, 2)), image_size=(160, 120)) for _ in range(2)]
    tracks = hartsift.bundler.build_tracks(features, [(0, 1, [[i, (7 * i) % 20] for i in range(20)])])
    hartsift.bundler.write(tmp_path / "mine.out", ["a.png", "b.png"], features, tracks, [100, 100])
    (tmp_path / "cameras.txt").write_text("1 SIMPLE_PINHOLE 160 120 100 80 60\n")
    points_of = {who: t for t, track in enumerate(tracks_of(tracks)) for who in track}
    rows = []
    for i, name in enumerate(("a.png", "b.png")):
        places = [f"{x + 0.5:.9g} {y + 0.5:.9g} {points_of.get((i, k), -2) + 1}" for k, (x, y) in enumerate(features[i].points)]
        rows.append(f"{i + 1} 1 0 0 0 0 0 0 1 {name}\n{' '.join(places)}\n")
    (tmp_path / "images.txt").write_text("".join(rows))
    (tmp_path / "points3D.txt").write_text(
        "".join(
            f"{t + 1} 0 0 1 128 128 128 0.5 {' '.join(f'{i + 1} {k}' for i, k in track)}\n"
            for t, track in enumerate(tracks_of(tracks))
        )
    )
    subprocess.run(
        [colmap, "model_converter", "--input_path", tmp_path, "--output_path", tmp_path / "theirs", "--output_type", "Bundler"],
        check=True, env={"QT_QPA_PLATFORM": "offscreen"}, capture_output=True,
    )  # fmt: skip
    theirs = next(path for path in tmp_path.glob("theirs*") if path.name.endswith((".bundle.out", "theirs")))
    mine, others = (sorted(sorted(track) for track in read_bundle(path)[1]) for path in (tmp_path / "mine.out", theirs))
    assert len(mine) == len(others) == 20
    for one, other in zip(mine, others):
        for a, b in zip(one, other):
            assert a[:2] == b[:2] and a[2:] == pytest.approx(b[2:], abs=1e-4)


# ---- OpenSfM


def test_popsift(image):
    """OpenSfM's result for SIFT_GPU: all features of the first threshold that gives enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the CPU
        points, descriptors = hartsift.pypopsift.popsift(image, 0.5, 10, target_num_features=300, use_root=True)
    threshold = 0.5
    while len(hartsift.extract(image, contrast=threshold)) < 300:
        threshold = threshold * 2 / 3
    assert threshold < 0.5
    wanted = hartsift.extract(image, contrast=threshold, norm="root", descriptor="f32")
    assert points.dtype == descriptors.dtype == np.float32
    np.testing.assert_array_equal(points, wanted.keypoints)
    np.testing.assert_array_equal(descriptors, wanted.descriptors)


def test_popsift_has_an_end(image):
    """A picture with fewer features than requested gives all; gray with a third axis is gray."""
    flat = np.full((40, 40, 1), 99, np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points, descriptors = hartsift.pypopsift.popsift(flat, target_num_features=10)
        assert points.shape == (0, 4) and descriptors.shape == (0, 128)
        plain, _ = hartsift.pypopsift.popsift(image[..., None], 0.04, 10, 1, False, 0)
    np.testing.assert_array_equal(plain, hartsift.extract(image, first_octave=0).keypoints)
    with pytest.raises(hartsift.ArgumentError, match="whole"):
        hartsift.pypopsift.popsift(image, downsampling=0.5)


def test_fits_texture_takes_floats(monkeypatch):
    """OpenSfM's callers scale sizes; sizes are rounded up, and invalid sizes are refused."""
    asked = []
    monkeypatch.setattr(hartsift.pypopsift, "workspace_bytes", lambda *size, device, first_octave: asked.append((*size, device)))
    for size in ((320.0, 240.2), (np.float32(319.5), np.float64(240.9)), (np.int64(320), 241)):
        assert hartsift.pypopsift.fits_texture(*size)
    assert asked == [(320, 241, "cuda")] * 3
    assert not hartsift.pypopsift.fits_texture(float("nan"), 1.0)
    assert not hartsift.pypopsift.fits_texture(1.0, float("inf"))
    monkeypatch.undo()
    assert not hartsift.pypopsift.fits_texture(-5.0, 0.0)
    assert hartsift.pypopsift.fits_texture(320.0, 240.0) == hartsift.pypopsift.fits_texture(320, 240)


def test_popsift_says_that_there_is_no_gpu(image):
    has_gpu = hartsift.pypopsift.fits_texture(320, 240)
    assert hartsift.pypopsift.fits_texture(320, 240, -1.0) == hartsift.pypopsift.fits_texture(width=320, height=240, downsampling=0) == has_gpu
    with pytest.raises(hartsift.ArgumentError, match="downsampling is 0.5"):
        hartsift.pypopsift.fits_texture(320, 240, 0.5)
    try:
        hartsift.workspace_bytes(320, 240, device="cuda")
        assert has_gpu
    except hartsift.Error:
        assert not has_gpu
        with pytest.warns(UserWarning, match="CPU"):
            hartsift.pypopsift.popsift(image, 0.04, 10, 1)
