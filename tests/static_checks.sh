#!/usr/bin/env bash
# cppcheck, clang-tidy and Visual C++'s rules (tests/api/check_msvc.sh) on the C sources, and valgrind on the command.
# tests/support/cppcheck_findings.txt and clang_tidy_findings.txt list false findings with their reasons; any other finding gives
# exit status 1. Not part of the test run, because it takes a quarter of an hour.
# Needs on Debian: clang clang-tidy cppcheck g++-mingw-w64-x86-64-posix python3 valgrind
# usage: bash tests/static_checks.sh COMMAND [FOLDER...]     (COMMAND: a built hartsift; FOLDERs: of sources)
# COMMAND is in its build folder, whose compile_commands.json clang-tidy uses. Without FOLDERs: all of stages, cpu,
# pipeline.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command=$(realpath "${1:?usage: static_checks.sh COMMAND [FOLDER...]}")
shift
folders=("$@")
[ "${#folders[@]}" -gt 0 ] ||
  folders=(stages cpu pipeline)

defines=(-D_POSIX_C_SOURCE=200809L -D__GNUC__=12 -D__STDC_VERSION__=201112L -DHARTSIFT_HAVE_CUDA=0 -DHS_API=)
# cpu/simd/*_simd.c with the options for AVX2.
defines+=(-D__x86_64__ -D__SSE2__ -D__AVX2__ -D__FMA__ -DHARTSIFT_ISA=avx2 -DHARTSIFT_HAVE_ISA_NEON=0)
defines+=(-DHARTSIFT_HAVE_ISA_{SSE2,AVX2,AVX512,AVX512VNNI}=1)
for library in PNG JPEG TIFF WEBP ZLIB SQLITE; do
  defines+=("-DHARTSIFT_HAVE_$library=1")
done
cppcheck -q -j "$(nproc)" --std=c11 --enable=warning,portability --library=posix --error-exitcode=1 \
  --suppressions-list=tests/support/cppcheck_findings.txt "${defines[@]}" -I. -Ipipeline/include \
  "${folders[@]}"
echo "cppcheck: no finding"
python3 tests/support/clang_tidy.py "$(dirname "$command")" "${folders[@]}"
bash tests/api/check_msvc.sh sources

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# under_valgrind ARGUMENT...: fails on an invalid access, a jump on uninitialised data or a lost block.
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
