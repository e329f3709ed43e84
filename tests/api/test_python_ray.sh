#!/usr/bin/env bash
# The Python package on a Ray cluster; see test_python_binding.sh for its other tests.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/test_python_binding.sh" python/tests/test_ray.py
