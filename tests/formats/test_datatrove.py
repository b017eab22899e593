"""Blocks of datatrove pipelines keep what one call in memory keeps."""

import json

import pytest

pytest.importorskip("datatrove")

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers.jsonl import JsonlWriter
from test_on_disk import stories

from spotsigs import dedup
from spotsigs.errors import InputError
from spotsigs.integrations.datatrove import NearDuplicateFilter, NearDuplicatePairs, NearDuplicateSignatures
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_removal import TemplateRemoval


def rows(folder):
    return [json.loads(line) for path in sorted(folder.rglob("*.jsonl")) for line in path.open(encoding="utf-8")]


@pytest.mark.long
@pytest.mark.parametrize("tasks", [1, 3])
def test_a_pipeline_keeps_what_one_call_keeps(tmp_path, tasks):
    """Ids that occur twice, a copy, empty texts; as many files as tasks, so that their order is that of the list."""
    pages = stories(90)
    pages[40] |= {"text": pages[3]["text"], "id": "p3"}
    pages[50]["text"] = ""
    (tmp_path / "pages").mkdir()
    for k in range(3):
        lines = (json.dumps(page) for page in pages[30 * k : 30 * k + 30])
        (tmp_path / "pages" / f"{k}.jsonl").write_text("\n".join(lines))
    store = str(tmp_path / "store")

    def run(name, *steps, tasks=tasks):
        logs = str(tmp_path / "logs" / name)
        LocalPipelineExecutor([*steps], tasks=tasks, workers=1, logging_dir=logs).run()

    def read():
        return JsonlReader(str(tmp_path / "pages"))

    run("signatures", read(), NearDuplicateSignatures(store))
    run("pairs", NearDuplicatePairs(store, tau=0.5), tasks=1)
    removed = JsonlWriter(str(tmp_path / "removed"), compression=None)
    run("filter", read(), NearDuplicateFilter(store, removed), JsonlWriter(str(tmp_path / "kept"), compression=None))
    kept, dropped = rows(tmp_path / "kept"), rows(tmp_path / "removed")
    expected = dedup(pages, 0.5)
    assert sorted(row["text"] for row in kept) == sorted(page["text"] for page in expected if page["text"])
    assert 30 < len(kept) < 80
    # the reader of datatrove leaves out texts that are empty
    assert len(kept) + len(dropped) == 89
    assert {row["metadata"]["near_duplicate_of"] for row in dropped} <= {row["id"] for row in kept}


def test_signatures_that_depend_on_other_pages_are_refused(tmp_path):
    with pytest.raises(InputError, match="TemplateRemoval needs all documents"):
        NearDuplicateSignatures(str(tmp_path), scheme=TemplateRemoval(signature=SpotSignatures(d=1, c=2)))


def test_signatures_of_all_tasks_are_needed(tmp_path):
    with pytest.raises(InputError, match="lacks signatures of some tasks; run NearDuplicateSignatures"):
        NearDuplicatePairs(str(tmp_path)).run()
    with pytest.raises(InputError, match="give it tasks=1, not 2"):
        NearDuplicatePairs(str(tmp_path)).run(world_size=2)
