"""The studies of signatures, templates and usual settings, on small collections."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from folders import rows_of
from hydra import initialize_config_dir
from runs import read
from test_newsframes import collection, tarballs  # noqa: F401

from baselines.shingles import Shingles
from baselines.substrings import Substrings
from data.collections.gold import Gold
from data.collections.newsframes.density import density
from experiments.config import composed, method_of
from experiments.harness.cross_validation import Difference
from experiments.harness.extracted_collections import Source, read_together
from experiments.studies.observations import Partial, transfers, words_of
from experiments.studies.signature_study import CorrectedTest, SignatureStudy
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.records import Corpus, Vectors
from spotsigs.signatures.extract import extract
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText, visible_text

CONF = Path(__file__).parents[2] / "conf"
TINY = ["workers=1", "engine=serial"]


@pytest.fixture(autouse=True)
def conf():
    """Methods are composed in the folder of the configuration."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def run(name, folder, *words):
    known = composed(f"experiment={name}").experiment.collections
    others = [f"~experiment.collections.{collection}" for collection in known]
    settings = composed(f"experiment={name}", *others, *TINY, *words, f"experiment.results={folder}")
    return settings.experiment(settings)


TINY_GOLD = "data=gold data.seed=1 data.pages=150 data.clusters=24"
FEW = ["experiment.splits=4", "experiment.samples=5", "experiment.step=0.1"]


@pytest.mark.long
def test_every_signature_is_evaluated_with_every_treatment(tmp_path):
    archive = f"data:'{TINY_GOLD} +data.cache={tmp_path}',site:'/(.+)-[0-9]+\\.html$'"
    run("signatures", tmp_path, f"+experiment.collections.tiny={{{archive}}}", *FEW)
    folder = tmp_path / "signatures"
    rows = {(row["treatment"], row["signature"]): row for row in rows_of(folder / "signatures.csv")}
    assert len(rows) == 30  # without the article, which the collection does not know
    for row in rows.values():
        low, _, high = row["f1_interval"].partition(" to ")
        assert float(low) <= float(high)
    facts = {row["name"]: float(row["value"]) for row in rows_of(folder / "facts.csv")}
    best = max(facts[f"tiny: {rival}, trafilatura: F1"] for rival in ("words", "3-shingles", "5-shingles"))
    assert facts["tiny: lead of spots, trafilatura"] >= facts["tiny: spots, trafilatura: F1"] - best - 1e-6
    assert facts["tiny: spots, template removed: F1"] > facts["tiny: words, whole page: F1"]
    tests = rows_of(folder / "tests.csv")
    assert [row["hypothesis"] for row in tests] == ["H1", *3 * ["H2"], *3 * ["H2, difference"], *3 * ["H3"]]
    assert all(float(row["p"]) <= float(row["corrected"]) <= 1 for row in tests)
    assert {row["words"] for row in tests} == {"undecided"}  # 20 samples cannot reach the level
    assert (folder / "leads.svg").exists()
    assert (folder / "splits.svg").exists()


def test_leader_and_rivals_are_signatures():
    with pytest.raises(InputError, match="must name signatures"):
        SignatureStudy(signatures={"words": ""}, leader="spots")


def test_the_words_follow_from_the_corrected_tests():
    def words(hypothesis, value, corrected):
        return CorrectedTest(hypothesis, "a", "b", Difference(np.full((2, 3), value)), 0.0, corrected).words

    assert words("H1", 0.1, 0.04) == "spots lead"
    assert words("H2, difference", -0.1, 0.04) == "the rival leads"
    assert words("H2", 0.01, 0.04) == "equal within 0.02"
    assert words("H3", 0.1, 0.04) == "larger"
    assert words("H4", -0.1, 0.04) == "smaller"
    assert {words(name, 0.1, 0.06) for name in ("H1", "H2", "H3", "H4")} == {"undecided"}


def test_the_family_has_the_tests_of_the_protocol():
    study = composed("experiment=signatures").experiment
    some = Difference(np.random.default_rng(0).normal(0, 0.004, (60, 41)))
    deciding = {name: attributes for name, attributes in study.collections.items() if attributes.get("decides", True)}
    leads = {
        (name, treatment): some
        for name, attributes in deciding.items()
        for treatment in study.treatments
        if treatment != "article" or attributes.get("article")
    }
    tests = study.hypothesis_tests(leads, dict.fromkeys(study.rivals, some))
    assert len(tests) == 36
    assert {test.words for test in tests if test.hypothesis == "H2"} == {"equal within 0.02"}
    assert {test.words for test in tests if test.hypothesis != "H2"} == {"undecided"}


def curve(best, height, *, width=21):
    """Return F1 by threshold in one split, sample and both halves: 1 at the best, falling by `height` a step."""
    values = 1 - height * np.abs(np.arange(width) - best)
    return np.broadcast_to(values, (1, 2, 2, width))


def test_a_transferred_threshold_costs_what_the_other_curve_loses():
    parts = transfers({"flat": curve(5, 0.001), "steep": curve(10, 0.05), "near": curve(6, 0.05)})
    assert [part.name.partition(" (")[0] for part in parts] == ["flat to steep", "steep to near", "near to steep"]
    assert [part.difference.value for part in parts] == pytest.approx([0.25, 0.2, 0.2])


def test_an_observation_is_supported_or_a_part_of_it_is_refuted():
    above = Difference(np.full((2, 100), 0.1))
    below = Difference(np.full((2, 100), -0.1))
    assert words_of([Partial.above("a", above), Partial.below("b", below)], 0.04) == "holds"
    assert words_of([Partial.above("a", above), Partial.below("b", above)], 1.0) == "refuted: b (below 0)"
    assert words_of([Partial.equal("a", above)], 1.0) == "refuted: a (within 0.02)"
    assert words_of([Partial.above("a", below, -0.02)], 1.0) == "refuted: a (above -0.02)"
    assert words_of([Partial.above("a", Difference(np.zeros((2, 100))))], 1.0) == "undecided"
    assert Partial.above("a", above).p == pytest.approx(2 / 199)
    assert Partial.above("a", above, 0.05).p == pytest.approx(1 / 199)


@pytest.mark.long
def test_seven_observations_of_small_collections(tmp_path):
    small = f"data:'{TINY_GOLD} +data.cache={tmp_path}',site:'/(.+)-[0-9]+\\.html$'"
    names = ("republished", "package_docs_html", "newsframes")
    given = [f"+experiment.collections.{name}={{{small}}}" for name in names]
    run("observations", tmp_path, *given, *FEW, "experiment.k=[2,6]", "experiment.l=[32]")
    facts = {row["name"]: float(row["value"]) for row in rows_of(tmp_path / "observations/facts.csv")}
    assert len([name for name in facts if "corrected p" in name]) == 7
    assert facts["observation 3: republished to package_docs_html (above 0.02)"] == 0  # the same pages
    assert facts["republished: LSH-S, k and l chosen, less exact join: F1"] <= 0
    assert len(rows_of(tmp_path / "observations/lsh.csv")) == 9


@pytest.mark.long
def test_usual_settings_of_a_small_collection(tmp_path):
    settings = composed("experiment=practice", "data=tiny", *TINY, f"experiment.results={tmp_path}")
    settings.experiment(settings)
    rows = {(row["text"], row["method"]): row for row in rows_of(tmp_path / "practice/settings.csv")}
    assert len(rows) == 16
    assert all(0 <= float(row["left"]) < 1 for row in rows.values())
    strict, loose = (float(rows["whole page", f"5-gram Jaccard {tau}"]["left"]) for tau in (".8", ".7"))
    assert strict >= loose
    assert len(rows_of(tmp_path / "practice/lost_left.csv")) == 16


def test_the_bands_are_those_that_text_dedup_chooses():
    """The least sum of the areas of false positives and negatives around the threshold .7 with 250 permutations."""
    below, above = np.linspace(0, 0.7, 500), np.linspace(0.7, 1, 500)
    errors = {
        (bands, rows): 0.7 * np.mean(1 - (1 - below**rows) ** bands) + 0.3 * np.mean((1 - above**rows) ** bands)
        for bands in range(1, 251)
        for rows in range(1, 250 // bands + 1)
    }
    assert min(errors, key=errors.__getitem__) == (25, 10)
    settings = composed("experiment=practice")
    methods = settings.experiment.methods.items()
    matchers = [method_of(choices, settings).matcher for label, choices in methods if label.startswith("MinHash")]
    assert [(matcher.k, matcher.l) for matcher in matchers] == [(8, 14), (10, 25)]


@dataclass(frozen=True, kw_only=True)
class Slow:
    """A text extractor that counts its calls in a file."""

    marks: Path

    def __call__(self, document):
        with self.marks.open("a") as file:
            file.write("x")
        return visible_text(document)


def test_a_text_is_extracted_once_for_all_signatures(tmp_path):
    text, pages = Slow(marks=tmp_path / "marks"), Gold(pages=8, clusters=4, cache=tmp_path)
    schemes = (SpotSignatures(), SpotSignatures(d=1, c=2), Shingles(k=5, sets=True))
    sources = [Source(collection=pages, text=text, signature=scheme) for scheme in schemes]
    for stored in (*read_together(sources, tmp_path, Serial()), read(sources[0], tmp_path, Serial())):
        plain = extract(pages, VisibleText(), stored.source.signature, Serial())
        assert stored.signatures().hashes.tolist() == plain.hashes.tolist()
    assert len(plain) <= len(text.marks.read_text()) < 2 * len(plain)  # and the first page of each kind


def test_a_page_is_contained_in_all_kept_pages_before_it():
    documents = [[1, 2], [3, 4], [1, 3], [1, 5, 6], [5, 6, 7], []]
    corpus = Corpus(Vectors.from_csr(np.cumsum([0, *map(len, documents)]), np.concatenate(documents).astype(int)))
    whole, half = (Substrings(tau=tau)(corpus) for tau in (1, 0.5))
    assert [*zip(whole.i, whole.j, whole.similarity, strict=True)] == [(0, 2, 1)]
    assert [*zip(half.i, half.j, half.similarity.round(2), strict=True)] == [(0, 2, 1), (3, 4, 0.67)]


def test_the_placebo_exchanges_the_same_blocks_at_constant_density(tarballs):  # noqa: F811
    changes = ({}, {"prose": 0.15}, {"prose": 0.15, "placebo": True})
    before, changed, placebo = (collection(tarballs, seed=5, **more).parts()[1] for more in changes)
    exchanged = 0
    for one, other, same in zip(before, changed, placebo, strict=True):
        positions = [
            {i for i, (a, b) in enumerate(zip(one.pieces, new.pieces, strict=True)) if a != b} for new in (other, same)
        ]
        assert positions[1] <= positions[0]  # a similar block of another site may have the same text
        exchanged += len(positions[1])
        assert abs(density(same) - density(one)) < max(abs(density(other) - density(one)), 0.02)
    assert exchanged
    with pytest.raises(InputError, match="placebo needs prose"):
        collection(tarballs, placebo=True)
