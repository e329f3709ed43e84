"""Draws the plots of the benchmark page from the tables in bench/results, and the picture of the first page."""
import re

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import hartsift
import scenery

OURS, SECOND, OTHERS = "#a6322c", "#e08d66", ("#8c8f94", "#bfc2c6")
plt.rcParams.update({"svg.hashsalt": "hartsift", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False,
                     "axes.axisbelow": True, "figure.facecolor": "white"})


def table(path, *columns, row=0):
    """The rows of the first Markdown table of a file that has these columns, as dictionaries."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else None
             for line in path.read_text(encoding="utf-8").split("\n")]
    for number, header in enumerate(lines):
        if header and all(column in header for column in columns):
            rows = []
            for cells in lines[number + 2:]:
                if not cells:
                    break
                rows.append(dict(zip(header, cells)))
            return rows
    raise ValueError(f"{path}: no table has the columns {', '.join(columns)}")


def numbers(cell):
    """The numbers of a cell such as `9 090 / 10 000`."""
    return [float(re.sub(r"[^\d.]", "", part)) for part in cell.split("/")]


def bars(axis, groups, series, unit):
    """Draws bars with a label above each. series: tuples (label, colour, values)."""
    width = 0.8 / len(series)
    for i, (label, colour, values) in enumerate(series):
        places = [group + (i - (len(series) - 1) / 2) * width for group in range(len(groups))]
        drawn = axis.bar(places, values, width * 0.94, label=label, color=colour)
        axis.bar_label(drawn, [f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in values], fontsize=8, padding=2)
    axis.set_xticks(range(len(groups)), groups)
    axis.set_ylabel(unit)
    axis.grid(axis="y", color="#e4e4e4")
    axis.legend(frameon=False)


def gpu_frames(results, axis):
    rows = table(results / "SUMMARY.md", "picture", "H200, doubled, ms", "OpenCV, doubled, 1 / 16 threads, ms")
    opencv = [numbers(row["OpenCV, doubled, 1 / 16 threads, ms"]) for row in rows]
    bars(axis, [row["picture"] for row in rows],
         [("hartsift, H200", OURS, [numbers(row["H200, doubled, ms"])[0] for row in rows]),
          ("OpenCV, 16 threads", OTHERS[0], [times[1] for times in opencv]),
          ("OpenCV, 1 thread", OTHERS[1], [times[0] for times in opencv])], "ms a frame")
    axis.set_yscale("log")


def cpu_frames(results, axis):
    column = "1 thread: hartsift / OpenCV, ms"
    rows = table(results / "SUMMARY.md", "picture", column)
    times = [numbers(row[column]) for row in rows]
    bars(axis, [row["picture"].replace(", ", ",\n") for row in rows],
         [("hartsift, profile lowe", OURS, [ours for ours, _ in times]),
          ("OpenCV 4.6", OTHERS[0], [theirs for _, theirs in times])], "ms a frame, one thread")
    axis.set_yscale("log")


def threads(results, axis):
    rows = table(results / "SUMMARY.md", "picture", "1 thread", "2", "16")
    for row, colour in zip(rows, (OURS, SECOND)):
        points = [(int(name.split()[0]), numbers(cell)[0]) for name, cell in row.items() if name != "picture"]
        axis.plot(*zip(*points), "o-", color=colour, label=row["picture"])
        axis.plot([threads for threads, _ in points], [points[0][1] / threads for threads, _ in points], ":", color=colour)
    axis.set(xscale="log", yscale="log", xlabel="threads (dotted: twice the threads, half the time)", ylabel="ms a frame")
    axis.set_xticks([threads for threads, _ in points], [str(threads) for threads, _ in points])
    axis.minorticks_off()
    axis.grid(color="#e4e4e4")
    axis.legend(frameon=False)


def in_flight(results, axis):
    rows = table(results / "SUMMARY.md", "picture", "one after another, doubled / not", "in flight")
    pairs = [(numbers(row["one after another, doubled / not"]), numbers(row["in flight"])) for row in rows]
    bars(axis, [row["picture"] for row in rows],
         [("one after another", SECOND, [alone[0] for alone, _ in pairs]),
          ("in flight", OURS, [flying[0] for _, flying in pairs])], "images a second, doubled input")
    axis.set_yscale("log")


def matching(results, axis):
    rows = table(results / "pairs.md", "features", "type", "plain matching, ms")
    for kind, colour in (("8-bit", OURS), ("float", SECOND)):
        chosen = [row for row in rows if row["type"] == kind]
        sizes = [int(row["features"].split()[0]) for row in chosen]
        axis.plot(sizes, [numbers(row["plain matching, ms"])[0] for row in chosen], "o-", color=colour, label=f"{kind} descriptors")
    axis.set(xscale="log", yscale="log", xlabel="features in each of two photographs", ylabel="ms a pair, mutual")
    axis.grid(color="#e4e4e4")
    axis.legend(frameon=False)


def accuracy(results, axis):
    rows = table(results / "SUMMARY.md", "Oxford: rep. / score")
    scores = [numbers(row["Oxford: rep. / score"]) for row in rows]
    names = [row[""].replace("`", "hartsift, ", 1).strip("`") for row in rows]
    bars(axis, ["repeatability", "matching score"],
         [(name, colour, score) for name, colour, score in zip(names, (OURS, *OTHERS), scores)], "share, Oxford's pictures, 2000 features")


def hero(path):
    """Draws two photographs and their matches, each match in one colour."""
    photos = [scenery.photo("leuvenB.jpg"), scenery.photo("leuvenA.jpg")]
    height, width = photos[0].shape[:2]
    first, second = hartsift.extract_batch(photos)
    matches = hartsift.match(first, second)
    good = matches[hartsift.verify(first, second, matches, "fundamental").inliers]
    good = good[np.argsort(-first.sigmas[good.first])[:140]]
    figure, axis = plt.subplots(figsize=(11.4, 4.2))
    axis.imshow(np.hstack([photos[0], np.full_like(photos[0][:, :20], 255), photos[1]]))
    for i, (a, b) in enumerate(good.pairs):
        (x1, y1), (x2, y2) = first.points[a], second.points[b] + (width + 20, 0)
        colour = plt.cm.turbo(y1 / height)
        axis.plot([x1, x2], [y1, y2], color=colour, linewidth=0.6, alpha=0.8)
        for x, y, sigma in ((x1, y1, first.sigmas[a]), (x2, y2, second.sigmas[b])):
            axis.add_patch(plt.Circle((x, y), 2.5 * sigma, fill=False, color=colour, linewidth=0.9))
    axis.set_axis_off()
    figure.subplots_adjust(0, 0, 1, 1)
    figure.savefig(path, dpi=140)
    plt.close(figure)


PLOTS = (gpu_frames, cpu_frames, threads, in_flight, matching, accuracy)


def draw(results, folder):
    """Writes NAME.svg for each plot to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    hero(folder / "hero.png")
    for plot in PLOTS:
        figure, axis = plt.subplots(figsize=(8, 4))
        plot(results, axis)
        figure.tight_layout()
        figure.savefig(folder / f"{plot.__name__}.svg", metadata={"Date": None})
        plt.close(figure)
