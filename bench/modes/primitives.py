#!/usr/bin/env python3
"""The primitives on arrays in a GPU's memory: calls from C and from Python, with PyTorch's tensors.

usage: HARTSIFT_LIBRARY=BUILD/libhartsift.so PYTHONPATH=python bench/bench.py primitives BUILD [REPEATS]

C's rows are those of BUILD/bench/bench_hartsift primitives, which runs before and after Python's; the smaller median
counts. Each result is compared with NumPy's first. "sum", "histogram" and "tiles" return numbers, so a call waits for
them; "convolve" and "equalize" return tensors, so many calls are queued, as in C.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import torch

import hartsift

ENQUEUED, TAPS = 50, [0.2] * 5
CALLS = {
    "sum": hartsift.reduce_sum,
    "histogram": hartsift.histogram256,
    "tiles": lambda array: hartsift.tile_stats(array, (400, 400) if array.shape[0] > 10000 else (40, 40), 100.0),
    "convolve": lambda array: hartsift.convolve1d(array, TAPS),
    "equalize": hartsift.equalize,
}


def rows_of_c(program, repeats):
    run = subprocess.run([program, "primitives", "--repeats", str(repeats)], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def check(name, array):
    """Compares a call's result with NumPy's on a small part of the array."""
    part = array[:480, :4000].contiguous() if array.dim() == 2 else array[:100000].contiguous()
    host = part.cpu().numpy()
    got = CALLS[name](part)
    if name == "sum":
        right = abs(got - host.sum(dtype=np.float64)) <= 1e-12 * abs(got)
    elif name == "histogram":
        right = np.array_equal(got, np.bincount(host.ravel(), minlength=256))
    elif name == "tiles":
        right = got.shape == (-(-host.shape[0] // 40), -(-host.shape[1] // 40)) and got["sum"][0, 0] == host[:40, :40].sum(dtype=np.int64)
    elif name == "convolve":
        right = np.allclose(got.cpu().numpy(), np.convolve(host, TAPS, "same"), rtol=0, atol=1e-15)
    else:
        right = np.array_equal(got.cpu().numpy(), hartsift.equalize(host))
    if not right:
        sys.exit(f"primitives: {name}: not NumPy's result")


def median_us(name, array, repeats):
    calls = ENQUEUED if name in ("convolve", "equalize") else 1
    times = []
    for i in range(-3, repeats):
        start = time.perf_counter()
        for _ in range(calls):
            CALLS[name](array)
        if calls > 1:
            torch.cuda.synchronize()
        if i >= 0:
            times.append((time.perf_counter() - start) * 1e6 / calls)
    return statistics.median(times)


def main():
    program, repeats = str(pathlib.Path(sys.argv[1]) / "bench" / "bench_hartsift"), int(sys.argv[2]) if len(sys.argv) > 2 else 50
    before = rows_of_c(program, repeats)
    python = []
    for row in before:
        shape = (row["height"], row["width"]) if row["height"] > 1 else (row["width"],)
        kind = getattr(torch, row["type"])
        array = torch.rand(shape, dtype=kind, device="cuda") if kind.is_floating_point else \
            torch.randint(0, 256, shape, dtype=kind, device="cuda")
        check(row["call"], array)
        python.append(median_us(row["call"], array, repeats))
        del array
        torch.cuda.empty_cache()
    print("| call | array | C, us | Python, us | Python's time / C's |\n|---|---|--:|--:|--:|")
    for row, again, ours in zip(before, rows_of_c(program, repeats), python):
        us = min(row["us"], again["us"])
        print(f"| {row['call']} | {row['width']} x {row['height']}, {row['type']} | {us:.1f} | {ours:.1f} | {ours / us:.2f} |")


if __name__ == "__main__":
    main()
