"""One run: prepare, match, write the run's folder, and say what came out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from spotsigs.data.formats.writers import require_free, write_cluster_list, write_copy, write_lists
from spotsigs.disk.atomic import locked
from spotsigs.disk.store import Renumbered
from spotsigs.errors import InputError, require
from spotsigs.experiments import telling
from spotsigs.experiments.output_files import publishing, write_csv, write_json, write_text, writing
from spotsigs.experiments.run.pipeline import Outcome, Prepared, match, prepare
from spotsigs.experiments.run.provenance import TreeMemory, provenance
from spotsigs.experiments.settings import AUTO, Settings
from spotsigs.judging.clusters import GIANT
from spotsigs.judging.keep import Decisions, decide
from spotsigs.judging.metrics import Quality
from spotsigs.judging.parquet import write_clusters, write_pairs
from spotsigs.judging.threshold import FLOOR, Suggestion, suggest
from spotsigs.records import CollectionScheme, CopyableCollection, Document, SignatureScheme, VectorCollection
from spotsigs.signatures.extract import is_readable
from spotsigs.text.limits import BUDGET_PAGE, pages_up_to

MIB = 1024 * 1024

COMPLETE = "metrics.json"
"""The file that comes last: a folder without it does not hold all results of one run."""

QUALITY_COLUMNS = {"Prec.": "precision", "Rec.": "recall", "F1": "f1"}
"""Columns of the paper's row that a collection without truth does not have."""

OPTIONAL = ("skipped.csv", "clusters.html", "histogram.csv")


def run(
    settings: Settings,
    folder: str | Path,
    *,
    contended: bool = False,
    about: Mapping[str, str] | None = None,
    say: Callable[[str], object] = print,
) -> str:
    """Run one configuration and put its results into its folder, ``metrics.json`` last.

    Nothing of a former run there is touched before everything is written, and no two runs write at once.

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
    say : callable
        Called with what a run on disk is going to take.

    Returns
    -------
    str
        The row in the paper's columns, where the folder lies, and what to do next.
    """
    if settings.query is not None:
        from spotsigs.experiments.run.large import ask

        return ask(settings)
    if settings.copy is not None:
        require(
            isinstance(settings.collection, CopyableCollection),
            f"data={settings.names['data']} cannot be copied; use kept.csv",
        )
        require_free(settings.copy)
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if settings.memory is not None:
        with locked(folder):  # its store lies there
            return _run_on_disk(settings, folder, contended, about or {}, say)
    settings, outcome, suggestion = matched(settings)
    with ExitStack() as undo:
        decisions = decided(outcome, settings, undo)
        with locked(folder), publishing(folder, COMPLETE, OPTIONAL) as new:
            write_outcome(new, outcome)
            write_decisions(new, outcome, decisions, settings, say)
            if suggestion:
                write_histogram(new, suggestion)
            metrics = _finish(new, outcome, decisions, settings, contended, about or {})
        undo.pop_all()
    return (f"\n{suggestion}" if suggestion else "") + told(metrics, settings, outcome, folder)


def _run_on_disk(
    settings: Settings, folder: Path, contended: bool, about: Mapping[str, str], say: Callable[[str], object]
) -> str:
    from spotsigs.experiments.run.large import discard, matched_on_disk, own_store

    with ExitStack() as undo:
        with publishing(folder, COMPLETE, OPTIONAL) as new:
            with TreeMemory() as memory, pages_up_to(BUDGET_PAGE):
                telling.doing("matching on disk")
                outcome = matched_on_disk(settings, folder, say)
                decisions = decided(outcome, settings, undo)
                write_outcome(new, outcome)
                write_decisions(new, outcome, decisions, settings, say)
            outcome = replace(outcome, peak_rss_bytes=memory.peak_bytes)
            metrics = _finish(new, outcome, decisions, settings, contended, about)
        undo.pop_all()
    if settings.store is None:
        discard(own_store(settings, folder))  # the results stand on their own
    return told(metrics, settings, outcome, folder)


def _finish(
    folder: Path,
    outcome: Outcome,
    decisions: Decisions,
    settings: Settings,
    contended: bool,
    about: Mapping[str, str],
) -> dict[str, Any]:
    for name, text in about.items():
        write_text(folder / ".hydra" / name, text)
    metrics = measured(outcome, decisions, settings)
    write_json(
        folder / "run.json",
        provenance() | {"seed": settings.seed, "input_sha256": outcome.prepared.checksum, "contended": contended},
    )
    write_json(folder / COMPLETE, metrics)
    return metrics


def matched(settings: Settings) -> tuple[Settings, Outcome, Suggestion | None]:
    """Match in memory; return the settings with the threshold that was taken, and what suggested it."""
    telling.doing("reading")
    prepared = prepare(
        settings.collection,
        settings.text,
        settings.signature,
        settings.idf_filter,
        settings.engine,
        sets=settings.sets,
        strict=settings.strict,
        sameness=settings.copies,
    )
    telling.doing("matching")
    suggestion = suggested(prepared, settings.signature) if settings.auto else None
    if suggestion is not None:
        settings = replace(settings, tau=suggestion.tau, matcher=settings.matcher.at(suggestion.tau))
    return settings, match(prepared, settings.matcher, settings.clusters, settings.keep), suggestion


def suggested(prepared: Prepared, signature: SignatureScheme | None) -> Suggestion:
    """Return the threshold that the similarities of all pairs suggest.

    Raises
    ------
    InputError
        If they suggest none, and the signatures have no default.
    """
    from spotsigs.matching.tight import self_join

    suggestion = suggest(self_join(prepared.corpus.vectors, FLOOR).similarity)
    if suggestion.tau is None and isinstance(signature, CollectionScheme):
        return suggestion.falling_back()
    if suggestion.tau is None:
        raise InputError(f"tau={AUTO} finds no threshold here: {suggestion.reason}; give one, as in tau=0.44")
    return suggestion


def write_histogram(folder: Path, suggestion: Suggestion) -> None:
    """Write ``histogram.csv``, what a suggested threshold stands on."""
    edges = suggestion.edges.tolist()
    rows = zip(edges[:-1], edges[1:], suggestion.counts.tolist(), strict=True)
    write_csv(folder / "histogram.csv", ("similarity_from", "similarity_to", "pairs"), rows)


def measured(outcome: Outcome, decisions: Decisions, settings: Settings) -> dict[str, Any]:
    """Return the run's figures: sizes, quality (null without truth), memory (the paper's in MiB), times, choices."""
    prepared, pairs, cohesion = outcome.prepared, outcome.pairs, outcome.cohesion
    copies = prepared.copies
    vectors = prepared.corpus.vectors
    several = outcome.clusters.sizes > 1
    seconds = {"sort_hash": 0.0, "cluster": 0.0, **pairs.seconds}
    quality = asdict(outcome.quality) if outcome.quality else dict.fromkeys(f.name for f in fields(Quality))
    return {
        "documents": len(vectors),
        "documents_matched": int(np.count_nonzero(prepared.compared())),
        "boilerplate": int(np.count_nonzero(prepared.boilerplate())),
        "documents_in_shingles": prepared.in_shingles,
        "copies_content": len(copies) - len(np.unique(copies.content)),
        "copies_text": len(np.unique(copies.content)) - int(np.count_nonzero(copies.distinct)),
        "removed": int(np.count_nonzero(~decisions.kept)),
        "kept": int(np.count_nonzero(decisions.kept[prepared.new_from :])),
        "skipped": len(prepared.skipped),
        "signatures": vectors.n_signatures,
        "occurrences": vectors.n_occurrences,
        "pairs": len(pairs),
        "clusters": int(np.count_nonzero(several)),
        "largest_cluster": int(outcome.clusters.sizes.max(initial=0)),
        "min_similarity": _over(np.nanmin, cohesion.minimum[several]),
        "mean_similarity": _over(np.nanmean, cohesion.mean[several]),
        "giant_chains": int(np.count_nonzero(cohesion.chain)),
        "new_documents": len(vectors) - prepared.new_from,
        **quality,
        "memory_mib": settings.matcher.memory_bytes(vectors) / MIB,
        "peak_mb": outcome.peak_rss_bytes / 1e6,
        "parse_ms": prepared.parse_seconds * 1000,
        "sort_hash_ms": seconds["sort_hash"] * 1000,
        "cluster_ms": seconds["cluster"] * 1000,
        "total_ms": (seconds["sort_hash"] + seconds["cluster"]) * 1000,
        "stage_seconds": dict(pairs.seconds),
        "counters": dict(pairs.counters),
        "tau": settings.matcher.threshold,
        "idf_min": settings.idf_filter.idf_min,
        "idf_max": settings.idf_filter.idf_max,
        **dict(zip("kl", settings.matcher.hash_tables or (None, None), strict=True)),
        "memory_budget_mb": None if settings.memory is None else settings.memory / 1e6,
        "exact": settings.matcher.exact,
        "verified": settings.matcher.verified,
        "data": settings.names["data"],
        "text": settings.names["text"],
        "signature": settings.names["signature"],
        "matcher": settings.names["matcher"],
    }


def _over(function: Callable[[Any], Any], values: Any) -> float | None:
    """Return a statistic of the values that are known; None without any."""
    return None if np.isnan(values).all() else float(function(values))


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write ``pairs.parquet``, ``clusters.parquet``, ``clusters.csv`` and ``skipped.csv``."""
    doc_ids = outcome.prepared.doc_ids
    with writing(folder):
        write_pairs(folder / "pairs.parquet", doc_ids, outcome.pairs.chunks(), outcome.pairs.overlap)
        write_clusters(folder / "clusters.parquet", doc_ids, outcome.clusters, outcome.cohesion)
        write_cluster_list(folder / "clusters.csv", doc_ids, outcome.clusters, outcome.cohesion)
    skipped = ((record.id, record.reason) for record in outcome.prepared.skipped)
    if len(outcome.prepared.skipped):
        write_csv(folder / "skipped.csv", ("doc", "reason"), skipped)


def _hash(name: str) -> int:
    return xxhash.xxh64_intdigest(name.encode("utf-8", "surrogatepass"))


def decided(outcome: Outcome, settings: Settings, undo: ExitStack) -> Decisions:
    """Decide which documents stay, and write the copy of the collection on request: before any former result goes.

    Where the results cannot be written behind it, `undo` removes the copy, so that the same command can be repeated.
    """
    telling.doing("writing")
    doc_ids, new_from = outcome.prepared.doc_ids, outcome.prepared.new_from
    decisions = decide(
        outcome.pairs.chunks(),
        outcome.clusters,
        settings.keep,
        copies=outcome.prepared.copies,
        compared=None if settings.matcher.reads_texts else outcome.prepared.compared(),
        boilerplate=outcome.prepared.boilerplate(),
    )
    if settings.copy is not None:
        new = Renumbered(doc_ids, np.arange(new_from, len(doc_ids)))
        failed = np.unique(np.fromiter((_hash(record.id) for record in outcome.prepared.skipped), np.uint64))

        def judged(document: Document) -> bool:
            name = np.uint64(_hash(document.id))
            place = int(np.searchsorted(failed, name))
            return (
                place == len(failed)
                or failed[place] != name
                or is_readable(document, settings.text, settings.signature)
            )

        write_copy(settings.collection, new, decisions.kept[new_from:], settings.copy, judged=judged)
        undo.callback(shutil.rmtree, settings.copy, ignore_errors=True)
    return decisions


def write_decisions(
    folder: Path, outcome: Outcome, decisions: Decisions, settings: Settings, say: Callable[[str], object]
) -> None:
    """Write ``kept.csv`` and ``removed.csv``, and on request the page of clusters."""
    prepared, doc_ids = outcome.prepared, outcome.prepared.doc_ids
    write_lists(decisions, doc_ids, folder, new_from=prepared.new_from)
    if settings.page:
        from spotsigs.experiments.show.cluster_page import write_cluster_page

        pairs = outcome.pairs.in_memory()
        if pairs is None:
            say(f"clusters.html is left out: {len(outcome.pairs):,} pairs do not fit into memory={settings.memory}")
            return
        write_cluster_page(
            folder / "clusters.html",
            doc_ids,
            pairs,
            outcome.clusters,
            prepared.texts(),
            scheme=settings.signature,
            matched=prepared.signatures,
        )


def told(metrics: dict[str, Any], settings: Settings, outcome: Outcome, folder: Path) -> str:
    """Return the row in the column order of the paper's Table 1, and what surrounds it."""
    columns = {
        "": _named(settings, outcome.label),
        "IDF": f"[{metrics['idf_min']:g}, {metrics['idf_max']:g}]",
        "tau": _or_na(metrics["tau"], "g"),
        "k": _or_na(metrics["k"], "d"),
        "l": _or_na(metrics["l"], "d"),
        "#Spots": f"{metrics['signatures']:,}",
        "MiB": f"{metrics['memory_mib']:.1f}",
        "Sort/Hash(msec)": f"{metrics['sort_hash_ms']:,.0f}",
        "Clust.(msec)": f"{metrics['cluster_ms']:,.0f}",
        "Total(msec)": f"{metrics['total_ms']:,.0f}",
    }
    if outcome.quality is not None:
        columns |= {title: _or_na(metrics[key], ".3f") for title, key in QUALITY_COLUMNS.items()}
    widths = [max(len(name), len(value)) for name, value in columns.items()]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (columns, columns.values())
    ]
    said = [_answer(metrics, settings, folder), "", *lines, "", *_remarks(metrics, outcome, settings)]
    return "\n".join(["", *said, f"results: {_shown(folder)}", *_next(metrics)])


def _answer(metrics: dict[str, Any], settings: Settings, folder: Path) -> str:
    """Say what goes, what stays, and where that lies: what most users ran it for."""
    removed, kept = metrics["removed"], metrics["kept"]
    pages = removed + kept  # those of now; a store's earlier ones only if they go
    share = removed / pages if pages else 0
    where = _shown(folder / "kept.csv") if settings.copy is None else f"{_shown(Path(settings.copy).absolute())}/"
    return f"{_count(pages, 'page')}, {removed:,} removed ({share:.1%}), {kept:,} kept -> {where}".replace("%)", " %)")


def _shown(folder: Path) -> Path:
    """Return the folder as seen from here, where it lies below."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _named(settings: Settings, label: str) -> str:
    """Return the label of the method that ran, with its signatures unless those are its own."""
    own = "spotsigs" in settings.names["matcher"] and settings.names["signature"] == "spotsigs"
    own |= settings.matcher.reads_texts
    return label if own else f"{label} on {settings.names['signature']}"


def _or_na(value: float | None, form: str) -> str:
    return "n/a" if value is None or value != value else format(value, form)


def _remarks(metrics: dict[str, Any], outcome: Outcome, settings: Settings) -> list[str]:
    seconds = metrics["parse_ms"] / 1000
    lines = [
        f"{_count(metrics['documents'], 'document')}, {_count(metrics['pairs'], 'pair')} in "
        f"{_count(metrics['clusters'], 'cluster')}; "
        f"read and extracted in {seconds:.1f} s, {_peak(metrics)}"
    ]
    if metrics["new_documents"] < metrics["documents"]:
        lines.append(f"{_count(metrics['new_documents'], 'new document')}; only pairs with at least one are reported")
    if metrics["min_similarity"] is not None:
        lines.append(
            f"largest cluster {_count(metrics['largest_cluster'], 'document')}; similarity inside clusters at least "
            f"{metrics['min_similarity']:.3f}, mean {metrics['mean_similarity']:.3f}"
        )
    if metrics["giant_chains"]:
        chains = _count(metrics["giant_chains"], "giant chain")
        lines.append(
            f"{chains} ({GIANT} documents or more, most of whose pairs do not reach tau): see clusters.csv; "
            "clusters=anchored cuts them up"
        )
    if outcome.quality and "f1" in outcome.quality.intervals:
        low, high = outcome.quality.intervals["f1"]
        lines.append(
            f"F1 95 % interval {low:.3f} to {high:.3f} (clusters resampled); macro F1 {metrics['macro_f1']:.3f}"
        )
    if metrics["boilerplate"]:
        say = _count(metrics["boilerplate"], "document says", "documents say")
        lines.append(f"{say} nothing but what many sites say: boilerplate in kept.csv")
    empty = metrics["documents"] - metrics["documents_matched"] - metrics["boilerplate"]
    if empty:
        missed = "" if outcome.quality is None else "; their pairs count as missed"
        lines.append(f"{_count(empty, 'document')} with too few signatures to be compared: see kept.csv{missed}")
    if shingled := metrics["documents_in_shingles"]:
        lines.append(
            f"{_count(shingled, 'document')} with hardly any known stopwords: compared by shingles of "
            f"{settings.signature.c} tokens"
        )
    if copies := metrics["copies_content"] + metrics["copies_text"]:
        lines.append(
            f"{_count(copies, 'copy', 'copies')}: {metrics['copies_content']:,} of identical content, "
            f"{metrics['copies_text']:,} of identical text"
        )
    if outcome.quality is None:
        how = "" if isinstance(settings.collection, VectorCollection) else settings.collection.truth_by
        lines.append("no precision or recall: nothing says which documents are duplicates" + (how and f"; {how}"))
    if metrics["skipped"]:
        lines.append(f"{_count(metrics['skipped'], 'record')} could not be read: see skipped.csv")
    return lines


def _peak(metrics: dict[str, Any]) -> str:
    peak = f"{metrics['peak_mb']:,.0f}"
    if metrics["memory_budget_mb"] is None:
        return f"peak memory while matching {peak} MB"
    return f"peak memory of all processes {peak} of {metrics['memory_budget_mb']:,.0f} MB"


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _next(metrics: dict[str, Any]) -> list[str]:
    if metrics["precision"] is None:
        return ["next: look at the clusters with page=true, or try other thresholds with -m tau=0.3,0.44,0.6"]
    return ["next: try other thresholds with -m tau=0.3,0.44,0.6 or another matcher, as in matcher=brute_force"]
