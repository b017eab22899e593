"""Runs on a store: the records of a run in memory, queries, budgets, and paths that are no files of a store."""

import os
import shutil
import sys

import numpy as np
import psutil
import pytest
from in_process import process
from stores import MEMORY, PARTS, match_on_disk, run, segments_of, stories, written

from spotsigs.errors import InputError
from spotsigs.matching.brute_force import BruteForce
from spotsigs.method import Method
from spotsigs.outofcore.pipeline import LEAST, PROGRAM, Store, data_budget, engine_within
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.store import sealed, unsealed
from spotsigs.workers.engines import Dask, Processes, Serial


@pytest.mark.parametrize("sets", [False, True])
def test_both_ways_give_the_same_record(tmp_path, sets):
    """Exact duplicates, a page without signatures and a record that cannot be read among them."""
    rows = stories(60)
    rows[40] |= {"text": rows[3]["text"]}
    rows[50] |= {"text": "nothing here"}
    rows[51] = {"id": "broken"}
    collection = written(tmp_path / "x.jsonl", rows)
    parts = dict(zip(("text", "signature", "idf_filter"), PARTS, strict=True))
    one = Method(**parts, matcher=BruteForce(tau=0.4), sets=sets).match(collection, Serial())
    other = match_on_disk(tmp_path / "s", collection, *PARTS, 0.4, Serial(), memory=MEMORY, sets=sets)
    pairs, loaded = one.pairs, other.pairs
    for name in ("i", "j", "similarity", "shared", "union"):
        np.testing.assert_array_equal(getattr(pairs, name), getattr(loaded, name))
    assert len(pairs) > 10
    assert tuple(one.doc_ids) == tuple(other.doc_ids)
    assert list(one.skipped) == list(other.skipped) != []
    np.testing.assert_array_equal(one.compared(), other.compared())
    assert not one.compared().all()
    np.testing.assert_array_equal(one.exact_duplicates.representatives, other.exact_duplicates.representatives)
    np.testing.assert_array_equal(one.signatures.occurrences(), other.signatures.occurrences())
    assert list(one.signatures.clusters) == list(other.signatures.clusters)
    assert one.signatures_of([3, 40, 5]) == other.signatures_of([3, 40, 5])
    assert {"extract", "sort_hash", "cluster"} <= one.pairs.seconds.keys() & other.pairs.seconds.keys()


def test_a_store_of_an_earlier_layout_is_refused_when_it_is_opened(tmp_path):
    run(tmp_path / "s", written(tmp_path / "x.jsonl", stories(30)))
    assert Store.open(tmp_path / "s") is not None
    path = tmp_path / "s" / "segments" / "000000" / "00000000" / "store.json"
    path.write_bytes(sealed(unsealed(path.read_bytes()) | {"version": 6}))
    with pytest.raises(InputError, match=r"/s has layout 6, this program reads layout \d+; delete it"):
        Store.open(tmp_path / "s")
    path.unlink()  # as after a stopped extraction
    assert Store.open(tmp_path / "s") is not None


def test_a_store_refuses_what_does_not_belong_there(tmp_path):
    rows = stories(40)
    one, two = written(tmp_path / "1.jsonl", rows[:30]), written(tmp_path / "2.jsonl", rows[30:])
    others = (PARTS[0], SpotSignatures(c=2), PARTS[2])
    run(tmp_path / "s", one)
    with pytest.raises(InputError, match="contains other documents; add=true adds to them"):
        run(tmp_path / "s", two)
    with pytest.raises(InputError, match=r"was made with another signature= \(.*, not 2\); give the same"):
        match_on_disk(tmp_path / "s", one, *others, 0.5, Serial(), memory=MEMORY, add=True)
    run(tmp_path / "s", two, add=True)
    with pytest.raises(InputError, match="contains documents that were added"):
        run(tmp_path / "s", one)
    with pytest.raises(InputError, match=r"in the store .* already, and others were added after them"):
        run(tmp_path / "s", one, add=True)
    (tmp_path / "s" / "segments" / "000001" / "00000000" / "store.json").unlink()
    with pytest.raises(InputError, match=r"unfinished extraction \(1 of 1 parts are missing\)"):
        run(tmp_path / "s", None)
    with pytest.raises(InputError, match="is no store of documents"):
        run(tmp_path / "none", None)


def test_finished_stages_are_not_repeated(tmp_path):
    collection = written(tmp_path / "x.jsonl", stories(100))
    arguments = (tmp_path / "run", collection, *PARTS, 0.5, Serial())
    match_on_disk(*arguments, memory=MEMORY)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*.npy")}
    (tmp_path / "run" / "vectors-in-the-making").mkdir()  # as a run that stopped after its vectors were complete
    match_on_disk(*arguments, memory=MEMORY)
    assert not (tmp_path / "run" / "vectors-in-the-making").exists()
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*.npy")} == before
    other = (*arguments[:4], IdfFilter(idf_min=0.3), *arguments[5:])
    match_on_disk(*other, memory=MEMORY)
    ids = tmp_path / "run" / "vectors" / "ids.npy"
    assert ids.stat().st_mtime_ns != before[ids]


def test_impossible_budgets_and_inputs_are_errors(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"memory=900MB is too little for 5 processes.*at least 2949MB, or fewer"):
        data_budget(900 * 10**6, 4)
    assert data_budget(2 * 10**9) == 2 * 10**9 - PROGRAM
    assert data_budget(2 * 10**9, 2) == (2 * 10**9 - 3 * PROGRAM) // 2
    with pytest.raises(InputError, match="no page was read"):
        run(tmp_path / "run", written(tmp_path / "x.jsonl", [{"id": "no text"}]))
    monkeypatch.setattr("spotsigs.outofcore.pipeline.BYTES_A_RESULT", 10**9)
    with pytest.raises(InputError, match=r"memory is too little for 2 documents: ordering .* takes 2,000 MB in"):
        run(tmp_path / "two", written(tmp_path / "y.jsonl", stories(2)))
    assert not (tmp_path / "two" / "vectors").exists()


def test_workers_that_do_not_fit_are_ended():
    """Idle workers use memory, too."""
    engine = Processes(workers=2)
    pids = set(engine.map(_pid, range(8))) - {os.getpid()}
    assert engine_within(engine, 2 * 10**9) is engine
    assert pids
    assert all(map(psutil.pid_exists, pids))
    assert engine_within(engine, 6 * 10**8) == Serial()
    assert not any(map(psutil.pid_exists, pids))
    assert len(list(engine.map(_pid, range(8)))) == 8


def _pid(number):
    return os.getpid()


def test_workers_that_do_not_fit_are_left_out(monkeypatch):
    monkeypatch.setattr("spotsigs.workers.engines.all_cores", lambda: 16)
    assert engine_within(Processes(workers=8), 10**12) == Processes(workers=8)
    assert engine_within(Processes(workers=8), 2 * 10**9) == Processes(workers=2)
    assert engine_within(Processes(workers=8), 5 * 10**8) == Serial()
    assert engine_within(Dask(workers=64, address="tcp://head:8786"), 2 * 10**9).workers == 64
    assert engine_within(Serial(), 4 * 10**8) == Serial()
    for memory in (11 * 10**8, 2 * 10**9, 16 * 10**9):
        assert data_budget(memory, engine_within(Dask(workers=16), memory).processes) >= LEAST


SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
from data.collections.wt10g_like import Wt10gLike
from spotsigs.outofcore.block_join import join_store
from spotsigs.outofcore.pair_files import pairs_at_a_time
from spotsigs.workers.engines import Serial
from spotsigs.outofcore.vectorize import build_vectors
from spotsigs.outofcore.pipeline import data_budget
from spotsigs.clustering.clusters import cluster
from spotsigs.clustering.tables import write_pairs
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.idf import IdfFilter
folder, memory = Path(sys.argv[1]), int(sys.argv[2])
budget = data_budget(memory)
segments = Blocks(tuple(sorted((folder / "s").iterdir())))
stored = build_vectors(folder / "v", segments, IdfFilter(idf_min=0), memory=budget)
pairs = join_store(folder / "v", folder / "p", 0.5, Serial(), memory=budget)
pairs = replace(pairs, chunk_size=pairs_at_a_time(budget // 16))
cluster(pairs)
write_pairs(folder / "pairs.parquet", stored.doc_ids, pairs)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(len(pairs), pairs.counters["tasks"], int(peak.split()[1]) * 1024)  # getrusage returns a larger peak of the parent
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux counts it")
def test_the_budget_is_kept(tmp_path):
    from data.collections.wt10g_like import Wt10gLike
    from spotsigs.matching.prefix_join import self_join
    from spotsigs.records import DocumentColumns, Signatures

    n, step, memory = 400_000, 20_000, 650 * 10**6  # nearly the least that is taken
    vectors = Wt10gLike(documents=n).vectors()
    hashes = np.sort((np.arange(vectors.n_signatures, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))

    def batches():
        for a in range(0, n, step):
            span = slice(vectors.indptr[a], vectors.indptr[a + step])
            names = tuple(f"http://example.org/{k}" for k in range(a, a + step))
            indptr = vectors.indptr[a : a + step + 1] - vectors.indptr[a]
            yield Signatures(DocumentColumns(names), indptr, hashes[vectors.ids[span]], vectors.counts[span])

    segments_of(batches(), tmp_path / "s")
    done = process(tmp_path, memory, program=["-c", SCRIPT])
    assert not done.returncode, done.stderr
    pairs, tasks, peak = map(int, done.stdout.split())
    assert pairs == len(self_join(vectors, 0.5))
    assert tasks > 1  # pairs of blocks; one block would not show that tasks share the budget
    assert peak <= memory


def link(name):
    """Return a change of a store that replaces a part of it by a link to another folder or its file."""

    def change(store, other):
        path = store / name
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True, parents=True)
        path.symlink_to(other / "mine.txt" if name in (".lock", "vectors/store.json", "vectors/ids.npy") else other)

    return change


def pipe(name):
    def change(store, other):
        [path] = store.glob(name)
        path.unlink()
        os.mkfifo(path)

    return change


@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links and named pipes")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (link(".lock"), "Too many levels of symbolic links"),
        (link("vectors"), "is no store and will not be overwritten"),
        (link("vectors-in-the-making"), ""),
        (link(".vectors.writing-abc"), ""),
        (link("vectors/store.json"), "store.json cannot be read"),
        (link("vectors/ids.npy"), "ids.npy is truncated"),
        (pipe("vectors/store.json"), "is no regular file; delete it"),
        (pipe("pairs-*/job.json"), "is no regular file; delete it"),
    ],
)
@pytest.mark.parametrize("finished", [True, False])
def test_links_and_pipes_in_a_store_harm_nothing_else(tmp_path, change, message, finished):
    """A run ends as usual or with a sentence, and does not wait."""
    collection, store, other = written(tmp_path / "x.jsonl", stories(20)), tmp_path / "store", tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    if finished:
        run(store, collection)
    elif change.__qualname__.startswith("pipe"):
        pytest.skip("there is no such file yet")
    change(store, other)
    try:
        run(store, collection)
    except InputError as error:
        others = "is not empty; give another path", "is no store and will not be overwritten", "needed as a lock"
        assert any(sentence in str(error) for sentence in (message, *others))  # noqa: PT017
    assert [path.name for path in other.iterdir()] == ["mine.txt"]
    assert (other / "mine.txt").read_text() == "mine"
