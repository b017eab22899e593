"""Pages given in lists, frames, tables and iterators come back as they were given, fewer."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pytest

import spotsigs
from spotsigs import SpotSignatures
from spotsigs.errors import InputError

PAGE = "The council has approved the plan for a new bridge that will be built by the end of the year."
PAGES = [PAGE, "A win for the home side in the rain.", PAGE + " It is late."]
ROWS = [{"id": k, "text": text, "date": f"2026-01-0{k + 1}"} for k, text in enumerate(PAGES)]


def test_each_kind_comes_back_as_itself():
    assert spotsigs.dedup(PAGES) == PAGES[:2]
    assert spotsigs.dedup(tuple(PAGES)) == tuple(PAGES[:2])
    assert spotsigs.dedup(ROWS) == ROWS[:2]
    assert list(spotsigs.dedup(iter(ROWS))) == ROWS[:2]
    frame = spotsigs.dedup(pd.DataFrame(ROWS, index=["a", "b", "c"]))
    assert list(frame.index) == ["a", "b"]
    table = spotsigs.dedup(pa.Table.from_pylist(ROWS))
    assert table.column("id").to_pylist() == [0, 1]
    assert list(spotsigs.dedup(pd.Series(PAGES))) == PAGES[:2]


def test_polars_and_datasets():
    polars, datasets = pytest.importorskip("polars"), pytest.importorskip("datasets")
    assert spotsigs.dedup(polars.DataFrame(ROWS))["id"].to_list() == [0, 1]
    assert list(spotsigs.dedup(datasets.Dataset.from_list(ROWS))["id"]) == [0, 1]


def test_documents_of_ir_datasets_are_named_tuples():
    class GenericDoc(NamedTuple):
        doc_id: str
        text: str

    docs = [GenericDoc(f"d{k}", page) for k, page in enumerate(PAGES)]
    assert list(spotsigs.dedup(iter(docs))) == docs[:2]
    with pytest.raises(InputError, match="no row has a key 'body'; name one by text=; the first has doc_id, text"):
        spotsigs.dedup(docs, text="body")


def test_the_longest_is_that_of_most_prose_as_in_the_command(tmp_path):
    padded = "<html>" + "<p></p>" * 200 + PAGE + "</html>"
    rows = [{"id": "a", "text": padded}, {"id": "b", "text": PAGE + " It is late."}]
    assert [row["id"] for row in spotsigs.dedup(rows, keep="longest")] == ["b"]


def test_which_page_stays():
    assert [row["id"] for row in spotsigs.dedup(ROWS, keep="newest")] == [1, 2]
    assert [row["id"] for row in spotsigs.dedup(ROWS, keep="longest")] == [1, 2]
    assert [row["id"] for row in spotsigs.dedup(ROWS, keep="none")] == [1]


def test_a_missing_text_is_like_no_other():
    assert len(spotsigs.dedup(pd.DataFrame({"text": [PAGE, None, float("nan"), PAGE]}))) == 3


@pytest.mark.parametrize(
    ("pages", "says"),
    [
        ({"a": PAGE, "b": PAGE}, "iterates over its keys"),
        (pd.DataFrame({"body": PAGES}), "neither a column .text. nor .html.; name one by text= or html=; its columns are body"),
        ([{"body": PAGE}], "no row has a key 'text'"),
        (PAGE, "got a single one"),
        (7, "holds no pages"),
    ],
)
def test_names_are_never_compared_in_place_of_pages(pages, says):
    with pytest.raises(InputError, match=says):
        spotsigs.near_duplicates(pages)


def held(kind):
    """The rows in each thing that can hold them, with a third page that no signature scheme can read."""
    rows = [dict(row, name=f"p{row['id']}") for row in [*ROWS, ROWS[0] | {"id": 3}]]
    if kind in ("polars", "datasets"):
        module = pytest.importorskip(kind)
        return module.DataFrame(rows) if kind == "polars" else module.Dataset.from_list(rows)
    return {"list": list, "iterator": iter, "pandas": pd.DataFrame, "pyarrow": pa.Table.from_pylist}[kind](rows)


def ids(pages):
    if isinstance(pages, pd.DataFrame):
        return pages["id"].tolist()
    if isinstance(pages, pa.Table):
        return pages["id"].to_pylist()
    return (
        list(pages["id"]) if hasattr(pages, "columns") or hasattr(pages, "column_names") else [p["id"] for p in pages]
    )


class Refuses(SpotSignatures):
    """Signatures that one page has none of."""

    def __call__(self, tokens):
        if "win" in tokens.words:
            raise ValueError("no signatures of games")
        return super().__call__(tokens)


@pytest.mark.parametrize("kind", ["list", "iterator", "pandas", "polars", "pyarrow", "datasets"])
def test_a_page_that_cannot_be_read_stays_and_is_named(kind):
    """The rows behind it were once taken for those before them, so that other pages went than were duplicates."""
    for more, name in (({}, "1"), ({"id": "name"}, "'p1'")):
        with pytest.warns(
            UserWarning, match=f"a page cannot be read and is compared with no other; {name}: ValueError"
        ):
            kept = spotsigs.dedup(held(kind), 0.4, signature=Refuses(), **more)
        assert ids(kept) == [0, 1]
    with pytest.raises(InputError, match="pages has no column 'url'; name one by id="):
        spotsigs.dedup(held(kind), id="url")


def test_pairs_keep_the_positions_of_pages_behind_one_that_cannot_be_read():
    with pytest.warns(UserWarning, match="2 pages cannot be read and are compared with no other; 0: ValueError"):
        pairs = spotsigs.near_duplicates([PAGES[1], PAGES[1] + "!", PAGE, PAGE], signature=Refuses())
    assert (pairs.n, pairs.i.tolist(), pairs.j.tolist()) == (4, [2], [3])
    with pytest.raises(InputError, match="page 'b' is a int; give str or bytes"):
        spotsigs.near_duplicates([{"id": "a", "text": PAGE}, {"id": "b", "text": 7}])


def test_what_is_printed_and_what_labels_are():
    pairs = spotsigs.near_duplicates(PAGES)
    assert repr(pairs).startswith("Pairs(1 of 3 documents: (0, 2, ")
    assert all(type(label) is int for label in spotsigs.cluster(pairs))
