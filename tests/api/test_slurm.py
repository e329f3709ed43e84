"""A Slurm array of three shards on three nodes, one of them killed and requeued: merged, it equals one run. Also runs
the shell part of the Kubernetes example as pods would.
"""
import os
import pathlib
import re
import signal
import subprocess
import sys

# In the folder of the tests, not in a package.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from batch_case import BatchCase, blots, scenes
from command_case import COMMAND, DONE, FAILED, USAGE, main
from slurm_cluster import SlurmCluster, missing_program

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "pipeline" / "examples"
IMAGES = 60


def process_of_task(folder, task):
    """Returns the process id of an array's task, which is identified by its output folder."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"batch" in words and os.fsencode(folder) in words and b"SLURM_ARRAY_TASK_ID=%d" % task in variables:
            return int(process.name)
    return None


class Array(BatchCase):
    def test_killed_task_is_requeued_and_goes_on(self):
        missing = missing_program()
        if missing:
            self.skipTest(f"{missing} is not installed")
        os.mkdir(self.path("slurm"))
        self.list_of([*scenes(IMAGES - 2, "640x480"), self.write("last.pgm", blots(60, 45, 1)), "absent.png"])
        self.batch("list.txt", "-o", "one", "-q", "--device", "cpu", status=FAILED)
        with SlurmCluster(self.path("slurm")) as cluster:
            self.run_array(cluster)
        self.run_it("merge", "out", "-o", "merged", "-q")
        self.assertEqual(self.tree("merged"), self.tree("one"))
        # Merges into the folder of the shards, as in the second line of the example.
        self.run_it("merge", "out", "-o", "out", "-q")
        self.assertEqual(self.read("out", "manifest.csv"), self.read("one", "manifest.csv"))

    def run_array(self, cluster):
        out = self.path("out")
        # The last picture of the second task is a pipe without data until the task is killed, so that it cannot end before.
        os.rename(self.path("last.pgm"), self.path("kept.pgm"))
        os.mkfifo(self.path("last.pgm"))
        pipe = os.open(self.path("last.pgm"), os.O_RDWR)
        path = os.path.dirname(COMMAND) + os.pathsep + cluster.environment["PATH"]
        job = cluster.run("sbatch", "--parsable", "--array=1-3", "--output", self.path("log-%a.txt"),
                          "--chdir", self.folder, str(EXAMPLES / "slurm_array.sh"), "list.txt", out, "--device", "cpu",
                          "--json", PATH=path)
        self.assertTrue(job)

        def rows():
            try:
                return self.read("out", "manifest-2-of-3.journal").count(b"\n") - 3
            except OSError:
                return 0

        cluster.wait_for(lambda: rows() >= 3)
        os.kill(process_of_task(out, 2), signal.SIGKILL)
        os.rename(self.path("kept.pgm"), self.path("last.pgm"))
        os.close(pipe)
        done = rows()
        self.assertLess(done, IMAGES // 3)
        cluster.wait_for(lambda: "JobState=FAILED" in cluster.run("scontrol", "show", "job", f"{job}_2"))
        self.assertFalse(os.path.exists(self.path("out", "manifest-2-of-3.csv")))
        _, errors = self.run_it("merge", out, "-o", "early", status=FAILED)
        self.assertRegex(errors, "not finished|is missing|no manifest")
        cluster.run("scontrol", "requeue", f"{job}_2")
        cluster.wait_for(lambda: all(os.path.exists(self.path("out", f"manifest-{i}-of-3.csv")) for i in (1, 2, 3)))
        cluster.wait_for(lambda: not cluster.run("squeue", "-h"))
        log = self.read("log-2.txt").decode()
        self.assertGreaterEqual(len(re.findall('"kept": true', log)), 3, log)


class Environment(BatchCase):
    def shard(self, text, status=DONE, **variables):
        self.list_of(scenes(7))
        return self.run_it("batch", "list.txt", "-o", "out", "-q", "--shard", text, status=status, environment=variables)[1]

    def test_of_slurm(self):
        array = dict(SLURM_ARRAY_TASK_ID="14", SLURM_ARRAY_TASK_COUNT="3", SLURM_ARRAY_TASK_MIN="10",
                     SLURM_ARRAY_TASK_MAX="14", SLURM_ARRAY_TASK_STEP="2")
        self.shard("slurm", **array)
        self.assertEqual([row["image"] for row in self.manifest(name="manifest-3-of-3.csv")],
                         [scenes(7)[i] for i in (2, 5)])
        self.shard("slurm", SLURM_PROCID="0", SLURM_NTASKS="2")
        self.assertEqual(len(self.manifest(name="manifest-1-of-2.csv")), 4)
        for change, words in (({"SLURM_ARRAY_TASK_COUNT": "2"}, "equal steps"), ({"SLURM_ARRAY_TASK_ID": "11"}, "equal"),
                              ({"SLURM_ARRAY_TASK_STEP": "0"}, "equal"), ({"SLURM_ARRAY_TASK_ID": "x"}, "TASK_ID is 'x'")):
            self.assertIn(words, self.shard("slurm", USAGE, **{**array, **change}))
        self.assertIn("sbatch --array", self.shard("slurm", USAGE))

    def test_of_others(self):
        self.shard("env:I,N", I="2", N="3")
        self.shard("env:I+1,3", I="0")
        self.assertEqual(len(self.manifest(name="manifest-1-of-3.csv")), 3)
        for text, words in (("env:I,N", "N is not set"), ("env:I", "env:INDEX,COUNT"), ("env:,N", "env:INDEX,COUNT"),
                            ("env:I,2,3", "env:INDEX,COUNT"), ("env:I,1", "shard 2 of 1"), ("env:Z,4", "Z is '0'|shard 0 of"),
                            ("env:E,4", "E is ''"), ("slurmx", "I/N"), ("1/2/3", "I/N")):
            self.assertRegex(self.shard(text, USAGE, I="2", Z="0", E=""), words)


class Kubernetes(BatchCase):
    def test_shell_of_the_example(self):
        text = (EXAMPLES / "kubernetes_job.yaml").read_text(encoding="utf-8")
        shell = re.search(r"args:\n +- \|\n((?: {14}.*\n)+)", text)[1].replace("/data/", self.path("") )
        self.write("photos/broken.pgm", b"no image")
        for seed in (1, 2, 3):
            self.run_it("draw", f"@scene:80x60:{seed}", "-o", f"photos/{seed}.png", "-q", "--device", "cpu")
        for index in range(2):
            self.pod(shell, index, 0)
        # A pod that could not do its work fails.
        os.rename(self.path("photos"), self.path("elsewhere"))
        os.remove(self.path("features", "manifest-1-of-2.csv"))
        self.pod(shell, 0, 1)
        os.rename(self.path("elsewhere"), self.path("photos"))
        self.pod(shell, 0, 0)
        self.run_it("merge", "features", "-o", "features", "-q")
        self.batch(self.path("photos"), "-o", "one", "-q", status=FAILED)
        self.assertEqual(self.read("features", "manifest.csv"), self.read("one", "manifest.csv"))

    def pod(self, shell, index, status):
        environment = {**self.environment(), "JOB_COMPLETION_INDEX": str(index), "SHARDS": "2",
                       "PATH": os.path.dirname(COMMAND) + os.pathsep + os.environ["PATH"]}
        run = subprocess.run(["/bin/bash", "-c", shell], env=environment, check=False, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, status, run.stderr)


if __name__ == "__main__":
    main()
