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
clean "$(compgen -G "$work/3.*/bin/hartsift" | head -n 1)" selftest >"$work/selftest.log" || { cat "$work/selftest.log"; exit 1; }

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
emulated "$root/usr/bin/python3.11" "$work/use.py" "$work/aarch64.npz" "$work/picture.png"
same aarch64
echo "aarch64: installed, and the bytes are those of x86-64"
