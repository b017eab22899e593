"""Recall of LSH-S over the number of tables, a figure that the paper describes but omits (section 5.3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of, methods_of
from experiments.harness.extracted_collections import Stored
from experiments.harness.study import Work
from experiments.show.figures import Mark, Panel, Point, draw_lines
from spotsigs.method import Method

NATIVE, DATASKETCH, PREDICTED, EXACT = "LSH-S (native)", "LSH-S (datasketch)", "S-curve's prediction", "SpotSigs"
TABLES = [2, 4, 8, 16, 32, 64, 128, 256]
SEEDS = 5
"""Native runs with different seeds, whose mean and range are drawn."""
TAU = 0.44
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

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 5.3.3 ("figures omitted").
    """

    def __call__(self, settings: Settings) -> str:
        """Write the figure and the facts; return a summary."""
        work = Work.begin(self.results, settings)
        exact, native, datasketch = self._measured(work)
        method = method_of({}, work.settings, **self.fixed).at(TAU)
        predicted = predicted_recall(work.read(method), method, 6, TABLES)
        points = [Point(panel="", series=EXACT, x=tables, y=exact) for tables in TABLES]
        for tables, recalls in native.items():
            mean, low, high = (float(f(recalls)) for f in (np.mean, np.min, np.max))
            points.append(Point(panel="", series=NATIVE, x=tables, y=mean, low=low, high=high))
        for series, line in ((DATASKETCH, datasketch), (PREDICTED, predicted)):
            points += [Point(panel="", series=series, x=tables, y=recall) for tables, recall in line.items()]
        panel = Panel(
            name="",
            x_label="hash tables l (k = 6)",
            y_label=f"recall at τ = {TAU:g}",
            x_log=True,
            y_range=(0, 1),
            x_ticks=TABLES,
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
        more = "" if enough else f"more than {TABLES[-1]}"
        needed = min(enough, default=2 * TABLES[-1])
        facts = [
            Fact(name=f"recall of LSH-S, {at_32}", value=value, low=low, high=high),
            Fact(name=f"recall of LSH-S (datasketch), {at_32}", value=datasketch[32] / exact),
            Fact(name=f"recall that the S-curve predicts, {at_32}", value=predicted[32] / exact),
            Fact(name="tables for 99.5 % of the recall of SpotSigs", value=needed, text=more),
        ]
        return f"LSH-S: {work.facts(facts)}; {drawn}"

    def _measured(self, work: Work) -> tuple[float, dict[int, Any], dict[int, float]]:
        """Return the recall of SpotSigs, of native LSH by l and seed, and of datasketch by l."""
        seeds = range(work.settings.seed, work.settings.seed + SEEDS)
        methods: dict[str, dict[str, Any]] = {"exact": {}}
        for tables in TABLES:
            methods[f"datasketch {tables}"] = {"matcher": "lsh", "matcher.l": tables}
            for seed in seeds:
                native = {"matcher": "lsh_native", "matcher.l": tables, "matcher.seed": seed}
                methods[f"native {tables} {seed}"] = native
        curves = work.curves(methods_of(methods, work.settings, **self.fixed), [TAU], "lsh_recall")
        recall = {label: float(curve.values("recall")[0]) for label, curve in curves.items()}
        by_tables = {tables: np.array([recall[f"native {tables} {seed}"] for seed in seeds]) for tables in TABLES}
        return recall["exact"], by_tables, {tables: recall[f"datasketch {tables}"] for tables in TABLES}


def predicted_recall(stored: Stored, method: Method, k: int, tables: Sequence[int]) -> dict[int, float]:
    """Return the expected recall of LSH by l: the true pairs at tau, weighted by the S-curve."""
    from baselines.lsh_native import s_curve

    truth = stored.truth()
    pairs = stored.joined(method)(method.matcher.with_threads(1)).pairs
    same = (truth.labels[pairs.i] == truth.labels[pairs.j]) & (truth.labels[pairs.i] >= 0)
    sizes = np.bincount(truth.labels[truth.labels >= 0])
    positive = (sizes * (sizes - 1) // 2).sum()
    similarity = pairs.similarity[same]
    return {number: float(s_curve(k, number, similarity).sum() / positive) for number in tables}
