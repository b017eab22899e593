"""Compilation of the kernels before the stages of a run."""

from itertools import chain

import pytest
from in_process import ROOT, process

from spotsigs.compile import STEPS, balanced_groups

COUNTED = """
import gc, sys
from numba.core.dispatcher import Dispatcher
from spotsigs import cli
from spotsigs.compile import STEPS

def signatures():
    return {(k.py_func.__module__, k.py_func.__name__): set(k.signatures) for k in gc.get_objects()
            if isinstance(k, Dispatcher) and k.py_func.__module__.startswith("spotsigs")}

for name in %s:
    STEPS[name][1]()
before = signatures()
for words in %s:
    cli.main(words)
print({name: kinds for name, kinds in signatures().items() if kinds - before.get(name, set())})
"""


def test_a_run_calls_no_kernel_that_no_step_has_compiled(tmp_path):
    tiny = str(ROOT / "data" / "tiny")
    words = [[verb, tiny, "--out", str(tmp_path / verb), "--workers", "1"] for verb in ("dedup", "cluster")]
    code = COUNTED % (list(STEPS), words)
    assert process(program=("-c", code)).stdout.splitlines()[-1] == "{}"


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_steps_are_shared_out_once_and_evenly(processes):
    groups = balanced_groups(list(STEPS), processes)
    assert sorted(chain.from_iterable(groups)) == sorted(STEPS)
    loads = [sum(STEPS[step][0] for step in group) for group in groups]
    assert max(loads) <= max(sum(loads) / len(groups) * 4 / 3, max(seconds for seconds, _ in STEPS.values()))
