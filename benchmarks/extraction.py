"""Speed of extraction and of the HTML parser alone, on real documentation pages."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from benchmarks.end_to_end import package_docs_html
from experiments.harness.machine_load import timed
from spotsigs.arrays.parallel import all_cores
from spotsigs.records import Document
from spotsigs.signatures.extract import extract_shard
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText, visible_text
from spotsigs.workers.engines import Processes

PAGES, FEW_PAGES = 300, 40


def parse(documents: Sequence[Document]) -> None:
    """Parse with selectolax (lexbor) and return the text of the body."""
    from selectolax.lexbor import LexborHTMLParser

    for document in documents:
        body = LexborHTMLParser(document.content).body
        if body is not None:
            body.text()


def text(documents: Sequence[Document]) -> None:
    """Extract the visible text: encoding, simplification, parser."""
    for document in documents:
        visible_text(document)


def signatures(documents: Sequence[Document]) -> None:
    """Extract and count spot signatures in one process."""
    extract_shard(lambda: iter(documents), VisibleText(), SpotSignatures())


STEPS = {"bare parser (selectolax)": parse, "pages to text": text, "pages to signatures": signatures}


def pages(*, few: bool) -> list[Document]:
    """Return the first pages of the documentation."""
    read = islice(package_docs_html(None), FEW_PAGES if few else PAGES)
    return [replace(page, content=page.content.encode()) for page in read]


def measure(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Return MB/s of each step in one process, then of pages to signatures on all cores."""
    size = sum(len(page.content) for page in documents) / 1e6
    about = {"collection": "SQLAlchemy's documentation", "pages": len(documents), "mb": size}
    rows = [{"step": step} | about | _speed(size, partial(run, documents)) for step, run in STEPS.items()]
    engine = Processes(workers=all_cores())
    parts = [documents[k :: all_cores()] for k in range(all_cores())]
    speed = _speed(size, lambda: list(engine.map(signatures, parts)))
    return [*rows, {"step": f"pages to signatures, {len(parts)} processes"} | about | speed]


def _speed(size: float, run: Callable[[], Any]) -> dict[str, Any]:
    """Return the median MB/s of several passes, after one that loads the kernels."""
    run()
    seconds, _, contended, _ = timed(run)
    return {
        "mb_per_s": size / statistics.median(seconds),
        "most_mb_per_s": size / min(seconds),
        "contended": contended,
    }
