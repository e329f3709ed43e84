#!/usr/bin/env bash
# Makes hartsift-VERSION-windows-x86_64.zip for OUT: hartsift.exe, hartsift-colmap.exe, hartsift.dll with its import library and
# headers; codecs, SQLite and the compiler's libraries are inside, so that Windows 10 or later is all they need. HARTSIFT_CUDA=ON
# in the environment: with CUDA, for every generation of GPU. Needs Debian's mingw-w64; with Wine it also runs the selftest and the
# portable tests.
# usage: bash packaging/windows.sh OUT [WORK]     (WORK: build/release/windows)
set -euo pipefail
mkdir -p "$1" "${2:-build/release/windows}"
out=$(realpath "$1") work=$(realpath "${2:-build/release/windows}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh

install_packages "${WINDOWS_PACKAGES[@]}" dpkg-dev nasm tcl
cuda=()
if [ "${HARTSIFT_CUDA:-OFF}" = ON ]; then
  # shellcheck source=packaging/portable.sh
  . packaging/portable.sh
  make_python_environment "$tools/venv" packaging/wheel_tools.txt
  cuda=("${cuda_defines[@]/#/-D}")
fi
[ -e "$work/codecs/lib/libcmocka.a" ] ||
  run_quietly bash packaging/codecs.sh build/release/sources "$work/codecs" pipeline/cmake/windows_toolchain.cmake cmocka
run_quietly cmake --preset windows -B "$work/build" -DCMAKE_PREFIX_PATH="$work/codecs" -DHARTSIFT_LICENSES="$work/codecs/licenses" \
  -DHARTSIFT_TESTS=ON -DHARTSIFT_PNG=ON -DHARTSIFT_JPEG=ON -DHARTSIFT_TIFF=OFF -DHARTSIFT_WEBP=OFF -DHARTSIFT_ZLIB=ON -DHARTSIFT_SQLITE=ON \
  "${cuda[@]}"
run_quietly cmake --build "$work/build" -j "$(nproc)"

bash packaging/check_dlls.sh "$work"/build/hartsift{,-colmap}.exe "$work/build/hartsift.dll"
ctest --test-dir "$work/build" -j "$(nproc)" --output-on-failure

# check_info WORDS: what info says of GPUs.
check_info() {
  local said
  said=$("$wine" "$work/build/hartsift.exe" info 2>&1) || true
  grep -qF -- "$1" <<<"$said" || { echo "failed: info has no '$1' in:"; echo "$said"; exit 1; }
}

wine=$(sed -n 's/^HARTSIFT_WINE:FILEPATH=//p' "$work/build/CMakeCache.txt")
if [ "${#cuda[@]}" -gt 0 ] && [ -x "$wine" ]; then
  export WINEPREFIX=$work/build/wine WINEDEBUG=-all
  check_info "no CUDA driver: this machine has no NVIDIA GPU, or its driver is not installed"
  driver=$WINEPREFIX/drive_c/windows/system32/nvcuda.dll
  x86_64-w64-mingw32-gcc-posix -std=c11 -O1 -shared -static -I. tests/fake_device/driver/fake_cuda.c -o "$driver"
  FAKE_CUDA=version=12000 check_info "fake GPU 0, compute capability 9.2, driver 12.0, machine code"
  rm "$driver"
fi

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$work/build/CMakeCache.txt")
name=hartsift-$version-windows-x86_64
rm -rf "${work:?}/$name"
run_quietly cmake --install "$work/build" --prefix "$work/$name"
cp LICENSE "$work/$name"
(cd "$work" && cmake -E tar cf "$out/$name.zip" --format=zip "$name")
