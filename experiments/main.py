"""The entry point of ``python run.py``: compose the configuration, check the settings, run."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come out of main(), and `sentence` says each in one line

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from experiments.config import files, moved, overrides, sentence, settings
from experiments.finished_runs import next_command, replaced_results, require_same, score
from spotsigs import interrupts
from spotsigs.runs.settings import Settings
from spotsigs.startup import expand_home

CONF = Path(__file__).parents[1] / "conf"
"""The configuration of the checkout."""


@hydra.main(version_base="1.3", config_path=str(CONF.absolute()), config_name="config")
def main(config: DictConfig) -> float | None:
    """Check the whole configuration, then run it; return the F1, which a sweeper may optimise."""
    alone = HydraConfig.get().mode is RunMode.RUN
    try:
        chosen = settings(config)
        if chosen.experiment is not None:
            began = time.time()
            print(chosen.experiment(chosen))
            if replaced := replaced_results(began):
                print(replaced)
        else:
            return _run(chosen, config)
    except Exception as error:
        interrupts.end_if_unheard(error)
        if alone and not config.debug:
            sys.exit(sentence(error))
        raise  # a sweep runs its other cells first
    return None


def _run(chosen: Settings, config: DictConfig) -> float | None:
    """Run one configuration, print its summary, and return its F1."""
    from experiments.claims.published import bands_of, published_row
    from spotsigs.runs.runner import run

    folder, about = Path(HydraConfig.get().runtime.output_dir), files(config, chosen)
    if not moved():
        require_same(folder, about["config.yaml"])
    paper = published_row(chosen.names, chosen.matcher.threshold, bands_of(chosen), overrides())
    print(run(chosen, folder, about=about, published=paper))
    if chosen.query is not None:
        return None
    if HydraConfig.get().mode is RunMode.RUN:
        print(next_command(folder, overrides()))
    return score(folder)


def decimals(words: Sequence[str]) -> list[str]:
    """Write the values of ranges of decimal fractions, which Hydra would add up in binary ones.

    Examples
    --------
    >>> decimals(["-m", "tau=range(0.1,0.4,0.1)"])
    ['-m', 'tau=0.1,0.2,0.3']
    """
    if any(word.startswith("hydra/sweeper=") for word in words):  # for others a range is a distribution
        return list(words)
    return [RANGE.sub(_listed, word) for word in words]


RANGE = re.compile(r"(?<==)range\(([^()]*\.[^()]*)\)$")


def _listed(found: re.Match[str]) -> str:
    try:
        parts = [Decimal(part.partition("=")[2] or part) for part in found[1].replace(" ", "").split(",")]
    except InvalidOperation:
        return found[0]
    if len(parts) != 3 or parts[2] == 0:
        return found[0]
    start, stop, step = parts
    return ",".join(f"{start + k * step:f}" for k in range(max(0, math.ceil((stop - start) / step)))) or found[0]


def enter() -> None:
    """Run what the command line asks for; end with a sentence and exit code 1 where it cannot be."""
    interrupts.end_on_interrupt()
    sys.argv[1:] = decimals(expand_home(sys.argv[1:]))
    try:
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        interrupts.end()
    except Exception as error:
        interrupts.end_if_unheard(error)
        if "debug=true" in sys.argv:
            raise
        sys.exit(sentence(error))
