#!/usr/bin/env bash
# A user's installation: a source archive, a wheel from it as `pip install` makes it, with the libraries it needs, in a
# fresh virtual environment, then the command and a few lines of Python; they must give the bytes of this build's
# command. Also checks the content of the package, that it needs no file of the source tree, and that sources compiled
# in another folder give the same objects.
set -euo pipefail

skip() {
  echo "skipped: $1"
  exit 77
}

python=${HARTSIFT_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH HARTSIFT_LIBRARY

"$python" -c 'import numpy, scikit_build_core, auditwheel' 2>/dev/null ||
  skip "$python has no NumPy, scikit-build-core or auditwheel"
[ -n "${HARTSIFT_COMMAND:-}" ] || skip "HARTSIFT_COMMAND does not name the command"
"$python" -m venv "$work/venv" >"$work/log" 2>&1 || skip "$python makes no virtual environments"
bin=$work/venv/bin
# Packages that pip would fetch are copied from the other environment, so that this needs no network.
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
site "$python" >"$(site "$bin/python")/other_environment.pth"

logged() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
}

# The archive is made from a copy of the sources: scikit-build-core compares every file of the tree with its patterns,
# which takes minutes for the builds and environments in build/. A file there must not get into the archive.
mkdir -p "$work/tree"
tar --exclude=./build --exclude=./.git -cf - . | tar -xf - -C "$work/tree"
mkdir "$work/tree/build"
echo built >"$work/tree/build/leftover.txt"
started=$SECONDS
(cd "$work/tree" && logged "$python" -c 'import scikit_build_core.build, sys; scikit_build_core.build.build_sdist(sys.argv[1])' "$work")
rm -rf "$work/tree"
! tar -tf "$work"/hartsift-*.tar.gz | grep -F leftover.txt || { echo "failed: a built file is in the archive"; exit 1; }
# Without a GPU no CUDA code is compiled, with or without a toolkit; with a GPU other tests cover it.
has_gpu=no
if nvidia-smi -L >/dev/null 2>&1; then
  has_gpu=yes
  export HARTSIFT_CUDA=OFF
fi
logged "$python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$work" \
  --config-settings=build-dir="$work/build" "$work"/hartsift-*.tar.gz
# The wheel for machines without these libraries.
logged env PATH="$(dirname "$python"):$PATH" "$python" -m auditwheel repair --wheel-dir "$work/repaired" "$work"/hartsift-*.whl
logged "$bin/python" -m pip install --quiet --no-deps --no-index "$work"/repaired/hartsift-*.whl
"$bin/hartsift" draw @scene:640x480 --max-features 100 --quiet -o "$work/picture.png"
echo "from the sources to a picture of features: $((SECONDS - started)) s, $(du -h "$work"/repaired/*.whl | cut -f 1) wheel"

# A launcher such as ccache may pass another form of the source's name.
objects=0
build=$(dirname "$HARTSIFT_COMMAND")
if grep -q '^HARTSIFT_CUDA:.*=OFF' "$build/CMakeCache.txt" && ! grep -q '^CMAKE_C_COMPILER_LAUNCHER:.*=.' "$build/CMakeCache.txt"; then
  for object in $(cd "$work/build" && find . -path '*/hartsift_*.o' | sort); do
    cmp "$work/build/$object" "$build/$object"
    objects=$((objects + 1))
  done
  [ "$objects" -gt 100 ] || { echo "failed: only $objects objects to compare"; exit 1; }
fi

cd "$work"
"$HARTSIFT_COMMAND" extract @scene:640x480 --device cpu --quiet -o command.npz
"$bin/hartsift" extract @scene:640x480 --device cpu --quiet -o installed.npz
"$bin/python" -m hartsift extract @scene:640x480 --device cpu --quiet -o module.npz
"$bin/hartsift" reconstruct --help >/dev/null
"$bin/python" - <<'END'
import hartsift
image = hartsift.load_image("@scene:640x480")
features = hartsift.extract(image, device="cpu")
print(features, features.keypoints[0])
hartsift.write_features("python.npz", features)
END
for other in installed module python; do
  cmp command.npz "$other.npz"
done
[ "$has_gpu" = yes ] || "$bin/hartsift" info | grep -q 'NVIDIA GPUs *no'
"$bin/hartsift-colmap" version | grep -q "^COLMAP [0-9]"
"$bin/hartsift-colmap" database_creator --database_path installed.db
status=0
"$bin/hartsift" extract absent.png -o absent.npz 2>/dev/null || status=$?
[ "$status" -eq 1 ] || { echo "failed: status $status instead of the command's 1"; exit 1; }

"$bin/python" - <<'END'
import importlib.metadata
import pathlib
import hartsift

package = pathlib.Path(hartsift.__file__).parent
assert "site-packages" in package.parts, package
assert importlib.metadata.version("hartsift") == hartsift.__version__
names = {path.name for path in package.iterdir()} - {"__pycache__"}
assert {"libhartsift.so", "hartsift", "py.typed", "__init__.py"} <= names, names
files = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}
assert all(name.endswith((".py", ".so", "py.typed")) or name in ("hartsift", "hartsift-colmap") for name in files), files
END
echo "installed, and the bytes are the command's; $objects objects equal those compiled in $build"
