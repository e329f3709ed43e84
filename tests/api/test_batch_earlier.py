"""Results of an earlier run of hartsift batch stay until a later run has done an image, however the later run ends:
killed, interrupted, or with every image refused.
"""
import fcntl
import os
import signal
import sys
import unittest

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import EndlessCase, scenes, waiting_in
from command_case import FAILED, USAGE, main

REFUSED = [f"absent-{number}.pgm" for number in range(3000)]


class EarlierResults(EndlessCase):
    folder_or_database = "out"

    def earlier(self, number=3):
        """Makes the results of an earlier run."""
        self.list_of(scenes(number))
        self.list_of(REFUSED, "refused.txt")
        self.batch("list.txt", "-o", self.folder_or_database)
        return self.results()

    def results(self):
        """Returns every file except the lists."""
        paths = [os.path.join(root, name) for root, _, names in os.walk(self.folder) for name in names]
        return {path: self.read(path) for path in paths if not path.endswith(".txt")}

    def start_blocked(self, *arguments):
        """Starts a run that waits for its reader before any image is done."""
        run = self.start("refused.txt", "-o", self.folder_or_database, "--json", "--devices", "cpu", *arguments)
        room = fcntl.fcntl(run.stdout, fcntl.F_SETPIPE_SZ, 4096)
        self.assertLess(room, len(REFUSED) * 50, "the pipe holds the records of all images")
        self.wait_for(lambda: waiting_in(run.stdout) > room - 1024)
        return run

    def waits_after(self, run, number):
        """Returns how often the first thread has waited, or 0 while a signal that was sent to the process is not received."""
        with open(f"/proc/{run.pid}/status", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        is_pending = any(int(fields[name], 16) >> (number - 1) & 1 for name in ("ShdPnd", "SigPnd"))
        return 0 if is_pending else int(fields["voluntary_ctxt_switches"])

    def assert_goes_on(self, kept):
        errors = self.batch("list.txt", "-o", self.folder_or_database, "--resume")[1]
        self.assertRegex(errors, rf"{kept} kept, 0 failed, [0-9.]+ s\n$")  # there was nothing to do, so no rate is printed

    @unittest.skipUnless(hasattr(fcntl, "F_SETPIPE_SZ"), "the size of a pipe cannot be set")
    def test_killed_before_the_first_image(self):
        before = self.earlier()
        self.end(self.start_blocked("--edge", "9"), signal.SIGKILL)
        found = self.results()
        self.assertEqual({name: found[name] for name in before}, before)
        self.assertEqual([data for name, data in found.items() if name not in before and name.endswith(".journal")], [b""])
        self.assert_goes_on(3)
        self.assertEqual(self.results(), before)
        self.batch("list.txt", "-o", self.folder_or_database, "--edge", "9", "--resume", status=USAGE)
        self.assertEqual(self.results(), before)

    @unittest.skipUnless(hasattr(fcntl, "F_SETPIPE_SZ") and os.path.isdir("/proc/self"), "no /proc, or no sizes of pipes")
    def test_interrupted_before_the_first_image(self):
        before = self.earlier()
        run = self.start_blocked("--edge", "9")
        run.send_signal(signal.SIGINT)
        self.wait_for(lambda: self.waits_after(run, signal.SIGINT) > 0)
        waits = self.waits_after(run, signal.SIGINT)
        self.wait_for(lambda: self.waits_after(run, signal.SIGINT) > waits + 3)  # then it has acted on the signal
        errors = run.communicate(timeout=300)[1].decode()
        self.assertEqual(run.returncode, FAILED, errors)
        self.assertIn("no image processed, the earlier run's results stay", errors)
        self.assertNotIn("--resume", errors)
        self.assertEqual(self.results(), before)
        self.assert_goes_on(3)

    def test_every_image_refused(self):
        before = self.earlier()
        for arguments in ([], ["--edge", "9"]):
            errors = self.batch("refused.txt", "-o", self.folder_or_database, *arguments, status=FAILED)[1]
            self.assertRegex(errors, r"no image processed; out\S*manifest\.csv unchanged")
            self.assertEqual(self.results(), before)

    def test_journal_of_an_interrupted_run_stays(self):
        """The journal's rows are the only record of that run."""
        self.list_of(REFUSED, "refused.txt")
        self.endless_list_of(scenes(3))
        run = self.start("endless.txt", "-o", self.folder_or_database)
        self.wait_for(self.has_rows)
        self.end(run, signal.SIGINT)
        before = self.results()
        errors = self.batch("refused.txt", "-o", self.folder_or_database, status=FAILED)[1]
        self.assertRegex(errors, r"no image processed; out\S*manifest\.journal unchanged")
        self.assertEqual(self.results(), before)
        self.assert_goes_on(3)

    def has_rows(self):
        """Whether the journal has the list's images, which may end in any order among others."""
        path = self.path(self.folder_or_database + ("/" if self.folder_or_database == "out" else ".") + "manifest.journal")
        journal = self.read(path) if os.path.exists(path) else b""
        return all(f"\n{name},".encode() in journal for name in scenes(3))

    def test_no_images_at_all(self):
        before = self.earlier()
        self.list_of([], "empty.txt")
        self.batch("empty.txt", "-o", self.folder_or_database)
        self.assertEqual(self.results(), before)


class EarlierDatabase(EarlierResults):
    folder_or_database = "out.db"

    @classmethod
    def setUpClass(cls):
        cls.need_databases()


if __name__ == "__main__":
    main()
