"""The peak of all processes is below ``memory=`` for any record, and skipped records are listed.

The quick tests ask the readers for records that are too large; the long ones run the front door, sample the
proportional set size of all processes, and print a table of budgets and peaks (``pytest -s -m long``).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc

import brotli
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from archives import arc_record, warc_record

from spotsigs.errors import InputError
from spotsigs.formats.detect_format import FORMATS
from spotsigs.outofcore.pipeline import LEAST, PROGRAM, data_budget, largest_unit_within, require_units
from spotsigs.outofcore.segments import extract_segments
from spotsigs.outofcore.vectorize import parse_memory
from spotsigs.records import Document, Skipped
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.size_limits import BUDGET_PAGE, page_size_limit
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Processes, Serial

LIMIT = 1 << 16
BIG = b"<p>the page is a long one " * (1 << 19)
SMALL = b"<p>the page is a short one"
PACKS = {
    "plain": bytes,
    "gzip": lambda content: gzip.compress(content, 1, mtime=0),
    "zstd": lambda content: zstandard.ZstdCompressor().compress(content),
}


def http(uri, body, *encodings):
    """Return a WARC record whose body is encoded."""
    pack = PACKS | {"br": lambda content: brotli.compress(content, quality=5)}
    for encoding in encodings:
        body = pack[encoding](body)
    return warc_record(uri, body, headers=f"Content-Encoding: {', '.join(encodings)}\r\n" if encodings else "")


def write(folder, form, pages, pack="plain", encodings=()):
    """Write pages as one input of a format; return its path."""
    folder.mkdir(parents=True)
    path = folder / f"x.{form}"
    named = [(f"http://x/{k}", page) for k, page in enumerate(pages)]
    if form == "folder":
        for k, page in enumerate(pages):
            (folder / f"{k}.html").write_bytes(page)
        return folder
    if form == "parquet":
        table = pa.table({"id": [name for name, _ in named], "html": [page.decode() for _, page in named]})
        pq.write_table(table, path, 1, compression={"plain": "none"}.get(pack, pack))
        return path
    if form in ("warc", "arc"):
        records = [http(n, p, *encodings) if form == "warc" else arc_record(n, p) for n, p in named]
        if form == "arc":
            info = b"1 0 Archive\n"
            records.insert(0, f"filedesc://x 0.0.0.0 20010203040506 text/plain {len(info)}\n".encode() + info + b"\n")
        path.write_bytes(b"".join(PACKS[pack](record) for record in records))
        return path
    rows = {
        "jsonl": lambda: [json.dumps({"id": n, "html": p.decode()}).encode() + b"\n" for n, p in named],
        "csv": lambda: [b"id,html\n", *(b'%b,"%b"\n' % (n.encode(), p) for n, p in named)],
        "trec": lambda: [b"<DOC>\n<DOCNO>%b</DOCNO>\n%b\n</DOC>\n" % (n.encode(), p) for n, p in named],
    }[form]()
    path.write_bytes(PACKS[pack](b"".join(rows)))
    return path


def read(form, path, size=LIMIT):
    with page_size_limit(size):
        return [record for shard in FORMATS[form](path=str(path)).shards() for record in shard()]


@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_page_that_is_too_large_is_skipped_and_costs_nothing(tmp_path, form, pack):
    path = write(tmp_path / "in", form, [SMALL, BIG, SMALL], pack)
    read(form, write(tmp_path / "first", form, [SMALL]))  # imports
    tracemalloc.start()
    records = read(form, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(record.content) for record in records if isinstance(record, Document)] in (
        [len(SMALL)] * 2,
        [len(SMALL) + 1] * 2,  # TREC has a line end after it
    )
    reasons = [record.reason for record in records if isinstance(record, Skipped)]
    assert len(reasons) == 1
    assert re.search(r"(larger|longer|more) than 64 KiB|128 KiB", reasons[0])
    if pack != "zstd" or form == "parquet":  # its frames are unpacked 16 MiB at most at a time
        assert peak < len(BIG) // 3, peak


@pytest.mark.parametrize(
    "encodings", [("gzip",), ("zstd",), ("br",), ("gzip", "gzip"), ("gzip", "zstd", "br")], ids="+".join
)
def test_bombs_inside_a_warc_are_skipped(tmp_path, encodings):
    path = write(tmp_path / "in", "warc", [SMALL, BIG], encodings=encodings)
    first, second = read("warc", path)
    assert first.content == SMALL
    assert second.id.startswith("http://x/1 (x.warc@")
    assert second.reason in ("its body unpacks to more than 64 KiB", "the record is larger than 64 KiB")


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("jsonl", b'{"id": "x", "html": "a", "more": [%b]}\n' % b"{},[],".join([b""] * 5000)),
        ("csv", b"id,html\n%b\n" % (b"," * 30_000)),
        ("csv", b'id,html\n1,"%b"\n2,x\n' % (b"\n" * 30_000)),
    ],
)
def test_many_small_values_count_for_the_memory_they_use(tmp_path, form, content):
    path = tmp_path / f"x.{form}"
    path.write_bytes(content)
    records = read(form, path)
    assert isinstance(records[0], Skipped)
    assert "larger than 64 KiB" in records[0].reason or "not closed" in records[0].reason


@pytest.mark.long
def test_tags_count_for_the_memory_they_use(tmp_path):
    page = b"<p>" * (LIMIT // 4)
    with page_size_limit(LIMIT):
        folder = extract_segments(
            tmp_path / "s",
            FORMATS["folder"](path=str(write(tmp_path / "in", "folder", [SMALL, page]))),
            VisibleText(),
            SpotSignatures(),
            Serial(),
        )
    [reasons] = folder.skipped
    assert re.match("the page is larger than 64 KiB: .* each of its tags counts for 8 bytes", reasons.reason)


def test_a_large_window_is_refused_by_a_sentence(tmp_path):
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    content = os.urandom(9 << 20).hex().encode()
    path = tmp_path / "x.jsonl.zst"
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(packed.compress(b'{"id": "a", "text": "%b"}\n' % content[:100] + content) + packed.flush())
    [reasons] = read("jsonl", path)
    assert reasons.reason.startswith("cannot be read: its zstd window is larger than 8 MiB; unpack it")


def test_pages_of_parquet_are_measured_before_they_are_read(tmp_path):
    """A dictionary makes a megabyte of any number of rows."""
    value = "the page is a long one " * 1000
    table = pa.table({"id": [str(k) for k in range(3000)], "html": [value] * 3000})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=3000)
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    names = []
    with page_size_limit(LIMIT):
        for shard in FORMATS["parquet"](path=str(tmp_path / "x.parquet")).shards():
            for record in shard():
                names.append(record.id)
                assert pa.total_allocated_bytes() - before < 40 * LIMIT
    assert names == [str(k) for k in range(3000)]


@pytest.fixture
def large_pages(tmp_path):
    """Write a table whose rows are in one page of 30 MiB, as pandas writes it, and another one of small pages."""
    rng = np.random.default_rng(5)
    pages = [bytes(rng.integers(97, 123, int(size), np.uint8)).decode() for size in rng.integers(1, 90_000, 700)]
    table = pd.DataFrame({"id": [str(k) for k in range(len(pages))], "html": pages})
    (tmp_path / "in").mkdir()
    table.head(5).to_parquet(tmp_path / "in" / "a.parquet")
    table.to_parquet(tmp_path / "in" / "b.parquet")
    return table


def test_pages_of_parquet_are_as_large_as_the_budget_lets_them_be(tmp_path, large_pages):
    path, memory = str(tmp_path / "in" / "b.parquet"), PROGRAM + LEAST
    collection, processes = FORMATS["parquet"](path=path), Processes(workers=4)
    with pytest.raises(InputError, match=r"b.parquet: .* to \d\d MiB, more than 16 MiB; .* at least memory=") as error:
        require_units(collection, processes, memory, copied=False)
    enough = int(re.search(r"memory=(\d+)MB", str(error.value))[1]) * 10**6
    rows = int(re.search(r"row_group_size=(\d+)", str(error.value))[1])
    assert require_units(collection, processes, enough, copied=False) == Serial()
    assert require_units(collection, processes, 4 * enough, copied=False).processes > 1
    with page_size_limit(BUDGET_PAGE, largest_unit_within(enough)):
        names = [record.id for shard in collection.shards() for record in shard()]
    assert names == large_pages["id"].tolist()
    large_pages.to_parquet(path, row_group_size=rows)
    assert require_units(collection, Serial(), memory, copied=True) == Serial()


def test_a_file_that_cannot_be_copied_is_refused_before_it_is_read(tmp_path, large_pages):
    table = large_pages.assign(text="the page", other=large_pages["html"]).drop(columns="html")
    table.to_parquet(tmp_path / "in" / "b.parquet")
    memory, collection = PROGRAM + LEAST, FORMATS["parquet"](path=str(tmp_path / "in"))
    assert require_units(collection, Serial(), memory, copied=False) == Serial()
    with pytest.raises(InputError, match=r"b\.parquet: pages of a row group"):
        require_units(collection, Serial(), memory, copied=True)


def test_a_dictionary_of_parquet_counts_once(tmp_path):
    """A row of a categorical column has the bytes of its value, not of all values."""
    pages = [f"<p>the page {k} is a long one " * 1000 for k in range(30)]
    column = pd.Categorical.from_codes([k % 30 for k in range(600)], pages)
    pd.DataFrame({"id": range(600), "html": column}).to_parquet(tmp_path / "x.parquet")
    records = read("parquet", tmp_path / "x.parquet", 1 << 19)
    assert [record.content for record in records] == [pages[k % 30] for k in range(600)]


def test_a_shard_of_any_number_of_records_is_written_in_parts(tmp_path, monkeypatch):
    """The memory of a shard's signatures does not depend on its unpacked size; the parts are one part together."""
    path = tmp_path / "x.jsonl"
    rows = [{"id": str(k), "text": f"the w{k} is a v{k % 7} page"} if k % 3 else {"id": str(k)} for k in range(200)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    parts = []
    for most in (1 << 24, 3000):
        monkeypatch.setattr("spotsigs.outofcore.segments.PART_BYTES", most)
        collection = FORMATS["jsonl"](path=str(path))
        segments = extract_segments(tmp_path / str(most), collection, VisibleText(), SpotSignatures(), Serial())
        again = extract_segments(tmp_path / str(most), collection, VisibleText(), SpotSignatures(), Serial())
        assert again == segments
        reasons = segments.skipped
        assert len(reasons) == 67
        assert list(reasons)[1].id == "3 (x.jsonl@98)"
        parts.append((list(segments.doc_ids), list(reasons), segments.occurrences().tolist()))
        assert len(segments.folders) == (1 if most > 3000 else len(segments.folders))
    assert len(segments.folders) > 10
    assert parts[0] == parts[1]


# the command


def pss(process):
    """Return the proportional set size of a process and all it started: shared pages count once."""
    total = 0
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0
    for member in family:
        try:
            total += member.memory_full_info().pss
        except (psutil.Error, OSError):
            continue
    return total


def peak_of(words):
    """Run the command; return its exit code, its output, and the peak of all its processes."""
    with subprocess.Popen(
        [sys.executable, "-m", "spotsigs", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        peak, process = 0, psutil.Process(run.pid)
        while run.poll() is None:
            peak = max(peak, pss(process))
            time.sleep(0.02)
        return run.returncode, run.stdout.read(), peak


def emoji(size):
    return (b"the a b " * (size // 8))[: size - 4] + "😀".encode()


def tags(size):
    return b"<p>a " * (size // 5)


PAGES = {"text": lambda size: b"the a b " * (size // 8), "emoji": emoji, "tags": tags}
CASES = [
    *((form, "plain", "text", 150, "serial", ()) for form in FORMATS),
    *((form, "gzip", "text", 600, "serial", ()) for form in ("warc", "jsonl", "csv", "trec", "parquet")),
    *((form, "zstd", "text", 600, "serial", ()) for form in ("warc", "jsonl", "parquet")),
    *(("warc", "gzip", "text", 600, "serial", encodings) for encodings in (("gzip", "gzip"), ("br",), ("zstd",))),
    *(("warc", "gzip", kind, 7.9, "serial", ()) for kind in ("text", "emoji")),
    ("warc", "gzip", "tags", 3, "serial", ()),
    ("jsonl", "plain", "emoji", 7.9, "serial", ()),
    *(("jsonl", "gzip", "emoji", 7.9, engine, ()) for engine in ("processes", "dask")),
]


def named(case):
    form, pack, kind, size, engine, encodings = case
    return "-".join([form, pack, *encodings, f"{size:g}", kind, engine])


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the proportional set size")
@pytest.mark.parametrize("case", CASES, ids=named)
def test_peaks_are_below_the_budgets(tmp_path, case):
    form, pack, kind, size, engine, encodings = case
    budget = 700 if engine == "serial" else 2000
    big = PAGES[kind](int(size * 2**20))
    path = write(tmp_path / "in", form, [SMALL + b" one"] * 3 + [big] * (1 if size > 8 else 4), pack, encodings)
    del big
    code, printed, peak = peak_of(
        [
            "cluster",
            path,
            "--format",
            form,
            "--memory",
            f"{budget}MB",
            "--engine",
            engine,
            "--workers",
            2,
            "--out",
            tmp_path / "run",
        ]
    )
    skipped = tmp_path / "run" / "skipped.csv"
    reasons = skipped.read_text().splitlines()[1].rpartition(",")[2] if skipped.exists() else ""
    row = (form, pack, "+".join(encodings), f"{size:g} MiB {kind}", engine, budget, round(peak / 1e6), reasons)
    sys.stdout.write("\n| " + " | ".join(map(str, row)) + " |\n")
    assert code == 0, printed
    assert bool(reasons) == (size > 8)
    assert peak < budget * 1e6, row


@pytest.mark.parametrize("workers", [0, 1, 8])
def test_the_budget_that_an_error_names_works_when_it_is_given(workers):
    """`--memory 643MB` was refused with "give at least 643MB"."""
    with pytest.raises(InputError) as refused:
        data_budget(10**6, workers)
    named = re.search(r"give at least (\S+?MB)", str(refused.value))[1]
    assert data_budget(parse_memory(named), workers) > 0
