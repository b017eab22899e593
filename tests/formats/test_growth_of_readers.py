"""Hostile files cost work that grows with their size: what is counted are bytes and lines, not seconds."""

from __future__ import annotations

import io
import random
from unittest.mock import patch

import pytest
from archives import PACK, read

from spotsigs.formats import archive_content, csv_files
from spotsigs.formats.archive_content import Content
from spotsigs.formats.compression import Members
from spotsigs.formats.csv_files import csv_rows
from spotsigs.formats.warc import Warc
from spotsigs.records import Skipped

BODY = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>" + b"w" * 360
HEAD = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x/{:08d}\r\nContent-Length: {:012d}\r\n\r\n"
SIZE = len(HEAD.format(0, 0)) + len(BODY) + 4


def false_lengths(n, rng):
    """Return records that each declare to end in the body of a later one."""
    lengths = ((rng.randrange(k, n) - k) * SIZE + 300 for k in range(n))
    return b"".join(HEAD.format(k, length).encode() + BODY + b"\r\n\r\n" for k, length in enumerate(lengths))


def work_of_reading(path):
    """Return the records of a web archive, and the bytes that were unpacked and taken from memory."""
    work = []

    def counted(method):
        def call(self, *args):
            work.append(len(part := method(self, *args)))
            return part

        return call

    names = [(Members, "piece"), (Content, "_take"), (Content, "_loaded")]
    patches = [patch.object(kind, name, counted(getattr(kind, name))) for kind, name in names]
    for one in patches:
        one.start()
    try:
        return read(Warc(path=str(path), shard_bytes=1 << 40)), sum(work)
    finally:
        for one in patches:
            one.stop()


@pytest.mark.parametrize("kept", [1 << 16, 8 << 20])
@pytest.mark.parametrize("pack", PACK)
def test_false_lengths_that_end_inside_the_file(tmp_path, monkeypatch, pack, kept):
    """A member of any compression with all records, longer and shorter than what is kept; each record is listed."""
    monkeypatch.setattr(archive_content, "_KEPT", kept)
    costs = []
    for n in (500, 1000, 2000, 4000):
        content = false_lengths(n, random.Random(1))
        (tmp_path / "x").write_bytes(PACK[pack](content))
        records, work = work_of_reading(tmp_path / "x")
        assert [f"http://x/{k:08d}" for k in range(n)] == [record.id.split()[0] for record in records]
        assert all(isinstance(record, Skipped) for record in records)
        costs.append(work / len(content))
    assert max(costs) < 1.15 * costs[0]


@pytest.mark.parametrize("quotes", [1, 3])
def test_quotes_that_are_not_closed(quotes):
    """Each line is parsed three times at most, and each of the others is a row."""
    for n in (2000, 4000, 8000):
        lines = [f"{k},the text of {k}\n" for k in range(n)]
        for k in range(quotes):
            lines[5 + 700 * k] = f'{k},"the text\n'
        parsed, decoded = [], csv_files._decoded
        with patch.object(csv_files, "_decoded", lambda line: parsed.append(line) or decoded(line)):  # noqa: B023
            rows = list(csv_rows(io.BytesIO("".join(lines).encode()), ","))
        assert [k for k, row in enumerate(rows) if row.fields == csv_files._NOT_CLOSED] == [
            5 + 700 * k for k in range(quotes)
        ]
        assert [row.text.decode() for row in rows] == lines
        assert len(parsed) <= 3 * n
