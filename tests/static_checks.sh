#!/usr/bin/env bash
# cppcheck on the C sources, and valgrind on the command. Findings that are none stand with their reasons in
# tests/support/cppcheck_findings.txt; any other ends this with 1. Not part of the test run: it takes minutes.
# Needs on Debian: cppcheck valgrind
# usage: bash tests/static_checks.sh COMMAND [FOLDER...]     (COMMAND: a built hartsift; FOLDERs: of sources)
# Without FOLDERs: what has no finding left unexplained, which is everything but the rooms of devices, frames and matching.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command=$(realpath "${1:?usage: static_checks.sh COMMAND [FOLDER...]}")
shift
folders=("$@")
[ "${#folders[@]}" -gt 0 ] ||
  folders=(stages pipeline/{base,context,formats,image_io,cli,pairs,geometry,retrieval})

defines=(-D_POSIX_C_SOURCE=200809L -D__GNUC__=12 -D__STDC_VERSION__=201112L -DHARTSIFT_TESTING=0 -DHARTSIFT_HAVE_CUDA=0 -DHS_API=)
for library in PNG JPEG TIFF WEBP ZLIB SQLITE; do
  defines+=("-DHARTSIFT_HAVE_$library=1")
done
cppcheck -q -j "$(nproc)" --std=c11 --enable=warning,portability --library=posix --error-exitcode=1 \
  --suppressions-list=tests/support/cppcheck_findings.txt "${defines[@]}" -I. -Ipipeline/include \
  "${folders[@]}"
echo "cppcheck: no finding"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# under_valgrind ARGUMENT...: an invalid access, a jump on what was never set or a lost block is a failure.
under_valgrind() {
  (cd "$folder" && valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible "$command" "$@" >out 2>&1) || {
    cat "$folder/out"
    echo "valgrind: hartsift $*"
    exit 1
  }
}
under_valgrind extract @scene:60x45:1 -o a.npz
under_valgrind extract @scene:61x47:2 -o b.csv
under_valgrind extract @scene:60x45:1 @scene:61x47:2 -o d.db
under_valgrind match a.npz b.csv --verify fundamental -o m.json
under_valgrind match --database d.db
under_valgrind draw @scene:60x45:1 a.npz -o d.png
under_valgrind stats @scene:60x45:1
under_valgrind info
echo "valgrind: no finding"
