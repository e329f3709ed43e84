"""Parquet files of features: content as read by pyarrow and DuckDB, shards, and merged files."""

import argparse
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hartsift
from hartsift import _library
from hartsift._arguments import add_extraction_options, extraction_options
from pictures import manifest_digests, write_picture, write_pictures

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
parquet = pytest.importorskip("hartsift.parquet")

from hartsift._pair_lists import MatchSettings, match_named_pairs  # noqa: E402
from hartsift._sources import ImageSource, RowStream  # noqa: E402


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of 24 pictures, two of them broken."""
    folder = tmp_path_factory.mktemp("photos")
    write_pictures(folder, 24, broken=(5, 17))
    return folder


@pytest.fixture(scope="module")
def whole(photos, tmp_path_factory):
    """The features of all, in one file."""
    path = tmp_path_factory.mktemp("whole") / "features.parquet"
    assert parquet.batch(photos, path, device="cpu") == (24, 2)
    return path


def test_rows_are_those_of_the_command(photos, whole, tmp_path, command):
    command("batch", photos, "-o", tmp_path / "out", "-q", "--device", "cpu", status=1)
    rows = list(parquet.read(whole))
    digests = {row["image"]: row["digest"] for row, _ in rows}
    assert digests == manifest_digests(tmp_path / "out" / "manifest.csv")
    for row, features in rows:
        if features is None:
            assert row["status"].startswith("HS_ERR_") and row["error"] and row["digest"] is None
            continue
        assert (row["status"], row["error"], row["method"]) == ("HS_OK", None, hartsift.METHOD_VERSION)
        assert features.digest == row["digest"] and len(features) == row["features"]
        assert features == hartsift.extract(photos / row["image"], device="cpu")
    assert [row["image"] for row, _ in rows] == sorted(digests, key=os.fsencode)


def listed(given):
    """The names of images that a batch accepts, and all its warnings."""
    with pytest.warns(UserWarning) as seen:
        warnings.warn("none", UserWarning, stacklevel=1)
        names = [source.name for source in hartsift.parquet.find_images(given)]
    return names, [str(one.message) for one in seen][1:]


def test_the_same_images_as_the_command(tmp_path, command):
    """Chosen by ending, through links to folders; skipped files are counted."""
    folder = tmp_path / "photos"
    write_pictures(folder, 2)
    picture = (folder / "0/im0.png").read_bytes()
    for name in ("a.jfif", "b.JPE", "c.mpo", "d.pbm", "e.DIB", "f.jif", ".hidden.png"):
        (folder / name).write_bytes(picture)
    for name in ("g.HEIC", "h.dng", "i.heic", "notes"):
        (folder / name).write_bytes(b"")
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "far" / "deep" / "j.png").write_bytes(picture)
    (tmp_path / "far" / "up").symlink_to(folder)
    (folder / "linked").symlink_to(tmp_path / "far")
    (folder / "again").symlink_to(folder / "0")
    command("batch", folder, "-o", tmp_path / "out", "-q", "--device", "cpu")
    names, warned = listed(folder)
    assert names == list(manifest_digests(tmp_path / "out" / "manifest.csv"))
    assert "a.jfif" in names and "linked/deep/j.png" in names and not any("again" in name for name in names)
    assert warned == [f"{folder}: 4 files were passed over by their endings: 2 .heic, 1 without one, 1 .dng"]


def test_lists_with_a_byte_order_mark(tmp_path):
    (tmp_path / "list").write_bytes(b"\xef\xbb\xbfa.png\r\nb.png")
    assert listed(tmp_path / "list") == (["a.png", "b.png"], [])
    (tmp_path / "list").write_text("a.png\n", "utf-16")
    with pytest.raises(hartsift.ArgumentError, match="UTF-16"):
        listed(tmp_path / "list")
    select_pairs = hartsift._pair_lists.select_pairs
    (tmp_path / "pairs").write_bytes(b"\xef\xbb\xbfa.png b.png\n")
    assert list(select_pairs(["a.png", "b.png"], tmp_path / "pairs")) == [("a.png", "b.png")]
    (tmp_path / "pairs").write_text("a.png b.png\n", "utf-16")
    with pytest.raises(hartsift.ArgumentError, match="UTF-16"):
        list(select_pairs(["a.png", "b.png"], tmp_path / "pairs"))


def test_images_without_features_are_counted(tmp_path):
    (tmp_path / "black.pgm").write_bytes(b"P5 50 40 255\n" + bytes(2000))
    with pytest.warns(UserWarning, match="2 of 3 images have no features"):
        names = [str(tmp_path / "black.pgm"), "@scene:60x45:1", str(tmp_path / "black.pgm")]
        assert parquet.batch(names, tmp_path / "a.parquet", device="cpu") == (3, 0)


@pytest.mark.parametrize("descriptor", ["f32", "none"])
def test_other_descriptors(photos, tmp_path, descriptor):
    parquet.batch([str(photos / "0/im00.png")], tmp_path / "a.parquet", descriptor=descriptor, layout="vlfeat")
    (row, features), = parquet.read(tmp_path / "a.parquet")
    assert features == hartsift.extract(photos / "0/im00.png", descriptor=descriptor, layout="vlfeat")
    assert features.layout == "vlfeat" and features.digest == row["digest"]


def test_schema_is_the_documented_one(whole):
    schema = pq.read_schema(whole)
    assert schema.equals(parquet.feature_schema("u8"))
    with pytest.raises(hartsift.ArgumentError, match="descriptor is 'u9'"):
        parquet.feature_schema("u9")


def test_duckdb_reads_them(whole):
    duckdb = pytest.importorskip("duckdb")
    image, x, first = duckdb.sql(
        f"SELECT image, unnest(x), unnest(descriptors) FROM '{whole}' WHERE status = 'HS_OK' ORDER BY image LIMIT 1"
    ).fetchall()[0]
    features = next(features for row, features in parquet.read(whole) if row["image"] == image)
    assert x == features.points[0, 0] and first == features.descriptors[0].tobytes()
    count = duckdb.sql(f"SELECT sum(features), sum(len(descriptors)) FROM '{whole}'").fetchall()[0]
    assert count[0] == count[1] == sum(len(features) for _, features in parquet.read(whole) if features is not None)


def test_camera_priors(tmp_path):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
    from exif_segment import equivalent_focal_length, position, with_exif

    write_pictures(tmp_path, 2)
    photo = tmp_path / "1/im1.jpg"
    photo.write_bytes(with_exif(photo.read_bytes(), exif=equivalent_focal_length(35), gps=position(50.5, 8.25, 300)))
    parquet.batch([str(photo)], tmp_path / "a.parquet", device="cpu")
    (row, features), = parquet.read(tmp_path / "a.parquet")
    # 35 mm film has a diagonal of 43.27 mm, the picture one of 250 pixels.
    assert row["focal_length"] == pytest.approx(35 / 43.27 * 250, rel=1e-3)
    assert [row[name] for name in ("latitude", "longitude", "altitude")] == pytest.approx([50.5, 8.25, 300])
    parquet.merge(tmp_path / "a.parquet", tmp_path / "a.db")
    with hartsift.ColmapDatabase(tmp_path / "a.db", read_only=True) as database:
        image = next(database.images())
        assert database.read_position(image.image_id).coordinates == pytest.approx((50.5, 8.25, 300))
    assert image.camera.prior_focal_length and image.camera.parameters[0] == row["focal_length"]


def test_shared_cameras(whole, tmp_path):
    for share, shared in (("size", lambda image: image.camera.width), (False, lambda image: image.name),
                          ("folder", lambda image: (image.camera.width, os.path.dirname(image.name)))):
        parquet.merge(whole, tmp_path / f"{share}.db", share_cameras=share)
        with hartsift.ColmapDatabase(tmp_path / f"{share}.db", read_only=True) as database:
            images = list(database.images())
        together = {(image.camera_id, shared(image)) for image in images}
        assert len(together) == len({one for one, _ in together}) == len({other for _, other in together})
    with pytest.raises(hartsift.ArgumentError, match="no camera of the number 1"):
        parquet.merge(whole, tmp_path / "b.db", camera=1)
    assert not (tmp_path / "b.db").exists()
    with pytest.raises(hartsift.ArgumentError, match="are for databases"):
        parquet.merge(whole, tmp_path / "b.parquet", share_cameras="size")
    arguments = ["merge", str(whole), "-o", str(tmp_path / "c.db"), "--single-camera-per-folder"]
    subprocess.run([sys.executable, "-m", "hartsift", *arguments], check=True)
    assert (tmp_path / "c.db").read_bytes() == (tmp_path / "folder.db").read_bytes()


def test_merged_shards_are_one_run(photos, whole, tmp_path):
    for i in (3, 1, 2):
        parquet.batch(photos, tmp_path / "s.parquet", shard=f"{i}/3", device="cpu")
    shards = [tmp_path / f"s-{i}-of-3.parquet" for i in (2, 3, 1)]
    assert parquet.merge(shards, tmp_path / "a.parquet") == (24, 3)
    assert parquet.merge(whole, tmp_path / "b.parquet") == (24, 1)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert parquet.merge(shards, tmp_path / "a.db") == (24, 3)
    parquet.merge(whole, tmp_path / "b.db")
    assert (tmp_path / "a.db").read_bytes() == (tmp_path / "b.db").read_bytes()
    with hartsift.ColmapDatabase(tmp_path / "a.db", read_only=True) as database:
        assert len(list(database.images())) == 22
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_what_cannot_be_one_run_is_refused(photos, whole, tmp_path):
    one = [str(photos / "1/im01.jpg")]
    other = [str(photos / "2/im02.pgm")]
    parquet.batch(one, tmp_path / "one.parquet", device="cpu")
    parquet.batch(other, tmp_path / "contrast.parquet", device="cpu", contrast=0.03)
    table = pq.read_table(tmp_path / "one.parquet")
    method = table.column_names.index("method")
    renamed = table.set_column(0, table.schema.field(0), pa.array(["other"]))
    pq.write_table(
        renamed.set_column(method, table.schema.field(method), pa.array([1], pa.int32())), tmp_path / "method.parquet"
    )
    pq.write_table(pa.table({"a": [1]}), tmp_path / "foreign.parquet")
    first = tmp_path / "one.parquet"
    for second, words in (
        (first, "occurs twice"),
        (tmp_path / "contrast.parquet", "contrast=0.0299.*contrast=0.0399|contrast"),
        (tmp_path / "method.parquet", "method version 1"),
        (tmp_path / "foreign.parquet", "no column image"),
    ):
        for output in ("x.parquet", "x.db"):
            with pytest.raises(hartsift.ArgumentError, match=words):
                parquet.merge([first, second], tmp_path / output)
            assert not (tmp_path / output).exists()
    with pytest.raises(hartsift.ArgumentError, match=r"ends in \.parquet or \.db"):
        parquet.merge(first, tmp_path / "x.csv")
    with pytest.raises(hartsift.FileError, match="no such"):
        parquet.merge(tmp_path / "absent", tmp_path / "x.db")


def test_rows_of_affine_features_have_their_method(photos, tmp_path):
    """Of failed images too. Such features of version 2 and of this one are not merged."""
    sources = [str(photos / name) for name in ("1/im01.jpg", "2/im02.pgm")] + [str(tmp_path / "absent.png")]
    assert parquet.batch(sources, tmp_path / "a.parquet", device="cpu", affine=True) == (3, 1)
    rows = list(parquet.read(tmp_path / "a.parquet"))
    assert [row["method"] for row, _ in rows] == [hartsift.METHOD_VERSION_AFFINE] * 3 != [hartsift.METHOD_VERSION] * 3
    found = [features for _, features in rows if features is not None]
    assert found[0].origin == hartsift.Origin(hartsift.METHOD_VERSION_AFFINE, "lowe", "l2")
    table = pq.read_table(tmp_path / "a.parquet")
    method = table.column_names.index("method")
    older = table.set_column(method, table.schema.field(method), pa.array([2] * 3, pa.int32()))
    pq.write_table(older.slice(0, 1), tmp_path / "older.parquet")
    pq.write_table(table.slice(1), tmp_path / "newer.parquet")
    with pytest.raises(hartsift.ArgumentError, match="newer.parquet was made by method version 3 and .*older.parquet by 2"):
        parquet.merge([tmp_path / "older.parquet", tmp_path / "newer.parquet"], tmp_path / "x.parquet")


def test_matches_have_the_method_of_their_features(photos, tmp_path):
    plain, affine = (hartsift.extract(photos / "1/im01.jpg", device="cpu", affine=one) for one in (False, True))
    foreign = hartsift.Features.from_arrays(plain.keypoints, plain.descriptors)
    pairs = [("plain", "foreign"), ("affine", "plain"), ("affine", "foreign"), ("foreign", "other"), ("affine", "absent")]
    named = {"plain": plain, "affine": affine, "foreign": foreign, "other": foreign}
    rows = match_named_pairs(named, pairs, MatchSettings(model=None), device="cpu").to_pylist()
    old, new = hartsift.METHOD_VERSION, hartsift.METHOD_VERSION_AFFINE
    assert [row["method"] for row in rows] == [old, new, new, old, old]
    assert [row["error"] is None for row in rows] == [True, True, True, True, False]


def test_merged_matches_have_one_method(photos, tmp_path):
    """Pairs without a result, because features are missing, have no part in that."""
    sources = [str(photos / name) for name in ("1/im01.jpg", "2/im02.pgm")]
    parquet.batch(sources, tmp_path / "a.parquet", device="cpu", affine=True)
    named = {row["image"]: features for row, features in parquet.read(tmp_path / "a.parquet")}
    (a, b), settings = sorted(named), MatchSettings()
    table = match_named_pairs(named, [(a, b), (a, "absent")], settings, device="cpu")
    assert table["method"].to_pylist() == [hartsift.METHOD_VERSION_AFFINE, hartsift.METHOD_VERSION]
    pq.write_table(table, tmp_path / "matches.parquet")
    assert parquet.merge(tmp_path / "a.parquet", tmp_path / "a.db", matches=tmp_path / "matches.parquet") == (2, 1)
    method = table.column_names.index("method")
    mixed = pa.concat_tables([table.slice(0, 1), table.slice(0, 1)])
    mixed = mixed.set_column(method, table.schema.field(method), pa.array([2, 3], pa.int32()))
    mixed = mixed.set_column(1, table.schema.field(1), pa.array([b, "other"]))
    pq.write_table(mixed, tmp_path / "mixed.parquet")
    with pytest.raises(hartsift.ArgumentError, match="method versions"):
        parquet.merge(tmp_path / "a.parquet", tmp_path / "b.db", matches=tmp_path / "mixed.parquet")


def test_command_line(photos, tmp_path):
    def run(*arguments, statuses=(0,), **environment):
        process = subprocess.run(
            [sys.executable, "-m", "hartsift", *map(str, arguments)],
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            check=False,
        )
        assert process.returncode in statuses, process.stderr
        return process.stderr.decode()

    options = ["--device", "cpu", "--max-features", "50", "--upright"]
    array = {f"SLURM_ARRAY_TASK_{name}": value for name, value in (("COUNT", "2"), ("MIN", "5"), ("MAX", "6"))}
    failed = 0
    for task in ("5", "6"):
        error = run("batch", photos, "-o", tmp_path / "s.parquet", "--shard", "slurm", *options, statuses=(0, 1),
                    SLURM_ARRAY_TASK_ID=task, SLURM_ARRAY_TASK_STEP="1", **array)
        failed += int(re.match(r"12 images, (\d+) of them failed", error).group(1))
        assert error.rstrip().endswith(f"s-{int(task) - 4}-of-2.parquet")
    assert failed == 2
    run("merge", tmp_path / "s-1-of-2.parquet", tmp_path / "s-2-of-2.parquet", "-o", tmp_path / "all.parquet")
    found = {row["image"]: features for row, features in parquet.read(tmp_path / "all.parquet")}
    expected = hartsift.extract(photos / "0/im00.png", device="cpu", max_features=50, upright=True)
    assert found["0/im00.png"] == expected and len(found) == 24
    assert "expected one of" in run("batch", photos, "-o", tmp_path / "x.parquet", "--norm", "l3", statuses=(2,))
    assert "ends in .parquet" in run("batch", photos, "-o", tmp_path / "x", "--format", "parquet", statuses=(2,))
    assert "no such" in run("merge", tmp_path / "absent.parquet", "-o", tmp_path / "x.db", statuses=(1,))
    refused = run("batch", photos, "-o", tmp_path / "x.parquet", "--device", "cuda", "--device-index", "99", statuses=(3,))
    assert refused.startswith("python -m hartsift: ") and "99" in refused


def test_what_is_not_parquet_is_the_command_s(command, photos, tmp_path):
    outputs = [tmp_path / "here.npz", tmp_path / "there.npz"]
    options = ["--device", "cpu", "--max-features", "50", "--quiet", "-o"]
    command("extract", photos / "0/im00.png", *options, outputs[0])
    arguments = ["extract", photos / "0/im00.png", *options, outputs[1]]
    subprocess.run([sys.executable, "-m", "hartsift", *map(str, arguments)], check=True)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    shown = subprocess.run([sys.executable, "-m", "hartsift", "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert shown.index("reconstruct") < shown.index("Usage: hartsift COMMAND")
    refused = subprocess.run([sys.executable, "-m", "hartsift", "batch", "--no-such"], stderr=subprocess.PIPE, check=False)
    assert refused.returncode == 2 and refused.stderr.startswith(b"hartsift batch: ")


@pytest.mark.parametrize(
    "module, package, told",
    [
        ("parquet", "pyarrow", "pip install pyarrow"),
        ("ray", "ray", "pip install pyarrow 'ray[data]'"),
        ("hloc", "hloc", "github.com/cvg/Hierarchical-Localization"),
    ],
)
def test_what_is_not_installed_is_named(module, package, told):
    code = f"import sys; sys.modules[{package!r}] = None; import hartsift.{module}"
    process = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False)
    last = process.stderr.decode().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError") and told in last


@pytest.mark.parametrize("package", ["ray", "pyarrow"])
def test_the_command_of_ray_explains_itself_without_it(package):
    code = f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_module('hartsift.ray', run_name='__main__')"
    command = [sys.executable, "-c", code]
    told = subprocess.run([*command, "extract", "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert told.startswith("usage: python -m hartsift.ray extract") and "--num-gpus" in told
    refused = subprocess.run([*command, "match", "features", "matches", "--pairs", "all"], stderr=subprocess.PIPE, check=False)
    (line,) = refused.stderr.decode().splitlines()
    assert refused.returncode == 1 and line.endswith("pip install pyarrow 'ray[data]'")


def test_the_command_names_what_is_not_installed():
    code = "import sys; sys.modules['pyarrow'] = None; from hartsift.__main__ import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "batch", ".", "-o", "a.parquet"]
    process = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    (line,) = process.stderr.decode().splitlines()
    assert process.returncode == 1 and line.endswith("pip install pyarrow")


def test_images_in_an_object_store(photos, whole, tmp_path):
    from object_store import serve

    with serve() as (uri, system):
        for path in sorted(photos.rglob("*.*"))[:6]:
            name = path.relative_to(photos).as_posix()
            with system.open_output_stream(f"photos/in/{name}") as stream:
                stream.write(path.read_bytes())
        assert parquet.batch(uri("photos/in"), uri("photos/out/a.parquet"), device="cpu") == (6, 1)
        assert parquet.batch("photos/in", "photos/out/b.parquet", filesystem=system, device="cpu") == (6, 1)
        digests = {row["image"]: row["digest"] for row, _ in parquet.read(whole)}
        for name in ("a", "b"):
            rows = [row for row, _ in parquet.read(f"photos/out/{name}.parquet", filesystem=system)]
            assert {row["image"]: row["digest"] for row in rows} == {row["image"]: digests[row["image"]] for row in rows}
            assert len(rows) == 6
        assert parquet.merge(uri("photos/out/a.parquet"), tmp_path / "a.db") == (6, 1)
        missing = list(parquet_rows_of_missing(uri, tmp_path))
        assert missing[0]["status"] == "HS_ERR_IO" and "absent.png" in missing[0]["error"]


def parquet_rows_of_missing(uri, tmp_path):
    """The row of an image that the object store does not have."""
    parquet.batch([uri("photos/in/absent.png")], tmp_path / "missing.parquet", device="cpu")
    return (row for row, _ in parquet.read(tmp_path / "missing.parquet"))


def test_shards_of_schedulers():
    from hartsift._sources import parse_shard

    array = {"SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "5",
             "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_ID": "5"}
    assert parse_shard("2/3", {}) == (2, 3)
    assert parse_shard("slurm", array) == (3, 3)
    assert parse_shard("slurm", {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}) == (1, 4)
    assert parse_shard("env:A,B", {"A": "3", "B": "3"}) == (3, 3)
    assert parse_shard("env:A+1,8", {"A": "0"}) == (1, 8)
    for text, environment, words in (
        ("0/3", {}, "expected I/N with 1 <= I"),
        ("4/3", {}, "I <= N"),
        ("3", {}, "slurm, or env"),
        ("slurm", {}, "sbatch --array"),
        ("slurm", {**array, "SLURM_ARRAY_TASK_COUNT": "2"}, "equal steps"),
        ("slurm", {**array, "SLURM_ARRAY_TASK_ID": "4"}, "equal steps"),
        ("env:A", {"A": "1"}, "env:INDEX,COUNT"),
        ("env:A,B", {"A": "1"}, "variable B is not set"),
        ("env:A,B", {"A": "x", "B": "2"}, "whole number"),
        ("env:A,B", {"A": "0", "B": "2"}, "shard 0 of 2: expected 1"),
    ):
        with pytest.raises(hartsift.ArgumentError, match=words):
            parse_shard(text, environment)


def test_read_takes_single_columns(whole):
    rows = list(parquet.read(whole, ["image", "x", "y", "sigma", "orientation"]))
    features = next(features for _, features in rows if features is not None)
    assert features.descriptors is None and len(features) > 0 and np.all(features.sigmas > 0)


def test_files_that_other_programs_wrote_again(whole, tmp_path):
    """DuckDB, Spark and pandas use wider types for lists and bytes: fitting values are read, others are refused."""
    table = pq.read_table(whole)
    wide = {"x": pa.large_list(pa.float64()), "descriptors": pa.list_(pa.binary())}
    other = pa.schema([pa.field(one.name, wide.get(one.name, one.type)) for one in table.schema])
    pq.write_table(table.cast(other), tmp_path / "wide.parquet")
    assert [features for _, features in parquet.read(tmp_path / "wide.parquet")] == [
        features for _, features in parquet.read(whole)]

    def replaced(name, values, kind):
        return table.set_column(table.column_names.index(name), name, pa.array(values, kind))

    rows = len(table)
    for damaged, words in (
        (table.drop(["x"]), "no column x"),
        (replaced("y", [[1.0]] * rows, pa.list_(pa.float32())), "other numbers of x and of y"),
        (replaced("y", [None] * rows, pa.list_(pa.float32())), "other numbers of x and of y"),
        (replaced("level", [[None] * len(x or ()) for x in table["x"].to_pylist()], pa.list_(pa.int16())), "has nulls"),
        (replaced("sigma", ["1.5"] * rows, pa.string()), "column sigma is of type string"),
        (replaced("descriptors", [[b"short"]] * rows, pa.list_(pa.binary())), "column descriptors is of type"),
        (replaced("descriptors", [[bytes(64)]] * rows, pa.list_(pa.binary(64))), "column descriptors is of type"),
        (replaced("options", ["{"] * rows, pa.string()), "expected JSON"),
    ):
        pq.write_table(damaged, tmp_path / "damaged.parquet")
        with pytest.raises(hartsift.ArgumentError, match=f"damaged.parquet: .*{words}"):
            list(parquet.read(tmp_path / "damaged.parquet"))


def test_cut_files_are_named(whole, tmp_path):
    content = whole.read_bytes()
    for bytes_left in (0, 3, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.parquet").write_bytes(content[:bytes_left])
        for call in (lambda: list(parquet.read(tmp_path / "cut.parquet")),
                     lambda: parquet.merge([whole, tmp_path / "cut.parquet"], tmp_path / "out.parquet")):
            with pytest.raises(hartsift.FileError, match="cut.parquet: "):
                call()
    assert sorted(os.listdir(tmp_path)) == ["cut.parquet"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_interrupted_leaves_nothing(whole, tmp_path, number):
    """A merge that is interrupted while writing removes its unfinished file."""
    program = f"""
import os, signal, hartsift._merge as merging
from hartsift.__main__ import main
batches = merging._Inputs.batches
def interrupted(inputs):
    for batch in batches(inputs):
        yield batch
        assert len(os.listdir({str(tmp_path)!r})) == 1
        os.kill(os.getpid(), {int(number)})
merging._Inputs.batches = interrupted
main(["merge", {str(whole)!r}, "-o", {str(tmp_path / "out.parquet")!r}])
"""
    run = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False)
    assert run.returncode == (-number if number == signal.SIGINT else 128 + number), run.stderr
    assert os.listdir(tmp_path) == []


# ---- names that are not UTF-8, unreadable inputs, a full disk

ODD_NAMES = (b"plain.png", b"\xff\xfe.png", b"caf\xe9/1.png", "日本.png".encode(), "\uf7ff.png".encode())


@pytest.fixture
def odd_photos(tmp_path):
    """Pictures with names of all kinds in a folder whose name is not UTF-8 either."""
    folder = os.fsencode(tmp_path) + b"/photos\xff"
    for number, name in enumerate(ODD_NAMES):
        path = pathlib.Path(os.fsdecode(folder + b"/" + name))
        write_picture(path, hartsift.render_scene(100, 80, number + 1))
    return os.fsdecode(folder)


def test_names_that_are_not_utf_8(odd_photos, tmp_path, command):
    out = os.fsdecode(os.fsencode(tmp_path) + b"/out\xff")
    os.mkdir(out)
    assert parquet.batch(odd_photos, out + "/a.parquet", device="cpu") == (5, 0)
    rows = list(parquet.read(out))
    assert [os.fsencode(row["image"]) for row, _ in rows] == sorted(ODD_NAMES)
    for row, features in rows:
        assert features == hartsift.extract(os.path.join(odd_photos, row["image"]), device="cpu")
    # Other programs see UTF-8, with a distinct text for each name.
    with open(out + "/a.parquet", "rb") as file:
        texts = pq.read_table(file)["image"].to_pylist()
    assert len({text.encode("utf-8") for text in texts}) == 5 and "plain.png" in texts and "日本.png" in texts
    # Merged and divided again, and into a database: the names equal the command's.
    parquet.batch(odd_photos, out + "/b.parquet", shard="1/2", device="cpu")
    parquet.batch(odd_photos, out + "/b.parquet", shard="2/2", device="cpu")
    parquet.merge([out + "/b-1-of-2.parquet", out + "/b-2-of-2.parquet"], out + "/c.parquet")
    parquet.merge(out + "/a.parquet", out + "/d.parquet")
    assert pathlib.Path(out + "/c.parquet").read_bytes() == pathlib.Path(out + "/d.parquet").read_bytes()
    command("batch", odd_photos, "-o", tmp_path / "command.db", "-q", "--device", "cpu")
    parquet.merge(out + "/a.parquet", tmp_path / "merged.db")
    found = []
    for name in ("command.db", "merged.db"):
        with hartsift.ColmapDatabase(tmp_path / name) as database:
            found.append(sorted(os.fsencode(one.name) for one in database.images()))
    assert found[0] == found[1] == sorted(ODD_NAMES)


def test_names_become_texts_and_back():
    from hartsift._names import name_of_text, printable, text_of_name

    names = [os.fsdecode(one) for one in (*ODD_NAMES, b"\xf0\x9f", b"\xed\xb2\x80", "\uf780\uf7ff\uf800".encode(), b"\xef\x9f\xbf\xff")]
    texts = [text_of_name(name) for name in names]
    assert [name_of_text(text) for text in texts] == names and len(set(texts)) == len(names)
    assert all(text.encode("utf-8") for text in texts)
    assert printable(os.fsdecode(b"a\xff.png: is damaged")) == "a\\xff.png: is damaged"


def test_one_bad_input_never_ends_a_run(tmp_path, photos):
    """Any fault gives a row with its error, and the other images are extracted."""
    good = str(photos / "0/im00.png")
    write_picture(tmp_path / "flat.png", np.full((80, 90), 99, np.uint8))
    bad = ["foo://bucket/a.png", "s3://", "a\0b.png", str(tmp_path), os.fsdecode(b"/absent\xff.png"), "/dev/null/a.png", "@scene:0x0"]
    (tmp_path / "empty.png").touch()
    given = [good, *bad, str(tmp_path / "empty.png"), str(tmp_path / "flat.png"), good + ""]
    assert parquet.batch(given[:-1], tmp_path / "a.parquet", device="cpu") == (len(bad) + 3, len(bad) + 1)
    rows = {row["image"]: (row, features) for row, features in parquet.read(tmp_path / "a.parquet")}
    for name in (*bad, str(tmp_path / "empty.png")):
        row, features = rows[name]
        assert features is None and row["status"].startswith("HS_ERR_") and row["error"]
    assert len(rows[str(tmp_path / "flat.png")][1]) == 0 and len(rows[good][1]) > 0


def test_a_reader_s_own_errors_are_rows(photos, tmp_path, monkeypatch):
    from hartsift import _sources

    def fail(*arguments):
        raise (MemoryError("no room"), RuntimeError("a decoder's fault"), OSError("a disk's"))[len(raised) % 3]

    raised = []
    monkeypatch.setattr(_sources.ImageSource, "local_path", lambda *arguments: None)  # as in a remote file system
    monkeypatch.setattr(_sources.ImageSource, "read", lambda *arguments: (raised.append(1), fail())[1])
    assert parquet.batch([str(photos / f"{i}/im0{i}.{e}") for i, e in enumerate(("png", "jpg", "pgm"))], tmp_path / "a.parquet", readers=1) == (3, 3)
    statuses = [row["status"] for row, _ in parquet.read(tmp_path / "a.parquet")]
    assert sorted(statuses) == ["HS_ERR_ARGUMENT", "HS_ERR_IO", "HS_ERR_MEMORY"]


def test_an_output_that_cannot_be_opened(photos, tmp_path, monkeypatch):
    """No image is read for nothing."""
    reads = []
    monkeypatch.setattr("hartsift._sources._Run.begin", lambda *given: reads.append(given))
    with pytest.raises(hartsift.FileError, match="cannot be written"):
        parquet.batch(photos, tmp_path / "absent" / "a.parquet", device="cpu")
    assert reads == []


@pytest.fixture
def stream():
    """Rows on the CPU, read by two threads."""
    with contextlib.closing(RowStream({"device": "cpu"}, 2)) as made:
        yield made


def test_rows_that_nobody_takes(photos, stream, monkeypatch):
    """A caller that ends before its first row or after it leaves nothing behind, reads no more, and stops no other."""
    reads, real = [], ImageSource.read
    monkeypatch.setattr(ImageSource, "local_path", lambda *given: None)  # as in a remote file system
    monkeypatch.setattr(ImageSource, "read", lambda *given: (reads.append(1), time.sleep(0.02), real(*given))[2])
    sources = [ImageSource("a.png", str(photos / "0/im00.png"))] * 40
    stream.rows(sources).close()
    assert reads == []
    rows = stream.rows(sources)
    next(rows)
    before = len(reads)
    rows.close()
    assert 0 < before <= len(reads) <= before + 2
    assert [row.error for row in stream.rows(sources[:12])] == [None] * 12
    assert stream._run._rows == {} and stream._run._unwanted == set()


def rows_of_two_callers(stream, lists):
    """The rows of each list of paths, or the exception of its caller."""

    def take(paths):
        try:
            return list(stream.rows([ImageSource(os.path.basename(path), str(path)) for path in paths]))
        except Exception as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        return [future.result(timeout=60) for future in [pool.submit(take, paths) for paths in lists]]


def test_warnings_that_are_errors(photos, stream, tmp_path):
    """They end the image that they are about, whichever caller waits."""
    dark = tmp_path / "dark.pgm"
    dark.write_bytes(b"P5 64 64 65535\n" + np.arange(4096, dtype=">u2").tobytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = rows_of_two_callers(stream, ([dark] * 9, [photos / "0/im00.png"] * 9))
    assert all("dark.pgm has samples" in str(row.error) for row in first)
    assert [row.error for row in second] == [None] * 9


def test_failure_of_the_batch(photos, stream, monkeypatch):
    """All callers get the reason, and none waits for ever."""

    def fail(*_):
        raise hartsift.ArgumentError("a fault")

    monkeypatch.setattr("hartsift._batch.Batch.next", fail)
    failures = rows_of_two_callers(stream, [[photos / "0/im00.png"] * 9] * 2)
    assert [str(failure) for failure in failures] == ["a fault"] * 2


def test_gpu_that_is_lost(photos, stream, monkeypatch):
    """The next call has a new context."""
    source, lost = ImageSource("a.png", str(photos / "0/im00.png")), hartsift.DeviceError("lost", _library.HS_ERR_NO_DEVICE)
    with monkeypatch.context() as patch:
        patch.setattr("hartsift._batch.fill_features", lambda *_: (_ for _ in ()).throw(lost))
        (row,) = stream.rows([source])
    before = stream._run
    (again,) = stream.rows([source])
    assert row.error is lost and again.error is None and stream._run is not before


def test_full_disk(photos, tmp_path):
    """The file appears complete or not at all, and the message says so; the Python command has the exit status of a
    file error."""
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "from hartsift.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = [sys.executable, "-c", program, "batch", str(photos), "-o", str(tmp_path / "a.parquet"), "--device", "cpu"]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "a.parquet: cannot be written, nothing of it is kept" in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr and list(tmp_path.iterdir()) == []


def test_value_range_and_strict(tmp_path, image):
    """The options that a warning recommends exist; options record how the rows were made."""
    (tmp_path / "photos").mkdir()
    deep = b"P5 320 240 65535\n" + (image.astype(np.uint16) * 16).astype(">u2").tobytes()
    (tmp_path / "photos/deep.pgm").write_bytes(deep)
    output = tmp_path / "a.parquet"
    with pytest.warns(UserWarning, match="^deep.pgm has .*value_range"):
        assert parquet.batch(tmp_path / "photos", output, device="cpu") == (1, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parquet.batch(tmp_path / "photos", output, device="cpu", value_range=(0, 4095))
    (row, features), = parquet.read(output)
    assert features == hartsift.extract(tmp_path / "photos/deep.pgm", device="cpu", value_range=(0, 4095))
    assert '"value_range": [0.0, 4095.0]' in row["options"] and '"strict"' not in row["options"]
    with pytest.raises(hartsift.ArgumentError, match="value_range is"):
        parquet.batch(tmp_path / "photos", output, value_range=(5, 1))
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_extraction_options(parser)
    given = extraction_options(parser.parse_args(["--value-range", "0:4095", "--strict"]))
    assert given["value_range"] == (0, 4095) and given["strict"] is True
    with pytest.raises(argparse.ArgumentError, match="LOW below HIGH"):
        parser.parse_args(["--value-range", "9:5"])
