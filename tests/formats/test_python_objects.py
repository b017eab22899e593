"""Pages in lists, frames, tables and iterators: dedup returns some of them, as an object of the same type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spotsigs
from spotsigs import SpotSignatures
from spotsigs.errors import InputError
from spotsigs.formats.python_objects import is_html
from spotsigs.method import Method

PAGE = "The council has approved the plan for a new bridge that will be built by the end of the year."
PAGES = [PAGE, "A win for the home side in the rain.", PAGE + " It is late."]
ROWS = [{"id": k, "text": text, "date": f"2026-01-0{k + 1}"} for k, text in enumerate(PAGES)]


def container(kind, rows):
    """Return rows as an object of some type."""
    if kind in ("polars", "datasets"):
        module = pytest.importorskip(kind)
        return module.DataFrame(rows) if kind == "polars" else module.Dataset.from_list(rows)
    kinds = {"list": list, "tuple": tuple, "iterator": iter, "pandas": pd.DataFrame, "pyarrow": pa.Table.from_pylist}
    return kinds[kind](rows)


def ids(pages):
    if isinstance(pages, pa.Table):
        return pages["id"].to_pylist()
    is_frame = hasattr(pages, "columns") or hasattr(pages, "column_names")
    return list(pages["id"]) if is_frame else [page["id"] for page in pages]


KINDS = ["list", "tuple", "iterator", "pandas", "polars", "pyarrow", "datasets"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_returned_in_an_object_of_the_same_type(kind):
    pages = container(kind, ROWS)
    kept = spotsigs.dedup(pages)
    assert isinstance(kept, type(pages) if kind != "iterator" else Iterator)
    assert ids(kept) == [0, 1]


def test_contents_alone_and_indices_are_returned():
    assert spotsigs.dedup(PAGES) == PAGES[:2]
    assert list(spotsigs.dedup(pd.Series(PAGES))) == PAGES[:2]
    assert spotsigs.dedup(pa.array(PAGES)).to_pylist() == PAGES[:2]
    assert spotsigs.dedup(np.array(PAGES, object)).tolist() == PAGES[:2]
    assert list(spotsigs.dedup(pd.DataFrame(ROWS, index=["a", "b", "c"])).index) == ["a", "b"]


def test_the_column_of_a_page_states_whether_it_is_html():
    """As in the command; a page that is in no column is HTML if it has the end tag of an element of HTML."""
    pages = [PAGE.replace("new", "<div>new</div>"), PAGE]

    def equal(pages):
        return spotsigs.near_duplicates(pages, 1.0, method=Method.of(boilerplate="keep")).i.size == 1

    assert not equal(pd.DataFrame({"text": pages}))
    assert not equal([{"text": page} for page in pages])
    assert equal(pd.DataFrame({"html": pages}))
    assert equal(pages)
    assert equal(pd.Series(pages))


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
    rows = [{"id": "a", "html": padded}, {"id": "b", "html": f"<p>{PAGE} It is late.</p>"}]
    assert [
        row["id"]
        for row in spotsigs.dedup(
            rows, keep="longest", method=Method.of(signature=SpotSignatures(), boilerplate="auto")
        )
    ] == ["b"]


def test_which_page_stays():
    assert [row["id"] for row in spotsigs.dedup(ROWS, keep="newest")] == [1, 2]
    assert [
        row["id"]
        for row in spotsigs.dedup(
            ROWS, keep="longest", method=Method.of(signature=SpotSignatures(), boilerplate="auto")
        )
    ] == [1, 2]
    assert [row["id"] for row in spotsigs.dedup(ROWS, keep="none")] == [1]


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ({"a": PAGE, "b": PAGE}, "iterates over its keys"),
        (pd.DataFrame({"body": PAGES}), "neither a column .text. nor .html.; .* text= or html=; its columns are body"),
        ([{"body": PAGE}], "neither .*; its columns are body"),
        (PAGE, "got a single one"),
        (7, "contains no pages"),
    ],
)
def test_names_are_never_compared_in_place_of_pages(pages, message):
    with pytest.raises(InputError, match=message):
        spotsigs.near_duplicates(pages)


class Refuses(SpotSignatures):
    """Signatures that one page has none of."""

    def __call__(self, tokens):
        if "win" in tokens.words:
            raise ValueError("no signatures of games")
        return super().__call__(tokens)


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_that_cannot_be_read_stays_and_is_named(kind):
    """The rows after it had the numbers of those before, and other pages than the duplicates were removed."""
    rows = [dict(row, name=f"p{row['id']}") for row in [*ROWS, ROWS[0] | {"id": 3}]]
    for more, name in (({}, "1"), ({"id": "name"}, "'p1'")):
        with pytest.warns(
            UserWarning, match=f"1 page cannot be read, compared with no other page and kept; {name}: ValueError"
        ):
            kept = spotsigs.dedup(container(kind, rows), 0.4, method=Method.of(signature=Refuses()), **more)
        assert ids(kept) == [0, 1]
    with pytest.raises(InputError, match=r"(pages has no column|no row has a key) 'url'; name one by id="):
        spotsigs.dedup(container(kind, rows), id="url")


def test_pairs_keep_the_positions_of_pages_after_one_that_cannot_be_read():
    with pytest.warns(UserWarning, match="2 pages cannot be read, .*; 0: ValueError"):
        pairs = spotsigs.near_duplicates([PAGES[1], PAGES[1] + "!", PAGE, PAGE], method=Method.of(signature=Refuses()))
    assert (pairs.n, pairs.i.tolist(), pairs.j.tolist()) == (4, [2], [3])
    with pytest.raises(InputError, match="page 'b' is a int; give str or bytes"):
        spotsigs.near_duplicates([{"id": "a", "text": PAGE}, {"id": "b", "text": 7}])


def test_what_is_printed_and_what_labels_are():
    pairs = spotsigs.near_duplicates(PAGES)
    assert repr(pairs).startswith("Pairs(1 of 3 documents: (0, 2, ")
    assert all(type(label) is int for label in spotsigs.cluster(pairs))


def test_columns_of_one_name_are_refused():
    """Distinct pages were dropped: the two columns were one frame, whose column names were compared."""
    frame = pd.DataFrame({"text": [f"{PAGE} Number {k} of many." for k in range(6)], "n": range(6)})
    twice = pd.concat([frame, frame[["text"]]], axis=1)
    with pytest.raises(InputError, match="pages has 2 columns named 'text'; rename all but one"):
        spotsigs.dedup(twice)
    with pytest.raises(InputError, match="pages has 2 columns named 'text'"):
        spotsigs.dedup(pa.Table.from_arrays([pa.array(PAGES), pa.array(PAGES)], names=["text", "text"]))
    others = pd.concat([frame, frame[["n"]]], axis=1)  # columns that are not read may share a name
    assert spotsigs.dedup(others, text="text").columns.tolist() == ["text", "n", "n"]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize("kind", ["list", "dicts", "iterator", "frame", "series", "nullable"])
def test_a_missing_page_is_listed_and_stays(kind, missing):
    """None was silent in a frame and an error in a list; nullable strings ended in a TypeError."""
    pages = [PAGE, missing, missing, PAGE]
    rows = [{"text": page, "id": f"p{k}"} for k, page in enumerate(pages)]
    if kind == "nullable":
        frame = pd.DataFrame({"text": pd.array([None if page is missing else page for page in pages], "string")})
    else:
        frame = pd.DataFrame(rows)
    given = {
        "list": pages,
        "dicts": rows,
        "iterator": iter(rows),
        "frame": frame,
        "series": pd.Series(pages, dtype=object),
        "nullable": frame,
    }[kind]
    first = "'p1'" if kind in ("dicts", "iterator", "frame") else "1"
    with pytest.warns(UserWarning, match=f"2 pages cannot be read, .*kept; {first}: the page is missing"):
        kept = spotsigs.dedup(given)
    if kind == "iterator":
        kept = list(kept)
    assert len(kept) == 3
    with pytest.warns(UserWarning, match="2 pages cannot be read"):
        pairs = spotsigs.near_duplicates(iter(rows) if kind == "iterator" else given)
    assert (pairs.n, pairs.i.tolist(), pairs.j.tolist()) == (4, [0], [3])
    assert pairs.shared.tolist() == pairs.union.tolist() != [0]


def test_a_column_of_html_is_found_and_counts_first():
    rows = [{"html": f"<p>{PAGE}", "text": ""}, {"html": None, "text": PAGE}, {"html": "", "text": "A win."}]
    assert len(spotsigs.near_duplicates(rows)) == 1
    assert len(spotsigs.dedup(pd.DataFrame({"html": [f"<p>{PAGE}", PAGE]}))) == 1
    with pytest.raises(InputError, match="pages has no column 'body'; name one by html="):
        spotsigs.dedup(pd.DataFrame(rows), html="body")


@pytest.mark.parametrize(
    "dates",
    [
        ["2026-01-01", "Fri, 02 Jan 2026 00:00:00 GMT"],
        ["Thu, 01 Jan 2026 23:00:00 +0000", "2026-01-02T00:30:00+01:00"],
        ["20260101120000", "2026-02"],
        ["2025", "Fri Jan  2 00:00:00 2026"],
        [None, "2026-01-01T00:00:00Z"],
    ],
)
def test_dates_of_any_common_form_are_compared(dates):
    """Dates that were not ISO were ignored where others were."""
    rows = [{"text": PAGE, "date": date} for date in dates]
    assert spotsigs.dedup(rows, keep="newest") == rows[1:]


def test_dates_that_cannot_be_read_are_listed():
    rows = [{"text": PAGE, "date": "yesterday"}, {"text": PAGE, "date": "2026-01-01"}]
    with pytest.warns(UserWarning, match="1 page is taken as the oldest; 0: the date 'yesterday' cannot be read"):
        assert spotsigs.dedup(rows, keep="newest") == rows[1:]
    with (
        pytest.warns(UserWarning, match="yesterday"),
        pytest.raises(InputError, match="no document has one that can be read"),
    ):
        spotsigs.dedup(rows[:1], keep="newest")


def test_an_iterator_is_read_once_and_its_pages_are_not_stored():
    """Pairs of a stream of 2,000 pages of 50 KB take little more memory than a stream of 400."""
    import tracemalloc

    def stream(n):
        for k in range(n):
            words = " ".join(f"the word{k}x{i} has" for i in range(40))
            yield {"id": k, "html": f"<p>{words}</p><script>{'x' * 50_000}</script>"}

    def peak(n):
        tracemalloc.start()
        assert spotsigs.near_duplicates(stream(n)).n == n
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak(10)
    assert peak(2000) - peak(400) < 1600 * 50_000 / 4


def test_rows_of_an_iterator_are_returned_equal():
    class Row(NamedTuple):
        key: int
        text: str
        html: bytes | None

    rows = [Row(0, PAGE, None), Row(1, "", b"<p>A win for the home side.\xff"), Row(2, PAGE, None)]
    assert list(spotsigs.dedup(iter(rows))) == rows[:2]
    surrogate = PAGE + "\ud800"
    dicts = [{"text": surrogate, "more": [1]}, {"text": b"\xff\xfe", "more": {}}, {"more": 1, "text": surrogate}]
    assert list(spotsigs.dedup(iter(dicts))) == dicts[:2]
    assert list(spotsigs.dedup(iter(PAGES))) == PAGES[:2]
    with pytest.raises(InputError, match="page 1 is a str, unlike the first one"):
        spotsigs.dedup([{"text": PAGE}, PAGE])


@pytest.mark.long
def test_types_of_results_are_those_of_the_pages(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    (tmp_path / "use.py").write_text(
        "import spotsigs\nfrom collections.abc import Iterator\n"
        "a: list[str] = spotsigs.dedup(['x'])\n"
        "def f(rows: Iterator[dict[str, str]]) -> Iterator[dict[str, str]]:\n    return spotsigs.dedup(rows)\n"
        "b: int = spotsigs.dedup(['x'])\n"
    )
    out, _, code = mypy.run(["--config-file=", "--follow-imports=silent", str(tmp_path / "use.py")])
    assert code == 1
    assert [line.partition("use.py:")[2][:2] for line in out.splitlines() if "error:" in line] == ["6:"]


def test_templates_are_removed_on_request():
    """Forty stories in the template of one site: with it they chain, without it each is kept."""
    links = "".join(f"<li><a href=/{k}>The {k} news of the day is here and will be there</a></li>" for k in range(40))
    sentence = "The {0}{1} of the {0} was in a {0}{1} house that has a {1}{0}.".format
    stories = [" ".join(sentence(word, k) for word in "abcdefgh") for k in range(40)]
    pages = [f"<html><body><ul>{links}</ul><div><p>{story}</p></div></body></html>" for story in stories]
    kept = spotsigs.dedup(pages, tau=0.3, method=Method.of(boilerplate="keep"))
    assert len(kept) == 1
    assert spotsigs.dedup(pages) == pages
    assert spotsigs.dedup(pages, tau=0.3, method=Method.of(boilerplate="remove")) == pages
    with pytest.raises(InputError, match=r"boilerplate must be 'auto', .*; did you mean 'remove'"):
        spotsigs.Method.of(boilerplate="removed")


def test_only_public_names_are_listed():
    assert {name for name in dir(spotsigs) if not name.startswith("__")} == set(spotsigs.__all__)


PROSE = "The council has approved the plan for a bridge that will be built by the river in spring."


@pytest.mark.parametrize(
    "page",
    [
        "std::vector<int> values of the list",
        "Write to <ann@example.org> for the key",
        "Dear <NAME>, thank you",
        "if a <b and x> c then the loop ends",
        "You need the <title> element here",
        "SQL has <!-- comments <b> too",
        "<record><year value='a'/></record> of the library",
        "a < b and b > a",
        "<a@example.org> wrote",
        "<B2B> sales",
        "<br-x> </x-br>",
    ],
)
def test_text_with_angle_brackets_is_text(page):
    assert not is_html(page)
    assert not is_html(page.encode())
    others = [page.replace(word, "another") for word in page.split()]
    in_column = spotsigs.dedup([{"text": text} for text in (page, *others)], tau=1)
    assert spotsigs.dedup([page, *others], tau=1) == [row["text"] for row in in_column]


@pytest.mark.parametrize(
    "page",
    [
        f"<p>{PROSE}",
        f"\ufeff <!DOCTYPE HTML><title>t</title>{PROSE}",
        f"{PROSE}</P>",
        f"<br/>{PROSE}",
        f"<?xml version='1.0'?><x>{PROSE}",
        f"<!-- saved --> <html lang=en>{PROSE}",
        f"<IMG SRC=x>{PROSE}",
        f"One <b class='x'>of</b> {PROSE}",
    ],
)
def test_pages_are_html_by_their_elements(page):
    assert is_html(page)
    assert is_html(page.encode())


def test_a_link_in_a_column_of_text_changes_no_threshold():
    rows = [{"text": f"{PROSE} {' '.join(f'{k}{word}' for word in PROSE.split())}"} for k in range(3)]
    linked = [{"text": 'Write <a href="x">text</a> to link'}, *rows]
    assert len(spotsigs.dedup(linked)) == 1 + len(spotsigs.dedup(rows))
