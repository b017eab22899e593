"""Runs of ``python run.py`` in this process, by overrides."""

from pathlib import Path

from hydra import compose, initialize_config_dir

from experiments.config import GROUPS, settings
from spotsigs.runs.runner import run

ROOT = Path(__file__).parents[1]


def configured(*overrides):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", list(overrides), return_hydra_config=True)
    return settings(config, {group: str(config.hydra.runtime.choices[group]) for group in GROUPS})


def ran(folder, *overrides):
    told = []
    text = run(configured(*overrides), folder, say=told.append)
    return "\n".join([*told, text])


def same(one, other, names=("pairs.parquet", "clusters.parquet", "clusters.csv", "kept.csv", "removed.csv")):
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
