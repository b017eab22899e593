"""Copies of collections without removed documents, in every format."""

import gzip
import json
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from archives import EVERY_FILE, MAKES, PACK, file_of, ids, read, texts, write_copy
from faults import Denied, denying

from spotsigs.errors import InputError
from spotsigs.formats.compression import open_bytes
from spotsigs.formats.detect_format import FORMATS
from spotsigs.formats.folder import Folder
from spotsigs.formats.input_files import InputFile
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.writers import target_of
from spotsigs.signatures.extract import extract, is_readable
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import MainText
from spotsigs.workers.engines import Serial

N = 30


def make(kind, pack, folder):
    """Write the files of a collection of N documents, some with more that is no document; return the collection."""
    folder.mkdir()
    docs = texts(N)
    if kind == "folder":
        for k, (doc_id, text, _) in enumerate(docs):
            (folder / f"{k % 4}").mkdir(exist_ok=True)
            (folder / f"{k % 4}" / f"{doc_id}.html").write_bytes(f"<p>{text} \xe9".encode("latin-1"))
        (folder / "0" / "style.css").write_text("p {}")
        return Folder(path=str(folder))
    for name, part in (("a", docs[:20]), ("b", docs[20:])):
        content = file_of(kind, part, pack)
        if kind in MAKES:  # rows of CSV without ids, and lines that are no records
            more = {"jsonl": b"broken {\n\n", "csv": b"\nragged\n", "trec": b"\nbetween\n"}[kind]
            content = PACK[pack](MAKES[kind](part).replace(b'"id","text"', b'"key","text"') + more)
        (folder / f"{name}.{kind}{pack}").write_bytes(content)
    return FORMATS[kind](path=str(folder))


EVERY = [("folder", ""), *EVERY_FILE]


def contents(folder):
    def content(path):
        with open_bytes(path) as file:
            return file.read()

    return {p.relative_to(folder).as_posix(): content(p) for p in sorted(folder.rglob("[!.]*")) if p.is_file()}


@pytest.mark.parametrize(
    ("kind", "pack", "magic"),
    [("warc", ".gz", b"\x1f\x8b\x08"), ("warc", ".zst", b"\x28\xb5\x2f\xfd"), ("arc", ".gz", b"\x1f\x8b\x08")],
)
def test_a_copy_of_an_archive_is_an_archive_of_single_records(tmp_path, kind, pack, magic):
    collection = make(kind, pack, tmp_path / "in")
    write_copy(collection, ids(read(collection)), np.ones(N, dtype=bool), tmp_path / "out")
    assert b"".join(path.read_bytes() for path in (tmp_path / "out").glob("[!.]*")).count(magic) >= N
    parts = replace(collection, path=str(tmp_path / "out"), shard_bytes=2000)
    assert len(parts.shards()) > 3
    assert len(ids(read(parts))) == N


def test_copy_refuses_a_collection_in_another_order(tmp_path):
    collection = make("jsonl", "", tmp_path / "in")
    names, all_kept = ids(read(collection)), np.ones(N, dtype=bool)
    with pytest.raises(InputError, match="'d0' is not where it was: the collection has changed"):
        write_copy(collection, names[::-1], all_kept, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]
    write_copy(collection, [f"{name}#2" for name in names], all_kept, tmp_path / "out")


@pytest.mark.parametrize(("kind", "pack"), EVERY)
def test_a_call_that_fails_is_an_error_and_never_the_end_of_the_input(tmp_path, kind, pack):
    collection = make(kind, pack, tmp_path / "in")
    if kind == "folder":
        (tmp_path / "in" / "0" / "photo.jpg").write_bytes(bytes(5000))
    names = ids(read(collection))
    for at in range(1, 1000, 7):
        denied = Denied(tmp_path, at)
        denied.buffer = 64
        try:
            with denying(denied):
                write_copy(collection, names, np.ones(N, dtype=bool), tmp_path / "out")
        except InputError as error:
            assert "cannot be written: No space left on device" in str(error)  # noqa: PT017
            assert not (tmp_path / "out").exists()
        else:
            assert kind == "parquet" or contents(tmp_path / "out") == contents(tmp_path / "in")
            shutil.rmtree(tmp_path / "out")
        if len(denied.calls) < at:
            break


def test_what_was_not_judged_stays(tmp_path):
    collection = make("jsonl", "", tmp_path / "in")
    judged = [name for name in ids(read(collection)) if name != "d7"]
    none = np.zeros(N - 1, dtype=bool)
    write_copy(collection, judged, none, tmp_path / "out", judged=lambda document: document.id != "d7")
    assert ids(read(Jsonl(path=str(tmp_path / "out")))) == ["d7"]


def test_copy_of_a_truncated_file_ends_where_it_ends(tmp_path):
    rng = random.Random(1)
    lines = b"\n".join(json.dumps({"id": f"d{k}", "text": rng.randbytes(200).hex()}).encode() for k in range(500))
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(lines)[:30_000])
    collection = Jsonl(path=str(tmp_path / "x.jsonl.gz"))
    names = ids(read(collection))
    write_copy(collection, names, np.arange(len(names)) % 2 == 0, tmp_path / "out")
    assert ids(read(Jsonl(path=str(tmp_path / "out")))) == names[::2]


@pytest.mark.skipif(os.name == "nt", reason="these are no names there")
def test_files_keep_their_names_whatever_bytes_those_have(tmp_path):
    names = [b"a:b.html", b"a_b.html", b"a\\b.html", b"a/b.html", b"\xff.html", b"\\xff.html", b"%3A.html", b"\n .html"]
    source = os.fsencode(tmp_path / "in")
    for k, name in enumerate(names):
        path = os.path.join(source, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(b"<p>page %d" % k)
    collection = Folder(path=str(tmp_path / "in"))
    pages = read(collection)
    assert len(ids(pages)) == len(pages) == len(names)
    out = tmp_path / "out"
    write_copy(collection, ids(pages), np.ones(len(names), dtype=bool), out)
    assert [(d.id, d.content) for d in read(Folder(path=str(out)))] == [(d.id, d.content) for d in pages]
    assert {os.path.relpath(os.fsencode(path), os.fsencode(out)) for path in out.rglob("*.html")} == {*names}


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
    signatures = extract(collection, text, scheme, Serial())
    assert (signatures.doc_ids, [record.id for record in signatures.skipped]) == (("a",), ["a"])
    removed = np.zeros(1, dtype=bool)
    judged = lambda document: is_readable(document, text, scheme)  # noqa: E731
    write_copy(collection, signatures.doc_ids, removed, tmp_path / "out", judged=judged)
    assert [d.content for d in read(Jsonl(path=str(tmp_path / "out")))] == [deep]
