"""The collection calibrated on published counts: its bytes, and the properties of pages that it was calibrated on."""

import hashlib
import html
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf

from data.collections.gold import Gold, GoldProse
from data.collections.gold.listed import NAMES, carriers, generate, plan
from data.collections.statistics import (
    PUBLISHED,
    KnownPage,
    known_pages,
    measure,
    table,
)
from spotsigs.text.visible import visible_text

ROOT = Path(__file__).parents[2]

# The same bytes on every machine and Python; fixed before any detector ran on the pages.
SMALL_SHA256 = "68e7daa2f843f9ec12de114bd752c2a9297644c21a34d5b1621751edfbb36524"


@pytest.fixture(scope="module")
def small():
    return list(generate(2008, 60, 6))


def test_checksum(small):
    digest = hashlib.sha256()
    for page in small:
        digest.update(f"{page.cluster}/{page.name}\0".encode() + page.content)
    assert digest.hexdigest() == SMALL_SHA256


@pytest.mark.long
def test_checksum_of_a_reported_seed():
    digest = hashlib.sha256()
    for page in generate(5, 2160, 68):
        digest.update(f"{page.cluster}/{page.name}\0".encode() + page.content)
    assert digest.hexdigest() == "e0ae840d8bd741f07355f3b1a6fae3e3a343bb06da4c97c3558170922560d329"


def test_documents_are_the_pages_in_order(tmp_path, small):
    documents = [d for shard in Gold(pages=60, clusters=6, cache=tmp_path).shards() for d in shard()]
    assert [d.id for d in documents] == [f"{page.cluster}/{page.name}" for page in small]
    assert [d.content for d in documents] == [page.content for page in small]
    assert len({d.cluster for d in documents}) == 6


def test_every_page_shows_its_article_and_its_sites_names(small):
    for page in small:
        text = " ".join(html.unescape(visible_text(_document(page.html))).split())
        shown = " ".join(html.unescape(visible_text(_document(f"<body>{page.version.paragraphs[-1]}"))).split())
        assert shown in text or page.site.frame in ("dropcap", "breaks"), page.name
        assert "{{" not in page.html
        assert page.html.count("/index/") > 0.8 * NAMES


def _document(content):
    from spotsigs.records import Document

    return Document(id="a", content=content)


def test_sites_that_take_part():
    found = carriers()
    assert len(found) == 16
    assert {site.frame for site in found}.isdisjoint({"leaflet", "mailarchive", "printview"})
    assert {site.key for cluster in plan(1, 400, 40) for site, _ in cluster.crawls} <= {site.key for site in found}


def test_yaml_names_the_class_and_its_defaults():
    assert instantiate(OmegaConf.load(ROOT / "conf/data/gold.yaml")) == Gold()
    assert Gold() != GoldProse()


def check(axes):
    for name, published in PUBLISHED.items():
        if name != "mean Cosine":
            assert axes[name] == pytest.approx(published, rel=0.15), name
    assert axes["mean Cosine"] == pytest.approx(PUBLISHED["mean Cosine"], abs=0.02)
    assert 0.05 <= axes["spots per token of frames"] <= 0.07  # newsframes: .060
    assert axes["frames' words shared on one site"] >= 0.6
    assert axes["frames' words shared by two sites"] <= 0.1
    assert 0.7 <= axes["articles' spots shared by versions"] <= 0.9  # newsframes: .83
    assert 0.55 <= axes["articles' words of one story only"] <= 0.65


@pytest.mark.long
def test_calibration():
    """Pages have the published counts of the Gold Set and the axes of real frames."""
    check(measure(known_pages("gold", 2008)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 9))
def test_calibration_of_other_seeds(seed):
    check(measure(known_pages("gold", seed)))


def test_axes_of_pages_that_can_be_counted_by_hand():
    article = "the big storm came over is hills and valleys"
    pages = [
        KnownPage("a", "s", f"menu home {article}", article),
        KnownPage("a", "s", f"menu home {article}", article),
        KnownPage("b", "s", "menu home the quiet lake", "the quiet lake"),
        KnownPage("b", "t", "other place the quiet lake", "the quiet lake"),
    ]
    axes = measure(pages)
    assert (axes["pages"], axes["clusters"], axes["sites"]) == (4, 2, 2)
    assert axes["spots per token of frames"] == 0
    assert axes["tokens a frame"] == 2
    assert axes["frames' words shared on one site"] == 1
    assert axes["frames' words shared by two sites"] == 0
    assert axes["articles' spots shared by versions"] == 1
    assert axes["articles' words of one story only"] == 10 / 11  # "the" is in both
    assert table({"x": axes}).count("|\n") == 2 + len(axes)
