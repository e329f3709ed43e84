"""Adds hartsift_features.cpp to a checkout of COLMAP: copies it, links hartsift, and calls it before COLMAP's factories.

usage: add_to_colmap.py COLMAP_SOURCE
Then build COLMAP as usual, with CMAKE_PREFIX_PATH naming where hartsift is installed. Run again, it changes nothing.
"""

import pathlib
import re
import shutil
import sys

SOURCE = pathlib.Path(__file__).with_name("hartsift_features.cpp")
OLDEST = (4, 2)
CMAKE = """
find_package(hartsift REQUIRED)
target_sources(colmap_feature PRIVATE hartsift_features.cpp)
target_link_libraries(colmap_feature PRIVATE hartsift::hartsift)
"""


def single(pattern, text, name):
    """The only match of a pattern in a file of COLMAP."""
    found = list(re.finditer(pattern, text, re.M))
    if len(found) != 1:
        sys.exit(f"add_to_colmap.py: {name} has {len(found)} places like {pattern!r}, expected 1: another version of COLMAP?")
    return found[0]


def with_call(text, kind, options):
    """sift.cc with a factory of hartsift's before COLMAP's own, whose name is Create Sift KIND."""
    begins = rf"^std::unique_ptr<{kind}> CreateSift{kind}\(\s*const {options}& options\) {{\n"
    start, end = single(begins, text, "sift.cc").span()
    declared = f"std::unique_ptr<{kind}> CreateHartsift{kind}(const {options}& options);\n\n"
    called = f"  if (auto made = CreateHartsift{kind}(options)) return made;\n"
    return text[:start] + declared + text[start:end] + called + text[end:]


def with_calls(text):
    text = with_call(text, "FeatureExtractor", "FeatureExtractionOptions")
    return with_call(text, "FeatureMatcher", "FeatureMatchingOptions")


def with_gpu(text):
    """feature_extraction.cc, which leaves affine shape and pooling to CPUs, with GPUs for hartsift's."""
    line = single(r"^ *worker_extraction_options\.use_gpu = false;\n", text, "feature_extraction.cc")
    kept = "      worker_extraction_options.use_gpu &= HartsiftExtracts(extraction_options_);\n"
    text = text[: line.start()] + kept + text[line.end() :]
    begin = single(r"^namespace colmap {\n", text, "feature_extraction.cc").end()
    return text[:begin] + "\nbool HartsiftExtracts(const FeatureExtractionOptions& options);\n" + text[begin:]


def check_version(root):
    rules = root / "CMakeLists.txt"
    found = rules.is_file() and re.search(r'COLMAP_VERSION "(\d+)\.(\d+)', rules.read_text(encoding="utf-8"))
    if not found:
        sys.exit(f"add_to_colmap.py: {rules} names no version of COLMAP: is this the source of COLMAP?")
    if tuple(map(int, found.groups())) < OLDEST:
        sys.exit(f"add_to_colmap.py: {root} is COLMAP {found[1]}.{found[2]}, expected 4.2 or later")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    check_version(root)
    folder = root / "src" / "colmap" / "feature"
    changes = {
        folder / "sift.cc": with_calls,
        folder.parent / "controllers" / "feature_extraction.cc": with_gpu,
        folder / "CMakeLists.txt": lambda text: text + CMAKE,
    }
    texts = {}
    for path, change in changes.items():
        if not path.is_file():
            sys.exit(f"add_to_colmap.py: {path} is missing: is this the source of COLMAP?")
        text = path.read_text(encoding="utf-8")
        texts[path] = text if "artsift" in text else change(text)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    shutil.copyfile(SOURCE, folder / SOURCE.name)


if __name__ == "__main__":
    main()
