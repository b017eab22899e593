"""Each bad input is refused in one sentence, and previous results remain."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
from pathlib import Path

import in_process
import pandas as pd
import pytest
from bad_input import COLLECTIONS, CONFIGURATION, GROUPS, LIBRARY, PROSE, RECORDS, STORES, file, jsonl
from runs import ran
from strategies import is_long

from spotsigs.errors import InputError
from spotsigs.storage.manifest import MANIFEST
from spotsigs.text.size_limits import page_size_limit

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bad_input.md"


def named(cases):
    return [pytest.param(case, id=re.sub(r"\W+", "-", case.given)) for case in cases]


def front_door(*arguments):
    """Run `run.py`, and return its exit code, output and errors."""
    done = in_process.front_door(*arguments)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="session")
def former(tmp_path_factory):
    """Return the folder of a finished run."""
    folder = tmp_path_factory.mktemp("former") / "run"
    done = in_process.front_door("data=tiny", "engine=serial", f"hydra.run.dir={folder}")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def results(former, tmp_path):
    """Return a folder with the results of a previous run."""
    return Path(shutil.copytree(former, tmp_path / "former"))


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def agrees(stated, says, here):
    """Return whether a sentence is the expected one; ``…`` represents words of other libraries."""
    pattern = ".+".join(map(re.escape, says.split("…")))
    return re.fullmatch(pattern, stated.replace(str(here), "{here}")) is not None


def refused(results, here, arguments, says):
    before = content(results)
    arguments = [word.replace("{here}", str(here)) for word in arguments]
    folder_of_run = [f"hydra.sweep.dir={results}"] if "-m" in arguments else [f"hydra.run.dir={results}"]
    code, out, err = front_door(*arguments, "engine=serial", *folder_of_run)
    assert code == 1, out
    of_others = ("pages/s]", "Error executing job") if "-m" in arguments else ("pages/s]",)
    lines = [line for line in err.splitlines() if not any(words in line for words in of_others)]
    assert len(lines) == 1
    assert agrees(lines[0], f"error: {says}", here), lines[0]
    after = content(results)
    assert {path: after.get(path) for path in before} == before
    assert {path.name for path in after.keys() - before.keys()} <= {"multirun.yaml"}  # Hydra's own


@pytest.mark.parametrize("case", named(COLLECTIONS + CONFIGURATION))
def test_a_run_is_refused_in_one_sentence_and_previous_results_remain(case, results, tmp_path):
    refused(results, tmp_path, case.make(tmp_path), case.says)


@pytest.mark.parametrize("case", named(RECORDS))
def test_a_bad_record_is_listed_and_stops_only_a_strict_run(case, results, tmp_path):
    arguments = case.make(tmp_path)
    code, out, err = front_door(*arguments, "engine=serial", f"hydra.run.dir={tmp_path}/run")
    assert code == 0, err
    with (tmp_path / "run" / "skipped.csv").open(newline="", encoding="utf-8") as file:
        [(id_, reason)] = [(row["doc"], row["reason"]) for row in csv.DictReader(file)]
    assert agrees(f"{id_}: {reason}", case.says, tmp_path), f"{id_}: {reason}"
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["skipped"] == 1
    assert metrics["documents"] >= 1
    assert "1 record could not be read: see skipped.csv" in out
    before = content(results)
    with pytest.raises(InputError) as error:
        ran(results, *arguments, "engine=serial", "strict=true")
    assert agrees(str(error.value), f"{case.says} (strict=true stops at the first)", tmp_path), str(error.value)
    assert content(results) == before


@pytest.mark.parametrize("case", named(STORES + LIBRARY))
def test_the_library_refuses_in_one_sentence(case, tmp_path):
    with pytest.raises(InputError) as error:
        case.make(tmp_path)
    assert agrees(str(error.value), case.says, tmp_path), str(error.value)
    assert not Path("/tmp/unpickled").exists()
    assert not [path for path in tmp_path.rglob("*") if ".writing-" in path.name]
    for mine in ("mine/thesis.txt", "copy/mine.txt"):
        assert (tmp_path / mine).exists() == (tmp_path / mine).parent.exists()


def test_debug_shows_the_traceback(tmp_path):
    code, _, err = front_door("data=tiny", "tau=0", "debug=true", f"hydra.run.dir={tmp_path}")
    assert code == 1
    assert "Traceback" in err


def test_a_sentence_sends_nothing_to_the_terminal(tmp_path):
    bad = {"id": "\x1b]0;mine\x07\r\nerror: none\u202e", "text": 3}
    file("x.jsonl", jsonl(bad), "jsonl")(tmp_path)
    shown = "\\x1b]0;mine\\x07\\r\\nerror: none\\u202e"
    done = in_process.command("cluster", tmp_path / "x.jsonl", "--strict", "--workers", 1, "--out", tmp_path / "run")
    says = f"{shown} (x.jsonl@363): 'text' is of type int, not text (--strict stops at the first)"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"error: {says}")


def test_a_results_folder_below_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, err = front_door("data=tiny", f"hydra.run.dir={tmp_path}/file/run")
    assert code == 1
    assert err == f"error: {tmp_path}/file/run: Not a directory; give another path\n"
    assert (tmp_path / "file").read_text() == "mine"


# what is odd, and no error


def finished(folder, *words):
    """Run in a folder; return the figures."""
    code, _, err = front_door(*words, "engine=serial", f"hydra.run.dir={folder}/run")
    assert code == 0, err
    return json.loads((folder / "run" / "metrics.json").read_text())


def run(folder, rows, *more):
    return finished(folder, *file("x.jsonl", jsonl(*rows, good=False), "jsonl")(folder), *more)


def page_beside_a_good_one(folder, name, content):
    (folder / "pages").mkdir()
    (folder / "pages" / "good.html").write_text(f"<p>{PROSE}</p>" * 9)
    (folder / "pages" / name).write_bytes(content)
    return "data=folder", f"data.path={folder}/pages"


def test_ids_that_repeat_or_look_like_paths_commands_and_formulas(tmp_path):
    ids = ["x", "x", "x#2", "../../etc/passwd", "a\nb", 'c,"d', "=1+1", " @SUM(1)", "$(touch /tmp/owned)", "\x00"]
    ids += ["é" * 300, "{0.__class__}", "%s%n", "<script>alert(1)</script>", "", None, 7, "\ud800"]
    rows = [{"id": name, "text": PROSE} for name in ids]
    words = file("x.jsonl", jsonl(*rows, good=False), "jsonl")(tmp_path)
    ran(tmp_path / "run", *words, "engine=serial", "idf_min=0", "page=true", f"copy={tmp_path}/copy")
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["documents"] == len(ids)
    assert metrics["pairs"] == len(ids) * (len(ids) - 1) // 2
    names = pd.read_parquet(tmp_path / "run" / "clusters.parquet")["doc"].tolist()
    assert len(set(names)) == len(ids)
    assert names[:5] == ["x", "x#3", "x#2", "../../etc/passwd", "a\nb"]
    with (tmp_path / "run" / "removed.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))
    assert len(rows) == len(ids)
    assert not [cell for row in rows for cell in row if cell.lstrip().startswith(("=", "@"))]
    assert b"<script>alert" not in (tmp_path / "run" / "clusters.html").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"x.jsonl", "run", "copy"}
    assert sorted(path.name for path in (tmp_path / "copy").rglob("*")) == [MANIFEST, "x.jsonl"]
    assert not Path("/tmp/owned").exists()


def test_clusters_given_for_some(tmp_path):
    rows = [{"id": str(k), "text": PROSE, **({"cluster": "c"} if k < 2 else {})} for k in range(4)]
    metrics = run(tmp_path, rows, "idf_min=0", "data.unlabelled=alone")
    assert (metrics["pairs"], metrics["precision"], metrics["recall"]) == (6, 1 / 6, 1)


def test_one_document_and_documents_without_signatures(tmp_path):
    assert run(tmp_path, [{"id": "a", "text": PROSE}])["pairs"] == 0
    (tmp_path / "other").mkdir()
    metrics = run(tmp_path / "other", [{"id": str(k), "text": "x"} for k in range(3)])
    assert (metrics["documents"], metrics["documents_matched"], metrics["pairs"]) == (3, 0, 3)  # copies of one another


def test_names_that_are_not_utf8(tmp_path):
    (tmp_path / "pages").mkdir()
    for name in (b"\xff.html", b"\xfe.html", "ü ñ.html".encode()):
        Path(os.fsdecode(bytes(tmp_path / "pages") + b"/" + name)).write_text(PROSE)
    done = in_process.command("cluster", tmp_path / "pages", "--workers", 1, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    names = pd.read_parquet(tmp_path / "run" / "clusters.parquet")["doc"].tolist()
    assert names == ["\\xfe.html", "\\xff.html", "ü ñ.html"]


# what is large


@pytest.mark.parametrize("text", ["visible", "main", "trafilatura"])
@pytest.mark.parametrize("tag", ["<div>", "<b>", "<p><table><td>", "<!--", "<a b='", "&lt", "</p>"])
def test_very_many_tags(tmp_path, text, tag):
    if text == "trafilatura":
        pytest.importorskip("trafilatura")
    n = 10**6 if text == "visible" and is_long() else 10**5
    words = page_beside_a_good_one(tmp_path, "huge.html", f"<p>{PROSE}</p>{tag * n}".encode())
    metrics = finished(tmp_path, *words, f"text={text}")
    assert metrics["documents"] + metrics["skipped"] == 2


@pytest.mark.parametrize(
    ("data", "head"),
    [("jsonl", b'{"id": "bad", "text": "'), ("csv", b'id,text\ngood,"'), ("trec", b"<DOC>\n<DOCNO>1</DOCNO>\n")],
)
@pytest.mark.parametrize("line", [b"x", b"x" * 99 + b"\n"])
def test_a_compressed_bomb_is_one_skipped_record(results, tmp_path, data, head, line):
    """A stream that unpacks to far more than a record may have; the limit is lowered, so that the test is quick."""
    path = tmp_path / f"x.{data}.gz"
    path.write_bytes(gzip.compress(head + line * (8 * (1 << 20) // len(line)), 1))
    with page_size_limit(1 << 20):
        _, _, err = front_door(f"data={data}", f"data.path={path}", "engine=serial", f"hydra.run.dir={results}")
    of_lines = {"jsonl": "the line is not JSON", "csv": "a quote in this line is not closed"} if len(line) > 1 else {}
    assert of_lines.get(data, "longer than 1 MiB") in err, err


@pytest.mark.long
@pytest.mark.parametrize("matcher", ["spotsigs", "spotsigs_tight", "lsh_native"])
def test_a_hundred_thousand_copies_of_one_page(tmp_path, matcher):
    """They are too many pairs to list, which needs no memory to find out; the library's case has a million."""
    line = json.dumps({"text": PROSE}).encode() + b"\n"
    (tmp_path / "x.jsonl").write_bytes(line * 10**5)
    code, _, err = front_door("data=jsonl", f"data.path={tmp_path}/x.jsonl", f"matcher={matcher}", "engine=serial")
    assert (code, "4,999,950,000 pairs are similar" in err, "use dedup, which lists no pairs" in err) == (
        1,
        True,
        True,
    )


def test_the_page_of_the_docs_counts_all():
    assert f"lists {sum(map(len, GROUPS.values()))} bad inputs" in PAGE.read_text(encoding="utf-8")
