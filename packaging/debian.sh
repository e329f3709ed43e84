#!/usr/bin/env bash
# Makes the Debian packages for OUT, with CUDA where there is a toolkit, and tests them: by lintian and, as root, in a fresh Debian.
# Equal sources give equal bytes.
# usage: bash packaging/debian.sh OUT [WORK [CMAKE_OPTION...]]     (WORK: build/release/debian)
set -euo pipefail
mkdir -p "$1" "${2:-build/release/debian}"
out=$(realpath "$1") work=$(realpath "${2:-build/release/debian}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

install_packages "${BUILD_PACKAGES[@]}" lintian mmdebstrap
options=(-DCMAKE_BUILD_TYPE=Release -DHARTSIFT_TESTS=OFF -DHARTSIFT_BENCH=OFF)
# Compressed GPU code (in library and command) needs less than half the disk space, and a seventh more download.
if nvcc=$(find_nvcc) && grep -q -e --compress-mode <<<"$("$nvcc" --help)"; then
  options+=(-DHARTSIFT_NVCC_FLAGS=--compress-mode=size)
fi
rm -rf "$work/packages"
run_quietly cmake -S . -B "$work" -G Ninja "${options[@]}" "${@:3}"
run_quietly cmake --build "$work" --target package
status=0
HARTSIFT_COMMAND=$work/hartsift HARTSIFT_PACKAGES=$work/packages bash tests/api/test_packages.sh || status=$?
[ "$status" -eq 77 ] || [ "$status" -eq 0 ] || exit "$status"
cp "$work"/packages/*.deb "$out"
