"""Adds hartsift_features.cpp to a checkout of COLMAP: copies it, links hartsift, and calls it before COLMAP's factories.

usage: add_to_colmap.py COLMAP_SOURCE
Then build COLMAP as usual, with CMAKE_PREFIX_PATH naming where hartsift is installed. Run again, it changes nothing.
"""

import pathlib
import re
import shutil
import sys

SOURCE = pathlib.Path(__file__).with_name("hartsift_features.cpp")
CMAKE = """
find_package(hartsift REQUIRED)
target_sources(colmap_feature PRIVATE hartsift_features.cpp)
target_link_libraries(colmap_feature PRIVATE hartsift::hartsift)
"""


def with_call(text, kind, options):
    """sift.cc with a factory of hartsift's before COLMAP's own, whose name is Create Sift KIND."""
    begins = re.compile(rf"^std::unique_ptr<{kind}> CreateSift{kind}\(\s*const {options}& options\) {{\n", re.M)
    found = list(begins.finditer(text))
    if len(found) != 1:
        sys.exit(f"add_to_colmap.py: sift.cc has {len(found)} functions CreateSift{kind}, expected 1: another version of COLMAP?")
    declared = f"std::unique_ptr<{kind}> CreateHartsift{kind}(const {options}& options);\n\n"
    called = f"  if (auto made = CreateHartsift{kind}(options)) return made;\n"
    start, end = found[0].span()
    return text[:start] + declared + text[start:end] + called + text[end:]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1], "src", "colmap", "feature")
    sift, cmake = folder / "sift.cc", folder / "CMakeLists.txt"
    if not sift.is_file() or not cmake.is_file():
        sys.exit(f"add_to_colmap.py: {folder} has no sift.cc: is this the source of COLMAP?")
    text = sift.read_text(encoding="utf-8")
    if "CreateHartsift" not in text:
        text = with_call(text, "FeatureExtractor", "FeatureExtractionOptions")
        sift.write_text(with_call(text, "FeatureMatcher", "FeatureMatchingOptions"), encoding="utf-8")
    rules = cmake.read_text(encoding="utf-8")
    if "hartsift" not in rules:
        cmake.write_text(rules + CMAKE, encoding="utf-8")
    shutil.copyfile(SOURCE, folder / SOURCE.name)


if __name__ == "__main__":
    main()
