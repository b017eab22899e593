"""The same bytes for every seed of hash randomisation, number of workers, engine, document order and kernel cache."""

from __future__ import annotations

import shutil

import pytest
from folders import contents
from in_process import front_door, process, program
from test_crashes import crawl  # noqa: F401 - a fixture
from test_engines import available


def finish(folder, *words, **environment):
    """Run the front door in a fresh process; return the files whose bytes must not differ."""
    words = (*words, f"hydra.run.dir={folder}/run")
    return files(folder, process(*words, program=[program(words)], environment=environment))


def files(folder, done):
    assert done.returncode == 0, done.stderr
    suffixes = (".parquet", ".csv", ".tex", ".md", ".html", ".svg")
    every = contents(folder).items()
    results = {name: content for name, content in every if name.endswith(suffixes) and "/cells." not in name}  # times
    assert results
    return results


@pytest.fixture(scope="session")
def pages(tmp_path_factory, crawl):  # noqa: F811
    """Choices of a run on the first 500 pages of the crawl, in shards."""
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl"
    path.write_text("".join(crawl.read_text().splitlines(keepends=True)[:500]))
    return "data=jsonl", f"data.path={path}", "+data.shard_bytes=25_000", "page=true"


@pytest.fixture(scope="session")
def expected(tmp_path_factory, pages):
    folder = tmp_path_factory.mktemp("expected")  # by this process, with its hash seed
    return files(folder, front_door(*pages, "engine=serial", f"hydra.run.dir={folder}/run"))


WAYS = {
    "hash seed 1": ((), {"PYTHONHASHSEED": "1"}),
    "hash seed 4242": ((), {"PYTHONHASHSEED": "4242"}),
    "1 worker": (("workers=1", "threads=1"), {}),
    "2 workers": (("workers=2", "threads=2"), {}),
    "8 workers": (("workers=8", "threads=8"), {}),
    "serial": (("engine=serial",), {}),
    "brute force": (("matcher=brute_force",), {}),
    "tight bounds": (("matcher=spotsigs_tight",), {}),
    "another time zone and locale": ((), {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}),
    "cold kernels": ((), {"NUMBA_CACHE_DIR": "{folder}/kernels"}),
    "dask": (("engine=dask", "workers=2"), {}),
    "ray": (("engine=ray", "workers=2"), {}),
    "on disk": (("memory=1GB", "engine=serial"), {}),
    "on disk, 2 workers": (("memory=2GB", "workers=2"), {}),
    "on disk, dask": (("memory=2GB", "engine=dask", "workers=2"), {}),
    "on disk, ray": (("memory=2GB", "engine=ray", "workers=2"), {}),
}
QUICK = "8 workers"


@pytest.mark.parametrize("way", [pytest.param(way, marks=[] if way == QUICK else pytest.mark.long) for way in WAYS])
def test_pairs_clusters_lists_and_the_page(way, pages, expected, tmp_path):
    require_engine(way)
    words, environment = WAYS[way]
    environment = {name: value.replace("{folder}", str(tmp_path)) for name, value in environment.items()}
    assert finish(tmp_path / "run", *pages, *words, **environment) == expected


def require_engine(way):
    for name, module in (("dask", "distributed"), ("ray", "ray")):
        if name in way and not available(module):
            pytest.skip(f"needs {module}")


def table(folder, words, seed="0"):
    """Return the files of a table whose cells are all computed again."""
    chosen = ("experiment=chain_length", "data=tiny", "experiment.step=0.1", *words)
    results = finish(folder, *chosen, f"experiment.results={folder}", PYTHONHASHSEED=seed)
    shutil.rmtree(folder)
    return results


@pytest.fixture(scope="session")
def expected_table(tmp_path_factory):
    return table(tmp_path_factory.mktemp("table"), ["engine=serial"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "seed"),
    [("workers=1", "0"), ("workers=2", "1"), ("workers=8", "4242"), ("engine=dask workers=2", "2"),
     ("engine=ray workers=2", "3")],
)  # fmt: skip
def test_tables_and_figures(words, seed, expected_table, tmp_path):
    require_engine(words)
    assert table(tmp_path / "table", words.split(), seed) == expected_table
