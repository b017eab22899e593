"""Pages as the text that remains after the removal of their template, the same text for every signature scheme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.shingles import Shingles
from spotsigs.contracts import Collection, Shard
from spotsigs.records import Document, Skipped, Tokens
from spotsigs.signatures.extract import extract, read_texts
from spotsigs.signatures.main_content import LINK, heaviest, outline_of, own_gains
from spotsigs.signatures.sites import site_of
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.text.tokens import tokenize_marked
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

FINDER = Shingles(k=3)
"""Scheme whose signatures decide what is template: they cover every token."""


@dataclass(frozen=True, kw_only=True)
class TemplateFree(Collection):
    """Documents of a collection as plain text without the template of their site.

    `TemplateRemoval` finds the template once, with 3-shingles. A page's text is its main content, where a remaining
    shingle counts 1 and a shingle of the template -1, without the tokens that no remaining shingle covers.

    Parameters
    ----------
    collection : Collection
        Pages.
    """

    collection: Any

    def shards(self) -> Sequence[Shard]:
        """Return the shards of the collection with the remaining texts."""
        remaining = _remaining(self.collection)
        return [partial(_texts, shard, remaining) for shard in self.collection.shards()]


_last: dict[str, Mapping[str, NDArray[np.uint64]]] = {}  # of the last collection, by its repr: lists have no hash


def _remaining(collection: Any) -> Mapping[str, NDArray[np.uint64]]:
    """Return the hashes of the remaining shingles of each page by its id."""
    key = repr(collection)
    if key not in _last:
        _last.clear()
        signatures = extract(collection, VisibleText(), TemplateRemoval(signature=FINDER), Serial())
        rows = np.split(signatures.hashes, signatures.indptr[1:-1])
        _last[key] = dict(zip(signatures.doc_ids, rows, strict=False))  # without pages there is one empty row
    return _last[key]


def _texts(shard: Shard, remaining: Mapping[str, NDArray[np.uint64]]) -> Iterator[Document | Skipped]:
    for record in read_texts(shard, VisibleText().marked):
        if isinstance(record, Skipped):
            yield record
            continue
        document, text = record
        content = remaining_text(tokenize_marked(text), remaining[document.id], site_of(document.id))
        yield Document(id=document.id, content=content, media_type="text/plain", cluster=document.cluster)


def remaining_text(tokens: Tokens, remaining: NDArray[np.uint64], site: str = "") -> str:
    """Return the tokens of the main content that a remaining shingle covers, in text order."""
    hashes, kinds = outline_of(FINDER, tokens, site)
    stays = np.isin(hashes, remaining) & (kinds < LINK)
    gains = own_gains(kinds)
    gains[(kinds < LINK) & ~stays] = -1
    start, stop = heaviest(gains)
    stays[:start] = stays[stop:] = False
    firsts = FINDER.located(tokens)[1][stays[kinds < LINK]]
    covered = np.unique(np.add.outer(firsts, np.arange(FINDER.k)))
    words = tokens.words
    return " ".join(words[position] for position in covered if position < len(words))
