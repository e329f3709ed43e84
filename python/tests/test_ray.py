"""A Ray cluster of three nodes on this machine: its digests equal the command's in one process, also when an actor and
a node are lost while it runs."""

import functools
import glob
import os
import pathlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hartsift
from pictures import manifest_digests, write_picture, write_pictures

pytest.importorskip("ray", reason="ray is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from ray_cluster import InTheMiddle, crash_actor, kill_node, three_nodes  # noqa: E402

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import ray  # noqa: E402

import hartsift.ray  # noqa: E402
from hartsift import parquet  # noqa: E402
from hartsift._pair_lists import select_pairs  # noqa: E402
from hartsift._ray_command import main  # noqa: E402
from hartsift._sources import find_images  # noqa: E402

IMAGES, BROKEN = 60, (7, 28, 44)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    write_pictures(folder, IMAGES, BROKEN)
    return folder


@pytest.fixture(scope="module")
def digests(photos, tmp_path_factory, command):
    """The results of the command in one process."""
    out = tmp_path_factory.mktemp("batch")
    command("batch", photos, "-o", out, "-q", "--device", "cpu", status=1)
    return manifest_digests(out / "manifest.csv")


@pytest.fixture(scope="module")
def cluster():
    with three_nodes() as cluster:
        yield cluster


def digests_of(folder):
    return {row["image"]: row["digest"] for row, _ in parquet.read(folder, ["image", "digest", "x", "y"])}


def test_module_is_a_command():
    process = subprocess.run([sys.executable, "-m", "hartsift.ray", "match", "--help"], stdout=subprocess.PIPE, check=True)
    assert b"sequential:K" in process.stdout


def test_command_line(cluster, photos, digests, tmp_path, capsys):
    # In this process, which is already connected to the cluster, because connecting takes seconds.
    def run(*arguments, status):
        assert main(list(map(str, arguments))) == status
        return capsys.readouterr().err

    arguments = ["extract", photos, tmp_path / "out", "--address", cluster.address, "--batch-size", "10"]
    assert "60 images, 3 of them failed" in run(*arguments, status=1)
    assert digests_of(tmp_path / "out") == digests
    assert "--resume" in run(*arguments, status=2)
    assert "60 images, 3 of them failed" in run(*arguments, "--resume", status=1)
    errors = {row["image"]: row["error"] for row, _ in parquet.read(tmp_path / "out", ["image", "error", "x", "y"])}
    assert {name for name, error in errors.items() if error} == {name for name, digest in digests.items() if not digest}
    # Merged: equal to the result of one process.
    parquet.batch(photos, tmp_path / "one.parquet", device="cpu", threads=1)
    for name, given in (("ray.parquet", tmp_path / "out"), ("merged.parquet", tmp_path / "one.parquet")):
        assert parquet.merge(given, tmp_path / name)[0] == IMAGES
    assert (tmp_path / "ray.parquet").read_bytes() == (tmp_path / "merged.parquet").read_bytes()


def test_pairs_are_matched_as_in_one_process(cluster, photos, tmp_path):
    names = [str(path) for path in sorted(photos.rglob("*.*"))[:10]]
    features = hartsift.ray.extract([*names, str(tmp_path / "absent.png")], batch_size=4)
    pairs = [*select_pairs(names, "all"), (names[0], str(tmp_path / "absent.png"))]
    matched = hartsift.ray.match_pairs(features, pairs, concurrency=2, pairs_per_task=6)
    rows = {(row["image_a"], row["image_b"]): row for row in matched.take_all()}
    assert len(rows) == 46 and "no features of" in rows[pairs[-1]]["error"]
    found = {name: hartsift.extract(name, device="cpu") for name in names if load(name)}
    for a, b in pairs[:-1]:
        row = {name: as_list(value) for name, value in rows[a, b].items()}
        missing = [name for name in (a, b) if name not in found]
        if missing:
            assert f"no features of {missing[0]}" in row["error"] and row["matches"] is None
            continue
        matches = hartsift.match(found[a], found[b])
        geometry = hartsift.verify(found[a], found[b], matches, "fundamental", tolerance=4)
        assert [row["index_a"], row["index_b"]] == matches.pairs.T.tolist()
        assert (row["distance"], row["inlier"]) == (matches.distances.tolist(), geometry.inliers.tolist())
        assert (row["found"], row["matrix"]) == (geometry.found, geometry.matrix.reshape(9).tolist())


def load(name):
    try:
        return hartsift.load_image(name) is not None
    except hartsift.Error:
        return False


def as_list(value):
    return value.tolist() if hasattr(value, "tolist") else value


def pairs_of_database(path):
    """The pairs that the command's `match --database` wrote."""
    import sqlite3

    most = 2147483647
    with sqlite3.connect(path) as database:
        database.text_factory = bytes
        names = dict(database.execute("SELECT image_id, name FROM images"))
        numbers = [one for one, in database.execute("SELECT pair_id FROM two_view_geometries")]
    return {frozenset((names[number // most], names[number % most])) for number in numbers}


@pytest.fixture(scope="module")
def odd_frames(tmp_path_factory):
    """Frames of a video, one of them broken and one without features, with names that are not UTF-8."""
    folder = os.fsencode(tmp_path_factory.mktemp("odd")) + b"/cam\xff"
    for number in range(6):
        path = pathlib.Path(os.fsdecode(folder + b"/f\xe9%d.png" % number))
        write_picture(path, np.full((90, 120), 50, np.uint8) if number == 4 else hartsift.render_scene(120, 90, number + 1))
        if number == 2:
            path.write_bytes(b"no img")
    return os.fsdecode(folder)


@pytest.fixture(scope="module")
def odd_features(cluster, odd_frames, tmp_path_factory):
    out = tmp_path_factory.mktemp("odd") / "features"
    assert main(["extract", odd_frames, str(out), "--address", cluster.address]) == 1
    return out


@pytest.mark.parametrize("pairs", ["sequential:1", "retrieval:2"])
def test_pairs_are_those_of_the_command(cluster, odd_frames, odd_features, tmp_path, command, capsys, pairs):
    """A broken image is no neighbour of any image; one without features ends nothing."""
    command("batch", odd_frames, "-o", tmp_path / "command.db", "-q", "--device", "cpu", status=1)
    command("match", "--database", tmp_path / "command.db", "--pairs", pairs, "-q", "--device", "cpu")
    out, matches = odd_features, tmp_path / "matches"
    assert main(["match", str(out), str(matches), "--pairs", pairs, "--address", cluster.address]) == 0
    assert "0 of them failed" in capsys.readouterr().err
    parquet.merge(out, tmp_path / "ray.db", matches=matches)
    expected = pairs_of_database(tmp_path / "command.db")
    assert pairs_of_database(tmp_path / "ray.db") == expected and expected
    assert not any(b"2.png" in name for pair in expected for name in pair)


def test_a_broken_image_in_a_given_pair(odd_frames, odd_features):
    """A row with its error."""
    first, second = (os.path.basename(name) for name in sorted(glob.glob(glob.escape(odd_frames) + "/*"))[1:3])
    rows = hartsift.ray.match_pairs(str(odd_features), [(first, second)]).take_all()
    assert len(rows) == 1 and "no features of f\\xe92.png" in rows[0]["error"]


def test_nothing_with_features(cluster, tmp_path):
    for number in range(3):
        write_picture(tmp_path / "flat" / f"{number}.png", np.full((60, 70), 9, np.uint8))
    parquet.batch(tmp_path / "flat", tmp_path / "a.parquet", device="cpu")
    rows = hartsift.ray.match_pairs(str(tmp_path / "a.parquet"), "sequential:1").take_all()
    assert [(row["status"], row["matches"], row["found"]) for row in rows] == [("HS_OK", 0, False)] * 2
    with pytest.raises(hartsift.ArgumentError, match="no image has features"):
        hartsift.ray.match_pairs(str(tmp_path / "a.parquet"), "retrieval:1")


def test_output_that_ray_cannot_name(photos, capsys):
    assert main(["extract", str(photos), os.fsdecode(b"/tmp/out\xff")]) == 2
    assert "/tmp/out\\xff: Ray writes only where all names are UTF-8" in capsys.readouterr().err


def test_rows_without_a_name(photos):
    from hartsift._ray_extract import ExtractionActor

    names = [None, "absent.png", str(photos / "0/im00.png")]
    table = ExtractionActor({"device": "cpu"}, True, 1, 1)(pa.table({"path": pa.array(names, pa.string())}))
    assert table["image"].to_pylist() == ["", *names[1:]]
    assert [status == "HS_OK" for status in table["status"].to_pylist()] == [False, False, True]


def writing_actor(out, **options):
    from hartsift._ray_extract import WritingActor

    return WritingActor(str(out), options={"device": "cpu", **options}, exif=True, jpeg_scale=1, readers=2)


def test_an_empty_table(tmp_path):
    told = writing_actor(tmp_path)(pa.table({"path": pa.array([], pa.string())}))
    assert told.to_pydict() == {"image": [], "error": []} and os.listdir(tmp_path) == []


def test_files_of_an_actor(photos, digests, tmp_path, monkeypatch):
    """Any division into files has the digests of one process, and a repeated batch replaces its files."""
    write_picture(tmp_path / "flat.png", np.full((60, 70), 9, np.uint8))
    sources = find_images(photos)[:9]
    names, paths = [one.name for one in sources] + ["flat.png"], [one.path for one in sources] + [str(tmp_path / "flat.png")]
    for size, files in ((1 << 30, 1), (20000, 3)):
        monkeypatch.setattr("hartsift._ray_extract._FILE_BYTES", size)
        (tmp_path / str(size)).mkdir()
        for _ in range(2):
            told = writing_actor(tmp_path / str(size))(pa.table({"image": names, "path": paths}))
            assert told.to_pydict() == {"image": names, "error": [None] * 10}
        assert len(os.listdir(tmp_path / str(size))) >= files
        found = digests_of(tmp_path / str(size))
        assert len(found.pop("flat.png")) > 0 and found == {name: digests[name] for name in names[:9]}


def test_two_batches_at_once(photos, digests, tmp_path):
    """Ray calls an actor on two threads. Each call has its own images, also where one of them fails."""
    actor = writing_actor(tmp_path)
    sources = find_images(photos)[:12]
    names, paths = [one.name for one in sources], [one.path for one in sources]
    paths[4] = "absent.png"
    tables = [pa.table({"image": names[first::3], "path": paths[first::3]}) for first in range(3)]
    with ThreadPoolExecutor(3) as pool:
        told = list(pool.map(actor, tables))
    assert [one["image"].to_pylist() for one in told] == [names[first::3] for first in range(3)]
    found = digests_of(tmp_path)
    assert found.pop(names[4]) is None and found == {name: digests[name] for name in names if name != names[4]}


def test_files_that_are_written_quickly(photos, tmp_path):
    """Rows and digests are the same; descriptors are not compressed."""
    rows = []
    for is_quick in (False, True):
        actor = writing_actor(tmp_path)
        actor._is_quick = is_quick
        actor(pa.table({"path": [one.path for one in find_images(photos)[:3]]}))
        (path,) = tmp_path.glob("*.parquet")
        rows.append([(row, features.digest) for row, features in parquet.read(path)])
        columns = pq.ParquetFile(path).metadata.row_group(0)
        used = {columns.column(i).path_in_schema: columns.column(i).compression for i in range(columns.num_columns)}
        assert used["descriptors.list.element"] == used["x.list.element"] == ("UNCOMPRESSED" if is_quick else "ZSTD")
        assert used["level.list.element"] == used["image"] == "ZSTD"
    assert rows[0] == rows[1]


def test_images_that_cannot_be_written(tmp_path):
    """A file that may not grow ends the image that needs the space, and no other."""
    import resource

    for number, (width, height) in enumerate(((60, 50), (500, 400), (60, 50))):
        write_picture(tmp_path / f"{number}.png", hartsift.render_scene(width, height, number + 1))
    out, paths = tmp_path / "out", [str(tmp_path / f"{number}.png") for number in range(3)]
    out.mkdir()
    actor, limits = writing_actor(out), resource.getrlimit(resource.RLIMIT_FSIZE)

    def written(size):
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
            told = actor(pa.table({"path": paths}))["error"].to_pylist()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert all(name.endswith(".parquet") for name in os.listdir(out))
        return told, sorted(row["image"] for row, _ in parquet.read(out, ["image", "x", "y"]))

    for _ in range(2):  # a batch that Ray repeats replaces its files, also if it then ends in another way
        told, images = written(30000)
        assert [error is None for error in told] == [True, False, True] and "File too large" in told[1]
        assert images == [paths[0], paths[2]]
        assert written(limits[0]) == ([None] * 3, paths)


def test_memory_that_one_image_lacks(photos, tmp_path, monkeypatch):
    import hartsift._batch

    calls = []

    def fill(*given, real=hartsift._batch.fill_features):
        calls.append(given)
        if len(calls) == 2:
            raise MemoryError
        return real(*given)

    monkeypatch.setattr("hartsift._batch.fill_features", fill)
    writing_actor(tmp_path)(pa.table({"path": [one.path for one in find_images(photos)[:3]]}))
    rows = [row for row, _ in parquet.read(tmp_path, ["image", "status", "error", "x", "y"])]
    assert sorted(row["status"] for row in rows) == ["HS_ERR_MEMORY", "HS_OK", "HS_OK"]


def test_full_disk(photos, tmp_path, capsys):
    """The run says which images could not be written, or why a task of Ray failed, and the next run names an incomplete
    file."""
    from hartsift import _ray_work

    class Found:
        def iter_batches(self, **_):
            yield pa.table({"image": ["a", "b", "c"], "error": [None, "x.parquet: No space left", "y.parquet: No space left"]})

    assert _ray_work._count_unwritten(Found(), "out") == 2
    told = capsys.readouterr().err
    assert "b: x.parquet: No space left\n" in told and "c:" not in told
    assert "out: 2 images could not be written (No space left); --resume adds them" in told
    with pytest.raises(hartsift.FileError, match="out: the run ended before its end: .*No space left"):
        with _ray_work._naming("out"):
            raise RuntimeError("task failed") from OSError(28, "No space left on device")
    out = tmp_path / "out"
    out.mkdir()
    (out / "part.parquet").write_bytes(b"PAR1cut")
    assert main(["extract", str(photos), str(out), "--resume"]) == 1
    assert "part.parquet: is incomplete" in capsys.readouterr().err


def held_back(photos, gate):
    """The names of the pictures as a Dataset whose last block arrives once the file `gate` exists."""
    sources = find_images(photos)
    rows = [{"image": one.name, "path": one.path, "last": number >= IMAGES - 10} for number, one in enumerate(sources)]

    def wait_at(gate, rows):
        until = time.monotonic() + 240
        while rows["last"].any() and not gate.exists() and time.monotonic() < until:
            time.sleep(0.05)
        return {name: rows[name] for name in ("image", "path")}

    blocks = ray.data.from_items(rows, override_num_blocks=IMAGES // 10)
    return blocks.map_batches(functools.partial(wait_at, gate), batch_size=None, num_cpus=0.1, concurrency=1)


@pytest.mark.parametrize("event, nodes", ((crash_actor, 3), (kill_node, 2)))
def test_lost_in_the_middle(cluster, photos, digests, tmp_path, event, nodes):
    """Last test: the cluster has two nodes afterwards."""
    out, gate = tmp_path / "out", tmp_path / "gate"

    def lose():
        try:
            return event(cluster)
        finally:
            gate.touch()

    extracted = hartsift.ray.extract(held_back(photos, gate), batch_size=2)
    with InTheMiddle(out, lose) as middle:
        extracted.write_parquet(str(out), ray_remote_args={"num_cpus": 0.1}, concurrency=2)
    assert len(middle.done) == 1
    assert len(cluster.list_all_nodes()) == nodes
    assert digests_of(out) == digests
    assert parquet.merge(out, tmp_path / "all.parquet")[0] == IMAGES


def test_arguments_are_checked_before_anything_is_sent(tmp_path):
    absent = str(tmp_path / "absent.parquet")
    for pairs, words in (([], "no pairs"), *((text, "expected 'all', 'sequential:K'") for text in (
            "sequental:3", "sequential:+3", "retrieval:03", "retrieval: 3", "retrieval:4294967296"))):
        with pytest.raises(hartsift.ArgumentError, match=words):
            hartsift.ray.match_pairs(absent, pairs)
    with pytest.raises(hartsift.FileError, match="absent.txt: No such file"):
        hartsift.ray.match_pairs(absent, str(tmp_path / "absent.txt"))
    with pytest.raises(hartsift.ArgumentError, match="model is 'affine'"):
        hartsift.ray.match_pairs(absent, "all", model="affine")
    for keywords, words in (({"contrast": "x"}, "could not convert"), ({"norm": "l3"}, "expected one of"), ({"batch_size": 0}, "batch_size")):
        with pytest.raises((hartsift.ArgumentError, ValueError), match=words):
            hartsift.ray.extract(["a.png"], **keywords)
    with pytest.raises(TypeError, match="unknown option"):
        hartsift.ray.extract(["a.png"], contrat=1)


def test_images_that_look_alike_are_matched(cluster, tmp_path):
    """Two views of each of four scenes."""
    turned = np.array([[0.97, -0.1, 9.0], [0.1, 0.97, -5.0], [0, 0, 1.0]])
    for seed in range(4):
        for view, homography in enumerate((None, turned)):
            image = hartsift.render_scene(240, 180, seed + 1, homography)
            write_picture(tmp_path / "photos" / f"{view}-{seed}.png", image)
    parquet.batch(tmp_path / "photos", tmp_path / "features.parquet", device="cpu")
    matched = hartsift.ray.match_pairs(str(tmp_path / "features.parquet"), "retrieval:1", images_per_block=3)
    found = {(row["image_a"], row["image_b"]) for row in matched.take_all() if row["found"]}
    assert found == {(f"0-{seed}.png", f"1-{seed}.png") for seed in range(4)}


def test_pairs_of_a_collection(tmp_path):
    names = ["b", "a", "c", "d"]
    found = {frozenset(pair) for pair in select_pairs(names, "sequential:2")}
    assert found == {frozenset(pair) for pair in ("ab", "ac", "bc", "bd", "cd")}
    places = [(50, 8), (50, 8.001), (float("nan"), 8), (51, 8)]
    assert list(select_pairs(names, "spatial:100", places)) == [("b", "a")]
    assert list(select_pairs(names, "spatial:100", [(50, 8), (50, 8.001), (95, 8), (50, 1e9)])) == [("b", "a")]
    assert list(select_pairs([], "spatial:100", [])) == []
    assert len(list(select_pairs(names, "all"))) == 6
    (tmp_path / "pairs.txt").write_text("# two\na b\nc d\te\n\n")
    assert list(select_pairs(names, tmp_path / "pairs.txt")) == [("a", "b"), ("c d", "e")]
    (tmp_path / "pairs.txt").write_text("a b c\n")
    with pytest.raises(hartsift.ArgumentError, match=r"pairs.txt:1: 3 names"):
        list(select_pairs(names, tmp_path / "pairs.txt"))
    with pytest.raises(hartsift.ArgumentError, match="sequential:K"):
        list(select_pairs(names, "similar:3"))
