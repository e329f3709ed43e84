#!/usr/bin/env python3
"""Time of a frame by every profile at equal numbers of features on a GPU, by turns, as a Markdown table.

usage: HARTSIFT_LIBRARY=BUILD/libhartsift.so PYTHONPATH=python profile_rates.py IMAGE [FEATURES [ROUNDS]]

The contrast threshold of each profile is searched until it has as many features as FEATURES, within half a percent. The
picture is doubled and lies in pinned memory. Needs PyTorch.
"""
import os
import statistics
import sys
import time

import numpy as np
import torch

import hartsift

PROFILES, WARM_UP, STEPS = ("lowe", "opencv", "vlfeat", "colmap"), 5, 24


def extractor(profile, contrast):
    return hartsift.Extractor(device="cuda", profile=profile, contrast=contrast, max_features=0, first_octave=-1)


def contrast_for(profile, picture, wanted):
    """A contrast with about `wanted` features, and how many it has."""
    low, high = 1e-4, 1.0
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        with extractor(profile, middle) as gpu:
            found = len(gpu.extract(picture))
        if abs(found - wanted) <= 0.005 * wanted:
            break
        low, high = (middle, high) if found > wanted else (low, middle)
    return middle, found


def main():
    name, wanted = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 15000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    picture = torch.from_numpy(np.array(hartsift.load_image(name))).pin_memory().numpy()
    chosen = {profile: contrast_for(profile, picture, wanted) for profile in PROFILES}
    contexts = {profile: extractor(profile, chosen[profile][0]) for profile in PROFILES}
    times = {profile: [] for profile in PROFILES}
    for turn in range(-WARM_UP, rounds):
        for i in range(len(PROFILES)):
            profile = PROFILES[(turn + i) % len(PROFILES)]
            start = time.perf_counter()
            contexts[profile].extract(picture)
            if turn >= 0:
                times[profile].append((time.perf_counter() - start) * 1e3)
    first = times[PROFILES[0]]
    print(f"{os.path.basename(name)}\n\n| profile | contrast | features | median ms | ratio |\n|---|--:|--:|--:|--:|")
    for profile in PROFILES:
        ratio = statistics.median(a / b for a, b in zip(times[profile], first))
        contrast, features = chosen[profile]
        print(f"| {profile} | {contrast:.5f} | {features} | {statistics.median(times[profile]):.3f} | {ratio:.2f} |")
        contexts[profile].close()


if __name__ == "__main__":
    main()
