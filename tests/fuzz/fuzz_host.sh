#!/usr/bin/env bash
# Runs the programs of a package of pack.sh, all targets concurrently, on some cores of a machine, at the lowest
# priority.
# usage: fuzz_host.sh SECONDS CORES     CORES: in the syntax of taskset, 0-15
# Variables: OUT: the output folder (default: the current one). fuzz/table gets a row for each target.
# fuzz/inputs.tar.gz gets found/ (failing inputs), small/ (new inputs with coverage beyond the saved ones) and logs/
# (messages of the targets).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seconds=$1 cores=$2
left=${OUT:-$PWD}/fuzz
work=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$work"' EXIT
out=$work/out
mkdir -p "$left" "$out/logs" "$out/small" "$out/found"
HARTSIFT_FUZZ_COMMIT=$(cat "$here/commit")
export HARTSIFT_FUZZ_COMMIT HARTSIFT_FUZZ_SECONDS=$seconds HARTSIFT_FUZZ_FOUND=$out/found HARTSIFT_FUZZ_KEPT=$work/kept \
  HARTSIFT_FUZZ_SMALL=$out/small HARTSIFT_FUZZ_TABLE=$left/table LD_LIBRARY_PATH=$here/lib

programs=("$here"/programs/*)
count=$(taskset -c "$cores" nproc)
export HARTSIFT_FUZZ_JOBS=$(((count + ${#programs[@]} - 1) / ${#programs[@]}))

# Exits if addresses are too random for this sanitizer's shadow memory, or processes cannot be traced for leaks.
runner=()
probe() { "${runner[@]}" "$here/programs/fuzz_lists" -runs=0 "$here/corpus/lists" >"$out/logs/probe" 2>&1; }
if ! probe; then
  if setarch -R true 2>/dev/null; then runner=(setarch -R); fi
  if ! probe; then
    export HARTSIFT_FUZZ_ASAN=detect_leaks=0
    echo "leaks are not looked for: see logs/probe"
  fi
fi

for program in "${programs[@]}"; do
  name=$(basename "$program")
  name=${name#fuzz_}
  inputs=("$here/corpus/$name")
  case $name in image | jpeg) inputs+=("$here/images") ;; esac
  nice -n 19 taskset -c "$cores" "${runner[@]}" bash "$here/fuzz_target.sh" "$program" "$name" "${inputs[@]}" \
    >"$out/logs/$name" 2>&1 &
done
wait
echo '| date | commit | target | jobs | CPU hours | executions | failures | new inputs |'
sort "$left/table" | while read -r row; do
  name=$(cut -d' ' -f6 <<<"$row")
  echo "$row $(find "$out/small/$name" -type f 2>/dev/null | wc -l) |"
done
ls "$out/found"
tar -C "$out" -czf "$left/inputs.tar.gz" found small logs
