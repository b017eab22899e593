"""Signatures without templates on disk, by sites: second pass of a scheme that depends on a whole collection.

Siblings are of one site. The pages of small sites are a task together, which reads only these pages. A site that is too
large for a task, and the pages without one, have an index in mapped files, and blocks of pages are tasks that read it.

The plan, a store, has the task of each page and its row in the result. The results stay: when documents are added, only
the sites that have new pages are computed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts, take_rows
from spotsigs.arrays.parallel import begins, concatenated
from spotsigs.contracts import CollectionScheme
from spotsigs.errors import InputError, require
from spotsigs.records import DocumentColumns, Signatures
from spotsigs.signatures.blocks import Blocks
from spotsigs.signatures.main_content import LINK
from spotsigs.signatures.sections import sections_of
from spotsigs.signatures.sites import sites_of
from spotsigs.signatures.template_kernels import PageFeatures, PageLinks
from spotsigs.signatures.template_removal import PageIndex, main_tokens
from spotsigs.storage.atomic import staging_folder
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.identity import identity
from spotsigs.storage.locations import absolute, as_path, exists, sizes
from spotsigs.storage.store import (
    Reader,
    Writer,
    concatenated_on_disk,
    entry_spans,
    fingerprint,
    load_signatures,
    opened,
    remove_tree,
    save_signatures,
    writing,
)
from spotsigs.storage.tasks import LEAST_ENTRIES, Job, mark_resumed, resumable, run_tasks, task_size
from spotsigs.workers.engines import Engine

RULES = 14
"""Version of the rules. A new version replaces signatures that an earlier release computed from the same outlines."""

BYTES_AN_ENTRY = 100  # of a task, for each signature and link of its pages, read, compared and written
BYTES_A_LINK = 72  # of a task, for each link of a large site while these are numbered: hash, order, number and page
BYTES_A_PAGE = 64  # of a task, for each page of a large site: its key, order and counts
BYTES_A_PLACE = 64  # of the calling process, for each page while it makes the plan: site, size, order, task and row

GROUPS = 128
"""Least number of tasks into which the sites of a large collection are cut, so that many workers have equal work."""

NAMED_PAGES = 1 << 14
"""Pages of a task that finds the site of each, below which another task would cost more than it saves."""

BLOCK_PAGES = 2048
"""Pages of which the outlines of a large site are read at a time."""

PLAN, INDEX, REFINED, PLACED = "plan", "index", "refined", "placed"
"""Kinds of results in the folder of a job."""

_FEATURES: dict[str, Any] = {
    "indptr": np.int64,
    "kinds": np.int32,
    "ranks": np.int32,
    "distinct_indptr": np.int64,
    "distinct": np.uint64,
    "is_main": np.bool_,
    "n_main": np.int32,
    "keys": np.uint64,
}
_LINKS: dict[str, Any] = {
    "rows": np.int64,
    "indptr": np.int64,
    "ids": np.int32,
    "posting_indptr": np.int64,
    "postings": np.int32,
}
"""Arrays of an index."""

_OF_PAGES: dict[str, Any] = {"unknown": np.bool_, "missing": np.int32, "fractions": np.float64}
"""What `spotsigs.signatures.template_kernels.remove_templates` returns of each page."""


@dataclass(frozen=True, kw_only=True)
class TemplateJob(Job):
    """Settings of all tasks."""

    scheme: CollectionScheme  # source of the outlines
    memory: int  # bytes that one task may use

    @property
    def root(self) -> str:
        """Folder of the store, with a separator at its end."""
        return f"{absolute(as_path(self.folder).parent.parent)}/"

    def within(self, folder: Path) -> str:
        """Return the name of a folder of the store within it, so that a plan holds after the store was moved."""
        return absolute(folder).removeprefix(self.root)

    def located(self, name: str) -> str:
        """Return the path of a folder by its name within the store."""
        return name if "://" in name or os.path.isabs(name) else self.root + name


class SiteGroup(NamedTuple):
    """A task: a range of the pages of a plan, which are all pages of some small sites, or of one large site."""

    job: TemplateJob
    number: str
    plan: str
    first: int
    last: int

    def outlines(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32]]]:
        """Yield numbers of entries, hashes and kinds of the pages, in blocks."""
        plan = self.job.result(PLAN, self.plan)
        pages = plan.part("pages", np.int32, self.first, self.last)
        edges, folders = plan.array("edges", np.int64), plan.strings("outlines")
        ends = np.searchsorted(pages, edges).tolist()
        for k, (start, stop) in enumerate(pairwise(ends)):
            for first in range(start, stop, BLOCK_PAGES):
                store = opened(self.job.located(folders[k]), "signatures")
                rows = pages[first : min(first + BLOCK_PAGES, stop)] - edges[k]
                starts, entries = take_rows(store.array("indptr", np.int64), rows)
                columns = store.array("hashes", np.uint64), store.array("counts", np.int32)
                yield np.diff(starts), columns[0][entries], columns[1][entries]


class SitePages(NamedTuple):
    """A task: some distinct pages of a large site."""

    job: TemplateJob
    number: str
    site: str
    first: int
    last: int


class RefinedSegments(NamedTuple):
    """A task: consecutive segments, whose signatures are gathered, so that each result of sites is opened once."""

    job: TemplateJob
    plan: str
    first: int  # number of the first segment
    folders: tuple[str, ...]
    made_of: tuple[str, ...]  # fingerprints of their outlines


class UnmadeSegment(NamedTuple):
    """A segment whose signatures are missing or of other pages."""

    number: int
    folder: str
    made_of: str
    pages: NDArray[np.int64]  # its documents
    distinct: NDArray[np.bool_]  # whether each is compared, and no exact duplicate of another
    source: NDArray[np.int32]  # documents that have the signatures of those that are compared


def refine_segments(
    folder: str | Path,
    outlines: Blocks,
    scheme: CollectionScheme,
    engine: Engine,
    *,
    memory: int,
    exact_duplicates: ExactDuplicates,
) -> Blocks:
    """Compute signatures on disk from sequences of spots and links on disk.

    The outlines are of all documents by the same scheme, old documents first. Results of previous calls are reused
    where a site has the same pages. The segments returned are as many, of the same documents. The representatives of
    exact duplicates have the signatures of the first of these. Each task uses ``memory`` bytes.

    Raises
    ------
    InputError
        If the budget is too small for the number of pages.
    """
    folder = as_path(folder)
    job = TemplateJob(folder=absolute(folder / "sites"), scheme=scheme, memory=memory)
    n = int(outlines.sizes().sum())
    needed = n * BYTES_A_PLACE
    require(
        needed <= memory,
        f"memory is too small to find templates: {needed / 1e6:,.0f} MB are needed for {n:,} pages, and there are "
        f"{memory / 1e6:,.0f} MB for data",
    )
    facts = _place_pages(job, outlines, exact_duplicates, engine).facts
    targets = tuple(folder / f"{k:08d}" for k in range(len(outlines.folders)))
    entries = row_starts(outlines.entries() + outlines.sizes())
    tasks = []
    for first, last in entry_spans(entries, task_size(int(entries[-1]), LEAST_ENTRIES, memory // BYTES_AN_ENTRY)):
        paths, content = tuple(map(absolute, targets[first:last])), tuple(facts["content"][first:last])
        tasks.append(RefinedSegments(job, facts["name"], first, paths, content))
    list(run_tasks(engine, gather, tasks, "signatures", rows=n))
    return replace(outlines, parts=targets)


def _place_pages(job: TemplateJob, outlines: Blocks, exact_duplicates: ExactDuplicates, engine: Engine) -> Reader:
    """Compute the signatures of all sites, and write the result and the row in it of each page."""
    # The name of the plan states all that the places depend on: the same call finds them finished.
    settings = {"rules": RULES, "scheme": json.dumps(identity(job.scheme))}
    content = [fingerprint(folder) for folder in outlines.folders]
    made_of = f"{content} {settings} {job.memory} {GROUPS}".encode() + exact_duplicates.representatives.tobytes()
    facts = settings | {"name": xxhash.xxh3_64_hexdigest(made_of), "content": content}
    base = _earlier_places(job, facts)
    if base is not None and base.facts["name"] == facts["name"]:
        return base
    sites, weights = _sites_and_entries(outlines, engine)
    places = Places(sites, exact_duplicates.first_on_site(sites), base)
    spans = list(_cut_sites(job, str(facts["name"]), places, weights))
    job.checkpoint(PLAN, facts["name"], work=lambda out: _write_plan(job, out, outlines, exact_duplicates, places))
    large = [group for group, fits in spans if not fits]
    indexed = list(run_tasks(engine, index, large, "links of large sites"))  # first, since it refuses what does not fit
    # A small site needs its own pages alone, so that one task reads, compares and writes them.
    small = [group for group, fits in spans if fits]
    list(run_tasks(engine, refine, small, "templates", rows=sum(group.last - group.first for group in small)))
    for group in small:
        places.put(group.number, group.first, np.arange(group.last - group.first))
    # The pages of a large site are compared through its index, by as many tasks as their work needs.
    blocks = []
    for group, made in zip(large, indexed, strict=True):
        rows = job.result(INDEX, group.number).whole("distinct_of", np.int64)
        edges = np.linspace(0, made["pages"], made["blocks"] + 1).astype(np.int64)
        for k, (start, stop) in enumerate(pairwise(edges.tolist())):
            blocks.append(SitePages(job, f"{group.number}-{k}", group.number, start, stop))
            inside = np.flatnonzero((rows >= start) & (rows < stop))
            places.put(blocks[-1].number, group.first + inside, rows[inside] - start)
    pages = sum(block.last - block.first for block in blocks)
    list(run_tasks(engine, refine_block, blocks, "templates of large sites", rows=pages))
    with writing(job.path(PLACED), PLACED) as out:
        out.put("task", places.task)
        out.put("row", places.row)
        out.strings("results", places.results)
        out.facts = facts
    _delete_outdated(job, places.results, str(facts["name"]))
    return job.result(PLACED)


def _earlier_places(job: TemplateJob, facts: dict[str, Any]) -> Reader | None:
    """Return the places that an earlier call has found for these outlines, or for the first of them."""
    try:
        known = job.result(PLACED)
    except InputError:
        return None
    names, content = known.strings("results"), known.facts["content"]
    same = all(known.facts.get(key) == facts[key] for key in ("rules", "scheme"))
    prefix = content == facts["content"][: len(content)]
    there = same and prefix and all(exists(job.path(REFINED, name) / "store.json") for name in names)
    return known if there else None


class Places:
    """The result of each page that is the first of its exact duplicates on its site, and its row in the result."""

    def __init__(self, sites: NDArray[np.uint64], first: NDArray[np.bool_], base: Reader | None) -> None:
        n = len(sites)
        self.task, self.row = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        self.results: list[str] = []
        pages = np.flatnonzero(first)
        if base is not None:  # the sites of the new pages are computed again
            old = base.length("task", np.int32)
            self.task[:old], self.row[:old] = base.whole("task", np.int32), base.whole("row", np.int32)
            self.results += base.strings("results")
            pages = pages[np.isin(sites[pages], np.unique(sites[pages[pages >= old]]))]
        self.pages = pages[np.argsort(sites[pages], kind="stable")].astype(np.int32)
        self.sites = sites[self.pages]

    def put(self, result: str, at: Any, rows: NDArray[np.int64]) -> None:
        """Place some of the pages, by their positions or the first of these, in the rows of a result."""
        pages = self.pages[at : at + len(rows)] if isinstance(at, int) else self.pages[at]
        self.task[pages], self.row[pages] = len(self.results), rows
        self.results.append(result)


def _sites_and_entries(outlines: Blocks, engine: Engine) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the site and the number of entries of each document."""
    rows = row_starts(outlines.sizes())
    batches = []
    for first, last in entry_spans(rows, task_size(int(rows[-1]), NAMED_PAGES)):
        batches.append(tuple(map(absolute, outlines.folders[first:last])))
    parts = list(run_tasks(engine, find_sites, batches, "sites", arrays=True, rows=int(rows[-1])))
    sites, entries = concatenated(parts, (np.uint64, np.int64))
    return sites, entries


def find_sites(folders: tuple[str, ...]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the site and the number of entries of each document of some segments."""
    sites, entries = [], []
    for block in Blocks(tuple(map(as_path, folders))).read("doc_ids", "indptr"):
        sites.append(sites_of(block.doc_ids))
        entries.append(np.diff(block.indptr))
    return np.concatenate(sites), np.concatenate(entries)


def _cut_sites(
    job: TemplateJob, name: str, places: Places, weights: NDArray[np.int64]
) -> Iterator[tuple[SiteGroup, bool]]:
    """Cut the pages, which are in order of their sites, into tasks, and yield whether each fits into the memory."""
    entries = weights[places.pages] + 1
    starts = np.flatnonzero(begins(places.sites))
    of_sites = row_starts(np.add.reduceat(entries, starts) if len(starts) else entries)
    most = task_size(int(of_sites[-1]), LEAST_ENTRIES, job.memory // BYTES_AN_ENTRY)
    usual = min(most, max(int(of_sites[-1]) // GROUPS, LEAST_ENTRIES))  # a larger site that fits is a task by itself
    ends = np.append(starts, len(entries))
    for k, (start, stop) in enumerate(entry_spans(of_sites, usual)):
        first, last = int(ends[start]), int(ends[stop])
        places.pages[first:last].sort()  # read in the order of the files
        yield SiteGroup(job, f"{name}-{k}", name, first, last), int(of_sites[stop] - of_sites[start]) <= most


def _write_plan(
    job: TemplateJob, out: Writer, outlines: Blocks, exact_duplicates: ExactDuplicates, places: Places
) -> None:
    out.strings("outlines", map(job.within, outlines.folders))
    out.put("edges", row_starts(outlines.sizes()))
    out.put("pages", places.pages)
    out.put("first", exact_duplicates.first)
    out.put("distinct", exact_duplicates.distinct)


def _delete_outdated(job: TemplateJob, results: list[str], plan: str) -> None:
    """Delete the results of earlier plans that no page needs, and what only the tasks needed."""
    keep = {REFINED: {*results}, PLAN: {plan}, INDEX: set[str]()}
    for kind, names in keep.items():
        for name in {path.partition("/")[0] for path in sizes(job.path(kind))} - names:
            remove_tree(job.path(kind, name))


@resumable(REFINED)
def refine(group: SiteGroup, out: Writer) -> None:
    """Write the signatures of the pages of some sites."""
    parts = list(group.outlines())
    lengths, hashes, kinds = (np.concatenate(column) for column in zip(*parts, strict=True))
    outlines = Signatures(DocumentColumns(), row_starts(lengths), hashes, kinds)
    known = group.job.scheme.index(outlines, threads=1)
    lengths, *of_pages, hashes, counts = group.job.scheme.remaining(known, 0, len(known.links.rows))
    starts, entries = take_rows(row_starts(lengths), known.distinct_of)
    _put_refined(out, starts, *(values[known.distinct_of] for values in of_pages), hashes[entries], counts[entries])


def _put_refined(out: Writer, *columns: NDArray[Any]) -> None:
    for name, values in zip(("indptr", *_OF_PAGES, "hashes", "counts"), columns, strict=True):
        out.put(name, values)


@resumable(INDEX)
def index(group: SiteGroup, out: Writer) -> None:
    """Write the index of a large site, whose arrays are files."""
    with staging_folder(out.folder) as scratch:
        lengths: list[NDArray[np.int64]] = []
        links = 0

        def parts() -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
            nonlocal links
            for sizes_of_part, hashes, kinds in group.outlines():
                lengths.append(sizes_of_part)
                links += int(np.count_nonzero(kinds >= LINK))
                yield hashes, kinds

        hashes, kinds = concatenated_on_disk(parts(), (np.uint64, np.int32), scratch)
        _require_fitting(links, group.last - group.first, group.job.memory)
        outlines = Signatures(DocumentColumns(), row_starts(np.concatenate(lengths)), hashes, kinds)
        known = group.job.scheme.index(outlines, threads=1, scratch=scratch)
        for part, names in ((known.pages, _FEATURES), (known.links, _LINKS)):
            for name in names:
                out.put(f"{type(part).__name__}-{name}", getattr(part, name))
        out.put("distinct_of", known.distinct_of)
        n_blocks = -(-len(hashes) // max(1, min(LEAST_ENTRIES, group.job.memory // BYTES_AN_ENTRY)))
        out.facts = {"pages": len(known.links.rows), "blocks": max(1, n_blocks)}
        del known, outlines, hashes, kinds


def _require_fitting(links: int, pages: int, memory: int) -> None:
    """Refuse a site whose links do not fit into the memory of a task."""
    needed = links * BYTES_A_LINK + pages * BYTES_A_PAGE
    require(
        needed <= memory,
        f"memory is too small to find templates: a site of {pages:,} pages has {links:,} links, which need "
        f"{needed / 1e6:,.0f} MB, and there are {memory / 1e6:,.0f} MB for the data of a task",
    )


@resumable(REFINED)
def refine_block(block: SitePages, out: Writer) -> None:
    """Write the signatures of some pages of a large site."""
    store = block.job.result(INDEX, block.site)

    def part(kind: Any, names: dict[str, Any]) -> Any:
        return kind(*(store.array(f"{kind.__name__}-{name}", dtype) for name, dtype in names.items()))

    known = PageIndex(part(PageFeatures, _FEATURES), part(PageLinks, _LINKS), np.empty(0, np.int64))
    lengths, *columns = block.job.scheme.remaining(known, block.first, block.last)
    _put_refined(out, row_starts(lengths), *columns)


def gather(target: RefinedSegments) -> None:
    """Write the signatures of the documents of some segments, unless they are there."""
    places = target.job.result(PLACED)
    segments = _unmade_segments(target, places)
    if not segments:
        mark_resumed()
        return
    task, row = places.array("task", np.int32), places.array("row", np.int32)
    source = np.concatenate([segment.source for segment in segments])
    lengths, hashes, counts = _signatures_of_pages(target.job, places, task[source], row[source])
    pages = np.concatenate([segment.pages for segment in segments])
    facts = _facts_of_pages(target.job, places, task[pages], row[pages])
    edges = row_starts(np.array([len(segment.pages) for segment in segments]))
    rows = row_starts(np.array([len(segment.source) for segment in segments]))
    starts = row_starts(lengths)
    names = target.job.result(PLAN, target.plan).strings("outlines")
    for k, segment in enumerate(segments):
        own = {name: values[edges[k] : edges[k + 1]] for name, values in facts.items()}
        sizes_of_rows = np.zeros(len(segment.pages), np.int64)
        sizes_of_rows[segment.distinct] = lengths[rows[k] : rows[k + 1]]
        span = slice(starts[rows[k]], starts[rows[k + 1]])
        outlines = load_signatures(target.job.located(names[segment.number]))
        sections = sections_of(outlines.doc_ids, outlines)
        sections[own["unknown"]] = 0
        documents = replace(
            outlines.documents,
            sections=sections,
            missing=own["missing"],
            main_tokens=main_tokens(outlines.documents.tokens, own["fractions"]),
        )
        signatures = replace(
            outlines,
            documents=documents,
            indptr=row_starts(sizes_of_rows),
            hashes=hashes[span],
            counts=counts[span],
            grams=None,  # which the outlines have, as they have the phrases
            phrases=None,
        )
        save_signatures(segment.folder, signatures, made_of=segment.made_of)


def _unmade_segments(target: RefinedSegments, places: Reader) -> list[UnmadeSegment]:
    """Return the segments of a task whose signatures are missing or of other pages."""
    plan, n = target.job.result(PLAN, target.plan), len(target.folders)
    edges = plan.part("edges", np.int64, target.first, target.first + n + 1).tolist()
    task, row = places.array("task", np.int32), places.array("row", np.int32)
    results = places.strings("results")
    unmade = []
    for k, (first, last) in enumerate(pairwise(edges)):
        distinct = plan.part("distinct", np.bool_, first, last)
        source = plan.part("first", np.int32, first, last)[distinct]
        # the result depends on the places of the pages, on their outlines, and on the results at these places
        needed = [results[number] for number in np.unique(task[source])]
        columns = (distinct, task[source], row[source], task[first:last], row[first:last])
        content = b"".join(column.tobytes() for column in columns) + f"{target.made_of[k]} {needed}".encode()
        made_of = xxhash.xxh3_128_hexdigest(content)
        if not _is_made_of(as_path(target.folders[k]), made_of):
            pages = np.arange(first, last)
            unmade.append(UnmadeSegment(target.first + k, target.folders[k], made_of, pages, distinct, source))
    return unmade


def _is_made_of(store: Path, made_of: str) -> bool:
    try:
        return opened(store, "signatures", verify=False).facts.get("made_of") == made_of
    except InputError:
        return False


def _needed_results(
    job: TemplateJob, places: Reader, task: NDArray[np.int32]
) -> Iterator[tuple[Reader, NDArray[np.int64]]]:
    """Yield each result that some pages need, and the positions of these."""
    order = np.argsort(task, kind="stable")
    order = order[np.searchsorted(task[order], 0) :]
    starts = np.append(np.flatnonzero(begins(task[order])), len(order))
    for start, stop in pairwise(starts.tolist()):
        yield job.result(REFINED, places.strings("results")[task[order[start]]]), order[start:stop]


def _signatures_of_pages(
    job: TemplateJob, places: Reader, task: NDArray[np.int32], row: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int32]]:
    """Return the numbers, hashes and counts of the signatures of some pages."""
    at, lengths, hashes, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.uint64)], []
    for result, positions in _needed_results(job, places, task):
        starts, entries = take_rows(result.array("indptr", np.int64), row[positions])
        at.append(positions)
        lengths.append(np.diff(starts))
        hashes.append(result.array("hashes", np.uint64)[entries])
        counts.append(result.array("counts", np.int32)[entries])
    order = np.argsort(np.concatenate(at))
    starts, entries = take_rows(row_starts(np.concatenate(lengths)), order)
    return np.diff(starts), np.concatenate(hashes)[entries], np.concatenate([np.empty(0, np.int32), *counts])[entries]


def _facts_of_pages(
    job: TemplateJob, places: Reader, task: NDArray[np.int32], row: NDArray[np.int32]
) -> dict[str, NDArray[Any]]:
    """Return what is known of each page, by name; of a page without a result, zeros."""
    known = {name: np.zeros(len(task), kind) for name, kind in _OF_PAGES.items()}
    for result, positions in _needed_results(job, places, task):
        for name, kind in _OF_PAGES.items():
            known[name][positions] = result.array(name, kind)[row[positions]]
    return known
