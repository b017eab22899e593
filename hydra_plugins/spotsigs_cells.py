"""The launcher of sweeps, where Hydra searches for plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.plugins.launcher import Launcher


class CellLauncher(Launcher):
    """Runs the cells of a sweep in ``workers=`` processes; see `experiments.sweep.launch`."""

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Store the arguments; let the loader compose each cell once, although Hydra's sweeper checks each before."""
        self.given = hydra_context, task_function, config
        loader, checked = hydra_context.config_loader, {}
        compose = loader.load_sweep_config

        def composed_once(master_config: Any, sweep_overrides: list[str]) -> Any:
            key = tuple(sweep_overrides)
            return checked.pop(key) if key in checked else checked.setdefault(key, compose(master_config, list(key)))

        loader.load_sweep_config = composed_once

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[Any]:
        """Run cells; return a ``JobReturn`` for each, in order."""
        from experiments.sweep import launch

        return launch(*self.given, job_overrides, initial_job_idx)
