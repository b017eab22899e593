"""A page to look at clusters: one HTML file that loads nothing, with members side by side."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from html import escape
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.clustering.clusters import Cohesion, cohesion
from spotsigs.output_files import replacing
from spotsigs.records import Clusters, Measure, Overlap, Pairs, SignatureScheme
from spotsigs.text.tokens import tokenize

TEMPLATES = Path(__file__).parent / "templates"
Counts = Mapping[int, int]
"""Signature hashes of a document and how often each counts."""

LONG_PREFIX = 8
"""Characters from which on what all ids begin with is left out."""

REACH = 40
"""Tokens a chain may span: what is further away does not belong to the signature that is looked for."""


def write_cluster_page(
    path: str | Path,
    doc_ids: Sequence[str],
    pairs: Pairs,
    clusters: Clusters,
    texts: Iterable[str | None] = (),
    *,
    scheme: SignatureScheme | None = None,
    matched: Callable[[Iterable[int]], Mapping[int, Counts]] | None = None,
    title: str = "Near-duplicates",
    with_texts: int = 4000,
    members: int = 8,
    characters: int = 20_000,
    most: int = 20_000,
) -> None:
    """Write ``clusters.html``.

    The page lists every cluster of at least two documents, the largest first, and compares any two members: words
    that only one has, and the signatures they share. Texts and ids are untrusted; they enter the page as escaped JSON
    and the document as text. Its policy forbids every request and every script but its own.

    Parameters
    ----------
    path : str or Path
        The file.
    doc_ids : sequence of str
        One per row.
    pairs : Pairs
        Near-duplicate pairs.
    clusters : Clusters
        The same, grouped.
    texts : iterable of (str or None), optional
        Text of every document in row order, read once; None for one whose text is not at hand.
    scheme : SignatureScheme, optional
        Marks signatures where given.
    matched : callable, optional
        From rows to the signatures of each that took part, as `Matched.signatures_of` gives: only these
        are marked. Of a signature with occurrences that did not, because they lie in the page's frame, those are marked
        that lie nearest to the middle of all that took part. Every signature of a text where omitted.
    title : str
        Heading.
    with_texts : int
        Documents whose text is in the page, of the largest clusters first.
    members : int
        Documents a cluster whose text is in the page.
    characters : int
        Longest text, its white space collapsed; longer ones are cut.
    most : int
        Clusters in the page, the largest ones.
    """
    all_rows = _members(clusters)
    rows = all_rows[:most]
    chosen = _chosen(rows, with_texts, members)
    kept = {row: collapsed(text)[:characters] for row, text in enumerate(texts) if text is not None and row in chosen}
    counts = matched(sorted(kept)) if matched and scheme else {}
    own_pairs = _pairs_by_cluster(pairs, clusters)
    held = cohesion(clusters, pairs.chunks())
    within = pairs.overlap if pairs.overlap is not None and pairs.overlap.measure is Measure.containment else None
    listed = [_described(label, group, doc_ids, clusters, held) for label, group in rows]
    blocks = [packed(group, kept, own_pairs.get(label), scheme, counts, within) for label, group in rows]
    documents = sum(len(group) for _, group in all_rows)
    summary = f"{documents:,} of {len(doc_ids):,} documents, {len(pairs):,} pairs"
    if len(rows) < len(all_rows):
        summary = f"the largest of {len(all_rows):,}, {summary}"
    prefix = common_prefix(name for cluster in listed for name in cluster["ids"])
    page = {"clusters": listed, "summary": summary, "marked": scheme is not None, "prefix": prefix}
    with replacing(Path(path)) as temporary:
        temporary.write_text(rendered(title, page, blocks), encoding="utf-8")


def common_prefix(ids: Iterable[str]) -> str:
    """Return the folders or address that all ids begin with, where leaving it out gives room."""
    names = list(ids)
    edges = zip(min(names, default=""), max(names, default=""), strict=False)
    prefix = "".join(a for a, _ in takewhile(lambda both: both[0] == both[1], edges))
    prefix = prefix[: prefix.rfind("/") + 1]
    return prefix if len(prefix) >= LONG_PREFIX else ""


def _members(clusters: Clusters) -> list[tuple[int, list[int]]]:
    """Return label and rows of each cluster of several, the largest first; the representative leads its cluster."""
    order = np.argsort(clusters.labels, kind="stable")
    ends = np.cumsum(clusters.sizes)
    found = []
    for label in np.flatnonzero(clusters.sizes > 1).tolist():
        rows = order[ends[label] - clusters.sizes[label] : ends[label]]
        similarity = np.nan_to_num(clusters.similarity_to_representative[rows], nan=-1.0)
        leads = rows == clusters.representatives[label]
        found.append((label, rows[np.lexsort((rows, -similarity, ~leads))].tolist()))
    return sorted(found, key=lambda item: (-len(item[1]), item[0]))


def _chosen(rows: Sequence[tuple[int, list[int]]], with_texts: int, members: int) -> set[int]:
    chosen: list[int] = []
    for _, group in rows:
        chosen += group[: min(members, max(0, with_texts - len(chosen)))]
    return set(chosen)


def _pairs_by_cluster(pairs: Pairs, clusters: Clusters) -> dict[int, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Return the pairs inside each cluster; two clusters of leaders may have pairs between them."""
    labels = clusters.labels[pairs.i]
    inside = np.flatnonzero(labels == clusters.labels[pairs.j])
    order = inside[np.argsort(labels[inside], kind="stable")]
    found, starts = np.unique(labels[order], return_index=True)
    ends = [*starts[1:].tolist(), len(order)][: len(starts)]
    return {
        int(label): (pairs.i[order[a:b]], pairs.j[order[a:b]], pairs.similarity[order[a:b]])
        for label, a, b in zip(found, starts.tolist(), ends, strict=True)
    }


def _described(
    label: int, rows: list[int], doc_ids: Sequence[str], clusters: Clusters, held: Cohesion
) -> dict[str, Any]:
    """Return what the list shows of a cluster; ``chain`` counts members without a pair with the representative."""
    own = held.of(np.array([label]))
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


def packed(
    rows: list[int],
    kept: dict[int, str],
    pairs: Any,
    scheme: SignatureScheme | None,
    counts: Mapping[int, Counts],
    within: Overlap | None = None,
) -> str | None:
    """Return texts, signatures and pairs of a cluster, compressed, so that a browser reads only what is looked at.

    Of pairs by containment, also which of the two lies within the other: 0 for the first, 1 for the second.
    """
    shown = rows[: max((k + 1 for k, row in enumerate(rows) if row in kept), default=0)]
    if not shown:
        return None
    number: dict[str, int] = {}
    spots = [_spots(kept.get(row, ""), scheme, number, counts.get(row)) for row in shown] if scheme else []
    place = {row: k for k, row in enumerate(shown)}
    triples = zip(*(column.tolist() for column in pairs), strict=True) if pairs else ()
    known = [(*sorted((i, j), key=place.__getitem__), s) for i, j, s in triples if i in place and j in place]
    inner = [[] if within is None else [int(within.lengths[j] < within.lengths[i])] for i, j, _ in known]
    content = {
        "texts": [kept.get(row) for row in shown],
        "spots": spots,
        "pairs": [
            [place[i], place[j], None if np.isnan(s) else round(s, 6), *which]
            for (i, j, s), which in zip(known, inner, strict=True)
        ],
    }
    return base64.b64encode(gzip.compress(_json(content).encode(), mtime=0)).decode()


def _spots(text: str, scheme: SignatureScheme, number: dict[str, int], counts: Counts | None = None) -> list[list[int]]:
    """Return each signature of a text: its number, then start and end of each of its words, in UTF-16 units.

    The scheme says only which signatures there are, in order. Each is looked for behind the beginning of the one
    before it, so that a repeat is marked at its own place.
    """
    words, places = _word_places(text)
    occurrences: dict[str, list[int]] = {}
    for k, word in enumerate(words):
        occurrences.setdefault(word, []).append(k)
    spots = []
    last = 0
    used: set[tuple[str, int]] = set()
    readable = scheme.readable(text)
    taking_part = None if counts is None else _taking_part(scheme(tokenize(text)).tolist(), counts)
    for k, signature in enumerate(readable):
        parts = signature.split(":")
        edges: list[int] = []
        starts = occurrences.get(parts[0], [])
        for start in starts[int(np.searchsorted(starts, last)) :]:
            found = None if (signature, start) in used else _chain(words, start, parts)
            if found:
                used.add((signature, start))
                last = start
                edges = [edge for word in found for edge in places[word]]
                break
        if taking_part is None or k in taking_part:
            spots.append([number.setdefault(signature, len(number)), *edges])
    return spots


def _taking_part(hashes: Sequence[int], counts: Counts) -> set[int]:
    """Return which occurrences took part: of each signature those that count, nearest to the middle of all."""
    places: dict[int, list[int]] = {}
    for k, signature in enumerate(hashes):
        if signature in counts:
            places.setdefault(signature, []).append(k)
    certain = sorted(k for signature, own in places.items() if len(own) <= counts[signature] for k in own)
    middle = certain[len(certain) // 2] if certain else len(hashes) // 2
    return {
        k for signature, own in places.items() for k in sorted(own, key=lambda k: abs(k - middle))[: counts[signature]]
    }


def _chain(words: Sequence[str], start: int, parts: Sequence[str]) -> list[int] | None:
    found = [start]
    for part in parts[1:]:
        ahead = range(found[-1] + 1, min(start + REACH, len(words)))
        following = next((k for k in ahead if words[k] == part), None)
        if following is None:
            return None
        found.append(following)
    return found


def _word_places(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the tokens of a text and where each lies in it, in UTF-16 units as browsers count."""
    lowered: list[str] = []
    origin: list[int] = []
    unit = 0
    for character in text:
        low = character.lower()
        lowered.append(low)
        origin += [unit] * len(low)
        unit += 1 if character <= "\uffff" else 2
    origin.append(unit)
    flat = "".join(lowered)
    words, places = [], []
    position = 0
    for word in tokenize(text).words:
        at = flat.find(word, position)
        if at >= 0:
            words.append(word)
            places.append((origin[at], origin[at + len(word)]))
            position = at + (1 if _is_bigram(word) else len(word))
    return words, places


def _is_bigram(word: str) -> bool:
    """Whether a token is a character bigram, which overlaps the next one."""
    return len(word) == 2 and ord(word[0]) >= 0x0E00 and not word.isascii()


@cache
def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def rendered(title: str, page: dict[str, Any], blocks: Sequence[str | None], about: str = "") -> str:
    """Return the viewer with some groups of documents.

    Parameters
    ----------
    title : str
        Heading.
    page : dict
        ``clusters``, ``summary``, ``prefix``, ``marked`` and, unless the groups are clusters, ``noun``.
    blocks : sequence of (str or None)
        Texts, signatures and pairs of each group, from `packed`.
    about : str
        HTML above the groups.

    Returns
    -------
    str
        A page that loads nothing. Its policy allows no request, and no script but its own.
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
    """Return a text to show: one space or line break in place of each run of blanks and breaks; the same tokens."""
    return re.sub(r"[ \t\r\n\f\v\xa0]+", lambda run: "\n" if "\n" in run[0] else " ", text).strip(" \n")


def _json(value: Any) -> str:
    """Return JSON that can stand in a script element: no character in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
