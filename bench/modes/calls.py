#!/usr/bin/env python3
"""Time of calls from C and Python on a GPU, as a Markdown table.

usage: HARTSIFT_LIBRARY=BUILD/libhartsift.so PYTHONPATH=python bench/bench.py calls BUILD IMAGE [REPEATS]

The rows of C come from BUILD/bench/bench_hartsift calls, which runs before and after the Python calls; the smaller
median counts. CUDA tensors need PyTorch; without it their rows are left out. Every result is compared with the CPU's
before it is timed.
"""
import gc
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

import hartsift

WARM_UP, GIVEN, IN_FLIGHT = 5, 5000, 8


def rows_of_c(program, image, repeats):
    run = subprocess.run([program, "calls", "--repeats", str(repeats), image], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def better(first, second):
    """Returns the better figure of two runs for each row."""
    rows = []
    for a, b in zip(first, second):
        rows.append(max(a, b, key=lambda r: r["images_per_s"]) if "images_per_s" in a else min(a, b, key=lambda r: r["ms"]))
    return rows


def timed(name, call, expected, repeats):
    for _ in range(WARM_UP):
        result = call()
        if expected is not None and result != expected:
            sys.exit(f"calls: {name}: not the CPU's bytes")
    times, count = [], len(result)
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        times.append((time.perf_counter() - start) * 1e3)
    return {"call": f"Python: {name}", "features": count, "ms": statistics.median(times), "least_ms": min(times)}


def rate(name, extractor, images):
    list(extractor.extract_many(images[:50]))
    gc.collect()
    start = time.perf_counter()
    for _ in extractor.extract_many(images):
        pass
    return {"call": f"Python: {name}", "images_per_s": len(images) / (time.perf_counter() - start)}


def tensor_rows(gpu, picture, expected, repeats):
    try:
        import torch
    except ImportError:
        return []
    tensor = torch.from_numpy(picture.copy()).cuda()
    pinned = torch.from_numpy(picture.copy()).pin_memory().numpy()
    return [
        timed("pinned array, extract", lambda: gpu.extract(pinned), expected, repeats),
        timed("CUDA tensor, extract", lambda: gpu.extract(tensor), expected, repeats),
        timed("CUDA tensor, extract_resident", lambda: gpu.extract_resident(tensor), None, repeats),
    ]


def rows_of_python(name, repeats):
    picture = np.array(hartsift.load_image(name))
    expected = hartsift.extract(picture, device="cpu")
    records = expected.records[np.arange(GIVEN) * len(expected) // GIVEN]
    with hartsift.Extractor(device="cpu") as cpu, hartsift.Extractor(device="cuda", in_flight=IN_FLIGHT) as gpu:
        described = cpu.describe(picture, records)[0]
        rows = [timed("NumPy array, extract", lambda: gpu.extract(picture), expected, repeats)]
        rows.append(timed("5000 given, describe", lambda: gpu.describe(picture, records)[0], described, repeats))
        rows += tensor_rows(gpu, picture, expected, repeats)
    with hartsift.Extractor(device="cuda", in_flight=IN_FLIGHT) as gpu:
        rows.append(rate(f"NumPy arrays, extract_many, {IN_FLIGHT} in flight", gpu, [picture] * (20 * repeats)))
    return rows


def main():
    program, image = str(pathlib.Path(sys.argv[1]) / "bench" / "bench_hartsift"), sys.argv[2]
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    before = rows_of_c(program, image, repeats)
    python = rows_of_python(image, repeats)
    rows = better(before, rows_of_c(program, image, repeats)) + python
    print("| call | features | median ms | least ms | images/s |\n|---|--:|--:|--:|--:|")
    for row in rows:
        if "images_per_s" in row:
            print(f"| {row['call']} | | | | {row['images_per_s']:.0f} |")
        else:
            print(f"| {row['call']} | {row['features']} | {row['ms']:.3f} | {row['least_ms']:.3f} | |")


if __name__ == "__main__":
    main()
