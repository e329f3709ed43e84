"""bench --html and --accuracy: pages that are well formed, complete and need nothing else, with the figures of --json.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

COMMAND = os.environ.get("HARTSIFT_COMMAND", "")
SKIPPED = 77
DONE, FAILED, USAGE = 0, 1, 2
SCENES = ("@scene:64x48", "@scene:33x97:2")
QUICK = ("--repeats", "3", "--threads", "1", "--device", "cpu")
COLUMNS = ("name", "width", "height", "program", "profile", "device", "threads", "features", "median_ms", "min_ms", "p90_ms",
           "ratio")
ACCURACY_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "results", "accuracy.md")
ACCURACY = """# Accuracy

Written by `someone` & <others>.

```
  rep      a column, 1 < 2
```

## Small views

| one     | rep |    ms |   ori | other |
|---------|----:|------:|------:|------:|
| lowe    | 0.5 |  0.25 |   1.5 |     7 |
| <b>x&y  | 0.6 |   nan |   2.5 |     8 |

| all pairs | rep |    ms |   ori | other |
|-----------|----:|------:|------:|------:|
| lowe      | 0.5 |  0.25 |   1.5 |     7 |
| <b>x&y    | 0.6 |   nan |   2.5 |

### difference from lowe

| all pairs | rep |
|---|--:|
| <b>x&y | +0.1 \u00b1 0.02 |
"""


class Page(html.parser.HTMLParser):
    """Checks that tags are balanced and gathers what the tests look at."""
    VOID = {"meta", "br", "hr", "link", "img"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.tags, self.ids = [], [], [], []
        self.tables, self.cell, self.text = [], None, ""
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is left open" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.faults.append(f"{tag}: an attribute twice")
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        self.text += data
        if self.cell is not None:
            self.cell += data


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return name

    def bench(self, *arguments, status=DONE):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HARTSIFT_")}
        run = subprocess.run([COMMAND, "bench", *arguments], cwd=self.folder, env=environment, timeout=800, check=False,
                             capture_output=True)
        errors = run.stderr.decode("utf-8", "replace")
        self.assertEqual(run.returncode, status, f"{arguments}: {errors}")
        return run.stdout.decode("utf-8", "replace"), errors

    def page(self, name="page.html"):
        """The page, checked for what holds for every one."""
        text = self.read(name).decode("utf-8")
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.assertEqual(len(set(page.ids)), len(page.ids))
        self.assertTrue(text.startswith("<!DOCTYPE html>"))
        self.assertNotRegex(text, r"(?i)http|src=|href=|url\(|@import|<script|//")
        self.assertIn("prefers-color-scheme:dark", text)
        self.check_plots(text, page)
        for table in re.findall(r"<table>.*?</table>", text, re.S):
            self.assertRegex(table, r"^<table>\s*<caption>[^<]+</caption>\s*<thead>")
            rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)
            self.assertRegex(rows[0], r'^(<th scope="col"( class="word")?>[^<]*</th>)+$')
            for row in rows[1:]:
                self.assertTrue(row.startswith('<th scope="row">'), row)
                self.assertEqual(len(re.findall("<t[hd]", row)), len(re.findall("<th", rows[0])))
        return page

    def check_plots(self, text, page):
        self.plots = []
        for plot in re.findall(r"<svg.*?</svg>", text, re.S):
            root = xml.etree.ElementTree.fromstring(plot)
            self.plots.append(root)
            self.assertEqual(root.get("role"), "img")
            named = [root.find(tag) for tag in ("title", "desc")]
            self.assertEqual(root.get("aria-labelledby").split(), [element.get("id") for element in named])
            for element in named:
                self.assertTrue(element.text.strip())
                self.assertIn(element.get("id"), page.ids)
            width, height = map(float, root.get("viewBox").split()[2:])
            for element in root.iter():
                for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
                    if element.get(name) is not None:
                        self.assertTrue(0 <= float(element.get(name)) <= most, f"{element.attrib} in {width}x{height}")
                for name in ("d", "transform", "x", "y"):
                    self.assertNotRegex(element.get(name, ""), "nan|inf")

    def check_figures(self, page, records):
        head, *rows = page.tables[0]
        self.assertEqual(len(head), len(COLUMNS) - 1)  # width and height stand in one
        self.assertEqual(len(rows), len(records))
        for row, record in zip(rows, records):
            size = f"{record['width']}x{record['height']}"
            texts = [record["name"], size] + [record[name] for name in ("program", "profile", "device")]
            self.assertEqual(row[:5], texts)
            self.assertEqual([float(cell) for cell in row[5:]], [record[name] for name in COLUMNS[6:]])

    def marks(self, plot):
        """By label and figure, where the marks of a plot are; None where a row has no mark."""
        places = []
        for row in plot.findall("g"):
            mark = row.find("g")
            place = None
            if mark is not None:
                circle = mark.find("circle")
                moved = mark.findall("path")[-1].get("transform") if circle is None else None
                place = float(circle.get("cx")) if circle is not None else float(re.findall(r"[\d.]+", moved)[0])
            places.append((row.find("title").text, place))
        return places


class Speed(Case):
    def test_figures_are_those_of_json(self):
        output, errors = self.bench(*SCENES, "--repeats", "3", "--threads", "2", "--device", "cpu", "--profile", "opencv",
                                    "--html", "page.html", "--json", "records.json")
        self.assertEqual(errors, "")
        self.assertEqual(output.count("\n"), 4)
        records = json.loads(self.read("records.json"))
        self.assertEqual(len(records), 2)
        self.check_figures(self.page(), records)
        self.assertEqual(len(self.plots), 1)
        marks = self.marks(self.plots[0])
        self.assertEqual([label.split(":")[0] for label, _ in marks], ["hartsift opencv, 2 threads"] * 2)
        for (label, _), record in zip(marks, records):
            self.assertAlmostEqual(float(label.split(": ")[1].split()[0]), record["median_ms"],
                                   delta=0.01 * record["median_ms"])
        slow_first = records[0]["median_ms"] > records[1]["median_ms"]
        self.assertEqual(marks[0][1] >= marks[1][1], slow_first)

    def test_whisker_spans_the_axis_of_its_figures(self):
        self.bench("@scene:64x48", *QUICK, "--html", "page.html", "--json", "records.json")
        self.page()
        record = json.loads(self.read("records.json"))[0]
        ticks = {float(text.text): float(text.get("x")) for text in self.plots[0].findall("text")
                 if re.fullmatch(r"[-\d.e+]+", text.text or "")}
        self.assertGreaterEqual(len(ticks), 3)
        (first, first_x), (last, last_x) = min(ticks.items()), max(ticks.items())
        scale = (last_x - first_x) / (last - first)  # one picture: far from a factor of ten, so linear
        if record["p90_ms"] > 10 * record["min_ms"]:
            self.skipTest("the machine was disturbed: the axis is logarithmic")
        paths = [path.get("d") for path in self.plots[0].find("g").find("g").findall("path")]
        whisker = re.findall(r"M([\d.]+),[\d.]+V", paths[0]) if paths and "H" in paths[0] else []
        for x, value in zip(whisker, (record["min_ms"], record["p90_ms"])):
            self.assertAlmostEqual(float(x), first_x + scale * (value - first), delta=0.3)
        self.assertAlmostEqual(self.marks(self.plots[0])[0][1], first_x + scale * (record["median_ms"] - first), delta=0.3)

    def test_wide_ranges_get_a_logarithmic_axis(self):
        self.bench("@scene:16x16", "@scene:640x480", *QUICK, "--html", "page.html")
        self.page()
        self.assertIn("logarithmic", "".join(self.plots[0].itertext()))

    def test_odd_names_are_text(self):
        names = ["<b>&\"'.pgm", "a\tb.pgm", "]]>&amp;.pgm", "gr\u00f6\u00dfe\U0001f600.pgm", "\x01\x7f.pgm", "x" * 200 + ".pgm"]
        picture = b"P5 32 32 255\n" + bytes((x * y) % 251 for x in range(32) for y in range(32))
        for name in names:
            self.write(name, picture)
        invalid = os.fsdecode(b"\xff\xfe.pgm")
        with open(os.path.join(os.fsencode(self.folder), b"\xff\xfe.pgm"), "wb") as file:
            file.write(picture)
        self.bench(*names, invalid, *QUICK, "--html", "page.html")
        page = self.page()
        found = [row[0] for row in page.tables[0][1:]]
        self.assertEqual(found, names[:4] + ["\ufffd\ufffd.pgm", names[5], "\ufffd\ufffd.pgm"])
        self.assertNotIn("b", [tag for tag, _ in page.tags])
        self.assertIn("x" * 60, "".join(self.plots[0].itertext()))
        self.assertNotIn("x" * 80, "".join(self.plots[0].itertext()))  # cut, not over the edge

    def test_to_standard_output(self):
        output, errors = self.bench("@scene:32x32", *QUICK, "--html", "-")
        self.assertEqual(errors, "")
        self.assertTrue(output.startswith("<!DOCTYPE html>"))
        self.assertEqual(Page(output).faults, [])

    def test_goes_on_after_a_failed_image(self):
        errors = self.bench("absent.png", "@scene:32x32", *QUICK, "--html", "page.html", status=FAILED)[1]
        self.assertIn("absent.png", errors)
        self.assertEqual([row[0] for row in self.page().tables[0][1:]], ["@scene:32x32"])

    def test_nothing_timed_nothing_written(self):
        self.bench("absent.png", *QUICK, "--html", "page.html", "--json", "records.json", status=FAILED)
        self.assertEqual(os.listdir(self.folder), [])

    def test_replaces_a_page(self):
        self.write("page.html", "old")
        self.bench("@scene:32x32", *QUICK, "--html", "page.html")
        self.page()
        self.assertEqual(os.listdir(self.folder), ["page.html"])


class Paths(Case):
    def test_unwritable(self):
        os.mkdir(self.path("folder"))
        for path in ("absent/page.html", "folder"):
            output, errors = self.bench("@scene:32x32", *QUICK, "--html", path, "--json", "records.json", status=FAILED)
            self.assertEqual(output, "")  # found before anything is timed
            self.assertIn(path.split("/", maxsplit=1)[0], errors)
            self.assertEqual(sorted(os.listdir(self.folder)), ["folder"])
            self.assertEqual(os.listdir(self.path("folder")), [])

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        errors = self.bench("@scene:32x32", *QUICK, "--html", "/dev/full", status=FAILED)[1]
        self.assertIn("/dev/full", errors)

    def test_outputs_are_two_files(self):
        for path in ("same", "-"):
            errors = self.bench("@scene:32x32", *QUICK, "--html", path, "--json", path, status=USAGE)[1]
            self.assertIn("--html", errors)
        self.assertEqual(os.listdir(self.folder), [])

    def test_inputs_stay(self):
        self.write("image.pgm", b"P5 1 1 255\n0")
        self.write("accuracy.md", ACCURACY)
        for arguments in (["image.pgm", "--html", "image.pgm"], ["image.pgm", "--json", "image.pgm"],
                          ["image.pgm", "--html", "accuracy.md", "--accuracy", "accuracy.md"]):
            self.assertIn("overwrite", self.bench(*arguments, *QUICK, status=FAILED)[1])
        self.assertEqual(self.read("image.pgm"), b"P5 1 1 255\n0")
        self.assertEqual(self.read("accuracy.md"), ACCURACY.encode())

    def test_texts_mention_the_options(self):
        run = [subprocess.run([COMMAND, *arguments], check=True, capture_output=True).stdout.decode()
               for arguments in (["bench", "--help"], ["--man"], ["--completion", "bash"], ["--completion", "zsh"])]
        for text, dashes in zip(run, ("--", "\\-\\-", "--", "--")):
            self.assertIn(dashes + "html", text)
            self.assertIn(dashes + "accuracy", text)
        for command in ("extract", "match"):
            self.assertNotIn("--html", subprocess.run([COMMAND, command, "--help"], check=True, capture_output=True,
                                                      text=True).stdout)


class Accuracy(Case):
    def page_of(self, text, *arguments):
        self.write("accuracy.md", text)
        self.bench("@scene:32x32", *QUICK, "--html", "page.html", "--accuracy", "accuracy.md", *arguments)
        return self.page()

    def test_tables_and_plots(self):
        page = self.page_of(ACCURACY)
        self.assertEqual(len(page.tables), 4)
        self.assertEqual(page.tables[1][2], ["<b>x&y", "0.6", "nan", "2.5", "8"])
        self.assertEqual(page.tables[2][2], ["<b>x&y", "0.6", "nan", "2.5", ""])
        self.assertEqual(page.tables[3], [["all pairs", "rep"], ["<b>x&y", "+0.1 \u00b1 0.02"]])
        self.assertIn("Written by `someone` & <others>.", page.text)
        self.assertIn("  rep      a column, 1 < 2", page.text)
        # Of the first section the last table: shares and orientation; then the differences.
        self.assertEqual(len(self.plots), 4)
        shares, degrees, differences = [self.marks(plot) for plot in self.plots[1:]]
        self.assertEqual([label for label, _ in shares], ["lowe: 0.5", "<b>x&y: 0.6", "lowe: 0.25", "<b>x&y: nan"])
        self.assertIsNone(shares[3][1])
        self.assertLess(shares[2][1], shares[0][1])
        self.assertLess(shares[0][1], shares[1][1])
        self.assertLess(degrees[0][1], degrees[1][1])
        self.assertEqual([label for label, _ in differences], ["<b>x&y: +0.1 \u00b1 0.02"])
        self.assertEqual(len(self.plots[3].findall(".//path[@stroke-width]")), 1)

    def test_table_of_the_tree(self):
        self.bench("@scene:32x32", *QUICK, "--html", "page.html", "--accuracy", ACCURACY_FILE)
        page = self.page()
        with open(ACCURACY_FILE, encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line)]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        self.assertEqual([row for table in page.tables[1:] for row in table], cells)
        self.assertGreater(len(self.plots), 10)

    def test_lines_of_other_systems_and_odd_tables(self):
        page = self.page_of("| a | rep |\r\n|---|---|\r\n| b | 1e300 |\r\n| c | -1e5\r\n|\r\n\r\n| only |\n|---|\n")
        self.assertEqual(page.tables[1], [["a", "rep"], ["b", "1e300"], ["c", "-1e5"], ["", ""]])
        self.assertEqual(page.tables[2], [["only"]])
        self.page_of("| a | rep |\n|---|---|\n| b | 1e300 |\n| c | -1e5 |\n")
        self.assertEqual([place is None for _, place in self.marks(self.plots[1])], [True, False])
        for cells in (("0", "0"), ("3", "3"), ("-2", "-2"), ("1e-30", "2e-30"), ("-1e12", "1e12"), ("1e12", "1e12")):
            self.page_of("| a | rep | err |\n|---|---|---|\n" + "".join(f"| b | {cell} | {cell} |\n" for cell in cells))

    def test_files_that_are_none(self):
        wide = "|" + " x |" * 33 + "\n"
        for data in ("", "words\n", "```\n| a |\n```\n", b"| a |\0\n", "x" * (1 << 20) + "\n| a |\n", wide):
            self.write("accuracy.md", data)
            output, errors = self.bench("@scene:32x32", *QUICK, "--html", "page.html", "--accuracy", "accuracy.md",
                                        status=FAILED)
            self.assertEqual(output, "")
            self.assertIn("accuracy.md", errors)
            self.assertEqual(os.listdir(self.folder), ["accuracy.md"])
        self.assertIn("absent.md", self.bench("@scene:32x32", *QUICK, "--html", "page.html", "--accuracy", "absent.md",
                                              status=FAILED)[1])
        self.assertIn("cannot be read", self.bench("@scene:32x32", *QUICK, "--html", "page.html", "--accuracy", ".",
                                                   status=FAILED)[1])

    def test_needs_a_page(self):
        self.write("accuracy.md", ACCURACY)
        self.assertIn("--html", self.bench("@scene:32x32", *QUICK, "--accuracy", "accuracy.md", status=USAGE)[1])


class Peers(Case):
    """The program that --against hands over to writes the same page, with the peak memory of each program."""

    def against(self, peer, *arguments, status=DONE):
        if not os.path.exists(os.path.join(os.path.dirname(COMMAND), "hartsift-bench-peers")):
            self.skipTest("hartsift-bench-peers was not built")
        try:
            return self.bench("--against", peer, *arguments, "--repeats", "2", "--threads", "1", status=status)
        except AssertionError as failure:
            if "without that library" in str(failure):
                self.skipTest(f"built without {peer}")
            raise

    def check_peer(self, peer):
        self.write("accuracy.md", ACCURACY)
        output, errors = self.against(peer, *SCENES, "--html", "page.html", "--json", "records.json", "--accuracy",
                                      "accuracy.md")
        self.assertEqual(errors, "")
        page = self.page()
        records = json.loads(self.read("records.json"))
        self.assertEqual(len(records), 6)
        self.check_figures(page, records)
        self.assertEqual([row[0] for row in page.tables[1][1:]], [scene for scene in SCENES for _ in range(3)])
        memory = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.split("\n\n")[0].splitlines()[2:]]
        self.assertEqual(page.tables[1][1:], memory)
        self.assertEqual(len(page.tables), 5)
        self.assertEqual(len(self.plots), 5)

    def test_opencv(self):
        self.check_peer("opencv")

    def test_vlfeat(self):
        self.check_peer("vlfeat")

    def test_bad_paths(self):
        self.against("opencv", "@scene:32x32", "--html", "absent/page.html", status=FAILED)
        self.assertIn("--html", self.against("opencv", "@scene:32x32", "--accuracy", "x", status=USAGE)[1])
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        COMMAND = os.path.abspath(sys.argv.pop(1))
    if not COMMAND:
        print("skipped: set HARTSIFT_COMMAND to the command hartsift, or name it as first argument")
        sys.exit(SKIPPED)
    unittest.main()
