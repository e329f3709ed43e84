#!/usr/bin/env bash
# The primitives' ladder on a GPU: table, JSON and plot.
# usage: python3 bench/bench.py ladder BUILD_FOLDER OUTPUT_FOLDER
# BUILD_FOLDER: a CUDA build. Writes OUTPUT_FOLDER/primitives.md, .json and .svg. OpenCV's CPU functions join where Python has
# cv2. Exit status: 0, 1 when a rung was wrong, 77 without a device.
set -uo pipefail
build=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: no CUDA device"; exit 77; }
status=0
{
  echo "# Primitives on a GPU"
  echo
  echo "Written by \`python3 bench/bench.py ladder BUILD OUTPUT\` on $(date -u +%F)."
  echo "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1 | sed 's/, /, driver /'); host: $(nproc) threads."
  echo
  echo "Medians over graph replays; \`same bytes\`: equal to the CPU's; GB/s counts the bytes that memory must move."
  for primitive in reduce tiles histogram convolve; do
    "$build/bench/bench_ladder_$primitive" --json "$work/$primitive.json" || touch "$work/failed"
  done
  python3 "$here/_opencv_primitives.py" --json "$work/opencv.json"
} | tee "$out/primitives.md"
[ -e "$work/failed" ] && status=1
python3 "$here/_plot_ladder.py" --json "$out/primitives.json" --svg "$out/primitives.svg" "$work"/*.json || status=1
exit $status
