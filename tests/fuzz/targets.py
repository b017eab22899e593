"""Fuzz targets: functions of bytes that fail by an exception other than `InputError`."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stores import save_vectors

from spotsigs.errors import InputError
from spotsigs.formats.detect_format import FORMATS
from spotsigs.records import Document, Skipped, Vectors
from spotsigs.signatures.extract import count_signatures
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.store import open_vectors, sealed
from spotsigs.text.tokens import tokenize
from spotsigs.text.visible import MainText, VisibleText

SCHEME = SpotSignatures()


def html(content: bytes) -> None:
    """Compute the signatures of a page from its visible text and from its main content."""
    for text in (VisibleText(), MainText()):
        for charset in (None, "utf-16", "shift_jis"):
            document = Document(id="x", content=content, charset=charset)
            try:
                visible = text(document)
            except InputError:
                continue
            tokens = tokenize(visible)
            assert all(tokens.words)
            distinct, counts = count_signatures(SCHEME(tokens))
            assert counts.sum() == len(SCHEME.readable(visible)) >= len(distinct)


def _records(collection: object) -> list[Document | Skipped]:
    try:
        return [record for shard in collection.shards() for record in shard()]  # type: ignore[attr-defined]
    except InputError:
        return []


def _reader(suffix: str, make: Callable[..., object], *, same: bool) -> Callable[[bytes], None]:
    """Return a target that reads a file at once and in small shards; with `same`, both must agree."""

    def target(content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"x{suffix}")
            path.write_bytes(content)
            whole = _records(make(path=str(path)))
            parts = _records(make(path=str(path), shard_bytes=100))
            assert all(isinstance(record, Document | Skipped) for record in whole + parts)
            for record in whole:
                assert isinstance(record.id, str)
            assert not same or whole == parts
            assert [entry.name for entry in Path(folder).iterdir()] == [path.name]

    return target


def manifest(content: bytes) -> None:
    """Open a store whose manifest has other content and the right checksum."""
    with suppress(ValueError, RecursionError):
        facts = json.loads(content)
        if isinstance(facts, dict):
            facts.pop("seal", None)
            content = sealed(facts)
    with tempfile.TemporaryDirectory() as folder:
        save_vectors(Path(folder, "s"), Vectors.from_csr([0, 2, 4, 5], [0, 1, 0, 1, 2]))
        (Path(folder, "s") / "store.json").write_bytes(content)
        with suppress(InputError):
            open_vectors(Path(folder, "s"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "html": html,
    "warc": _reader(".warc", FORMATS["warc"], same=False),
    "arc": _reader(".arc", FORMATS["arc"], same=False),
    "trec": _reader("", FORMATS["trec"], same=True),
    "jsonl": _reader(".jsonl", FORMATS["jsonl"], same=True),
    "csv": _reader(".csv", FORMATS["csv"], same=True),
    "parquet": _reader(".parquet", FORMATS["parquet"], same=False),
    "manifest": manifest,
}


MARKUP = (
    *"< > / & ; ! - = ' \" : # x".split(),
    *"<p> </p> <b> </b> <!-- --> <!--> <script> </script> <style> </style> <svg> </svg> <math>".split(),
    *"<![CDATA[ ]]> <?xml <textarea> </textarea> <title> </title> <template> <table> <td> </table>".split(),
    *"<br/> <p/ <a\tb='> &amp &#x41; &#0; &lt".split(),
    *("\0", "\xad", "\u0301", "\u200d", "İ", "ß", "ﬁ", "漢字", "ก็", "😀", "\ud800", "\ufeff", "\x0c", " the plan is "),
)


def changed_page(rng: random.Random, pages: list[bytes]) -> bytes:
    """Return a page with blocks cut out, doubled, moved, damaged or replaced by markup."""
    page = rng.choice(pages)
    for _ in range(rng.randint(1, 12)):
        a, b = sorted(rng.randrange(len(page) + 1) for _ in range(2))
        codec = rng.choice(("utf-8", "utf-8", "utf-16-le", "shift_jis", "latin-1"))
        piece = rng.choice(MARKUP).encode(codec, "replace")
        middle = rng.choice((b"", page[a:b] * 2, piece, piece * rng.randint(1, 40), rng.randbytes(rng.randint(1, 4))))
        page = page[:a] + middle + page[rng.choice((a, b)) :]
    return page[:20_000]


def seeds() -> dict[str, list[bytes]]:
    """Return small valid inputs of each target."""
    import gzip
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
    import pyarrow as pa
    import pyarrow.parquet as pq
    from archives import arc_record, warc_record

    page = b"<!DOCTYPE html><html><head><meta charset=utf-8><title>T</title><style>p{}</style></head><body><p>The plan "
    page += b"is a new bridge &amp; the <b>r</b>oad will<br>have been<!-- x --><script>if (a<b) {}</script></p></body>"
    record = warc_record("http://x/1", page)
    rows = [{"id": "a", "html": page.decode(), "cluster": "c", "date": "2024-01-01"}, {"id": 7, "text": "the cat is"}]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(pa.table({"id": ["a", "b"], "text": ["the cat", None]}), Path(folder, "x"), compression="none")
        table = Path(folder, "x").read_bytes()
        save_vectors(Path(folder, "s"), Vectors.from_csr([0, 1], [0]))
        listed = Path(folder, "s", "store.json").read_bytes()
    return {
        "html": [page, page.decode().encode("utf-16"), b"\x1b$B%9%]!<%D\x1b(B", "<p>ünï 漢字 ไทย".encode()],
        "warc": [record, record * 2, gzip.compress(record, mtime=0) * 2],
        "arc": [arc_record("http://x/1", page) * 2, gzip.compress(arc_record("http://x/1", page), mtime=0) * 2],
        "trec": [
            b"<DOC>\n<DOCNO>1</DOCNO>\n<DOCHDR>\nhttp://x/ 1.1.1.1 19970109132131 text/html 9\nHTTP/1.0 200 OK\n"
            b"Content-Type: text/html; charset=utf-8\n</DOCHDR>\n"
            + page
            + b"\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\nx\n</DOC>\n"
        ],
        "jsonl": [lines, gzip.compress(lines, mtime=0)],
        "csv": [b'id,text,cluster\na,"the ""cat""\n is",c\n\nb,x,\n', b"\xef\xbb\xbfid,html\r\na,<p>x\r\n"],
        "parquet": [table],
        "manifest": [listed],
    }
