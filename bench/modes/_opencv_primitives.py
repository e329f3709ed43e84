"""Times OpenCV's CPU functions for the ladder's operations, and its CUDA histogram where OpenCV was built with CUDA (wheels of
PyPI are not); does nothing if Python has no cv2.

usage: opencv_primitives.py [--json FILE]
"""
import argparse
import json
import os
import statistics
import time

try:
    import cv2
    import numpy
except ImportError:
    cv2 = None


def median_us(call):
    times = []
    begin = time.perf_counter()
    while len(times) < 7 and (not times or time.perf_counter() - begin < 0.5):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def cases():
    rng = numpy.random.default_rng(1)
    small, picture = rng.random((512, 512), numpy.float32), rng.integers(0, 256, (1000, 8000), numpy.uint8)
    vga, large = picture[:480, :640].copy(), rng.integers(0, 256, (32768, 32768), numpy.uint8)
    floats, taps = rng.random((1, 10_000_000)), numpy.full((1, 5), 0.2)
    yield "reduction", "sum, f32, 512 x 512 (in L2)", small.nbytes, "sum", lambda: cv2.sumElems(small)
    yield "reduction", "sum, u8, 1 GiB", large.nbytes, "sum", lambda: cv2.sumElems(large)
    yield "reduction", "range, u8, 1 GiB", large.nbytes, "minMaxLoc", lambda: cv2.minMaxLoc(large)
    yield "histogram", "noise, 640 x 480 (in L2)", vga.nbytes, "calcHist", lambda: cv2.calcHist([vga], [0], None, [256], [0, 256])
    yield "histogram", "noise, 1 GiB", large.nbytes, "calcHist", lambda: cv2.calcHist([large], [0], None, [256], [0, 256])
    yield "histogram", "equalised: noise, 1 GiB", 3 * large.nbytes, "equalizeHist", lambda: cv2.equalizeHist(large)
    yield ("convolution", "f64, 10 million, 5 taps", 2 * floats.nbytes, "filter2D",
           lambda: cv2.filter2D(floats, -1, taps, borderType=cv2.BORDER_CONSTANT))


def on_device():
    """Yields calls of OpenCV's CUDA functions, which wait for their results."""
    if not hasattr(cv2, "cuda") or cv2.cuda.getCudaEnabledDeviceCount() < 1:
        return
    rng = numpy.random.default_rng(1)
    for case, shape in (("noise, 640 x 480 (in L2)", (480, 640)), ("noise, 1 GiB", (32768, 32768))):
        on_gpu = cv2.cuda_GpuMat()
        on_gpu.upload(rng.integers(0, 256, shape, numpy.uint8))
        stream, counts = cv2.cuda_Stream(), cv2.cuda_GpuMat(1, 256, cv2.CV_32SC1)

        def call(on_gpu=on_gpu, stream=stream, counts=counts):
            cv2.cuda.calcHist(on_gpu, counts, stream)
            stream.waitForCompletion()
        yield "histogram", case, shape[0] * shape[1], "cuda::calcHist", call


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    arguments = parser.parse_args()
    records = []
    if cv2 is not None:
        print(f"\n## OpenCV {cv2.__version__} on the host\n\n| primitive | case | function | threads | us | GB/s |\n|---|---|---|--:|--:|--:|")
        for primitive, case, size, function, call in cases():
            for threads in (1, os.cpu_count()):
                cv2.setNumThreads(threads)
                us = median_us(call)
                print(f"| {primitive} | {case} | {function} | {threads} | {us:.1f} | {size / us * 1e-3:.1f} |", flush=True)
                records.append({"primitive": primitive, "case": case, "rung": f"OpenCV {function}, {threads} threads", "checked": "-",
                                "median_us": us, "bytes": size, "gb_per_s": size / us * 1e-3})
        for primitive, case, size, function, call in on_device():
            call()
            us = median_us(call)
            print(f"| {primitive} | {case} | {function}, with a wait | GPU | {us:.1f} | {size / us * 1e-3:.1f} |", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(records, file)


main()
