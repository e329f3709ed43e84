#!/usr/bin/env bash
# Tests the plain C path on other kinds of machine: 32-bit x86, big-endian s390x, and the C library musl. Builds the
# command for each, without optional libraries, and runs `hartsift selftest`, which compares with the digests that all
# machines share; before that, features of a small scene in three formats are compared byte for byte with those of this
# machine.
# Not part of the test run: it takes some minutes of compiling and, for s390x, of emulating.
# Needs on Debian: gcc-i686-linux-gnu libc6-dev-i386-cross gcc-s390x-linux-gnu libc6-dev-s390x-cross musl-tools
# qemu-user
# usage: bash tests/other_machines.sh [i686|s390x|musl]...     (default: all; skips those without a compiler)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

declare -A compilers=([i686]=i686-linux-gnu-gcc [s390x]=s390x-linux-gnu-gcc [musl]=musl-gcc)
declare -A emulators=([i686]="" [s390x]=qemu-s390x [musl]="")
machines=("$@")
[ "${#machines[@]}" -gt 0 ] || machines=(i686 s390x musl)

# build FOLDER OPTION...: builds the command in build/FOLDER.
build() {
  local folder=build/other/$1
  shift
  cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DHARTSIFT_WERROR=ON \
    -DHARTSIFT_{PNG,JPEG,TIFF,WEBP,ZLIB,SQLITE,CUDA,PEERS,BENCH,TESTS}=OFF "$@" >/dev/null
  cmake --build "$folder" --target hartsift_command >"$folder/build.log" || {
    cat "$folder/build.log"
    return 1
  }
}

build here
for machine in "${machines[@]}"; do
  compiler=${compilers[$machine]:?no such machine: $machine} emulator=${emulators[$machine]}
  for needed in $compiler $emulator; do
    if ! command -v "$needed" >/dev/null; then
      echo "$machine: left out, $needed was not found"
      continue 2
    fi
  done
  build "$machine" --toolchain "$PWD/tests/support/cross/$machine.cmake"
  command=build/other/$machine/hartsift
  for format in bin csv json; do
    scene=(extract @scene:90x70:3 --format "$format" --quiet)
    cmp <($emulator "$command" "${scene[@]}") <(build/other/here/hartsift "${scene[@]}")
  done
  echo "$machine: files of features are those of this machine"
  $emulator "$command" selftest | grep -E "^(passed|failed|all agree)" | sed "s/^/$machine: /"
done
