#!/usr/bin/env bash
# Installs wheels as a user would and uses them: the x86-64 wheel in a clean environment of each Python from 3.10 to 3.13 that
# this machine has, the aarch64 wheel with Debian's Python for that processor under an emulator. Each must give the bytes that
# the others give, and those stored in its command's selftest.
# usage: bash packaging/check_wheels.sh FOLDER_OF_WHEELS
set -euo pipefail
wheels=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/use.py" <<'END'
import sys
import hartsift
features = hartsift.extract(hartsift.load_image("@scene:640x480"), device="cpu")
hartsift.write_features(sys.argv[1], features)
photo = hartsift.extract(sys.argv[2], device="cpu", max_features=100)
print(f"Python {sys.version.split()[0]}, hartsift {hartsift.__version__}: {len(features)} and {len(photo)} features")
END
unset PYTHONPATH HARTSIFT_LIBRARY HARTSIFT_COMMAND

# same NAME: the features of two environments are equal.
same() {
  [ -e "$work/first.npz" ] || cp "$work/$1.npz" "$work/first.npz"
  cmp "$work/first.npz" "$work/$1.npz"
}

find_interpreter() {
  command -v "python$1" && "python$1" -c 'import venv' && return
  compgen -G "$HOME/.pyenv/versions/$1.*/bin/python3" | tail -n 1
}

# Runs a command in an environment with only the system's PATH.
clean() { env -i HOME="$work" PATH=/usr/bin:/bin "$@"; }

# make_drivers ARCHITECTURE: two drivers without a GPU; the second one lacks a function.
make_drivers() {
  local compiler=$1-linux-gnu-gcc root=$PWD/build/release/$1/sysroot folder define=()
  for folder in driver lacking; do
    [ "$folder" = driver ] || define=(-DFAKE_CUDA_LACKS_A_FUNCTION)
    mkdir -p "$work/$1-drivers/$folder"
    "$compiler" --sysroot="$root" -B"$root/usr/lib" -L"$root/usr/lib" -D__GLIBC_MINOR__=28 -shared -fPIC -O1 -I. -D_POSIX_C_SOURCE=200809L \
      "${define[@]}" tests/fake_device/driver/fake_cuda.c -o "$work/$1-drivers/$folder/libcuda.so.1"
  done
}

# check_info DRIVER_FOLDER RUN...: what info says of GPUs; RUN... is followed by variables and the command's words.
check_info() {
  local drivers=$1 folder settings words said
  shift
  while IFS='|' read -r folder settings words; do
    said=$("$@" LD_LIBRARY_PATH="$drivers/$folder" FAKE_CUDA="$settings" hartsift info 2>&1) || true
    grep -qF -- "$words" <<<"$said" || { echo "failed: info with $folder $settings: no '$words' in:"; echo "$said"; exit 1; }
  done <<'END'
absent||no CUDA driver: this machine has no NVIDIA GPU, or its driver is not installed
driver|version=12000|fake GPU 0, compute capability 9.2, driver 12.0, machine code
driver|version=12040|fake GPU 0, compute capability 9.2, driver 12.4, machine code
driver|version=13000|fake GPU 0, compute capability 9.2, driver 13.0, machine code
driver|version=13000 major=13|fake GPU 0, compute capability 13.2, driver 13.0, code from PTX
driver|version=13000 major=6 load=209|this build has no code for the device: it has compute capability 6.2
driver|version=11080|the CUDA driver is too old: it knows CUDA up to 11.8, this build needs 12.0
lacking|version=12040|the CUDA driver lacks the function cuGraphExecKernelNodeSetParams_v2
END
}

checked=0
for version in 3.10 3.11 3.12 3.13; do
  interpreter=$(find_interpreter "$version" 2>/dev/null | tail -n 1) || true
  if [ -z "$interpreter" ]; then
    echo "skipped: no Python $version here"
    continue
  fi
  started=$(date +%s%N)
  "$interpreter" -m venv "$work/$version"
  "$work/$version/bin/python" -m pip install --quiet --disable-pip-version-check "$wheels"/hartsift-*_x86_64.whl
  clean "$work/$version/bin/hartsift" draw @scene:640x480 --quiet -o "$work/picture.png"
  echo "Python $version, from nothing to a picture of features: $((($(date +%s%N) - started) / 1000000)) ms"
  clean "$work/$version/bin/hartsift" extract @scene:640x480 --device cpu --quiet -o "$work/command.npz"
  clean "$work/$version/bin/python" "$work/use.py" "$work/$version.npz" "$work/picture.png"
  same command
  same "$version"
  checked=$((checked + 1))
done
[ "$checked" -gt 0 ] || { echo "failed: none of the Pythons is here"; exit 1; }
# The program is the same in all of them.
bin=$(dirname "$(compgen -G "$work/3.*/bin/hartsift" | head -n 1)")
clean "$bin/hartsift" selftest >"$work/selftest.log" || { cat "$work/selftest.log"; exit 1; }
make_drivers x86_64
check_info "$work/x86_64-drivers" env -i HOME="$work" PATH="$bin:/usr/bin:/bin"
echo "x86-64: info names what eight played drivers allow"

package=$("$bin/python" -c 'import importlib.util; print(importlib.util.find_spec("hartsift").submodule_search_locations[0])')
"$bin/python" packaging/kernels.py "$package/libhartsift.so"
if [ -n "${HARTSIFT_OLD_ROOT:-}" ]; then
  mkdir -p "$HARTSIFT_OLD_ROOT/proc" "$HARTSIFT_OLD_ROOT/hartsift-check"
  trap 'rm -rf "$work" "$HARTSIFT_OLD_ROOT/hartsift-check"' EXIT
  cp "$package"/{hartsift,libhartsift.so} "$HARTSIFT_OLD_ROOT/hartsift-check"
  cp -r "$work"/x86_64-drivers/* "$HARTSIFT_OLD_ROOT/hartsift-check"
  in_root() {
    local variables=()
    while [[ $1 = *=* ]]; do variables+=("$1") && shift; done
    env -i PATH=/hartsift-check:/usr/bin:/bin "${variables[@]}" "$(command -v unshare)" --pid --fork --mount-proc="$HARTSIFT_OLD_ROOT/proc" \
      "$(command -v chroot)" "$HARTSIFT_OLD_ROOT" "$@"
  }
  in_root hartsift selftest >"$work/selftest.log" || { cat "$work/selftest.log"; exit 1; }
  in_root hartsift extract @scene:640x480 --device cpu --quiet -o /hartsift-check/old.npz
  cp "$HARTSIFT_OLD_ROOT/hartsift-check/old.npz" "$work/old.npz"
  same old
  check_info /hartsift-check in_root
  echo "x86-64: the same in $HARTSIFT_OLD_ROOT"
fi

compgen -G "$wheels/hartsift-*_aarch64.whl" >/dev/null || exit 0
# Debian's Python for aarch64, unpacked into the work folder; the machine's packages stay unchanged.
root=build/release/aarch64/python
if [ ! -x "$root/usr/bin/python3.11" ]; then
  mkdir -p "$root/apt/lists/partial" "$root/apt/archives/partial"
  root=$(realpath "$root")
  : >"$root/apt/status"
  options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$root/apt/lists"
    -o Dir::State::status="$root/apt/status" -o Dir::Cache="$root/apt" -o APT::Sandbox::User= -o APT::Install-Recommends=false)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install --download-only -y python3.11-minimal libpython3.11-stdlib libstdc++6
  for package in "$root"/apt/archives/*.deb; do
    dpkg -x "$package" "$root"
  done
fi
"build/release/venv/bin/python" -m pip install --quiet --target "$work/aarch64" --platform manylinux_2_28_aarch64 \
  --python-version 3.11 --only-binary :all: "$wheels"/hartsift-*_aarch64.whl
emulated() { clean PYTHONPATH="$work/aarch64" qemu-aarch64 -L "$root" "$@"; }
emulated "$work/aarch64/hartsift/hartsift" selftest >"$work/selftest.log" || { cat "$work/selftest.log"; exit 1; }
make_drivers aarch64
on_aarch64() {
  local variables=()
  while [[ $1 = *=* ]]; do variables+=(-E "$1") && shift; done
  qemu-aarch64 -L "$root" "${variables[@]}" "$work/aarch64/hartsift/$1" "${@:2}"
}
check_info "$work/aarch64-drivers" on_aarch64
emulated "$root/usr/bin/python3.11" "$work/use.py" "$work/aarch64.npz" "$work/picture.png"
same aarch64
echo "aarch64: installed, and the bytes are those of x86-64"
