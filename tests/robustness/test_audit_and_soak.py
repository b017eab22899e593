"""An audit without a vulnerability database fails; a short soak writes its samples (`make soak`: half an hour)."""

import pytest
from audit import verdict
from folders import TESTS, rows_of
from in_process import process

CLEAN = {"name": "a", "version": "1.0", "vulns": []}
KNOWN = {"name": "b", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1", "3.0"]}]}
OPEN = {"name": "d", "version": "4.0", "vulns": [{"id": "CVE-2", "fix_versions": []}]}
NO_DATABASE = "no vulnerability database answers here, so nothing was looked up: run this again with a network"
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("versions", "code", "message"),
    [
        ([CLEAN, CLEAN], 0, "nothing is known about any of the 2 pinned versions"),
        ([CLEAN, KNOWN], 1, "b 2.0: CVE-1, mended in 2.1 or 3.0"),
        ([OPEN, SKIPPED], 1, "d 4.0: CVE-2, mended in no version yet"),
        ([CLEAN, SKIPPED], 2, "not looked up: c; nothing is known about the other 1"),
        *((nothing, 2, NO_DATABASE) for nothing in ([SKIPPED, SKIPPED], [], None)),
    ],
)
def test_the_verdict(versions, code, message):
    assert verdict(versions) == (code, [message])


@pytest.mark.long
def test_a_short_soak_writes_its_samples(tmp_path):
    run = process("--minutes", 0.3, "--folder", tmp_path, program=[str(TESTS / "helpers" / "soak.py")])
    assert "by 8 workers" in run.stdout, run.stderr  # growth is detected by a long one
    rows = rows_of(tmp_path / "soak.csv")
    assert len(rows) > 3
    assert max(int(row["processes"]) for row in rows) >= 9
