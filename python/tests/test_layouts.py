"""The structures of _library.py against what a C compiler makes of the headers."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import hartsift
from hartsift import _library

HEADERS = pathlib.Path(__file__).parents[2] / "pipeline"


def test_structures_have_the_layout_of_the_headers(tmp_path):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    if not (HEADERS / "hartsift.h").exists():
        pytest.skip("the headers are not beside the tests")
    lines = ["#include <hartsift.h>", "#include <hartsift_cuda.h>", "#include <stdio.h>", "int main(void) {"]
    expected = []
    for name, (_, structure) in _library.STRUCTURES.items():
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(structure)}")
        for field in structure._fields_:
            lines.append(f'  printf("{name}.{field[0]} %zu %zu\\n", offsetof({name}, {field[0]}), '
                         f"sizeof((({name} *)0)->{field[0]}));")
            place = getattr(structure, field[0])
            expected.append(f"{name}.{field[0]} {place.offset} {place.size}")
    # Apart from the headers that are not installed: one of them has the name of a header of the C library.
    for header in HEADERS.glob("hartsift*.h"):
        shutil.copy(header, tmp_path)
    source = tmp_path / "layouts.c"
    source.write_text("\n".join([*lines, "  return 0;", "}"]))
    program = tmp_path / "layouts"
    subprocess.run([compiler, "-std=c11", f"-I{tmp_path}", source, "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert printed == expected


def test_numpy_types_are_those_of_the_structures():
    for dtype, structure in ((hartsift.KEYPOINT_DTYPE, _library.HsKeypoint), (hartsift.MATCH_DTYPE, _library.HsMatchPair),
                             (hartsift.TILE_DTYPE, _library.HsTile)):
        assert dtype.itemsize == ctypes.sizeof(structure)
        assert list(dtype.names) == [field[0] for field in structure._fields_]
        for name in dtype.names:
            assert dtype.fields[name][1] == getattr(structure, name).offset


def test_every_field_of_the_options_is_typed():
    from hartsift._options import Options

    fields = {field[0] for field in _library.HsOptions._fields_} - {"struct_size", "allocator"}
    assert fields | {"region", "grid"} == set(Options.__annotations__)


def test_a_foreign_library_is_refused(tmp_path):
    code = "import hartsift"
    environment = {**os.environ, "HARTSIFT_LIBRARY": str(tmp_path / "absent.so")}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode != 0 and "ImportError" in run.stderr and "absent.so" in run.stderr
