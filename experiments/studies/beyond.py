"""Beyond the paper: template removal, thresholds without labels, and their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, composed, overrides
from experiments.show.figures import Panel, Point
from experiments.show.quality_figures import STEP, compared, finite, thresholds
from experiments.show.tables import Column, Table
from experiments.work.curves import Curve, difference, ends
from experiments.work.page_cost import time_pages
from experiments.work.regret import suggested
from experiments.work.result_cache import Task
from experiments.work.study import BAND, PAPER_BAND, SEVERAL, Line, Work
from spotsigs.errors import InputError, require
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Matcher, SignatureScheme
from spotsigs.signatures.boilerplate import Boilerplate, with_boilerplate
from spotsigs.signatures.spots import SpotSignatures

FIXED = (0.18, 0.44)
PLAIN, SHORT, DENSEST, FRAMED = "SpotSigs", "SpotSigs, d 1 c 2", "main content", "templates removed"
"""Labels: the paper's signatures, shorter chains, and those of main contents and without templates."""

MAIN_CONTENT, REMOVED = (
    with_boilerplate(SpotSignatures(d=1, c=2), way) for way in (Boilerplate.main_content, Boilerplate.remove)
)

PROMISED = 0.01
"""F1 that template removal may lose against plain signatures."""

COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="method", title="Method"),
    Column(name="text", title="Text"),
    Column(name="idf", title="IDF"),
    Column(name="f1_18", title="F1 at 0.18", form=".3f"),
    Column(name="f1_44", title="F1 at 0.44", form=".3f"),
    Column(name="best_tau", title="Best τ", form=".2f"),
    Column(name="f1", title="Best F1", form=".3f"),
    Column(name="f1_interval", title="95 %"),
    *(
        Column(name=f"{name}_{at}", title=f"{name.capitalize()} at {title}", form=".1%")
        for at, title in (("18", "0.18"), ("44", "0.44"), ("best", "best τ"))
        for name in ("lost", "left")
    ),
    Column(name="macro_f1", title="Macro F1", form=".3f"),
    Column(name="macro_interval", title="95 %"),
    Column(name="auto_tau", title="τ = auto", form=".3f"),
    Column(name="regret", title="Regret", form=".3f"),
    Column(name="auto_reason"),
]

NOTES = (
    "Quality: micro averages over pairs, macro averages over clusters at the same threshold, intervals over resampled "
    "clusters. The best threshold is chosen on the collection that judges it. Regret: best F1 less that at tau=auto; "
    "n/a where it finds no threshold. Lost: fraction of the stories of which no page is kept; left: fraction of the "
    "duplicates that are kept; both by clusters of leaders.",
)

TEXT_COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="text", title="Text"),
    Column(name="signature", title="Signatures"),
    Column(name="f1_18", title="F1 at 0.18", form=".3f"),
    Column(name="f1_44", title="F1 at 0.44", form=".3f"),
    Column(name="best_tau", title="Best τ", form=".2f"),
    Column(name="f1", title="Best F1", form=".3f"),
    Column(name="f1_interval", title="95 %"),
    Column(name="text_ms", title="Text (ms)", form=".2f"),
]

TEXT_NOTES = (
    "Micro averages over pairs, IDF in [0.2, 1]. Main content and template removal need the links of the whole page, "
    "which the other texts do not have. Text: milliseconds a "
    "page for the text alone, in one thread, n/a where it was not measured or other processes ran beside.",
)

COST_COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="method", title="Method"),
    Column(name="kb", title="kB a page", form=",.0f"),
    Column(name="text_ms", title="Text (ms)", form=".2f"),
    Column(name="signature_ms", title="Signatures (ms)", form=".2f"),
    Column(name="refine_ms", title="Templates (ms)", form=".2f"),
    Column(name="ms", title="Together (ms)", form=".2f"),
    Column(name="contended"),
]

COST_NOTES = (
    "Milliseconds a page in one thread, the median over quiet runs, n/a where other processes ran beside. Text: "
    "decoding and parsing. Signatures: tokens, their signatures, checksums. Templates: their "
    "removal, over the whole collection.",
)


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of the table.

    Attributes
    ----------
    label, text : str
        Its name, and the choice of ``text=``.
    signature : SignatureScheme
        Tokens to signatures.
    band : tuple of float
        Normalised IDF that is kept.
    """

    label: str
    text: str
    signature: SignatureScheme
    band: tuple[float, float] = BAND

    @property
    def line(self) -> Line:
        """The method with the exact join."""
        return Line(label=self.label, signature=self.signature, matcher=SpotSigsTight(), band=self.band)


TEXTS = ("visible", "main", "trafilatura")


def texts() -> list[Method]:
    """Return the choices of ``text=`` with the signatures that make a difference there."""
    found = []
    for text in TEXTS:
        if text == "trafilatura" and find_spec(text) is None:
            continue
        own = [(PLAIN, SpotSignatures()), (SHORT, SpotSignatures(d=1, c=2))]
        if text == "visible":
            own += [(DENSEST, MAIN_CONTENT), (FRAMED, REMOVED)]
        found += [Method(label=label, text=text, signature=scheme) for label, scheme in own]
    return found


def methods() -> list[Method]:
    """Return the methods under comparison; trafilatura only where it is installed."""
    plain, short = SpotSignatures(), SpotSignatures(d=1, c=2)
    found = [
        Method(label=f"{PLAIN}, the paper's band", text="visible", signature=plain, band=PAPER_BAND),
        Method(label=PLAIN, text="visible", signature=plain),
        Method(label=SHORT, text="visible", signature=short),
        Method(label=DENSEST, text="visible", signature=MAIN_CONTENT),
        Method(label=FRAMED, text="visible", signature=REMOVED),
        Method(label=f"main text, {SHORT}", text="main", signature=short),
    ]
    if find_spec("trafilatura") is not None:
        found.append(Method(label=f"trafilatura, {SHORT}", text="trafilatura", signature=short))
    return found


@dataclass(frozen=True)
class CollectionWorks:
    """Works on several collections and texts that share their cells and their provenance.

    Attributes
    ----------
    work : Work
        The experiment's.
    step : float
        Distance of thresholds.
    """

    work: Work
    step: float

    @cached_property
    def _settings(self) -> dict[tuple[str, str], Settings]:
        return {}

    def at(self, data: str, text: str = "visible") -> Work:
        """Return the work on a collection, given by its overrides, through a text."""
        if (data, text) not in self._settings:
            mine = [word for word in overrides() if not word.startswith(("data=", "data.", "experiment", "text="))]
            given = origin() if data.split()[0] == "data=newsframes" else []
            self._settings[data, text] = composed("experiment=beyond", *mine, f"text={text}", *data.split(), *given)
        return replace(self.work, settings=self._settings[data, text])

    def there(self, collections: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the collections that can be had, and a sentence on each of the others: they must be fetched first.

        Raises
        ------
        InputError
            If none can be had.
        """
        found, left_out = [], []
        for data in collections:
            try:
                self.at(data).settings.collection.shards()
                found.append(data)
            except InputError as error:
                left_out.append(f"{collection_name(data)} is left out: {error}")
        require(bool(found) or not collections, "; ".join(left_out))
        return found, left_out

    def curves(self, data: str, chosen: Sequence[Method], describe: str) -> dict[str, Curve]:
        """Return the quality of each method over thresholds, by label."""
        found: dict[str, Curve] = {}
        for text in dict.fromkeys(method.text for method in chosen):
            lines = [method.line for method in chosen if method.text == text]
            found |= self.at(data, text).curves(lines, thresholds(self.step), describe)
        return found


@dataclass(frozen=True, kw_only=True)
class Beyond(Experiment):
    """Quality and cost of what goes beyond the paper.

    Attributes
    ----------
    results : Path
        Folder that receives ``beyond/``.
    collections : list of str
        What is judged: overrides of ``data``, separated by spaces.
    drifts : list of float
        Shares of changed blocks of the figure.
    drifting : str
        The figure's collection, without ``data.drift``.
    teasers : list of str
        Collections of the table on containment.
    step : float
        Distance of thresholds; the fixed ones are among them.
    timed : list of str
        Collections on which the cost a page is measured.
    timed_pages, repeats : int
        Pages whose cost is measured, and how often.
    """

    results: Path = Path("results")
    collections: list[str] = field(default_factory=list)
    drifts: list[float] = field(default_factory=lambda: [0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    drifting: str = "data=gold_drift data.seed=5"
    teasers: list[str] = field(default_factory=list)
    step: float = STEP
    timed: list[str] = field(default_factory=list)
    timed_pages: int = 200
    repeats: int = 3

    def __call__(self, settings: Settings) -> str:
        """Write the tables and the figure; return them as text."""
        works = CollectionWorks(Work.begin(self.results, settings, SEVERAL), self.step)
        there, left_out = works.there(self.collections)
        parts = [self._comparison(works, there), self._teasers(works), self._drift(works)]
        times = {data: self._times(works, data) for data in works.there(self.timed)[0]}
        parts.append(self._texts(works, there, times))
        if times:
            parts.append(self._cost(works, times))
        return "\n\n".join([*parts, *left_out])

    def _comparison(self, works: CollectionWorks, collections: Sequence[str]) -> str:
        rows: list[dict[str, Any]] = []
        facts: list[Fact] = []
        promises: list[dict[str, Any]] = []
        for data in collections:
            curves = works.curves(data, methods(), f"beyond: {collection_name(data)}")
            rows += [self._row(works, data, method, curves[method.label]) for method in methods()]
            promises += [_promise(collection_name(data), curves, rival) for rival in (PLAIN, SHORT)]
            facts += [
                compared(
                    f"{collection_name(data)}: templates removed - {rival}, best F1", curves[FRAMED], curves[rival]
                )
                for rival in (PLAIN, SHORT, DENSEST)
            ]
        work = works.work
        work.facts([*facts, *_kept(promises)])
        table = Table(caption="Methods on the collections that report", columns=COLUMNS, rows=rows, notes=NOTES)
        promise = Table(
            caption="Template removal less plain signatures, micro F1", columns=PROMISE_COLUMNS, rows=promises
        )
        return work.table(table, "beyond") + "\n\n" + work.table(promise, "promise")

    def _row(self, works: CollectionWorks, data: str, method: Method, curve: Curve) -> dict[str, Any]:
        work = works.at(data, method.text)
        stored, at = work.read(method.signature), curve.best
        chosen = work.cells.run(
            [Task(function=suggested, arguments={"stored": stored, "idf_filter": method.line.idf_filter})],
            "beyond: tau=auto",
        )[0]
        return {
            "collection": collection_name(data),
            "method": method.label,
            "text": method.text,
            "idf": f"[{method.band[0]:g}, {method.band[1]:g}]",
            **_f1(curve),
            **{
                f"{name}_{key}": curve.decided(position)[name]
                for key, position in (("18", curve.at(FIXED[0])), ("44", curve.at(FIXED[1])), ("best", at))
                for name in ("lost", "left")
            },
            "macro_f1": finite(curve.macro[2, at]),
            "macro_interval": "{:.3f} to {:.3f}".format(*ends(curve.macro_resampled[2])[:, at]),
            "auto_tau": chosen["tau"],
            "auto_reason": chosen["reason"],
            "regret": None if chosen["tau"] is None else finite(curve.micro[2, at]) - chosen["f1"],
        }

    def _teasers(self, works: CollectionWorks) -> str:
        """Compare containment with Jaccard similarity where pages hold a part of an article."""
        measures: tuple[tuple[str, Matcher], ...] = (("Jaccard", SpotSigsTight()), ("containment", Containment()))
        rows: list[dict[str, Any]] = []
        for data in self.teasers:
            work, signature = works.at(data), REMOVED
            chosen = [Line(label=label, signature=signature, matcher=matcher, band=BAND) for label, matcher in measures]
            curves = work.curves(chosen, thresholds(self.step), f"beyond: teasers, {collection_name(data)}")
            for label, curve in curves.items():
                for name, at in (*((f"{tau:g}", curve.at(tau)) for tau in (0.18, 0.44, 0.7)), ("best", curve.best)):
                    row: dict[str, Any] = {"collection": collection_name(data), "measure": label, "setting": name}
                    row |= {key: finite(curve.micro[m, at]) for m, key in enumerate(("precision", "recall", "f1"))}
                    rows.append(row | {"tau": curve.taus[at]})
        notes = ("Templates removed. Pairs: an article and its teaser within the template of another site.",)
        table = Table(caption="Teasers and their articles", columns=TEASER_COLUMNS, rows=rows, notes=notes)
        return works.work.table(table, "teasers")

    def _drift(self, works: CollectionWorks) -> str:
        """Draw F1 over the share of blocks that each fetch changes."""
        panels = [
            Panel(name=name, x_label="share of changed blocks", y_label="F1", y_range=(0.6, 1))
            for name in ("τ = 0.18", "best τ")
        ]
        points: list[Point] = []
        curves = {
            drift: works.curves(f"{self.drifting} data.drift={drift}", methods(), f"beyond: drift {drift:g}")
            for drift in self.drifts
        }
        for method in methods():
            for drift in self.drifts:
                curve = curves[drift][method.label]
                low, high = curve.interval("f1")
                for panel, at in zip(panels, (curve.at(0.18), curve.best), strict=True):
                    value = finite(curve.micro[2, at])
                    points.append(
                        Point(panel=panel.name, series=method.label, x=drift, y=value, low=low[at], high=high[at])
                    )
        caption = (
            "F1 over the share of a page's blocks that each fetch replaces; 95 % intervals over resampled clusters"
        )
        return f"Drift: {works.work.lines('drift', caption, panels, points)}"

    def _texts(
        self, works: CollectionWorks, collections: Sequence[str], times: dict[str, dict[str, dict[str, Any]]]
    ) -> str:
        """Compare the choices of the page's text."""
        rows: list[dict[str, Any]] = []
        for data in collections:
            for text in TEXTS:
                chosen = [method for method in texts() if method.text == text]
                curves = works.curves(data, chosen, f"beyond: text={text} of {collection_name(data)}")
                timed = next(
                    (m.label for m in methods() if m.text == text and m.signature == SpotSignatures(d=1, c=2)), ""
                )
                cost = times.get(data, {}).get(timed, {"text_ms": None})["text_ms"]
                rows += [
                    {"collection": collection_name(data), "text": text, "signature": method.label, "text_ms": cost}
                    | _f1(curves[method.label])
                    for method in chosen
                ]
        table = Table(caption="The page's text", columns=TEXT_COLUMNS, rows=rows, notes=TEXT_NOTES)
        return works.work.table(table, "text")

    def _times(self, works: CollectionWorks, data: str) -> dict[str, dict[str, Any]]:
        """Measure what each method costs a page of a collection, by label; nothing where the machine was not quiet."""
        wanted = {m.label: works.at(data, m.text).read(m.signature).source for m in methods()[1:]}
        tasks = [
            Task(
                function=time_pages,
                arguments={"source": source, "pages": self.timed_pages, "repeats": self.repeats},
                alone=True,
            )
            for source in wanted.values()
        ]
        cells = works.work.cells.run(tasks, f"beyond: cost on {collection_name(data)}")
        found = {}
        for label, cell in zip(wanted, cells, strict=True):
            times = {
                key: None if cell["contended"] else cell[key] for key in ("text_ms", "signature_ms", "refine_ms", "ms")
            }
            found[label] = {"kb": cell["bytes"] / 1000, **times, "contended": cell["contended"]}
        return found

    def _cost(self, works: CollectionWorks, times: dict[str, dict[str, dict[str, Any]]]) -> str:
        """Show what each method costs a page."""
        rows = [
            {"collection": collection_name(data), "method": label, **cost}
            for data, costs in times.items()
            for label, cost in costs.items()
        ]
        table = Table(caption="Cost a page", columns=COST_COLUMNS, rows=rows, notes=COST_NOTES)
        return works.work.table(table, "cost")


def _f1(curve: Curve) -> dict[str, Any]:
    """Return F1 at the fixed thresholds and at the best one."""
    at = curve.best
    return {
        "f1_18": finite(curve.micro[2, curve.at(0.18)]),
        "f1_44": finite(curve.micro[2, curve.at(0.44)]),
        "best_tau": curve.taus[at],
        "f1": finite(curve.micro[2, at]),
        "f1_interval": "{:.3f} to {:.3f}".format(*curve.interval("f1")[:, at]),
    }


TEASER_COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="measure", title="Measure"),
    Column(name="setting", title="Setting"),
    Column(name="tau", title="τ", form=".2f"),
    Column(name="precision", title="Precision", form=".3f"),
    Column(name="recall", title="Recall", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
]

PROMISE_COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="rival", title="Against"),
    *(Column(name=key, title=title, form="+.3f") for key, title in (
        ("at_18", "at 0.18"), ("at_44", "at 0.44"), ("best", "at its best τ"))),
    Column(name="best_interval", title="95 %"),
]  # fmt: skip


def _promise(name: str, curves: dict[str, Curve], rival: str) -> dict[str, Any]:
    ours, theirs = curves[FRAMED], curves[rival]
    differences: dict[str, float] = {}
    for key, at in (("at_18", ours.at(FIXED[0])), ("at_44", ours.at(FIXED[1]))):
        differences[key] = difference(ours, at, theirs, at)[0]
    best, low, high = difference(ours, ours.best, theirs, theirs.best)
    return {
        "collection": name,
        "rival": rival,
        **differences,
        "best": best,
        "best_interval": f"{low:+.3f} to {high:+.3f}",
    }


def _kept(promises: Sequence[dict[str, Any]]) -> list[Fact]:
    """Return the lowest difference from plain signatures over the collections, and whether it is within the promise."""
    found = []
    for rival in dict.fromkeys(row["rival"] for row in promises):
        for key in ("at_18", "at_44", "best"):
            worst = min(row[key] for row in promises if row["rival"] == rival)
            found.append(Fact(name=f"templates removed - {rival}, lowest of all collections, {key}", value=worst))
            found.append(Fact(name=f"promise kept against {rival}, {key}", value=float(worst >= -PROMISED)))
    return found


def origin() -> list[str]:
    """Return what the user says of where newsframes comes from: nobody else accepts a licence."""
    return [word for word in overrides() if word.startswith(("data.path=", "data.accept_licence=", "data.cache="))]


def collection_name(data: str, *, seed: bool = False) -> str:
    """Return what a collection is called: the choice, and what of it is overridden, its seed where that tells."""
    words = [word.removeprefix("data=").removeprefix("data.") for word in data.split()]
    dropped = ("accept_licence=",) if seed else ("accept_licence=", "seed=")
    return " ".join(word for word in words if not word.startswith(dropped))
