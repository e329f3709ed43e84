#!/usr/bin/env bash
# What a user does: a wheel, as `pip install .` makes it, with the libraries it needs inside, in a fresh virtual
# environment, then a few lines of Python; they must give the bytes of the command. Also: what is in the package, and that it
# needs nothing of the source tree.
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
venv_python=$work/venv/bin/python
# What pip would fetch is taken from the other environment, so that this needs no network.
site() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
site "$python" >"$(site "$venv_python")/other_environment.pth"

logged() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
}

# The CUDA part has tests of its own and takes minutes to compile.
logged "$python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$work" \
  --config-settings=cmake.define.HARTSIFT_CUDA=OFF .
# The wheel for machines that have none of its libraries.
logged env PATH="$(dirname "$python"):$PATH" "$python" -m auditwheel repair --wheel-dir "$work/repaired" "$work"/hartsift-*.whl
logged "$venv_python" -m pip install --quiet --no-deps --no-index "$work"/repaired/hartsift-*.whl

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
