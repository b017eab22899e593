"""The front door: ``python run.py matcher=spotsigs tau=0.44``; ``python run.py --help`` lists every choice."""

import os
import sys

os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come out of main(), and `explain` says them in one sentence

import hydra
from omegaconf import DictConfig

import experiments.config


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    """Check the whole configuration, then run it."""
    settings = experiments.config.settings(config)
    if settings.experiment is not None:
        print(settings.experiment(settings))
        return
    from experiments.runner import run

    print(run(settings, hydra.core.hydra_config.HydraConfig.get().runtime.output_dir))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("stopped")
    except Exception as error:
        if "debug=true" in sys.argv:
            raise
        sys.exit(f"error: {experiments.config.explain(error)}")
