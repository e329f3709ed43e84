#!/usr/bin/env bash
# Makes the sources' archive and a wheel twice, from copies of the commit in two folders with names of different lengths, and
# compares the bytes of the archive, the wheel, and the library and the command in it.
# usage: bash packaging/check_reproducible.sh [x86_64|aarch64]     (aarch64)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
architecture=${1:-aarch64}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools=$PWD/build/release
mkdir -p "$tools"
for copy in one a-folder-with-a-longer-name; do
  mkdir -p "$work/$copy/build" "$work/unpacked/$copy"
  git archive HEAD | tar -x -C "$work/$copy"
  # Tools and codecs are the same; everything of hartsift is built anew.
  ln -s "$tools" "$work/$copy/build/release"
  (cd "$work/$copy" && bash packaging/wheels.sh "out-$copy" "work-$copy" "$architecture")
  python3 -m zipfile -e "$work/$copy/out-$copy"/hartsift-*.whl "$work/unpacked/$copy"
done
diff -r "$work/unpacked/one" "$work/unpacked/a-folder-with-a-longer-name"
for file in "$work"/one/out-one/*; do
  cmp "$file" "$work/a-folder-with-a-longer-name/out-a-folder-with-a-longer-name/$(basename "$file")"
done
(cd "$work/unpacked/one/hartsift" && sha256sum libhartsift.so hartsift hartsift-colmap)
echo "equal: $(cd "$work/one/out-one" && echo *)"
