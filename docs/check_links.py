"""Checks the links of the built site without a network: every page, anchor, picture and style sheet must exist, and the
references must contain every public name of the headers and of the package. Called by build.py.
"""
import ast
import html.parser
import pathlib
import re
import urllib.parse
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGETS = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}


class Page(html.parser.HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.untold = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors.update(found[name] for name in ("id", "name") if found.get(name))
        if found.get(TARGETS.get(tag, "")):
            self.links.append(found[TARGETS[tag]])
        if tag == "img" and found.get("alt") is None:
            self.untold.append(found.get("src"))


def broken_links(folder):
    """Broken links by page, and the number of checked links."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    faults, followed = [], 0
    for path, page in pages.items():
        name = path.relative_to(folder)
        faults += [f"{name}: no words stand for the picture {picture}" for picture in page.untold]
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.is_file():
                faults.append(f"{name}: links to {link}, which is not there")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                faults.append(f"{name}: links to {link}: the page has no such anchor")
    return faults, followed, len(pages)


def inventory(folder):
    """Names described in the references: Sphinx's objects.inv."""
    data = (folder / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split(" ", 1)[0] for line in zlib.decompress(data).decode().splitlines()}


def public_names():
    for header in sorted((ROOT / "pipeline" / "include").glob("*.h")):
        text = header.read_text(encoding="utf-8")
        yield from re.findall(r"^HS_API [^;=(]*?\b(\w+)\(", text, re.M)
        yield from re.findall(r"^(?:typedef )?(?:struct|enum) (\w+) {", text, re.M)
    for module in sorted((ROOT / "python" / "hartsift").glob("*.py")):
        within = "hartsift" if module.stem == "__init__" else f"hartsift.{module.stem}"
        for listed in re.findall(r"^__all__ = (\[.*?\])", module.read_text(encoding="utf-8"), re.M | re.S):
            yield from (f"{within}.{name}" for name in ast.literal_eval(listed))


def faults_of(folder):
    """Errors of the pages, and a summary line."""
    faults, followed, pages = broken_links(folder.resolve())
    described = inventory(folder)
    names = sorted(set(public_names()))
    faults += [f"the references do not have {name}" for name in names if name not in described]
    if followed < 1000 or len(names) < 150:
        faults.append(f"only {followed} links and {len(names)} names were looked at")
    print(f"{pages} pages, {followed} links, {len(names)} public names, {len(faults)} faults")
    return faults
