"""The script that adds hartsift to a checkout of COLMAP, tested on the two lines that it searches for."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "pipeline" / "integrations" / "colmap"
SIFT = """namespace colmap {
std::unique_ptr<FeatureExtractor> CreateSiftFeatureExtractor(
    const FeatureExtractionOptions& options) {
  return nullptr;
}
std::unique_ptr<FeatureMatcher> CreateSiftFeatureMatcher(
    const FeatureMatchingOptions& options) {
  return nullptr;
}
}
"""


def run(checkout, status=0):
    command = [sys.executable, FOLDER / "add_to_colmap.py", checkout]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode != 0) == status, ended.stderr
    return ended.stderr


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "src" / "colmap" / "feature"
    folder.mkdir(parents=True)
    (folder / "sift.cc").write_text(SIFT)
    (folder / "CMakeLists.txt").write_text("COLMAP_ADD_LIBRARY(NAME colmap_feature)\n")
    return tmp_path, folder


def test_added_once(checkout):
    root, folder = checkout
    run(root)
    sift, rules = ((folder / name).read_text() for name in ("sift.cc", "CMakeLists.txt"))
    for kind in ("Extractor", "Matcher"):
        called = f"options) {{\n  if (auto made = CreateHartsiftFeature{kind}(options)) return made;\n  return nullptr;"
        assert called in sift and sift.index(f"CreateHartsiftFeature{kind}(const") < sift.index(called)
    assert rules.startswith("COLMAP_ADD_LIBRARY") and "PRIVATE hartsift::hartsift" in rules
    assert (folder / "hartsift_features.cpp").read_bytes() == (FOLDER / "hartsift_features.cpp").read_bytes()
    run(root)
    assert ((folder / "sift.cc").read_text(), (folder / "CMakeLists.txt").read_text()) == (sift, rules)


def test_refuses_another_source(checkout):
    root, folder = checkout
    (folder / "sift.cc").write_text(SIFT.replace("CreateSiftFeatureMatcher", "CreateOther"))
    assert "CreateSiftFeatureMatcher" in run(root, 1)
    assert "Hartsift" not in (folder / "sift.cc").read_text()  # nothing was inserted at all
    assert "is this the source" in run(folder, 1)
