#!/usr/bin/env bash
# Builds for Windows and macOS: library and commands are compiled and linked, and the portable tests, those of the command and the
# selftest of the Windows build run in Wine; what is installed on macOS is checked by its load commands. HARTSIFT_TESTS=whole: for
# Intel's Macs too, and all tests of the command. Ends with the status of the last failure.
# usage: bash tests/other_systems.sh PYTHON [JUNIT_FILE [short]]    (PYTHON gets ziglang, which has the compiler for macOS; short:
# for Windows less optimised, without AVX-512 and codecs, the command's quick tests and the selftest alone)
set -euo pipefail
python=$1 results=${2:-} extent=${3:-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
work=$PWD/build/release/windows
jobs=$(nproc) status=0

settings=(-DPython3_EXECUTABLE="$python" -DHARTSIFT_TESTS=ON) targets=() selected=() folder=build/windows
if [ "$extent" = short ]; then
  install_packages "${WINDOWS_PACKAGES[@]}"
  settings+=(-DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" -DHARTSIFT_COMPILER_HAS_avx512=OFF
    -DHARTSIFT_COMPILER_HAS_avx512vnni=OFF)
  targets=(hartsift hartsift_command hartsift_colmap_command) selected=(-R '^wine\.') folder=build/windows-short
else
  install_packages "${WINDOWS_PACKAGES[@]}" dpkg-dev nasm tcl
  [ -e "$work/codecs/lib/libcmocka.a" ] ||
    run_quietly bash packaging/codecs.sh build/release/sources "$work/codecs" pipeline/cmake/windows_toolchain.cmake cmocka
  settings+=(-DCMAKE_PREFIX_PATH="$work/codecs")
fi
run_quietly cmake --preset windows -B "$folder" "${settings[@]}"
run_quietly cmake --build "$folder" -j "$jobs" ${targets:+--target "${targets[@]}"}
ctest --test-dir "$folder" "${selected[@]}" -j "$jobs" --output-on-failure ${results:+--output-junit "$results"} || status=$?

"$python" -c 'import ziglang' 2>/dev/null || run_quietly "$python" -m pip install ziglang
zig=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
# check_macos FOLDER PROCESSOR: what is installed there.
check_macos() {
  "$python" -B packaging/mach_o.py "$@" "$PWD"
}

processors=(arm64)
[ "${HARTSIFT_TESTS:-}" != whole ] || processors+=(x86_64)
for processor in "${processors[@]}"; do
  build=build/macos-$processor
  # Nothing runs here, so that optimizing would only take time.
  { run_quietly cmake --preset macos -B "$build" -DHARTSIFT_ZIG="$zig" -DHARTSIFT_MAC_PROCESSOR="$processor" \
    -DCMAKE_C_FLAGS_RELEASE="-O0 -fno-sanitize=undefined" &&
    run_quietly cmake --build "$build" -j "$jobs" &&
    run_quietly cmake --install "$build" --prefix "$build/installed" &&
    run_quietly check_macos "$build/installed" "$processor"; } || status=$?
done
# The check sees four bytes that a signature does not fit, and a file that was cut off.
if printf '\377\377\377\377' | dd of=build/macos-arm64/installed/bin/hartsift bs=1 seek=20000 conv=notrunc status=none &&
  check_macos build/macos-arm64/installed arm64 >/dev/null; then
  echo "packaging/mach_o.py overlooked changed bytes" >&2
  status=1
fi
truncate -s 1000 build/macos-arm64/installed/bin/hartsift
if [[ $(check_macos build/macos-arm64/installed arm64) != *"bin/hartsift: it is damaged: "* ]]; then
  echo "packaging/mach_o.py does not say that a file was cut off" >&2
  status=1
fi
exit "$status"
