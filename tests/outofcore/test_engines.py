"""Every engine gives the same results in the same order, also when a worker dies in the middle."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from stores import PARTS, content, edited_copies, save_vectors, stories, written
from strategies import triples

import spotsigs
from spotsigs.arrays.kernel_cache import marker, step_marker
from spotsigs.errors import InputError, shown
from spotsigs.matching.brute_force import BruteForce
from spotsigs.outofcore import block_join, segments, vectorize
from spotsigs.outofcore.block_join import join_store
from spotsigs.records import Corpus
from spotsigs.workers import engines
from spotsigs.workers.engines import Dask, Processes, Serial, in_task_order, run_alone


def available(module):
    return importlib.util.find_spec(module) is not None


def needs(module):
    """Return the marks of a test of an engine that may not be installed."""
    return [pytest.mark.long, pytest.mark.skipif(not available(module), reason=f"needs {module}")]


ENGINES = [
    pytest.param(Serial(), id="serial"), pytest.param(Processes(workers=2), id="processes"),
    pytest.param(Dask(workers=2), id="dask", marks=needs("distributed")),
]  # fmt: skip


def sent():
    """Return functions that travel to workers by value: these need not find the tests."""

    def square(number):
        return number * number, os.getpid()

    def dies(number, at, parent, marker=None):
        """Kill the worker of a task, as the kernel does when memory runs out; with a marker only once."""
        if number == at and os.getpid() != parent and not (marker and marker.exists()):
            if marker:
                marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    def dies_second(task, call, parent, marker, **more):
        """Kill the worker of a task after another task has begun, once."""
        begun = marker.with_name("begun")
        if os.getpid() != parent and begun.exists() and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        begun.touch()
        return call(task, **more)

    def dies_never(number):
        return number

    def refuses(number):
        if number == 3:
            raise InputError("task 3 is refused")
        return number

    return square, dies, dies_second, dies_never, refuses


square, dies, dies_second, dies_never, refuses = sent()


@pytest.mark.parametrize("engine", ENGINES)
def test_results_come_in_task_order(engine):
    results = list(engine.map(square, iter(range(30))))
    assert [value for value, _ in results] == [k * k for k in range(30)]
    assert list(engine.map(square, [])) == []
    assert (os.getpid() in {pid for _, pid in results}) == isinstance(engine, Serial)


def test_kernels_of_this_package_are_compiled_by_the_first_task_on_a_machine_alone(tmp_path, monkeypatch):
    """Later runs find a marker, which names the sources of the whole package."""
    assert step_marker("a").name.startswith(marker(Path(spotsigs.__file__).parent, "-a-").name)
    monkeypatch.setattr(engines, "step_marker", tmp_path.joinpath)
    assert list(Processes(workers=2).map(shown, [1, 2, 3])) == ["1", "2", "3"]
    assert [path.name for path in tmp_path.iterdir()] == ["spotsigs.errors.shown"]


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_a_killed_worker_loses_nothing(engine, tmp_path):
    task = partial(dies, at=5, parent=os.getpid(), marker=tmp_path / "died")
    assert list(engine.map(task, range(20))) == list(range(20))
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_a_task_that_always_kills_its_worker_ends_a_run_with_a_sentence(engine):
    tasks = engine.map(partial(dies, at=5, parent=os.getpid()), range(20))
    with pytest.raises(InputError, match=r"a worker process died 4 times: is there|could not run a task") as refused:
        list(tasks)
    assert "\n" not in str(refused.value)
    assert list(engine.map(dies_never, range(3))) == [0, 1, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_of_a_task_is_raised_as_it_is(engine):
    with pytest.raises(InputError) as refused:
        list(engine.map(refuses, range(20)))
    assert str(refused.value) == "task 3 is refused"


@pytest.mark.parametrize("calls", [{0}, {3}, {2, 3, 4}, {11}])
def test_a_pool_may_break_while_tasks_are_handed_over(calls):
    """Between asking for the pool and giving it a task, a worker may be found dead; here at these calls."""
    made = count()

    def submit(task):
        if next(made) in calls:
            raise BrokenProcessPool("a worker died")
        future = Future()
        future.set_result(task * task)
        return future

    assert list(in_task_order(submit, iter(range(10)), 3)) == [k * k for k in range(10)]


def test_a_pool_that_breaks_with_every_task_is_given_up():
    def submit(task):
        raise BrokenProcessPool("a worker died")

    with pytest.raises(InputError, match="a worker process died 4 times"):
        list(in_task_order(submit, iter(range(10)), 3))


LONG = pytest.mark.long


@pytest.mark.parametrize("engine", ENGINES)
def test_pairs_are_identical_with_a_worker_killed(engine, tmp_path, monkeypatch):
    vectors = edited_copies(7)
    save_vectors(tmp_path / "v", vectors)
    harmful = partial(dies_second, call=block_join.join_blocks, parent=os.getpid(), marker=tmp_path / "died")
    monkeypatch.setattr(block_join, "join_blocks", harmful)
    pairs = join_store(tmp_path / "v", tmp_path / "p", 0.5, engine, memory=15_000)
    assert triples(pairs) == triples(BruteForce(tau=0.5)(Corpus(vectors)))
    assert (tmp_path / "died").exists() == (not isinstance(engine, Serial))
    content = b"".join(p.read_bytes() for p in sorted((tmp_path / "p").rglob("*.npy")))
    again = join_store(tmp_path / "v", tmp_path / "q", 0.5, Serial(), memory=15_000)
    assert b"".join(p.read_bytes() for p in sorted((tmp_path / "q").rglob("*.npy"))) == content
    np.testing.assert_array_equal(again.i, pairs.i)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return extracted segments and the content of their vectors."""
    folder = tmp_path_factory.mktemp("undisturbed")
    collection = written(folder / "x.jsonl", stories(300))
    parts = segments.extract_segments(folder / "s", collection, *PARTS[:2], Serial())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vectorize, "LEAST_ENTRIES", 400)
        vectorize.build_vectors(folder / "q", parts, PARTS[2], memory=10**8)
    return parts, content(folder / "q")


@pytest.mark.parametrize(
    "step", ["tally_hashes", *(pytest.param(step, marks=LONG) for step in ("scatter_hashes", "number_rows"))]
)
@pytest.mark.parametrize("engine", ENGINES[1:])
def test_vectors_are_identical_with_a_worker_killed(engine, step, undisturbed, tmp_path, monkeypatch):
    monkeypatch.setattr(vectorize, "LEAST_ENTRIES", 400)
    parts, expected = undisturbed
    harmful = partial(dies_second, call=getattr(vectorize, step), parent=os.getpid(), marker=tmp_path / "died")
    monkeypatch.setattr(vectorize, step, harmful)
    vectorize.build_vectors(tmp_path / "p", parts, PARTS[2], memory=300_000, engine=engine)
    assert (tmp_path / "died").exists()
    assert content(tmp_path / "p") == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_extraction_is_identical_with_a_worker_killed(engine, tmp_path):
    collection = written(tmp_path / "x.jsonl", stories(300))
    text = partial(dies_second, call=PARTS[0], parent=os.getpid(), marker=tmp_path / "died")
    for folder, used in (("p", engine), ("q", Serial())):
        extracted = segments.extract_segments(tmp_path / folder, collection, text, PARTS[1], used)
    assert len(extracted.folders) > 7
    assert (tmp_path / "died").exists() == (not isinstance(engine, Serial))
    p, q = content(tmp_path / "p"), content(tmp_path / "q")
    differing = {path.name for path in p.keys() | q.keys() if p.get(path) != q.get(path)}
    assert differing <= {"source.json"}  # names the extractor by its address


def test_tasks_name_their_files_for_workers_in_other_folders(tmp_path, monkeypatch):
    class Elsewhere:
        processes = 0

        def map(self, function, tasks):
            for task in tasks:
                with monkeypatch.context() as there:
                    there.chdir("/")
                    result = function(task)
                yield result

    monkeypatch.chdir(tmp_path)
    vectors = edited_copies(7)
    save_vectors("v", vectors)
    expected = triples(BruteForce(tau=0.5)(Corpus(vectors)))
    assert triples(join_store("v", "p", 0.5, Elsewhere(), memory=15_000)) == expected
    collection = written(tmp_path / "x.jsonl", stories(30))
    segments.extract_segments("s", collection, *PARTS[:2], Elsewhere())
    assert segments.finished_segments(tmp_path / "s").sizes().sum() == 30


def test_engines_refuse_no_workers():
    for engine in (Processes, Dask):
        with pytest.raises(InputError, match="workers must be at least 1, got 0"):
            engine(workers=0)


@pytest.mark.long
@pytest.mark.skipif(not available("distributed"), reason="needs distributed")
def test_a_scheduler_that_does_not_answer(monkeypatch):
    with pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        list(Dask(address="tcp://127.0.0.1:9").map(square, [1]))


def test_a_missing_extra_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"engine=dask needs distributed: pip install 'spotsigs\[dask\]'"):
        list(Dask(workers=3).map(square, [1]))


def nested(engine):
    """Run tasks in a worker of a pool, which may start no processes."""
    return list(engine.map(abs, range(-4, 0)))


def test_tasks_run_in_a_worker_of_a_pool(tmp_path):
    """`workers=2` there was an AssertionError of multiprocessing."""
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(nested, (Processes(workers=2),)) == [4, 3, 2, 1]


def test_a_function_alone_has_a_process_of_its_own_and_a_limit():
    assert run_alone(os.getpid) != os.getpid()
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        run_alone(partial(time.sleep, 60), 0.5)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("name", engines.DASK_HERE)
def test_dask_has_the_settings_that_are_changed(name):
    config = pytest.importorskip("dask.config")
    pytest.importorskip("distributed")
    defaults = config.merge(*config.defaults)
    assert config.get(name, config=defaults) != engines.DASK_HERE[name]


@pytest.mark.long
@pytest.mark.skipif(not available("distributed"), reason="needs distributed")
def test_dask_leaves_no_folder_of_its_own(tmp_path):
    code = "from spotsigs.workers.engines import Dask; print(list(Dask(workers=2).map(abs, [-1, -2])))"
    guarded = f"if __name__ == '__main__':\n    {code.replace('; ', chr(10) + '    ')}\n"
    (tmp_path / "run.py").write_text(guarded)
    (tmp_path / "scratch").mkdir()
    done = subprocess.run(
        [sys.executable, tmp_path / "run.py"],
        env=os.environ | {"TMPDIR": str(tmp_path / "scratch"), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[1, 2]\n"
    assert not list((tmp_path / "scratch").iterdir())


def test_workers_that_are_started_import_a_module_before_any_task(tmp_path, monkeypatch):
    engines.end_workers()
    (tmp_path / "imported_early.py").write_text(
        f"import os, pathlib\npathlib.Path({str(tmp_path)!r}, f'by-{{os.getpid()}}').touch()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(engines, "all_cores", lambda: 2)
    Processes(workers=1).start("imported_early")  # which has no worker
    assert not engines._POOL
    Processes(workers=2).start("imported_early")
    engines.end_workers()  # waits for them
    importers = {path.name for path in tmp_path.glob("by-*")}
    assert 1 <= len(importers) <= 2
    assert f"by-{os.getpid()}" not in importers
