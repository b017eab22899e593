"""Archives with damaged records, in every layout: later pages are found, and all bytes are in the copy."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import re
import zlib
from time import process_time

import numpy as np
import pytest
import zstandard
from archives import PACK, arc_file, crawl, ids, packed, read, warc_record, write_copy
from warcio.archiveiterator import ArchiveIterator

from spotsigs.formats.arc import Arc
from spotsigs.formats.warc import Warc
from spotsigs.records import Document, Skipped
from spotsigs.text.size_limits import page_size_limit

PACKED = re.compile(rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|BZh")
OPEN = {
    b"\x1f\x8b\x08": lambda: zlib.decompressobj(31),
    b"\x28\xb5\x2f\xfd": lambda: zstandard.ZstdDecompressor().decompressobj(),
    b"BZh": bz2.BZ2Decompressor,
}
DAMAGE = {
    "no length": lambda record: re.sub(rb"Content-Length: \d+\r\n", b"", record, count=1),
    "too long": lambda record: re.sub(rb"(?<=Content-Length: )\d+", b"100000", record, count=1),
    "longer by a record": lambda record: re.sub(rb"(?<=Content-Length: )\d+", b"2500", record, count=1),
    "beyond the end": lambda record: re.sub(rb"(?<=Content-Length: )\d+", b"999999999999", record, count=1),
    "too short": lambda record: re.sub(rb"(?<=Content-Length: )\d+", b"90", record, count=1),
    "a line of junk": lambda record: b"no record at all\r\n",
    "junk without an end": lambda record: b"no record",
    "no type": lambda record: re.sub(rb"WARC-Type: \w+\r\n", b"", record.replace(b"WARC/1.1", b"WARC/x"), count=1),
}
NO_HEADER = ("a line of junk", "junk without an end", "no type")
LAYOUTS = ("by record", "one member", "plain, then one member", "one member, then plain", "two compressions")


def laid_out(records, layout, pack):
    """Return an archive of records."""
    half, other = len(records) // 2, ".bz2" if pack == ".gz" else ".gz"
    first, second = b"".join(records[:half]), b"".join(records[half:])
    return {
        "by record": lambda: packed(records, pack),
        "one member": lambda: PACK[pack](first + second),
        "plain, then one member": lambda: first + PACK[pack](second),
        "one member, then plain": lambda: PACK[pack](first) + second,
        "two compressions": lambda: PACK[pack](first) + PACK[other](second),
    }[layout]()


def unpacked(content):
    """Unpack members of any compression and plain bytes between, by the libraries that made them."""
    parts = []
    while magic := PACKED.search(content):
        stream = OPEN[magic[0]]()
        parts += [content[: magic.start()], stream.decompress(content[magic.start() :])]
        content = stream.unused_data
    return b"".join([*parts, content])


def copy_of(collection, folder, removed=()):
    names = ids(read(collection))
    write_copy(collection, names, np.array([name not in removed for name in names]), folder)
    return next(folder.glob("[!.]*")).read_bytes()


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pack", PACK)
def test_a_damaged_record_costs_one_page_in_every_layout(tmp_path, pack, layout, damage):
    """warcio counts the pages of the undamaged records; every byte except the bytes of removed pages is in the copy."""
    records = crawl(24, random.Random(3))
    bad = {2, 11, 12, 13, 19}
    damaged = [DAMAGE[damage](record) if k in bad else record for k, record in enumerate(records)]
    good = b"".join(record for k, record in enumerate(records) if k not in bad)
    pages = [r.rec_headers.get_header("WARC-Target-URI") for r in ArchiveIterator(io.BytesIO(good))]
    path = tmp_path / "x.warc"
    path.write_bytes(laid_out(damaged, layout, pack))
    for shard_bytes in (1 << 23, 3000):
        actual = read(Warc(path=str(path), shard_bytes=shard_bytes))
        assert ids(actual) == pages
        skipped = [record.reason for record in actual if isinstance(record, Skipped)]
        assert (3 if damage in NO_HEADER else 5) <= len(skipped) <= 5
        counted = sum(int(re.search(r"; ([\d,]+) bytes", reason)[1].replace(",", "")) for reason in skipped)
        assert counted >= sum(len(damaged[k].strip()) for k in bad)
    copy = unpacked(copy_of(Warc(path=str(path)), tmp_path / "out", removed=pages[5:7]))
    there = [number for number, record in enumerate(damaged) if record.strip() in copy]
    gone = {records.index(record) for record in records if any(uri(record) == page for page in pages[5:7])}
    assert there == [number for number in range(24) if number not in gone]


def uri(record):
    return re.search(rb"WARC-Target-URI: (\S+)", record)[1].decode()


@pytest.mark.parametrize("pack", [".gz", ".zst", ".bz2"])
@pytest.mark.parametrize("layout", ["by record", "one member, then plain"])
def test_compressed_bytes_that_cannot_be_unpacked_are_copied(tmp_path, pack, layout):
    records = crawl(9, random.Random(5))
    members = [PACK[pack](record) for record in records]
    members[4] = members[4][: len(members[4]) // 2] + b"damage" * 3
    if layout != "by record":
        members[5:] = records[5:]
    (tmp_path / "x.warc").write_bytes(b"".join(members))
    collection = Warc(path=str(tmp_path / "x.warc"))
    actual = read(collection)
    assert ids(actual) == [f"http://x/{k}" for k in (0, 1, 2, 3, 5, 6, 7, 8)]
    [skipped] = [record for record in actual if isinstance(record, Skipped)]
    assert f"{len(members[4]):,} compressed bytes" in skipped.reason
    assert members[4] in copy_of(collection, tmp_path / "out")


@pytest.mark.parametrize("pack", PACK)
def test_a_record_of_an_arc_member_without_a_length(tmp_path, pack):
    parts = arc_file(9, random.Random(1))
    parts[4] = parts[4].replace(b"text/html ", b"text/html x", 1)
    (tmp_path / "x.arc").write_bytes(PACK[pack](b"".join(parts)))
    actual = read(Arc(path=str(tmp_path / "x.arc")))
    assert [record.id[-1] for record in actual if isinstance(record, Document)] == list("01245678")
    [skipped] = [record for record in actual if isinstance(record, Skipped)]
    assert skipped.reason.endswith(f"; {len(parts[4])} bytes are no record")
    assert parts[4].strip() in unpacked(copy_of(Arc(path=str(tmp_path / "x.arc")), tmp_path / "out"))


def test_records_that_declare_more_than_the_file_has_are_read_in_linear_time(tmp_path):
    record = warc_record("http://x/0", b"<p>page " * 400)
    wrong = re.sub(rb"(?<=Content-Length: )\d+", b"999999999999", record, count=1)
    (tmp_path / "x.warc.gz").write_bytes(gzip.compress(wrong * 3000 + record))
    start = process_time()
    actual = read(Warc(path=str(tmp_path / "x.warc.gz")))
    assert process_time() - start < 10
    assert [isinstance(record, Document) for record in actual] == [False] * 3000 + [True]


def test_a_record_larger_than_a_page_is_copied_as_it_is(tmp_path):
    records = [warc_record("http://x/0", b"x" * 5000), warc_record("http://x/1", b"y")]
    (tmp_path / "x.warc.gz").write_bytes(packed(records, ".gz"))
    with page_size_limit(4000):
        assert unpacked(copy_of(Warc(path=str(tmp_path / "x.warc.gz")), tmp_path / "out")) == b"".join(records)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pack", PACK)
def test_a_file_of_which_nothing_is_removed_is_copied_as_it_is(tmp_path, pack, layout):
    for number, damage in enumerate([None, *DAMAGE]):
        records = crawl(8, random.Random(number))
        records[3] = DAMAGE[damage](records[3]) if damage else records[3]
        path = tmp_path / f"{number}.warc"
        path.write_bytes(laid_out(records, layout, pack))
        assert copy_of(Warc(path=str(path)), tmp_path / f"out{number}") == path.read_bytes()


@pytest.mark.parametrize("damage", [None, *NO_HEADER])
@pytest.mark.parametrize("pack", PACK)
def test_members_of_one_record_are_copied_as_they_are(tmp_path, pack, damage):
    """Members of another writer and level, with padding: what stays keeps its bytes."""
    records = crawl(9, random.Random(7))
    records[4] = DAMAGE[damage](records[4]) if damage else records[4]
    levels = {
        "": bytes,
        ".gz": lambda record: gzip.compress(record, 1, mtime=5),
        ".zst": lambda record: zstandard.ZstdCompressor(19, write_checksum=True).compress(record),
        ".bz2": lambda record: bz2.compress(record, 1),
    }
    members = [levels[pack](record) for record in records]
    (tmp_path / "x.warc").write_bytes(b"".join(members))
    for number, gone in enumerate([{0}, {8}, {3, 5}, {1, 2, 6}, {0, 1, 2, 3, 5, 6, 7, 8}]):
        removed = {uri(records[k]) for k in gone}
        copy = copy_of(Warc(path=str(tmp_path / "x.warc")), tmp_path / f"out{number}", removed=removed)
        assert copy == b"".join(member for k, member in enumerate(members) if k not in gone)


def test_a_member_that_lacks_its_end_alone_is_not_copied_in_addition_to_its_records(tmp_path):
    """Its records, the removed ones included, were in the copy a second time, as the compressed bytes of the member."""
    records = crawl(6, random.Random(2))
    (tmp_path / "x.warc.gz").write_bytes(gzip.compress(b"".join(records))[:-8])
    collection = Warc(path=str(tmp_path / "x.warc.gz"))
    *pages, skipped = read(collection)
    assert len(pages) == 6
    assert skipped.reason.endswith("the compressed stream is truncated; 0 bytes are no record")
    copy = copy_of(collection, tmp_path / "out", removed={uri(records[0]), uri(records[3])})
    assert unpacked(copy) == b"".join(records[k] for k in (1, 2, 4, 5))
