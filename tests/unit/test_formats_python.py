"""Files from the library's writers, read by NumPy, OpenCV and Python's json and csv modules.

Uses the program write_sample_features of the build (in $HARTSIFT_PROGRAMS, or the first argument). Ends with 77,
skipped, if NumPy or that program is missing; checks with OpenCV only if cv2 is available.
"""
import contextlib
import csv
import json
import math
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

SKIPPED = 77
COUNT = 9

try:
    import numpy
except ImportError:
    print("skipped: no NumPy")
    sys.exit(SKIPPED)
try:
    import cv2
except ImportError:
    cv2 = None


def program():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("HARTSIFT_PROGRAMS", "build/tests")
    path = pathlib.Path(folder) / "write_sample_features"
    if not path.exists():
        print(f"skipped: {path} is not built")
        sys.exit(SKIPPED)
    return str(path)


class Truth:
    """The input of write_sample_features, as exact float32 values."""

    def __init__(self, folder):
        rows = [[float.fromhex(word) if "x" in word else float(word) for word in line.split()]
                for line in (folder / "truth.txt").read_text().splitlines()]
        self.places = numpy.array([row[:4] for row in rows], dtype=numpy.float32).reshape(-1, 4)
        self.responses = numpy.array([row[4] for row in rows], dtype=numpy.float32)
        self.octaves = numpy.array([row[5] for row in rows], dtype=int)
        self.levels = numpy.array([row[6] for row in rows], dtype=int)
        self.descriptors = numpy.array([row[7:] for row in rows], dtype=numpy.float32).reshape(len(rows), -1)


def equal(what, found, expected):
    if not numpy.array_equal(numpy.asarray(found), numpy.asarray(expected)):
        raise AssertionError(f"{what}: found {found}, expected {expected}")


def check_npz(folder, truth, style):
    with numpy.load(folder / "npz.npz") as arrays:
        equal("npz keypoints", arrays["keypoints"], truth.places)
        equal("npz responses", arrays["responses"], truth.responses)
        equal("npz octaves", arrays["octaves"], truth.octaves)
        equal("npz levels", arrays["levels"], truth.levels)
        equal("npz image_size", arrays["image_size"], [640, 480])
        types = {name: str(arrays[name].dtype) for name in arrays.files}
        assert types["keypoints"] == types["responses"] == "float32", types
        assert types["octaves"] == types["levels"] == "int8", types
        assert types["image_size"] == types["method_version"] == "int32", types
        assert arrays["method_version"].shape == () and int(arrays["method_version"]) == 0  # 0: the descriptors' origin is unknown
        equal("npz origin", arrays["origin"], [0, 0, 0, 0])
        assert types["origin"] == "int32", types
        assert "clockwise" in str(arrays["convention"]), arrays["convention"]
        if style == "none":
            assert "descriptors" not in arrays.files
        else:
            assert types["descriptors"] == ("uint8" if style == "u8" else "float32"), types
            equal("npz descriptors", arrays["descriptors"], truth.descriptors)


def check_json(folder, truth, style):
    document = json.loads((folder / "json.json").read_text(encoding="utf-8"))
    assert document["count"] == COUNT and document["image_name"] == 'an "image".png', document["image_name"]
    assert (document["image_width"], document["image_height"]) == (640, 480)
    features = document["features"]
    places = [[feature[name] for name in ("x", "y", "sigma", "orientation")] for feature in features]
    equal("json places", numpy.array(places, dtype=numpy.float32), truth.places)
    equal("json responses", numpy.array([f["response"] for f in features], dtype=numpy.float32), truth.responses)
    equal("json octaves", [f["octave"] for f in features], truth.octaves)
    equal("json levels", [f["level"] for f in features], truth.levels)
    if style == "none":
        assert all("descriptor" not in feature for feature in features)
    else:
        entries = numpy.array([feature["descriptor"] for feature in features], dtype=numpy.float32)
        equal("json descriptors", entries, truth.descriptors)


def check_csv(folder, truth, style):
    with open(folder / "csv.csv", newline="", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    places = [[float(row[name]) for name in ("x", "y", "sigma", "orientation")] for row in rows]
    equal("csv places", numpy.array(places, dtype=numpy.float32), truth.places)
    equal("csv octaves", [int(row["octave"]) for row in rows], truth.octaves)
    if style != "none":
        letter = "d" if style == "u8" else "f"
        entries = [[float(row[f"{letter}{k}"]) for k in range(128)] for row in rows]
        equal("csv descriptors", numpy.array(entries, dtype=numpy.float32), truth.descriptors)


def unpack_octave(packed):
    octave = packed & 255
    return octave - 256 if octave >= 128 else octave, packed >> 8 & 255, packed >> 16 & 255


def check_opencv(folder, truth, style):
    storage = cv2.FileStorage(str(folder / "opencv.yml"), cv2.FILE_STORAGE_READ)
    assert storage.isOpened()
    node = storage.getNode("keypoints")
    assert node.isSeq() and node.size() == COUNT, node.size()
    for i in range(COUNT):
        x, y, size, angle, response, packed, class_id = (node.at(i).at(k).real() for k in range(7))
        equal("cv2 place", numpy.array([x, y, size / 2], dtype=numpy.float32), truth.places[i, :3])
        equal("cv2 response", numpy.float32(response), truth.responses[i])
        assert abs(math.radians(angle) - truth.places[i, 3]) < 1e-6 and 0 <= angle < 360
        octave, level, part = unpack_octave(int(packed))
        assert (octave, level, class_id) == (truth.octaves[i], truth.levels[i], -1)
        # cv::SIFT's own relations are size = 2 sigma and sigma = 1.6 * 2^(octave + (level + offset) / 3).
        offset = part / 255 - 0.5
        assert abs(size / 2 - 1.6 * 2 ** (octave + (level + offset) / 3)) < size * 1e-3, (size, part)
    if style == "none":
        assert storage.getNode("descriptors").empty()
    else:
        matrix = storage.getNode("descriptors").mat()
        assert matrix.dtype == (numpy.uint8 if style == "u8" else numpy.float32)
        equal("cv2 descriptors", matrix, truth.descriptors)


def check_text_formats(folder, truth, style):
    scale = 512 if style == "f32" else 1
    entries = numpy.minimum(255, numpy.floor(truth.descriptors.astype(float) * scale + 0.5)).astype(int)
    vlfeat_order = numpy.arange(128).reshape(16, 8)[:, [0, 7, 6, 5, 4, 3, 2, 1]].reshape(-1)
    colmap = (folder / "colmap.txt").read_text().split("\n")
    assert colmap[0] == f"{COUNT} 128" and colmap[COUNT + 1:] == [""]
    rows = numpy.array([line.split() for line in colmap[1:COUNT + 1]], dtype=float)
    assert numpy.abs(rows[:, :2] - 0.5 - truth.places[:, :2]).max() < 1e-5
    equal("colmap descriptors", rows[:, 4:], entries)
    vlfeat = numpy.loadtxt(folder / "vlfeat.sift", ndmin=2)
    equal("vlfeat frames", vlfeat[:, :4].astype(numpy.float32), truth.places)
    equal("vlfeat descriptors", vlfeat[:, 4:], entries[:, vlfeat_order])
    lowe = (folder / "lowe.key").read_text().split()
    assert lowe[:2] == [str(COUNT), "128"]
    keys = numpy.array(lowe[2:], dtype=float).reshape(COUNT, 132)
    equal("lowe places", keys[:, [1, 0, 2]].astype(numpy.float32), truth.places[:, :3])
    assert numpy.abs(keys[:, 3]).max() <= math.pi
    assert numpy.abs(numpy.exp(1j * keys[:, 3]) - numpy.exp(-1j * truth.places[:, 3].astype(float))).max() < 1e-6
    equal("lowe descriptors", keys[:, 4:], entries)
    equal("feat", numpy.loadtxt(folder / "openmvg.feat", ndmin=2).astype(numpy.float32), truth.places)
    desc = (folder / "openmvg.desc").read_bytes()
    assert int.from_bytes(desc[:8], "little") == COUNT
    equal("desc", numpy.frombuffer(desc[8:], dtype=numpy.uint8).reshape(COUNT, 128), entries[:, vlfeat_order])


def check_visualsfm(folder, truth, style):
    data = (folder / "visualsfm.sift").read_bytes()
    # the numbers that COLMAP's exporter to VisualSFM writes
    equal("visualsfm header", numpy.frombuffer(data, "<i4", 5), [1413892435, 808334422, COUNT, 5, 128])
    places = numpy.frombuffer(data, "<f4", 5 * COUNT, 20).reshape(COUNT, 5).astype(float)
    assert numpy.abs(places[:, :2] - 0.5 - truth.places[:, :2]).max() < 1e-4
    equal("visualsfm scale", places[:, 3].astype(numpy.float32), truth.places[:, 2])
    assert numpy.abs(numpy.exp(1j * places[:, 4]) - numpy.exp(-1j * truth.places[:, 3].astype(float))).max() < 1e-6
    scale = 512 if style == "f32" else 1
    entries = numpy.minimum(255, numpy.floor(truth.descriptors.astype(float) * scale + 0.5)).astype(int)
    described = numpy.frombuffer(data, "u1", 128 * COUNT, 20 + 20 * COUNT).reshape(COUNT, 128)
    equal("visualsfm descriptors", described, entries)
    equal("visualsfm end", numpy.frombuffer(data, "<i4", 1, 20 + 148 * COUNT), [1179600383])
    assert len(data) == 24 + 148 * COUNT


def check_oxford(folder, truth, style):
    words = (folder / "oxford.hesaff").read_text().split()
    assert float(words[0]) == (1 if style == "none" else 128) and int(words[1]) == COUNT
    regions = numpy.array(words[2:], dtype=float).reshape(COUNT, -1)
    equal("oxford places", regions[:, :2].astype(numpy.float32), truth.places[:, :2])
    radius = 3 * math.sqrt(3) * truth.places[:, 2].astype(float)
    assert numpy.abs(regions[:, 2:5] * radius[:, None] ** 2 - [1, 0, 1]).max() < 1e-9
    if style != "none":
        scale = 512 if style == "f32" else 1
        entries = numpy.minimum(255, numpy.floor(truth.descriptors.astype(float) * scale + 0.5)).astype(int)
        equal("oxford descriptors", regions[:, 5:], entries)


def check_bin(folder, truth, style):
    """Checks a file by the byte layout in FORMATS.md."""
    path = folder / "bin.hsf"
    header = numpy.fromfile(path, dtype=numpy.dtype([
        ("magic", "S8"), ("endian", "<u4"), ("version", "<u2"), ("header", "<u2"), ("method", "<u4"), ("type", "<u4"),
        ("count", "<u8"), ("keypoints", "<u8"), ("descriptors", "<u8"), ("width", "<u4"), ("height", "<u4"),
        ("keypoint_bytes", "<u2"), ("descriptor_bytes", "<u2"), ("check", "<u4")]), count=1)[0]
    assert header["magic"] == b"\x89HSF\r\n\x1a\n" and header["endian"] == 0x01020304 and header["count"] == COUNT
    assert header["keypoints"] % 64 == 0 and header["descriptors"] % 64 == 0
    record = numpy.dtype([("place", "<f4", 4), ("response", "<f4"), ("octave", "<i2"), ("level", "<i2")])
    keypoints = numpy.memmap(path, dtype=record, mode="r", offset=int(header["keypoints"]), shape=(COUNT,))
    equal("bin places", keypoints["place"], truth.places)
    equal("bin responses", keypoints["response"], truth.responses)
    equal("bin levels", keypoints["level"], truth.levels)
    if style != "none":
        entry = "u1" if style == "u8" else "<f4"
        mapped = numpy.memmap(path, dtype=entry, mode="r", offset=int(header["descriptors"]), shape=(COUNT, 128))
        equal("bin descriptors", mapped, truth.descriptors)


def check_colmap_db(folder, truth, style):
    path = folder / "colmap-db.db"
    if not path.exists():
        print("built without SQLite: the database is unchecked")
        return
    with contextlib.closing(sqlite3.connect(path)) as database:
        name, camera = database.execute("SELECT name, camera_id FROM images").fetchone()
        assert name == 'an "image".png', name
        model, width, height, parameters, prior = database.execute(
            "SELECT model, width, height, params, prior_focal_length FROM cameras WHERE camera_id = ?", [camera]).fetchone()
        assert (model, width, height, prior) == (2, 640, 480, 0)
        equal("camera", numpy.frombuffer(parameters, "<f8"), [1.2 * 640, 320, 240, 0])
        rows, columns, data = database.execute("SELECT rows, cols, data FROM keypoints").fetchone()
        assert (rows, columns) == (COUNT, 6)
        keypoints = numpy.frombuffer(data, "<f4").reshape(rows, columns)
        equal("database places", keypoints[:, :2], (truth.places[:, :2].astype(float) + 0.5).astype(numpy.float32))
        turns = truth.places[:, 2] * numpy.exp(1j * truth.places[:, 3].astype(float))
        shape = numpy.stack([turns.real, -turns.imag, turns.imag, turns.real], axis=1)
        assert numpy.abs(keypoints[:, 2:] - shape).max() <= 1e-7 * numpy.abs(turns).max()
        described = database.execute("SELECT rows, cols, data FROM descriptors").fetchall()
        if style == "none":
            assert not described
        else:
            entries = numpy.frombuffer(described[0][2], "u1").reshape(described[0][:2])
            scale = 512 if style == "f32" else 1
            equal("database descriptors", entries,
                  numpy.minimum(255, numpy.floor(truth.descriptors.astype(float) * scale + 0.5)).astype(int))


def main():
    writer = program()
    for style in ("u8", "f32", "scaled", "none"):
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            subprocess.run([writer, place, str(COUNT), style], check=True)
            truth = Truth(folder)
            checks = [check_npz, check_json, check_csv, check_bin, check_colmap_db, check_oxford]
            if style != "none":
                checks += [check_text_formats, check_visualsfm]
            if cv2 is not None:
                checks.append(check_opencv)
            for check in checks:
                check(folder, truth, style)
    print("cv2 is absent: FileStorage unchecked" if cv2 is None else "all formats agree")


if __name__ == "__main__":
    main()
