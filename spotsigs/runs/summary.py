"""The summary of a run, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spotsigs.contracts import VectorCollection
from spotsigs.errors import counted, option, spelled
from spotsigs.method import Method
from spotsigs.options import LANGUAGE, SPELLINGS, Door
from spotsigs.runs.result import FEW, Result
from spotsigs.runs.stages import Run
from spotsigs.runs.warnings import text_warning, warning
from spotsigs.signatures.boilerplate import Boilerplate
from spotsigs.signatures.languages import AUTO
from spotsigs.signatures.sections import SECTION_TAU
from spotsigs.storage.locations import NOT_WRITTEN, PRINTED, as_path, is_remote

LANGUAGES = 6
"""How many languages the summary names, the most frequent ones."""


def summary(result: Result, run: Run, door: Door) -> str:
    """Return the numbers of removed and kept pages, remarks on them, and the path of the results, for a door."""
    where = f"results: {shown_path(run.output.folder)}"
    if not run.output.tables:
        where = f"no tables are kept: name their folder by {option('results')}"
    lines = "\n".join(["", _answer(result, run), "", *_remarks(result, run, door), where])
    return spelled(lines, SPELLINGS[door])


def _answer(result: Result, run: Run) -> str:
    """Return the numbers of removed and kept pages, and the path of the result."""
    removed, kept = result.metrics["removed"], result.metrics["kept"]
    pages = removed + kept  # without earlier pages of a store
    share = removed / pages if pages else 0
    if run.output.copy == PRINTED:
        where = "standard output"
    elif run.output.copy in (None, NOT_WRITTEN):
        where = str(shown_path(run.output.folder / "kept.csv"))
    else:
        where = f"{shown_path(as_path(run.output.copy))}/"
    return f"{counted(pages, 'page')}, {removed:,} removed ({share:.1%}), {kept:,} kept -> {where}".replace("%)", " %)")


def shown_path(folder: Path) -> Path:
    """Return the folder relative to the working directory if it is below it."""
    if is_remote(folder):
        return folder
    folder = folder.absolute()
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def _remarks(result: Result, run: Run, door: Door) -> list[str]:
    metrics, method, output = result.metrics, result.method, run.output
    lines = [_setting(method), *_languages(result)] if door is Door.command else []
    if metrics["f1"] is not None:
        precision, recall = (f"{metrics[key]:.1%}".replace("%", " %") for key in ("precision", "recall"))
        shares = f"{precision} are duplicates; of the pairs of duplicates, {recall} are reported"
        lines.append(f"of the reported pairs, {shares}")
    lines.append(
        f"{counted(metrics['documents'], 'document')}, {counted(metrics['pairs'], 'pair')} in "
        f"{counted(metrics['clusters'], 'cluster')}; "
        f"read and extracted in {metrics['parse_ms'] / 1000:.1f} s, {peak_memory(metrics)}"
    )
    if old := metrics["documents"] - metrics["new_documents"]:
        new = f"{counted(metrics['new_documents'], 'new document')}; only pairs with at least one are reported"
        lines.append(new if run.against is None else _removed_for_reference(result, old))
    if metrics["min_similarity"] is not None:
        lines.append(
            f"largest cluster {counted(metrics['largest_cluster'], 'document')}; similarity inside clusters at least "
            f"{metrics['min_similarity']:.3f}, mean {metrics['mean_similarity']:.3f}"
        )
    if result.decisions.in_sections:
        lines.append(
            "of two pages in the same folder, one is removed if the lower bound of their similarity reaches "
            f"{SECTION_TAU:g}"
        )
    if message := warning(
        method,
        result.decisions.clusters,
        result.cohesion,
        metrics["pairs_near_tau"],
        listed=result.matched.listed,
    ):
        lines.append(message)
    lines += _text_lost_and_warning(method, metrics, warned=bool(message))
    lines += _quality(result, _what_is_resampled(run, door))
    lines += _few_signatures(result, listed=output.tables)
    if duplicates := metrics["copies_content"] + metrics["copies_text"]:
        lines.append(
            f"{counted(duplicates, 'exact duplicate')}: {metrics['copies_content']:,} of identical content, "
            f"{metrics['copies_text']:,} of identical text"
        )
    if result.quality is None and door is not Door.command:
        how = "" if isinstance(run.collection, VectorCollection) else run.collection.truth_by
        lines.append("no precision or recall: the collection has no labels of duplicates" + (how and f"; {how}"))
    if metrics["skipped"]:
        listed = ": see skipped.csv" if output.tables else ""
        lines.append(f"{counted(metrics['skipped'], 'record')} could not be read{listed}")
    last = {"undated.csv": "dates that cannot be read count as the oldest"}
    last |= {"unscored.csv": "pages without a score that is a number come last"}
    return lines + [f"{what}: see {name}" for name, what in last.items() if (output.folder / name).exists()]


def _removed_for_reference(result: Result, documents: int) -> str:
    """Return the number of documents of the reference, and how many pages are removed for one of them."""
    removed = np.flatnonzero(~result.decisions.kept)
    instead = result.decisions.replacements(removed)
    number = int(np.count_nonzero((instead >= 0) & (instead < result.matched.new_from)))
    are = "is" if number == 1 else "are"
    of_reference = f"{counted(documents, 'document')} of the reference, always kept"
    return f"{of_reference}; {counted(number, 'page')} {are} removed for one of them"


def _languages(result: Result) -> list[str]:
    """Return how many of the pages of this run are in each language, if it is detected."""
    known = result.metrics["languages"]
    if result.method.language != AUTO or not known:
        return []
    most = sorted(known.items(), key=lambda pair: -pair[1])
    listed = [f"{name or 'in none that is known'} {number:,}" for name, number in most[:LANGUAGES]]
    if rest := sum(number for _, number in most[LANGUAGES:]):
        listed.append(f"others {rest:,}")
    return [f"pages by language: {', '.join(listed)}"]


def _setting(method: Method) -> str:
    """Return the threshold, the language and the treatment of templates as a sentence."""
    tau = "none" if method.tau is None else f"{method.tau:g}"
    detected = method.language in (None, LANGUAGE)
    language = "the language of each page is detected" if detected else f"all pages are read as {method.language}"
    treated = {
        Boilerplate.remove: "templates of sites are removed",
        Boilerplate.main_content: "only the main content is compared",
    }
    return f"threshold {tau}; {language}; {treated.get(method.boilerplate, 'templates are compared, too')}"


def _few_signatures(result: Result, *, listed: bool) -> list[str]:
    """Return the numbers of documents that are not compared, or by few signatures."""
    metrics = result.metrics
    see, missed = ": see kept.csv" if listed else "", "" if result.quality is None else "; their pairs count as missed"
    of_documents = {
        f"with too few visible words or signatures to be compared{see}{missed}": metrics["documents"]
        - metrics["documents_matched"],
        f"judged by fewer than {FEW} signatures": metrics["documents_few_signatures"],
        "judged by less than a tenth of their tokens": metrics["documents_few_tokens"],
        "with few or no spot signatures: compared by shingles": metrics["documents_in_shingles"],
    }
    return [f"{counted(number, 'document')} {what}" for what, number in of_documents.items() if number]


def _text_lost_and_warning(method: Method, metrics: Mapping[str, Any], *, warned: bool) -> list[str]:
    """Return the text lost, and a warning unless another sentence names the option."""
    lines = []
    if metrics["text_lost"] is not None:
        lines.append(_text_lost(metrics))
        lost = text_warning(method, metrics["text_lost"], metrics["removed_mostly_lost"], metrics["removed"])
        lines += [lost] if lost and not warned else []
    return lines


def _what_is_resampled(run: Run, door: Door) -> str:
    """Return what the samples of the interval draw: run.py knows the sites of some collections of documents."""
    crossed = door is Door.run and not isinstance(run.collection, VectorCollection)
    return "stories resampled, and sites where they are known" if crossed else "clusters resampled"


def _quality(result: Result, drawn: str) -> list[str]:
    metrics, lines = result.metrics, []
    if metrics["stories"]:
        lines.append(
            f"{counted(metrics['stories_lost'], 'story', 'stories')} of {metrics['stories']:,} lost "
            f"({metrics['stories_lost'] / metrics['stories']:.1%}), {metrics['duplicates_left']:,} of "
            f"{counted(metrics['duplicates'], 'duplicate')} left "
            f"({metrics['duplicates_left'] / max(metrics['duplicates'], 1):.1%}), "
            f"B-cubed F1 {metrics['bcubed_f1']:.3f}".replace("%)", " %)")
        )
    if result.quality and "f1" in result.quality.intervals:
        low, high = result.quality.intervals["f1"]
        lines.append(f"F1 95 % interval {low:.3f} to {high:.3f} ({drawn}); macro F1 {metrics['macro_f1']:.3f}")
    return lines


def _text_lost(metrics: Mapping[str, Any]) -> str:
    mostly, one_in = metrics["removed_mostly_lost"], metrics["text_lost_one_in"]
    have = "has more than half of its" if mostly == 1 else "have more than half of their"
    pages = f"{counted(mostly, 'removed page')} {have} text in no kept page"
    sampled = f" (estimated from one in {one_in:,} word 5-grams and sentences)" if one_in > 1 else ""
    shares = f"{100 * metrics['text_lost']:.1f} %, {100 * metrics['sentences_lost']:.1f} % of the sentences"
    return f"text lost: {shares}; {pages}{sampled}"


def peak_memory(metrics: Mapping[str, Any]) -> str:
    """Return the largest memory of a run as a phrase."""
    peak = f"{metrics['peak_mb']:,.0f}"
    if metrics["memory_budget_mb"] is None:
        return f"peak memory while matching {peak} MB"
    return f"peak memory of all processes {peak} of {metrics['memory_budget_mb']:,.0f} MB"
