"""Files of every format for tests: WARC records by fastwarc's writer, ARC records by hand."""

import bz2
import csv
import gzip
import io
import json
import random
import tarfile
import uuid
from contextlib import ExitStack, contextmanager
from itertools import cycle

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from fastwarc import WarcRecord, WarcRecordType

from spotsigs.formats.writers import copy_errors, prepare_copy, publish_copy, require_free
from spotsigs.records import Document
from spotsigs.storage.atomic import staging_folder

PACK = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".zst": lambda content: zstandard.ZstdCompressor().compress(content),
    ".bz2": bz2.compress,
}


def packed(records, pack):
    """Return records compressed one by one."""
    return b"".join(map(PACK[pack], records))


def warc_record(uri, body, content_type="text/html; charset=utf-8", status="200 OK", headers="", kind="response"):
    """Return a WARC record."""
    record = WarcRecord()
    record.init_headers(getattr(WarcRecordType, kind))
    record.headers["WARC-Record-ID"] = f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, uri)}>"  # not another each time
    record.headers["WARC-Target-URI"] = uri
    record.headers["WARC-Date"] = "2024-01-02T03:04:05Z"
    if kind == "response":
        record.headers["Content-Type"] = "application/http; msgtype=response"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{headers}\r\n"
        body = head.encode() + body
    else:
        record.headers["Content-Type"] = content_type
    record.set_bytes_content(body)
    out = io.BytesIO()
    record.write(out)
    return out.getvalue()


def crawl(n, rng):
    """Return the records of n pages."""
    bodies = (f"<p>{k} {rng.randbytes(rng.randrange(900)).hex()}</p>".encode() for k in range(n))
    return [warc_record(f"http://x/{k}", body) for k, body in enumerate(bodies)]


def arc_record(url, body, media_type="text/html", status="200 OK", version=1, headers=""):
    """Return an ARC record."""
    block = f"HTTP/1.0 {status}\r\nContent-Type: {media_type}; charset=utf-8\r\n{headers}\r\n".encode() + body
    extra = "" if version == 1 else " 200 - - 0 x.arc"
    return f"{url} 10.0.0.1 20010203040506 {media_type}{extra} {len(block)}\n".encode() + block + b"\n"


def arc_file(n, rng):
    """Return the records of an ARC file of n pages."""
    info = b"1 0 Archive\nURL IP-address Archive-date Content-type Archive-length\n"
    first = f"filedesc://x.arc 0.0.0.0 20010203040506 text/plain {len(info)}\n".encode() + info + b"\n"
    pages = [arc_record(f"http://x/{k}", rng.randbytes(rng.randrange(900)).hex().encode()) for k in range(n)]
    return [first, *pages]


# Documents of any format are tuples: id, text, and whether the record is damaged.

BAD_LINES = (b'{"id": "cut", "te', b"[1, 2]", b'{"id": "a", "text": "\xff"}', b'{"id": "b", "text": 5}', b'{"id": "c"}')


def jsonl(docs):
    good = (json.dumps({"id": k, "text": text, "more": [k]}).encode() for k, text, _ in docs)
    bad = cycle(BAD_LINES)
    return b"\n".join(next(bad) if doc[2] else line for doc, line in zip(docs, good, strict=True)) + b"\n"


def table(docs):
    out = io.StringIO(newline="")
    write = csv.writer(out, quoting=csv.QUOTE_ALL).writerow
    write(("id", "text"))
    bad = cycle([("one field",), ("three", "fields", "of two")])
    for k, text, is_damaged in docs:
        write(next(bad) if is_damaged else (k, text))
    return out.getvalue().encode()


def parquet(docs):
    out, bad = io.BytesIO(), cycle([None, b"\xff\xfe"])
    texts = [next(bad) if is_damaged else text.encode() for _, text, is_damaged in docs]
    text = pa.array(texts, pa.binary()).view(pa.string())
    columns = {"id": [k for k, _, _ in docs], "text": text, "more": [[k] for k, _, _ in docs]}
    pq.write_table(pa.table(columns), out, row_group_size=7, compression="zstd")
    return out.getvalue()


def trec(docs):
    number = "<DOCNO>{}</DOCNO>\n".format
    return b"".join(f"<DOC>\n{'' if bad else number(k)}<p>{text}\n</DOC>\n".encode() for k, text, bad in docs)


def archive(docs, kind, pack):
    """Return an archive of pages, each with an image and, where compressed, some empty members between."""
    records = arc_file(0, random.Random(0)) if kind == "arc" else []
    make = arc_record if kind == "arc" else warc_record
    chunked = "Transfer-Encoding: chunked\r\n"
    for k, text, is_damaged in docs:
        body = f"<p>{text}".encode()
        body = b"%x\r\n%b" % (len(body), body) if is_damaged else body  # without the last chunk
        records.append(make(f"http://x/{k}", body, headers=chunked if is_damaged else ""))
        records.append(make(f"http://x/{k}.png", b"\x89PNG", "image/png"))
        records += [b""] if pack and k.endswith("3") else []
    return packed(records, pack)


MAKES = {"jsonl": jsonl, "csv": table, "trec": trec}


def file_of(kind, docs, pack=""):
    """Return the content of a file of any format but a folder's."""
    if kind in ("warc", "arc"):
        return archive(docs, kind, pack)
    return parquet(docs) if kind == "parquet" else PACK[pack](MAKES[kind](docs))


def texts(n, seed=0):
    """Return n documents of up to three hundred letters, with line breaks and quotes."""
    rng = random.Random(seed)
    return [(f"d{k}", f'{k} "q",\n' + rng.randbytes(rng.randrange(150)).hex(), False) for k in range(n)]


def tarred(files, top, form="gz"):
    """Return a compressed tar archive of texts by path, below a folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{form}") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def read(collection):
    """Return the documents and skipped records of a collection, in order."""
    return [record for shard in collection.shards() for record in shard()]


def ids(records):
    """Return the ids of those that are documents."""
    return [record.id for record in records if isinstance(record, Document)]


EVERY_FILE = [("parquet", ""), *((kind, pack) for kind in ("jsonl", "csv", "trec", "warc", "arc") for pack in PACK)]
"""Formats and compressions of files that contain several documents."""


def write_copy(collection, doc_ids, kept, folder, *, judged=lambda document: True):
    """Write a collection without its removed documents, as a run does; the copy appears when it is complete."""
    folder = require_free(folder)
    with copy_errors(folder), staging_folder(folder) as temporary:
        prepare_copy(collection, doc_ids, kept, temporary, judged=judged)
        publish_copy(temporary, folder, ExitStack())


class CountedFile(io.RawIOBase):
    """A file for reading that notes the number of bytes of each call."""

    def __init__(self, path, taken):
        self.file, self.taken = path.open("rb", 0), taken

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, *where):
        return self.file.seek(*where)

    def tell(self):
        return self.file.tell()

    def readinto(self, buffer):
        self.taken.append(size := self.file.readinto(buffer))
        return size

    def close(self):
        self.file.close()
        super().close()


@contextmanager
def bytes_read(monkeypatch):
    """Yield a list of the bytes that are read from archives inside the block, call by call."""
    taken = []
    with monkeypatch.context() as patch:
        opened = lambda path: io.BufferedReader(CountedFile(path, taken))  # noqa: E731
        patch.setattr("spotsigs.formats.archive_records.open_stored", opened)
        yield taken
