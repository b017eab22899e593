"""Contents of the documents of a store, a file that is memory-mapped while documents are decided."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.errors import InputError
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.contained import Contents, contents_of
from spotsigs.storage.store import Reader, fingerprint, opened, writing


def stored_contents(folder: Path, outlines: Blocks, segments: Blocks, *, marked: bool) -> Contents:
    """Return the contents of documents, which are written segment by segment unless they are in the folder.

    Parameters
    ----------
    folder : Path
        Their store.
    outlines : Blocks
        Blocks with the phrases of the documents.
    segments : Blocks
        Blocks of the same documents with the signatures that are compared.
    marked : bool
        As in `spotsigs.signatures.contained.contents_of`.
    """
    parts = "\n".join(map(fingerprint, (*outlines.folders, *segments.folders)))
    made_of = xxhash.xxh3_128_hexdigest(f"{parts} {marked}".encode())
    known = _opened(folder, made_of)
    if known is None:
        _write(folder, outlines, segments, marked=marked, made_of=made_of)
        known = opened(folder, "contents")
    return Contents(known.whole("indptr", np.int64), known.mapped("hashes", np.uint32))


def _opened(folder: Path, made_of: str) -> Reader | None:
    try:
        reader = opened(folder, "contents")
    except InputError:
        return None
    return reader if reader.facts.get("made_of") == made_of else None


def _write(folder: Path, outlines: Blocks, segments: Blocks, *, marked: bool, made_of: str) -> None:
    sizes: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    with writing(folder, "contents") as out:
        with out.growing("hashes", np.uint32) as append:
            for contents in _each(outlines, segments, marked=marked):
                sizes.append(np.diff(contents.indptr))
                append(contents.hashes)
        out.put("indptr", row_starts(np.concatenate(sizes)))
        out.facts["made_of"] = made_of


def _each(outlines: Blocks, segments: Blocks, *, marked: bool) -> Iterator[Contents]:
    """Yield the contents of the documents of each segment."""
    for outline, block in zip(outlines.read("phrases"), segments.read("hashes"), strict=True):
        assert outline.phrases is not None
        yield contents_of(outline.phrases, block.indptr, block.hashes, marked=marked)
