#!/usr/bin/env bash
# The primitives' ladder on a GPU: table, JSON and plot.
# usage: python3 bench/bench.py ladder BUILD_FOLDER OUTPUT_FOLDER
# HARTSIFT_LADDER_PARTS: which parts, of: rungs profile opencv (all).
# BUILD_FOLDER: a CUDA build. Uses ncu if available. Writes OUTPUT_FOLDER/primitives.md, .json and .svg. OpenCV's CPU functions join where Python has
# cv2. Exit status: 0, 1 when a rung was wrong, 77 without a device.
set -uo pipefail
build=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: no CUDA device"; exit 77; }
status=0
parts=" ${HARTSIFT_LADDER_PARTS:-rungs profile opencv} "

# profile PRIMITIVE CASE: the profiler's columns of each rung's kernel, launched once.
profile() {
  ncu --clock-control none --csv --print-units base --metrics "gpu__time_duration.sum,smsp__sass_inst_executed_op_global_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum,dram__bytes.sum,smsp__inst_executed.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum,smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio" \
    "$build/bench/bench_ladder_$1" --once "$2" >"$work/$1.csv" 2>/dev/null
  python3 - "$work/$1.csv" "$1: $2" <<'PY'
import csv, sys
rows, shown = {}, set()
for r in csv.DictReader(line for line in open(sys.argv[1]) if line.startswith('"')):
    rows.setdefault(int(r["ID"]), {"kernel": r["Kernel Name"].split("(")[0]})[r["Metric Name"]] = r["Metric Value"]
columns = {"us": "gpu__time_duration.sum", "loads of a warp": "smsp__sass_inst_executed_op_global_ld.sum", "sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "of them in L1": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", "DRAM bytes": "dram__bytes.sum", "instructions": "smsp__inst_executed.sum", "conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "stalls at barriers": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"}
print(f"\n| {sys.argv[2]} | " + " | ".join(columns) + " |\n|---|" + "--:|" * len(columns))
for i in sorted(rows):
    values = dict(rows[i])
    if "gpu__time_duration.sum" in values:
        values["gpu__time_duration.sum"] = f'{float(values["gpu__time_duration.sum"].replace(",", "")) / 1e3:.1f}'
    print(f'| {values["kernel"]} | ' + " | ".join(values.get(m, "") for m in columns.values()) + " |")
PY
}

{
  echo "# Primitives on a GPU"
  echo
  echo "Written by \`python3 bench/bench.py ladder BUILD OUTPUT\` on $(date -u +%F)."
  echo "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1 | sed 's/, /, driver /'); host: $(nproc) threads."
  echo
  echo "Medians over graph replays; \`same bytes\`: equal to the CPU's; GB/s counts the bytes that memory must move."
  for primitive in reduce tiles histogram convolve; do
    [[ $parts != *" rungs "* ]] || "$build/bench/bench_ladder_$primitive" --json "$work/$primitive.json" || touch "$work/failed"
  done
  if [[ $parts == *" profile "* ]] && command -v ncu >/dev/null; then
    printf '\n## Profiler: one launch a rung\n'
    profile reduce "sum, f32, 512 x 512 (in L2)"
    profile tiles "u8, 8000 x 1000, 40 x 40 (in L2)"
    profile histogram "noise, 640 x 480 (in L2)"
    profile convolve "f64, 10 million, 5 taps"
  fi
  [[ $parts != *" opencv "* ]] || python3 "$here/_opencv_primitives.py" --json "$work/opencv.json"
} | tee "$out/primitives.md"
[ -e "$work/failed" ] && status=1
[[ $parts != *" rungs "* ]] || python3 "$here/_plot_ladder.py" --json "$out/primitives.json" --svg "$out/primitives.svg" "$work"/*.json || status=1
exit $status
