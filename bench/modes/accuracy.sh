#!/usr/bin/env bash
# Accuracy of hartsift's profiles, OpenCV and VLFeat.
# Repeatability, matching and localisation on photographs with known homographies and on synthetic views of exact
# geometry. Writes BUILD_FOLDER/accuracy/accuracy_tables.md.
# usage: python3 bench/bench.py accuracy [BUILD_FOLDER]        (build/cpu by default)
# Needs the evaluation programs (HARTSIFT_EVAL, ../shared/eval by default), the photographs (HARTSIFT_DATA,
# ../shared/data by default), OpenCV and VLFeat with headers, and Python with NumPy, SciPy and OpenCV. Takes a while.
# HARTSIFT_ACCURACY_LOWE: further variants of profile lowe, "name=options" separated by ';'.
# HARTSIFT_ACCURACY_SETS: which of "small homography large" to run; the tables keep results of earlier runs.
# HARTSIFT_ACCURACY_ONLY: runs only sequences whose names match this regular expression, as in synthetic_rot/landscape.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${1:-build/cpu}
eval_dir=$(realpath -m "${HARTSIFT_EVAL:-../shared/eval}")
data_dir=$(realpath -m "${HARTSIFT_DATA:-../shared/data}")
command=$(realpath -m "$build/hartsift")
work=$(realpath -m "$build")/accuracy
results=$work/accuracy_tables.md
for needed in "$eval_dir/evaluate.py" "$data_dir/homography" "$command"; do
  if [ ! -e "$needed" ]; then
    echo "skipped: $needed does not exist" >&2
    exit 77
  fi
done
mkdir -p "$work"

build_drivers() {
  local opencv_flags
  opencv_flags=$(pkg-config --cflags opencv4)
  # shellcheck disable=SC2086
  g++ -std=c++14 -O3 -march=native -w $opencv_flags "$eval_dir/drivers/opencv_sift.cpp" -o "$work/opencv_sift" \
    -lopencv_core -lopencv_imgcodecs -lopencv_features2d
  # shellcheck disable=SC2086
  g++ -std=c++14 -O3 -march=native -w $opencv_flags "$eval_dir/drivers/vlfeat_sift.cpp" -o "$work/vlfeat_sift" \
    -lopencv_core -lopencv_imgcodecs -lvl -lm
}

# Two small and two larger photographs. One of the larger ones is halved, which removes the traces of its sensor's
# mosaic.
make_views() {
  [ -e "$work/views.done" ] && return
  rm -rf "$work/small" "$work/large" "$work/photos"
  mkdir -p "$work/photos"
  python3 -B -c '
import sys, cv2
picture = cv2.imread(sys.argv[1], cv2.IMREAD_GRAYSCALE)
cv2.imwrite(sys.argv[2], cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))' \
    "$data_dir/large/Dragonfly_by_Bolly.jpg" "$work/photos/dragonfly.png"
  cp "$data_dir/formats/exif/Landscape_1.jpg" "$work/photos/landscape.jpg"
  python3 -B "$eval_dir/evaluate.py" --make-synthetic "$work/small" \
    "$data_dir/pairs/home.jpg" "$data_dir/pairs/building.jpg"
  python3 -B "$eval_dir/evaluate.py" --make-synthetic "$work/large" \
    "$work/photos/dragonfly.png" "$work/photos/landscape.jpg"
  touch "$work/views.done"
}

# ours NAME OPTION...: adds an extractor.
extractors=()
ours() {
  local name=$1
  shift
  extractors+=(--extractor "$name=python3 -B bench/modes/_dump_features.py $command {image} {out} $*")
}

list_extractors() {
  local variants variant
  extractors+=(--extractor "VLFeat, Lowe's thresholds=$work/vlfeat_sift {image} 0 --preset lowe --dump {out}")
  ours "lowe"
  ours "lowe, root" --norm root
  IFS=';' read -ra variants <<<"${HARTSIFT_ACCURACY_LOWE:-}"
  for variant in "${variants[@]}"; do
    # shellcheck disable=SC2086
    ours "lowe, ${variant%%=*}" ${variant#*=}
  done
  ours "opencv, drift taken off" --profile opencv --shift -0.25
  ours "vlfeat, contrast 0.04" --profile vlfeat --contrast 0.04
  ours "colmap" --profile colmap
  extractors+=(--extractor "OpenCV, drift taken off=$work/opencv_sift {image} 0 --dump {out}")
  extractors+=(--extractor "VLFeat as COLMAP uses it=$work/vlfeat_sift {image} 0 --preset colmap --dump {out}")
}

write_results() {
  {
    echo "# Accuracy"
    echo
    echo "Written by \`python3 bench/bench.py accuracy\` on $(date -u +%Y-%m-%d);" \
      "hartsift $("$command" --version | cut -d' ' -f2-), commit $(git rev-parse --short HEAD)," \
      "OpenCV $(pkg-config --modversion opencv4), VLFeat 0.9.21."
    echo
    echo "Lower-case names are profiles of hartsift, the others are the original programs. OpenCV's points lie a"
    echo "quarter of a pixel to the right and down, and so do those of profile opencv: \"drift taken off\"."
    echo "VLFeat at Lowe's thresholds: peak threshold 0.04/3. Columns:"
    echo
    echo '```'
    sed -n '/^  feat /,/^and .med. leave/p' "$eval_dir/evaluate.py"
    echo '```'
    echo
    for set in small homography large; do
      [ -e "$work/tables_$set.txt" ] || continue
      case $set in
        small) echo "## Synthetic views of exact geometry from two small photographs" ;;
        homography) echo "## Photographs: boat, graf, leuven (true homographies good to about a pixel)" ;;
        large) echo "## Synthetic views of exact geometry from two larger photographs" ;;
      esac
      echo
      sed -n '/^### side by side/,$p' "$work/tables_$set.txt" | sed '1,2d'
    done
  } >"$work/accuracy.md"
  mv "$work/accuracy.md" "$results"
}

build_drivers
make_views
list_extractors
for set in ${HARTSIFT_ACCURACY_SETS:-small homography large}; do
  folder=$work/$set
  [ "$set" = homography ] && folder=$data_dir/homography
  python3 -B "$eval_dir/evaluate.py" "${extractors[@]}" --seq "$folder" --json "$work/pairs_$set.json" \
    --only "${HARTSIFT_ACCURACY_ONLY:-}" >"$work/tables.txt"
  mv "$work/tables.txt" "$work/tables_$set.txt"
  write_results
done
echo "written: $results"
