"""The package's structures compared with a C compiler's layout of the headers."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import hartsift
from hartsift import _batch, _features, _judging, _library, _matching, _neighbours, _options, _pair_structures, _pairs, _patches, _primitives
from hartsift import _retrieval, _structures

HEADERS = pathlib.Path(__file__).parents[2] / "pipeline" / "include"


#: Names and numbers of the package's enumerations, by the prefix of the enumerators.
ENUMERATIONS = {
    "HS_PROFILE_": _options.PROFILES,
    "HS_RULE_": _options.ENUMERATIONS["refine_rule"],
    "HS_LAYOUT_": _options.LAYOUTS,
    "HS_UPSAMPLE_": _options.ENUMERATIONS["upsample"],
    "HS_BORDER_": _options.ENUMERATIONS["border_rule"],
    "HS_NORM_": _options.ENUMERATIONS["norm"],
    "HS_DESCRIPTOR_": _options.ENUMERATIONS["descriptor"],
    "HS_SELECT_": _options.ENUMERATIONS["selection"],
    "HS_DEVICE_": _options.ENUMERATIONS["device"],
    "HS_DECODER_": _options.ENUMERATIONS["decoder"],
    "HS_OPTION_": {name: getattr(_options, name) for name in (
        "INTEGER", "FLAG", "CHOICE", "NUMBER", "COUNT", "BYTES", "TEXT", "POINTER", "UNUSED")},
    "HS_FORMAT_": _features.FORMATS,
    "HS_GUIDE_": _matching.GUIDES,
    "HS_PATCH_": _patches.TYPES,
    "HS_PAIR_": {name.replace("-", "_"): number for name, number in _judging.VERDICTS.items()},
    "HS_": _matching.MODELS,
    "HS_ENDS_": _primitives.ENDS,
}


def test_structures_have_the_layout_of_the_headers(tmp_path):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    if not (HEADERS / "hartsift.h").exists():
        pytest.skip("the headers are not beside the tests")
    lines = ["#include <hartsift.h>", "#include <hartsift_cuda.h>", "#include <hartsift_expert.h>", "#include <stdio.h>", "int main(void) {"]
    expected = []
    modules = (_structures, _options, _pair_structures, _retrieval, _pairs, _judging, _neighbours, _patches, _batch)
    for name, structure in {name: s for module in modules for name, s in module.STRUCTURES.items()}.items():
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(structure)}")
        for field in structure._fields_:
            lines.append(
                f'  printf("{name}.{field[0]} %zu %zu\\n", offsetof({name}, {field[0]}), '
                f"sizeof((({name} *)0)->{field[0]}));"
            )
            place = getattr(structure, field[0])
            expected.append(f"{name}.{field[0]} {place.offset} {place.size}")
    for prefix, values in ENUMERATIONS.items():
        for name, number in values.items():
            enumerator = prefix + name.upper().replace("-", "_")
            lines.append(f'  printf("{enumerator} %d\\n", (int){enumerator});')
            expected.append(f"{enumerator} {number}")
    for name, number in vars(_library).items():
        if name.startswith("HS_") and isinstance(number, int):
            lines.append(f'  printf("{name} %d\\n", (int){name});')
            expected.append(f"{name} {number}")
    # not the headers that are not installed: one of them has the name of a header of the C library
    for header in HEADERS.glob("hartsift*.h"):
        shutil.copy(header, tmp_path)
    source = tmp_path / "layouts.c"
    source.write_text("\n".join([*lines, "  return 0;", "}"]))
    program = tmp_path / "layouts"
    subprocess.run([compiler, "-std=c11", f"-I{tmp_path}", source, "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert printed == expected


def test_numpy_types_are_those_of_the_structures():
    for dtype, structure in (
        (hartsift.KEYPOINT_DTYPE, _structures.HsKeypoint),
        (hartsift.MATCH_DTYPE, _neighbours.HsMatchPair),
        (hartsift.TILE_DTYPE, _structures.HsTile),
    ):
        assert dtype.itemsize == ctypes.sizeof(structure)
        assert list(dtype.names) == [field[0] for field in structure._fields_]
        for name in dtype.names:
            assert dtype.fields[name][1] == getattr(structure, name).offset


def test_a_foreign_library_is_refused(tmp_path):
    code = "import hartsift"
    environment = {**os.environ, "HARTSIFT_LIBRARY": str(tmp_path / "absent.so")}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode != 0 and "ImportError" in run.stderr and "absent.so" in run.stderr


def test_a_library_of_another_interface_is_refused():
    path = pathlib.Path("libhartsift.so")
    number = _library.library.hs_version_number()
    _library._check_version(path, number)
    _library._check_version(path, number + 1)  # a patch version does not change the interface
    with pytest.raises(ImportError, match=r"hartsift 0\.9, this package is for"):
        _library._check_version(path, 900)
