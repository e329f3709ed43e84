"""Shared parts of the fault tests: runs a command once without a fault, then once for each fault. Each must give an
exit status and a message with the reason, leave no partial or temporary file and no leaked memory, and let the next run
complete the work.

HARTSIFT_FAULTS_CALLS=N injects at N calls of each kind, spread over the run (3 unless set, so that a test takes
seconds); 0 or HARTSIFT_TESTS=whole: at every call.
The faults themselves: failing_calls.c.
"""
import collections
import contextlib
import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from command_case import COMMAND, CommandCase  # noqa: E402

LIBRARY = os.environ.get("HARTSIFT_FAULTS_LIBRARY", "")
CALLS_OF_A_KIND = int(os.environ.get("HARTSIFT_FAULTS_CALLS", "0" if os.environ.get("HARTSIFT_TESTS") == "whole" else "3"))
TIMEOUT = 300

# Errors that a system call can return, by the kinds of failing_calls.c. "short": half of the requested bytes are read
# or written.
ERRORS = {
    "open": ("EMFILE", "EACCES"), "read": ("EIO", "EINTR", "short"), "write": ("ENOSPC", "ENOSPC,on", "EIO", "EINTR", "short"),
    "close": ("EIO",), "sync": ("EIO",), "rename": ("EIO",), "mkdir": ("ENOSPC",), "unlink": ("EIO",),
    "lock": ("ENOLCK", "EINTR"), "stat": ("EIO",), "truncate": ("EIO",), "list": ("EIO",), "seek": ("EIO",), "access": ("EPERM",),
    "thread": ("EAGAIN", "EAGAIN,on"), "memory": ("ENOMEM", "ENOMEM,on"),
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGSTOP)

Scenario = collections.namedtuple("Scenario", "name arguments again left stdin without", defaults=(None, (), b"", ()))
Scenario.__doc__ = """A command line to which faults happen.

again: the arguments of the run after it; None: the same. left: beginnings of the names that a run that ended early may
leave, because the next one needs them or removes them. without: kinds of faults that are left out.
"""
Outcome = collections.namedtuple("Outcome", "status output errors alive counts tree")


def fault_text(kind, at, error):
    """Returns the value of HARTSIFT_FAULTS."""
    name, *more = error.split(",")
    text = f"kind={kind},at={at}" + "".join(f",{word}" for word in more)
    if name == "short":
        return text + ",short"
    if name.startswith("SIG"):
        return text + f",signal={int(getattr(signal, name))}"
    return text + f",error={getattr(errno, name)}"


def rows_by_image(database):
    """Returns the rows of a database by image and pair, without image numbers. These follow the order of arrival, and
    an image delayed by a fault comes later."""
    images = database.execute("""SELECT i.name, c.model, c.width, c.height, c.params, c.prior_focal_length, k.rows, k.data, d.data
        FROM images i JOIN cameras c USING (camera_id) LEFT JOIN keypoints k USING (image_id)
        LEFT JOIN descriptors d USING (image_id) ORDER BY i.name""").fetchall()
    pairs = database.execute("""SELECT a.name, b.name, m.data, g.data, g.F, g.E, g.H FROM matches m
        JOIN images a ON a.image_id = m.pair_id / 2147483647 JOIN images b ON b.image_id = m.pair_id % 2147483647
        LEFT JOIN two_view_geometries g USING (pair_id) ORDER BY a.name, b.name""").fetchall()
    return images, pairs


def content_of(path):
    """Returns the relevant content of a file: a database as its rows, everything else as its bytes."""
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(b"SQLite format 3\0"):
        return data
    with contextlib.closing(sqlite3.connect(path)) as database:
        made = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0
        return rows_by_image(database) if made else b""


class FaultCase(CommandCase):
    """A subclass has `prepare`, which fills the folder `start` once."""

    injected = collections.Counter()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.start = os.path.join(cls.holder.name, "start")
        os.mkdir(cls.start)
        cls.prepare()

    @classmethod
    def tearDownClass(cls):
        for (kind, error), number in sorted(cls.injected.items()):
            print(f"{cls.__name__}: {number} x {kind} {error}")
        cls.injected.clear()

    @classmethod
    def command(cls, *arguments, stdin=b""):
        """Runs the command in the folder `start`, where it must succeed."""
        subprocess.run([COMMAND, *arguments], cwd=cls.start, input=stdin, check=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=TIMEOUT)

    def fresh(self):
        """Makes a new copy of the scenario's start, as the test's folder."""
        self.folder = tempfile.mkdtemp(dir=self.holder.name)
        shutil.copytree(self.start, self.folder, dirs_exist_ok=True, symlinks=True)

    def content(self):
        """Returns the content of a copy, because SQLite rolls a journal back when it reads, which is left to the next run."""
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(self.folder, copy, symlinks=True, dirs_exist_ok=True)
            names = [os.path.join(root, name) for root, _, names in os.walk(copy) for name in names]
            return {os.path.relpath(path, copy): content_of(path) for path in names if not path.endswith("-journal")}

    def run_with(self, arguments, fault="", stdin=b""):
        """Runs the command with a fault; continues a process that was stopped."""
        log = os.path.join(self.holder.name, "log.txt")
        with contextlib.suppress(OSError):
            os.unlink(log)
        environment = {**self.environment(), "LD_PRELOAD": LIBRARY, "HARTSIFT_FAULTS_LOG": log}
        if fault:
            environment["HARTSIFT_FAULTS"] = fault
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, env=environment, stdin=given, stdout=output,
                                       stderr=errors)
            status = self.wait(process, fault)
            texts = []
            for file in (output, errors):
                file.seek(0)
                texts.append(file.read())
        numbers = {}
        if os.path.exists(log):
            with open(log, encoding="ascii") as file:
                numbers = {name: int(number) for name, number in (line.split() for line in file)}
        return Outcome(status, texts[0], texts[1].decode("utf-8", "replace"), numbers.pop("alive", None), numbers,
                       self.content())

    def wait(self, process, fault):
        """Returns the exit status, negative for a signal. A process that stops itself needs explicit waiting."""
        try:
            if fault.endswith(f"signal={int(signal.SIGSTOP)}"):
                while True:
                    _, status = os.waitpid(process.pid, os.WUNTRACED)
                    if not os.WIFSTOPPED(status):
                        process.returncode = os.waitstatus_to_exitcode(status)
                        return process.returncode
                    os.kill(process.pid, signal.SIGCONT)
            return process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.fail(f"with {fault} the command does not end")

    # ---- invariants

    def check(self, scenario, fault, found, expected, before):
        kind, _, error = fault
        told = f"{scenario.name} with {fault}: status {found.status}, {found.errors!r}"
        self.check_status(error, found, told)
        if found.status == 0:
            self.assertEqual(found.output, expected.output, told)
            missing = set(expected.tree) - set(found.tree)
            self.assertFalse(missing, told)
        for name, content in found.tree.items():
            if name not in before and name not in expected.tree:
                # Allowed files: those that could not be removed, were left by a killed process, or are needed by the
                # next run.
                self.assertTrue(kind == "unlink" or error == "SIGKILL" or (found.status != 0 and name.startswith(scenario.left)),
                                f"{told}: leaves {name}")
            elif not (found.status != 0 and name.startswith(scenario.left)):
                wanted = (expected.tree.get(name),) if found.status == 0 else (before.get(name), expected.tree.get(name))
                self.assertIn(content, wanted, f"{told}: {name} is partial")
        if kind == "memory":
            self.assertLessEqual(found.alive, expected.alive, f"{told}: a leak")

    def check_status(self, error, found, told):
        number = int(getattr(signal, error)) if error.startswith("SIG") else 0
        if number == signal.SIGSTOP:
            self.assertEqual(found.status, 0, told)
        elif number:
            self.assertIn(found.status, (0, 1, -number), told)
        else:
            self.assertIn(found.status, (0, 1, 2, 3), told)
            self.assertTrue(found.status == 0 or "hartsift" in found.errors, told)

    # ---- the faults of a scenario

    def places(self, count):
        """Returns the chosen numbers of `count` calls: all, or some from the first to the last."""
        if CALLS_OF_A_KIND == 0 or count <= CALLS_OF_A_KIND:
            return range(1, count + 1)
        steps = max(CALLS_OF_A_KIND - 1, 1)
        return sorted({1 + (count - 1) * i // steps for i in range(CALLS_OF_A_KIND)})

    def sweep(self, scenario):
        self.fresh()
        before = self.content()
        expected = self.run_with(scenario.arguments, stdin=scenario.stdin)
        self.assertEqual(expected.status, 0, expected.errors)
        again = scenario.again or scenario.arguments
        wanted = self.run_with(again, stdin=scenario.stdin).tree
        shutil.rmtree(self.folder)
        for kind, errors in ERRORS.items():
            if kind in scenario.without:
                continue
            for error in errors:
                for at in self.places(expected.counts[kind]):
                    self.inject(scenario, (kind, at, error), expected, before, wanted)
        for number in SIGNALS:
            for at in self.places(expected.counts["any"]):
                self.inject(scenario, ("any", at, number.name), expected, before, wanted)

    def inject(self, scenario, fault, expected, before, wanted):
        FaultCase.injected[fault[0], fault[2]] += 1
        self.fresh()
        with self.subTest(scenario=scenario.name, fault=fault):
            found = self.run_with(scenario.arguments, fault_text(*fault), scenario.stdin)
            self.check(scenario, fault, found, expected, before)
            after = self.run_with(scenario.again or scenario.arguments, stdin=scenario.stdin)
            self.assertEqual(after.status, 0, f"{scenario.name} after {fault}: {after.errors}")
            left = {name: content for name, content in after.tree.items() if ".hartsift-" not in name or name in wanted}
            self.assertEqual(left, wanted, f"{scenario.name} after {fault}")
        shutil.rmtree(self.folder, ignore_errors=True)
