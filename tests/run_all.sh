#!/usr/bin/env bash
# Installs what the tests need, builds and runs them without and with sanitizers, compiles the CUDA part where a toolkit is
# found (and tests it where there is a GPU), lists what was skipped and why, and closes with the line "N passed, N failed,
# N skipped". Where packages can be installed, only what needs a GPU, photographs beside the repository (HARTSIFT_DATA) or
# root may be skipped; anything else counts as failed.
# usage: bash tests/run_all.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh

jobs=$(nproc)
results=$PWD/build/results
python=$PWD/build/venv/bin/python
summary_options=()
# A locale with a decimal comma, made here so that nothing of the machine changes.
export LOCPATH=$PWD/build/locales
# What starts threads: the rest has nothing that the thread sanitizer could find, and is not built for it.
threaded_tests=(unit.{batch,colmap_behind,colmap_database,colmap_transactions,lanes,threads,work_graph,write_queue}
  property.repeat api.{contexts,in_flight,in_flight_ends})

# note_failure NAME: a step outside ctest that failed counts as a failed test.
note_failure() {
  printf '<testsuite><testcase name="%s" status="fail"/></testsuite>\n' "$1" >"$results/${1//[ \/]/_}.xml"
}

# step NAME COMMAND...: a failure is counted; what does not depend on it still runs.
step() {
  local name=$1
  shift
  echo "== $name"
  if ! run_quietly "$@"; then
    note_failure "$name"
    return 1
  fi
}

# run_tests NAME CTEST_OPTION...: the whole output of every test goes to the results, on the terminal only what failed.
run_tests() {
  local name=$1
  shift
  echo "== test $name"
  ctest "$@" --output-on-failure --output-junit "$results/$name.xml" \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 || true
  [ -s "$results/$name.xml" ] || note_failure "test $name"
}

build_and_test() {
  local preset=$1
  shift
  step "configure $preset" cmake --preset "$preset" -DPython3_EXECUTABLE="$python" || return 0
  step "build $preset" cmake --build --preset "$preset" -j "$jobs" || return 0
  run_tests "$preset" --preset "$preset" --parallel "$jobs" "$@"
}

check_threads() {
  local names
  names=$(IFS='|' && echo "${threaded_tests[*]}")
  step "configure tsan" cmake --preset tsan -DPython3_EXECUTABLE="$python" || return 0
  step "build tsan" cmake --build --preset tsan -j "$jobs" --target "${threaded_tests[@]/#*./test_}" || return 0
  run_tests tsan --preset tsan --parallel "$jobs" -R "^(${names//./\\.})$"
}

# Saved inputs and some seconds of new ones, from one seed, so that a change is judged by what it does and not by luck;
# tests/fuzz/run.sh searches longer and elsewhere.
fuzz() {
  step "configure fuzz" cmake --preset fuzz -DPython3_EXECUTABLE="$python" || return 0
  step "build fuzz" cmake --build --preset fuzz -j "$jobs" || return 0
  HARTSIFT_FUZZ_SECONDS=3 HARTSIFT_FUZZ_SEED=1 run_tests fuzz --preset fuzz --parallel "$jobs"
}

# Without a GPU the CUDA part is compiled for one generation, and the tests show that a missing device is no error.
check_cuda() {
  # Packages and clusters have been tested with the other build, and take the longest.
  local build_dir=build/cuda-check architectures=90-real
  local tests=(--parallel "$jobs" -L 'api|prim' -E '^api\.(packages|python_package|slurm)$')
  if ! find_nvcc >/dev/null || ! compgen -G 'cuda/*/*.cu' >/dev/null; then
    return 0
  fi
  if has_gpu; then
    architectures=native
    tests=()
  fi
  step "configure cuda" cmake --preset cuda -B "$build_dir" -DHARTSIFT_CUDA_ARCHITECTURES="$architectures" \
    -DPython3_EXECUTABLE="$python" -DHARTSIFT_PEERS=OFF -DHARTSIFT_BENCH=OFF || return 0
  step "build cuda" cmake --build "$build_dir" -j "$jobs" || return 0
  PYTEST_ADDOPTS='--ignore-glob=*/test_ray.py' run_tests cuda --test-dir "$build_dir" "${tests[@]}"
}

rm -rf "$results"
mkdir -p "$results"
if step "install packages" install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" &&
  step "make build/venv" make_python_environment build/venv tests/requirements.txt docs/site_requirements.txt; then
  summary_options=(--strict)
  mkdir -p "$LOCPATH"
  localedef -i de_DE -f UTF-8 "$LOCPATH/de_DE.UTF-8" || true
else
  python=$(command -v python3)
fi
build_and_test cpu
# A cluster of Slurm takes a minute and more, and runs the same batch as the other tests; windows take minutes, and whole
# frames go over the same code.
build_and_test asan -E '^(api\.slurm|agree\.windows_simd)$'
check_threads
fuzz
check_cuda
"$python" -B tests/sum_results.py "${summary_options[@]}" "$results"/*.xml
