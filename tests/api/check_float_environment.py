"""Checks that every exported function that computes, or converts numbers from or to text, works in the library's
floating-point environment and restores the caller's: FLOAT_ENVIRONMENT_OF_LIBRARY is the first line of its definition.

usage: check_float_environment.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACRO = "FLOAT_ENVIRONMENT_OF_LIBRARY;"
# These functions copy, free or name things and never round a number.
EXEMPT = re.compile(r"\w+_init_sized|\w+_free|\w+_last_error(_location)?|hs_last_error(_location)?|hs_(retrieval_)?destroy"
                    r"|hs_format_\w+|hs_frame_way_name|hs_option_describe|hs_status_\w+|hs_version_\w+|hs_method_version(_affine)?|hs_backend_report"
                    r"|hs_get_statistics|hs_count_in_flight|hs_shortlist_length|hs_set_progress|hs_colmap_(commit|close|model_of_name)|hs_cuda_(alloc_host|free_host|finish)")


def exported():
    lines = (ROOT / "pipeline/include/exports.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def definitions():
    """Returns {name: first line} of each function's definition, without the stubs of a build without a device or SQLite,
    which only fail."""
    found = {}
    for path in sorted((ROOT / "pipeline").rglob("*.c")):
        if not path.name.endswith("_absent.c"):
            pattern = r"^\w[^\n;{}()]*\b(hs_\w+)\([^{};]*\)\s*\{\n?\s*([^\n]*)"
            for match in re.finditer(pattern, path.read_text(), re.M):
                found[match[1]] = (path.relative_to(ROOT), match[2])
    return found


def main():
    names, found, faults = exported(), definitions(), 0
    for name in names:
        path, first = found.get(name, ("pipeline/include/exports.txt", ""))
        if not EXEMPT.fullmatch(name) and first != MACRO:
            print(f"{path}: {name} does not begin with {MACRO}")
            faults += 1
    print(f"{len(names)} exported functions, {faults} faults")
    return 1 if faults or not names else 0


sys.exit(main())
