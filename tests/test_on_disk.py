"""Pages to pairs on disk equal pages to pairs in memory; new against old equals the full run."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data.jsonl import Jsonl
from spotsigs.brute_force import BruteForce
from spotsigs.engines import Processes, Serial
from spotsigs.errors import InputError
from spotsigs.extract import extract
from spotsigs.on_disk import PROGRAM, data_budget, match_on_disk
from spotsigs.records import Corpus
from spotsigs.signatures import SpotSignatures
from spotsigs.text import VisibleText
from spotsigs.vectors import IdfFilter

MEMORY = 10**9
PARTS = (VisibleText(), SpotSignatures(), IdfFilter(idf_min=0.1))


def stories(n, seed=1):
    """Return pages of which many are altered copies."""
    rng = np.random.default_rng(seed)
    words = np.array([*["the", "a", "is", "was", "has"] * 8, *(f"word{k}" for k in range(300))])
    pages = []
    for _ in range(n):
        if pages and rng.random() < 0.5:
            text = list(pages[rng.integers(len(pages))])
            text[rng.integers(len(text))] = "changed"
        else:
            text = rng.choice(words, 80).tolist()
        pages.append(text)
    return [{"id": f"p{k}", "text": " ".join(text)} for k, text in enumerate(pages)]


def written(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return Jsonl(path=str(path), shard_bytes=20_000)


def named(pairs, ids):
    return {
        (*sorted((ids[i], ids[j])), s)
        for i, j, s in zip(pairs.i.tolist(), pairs.j.tolist(), pairs.similarity.tolist(), strict=True)
    }


def in_memory(collection, tau):
    signatures = extract(collection, PARTS[0], PARTS[1], Serial())
    return named(BruteForce(tau=tau)(Corpus(PARTS[2](signatures))), signatures.doc_ids)


@pytest.mark.parametrize("engine", [Serial(), Processes(workers=2)])
def test_on_disk_equals_in_memory(tmp_path, engine):
    collection = written(tmp_path / "x.jsonl", stories(300))
    for tau in (0.4, 0.9):
        found = match_on_disk(tmp_path / "run", collection, *PARTS, tau, engine, memory=MEMORY)
        expected = in_memory(collection, tau)
        assert named(found.pairs.load(), found.stored.doc_ids) == expected
        assert len(expected) > 20
    assert found.estimate(0.9)["tasks"] == len(found.pairs.folders)


@pytest.mark.parametrize("seed", range(4))
def test_new_against_old_equals_the_full_run(tmp_path, seed):
    rows = stories(200, seed)
    rng = np.random.default_rng(seed)
    split = rng.random(200) < 0.7
    parts = [
        [row for row, old in zip(rows, split, strict=True) if old],
        [row for row, old in zip(rows, split, strict=True) if not old],
    ]
    late = parts[1][::2]
    old, new, newer = (
        written(tmp_path / f"{k}.jsonl", part) for k, part in enumerate([parts[0], parts[1][1::2], late])
    )
    match_on_disk(tmp_path / "old", old, *PARTS, 0.5, Serial(), memory=MEMORY)
    match_on_disk(tmp_path / "new", new, *PARTS, 0.5, Serial(), memory=MEMORY, old=tmp_path / "old")
    found = match_on_disk(tmp_path / "newer", newer, *PARTS, 0.5, Serial(), memory=MEMORY, old=tmp_path / "new")
    fresh = {row["id"] for row in late}
    everything = in_memory(written(tmp_path / "all.jsonl", rows), 0.5)
    assert named(found.pairs.load(), found.stored.doc_ids) == {p for p in everything if {p[0], p[1]} & fresh}
    assert found.new_from == 200 - len(late)


def test_finished_stages_are_not_repeated(tmp_path):
    collection = written(tmp_path / "x.jsonl", stories(100))
    arguments = (tmp_path / "run", collection, *PARTS, 0.5, Serial())
    match_on_disk(*arguments, memory=MEMORY)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*.npy")}
    match_on_disk(*arguments, memory=MEMORY)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*.npy")} == before
    other = (*arguments[:4], IdfFilter(idf_min=0.3), *arguments[5:])
    match_on_disk(*other, memory=MEMORY)
    assert (tmp_path / "run" / "vectors" / "ids.npy").stat().st_mtime_ns != before[
        tmp_path / "run" / "vectors" / "ids.npy"
    ]


def test_what_cannot_be_done_is_said(tmp_path):
    with pytest.raises(InputError, match=r"memory=900MB is too little for 4 processes.*at least 1,328MB, or fewer"):
        data_budget(900 * 10**6, 4)
    assert data_budget(2 * 10**9, 2) == 10**9 - PROGRAM
    collection = written(tmp_path / "x.jsonl", stories(10))
    with pytest.raises(InputError, match="holds no finished extraction"):
        match_on_disk(tmp_path / "run", collection, *PARTS, 0.5, Serial(), memory=MEMORY, old=tmp_path / "none")


SCRIPT = """
import sys
from pathlib import Path
from data.wt10g_like import Wt10gLike
from spotsigs.blocks import join_store
from spotsigs.engines import Serial
from spotsigs.layout import build_vectors
from spotsigs.on_disk import data_budget
from spotsigs.segments import Segments
from spotsigs.vectors import IdfFilter
folder, memory = Path(sys.argv[1]), int(sys.argv[2])
budget = data_budget(memory)
segments = Segments(tuple(sorted((folder / "s").iterdir())))
stored = build_vectors(folder / "v", segments, IdfFilter(idf_min=0), memory=budget)
pairs = join_store(folder / "v", folder / "p", 0.5, Serial(), memory=budget)
pairs.cluster(budget)
pairs.write_parquet(folder / "pairs.parquet", stored.doc_ids, budget)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(len(pairs), len(pairs.folders), int(peak.split()[1]) * 1024)  # getrusage tells the parent's peak, if larger
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux counts it")
def test_the_budget_is_kept(tmp_path):
    from data.wt10g_like import Wt10gLike
    from spotsigs.join import self_join
    from spotsigs.records import Signatures
    from spotsigs.segments import segments_of

    n, step, memory = 400_000, 20_000, 450 * 10**6
    vectors = Wt10gLike(documents=n).vectors()
    hashes = np.sort((np.arange(vectors.n_signatures, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))

    def batches():
        for a in range(0, n, step):
            span = slice(vectors.indptr[a], vectors.indptr[a + step])
            names = tuple(f"http://example.org/{k}" for k in range(a, a + step))
            indptr = vectors.indptr[a : a + step + 1] - vectors.indptr[a]
            yield Signatures(names, (None,) * step, indptr, hashes[vectors.ids[span]], vectors.counts[span])

    segments_of(batches(), tmp_path / "s")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(memory)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    pairs, tasks, peak = map(int, run.stdout.split())
    assert pairs == len(self_join(vectors, 0.5))
    assert tasks > 3
    assert peak <= memory
