"""Stores at places that fsspec reaches: the pairs of a local store, whatever the place; what goes wrong is said."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import zstandard
from object_store import object_store
from stores import StopsAt, match_on_disk, query_page, save_vectors
from test_blocks import copies
from test_large import WORKERS, ran, same, workers_below
from test_on_disk import MEMORY, PARTS, named, run, stories, written

from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.formats.jsonl import Jsonl
from spotsigs.outofcore.prefix_partition_join import join_store
from spotsigs.records import Document
from spotsigs.storage import locations as places
from spotsigs.storage import store as stores
from spotsigs.storage.locations import as_path, is_remote, sizes
from spotsigs.storage.store import open_vectors, opened, remove_tree, writing

ROOT = Path(__file__).parents[2]
upath = pytest.importorskip("upath")
counter = itertools.count()


@pytest.fixture
def memory():
    """Return a place of its own in fsspec's file system in memory."""
    return f"memory://bucket/{next(counter)}"


@pytest.fixture(scope="module")
def bucket():
    with object_store() as url:
        yield url


@pytest.fixture
def s3(bucket):
    return f"{bucket}/{next(counter)}"


def content(folder):
    """Return the arrays and manifests below a store, by their names."""
    root = as_path(folder)
    found = (path for path in root.rglob("*") if path.name.endswith((".npy", "store.json")))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def facts(found):
    return named(found.pairs.load(), found.doc_ids)


def test_places_are_paths_or_urls(tmp_path):
    assert as_path("a/b") == Path("a/b")
    assert as_path(tmp_path) is tmp_path
    assert as_path("file:///a/b") == Path("/a/b")
    assert not is_remote(as_path(r"C:\crawl"))
    there = as_path("memory://bucket/x/")
    assert is_remote(there)
    assert str(there / "y") == "memory://bucket/x/y"
    assert as_path(str(there / "y")) == there / "y"
    assert places.absolute("memory://bucket/x") == "memory://bucket/x"
    assert Path(places.absolute("x")).is_absolute()


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
    page = Document(id="page", content=rows[3]["text"], media_type="text/plain")
    asked = [query_page(folder, page, *PARTS[:2], 0.3, memory=MEMORY) for folder in (tmp_path / "store", url)]
    assert asked[0] == asked[1]
    assert asked[0][0].doc == "p3"


def test_templates_are_removed_in_remote_stores_too(tmp_path, memory):
    from spotsigs.formats.folder import Folder
    from spotsigs.signatures.spots import SpotSignatures
    from spotsigs.signatures.template_removal import TemplateRemoval
    from spotsigs.text.visible import VisibleText

    parts = (VisibleText(), TemplateRemoval(signature=SpotSignatures(d=1, c=2)), PARTS[2])
    tiny = Folder(path=str(ROOT / "data" / "tiny"))
    here, there = (
        match_on_disk(folder, tiny, *parts, 0.25, Serial(), memory=MEMORY) for folder in (tmp_path / "store", memory)
    )
    assert facts(here) == facts(there)
    assert len(facts(here)) > 5
    assert content(tmp_path / "store") == content(memory)
    before = content(memory)
    match_on_disk(memory, tiny, *parts, 0.25, Serial(), memory=MEMORY)
    assert content(memory) == before


def test_arrays_are_fetched_whole_once(memory, monkeypatch):
    values = np.arange(300_000, dtype=np.int64) * 7
    with writing(memory, "things") as store:
        store.put("many", values)
        store.put("few", values[:10])
        store.put("none", values[:0])
        store.strings("names", (f"n{k}" for k in range(1000)))
    reader = opened(memory, "things")
    fetched, fetch = [], places.fetch
    monkeypatch.setattr(places, "fetch", lambda path, target: fetched.append(path.name) or fetch(path, target))
    assert reader.length("many", np.int64) == 300_000
    assert not fetched
    np.testing.assert_array_equal(reader.part("many", np.int64, 5000, 105_000), values[5000:105_000])
    np.testing.assert_array_equal(reader.array("many", np.int64), values)
    assert isinstance(reader.array("many", np.int64).base, np.memmap)
    assert reader.part("many", np.int64, 5, 6).flags.writeable
    at = np.array([0, 1, 2, 9000, 9001, 250_000, 299_999])
    np.testing.assert_array_equal(reader.array("many", np.int64)[at], values[at])
    np.testing.assert_array_equal(reader.array("few", np.int64), values[:10])
    assert len(reader.array("none", np.int64)) == len(reader.part("none", np.int64, 0, 0)) == 0
    assert list(reader.strings("names"))[::100] == [f"n{k}" for k in range(0, 1000, 100)]
    assert sorted(fetched) == ["few.npy", "many.npy", "names.ends.npy", "names.text.npy", "none.npy"]
    with pytest.raises(InputError, match="is truncated"):
        reader.part("many", np.int64, 299_999, 300_001)
    with pytest.raises(InputError, match=r"many\.npy is no array of 600,000 values of int32"):
        reader.array("many", np.int32)


def test_a_process_keeps_few_copies(memory, monkeypatch):
    with writing(memory, "things") as store:
        for k in range(6):
            store.put(f"a{k}", np.full(9, k))
    monkeypatch.setattr("spotsigs.storage.store._MOST_COPIES", 2)
    reader = opened(memory, "things")
    for _ in range(2):
        mapped = [reader.array(f"a{k}", np.int64) for k in range(6)]
        assert [values.tolist() for values in mapped] == [[k] * 9 for k in range(6)]
    [folder] = {copy.parent for copy in stores._FETCHED}
    assert set(folder.iterdir()) >= set(stores._FETCHED)
    assert len(list(folder.iterdir())) <= 3


def test_vectors_of_a_remote_store_are_not_read_for_their_size(memory, monkeypatch):
    vectors = copies(1)
    save_vectors(memory, vectors)
    stored = open_vectors(memory)
    monkeypatch.setattr("spotsigs.storage.store.Reader.array", None)
    assert len(stored.vectors.ids) == len(vectors.ids)
    assert stored.vectors.n_signatures == vectors.n_signatures
    monkeypatch.undo()
    assert stored.vectors.ids.max() == vectors.ids.max()
    rows = np.argsort(vectors.lengths, kind="stable")
    np.testing.assert_array_equal(np.asarray(stored.vectors.ids), vectors.take(rows).ids)
    assert len(open_vectors(memory)) == len(vectors)


def test_a_store_counts_only_with_its_manifest(memory):
    save_vectors(f"{memory}/v", copies(1))
    before = content(f"{memory}/v")
    manifest = as_path(f"{memory}/v") / "store.json"
    manifest.unlink()
    with pytest.raises(InputError, match=r"is no store: it has no store\.json"):
        opened(f"{memory}/v", "vectors")
    save_vectors(f"{memory}/v", copies(1))  # what a killed process left does not stop the next
    assert content(f"{memory}/v") == before
    save_vectors(f"{memory}/v", copies(2))
    assert content(f"{memory}/v") != before
    opened(f"{memory}/v", "vectors")
    (as_path(memory) / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is no store and will not be overwritten"):
        save_vectors(f"{memory}/other", copies(1))
    with pytest.raises(InputError, match="is not empty; give another path"):
        join_store(f"{memory}/v", f"{memory}/other", 0.5, Serial(), memory=10**6)
    remove_tree(as_path(f"{memory}/v"))
    assert not sizes(as_path(f"{memory}/v"))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), r"ids.npy is truncated: \d+ of \d+ bytes"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\x77"), "ids.npy does not match its checksum"),
        (lambda path: path.unlink(), "ids.npy is missing"),
    ],
)
def test_damage_is_found(memory, damage, says):
    save_vectors(memory, copies(1))
    damage(as_path(memory) / "ids.npy")
    with pytest.raises(InputError, match=says):
        opened(memory, "vectors").array("ids", np.int32)


def test_large_files_go_up_in_parts(s3, monkeypatch, tmp_path):
    monkeypatch.setattr("spotsigs.storage.locations.PIECE", 5 << 20)  # the least that S3 takes
    values = np.random.default_rng(1).integers(0, 2**62, 2 * 10**6)
    with writing(s3, "things") as store:
        store.put("many", values)
    reader = opened(s3, "things")
    np.testing.assert_array_equal(reader.array("many", np.int64), values)
    np.testing.assert_array_equal(reader.part("many", np.int64, 10**6, 10**6 + 9), values[10**6 : 10**6 + 9])


@pytest.mark.long
def test_a_stopped_run_goes_on(tmp_path, s3):
    collection = written(tmp_path / "x.jsonl", stories(150))
    arguments = (collection, *PARTS, 0.4)
    with pytest.raises(KeyboardInterrupt):
        match_on_disk(s3, *arguments, StopsAt(2), memory=MEMORY)
    kept = {name: as_path(s3).joinpath(name).stat().st_mtime for name in content(s3)}
    assert len([name for name in kept if name.endswith("store.json")]) == 2
    time.sleep(1.1)  # the server tells times in seconds
    found = match_on_disk(s3, *arguments, Serial(), memory=MEMORY)
    assert {name: as_path(s3).joinpath(name).stat().st_mtime for name in kept} == kept
    assert facts(found) == facts(run(tmp_path / "local", collection, 0.4))


# the front door


def front_door(folder, tmp_path, *more):
    return ran(tmp_path, f"store={folder}", "data=tiny", "tau=0.25", "engine=serial", "memory=1GB", *more)


def test_a_run_writes_the_files_of_a_local_one(tmp_path, s3):
    front_door(tmp_path / "store", tmp_path / "local")
    text = front_door(s3, tmp_path / "remote")
    assert same(tmp_path / "local", tmp_path / "remote")
    assert "of 1,000 MB" in text.split("peak memory of all processes")[1]
    answer = ran(tmp_path / "x", f"store={s3}", "tau=0.25", f"query={ROOT / 'data/tiny/chess/daily.html'}")
    assert "1.000000  chess/daily.html" in answer


def test_what_goes_wrong_is_said(tmp_path, bucket, monkeypatch):
    for path in ("s3://nowhere/x.jsonl", "s3://nowhere/*.jsonl"):
        with pytest.raises(InputError, match=r"there is no bucket nowhere"):
            Jsonl(path=path).shards()
    with pytest.raises(InputError, match="s3://nowhere/x: there is no bucket nowhere; make it first"):
        front_door("s3://nowhere/x", tmp_path)
    with pytest.raises(InputError, match="nosuch://x cannot be reached: Protocol not known: nosuch"):
        front_door("nosuch://x", tmp_path)
    with pytest.raises(InputError, match="x/y is no store of documents; make it by a run that names it"):
        ran(tmp_path, "store=s3://crawls/x/y", "data=stored", "engine=serial")
    with pytest.raises(InputError, match="x/y contains no finished store; make it by a run that names it"):
        ran(tmp_path, "store=s3://crawls/x/y", f"query={ROOT / 'data/tiny/chess/daily.html'}")
    for module in ("s3fs", "upath", "fsspec"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            if module == "s3fs":
                patch.delitem(sys.modules["fsspec.registry"]._registry, "s3")  # which has it from before
            with pytest.raises(InputError, match=r"s3://crawls/x needs libraries.*pip install 'spotsigs\[cloud\]'"):
                front_door("s3://crawls/x", tmp_path)


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"},
            "s3://crawls/x cannot be reached: .*127.0.0.1:9",
        ),
        (
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": "/none", "HOME": "/none"},
            "s3://crawls/x needs credentials: Unable to locate credentials; give them",
        ),
    ],
)
def test_what_does_not_answer_is_said(tmp_path, bucket, environment, says):
    code = (
        "import os, sys\nos.environ.update({k: v for k, v in eval(sys.argv[1]).items() if v})\n"
        "[os.environ.pop(k, None) for k, v in eval(sys.argv[1]).items() if not v]\n"
        "sys.argv[1:] = sys.argv[2:]\nimport runpy\nrunpy.run_path('run.py', run_name='__main__')\n"
    )
    asked = ["data=tiny", "store=s3://crawls/x", "engine=serial", "memory=1GB", f"hydra.run.dir={tmp_path}"]
    done = subprocess.run(
        [sys.executable, "-c", code, repr(environment), *asked], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.search(says, last), done.stderr
    assert "Traceback" not in done.stderr


# real workers


def pages(path, n):
    with path.open("w") as file:
        for number in range(n):
            words = " ".join(f"the word{(number // 3) * 7 + k} is a part{k % 50} of" for k in range(60))
            file.write(json.dumps({"id": f"p{number}", "text": words}) + "\n")
    return ["data=jsonl", f"data.path={path}", "+data.shard_bytes=500000", "tau=0.5"]


def started(folder, *asked):
    command = [sys.executable, str(ROOT / "run.py"), *asked, f"hydra.run.dir={folder}"]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finished(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def until(process, happened):
    """Wait until something has happened while a run goes on; return it."""
    while not (found := happened()):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    return found


def stored(url):
    """Return how many segments a store has."""
    return sum("segments" in name and name.endswith("store.json") for name in names(url))


def names(url):
    import s3fs

    return s3fs.S3FileSystem(use_listings_cache=False).find(url.removeprefix("s3://"))


def kill_one(process, url, pids, engine):
    """Kill the busiest worker of a run when it has added a segment to its store."""
    before = stored(url)
    workers = until(process, lambda: stored(url) > before and workers_below(pids, engine))
    max(workers, key=lambda worker: sum(worker.cpu_times()[:2])).kill()


@pytest.mark.long
def test_worker_processes_read_and_write_an_object_store(tmp_path, s3):
    asked = pages(tmp_path / "x.jsonl", 600)
    ran(tmp_path / "serial", *asked, "engine=serial", f"store={tmp_path / 'store'}")
    more = ["engine=processes", "workers=2", "memory=2GB", f"store={s3}"]
    finished(started(tmp_path / "run", *asked, *more))
    assert same(tmp_path / "serial", tmp_path / "run")
    segments = {name: data for name, data in content(s3).items() if name.startswith("segments")}
    assert segments == {name: data for name, data in content(tmp_path / "store").items() if name in segments}
    assert len(pd.read_parquet(tmp_path / "run" / "pairs.parquet")) == 600


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="finds workers as Linux names them")
@pytest.mark.parametrize("engine", WORKERS)
def test_a_worker_killed_and_a_run_killed_on_an_object_store(tmp_path, s3, engine):
    for module in {"dask": ["distributed"], "ray": ["ray"]}.get(engine, []):
        pytest.importorskip(module)
    asked = pages(tmp_path / "x.jsonl", 6_000)
    ran(tmp_path / "serial", *asked, "engine=serial", "memory=2GB")
    asked += [f"engine={engine}", "workers=2", "memory=3GB", f"store={s3}"]
    first = started(tmp_path / "run", *asked)
    try:
        until(first, lambda: stored(s3) > 1)
    finally:
        tree = [psutil.Process(first.pid), *psutil.Process(first.pid).children(recursive=True)]
        for part in tree:  # also the workers: Ray does not start beside those of a killed one
            with suppress(psutil.NoSuchProcess):
                part.kill()
        first.communicate()
        psutil.wait_procs(tree, timeout=30)
    second = started(tmp_path / "run", *asked)
    try:
        kill_one(second, s3, [second.pid], engine)
        finished(second)
    finally:
        second.kill()
    assert same(tmp_path / "serial", tmp_path / "run")
    assert len(pd.read_parquet(tmp_path / "run" / "pairs.parquet")) > 5_000


@pytest.fixture
def dask_cluster(tmp_path, bucket):
    """Start a scheduler and two workers as processes of their own, as on a cluster; yield address and workers."""
    pytest.importorskip("distributed")
    contact = tmp_path / "scheduler.json"
    program = [sys.executable, "-m", "dask"]
    scheduler = [*program, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(contact)]
    worker = [*program, "worker", "--nthreads", "1", "--no-dashboard", "--scheduler-file", str(contact)]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in (scheduler, worker, worker)
    ]
    try:
        while not contact.exists():
            assert running[0].poll() is None
            time.sleep(0.1)
        yield json.loads(contact.read_text())["address"], running[1:]
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(timeout=60)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="finds workers as Linux names them")
def test_a_dask_cluster_by_its_address(tmp_path, s3, dask_cluster):
    address, workers = dask_cluster
    asked = pages(tmp_path / "x.jsonl", 6_000)
    ran(tmp_path / "serial", *asked, "engine=serial", "memory=2GB")
    asked += ["engine=dask", f"engine.address={address}", "workers=2", "memory=3GB", f"store={s3}"]
    process = started(tmp_path / "run", *asked)
    try:
        kill_one(process, s3, [worker.pid for worker in workers], "dask")
        finished(process)
    finally:
        process.kill()
    assert same(tmp_path / "serial", tmp_path / "run")
    assert len(pd.read_parquet(tmp_path / "run" / "pairs.parquet")) > 5_000


# inputs


def documents(collection):
    found = [record for shard in collection.shards() for record in shard()]
    return [(d.id, d.content if isinstance(d.content, str) else bytes(d.content)) for d in found]


def archived(kind, rows):
    from archives import warc_record

    lines = "\n".join(map(json.dumps, rows)).encode()
    return {
        "jsonl": lines,
        "jsonl.gz": gzip.compress(lines),
        "jsonl.zst": zstandard.compress(lines),
        "warc": b"".join(warc_record(f"http://x/{row['id']}", row["text"].encode()) for row in rows),
        "warc.gz": b"".join(gzip.compress(warc_record(f"http://x/{r['id']}", r["text"].encode())) for r in rows),
        "csv": pd.DataFrame(rows).to_csv(index=False).encode(),
        "parquet": pd.DataFrame(rows).to_parquet(),
    }[kind]


def collection_of(kind, path):
    from spotsigs.formats.column_files import Csv, Parquet
    from spotsigs.formats.jsonl import Jsonl
    from spotsigs.formats.warc import Warc

    name = kind.partition(".")[0]
    columns = {"id_column": "id", "text_column": "text"}
    if name == "warc":
        pytest.importorskip("fastwarc")
        return Warc(path=path, shard_bytes=3000)
    if name == "jsonl":
        return Jsonl(path=path, shard_bytes=3000)
    return (Csv if name == "csv" else Parquet)(path=path, shard_bytes=3000, **columns)


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "warc", "warc.gz", "csv", "parquet"])
def test_inputs_elsewhere_are_the_local_ones(tmp_path, memory, kind):
    for number, part in enumerate((stories(30, 1), stories(20, 2))):
        data = archived(kind, part)
        (tmp_path / f"{number}.{kind}").write_bytes(data)
        folder = as_path(memory) / "crawl"
        (folder / f"{number}.{kind}").write_bytes(data)
    (folder / ".hidden" / f"x.{kind}").write_bytes(data)
    for below in ("", f"/0.{kind}", f"/*.{kind}"):
        here, there = (collection_of(kind, f"{root}{below}") for root in (tmp_path, folder))
        expected = documents(here)
        assert documents(there) == expected
        assert len(expected) == (30 if below == f"/0.{kind}" else 50)
        assert [s.name for s in there.sources()] == [s.name for s in here.sources()]
        assert len(there.shards()) == len(here.shards())


@pytest.mark.long
def test_a_crawl_and_its_store_on_an_object_store(tmp_path, s3):
    tiny = ROOT / "data" / "tiny"
    for path in sorted(path for path in tiny.rglob("*") if path.is_file()):
        (as_path(s3) / "pages" / path.relative_to(tiny).as_posix()).write_bytes(path.read_bytes())
    ran(tmp_path / "local", "data=tiny", "tau=0.25", "engine=serial")
    asked = ["data=folder", "tau=0.25", "engine=serial", f"data.path={s3}/pages"]
    ran(tmp_path / "remote", *asked, "memory=1GB", f"store={s3}/store", f"copy={tmp_path / 'copy'}")
    assert same(tmp_path / "local", tmp_path / "remote")
    kept = set(pd.read_csv(tmp_path / "remote/kept.csv")["doc"])
    assert {path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*.*")} == kept
    with pytest.raises(InputError, match="s3://crawls/none is no file, and no file is below it; give another path"):
        ran(tmp_path / "x", "data=folder", "data.path=s3://crawls/none", "engine=serial")
