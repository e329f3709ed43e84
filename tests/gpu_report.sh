#!/usr/bin/env bash
# Everything that needs a GPU, on a host with one: builds, runs the tests, the Python package's tests, sanitizers and
# benches, and writes one report, REPORT.md. Exit status 1 on any failure. Needs a CUDA toolkit, CMake and a C compiler;
# fetches nothing. Uses the tests' replacement if cmocka is missing; python3 runs the tests that it has packages for.
# usage: bash tests/gpu_report.sh [--only PIECE]... [--output FOLDER] [--build FOLDER] [IMAGE...]
# PIECE: build, tests, python, sanitizers, bench; default: all. Each takes less than ten minutes on 16 cores; results of
# earlier pieces stay in FOLDER (build/gpu-report) and in the report. IMAGE: as for bench/modes/gpu.sh.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

pieces=() out=build/gpu-report build=build/gpu images=()
called="bash tests/gpu_report.sh $*"
while [ $# -gt 0 ]; do
  case $1 in
    --only) pieces+=("${2:?--only: expected a piece}") && shift 2 ;;
    --output) out=${2:?--output: expected a folder} && shift 2 ;;
    --build) build=${2:?--build: expected a folder} && shift 2 ;;
    -*) echo "$1: expected --only, --output, --build or images" >&2 && exit 2 ;;
    *) images+=("$1") && shift ;;
  esac
done
[ "${#pieces[@]}" -gt 0 ] || pieces=(build tests python sanitizers bench)
mkdir -p "$out" && out=$(realpath "$out") || exit 2

programs=(test_cuda_launch_list test_cuda_primitives test_cuda_pyramid test_cuda_keypoints test_cuda_frame test_cuda_match
  test_cuda_primitives_api test_cuda_histogram test_cuda_histogram_api test_device test_device_reason test_match_device test_frame_ways
  test_in_flight test_in_flight_ends test_sizes_in_flight test_split test_patches
  test_affine_tiles test_pairs test_pair_calls
  test_retrieval test_neighbours test_tiles test_rows test_progress test_cuda_jpeg test_jpeg_on_device
  test_engines test_engine_ways)
benches=(bench_hartsift)

# count NAME PASSED FAILED SKIPPED: for the piece's last line.
count() { echo "$2 $3 $4" >>"$out/$piece.counts"; }
# within SECONDS COMMAND...: all output goes to standard output; 124: it timed out.
within() { timeout --kill-after=10 "$@" 2>&1; }

configure() {
  local generator=() cmocka=() cross=$PWD/tests/support/cross
  if command -v ninja >/dev/null; then generator=(-G Ninja); fi
  if ! echo '#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
int main(void) { return 0; }' | cc -x c - -o /dev/null -lcmocka 2>/dev/null; then
    cmocka=(-DHARTSIFT_CMOCKA_INCLUDE="$cross" -DHARTSIFT_CMOCKA_LIBRARY=m)
    echo "cmocka is missing: tests run on tests/support/cross/cmocka.h."
  fi
  cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DHARTSIFT_CUDA=ON \
    -DHARTSIFT_CUDA_ARCHITECTURES="${HARTSIFT_CUDA_ARCHITECTURES:-native}" -DHARTSIFT_PEERS=OFF "${cmocka[@]}" >"$out/configure.log" 2>&1
}

# make_targets TARGET...: builds the targets of a piece; silent if they are built already.
make_targets() {
  [ -f "$build/CMakeCache.txt" ] || configure || { tail -20 "$out/configure.log" && return 1; }
  cmake --build "$build" -j "$(nproc)" --target "$@" >"$out/build.log" 2>&1 && return 0
  grep -E 'error|FAILED' "$out/build.log" | head -20
  return 1
}

run_build() {
  if configure && make_targets hartsift_products "${programs[@]}" "${benches[@]}"; then
    count build 1 0 0
    echo "built in $SECONDS s"
  else
    count build 0 1 0
    tail -5 "$out/configure.log"
  fi
}

# test_program NAME: a line of the table; prints the output of a failing program after it.
test_program() {
  local log="$out/$1.log" start=$SECONDS status passed failed skipped
  within 300 "$build/tests/$1" >"$log"
  status=$?
  passed=$(grep -c '^\[       OK \]' "$log")
  # cmocka names these twice
  skipped=$(grep -oE '^\[  SKIPPED \] [a-z]\w*' "$log" | sort -u | wc -l)
  failed=$(grep -oE '^\[  FAILED  \] [a-z]\w*' "$log" | sort -u | wc -l)
  if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
  count "$1" "$passed" "$failed" "$skipped"
  echo "| $1 | $passed | $failed | $skipped | $((SECONDS - start)) |"
  if [ "$failed" -gt 0 ]; then failures+=("$log"); fi
}

run_tests() {
  local failures=() name log
  make_targets hartsift_products "${programs[@]}" || { count build 0 1 0 && return; }
  printf '| program | passed | failed | skipped | s |\n|---|--:|--:|--:|--:|\n'
  for name in "${programs[@]}"; do test_program "$name"; done
  for log in "${failures[@]}"; do printf '\n```\n%s\n```\n' "$(tail -15 "$log")"; done
  echo
  if within 120 "$build/hartsift" selftest >"$out/selftest.log"; then count selftest 1 0 0; else count selftest 0 1 0; fi
  printf '```\n%s\n```\n' "$(tail -12 "$out/selftest.log")"
  HARTSIFT_GPU_PARTS=agreement within 240 python3 bench/bench.py gpu "$build" "$out/results" "${images[@]}" >"$out/agreement.log"
  grep -E 'equal|differs|failed' "$out/agreement.log"
  count agreement "$(grep -c 'equal, 0 different' "$out/agreement.log")" "$(grep -cE '^(differs|failed)' "$out/agreement.log")" 0
}

run_python() {
  local log="$out/python.log"
  if ! python3 -c 'import numpy, pytest' 2>/dev/null; then
    echo "python3 has no NumPy or no pytest"
    count python 0 0 1
    return
  fi
  make_targets hartsift_products || { count build 0 1 0 && return; }
  python3 -c '
import importlib
for name in ("numpy", "torch", "cupy", "cv2"):
    try:
        print(name, importlib.import_module(name).__version__, end="; ")
    except Exception as error:
        print(name, "cannot be used:", type(error).__name__, end="; ")
print()'
  HARTSIFT_LIBRARY=$(realpath "$build")/libhartsift.so HARTSIFT_COMMAND=$(realpath "$build")/hartsift PYTHONPATH=python \
    PYTHONDONTWRITEBYTECODE=1 within 540 python3 -m pytest -q -rs -p no:cacheprovider python/tests >"$log"
  local status=$? passed failed skipped
  passed=$(tail -1 "$log" | grep -oE '[0-9]+ passed' | grep -oE '[0-9]+')
  failed=$(tail -1 "$log" | grep -oE '[0-9]+ (failed|error)' | awk '{ sum += $1 } END { print sum + 0 }')
  skipped=$(tail -1 "$log" | grep -oE '[0-9]+ skipped' | grep -oE '[0-9]+')
  if [ "$status" -ne 0 ] && [ "${failed:-0}" -eq 0 ]; then failed=1; fi
  count python "${passed:-0}" "${failed:-0}" "${skipped:-0}"
  printf '\n```\n%s\n```\n' "$(grep -E '^(FAILED|ERROR|SKIPPED|E  )' "$log" | head -40; tail -1 "$log")"
}

run_sanitizers() {
  make_targets hartsift_products test_cuda_match test_cuda_primitives_api test_engines test_engine_ways || { count build 0 1 0 && return; }
  within 560 bash tests/gpu_sanitizers.sh "$build" >"$out/sanitizers.log"
  local status=$? rows clean
  rows=$(grep -cE '^\| (mem|race|init|sync)check' "$out/sanitizers.log")
  clean=$(grep -cE 'SUMMARY: 0 (errors|hazards displayed \(0 errors, 0 warnings\)) \|' "$out/sanitizers.log")
  if [ "$status" -eq 77 ]; then
    count sanitizers 0 0 1
  else
    count sanitizers "$clean" "$((rows - clean + (rows == 0 || status == 124)))" 0
  fi
  cat "$out/sanitizers.log"
}

run_bench() {
  make_targets hartsift_products "${benches[@]}" || { count build 0 1 0 && return; }
  HARTSIFT_GPU_PARTS="frames mechanisms matching opencv" within 560 python3 bench/bench.py gpu "$build" "$out/results" "${images[@]}" >"$out/bench.log"
  local status=$?
  if [ "$status" -eq 124 ]; then echo "(not all: it took longer than 560 s)" >>"$out/bench.log"; fi
  if [ "$status" -ne 124 ] && grep -q '|' "$out/bench.log"; then count bench 1 0 0; else count bench 0 1 0; fi
  sed -n '/^## /,$p' "$out/bench.log" | sed 's/^## /### /'
}

# The report from all pieces run so far, in this call or before.
write_report() {
  local name passed=0 failed=0 skipped=0 p f s
  for name in build tests python sanitizers bench; do
    [ -f "$out/$name.counts" ] || continue
    while read -r p f s; do passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)); done <"$out/$name.counts"
  done
  {
    echo "# On a GPU"
    echo
    echo "$passed passed, $failed failed, $skipped skipped; \`$called\`, $(date -u '+%F %H:%M') UTC, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)."
    echo
    nvidia-smi --query-gpu=index,name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2>/dev/null | sed 's/^/- GPU /'
    echo "- $(nvcc --version 2>/dev/null | grep release || echo 'nvcc is not on the path'); $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
    if [ -x "$build/hartsift" ]; then "$build/hartsift" info 2>/dev/null | grep -E '^ *(PNG|JPEG|NVIDIA|GPU|device)' | sed 's/^ */- /'; fi
    for name in build tests python sanitizers bench; do
      [ -f "$out/$name.md" ] || continue
      printf '\n## %s\n\n' "$name"
      cat "$out/$name.md"
    done
  } >"$out/REPORT.md"
  echo "$out/REPORT.md: $passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}

for piece in "${pieces[@]}"; do
  case $piece in
    build | tests | python | sanitizers | bench) ;;
    *) echo "--only $piece: expected build, tests, python, sanitizers or bench" >&2 && exit 2 ;;
  esac
  rm -f "$out/$piece.counts"
  SECONDS=0
  "run_$piece" >"$out/$piece.md"
  echo "$piece: $SECONDS s"
done
write_report
