#!/usr/bin/env bash
# Makes everything that a release consists of, into OUT: the archive of the sources, the wheels, the archive for any Linux, the
# Debian packages, what is for Windows and macOS, and SHA256SUMS of them all. The tree must be committed: what is made is named after the version in hartsift.h.
# usage: bash packaging/release.sh [OUT]     (build/release/VERSION)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -nE 's/^#define HS_VERSION_(MAJOR|MINOR|PATCH) +([0-9]+).*/\2/p' pipeline/include/hartsift.h | paste -sd.)
out=${1:-build/release/$version}
if [ -n "$(git status --porcelain)" ]; then
  echo "There are changes that are not committed; a release is made of a commit: git stash, or commit them" >&2
  exit 1
fi
if [ $# -gt 0 ] && [ -n "$(ls -A "$out" 2>/dev/null)" ]; then
  echo "$out is not empty, and a release is a folder of its own: name another one, or empty it" >&2
  exit 1
fi
rm -rf "$out"
mkdir -p "$out"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

echo "hartsift $version: wheels"
bash packaging/wheels.sh "$out"
bash packaging/check_wheels.sh "$out"
echo "hartsift $version: archive"
bash packaging/archive.sh "$out"
echo "hartsift $version: Debian packages"
bash packaging/debian.sh "$out"
HARTSIFT_DEBIAN=arm64 bash packaging/debian.sh "$out" build/release/debian-arm64
echo "hartsift $version: Windows and macOS"
bash packaging/other_wheels.sh "$out"
bash packaging/windows.sh "$out"
(cd "$out" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
