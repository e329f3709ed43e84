"""One version: hartsift.h, the command, the library's name, the packages of CMake and pkg-config, Python's packages and
CHANGELOG.md agree.

Runs on the build folder of HARTSIFT_COMMAND (or of the program named as first argument).
"""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(COMMAND).parent
NUMBERS = re.findall(r"^#define HS_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)$", (ROOT / "pipeline/include/hartsift.h").read_text(), re.M)
VERSION = ".".join(NUMBERS)


def found(pattern, path):
    return re.search(pattern, path.read_text(encoding="utf-8"), re.M).group(1)


class Versions(unittest.TestCase):
    def test_command(self):
        run = subprocess.run([COMMAND, "info", "--json"], check=True, capture_output=True)
        self.assertEqual(json.loads(run.stdout)["version"], VERSION)
        page = subprocess.run([COMMAND, "--man"], check=True, capture_output=True).stdout.decode()
        self.assertIn(f'"hartsift {VERSION} ', page.splitlines()[0])

    def test_packages_for_builds(self):
        self.assertEqual(found(r"^Version: (.*)$", BUILD / "pipeline/hartsift.pc"), VERSION)
        self.assertEqual(found(r'^set\(PACKAGE_VERSION "(.*)"\)$', BUILD / "pipeline/hartsift-config-version.cmake"), VERSION)

    @unittest.skipUnless((BUILD / "libhartsift.so").exists(), "not for a build without a shared library")
    def test_library_has_the_name_of_its_interface(self):
        # Until 1.0 a minor version may change the interface.
        interface = f"0.{NUMBERS[1]}" if NUMBERS[0] == "0" else NUMBERS[0]
        self.assertEqual((BUILD / "libhartsift.so").resolve().name, f"libhartsift.so.{VERSION}")
        self.assertEqual(os.readlink(BUILD / "libhartsift.so"), f"libhartsift.so.{interface}")
        self.assertIn(f"libhartsift.so.{interface}\0".encode(), (BUILD / "libhartsift.so").read_bytes())
        self.assertIn(f"`libhartsift.so.{interface}`", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        self.assertIn(f"`libhartsift{interface}`", (ROOT / "docs/guide/install.md").read_text(encoding="utf-8"))

    def test_python(self):
        settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        pattern = re.search(r"^regex = '''(.*)'''$", settings, re.M).group(1)
        numbers = re.search(pattern, (ROOT / "pipeline/include/hartsift.h").read_text()).groupdict()
        self.assertEqual("{major}.{minor}.{patch}".format(**numbers), VERSION)
        interface = int(found(r"^_INTERFACE = (\d+)$", ROOT / "python/hartsift/_library.py"))
        self.assertEqual(interface, 100 * int(NUMBERS[0]) + int(NUMBERS[1]))

    def test_changelog(self):
        """The newest version listed is the header's. Each version has its date."""
        headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
        if headings[0] == "Unreleased":
            headings.pop(0)
        entries = [re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)", heading).groups() for heading in headings]
        self.assertEqual(entries[0][0], VERSION)
        days = [datetime.date.fromisoformat(day) for _, day in entries]
        self.assertEqual(days, sorted(days, reverse=True))


if __name__ == "__main__":
    main()
