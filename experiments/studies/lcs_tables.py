"""Tables of the LCS slides: simhash, Cosine and LCS; the stages of the LCS method."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings, method_of
from experiments.harness.extracted_collections import Stored
from experiments.harness.machine_load import QUIET, ForeignLoad
from experiments.harness.result_cache import Task
from experiments.harness.study import Work
from experiments.harness.timing import quotient
from experiments.resample import resampled_fact, resampled_means
from experiments.show.tables import MEASURED, PUBLISHED, Column, Table
from experiments.show.views import finite
from spotsigs.arrays.parallel import all_cores
from spotsigs.clustering.clusters import cluster
from spotsigs.evaluation.documents import stories
from spotsigs.evaluation.metrics import ends
from spotsigs.method import Method
from spotsigs.records import IntArray, Truth

SIMHASH, COSINE, LCS = "simhash", "Cosine", "LCS"


@dataclass(frozen=True, kw_only=True)
class LcsTables(Experiment):
    """Precision and recall of the similar sets of simhash, Cosine and LCS, as defined in the slides, and their times.

    Every set is evaluated by the truth, whereas the authors inspected a sample of 1,000. The representative of a set is
    the page with the most truly similar pages in it. Thresholds, which the slides do not state, maximize F1 over pairs.
    Cosine, like LCS, compares pages inside perhaps-similar sets.

    Attributes
    ----------
    taus : list of float
        Candidate thresholds of Cosine and LCS.
    repeats : int
        Number of timed runs; the median is reported.

    References
    ----------
    Huang, Wang, Li: Achieving both high precision and high recall in near-duplicate detection, slides, Tables 1 and 2.
    """

    taus: list[float] = field(default_factory=lambda: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    repeats: int = 3

    def __call__(self, settings: Settings) -> str:
        """Write both tables; return them as text."""
        work = Work.begin(self.results, settings)
        methods = self._methods(work)
        stored = work.read(methods[LCS])
        truth = stored.truth()
        names = [site_of(document) for document in stored.signatures().doc_ids]
        sites = np.unique(np.array(names, dtype=str), return_inverse=True)[1].astype(np.int64)
        sets, times = {}, {}
        for name, method in methods.items():
            arguments = {"stored": stored, "method": method}
            [grouped] = work.cache.run([Task(function=similar_sets, arguments=arguments)], f"lcs_tables: {name}")
            sets[name] = Sets.of(np.array(grouped["labels"]), truth, sites)
            [times[name]] = work.times([method], self.repeats, f"lcs_tables: time of {name}")
        first = _first(work, sets, times, {name: method.tau for name, method in methods.items()})
        second, stage_facts = _second(work, stored, methods[LCS])
        work.facts([*_first_facts(sets, times), *stage_facts])
        return f"{first}\n\n{second}"

    def _methods(self, work: Work) -> dict[str, Method]:
        """Return each method at its best threshold; LCS runs at every one, since its pairs depend on it."""
        simhash, cosine, lcs = (
            method_of({"matcher": matcher}, work.settings, **self.fixed)
            for matcher in ("simhash", "set_measure", "lcs")
        )
        curve = work.curves({COSINE: cosine}, self.taus, "lcs_tables: Cosine")[COSINE]
        best, best_f1 = simhash, -1.0
        for tau in self.taus:
            method = lcs.at(tau)
            f1 = finite(work.curves({LCS: method}, [tau], "lcs_tables: LCS")[LCS].values("f1")[0])
            if f1 > best_f1:
                best, best_f1 = method, f1
        return {SIMHASH: simhash, COSINE: cosine.at(curve.taus[curve.best]), LCS: best}


def _first(work: Work, sets: dict[str, Sets], times: dict[str, dict[str, Any]], taus: dict[str, float | None]) -> str:
    base, sample = sets[SIMHASH], sets[LCS]
    rows: list[dict[str, Any]] = []
    for printed in published("lcs_table1"):
        name = {"Simhash": SIMHASH}.get(str(printed["algorithm"]), str(printed["algorithm"]))
        rows.append({"method": name, "row": PUBLISHED} | {key: printed.get(key) for key in LCS_PRINTED})
        precision, recall = sets[name].precision(), sample.recall(sets[name], base)
        same = sets[name].precision(same_site=True), sample.recall(sets[name], base, same_site=True)
        rows.append(
            {
                "method": name,
                "row": MEASURED,
                "tau": taus[name],
                "precision": float(precision.mean()),
                "precision_interval": _interval(precision),
                "recall_vs_simhash": float(recall.mean()),
                "recall_interval": _interval(recall),
                "precision_same_site": float(same[0].mean()) if len(same[0]) else None,
                "recall_same_site_vs_simhash": float(same[1].mean()) if len(same[1]) else None,
                "seconds": None if times[name]["contended"] else times[name]["total_ms"] / 1000,
                "sets": len(precision),
            }
        )
    table = Table(caption=FIRST, columns=FIRST_COLUMNS, rows=rows, notes=FIRST_NOTES)
    return work.table(table, "lcs_table1")


def _second(work: Work, stored: Stored, method: Method) -> tuple[str, list[Fact]]:
    matcher = method.matcher.with_threads(work.settings.threads or all_cores())
    arguments = {"stored": stored, "method": replace(method, matcher=matcher)}
    (cell,) = work.cache.run([Task(function=stages, arguments=arguments, alone=True)], "lcs_tables: stages")
    printed = {str(row["stage"]): row for row in published("lcs_table2")}
    rows = [
        stage
        | {
            "published": printed[stage["stage"]]["hours"],
            "published_precision": printed[stage["stage"]]["precision"],
            "seconds": None if cell["contended"] else stage["seconds"],
            "how": "estimated" if stage["estimated"] else "measured",
        }
        for stage in cell["rows"]
    ]
    table = Table(caption=SECOND, columns=SECOND_COLUMNS, rows=rows, notes=SECOND_NOTES)
    return work.table(table, "lcs_table2"), _stage_facts(cell)


LCS_PRINTED = ("precision", "recall_vs_simhash", "precision_same_site", "recall_same_site_vs_simhash", "hours")

FIRST = "LCS slides, Table 1: precision, recall and time of simhash, Cosine and LCS"
FIRST_COLUMNS = [
    Column(name="method", title="Algorithm"),
    Column(name="row", title="Row"),
    Column(name="tau", title="τ", form="g"),
    Column(name="precision", title="Precision", form=".2f"),
    Column(name="precision_interval", title="95 %"),
    Column(name="recall_vs_simhash", title="Recall vs simhash", form=".2f"),
    Column(name="recall_interval", title="95 %"),
    Column(name="precision_same_site", title="Precision, same site", form=".2f"),
    Column(name="recall_same_site_vs_simhash", title="Recall, same site", form=".2f"),
    Column(name="hours", title="Hours (400 M pages)", form=".0f"),
    Column(name="seconds", title="Seconds (here)", form=".2f"),
    Column(name="sets", title="Sets", form=".0f"),
]
FIRST_NOTES = ("Seconds without reading and parsing the pages; n/a if other processes ran.",)

SECOND = "LCS slides, Table 2: time and precision after each stage"
SECOND_COLUMNS = [
    Column(name="stage", title="Stage"),
    Column(name="published", title="Hours, published", form=".0f"),
    Column(name="seconds", title="Seconds (here)", form=",.2f"),
    Column(name="how", title=""),
    Column(name="comparisons", title="Pairs compared", form=",.0f"),
    Column(name="sets", title="Sets", form=",.0f"),
    Column(name="published_precision", title="Precision, published", form=".2f"),
    Column(name="precision", title="Precision", form=".2f"),
]
SECOND_NOTES = (
    "The first two times are extrapolated from a sample of pairs: every two pages of the collection, and of a "
    "perhaps-similar set, whole. Precision of stage one is that of the perhaps-similar sets; stage two adds filtered "
    "sketches and representatives, stage three the trustable portion of the LCS.",
)


def similar_sets(*, stored: Stored, method: Method) -> dict[str, Any]:
    """Return the set of each page, a connected component of the matcher's pairs."""
    return {"labels": cluster(stored.joined(method)(method.matcher).pairs, clusters="components").labels.tolist()}


def stages(*, stored: Stored, method: Method) -> dict[str, Any]:
    """Return the rows of `lcs_stages`, and whether other processes disturbed their times."""
    from baselines.lcs.lcs_stages import lcs_stages

    corpus, truth = stored.joined(method).corpus, stored.truth()
    matcher: Any = method.matcher
    with ForeignLoad() as load:
        rows = lcs_stages(matcher, corpus, truth)
    return {"rows": [row._asdict() for row in rows], "contended": load.cores > QUIET}


@dataclass(frozen=True, kw_only=True)
class Sets:
    """Sets of at least two pages found by a method, with the truth.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        Set of each page.
    truth : ndarray of int64, shape (n,)
        True cluster of each page; a page without one forms its own cluster.
    sites : ndarray of int64, shape (n,)
        Site of each page.
    representatives : ndarray of int64
        Page of each set with the most truly similar pages in it.
    """

    labels: IntArray
    truth: IntArray
    sites: IntArray
    representatives: IntArray

    @classmethod
    def of(cls, labels: IntArray, truth: Truth, sites: IntArray) -> Sets:
        """Choose the representatives."""
        of_page = stories(truth).astype(np.int64)
        order, chosen = np.argsort(labels, kind="stable"), []
        for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            if len(members) > 1:
                _, place, counts = np.unique(of_page[members], return_inverse=True, return_counts=True)
                chosen.append(members[np.argmax(counts[place])])
        return cls(labels=labels, truth=of_page, sites=sites, representatives=np.array(chosen, np.int64))

    def around(self, page: int, *, same_site: bool = False) -> tuple[int, int]:
        """Return the number of pages in a page's set that are truly similar to it, and the size of the set."""
        inside = self.labels == self.labels[page]
        if same_site:
            inside &= self.sites == self.sites[page]
        return int(np.count_nonzero(inside & (self.truth == self.truth[page]))), int(np.count_nonzero(inside))

    def precision(self, *, same_site: bool = False) -> NDArray[np.float64]:
        """Return the fraction of each set's pages that are truly similar to its representative."""
        pairs = [self.around(page, same_site=same_site) for page in self.representatives.tolist()]
        return np.array([true / size for true, size in pairs if size > 1])

    def recall(self, method: Sets, base: Sets, *, same_site: bool = False) -> NDArray[np.float64]:
        """Return the ratio of true pages found by a method to those by the base, for each representative."""
        return np.array(
            [
                method.around(page, same_site=same_site)[0] / base.around(page, same_site=same_site)[0]
                for page in self.representatives.tolist()
            ]
        )


def site_of(document: str) -> str:
    """Return the site of a document: the host of a URL, or the file name up to the last hyphen."""
    host = urlsplit(document).hostname
    return host or document.rpartition("/")[2].rpartition("-")[0]


def _interval(values: NDArray[np.float64]) -> str:
    return "{:.2f} to {:.2f}".format(*ends(resampled_means(values)))


def _first_facts(sets: dict[str, Sets], times: dict[str, dict[str, Any]]) -> list[Fact]:
    precision = {name: sets[name].precision() for name in (SIMHASH, COSINE, LCS)}
    facts = [resampled_fact(f"precision of {name}", p.mean(), resampled_means(p)) for name, p in precision.items()]
    for a, b in ((LCS, SIMHASH), (LCS, COSINE), (COSINE, SIMHASH)):  # over different sets, resampled independently
        gap = precision[a].mean() - precision[b].mean()
        resampled = resampled_means(precision[a]) - resampled_means(precision[b], 1)
        facts.append(resampled_fact(f"precision of {a} - {b}", gap, resampled))
    for name in (COSINE, LCS):
        recall = sets[LCS].recall(sets[name], sets[SIMHASH])
        facts.append(resampled_fact(f"recall of {name} relative to simhash", recall.mean(), resampled_means(recall)))
    for a, b in ((LCS, SIMHASH), (COSINE, LCS)):
        time = quotient(f"time of {a} / {b}", times[a], times[b])
        facts += [time] if time else []
    return facts


def _stage_facts(cell: dict[str, Any]) -> list[Fact]:
    without, one, two, three = cell["rows"]
    facts = [
        Fact(name="comparisons without stage one / with it", value=without["comparisons"] / max(one["comparisons"], 1)),
        Fact(name="precision after stage three - after stage one", value=three["precision"] - one["precision"]),
    ]
    if not cell["contended"]:
        ratio = one["seconds"] / max(two["seconds"], 1e-9)
        facts.append(Fact(name="time after stage one / after stage two", value=ratio))
    return facts
