#!/usr/bin/env bash
# Many images on a GPU, in one go: rate in flight, latency, memory, splits of the octaves, and batches from JPEG files.
# usage: bash bench/frame/in_flight_results.sh BUILD_FOLDER OUTPUT_FOLDER [IMAGE...]   (@scene pictures when no image is named)
# HARTSIFT_FRAMES: frames of the memory test (100000). BUILD_FOLDER: a CUDA build.
set -uo pipefail
build=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
shift 2
images=("$@")
[ "${#images[@]}" -gt 0 ] || images=(@scene:640x480 @scene:1920x1080)
bench=$build/bench/bench_in_flight
here=$(dirname "${BASH_SOURCE[0]}")

heading() { printf '\n## %s\n\n' "$1"; }

{
  echo "# Many images on a GPU"
  echo
  echo "Written by \`bash bench/frame/in_flight_results.sh BUILD OUTPUT IMAGE...\` on $(date -u +%F)."
  echo
  "$build/hartsift" info | grep -E 'hartsift|device|CPU level|CPU threads'
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
  heading "Rate, images a second"
  "$bench" rate --seconds 0.15 "${images[@]}" @scene:160x120
  heading "The same at 160x120 without groups"
  "$bench" rate --seconds 0.15 --group 1 @scene:160x120
  heading "Latency from hs_submit to hs_wait_view, 10000 frames"
  "$bench" latency --frames 10000 "${images[0]}"
  heading "Memory over ${HARTSIFT_FRAMES:-100000} frames of changing sizes, windows of the first image"
  "$bench" memory --frames "${HARTSIFT_FRAMES:-100000}" "${images[0]}"
  heading "Octaves split between GPU and CPU"
  "$bench" split --seconds 0.15 "${images[@]}"
  heading "Batches from JPEG files, on a RAM disk"
  HARTSIFT_RATE_RUNS="--devices cuda:0 --format bin;--devices cuda:0,cpu --format bin" HARTSIFT_RATE_IMAGES=600 \
    bash "$here/batch_rate.sh" "$build"
} 2>&1 | tee "$out/in_flight.md"
