"""Table 2: times, memory and relative recall at the scale of WT10g, published and measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.config import Experiment, Settings
from experiments.show.tables import Column, Table
from experiments.studies.table1 import AT_PAPER, PUBLISHED, band_text
from experiments.work.study import IMATCH_BAND, Line, Work
from experiments.work.timing import quotient
from spotsigs.errors import require
from spotsigs.records import Matcher, VectorCollection

COLUMNS = [
    Column(name="method", title="Method"),
    Column(name="row", title="Row"),
    Column(name="idf", title="IDF"),
    Column(name="tau", title="τ", form="g"),
    Column(name="k", title="k", form=".0f"),
    Column(name="l", title="l", form=".0f"),
    Column(name="documents", title="Documents", form=",.0f"),
    Column(name="spots", title="#Spots", form=",.0f"),
    Column(name="mb", title="MB", form=",.1f"),
    Column(name="sort_hash_ms", title="Sort/Hash (ms)", form=",.0f"),
    Column(name="cluster_ms", title="Clust. (ms)", form=",.0f"),
    Column(name="total_ms", title="Total (ms)", form=",.0f"),
    Column(name="relative_recall", title="Rel. Rec.", form=".3f"),
    Column(name="probed", title="Probed", form=".2%"),
    Column(name="peak_mb", title="Peak MB", form=",.0f"),
    Column(name="pairs", title="Pairs", form=",.0f"),
    Column(name="contended"),
]

WT10G_DOCUMENTS = 1_171_960


@dataclass(frozen=True, kw_only=True)
class Table2(Experiment):
    """I-Match-S, SpotSigs, LSH-S and the ablations of SpotSigs on vectors with WT10g's totals.

    Attributes
    ----------
    results : Path
        Folder that receives ``table2/``.
    methods : dict of str to str
        Rows by label, each as on the command line. Each of several thresholds, as in ``tau=1.0,0.9``, is a row.
    repeats : int
        Number of timed runs; the median is reported. Runs of more than a few seconds are not repeated.
    budget : float
        Maximal seconds of Algorithm 1 and its ablations. A row that would take longer is estimated from a sample of the
        documents; at full scale, NoPrune takes hours.
    without : list of str
        Methods to omit.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Table 2 and section 5.4.
    """

    results: Path = Path("results")
    methods: dict[str, str] = field(default_factory=dict)
    repeats: int = 3
    budget: float = 60.0
    without: list[str] = field(default_factory=list)

    def __call__(self, settings: Settings) -> str:
        """Write the table; return it as text."""
        require_vectors(settings)
        work = Work.begin(self.results, settings)
        stored = work.read()
        base = recall_base(settings)
        methods = self._methods(settings)
        wanted = [(stored, None, matcher) for _, matcher in methods]
        cells = work.times(wanted, self.repeats, "table2", base=base, budget=self.budget)
        rows: list[dict[str, Any]] = []
        for printed in published("table2"):
            idf = band_text(printed["idf_min"], printed["idf_max"])
            documents = {"row": PUBLISHED, "idf": idf, "documents": WT10G_DOCUMENTS}
            rows.append(documents | {name: value for name, value in printed.items() if not name.startswith("idf")})
        rows += [_row(label, matcher, cell) for (label, matcher), cell in zip(methods, cells, strict=True)]
        named = {(label, m.threshold): cell for (label, m), cell in zip(methods, cells, strict=True)}
        work.facts(_facts(named))
        caption = f"Table 2: SpotSigs and LSH-S on {cells[0]['documents']:,} documents with WT10g's totals"
        return work.table(Table(caption=caption, columns=COLUMNS, rows=rows, notes=NOTES), "table2")

    def _methods(self, settings: Settings) -> list[tuple[str, Matcher]]:
        for label in self.without:
            rows = ", ".join(self.methods)
            require(label in self.methods, f"experiment.without: no row is named {label}; the rows are {rows}")
        wanted = {label: words for label, words in self.methods.items() if label not in self.without}
        return [
            (label, Line.composed(label, chosen, settings).matcher)
            for label, words in wanted.items()
            for chosen in every_tau(words)
        ]


NOTES = (
    "Published: the real WT10g on eight cores of 2008. Measured: drawn vectors (docs/wt10g_like.md) on this machine; "
    "times are medians of quiet runs, n/a where other processes ran beside. MB: the paper's lower bound, 2^20 bytes. "
    "Relative recall: the share of I-Match-S's pairs that are found.",
    "Probed: the share of the documents that were looked up in the index of all. Where it is not all of them, 128 "
    "pieces of neighbouring documents in order of length were timed, each at random in its 128th; the time of the "
    "look-ups is theirs divided by the share. The pairs are then those of the tight join; the sample agrees.",
)


def every_tau(words: str) -> list[str]:
    """Return the words of a method for each of its thresholds."""
    listed = next((word for word in words.split() if word.startswith("tau=") and "," in word), None)
    if listed is None:
        return [words]
    return [words.replace(listed, f"tau={tau}") for tau in listed.removeprefix("tau=").split(",")]


def require_vectors(settings: Settings) -> None:
    """Require a collection of vectors."""
    require(
        isinstance(settings.collection, VectorCollection),
        f"experiment={settings.names['experiment']} times matchers on vectors: leave data out, or give data=wt10g_like",
    )


def recall_base(settings: Settings) -> Matcher:
    """Return I-Match-S, the recall base of Table 2."""
    return Line.composed("I-Match-S", "matcher=imatch", settings).matcher


def _row(label: str, matcher: Matcher, cell: dict[str, Any]) -> dict[str, Any]:
    clean = not cell["contended"]
    return {
        "method": label,
        "row": AT_PAPER,
        "idf": band_text(*IMATCH_BAND),
        "tau": matcher.threshold,
        **dict(zip("kl", matcher.hash_tables, strict=True)),
        "documents": cell["documents"],
        "spots": cell["signatures"],
        "mb": cell["memory_mib"],
        **{name: cell[name] if clean else None for name in ("sort_hash_ms", "cluster_ms", "total_ms")},
        **{name: cell[name] for name in ("relative_recall", "probed", "peak_mb", "pairs", "contended")},
    }


def _facts(cells: dict[tuple[str, float | None], dict[str, Any]]) -> list[Fact]:
    """Return the ratios and recalls for the claims; ratios of contended times are omitted."""
    ours = "SpotSigs", 0.9
    wanted = [
        (f"LSH-S ({kind}) / SpotSigs, tau {tau:g}", (f"LSH-S ({kind})", tau), ("SpotSigs", tau), "total_ms")
        for kind in ("native", "datasketch")
        for tau in (1.0, 0.9)
    ]
    wanted += [
        ("NoPart / SpotSigs, tau 0.9", ("NoPart", 0.9), ours, "total_ms"),
        ("NoPrune / SpotSigs, tau 0.9", ("NoPrune", 0.9), ours, "total_ms"),
        ("SpotSigs 0.9 / SpotSigs 1.0", ours, ("SpotSigs", 1.0), "total_ms"),
        ("LSH-S (native) / SpotSigs, sort/hash", ("LSH-S (native)", 0.9), ours, "sort_hash_ms"),
        ("I-Match-S / SpotSigs 1.0", ("I-Match-S", None), ("SpotSigs", 1.0), "total_ms"),
        ("SpotSigs / tight bounds, tau 0.9", ours, ("SpotSigs, tight bounds", 0.9), "total_ms"),
        ("lists in global order / in local order, tau 0.9", ("SpotSigs, global order", 0.9), ours, "total_ms"),
    ]
    ratios = [quotient(name, cells[a], cells[b], c) for name, a, b, c in wanted if a in cells and b in cells]
    facts = [fact for fact in ratios if fact is not None]
    for (label, tau), cell in cells.items():
        if tau is not None:
            facts.append(Fact(name=f"relative recall of {label}, tau {tau:g}", value=cell["relative_recall"]))
    if ours in cells:
        work = cells[ours]["counters"]
        share = work["candidates_next_door"] / max(work["candidates"], 1)
        facts.append(Fact(name="share of the candidates that are met in the second partition, tau 0.9", value=share))
    exact = ("SpotSigs", "NoPart", "NoPrune", "SpotSigs, tight bounds")
    found = [cells[label, 0.9] for label in exact if (label, 0.9) in cells]
    if len(found) == len(exact):
        same = len({cell["pairs"] for cell in found}) == 1 and all(cell["agrees"] for cell in found)
        facts.append(Fact(name="SpotSigs, NoPart, NoPrune and tight bounds find the same pairs", value=same))
    return facts
