"""Outputs of ``spotsigs dedup``: standard output, copies of standard input, and URLs."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import zstandard
from archives import EVERY_FILE, PACK, file_of, jsonl
from folders import contents, rows_of
from in_process import started

from spotsigs.doors.cli import main
from spotsigs.errors import InputError
from spotsigs.storage import locations
from spotsigs.storage.locations import as_path, files_below
from spotsigs.storage.manifest import MANIFEST

UNPACK = {"": bytes, ".gz": gzip.decompress, ".bz2": bz2.decompress}
UNPACK[".zst"] = lambda content: zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True).read()
COUNTER = itertools.count()


def docs(n=12, distinct=5):
    """Return documents of which some repeat the text of earlier ones, and one cannot be read."""
    prose = "the {} council is a plan for the {} bridge and the {} mayor has a vote in the {} house of the town {}"
    pages = [
        (f"d{k}", " ".join(prose.format(*[(k % distinct) * 7 + i] * 5) for i in range(6)), False) for k in range(n)
    ]
    return [*pages, ("bad", "", True)]


KEPT = [f"d{k}" for k in range(5)]


def dedup(*words):
    main(["dedup", *map(str, words), "--workers", "1"])


@pytest.mark.parametrize("pack", PACK)
def test_kept_lines_are_printed_as_they_are(tmp_path, capsysbinary, pack):
    content = jsonl(docs())
    lines = content.splitlines()
    path = tmp_path / f"x.jsonl{pack}"
    path.write_bytes(PACK[pack](b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n", 3).removesuffix(b"\n")))
    dedup(path, "--out", "-", "--results", tmp_path / "tables")
    out, err = capsysbinary.readouterr()
    assert out.splitlines() == lines[:5]
    assert out.endswith(b"\n")
    assert b"12 pages, 7 removed (58.3 %), 5 kept -> standard output" in err
    assert [row["doc"] for row in rows_of(tmp_path / "tables" / "kept.csv")] == KEPT
    assert len(rows_of(tmp_path / "tables" / "skipped.csv")) == 1


@pytest.mark.parametrize(("kind", "pack"), [case for case in EVERY_FILE if case[0] != "jsonl"])
def test_documents_of_other_formats_are_printed_as_records(tmp_path, capsysbinary, monkeypatch, kind, pack):
    monkeypatch.chdir(tmp_path)
    Path("x").write_bytes(file_of(kind, docs(), pack))
    dedup("x", "--format", kind, "--out", "-")
    out, err = capsysbinary.readouterr()
    actual = [json.loads(line) for line in out.splitlines()]
    assert [record["id"].removeprefix("http://x/") for record in actual] == KEPT
    field = "text" if kind in ("csv", "parquet") else "html"
    assert all(text in record[field] for (_, text, _), record in zip(docs(), actual, strict=False))
    assert [record.get("date") for record in actual] == [
        {"warc": "2024-01-02T03:04:05Z", "arc": "2001-02-03T04:05:06Z"}.get(kind)
    ] * 5
    assert [path.name for path in tmp_path.iterdir()] == ["x"]  # no tables, and nothing named "-"
    assert b"no tables are kept: name their folder by --results" in err
    assert err.count(b"\nskipped ") == 1


def test_printed_documents_are_those_of_a_copy_within_a_budget(tmp_path, capsysbinary):
    (tmp_path / "x.jsonl").write_bytes(jsonl(docs()))
    dedup(tmp_path / "x.jsonl", "--out", "-")
    free = capsysbinary.readouterr().out
    dedup(tmp_path / "x.jsonl", "--out", "-", "--memory", "1GB", "--results", tmp_path / "r")
    assert capsysbinary.readouterr().out == free
    dedup(tmp_path / "x.jsonl", "--out", "-", "--memory", "1GB")
    printed = capsysbinary.readouterr()
    assert printed.out == free
    assert b"\nskipped x.jsonl@" in printed.err
    assert b".csv" not in printed.err  # no table is kept


@pytest.mark.parametrize(("out", "code"), [("closed", 141), ("/dev/full", 1)])
def test_standard_output_that_cannot_be_written(tmp_path, out, code):
    if out != "closed" and not Path(out).exists():
        pytest.skip("no such device")
    (tmp_path / "x.jsonl").write_bytes(jsonl(docs()))
    words, pipe = ("dedup", "x.jsonl", "--out", "-", "--results", "r"), subprocess.PIPE
    with (
        Path(os.devnull if out == "closed" else out).open("wb") as full,
        started(*words, cwd=tmp_path, stderr=pipe, stdout=pipe if out == "closed" else full) as run,
    ):
        if out == "closed":
            run.stdout.close()
        message = run.stderr.read().decode()
    assert run.returncode == code
    assert ("error: standard output cannot be written: No space left on device" in message) == (code == 1)
    assert "Traceback" not in message
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


@pytest.mark.parametrize(("kind", "pack"), EVERY_FILE)
def test_a_copy_of_standard_input_has_the_ending_of_what_was_read(tmp_path, monkeypatch, kind, pack):
    from spotsigs.formats import input_files

    content = file_of(kind, docs(), pack)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    input_files._spooled_input.cache_clear()
    dedup("-", "--format", kind, "--out", tmp_path / "out")
    input_files._spooled_input.cache_clear()
    (tmp_path / f"stdin.{kind}{pack}").write_bytes(content)
    dedup(tmp_path / f"stdin.{kind}{pack}", "--format", kind, "--out", tmp_path / "same")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MANIFEST, f"stdin.{kind}{pack}"]
    copies = [(tmp_path / name / f"stdin.{kind}{pack}").read_bytes() for name in ("out", "same")]
    assert copies[0] == copies[1]


@pytest.fixture
def bucket():
    pytest.importorskip("upath")
    return f"memory://outputs/{next(COUNTER)}"


@pytest.fixture
def pages(tmp_path):
    for name, part in (("a", docs()[:9]), ("sub/b", docs()[9:])):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / f"{name}.jsonl").write_bytes(jsonl(part))
    return tmp_path / "in"


def uploaded(url):
    return {name: (as_path(url) / name).read_bytes() for name in files_below(as_path(url))}


TIMES = ("metrics.json", "run.json", "tasks.parquet")


@pytest.mark.parametrize("memory", [(), ("--memory", "1GB")])
def test_copy_and_tables_are_uploaded(tmp_path, pages, bucket, memory, capsys):
    dedup(pages, "--out", tmp_path / "kept", *memory)
    dedup(pages, "--out", f"{bucket}/kept/", *memory)
    assert f"5 kept -> {bucket}/kept/" in capsys.readouterr().out
    for name in ("kept", "kept-results"):
        expected, actual = contents(tmp_path / name), uploaded(f"{bucket}/{name}")
        assert set(actual) - {MANIFEST} == set(expected)
        assert all(actual[key] == content for key, content in expected.items() if key not in TIMES)
    taken = "kept is not empty; name another folder for the copy, or replace it with --ov"
    with pytest.raises(SystemExit, match=taken):
        dedup(pages, "--out", f"{bucket}/kept")
    dedup(pages / "a.jsonl", "--out", f"{bucket}/kept", "--overwrite")
    assert set(uploaded(f"{bucket}/kept")) == {"a.jsonl", MANIFEST}


def test_tables_of_pairs_are_uploaded(pages, bucket):
    main(["pairs", str(pages), "--out", f"{bucket}/tables", "--workers", "1"])
    assert {"pairs.parquet", "metrics.json"} <= set(uploaded(f"{bucket}/tables"))


@pytest.mark.parametrize("failing", range(13))
def test_a_failed_upload_leaves_nothing(pages, bucket, monkeypatch, failing):
    put, sent = locations.put, []

    def fails(sources, folder):
        sent.append(sources[0].name)
        if len(sent) == failing + 1:
            raise InputError("the network is gone")
        put(sources, folder)

    monkeypatch.setattr(locations, "put", fails)
    if failing == 12:
        dedup(pages, "--out", f"{bucket}/kept")
        assert sent[-1] == "metrics.json"
        assert len(sent) == 12
    else:
        with pytest.raises(SystemExit, match="the network is gone"):
            dedup(pages, "--out", f"{bucket}/kept")
        assert uploaded(bucket) == {}


def test_what_cannot_be_written_is_refused_before_the_work(pages, monkeypatch):
    pytest.importorskip("s3fs")
    monkeypatch.setattr("spotsigs.runs.runner.compute", None)
    with pytest.raises(SystemExit, match=r"http://127.0.0.1:9/x"):
        dedup(pages, "--out", "http://127.0.0.1:9/x")
    with pytest.raises(SystemExit, match=r"s3://bucket has no name; name a folder in it"):
        dedup(pages, "--out", "s3://bucket")


def test_tables_as_parquet_have_the_rows_of_csv(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(jsonl([("=1+1", *docs()[0][1:]), *docs()[1:]]))
    dedup(tmp_path / "x.jsonl", "--out", tmp_path / "kept")
    for name in ("kept", "removed"):
        table = pq.read_table(tmp_path / "kept-results" / f"{name}.parquet")
        rows = [{k: "" if v is None else str(v) for k, v in row.items()} for row in table.to_pylist()]
        quoted = [
            {k: v.replace("'=", "=") for k, v in row.items()}
            for row in rows_of(tmp_path / "kept-results" / f"{name}.csv")
        ]
        assert rows == quoted
        types = {
            name: "double" if name in ("similarity", "lower_bound", "contained", "text_lost") else "string"
            for name in table.column_names
        }
        assert {field.name: str(field.type) for field in table.schema} == types
    assert table["kept_instead"][0].as_py() == "=1+1"  # CSV quotes it for spreadsheets
