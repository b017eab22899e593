"""A real object server on this machine: moto's, which speaks S3 over HTTP. The calling process must end it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import pytest

BUCKET = "crawls"


@contextmanager
def object_store() -> Iterator[str]:
    """Run a server, with the environment in which everything finds it, and yield the URL of a bucket."""
    server = pytest.importorskip("moto.server")
    pytest.importorskip("upath")
    pytest.importorskip("s3fs")
    import s3fs

    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    found = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    try:
        with mock.patch.dict(os.environ, found):
            s3fs.S3FileSystem.clear_instance_cache()
            s3fs.S3FileSystem().makedirs(BUCKET, exist_ok=True)  # the server keeps what a former test left
            yield f"s3://{BUCKET}"
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        running.stop()
