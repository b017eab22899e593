"""The study of the number of sites: its cells against plain counting, its ordered hypotheses, and small runs."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from folders import rows_of
from hydra import initialize_config_dir
from naive.resampling import pairs_of_sample
from runs import configured
from test_manysites import collection, made, site  # noqa: F401

from experiments.claims.facts import Fact, read_facts, write_facts
from experiments.config import composed, methods_of
from experiments.harness.crossed_cells import DecisionsInSamples, SampledF1, SignaturesInSamples
from experiments.harness.curves import thresholds
from experiments.harness.extracted_collections import Source, read_together
from experiments.harness.template_free import TemplateFree
from experiments.resample import multiplicities
from experiments.studies.sites import FAILS, HOLDS, NOT_TESTED, Statistic, all_held, slope, verdicts, with_interval
from spotsigs.errors import InputError
from spotsigs.workers.engines import Serial

CONF = Path(__file__).parents[2] / "conf"
SIGNATURES = {"spots": {"signature": "spotsigs"}, "words": {"signature": "shingles1"}}
FIXED = {"duplicates": "off", "matcher": "spotsigs_tight"}
TAUS = tuple(thresholds(0.1))


def methods(**more):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return tuple(methods_of(SIGNATURES, composed("data=tiny"), **FIXED, **more).items())


def counted(pages, method, samples, folder):
    """Return F1 and the numbers of all false pairs and of false pairs of one site, by sample and threshold."""
    [stored] = read_together([Source.of(pages, method)], folder, Serial())
    ids = stored.signatures().doc_ids
    stories = [name.partition("/")[0] for name in ids]
    sites = [name.partition("/")[2].rpartition("-")[0] for name in ids]
    pairs = stored.prepare_join(method).match(method.at(0.1).matcher.with_threads(1)).pairs
    similar = {(min(i, j), max(i, j)): s for i, j, s in zip(pairs.i, pairs.j, pairs.similarity, strict=True)}
    every = list(combinations(range(len(ids)), 2))
    true = {(i, j) for i, j in every if stories[i] == stories[j]}
    copies = [
        {name: multiplicities(kind, [name], samples)[:, 0] for name in names}
        for kind, names in (("story", set(stories)), ("site", set(sites)))
    ]
    found = {}
    for sample, tau in product(range(-1, samples), TAUS):
        of_stories, of_sites = (
            {name: int(drawn[sample]) if sample >= 0 else 1 for name, drawn in of.items()} for of in copies
        )

        def total(chosen, weights=(of_stories, of_sites)):
            return pairs_of_sample(chosen, stories, sites, *weights)

        reported = {pair for pair, similarity in similar.items() if similarity >= tau}
        false = reported - true
        hits, misses, wrong = total(reported & true), total(true - reported), total(false)
        f1 = 2 * hits / (2 * hits + misses + wrong) if hits else 0.0
        found[sample, tau] = f1, wrong, total({(i, j) for i, j in false if sites[i] == sites[j]})
    return found


@pytest.mark.parametrize("template_free", [False, True])
def test_a_cell_is_what_counting_all_pairs_finds(made, tmp_path, template_free):  # noqa: F811
    pages, samples = collection(made, sites=4, pages=24, seed=3), 6
    pages = TemplateFree(collection=pages) if template_free else pages
    chosen = methods(idf_min=0)
    cells = SignaturesInSamples(collection=pages, methods=chosen, taus=TAUS, samples=samples)()
    assert list(cells) == ["spots", "words"]
    for label, method in chosen:
        cell, expected = SampledF1.of(cells[label]), counted(pages, method, samples, tmp_path / label)
        assert cell.tau == min(TAUS, key=lambda tau: (-expected[-1, tau][0], tau))
        assert len(cell.f1) == len(cell.false) == len(cell.false_of_one_site) == 1 + samples
        for sample in range(-1, samples):
            best = min(TAUS, key=lambda tau: (-expected[sample, tau][0], tau))
            assert cell.f1[sample + 1] == pytest.approx(expected[sample, best][0], abs=1e-6)
            assert (cell.false[sample + 1], cell.false_of_one_site[sample + 1]) == expected[sample, best][1:]


def test_decisions_are_those_of_a_run(made):  # noqa: F811
    pages = collection(made, sites=4, pages=24, seed=3)
    value = DecisionsInSamples(collection=pages, methods=methods(idf_min=0, tau=1.0), samples=4)()
    assert {label: [*measures] for label, measures in value.items()} == {
        "spots": ["lost", "left"],
        "words": ["lost", "left"],
    }
    assert value["words"]["lost"][0] == 0  # no two pages of two templates are equal
    assert value["words"]["left"][0] > 0.5
    assert len(value["words"]["left"]) == 5


def test_the_slope_is_the_one_of_least_squares():
    leads = np.random.default_rng(0).normal(size=(6, 3))
    numbers = [16, 44, 87, 16, 44, 87]
    expected = [np.polyfit(np.log(numbers), column, 1)[0] for column in leads.T]
    assert slope(numbers, leads) == pytest.approx(np.array(expected))


def test_an_interval_is_of_the_samples_alone():
    values = np.concatenate([[9.0], np.arange(101.0)])
    assert with_interval(values) == pytest.approx((9, 2.5, 97.5))
    assert with_interval(values, 0.9) == pytest.approx((9, 5, 95))


@pytest.mark.parametrize(
    ("statistic", "satisfied"),
    [
        (Statistic.below("1", "", np.array([-1.0, -2, -0.1])), True),
        (Statistic.below("1", "", np.array([-1.0, -2, 0.1])), False),
        (Statistic.equal("2", "", np.array([0.0, -0.01, 0.015])), True),
        (Statistic.equal("2", "", np.array([0.0, -0.01, 0.03])), False),
        (Statistic.equal("2", "", np.array([0.0, -0.03, 0.01])), False),
        (Statistic.above("3", "", np.array([0.1, 0.06, 0.2]), 0.05), True),
        (Statistic.above("3", "", np.array([0.1, 0.04, 0.2]), 0.05), False),
        (Statistic.other_than_0("5", "", np.array([0.1, 0.01, 0.2])), True),
        (Statistic.other_than_0("5", "", np.array([-0.1, -0.2, -0.01])), True),
        (Statistic.other_than_0("5", "", np.array([0.1, -0.1, 0.2])), False),
    ],
)
def test_a_statistic_is_satisfied_by_its_interval(statistic, satisfied):
    assert statistic.satisfied is satisfied


def test_a_hypothesis_is_tested_only_if_all_before_it_hold():
    holds, fails = np.array([1.0, 1, 1]), np.array([1.0, -1, 1])
    statistics = [
        Statistic.above("1", "", holds, 0),
        Statistic.above("2", "a", holds, 0),
        Statistic.above("2", "b", fails, 0),
        Statistic.above("3", "", holds, 0),
    ]
    assert verdicts(statistics, True) == {"1": HOLDS, "2": FAILS, "3": NOT_TESTED}
    assert verdicts(statistics, False) == {"1": NOT_TESTED, "2": NOT_TESTED, "3": NOT_TESTED}


def test_hypotheses_of_other_experiments_come_first(tmp_path):
    with pytest.raises(InputError, match=r"sites has no results, .* run experiment=sites first"):
        all_held(tmp_path, ["sites"])
    folder = tmp_path / "sites"
    folder.mkdir()
    for verdict in (1, 0):
        write_facts(folder / "facts.csv", [Fact(name="hypothesis 1: verdict", value=verdict), Fact(name="x", value=0)])
        assert all_held(tmp_path, ["sites"]) is bool(verdict)
    assert all_held(tmp_path, [])


def run(experiment, made, results, *more):  # noqa: F811
    of_pages = (f"data.path={made.packages}", f"data.archive={made.archives}", f"data.cache={made.cache}")
    small = ("data.pages=12", "experiment.draws=2", "experiment.first=1", "experiment.samples=30")
    words = (f"experiment={experiment}", f"experiment.results={results}", *of_pages, *small, *more)
    chosen = configured(*words, "workers=1", "engine=serial")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return chosen.experiment(chosen)


def test_the_study_on_small_pages(made, tmp_path):  # noqa: F811
    of_sites = "experiment.sites=[2,4,null]"
    with pytest.raises(InputError, match="run experiment=sites first"):
        run("sites_templates", made, tmp_path, of_sites)
    text = run("sites", made, tmp_path, of_sites, "experiment.beside=[tiny]")
    assert "lead_over_sites.svg" in text
    rows = rows_of(tmp_path / "sites/leads.csv")
    assert [row["sites"] for row in rows] == ["2", "4", "7"] * 2 + ["", ""]
    cells = rows_of(tmp_path / "sites/cells.csv")
    assert len(cells) == (3 * 2 + 1) * 4 * 2
    of_two = [
        cell for cell in cells if (cell["sites"], cell["idf_max"], cell["collection"]) == ("2", "1.0", "manysites")
    ]
    best = {
        seed: max(float(c["f1"]) for c in of_two if c["data_seed"] == seed and c["method"] != "spots") for seed in "12"
    }
    leads = [float(c["f1"]) - best[c["data_seed"]] for c in of_two if c["method"] == "spots"]
    assert float(rows[0]["lead"]) == pytest.approx(np.mean(leads))
    facts = read_facts(tmp_path / "sites/facts.csv")
    assert [facts[f"hypothesis {step}: verdict"].text for step in "1234"].count(NOT_TESTED) < 4
    assert facts["hypothesis 2: lead with 7 sites"].value == float(rows[2]["lead"])
    run("sites_density", made, tmp_path, "experiment.sites=[2,4]")
    [a, b] = rows_of(tmp_path / "sites_density/hypotheses.csv")
    four = {(row["prose"], row["sites"]): float(row["lead"]) for row in rows_of(tmp_path / "sites_density/leads.csv")}
    assert float(a["value"]) == pytest.approx(
        (four["0.045", "2"] + four["0.06", "2"] - four["0.045", "4"] - four["0.06", "4"]) / 2
    )
    assert float(b["value"]) == pytest.approx(
        (four["0.045", "2"] + four["0.045", "4"] - four["0.06", "2"] - four["0.06", "4"]) / 2
    )
    run("sites_templates", made, tmp_path, of_sites)
    assert len(rows_of(tmp_path / "sites_templates/hypotheses.csv")) == 3
    run("sites_dedup", made, tmp_path, of_sites)
    assert {row["method"] for row in rows_of(tmp_path / "sites_dedup/decisions.csv")} == {
        "spotsigs dedup",
        "with --boilerplate keep",
    }
