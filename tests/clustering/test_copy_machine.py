"""Copies of every format and compression, in any order of what may happen to them, against a plain dict."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import random
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import PACK, arc_file, arc_record, read, warc_record, write_copy
from faults import Denied, denying
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from strategies import examples, is_long
from test_writers import contents

from spotsigs.errors import InputError
from spotsigs.formats.arc import Arc
from spotsigs.formats.csv_files import Csv
from spotsigs.formats.folder import Folder
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.parquet import Parquet
from spotsigs.formats.trec import Trec
from spotsigs.formats.warc import Warc
from spotsigs.records import Document, Skipped

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=60).map("the {}".format)
BODY = (st.binary(max_size=200) | st.sampled_from([b"\r\n\r\n", b"\x1f\x8b", b"\nDOC", b'"', b"\0"])).map(
    b"<p>".__add__
)
PAGES = st.lists(st.tuples(st.sampled_from("abcdefgh"), TEXT, BODY), min_size=1, max_size=7)


def a_csv(rows):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("id", "text"), *rows])
    return out.getvalue().encode() + b"ragged\n"


def a_parquet(rows):
    out = io.BytesIO()
    table = pa.table({"id": [row[0] for row in rows], "text": [row[1] for row in rows], "more": [[1]] * len(rows)})
    pq.write_table(table, out, row_group_size=3)
    return out.getvalue()


def jsonl(rows):
    return [json.dumps({"id": name, "text": text, "more": [1]}).encode() + b"\n" for name, text in rows]


def trec(rows):
    return [f"<DOC>\n<DOCNO>{name}</DOCNO>\n<p>{text.encode().hex()}\n</DOC>\n".encode() for name, text in rows]


OTHER = b"what is no page and stays"
FORMATS = {
    # reader, suffix, whether pages are bytes, and from rows to the records, or the bytes, of a file
    "jsonl": (Jsonl, ".jsonl", False, lambda rows: [*jsonl(rows), b"broken { " + OTHER + b"\n"]),
    "csv": (Csv, ".csv", False, a_csv),
    "parquet": (Parquet, ".parquet", False, a_parquet),
    "warc": (
        Warc,
        ".warc",
        True,
        lambda rows: [warc_record("http://x/img", OTHER, "image/png"), *(warc_record(*row) for row in rows)],
    ),
    "arc": (
        Arc,
        ".arc",
        True,
        lambda rows: [
            *arc_file(0, random.Random(0)),
            *(arc_record(*row) for row in rows),
            arc_record("http://x/img", OTHER, "image/png"),
        ],
    ),
    "trec": (Trec, "", False, trec),
}
KINDS = [
    *(("folder", ""), ("parquet", ""), ("arc", ""), ("arc", ".gz")),
    *((kind, pack) for kind in ("jsonl", "csv", "warc", "trec") for pack in PACK),
]


class CopyMachine(RuleBasedStateMachine):
    """A collection that grows, and of which copies are made in place of it; the model is a dict of its pages."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="copies-"))
        self.at = self.folder / "0"
        self.at.mkdir()
        self.model = {}  # (number of a file, of a page in it): id, content
        self.files = self.copies = 0

    def teardown(self):
        shutil.rmtree(self.folder)

    def collection(self, **more):
        reader = Folder if self.kind == "folder" else FORMATS[self.kind][0]
        return reader(path=str(self.at), **more)

    def read(self, **more):
        try:
            records = read(self.collection(**more))
        except InputError as error:  # a folder of which no page was kept is empty
            self.require(not self.model, error)
            return []
        pages = [(record.id, record.content) for record in records if isinstance(record, Document)]
        if self.kind == "csv":
            pages = [(name, content.decode()) for name, content in pages]
        if self.kind == "trec":
            pages = [(name, bytes.fromhex(content.split(b"<p>")[1].decode()).decode()) for name, content in pages]
        return pages

    def require(self, well, error):
        assert well, error

    def wanted(self):
        return [self.model[key] for key in sorted(self.model)]

    @initialize(kind=st.sampled_from(KINDS), pages=PAGES)
    def first(self, kind, pages):
        self.kind, self.pack = kind
        self.grown(pages)

    @rule(pages=PAGES)
    def grown(self, pages):
        """Add a file to the collection; ids may repeat."""
        file, self.files = self.files, self.files + 1
        if self.kind == "folder":
            folder = self.at / f"{file:03}"
            folder.mkdir(parents=True)
            rows = [(f"{file:03}/{k}{name}.html", body) for k, (name, _, body) in enumerate(pages)]
            for name, body in rows:
                (self.at / name).write_bytes(body)
            (folder / "style.css").write_bytes(OTHER)
        else:
            _, suffix, is_bytes, make = FORMATS[self.kind]
            rows = [(f"http://x/{name}", body if is_bytes else text) for name, text, body in pages]
            made, pack = make(rows), PACK[self.pack]
            content = pack(made) if isinstance(made, bytes) else b"".join(map(pack, made))
            (self.at / f"{file:03}{suffix}{self.pack}").write_bytes(content)
        self.model |= {(file, k): row for k, row in enumerate(rows)}

    def ids(self):
        return [name for name, _ in self.read()]

    def copy(self, kept, target):
        write_copy(self.collection(), self.ids(), np.array(kept, bool), target)

    @precondition(lambda self: self.model)
    @rule(seed=st.integers(0, 2**32), share=st.sampled_from([0.0, 0.3, 0.9, 1.0]))
    def copied(self, seed, share):
        """The copy contains the kept pages, and becomes the collection."""
        rng = random.Random(seed)
        kept = {key: rng.random() < share for key in sorted(self.model)}
        before = contents(self.at)
        self.copies += 1
        target = self.folder / str(self.copies)
        self.copy(list(kept.values()), target)
        if all(kept.values()) and self.kind != "parquet":
            assert contents(target) == before
        assert contents(self.at) == before
        shutil.rmtree(self.at)
        self.at = target
        self.model = {key: page for key, page in self.model.items() if kept[key]}

    @precondition(lambda self: self.model)
    @rule(at=st.integers(1, 40), number=st.sampled_from([errno.ENOSPC, errno.EIO]))
    def stopped(self, at, number):
        """A call fails: no copy at all, and a sentence; or all of it, where the call was not needed."""
        before, target = contents(self.at), self.folder / "stopped"
        denied = Denied(self.folder, at, number)
        try:
            with denying(denied):
                self.copy([True] * len(self.model), target)
        except InputError as error:
            self.require(os.strerror(number) in str(error) and ".writing-" not in str(error), error)
            assert not target.exists()
        else:
            if self.kind != "parquet":
                assert contents(target) == before
            shutil.rmtree(target)
        assert contents(self.at) == before

    @precondition(lambda self: self.model)
    @rule()
    def refused(self):
        """Another collection than the one that was matched, and an existing folder."""
        ids = self.ids()
        with pytest.raises(InputError, match="is not empty; name another folder for the copy"):
            write_copy(self.collection(), ids, np.ones(len(ids), bool), self.at)
        with pytest.raises(InputError, match="'more' is not where it was"):
            write_copy(self.collection(), [*ids, "more"], np.ones(len(ids) + 1, bool), self.folder / "refused")
        assert not (self.folder / "refused").exists()

    @rule(shard_bytes=st.sampled_from([50, 300, 5000]))
    def read_in_shares(self, shard_bytes):
        # A page in a plain archive that begins like a record may be entered there, see the module.
        if (self.kind, self.pack) not in (("warc", ""), ("arc", "")):
            assert self.read(shard_bytes=shard_bytes) == self.wanted()

    @invariant()
    def holds_what_was_kept(self):
        if self.files:
            assert self.read() == self.wanted()

    @invariant()
    def keeps_what_is_no_page(self):
        if self.files and self.kind not in ("parquet", "trec", "csv"):
            left = b"".join(content for name, content in sorted(contents(self.at).items()) if "lock" not in name)
            assert left.count(OTHER) == self.files
        if self.files and self.kind == "csv":
            assert sum(isinstance(record, Skipped) for record in read(self.collection())) == self.files


TestCopies = CopyMachine.TestCase
TestCopies.settings = examples(40, long=2000, stateful_step_count=20 if is_long() else 8)
