"""Sums kernels of each variant from a profile of `bench_hartsift mechanisms --rounds 0`.

usage: _mechanism_profile.py NCU.csv VARIANT...        (the variants in the order of the mode's rows)

A frame begins with the kernels that make the base. Prints a table in Markdown for each kind of mechanism: time of the kernels that the
variants of this kind differ in, one after another, with the columns of the profiler. Sectors and instructions are sums.
"""
import collections
import csv
import sys

KERNELS = {"pyramid": ("blur_", "uber_", "dog_", "extrema_"), "refine": ("refine_",), "orient": ("orient_",), "describe": ("describe_",)}
COLUMNS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "loads, conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 1),
    "stores, conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", 1),
    "atomics, conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum", 1),
    "wavefronts of shared memory": ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1),
    "DRAM MB": ("dram__bytes.sum", 1e-6),
    "instructions": ("smsp__inst_executed.sum", 1),
}


def read(path):
    """Returns the launches in order: (kernel's name, {metric: value})."""
    launches = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if line.startswith('"')):
            name, values = launches.setdefault(int(row["ID"]), (row["Kernel Name"].split("(")[0], {}))
            text = row["Metric Value"].replace(",", "")
            values[row["Metric Name"]] = float(text) if text and text[0].isdigit() else 0.0
    return [launches[key] for key in sorted(launches)]


def frames(launches):
    found, before = [], ""
    for name, values in launches:
        if name.startswith("base_") and not before.startswith("base_"):
            found.append([])
        if found:
            found[-1].append((name, values))
        before = name
    return found


def rows_of(kind, variant, launches):
    """Returns the lines of a variant: each of its kernels, and all of them."""
    sums = collections.OrderedDict()
    for name, values in launches:
        short = next((n for n in KERNELS[kind] if name.startswith(n)), None)
        for key in () if short is None else (f"{short}*" if kind == "pyramid" else name, "all"):
            count, total = sums.setdefault(key, [0, collections.Counter()])
            sums[key][0] = count + 1
            total.update(values)
    if "all" in sums:
        sums.move_to_end("all")
    for key, (count, total) in sums.items():
        cells = [f"{total[metric] * scale:.{1 if scale != 1 else 0}f}" for metric, scale in COLUMNS.values()]
        yield f"| {variant} | {key} | {count} | " + " | ".join(cells) + " |"


def main():
    pairs = list(zip(sys.argv[2:], frames(read(sys.argv[1]))))
    for kind in KERNELS:
        rows = [row for variant, launches in pairs if variant.startswith(kind) for row in rows_of(kind, variant, launches)]
        if rows:
            print(f"\n| `{kind}` | kernel | launches | " + " | ".join(COLUMNS) + " |\n|---|---|--:|" + "--:|" * len(COLUMNS))
            print("\n".join(rows))


main()
