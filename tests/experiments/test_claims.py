"""Verdicts on the claims of the sources, and the ledger that lists them."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from experiments.claims.facts import Fact, read_facts, write_facts
from experiments.claims.judged_claims import Judged, failures, judge_all, markdown, summary, write_ledger
from experiments.claims.ledger import KINDS, RETIRED, ledger, parsed_claim
from experiments.claims.published import published
from experiments.claims.verdicts import HOLDS, About, Direction, Equal, Untested, Verdict
from experiments.harness.printed_algorithm import algorithm1
from spotsigs.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("rule", "fact", "verdict"),
    [
        # a value alone: the whole interval inside of its tolerance, outside, or neither
        (About(published=0.94, tolerance=0.03), (0.92, 0.91, 0.93), Verdict.REPRODUCED),
        (About(published=0.94, tolerance=0.03), (0.92, 0.90, 0.93), Verdict.NOT_DECIDED),
        (About(published=0.94, tolerance=0.03), (0.89, 0.84, 0.95), Verdict.NOT_DECIDED),
        (About(published=0.94, tolerance=0.03), (0.94, 0.50, 0.99), Verdict.NOT_DECIDED),
        (About(published=0.94, tolerance=0.03), (0.85, 0.80, 0.90), Verdict.NOT_REPRODUCED),
        (About(published=0.94, tolerance=0.03), (0.99, 0.98, 1.0), Verdict.NOT_REPRODUCED),
        # a value with a direction: the direction decides
        (About(published=0.25, tolerance=0.03, neutral=0), (0.24, -0.01, 0.5), Verdict.NOT_DECIDED),
        (About(published=0.25, tolerance=0.03, neutral=0), (0.24, 0.2, 0.3), Verdict.REPRODUCED),
        (About(published=0.25, tolerance=0.03, neutral=0), (0.10, 0.05, 0.15), Verdict.REPRODUCED),
        (About(published=0.25, tolerance=0.03, neutral=0), (-0.1, -0.2, -0.05), Verdict.NOT_REPRODUCED),
        (About(published=0.4, tolerance=0.1, neutral=1), (0.31, 0.25, 0.64), Verdict.REPRODUCED),
        (About(published=0.4, tolerance=0.1, neutral=1), (0.9, 0.7, 1.1), Verdict.NOT_DECIDED),
        (About(published=0.4, tolerance=0.1, neutral=1), (3.0, None, None), Verdict.NOT_REPRODUCED),
        (Direction(limit=0), (0.1, 0.05, 0.2), Verdict.REPRODUCED),
        (Direction(limit=0), (0.1, -0.05, 0.2), Verdict.NOT_DECIDED),
        (Direction(limit=0), (0.0, None, None), Verdict.NOT_DECIDED),
        (Direction(limit=0.05, above=False), (0.02, None, None), Verdict.REPRODUCED),
        (Direction(limit=0.05, above=False), (0.2, None, None), Verdict.NOT_REPRODUCED),
        (Equal(published=41), (41, None, None), Verdict.REPRODUCED),
        (Equal(published=41), (49, None, None), Verdict.NOT_REPRODUCED),
        (HOLDS, (0, None, None), Verdict.NOT_REPRODUCED),
        (Untested(reason="why"), (1, None, None), Verdict.NOT_TESTABLE),
        (Untested(reason="why", testable=True), (1, None, None), Verdict.NOT_DECIDED),
    ],
)
def test_the_rule(rule, fact, verdict):
    value, low, high = fact
    assert rule.judge(Fact(name="x", value=value, low=low, high=high))[0] is verdict


def declared_facts():
    """Yield the study and the name of each fact that a YAML file declares and whose study has committed results."""
    for path in sorted((ROOT / "conf/experiment").glob("*.yaml")):
        declared = yaml.safe_load(path.read_text(encoding="utf-8")).get("experiment", {}).get("facts", {})
        if (ROOT / "results" / path.stem / "facts.csv").is_file():
            yield from ((path.stem, name) for name in declared)


@pytest.mark.parametrize(("study", "name"), list(declared_facts()))
def test_each_declared_fact_is_among_the_results(study, name):
    """A ratio to a row that does not exist has no fact, and its claim was judged as one that is not run yet."""
    pattern = "".join(".+" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]*\})", name))
    known = [*read_facts(ROOT / "results" / study / "facts.csv")]
    assert any(re.fullmatch(f"(.+: )?{pattern}", other) for other in known), known


def test_the_remark_states_whether_the_value_is_near():
    rule = About(published=0.25, tolerance=0.03, neutral=0)
    assert rule.judge(Fact(name="x", value=0.24, low=0.2, high=0.3))[1] == "above 0, near 0.25 ± 0.03"
    assert rule.judge(Fact(name="x", value=0.10, low=0.05, high=0.15))[1] == "above 0, not near 0.25 ± 0.03"


def test_facts_are_read_as_they_were_written(tmp_path):
    facts = [Fact(name="a", value=1 / 3, low=0.1, high=0.5), Fact(name="b, with comma", value=True, text="yes")]
    write_facts(tmp_path / "facts.csv", facts)
    back = read_facts(tmp_path / "facts.csv")
    assert back["a"] == facts[0]
    assert (back["b, with comma"].value, back["b, with comma"].text) == (1.0, "yes")
    assert read_facts(tmp_path / "none.csv") == {}


def test_claims_are_distinct_and_located():
    claims = ledger()
    assert len(claims) >= 25
    assert len({(claim.where, claim.says) for claim in claims}) == len(claims)
    assert {claim.kind for claim in claims} == set(KINDS)
    for claim in claims:
        assert claim.published
        assert claim.where
        assert claim.test.on
        name = claim.test.experiment
        assert (name in RETIRED or (ROOT / f"conf/experiment/{name}.yaml").exists()) == bool(name)
        assert bool(claim.test.fact) == bool(claim.test.experiment)
        assert claim.test.experiment or isinstance(claim.test.rule, Untested)
        assert bool(claim.test.second) == bool(claim.test.second_on)
        assert bool(claim.test.beside) == bool(claim.test.beside_on)
        assert claim.test.fact not in (claim.test.second, claim.test.beside) or not claim.test.fact


def test_a_claim_without_one_rule_is_refused():
    entry = {"kind": "errata", "where": "x", "says": "y", "published": "1", "experiment": "e", "fact": "f"}
    assert parsed_claim(entry | {"about": 1.0, "tolerance": 0.1}).test.rule == About(published=1.0, tolerance=0.1)
    assert parsed_claim(entry | {"below": 4}).test.rule == Direction(limit=4, above=False)
    two = {"about": 1.0, "tolerance": 0.1, "holds": True}
    for bad in ({}, two, {"equals": 1, "because": "z"}, {"equals": 1, "kind": "z"}):
        with pytest.raises(InputError, match="claim 'y'"):
            parsed_claim(entry | bad)


def test_verdicts_are_those_of_the_facts(tmp_path):
    assert {item.verdict for item in judge_all(tmp_path)} == {Verdict.NOT_DECIDED, Verdict.NOT_TESTABLE}
    (tmp_path / "arithmetic").mkdir()
    formula = Fact(name="LSH-S memory by the stated formula", value=290.8)
    name = "partitions at tau 1, paper"
    for count, verdict in ((501, Verdict.REPRODUCED), (1000, Verdict.NOT_REPRODUCED)):
        write_facts(tmp_path / "arithmetic" / "facts.csv", [formula, Fact(name=name, value=count)])
        (item,) = (item for item in judge_all(tmp_path) if item.claim.test.fact == name)
        assert item.verdict is verdict
    write_ledger(tmp_path, judge_all(tmp_path))
    text = (tmp_path / "claims.md").read_text()
    assert "2 not reproduced" in text
    assert "python run.py experiment=arithmetic" in text
    assert len((tmp_path / "claims.csv").read_text().splitlines()) == len(ledger()) + 1
    [reason] = [line for line in failures(judge_all(tmp_path)) if "published 180" in line]
    assert "published 180, measured 291 (none: arithmetic); not reproduced. The printed figures come out" in reason


def fact(value, low=None, high=None, **more):
    return Fact(name="f", value=value, low=low, high=high, **more)


ONCE = {"kind": "efficiency", "above": 1, "timed": True}
BOTH = {"second": "s", "second_on": "republished", "about": 1.0, "tolerance": 0.2, "neutral": 0}
JUDGED = [
    # a time that was measured once is uncertain, a count or several measurements are not
    (ONCE, [fact(0.9)], Verdict.NOT_DECIDED),
    (ONCE, [fact(0.5)], Verdict.NOT_REPRODUCED),
    (ONCE, [fact(2)], Verdict.REPRODUCED),
    (ONCE | {"timed": False}, [fact(0.9)], Verdict.NOT_REPRODUCED),
    (ONCE, [fact(0.9, 0.85, 0.95, over="runs")], Verdict.NOT_REPRODUCED),
    # a value that is not defined decides nothing
    ({}, [fact(float("nan"))], Verdict.NOT_DECIDED),
    ({}, [fact(float("inf"))], Verdict.NOT_DECIDED),
    # generated pages decide no claim about quality
    ({"on": "gold, seed 2008"}, [fact(1, 0.9, 1.1)], Verdict.NOT_TESTABLE),
    ({"on": "gold, seed 2008", "kind": "efficiency"}, [fact(1, 0.9, 1.1)], Verdict.REPRODUCED),
    # equal verdicts on two collections stay, different ones decide nothing
    (BOTH, [fact(1, 0.9, 1.1), fact(3, 2.9, 3.1)], Verdict.REPRODUCED),
    (BOTH, [fact(-2, -3, -1), fact(-1, -1.1, -0.9)], Verdict.NOT_REPRODUCED),
    (BOTH, [fact(1, 0.9, 1.1), fact(0, -0.1, 0.1)], Verdict.NOT_DECIDED),
    (BOTH, [fact(0, -0.1, 0.1), fact(-1, -1.1, -0.9)], Verdict.NOT_DECIDED),
    (BOTH, [fact(3, 2.9, 3.1), fact(-1, -1.1, -0.9)], Verdict.NOT_DECIDED),
]


@pytest.mark.parametrize(("rule", "facts", "verdict"), JUDGED)
def test_a_verdict_depends_on_what_was_measured(rule, facts, verdict):
    claim = claim_of(**({} if "about" in rule else {"above": 0}) | rule)
    judged = Judged(claim=claim, fact=facts[0], second=facts[1] if facts[1:] else None)
    assert judged.verdict is verdict
    assert ("checks the program" in judged.reason) == (verdict is Verdict.NOT_TESTABLE)


def claim_of(**more):
    entry = {"kind": "effectiveness", "where": "x", "says": "y", "published": "1", "experiment": "e", "fact": "f"}
    return parsed_claim(entry | {"on": "newsframes"} | more)


def test_a_claim_that_depends_on_the_collection_is_not_decided():
    claim = claim_of(second="s", second_on="republished", above=0)
    above, below = fact(1, 0.9, 1.1), fact(-1, -1.1, -0.9)
    depends = Judged(claim=claim, fact=above, second=below)
    assert depends.verdict is Verdict.NOT_DECIDED
    assert depends.failed
    assert depends.reason == "depends on the collection; newsframes: above 0; republished: below 0"
    assert depends.remark == "On republished -1 (-1.1 to -0.9)."
    assert Judged(claim=claim, fact=above).verdict is Verdict.REPRODUCED


def test_a_fact_that_is_shown_beside_a_claim_is_not_judged():
    claim = claim_of(beside="s", beside_on="republished", above=0)
    judged = Judged(claim=claim, fact=fact(1, 0.9, 1.1), beside=fact(-1, -1.1, -0.9))
    assert (judged.verdict, judged.reason) == (Verdict.REPRODUCED, "above 0")
    assert judged.remark == "On republished -1 (-1.1 to -0.9)."


def test_claims_of_the_paper_are_counted_apart():
    sources = Counter(claim.source for claim in ledger())
    assert sources == {"paper": 55, "errata": 10, "other": 14}
    assert claim_of(where="LCS slides, Table 1", above=0).source == "other"
    assert claim_of(where="paper, 3.2; blog", above=0).source == "paper"
    assert claim_of(where="paper, 5.1", kind="errata", above=0).source == "errata"


def test_every_verdict_has_a_reason():
    for claim in ledger():
        for value in (-1e9, 1e9, None):
            fact = None if value is None else Fact(name=claim.test.fact, value=value, low=value, high=value)
            assert Judged(claim=claim, fact=fact).reason


def test_a_bar_in_a_claim_does_not_break_the_table():
    claim = ledger()[0]
    assert "a/b" in markdown([Judged(claim=claim, fact=Fact(name="x", value=1, text="a|b"))])
    assert summary([Judged(claim=claim, fact=None)]) == "- 1 claims of the paper: 1 not decided"


def test_published_figures():
    table = published("table1")
    assert [row["method"] for row in table] == ["SpotSigs", "1-Shingles", "3-Shingles", "LSH-S", "I-Match", "I-Match-S"]
    assert table[0]["f1"] == 0.94
    assert table[0]["k"] is None
    assert {len(published(name)) for name in ("table2", "lcs_table1", "lcs_table2")} == {7, 3, 4}


def test_algorithm_1_as_printed():
    documents = [Counter({1: 5, 2: 4, 3: 4}), Counter({1: 8, 2: 4}), Counter({1: 4, 2: 5, 3: 5})]
    pairs = algorithm1(documents, 0.8)
    assert pairs.pairs == {(0, 2)}
    assert pairs.comparisons[0] == 1
    smallest = [Counter({1: 4}), Counter({1: 4, 2: 1})]  # that floating point loses
    assert algorithm1(smallest, Fraction(4, 5)).pairs == {(0, 1)}
    assert algorithm1(smallest, 0.8).pairs == set()
