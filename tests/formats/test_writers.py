"""Copies without duplicates, the lists that explain them, and the decisions behind both."""

import csv
import errno
import gzip
import json
import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import PACK, arc_file, arc_record, crawl, packed, warc_record
from hypothesis import given
from hypothesis import strategies as st

from spotsigs.clustering.clusters import cluster, cohesion
from spotsigs.clustering.decisions import Keep, decide, priority
from spotsigs.clustering.tables import harmless, write_cluster_list, write_lists, write_table
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.formats.arc import Arc
from spotsigs.formats.column_files import Csv, Parquet
from spotsigs.formats.compression import open_bytes
from spotsigs.formats.folder import Folder
from spotsigs.formats.input_files import InputFile
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.trec import Trec
from spotsigs.formats.warc import Warc
from spotsigs.formats.writers import target_of, write_copy
from spotsigs.records import Document, Pairs
from spotsigs.signatures.extract import extract, is_readable
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.store import Renumbered, Strings
from spotsigs.text.visible import MainText

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
    with pytest.raises(InputError, match="'d0' is not where it was: the collection has changed"):
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
    none = np.zeros(N - 1, dtype=bool)
    write_copy(collection, judged, none, tmp_path / "out", judged=lambda document: document.id != "d7")
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
        target = target_of(tmp_path, InputFile(Path("stdin"), name))
        assert target.is_relative_to(tmp_path)
        assert ".." not in target.parts


@pytest.mark.skipif(os.name == "nt", reason="these are no names there")
def test_files_keep_their_names_whatever_bytes_those_have(tmp_path):
    names = [b"a:b.html", b"a_b.html", b"a\\b.html", b"a/b.html", b"\xff.html", b"\\xff.html", b"%3A.html", b"\n .html"]
    source = os.fsencode(tmp_path / "in")
    for k, name in enumerate(names):
        path = os.path.join(source, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(b"<p>page %d" % k)
    collection = Folder(path=str(tmp_path / "in"))
    found = documents(collection)
    assert len(found) == len(names)
    write_copy(collection, [d.id for d in found], np.ones(len(names), dtype=bool), tmp_path / "out")
    copied = documents(Folder(path=str(tmp_path / "out")))
    assert [(d.id, d.content) for d in copied] == [(d.id, d.content) for d in found]
    assert {
        os.path.relpath(os.fsencode(p), os.fsencode(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.html")
    } == {*names}


def test_two_files_never_become_one_in_a_copy(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"text": "the cat"}\n')
    twice = [InputFile(tmp_path / "x.jsonl", name) for name in ("b/x.jsonl", "b/./x.jsonl")]
    target_of(tmp_path, twice[0]).write_bytes(b"")
    with pytest.raises(InputError, match=r"'b/./x.jsonl' and another file .* would be one in a copy; rename one"):
        target_of(tmp_path, twice[1])


@pytest.mark.parametrize("first_fails", [True, False])
def test_of_equal_ids_the_one_that_could_not_be_judged_stays(tmp_path, first_fails):
    deep = "<p>" + "<div>" * 3000 + "the deep one"
    pages = [deep, "<p>the plan is a new bridge"]
    lines = [json.dumps({"id": "a", "html": page}) for page in (pages if first_fails else pages[::-1])]
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    collection, text, scheme = Jsonl(path=str(tmp_path / "x.jsonl")), MainText(), SpotSignatures()
    found = extract(collection, text, scheme, Serial())
    assert (found.doc_ids, [record.id for record in found.skipped]) == (("a",), ["a"])
    removed = np.zeros(1, dtype=bool)
    judged = lambda document: is_readable(document, text, scheme)  # noqa: E731
    write_copy(collection, found.doc_ids, removed, tmp_path / "out", judged=judged)
    assert [d.content for d in documents(Jsonl(path=str(tmp_path / "out")))] == [deep]


def test_rows_without_ids_can_be_copied(tmp_path):
    pq.write_table(
        pa.table({"text": [f"t{k}" for k in range(N)], "more": range(N)}), tmp_path / "x.parquet", row_group_size=7
    )
    collection = Parquet(path=str(tmp_path / "x.parquet"))
    kept = np.arange(N) % 3 == 0
    write_copy(collection, [d.id for d in documents(collection)], kept, tmp_path / "out")
    assert pq.read_table(tmp_path / "out")["more"].to_pylist() == list(range(0, N, 3))


def test_files_of_another_format_stay(tmp_path):
    rest = b"no archive at all " * 9
    for make, name in [
        (make_warc, "z.warc.gz"),
        (make_arc, "z.arc"),
        (make_csv, "z.csv"),
        (make_trec, "z"),
        (make_parquet, "z.pq"),
    ]:
        collection = make(tmp_path / make.__name__, "")
        other = tmp_path / make.__name__ / name
        other.write_bytes(b"\0" + rest if make is make_csv else rest)
        out = tmp_path / f"{make.__name__}-out"
        write_copy(collection, [d.id for d in documents(collection)], np.zeros(N, dtype=bool), out)
        assert (out / name).read_bytes() == other.read_bytes()


class FullDisk:
    """A file of a disk that is full after some bytes."""

    def __init__(self, file, room):
        self._file, self._room = file, room

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def write(self, data):
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(data)


@pytest.mark.parametrize(("make", "pack"), [case for case in FORMATS if case[0] is not make_parquet])
@pytest.mark.parametrize("room", [0, 60])
def test_a_disk_that_is_full_is_never_taken_for_the_end_of_the_input(tmp_path, monkeypatch, make, pack, room):
    collection = make(tmp_path / "in", pack)
    if make is make_folder:
        (tmp_path / "in" / "0" / "photo.jpg").write_bytes(bytes(5000))
    found = documents(collection)
    usual = Path.open

    def opened(path, mode="r", *args, **more):
        file = usual(path, mode, *args, **more)
        return FullDisk(file, room) if "x" in mode or "w" in mode else file

    monkeypatch.setattr(Path, "open", opened)
    kept = np.ones(N, dtype=bool) if make is not make_folder else np.zeros(N, dtype=bool)
    with pytest.raises(InputError, match=r"the copy .* cannot be written: No space left on device; give another place"):
        write_copy(collection, [d.id for d in found], kept, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# decisions


def drawn_pairs(n):
    ends = st.tuples(st.integers(0, n - 2), st.integers(1, n - 1)).filter(lambda pair: pair[0] < pair[1])
    values = st.sampled_from([0.5, 1 / 3, 0.1234567, 1.0, float("nan")])
    return st.dictionaries(ends, values, max_size=2 * n).map(
        lambda found: Pairs.build(*np.array([*found], int).reshape(-1, 2).T, np.array([*found.values()], float), n)
    )


def reason(decisions, row):
    return decisions.reasons(np.array([row]), NAMES)[0].as_py()


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
    assert "".join(NAMES[r] if r >= 0 else "-" for r in decisions.instead(np.arange(6))) == instead


def test_reasons_name_partner_and_similarity():
    pairs = pairs_of(EDGES, 6)
    decisions = decide(pairs, cluster(pairs), Keep.first)
    assert reason(decisions, 1) == "near-duplicate of a (similarity 0.900), which is kept"
    assert reason(decisions, 2) == "in one cluster with a, which is kept, by way of b (similarity 0.500)"
    assert reason(decide(pairs, cluster(pairs), Keep.none), 3) == (
        "near-duplicate of e (similarity 1.000), and no document that has one is kept"
    )
    unknown = pairs_of([(0, 1, np.nan)], 2)
    assert reason(decide(unknown, cluster(unknown)), 1) == "near-duplicate of a, which is kept"


@given(st.data())
def test_decisions_against_counting(data):
    n = data.draw(st.integers(1, 12))
    edges = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    edges = sorted({(min(e), max(e)) for e in edges if e[0] != e[1]})
    values = data.draw(st.lists(st.sampled_from([0.5, 0.75, 1.0]), min_size=len(edges), max_size=len(edges)))
    weighted = [(a, b, v) for (a, b), v in zip(edges, values, strict=True)]
    pairs = pairs_of(weighted, n)
    for method in ("components", "anchored"):
        groups = cluster(pairs, clusters=method)
        decisions = decide(pairs, groups, Keep.first)
        for row in range(n):
            own = [(-v, b if a == row else a) for a, b, v in weighted if row in (a, b)]
            expected = (min(own)[1], -min(own)[0]) if own else (-1, None)
            assert decisions.partner[row] == expected[0]
            assert (
                np.isnan(decisions.similarity[row]) if expected[1] is None else decisions.similarity[row] == expected[1]
            )
        assert decisions.kept.sum() == len(groups.sizes)
        assert np.all(
            groups.labels[decisions.instead(np.flatnonzero(~decisions.kept))] == groups.labels[~decisions.kept]
        )
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
    assert (tmp_path / "kept.csv").read_text() == "doc,compared\n'=a,yes\nd,yes\nf,yes\n"
    header, b, c, e = (tmp_path / "removed.csv").read_text().splitlines()
    assert header == "doc,kept_instead,partner,similarity,reason"
    assert b == '"b,1",\'=a,\'=a,0.9,"near-duplicate of =a (similarity 0.900), which is kept"'
    assert c.startswith("'@c,'=a,\"b,1\",0.5,")
    assert e.startswith("'-e,d,d,1.0,")


CELLS = st.text(st.sampled_from(list("=+-@＝ab,\"'\r\n\t \x1c\x85\u3000é")), max_size=6)


def naive_line(cells):
    """Return a line of CSV, cell by cell."""
    cells = [
        f"'{cell}" if cell.lstrip()[:1] in tuple("=+-@＝") or cell[:1] in tuple("\t\r\n") else cell for cell in cells
    ]
    quoted = [f'"{cell.replace(chr(34), chr(34) * 2)}"' if set(cell) & set(',"\r\n') else cell for cell in cells]
    return ",".join(quoted if cells != [""] else ['""']) + "\n"


@given(st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=8)))
def test_tables_are_those_written_cell_by_cell(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    batches = [rows[:3], rows[3:]] if rows[3:] else [rows]
    columns = [[pa.array(column, pa.string()) for column in zip(*batch, strict=True)] for batch in batches]
    write_table(path, ["name"] * len(rows[0]), columns)
    _, body = path.read_bytes().decode().split("\n", 1)
    assert body == "".join(map(naive_line, rows))
    with path.open(newline="", encoding="utf-8") as file:
        assert [[cell.removeprefix("'") for cell in row] for row in list(csv.reader(file))[1:]] == [
            [cell.removeprefix("'") for cell in row] for row in rows
        ]


def naive_reason(decisions, row, names):
    """Say in one sentence why a removed document was removed."""

    def percent(similarity):
        return "" if np.isnan(similarity) else f" (similarity {similarity:.3f})"

    partner, similarity = names[int(decisions.partner[row])], decisions.similarity[row]
    instead = int(decisions.instead(np.array([row]))[0])
    if instead < 0:
        return f"near-duplicate of {partner}{percent(similarity)}, and no document that has one is kept"
    kept, to_kept = names[instead], decisions.clusters.similarity_to_representative[row]
    if kept == partner or not np.isnan(to_kept):
        return f"near-duplicate of {kept}{percent(to_kept)}, which is kept"
    return f"in one cluster with {kept}, which is kept, by way of {partner}{percent(similarity)}"


@given(st.integers(2, 12).flatmap(drawn_pairs), st.sampled_from([Keep.first, Keep.none]), st.booleans())
def test_lists_are_those_written_row_by_row(tmp_path_factory, pairs, keep, stored):
    folder = tmp_path_factory.mktemp("lists")
    ids = [f"page {row}, {'é' * (row % 3)}" for row in range(pairs.n)]
    names = ids
    if stored:
        ends = np.cumsum([len(name.encode()) for name in ids])
        back = np.arange(pairs.n)[::-1]
        names = Renumbered(Renumbered(Strings(np.frombuffer("".join(ids).encode(), np.uint8), ends), back), back)
    clusters = cluster(pairs)
    decisions = decide(pairs, clusters, keep)
    write_lists(decisions, names, folder, new_from=1)
    instead = decisions.instead(np.arange(pairs.n))
    removed = [
        [
            ids[row],
            ids[instead[row]] if instead[row] >= 0 else "",
            ids[decisions.partner[row]],
            "" if np.isnan(decisions.similarity[row]) else repr(float(decisions.similarity[row])),
            naive_reason(decisions, row, ids),
        ]
        for row in range(pairs.n)
        if not decisions.kept[row]
    ]
    header = ["doc", "kept_instead", "partner", "similarity", "reason"]
    assert (folder / "removed.csv").read_text("utf-8") == "".join(map(naive_line, [header, *removed]))
    kept = [[ids[row], "yes"] for row in range(1, pairs.n) if decisions.kept[row]]
    assert (folder / "kept.csv").read_text("utf-8") == "".join(map(naive_line, [["doc", "compared"], *kept]))

    held = cohesion(clusters, pairs.chunks())
    write_cluster_list(folder / "clusters.csv", names, clusters, held)
    with (folder / "clusters.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["size"]) for row in rows] == sorted(clusters.sizes[clusters.sizes > 1].tolist(), reverse=True)
    for row in rows:
        label = int(row["cluster"])
        assert row["representative"] == ids[clusters.representatives[label]]
        own = held.of(np.array([label]))
        assert (int(row["pairs"]), int(row["apart"])) == (own.pairs[0], own.apart[0])
        assert row["min_similarity"] == ("" if np.isnan(own.minimum[0]) else repr(float(own.minimum[0])))
        assert row["mean_similarity"] == ("" if np.isnan(own.mean[0]) else repr(float(own.mean[0])))
        assert row["chain"] == str(bool(own.chain[0])).lower()


def test_a_name_that_is_not_utf8_is_said(tmp_path):
    names = Strings(np.frombuffer(b"a\xff", np.uint8), np.array([1, 2]))
    with pytest.raises(InputError, match="a name in the store is not UTF-8"):
        names.arrow(np.array([0, 1]))
    assert names.arrow(np.array([0, 0])).to_pylist() == ["a", "a"]
    assert len(names.arrow(np.empty(0, np.int64))) == 0


@pytest.mark.parametrize("start", "=+-@\t\r")
def test_formulas_are_quoted(start):
    assert harmless(f"{start}1") == f"'{start}1"
    assert harmless(f"x{start}") == f"x{start}"


def test_what_breaks_lines_is_quoted(tmp_path):
    pairs = pairs_of(EDGES, 6)
    names = ["a\r=cmd()|x", "b\n=x", "c\r\n@y", "d", "e", "f\x85\u2028-1"]
    write_lists(decide(pairs, cluster(pairs)), names, tmp_path)
    with (tmp_path / "kept.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["doc", "compared"], *([name, "yes"] for name in (names[0], "d", names[5]))]
    for raw in (tmp_path / "kept.csv").read_bytes(), (tmp_path / "removed.csv").read_bytes():
        quoted = [part for k, part in enumerate(raw.split(b'"')) if k % 2]
        assert raw.count(b"\r") == sum(part.count(b"\r") for part in quoted) > 0


def test_the_newest_is_told_by_microseconds():
    dates = ["2024-01-01T00:00:00.25Z", "2024-01-01T00:00:00.750001Z", "2024-01-01T00:00:00.75Z", None]
    rank = priority(Keep.newest, 4, dates=dates)
    assert np.argsort(rank, kind="stable").tolist() == [1, 2, 0, 3]


def test_tiny_can_be_copied(tmp_path):
    collection = Folder(path=str(Path(__file__).parents[2] / "data" / "tiny"))
    ids = [d.id for d in documents(collection)]
    write_copy(collection, ids, np.array([not name.startswith("ferry") for name in ids]), tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*.*"))) == 40
