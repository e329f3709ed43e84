#!/usr/bin/env bash
# Checks by clang's mode for Visual C++ (as clang-cl) that the public headers compile there without a warning, each alone, in C and
# in C++; with "sources" also every source of the Windows build and the examples in C, with mingw-w64's headers in place of
# Microsoft's (Debian's package g++-mingw-w64-x86-64-posix and the codecs' development packages). Nothing is linked.
# usage: bash tests/api/check_msvc.sh [sources]     (CLANG: its path, if it is not clang)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
compiler=("${CLANG:-clang}" --driver-mode=cl --target=x86_64-pc-windows-msvc /Zs /W4 /WX /permissive- -Ipipeline/include)

for header in pipeline/include/*.h; do
  name=$(basename "$header" .h)
  for language in c cpp; do
    printf '#include <%s.h>\n#include <%s.h>\nHS_API hs_status %s_alone(hs_status status);\n' "$name" "$name" "$name" >"$folder/$name.$language"
  done
done
"${compiler[@]}" /std:c11 "$folder"/*.c
"${compiler[@]}" /std:c++17 "$folder"/*.cpp
echo "Visual C++'s rules: the public headers, no finding"
[ "${1:-}" = sources ] || exit 0

# Of Linux's headers only those of the codecs.
mkdir "$folder/codecs"
for header in png.h pngconf.h pnglibconf.h jpeglib.h jmorecfg.h jerror.h jconfig.h zlib.h zconf.h sqlite3.h; do
  ln -s "$(printf '#include <stddef.h>\n#include <stdio.h>\n#include <%s>\n' "$header" | cc -M -x c - | grep -o "[^ ]*/$header" | head -n 1)" "$folder/codecs"
done
# mingw-w64's macros for Visual C++ put attributes where it does not take them.
cat >"$folder/mingw.h" <<'END'
#include <_mingw.h>
#undef __attribute__
#undef __MINGW_ATTRIB_NORETURN
#define __MINGW_ATTRIB_NORETURN
#undef __MINGW_ATTRIB_DEPRECATED
#define __MINGW_ATTRIB_DEPRECATED
END
compiler+=(/std:c11 -Wno-string-concatenation -I. /FI"$folder/mingw.h" -imsvc /usr/x86_64-w64-mingw32/include -imsvc "$folder/codecs"
  -D_WIN32_WINNT=0x0A00 -DHARTSIFT_PROGRAM_MAIN=hs_command_main -DHARTSIFT_HAVE_{PNG,JPEG,ZLIB,SQLITE}=1
  -DHARTSIFT_HAVE_{TIFF,WEBP,CUDA,ISA_NEON}=0 -DHARTSIFT_HAVE_ISA_{SSE2,AVX2,AVX512,AVX512VNNI}=1 -DHARTSIFT_ISA=avx2 -mavx2 -mfma)
find os stages cpu pipeline -name '*.c' ! -name '*_posix.c' ! -name colmap_absent.c -print0 |
  xargs -0 -P "$(nproc)" -n 1 "${compiler[@]}"
echo "Visual C++'s rules: all sources, no finding"
