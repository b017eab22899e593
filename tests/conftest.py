import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # for the twins and strategies

# Kernels compile inside the first example, so no deadline; the same examples on every machine.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=60, suppress_health_check=list(HealthCheck)
)
# Interpreted kernels, whose lines coverage can count, are a hundred times slower.
settings.register_profile("interpreted", settings.get_profile("repeatable"), max_examples=5)
settings.load_profile("interpreted" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "repeatable")
