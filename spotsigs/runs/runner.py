"""One run: prepare, match, write the run's folder, and summarize the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from spotsigs import terminal
from spotsigs.arrays.row_blocks import own
from spotsigs.clustering.decisions import Keep, unreadable_dates
from spotsigs.clustering.tables import write_tables
from spotsigs.contracts import CopyableCollection, VectorCollection
from spotsigs.errors import counted, require
from spotsigs.evaluation.metrics import Quality
from spotsigs.formats.writers import copy_errors, prepare_copy, publish_copy, require_free, withdraw_copy
from spotsigs.output_files import publishing, write_csv, write_json, write_text, writing
from spotsigs.records import Document
from spotsigs.runs.pipeline import Outcome, Reuse, outcome_of, readable_texts
from spotsigs.runs.provenance import MIB, TreeMemory, provenance
from spotsigs.runs.settings import Settings
from spotsigs.runs.stores import ask, discard, own_store
from spotsigs.runs.warnings import near_tau, warning
from spotsigs.signatures.extract import is_readable, name_hash, unique_names
from spotsigs.spelling import is_command, option
from spotsigs.storage.atomic import claimed, locked, staging_folder
from spotsigs.storage.locations import local_folder
from spotsigs.text.size_limits import BUDGET_PAGE, pages_up_to

COMPLETE = "metrics.json"
"""The file that is written last: a folder without it does not contain all results of one run."""

OPTIONAL = ("skipped.csv", "undated.csv", "clusters.html", "histogram.csv")


def run(
    settings: Settings,
    folder: str | Path,
    *,
    contended: bool = False,
    reuse: Reuse | None = None,
    about: Mapping[str, str] | None = None,
    say: Callable[[str], object] = print,
) -> str:
    """Run one configuration, replace the results in its folder at once, and return the `summary`.

    Parameters
    ----------
    settings, folder
        Configuration of the run, and its folder, on this machine.
    contended : bool
        Other jobs run at the same time, so that the times of this one do not compare.
    reuse : Reuse, optional
        Results of other runs on the same signatures.
    about : mapping of str to str, optional
        Files with the configuration of the run, by their names in the folder ``.hydra``.
    say : callable
        Receives messages on the resources of a run on disk.
    """
    if settings.query is not None:
        return ask(settings)
    copy, folder = _free_copy(settings), local_folder(folder)
    with ExitStack() as folders:
        if copy is not None:
            folders.enter_context(_claimed(copy))
        with writing(folder):
            folders.enter_context(locked(folder))
        with ExitStack() as stack, ExitStack() as undo:
            with publishing(folder, COMPLETE, OPTIONAL) as new:
                with _within_budget(settings) as memory:
                    outcome = outcome_of(settings, folder, say, reuse)
                    if settings.store is not None:
                        _record_kept(settings.store, outcome)
                    if copy is not None:
                        with copy_errors(copy):
                            temporary = stack.enter_context(staging_folder(copy))
                            _write_copy(outcome, settings, temporary)
                    write_outcome(new, outcome, settings)
                    if settings.page:
                        write_page(new, outcome, settings, say)
                peak = outcome.peak_rss_bytes if memory is None else memory.peak_bytes
                metrics = measured(outcome, settings, peak)
                _finish(new, metrics, about, seed=settings.seed, input_sha256=outcome.checksum, contended=contended)
                stack.enter_context(terminal.uninterrupted())  # copy and results are published together
                if copy is not None:
                    with copy_errors(copy):
                        undo.callback(withdraw_copy, temporary, copy)
                        publish_copy(temporary, copy, overwrite=settings.overwrite)
            undo.pop_all()
        if settings.memory is not None and settings.store is None:
            discard(own_store(settings, folder))
    suggestion = outcome.suggestion
    return (f"\n{suggestion.reason}\n" if suggestion else "") + summary(metrics, settings, outcome, folder)


@contextmanager
def _within_budget(settings: Settings) -> Iterator[TreeMemory | None]:
    """Bound the pages of a run on disk, and watch the memory of all its processes."""
    if settings.memory is None:
        yield None
        return
    with TreeMemory() as memory, pages_up_to(BUDGET_PAGE):
        yield memory


def _finish(folder: Path, metrics: Mapping[str, Any], about: Mapping[str, str] | None, **run: Any) -> None:
    for name, text in (about or {}).items():
        write_text(folder / ".hydra" / name, text)
    write_json(folder / "run.json", provenance() | run)
    write_json(folder / COMPLETE, metrics)


@contextmanager
def _claimed(copy: Path) -> Iterator[None]:
    """Refuse a copy that another run writes."""
    with ExitStack() as stack:
        with copy_errors(copy):
            free = stack.enter_context(claimed(copy))
        require(free, f"another run writes the copy {copy}; wait for it, or name another folder")
        yield


def _free_copy(settings: Settings) -> Path | None:
    """Return the path of the copy of the collection, if one is requested and can be written."""
    if settings.copy is None:
        return None
    require(
        isinstance(settings.collection, CopyableCollection),
        f"{option('data', settings.names['data'])} cannot be copied; use kept.csv",
    )
    return require_free(settings.copy, overwrite=settings.overwrite)


def measured(outcome: Outcome, settings: Settings, peak: int) -> dict[str, Any]:
    """Return the run's figures: sizes, quality (null without truth), memory, times in ms, choices."""
    matched, cohesion, decisions = outcome.matched, outcome.cohesion, outcome.decisions
    kept = decisions.kept[matched.new_from :]
    copies, pairs, matcher, vectors = matched.copies, matched.pairs, outcome.matcher, matched.vectors
    contents = int(np.count_nonzero(own(copies.content)))
    seconds = {"sort_hash": 0.0, "cluster": 0.0, **pairs.seconds}
    quality = asdict(outcome.quality) if outcome.quality else dict.fromkeys(f.name for f in fields(Quality))
    return {
        "documents": len(vectors),
        "documents_matched": int(np.count_nonzero(matched.compared())),
        "documents_in_shingles": outcome.in_shingles,
        "copies_content": len(copies) - contents,
        "copies_text": contents - int(np.count_nonzero(copies.distinct)),
        "removed": int(np.count_nonzero(~kept)),
        "kept": int(np.count_nonzero(kept)),
        "skipped": len(matched.skipped),
        "signatures": vectors.n_signatures,
        "occurrences": vectors.n_occurrences,
        "pairs": len(pairs),
        "clusters": len(cohesion.labels),
        "largest_cluster": int(decisions.clusters.sizes.max(initial=0)),
        "min_similarity": _over(np.nanmin, cohesion.minimum),
        "mean_similarity": _over(np.nanmean, cohesion.mean),
        "pairs_near_tau": near_tau(pairs.chunks(), matcher.threshold),
        "giant_chains": int(np.count_nonzero(cohesion.chain)),
        "new_documents": len(vectors) - matched.new_from,
        **quality,
        "memory_mib": matcher.memory_bytes(vectors) / MIB,
        "peak_mb": peak / 1e6,
        "parse_ms": seconds["extract"] * 1000,
        "sort_hash_ms": seconds["sort_hash"] * 1000,
        "cluster_ms": seconds["cluster"] * 1000,
        "total_ms": (seconds["sort_hash"] + seconds["cluster"]) * 1000,
        "joined_at": outcome.joined_at,
        "stage_seconds": dict(pairs.seconds),
        "counters": dict(pairs.counters),
        "tau": matcher.threshold,
        "idf_min": settings.idf_filter.idf_min,
        "idf_max": settings.idf_filter.idf_max,
        **dict(zip("kl", matcher.hash_tables, strict=True)),
        "memory_budget_mb": None if settings.memory is None else settings.memory / 1e6,
        "exact": matcher.exact,
        "verified": matcher.verified,
        "data": settings.names["data"],
        "text": settings.names["text"],
        "signature": settings.names["signature"],
        "matcher": settings.names["matcher"],
        "label": outcome.label,
    }


def _over(function: Callable[[Any], Any], values: Any) -> float | None:
    """Return a statistic of the values that are known; None without any."""
    return None if np.isnan(values).all() else float(function(values))


def write_outcome(folder: Path, outcome: Outcome, settings: Settings) -> None:
    """Write all tables, and those of `OPTIONAL` that have rows."""
    matched = outcome.matched
    with writing(folder):
        write_tables(
            folder, matched.doc_ids, matched.pairs, outcome.decisions, outcome.cohesion, new_from=matched.new_from
        )
    if len(matched.skipped):
        names = unique_names(lambda: chain(matched.doc_ids, (record.id for record in matched.skipped)))
        own = islice(names, len(matched.doc_ids), None)  # different from the name of every document
        rows = ((name, record.reason) for name, record in zip(own, matched.skipped, strict=True))
        write_csv(folder / "skipped.csv", ("doc", "reason"), rows)
    if settings.keep is Keep.newest:
        undated = unreadable_dates(matched.doc_ids, matched.signatures.dates)
        if (first := next(undated, None)) is not None:
            write_csv(folder / "undated.csv", ("doc", "date"), chain([first], undated))
    if outcome.suggestion:
        edges = outcome.suggestion.edges.tolist()
        bins = zip(edges[:-1], edges[1:], outcome.suggestion.counts.tolist(), strict=True)
        write_csv(folder / "histogram.csv", ("similarity_from", "similarity_to", "pairs"), bins)


def _record_kept(store: str, outcome: Outcome) -> None:
    """Record in a store which of its documents are kept."""
    from spotsigs.outofcore.pipeline import put_decided

    tau = outcome.matcher.threshold
    assert tau is not None  # every matcher with a form on disk has a threshold
    put_decided(store, outcome.decisions.kept, tau)


def _write_copy(outcome: Outcome, settings: Settings, temporary: Path) -> None:
    """Write the copy of the collection into a temporary folder."""
    matched, added_from = outcome.matched, outcome.added_from
    failed = np.unique(np.fromiter((name_hash(record.id) for record in matched.skipped), np.uint64))

    def judged(document: Document) -> bool:
        name = np.uint64(name_hash(document.id))
        position = int(np.searchsorted(failed, name))
        return (
            position == len(failed)
            or failed[position] != name
            or is_readable(document, settings.text, settings.signature)
        )

    kept = outcome.decisions.kept[added_from:]
    prepare_copy(settings.collection, matched.doc_ids[added_from:], kept, temporary, judged=judged)


def write_page(folder: Path, outcome: Outcome, settings: Settings, say: Callable[[str], object]) -> None:
    """Write the page of clusters."""
    from spotsigs.reports.cluster_page import write_cluster_page

    matched = outcome.matched
    pairs = matched.pairs.in_memory()
    if pairs is None:
        excess = f"{len(matched.pairs):,} pairs do not fit into {option('memory', settings.memory)}"
        say(f"clusters.html is left out: {excess}")
        return
    write_cluster_page(
        folder / "clusters.html",
        matched.doc_ids,
        pairs,
        outcome.decisions.clusters,
        readable_texts(settings, matched.new_from),
        scheme=settings.signature,
        matched=matched.signatures_of,
    )


def summary(metrics: dict[str, Any], settings: Settings, outcome: Outcome, folder: Path) -> str:
    """Return the numbers of removed and kept pages, remarks on them, and the path of the results."""
    remarks = _remarks(metrics, outcome, settings, folder)
    return "\n".join(["", _answer(metrics, settings, folder), "", *remarks, f"results: {shown_path(folder)}"])


def _meaning(metrics: Mapping[str, Any]) -> str:
    """Return the meaning of precision and recall as one sentence."""
    precision, recall = (f"{metrics[key]:.1%}".replace("%", " %") for key in ("precision", "recall"))
    return f"of the reported pairs, {precision} are duplicates; of the pairs of duplicates, {recall} are reported"


def _answer(metrics: dict[str, Any], settings: Settings, folder: Path) -> str:
    """Return the numbers of removed and kept pages, and the path of the result."""
    removed, kept = metrics["removed"], metrics["kept"]
    pages = removed + kept  # without earlier pages of a store
    share = removed / pages if pages else 0
    where = (
        shown_path(folder / "kept.csv") if settings.copy is None else f"{shown_path(Path(settings.copy).absolute())}/"
    )
    return f"{counted(pages, 'page')}, {removed:,} removed ({share:.1%}), {kept:,} kept -> {where}".replace("%)", " %)")


def shown_path(folder: Path) -> Path:
    """Return the folder relative to the working directory if it is below it."""
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _remarks(metrics: dict[str, Any], outcome: Outcome, settings: Settings, folder: Path) -> list[str]:
    seconds = metrics["parse_ms"] / 1000
    lines = [_meaning(metrics)] if metrics["f1"] is not None else []
    lines += [
        f"{counted(metrics['documents'], 'document')}, {counted(metrics['pairs'], 'pair')} in "
        f"{counted(metrics['clusters'], 'cluster')}; "
        f"read and extracted in {seconds:.1f} s, {_peak(metrics)}"
    ]
    if metrics["new_documents"] < metrics["documents"]:
        lines.append(f"{counted(metrics['new_documents'], 'new document')}; only pairs with at least one are reported")
    if metrics["min_similarity"] is not None:
        lines.append(
            f"largest cluster {counted(metrics['largest_cluster'], 'document')}; similarity inside clusters at least "
            f"{metrics['min_similarity']:.3f}, mean {metrics['mean_similarity']:.3f}"
        )
    if found := warning(
        settings,
        metrics["tau"],
        outcome.decisions.clusters,
        outcome.cohesion,
        metrics["pairs_near_tau"],
        listed=outcome.matched.leaders is None,
    ):
        lines.append(found)
    if metrics["stories"]:
        lines.append(
            f"{counted(metrics['stories_lost'], 'story', 'stories')} of {metrics['stories']:,} lost "
            f"({metrics['stories_lost'] / metrics['stories']:.1%}), {metrics['duplicates_left']:,} of "
            f"{counted(metrics['duplicates'], 'duplicate')} left "
            f"({metrics['duplicates_left'] / max(metrics['duplicates'], 1):.1%}), "
            f"B-cubed F1 {metrics['bcubed_f1']:.3f}".replace("%)", " %)")
        )
    if outcome.quality and "f1" in outcome.quality.intervals:
        low, high = outcome.quality.intervals["f1"]
        lines.append(
            f"F1 95 % interval {low:.3f} to {high:.3f} (clusters resampled); macro F1 {metrics['macro_f1']:.3f}"
        )
    empty = metrics["documents"] - metrics["documents_matched"]
    if empty:
        missed = "" if outcome.quality is None else "; their pairs count as missed"
        lines.append(f"{counted(empty, 'document')} with too few signatures to be compared: see kept.csv{missed}")
    if shingled := metrics["documents_in_shingles"]:
        lines.append(f"{counted(shingled, 'document')} with few or no spot signatures: compared by shingles")
    if copies := metrics["copies_content"] + metrics["copies_text"]:
        lines.append(
            f"{counted(copies, 'copy', 'copies')}: {metrics['copies_content']:,} of identical content, "
            f"{metrics['copies_text']:,} of identical text"
        )
    if outcome.quality is None and not is_command():
        how = "" if isinstance(settings.collection, VectorCollection) else settings.collection.truth_by
        lines.append("no precision or recall: the collection has no labels of duplicates" + (how and f"; {how}"))
    if metrics["skipped"]:
        lines.append(f"{counted(metrics['skipped'], 'record')} could not be read: see skipped.csv")
    if (folder / "undated.csv").exists():
        lines.append("dates that cannot be read count as the oldest: see undated.csv")
    return lines


def _peak(metrics: dict[str, Any]) -> str:
    peak = f"{metrics['peak_mb']:,.0f}"
    if metrics["memory_budget_mb"] is None:
        return f"peak memory while matching {peak} MB"
    return f"peak memory of all processes {peak} of {metrics['memory_budget_mb']:,.0f} MB"
