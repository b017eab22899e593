"""Every command and code block of the README and the docs does what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pandas import read_csv

import spotsigs
from spotsigs.experiments.claims.judged_claims import judge_all
from spotsigs.experiments.show.readme import counts, written

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [
        pytest.param(code, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, (kind, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if kind == language
    ]


def commands():
    for block in blocks("sh"):
        for number, line in enumerate(block.values[0].splitlines()):
            words = shlex.split(line, comments=True)
            if words[:2] == ["python", "run.py"]:
                small = {"data=tiny", "--help"} & set(words) or "data.path=data/tiny" in words
                quick = small and block.id.startswith("README")
                marks = [] if quick else [pytest.mark.long]
                yield pytest.param(words[2:], id=f"{block.id}-{number}", marks=marks)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code):
    exec(compile(code, "a code block of the docs", "exec", dont_inherit=True), {"__name__": "docs"})


@pytest.mark.parametrize("arguments", list(commands()))
def test_commands_run(arguments):
    done = subprocess.run(
        [sys.executable, "run.py", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_states_the_committed_results():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = text[text.index("## What the reproduction finds") :].split("\n## ")[0]
    table = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    collections = [name.strip(" `") for name in table[0][2:]]
    facts = read_csv(ROOT / "results/matrix/facts.csv").set_index("name")["value"]
    published = read_csv(ROOT / "experiments/paper/table1.csv").set_index("method")["f1"]
    assert len(table) == 1 + len(published)
    for method, printed, *cells in ([cell.strip() for cell in row] for row in table[1:]):
        assert float(printed) == published[method]
        for name, cell in zip(collections, cells, strict=True):
            f1, _, tau = cell.partition(" at ")
            assert float(f1) == round(facts[f"{name}: {method}: best F1"], 3)
            assert bool(tau) == (f"{name}: {method}: best tau" in facts)
            assert not tau or float(tau) == round(facts[f"{name}: {method}: best tau"], 2)


def test_the_readme_says_what_the_committed_results_are():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert written(text, ROOT / "results") == text
    assert counts(ROOT / "results") in text
    assert (
        written(text.replace(" are reproduced", "1 are reproduced").replace("at .1", "at .2"), ROOT / "results") == text
    )


def test_the_committed_ledger_is_that_of_the_claims():
    ledger = read_csv(ROOT / "results/claims.csv", keep_default_na=False)
    judged = judge_all(ROOT / "results")
    assert ledger["verdict"].tolist() == [item.verdict.value for item in judged]
    assert ledger["claim"].tolist() == [item.claim.says for item in judged]


def test_every_failing_claim_has_a_remark():
    for row in read_csv(ROOT / "results/claims.csv", keep_default_na=False).itertuples():
        assert row.verdict not in ("not reproduced", "contradicted", "not testable here") or row.remark, row.claim


def test_make_coverage_names_files_that_are_there():
    rules = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    [names] = re.findall(r"^INTERPRETED := \$\(addprefix tests/test_,\$\(addsuffix \.py,(.*)\)\)$", rules, re.MULTILINE)
    assert [name for name in names.split() if not (ROOT / "tests" / f"test_{name}.py").is_file()] == []
    assert len(names.split()) > 20


def test_every_public_name_stands_in_the_reference():
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\.\. auto(?:function|class):: (\w+)$", reference, re.MULTILINE))
    assert set(spotsigs.__all__) <= named


def test_every_page_of_the_docs_stands_in_the_index():
    listed = set(re.findall(r"^[\w-]+$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"} <= listed
