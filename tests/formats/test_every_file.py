"""Every file of an input is read, or listed with the reason and copied; cut pages are skipped."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import os
import random
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from archives import PACK, archive, crawl, file_of, ids, packed, read, warc_record, write_copy
from test_writers import contents

from spotsigs.doors.cli import DO, main, parser
from spotsigs.errors import InputError
from spotsigs.formats.compression import Members, open_bytes
from spotsigs.formats.csv_files import Csv
from spotsigs.formats.detect_format import collection_of, format_of
from spotsigs.formats.folder import Folder
from spotsigs.formats.input_files import find_sources
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.parquet import Parquet
from spotsigs.formats.warc import Warc
from spotsigs.records import Skipped
from spotsigs.text.size_limits import page_size_limit


def skipped(records):
    return {record.id: record.reason for record in records if isinstance(record, Skipped)}


def rows(*names):
    return b"".join(json.dumps({"id": name, "text": f"the page {name}"}).encode() + b"\n" for name in names)


def copied(collection, folder):
    """Return the names and unpacked contents of a copy with all pages."""
    folder.mkdir()
    collection.copy(folder, lambda _document: True)
    return contents(folder)


# names and formats

NAMES = [
    ("jsonl", ["c4-train.00000-of-01024.json.gz", "c4-train.00001-of-01024.json.gz", "x.jsonl"]),
    ("jsonl", ["v1_5-sample-0000.json.gz", "cc_en_head-0001.json.zst"]),
    ("jsonl", ["part-00000", "part-00001-5f1c8d0e-c000.json.gz", "part-00002-5f1c.json.bz2"]),
    ("jsonl", ["pages.jsonl.1", "pages.jsonl.2.gz", "pages.jsonl"]),
    ("warc", ["CC-MAIN-2024-10-00000.warc.gz.1", "crawl", "x.warc.gz.open", "y.warc"]),
]


@pytest.mark.parametrize(("kind", "names"), NAMES)
def test_files_are_read_whatever_their_names(tmp_path, kind, names):
    for name in names:
        pack = next((ending for ending in PACK if ending and ending in name), "")
        (tmp_path / name).write_bytes(file_of(kind, [(name, "x", False)], pack))
    for name, content in {"_SUCCESS": "", "manifest.txt": "a list of files\n"}.items():
        (tmp_path / name).write_text(content)
    name, collection = collection_of(str(tmp_path))
    assert name == kind
    assert sorted(doc_id.removeprefix("http://x/") for doc_id in ids(read(collection))) == sorted(names)


def test_pages_are_detected_by_their_content(tmp_path):
    files = {
        "a.html.gz": gzip.compress(b"<html>a", mtime=0),
        "b.php": b"\n<!DOCTYPE html><p>b",
        "c.aspx@id=3": b"<html>c",
        "d.txt.zst": PACK[".zst"](b"d"),
        "e.HTML": b"e",
        "f.css": b"p {}",
        "g.html.gz": gzip.compress(b"<html>" + os.urandom(999))[:-20],
    }
    (tmp_path / "in").mkdir()
    for name, content in files.items():
        (tmp_path / "in" / name).write_bytes(content)
    collection = Folder(path=str(tmp_path / "in"))
    records = read(collection)
    assert ids(records) == ["a.html.gz", "b.php", "c.aspx@id=3", "d.txt.zst", "e.HTML"]
    assert records[0].content == b"<html>a"
    assert records[3].media_type == "text/plain"
    assert skipped(records)["g.html.gz"].startswith("the compressed stream is truncated")
    (tmp_path / "out").mkdir()
    collection.copy(tmp_path / "out", lambda _document: True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == files


def test_a_compressed_page_may_not_unpack_to_more_than_a_page(tmp_path):
    (tmp_path / "x.html.gz").write_bytes(gzip.compress(bytes(1 << 20)))
    with page_size_limit(1 << 16):
        [record] = read(Folder(path=str(tmp_path)))
    assert record == Skipped("x.html.gz", "the page has more than 64 KiB")


# folders


def test_an_unreadable_folder_is_listed_and_stops_a_strict_run(tmp_path, monkeypatch):
    for name in ("a/1.html", "b/2.html", "b/c/3.html"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("<html>")
    scan = os.scandir

    def denied(path):
        if not isinstance(path, int) and Path(path).name in ("b", "c"):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", denied)
    records = read(Folder(path=str(tmp_path / "in")))
    assert ids(records) == ["a/1.html"]
    assert skipped(records) == {"b/": "the folder cannot be read: permission denied"}
    for pattern in ("**/*.html", "*/*.html"):
        assert skipped(read(Folder(path=f"{tmp_path}/in/{pattern}"))) == skipped(records)
    assert skipped(read(Folder(path=f"{tmp_path}/in/a*/*.html"))) == {}
    with pytest.raises(InputError, match=r"b/: the folder cannot be read: permission denied"):
        DO["dedup"](parser().parse_args(["dedup", f"{tmp_path}/in", "--out", f"{tmp_path}/out", "--strict"]))
    with pytest.raises(InputError, match=r"in/b cannot be read: permission denied"):
        find_sources(str(tmp_path / "in" / "b"))


@pytest.mark.parametrize("at", [0, 1])
def test_one_unreadable_file_does_not_end_a_run(tmp_path, monkeypatch, at):
    """Detection of the format read it too, and ended with an error."""
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(rows(name))
    bad, opened = tmp_path / f"{'ab'[at]}.jsonl", Path.open

    def denied(path, *arguments, **more):
        if path == bad:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", denied)
    name, collection = collection_of(str(tmp_path))
    records = read(collection)
    assert name == "jsonl"
    assert ids(records) == ["ba"[at] + ".jsonl"]
    assert skipped(records) == {bad.name: "cannot be read: permission denied"}
    with pytest.raises(InputError, match=r"cannot be read: permission denied"):
        format_of(str(bad))


def test_results_inside_the_input_are_no_pages(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.html").write_text("<html>the page is a page")
    monkeypatch.chdir(tmp_path)
    main(["dedup", "in", "--out", "out", "--workers", "1"])
    shutil.copytree("out-results", "in/results")
    faults = {source.name: source.fault for source in find_sources("in")}
    assert faults == {"a.html": None, "results/": "the results of a run are not read"}


# empty shards and columns


@pytest.mark.parametrize(("name", "memory"), [("x.jsonl", ("--memory", "1GB")), ("x.csv", ()), ("x.json", ())])
def test_an_empty_file_is_an_empty_collection(tmp_path, monkeypatch, name, memory):
    (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    main(["dedup", name, "--out", "out", "--workers", "1", *memory])
    assert (tmp_path / "out" / name).read_bytes() == b""


NESTED = {"doc": {"url": "u", "body": {"html": "<p>nested"}}, "html": "<p>flat"}


def test_nested_columns(tmp_path):
    names = {"id_column": "doc.url", "html_column": "doc.body.html"}
    (tmp_path / "x.jsonl").write_text(json.dumps(NESTED) + "\n" + json.dumps({"doc.body.html": "<p>dotted"}))
    first, second = read(Jsonl(path=str(tmp_path / "x.jsonl"), **names))
    assert (first.id, first.content, second.content) == ("u", "<p>nested", "<p>dotted")
    pq.write_table(pa.Table.from_pylist([NESTED, NESTED]), tmp_path / "x.parquet")
    collection = Parquet(path=str(tmp_path / "x.parquet"), **names)
    assert [(d.id, d.content) for d in read(collection)] == [("u", "<p>nested")] * 2
    (tmp_path / "out").mkdir()
    kept = iter([True, False])
    collection.copy(tmp_path / "out", lambda _document: next(kept))
    assert pq.read_table(tmp_path / "out" / "x.parquet").to_pylist() == [NESTED]
    with pytest.raises(InputError, match=r"has no column 'doc.page'; its columns are doc, doc.url, doc.body, doc.bo"):
        read(Parquet(path=str(tmp_path / "x.parquet"), html_column="doc.page"))


def test_unknown_keys_list_those_that_exist(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"url": "u", "body": "x"}\n')
    with pytest.raises(InputError, match=r"has no key 'boddy' in its first lines; their keys are url, body"):
        read(Jsonl(path=str(tmp_path / "x.jsonl"), text_column="boddy"))
    with pytest.raises(InputError, match=r"has no key 'uri' in its first lines; their keys are url, body"):
        read(Jsonl(path=str(tmp_path / "x.jsonl"), text_column="body", id_column="uri"))


def test_view_columns_of_parquet(tmp_path):
    text = pa.array(["x", None, "z"]).cast(pa.string_view())
    unused = pa.array([b"1", b"2", b"3"]).cast(pa.binary_view())
    table = pa.table({"id": ["a", "b", "c"], "text": text, "unused": unused})
    pq.write_table(table, tmp_path / "x.parquet")
    collection = Parquet(path=str(tmp_path / "x.parquet"))
    records = read(collection)
    assert [(r.id, getattr(r, "content", None)) for r in records] == [("a", "x"), ("b (x.parquet#1)", None), ("c", "z")]
    (tmp_path / "out").mkdir()
    collection.copy(tmp_path / "out", lambda document: document.id != "a")
    assert pq.read_table(tmp_path / "out" / "x.parquet").to_pylist() == table.to_pylist()[1:]


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 123456789012345678901234567890, "text": "x"}',
        '{"id": 1.50, "text": "x", "more": NaN}',
        '{"id": "a", "text": "lone \\ud800"}',
        '{"id": 1e400, "text": "x"}',
        '{"id": "a", "id": "b", "text": "x"}',
        '{"id": "a", "text": "x", "deep": ' + "[" * 1500 + "]" * 1500 + "}",
        '{"id": "\\u0000", "text": "\\ud83d\\ude00"}',
        '{"id": 18446744073709551616, "text": "x"}',
        '{"id": "a", "text": "x"} trailing',
        '{"id": "a", "text": "tab\tin text"}',
        "{'id': 1}",
        '{"id": -0.0, "text": "x", "cluster": 12345678901234567890123}',
    ],
)
def test_two_parsers_of_json_agree(tmp_path, monkeypatch, line):
    import orjson

    (tmp_path / "x.jsonl").write_text(line)
    records = read(Jsonl(path=str(tmp_path / "x.jsonl")))

    def refuse(_line):
        raise orjson.JSONDecodeError("", "", 0)

    monkeypatch.setattr(orjson, "loads", refuse)
    assert records == read(Jsonl(path=str(tmp_path / "x.jsonl")))


# captures

BODY = b"<html><p>the plan is a new bridge " * 9


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n" % (len(BODY), BODY)),
        (f"Content-Length: {len(BODY) + 100}\r\n", BODY),
        ("Content-Encoding: gzip\r\n", b"\r\n" + gzip.compress(BODY * 9, mtime=0)[:-30]),
    ],
)
def test_a_cut_capture_does_not_replace_the_complete_one(tmp_path, headers, body):
    """The cut one came first, was kept, and the complete one was removed as its duplicate."""
    cut, whole = warc_record("http://x/a", body, headers=headers), warc_record("http://x/a", BODY)
    (tmp_path / "x.warc").write_bytes(cut + whole)
    first, second = read(Warc(path=str(tmp_path / "x.warc")))
    assert first.id == "http://x/a (x.warc@0)"
    assert "cut short" in first.reason
    assert (second.id, second.content) == ("http://x/a", BODY)
    assert copied(Warc(path=str(tmp_path / "x.warc")), tmp_path / "out")["x.warc"] == cut + whole


def test_a_page_that_the_crawler_has_cut_is_skipped(tmp_path):
    record = warc_record("http://x/a", BODY).replace(b"WARC-Type:", b"WARC-Truncated: length\r\nWARC-Type:")
    (tmp_path / "x.warc").write_bytes(record)
    [record] = read(Warc(path=str(tmp_path / "x.warc")))
    assert record.reason == "the crawler has cut it: WARC-Truncated: length"


def test_skipped_and_kept_captures_of_one_address_have_different_names(tmp_path):
    bad = warc_record("http://x/a", b"<p>", headers="Content-Encoding: compress\r\n")
    (tmp_path / "x.warc").write_bytes(bad + warc_record("http://x/a", b"<p>one") + bad)
    records = read(Warc(path=str(tmp_path / "x.warc")))
    assert [record.id for record in records] == [
        "http://x/a (x.warc@0)",
        "http://x/a",
        f"http://x/a (x.warc@{(tmp_path / 'x.warc').stat().st_size - len(bad)})",
    ]


def test_a_page_whose_text_cannot_be_read_has_another_name(tmp_path):
    """Both captures have the same id; the first has more tags than fit."""
    pages = [{"id": "a", "html": "<p>" * 900_000}, {"id": "a", "html": "<p>the page is a page"}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    main(["dedup", str(tmp_path / "x.jsonl"), "--out", str(tmp_path / "out"), "--workers", "1", "--memory", "1GB"])
    assert "a," in (tmp_path / "out-results" / "kept.csv").read_text()
    assert '\na#2,"the page is larger than 8 MiB' in (tmp_path / "out-results" / "skipped.csv").read_text()
    assert (tmp_path / "out" / "x.jsonl").read_bytes() == (tmp_path / "x.jsonl").read_bytes()


def test_empty_pages_are_no_duplicates():
    """Equal bytes or equal words make exact duplicates; no bytes and no words make none."""
    from spotsigs import dedup

    shells = ["<html><script>a</script>", "<html><script>b</script>", "<p></p>", "<div></div>"]
    assert dedup(["", "", *shells, "<p></p>"]) == ["", "", *shells]


# compressed streams


def members(content, packing, size=1 << 16, **more):
    stream = io.BufferedReader(Members(io.BytesIO(content), packing, **more), size)
    return stream.read()


def gzip_header(flags):
    """Return a gzip member of which the header has the optional fields of some flags."""
    content = gzip.compress(BODY, mtime=0)
    head = b"\x1f\x8b\x08" + bytes([flags]) + content[4:10]
    head += (4).to_bytes(2, "little") + b"abcd" if flags & 4 else b""
    head += b"name\0" if flags & 8 else b""
    head += b"comment\0" if flags & 16 else b""
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little") if flags & 2 else b""
    return head + content[10:]


@pytest.mark.parametrize("flags", [0, 2, 4, 8, 16, 30])
@pytest.mark.parametrize("read_size", [1, 3, 7, 12, 1000])
def test_headers_of_gzip_may_be_cut_anywhere(flags, read_size):
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(size if flags & 2 else read_size)  # isal reads a header with a checksum as a whole

    content = gzip_header(flags) * 3 + b"\0" * 9 + gzip_header(flags)
    assert io.BufferedReader(Members(Slow(content), "gzip")).read() == BODY * 4


@pytest.mark.parametrize("packing", ["gzip", "zstd", "bzip2"])
def test_members_empty_truncated_and_followed_by_other_bytes(packing):
    pack = {"gzip": gzip.compress, "zstd": zstandard.compress, "bzip2": bz2.compress}[packing]
    one, empty = pack(BODY), pack(b"")
    assert members(empty + one + empty * 2 + one + empty, packing) == BODY * 2
    assert members(one + b"trailing bytes", packing, trailing=True) == BODY
    with pytest.raises(OSError, match=r"damaged|Invalid data"):
        members(one + b"trailing bytes", packing, size=1 << 10)
    for cut in range(1, len(one)):
        with pytest.raises(EOFError):
            members(one[:cut], packing)
    assert members(one * 2 + one[:-3], packing, raises=False).startswith(BODY * 2)


@pytest.mark.parametrize("damage", ["cut", "checksum", "middle", "trailing", "padding", "header", "block"])
def test_damaged_gzip_is_read_nearly_as_the_standard_library_reads_it(tmp_path, damage):
    """Content is the same up to a piece before the damage; both report it, or neither."""
    content = b"".join(b"%d %b\n" % (k, random.Random(k).randbytes(60).hex().encode()) for k in range(9000))
    whole = gzip.compress(content, mtime=0)
    half = len(whole) // 2
    (tmp_path / "x.gz").write_bytes(
        {
            "cut": whole[:half],
            "checksum": whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:],
            "middle": whole[:half] + b"\7" * 50 + whole[half + 50 :],
            "trailing": whole + b"trailing",
            "padding": whole + bytes(99) + whole,
            "header": whole[:5],
            "block": whole[:10] + b"\0\x1f\x8b\x08" + whole[14:],
        }[damage]
    )

    def content_of(stream):
        actual = b""
        try:
            while piece := stream.read1():
                actual += piece
        except (OSError, EOFError, zlib.error) as error:
            return actual, isinstance(error, EOFError)
        return actual, None

    with open_bytes(tmp_path / "x.gz") as ours, gzip.open(tmp_path / "x.gz") as theirs:
        (actual, fault), (expected, expected_fault) = content_of(ours), content_of(theirs)
    assert fault == expected_fault
    assert expected.startswith(actual)
    assert len(expected) - len(actual) <= (0 if damage in ("cut", "trailing", "padding") else 40_000)
    (tmp_path / "y.jsonl").write_bytes(rows("y"))
    assert "y" in ids(read(Jsonl(path=str(tmp_path))))


@pytest.mark.parametrize("kind", ["jsonl", "csv", "trec"])
@pytest.mark.parametrize("order", ["ascending", "descending", "some"])
def test_shards_of_a_stream_share_a_pass(tmp_path, monkeypatch, kind, order):
    """A worker that reads shards in order opens the file once; in any order the records are the same."""
    (tmp_path / "x.gz").write_bytes(file_of(kind, [(str(k), "x\ny", False) for k in range(500)], ".gz"))
    collection = type(collection_of(str(tmp_path))[1])(path=str(tmp_path), shard_bytes=100)
    shards = collection.shards()
    assert len(shards) == 8
    opened, begin = [], Members.__init__
    monkeypatch.setattr(
        Members, "__init__", lambda self, *file, **more: (opened.append(file), begin(self, *file, **more))[1]
    )
    numbers = {"ascending": range(8), "descending": range(7, -1, -1), "some": [1, 3, 4, 7, 0, 2, 5, 6]}[order]
    names = {number: ids(shards[number]()) for number in numbers}
    assert [name for number in range(8) for name in names[number]] == list(map(str, range(500)))
    assert len(opened) == {"ascending": 1, "descending": 8, "some": 2}[order]


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"id,text\n" + b"".join(b"%d,x\n" % k for k in range(500))))
    shards = Csv(path=str(path), shard_bytes=100).shards()
    assert ids(shards[0]())[0] == "0"
    path.write_bytes(gzip.compress(b"id,text\n" + b"".join(b"%d,x\n" % k for k in range(1000, 1500))))
    assert ids(shards[1]())[0].startswith("1")


def skippable(number):
    """Return a zstd frame that unpackers skip."""
    return bytes([0x50 + number]) + b"\x2a\x4d\x18\x04\0\0\0abcd"


@pytest.mark.parametrize("kind", ["jsonl", "warc"])
@pytest.mark.parametrize("number", [0, 3, 15])
def test_zstd_of_several_threads_begins_with_a_frame_to_skip(tmp_path, kind, number):
    """As pzstd writes it: before each frame, its size in a skippable one."""
    lines = [b'{"id": "%d", "text": "the text"}\n' % k for k in range(6)]
    records = lines if kind == "jsonl" else crawl(6, random.Random(1))
    path = tmp_path / f"x.{kind}.zst"
    path.write_bytes(b"".join(skippable(number) + zstandard.compress(record) for record in records))
    name, collection = collection_of(str(path))
    prefix = "http://x/" if kind == "warc" else ""
    assert (name, ids(read(collection))) == (kind, [f"{prefix}{k}" for k in range(6)])


# links, folders of results, and records that are parts of pages: none replaces a page, and each is listed

PAGE = b"<html><body><p>the plan is a new bridge and the river is long</p></body></html>"


def listed(collection):
    """Return the ids of the documents, and the reasons by the ids of the others."""
    records = read(collection)
    return ids(records), {record.id: record.reason for record in records if isinstance(record, Skipped)}


@pytest.mark.parametrize("pattern", ["", "**/*.html", "**"])
def test_links_to_folders_above_and_to_files_outside_are_listed(tmp_path, pattern):
    folder = tmp_path / "in"
    (folder / "a").mkdir(parents=True)
    for path in (folder / "x.html", folder / "a" / "y.html", tmp_path / "other.html"):
        path.write_bytes(PAGE)
    (folder / "up").symlink_to(".")
    (folder / "a" / "up").symlink_to("..")
    (folder / "inside.html").symlink_to("x.html")
    (folder / "outside.html").symlink_to("../other.html")
    collection = Folder(path=str(folder / pattern))
    pages, skipped = listed(collection)
    assert pages == ["a/y.html", "inside.html", "x.html"]
    assert sorted(skipped) == ["a/up/", "outside.html", "up/"]
    assert "outside the folder is not followed" in skipped["outside.html"]
    collection.copy(tmp_path, lambda document: False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "other.html"]
    assert listed(Folder(path=str(folder / "out*.html"))) == (["outside.html"], {})  # a pattern follows links
    (tmp_path / "else").mkdir()
    (tmp_path / "other.html").rename(tmp_path / "else" / "z.html")
    (folder / "link").symlink_to("../else")
    assert listed(Folder(path=str(folder / "l*" / "*.html"))) == (["link/z.html"], {})


def test_only_results_of_spotsigs_are_left_out_and_they_are_listed(tmp_path):
    ours = {"command": ["spotsigs"], "commit": None, "versions": {}}
    for name, run in (("ours", ours), ("theirs", {"run": 1}), ("text", "not an object")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.html").write_bytes(PAGE)
        (tmp_path / name / "metrics.json").write_text("{}")
        (tmp_path / name / "run.json").write_text(json.dumps(run))
    pages, skipped = listed(Folder(path=str(tmp_path)))
    assert pages == ["text/page.html", "theirs/page.html"]
    assert skipped["ours/"] == "the results of a run are not read"


def test_fragments_and_segments_are_no_pages(tmp_path):
    whole = warc_record("http://x/whole", PAGE)
    number = b"WARC-Segment-Number: %d\r\nContent-Type:"
    records = [
        warc_record("http://x/part", PAGE[:40], status="206 Partial Content"),
        warc_record("http://x/first", PAGE).replace(b"Content-Type:", number % 1, 1),
        warc_record("http://x/rest", PAGE, kind="continuation").replace(b"Content-Type:", number % 2, 1),
        warc_record("http://x/photo", b"\x89PNG", "image/png", status="206 Partial Content"),
        whole,
    ]
    path = tmp_path / "x.warc.gz"
    path.write_bytes(packed(records, ".gz"))
    pages, skipped = listed(Warc(path=str(path)))
    assert pages == ["http://x/whole"]
    assert {key.split(" ")[0]: reason for key, reason in skipped.items()} == {
        "http://x/part": "the response is a fragment of a page (HTTP status 206)",
        "http://x/first": "it is a segment of a record, 1",
        "http://x/rest": "it is a segment of a record, 2",
    }


def test_records_without_a_type_are_read_as_what_they_are(tmp_path):
    def bare(record, value=b""):
        return re.sub(rb"Content-Type: [^\r]+\r\n", value, record, count=1)

    records = [
        bare(warc_record("http://x/1", PAGE)),
        bare(warc_record("http://x/2", PAGE), b"Content-Type: text/html\r\n"),
        bare(warc_record("http://x/3", PAGE, kind="resource")),
        bare(warc_record("http://x/4", b"the text", kind="conversion")),
        bare(warc_record("http://x/5", b"\x89PNG", kind="resource")),
    ]
    path = tmp_path / "x.warc"
    path.write_bytes(b"".join(records))
    collection = Warc(path=str(path))
    assert [(r.id[-1], r.content) for r in read(collection)] == [*((k, PAGE) for k in "123"), ("4", b"the text")]


def test_an_unpacked_wacz_is_the_archive_in_it(tmp_path):
    """Its page index has more files, and the text of each page; every file but the archive is copied as it is."""
    docs = [(f"d{k}", f"the page {k % 3} of a site", False) for k in range(6)]
    index = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": True}
    lines = [index, *({"id": k, "url": f"http://x/{k}", "text": text} for k, text, _ in docs)]
    others = {
        "pages/pages.jsonl": "".join(f"{json.dumps(line)}\n" for line in lines).encode(),
        "pages/extraPages.jsonl": f"{json.dumps(index)}\n{json.dumps(lines[1])}\n".encode(),
        "indexes/index.cdxj": b'x)/d0 20240101000000 {"url": "http://x/d0", "mime": "text/html"}\n',
        "datapackage.json": b'{"profile": "data-package", "resources": []}',
    }
    for name, content in {**others, "archive/data.warc.gz": archive(docs, "warc", ".gz")}.items():
        (tmp_path / "crawl" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "crawl" / name).write_bytes(content)
    name, collection = collection_of(str(tmp_path / "crawl"))
    assert (name, ids(read(collection))) == ("warc", [f"http://x/d{k}" for k in range(6)])
    write_copy(collection, ids(read(collection)), np.array([True] * 3 + [False] * 3), tmp_path / "out")
    assert {name: (tmp_path / "out" / name).read_bytes() for name in others} == others
    assert len(ids(read(Warc(path=str(tmp_path / "out" / "archive"))))) == 3
    assert collection_of(str(tmp_path / "crawl" / "pages"))[0] == "jsonl"
