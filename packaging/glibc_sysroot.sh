#!/usr/bin/env bash
# Makes a folder with headers and stub libraries of glibc 2.28 (symbols and versions without code), and a CMake toolchain file
# that makes Debian's GCC use it. Both come from the PyPI package ziglang, which has them for every version of glibc.
# usage: bash packaging/glibc_sysroot.sh x86_64|aarch64 FOLDER PYTHON     (PYTHON: has ziglang)
set -euo pipefail

architecture=$1 folder=$2 python=$3 glibc=2.28
mkdir -p "$folder"
folder=$(realpath "$folder")
target=$architecture-linux-gnu
root=$folder/sysroot
rm -rf "$root" "$folder/zig"
mkdir -p "$folder/zig" "$root/usr/include" "$root/usr/lib"

# Linking any program makes zig write the libraries and start files into its cache.
echo 'int main(void) { return 0; }' >"$folder/zig/main.c"
export ZIG_GLOBAL_CACHE_DIR=$folder/zig ZIG_LOCAL_CACHE_DIR=$folder/zig
"$python" -m ziglang cc -O2 -target "$target.$glibc" "$folder/zig/main.c" -o "$folder/zig/main"
find "$folder"/zig/o \( -name '*.so.*' -o -name 'crt1.o' -o -name 'libc_nonshared.a' \) -exec cp {} "$root/usr/lib" \;
for library in m dl pthread rt; do
  ln -s "$(basename "$root/usr/lib/lib$library".so.*)" "$root/usr/lib/lib$library.so"
done
echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libld.so.2 ) )' >"$root/usr/lib/libc.so"
# A program that may be loaded anywhere starts like any other: crt1.o reaches main through the table of addresses.
cp "$root/usr/lib/crt1.o" "$root/usr/lib/Scrt1.o"

# Common headers first, then this system's on top.
include=$("$python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "lib/libc/include")')
family=$architecture
[ "$architecture" = x86_64 ] && family=x86
for headers in any-linux-any "$family-linux-any" generic-glibc "$family-linux-gnu"; do
  cp -r "$include/$headers/." "$root/usr/include"
done

compiler=$target-gcc
# A stub of a GCC library that the linker asks for. This machine's library needs a later glibc.
echo "void _Unwind_Resume(void) {}" | "$compiler" -x c - -nostdlib -shared -o "$root/usr/lib/libgcc_s.so.1" \
  -Wl,-soname,libgcc_s.so.1 -Wl,--version-script=<(echo "GCC_3.0 { global: *; };")
# A linker script as in GCC, which adds GCC's support functions.
echo 'GROUP ( libgcc_s.so.1 -lgcc )' >"$root/usr/lib/libgcc_s.so"

# Start-up and exit code comes from GCC's objects; glibc 2.28 only needs to find them.
libc=$("$compiler" -print-file-name=crti.o)
cp "$libc" "$(dirname "$libc")/crtn.o" "$root/usr/lib"
{
  echo "set(CMAKE_C_COMPILER $compiler)"
  echo "set(CMAKE_CXX_COMPILER $target-g++)"
  [ "$architecture" = "$(uname -m)" ] || printf 'set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR %s)\n' "$architecture"
  echo "set(CMAKE_SYSROOT $root)"
  echo "set(CMAKE_C_FLAGS_INIT -D__GLIBC_MINOR__=${glibc#*.})"
  # GCC searches the machine's folders before another root's, unless the latter are named.
  for kind in EXE SHARED; do
    echo "set(CMAKE_${kind}_LINKER_FLAGS_INIT \"-B$root/usr/lib -L$root/usr/lib\")"
  done
  printf 'set(CMAKE_FIND_ROOT_PATH_MODE_%s)\n' 'PROGRAM NEVER' 'LIBRARY BOTH' 'INCLUDE BOTH' 'PACKAGE BOTH'
} >"$folder/toolchain.cmake"
