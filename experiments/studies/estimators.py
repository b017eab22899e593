"""Bias and spread of the lecture slides' estimators of the resemblance, compared with theory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.harness.result_cache import Task
from experiments.harness.study import Work
from experiments.show.figures import Panel, Point, draw_lines

NAMES = {"smallest": "m smallest values", "modulo": "values divisible by n", "permutations": "min-hashes"}

SIZES = {"trials": 2000, "size": 200, "union": 1000}
"""Pairs of documents for each resemblance, values in a sketch (about 200 in the slides), shingles in a union."""

CAPTION = "Estimators of the resemblance (lecture slides): bias with 95 % intervals, and spread beside theory"


@dataclass(frozen=True, kw_only=True)
class Estimators(Experiment):
    """Mean error and standard deviation of the three estimators over the true resemblance.

    References
    ----------
    Radinsky, after Manning and Raghavan: Duplicate detection, "From Shingles to Sketches" and "Min-Hash sketches".
    """

    def __call__(self, settings: Settings) -> str:
        """Draw bias and spread; return a summary."""
        work = Work.begin(self.results, settings)
        arguments = SIZES | {"seed": settings.seed}
        tasks = [Task(function=estimate, arguments={"kind": kind, **arguments}) for kind in NAMES]
        points, facts = [], []
        for kind, cell in zip(NAMES, work.cache.run(tasks, "estimators"), strict=True):
            name, errors = NAMES[kind], []
            for row in cell["rows"]:
                r, standard_error = row["resemblance"], row["sd"] / row["trials"] ** 0.5
                bias = row["mean"] - r
                errors.append(abs(bias) / standard_error)
                low, high = bias - 1.96 * standard_error, bias + 1.96 * standard_error
                points.append(Point(panel="Bias", series=name, x=r, y=bias, low=low, high=high))
                points.append(Point(panel="Spread", series=name, x=r, y=row["sd"]))
                points.append(Point(panel="Spread", series=f"{name}, theory", x=r, y=row["theory_sd"]))
            facts.append(Fact(name=f"largest bias in standard errors, {name}", value=max(errors)))
            spread = max(abs(row["sd"] / row["theory_sd"] - 1) for row in cell["rows"])
            facts.append(Fact(name=f"largest relative error of the theory's spread, {name}", value=spread))
        panels = [
            Panel(name="Bias", x_label="true resemblance", y_label="mean estimate − truth", apart=0.01),
            Panel(name="Spread", x_label="true resemblance", y_label="standard deviation"),
        ]
        drawn = work.figure(
            draw_lines, "estimators", CAPTION, panels, points, computed=[f"{name}, theory" for name in NAMES.values()]
        )
        return f"Estimators: {work.facts(facts)}; {drawn}"


def estimate(*, kind: str, trials: int, size: int, union: int, seed: int) -> dict[str, Any]:
    """Return the rows of `estimator_table`; ``modulo`` keeps one value in ``union / size``."""
    from baselines.sketch import Kind, estimator_table

    modulus = max(1, round(union / size))
    return {"rows": estimator_table(Kind(kind), union=union, trials=trials, size=size, modulus=modulus, seed=seed)}
