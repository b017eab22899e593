"""Speed-up of parallel matching over the number of threads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, methods_of
from experiments.harness.study import Work
from experiments.harness.timing import cost, quotient
from experiments.show.tables import Column, Table, titled
from experiments.studies.table2 import require_vectors, vector_times
from spotsigs.arrays.parallel import all_cores
from spotsigs.errors import require

COLUMNS = [*titled("method", "threads", "total_ms", "speed_up"), Column(name="contended")]


@dataclass(frozen=True, kw_only=True)
class Threads(Experiment):
    """Times of matchers on 1, 2, 4, ... threads, up to the number of cores.

    Attributes
    ----------
    methods : dict of str to dict
        Rows by label.
    limit : float
        Seconds after which a run is stopped.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, section 1.1: "highly parallelizable".
    """

    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    limit: float = 120.0

    def __post_init__(self) -> None:
        require(len(self.methods) > 0, "experiment.methods must name at least one")

    def __call__(self, settings: Settings) -> str:
        """Write the table; return it as text."""
        require_vectors(settings)
        work = Work.begin(self.results, settings)
        counts = thread_counts(settings.threads or all_cores())
        rows: list[dict[str, Any]] = []
        facts: list[Fact] = []
        for label, method in methods_of(self.methods, settings, **self.fixed).items():
            cells = {}
            for threads in counts:
                alone = replace(work, settings=replace(settings, threads=threads))
                cells[threads] = vector_times(alone, method, f"threads: {label}", self.limit)
            for n, cell in cells.items():
                ratio = quotient(f"{label}: speed-up on {n} threads", cells[1], cell)
                row = {"method": label, "threads": n, "speed_up": ratio.value if ratio else None}
                rows.append(row | cost(cell))
                facts += [ratio] if ratio is not None and n > 1 else []
            if ratio is not None and n > 1:  # on all cores
                value, low, high = (end / n for end in (ratio.value, *ratio.interval))
                facts.append(Fact(name=f"{label}: share of a linear speed-up", value=value, low=low, high=high))
        work.facts(facts)
        documents = f"{len(work.read(method).extracted().signatures):,} documents"
        return work.table(Table(caption=f"Speed over threads on {documents}", columns=COLUMNS, rows=rows), "threads")


def thread_counts(cores: int) -> list[int]:
    """Return 1, 2, 4, ... and the number of cores."""
    return sorted({*(2**k for k in range(cores.bit_length()) if 2**k <= cores), cores})
