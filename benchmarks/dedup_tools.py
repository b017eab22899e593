"""Deduplication tools compared by `benchmarks.end_to_end`, each as in its documentation.

``python -m benchmarks.dedup_tools NAME INPUT OUT`` reads ``INPUT`` (JSON lines with ``id`` and ``text``, for our own
tools also ``html``) and writes ``OUT/decisions.csv``: the id of each document in a group or kept, its group, and
whether the tool keeps it. To add a tool, write such a function and add it to `TOOLS`.
"""

from __future__ import annotations

import csv
import json
import pickle
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from spotsigs.arrays.parallel import all_cores
from spotsigs.records import Document
from spotsigs.text.visible import visible_text
from spotsigs.workers.engines import Processes

PERMUTATIONS = 128
RENSA_TAU = 0.8
_NOT_A_WORD = re.compile(r"\W", re.UNICODE)
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Program:
    """Compared program: a function of input and output, its settings, and the texts it reads (HTML, or of `TEXTS`)."""

    run: Callable[[Path, Path], None]
    settings: str
    texts: tuple[str, ...] = ("whole page", "main content")


def documents(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the documents of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def main_content(html: str) -> str:
    """Return the main content of a page, extracted by trafilatura with its defaults."""
    import trafilatura

    return trafilatura.extract(html) or ""


def whole_page(html: str) -> str:
    """Return the visible text of a page."""
    return visible_text(Document(id="", content=html))


def extract(text: Callable[[str], str], path: Path, out: Path) -> None:
    """Write the texts of pages, extracted in one process for each core, to ``out/texts.jsonl``."""
    pages = list(documents(path))
    parts = [[page["html"] for page in pages[k : k + 64]] for k in range(0, len(pages), 64)]
    found = chain.from_iterable(Processes(workers=all_cores()).map(partial(_texts, text), parts))
    with (out / "texts.jsonl").open("w", encoding="utf-8") as file:
        for page, content in zip(pages, found, strict=True):
            file.write(json.dumps({"id": page["id"], "text": content, "cluster": page.get("cluster")}) + "\n")


def _texts(text: Callable[[str], str], pages: list[str]) -> list[str]:
    return [text(page) for page in pages]


TEXTS = {"whole page": whole_page, "main content": main_content}
"""Functions from HTML to text, by name."""


def words5(text: str) -> list[str]:
    """Return the 5-grams of words as in text-dedup."""
    words = [word for word in _NOT_A_WORD.split(text.lower()) if word]
    return [" ".join(words[at : at + 5]) for at in range(max(len(words) - 4, 1 if words else 0))]


def write_decisions(out: Path, kept: Iterable[str], groups: Iterable[tuple[str, Any]]) -> None:
    """Write the decisions of a tool; a kept document without a group is a group of its own."""
    remaining = set(kept)
    rows = [(name, group, name in remaining) for name, group in groups]
    rows += [(name, f"only {name}", True) for name in sorted(remaining - {name for name, _, _ in rows})]
    with (out / "decisions.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("doc", "group", "kept"), *rows])


def _text_dedup(path: Path, out: Path) -> None:
    from datasets import load_from_disk

    arguments = ["--path", "json", "--data_files", str(path), "--split", "train", "--cache_dir", str(out / "cache")]
    arguments += ["--output", str(out / "kept"), "--column", "text", "--idx_column", "id", "--debug"]
    arguments += ["--num_proc", str(all_cores())]
    subprocess.run([sys.executable, "-m", "text_dedup.minhash", *arguments], check=True)
    with (out / "kept" / "uf.pkl").open("rb") as file:
        union = pickle.load(file)
    kept = map(str, load_from_disk(str(out / "kept"))["id"])
    write_decisions(out, kept, [(str(name), union.find(name)) for name in list(union.parent)])


def _datatrove(path: Path, out: Path) -> None:
    """Run the four steps of datatrove's example on its local executor, with four tasks for each core."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    tasks = 4 * all_cores()
    texts = out / "texts"  # a task reads at least one file
    texts.mkdir()
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for k in range(tasks):
        (texts / f"{k:03d}.jsonl").write_text("".join(lines[k::tasks]), encoding="utf-8")

    def run(name: str, steps: list[Any], tasks: int) -> None:
        LocalPipelineExecutor(steps, tasks=tasks, workers=all_cores(), logging_dir=str(out / "logs" / name)).run()

    read = JsonlReader(str(texts), text_key="text", id_key="id")
    run("signatures", [read, MinhashDedupSignature(str(out / "signatures"))], tasks)
    run("buckets", [MinhashDedupBuckets(str(out / "signatures"), str(out / "buckets"))], 14)
    run("cluster", [MinhashDedupCluster(str(out / "buckets"), str(out / "remove"), save_cluster_id=True)], 1)
    keep = MinhashDedupFilter(str(out / "remove"))
    run("filter", [read, keep, JsonlWriter(str(out / "kept"), compression=None)], tasks)
    kept = (document["id"] for file in (out / "kept").rglob("*.jsonl") for document in documents(file))
    write_decisions(out, kept, datatrove_groups(out))


def datatrove_groups(out: Path) -> Iterator[tuple[str, int]]:
    """Yield the documents in clusters, with the number of the cluster."""
    for rank, texts in enumerate(sorted((out / "texts").glob("*.jsonl"))):
        clusters = out / "remove" / f"{rank:06d}.clusters"
        if clusters.exists():
            names = [document["id"] for document in documents(texts)]
            for row, group in struct.iter_unpack("<2I", clusters.read_bytes()):
                yield names[row], group


def _datasketch(path: Path, out: Path) -> None:
    """Run MinHashLSH as in datasketch's example: query each document, then insert it."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH()

    def partners(number: int, text: str) -> list[int]:
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch([word.encode() for word in words5(text)])
        others = index.query(sketch)
        index.insert(number, sketch)
        return list(others)

    _one_by_one(path, out, partners)


def _rensa(path: Path, out: Path) -> None:
    """Run RMinHashLSH as in rensa's example: candidates whose estimate reaches the threshold."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=RENSA_TAU, num_perm=PERMUTATIONS, num_bands=16)
    sketches: dict[int, Any] = {}

    def partners(number: int, text: str) -> list[int]:
        sketch = RMinHash(num_perm=PERMUTATIONS, seed=42)
        sketch.update(words5(text))
        others = [other for other in index.query(sketch) if sketches[other].jaccard(sketch) >= RENSA_TAU]
        index.insert(number, sketch)
        sketches[number] = sketch
        return others

    _one_by_one(path, out, partners)


def _one_by_one(path: Path, out: Path, partners: Callable[[int, str], list[int]]) -> None:
    """Keep each document without an earlier partner; a removed one joins the group of its first partner."""
    names: list[str] = []
    group: list[int] = []
    for number, document in enumerate(documents(path)):
        others = partners(number, document["text"]) if document["text"] else []
        names.append(document["id"])
        group.append(group[min(others)] if others else number)
    kept = (name for number, name in enumerate(names) if group[number] == number)
    write_decisions(out, kept, zip(names, group, strict=True))


def _spotsigs(path: Path, out: Path, *options: str) -> None:
    command = [sys.executable, "-m", "spotsigs", "dedup", str(path), "--out", str(out / "kept"), *options]
    _ours(path, out, [*command, "--results", str(out / "run")])


def _simhash(path: Path, out: Path) -> None:
    """Run our implementation of CopyCat's method: 64 bits over 3-grams, radius 3."""
    keys = ["data=jsonl", f"data.path={path}", f"hydra.run.dir={out / 'run'}"]
    keys += ["signature=shingles3", "matcher=simhash", "clusters=components", "idf_min=0", "idf_max=1"]
    _ours(path, out, [sys.executable, str(_ROOT / "run.py"), *keys])


def _ours(path: Path, out: Path, command: list[str]) -> None:
    subprocess.run(command, cwd=_ROOT, check=True)
    with (out / "run" / "kept.csv").open(newline="", encoding="utf-8") as file:
        kept = [row["doc"] for row in csv.DictReader(file)]
    with (out / "run" / "removed.csv").open(newline="", encoding="utf-8") as file:
        removed = {row["doc"]: row["kept_instead"] for row in csv.DictReader(file)}
    write_decisions(
        out, kept, [(document["id"], removed.get(document["id"], document["id"])) for document in documents(path)]
    )


TOOLS = {
    "SpotSigs": Program(run=_spotsigs, settings="spotsigs dedup", texts=("HTML", "main content")),
    "SpotSigs, whole pages": Program(
        run=lambda path, out: _spotsigs(path, out, "--boilerplate", "keep"),
        settings="spotsigs dedup --boilerplate keep",
        texts=("HTML",),
    ),
    "text-dedup": Program(run=_text_dedup, settings="minhash, defaults: threshold .7, 250 permutations, 5-grams"),
    "datatrove": Program(run=_datatrove, settings="minhash, defaults: 14 buckets of 8 hashes, 5-grams; local executor"),
    "datasketch": Program(run=_datasketch, settings="MinHashLSH, defaults: threshold .9, 128 permutations; 5-grams"),
    "rensa": Program(run=_rensa, settings="RMinHashLSH, threshold .8, 128 permutations, 16 bands; 5-grams"),
    "SimHash": Program(run=_simhash, settings="64 bits, 3-grams, radius 3 (CopyCat's method, our implementation)"),
}

if __name__ == "__main__":
    if sys.argv[1] in TEXTS:
        extract(TEXTS[sys.argv[1]], Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        TOOLS[sys.argv[1]].run(Path(sys.argv[2]), Path(sys.argv[3]))
