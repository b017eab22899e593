"""Speed of extraction and of the HTML parser alone, on real documentation pages or, without these, on gold.

Each step is a function of the pages; to add a step, write one and add it to `STEPS`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import Any

from data.collections.gold import Gold
from data.collections.package_docs import PackageDocs
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import InputError
from spotsigs.records import Document
from spotsigs.runs.provenance import QUIET, ForeignLoad
from spotsigs.signatures.extract import extract_shard
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText, visible_text

PASSES = 5
MOST_PASSES = 10
MEGABYTES = 40.0
FEW_MEGABYTES = 5.0


def bare_parser(documents: Sequence[Document]) -> None:
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


STEPS: dict[str, Callable[[Sequence[Document]], None]] = {
    "bare parser (selectolax)": bare_parser,
    "pages to text": text,
    "pages to signatures": signatures,
}


def measure(*, few: bool) -> list[dict[str, Any]]:
    """Return MB/s of each step in one process, then of pages to signatures on all cores."""
    name, documents = _pages(FEW_MEGABYTES if few else MEGABYTES)
    size = sum(len(page.content) for page in documents) / 1e6
    about = {"collection": name, "pages": len(documents), "mb": size}
    rows = [{"step": step} | about | _speed(size, partial(run, documents)) for step, run in STEPS.items()]
    shares = [documents[k :: all_cores()] for k in range(all_cores())]
    with ProcessPoolExecutor(len(shares), get_context("spawn"), initializer=_hold, initargs=(shares,)) as pool:
        speed = _speed(size, lambda: list(pool.map(_extract_share, range(len(shares)))))
    return [*rows, {"step": f"pages to signatures, {len(shares)} processes"} | about | speed]


def _speed(size: float, run: Callable[[], Any]) -> dict[str, Any]:
    """Return the median MB/s of the undisturbed passes, after one that loads the kernels."""
    run()
    passes: list[tuple[float, float]] = []
    while sum(cores <= QUIET for cores, _ in passes) < PASSES and len(passes) < MOST_PASSES:
        with ForeignLoad() as load:
            began = time.perf_counter()
            run()
            seconds = time.perf_counter() - began
        passes.append((load.cores, size / seconds))
    quiet = [speed for cores, speed in passes if cores <= QUIET]
    counted = quiet or [speed for _, speed in passes]
    most = max(speed for _, speed in passes)
    return {"mb_per_s": statistics.median(counted), "most_mb_per_s": most, "contended": not quiet}


def _pages(megabytes: float) -> tuple[str, list[Document]]:
    """Return real HTML pages as bytes if they can be fetched, else generated ones."""
    real = PackageDocs(
        package="SQLAlchemy",
        versions=["1.4.54", "2.0.36"],
        subfolder="doc",
        suffixes=[".html"],
        media_type="text/html",
    )
    try:
        real.prepare()
    except InputError:  # there is no network
        return "gold (generated)", _some(Gold(), megabytes)
    return "SQLAlchemy's documentation", _some(real, megabytes)


def _some(collection: Any, megabytes: float) -> list[Document]:
    documents: list[Document] = []
    size = 0
    for shard in collection.shards():
        for page in shard():
            if not isinstance(page, Document) or size > megabytes * 1e6:
                continue
            content = page.content.encode() if isinstance(page.content, str) else page.content
            documents.append(replace(page, content=content))
            size += len(content)
    return documents


_SHARES: list[Sequence[Document]] = []


def _hold(shares: list[Sequence[Document]]) -> None:
    _SHARES[:] = shares


def _extract_share(k: int) -> None:
    signatures(_SHARES[k])
