"""Every format on files, whole, damaged, and cut into shards of every size."""

import datetime
import gzip
import io
import json
import pickle
import random
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard
from archives import EVERY_FILE, PACK, arc_file, arc_record, crawl, file_of, ids, packed, texts, warc_record
from hydra.utils import instantiate
from omegaconf import OmegaConf

from data.collections.gold import Gold
from data.collections.newsframes import NewsFrames, ReutersVersions
from data.collections.republished import Republished
from data.collections.tiny import Tiny
from spotsigs.errors import InputError
from spotsigs.formats.arc import Arc
from spotsigs.formats.compression import open_bytes
from spotsigs.formats.csv_files import Csv, csv_rows
from spotsigs.formats.detect_format import FORMATS, collection_of
from spotsigs.formats.folder import Folder, SortedBy
from spotsigs.formats.http_response import iso_date, parse_response
from spotsigs.formats.input_files import lines, shard_ranges
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.parquet import Parquet
from spotsigs.formats.parquet_limits import CODECS, column_chunks
from spotsigs.formats.trec import Trec
from spotsigs.formats.warc import Warc
from spotsigs.records import Document, Skipped
from spotsigs.text.charset import to_utf8
from spotsigs.text.size_limits import page_size_limit

ROOT = Path(__file__).parents[2]


def read(collection):
    """Return the records of every shard, each shard pickled as a worker would get it."""
    return [record for shard in collection.shards() for record in pickle.loads(pickle.dumps(shard))()]


def documents(collection):
    records = read(collection)
    assert all(isinstance(record, Document) for record in records), records
    return records


def skipped(collection):
    return [record for record in read(collection) if isinstance(record, Skipped)]


# every format


@pytest.mark.parametrize(("kind", "pack"), EVERY_FILE)
@pytest.mark.parametrize("shard_bytes", [1, 700, 10**7])
def test_shards_give_every_document_once(tmp_path, kind, pack, shard_bytes):
    docs = texts(60, shard_bytes)
    path = tmp_path / f"x.{kind}{pack}"
    path.write_bytes(file_of(kind, docs, pack))
    collection = FORMATS[kind](path=str(path), shard_bytes=shard_bytes)
    actual = documents(collection)
    assert [document.id.removeprefix("http://x/") for document in actual] == [doc_id for doc_id, _, _ in docs]
    for document, (_, text, _) in zip(actual, docs, strict=True):
        content = document.content if isinstance(document.content, str) else document.content.decode()
        assert content.removeprefix("<p>").strip() == text.strip()
    assert (len(collection.shards()) > 1) == (shard_bytes < 10**6 or kind == "parquet")


OTHERS = [
    ("jsonl", b"\x00\x01binary", "is not JSON lines: it begins with"),
    ("csv", b"PK\x03\x04\x00\x00", "is not CSV: it begins with"),
    ("csv", b'{"id": "a", "text": "' + b"the cat, " * 1000, r"the file is JSON, not CSV; .* the format jsonl"),
    ("csv", b'\xef\xbb\xbf\n[{"text": "' + b"the cat, " * 1000, r"the file is JSON, not CSV; .* the format jsonl"),
    ("csv", b",".join(b"%d" % n + b"x" * 90 for n in range(1000)) + b"\n1\n", "'html' nor 'text'.* and 980 more"),
    ("csv", b"id,text\ra,hello\rb,you\r", "its columns are id, text a, hello b, you"),
    ("warc", b"<html>", "the file is not a WARC file: it begins with b'<html>'"),
    ("warc", gzip.compress(b"text", mtime=0), "the file is not a WARC file: it begins with b'text'"),
    ("warc", b"\x1f\x8b\x08\x00garbage", "its compressed stream is damaged or ends"),
    ("parquet", b"PAR1", "the file is not Parquet or is truncated"),
]


@pytest.mark.parametrize(("kind", "content", "sentence"), OTHERS)
def test_a_file_of_another_format_is_refused_in_a_sentence(tmp_path, kind, content, sentence):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=sentence) as refused:
        FORMATS[kind](path=str(tmp_path / "x")).shards()
    assert len(str(refused.value)) < 1500
    (tmp_path / "y").write_bytes(file_of(kind, texts(2)))
    assert [type(record) for record in read(FORMATS[kind](path=str(tmp_path)))] == [Skipped, Document, Document]


# folder


def test_folder_takes_the_first_level_for_the_cluster_on_request(tmp_path):
    for name in ("b/x.html", "a/y.htm", "a/deep/er/z.txt", "top.html", "a/plain", ".hidden/h.html", "a/.secret.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    pages = documents(Folder(path=str(tmp_path), clusters=SortedBy.folders))
    assert {d.cluster for d in documents(Folder(path=str(tmp_path)))} == {None}
    assert [(d.id, d.cluster, d.media_type) for d in pages] == [
        ("a/deep/er/z.txt", "a", "text/plain"),
        ("a/plain", "a", "text/html"),
        ("a/y.htm", "a", "text/html"),
        ("b/x.html", "b", "text/html"),
        ("top.html", None, "text/html"),
    ]
    assert pages[0].content == b"a/deep/er/z.txt"


def test_folder_shards_do_not_change_the_documents(tmp_path):
    rng = random.Random(1)
    for k in range(30):
        (tmp_path / f"{k}.html").write_bytes(rng.randbytes(rng.randrange(20000)))
    whole = documents(Folder(path=str(tmp_path)))
    shared = Folder(path=str(tmp_path), shard_bytes=9000)
    assert len(shared.shards()) > 5
    assert documents(shared) == whole


def test_tiny_is_a_collection_of_some_forty_pages():
    pages = documents(Tiny())
    sizes = {c: sum(d.cluster == c for d in pages) for c in {d.cluster for d in pages}}
    assert len(pages) == 45
    assert sum(size > 1 for cluster, size in sizes.items() if cluster) == 8
    assert sizes[None] == 2
    by_id = {d.id: d for d in pages}
    assert "malaria" in by_id["vaccine/north.html"].content.decode("utf-16")
    assert "Tâge" in by_id["drought/north.html"].content.decode("latin-1")


@pytest.mark.parametrize("name", [p.stem for p in sorted((ROOT / "conf" / "data").glob("*.yaml"))])
def test_each_yaml_names_a_class_and_its_fields(name):
    values = yaml.safe_load((ROOT / "conf" / "data" / f"{name}.yaml").read_text())
    for base in values.pop("defaults", []):
        values = yaml.safe_load((ROOT / "conf" / "data" / f"{base}.yaml").read_text()) | values
    values = {key: value for key, value in values.items() if "${" not in str(value)}  # those come from the root
    for key in ("truth", "unlabelled"):  # wrappers of the collection read them
        values.pop(key, None)
    module, _, cls = values.pop("_target_").rpartition(".")
    made = getattr(__import__(module, fromlist=[cls]), cls)
    assert set(values) <= {field.name for field in fields(made) if field.init}
    collection = made(**values)
    defaults = {key: getattr(collection, key) for key in values}
    assert defaults == values


OF_CLASSES = {
    "gold": Gold(),
    "newsframes": NewsFrames(),
    "reuters_versions": ReutersVersions(),
    **{name: Republished(releases=name) for name in ("republished", "manuals")},
    "republished2": Republished(releases="republished2", paths=200),
}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_yaml_without_a_path_has_the_defaults_of_its_class(name):
    assert instantiate(OmegaConf.load(ROOT / f"conf/data/{name}.yaml")) == OF_CLASSES[name]


# finding files


def test_glob_and_folder_name_files_alike(tmp_path):
    for name in ("a/1.jsonl", "b/2.jsonl", "b/[3].jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"text": "x"}\n')
    ids = [d.id for d in documents(Jsonl(path=str(tmp_path)))]
    assert ids == ["a/1.jsonl@0", "b/2.jsonl@0", "b/[3].jsonl@0"]
    for pattern in ("**/*.jsonl", "*"):
        assert [d.id for d in documents(Jsonl(path=f"{tmp_path}/{pattern}"))] == ids
    assert [d.id for d in documents(Jsonl(path=f"{tmp_path}/b/[3].jsonl"))] == ["[3].jsonl@0"]


LINES = b'{"id": "x", "text": "y"}\n' * 3
TINY = ["data/tiny/about.html", "data/tiny/ferry/wire.html"]


@pytest.mark.parametrize(
    ("reader", "content", "expected"),
    [
        (Jsonl, LINES, ["x"] * 3),
        (Jsonl, gzip.compress(LINES, mtime=0), ["x"] * 3),
        (Folder, "\n".join(TINY).encode(), TINY),
    ],
)
def test_standard_input(reader, content, expected):
    """It is read once in a process, and its documents any number of times."""
    script = f"from {reader.__module__} import {reader.__name__} as C\nc = C(path='-')\n"
    script += "for _ in range(2): print([d.id for s in c.shards() for d in s()])"
    done = subprocess.run([sys.executable, "-c", script], input=content, capture_output=True, check=True, cwd=ROOT)
    assert done.stdout.decode().splitlines() == [str(expected)] * 2


# jsonl


@pytest.mark.parametrize("pack", PACK)
def test_jsonl_fields(tmp_path, pack):
    rows = [
        {"id": "a", "html": "<p>x</p>", "cluster": "c", "date": "2024-01-01"},
        {"id": 7, "html": None, "text": "plain", "cluster": 3},
        {"text": ""},
        {"id": "last", "text": "\ud800"},
    ]
    path = tmp_path / f"x.jsonl{pack}"
    path.write_bytes(PACK[pack](b"\xef\xbb\xbf" + "\n\n".join(map(json.dumps, rows)).encode()))
    first, second, third, last = documents(Jsonl(path=str(path)))
    assert first == Document(id="a", content="<p>x</p>", cluster="c", date="2024-01-01")
    assert second == Document(id="7", content="plain", media_type="text/plain", cluster="3")
    assert third.id.startswith(f"x.jsonl{pack}@")
    assert (third.content, last.content) == ("", "?")


def test_windows_of_many_gzip_members_and_frames(tmp_path):
    text = b"".join(b"%d\n" % k for k in range(50_000))
    parts = [text[k : k + 1000] for k in range(0, len(text), 1000)]
    for pack, compress in PACK.items():
        path = tmp_path / f"x{pack}"
        path.write_bytes(b"".join(map(compress, parts)))
        cut = shard_ranges(path, 10_000)
        assert len(cut) > 1
        assert b"".join(line for start, stop in cut for _, line in lines(path, start, stop)) == text


# tables


@pytest.mark.parametrize("row_group_size", [7, 100, 10_000])
@pytest.mark.parametrize("shard_bytes", [500, 10**6])
def test_parquet_row_ranges(tmp_path, row_group_size, shard_bytes):
    docs = texts(1000, 2)
    groups = [None if k % 3 else k // 5 for k in range(1000)]
    columns = {"url": [doc_id for doc_id, _, _ in docs], "body": [text for _, text, _ in docs], "group": groups}
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    columns = {"id_column": "url", "html_column": "body", "cluster_column": "group"}
    collection = Parquet(path=str(path), shard_bytes=shard_bytes, **columns)
    rows = documents(collection)
    assert [(d.id, d.content) for d in rows] == [doc[:2] for doc in docs]
    assert [d.cluster for d in rows] == [None if g is None else str(g) for g in groups]
    assert (len(collection.shards()) > 1) == (row_group_size < 1000 or shard_bytes == 500)


def test_parquet_null_content_bytes_and_dates(tmp_path):
    day = datetime.datetime(2024, 1, 2, 3, 4, 5)
    columns = {"text": [None, b"bytes \xff"], "date": pa.array([day, None]), "cluster": [float("nan"), 1.0]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    first, second = read(Parquet(path=str(tmp_path / "x.parquet")))
    assert first == Skipped("x.parquet#0", "the row has neither 'html' nor 'text'")
    assert second == Document(id="x.parquet#1", content=b"bytes \xff", media_type="text/plain", cluster="1.0")


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_columns_of_parquet_are_where_pyarrow_finds_them(tmp_path, codec):
    rows = [{"text": f"text {k}", "a.b": k % 3, "nested": {"text": ["x"] * (k % 4)}} for k in range(500)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=200, compression=codec, use_dictionary=["a.b"])
    with path.open("rb") as file:
        row_groups = column_chunks(file)
    theirs = pq.ParquetFile(path).metadata
    assert len(row_groups) == theirs.num_row_groups == 3
    for group, chunks in enumerate(row_groups):
        assert [chunk.column for chunk in chunks] == ["text", "a.b", "nested"]
        for k, chunk in enumerate(chunks):
            facts = theirs.row_group(group).column(k)
            start = facts.dictionary_page_offset or facts.data_page_offset
            assert (chunk.start, chunk.stop) == (start, start + facts.total_compressed_size)
            assert CODECS[chunk.codec] == codec


def test_a_parquet_column_with_a_dot_in_its_name_is_measured(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"the.text": ["word " * 4_000_000]}), path, compression="zstd")
    with page_size_limit(8 << 20):
        (record,) = read(Parquet(path=str(path), text_column="the.text"))
    assert "unpack to 19 MiB, more than 16 MiB" in record.reason


@pytest.mark.parametrize("where", ["read", "copy"])
def test_parquet_whose_statistics_contradict_its_schema_does_not_end_the_process(tmp_path, where):
    """PyArrow ends the process when the column of such a footer is read."""
    file = Path(__file__).parents[1] / "fuzz/corpus/parquet/size-statistics-that-contradict-the-schema"
    collection = Parquet(path=str(shutil.copy(file, tmp_path / "x.parquet")))
    if where == "read":
        (record,) = skipped(collection)
        assert record.reason == "rows 0 to 1 cannot all be read: a column has no metadata"
    else:
        with pytest.raises(InputError, match=r"x\.parquet cannot be copied, because it cannot all be read"):
            collection.copy(tmp_path / "copy", lambda _document: True)


def test_damaged_parquet_pages_are_listed(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": [random.Random(k).randbytes(99).hex() for k in range(2000)]}), path)
    content = bytearray(path.read_bytes())
    content[2000:9000] = bytes(7000)
    path.write_bytes(content)
    assert any("cannot all be read" in s.reason for s in skipped(Parquet(path=str(path))))


def test_csv_ragged_rows_encodings_and_long_fields(tmp_path):
    path = tmp_path / "x.csv"
    long = "the cat " * 100_000
    path.write_bytes(f"id;html\na;{long}\nb\nc;é\rè\n".encode("latin-1"))
    first, second, third = read(Csv(path=str(path), delimiter=";", charset="latin-1"))
    assert first.content == long.encode()
    assert second.reason == "the row has 1 fields, the header 2"
    assert third == Document(id="c", content="é è".encode("latin-1"), charset="latin-1")


TABLES = {"csv": '"id",text,"a;b;c;d;e"\n1,x,"y"\n2,z,\n', "jsonl": '{"id": 1, "text": "x"}\n{"id": 2, "text": "z"}\n'}


@pytest.mark.parametrize("pack", ["", ".gz"])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n \n\r\n", b"\xef\xbb\xbf\r\n\n"])
@pytest.mark.parametrize("kind", TABLES)
def test_marks_and_blank_lines_before_a_table(tmp_path, kind, before, pack):
    path = tmp_path / "file"
    path.write_bytes(PACK[pack](before + TABLES[kind].encode()))
    name, collection = collection_of(str(path))
    assert (name, [(d.id, to_utf8(d.content)) for d in documents(collection)]) == (kind, [("1", b"x"), ("2", b"z")])


@pytest.mark.parametrize("codec", ["utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("kind", TABLES)
def test_tables_that_do_not_include_ascii_are_refused_with_the_way_out(tmp_path, kind, codec):
    path = tmp_path / "file"
    path.write_bytes(TABLES[kind].encode(codec))
    name, collection = collection_of(str(path))
    assert name == kind
    with pytest.raises(InputError, match="iconv") as error:
        collection.shards()
    source = str(error.value).split()[-3]
    assert path.read_bytes().decode(source).removeprefix("\ufeff") == TABLES[kind]


def test_objects_next_to_pages_are_no_json_lines(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"status": 200}')
    (tmp_path / "c.html").write_text("<p>page")
    name, collection = collection_of(str(tmp_path))
    assert (name, ids(read(collection))) == ("folder", ["c.html"])


@pytest.mark.parametrize(("kind", "expected"), [("csv", ["1", "2"]), ("jsonl", ["1"])])
def test_a_nul_costs_no_other_record(tmp_path, kind, expected):
    (tmp_path / "file").write_text(TABLES[kind].replace("z", "z\0"))
    assert ids(read(collection_of(str(tmp_path / "file"))[1])) == expected


QUOTES = [
    (b'id,text\n1,"open\n2,x\n3,y\n', ["2", "3"]),
    (b'id,text\n1,"open\n2,x\n3,"y"\n4,z\n', ["2", "3", "4"]),  # the next quote would end it in the middle of a field
    (b'id,text\n1,"a\nb ""q""\n c"\n2,x\n', ["1", "2"]),
    (b'id,text\r\n1,"a\r\n\r\nb"\r\n2,"x\r\n3,y\r\n', ["1", "3"]),
    (b'id,text\n1,x\n2,"', ["1"]),
    (b'id,text\n1,"open\n' + b"2,x\n" * 4000 + b'3,"z"', [*["2"] * 4000, "3"]),
]


@pytest.mark.parametrize("pack", ["", ".gz"])
@pytest.mark.parametrize(("content", "expected"), QUOTES)
def test_an_open_quote_costs_its_line_and_no_other(tmp_path, content, expected, pack):
    path = tmp_path / f"x.csv{pack}"
    path.write_bytes(PACK[pack](content))
    records = read(Csv(path=str(path), shard_bytes=1 << 17))
    assert ids(records) == expected
    reasons = {record.reason for record in records if isinstance(record, Skipped)}
    assert reasons <= {"a quote in this line is not closed"}
    Csv(path=str(path)).copy(tmp_path / "copy", lambda document: True)
    with open_bytes(tmp_path / "copy" / path.name) as copy:
        assert copy.read() == content  # nothing was removed


def test_the_work_for_csv_is_linear_in_its_lines():
    """Any line may open a quote that runs to the end: calls are counted, not timed."""

    def counting(frame, event, called):
        nonlocal calls
        calls += event in ("call", "c_call")

    for row in (b'x"y","z\n', b'"y\n', b'a,"\n', b'"",""""\n', b'a,"b\nc",d\n', b'"a\n"b"\n'):
        counts = []
        for n in (500, 1000):
            calls, before = 0, sys.getprofile()
            sys.setprofile(counting)
            try:
                texts = [row_read.text for row_read in csv_rows(io.BytesIO(row * n), ",")]
            finally:
                sys.setprofile(before)
            assert b"".join(texts) == row * n
            counts.append(calls)
        assert counts[1] <= 2.1 * counts[0]


# stored responses


@pytest.mark.parametrize(
    ("block", "status", "media_type", "charset", "is_page"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset='CP1252'\r\n\r\n", 200, "text/html", "CP1252", 1),
        (b"HTTP/1.0 404 Not Found\nContent-type: text/html\n\n", 404, "text/html", None, 0),
        (b"HTTP/1.1 200\r\ncontent-type:image/png\r\n\r\n", 200, "image/png", None, 0),
        (b"HTTP/1.1 200 OK\r\n\r\n <!-- x --><!DOCTYPE HTML>", 200, "", None, 1),
        (b"HTTP/1.1 200 OK\r\n\r\n%PDF-1.4", 200, "", None, 0),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"<!---->" * 300, 200, "", None, 0),
        (b"<html>HTTP/0.9", None, "", None, 1),
        (b"HTTP/1.1 200 OK", 200, "", None, 0),
    ],
)
def test_responses_are_parsed(block, status, media_type, charset, is_page):
    response = parse_response(block)
    assert (response.status, response.content_type, response.charset) == (status, media_type, charset)
    assert response.is_page == bool(is_page)


def test_archive_dates():
    assert iso_date(b"19970109132131") == "1997-01-09T13:21:31Z"
    assert iso_date(b"19970109") == "1997-01-09T00:00:00Z"


# archives


@pytest.mark.parametrize("pack", PACK)
def test_warc_takes_pages_and_nothing_else(tmp_path, pack):
    records = [
        warc_record("", b"software: x\r\n", "application/warc-fields", kind="warcinfo"),
        warc_record("http://x/page", "<p>é".encode("latin-1"), "text/html; charset=iso-8859-1"),
        warc_record("http://x/page", b"GET / HTTP/1.1\r\n\r\n", "application/http; msgtype=request", kind="request"),
        warc_record("http://x/image", b"\x89PNG", "image/png"),
        warc_record("http://x/gone", b"<p>gone", status="404 Not Found"),
        warc_record("<http://x/xhtml>", b"<p>", "application/xhtml+xml", headers="Content-Encoding: gzip\r\n"),
        warc_record("http://x/saved", b"<p>saved", "text/html", kind="resource"),
        warc_record("http://x/text", b"the text", "text/plain", kind="conversion"),
        warc_record("http://x/odd", b"<p>", headers="Content-Encoding: compress\r\n"),
    ]
    path = tmp_path / f"x.warc{pack}"
    path.write_bytes(packed(records, pack))
    *pages, odd = read(Warc(path=str(path)))
    date = "2024-01-02T03:04:05Z"
    assert pages == [
        Document(id="http://x/page", content="<p>é".encode("latin-1"), charset="iso-8859-1", date=date),
        Document(id="http://x/xhtml", content=b"<p>", media_type="application/xhtml+xml", date=date),
        Document(id="http://x/saved", content=b"<p>saved", date=date),
        Document(id="http://x/text", content=b"the text", media_type="text/plain", date=date),
    ]
    assert odd.id.startswith(f"http://x/odd (x.warc{pack}@")
    assert "encoding 'compress' is unknown" in odd.reason


def test_arc_takes_pages_of_both_versions(tmp_path):
    records = [arc_record("http://x/img", b"x", "image/png"), arc_record("http://x/no", b"x", status="404 No")]
    records = [*arc_file(0, random.Random(0)), *records, arc_record("v2:x", b"x", version=2)]
    (tmp_path / "x").write_bytes(b"".join(records))
    [page] = read(Arc(path=str(tmp_path / "x")))
    assert page == Document(id="v2:x", content=b"x", charset="utf-8", date="2001-02-03T04:05:06Z")


@pytest.mark.parametrize(("kind", "pack"), [("warc", ".gz"), ("warc", ".zst"), ("arc", ".gz")])
def test_archives_of_one_member_and_of_a_few(tmp_path, kind, pack):
    records = crawl(60, random.Random(3)) if kind == "warc" else arc_file(60, random.Random(3))
    reader = Warc if kind == "warc" else Arc
    for size in (61, 16):
        parts = [b"".join(records[k : k + size]) for k in range(0, len(records), size)]
        path = tmp_path / f"{size}.{kind}{pack}"
        path.write_bytes(packed(parts, pack))
        collection = reader(path=str(path), shard_bytes=2000)
        assert [d.id for d in documents(collection)] == [f"http://x/{k}" for k in range(60)]
        assert len(collection.shards()) == len(parts)


def test_warc_with_a_zstd_dictionary(tmp_path):
    records = crawl(200, random.Random(4))
    dictionary = zstandard.train_dictionary(4096, records)
    frame = b"\x5d\x2a\x4d\x18" + len(dictionary.as_bytes()).to_bytes(4, "little") + dictionary.as_bytes()
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    path = tmp_path / "x.warc.zst"
    path.write_bytes(frame + b"".join(map(compressor.compress, records)))
    assert len(documents(Warc(path=str(path), shard_bytes=100))) == 200


def archive_of(kind, n, seed):
    return crawl(n, random.Random(seed)) if kind == "warc" else arc_file(n, random.Random(seed))[1:]


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("where", ["head", "body"])
@pytest.mark.parametrize("shard_bytes", [3000, 10**7])
def test_damage_of_an_arc_file_costs_one_record_and_is_listed_once(tmp_path, pack, where, shard_bytes):
    if (pack, where) == (".zst", "body"):
        return  # the frames have no checksum that would show this damage
    parts = [bytearray(PACK[pack](record)) for record in archive_of("arc", 40, 5)]
    at, damage = 0 if where == "head" else len(parts[20]) // 2, b"\x07" * 8
    if not pack:  # the address of the record, or its length
        at, damage = (0, b"7://////") if where == "head" else (parts[20].index(b"\n") - 1, b"x")
    parts[20][at : at + len(damage)] = damage
    path = tmp_path / f"x.arc{pack}"
    path.write_bytes(b"".join(parts))
    records = read(Arc(path=str(path), shard_bytes=shard_bytes))
    assert ids(records) == [f"http://x/{k}" for k in range(40) if k != 20]
    [fault] = [record for record in records if isinstance(record, Skipped)]
    assert "cannot be read" in fault.reason


@pytest.mark.parametrize("kind", ["warc", "arc"])
@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.97])
@pytest.mark.parametrize("whole", [False, True])
def test_truncated_archive(tmp_path, kind, pack, part, whole):
    records = archive_of(kind, 5, 6)
    content = PACK[pack](b"".join(records)) if whole else packed(records, pack)
    last = len(content) if whole else len(PACK[pack](records[-1]))
    path = tmp_path / f"x.{kind}{pack}"
    path.write_bytes(content[: len(content) - int(last * (1 - part))])
    if whole and pack in (".zst", ".bz2"):  # even the first block of the only frame is truncated
        with pytest.raises(InputError, match="ends before a record begins"):
            FORMATS[kind](path=str(path)).shards()
        return
    records = read(FORMATS[kind](path=str(path)))
    good = ids(records)
    assert good == [f"http://x/{k}" for k in range(len(good))]
    assert len(good) >= 4 or whole
    assert [type(record) for record in records[len(good) :]] == [Skipped] * (len(good) < 5)


def test_warc_inside_a_warc_loses_nothing(tmp_path):
    rng = random.Random(7)
    inner = b"".join(warc_record(f"http://inner/{k}", rng.randbytes(300).hex().encode()) for k in range(50))
    for pack in ("", ".gz"):
        stored = packed([inner], pack)
        records = [*crawl(3, rng), warc_record("http://x/archive", stored, "application/warc"), *crawl(3, rng)]
        records[3] = gzip.compress(records[3], 0, mtime=0) if pack else records[3]
        others = packed([*records[:3]], pack), packed([*records[4:]], pack)
        (tmp_path / f"x.warc{pack}").write_bytes(others[0] + records[3] + others[1])
        for shard_bytes in (200, 1000, 10**6):
            names = [r.id for r in read(Warc(path=str(tmp_path / f"x.warc{pack}"), shard_bytes=shard_bytes))]
            outer = [doc_id for doc_id in names if doc_id.startswith("http://x/")]
            assert outer == ["http://x/0", "http://x/1", "http://x/2"] * 2


# TREC

WT10G = """<DOC>
<DOCNO>WTX001-B01-{k}</DOCNO>
<DOCOLDNO>IA001-000000-B001-1</DOCOLDNO>
<DOCHDR>
http://www.example.org:80/{k}.html 144.92.199.63 19970109132131 text/html 3014
HTTP/1.0 200 OK
Date: Thu, 09 Jan 1997 13:21:36 GMT
Content-type: text/html; charset=ISO-8859-1
</DOCHDR>
<html>page {k} {text}
<DOC> is only a tag of this page
</html>
</DOC>
"""


def test_trec_in_the_form_of_wt10g(tmp_path):
    path = tmp_path / "B01"
    path.write_text("".join(WT10G.format(k=k, text=k) for k in range(9)))
    for shard_bytes in (100, 10**7):
        pages = documents(Trec(path=str(path), shard_bytes=shard_bytes))
        assert [d.id for d in pages] == [f"WTX001-B01-{k}" for k in range(9)]
    assert pages[3].content == b"<html>page 3 3\n<DOC> is only a tag of this page\n</html>\n"
    assert (pages[3].charset, pages[3].date) == ("ISO-8859-1", "1997-01-09T13:21:31Z")


@pytest.mark.parametrize("between", ["\n", "\r\n\n  \n", "<DOCID>7</DOCID>\n", "\n<DOCID> 7 </DOCID>\n\n"])
def test_trec_documents_whose_number_comes_later(tmp_path, between):
    docs = [f"<DOC>{between}<DOCNO>d{k}</DOCNO>\n<p>text {k}\n<DOC>\nof it\n</DOC>\n" for k in range(9)]
    (tmp_path / "B01").write_text("".join(docs), newline="")
    for shard_bytes in (1 << 20, 100, 40):
        pages = documents(Trec(path=str(tmp_path / "B01"), shard_bytes=shard_bytes))
        assert [d.id for d in pages] == [f"d{k}" for k in range(9)]


def test_trec_documents_without_a_number_are_counted_in_any_shards(tmp_path):
    good = "<DOC>\n<DOCNO>{}</DOCNO>\nthe page\n</DOC>\n"
    lost = "<DOC>\nthe page has no number\n</DOC>\n"
    inside = "<DOC>\n<DOCNO>c</DOCNO>\n<DOC>\nthe tag inside\n</DOC>\n"
    path = tmp_path / "B01"
    path.write_text(good.format("a") + lost + lost + inside + good.format("d") + lost)
    whole = list(Trec(path=str(path)).shards()[0]())
    assert [isinstance(record, Document) for record in whole] == [True, False, False, True, True, False]
    for shard_bytes in range(10, path.stat().st_size, 3):
        shards = Trec(path=str(path), shard_bytes=shard_bytes).shards()
        assert [record for shard in shards for record in shard()] == whole


NO_NUMBER, NO_END = "the document has no <DOCNO>", "the document has no </DOC>: it is truncated"
TREC = {
    "without a header, and damaged": (
        b"<DOC><DOCNO> FT911-3 </DOCNO>\n<TEXT>the news</TEXT>\n</DOC>\n<DOC>\n<DOCNO></DOCNO>\nx\n</DOC>\n"
        b"<DOC>\n<DOCNO>open</DOCNO>\nx\n<doc>\n<docno>low</docno>\n<p>x\n</doc>\n<DOC>\n<DOCNO>cut</DOCNO>\nx",
        [
            Document(id="FT911-3", content=b"<TEXT>the news</TEXT>\n"),
            Skipped("x.trec@59", NO_NUMBER),
            Skipped("open (x.trec@90)", NO_END),
            Document(id="low", content=b"<p>x\n"),
            Skipped("cut (x.trec@155)", NO_END),
        ],
    ),
    "with attributes": (
        b'<DOC id="a">\n<DOCNO>1</DOCNO>\none\n</DOC>\n<DOC id="b">\ntwo\n</DOC>\n',
        [Document(id="1", content=b"one\n"), Skipped("x.trec@41", NO_NUMBER)],
    ),
    "two in one line": (
        b"<DOC><DOCNO>a</DOCNO>x</DOC> <DOC><DOCNO>b</DOCNO>y</DOC>\n<DOC><DOCNO>c</DOCNO>z</DOC>",
        [
            Skipped("a (x.trec@0)", "another document begins in the line of its </DOC>; write one a line"),
            Document(id="c", content=b"z"),
        ],
    ),
}


@pytest.mark.parametrize("case", TREC)
def test_trec_documents_are_read_or_listed(tmp_path, case):
    (tmp_path / "x.trec").write_bytes(TREC[case][0])
    name, collection = collection_of(str(tmp_path / "x.trec"))
    assert (name, read(collection)) == ("trec", TREC[case][1])
