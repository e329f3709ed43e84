"""Two commands that share a folder or a database, each held before one of its system calls: neither removes files that
the other needs, and neither waits forever.

The first command is held; the second starts and is held too, waits, or finishes; then the first continues, then the
second. At any moment, each ends as if it were alone or reports another active run, and the result equals that of
consecutive runs. HARTSIFT_FAULTS_CALLS as in fault_case.py: by default the first is held at the last two calls of some
kinds, 0: at every call.

usage: test_overlaps.py [CLASS]     (with HARTSIFT_FAULTS_LIBRARY and HARTSIFT_COMMAND set)
"""
import collections
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fault_case import CALLS_OF_A_KIND, LIBRARY, TIMEOUT, FaultCase, fault_text  # noqa: E402
from batch_case import blots  # noqa: E402
from command_case import COMMAND, main  # noqa: E402

ONE, TWO = "@scene:60x45:1", "@scene:61x47:2"
FIRST_KINDS, SECOND_KINDS = ("lock", "unlink", "list"), ("lock", "write", "rename")
# A process counts as waiting for the other one when all its threads sleep in this number of looks, a hundredth of a
# second apart; or, on a machine too busy to let it sleep, after this number of seconds, which is less than its lock
# timeout.
LOOKS, MOST_SECONDS = 8, 3

Overlap = collections.namedtuple("Overlap", "name first second alone again", defaults=(0, None))
Overlap.__doc__ = """Two command lines. alone: the exit status of the first. again: a command line that is run at the end."""


class Overlaps(FaultCase):
    @classmethod
    def prepare(cls):
        os.mkdir(os.path.join(cls.start, "in"))
        for number in range(4):
            with open(os.path.join(cls.start, "in", f"{number}.pgm"), "wb") as file:
                file.write(blots(50 + number, 41, number))
        with open(os.path.join(cls.start, "broken.pgm"), "wb") as file:
            file.write(b"P5 40 30 255\n")

    # ---- processes

    def begin(self, arguments, fault):
        environment = {**self.environment(), "LD_PRELOAD": LIBRARY, "HARTSIFT_FAULTS": fault_text(*fault)}
        process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        return process

    @staticmethod
    def sleeps(process):
        states = []
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                with open(f"/proc/{process.pid}/task/{thread}/stat", encoding="utf-8", errors="replace") as file:
                    states.append(file.read().rpartition(")")[2].split()[0])
        return set(states) == {"S"}

    def until_held_or_ended(self, process, waits=False):
        """Waits until the process is held; returns whether it is. Returns False also if the process waits for the other
        one."""
        end, looks = time.monotonic() + (MOST_SECONDS if waits else TIMEOUT), 0
        while process.returncode is None and time.monotonic() < end:
            found, status = os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG)
            if found != 0 and os.WIFSTOPPED(status):
                return True
            if found != 0:
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            looks = looks + 1 if waits and self.sleeps(process) else 0
            if looks == LOOKS:
                break
            time.sleep(0.01 if looks > 0 else 0.001)
        return False

    def let_go(self, process):
        if process.returncode is None:
            os.kill(process.pid, signal.SIGCONT)

    def finish(self, process, told):
        while self.until_held_or_ended(process):
            self.let_go(process)
        if process.returncode is None:
            process.kill()
            process.wait()
            self.fail(f"{told}: does not end")
        return process.returncode, process.stderr.read().decode("utf-8", "replace")

    # ---- invariants

    def run_both(self, overlap, faults):
        """Runs both; returns their exit statuses and messages."""
        first = self.begin(overlap.first, faults[0])
        self.until_held_or_ended(first)
        second = self.begin(overlap.second, faults[1])
        self.until_held_or_ended(second, waits=True)
        self.let_go(first)
        self.until_held_or_ended(first, waits=True)
        self.let_go(second)
        told = f"{overlap.name} with {faults}"
        return self.finish(first, told), self.finish(second, told)

    def inject(self, overlap, faults, wanted):
        self.fresh()
        with self.subTest(overlap=overlap.name, faults=faults):
            found = self.run_both(overlap, faults)
            for (status, errors), alone in zip(found, (overlap.alone, 0)):
                if "another run is at work" not in errors:
                    self.assertEqual(status, alone, f"{overlap.name} with {faults}: {errors}")
            if overlap.again:
                done = subprocess.run([COMMAND, *overlap.again], cwd=self.folder, env=self.environment(), check=False,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.content(), wanted, f"{overlap.name} with {faults}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def sweep_moments(self, overlap):
        self.fresh()
        counts = [self.run_with(arguments).counts for arguments in (overlap.first, overlap.second)]
        if overlap.again:
            self.run_with(overlap.again)
        wanted = self.content()
        shutil.rmtree(self.folder)
        every = [("any", at) for at in range(1, counts[0]["any"] + 1)]
        chosen = [(kind, at) for kind in FIRST_KINDS for at in range(max(counts[0][kind] - 1, 1), counts[0][kind] + 1)]
        for held in every if CALLS_OF_A_KIND == 0 else chosen:
            for later in ("any", 0), *((kind, 1) for kind in SECOND_KINDS if counts[1][kind] > 0):
                self.inject(overlap, ((*held, "SIGSTOP"), (*later, "SIGSTOP")), wanted)

    # ---- overlaps

    def test_new_database(self):
        """The first command has nothing to add, so it removes the file that it has made."""
        self.sweep_moments(Overlap("new", ("extract", "broken.pgm", "-o", "d.db"), ("extract", ONE, "-o", "d.db"), 1))

    def test_one_database(self):
        self.sweep_moments(Overlap("one", ("extract", ONE, "-o", "d.db"), ("extract", TWO, "-o", "d.db")))

    def test_same_shard(self):
        batch = ("batch", "in", "-o", "out", "--format", "bin", "--jobs", "1", "--threads", "1")
        self.sweep_moments(Overlap("same", batch, batch, again=(*batch, "--resume")))

    def test_other_shard(self):
        batch = ("batch", "in", "-o", "out", "--format", "bin", "--jobs", "1", "--threads", "1", "--resume", "--shard")
        self.sweep_moments(Overlap("other", (*batch, "1/2"), (*batch, "2/2")))


if __name__ == "__main__":
    main()
