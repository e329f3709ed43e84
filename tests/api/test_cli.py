"""The command hartsift for users and scripts: exit statuses, messages, output streams, complete files or none."""
import gzip
import json
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time
import unittest

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, CommandCase, DONE, FAILED, NO_DEVICE, USAGE, is_sanitized, is_short, main, pgm

SUBCOMMANDS = ("extract", "batch", "match", "merge", "draw", "stats", "hist", "convolve", "info", "selftest", "bench")
EXTRACT_OPTIONS = (
    "output format profile device threads max-features selection contrast edge first-octave octaves scales max-orientations "
    "upright norm descriptor mask region grid equalize dsp dsp-sizes dsp-smallest dsp-largest affine keypoints upsample sigma input-blur exif no-exif decode-scale variant "
    "max-memory max-pixels json quiet help"
).split()


class Texts(CommandCase):
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

    def test_help_fits_a_prompt(self):
        for command in SUBCOMMANDS:
            output, _ = self.run_it(command, "--help")
            self.assertLessEqual(len(output.splitlines()), {"extract": 130, "batch": 80, "match": 80}.get(command, 45))
            for line in output.decode().splitlines()[1:]:
                self.assertLessEqual(len(line), 80, line)

    def test_man_pages(self):
        """There is one page per command, which contains everything in its help."""
        for command in ("", *SUBCOMMANDS):
            words = [command] if command else []
            output, _ = self.run_it(*words, "--man")
            page = output.decode().replace("\\-", "-")
            name = "-".join(["hartsift", *words])
            self.assertTrue(page.startswith(f".TH {name.upper()} 1 "), page[:60])
            self.assertIn(f"\n.SH NAME\n{name} - ", page)
            help_text = self.run_it(*words, "--help")[0].decode()
            options = set(re.findall(r" (--[a-z][a-z-]+)", help_text.split("\nOptions:\n")[1].split("\nExamples:\n")[0]))
            self.assertEqual([option for option in options if option not in page], [], name)
            paragraphs = " ".join(help_text.split("\nOptions:\n")[0].split())
            for paragraph in re.findall(r"\.PP\n(.*)", page)[:1]:
                self.assertIn(paragraph.lstrip("\\&"), paragraphs)
        everything = self.run_it("match", "--man")[0].decode().replace("\\-", "-")
        for option in ("--contrast", "--ratio", "--pairs"):
            self.assertIn(f"\\fB{option}\\fR", everything)

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_man_pages_are_good_roff(self):
        for command in SUBCOMMANDS:
            page = self.run_it(command, "--man")[0]
            shown = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", "-"], input=page,
                                   env={**os.environ, "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": "80"},
                                   capture_output=True, check=False)
            self.assertEqual((shown.returncode, shown.stderr), (0, b""), command)

    @unittest.skipUnless(shutil.which("zsh") and shutil.which("fish"), "zsh or fish is not installed")
    def test_completions(self):
        for shell in ("bash", "zsh", "fish"):
            output, _ = self.run_it("--completion", shell)
            for option in EXTRACT_OPTIONS:
                self.assertIn((" -l " if shell == "fish" else "--").encode() + option.encode(), output)
            self.write(shell, output)
            subprocess.run([shell, "-n", shell], cwd=self.folder, check=True)
        self.assertIn("bash, zsh or fish", self.run_it("--completion", "csh", status=USAGE)[1])

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        self.write("script", self.run_it("--completion", "fish")[0])
        for typed, expected in (("hartsift ex", "extract"), ("hartsift extract --max-f", "--max-features"),
                                ("hartsift extract --norm ro", "root"), ("hartsift draw --circle", "--circle-scale")):
            script = f"source script; complete -C '{typed}'"
            found = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.folder, capture_output=True, check=True)
            self.assertEqual([line.split("\t")[0] for line in found.stdout.decode().splitlines()], [expected])

    def test_bash_completes(self):
        self.write("script", self.run_it("--completion", "bash")[0])
        for words, expected in (("hartsift ex", "extract"), ("hartsift extract --max-f", "--max-features"),
                                ("hartsift extract --norm ro", "root"), ("hartsift draw --circle", "--circle-scale")):
            script = (f". ./script; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _hartsift; "
                      'echo "${COMPREPLY[*]}"')
            found = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, check=True).stdout
            self.assertEqual(found.decode().strip(), expected)


class Usage(CommandCase):
    WRONG = (
        (["--threads", "x"], "--threads", "whole number"), (["--threads"], "--threads", "needs a value"),
        (["--max-features", "-1"], "--max-features", "from 0"), (["--contrast", "2"], "--contrast", "from 0 to 1"),
        (["--edge", "0"], "--edge", "from 1 to 1000"), (["--first-octave", "4"], "--first-octave", "-1 to 3"),
        (["--octaves", "33"], "--octaves", "0 to 32"), (["--scales", "0"], "--scales", "1 to 8"),
        (["--max-orientations", "19"], "--max-orientations", "0 to 18"), (["--upright=1"], "--upright", "no value"),
        (["--norm", "l1"], "--norm", "l2 or root"), (["--descriptor", "u16"], "--descriptor", "u8, f32 or none"),
        (["--profile", "sift"], "--profile", "lowe, opencv"), (["--device", "tpu"], "--device", "cuda:N"),
        (["--format", "xml"], "--format", "colmap, npz"), (["--region", "1,2,3"], "--region", "X,Y,W,H"),
        (["--upsample", "none"], "--upsample", "aligned, half-pixel or opencv"), (["--sigma", "0"], "--sigma", "0.8 to 4"),
        (["--input-blur", "9"], "--input-blur", "0 to 4"), (["--variant", "x"], "--variant", "STAGE=NAME"),
        (["--max-memory", "1Q"], "--max-memory", "500M"), (["--max-pixels", "many"], "--max-pixels", "whole number"),
        (["--mask"], "--mask", "IMAGE"), (["--keypoints"], "--keypoints", "FILE"), (["-o"], "--output", "FILE|DIR"),
        (["--frobnicate"], "--frobnicate", "--help"), (["-z"], "-z", "--help"),
        (["--max-featuers", "5"], "--max-featuers", "did you mean '--max-features'?"),
        (["--max", "3"], "--max", "--max-pixels"),
        (["-o", "x.zip"], "--output", ".npz"), (["--json"], "--json", "-o"),
        (["--format", "openmvg"], "--format", "-o"), (["second.png"], "--output", "directory"),
        (["--keypoints", "k.csv", "--mask", "m.png"], "--mask", "--keypoints"),
        (["--keypoints", "k.csv", "--selection", "scale"], "--selection", "--keypoints"),
        # Errors that only the library detects are also reported in terms of the option.
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

    def test_words_in_place_of_options(self):
        for words, same in ((["help"], ["--help"]), (["help", "match"], ["match", "--help"]), (["version"], ["--version"]),
                            (["-V"], ["--version"])):
            self.assertEqual(self.run_it(*words), self.run_it(*same))
        self.assertIn("did you mean 'extract'?", self.run_it("extarct", status=USAGE)[1])
        self.assertIn("did you mean 'match'?", self.run_it("help", "mtach", status=USAGE)[1])
        self.assertIn("did you mean 'version'?", self.run_it("versoin", status=USAGE)[1])
        self.assertEqual(self.run_it("help", "help"), self.run_it("help"))
        self.assertEqual(self.run_it("help", "version"), self.run_it("help"))
        self.assertNotIn("did you mean", self.run_it("paint", status=USAGE)[1])

    def test_help_speaks_of_its_command(self):
        for command in SUBCOMMANDS:
            options = self.run_it(command, "--help")[0].decode().split("\nOptions:\n")[1]
            others = [f"{other}:" for other in SUBCOMMANDS] + [f"({other}:" for other in SUBCOMMANDS]
            self.assertEqual([other for other in others if f" {other} " in " ".join(options.split())], [], command)
        self.assertNotIn("standard output,", " ".join(self.run_it("batch", "--help")[0].decode().split("--format FMT")[1].split()))
        self.assertNotIn("keypoints", self.run_it("hist", "--help")[0].decode().split("--mask")[1].split("--")[0])

    def test_folder_in_place_of_images(self):
        os.makedirs(self.path("photos"))
        self.assertIn("hartsift batch", self.extract("photos", "-o", "out/", status=USAGE)[1])
        self.assertEqual(self.files(), ["photos"])

    def test_commands_and_operands(self):
        for arguments, expected in (([], "command"), (["frob"], "'frob'"), (["extract"], "IMAGE..."),
                                    (["info", "x"], "'x'"), (["draw", "@scene"], "--output"),
                                    (["draw", "@scene", "-o", "x.gif"], ".png"),
                                    (["draw", "a", "b", "c", "d", "e", "f", "-o", "x.png"], "'f'"),
                                    (["draw", "a", "b", "c", "d", "-o", "x.png"], "features of both images"),
                                    (["draw", "a", "b", "c", "--mask", "d", "-o", "x.png"], "--mask"),
                                    (["draw", "a", "b", "c", "--circle-scale", "2", "-o", "x.png"], "--circle-scale"),
                                    (["draw", "-", "-", "c", "-o", "x.png"], "'-' is given twice")):
            output, errors = self.run_it(*arguments, status=USAGE)
            self.assertEqual(output, b"")
            self.assertIn(expected, errors)

    def test_several_images_into_a_file(self):
        self.write("plain", b"kept")
        errors = self.extract("@scene:64x64", "@scene:65x64", "-o", "plain", status=USAGE)[1]
        self.assertIn("directory", errors)
        self.assertEqual(self.read("plain"), b"kept")
        self.assertIn("directory", self.extract("@scene:64x64", "@scene:65x64", "-o", "new.csv", status=USAGE)[1])
        self.assertEqual(self.files(), ["plain"])
        self.extract("@scene:64x64", "@scene:65x64", "-o", "new.csv/")
        self.assertEqual(len(self.files("new.csv")), 2)

    def test_variants(self):
        for variant, expected in (("frob=ref", "names no stage"), ("describe=frob", "there is ref"), ("frob", "STAGE=NAME")):
            errors = self.extract("@scene:64x64", "--device", "cpu", "--variant", variant, status=USAGE)[1]
            self.assertIn(expected, errors)

    def test_device_of_the_environment(self):
        of_cpu = self.extract("@scene:64x64", "--device", "cpu")[0]
        for device in ("auto", "cpu", ""):
            self.assertEqual(self.extract("@scene:64x64", environment={"HARTSIFT_DEVICE": device})[0], of_cpu)
        errors = self.extract("@scene:64x64", environment={"HARTSIFT_DEVICE": "gpu"}, status=USAGE)[1]
        self.assertIn("expected auto, cpu", errors)

    def test_missing_device(self):
        errors = self.extract("@scene:64x64", "--device", "cuda:99", status=NO_DEVICE)[1]
        self.assertIn("99", errors)
        self.run_it("info", "--device", "cuda:99", status=NO_DEVICE)
        if b"not used" in self.run_it("info", "--device", "auto")[0]:
            for command in ("extract", "bench"):
                self.run_it(command, "@scene:64x64", "--device", "hybrid", status=NO_DEVICE)


class Extract(CommandCase):
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
        self.assertRegex(records[2]["way"], "^(cpu|gpu)-")
        self.assertRegex(records[2]["way_reason"], "[a-z]")
        self.assertIsNone(records[1]["way"])
        self.assertIsNone(records[1]["way_reason"])

    def test_json_of_a_name_that_is_no_utf8(self):
        name = os.path.join(os.fsencode(self.folder), b"a\xff\xc0\xaf\xed\xa0\x80.pgm")
        with open(name, "wb") as file:
            file.write(pgm(8, 8))
        output, _ = self.extract(name, "-o", "x.csv", "--json")
        self.assertIn("\ufffd", json.loads(output.decode("utf-8"))["image"])

    def test_names_steer_no_terminal(self):
        name, shown = "a\x1b[31m\n.pgm", "a?[31m?.pgm"
        self.write(name, pgm(8, 8))
        self.assertIn(shown + ": 8x8", self.extract(name, "-o", "b.npz")[1])
        self.assertIn(shown + ": 8x8", self.run_it("draw", name, "-o", "b.ppm")[1])
        self.assertIn(shown + " (0 features)", self.run_it("match", name, name, "-o", "b.csv")[1])
        self.write(name, b"P5 8 8 255\n")
        os.mkdir(self.path("images"))
        os.rename(self.path(name), self.path("images", name))
        for arguments in (["extract", "images/" + name, "-o", "b.npz"], ["draw", "images/" + name, "-o", "b.ppm"],
                          ["batch", "images", "-o", "out"]):
            errors = self.run_it(*arguments, status=FAILED)[1]
            self.assertNotIn("\x1b", errors)
            self.assertEqual(errors.count(shown), 1, errors)

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
    def test_interrupted_leaves_nothing(self):
        """If it is interrupted while writing, which is slow here, the command removes its unfinished file."""
        scene = "@scene:360x280:1" if is_short() else "@scene:1000x800:1"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU, signal.SIGUSR1, signal.SIGALRM):
            for _ in range(50):
                run = subprocess.Popen(["sh", "-c", 'ulimit -c 0; exec "$0" "$@"', COMMAND, "extract", scene,
                                        "--contrast", "0", "-o", "f.json"],
                                       cwd=self.folder, env=self.environment(), stderr=subprocess.DEVNULL)
                while not os.listdir(self.folder) and run.poll() is None:
                    time.sleep(0.001)
                run.send_signal(number)
                if run.wait(300) == -number and not os.path.exists(self.path("f.json")):
                    break
                os.unlink(self.path("f.json"))  # the command had written the file before the signal
            else:
                self.fail("every run ended before its signal")
            self.assertEqual(run.returncode, -number)
            self.assertEqual(os.listdir(self.folder), [])

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            for arguments in (["extract", "@scene:64x64"], ["extract", "@scene:64x64", "-o", "x.csv", "--json"],
                              ["--help"], ["--man"], ["info"], ["draw", "@scene:64x64", "-o", "-"]):
                errors = self.run_it(*arguments, status=FAILED, stdout=full)[1]
                self.assertIn("standard output", errors)
        self.extract("@scene:64x64", "-o", "/dev/full", "--format", "csv", status=FAILED)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_closed_standard_output_is_quiet(self):
        scene = "@scene:240x180" if is_short() else "@scene:640x480"
        for arguments in (["extract", scene, "-q"], ["--man"], ["draw", scene, "-o", "-"]):
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


class Options(CommandCase):
    SCENE = "@scene:320x240"
    SMALLER = "@scene:160x120" if is_short() else SCENE  # for results that are only compared

    def test_profile_is_overridden_wherever_it_stands(self):
        first = self.extract(self.SMALLER, "--profile", "colmap", "--contrast", "0.06", "-q")[0]
        last = self.extract("--contrast", "0.06", self.SMALLER, "-q", "--profile", "colmap")[0]
        plain = self.extract(self.SMALLER, "--profile", "colmap", "-q")[0]
        self.assertEqual(first, last)
        self.assertNotEqual(first, plain)

    def test_options_change_the_result(self):
        plain = self.extract(self.SMALLER, "-q")[0]
        for option in (["--contrast", "0.02"], ["--edge", "3"], ["--first-octave", "0"], ["--octaves", "1"],
                       ["--scales", "4"], ["--max-orientations", "1"], ["--upright"], ["--norm", "root"],
                       ["--descriptor", "f32"],
                       ["--upsample", "aligned"], ["--upsample", "opencv"], ["--sigma", "1.5"], ["--input-blur", "0.4"],
                       ["--max-features", "9"], ["--profile", "vlfeat"], ["--region", "10,10,100,100"]):
            self.assertNotEqual(self.extract(self.SMALLER, "-q", *option)[0], plain, option)
        for option in (["--threads", "3"], ["--device", "cpu"], ["--contrast", "0.04"],
                       ["--device", "cpu", "--variant", "blur=ref,orient=ref"]):
            self.assertEqual(self.extract(self.SMALLER, "-q", *option)[0], plain, option)

    def test_max_features(self):
        self.assertEqual(len(self.features(self.SCENE, "--max-features", "17")), 17)

    def test_selection(self):
        """The limit is an exact number unless whole levels are requested. Profile colmap requests whole levels, but only
        for its own limit."""
        whole = self.features(self.SCENE, "--profile", "colmap", "--max-features", "0")
        exact = self.features(self.SCENE, "--profile", "colmap", "--max-features", "40")
        levels = self.features(self.SCENE, "--profile", "colmap", "--max-features", "40", "--selection", "levels")
        self.assertEqual(self.features(self.SCENE, "--profile", "colmap"), whole)
        self.assertEqual(len(exact), 40)
        self.assertTrue(40 < len(levels) < len(whole))
        self.assertEqual(levels, whole[-len(levels):])
        self.assertNotEqual([whole[-len(levels) - 1][name] for name in ("octave", "level")],
                            [levels[0][name] for name in ("octave", "level")])
        self.assertEqual(exact, self.features(self.SCENE, "--profile", "colmap", "--max-features", "40", "--selection",
                                              "scale"))
        self.extract(self.SCENE, "--selection", "best", status=USAGE)

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
        # With 16 bits a small value is not black.
        self.write("faint.pgm", b"P5 320 240 65535\n" + struct.pack(">160H160H", *[1] * 160, *[0] * 160) * 240)
        self.assertEqual(self.features(self.SCENE, "--mask", "faint.pgm"), rows)
        self.write("small.pgm", pgm(319, 240))
        errors = self.extract(self.SCENE, "@scene:319x240:5", "--mask", "small.pgm", "-o", "out/", status=FAILED)[1]
        self.assertIn(f"{self.SCENE}: the mask is 319x240", errors)
        self.assertEqual(self.files("out"), ["scene_319x240_5.npz"])
        self.assertIn("--mask", self.extract(self.SCENE, "--mask", "none.png", status=FAILED)[1])

    def test_keypoints(self):
        for name in ("own.csv", "own.npz", "own.hsf"):
            self.extract(self.SMALLER, "-q", "-o", name)
            again = self.extract(self.SMALLER, "-q", "--keypoints", name, "--format", "csv")[0]
            if name != "own.npz":  # this format has no levels
                self.assertEqual(again, self.read("own.csv"), name)
            self.assertEqual(again.count(b"\n"), self.read("own.csv").count(b"\n"))
        lines = self.read("own.csv").decode().splitlines()
        columns = lines[0].split(",")
        values = lines[1].split(",")
        values[columns.index("sigma")] = "5000"
        values[columns.index("octave")] = values[columns.index("level")] = "0"
        self.write("huge.csv", "\n".join([lines[0], lines[2], ",".join(values)]).encode() + b"\n")
        output, errors = self.extract(self.SMALLER, "--keypoints", "huge.csv", "-o", "-")
        self.assertNotIn("cannot be described", errors)
        self.assertNotEqual(output.decode().splitlines()[2].split(",")[-128:], ["0"] * 128)
        values[columns.index("x")] = "5000"
        self.write("outside.csv", "\n".join([lines[0], lines[2], ",".join(values)]).encode() + b"\n")
        output, errors = self.extract(self.SMALLER, "--keypoints", "outside.csv", "-o", "-")
        self.assertIn("1 of 2 keypoints cannot be described (outside the picture or without a size)", errors)
        self.assertIn("number 2", errors)
        self.assertEqual(output.decode().splitlines()[2].split(",")[-128:], ["0"] * 128)
        self.assertIn("--keypoints", self.extract(self.SMALLER, "--keypoints", "none.csv", status=FAILED)[1])

    def test_compressed_features(self):
        self.extract(self.SMALLER, "-q", "-o", "own.key")
        self.write("own.key.gz", gzip.compress(self.read("own.key")))
        matches = self.run_it("match", "own.key", "own.key", "-o", "-")[0]
        self.assertEqual(self.run_it("match", "own.key.gz", "own.key.gz", "-o", "-")[0], matches)
        described = self.extract(self.SMALLER, "-q", "--keypoints", "own.key", "--format", "csv")[0]
        self.assertEqual(self.extract(self.SMALLER, "-q", "--keypoints", "own.key.gz", "--format", "csv")[0], described)

    def test_keypoints_without_descriptors(self):
        rows = self.features(self.SMALLER, "--descriptor", "none")
        places = [(row["x"], row["y"]) for row in rows]
        self.assertEqual(places, [(row["x"], row["y"]) for row in self.features(self.SMALLER)])


class Machine(CommandCase):
    def test_info(self):
        output, errors = self.run_it("info")
        self.assertEqual(errors, "")
        for text in ("hartsift ", "PNG images", "CPU level", "CPU threads", "GPU", "describe: "):
            self.assertIn(text, output.decode())
        facts = json.loads(self.run_it("info", "--json")[0])
        self.assertGreaterEqual(facts["cpu"]["threads"], 1)
        self.assertLess(facts["method_version"], facts["method_version_affine"])
        self.assertIn("detect", facts["stages"])
        if not facts["gpu"]["usable"]:
            self.assertTrue(facts["gpu"]["reason"])

    def test_info_says_what_can_be_done(self):
        """The command names each missing thing with a remedy, and nothing else. The memory that it prints is the available
        memory."""
        facts = json.loads(self.run_it("info", "--json")[0])
        names = {"png": "PNG", "jpeg": "JPEG", "tiff": "TIFF", "webp": "WebP", "zlib": "npz", "sqlite": "COLMAP", "cuda": "NVIDIA"}
        missing = [name for name, is_there in facts["build"].items() if not is_there]
        gpu_is_silent = facts["build"]["cuda"] and not facts["gpu"]["usable"]
        self.assertEqual(len(facts["advice"]), len(missing) + gpu_is_silent, facts["advice"])
        for name in missing:
            self.assertTrue([text for text in facts["advice"] if text.startswith(names[name]) and "build hartsift" in text])
        text = self.run_it("info")[0].decode()
        self.assertEqual("what can be done" in text, bool(facts["advice"]))
        self.assertEqual(facts["memory"]["file_bytes"], facts["memory"]["bytes"] // 2)
        self.assertLessEqual(facts["memory"]["bytes"], os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        self.assertIn(f"{facts['memory']['bytes'] / (1 << 20):.0f} MiB, of {facts['memory']['of']}", text)

    def test_info_follows_the_options(self):
        stages = json.loads(self.run_it("info", "--json", "--device", "cpu", "--variant", "blur=ref")[0])["stages"]
        self.assertEqual(stages["blur"], "ref")
        output, _ = self.run_it("info", "--json", "--device", "cpu", environment={"HARTSIFT_CPU": "ref"})
        stages = json.loads(output)["stages"]
        self.assertEqual({stages[name] for name in ("blur", "detect", "orient", "describe")}, {"ref"})

    # Under a sanitizer each selftest takes as long as all other tests of this file.
    if not (is_short() and is_sanitized()):
        def test_selftest_as_json(self):
            facts = json.loads(self.run_it("selftest", "--json")[0])
            self.assertTrue(facts["agree"])
            self.assertIn(f"(method {facts['method_version']})", facts["version"])
            self.assertGreaterEqual(facts["method_version_affine"], facts["method_version"])
            backends = {backend["name"]: backend for backend in facts["backends"]}
            self.assertEqual([backend["failed"] for backend in backends.values()], [0] * len(backends))
            self.assertGreater(backends["default, 7 threads"]["scenes"], 10)
            self.assertIn(facts["jpeg_decoder"]["state"], ("used", "absent", "different"))
            self.assertTrue(facts["jpeg_decoder"]["reason"])
            self.assertEqual([name for name, b in backends.items() if (b["scenes"] == 0) != bool(b["skipped"])], [])

        def test_selftest(self):
            output, errors = self.run_it("selftest")
            self.assertEqual(errors, "")
            self.assertTrue(output.decode().endswith("all agree\n"))
            self.assertNotIn("FAILED", output.decode())
            self.assertIn("passed    default, 7 threads", output.decode())
            self.assertRegex(output.decode(), "(skipped|passed|not used)  +JPEG on the GPU: .")

        def test_printed_digests_are_those_stored(self):
            printed = self.run_it("selftest", "--print-digests")[0].decode()
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../pipeline/cli/cmd_selftest.c")
            with open(source, encoding="utf-8") as file:
                stored = [line.split() for line in file if line.startswith('    {"') and "UINT64_C" in line]
            self.assertGreater(printed.count("UINT64_C"), 10)
            if stored:
                self.assertEqual(stored, [line.split() for line in printed.splitlines() if "UINT64_C" in line])


if __name__ == "__main__":
    main()
