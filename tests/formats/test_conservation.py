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
from archives import MAKES, PACK, archive, file_of, ids, read
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
    """Draw the files of an input: name, content, compression; and those of other formats."""
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
