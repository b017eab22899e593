"""The simulation of more workers, from a log of tasks."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from experiments.harness.schedule import CALLING_PROCESS, StageLog, makespan, planned, read_log, simulated, work_of
from spotsigs.storage.tasks import in_caller, run_tasks, task_log
from spotsigs.workers.engines import Serial

seconds = st.integers(1, 20).map(float)


def by_ticks(tasks, workers):
    """Return the ticks until all tasks have ended, a tick at a time."""
    waiting, running, ticks = list(tasks), [], 0
    while waiting or running:
        while waiting and len(running) < workers:
            running.append(waiting.pop(0))
        running = [left - 1 for left in running if left > 1]
        ticks += 1
    return ticks


@examples(100)
@given(st.lists(seconds, max_size=15), st.integers(1, 6))
def test_tasks_begin_in_order_on_the_first_free_worker(tasks, workers):
    assert makespan(tasks, workers) == by_ticks(tasks, workers)


@examples(50)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(seconds, max_size=6), seconds), min_size=1, max_size=6))
def test_stages_wait_for_each_other_and_for_the_calling_process(parts):
    stages = [StageLog(*part) for part in parts]
    alone = simulated(stages, 1)
    assert sum(alone.values()) == sum(max(sum(stage.tasks), stage.caller) for stage in stages)
    endless = simulated(stages, 1000)
    assert sum(endless.values()) == sum(max(*stage.tasks, stage.caller, 0.0) for stage in stages)
    assert sum(work_of(stages).values()) == sum(sum(stage.tasks) or stage.caller for stage in stages)


def test_a_plan_multiplies_tasks_by_the_power_of_their_stage():
    stages = [
        StageLog("reading", [2.0, 4.0], 0.1),
        StageLog("before joining", [], 3.0),
        StageLog("joining", [5.0], 0.0),
    ]
    plan = dict(planned(stages, 10, 3, {"joining": 2.0}))
    assert plan == pytest.approx({"reading": 60 / 3 + 4, CALLING_PROCESS: 30.0, "joining": 500 / 3 + 5})


def test_the_log_of_a_run_is_read_as_it_was(tmp_path):
    with task_log() as log:
        with in_caller("sorting"):
            time.sleep(0.05)
        list(run_tasks(Serial(), time.sleep, [0.02, 0.03, 0.01], "reading"))
    log.write(tmp_path / "tasks.parquet")
    stages = read_log(tmp_path / "tasks.parquet")
    [reading] = [stage for stage in stages if stage.tasks]
    assert reading.name == "reading"
    assert reading.tasks == pytest.approx([0.02, 0.03, 0.01], abs=0.1)
    assert sum(simulated(stages, 1).values()) >= 0.11
    assert makespan(reading.tasks, 2) < sum(reading.tasks)
