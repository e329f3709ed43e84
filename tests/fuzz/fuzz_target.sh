#!/usr/bin/env bash
# One target of the build with libFuzzer: first its saved inputs, which must pass, then new ones for HARTSIFT_FUZZ_SECONDS (5; 0:
# none) with at most HARTSIFT_FUZZ_MEMORY_MB (1024) of memory and a minute an input. An input that fails is kept in the folder
# HARTSIFT_FUZZ_FOUND (found beside the program), new inputs worth keeping in HARTSIFT_FUZZ_KEPT, where that is set. HARTSIFT_FUZZ_SEED
# (0: another one every time) chooses the new inputs.
# usage: fuzz_target.sh PROGRAM NAME INPUTS...
set -euo pipefail
program=$1 name=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
found=${HARTSIFT_FUZZ_FOUND:-$(dirname "$program")/found}
scratch=$(mktemp -d)
files=$scratch
# Databases are synced at every commit, which memory does not wait for.
if [ -w /dev/shm ]; then files=$(mktemp -d -p /dev/shm); fi
trap 'rm -rf "$scratch" "$files"' EXIT
mkdir -p "$found" "$scratch/new"
kept=$scratch/new
if [ -n "${HARTSIFT_FUZZ_KEPT:-}" ]; then
  kept=$HARTSIFT_FUZZ_KEPT/$name
  mkdir -p "$kept"
fi
existing=()
for inputs in "$@"; do
  if [ -d "$inputs" ]; then existing+=("$inputs"); fi
done
options=(-rss_limit_mb="${HARTSIFT_FUZZ_MEMORY_MB:-1024}" -malloc_limit_mb="${HARTSIFT_FUZZ_MEMORY_MB:-1024}" -timeout=60
  -artifact_prefix="$found/$name-" -print_final_stats=1 -close_fd_mask=3
  -seed="${HARTSIFT_FUZZ_SEED:-0}")
if [ -f "$here/dictionaries/$name.dict" ]; then
  options+=(-dict="$here/dictionaries/$name.dict")
fi
export TMPDIR=$files
# A wanted limit of memory is met with a null pointer, as without the sanitizer.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1:quarantine_size_mb=16
export UBSAN_OPTIONS=print_stacktrace=1
# The target's own messages are not shown while it runs, which would be thousands; those of an input that failed are.
explain() {
  local input
  for input in "$found/$name-"*; do
    if [ -f "$input" ] && [ "$input" -nt "$scratch" ]; then "$program" -timeout=60 "$input" || true; fi
  done
  exit 1
}
"$program" "${options[@]}" -runs=0 "${existing[@]}" || explain
seconds=${HARTSIFT_FUZZ_SECONDS:-5}
if [ "$seconds" -gt 0 ]; then
  "$program" "${options[@]}" -max_total_time="$seconds" -max_len="${HARTSIFT_FUZZ_BYTES:-16384}" "$kept" "${existing[@]}" || explain
fi
