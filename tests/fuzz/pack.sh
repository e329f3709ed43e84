#!/usr/bin/env bash
# Packs the built fuzz targets, their inputs and the libraries that they need, to be run on a machine with more cores: unpack it
# there and call fuzz_host.sh.
# usage: pack.sh FILE.tar.zst
set -euo pipefail
file=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
built=build/fuzz/tests/fuzz
pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
mkdir -p "$pack"/fuzz/{programs,lib,corpus}
for program in "$built"/fuzz_*; do
  if [ -f "$program" ]; then cp "$program" "$pack/fuzz/programs"; fi
done
strip --strip-debug "$pack"/fuzz/programs/*
ldd "$built"/fuzz_* | awk '$3 ~ /^\// && $1 !~ /^lib(c|m)\.so/ { print $3 }' | sort -u | xargs cp -L -t "$pack/fuzz/lib"
tar -xf tests/fuzz/corpus.tar.xz -C "$pack/fuzz/corpus"
cp -r tests/data/images "$pack/fuzz/images"
cp -r tests/fuzz/dictionaries tests/fuzz/fuzz_target.sh tests/fuzz/fuzz_host.sh "$pack/fuzz"
git rev-parse --short HEAD >"$pack/fuzz/commit"
# The window spans all programs, because most of their bytes are the library's and equal.
tar -C "$pack" -cf - fuzz | zstd -q -f -19 --long=27 -T0 -o "$file"
