"""The command's tests with its program for Windows under Wine: those of test_*.py that do not depend on POSIX, and those of
Windows alone: drives, backslashes, patterns, names, lists with CRLF, a full disk, Ctrl-C, variables, and files equal to this
system's.

usage: check_windows.py [MODULE[.CLASS[.TEST]]]...    (default: this file's and those of a quick run; HARTSIFT_TESTS=whole: all)
HARTSIFT_COMMAND is a script that runs the program in Wine, HARTSIFT_WINDOWS_FOLDER its folder, HARTSIFT_HOST_COMMAND the command of
this system.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")]
import command_case  # noqa: E402
from batch_case import EndlessCase, blots, scenes  # noqa: E402
from command_case import COMMAND, DONE, FAILED, USAGE, ResultWithReasons, built_with  # noqa: E402

DATA = pathlib.Path(os.environ.get("HARTSIFT_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))
MODULES = ("test_batch", "test_batch_resume", "test_cli", "test_cli_cameras", "test_cli_database", "test_cli_doubtful",
           "test_cli_earlier_matches", "test_cli_exif", "test_cli_hostile", "test_cli_image_files", "test_cli_levels", "test_cli_pairs",
           "test_cli_pictures", "test_cli_scale", "test_cli_sizes", "test_cli_terminal", "test_colmap_program", "test_match_stops",
           "test_merge")
QUICK = ("test_batch.Inputs", "test_cli.Extract", "test_cli.Usage")
_CONSOLE = "a terminal of this system is no console of Windows"
_SIGNALS = "Windows has no signals; Ctrl-C and a killed batch are tested here"
_SIZES = "Windows has no limits of files' sizes; a full disk is tested here"
_NAMES = "Windows forbids such names"
_SCRIPTS = "Windows starts no scripts of a shell"
_TIMES = "times of files are in steps of 100 ns"
_OPEN = "Windows has no names of open files"
_TIFF = "the build for Windows reads no TIFF"
_LINKS = "Wine shows links as what they lead to, and hides those to nothing"
_PIPES = "Windows has no pipes with names in folders"
#: Tests, or classes of them, that need what Windows or Wine has not.
NOT_THERE = {
    "test_batch.Failures.test_broken_among_good": _LINKS,
    "test_batch.Failures.test_staging_folder_of_another_user": "Windows does not tell files of others",
    "test_batch.Failures.test_staging_folder_that_is_not_its_own": _LINKS,
    "test_batch.Failures.test_write_protected_folder": "Wine's folder belongs to one user",
    "test_batch.Inputs.test_links_to_folders": _LINKS,
    "test_batch.Inputs.test_names_ended_by_zero_bytes": _NAMES,
    "test_batch.Inputs.test_odd_names": _NAMES,
    "test_batch.Options.test_progress_is_for_terminals": _CONSOLE,
    "test_batch_resume.Resuming.test_ignored_signals_stay_ignored": _SIGNALS,
    "test_batch_resume.Resuming.test_killed_while_the_manifest_is_written": "its lock is not seen in Wine",
    "test_batch_resume.Resuming.test_signals_are_seen_while_nobody_reads_standard_output": _SIGNALS,
    "test_batch_resume.Resuming.test_signals_reach_no_other_thread": _SIGNALS,
    "test_batch_resume.Resuming.test_signals_stop_cleanly": _SIGNALS,
    "test_batch_resume.Sources.test_rows_tell_what_was_read": _TIMES,
    "test_batch_resume.Sources.test_touched_photographs_are_kept": _TIMES,
    "test_cli.Extract.test_closed_standard_output_is_quiet": "Wine does not say that nobody reads a pipe",
    "test_cli.Extract.test_interrupted_leaves_nothing": _SIGNALS,
    "test_cli.Extract.test_json_lines": _NAMES,
    "test_cli.Extract.test_names_steer_no_terminal": _NAMES,
    "test_cli_cameras.Folders.test_odd_names_of_folders": _NAMES,
    "test_cli_hostile.Pictures.test_limit_that_nobody_gave": "Windows has no limits of address spaces",
    "test_cli_hostile.Pictures.test_what_a_pipe_had_is_not_read_again": _OPEN,
    "test_cli_image_files.Damage.test_batch_counts_and_names": _TIFF,
    "test_cli_image_files.Damage.test_damage_is_named_and_strict_refuses": _TIFF,
    "test_cli_image_files.Damage.test_sound_files_say_nothing": _TIFF,
    "test_cli_image_files.Pages.test_copies_alone_and_raw_data_are_refused": _TIFF,
    "test_cli_image_files.Pages.test_first_page_stays_where_nothing_says_otherwise": _TIFF,
    "test_cli_image_files.Pages.test_full_page_is_taken": _TIFF,
    "test_cli_image_files.Pages.test_masks_are_passed_over": _TIFF,
    "test_cli_image_files.Samples.test_cmyk": _TIFF,
    "test_cli_image_files.Samples.test_declared_range": _TIFF,
    "test_cli_image_files.Samples.test_float_from_0_to_1_needs_no_range": _TIFF,
    "test_cli_image_files.Samples.test_signed_and_float": _TIFF,
    "test_cli_image_files.Streams.test_streams_that_become_images": _TIFF,
    "test_cli_levels.Stats.test_floats_without_a_range": _TIFF,
    "test_cli_levels.Stats.test_outputs": _OPEN,
    "test_cli_levels.Stats.test_pipes_with_a_late_writer": _PIPES,
    "test_cli_sizes.Masks.test_a_folder_with_a_line_break_stays_in_its_line": _NAMES,
    "test_cli_sizes.Masks.test_a_mask_that_can_no_longer_be_read_is_noticed": _LINKS,
    "test_cli_sizes.Masks.test_masks_that_match_nothing": "Windows finds names in letters of either case",
    "test_cli_terminal.Limits": _SIZES,
    "test_cli_terminal.Terminals": _CONSOLE,
    "test_colmap_program.PassedOn": _SCRIPTS,
    "test_colmap_program.Texts.test_version_of_the_colmap_that_maps": _SCRIPTS,
    "test_match_stops.Stops.test_disk_that_fills": _SIZES,
    "test_match_stops.Stops.test_told_to_end": _SIGNALS,
    "test_match_stops.Stops.test_told_to_end_before_the_first_pair": _SIGNALS,
    "test_merge.Refused.test_interrupted_leaves_nothing": _SIGNALS,
    "test_merge.Refused.test_links_in_the_output": _LINKS,
}
#: Where a part of the bytes was written, Wine's reason is not ENOSPC.
FULL = "No space left|Input/output error"
CONTROL_C_EXIT = 0xC000013A & 0xFF  # what Wine gives of it


class OnWindows(EndlessCase):
    def drive(self, *names):
        """Returns a path as Windows writes it."""
        return "Z:" + self.path(*names).replace("/", "\\")

    def test_names_and_patterns(self):
        """Drives, backslashes, patterns without a shell, letters outside of every code page, and lists with CRLF."""
        names = ["a", "Größe", "写真", "😀"]
        for seed, name in enumerate(names):
            self.write(f"in/{name}.pgm", blots(90, 70, seed))
        self.write("in/.hidden.pgm", b"")
        self.extract("in/a.pgm", "in/Größe.pgm", "in/写真.pgm", "in/😀.pgm", "-o", "plain/", "-q")
        self.assertEqual(self.files("plain"), sorted(f"{name}.npz" for name in names))
        for number, pattern in enumerate(("in\\*.pgm", self.drive("in") + "\\*.pgm", self.drive("in") + "/*")):
            self.extract(pattern, "-o", self.drive(f"found{number}") + "\\", "-q")
            self.assertEqual(self.tree(f"found{number}"), self.tree("plain"))
        _, errors = self.extract("in\\*.png", "-o", "none/", status=FAILED)
        self.assertIn("in/*.png: ", errors)
        self.write("list.txt", "".join(f"in\\{name}.pgm\r\n" for name in names).encode())
        self.batch("list.txt", "-o", "listed")
        self.batch("in", "-o", "folder")
        self.assertEqual({name: data for name, data in self.tree("listed").items() if name.endswith(".npz")},
                         {f"in/{name}": data for name, data in self.tree("plain").items()})
        self.assertEqual({name: data for name, data in self.tree("folder").items() if name.endswith(".npz")}, self.tree("plain"))
        _, errors = self.extract("写真/none.pgm", "-o", "none/", status=FAILED)
        self.assertIn("写真/none.pgm: cannot be opened: No such file", errors)

    def test_full_disk(self):
        os.mkdir(self.path("disk"))
        mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "hartsift", self.path("disk")]
        if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
            self.skipTest("no right to mount a small disk")
        self.addCleanup(subprocess.run, ["umount", self.path("disk")], check=True)
        self.write("photo.pgm", blots(320, 240, 1))
        for name in ("disk/x.npz", "disk/x.csv", "disk/x.json"):
            self.assertRegex(self.extract("photo.pgm", "-o", name, status=FAILED)[1], FULL)
            self.assertEqual(self.files("disk"), [])
        self.list_of(scenes(12, "120x90"))
        self.batch("list.txt", "-o", "whole")
        errors = self.batch("list.txt", "-o", "disk/out", status=FAILED)[1]
        self.assertRegex(errors, FULL)
        subprocess.run(["mount", "-o", "remount,size=8m", self.path("disk")], check=True)
        self.batch("list.txt", "-o", "disk/out", "--resume")
        self.assertEqual(self.tree("disk/out"), self.tree("whole"))

    def test_control_c(self):
        """Wine passes SIGINT on as the event of Ctrl-C. A file that is being written is removed."""
        for _ in range(50):
            run = subprocess.Popen([COMMAND, "extract", "@scene:1000x800:1", "--contrast", "0", "-o", "f.json"], cwd=self.folder,
                                   env=self.environment(), stderr=subprocess.DEVNULL)
            while not os.listdir(self.folder) and run.poll() is None:
                time.sleep(0.001)
            run.send_signal(signal.SIGINT)
            if run.wait(300) != DONE and not os.path.exists(self.path("f.json")):
                break
            os.unlink(self.path("f.json"))  # the command had written the file before
        else:
            self.fail("every run ended before its signal")
        self.assertEqual((run.returncode, os.listdir(self.folder)), (CONTROL_C_EXIT, []))

    def test_control_c_and_resumed(self):
        """A batch ends tidily, and says how to continue; so does one that was killed, with the result of one run."""
        self.endless_list_of(scenes(20, "120x90"))
        self.batch("list.txt", "-o", "whole")
        for number in (signal.SIGINT, signal.SIGKILL):
            shutil.rmtree(self.path("out"), ignore_errors=True)
            run = self.start("endless.txt", "-o", "out", "--jobs", "1", "--threads", "1")
            self.wait_for(lambda: self.rows_done() >= 3)
            errors = self.end(run, number)
            if number == signal.SIGINT:
                self.assertIn("stopped by SIGINT", errors)
                self.assertEqual([name for name in self.files("out") if name.startswith(".")], [])
            kept = min(self.rows_done(), 20)
            self.assertIn(f"{kept} kept", self.batch("list.txt", "-o", "out", "--resume")[1])
            self.assert_same_outputs()

    def test_variables_with_other_letters(self):
        """HARTSIFT_COLMAP, and the variable that keeps two programs from starting each other without end."""
        program = os.path.join(os.path.dirname(COMMAND), "hartsift-colmap")
        os.mkdir(self.path("写真 é"))
        for copied, status, words in (("hartsift.exe", USAGE, "mapper"), ("hartsift-colmap.exe", FAILED, "needs COLMAP")):
            shutil.copy(os.path.join(os.environ["HARTSIFT_WINDOWS_FOLDER"], copied), self.path("写真 é", "colmap.exe"))
            for named in (self.path("写真 é/colmap.exe"), self.drive("写真 é", "colmap.exe")):
                run = subprocess.run([program, "mapper", "--x", "y"], env={**self.environment(), "HARTSIFT_COLMAP": named}, cwd=self.folder,
                                     check=False, timeout=300, capture_output=True)
                self.assertEqual(run.returncode, status, run.stderr)
                self.assertIn(words, run.stderr.decode())

    def test_files_equal_those_of_this_system(self):
        """Features and databases, of photographs too: of all with HARTSIFT_TESTS=whole."""
        host = os.environ.get("HARTSIFT_HOST_COMMAND", "")
        if not os.access(host, os.X_OK):
            self.skipTest("HARTSIFT_HOST_COMMAND names no command of this system")
        kinds = [kind for part, kind in (("png", "png"), ("jpeg", "jpe?g|jpe|jfif|mpo")) if built_with(part)]
        found = [path for path in sorted(DATA.rglob("*")) if re.fullmatch("[.](" + "|".join(["p[bgp]m", *kinds]) + ")", path.suffix.lower())]
        if os.environ.get("HARTSIFT_TESTS") != "whole":
            found = [path for path in found if 20000 < path.stat().st_size < 300000][::8][:6]
        self.list_of([*scenes(4, "160x120"), *map(str, found)])
        output = {"batch": [], "batch .db": [], "match": [], "files": [], "database": []}
        for name, command in (("there", COMMAND), ("here", host)):
            self.run_on_list(command, ["batch", "list.txt", "-o", name], output["batch"])
            output["files"].append(self.tree(name))
            manifest = output["files"][-1]["manifest.csv"]  # times of files are in steps of 100 ns on Windows
            output["files"][-1]["manifest.csv"] = re.sub(rb"(,\d{17})\d\d(,[0-9a-f]{16}\n)", rb"\1\2", manifest)
            if built_with("sqlite"):
                self.run_on_list(command, ["batch", "list.txt", "-o", f"{name}.db"], output["batch .db"])
                self.run_on_list(command, ["match", "--database", f"{name}.db", "--pairs", "sequential:2"], output["match"])
                with contextlib.closing(sqlite3.connect(self.path(f"{name}.db"))) as database:
                    database.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
                    output["database"].append(list(database.iterdump()))
        for what, both in output.items():
            self.assertTrue(both[:1] == both[1:], f"{what}: differs")
        print(f"{len(found)} photographs and 4 scenes: {len(output['files'][0])} files and {len((output['database'] or [[]])[0])} statements of a "
              "database are equal", flush=True)

    def run_on_list(self, command, arguments, statuses):
        run = subprocess.run([command, *arguments], cwd=self.folder, env=self.environment(), check=False, capture_output=True)
        self.assertIn(run.returncode, (DONE, FAILED), run.stderr)  # some photographs are damaged
        statuses.append(run.returncode)


class Suite:
    """Loads the tests that are named, without those that cannot run there."""

    def __init__(self, names):
        self.tests, self.seen = unittest.TestSuite(), set()
        for name in names:
            self.take(unittest.defaultTestLoader.loadTestsFromName(name))

    def take(self, tests):
        for test in tests:
            if isinstance(test, unittest.TestSuite):
                self.take(test)
            elif test.id() not in self.seen:
                self.seen.add(test.id())
                reason = NOT_THERE.get(test.id(), NOT_THERE.get(test.id().rpartition(".")[0]))
                if reason is None:
                    self.tests.addTest(test)


def run(names, is_whole):
    command_case.main = lambda: None  # some modules call it when they are imported
    suite = Suite(names)
    if is_whole:
        unknown = NOT_THERE.keys() - suite.seen - {name.rpartition(".")[0] for name in suite.seen}
        assert not unknown, f"no such tests: {unknown}"
    left_out = len(suite.seen) - suite.tests.countTestCases()
    result = unittest.TextTestRunner(resultclass=ResultWithReasons, verbosity=2 if "HARTSIFT_SLOW" in os.environ else 1).run(suite.tests)
    ran = suite.tests.countTestCases() - len(result.skipped)
    print(f"{ran} tests ran under Wine, {len(result.skipped)} were skipped, {left_out} cannot run there")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.modules["check_windows"] = sys.modules["__main__"]
    whole = os.environ.get("HARTSIFT_TESTS") == "whole"
    sys.exit(run(sys.argv[1:] or ["check_windows", *(MODULES if whole else QUICK)], whole and not sys.argv[1:]))
