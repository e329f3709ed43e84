"""A Ray cluster of several nodes on this machine: each is a raylet with its own object store, on loopback."""

import contextlib
import os
import pathlib
import signal
import threading
import time

import ray
from ray.cluster_utils import Cluster

_STORE_BYTES = 80 << 20


@contextlib.contextmanager
def three_nodes(cpus=1):
    """Starts the cluster and connects to it; the first node is the head."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    node = {"num_cpus": cpus, "object_store_memory": _STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        cluster.wait_for_nodes()
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextlib.contextmanager
def one_node(cpus):
    """Ray on this machine, with its GPUs."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
    finally:
        ray.shutdown()


def _raylet(node):
    return node.all_processes["raylet"][0].process.pid


def actors_of(cluster, name="ExtractionActor"):
    """Process ids of the actors of this class, by the process id of the raylet of their node."""
    raylets = {_raylet(node) for node in cluster.list_all_nodes()}
    found = {}
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            title = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent in raylets and name.encode() in title and title.startswith(b"ray::"):
            found.setdefault(parent, []).append(int(process.name))
    return found


def _wait(condition, seconds=240):
    """Waits until a condition is true, and returns its value; None after a timeout."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    return None


def crash_actor(cluster, name="ExtractionActor"):
    """Kills an actor that is working."""
    actors = _wait(lambda: actors_of(cluster, name))
    process = next(iter(actors.values()))[0]
    os.kill(process, signal.SIGKILL)
    return f"actor {process} killed"


def kill_node(cluster, name="ExtractionActor"):
    """Kills a node without warning, not the head; one with an actor, if such a node appears soon."""
    def with_actor():
        actors = actors_of(cluster, name)
        return [node for node in cluster.list_all_nodes() if node is not cluster.head_node and _raylet(node) in actors]

    others = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]
    node = (_wait(with_actor, seconds=5) or others)[0]
    text = f"node {_raylet(node)} killed"
    cluster.remove_node(node, allow_graceful=False)
    return text


class InTheMiddle:
    """Calls the first action on the cluster when a folder has its first result file, the next action at the second
    file; `done` collects their results."""

    def __init__(self, folder, *actions):
        self._folder, self._actions = pathlib.Path(folder), actions
        self.done = []
        self._error = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            for number, action in enumerate(self._actions, 1):
                if not _wait(lambda count=number: len(list(self._folder.glob("*.parquet"))) >= count):
                    raise AssertionError(f"{self._folder} got no results")
                self.done.append(action())
        except Exception as error:  # the exception is raised in the other thread
            self._error = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(timeout=300)
        if self._error:
            raise self._error
