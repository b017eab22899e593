"""A page that shows clusters: one HTML file without requests that compares two members."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts
from spotsigs.clustering.clusters import Cohesion, cohesion
from spotsigs.contracts import SignatureScheme
from spotsigs.records import Clusters, Measure, Overlap, Pairs
from spotsigs.reports.output_files import replacing
from spotsigs.text.tokens import tokenize

TEMPLATES = Path(__file__).parent / "templates"
SignatureCounts = Mapping[int, int]
"""Signature hashes of a document and how often each counts."""

TITLE = "Near-duplicates"
LONG_PREFIX = 8
"""Characters from which on a common beginning of all ids is omitted."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of the size of a page of clusters."""

    clusters: int = 20_000  # the largest ones
    texts: int = 4000  # documents with their text, of the largest clusters first
    members: int = 8  # documents of a cluster with their text
    characters: int = 20_000  # of a text, its white space collapsed


_LIMITS = Limits()


def write_cluster_page(
    path: str | Path,
    doc_ids: Sequence[str],
    pairs: Pairs,
    clusters: Clusters,
    texts: Iterable[str | None] = (),
    *,
    scheme: SignatureScheme | None = None,
    matched: Callable[[Iterable[int]], Mapping[int, SignatureCounts]] | None = None,
    limits: Limits = _LIMITS,
) -> None:
    """Write ``clusters.html``, which compares any two members of a cluster: their words and shared signatures.

    Texts and ids are untrusted; the page contains them as escaped JSON and shows them as text. Its policy forbids every
    request and every script but its own.

    ``texts`` has the text of every document in row order, read once, and None if it cannot be read. ``scheme`` marks
    signatures: those that ``matched`` returns for some rows, as `Matched.signatures_of` does, by default all.
    """
    all_rows = _members(clusters)
    rows = all_rows[: limits.clusters]
    chosen: set[int] = set()
    for _, group in rows:
        chosen.update(group[: min(limits.members, max(0, limits.texts - len(chosen)))])
    shown = {
        row: collapsed(text)[: limits.characters]
        for row, text in enumerate(texts)
        if text is not None and row in chosen
    }
    counts = matched(sorted(shown)) if matched and scheme else {}
    own_pairs = _pairs_by_cluster(pairs, clusters)
    within = pairs.overlap if pairs.overlap is not None and pairs.overlap.measure is Measure.containment else None
    cohesions = cohesion(clusters, pairs)
    listed = [_described(label, group, doc_ids, clusters, cohesions) for label, group in rows]
    blocks = [packed_group(group, shown, own_pairs.get(label), scheme, counts, within) for label, group in rows]
    documents = sum(len(group) for _, group in all_rows)
    summary = f"{documents:,} of {len(doc_ids):,} documents, {len(pairs):,} pairs"
    if len(rows) < len(all_rows):
        summary = f"the largest of {len(all_rows):,}, {summary}"
    prefix = common_prefix(name for cluster in listed for name in cluster["ids"])
    page = {"clusters": listed, "summary": summary, "marked": scheme is not None, "prefix": prefix}
    with replacing(Path(path)) as temporary:
        temporary.write_text(rendered(TITLE, page, blocks), encoding="utf-8")


def common_prefix(ids: Iterable[str]) -> str:
    """Return the folders or address with which all ids begin, if it is long."""
    names = list(ids)
    edges = zip(min(names, default=""), max(names, default=""), strict=False)
    prefix = "".join(a for a, _ in takewhile(lambda both: both[0] == both[1], edges))
    prefix = prefix[: prefix.rfind("/") + 1]
    return prefix if len(prefix) >= LONG_PREFIX else ""


def _members(clusters: Clusters) -> list[tuple[int, list[int]]]:
    """Return label and rows of each cluster of several, the largest first; the representative is the first row."""
    order = np.argsort(clusters.labels, kind="stable")
    ends = np.cumsum(clusters.sizes)
    listed = []
    for label in np.flatnonzero(clusters.sizes > 1).tolist():
        rows = order[ends[label] - clusters.sizes[label] : ends[label]]
        similarity = np.nan_to_num(clusters.similarity_to_representative[rows], nan=-1.0)
        leads = rows == clusters.representatives[label]
        listed.append((label, rows[np.lexsort((rows, -similarity, ~leads))].tolist()))
    return sorted(listed, key=lambda item: (-len(item[1]), item[0]))


def _pairs_by_cluster(pairs: Pairs, clusters: Clusters) -> dict[int, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Return the pairs inside each cluster; two clusters of leaders may have pairs between them."""
    labels = clusters.labels[pairs.i]
    inside = np.flatnonzero(labels == clusters.labels[pairs.j])
    order = inside[np.argsort(labels[inside], kind="stable")]
    present, starts = np.unique(labels[order], return_index=True)
    parts = zip(present.tolist(), np.split(order, starts[1:]), strict=False)  # without pairs, there is an empty part
    return {label: (pairs.i[part], pairs.j[part], pairs.similarity[part]) for label, part in parts}


def _described(
    label: int, rows: list[int], doc_ids: Sequence[str], clusters: Clusters, cohesions: Cohesion
) -> dict[str, Any]:
    """Return what the list shows of a cluster; ``chain`` counts members without a pair with the representative."""
    own = cohesions.of(np.array([label]))
    return {
        "label": label,
        "ids": [doc_ids[row] for row in rows],
        "similarities": [_rounded(value) for value in clusters.similarity_to_representative[rows].tolist()],
        "low": _rounded(float(own.minimum[0])),
        "mean": _rounded(float(own.mean[0])),
        "pairs": int(own.pairs[0]),
        "chain": int(own.apart[0]),
        "giant": bool(own.chain[0]),
    }


def _rounded(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)


def packed_group(
    rows: list[int],
    kept: dict[int, str],
    pairs: Any,
    scheme: SignatureScheme | None,
    counts: Mapping[int, SignatureCounts],
    within: Overlap | None = None,
) -> str | None:
    """Return texts, signatures and pairs of a cluster, compressed, so that a browser unpacks only those that it shows.

    Pairs by containment also have the number of the contained document: 0 for the first, 1 for the second.
    """
    shown = rows[: max((k + 1 for k, row in enumerate(rows) if row in kept), default=0)]
    if not shown:
        return None
    number: dict[str, int] = {}
    spots = [located_spots(kept.get(row, ""), scheme, number, counts.get(row)) for row in shown] if scheme else []
    order = {row: k for k, row in enumerate(shown)}
    listed: list[list[Any]] = []
    for i, j, similarity in zip(*(column.tolist() for column in pairs), strict=True) if pairs else ():
        if i in order and j in order:
            first, second = sorted((i, j), key=order.__getitem__)
            listed.append([order[first], order[second], _rounded(similarity)])
            if within is not None:
                listed[-1].append(int(within.lengths[second] < within.lengths[first]))
    content = {"texts": [kept.get(row) for row in shown], "spots": spots, "pairs": listed}
    return base64.b64encode(gzip.compress(_json(content).encode(), mtime=0)).decode()


def located_spots(
    text: str, scheme: SignatureScheme, number: dict[str, int], counts: SignatureCounts | None = None
) -> list[list[int]]:
    """Return each signature of a text: its number, then start and end of each of its tokens, in UTF-16 units."""
    tokens, edges = tokenize(text), token_edges(text)
    readable = scheme.readable(text)
    chains = scheme.chains(tokens) or [[]] * len(readable)  # without positions, signatures are not marked
    taking_part = None if counts is None else _taking_part(scheme(tokens).tolist(), counts)
    return [
        [number.setdefault(signature, len(number)), *(edge for token in chain for edge in edges[token])]
        for k, (signature, chain) in enumerate(zip(readable, chains, strict=True))
        if taking_part is None or k in taking_part
    ]


def _taking_part(hashes: Sequence[int], counts: SignatureCounts) -> set[int]:
    """Return the occurrences that were matched: of each signature those that count, nearest to the middle of all."""
    positions: dict[int, list[int]] = {}
    for k, signature in enumerate(hashes):
        if signature in counts:
            positions.setdefault(signature, []).append(k)
    certain = sorted(k for signature, own in positions.items() if len(own) <= counts[signature] for k in own)
    middle = certain[len(certain) // 2] if certain else len(hashes) // 2
    return {
        k
        for signature, own in positions.items()
        for k in sorted(own, key=lambda k: abs(k - middle))[: counts[signature]]
    }


def token_edges(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each token of a text in UTF-16 units, as browsers count."""
    tokens = tokenize(text.replace("\u0130", "i"))  # the one character that is longer in lower case
    is_first = tokens.source & 0xC0 != 0x80  # byte of a character; one of four bytes has two units
    units = row_starts(is_first.astype(np.int64) + (tokens.source >= 0xF0))
    starts = tokens.stops - (tokens.ends - tokens.starts)
    return list(zip(units[starts].tolist(), units[tokens.stops].tolist(), strict=True))


def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def rendered(title: str, page: dict[str, Any], blocks: Sequence[str | None], about: str = "") -> str:
    """Return the viewer of some groups of documents, a page that makes no request.

    `page` has ``clusters``, ``summary``, ``prefix``, ``marked`` and, unless the groups are clusters, ``noun``; `blocks`
    are of `packed_group`, one a group; `about` is HTML above the groups.
    """
    script = _asset("viewer.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_asset("viewer.html")).substitute(
        title=escape(title),
        style=_asset("viewer.css"),
        about=f'<section id="about">{about}</section>' if about else "",
        script=script,
        script_hash=f"sha256-{digest}",
        data=_json(page),
        texts=_json(blocks),
    )


def collapsed(text: str) -> str:
    """Return a text with one space or line break for each run of blanks and breaks; its tokens are the same."""
    return re.sub(r"[ \t\r\n\f\v\xa0]+", lambda run: "\n" if "\n" in run[0] else " ", text).strip(" \n")


def _json(value: Any) -> str:
    """Return JSON for a script element: no character in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
