#!/usr/bin/env bash
# COLMAP's mapper on COLMAP's own features and matches, and on those of hartsift: registered images, points, track length,
# reprojection error, distance from the true poses. Writes bench/results/colmap.md.
# usage: bash bench/frame/colmap_table.sh [BUILD_FOLDER] [REPEATS]        (build/cpu and 3 by default)
# Needs the photographs (HARTSIFT_DATA, ../shared/data by default), Python with NumPy and OpenCV, and colmap, pycolmap or
# both. Takes five minutes on two idle cores: COLMAP's extraction and matching run on the CPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${1:-build/cpu}
repeats=${2:-3}
data_dir=$(realpath "${HARTSIFT_DATA:-../shared/data}")
results=bench/results/colmap.md
for needed in "$data_dir/slam/desk/poses.txt" "$build/hartsift"; do
  if [ ! -e "$needed" ]; then
    echo "skipped: $needed does not exist" >&2
    exit 77
  fi
done
if ! command -v colmap >/dev/null && ! python3 -c 'import pycolmap' 2>/dev/null; then
  echo "skipped: neither colmap nor pycolmap is installed" >&2
  exit 77
fi

table=$(mktemp)
trap 'rm -f "$table"' EXIT
python3 -B bench/frame/colmap_table.py "$build/hartsift" "$data_dir" "$build/colmap_table" "$repeats" >"$table"
{
  cat <<END
# Reconstruction by COLMAP

Written by \`bash bench/frame/colmap_table.sh\` on $(date +%F); $("$build/hartsift" --version), commit $(git rev-parse --short HEAD).

The mapper is COLMAP's in every row; what it is given differs. "COLMAP's own" is its CPU extractor, exhaustive matcher and
verification with default options; "hartsift's matches" is \`hartsift match --database\`; both sides have one camera for all
pictures. Position error: root mean square distance of the camera centres from the true ones, after the best similarity.
Pictures: \`desk\`, eight frames of a hand-held camera (640x480, 0.33 m of travel), focal length given; \`room\`, twelve
renderings (512x384) of five planes covered with photographs, focal length found by COLMAP. Seconds of extraction and
matching are those of a shared machine of two cores and tell no more than the order of magnitude. A reprojection error of
1.2 px in \`desk\` is a wrong reconstruction, which 0.33 m of travel admit.
END
  cat "$table"
} >"$results"
echo "wrote $results"
