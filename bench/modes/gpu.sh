#!/usr/bin/env bash
# All benches of a GPU: agreement with the CPU, times of frames, calls and matching, OpenCV's times, profiler figures.
# usage: python3 bench/bench.py gpu BUILD_FOLDER OUTPUT_FOLDER [IMAGE...]     (@scene pictures when no image is named)
# HARTSIFT_GPU_PARTS: which parts, of: agreement frames mechanisms calls matching opencv profile (all).
# tests/gpu_report.sh runs tests and sanitizers, and calls this script for the benches.
# BUILD_FOLDER: a CUDA build. Uses ncu and Python with OpenCV if available.
set -uo pipefail
build=$(realpath "$1")
out=$(mkdir -p "$2" && realpath "$2")
shift 2
images=("$@")
[ "${#images[@]}" -gt 0 ] || images=(@scene:640x480 @scene:1280x960 @scene:1920x1080 @scene:3840x2160)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command="$build/hartsift"

heading() { printf '\n## %s\n\n' "$1"; }

agreement() {
  heading "Agreement"
  "$command" selftest 2>/dev/null | grep -E 'cuda|agree'
  local same=0 differ=0
  for profile in lowe opencv vlfeat colmap; do
    for device in cpu cuda; do
      "$command" extract "${images[@]}" --profile $profile --device $device --format bin --quiet -o "$work/$profile.$device/" || echo "failed: $profile $device"
    done
    for f in "$work/$profile.cpu/"*; do
      if cmp -s "$f" "$work/$profile.cuda/$(basename "$f")"; then same=$((same + 1)); else differ=$((differ + 1)); echo "differs: $profile $(basename "$f")"; fi
    done
  done
  echo "whole files of features, CPU against CUDA, ${#images[@]} pictures, 4 profiles: $same equal, $differ different"
  agreement_of_options
}

# Agreement with options of the steps before and after the stages, and with the octaves split between both devices.
agreement_of_options() {
  local options same=0 differ=0 i=0 f
  for options in "--grid 8x6 --max-features 500" "--equalize" "--max-features 300 --norm root" "--descriptor f32 --upright"; do
    i=$((i + 1))
    for device in cpu cuda hybrid; do
      # shellcheck disable=SC2086  # several words
      "$command" extract "${images[@]}" $options --device $device --format bin --quiet -o "$work/options$i.$device/" || echo "failed: $options $device"
    done
    for f in "$work/options$i.cpu/"*; do
      for device in cuda hybrid; do
        if cmp -s "$f" "$work/options$i.$device/$(basename "$f")"; then same=$((same + 1)); else differ=$((differ + 1)); echo "differs: $options $device $(basename "$f")"; fi
      done
    done
  done
  echo "the same with grid, equalisation, selection, float descriptors, on CUDA and hybrid: $same equal, $differ different"
}

frames() {
  heading "Frames, profile lowe"
  "$build/bench/bench_hartsift" frames --json "$out/cuda_frame_lowe.json" "${bench_images[@]}"
  heading "Frames, profile opencv"
  "$build/bench/bench_hartsift" frames --profile opencv --json "$out/cuda_frame_opencv.json" "${bench_images[@]}"
}

# Each mechanism and what it replaces, by turns in one process, on the first (small) and the third (large) picture; then the
# profiler's columns of their kernels on the large one, doubled.
mechanisms() {
  heading "The paper's mechanisms, profile lowe, by turns"
  "$build/bench/bench_hartsift" mechanisms "${bench_images[0]}" ${bench_images[2]:+"${bench_images[2]}"}
  command -v ncu >/dev/null || return 0
  profile_mechanisms 'base_|blur_|uber_|dog_|extrema_' -c 300 # the pyramid's variants come first
  profile_mechanisms 'base_|refine_|orient_[atwb]|describe_[am]'
}

# profile_mechanisms KERNELS [OPTION...]: one frame of each variant; only these kernels are profiled.
profile_mechanisms() {
  local kernels=$1
  shift
  ncu --clock-control none -k "regex:$kernels" "$@" --csv --print-units base --metrics "gpu__time_duration.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,dram__bytes.sum,smsp__inst_executed.sum" \
    "$build/bench/bench_hartsift" mechanisms --rounds 0 --first-octave -1 "${bench_images[2]:-${bench_images[0]}}" >"$work/mechanisms.csv" 2>/dev/null
  # shellcheck disable=SC2046  # one word a variant
  python3 -B bench/modes/_mechanism_profile.py "$work/mechanisms.csv" \
    $(sed -n 's/^    {"\([a-z]*=[a-z0-9-]*\)".*/\1/p' bench/hartsift/mode_mechanisms.c)
}

# C and Python in one table, from all kinds of memory.
calls() {
  heading "Calls"
  HARTSIFT_LIBRARY="$build/libhartsift.so" PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 \
    python3 bench/bench.py calls "$build" "${bench_images[0]}"
}

matching() {
  heading "Matching"
  "$build/bench/bench_hartsift" match --steps --json "$out/cuda_match.json"
}

opencv() {
  heading "OpenCV on the same host"
  python3 - "${bench_images[@]}" <<'PY'
import os, sys, time
try:
    import cv2
except ImportError:
    sys.exit('no OpenCV for Python')
print('| image | OpenCV %s, threads | features | median ms of 5 |\n|---|--:|--:|--:|' % cv2.__version__)
for path in sys.argv[1:]:
    if path.startswith('@'):
        continue
    gray = cv2.imread(path, cv2.IMREAD_GRAYSCALE)
    for threads in (1, os.cpu_count()):
        cv2.setNumThreads(threads)
        sift = cv2.SIFT_create()
        times = []
        for i in range(6):
            start = time.perf_counter()
            keypoints, _ = sift.detectAndCompute(gray, None)
            times.append(time.perf_counter() - start)
        print('| %s | %d | %d | %.1f |' % (os.path.basename(path), threads, len(keypoints), 1e3 * sorted(times[1:])[2]), flush=True)
PY
}

profile() {
  command -v ncu >/dev/null || return 0
  heading "Profiler: one frame of ${bench_images[0]}"
  ncu --clock-control none --graph-profiling node --csv --print-units base -s 40 -c 150 --metrics "gpu__time_duration.sum,sm__inst_executed.avg.per_cycle_active,gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed,dram__bytes.sum,smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct,smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum,smsp__sass_inst_executed_op_local.sum" \
    "$build/bench/bench_hartsift" frames --repeats 1 "${bench_images[0]}" >"$out/ncu.csv" 2>/dev/null
  python3 - "$out/ncu.csv" <<'PY'
import csv, sys
rows, order = {}, []
lines = [l for l in open(sys.argv[1]) if l.startswith('"')]
for r in csv.DictReader(lines):
    if r['ID'] not in rows:
        rows[r['ID']] = {'name': r['Kernel Name'].split('(')[0]}
        order.append(r['ID'])
    value = r['Metric Value'] + (' ' + r['Metric Unit'] if 'byte' in r['Metric Unit'] else '')
    if r['Metric Name'] == 'gpu__time_duration.sum':
        value = '%.3f' % (float(value.replace(',', '')) / 1000)  # from nanoseconds
    rows[r['ID']][r['Metric Name']] = value
short = [('us', 'gpu__time_duration.sum'), ('IPC', 'sm__inst_executed.avg.per_cycle_active'), ('throughput %', 'gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed'),
         ('DRAM', 'dram__bytes.sum'), ('load sector use %', 'smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct'),
         ('store sector use %', 'smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct'), ('bank conflicts ld', 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum'),
         ('bank conflicts st', 'l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum'), ('local instructions', 'smsp__sass_inst_executed_op_local.sum')]
print('| kernel | ' + ' | '.join(s for s, _ in short) + ' |\n|---|' + '--:|' * len(short))
for i in order:
    print('| ' + rows[i]['name'] + ' | ' + ' | '.join(rows[i].get(m, '') for _, m in short) + ' |')
PY
}

# The pictures to time: files named bench_*, else all.
bench_images=()
for i in "${images[@]}"; do case $(basename "$i") in bench_* | @scene*) bench_images+=("$i") ;; esac; done
[ "${#bench_images[@]}" -gt 0 ] || bench_images=("${images[@]}")

{
  echo "# On a GPU"
  echo
  echo "Written by \`python3 bench/bench.py gpu BUILD OUTPUT IMAGE...\` on $(date -u +%F)."
  echo
  "$command" info | grep -E 'hartsift|device|CPU level|CPU threads'
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv,noheader 2>/dev/null
  nvcc --version 2>/dev/null | tail -1
  for part in ${HARTSIFT_GPU_PARTS:-agreement frames mechanisms calls matching opencv profile}; do "$part"; done
} 2>&1 | tee "$out/gpu.md"
