"""The table of a comparison: methods at their best and default thresholds, with their curves and lists of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from experiments.choices import ChoiceNames
from experiments.claims.facts import Fact
from experiments.claims.published import published
from experiments.harness.cells import Cell
from experiments.harness.curves import Curve
from experiments.harness.study import Work
from experiments.harness.timing import cost, quotient
from experiments.resample import holm, p_differs, positive_pairs
from experiments.show.by_method import draw_by_method
from experiments.show.pair_lists import PairList, write_pair_lists
from experiments.show.tables import PUBLISHED, TIMES, Table, band_text
from experiments.views import columns_of
from spotsigs.errors import did_you_mean, require
from spotsigs.evaluation.metrics import percentile_interval
from spotsigs.method import Method
from spotsigs.records import Truth
from spotsigs.signatures.extract import texts

DEFAULT, BEST, BOTH = "default", "best", "best = default"

TIMES_USUAL = {"repeats": 0, "at": [BEST], "limit": None, "extraction": False}
"""Timed runs of a table that sets none."""

LEVEL = 0.05
UNDECIDED = "n.s."
"""Mark of a difference that is not significant after Holm's correction."""

CAPTION = (
    "F1 with its 95 % interval, stories lost and duplicates left over the threshold on {}, methods by best F1; a level "
    "line: no threshold"
)


@dataclass(frozen=True)
class OnCollection:
    """Methods on a collection, with their curves and times by label."""

    work: Work  # state of the experiment on this collection
    methods: Mapping[str, Method]  # methods by label
    curves: Mapping[str, Curve]  # their quality
    # ``of``, the name of the method without its panel and the point of its grid, ``panel``, and the values of its grid.
    columns: Mapping[str, Mapping[str, Any]]
    # Results of `experiments.harness.timing.TimedCell` by label and row.
    times: Mapping[tuple[str, str], Cell] = field(default_factory=dict)
    parse_ms: Mapping[str, float | None] = field(default_factory=dict)  # milliseconds of the extraction
    added: list[dict[str, Any]] = field(default_factory=list)  # rows that the study computes besides

    @property
    def name(self) -> str:
        """Name of the collection."""
        return self.work.settings.names["data"]

    def rows(self, *, best: bool = False) -> list[dict[str, Any]]:
        """Return the cells with the columns of the study, those at the best threshold of each method or at all."""
        measured = [
            {**curve.row(at), **self.columns[label], "collection": self.name}
            for label, curve in self.curves.items()
            for at in ([curve.best] if best or not curve.taus else range(len(curve.rows)))
        ]
        return [*measured, *self.added]


@dataclass(frozen=True, kw_only=True)
class TableOfMethods:
    """What a table of methods has."""

    # Name of the files; caption, by default all that the methods share.
    name: str
    caption: str = ""
    columns: list[str]  # those that are shown, of `experiments.show.tables.TITLES`; the csv has all others, too
    # Names of the rows at the default and at the best threshold.
    at: dict[str, str] = field(default_factory=lambda: {DEFAULT: DEFAULT})
    # Timed runs of the methods: ``repeats`` of each, none if 0; ``at``, which of the rows at the default and at the
    # best threshold are timed; ``limit``, seconds after which a run is stopped; ``extraction``, whether the extraction
    # is timed, too.
    times: dict[str, Any] = field(default_factory=dict)
    published: str = ""  # file of published rows, which precede the measured ones on `gold`
    # Sort by F1, with the paired difference to the baseline, and draw F1, lost and left over the threshold.
    ranked: bool = False
    baseline: str = ""  # method that the others are compared to; the first if empty
    listed: int = 0  # pairs of each method in the lists of those that it finds or misses alone; no lists if 0
    # Sentences below; ``{}`` is the baseline, ``{resampled}`` what the samples draw.
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        unknown = sorted({*self.times} - {*TIMES_USUAL})
        require(not unknown, f"experiment.table.times has no {', '.join(unknown)}; it has {', '.join(TIMES_USUAL)}")
        times = self._times
        whole = isinstance(times["repeats"], int) and times["repeats"] >= 0
        require(whole, f"experiment.table.times.repeats must be 0 or a number of runs, got {times['repeats']!r}")
        limit = times["limit"] is None or isinstance(times["limit"], int | float)
        require(limit, f"experiment.table.times.limit must be seconds or null, got {times['limit']!r}")

    @property
    def _times(self) -> dict[str, Any]:
        return TIMES_USUAL | self.times

    def with_times(self, part: OnCollection) -> OnCollection:
        """Return the part with times of all methods, if there are timed runs."""
        timed = self._times
        if not timed["repeats"]:
            return part
        points = [point for point in self._points(part) if {*point[1].split(" = ")} & {*timed["at"]}]
        methods = [part.methods[label].at(part.curves[label].cells[at]["tau"]) for label, _, at in points]
        describe = f"{self.name}: times on {part.name}"
        times = part.work.times(methods, timed["repeats"], describe, limit=timed["limit"])
        parse = {label: part.work.parse_ms(method) for label, method in part.methods.items() if timed["extraction"]}
        keys = [(label, kind) for label, kind, _ in points]
        return replace(part, times=dict(zip(keys, times, strict=True)), parse_ms=parse)

    def _points(self, part: OnCollection) -> Iterator[tuple[str, str, int]]:
        for label, curve in part.curves.items():
            default = curve.at(part.methods[label].threshold) if curve.taus else curve.best
            if not curve.taus or (self.ranked and default == curve.best):
                yield label, BOTH if self.ranked else DEFAULT, curve.best
                continue
            for kind in self.at:
                yield label, kind, default if kind == DEFAULT else curve.best

    def rows(self, part: OnCollection, baseline: str) -> list[dict[str, Any]]:
        """Return the rows of a collection."""
        points = {(label, kind): (part.curves[label], at) for label, kind, at in self._points(part)}
        gaps = _differences(points, baseline) if self.ranked else {}
        of_gold = self.published and part.name == "gold"  # published values are about that collection
        printed = {str(row["method"]): row for row in published(self.published)} if of_gold else {}
        rows: list[dict[str, Any]] = []
        for (label, kind), (curve, at) in points.items():
            cell, paper, of = curve.row(at), printed.get(label), part.columns[label]
            if paper and kind == DEFAULT:
                rows.append(paper | {"row": PUBLISHED, "idf": band_text(paper["idf_min"], paper["idf_max"])})
            name = self.at.get(kind, kind)
            row = cell | {"collection": part.name, "at": name, "row": name, "spots": cell["signatures"]}
            row |= dict.fromkeys((*TIMES, "peak_mb", "contended"))
            timed = cost(part.times[label, kind]) if (label, kind) in part.times else {}
            row |= {"mb": cell["memory_mib"], "time": shown_seconds(timed)} | timed | gaps.get((label, kind), {})
            row |= {"idf": band_text(cell["idf_min"], cell["idf_max"])}
            if of["panel"]:
                row |= {"method": of["of"], "text": of["panel"]}
            for key, form in (("f1", "{:.3f} to {:.3f}"), ("lost", "{:.1%} to {:.1%}"), ("left", "{:.1%} to {:.1%}")):
                low, high = (cell.get(f"{key}_{end}") or 0 for end in ("low", "high"))
                row[f"{key}_interval"] = form.format(low, high) if low == low else None
            if paper:
                row["from_published"] = row["f1"] - float(paper["f1"] or 0)
            rows.append(row | ({"parse_ms": part.parse_ms[label]} if part.parse_ms else {}))
        if not self.ranked:
            return rows
        return sorted(rows, key=lambda row: (row["at"] == DEFAULT, -np.nan_to_num(float(row["f1"] or 0))))

    def write(self, work: Work, parts: Sequence[OnCollection]) -> str:
        """Write the table; return it as text."""
        baseline = self._baseline(parts[0])
        rows = [row for part in parts for row in self.rows(part, baseline)]
        shown = [name for name in self.columns if name != "collection" or len(parts) > 1 or not self.ranked]
        if not any(row.get("unjudged_pairs") for row in rows):  # as where labels are the truth
            shown = [name for name in shown if name != "unjudged_pairs"]
        words = {"{}": baseline, "{resampled}": _resampled(parts)}
        of_hidden = "" if "unjudged_pairs" in shown or "unjudged_pairs" not in self.columns else "Unjudged: "
        given = [note for note in self.notes if not of_hidden or not note.startswith(of_hidden)]
        notes = tuple(reduce(lambda note, word: note.replace(word, words[word]), words, note) for note in given)
        named = [name for name in ("collection", "text", "method", "idf") if name in shown]
        columns, caption = columns_of(shown, rows), self.caption or _shared(parts)
        table = Table(caption=caption, columns=columns, rows=rows, notes=notes, named=named)
        return work.table(table, self.name)

    def _baseline(self, part: OnCollection) -> str:
        return self.baseline or next(iter(part.methods))

    def require_baseline(self, methods: Mapping[str, Method]) -> None:
        """Refuse a baseline that is not compared."""
        unknown = f"experiment.table.baseline: {self.baseline!r} is not compared{did_you_mean(self.baseline, methods)}"
        known = not self.baseline or self.baseline in methods
        require(known, f"{unknown}; the methods are {', '.join(methods)}")

    def facts(self, parts: Sequence[OnCollection]) -> Iterator[Fact]:
        """Yield the ratios of sizes, memory and times to the baseline; times are at the best threshold of each."""
        for part in parts if self.published else ():
            first = self._baseline(part)
            points = [(label, kind, at) for label, kind, at in self._points(part) if kind == DEFAULT]
            of = {label: part.times.get((label, kind)) or part.curves[label].row(at) for label, kind, at in points}
            for label, cell in of.items():
                if label == first or not of[first]["signatures"]:
                    continue
                ratio = cell["signatures"] / of[first]["signatures"]
                yield Fact(name=f"{label} / {first}, distinct signatures", value=ratio)
                yield Fact(name=f"{label} / {first}, MB", value=cell["memory_mib"] / of[first]["memory_mib"])
                if part.times:
                    one, other = (part.times.get((name, BEST), of[name]) for name in (label, first))
                    time = quotient(f"{label} / {first}, total time", one, other)
                    yield from [time] if time else []
            parse = [value for value in part.parse_ms.values() if value is not None]
            if parse and len(parse) == len(part.methods):
                yield Fact(name="longest / shortest parse time", value=max(parse) / min(parse))

    def appended(self, work: Work, parts: Sequence[OnCollection]) -> list[str]:
        """Draw the curves of a ranked table by collection, and list the pairs that a method finds or misses alone."""
        named = [(part, "curves" if len(parts) == 1 else f"curves_{part.name}") for part in parts if self.ranked]
        lines = {"F1": "f1", "stories lost": "lost", "duplicates left": "left"}
        paths = []
        for part, name in named:
            rows = [curve.row(at) for curve in part.curves.values() for at in range(len(curve.rows))]
            caption, beside = CAPTION.format(part.name), self._baseline(part)
            draw = partial(draw_by_method, rows=rows, lines=lines, beside=beside)
            paths.append(part.work.figure(name, caption, draw))
        if self.listed:
            write_pair_lists(work.folder, [each for part in parts for each in _pair_lists(part)], self.listed)
            paths.append(f"{work.folder / 'pairs.md'} (also csv)")
        return paths


def shown_seconds(timed: Mapping[str, Any]) -> Any:
    """Return the seconds of a run alone; as text if it was stopped or disturbed."""
    total = timed.get("measured_ms")
    if total is None:
        return timed.get("total_ms")
    return f"{total / 1000:.2f}†" if timed["contended"] else total / 1000


def _differences(points: Mapping[tuple[str, str], tuple[Curve, int]], baseline: str) -> dict[tuple[str, str], Cell]:
    """Return F1 of each point less the F1 of the baseline, in the same samples.

    At the best threshold of both this is F1 at thresholds that were chosen on other pages.
    """
    found: dict[tuple[str, str], Cell] = {}
    curves = {label: curve for (label, _), (curve, _) in points.items()}
    for (label, kind), (curve, _) in points.items():
        name = "default" if kind == DEFAULT else "held_out"
        values = np.array(curve.value[name])
        found[label, kind] = {"gap": "baseline"} | ({} if kind == DEFAULT else {"f1_held_out": float(values[0])})
        if label != baseline:
            gaps = values - np.array(curves[baseline].value[name])
            low, high = map(float, percentile_interval(gaps[1:]))
            figures = {"difference": float(gaps[0]), "difference_low": low, "difference_high": high}
            found[label, kind] |= figures | {"p": p_differs(gaps[1:])}
    for key, p in holm({key: cell["p"] for key, cell in found.items() if "p" in cell}).items():
        cell = found[key]
        cell["p_holm"] = p
        text = "{difference:+.3f} ({difference_low:+.3f} to {difference_high:+.3f})".format(**cell)
        cell["gap"] = text if p < LEVEL else f"{text} {UNDECIDED}"
    return found


def _resampled(parts: Sequence[OnCollection]) -> str:
    """Return what the samples of the parts draw."""
    sited = {next(iter(part.curves.values())).value["sited"] for part in parts}
    if len(sited) > 1:
        return "stories, and of sites where they are known"
    return "stories and sites" if True in sited else "stories, as no sites are known"


def _shared(parts: Sequence[OnCollection]) -> str:
    """Return what all methods share: the text, the band and the rule for exact duplicates."""
    shared = [part.work.settings.method for part in parts]
    pages = [next(iter(part.curves.values())).cells[0]["documents"] for part in parts]
    on = ", ".join(
        f"{part.name} ({count:,} pages, IDF {band_text(method.idf_filter.idf_min, method.idf_filter.idf_max)})"
        for part, count, method in zip(parts, pages, shared, strict=True)
    )
    method = shared[0]
    text, _ = ChoiceNames()("text", method.text)
    return (
        f"Methods on {on}, all with text={text}, boilerplate={method.boilerplate.value}, "
        f"duplicates={method.duplicates.value} and clusters={method.clusters.value} unless a method sets its own"
    )


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
    for label, reported in keys.items():
        finds = every[np.isin(every, reported) & (counts == 1)]
        misses = np.isin(every, positive) & ~np.isin(every, reported) & (counts > 0)
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
