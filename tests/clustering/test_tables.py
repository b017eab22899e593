"""Tables written by ranges are those written in one piece, and Parquet files joined are those written at once."""

import os
import pickle
import subprocess
import sys
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from object_store import object_store
from pair_files import Counting, on_disk, random_pairs
from strategies import examples
from test_engines import ENGINES

from spotsigs.clustering import parquet_tables as parquet
from spotsigs.clustering.clusters import ClusterMethod, cluster, cohesion
from spotsigs.clustering.decisions import Keep, decide
from spotsigs.clustering.tables import write_tables
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.exact_duplicates import Copies
from spotsigs.outofcore import table_tasks as tabling
from spotsigs.outofcore.table_tasks import write_tables_by_ranges
from spotsigs.records import Measure, Overlap
from spotsigs.storage.locations import as_path
from spotsigs.storage.parquet_concat import join_files
from spotsigs.storage.store import opened, writing

TABLES = {"pairs.parquet", "clusters.parquet", "clusters.csv", "kept.csv", "removed.csv"}


def made(folder, rng, n, m, files=3, measure=Measure.jaccard):
    """Return what tables are made of: names in a store, pairs on disk, decisions, cohesion."""
    with writing(folder / "vectors", "vectors") as out:
        out.strings("doc_ids", (f"page {row}{',' * (row % 2)} {'é' * (row % 3)}" for row in range(n)))
        out.facts = {"rows": n, "n_signatures": 0}
    pairs = random_pairs(rng, n, m)
    found = on_disk(folder, pairs, files, rng).within(int(rng.integers(50, 5000)))
    overlap = measure and Overlap(rng.integers(5, 90, n).astype(np.uint8), measure)
    object.__setattr__(found, "overlap", overlap)
    groups = cluster(pairs, clusters=list(ClusterMethod)[int(rng.integers(2))])
    last = np.sort(rng.integers(0, n, n)).astype(np.int32)
    stands = np.maximum(last, np.arange(n, dtype=np.int32))
    flags = rng.random((2, n)) < 0.5
    decisions = decide(
        pairs,
        groups,
        list(Keep)[int(rng.integers(len(Keep)))],
        copies=Copies(stands, stands),
        compared=flags[0],
        boilerplate=flags[1],
    )
    return opened(folder / "vectors", "vectors").strings("doc_ids"), found, decisions, cohesion(groups, pairs.chunks())


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Sending:
    """An engine whose tasks arrive as a worker gets them."""

    processes = 0

    def map(self, function, tasks):
        for task in tasks:
            yield pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(task)))


@examples(6, long=300)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    m=st.integers(0, 90),
    new_from=st.integers(0, 60),
    measure=st.sampled_from([None, Measure.jaccard, Measure.containment]),
)
def test_ranges_do_not_show(tmp_path_factory, seed, n, m, new_from, measure):
    folder = tmp_path_factory.mktemp("tables")
    of = made(folder, np.random.default_rng(seed), n, m, measure=measure)
    new_from = min(new_from, n)
    for name in ("one", "many"):
        (folder / name).mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP", 4)
        patch.setattr(tabling, "RANGE", 20)
        write_tables(folder / "one", *of, new_from=new_from)
        write_tables_by_ranges(folder / "many", *of, store=folder, engine=Sending(), new_from=new_from)
    assert set(written(folder / "one")) == TABLES
    assert written(folder / "many") == written(folder / "one")
    assert not list(folder.glob("tables-*"))


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_ranges_on_engines(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(tabling, "RANGE", parquet.ROW_GROUP)
    of = made(tmp_path, np.random.default_rng(1), parquet.ROW_GROUP + 5000, parquet.ROW_GROUP + 500)
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    write_tables(tmp_path / "one", *of)
    write_tables_by_ranges(tmp_path / "many", *of, store=tmp_path, engine=engine)
    assert written(tmp_path / "many") == written(tmp_path / "one")


def test_small_tables_need_no_task_and_what_is_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROW_GROUP", 4)
    of = made(tmp_path, np.random.default_rng(2), 60, 90)
    target = tmp_path / "out"
    target.mkdir()
    none = Counting(0)
    write_tables_by_ranges(target, *of, store=tmp_path, engine=none)
    assert set(written(target)) == TABLES
    monkeypatch.setattr(tabling, "RANGE", 8)
    expected = written(target)
    with pytest.raises(KeyboardInterrupt):
        write_tables_by_ranges(target, *of, store=tmp_path, engine=Counting(5))
    [left] = tmp_path.glob("tables-*")
    stamps = {path: path.stat().st_mtime_ns for path in left.rglob("*.npy")}
    assert len({path.parent for path in stamps}) == 6  # five parts and what they are made of
    engine = Kept(stamps)
    write_tables_by_ranges(target, *of, store=tmp_path, engine=engine)
    assert engine.tasks > 15
    assert written(target) == expected


def test_parts_may_lie_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROW_GROUP", 4)
    store = as_path("memory://bucket/tables")
    of = made(store, np.random.default_rng(6), 60, 90)
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    write_tables(tmp_path / "one", *of, new_from=7)
    monkeypatch.setattr(tabling, "RANGE", 20)
    write_tables_by_ranges(tmp_path / "many", *of, store=store, engine=Sending(), new_from=7)
    assert written(tmp_path / "many") == written(tmp_path / "one")


ELSEWHERE = """
import sys
from pathlib import Path
import numpy as np
from spotsigs import engines
from spotsigs.outofcore import table_tasks as tabling
from spotsigs.storage.locations import as_path
from spotsigs.clustering import parquet_tables as parquet
from spotsigs.clustering.tables import write_tables
from test_tables import made, written

store, engine = as_path(sys.argv[1]), getattr(engines, sys.argv[2])(workers=2)
names, pairs, *of = made(store, np.random.default_rng(8), parquet.ROW_GROUP + 999, 90_000)
pairs = pairs.within(10**7)  # few requests
tabling.RANGE = parquet.ROW_GROUP
for place in ("one", "many"):
    Path(place).mkdir()
write_tables(Path("one"), names, pairs, *of)
tabling.write_tables_by_ranges(Path("many"), names, pairs, *of, store=store, engine=engine)
assert written(Path("one")) == written(Path("many"))
print("equal")
"""


@pytest.mark.long
@pytest.mark.parametrize(("engine", "module"), [("Processes", "numpy"), ("Dask", "distributed"), ("Ray", "ray")])
def test_tables_over_an_object_store(tmp_path, engine, module):
    """A process of its own, whose workers start with what finds the object store."""
    pytest.importorskip(module)
    with object_store() as url:
        tests = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, f"{url}/{engine}", engine],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": tests},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "equal"


class Kept:
    """An engine that sees to it that files stay as they are."""

    processes = 0

    def __init__(self, stamps):
        self.stamps, self.tasks = stamps, 0

    def map(self, function, tasks):
        for task in tasks:
            self.tasks += 1
            yield function(task)
        assert {path: path.stat().st_mtime_ns for path in self.stamps} == self.stamps


def test_names_of_another_run_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tabling, "RANGE", 8)
    of = made(tmp_path, np.random.default_rng(3), 60, 90)

    class Meanwhile(Serial):
        def map(self, function, tasks):
            with writing(tmp_path / "vectors", "vectors") as out:
                out.strings("doc_ids", map(str, range(60)))
                out.facts = {"rows": 60, "n_signatures": 0}
            return super().map(function, tasks)

    with pytest.raises(InputError, match=r"another run changed the store .*vectors; give the same command again"):
        write_tables_by_ranges(tmp_path, *of, store=tmp_path, engine=Meanwhile())


SCHEMA = pa.schema(
    [("doc", pa.string()), ("similarity", pa.float64()), ("shared", pa.int64()), ("chain", pa.bool_())],
    metadata={"about": "x" * 300},
)


def table(rng, rows):
    columns = [
        pa.array([f"page {k}" * (k % 7) for k in rng.integers(0, 50, rows)]),
        pa.array(rng.random(rows)),
        pa.nulls(rows, pa.int64()),
        pa.array(rng.random(rows) < 0.5),
    ]
    return pa.table(columns, schema=SCHEMA)


def parquet_of(tables, **more):
    file = BytesIO()
    with pq.ParquetWriter(file, SCHEMA, **more) as out:
        for one in tables:
            out.write_table(one)
    return file.getvalue()


@pytest.mark.parametrize(
    "more", [{"compression": "zstd"}, {"compression": "none", "use_dictionary": False, "write_statistics": False}]
)
@pytest.mark.parametrize("cuts", [[0, 1], [0, 20], [0, 3, 3, 4, 20], [0, 0, 17, 18, 19, 20]])
def test_joined_files_are_the_bytes_of_one(cuts, more):
    rng = np.random.default_rng(4)
    tables = [table(rng, int(rng.integers(1, 300))) for _ in range(cuts[-1])]
    joined = BytesIO()
    join_files((parquet_of(tables[a:b], **more) for a, b in pairwise(cuts)), joined)
    assert joined.getvalue() == parquet_of(tables, **more)
    joined.seek(0)
    assert pq.read_table(joined) == pa.concat_tables(tables)


def test_files_with_an_index_of_pages_can_be_joined():
    """Their bytes lie in another order than in one file, and say the same."""
    rng = np.random.default_rng(5)
    tables = [table(rng, 1000) for _ in range(3)]
    more = {"write_page_index": True, "data_page_size": 500, "sorting_columns": [pq.SortingColumn(0)]}
    joined = BytesIO()
    join_files((parquet_of([one], **more) for one in tables), joined)
    joined.seek(0)
    assert pq.read_table(joined) == pa.concat_tables(tables)
    facts = pq.read_metadata(joined)
    assert (facts.num_row_groups, facts.num_rows) == (3, 3000)
    assert facts.row_group(2).column(0).has_offset_index
    found = pq.read_table(joined, filters=[("similarity", "<", 0.01)])
    assert found == pa.concat_tables(tables).filter(pa.compute.field("similarity") < 0.01)
