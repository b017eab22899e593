"""strict=true stops at the first record that cannot be read, in document order, whatever runs concurrently."""

from __future__ import annotations

import json
from functools import partial

import pytest
from folders import contents
from stores import match_on_disk
from test_engines import ENGINES

from spotsigs.contracts import Collection
from spotsigs.errors import InputError
from spotsigs.formats.jsonl import Jsonl
from spotsigs.outofcore.segments import extract_segments, finished_segments
from spotsigs.records import Document, Skipped
from spotsigs.signatures.extract import extract, extract_shard
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

PARTS = VisibleText(), SpotSignatures()
PROSE = "The council has approved the plan for a new bridge that will be built by the end of the year."
BAD = (700, 701, 1500)  # in different shards, the first of them after many pages
AT = len("".join(json.dumps({"id": f"p{k}", "text": f"{PROSE} {k}"}) + "\n" for k in range(BAD[0])))
WAY_OUT = "(strict=true stops at the first)"
MESSAGE = f"bad700 (x.jsonl@{AT}): the row has neither 'html' nor 'text'; its columns are id {WAY_OUT}"


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """Return some 30 shards of pages."""
    path = tmp_path_factory.mktemp("strict") / "x.jsonl"
    rows = [{"id": f"bad{k}"} if k in BAD else {"id": f"p{k}", "text": f"{PROSE} {k}"} for k in range(2000)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Jsonl(path=str(path), shard_bytes=10_000)


def test_a_shard_is_read_to_its_first_bad_record():
    taken = []

    def shard():
        for record in (page("a"), Skipped("b", "is cut"), page("c"), Skipped("d", "is cut, too")):
            taken.append(record.id)
            yield record

    signatures = extract_shard(shard, *PARTS, strict=True)
    assert (signatures.doc_ids, signatures.skipped) == (("a",), (Skipped("b", "is cut"),))
    assert taken == ["a", "b"]


def page(name):
    return Document(id=name, content=PROSE.encode())


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_in_document_order_is_reported_in_memory(engine, crawl):
    with pytest.raises(InputError) as error:
        extract(crawl, *PARTS, engine, strict=True)
    assert str(error.value) == MESSAGE


@pytest.mark.parametrize("engine", ENGINES)
def test_the_first_in_document_order_is_reported_on_disk(engine, crawl, tmp_path):
    for _ in range(2):  # also when it resumes
        with pytest.raises(InputError) as error:
            extract_segments(tmp_path / "s", crawl, *PARTS, engine, strict=True)
        assert str(error.value) == MESSAGE
    shards = {int(path.name) for path in (tmp_path / "s").iterdir() if path.name.isdecimal()}  # or in the making
    assert shards
    assert not shards & {number for number, _ in bad_shards(crawl)}


def bad_shards(crawl):
    """Return number and content of each shard with a bad record."""
    records = ((number, list(shard())) for number, shard in enumerate(crawl.shards()))
    return [(number, content) for number, content in records if any(isinstance(record, Skipped) for record in content)]


def test_nothing_is_read_after_it(crawl, tmp_path):
    [(first, _), *_] = bad_shards(crawl)
    assert 3 < first < len(crawl.shards()) - 3
    opened = []

    class Watched(Collection):
        def shards(self):
            return [partial(self.opened, number, shard) for number, shard in enumerate(crawl.shards())]

        def opened(self, number, shard):
            opened.append(number)
            return shard()

    with pytest.raises(InputError):
        extract(Watched(), *PARTS, Serial(), strict=True)
    assert opened == list(range(first + 1))
    opened.clear()
    with pytest.raises(InputError):
        extract_segments(tmp_path / "s", Watched(), *PARTS, Serial(), strict=True)
    assert opened == list(range(first + 1))


def test_a_run_that_is_not_strict_resumes_a_strict_one_and_is_refused_by_it(crawl, tmp_path):
    with pytest.raises(InputError):
        extract_segments(tmp_path / "s", crawl, *PARTS, Serial(), strict=True)
    extract_segments(tmp_path / "s", crawl, *PARTS, Serial())
    extract_segments(tmp_path / "whole", crawl, *PARTS, Serial())
    assert contents(tmp_path / "s") == contents(tmp_path / "whole")
    assert len(list(finished_segments(tmp_path / "s").skipped)) == len(BAD)
    with pytest.raises(InputError) as error:
        extract_segments(tmp_path / "s", crawl, *PARTS, Serial(), strict=True)
    assert str(error.value) == MESSAGE


def test_a_store_that_contains_bad_records_is_refused_by_a_strict_run(crawl, tmp_path):
    def match(collection, strict):
        parts = (*PARTS, IdfFilter(idf_min=0), 0.9, Serial())
        return match_on_disk(tmp_path / "s", collection, *parts, memory=10**9, strict=strict)

    n_bad = len(tuple(match(crawl, False).skipped))
    assert n_bad == len(BAD)
    with pytest.raises(InputError) as error:
        match(None, True)
    assert str(error.value) == MESSAGE


def test_other_documents_after_a_refused_run_are_an_error_with_the_way_out(crawl, tmp_path):
    parts = (*PARTS, IdfFilter(idf_min=0), 0.9, Serial())
    with pytest.raises(InputError):
        match_on_disk(tmp_path / "s", crawl, *parts, memory=10**9, strict=True)
    (tmp_path / "mended.jsonl").write_text(json.dumps({"id": "a", "text": PROSE}) + "\n")
    with pytest.raises(InputError, match=r"unfinished extraction .*; finish it first, or delete it"):
        match_on_disk(tmp_path / "s", Jsonl(path=str(tmp_path / "mended.jsonl")), *parts, memory=10**9)
