#!/usr/bin/env bash
# Tests the packages of a build. Debian's pass lintian, and the archive runs unpacked. In a fresh Debian system the
# packages are installed, draw a picture of features, serve C and Python with the command's bytes, and are removed
# without a trace.
# HARTSIFT_PACKAGES: a folder of packages to test instead of the packages in HARTSIFT_COMMAND's build.
set -euo pipefail

skip() {
  echo "skipped: $1"
  exit 77
}

[ -n "${HARTSIFT_COMMAND:-}" ] || skip "HARTSIFT_COMMAND does not name the command"
build=$(dirname "$HARTSIFT_COMMAND")
[ -f "$build/CPackConfig.cmake" ] || skip "a build without shared library or command makes no packages"
command -v dpkg-shlibdeps >/dev/null || skip "not a Debian system: there are no tools of dpkg"
command -v lintian >/dev/null || skip "lintian is not installed"
version=$(sed -n 's/^#define HS_VERSION_[A-Z]* *\([0-9]*\)$/\1/p' pipeline/include/hartsift.h | paste -sd.)
examples=$PWD/pipeline/examples

work=$(mktemp -d)
bootstrap=
clean_up() {
  touch "$work/stop"
  [ -z "$bootstrap" ] || wait "$bootstrap" || true
  ! mountpoint -q "$work/ram" || umount "$work/ram"
  rm -rf "$work"
}
trap clean_up EXIT
trap 'echo "line $LINENO: failed: $BASH_COMMAND"' ERR

# Runs inside mmdebstrap, which has mounted the file systems that a system needs: $1 is the new root.
cat >"$work/in_new_root" <<'END'
set -eu
work=$1 root=$2 version=$3
until [ -e "$work/ready" ] || [ -e "$work/stop" ]; do sleep 0.1; done
[ ! -e "$work/stop" ] || exit 1
mkdir "$root/packages"
cp "$work"/packages/*.deb "$work/scene.npz" "$work/example" "$root/packages/"
cat >"$root/packages/in_chroot" <<'INSIDE'
set -eu
cd /packages
version=$1
export DEBIAN_FRONTEND=noninteractive
start=$(date +%s%N)
apt-get install -qq --no-install-recommends ./hartsift_*.deb ./libhartsift[0-9]*.deb >/dev/null
hartsift draw @scene:720x400 --max-features 250 --quiet -o picture.png
echo "from nothing to a picture: $((($(date +%s%N) - start) / 1000000)) ms"
[ "$(head -c 4 picture.png | tail -c 3)" = PNG ]
[ "$(hartsift version | cut -d' ' -f2)" = "$version" ]
hartsift extract @scene:640x480 --device cpu --quiet -o command.npz
hartsift-colmap database_creator --database_path colmap.db
cmp command.npz scene.npz
apt-get install -qq --no-install-recommends ./*.deb >/dev/null
./example @scene:64x48 >/dev/null
python3 - <<'PYTHON'
import importlib.metadata, hartsift
assert importlib.metadata.version("hartsift") == hartsift.__version__
features = hartsift.extract(hartsift.load_image("@scene:640x480"), device="cpu")
hartsift.write_features("python.npz", features)
PYTHON
cmp python.npz scene.npz
[ "$(python3 -m hartsift version)" = "$(hartsift version)" ]
find / -xdev -name '*hartsift*' -not -path '/packages/*' | grep -q /usr/share/man/man1/hartsift-match.1.gz
apt-get purge -qq hartsift libhartsift-dev 'libhartsift[0-9]*' python3-hartsift >/dev/null
left=$(find / -xdev -name '*hartsift*' -not -path '/packages/*' -not -path '/var/log/*')
[ -z "$left" ] || { echo "left after removal: $left"; exit 1; }
INSIDE
chroot "$root" bash /packages/in_chroot "$version"
touch "$work/finished"
END

# A system of this machine's release, built in memory to avoid waits for the disk.
start_bootstrap() {
  local sources=() file
  for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    [ "${#sources[@]}" -gt 0 ] || [ ! -s "$file" ] || sources=("$file")
  done
  mkdir "$work/ram"
  mount -t tmpfs tmpfs "$work/ram" 2>/dev/null || true
  TMPDIR=$work/ram mmdebstrap --quiet --mode=root --variant=apt --format=null --dpkgopt=force-unsafe-io \
    --skip=cleanup/apt/lists --customize-hook="bash '$work/in_new_root' '$work' \"\$1\" '$version'" \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" - "${sources[@]}" >"$work/bootstrap.log" 2>&1 &
  bootstrap=$!
}
if [ "$(id -u)" -eq 0 ] && command -v mmdebstrap >/dev/null; then
  start_bootstrap
fi

if [ -n "${HARTSIFT_PACKAGES:-}" ]; then
  mkdir "$work/packages"
  cp "$HARTSIFT_PACKAGES"/*.deb "$HARTSIFT_PACKAGES"/*.tar.xz "$work/packages"
else
  cpack --config "$build/CPackConfig.cmake" -G "DEB;TXZ" -B "$work/packages" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
fi
cd "$work"
expected=$(printf "%s\n" hartsift libhartsift-dev "libhartsift${version%.*}" python3-hartsift | sed "s/$/_$version/")
expected=$(printf "%s\n" hartsift libhartsift-dev "libhartsift${version%.*}" python3-hartsift | sed "s/$/_$version/")
found=$(cd packages && printf '%s\n' *.deb | sed 's/_[a-z0-9]*\.deb$//')
[ "$(sort <<<"$expected")" = "$(sort <<<"$found")" ] || {
  echo "packages: $found"
  exit 1
}

tar -xf packages/hartsift-*.tar.xz
archive=$(echo hartsift-*/)
[ "$("$archive/bin/hartsift" version | cut -d' ' -f2)" = "$version" ]
"$archive/bin/hartsift" extract @scene:640x480 --device cpu --quiet -o scene.npz
flags=$(PKG_CONFIG_PATH=$archive/lib/pkgconfig pkg-config --cflags --libs hartsift)
# shellcheck disable=SC2086  # flags are words
cc "$examples/extract_features.c" -o example $flags
touch ready

lintian --allow-root --profile debian --fail-on error packages/*.deb
[ "$(id -u)" -eq 0 ] || skip "a fresh chroot needs root"
[ -n "$bootstrap" ] || skip "mmdebstrap is not installed"
wait "$bootstrap" || true
grep -v '^[IW]: ' bootstrap.log || true
[ -e finished ]
