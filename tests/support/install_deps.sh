#!/usr/bin/env bash
# The Debian packages that hartsift needs, named in this one place, and a function that installs what is missing.
# To be sourced: . tests/support/install_deps.sh; install_packages "${BUILD_PACKAGES[@]}"

# shellcheck disable=SC2034  # used by the scripts that source this
BUILD_PACKAGES=(build-essential cmake ninja-build pkg-config libpng-dev libjpeg-dev zlib1g-dev libsqlite3-dev)
TEST_PACKAGES=(libcmocka-dev libopencv-dev libvlfeat-dev python3 python3-pip python3-venv gcc-aarch64-linux-gnu
  libc6-dev-arm64-cross qemu-user)
# Not needed where pip or another source has already given python3 these modules.
if ! python3 -c 'import numpy, cv2' 2>/dev/null; then
  TEST_PACKAGES+=(python3-numpy python3-opencv)
fi
if ! python3 -c 'import pytest' 2>/dev/null; then
  TEST_PACKAGES+=(python3-pytest)
fi

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

# Runs a command quietly; its output is shown only when it fails.
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

# install_packages NAME...: installs those that are missing; nothing is touched when all are there.
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
  # Package lists may be absent or old: fetched only when something is to be installed.
  run_quietly as_root apt-get update -qq || return 1
  run_quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# What the tests of the Python package want besides, for a python3 that is not the system's own. Where nothing can be
# fetched these tests say that they are skipped.
install_python_modules() {
  local module missing=()
  for module in pytest mypy scikit_build_core; do
    python3 -c "import $module" 2>/dev/null || missing+=("${module//_/-}")
  done
  if [ "${#missing[@]}" -gt 0 ]; then
    python3 -m pip install --quiet "${missing[@]}" >/dev/null 2>&1 || echo "Not installed for python3: ${missing[*]}" >&2
  fi
}

# Prints the path of nvcc; fails when there is no CUDA toolkit.
find_nvcc() {
  command -v nvcc && return 0
  [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc
}

has_gpu() {
  command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'
}
