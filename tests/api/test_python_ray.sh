#!/usr/bin/env bash
# The Python package on a Ray cluster, beside its other tests: see test_python_binding.sh.
set -euo pipefail
exec bash "$(dirname "${BASH_SOURCE[0]}")/test_python_binding.sh" python/tests/test_ray.py
