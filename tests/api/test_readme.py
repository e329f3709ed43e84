"""README.md works when copied: its shell lines run on the photographs of pipeline/examples/photos, its
Python and C programs run, and its picture is the output of the command in its caption.

Lines marked "# GPU" need one and are left out. Other tests cover installations and builds (api.python_package,
api.consumer).
"""
import csv
import io
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, CommandCase, main

ROOT = pathlib.Path(__file__).resolve().parents[2]
PHOTOS = ROOT / "pipeline/examples/photos"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def shell_lines(text):
    """Indented lines that call the command, without their comments and without lines for a GPU."""
    lines = re.findall(r"^    (hartsift [^\n]*)$", text, re.M)
    return [line.partition("  #")[0].strip() for line in lines if not re.search(r"# GPU", line)]


def fenced(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


class Readme(CommandCase):
    def setUp(self):
        super().setUp()
        for name in ("photo.jpg", "photos/two.jpg", "photos/three.jpg"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            shutil.copy(PHOTOS / "box_in_scene.png", self.path(name))
        for name in ("other.jpg", "photos/one.jpg"):
            shutil.copy(PHOTOS / "box.png", self.path(name))
        build = self.run_it("info")[0].decode()
        missing = [kind for kind in ("PNG images", "JPEG images", "COLMAP databases") if not re.search(rf"{kind} +yes", build)]
        if missing:
            self.skipTest(f"built without {', '.join(missing)}")

    def run_line(self, line):
        words = shlex.split(line)[1:]
        arguments = [name for word in words for name in (sorted(map(str, pathlib.Path(self.folder).glob(word))) if "*" in word else [word])]
        return self.run_it(*arguments)

    def test_shell_lines_run(self):
        lines = shell_lines(README)
        self.assertGreater(len(lines), 7)
        for line in lines:
            with self.subTest(line):
                self.run_line(line)
        self.assertTrue(os.path.getsize(self.path("picture.png")) and os.path.getsize(self.path("photo.npz")))
        self.assertTrue(os.path.exists(self.path("features/manifest.csv")))

    def test_lines_for_a_gpu_are_marked(self):
        """A line that requests a GPU, or all devices, must be marked."""
        for line in re.findall(r"^    (hartsift [^\n]*)$", README, re.M):
            if re.search(r"--device(s)? (cuda|hybrid|all)", line):
                self.assertIn("# GPU", line)

    def test_picture_is_what_its_caption_draws(self):
        """Equal up to the rounding of other versions of libjpeg: means of tiles, by the command itself."""
        for name in ("box.png", "box_in_scene.png"):
            shutil.copy(PHOTOS / name, self.path(name))
        caption = re.search(r"`hartsift (match [^`]*)`", README).group(1)
        self.run_it(*shlex.split(caption))
        picture = re.search(r"--draw (\S+)", caption).group(1)
        shown = re.search(r"^!\[[^]]*\]\(([^)]*)\)", README, re.M).group(1)
        self.assertEqual(pathlib.Path(shown).name, picture)
        drawn, kept = (self.means(path) for path in (picture, str(ROOT / shown)))
        self.assertEqual(len(drawn), len(kept))
        self.assertGreater(len(drawn), 1000)
        self.assertLess(max(abs(a - b) for a, b in zip(drawn, kept)), 3)

    def means(self, path):
        rows = list(csv.DictReader(io.StringIO(self.run_it("stats", path, "--tile", "16x16")[0].decode())))
        return [float(row["mean"]) for row in rows]

    def test_python_runs(self):
        library = pathlib.Path(COMMAND).parent / "libhartsift.so"
        if not library.exists():
            self.skipTest("built without a shared library")
        environment = {**self.environment(), "HARTSIFT_LIBRARY": str(library), "PYTHONPATH": str(ROOT / "python")}
        for program in fenced(README, "python"):
            run = subprocess.run([sys.executable, "-B", "-c", program], cwd=self.folder, env=environment, capture_output=True, text=True)
            if "No module named 'numpy'" in run.stderr or "needs OpenCV" in run.stderr:
                self.skipTest("no NumPy or no OpenCV")
            self.assertEqual(run.returncode, 0, run.stderr)

    def test_c_program_is_the_example(self):
        """Compiled and run by api.examples."""
        (program,) = fenced(README, "c")
        example = (ROOT / "pipeline/examples/extract_features.c").read_text(encoding="utf-8")
        self.assertIn(program.strip(), example)


if __name__ == "__main__":
    main()
