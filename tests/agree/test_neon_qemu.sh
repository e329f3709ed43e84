#!/usr/bin/env bash
# The AArch64 build under an emulator: every NEON stage against the reference, and whole frames against the stored digests,
# which are those of x86. Ends with 77 (skipped) where the cross compiler or the emulator is missing.
# usage: bash tests/agree/test_neon_qemu.sh [BUILD_FOLDER]   (in ctest its own folder of the build; else build/aarch64)
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

qemu-aarch64 "$build/hartsift" info >"$build/info.log"
for stage in base blur halve detect orient describe match; do
  grep -q "^  $stage: neon$" "$build/info.log" || fail "stage $stage does not use NEON"
done

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

# Frames take the longest and run beside the stages.
run_logged selftest "$build/hartsift" selftest &
selftest=$!
status=0
for program in "${programs[@]}"; do
  (run_logged "$program" "$build/tests/$program") || status=1
done
wait "$selftest" || status=1

# selftest also passes without digests to compare with, which would tie this build to no other.
for backend in 'plain C, 1 thread: .*digests stored' 'default, 2 threads: .*equal to the reference'; do
  grep -q "^passed *$backend" "$build/selftest.log" || fail "selftest did not check \"$backend\""
done
exit "$status"
