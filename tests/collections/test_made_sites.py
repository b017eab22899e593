"""Generated cases: consent texts on many sites, and teasers of articles in foreign frames."""

from __future__ import annotations

from functools import lru_cache

import pytest

from data.collections import generated_sites as made_sites
from data.collections.generated_sites import MadeConsent, MadeTeasers
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import micro_averages, tallies
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Collection, Corpus, Truth
from spotsigs.signatures.extract import extract
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.text.visible import VisibleText

REMOVED = TemplateRemoval(signature=SpotSignatures(d=1, c=2))


class Pages(Collection):
    """Pages in memory, made once."""

    def __init__(self, collection):
        self.documents = [page for shard in collection.shards() for page in shard()]

    def shards(self):
        return [lambda: iter(self.documents)]


pages = lru_cache(maxsize=1)(Pages)


def signatures(collection, scheme):
    return extract(pages(collection), VisibleText(), scheme, Serial())


def quality(collection, scheme, matcher):
    """Precision, recall and F1 over pairs."""
    found = signatures(collection, scheme)
    pairs = matcher(Corpus(IdfFilter()(found)))
    return [float(value) for value in micro_averages(*tallies(pairs, Truth.from_clusters(found.clusters)))]


def test_same_seed_same_pages():
    for collection in (MadeConsent(sites=3, blocked=2), MadeTeasers(sites=2, stories=2)):
        one, other = ([(page.id, page.content, page.cluster) for page in shard()] for shard in collection.shards() * 2)
        assert one == other
        assert len({name for name, *_ in one}) == len(one)
        assert len(one) == (5 if isinstance(collection, MadeConsent) else 8)
    many = made_sites._chosen(1, 30)
    assert len({site.key for site in many}) == 30


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: MadeConsent(sites=1), "sites must be at least 2"),
        (lambda: MadeConsent(blocked=41), "blocked must be between 0 and 40"),
        (lambda: MadeTeasers(stories=0), "stories, of a site, must be at least 1"),
        (lambda: MadeTeasers(part=0.0), r"part, of an article, must lie in \(0, 1\]"),
    ],
)
def test_wrong_fields(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.long
def test_teasers_are_contained_though_not_alike():
    collection = MadeTeasers(sites=4, stories=10, part=0.2)
    best = {
        matcher: max(quality(collection, REMOVED, matcher(tau=tau))[2] for tau in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9))
        for matcher in (SpotSigsTight, Containment)
    }
    assert best[Containment] > best[SpotSigsTight]
    alike, contained = (quality(collection, REMOVED, matcher(tau=0.44))[1] for matcher in best)
    assert contained > alike + 0.2
