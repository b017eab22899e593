"""The launcher of sweeps, where Hydra looks for plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hydra.plugins.launcher import Launcher


class _Once:
    """Composes the configuration of a cell once: Hydra's sweeper checks each before it launches them."""

    def __init__(self, compose: Callable[..., Any]) -> None:
        self._compose, self._checked = compose, {}  # type: ignore[var-annotated]

    def __call__(self, master_config: Any, sweep_overrides: list[str]) -> Any:
        """Return the configuration; that of the check where it was not returned yet."""
        key = tuple(sweep_overrides)
        if key in self._checked:
            return self._checked.pop(key)
        return self._checked.setdefault(key, self._compose(master_config, sweep_overrides))


class CellLauncher(Launcher):
    """Runs the cells of a sweep in ``workers=`` processes; see `experiments.launcher`."""

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Store what Hydra passes."""
        self.given = hydra_context, task_function, config
        loader = hydra_context.config_loader
        loader.load_sweep_config = _Once(loader.load_sweep_config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[Any]:
        """Run cells; return a ``JobReturn`` for each, in order."""
        from experiments.launcher import launch

        return launch(*self.given, job_overrides, initial_job_idx)
