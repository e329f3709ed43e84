"""Settings of Sphinx. docs/build.py assembles the pages, sets HARTSIFT_SITE and runs Sphinx."""
import functools
import operator
import os
import pathlib
import re
import sys

import matplotlib
from breathe.parser import DoxygenCompoundParser
from sphinx.pycode import ModuleAnalyzer

import hartsift

site = pathlib.Path(os.environ["HARTSIFT_SITE"])
source = site / "source"
sys.path.insert(0, str(source / "scripts"))
sys.path.insert(0, str(source / "examples"))

project = "hartsift"
author = "the authors of hartsift"
copyright = author  # noqa: A001
version = release = hartsift.__version__
extensions = [
    "breathe",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["tutorials/sg_execution_times.rst", "sg_execution_times.rst", "scripts/*", "examples/*", "raw/*"]
nitpicky = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "config.cache", "misc.highlighting_failure"]

breathe_projects = {"hartsift": str(site / "doxygen" / "xml")}
breathe_default_project = "hartsift"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False

autodoc_mock_imports = ["ray", "torch"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
add_module_names = False
napoleon_google_docstring = True
napoleon_use_ivar = True
napoleon_attr_annotations = False

sphinx_gallery_conf = {
    "examples_dirs": "scripts",
    "gallery_dirs": "tutorials",
    "within_subsection_order": "conf.TutorialOrder",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"scenery\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "reset_modules": ("matplotlib", "conf.draw_sharply"),
    "remove_config_comments": True,
    "min_reported_time": 1e9,
}

html_theme = os.environ.get("HARTSIFT_SITE_THEME", "furo")
html_title = "hartsift"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {} if html_theme != "furo" else {
    "light_css_variables": {"color-brand-primary": "#a6322c", "color-brand-content": "#a6322c"},
    "dark_css_variables": {"color-brand-primary": "#ff9d7a", "color-brand-content": "#ff9d7a"},
}
html_copy_source = False
html_show_sphinx = False


def draw_sharply(settings, name):
    """Renders pictures with more pixels than the page's width, for high-resolution screens."""
    matplotlib.rcParams["figure.dpi"] = 150


class TutorialOrder:
    """Order of tutorials: from first steps to large collections."""

    ORDER = ("match_two_views", "panorama", "reconstruction", "odometry", "million")

    def __init__(self, folder):
        pass

    def __call__(self, name):
        return self.ORDER.index(pathlib.PurePath(name).stem)


@functools.lru_cache(None)
def comments():
    """The package's `#:` comments by the names that they describe."""
    found = {}
    for module in sorted(name for name in sys.modules if name.startswith("hartsift._")):
        docs = ModuleAnalyzer.for_module(module).find_attr_docs()
        found.update({name: lines for (_, name), lines in docs.items()})
    return found


def is_public(name):
    try:
        operator.attrgetter(name)(hartsift)
    except AttributeError:
        return False
    return name.partition(".")[0] in hartsift.__all__


def improve(app, what, name, documented, options, lines):
    """Converts the package's names in docstrings to links, and adds comments of values that it only passes on."""
    if what in ("attribute", "data"):
        last = name.rpartition(".")[2]
        lines[:] = comments().get({"__version__": "VERSION"}.get(last, last), [])
    for i, line in enumerate(lines):
        if line.endswith(":") and re.match(r"    \S", "".join(lines[i + 2:i + 3])):
            lines[i] += ":"  # a command line, to be shown as it is
            continue
        lines[i] = re.sub(r"``(?:hartsift\.)?([A-Za-z_.]+)``", lambda m: f":obj:`{m[1]} <hartsift.{m[1]}>`"
                          if is_public(m[1]) else m[0], line)


def parse_once(parse=DoxygenCompoundParser.parse):
    """Makes Breathe open an XML file once for a page; for every name it would look up all files again, a sixth of the time."""
    found = {}

    def parse_for_page(parser, refid):
        key = parser.app.env.docname, refid
        if key not in found:
            found[key] = parse(parser, refid)
        return found[key]

    DoxygenCompoundParser.parse = parse_for_page


def setup(app):
    parse_once()
    app.connect("autodoc-process-docstring", improve)
