"""The entry point of ``python run.py``: compose the configuration, check the settings, run."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from experiments.choices import CONF
from experiments.config import Settings, Takes, files, is_folder_chosen, overrides, sentence, settings
from experiments.run_folders import next_command, require_same
from spotsigs.options import Door
from spotsigs.reports import terminal
from spotsigs.reports.terminal import expand_home


@hydra.main(version_base="1.3", config_path=str(CONF.absolute()), config_name="config")
def main(config: DictConfig) -> float | None:
    """Check the whole configuration, then run it; return the F1, which a sweeper may optimise."""
    alone = HydraConfig.get().mode is RunMode.RUN
    try:
        chosen = settings(config)
        if chosen.experiment is None:
            return _run(chosen, config)
        from experiments.harness.study import run

        if chosen.experiment.takes:
            name, takes = chosen.names["experiment"], Takes(**chosen.experiment.takes)
            one = hasattr(chosen.experiment, "further") and chosen.names["data"] != "gold"
            usual = f"{name} evaluates data={chosen.names['data']} alone; its usual collections take {takes}"
            sys.stderr.write(f"{usual if one else f'{name} takes {takes}'}\n")
        print(run(chosen))
    except Exception as error:
        terminal.end_if_pipe_is_closed(error)
        if alone and not config.debug:
            sys.exit(sentence(error))
        raise  # a sweep runs its other cells first
    return None


def _run(chosen: Settings, config: DictConfig) -> float | None:
    from experiments.claims.published import published_row
    from experiments.evaluate import resampled_intervals
    from experiments.show.table1_row import printed_row
    from spotsigs.runs.runner import execute
    from spotsigs.runs.summary import summary

    folder, about = Path(HydraConfig.get().runtime.output_dir), files(config, chosen)
    if not is_folder_chosen():
        require_same(folder, about["config.yaml"])
    run = chosen.run(folder)
    result = execute(chosen.method, run, about=about, intervals=partial(resampled_intervals, run.collection))
    print(summary(result, run, Door.run))
    metrics = result.described(run.spelling)
    print(f"\n{printed_row(metrics, chosen.method, published_row(metrics, overrides()))}")
    if HydraConfig.get().mode is RunMode.RUN:
        print(next_command(metrics["f1"] is not None, overrides()))
    return None if result.quality is None else result.quality.f1


def enter() -> None:
    """Run what the command line requests; end with a sentence and exit code 1 if that fails."""
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # main() raises errors, and `sentence` explains each in one line
    terminal.end_on_interrupt()
    sys.argv[1:] = expand_home(sys.argv[1:])
    try:
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        terminal.end()
    except Exception as error:
        if terminal.is_interrupt(error):
            terminal.end()
            return
        terminal.end_if_pipe_is_closed(error)
        if "debug=true" in sys.argv:
            raise
        sys.exit(sentence(error))
    finally:
        terminal.leave()
