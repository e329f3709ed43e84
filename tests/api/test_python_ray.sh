#!/usr/bin/env bash
# The Python package on a Ray cluster; see test_python_binding.sh for its other tests.
set -euo pipefail
# Ray lowers the priority of its workers by 15, so that next to other tests they would get next to no time.
export RAY_worker_niceness=0
exec bash "$(dirname "${BASH_SOURCE[0]}")/test_python_binding.sh" python/tests/test_ray.py
