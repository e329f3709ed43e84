#!/usr/bin/env bash
# Kills a batch with SIGKILL at random moments, goes on with --resume until it ends, and compares manifest and every output
# with those of an undisturbed run: once into a folder of files, once into a database where the build has SQLite.
# usage: bash bench/frame/batch_kill.sh [BUILD_FOLDER [IMAGES [KILLS]]]   (build/cpu, 500 images, 12 kills)
# Anything after that goes to hartsift batch. HARTSIFT_BATCH_SIZE: size of the scenes (160x120).
set -euo pipefail

build=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../../build/cpu}")
images=${2:-500}
kills=${3:-12}
shift $(($# < 3 ? $# : 3))
command=$build/hartsift
if [ ! -x "$command" ]; then
  echo "$command does not exist: build first, or name the build folder" >&2
  exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for ((seed = 1; seed <= images; seed++)); do
  echo "@scene:${HARTSIFT_BATCH_SIZE:-160x120}:$seed"
done >list

# disturb OUTPUT SECONDS OPTION...: kills after random parts of SECONDS, then lets it end.
disturb() {
  local output=$1 seconds=$2 kill pid done=0
  shift 2
  for ((kill = 1; kill <= kills; kill++)); do
    "$command" batch list -o "$output" --resume --quiet "$@" &
    pid=$!
    sleep "$(awk -v s="$seconds" -v r=$RANDOM -v k="$kills" 'BEGIN { print 1.5 * s / k * r / 32768 }')"
    kill -9 $pid 2>/dev/null && done=$((done + 1))
    wait $pid 2>/dev/null || true
  done
  "$command" batch list -o "$output" --resume "$@"
  echo "$output: killed $done times"
}

start=$(date +%s.%N)
"$command" batch list -o whole "$@"
seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
disturb killed "$seconds" "$@"
diff -r whole killed
echo "files and manifest are the same"

if "$command" info | grep -qi 'sqlite.*no$\|database.*no$'; then
  echo "skipped the database: built without SQLite"
  exit 0
fi
"$command" batch list -o whole.db "$@"
disturb killed.db "$seconds" "$@"
cmp whole.db.manifest.csv killed.db.manifest.csv
python3 - <<'PY'
import sqlite3
content = [sqlite3.connect(name).execute(
    "SELECT i.image_id, i.name, k.data, d.data FROM images i JOIN keypoints k USING (image_id) "
    "JOIN descriptors d USING (image_id) ORDER BY i.image_id").fetchall() for name in ("whole.db", "killed.db")]
assert content[0] == content[1] and content[0], "the databases differ"
print(f"databases hold the same {len(content[0])} images under the same numbers")
PY
