"""Copies of WARC files with requests, metadata, revisits and parts of pages; warcio counts the records."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

import pytest
from archives import PACK, ids, packed, read, warc_record
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from test_damaged_archives import DAMAGE, LAYOUTS, NO_HEADER, copy_of, laid_out, unpacked
from warcio.archiveiterator import ArchiveIterator

from spotsigs.formats.warc import Warc

WRITERS = ("request names response", "response names request", "both")


def with_field(record, *lines):
    """Add lines to the header of a record."""
    return record.replace(b"\r\n", b"\r\n" + "".join(f"{line}\r\n" for line in lines).encode(), 1)


def identifier(record):
    return re.search(rb"WARC-Record-ID: (\S+)", record)[1].decode()


@st.composite
def captures(draw):
    """Draw captures, each the records of one page: a list of (address, record), in any order."""
    drawn = []
    for k in range(draw(st.integers(1, 7))):
        address, writer = f"http://x/{k}", draw(st.sampled_from(WRITERS))
        kind = draw(st.sampled_from(["page", "page", "image", "fragment", "segments"]))
        media_type, status = ("image/png" if kind == "image" else "text/html"), f"20{6 * (kind == 'fragment')} OK"
        response = warc_record(address, b"<p>page %d" % k, media_type, status)
        request = warc_record(f"{address}#request", b"GET / HTTP/1.1\r\n\r\n", "application/http", kind="request")
        if writer != "request names response":
            response = with_field(response, f"WARC-Concurrent-To: {identifier(request)}")
        if writer != "response names request":
            request = with_field(request, f"warc-concurrent-to:{identifier(response)}")
        records = [response, request]
        if kind == "segments":
            rest = warc_record(f"{address}#2", b"<p>rest", kind="continuation")
            records = [with_field(part, f"WARC-Segment-Number: {n}") for n, part in ((1, response), (2, rest))]
            records.append(request)
        for number in range(draw(st.integers(0, 2))):
            data = warc_record(f"{address}#{number}", b"fetchTimeMs: 7", "application/warc-fields", kind="metadata")
            field = draw(st.sampled_from(["WARC-Concurrent-To", "WARC-Refers-To"]))
            named = [identifier(request)] * draw(st.integers(0, 1)) + [identifier(response)]
            records.append(with_field(data, *(f"{field}: {one}" for one in named[-1 if "R" in field[5:] else 0 :])))
        if draw(st.booleans()):
            data = warc_record(f"{address}#again", b"", "application/http", kind="revisit")
            by_id = [f"WARC-Refers-To: {identifier(response)}"]
            by_date = [f"WARC-Refers-To-Target-URI: {address}", "WARC-Refers-To-Date: 2024-01-02T03:04:05Z"]
            records.append(with_field(data, *draw(st.sampled_from([by_id, by_date, by_id + by_date]))))
        drawn.append((address, kind == "page", draw(st.permutations(records))))
    return drawn


def is_html(record):
    """Return whether warcio finds a page or a part of one in a record."""
    http = record.http_headers
    return record.rec_type == "continuation" or (record.rec_type == "response" and "html" in http.get("Content-Type"))


@pytest.mark.parametrize("pack", PACK)
def test_a_copy_has_the_requests_and_metadata_of_the_responses_that_stay_and_no_others(pack):
    @examples(60, long=600)
    @given(captures(), st.sampled_from(LAYOUTS), st.sampled_from([None, *DAMAGE]), st.data())
    def check(drawn, layout, damage, data):
        pages = [address for address, is_page, _ in drawn if is_page]
        gone = data.draw(st.sets(st.sampled_from(pages), min_size=1) if pages else st.just(set()))
        info = [warc_record("info", b"software: x", "application/warc-fields", kind="warcinfo")]
        free = [warc_record("urn:free", b"x: y", "application/warc-fields", kind="metadata")]
        records = [*info, *(record for _, _, part in drawn for record in part), *free]
        left = [*info, *(record for address, _, part in drawn if address not in gone for record in part), *free]
        bad = data.draw(st.integers(1, len(records))) if damage and gone else None
        junk = warc_record("http://x/bad", b"<p>bad" + bytes(3000))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x.warc")
            if bad is not None:
                records.insert(bad, DAMAGE[damage](junk))
            path.write_bytes(laid_out(records, layout, pack))
            listed = read(Warc(path=str(path)))
            actual = unpacked(copy_of(Warc(path=str(path)), Path(folder, "out"), removed=gone))
        if bad is None:
            assert actual == b"".join(left)
            assert len(list(ArchiveIterator(io.BytesIO(actual)))) == len(left)
            assert len(listed) == sum(map(is_html, ArchiveIterator(io.BytesIO(b"".join(records)))))
            assert ids(listed) == pages
        elif damage in NO_HEADER:
            assert all(record.strip() in actual for record in left)

    check()


def test_a_record_that_a_kept_response_shares_stays():
    """One request of a removed and of a kept response, and metadata that name both."""
    request = warc_record("http://x/#request", b"GET / HTTP/1.1\r\n\r\n", "application/http", kind="request")
    field = f"WARC-Concurrent-To: {identifier(request)}"
    first, second = (with_field(warc_record(f"http://x/{k}", b"<p>the page"), field) for k in range(2))
    both = (f"WARC-Concurrent-To: {identifier(record)}" for record in (first, second))
    data = with_field(warc_record("urn:both", b"x: y", "application/warc-fields", kind="metadata"), *both)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x.warc.gz").write_bytes(packed([request, first, second, data], ".gz"))
        copy = copy_of(Warc(path=str(Path(folder, "x.warc.gz"))), Path(folder, "out"), removed={"http://x/1"})
    assert unpacked(copy) == b"".join([request, first, data])
