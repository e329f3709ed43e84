#!/usr/bin/env bash
# Rate of hartsift batch from JPEG files to feature files, both on a RAM disk.
# Prints a Markdown table: images a second; CPU time per image for reading and decoding, extracting, and writing; time
# until the first result; and the busy share of readers, each device and writers.
# usage: python3 bench/bench.py batch_scenes [BUILD_FOLDER [FOLDER_OF_IMAGES]]
# Without a folder, colour JPEGs are made from generated scenes; they, and all results, are in /dev/shm (or TMPDIR).
# HARTSIFT_RATE_SIZES: sizes of the scenes (1920x1080 1500x1000 mixed; mixed: from 0.5 to 20 megapixels, one in 24 of
# the largest). HARTSIFT_RATE_DISTINCT: scenes of a size (24), each under several names up to HARTSIFT_RATE_IMAGES
# (240).
# HARTSIFT_RATE_RUNS: option lists of hartsift batch, separated by ';' (default: CPU, and GPUs if there are any). The
# first run of each size is not counted (warm-up).
set -euo pipefail

build=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../../build/cpu}")
command=$build/hartsift
if [ ! -x "$command" ]; then
  echo "$command does not exist: build first, or name the build folder" >&2
  exit 2
fi
distinct=${HARTSIFT_RATE_DISTINCT:-24}
images=${HARTSIFT_RATE_IMAGES:-240}
place=/dev/shm
[ -w "$place" ] || place=${TMPDIR:-/tmp}
work=$(mktemp -d "$place/hartsift-rate-XXXXXX")
trap 'rm -rf "$work"' EXIT

runs=${HARTSIFT_RATE_RUNS:-}
if [ -z "$runs" ]; then
  runs='--devices cpu --format bin;--devices cpu --format npz;--devices cpu --format bin --max-features 2000'
  if "$command" info --json | grep -q '"gpu": {"usable": true'; then
    gpus='--devices cuda:0 --format bin;--devices cuda:0 --format npz'
    for devices in cuda:0 all all,cpu; do gpus+=";--devices $devices --format bin --max-features 2000"; done
    runs="$gpus;$runs"
  fi
fi

# size_of SIZE NUMBER: size of scene NUMBER.
mixed=(1000x750 1600x1200 2048x1536 1280x960 4000x3000 800x600 1920x1080 2592x1944)
size_of() {
  if [ "$1" != mixed ]; then
    echo "$1"
  elif [ $(($2 % 24)) = 12 ]; then
    echo 5472x3648
  else
    echo "${mixed[$2 % ${#mixed[@]}]}"
  fi
}

# make_scenes SIZE: makes a folder of JPEGs. A contrast that no feature reaches keeps the drawing off the picture.
make_scenes() {
  local folder=$work/$1 i
  mkdir -p "$folder"
  for ((i = 0; i < distinct; i++)); do
    printf '@scene:%s:%s\0%s\0' "$(size_of "$1" $i)" $((i + 1)) "$folder/$i.jpg"
  done | xargs -0 -n 2 -P "$(nproc)" \
    bash -c '"$0" draw "$1" --contrast 1 --device cpu --quiet -o "$2"' "$command"
  for ((i = distinct; i < images; i++)); do
    ln "$folder/$((i % distinct)).jpg" "$folder/$i.jpg"
  done
}

# run_batch NAME FOLDER OPTION...: one row of the table.
run_batch() {
  local name=$1 folder=$2 status=0
  shift 2
  rm -rf "$work/out"
  "$command" batch "$folder" -o "$work/out" --json --quiet "$@" >"$work/records" || status=$?
  if [ $status -gt 1 ]; then
    return 1
  fi
  tail -n 1 "$work/records" | python3 -c '
import json, sys
summary = json.load(sys.stdin)["summary"]
images = summary["done"]
cpu = {stage: 1000 * seconds / images for stage, seconds in summary["cpu_seconds"].items()}
name, options, megabytes = sys.argv[1:]
busy = [summary["busy"]["read"], *summary["busy"]["devices"], summary["busy"]["write"]]
print("| {} | {} | {} | {:.1f} | {:.0f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} % |".format(
    name, options, images, summary["images_per_second"], float(megabytes) / summary["seconds"], cpu["read"],
    cpu["extract"], cpu["write"], summary["first_second"], " ".join(f"{100 * part:.0f}" for part in busy)))' \
    "$name" "$*" "$(find "$folder/" -type f -printf '%s\n' | awk '{ bytes += $1 } END { print bytes / 1e6 }')"
}

folders=()
if [ -n "${2:-}" ]; then
  folders=("$(realpath "$2")")
else
  for size in ${HARTSIFT_RATE_SIZES:-1920x1080 1500x1000 mixed}; do
    make_scenes "$size"
    folders+=("$work/$size")
  done
fi
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sed 1q)
echo "${model:-unknown processor}, $(nproc) usable cores. CPU time in ms an image."
echo
echo '| images | options | number | images/s | MB/s read | read and decode | extract | write | first result, s | busy: read, devices, write |'
echo '|---|---|--:|--:|--:|--:|--:|--:|--:|--:|'
IFS=';' read -ra ways <<<"$runs"
for folder in "${folders[@]}"; do
  # shellcheck disable=SC2086
  run_batch warm-up "$folder" ${ways[0]} >/dev/null
  for way in "${ways[@]}"; do
    # shellcheck disable=SC2086
    run_batch "$(basename "$folder")" "$folder" $way
  done
done
