#!/usr/bin/env bash
# The Debian packages that hartsift needs, listed only here, and a function that installs missing ones.
# Source it: . tests/support/install_deps.sh; install_packages "${BUILD_PACKAGES[@]}"

# shellcheck disable=SC2034  # used by the scripts that source this
BUILD_PACKAGES=(build-essential cmake ninja-build pkg-config libpng-dev libjpeg-dev libtiff-dev libwebp-dev zlib1g-dev libsqlite3-dev libzstd-dev)
TEST_PACKAGES=(clang colmap doxygen libclang-rt-dev libcmocka-dev libopencv-dev libvlfeat-dev fish lintian locales man-db mmdebstrap python3 python3-venv zsh gcc-aarch64-linux-gnu
  libc6-dev-arm64-cross qemu-user slurm-client slurmctld slurmd)

# What builds for Windows and runs there.
WINDOWS_PACKAGES=(g++-mingw-w64-x86-64-posix wine64)

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# Runs a command quietly; shows its output only if it fails.
run_quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    cat "$log" >&2
    echo "failed with status $status: $*" >&2
  fi
  rm -f "$log"
  return "$status"
}

# install_packages NAME...: installs the missing ones; changes nothing if all are installed.
install_packages() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "Not a Debian system; these packages, or what they are called here, are needed: $*" >&2
    return 0
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if [ "${#missing[@]}" -eq 0 ]; then
    return 0
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    echo "Run this as root, or first install: ${missing[*]}" >&2
    return 1
  fi
  echo "Installing ${missing[*]}"
  # Package lists may be missing or old; they are fetched only if something must be installed.
  run_quietly as_root apt-get update -qq || return 1
  run_quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# The first python3 that meets hartsift's requirements and can make virtual environments, which a version manager's or
# Debian's may not.
find_python() {
  local python
  for python in python3 /usr/bin/python3; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      echo "$python"
      return 0
    fi
  done
  echo "No python3 of version 3.10 or later with venv was found" >&2
  return 1
}

# make_python_environment FOLDER REQUIREMENTS...: a virtual environment with the packages in these files, independent of
# the machine's python3. Repeated only when the files change.
make_python_environment() {
  begin_python_environment "$@" && fill_python_environment "$@"
}

# The same in two parts: the interpreter, in some seconds, then the packages.
begin_python_environment() {
  local folder=$1 python
  shift
  cat "$@" | cmp -s - "$folder/installed.txt" && return 0
  python=$(find_python) || return 1
  rm -rf "$folder"
  "$python" -m venv "$folder"
}

fill_python_environment() {
  local folder=$1
  shift
  cat "$@" | cmp -s - "$folder/installed.txt" && return 0
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${@/#/-r}" || return 1
  cat "$@" >"$folder/installed.txt"
}

# Prints the path of nvcc; fails without a CUDA toolkit.
find_nvcc() {
  command -v nvcc && return 0
  [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc
}

has_gpu() {
  command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'
}
