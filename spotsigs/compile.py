"""Compilation of the kernels in parallel processes: ``python -m spotsigs.compile`` compiles the kernels of every run.

A kernel is compiled once on a machine, about 20 seconds of one core in all. Each step below calls some kernels with few
data, of the types that a run has; no kernel is called by two steps, unless with the same types, because numba's cache
may confuse two that are compiled for different types at the same time. What no step has compiled, a run compiles when
it needs it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import psutil
from numba import config

from spotsigs.arrays.kernel_cache import step_marker
from spotsigs.clustering.clusters import cluster, cohesion
from spotsigs.clustering.decisions import decide
from spotsigs.clustering.leaders import LeaderOptions, leaders_of
from spotsigs.evaluation.text_lost import text_lost
from spotsigs.matching.prefix_join import SpotSigsTight, self_join
from spotsigs.method import Method
from spotsigs.records import Document, DocumentColumns, Phrases, Signatures, Tokens, Vectors, WordGrams
from spotsigs.reports.terminal import set_up_logging
from spotsigs.signatures.contained import NO_RULE, contents_of, phrases_of
from spotsigs.signatures.extract import count_signatures
from spotsigs.signatures.sections import sections_of
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_kernels import PageFeatures, PageLinks, remove_templates
from spotsigs.signatures.template_removal import TemplateRemoval, features_of, over_pages
from spotsigs.text.checksums import checksums
from spotsigs.text.hashing import hash_sentences
from spotsigs.text.tokens import tokenize_marked
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Processes, end_workers
from spotsigs.workers.progress import Progress

MEMORY = 400 << 20
"""Bytes that a process needs."""


_STARTS = np.array([0, 1, 2])
_HASHES = np.arange(2, dtype=np.uint64)
_NUMBERS = np.zeros(2, np.int32)


def _html() -> None:
    VisibleText().marked(Document(id="", content=b"<?xml version='1.0'?><p/>the page"))


def _tokens() -> None:
    hash_sentences(tokenize_marked("the page\u2122"))
    checksums(Document(id="", content=b""), "the page")
    text_lost([WordGrams(_STARTS, _HASHES)], np.array([True, False]))


def _spots() -> None:
    ends = np.array([3, 8], np.int32)
    words = np.frombuffer(b"the:page", np.uint8).copy()
    text = np.frombuffer(b"the+page", np.uint8)
    tokens = Tokens(words, np.array([0, 4], np.int32), ends, np.zeros(2, np.int32), source=text, stops=ends)
    scheme = TemplateRemoval(signature=SpotSignatures(language="auto"))
    located = scheme.located_in_outline(tokens)
    count_signatures(scheme.outline(tokens, "", located)[0])
    phrases_of(*located, tokens)


def _features() -> None:
    outlines = Signatures(DocumentColumns(("a", "b")), _STARTS, _HASHES, _NUMBERS)
    features_of(outlines, over_pages(1))
    sections_of(outlines.doc_ids, outlines)


def _templates() -> None:
    none = np.zeros(2, np.bool_)
    pages = PageFeatures(_STARTS, _NUMBERS, _NUMBERS, _STARTS, _HASHES, none, _NUMBERS, _HASHES)
    remove_templates(pages, PageLinks(np.arange(2), _STARTS, _NUMBERS, _STARTS, _NUMBERS), 0, 2)


def _vectors() -> Vectors:
    return Vectors.from_csr(
        np.array([0, 2, 4, 6]), np.array([0, 1, 0, 1, 2, 3]), vocabulary=np.arange(4, dtype=np.uint64)
    )


def _leaders() -> None:
    vectors = _vectors()
    clusters, pairs = leaders_of(vectors, 0.5, LeaderOptions(), threads=1)
    cohesion(clusters, pairs)
    contents = contents_of(Phrases(_STARTS, _HASHES), _STARTS, _HASHES, marked=False, threads=1)
    decide(pairs, clusters).measured(NO_RULE._replace(contents=contents))
    NO_RULE.lower_bounds(pairs.i, pairs.j, pairs.similarity)


def _join() -> None:
    pairs = self_join(_vectors(), 0.5, threads=1)
    cluster(pairs)
    NO_RULE.counts(pairs.i, pairs.j, pairs.similarity)


STEPS: dict[str, tuple[float, Callable[[], None]]] = {
    "html": (2.4, _html),
    "tokens": (1.1, _tokens),
    "spots": (2.0, _spots),
    "features": (1.2, _features),
    "templates": (2.7, _templates),
    "leaders": (4.0, _leaders),
    "join": (5.0, _join),
}
"""Core seconds of each step, the longest of which begin first, and its function."""


def steps_of(method: Method, *, listed: bool) -> list[str]:
    """Return the steps that a run of a method in memory needs."""
    scheme = method.signature
    removes = isinstance(scheme, TemplateRemoval)
    joins = isinstance(method.matcher, SpotSigsTight)
    needed = {
        "html": isinstance(method.text, VisibleText),
        "tokens": True,
        "spots": True,
        "features": removes,
        "templates": removes,
        "leaders": joins and not listed,
        "join": joins and listed,
    }
    return [step for step, is_needed in needed.items() if is_needed]


def prepare(steps: Sequence[str], memory: int | None = None) -> None:
    """Compile the kernels of those steps, keys of `STEPS`, that no process has compiled on this machine.

    All cores are used, and `memory` bytes by all processes, by default what is available.
    """
    if getattr(config, "DISABLE_JIT") or not sys.executable:  # noqa: B009 - the types of numba omit it
        return
    missing = [step for step in steps if not step_marker(step).exists()]
    if not missing:
        return
    if memory is None:
        memory = psutil.virtual_memory().available
    workers = Processes(workers=max(min(len(missing), memory // MEMORY), 1))
    missing.sort(key=lambda step: -STEPS[step][0])
    with Progress("compiling kernels, once on this machine", len(missing), "steps") as shown:
        for number, _ in workers.as_ended(_compile, missing):
            with suppress(OSError):
                step_marker(missing[number]).touch()
            shown.advance()
    end_workers()  # which have the memory of the compiler


def _compile(step: str) -> None:
    gc.disable()  # the compiler's many objects remain in use: collection takes 9 % of its time and frees nothing
    try:
        STEPS[step][1]()
    finally:
        gc.enable()


if __name__ == "__main__":
    from spotsigs import compile as importable  # by workers

    set_up_logging()
    importable.prepare(list(STEPS))
