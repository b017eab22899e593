"""A page for choosing tau: pairs and removed documents at each threshold, and pairs near candidates to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.clustering.clusters import cohesion
from spotsigs.clustering.in_memory import Matched
from spotsigs.contracts import SignatureScheme
from spotsigs.evaluation.documents import count_stories
from spotsigs.evaluation.metrics import micro_averages, tallies
from spotsigs.evaluation.text_lost import MOST_LOST, is_much
from spotsigs.evaluation.threshold import FLOOR, Suggestion, suggest
from spotsigs.method import Method
from spotsigs.records import Pairs, Truth
from spotsigs.reports.charts import LogAxis, histogram
from spotsigs.reports.cluster_page import collapsed, common_prefix, packed_group, rendered
from spotsigs.reports.output_files import replacing, write_csv

PAGE = "threshold.html"
"""Name of the page."""

TAUS = [tau / 50 for tau in range(2, 51)]
"""Thresholds that are compared, in addition to the candidates."""

EACH = 5
"""Pairs to compare on each side of each candidate."""

NEAREST = 40
"""Pairs on each side of a threshold from which those to compare are drawn."""

LONGEST = 20_000
"""Characters of a page that are shown."""

COLUMNS = {
    "tau": ("τ", "g"),
    "pairs": ("Pairs", ",d"),
    "clusters": ("Clusters", ",d"),
    "largest": ("Largest", ",d"),
    "chains": ("Giant chains", ",d"),
    "removed": ("Removed", ",d"),
    "removed_share": ("Fraction", ".1%"),
    "text_lost": ("Text lost", ".1%"),
}
QUALITY = {"precision": ("Prec.", ".3f"), "recall": ("Rec.", ".3f"), "f1": ("F1", ".3f")}
DECIDED = {"lost": ("Stories lost", ".1%"), "left": ("Duplicates left", ".1%")}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A threshold to inspect, and the reason."""

    tau: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Thresholds of a collection, compared."""

    suggestion: Suggestion  # from the similarities of distinct pages
    proposal: str  # a threshold, or none, with the reason
    candidates: list[Candidate]  # ascending
    rows: list[dict[str, Any]]  # for each threshold: `COLUMNS`, and `QUALITY` and `DECIDED` if there is truth


def compare_thresholds(
    method: Method,
    matched: Matched,
    similarities: NDArray[np.float64],
    tau: float,
    lost: Callable[[NDArray[np.bool_]], float],
) -> Comparison:
    """Compare thresholds, among them `tau`, by the decisions of the method with all pairs that reach `FLOOR`.

    `similarities` has a value for each pair of distinct pages, without exact duplicates, and `lost` is the function of
    `spotsigs.evaluation.text_lost.shares_lost`.
    """
    suggestion, truth = suggest(similarities), Truth.from_clusters(matched.signatures.clusters)
    rows = {value: _at_tau(method, matched, value, truth, lost) for value in TAUS}
    tried = [] if suggestion.tau is None else [Candidate(tau=round(suggestion.tau, 3), why="the valley")]
    if tau >= FLOOR:
        tried.append(Candidate(tau=tau, why="as set"))
    best = max(TAUS, key=lambda value: (np.nan_to_num(rows[value].get("f1", 0)), -value))
    if rows[best].get("f1", 0) > 0:
        tried.append(Candidate(tau=best, why="best F1 by the truth"))
    rows |= {c.tau: _at_tau(method, matched, c.tau, truth, lost) for c in tried if c.tau not in rows}
    in_order = [row for _, row in sorted(rows.items())]
    proposed, proposal = _proposal(suggestion, in_order, tau, truth is not None)
    if proposed is not None:
        tried.append(Candidate(tau=proposed, why="text lost"))
    candidates = sorted({c.tau: c for c in reversed(tried)}.values(), key=lambda c: c.tau)
    return Comparison(suggestion=suggestion, proposal=proposal, candidates=candidates, rows=in_order)


def _proposal(
    suggestion: Suggestion, rows: Sequence[Mapping[str, Any]], tau: float, has_truth: bool
) -> tuple[float | None, str]:
    """Return the proposed threshold, if any, with its reason.

    That is the valley. Without truth, if much text is lost there, or at `tau` if there is no valley, it is the lowest
    threshold above at which little is lost.
    """
    first = tau if suggestion.tau is None else round(suggestion.tau, 3)
    refusal, reason = f"no threshold is proposed: {suggestion.reason}", suggestion.reason
    if has_truth:
        return suggestion.tau and first, refusal if suggestion.tau is None else f"proposed: {reason}"
    higher = [row for row in rows if row["tau"] >= first]
    safe = next((row for row in higher if not is_much(row["text_lost"], row["removed"])), None)
    if safe is None:
        much = f"more than {MOST_LOST:.0%} of the text is in no kept page at any of {first:g} or more"
        return None, f"no threshold is proposed: {much}; {reason}"
    lost = f"{100 * safe['text_lost']:.1f} % of the text is in no kept page"
    if safe is not higher[0]:
        lowest = f"the lowest from {first:g} on at which little text is lost: {lost}"
        return safe["tau"], f"proposed: tau={safe['tau']:g}, {lowest}; {reason}"
    if suggestion.tau is None:
        return None, f"{refusal}; at tau={safe['tau']:g}, {lost}"
    return first, f"proposed: {reason}; {lost}"


def _at_tau(
    method: Method,
    matched: Matched,
    tau: float,
    truth: Truth | None,
    lost: Callable[[NDArray[np.bool_]], float],
) -> dict[str, Any]:
    """Return pairs, clusters, removed documents and text lost; with truth, quality, stories lost, duplicates left.

    Precision, recall and F1 are NaN where no pair defines them.
    """
    pairs = matched.pairs.at(tau)
    decisions, _ = method.at(tau).decide(replace(matched, pairs=pairs))
    groups, removed = decisions.clusters, int(np.count_nonzero(~decisions.kept))
    row = {
        "tau": tau,
        "pairs": len(pairs),
        "clusters": int(np.count_nonzero(groups.sizes > 1)),
        "largest": int(groups.sizes.max(initial=0)),
        "chains": int(np.count_nonzero(cohesion(groups, pairs).chain)),
        "removed": removed,
        "removed_share": removed / max(pairs.n, 1),
        "text_lost": lost(decisions.kept),
    }
    if truth is None:
        return row
    stories = count_stories(decisions.kept, truth)
    quality = dict(zip(QUALITY, map(float, micro_averages(*tallies(pairs, truth))), strict=True))
    return row | quality | {"lost": stories.lost, "left": stories.left}


def pairs_around(pairs: Pairs, tau: float, above: bool, rng: np.random.Generator) -> list[int]:
    """Draw `EACH` pairs near a threshold, on one side of it, that share no document; return their positions.

    They are in descending order of similarity.
    """
    side = np.flatnonzero((pairs.similarity >= tau) == above)
    distance = np.abs(pairs.similarity[side] - tau)
    nearest: NDArray[np.int64] = side[np.argsort(distance, kind="stable")[:NEAREST]]
    chosen: list[int] = []
    used: set[int] = set()
    for position in rng.permutation(nearest).tolist():
        both = {int(pairs.i[position]), int(pairs.j[position])}
        if len(chosen) < EACH and not both & used:
            chosen.append(position)
            used |= both
    return sorted(chosen, key=lambda position: (-pairs.similarity[position], position))


def write_threshold_page(
    folder: Path,
    name: str,
    comparison: Comparison,
    matched: Matched,
    texts: Any,
    scheme: SignatureScheme,
) -> str:
    """Write ``threshold.html``, ``threshold.csv`` and ``histogram.csv``; return proposal and candidates for a terminal.

    `matched` is the collection `name` with all pairs that reach `FLOOR`, `texts` its texts in row order, and
    `scheme` marks the signatures that a pair shares.
    """
    suggestion, rows = comparison.suggestion, comparison.rows
    write_csv(folder / "threshold.csv", list(rows[0]), ([*row.values()] for row in rows))
    bins = zip(suggestion.edges[:-1].tolist(), suggestion.edges[1:].tolist(), suggestion.counts.tolist(), strict=True)
    write_csv(folder / "histogram.csv", ("similarity_from", "similarity_to", "pairs"), bins)
    listed, blocks = _pairs_to_compare(comparison, matched, texts, scheme)
    page = {
        "clusters": listed,
        "summary": "drawn near the candidates",
        "noun": "pairs to judge",
        "marked": True,
        "prefix": common_prefix(doc for pair in listed for doc in pair["ids"]),
    }
    chosen = [row for row in rows if row["tau"] in {candidate.tau for candidate in comparison.candidates}]
    with replacing(folder / PAGE) as temporary:
        about = _about(name, comparison, chosen)
        temporary.write_text(rendered(f"Choosing τ: {name}", page, blocks, about), encoding="utf-8")
    return f"{comparison.proposal}\n\n{_as_text(chosen)}"


def _pairs_to_compare(
    comparison: Comparison, matched: Matched, texts: Any, scheme: SignatureScheme
) -> tuple[list[dict[str, Any]], list[str | None]]:
    """Draw pairs on both sides of each candidate; return them as the viewer's groups of two documents."""
    pairs, rng = matched.pairs, np.random.default_rng(0)
    rows = [
        (candidate, side, row)
        for candidate in comparison.candidates
        for side in ("reaches", "misses")
        for row in pairs_around(pairs, candidate.tau, side == "reaches", rng)
    ]
    wanted = {int(side[row]) for _, _, row in rows for side in (pairs.i, pairs.j)}
    kept = {number: collapsed(text)[:LONGEST] for number, text in enumerate(texts) if number in wanted} if rows else {}
    counts = matched.signatures_of(sorted(wanted))
    columns = (pairs.i, pairs.j, pairs.similarity)
    listed, blocks = [], []
    for number, (candidate, side, row) in enumerate(rows):
        i, j, similarity = int(pairs.i[row]), int(pairs.j[row]), float(pairs.similarity[row])
        about = f"Just {side} τ = {candidate.tau:g} ({candidate.why}): similarity {similarity:.3f}."
        listed.append(
            {
                "label": number,
                "ids": [matched.doc_ids[i], matched.doc_ids[j]],
                "similarities": [1.0, similarity],
                "low": similarity,
                "mean": similarity,
                "pairs": 1,
                "chain": 0,
                "giant": False,
                "mark": f"{'≥' if side == 'reaches' else '<'} {candidate.tau:g}",
                "about": about,
            }
        )
        blocks.append(packed_group([i, j], kept, tuple(column[row : row + 1] for column in columns), scheme, counts))
    return listed, blocks


def _cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return titles and formatted values."""
    columns = COLUMNS | (QUALITY | DECIDED if rows and "f1" in rows[0] else {})
    values = [
        ["n/a" if row[key] != row[key] else format(row[key], form) for key, (_, form) in columns.items()]
        for row in rows
    ]
    return [[title for title, _ in columns.values()], *values]


def _as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = _cells(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def _as_html(rows: Sequence[Mapping[str, Any]], chosen: Sequence[Mapping[str, Any]]) -> str:
    titles, *values = _cells(rows)
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join(
        f"<tr{' class=chosen' if row in chosen else ''}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for row, cells in zip(rows, values, strict=True)
    )
    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _about(name: str, comparison: Comparison, chosen: Sequence[Mapping[str, Any]]) -> str:
    """Return the part of the page above the pairs: proposal, candidates, histogram, table."""
    rows, guides = comparison.rows, [candidate.tau for candidate in comparison.candidates]
    reasons = "".join(f"<li>τ = {c.tau:g}: {escape(c.why)}</li>" for c in comparison.candidates)
    return (
        f"<p><code>{escape(name)}</code>: {escape(comparison.proposal)}.</p>"
        "<p>A threshold decides which pages count as the same. Compare the pairs below that just reach and just miss "
        f"each candidate, and choose the one that separates them as you would.</p><ul>{reasons}</ul>"
        f'{_as_html(chosen, ())}<div class="charts">{_histogram(comparison.suggestion, guides)}</div>'
        f"<details><summary>All thresholds</summary>{_as_html(rows, chosen)}<p>A giant chain is a cluster of 20 "
        "documents or more in which most pairs do not reach τ. <code>dedup</code> removes the same documents, and "
        "text lost is the fraction of word 5-grams, or of a sample of about a million, in no kept one.</p></details>"
    )


def _histogram(suggestion: Suggestion, guides: Sequence[float]) -> str:
    edges, counts = suggestion.edges.tolist(), suggestion.counts.tolist()
    x = LogAxis(label="similarity", low=edges[0], high=1)
    y = LogAxis(label="pairs", low=0.5, high=max([10, *counts]))
    return histogram("Pairs of distinct pages by similarity", x, y, edges, counts, guides)
