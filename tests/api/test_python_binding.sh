#!/usr/bin/env bash
# The Python package's tests on the library and the command of this build, without installing anything. The tests of
# Ray, which mostly wait, are a separate test (test_python_ray.sh).
# usage: test_python_binding.sh [PYTEST_ARGUMENT...]     (default: all but Ray's)
set -euo pipefail

skip() {
  echo "skipped: $1"
  exit 77
}

python=${HARTSIFT_PYTHON:-python3}
"$python" -c 'import numpy, pytest' 2>/dev/null || skip "$python has no NumPy or no pytest"
[ -n "${HARTSIFT_COMMAND:-}" ] || skip "HARTSIFT_COMMAND does not name the command"
HARTSIFT_LIBRARY=$(dirname "$HARTSIFT_COMMAND")/libhartsift.so
[ -f "$HARTSIFT_LIBRARY" ] || skip "this build has no shared library"
export HARTSIFT_LIBRARY PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1
[ $# -gt 0 ] || set -- python/tests --ignore=python/tests/test_ray.py
status=0
"$python" -m pytest -q -rs -p no:cacheprovider "$@" || status=$?
[ "$status" -ne 5 ] || exit 77 # every file was skipped, with its reason
exit "$status"
