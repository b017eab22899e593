"""Pages show the committed results, state no other figures, and every result has a program that writes it."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.claims.facts import Fact, read_facts, write_facts
from experiments.claims.judged_claims import judge_all
from experiments.claims.ledger import RETIRED, command_of
from experiments.harness.manifest import changed_code, read
from experiments.show.finding import UNKNOWN, finding
from experiments.show.overview import overview
from experiments.show.pages import CITATION, PAGES, ROOT, SECTION, SECTIONS, cited, plain, written
from spotsigs import __version__
from spotsigs.runs.provenance import git

STATED = {
    "README.md": set(),
    "docs/performance.md": {"1.17", "1.25", ".5", ".9", ".27", "3.3", "2.4"},
    "docs/scaling.md": {*".5 .9 1.1 2.1 2.6 3.3 4.2 4.4 5.5 6.4 7.6".split()},
    "docs/citing.md": set(),
    "docs/reproduction.md": {"0.75", "0.85", "1.1", "4.3", "5.3", "95 %"},
    "docs/differences.md": {"0.1", "0.85", "0.9", "1.0", "5.2"},
    "docs/gold.md": {".75", ".85", ".71", ".69", "94 %"},
    "docs/newsframes.md": {"1.0", "4.0", ".64", "3 %", "5 %", "80 %", "130 %"},
    "docs/republished.md": {".01", ".44", "95 %"},
    "docs/wt10g_like.md": {
        *"5.4 21.36 0.75 0.56 16.36 14.2 0.821 2.2 0.1 0.35 0.7 .1 .5 .7 .9".split(),
        *("9 %", "10 %", "20 %", "30 %", "40 %"),
    },
    "docs/protocol.md": {
        *(".013", ".02", ".04", ".05", ".44", ".85", ".98", "95 %"),
        # of the second part: parameters, and what an exploration before it let us expect
        *".00 .003 .005 .011 .035 .045 .06 .14 .20 .5 .88 .9 .99 2.5 97.5".split(),
        "90 %",
    },
}
"""Decimals outside generated sections and code that are no measurements of this project: parameters, versions, numbers
of sections, published values, and sizes that a sentence defines."""
FIGURES = list(csv.DictReader((ROOT / "docs/figures.csv").read_text(encoding="utf-8").splitlines()))
"""Measured figures outside generated sections, by page: of a file of this commit, or of a command at an earlier one."""
DECIMAL = re.compile(r"(?<![\w./=\[-])\d*\.\d+(?:M\b)?(?!\.?\w)|\d+ %")


@pytest.mark.parametrize("name", PAGES)
def test_sections_are_those_of_the_results(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert SECTION.search(text)
    assert written(text, ROOT / "results") == text, "run python -m experiments.show.pages"


def test_every_section_is_on_a_page():
    shown = [match[2] for name in PAGES for match in SECTION.finditer((ROOT / name).read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(SECTIONS)


def test_the_citation_has_the_version_and_the_date_of_the_changelog():
    text = CITATION.read_text(encoding="utf-8")
    assert cited(text) == text, "run python -m experiments.show.pages"
    newest = re.search(r"^## \[([\d.]+)\] - (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest[1] == __version__
    assert f"date-released: {newest[2]}\n" in text


@pytest.mark.parametrize("name", STATED)
def test_other_text_has_no_measured_figures(name):
    text = SECTION.sub("", (ROOT / name).read_text(encoding="utf-8"))
    found = r"(?<=## What the reproduction finds\n).*?(?=\n## )|(?<=## What was found\n).*?(?=\n## )"  # see below
    text = re.sub(found, "", text, flags=re.DOTALL)
    text = re.sub(r"## Real pages.*?(?=\n## )", "", text, flags=re.DOTALL)  # of the command that opens the section
    text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    measured = {figure for row in FIGURES if row["page"] == name for figure in DECIMAL.findall(row["figures"])}
    assert set(DECIMAL.findall(text)) - measured == STATED[name]
    assert measured <= set(DECIMAL.findall(text)), "docs/figures.csv has figures that are not on the page"


def wilson(wrong: int, n: int = 150, z: float = 1.96) -> list[float]:
    """Return a fraction and its interval."""
    middle, half = wrong / n + z**2 / (2 * n), z * math.sqrt(wrong / n * (1 - wrong / n) / n + z**2 / (4 * n**2))
    return [wrong / n, *((middle + sign * half) / (1 + z**2 / n) for sign in (-1, 1))]


def values(path: Path) -> list[float]:
    """Return the numbers that a page may quote from a file."""
    if path.name == "republished_checked.csv":
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        judged = [(row["truth"] == "same", row["near_duplicate"]) for row in rows]
        wrong = [judged.count((same, verdict)) for same, verdict in ((True, "no"), (False, "yes"))]
        doubtful = [judged.count((same, "doubtful")) for same in (True, False)]
        return [x for a, b in zip(wrong, doubtful, strict=True) for n in (a, a + b) for x in wilson(n)]
    return [float(number) for number in re.findall(r"(?<=,)-?[\d.]+(?:e-?\d+)?(?=[,\n])", path.read_text("utf-8"))]


@pytest.mark.parametrize("row", FIGURES, ids=lambda row: f"{row['page']}, {row['of']}")
def test_a_measured_figure_has_a_source(row):
    if not row["source"]:
        assert row["command"]
        assert git("rev-parse", "--is-shallow-repository") == "true" or changed_code(row["commit"]) is not None
        return
    actual = values(ROOT / row["source"])
    for figure in DECIMAL.findall(row["figures"]):
        digits = len(figure.removesuffix(" %").partition(".")[2])
        scales = (100,) if figure.endswith("%") else (1, 1e-6)
        stated = float(figure.removesuffix(" %"))
        assert any(round(value * scale, digits) == stated for value in actual for scale in scales), figure


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1).replace("-", "−")


RESULTS = ROOT / "results"
SITES = (16, 44, 87, 174, 432, 712)


def leads(folder: str) -> list[Fact]:
    """Return the leads of spots in the study's band, in the order of `SITES`."""
    facts = read_facts(RESULTS / folder / "facts.csv")
    return [facts[f"lead of spots, {sites} sites, [0.2, 1]"] for sites in SITES]


def section(page: str, title: str) -> str:
    """Return the text below a title of a page, up to the next one."""
    return (ROOT / page).read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_table_of_readme_has_the_leads_of_the_results():
    page, of_pages = section("README.md", "What the reproduction finds"), leads("sites")
    rows = {
        "sites that supply 2,160 pages": [str(sites) for sites in SITES],
        "lead of spot signatures": [signed(lead.value) for lead in of_pages],
        "its 95 % interval, from": [signed(lead.low) for lead in of_pages],
        "to": [signed(lead.high) for lead in of_pages],
        "lead without templates": [signed(lead.value) for lead in leads("sites_templates")],
    }
    for title, cells in rows.items():
        assert f"\n| {title} | {' | '.join(cells)} |\n" in page
    assert page.count("\n| ") == len(rows) + 1  # the line below the titles


def test_the_finding_of_readme_is_five_sentences_that_the_results_support():
    prose = " ".join(section("README.md", "What the reproduction finds").partition("\n\n|")[0].split())
    assert len(re.findall(r"\.(?= [A-Z]|$)", prose)) == 5
    sites, templates = (read_facts(RESULTS / name / "facts.csv") for name in ("sites", "sites_templates"))
    assert all(sites[f"hypothesis {step}: verdict"].text == "holds" for step in ("1", "2", "3", "4"))
    assert templates["hypothesis 6: verdict"].text == "holds"
    for of in ("spots", "best rival"):
        assert sites[f"hypothesis 4: fraction of the false pairs that are of one site, 16 sites, {of}"].value == 1
    table2 = list(csv.DictReader((RESULTS / "table2/table2.csv").read_text(encoding="utf-8").splitlines()))
    timed = {row["method"]: row["total_ms"] for row in table2 if (row["row"], row["tau"]) == ("measured", "0.9")}
    methods = ("SpotSigs", "LSH-S (native)", "SpotSigs, tight bounds")
    algorithm, lsh, tight = (float(timed[method]) / 1000 for method in methods)
    assert f"(`matcher=spotsigs`) takes {algorithm:.3g} seconds" in prose
    assert f"(`matcher=lsh_native`) takes {lsh:.3g}," in prose
    assert f"(`matcher=spotsigs_tight`) takes {plain(tight, 2)}." in prose
    assert re.search(r"\bH\d|one more split", prose) is None


def test_the_leads_beside_the_study_have_the_numbers_of_the_results():
    facts = read_facts(RESULTS / "sites/facts.csv")
    text = " ".join(section("docs/reproduction.md", "What was found").split())
    for collection in ("package_docs_html", "republished"):
        lead = facts[f"lead of spots, {collection}, [0.2, 1]"]
        stated = "{} ({} to {})".format(*map(signed, (lead.value, lead.low, lead.high)))
        assert f"{stated} on `{collection}`" in text


DECIDED = (
    ("raises F1 on news by {}", "observation 1: newsframes (above 0)", "holds"),
    ("lowers it on documentation by {}", "observation 1: republished (below 0)", "holds"),
    ("raises the F1 of single words on news by {}", "observation 6: newsframes (below 0)", "refuted"),
    ("the F1 of I-Match-S by {}", "observation 2: newsframes (above 0)", "holds"),
)
"""What the page states as decided, the fact, and the outcome of its test."""


@pytest.mark.parametrize(("sentence", "name", "outcome"), DECIDED)
def test_what_is_decided_has_the_numbers_of_the_results(sentence, name, outcome):
    facts = read_facts(ROOT / "results/observations/facts.csv")
    fact = facts[name]
    value, low, high = (f"{abs(each):.3f}".removeprefix("0") for each in (fact.value, fact.low, fact.high))
    stated = f"{value} ({min(low, high)} to {max(low, high)})"
    assert sentence.format(stated) in " ".join(section("docs/reproduction.md", "What was found").split())
    assert outcome in facts[f"{name.partition(':')[0]}: corrected p"].text


def test_the_setting_of_lsh_has_the_numbers_of_the_results():
    rows = list(csv.DictReader((ROOT / "results/observations/lsh.csv").read_text(encoding="utf-8").splitlines()))
    [row] = [row for row in rows if row["collection"] == "newsframes" and "paper" in row["setting"]]
    value, low, high = (number.replace("-0.", ".") for number in re.findall(r"-[\d.]+", row["difference"]))
    text = " ".join(section("docs/reproduction.md", "What was found").split())
    assert f"lowers F1 on news by {value} ({high} to {low})" in text


def test_a_study_that_left_the_code_has_the_commit_of_its_results():
    made = {row.file.partition("/")[0]: row.commit[:8] for row in read(RESULTS)}
    left = {name for name in FOLDERS if name not in BENCHMARKS and not (ROOT / f"conf/experiment/{name}.yaml").exists()}
    assert {name: made[name] for name in left} == RETIRED
    assert command_of("signatures") == "git checkout 74896885 && python run.py experiment=signatures"
    assert command_of("quality") == "python run.py experiment=quality"


# the folder of results

BENCHMARKS = {"bench": "benchmarks/bench.py", "race": "benchmarks/end_to_end.py", "soak": "tests/helpers/soak.py"}
"""Folders that no experiment writes, and their programs."""
EVERY = {"facts", "cells"}
"""Names that every experiment may write."""
OTHERS = ("cells", "runs", "variants", "threshold")
FOLDERS = sorted(path.name for path in RESULTS.iterdir() if path.is_dir() and path.name not in OTHERS)


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name not in RETIRED])
def test_every_file_is_written_by_an_existing_program(folder):
    program = ROOT / BENCHMARKS.get(folder, f"conf/experiment/{folder}.yaml")
    sources = [program]
    if folder not in BENCHMARKS:
        modules = re.findall(r": (experiments\.[\w.]+)\.\w+$", program.read_text(encoding="utf-8"), re.MULTILINE)
        sources += [ROOT / f"{module.replace('.', '/')}.py" for module in modules]
    studies = [re.findall(r"from experiments\.studies\.(\w+) import", path.read_text("utf-8")) for path in sources]
    sources += [ROOT / f"experiments/studies/{name}.py" for names in studies for name in names]  # which write for them
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    names = {re.sub(r"\d{5,}", "", path.name.partition(".")[0]) for path in (RESULTS / folder).rglob("*.*")}
    written = {name for name in names if re.search(rf'"{name}|^ *(name: )?{name}(:|$)', text, re.MULTILINE)}
    assert names - EVERY - {folder} - written == set()


def test_the_page_of_the_results_links_to_files_that_exist():
    text = overview(RESULTS, judge_all(RESULTS), {})
    page = (RESULTS / "README.md").read_text(encoding="utf-8")
    state = r" (current|unknown|finished study|code changed since [\d-]+ \([\d,]+ files?\)) \|$"  # as of its writing
    assert re.sub(state, "", page, flags=re.MULTILINE) == re.sub(state, "", text, flags=re.MULTILINE)
    assert re.search(r"experiment=figure5` \| (current|code changed)", page)
    assert "experiment=signatures` | finished study |" in page
    opening, _, rest = text.removeprefix("# Results\n\n").partition("\n\n")
    assert opening.startswith("Spot signatures help where few sites supply the pages")
    assert finding(RESULTS) in opening
    assert text.count("duplicates=off") == 1
    assert rest.partition("All [claims]")[0].count("\n| ") == 2 + 10  # a title, a line and ten claims
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 30
    assert [link for link in links if not (RESULTS / link.partition("#")[0]).exists()] == []


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (
            {},
            "That it falls with the number of sites that supply the pages is not shown: it is +.150 F1 (+.1",
        ),
        (
            {"1": 1},
            "the pages: it is +.150 F1 (+.100 to +.200) with 16 sites and −.001 F1 (−.010 to +.010) with 712.",
        ),
        (
            {"1": 1, "2": 1, "5a": 1},
            "within .02. The number of sites is the cause; an effect of the density of antecedents",
        ),
        (
            {"1": 1, "2": 1, "5a": 1, "5b": 1},
            "Both the number of sites and the density of antecedents in templates are",
        ),
        ({"1": 1, "2": 1, "6": 1}, "Once templates are removed, they are equal within .02 with every number of sites."),
    ],
)
def test_the_finding_has_the_words_of_the_protocol(tmp_path, held, words):
    assert finding(tmp_path) == UNKNOWN
    facts = [
        Fact(name="lead of spots, 16 sites, [0.2, 1]", value=0.15, low=0.1, high=0.2),
        Fact(name="lead of spots, 712 sites, [0.2, 1]", value=-0.001, low=-0.01, high=0.01),
        Fact(name="lead of spots, 16 sites, [0.2, 0.85]", value=1),
    ]
    other_leads = [replace(fact, value=0.9) for fact in facts]  # of pages without templates, by the same names
    folders = {"sites": facts, "sites_density": [], "sites_templates": other_leads}
    for step in held:
        folder = {"5a": "sites_density", "5b": "sites_density", "6": "sites_templates"}.get(step, "sites")
        folders[folder].append(Fact(name=f"hypothesis {step}: verdict", value=1, text="holds"))
    for folder, known in folders.items():
        (tmp_path / folder).mkdir()
        write_facts(tmp_path / folder / "facts.csv", known)
    assert words in finding(tmp_path)
    assert ("equal within .02" in finding(tmp_path)) == ("2" in held)


def test_the_page_of_the_results_needs_no_result(tmp_path):
    assert "- 55 claims of the paper: 51 not decided, 4 not testable" in overview(tmp_path, judge_all(tmp_path), {})
