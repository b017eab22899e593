"""Hostile pages: no dangerous call exists, and readers take linear time."""

from __future__ import annotations

import ast
import gzip
import importlib
import io
import re
import tarfile
import time
import tracemalloc
from pathlib import Path

import pytest
import regex
import zstandard
from archives import warc_record

from data.collections.fetching import files
from spotsigs.clustering.tables import harmless
from spotsigs.doors.api import near_duplicates
from spotsigs.formats.compression import open_bytes
from spotsigs.formats.http_response import parse_response
from spotsigs.formats.input_files import InputFile
from spotsigs.formats.trec import Trec
from spotsigs.formats.warc import Warc
from spotsigs.formats.writers import target_of
from spotsigs.records import Document, Skipped
from spotsigs.text.charset import to_utf8
from spotsigs.text.markup import simplify
from spotsigs.text.visible import visible_text

ROOT = Path(__file__).parents[2]
PACKAGES = ("spotsigs", "baselines", "data", "experiments")


def modules():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_bytes())


def calls(tree):
    """Yield each call's dotted name and the call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


EXTRACTS = ("trafilatura.extract", "self.extract", "method.extract")
"""Calls of this name that unpack no archive."""


PICKLES = ("spotsigs/arrays/kernel.py", "spotsigs/storage/tasks.py", "spotsigs/testing.py", "experiments/evaluate.py")
"""Modules that pickle what this program has made: a method, results of its own workers; or catch numba's errors."""


def test_nothing_is_unpickled_evaluated_or_given_to_a_shell():
    forbidden = {"eval", "exec", "compile", "os.system", "os.popen", "yaml.load", "np.fromregex", "__import__"}
    unpacking = ("extractall", "unpack_archive")
    starts = set()
    for name, tree in modules():
        for imported in ast.walk(tree):
            if isinstance(imported, ast.Import | ast.ImportFrom):
                names = [imported.module or ""] if isinstance(imported, ast.ImportFrom) else []
                names += [alias.name for alias in imported.names]
                allowed_here = {"pickle"} if name in PICKLES else set()
                assert not ({"pickle", "cloudpickle", "dill", "marshal", "shelve"} - allowed_here) & set(names), name
        for called, node in calls(tree):
            words = {keyword.arg: keyword.value for keyword in node.keywords}
            assert called not in forbidden, name
            assert called.rpartition(".")[2] not in unpacking, (name, called)
            assert not called.endswith(".extract") or called in EXTRACTS, (name, called)
            assert "shell" not in words, name
            if called in ("np.load", "np.save", "numpy.load", "numpy.save"):
                allowed = words.get("allow_pickle")
                assert allowed is None or ast.unparse(allowed) == "False", name  # None is False, too
            if called.startswith("subprocess."):
                starts.add(name)
    # pip, npm and apt-get for collections, pip with the user's own package and version; git about the checkout; this
    # program, to measure it
    own = {"spotsigs/runs/provenance.py", "experiments/studies/more_workers.py"}
    assert starts == {"data/collections/fetching.py", *own}


def patterns():
    """Yield each compiled pattern of the library with the methods that its module calls."""
    for path in sorted((ROOT / "spotsigs").rglob("*.py")):
        source = path.read_text()
        if "re.compile(" not in source and "regex.compile(" not in source:
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for name, value in vars(module).items():
            called = re.findall(rf"\b{name}\.(\w+)\(", source)
            methods = {"match", "search", "fullmatch", "finditer", "split"} & {*called}
            if isinstance(value, re.Pattern | regex.Pattern) and methods:
                yield pytest.param(value, sorted(methods), id=f"{path.stem}.{name}")


PIECES = [
    *" |\n|\r\n |<|<a |<a href |<!--|<!-- -->|a|a b |0|0 |:|A:\n|\"'|(|=".split("|"),
    *("charset ", "<meta ", "</DOC>", "</DOC> ", "<DOC>\n", "<DOCNO>", "0\r\n", "WARC/1.0\r\n", "http://", "http://a "),
]


@pytest.mark.parametrize(("pattern", "methods"), list(patterns()))
def test_patterns_take_linear_time(pattern, methods):
    """On what could make them try again at each character; the declaration of an encoding is sought in 4 KB."""
    size = 4096 if "charset" in repr(pattern) and "encoding" in repr(pattern) else 60_000
    for piece in PIECES:
        text = piece * (size // len(piece)) + "!"
        for method in methods:
            began = time.perf_counter()
            matches = getattr(pattern, method)(text.encode() if isinstance(pattern.pattern, bytes) else text)
            if method == "finditer":
                list(matches)
            assert time.perf_counter() - began < 1, (piece, method)


@pytest.mark.parametrize("blanks", [60_000])
def test_white_space_without_end(blanks, tmp_path):
    """Each of these took hours when its pattern took the cube of the blanks, seconds a page when it took the square."""
    white = b" " * blanks
    header = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=" + white + b"!\r\n\r\n"
    assert parse_response(header).charset is None
    assert to_utf8(b"<meta " * 300 + b"\xff charset=" + white + b"!").startswith(b"<meta")
    documents = b"<DOC>\n<DOCNO>1</DOCNO>\n<DOCHDR>%b\n</DOC>\n<DOC>\n<DOCNO>%b\n</DOC>\n" % (white, white)
    (tmp_path / "x").write_bytes(documents)
    first, second = (record for shard in Trec(path=str(tmp_path / "x")).shards() for record in shard())
    assert (first.id, first.content.strip()) == ("1", b"<DOCHDR>" + white.rstrip() if not white.strip() else b"")
    assert isinstance(second, Skipped)
    assert len(near_duplicates(["<" * blanks, "<a" * blanks, "<!--" * blanks])) == 0


@pytest.mark.parametrize("opened", [False, True], ids=["the beginning", "a stream"])
def test_a_zstd_bomb_is_unpacked_a_piece_at_a_time(opened, tmp_path):
    path = tmp_path / "x.warc.zst"
    frame = zstandard.ZstdCompressor(level=1).compress(bytes(1 << 30))
    path.write_bytes(frame)
    assert len(frame) < 1 << 18
    tracemalloc.start()
    try:
        if opened:
            with open_bytes(path) as stream:
                assert stream.read(10) == bytes(10)
        else:
            assert "is not a WARC file" in Warc(path=str(path)).fault(path)
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


def test_a_gzip_bomb_in_a_warc_header_is_no_document(tmp_path):
    record = warc_record("http://x/" + "a" * (30 << 20), b"<p>x")
    (tmp_path / "x.warc.gz").write_bytes(gzip.compress(record))
    actual = [item for shard in Warc(path=str(tmp_path / "x.warc.gz")).shards() for item in shard()]
    assert all(isinstance(item.id, str) for item in actual)


@pytest.mark.parametrize(
    "cell", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "  =1", "\xa0=1", "＝1", "＋1", "－1", "＠x", "\u3000@x"]
)
def test_no_cell_begins_a_formula(cell):
    assert harmless(cell) == f"'{cell}"


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/x", "a/../../x", "..\\..\\x", "C:\\x", "\\\\host\\share\\x", "./../x", "a/./b/../../../x"]
)
def test_a_copy_is_never_outside_of_its_folder(name, tmp_path):
    path = target_of(tmp_path / "copy", InputFile(Path("stdin"), name))
    assert path.resolve().is_relative_to((tmp_path / "copy").resolve())
    assert path.name.endswith("x")


def test_members_of_an_archive_are_read_in_place(tmp_path):
    def member(name, **facts):
        info = tarfile.TarInfo(name)
        info.size = 1 if not facts else 0
        for key, value in facts.items():
            setattr(info, key, value)
        return info

    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as tar:
        for info in (
            member("p-1/docs/a.txt"),
            member("p-1/docs/../../../evil.txt"),
            member("/p-1/docs/absolute.txt"),
            member("p-1/docs/link.txt", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            member("p-1/docs/pipe.txt", type=tarfile.FIFOTYPE),
        ):
            tar.addfile(info, io.BytesIO(b"x"))
    assert list(files(tmp_path / "x.tar.gz", lambda name: name.endswith(".txt"))) == [("docs/a.txt", b"x")]
    assert [path.name for path in tmp_path.iterdir()] == ["x.tar.gz"]


@pytest.mark.parametrize("soup", [b"<li><dt>", b"<dd><li>", b"<optgroup>", b"<li>", b"<dt><p>", b"<li><div><dd>"])
def test_list_items_never_nest_deeper_than_a_parser_can_bear(soup):
    """Counted in the tree: 512 elements that this project lets nest, and those that the parser puts between."""
    from selectolax.lexbor import LexborHTMLParser

    node, depth = LexborHTMLParser(simplify(soup * 3000)).body, 0
    while node is not None:
        node, depth = node.last_child, depth + 1
    assert depth <= 2 * 512


def test_many_open_list_items_hide_no_template():
    page = b"<ul>" + b"<li><p>a<template>no</template>" * 2000
    assert visible_text(Document(id="", content=page)).split() == ["a"] * 2000
