"""Commands, code blocks and figures of the README and the docs are true."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from in_process import front_door, process
from pandas import read_csv
from runs import ran

import baselines
import spotsigs
from experiments.claims.judged_claims import judge_all
from experiments.config import build
from spotsigs import contracts, formats, records
from spotsigs.signatures.languages import languages
from spotsigs.testing import check_matcher, check_signature_scheme

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = ["baselines/sentences.py", "conf/signature/sentences.yaml"]
MADE += ["baselines/bottom_k.py", "conf/matcher/bottom_k.yaml"]
MADE += ["spotsigs/formats/mbox.py", "conf/data/mbox.yaml"]
"""Files of the guide to new methods."""
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [
        pytest.param(code, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, (kind, code) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if kind == language
    ]


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code):
    exec(compile(code, "a code block of the docs", "exec", dont_inherit=True), {"__name__": "docs"})


def test_links_between_pages_resolve():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_commands_print_what_the_pages_show(tmp_path):
    """Every block with output of the command ``spotsigs``, but for seconds and memory, and every line of a csv."""
    shutil.copytree(ROOT / "data/tiny", tmp_path / "data/tiny")
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = re.findall(r"^\$ spotsigs (.*)\n\n((?:(?!\$ |```).*\n)+)", text, re.MULTILINE)
    assert len(shown) == 2
    for command, output in shown:
        done = process(*command.split(), "--overwrite", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        printed, expected = (re.sub(r"[\d.]+(?= (?:s|MB)\b)", "#", part) for part in (done.stdout, output))
        assert expected in printed
    [rows] = re.findall(r"^doc,kept_instead,.*\n((?:(?!```).*\n)+)", text, re.MULTILINE)
    assert set(rows.splitlines()) <= set((tmp_path / "kept-results/removed.csv").read_text("utf-8").splitlines())


def test_the_committed_ledger_is_that_of_the_claims():
    ledger = read_csv(ROOT / "results/claims.csv", keep_default_na=False)
    judged = judge_all(ROOT / "results")
    assert ledger["verdict"].tolist() == [item.verdict.value for item in judged]
    assert ledger["claim"].tolist() == [item.claim.says for item in judged]
    for row in ledger.itertuples():
        assert row.verdict not in ("not reproduced", "not testable") or row.reason, row.claim


def test_make_coverage_names_existing_files():
    rules = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    [line] = re.findall(r"^INTERPRETED := (.*)$", rules, re.MULTILINE)
    pattern = r"\$\(addprefix ([\w/]+),\$\(addsuffix \.py,([\w ]+)\)\)"
    names = [f"{prefix}{name}.py" for prefix, words in re.findall(pattern, line) for name in words.split()]
    assert [name for name in names if not (ROOT / name).is_file()] == []
    assert len(names) > 20


def referred():
    """Return the names that the pages of the reference document, whole."""
    module, named = "", []
    for page in sorted((ROOT / "docs").glob("reference*.md")):
        for kind, name in re.findall(
            r"^\.\. (currentmodule|autofunction|autoclass|autodata):: (\S+)$", page.read_text(), re.MULTILINE
        ):
            if kind == "currentmodule":
                module = name
            else:
                named.append(name if "." in name else f"{module}.{name}")
    return named


class TestReference:
    def test_no_name_is_listed_twice(self):
        assert len(referred()) == len(set(referred()))

    def test_it_has_every_name_of_the_package(self):
        assert {f"spotsigs.{name}" for name in spotsigs.__all__} <= set(referred())

    def test_it_has_every_record(self):
        public = {
            name
            for module in (records, contracts)
            for name, kind in vars(module).items()
            if isinstance(kind, type) and kind.__module__ == module.__name__ and not name.startswith("_")
        }
        assert public <= {name.rpartition(".")[2] for name in referred()}

    def test_it_has_what_the_configuration_names(self):
        """Schemes, matchers, texts, engines, collections and readers; experiments have a table."""
        targets = {
            target
            for path in sorted((ROOT / "conf").glob("*/*.yaml"))
            for target in re.findall(r"^_target_: (\S+)$", path.read_text(), re.MULTILINE)
        }
        assert len(targets) > 30
        missing = {name for name in targets if not name.startswith("experiments.")} - self.everywhere()
        assert missing == set()

    def test_it_has_what_the_docs_import(self):
        for page in PAGES:
            for _, code in BLOCK.findall(page.read_text(encoding="utf-8")):
                for module, names in re.findall(r"^from (spotsigs[\w.]*) import (.+)$", code, re.MULTILINE):
                    for name in re.split(r", *", names):
                        assert f"{module}.{name}" in self.everywhere(), f"{page.name} imports {module}.{name}"

    @staticmethod
    def everywhere():
        """Return each name by the package's shortcut and by where it is defined."""
        return {*referred(), *(f"{getattr(spotsigs, name).__module__}.{name}" for name in spotsigs.__all__)}


def test_every_experiment_is_in_the_docs():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for path in (ROOT / "conf" / "experiment").glob("*.yaml"):
        assert f"experiment={path.stem}" in text or f"`{path.stem}`" in text, path.stem


def test_the_files_that_the_pages_name_exist():
    texts = [page.read_text(encoding="utf-8") for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md")]
    named = {name for text in texts for name in re.findall(r"`((?:tests|spotsigs|conf|docs)/[\w/.-]+)`", text)}
    assert len(named) > 50
    assert {name for name in named - set(MADE) if not (ROOT / name).exists()} == set()


def test_the_pages_count_the_languages():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    counted = re.findall(r"\b(\d+)\s+languages\s+of", pages)
    assert counted
    assert set(map(int, counted)) == {len(languages())}


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """Write the files of the guide to a folder that extends the packages; return the folder."""
    page, folder = (ROOT / "docs/add-a-method.md").read_text(encoding="utf-8"), tmp_path_factory.mktemp("guide")
    files = dict(re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert list(files) == MADE
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for package in (baselines, formats):
            more = str(folder / package.__name__.replace(".", "/"))
            patch.setattr(package, "__path__", [*package.__path__, more])
        yield folder


LETTER = "From a@b Thu Jan  1 00:00:00 2026\nContent-Type: text/{kind}\n\n{text}\n\n"
STORY = "The council has approved the plan. Is a new bridge needed? It will be built by the end of the year."


def test_the_examples_of_the_guide_run(guide, tmp_path):
    texts = [STORY, f"<p>{STORY} Advertisement.</p>", STORY.upper(), "A win in the rain for the home team."]
    mail = tmp_path / "mail.mbox"
    letters = [LETTER.format(kind="html" if text[0] == "<" else "plain", text=text) for text in texts]
    mail.write_text("".join(letters), encoding="utf-8")
    words = ["data=mbox", f"data.path={mail}", f"+data.shard_bytes={len(letters[0]) + 1}", "signature=sentences"]
    runs = {"bottom": ["matcher=bottom_k"], "memory": [], "disk": ["memory=2GB", f"copy={tmp_path / 'kept'}"]}
    choices = f"hydra.searchpath=[file://{guide / 'conf'}]"
    pairs, sizes = [], []
    for name, more in runs.items():
        if name == "disk":
            ran(tmp_path / name, *words, "tau=0.5", "engine=serial", choices, *more)
        else:
            done = front_door(*words, "tau=0.5", "engine=serial", choices, f"hydra.run.dir={tmp_path / name}", *more)
            assert done.returncode == 0, done.stderr
        metrics = json.loads((tmp_path / name / "metrics.json").read_text(encoding="utf-8"))
        sizes.append((metrics["documents"], metrics["signatures"], metrics["k"]))
        pairs.append(pq.read_table(tmp_path / name / "pairs.parquet").to_pydict())
    assert sizes == [(4, 7, 64), (4, 7, None), (4, 7, None)]
    assert len(pairs[0]["similarity"]) == 1
    assert pairs[0] == pairs[1] == pairs[2]
    assert (tmp_path / "kept" / "mail.mbox").read_text(encoding="utf-8") == "".join(letters[:1] + letters[2:])


def test_the_examples_of_the_guide_keep_the_contract(guide):
    for group, choice, check in (
        ("matcher", "bottom_k", check_matcher),
        ("signature", "sentences", check_signature_scheme),
    ):
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            choices = f"hydra.searchpath=[file://{guide / 'conf'}]"
            config = compose("config", [f"{group}={choice}", choices], return_hydra_config=True)
        check(build(config[group], group))


def test_the_examples_of_the_guide_pass_the_linter(guide):
    for name in (name for name in MADE if name.endswith(".py")):
        for check in (["check"], ["format", "--check"]):
            command = [sys.executable, "-m", "ruff", *check, "--stdin-filename", name, "-"]
            code = (guide / name).read_text(encoding="utf-8")
            done = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_of_the_docs_is_in_the_index():
    listed = set(re.findall(r"^[\w-]+$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"} <= listed
