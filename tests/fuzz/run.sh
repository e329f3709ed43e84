#!/usr/bin/env bash
# Builds the fuzz targets with clang's libFuzzer and runs them, one per processor at a time: the saved inputs, then new
# ones.
# usage: bash tests/fuzz/run.sh [SECONDS [TARGET...]]     SECONDS: of each target, 5; TARGET: image, features, ...; all
# Variables: see fuzz_target.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export HARTSIFT_FUZZ_SECONDS=${1:-5}
shift || true
names=$(IFS='|'; echo "$*")
jobs=$(nproc)
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$jobs"
ctest --preset fuzz --parallel "$jobs" --timeout $((HARTSIFT_FUZZ_SECONDS + 600)) -R "^fuzz\\.(${names:-.*})$"
