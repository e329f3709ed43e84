#!/usr/bin/env bash
# The Python package on a Ray cluster; see test_python_binding.sh for its other tests.
set -euo pipefail
# Ray lowers the priority of its workers by 15, so that next to other tests they would get next to no time.
export RAY_worker_niceness=0
# A worker process takes three seconds of processor time to start. Without this Ray starts some before there is work, and
# ends idle ones after a second.
export RAY_enable_worker_prestart=0 RAY_prestart_worker_first_driver=0
export RAY_idle_worker_killing_time_threshold_ms=600000 RAY_num_workers_soft_limit=12
exec bash "$(dirname "${BASH_SOURCE[0]}")/test_python_binding.sh" python/tests/test_ray.py
