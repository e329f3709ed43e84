#!/usr/bin/env bash
# Makes wheels for Windows (win_amd64) and macOS (macosx_11_0_arm64, macosx_11_0_x86_64) for OUT, with the codecs inside, and checks
# that they need only the system. HARTSIFT_CUDA=ON in the environment: that for Windows has CUDA, for every generation of GPU.
# usage: bash packaging/other_wheels.sh OUT [windows|macos-arm64|macos-x86_64]...
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1") systems=("${@:2}")
[ "${#systems[@]}" -gt 0 ] || systems=(windows macos-arm64 macos-x86_64)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
# shellcheck source=packaging/portable.sh
. packaging/portable.sh
python=$tools/venv/bin/python work=$tools/other_wheels
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

# make_wheel SYSTEM: into the folder of the same name in $work.
make_wheel() {
  local system=$1 platform=win-amd64 toolchain codecs define settings=() defines
  toolchain=$PWD/pipeline/cmake/${system%%-*}_toolchain.cmake codecs=$tools/$system/codecs
  if [ "$system" != windows ]; then
    export HARTSIFT_MAC_PROCESSOR=${system#macos-}
    platform=macosx-11.0-$HARTSIFT_MAC_PROCESSOR
    settings=(--config-settings=install.strip=false) # it would leave a signature that fits no longer
  fi
  [ -e "$codecs/lib/libzstd.a" ] || run_quietly bash packaging/codecs.sh "$tools/sources" "$codecs" "$toolchain"
  defines=(CMAKE_TOOLCHAIN_FILE="$toolchain" CMAKE_PREFIX_PATH="$codecs" HARTSIFT_LICENSES="$codecs/licenses"
    HARTSIFT_PNG=ON HARTSIFT_JPEG=ON HARTSIFT_TIFF=OFF HARTSIFT_WEBP=OFF HARTSIFT_ZLIB=ON HARTSIFT_SQLITE=ON)
  if [ "$system" = windows ] && [ "${HARTSIFT_CUDA:-OFF}" = ON ]; then
    defines+=("${cuda_defines[@]}")
  else
    defines+=(HARTSIFT_CUDA=OFF)
  fi
  for define in "${defines[@]}"; do
    settings+=(--config-settings=cmake.define."$define")
  done
  rm -rf "${work:?}/$system"
  run_quietly env _PYTHON_HOST_PLATFORM="$platform" "$python" -m pip wheel --no-build-isolation --no-deps --wheel-dir "$work/$system" \
    --config-settings=build-dir="$work/$system-build" "${settings[@]}" .
}

install_packages "${BUILD_PACKAGES[@]}" "${WINDOWS_PACKAGES[@]}" dpkg-dev nasm tcl python3-venv
make_python_environment "$tools/venv" packaging/wheel_tools.txt
HARTSIFT_ZIG=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
export HARTSIFT_ZIG
for system in "${systems[@]}"; do
  make_wheel "$system"
  wheel=$(ls "$work/$system"/*.whl)
  if [ "$system" = windows ]; then
    "$python" -m zipfile -e "$wheel" "$work/$system/unpacked"
    bash packaging/check_dlls.sh "$work/$system/unpacked"/hartsift/hartsift.dll "$work/$system/unpacked"/*.data/scripts/hartsift{,-colmap}.exe
  else
    "$python" -B packaging/mach_o.py "$wheel" "${system#macos-}" "$PWD"
  fi
  cp "$wheel" "$out"
done
ls -l "$out"
