"""Real archive files for tests: WARC records by fastwarc's writer, ARC records by hand."""

import gzip
import io
import uuid

import zstandard
from fastwarc import WarcRecord, WarcRecordType

from spotsigs.formats.writers import copy_errors, prepare_copy, publish_copy, require_free
from spotsigs.storage.atomic import staging_folder

PACK = {
    "": bytes,
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".zst": lambda content: zstandard.ZstdCompressor().compress(content),
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
    return [
        warc_record(f"http://x/{k}", f"<p>{k} {rng.randbytes(rng.randrange(900)).hex()}</p>".encode()) for k in range(n)
    ]


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


def write_copy(collection, doc_ids, kept, folder, *, judged=lambda document: True):
    """Write a collection without its removed documents, as a run does; the copy appears when it is complete."""
    folder = require_free(folder)
    with copy_errors(folder), staging_folder(folder) as temporary:
        prepare_copy(collection, doc_ids, kept, temporary, judged=judged)
        publish_copy(temporary, folder)
