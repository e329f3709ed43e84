"""The command hartsift as users and scripts meet it: exit statuses, messages, what goes where, whole files or none.

Runs HARTSIFT_COMMAND (or the program named as first argument). Needs nothing but Python's standard library.
"""
import json
import os
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

COMMAND = os.environ.get("HARTSIFT_COMMAND", "")
SKIPPED = 77
DONE, FAILED, USAGE, NO_DEVICE = 0, 1, 2, 3
SUBCOMMANDS = ("extract", "batch", "match", "draw", "stats", "hist", "info", "selftest", "bench")
EXTRACT_OPTIONS = (
    "output format profile device threads max-features contrast edge first-octave octaves scales max-orientations "
    "upright norm descriptor mask region grid equalize keypoints upsample sigma input-blur no-exif decode-scale variant max-memory max-pixels "
    "json quiet help"
).split()


def pgm(width, height, pixel=lambda x, y: (x * 7 + y * 13) % 256):
    """A PGM file's bytes."""
    rows = (bytes(pixel(x, y) for x in range(width)) for y in range(height))
    return b"P5 %d %d 255\n" % (width, height) + b"".join(rows)


def read_ppm(data):
    """Width, height and RGB bytes of a binary PPM file."""
    fields = data.split(None, 4)
    assert fields[0] == b"P6" and fields[3] == b"255", data[:20]
    width, height = int(fields[1]), int(fields[2])
    return width, height, data[-3 * width * height:]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return name

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def run_it(self, *arguments, status=DONE, stdin=b"", **settings):
        """Runs the command in the test's folder; returns standard output (bytes) and standard error (text)."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HARTSIFT_")}
        environment.update(settings.pop("environment", {}))
        run = subprocess.run([COMMAND, *arguments], input=stdin, cwd=self.folder, env=environment, timeout=800,
                             check=False, stdout=settings.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                             **settings)
        errors = run.stderr.decode("utf-8", "replace")
        self.assertEqual(run.returncode, status, f"{arguments}: {errors}")
        return run.stdout, errors

    def extract(self, *arguments, **settings):
        return self.run_it("extract", *arguments, **settings)

    def features(self, *arguments, **settings):
        """The rows of the CSV on standard output, as dictionaries."""
        output, _ = self.extract(*arguments, "--format", "csv", **settings)
        lines = output.decode().splitlines()
        names = lines[0].split(",")
        return [dict(zip(names, map(float, line.split(",")))) for line in lines[1:]]

    def files(self, name=""):
        return sorted(os.listdir(self.path(name)))


class Texts(Case):
    def test_version(self):
        output, errors = self.run_it("--version")
        self.assertRegex(output.decode(), r"^hartsift \d+\.\d+\.\d+ \(method \d+\)\n$")
        self.assertEqual(errors, "")

    def test_help_lists_every_option(self):
        output, _ = self.run_it("--help")
        for command in SUBCOMMANDS:
            self.assertIn(f"  {command} ", output.decode())
        output, errors = self.extract("--help")
        self.assertEqual(errors, "")
        for option in EXTRACT_OPTIONS:
            self.assertIn(f"--{option}", output.decode())
        for line in output.decode().splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_every_command_has_help(self):
        for command in SUBCOMMANDS:
            output, _ = self.run_it(command, "--help")
            self.assertTrue(output.decode().startswith(f"Usage: hartsift {command}"))
            self.assertEqual(self.run_it(command, "-h")[0], output)

    def test_man_page(self):
        output, _ = self.run_it("--man")
        self.assertTrue(output.startswith(b".TH HARTSIFT 1"))
        for option in EXTRACT_OPTIONS:
            self.assertIn(("\\-\\-" + option.replace("-", "\\-")).encode(), output)

    def test_completions(self):
        for shell in ("bash", "zsh"):
            output, _ = self.run_it("--completion", shell)
            for option in EXTRACT_OPTIONS:
                self.assertIn(b"--" + option.encode(), output)
        self.assertIn("bash or zsh", self.run_it("--completion", "fish", status=USAGE)[1])

    def test_bash_completes(self):
        self.write("script", self.run_it("--completion", "bash")[0])
        for words, expected in (("hartsift ex", "extract"), ("hartsift extract --max-f", "--max-features"),
                                ("hartsift extract --norm ro", "root"), ("hartsift draw --circle", "--circle-scale")):
            script = (f". ./script; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _hartsift; "
                      'echo "${COMPREPLY[*]}"')
            found = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, check=True).stdout
            self.assertEqual(found.decode().strip(), expected)


class Usage(Case):
    WRONG = (
        (["--threads", "x"], "--threads", "whole number"), (["--threads"], "--threads", "needs a value"),
        (["--max-features", "-1"], "--max-features", "from 0"), (["--contrast", "2"], "--contrast", "from 0 to 1"),
        (["--edge", "0"], "--edge", "from 1 to 1000"), (["--first-octave", "4"], "--first-octave", "-1 to 3"),
        (["--octaves", "33"], "--octaves", "0 to 32"), (["--scales", "0"], "--scales", "1 to 8"),
        (["--max-orientations", "19"], "--max-orientations", "0 to 18"), (["--upright=1"], "--upright", "no value"),
        (["--norm", "l1"], "--norm", "l2 or root"), (["--descriptor", "u16"], "--descriptor", "u8, f32 or none"),
        (["--profile", "sift"], "--profile", "lowe, opencv"), (["--device", "tpu"], "--device", "cuda:N"),
        (["--format", "xml"], "--format", "colmap, npz"), (["--region", "1,2,3"], "--region", "X,Y,W,H"),
        (["--upsample", "none"], "--upsample", "aligned or half-pixel"), (["--sigma", "0"], "--sigma", "0.8 to 4"),
        (["--input-blur", "9"], "--input-blur", "0 to 4"), (["--variant", "x"], "--variant", "STAGE=NAME"),
        (["--max-memory", "1Q"], "--max-memory", "500M"), (["--max-pixels", "many"], "--max-pixels", "whole number"),
        (["--mask"], "--mask", "IMAGE"), (["--keypoints"], "--keypoints", "FILE"), (["-o"], "--output", "FILE|DIR"),
        (["--frobnicate"], "--frobnicate", "--help"), (["-z"], "-z", "--help"),
        (["--max", "3"], "--max", "--max-pixels"),
        (["-o", "x.zip"], "--output", ".npz"), (["--json"], "--json", "-o"),
        (["--format", "openmvg"], "--format", "-o"), (["second.png"], "--output", "directory"),
        (["--keypoints", "k.csv", "--mask", "m.png"], "--mask", "--keypoints"),
        # What only the library can judge is put in terms of the option too.
        (["--input-blur", "3"], "--input-blur", "expected"),
        (["--device", "cpu", "--variant", "blur=none"], "variant", "ref"),
    )

    def test_messages_name_option_and_expectation(self):
        for arguments, option, expected in self.WRONG:
            with self.subTest(arguments=arguments):
                output, errors = self.extract("@scene:64x64", *arguments, status=USAGE)
                self.assertEqual(output, b"")
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertTrue(errors.startswith("hartsift extract: "), errors)
                self.assertIn(option, errors)
                self.assertIn(expected, errors)
        self.assertEqual(self.files(), [])

    def test_commands_and_operands(self):
        for arguments, expected in (([], "command"), (["frob"], "'frob'"), (["extract"], "IMAGE..."),
                                    (["info", "x"], "'x'"), (["draw", "@scene"], "--output"),
                                    (["draw", "@scene", "-o", "x.gif"], ".png"),
                                    (["draw", "a", "b", "c", "d", "e", "f", "-o", "x.png"], "'f'"),
                                    (["draw", "a", "b", "c", "d", "-o", "x.png"], "features of both images"),
                                    (["draw", "a", "b", "c", "--mask", "d", "-o", "x.png"], "--mask"),
                                    (["draw", "a", "b", "c", "--circle-scale", "2", "-o", "x.png"], "--circle-scale"),
                                    (["draw", "-", "-", "c", "-o", "x.png"], "'-' stands twice")):
            output, errors = self.run_it(*arguments, status=USAGE)
            self.assertEqual(output, b"")
            self.assertIn(expected, errors)

    def test_several_images_into_a_file(self):
        self.write("plain", b"kept")
        errors = self.extract("@scene:64x64", "@scene:65x64", "-o", "plain", status=USAGE)[1]
        self.assertIn("directory", errors)
        self.assertEqual(self.read("plain"), b"kept")

    def test_missing_device(self):
        errors = self.extract("@scene:64x64", "--device", "cuda:99", status=NO_DEVICE)[1]
        self.assertIn("99", errors)
        self.run_it("info", "--device", "cuda:99", status=NO_DEVICE)


class Extract(Case):
    def test_streams(self):
        output, errors = self.extract("@scene:320x240")
        self.assertTrue(output.startswith(b"x,y,sigma,orientation,"))
        self.assertRegex(errors, r"^@scene:320x240: 320x240, \d+ features, \d+ ms -> standard output\n$")
        quiet, errors = self.extract("@scene:320x240", "--quiet")
        self.assertEqual((quiet, errors), (output, ""))
        self.assertEqual(self.extract("@scene:320x240", "-q", "-o", "-")[0], output)

    def test_one_file_by_ending(self):
        for name, start in (("a.csv", b"x,y,"), ("a.npz", b"PK"), ("a.json", b"{"), ("a.yml", b"%YAML")):
            output, _ = self.extract("@scene:160x120", "-o", name)
            self.assertEqual(output, b"")
            self.assertTrue(self.read(name).startswith(start), name)
        self.extract("@scene:160x120", "-o", "named.dat", "--format", "csv")
        self.assertEqual(self.read("named.dat"), self.read("a.csv"))

    def test_standard_input(self):
        picture = pgm(200, 160, lambda x, y: 255 if (x - 90) ** 2 + 3 * (y - 70) ** 2 < 60 else 20)
        self.write("spot.pgm", picture)
        expected = self.extract("spot.pgm", "-q")[0]
        self.assertGreater(expected.count(b"\n"), 1)
        self.assertEqual(self.extract("-", "-q", stdin=picture)[0], expected)
        self.extract("-", "-o", "out/", stdin=picture)
        self.assertEqual(self.files("out"), ["stdin.npz"])
        self.assertIn("standard input", self.extract("-", stdin=b"", status=FAILED)[1])

    def test_several_images_one_broken(self):
        self.write("good.pgm", pgm(40, 40))
        self.write("cut.pgm", pgm(40, 40)[:-300])
        self.write("empty.png", b"")
        os.mkdir(self.path("folder.png"))
        output, errors = self.extract("good.pgm", "cut.pgm", "empty.png", "folder.png", "none.png", "@scene:64x64:3",
                                      "-o", "new/deep", status=FAILED)
        self.assertEqual(output, b"")
        self.assertEqual(self.files("new/deep"), ["good.npz", "scene_64x64_3.npz"])
        for name in ("cut.pgm", "empty.png", "folder.png", "none.png"):
            named = [line for line in errors.splitlines() if line.startswith(f"hartsift extract: {name}: ")]
            self.assertEqual(len(named), 1, errors)

    def test_json_lines(self):
        strange = "sp\"a\\ce\n\u00e9.pgm"
        self.write(strange, pgm(40, 30))
        output, _ = self.extract(strange, "none.png", "@scene:160x120", "-o", "out/", "--json", "-q", status=FAILED)
        records = [json.loads(line) for line in output.decode().splitlines()]
        self.assertEqual([record["image"] for record in records], [strange, "none.png", "@scene:160x120"])
        self.assertEqual([record["status"] for record in records], ["HS_OK", "HS_ERR_IO", "HS_OK"])
        self.assertEqual((records[0]["width"], records[0]["height"], records[0]["error"]), (40, 30, None))
        self.assertEqual((records[1]["features"], records[1]["output"]), (None, None))
        self.assertIn("none.png", records[1]["error"])
        self.assertGreater(records[2]["features"], 0)
        self.assertTrue(os.path.isfile(self.path(records[2]["output"])))
        self.assertGreaterEqual(records[2]["milliseconds"], 0)

    def test_json_of_a_name_that_is_no_utf8(self):
        name = os.path.join(os.fsencode(self.folder), b"a\xff\xc0\xaf\xed\xa0\x80.pgm")
        with open(name, "wb") as file:
            file.write(pgm(8, 8))
        output, _ = self.extract(name, "-o", "x.csv", "--json")
        self.assertIn("\ufffd", json.loads(output.decode("utf-8"))["image"])

    def test_equal_names_do_not_overwrite(self):
        os.mkdir(self.path("other"))
        self.write("a.pgm", pgm(40, 40))
        self.write("other/a.pgm", pgm(90, 90))
        errors = self.extract("a.pgm", "other/a.pgm", "@scene:50x50", "-o", "out/", "--format", "json",
                              status=FAILED)[1]
        self.assertIn("hartsift extract: other/a.pgm: ", errors)
        self.assertEqual(self.files("out"), ["a.json", "scene_50x50.json"])
        self.assertIn(b"40", self.read("out/a.json"))
        self.extract("a.pgm", "-o", "colmap/", "--format", "colmap")
        self.assertEqual(self.files("colmap"), ["a.pgm.txt"])

    def test_output_never_replaces_the_image(self):
        picture = pgm(40, 40)
        self.write("a.pgm", picture)
        self.extract("a.pgm", "-o", "a.pgm", "--format", "csv", status=FAILED)
        self.run_it("draw", "@scene:40x40", "-o", "b.ppm")
        before = self.read("b.ppm")
        self.run_it("draw", "b.ppm", "-o", "./b.ppm", status=FAILED)
        self.assertEqual((self.read("a.pgm"), self.read("b.ppm")), (picture, before))

    def test_files_are_whole_or_absent(self):
        self.write("plain", b"")
        for output in ("plain/x.csv", "none/x.csv"):
            errors = self.extract("@scene:64x64", "-o", output, status=FAILED)[1]
            self.assertEqual(errors.count("\n"), 1)
        self.extract("@scene:64x64", "@scene:65x64", "-o", "plain/deep", status=FAILED)
        self.assertEqual(self.files(), ["plain"])
        if os.geteuid() != 0:
            os.mkdir(self.path("locked"), 0o500)
            self.extract("@scene:64x64", "-o", "locked/x.csv", status=FAILED)
            self.assertEqual(self.files("locked"), [])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["extract", "@scene:64x64"], ["extract", "@scene:64x64", "-o", "x.csv", "--json"],
                              ["--help"], ["--man"], ["info"], ["draw", "@scene:64x64", "-o", "-"]):
                errors = self.run_it(*arguments, status=FAILED, stdout=full)[1]
                self.assertIn("standard output", errors)
        self.extract("@scene:64x64", "-o", "/dev/full", "--format", "csv", status=FAILED)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_closed_standard_output_is_quiet(self):
        for arguments in (["extract", "@scene:640x480", "-q"], ["--man"], ["draw", "@scene:640x480", "-o", "-"]):
            reader, writer = os.pipe()
            os.close(reader)
            errors = self.run_it(*arguments, status=FAILED, stdout=writer)[1]
            os.close(writer)
            self.assertEqual(errors, "")
            shell = subprocess.run(["sh", "-c", '"$@" >&-', "sh", COMMAND, *arguments], cwd=self.folder, check=False,
                                   capture_output=True)
            self.assertEqual((shell.returncode, shell.stderr), (FAILED, b""))
        all_closed = '"$0" extract @scene:64x64 -q -o x.csv <&- >&- 2>&-'
        shell = subprocess.run(["sh", "-c", all_closed, COMMAND], cwd=self.folder, check=False)
        self.assertEqual(shell.returncode, DONE)
        self.assertTrue(self.read("x.csv").startswith(b"x,y,"))

    def test_tiny_and_thin_images(self):
        self.write("dot.pgm", pgm(1, 1))
        self.write("thin.pgm", pgm(100000, 1, lambda x, y: x % 256))
        self.write("tall.pgm", pgm(1, 30000, lambda x, y: y % 256))
        for name in ("dot.pgm", "thin.pgm", "tall.pgm"):
            for profile in ("lowe", "opencv", "vlfeat", "colmap"):
                self.assertEqual(self.features(name, "--profile", profile), [], (name, profile))

    def test_limits(self):
        self.assertIn("limit", self.extract("@scene:64x64", "--max-pixels", "4095", status=FAILED)[1])
        self.extract("@scene:64x64", "--max-pixels", "4096")
        self.extract("@scene:64x64", "--max-pixels", "0", "--max-memory", "0")
        self.extract("@scene:640x480", "--max-memory", "1M", status=FAILED)
        self.extract("@scene:640x480", "--max-memory", "1G")


class Options(Case):
    SCENE = "@scene:320x240"

    def test_profile_is_overridden_wherever_it_stands(self):
        first = self.extract(self.SCENE, "--profile", "colmap", "--contrast", "0.06", "-q")[0]
        last = self.extract("--contrast", "0.06", self.SCENE, "-q", "--profile", "colmap")[0]
        plain = self.extract(self.SCENE, "--profile", "colmap", "-q")[0]
        self.assertEqual(first, last)
        self.assertNotEqual(first, plain)

    def test_options_change_the_result(self):
        plain = self.extract(self.SCENE, "-q")[0]
        for option in (["--contrast", "0.02"], ["--edge", "3"], ["--first-octave", "0"], ["--octaves", "1"],
                       ["--scales", "4"], ["--max-orientations", "1"], ["--upright"], ["--norm", "root"],
                       ["--descriptor", "f32"],
                       ["--upsample", "half-pixel"], ["--sigma", "1.5"], ["--input-blur", "0.4"],
                       ["--max-features", "9"], ["--profile", "vlfeat"], ["--region", "10,10,100,100"]):
            self.assertNotEqual(self.extract(self.SCENE, "-q", *option)[0], plain, option)
        for option in (["--threads", "3"], ["--device", "cpu"], ["--contrast", "0.04"],
                       ["--device", "cpu", "--variant", "blur=ref,orient=ref"]):
            self.assertEqual(self.extract(self.SCENE, "-q", *option)[0], plain, option)

    def test_max_features(self):
        self.assertEqual(len(self.features(self.SCENE, "--max-features", "17")), 17)

    def test_region(self):
        rows = self.features(self.SCENE, "--region", "100,50,80,60")
        self.assertGreater(len(rows), 0)
        for row in rows:
            self.assertTrue(99.5 <= row["x"] <= 179.5 and 49.5 <= row["y"] <= 109.5, row)
        inside = [row for row in self.features(self.SCENE)
                  if 100 <= int(row["x"] + 0.5) < 180 and 50 <= int(row["y"] + 0.5) < 110]
        self.assertEqual(rows, inside)

    def test_mask(self):
        self.write("left.pgm", pgm(320, 240, lambda x, y: 255 if x < 160 else 0))
        rows = self.features(self.SCENE, "--mask", "left.pgm")
        self.assertEqual(rows, [row for row in self.features(self.SCENE) if int(row["x"] + 0.5) < 160])
        self.assertGreater(len(rows), 0)
        # 16 bits: a small value is not black.
        self.write("faint.pgm", b"P5 320 240 65535\n" + struct.pack(">160H160H", *[1] * 160, *[0] * 160) * 240)
        self.assertEqual(self.features(self.SCENE, "--mask", "faint.pgm"), rows)
        self.write("small.pgm", pgm(319, 240))
        errors = self.extract(self.SCENE, "@scene:319x240:5", "--mask", "small.pgm", "-o", "out/", status=FAILED)[1]
        self.assertIn(f"{self.SCENE}: the mask is 319x240", errors)
        self.assertEqual(self.files("out"), ["scene_319x240_5.npz"])
        self.assertIn("--mask", self.extract(self.SCENE, "--mask", "none.png", status=FAILED)[1])

    def test_keypoints(self):
        for name in ("own.csv", "own.npz", "own.hsf"):
            self.extract(self.SCENE, "-q", "-o", name)
            again = self.extract(self.SCENE, "-q", "--keypoints", name, "--format", "csv")[0]
            if name != "own.npz":  # has no levels
                self.assertEqual(again, self.read("own.csv"), name)
            self.assertEqual(again.count(b"\n"), self.read("own.csv").count(b"\n"))
        lines = self.read("own.csv").decode().splitlines()
        columns = lines[0].split(",")
        values = lines[1].split(",")
        values[columns.index("sigma")] = "5000"
        values[columns.index("octave")] = values[columns.index("level")] = "0"
        self.write("huge.csv", "\n".join([lines[0], lines[2], ",".join(values)]).encode() + b"\n")
        output, errors = self.extract(self.SCENE, "--keypoints", "huge.csv", "-o", "-")
        self.assertIn("1 of 2 keypoints cannot be described", errors)
        self.assertIn("number 2", errors)
        self.assertEqual(output.decode().splitlines()[2].split(",")[-128:], ["0"] * 128)
        self.assertIn("--keypoints", self.extract(self.SCENE, "--keypoints", "none.csv", status=FAILED)[1])

    def test_keypoints_without_descriptors(self):
        rows = self.features(self.SCENE, "--descriptor", "none")
        places = [(row["x"], row["y"]) for row in rows]
        self.assertEqual(places, [(row["x"], row["y"]) for row in self.features(self.SCENE)])


class Match(Case):
    SCENE = "@scene:320x240:3"

    def match(self, *arguments, **settings):
        return self.run_it("match", *arguments, **settings)

    def rows(self, *arguments, **settings):
        output, _ = self.match(*arguments, **settings)
        lines = output.decode().splitlines()
        names = lines[0].split(",")
        return [dict(zip(names, line.split(","))) for line in lines[1:]]

    def test_scene_matches_itself(self):
        rows = self.rows(self.SCENE, self.SCENE)
        self.assertGreater(len(rows), 50)
        self.assertTrue(all(row["index_a"] == row["index_b"] and row["distance"] == "0" for row in rows))
        self.assertEqual(list(rows[0]), ["index_a", "index_b", "distance"])

    def test_files_and_images_give_the_same(self):
        for number, name in ((3, "a.npz"), (4, "b.hsf")):
            self.extract(f"@scene:320x240:{number}", "-o", name)
        os.rename(self.path("b.hsf"), self.path("b.unknown"))
        files, _ = self.match("a.npz", "b.unknown", "--ratio", "0")
        images, _ = self.match("@scene:320x240:3", "-", "--ratio", "0", stdin=self.scene_file(4))
        self.assertEqual(files, images)

    def scene_file(self, number):
        """The generated scene as a picture file: what draw makes of no features."""
        self.run_it("draw", f"@scene:320x240:{number}", "--contrast", "1", "-o", "scene.png")
        return self.read("scene.png")

    def test_tests_of_pairs(self):
        pair = (self.SCENE, "@scene:320x240:4")
        loose = self.rows(*pair, "--ratio", "0", "--no-mutual")
        mutual = self.rows(*pair, "--ratio", "0", "--mutual")
        swapped = self.rows(*reversed(pair), "--ratio", "0")
        near = self.rows(*pair, "--ratio", "0", "--no-mutual", "--max-distance", "200")
        as_pairs = lambda rows: [(row["index_a"], row["index_b"]) for row in rows]
        self.assertLess(len(mutual), len(loose))
        self.assertLessEqual(set(as_pairs(mutual)), set(as_pairs(loose)))
        self.assertEqual(sorted((b, a) for a, b in as_pairs(swapped)), sorted(as_pairs(mutual)))
        self.assertEqual(near, [row for row in loose if float(row["distance"]) <= 200])
        self.assertLess(len(self.rows(*pair, "--ratio", "0.7")), len(mutual))

    def test_verification(self):
        rows = self.rows(self.SCENE, self.SCENE, "--verify", "homography", "--tolerance", "1")
        self.assertTrue(rows and all(row["inlier"] == "1" for row in rows))
        output, errors = self.match(self.SCENE, self.SCENE, "--verify", "homography", "--json")
        record = json.loads(output)
        self.assertEqual((record["format"], record["version"], record["count"]), ("hartsift-matches", 1, len(rows)))
        self.assertEqual(record["verified"]["model"], "homography")
        self.assertTrue(record["verified"]["found"])
        for found, expected in zip(record["verified"]["matrix"], (1, 0, 0, 0, 1, 0, 0, 0, 1)):
            self.assertAlmostEqual(found, expected, places=6)
        self.assertTrue(all(match["inlier"] for match in record["matches"]))
        self.assertIn("inliers", errors)
        rows = self.rows(self.SCENE, self.SCENE, "--verify", "essential", "--camera", "300,300,160,120")
        self.assertEqual(set(rows[0]), {"index_a", "index_b", "distance", "inlier"})

    def test_nothing_to_verify(self):
        self.write("flat.pgm", pgm(64, 48, lambda x, y: 9))
        output, errors = self.match("flat.pgm", self.SCENE, "--verify", "fundamental", "--json")
        record = json.loads(output)
        self.assertEqual((record["count"], record["matches"], record["verified"]["found"]), (0, [], False))
        self.assertIn("no geometry found", errors)

    def test_formats_by_ending(self):
        self.match(self.SCENE, self.SCENE, "-o", "m.json", "-q")
        count = json.loads(self.read("m.json"))["count"]
        self.match(self.SCENE, self.SCENE, "-o", "m.txt", "--quiet")
        lines = self.read("m.txt").decode().splitlines()
        self.assertEqual(lines[0], f"{self.SCENE} {self.SCENE}")
        self.assertEqual(lines[1:count + 1], [f"{i} {i}" for i in (int(line.split()[0]) for line in lines[1:count + 1])])
        self.assertEqual(lines[count + 1:], [""])
        self.match(self.SCENE, self.SCENE, "-o", "m.dat")
        self.assertEqual(self.read("m.dat").decode().splitlines()[0], "index_a,index_b,distance")
        self.assertEqual(self.files(), ["m.dat", "m.json", "m.txt"])

    def test_same_bytes_from_every_backend(self):
        expected, _ = self.match(self.SCENE, "@scene:320x240:4", environment={"HARTSIFT_CPU": "ref"})
        for threads in ("1", "3"):
            found, _ = self.match(self.SCENE, "@scene:320x240:4", "--threads", threads)
            self.assertEqual(found, expected)

    def test_usage(self):
        for arguments, words in (
                ((self.SCENE,), "operand"),
                (("-", "-"), "standard input holds one"),
                ((self.SCENE, self.SCENE, "--ratio", "1.5"), "from 0 to 1"),
                ((self.SCENE, self.SCENE, "--mutual", "--no-mutual"), "one of them"),
                ((self.SCENE, self.SCENE, "--descriptor", "none"), "u8 or f32"),
                ((self.SCENE, self.SCENE, "--json", "--format", "csv"), "one of them"),
                ((self.SCENE, self.SCENE, "--tolerance", "2"), "--verify"),
                ((self.SCENE, self.SCENE, "--verify", "essential"), "--camera"),
                ((self.SCENE, self.SCENE, "--verify", "essential", "--camera", "1,2,3"), "FX,FY,CX,CY"),
                ((self.SCENE, self.SCENE, "--verify", "essential", "--camera", "0,2,3,4"), "above 0"),
                ((self.SCENE, self.SCENE, "--verify", "homography", "--camera", "1,1,3,4"), "essential")):
            _, errors = self.match(*arguments, status=USAGE)
            self.assertIn(words, errors)

    def test_failures(self):
        self.write("noise", b"neither picture nor features")
        _, errors = self.match("noise", self.SCENE, status=FAILED)
        self.assertIn("noise", errors)
        _, errors = self.match(self.SCENE, "absent.npz", status=FAILED)
        self.assertIn("absent.npz", errors)
        self.extract(self.SCENE, "--descriptor", "none", "-o", "bare.csv")
        _, errors = self.match("bare.csv", self.SCENE, status=FAILED)
        self.assertIn("without descriptors", errors)
        self.extract(self.SCENE, "--descriptor", "f32", "-o", "floats.csv")
        _, errors = self.match("floats.csv", self.SCENE, status=FAILED)
        self.assertIn("8-bit", errors)
        self.extract(self.SCENE, "-o", "bytes.csv")
        before = self.read("bytes.csv")
        _, errors = self.match("bytes.csv", self.SCENE, "-o", "bytes.csv", status=FAILED)
        self.assertIn("overwrite", errors)
        self.assertEqual(self.read("bytes.csv"), before)


class Draw(Case):
    def test_picture_of_features(self):
        rows = self.features("@scene:200x150", "--max-features", "1")
        self.extract("@scene:200x150", "--max-features", "1", "-q", "-o", "one.csv")
        output, errors = self.run_it("draw", "@scene:200x150", "one.csv", "-o", "one.ppm", "--circle-scale", "5")
        self.assertEqual(output, b"")
        self.assertIn("1 features", errors)
        self.run_it("draw", "@scene:200x150", "-o", "same.ppm", "--max-features", "1", "--circle-scale", "5", "-q")
        self.assertEqual(self.read("one.ppm"), self.read("same.ppm"))
        width, height, pixels = read_ppm(self.read("one.ppm"))
        self.assertEqual((width, height), (200, 150))
        coloured = [(i % width, i // width) for i in range(width * height)
                    if len(set(pixels[3 * i:3 * i + 3])) > 1]  # the scene is gray
        radius = 5 * rows[0]["sigma"] + 3
        self.assertGreater(len(coloured), 10)
        for x, y in coloured:
            self.assertLessEqual((x - rows[0]["x"]) ** 2 + (y - rows[0]["y"]) ** 2, radius ** 2)

    def test_formats_and_streams(self):
        picture = pgm(60, 40)
        for name, start in (("a.png", b"\x89PNG"), ("a.jpg", b"\xff\xd8"), ("a.ppm", b"P6")):
            self.run_it("draw", "-", "-o", name, stdin=picture)
            self.assertTrue(self.read(name).startswith(start))
        output, _ = self.run_it("draw", "-", "-o", "-", stdin=picture)
        self.assertEqual(output, self.read("a.png"))

    def test_png_is_sound(self):
        self.run_it("draw", "@scene:33x21", "-o", "a.png")
        data = self.read("a.png")
        width, height = struct.unpack(">II", data[16:24])
        self.assertEqual((width, height), (33, 21))
        chunks, position = b"", 8
        while position < len(data):
            size, kind = struct.unpack(">I4s", data[position:position + 8])
            body = data[position + 8:position + 8 + size]
            checksum = struct.unpack(">I", data[position + 8 + size:position + 12 + size])[0]
            self.assertEqual(checksum, zlib.crc32(kind + body))
            chunks += body if kind == b"IDAT" else b""
            position += 12 + size
        self.assertEqual(len(zlib.decompress(chunks)), 21 * (1 + 3 * 33))

    def test_failures(self):
        self.extract("@scene:64x48", "-q", "-o", "f.json")
        errors = self.run_it("draw", "@scene:65x48", "f.json", "-o", "x.png", status=FAILED)[1]
        self.assertIn("64x48", errors)
        self.run_it("draw", "none.png", "-o", "x.png", status=FAILED)
        self.run_it("draw", "@scene:65x48", "none.csv", "-o", "x.png", status=FAILED)
        self.run_it("draw", "@scene:65x48", "-o", "none/x.png", status=FAILED)
        self.assertEqual(self.files(), ["f.json"])


class DrawMatches(Case):
    """Two flat pictures of 40x30 and 50x20, two features each, at known places."""
    INLIER, OUTLIER = (86, 180, 233), (213, 94, 0)

    def setUp(self):
        super().setUp()
        self.write("a.pgm", pgm(40, 30, lambda x, y: 100))
        self.write("b.pgm", pgm(50, 20, lambda x, y: 200))
        self.write("a.csv", b"x,y,sigma,orientation\n10,5,2,0\n20,25,2,0\n")
        self.write("b.csv", b"x,y,sigma,orientation\n30,5,2,0\n40,15,2,0\n")

    def draw(self, matches, status=DONE):
        self.write("m.csv", matches)
        _, errors = self.run_it("draw", "a.pgm", "b.pgm", "m.csv", "a.csv", "b.csv", "-o", "x.ppm", status=status)
        if status != DONE:
            return None, errors
        width, height, pixels = read_ppm(self.read("x.ppm"))
        self.assertEqual((width, height), (94, 30))
        return lambda x, y: tuple(pixels[3 * (y * width + x):3 * (y * width + x) + 3]), errors

    def near(self, colour, pixel):
        return max(abs(c - p) for c, p in zip(colour, pixel)) < 60

    def test_side_by_side(self):
        pixel, errors = self.draw(b"index_a,index_b,distance,inlier\n")
        self.assertIn("0 matches, 0 inliers", errors)
        expected = ((0, 0, 100), (39, 29, 100), (40, 0, 0), (43, 29, 0), (44, 0, 200), (93, 19, 200), (93, 20, 0))
        for x, y, value in expected:
            self.assertEqual(pixel(x, y), (value,) * 3)

    def test_lines_and_colours(self):
        pixel, errors = self.draw(b"index_a,index_b,distance,inlier\n0,0,1,1\n1,1,1,0\n")
        self.assertIn("a.pgm, b.pgm: 94x30, 2 matches, 1 inliers -> x.ppm", errors)
        for x in (20, 30, 41, 50, 60):  # from (10, 5) to (44 + 30, 5)
            self.assertTrue(self.near(self.INLIER, pixel(x, 5)), (x, pixel(x, 5)))
        self.assertEqual(pixel(8, 12), (100,) * 3)
        middle = pixel(52, 20)  # of (20, 25) to (44 + 40, 15): half transparent over black
        self.assertGreater(middle[0], middle[2] + 40)
        self.assertGreater(middle[0], middle[1] + 20)

    def test_right_matches_lie_on_top(self):
        for rows in (b"0,0,1,1\n0,0,1,0\n", b"0,0,1,0\n0,0,1,1\n"):
            pixel, _ = self.draw(b"index_a,index_b,distance,inlier\n" + rows)
            self.assertTrue(self.near(self.INLIER, pixel(42, 5)), pixel(42, 5))

    def test_without_verification(self):
        pixel, errors = self.draw(b"index_a,index_b,distance\n0,0,1\n1,1,1\n")
        self.assertIn("2 matches -> x.ppm", errors)
        self.assertFalse(self.near(pixel(30, 5), pixel(52, 20)))
        self.assertNotEqual(pixel(30, 5), (100,) * 3)

    def test_extracts_as_match_does(self):
        scenes = ["@scene:160x120:3", "@scene:150x130:3"]
        options = ["--max-features", "60", "--upright"]
        for name in ("m.csv", "m.json", "m.txt"):
            self.run_it("match", *scenes, *options, "--verify", "homography", "-o", name, "-q")
            self.run_it("draw", *scenes, name, *options, "-o", name + ".png")
        for name, scene in zip(("a.npz", "b.npz"), scenes):
            self.extract(scene, *options, "-o", name, "-q")
        self.run_it("draw", *scenes, "m.csv", "a.npz", "b.npz", "-o", "files.png", "-q")
        self.assertEqual(self.read("m.csv.png"), self.read("files.png"))
        self.assertEqual(self.read("m.csv.png"), self.read("m.json.png"))
        one = pgm(160, 120)
        self.run_it("match", "-", scenes[1], "-o", "s.csv", "-q", stdin=one)
        self.run_it("draw", "-", scenes[1], "s.csv", "-o", "s.png", stdin=one)

    def test_failures(self):
        before = self.files()
        for rows in (b"2,0,1,1\n", b"0,-1,1,1\n", b"0,0,1,2\n", b"x\n"):
            _, errors = self.draw(b"index_a,index_b,distance,inlier\n" + rows, status=FAILED)
            self.assertIn("m.csv", errors)
        self.assertEqual(self.files(), sorted(before + ["m.csv"]))
        for arguments in (("a.pgm", "none.pgm", "m.csv"), ("a.pgm", "b.pgm", "none.csv"), ("a.csv", "b.pgm", "m.csv"),
                          ("a.pgm", "b.pgm", "m.csv", "a.csv", "none.csv")):
            self.run_it("draw", *arguments, "-o", "x.png", status=FAILED)
        self.write("m.csv", b"index_a,index_b,distance,inlier\n0,0,1,1\n")
        self.run_it("draw", "a.pgm", "b.pgm", "m.csv", "a.csv", "b.csv", "-o", "none/x.png", status=FAILED)
        self.write("c.ppm", pgm(4, 4))
        self.run_it("draw", "c.ppm", "b.pgm", "m.csv", "a.csv", "b.csv", "-o", "c.ppm", status=FAILED)
        self.assertEqual(self.read("c.ppm"), pgm(4, 4))


class Machine(Case):
    def test_info(self):
        output, errors = self.run_it("info")
        self.assertEqual(errors, "")
        for text in ("hartsift ", "PNG images", "CPU level", "CPU threads", "GPU", "describe: "):
            self.assertIn(text, output.decode())
        facts = json.loads(self.run_it("info", "--json")[0])
        self.assertGreaterEqual(facts["cpu"]["threads"], 1)
        self.assertIn("extrema", facts["stages"])
        if not facts["gpu"]["usable"]:
            self.assertTrue(facts["gpu"]["reason"])

    def test_info_follows_the_options(self):
        stages = json.loads(self.run_it("info", "--json", "--device", "cpu", "--variant", "blur=ref")[0])["stages"]
        self.assertEqual(stages["blur"], "ref")
        output, _ = self.run_it("info", "--json", "--device", "cpu", environment={"HARTSIFT_CPU": "ref"})
        stages = json.loads(output)["stages"]
        self.assertEqual({stages[name] for name in ("blur", "extrema", "orient", "describe")}, {"ref"})

    def test_selftest(self):
        output, errors = self.run_it("selftest")
        self.assertEqual(errors, "")
        self.assertTrue(output.decode().endswith("all agree\n"))
        self.assertNotIn("FAILED", output.decode())
        self.assertIn("passed    default, 7 threads", output.decode())

    def test_bench_records(self):
        output, errors = self.run_it("bench", "@scene:64x48", "@scene:33x97:2", "--repeats", "2", "--threads", "2",
                                     "--device", "cpu", "--profile", "opencv", "--json", "records.json")
        self.assertEqual(errors, "")
        self.assertEqual(output.decode().count("\n"), 4)  # head, rule, two rows
        records = json.loads(self.read("records.json"))
        self.assertEqual([(r["name"], r["width"], r["height"]) for r in records],
                         [("@scene:64x48", 64, 48), ("@scene:33x97:2", 33, 97)])
        for record in records:
            self.assertEqual((record["profile"], record["device"], record["threads"]), ("opencv", "cpu", 2))
            self.assertGreater(record["features"], 0)
            self.assertGreater(record["min_ms"], 0)
            self.assertLessEqual(record["min_ms"], record["median_ms"])
            self.assertLessEqual(record["median_ms"], record["p90_ms"])

    def test_bench_goes_on_after_a_failed_image(self):
        output, errors = self.run_it("bench", "absent.png", "@scene:64x48", "--repeats", "1", "--threads", "1",
                                     "--device", "cpu", "--json", "-", status=FAILED)
        self.assertIn("absent.png", errors)
        self.assertEqual([record["name"] for record in json.loads(output)], ["@scene:64x48"])

    def test_bench_writes_nothing_when_nothing_could_be_timed(self):
        self.run_it("bench", "absent.png", "--device", "cpu", "--json", "records.json", status=FAILED)
        self.assertEqual(os.listdir(self.folder), [])

    def test_bench_against_sets_both_programs_alike(self):
        errors = self.run_it("bench", "--against", "opencv", "--profile", "lowe", status=USAGE)[1]
        self.assertIn("--profile", errors)

    def test_printed_digests_are_those_stored(self):
        printed = self.run_it("selftest", "--print-digests")[0].decode()
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../pipeline/cli/selftest_digests.c")
        with open(source, encoding="utf-8") as file:
            stored = [line.split() for line in file if "UINT64_C" in line]
        self.assertGreater(printed.count("UINT64_C"), 10)
        if stored:
            self.assertEqual(stored, [line.split() for line in printed.splitlines() if "UINT64_C" in line])


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and os.path.exists(sys.argv[1]):
        COMMAND = os.path.abspath(sys.argv.pop(1))
    if not COMMAND:
        print("skipped: HARTSIFT_COMMAND does not name the command")
        sys.exit(SKIPPED)
    unittest.main()
