#!/usr/bin/env bash
# Time of a frame on 1, 2, 4, ... threads up to the usable cores, and the speed-up over one thread.
# usage: python3 bench/bench.py threads [BUILD_FOLDER [IMAGE...]]   (build/cpu; scenes of 1920x1080 and 3840x2160)
# HARTSIFT_SCALING_THREADS: numbers of threads to time instead, as in "1 8 16"; speed-ups are relative to the first.
# HARTSIFT_SCALING_REPEATS: frames to time for each number; by default as many as fit into a few seconds, 5 to 50.
set -euo pipefail

command=${1:-$(dirname "${BASH_SOURCE[0]}")/../../build/cpu}/hartsift
shift "$(($# > 0))"
images=("$@")
if [ "${#images[@]}" -eq 0 ]; then
  images=(@scene:1920x1080 @scene:3840x2160)
fi
if [ ! -x "$command" ]; then
  echo "$command does not exist: build first, or name the build folder" >&2
  exit 2
fi

cores=$(nproc)
read -ra counts <<<"${HARTSIFT_SCALING_THREADS:-}"
if [ "${#counts[@]}" -eq 0 ]; then
  for ((threads = 1; threads < cores; threads *= 2)); do
    counts+=("$threads")
  done
  counts+=("$cores")
fi

# time_frames THREADS IMAGE: prints features, median and minimum time in ms.
time_frames() {
  "$command" bench --device cpu --threads "$1" --repeats "${HARTSIFT_SCALING_REPEATS:-0}" -- "$2" |
    awk -F ' *[|] *' '$4 == "hartsift" { print $8, $9, $10 }'
}

model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sed 1q)
level=$("$command" info | sed -n 's/^ *CPU level *//p')
printf '%s, %d usable cores, CPU level %s. Speed-up: of the median, over %d thread(s).\n\n' \
  "${model:-unknown processor}" "$cores" "$level" "${counts[0]}"
echo '| image | threads | features | median ms | min ms | frames/s | speed-up | of ideal |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|'
for image in "${images[@]}"; do
  first_median=
  first_features=
  for threads in "${counts[@]}"; do
    times=$(time_frames "$threads" "$image")
    read -r features median least <<<"$times"
    first_median=${first_median:-$median}
    first_features=${first_features:-$features}
    if [ -z "$least" ] || [ "$features" != "$first_features" ]; then
      echo "$image on $threads threads: ${features:-no} features, $first_features on ${counts[0]}" >&2
      exit 1
    fi
    awk -v image="$image" -v n="$threads" -v features="$features" -v median="$median" -v least="$least" \
      -v first="$first_median" -v base="${counts[0]}" 'BEGIN {
        speedup = first / median
        printf "| %s | %d | %d | %.2f | %.2f | %.1f | %.2f | %.0f %% |\n", image, n, features, median, least,
               1000 / median, speedup, 100 * speedup * base / n }'
  done
done
