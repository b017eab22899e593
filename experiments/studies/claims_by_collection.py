"""Every claim about quality on every collection: where it holds, and where it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, composed
from experiments.show.quality_figures import STEP, thresholds
from experiments.show.tables import Column, Table
from experiments.work.curves import MEASURES, Curve, ends
from experiments.work.study import SEVERAL, Work, lines_of
from spotsigs.errors import InputError, require

HOLDS, FAILS, OPEN = "holds", "does not hold", "open"

NOTES = (
    "Each method at its own best threshold, chosen on the collection that judges it, for all alike. A claim holds on a "
    "collection if the whole 95 % interval of the difference lies on the claimed side, does not hold if it lies on the "
    "other, and is open if the interval contains 0. Intervals resample truth clusters, over all seeds of a collection "
    "that is generated or assembled by one. A claim about the authors' Gold Set can hold or not hold on another "
    "collection; none can contradict it.",
)

Curves = Mapping[str, Sequence[Curve]]
"""Of each method, a curve for each seed."""


@dataclass(frozen=True, kw_only=True)
class Matrix(Experiment):
    """The claims of Table 1 and Figures 4 to 6 on several collections and seeds, with intervals.

    Attributes
    ----------
    results : Path
        Folder that receives ``matrix/``.
    collections : dict of str to str
        What is judged, by name: overrides of ``data``, separated by spaces.
    seeds : list of int
        Seeds of the collections in `seeded`; none of them was used to develop anything.
    seeded : list of str
        Names of collections that a seed makes.
    methods : dict of str to str
        Each as on the command line.
    claims : dict of str to list of str
        What is said, and of which methods: the better one, the other one, and the measure (F1 where omitted).
    step : float
        Distance of thresholds, a divisor of 1.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Table 1 and section 5.3.
    """

    results: Path = Path("results")
    collections: dict[str, str] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=lambda: [5, 6, 7, 8, 9])
    seeded: list[str] = field(default_factory=list)
    methods: dict[str, str] = field(default_factory=dict)
    claims: dict[str, list[str]] = field(default_factory=dict)
    step: float = STEP

    def __post_init__(self) -> None:
        require(len(self.seeds) > 0, "seeds must name at least one")
        for claim, parts in self.claims.items():
            known = len(parts) in (2, 3) and set(parts[:2]) <= self.methods.keys() and set(parts[2:]) <= set(MEASURES)
            require(known, f"experiment.claims: {claim!r} must name two of the methods, and perhaps a measure")

    def __call__(self, settings: Settings) -> str:
        """Write the table of F1 and the table of claims; return them as text."""
        work = Work.begin(self.results, settings, SEVERAL)
        curves: dict[str, Curves] = {}
        left_out = []
        for name, words in self.collections.items():
            try:
                curves[name] = self._curves(work, name, words)
            except InputError as error:  # a collection that must be fetched, without a network
                left_out.append(f"{name} is left out: {error}")
        require(len(curves) > 0, "; ".join(left_out))
        work.facts([*_method_facts(curves), *self._claim_facts(curves)])
        quality = Table(
            caption="Best F1 of each method on each collection",
            columns=[Column(name="method", title="Method"), *(Column(name=name, title=name) for name in curves)],
            rows=[
                {"method": method} | {n: _shown(_best(curves[n][method])) for n in curves} for method in self.methods
            ],
            notes=NOTES[:0],
        )
        claims = Table(
            caption="Claims about quality, where they hold",
            columns=[Column(name="claim", title="Claim"), *(Column(name=name, title=name) for name in curves)],
            rows=[
                {"claim": claim} | {n: _judged(_difference(curves[n], parts)) for n in curves}
                for claim, parts in self.claims.items()
            ],
            notes=NOTES,
        )
        decisions = Table(
            caption="Stories lost and duplicates left by each method at its best F1, clusters of leaders",
            columns=[Column(name="method", title="Method"), *(Column(name=name, title=name) for name in curves)],
            rows=[{"method": method} | {n: _decided(curves[n][method]) for n in curves} for method in self.methods],
        )
        tables = {"quality": quality, "decisions": decisions, "matrix": claims}
        return "\n\n".join([*(work.table(table, name) for name, table in tables.items()), *left_out])

    def _curves(self, work: Work, name: str, words: str) -> Curves:
        seeds: list[str] = [f"data.seed={seed}" for seed in self.seeds] if name in self.seeded else [""]
        found: dict[str, list[Curve]] = {label: [] for label in self.methods}
        for seed in seeds:
            chosen = composed(*words.split(), *seed.split(), f"workers={work.settings.workers}")
            chosen = replace(chosen, names=work.settings.names | {"data": name})
            lines = lines_of(self.methods, work.settings)
            describe = f"matrix: {name} {seed}".strip()
            for label, curve in replace(work, settings=chosen).curves(lines, thresholds(self.step), describe).items():
                found[label].append(curve)
        return found

    def _claim_facts(self, curves: Mapping[str, Curves]) -> list[Fact]:
        return [
            Fact(name=f"{name}: {claim}", value=value, low=low, high=high)
            for name, found in curves.items()
            for claim, parts in self.claims.items()
            for value, low, high in [_difference(found, parts)]
        ]


def _best(curves: Sequence[Curve]) -> tuple[float, float, float]:
    """Return the mean of the best F1 over seeds, with the interval over clusters and seeds."""
    low, high = ends(np.concatenate([curve.resampled[2, :, curve.best] for curve in curves]))
    return float(np.mean([curve.micro[2, curve.best] for curve in curves])), float(low), float(high)


def _difference(curves: Curves, parts: Sequence[str]) -> tuple[float, float, float]:
    """Return how much better one method is than another, each at its best threshold, with the interval."""
    better, other = curves[parts[0]], curves[parts[1]]
    m = MEASURES.index(parts[2] if len(parts) > 2 else "f1")
    pairs = list(zip(better, other, strict=True))
    value = np.mean([np.nan_to_num(a.micro[m, a.best]) - np.nan_to_num(b.micro[m, b.best]) for a, b in pairs])
    resampled = [np.nan_to_num(a.resampled[m, :, a.best]) - np.nan_to_num(b.resampled[m, :, b.best]) for a, b in pairs]
    low, high = ends(np.concatenate(resampled))
    return float(value), float(low), float(high)


def _method_facts(curves: Mapping[str, Curves]) -> list[Fact]:
    facts = []
    for name, found in curves.items():
        for method, of_seeds in found.items():
            value, low, high = _best(of_seeds)
            facts.append(Fact(name=f"{name}: {method}: best F1", value=value, low=low, high=high))
            taus = [curve.taus[curve.best] for curve in of_seeds if curve.taus]
            if taus:
                tau = float(np.median(taus))
                facts.append(Fact(name=f"{name}: {method}: best tau", value=tau, low=min(taus), high=max(taus)))
    return facts


def _shown(values: tuple[float, float, float]) -> str:
    value, low, high = values
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _decided(curves: Sequence[Curve]) -> str:
    """Return the means over seeds of the fractions of stories lost and of duplicates left."""
    found = [curve.decided(curve.best) for curve in curves]
    lost, left = (float(np.mean([one[name] for one in found])) for name in ("lost", "left"))
    return f"{lost:.1%} lost, {left:.1%} left".replace("%", " %")


def _judged(values: tuple[Any, Any, Any]) -> str:
    value, low, high = values
    verdict = HOLDS if low > 0 else FAILS if high < 0 else OPEN
    return f"{verdict}: {value:+.3f} ({low:+.3f} to {high:+.3f})"
