"""The examples run, and do what their first lines state."""

from __future__ import annotations

import runpy
from pathlib import Path

from spotsigs.formats.folder import Folder
from spotsigs.method import Method
from spotsigs.workers.engines import Serial

ROOT = Path(__file__).parents[2]
TINY = str(ROOT / "data" / "tiny")


def test_the_stages_by_hand_remove_the_pages_that_the_method_removes(capsys):
    runpy.run_path(str(ROOT / "examples" / "stages.py"))["main"](TINY)
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    method = Method.of(tau=0.25)
    matched = method.match(Folder(path=TINY), Serial())
    decisions, ids = method.decide(matched)[0], matched.doc_ids
    removed = (~decisions.kept).nonzero()[0]
    assert len(removed) > 5
    assert [row[0] for row in rows] == [ids[k] for k in removed]
    assert [row[1] for row in rows] == [ids[decisions.partner[k]] for k in removed]
    assert [float(row[2]) for row in rows] == [round(float(decisions.similarity[k]), 3) for k in removed]
