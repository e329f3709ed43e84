#!/usr/bin/env bash
# Makes a wheel for Windows (win_amd64) for OUT, without GPUs, with the codecs inside. That for macOS (macosx_11_0_arm64) is made on
# request only: its programs name the library by the path of the build.
# usage: bash packaging/other_wheels.sh OUT [windows|macos]...
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1") systems=("${@:2}")
[ "${#systems[@]}" -gt 0 ] || systems=(windows)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
work=$PWD/build/release/other_wheels python=$PWD/build/release/other_wheels/venv/bin/python
declare -A platforms=([windows]=win-amd64 [macos]=macosx-11.0-arm64)

install_packages "${BUILD_PACKAGES[@]}" "${WINDOWS_PACKAGES[@]}" dpkg-dev nasm tcl python3-venv
mkdir -p "$work"
[ -x "$python" ] || { python3 -m venv "$work/venv" && run_quietly "$python" -m pip install scikit-build-core ziglang; }
zig=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
for system in "${systems[@]}"; do
  toolchain=$PWD/pipeline/cmake/${system}_toolchain.cmake codecs=$PWD/build/release/$system/codecs
  export HARTSIFT_ZIG=$zig
  [ -e "$codecs/lib/libzstd.a" ] || run_quietly bash packaging/codecs.sh build/release/sources "$codecs" "$toolchain"
  settings=()
  for define in CMAKE_TOOLCHAIN_FILE="$toolchain" CMAKE_PREFIX_PATH="$codecs" HARTSIFT_LICENSES="$codecs/licenses" HARTSIFT_ZIG="$zig" \
    HARTSIFT_PNG=ON HARTSIFT_JPEG=ON HARTSIFT_TIFF=OFF HARTSIFT_WEBP=OFF HARTSIFT_ZLIB=ON HARTSIFT_SQLITE=ON HARTSIFT_CUDA=OFF; do
    settings+=(--config-settings=cmake.define."$define")
  done
  run_quietly env _PYTHON_HOST_PLATFORM="${platforms[$system]}" "$python" -m pip wheel --no-build-isolation --no-deps --wheel-dir "$out" \
    --config-settings=build-dir="$work/$system" "${settings[@]}" .
done
ls -l "$out"
