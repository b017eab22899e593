"""Generated cases: consent texts on many sites, and teasers of articles in foreign frames."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from test_large import ran, same

from data.collections import generated_sites as made_sites
from data.collections.generated_sites import MadeConsent, MadeTeasers
from experiments.studies.template_ablations import Ablated
from spotsigs.engines import Serial
from spotsigs.errors import InputError
from spotsigs.evaluation.metrics import micro_averages, tallies
from spotsigs.matching.containment import Containment
from spotsigs.matching.prefix_join import SpotSigsTight
from spotsigs.records import Collection, Corpus, Truth
from spotsigs.signatures.extract import extract
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.template_removal import FramedSpots
from spotsigs.text.visible import VisibleText


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


def test_consent_is_no_content():
    """40 sites with 3 consent texts: stories match, consent does not, and who has nothing else is told."""
    collection, matcher = MadeConsent(), SpotSigsTight(tau=0.18)
    before, after = quality(collection, Ablated(unsaid=False), matcher), quality(collection, FramedSpots(), matcher)
    assert before[0] < 0.3
    assert after[0] > 0.95
    assert after[1] > before[1] + 0.1
    found = signatures(collection, FramedSpots())
    blocked = np.array([name.startswith("blocked/") for name in found.doc_ids])
    assert np.array_equal(found.boilerplate, blocked)


def test_kept_csv_lists_boilerplate_in_memory_and_on_disk(tmp_path):
    words = "bridge river mayor town harbour market school forest clinic castle garden museum".split()
    notice = (
        '<a href="/p">Policy {0}</a> <a href="/s">Settings {0}</a><p>The site is a service of the partner and a cookie.'
    )
    story = (
        "<p>The {0} has opened a {0}way near the {0}side and the {0} was proud of a {0}house. A {0}man is at a gate "
        "and the {0}time will be an {0}hour for the {0}work that has been a {0}dream of the {0}folk in the {0}land."
    )
    (tmp_path / "pages").mkdir()
    for word in words:
        (tmp_path / "pages" / f"{word}.html").write_text((story + notice).format(word))
    (tmp_path / "pages" / "blocked.html").write_text(notice.format("blocked"))
    asked = ["data=folder", f"data.path={tmp_path / 'pages'}", "signature=spotsigs_framed", "tau=0.18", "engine=serial"]
    told = ran(tmp_path / "memory", *asked)
    ran(tmp_path / "disk", *asked, "memory=2GB")
    assert same(tmp_path / "memory", tmp_path / "disk")
    kept = pd.read_csv(tmp_path / "memory" / "kept.csv").set_index("doc")["compared"]
    assert kept["blocked.html"] == "boilerplate"
    assert (kept.drop("blocked.html") == "yes").all()
    assert len(kept) == 13
    assert "1 document says nothing but what many sites say: boilerplate in kept.csv" in told
    assert json.loads((tmp_path / "memory" / "metrics.json").read_text())["boilerplate"] == 1


@pytest.mark.long
def test_teasers_are_contained_though_not_alike():
    collection = MadeTeasers(sites=4, stories=10, part=0.2)
    best = {
        matcher: max(quality(collection, FramedSpots(), matcher(tau=tau))[2] for tau in (0.1, 0.2, 0.3, 0.5, 0.7, 0.9))
        for matcher in (SpotSigsTight, Containment)
    }
    assert best[Containment] > best[SpotSigsTight]
    alike, contained = (quality(collection, FramedSpots(), matcher(tau=0.44))[1] for matcher in best)
    assert contained > alike + 0.2
