"""The script that adds hartsift to a checkout of COLMAP, tested on the lines that it searches for.

HARTSIFT_COLMAP_SOURCE names a checkout of COLMAP 4.2 or later, which is not changed; without it that test is skipped.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "pipeline" / "integrations" / "colmap"
FEATURE = pathlib.Path("src", "colmap", "feature")
CONTROLLER = pathlib.Path("src", "colmap", "controllers", "feature_extraction.cc")
LINES = {
    "CMakeLists.txt": 'set(COLMAP_VERSION "4.2.0.dev0")\n',
    FEATURE / "CMakeLists.txt": "COLMAP_ADD_LIBRARY(NAME colmap_feature)\n",
    FEATURE / "sift.cc": """namespace colmap {
std::unique_ptr<FeatureExtractor> CreateSiftFeatureExtractor(
    const FeatureExtractionOptions& options) {
  return nullptr;
}
std::unique_ptr<FeatureMatcher> CreateSiftFeatureMatcher(
    const FeatureMatchingOptions& options) {
  return nullptr;
}
}
""",
    CONTROLLER: """namespace colmap {
void Choose() {
    if (pooled) {
      worker_extraction_options.use_gpu = false;
    }
}
}
""",
}


def run(checkout, status=0):
    command = [sys.executable, FOLDER / "add_to_colmap.py", checkout]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode != 0) == status, ended.stderr
    return ended.stderr


def texts(checkout):
    return {name: (checkout / name).read_text() for name in LINES}


@pytest.fixture
def checkout(tmp_path):
    for name, text in LINES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def check_added(checkout):
    run(checkout)
    added = texts(checkout)
    sift, controller = added[FEATURE / "sift.cc"], added[CONTROLLER]
    for kind in ("Extractor", "Matcher"):
        called = f"options) {{\n  if (auto made = CreateHartsiftFeature{kind}(options)) return made;\n"
        assert sift.count(called) == 1 and sift.index(f"CreateHartsiftFeature{kind}(const") < sift.index(called)
    assert added[FEATURE / "CMakeLists.txt"].endswith("PRIVATE hartsift::hartsift)\n")
    assert "use_gpu = false" not in controller and "use_gpu &= HartsiftExtracts(extraction_options_);" in controller
    source = (FOLDER / "hartsift_features.cpp").read_text()
    assert (checkout / FEATURE / "hartsift_features.cpp").read_text() == source
    declared = "bool HartsiftExtracts(const FeatureExtractionOptions"
    assert declared in controller and declared in source
    run(checkout)
    assert texts(checkout) == added


def test_added_once(checkout):
    check_added(checkout)


if "HARTSIFT_COLMAP_SOURCE" in os.environ:  # a checkout of COLMAP; no test of its own without one

    def test_added_to_its_source(checkout):
        for name in LINES:
            shutil.copyfile(pathlib.Path(os.environ["HARTSIFT_COLMAP_SOURCE"], name), checkout / name)
        check_added(checkout)


@pytest.mark.parametrize(
    "name, found, other, reason",
    [
        (FEATURE / "sift.cc", "CreateSiftFeatureMatcher", "CreateOther", "CreateSiftFeatureMatcher"),
        (CONTROLLER, "use_gpu = false", "use_gpu = true", "feature_extraction.cc has 0"),
        ("CMakeLists.txt", "4.2", "4.1", "COLMAP 4.1, expected 4.2"),
        ("CMakeLists.txt", "COLMAP_VERSION", "VERSION", "is this the source"),
    ],
)
def test_refuses_another_source(checkout, name, found, other, reason):
    (checkout / name).write_text(LINES[name].replace(found, other))
    before = texts(checkout)
    assert reason in run(checkout, 1)
    assert texts(checkout) == before  # not partially
    assert "is this the source" in run(checkout / FEATURE, 1)
