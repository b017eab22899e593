"""Settings of deduplication for training data: lost stories, left duplicates and leakage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, composed
from experiments.show.figures import Mark, Panel, Point, draw_lines
from experiments.show.tables import Column, Table
from experiments.work.curves import STEP, thresholds
from experiments.work.extracted_collections import Stored
from experiments.work.halves import multiplicities, origin, read_all, resampled_decisions, story_numbers
from experiments.work.result_cache import Task
from experiments.work.study import SEVERAL, Line, Work, lines_of
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.errors import InputError, require
from spotsigs.evaluation.documents import b_cubed, decided
from spotsigs.evaluation.metrics import ends
from spotsigs.records import Corpus, Matcher
from spotsigs.signatures.idf import IdfFilter

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

CAPTION = (
    "Stories lost over duplicates left, one line for each method over its thresholds, with clusters of leaders and "
    "with connected components; the star is the default of the command spotsigs"
)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Method of deduplication at one setting.

    Attributes
    ----------
    words : str
        Overrides of signature and matcher.
    clusters : {"leaders", "components"}
        Which pages of a group are kept.
    contained : float or None
        If set, remove pages of which this fraction of signatures occurs in earlier kept pages, without a matcher.
    whole_page : bool
        Use the method on whole pages alone.
    """

    words: str
    clusters: str = "components"
    contained: float | None = None
    whole_page: bool = False


@dataclass(frozen=True, kw_only=True)
class Practice(Experiment):
    """Decisions of usual settings.

    Attributes
    ----------
    collections : dict of str to str
        Overrides of ``data`` by name of the collection; those that cannot be fetched are left out.
    texts : dict of str to str
        Overrides of ``text`` by label.
    settings : dict of str to dict
        Attributes of `Setting` by label.
    swept : dict of str to str
        Methods of the figure over thresholds, as on the command line.
    default : str
        One of the settings, the default of the command ``spotsigs``: a star in that figure.
    drawn : list of str
        Collections of that figure.
    step : float
        Distance between thresholds.
    """

    collections: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    swept: dict[str, str] = field(default_factory=dict)
    default: str = ""
    drawn: list[str] = field(default_factory=list)
    step: float = STEP

    def __post_init__(self) -> None:
        require(not self.settings or self.default in self.settings, f"default must name a setting: {self.default!r}")

    def __call__(self, settings: Settings) -> str:
        """Write the table and the figure; return them as text."""
        work = Work.begin(self.results, settings, SEVERAL)
        rows: list[dict[str, Any]] = []
        lines: list[Point] = []
        left_out = []
        for name, words in self.collections.items():
            try:
                collection = composed(*words.split(), *origin(words)).collection
                rows += self._rows(work, name, collection)
                lines += self._swept(work, name, collection)
            except InputError as error:
                left_out.append(f"{name} is left out: {error}")
        require(bool(rows), "; ".join(left_out))
        work.facts([fact for row in rows for fact in _facts(row)])
        table = Table(caption="Usual settings on whole collections", columns=COLUMNS, rows=rows, notes=(NOTES,))
        return "\n\n".join([work.table(table, "settings"), *self._figure(work, rows, lines), *left_out])

    def _lines(self, settings: Settings) -> Iterator[tuple[str, str, Setting, Line]]:
        """Yield text, label, setting and method of each row."""
        for text, words in self.texts.items():
            for label, values in self.settings.items():
                setting = Setting(**values)
                if not (words and setting.whole_page):
                    line = Line.composed(f"{label}, {text}", f"{setting.words} {words}", settings)
                    yield text, label, setting, line

    def _rows(self, work: Work, name: str, collection: Any) -> list[dict[str, Any]]:
        chosen = list(self._lines(work.settings))
        stored = read_all(work, collection, [line for *_, line in chosen])
        tasks = [
            Task(
                function=decisions,
                arguments={
                    "stored": stored[line.label],
                    "idf_filter": line.idf_filter,
                    "matcher": line.matcher,
                    "sets": line.sets,
                    "clusters": setting.clusters,
                    "contained": setting.contained,
                },
            )
            for _, _, setting, line in chosen
        ]
        found = work.cells.run(tasks, f"practice: {name}")
        rows = [
            {"collection": name, "text": text, "method": label} | cell
            for (text, label, *_), cell in zip(chosen, found, strict=True)
        ]
        pages = next(iter(stored.values()))
        everything = np.ones(len(pages.signatures()), bool)
        return [{"collection": name, "text": "", "method": "none"} | _decided(pages, everything), *rows]

    def _swept(self, work: Work, name: str, collection: Any) -> list[Point]:
        there = replace(work, settings=replace(work.settings, collection=collection))
        curves = there.curves(
            lines_of(self.swept, work.settings), thresholds(self.step), f"practice: {name}, thresholds"
        )
        return [
            Point(panel=name, series=f"{label}, {method.value}", x=values["left"], y=values["lost"])
            for label, curve in curves.items()
            for method in ClusterMethod
            for values in (curve.decided(at, method.value) for at in range(len(curve.taus)))
        ]

    def _figure(self, work: Work, rows: Sequence[Mapping[str, Any]], lines: Sequence[Point]) -> list[str]:
        """Draw lost over left, a line for each method over its thresholds."""
        stars = {
            row["collection"]: Mark(label=self.default, x=row["left"], y=row["lost"])
            for row in rows
            if row["method"] == self.default and row["collection"] in self.drawn
        }
        if not stars:
            return []
        panels = [
            Panel(name=name, x_label="duplicates left", y_label="stories lost", y_range=(0, 1), marks=[mark])
            for name, mark in stars.items()
        ]
        return [
            work.figure(draw_lines, "thresholds", CAPTION, panels, [point for point in lines if point.panel in stars])
        ]


def decisions(
    *, stored: Stored, idf_filter: IdfFilter, matcher: Matcher, sets: bool, clusters: str, contained: float | None
) -> dict[str, Any]:
    """Decide which documents stay, and evaluate it.

    Parameters
    ----------
    stored : Stored
        Signatures of a collection with truth.
    idf_filter, matcher, sets
        As for `experiments.work.curves.judge`.
    clusters, contained
        As in `Setting`.

    Returns
    -------
    dict
        The columns of the table.
    """
    corpus, truth = stored.corpus(idf_filter, sets=sets), stored.truth()
    if contained is None:
        found = cluster(matcher.with_threads(1)(corpus), clusters=clusters)
        largest = int(found.sizes.max(initial=0))
        kept = np.zeros(len(found), bool)
        kept[found.representatives] = True
        bcubed = b_cubed(found, truth)[2]
    else:
        kept, bcubed, largest = not_contained(corpus, contained), None, None
    return {
        "bcubed_f1": bcubed,
        "largest": largest,
        **_decided(stored, kept),
    }


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
