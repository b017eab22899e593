"""Copies without duplicates, the lists that explain them, and the decisions behind both."""

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import PACK, arc_file, arc_record, crawl, packed, warc_record
from hypothesis import given
from hypothesis import strategies as st
from spotsigs.data.formats.arc import Arc
from spotsigs.data.formats.columns import Csv, Parquet
from spotsigs.data.formats.folder import Folder
from spotsigs.data.formats.input_files import open_bytes
from spotsigs.data.formats.jsonl import Jsonl
from spotsigs.data.formats.trec import Trec
from spotsigs.data.formats.warc import Warc
from spotsigs.data.formats.writers import harmless, place, write_copy, write_lists

from spotsigs.errors import InputError
from spotsigs.judging.clusters import cluster
from spotsigs.judging.keep import Keep, decide, priority
from spotsigs.records import Document, Pairs

N = 30


def make_folder(at, pack):
    at.mkdir()
    for k in range(N):
        (at / f"{k % 4}").mkdir(exist_ok=True)
        (at / f"{k % 4}" / f"{k}.html").write_bytes(f"<p>page {k} \xe9".encode("latin-1"))
    (at / "0" / "style.css").write_text("p {}")
    return Folder(path=str(at))


def make_jsonl(at, pack):
    lines = [json.dumps({"id": f"d{k}", "text": f"text {k}", "more": [k]}) for k in range(N)]
    at.mkdir()
    (at / f"a.jsonl{pack}").write_bytes(
        PACK[pack](b"\xef\xbb\xbf" + "\n".join(lines[:20]).encode() + b"\nbroken {\n\n")
    )
    (at / f"b.jsonl{pack}").write_bytes(PACK[pack]("\r\n".join(lines[20:]).encode()))
    return Jsonl(path=str(at))


def make_csv(at, pack):
    at.mkdir()
    rows = [f'd{k};"text {k}\nof ""two"" lines";é\n'.encode("latin-1") for k in range(N)]
    (at / f"a.csv{pack}").write_bytes(PACK[pack](b"id;text;more\n" + b"".join(rows) + b"\nragged\n"))
    return Csv(path=str(at), delimiter=";")


def make_parquet(at, pack):
    at.mkdir()
    table = pa.table({"id": range(N), "text": [f"t{k}" for k in range(N)], "more": [[k] for k in range(N)]})
    pq.write_table(table, at / "a.parquet", row_group_size=7, compression="zstd")
    return Parquet(path=str(at))


def make_warc(at, pack):
    at.mkdir()
    pages = crawl(N, random.Random(1))
    others = [warc_record("http://x/img", b"\x89PNG", "image/png"), warc_record("http://x/gone", b"x", status="404 No")]
    (at / f"a.warc{pack}").write_bytes(packed([others[0], *pages[:20], others[1], *pages[20:]], pack))
    return Warc(path=str(at))


def make_arc(at, pack):
    at.mkdir()
    records = [*arc_file(N, random.Random(1)), arc_record("http://x/img", b"\x89PNG\n\n", "image/png")]
    (at / f"a.arc{pack}").write_bytes(packed(records, pack))
    return Arc(path=str(at))


def make_trec(at, pack):
    at.mkdir()
    docs = [f"<DOC>\n<DOCNO>d{k}</DOCNO>\n<p>text {k}\n</DOC>\n".encode() for k in range(N)]
    (at / f"B01{pack}").write_bytes(PACK[pack](b"".join(docs)))
    return Trec(path=str(at))


FORMATS = [
    (make, pack)
    for make, packs in [
        (make_folder, [""]),
        (make_jsonl, PACK),
        (make_csv, PACK),
        (make_parquet, [""]),
        (make_warc, PACK),
        (make_arc, ["", ".gz"]),
        (make_trec, PACK),
    ]
    for pack in packs
]


def documents(collection):
    return [record for shard in collection.shards() for record in shard() if isinstance(record, Document)]


def contents(folder):
    def content(path):
        with open_bytes(path) as file:
            return file.read()

    return {p.relative_to(folder).as_posix(): content(p) for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(("make", "pack"), FORMATS)
def test_copy_of_all_is_the_original(tmp_path, make, pack):
    collection = make(tmp_path / "in", pack)
    ids = [d.id for d in documents(collection)]
    assert len(ids) == N
    write_copy(collection, ids, np.ones(N, dtype=bool), tmp_path / "out")
    if make is make_parquet:
        assert pq.read_table(tmp_path / "out").equals(pq.read_table(tmp_path / "in"))
    else:
        assert contents(tmp_path / "out") == contents(tmp_path / "in")
    if pack:
        assert (tmp_path / "out" / next(p.name for p in (tmp_path / "in").iterdir())).exists()


@pytest.mark.parametrize(("make", "pack"), FORMATS)
@pytest.mark.parametrize("seed", [0, 1])
def test_copy_leaves_out_what_is_removed(tmp_path, make, pack, seed):
    collection = make(tmp_path / "in", pack)
    before = documents(collection)
    kept = np.random.default_rng(seed).random(N) < 0.4
    write_copy(collection, [d.id for d in before], kept, tmp_path / "out")
    after = documents(type(collection)(**{**vars(collection), "path": str(tmp_path / "out")}))

    def bare(document):
        named = "@" not in document.id and "#" not in document.id
        return (document.id if named else None, document.content, document.cluster, document.date)

    assert [bare(d) for d in after] == [bare(d) for d, stays in zip(before, kept, strict=True) if stays]


def test_copy_keeps_what_is_no_document(tmp_path):
    none = np.zeros(N, dtype=bool)
    for make, trace in [
        (make_folder, b"p {}"),
        (make_jsonl, b"broken {"),
        (make_warc, b"\x89PNG"),
        (make_arc, b"\x89PNG"),
    ]:
        name = make.__name__
        collection = make(tmp_path / name, "")
        write_copy(collection, [d.id for d in documents(collection)], none, tmp_path / f"{name}-out")
        left = b"".join(contents(tmp_path / f"{name}-out").values())
        assert trace in left
        if make is make_folder:
            assert [p.name for p in (tmp_path / f"{name}-out").rglob("*.*")] == ["style.css"]
        else:
            assert not documents(type(collection)(path=str(tmp_path / f"{name}-out")))


def test_copy_of_archives_stays_an_archive_of_single_records(tmp_path):
    for make, pack, magic in [
        (make_warc, ".gz", b"\x1f\x8b\x08"),
        (make_warc, ".zst", b"\x28\xb5\x2f\xfd"),
        (make_arc, ".gz", b"\x1f\x8b\x08"),
    ]:
        folder = tmp_path / (make.__name__ + pack)
        collection = make(folder, pack)
        write_copy(collection, [d.id for d in documents(collection)], np.ones(N, dtype=bool), folder / "out")
        assert next((folder / "out").iterdir()).read_bytes().count(magic) >= N
        parts = type(collection)(path=str(folder / "out"), shard_bytes=2000)
        assert len(parts.shards()) > 2
        assert len(documents(parts)) == N


def test_copy_refuses_a_changed_collection_and_a_full_folder(tmp_path):
    collection = make_jsonl(tmp_path / "in", "")
    ids = [d.id for d in documents(collection)]
    all_kept = np.ones(N, dtype=bool)
    with pytest.raises(InputError, match="'d28' is not where it was: the collection has changed"):
        write_copy(collection, ids[::-1], all_kept, tmp_path / "out")
    with pytest.raises(InputError, match="'more' is not where it was"):
        write_copy(collection, [*ids, "more"], np.ones(N + 1, dtype=bool), tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]
    with pytest.raises(InputError, match="is not empty; give another place"):
        write_copy(collection, ids, all_kept, tmp_path / "in")
    repeated = [f"{doc_id}#2" for doc_id in ids]
    write_copy(collection, repeated, all_kept, tmp_path / "out")


def test_what_was_not_judged_stays(tmp_path):
    collection = make_jsonl(tmp_path / "in", "")
    judged = [d.id for d in documents(collection) if d.id != "d7"]
    write_copy(collection, judged, np.zeros(N - 1, dtype=bool), tmp_path / "out")
    assert [d.id for d in documents(Jsonl(path=str(tmp_path / "out")))] == ["d7"]


def test_copy_of_a_truncated_file_ends_where_it_ends(tmp_path):
    rng = random.Random(1)
    lines = b"\n".join(json.dumps({"id": f"d{k}", "text": rng.randbytes(200).hex()}).encode() for k in range(500))
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(lines)[:30_000])
    collection = Jsonl(path=str(tmp_path / "x.jsonl.gz"))
    found = documents(collection)
    write_copy(collection, [d.id for d in found], np.arange(len(found)) % 2 == 0, tmp_path / "out")
    assert [d.id for d in documents(Jsonl(path=str(tmp_path / "out")))] == [d.id for d in found[::2]]


def test_no_name_leads_out_of_the_copy(tmp_path):
    for name in ("../../etc/passwd", "/etc/passwd", "a/../../b", "..\\..\\b", "C:\\x"):
        assert place(tmp_path, name).is_relative_to(tmp_path)
        assert ".." not in place(tmp_path, name).parts


# decisions


def pairs_of(edges, n):
    i, j, similarity = (np.array(column) for column in zip(*edges, strict=True)) if edges else ([], [], [])
    return Pairs.build(np.array(i, int), np.array(j, int), np.array(similarity, float), n)


EDGES = [(0, 1, 0.9), (1, 2, 0.5), (3, 4, 1.0)]  # 0 and 2 are connected by way of 1; 5 is alone
NAMES = ["a", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("keep", "kept", "instead"),
    [
        (Keep.first, "adf", "-aa-d-"),
        (Keep.longest, "cef", "cc-e--"),
        (Keep.newest, "bdf", "b-b-d-"),
        (Keep.none, "f", "------"),
    ],
)
def test_policies(keep, kept, instead):
    pairs = pairs_of(EDGES, 6)
    dates = ["2024-01-01", "2024-01-01T10:00:00+02:00", "not a date", None, None, "1999-12-31"]
    rank = priority(keep, 6, lengths=np.array([1, 2, 3, 4, 5, 6]), dates=dates)
    decisions = decide(pairs, cluster(pairs, priority=rank), keep)
    assert "".join(n for n, k in zip(NAMES, decisions.kept, strict=True) if k) == kept
    assert "".join(NAMES[r] if r >= 0 else "-" for r in decisions.instead) == instead


def test_reasons_name_partner_and_similarity():
    pairs = pairs_of(EDGES, 6)
    decisions = decide(pairs, cluster(pairs), Keep.first)
    assert decisions.reason(1, NAMES) == "near-duplicate of a (similarity 0.900), which is kept"
    assert decisions.reason(2, NAMES) == "in one cluster with a, which is kept, by way of b (similarity 0.500)"
    assert decide(pairs, cluster(pairs), Keep.none).reason(3, NAMES) == (
        "near-duplicate of e (similarity 1.000), and no document that has one is kept"
    )
    unknown = pairs_of([(0, 1, np.nan)], 2)
    assert decide(unknown, cluster(unknown)).reason(1, NAMES) == "near-duplicate of a, which is kept"


@given(st.data())
def test_decisions_against_counting(data):
    n = data.draw(st.integers(1, 12))
    edges = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    edges = sorted({(min(e), max(e)) for e in edges if e[0] != e[1]})
    values = data.draw(st.lists(st.sampled_from([0.5, 0.75, 1.0]), min_size=len(edges), max_size=len(edges)))
    weighted = [(a, b, v) for (a, b), v in zip(edges, values, strict=True)]
    pairs = pairs_of(weighted, n)
    for method in ("components", "anchored"):
        groups = cluster(pairs, method=method)
        decisions = decide(pairs, groups, Keep.first)
        for row in range(n):
            own = [(-v, b if a == row else a) for a, b, v in weighted if row in (a, b)]
            expected = (min(own)[1], -min(own)[0]) if own else (-1, None)
            assert decisions.partner[row] == expected[0]
            assert (
                np.isnan(decisions.similarity[row]) if expected[1] is None else decisions.similarity[row] == expected[1]
            )
        assert decisions.kept.sum() == len(groups.sizes)
        assert np.all(groups.labels[decisions.instead[~decisions.kept]] == groups.labels[~decisions.kept])
        assert decide(pairs, groups, Keep.none).kept.sum() == sum(size == 1 for size in groups.sizes)


def test_policies_refuse_what_they_cannot_know():
    with pytest.raises(InputError, match="keep=longest needs the documents' lengths"):
        priority(Keep.longest, 3)
    with pytest.raises(InputError, match="keep=newest needs dates"):
        priority(Keep.newest, 2, dates=["no", None])


def test_lists(tmp_path):
    pairs = pairs_of(EDGES, 6)
    names = ["=a", "b,1", "@c", "d", "-e", "f"]
    write_lists(decide(pairs, cluster(pairs)), names, tmp_path)
    assert (tmp_path / "kept.csv").read_text() == "doc\n'=a\nd\nf\n"
    header, b, c, e = (tmp_path / "removed.csv").read_text().splitlines()
    assert header == "doc,kept_instead,partner,similarity,reason"
    assert b == '"b,1",\'=a,\'=a,0.9,"near-duplicate of =a (similarity 0.900), which is kept"'
    assert c.startswith("'@c,'=a,\"b,1\",0.5,")
    assert e.startswith("'-e,d,d,1.0,")


@pytest.mark.parametrize("start", "=+-@\t\r")
def test_formulas_are_quoted(start):
    assert harmless(f"{start}1") == f"'{start}1"
    assert harmless(f"x{start}") == f"x{start}"


def test_tiny_can_be_copied(tmp_path):
    collection = Folder(path=str(Path(__file__).parent.parent / "data" / "tiny"))
    ids = [d.id for d in documents(collection)]
    write_copy(collection, ids, np.array([not name.startswith("ferry") for name in ids]), tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*.*"))) == 40
