"""A web page of the records of `hartsift bench --json`: table, plot, and tables of accuracy.

usage: hartsift bench --json [--against opencv] | python3 bench/bench.py page [--accuracy FILE] >page.html
Needs Matplotlib. The page is self-contained: its plots are inline SVG. FILE: output of the mode accuracy.
"""
import argparse
import collections
import html
import io
import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402  (after the choice of the backend)

COLUMNS = ("name", "width", "height", "program", "profile", "device", "threads", "features", "median_ms", "min_ms", "p90_ms",
           "ratio")
HEAD = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>hartsift bench</title>
<style>body{font:16px sans-serif;margin:2em auto;max-width:60em}table{border-collapse:collapse}
td,th{padding:.2em .6em;border-bottom:1px solid #ccc;text-align:right}svg{max-width:100%;height:auto}</style>
"""


def table(head, rows):
    lines = ["<table><thead><tr>", *(f"<th>{html.escape(str(cell))}</th>" for cell in head), "</tr></thead><tbody>"]
    for row in rows:
        lines += ["<tr>", *(f"<td>{html.escape(str(cell))}</td>" for cell in row), "</tr>"]
    return "".join(lines) + "</tbody></table>\n"


def figure(draw, rows):
    """Returns the SVG text of a plot that draw(axes) fills. More rows make it higher."""
    canvas, axes = pyplot.subplots(figsize=(9, 1 + 0.35 * rows), layout="constrained")
    draw(axes)
    text = io.StringIO()
    canvas.savefig(text, format="svg")
    pyplot.close(canvas)
    return text.getvalue()[text.getvalue().index("<svg"):]


def plot_speed(records):
    """Draws a bar for each configuration of a picture, with a whisker from the fastest round to the 90th percentile."""
    labels = [f"{r['name']}, {r['program']} {r['profile']}, {r['device']}, {r['threads']} threads" for r in records]
    median = [r["median_ms"] for r in records]
    below = [m - r["min_ms"] for m, r in zip(median, records)]
    above = [max(r["p90_ms"] - m, 0) for m, r in zip(median, records)]

    def draw(axes):
        programs = list(dict.fromkeys((r["program"], r["profile"]) for r in records))
        colours = [f"C{programs.index((r['program'], r['profile']))}" for r in records]
        axes.barh(range(len(records)), median, xerr=(below, above), color=colours, tick_label=labels)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("milliseconds a frame: median, fastest, 90th percentile")
    return figure(draw, len(records))


def read_tables(text):
    """Returns the tables of a Markdown text: (heading above the table, head, rows)."""
    heading, rows = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        elif rows:
            yield heading, rows[0], rows[2:]
            rows = []
        if line.startswith("#"):
            heading = line.lstrip("# ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accuracy", type=pathlib.Path, help="tables of accuracy to show, in Markdown")
    arguments = parser.parse_args()
    records = json.load(sys.stdin)
    if not records:
        sys.exit("no record on standard input")
    print(HEAD + "<h1>Speed</h1>" + plot_speed(records))
    print(table(COLUMNS, [[record[name] for name in COLUMNS] for record in records]))
    if arguments.accuracy:
        print("<h1>Accuracy</h1>")
        sections = collections.defaultdict(list)
        for heading, head, rows in read_tables(arguments.accuracy.read_text(encoding="utf-8")):
            sections[heading].append(table(head, rows))
        for heading, tables in sections.items():
            print(f"<h2>{html.escape(heading)}</h2>", *tables)
    print("</html>")


main()
