#!/usr/bin/env bash
# Makes hartsift-VERSION-linux-x86_64.tar.xz for OUT: library, command, headers, manual pages and examples that run where they are
# unpacked, on every Linux with glibc 2.28 or later: the codecs are inside, and CUDA for every generation of GPU.
# usage: bash packaging/archive.sh OUT [WORK [CMAKE_OPTION...]]     (WORK: build/release/x86_64/archive)
set -euo pipefail
mkdir -p "$1" "${2:-build/release/x86_64/archive}"
out=$(realpath "$1") work=$(realpath "${2:-build/release/x86_64/archive}")
options=("${@:3}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
# shellcheck source=packaging/portable.sh
. packaging/portable.sh
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

install_tools
make_toolchain x86_64
set_defines x86_64
run_quietly cmake -S . -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHARTSIFT_TESTS=OFF -DHARTSIFT_BENCH=OFF \
  "${defines[@]/#/-D}" "${options[@]}"
run_quietly cmake --build "$work"
rm -rf "$work/packages" "$work/unpacked"
run_quietly cpack --config "$work/CPackConfig.cmake" -G TXZ -B "$work/packages"

# Checks that it needs no newer glibc and no library that some Linux lacks.
mkdir "$work/unpacked"
tar -xf "$work"/packages/hartsift-*.tar.xz -C "$work/unpacked"
cd "$work"/unpacked/*/
for file in bin/hartsift bin/hartsift-colmap lib/libhartsift.so; do
  needed=$(objdump -p "$file" | sed -n 's/^ *NEEDED *//p' | grep -vxE '(libc|libm|libdl|librt|libpthread|ld-linux-x86-64|libgcc_s)\.so\.[0-9]+' || true)
  newest=$(objdump -T "$file" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
  if [ -n "$needed" ] || [ "$(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -n 1)" != GLIBC_2.28 ]; then
    echo "$file needs $newest $needed" >&2
    exit 1
  fi
done
run_quietly bin/hartsift selftest
cp "$work"/packages/hartsift-*.tar.xz "$out"
