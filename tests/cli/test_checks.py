"""What the command checks before the work, and what its summary and its printed tables state."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os

import pytest
from folders import rows_of
from in_process import command, process

from spotsigs import dedup

TEXT = "the plan of the council has been read in a hall that was full of people, and a vote is to be in the spring"


def table(path, rows):
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def pages(tmp_path):
    table(tmp_path / "x.jsonl", [{"id": f"p{k}", "html": f"<p>{TEXT}</p>", "score": k} for k in range(3)])
    return tmp_path


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--text", "body"), "x.jsonl has no key 'body' in its first lines; their keys are id, html, score"),
        (("--keep-by", "scoore"), "x.jsonl has no key 'scoore' in its first lines"),
        (("--date", "day"), "x.jsonl has no key 'day' in its first lines"),
        (("--store", "none.store", "--add"), "none.store is no store, so that nothing can be added"),
    ],
)
def test_what_is_not_there_is_an_error_before_the_work(pages, words, sentence, monkeypatch):
    monkeypatch.setattr("spotsigs.runs.runner.compute", None)
    done = command("dedup", "x.jsonl", "--out", "kept", *words, cwd=pages)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert [path.name for path in pages.iterdir()] == ["x.jsonl"]


def test_a_column_with_a_value_in_a_later_line_is_read(tmp_path):
    table(tmp_path / "x.jsonl", [{"body": None}, {"body": TEXT}, {"other": 1, "body": TEXT}])
    done = command("dedup", "x.jsonl", "--text", "body", "--out", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 pages, 1 removed" in done.stdout


@pytest.mark.parametrize("verb", ["pairs", "cluster"])
def test_a_printed_table_has_no_formula(tmp_path, verb):
    names = ["=cmd()", "+1", "-1", "@sum", " =x", "page"]
    table(tmp_path / "x.jsonl", [{"id": name, "text": TEXT} for name in names])
    done = command(verb, "x.jsonl", "--workers", 1, cwd=tmp_path)
    cells = {cell for row in csv.reader(done.stdout.splitlines()[1:], delimiter="\t") for cell in row[:2]}
    assert {"'=cmd()", "'+1"} <= cells
    assert not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@"))]


def test_the_summary_states_threshold_language_and_templates(pages):
    done = command("dedup", "x.jsonl", "--out", "kept", "--tau", 0.5, "--workers", 1, cwd=pages)
    assert "threshold 0.5; the language of each page is detected; templates of sites are removed" in done.stdout
    words = ("--language", "en", "--boilerplate", "keep")
    done = command("dedup", "x.jsonl", "--out", "kept", "--overwrite", *words, "--workers", 1, cwd=pages)
    assert "threshold 0.44; all pages are read as en; templates are compared, too" in done.stdout


def test_the_summary_counts_the_pages_that_are_removed_for_the_reference(pages):
    table(pages / "tests.jsonl", [{"text": TEXT}])
    other = TEXT.replace("council", "harbour").replace("hall", "ship").replace("a vote", "the end of a storm")
    rows = [{"text": TEXT}, {"text": TEXT}, {"text": other}, {"text": other}]
    table(pages / "y.jsonl", rows)
    done = command("dedup", "y.jsonl", "--against", "tests.jsonl", "--out", "kept", "--workers", 1, cwd=pages)
    assert "1 document of the reference, always kept; 2 pages are removed for one of them" in done.stdout, done.stdout


def test_removed_pages_are_listed_without_a_copy(pages):
    refused = command("dedup", "x.jsonl", "--out", "none", cwd=pages)
    assert refused.stderr == "error: --out none writes tables alone; add --results FOLDER\n"
    words = ("dedup", "x.jsonl", "--workers", 1)
    alone = command(*words, "--out", "none", "--results", "tables", cwd=pages)
    assert alone.returncode == 0, alone.stderr
    assert "3 pages, 2 removed (66.7 %), 1 kept -> tables/kept.csv" in alone.stdout
    assert sorted(path.name for path in pages.iterdir()) == ["tables", "x.jsonl"]
    assert command(*words, "--out", "kept", cwd=pages).returncode == 0
    assert rows_of(pages / "tables" / "removed.csv") == rows_of(pages / "kept-results" / "removed.csv")


@pytest.mark.skipif(os.name == "nt", reason="names are Unicode")
@pytest.mark.parametrize("name", ["run:1", "s3:x", os.fsdecode(b"caf\xe9")])
def test_a_folder_of_tables_has_any_name(pages, name):
    """pyarrow took the name for a URL, or could not encode it."""
    done = command("dedup", "x.jsonl", "--out", "kept", "--results", name, "--workers", 1, cwd=pages)
    assert done.returncode == 0, done.stderr
    assert (pages / name / "removed.parquet").is_file()


def _of_worker(pages):
    return len(dedup(pages, workers=2))


def test_workers_inside_a_worker_of_a_pool(tmp_path):
    """loky asserted that a daemon has no children."""
    pages = [f"{TEXT} {k}" for k in range(600)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_of_worker, [pages]) == [len(dedup(pages))]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_truncated_file_of_compiled_kernels_is_compiled_again(tmp_path, kind):
    """Each run ended with an unexpected UnpicklingError, until the user deleted the cache."""
    code = (
        "import numpy as np\nfrom spotsigs.arrays.kernel import kernel\n"
        "@kernel\ndef doubled(values):\n    return values * 2\n"
        "print(doubled(np.arange(3)).tolist(), len(doubled.stats.cache_hits))\n"
    )
    (tmp_path / "m.py").write_text(code)
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert process(program=(str(tmp_path / "m.py"),), environment=environment).stdout == "[0, 2, 4] 0\n"
    assert process(program=(str(tmp_path / "m.py"),), environment=environment).stdout == "[0, 2, 4] 1\n"
    [path] = (tmp_path / "cache").rglob(f"*.{kind}")
    whole = path.read_bytes()
    for size in (0, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        done = process(program=(str(tmp_path / "m.py"),), environment=environment)
        assert done.stdout == "[0, 2, 4] 0\n", done.stderr
        done = process(program=(str(tmp_path / "m.py"),), environment=environment)
        assert done.stdout == "[0, 2, 4] 1\n", done.stderr
