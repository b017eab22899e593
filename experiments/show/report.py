"""Report: one HTML file with all tables, figures and claims; it loads no other file."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments.claims.facts import read_facts
from experiments.claims.judged_claims import Judged
from experiments.claims.verdicts import INTRODUCTION, NOTES, RULES, Verdict
from spotsigs.output_files import read_json

TEMPLATES = Path(__file__).parent / "templates"

SECTIONS = {
    "Tables": ("table1/table1", "table2/table2", "threads/threads", "lcs_tables/lcs_table1", "lcs_tables/lcs_table2"),
    "Figures": ("quality/quality", "figure5/figure5", "figure6/figure6", "figure4/figure4", "figure7/figure7"),
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
}
"""Tables and figures of each section by their path in the results folder; all others follow."""

OTHERS = "Beyond the paper"
"""Section of all other tables and figures."""


def finding(results: Path) -> list[str]:
    """Return the main findings in sentences, from the facts of ``quality``; empty without real pages."""
    facts = read_facts(results / "quality" / "facts.csv")
    names = {"gold": "generated pages", "newsframes": "real stories in real templates"}
    methods = ("SpotSigs", "3-Shingles", "1-Shingles")
    sentences = []
    for collection, words in names.items():
        found = [facts.get(f"{collection}: {method}: best F1") for method in methods]
        ours, threes, ones = (None if fact is None else f"{fact.value:.3f}" for fact in found)
        if ours and threes and ones:
            sentences.append(
                f"On {words} ({collection}) the best F1 of SpotSigs is {ours}, of 3-Shingles {threes}, of single words "
                f"{ones}."
            )
    return sentences


def sections(results: Path) -> list[dict[str, Any]]:
    """Return all tables and figures of a results folder, by section, with their provenance."""
    named = {name for names in SECTIONS.values() for name in names}
    others = [
        path.relative_to(results).with_suffix("").as_posix()
        for path in sorted(results.glob("*/*.json"))
        if path.parent.name not in ("cells", "runs")
    ]
    wanted = {**SECTIONS, OTHERS: tuple(name for name in others if name not in named)}
    return [
        {"title": title, "items": items}
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
        image = base64.b64encode(path.with_suffix(".svg").read_bytes()).decode()
        return {
            "name": name,
            "caption": about["figure"]["caption"],
            "image": f"data:image/svg+xml;base64,{image}",
            "origin": _origin(about),
        }
    return None


def _origin(about: dict[str, Any]) -> dict[str, str]:
    """Return the provenance that a reader needs to reproduce a table or figure."""
    return {
        "command": f"python run.py experiment={about['experiment']}",
        "commit": f"{about['commit'] or 'unknown'}{' with changes' if about['dirty'] else ''}",
        "collection, seed": f"{about['data']}, {about['seed']}",
        "machine": "{processor}, {cores} cores, {system}".format(**about["machine"]),
        "cells": f"{len({cell['cell'] for cell in about['cells']})} cached results",
    }


def render(
    *,
    sections: Sequence[dict[str, Any]],
    judged: Sequence[Judged],
    about: dict[str, Any],
    finding: Sequence[str] = (),
) -> str:
    """Return the report's HTML.

    All external text is escaped. The content security policy of the page forbids all requests, and all scripts but its
    own. Sections and findings are those of `sections` and `finding`, `about` is the provenance.
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
        introduction=INTRODUCTION,
        notes=NOTES,
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
        reasons.setdefault(item.why, []).append(item)
    return reasons
