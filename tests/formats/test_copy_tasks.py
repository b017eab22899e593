"""Copies by workers have the bytes of copies by one process, and refuse changed input as these do."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from spotsigs.errors import InputError
from spotsigs.formats.folder import Folder
from spotsigs.formats.jsonl import Jsonl
from spotsigs.formats.writers import prepare_copy
from spotsigs.runs import copy_tasks
from spotsigs.runs.copy_tasks import JudgedBy, copied_by_tasks
from spotsigs.signatures.extract import name_hash, unique_ids
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.size_limits import page_size_limit
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Engine, Serial


class TwoWorkers(Serial):
    """Tasks as two workers get them, in this process."""

    processes = 2


def jsonl(folder: Path, ids: list[list[str]]) -> Jsonl:
    for k, part in enumerate(ids):
        lines = [json.dumps({"id": name, "text": f"page {name}"}) for name in part]
        (folder / f"{k}.jsonl").write_text("\n".join([*lines, "{damaged", ""]))
    (folder / "notes.txt").write_text("no page")
    return Jsonl(path=str(folder))


def html(folder: Path, ids: list[list[str]]) -> Folder:
    for k, part in enumerate(ids):
        (folder / f"{k}").mkdir()
        for name in part:
            (folder / f"{k}" / f"{name}.html").write_text(f"<p>page {name}")
    return Folder(path=str(folder))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def copied(collection, ids: list[str], temporary: Path, engine: Engine | None) -> tuple[bool, dict[str, bytes]]:
    """Copy by tasks, or, without an engine, in one pass."""
    temporary.mkdir()
    kept = np.array([name_hash(name) % 3 > 0 for name in ids], np.bool_)
    judged = JudgedBy(np.empty(0, np.uint64), VisibleText(), SpotSignatures())
    with patch.object(copy_tasks, "TASK_BYTES", 1):
        by_tasks = engine is not None and copied_by_tasks(
            collection, ids, kept, temporary, judged=judged, engine=engine
        )
    if not by_tasks:
        prepare_copy(collection, ids, kept, temporary, judged=judged)
    return by_tasks, files(temporary / "copy")


@pytest.mark.parametrize("made", [jsonl, html])
@pytest.mark.parametrize("repeated", [False, True])
def test_copies_by_workers_have_the_same_bytes(tmp_path, made, repeated):
    ids = [[f"{k}{n}" for n in "abcde"] for k in range(3)]
    if repeated:
        ids[2][:2] = ids[0][:2]
    (tmp_path / "in").mkdir()
    collection = made(tmp_path / "in", ids)
    names = [record.id for shard in collection.shards() for record in shard() if hasattr(record, "content")]
    assert len(names) == 15
    names = list(unique_ids(names))
    by_tasks, actual = copied(collection, names, tmp_path / "two", TwoWorkers())
    assert by_tasks == (not repeated or made is html)
    assert (by_tasks, actual) == copied(collection, names, tmp_path / "one", Serial())
    assert (False, actual) == copied(collection, names, tmp_path / "whole", None)
    assert actual != files(tmp_path / "in")


def test_changed_input_is_refused(tmp_path):
    (tmp_path / "in").mkdir()
    collection = jsonl(tmp_path / "in", [["a", "b"], ["c", "d"]])
    with pytest.raises(InputError, match="has changed since it was matched"):
        copied(collection, ["a", "b", "c", "e"], tmp_path / "copy", TwoWorkers())


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=90), max_size=30)


@given(texts=LINES, others=st.sets(st.integers(0, 30)), shard=st.integers(1, 300), page=st.integers(40, 400))
@examples(60)
def test_a_file_that_is_copied_in_ranges_has_the_same_bytes(texts, others, shard, page):
    """Long lines, damaged lines, blank ones, and lines without an end, in ranges of any size."""
    with TemporaryDirectory() as name, page_size_limit(page, page):
        folder = Path(name)
        records = [json.dumps({"id": f"{k}", "text": text}) for k, text in enumerate(texts)]
        lines = ["{damaged" if k in others else record for k, record in enumerate(records)]
        (folder / "in.jsonl").write_text("\n".join(["", '{"id": "first", "text": "a"}', *lines]), encoding="utf-8")
        collection = Jsonl(path=str(folder / "in.jsonl"), shard_bytes=shard)
        ids = [record.id for part in collection.shards() for record in part() if hasattr(record, "content")]
        by_tasks, actual = copied(collection, ids, folder / "two", TwoWorkers())
        assert (False, actual) == copied(collection, ids, folder / "whole", None)
        sizes = [len(line.encode()) for line in lines]
        if len(collection.shards()) > 1 and max(sizes, default=0) < page:
            assert by_tasks
