"""Beside what people use: MinHash and SimHash at their usual settings, with and without a text extractor in front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from baselines.lsh_native import LshNative
from baselines.shingles import Shingles
from baselines.simhash import SimHash
from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings
from experiments.show.figures import Panel, Point
from experiments.show.quality_figures import STEP, compared, finite, thresholds
from experiments.show.tables import Column, Table
from experiments.studies.beyond import BAND, REMOVED, CollectionWorks, collection_name
from experiments.work.curves import Curve, ends
from experiments.work.page_cost import time_pages
from experiments.work.result_cache import Task
from experiments.work.study import SEVERAL, Line, Work
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import SignatureScheme
from spotsigs.signatures.spots import SpotSignatures

ALL = (0.0, 1.0)
"""IDF band of the rivals, which weigh nothing."""

ANY = 1e-9
"""Threshold of a verified method that makes all that shares a bucket a pair."""

RADII = (0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26)
"""Bits among which SimHash's best radius is looked for."""

TEXTS = {"visible": "the whole page", "trafilatura": "trafilatura", "main": "Resiliparse"}

MINHASH, SIMHASH, PLAIN, SHORT, FRAMED = (
    "5-gram MinHash",
    "SimHash",
    "SpotSigs",
    "SpotSigs, d 1 c 2",
    "SpotSigs, templates removed",
)

COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="text", title="Text"),
    Column(name="method", title="Method"),
    Column(name="setting", title="Setting"),
    Column(name="precision", title="Precision", form=".3f"),
    Column(name="recall", title="Recall", form=".3f"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="f1_interval", title="95 %"),
    Column(name="macro_f1", title="Macro F1", form=".3f"),
    Column(name="macro_interval", title="95 %"),
    Column(name="stories_lost", title="Stories lost", form=",.0f"),
    Column(name="lost", title="of all", form=".1%"),
    Column(name="duplicates_left", title="Duplicates left", form=",.0f"),
    Column(name="left", title="of all", form=".1%"),
    Column(name="components_lost", title="Lost by components", form=".1%"),
    Column(name="components_left", title="Left by components", form=".1%"),
    Column(name="ms", title="ms a page", form=".2f"),
    Column(name="contended"),
]

NOTES = (
    "5-gram MinHash at a threshold is the exact Jaccard similarity of sets of 5-grams, which min-hashes estimate: the "
    "method without its error. 14 x 8 are datatrove's default buckets and hashes, 25 x 10 the bands and rows that "
    "text-dedup chooses for its default threshold .7 and 250 permutations; there, what shares a bucket is a pair. "
    "SimHash: 64 bits over 3-grams, as in text-dedup. Best: the setting of the highest micro F1 on this collection. "
    "ms a page: reading, text and signatures, and frames where these are looked at, in one thread, without the join; "
    "n/a where it was not measured or other processes ran beside. Intervals over resampled clusters. Stories lost: "
    "truth clusters of which no page is kept; duplicates left: kept pages beyond the first of each story; by leaders, "
    "and by the connected components that text-dedup and datatrove use.",
)


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A method with its usual settings.

    Attributes
    ----------
    label : str
        Its name.
    signature : SignatureScheme
        Tokens to signatures.
    single : dict of str to Line
        Settings that are runs of their own, by name.
    usual : tuple of float
        Thresholds that are settings, of one exact join; empty for methods without one.
    best_of_all : bool
        Look for the best among the single settings; otherwise among the thresholds.
    band : tuple of float
        Normalised IDF that is kept.
    sets : bool
        Count every signature once.
    """

    label: str
    signature: SignatureScheme
    single: dict[str, Line] = field(default_factory=dict)
    usual: tuple[float, ...] = ()
    best_of_all: bool = False
    band: tuple[float, float] = ALL
    sets: bool = False

    @property
    def line(self) -> Line:
        """The method as one exact join."""
        return Line(label=self.label, signature=self.signature, matcher=SpotSigsTight(), band=self.band, sets=self.sets)


def rivals(text: str) -> list[Rival]:
    """Return the methods that are compared on a text; template removal needs the links of the whole page."""
    grams, words = Shingles(k=5, sets=True), Shingles(k=3, sets=False)

    def banded(name: str, k: int, tables: int) -> Line:
        return Line(label=name, signature=grams, matcher=LshNative(tau=ANY, k=k, l=tables), band=ALL, sets=True)

    bands = {"datatrove, 14 x 8": banded("datatrove", 8, 14), "text-dedup, 25 x 10": banded("text-dedup", 10, 25)}
    radii = {
        f"{radius} bits": Line(label=f"simhash {radius}", signature=words, matcher=SimHash(radius=radius), band=ALL)
        for radius in RADII
    }
    found = [
        Rival(label=MINHASH, signature=grams, single=bands, usual=(0.8, 0.7, 0.5), sets=True),
        Rival(label=SIMHASH, signature=words, single=radii, best_of_all=True),
        Rival(label=PLAIN, signature=SpotSignatures(), usual=(0.44,), band=BAND),
        Rival(label=SHORT, signature=SpotSignatures(d=1, c=2), usual=(0.18,), band=BAND),
    ]
    if text == "visible":
        found.append(Rival(label=FRAMED, signature=REMOVED, usual=(0.18,), band=BAND))
    return found


@dataclass(frozen=True, kw_only=True)
class Today(Experiment):
    """Quality and cost of what people use, beside spot signatures.

    Attributes
    ----------
    results : Path
        Folder that receives ``today/``.
    collections : list of str
        What is judged: overrides of ``data``, separated by spaces.
    drawn : list of str
        Those of them that the picture shows.
    step : float
        Distance of thresholds among which the best is looked for; the usual ones are among them.
    timed : list of str
        Those of them on which the cost a page is measured.
    timed_pages, repeats : int
        Pages whose cost is measured, and how often.
    """

    results: Path = Path("results")
    collections: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    timed: list[str] = field(default_factory=list)
    step: float = STEP
    timed_pages: int = 200
    repeats: int = 3

    def __call__(self, settings: Settings) -> str:
        """Write the table and draw the picture; return them as text."""
        works = CollectionWorks(Work.begin(self.results, settings, SEVERAL), self.step)
        rows: list[dict[str, Any]] = []
        facts: list[Fact] = []
        there, left_out = works.there(self.collections)
        for data in there:
            best: dict[str, Curve] = {}
            for text in TEXTS:
                if text == "trafilatura" and find_spec(text) is None:
                    continue
                found, curves = self._rows(works, data, text)
                rows += found
                best |= {f"{label}, {TEXTS[text]}": curve for label, curve in curves.items()}
            ours = best[f"{FRAMED}, {TEXTS['visible']}"]
            facts += [
                compared(f"{collection_name(data)}: templates removed - {label}, best F1", ours, curve)
                for label, curve in best.items()
                if curve is not ours
            ]
        works.work.facts(facts)
        table = Table(
            caption="Beside what people use, on news, gold and documentation", columns=COLUMNS, rows=rows, notes=NOTES
        )
        drawn = [data for data in self.drawn if data in there]
        return "\n\n".join([works.work.table(table, "today"), self._picture(works.work, rows, drawn), *left_out])

    def _rows(self, works: CollectionWorks, data: str, text: str) -> tuple[list[dict[str, Any]], dict[str, Curve]]:
        """Return the rows of a collection and text, and each method's best curve."""
        work, chosen = works.at(data, text), rivals(text)
        describe = f"today: {collection_name(data)}, {TEXTS[text]}"
        joined = work.curves([rival.line for rival in chosen if rival.usual], self._taus(chosen), describe)
        singles = [line for rival in chosen for line in rival.single.values()]
        alone = work.curves([line for line in singles if line.matcher.threshold is None], [], describe)
        alone |= work.curves([line for line in singles if line.matcher.threshold is not None], [ANY], describe)
        costs = self._costs(work, chosen, describe) if data in self.timed else {}
        rows: list[dict[str, Any]] = []
        best: dict[str, Curve] = {}
        for rival in chosen:
            settings = [(name, alone[line.label], 0) for name, line in rival.single.items()]
            if rival.best_of_all:
                name, curve, _ = max(settings, key=lambda setting: finite(setting[1].micro[2, 0]))
                settings = [setting for setting in settings if setting[0] == "3 bits"] + [(f"best, {name}", curve, 0)]
            else:
                curve = joined[rival.label]
                settings += [(f"{tau:g}", curve, curve.at(tau)) for tau in rival.usual]
                settings.append((f"best, {curve.taus[curve.best]:g}", curve, curve.best))
            best[rival.label] = curve
            rows += [
                {"collection": collection_name(data), "text": TEXTS[text], "method": rival.label, "setting": name}
                | _quality(curve, at)
                | costs.get(rival.label, {"ms": None, "contended": None})
                for name, curve, at in settings
            ]
        return rows, best

    def _taus(self, chosen: Sequence[Rival]) -> list[float]:
        return sorted({*thresholds(self.step), *(tau for rival in chosen for tau in rival.usual)})

    def _costs(self, work: Work, chosen: Sequence[Rival], describe: str) -> dict[str, dict[str, Any]]:
        """Measure what each method costs a page; nothing where the machine was not quiet."""
        tasks = [
            Task(
                function=time_pages,
                arguments={
                    "source": work.read(rival.signature).source,
                    "pages": self.timed_pages,
                    "repeats": self.repeats,
                },
                alone=True,
            )
            for rival in chosen
        ]
        cells = work.cells.run(tasks, f"{describe}, cost")
        return {
            rival.label: {"ms": None if cell["contended"] else cell["ms"], "contended": cell["contended"]}
            for rival, cell in zip(chosen, cells, strict=True)
        }

    def _picture(self, work: Work, rows: Sequence[dict[str, Any]], drawn: Sequence[str]) -> str:
        """Draw F1 over cost: each method's usual settings and its best, one above the other."""
        names = [collection_name(data) for data in drawn]
        panels = [Panel(name=name, x_label="ms a page", y_label="F1", x_log=True, y_range=(0, 1)) for name in names]
        points = [
            Point(panel=row["collection"], series=f"{row['method']}, {row['text']}", x=row["ms"], y=row["f1"])
            for row in sorted(rows, key=lambda row: row["f1"])
            if row["collection"] in names and row["ms"] is not None
        ]
        if not points:
            return "No picture: other processes ran beside, so that no cost is known"
        caption = "F1 over the cost a page, from each method's usual settings to its best on the collection"
        return f"F1 over cost: {work.lines('cost', caption, panels, points)}"


def _quality(curve: Curve, at: int) -> dict[str, Any]:
    """Return precision, recall and F1 at a position, with intervals."""
    return {
        "precision": finite(curve.micro[0, at]),
        "recall": finite(curve.micro[1, at]),
        "f1": finite(curve.micro[2, at]),
        "f1_interval": "{:.3f} to {:.3f}".format(*curve.interval("f1")[:, at]),
        "macro_f1": finite(curve.macro[2, at]),
        "macro_interval": "{:.3f} to {:.3f}".format(*ends(curve.macro_resampled[2])[:, at]),
        **{name: curve.decided(at)[name] for name in ("stories_lost", "lost", "duplicates_left", "left")},
        **{f"components_{name}": curve.decided(at, "components")[name] for name in ("lost", "left")},
    }
