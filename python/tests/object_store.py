"""A server with the interface of S3, from the package moto, in a separate process."""

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request

import pytest


@contextlib.contextmanager
def serve():
    """Starts the server with a bucket "photos"; yields a function that makes URIs of paths, and pyarrow's file
    system."""
    pytest.importorskip("moto", reason="moto is not installed")
    from pyarrow import fs

    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
    before = {name: os.environ.get(name) for name in keys}
    os.environ.update(keys)
    address, server = _start()
    try:
        system = fs.S3FileSystem(endpoint_override=address, scheme="http", region="us-east-1", allow_bucket_creation=True)
        system.create_dir("photos")
        yield lambda path: f"s3://{path}?endpoint_override={address}&scheme=http&region=us-east-1", system
    finally:
        server.terminate()
        server.wait()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _start():
    """Returns the address and the process of a server that answers. Another program may take its port before it does."""
    for _ in range(5):
        port = _free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if _answers(port, server):
            return f"127.0.0.1:{port}", server
    raise AssertionError("the server ends")


def _free_port():
    """Returns a port below those that the system gives to others by itself, for example until the server uses it."""
    while True:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(20000, 32000)))
            return one.getsockname()[1]


def _answers(port, server):
    """Waits for the server; returns whether it answers, False if it has ended."""
    until = time.monotonic() + 300
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5):
                return server.poll() is None
        except OSError:
            time.sleep(0.1)
    server.kill()
    server.wait()
    return False
