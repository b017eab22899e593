"""Runs in this process, by overrides of ``run.py`` and attributes of `Run`."""

import logging
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from folders import rows_of
from hydra import compose, initialize_config_dir
from in_process import command

from experiments.choices import GROUPS, ChoiceNames
from experiments.config import settings
from experiments.harness.extracted_collections import read_together
from spotsigs.options import Door
from spotsigs.outofcore.pipeline import default_memory
from spotsigs.outofcore.vectorize import parse_memory
from spotsigs.runs.runner import execute
from spotsigs.runs.stages import Output, Run
from spotsigs.runs.summary import summary

ROOT = Path(__file__).parents[2]


@cache
def composed(*overrides):
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", list(overrides), return_hydra_config=True)


def configured(*overrides):
    config = composed(*overrides)
    return settings(config, {group: str(config.hydra.runtime.choices[group]) for group in GROUPS})


def read(source, folder, engine):
    """Return the stored signatures of one source."""
    return read_together([source], folder, engine)[0]


def deduplicated(folder, out, read, *words):
    """Run ``spotsigs dedup``; return the ids of the kept pages, the bytes of its tables, and what it prints."""
    done = command("dedup", f"{read}.jsonl", "--out", out, "--overwrite", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    results = folder / f"{out}-results"
    kept = [row["doc"] for row in rows_of(results / "kept.csv")]
    return kept, {name: (results / f"{name}.csv").read_bytes() for name in ("kept", "removed", "clusters")}, done.stdout


OF_OUTPUT = ("copy", "page", "overwrite", "listed")
OF_RUN = {
    "memory": parse_memory,
    "store": str,
    "copy": str,
    **dict.fromkeys(("add", "page", "strict", "overwrite", "listed"), lambda word: word == "true"),
}


def planned(folder, *words):
    """Return the method and the run of words such as ``tau=0.3 memory=1GB store=folder``."""
    given = [word.partition("=")[::2] for word in words]
    of_method = [f"{key}={value}" for key, value in given if key not in OF_RUN]
    if any(key in ("memory", "store") for key, _ in given) and not any("matcher=" in word for word in of_method):
        of_method.append("matcher=spotsigs_tight")  # the pairs of Algorithm 1, which has no form on disk
    chosen = configured(*of_method)
    of_run = {key: OF_RUN[key](value) for key, value in given if key in OF_RUN}
    of_run |= {"memory": default_memory()} if "store" in of_run and "memory" not in of_run else {}
    about = {"data": chosen.names["data"], "engine": chosen.engine, "seed": chosen.seed}
    about["spelling"] = ChoiceNames(chosen.names)
    output = Output(folder=Path(folder), **{key: of_run.pop(key) for key in OF_OUTPUT if key in of_run})
    return chosen.method, Run(collection=chosen.collection, output=output, **about, **of_run)


def ran(folder, *words):
    """Run a method, and return what is printed."""
    method, run = planned(folder, *words)
    with logged() as lines:
        result = execute(method, run)
    return "\n".join([*lines, summary(result, run, Door.run)])


@contextmanager
def logged():
    """Yield a list that receives the log of the library."""
    lines, logger = [], logging.getLogger("spotsigs")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def same(one, other, names=("pairs.parquet", "clusters.parquet", "clusters.csv", "kept.csv", "removed.csv")):
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
