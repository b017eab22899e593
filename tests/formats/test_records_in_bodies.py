"""Pages whose bodies contain whole records of a web archive: no shard begins inside a body."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
import zstandard
from archives import arc_file, arc_record, bytes_read, ids, read, warc_record, write_copy
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from warcio.archiveiterator import ArchiveIterator

from spotsigs.formats.arc import Arc
from spotsigs.formats.input_files import END
from spotsigs.formats.warc import Warc

# Compressors that store what they cannot compress, so that the bytes of a body are in the file as they are.
STORE = {
    "": bytes,
    ".gz": lambda record: gzip.compress(record, 0, mtime=0),
    ".zst": lambda record: zstandard.ZstdCompressor(-100, write_content_size=False).compress(record),
}
KINDS = {"warc": (Warc, warc_record), "arc": (Arc, arc_record)}


@st.composite
def archives(draw, kind, pack):
    """Draw the members of an archive of pages, some of which contain the members of another archive."""
    _, record = KINDS[kind]
    rng = random.Random(draw(st.integers(0, 99)))
    members = [STORE[pack](arc_file(0, rng)[0])] if kind == "arc" else []
    for number in range(draw(st.integers(2, 8))):
        noise = rng.randbytes(rng.randrange(300))
        inner = [
            STORE[pack](record(f"http://false/{number}-{k}", b"<p>" + rng.randbytes(rng.randrange(200))))
            for k in range(draw(st.integers(0, 6)))
        ]
        before = draw(st.sampled_from([b"", b"\n", b"\r\n\r\n", noise]))
        members.append(STORE[pack](record(f"http://page/{number}", before + b"".join(inner) + noise)))
    return members


@pytest.mark.parametrize("pack", STORE)
@pytest.mark.parametrize("kind", KINDS)
def test_a_record_inside_a_body_is_none(kind, pack):
    """Shards of any size give the pages that warcio finds, and a copy keeps every byte of those that stay."""
    format_of, _ = KINDS[kind]

    @examples(40)
    @given(archives(kind, pack), st.integers(50, 4000), st.integers(0, 255))
    def check(members, shard_bytes, removed):
        pages = members[kind == "arc" :]
        names = [f"http://page/{number}" for number in range(len(pages))]
        kept = [not removed >> number & 1 for number in range(len(pages))]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "x")
            path.write_bytes(b"".join(members))
            collection = format_of(path=str(path), shard_bytes=shard_bytes)
            assert ids(read(collection)) == names
            write_copy(collection, names, np.array(kept), Path(folder, "out"))
            copy = Path(folder, "out", "x").read_bytes()
        stay = [page for page, stays in zip(pages, kept, strict=True) if stays]
        assert copy == b"".join([*members[: kind == "arc"], *stay])
        if pack != ".zst" and kind == "warc":
            uris = [r.rec_headers.get_header("WARC-Target-URI") for r in ArchiveIterator(io.BytesIO(b"".join(members)))]
            assert uris == names

    check()


@pytest.mark.parametrize("pack", STORE)
def test_an_archive_of_ordinary_pages_is_still_cut(tmp_path, pack):
    rng = random.Random(0)
    records = [warc_record(f"http://x/{k}", rng.randbytes(900)) for k in range(60)]
    (tmp_path / "x").write_bytes(b"".join(map(STORE[pack], records)))
    collection = Warc(path=str(tmp_path / "x"), shard_bytes=3000)
    assert len(collection.shards()) == round((tmp_path / "x").stat().st_size / 3000)
    assert max(len(list(shard())) for shard in collection.shards()) <= 4


def test_the_shards_of_a_plain_archive_are_found_by_headers_alone(tmp_path, monkeypatch):
    """Bodies are not read: what is read does not grow with them."""
    sizes = []
    for length in (200_000, 2_000_000):
        path = tmp_path / f"{length}.warc"
        records = [warc_record(f"http://x/{k:02}", b"x" * length) for k in range(20)]
        path.write_bytes(b"".join(records))
        collection = Warc(path=str(path), shard_bytes=len(records[0]))
        with bytes_read(monkeypatch) as taken:
            edges = collection.cut(path)
        assert len(edges) == 20
        assert edges[-1][1] == END
        sizes.append(sum(taken))
    assert 0 < sizes[0] < 20 * 200_000
    assert sizes[1] < 1.05 * sizes[0]
