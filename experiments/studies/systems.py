"""Every system of the sources on real and generated pages, each at its best threshold, radius or number of lexica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from spotsigs.experiments.config import Settings, composed, overrides
from spotsigs.experiments.show.quality_figures import thresholds
from spotsigs.experiments.show.tables import Column, Table
from spotsigs.experiments.studies.table1 import band_text
from spotsigs.experiments.work.cells import Task
from spotsigs.experiments.work.curves import Curve, judge
from spotsigs.experiments.work.methods import K, L
from spotsigs.experiments.work.study import IMATCH_BAND, Line, Work
from spotsigs.matching.algorithm1 import SpotSigs
from spotsigs.matching.brute_force import BruteForce
from spotsigs.matching.tight import SpotSigsTight
from spotsigs.records import Matcher, SignatureScheme
from spotsigs.signatures.spots import SpotSignatures

DEFAULT_BAND = (0.2, 1.0)

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
    Column(name="pairs", title="Pairs", form=",.0f"),
    Column(name="total_ms", title="Time (ms)", form=",.0f"),
    Column(name="mb", title="MB", form=".1f"),
    Column(name="peak_rss_mib", title="Peak RSS (MiB)", form=",.0f"),
    Column(name="contended"),
]


@dataclass(frozen=True, kw_only=True)
class Systems:
    """Quality, time and memory of every system, at the setting of its best micro F1.

    Methods that verify are joined once at the lowest threshold; those whose pairs depend on the threshold in other
    ways (sketches, LCS) and those with a radius or several lexica are run at every setting tried.

    Attributes
    ----------
    results : Path
        Folder that receives ``systems/``.
    collections : list of str
        Collections with a truth, by name.
    step : float
        Distance of thresholds where one join serves them all.
    taus : list of float
        Thresholds of methods that are run at each.
    radii : list of int
        Hamming distances of SimHash.
    lexica : list of int
        Numbers of lexica of I-Match.
    repeats : int
        Timed runs; the median counts.
    """

    results: Path = Path("results")
    collections: list[str] = field(default_factory=lambda: ["gold", "package_docs"])
    step: float = 0.02
    taus: list[float] = field(default_factory=lambda: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    radii: list[int] = field(default_factory=lambda: [3, 6, 9, 12, 15, 18])
    lexica: list[int] = field(default_factory=lambda: [1, 5, 10, 20])
    repeats: int = 3

    def __call__(self, settings: Settings) -> str:
        """Write one table a collection; return them as text."""
        told = []
        mine = [word for word in overrides() if not word.startswith(("data=", "data.", "experiment"))]
        for name in self.collections:
            work = Work.begin(self.results, composed("experiment=systems", *mine, f"data={name}"))
            rows = [self._row(work, system, kind, tried) for system, kind, tried in self._systems(settings.seed)]
            table = Table(caption=f"Every system on {name}, each at its best setting", columns=COLUMNS, rows=rows)
            told.append(work.table(replace(table, notes=NOTES), name))
        return "\n\n".join(told)

    def _systems(self, seed: int) -> list[tuple[str, str, list[tuple[str, Line]]]]:
        """Return each system's name, the kind of its answer, and the settings to try."""
        from spotsigs.baselines.cosine import Cosine
        from spotsigs.baselines.imatch import IMatch
        from spotsigs.baselines.lcs.lcs_method import Lcs
        from spotsigs.baselines.lsh import Lsh
        from spotsigs.baselines.lsh_native import LshNative
        from spotsigs.baselines.shingles import Shingles
        from spotsigs.baselines.simhash import SimHash
        from spotsigs.baselines.sketch.sketches import Kind, Sketch

        spots, words = SpotSignatures(), Shingles(k=1)
        exact: list[tuple[str, SignatureScheme, Matcher]] = [
            ("SpotSigs", spots, SpotSigs()),
            ("SpotSigs, one partition", spots, SpotSigs(partitioning=False)),
            ("SpotSigs, no pruning", spots, SpotSigs(partitioning=False, pruning=False)),
            ("SpotSigs, tight bounds", spots, SpotSigsTight()),
            ("Brute force", spots, BruteForce()),
            ("1-Shingles", words, SpotSigsTight()),
            ("3-Shingles", Shingles(k=3), SpotSigsTight()),
            ("Cosine-S", spots, Cosine()),
            ("Cosine", words, Cosine()),
        ]
        verified: list[tuple[str, SignatureScheme, Matcher]] = [
            ("LSH-S, datasketch", spots, Lsh(k=K, l=L, seed=seed)),
            ("LSH-S, native", spots, LshNative(k=K, l=L, seed=seed)),
        ]
        systems = [(name, "exact", [("", _line(*parts))]) for name, *parts in exact]
        systems += [(name, "verified", [("", _line(*parts))]) for name, *parts in verified]
        systems.append(("LCS", "verified", [(f"τ = {tau:g}", _line(words, Lcs(tau=tau))) for tau in self.taus]))
        for name, scheme in (("I-Match", words), ("I-Match-S", spots)):
            tried = [
                (f"{n} {'lexicon' if n == 1 else 'lexica'}", _line(scheme, IMatch(lexica=n, seed=seed), IMATCH_BAND))
                for n in self.lexica
            ]
            systems += [(name, "unverified", tried[:1]), (f"{name}, randomised", "unverified", tried[1:])]
        radii = [(f"radius {radius}", _line(words, SimHash(radius=radius))) for radius in self.radii]
        systems.append(("SimHash", "unverified", radii))
        for kind in Kind:
            tried = [(f"τ = {t:g}", _line(Shingles(k=3), Sketch(tau=t, kind=kind, seed=seed))) for t in self.taus]
            systems.append((f"Sketch, {kind.name}", "unverified", tried))
        return systems

    def _row(self, work: Work, system: str, kind: str, tried: Sequence[tuple[str, Line]]) -> dict[str, Any]:
        """Judge a system at all its settings and time it at the best."""
        if tried[0][0]:
            tasks = [
                Task(
                    function=judge,
                    arguments={
                        "stored": work.read(line.signature),
                        "idf_filter": line.idf_filter,
                        "matcher": line.matcher,
                        "taus": [],
                        "sets": line.sets,
                    },
                )
                for _, line in tried
            ]
            curves = [Curve(cell) for cell in work.cells.run(tasks, f"systems: {system}")]
            chosen = int(np.argmax([np.nan_to_num(curve.micro[2, 0]) for curve in curves]))
            (setting, line), curve, at = tried[chosen], curves[chosen], 0
        else:
            line = replace(tried[0][1], label=system)
            curve = work.curves([line], thresholds(self.step), f"systems: {system}")[system]
            at = curve.best
            setting = f"τ = {curve.taus[at]:g}"
            line = replace(line, matcher=line.matcher.at(curve.taus[at]))
        timed = work.times(
            [(work.read(line.signature), line.idf_filter, line.matcher)], self.repeats, f"systems: time of {system}"
        )[0]
        low, high = curve.interval("f1")[:, at]
        return {
            "system": system,
            "signature": "texts" if line.matcher.reads_texts else line.signature.name,
            "kind": kind,
            "idf": band_text(*line.band),
            "best": setting,
            **dict(zip(("precision", "recall", "f1"), curve.micro[:, at].tolist(), strict=True)),
            "f1_interval": f"{low:.3f} to {high:.3f}",
            "macro_f1": float(curve.macro[2, at]),
            "pairs": curve.cell["pairs"][at],
            "total_ms": None if timed["contended"] else timed["total_ms"],
            "mb": timed["memory_mib"],
            "peak_rss_mib": timed["peak_rss_mib"],
            "contended": timed["contended"],
        }


NOTES = (
    "exact: precisely the pairs of brute force; verified: the similarity of each reported pair was computed; "
    "unverified: it was not. Quality: micro averages over pairs. The setting is chosen on the collection that judges "
    "it, for every system alike, so these are the best figures each can reach. Time: sorting, hashing and clustering, "
    "the median; n/a where other processes ran beside. MB: the paper's lower bound of the data structures.",
)


def _line(signature: SignatureScheme, matcher: Matcher, band: tuple[float, float] = DEFAULT_BAND) -> Line:
    return Line(label="", signature=signature, matcher=matcher, band=band)
