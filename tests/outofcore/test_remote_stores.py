"""Stores at URLs: the pairs of a local store; failing servers; killed workers; and inputs at URLs."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from archives import file_of, ids, read, texts
from in_process import process
from runs import ran, same
from stores import MEMORY, PARTS, edited_copies, match_on_disk, named, run, save_vectors, stories, written

from spotsigs.doors.cli import main
from spotsigs.errors import InputError
from spotsigs.formats.detect_format import FORMATS
from spotsigs.formats.jsonl import Jsonl
from spotsigs.outofcore.block_join import join_store
from spotsigs.outofcore.pipeline import Store
from spotsigs.storage import locations
from spotsigs.storage import store as stores
from spotsigs.storage.locations import as_path, is_remote, sizes
from spotsigs.storage.manifest import MANIFEST, write_manifest
from spotsigs.storage.store import opened, remove_tree, writing
from spotsigs.workers.engines import Serial

ROOT = Path(__file__).parents[2]
upath = pytest.importorskip("upath")
counter = itertools.count()


@pytest.fixture
def memory():
    """Return a path of its own in fsspec's file system in memory."""
    return f"memory://bucket/{next(counter)}"


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
    """Run a server that speaks S3, moto's, with the environment in which everything finds it."""
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
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    settings = {"s3": {"config_kwargs": {"read_timeout": 1}}}
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.dict(conf, settings),
        mock.patch.object(s3fs.S3FileSystem, "retries", 2),
    ):
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().makedirs("crawls", exist_ok=True)
        yield app
        s3fs.S3FileSystem.clear_instance_cache()
    running.shutdown()


@pytest.fixture
def s3(server):
    server.heal()
    return f"s3://crawls/{next(counter)}"


def content(folder):
    """Return the arrays and manifests below a store, by their names."""
    root = as_path(folder)
    paths = (path for path in root.rglob("*") if path.name.endswith((".npy", "store.json")))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def facts(matched):
    return named(matched.pairs, matched.doc_ids)


def test_locations_are_paths_or_urls(tmp_path):
    assert as_path("a/b") == Path("a/b")
    assert as_path(tmp_path) is tmp_path
    assert as_path("file:///a/b") == Path("/a/b")
    assert not is_remote(as_path(r"C:\crawl"))
    there = as_path("memory://bucket/x/")
    assert is_remote(there)
    assert str(there / "y") == "memory://bucket/x/y"
    assert as_path(str(there / "y")) == there / "y"
    assert locations.absolute("memory://bucket/x") == "memory://bucket/x"
    assert Path(locations.absolute("x")).is_absolute()


@pytest.mark.parametrize("where", ["memory", pytest.param("s3", marks=pytest.mark.long)])
def test_a_whole_store_elsewhere_is_the_local_one(tmp_path, where, request):
    url = request.getfixturevalue(where)
    rows = stories(70)
    old, new = written(tmp_path / "old.jsonl", rows[:50]), written(tmp_path / "new.jsonl", rows[50:])
    for collection, add in ((old, False), (new, True)):
        here, there = (run(folder, collection, 0.4, add=add) for folder in (tmp_path / "store", url))
        assert facts(here) == facts(there)
        assert len(facts(here)) > 5
    everything = [run(folder, None, 0.6) for folder in (tmp_path / "store", url)]
    assert facts(everything[0]) == facts(everything[1])
    assert content(tmp_path / "store") == content(url)
    assert not [name for name in content(url) if ".writing-" in name]
    page = written(tmp_path / "page.jsonl", rows[3:4])
    stores_of_both = (Store.open(folder) for folder in (tmp_path / "store", url))
    queried = [
        run(tmp_path / f"of{k}", page, 0.3, crossed=True, against=store) for k, store in enumerate(stores_of_both)
    ]
    assert facts(queried[0]) == facts(queried[1])
    assert ("p3", "p3", 1.0) in named(queried[0].pairs, queried[0].doc_ids)


def test_a_store_is_copied_once_while_it_is_used(memory, monkeypatch):
    values = np.arange(300_000, dtype=np.int64) * 7
    with writing(memory, "things") as store:
        store.put("many", values)
        store.put("none", values[:0])
        store.strings("names", (f"n{k}" for k in range(1000)))
    fetched, fetch = [], locations.fetch
    monkeypatch.setattr(locations, "fetch", lambda path, target: fetched.append(path.name) or fetch(path, target))
    assert opened(memory, "things", verify=False).length("many", np.int64) == 300_000
    assert not fetched
    for _ in range(2):
        reader = opened(memory, "things")
        np.testing.assert_array_equal(reader.part("many", np.int64, 5000, 105_000), values[5000:105_000])
        np.testing.assert_array_equal(reader.array("many", np.int64), values)
        assert isinstance(reader.array("many", np.int64).base, np.memmap)
        assert reader.part("many", np.int64, 5, 6).flags.writeable
        assert len(reader.array("none", np.int64)) == len(reader.part("none", np.int64, 0, 0)) == 0
        assert list(reader.strings("names"))[::100] == [f"n{k}" for k in range(0, 1000, 100)]
    assert sorted(fetched) == ["many.npy", "names.offsets.npy", "names.text.npy", "none.npy"]
    with pytest.raises(InputError, match="has no range from 299999 to 300001"):
        reader.part("many", np.int64, 299_999, 300_001)
    with pytest.raises(InputError, match=r"many\.npy is no array of 600,000 values of int32"):
        reader.array("many", np.int32)
    stores.downloaded.cache_clear()
    assert reader.folder.exists()
    folder = reader.folder
    del reader
    assert not folder.exists()


def test_a_store_counts_only_with_its_manifest(memory):
    save_vectors(f"{memory}/v", edited_copies(1))
    before = content(f"{memory}/v")
    manifest = as_path(f"{memory}/v") / "store.json"
    manifest.unlink()
    with pytest.raises(InputError, match=r"is no store: it has no store\.json"):
        opened(f"{memory}/v", "vectors")
    save_vectors(f"{memory}/v", edited_copies(1))  # what a killed process left does not stop the next
    assert content(f"{memory}/v") == before
    save_vectors(f"{memory}/v", edited_copies(2))
    assert content(f"{memory}/v") != before
    opened(f"{memory}/v", "vectors")
    (as_path(memory) / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is no store and will not be overwritten"):
        save_vectors(f"{memory}/other", edited_copies(1))
    with pytest.raises(InputError, match="is not empty; give another path"):
        join_store(f"{memory}/v", f"{memory}/other", 0.5, Serial(), memory=10**6)
    remove_tree(as_path(f"{memory}/v"))
    assert not sizes(as_path(f"{memory}/v"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), r"ids.npy is truncated: \d+ of \d+ bytes"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x77"), "ids.npy does not match its checksum"),
        (lambda path: path.unlink(), "ids.npy is missing"),
    ],
)
def test_damage_is_detected(memory, damage, message):
    save_vectors(memory, edited_copies(1))
    damage(as_path(memory) / "ids.npy")
    with pytest.raises(InputError, match=message):
        opened(memory, "vectors").array("ids", np.int32)


def test_templates_are_removed_in_remote_stores_too(tmp_path, memory):
    from spotsigs.formats.folder import Folder
    from spotsigs.signatures.spots import SpotSignatures
    from spotsigs.signatures.template_removal import TemplateRemoval
    from spotsigs.text.visible import VisibleText

    parts = (VisibleText(), TemplateRemoval(signature=SpotSignatures(d=1, c=2)), PARTS[2])
    tiny = Folder(path=str(ROOT / "data" / "tiny"))
    folders = (tmp_path / "store", memory)
    here, there = (match_on_disk(folder, tiny, *parts, 0.25, Serial(), memory=MEMORY) for folder in folders)
    assert facts(here) == facts(there)
    assert len(facts(here)) > 5
    assert content(tmp_path / "store") == content(memory)
    before = content(memory)
    match_on_disk(memory, tiny, *parts, 0.25, Serial(), memory=MEMORY)
    assert content(memory) == before


# the front door


def run_with_store(folder, tmp_path):
    return ran(tmp_path, f"store={folder}", "data=tiny", "tau=0.25", "engine=serial", "memory=1GB")


def test_wrong_locations_and_missing_libraries_are_errors(tmp_path, s3, monkeypatch):
    for path in ("s3://nowhere/x.jsonl", "s3://nowhere/*.jsonl"):
        with pytest.raises(InputError, match=r"there is no bucket nowhere"):
            Jsonl(path=path).shards()
    with pytest.raises(InputError, match="s3://nowhere/x: there is no bucket nowhere; make it first"):
        run_with_store("s3://nowhere/x", tmp_path)
    with pytest.raises(InputError, match="nosuch://x cannot be reached: Protocol not known: nosuch"):
        run_with_store("nosuch://x", tmp_path)
    for module in ("s3fs", "upath", "fsspec"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            if module == "s3fs":
                patch.delitem(sys.modules["fsspec.registry"]._registry, "s3")  # which has it from before
            with pytest.raises(InputError, match=r"s3://crawls/x needs libraries.*pip install 'spotsigs\[cloud\]'"):
                run_with_store("s3://crawls/x", tmp_path)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, r"s3://crawls/x\S* cannot be reached: .*127.0.0.1:9"),
        (
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": "/none", "HOME": "/none"},
            r"s3://crawls/x\S* needs credentials: Unable to locate credentials; give them",
        ),
    ],
)
def test_an_unreachable_location_is_an_error(tmp_path, s3, environment, message):
    words = ["cluster", "data/tiny", "--store", "s3://crawls/x", "--engine", "serial", "--memory", "1GB"]
    done = process(*words, "--out", tmp_path, environment=environment)
    assert done.returncode == 1
    assert re.search(message, done.stderr.splitlines()[-1]), done.stderr
    assert "Traceback" not in done.stderr


# inputs


@pytest.mark.parametrize(
    ("kind", "pack"),
    [*(("jsonl", pack) for pack in ("", ".gz", ".zst")), ("warc", ""), ("warc", ".gz"), ("csv", ""), ("parquet", "")],
)
def test_inputs_elsewhere_are_the_local_ones(tmp_path, memory, kind, pack):
    folder, suffix = as_path(memory) / "crawl", kind + pack
    for number, docs in enumerate((texts(30, 1), texts(20, 2))):
        for root in (tmp_path, folder):
            (root / f"{number}.{suffix}").write_bytes(file_of(kind, docs, pack))
    (folder / ".hidden" / f"x.{suffix}").write_bytes(file_of(kind, docs, pack))
    for below in ("", f"/0.{suffix}", f"/*.{suffix}"):
        here, there = (FORMATS[kind](path=f"{root}{below}", shard_bytes=3000) for root in (tmp_path, folder))
        assert len(ids(read(here))) == (30 if below == f"/0.{suffix}" else 50)
        assert read(there) == read(here)
        assert [source.name for source in there.sources()] == [source.name for source in here.sources()]
        assert len(there.shards()) == len(here.shards())


@pytest.mark.long
def test_a_crawl_and_its_store_on_an_object_store(tmp_path, s3):
    tiny = ROOT / "data" / "tiny"
    for path in sorted(path for path in tiny.rglob("*") if path.is_file()):
        (as_path(s3) / "pages" / path.relative_to(tiny).as_posix()).write_bytes(path.read_bytes())
    ran(tmp_path / "local", "data=tiny", "tau=0.25", "engine=serial", f"copy={tmp_path / 'here'}")
    queried = ["data=folder", "tau=0.25", "engine=serial", f"data.path={s3}/pages"]
    ran(tmp_path / "remote", *queried, "memory=1GB", f"store={s3}/store", f"copy={tmp_path / 'copy'}")
    assert same(tmp_path / "local", tmp_path / "remote")
    kept = set(pd.read_csv(tmp_path / "remote/kept.csv")["doc"])
    copied = {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*.*")}
    assert copied == kept | {MANIFEST}
    with pytest.raises(InputError, match="s3://crawls/none is no file, and no file is below it; give another path"):
        ran(tmp_path / "x", "data=folder", "data.path=s3://crawls/none", "engine=serial")


# servers that fail


@pytest.fixture(scope="module")
def undisturbed(server, tmp_path_factory):
    """Return a collection, its pairs, its store, and the number of requests of a run on the server."""
    folder = tmp_path_factory.mktemp("undisturbed")
    collection = written(folder / "x.jsonl", stories(40))
    matched = match_on_disk(folder / "store", collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    server.heal()
    match_on_disk("s3://crawls/undisturbed", collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    return collection, facts(matched), content(folder / "store"), server.count


def check_complete(url):
    """Check that each store below a URL is complete."""
    for name in content(url):
        if name.endswith("store.json"):
            folder = (as_path(url) / name).parent
            opened(folder, json.loads((folder / "store.json").read_text())["kind"])


def cases():
    """Yield kinds of faults at ten moments of a run, of which the quick tests take two."""
    for kind, once, k in itertools.product((*ERRORS, "timeout", "truncated"), (False, True), range(10)):
        quick = kind in ("500", "truncated") and k == 5 and not once
        if not (once and kind in ("denied", "no bucket")):
            yield pytest.param(kind, k / 10, once, marks=[] if quick else pytest.mark.long)


@pytest.mark.parametrize(("kind", "at", "once"), list(cases()))
def test_a_server_that_fails_at_some_request_or_from_there_on(server, undisturbed, kind, at, once):
    """A request that fails once is repeated, or the run ends and resumes."""
    collection, expected, stored, requests = undisturbed
    url = f"s3://crawls/{next(counter)}"
    first = int(at * requests)
    server.harm(kind, range(first, first + 1 if once else 10**9))
    try:
        match_on_disk(url, collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    except InputError as error:
        assert "s3://crawls" in str(error)  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
    else:
        assert once
    assert server.harmed
    server.heal()
    check_complete(url)
    actual = match_on_disk(url, collection, *PARTS, 0.4, Serial(), memory=MEMORY)
    assert facts(actual) == expected
    assert content(url) == stored


# copies


PAGES = "".join(
    json.dumps({"id": f"{k}", "text": f"the plan of the council is read in a hall {'and so ' * (k // 2)}"}) + "\n"
    for k in range(4)
)


def keys(url):
    """Return the content of each object below a URL."""
    return {name: (as_path(url) / name).read_bytes() for name in locations.files_below(as_path(url))}


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_a_copy_replaces_no_other_objects(tmp_path, where, request):
    """A copy below a prefix deleted all other keys of it, the keys of the input, too."""
    url = request.getfixturevalue(where)
    for name in ("x", "y"):
        (tmp_path / f"{name}.jsonl").write_text(PAGES)
    main(["dedup", str(tmp_path), "--out", f"{url}/kept", "--workers", "1"])
    main(["dedup", str(tmp_path / "x.jsonl"), "--out", f"{url}/kept", "--overwrite", "--workers", "1"])
    assert sorted(keys(f"{url}/kept")) == [MANIFEST, "x.jsonl"]
    (as_path(url) / "kept" / "unrelated.txt").write_bytes(b"mine")
    (as_path(url) / "data" / "x.jsonl").write_bytes(PAGES.encode())
    (as_path(url) / "data" / "deep" / "y.jsonl").write_bytes(PAGES.encode())
    before = keys(url)
    for out, source, sentence in (
        ("kept", tmp_path, "kept contains unrelated.txt, which spotsigs did not write"),
        ("data", tmp_path, "data is not a copy that spotsigs wrote"),
        ("data", f"{url}/data/x.jsonl", "data/x.jsonl is in the copy"),
        ("data", f"{url}/data/deep", "data/deep is in the copy"),
        ("data/deep", f"{url}/data", "is inside the input"),
    ):
        with pytest.raises(SystemExit, match=sentence):
            main(["dedup", str(source), "--out", f"{url}/{out}", "--overwrite", "--workers", "1"])
        assert keys(url) == before


def test_a_copy_whose_upload_was_stopped_is_replaced(tmp_path, memory):
    (tmp_path / "x.jsonl").write_text(PAGES)
    words = ["dedup", str(tmp_path), "--out", f"{memory}/kept", "--workers", "1", "--overwrite"]
    (as_path(memory) / "kept" / "x.jsonl").write_bytes(b"half")
    write_manifest(as_path(memory) / "kept", ["x.jsonl"], {})
    main(words)
    assert sorted(keys(f"{memory}/kept")) == [MANIFEST, "x.jsonl"]
