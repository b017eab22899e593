"""Settings of deduplication for training data: lost stories, left duplicates, leakage and perplexity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, composed
from experiments.show.figures import Mark, Panel, Point
from experiments.show.quality_figures import STEP, thresholds
from experiments.show.tables import Column, Table
from experiments.work.extracted_collections import Source, Stored
from experiments.work.halves import (
    Half,
    HalvedCollection,
    multiplicities,
    origin,
    read_all,
    resampled_decisions,
    story_numbers,
)
from experiments.work.ngram_model import frequent_words, perplexity
from experiments.work.result_cache import Task
from experiments.work.study import SEVERAL, Line, Work, lines_of
from spotsigs.clustering.clusters import ClusterMethod, cluster
from spotsigs.errors import InputError, require
from spotsigs.evaluation.documents import b_cubed, decided
from spotsigs.evaluation.metrics import ends
from spotsigs.records import Corpus, Document, Matcher
from spotsigs.signatures.extract import extract_shard, read_texts
from spotsigs.signatures.idf import IdfFilter
from spotsigs.text.tokens import tokenize

TEST = 0.2
"""Fraction of the kept pages in the test set."""

NOTES = (
    "Lost: stories of which no page is kept, 95 % intervals over stories. Left: duplicates that are kept. MinHash: "
    "what shares a band of min-hashes of 5-grams is a pair, unverified; 14 bands of 8 are datatrove's default, 25 of "
    "10 those that text-dedup computes for .7. 5-gram Jaccard: the exact value of what min-hashes estimate. SimHash: "
    "64 bits of 3-grams. Substrings: a page is removed if at least half of its runs of 50 tokens occur in earlier "
    "kept pages. Leakage: expected fraction of test pages whose story has a page in the training set, if a random "
    "fifth of the kept pages is the test set. Perplexity: of a Kneser-Ney trigram model of the kept pages of one half "
    "of the stories and sites, on a page of each story of the other half, mean of both directions; text by "
    "trafilatura, vocabulary before deduplication. CPU: milliseconds a page on one thread for text and signatures of "
    "a sample and for the matching of all pages."
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
    Column(name="perplexity", title="Perplexity", form=",.0f"),
    Column(name="cpu_ms", title="CPU (ms)", form=".1f"),
]

DOTS_CAPTION = "Stories lost over duplicates left, each method at its usual setting"
LINES_CAPTION = (
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
    """Decisions of usual settings, and their effect on a training set.

    Attributes
    ----------
    results : Path
        Folder that receives ``practice/``.
    collections : dict of str to dict
        Attributes of `experiments.work.halves.HalvedCollection`, with at most one seed, by name.
    texts : dict of str to str
        Overrides of ``text`` by label.
    settings : dict of str to dict
        Attributes of `Setting` by label.
    swept : dict of str to str
        Methods of the figure over thresholds, as on the command line.
    default : str
        One of the settings, the default of the command ``spotsigs``: a star in that figure.
    drawn : list of str
        Collections of the figures.
    step : float
        Distance between thresholds.
    timed : list of str
        Collections on which the cost is measured.
    pages : int
        Number of their pages whose extraction is timed.
    """

    results: Path = Path("results")
    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    swept: dict[str, str] = field(default_factory=dict)
    default: str = ""
    drawn: list[str] = field(default_factory=list)
    step: float = STEP
    timed: list[str] = field(default_factory=list)
    pages: int = 100

    def __post_init__(self) -> None:
        require(not self.settings or self.default in self.settings, f"default must name a setting: {self.default!r}")

    def __call__(self, settings: Settings) -> str:
        """Write the table and the figures; return them as text."""
        work = Work.begin(self.results, settings, SEVERAL)
        rows: list[dict[str, Any]] = []
        lines: list[Point] = []
        left_out = []
        for name, chosen in self.collections.items():
            judged = HalvedCollection(**chosen)
            try:
                words = [*judged.data.split(), *(f"data.seed={seed}" for seed in judged.seeds), *origin(judged.data)]
                collection = composed(*words).collection
                rows += self._rows(work, name, collection, judged)
                lines += self._swept(work, name, collection)
            except InputError as error:
                left_out.append(f"{name} is left out: {error}")
        require(bool(rows), "; ".join(left_out))
        work.facts([fact for row in rows for fact in _facts(row)])
        table = Table(caption="Usual settings on whole collections", columns=COLUMNS, rows=rows, notes=(NOTES,))
        return "\n\n".join([work.table(table, "settings"), *self._figures(work, rows, lines), *left_out])

    def _lines(self, settings: Settings) -> Iterator[tuple[str, str, Setting, Line]]:
        """Yield text, label, setting and method of each row."""
        for text, words in self.texts.items():
            for label, values in self.settings.items():
                setting = Setting(**values)
                if not (words and setting.whole_page):
                    line = lines_of({f"{label}, {text}": f"{setting.words} {words}"}, settings)[0]
                    yield text, label, setting, line

    def _rows(self, work: Work, name: str, collection: Any, judged: HalvedCollection) -> list[dict[str, Any]]:
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
        costs = self._costs(work, name, [stored[line.label].source for *_, line in chosen])
        removed = {line.label: cell["removed"] for (*_, line), cell in zip(chosen, found, strict=True)}
        arguments = {"collection": collection, "text": _trained_on(work.settings), "judged": judged}
        (models,) = work.cells.run(
            [Task(function=perplexities, arguments=arguments | {"removed": removed | {"": []}})],
            f"practice: {name}, models",
        )
        before = {"collection": name, "text": "", "method": "none", "perplexity": models[""]} | _nothing_removed(
            next(iter(stored.values()))
        )
        return [before] + [
            {"collection": name, "text": text, "method": label, "perplexity": models[line.label]}
            | cell
            | {"cpu_ms": None if cost is None else cost + cell["cpu_ms"]}
            for (text, label, _, line), cell, cost in zip(chosen, found, costs, strict=True)
        ]

    def _costs(self, work: Work, name: str, sources: Sequence[Source]) -> list[float | None]:
        """Return the CPU milliseconds a page of text and signatures; None for collections that are not timed."""
        if name not in self.timed:
            return [None] * len(sources)
        tasks = [Task(function=cpu_ms, arguments={"source": source, "pages": self.pages}) for source in sources]
        return [cell["ms"] for cell in work.cells.run(tasks, f"practice: {name}, cost")]

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

    def _figures(self, work: Work, rows: Sequence[Mapping[str, Any]], lines: Sequence[Point]) -> list[str]:
        """Draw lost over left: a dot for each setting, and a line for each method over its thresholds."""
        panel = Panel(name="", x_label="duplicates left", y_label="stories lost")
        dots = [
            Point(panel=f"{row['collection']}, {row['text']}", series=row["method"], x=row["left"], y=row["lost"])
            for row in rows
            if row["text"] and row["collection"] in self.drawn
        ]
        stars = {
            row["collection"]: Mark(label=self.default, x=row["left"], y=row["lost"])
            for row in rows
            if row["method"] == self.default and row["collection"] in self.drawn
        }
        panels = [replace(panel, name=name) for name in dict.fromkeys(point.panel for point in dots)]
        starred = [replace(panel, name=name, y_range=(0, 1), marks=[mark]) for name, mark in stars.items()]
        lines = [point for point in lines if point.panel in stars]
        if not stars:
            return []
        return [
            work.lines("lost_left", DOTS_CAPTION, panels, dots),
            work.lines("thresholds", LINES_CAPTION, starred, lines),
        ]


def _trained_on(settings: Settings) -> Any:
    return composed("text=trafilatura", f"seed={settings.seed}").text


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
        ``removed``, ids; ``cpu_ms``, milliseconds a document; the columns of the table.
    """
    corpus, truth = stored.corpus(idf_filter, sets=sets), stored.truth()
    if truth is None:
        raise InputError("the collection has no truth to evaluate against")
    began = process_time()
    if contained is None:
        found = cluster(matcher.with_threads(1)(corpus), clusters=clusters)
        largest = int(found.sizes.max(initial=0))
        kept = np.zeros(len(found), bool)
        kept[found.representatives] = True
        bcubed = b_cubed(found, truth)[2]
    else:
        kept, bcubed, largest = not_contained(corpus, contained), None, None
    seconds = process_time() - began
    ids = corpus.vectors.doc_ids
    return {
        "removed": [name for name, stays in zip(ids, kept, strict=True) if not stays],
        "cpu_ms": 1000 * seconds / len(ids),
        "bcubed_f1": bcubed,
        "largest": largest,
        **_decided(stored, kept),
    }


def _decided(stored: Stored, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Return lost stories, left duplicates and leakage of a selection, with intervals over stories."""
    truth = stored.truth()
    assert truth is not None
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


def _nothing_removed(stored: Stored) -> dict[str, Any]:
    return _decided(stored, np.ones(len(stored.signatures()), bool))


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


def cpu_ms(*, source: Source, pages: int) -> dict[str, float]:
    """Return the CPU milliseconds a page of text and signatures, of pages at equal distances, on one thread."""
    documents = [record for shard in source.collection.shards() for record in shard() if isinstance(record, Document)]
    chosen = list(islice(documents[:: max(1, len(documents) // pages)], pages))
    extract_shard(lambda: iter(chosen[:2]), source.text, source.signature)  # loads kernels and models
    began = process_time()
    extract_shard(lambda: iter(chosen), source.text, source.signature)
    return {"ms": 1000 * (process_time() - began) / len(chosen)}


def perplexities(
    *, collection: Any, text: Any, judged: HalvedCollection, removed: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Train a model on what each method keeps of one half, and evaluate it on the stories of the other half.

    Parameters
    ----------
    collection : Collection
        Documents with clusters.
    text : callable
        Function from a document to the text that the model is trained on.
    judged : HalvedCollection
        Cut into halves.
    removed : mapping of str to sequence of str
        Ids of the documents that each method removes.

    Returns
    -------
    dict of str to float
        Perplexity by method, the mean of both directions.
    """
    found: dict[str, list[float]] = {label: [] for label in removed}
    halves = []
    for number in (0, 1):
        part = Half(collection=collection, number=number, site=judged.site, stories=judged.stories)
        read = (record for shard in part.shards() for record in read_texts(shard, text))
        halves.append([(*record, tokenize(record[1]).words) for record in read if isinstance(record, tuple)])
    for train, test in (halves, halves[::-1]):
        vocabulary = frequent_words([words for *_, words in train])
        first = {document.cluster or document.id: words for document, _, words in reversed(test)}
        for label, ids in removed.items():
            gone = set(ids)
            kept = [words for document, _, words in train if document.id not in gone]
            found[label].append(perplexity(kept, list(first.values()), vocabulary))
    return {label: float(np.mean(values)) for label, values in found.items()}


def _facts(row: Mapping[str, Any]) -> list[Fact]:
    label = f"{row['collection']}: {row['method']}" + (f", {row['text']}" if row["text"] else "")
    return [Fact(name=f"{label}: {name}", value=row[name]) for name in ("lost", "left", "leakage", "perplexity")]
