#!/usr/bin/env bash
# What a user does: `pip install .` into a fresh virtual environment, then a few lines of Python; they must give the bytes of
# the command. Also: what is in the package, and that it needs nothing of the source tree.
set -euo pipefail

skip() {
  echo "skipped: $1"
  exit 77
}

python=${HARTSIFT_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH HARTSIFT_LIBRARY

"$python" -c 'import numpy' 2>/dev/null || skip "$python has no NumPy"
[ -n "${HARTSIFT_COMMAND:-}" ] || skip "HARTSIFT_COMMAND does not name the command"
"$python" -m venv --system-site-packages "$work/venv" >"$work/log" 2>&1 || skip "$python makes no virtual environments"
venv_python=$work/venv/bin/python
if ! "$venv_python" -c 'import scikit_build_core' 2>/dev/null; then
  "$venv_python" -m pip install --quiet scikit-build-core >"$work/log" 2>&1 ||
    skip "scikit-build-core is not installed, and pip cannot fetch it"
fi

# The CUDA part has tests of its own and takes minutes to compile.
"$venv_python" -m pip install --quiet --no-build-isolation --no-deps \
  --config-settings=cmake.define.HARTSIFT_CUDA=OFF . >"$work/log" 2>&1 || {
  cat "$work/log"
  exit 1
}

cd "$work"
"$HARTSIFT_COMMAND" extract @scene:640x480 --device cpu --quiet -o command.npz
"$venv_python" - <<'END'
import hartsift
image = hartsift.load_image("@scene:640x480")
features = hartsift.extract(image, device="cpu")
print(features, features.keypoints[0])
hartsift.write_features("python.npz", features)
END
cmp command.npz python.npz

"$venv_python" - <<'END'
import importlib.metadata
import pathlib
import hartsift

package = pathlib.Path(hartsift.__file__).parent
assert "site-packages" in package.parts, package
assert importlib.metadata.version("hartsift") == hartsift.__version__
names = {path.name for path in package.iterdir()} - {"__pycache__"}
assert {"libhartsift.so", "py.typed", "__init__.py"} <= names, names
assert all(name.endswith((".py", ".so", "py.typed")) for name in names), names
END
echo "installed, and the bytes are the command's"
