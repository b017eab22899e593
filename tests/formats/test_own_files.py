"""A run removes only its own files, writes to no other folder, and distinguishes files by their content."""

from __future__ import annotations

import os
import sys

import pytest
from in_process import command
from runs import ran
from stores import PARTS, in_memory, named, run, stories, written
from test_bad_input import content

from spotsigs.errors import InputError
from spotsigs.outofcore.segments import source_of
from spotsigs.runs.stores import RUN_MARKER
from spotsigs.storage.locations import size_and_checksum

RUN = ("data=tiny", "engine=serial", "memory=1GB")


def files(folder):
    """Return the content of a store, without its lock."""
    return {name: data for name, data in content(folder).items() if name.name != ".lock"}


def test_a_run_does_not_change_the_stores_of_others_in_its_folder(tmp_path):
    ran(tmp_path / "run", *RUN, f"store={tmp_path}/run/store-news")
    before = files(tmp_path / "run" / "store-news")
    assert before
    ran(tmp_path / "run", *RUN)
    assert files(tmp_path / "run" / "store-news") == before
    assert [path.name for path in (tmp_path / "run").glob("store-*")] == ["store-news"]


def test_a_store_that_a_stopped_run_made_for_itself_is_removed_unless_the_user_names_it(tmp_path):
    """Two stores with the mark of a run, of which the user names one, and one that has only such a name."""
    of_run, named_one, unmarked = (tmp_path / "run" / f"store-{digit * 16}" for digit in "123")
    for store in (of_run, named_one):
        store.mkdir(parents=True)
        (store / RUN_MARKER).write_text("{}")
    (unmarked / "segments").mkdir(parents=True)
    ran(tmp_path / "run", *RUN, f"store={named_one}")
    ran(tmp_path / "run", *RUN)
    assert sorted((tmp_path / "run").glob("store-*")) == [named_one, unmarked]
    of_run.mkdir()
    (of_run / RUN_MARKER).write_text("{}")
    ran(tmp_path / "run", *RUN[:2])
    assert sorted((tmp_path / "run").glob("store-*")) == [named_one, unmarked], "nothing resumes a run in memory"
    assert (named_one / "vectors" / "store.json").exists()


@pytest.mark.parametrize(("verb", "key"), [("cluster", "--store"), ("dedup", "--out")])
@pytest.mark.parametrize(
    ("path", "target"),
    [("pages", "pages/new"), ("pages", "pages"), ("pages/**/*.html", "pages/a/new"), ("link", "pages/new")],
)
def test_nothing_is_written_among_the_pages(verb, key, path, target, tmp_path):
    (tmp_path / "pages" / "a").mkdir(parents=True)
    (tmp_path / "pages" / "a" / "x.html").write_text("the page is a page")
    (tmp_path / "link").symlink_to(tmp_path / "pages")
    before = content(tmp_path / "pages")
    done = command(verb, path, key, tmp_path / target, "--workers", 1, cwd=tmp_path)
    assert done.returncode == 1
    assert f"{key} {tmp_path}/{target} is inside the input {path}" in done.stderr
    assert content(tmp_path / "pages") == before


def test_folders_next_to_the_pages_are_allowed(tmp_path):
    (tmp_path / "pages").mkdir()
    for k, row in enumerate(stories(12)):
        (tmp_path / "pages" / f"{k}.txt").write_text(row["text"])
    outputs = "--store", tmp_path / "pages-store", "--out", tmp_path / "pages-copy"
    done = command("dedup", tmp_path / "pages", *outputs, "--workers", 1, "--results", tmp_path / "run")
    assert done.returncode == 0, done.stderr


# identity is content


def replaced(path, content_of_it):
    """Change a file as `rsync -t` and `cp -p` do: size and time stay."""
    before = path.stat()
    assert len(content_of_it) == before.st_size
    path.write_bytes(content_of_it)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_input_that_is_replaced_with_size_and_time_kept_is_other_input(tmp_path):
    path = tmp_path / "x.jsonl"
    rows = stories(40)
    first = written(path, rows)
    run(tmp_path / "store", first)
    other = path.read_bytes().replace(b"the ", b"teh ")
    replaced(path, other)
    with pytest.raises(InputError, match="contains other documents"):
        run(tmp_path / "store", first)
    actual = run(tmp_path / "another", first)
    assert named(actual.pairs, actual.doc_ids) == in_memory(first, 0.5)


def test_input_that_is_copied_elsewhere_in_time_is_the_same(tmp_path):
    path = tmp_path / "x.jsonl"
    collection = written(path, stories(40))
    before = source_of(collection, *PARTS[:2])
    os.utime(path, ns=(1, 1))
    assert source_of(collection, *PARTS[:2]) == before
    copy = path.read_bytes()
    path.unlink()
    path.write_bytes(copy)
    assert source_of(collection, *PARTS[:2]) == before


def test_a_file_that_cannot_be_read_has_no_content(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("x")
    assert size_and_checksum(path)[0] == 1
    if sys.platform != "win32" and os.geteuid() != 0:  # the superuser can read everything
        path.chmod(0)
        assert size_and_checksum(path) == (-1, "cannot be read")
    path.unlink()
    assert size_and_checksum(path) == (-1, "cannot be read")
