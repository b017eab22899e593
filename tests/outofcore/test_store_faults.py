"""Stores on an object server that fails in the middle: one sentence, complete results, the same bytes later."""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
import time
from unittest import mock

import pytest
from stores import match_on_disk
from test_on_disk import MEMORY, PARTS, stories, written
from test_places import content, facts

from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.storage.locations import as_path
from spotsigs.storage.store import opened

counter = itertools.count()
ERRORS = {
    "500": ("500 Internal Server Error", "InternalError"),
    "503": ("503 Slow Down", "SlowDown"),
    "denied": ("403 Forbidden", "AccessDenied"),
    "no bucket": ("404 Not Found", "NoSuchBucket"),
}


class Faulty:
    """A server application that fails at some of its requests."""

    def __init__(self, app):
        self.app, self.lock = app, threading.Lock()
        self.heal()

    def heal(self):
        self.harm(None, range(0))

    def harm(self, kind, requests):
        self.kind, self.requests, self.count, self.harmed = kind, requests, 0, 0

    def __call__(self, environ, start_response):
        with self.lock:
            number, self.count = self.count, self.count + 1
            harmed = number in self.requests
            self.harmed += harmed
        if harmed and self.kind in ERRORS:
            status, code = ERRORS[self.kind]
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            answer = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(answer)))])
            return [answer]
        if harmed and self.kind == "timeout":
            time.sleep(1.5)
        if harmed and self.kind == "truncated" and environ["REQUEST_METHOD"] == "GET":
            body = b"".join(self.app(environ, start_response))
            return [body[: len(body) // 2]]  # of which the header announces more
        return self.app(environ, start_response)


@pytest.fixture(scope="module")
def server():
    moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    from fsspec.config import conf
    from werkzeug.serving import make_server

    app = Faulty(moto.DomainDispatcherApplication(moto.create_backend_app))
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    environment = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{running.server_port}",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }
    settings = {"s3": {"config_kwargs": {"read_timeout": 1}}}
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.dict(conf, settings),
        mock.patch.object(s3fs.S3FileSystem, "retries", 2),
    ):
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().makedirs("faults", exist_ok=True)
        yield app
        s3fs.S3FileSystem.clear_instance_cache()
    running.shutdown()


@pytest.fixture(scope="module")
def undisturbed(server, tmp_path_factory):
    """Return a collection, its pairs, its store, and the number of requests of a run on the server."""
    folder = tmp_path_factory.mktemp("undisturbed")
    collection = written(folder / "x.jsonl", stories(40))
    found = match_on_disk(folder / "store", collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    server.heal()
    match_on_disk("s3://faults/undisturbed", collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    return collection, facts(found), content(folder / "store"), server.count


def check_complete(url):
    """Check that each store below a URL is complete."""
    for name in content(url):
        if name.endswith("store.json"):
            folder = (as_path(url) / name).parent
            reader = opened(folder, json.loads((folder / "store.json").read_text())["kind"])
            for array in reader.facts["files"]:
                reader._file(array.removesuffix(".npy"))


QUICK = "500", "truncated"


def cases(kinds, quick):
    """Return kinds of faults at ten moments of a run, of which the quick tests take a few."""
    return [
        pytest.param(kind, k / 10, id=f"{kind}-{k}", marks=[] if kind in quick and k == 5 else [pytest.mark.long])
        for kind in kinds
        for k in range(10)
    ]


@pytest.mark.parametrize(("kind", "at"), cases([*ERRORS, "timeout", "truncated"], QUICK))
def test_a_server_that_fails_from_some_request_on(server, undisturbed, kind, at):
    collection, expected, stored, requests = undisturbed
    url = f"s3://faults/{next(counter)}"
    server.harm(kind, range(int(at * requests), 10**9))
    with pytest.raises(InputError) as refused:
        match_on_disk(url, collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    assert server.harmed
    assert "s3://faults" in str(refused.value)
    assert "\n" not in str(refused.value)
    server.heal()
    check_complete(url)
    found = match_on_disk(url, collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    assert facts(found) == expected
    assert content(url) == stored


@pytest.mark.parametrize(("kind", "at"), cases(["500", "503", "timeout", "truncated"], ()))
def test_a_server_that_fails_once(server, undisturbed, kind, at):
    """The request is repeated, or the run ends and resumes."""
    collection, expected, stored, requests = undisturbed
    url = f"s3://faults/{next(counter)}"
    server.harm(kind, [int(at * requests)])
    for _ in range(2):
        try:
            found = match_on_disk(url, collection, *PARTS, 0.4, Serial(), memory=MEMORY)
        except InputError as error:
            assert "s3://faults" in str(error)  # noqa: PT017
            check_complete(url)
        else:
            break
    assert facts(found) == expected
    assert content(url) == stored
