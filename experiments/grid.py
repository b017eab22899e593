"""The cells of a sweep, composed once for all that differ in their threshold alone, and the key of a cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from experiments.config import Settings, files, settings
from experiments.harness.used_code import checksum_of_cell
from experiments.run_folders import IDENTITY, is_finished
from spotsigs.contracts import VectorCollection
from spotsigs.method import Method
from spotsigs.outofcore.segments import source_of
from spotsigs.runs.stages import Run
from spotsigs.storage.identity import identity


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """A cell of a sweep: overrides, method and run, key, and the files that describe it unless it is finished."""

    number: int
    words: Sequence[str]
    method: Method
    run: Run
    workers: int
    timing: bool
    key: str
    about: Mapping[str, str]

    @property
    def typed(self) -> list[str]:
        """Overrides, with the threshold as it is applied, see `experiments.config.settings`."""
        tau = self.method.tau
        return [f"tau={tau:g}" if word.startswith("tau=") and tau is not None else word for word in self.words]

    @property
    def folder(self) -> Path:
        """Folder of its results."""
        return self.run.output.folder

    @property
    def input_key(self) -> str:
        """What its signatures depend on."""
        return f"{self.run.collection!r} {self.method.extraction_key()}"

    @property
    def join_key(self) -> str:
        """What its pairs depend on besides the threshold."""
        return f"{self.run.collection!r} {self.method.join_key()}"


def cell_key(method: Method, collection: Any, seed: int) -> str:
    """Return all that the figures of a cell depend on, as JSON: method, input, and the code that both use."""
    files_read = [] if isinstance(collection, VectorCollection) else _files_of(collection)
    chosen = replace(method, matcher=method.matcher.with_threads(1))
    parts = {"schema": 2, "method": identity(chosen), "data": identity(collection), "seed": seed, "files": files_read}
    return json.dumps(parts | {"code": checksum_of_cell(method, collection)}, indent=1) + "\n"


def _files_of(collection: Any) -> Any:
    key = repr(collection)
    if key not in _READ:
        _READ[key] = source_of(collection, None, None)["files"]
    return _READ[key]


_READ: dict[str, Any] = {}
"""Identities of the files of collections, which a sweep reads once."""


@dataclass
class _Composed:
    """A configuration, its node of Hydra, and its settings once they are checked."""

    config: DictConfig
    hydra: Any
    chosen: Settings | None = None


class Composer:
    """Composes the configurations of a sweep, each once for all thresholds.

    Parameters
    ----------
    load : callable
        Hydra's function from the configuration of the sweep and the overrides of a cell to its configuration.
    """

    def __init__(self, load: Callable[[Any, list[str]], DictConfig]) -> None:
        self._load, self._known = load, dict[tuple[str, ...], _Composed]()

    def __call__(self, master_config: Any, sweep_overrides: Sequence[str]) -> DictConfig:
        """Return the configuration of overrides, which can have another threshold; in place of Hydra's function."""
        return self._of(master_config, sweep_overrides).config

    def _of(self, master: Any, words: Sequence[str]) -> _Composed:
        key = tuple("tau=" if _number(word) is not None else word for word in words)
        if key not in self._known:
            config, instance = self._load(master, list(words)), HydraConfig.instance()
            before = instance.cfg
            instance.set_config(config)
            self._known[key], instance.cfg = _Composed(config, instance.cfg), before
        return self._known[key]

    def cells(
        self, master: Any, every: Iterable[Sequence[str]], first: int, started: Callable[..., None]
    ) -> list[GridCell]:
        """Return the cells of lists of overrides.

        Parameters
        ----------
        master : DictConfig
            Configuration of the sweep.
        every : iterable of sequence of str
            Overrides of each cell.
        first : int
            Number of the first.
        started : callable
            Called with the configuration of each, as Hydra's callbacks expect before a job.
        """
        before = HydraConfig.instance().cfg
        try:
            cells = []
            for number, words in enumerate(every, first):
                composed = self._of(master, words)
                started(config=composed.config)
                cells.append(_cell(composed, number, words))
            return cells
        finally:
            HydraConfig.instance().cfg = before


def _cell(composed: _Composed, number: int, words: Sequence[str]) -> GridCell:
    """Return a cell of a configuration, whose threshold, number and folder it sets."""
    config, node = composed.config, composed.hydra.hydra  # the node of Hydra has no schema here
    HydraConfig.instance().cfg = composed.hydra
    taus = [tau for tau in map(_number, words) if tau is not None]
    with read_write(node), open_dict(node):
        config.tau = taus[-1] if taus else config.tau
        node.job.id = node.job.num = number
        of_tau = iter([word for word in words if _number(word) is not None])
        typed = [str(word) for word in node.overrides.task]
        node.overrides.task = [next(of_tau) if _number(word) is not None else word for word in typed]
        node.runtime.output_dir = ""
        folder = Path(node.sweep.dir, node.sweep.subdir).absolute()
        node.runtime.output_dir = str(folder)
    task = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    if composed.chosen is None:
        composed.chosen = settings(task)
    chosen = composed.chosen.at(config.tau)
    task.tau = config.tau = chosen.tau
    key = cell_key(chosen.method, chosen.collection, chosen.seed)
    return GridCell(
        number=number,
        words=tuple(node.overrides.task),
        method=chosen.method,
        run=chosen.run(folder),
        workers=chosen.workers,
        timing=bool(chosen.timing),
        key=key,
        about={} if is_finished(folder, key) else {**files(task, chosen), IDENTITY: key},
    )


def _number(word: str) -> float | None:
    """Return the threshold that an override sets to a number."""
    name, _, value = word.partition("=")
    try:
        return float(value) if name == "tau" else None
    except ValueError:
        return None
