"""The built-in collection's variants: frames that change from fetch to fetch, and archives with versions."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from test_gold import sha256

from data.collections.gold import Gold, GoldDrift, GoldVersions
from data.collections.gold.drift import LINKS, LISTS, drifted
from data.collections.gold.edits import edit
from data.collections.gold.newsroom import Newsroom
from data.collections.gold.pages import GoldPage, generate
from data.collections.gold.plan import outside_stories
from data.collections.gold.random_streams import Dice
from data.collections.gold.site_archives import generate_archives
from data.collections.gold.sites import sites
from data.collections.gold.stories import tell
from spotsigs.errors import InputError

ROOT = Path(__file__).parents[2]
# The same bytes on every machine and Python: where one of these changes, results on the collection change with it.
DRIFT_SHA256 = "16a6bda34fe337b810000049d9e37ef4cf560bb42aa8a8ecf94942489999be2e"
VERSIONS_SHA256 = "2807c224e09302bef2ea2a3cdb3e8748b9a8b94fd665c49b91aef91ae93a7b30"


@pytest.fixture(scope="module")
def drifting() -> list[GoldPage]:
    return list(generate(1, 60, 6, 0.3))


@pytest.fixture(scope="module")
def archives() -> list[GoldPage]:
    return list(generate_archives(1, 3, 8, 4, 0.3))


def test_checksums(drifting, archives):
    assert (sha256(drifting), sha256(archives)) == (DRIFT_SHA256, VERSIONS_SHA256)


def test_without_drift_the_pages_are_golds():
    assert sha256(list(generate(1, 24, 3, 0.0))) == sha256(list(generate(1, 24, 3)))


def test_drift_leaves_articles_alone(drifting):
    still = list(generate(1, 60, 6))
    assert [(page.cluster, page.name, page.version) for page in drifting] == [
        (page.cluster, page.name, page.version) for page in still
    ]
    changed = sum(a.html != b.html for a, b in zip(drifting, still, strict=True))
    assert changed > 0.9 * len(still)  # the printer's version has hardly a block to change


@pytest.mark.parametrize("drift", [0.15, 0.5, 1.0])
def test_drift_is_the_share_of_changed_blocks(drift):
    story = tell("health", 20, 14, Dice(5))
    news = [story, *outside_stories(5)]
    changed = total = 0
    for site in sites():
        room = Newsroom(site, 5, news)
        shown = room.constants | room._of_the_day(20) | room._around(story, 20, 5, Dice(site.key))
        for fetch in range(3):
            other = drifted(room, shown, story, drift, Dice(site.key, fetch))
            assert {key for key in shown if shown[key] != other[key]} <= {*LINKS, *LISTS, "boxes"}
            items = [pair for key in (*LINKS, *LISTS) for pair in zip(shown[key], other[key], strict=True)]
            for box, new in zip(shown["boxes"], other["boxes"], strict=True):
                items += zip(box["lines"], new["lines"], strict=True)
            changed += sum(a != b for a, b in items)
            total += len(items)
    assert changed / total == pytest.approx(drift, abs=0.03)


def test_two_fetches_drift_apart():
    story = tell("health", 20, 14, Dice(5))
    news = [story, *outside_stories(5)]
    room = Newsroom(sites()[0], 5, news, drift=0.5)
    version = edit(story, room.site, 0, Dice(0))
    a, b = (set(re.findall(r"(?<=>)[^<>]+(?=</A>)", room.render(story, version, 2, Dice(n)))) for n in (1, 2))
    assert 0.1 < len(a & b) / len(a | b) < 0.6  # links that neither fetch replaced: about a quarter of each page's


def test_archives_are_stories_of_one_site_in_versions(archives):
    clusters: dict[str, list[GoldPage]] = {}
    for page in archives:
        clusters.setdefault(page.cluster, []).append(page)
    assert len(clusters) == 24
    assert {len(pages) for pages in clusters.values()} == {1, 2, 3, 4}
    assert all(len({page.site.key for page in pages}) == 1 for pages in clusters.values())
    names = [f"{page.cluster}/{page.name}" for page in archives]
    assert names == sorted(set(names))


def test_versions_rewrite_about_their_share(archives):
    kept = []
    for a, b in pairwise(archives):
        if a.cluster == b.cluster and not a.site.pages:
            ours, theirs = (set(page.version.paragraphs[1:]) for page in (a, b))
            kept.append(len(ours & theirs) / min(len(ours), len(theirs)))
    assert len(kept) > 10
    assert 0.3 < sum(kept) / len(kept) < 0.7  # 0.7 of the paragraphs stay, less what the edit does to them
    assert sha256(list(generate_archives(1, 1, 3, 4, 0.0))) != sha256(list(generate_archives(1, 1, 3, 4, 0.3)))


@pytest.mark.parametrize(
    ("collection", "parameters", "named"),
    [
        (GoldDrift, {"drift": 1.5}, "drift, a share of blocks"), (GoldDrift, {"seed": -1}, "seed must"),
        (GoldVersions, {"sites": 0}, "sites must be between"), (GoldVersions, {"sites": 25}, "sites must be between"),
        (GoldVersions, {"stories": 0}, "stories"), (GoldVersions, {"versions": 0}, "versions"),
        (GoldVersions, {"rewritten": -0.1}, "rewritten, a share"),
    ],
)  # fmt: skip
def test_bad_parameters(collection, parameters, named):
    with pytest.raises(InputError, match=named):
        collection(**parameters)


@pytest.mark.parametrize(("name", "expected"), [("drift", GoldDrift(seed=1)), ("versions", GoldVersions(seed=1))])
def test_yaml_names_the_class_and_its_defaults(name, expected):
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    assert instantiate(OmegaConf.load(ROOT / f"conf/data/gold_{name}.yaml")) == expected


def test_documents_are_the_pages(tmp_path, archives):
    collection = GoldVersions(seed=1, sites=3, stories=8, cache=tmp_path)
    documents = [document for shard in collection.shards() for document in shard()]
    assert [(d.id, d.cluster, d.content) for d in documents] == [
        (f"{p.cluster}/{p.name}", p.cluster, p.content) for p in archives
    ]
    folders = {c.folder().name for c in (collection, GoldDrift(seed=1, pages=8, clusters=2, cache=tmp_path),
                                         Gold(seed=1, pages=8, clusters=2, cache=tmp_path))}  # fmt: skip
    assert len(folders) == 3
