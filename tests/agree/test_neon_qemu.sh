#!/usr/bin/env bash
# The AArch64 build under an emulator: every NEON stage against the reference, and whole frames against the native
# command.
# HARTSIFT_TESTS=whole: full sweeps (tests/support/extent.h), and the larger frames of `hartsift selftest` against the
# digests stored from x86. Exit status 77 (skipped) if the cross compiler or the emulator is missing.
# usage: bash tests/agree/test_neon_qemu.sh [BUILD_FOLDER]   (default: build/aarch64; ctest passes a folder of its
# build)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cross=$PWD/tests/support/cross
build=${1:-${HARTSIFT_PROGRAMS:-build}/aarch64}
sources=(tests/agree/test_*_simd.c tests/prim/test_simd_*.c)
for needed in aarch64-linux-gnu-gcc qemu-aarch64 ninja; do
  if ! command -v "$needed" >/dev/null; then
    echo "skipped: $needed was not found"
    exit 77
  fi
done
if ! aarch64-linux-gnu-gcc -static -x c -o /dev/null - <<<'int main(void) { return 0; }' 2>/dev/null; then
  echo "skipped: no C library for aarch64-linux-gnu-gcc"
  exit 77
fi

programs=()
for source in "${sources[@]}"; do
  programs+=("$(basename "$source" .c)")
done

# The tests' stand-in for cmocka is a header: libm, which is linked anyway, takes the library's place.
cmake --fresh -S . -B "$build" -G Ninja --toolchain "$cross/aarch64.cmake" -DCMAKE_BUILD_TYPE=Release \
  -DBUILD_SHARED_LIBS=OFF -DHARTSIFT_WERROR=ON -DHARTSIFT_{PNG,JPEG,ZLIB,CUDA,PEERS,BENCH}=OFF \
  -DHARTSIFT_CMOCKA_INCLUDE="$cross" -DHARTSIFT_CMOCKA_LIBRARY=m >/dev/null
cmake --build "$build" -j "$(nproc)" --target hartsift_command "${programs[@]}" >"$build/build.log" || {
  cat "$build/build.log"
  exit 1
}

fail() {
  echo "failed: $*"
  exit 1
}

# check_variants PROCESSOR MATCH: the variants that a processor gets; MATCH is that of matching.
check_variants() {
  local variant stage
  qemu-aarch64 -cpu "$1" "$build/hartsift" info >"$build/info.log"
  for stage in base blur halve detect orient describe match; do
    variant=neon
    if [ "$stage" = match ]; then variant=$2; fi
    grep -q "^  $stage: $variant$" "$build/info.log" || fail "$1: stage $stage is not $variant"
  done
}
check_variants max neondot
check_variants cortex-a57 neon

# run_logged NAME COMMAND...: a line when it has passed, the whole output when not.
run_logged() {
  local name=$1 start=$SECONDS
  shift
  if ! qemu-aarch64 "$@" >"$build/$name.log" 2>&1; then
    cat "$build/$name.log"
    fail "$name"
  fi
  if grep -q '^\[  SKIPPED' "$build/$name.log"; then
    fail "$name: no test that runs here skips"
  fi
  echo "passed $name: $((SECONDS - start)) s"
}

# compare_frames: every profile, vector and plain C code, beside the bytes of this machine.
compare_frames() {
  local here=${HARTSIFT_COMMAND:-} scene=(extract @scene:150x110:3 --device cpu --threads 2 --format bin --quiet) profile code
  if [ -z "$here" ]; then
    echo "HARTSIFT_COMMAND names no command of this machine to compare frames with"
    return 0
  fi
  for profile in lowe opencv vlfeat colmap; do
    "$here" "${scene[@]}" --profile "$profile" -o "$build/$profile.here"
    for code in neon ref; do
      HARTSIFT_CPU=$code qemu-aarch64 "$build/hartsift" "${scene[@]}" --profile "$profile" -o "$build/$profile.$code"
      cmp "$build/$profile.$code" "$build/$profile.here"
    done
  done
  echo "passed frames of four profiles"
}

# run_selftest: it also passes without digests to compare with, which would tie this build to no other.
run_selftest() {
  local backend
  run_logged selftest "$build/hartsift" selftest
  for backend in 'plain C, 1 thread: .*digests stored' 'default, 2 threads: .*equal to the reference'; do
    grep -q "^passed *$backend" "$build/selftest.log" || fail "selftest did not check \"$backend\""
  done
}

# Frames run beside the stages.
export HARTSIFT_TESTS=${HARTSIFT_TESTS:-short}
(
  compare_frames
  [ "$HARTSIFT_TESTS" != whole ] || run_selftest
) &
frames=$!
status=0
for program in "${programs[@]}"; do
  (run_logged "$program" "$build/tests/$program") || status=1
done
wait "$frames" || status=1
exit "$status"
