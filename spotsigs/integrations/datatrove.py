"""Exact near-duplicate removal as steps of datatrove pipelines, modelled on its own deduplication.

`NearDuplicateSignatures` reads documents in any number of tasks, `NearDuplicatePairs` finds pairs and clusters in one
task, and `NearDuplicateFilter` drops documents in as many tasks as the first step; both must read the same documents.

>>> reader = JsonlReader("pages/")  # doctest: +SKIP
>>> LocalPipelineExecutor([reader, NearDuplicateSignatures("store")], tasks=8).run()  # doctest: +SKIP
>>> LocalPipelineExecutor([NearDuplicatePairs("store", tau=0.44)], tasks=1).run()  # doctest: +SKIP
>>> filtered = [reader, NearDuplicateFilter("store"), JsonlWriter("kept/")]  # doctest: +SKIP
>>> LocalPipelineExecutor(filtered, tasks=8).run()  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from datatrove.data import DocumentsPipeline
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.filters.base_filter import BaseFilter

from spotsigs.clustering.clusters import cluster
from spotsigs.clustering.decisions import decide
from spotsigs.defaults import TAU
from spotsigs.engines import Engine, Serial
from spotsigs.errors import require
from spotsigs.exact_duplicates import Sameness
from spotsigs.outofcore.pipeline import data_budget, with_copies
from spotsigs.outofcore.prefix_partition_join import join_store
from spotsigs.outofcore.segments import Segments
from spotsigs.outofcore.vectorize import build_vectors, parse_memory
from spotsigs.records import CollectionScheme, Document, SignatureScheme
from spotsigs.signatures.extract import extract_shard
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.locations import as_path, sizes
from spotsigs.storage.store import opened, save_signatures, writing
from spotsigs.text.visible import VisibleText

SERIAL = Serial()


def _name(rank: int) -> str:
    return f"{rank:08d}"


class NearDuplicateSignatures(PipelineStep):  # type: ignore[misc]
    """Store the signatures of a task's documents; the step yields no documents, like datatrove's own signatures.

    Parameters
    ----------
    store : str
        Folder or URL that all tasks can access.
    text : callable, optional
        Function from a document to its visible text. By default, content that looks like HTML is parsed.
    scheme : SignatureScheme, optional
        Spot signatures with the paper's best parameters by default. Schemes that need the whole collection are refused.
    """

    type, name = "🫂 - DEDUPS", "🎯 spot signatures"

    def __init__(
        self, store: str, text: Callable[[Document], str] | None = None, scheme: SignatureScheme | None = None
    ) -> None:
        super().__init__()
        self.store, self.text, self.scheme = store, text or VisibleText(), scheme or SpotSignatures()
        require(
            not isinstance(self.scheme, CollectionScheme),
            f"{type(self.scheme).__name__} needs all documents, but a task reads only its own; give another scheme",
        )

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> None:
        """Read the documents and write their signatures."""

        def shard() -> Iterator[Document]:
            for position, document in enumerate(data):
                self.stat_update("total")
                yield Document(id=f"{position}/{rank}/{document.id}", content=document.text)

        with self.track_time():
            signatures = extract_shard(shard, self.text, self.scheme)
            save_signatures(as_path(self.store) / "segments" / _name(rank), signatures)


class NearDuplicatePairs(PipelineStep):  # type: ignore[misc]
    """Find all pairs of documents with multiset Jaccard similarity at least tau, and the documents to drop.

    Parameters
    ----------
    store : str
        Store of `NearDuplicateSignatures`, all tasks of which must have ended.
    tau : float
        Similarity threshold in (0, 1].
    idf : IdfFilter, optional
        Filter of signatures and documents.
    memory : str
        Memory budget, such as ``2GB``.
    engine : Engine
        Engine that runs the join; this task by default.
    """

    type, name = "🫂 - DEDUPS", "🎯 near-duplicate pairs"

    def __init__(
        self, store: str, tau: float = TAU, idf: IdfFilter | None = None, memory: str = "2GB", engine: Engine = SERIAL
    ) -> None:
        super().__init__()
        self.store, self.tau, self.idf, self.engine = store, tau, idf or IdfFilter(), engine
        self.memory = parse_memory(memory)

    def run(self, data: DocumentsPipeline = None, rank: int = 0, world_size: int = 1) -> None:
        """Join the signatures and write the documents to drop; needs a single task."""
        require(world_size == 1, f"NearDuplicatePairs needs all documents: use tasks=1, not {world_size}")
        store, budget = as_path(self.store), data_budget(self.memory, self.engine.processes)
        found = sorted(sizes(store / "segments"))
        whole = bool(found) and found == [_name(k) for k in range(len(found))]
        require(whole, f"{store} lacks signatures of some tasks; run NearDuplicateSignatures to its end first")
        with self.track_time():
            segments = Segments(tuple(store / "segments" / name for name in found))
            copies = segments.copies(Sameness.text)
            shared: dict[str, Any] = {"memory": budget, "engine": self.engine}
            stored = build_vectors(store / "vectors", segments, self.idf, copies=copies, **shared)
            pairs = join_store(store / "vectors", store / "pairs", self.tau, **shared)
            pairs = with_copies(pairs, store / "pairs", copies, 0, budget)
            decisions = decide(pairs.chunks(), cluster(pairs))
        self.stat_update("pairs", value=len(pairs))
        names, first = stored.doc_ids, 0
        for k, size in enumerate(segments.sizes().tolist()):
            rows = first + np.flatnonzero(~decisions.kept[first : first + size])
            with writing(store / "removed" / _name(k), "removed") as out:
                out.put("positions", np.array([int(names[row].partition("/")[0]) for row in rows.tolist()], np.int64))
                out.strings("kept", (names[row].split("/", 2)[2] for row in decisions.instead(rows).tolist()))
            first += size


class NearDuplicateFilter(BaseFilter):  # type: ignore[misc]
    """Drop all documents but the first of each cluster, and name that one in the metadata of the dropped ones.

    Parameters
    ----------
    store : str
        Store of `NearDuplicatePairs`, which must have ended. The tasks read the documents of `NearDuplicateSignatures`.
    exclusion_writer : DiskWriter, optional
        Writer of the dropped documents, with the id of the kept one in ``near_duplicate_of``.
    """

    name = "🎯 near-duplicates"

    def __init__(self, store: str, exclusion_writer: Any = None) -> None:
        super().__init__(exclusion_writer)
        self.store = store

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Yield the kept documents."""
        removed = opened(as_path(self.store) / "removed" / _name(rank), "removed")
        positions = removed.whole("positions", np.int64).tolist()
        self._instead, self._position = dict(zip(positions, removed.strings("kept"), strict=True)), count()
        yield from super().run(data, rank, world_size)

    def filter(self, doc: Any) -> bool | tuple[bool, str]:
        """Return whether the next document is kept."""
        instead = self._instead.get(next(self._position))
        if instead is None:
            return True
        doc.metadata["near_duplicate_of"] = instead
        return False, "near_duplicate"
