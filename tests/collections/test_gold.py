"""The built-in collection: its form, its bytes, its English and its truth."""

import hashlib
import html
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from strategies import examples

from data.collections.gold import Gold
from data.collections.gold.clusters import cluster_sizes, plan
from data.collections.gold.edits import edit
from data.collections.gold.language import gerund, participle, past, plural, third_person, tidy, toml
from data.collections.gold.pages import NAMES, GoldPage, SiteTemplate, generate
from data.collections.gold.random_streams import Bag, Dice
from data.collections.gold.reports import report
from data.collections.gold.sites import dropcap, sites, wrapped
from data.collections.gold.stories import ArticleTable, Story, make_lexicon, make_story
from spotsigs.errors import InputError

ROOT = Path(__file__).parents[2]
SMALL = {"seed": 2008, "pages": 60, "clusters": 6}
# The same bytes on every machine and Python: where one of these changes, results on the collection change with it.
SMALL_SHA256 = "68e7daa2f843f9ec12de114bd752c2a9297644c21a34d5b1621751edfbb36524"
FULL_SHA256 = "e0ae840d8bd741f07355f3b1a6fae3e3a343bb06da4c97c3558170922560d329"
SITES = {site.key: site for site in sites()}
HARBOR = SITES["harbor-courier"]


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


def test_one_sub_folder_a_cluster_uneven(cache):
    folder = Gold(**SMALL, cache=cache).folder()
    sizes = [len(list(cluster.glob("*.html"))) for cluster in folder.iterdir()]
    assert len(sizes) == 6
    assert sum(sizes) == 60
    assert 2 <= min(sizes) < max(sizes) / 3


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


def test_checksum(small):
    assert sha256(small) == SMALL_SHA256


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
        page = GoldPage("a", "b", site, None, site.markup("“Ibáñez’s Zoë — 5 < 6 & more,” said ‘Müller’."))
        assert html.unescape(page.content.decode(site.encoding)).count("Zoë") == 1
    assert SITES["coast-observer"].markup("“a”").encode("cp1252") == b"\x93a\x94"
    assert SITES["newsloop"].markup("“a’s”") == "&ldquo;a&rsquo;s&rdquo;"


def paths(page: str) -> set[tuple[str, ...]]:
    """Return the paths of tags from the root to every element of a parsed page."""
    found = set()

    def descend(node, above):
        here = (*above, node.tag)
        found.add(here)
        for child in node.iter():
            descend(child, here)

    descend(LexborHTMLParser(page).root, ())
    return found


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


def test_templates_differ_in_structure(framed):
    skeletons = {name: paths(page) for name, page in framed.items()}
    assert len(skeletons) >= 15
    for (a, left), (b, right) in combinations(skeletons.items(), 2):
        assert len(left & right) / len(left | right) < 0.6, (a, b)


def test_pages_show_the_whole_article_once_and_their_sites_names(framed):
    site = {site.template: site for site in sites()}
    story = tell("health", 20, 14, Dice(5))
    for name, page in framed.items():
        text = " ".join(visible_tokens(page))
        blocks = [story.leads[0], *story.paragraphs][: site[name].pages or None]
        for block in blocks[1:]:
            shown = " ".join(visible_tokens(site[name].block(block)))
            assert text.count(shown) == 1, (name, shown)
        assert "{{" not in page
        assert page.count("/index/") > 0.8 * NAMES
        assert not re.search(r"built in (method|function)|\bobject at 0x|undefined", text), name


def test_broken_markup_is_there(framed):
    assert "</TD>" not in framed["breaks"]
    assert framed["three_tables"].count("<P>") > framed["three_tables"].count("</P>") == 0
    assert re.search(r"document\.write\([^\n]*</", framed["scripted"])
    assert re.search(r"<!--[^>]*<ul>", framed["lists"])


def test_templates_fragment_the_article(framed):
    cells = LexborHTMLParser(framed["interleaved"]).css("td[width='540']")
    assert len(cells) > 5
    assert len(LexborHTMLParser(framed["two_columns"]).css("td.col1 div.graf, td.col2 div.graf")) == 15
    assert re.search(r"<span class=cap>\w</span>\w", framed["dropcap"])


def test_dropcap_and_wrapped():
    assert dropcap("The end") == "<span class=cap>T</span>he end"
    assert dropcap("&ldquo;The") == "&ldquo;The"
    assert wrapped("aa bb cc", 5, "> ") == "aa bb\n> cc"


# --- English ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "word", "expected"),
    [
        (plural, "city", "cities"), (plural, "church", "churches"), (plural, "man/men", "men"), (plural, "day", "days"),
        (plural, "school_board", "school boards"), (third_person, "rely", "relies"), (past, "plan", "planned"),
        (third_person, "lay_off/laid_off", "lays off"), (past, "admit*", "admitted"), (gerund, "run/ran", "running"),
        (past, "visit", "visited"), (past, "fix", "fixed"), (past, "study", "studied"), (past, "bake", "baked"),
        (past, "withdraw/withdrew/withdrawn", "withdrew"), (participle, "withdraw/withdrew/withdrawn", "withdrawn"),
        (participle, "hear/heard", "heard"), (gerund, "lie", "lying"), (gerund, "make", "making"),
        (gerund, "begin*/began/begun", "beginning"), (gerund, "agree", "agreeing"), (gerund, "pray_for", "praying for"),
    ],
)  # fmt: skip
def test_inflection(form, word, expected):
    assert form(word) == expected


def test_tidy():
    assert tidy("a egg, , said a union and a hour| , which") == "An egg, said a union and an hour|, which"
    assert tidy("^“^we won.^ so,” he said") == "“We won. So,” he said"
    assert tidy("said Ada Byron, a nurse,.") == "Said Ada Byron, a nurse."


def test_word_lists():
    lists = [text.split() for topic in toml("words.toml").values() for text in topic.values()]
    assert len({word for words in lists for word in words}) >= 2_500
    assert all(len(set(words)) == len(words) for words in lists)
    assert len(toml("words.toml")) == 21


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


def test_sentences_of_different_stories_differ(stories):
    everywhere = Counter(sentence for story in stories for sentence in set(sentences(story)))
    assert max(everywhere.values()) == 1


CLOSED_CLASS = """
    a about above according after again against all although am amid an and another any anyone are as at be because
    been before behind being below between both but by can cannot could despite did do does done during each either
    enough even every everyone few for from had has have he her here him his how i if in instead into is it its just
    like many may me might more most much must my neither never no nobody nor not nothing now of off on once one only
    or other our out over own s same she should since so some someone still such t than that the their them then there
    these they this those though through to too under until up us very was we were what when where whether which while
    who whose why will with within without would yet you your"""


def test_stopwords_and_vocabulary_are_natural(stories):
    words = re.findall(r"[^\W_]+", " ".join(sentence for story in stories for sentence in sentences(story)).lower())
    counts = Counter(words)
    assert 0.40 <= sum(counts[word] for word in CLOSED_CLASS.split()) / len(words) <= 0.50
    assert 0.08 <= sum(counts[word] for word in ("a", "an", "the")) / len(words) <= 0.10
    assert counts.most_common(1)[0][0] == "the"
    half = len(set(words[: len(words) // 2]))
    assert half < len(counts) < 1.9 * half  # new words become rarer (Heaps)
    assert sum(1 for count in counts.values() if count == 1) / len(counts) > 0.3  # and many occur once (Zipf)


# --- stories, versions, truth -----------------------------------------------------------------------------------------


def test_every_cluster_is_another_article():
    clusters = plan(2008, 400, 68)
    assert len({article for cluster in clusters for article in [tuple(sentences(cluster.story))]}) == 68
    assert len({cluster.name for cluster in clusters}) == 68


def test_reports_differ_in_figures_only():
    for series in ("market_wrap", "market_summary", "grain_report"):
        monday, tuesday = (report(series, day, 2008) for day in (17, 18))
        words = [Counter(re.findall(r"[a-z]+", " ".join(sentences(day)).lower())) for day in (monday, tuesday)]
        shared = (words[0] & words[1]).total() / (words[0] | words[1]).total()
        assert shared > 0.5, series
        figures = [set(re.findall(r"\d[\d.,]*\d", " ".join(sentences(day)))) for day in (monday, tuesday)]
        assert len(figures[0] & figures[1]) < len(figures[0]) / 4, series


def test_report_days_share_their_sites():
    clusters = [cluster for cluster in plan(2008, 2160, 68) if cluster.story.slug == "stocks-close"]
    assert len(clusters) >= 2
    assert len({cluster.story.day for cluster in clusters}) == len(clusters)
    homes = [{site.key for site, _ in cluster.crawls} for cluster in clusters]
    assert any(a & b for a, b in combinations(homes, 2))


def test_follow_ups_share_background_but_not_the_article():
    earlier = tell("courts", 3, 12, Dice(1))
    later = tell("courts", 4, 12, Dice(2), earlier)
    shared = set(sentences(earlier)) & set(sentences(later))
    assert 0 < len(shared) <= 6
    assert later.leads[0] != earlier.leads[0]


def test_unedited_version_keeps_the_article():
    story = tell("courts", 3, 12, Dice(1))
    version = edit(story, HARBOR, 0, Dice(4))
    assert html.unescape(" ".join(version.paragraphs[1:])) in html.unescape(HARBOR.markup(" ".join(sentences(story))))
    assert version.paragraphs[0].startswith(story.cast.towns[0].upper())


def test_edits_cut_reorder_shorten_localise():
    story = tell("courts", 3, 16, Dice(1))
    original = [HARBOR.block(block) for block in story.paragraphs]
    versions = [edit(story, HARBOR, 8, Dice(4, i)) for i in range(40)]
    assert len({version.headline for version in versions}) > 2
    assert (
        min(len(version.paragraphs) for version in versions) < len(original) < max(len(v.paragraphs) for v in versions)
    )
    kept = [[original.index(p) for p in version.paragraphs if p in original] for version in versions]
    assert any(order != sorted(order) for order in kept)
    assert any(HARBOR.town in " ".join(version.paragraphs) for version in versions)
    tails = {
        p for version in versions for p in version.paragraphs if any(q.startswith(p[:-1]) and p != q for q in original)
    }
    assert tails


def test_crawls_of_a_version_differ_around_the_article(small):
    by_site: dict[tuple[str, str], list[GoldPage]] = {}
    for page in small:
        by_site.setdefault((page.cluster, page.site.key), []).append(page)
    recrawled = [pages for pages in by_site.values() if len(pages) > 1]
    assert recrawled
    assert any(pages[0].version == pages[1].version and pages[0].html != pages[1].html for pages in recrawled)
    assert len({page.content for page in small}) == len(small)


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
