"""An audit without a vulnerability database fails."""

import pytest
from audit import verdict

CLEAN = {"name": "a", "version": "1.0", "vulns": []}
KNOWN = {"name": "b", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1", "3.0"]}]}
OPEN = {"name": "d", "version": "4.0", "vulns": [{"id": "CVE-2", "fix_versions": []}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("versions", "code", "message"),
    [
        ([CLEAN, CLEAN], 0, ["nothing is known about any of the 2 pinned versions"]),
        ([CLEAN, KNOWN], 1, ["b 2.0: CVE-1, mended in 2.1 or 3.0"]),
        ([OPEN, SKIPPED], 1, ["d 4.0: CVE-2, mended in no version yet"]),
        ([CLEAN, SKIPPED], 2, ["not looked up: c; nothing is known about the other 1"]),
        *(
            (
                nothing,
                2,
                ["no vulnerability database answers here, so nothing was looked up: run this again with a network"],
            )
            for nothing in ([SKIPPED, SKIPPED], [], None)
        ),
    ],
)
def test_the_verdict(versions, code, message):
    assert verdict(versions) == (code, message)
