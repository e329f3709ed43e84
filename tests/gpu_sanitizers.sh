#!/usr/bin/env bash
# Runs the GPU tests under compute-sanitizer's four tools, several concurrently; prints a table of findings. Exit status
# 1 on a finding, failure or timeout; 77 if the tool is missing.
# usage: bash tests/gpu_sanitizers.sh BUILD_FOLDER [TOOL...]    BUILD_FOLDER: a CUDA build with tests; all tools without
# TOOL
# Pictures of the two frame programs are 200 pixels a side; under memcheck 1000, under racecheck 120. Racecheck is the
# slowest, so it runs once for each kind of kernel. Pictures for uploads in bands always have 1000 pixels or more.
set -uo pipefail
build=$(realpath "$1") || exit 2
shift
tools=("$@")
[ "${#tools[@]}" -gt 0 ] || tools=(racecheck memcheck initcheck synccheck)
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is missing" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export build work

kernels=(test_engines/test_{affine,variants,profiles,descriptors,selection,equalized,given,small_pictures}
  test_engine_ways/test_{tiles,encoded})
frames=("${kernels[@]}" test_engines/test_{places,pictures}
  test_engine_ways/test_{two_bands,three_bands,in_flight,hybrid,resident})
matching=(test_cuda_match/test_{far_apart,floats_not_finite,captured,guides,one_collection})

# one TOOL PROGRAM/TEST: a line of the table.
one() {
  local tool=$1 program=${2%/*} name=${2#*/} start=$SECONDS status summary side=200
  local log="$work/$tool.$name" only=()
  case $tool in
    memcheck) side=1000 ;;
    racecheck) side=120 ;;
  esac
  if [ "$tool.$name" = racecheck.test_tiles ]; then only=(--kernel-name kns=tile); fi
  HARTSIFT_TEST_SIDE=$side HARTSIFT_TEST_ELEMENTS=20000 timeout --kill-after=5 150 \
    compute-sanitizer --tool "$tool" "${only[@]}" --error-exitcode 9 "$build/tests/$program" "$name" >"$log" 2>&1
  status=$?
  summary=$(grep -oE '(ERROR|RACECHECK) SUMMARY: .*' "$log" | head -1)
  if ! grep -q '^\[       OK' "$log"; then summary="nothing was run"; fi
  if [ "$status" -ne 0 ]; then summary="${summary:-no summary}, status $status" && sed 's/^/    /' "$log" | head -60 >"$log.found"; fi
  echo "| $tool | $program, $name | ${summary:-no summary} | $((SECONDS - start)) |"
}
export -f one

echo "| tool | program, test | found | s |"
echo "|---|---|---|--:|"
for tool in "${tools[@]}"; do
  if [ "$tool" = racecheck ]; then cases=("${kernels[@]}"); else cases=("${frames[@]}"); fi
  printf '%s\n' "${cases[@]/#/$tool }" "${matching[@]/#/$tool }"
done | {
  cat
  [[ " ${tools[*]} " != *" memcheck "* ]] || echo "memcheck test_cuda_primitives_api/*"
} | xargs -P "${HARTSIFT_SANITIZERS:-$(($(nproc) * 3 / 4))}" -L 1 bash -c 'one "$@"' one | tee "$work/rows"
cat "$work"/*.found 2>/dev/null
! grep -vqE 'SUMMARY: 0 (errors|hazards displayed \(0 errors, 0 warnings\)) \|' "$work/rows"
