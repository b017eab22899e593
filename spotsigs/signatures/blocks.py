"""Signatures of a collection: one block in memory, or many in files, each of which is opened when it is read."""

from __future__ import annotations

from collections.abc import Collection as SizedIterable
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.records import Signatures, Skipped, WordGrams
from spotsigs.signatures.extract import unique_names
from spotsigs.signatures.languages import count_in_shingles
from spotsigs.storage.exact_duplicates import WORDS, ExactDuplicates, Sameness
from spotsigs.storage.store import Reader, load_signatures, opened


@dataclass(frozen=True)
class Blocks:
    """Blocks of `Signatures`, in document order.

    Attributes
    ----------
    parts : tuple of (Signatures or Path)
        A block in memory, or the store of one.
    reference : int
        Number of parts, the first ones, all of whose documents are of a reference.
    """

    parts: tuple[Signatures | Path, ...] = ()
    reference: int = 0

    def __add__(self, other: Blocks) -> Blocks:
        """Return the blocks of both, in order."""
        return Blocks(self.parts + other.parts, self.reference)

    def split(self) -> tuple[Blocks, Blocks]:
        """Return the blocks of the reference, and the others."""
        k = self.reference
        return Blocks(self.parts[:k], k), Blocks(self.parts[k:])

    @property
    def folders(self) -> tuple[Path, ...]:
        """Stores of the blocks that are in files."""
        return tuple(part for part in self.parts if not isinstance(part, Signatures))  # a URL is no Path

    def read(self, *columns: str) -> Iterator[Signatures]:
        """Yield the blocks; of those in files only some columns, see `spotsigs.storage.store.load_signatures`."""
        for part in self.parts:
            yield part if isinstance(part, Signatures) else load_signatures(part, *columns)

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of documents of each block, which does not read files."""
        return self._counted(len, lambda store: int(store.facts["rows"]))

    def entries(self) -> NDArray[np.int64]:
        """Return the number of signatures of each block, which does not read files."""
        return self._counted(lambda block: len(block.hashes), lambda store: store.length("hashes", np.uint64))

    def n_skipped(self) -> NDArray[np.int64]:
        """Return the number of records of each block that could not be read, which does not read files."""
        return self._counted(lambda block: len(block.skipped), lambda store: int(store.facts["skipped"]))

    def _counted(self, of_block: Any, of_store: Any) -> NDArray[np.int64]:
        counts = (
            of_block(part) if isinstance(part, Signatures) else of_store(opened(part, "signatures", verify=False))
            for part in self.parts
        )
        return np.fromiter(counts, np.int64, len(self.parts))

    def _readers(self) -> Iterator[Reader]:
        return (opened(folder, "signatures", verify=False) for folder in self.folders)

    @property
    def n_reference(self) -> int:
        """Number of documents of a reference, which come first; 0 without one."""
        in_memory = sum(part.n_reference for part in self.parts if isinstance(part, Signatures))
        return in_memory + int(self.split()[0].sizes().sum())

    @property
    def has_grams(self) -> bool:
        """Whether all blocks have the word 5-grams of their texts, or a sample."""
        in_memory = (part.grams is not None for part in self.parts if isinstance(part, Signatures))
        return all(in_memory) and all(store.has("grams") for store in self._readers())

    @property
    def has_phrases(self) -> bool:
        """Whether all blocks have the phrases of their texts."""
        in_memory = (part.phrases is not None for part in self.parts if isinstance(part, Signatures))
        return all(in_memory) and all(store.has("phrases") for store in self._readers())

    def grams(self) -> Iterator[WordGrams]:
        """Yield the word 5-grams of all documents, by block."""
        for block in self.read("grams"):
            assert block.grams is not None
            yield block.grams

    def exact_duplicates(self, sameness: Sameness) -> ExactDuplicates:
        """Find the exact duplicates; checksums of content and of text are in memory one after the other."""
        n = int(self.sizes().sum())
        if sameness is Sameness.off:
            return ExactDuplicates.none(n)

        def columns(first: int) -> NDArray[np.uint64]:
            checksums: NDArray[np.uint64] = np.empty((n, WORDS), np.uint64)
            row = 0
            for block in self.read("digests"):
                digests = block.documents.digests
                checksums[row : row + len(digests)] = digests[:, first : first + WORDS]
                row += len(digests)
            return checksums[:row]

        return ExactDuplicates.find(columns(0), lambda: columns(WORDS), n, sameness)

    @property
    def doc_ids(self) -> Iterator[str]:
        """The document ids, unique among documents of the reference and among the others."""
        return chain.from_iterable(unique_names(part.names) for part in self.split())

    def names(self) -> Iterator[str]:
        """Return the document ids as they are, so that some may be equal."""
        return chain.from_iterable(block.doc_ids for block in self.read("doc_ids"))

    @property
    def skipped(self) -> SizedIterable[Skipped]:
        """The records that could not be read, of one block after the other at each iteration."""
        return SkippedRecords(self)

    @property
    def clusters(self) -> Iterator[str | None]:
        """The truth labels, None for a document without one."""
        return chain.from_iterable(block.documents.clusters or (None,) * len(block) for block in self.read("clusters"))

    @property
    def is_labelled(self) -> bool:
        """Whether a document has a truth label."""
        in_memory = (part.documents.clusters for part in self.parts if isinstance(part, Signatures))
        return any(store.facts["labelled"] for store in self._readers()) or any(
            name is not None for names in in_memory for name in names
        )

    @property
    def dates(self) -> Iterator[str | None]:
        """The capture times, None for a document without one."""
        return chain.from_iterable(block.documents.dates or (None,) * len(block) for block in self.read("dates"))

    def occurrences(self) -> NDArray[np.int64]:
        """Return the signature occurrences of each document, before any filter."""
        return np.concatenate([np.empty(0, np.int64), *(block.occurrences() for block in self.read("counts"))])

    @property
    def tokens(self) -> NDArray[np.int32]:
        """The number of tokens of each text."""
        counts = (np.array(block.documents.tokens) for block in self.read("tokens"))  # a mapped file is open
        return np.concatenate([np.empty(0, np.int32), *counts])

    @property
    def sections(self) -> NDArray[np.uint64]:
        """The sections of the documents, see `spotsigs.signatures.sections.sections_of`; outlines have none."""
        sections = (np.array(block.documents.sections) for block in self.read("sections"))
        return np.concatenate([np.empty(0, np.uint64), *sections])

    @property
    def languages(self) -> NDArray[np.uint16]:
        """The languages of the texts, see `spotsigs.signatures.languages.language_codes`."""
        return np.concatenate(
            [np.empty(0, np.uint16), *(block.documents.languages for block in self.read("languages"))]
        )

    @property
    def missing(self) -> NDArray[np.int32]:
        """The number of signatures that are missing of each document; outlines have none."""
        return np.concatenate([np.empty(0, np.int32), *(block.documents.missing for block in self.read("missing"))])

    @property
    def main_tokens(self) -> NDArray[np.int32]:
        """The estimated number of tokens of each main content; outlines have none."""
        columns = (block.documents.main_tokens for block in self.read("main_tokens"))
        return np.concatenate([np.empty(0, np.int32), *columns])

    def in_shingles(self) -> int:
        """Return the number of documents that are compared by shingles in place of spots."""
        return sum(count_in_shingles(block.indptr, block.hashes) for block in self.read("hashes"))


@dataclass(frozen=True)
class SkippedRecords(SizedIterable[Skipped]):
    """Records of blocks that could not be read; those in files stay there, for there may be any number."""

    blocks: Blocks

    def __len__(self) -> int:
        return int(self.blocks.n_skipped().sum())

    def __iter__(self) -> Iterator[Skipped]:
        if not len(self):
            return
        for k, block in enumerate(self.blocks.read("skipped")):
            for record in block.skipped:
                yield replace(record, of_reference=True) if k < self.blocks.reference else record

    def __contains__(self, record: object) -> bool:
        return any(record == other for other in self)
