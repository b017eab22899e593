"""One sentence where decisions look wrong, in the words of the door, that work when they are typed."""

import re
from dataclasses import replace

import numpy as np
import pytest
from runs import configured, ran
from strategies import pairs_of

from spotsigs.clustering.clusters import ClusterMethod, cluster, cohesion
from spotsigs.errors import spelled
from spotsigs.options import SPELLINGS, Door
from spotsigs.runs.warnings import near_tau, warning
from spotsigs.signatures.boilerplate import Boilerplate

CHAIN = [(k, k + 1) for k in range(40)]
HUB = [(0, k) for k in range(1, 40)]
CLIQUE = [(a, b) for a in range(40) for b in range(a + 1, 40)]


def warned(edges, *overrides, n=300, tau=0.44, similarity=0.9, door="run", listed=True, **changed):
    method = replace(configured("data=tiny", *overrides).method.at(tau), **changed)
    values = np.broadcast_to(similarity, len(edges)).tolist()
    pairs = pairs_of([(*edge, value) for edge, value in zip(edges, values, strict=True)], n)
    clusters = cluster(pairs, clusters=method.clusters)
    near = near_tau(pairs, tau)
    sentence = warning(method, clusters, cohesion(clusters, pairs), near, listed=listed)
    return method, spelled(sentence, SPELLINGS[Door[door]])


@pytest.mark.parametrize(("door", "message"), [("run", "clusters=leaders"), ("command", "--clusters leaders")])
def test_a_chain_of_components_is_warned_about(door, message):
    _, sentence = warned(CHAIN, "clusters=components", door=door)
    assert sentence == (
        "warning: the largest group has 41 of 300 pages, most of them without a pair with the page that is kept; "
        f"give {message}"
    )
    assert warned(CHAIN, message if door == "run" else "clusters=leaders")[1] == ""


def test_many_small_chains_are_warned_about():
    edges = [(7 * k + step, 7 * k + step + 1) for k in range(40) for step in range(5)]
    assert warned(edges, "clusters=components")[1] == (
        "warning: most removed pages have no pair with the page that is kept; give clusters=leaders"
    )


@pytest.mark.parametrize(
    ("door", "message"),
    [
        ("run", "boilerplate=remove or a higher threshold, as in tau=0.54"),
        ("command", "--boilerplate remove or a higher threshold, as in --tau 0.54"),
    ],
)
def test_a_large_group_of_pages_that_are_not_similar_to_each_other(door, message):
    _, sentence = warned(HUB, door=door)
    assert sentence == (
        f"warning: the largest group has 40 of 300 pages, most of which are not similar to each other; give {message}"
    )
    assert warned(CLIQUE)[1] == warned(HUB, n=900)[1] == ""
    assert warned(HUB, "boilerplate=remove", tau=0.95)[1] == ""
    assert warned(HUB, listed=False)[1] == ""
    unlisted = warned(HUB, listed=False, similarity=0.5)[1]
    assert "only just reach tau with the page that is kept; give " in unlisted


def test_pairs_that_just_reach_tau_are_warned_about():
    edges = [(5 * k + a, 5 * k + b) for k in range(40) for a in range(3) for b in range(a + 1, 3)]
    many = np.where(np.arange(len(edges)) % 3, 0.45, 0.8)
    assert warned(edges, similarity=many)[1] == (
        "warning: 67 % of all pairs only just reach tau, as unrelated pages do; "
        "give boilerplate=remove or a higher threshold, as in tau=0.54"
    )
    assert warned(edges, similarity=np.linspace(0.44, 1, len(edges)))[1] == ""
    assert warned(edges[:90], similarity=0.45)[1] == ""  # too few pairs
    assert near_tau(pairs_of(edges, 300), None) is None


def test_the_options_that_a_warning_names_work():
    _, sentence = warned(HUB)
    words = re.findall(r"\w+=[\w.]+", sentence)
    assert words == ["boilerplate=remove", "tau=0.54"]
    method = configured("data=tiny", *words).method
    assert method.boilerplate is Boilerplate.remove
    assert method.tau == 0.54
    assert configured("data=tiny", "clusters=leaders").method.clusters is ClusterMethod.leaders


def test_a_run_reports_its_decisions_and_warns(tmp_path):
    text = ran(tmp_path / "run", "data=tiny", "engine=serial", "tau=0.05", "clusters=components", "idf_min=0")
    counts = r"\d+ stor(y|ies) of \d+ lost \([\d.]+ %\), \d+ of \d+ duplicates left \([\d.]+ %\), B-cubed"
    assert re.search(counts, text)
    assert "warning: the largest group has" in text
    assert "clusters=leaders" in text
