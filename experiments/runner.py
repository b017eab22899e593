"""One run: prepare, match, write the run's folder, and say what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from data.writers import require_free, write_copy, write_lists
from experiments.config import Settings
from experiments.files import remove, write_csv, write_json, write_parquet, write_text
from experiments.measure import provenance
from experiments.pipeline import Outcome, match, memory_bytes, prepare
from spotsigs.atomic import locked
from spotsigs.errors import require
from spotsigs.keep import Decisions, decide
from spotsigs.metrics import Quality
from spotsigs.records import Clusters, Pairs

MIB = 1024 * 1024


def run(
    settings: Settings, folder: str | Path, *, contended: bool = False, about: Mapping[str, str] | None = None
) -> str:
    """Run one configuration and write its folder, ``metrics.json`` last.

    Nothing of a former run there is touched before there is something to write, and no two runs write at once.

    Parameters
    ----------
    settings : Settings
        What to run.
    folder : str or Path
        The run's folder.
    contended : bool
        Other jobs run beside this one, so its times say nothing.
    about : mapping of str to str, optional
        Files that say how the run was configured, by their names in the folder ``.hydra``.

    Returns
    -------
    str
        The row in the paper's columns, where the folder lies, and what to do next.
    """
    folder = Path(folder)
    if settings.copy is not None:
        require(hasattr(settings.collection, "copy"), f"data={settings.names['data']} cannot be copied; use kept.csv")
        require_free(settings.copy)
    prepared = prepare(
        settings.collection,
        settings.text,
        settings.signature,
        settings.idf_filter,
        settings.engine,
        sets=settings.sets,
        strict=settings.strict,
    )
    outcome = match(prepared, settings.matcher, settings.clusters, settings.keep)
    metrics = measured(outcome, settings)
    decisions = decide(outcome.pairs, outcome.clusters, settings.keep)
    if settings.copy is not None:
        write_copy(settings.collection, prepared.corpus.vectors.doc_ids, decisions.kept, settings.copy)
    with locked(folder):
        remove(folder / "metrics.json")
        for name, text in (about or {}).items():
            write_text(folder / ".hydra" / name, text)
        write_outcome(folder, outcome)
        write_decisions(folder, outcome, decisions, settings)
        write_json(
            folder / "run.json",
            provenance() | {"seed": settings.seed, "input_sha256": prepared.checksum, "contended": contended},
        )
        write_json(folder / "metrics.json", metrics)
    return told(metrics, settings, outcome, folder)


def measured(outcome: Outcome, settings: Settings) -> dict[str, Any]:
    """Return the run's figures: sizes, quality (null without truth), memory in MiB, times in ms, choices."""
    prepared, pairs = outcome.prepared, outcome.pairs
    vectors = prepared.corpus.vectors
    seconds = {"sort_hash": 0.0, "cluster": 0.0, **pairs.seconds}
    quality = asdict(outcome.quality) if outcome.quality else dict.fromkeys(f.name for f in fields(Quality))
    return {
        "documents": len(vectors),
        "documents_matched": int(np.count_nonzero(vectors.lengths)),
        "skipped": len(prepared.skipped),
        "signatures": vectors.n_signatures,
        "occurrences": vectors.n_occurrences,
        "pairs": len(pairs),
        "clusters": int(np.count_nonzero(outcome.clusters.sizes > 1)),
        **quality,
        "memory_mib": memory_bytes(settings.matcher, vectors) / MIB,
        "peak_rss_mib": outcome.peak_rss_bytes / MIB,
        "parse_ms": prepared.parse_seconds * 1000,
        "sort_hash_ms": seconds["sort_hash"] * 1000,
        "cluster_ms": seconds["cluster"] * 1000,
        "total_ms": (seconds["sort_hash"] + seconds["cluster"]) * 1000,
        "stage_seconds": dict(pairs.seconds),
        "counters": dict(pairs.counters),
        "tau": getattr(settings.matcher, "tau", None),
        "idf_min": settings.idf_filter.idf_min,
        "idf_max": settings.idf_filter.idf_max,
        "k": getattr(settings.matcher, "k", None),
        "l": getattr(settings.matcher, "l", None),
        "exact": settings.matcher.exact,
        "verified": settings.matcher.verified,
        "data": settings.names["data"],
        "text": settings.names["text"],
        "signature": settings.names["signature"],
        "matcher": settings.names["matcher"],
    }


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write ``pairs.parquet``, ``clusters.parquet`` and ``skipped.csv``."""
    names = np.asarray(outcome.prepared.corpus.vectors.doc_ids, dtype=object)
    write_parquet(folder / "pairs.parquet", _pair_columns(outcome.pairs, names))
    write_parquet(folder / "clusters.parquet", _cluster_columns(outcome.clusters, names))
    skipped = [(record.id, record.reason) for record in outcome.prepared.skipped]
    if skipped:
        write_csv(folder / "skipped.csv", ("id", "reason"), skipped)
    else:
        remove(folder / "skipped.csv")


def write_decisions(folder: Path, outcome: Outcome, decisions: Decisions, settings: Settings) -> None:
    """Write ``kept.csv`` and ``removed.csv``, and on request the page of clusters."""
    corpus = outcome.prepared.corpus
    doc_ids = corpus.vectors.doc_ids
    write_lists(decisions, doc_ids, folder)
    if settings.page:
        from experiments.cluster_page import write_cluster_page

        write_cluster_page(
            folder / "clusters.html",
            doc_ids,
            outcome.pairs,
            outcome.clusters,
            corpus.texts(),
            scheme=settings.signature,
        )


def _pair_columns(pairs: Pairs, names: Any) -> dict[str, Any]:
    return {"doc_a": names[pairs.i], "doc_b": names[pairs.j], "similarity": pairs.similarity}


def _cluster_columns(clusters: Clusters, names: Any) -> dict[str, Any]:
    return {
        "doc": names,
        "cluster": clusters.labels,
        "representative": names[clusters.representatives[clusters.labels]],
        "similarity_to_representative": clusters.similarity_to_representative,
    }


def told(metrics: dict[str, Any], settings: Settings, outcome: Outcome, folder: Path) -> str:
    """Return the row in the column order of the paper's Table 1, and what surrounds it."""
    columns = {
        "": _named(settings),
        "IDF": f"[{metrics['idf_min']:g}, {metrics['idf_max']:g}]",
        "tau": _or_na(metrics["tau"], "g"),
        "k": _or_na(metrics["k"], "d"),
        "l": _or_na(metrics["l"], "d"),
        "#Spots": f"{metrics['signatures']:,}",
        "MB": f"{metrics['memory_mib']:.1f}",
        "Sort/Hash(msec)": f"{metrics['sort_hash_ms']:,.0f}",
        "Clust.(msec)": f"{metrics['cluster_ms']:,.0f}",
        "Total(msec)": f"{metrics['total_ms']:,.0f}",
        "Prec.": _or_na(metrics["precision"], ".3f"),
        "Rec.": _or_na(metrics["recall"], ".3f"),
        "F1": _or_na(metrics["f1"], ".3f"),
    }
    widths = [max(len(name), len(value)) for name, value in columns.items()]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (columns, columns.values())
    ]
    return "\n".join(["", *lines, "", *_remarks(metrics, outcome), f"results: {_shown(folder)}", *_next(metrics)])


def _shown(folder: Path) -> Path:
    """Return the folder as seen from here, where it lies below."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _named(settings: Settings) -> str:
    """Return the matcher's label, with its signatures unless those are its own."""
    own = "spotsigs" in settings.names["matcher"] and settings.names["signature"] == "spotsigs"
    own |= settings.matcher.measure == "lcs"  # reads the texts
    return settings.matcher.label if own else f"{settings.matcher.label} on {settings.names['signature']}"


def _or_na(value: float | None, form: str) -> str:
    return "n/a" if value is None or value != value else format(value, form)


def _remarks(metrics: dict[str, Any], outcome: Outcome) -> list[str]:
    seconds = metrics["parse_ms"] / 1000
    lines = [
        f"{_count(metrics['documents'], 'document')}, {_count(metrics['pairs'], 'pair')} in "
        f"{_count(metrics['clusters'], 'cluster')}; "
        f"read and extracted in {seconds:.1f} s, peak memory while matching {metrics['peak_rss_mib']:,.0f} MiB"
    ]
    if outcome.quality and "f1" in outcome.quality.intervals:
        low, high = outcome.quality.intervals["f1"]
        lines.append(
            f"F1 95 % interval {low:.3f} to {high:.3f} (clusters resampled); macro F1 {metrics['macro_f1']:.3f}"
        )
    empty = metrics["documents"] - metrics["documents_matched"]
    if empty:
        lines.append(f"{_count(empty, 'document')} with too few signatures to be matched; their pairs count as missed")
    if metrics["skipped"]:
        lines.append(f"{_count(metrics['skipped'], 'record')} could not be read: see skipped.csv")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _next(metrics: dict[str, Any]) -> list[str]:
    if metrics["precision"] is None:
        return ["next: look at the clusters with page=true, or try other thresholds with -m tau=0.3,0.44,0.6"]
    return ["next: try other thresholds with -m tau=0.3,0.44,0.6 or another matcher, as in matcher=brute_force"]
