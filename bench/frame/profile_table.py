"""Where the time of a frame goes on a GPU: the profiler's rows of frames.md, added up by stage, as a Markdown table.

usage: python3 bench/frame/profile_table.py bench/results/h200/frames.md

A kernel's time is what the profiler shows for it alone. In a frame kernels overlap, so the sum is more than the frame takes.
"""
import re
import sys

# Stage, and how the names of its kernels begin; the order is that of a frame.
STAGES = [
    ("base", ("base_", "gray_", "double_")),
    ("levels", ("blur_march", "uber_")),
    ("levels of small octaves (chains)", ("blur_chain",)),
    ("extremum search", ("extrema_",)),
    ("refinement", ("refine_",)),
    ("location", ("locate_",)),
    ("orientation: histograms and peaks", ("orient_warp", "orient_peak")),
    ("orientation: features in order", ("orient_emit",)),
    ("selection", ("select_",)),
    ("order of the windows by size", ("work_",)),
    ("descriptors", ("describe_",)),
    ("results to host memory", ("results_",)),
]


def rows_of(text):
    """(kernel, microseconds, instructions a cycle) in the order of the profile; the decimal sign may be a comma."""
    section = text[text.index("## Profiler"):]
    pattern = r"^\| (?:void )?(\w+)(?:<[^|]*>)? \| ([\d,.]+) \| ([\d,.]+) \|"
    rows = []
    for name, time, issued in re.findall(pattern, section, re.M):
        rows.append((name, float(time.replace(",", ".")), float(issued.replace(",", "."))))
    return rows


def one_frame(rows):
    """The rows from one frame's first kernel to the next frame's; all rows when the profile holds less than a frame."""
    starts = [i for i, row in enumerate(rows)
              if row[0].startswith("base_") and (i == 0 or not rows[i - 1][0].startswith("base_"))]
    return rows[starts[0]:starts[1]] if len(starts) > 1 else rows


def main():
    rows = one_frame(rows_of(open(sys.argv[1], encoding="utf-8").read()))
    unknown = {name for name, _, _ in rows if not any(name.startswith(begin) for _, begin in STAGES)}
    total = sum(time for _, time, _ in rows)
    print("| stage | kernels | us | share | instructions a cycle |")
    print("|---|--:|--:|--:|--:|")
    missing = []
    for stage, begin in STAGES:
        mine = [row for row in rows if row[0].startswith(begin)]
        if not mine:
            missing += [stage] if begin not in (("select_",), ("work_",)) else []  # run only where features are selected
            continue
        time = sum(row[1] for row in mine)
        issued = sum(row[1] * row[2] for row in mine) / time
        print(f"| {stage} | {len(mine)} | {time:.0f} | {100 * time / total:.0f} % | {issued:.1f} |")
    others = [row for row in rows if row[0] in unknown]
    if others:
        print(f"| others ({', '.join(sorted(unknown))}) | {len(others)} | {sum(row[1] for row in others):.0f} | | |")
    print(f"| all of these | {len(rows)} | {total:.0f} | 100 % | |")
    if missing:
        print(f"\nNot in this profile: {', '.join(missing)}.")


if __name__ == "__main__":
    main()
