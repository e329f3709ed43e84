#!/usr/bin/env bash
# Installs the tests' dependencies, builds and runs the tests without and with sanitizers, compiles the CUDA part if a
# toolkit is found (and tests it on a GPU if available), lists skipped tests with reasons, and ends with the line "N
# passed, N failed, N skipped". Where packages can be installed, only tests that need a GPU, photographs (HARTSIFT_DATA)
# or root may be skipped; any other skip counts as failed.
# usage: bash tests/run_all.sh [--whole]
#
# The ordinary run takes half an hour on two cores. It covers every mechanism; the slowest tests have a short form:
#   agree.*            under a sanitizer or the emulator not every value of each setting with every other
#   (tests/support/extent.h)
#   agree.neon_qemu    small frames compared with this machine's, not selftest's
#   faults.*           at three calls of each kind, not at every one
#   site.pages         with Sphinx's plain theme
#   asan               without api.slurm, agree.windows_simd and the saved inputs of fuzz.*, which the fuzz build runs
#   fuzz               three seconds of new inputs for each target (tests/fuzz/run.sh searches longer)
#   cuda, without GPU  the tests that choose a device, of library, command and Python package, in their short form
#   other systems      one build each for Windows and macOS, without codecs, and few tests in Wine
# --whole, for releases, runs everything, the machines of tests/other_machines.sh, and the long form of
# tests/other_systems.sh: hours. HARTSIFT_TESTS=whole does so for one test:
# HARTSIFT_TESTS=whole ctest --preset asan -R '^agree'
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh

whole=no seconds=3600 # a busy machine with two slow cores needs three times the usual time
if [ "${1:-}" = --whole ]; then
  whole=yes seconds=14400
  export HARTSIFT_TESTS=whole
fi
jobs=$(nproc)
results=$PWD/build/results
python=$PWD/build/venv/bin/python
summary_options=()
# A locale with a decimal comma, made here so that nothing of the machine changes.
export LOCPATH=$PWD/build/locales
# Tests that start threads; the thread sanitizer could find nothing in the rest, which is not built for it.
threaded_tests=(unit.{batch,colmap_database,colmap_transactions,colmap_vfs,threads,work_graph,workers,write_queue}
  property.repeat api.{contexts,in_flight,in_flight_ends})

# note_failure NAME: a step outside ctest that failed counts as a failed test.
note_failure() {
  printf '<testsuite><testcase name="%s" status="fail"/></testsuite>\n' "$1" >"$results/${1//[ \/]/_}.xml"
}

# announce NAME: what begins, and the time since the start.
announce() { printf '== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# step NAME COMMAND...: counts a failure; independent steps still run.
step() {
  local name=$1
  shift
  announce "$name"
  if ! run_quietly "$@"; then
    note_failure "$name"
    return 1
  fi
}

# build NAME PRESET TARGETS [CMAKE_OPTION...]: builds a preset in build/NAME. TARGETS is one word; empty: all.
build() {
  local name=$1 preset=$2 targets
  read -ra targets <<<"$3"
  shift 3
  step "configure $name" cmake --preset "$preset" -B "build/$name" -DPython3_EXECUTABLE="$python" -DHARTSIFT_TEST_SECONDS="$seconds" "$@" &&
    step "build $name" cmake --build "build/$name" -j "$jobs" ${targets[0]:+--target "${targets[@]}"} &&
    touch "$results/$name.built"
}

# Levels of vector code that these builds do not compile again: the first build's tests and the address sanitizer's run them.
to_avx2=(-DHARTSIFT_COMPILER_HAS_avx512=OFF -DHARTSIFT_COMPILER_HAS_avx512vnni=OFF)
to_sse2=("${to_avx2[@]}" -DHARTSIFT_COMPILER_HAS_avx2=OFF)
# The address sanitizer's build needs no levels that this machine cannot run.
runnable=()
if [ "$(uname -m)" = x86_64 ] && ! grep -qw avx512f /proc/cpuinfo; then runnable=("${to_avx2[@]}"); fi

# programs FOLDER...: the targets of tests/FOLDER's C tests, in one line.
programs() {
  local folder
  for folder; do basename -as .c "tests/$folder"/test_*.c; done | paste -sd ' '
}

# Without the programs that replay the fuzzer's inputs, which run in its own build.
build_asan() {
  local wanted=
  if [ "$whole" = no ]; then
    wanted="hartsift_products write_sample_features tests/api/all tests/fake_device/all $(programs unit prim agree golden property api)"
  fi
  build asan asan "$wanted" "${runnable[@]}"
}

# Without a GPU the CUDA part is compiled for one architecture, with the tests that test_cuda runs.
build_cuda() {
  local architectures=90-real options=("${to_sse2[@]}") wanted
  if ! find_nvcc >/dev/null || ! compgen -G 'cuda/*/*.cu' >/dev/null; then return 0; fi
  wanted="hartsift_products tests/api/all $(programs api prim)"
  if has_gpu; then architectures=native options=() wanted=""; fi
  build cuda-check cuda "$wanted" -DHARTSIFT_CUDA_ARCHITECTURES="$architectures" -DHARTSIFT_{PEERS,BENCH}=OFF "${options[@]}"
}

# Runs with the processors left by the first build's tests, whose longest programs wait for others or run alone.
build_asan_meanwhile() {
  renice -n 19 -p "$BASHPID" >/dev/null || true
  build_asan || true
}

# run_tests NAME CTEST_OPTION...: tests of build NAME. All output goes to the results, only failures to the terminal.
run_tests() {
  local name=$1
  shift
  [ -e "$results/$name.built" ] || return 0
  announce "test $name"
  ctest "$@" --output-on-failure --output-junit "$results/$name.xml" \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 || true
  [ -s "$results/$name.xml" ] || note_failure "test $name"
}

test_asan() {
  # A Slurm cluster takes a minute and more, and runs the same batch as the other tests; windows take minutes, and whole
  # frames use the same code; saved inputs run under clang's sanitizers.
  local left_out=(-LE '^fuzz$' -E '^(api\.slurm|agree\.windows_simd)$')
  if [ "$whole" = yes ]; then left_out=(); fi
  run_tests asan --preset asan --parallel "$jobs" "${left_out[@]}"
}

test_tsan() {
  local names
  names=$(IFS='|' && echo "${threaded_tests[*]}")
  run_tests tsan --preset tsan --parallel "$jobs" -R "^(${names//./\\.})$"
}

# Saved inputs and some seconds of new ones, from one seed, so that the result of a change does not depend on luck.
test_fuzz() {
  HARTSIFT_FUZZ_SECONDS=3 HARTSIFT_FUZZ_SEED=1 run_tests fuzz --preset fuzz --parallel "$jobs"
}

# Without a GPU the tests show that a missing device is no error: of library, command and package those that choose one. The
# others have run with the first build.
test_cuda() {
  local same='layout|style|places|attacks|documents|float_environment|no_codecs|packages|python_package|python_ray|slurm'
  local chosen ignored=() extent=whole
  if [ "$whole" = no ]; then
    extent=short
    same+='|batch_earlier|batch_resume|driver_on_aarch64|examples_in_python|fault_folders|match_stops|merge|nvcc_choice|pages|progress'
    same+='|cli_(cameras|database|doubtful|earlier_matches|exif|hostile|image_files|levels|pairs|pictures|scale|sizes)'
    ignored=(--ignore-glob='*/test_'{add_to_colmap,colmap_database,feature_lists,judging,only_files,opencv_calls,opencv_drop_in}.py)
    ignored+=(--ignore-glob='*/test_'{pairs,parquet,patches,projects,reconstruct,retrieval,smaller_pictures,types}.py)
  fi
  chosen=(--parallel "$jobs" -L 'api|prim' -E "^api\.($same)$")
  if has_gpu; then chosen=(-E '^api\.python_ray$') ignored=() extent=${HARTSIFT_TESTS-}; fi
  HARTSIFT_TESTS=$extent PYTEST_ADDOPTS="${ignored[*]}" run_tests cuda-check --test-dir build/cuda-check "${chosen[@]}"
}

# The other builds, each with its tests. A GPU's tests have the machine for themselves, later.
build_and_test_the_others() {
  build tsan tsan "${threaded_tests[*]/#*./test_}" "${to_avx2[@]}" || true
  test_tsan
  build fuzz fuzz fuzz_targets || true
  test_fuzz
  build_cuda || true
  if ! has_gpu; then test_cuda; fi
  # Whole runs have the long form at the end.
  if [ "$whole" = no ] && command -v x86_64-w64-mingw32-gcc >/dev/null; then
    step "other systems" bash tests/other_systems.sh "$python" "$results/windows.xml" short || true
  fi
}

# The tests with the address sanitizer, which are half of the later ones, and meanwhile the others, whose output follows: what
# has one process, such as configuring or the longest test, leaves its processors to the other half.
test_the_others() {
  local meanwhile
  build_and_test_the_others >"$results/meanwhile.log" 2>&1 &
  meanwhile=$!
  test_asan
  wait "$meanwhile" || true
  cat "$results/meanwhile.log"
  if has_gpu; then test_cuda; fi
}

rm -rf "$results"
mkdir -p "$results"
environment=(build/venv tests/requirements.txt docs/site_requirements.txt)
if step "install packages" install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" &&
  step "make build/venv" begin_python_environment "${environment[@]}"; then
  mkdir -p "$LOCPATH"
  localedef -i de_DE -f UTF-8 "$LOCPATH/de_DE.UTF-8" || true
  # Packages are fetched while the first build compiles.
  step "fill build/venv" fill_python_environment "${environment[@]}" &
  filled=$!
  step "install packages for Windows" install_packages "${WINDOWS_PACKAGES[@]}" &
  installed=$!
  build cpu cpu "" || true
  wait "$installed" || true
  if wait "$filled"; then summary_options=(--strict); fi
fi
if [ "${#summary_options[@]}" -eq 0 ]; then
  python=$(command -v python3)
  build cpu cpu "" || true
fi
build_asan_meanwhile &
asan=$!
run_tests cpu --preset cpu --parallel "$jobs"
wait "$asan"
test_the_others
if [ "$whole" = yes ]; then
  step "other machines" bash tests/other_machines.sh || true
  step "other systems" bash tests/other_systems.sh "$python" "$results/windows.xml" || true
fi
"$python" -B tests/sum_results.py "${summary_options[@]}" "$results"/*.xml
