"""A Slurm cluster on this machine: a controller and several nodes on loopback, as the current user. A requeued job
starts once the credential of its first start has expired, here after seconds.
"""
import contextlib
import getpass
import os
import random
import shutil
import socket
import subprocess
import time

CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
AuthInfo=cred_expire=5
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def missing_program():
    """Returns the first missing program of Slurm, or None."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    programs = ("slurmctld", "slurmd", "sbatch", "scontrol", "sinfo")
    return next((name for name in programs if not shutil.which(name, path=path)), None)


def _free_ports(count):
    """Returns ports below those that the system gives to others by itself, for example between this call and their use."""
    free = []
    for port in random.sample(range(20000, 32000), 1000):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            free.append(port)
        if len(free) == count:
            break
    return free


class SlurmCluster:
    """Runs a program in the folder; `environment` is for Slurm's commands."""

    def __init__(self, folder, nodes=3):
        self.folder = folder
        self.daemons = []
        ports = _free_ports(nodes + 1)
        names = [f"node{number}" for number in range(1, nodes + 1)]
        lines = [f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=100"
                 for name, port in zip(names, ports[1:])]
        text = CONFIGURATION.format(user=getpass.getuser(), folder=folder, ports=ports, nodes="\n".join(lines))
        for name in ("state", *(f"spool-{name}" for name in names)):
            os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, "slurm.conf"), "w", encoding="utf-8") as file:
            file.write(text)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
        self.environment["SLURM_CONF"] = os.path.join(folder, "slurm.conf")
        self.environment["PATH"] = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
        self.names = names

    def __enter__(self):
        self._start("slurmctld", "-D")
        for name in self.names:
            self._start("slurmd", "-D", "-N", name)
        self.wait_for(lambda: self.run("sinfo", "-h", "-o", "%T %D").split() == ["idle", str(len(self.names))])
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _start(self, *arguments):
        self.daemons.append(subprocess.Popen(arguments, env=self.environment, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def run(self, *arguments, **environment):
        """Returns the output of a command of Slurm; "" if it fails, for example before the controller is up."""
        run = subprocess.run(arguments, env={**self.environment, **environment}, cwd=self.folder, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=300)
        return run.stdout.decode().strip() if run.returncode == 0 else ""

    def wait_for(self, condition, seconds=300):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        logs = subprocess.run("tail -n 5 *.log", shell=True, cwd=self.folder, check=False, stdout=subprocess.PIPE)
        raise AssertionError(f"what was waited for did not come: {logs.stdout.decode()}")
