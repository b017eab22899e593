"""Files that the program did not write: after any run each of them is there with its bytes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_process import command
from strategies import examples

from spotsigs.storage.atomic import remove_orphans
from spotsigs.storage.manifest import MANIFEST

TEXT = "the plan of the council has been read in a hall that was full of people"
PAGES = "".join(json.dumps({"id": f"{k}", "text": f"{TEXT} {'and so ' * (k // 2)}"}) + "\n" for k in range(4))

FOLDERS = ("", "a", "b", "a/b", "a-results", "a/b-results", ".a", ".a.writing-x", "a/store-1")
NAMES = (
    "x.jsonl",
    "y.jsonl",
    "notes.txt",
    "kept.csv",
    "metrics.json",
    "run.json",
    "store.json",
    ".lock",
    "a.lock",
    "clusters.html",
    "skipped.csv",
    "threshold.html",
    "histogram.csv",
    MANIFEST,
)
PLACES = ("a", "b", "a/b", "a/c", ".", "a-results", "link", "link/b", "a/b/x.jsonl", "s", "s/t", "kept", "x.jsonl")

paths = st.builds(os.path.join, st.sampled_from(FOLDERS), st.sampled_from(NAMES))
user_files = st.dictionaries(paths, st.sampled_from((PAGES, PAGES, "mine\n")), min_size=1, max_size=6)
linked = st.sampled_from(("link", "a/link", "kept", "b/l.jsonl"))
links = st.lists(st.tuples(linked, st.sampled_from(PLACES)), max_size=2)
places = st.sampled_from(PLACES)
inputs = st.one_of(places, paths, st.sampled_from(("*/*.jsonl", "a/*", "**/*.jsonl", "link/*")))


@st.composite
def runs(draw):
    """Return the words of a run, with outputs, inputs and stores in any relation."""
    verb = draw(st.sampled_from(("dedup", "dedup", "dedup", "dedup", "cluster", "threshold")))
    words = [verb, draw(inputs), "--out", draw(places), "--workers", "1", "--engine", "serial"]
    if verb == "dedup":
        words += ["--overwrite"] if draw(st.booleans()) else []
        words += ["--results", draw(places)] if draw(st.booleans()) else []
    if verb != "threshold":
        words += draw(st.sampled_from(([], [], ["--store", draw(places)])))
    if verb == "dedup" and "--store" not in words:
        words += draw(st.sampled_from(([], ["--against", draw(inputs)])))
    return words


def snapshot(root):
    """Return the content of each file below a folder, and the target of each link."""
    found = {}
    for parent, folders, names in os.walk(root):
        for name in (*names, *folders):
            path = Path(parent, name)
            if path.is_symlink():
                found[path] = os.readlink(path)
            elif path.is_file():
                found[path] = path.read_bytes()
    return found


@examples(60)
@given(files=user_files, targets=links, words=st.lists(runs(), min_size=1, max_size=3), edited=st.booleans())
def test_every_file_that_the_program_did_not_write_keeps_its_bytes(tmp_path_factory, files, targets, words, edited):
    """A copy replaced any folder: the working folder, a parent of the input, a store, unrelated files."""
    root = tmp_path_factory.mktemp("tree")
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    for name, target in targets:
        if not (root / name).exists() and (root / name).parent.is_dir() and not (root / name).is_symlink():
            (root / name).symlink_to(root / target)
    mine, stores = snapshot(root), {}
    for run in words:
        remove_orphans.cache_clear()
        done = command(*run, cwd=root)
        assert done.returncode in (0, 1), done.stderr
        assert "unexpected" not in done.stderr, done.stderr
        left = snapshot(root)
        assert {path: left.get(path) for path in mine} == mine, (run, done.stderr)
        assert {path: left.get(path) for path in stores} == stores, (run, done.stderr)
        if "--store" in run and done.returncode == 0:  # a store is used again, but no copy may replace it
            store = (root / run[run.index("--store") + 1]).resolve()
            stores = {path: content for path, content in left.items() if path.is_relative_to(store / "segments")}
        copy = root / run[3]
        if edited and done.returncode == 0 and run[0] == "dedup" and copy.is_dir():
            mine[copy / "added.txt"] = b"mine"
            (copy / "added.txt").write_bytes(b"mine")
    shutil.rmtree(root)


@pytest.fixture
def tree(tmp_path):
    """Return a folder with pages, notes, a copy, and a store."""
    for name in ("in/x.jsonl", "tests/x.jsonl"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(PAGES)
    (tmp_path / "in" / "notes.txt").write_text("mine")
    assert (
        command("dedup", "in/x.jsonl", "--out", "kept", "--store", "st", "--workers", 1, cwd=tmp_path).returncode == 0
    )
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("in/x.jsonl", "--out", "in"), "error: the input in/x.jsonl is in the copy"),
        (("in/*.jsonl", "--out", "in"), "error: the input in/*.jsonl is in the copy"),
        (("in", "--out", "in"), "is inside the input in"),
        (("in", "--out", "."), "error: the input in is in the copy"),
        (("in", "--out", "kept", "--against", "kept/x.jsonl"), "error: the reference kept/x.jsonl is in the copy"),
        (("in", "--out", "st", "--against", "st"), "are in one another"),
        (("in", "--out", "kept", "--results", "kept/r"), "are in one another"),
        (("in", "--out", "kept", "--store", "kept/st"), "are in one another"),
        (("in", "--out", "st"), "st is not a copy that spotsigs wrote, so that it is not replaced"),
        (("in", "--out", "tests"), "tests is not a copy that spotsigs wrote, so that it is not replaced"),
        (("kept", "--out", "kept"), "is inside the input kept"),
    ],
)
def test_only_a_copy_of_this_program_is_replaced(tree, words, sentence):
    before = snapshot(tree)
    done = command("dedup", *words, "--overwrite", "--workers", 1, cwd=tree)
    assert done.returncode == 1
    assert sentence in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert snapshot(tree) == before


@pytest.mark.parametrize("way", ["added", "changed", "link", "no manifest"])
def test_a_copy_with_a_file_of_the_user_is_not_replaced(tree, way):
    copy = tree / "kept"
    if way == "added":
        (copy / "sub").mkdir()
        (copy / "sub" / "n.txt").write_text("mine")
    elif way == "changed":
        (copy / "x.jsonl").write_text(PAGES)
    elif way == "link":
        (copy / "n").symlink_to(tree / "in")
    else:
        (copy / MANIFEST).unlink()
    before = snapshot(tree)
    done = command("dedup", "in", "--out", "kept", "--overwrite", "--workers", 1, cwd=tree)
    expected = {
        "added": "kept contains sub/n.txt, which spotsigs did not write",
        "changed": "kept contains x.jsonl, which has changed since spotsigs wrote it",
        "link": "kept contains n, which spotsigs did not write",
        "no manifest": "kept is not a copy that spotsigs wrote",
    }[way]
    assert expected in done.stderr
    assert snapshot(tree) == before


def test_a_link_to_a_copy_stays_and_the_copy_is_replaced(tree):
    (tree / "link").symlink_to(tree / "kept")
    done = command("dedup", "tests", "--out", "link", "--overwrite", "--workers", 1, cwd=tree)
    assert done.returncode == 0, done.stderr
    assert (tree / "link").is_symlink()
    assert sorted(path.name for path in (tree / "kept").iterdir()) == [MANIFEST, "x.jsonl"]


def test_results_replace_no_files_of_the_user(tmp_path):
    (tmp_path / "x.jsonl").write_text(PAGES)
    for verb, name in (("cluster", "kept.csv"), ("inspect", "clusters.html"), ("threshold", "histogram.csv")):
        folder = tmp_path / verb
        folder.mkdir()
        (folder / name).write_text("mine")
        done = command(verb, "x.jsonl", "--out", verb, "--workers", 1, cwd=tmp_path)
        assert f"{verb} contains {name}, which spotsigs did not write" in done.stderr
        assert snapshot(folder) == {folder / name: b"mine"}
        (folder / name).unlink()
        for _ in range(2):
            assert command(verb, "x.jsonl", "--out", verb, "--workers", 1, cwd=tmp_path).returncode == 0


def test_a_hidden_folder_of_the_user_that_has_the_name_of_a_staging_folder_stays(tmp_path):
    (tmp_path / "x.jsonl").write_text(PAGES)
    drafts = tmp_path / ".creative.writing-group"
    drafts.mkdir()
    (drafts / "draft.txt").write_text("mine")
    remove_orphans.cache_clear()
    assert command("dedup", "x.jsonl", "--out", "kept", "--workers", 1, cwd=tmp_path).returncode == 0
    assert (drafts / "draft.txt").read_text() == "mine"
