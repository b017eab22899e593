"""Choosing tau: pairs, clusters and what would be removed over all thresholds, from one join, and pairs to judge."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Panel, Point
from experiments.show.quality_figures import curve_points, thresholds
from experiments.show.tables import Column, Table
from experiments.work.curves import Curve, decision_measures
from experiments.work.study import Work
from spotsigs.clustering.clusters import cluster
from spotsigs.errors import require
from spotsigs.evaluation.metrics import tallies
from spotsigs.evaluation.threshold import Suggestion, suggest
from spotsigs.matching.prefix_join import self_join
from spotsigs.output_files import replacing
from spotsigs.records import Clusters, Corpus, Pairs, Truth, VectorCollection
from spotsigs.reports import cluster_page
from spotsigs.reports.page_pairs import LONGEST, Page, Sample, collapsed, marked
from spotsigs.runs.provenance import provenance

TEMPLATES = Path(__file__).parents[1] / "show" / "templates"

NEAREST = 40
"""Pairs on each side of a threshold among which those to look at are drawn."""

TICKS = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1)

COLUMNS = [
    Column(name="tau", title="τ", form="g"),
    Column(name="pairs", title="Pairs", form=",.0f"),
    Column(name="clusters", title="Clusters", form=",.0f"),
    Column(name="largest", title="Largest", form=",.0f"),
    Column(name="removed", title="Removed", form=",.0f"),
    Column(name="removed_share", title="Share", form=".1%"),
]
QUALITY = [
    Column(name="precision", title="Prec.", form=".3f"),
    Column(name="recall", title="Rec.", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="f1_low"),
    Column(name="f1_high"),
    Column(name="lost", title="Stories lost", form=".1%"),
    Column(name="left", title="Duplicates left", form=".1%"),
    Column(name="bcubed_f1", title="B-cubed F1", form=".3f"),
]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A threshold to look at: ``why`` says where it comes from."""

    tau: float
    why: str


@dataclass(frozen=True, kw_only=True)
class Threshold(Experiment):
    """What each threshold would report and remove, which one the pages suggest, and pairs around it to judge by eye.

    One exact join at the lowest threshold serves every higher one.

    Attributes
    ----------
    results : Path
        Folder that receives ``threshold/<data>/``.
    lowest : float
        Where the join and the histogram begin; the lower, the more pairs.
    step : float
        Distance of the thresholds, a divisor of 1.
    candidates : list of float
        Thresholds to look at beside the suggested one, ``tau``, and that of the best F1.
    each : int
        Pairs to look at on each side of each candidate.
    """

    reads: ClassVar[tuple[str, ...]] = ("signature", "tau", "sets", "idf", "idf_min", "idf_max", "min_spots")

    results: Path = Path("results")
    lowest: float = 0.03
    step: float = 0.02
    candidates: list[float] = field(default_factory=list)
    each: int = 5

    def __post_init__(self) -> None:
        require(0 < self.lowest < 1, f"lowest must lie in (0, 1), got {self.lowest}")
        require(self.each >= 0, f"each must not be negative, got {self.each}")
        for tau in self.candidates:
            require(self.lowest <= tau <= 1, f"candidates must lie in [{self.lowest:g}, 1], got {tau}")
        require(any(tau >= self.lowest for tau in thresholds(self.step)), "no threshold reaches lowest")

    def __call__(self, settings: Settings) -> str:
        """Write table, figures and page; return the proposal and where they lie."""
        require(
            not isinstance(settings.collection, VectorCollection),
            f"experiment=threshold shows pages, and data={settings.names['data']} brings vectors",
        )
        work = Work.begin(self.results, settings)
        work = replace(work, folder=work.folder / settings.names["data"])
        stored = work.read(settings.signature)
        corpus, truth = stored.corpus(settings.idf_filter, sets=settings.sets), stored.truth()
        pairs = self_join(corpus.vectors, self.lowest, threads=settings.threads)
        suggestion = suggest(pairs.similarity, self.lowest)
        taus = [tau for tau in thresholds(self.step) if tau >= self.lowest]
        curve = None if truth is None else quality_curve(pairs, truth, taus)
        candidates = self._candidates(suggestion, settings.tau, curve)
        rows = [at_tau(pairs, tau) for tau in sorted({*taus, *(candidate.tau for candidate in candidates)})]
        if curve is not None and truth is not None:
            rows = [row | _quality(quality_curve(pairs, truth, [row["tau"]])) for row in rows]
        if truth is not None and truth.judged is None:
            rows = [decision_measures(pairs.at(row["tau"]), truth) | row for row in rows]
        table = Table(
            caption=f"What each threshold reports and removes, data={settings.names['data']}",
            columns=[*COLUMNS, *(QUALITY if truth is not None else [])],
            rows=rows,
        )
        work.table(table, "threshold")
        work.facts(_facts(suggestion, curve, rows))
        figures = self._draw(work, suggestion, rows, curve, candidates)
        samples, kinds = self._samples(corpus, truth, pairs, candidates, settings)
        page = work.folder / "threshold.html"
        chosen = [next(row for row in rows if row["tau"] == candidate.tau) for candidate in candidates]
        shown = replace(table, rows=chosen, caption="The candidates")
        with replacing(page) as temporary:
            temporary.write_text(
                render(
                    data=settings.names["data"],
                    suggestion=suggestion,
                    candidates=candidates,
                    tables=[shown, table],
                    figures=figures,
                    samples=samples,
                    kinds=kinds,
                ),
                encoding="utf-8",
            )
        return "\n\n".join(
            [
                proposal(suggestion),
                shown.text(),
                f"look at {page}, where pairs around each candidate stand side by side",
            ]
        )

    def _candidates(self, suggestion: Suggestion, tau: float, curve: Curve | None) -> list[Candidate]:
        """Return the thresholds to look at, ascending; of equal ones, the first reason."""
        found = [] if suggestion.tau is None else [Candidate(tau=round(suggestion.tau, 3), why="the valley")]
        if tau >= self.lowest:
            found.append(Candidate(tau=tau, why="as configured"))
        if curve is not None:
            found.append(Candidate(tau=curve.taus[curve.best], why="best F1 by the truth"))
        found += [Candidate(tau=value, why="as asked") for value in self.candidates]
        return sorted({c.tau: c for c in reversed(found)}.values(), key=lambda c: c.tau)

    def _draw(
        self,
        work: Work,
        suggestion: Suggestion,
        rows: Sequence[Mapping[str, Any]],
        curve: Curve | None,
        candidates: Sequence[Candidate],
    ) -> list[dict[str, str]]:
        guides = [candidate.tau for candidate in candidates]
        histogram = "Pairs by similarity (logarithmic scales); dotted lines are the candidates"
        work.histogram(
            "similarities",
            histogram,
            Panel(name="", x_label="similarity", y_label="pairs", x_log=True, y_log=True, guides=guides, x_ticks=TICKS),
            suggestion.edges,
            suggestion.counts,
        )
        count, share = "Counts", "Removed" if curve is None else "Removed and quality"
        points = [
            Point(panel=count, series=name, x=row["tau"], y=max(row[name], 0.5))
            for name in ("pairs", "clusters")
            for row in rows
        ]
        points += [Point(panel=share, series="removed", x=row["tau"], y=row["removed_share"]) for row in rows]
        if curve is not None:
            for measure in ("precision", "recall", "f1"):
                points += curve_points(curve, share, measure, measure)
        panels = [
            Panel(name=count, x_label="similarity threshold τ", y_label="number", y_log=True, guides=guides),
            Panel(name=share, x_label="similarity threshold τ", y_label="share", y_range=(0, 1.02), guides=guides),
        ]
        curves = "Pairs, clusters, and the share of documents that would be removed, over τ"
        work.lines("curves", curves, panels, points)
        return [
            {"image": _image(work.folder / f"{name}.svg"), "caption": caption}
            for name, caption in (("similarities", histogram), ("curves", curves))
        ]

    def _samples(
        self, corpus: Corpus, truth: Truth | None, pairs: Pairs, candidates: Sequence[Candidate], settings: Settings
    ) -> tuple[list[Sample], dict[str, str]]:
        """Draw pairs just above and just below each candidate, and mark what the pages share."""
        rng = np.random.default_rng(settings.seed)
        kinds: dict[str, str] = {}
        drawn: list[tuple[str, float, int]] = []
        for number, candidate in enumerate(candidates):
            for side, says in (("above", "reaching"), ("below", "missing")):
                kind = f"{side}{number}"
                rows = around(pairs, candidate.tau, side == "above", self.each, rng)
                drawn += [(kind, candidate.tau, row) for row in rows]
                if rows:
                    kinds[kind] = f"just {says} τ = {candidate.tau:g} ({candidate.why})"
        wanted = {int(side[row]) for _, _, row in drawn for side in (pairs.i, pairs.j)}
        texts = (
            {row: collapsed(text)[:LONGEST] for row, text in enumerate(corpus.texts()) if row in wanted}
            if wanted
            else {}
        )
        groups = {candidate.tau: cluster(pairs.at(candidate.tau)) for candidate in candidates}
        samples = []
        for kind, tau, row in drawn:
            i, j = int(pairs.i[row]), int(pairs.j[row])
            left, right = (
                self._page(corpus, truth, groups[tau], texts, one, other, settings.signature)
                for one, other in ((i, j), (j, i))
            )
            samples.append(Sample(kind=kind, similarity=float(pairs.similarity[row]), left=left, right=right))
        return samples, kinds

    @staticmethod
    def _page(
        corpus: Corpus,
        truth: Truth | None,
        groups: Clusters,
        texts: Mapping[int, str],
        row: int,
        other: int,
        scheme: Any,
    ) -> Page:
        known = truth is not None and truth.judged is None and truth.labels[row] >= 0
        size = groups.sizes[groups.labels[row]]
        return Page(
            id=str(corpus.vectors.doc_ids[row]),
            truth=str(truth.names[truth.labels[row]]) if truth is not None and known else "",
            found=f"{groups.labels[row]} ({size} pages)" if size > 1 else "none",
            pieces=marked(texts[row], texts[other], scheme),
        )


def at_tau(pairs: Pairs, tau: float) -> dict[str, Any]:
    """Return what a threshold reports and removes."""
    reported = pairs.at(tau)
    groups = cluster(reported)
    removed = pairs.n - len(groups.representatives)
    return {
        "tau": tau,
        "pairs": len(reported),
        "clusters": int(np.count_nonzero(groups.sizes > 1)),
        "largest": int(groups.sizes.max(initial=0)),
        "removed": removed,
        "removed_share": removed / max(pairs.n, 1),
    }


def quality_curve(pairs: Pairs, truth: Truth, taus: Sequence[float]) -> Curve:
    """Return precision, recall and F1 over thresholds that the pairs reach down to."""
    counts = [tallies(pairs.at(tau), truth) for tau in taus]
    cell: dict[str, Any] = {"taus": list(taus)}
    cell |= {name: [count[m].tolist() for count in counts] for m, name in enumerate(("true", "false", "missed"))}
    return Curve(cell)


def _quality(curve: Curve) -> dict[str, float]:
    low, high = curve.interval("f1")[:, 0]
    values = dict(zip(("precision", "recall", "f1"), curve.micro[:, 0].tolist(), strict=True))
    return values | {"f1_low": float(low), "f1_high": float(high)}


def around(pairs: Pairs, tau: float, above: bool, each: int, rng: np.random.Generator) -> list[int]:
    """Draw pairs near a threshold, on one side of it, as far as there are any of different documents.

    Parameters
    ----------
    pairs : Pairs
        All of them.
    tau : float
        The threshold.
    above : bool
        Whether they reach it.
    each : int
        Pairs wanted.
    rng : Generator
        Draws among the nearest.

    Returns
    -------
    list of int
        Places in `pairs`, in descending order of similarity.
    """
    side = np.flatnonzero((pairs.similarity >= tau) == above)
    distance = np.abs(pairs.similarity[side] - tau)
    nearest: NDArray[np.int64] = side[np.argsort(distance, kind="stable")[:NEAREST]]
    chosen: list[int] = []
    used: set[int] = set()
    for place in rng.permutation(nearest).tolist():
        ends = {int(pairs.i[place]), int(pairs.j[place])}
        if len(chosen) < each and not ends & used:
            chosen.append(place)
            used |= ends
    return sorted(chosen, key=lambda place: (-pairs.similarity[place], place))


def proposal(suggestion: Suggestion) -> str:
    """Return the proposal with its reason."""
    if suggestion.tau is None:
        return f"no threshold is proposed: {suggestion.reason}"
    return f"proposed: {suggestion.reason}"


def _facts(suggestion: Suggestion, curve: Curve | None, rows: Sequence[Mapping[str, Any]]) -> list[Fact]:
    facts = [] if suggestion.tau is None else [Fact(name="proposed tau", value=suggestion.tau)]
    facts += [Fact(name=f"pairs at tau {row['tau']:g}", value=row["pairs"]) for row in rows[:1]]
    if curve is not None:
        facts.append(Fact(name="tau of the best F1", value=curve.taus[curve.best]))
        facts.append(Fact(name="best F1", value=float(curve.micro[2, curve.best])))
        if suggestion.tau is not None:
            own = next(row for row in rows if row["tau"] == round(suggestion.tau, 3))
            facts.append(Fact(name="F1 at the proposed tau", value=own["f1"], low=own["f1_low"], high=own["f1_high"]))
    return facts


def _image(path: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"


def render(
    *,
    data: str,
    suggestion: Suggestion,
    candidates: Sequence[Candidate],
    tables: Sequence[Table],
    figures: Sequence[Mapping[str, str]],
    samples: Sequence[Sample],
    kinds: Mapping[str, str],
) -> str:
    """Return the page; page text and ids are escaped, and its policy allows no request and no script but its own."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=FileSystemLoader([TEMPLATES, cluster_page.TEMPLATES]), autoescape=True, undefined=StrictUndefined
    )
    printed = [
        {
            "caption": table.caption,
            "titles": (parts := table.printed())[0],
            "cells": parts[1],
            "numbers": [bool(column.form) for column in table.columns if column.title],
            "taus": [row["tau"] for row in table.rows],
        }
        for table in tables
    ]
    return environment.get_template("threshold.html").render(
        script=Markup(script),
        script_hash=Markup(f"'sha256-{digest}'"),
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        data=data,
        proposal=proposal(suggestion),
        candidates=candidates,
        chosen={candidate.tau for candidate in candidates},
        tables=printed,
        figures=figures,
        samples=samples,
        kinds=kinds,
        about=provenance(),
    )
