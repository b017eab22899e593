"""Report: one HTML file with all tables, figures and claims, and sample pairs; it loads no other file."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.claims.facts import read_facts
from experiments.claims.judged_claims import Judged, judge_all
from experiments.claims.verdicts import RULES, Verdict
from experiments.config import Experiment, Settings
from experiments.show.page_pairs import KINDS, Sample, sample_pairs
from experiments.work.study import Line, Work
from spotsigs.errors import require
from spotsigs.output_files import read_json, replacing
from spotsigs.records import VectorCollection
from spotsigs.runs.provenance import provenance

TEMPLATES = Path(__file__).parent / "templates"

OURS = "SpotSigs"
"""Method of the main finding, by its name in the experiments."""

REMOVED = ("SpotSigs, templates removed", "SpotSigs, framed")
"""Template removal, by its name in the experiments; the second is that of results of earlier versions."""

SECTIONS = {
    "The finding": ("frames/frames", "matrix/quality", "matrix/matrix"),
    "Tables": (
        "table1/table1",
        "table1/default_band",
        "table2/table2",
        "threads/threads",
        "lcs_tables/lcs_table1",
        "lcs_tables/lcs_table2",
    ),
    "Figures": ("figure4/figure4", "figure5/figure5", "figure6/figure6", "figure7/figure7"),
    "Figures the paper omits or the slides show": (
        "chain_length/chain_length",
        "spot_distance/spot_distance",
        "lsh_recall/lsh_recall",
        "imatch/bands",
        "imatch/lexica",
        "partitions/partitions",
        "estimators/estimators",
    ),
    "Exactness and arithmetic": ("exactness/exactness", "arithmetic/partition_counts"),
    "Beyond the paper": (
        "beyond/beyond",
        "beyond/drift",
        "beyond/teasers",
        "beyond/text",
        "beyond/cost",
        "today/cost",
        "today/today",
        "beyond/promise",
    ),
}
"""Tables and figures of each section by their path in the results folder; all others follow."""

LEADS = {
    "Beyond the paper": "Nothing here is the paper's: signatures without the templates of today's pages, found by the "
    "links that pages of a site share, compared with the paper's own and with extractors of the main text. Generated "
    "pages come from seeds that nothing was tuned on; the last table shows where template removal is below plain "
    "signatures. docs/boilerplate.md has the definitions.",
}
"""Introductions of sections."""


@dataclass(frozen=True, kw_only=True)
class Report(Experiment):
    """Report of all results, with sampled pairs for inspection.

    Attributes
    ----------
    results : Path
        Folder of the experiments' results; receives ``report.html``.
    each : int
        Number of true, of false and of missed pairs in the inspector.
    """

    results: Path = Path("results")
    each: int = 12

    def __post_init__(self) -> None:
        require(self.each >= 0, f"each must not be negative, got {self.each}")

    def __call__(self, settings: Settings) -> str:
        """Write the report; return its path."""
        work = Work.begin(self.results, settings)
        page = render(
            finding=finding(self.results),
            sections=sections(self.results),
            judged=judge_all(self.results),
            samples=self._samples(work),
            about=provenance() | {"data": settings.names["data"], "seed": settings.seed},
        )
        path = self.results / "report.html"
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
        work.record("report")
        return f"report: {path}"

    def _samples(self, work: Work) -> list[Sample]:
        """Sample pairs of SpotSigs at the paper's parameters; none if the collection has no clusters or no texts."""
        line = Line.composed("SpotSigs", "matcher=spotsigs idf_max=0.85 tau=0.44", work.settings)
        if not self.each or isinstance(work.settings.collection, VectorCollection):
            return []
        stored = work.read(line.signature)
        truth = stored.truth()
        if truth is None or truth.judged is not None:
            return []
        corpus = stored.corpus(line.idf_filter)
        return sample_pairs(corpus, truth, line.matcher, line.signature, each=self.each, seed=work.settings.seed)  # type: ignore[arg-type]


def finding(results: Path) -> list[str]:
    """Return the main findings in five sentences, from the facts of ``matrix`` and ``frames``.

    Parameters
    ----------
    results : Path
        Folder with the experiments' results.

    Returns
    -------
    list of str
        Empty if an experiment has not run, or without the real pages.
    """
    matrix, frames = (read_facts(results / name / "facts.csv") for name in ("matrix", "frames"))
    real, reverse = "newsframes", "gold_prose"
    densities = sorted({float(name.split()[2].rstrip(":")) for name in frames if name.startswith("frames of ")})

    def best(collection: str, method: str) -> float:
        return matrix[f"{collection}: {method}: best F1"].value

    removed = next((label for label in REMOVED if f"{real}: {label}: best F1" in matrix), REMOVED[0])

    def lead(density: float) -> float:
        return frames[f"frames of {density:g}: {OURS} - 3-Shingles, best F1"].value

    try:
        thin, thick = lead(densities[0]), lead(densities[-1])
        on_real, on_prose = (
            [best(name, method) for method in (OURS, "3-Shingles", "1-Shingles", removed)] for name in (real, reverse)
        )
    except (KeyError, IndexError):
        return []
    if not (on_real[0] > max(on_real[1:3]) and thin > max(thick, 0) and on_prose[0] < min(on_prose[1:3])):
        return []  # the sentences do not apply
    sentence = (
        "On real news stories in the frames of real news pages their best F1 is {:.3f}, against {:.3f} for 3-shingles "
    )
    sentence += "and {:.3f} for single words; the paper has 0.94, 0.69 and 0.71 on its Gold Set."
    return [
        "Spot signatures win where the frames of pages carry fewer antecedents than their text.",
        sentence.format(*on_real),
        f"Their lead over 3-shingles goes from {thin:+.2f} at {densities[0]:g} spots a token of the frames to "
        f"{thick:+.2f} at {densities[-1]:g}, as prose is put in.",
        "Where frames are full of prose the order is reversed ({:.3f} against {:.3f} and {:.3f}).".format(*on_prose),
        f"Templates are found and removed without labels: {removed} reaches {on_real[3]:.3f} on the real pages, "
        f"{on_prose[3]:.3f} on those full of prose.",
    ]


def sections(results: Path) -> list[dict[str, Any]]:
    """Return all tables and figures of a results folder, by section, with their provenance."""
    named = {name for names in SECTIONS.values() for name in names}
    others = [
        path.relative_to(results).with_suffix("").as_posix()
        for path in sorted(results.glob("*/*.json"))
        if path.parent.name not in ("cells", "runs")
    ]
    wanted = {**SECTIONS, "More": tuple(name for name in others if name not in named)}
    return [
        {"title": title, "lead": LEADS.get(title, ""), "items": items}
        for title, names in wanted.items()
        if (items := [item for name in names if (item := _item(results, name)) is not None])
    ]


def _item(results: Path, name: str) -> dict[str, Any] | None:
    path = results / f"{name}.json"
    if not path.exists():
        return None
    about = read_json(path)
    if "table" in about:
        return {"name": name, "table": about["table"], "origin": _origin(about)}
    if "figure" in about:
        svg = path.with_suffix(".svg").read_bytes()
        data = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
        return {"name": name, "caption": about["figure"]["caption"], "image": data, "origin": _origin(about)}
    return None


def _origin(about: dict[str, Any]) -> dict[str, str]:
    """Return the provenance that a reader needs to reproduce a table or figure."""
    cells = about["cells"]
    return {
        "command": f"python run.py experiment={about['experiment']}",
        "made by": "python " + " ".join(about["command"]),
        "commit": f"{about['commit'] or 'unknown'}{' with changes' if about['dirty'] else ''}",
        "data, seed": f"{about['data']}, {about['seed']}",
        "machine": "{processor}, {cores} cores, {system}".format(**about["machine"]),
        "cells": ", ".join(sorted({cell["cell"] for cell in cells})) or "none",
    }


def render(
    *,
    sections: Sequence[dict[str, Any]],
    judged: Sequence[Judged],
    samples: Sequence[Sample],
    about: dict[str, Any],
    finding: Sequence[str] = (),
) -> str:
    """Return the report's HTML.

    All external text, such as that of pages and ids, is escaped. The content security policy of the page forbids all
    requests, and all scripts but its own.

    Parameters
    ----------
    sections : sequence of dict
        Result of `sections`.
    judged : sequence of Judged
        Claims with verdicts.
    samples : sequence of Sample
        Sampled pairs.
    about : dict
        Command, commit, versions, machine.
    finding : sequence of str
        Sentences of the introduction.

    Returns
    -------
    str
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    counts = Counter(item.verdict for item in judged)
    return environment.get_template("report.html").render(
        script=Markup(script),
        script_hash=Markup(f"'sha256-{digest}'"),
        style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
        sections=sections,
        judged=judged,
        finding=finding,
        beside=_beside(sections, judged),
        reasons=_by_reason(item for item in judged if item.failed),
        counts=[(verdict, counts[verdict]) for verdict in Verdict if counts[verdict]],
        rules=RULES,
        samples=samples,
        kinds=KINDS,
        about=about,
    )


def _beside(sections: Sequence[dict[str, Any]], judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Return the claims of each experiment, by the name of its first table or figure."""
    first: dict[str, str] = {}
    for section in sections:
        for item in section["items"]:
            first.setdefault(item["name"].partition("/")[0], item["name"])
    return {
        name: found
        for experiment, name in first.items()
        if (found := [item for item in judged if item.claim.experiment == experiment])
    }


def _by_reason(failed: Iterable[Judged]) -> dict[str, list[Judged]]:
    """Group claims by their assumed reason."""
    reasons: dict[str, list[Judged]] = {}
    for item in failed:
        reasons.setdefault(item.claim.why, []).append(item)
    return reasons
