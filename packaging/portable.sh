# Builds that run on every Linux with glibc 2.28 or later and NVIDIA driver from 525 on, with the codecs inside: the tools, and the
# options of CMake. To be sourced at the top of the tree, after tests/support/install_deps.sh.
# shellcheck shell=bash

tools=$PWD/build/release
# The kernels' compiler; it must run with the Python that has its libraries.
cuda_defines=(HARTSIFT_CUDA=ON HARTSIFT_NVCC=packaging/nvrtc.py HARTSIFT_NVCC_FLAGS=--compress-mode=size)
export PATH=$tools/venv/bin:$PATH

# What the tools below need: packages, and a Python environment.
install_tools() {
  install_packages "${BUILD_PACKAGES[@]}" dpkg-dev nasm tcl python3-venv gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
  make_python_environment "$tools/venv" packaging/wheel_tools.txt
}

# make_toolchain ARCHITECTURE: glibc and codecs for it, unless they are there.
make_toolchain() {
  [ ! -e "$tools/$1/codecs/lib/libzstd.a" ] || return 0
  run_quietly bash packaging/glibc_sysroot.sh "$1" "$tools/$1" "$tools/venv/bin/python"
  run_quietly bash packaging/codecs.sh "$tools/sources" "$tools/$1/codecs" "$tools/$1/toolchain.cmake"
}

# set_defines ARCHITECTURE: options of the build for it, in the array defines.
set_defines() {
  local codecs=$tools/$1/codecs
  defines=(CMAKE_TOOLCHAIN_FILE="$tools/$1/toolchain.cmake" CMAKE_PREFIX_PATH="$codecs" HARTSIFT_LICENSES="$tools/$1/licenses"
    HARTSIFT_PNG=ON HARTSIFT_JPEG=ON HARTSIFT_TIFF=OFF HARTSIFT_WEBP=OFF HARTSIFT_ZLIB=ON HARTSIFT_SQLITE=ON
    "${cuda_defines[@]}")
  rm -rf "$tools/$1/licenses"
  cp -r "$codecs/licenses" "$tools/$1/licenses"
}
