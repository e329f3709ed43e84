#!/usr/bin/env bash
# Runs one target of the build with libFuzzer. Its saved inputs must pass; then it searches new inputs for
# HARTSIFT_FUZZ_SECONDS (5; 0: none) in HARTSIFT_FUZZ_JOBS (1) concurrent jobs, each with at most
# HARTSIFT_FUZZ_MEMORY_MB (1024) of memory and two minutes an input. A failing input is stored in the folder
# HARTSIFT_FUZZ_FOUND (default: found, in the program's folder), and the job continues, three times at most.
# HARTSIFT_FUZZ_KEPT, if set, receives new inputs worth keeping; HARTSIFT_FUZZ_SMALL the few of them with coverage
# beyond the saved ones. HARTSIFT_FUZZ_SEED (0: random) determines the new inputs. Prints the result as a row of a
# table, and appends it to the file HARTSIFT_FUZZ_TABLE.
# usage: fuzz_target.sh PROGRAM NAME INPUTS...
set -euo pipefail
program=$1 name=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
found=${HARTSIFT_FUZZ_FOUND:-$(dirname "$program")/found}
scratch=$(mktemp -d)
files=$scratch
# SQLite syncs a database at every commit; in memory this does not wait.
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
options=(-rss_limit_mb="${HARTSIFT_FUZZ_MEMORY_MB:-1024}" -malloc_limit_mb="${HARTSIFT_FUZZ_MEMORY_MB:-1024}" -timeout=120
  -artifact_prefix="$found/$name-" -print_final_stats=1 -close_fd_mask=3)
if [ -f "$here/dictionaries/$name.dict" ]; then
  options+=(-dict="$here/dictionaries/$name.dict")
fi
export TMPDIR=$files
# A deliberate memory limit must give a null pointer, as without the sanitizer.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1:quarantine_size_mb=16:${HARTSIFT_FUZZ_ASAN:-}
export UBSAN_OPTIONS=print_stacktrace=1

# Thousands of messages of the target are hidden while it runs; messages for a failing input are shown.
explain() {
  local input
  for input in "$found/$name-"*; do
    if [ -f "$input" ] && [ "$input" -nt "$scratch" ]; then "$program" -timeout=120 "$input" || true; fi
  done
  exit 1
}

# search JOB: runs one job until the time is over; its log, processor seconds and failures are in files with its number.
search() {
  local end=$((SECONDS + seconds)) seed=${HARTSIFT_FUZZ_SEED:-0} failures=0
  if [ "$seed" -gt 0 ]; then seed=$((seed + $1 - 1)); fi
  TIMEFORMAT='%U %S'
  while [ "$SECONDS" -lt "$end" ] && [ "$failures" -lt 3 ]; do
    { time "$program" "${options[@]}" -seed="$seed" -max_total_time=$((end - SECONDS)) \
      -max_len="${HARTSIFT_FUZZ_BYTES:-16384}" "$kept" "${existing[@]}" >>"$scratch/log.$1" 2>&1; } 2>>"$scratch/cpu.$1" ||
      failures=$((failures + 1))
  done
  echo "$failures" >"$scratch/failures.$1"
}

# The new inputs with coverage beyond the saved ones, among inputs small enough for a repository.
make_small() {
  local all=$scratch/all short=$scratch/short target=$HARTSIFT_FUZZ_SMALL/$name
  mkdir -p "$all" "$short" "$target"
  find "$kept" -type f -size -3000c -exec cp -t "$short" {} +
  [ ${#existing[@]} -eq 0 ] || find "${existing[@]}" -type f -exec cp -t "$all" {} +
  find "$all" -type f -printf '%f\n' | sort >"$scratch/saved"
  "$program" "${options[@]}" -set_cover_merge=1 -use_counters=0 "$all" "$short" >"$scratch/merge" 2>&1 || return 0
  find "$all" -type f -printf '%f\n' | sort | comm -13 "$scratch/saved" - | sed "s|^|$all/|" | xargs -r cp -t "$target"
}

report() {
  local commit executions failures hours row
  commit=${HARTSIFT_FUZZ_COMMIT:-$(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)}
  executions=$(cat "$scratch"/log.* | awk '/number_of_executed_units/ { n += $2 } END { printf "%d", n }')
  failures=$(cat "$scratch"/failures.* | awk '{ n += $1 } END { printf "%d", n }')
  hours=$(cat "$scratch"/cpu.* | awk 'NF == 2 { n += $1 + $2 } END { printf "%.3f", n / 3600 }')
  row="| $(date -u +%F) | $commit | $name | $jobs | $hours | $executions | $failures |"
  echo "$row"
  if [ -n "${HARTSIFT_FUZZ_TABLE:-}" ]; then echo "$row" >>"$HARTSIFT_FUZZ_TABLE"; fi
  [ "$failures" -eq 0 ]
}

"$program" "${options[@]}" -runs=0 "${existing[@]}" || explain
seconds=${HARTSIFT_FUZZ_SECONDS:-5} jobs=${HARTSIFT_FUZZ_JOBS:-1}
if [ "$seconds" -gt 0 ]; then
  for job in $(seq "$jobs"); do search "$job" & done
  wait
  if [ -n "${HARTSIFT_FUZZ_SMALL:-}" ] && [ -n "${HARTSIFT_FUZZ_KEPT:-}" ]; then make_small; fi
  report || explain
fi
