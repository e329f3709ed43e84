"""The command on played GPUs: several of them, one that is not the first, memory that others hold, refusals.

usage: test_played_batch.py PROGRAM     (the command, built on tests/support/played_device)
"""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, blots  # noqa: E402
from command_case import NO_DEVICE, main  # noqa: E402

IMAGES = 14
OUT_OF_MEMORY, UNAVAILABLE, NO_CODE, NO_GPU = 2, 46, 209, 100


class PlayedBatch(BatchCase):
    def setUp(self):
        super().setUp()
        for number in range(IMAGES):
            self.write(f"in/{number:02}.pgm", blots(90 + number % 3 * 17, 70, number))

    def on(self, machine, *arguments, **settings):
        """Runs the command on a machine; returns its output, its messages and what it did to each GPU."""
        log = self.path("log.txt")
        output, errors = self.run_it(*arguments, environment={"HARTSIFT_PLAYED": f"{machine},log={log}"}, **settings)
        lines = self.read("log.txt").decode().splitlines()
        self.assertEqual(lines[-1], "alive: 0")
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
            self.assertEqual(gpus[1][0], "entered")

    def test_only_the_gpu_that_was_asked_for(self):
        """No other gets a CUDA context, of the readers' pinned memory either."""
        for devices in (["--devices", "cuda:1"], ["--device", "cuda:1"]):
            _, _, gpus = self.batch_on("gpus=3", devices, "-".join(devices).replace(":", ""), "--jobs", "2")
            self.assertEqual(gpus[0], ["untouched", "0 launches"])
            self.assertEqual(gpus[2], ["untouched", "0 launches"])
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
                self.assertEqual(errors.count("the CPU does the work: CUDA device 0 (played GPU 0): "), 1, errors)
                self.assertIn(reason, errors)
        _, errors, _ = self.on("gpus=0", "extract", "in/00.pgm", "-o", "none/", "--quiet")
        self.assertEqual(errors, "")

    def test_refused(self):
        full = f"gpus=2,others=1000,error={OUT_OF_MEMORY}"
        _, errors, _ = self.batch_on(full, ["--devices", "cuda:0,cuda:1"], "full", status=NO_DEVICE)
        self.assertIn("the memory of the device is full: 24 of 1024 MiB are free", errors)
        _, errors, _ = self.batch_on("gpus=0", ["--devices", "all"], "none", status=NO_DEVICE)
        self.assertIn("no GPU is usable: the driver shows no GPU", errors)
        _, errors, _ = self.batch_on("gpus=2,lost=1", ["--devices", "cuda:0,cuda:1"], "lost", status=NO_DEVICE)
        self.assertIn("CUDA device 1 (played GPU 1): CUDA reports error 719 (unspecified launch failure)", errors)

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
        self.assertIn("device: CUDA 0, played GPU 0, compute capability 9.0", output.decode())


if __name__ == "__main__":
    main()
