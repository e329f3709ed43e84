#!/usr/bin/env bash
# Which compiler for kernels a build takes (pipeline/cmake/cuda_toolkit.cmake), shown with programs that play nvcc: bare names
# are looked up on PATH, and one that compiles no kernel leaves a build for the CPU, or ends the build that needs it.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# play NAME STATUS VERSION: a program that compiles nothing, and ends with the status where it is asked to.
play() {
  mkdir -p "$work/$1"
  cat >"$work/$1/nvcc" <<END
#!/bin/sh
case "\$1" in
--version) echo "Cuda compilation tools, release $3, V$3.1" ;;
--list-gpu-arch) printf 'compute_%s\n' 75 80 90 120 ;;
--help) ;;
*) echo "fatal error: crt/host_config.h is missing" >&2; exit $2 ;;
esac
END
  chmod +x "$work/$1/nvcc"
}
play works 0 13.0
play lacks_headers 1 13.0
play old 0 11.8
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(choice LANGUAGES NONE)
set(PROJECT_SOURCE_DIR $sources)
include($sources/pipeline/cmake/cuda_toolkit.cmake)
message("cuda \${HARTSIFT_HAVE_CUDA}: \${HARTSIFT_WITHOUT_CUDA}; \${HARTSIFT_NVCC}; \${HARTSIFT_KERNEL_ARCHITECTURES}; \${HARTSIFT_DRIVER_VERSION}; warpgroups \${HARTSIFT_WARPGROUP_CODE}")
END

# expect WORDS PATH OPTION...: what the build says.
expect() {
  local words=$1 path=$2 said
  shift 2
  rm -rf "$work/build"
  said=$(PATH=$path:/usr/bin:/bin CUDACXX='' CUDA_PATH='' CUDA_HOME='' "$cmake" -S "$work/project" -B "$work/build" "$@" 2>&1 |
    tr -s '\n ' ' ') || true
  grep -qF -- "$words" <<<"$said" || { echo "failed: $*: '$said' without '$words'"; exit 1; }
}
cmake=$(command -v cmake)
expect "cuda 1: " "$work/works" -DHARTSIFT_CUDA=AUTO
expect "; $work/works/nvcc; 75-real;80-real;90-real;120-real;90-virtual; 13000" "$work/works" -DHARTSIFT_CUDA=AUTO -DHARTSIFT_NVCC=nvcc
expect "cuda 0: $work/lacks_headers/nvcc compiles no kernel: fatal error: crt/host_config.h is missing; " "$work/lacks_headers" \
  -DHARTSIFT_CUDA=AUTO
expect "compiles no kernel: fatal error" "$work/lacks_headers" -DHARTSIFT_CUDA=ON
expect "HARTSIFT_NVCC is no_such_nvcc, which is not on PATH" "$work/works" -DHARTSIFT_CUDA=AUTO -DHARTSIFT_NVCC=no_such_nvcc
expect "cuda 0: $work/old/nvcc is of CUDA 11.8; hartsift needs 12.0 or later" "$work/old" -DHARTSIFT_CUDA=AUTO
expect "75-real;80-real;90-real;120-real;90-virtual" "$work/works" -DHARTSIFT_CUDA=AUTO -DCMAKE_SYSTEM_PROCESSOR=x86_64
for architectures in 90-real 90 90a-real "80-real;90a"; do
  expect "; warpgroups 1" "$work/works" -DHARTSIFT_CUDA=ON "-DHARTSIFT_CUDA_ARCHITECTURES=$architectures"
done
expect "; warpgroups 0" "$work/works" -DHARTSIFT_CUDA=ON "-DHARTSIFT_CUDA_ARCHITECTURES=80-real;90-virtual"
# NVRTC of a Python package, where there is no nvcc.
mkdir -p "$work/none" "$work/packages/nvidia/cuda_nvrtc/lib"
touch "$work/packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
PYTHONPATH=$work/packages expect "cuda 0: $sources/packaging/nvrtc.py --version names no release" "$work/none" -DHARTSIFT_CUDA=AUTO \
  "-DCMAKE_IGNORE_PATH=/usr/local/cuda;/usr/local/cuda/bin;/usr/local/bin;/usr/bin;/bin" \
  -DPython3_EXECUTABLE="$(command -v python3)" -DCMAKE_MAKE_PROGRAM="$(command -v true)"
expect "cuda 0: as asked" "$work/works" -DHARTSIFT_CUDA=OFF
echo "compilers chosen as documented"
