"""The study of usual settings, and the collections and texts of studies, on small collections."""

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
from experiments.harness.extracted_collections import Source, read_together
from spotsigs.errors import InputError
from spotsigs.records import Corpus, Vectors
from spotsigs.signatures.extract import extract
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.visible import VisibleText, visible_text
from spotsigs.workers.engines import Serial

CONF = Path(__file__).parents[2] / "conf"
TINY = ["workers=1", "engine=serial"]


@pytest.fixture(autouse=True)
def conf():
    """Methods are composed in the folder of the configuration."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


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
