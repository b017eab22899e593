"""A page for choosing tau: pairs and removed documents at each threshold, and pairs near candidates to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spotsigs.clustering.clusters import ClusterMethod, cluster, cohesion
from spotsigs.errors import as_count, as_number, require
from spotsigs.evaluation.documents import decided
from spotsigs.evaluation.metrics import drawn, ends, micro_averages, resampled_micro, tallies
from spotsigs.evaluation.threshold import FLOOR, Suggestion, suggest
from spotsigs.in_memory import Matched
from spotsigs.output_files import replacing, write_csv
from spotsigs.records import Pairs, Signatures, SignatureScheme, Truth
from spotsigs.reports.charts import Axis, Series, chart
from spotsigs.reports.cluster_page import collapsed, common_prefix, packed, rendered

NEAREST = 40
"""Pairs on each side of a threshold from which those to compare are drawn."""

LONGEST = 20_000
"""Characters of a page that are shown."""

COLUMNS = {
    "tau": ("τ", "g"), "pairs": ("Pairs", ",d"), "clusters": ("Clusters", ",d"), "largest": ("Largest", ",d"),
    "chains": ("Giant chains", ",d"), "removed": ("Removed", ",d"), "removed_share": ("Fraction", ".1%"),
}  # fmt: skip
QUALITY = {"precision": ("Prec.", ".3f"), "recall": ("Rec.", ".3f"), "f1": ("F1", ".3f")}
DECIDED = {"lost": ("Stories lost", ".1%"), "left": ("Duplicates left", ".1%")}
INTERVAL = ("f1_low", "f1_high")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A threshold to inspect, and the reason."""

    tau: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Thresholds that are compared."""

    lowest: float = FLOOR  # threshold of the join, and begin of the histogram; the lower, the more pairs
    step: float = 0.02  # a divisor of 1
    candidates: list[float] = field(
        default_factory=list
    )  # in addition to the suggested one, tau and that of the best F1
    each: int = 5  # pairs to compare on each side of each candidate
    clusters: ClusterMethod = ClusterMethod.leaders
    seed: int = 0  # of the draw of pairs

    def __post_init__(self) -> None:
        require(0 < as_number("lowest", self.lowest) < 1, f"lowest must be in (0, 1), got {self.lowest}")
        as_count("each", self.each, 0)
        for tau in self.candidates:
            require(self.lowest <= tau <= 1, f"candidates must be in [{self.lowest:g}, 1], got {tau}")
        require(len(self.taus()) > 0, "no threshold reaches lowest")

    def taus(self) -> list[float]:
        """Return the multiples of the step from ``lowest`` to 1."""
        step = as_number("step", self.step)
        count = round(1 / step) if step > 0 else 0
        require(count > 0 and abs(count * step - 1) < 1e-9, f"step must divide 1, as 0.02 does, got {step}")
        require(count <= 1000, f"step must be at least 0.001, got {step}")
        taus = (round(number / count, 6) for number in range(1, count + 1))
        return [tau for tau in taus if tau >= self.lowest]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Thresholds of a collection, compared."""

    suggestion: Suggestion  # from the similarities of distinct pages
    candidates: list[Candidate]  # ascending
    rows: list[dict[str, Any]]  # for each threshold: `COLUMNS`, and `QUALITY` and `INTERVAL` if there is truth


def compare_thresholds(
    pairs: Pairs, similarities: NDArray[np.float64], tau: float, truth: Truth | None, options: Thresholds
) -> Comparison:
    """Compare thresholds, among them `tau`, from all pairs of one join that reach ``options.lowest``.

    `similarities` are those of the pairs of distinct pages, without exact duplicates.
    """
    suggestion = suggest(similarities, options.lowest)
    taus = options.taus()
    judged = None if truth is None else {value: _quality(pairs.at(value), truth) for value in taus}
    best = None if judged is None else max(taus, key=lambda value: (np.nan_to_num(judged[value]["f1"]), -value))
    found = [] if suggestion.tau is None else [Candidate(tau=round(suggestion.tau, 3), why="the valley")]
    if tau >= options.lowest:
        found.append(Candidate(tau=tau, why="as set"))
    if judged is not None and best is not None and judged[best]["f1"] > 0:
        found.append(Candidate(tau=best, why="best F1 by the truth"))
    found += [Candidate(tau=value, why="as requested") for value in options.candidates]
    candidates = sorted({c.tau: c for c in reversed(found)}.values(), key=lambda c: c.tau)
    rows = []
    for value in sorted({*taus, *(candidate.tau for candidate in candidates)}):
        row = at_tau(pairs, value, options.clusters, truth)
        if truth is not None and judged is not None:
            row |= judged.get(value) or _quality(pairs.at(value), truth)
        rows.append(row)
    return Comparison(suggestion=suggestion, candidates=candidates, rows=rows)


def at_tau(
    pairs: Pairs, tau: float, clusters: ClusterMethod = ClusterMethod.leaders, truth: Truth | None = None
) -> dict[str, Any]:
    """Return the pairs, clusters and removed documents at a threshold; with truth, stories lost and duplicates left."""
    reported = pairs.at(tau)
    groups = cluster(reported, clusters=clusters)
    removed = pairs.n - len(groups.representatives)
    measured = {}
    if truth is not None:
        kept = np.zeros(pairs.n, np.bool_)
        kept[groups.representatives] = True
        found = decided(kept, truth)
        measured = {"lost": found.lost, "left": found.left}
    return measured | {
        "tau": tau,
        "pairs": len(reported),
        "clusters": int(np.count_nonzero(groups.sizes > 1)),
        "largest": int(groups.sizes.max(initial=0)),
        "chains": int(np.count_nonzero(cohesion(groups, reported.chunks()).chain)),
        "removed": removed,
        "removed_share": removed / max(pairs.n, 1),
    }


def _quality(pairs: Pairs, truth: Truth) -> dict[str, float]:
    """Return precision, recall and F1 with its interval; NaN where no pair defines them."""
    counted = tallies(pairs, truth)
    values = dict(zip(QUALITY, map(float, micro_averages(*counted)), strict=True))
    interval = (float("nan"),) * 2
    if np.isfinite(values["f1"]):
        interval = tuple(map(float, ends(resampled_micro(counted, drawn(np.ones(len(counted[0]))))[2])))  # type: ignore[assignment]
    return values | dict(zip(INTERVAL, interval, strict=True))


def around(pairs: Pairs, tau: float, above: bool, each: int, rng: np.random.Generator) -> list[int]:
    """Draw `each` pairs near a threshold, on one side of it, that share no document; return their positions.

    They are in descending order of similarity.
    """
    side = np.flatnonzero((pairs.similarity >= tau) == above)
    distance = np.abs(pairs.similarity[side] - tau)
    nearest: NDArray[np.int64] = side[np.argsort(distance, kind="stable")[:NEAREST]]
    chosen: list[int] = []
    used: set[int] = set()
    for position in rng.permutation(nearest).tolist():
        both = {int(pairs.i[position]), int(pairs.j[position])}
        if len(chosen) < each and not both & used:
            chosen.append(position)
            used |= both
    return sorted(chosen, key=lambda position: (-pairs.similarity[position], position))


def write_threshold_page(
    folder: Path,
    name: str,
    comparison: Comparison,
    matched: Matched[Signatures, Pairs],
    texts: Any,
    *,
    scheme: SignatureScheme,
    options: Thresholds,
) -> str:
    """Write ``threshold.html``, ``threshold.csv`` and ``histogram.csv``; return proposal and candidates for a terminal.

    `matched` is the collection `name` with all pairs that reach ``options.lowest``, `texts` its texts in row order, and
    `scheme` marks the signatures that a pair shares.
    """
    suggestion, rows = comparison.suggestion, comparison.rows
    keys = list(rows[0]) if rows else list(COLUMNS)
    write_csv(folder / "threshold.csv", keys, ([row[key] for key in keys] for row in rows))
    bins = zip(suggestion.edges[:-1].tolist(), suggestion.edges[1:].tolist(), suggestion.counts.tolist(), strict=True)
    write_csv(folder / "histogram.csv", ("similarity_from", "similarity_to", "pairs"), bins)
    listed, blocks = _pairs_to_compare(comparison, matched, texts, scheme, options)
    page = {
        "clusters": listed,
        "summary": "drawn near the candidates",
        "noun": "pairs to judge",
        "marked": True,
        "prefix": common_prefix(doc for pair in listed for doc in pair["ids"]),
    }
    chosen = [row for row in rows if row["tau"] in {candidate.tau for candidate in comparison.candidates}]
    with replacing(folder / "threshold.html") as temporary:
        about = _about(name, comparison, chosen)
        temporary.write_text(rendered(f"Choosing τ: {name}", page, blocks, about), encoding="utf-8")
    return f"{proposal(suggestion)}\n\n{_as_text(chosen)}\n\npairs around each candidate: {folder / 'threshold.html'}"


def _pairs_to_compare(
    comparison: Comparison,
    matched: Matched[Signatures, Pairs],
    texts: Any,
    scheme: SignatureScheme,
    options: Thresholds,
) -> tuple[list[dict[str, Any]], list[str | None]]:
    """Draw pairs on both sides of each candidate; return them as the viewer's groups of two documents."""
    pairs, rng = matched.pairs, np.random.default_rng(options.seed)
    rows = [
        (candidate, side, row)
        for candidate in comparison.candidates
        for side in ("reaches", "misses")
        for row in around(pairs, candidate.tau, side == "reaches", options.each, rng)
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
                "label": number, "ids": [matched.doc_ids[i], matched.doc_ids[j]], "similarities": [1.0, similarity],
                "low": similarity, "mean": similarity, "pairs": 1, "chain": 0, "giant": False,
                "mark": f"{'≥' if side == 'reaches' else '<'} {candidate.tau:g}", "about": about,
            }
        )  # fmt: skip
        blocks.append(packed([i, j], kept, tuple(column[row : row + 1] for column in columns), scheme, counts))
    return listed, blocks


def proposal(suggestion: Suggestion) -> str:
    """Return the proposed threshold with its reason."""
    if suggestion.tau is None:
        return f"no threshold is proposed: {suggestion.reason}"
    return f"proposed: {suggestion.reason}"


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    known = rows[0] if rows else {}
    return COLUMNS | (QUALITY if "f1" in known else {}) | (DECIDED if "lost" in known else {})


def _cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return titles and formatted values."""
    columns = _columns(rows)
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
    """Return the part of the page above the pairs: proposal, candidates, charts, table."""
    rows, guides = comparison.rows, [candidate.tau for candidate in comparison.candidates]
    reasons = "".join(f"<li>τ = {c.tau:g}: {escape(c.why)}</li>" for c in comparison.candidates)
    return (
        f"<p><code>{escape(name)}</code>: {escape(proposal(comparison.suggestion))}.</p>"
        "<p>A threshold decides which pages count as the same. Compare the pairs below that just reach and just miss "
        f"each candidate, and choose the one that separates them as you would.</p><ul>{reasons}</ul>"
        f'{_as_html(chosen, ())}<div class="charts">{"".join(_charts(comparison.suggestion, rows, guides))}</div>'
        f"<details><summary>All thresholds</summary>{_as_html(rows, chosen)}<p>A giant chain is a cluster of 20 "
        "documents or more in which most pairs do not reach τ. Removed documents are those that go if one of each "
        "cluster is kept.</p></details>"
    )


def _charts(suggestion: Suggestion, rows: Sequence[Mapping[str, Any]], guides: Sequence[float]) -> list[str]:
    most = max([10.0, *(float(row["pairs"]) for row in rows)])
    edges, counts = suggestion.edges.tolist(), suggestion.counts.tolist()
    taus = [row["tau"] for row in rows]
    over = Axis(label="similarity threshold τ", low=0, high=1)
    rates = {"removed_share": "removed"} | {key: key for key in QUALITY if rows and key in rows[0]}
    return [
        chart(
            "Pairs of distinct pages by similarity",
            Axis(label="similarity", low=edges[0], high=1, log=True),
            Axis(label="pairs", low=0.5, high=max([10, *counts]), log=True),
            [Series(name="pairs", y=counts, edges=edges)],
            guides,
        ),
        chart(
            "Pairs and clusters by threshold",
            over,
            Axis(label="number", low=0.5, high=most, log=True),
            [Series(name=key, x=taus, y=[max(row[key], 0.5) for row in rows]) for key in ("pairs", "clusters")],
            guides,
        ),
        chart(
            "Removed documents and quality by threshold" if len(rates) > 1 else "Removed documents by threshold",
            over,
            Axis(label="fraction", low=0, high=1),
            [Series(name=name, x=taus, y=[row[key] for row in rows]) for key, name in rates.items()],
            guides,
        ),
    ]
