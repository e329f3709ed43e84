"""Tables in Markdown of the measures on public pictures.

A row of a table is a program at a number of features. A table has the pairs that all of its rows have; rows with fewer pairs than
others are in a second table with the pairs that every program has. Values are means over pairs, with the standard error of
a bootstrap over pairs after ±. `-root`: paired difference from "hartsift root" with the same number of features, of the
last measure that has an error (AUC@10 of poses).
"""
import json
import re

import numpy as np
from public_measures import ANGLE_LIMITS, area_under_recall, mean_and_error

PLANAR = {"oxford": "Oxford", "views": "Views", "night": "Night", "blur": "Strong blur"}
POSES = {"reichstag": "Reichstag", "scannet": "ScanNet", "strecha": "Strecha"}
BASE = "hartsift root"


def by_row(records, group, kind):
    """Returns {row: {pair or picture: record}}."""
    rows = {}
    for record in records:
        if record["group"] == group and record["kind"] == kind:
            rows.setdefault(record["row"], {})[record.get("scene"), record.get("first"), record.get("second")] = record
    return rows


def split(rows):
    """Returns lists of (rows, pairs): rows that have all pairs; then, if others have fewer, rows of their numbers of features with the
    pairs that all of them have."""
    if not rows:
        return []
    most = max(map(len, rows.values()))
    full = [row for row in rows if len(rows[row]) == most]
    found = [(full, sorted(rows[full[0]], key=str))]
    fewer = [row for row in rows if len(rows[row]) < most]
    if fewer:
        budgets = {budget_of(row) for row in fewer}
        chosen = [row for row in rows if budget_of(row) in budgets]
        common = sorted(set.intersection(*(set(rows[row]) for row in chosen)), key=str)
        found += [(chosen, common)] if common else []
    return found


def budget_of(row):
    return int(row.rsplit(", ", 1)[1])


def order(rows):
    return sorted(rows, key=lambda row: (budget_of(row), not row.startswith("hartsift"), len(row), row))


def name_cells(row):
    """Returns the name of a row and its number of features. Names of hartsift's rows are its options."""
    name, budget = row.rsplit(", ", 1)
    if name.startswith("hartsift"):
        name = "+".join(name.split()[1:]) or "l2"
    return f"{name.removesuffix(' SIFT')}|{budget}"


def short(value, form=".3f"):
    """Returns a number as text without a zero before the point."""
    return re.sub(r"^([+-]?)0\.", r"\1.", format(value, form))


def cell(values):
    mean, error = mean_and_error(values)
    return f"{short(mean)}±{short(error)}"


def difference(values, base):
    if base is None or base is values:
        return ""
    mean, error = mean_and_error(np.subtract(values, base))
    return f"{short(mean, '+.3f')}±{short(error)}"


def lines(columns, rows):
    return ["|" + "|".join(columns) + "|", "|---|" + "--:|" * (len(columns) - 1), *("|" + "|".join(row) + "|" for row in rows), ""]


class Times:
    """Columns of --times: milliseconds of a picture's features / a pair's matches."""

    def __init__(self, folders):
        files = [file for folder in folders for file in sorted(folder.glob("times_*.json"))]
        self.measured = {}
        for path in files:  # as of joined measures, the first of a name counts
            self.measured.setdefault(path.stem.removeprefix("times_"), json.loads(path.read_text(encoding="utf-8")))
        self.columns = [f"{name} ms" for name in self.measured]

    def cells(self, row):
        found = [times.get(row) for times in self.measured.values()]
        return [f"{one['extract_ms']:.3g}/{one['match_ms']:.2g}" if one else "" for one in found]


def table(records, group, columns, measures, times):
    """Returns the tables of a group. measures(record list) gives cells and the values whose difference is shown."""
    rows, pictures, text = by_row(records, group, "pair"), by_row(records, group, "picture"), []
    for chosen, pairs in split(rows):
        values = {row: [rows[row][pair] for pair in pairs] for row in chosen}
        main = {row: measures(values[row])[1] for row in chosen}
        cells = []
        for row in order(chosen):
            base = main.get(f"{BASE}, {budget_of(row)}")
            features = f"{np.mean([record['features'] for record in pictures[row].values()]):.0f}"
            cells.append([name_cells(row), features, *measures(values[row])[0], difference(main[row], None if main[row] is base else base),
                          *times.cells(row)])
        text += lines([f"{len(pairs)} pairs", "max", "features", *columns, "-root", *times.columns], cells)
    return text


def planar(values):
    maa = [value["maa"] for value in values]
    names = ("rep", "score", "mma1", "mma3")
    return [f"{np.mean([value['matches'] for value in values]):.0f}", *(cell([value[name] for value in values]) for name in names), cell(maa)], maa


def poses(values):
    areas = [area_under_recall([value["error"] for value in values], limit) for limit in ANGLE_LIMITS]
    return [f"{np.mean([value['matches'] for value in values]):.0f}", cell([value["precision"] for value in values]), *map(cell, areas)], areas[1]


def sequences(records):
    """Returns the table of mAA by sequence of Oxford's pictures."""
    rows, text = by_row(records, "oxford", "pair"), []
    for chosen, pairs in split(rows)[-1:]:
        scenes = sorted({pair[0] for pair in pairs})
        chosen = [row for row in order(chosen) if budget_of(row) == min(map(budget_of, chosen))]
        cells = [[name_cells(row), *(f"{np.mean([rows[row][pair]['maa'] for pair in pairs if pair[0] == scene]):.2f}" for scene in scenes)] for row in chosen]
        text += lines([f"mAA, {len(pairs)}", "max", *scenes], cells)
    return text


def models(records):
    names = {"images": 0, "points": 0, "track": 2, "reprojection_px": 3, "rotation_deg": 3, "position_percent": 3}
    found = [record for record in records if record["kind"] == "model"]
    text = []
    for scene in sorted({record["scene"] for record in found}):
        rows = {record["row"]: record for record in found if record["scene"] == scene}
        cells = [[name_cells(row), *(f"{rows[row][name]:.{digits}f}" if name in rows[row] else "" for name, digits in names.items())] for row in order(rows)]
        text += lines([f"{scene}, {next(iter(rows.values()))['of']} pictures", "max", "posed", "points", "track", "px", "degrees", "position%"], cells)
    return text


def machine(folder):
    """Returns the line about the machine of an output, if it is known."""
    path = folder / "machine.json"
    if not path.exists():
        return []
    about = json.loads(path.read_text(encoding="utf-8"))
    packages = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    processors = ", ".join(about[name] for name in ("gpu", "processor") if name in about)
    return [f"{about['date']}, commit {about['commit']}, {processors}; {packages}.", ""]


def tables(folders, records):
    """Returns the tables of the records of several machines. folders: their outputs, with times and machines."""
    times, text = Times(folders), [line for folder in folders for line in machine(folder)]
    for group, heading in PLANAR.items():
        if by_row(records, group, "pair"):
            text += [f"## {heading}", "", *table(records, group, ("matches", "rep", "score", "MMA@1", "MMA@3", "mAA"), planar, times)]
            text += sequences(records) if group == "oxford" else []
    for group, heading in POSES.items():
        if by_row(records, group, "pair"):
            columns = ("matches", "precision", *(f"AUC@{limit}" for limit in ANGLE_LIMITS))
            text += [f"## {heading}", "", *table(records, group, columns, poses, times)]
    if any(record["kind"] == "model" for record in records):
        text += ["## Reconstructions", "", *models(records)]
    return "\n".join(text).rstrip()
