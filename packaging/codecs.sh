#!/usr/bin/env bash
# Builds the libraries of wheels as static libraries from Debian's sources, including security fixes:
# zlib, libpng, libjpeg-turbo, SQLite, the decompressor of zstd. Their licence texts go to PREFIX/licenses.
# usage: bash packaging/codecs.sh SOURCES PREFIX TOOLCHAIN [cmocka]    (SOURCES is filled where it is empty; TOOLCHAIN: a CMake
# file; cmocka: the tests' library too)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p "$1" "$2/licenses"
sources=$(realpath "$1") prefix=$(realpath "$2") toolchain=$(realpath "$3")
packages=(zlib libpng1.6 libjpeg-turbo sqlite3 libzstd "${@:4}")

# The sources of this Debian's packages, with a list of packages of their own: the machine's stays as it is.
fetch_sources() {
  local apt=$sources/apt options package
  mkdir -p "$apt/lists/partial" "$apt/parts" "$apt/archives/partial"
  sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$apt/parts/sources.sources"
  options=(-qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts" -o Dir::State::Lists="$apt/lists"
    -o Dir::Cache="$apt" -o APT::Sandbox::User=)
  apt-get "${options[@]}" update
  for package in "${packages[@]}"; do
    compgen -G "$sources/${package}_*.dsc" >/dev/null || fetch_newest "$package" "${options[@]}"
  done
}

# fetch_newest PACKAGE APT_OPTION...: the newest version whose sources the mirror has.
fetch_newest() {
  local package=$1 version
  shift
  for version in $(apt-cache "$@" showsrc "$package" | sed -n 's/^Version: //p' | sort -rV); do
    (cd "$sources" && apt-get "$@" source --download-only "$package=$version") && return
    echo "The mirror lacks the sources of $package $version; trying an older version" >&2
  done
  echo "No sources of $package: check that /etc/apt/sources.list.d/debian.sources names a mirror that has them" >&2
  return 1
}

# unpack PACKAGE: to $work/PACKAGE.
unpack() {
  rm -rf "${work:?}/$1"
  dpkg-source --no-copy --no-check -x "$sources/$1"_*.dsc "$work/$1" >/dev/null
  local version
  version=$(sed -n 's/^Version: //p' "$sources/$1"_*.dsc | head -n 1)
  # Debian's copyright file has every licence of the sources in full.
  { echo "$1 $version, as in Debian"; echo; cat "$work/$1/debian/copyright"; } >"$prefix/licenses/$1.txt"
}

# build FOLDER OPTION...: with the folder's own CMakeLists.txt.
build() {
  local folder=$work/$1
  shift
  cmake -S "$folder" -B "$folder-build" -G Ninja --toolchain "$toolchain" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR="$prefix/lib" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON "$@"
  cmake --build "$folder-build" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
  cmake --install "$folder-build"
}

# build_files FOLDER LIBRARY HEADERS OPTIONS [FILES]: all C files of the folder, which is how these are meant to be built where
# their own scripts do not serve: zlib's, as Debian has it, lacks a part for CMake; SQLite is one file; zstd's wants C++.
build_files() {
  cat >"$work/$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project($2 C)
file(GLOB sources ${5:-*.c})
add_library($2 STATIC \${sources})
target_compile_options($2 PRIVATE $4)
install(TARGETS $2)
install(FILES $3 TYPE INCLUDE)
END
  build "$1"
}

[ "$(find "$sources" -name '*.dsc' | wc -l)" -ge "${#packages[@]}" ] || fetch_sources
work=$prefix/build
mkdir -p "$work"
for package in "${packages[@]}"; do
  unpack "$package"
done

build_files zlib z "zlib.h zconf.h" "-DHAVE_UNISTD_H -DHAVE_HIDDEN -D_LARGEFILE64_SOURCE=1"
build libpng1.6 -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_EXECUTABLES=OFF
build libjpeg-turbo -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON
(cd "$work/sqlite3" && ./configure --disable-shared >/dev/null && make -s sqlite3.c sqlite3.h)
mkdir -p "$work/sqlite3-one-file"
cp "$work"/sqlite3/sqlite3.[ch] "$work/sqlite3-one-file"
omitted=$(printf ' -DSQLITE_OMIT_%s' LOAD_EXTENSION DEPRECATED JSON SHARED_CACHE PROGRESS_CALLBACK DECLTYPE)
build_files sqlite3-one-file sqlite3 sqlite3.h "-O2 -DSQLITE_DQS=0$omitted"
build_files libzstd/lib zstd zstd.h \
  "-O2 -DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=0 -DHUF_FORCE_DECOMPRESS_X1 -DZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT" "common/*.c decompress/*.c"
if [ "${4:-}" = cmocka ]; then
  # Its shared library cannot be switched off; the static one has another name.
  build cmocka -DWITH_STATIC_LIB=ON -DUNIT_TESTING=OFF -DWITH_EXAMPLES=OFF
  rm -f "$prefix"/bin/cmocka.dll "$prefix"/lib/libcmocka.dll.a "$prefix"/licenses/cmocka.txt # only tests have it inside
  mv "$prefix/lib/libcmocka-static.a" "$prefix/lib/libcmocka.a"
fi
