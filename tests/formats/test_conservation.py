"""Records in the input = kept + removed + skipped, files in = files out; counted by other libraries."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import random
import re
import tempfile
import warnings
import zlib
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from archives import MAKES, PACK, archive, file_of, ids, read, warc_record
from fastwarc.warc import ArchiveIterator as FastWarc
from folders import contents, rows_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from warcio.archiveiterator import ArchiveIterator

import spotsigs
from spotsigs.doors.cli import main
from spotsigs.errors import InputError
from spotsigs.formats.detect_format import FORMATS
from spotsigs.records import Skipped

UNPACK = {
    "": bytes,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".zst": lambda content: zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True).read(),
}
WORDS = "council plan bridge river town mayor house vote school road winter market garden train doctor music".split()
NAMES = ("part-{}", "c4.{}-of-9.json", "sub/x.{}", "a/b/c.{}.1", "x y.{}", "pagé.{}", "x.{}.open")
FOREIGN = {"notes.md": b"# notes\n", "image.png": b"\x89PNG\0\0", "sub/list.xml": b"<list/>", "_SUCCESS": b""}


def prose(seed):
    rng = random.Random(seed)
    return " ".join(f"the {rng.choice(WORDS)}{rng.randrange(99)} is a {rng.choice(WORDS)}" for _ in range(25))


# Other libraries count records that are pages: of a file, and so of its copy.


def count_archive(content, pack):
    if pack in (".zst", ".bz2"):
        content, pack = UNPACK[pack](content), ""
    return sum(
        record.rec_type == "response" and "html" in (record.http_headers.get_header("Content-Type") or "")
        for record in ArchiveIterator(io.BytesIO(content), arc2warc=True)
    )


COUNTS = {
    "jsonl": lambda content, pack: sum(bool(line.strip()) for line in UNPACK[pack](content).split(b"\n")),
    "csv": lambda content, pack: sum(
        1 for _ in csv.DictReader(io.StringIO(UNPACK[pack](content).decode(), newline=""))
    ),
    "parquet": lambda content, pack: pq.read_metadata(io.BytesIO(content)).num_rows,
    "trec": lambda content, pack: len(re.findall(rb"<DOC>", UNPACK[pack](content))),
    "warc": count_archive,
    "arc": count_archive,
    "folder": lambda content, pack: 1,
}


@st.composite
def inputs(draw, kind):
    """Draw the files of an input: name, content, compression; and the files of other formats."""
    good = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=1, max_size=14).filter(any))
    docs = [(f"d{k}", prose(draw(st.integers(0, 9))), not is_good) for k, is_good in enumerate(good)]
    files = {}
    if kind == "folder":
        for k, text, is_damaged in docs:
            pack = draw(st.sampled_from([pack for pack in PACK if pack or not is_damaged]))
            content = PACK[pack](text.encode())
            name = draw(st.sampled_from(["", "a/", "a/b/"])) + k + ".html" + pack
            files[name] = content[: len(content) // 2] if is_damaged else content, pack
    else:
        cuts = sorted({0, *draw(st.lists(st.integers(0, len(docs)), max_size=3)), len(docs)})
        for number, (a, b) in enumerate(pairwise(cuts)):
            pack = "" if kind == "parquet" else draw(st.sampled_from(list(PACK)))
            name = draw(st.sampled_from(NAMES)).format(number) + draw(st.sampled_from(["", pack]))
            files[name] = file_of(kind, docs[a:b], pack), pack
    foreign = draw(st.lists(st.sampled_from(list(FOREIGN)), unique=True, max_size=3))
    return files, {name: FOREIGN[name] for name in foreign}, len(docs) - sum(good)


def dedup(root, *options):
    """Run the command; return its folder of tables. Paths are absolute: a run in one process keeps its last input."""
    with redirect_stdout(io.StringIO()):
        main(["dedup", str(root / "in"), "--out", str(root / "out"), "--workers", "1", *options])
    return root / "out-results"


def listed(path):
    return [row["doc"] for row in rows_of(path)]


@pytest.mark.parametrize("kind", COUNTS)
def test_nothing_is_lost(kind):
    @examples(12, long=200)
    @given(drawn=inputs(kind), memory=st.sampled_from([False] * 5 + [True]))
    def check(drawn, memory):
        files, foreign, damaged = drawn
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, content in {**{name: content for name, (content, _) in files.items()}, **foreign}.items():
                Path(root, "in", name).parent.mkdir(parents=True, exist_ok=True)
                Path(root, "in", name).write_bytes(content)
            results = dedup(root, "--format", kind, *(["--memory", "1GB"] if memory else []))
            kept, removed = listed(results / "kept.csv"), listed(results / "removed.csv")
            skipped = listed(results / "skipped.csv") if (results / "skipped.csv").exists() else []
            out = contents(root / "out")
        total = sum(COUNTS[kind](content, pack) for content, pack in files.values())
        empty_is_read = {"_SUCCESS"} if kind in ("jsonl", "csv", "folder") else set()
        # An empty file has no records as lines and rows; as a page, one without suffix is one.
        assert len(kept) + len(removed) == total - damaged + (kind == "folder" and "_SUCCESS" in foreign)
        assert set(foreign) - empty_is_read <= set(skipped)
        assert len(skipped) == damaged + len(set(foreign) - empty_is_read)
        assert len({*kept, *removed, *skipped}) == len(kept) + len(removed) + len(skipped)
        gone = set(removed) if kind == "folder" else set()
        assert set(out) == {*files, *foreign} - gone
        assert {name: out[name] for name in foreign} == foreign
        left = sum(COUNTS[kind](out[name], pack) for name, (_, pack) in files.items() if name in out)
        assert left == total - len(removed)

    check()


STREAMS = {
    ".gz": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    ".zst": lambda: zstandard.ZstdDecompressor().decompressobj(),
    ".bz2": bz2.BZ2Decompressor,
}


@pytest.mark.parametrize("pack", STREAMS)
@pytest.mark.parametrize("kind", ["jsonl", "csv", "trec"])
def test_the_lines_before_the_damage_of_a_stream_are_records(kind, pack):
    """Another library reads what it can of a single member that is cut; the file itself is one skipped record."""
    docs = [(f"d{k}", prose(k), False) for k in range(900)]  # several blocks of zstd and bzip2
    content = PACK[pack](MAKES[kind](docs))
    ends = {"jsonl": rb"(?m)^.+\n", "csv": rb"(?m)^\"d.+\n", "trec": rb"</DOC>"}

    @examples(8)
    @given(st.integers(len(content) // 8, len(content) - 1), st.sampled_from([1000, 1 << 23]))
    def check(cut, shard_bytes):
        before = STREAMS[pack]().decompress(content[:cut])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x")
            path.write_bytes(content[:cut])
            try:
                actual = read(FORMATS[kind](path=str(path), shard_bytes=shard_bytes))
            except InputError:
                assert not before
                return
        assert ids(actual) == [f"d{k}" for k in range(len(re.findall(ends[kind], before)))]
        assert [record.id for record in actual if isinstance(record, Skipped)].count("x") == 1

    check()


@pytest.mark.parametrize("kind", ["list", "dicts", "arrow", "pandas"])
def test_functions_lose_nothing(kind):
    import pandas as pd

    @examples(8)
    @given(
        seeds=st.lists(st.integers(0, 9) | st.none(), min_size=1, max_size=14).filter(lambda seeds: {*seeds} != {None})
    )
    def check(seeds):
        texts = [None if seed is None else prose(seed) for seed in seeds]
        rows = [{"id": f"d{k}", "text": text} for k, text in enumerate(texts)]
        pages = {
            "list": texts,
            "dicts": rows,
            "arrow": pa.Table.from_pylist(rows, pa.schema({"id": pa.string(), "text": pa.string()})),
            "pandas": pd.DataFrame(rows).astype({"text": object}),
        }[kind]
        with warnings.catch_warnings():
            warnings.simplefilter("error" if None not in seeds else "ignore")
            kept = spotsigs.dedup(pages)
        left = {
            "list": lambda: list(kept),
            "dicts": lambda: [row["text"] for row in kept],
            "arrow": lambda: kept.column("text").to_pylist(),
            "pandas": lambda: [text if isinstance(text, str) else None for text in kept["text"]],
        }[kind]()
        first = [k for k, text in enumerate(texts) if text is None or text not in texts[:k]]
        assert left == [texts[k] for k in first]  # equal pages are duplicates, others share hardly any signature

    check()


def test_fastwarc_finds_in_a_zstd_copy_what_stays(tmp_path):
    docs = [(f"d{k}", prose(k % 3), False) for k in range(6)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.warc.zst").write_bytes(archive(docs, "warc", ".zst").replace(zstandard.compress(b""), b""))
    dedup(tmp_path)
    with (tmp_path / "out" / "x.warc.zst").open("rb") as file:
        names = [record.headers["WARC-Target-URI"] for record in FastWarc(file)]
    expected = [f"http://x/d{k}{end}" for k in range(6) for end in ("", ".png")]
    assert names == [name for name in expected if name not in {"http://x/d3", "http://x/d4", "http://x/d5"}]


# Hostile input: what looks like a record and is none, and records that look like none.

XHTML = (
    '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><{}/></head><body>{}<p>{}</p></body></html>'
)
CLOSED = ('script src="x"', "title", "style", "textarea", "iframe", "noscript", "noembed", "template")
"""Elements that XHTML may close by themselves; as HTML, each would hide the rest of its page."""

WACZ = {
    "datapackage.json": b'{"profile": "data-package"}',
    "pages/pages.jsonl": b'{"format": "json-pages-1.0", "id": "pages"}\n{"url": "http://x/0", "title": "a page"}\n',
    "indexes/index.cdx": b'example,x)/ 20240102030405 {"url": "http://x/0"}\n',
}


def of_length(record, length):
    """Return a record that declares another length."""
    return re.sub(rb"(?<=Content-Length: )\d+", b"%d" % length, record, count=1)


@st.composite
def hostile_archives(draw):
    """Draw an archive, the URLs of its pages, of damaged records, and of records inside of damaged ones."""
    pack, rng = draw(st.sampled_from(list(PACK))), random.Random(draw(st.integers(0, 99)))
    records, damaged, inside = [], set(), set()
    for k in range(draw(st.integers(2, 9))):
        body = prose(draw(st.integers(0, 4)))
        media_type = draw(st.sampled_from(["text/html", "application/xhtml+xml"]))
        if media_type == "text/html":
            body = f"<html><body><p>{body}</p></body></html>"
        else:
            closed = draw(st.sampled_from(CLOSED))
            body = XHTML.format("script src='y'", f"<{closed}/>" if closed != "title" else "", body)
        names = [f"http://false/{k}-{j}" for j in range(draw(st.integers(0, 3)))]
        inner = b"".join(PACK[draw(st.sampled_from(["", pack]))](warc_record(name, b"<p>a line")) for name in names)
        record = warc_record(f"http://x/{k}", b"<!--" + inner + b"-->" + body.encode(), media_type)
        if draw(st.sampled_from([False, False, False, True])):
            damaged.add(f"http://x/{k}")
            inside.update(names)
            record = of_length(record, draw(st.sampled_from([rng.randrange(90, 130), rng.randrange(10**4, 10**6)])))
        records.append(record)
    one_member = draw(st.booleans())
    content = PACK[pack](b"".join(records)) if one_member else b"".join(map(PACK[pack], records))
    return records, content, damaged, inside


@examples(60, long=1000)
@given(hostile_archives(), st.booleans(), st.sampled_from([500, 3000, 1 << 23]))
def test_each_record_is_read_or_listed_among_false_records_and_false_lengths(drawn, in_wacz, shard_bytes):
    records, content, damaged, inside = drawn
    pages = {f"http://x/{k}" for k in range(len(records))} - damaged
    if not pages:
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        name = "archive/x.warc" if in_wacz else "x.warc"
        files = {name: content, **(WACZ if in_wacz else {})}
        for path, of_file in files.items():
            (root / "in" / path).parent.mkdir(parents=True, exist_ok=True)
            (root / "in" / path).write_bytes(of_file)
        results = dedup(root)
        kept, removed = listed(results / "kept.csv"), listed(results / "removed.csv")
        skipped = listed(results / "skipped.csv") if (results / "skipped.csv").exists() else []
        out = contents(root / "out")
        sharded = read(FORMATS["warc"](path=str(root / "in" / name), shard_bytes=shard_bytes))
    read_pages = {*kept, *removed}
    assert pages <= read_pages <= pages | inside
    assert {page for page in damaged if not any(row.split(" ")[0] == page for row in skipped)} == set()
    assert set(ids(sharded)) == read_pages
    assert len(ids(sharded)) == len(kept) + len(removed)
    assert {name: out[name] for name in files if name in WACZ} == {name: WACZ[name] for name in files if name in WACZ}
    copy = every_byte(out[name])
    gone = {number_of(page) for page in removed}  # also a damaged record, of whose body a page is removed
    there = [k for k, record in enumerate(records) if record.strip() in copy]
    assert there == [k for k in range(len(records)) if k not in gone]


def number_of(page):
    """Return the number of the record of a page, or of the record whose body has it."""
    return int(re.match(r"http://\w+/(\d+)", page)[1])


def every_byte(content):
    """Unpack members of any compression, and the plain bytes between them."""
    parts = []
    while magic := re.search(rb"^(\x1f\x8b\x08|\x28\xb5\x2f\xfd|BZh)", content):
        stream = STREAMS[{b"\x1f": ".gz", b"\x28": ".zst", b"B": ".bz2"}[magic[0][:1]]]()
        parts.append(stream.decompress(content))
        content = stream.unused_data
    return b"".join([*parts, content])


@examples(30, long=500)
@given(st.lists(st.tuples(st.sampled_from(CLOSED), st.integers(0, 4)), min_size=1, max_size=8))
def test_no_text_after_an_element_of_xhtml_that_is_closed_by_itself_is_lost(drawn):
    """Pages of one prose are one, others stay, whatever element is closed by itself before the text."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "in").mkdir()
        for k, (closed, seed) in enumerate(drawn):
            inside = "" if closed == "title" else f"<{closed}/>"
            page = XHTML.format(closed if closed == "title" else "meta", inside, prose(seed))
            (root / "in" / f"{k}.xhtml").write_text(page)
        results = dedup(root)
        kept = listed(results / "kept.csv")
        assert len(kept) + len(listed(results / "removed.csv")) == len(drawn)
    assert sorted(drawn[int(name[0])][1] for name in kept) == sorted({seed for _, seed in drawn})


ROWS = {
    "plain": lambda k, text: f"d{k},{text}\n",
    "quoted": lambda k, text: f'"d{k}","{text}"\n',
    "with quotes": lambda k, text: f'd{k},"the ""{text}"", and more"\n',
    "of lines": lambda k, text: f'd{k},"{text}\nthe next line\n\nand another"\n',
    "unclosed": lambda k, text: f'd{k},"{text}\n',
    "unclosed id": lambda k, text: f'"d{k},{text}\n',
}


@pytest.mark.parametrize("pack", PACK)
def test_a_quote_that_is_not_closed_costs_its_own_line(pack):
    @examples(15, long=500)
    @given(st.lists(st.tuples(st.sampled_from(list(ROWS)), st.integers(0, 5)), min_size=1, max_size=12))
    def check(drawn):
        if all(kind.startswith("unclosed") for kind, _ in drawn):
            return
        rows = [ROWS[kind](k, prose(seed)) for k, (kind, seed) in enumerate(drawn)]
        offsets = [len("".join(["id,text\n", *rows[:k]])) for k in range(len(rows))]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "in").mkdir()
            (root / "in" / "x.csv").write_bytes(PACK[pack]("".join(["id,text\n", *rows]).encode()))
            results = dedup(root, "--format", "csv")
            kept, removed = listed(results / "kept.csv"), listed(results / "removed.csv")
            skipped = listed(results / "skipped.csv") if (results / "skipped.csv").exists() else []
            out = UNPACK[pack](contents(root / "out")["x.csv"]).decode()
        bad = [k for k, (kind, _) in enumerate(drawn) if kind.startswith("unclosed")]
        assert skipped == [f"x.csv@{offsets[k]}" for k in bad]
        assert {*kept, *removed} == {f"d{k}" for k in range(len(rows))} - {f"d{k}" for k in bad}
        assert out == "".join(["id,text\n", *(row for k, row in enumerate(rows) if f"d{k}" not in removed)])

    check()
