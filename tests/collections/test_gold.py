"""The built-in collection: its form, its bytes, its English and its truth."""

import hashlib
import html
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from strategies import examples

from data.collections.gold import Gold
from data.collections.gold.clusters import cluster_sizes, plan
from data.collections.gold.edits import edit
from data.collections.gold.language import toml
from data.collections.gold.pages import NAMES, GoldPage, SiteTemplate, generate
from data.collections.gold.random_streams import Bag, Dice
from data.collections.gold.sites import sites
from data.collections.gold.stories import ArticleTable, Story, make_lexicon, make_story
from spotsigs.errors import InputError

ROOT = Path(__file__).parents[2]
SMALL = {"seed": 2008, "pages": 60, "clusters": 6}
# The same bytes on every machine and Python: where one of these changes, results on the collection change with it.
SMALL_SHA256 = "68e7daa2f843f9ec12de114bd752c2a9297644c21a34d5b1621751edfbb36524"
FULL_SHA256 = "e0ae840d8bd741f07355f3b1a6fae3e3a343bb06da4c97c3558170922560d329"
SITES = {site.key: site for site in sites()}


def sha256(pages: list[GoldPage]) -> str:
    digest = hashlib.sha256()
    for page in pages:
        digest.update(f"{page.cluster}/{page.name}\0".encode() + page.content)
    return digest.hexdigest()


def tell(topic: str, day: int, length: int, dice: Dice, earlier: Story | None = None) -> Story:
    return make_story(topic, day, length, dice, make_lexicon(topic, dice), earlier)


def sentences(story: Story) -> list[str]:
    blocks = [block for block in (story.leads[0], *story.paragraphs) if not isinstance(block, ArticleTable)]
    return [sentence.replace("|", "") for block in blocks for sentence in block]


@pytest.fixture(scope="module")
def small() -> list[GoldPage]:
    return list(generate(**SMALL))


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


# --- form -------------------------------------------------------------------------------------------------------------


def test_documents_are_the_pages_in_order(cache, small):
    shards = pickle.loads(pickle.dumps(Gold(**SMALL, cache=cache).shards()))
    documents = [document for shard in shards for document in shard()]
    assert [document.id for document in documents] == [f"{page.cluster}/{page.name}" for page in small]
    assert [document.content for document in documents] == [page.content for page in small]
    assert [document.cluster for document in documents] == [page.cluster for page in small]
    assert [document.id for document in documents] == sorted({document.id for document in documents})


def test_generated_once(cache, monkeypatch):
    first = Gold(**SMALL, cache=cache).shards()
    monkeypatch.setattr("data.collections.gold.pages.generate", None)
    assert [shard.args for shard in Gold(**SMALL, cache=cache).shards()] == [shard.args for shard in first]


def test_shards_hold_about_so_many_bytes(cache, monkeypatch):
    monkeypatch.setattr("data.collections.gold.SHARD_BYTES", 40_000)
    sizes = [sum(len(document.content) for document in shard()) for shard in Gold(**SMALL, cache=cache).shards()]
    assert len(sizes) > 3
    assert all(40_000 <= size < 90_000 for size in sizes[:-1])


def test_all_or_nothing(small, tmp_path, monkeypatch):
    def interrupted(*_):
        yield small[0]
        raise KeyboardInterrupt

    monkeypatch.setattr("data.collections.gold.pages.generate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Gold(**SMALL, cache=tmp_path).shards()
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_processes_wins(cache, tmp_path, monkeypatch):
    target = tmp_path / Gold(**SMALL, cache=cache).folder().name

    def overtaken(self, folder):
        for path in (folder, target):
            path.mkdir()
            (path / path.parent.name).touch()

    monkeypatch.setattr(Gold, "_write", overtaken)
    assert Gold(**SMALL, cache=tmp_path).folder() == target
    assert [path.name for path in target.iterdir()] == [tmp_path.name]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("parameters", "named"),
    [({"pages": 100}, "pages must be at least 136"), ({"clusters": 0}, "clusters must"), ({"seed": -1}, "seed must")],
)
def test_bad_parameters(parameters, named):
    with pytest.raises(InputError, match=named):
        Gold(**parameters)


def test_yaml_names_the_class_and_its_defaults():
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    assert instantiate(OmegaConf.load(ROOT / "conf/data/gold.yaml")) == Gold()


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_checksums(small):
    assert sha256(small) == SMALL_SHA256
    assert sha256(list(generate(1, 400, 40))) == "a81ff7943ecdf7127005f7f3e31f406cf2f74fb609e9caef5e195fba8cf9a518"


def test_checksum_in_another_process_with_another_hash_seed():
    code = (
        "import hashlib; from data.collections.gold.pages import generate; digest = hashlib.sha256()\n"
        f"for page in generate(**{SMALL}):\n"
        "    digest.update(f'{page.cluster}/{page.name}\\0'.encode() + page.content)\n"
        "print(digest.hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == SMALL_SHA256


def test_another_seed_is_another_collection():
    ours, others = (plan(seed, 60, 6) for seed in (2008, 1))
    assert not {cluster.story.leads for cluster in ours} & {cluster.story.leads for cluster in others}
    assert [cluster.crawls for cluster in ours] != [cluster.crawls for cluster in others]


def test_streams_of_dice_hang_on_their_key_alone():
    assert [Dice(1, "a").below(1000), Dice(1, "b").below(1000), Dice("1", "a").below(1000)] == [308, 584, 308]
    with_others = Dice(1, "a")
    Dice(2).random()
    assert with_others.random() == Dice(1, "a").random()


@given(st.integers(0, 10**9), st.lists(st.integers(1, 9), min_size=1, max_size=8))
@examples(50)
def test_draws_stay_in_range(seed, weights):
    dice = Dice(seed)
    assert 3 <= dice.between(3, 5) <= 5
    assert 0 <= dice.below(len(weights)) < len(weights)
    assert Bag(range(len(weights)), weights).draw(dice) in range(len(weights))
    assert sorted(dice.sample(weights, len(weights))) == sorted(weights)


def test_bags_draw_by_weight():
    dice, bag = Dice(3), Bag("abc", [6, 3, 1])
    counts = Counter(bag.draw(dice) for _ in range(10_000))
    assert [counts[letter] / 10_000 for letter in "abc"] == pytest.approx([0.6, 0.3, 0.1], abs=0.02)


# --- sites ------------------------------------------------------------------------------------------------------------


def test_encodings(small):
    seen = set()
    for page in small:
        text = page.content.decode(page.site.encoding)
        assert html.unescape(text) == html.unescape(page.html)
        seen.add(page.site.encoding)
        if page.site.charset:
            assert page.site.charset.encode() in page.content
    assert {site.encoding for site in sites()} == {"ascii", "cp1252", "iso-8859-1", "utf-8", "utf-8-sig"}
    assert len(seen) >= 4


def test_every_site_spells_what_its_encoding_lacks():
    for site in sites():
        page = GoldPage("a", "b", site, None, site.style.markup("“Ibáñez’s Zoë — 5 < 6 & more,” said ‘Müller’."))
        assert html.unescape(page.content.decode(site.encoding)).count("Zoë") == 1
    assert SITES["coast-observer"].style.markup("“a”").encode("cp1252") == b"\x93a\x94"
    assert SITES["newsloop"].style.markup("“a’s”") == "&ldquo;a&rsquo;s&rdquo;"


@pytest.fixture(scope="module")
def framed() -> dict[str, str]:
    """One story in every template."""
    story = tell("health", 20, 14, Dice(5))
    return {
        site.template: SiteTemplate(site, 5).render(story, edit(story, site, 0, Dice(0)), 2, Dice(1))
        for site in sites()
    }


def visible_tokens(html):
    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style"])
    return re.findall(r"[^\W_]+", tree.body.text(separator=" ").lower())


def test_pages_show_the_whole_article_once_and_their_sites_names(framed):
    site = {site.template: site for site in sites()}
    story = tell("health", 20, 14, Dice(5))
    for name, page in framed.items():
        text = " ".join(visible_tokens(page))
        blocks = [story.leads[0], *story.paragraphs][: site[name].style.pages or None]
        for block in blocks[1:]:
            shown = " ".join(visible_tokens(site[name].style.block(block)))
            assert text.count(shown) == 1, (name, shown)
        assert "{{" not in page
        assert page.count("/index/") > 0.8 * NAMES
        assert not re.search(r"built in (method|function)|\bobject at 0x|undefined", text), name


# --- English ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    return [tell(topic, 3, 14, Dice(9, topic)) for topic in toml("words.toml") if topic != "general"]


def test_sentences_are_well_formed(stories):
    for story in stories:
        for sentence in sentences(story):
            assert re.match(r"[A-Z0-9“$]", sentence), sentence
            assert re.search(r"[.!?]”?$", sentence), sentence
            assert not re.search(
                r"[<>^{}_|*]|  | [,.;:?]|,[,.]|\b[Aa] (?!u|one\b)[aeiou]|\b[Aa]n [bcdfgjklm]", sentence
            ), sentence
            assert sentence.count("“") == sentence.count("”"), sentence


# --- stories, versions, truth -----------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(0, 3000))
@examples(100)
def test_cluster_sizes(clusters, spare):
    sizes = cluster_sizes(2 * clusters + spare, clusters)
    assert sum(sizes) == 2 * clusters + spare
    assert min(sizes) >= 2
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.long
def test_checksum_of_a_reported_seed():
    assert sha256(list(generate(5, 2160, 68))) == FULL_SHA256
