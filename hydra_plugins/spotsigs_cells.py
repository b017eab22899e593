"""The launcher of sweeps, where Hydra searches for plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.plugins.launcher import Launcher


class CellLauncher(Launcher):
    """Runs the cells of a sweep in ``workers=`` processes; see `experiments.sweep.launch`."""

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Store the arguments; let the sweeper, which checks each cell before, use the same configurations."""
        from experiments.grid import Composer

        loader = hydra_context.config_loader
        self.composer = Composer(loader.load_sweep_config)
        loader.load_sweep_config = self.composer
        self.given = hydra_context, task_function, config

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[Any]:
        """Run cells; return a ``JobReturn`` for each, in order."""
        from experiments.sweep import launch

        return launch(self.composer, *self.given, job_overrides, initial_job_idx)
