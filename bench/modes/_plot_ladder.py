"""Joins the ladder's JSON files and draws them: one group of bars per case, time on a logarithmic scale.

usage: plot_ladder.py --json OUT.json --svg OUT.svg FILE.json...
"""
import argparse
import json
import math
from xml.sax.saxutils import escape

LABEL, BARS, ROW, GAP, TOP = 330, 560, 15, 30, 50
COLOURS = (("the library", "#1b6f5a"), ("CUB", "#c0662a"), ("CPU", "#7a7a7a"), ("OpenCV", "#a9a9a9"), ("a copy", "#c0662a"))
OTHER = "#7fb6d6"


def colour_of(rung):
    return next((colour for start, colour in COLOURS if rung.startswith(start)), OTHER)


def groups_of(records):
    groups = {}
    for record in records:
        if record["checked"] != "rate":
            groups.setdefault((record["primitive"], record["case"]), []).append(record)
    return groups


def text(x, y, words, size=11, anchor="start", weight="normal"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def duration(us):
    return f"{us:.1f} us" if us < 1000 else (f"{us / 1e3:.2f} ms" if us < 1e6 else f"{us / 1e6:.2f} s")


def draw(groups):
    times = [record["median_us"] for records in groups.values() for record in records]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    scale = BARS / max(1, high - low)
    parts, y = [], TOP
    for (primitive, case), records in groups.items():
        parts.append(text(10, y, f"{primitive}: {case}", 12, weight="bold"))
        y += 6
        for record in sorted(records, key=lambda r: -r["median_us"]):
            width = max(1.0, (math.log10(record["median_us"]) - low) * scale)
            parts.append(text(LABEL - 6, y + 11, record["rung"], 10, "end"))
            parts.append(f'<rect x="{LABEL}" y="{y + 2}" width="{width:.1f}" height="{ROW - 4}" fill="{colour_of(record["rung"])}"/>')
            parts.append(text(LABEL + width + 4, y + 11, f'{duration(record["median_us"])}, {record["gb_per_s"]:.0f} GB/s', 10))
            y += ROW
        y += GAP
    for decade in range(low, high + 1):
        x = LABEL + (decade - low) * scale
        parts.insert(0, f'<line x1="{x:.1f}" y1="{TOP - 14}" x2="{x:.1f}" y2="{y - GAP}" stroke="#dddddd"/>')
        parts.append(text(x, TOP - 18, duration(10.0 ** decade), 10, "middle"))
    width = LABEL + BARS + 170
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" font-family="sans-serif">'
            f'<rect width="{width}" height="{y}" fill="white"/>' + text(10, 18, "Primitives, rung by rung: time of one call", 14, weight="bold")
            + "\n".join(parts) + "</svg>\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", required=True)
    parser.add_argument("--svg", required=True)
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    records = []
    for name in arguments.files:
        with open(name, encoding="utf-8") as file:
            records += json.load(file)
    records.sort(key=lambda record: record["primitive"])
    with open(arguments.json, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]\n")
    with open(arguments.svg, "w", encoding="utf-8") as file:
        file.write(draw(groups_of(records)))


main()
