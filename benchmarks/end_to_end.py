"""From files on disk to kept documents, each as a user would run it: ``make race``, and ``make race SIZE=300`` to try.

Every run is a process of its own on the same cores, after one on a few documents that compiles and fills caches; one
that takes too long is stopped. Its seconds are those of the wall from its start to its end, its core seconds those of
all its processes, its peak memory theirs together (shared pages counted once, where the system tells). What was found
is judged afterwards: against all pairs whose features, those of the contestant itself, reach the threshold it was run
with, and against the truth.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xxhash
from numpy.typing import NDArray

from benchmarks.compared_joins import CONTESTANTS, documents, with_texts
from data.collections.newsframes import NewsFrames
from data.collections.newsframes.packages import Packages
from data.collections.newsframes.reuters_stories import resent
from data.collections.synthetic import Synthetic
from experiments.show.tables import Column, Table
from spotsigs.arrays.parallel import all_cores
from spotsigs.clustering.clusters import cluster
from spotsigs.engines import Processes
from spotsigs.errors import InputError
from spotsigs.evaluation.documents import decided
from spotsigs.evaluation.metrics import evaluate
from spotsigs.matching.prefix_join import self_join
from spotsigs.output_files import read_json, write_json
from spotsigs.records import Document, Pairs, Truth, Vectors
from spotsigs.runs.provenance import QUIET, ForeignLoad, provenance

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 600.0
SAMPLE_SECONDS = 0.2
FEW = 60
"""Documents of the run that compiles."""

OURS = {
    "SpotSigs": ("signature=spotsigs", "matcher=spotsigs_tight", "tau=0.44"),
    "SpotSigs, templates removed": (
        "boilerplate=remove",
        "signature.d=1",
        "signature.c=2",
        "matcher=spotsigs_tight",
        "tau=0.25",
    ),
    "exact chains of 5 words": ("signature=shingles", "signature.k=5", "matcher=spotsigs_tight", "tau=0.8", "main"),
    "SimHash (CopyCat's)": ("signature=shingles3", "matcher=simhash", "main"),
}
"""Keys of run.py; ``main`` has trafilatura extract the main text of pages."""

COLUMNS = [
    Column(name="collection", title="collection"),
    Column(name="documents", title="documents", form=","),
    Column(name="tool", title="tool"),
    Column(name="seconds", title="seconds", form=",.1f"),
    Column(name="core_seconds", title="core seconds", form=",.1f"),
    Column(name="peak_mb", title="peak MB", form=",.0f"),
    Column(name="kept", title="kept", form=","),
    Column(name="pairs", title="pairs", form=","),
    Column(name="clusters", title="clusters", form=","),
    Column(name="tau", title="tau", form=".2f"),
    Column(name="precision_tau", title="precision at tau", form=".3f"),
    Column(name="recall_tau", title="recall at tau", form=".3f"),
    Column(name="precision", title="precision", form=".3f"),
    Column(name="recall", title="recall", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="stories_lost", title="stories lost", form=","),
    Column(name="lost", title="of all", form=".1%"),
    Column(name="duplicates_left", title="duplicates left", form=","),
    Column(name="left", title="of all", form=".1%"),
    Column(name="remark", title="remark"),
]
NOTES = [
    "Pairs: those that a tool names, or all of each of its clusters. At tau: against all pairs whose features reach "
    "the tool's own threshold, by a join in memory; those of this package by its join on disk. SimHash has none. "
    "Precision, recall, F1: micro averages over pairs, against the truth where there is one.",
    "Kept: documents that the tool keeps; text-dedup drops those of fewer than 5 words without counting them. Stories "
    "lost: truth clusters, single documents included, of which the tool keeps none; duplicates left: kept documents "
    "beyond the first of each story.",
]


def write_newsframes(path: Path, size: int | None) -> None:
    """Pages of data=newsframes, of a seed that nothing was developed on; fewer than 2,000 are the first of those."""
    collection = NewsFrames(seed=5, accept_licence=True, pages=max(size or 2160, 2000))
    _write(path, islice((document for shard in collection.shards() for document in shard()), size), "html")


def write_reuters(path: Path, size: int | None) -> None:
    """All texts of Reuters-21578; those of one story by the rule of data=reuters_versions are its clusters."""
    rows = [row for row in Packages(None, True, "data/cache").stories() if str(row.get("body", "")).strip()]
    story = {text.id: each.name for each in resent(rows) for text in each.texts}
    texts = (
        Document(
            id=str(row["id"]), content=f"{row.get('title', '')}\n\n{row['body']}", cluster=story.get(str(row["id"]))
        )
        for row in rows
    )
    _write(path, islice(texts, size), "text")


def write_synthetic(path: Path, size: int | None) -> None:
    """Made-up pages; 10,000 of them take the others a minute each, 200,000 an hour."""
    collection = Synthetic(documents=size or 10_000, a_shard=2000)
    with path.open("w", encoding="utf-8") as file:
        for lines in Processes(workers=all_cores()).map(_lines, collection.shards()):
            file.write(lines)


def _lines(shard: Callable[[], Iterator[Document]]) -> str:
    return "".join(_line(document, "html") for document in shard())


def _line(document: Document, column: str) -> str:
    content = document.content if isinstance(document.content, str) else document.content.decode(document.charset or "")
    return json.dumps({"id": document.id, column: content, "cluster": document.cluster}) + "\n"


def _write(path: Path, found: Iterator[Any], column: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(_line(document, column) for document in found if isinstance(document, Document))


COLLECTIONS: dict[str, Callable[[Path, int | None], None]] = {
    "newsframes": write_newsframes,
    "reuters": write_reuters,
    "synthetic": write_synthetic,
}


def command(tool: str, path: Path, out: Path, *, is_html: bool) -> list[str]:
    """Return the command that runs a tool on a file."""
    if tool in CONTESTANTS:
        return [sys.executable, "-m", "benchmarks.compared_joins", tool, str(path), str(out)]
    keys = [key for key in OURS[tool] if key != "main"]
    text = ["text=trafilatura"] if is_html and "main" in OURS[tool] else []
    places = [f"data.path={path}", f"copy={out / 'kept'}", f"hydra.run.dir={out / 'run'}"]
    return [sys.executable, str(ROOT / "run.py"), "data=jsonl", *places, *text, *keys]


def timed(arguments: Sequence[str], cores: Sequence[int], log: Path, limit: float = LIMIT_SECONDS) -> dict[str, Any]:
    """Run a command on some cores; return its seconds, core seconds, peak memory and what went wrong."""
    seconds: dict[int, float] = {}
    peak = 0
    began = time.perf_counter()
    with ForeignLoad() as load, log.open("wb") as output:
        pin = partial(os.sched_setaffinity, 0, cores) if hasattr(os, "sched_setaffinity") else None
        process = subprocess.Popen(
            arguments, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, preexec_fn=pin, start_new_session=True
        )
        main = psutil.Process(process.pid)
        try:
            while process.poll() is None:
                held = 0
                with suppress(psutil.Error):
                    for one in [main, *main.children(recursive=True)]:
                        with suppress(psutil.Error):
                            held += _held(one)
                            times = one.cpu_times()
                            seconds[one.pid] = times.user + times.system
                peak = max(peak, held)
                if time.perf_counter() - began > limit:
                    _end(main)
                time.sleep(SAMPLE_SECONDS)
        finally:  # also when the race is stopped
            _end(main)
    elapsed = time.perf_counter() - began
    remark = ""
    if process.returncode:
        last = log.read_text("utf-8", "replace").strip().splitlines()[-1:]
        remark = f"> {limit:,g} s" if elapsed > limit else f"failed: {' '.join(last)[:200]}"
    return {
        "seconds": elapsed,
        "core_seconds": sum(seconds.values()),
        "peak_mb": peak / 1e6,
        "contended": load.cores > QUIET,
        "remark": remark,
    }


def _end(process: psutil.Process) -> None:
    """End a process and all that it started."""
    with suppress(psutil.Error):
        for one in [*process.children(recursive=True), process]:
            with suppress(psutil.Error):
                one.kill()


def _held(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (AttributeError, psutil.Error):
        return int(process.memory_info().rss)


def found_pairs(out: Path, numbers: dict[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what a run found as rows of the collection, each pair once, the lower row first."""
    import pandas as pd

    if (out / "run" / "pairs.parquet").exists():
        frame = pd.read_parquet(out / "run" / "pairs.parquet")
    elif (out / "pairs.csv").exists():
        frame = pd.read_csv(out / "pairs.csv", dtype=str, keep_default_na=False)
    else:
        groups = pd.read_csv(out / "groups.csv", dtype=str, keep_default_na=False).groupby("group")["doc"]
        pairs = [pair for _, docs in groups for pair in combinations(docs, 2)]
        frame = pd.DataFrame(pairs, columns=["doc_a", "doc_b"])
    a, b = (frame[name].map(numbers).to_numpy(np.int64) for name in ("doc_a", "doc_b"))
    keys = np.unique(np.minimum(a, b) * len(numbers) + np.maximum(a, b))
    return keys // len(numbers), keys % len(numbers)


def exact_pairs(path: Path, tool: str) -> Pairs:
    """Return all pairs whose features, those of the tool, reach its threshold: the Jaccard similarity of sets."""
    features, tau = CONTESTANTS[tool].features, CONTESTANTS[tool].tau
    ends, hashes = [0], []
    for text in _texts(path):
        row = np.unique(np.array([xxhash.xxh3_64_intdigest(each.encode()) for each in features(text)], np.uint64))
        hashes.append(row)
        ends.append(ends[-1] + len(row))
    vocabulary, ids = np.unique(np.concatenate(hashes), return_inverse=True)
    vectors = Vectors.from_csr(np.array(ends), ids, np.ones(len(ids), np.int64), vocabulary=vocabulary)
    return self_join(vectors, tau)


def _texts(path: Path) -> Iterator[str]:
    """Iterate over the texts that the tools compare; they are extracted once."""
    known = path.with_suffix(".texts")
    if not known.exists():
        with known.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(text) + "\n" for _, text in with_texts(path))
    with known.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def exact_again(path: Path, tool: str, work: Path, *, is_html: bool) -> Pairs:
    """Return the pairs of one of ours by its other implementation: the layout and the join on disk, in small shares."""
    out = work / "again"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    arguments = [*command(tool, path, out, is_html=is_html), "memory=1500MB"]
    with (work / "again.log").open("wb") as output:
        subprocess.run(arguments, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=True)
    numbers = {document["id"]: row for row, document in enumerate(documents(path))}
    i, j = found_pairs(out, numbers)
    return Pairs.build(i, j, np.ones(len(i)), len(numbers))


def threshold_of(tool: str) -> float | None:
    """Return the threshold on the similarity of features that a tool is run with; SimHash has none."""
    if tool in CONTESTANTS:
        return CONTESTANTS[tool].tau
    return next((float(key.removeprefix("tau=")) for key in OURS[tool] if key.startswith("tau=")), None)


def judged(path: Path, out: Path, tool: str, exact: Callable[[], Pairs]) -> dict[str, Any]:
    """Return what a run found and how good it is."""
    rows = [(document["id"], document.get("cluster")) for document in documents(path)]
    numbers = {name: row for row, (name, _) in enumerate(rows)}
    i, j = found_pairs(out, numbers)
    pairs = Pairs.build(i, j, np.ones(len(i)), len(rows))
    sizes, kept = cluster(pairs, clusters="components").sizes, kept_ids(out)
    facts: dict[str, Any] = {"pairs": len(pairs), "clusters": int((sizes > 1).sum())}
    facts["kept"] = None if kept is None else len(kept)
    truth = Truth.from_clusters(name for _, name in rows)
    if truth is not None:
        quality = evaluate(pairs, truth, resamples=0)
        facts |= {"precision": quality.precision, "recall": quality.recall, "f1": quality.f1}
    if truth is not None and kept is not None:
        found = decided(np.isin(np.arange(len(rows)), [numbers[name] for name in kept]), truth)
        facts |= asdict(found) | {"lost": found.lost, "left": found.left}
    if threshold_of(tool) is not None:
        all_of_them, n = exact(), len(rows)
        shared = np.intersect1d(i * n + j, all_of_them.i.astype(np.int64) * n + all_of_them.j, assume_unique=True)
        facts |= {
            "tau": threshold_of(tool),
            "precision_tau": len(shared) / max(len(pairs), 1),
            "recall_tau": len(shared) / max(len(all_of_them), 1),
        }
    return facts


def kept_ids(out: Path) -> list[str] | None:
    """Return the ids of the documents that a run kept; None if it wrote none."""
    if (out / "kept" / "dataset_info.json").exists():
        from datasets import load_from_disk

        return [str(name) for name in load_from_disk(str(out / "kept"))["id"]]
    files = [path for path in [*out.glob("kept.jsonl"), *(out / "kept").rglob("*.jsonl")] if path.is_file()]
    return [document["id"] for path in files for document in documents(path)] if files else None


def race(
    names: Sequence[str], tools: Sequence[str], size: int | None, cores: Sequence[int], work: Path, limit: float
) -> Iterator[dict[str, Any]]:
    """Run every tool on every collection, one after the other, and yield a row for each."""
    ran: set[str] = set()
    for name in names:
        path, few = work / f"{name}.jsonl", work / f"{name}-few.jsonl"
        try:
            if not path.exists():
                COLLECTIONS[name](path, size)
        except InputError as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        few.write_text("".join(islice(path.open(encoding="utf-8"), FEW)), encoding="utf-8")
        is_html, n = "html" in next(documents(path)), sum(1 for _ in documents(path))
        for tool in tools:
            facts: dict[str, Any] = {}
            warm = tool in CONTESTANTS and tool in ran  # ours compile for each input
            for at in (path,) if warm else (few, path):
                out = work / "out"
                shutil.rmtree(out, ignore_errors=True)
                out.mkdir()
                facts = timed(command(tool, at, out, is_html=is_html), cores, work / f"{name}-{tool}.log", limit)
            if not facts["remark"]:
                ours = partial(exact_again, path, tool, work, is_html=is_html)
                facts |= judged(path, out, tool, partial(exact_pairs, path, tool) if tool in CONTESTANTS else ours)
            if facts["contended"]:
                facts["remark"] = f"{facts['remark']} other processes ran beside it".strip()
            ran.add(tool)
            yield {"collection": name, "documents": n, "tool": tool} | facts


def write(row: dict[str, Any], folder: Path, cores: int) -> None:
    """Put a row into a table, in place of a former run of the same tool on as many documents of the collection."""
    made, known = provenance(), folder / "race.json"
    rows = read_json(known)["rows"] if known.exists() else []
    row |= {"commit": made["commit"]}
    output = {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
    print(json.dumps(output), flush=True)
    rows = sorted([*(each for each in rows if _place(each) != _place(row)), row], key=_place)
    settings = [f"{tool}: {contestant.settings}." for tool, contestant in CONTESTANTS.items()]
    settings += [f"{tool}: {' '.join(key for key in keys if key != 'main')}." for tool, keys in OURS.items()]
    caption = f"From files to kept documents, {cores} cores"
    Table(caption=caption, columns=COLUMNS, rows=rows, notes=[*NOTES, " ".join(settings)]).write(folder, "race")
    write_json(known, {"rows": rows, "cores": cores, **made})


def _place(row: dict[str, Any]) -> tuple[int, int, int]:
    """Return where a row stands in the table."""
    return list(COLLECTIONS).index(row["collection"]), row["documents"], [*OURS, *CONTESTANTS].index(row["tool"])


def main() -> None:
    """Race, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.end_to_end", description=__doc__)
    parser.add_argument("--collection", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS))
    parser.add_argument("--tool", nargs="+", choices=[*OURS, *CONTESTANTS], default=[*OURS, *CONTESTANTS])
    parser.add_argument("--size", type=int, help="documents of each collection")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, help="seconds after which a run is stopped")
    parser.add_argument("--work", type=Path, help="folder for inputs and outputs, which stay; by default one that goes")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of the table, whose other rows stay; results/race, or results/runs/race below 10,000",
    )
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that no tool runs on
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(all_cores()))
    cores = usable[: chosen.cores]
    with tempfile.TemporaryDirectory() as folder:
        work = chosen.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        out = chosen.out or ROOT / ("results/runs/race" if chosen.size and chosen.size < 10_000 else "results/race")
        for row in race(chosen.collection, chosen.tool, chosen.size, cores, work, chosen.limit):
            write(row, out, len(cores))  # each at once: a race takes hours
    if (out / "race.md").exists():
        print((out / "race.md").read_text("utf-8"))


if __name__ == "__main__":
    main()
