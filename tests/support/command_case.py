"""Shared parts of the tests of the command hartsift: a folder for each test, runs of the command in it, pictures.

The command is HARTSIFT_COMMAND, or the program named as first argument. Needs nothing but Python's standard library.
"""
import contextlib
import ctypes
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

SKIPPED = 77
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
DONE, FAILED, USAGE, NO_DEVICE = 0, 1, 2, 3


def find_command():
    """Returns the command to test, "" if there is none. Removes an argument that names the command from the command line."""
    named = sys.argv[1:2]
    if named and not named[0].startswith("-") and os.path.isfile(named[0]) and os.access(named[0], os.X_OK):
        return os.path.abspath(sys.argv.pop(1))
    return os.environ.get("HARTSIFT_COMMAND", "")


COMMAND = find_command()


def take_signals():
    """Ends that this process, and so the commands that it starts, ignore signals: a shell without job control ignores some
    for background processes, and nohup ignores SIGHUP."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


take_signals()


class ResultWithReasons(unittest.TextTestResult):
    """Prints the reason of a skipped test, for the summary of all tests."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"skipped: {reason}", flush=True)


def built_with(part):
    """Whether the command has this part, as `info --json` names it. True without a command, which main reports."""
    if not COMMAND:
        return True
    return bool(json.loads(subprocess.run([COMMAND, "info", "--json"], capture_output=True, check=True).stdout)["build"].get(part))


def is_sanitized():
    """Whether the command was built with the address sanitizer."""
    if not COMMAND:
        return False
    with open(COMMAND, "rb") as program:
        return b"__asan_init" in program.read()


def is_short():
    """Whether tests take their short form, as in extent.h: under the address sanitizer, or as HARTSIFT_TESTS says."""
    wanted = os.environ.get("HARTSIFT_TESTS")
    return wanted == "short" or wanted != "whole" and is_sanitized()


def main():
    """Runs the tests of the calling script. Without a command, reports them as skipped."""
    if not COMMAND:
        print("skipped: HARTSIFT_COMMAND does not name the command")
        sys.exit(SKIPPED)
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=ResultWithReasons))


def give_up_privileges():
    """Drops root's capabilities, so that permissions apply to the next program; for preexec_fn."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) if os.geteuid() == 0 else ():
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def pgm(width, height, pixel=lambda x, y: (x * 7 + y * 13) % 256):
    """Returns a PGM file's bytes."""
    rows = (bytes(pixel(x, y) for x in range(width)) for y in range(height))
    return b"P5 %d %d 255\n" % (width, height) + b"".join(rows)


def read_ppm(data):
    """Returns width, height and RGB bytes of a binary PPM file."""
    fields = data.split(None, 4)
    assert fields[0] == b"P6" and fields[3] == b"255", data[:20]
    width, height = int(fields[1]), int(fields[2])
    return width, height, data[-3 * width * height:]


class CommandCase(unittest.TestCase):
    made = {}  # contents of files by the arguments that make them, for all tests of a program

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data)
        return name

    def read(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()

    def environment(self):
        """Returns the environment of the command, without variables that restrict its choices."""
        return {name: value for name, value in os.environ.items() if not name.startswith("HARTSIFT_")}

    def run_it(self, *arguments, status=DONE, stdin=b"", **settings):
        """Runs the command in the test's folder; returns standard output (bytes) and standard error (text)."""
        environment = {**self.environment(), **settings.pop("environment", {})}
        run = subprocess.run([COMMAND, *arguments], input=stdin, cwd=self.folder, env=environment, timeout=800,
                             check=False, stdout=settings.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                             **settings)
        errors = run.stderr.decode("utf-8", "replace")
        self.assertEqual(run.returncode, status, f"{arguments}: {errors}")
        return run.stdout, errors

    def make_once(self, *arguments):
        """Writes the file that the command makes with these arguments, of which the last is its name. Runs it only once."""
        if arguments not in self.made:
            self.run_it(*arguments)
            self.made[arguments] = self.read(arguments[-1])
        return self.write(arguments[-1], self.made[arguments])

    def extract(self, *arguments, **settings):
        return self.run_it("extract", *arguments, **settings)

    def features(self, *arguments, **settings):
        """Returns the rows of the CSV on standard output, as dictionaries."""
        output, _ = self.extract(*arguments, "--format", "csv", **settings)
        lines = output.decode().splitlines()
        names = lines[0].split(",")
        return [dict(zip(names, map(float, line.split(",")))) for line in lines[1:]]

    def end_when_made(self, run, name, milliseconds, number):
        """Sends the signal as soon as the command has made the file, or some time later, and waits for the command's end."""
        while not os.path.lexists(self.path(name)) and run.poll() is None:
            pass
        time.sleep(milliseconds / 1000)
        run.send_signal(number)
        self.assertEqual(run.wait(300), -number)

    def files(self, name=""):
        return sorted(os.listdir(self.path(name)))

    def ask(self, sql, *parameters, name="d.db"):
        """The rows that a statement gives in a database; its changes are committed. Names that are no text are kept."""
        with contextlib.closing(sqlite3.connect(self.path(name))) as database, database:
            database.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            return database.execute(sql, parameters).fetchall()
