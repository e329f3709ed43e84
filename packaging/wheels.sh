#!/usr/bin/env bash
# Makes the archive of the sources and the wheels for OUT: Linux x86-64 and aarch64, with CUDA for every
# generation of GPU. Both run with glibc 2.28 or later and have the codecs inside. Equal sources give equal bytes, in whatever WORK.
# usage: bash packaging/wheels.sh OUT [WORK [x86_64|aarch64]...]     (WORK: build/release)
set -euo pipefail
mkdir -p "$1" "${2:-build/release}"
out=$(realpath "$1") work=$(realpath "${2:-build/release}")
architectures=("${@:3}")
[ "${#architectures[@]}" -gt 0 ] || architectures=(x86_64 aarch64)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/support/install_deps.sh
. tests/support/install_deps.sh
# shellcheck source=packaging/portable.sh
. packaging/portable.sh

python=$tools/venv/bin/python
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

# make_wheel ARCHITECTURE: from the archive of the sources, as a user's pip would.
make_wheel() {
  local architecture=$1 defines define settings=()
  make_toolchain "$architecture"
  set_defines "$architecture"
  for define in "${defines[@]}"; do
    settings+=(--config-settings=cmake.define."$define")
  done
  rm -rf "${work:?}/$architecture/wheel"
  run_quietly env _PYTHON_HOST_PLATFORM="linux_$architecture" "$python" -m pip wheel --no-build-isolation --no-deps \
    --wheel-dir "$work/$architecture/wheel" --config-settings=build-dir="$work/$architecture/build" "${settings[@]}" \
    "$out"/hartsift-*.tar.gz
  # auditwheel names the wheel after the oldest platform that has what it needs.
  run_quietly env PATH="$tools/venv/bin:$PATH" "$python" -m auditwheel repair --plat auto --only-plat \
    --wheel-dir "$out" "$work/$architecture"/wheel/hartsift-*.whl
  local wheel bytes
  wheel=$(ls "$out"/hartsift-*-py3-none-"manylinux_2_28_$architecture.whl")
  bytes=$(stat -c %s "$wheel")
  [ "$bytes" -le 10000000 ] || { echo "$wheel has $bytes bytes, more than 10 MB" >&2; return 1; }
}

install_tools
run_quietly "$python" -m build --sdist --no-isolation --outdir "$out" .
for architecture in "${architectures[@]}"; do
  make_wheel "$architecture"
done
ls -l "$out"
