"""Settings of deduplication for training data: lost stories, left duplicates and leakage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, composed, method_of, methods_of
from experiments.harness.cross_validation import (
    kept_by,
    multiplicities,
    origin,
    resampled_decisions,
    story_numbers,
)
from experiments.harness.curves import STEP, thresholds
from experiments.harness.extracted_collections import Stored
from experiments.harness.study import SEVERAL, Work, task_of
from experiments.show.figures import Mark, Panel, Point, draw_lines
from experiments.show.tables import Column, Table
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.errors import InputError, require
from spotsigs.evaluation.documents import b_cubed, decided
from spotsigs.evaluation.metrics import ends
from spotsigs.method import Method
from spotsigs.records import Corpus

TEST = 0.2
"""Fraction of the kept pages in the test set."""

NOTES = (
    "Lost: stories of which no page is kept, 95 % intervals over stories. Left: duplicates that are kept. MinHash: "
    "what shares a band of min-hashes of 5-grams is a pair, unverified; 14 bands of 8 are datatrove's default, 25 of "
    "10 those that text-dedup computes for .7. 5-gram Jaccard: the exact value of what min-hashes estimate. SimHash: "
    "64 bits of 3-grams. Substrings: a page is removed if at least half of its runs of 50 tokens occur in earlier "
    "kept pages. Leakage: expected fraction of test pages whose story has a page in the training set, if a random "
    "fifth of the kept pages is the test set."
)
DOTS_CAPTION = "Stories lost over duplicates left, each method at its usual setting"
LINES_CAPTION = (
    "Stories lost over duplicates left, one line for each method over its thresholds, with clusters of leaders and "
    "with connected components; the star is the default of the command spotsigs"
)

COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="text", title="Text"),
    Column(name="method", title="Method"),
    Column(name="kept", title="Kept", form=",.0f"),
    Column(name="stories_lost", title="Stories lost", form=",.0f"),
    Column(name="lost", title="of all", form=".1%"),
    Column(name="lost_interval", title="95 %"),
    Column(name="duplicates_left", title="Duplicates left", form=",.0f"),
    Column(name="left", title="of all", form=".1%"),
    Column(name="left_interval", title="95 %"),
    Column(name="bcubed_f1", title="B-cubed F1", form=".3f"),
    Column(name="largest", title="Largest group", form=",.0f"),
    Column(name="leakage", title="Leakage", form=".1%"),
]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Method of deduplication at one setting.

    Attributes
    ----------
    method : dict of str to object
        Groups and keys of the method.
    contained : float or None
        If set, remove pages of which this fraction of signatures occurs in earlier kept pages, without a matcher.
    whole_page : bool
        Use the method on whole pages alone.
    """

    method: dict[str, Any]
    contained: float | None = None
    whole_page: bool = False


@dataclass(frozen=True, kw_only=True)
class Practice(Experiment):
    """Decisions of usual settings, and their effect on a training set.

    Attributes
    ----------
    collections : dict of str to str
        Overrides that choose each collection, by name; those that cannot be fetched are left out.
    texts : dict of str to dict
        Groups and keys of the text by label.
    settings : dict of str to dict
        Attributes of `Setting` by label.
    swept : dict of str to dict
        Methods of the figure over thresholds.
    default : str
        One of the settings, the default of the command ``spotsigs``: a star in that figure.
    drawn : list of str
        Collections of the figures.
    step : float
        Distance between thresholds.
    """

    collections: dict[str, str] = field(default_factory=dict)
    texts: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    swept: dict[str, dict[str, Any]] = field(default_factory=dict)
    default: str = ""
    drawn: list[str] = field(default_factory=list)
    step: float = STEP

    def __post_init__(self) -> None:
        require(not self.settings or self.default in self.settings, f"default must name a setting: {self.default!r}")

    def __call__(self, settings: Settings) -> str:
        """Write the table and the figures; return them as text."""
        work = Work.begin(self.results, settings, SEVERAL)
        rows: list[dict[str, Any]] = []
        lines: list[Point] = []
        left_out = []
        for name, words in self.collections.items():
            try:
                collection = composed(*words.split(), *origin(words)).collection
                rows += self._rows(work, name, collection)
                lines += self._lines_over_thresholds(work, name, collection) if name in self.drawn else []
            except InputError as error:
                left_out.append(work.leave_out(name, error))
        require(bool(rows), "; ".join(left_out))
        work.facts([fact for row in rows for fact in _facts(row)])
        table = Table(caption="Usual settings on whole collections", columns=COLUMNS, rows=rows, notes=(NOTES,))
        return "\n\n".join([work.table(table, "settings"), *self._figures(work, rows, lines), *left_out])

    def _chosen(self, settings: Settings) -> Iterator[tuple[str, str, Setting, Method]]:
        """Yield text, label, setting and method of each row."""
        for text, fixed in self.texts.items():
            for label, values in self.settings.items():
                setting = Setting(**values)
                if not (fixed and setting.whole_page):
                    yield text, label, setting, method_of(setting.method, settings, label=label, **fixed)

    def _rows(self, work: Work, name: str, collection: Any) -> list[dict[str, Any]]:
        chosen = {f"{row[1]}, {row[0]}": row for row in self._chosen(work.settings)}
        stored = work.read_all({key: row[3] for key, row in chosen.items()}, collection)
        tasks = [task_of(decisions, stored[key], row[3], contained=row[2].contained) for key, row in chosen.items()]
        found = work.cache.run(tasks, f"practice: {name}")
        rows = [
            {"collection": name, "text": text, "method": label} | cell
            for (text, label, *_), cell in zip(chosen.values(), found, strict=True)
        ]
        pages = next(iter(stored.values()))
        everything = _decided(pages, np.ones(len(pages.signatures()), bool))
        return [{"collection": name, "text": "", "method": "none"} | everything, *rows]

    def _lines_over_thresholds(self, work: Work, name: str, collection: Any) -> list[Point]:
        methods = methods_of(self.swept, work.settings)
        stored = work.read_all(methods, collection)
        taus = thresholds(self.step)
        tasks = [task_of(decisions_over_tau, stored[label], method, taus=taus) for label, method in methods.items()]
        found = work.cache.run(tasks, f"practice: {name}, thresholds")
        return [
            Point(panel=name, series=f"{label}, {clusters}", x=left, y=lost)
            for label, cell in zip(methods, found, strict=True)
            for clusters, values in cell.items()
            for lost, left in values
        ]

    def _figures(self, work: Work, rows: Sequence[Mapping[str, Any]], lines: Sequence[Point]) -> list[str]:
        """Draw lost over left: a dot for each setting, and a line for each method over its thresholds."""
        rows = [row for row in rows if row["text"] and row["collection"] in self.drawn]
        dots = [
            Point(panel=f"{row['collection']}, {row['text']}", series=row["method"], x=row["left"], y=row["lost"])
            for row in rows
        ]
        if not dots:
            return []
        panel = Panel(name="", x_label="duplicates left", y_label="stories lost", x_log=0.001, y_log=0.001)
        panels = [replace(panel, name=name) for name in dict.fromkeys(point.panel for point in dots)]
        stars = [row for row in rows if row["method"] == self.default]
        starred = [
            replace(
                panel,
                name=row["collection"],
                y_range=(0, 1),
                marks=[Mark(label=self.default, x=row["left"], y=row["lost"])],
            )
            for row in stars
        ]
        return [
            work.figure(draw_lines, "lost_left", DOTS_CAPTION, panels, dots),
            work.figure(draw_lines, "thresholds", LINES_CAPTION, starred, lines),
        ]


def decisions(*, stored: Stored, method: Method, contained: float | None) -> dict[str, Any]:
    """Decide which documents of a collection with truth are kept; return the columns of the table.

    The parameters are those of `experiments.harness.curves.quality_curve` and `Setting`.
    """
    joined, truth = stored.joined(method), stored.truth()
    if contained is not None:
        return {"bcubed_f1": None, "largest": None, **_decided(stored, not_contained(joined.corpus, contained))}
    made, _ = method.decide(joined(method.matcher.with_threads(1)))
    largest = int(made.clusters.sizes.max(initial=0))
    return {"bcubed_f1": b_cubed(made.clusters, truth)[2], "largest": largest, **_decided(stored, made.kept)}


def decisions_over_tau(
    *, stored: Stored, method: Method, taus: Sequence[float]
) -> dict[str, list[tuple[float, float]]]:
    """Return lost stories and left duplicates at each threshold by clustering, from one join at the lowest."""
    truth = stored.truth()
    pairs = stored.joined(method)(method.matcher.at(min(taus)).with_threads(1)).pairs
    found: dict[str, list[tuple[float, float]]] = {way.value: [] for way in ClusterMethod}
    for tau in taus:
        reported = pairs.at(tau)
        for clusters, values in found.items():
            decisions = decided(kept_by(cluster(reported, clusters=clusters)), truth)
            values.append((decisions.lost, decisions.left))
    return found


def _decided(stored: Stored, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Return lost stories, left duplicates and leakage of a selection, with intervals over stories."""
    truth = stored.truth()
    names, stories = story_numbers(truth)
    found = decided(kept, truth)
    lost, left = resampled_decisions(kept, stories, multiplicities("story", names))
    others = np.bincount(stories, kept)[stories[kept]] - 1
    return {
        "kept": int(kept.sum()),
        "lost": found.lost,
        "left": found.left,
        "stories_lost": found.stories_lost,
        "duplicates_left": found.duplicates_left,
        **{
            f"{name}_interval": "{:.1%} to {:.1%}".format(*ends(values))
            for name, values in (("lost", lost), ("left", left))
        },
        "leakage": float(np.mean(1 - TEST**others)),
    }


def not_contained(corpus: Corpus, fraction: float) -> NDArray[np.bool_]:
    """Return True for each document less than this fraction of which occurs in earlier documents with True."""
    vectors = corpus.vectors
    seen, kept = np.zeros(vectors.n_signatures, bool), np.ones(len(vectors), bool)
    for row in range(len(vectors)):
        span = slice(*vectors.indptr[row : row + 2])
        ids, counts = vectors.ids[span], vectors.counts[span]
        kept[row] = counts[seen[ids]].sum() < fraction * max(counts.sum(), 1)
        if kept[row]:
            seen[ids] = True
    return kept


def _facts(row: Mapping[str, Any]) -> list[Fact]:
    label = f"{row['collection']}: {row['method']}" + (f", {row['text']}" if row["text"] else "")
    return [Fact(name=f"{label}: {name}", value=row[name]) for name in ("lost", "left", "leakage")]
