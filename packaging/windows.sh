#!/usr/bin/env bash
# Makes hartsift-VERSION-windows-x86_64.zip for OUT: hartsift.exe, hartsift-colmap.exe, hartsift.dll with its import library and
# headers; codecs, SQLite and the compiler's libraries are inside, so that Windows 10 or later is all they need. Needs Debian's
# mingw-w64; with Wine it also runs the selftest and the portable tests.
# usage: bash packaging/windows.sh OUT [WORK]     (WORK: build/release/windows)
set -euo pipefail
mkdir -p "$1" "${2:-build/release/windows}"
out=$(realpath "$1") work=$(realpath "${2:-build/release/windows}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh

install_packages "${WINDOWS_PACKAGES[@]}" dpkg-dev nasm tcl
[ -e "$work/codecs/lib/libcmocka.a" ] ||
  run_quietly bash packaging/codecs.sh build/release/sources "$work/codecs" pipeline/cmake/windows_toolchain.cmake cmocka
run_quietly cmake --preset windows -B "$work/build" -DCMAKE_PREFIX_PATH="$work/codecs" -DHARTSIFT_LICENSES="$work/codecs/licenses" \
  -DHARTSIFT_TESTS=ON -DHARTSIFT_PNG=ON -DHARTSIFT_JPEG=ON -DHARTSIFT_TIFF=OFF -DHARTSIFT_WEBP=OFF -DHARTSIFT_ZLIB=ON -DHARTSIFT_SQLITE=ON
run_quietly cmake --build "$work/build" -j "$(nproc)"

# Checks that nothing but Windows is needed.
for file in hartsift.exe hartsift-colmap.exe hartsift.dll; do
  needed=$(x86_64-w64-mingw32-objdump -p "$work/build/$file" | sed -n 's/^.*DLL Name: //p' |
    grep -vixE '(kernel32|msvcrt|advapi32|shell32|user32)\.dll' || true)
  if [ -n "$needed" ]; then
    echo "$file needs $needed" >&2
    exit 1
  fi
done
ctest --test-dir "$work/build" -j "$(nproc)" --output-on-failure

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$work/build/CMakeCache.txt")
name=hartsift-$version-windows-x86_64
rm -rf "${work:?}/$name"
run_quietly cmake --install "$work/build" --prefix "$work/$name"
cp LICENSE "$work/$name"
(cd "$work" && cmake -E tar cf "$out/$name.zip" --format=zip "$name")
