"""The same bytes for every seed of hash randomisation, number of workers, engine, document order and kernel cache."""

from __future__ import annotations

import shutil

import pytest
from folders import contents
from in_process import command, front_door, process
from test_crashes import crawl  # noqa: F401 - a fixture
from test_engines import available


def finish(folder, *words, program=("run.py",), **environment):
    """Run ``run.py``, or the command, in a fresh process; return the files whose bytes must not differ."""
    words = (*words, f"hydra.run.dir={folder}/run") if program == ("run.py",) else (*words, "--out", f"{folder}/run")
    return files(folder, process(*words, program=program, environment=environment))


def files(folder, done):
    assert done.returncode == 0, done.stderr
    suffixes = (".parquet", ".csv", ".tex", ".md", ".html", ".svg")
    every = contents(folder).items()
    with_times = ("/cells.", "/tasks.parquet")
    results = {name: content for name, content in every if name.endswith(suffixes) and not is_of(name, with_times)}
    assert results
    return results


def is_of(name, parts):
    return any(part in name for part in parts)


@pytest.fixture(scope="session")
def pages(tmp_path_factory, crawl):  # noqa: F811
    """Return a folder of 20 files with the first 500 pages of the crawl, each a shard."""
    folder = tmp_path_factory.mktemp("pages")
    lines = crawl.read_text().splitlines(keepends=True)[:500]
    for number in range(20):
        (folder / f"{number:02}.jsonl").write_text("".join(lines[25 * number : 25 * (number + 1)]))
    return folder


DOORS = {
    "run.py": lambda pages: ("data=jsonl", f"data.path={pages}"),
    "command": lambda pages: ("inspect", pages, "--no-open", "--boilerplate", "keep"),
}
SERIAL = {"run.py": ("engine=serial",), "command": ("--engine", "serial")}


@pytest.fixture(scope="session", params=DOORS)
def expected(request, tmp_path_factory, pages):
    folder = tmp_path_factory.mktemp("expected")  # by this process, with its hash seed
    words = (*DOORS[request.param](pages), *SERIAL[request.param])
    if request.param == "command":
        return request.param, files(folder, command(*words, "--out", f"{folder}/run"))
    return request.param, files(folder, front_door(*words, f"hydra.run.dir={folder}/run"))


WAYS = {
    "run.py": {
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
    },
    "command": {
        "hash seed 1": ((), {"PYTHONHASHSEED": "1"}),
        "8 workers": (("--workers", 8), {}),
        "on disk": (("--memory", "1GB", "--engine", "serial"), {}),
        "on disk, 2 workers": (("--memory", "2GB", "--workers", 2), {}),
        "on disk, dask": (("--memory", "2GB", "--engine", "dask", "--workers", 2), {}),
    },
}
QUICK = "8 workers"
EVERY_WAY = dict.fromkeys(way for ways in WAYS.values() for way in ways)


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[] if way == QUICK else pytest.mark.long) for way in EVERY_WAY]
)
def test_pairs_clusters_lists_and_the_page(way, pages, expected, tmp_path):
    door, files_of_door = expected
    if way not in WAYS[door]:
        pytest.skip("a way of another door")
    require_engine(way)
    words, environment = WAYS[door][way]
    environment = {name: value.replace("{folder}", str(tmp_path)) for name, value in environment.items()}
    program = ("run.py",) if door == "run.py" else ("-m", "spotsigs")
    actual = finish(tmp_path / "run", *DOORS[door](pages), *words, program=program, **environment)
    assert actual == files_of_door


def require_engine(way):
    if "dask" in way and not available("distributed"):
        pytest.skip("needs distributed")


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
    [("workers=1", "0"), ("workers=2", "1"), ("workers=8", "4242"), ("engine=dask workers=2", "2")],
)  # fmt: skip
def test_tables_and_figures(words, seed, expected_table, tmp_path):
    require_engine(words)
    assert table(tmp_path / "table", words.split(), seed) == expected_table
