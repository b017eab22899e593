"""Recall of LSH-S over the number of tables, a figure that the paper describes but omits (section 5.3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of, methods_of
from experiments.harness.extracted_collections import Stored
from experiments.harness.result_cache import Task
from experiments.harness.study import Work
from experiments.show.figures import Mark, Panel, Point, draw_lines
from spotsigs.errors import as_tau, require
from spotsigs.method import Method

NATIVE, DATASKETCH, PREDICTED, EXACT = "LSH-S (native)", "LSH-S (datasketch)", "S-curve's prediction", "SpotSigs"
ALL_BUT = 0.995
"""Fraction of the recall of SpotSigs that counts as equal."""

CAPTION = (
    "Recall of LSH-S over the number of hash tables, IDF [0.2, 0.85]; the native line is a mean over seeds with its "
    "range; dashed: 98 % of the recall of SpotSigs, and 64 tables, at which the paper has equal recall; the star is "
    "published"
)


@dataclass(frozen=True, kw_only=True)
class LshRecall(Experiment):
    """Recall of LSH-S over l at k = 6, with that of SpotSigs and the prediction of the S-curve.

    Attributes
    ----------
    tables : list of int
        Values of l, ascending, including 32.
    seeds : int
        Number of native runs with different seeds; their mean and range are drawn.
    tau : float
        Threshold; 0.44 in the paper.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.3 ("figures omitted").
    """

    tables: list[int] = field(default_factory=lambda: [2, 4, 8, 16, 32, 64, 128, 256])
    seeds: int = 5
    tau: float = 0.44

    def __post_init__(self) -> None:
        require(32 in self.tables, "tables must contain 32, the paper's l")
        require(self.seeds >= 1, f"seeds must be at least 1, got {self.seeds}")
        object.__setattr__(self, "tau", as_tau(self.tau))

    def __call__(self, settings: Settings) -> str:
        """Write the figure and the facts; return a summary."""
        work = Work.begin(self.results, settings)
        exact, native, datasketch = self._measured(work)
        predicted = self._predicted(work)
        points = [Point(panel="", series=EXACT, x=tables, y=exact) for tables in self.tables]
        for tables, recalls in native.items():
            mean, low, high = (float(f(recalls)) for f in (np.mean, np.min, np.max))
            points.append(Point(panel="", series=NATIVE, x=tables, y=mean, low=low, high=high))
        for series, line in ((DATASKETCH, datasketch), (PREDICTED, predicted)):
            points += [Point(panel="", series=series, x=tables, y=recall) for tables, recall in line.items()]
        panel = Panel(
            name="",
            x_label="hash tables l (k = 6)",
            y_label=f"recall at τ = {self.tau:g}",
            x_log=True,
            y_range=(0, 1),
            x_ticks=self.tables,
            marks=[
                Mark(label="98 % of SpotSigs", y=0.98 * exact, side="left"),
                Mark(label="published", x=32, y=0.90, side="above"),
                Mark(label="published: equal", x=64),
            ],
        )
        drawn = work.figure(draw_lines, "lsh_recall", CAPTION, [panel], points, computed=[PREDICTED])
        relative = {tables: recalls / exact for tables, recalls in native.items()}
        enough = [tables for tables, recalls in relative.items() if recalls.mean() >= ALL_BUT]
        value, low, high = (float(f(relative[32])) for f in (np.mean, np.min, np.max))
        at_32 = "l = 32, relative to SpotSigs"
        more = "" if enough else f"more than {self.tables[-1]}"
        needed = min(enough, default=2 * self.tables[-1])
        facts = [
            Fact(name=f"recall of LSH-S, {at_32}", value=value, low=low, high=high),
            Fact(name=f"recall of LSH-S (datasketch), {at_32}", value=datasketch[32] / exact),
            Fact(name=f"recall that the S-curve predicts, {at_32}", value=predicted[32] / exact),
            Fact(name="tables for 99.5 % of the recall of SpotSigs", value=needed, text=more),
        ]
        return f"LSH-S: {work.facts(facts)}; {drawn}"

    def _measured(self, work: Work) -> tuple[float, dict[int, Any], dict[int, float]]:
        """Return the recall of SpotSigs, of native LSH by l and seed, and of datasketch by l."""
        seeds = range(work.settings.seed, work.settings.seed + self.seeds)
        methods: dict[str, dict[str, Any]] = {"exact": {}}
        for tables in self.tables:
            methods[f"datasketch {tables}"] = {"matcher": "lsh", "matcher.l": tables}
            for seed in seeds:
                native = {"matcher": "lsh_native", "matcher.l": tables, "matcher.seed": seed}
                methods[f"native {tables} {seed}"] = native
        curves = work.curves(methods_of(methods, work.settings, **self.fixed), [self.tau], "lsh_recall")
        recall = {label: float(curve.values("recall")[0]) for label, curve in curves.items()}
        by_tables = {tables: np.array([recall[f"native {tables} {seed}"] for seed in seeds]) for tables in self.tables}
        return recall["exact"], by_tables, {tables: recall[f"datasketch {tables}"] for tables in self.tables}

    def _predicted(self, work: Work) -> dict[int, float]:
        """Return the recall by l that the S-curve predicts from the similarities of the true pairs."""
        method = method_of({}, work.settings, **self.fixed).at(self.tau)
        arguments = {"stored": work.read(method), "method": method, "k": 6}
        task = Task(function=predicted_recall, arguments=arguments | {"tables": self.tables})
        (cell,) = work.cache.run([task], "lsh_recall: prediction")
        return dict(zip(self.tables, cell["recall"], strict=True))


def predicted_recall(*, stored: Stored, method: Method, k: int, tables: Sequence[int]) -> dict[str, Any]:
    """Return the expected recall of LSH over l: the true pairs at tau, weighted by the S-curve."""
    from baselines.lsh_native import s_curve

    truth = stored.truth()
    pairs = stored.joined(method)(method.matcher.with_threads(1)).pairs
    same = (truth.labels[pairs.i] == truth.labels[pairs.j]) & (truth.labels[pairs.i] >= 0)
    sizes = np.bincount(truth.labels[truth.labels >= 0])
    positive = (sizes * (sizes - 1) // 2).sum()
    similarity = pairs.similarity[same]
    return {"recall": [float(s_curve(k, number, similarity).sum() / positive) for number in tables]}
