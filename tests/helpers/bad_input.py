"""Bad inputs and their messages, from which the table of the docs is made."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from archives import arc_record, warc_record
from runs import ran
from stores import save_vectors

import spotsigs
from spotsigs.formats.folder import Folder
from spotsigs.outofcore.pipeline import data_budget
from spotsigs.outofcore.segments import extract_segments
from spotsigs.outofcore.vectorize import parse_memory
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.store import load_signatures, open_vectors, sealed
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

PROSE = "The council has approved the plan for a new bridge that will be built by the end of the year."
GOOD = [{"id": f"good{k}", "text": PROSE} for k in range(3)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One bad input.

    Attributes
    ----------
    given : str
        What is wrong, for the table.
    says : str
        The whole sentence; ``{here}`` is the folder of the test.
    make : callable
        Writes the input into a folder; returns arguments of the front door, or calls the library itself.
    """

    given: str
    says: str
    make: Callable[[Path], Any]


def given(*words: str) -> Callable[[Path], list[str]]:
    return lambda here: ["data=tiny", *words]


def cases(listed: dict[str, str | tuple[str, Callable[[Path], Any]]]) -> list[Case]:
    """Return bad inputs from what is wrong, the sentence, and what makes the input unless it is the words themselves."""
    both = {name: (rest, given(*name.split())) if isinstance(rest, str) else rest for name, rest in listed.items()}
    return [Case(given=name, says=says, make=make) for name, (says, make) in both.items()]


# what a whole collection can be


def file(name: str, content: bytes | str, data: str, *more: str) -> Callable[[Path], list[str]]:
    """Return what writes one file and reads it as a collection."""

    def make(folder: Path) -> list[str]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return [f"data={data}", f"data.path={path}", *more]

    return make


def jsonl(*rows: Any, good: bool = True) -> bytes:
    """Return JSON lines; bytes as they are."""
    every = [*(GOOD if good else []), *rows]
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in every)


def empty_folder(folder: Path) -> list[str]:
    (folder / "pages").mkdir()
    return ["data=folder", f"data.path={folder}/pages"]


def parquet(columns: dict[str, Any], *more: str, cut: int | None = None) -> Callable[[Path], list[str]]:
    def make(folder: Path) -> list[str]:
        path = folder / "x.parquet"
        pq.write_table(pa.table(columns), path)
        path.write_bytes(path.read_bytes()[:cut])
        return ["data=parquet", f"data.path={path}", *more]

    return make


def taken_copy(folder: Path) -> str:
    (folder / "copy").mkdir()
    (folder / "copy" / "mine.txt").touch()
    return ran(folder / "run", "data=tiny", "engine=serial", f"copy={folder}/copy")


def file_for_folder(folder: Path) -> str:
    (folder / "file").write_text("mine")
    return ran(folder / "run", "data=tiny", "engine=serial", f"copy={folder}/file/copy")


WARC = warc_record("http://x/good", f"<p>{PROSE}</p>".encode())
ARC = arc_record("http://x/good", f"<p>{PROSE}</p>".encode())

COLLECTIONS = cases(
    {
        "a path that does not exist": (
            "{here}/none.jsonl does not exist; give a file, a folder or a pattern such as 'crawl/*.gz'",
            lambda here: ["data=jsonl", f"data.path={here}/none.jsonl"],
        ),
        "an empty folder": ("the folder {here}/pages contains no file; give another path", empty_folder),
        "a folder without any page": (
            "no file of {here}/pages is a page: pages begin as HTML does, or end in .html, .htm, .xhtml, no ending, .txt, .text; set data= of a table without a column html, text or content",
            file("pages/style.css", "p {}", "folder", "data.path={here}/pages"),
        ),
        "JSON lines for WARC": (
            "{here}/x.jsonl: the file is not a WARC file: it begins with b'…'",
            file("x.jsonl", jsonl(), "warc"),
        ),
        "a pattern that matches nothing": (
            "no file matches {here}/*.warc.gz; give another path",
            lambda here: ["data=warc", f"data.path='{here}/*.warc.gz'"],
        ),
        "NUL bytes for JSON lines": (
            "{here}/x.jsonl: the file is not JSON lines: it begins with b'…'",
            file("x.jsonl", bytes(1000), "jsonl"),
        ),
        "a JSON array for JSON lines": (
            "no page was read from {here}/x.jsonl: 1 record skipped, the first x.jsonl@0: the line contains a JSON list, not an object; give another input, or name its column of pages by html_column= or text_column=",
            file("x.jsonl", json.dumps(GOOD).encode(), "jsonl"),
        ),
        "JSON lines whose gzip stream ends in its header": (
            "no page was read from {here}/x.jsonl.gz: 1 record skipped, the first x.jsonl.gz: the compressed stream is truncated; what came before was read; give another input, or name its column of pages by html_column= or text_column=",
            file("x.jsonl.gz", gzip.compress(jsonl())[:12], "jsonl"),
        ),
        "a file of 0 bytes for WARC": (
            "{here}/x.warc: the file is empty, not a WARC file",
            file("x.warc", b"", "warc"),
        ),
        "a WARC file that is cut inside its first gzip member": (
            "{here}/x.warc.gz: its compressed stream is damaged or ends before a record begins",
            file("x.warc.gz", gzip.compress(WARC)[:30], "warc"),
        ),
        "a TREC file without <DOC>": (
            "{here}/x.trec: the file is not in TREC form: no <DOC> at its beginning",
            file("x.trec", b"<html>", "trec"),
        ),
        "a WARC file of requests": (
            "no page was read from {here}/x.warc: its first records are 2 request; pages are HTML that a server delivered, and conversions to text",
            file("x.warc", 2 * warc_record("http://x/", b"GET /\r\n\r\n", "application/http", kind="request"), "warc"),
        ),
        "a TREC file whose lines end in carriage returns alone": (
            "{here}/x.trec: its lines end in carriage returns alone; write line feeds: tr '\\r' '\\n'",
            file("x.trec", f"<DOC>\r<DOCNO>1</DOCNO>\r{PROSE}\r</DOC>\r" * 2, "trec"),
        ),
        "a TREC file that opens no document": (
            "no page was read from {here}/x.trec: each document has a line of <DOC>, then one of <DOCNO>, and ends in a line with </DOC>",
            file("x.trec", f"see <DOC>\n{PROSE}\n", "trec"),
        ),
        "a CSV file of white space": (
            "{here}/x.csv: its first row must name the columns",
            file("x.csv", b" \n", "csv"),
        ),
        "UTF-16 for CSV": (
            "{here}/x.csv: the file is UTF-16; convert it to UTF-8: iconv -f UTF-16LE -t UTF-8",
            file("x.csv", "id,text\na,b\n".encode("utf-16"), "csv"),
        ),
        "a CSV file without a column of content": (
            "{here}/x.csv has neither a column 'html' nor 'text'; name one by html_column= or text_column=; its columns are id, body",
            file("x.csv", b"id,body\na,b\n", "csv"),
        ),
        "a CSV file without the column that is named": (
            "{here}/x.csv has no column 'label'; its columns are id, text",
            file("x.csv", b"id,text\na,b\n", "csv", "data.cluster_column=label"),
        ),
        "a Parquet file that is none": (
            "{here}/x.parquet: the file is not Parquet or is truncated: …",
            file("x.parquet", b"PAR1" + bytes(60), "parquet"),
        ),
        "no readable record at all": (
            "no page was read from {here}/x.jsonl: 2 records skipped, the first x.jsonl@0: the line is not JSON: …; give another input, or name its column of pages by html_column= or text_column=",
            file("x.jsonl", b"{\n{\n", "jsonl"),
        ),
        "keep=newest for documents without dates": (
            "keep=newest needs dates, and no document has one that can be read (give ISO 8601)",
            file("x.jsonl", jsonl(), "jsonl", "keep=newest"),
        ),
    }
)


# what a record can be

DEEP = b"[" * 100_000
BOMB = gzip.compress(gzip.compress(bytes(300 << 20), 1), 1)


def parquet_of_bad_text(folder: Path) -> list[str]:
    text = pa.array([PROSE.encode(), b"\xff\xfe", PROSE.encode()]).cast(pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": ["a", "b", "c"], "text": text}), folder / "x.parquet")
    return ["data=parquet", f"data.path={folder}/x.parquet"]


def pages(make_one: Callable[[Path], Any]) -> Callable[[Path], list[str]]:
    """Return what writes a folder with a good page, and a bad one by the given function."""

    def make(folder: Path) -> list[str]:
        (folder / "pages").mkdir()
        (folder / "pages" / "good.html").write_text(PROSE)
        make_one(folder / "pages")
        return ["data=folder", f"data.path={folder}/pages"]

    return make


def sparse(folder: Path) -> None:
    with (folder / "huge.html").open("wb") as page:
        page.truncate(300 << 20)


def warc(*records: bytes, name: str = "x.warc") -> Callable[[Path], list[str]]:
    return file(name, b"".join(records), "warc")


def response(body: bytes, headers: str) -> bytes:
    return warc_record("http://x/bad", body, headers=headers)


CUT = warc_record("http://x/bad", b"<p>" + b"x" * 500)[:-300]

RECORDS = cases(
    {
        "a line that is not JSON": (
            "x.jsonl@363: the line is not JSON: …",
            file("x.jsonl", jsonl(b'{"id": "bad", '), "jsonl"),
        ),
        "a line that contains a JSON array": (
            "x.jsonl@363: the line contains a JSON list, not an object",
            file("x.jsonl", jsonl([1]), "jsonl"),
        ),
        "a line that is not UTF-8": (
            "x.jsonl@363: the line is not UTF-8: … at byte 23",
            file("x.jsonl", jsonl(b'{"id": "bad", "text": "\xff"}'), "jsonl"),
        ),
        "JSON nested 100,000 deep": ("x.jsonl@363: the line is not JSON: …", file("x.jsonl", jsonl(DEEP), "jsonl")),
        "a record without content": (
            "bad (x.jsonl@363): the row has neither 'html' nor 'text'; its columns are id",
            file("x.jsonl", jsonl({"id": "bad"}), "jsonl"),
        ),
        "content that is a number": (
            "bad (x.jsonl@363): 'text' is of type int, not text",
            file("x.jsonl", jsonl({"id": "bad", "text": 3}), "jsonl"),
        ),
        "a gzip stream that is cut short": (
            "x.jsonl.gz: the compressed stream is truncated; what came before was read",
            file("x.jsonl.gz", gzip.compress(jsonl(*GOOD * 200), mtime=0)[:-20], "jsonl"),
        ),
        "a gzip stream with a wrong byte": (
            "x.jsonl.gz: cannot be read: …",
            file("x.jsonl.gz", gzip.compress(jsonl(), mtime=0) + gzip.compress(b"x", mtime=0)[:-6] + bytes(6), "jsonl"),
        ),
        "a CSV row of too few fields": (
            "x.csv@113: the row has 2 fields, the header 3",
            file("x.csv", f"id,text,cluster\na,{PROSE},\nb,{PROSE}\n", "csv"),
        ),
        "a Parquet text that is not UTF-8": ("x.parquet#1: the row cannot be read: …", parquet_of_bad_text),
        "a file of another kind in a folder of pages": (
            "x.css: a file ending in '.css' that does not begin as HTML does is no page",
            pages(lambda here: (here / "x.css").touch()),
        ),
        "a pipe in a folder of pages": (
            "pipe.html: it is no regular file",
            pages(lambda here: os.mkfifo(here / "pipe.html")),
        ),
        "a link to nothing in a folder of pages": (
            "x.html: the file is no longer there",
            pages(lambda here: (here / "x.html").symlink_to("none")),
        ),
        "a link to a folder in a folder of pages": (
            "x/: a link to a folder is not followed; give its target",
            pages(lambda here: (here / "x").symlink_to(here.parent)),
        ),
        "a page of 300 MiB": ("huge.html: the page has 300 MiB, more than 256 MiB", pages(sparse)),
        "a WARC record that is cut short": (
            "http://x/bad (x.warc@397): the record is truncated: 266 of 562 bytes are there; 499 bytes are no record",
            warc(WARC, CUT),
        ),
        "a WARC gzip member that is cut short": (
            "http://x/bad (x.warc.gz@299): the record is truncated: 49 of 562 bytes are there; 222 compressed bytes are no record",
            warc(gzip.compress(WARC), gzip.compress(CUT)[:-20], name="x.warc.gz"),
        ),
        "garbage behind a WARC record": (
            "x.warc.gz@…: the record at this byte cannot be read: …",
            warc(gzip.compress(WARC), b"\x1f\x8b\x08\0garbage", name="x.warc.gz"),
        ),
        "a gzip bomb in an HTTP body": (
            "http://x/bad (x.warc@397): its body unpacks to more than 256 MiB",
            warc(WARC, response(gzip.decompress(BOMB), "Content-Encoding: gzip\r\n")),
        ),
        "an HTTP body in an unknown encoding": (
            "http://x/bad (x.warc@397): its encoding 'compress' is unknown; known are chunked, gzip, deflate, br and zstd",
            warc(WARC, response(b"x", "Content-Encoding: compress\r\n")),
        ),
        "an HTTP body encoded 1,000 times": (
            "http://x/bad (x.warc@397): its body is encoded 1000 times; 8 are undone at most",
            warc(WARC, response(b"x", f"Content-Encoding: {'gzip,' * 1000}\r\n")),
        ),
        "a chunked HTTP body without its last chunk": (
            "http://x/bad (x.warc@397): its chunked body is cut short: no last chunk",
            warc(WARC, response(b"3\r\n<p>\r\n", "Transfer-Encoding: chunked\r\n")),
        ),
        "an HTTP body of fewer bytes than its Content-Length": (
            "http://x/bad (x.warc@397): its body is cut short: 3 of 9 bytes are there",
            warc(WARC, response(b"<p>", "Content-Length: 9\r\n")),
        ),
        "an ARC record that is cut short": (
            "http://x/good (x.arc@212): the record is truncated: 120 of 159 bytes are there; 172 bytes are no record",
            file("x.arc", ARC + ARC[:-40], "arc"),
        ),
        "a TREC document without a number": (
            "x@124: the document has no <DOCNO>",
            file("x", f"<DOC>\n<DOCNO>1</DOCNO>\n{PROSE}\n</DOC>\n<DOC>\n<DOCNO> </DOCNO>\nx\n</DOC>\n", "trec"),
        ),
        "a TREC document without an end": (
            "2 (x@124): the document has no </DOC>: it is truncated",
            file("x", f"<DOC>\n<DOCNO>1</DOCNO>\n{PROSE}\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\nx\n", "trec"),
        ),
    }
)


# what the configuration can be


NO_PAIR = "cannot be read as key=value: leave no blanks around =, and quote a value that contains signs such as , or =, as in \"data.path='a,b'\""
SEVERAL = "a comma lists several values; give one (decimals have a point), run each by -m, or quote a text that contains one, as in \"data.path='a,b'\""
A_CHOICE = "the name of one of its choices; `python run.py --help` lists them"

CONFIGURATION = cases(
    {
        "tau=0": "tau must be in (0, 1], got 0",
        "tau=nan": "tau must be in (0, 1], got nan",
        "tau=abc": "tau must be a number in (0, 1], got 'abc'",
        "idf_min=0.9 idf_max=0.5": "idf_min=0.9 and idf_max=0.5: give 0 <= idf_min <= idf_max (idf is in [0, 1])",
        "idf_min=nan": "idf_min=nan and idf_max=1.0: give 0 <= idf_min <= idf_max (idf is in [0, 1])",
        "min_spots=0": "min_spots must be at least 1, got 0",
        "workers=0": "workers must be at least 1, got 0",
        "seed=-1 matcher=lsh_native": "matcher: seed must not be negative, got -1",
        "clusters=chains": "clusters=chains: Invalid value 'chains', expected one of [leaders, components]",
        "matcher=spotsig": "matcher=spotsig is not known (did you mean spotsigs?); choose one of: …",
        "tua=0.5": "tua: the configuration has no parameter 'tua' here (did you mean tau?); `python run.py --help` lists the groups and keys",
        "matcher.k=3": "matcher.k: matcher has no parameter 'k' here, but tau, threads, rho, convention, partitioning, pruning, local_order; `python run.py --help` lists the groups and keys",
        "+matcher.k=3": "matcher.k: SpotSigs has no such parameter; it has tau, threads, partitioning, pruning, local_order, rho, convention",
        "matcher.rho=x": "matcher.rho: Value 'x' of type 'str' could not be converted to Integer",
        "matcher.rho=0": "matcher: rho must be in [1, 10000000], got 0",
        "signature.c=0": "signature: c, the chain length, must be in [1, 1000], got 0",
        "signature.antecedents=[the cat]": (
            "signature: antecedent 'the cat' is neither a word nor of the form word(distance,length)",
            given("signature.antecedents=[the cat]"),
        ),
        "data.shard_bytes=0": "data.shard_bytes: data has no parameter 'shard_bytes' here; `python run.py --help` lists the groups and keys",
        "data.path=null": (
            "data.path: Incompatible value 'None' for field of type 'str'",
            lambda here: ["data=folder", "data.path=null"],
        ),
        "matcher._target_=os.system": "matcher: os.system cannot be imported: ValueError: Located non-class of type 'builtin_function_or_method' while loading 'os.system'",
        "tau": f"'tau' {NO_PAIR}",
        "matcher = lsh": f"'matcher' {NO_PAIR}",
        "data=jsonl data.path=~/x.jsonl, which is not at home": (
            "…/x.jsonl does not exist; give a file, a folder or a pattern such as 'crawl/*.gz'",
            lambda here: ["data=jsonl", "data.path=~/x.jsonl"],
        ),
        "tau=0,44": f"tau=0,44: {SEVERAL}",
        "matcher=null": f"a group takes {A_CHOICE}",
        "~matcher": "matcher is missing; `python run.py --help` lists its choices",
        "+tua=0.5": "tua: the configuration has no parameter 'tua'; `python run.py --help` lists the groups and keys",
        "matcher=minhash": "matcher=minhash is not known (did you mean lsh?); choose one of: …",
        "mathcer=lsh": "mathcer: the configuration has no parameter 'mathcer' here (did you mean matcher?); `python run.py --help` lists the groups and keys",
        "matcher.convention=ours": "matcher.convention: Invalid value 'ours', expected one of […]",
        "data=jsonl without a path": (
            "data.path is missing; give it, as in `python run.py data=... data.path=...`",
            lambda here: ["data=jsonl"],
        ),
        "data=jsonl data.path=": (
            "path is empty; give a file, a folder or a pattern such as 'crawl/*.gz'",
            lambda here: ["data=jsonl", "data.path="],
        ),
        "workers=many": "workers=many: Value 'many' of type 'str' could not be converted to Integer",
        "experiment=table1 experiment.rseults=x": "experiment.rseults: experiment has no parameter 'rseults' here (did you mean results?); `python run.py --help` lists the groups and keys",
        "-m experiment=table1": (
            "an experiment sweeps by itself: run each alone, as in `python run.py experiment=table1`, without -m",
            lambda here: ["-m", "data=tiny", "experiment=table1"],
        ),
    }
)


# what a store can be


def vectors() -> spotsigs.Vectors:
    return spotsigs.Vectors.from_csr([0, 2, 4], [0, 1, 0, 1], [1, 2, 1, 1], doc_ids=["a", "b"])


def stored(change: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Return what saves vectors, changes the folder and opens it again."""

    def make(folder: Path) -> Any:
        save_vectors(folder / "store", vectors())
        change(folder / "store")
        return open_vectors(folder / "store")

    return make


def manifest(**facts: Any) -> Callable[[Path], Any]:
    """Return what changes the manifest."""

    def change(store: Path) -> None:
        known = json.loads((store / "store.json").read_text()) | facts
        known.pop("seal")
        (store / "store.json").write_bytes(sealed(known))

    return change


def two_extractions(folder: Path) -> Any:
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "x.html").write_text(PROSE)
        given = Folder(path=str(folder / name))
        extract_segments(folder / "segments", given, VisibleText(), SpotSignatures(), Serial())


def damaged_claim(folder: Path) -> Any:
    (folder / "segments").mkdir()
    (folder / "segments" / "source.json").write_text("{")
    (folder / "x.html").write_text(PROSE)
    given = Folder(path=str(folder / "x.html"))
    return extract_segments(folder / "segments", given, VisibleText(), SpotSignatures(), Serial())


def over_mine(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").touch()
    save_vectors(folder / "mine", vectors())


STORES = cases(
    {
        "a folder that is no store": ("{here} is no store: it has no store.json", lambda here: open_vectors(here)),
        "a folder with a user's files": (
            "{here}/mine is no store and will not be overwritten; give another path",
            over_mine,
        ),
        "a store below a file": (
            "the store {here}/file/store cannot be written: File exists; give another path",
            lambda here: ((here / "file").touch(), save_vectors(here / "file" / "store", vectors())),
        ),
        "a manifest that is not JSON": (
            "{here}/store/store.json cannot be read (…); build the store again",
            stored(lambda store: (store / "store.json").write_text("{")),
        ),
        "a manifest nested 100,000 deep": (
            "{here}/store/store.json cannot be read (…); build the store again",
            stored(lambda store: (store / "store.json").write_bytes(DEEP)),
        ),
        "another schema version": (
            "the store {here}/store has schema version 99, this program reads version 7; build the store again",
            stored(manifest(version=99)),
        ),
        "another kind of store": (
            "the store {here}/store contains vectors, not signatures",
            lambda here: (save_vectors(here / "store", vectors()), load_signatures(here / "store")),
        ),
        "a manifest without its list of files": (
            "{here}/store/store.json does not list the content of the store; build the store again",
            stored(manifest(files=None)),
        ),
        "a manifest that names a file outside of the store": (
            "{here}/store/store.json does not list the content of the store; build the store again",
            stored(manifest(files={"../../x": {"bytes": 0, "xxh3_128": ""}})),
        ),
        "a damaged list of what a folder of segments is for": (
            "{here}/segments/source.json is damaged: …; delete {here}/segments and give the same again",
            damaged_claim,
        ),
        "an array that is missing": (
            "{here}/store/ids.npy is missing; build the store again",
            stored(lambda store: (store / "ids.npy").unlink()),
        ),
        "an array that is truncated": (
            "{here}/store/ids.npy is truncated: 100 of 144 bytes; build the store again",
            stored(lambda store: os.truncate(store / "ids.npy", 100)),
        ),
        "an array that is too long": (
            "{here}/store/ids.npy is too long: 1000 of 144 bytes; build the store again",
            stored(lambda store: os.truncate(store / "ids.npy", 1000)),
        ),
        "a wrong byte in an array": (
            "{here}/store/ids.npy does not match its checksum, it is damaged; build the store again",
            stored(lambda store: (store / "ids.npy").write_bytes((store / "ids.npy").read_bytes()[:-1] + b"\7")),
        ),
        "segments of another collection in the folder": (
            "{here}/segments contains the signatures of another extraction (its collection differ); give another path or delete it",
            two_extractions,
        ),
    }
)


# what the library can be given

CSR: dict[str, tuple[Any, ...]] = {
    "indptr must start with 0 (one more entry than there are rows)": ([1, 2], [0, 1]),
    "indptr must not decrease": ([0, 2, 1], [0]),
    "indptr ends at 3, but there are 1 ids": ([0, 3], [0]),
    "ids must be in [0, 2**31), got -1 to -1; number your features contiguously": ([0, 1], [-1]),
    "ids must be in [0, 2**31), got 2147483648 to 2147483648; number your features contiguously": ([0, 1], [2**31]),
    "ids must be a one-dimensional array of integers, got float64 of shape (1,)": ([0, 1], [0.5]),
    "counts must be positive and below 2**31, got 0 to 0": ([0, 1], [0], [0]),
    "counts has 2 entries for 1 ids; give one per id": ([0, 1], [0], [1, 1]),
    "the counts of one id in one row add up to more than 2**31 - 1": ([0, 2], [0, 0], [2**31 - 1, 1]),
    "doc_ids has 1 entries for 2 rows; give one per row": ([0, 1, 2], [0, 0], None, ["a"]),
}
"""Arguments of `Vectors.from_csr` that are refused, by the sentence."""

LIBRARY = cases(
    {
        "near_duplicates of a single page": (
            "pages must be an iterable of pages, got a single one; put it into a list",
            lambda here: spotsigs.near_duplicates(PROSE),
        ),
        "near_duplicates of a number": (
            "page 1 is a int; give str or bytes",
            lambda here: spotsigs.near_duplicates([PROSE, 7]),
        ),
        "self_join of 10⁶ copies of one document": (
            "499,999,500,000 pairs are similar, more than the 2,147,483,648 that can be listed; keep one of each set of identical documents, raise tau, or use dedup, which lists no pairs",
            lambda here: spotsigs.self_join(identical_rows(10**6), 0.5, threads=2),
        ),
        "no antecedents": (
            "antecedents is empty; give at least one word",
            lambda here: SpotSignatures(antecedents=[]).readable(PROSE),
        ),
        "a memory budget that is no size": (
            "memory must be a size such as 2GB or 512MiB, got 'much'",
            lambda here: parse_memory("much"),
        ),
        "a memory budget too small for its workers": (
            "memory=1000MB is too little for 9 processes, whose code alone takes 375 MB each; give at least 5523MB, or fewer workers",
            lambda here: data_budget(parse_memory("1GB"), 8),
        ),
        "clusters of fewer documents than were paired": (
            "n=1 is too small: the pairs name row 1",
            lambda here: spotsigs.cluster(spotsigs.self_join(vectors(), 0.1), n=1),
        ),
        "a copy to a folder that is not empty": (
            "{here}/copy is not empty; name another folder for the copy",
            taken_copy,
        ),
        "a copy below a file": (
            "the copy {here}/file/copy cannot be written: File exists; name another folder",
            file_for_folder,
        ),
    }
)


LIBRARY += [
    Case(given=f"from_csr{words}", says=says, make=lambda here, words=words: spotsigs.Vectors.from_csr(*words))
    for says, words in CSR.items()
]


def identical_rows(n: int) -> spotsigs.Vectors:
    return spotsigs.Vectors.from_csr(np.arange(0, 4 * n + 1, 4), np.tile(np.arange(4), n))


GROUPS = {"Collections": COLLECTIONS, "Records": RECORDS, "Configuration": CONFIGURATION}
GROUPS |= {"Stores": STORES, "Library": LIBRARY}
