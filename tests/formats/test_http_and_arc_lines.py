"""What servers and crawlers write beyond the standards: each is read as browsers read it, or listed."""

from __future__ import annotations

import gzip
import random
import zlib

import brotli
import pytest
from archives import PACK, arc_file, ids, packed, read

from spotsigs.formats.arc import Arc
from spotsigs.formats.http_response import content_type, decode_body, parse_response
from spotsigs.formats.warc import Warc
from spotsigs.records import Document, Skipped

PAGE = b"<!DOCTYPE html><html><body><p>the page of a server</p></body></html>"
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(PAGE), PAGE)


def response(headers, body, status=b"HTTP/1.1 200 OK"):
    return b"\r\n".join([status, *headers, b"", body])


@pytest.mark.parametrize(
    ("value", "body"),
    [
        *((value, PAGE) for value in ("UTF-8", "none", "None", "binary", "8bit", "text/html", "ISO-8859-1", "raw", "")),
        *(
            (value, gzip.compress(PAGE, mtime=0))
            for value in ("utf-8, gzip", "gzip, utf-8", '"gzip"', "gzip;q=1.0", "GZIP")
        ),
        ("none, br", brotli.compress(PAGE)),
        ("aws-chunked", PAGE),
    ],
)
def test_a_value_that_is_no_coding_is_ignored(value, body):
    parsed = parse_response(response([b"Content-Type: text/html", b"Content-Encoding: " + value.encode()], body))
    assert decode_body(parsed) == PAGE


@pytest.mark.parametrize(
    ("value", "body"),
    [
        ("x-deflate", zlib.compress(PAGE)),
        ("utf-8", gzip.compress(PAGE, mtime=0)),
        ("compress", PAGE),
        ("gzip, dcb", PAGE),
    ],
)
def test_compressed_bytes_of_an_unknown_coding_are_no_page(value, body):
    with pytest.raises(ValueError, match=f"its encoding '{value.rpartition(' ')[2]}' is unknown"):
        decode_body(parse_response(response([b"Content-Encoding: " + value.encode()], body)))


@pytest.mark.parametrize("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\nLink: </x>\n\n"])
@pytest.mark.parametrize("times", [1, 2, 9])
def test_interim_responses_are_left_out(interim, times):
    parsed = parse_response(interim * times + response([b"Content-Type: text/html; charset=koi8-r"], PAGE))
    assert (parsed.status, parsed.content_type, parsed.charset, parsed.body) == (200, "text/html", "koi8-r", PAGE)
    assert parsed.is_page


def test_an_interim_response_alone_is_no_page():
    for block in (
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + PAGE,
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 100 ",
    ):
        assert not parse_response(block).is_page


@pytest.mark.parametrize(
    ("header", "media_type"),
    [
        ("text/html, text/html", "text/html"),
        ("text/plain, text/html; charset=utf-8", "text/html"),
        ("text/html, */*", "text/html"),
        ("TEXT/HTML;", "text/html"),
        ("application/xhtml+xml", "application/xhtml+xml"),
        *((header, "") for header in ('"text/html"', "unknown/unknown", "html", "", "text / html", "*/*", "text/")),
    ],
)
def test_a_type_that_is_none_counts_as_missing(header, media_type):
    assert content_type(header)[0] == media_type


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([], b"\xef\xbb\xbf" + PAGE),
        ([], PAGE.decode().encode("utf-16")),
        ([b"Content-Encoding: gzip"], gzip.compress(PAGE, mtime=0)),
        ([b"Content-Encoding: br"], brotli.compress(PAGE)),
        ([b"Transfer-Encoding: chunked"], CHUNKED),
        (
            [b"Transfer-Encoding: chunked", b"Content-Encoding: gzip"],
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(gzip.compress(PAGE, mtime=0)), gzip.compress(PAGE, mtime=0)),
        ),
        ([b"Content-Type: unknown/unknown"], b"<p>the text</p>"),
        ([b"Content-Type: html"], b"<!-- a --><script>x</script><p>the text</p>"),
    ],
)
def test_a_response_without_a_type_is_what_it_begins_like(headers, body):
    assert parse_response(response(headers, body)).is_page


@pytest.mark.parametrize(
    "body", [b"", b"the text", b"{}", b"<rss>", b"<?xml version='1.0'?><svg>", b"<pre-x>", b"\x89PNG"]
)
def test_other_content_without_a_type_is_no_page(body):
    assert not parse_response(response([], body)).is_page
    assert not parse_response(response([b"Content-Encoding: gzip"], gzip.compress(body, mtime=0))).is_page


def arc_line(url="http://x/1", ip="10.0.0.1", date="20010203040506", kind="text/html", tail=""):
    block = response([b"Content-Type: text/html"], PAGE)
    return f"{url} {ip} {date} {kind}{tail} {len(block)}\n".encode() + block + b"\n"


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize(
    ("odd", "date"),
    [
        ({}, True),
        ({"url": "http://x/Targets Castor&x=1"}, True),
        ({"url": "http://x/a 1.2.3 b", "tail": " 200 - - 123456789 x.arc"}, True),
        ({"url": "http://x/\u65e5\u672c"}, True),
        ({"kind": "text/html, application/x-javascript"}, True),
        ({"kind": "text/html; charset=utf-8"}, True),
        ({"kind": "text/plain"}, True),
        ({"kind": "unk"}, True),
        ({"kind": ""}, True),
        ({"ip": "-"}, True),
        ({"ip": "www.example.org"}, True),
        ({"date": "08Sep201318:10"}, False),
    ],
)
def test_a_record_line_of_an_arc_file_that_is_odd(tmp_path, pack, odd, date):
    (tmp_path / "x.arc").write_bytes(packed([*arc_file(1, random.Random(0)), arc_line(**odd)], pack))
    _, page = read(Arc(path=str(tmp_path / "x.arc")))
    expected = "2001-02-03T04:05:06Z" if date else None
    assert page == Document(id=odd.get("url", "http://x/1"), content=PAGE, date=expected)


def test_a_record_line_of_an_arc_file_gives_the_type_where_the_header_has_none(tmp_path):
    for kind, number in (("text/html", 1), ("image/png", 0), ("unk", 0)):
        block = response([], b"the page")
        line = f"http://x/1 1.1.1.1 20010203040506 {kind} {len(block)}\n".encode()
        (tmp_path / "x.arc").write_bytes(b"".join([*arc_file(0, None), line, block, b"\n"]))
        assert len(ids(read(Arc(path=str(tmp_path / "x.arc"))))) == number


def test_the_last_of_two_types_decides_in_a_web_archive(tmp_path):
    records = []
    for number, kind in enumerate(("text/html, text/html", "image/png", "text/html, image/png", '"html"')):
        block = response([b"Content-Type: " + kind.encode()], PAGE)
        head = [
            "WARC/1.0",
            "WARC-Type: response",
            f"WARC-Target-URI: http://x/{number}",
            f"Content-Length: {len(block)}",
        ]
        records.append("\r\n".join([*head, "", ""]).encode() + block + b"\r\n\r\n")
    (tmp_path / "x.warc").write_bytes(b"".join(records))
    records = read(Warc(path=str(tmp_path / "x.warc")))
    assert ids(records) == ["http://x/0", "http://x/3"]
    assert not [record for record in records if isinstance(record, Skipped)]
