"""The second pass of a scheme that looks at a whole collection, over outlines that lie on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.errors import require
from spotsigs.outofcore.segments import Segments
from spotsigs.records import CollectionScheme, Signatures
from spotsigs.signatures.main_content import LINK
from spotsigs.storage.atomic import beside, replacing
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import as_path, exists, read
from spotsigs.storage.store import (
    concatenated_on_disk,
    fingerprint,
    load_signatures,
    remove_tree,
    save_signatures,
    sealed,
    unsealed,
)

_MADE_OF = "made_of.json"

_RULES = 6
"""Version of the rules. A new version replaces signatures that an earlier release computed from the same outlines."""

BYTES_A_LINK = 48
"""Memory of the search for siblings for each link of a page: its hash, id and posting, and their temporaries."""

BYTES_A_DOCUMENT = 112
"""Memory of the search for siblings for each page: key, order, position, and offsets of its rows."""


def refine_segments(folder: str | Path, outlines: Segments, scheme: CollectionScheme, *, memory: int) -> Segments:
    """Turn outlines on disk into signatures on disk, segment by segment.

    Outlines, features and signatures are memory-mapped files of this machine; the index over links is in memory.

    Parameters
    ----------
    folder : str or Path
        Place of the signatures; what a former call left complete there is kept if it comes from the same outlines.
    outlines : Segments
        Of all documents, old ones first.
    scheme : CollectionScheme
        Whose outlines they are.
    memory : int
        Bytes that may be held at once, beside mapped files.

    Returns
    -------
    Segments
        As many as there are outlines, of the same documents.

    Raises
    ------
    InputError
        If the budget is too small for the collection's links.
    """
    folder = as_path(folder)
    content = "".join(map(fingerprint, outlines.folders))
    made_of = xxhash.xxh64_hexdigest(f"{content}{identity(scheme)} {_RULES}".encode())
    if outlines.rows is not None:
        made_of += xxhash.xxh64_hexdigest(outlines.rows.tobytes())
    places = tuple(folder / f"{k:08d}" for k in range(len(outlines.folders)))
    marker = folder / _MADE_OF
    if _made_of(marker) == made_of:
        return Segments(places)
    remove_tree(folder)
    with beside(folder) as scratch:
        everything = _gathered(outlines, scratch)
        _require_memory(everything, memory)
        signatures = scheme.refine(everything, scratch=scratch)
        for target, part in zip(places, _parts(signatures, outlines), strict=True):
            save_signatures(target, part)
        del everything, signatures  # mapped files of the scratch
    with replacing(marker) as temporary:
        temporary.write_bytes(sealed({"outlines": made_of}))
    return Segments(places)


def _made_of(marker: Path) -> Any:
    """Return what the signatures of a folder were made of; None where that is not known."""
    try:
        return unsealed(read(marker)).get("outlines") if exists(marker) else None
    except ValueError:
        return None


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
    """Put all outlines one after the other into memory-mapped files."""
    sizes: list[NDArray[np.int64]] = []

    def rows() -> Iterator[tuple[NDArray[Any], ...]]:
        for part in segments.parts():
            size, hashes, counts = part.read()
            sizes.append(size)
            yield hashes, counts

    hashes, kinds = concatenated_on_disk(rows(), (np.uint64, np.int32), scratch)
    indptr = row_starts(np.concatenate([np.empty(0, np.int64), *sizes]))
    return Signatures(("",) * (len(indptr) - 1), (None,) * (len(indptr) - 1), indptr, hashes, kinds)


def _parts(signatures: Signatures, outlines: Segments) -> Iterator[Signatures]:
    """Cut signatures where the outlines' segments end, with the names and labels of those."""
    start = 0
    for folder in outlines.folders:
        names = load_signatures(folder, verify=None)
        indptr = signatures.indptr[start : start + len(names) + 1]
        span = slice(int(indptr[0]), int(indptr[-1]))
        yield replace(
            names,
            indptr=indptr - indptr[0],
            hashes=signatures.hashes[span],
            counts=signatures.counts[span],
        )
        start += len(names)
