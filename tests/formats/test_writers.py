"""Copies of collections without removed documents, in every format."""

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
from archives import PACK, arc_file, arc_record, crawl, packed, warc_record, write_copy

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
from spotsigs.formats.writers import target_of
from spotsigs.records import Document
from spotsigs.signatures.extract import extract, is_readable
from spotsigs.signatures.spots import SpotSignatures
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
    with pytest.raises(InputError, match="is not empty; name another folder"):
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
    with pytest.raises(
        InputError, match=r"the copy .* cannot be written: No space left on device; name another folder"
    ):
        write_copy(collection, [d.id for d in found], kept, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tiny_can_be_copied(tmp_path):
    collection = Folder(path=str(Path(__file__).parents[2] / "data" / "tiny"))
    ids = [d.id for d in documents(collection)]
    write_copy(collection, ids, np.array([not name.startswith("ferry") for name in ids]), tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*.*"))) == 40
