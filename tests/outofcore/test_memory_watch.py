"""The memory of all processes of a run, as the kernel reports it."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from spotsigs.runs.provenance import PeakMemory, TreeMemory, memory_of_all

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
MB = 10**6
CHILD = "import sys; own = bytearray(60_000_000); print('ready', flush=True); sys.stdin.read()"
PARENT = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {CHILD!r}]).returncode)"


@linux
def test_the_memory_of_workers_and_of_their_workers_is_added_up():
    before, processes = memory_of_all()
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"ready\n"
        during, more = memory_of_all()
        parent.communicate()
    assert more == processes + 2
    assert 60 * MB < during - before < 100 * MB
    assert memory_of_all()[1] == processes


@linux
def test_pages_of_mapped_files_are_not_counted(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(100 * MB // 8))
    before, _ = memory_of_all()
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert mapped.sum() == 100 * MB // 8
    assert memory_of_all()[0] - before < 20 * MB


@linux
def test_watching_costs_less_than_a_hundredth_of_a_core():
    with TreeMemory() as memory:
        began, core = time.perf_counter(), time.process_time()
        time.sleep(3)
        share = (time.process_time() - core) / (time.perf_counter() - began)
    assert share < 0.01
    assert memory.peak_bytes > 10 * MB


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs the record of the kernel")
def test_a_short_peak_is_seen_and_an_earlier_one_is_not():
    with PeakMemory() as large:
        own = bytearray(200 * MB)
        del own
    with PeakMemory() as small:
        pass
    assert large.peak_bytes >= 200 * MB
    assert small.peak_bytes < large.peak_bytes - 150 * MB
