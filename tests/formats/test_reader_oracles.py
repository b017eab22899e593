"""Readers against libraries that read the same: web archives, tables, lines; any difference is explained here."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
import tempfile
import zlib
from itertools import accumulate
from pathlib import Path

import brotli
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import PACK, arc_file, arc_record, crawl, packed, read, warc_record
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples
from warcio import bufferedreaders
from warcio.archiveiterator import ArchiveIterator

from spotsigs.formats.detect_format import FORMATS
from spotsigs.formats.http_response import decode_body, parse_response
from spotsigs.records import Document, Skipped


def by_warcio(path):
    """Return URI and body of all responses of HTML type, read by warcio."""
    with path.open("rb") as file:
        return [
            (record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read())
            for record in ArchiveIterator(file, arc2warc=True)
            if record.rec_type == "response"
            and (record.http_headers.get_header("Content-Type") or "").startswith("text/html")
        ]


EMPTY = gzip.compress(b"", mtime=0)


class Brotli:
    """brotli as warcio calls it; the attribute that it sets is missing in the package."""

    unused_data = None

    def __init__(self):
        self.stream = brotli.Decompressor()

    def decompress(self, data):
        return self.stream.process(data)


bufferedreaders.BufferedReader.DECOMPRESSORS["br"] = Brotli
ENCODE = {"": bytes, "gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}
LAYOUTS = ("plain", "by record", "one member", "empty members", "padding", "cut")


def chunked(body, size):
    """Return a chunked body."""
    chunks = [body[k : k + size] for k in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


@st.composite
def drawn_records(draw, kind):
    """Draw the records of an archive: bytes, whether it is a page, and whether its body is complete."""
    records = []
    for k in range(draw(st.integers(1, 6))):
        encoding, in_chunks = draw(st.sampled_from([*ENCODE])), draw(st.booleans())
        end = draw(st.sampled_from([b"", b"\r\n\r\n", b"\nWARC/1.0\r\n", EMPTY]))
        body = ENCODE[encoding](draw(st.binary(min_size=60, max_size=400)) + end)
        body = chunked(body, draw(st.integers(1, 200))) if in_chunks else body
        headers = f"Content-Encoding: {encoding}\r\n" * bool(encoding) + "Transfer-Encoding: chunked\r\n" * in_chunks
        headers += f"Content-Length: {len(body)}\r\n" * (draw(st.booleans()) and not in_chunks)
        is_whole = draw(st.sampled_from([True, True, False]))
        body = body if is_whole else body[: draw(st.integers(min(40, len(body) - 1), len(body) - 1))]
        is_whole |= not headers  # no mark shows that it is cut
        media_type = draw(st.sampled_from(["text/html", "image/png"]))
        status = draw(st.sampled_from(["200 OK", "404 No"]))
        make = arc_record if kind == "arc" else warc_record
        record = make(f"http://x/{k}", body, media_type, status, headers=headers)
        records.append((record, (media_type, status) == ("text/html", "200 OK"), is_whole))
    return records


@st.composite
def drawn_layout(draw, records, layout):
    """Draw the bytes of an archive, how many of its records are complete, and whether it ends inside one."""
    if layout in ("plain", "one member"):
        return (bytes if layout == "plain" else gzip.compress)(b"".join(records)), len(records), False
    members = [PACK[".gz"](record) for record in records]
    if layout in ("empty members", "padding"):
        more = EMPTY if layout == "empty members" else bytes(draw(st.integers(1, 700)))
        for at in draw(st.lists(st.integers(layout == "padding", len(members)), min_size=1, max_size=3)):
            members.insert(at, more)
    content = b"".join(members)
    if layout != "cut":
        return content, len(records), False
    ends = list(accumulate(map(len, members)))
    cut = draw(st.integers(ends[0], len(content)))
    return content[:cut], sum(end <= cut for end in ends), cut not in ends


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["warc", "arc"])
def test_every_page_of_an_archive_is_that_of_warcio_or_listed(kind, layout):
    """warcio reads the records plain and complete; some layouts end it, and of cut bodies it returns the beginning."""

    @examples(25)
    @given(data=st.data(), shard_bytes=st.sampled_from([100, 700, 1 << 20]))
    def check(data, shard_bytes):
        # A page of a plain archive that contains a record may be entered, see the module: not lost, but read twice.
        shard_bytes = 1 << 20 if layout == "plain" else shard_bytes
        records = data.draw(drawn_records(kind))
        first = [] if kind == "warc" else arc_file(0, random.Random(0))
        content, n, is_cut = data.draw(drawn_layout([*first, *(record for record, _, _ in records)], layout))
        n -= len(first)
        with tempfile.TemporaryDirectory() as folder:
            plain, path = Path(folder, "plain"), Path(folder, f"x.{kind}")
            plain.write_bytes(b"".join([*first, *(record for record, is_page, _ in records if is_page)]))
            path.write_bytes(content)
            expected = dict(by_warcio(plain))
            actual = read(FORMATS[kind](path=str(path), shard_bytes=shard_bytes))
        documents = {record.id: record.content for record in actual if isinstance(record, Document)}
        listed = {record.id.partition(" ")[0] for record in actual if isinstance(record, Skipped)}
        for number, (_, is_page, is_whole) in enumerate(records[:n]):
            name = f"http://x/{number}"
            if is_page and is_whole:
                assert documents.pop(name) == expected[name]
            elif is_page:
                assert name in listed
        last = documents.pop(f"http://x/{n}", None)  # complete if only its checksum is cut off
        assert documents == {}
        assert last is None or (is_cut and last == expected[f"http://x/{n}"])
        pages = sum(is_page for _, is_page, _ in records[:n])
        assert len(actual) == pages + is_cut + (last is not None)

    check()


@pytest.mark.parametrize("length", ["9223372036854775808", "9" * 5000, "-1", "x", ""])
@pytest.mark.parametrize("kind", ["warc", "arc"])
@pytest.mark.parametrize("pack", ["", ".gz"])
def test_an_impossible_length_costs_one_record(tmp_path, kind, pack, length):
    if kind == "warc":
        parts = crawl(3, random.Random(1))
        head, _, rest = parts[1].partition(b"Content-Length: ")
        parts[1] = head + b"Content-Length: " + length.encode() + rest[rest.index(b"\r\n") :]
    else:
        parts = arc_file(3, random.Random(1))
        line, _, rest = parts[2].partition(b"\n")
        parts[2] = line.rpartition(b" ")[0] + b" " + length.encode() + b"\n" + rest
    path = tmp_path / f"x.{kind}{pack}"
    path.write_bytes(packed(parts, pack))
    actual = read(FORMATS[kind](path=str(path)))
    assert [r.id for r in actual if isinstance(r, Document)] == ["http://x/0", "http://x/2"]
    [fault] = [r for r in actual if isinstance(r, Skipped)]
    assert fault.id.startswith("x.")


# bodies

PAGE = b"<html><p>the plan is a new bridge and the river is long " * 20


def response(body, *headers):
    return parse_response(b"\r\n".join([b"HTTP/1.1 200 OK", *headers, b"", body]))


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]


GZIP, CHUNKED = b"Content-Encoding: gzip", b"Transfer-Encoding: chunked"
ONE_CHUNK = b"%x\r\n%b" % (len(PAGE), PAGE)
ZIPPED, BROTLI, DEFLATED = gzip.compress(PAGE, mtime=0), brotli.compress(PAGE), zlib.compress(PAGE)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        *(
            ([GZIP], body)
            for body in (
                flipped(ZIPPED, len(ZIPPED) - 7),  # its checksum
                *(ZIPPED[:-9], ZIPPED + ZIPPED[:40], b"\r\n" + ZIPPED[:-9], b"x" + ZIPPED),  # neither gzip nor text
            )
        ),
        *(([b"Content-Encoding: br"], body) for body in (BROTLI[:-4], flipped(BROTLI, 9))),
        *(([b"Content-Encoding: deflate"], body) for body in (DEFLATED[:-5], flipped(DEFLATED, 20))),
        *(
            ([CHUNKED], body)
            for body in (
                *(b"ffff\r\n" + PAGE, b"123456789abcdef\r\n" + PAGE, b"3\r\nabc\r\nno chunk"),
                *(ONE_CHUNK + b"\r\n", ONE_CHUNK, b"\r\n" + ONE_CHUNK + b"\r\n"),  # no last chunk
            )
        ),
        ([b"Transfer-Encoding:", b" chunked"], b"ffff\r\n" + PAGE),
        ([b"Content-Length: %d" % (len(PAGE) + 1)], PAGE),
        ([b"Content-Length: %d" % len(ZIPPED), GZIP], ZIPPED[:-9]),
        ([b"Content-Length: %d" % (len(ZIPPED) + 5), GZIP], ZIPPED),
        ([b"Content-Encoding: zstd"], b"\n" + PACK[".zst"](PAGE)[:-4]),
    ],
)
def test_damaged_bodies_are_reported(headers, body):
    with pytest.raises(ValueError, match=r"damaged|cut short"):
        decode_body(response(body, *headers))


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([GZIP], gzip.compress(PAGE[:50], mtime=0) + gzip.compress(PAGE[50:], mtime=0)),
        ([GZIP], ZIPPED + b"\0\0 behind"),
        ([GZIP, b"Content-Encoding: br"], brotli.compress(ZIPPED)),
        ([GZIP, b"Transfer-Encoding:", b"\tchunked"], b"%x\r\n%b\r\n0\r\n" % (len(ZIPPED), ZIPPED)),
        ([CHUNKED], b"%012x\r\n%b\r\n0\r\n" % (len(PAGE), PAGE)),
        ([GZIP], b"\r\n" + ZIPPED),
        ([b"Content-Encoding: zstd"], b"\r\n\r\n" + PACK[".zst"](PAGE)),
        ([CHUNKED], b"\r\n" + ONE_CHUNK + b"\r\n0\r\n"),
        *(([b"Content-Length: " + length], PAGE) for length in (b"%d" % len(PAGE), b"5", b"many")),
        ([b"Content-Length: 999999", GZIP], PAGE),  # undone, the length is of other bytes
        ([b"Content-Length: 999999", CHUNKED], ONE_CHUNK + b"\r\n0\r\n"),
        *(([b"Content-Encoding: " + name], PAGE) for name in (b"gzip", b"br", b"deflate")),  # undone by the crawler
    ],
)
def test_unusual_bodies_are_decoded(headers, body):
    assert decode_body(response(body, *headers)) == PAGE


@example(b"", ["br"], None)
@given(st.binary(max_size=2000), st.lists(st.sampled_from(["gzip", "br", "deflate", "zstd"]), max_size=4), st.data())
def test_bodies_against_the_libraries_that_made_them(content, encodings, data):
    pack = {"gzip": gzip.compress, "br": brotli.compress, "deflate": zlib.compress, "zstd": PACK[".zst"]}
    body = content
    for encoding in encodings:
        body = pack[encoding](body)
    header = b"Content-Encoding: " + ", ".join(encodings).encode()
    assert decode_body(response(body, header)) == content
    if data and body and encodings:
        cut = body[: data.draw(st.integers(0, len(body) - 1))]
        try:
            decoded = decode_body(response(cut, header))
        except ValueError:
            return
        assert not re.search(rb"[\0-\x08]", decoded)  # text as it seems: too little is left of the encoding


def test_a_folded_charset_and_a_long_header(tmp_path):
    folded = response(b"", b"Content-Type: text/html;", b"  charset=latin-1")
    assert (folded.content_type, folded.charset) == ("text/html", "latin-1")
    long = "".join(f"X-{k}: {'x' * 1000}\r\n" for k in range(200))
    path = tmp_path / "x.warc"
    records = [warc_record("http://x/1", b"<p>page", headers=long), warc_record("http://x/2", b"y", headers=long * 9)]
    path.write_bytes(b"".join(records))
    first, second = read(FORMATS["warc"](path=str(path)))
    assert (first.id, first.content) == ("http://x/1", b"<p>page")
    at = f"http://x/2 (x.warc@{len(records[0])})"
    assert second == Skipped(at, "its HTTP header is longer than 1 MiB")


# rows

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
ROWS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12)


def in_a_file(name, content, **more):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        records = read(FORMATS[name.split(".")[1]](path=str(path), **more))
        return [(r.id, r.content) if isinstance(r, Document) else r for r in records]


@given(ROWS, st.sampled_from(["", ".gz", ".zst"]), st.sampled_from([20, 1 << 20]), st.sampled_from(["", "\ufeff"]))
def test_csv_against_the_standard_library(rows, pack, shard_bytes, mark):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("id", "text"), *rows])
    actual = in_a_file(f"x.csv{pack}", PACK[pack]((mark + out.getvalue()).encode()), shard_bytes=shard_bytes)
    parsed = list(csv.DictReader(io.StringIO(out.getvalue(), newline="")))
    # A carriage return alone counts as white space: the csv module refuses it outside quotes.
    alone = [[row[name].replace("\r\n", "\n\n").replace("\r", " ") for name in ("id", "text")] for row in parsed]
    given_back = [[part.replace("\r\n", "\n\n") for part in (name, text.decode())] for name, text in actual]
    assert given_back == alone


@given(ROWS, st.sampled_from(["", ".gz", ".zst"]), st.sampled_from([20, 1 << 20]), st.booleans())
def test_json_lines_against_json(rows, pack, shard_bytes, escaped):
    text = "\n".join(json.dumps({"id": doc_id, "text": text}, ensure_ascii=escaped) for doc_id, text in rows)
    actual = in_a_file(f"x.jsonl{pack}", PACK[pack](text.encode()), shard_bytes=shard_bytes)
    expected = [json.loads(line) for line in text.split("\n")]
    assert actual == [(row["id"], row["text"]) for row in expected]


@given(st.lists(st.tuples(st.sampled_from(["id", "text", "html"]), TEXT | st.integers() | st.floats()), min_size=1))
def test_of_a_repeated_key_the_last_value_counts(members):
    written = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in [*members, ("text", "x")]]
    line = "{" + ", ".join(written) + "}"
    row = json.loads(line)
    doc_id = "x.jsonl@0" if row.get("id") != row.get("id") else str(row.get("id", "x.jsonl@0"))
    content = row["html"] if row.get("html", "") != "" else row["text"]  # without HTML, the text
    (record,) = in_a_file("x.jsonl", line.encode())
    if isinstance(content, str):
        assert record == (doc_id, content)
    else:
        assert (record.id.split(" (")[0], "is of type" in record.reason) == (doc_id, True)


@examples(40)
@given(ROWS, st.integers(1, 5), st.sampled_from(["none", "zstd", "gzip", "snappy"]))
def test_parquet_against_pandas(rows, group, codec):
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [r[0] for r in rows], "text": [r[1] for r in rows]}), out, group, compression=codec)
    expected = pd.read_parquet(io.BytesIO(out.getvalue()))
    assert in_a_file("x.parquet", out.getvalue()) == list(expected.itertuples(index=False, name=None))
