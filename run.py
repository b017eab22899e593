"""The front door: ``python run.py matcher=spotsigs tau=0.44``; ``python run.py --help`` lists every choice."""

import os
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while modules are imported, Ctrl-C ends it without a traceback
    from spotsigs.experiments.start import import_numba, open_streams, say_when_compiling

    open_streams()
    import_numba()
    say_when_compiling(sys.stderr)

os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come out of main(), and `sentence` says each in one line

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

import spotsigs.experiments.config
import spotsigs.experiments.stopping


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> float | None:
    """Check the whole configuration, then run it; return the F1, which a sweeper may optimise."""
    alone = HydraConfig.get().mode is RunMode.RUN
    try:
        settings = spotsigs.experiments.config.settings(config)
        if settings.experiment is not None:
            print(settings.experiment(settings))
        else:
            from spotsigs.experiments.run.runner import run
            from spotsigs.experiments.run.runs import score

            folder = HydraConfig.get().runtime.output_dir
            print(run(settings, folder, about=spotsigs.experiments.config.files(config)))
            return None if settings.query is not None else score(Path(folder))
    except Exception as error:
        spotsigs.experiments.stopping.end_if_unheard(error)
        if alone and not config.debug:
            sys.exit(spotsigs.experiments.config.sentence(error))
        raise  # a sweep runs its other cells first
    return None


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupt)
    spotsigs.experiments.stopping.end_on_interrupt()
    try:
        main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        spotsigs.experiments.stopping.end()
    except Exception as error:
        spotsigs.experiments.stopping.end_if_unheard(error)
        if "debug=true" in sys.argv:
            raise
        sys.exit(spotsigs.experiments.config.sentence(error))
