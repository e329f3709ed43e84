#!/usr/bin/env python3
"""Memory of frames within a limit, asked for, promised and used: masks, grids, equalised ones, in flight, and from files of
every kind that is read row by row and some that are not. A table of bench/results/tiles.md.

usage: HARTSIFT_LIBRARY=LIBRARY PYTHONPATH=python memory_table.py [--device cuda] [SIDE...]     (4000 8000)

Square pictures, a scene repeated as for bench_tiles, not doubled, on the CPU with two threads, or on a GPU, where promised
and held are written host + device. Allowed: max_memory_bytes, twelve bytes a pixel where nothing is in flight, and no limit
in the first row of a side. Promised: by hs_workspace_query, of files that are read by rows by hs_workspace_query_rows, times
the frames in flight. Held: by the context afterwards. Process: by how much the memory of a process of its own rises
meanwhile (Linux); features (152 bytes each), and of a file that cannot be read by rows the picture, are in it. Ends with
status 1 where more is held than promised, though no list was longer than planned, or where other bytes come out than of the
row that they must equal. Needs NumPy and OpenCV.
"""
import argparse
import json
import operator
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import cv2
import numpy

import hartsift

MIB = 1 << 20
SCENE_SIDE, SIDES, ALLOWED_BYTES, IN_FLIGHT = 2048, (4000, 8000), 12, 3
COLUMNS = ("picture", "what", "allowed, MiB", "promised, MiB", "held, MiB", "process, MiB", "features", "digest")
GRID = {"max_features": 20000, "grid": (16, 16)}
# What differs in a frame of a picture in memory.
FRAMES = {"no limit": {}, "in memory": {}, "equalised": {"equalize": True}, "mask": {}, "grid": GRID,
          "equalised, mask, grid": {"equalize": True, **GRID}, f"{IN_FLIGHT} in flight": {"in_flight": IN_FLIGHT}}
# How a file is written: its ending, options, and the type of its samples where it is read by rows; from Python files of 16
# bits a sample are loaded first.
FILES = {"PNG": (".png", (), "uint8"), "PNG, 16 bits": (".16.png", (), None),
         "JPEG": (".jpg", (cv2.IMWRITE_JPEG_QUALITY, 95), "uint8"),
         "JPEG, progressive": (".progressive.jpg", (cv2.IMWRITE_JPEG_QUALITY, 95, cv2.IMWRITE_JPEG_PROGRESSIVE, 1), None),
         "TIFF": (".tif", (), None), "PGM": (".pgm", (), None), "PPM": (".ppm", (), None)}
SAME_BYTES = (("no limit", "in memory", f"{IN_FLIGHT} in flight", "PNG", "PNG, 16 bits", "TIFF", "PGM", "PPM"),
              ("JPEG", "JPEG, progressive"))


def picture(side):
    """The scene again and again, each copy mirrored so that they meet without an edge."""
    scene = numpy.asarray(hartsift.render_scene(SCENE_SIDE, SCENE_SIDE, 1))
    place = numpy.arange(side) % (2 * SCENE_SIDE)
    place = numpy.where(place < SCENE_SIDE, place, 2 * SCENE_SIDE - 1 - place)
    return scene[numpy.ix_(place, place)]


def write_files(folder, side):
    pixels = picture(side)
    for name, (ending, how, _) in FILES.items():
        written = pixels.astype(numpy.uint16) * 257 if name.endswith("16 bits") else pixels
        written = numpy.repeat(pixels[:, :, None], 3, axis=2) if name == "PPM" else written
        cv2.imwrite(f"{folder}/{side}{ending}", written, how)


def disc(side):
    row, column = numpy.ogrid[:side, :side]
    middle = side // 2
    return ((row - middle) ** 2 + (column - middle) ** 2 < middle ** 2).astype(numpy.uint8)


def options_of(what, side, device):
    limit = 0 if what == "no limit" else ALLOWED_BYTES * side * side
    threads = {"threads": 2} if device == "cpu" else {}
    return {"first_octave": 0, "device": device, **threads, "max_memory_bytes": limit, **FRAMES.get(what, {})}


def extract(extractor, image, mask, count):
    """Features of one of `count` frames, which are in flight where they are several."""
    if count == 1:
        return extractor.extract(image, mask=mask)
    for _ in range(count):
        extractor.submit(image, mask=mask)
    return [extractor.wait() for _ in range(count)][-1]


def memory_of_process(name):
    """VmRSS, what it has now, or VmHWM, the most it had, in bytes."""
    return 1024 * int(re.search(rf"{name}:\s*(\d+)", pathlib.Path("/proc/self/status").read_text(encoding="ascii")).group(1))


def row_of(folder, side, what, device):
    """One row, as a dictionary, of this process; promised and held: the host's bytes and the device's."""
    options = options_of(what, side, device)
    count = options.get("in_flight", 1)
    file_dtype = FILES[what][2] if what in FILES else None
    image = f"{folder}/{side}{FILES[what][0]}" if what in FILES else picture(side)
    mask = disc(side) if "mask" in what else None
    if device != "cpu":
        hartsift.extract(image if isinstance(image, str) else image[:64, :64], device=device)  # what the driver takes once
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = memory_of_process("VmRSS")
    with hartsift.Extractor(**options) as extractor:
        features = extract(extractor, image, mask, count)
        held = extractor.statistics
    peak = memory_of_process("VmHWM")
    promised = [count * size for size in hartsift.workspace_bytes(side, side, file_dtype=file_dtype, **options)]
    return {"allowed": count * options["max_memory_bytes"], "promised": promised,
            "held": [held.workspace_bytes, held.device_bytes],
            "process": peak - before, "features": len(features), "digest": features.digest,
            "regrown": held.regrown_frames}


def mebibytes(sizes):
    """Of one size, or of the host's and the device's, the latter where it is not 0."""
    sizes = [sizes] if isinstance(sizes, int) else sizes[:1] + [size for size in sizes[1:] if size]
    return " + ".join(f"{size / MIB:.0f}" for size in sizes)


def print_row(side, what, row):
    cells = [f"{side} x {side}", what, *(mebibytes(row[name]) for name in ("allowed", "promised", "held", "process")),
             row["features"], f"`{row['digest']}`"]
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def is_kept(rows):
    """Whether all that was promised is held."""
    kept = True
    for what, row in rows.items():
        if any(map(operator.gt, row["held"], row["promised"])) and row["regrown"] == 0:
            print(f"{what}: {row['held']} bytes are held, {row['promised']} promised", file=sys.stderr)
            kept = False
    for same in SAME_BYTES:
        if len({rows[what]["digest"] for what in same if what in rows}) > 1:
            print(f"{', '.join(same)}: expected the same bytes", file=sys.stderr)
            kept = False
    return kept


def table_of(folder, side, device):
    rows = {}
    write_files(folder, side)
    for what in (*FRAMES, *FILES):
        command = [sys.executable, __file__, "--device", device, "--row", folder, what, str(side)]
        found = subprocess.run(command, check=True, capture_output=True)
        rows[what] = json.loads(found.stdout)
        print_row(side, what, rows[what])
    for path in pathlib.Path(folder).iterdir():
        path.unlink()
    return is_kept(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--row", nargs=2, metavar=("FOLDER", "WHAT"), help=argparse.SUPPRESS)
    parser.add_argument("sides", type=int, nargs="*", metavar="SIDE", default=SIDES)
    wanted = parser.parse_args()
    if wanted.row:
        folder, what = wanted.row
        print(json.dumps(row_of(folder, wanted.sides[0], what, wanted.device)))
        return 0
    print("|", " | ".join(COLUMNS), "|\n|---|---|" + "--:|" * (len(COLUMNS) - 3) + "---|", flush=True)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/dev/shm")) as folder:
        return 0 if all([table_of(folder, side, wanted.device) for side in wanted.sides]) else 1


if __name__ == "__main__":
    sys.exit(main())
