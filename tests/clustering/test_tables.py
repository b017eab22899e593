"""Tables of pairs on disk are the bytes of those in memory, for any size of the chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import on_disk, random_pairs
from strategies import examples

from spotsigs.arrays.arrow import arrow_numbers, arrow_numbers_or_null, arrow_text, tab_separated
from spotsigs.clustering import tables
from spotsigs.clustering.clusters import ClusterMethod, cluster, cohesion
from spotsigs.clustering.decisions import Keep, decide
from spotsigs.records import Measure, Overlap
from spotsigs.storage.exact_duplicates import ExactDuplicates

TABLES = {
    "pairs.parquet",
    *(f"{name}.{kind}" for name in ("clusters", "kept", "removed") for kind in ("csv", "parquet")),
}


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@examples(6, long=300)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    m=st.integers(0, 90),
    new_from=st.integers(0, 60),
    measure=st.sampled_from([None, Measure.jaccard, Measure.containment]),
)
def test_the_size_of_chunks_makes_no_difference(tmp_path_factory, seed, n, m, new_from, measure):
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(seed)
    pairs = random_pairs(rng, n, m)
    stored = on_disk(folder, pairs, 3, rng, int(rng.integers(1, 40)))
    overlap = measure and Overlap(rng.integers(5, 90, n).astype(np.uint8), measure)
    groups = cluster(pairs, clusters=list(ClusterMethod)[int(rng.integers(2))])
    cohesions = cohesion(groups, pairs)
    of = np.maximum(np.sort(rng.integers(0, n, n)).astype(np.int32), np.arange(n, dtype=np.int32))
    exact, compared, keep = ExactDuplicates(of, of), rng.random(n) < 0.5, list(Keep)[int(rng.integers(len(Keep)))]
    decisions = decide(pairs, groups, keep, exact_duplicates=exact, compared=compared)
    ids = [f"page {row}{',' * (row % 2)} {'é' * (row % 3)}" for row in range(n)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROW_GROUP", 4)
        for name, listed in (("memory", pairs), ("disk", stored)):
            (folder / name).mkdir()
            object.__setattr__(listed, "overlap", overlap)
            tables.write_tables(folder / name, ids, listed, decisions, cohesions, tables.RowFacts(min(new_from, n)))
    assert set(written(folder / "memory")) == TABLES
    assert written(folder / "disk") == written(folder / "memory")


@examples(60, long=600)
@given(st.lists(st.tuples(st.none() | st.text(max_size=3), st.none() | st.floats()), max_size=40))
def test_printed_blocks_are_the_rows_one_by_one(rows):
    def cell(value):
        return f"<{value}>"

    rows = [(name, None if number != number else number) for name, number in rows]
    columns = [arrow_text(name for name, _ in rows), numbers_or_null([number for _, number in rows])]
    assert tab_separated(columns, cell) == "".join(f"<{name}>\t<{number}>\n" for name, number in rows)


def numbers_or_null(numbers):
    return arrow_numbers_or_null(np.array([np.nan if number is None else number for number in numbers]))


CELLS = (
    st.none()
    | st.text(st.sampled_from(list("=+-@＝＋－＠ab/,\"'\r\n\t \x00\x1c\x85\u2003\ufeffé日")), max_size=5)
    | st.text()
)
NUMBERS = st.none() | st.sampled_from([0.0, -0.0, 0.1, 1.0, 1e-5, 1e16, 1 / 3]) | st.floats(allow_nan=False)


@examples(150, long=3000)
@given(
    st.lists(st.tuples(CELLS, NUMBERS, st.integers(-(2**31), 2**31 - 1), st.booleans(), CELLS), max_size=30),
    st.integers(0, 30),
)
def test_columns_are_written_as_the_same_rows_are(tmp_path_factory, rows, first):
    folder = tmp_path_factory.mktemp("csv")
    header = ['doc, of "a" page', "=number", "integer", "flag", "text"]
    with tables.csv_blocks(folder / "columns.csv", header) as append:
        for block in (rows[:first], rows[first:]):
            texts, numbers, integers, flags, others = zip(*block, strict=True) if block else 5 * [()]
            append(
                [
                    arrow_text(texts),
                    numbers_or_null(numbers),
                    arrow_numbers(np.array(integers, np.int32)),
                    arrow_numbers(np.array(flags, bool)),
                    arrow_text(others),
                ]
            )
    tables.write_csv(folder / "rows.csv", header, ([*row[:3], str(row[3]).lower(), row[4]] for row in rows))
    assert (folder / "columns.csv").read_bytes() == (folder / "rows.csv").read_bytes()
