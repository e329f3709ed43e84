"""The command on fake GPUs: several GPUs, a device other than the first, memory used by other programs, refusals.

usage: test_fake_batch.py PROGRAM     (the command, built on tests/support/fake_device)
"""
import json
import os
import subprocess
import sys
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, blots  # noqa: E402
from command_case import COMMAND, DONE, FAILED, NO_DEVICE, USAGE, is_short, main  # noqa: E402

IMAGES = 14
PICTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "images")
OUT_OF_MEMORY, UNAVAILABLE, NO_CODE, NO_GPU = 2, 46, 209, 100


class FakeBatch(BatchCase):
    def setUp(self):
        super().setUp()
        for number in range(IMAGES):
            self.write(f"in/{number:02}.pgm", blots(90 + number % 3 * 17, 70, number))

    def on(self, machine, *arguments, **settings):
        """Runs the command on a machine; returns its output, its messages and its use of each GPU."""
        log = self.path("log.txt")
        output, errors = self.run_it(*arguments, environment={"HARTSIFT_FAKE_DEVICE": f"{machine},log={log}"}, **settings)
        lines = self.read("log.txt").decode().splitlines()
        self.assertEqual(lines[-1], "alive: 0")
        signals = lines.pop(-3)
        self.queues = lines.pop(-3)
        if "--devices" in arguments:  # a signal must not end the process in a thread of the driver
            self.assertNotEqual(signals, "signals: open")
        return output, errors, [line.split(": ")[1].split(", ") for line in lines[:-1]]

    def features(self, folder):
        return {name: data for name, data in self.tree(folder).items() if name.endswith(".hsf")}

    def batch_on(self, machine, devices, folder, *arguments, **settings):
        return self.on(machine, "batch", "in", "-o", folder, "--format", "bin", *devices, *arguments, **settings)

    def on_the_cpu(self):
        self.batch("in", "-o", "cpu", "--format", "bin", "--device", "cpu")
        found = self.features("cpu")
        self.assertEqual(len(found), IMAGES)
        return found

    def test_two_gpus(self):
        expected = self.on_the_cpu()
        for devices in ("cuda:0,cuda:1", "all", "cuda:1,cpu", "hybrid,cuda:1"):
            folder = devices.replace(":", "").replace(",", "-")
            _, _, gpus = self.batch_on("gpus=2", ["--devices", devices], folder)
            self.assertEqual(self.features(folder), expected, devices)
            self.assertEqual([use for use, *_ in gpus[:2]], ["hidden", "entered"] if devices == "cuda:1,cpu" else ["entered"] * 2, devices)

    def test_devices_are_refused_before_images_are_read(self):
        self.batch("no-such-folder", "-o", "out", "--devices", "nonsense", status=USAGE)

    def test_queues_by_the_number_of_images(self):
        """Two, eight or 16 hardware queues by the number of images, unless the user names a number."""
        for count, options, queues in ((499, (), 2), (500, (), 8), (998, ("--shard", "2/2"), 2), (1000, ("--shard", "2/2"), 8),
                                       (3499, ("--devices", "all"), 8), (3500, (), 16)):
            names = self.list_of([f"absent/{number}.pgm" for number in range(count)])
            self.on("gpus=2", "batch", names, "-o", f"queues-{count}", *(options or ("--device", "cuda")), status=FAILED)
            self.assertEqual(self.queues, f"queues: {queues}", f"{count} {options}")
        with unittest.mock.patch.dict(os.environ, CUDA_DEVICE_MAX_CONNECTIONS="5"):
            self.on("gpus=2", "batch", names, "-o", "own", "--device", "cuda", status=FAILED)
        self.assertEqual(self.queues, "queues: 5")

    def test_queues_by_the_number_of_images_left(self):
        """A resumed run counts the images that no manifest or journal has."""
        names = [f"many/{number}.pgm" for number in range(510)]
        for name in names:
            self.write(name, blots(16, 16, 3))
        for output, options in (("out", ("--device", "cuda")), (".db", ("--devices", "all"))):
            for done, queues in ((5, 8), (20, 2)):
                self.batch(self.list_of(names[:done]), "-o", f"{done}{output}", "--device", "cpu")
                for wanted in (queues, 2):  # after the first resumed run none is left
                    self.on("gpus=2", "batch", self.list_of(names), "-o", f"{done}{output}", "--resume", *options)
                    self.assertEqual(self.queues, f"queues: {wanted}", f"{done}{output}")

    def test_a_gpu_that_has_two_names(self):
        for devices in ("auto,cuda:0", "cuda:0,hybrid"):
            _, errors, _ = self.on("gpus=1", "batch", "in", "-o", "twice", "--devices", devices, status=USAGE)
            self.assertIn("are the same GPU", errors)

    def test_only_the_gpu_that_was_asked_for(self):
        """Other GPUs are hidden, and none gets a CUDA context, not even for the readers' pinned memory."""
        for devices in (["--devices", "cuda:1"], ["--device", "cuda:1"]):
            _, _, gpus = self.batch_on("gpus=3", devices, "-".join(devices).replace(":", ""), "--jobs", "2")
            self.assertEqual(gpus[0], ["hidden", "0 launches"])
            self.assertEqual(gpus[2], ["hidden", "0 launches"])
            self.assertEqual(gpus[1][0], "entered")

    def test_auto_says_once_that_images_do_not_fit(self):
        _, errors, gpus = self.batch_on("gpus=1,others=1023", ["--device", "auto"], "auto")
        self.assertEqual(errors.count("images that do not fit were processed by the CPU"), 1, errors)
        self.assertIn("0 of 1024 MiB are free, needed are", errors)
        self.assertEqual(self.features("auto"), self.on_the_cpu())
        self.assertEqual(gpus[0][0], "entered")
        _, errors, _ = self.on("gpus=1,others=1023", "extract", "in/00.pgm", "in/01.pgm", "-o", "some/", "--quiet")
        self.assertEqual(errors.count("images that do not fit are processed by the CPU"), 1, errors)

    def test_auto_says_that_it_passes_over_a_gpu(self):
        for machine, reason in ((f"gpus=1,others=1000,error={OUT_OF_MEMORY}", "24 of 1024 MiB are free"),
                                (f"gpus=1,error={UNAVAILABLE},mode=3", "exclusive mode"),
                                (f"gpus=1,error={NO_CODE}", "no code for the device")):
            for command, images in (("extract", "in/00.pgm"), ("batch", "in")):
                _, errors, _ = self.on(machine, command, images, "-o", f"{command}-{len(machine)}/", "--quiet")
                self.assertEqual(errors.count("the CPU does the work: CUDA device 0 (fake GPU 0): "), 1, errors)
                self.assertIn(reason, errors)
        _, errors, _ = self.on("gpus=0", "extract", "in/00.pgm", "-o", "none/", "--quiet")
        self.assertEqual(errors, "")

    def batch_of_jpegs(self, machine, folder, *arguments, devices=("--device", "cuda"), **settings):
        """Runs a batch over tests/data's JPEGs, good and broken. Returns its features and manifest, and how many JPEGs the
        GPU decoded."""
        output, errors, gpus = self.on(f"{machine}", "batch", "jpegs", "-o", folder, "--format", "bin", *devices, *arguments,
                                       **settings)
        taken = [int(line[0]) for line in gpus if len(line) == 1]
        return self.features(folder), self.records(folder), errors, taken

    def records(self, folder):
        """Returns, for each image, the columns that do not depend on the run."""
        lines = self.read(f"{folder}/manifest.csv").decode().splitlines()
        return [line for line in lines if not line.startswith("#")]

    def test_jpegs_on_the_gpu(self):
        """Every decoder gives the same features, failures and manifest, even if the GPU's pixels are wrong."""
        for name in os.listdir(PICTURES):
            if name.startswith("jpeg_") and "bomb" not in name:
                with open(os.path.join(PICTURES, name), "rb") as picture:
                    self.write(f"jpegs/{name}", picture.read())
        expected = self.batch_of_jpegs("gpus=1", "plain", "--decoder", "cpu", status=1)
        self.assertGreater(len(expected[0]), 10)
        made = 64  # number of files that the comparison makes
        for folder, machine, arguments, taken in (
                ("auto", "gpus=1", (), lambda n: n >= made),  # readers with spare time decode small files
                ("asked", "gpus=1", ("--decoder", "gpu"), lambda n: n > made),
                ("never", "gpus=1", ("--decoder", "cpu"), lambda n: n == 0),
                ("wrong", "gpus=1,jpeg=1", (), lambda n: n == made),
                ("refusing", "gpus=1,jpeg=2", (), lambda n: n == made)):
            found = self.batch_of_jpegs(machine, folder, *arguments, status=1)
            self.assertEqual(found[:2], expected[:2], folder)
            self.assertTrue(taken(found[3][0]), f"{folder}: {found[3]}")
            self.assertEqual("does not decode JPEGs: its pixels differ from libjpeg's" in found[2], folder == "wrong", found[2])
            self.assertEqual("does not decode JPEGs: it refuses" in found[2], folder == "refusing", found[2])
        found = self.batch_of_jpegs("gpus=2", "two", devices=("--devices", "cuda:0,cuda:1,cpu"), status=1)
        self.assertEqual(found[:2], expected[:2])
        _, errors, _ = self.on("gpus=1,jpeg=1", "batch", "jpegs", "-o", "none", "--decoder", "gpu", status=NO_DEVICE)
        self.assertIn("no GPU decodes JPEGs: its pixels differ", errors)
        for machine, said in (("gpus=1", "JPEG: the GPU (on its multiprocessors)"),
                              ("gpus=1,jpeg=1", "JPEG: libjpeg (the GPU: its pixels differ from libjpeg's")):
            output, _, _ = self.on(machine, "info")
            self.assertIn(said, output.decode())
        if not is_short():
            output, _, _ = self.on("gpus=1,jpeg=1", "selftest")
            self.assertIn("not used  JPEG on the GPU: its pixels differ from libjpeg's", output.decode())
            self.assertIn("all agree", output.decode())

    def test_refused(self):
        full = f"gpus=2,others=1000,error={OUT_OF_MEMORY}"
        _, errors, _ = self.batch_on(full, ["--devices", "cuda:0,cuda:1"], "full", status=NO_DEVICE)
        self.assertIn("the memory of the device is full: 24 of 1024 MiB are free", errors)
        _, errors, _ = self.batch_on("gpus=0", ["--devices", "all"], "none", status=NO_DEVICE)
        self.assertIn("no GPU is usable: the driver shows no GPU", errors)
        _, errors, _ = self.batch_on("gpus=2,lost=1", ["--devices", "cuda:0,cuda:1"], "lost", status=NO_DEVICE)
        self.assertIn("CUDA device 1 (fake GPU 1): CUDA reports error 719 (unspecified launch failure)", errors)

    def batch_with_a_fault(self, machine, folder, names):
        """Runs a batch on a machine with a failing call, which ends with a status. A second batch completes the work."""
        command = [COMMAND, "batch", names, "-o", folder, "--format", "bin", "--devices", "cuda:0,cuda:1"]
        log = self.path("log.txt")
        run = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=300, check=False,
                             env={**self.environment(), "HARTSIFT_FAKE_DEVICE": f"{machine},log={log}"})
        self.assertIn(run.returncode, (DONE, FAILED, NO_DEVICE), f"{machine}: {run.stderr}")
        self.assertTrue(self.read("log.txt").endswith(b"alive: 0\n"), machine)
        made = self.features(folder) if os.path.isdir(self.path(folder)) else {}
        if run.returncode == FAILED:
            rows = self.manifest(folder)
            failed = [row["image"] for row in rows if row["status"] != "HS_OK"]
            self.assertEqual(len(made) + len(failed), len(rows), machine)
            for name in failed:
                self.assertIn(name.encode(), run.stderr, machine)
        self.on("gpus=2", *command[1:], "--resume")
        return made, self.features(folder)

    def test_a_call_of_the_device_fails(self):
        """A call fails for lack of memory, or because the GPU is lost. The run's output is right, and --resume completes
        it."""
        names = self.list_of([f"in/{number:02}.pgm" for number in range(5)])
        expected = {f"in/{name}": data for name, data in self.on_the_cpu().items() if name < "05"}
        for losing in (0, 1):
            for at in (1, 2, 4, 7, 12, 20, 33, 54, 88, 143, 232, 377):
                made, after = self.batch_with_a_fault(f"gpus=2,fail={at},losing={losing}", f"fault-{losing}-{at}", names)
                self.assertEqual(made, {name: expected[name] for name in made})
                self.assertEqual(after, expected)

    def test_info(self):
        for machine, reason in (("gpus=0", "the driver shows no GPU"),
                                (f"gpus=1,error={UNAVAILABLE},mode=2", "prohibited")):
            output, _, _ = self.on(machine, "info")
            self.assertIn(reason, output.decode())
            output, _, _ = self.on(machine, "info", "--json")
            gpu = json.loads(output)["gpu"]
            self.assertFalse(gpu["usable"])
            self.assertIn(reason, gpu["reason"])
        output, _, _ = self.on("gpus=1", "info")
        self.assertIn("usable", output.decode())
        self.assertIn("device: CUDA 0, fake GPU 0, compute capability 9.0", output.decode())


if __name__ == "__main__":
    main()
