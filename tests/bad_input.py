"""The bad inputs: what is given, and the sentence that answers it. The table of the docs is made of these."""

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
import zstandard
from archives import arc_record, warc_record

import spotsigs
from spotsigs.engines import Processes
from spotsigs.matching.prefix_join import join
from spotsigs.outofcore.pipeline import data_budget
from spotsigs.outofcore.segments import extract_segments
from spotsigs.outofcore.vectorize import parse_memory
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.store import load_signatures, open_vectors, save_vectors, sealed, writing
from spotsigs.text.visible import VisibleText

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
        The whole sentence; ``{here}`` stands for the folder of the test.
    make : callable
        Writes the input into a folder; returns arguments of the front door, or calls the library itself.
    """

    given: str
    says: str
    make: Callable[[Path], Any]


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


def taken_copy(folder: Path) -> list[str]:
    (folder / "copy").mkdir()
    (folder / "copy" / "mine.txt").touch()
    return ["data=tiny", f"copy={folder}/copy"]


def file_for_folder(folder: Path) -> list[str]:
    (folder / "file").write_text("mine")
    return ["data=tiny", f"copy={folder}/file/copy"]


UTF16 = json.dumps(GOOD[0]).encode("utf-16-le")
WARC = warc_record("http://x/good", f"<p>{PROSE}</p>".encode())
ARC = arc_record("http://x/good", f"<p>{PROSE}</p>".encode())

COLLECTIONS = [
    Case(
        given="a path that does not exist",
        says="{here}/none.jsonl does not exist; give a file, a folder or a pattern such as 'crawl/*.gz'",
        make=lambda here: ["data=jsonl", f"data.path={here}/none.jsonl"],
    ),
    Case(
        given="an empty folder", says="the folder {here}/pages contains no file; give another path", make=empty_folder
    ),
    Case(
        given="a folder without any page",
        says="none of the 1 files of {here}/pages is a page; pages begin as HTML does, or end in .html, .htm, .xhtml, no ending, .txt, .text",
        make=file("pages/style.css", "p {}", "folder", "data.path={here}/pages"),
    ),
    Case(
        given="a folder without any file for CSV",
        says="{here}/pages/x.html: the file is not CSV: it begins with b'<p>'",
        make=file("pages/x.html", "<p>", "csv", "data.path={here}/pages"),
    ),
    Case(
        given="JSON lines for WARC",
        says="{here}/x.jsonl: the file is not a WARC file: it begins with b'…'",
        make=file("x.jsonl", jsonl(), "warc"),
    ),
    Case(
        given="a pattern that matches nothing",
        says="no file matches {here}/*.warc.gz; give another path",
        make=lambda here: ["data=warc", f"data.path='{here}/*.warc.gz'"],
    ),
    Case(
        given="only white space for JSON lines",
        says="{here}/x.jsonl: the file is not JSON lines: it begins with b' \\n\\n'",
        make=file("x.jsonl", b" \n\n", "jsonl"),
    ),
    Case(
        given="NUL bytes for JSON lines",
        says="{here}/x.jsonl: the file is not JSON lines: it begins with b'…'",
        make=file("x.jsonl", bytes(1000), "jsonl"),
    ),
    Case(
        given="UTF-16 without a byte order mark for JSON lines",
        says='{here}/x.jsonl: the file is not JSON lines: it begins with b\'{\\x00"\\x00i\\x00d\\x00"\\x00:\\x00 \\x00"\\x00g\\x00o\\x00o\\x00d\\x00\'',
        make=file("x.jsonl", UTF16, "jsonl"),
    ),
    Case(
        given="a JSON array for JSON lines",
        says="the collection holds no readable document; the first of 1 that cannot be read is x.jsonl@0: the line holds a JSON list, not an object",
        make=file("x.jsonl", json.dumps(GOOD).encode(), "jsonl"),
    ),
    Case(
        given="JSON lines whose gzip stream ends in its header",
        says="the collection holds no readable document; the first of 1 that cannot be read is x.jsonl.gz: the compressed stream is truncated; what came before was read",
        make=file("x.jsonl.gz", gzip.compress(jsonl())[:12], "jsonl"),
    ),
    Case(
        given="a zstd frame that is cut short at once",
        says="the collection holds no readable document; the first of 1 that cannot be read is x.jsonl.zst: the compressed stream is truncated; what came before was read",
        make=file("x.jsonl.zst", zstandard.compress(jsonl())[:9], "jsonl"),
    ),
    Case(
        given="a file of 0 bytes for WARC",
        says="{here}/x.warc: the file is empty, not a WARC file",
        make=file("x.warc", b"", "warc"),
    ),
    Case(
        given="a WARC file that is none (wrong magic)",
        says="{here}/x.warc: the file is not a WARC file: it begins with b'PK\\x03\\x04…'",
        make=file("x.warc", b"PK\3\4" + bytes(60), "warc"),
    ),
    Case(
        given="a WARC file that is cut inside its first gzip member",
        says="{here}/x.warc.gz: its compressed stream is damaged or ends before a record begins",
        make=file("x.warc.gz", gzip.compress(WARC)[:30], "warc"),
    ),
    Case(
        given="an ARC file that is none",
        says="{here}/x.arc: the file is not an ARC file: it begins with b'GIF89a…'",
        make=file("x.arc", b"GIF89a" + bytes(60), "arc"),
    ),
    Case(
        given="a TREC file without <DOC>",
        says="{here}/x.trec: the file is not in TREC form: no <DOC> at its beginning",
        make=file("x.trec", b"<html>", "trec"),
    ),
    Case(
        given="a CSV file of white space",
        says="{here}/x.csv: its first row must name the columns",
        make=file("x.csv", b" \n", "csv"),
    ),
    Case(
        given="UTF-16 for CSV",
        says="{here}/x.csv: the file is UTF-16; save it as UTF-8",
        make=file("x.csv", "id,text\na,b\n".encode("utf-16"), "csv"),
    ),
    Case(
        given="a CSV file without a column of content",
        says="{here}/x.csv has neither a column 'html' nor 'text'; name one by html_column= or text_column=; its columns are id, body",
        make=file("x.csv", b"id,body\na,b\n", "csv"),
    ),
    Case(
        given="a CSV file without the column that is named",
        says="{here}/x.csv has no column 'label'; its columns are id, text",
        make=file("x.csv", b"id,text\na,b\n", "csv", "data.cluster_column=label"),
    ),
    Case(
        given="a Parquet file that is none",
        says="{here}/x.parquet: the file is not Parquet or is truncated: …",
        make=file("x.parquet", b"PAR1" + bytes(60), "parquet"),
    ),
    Case(
        given="a Parquet file that is cut short",
        says="{here}/x.parquet: the file is not Parquet or is truncated: …",
        make=parquet({"id": ["a"], "text": [PROSE]}, cut=-20),
    ),
    Case(
        given="a Parquet file without a column of content",
        says="{here}/x.parquet has neither a column 'html' nor 'text'; name one by html_column= or text_column=; its columns are id, body",
        make=parquet({"id": ["a"], "body": [PROSE]}),
    ),
    Case(
        given="content of numbers",
        says="the collection holds no readable document; the first of 1 that cannot be read is a (x.parquet#0): 'text' is of type float, not text",
        make=parquet({"id": ["a"], "text": [1.5]}),
    ),
    Case(
        given="no readable record at all",
        says="the collection holds no readable document; the first of 2 that cannot be read is x.jsonl@0: the line is not JSON: …",
        make=file("x.jsonl", b"{\n{\n", "jsonl"),
    ),
    Case(
        given="keep=newest for documents without dates",
        says="keep=newest needs dates, and no document has one that can be read (give ISO 8601)",
        make=file("x.jsonl", jsonl(), "jsonl", "keep=newest"),
    ),
    Case(
        given="a copy to a folder that is not empty",
        says="{here}/copy is not empty; name another folder for the copy",
        make=taken_copy,
    ),
    Case(
        given="a copy below a file",
        says="the copy {here}/file/copy cannot be written: File exists; name another folder",
        make=file_for_folder,
    ),
]


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

RECORDS = [
    Case(
        given="a line that is not JSON",
        says="x.jsonl@363: the line is not JSON: …",
        make=file("x.jsonl", jsonl(b'{"id": "bad", '), "jsonl"),
    ),
    Case(
        given="a line that holds a JSON array",
        says="x.jsonl@363: the line holds a JSON list, not an object",
        make=file("x.jsonl", jsonl([1]), "jsonl"),
    ),
    Case(
        given="a line that is not UTF-8",
        says="x.jsonl@363: the line is not UTF-8: … at byte 23",
        make=file("x.jsonl", jsonl(b'{"id": "bad", "text": "\xff"}'), "jsonl"),
    ),
    Case(
        given="a number of 5,000 digits",
        says="x.jsonl@363: the line is not JSON: …",
        make=file("x.jsonl", jsonl(b'{"id": "bad", "n": ' + b"9" * 5000 + b"}"), "jsonl"),
    ),
    Case(
        given="JSON nested 100,000 deep",
        says="x.jsonl@363: the line is not JSON: …",
        make=file("x.jsonl", jsonl(DEEP), "jsonl"),
    ),
    Case(
        given="a record without content",
        says="bad (x.jsonl@363): the row has neither 'html' nor 'text'; its columns are id",
        make=file("x.jsonl", jsonl({"id": "bad"}), "jsonl"),
    ),
    Case(
        given="content that is a number",
        says="bad (x.jsonl@363): 'text' is of type int, not text",
        make=file("x.jsonl", jsonl({"id": "bad", "text": 3}), "jsonl"),
    ),
    Case(
        given="content that is NaN",
        says="bad (x.jsonl@363): 'text' is of type float, not text",
        make=file("x.jsonl", jsonl(b'{"id": "bad", "text": NaN}'), "jsonl"),
    ),
    Case(
        given="a gzip stream that is cut short",
        says="x.jsonl.gz: the compressed stream is truncated; what came before was read",
        make=file("x.jsonl.gz", gzip.compress(jsonl(*GOOD * 200), mtime=0)[:-20], "jsonl"),
    ),
    Case(
        given="a gzip stream with a wrong byte",
        says="x.jsonl.gz: cannot be read: …",
        make=file("x.jsonl.gz", gzip.compress(jsonl(), mtime=0)[:-6] + b"\0\0\0\0\0\0", "jsonl"),
    ),
    Case(
        given="a zstd stream that is cut short",
        says="x.jsonl.zst: the compressed stream is truncated; what came before was read",
        make=file("x.jsonl.zst", zstandard.compress(jsonl()) + zstandard.compress(jsonl())[:-3], "jsonl"),
    ),
    Case(
        given="a CSV row of too few fields",
        says="x.csv@113: the row has 2 fields, the header 3",
        make=file("x.csv", f"id,text,cluster\na,{PROSE},\nb,{PROSE}\n", "csv"),
    ),
    Case(
        given="a Parquet text that is not UTF-8",
        says="x.parquet#1: the row cannot be read: …",
        make=parquet_of_bad_text,
    ),
    Case(
        given="a file of another kind in a folder of pages",
        says="x.css: a file ending in '.css' that does not begin as HTML does is no page",
        make=pages(lambda here: (here / "x.css").touch()),
    ),
    Case(
        given="a pipe in a folder of pages",
        says="pipe.html: it is no regular file",
        make=pages(lambda here: os.mkfifo(here / "pipe.html")),
    ),
    Case(
        given="a link to nothing in a folder of pages",
        says="x.html: the file is no longer there",
        make=pages(lambda here: (here / "x.html").symlink_to("none")),
    ),
    Case(
        given="a link to a folder in a folder of pages",
        says="x/: a link to a folder is not followed; give its target",
        make=pages(lambda here: (here / "x").symlink_to(here.parent)),
    ),
    Case(given="a page of 300 MiB", says="huge.html: the page has 300 MiB, more than 256 MiB", make=pages(sparse)),
    Case(
        given="a WARC record that is cut short",
        says="http://x/bad (x.warc@397): the record is truncated: 266 of 562 bytes are there",
        make=warc(WARC, CUT),
    ),
    Case(
        given="a WARC gzip member that is cut short",
        says="http://x/bad (x.warc.gz@299): the record is truncated: 49 of 562 bytes are there",
        make=warc(gzip.compress(WARC), gzip.compress(CUT)[:-20], name="x.warc.gz"),
    ),
    Case(
        given="garbage behind a WARC record",
        says="x.warc.gz@…: the record at this byte cannot be read: …",
        make=warc(gzip.compress(WARC), b"\x1f\x8b\x08\0garbage", name="x.warc.gz"),
    ),
    Case(
        given="a gzip bomb in an HTTP body",
        says="http://x/bad (x.warc@397): its body unpacks to more than 256 MiB",
        make=warc(WARC, response(gzip.decompress(BOMB), "Content-Encoding: gzip\r\n")),
    ),
    Case(
        given="an HTTP body in an unknown encoding",
        says="http://x/bad (x.warc@397): its encoding 'zip' is unknown; known are chunked, gzip, deflate, br and zstd",
        make=warc(WARC, response(b"x", "Content-Encoding: zip\r\n")),
    ),
    Case(
        given="an HTTP body encoded 1,000 times",
        says="http://x/bad (x.warc@397): its body is encoded 1000 times; 8 are undone at most",
        make=warc(WARC, response(b"x", f"Content-Encoding: {'gzip,' * 1000}\r\n")),
    ),
    Case(
        given="a chunked HTTP body without its last chunk",
        says="http://x/bad (x.warc@397): its chunked body is cut short: no last chunk",
        make=warc(WARC, response(b"3\r\n<p>\r\n", "Transfer-Encoding: chunked\r\n")),
    ),
    Case(
        given="an HTTP body of fewer bytes than its Content-Length",
        says="http://x/bad (x.warc@397): its body is cut short: 3 of 9 bytes are there",
        make=warc(WARC, response(b"<p>", "Content-Length: 9\r\n")),
    ),
    Case(
        given="an ARC record that is cut short",
        says="http://x/good (x.arc@212): the record is truncated: 120 of 159 bytes are there",
        make=file("x.arc", ARC + ARC[:-40], "arc"),
    ),
    Case(
        given="a TREC document without a number",
        says="x@124: the document has no <DOCNO>",
        make=file("x", f"<DOC>\n<DOCNO>1</DOCNO>\n{PROSE}\n</DOC>\n<DOC>\n<DOCNO> </DOCNO>\nx\n</DOC>\n", "trec"),
    ),
    Case(
        given="a TREC document without an end",
        says="2 (x@124): the document has no </DOC>: it is truncated",
        make=file("x", f"<DOC>\n<DOCNO>1</DOCNO>\n{PROSE}\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\nx\n", "trec"),
    ),
    Case(
        given="a TREC number of 4,000 blanks",
        says="x@124: the document has no <DOCNO>",
        make=file("x", f"<DOC>\n<DOCNO>1</DOCNO>\n{PROSE}\n</DOC>\n<DOC>\n<DOCNO>{' ' * 4000}\nx\n</DOC>\n", "trec"),
    ),
]


# what the configuration can be


def given(*words: str) -> Callable[[Path], list[str]]:
    return lambda here: ["data=tiny", *words]


NO_PAIR = "cannot be read as key=value: leave no blanks around =, and quote a value that contains signs such as , or =, as in \"data.path='a,b'\""
SEVERAL = "a comma lists several values; give one (decimals have a point), run each by -m, or quote a text that contains one, as in \"data.path='a,b'\""
A_CHOICE = "the name of one of its choices; `python run.py --help` lists them"

CONFIGURATION = [
    Case(given="tau=0", says="tau must lie in (0, 1], got 0", make=given("tau=0")),
    Case(given="tau=1.4", says="tau must lie in (0, 1], got 1.4", make=given("tau=1.4")),
    Case(given="tau=-0.1", says="tau must lie in (0, 1], got -0.1", make=given("tau=-0.1")),
    Case(given="tau=nan", says="tau must lie in (0, 1], got nan", make=given("tau=nan")),
    Case(
        given="tau=abc",
        says="tau must be a number in (0, 1], or auto, got 'abc'",
        make=given("tau=abc"),
    ),
    Case(given="tau=null", says="tau must be a number in (0, 1], or auto, got None", make=given("tau=null")),
    Case(
        given="idf_min=0.9 idf_max=0.5",
        says="idf_min=0.9 and idf_max=0.5: give 0 <= idf_min <= idf_max (idf lies in [0, 1])",
        make=given("idf_min=0.9", "idf_max=0.5"),
    ),
    Case(
        given="idf_min=nan",
        says="idf_min=nan and idf_max=1.0: give 0 <= idf_min <= idf_max (idf lies in [0, 1])",
        make=given("idf_min=nan"),
    ),
    Case(
        given="idf_min=-1",
        says="idf_min=-1.0 and idf_max=1.0: give 0 <= idf_min <= idf_max (idf lies in [0, 1])",
        make=given("idf_min=-1"),
    ),
    Case(
        given="idf=mine",
        says="idf=mine: Invalid value 'mine', expected one of [paper, prototype]",
        make=given("idf=mine"),
    ),
    Case(given="min_spots=0", says="min_spots must be at least 1, got 0", make=given("min_spots=0")),
    Case(given="workers=0", says="workers must be at least 1, got 0", make=given("workers=0")),
    Case(
        given="workers=1.5",
        says="workers=1.5: Value '1.5' of type 'float' could not be converted to Integer",
        make=given("workers=1.5"),
    ),
    Case(given="threads=0", says="threads must be at least 1, got 0", make=given("threads=0")),
    Case(
        given="seed=-1 matcher=lsh_native",
        says="matcher: seed must not be negative, got -1",
        make=given("seed=-1", "matcher=lsh_native"),
    ),
    Case(
        given="seed=abc",
        says="seed=abc: Value 'abc' of type 'str' could not be converted to Integer",
        make=given("seed=abc"),
    ),
    Case(
        given="clusters=chains",
        says="clusters=chains: Invalid value 'chains', expected one of [leaders, components]",
        make=given("clusters=chains"),
    ),
    Case(
        given="keep=best",
        says="keep=best: Invalid value 'best', expected one of [first, longest, newest, none]",
        make=given("keep=best"),
    ),
    Case(
        given="matcher=spotsig",
        says="matcher=spotsig is not known (did you mean spotsigs?); choose one of: …",
        make=given("matcher=spotsig"),
    ),
    Case(
        given="data=tinny",
        says="data=tinny is not known (did you mean tiny?); choose one of: …",
        make=given("data=tinny"),
    ),
    Case(
        given="tua=0.5",
        says="tua: the configuration has no parameter 'tua' here (did you mean tau?); `python run.py --help` lists the groups and keys",
        make=given("tua=0.5"),
    ),
    Case(
        given="matcher.k=3",
        says="matcher.k: matcher has no parameter 'k' here, but tau, threads, rho, convention; `python run.py --help` lists the groups and keys",
        make=given("matcher.k=3"),
    ),
    Case(
        given="+matcher.k=3",
        says="matcher.k: SpotSigs has no such parameter; it has tau, threads, partitioning, pruning, local_order, rho, convention",
        make=given("+matcher.k=3"),
    ),
    Case(
        given="matcher.rho=x",
        says="matcher.rho: Value 'x' of type 'str' could not be converted to Integer",
        make=given("matcher.rho=x"),
    ),
    Case(given="matcher.rho=0", says="matcher: rho must lie in [1, 10000000], got 0", make=given("matcher.rho=0")),
    Case(
        given="matcher=lsh matcher.k=0",
        says="matcher: k must be at least 1, got 0",
        make=given("matcher=lsh", "matcher.k=0"),
    ),
    Case(
        given="matcher=lsh_native matcher.l=0",
        says="matcher: l must be at least 1, got 0",
        make=given("matcher=lsh_native", "matcher.l=0"),
    ),
    Case(
        given="matcher=simhash matcher.bits=65",
        says="matcher: bits must lie in [8, 64], got 65",
        make=given("matcher=simhash", "matcher.bits=65"),
    ),
    Case(
        given="matcher=simhash matcher.radius=-1",
        says="matcher: radius must lie in [0, 63], got -1",
        make=given("matcher=simhash", "matcher.radius=-1"),
    ),
    Case(
        given="matcher=sketch matcher.size=0",
        says="matcher: size must be at least 1, got 0",
        make=given("matcher=sketch", "matcher.size=0"),
    ),
    Case(
        given="signature=shingles signature.k=0",
        says="signature: k, the tokens of a shingle, must be at least 1, got 0",
        make=given("signature=shingles", "signature.k=0"),
    ),
    Case(
        given="signature.c=0",
        says="signature: c, the chain length, must lie in [1, 1000], got 0",
        make=given("signature.c=0"),
    ),
    Case(
        given="signature.d=0",
        says="signature: d, the spot distance, must lie in [1, 1000], got 0",
        make=given("signature.d=0"),
    ),
    Case(
        given="signature.antecedents=[]",
        says="signature: antecedents is empty; give at least one word",
        make=given("signature.antecedents=[]"),
    ),
    Case(
        given="signature.antecedents=[the cat]",
        says="signature: antecedent 'the cat' is neither a word nor of the form word(distance,length)",
        make=given("signature.antecedents=[the cat]"),
    ),
    Case(
        given="data.shard_bytes=0",
        says="data.shard_bytes: data has no parameter 'shard_bytes' here; `python run.py --help` lists the groups and keys",
        make=given("data.shard_bytes=0"),
    ),
    Case(
        given="data.path=null",
        says="data.path: Incompatible value 'None' for field of type 'str'",
        make=lambda here: ["data=folder", "data.path=null"],
    ),
    Case(
        given="matcher._target_=os.system",
        says="matcher: os.system cannot be imported: ValueError: Located non-class of type 'builtin_function_or_method' while loading 'os.system'",
        make=given("matcher._target_=os.system"),
    ),
    Case(
        given="strict=perhaps",
        says="strict=perhaps: Value 'perhaps' is not a valid bool (type str)",
        make=given("strict=perhaps"),
    ),
    Case(given="tau", says=f"'tau' {NO_PAIR}", make=given("tau")),
    Case(given="matcher = lsh", says=f"'matcher' {NO_PAIR}", make=given("matcher", "=", "lsh")),
    Case(given="tau=0.5tau=0.6", says=f"'tau=0.5tau=0.6' {NO_PAIR}", make=given("tau=0.5tau=0.6")),
    Case(
        given="data=jsonl data.path=~/x.jsonl, which is not at home",
        says="…/x.jsonl does not exist; give a file, a folder or a pattern such as 'crawl/*.gz'",
        make=lambda here: ["data=jsonl", "data.path=~/x.jsonl"],
    ),
    Case(given="tau=0,44", says=f"tau=0,44: {SEVERAL}", make=given("tau=0,44")),
    Case(given="matcher=lsh,cosine", says=f"matcher=lsh,cosine: {SEVERAL}", make=given("matcher=lsh,cosine")),
    Case(given="tau=1/2", says="tau must be a number in (0, 1], or auto, got '1/2'", make=given("tau=1/2")),
    Case(given="matcher=null", says=f"a group takes {A_CHOICE}", make=given("matcher=null")),
    Case(
        given="~matcher",
        says="matcher is missing; `python run.py --help` lists its choices",
        make=given("~matcher"),
    ),
    Case(
        given="+tua=0.5",
        says="tua: the configuration has no parameter 'tua'; `python run.py --help` lists the groups and keys",
        make=given("+tua=0.5"),
    ),
    Case(
        given="data=jsonl without a path",
        says="data.path is missing; give it, as in `python run.py data=... data.path=...`",
        make=lambda here: ["data=jsonl"],
    ),
    Case(
        given="data=jsonl data.path=",
        says="path is empty; give a file, a folder or a pattern such as 'crawl/*.gz'",
        make=lambda here: ["data=jsonl", "data.path="],
    ),
    Case(
        given="idf_min=1.5 idf_max=2",
        says="idf_min=1.5 and idf_max=2.0: give 0 <= idf_min <= idf_max (idf lies in [0, 1])",
        make=given("idf_min=1.5", "idf_max=2"),
    ),
    Case(
        given="workers=many",
        says="workers=many: Value 'many' of type 'str' could not be converted to Integer",
        make=given("workers=many"),
    ),
    Case(given="memory=1", says="memory must be at least 64MB, got '1'", make=given("memory=1")),
    Case(
        given="signature=spotsig",
        says="signature=spotsig is not known (did you mean spotsigs?); choose one of: …",
        make=given("signature=spotsig"),
    ),
    Case(given="copy=true", says="copy must name a folder, got 'True'", make=given("copy=true")),
    Case(
        given="add=true without a store",
        says="add=true needs a store: name it with store=folder",
        make=given("add=true"),
    ),
    Case(
        given="memory=2GB matcher=lsh",
        says="matcher=lsh has no form for vectors on disk, which memory= and store= need; take matcher=spotsigs_tight or spotsigs, or leave them out",
        make=given("memory=2GB", "matcher=lsh"),
    ),
    Case(
        given="strict=true experiment=table1",
        says="strict=true belongs to a single run; leave out experiment=",
        make=given("strict=true", "experiment=table1"),
    ),
    Case(
        given="experiment=table1 experiment.rseults=x",
        says="experiment.rseults: experiment has no parameter 'rseults' here (did you mean results?); `python run.py --help` lists the groups and keys",
        make=given("experiment=table1", "experiment.rseults=x"),
    ),
    Case(
        given="-m experiment=table1",
        says="an experiment sweeps by itself: run each alone, as in `python run.py experiment=table1`, without -m",
        make=lambda here: ["-m", "data=tiny", "experiment=table1"],
    ),
    Case(
        given="experiment=table9",
        says="experiment=table9 is not known (did you mean table2?); choose one of: …",
        make=given("experiment=table9"),
    ),
]


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


def forged(name: str, values: Any) -> Callable[[Path], Any]:
    """Return what makes a store with one array of another content, its checksum right."""

    def make(folder: Path) -> Any:
        save_vectors(folder / "store", vectors())
        known = json.loads((folder / "store" / "store.json").read_text())
        with writing(folder / "forged", "vectors") as store:
            for path in (folder / "store").glob("*.npy"):
                (store.folder / path.name).write_bytes(path.read_bytes())
            store.put(name, values)
            store.facts = {"rows": known["rows"], "n_signatures": known["n_signatures"]}
        return open_vectors(folder / "forged")

    return make


class Pickled:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("/tmp/unpickled"),))


def two_extractions(folder: Path) -> Any:
    from spotsigs.engines import Serial
    from spotsigs.formats.folder import Folder

    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "x.html").write_text(PROSE)
        given = Folder(path=str(folder / name))
        extract_segments(folder / "segments", given, VisibleText(), SpotSignatures(), Serial())


def damaged_claim(folder: Path) -> Any:
    from spotsigs.engines import Serial
    from spotsigs.formats.folder import Folder

    (folder / "segments").mkdir()
    (folder / "segments" / "source.json").write_text("{")
    (folder / "x.html").write_text(PROSE)
    given = Folder(path=str(folder / "x.html"))
    return extract_segments(folder / "segments", given, VisibleText(), SpotSignatures(), Serial())


def over_mine(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").touch()
    save_vectors(folder / "mine", vectors())


STORES = [
    Case(
        given="a folder that is no store",
        says="{here} is no store: it has no store.json",
        make=lambda here: open_vectors(here),
    ),
    Case(
        given="a place that is taken by a user's files",
        says="{here}/mine is no store and will not be overwritten; give another path",
        make=over_mine,
    ),
    Case(
        given="a store below a file",
        says="the store {here}/file/store cannot be written: File exists; give another path",
        make=lambda here: ((here / "file").touch(), save_vectors(here / "file" / "store", vectors())),
    ),
    Case(
        given="a manifest that is not JSON",
        says="{here}/store/store.json cannot be read (…); build the store again",
        make=stored(lambda store: (store / "store.json").write_text("{")),
    ),
    Case(
        given="a manifest that is a JSON array",
        says="{here}/store is no store: its store.json does not name the format 'spotsigs store'",
        make=stored(lambda store: (store / "store.json").write_text("[]")),
    ),
    Case(
        given="a manifest nested 100,000 deep",
        says="{here}/store/store.json cannot be read (…); build the store again",
        make=stored(lambda store: (store / "store.json").write_bytes(DEEP)),
    ),
    Case(
        given="another schema version",
        says="the store {here}/store has schema version 99, this program reads version 3; build the store again",
        make=stored(manifest(version=99)),
    ),
    Case(
        given="another kind of store",
        says="the store {here}/store holds vectors, not signatures",
        make=lambda here: (save_vectors(here / "store", vectors()), load_signatures(here / "store")),
    ),
    Case(
        given="a manifest without its list of files",
        says="{here}/store/store.json does not list what the store holds; build the store again",
        make=stored(manifest(files=None)),
    ),
    Case(
        given="a manifest that names a file outside of the store",
        says="{here}/store/store.json does not list what the store holds; build the store again",
        make=stored(manifest(files={"../../x": {"bytes": 0, "xxh3_128": ""}})),
    ),
    Case(
        given="a manifest without the number of rows",
        says="{here}/store/store.json does not list what the store holds; build the store again",
        make=stored(manifest(rows="many")),
    ),
    Case(
        given="a damaged list of what a folder of segments is for",
        says="{here}/segments/source.json is damaged: …; delete {here}/segments and give the same again",
        make=damaged_claim,
    ),
    Case(
        given="an array that is missing",
        says="{here}/store/ids.npy is missing; build the store again",
        make=stored(lambda store: (store / "ids.npy").unlink()),
    ),
    Case(
        given="an array that is truncated",
        says="{here}/store/ids.npy is truncated: 100 of 144 bytes; build the store again",
        make=stored(lambda store: os.truncate(store / "ids.npy", 100)),
    ),
    Case(
        given="an array that is too long",
        says="{here}/store/ids.npy is too long: 1000 of 144 bytes; build the store again",
        make=stored(lambda store: os.truncate(store / "ids.npy", 1000)),
    ),
    Case(
        given="a wrong byte in an array",
        says="{here}/store/ids.npy does not match its checksum, it is damaged; build the store again",
        make=stored(lambda store: (store / "ids.npy").write_bytes((store / "ids.npy").read_bytes()[:-1] + b"\7")),
    ),
    Case(
        given="a pickle in place of an array",
        says="{here}/forged/ids.npy is no array of a store: …; build the store again",
        make=lambda here: pickled(here),
    ),
    Case(
        given="an array of another type",
        says="{here}/forged/ids.npy holds float64, not int32; build the store again",
        make=forged("ids", np.zeros(4)),
    ),
    Case(
        given="signature ids out of range",
        says="the arrays of the store {here}/forged do not fit together; build the store again",
        make=forged("ids", np.array([0, 2**31 - 1, 0, 1], np.int32)),
    ),
    Case(
        given="negative signature ids",
        says="the arrays of the store {here}/forged do not fit together; build the store again",
        make=forged("ids", np.array([-5, 1, 0, 1], np.int32)),
    ),
    Case(
        given="row offsets beyond the entries",
        says="the arrays of the store {here}/forged do not fit together; build the store again",
        make=forged("indptr", np.array([0, 2, 4000])),
    ),
    Case(
        given="row offsets that decrease",
        says="the arrays of the store {here}/forged do not fit together; build the store again",
        make=forged("indptr", np.array([0, 9, 4])),
    ),
    Case(
        given="lengths that are not the sums of the counts",
        says="the arrays of the store {here}/forged do not fit together; build the store again",
        make=forged("lengths", np.array([2, 99])),
    ),
    Case(
        given="row numbers that are no permutation",
        says="the arrays of the store {here}/forged do not fit together; build the store again",
        make=forged("rows", np.array([1, 1])),
    ),
    Case(
        given="ends of strings behind their text",
        says="{here}/forged/doc_ids does not end where its text does; build the store again",
        make=forged("doc_ids.ends", np.array([1, 900])),
    ),
    Case(
        given="segments of another collection in the folder",
        says="{here}/segments contains the signatures of another extraction (its collection differ); give another path or delete it",
        make=two_extractions,
    ),
]


def pickled(folder: Path) -> Any:
    save_vectors(folder / "store", vectors())
    with writing(folder / "forged", "vectors") as store:
        for path in (folder / "store").glob("*.npy"):
            (store.folder / path.name).write_bytes(path.read_bytes())
        np.save(store.folder / "ids.npy", np.array([Pickled()], dtype=object), allow_pickle=True)
        store.facts = {"rows": 2, "n_signatures": 2}
    return open_vectors(folder / "forged")


# what the library can be given

TWO = ([0, 1, 2], [0, 0])

LIBRARY = [
    Case(
        given="near_duplicates of a single page",
        says="pages must be an iterable of pages, got a single one; put it into a list",
        make=lambda here: spotsigs.near_duplicates(PROSE),
    ),
    Case(
        given="near_duplicates of a number",
        says="page 1 is a int; give str or bytes",
        make=lambda here: spotsigs.near_duplicates([PROSE, 7]),
    ),
    Case(
        given="near_duplicates with tau 0",
        says="tau must lie in (0, 1], got 0",
        make=lambda here: spotsigs.near_duplicates([PROSE], tau=0),
    ),
    Case(
        given="near_duplicates with tau NaN",
        says="tau must lie in (0, 1], got nan",
        make=lambda here: spotsigs.near_duplicates([PROSE], tau=float("nan")),
    ),
    Case(
        given="self_join with 0 threads",
        says="threads must be at least 1, got 0",
        make=lambda here: spotsigs.self_join(vectors(), 0.5, threads=0),
    ),
    Case(
        given="self_join of 10⁶ copies of one document",
        says="499,999,500,000 pairs are similar, more than the 2,147,483,648 that can be listed; keep one of each set of identical documents, or raise tau",
        make=lambda here: spotsigs.self_join(copies(10**6), 0.5, threads=2),
    ),
    Case(
        given="join with tau 2",
        says="tau must lie in (0, 1], got 2.0",
        make=lambda here: join(vectors(), vectors(), 2.0),
    ),
    Case(
        given="indptr that does not start with 0",
        says="indptr must start with 0 (one more entry than there are rows)",
        make=lambda here: spotsigs.Vectors.from_csr([1, 2], [0, 1]),
    ),
    Case(
        given="indptr that decreases",
        says="indptr must not decrease",
        make=lambda here: spotsigs.Vectors.from_csr([0, 2, 1], [0]),
    ),
    Case(
        given="indptr that does not end with the ids",
        says="indptr ends at 3, but there are 1 ids",
        make=lambda here: spotsigs.Vectors.from_csr([0, 3], [0]),
    ),
    Case(
        given="no indptr",
        says="indptr must start with 0 (one more entry than there are rows)",
        make=lambda here: spotsigs.Vectors.from_csr([], []),
    ),
    Case(
        given="ids below 0",
        says="ids must lie in [0, 2**31 - 1), got -1 to -1; number your features densely",
        make=lambda here: spotsigs.Vectors.from_csr([0, 1], [-1]),
    ),
    Case(
        given="ids of 2³¹",
        says="ids must lie in [0, 2**31 - 1), got 2147483648 to 2147483648; number your features densely",
        make=lambda here: spotsigs.Vectors.from_csr([0, 1], [2**31]),
    ),
    Case(
        given="ids that are no integers",
        says="ids must be a one-dimensional array of integers, got float64 of shape (1,)",
        make=lambda here: spotsigs.Vectors.from_csr([0, 1], [0.5]),
    ),
    Case(
        given="counts of 0",
        says="counts must be positive and below 2**31, got 0 to 0",
        make=lambda here: spotsigs.Vectors.from_csr([0, 1], [0], [0]),
    ),
    Case(
        given="counts of another number than ids",
        says="counts has 2 entries for 1 ids; give one per id",
        make=lambda here: spotsigs.Vectors.from_csr([0, 1], [0], [1, 1]),
    ),
    Case(
        given="counts that add up beyond 2³¹",
        says="the counts of one id in one row add up to more than 2**31 - 1",
        make=lambda here: spotsigs.Vectors.from_csr([0, 2], [0, 0], [2**31 - 1, 1]),
    ),
    Case(
        given="doc_ids of another number than rows",
        says="doc_ids has 1 entries for 2 rows; give one per row",
        make=lambda here: spotsigs.Vectors.from_csr(*TWO, doc_ids=["a"]),
    ),
    Case(
        given="a filter with min_spots 0",
        says="min_spots must be at least 1, got 0",
        make=lambda here: IdfFilter(min_spots=0),
    ),
    Case(
        given="no antecedents",
        says="antecedents is empty; give at least one word",
        make=lambda here: SpotSignatures(antecedents=[]).readable(PROSE),
    ),
    Case(
        given="a chain length of 0",
        says="c, the chain length, must lie in [1, 1000], got 0",
        make=lambda here: SpotSignatures(c=0),
    ),
    Case(
        given="a memory budget that is no size",
        says="memory must be a size such as 2GB or 512MiB, got 'much'",
        make=lambda here: parse_memory("much"),
    ),
    Case(
        given="a memory budget of 1 MB",
        says="memory must be at least 64MB, got '1MB'",
        make=lambda here: parse_memory("1MB"),
    ),
    Case(
        given="a memory budget too small for its workers",
        says="memory=1,000MB is too little for 9 processes, whose code alone takes 375 MB each; give at least 5,522MB, or fewer workers",
        make=lambda here: data_budget(parse_memory("1GB"), 8),
    ),
    Case(
        given="an engine of 0 workers", says="workers must be at least 1, got 0", make=lambda here: Processes(workers=0)
    ),
    Case(
        given="partitions for tau 0",
        says="tau must lie in (0, 1], got 0",
        make=lambda here: spotsigs.partition_boundaries(tau=0, rho=1000),
    ),
    Case(
        given="clusters of fewer documents than were paired",
        says="n=1 is too small: the pairs name row 1",
        make=lambda here: spotsigs.cluster(spotsigs.self_join(vectors(), 0.1), n=1),
    ),
]


def copies(n: int) -> spotsigs.Vectors:
    return spotsigs.Vectors.from_csr(np.arange(0, 4 * n + 1, 4), np.tile(np.arange(4), n))


GROUPS = {
    "Collections": COLLECTIONS,
    "Records": RECORDS,
    "Configuration": CONFIGURATION,
    "Stores": STORES,
    "Library": LIBRARY,
}
