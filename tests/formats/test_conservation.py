"""Records in the input = kept + removed + skipped, files in = files out; counted by other libraries."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import random
import re
import tempfile
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from archives import PACK, arc_file, arc_record, warc_record
from fastwarc.warc import ArchiveIterator as FastWarc
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from warcio.archiveiterator import ArchiveIterator

import spotsigs
from spotsigs.cli import main

PACKS = {**PACK, ".bz2": bz2.compress}
UNPACKS = {
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


def jsonl(docs):
    return b"\n".join(json.dumps({"id": k, "text": text}).encode() for k, text in docs) + b"\n"


def table(docs):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("id", "text"), *docs])
    return out.getvalue().encode()


def parquet(docs):
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [k for k, _ in docs], "text": [text for _, text in docs]}), out, row_group_size=3)
    return out.getvalue()


def trec(docs):
    return b"".join(f"<DOC>\n<DOCNO>{k}</DOCNO>\n<p>{text}\n</DOC>\n".encode() for k, text in docs)


def archive(docs, kind, pack):
    """Return an archive of pages, each with an image and, where compressed, some empty members between."""
    records = arc_file(0, random.Random(0)) if kind == "arc" else []
    make = arc_record if kind == "arc" else warc_record
    for k, text in docs:
        records += [make(f"http://x/{k}", f"<p>{text}".encode()), make(f"http://x/{k}.png", b"\x89PNG", "image/png")]
        records += [b""] if pack and k.endswith("3") else []
    return b"".join(map(PACKS[pack], records))


# Other libraries count records that are pages: of a file, and so of its copy.


def count_archive(content, pack):
    if pack in (".zst", ".bz2"):
        content, pack = UNPACKS[pack](content), ""
    return sum(
        record.rec_type == "response" and "html" in (record.http_headers.get_header("Content-Type") or "")
        for record in ArchiveIterator(io.BytesIO(content), arc2warc=True)
    )


COUNTS = {
    "jsonl": lambda content, pack: sum(bool(line.strip()) for line in UNPACKS[pack](content).split(b"\n")),
    "csv": lambda content, pack: sum(
        1 for _ in csv.DictReader(io.StringIO(UNPACKS[pack](content).decode(), newline=""))
    ),
    "parquet": lambda content, pack: pq.read_metadata(io.BytesIO(content)).num_rows,
    "trec": lambda content, pack: len(re.findall(rb"<DOCNO>", UNPACKS[pack](content))),
    "warc": count_archive,
    "arc": count_archive,
    "folder": lambda content, pack: 1,
}
MAKES = {"jsonl": jsonl, "csv": table, "parquet": parquet, "trec": trec}


@st.composite
def inputs(draw, kind):
    """Draw the files of an input: name, content, compression; and those of other formats."""
    docs = [(f"d{k}", prose(draw(st.integers(0, 9)))) for k in range(draw(st.integers(1, 14)))]
    files = {}
    if kind == "folder":
        for k, text in docs:
            pack = draw(st.sampled_from(list(PACKS)))
            files[draw(st.sampled_from(["", "a/", "a/b/"])) + k + ".html" + pack] = (PACKS[pack](text.encode()), pack)
    else:
        cuts = sorted({0, *draw(st.lists(st.integers(0, len(docs)), max_size=3)), len(docs)})
        for number, (a, b) in enumerate(pairwise(cuts)):
            pack = "" if kind == "parquet" else draw(st.sampled_from(list(PACKS)))
            name = draw(st.sampled_from(NAMES)).format(number) + draw(st.sampled_from(["", pack]))
            content = archive(docs[a:b], kind, pack) if kind in ("warc", "arc") else PACKS[pack](MAKES[kind](docs[a:b]))
            files[name] = content, pack
    foreign = draw(st.lists(st.sampled_from(list(FOREIGN)), unique=True, max_size=3))
    return files, {name: FOREIGN[name] for name in foreign}


def dedup(place, *options):
    """Run the command; return its folder of tables. Paths are absolute: a run in one process keeps its last input."""
    with redirect_stdout(io.StringIO()):
        main(["dedup", str(place / "in"), "--out", str(place / "out"), "--workers", "1", *options])
    return place / "out-results"


def listed(path):
    with path.open(newline="") as file:
        return [row["doc"] for row in csv.DictReader(file)]


def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("kind", COUNTS)
def test_nothing_is_lost(kind):
    @examples(12, long=200)
    @given(drawn=inputs(kind), memory=st.sampled_from([False] * 5 + [True]))
    def check(drawn, memory):
        files, foreign = drawn
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            for name, content in {**{name: content for name, (content, _) in files.items()}, **foreign}.items():
                Path(place, "in", name).parent.mkdir(parents=True, exist_ok=True)
                Path(place, "in", name).write_bytes(content)
            results = dedup(place, "--format", kind, *(["--memory", "1GB"] if memory else []))
            kept, removed = listed(results / "kept.csv"), listed(results / "removed.csv")
            skipped = listed(results / "skipped.csv") if (results / "skipped.csv").exists() else []
            out = contents(place / "out")
        total = sum(COUNTS[kind](content, pack) for content, pack in files.values())
        empty_is_read = {"_SUCCESS"} if kind in ("jsonl", "csv", "folder") else set()
        # An empty file has no records as lines and rows; as a page, one without suffix is one.
        assert len(kept) + len(removed) == total + (kind == "folder" and "_SUCCESS" in foreign)
        assert set(skipped) == set(foreign) - empty_is_read
        assert len({*kept, *removed, *skipped}) == len(kept) + len(removed) + len(skipped)
        gone = set(removed) if kind == "folder" else set()
        assert set(out) == {*files, *foreign} - gone
        assert {name: out[name] for name in foreign} == foreign
        left = sum(COUNTS[kind](out[name], pack) for name, (_, pack) in files.items() if name in out)
        assert left == total - len(removed)

    check()


@pytest.mark.parametrize("kind", ["list", "dicts", "arrow", "pandas"])
def test_functions_lose_nothing(kind):
    import pandas as pd

    @examples(8)
    @given(seeds=st.lists(st.integers(0, 9), min_size=1, max_size=14))
    def check(seeds):
        texts = [prose(seed) for seed in seeds]
        ids = [f"d{k}" for k in range(len(texts))]
        rows = [{"id": k, "text": text} for k, text in zip(ids, texts, strict=True)]
        pages = {
            "list": texts, "dicts": rows, "arrow": pa.Table.from_pylist(rows), "pandas": pd.DataFrame(rows)
        }[kind]  # fmt: skip
        found = spotsigs.dedup(pages)
        left = {
            "list": lambda: list(found),
            "dicts": lambda: [row["text"] for row in found],
            "arrow": lambda: found.column("text").to_pylist(),
            "pandas": lambda: list(found["text"]),
        }[kind]()
        assert left == list(dict.fromkeys(texts))  # equal pages are duplicates, others share next to nothing

    check()


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("kind", ["warc", "arc"])
def test_archives_are_copied_bit_by_bit(tmp_path, kind, pack):
    """warcio reads headers and payloads of what stays, in the original and in the copy."""
    docs = [(f"d{k}", prose(k % 7)) for k in range(30)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"x.{kind}{pack}").write_bytes(archive(docs, kind, pack))
    dedup(tmp_path)
    removed = set(listed(tmp_path / "out-results" / "removed.csv"))
    assert removed == {f"http://x/d{k}" for k in range(7, 30)}

    def read(folder):
        content = UNPACKS[pack]((tmp_path / folder / f"x.{kind}{pack}").read_bytes())
        return [
            (str(record.rec_headers), str(record.http_headers), record.raw_stream.read())
            for record in ArchiveIterator(io.BytesIO(content), no_record_parse=False)
        ], content

    (before, whole), (after, left) = read("in"), read("out")
    assert after == [record for record in before if page(record[0]) not in removed]
    if kind == "warc":
        starts = [match.start() for match in re.finditer(rb"(?m)^WARC/1\.[01]\r\n", whole)]
        pieces = [whole[a:b] for a, b in zip(starts, [*starts[1:], len(whole)], strict=True)]
        assert left == b"".join(piece for piece in pieces if not any(uri(piece) == name.encode() for name in removed))
        assert os.path.getsize(tmp_path / "out" / f"x.{kind}{pack}") > 0


def page(header):
    """Return the address of a record, as warcio shows its header."""
    found = re.search(r"(?:WARC-Target-URI|uri): (\S+)", header)
    return found[1] if found else header.split(" ")[0]


def uri(piece):
    return re.search(rb"WARC-Target-URI: (\S+)", piece)[1]


def test_fastwarc_finds_in_a_zstd_copy_what_stays(tmp_path):
    docs = [(f"d{k}", prose(k % 3)) for k in range(6)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.warc.zst").write_bytes(archive(docs, "warc", ".zst").replace(zstandard.compress(b""), b""))
    dedup(tmp_path)
    with (tmp_path / "out" / "x.warc.zst").open("rb") as file:
        names = [record.headers["WARC-Target-URI"] for record in FastWarc(file)]
    expected = [f"http://x/d{k}{end}" for k in range(6) for end in ("", ".png")]
    assert names == [name for name in expected if name not in {"http://x/d3", "http://x/d4", "http://x/d5"}]
