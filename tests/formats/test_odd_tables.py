"""Tables as other programs write them: one column, shards with other columns, dates and types that Python lacks."""

from __future__ import annotations

import csv
import io
import json
import logging
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import PACK, crawl, ids, read, write_copy

import spotsigs
from spotsigs.clustering.decisions import Keep, priority
from spotsigs.errors import InputError
from spotsigs.formats.csv_files import Csv
from spotsigs.formats.detect_format import FORMATS, collection_of
from spotsigs.formats.parquet import Parquet
from spotsigs.formats.warc import Warc
from spotsigs.records import Skipped

TEXTS = [f"the text of {k} is a town" for k in range(4)]
IDS = [f"d{k}" for k in range(4)]


def write(path, kind, columns):
    """Write a table as a file of a format."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if kind == "parquet":
        pq.write_table(pa.table(columns), path)
    elif kind == "jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        out = io.StringIO(newline="")
        table = csv.DictWriter(out, list(columns))
        table.writeheader()
        table.writerows(rows)
        path.write_text(out.getvalue())


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.txt", "x"])
@pytest.mark.parametrize("form", ["{}", '"{}"', "\ufeff{}", "sep=;\r\nid;{}"])
def test_a_table_of_one_column_or_with_the_line_of_excel(tmp_path, name, form):
    second = "a;" if "sep" in form else ""
    lines = [form.format("text"), *(second + text for text in TEXTS)]
    (tmp_path / name).write_text("\r\n".join([*lines, ""]), encoding="utf-8", newline="")
    kind, collection = collection_of(str(tmp_path / name))
    assert kind == "csv"
    assert [record.content.decode() for record in read(collection)] == TEXTS
    names = ids(read(collection))
    write_copy(collection, names, np.array([True, False, True, True]), tmp_path / "out")
    removed = "\r\n".join([*lines[:2], *lines[3:], ""])
    assert (tmp_path / "out" / name).read_bytes().decode() == removed


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
@pytest.mark.parametrize(
    ("other", "columns", "read_too"),
    [
        ({"id": IDS, "label": IDS}, {}, False),
        ({"key": IDS, "text": TEXTS}, {"id_column": "id2"}, False),
        ({"id": IDS, "text": TEXTS}, {"date_column": "score"}, True),
        ({"id": IDS, "text": TEXTS}, {"cluster_column": "story"}, True),
    ],
)
def test_a_file_without_a_column(tmp_path, kind, other, columns, read_too):
    """In every format, a file that lacks ids or content is listed and copied; dates and clusters may be missing."""
    named = {name: ["1", "2", "3", "4"] for name in columns.values()}
    write(tmp_path / f"a.{kind}", kind, {"id": IDS, "text": TEXTS, **named})
    write(tmp_path / f"b.{kind}", kind, other)
    collection = FORMATS[kind](path=str(tmp_path), **columns)
    records = read(collection)
    assert len(ids(records)) == (8 if read_too else 4)
    skipped = [record for record in records if isinstance(record, Skipped)]
    assert bool(skipped) == (not read_too)
    write_copy(collection, ids(records), np.ones(len(ids(records)), bool), tmp_path / "out")
    if not read_too:
        assert (tmp_path / "out" / f"b.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_column_that_no_file_has_is_an_error(tmp_path, kind):
    for name in "ab":
        write(tmp_path / f"{name}.{kind}", kind, {"id": IDS, "text": TEXTS})
    for column in ("id_column", "date_column", "cluster_column"):
        with pytest.raises(InputError, match=f"a.{kind} has no column 'scoore'; its columns are id, text"):
            FORMATS[kind](path=str(tmp_path), **{column: "scoore"}).shards()


@pytest.mark.parametrize(("value", "unit"), [(2**61, "us"), (-(10**17), "us"), (10**15, "s"), (2**62, "ns"), (0, "s")])
def test_a_date_that_python_cannot_represent_costs_no_page(tmp_path, value, unit):
    dates = pa.array([0, 0, 0, value], pa.timestamp(unit))
    pq.write_table(pa.table({"id": IDS, "text": TEXTS, "date": dates}), tmp_path / "x.parquet")
    assert ids(read(Parquet(path=str(tmp_path / "x.parquet")))) == IDS


def test_a_data_set_on_disk_is_an_error_that_names_parquet(tmp_path):
    table = pa.table({"id": IDS, "text": TEXTS})
    with (
        pa.OSFile(str(tmp_path / "data-00000-of-00001.arrow"), "wb") as out,
        pa.ipc.new_stream(out, table.schema) as to,
    ):
        to.write_table(table)
    (tmp_path / "dataset_info.json").write_text('{"features": {"text": {"dtype": "string"}}}')
    with pytest.raises(InputError, match="is in Arrow's IPC format, which is not read; write Parquet"):
        collection_of(str(tmp_path))


@pytest.mark.parametrize("damage", ["{", "id cut\ufffd", 't": "x"}'])
def test_json_lines_whose_first_line_is_damaged(tmp_path, damage):
    write(tmp_path / "x", "jsonl", {"id": IDS, "text": TEXTS})
    (tmp_path / "x").write_text(f"{damage}\n{(tmp_path / 'x').read_text()}", encoding="utf-8")
    kind, collection = collection_of(str(tmp_path / "x"))
    assert kind == "jsonl"
    skipped, *rest = read(collection)
    assert isinstance(skipped, Skipped)
    assert ids(rest) == IDS


def view(texts):
    return pa.array(texts).cast(pa.string_view())


TWICE = [TEXTS[k % 4] + f" with {WORD}" for k, WORD in enumerate(["a house and the river"] * 12)]
ENDS = pa.RunEndEncodedArray.from_arrays(pa.array([12], pa.int32()), pa.array([1]))


@pytest.mark.parametrize(
    "pages",
    [
        pa.table({"text": view(TWICE)}),
        pa.table({"text": pa.array([text.encode() for text in TWICE]).cast(pa.binary_view())}),
        pa.table({"text": TWICE, "x": ENDS}),
        pa.table({"text": view(TWICE)}).to_batches()[0],
        pa.chunked_array([view(TWICE[:5]), view(TWICE[5:])]),
        view(TWICE),
    ],
    ids=["string_view", "binary_view", "run-end", "batch", "chunked", "array"],
)
def test_arrow_types_of_which_arrow_takes_no_rows(pages):
    kept = spotsigs.dedup(pages)
    assert type(kept) is type(pages)
    assert kept.to_pylist() == pages.to_pylist()[:4]


def test_scores_that_float64_would_round():
    scores = ["9007199254740993", "9007199254740992", None, "1.5", "-9007199254740993", "inf", "9007199254740994"]
    assert np.argsort(priority(Keep.largest, 7, dates=scores), kind="stable").tolist() == [5, 6, 0, 1, 3, 4, 2]
    assert np.argsort(priority(Keep.smallest, 7, dates=scores), kind="stable").tolist() == [4, 3, 1, 0, 6, 5, 2]


@pytest.mark.parametrize("folder", ["run:1", "s3:x", "caf\udce9"])
def test_folders_that_arrow_takes_for_urls_or_refuses(tmp_path, folder):
    (tmp_path / folder).mkdir()
    write(tmp_path / "x.parquet", "parquet", {"id": IDS, "text": TEXTS})
    (tmp_path / "x.parquet").rename(tmp_path / folder / "x.parquet")
    collection = Parquet(path=str(tmp_path / folder))
    assert ids(read(collection)) == IDS
    write_copy(collection, IDS, np.array([True, False, True, True]), tmp_path / "out" / folder)
    assert ids(read(Parquet(path=str(tmp_path / "out" / folder)))) == ["d0", "d2", "d3"]


def test_the_log_names_an_archive_that_one_core_reads(tmp_path, caplog):
    records = crawl(9, random.Random(0))
    for pack, one in ((".zst", True), (".gz", True), (".zst", False)):
        content = PACK[pack](b"".join(records)) if one else b"".join(map(PACK[pack], records))
        (tmp_path / "x.warc").write_bytes(content)
        caplog.clear()
        with caplog.at_level(logging.INFO, "spotsigs"):
            Warc(path=str(tmp_path / "x.warc"), shard_bytes=600).shards()
        assert ("x.warc is read by one core, because its records are not compressed one by one" in caplog.text) == one


def test_a_quote_at_the_end_of_a_table_is_listed(tmp_path):
    (tmp_path / "x.csv").write_text('id,text\na,the text\nb,"the end\n')
    *_, last = read(Csv(path=str(tmp_path / "x.csv")))
    assert last == Skipped("x.csv@19", "a quote in this line is not closed")
