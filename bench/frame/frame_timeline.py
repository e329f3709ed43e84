#!/usr/bin/env python3
"""When each kernel of a frame runs on a GPU, as a Markdown table: what overlaps, and where the device waits.

usage: HARTSIFT_LIBRARY=BUILD/libhartsift.so PYTHONPATH=python frame_timeline.py IMAGE [--not-doubled] [FRAMES]

The picture is in pinned memory. PyTorch's profiler gives begin and end of every kernel and copy; of each the median over the
frames, from the frame's first on. Tracing makes a frame longer than it is otherwise, its kernels hardly. Needs PyTorch.
"""
import json
import os
import re
import statistics
import sys
import tempfile
import time

import numpy as np
import torch

import hartsift

WARM_UP, PAUSE_S, APART_US = 20, 0.003, 1500


def traced(call, frames):
    """Begin, duration in us, stream and name of what the device did, in order."""
    for _ in range(WARM_UP):
        call()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(frames):
            call()
            time.sleep(PAUSE_S)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    wanted = ("kernel", "gpu_memcpy", "gpu_memset")
    return sorted((e["ts"], e["dur"], e["args"].get("stream"), e["name"]) for e in events if e.get("cat") in wanted)


def frames_of(events):
    """Events of one frame each: pauses lie between them."""
    frames, end = [], None
    for event in events:
        if end is None or event[0] - end > APART_US:
            frames.append([])
        frames[-1].append(event)
        end = max(end or 0, event[0] + event[1])
    return frames


def short(name):
    return re.sub(r"^void |\(.*$", "", name)


def keyed(frame):
    """By name, stream and which one of these; begins from the frame's."""
    seen, rows = {}, {}
    for begin, duration, stream, name in frame:
        key = (short(name), stream)
        seen[key] = seen.get(key, 0) + 1
        rows[(*key, seen[key])] = (begin - frame[0][0], duration)
    return rows


def main():
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    count = int(words[1]) if len(words) > 1 else 30
    picture = torch.from_numpy(np.array(hartsift.load_image(words[0]))).pin_memory().numpy()
    with hartsift.Extractor(device="cuda", first_octave=0 if "--not-doubled" in sys.argv else -1) as gpu:
        frames = [keyed(f) for f in frames_of(traced(lambda: gpu.extract(picture), count))]
    alike = [f for f in frames if f.keys() == frames[-1].keys()]
    rows = []
    for key in frames[-1]:
        begins, durations = zip(*(f[key] for f in alike))
        rows.append((statistics.median(begins), statistics.median(durations), key))
    print(f"{os.path.basename(words[0])}, {len(alike)} frames of {len(frames)}\n")
    print("| begin | end | us | stream | kernel |\n|--:|--:|--:|--:|---|")
    for begin, duration, key in sorted(rows):
        print(f"| {begin:.1f} | {begin + duration:.1f} | {duration:.1f} | {key[1]} | {key[0]} |")


if __name__ == "__main__":
    main()
