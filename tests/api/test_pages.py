"""The pages for users work when copied. The examples of each page run in order in one folder, which has photo.jpg, other.jpg
and photos/: lines of shell in bash, blocks of Python in one namespace, blocks of C compiled. README's picture is the output of
the command in its caption.

A comment "# GPU" or "# needs ..." marks what cannot run here. Of such a block of Python the syntax and the names of the package
are checked, and of every command its options. ELSEWHERE names what runs the lines that build, install or take long.
"""
import ast
import contextlib
import csv
import importlib.util
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

# In the folder of the tests, not in a package.
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"), os.path.dirname(os.path.abspath(__file__))]
from check_documents import missing_scripts, presets
from command_case import COMMAND, CommandCase, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
PHOTOS = ROOT / "pipeline/examples/photos"
LIBRARY = pathlib.Path(COMMAND).parent / "libhartsift.so"
PLACES = ("README.md", "docs/*.md", "docs/guide/*.md", "python/*.md", "packaging/*.md", "pipeline/integrations/**/*.md")
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for place in PLACES for path in sorted(ROOT.glob(place))}
EXAMPLE = re.compile(r"^ *```\{?(\w*)\}?[^\n]*\n(.*?)^ *```|(?<=\n\n)((?:    [^\n]*\n)+)", re.M | re.S)
PACKAGES = ("cv2", "h5py", "numpy", "pyarrow", "pycolmap")  # of Python, which the examples import
MARK = re.compile(r"# *(GPU\b|needs )")
ELSEWHERE = {
    r"(HARTSIFT_CUDA=ON )?pip install ": "tests/api/test_python_package.sh",
    r"bash pipeline/examples/quickstart.sh": ".github/workflows/tests.yml",
    r"sudo cmake --install build/default": "tests/api/consumer/check_consumer.cmake",
    r"cmake --build build/default --target package|sudo apt install ./build": "tests/api/test_packages.sh",
    r"HARTSIFT_LIBRARY=\S+ PYTHONPATH=python python3 -m pytest": "tests/api/test_python_binding.sh",
    r"cmake --preset \w+|ctest |bash tests/run_all.sh": "tests/run_all.sh",
    r"bash packaging/|bash tests/gpu_report.sh": "packaging/RELEASING.md",
    r"hartsift selftest": "tests/api/test_cli.py",
}
SFM_DATA = """{"root_path": "photos", "views": [{"key": 0, "value": {"ptr_wrapper": {"id": 1, "data": {
    "local_path": "", "filename": "one.jpg", "width": 324, "height": 223, "id_view": 0}}}}]}"""
SFM_VIEW = '{"views": [{"viewId": "7", "path": "photos/one.jpg", "width": "324", "height": "223"}]}'
FILES = {"pipeline/integrations/alicevision/README.md": {"cameraInit.sfm": SFM_VIEW}, "pipeline/integrations/openmvg.md": {
    "matches/sfm_data.json": SFM_DATA}}


def examples(text):
    """Returns language and text of a page's examples. Text that is only indented is shell."""
    for language, fenced, indented in EXAMPLE.findall(text):
        yield ("sh", re.sub("^    ", "", indented, flags=re.M)) if indented else (language, fenced)


def commands(text):
    """Returns the lines of a block of shell, with continued lines joined."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


def all_commands():
    """Returns page and text of each line of shell, and of each command within a sentence."""
    for page, text in PAGES.items():
        lines = [line.partition("  #")[0] for language, block in examples(text) if language == "sh" for line in commands(block)]
        spans = re.findall(r"`((?:sudo |hartsift |python3? |bash |cmake )[^`]*)`", EXAMPLE.sub("", text))
        yield from ((page, line) for line in lines + spans)


def defined_names(module):
    """Returns the names at the top of a module of the package that may not be importable here."""
    source = importlib.util.find_spec(module).origin
    tree = ast.parse(pathlib.Path(source).read_text(encoding="utf-8"))
    listed = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
    return {*sum(listed, []), *(node.name for node in tree.body if hasattr(node, "name"))}


class Pages(CommandCase):
    def setUp(self):
        super().setUp()
        build = self.run_it("info")[0].decode()
        missing = [kind for kind in ("PNG images", "JPEG images", "COLMAP databases") if not re.search(rf"{kind} +yes", build)]
        if missing or not LIBRARY.exists():
            self.skipTest(f"built without {' or '.join(missing) or 'a shared library'}")

    def write_program(self, name, text):
        os.chmod(self.path(self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n".encode())), 0o755)

    def make_folder(self, page):
        """Makes the folder of a page, with the photographs that its examples name."""
        copies = {"photo.jpg": "box_in_scene", "other.jpg": "box", "photos/one.jpg": "box", "photos/two.jpg": "box_in_scene",
                  "photos/three.jpg": "box_in_scene"}
        folder = re.sub(r"\W", "_", page)
        for name, photo in copies.items():
            self.write(f"{folder}/{name}", (PHOTOS / f"{photo}.png").read_bytes())
        for name, text in FILES.get(page, {}).items():
            self.write(f"{folder}/{name}", text.encode())
        return self.path(folder)

    def run_shell(self, block, folder):
        lines = [line for line in commands(block) if not MARK.search(line) and not any(re.match(start, line) for start in ELSEWHERE)]
        environment = {**self.environment(), "PATH": self.path("bin") + os.pathsep + os.environ["PATH"]}
        run = subprocess.run(["bash", "-euxo", "pipefail"], input="\n".join(lines), cwd=folder, env=environment, text=True, check=False,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(run.returncode, 0, run.stderr)
        return len(lines)

    def run_python(self, block, folder, names):
        code = compile(block, "an example", "exec")
        if MARK.match(block):
            self.check_names(block)
            return
        here = os.getcwd()
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)
        finally:
            os.chdir(here)

    def check_names(self, block):
        """Checks that every hartsift.NAME and hartsift.MODULE.NAME of a block that does not run exists."""
        import hartsift
        for node in ast.walk(ast.parse(block)):
            chain = ast.unparse(node).split(".") if isinstance(node, ast.Attribute) else [""]
            if chain[0] == "hartsift" and "(" not in "".join(chain) and not hasattr(hartsift, chain[1]):
                module = f"hartsift.{chain[1]}"
                self.assertTrue(importlib.util.find_spec(module), module)
                self.assertLessEqual(set(chain[2:3]), defined_names(module), module)

    def run_c(self, block, folder):
        """Compiles C. A program must be the example that api.examples compiles and runs."""
        if "int main(" in block:
            self.assertIn(block.strip(), (ROOT / "pipeline/examples/extract_features.c").read_text(encoding="utf-8"))
        elif shutil.which("cc"):
            source = "#include <hartsift.h>\n" + block
            run = subprocess.run(["cc", "-xc", "-fsyntax-only", "-Wall", "-Werror", f"-I{ROOT}/pipeline/include", "-"], input=source,
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_examples_run(self):
        os.environ["HARTSIFT_LIBRARY"] = str(LIBRARY)
        sys.path.insert(0, str(PACKAGE))
        python = f'HARTSIFT_LIBRARY="{LIBRARY}" PYTHONPATH="{PACKAGE}" exec "{sys.executable}" -B "$@"'
        self.write_program("python", python)
        self.write_program("python3", python)
        self.write_program("hartsift", f'case $1 in bench) set -- "$@" --repeats 3;; esac\nexec "{COMMAND}" "$@"')
        ran, lacking = 0, [name for name in PACKAGES if not importlib.util.find_spec(name)]
        for page, text in PAGES.items():
            folder, names = self.make_folder(page), {"__name__": page}
            for language, block in examples(text):
                with self.subTest(page, block=block):
                    if lacking and (language == "python" or re.search("^python", block, re.M)):
                        continue
                    if language == "sh":
                        ran += self.run_shell(block, folder)
                    elif language == "python":
                        self.run_python(block, folder, names)
                    elif language == "c":
                        self.run_c(block, folder)
        self.assertGreater(ran, 20)
        if lacking:
            self.skipTest(f"examples in Python: no {', '.join(lacking)}")

    def test_options_and_files_of_commands_exist(self):
        helps, known = {}, presets(ROOT)
        for page, line in all_commands():
            with self.subTest(page, line=line):
                self.assertEqual(missing_scripts(ROOT, page, line, known), [])
                words = line.split()
                if words[:1] != ["hartsift"] or len(words) == 1 or not words[1].islower():
                    continue
                if words[1] not in helps:
                    helps[words[1]] = self.run_it(words[1], "--man")[0].decode().replace("\\-", "-")
                for option in re.findall(r"(?<!\S)--[\w-]+", line):
                    self.assertIn(option, helps[words[1]])

    def test_lines_for_a_gpu_are_marked(self):
        for page, text in PAGES.items():
            for line in re.findall(r"^ *(hartsift [^\n]*--devices? (?:cuda|hybrid|all)[^\n]*)$", text, re.M):
                self.assertRegex(line, MARK, page)

    def test_lines_elsewhere_have_their_test(self):
        for pattern, place in ELSEWHERE.items():
            self.assertTrue((ROOT / place).is_file(), place)
            self.assertTrue(any(re.match(pattern, line) for _, line in all_commands()), f"no page has {pattern}")

    def test_picture_is_what_its_caption_draws(self):
        """The pictures are equal up to the rounding of other versions of libjpeg: the command compares means of tiles."""
        for name in ("box.png", "box_in_scene.png"):
            shutil.copy(PHOTOS / name, self.path(name))
        caption = re.search(r"`hartsift (match [^`]*)`", PAGES["README.md"]).group(1)
        self.run_it(*shlex.split(caption))
        picture = re.search(r"--draw (\S+)", caption).group(1)
        shown = re.search(r"^!\[[^]]*\]\(([^)]*)\)", PAGES["README.md"], re.M).group(1)
        self.assertEqual(pathlib.Path(shown).name, picture)
        drawn, kept = (self.means(path) for path in (picture, str(ROOT / shown)))
        self.assertEqual(len(drawn), len(kept))
        self.assertGreater(len(drawn), 1000)
        self.assertLess(max(abs(a - b) for a, b in zip(drawn, kept)), 3)

    def means(self, path):
        rows = list(csv.DictReader(io.StringIO(self.run_it("stats", path, "--tile", "16x16")[0].decode())))
        return [float(row["mean"]) for row in rows]


if __name__ == "__main__":
    main()
