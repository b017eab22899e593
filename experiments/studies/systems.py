"""All systems of the sources on real and generated pages, each at its best setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from experiments.config import Experiment, Settings, choices, composed, overrides
from experiments.show.figures import Panel, Point
from experiments.show.quality_figures import curve_points, f1_panel, thresholds
from experiments.show.tables import Column, Table
from experiments.studies.table1 import band_text
from experiments.work.curves import Curve, judge
from experiments.work.result_cache import Task
from experiments.work.study import Line, Work
from spotsigs.errors import InputError, require

SWEPT = {"matcher.radius": "radius", "matcher.lexica": "lexica", "tau": "τ"}
"""Names of the varied parameters in the table."""

COLUMNS = [
    Column(name="system", title="System"),
    Column(name="signature", title="Signatures"),
    Column(name="kind", title="Reports"),
    Column(name="idf", title="IDF"),
    Column(name="best", title="Best at"),
    Column(name="precision", title="Prec.", form=".3f"),
    Column(name="recall", title="Rec.", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="f1_interval", title="F1, 95 %"),
    Column(name="macro_f1", title="Macro F1", form=".3f"),
    Column(name="lost", title="Lost", form=".1%"),
    Column(name="left", title="Left", form=".1%"),
    Column(name="pairs", title="Pairs", form=",.0f"),
    Column(name="total_ms", title="Time (ms)", form=",.0f"),
    Column(name="mb", title="MB", form=".1f"),
    Column(name="peak_mb", title="Peak MB", form=",.0f"),
    Column(name="contended"),
]


PANELS = [
    f1_panel("F1"),
    Panel(name="stories lost", x_label="similarity threshold τ", y_label="fraction of stories", y_range=(0, 1)),
    Panel(name="duplicates left", x_label="similarity threshold τ", y_label="fraction of duplicates", y_range=(0, 1)),
]


@dataclass(frozen=True, kw_only=True)
class Systems(Experiment):
    """Quality, time and memory of every matcher and signature scheme, at the setting of its best micro F1.

    Methods that verify run once, at the lowest threshold. Methods whose candidates depend on the threshold (sketches,
    LCS) and those with a radius or several lexica run at every setting.

    Attributes
    ----------
    results : Path
        Folder that receives ``systems/``.
    collections : list of str
        Collections with a truth; ``data=`` on the command line replaces them.
    step : float
        Distance between thresholds.
    methods : dict of str to str
        Systems by name, each as on the command line; all values of a list, as in ``matcher.radius=3,6``, are evaluated.
    repeats : int
        Number of timed runs; the median is reported.
    """

    results: Path = Path("results")
    collections: list[str] = field(default_factory=lambda: ["gold", "package_docs"])
    step: float = 0.02
    methods: dict[str, str] = field(default_factory=dict)
    repeats: int = 3

    def __call__(self, settings: Settings) -> str:
        """Write a table and a figure for each collection; return the tables, and the collections that are not there."""
        parts, left_out = [], []
        words = [word for word in overrides() if not word.startswith("experiment")]
        own = any(word.lstrip("+~").startswith(("data=", "data.")) for word in words)
        for name in [settings.names["data"]] if own else self.collections:
            data = [] if own else [f"data={name}"]
            work = Work.begin(self.results, settings if own else composed("experiment=systems", *words, *data))
            try:
                work.settings.collection.shards()
            except InputError as error:  # the collection cannot be fetched
                if own:
                    raise
                left_out.append(f"{name} is left out: {error}")
                continue
            parts.append(self._evaluate(work, name, settings))
        require(len(parts) > 0, "; ".join(left_out))
        return "\n\n".join([*parts, *left_out])

    def _evaluate(self, work: Work, name: str, settings: Settings) -> str:
        """Write the table and the figure of one collection."""
        systems = list(self._systems(settings))
        rows, curves = [], {}
        for system, tried in tqdm(systems, desc=f"systems on {name}", leave=False):
            row, curve = self._row(work, system, tried)
            rows.append(row)
            if curve is not None and all(curve.cell["true"] != other.cell["true"] for other in curves.values()):
                curves[system] = curve  # methods with the pairs of another are drawn once
        path = getattr(work.settings.collection, "path", None)
        title = f"{name}: {Path(path).name}" if path else name
        table = Table(caption=f"Every system on {title}, each at its best setting", columns=COLUMNS, rows=rows)
        text = work.table(replace(table, notes=NOTES), name)
        caption = f"F1, stories lost and duplicates left over the threshold on {title}, by leaders"
        points = [point for system, curve in curves.items() for point in _points(curve, system)]
        return f"{text}\n{work.lines(f'{name}_curves', caption, PANELS, points)}"

    def _systems(self, settings: Settings) -> Iterator[tuple[str, list[tuple[str, Line]]]]:
        """Yield each system's name and the settings to try; then the matchers and signatures that no system names."""
        named = set()
        for name, words in self.methods.items():
            key, *values = _swept(words)
            tried = [Line.composed(name, word, settings) for word in values or [key]]
            named |= set(words.split())
            labels = [f"{SWEPT.get(key, key)} = {_value(word, key)}" for word in values] or [""]
            yield name, list(zip(labels, tried, strict=True))
        for matcher in choices("matcher"):
            if f"matcher={matcher}" not in named:
                line = Line.composed(matcher, f"matcher={matcher}", settings)
                yield line.matcher.label, [("", line)]
        for signature in choices("signature"):
            if f"signature={signature}" not in named and signature != "spotsigs":
                yield (
                    signature,
                    [("", Line.composed(signature, f"matcher=spotsigs_tight signature={signature}", settings))],
                )

    def _row(self, work: Work, system: str, tried: Sequence[tuple[str, Line]]) -> tuple[dict[str, Any], Curve | None]:
        """Evaluate a system at all its settings and time it at the best; return its row, and any curve over tau."""
        drawn = len(tried) == 1 and tried[0][1].matcher.threshold is not None
        if drawn:
            line = replace(tried[0][1], label=system)
            curve = work.curves([line], thresholds(self.step), f"systems: {system}")[system]
            at = curve.best
            setting, line = f"τ = {curve.taus[at]:g}", replace(line, matcher=line.matcher.at(curve.taus[at]))
        else:
            curves = [
                Curve(cell) for cell in work.cells.run([_task(work, line) for _, line in tried], f"systems: {system}")
            ]
            chosen = int(np.argmax([np.nan_to_num(curve.micro[2, 0]) for curve in curves]))
            (setting, line), curve, at = tried[chosen], curves[chosen], 0
        timed = work.times(
            [(work.read(line.signature), line.idf_filter, line.matcher)], self.repeats, f"systems: time of {system}"
        )[0]
        low, high = curve.interval("f1")[:, at]
        row = {
            "system": system,
            "signature": "texts" if line.matcher.reads_texts else line.signature.name,
            "kind": "exact" if line.matcher.exact else "verified" if line.matcher.verified else "unverified",
            "idf": band_text(*line.band),
            "best": setting,
            **dict(zip(("precision", "recall", "f1"), curve.micro[:, at].tolist(), strict=True)),
            "f1_interval": f"{low:.3f} to {high:.3f}",
            "macro_f1": float(curve.macro[2, at]),
            **{name: curve.cell["decisions"]["leaders"][name][at] for name in ("lost", "left")},
            "pairs": curve.cell["pairs"][at],
            "total_ms": None if timed["contended"] else timed["total_ms"],
            "mb": timed["memory_mib"],
            "peak_mb": timed["peak_mb"],
            "contended": timed["contended"],
        }
        return row, curve if drawn else None


def _task(work: Work, line: Line) -> Task:
    """Return the evaluation of a method at its own setting."""
    arguments = {"idf_filter": line.idf_filter, "matcher": line.matcher, "taus": [], "sets": line.sets}
    return Task(function=judge, arguments={"stored": work.read(line.signature), **arguments})


NOTES = (
    "exact: precisely the pairs of brute force; verified: the similarity of each reported pair was computed; "
    "unverified: it was not. Quality: micro averages over pairs. The setting is chosen on the collection that judges "
    "it, for every system alike, so these are the best figures each can reach. Lost, left: fractions of the stories of "
    "which no page is kept, and of the duplicates that are kept, by leaders. Time: sorting, hashing and clustering, "
    "the median; n/a if other processes ran. MB: the paper's lower bound of the data structures.",
)


def _points(curve: Curve, system: str) -> list[Point]:
    """Return the points of a method in each panel."""
    decided = curve.cell["decisions"]["leaders"]
    return curve_points(curve, PANELS[0].name, system) + [
        Point(panel=panel.name, series=system, x=tau, y=value)
        for panel, measure in zip(PANELS[1:], ("lost", "left"), strict=True)
        for tau, value in zip(curve.taus, decided[measure], strict=True)
    ]


def _swept(words: str) -> list[str]:
    """Return the varied key and the method with each of its values, or the method alone if it has no list."""
    for word in words.split():
        key, _, values = word.partition("=")
        if "," in values:
            return [key, *(words.replace(word, f"{key}={value}") for value in values.split(","))]
    return [words]


def _value(words: str, key: str) -> str:
    return next(word.partition("=")[2] for word in words.split() if word.startswith(f"{key}="))
