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

    address = f"127.0.0.1:{_free_port()}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
    before = {name: os.environ.get(name) for name in keys}
    os.environ.update(keys)
    host, port = address.split(":")
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", host, "-p", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(address, server)
        system = fs.S3FileSystem(endpoint_override=address, scheme="http", region="us-east-1", allow_bucket_creation=True)
        system.create_dir("photos")
        yield lambda path: f"s3://{path}?endpoint_override={address}&scheme=http&region=us-east-1", system
    finally:
        server.terminate()
        server.wait()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _free_port():
    """Returns a port below those that the system gives to others by itself, for example until the server uses it."""
    while True:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(20000, 32000)))
            return one.getsockname()[1]


def _wait_for(address, server):
    until = time.monotonic() + 300
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://{address}/moto-api/", timeout=5):
                return
        except OSError:
            assert server.poll() is None, "the server ended"
            time.sleep(0.1)
    raise AssertionError("the server does not answer")
