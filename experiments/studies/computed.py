"""Studies of what is no grid: a function computes rows and facts, and the configuration declares how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from hydra.utils import get_method

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, methods_of
from experiments.harness.study import Work
from experiments.show.tables import Column, Table
from experiments.views import View


class RowsAndFacts(NamedTuple):
    """What a function of a study returns: rows of its table or figure, facts, and texts for the terminal."""

    rows: Sequence[dict[str, Any]] = ()
    facts: Sequence[Fact] = ()
    texts: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class ComputedStudy(Experiment):
    """Rows and facts that a function computes, as a table and as figures.

    Attributes
    ----------
    function : str
        Function by its module and name. It takes the `Work`, the composed methods by label, and `given`, and returns
        `RowsAndFacts`.
    given : dict of str to object
        Further arguments of the function.
    methods : dict of str to dict
        Groups and keys of the methods by label.
    table : dict of str to object
        ``name``, ``caption``, a format of `given`, and ``columns``, titles and formats of numbers by the name of the
        column; none if empty.
    figures : dict of str to dict
        Attributes of `View` by the name of the file.
    """

    function: str
    given: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    table: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __call__(self, settings: Settings) -> str:
        """Write the facts, the table and the figures; return them as text."""
        work = Work.begin(self.results, settings)
        computed: RowsAndFacts = get_method(self.function)(
            work, methods_of(self.methods, settings, **self.fixed), **self.given
        )
        listed = [work.facts(computed.facts)] if computed.facts else []
        written = []
        if self.table:
            columns = [
                Column(name=name, title=title, form=form) for name, (title, form) in self.table["columns"].items()
            ]
            table = Table(caption=self.table["caption"].format(**self.given), columns=columns, rows=list(computed.rows))
            written.append(work.table(table, self.table["name"]))
        for name, attributes in self.figures.items():
            view = View(**attributes)
            written.append(work.figure(name, view.caption, partial(view.draw, rows=computed.rows)))
        return "\n\n".join([*computed.texts, *written, *([] if self.table else listed)])
