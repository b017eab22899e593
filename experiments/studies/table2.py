"""Table 2: times, memory and relative recall at the scale of WT10g, published and measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings, method_of
from experiments.harness.study import IMATCH_BAND, Work
from experiments.harness.timing import cost, quotient
from experiments.show.tables import MEASURED, PUBLISHED, Column, Table, band_text, titled
from spotsigs.contracts import VectorCollection
from spotsigs.errors import require
from spotsigs.method import Method

COLUMNS = [
    *titled("method", "row", "idf", "tau", "k", "l", "documents", "spots", "mb", "sort_hash_ms", "cluster_ms"),
    *titled("total_ms", "relative_recall", "peak_mb", "pairs"),
    Column(name="contended"),
]

WT10G_DOCUMENTS = 1_171_960
REPEATS = 3
"""Timed runs of a matcher on vectors, whose median is reported; runs of more than five seconds are not repeated."""

NOTES = (
    "Published: the real WT10g on eight cores of 2008. Measured: drawn vectors (docs/wt10g_like.md) on this machine; "
    "times are medians of quiet runs, n/a if other processes were active. A process is stopped after some time, of "
    "which it reads the vectors for about ten seconds. MB: the paper's lower bound, in units of 2^20 bytes. Relative "
    "recall: the fraction of I-Match-S's pairs that are found.",
)


@dataclass(frozen=True, kw_only=True)
class Table2(Experiment):
    """I-Match-S, SpotSigs, LSH-S and the ablations of SpotSigs on vectors with WT10g's totals.

    Attributes
    ----------
    methods : dict of str to dict
        Rows by label. Each of several thresholds, as in ``tau: [1.0, 0.9]``, is a row.
    limits : dict of str to float
        Seconds after which a method is stopped; at full scale, NoPrune takes hours.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Table 2 and section 5.4.
    """

    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)

    def __call__(self, settings: Settings) -> str:
        """Write the table; return it as text."""
        require_vectors(settings)
        work = Work.begin(self.results, settings)
        cells: dict[tuple[str, float | None], dict[str, Any]] = {}
        rows: list[dict[str, Any]] = []
        printed = {(str(row["method"]), row["tau"]): row for row in published("table2")}
        for label, method in self._methods(settings):
            key = label, method.tau
            cells[key] = vector_times(work, method, "table2", self.limits.get(label))
            paper = printed.get((label.removesuffix(" (native)"), method.tau))
            if paper is not None:
                idf = band_text(paper["idf_min"], paper["idf_max"])
                rows.append(paper | {"row": PUBLISHED, "idf": idf, "documents": WT10G_DOCUMENTS})
            rows.append(_row(label, method, cells[key]))
        work.facts(list(_facts(cells)))
        documents = max(cell.get("documents", 0) for cell in cells.values())
        caption = f"Table 2: SpotSigs and LSH-S on {documents:,} documents with WT10g's totals"
        return work.table(Table(caption=caption, columns=COLUMNS, rows=rows, notes=NOTES), "table2")

    def _methods(self, settings: Settings) -> Iterator[tuple[str, Method]]:
        """Yield each method at each of its thresholds."""
        for label, choices in self.methods.items():
            taus = choices.get("tau", [None])
            for tau in taus if isinstance(taus, list) else [taus]:
                at = {} if tau is None else {"tau": tau}
                yield label, method_of(choices | at, settings, label=label, **self.fixed)


def require_vectors(settings: Settings) -> None:
    """Require a collection of vectors."""
    require(
        isinstance(settings.collection, VectorCollection),
        f"experiment={settings.names['experiment']} times matchers on vectors: leave data out, or give data=wt10g_like",
    )


def vector_times(work: Work, method: Method, describe: str, limit: float | None) -> dict[str, Any]:
    """Return the times of a method on vectors, the same cell for Table 2, Figure 7 and the threads."""
    base = method_of({"matcher": "imatch"}, work.settings).matcher
    return work.times([method], REPEATS, describe, base=base, limit=limit)[0]


def _row(label: str, method: Method, cell: dict[str, Any]) -> dict[str, Any]:
    return {
        "method": label,
        "row": MEASURED,
        "idf": band_text(*IMATCH_BAND),
        "tau": method.tau,
        **{name: getattr(method.matcher, name, None) for name in "kl"},
        "spots": cell.get("signatures"),
        **{name: cell.get(name) for name in ("documents", "relative_recall", "pairs")},
        **cost(cell),
    }


OURS = "SpotSigs", 0.9
RATIOS = {
    "LSH-S (native) / SpotSigs, tau 1": (("LSH-S (native)", 1.0), ("SpotSigs", 1.0)),
    "LSH-S (native) / SpotSigs, tau 0.9": (("LSH-S (native)", 0.9), OURS),
    "NoPart / SpotSigs, tau 0.9": (("NoPart", 0.9), OURS),
    "NoPrune / SpotSigs, tau 0.9": (("NoPrune", 0.9), OURS),
    "SpotSigs 0.9 / SpotSigs 1.0": (OURS, ("SpotSigs", 1.0)),
    "I-Match-S / SpotSigs 1.0": (("I-Match-S", None), ("SpotSigs", 1.0)),
    "SpotSigs / tight bounds, tau 0.9": (OURS, ("SpotSigs, tight bounds", 0.9)),
    "lists in global order / in local order, tau 0.9": (("SpotSigs, global order", 0.9), OURS),
}
"""Ratios of total times by the name of the fact."""


def _facts(cells: Mapping[tuple[str, float | None], dict[str, Any]]) -> Iterator[Fact]:
    """Yield the ratios and recalls for the claims; ratios of contended times are omitted."""
    ratios = [quotient(name, cells[a], cells[b]) for name, (a, b) in RATIOS.items() if a in cells and b in cells]
    yield from (ratio for ratio in ratios if ratio is not None)
    finished = {key: cell for key, cell in cells.items() if "over_s" not in cell}
    native = "LSH-S (native)", 0.9
    if native in finished and OURS in finished:
        hashing = quotient("LSH-S (native) / SpotSigs, sort/hash", finished[native], finished[OURS], "sort_hash_ms")
        yield from [hashing] if hashing else []
    for (label, tau), cell in finished.items():
        if tau is not None:
            yield Fact(name=f"relative recall of {label}, tau {tau:g}", value=cell["relative_recall"])
    if OURS in finished:
        work = finished[OURS]["counters"]
        second = work["candidates_next_door"] / max(work["candidates"], 1)
        yield Fact(name="share of the candidates that are met in the second partition, tau 0.9", value=second)
    exact = ("SpotSigs", "NoPart", "NoPrune", "SpotSigs, tight bounds")
    same = {label: finished[label, 0.9]["pairs"] for label in exact if (label, 0.9) in finished}
    if {"SpotSigs", "NoPart"} <= same.keys():
        holds = len(set(same.values())) == 1
        yield Fact(name="SpotSigs and its ablations find the same pairs, tau 0.9", value=holds)
