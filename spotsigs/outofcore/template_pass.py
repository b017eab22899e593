"""Second pass of a scheme that depends on a whole collection, over sequences of spots and links on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts, take_rows
from spotsigs.contracts import CollectionScheme
from spotsigs.errors import InputError, require
from spotsigs.exact_duplicates import ExactDuplicates
from spotsigs.outofcore.segments import Segments
from spotsigs.records import Signatures
from spotsigs.signatures.main_content import LINK
from spotsigs.signatures.sections import sections_of
from spotsigs.signatures.sites import sites_of
from spotsigs.storage.atomic import staging_folder
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import as_path
from spotsigs.storage.store import (
    concatenated_on_disk,
    fingerprint,
    load_signatures,
    opened,
    remove_tree,
    save_signatures,
)

RULES = 11
"""Version of the rules. A new version replaces signatures that an earlier release computed from the same outlines."""

BYTES_A_LINK = 48  # of the search for siblings, for each link of a page: its hash, id and posting, and temporaries
BYTES_A_DOCUMENT = 112  # for each page: key, order, position, and offsets of its rows


def refine_segments(
    folder: str | Path,
    outlines: Segments,
    scheme: CollectionScheme,
    *,
    memory: int,
    exact_duplicates: ExactDuplicates,
) -> Segments:
    """Compute signatures on disk from sequences of spots and links on disk, segment by segment.

    Outlines, features and signatures are memory-mapped files of this machine; the index over links is in memory, of at
    most ``memory`` bytes. The outlines are those of all documents by the same scheme, old ones first. Results of a
    previous call with the same outlines are reused. The segments returned are as many, of the same documents. The
    representatives of exact duplicates have the signatures of the first of these.

    Raises
    ------
    InputError
        If the budget is too small for the collection's links.
    """
    folder = as_path(folder)
    content = [*map(fingerprint, outlines.folders), json.dumps(identity(scheme)), str(RULES)]
    content.append(xxhash.xxh3_128_hexdigest(exact_duplicates.representatives.tobytes()))
    made_of = xxhash.xxh3_128_hexdigest("\n".join(content).encode())
    targets = tuple(folder / f"{k:08d}" for k in range(len(outlines.folders)))
    if not all(_is_made_of(target, made_of) for target in targets):
        remove_tree(folder)
        with staging_folder(folder) as scratch:
            named = replace(outlines, reference=0)
            first = exact_duplicates.first_on_site(sites_of(named.strings("doc_ids")))
            everything = _gathered(outlines.only(first), scratch)
            _require_memory(everything, memory)
            sections = sections_of(named.strings("doc_ids"), everything)
            signatures = scheme.refine(replace(everything, sections=sections), scratch=scratch)
            for target, part in zip(targets, _parts(signatures, outlines, exact_duplicates), strict=True):
                save_signatures(target, part, made_of=made_of)
            del everything, signatures  # mapped files of the scratch
    return replace(outlines, folders=targets, rows=None)


def _is_made_of(store: Path, made_of: str) -> bool:
    try:
        return opened(store, "signatures", verify=False).facts.get("made_of") == made_of
    except InputError:
        return False


def _require_memory(outlines: Signatures, memory: int) -> None:
    links = sum(
        int(np.count_nonzero(outlines.counts[k : k + (1 << 20)] >= LINK))
        for k in range(0, len(outlines.counts), 1 << 20)
    )
    needed = links * BYTES_A_LINK + len(outlines) * BYTES_A_DOCUMENT
    require(
        needed <= memory,
        f"memory is too small to find templates: {needed / 1e6:,.0f} MB are needed for {links:,} links "
        f"on {len(outlines):,} pages",
    )


def _gathered(segments: Segments, scratch: Path) -> Signatures:
    """Concatenate all outlines in memory-mapped files."""
    sizes: list[NDArray[np.int64]] = []

    def rows() -> Iterator[tuple[NDArray[Any], ...]]:
        for part in segments.parts():
            sizes.append(part.sizes())
            yield part.column("hashes", np.uint64), part.column("counts", np.int32)

    hashes, kinds = concatenated_on_disk(rows(), (np.uint64, np.int32), scratch)
    indptr = row_starts(np.concatenate([np.empty(0, np.int64), *sizes]))
    return Signatures(("",) * (len(indptr) - 1), (None,) * (len(indptr) - 1), indptr, hashes, kinds)


def _parts(signatures: Signatures, outlines: Segments, exact_duplicates: ExactDuplicates) -> Iterator[Signatures]:
    """Cut signatures into segments like those of the outlines, with their names and labels."""
    start = 0
    for folder in outlines.folders:
        names = load_signatures(folder)
        rows = slice(start, start + len(names))
        first, distinct = exact_duplicates.first[rows], exact_duplicates.distinct[rows]
        _, entries = take_rows(signatures.indptr, first[distinct])
        yield replace(
            names,
            indptr=row_starts(np.where(distinct, np.diff(signatures.indptr)[first], 0)),
            hashes=signatures.hashes[entries],
            counts=signatures.counts[entries],
            sections=signatures.sections[first],
        )
        start += len(names)
