"""The same bytes after a kill at any moment or two concurrent runs; no process after an interrupt."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import in_process
import psutil
import pytest
from test_engines import available

from spotsigs.storage.manifest import MANIFEST

ROOT = Path(__file__).parents[2]

ON_DISK = """
import sys
from pathlib import Path
from spotsigs.formats.jsonl import Jsonl
from spotsigs.workers.engines import Dask, Processes, Serial
from spotsigs.outofcore.pipeline import Store
from spotsigs.clustering.tables import write_pairs
from spotsigs.method import Method

if __name__ == "__main__":
    engine = {"serial": Serial(), "processes": Processes(workers=2), "dask": Dask(workers=2)}[sys.argv[1]]
    store = Store(
        folder=Path(sys.argv[3]) / "store", method=Method().at(0.5), engine=engine,
        memory=1_700_000_000,
    )
    found = store.match(Jsonl(path=sys.argv[2], shard_bytes=30_000))
    write_pairs(Path(sys.argv[3]) / "pairs.parquet", found.doc_ids, found.pairs)
"""


def start(*words):
    """Start Python in a session of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return in_process.started(program=words, start_new_session=True, text=True, **pipes)


@contextmanager
def started(*words):
    """Start Python, and end it and all that it has started."""
    with start(*words) as process:
        try:
            yield process
        finally:
            end_orphans([process.pid])


TIMED = {"cells", "tasks", Path(MANIFEST).stem}
"""Names of files with times: of finished cells, of tasks, and of the files of a copy."""


@dataclass(frozen=True)
class Job:
    """A command that writes into a folder, and which of the files there must not differ."""

    name: str
    command: tuple[str, ...]
    results: tuple[str, ...]

    def start(self, folder):
        return start(*(word.replace("{folder}", str(folder)) for word in self.command))

    def finish(self, folder):
        process = self.start(folder)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err

    def content(self, folder):
        paths = [path for way in self.results for path in folder.glob(way) if path.stem not in TIMED]
        contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        assert contents
        return contents


@pytest.fixture(scope="session")
def crawl(tmp_path_factory):
    """Return a file of 2,000 pages, some of them near-duplicates."""
    rng = random.Random(2008)
    words = [f"w{k}" for k in range(3000)]
    path = tmp_path_factory.mktemp("crawl") / "x.jsonl"
    with path.open("w") as out:
        for k in range(2000):
            if k % 4 == 0:
                page = [rng.choice(("the", "a", "is", "was", rng.choice(words))) for _ in range(150)]
            page[rng.randrange(150)] = rng.choice(words)
            out.write(json.dumps({"id": str(k), "text": " ".join(page)}) + "\n")
    return path


def jobs(crawl):
    run = f"run.py data=jsonl data.path={crawl} +data.shard_bytes=100_000 workers=2"
    run += " hydra.run.dir={folder}"
    sweep = "run.py experiment=chain_length data=tiny workers=2 experiment.results={folder} hydra.run.dir={folder}/run"
    tables = tuple(f"chain_length/*.{kind}" for kind in ("csv", "md", "tex", "svg"))
    inspect = f"-m spotsigs inspect {crawl} --no-open --workers 2"
    inspect += " --out {folder}"
    dedup = f"-m spotsigs dedup {crawl} --workers 2 --overwrite"
    dedup += " --out {folder}/kept --store {folder}/store"
    return {
        "dedup": Job("dedup", tuple(dedup.split()), ("kept/*", "kept-results/*.csv", "kept-results/*.parquet")),
        "run": Job("run", tuple(run.split()), ("*.parquet", "*.csv")),
        "inspect": Job("inspect", tuple(inspect.split()), ("*.parquet", "*.csv", "clusters.html")),
        "sweep": Job("sweep", tuple(sweep.split()), tables),
        **{
            engine: Job(engine, ("-c", ON_DISK, engine, str(crawl), "{folder}"), ("pairs.parquet", "store/**/*.npy"))
            for engine in ("serial", "processes", "dask")
        },
    }


def kill_at_random(job, folder, kills, rng, longest):
    """Start the job again and again and kill it at random moments, sometimes with its workers; return the kills."""
    hits, orphans = [], []
    while len(hits) < kills:
        process = job.start(folder)
        moment = rng.uniform(0.05, longest)
        try:
            process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            hits.append(moment)
            if rng.random() < 0.5:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()  # its workers continue for a while, concurrently with the next start
                orphans.append(process.pid)
            process.wait()
        else:
            assert process.returncode == 0
            shutil.rmtree(folder)  # it was done before
    return hits, orphans


def end_orphans(groups):
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


KILLS = {"run": 7, "inspect": 7, "sweep": 10, "serial": 10, "processes": 10, "dask": 6}


@pytest.mark.parametrize(
    ("name", "kills"), [("processes", 1), *(pytest.param(*job, marks=pytest.mark.long) for job in KILLS.items())]
)
def test_a_job_that_is_killed_and_run_again_gives_the_same_bytes(name, kills, crawl, tmp_path):
    if name == "dask" and not available("distributed"):
        pytest.skip("needs distributed")
    job = jobs(crawl)[name]
    began = time.monotonic()
    job.finish(tmp_path / "undisturbed")
    longest = time.monotonic() - began
    hits, orphans = kill_at_random(job, tmp_path / "killed", kills, random.Random(kills), longest)
    try:
        job.finish(tmp_path / "killed")
    finally:
        end_orphans(orphans)
    assert len(hits) == kills
    assert job.content(tmp_path / "killed") == job.content(tmp_path / "undisturbed")
    if orphans:  # which may have written until now
        job.finish(tmp_path / "killed")
        assert job.content(tmp_path / "killed") == job.content(tmp_path / "undisturbed")
    assert not [path for path in (tmp_path / "killed").rglob("*") if ".writing-" in path.name]


@pytest.mark.long
def test_a_run_with_a_store_is_killed_at_thirty_moments_spread_over_it(crawl, tmp_path):
    job, killed = jobs(crawl)["dedup"], 0
    job.finish(tmp_path / "undisturbed")  # compiles
    for number in range(30):
        if number % 5 == 0:  # what else runs on the machine changes how long a run takes
            shutil.rmtree(tmp_path / "undisturbed")
            began = time.monotonic()
            job.finish(tmp_path / "undisturbed")
            longest = time.monotonic() - began
        expected = job.content(tmp_path / "undisturbed")
        process = job.start(tmp_path / "killed")
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=longest * (number + 0.5) / 30)
        end_orphans([process.pid])
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        job.finish(tmp_path / "killed")
        assert job.content(tmp_path / "killed") == expected, number
        assert {path.name for path in (tmp_path / "killed").iterdir()} == {"kept", "kept-results", "store"}
        # a folder that was not yet proved to be the program's is empty, and stays
        assert not list((tmp_path / "killed").rglob("*.writing-*/*"))
        shutil.rmtree(tmp_path / "killed")
    sys.stdout.write(f"{killed} of 30 runs of {longest:.1f} s were killed before their end\n")
    assert killed > 20


def test_staging_folders_of_killed_processes_are_removed_and_of_running_ones_are_not(tmp_path):
    code = (
        "import sys, time, os, pathlib\nfrom spotsigs.storage.atomic import staging_folder\n"
        "with staging_folder(pathlib.Path(sys.argv[1], 'x')) as folder:\n"
        "    (folder / 'half').write_text('half')\n    print(folder, flush=True)\n    time.sleep(600)\n"
    )
    with ExitStack() as stack:
        killed, running = (stack.enter_context(started("-c", code, str(tmp_path))) for _ in range(2))
        abandoned, used = (Path(writer.stdout.readline().strip()) for writer in (killed, running))
        killed.kill()
        killed.wait()
        assert abandoned.exists()
        done = code.replace("time.sleep(600)", "pass")
        subprocess.run([sys.executable, "-c", done, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
        assert list(tmp_path.iterdir()) == [used.parent]
        assert (used / "half").read_text() == "half"


# two at once


@pytest.mark.long
def test_two_runs_in_one_folder_write_the_results_of_one_of_them(crawl, tmp_path):
    words = ("run.py", "data=jsonl", f"data.path={crawl}", "engine=serial", "hydra.run.dir={folder}")
    files = ("*.parquet", "*.csv", ".hydra/overrides.yaml")
    one, other = (Job("run", (*words, f"tau={tau}"), files) for tau in (0.4, 0.9))
    expected = []
    for job, folder in ((one, "one"), (other, "other")):
        job.finish(tmp_path / folder)
        actual = job.content(tmp_path / folder)
        actual.pop(".hydra/overrides.yaml")
        expected.append((json.loads((tmp_path / folder / "metrics.json").read_text())["tau"], actual))
    assert expected[0][1] != expected[1][1]
    running = [job.start(tmp_path / "both") for job in (one, other)]
    for process in running:
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
    actual = one.content(tmp_path / "both")
    tau = json.loads((tmp_path / "both" / "metrics.json").read_text())["tau"]
    assert f"- tau={tau}\n" in actual.pop(".hydra/overrides.yaml").decode()
    assert (tau, actual) in expected


# Ctrl-C


# What a shell starts in the background ignores the signal, and so does all that it starts in turn.
TAKES_INTERRUPTS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

MATCHING = (
    TAKES_INTERRUPTS
    + """
sys.argv = ["run.py", "data=tiny", *sys.argv[1:]]
import spotsigs.matching.algorithm1
import numba, time

@numba.njit(nogil=True)
def work():
    total = 0
    for k in range(2**62):
        total += (total ^ k) % 7
    return total

work.compile("()")

def endless(self, corpus):
    print("matching", flush=True)
    work()

spotsigs.matching.algorithm1.SpotSigs.__call__ = endless
import runpy
runpy.run_path("run.py", run_name="__main__")
"""
)

READING = (
    TAKES_INTERRUPTS
    + """
sys.argv = ["run.py", *sys.argv[1:]]
import runpy
import spotsigs.workers.engines
one_by_one = spotsigs.workers.engines.in_task_order

def watched(*given, **named):
    for number, result in enumerate(one_by_one(*given, **named)):
        if number == 2:
            print("reading", flush=True)
        yield result

spotsigs.workers.engines.in_task_order = watched
runpy.run_path("run.py", run_name="__main__")
"""
)


@pytest.fixture(scope="session")
def large_crawl(crawl):
    path = crawl.with_name("large.jsonl")
    content = crawl.read_bytes()
    with path.open("wb") as out:
        for _ in range(60):
            out.write(content)
    return path


@pytest.mark.parametrize(
    ("stage", "to_all"),
    [
        pytest.param("reading", True, id="reading, to its group, as a terminal does"),
        pytest.param("matching", False, id="matching, to the process"),
        pytest.param("reading", False, id="reading, to the process", marks=pytest.mark.long),
        pytest.param("matching", True, id="matching, to its group", marks=pytest.mark.long),
    ],
)
def test_an_interrupted_run_ends_soon_and_no_worker_remains(stage, to_all, large_crawl, tmp_path):
    more = [f"hydra.run.dir={tmp_path}/run", "workers=2"]
    if stage == "reading":
        more += ["data=jsonl", f"data.path={large_crawl}", "+data.shard_bytes=300_000"]
    with started("-c", READING if stage == "reading" else MATCHING, *more) as process:
        for line in process.stdout:
            if line.strip() == stage:
                break
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers or stage == "matching"
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        sent = time.monotonic()
        _, err = process.communicate(timeout=60)  # it takes a second or two; a machine may be busy
    sys.stdout.write(f"ended after {time.monotonic() - sent:.2f} s\n")
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("stopped: finished results are complete")
    assert "Traceback" not in err
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not alive
    assert not (tmp_path / "run" / "metrics.json").exists()


CROWDED = """
import sys, time
from spotsigs.workers import engines
in_order = engines.in_task_order
# more than the pool hands to its workers at once, so that tasks always wait
engines.in_task_order = lambda submit, tasks, window, interrupted: in_order(submit, tasks, 60, interrupted)
results = engines.Processes(workers=2).map(time.sleep, [0] * 5 + [600] * 95)
[next(results) for _ in range(3)]
try:
    results.throw(KeyboardInterrupt)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_tasks_that_wait_when_a_run_is_interrupted_print_no_traceback():
    with started("-c", CROWDED) as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, "interrupted\n", "")


def test_an_interrupt_while_modules_are_imported_ends_without_a_traceback(tmp_path):
    (tmp_path / "hydra.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(600)\n")
    code = "import runpy\nsys.argv = ['run.py']\nrunpy.run_path('run.py', run_name='__main__')\n"
    with started("-c", f"{TAKES_INTERRUPTS}sys.path.insert(0, {str(tmp_path)!r})\n{code}") as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (-signal.SIGINT, "")


@pytest.mark.parametrize(
    "closed", [*(pytest.param(one, marks=pytest.mark.long) for one in (">&-", "2>&-")), "<&- >&- 2>&-"]
)
def test_streams_that_the_caller_closed_are_no_fault(closed, tmp_path):
    command = f'"{sys.executable}" run.py data=tiny engine=serial hydra.run.dir="{tmp_path}/run" {closed}'
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["documents"] == 45


@pytest.mark.parametrize("words", [["--help"], ["data=tiny", "engine=serial"]], ids=["help", "a run"])
def test_output_to_a_closed_pipe_ends_it_quietly(words, tmp_path):
    given, taken = os.pipe()
    os.close(given)
    with os.fdopen(taken, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "run.py", *words, f"hydra.run.dir={tmp_path}/run"],
            cwd=ROOT,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")
    assert (tmp_path / "run" / "metrics.json").exists() == (words != ["--help"])  # results come before the summary
