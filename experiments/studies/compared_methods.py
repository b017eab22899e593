"""The table of a comparison: methods at their best and default thresholds, with their curves and lists of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.config import Settings
from experiments.harness.cells import Cell
from experiments.harness.cross_validation import holm, positive_pairs
from experiments.harness.curves import Curve, ends, paired_samples, thresholds
from experiments.harness.method_choices import chosen_collections, chosen_methods, composed_methods
from experiments.harness.study import Work
from experiments.harness.timing import cost
from experiments.show.figures import Panel, Point, draw_lines
from experiments.show.pair_lists import PairList, write_pair_lists
from experiments.show.tables import Column, Table
from experiments.studies.table1 import band_text
from spotsigs.errors import did_you_mean, require
from spotsigs.method import Method
from spotsigs.records import Truth
from spotsigs.signatures.extract import texts

if TYPE_CHECKING:
    from experiments.studies.comparison import MethodComparison

BEST, DEFAULT, BOTH = "best", "default", "best = default"
COARSE = 0.1
"""Distance between the thresholds of a method that runs again at each of them."""

RESAMPLES = 10_000
"""Bootstrap samples of a difference: enough for a small p-value after the correction for many methods."""

LEVEL = 0.05

COLUMNS = [
    Column(name="collection", title="Collection"),
    Column(name="method", title="Method"),
    Column(name="at", title="At"),
    Column(name="tau", title="τ", form="g"),
    Column(name="f1", title="F1", form=".3f"),
    Column(name="f1_interval", title="95 %"),
    Column(name="gap", title="− baseline, 95 %"),
    Column(name="macro_f1", title="Macro F1", form=".3f"),
    Column(name="lost", title="Lost", form=".1%"),
    Column(name="left", title="Left", form=".1%"),
    Column(name="bcubed_f1", title="B-cubed F1", form=".3f"),
    Column(name="time", title="Time (s)", form=".2f"),
    Column(name="peak_mb", title="Peak MB", form=",.0f"),
    Column(name="idf", title="IDF"),
]
MORE = ("difference", "difference_low", "difference_high", "p", "p_holm", "contended", "program", "typed")
"""Further columns of the csv, before all others of the cells."""

NOTE = (
    "Best: the threshold of the highest F1 on these pages; default: that of the method. − baseline: F1 less that of "
    "{}, also at its own, in the same 10,000 samples of truth clusters; * p < .05 after Holm's correction over the "
    "rows of a collection. Lost: stories of which no page is kept; left: duplicates that are kept. Time and memory: a "
    "run alone at the best threshold, with loaded kernels, without extraction; † other processes were active."
)
CAPTION = (
    "F1, stories lost and duplicates left over the threshold on {}, methods by best F1; a level line: no threshold"
)


@dataclass(frozen=True)
class OnCollection:
    """Methods on a collection, with their curves and times by label."""

    work: Work
    methods: Mapping[str, Method]
    curves: Mapping[str, Curve]
    times: Mapping[str, Cell]

    @property
    def name(self) -> str:
        """Name of the collection."""
        return self.work.settings.names["data"]


def compare(study: MethodComparison, settings: Settings) -> str:
    """Write the table, a figure of each collection, and the lists of pairs; return the table and the paths."""
    work = Work.begin(study.results, settings)
    choices = chosen_methods(study.chosen, study.omitted, study.paired)
    parts, left_out = [], dict[str, str]()
    for own in chosen_collections(study.collections, settings):
        methods, wrong = composed_methods(choices, own)
        for label, error in wrong.items():
            require(study.chosen is None, str(error))
            left_out[label] = work.leave_out(label, error)
        baseline = study.baseline or next(iter(methods))
        unknown = f"experiment.baseline: {baseline!r} is not compared{did_you_mean(baseline, methods)}"
        require(baseline in methods, f"{unknown}; the methods are {', '.join(methods)}")
        parts.append(_on_collection(study, replace(work, settings=own), methods))
    rows = [row for part in parts for row in _rows(part, baseline)]
    shown = [column for column in COLUMNS if column.name != "collection" or len(parts) > 1]
    names = [column.name for column in shown]
    rest = (*MORE, *(key for row in rows for key in row))
    columns = [*shown, *(Column(name=key) for key in dict.fromkeys(rest) if key not in names)]
    table = Table(caption=_caption(parts), columns=columns, rows=rows, notes=(NOTE.format(baseline),))
    written = [work.table(table, "compare")]
    written += [_figure(part, baseline, "curves" if len(parts) == 1 else f"curves_{part.name}") for part in parts]
    lists = [listed for part in parts for listed in _pair_lists(part)]
    write_pair_lists(work.folder, lists, study.listed)
    return "\n\n".join([*written, f"{work.folder / 'pairs.md'} (also csv)", *left_out.values()])


def _on_collection(study: MethodComparison, work: Work, methods: Mapping[str, Method]) -> OnCollection:
    """Run all methods over their thresholds, and each again alone at its best one."""
    name, defaults = work.settings.names["data"], [method.tau for method in methods.values()]
    curves: dict[str, Curve] = {}
    for once, step in ((True, study.step), (False, max(study.step, COARSE))):
        some = {label: method for label, method in methods.items() if (method.matcher.nested or not method.tau) == once}
        if some:
            curves |= work.curves(some, thresholds(step, *defaults), f"compare: {name}", pairs=True)
    curves = {label: curves[label] for label in methods}
    best = [method.at(curves[label].cells[curves[label].best]["tau"]) for label, method in methods.items()]
    times = work.times(best, study.repeats, f"compare: times on {name}", limit=study.limit) if study.repeats else []
    return OnCollection(work, methods, curves, dict(zip(methods, map(cost, times), strict=bool(times))))


def _rows(part: OnCollection, baseline: str) -> list[dict[str, Any]]:
    """Return the rows of a collection, the best first, those at default thresholds below."""
    points: dict[tuple[str, str], tuple[Curve, int]] = {}
    for label, curve in part.curves.items():
        default = curve.at(part.methods[label].threshold) if curve.taus else curve.best
        points[label, BEST if default != curve.best else BOTH] = curve, curve.best
        if default != curve.best:
            points[label, DEFAULT] = curve, default
    gaps, rows = _differences(points, baseline), []
    for (label, kind), (curve, at) in points.items():
        cell = curve.rows[at]
        timed = part.times.get(label, {}) if kind != DEFAULT else {}
        row = cell | {"collection": part.name, "at": kind, "sort_hash_ms": None, "cluster_ms": None, "total_ms": None}
        row |= {"peak_mb": None, "contended": None} | timed | gaps.get((label, kind), {})
        rows.append(row | {"time": _time(timed), "idf": band_text(cell["idf_min"], cell["idf_max"])})
        rows[-1]["f1_interval"] = "{:.3f} to {:.3f}".format(cell.get("f1_low") or 0, cell.get("f1_high") or 0)
    return sorted(rows, key=lambda row: (row["at"] == DEFAULT, -np.nan_to_num(float(row["f1"] or 0))))


def _time(timed: Mapping[str, Any]) -> Any:
    """Return the seconds of a run alone; as text if it was stopped or disturbed."""
    total = timed.get("measured_ms")
    if total is None:
        return timed.get("total_ms")
    return f"{total / 1000:.2f}†" if timed["contended"] else total / 1000


def _differences(points: Mapping[tuple[str, str], tuple[Curve, int]], baseline: str) -> dict[tuple[str, str], Cell]:
    """Return the difference to the baseline of each point, at the best or default threshold of both."""
    found: dict[tuple[str, str], Cell] = {}
    for (label, kind), point in points.items():
        base = points.get((baseline, kind)) or points.get((baseline, BOTH)) or points[baseline, BEST]
        if label == baseline or point[0].tallies[0].shape[1] != base[0].tallies[0].shape[1]:
            continue  # a method that cannot read some page has other clusters
        (one,), (other,) = (paired[2:3] for paired in paired_samples([point, base], RESAMPLES))
        samples = np.nan_to_num(one) - np.nan_to_num(other)
        value = float(np.nan_to_num(point[0].values("f1")[point[1]]) - np.nan_to_num(base[0].values("f1")[base[1]]))
        beyond = min(np.sum(samples <= 0), np.sum(samples >= 0))
        low, high = map(float, ends(samples))
        p = min(1.0, 2 * float(beyond + 1) / (len(samples) + 1))
        found[label, kind] = {"difference": value, "difference_low": low, "difference_high": high, "p": p}
    for key, p in holm({key: gap["p"] for key, gap in found.items()}).items():
        gap = found[key]
        mark = " *" if p < LEVEL else ""
        gap["p_holm"] = p
        gap["gap"] = "{difference:+.3f} ({difference_low:+.3f} to {difference_high:+.3f})".format(**gap) + mark
    return found | {key: {"gap": "baseline"} for key in points if key[0] == baseline}


def _caption(parts: Sequence[OnCollection]) -> str:
    """Return what all methods share: the text, the band and the rule for exact duplicates."""
    shared = [part.work.settings.method for part in parts]
    pages = [next(iter(part.curves.values())).cells[0]["documents"] for part in parts]
    on = ", ".join(
        f"{part.name} ({count:,} pages, IDF {band_text(method.idf_filter.idf_min, method.idf_filter.idf_max)})"
        for part, count, method in zip(parts, pages, shared, strict=True)
    )
    method = shared[0]
    return (
        f"Methods on {on}, all with text={method.name('text')}, boilerplate={method.boilerplate.value}, "
        f"duplicates={method.duplicates.value} and clusters={method.clusters.value} unless a method sets its own"
    )


def _figure(part: OnCollection, baseline: str, name: str) -> str:
    """Draw F1, lost and left over the threshold in a panel for each method, by best F1, with F1 of the baseline."""
    order = sorted(part.curves, key=lambda label: -np.nan_to_num(part.curves[label].values("f1")).max())
    taus = part.curves[baseline].taus or [0.02, 1.0]
    panels = [Panel(name=label, x_label="τ", y_label="", x_range=(0, 1.02), y_range=(-0.02, 1.02)) for label in order]
    lines = {"F1": "f1", "stories lost": "lost", "duplicates left": "left"}
    points = [
        point
        for label in order
        for title, key in lines.items()
        for point in _line(part, label, label, key, title, taus)
    ]
    other = f"F1 of {baseline}"
    points += [
        point for label in order if label != baseline for point in _line(part, baseline, label, "f1", other, taus)
    ]
    caption = CAPTION.format(part.name)
    return part.work.figure(draw_lines, name, caption, panels, points, columns=4, computed=[other])


def _line(part: OnCollection, label: str, panel: str, key: str, series: str, taus: Sequence[float]) -> Iterator[Point]:
    curve = part.curves[label]
    values = np.nan_to_num(curve.values(key))
    at = curve.taus or [taus[0], taus[-1]]
    for x, y in zip(at, values if curve.taus else [values[0]] * 2, strict=True):
        yield Point(panel=panel, series=series, x=x, y=float(y))


def _pair_lists(part: OnCollection) -> Iterator[PairList]:
    """Yield, for each method at its best threshold, the pairs that it finds alone, and the true ones that it misses."""
    stored = part.work.read_all(part.methods)
    ids = {label: stored[label].signatures().doc_ids for label in part.methods}
    number: dict[str, int] = {}
    for names in ids.values():
        for name in names:
            number.setdefault(name, len(number))
    n = len(number)
    keys = {}
    for label, curve in part.curves.items():
        row = np.array([number[name] for name in ids[label]], np.int64)
        one, other = (row[np.array(ends_of, np.int64)] for ends_of in curve.value["best"])
        keys[label] = np.unique(_keys(one, other, n))
    first = next(iter(part.methods))
    truth, present = stored[first].truth(judged=True), {*ids[first]}
    positive, negative = _known_pairs(truth, np.array([number[name] for name in ids[first]], np.int64), n)
    every, counts = np.unique(np.concatenate([*keys.values(), positive]), return_counts=True)
    counts = counts - np.isin(every, positive)
    names = list(number)
    shown: list[PairList] = []
    for label, own in keys.items():
        finds = every[np.isin(every, own) & (counts == 1)]
        misses = np.isin(every, positive) & ~np.isin(every, own) & (counts > 0)
        order = np.argsort(-counts[misses], kind="stable")
        for title, chosen, others in (
            ("finds alone", finds, np.zeros(len(finds), np.int64)),
            ("misses", every[misses][order], counts[misses][order]),
        ):
            pairs = [(names[key // n], names[key % n]) for key in chosen.tolist()]
            wrong = "false" if negative is None else np.where(np.isin(chosen, negative), "false", "unjudged")
            kinds = np.where(np.isin(chosen, positive), "true", wrong).tolist()
            shown.append(PairList(part.name, label, title, pairs, kinds, others.tolist(), len(keys) - 1))
    wanted = {name for listed in shown for pair in listed.pairs[:100] for name in pair if name in present}
    method = part.methods[first]
    lines = {
        name: _first_line(text)
        for name, text in zip(ids[first], texts(stored[first].source.collection, method.text), strict=True)
        if name in wanted
    }
    return (replace(listed, lines=lines) for listed in shown)


def _known_pairs(truth: Truth, row: Any, n: int) -> tuple[Any, Any]:
    """Return the keys of all true pairs, and of all judged false ones; None for the latter if all others are false."""
    if truth.judged is not None:
        i, j = np.divmod(truth.judged.keys, len(truth.labels))
        keys = _keys(row[i], row[j], n)
        return keys[truth.judged.positive], keys[~truth.judged.positive]
    known = np.flatnonzero(truth.labels >= 0)
    i, j = positive_pairs(truth.labels[known].astype(np.int64))
    return _keys(row[known[i]], row[known[j]], n), None


def _keys(one: Any, other: Any, n: int) -> Any:
    return np.minimum(one, other) * n + np.maximum(one, other)


def _first_line(text: str) -> str:
    return next((" ".join(line.split())[:100] for line in text.splitlines() if line.strip()), "")
