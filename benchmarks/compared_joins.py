"""Tools compared in `benchmarks.end_to_end`, each used as in its documentation, from files to kept documents.

``python -m benchmarks.compared_joins NAME INPUT OUT`` reads ``INPUT`` (JSON lines with ``id`` and ``html`` or ``text``)
and writes to ``OUT`` the kept documents, and the near-duplicates as ``pairs.csv`` or ``groups.csv``. To add a tool,
write such a function and its features, and add it to `CONTESTANTS`.
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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from spotsigs.arrays.parallel import all_cores

Features = Callable[[str], list[str]]

PERMUTATIONS = 128
_NOT_A_WORD = re.compile(r"\W", re.UNICODE)


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """Compared tool.

    Attributes
    ----------
    run : callable
        Function ``(input, out) -> None``.
    tau : float
        Threshold of its documentation for the Jaccard similarity of its features.
    features : callable
        Function from a text to the compared features, which define the exact pairs for its evaluation.
    settings : str
        Short description of its settings.
    """

    run: Callable[[Path, Path], None]
    tau: float
    features: Features
    settings: str


def main_text(html: str) -> str:
    """Return the main content of a page, extracted by trafilatura with its defaults."""
    import trafilatura

    return trafilatura.extract(html) or ""


def documents(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the documents of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def with_texts(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield documents with their texts; texts of pages are extracted in one process for each core."""
    with path.open(encoding="utf-8") as lines, ProcessPoolExecutor(all_cores()) as pool:
        for line, text in pool.map(_with_text, lines, chunksize=64):
            yield json.loads(line), text


def _with_text(line: str) -> tuple[str, str]:
    document = json.loads(line)
    return line, document["text"] if "text" in document else main_text(document["html"])


def words5(text: str) -> list[str]:
    """Return the 5-grams of words as in text-dedup."""
    words = [word for word in _NOT_A_WORD.split(text.lower()) if word]
    return [" ".join(words[at : at + 5]) for at in range(max(len(words) - 4, 1 if words else 0))]


def _text_dedup(path: Path, out: Path) -> None:
    """Run text_dedup.minhash with its defaults on JSON lines of texts, for pages their main content."""
    texts = out / "texts.jsonl"
    with texts.open("w", encoding="utf-8") as file:
        for document, text in with_texts(path):
            file.write(json.dumps({"id": document["id"], "text": text}) + "\n")
    arguments = ["--path", "json", "--data_files", str(texts), "--split", "train", "--cache_dir", str(out / "cache")]
    arguments += ["--output", str(out / "kept"), "--column", "text", "--idx_column", "id", "--debug"]
    arguments += ["--num_proc", str(all_cores())]
    subprocess.run([sys.executable, "-m", "text_dedup.minhash", *arguments], check=True)
    with (out / "kept" / "uf.pkl").open("rb") as file:
        union = pickle.load(file)
    _write(out / "groups.csv", ("doc", "group"), ((doc, union.find(doc)) for doc in list(union.parent)))


def _datatrove(path: Path, out: Path) -> None:
    """Run the four steps of datatrove's example on its local executor, with a task for each core."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter
    from datatrove.pipeline.extractors import Trafilatura
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter

    is_html = "html" in next(documents(path))
    tasks = 4 * all_cores()
    parts = out / "parts"  # a task reads at least one file
    parts.mkdir()
    with path.open(encoding="utf-8") as lines:
        files = [(parts / f"{k:03d}.jsonl").open("w", encoding="utf-8") for k in range(tasks)]
        for number, line in enumerate(lines):
            files[number % tasks].write(line)
        for file in files:
            file.close()

    def read() -> list[Any]:
        reader = JsonlReader(str(parts), text_key="html" if is_html else "text", id_key="id")
        return [reader, *([Trafilatura()] if is_html else [])]

    def run(name: str, steps: list[Any], share: int) -> None:
        LocalPipelineExecutor(steps, tasks=share, workers=all_cores(), logging_dir=str(out / "logs" / name)).run()

    texts = str(out / "texts")
    run("read", [*read(), JsonlWriter(texts, compression=None)], tasks)
    again = JsonlReader(texts, text_key="text", id_key="id")
    run("signatures", [again, MinhashDedupSignature(str(out / "signatures"))], tasks)
    run("buckets", [MinhashDedupBuckets(str(out / "signatures"), str(out / "buckets"))], 14)
    run("cluster", [MinhashDedupCluster(str(out / "buckets"), str(out / "remove"), save_cluster_id=True)], 1)
    keep = MinhashDedupFilter(str(out / "remove"))
    run("filter", [again, keep, JsonlWriter(str(out / "kept"), compression=None)], tasks)
    _write(out / "groups.csv", ("doc", "group"), _datatrove_groups(out))


def _datatrove_groups(out: Path) -> Iterator[tuple[str, int]]:
    """Yield the documents in clusters, with the number of the cluster.

    The filter writes them, to a file for each task, only if it removes documents.
    """
    for rank, texts in enumerate(sorted((out / "texts").rglob("*.jsonl"))):
        clusters = out / "remove" / f"{rank:06d}.clusters"
        if clusters.exists():
            names = [document["id"] for document in documents(texts)]
            for row, group in struct.iter_unpack("<2I", clusters.read_bytes()):
                yield names[row], group


def _datatrove_features(text: str) -> list[str]:
    from datatrove.utils.text import TextNormConfig, ngrams, simplify_text

    words = _datatrove_tokenizer().word_tokenize(simplify_text(text, TextNormConfig()))
    return [" ".join(chain) for chain in ngrams(words, 5)]


@cache
def _datatrove_tokenizer() -> Any:
    from datatrove.utils.typeshelper import Languages
    from datatrove.utils.word_tokenizers import load_word_tokenizer

    return load_word_tokenizer(Languages.english)


def _datasketch(path: Path, out: Path) -> None:
    """Run MinHashLSH as in datasketch's example: query each document, then insert it."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH()
    pairs = []
    with _kept(out) as keep:
        for number, (document, text) in enumerate(with_texts(path)):
            sketch = MinHash(num_perm=PERMUTATIONS)
            sketch.update_batch([word.encode() for word in words5(text)])
            before = index.query(sketch) if text else []
            pairs += [(other, number) for other in before]
            if text:
                index.insert(number, sketch)
            if not before:
                keep(document)
    _write_pairs(path, out, pairs)


_RENSA_TAU = 0.8


def _rensa(path: Path, out: Path) -> None:
    """Run RMinHashLSH as in rensa's example: candidates whose estimate reaches the threshold."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=_RENSA_TAU, num_perm=PERMUTATIONS, num_bands=16)
    sketches: dict[int, Any] = {}
    pairs = []
    with _kept(out) as keep:
        for number, (document, text) in enumerate(with_texts(path)):
            sketch = RMinHash(num_perm=PERMUTATIONS, seed=42)
            sketch.update(words5(text))
            near = index.query(sketch) if text else []
            before = [other for other in near if sketches[other].jaccard(sketch) >= _RENSA_TAU]
            pairs += [(other, number) for other in before]
            if text:
                index.insert(number, sketch)
                sketches[number] = sketch
            if not before:
                keep(document)
    _write_pairs(path, out, pairs)


class _kept:  # noqa: N801
    """Context manager whose value is a function that writes a kept document."""

    def __init__(self, out: Path) -> None:
        self._file = (out / "kept.jsonl").open("w", encoding="utf-8")

    def __enter__(self) -> Callable[[dict[str, Any]], object]:
        return lambda document: self._file.write(json.dumps(document) + "\n")

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _write_pairs(path: Path, out: Path, pairs: Iterable[tuple[int, int]]) -> None:
    names = [document["id"] for document in documents(path)]
    _write(out / "pairs.csv", ("doc_a", "doc_b"), ((names[a], names[b]) for a, b in pairs))


def _write(path: Path, header: tuple[str, str], rows: Iterable[tuple[Any, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


CONTESTANTS = {
    "text-dedup": Contestant(
        run=_text_dedup, tau=0.7, features=words5, settings="minhash, defaults: 250 permutations, chains of 5 words"
    ),
    "datatrove": Contestant(
        run=_datatrove,
        tau=(1 / 14) ** (1 / 8),
        features=_datatrove_features,
        settings="minhash, defaults: 14 buckets of 8, chains of 5 words; local executor",
    ),
    "datasketch": Contestant(
        run=_datasketch,
        tau=0.9,
        features=words5,
        settings="MinHashLSH, defaults: threshold .9, 128 permutations; chains of 5 words",
    ),
    "rensa": Contestant(
        run=_rensa,
        tau=_RENSA_TAU,
        features=words5,
        settings="RMinHashLSH, 128 permutations, 16 bands, chains of 5 words",
    ),
}

if __name__ == "__main__":
    CONTESTANTS[sys.argv[1]].run(Path(sys.argv[2]), Path(sys.argv[3]))
