"""Builds the site: tutorials, guide, reference of C and Python, measurements.

usage: build.py [--out FOLDER] [--library libhartsift.so] [--jobs N] [--theme NAME] [--no-install]
       or: cmake --build --preset cpu --target site

The pages are FOLDER/html/index.html and below; FOLDER is build/site where none is named. Documents of the tree are
included with links converted to pages.
Tutorials run with the library of the build (default: build/cpu or build/default), and their pictures are those that they draw.
References come from the headers' comments and the package's docstrings. Warnings of Doxygen or Sphinx, which reports broken links
and anchors, are errors, and so is a public name that the references lack. Needs Doxygen. Packages of site_requirements.txt that
this Python lacks are installed in a virtual environment in FOLDER.
With --no-install nothing is fetched; the exit status is 77 if something is missing.
"""
import argparse
import ast
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
INCLUDE = ROOT / "pipeline" / "include"
EXAMPLES = ROOT / "pipeline" / "examples"
NEEDED = ("breathe", "furo", "matplotlib", "myst_parser", "pyarrow", "pycolmap", "sphinx", "sphinx_copybutton", "sphinx_design",
          "sphinx_gallery")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
TAKEN = ("bench", "cpu", "cuda", "docs/guide", "os", "pipeline", "python", "stages")
PICTURES = {".jpg", ".png", ".svg"}
LANGUAGES = {".c": "c", ".h": "c", ".cu": "cuda", ".cuh": "cuda", ".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".sh": "bash",
             ".yaml": "yaml", ".json": "json", ".cmake": "cmake"}


def place_of(document):
    """The position of a document of the tree in the site, without ending."""
    path = pathlib.PurePosixPath(document)
    name = path.parent.name if path.name == "README.md" else path.stem
    if document.startswith("bench/results/"):
        return "benchmarks/" + str(path.relative_to("bench/results").with_suffix("")).lower()
    if document.startswith("bench/"):
        return f"benchmarks/{name.lower()}"
    if document.startswith("pipeline/integrations/"):
        return f"integrations/{name.lower()}"
    if document.startswith(("cpu/", "cuda/", "stages/")):
        return f"internals/{name.lower()}"
    return f"guide/{name.lower() or 'readme'}"


class Site:
    """The sources of the site, which are assembled in a folder."""

    def __init__(self, out):
        self.out = out
        self.source = out / "source"
        documents = [path for folder in TAKEN for path in sorted((ROOT / folder).rglob("*.md"))] + list(ROOT.glob("*.md"))
        self.places = {name: place_of(name) for name in (path.relative_to(ROOT).as_posix() for path in documents)}

    def write(self, name, text):
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def copy(self, path, folder):
        (self.source / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, self.source / folder)

    def show_file(self, path):
        """Adds a page that shows a file of the tree unchanged."""
        name = path.name if path.name not in ("CMakeLists.txt", "README.md") else f"{path.parent.name}-{path.name}"
        self.copy(path, "raw")
        title = path.relative_to(ROOT).as_posix()
        shown = f"```{{image}} /raw/{path.name}\n```" if path.suffix in PICTURES else (
            f"```{{literalinclude}} /raw/{path.name}\n:language: {LANGUAGES.get(path.suffix, 'text')}\n```")
        self.write(f"files/{name}.md", f"---\norphan: true\n---\n# {title}\n\n{shown}\n")
        return f"files/{name}.md"

    def target(self, path, is_picture):
        """The page or file of the site for a path of the tree; None for a folder."""
        relative = path.relative_to(ROOT).as_posix()
        if relative in self.places:
            return self.places[relative] + ".md"
        if path.parent == INCLUDE and path.suffix in (".h", ".hpp"):
            return f"reference/{path.name}.rst"
        if path.is_dir():
            return None
        if is_picture:
            self.copy(path, "raw")
            return f"raw/{path.name}"
        return self.show_file(path)

    def relinked(self, text, document):
        """A document's text with its links converted to the site's."""
        here = (ROOT / document).parent

        def link(match):
            mark, words, target, anchor = match.groups()
            if ":" in target:
                return match.group()
            path = pathlib.Path(os.path.normpath(here / target))
            found = self.target(path, bool(mark)) if path.exists() else match.group(3)
            if found is None:
                return words
            place = os.path.relpath(found, pathlib.PurePosixPath(self.places[document]).parent)
            return f"{mark}[{words}]({place}{anchor or ''})"

        return LINK.sub(link, text)

    def put_together(self):
        shutil.rmtree(self.source, ignore_errors=True)
        for path in DOCS.glob("*.md"):
            self.copy(path, ".")
        for folder, name in ((DOCS / "tutorials", "scripts"), (DOCS / "_static", "_static"), (EXAMPLES, "examples")):
            shutil.copytree(folder, self.source / name, ignore=shutil.ignore_patterns("__pycache__"))
        self.copy(DOCS / "conf.py", ".")
        for program in (DOCS / "tutorials/scenery.py", EXAMPLES / "stitch_photos.py"):
            self.show_file(program)
        for photo in (EXAMPLES / "photos").glob("*.jpg"):
            self.copy(photo, "raw")
            self.copy(photo, "scripts")
        self.copy(ROOT / "LICENSE", "raw")
        for document, place in self.places.items():
            self.write(place + ".md", self.relinked((ROOT / document).read_text(encoding="utf-8"), document))


def have_packages():
    return all(importlib.util.find_spec(name) for name in NEEDED)


def missing(what, may_install):
    """Exits, because a tool is missing."""
    if not may_install:
        print(f"skipped: {what}")
        sys.exit(77)
    sys.exit(what)


def run_in_environment(folder):
    """Runs this script again with a Python that has the packages."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", DOCS / "site_requirements.txt"]
    subprocess.run(install, check=True)
    sys.exit(subprocess.run([python, *sys.argv], env={**os.environ, "HARTSIFT_SITE_PYTHON": "1"}, check=False).returncode)


def find_library():
    for preset in ("cpu", "default"):
        path = ROOT / "build" / preset / "libhartsift.so"
        if path.exists():
            return path
    sys.exit("no library: build one (cmake --preset cpu && cmake --build --preset cpu), or name it with --library")


def run_doxygen(out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    environment = {**os.environ, "HARTSIFT_HEADERS": str(INCLUDE), "HARTSIFT_XML": str(out),
                   "HARTSIFT_FILTER": f"{sys.executable} {DOCS / 'doxygen_filter.py'}"}
    if subprocess.run(["doxygen", DOCS / "Doxyfile"], env=environment, check=False).returncode:
        sys.exit("Doxygen complains of the public headers (above)")


def public_names():
    for header in sorted(INCLUDE.glob("*.h")):
        text = header.read_text(encoding="utf-8")
        yield from re.findall(r"^HS_API [^;=(]*?\b(\w+)\(", text, re.M)
        yield from re.findall(r"^(?:typedef )?(?:struct|enum) (\w+) {", text, re.M)
    for module in sorted((ROOT / "python" / "hartsift").glob("*.py")):
        within = "hartsift" if module.stem == "__init__" else f"hartsift.{module.stem}"
        for listed in re.findall(r"^__all__ = (\[.*?\])", module.read_text(encoding="utf-8"), re.M | re.S):
            yield from (f"{within}.{name}" for name in ast.literal_eval(listed))


def check_references(html):
    """Every public name is in Sphinx's inventory of described names."""
    from sphinx.util.inventory import InventoryFile

    with open(html / "objects.inv", "rb") as file:
        described = {name for kind in InventoryFile.load(file, "", os.path.join).values() for name in kind}
    names = set(public_names())
    lacking = sorted(names - described)
    print(f"{len(names)} public names", *(f"the references do not have {name}" for name in lacking), sep="\n")
    if lacking or len(names) < 150:
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "site")
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--jobs", default="auto", help="processes; one takes a seventh less processor time than two")
    parser.add_argument("--theme", default="furo", help="basic: without furo's navigation, which takes a fifth of the time; for tests, "
                        "unless HARTSIFT_TESTS=whole")
    parser.add_argument("--no-install", action="store_true")
    given = parser.parse_args()
    theme = "furo" if os.environ.get("HARTSIFT_TESTS") == "whole" else given.theme
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if not shutil.which("doxygen"):
        missing("Doxygen is not installed (on Debian: apt-get install doxygen)", not given.no_install)
    if not have_packages():
        if given.no_install or "HARTSIFT_SITE_PYTHON" in os.environ:
            missing(f"{sys.executable} lacks packages of docs/site_requirements.txt", not given.no_install)
        run_in_environment(out / "venv")
    library = (given.library or find_library()).resolve()
    os.environ.update(HARTSIFT_LIBRARY=str(library), HARTSIFT_SITE=str(out), HARTSIFT_SITE_THEME=theme,
                      PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="agg",
                      OPENBLAS_NUM_THREADS="1")  # threads do not help with small matrices
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(DOCS)])
    sys.path[:0] = [str(ROOT / "python"), str(DOCS), str(DOCS / "tutorials")]
    import c_reference
    import plots

    run_doxygen(out / "doxygen")
    site = Site(out)
    site.put_together()
    for header in sorted(INCLUDE.glob("*.h*")):
        site.write(f"reference/{header.name}.rst", c_reference.page(header))
    plots.draw(ROOT / "bench" / "results", site.source / "plots")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-j", given.jobs, "-W", "--keep-going", "-q", "-d", out / "doctrees", site.source,
               out / "html"]
    if subprocess.run(command, check=False).returncode:
        sys.exit("Sphinx complains (above)")
    check_references(out / "html")


if __name__ == "__main__":
    main()
