import os
import signal
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
from folders import FOLDERS

sys.path[:0] = FOLDERS
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that tests start would parse all that they import

# Kernels compile inside the first example, so no deadline; the same examples on every machine.
CHECKS = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", derandomize="FUZZ" not in os.environ, max_examples=60, **CHECKS)
settings.register_profile("long", settings.get_profile("quick"), max_examples=1000)
# Interpreted kernels, whose lines coverage can count, are a hundred times slower.
settings.register_profile("interpreted", settings.get_profile("quick"), max_examples=5)


def pytest_configure(config):
    """Draw few examples, and thousands in the long tests, see `strategies.examples`."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        settings.load_profile("interpreted")
    else:
        settings.load_profile("quick" if "not long" in config.option.markexpr else "long")


@pytest.fixture(autouse=True)
def interrupts_of_this_process():
    """Leave SIGINT to the tests: the command, called in this process, would end it a second after the signal."""
    with patch("spotsigs.reports.terminal.end_on_interrupt"):
        yield
    signal.signal(signal.SIGINT, signal.default_int_handler)
