#!/usr/bin/env bash
# From a fresh Debian to pictures of features: installs what the build needs, builds, and extracts and draws the features of
# the generated scene and of the photo given.
# usage: bash pipeline/examples/quickstart.sh [PHOTO]
set -euo pipefail

photo=""
if [ "$#" -gt 0 ]; then
  photo=$(realpath "$1")
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh

install_packages "${BUILD_PACKAGES[@]}"

# GPU code is worth its compile time only where a GPU can run it.
cuda_options=(-DHARTSIFT_CUDA=OFF)
if has_gpu && find_nvcc >/dev/null; then
  cuda_options=(-DHARTSIFT_CUDA=AUTO -DHARTSIFT_CUDA_ARCHITECTURES=native)
fi
build=(cmake --build --preset default --target hartsift_products)
echo "Building hartsift in build/default: a minute or two, more with GPU code"
run_quietly cmake --preset default "${cuda_options[@]}"
# On a terminal Ninja says in one line how far it is.
if [ -t 1 ]; then
  "${build[@]}"
else
  run_quietly "${build[@]}"
fi

hartsift=build/default/hartsift
out=build/quickstart
mkdir -p "$out"
show_features() {
  local image=$1 name=$2
  "$hartsift" extract "$image" -o "$out/$name.csv"
  "$hartsift" draw "$image" "$out/$name.csv" -o "$out/$name.png"
  echo "$PWD/$out/$name.png: $(($(wc -l <"$out/$name.csv") - 1)) features of $image (listed in $name.csv)"
}
show_features @scene scene
if [ -n "$photo" ]; then
  name=$(basename "$photo")
  show_features "$photo" "photo_${name%.*}"
fi
