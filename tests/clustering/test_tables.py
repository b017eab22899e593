"""Tables of pairs on disk are the bytes of those in memory, for any size of the chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import on_disk, random_pairs
from strategies import examples

from spotsigs.arrays.arrow import arrow_numbers_or_null, arrow_text, tab_separated
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

    columns = [arrow_text(name for name, _ in rows), arrow_numbers_or_null([number for _, number in rows])]
    assert tab_separated(columns, cell) == "".join(f"<{name}>\t<{number}>\n" for name, number in rows)
