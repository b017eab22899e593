"""Helpers of tests of stores: segments of signatures in memory, pairs by name, engines that stop or run elsewhere."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
from loky import get_reusable_executor
from strategies import triples

from spotsigs.contracts import Collection
from spotsigs.formats.jsonl import Jsonl
from spotsigs.matching.bounds import rarity_classes
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.method import Method
from spotsigs.outofcore.pair_files import BYTES_A_MERGED_PAIR, merge_runs, stored_pairs, write_run
from spotsigs.outofcore.pipeline import Store
from spotsigs.records import Corpus, Document, Pairs, Vectors
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.extract import extract
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.exact_duplicates import ExactDuplicates, Sameness
from spotsigs.storage.locations import as_path
from spotsigs.storage.store import save_signatures, writing
from spotsigs.storage.tasks import Job
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

MEMORY = 2 * 10**9
PARTS = (VisibleText(), SpotSignatures(), IdfFilter(idf_min=0.1))


def match_on_disk(folder, collection, text, scheme, idf_filter, tau, engine, *, sets=False, **more):
    """Match a collection by a store."""
    of = {name: more.pop(name) for name in ("memory",) if name in more}
    duplicates = more.pop("duplicates", Sameness.text)
    method = Method(
        text=text,
        signature=scheme,
        idf_filter=idf_filter,
        matcher=SpotSigsTight(tau=tau),
        sets=sets,
        duplicates=duplicates,
    )
    return Store(folder=as_path(folder), method=method, engine=engine, **of).match(collection, **more)


def segments_of(batches, folder):
    """Write batches of signatures as segments of a new folder."""
    folders = []
    for k, batch in enumerate(batches):
        folders.append(as_path(folder) / f"{k:08d}")
        save_signatures(folders[-1], batch)
    return Blocks(tuple(folders))


def save_vectors(folder, vectors, exact_duplicates=None, step=None):
    """Write vectors in memory as a store, as `build_vectors` does; with a step, their ids are int64 multiples of it."""
    n = vectors.n_signatures
    rows = np.argsort(vectors.lengths, kind="stable")
    ordered, exact_duplicates = vectors.take(rows), exact_duplicates or ExactDuplicates.none(len(rows))
    classes = rarity_classes(vectors.document_frequencies)
    with writing(folder, "vectors") as store:
        store.put("rows", rows)
        for name in ("indptr", "counts", "lengths"):
            store.put(name, getattr(ordered, name))
        store.put("ids", ordered.ids if step is None else ordered.ids.astype(np.int64) * step)
        store.put("classes", classes[ordered.ids])
        store.put("vocabulary", np.arange(n, dtype=np.uint64) if vectors.vocabulary is None else vectors.vocabulary)
        store.put("content", exact_duplicates.content)
        store.put("representatives", exact_duplicates.representatives)
        store.strings("doc_ids", vectors.doc_ids)
        store.facts = {"rows": len(rows), "n_signatures": n if step is None else n * step}
        if step is not None:
            store.facts["ids"] = "int64"


def save_contents(folder, contents):
    """Write contents in memory as a store, and return its path."""
    with writing(folder, "contents") as store:
        store.put("indptr", np.asarray(contents.indptr, np.int64))
        store.put("hashes", contents.hashes)
    return folder


def on_disk(folder, pairs, files, rng, chunk_size):
    """Return pairs that are merged from runs over which they were distributed, and read a chunk at a time."""
    memory = BYTES_A_MERGED_PAIR * (chunk_size or 1)
    which, job = rng.integers(0, files, len(pairs)), Job(folder=str(folder))
    runs = [folder / "runs" / str(number) for number in range(files)]
    for number, run in enumerate(runs):
        some = rng.permutation(np.flatnonzero(which == number))
        write_run(run, pairs.i[some], pairs.j[some], pairs.similarity[some])
    job.checkpoint("pairs", work=lambda out: merge_runs(job, runs, pairs.n, Serial(), out, memory=memory))
    return replace(stored_pairs(job.result("pairs"), pairs.n, pairs.overlap), chunk_size=chunk_size)


def random_pairs(rng, n, m):
    i, j = rng.integers(0, n, (2, m))
    some = i != j
    i, j = np.minimum(i, j)[some], np.maximum(i, j)[some]
    return Pairs.build(i, j, (1 + (i * 7 + j * 13) % 9) / 10, n)


def named(pairs, ids):
    """Return the pairs as ids and similarity, whatever the order of the documents."""
    return {(*sorted((ids[i], ids[j])), s) for i, j, s in triples(pairs)}


@dataclass(frozen=True)
class InMemory(Collection):
    """Documents in some shards."""

    documents: tuple
    n_shards: int = 1

    def shards(self):
        size = -(-len(self.documents) // max(1, self.n_shards))
        return [partial(iter, self.documents[k * size : (k + 1) * size]) for k in range(self.n_shards)]


def pages_of(*contents, **more):
    """Return pages as a collection."""
    return InMemory(tuple(Document(id=str(k), content=content, **more) for k, content in enumerate(contents)))


class StopsAt:
    """Runs tasks until one is to begin that shall not."""

    processes = 0

    def __init__(self, last):
        self.begun, self.last = count(), last

    def map(self, function, tasks):
        for task in tasks:
            if next(self.begun) == self.last:
                raise KeyboardInterrupt
            yield function(task)


class Elsewhere:
    """Runs every task in another process."""

    processes = 1

    def map(self, function, tasks):
        with get_reusable_executor(1) as pool:  # a forked one can hang where threads have run
            for task in tasks:
                yield pool.submit(function, task).result()


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


def in_memory(collection, tau):
    signatures = extract(collection, PARTS[0], PARTS[1], Serial())
    return named(BruteForce(tau=tau)(Corpus(PARTS[2](signatures))), signatures.doc_ids)


def run(folder, collection, tau=0.5, memory=MEMORY, **more):
    return match_on_disk(folder, collection, *PARTS, tau, Serial(), memory=memory, **more)


def edited_copies(seed, n=80, signatures=60):
    """Return rows of which many are altered copies of others."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        if rows and rng.random() < 0.6:
            row = Counter(rows[rng.integers(len(rows))])
            for _ in range(rng.integers(0, 4)):
                row[int(rng.integers(signatures))] += 1
        else:
            row = Counter(rng.integers(0, signatures, rng.integers(0, 25)).tolist())
        rows.append(row)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    ids = [s for row in rows for s in row]
    return Vectors.from_csr(indptr, ids, [row[s] for row in rows for s in row], [f"d{k}" for k in range(n)])


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.suffix in (".npy", ".json")}
