#!/usr/bin/env bash
# Makes the Debian packages for OUT, with CUDA, and tests them: by lintian and, as root, in a fresh Debian. Equal sources give equal
# bytes. Packages for arm64 are cross compiled as wheels are: for every Debian and Ubuntu with glibc 2.28, Jetson's too.
# usage: bash packaging/debian.sh OUT [WORK [CMAKE_OPTION...]]     (WORK: build/release/debian)
#        HARTSIFT_DEBIAN=arm64 bash packaging/debian.sh OUT ...
set -euo pipefail
mkdir -p "$1" "${2:-build/release/debian}"
out=$(realpath "$1") work=$(realpath "${2:-build/release/debian}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
# shellcheck source=packaging/portable.sh
. packaging/portable.sh
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

install_packages lintian mmdebstrap
install_tools
options=(-DCMAKE_BUILD_TYPE=Release -DHARTSIFT_TESTS=OFF -DHARTSIFT_BENCH=OFF -DHARTSIFT_COMMAND_IN_LIBRARY=ON)
if [ "${HARTSIFT_DEBIAN:-}" = arm64 ]; then
  make_toolchain aarch64
  set_defines aarch64
  options+=("${defines[@]/#/-D}" "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu")
else
  options+=("${cuda_defines[@]/#/-D}")
fi
rm -rf "$work/packages"
run_quietly cmake -S . -B "$work" -G Ninja "${options[@]}" "${@:3}"
run_quietly cmake --build "$work" --target package
if [ "${HARTSIFT_DEBIAN:-}" = arm64 ]; then
  # They have their codecs inside, to install where these have other versions.
  lintian --allow-root --profile debian --fail-on error --suppress-tags embedded-library "$work"/packages/*.deb
  cp "$work"/packages/*.deb "$out"
  exit
fi
status=0
HARTSIFT_COMMAND=$work/hartsift HARTSIFT_PACKAGES=$work/packages bash tests/api/test_packages.sh || status=$?
[ "$status" -eq 77 ] || [ "$status" -eq 0 ] || exit "$status"
cp "$work"/packages/*.deb "$out"
