#!/usr/bin/env bash
# Builds for Windows and macOS: library and commands are compiled and linked, and the portable tests and the selftest of the
# Windows build run in Wine. Ends with the status of the last failure.
# usage: bash tests/other_systems.sh PYTHON [JUNIT_FILE]     (PYTHON gets ziglang, which has the compiler for macOS)
set -euo pipefail
python=$1 results=${2:-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
work=$PWD/build/release/windows
jobs=$(nproc) status=0

install_packages "${WINDOWS_PACKAGES[@]}" dpkg-dev nasm tcl
[ -e "$work/codecs/lib/libcmocka.a" ] ||
  run_quietly bash packaging/codecs.sh build/release/sources "$work/codecs" pipeline/cmake/windows_toolchain.cmake cmocka
run_quietly cmake --preset windows -B build/windows -DCMAKE_PREFIX_PATH="$work/codecs" -DHARTSIFT_TESTS=ON
run_quietly cmake --build build/windows -j "$jobs"
ctest --test-dir build/windows -j "$jobs" --output-on-failure ${results:+--output-junit "$results"} || status=$?

"$python" -c 'import ziglang' 2>/dev/null || run_quietly "$python" -m pip install ziglang
zig=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
for processor in arm64 x86_64; do
  run_quietly cmake --preset macos -B "build/macos-$processor" -DHARTSIFT_ZIG="$zig" -DHARTSIFT_MAC_PROCESSOR="$processor" || status=$?
  run_quietly cmake --build "build/macos-$processor" -j "$jobs" || status=$?
done
exit "$status"
