"""Run a machine on ever other inputs for a while: `python tests/fuzz/machines.py stores 360`, or all by `make fuzz`.

What fails is printed as the steps of a test, as short as Hypothesis can make them; once mended, they become one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", deadline=None, max_examples=20, stateful_step_count=20, database=None, print_blob=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
settings.load_profile("quick")

import test_oracles
from hypothesis.stateful import run_state_machine_as_test
from test_copy_machine import Copies
from test_store_machine import Stores


def stores() -> int:
    """Twenty lives of a store, of twenty steps."""
    run_state_machine_as_test(Stores, settings=settings())
    return 20


def copies() -> int:
    """Twenty lives of a collection, of twenty steps."""
    run_state_machine_as_test(Copies, settings=settings())
    return 20


def pages() -> int:
    """A mutant of each kind of each page."""
    seed = random.randrange(2**32)
    for kind in test_oracles.MUTANTS:
        test_oracles.check_text(kind, seed)
    return len(test_oracles.MUTANTS) * len(test_oracles.pages())


MACHINES: dict[str, Callable[[], int]] = {"stores": stores, "copies": copies, "pages": pages}


def main() -> None:
    """Run the machine named first for so many seconds."""
    name, until = sys.argv[1], monotonic() + float(sys.argv[2])
    done = 0
    while monotonic() < until:
        done += MACHINES[name]()
    sys.stdout.write(f"{name}: {done:,} inputs, nothing found\n")


if __name__ == "__main__":
    main()
