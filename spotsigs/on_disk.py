"""A whole crawl within a memory budget: pages to segments to vectors to pairs, each stage on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from spotsigs.blocks import PairFiles, estimate, fingerprint, join_store
from spotsigs.engines import Engine
from spotsigs.errors import InputError, require_tau
from spotsigs.layout import build_vectors
from spotsigs.records import Collection, CollectionScheme, Document, SignatureScheme
from spotsigs.refined import refine_segments
from spotsigs.segments import Segments, extract_segments
from spotsigs.store import StoredVectors, open_vectors, opened
from spotsigs.vectors import IdfFilter

PROGRAM = 300 * 10**6
"""Bytes of a process with numba, scipy and pyarrow loaded, before any data: 210 MB measured, with room to spare."""

LEAST = 32 * 10**6
"""Bytes for data below which a stage would spend its time opening files."""


@dataclass(frozen=True)
class OnDisk:
    """A matched collection.

    Attributes
    ----------
    segments : Segments
        Signatures, old documents first.
    stored : StoredVectors
        What was joined.
    pairs : PairFiles
        What was found.
    new_from : int
        Number of the first new document.
    budget : int
        Bytes for data in each process.
    """

    segments: Segments
    stored: StoredVectors
    pairs: PairFiles
    new_from: int
    budget: int

    def estimate(self, tau: float) -> dict[str, int]:
        """Return what the join takes, see `spotsigs.blocks.estimate`."""
        return estimate(self.stored, tau, memory=self.budget)


def data_budget(memory: int, workers: int = 1) -> int:
    """Return how much of a budget each process has for data, beside the program itself.

    Parameters
    ----------
    memory : int
        Bytes for all processes together.
    workers : int
        Processes that work at once.

    Raises
    ------
    InputError
        If the program alone needs nearly all of it.
    """
    budget = memory // workers - PROGRAM
    if budget < LEAST:
        raise InputError(
            f"memory={memory / 1e6:,.0f}MB is too little for {workers} processes, whose code alone takes "
            f"{PROGRAM / 1e6:,.0f} MB each; give at least {workers * (PROGRAM + LEAST) / 1e6:,.0f}MB, or fewer workers"
        )
    return budget


def match_on_disk(
    folder: str | Path,
    collection: Collection,
    text: Callable[[Document], str],
    scheme: SignatureScheme,
    idf_filter: IdfFilter,
    tau: float,
    engine: Engine,
    *,
    memory: int,
    workers: int = 1,
    sets: bool = False,
    old: str | Path | None = None,
) -> OnDisk:
    """Find all pairs of a collection that does not fit into memory.

    Every stage leaves its result in the folder and is skipped where that is complete, so that a stopped run goes on.

    Parameters
    ----------
    folder : str or Path
        Where everything is kept, on a file system that all workers see.
    collection : Collection
        The documents; with `old`, the new ones.
    text, scheme, idf_filter : callable
        As for a run in memory.
    tau : float
        Similarity threshold.
    engine : Engine
        Where extraction and joins run.
    memory : int
        Bytes for all processes together.
    workers : int
        Processes of the engine.
    sets : bool
        Count every signature once.
    old : str or Path, optional
        Folder of a former call: its documents come first, and only pairs with at least one new document are looked
        for. They are what a run over all documents gives, because document frequencies are counted over all of them;
        a scheme that looks at the whole collection looks at all of them again, from their outlines.

    Returns
    -------
    OnDisk
    """
    require_tau(tau)
    folder = Path(folder)
    earlier = former_segments(old) if old is not None else Segments(())
    added = extract_segments(folder / "segments", collection, text, scheme, engine)
    new_from = int(earlier.sizes().sum())
    extracted = segments = earlier + added
    budget = data_budget(memory, workers)
    if isinstance(scheme, CollectionScheme):
        segments = refine_segments(folder / "refined", extracted, scheme, memory=budget)
    stored = _vectors(folder / "vectors", segments, extracted, idf_filter, budget, sets)
    place = folder / f"pairs-{tau!r}-{_job(folder / 'vectors', budget, new_from)}"
    pairs = join_store(folder / "vectors", place, tau, engine, memory=budget, new_from=new_from, threads=1)
    return OnDisk(segments, stored, pairs, new_from, budget)


def _job(store: Path, budget: int, new_from: int) -> str:
    return xxhash.xxh64_hexdigest(f"{fingerprint(store)} {budget} {new_from}".encode())


def former_segments(folder: str | Path) -> Segments:
    """Return the segments of a former call, those it added to first.

    Raises
    ------
    InputError
        If there are none, or the extraction was stopped.
    """
    folder = Path(folder)
    listed = folder / "vectors" / "store.json"
    if not listed.exists():
        raise InputError(f"{folder} holds no finished extraction; run it to its end first")
    facts = opened(folder / "vectors", "vectors", verify=False).facts
    return Segments(tuple(Path(place) for place in facts["segments"]))


def _vectors(
    folder: Path, segments: Segments, extracted: Segments, idf_filter: IdfFilter, memory: int, sets: bool
) -> StoredVectors:
    """Build the vectors, unless they are there and come from the same signatures and settings."""
    made_of = {
        "segments": [str(place.resolve()) for place in extracted.folders],
        "content": xxhash.xxh64_hexdigest("".join(map(fingerprint, segments.folders)).encode()),
        "filter": f"{idf_filter!r} {sets=}",
    }
    if (folder / "store.json").exists():
        facts = opened(folder, "vectors", verify=False).facts
        if {key: facts.get(key) for key in made_of} == made_of:
            return open_vectors(folder, verify=False)
    return build_vectors(folder, segments, idf_filter, memory=memory, sets=sets, facts=made_of)
