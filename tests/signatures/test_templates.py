"""Template removal: the reference implementation, order, workers, stores, and text that must be left alone."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import templates as naive
from stores import match_on_disk, named, pages_of, segments_of
from strategies import examples
from strategies import rows_of_signatures as rows
from strategies import signatures_of as outlines

import spotsigs
from data.collections.gold import Gold
from spotsigs.errors import InputError
from spotsigs.formats.jsonl import Jsonl
from spotsigs.matching.brute_force import BruteForce
from spotsigs.outofcore import template_pass as kept_signatures
from spotsigs.outofcore.template_pass import refine_segments
from spotsigs.records import Corpus, Document, DocumentColumns, Signatures
from spotsigs.signatures import template_kernels as kernels
from spotsigs.signatures import template_removal as module
from spotsigs.signatures.contained import NO_RULE
from spotsigs.signatures.extract import extract
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.main_content import LINK, SHINGLE, TEXT, MainContent
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.storage.store import load_signatures
from spotsigs.text.tokens import tokenize_marked
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Processes, Serial

SCHEME = TemplateRemoval(signature=SpotSignatures(d=1, c=2))


@st.composite
def collections(draw: st.DrawFn) -> list[list[naive.Entry]]:
    """Draw pages: an article within one of a few templates, both of which may have changed, or anything at all."""
    entry = st.one_of(st.tuples(st.integers(0, 30), st.integers(0, 1)), st.tuples(st.integers(100, 120), st.just(LINK)))
    templates = draw(st.lists(st.lists(entry, min_size=2, max_size=10), min_size=1, max_size=3))
    articles = draw(
        st.lists(st.lists(st.tuples(st.integers(31, 60), st.just(TEXT)), max_size=8), min_size=1, max_size=6)
    )
    pages = []
    for _ in range(draw(st.integers(0, 14))):
        template, article = draw(st.sampled_from(templates)), draw(st.sampled_from(articles))
        at = draw(st.integers(0, len(template)))
        page = [*template[:at], *article, *template[at:]]
        for change in draw(st.lists(st.tuples(st.integers(0, 30), entry), max_size=3)):
            if page:
                page[change[0] % len(page)] = change[1]
        shingles = draw(st.lists(st.tuples(st.integers(200, 206), st.just(SHINGLE)), max_size=6))
        pages.append([*page, *shingles])
    return pages


@st.composite
def sites(draw: st.DrawFn) -> list[list[naive.Entry]]:
    """Draw pages of sites with much prose around the articles, some of which stand on several sites."""
    articles = [draw(st.integers(2, 5)) for _ in range(draw(st.integers(2, 4)))]
    pages = []
    for site in range(draw(st.integers(1, 3))):
        menu = [(1000 * site + k, LINK) for k in range(6)]
        prose = [(1000 * site + 100 + k, TEXT) for k in range(draw(st.integers(2, 10)))]
        for _ in range(draw(st.integers(1, 4))):
            which = draw(st.integers(0, len(articles) - 1))
            story = [(5000 + 10 * which + k, TEXT) for k in range(articles[which])]
            for change in draw(st.lists(st.tuples(st.integers(0, 30), st.integers(6000, 6010)), max_size=2)):
                story[change[0] % len(story)] = (change[1], TEXT)
            cut = draw(st.sampled_from([0, 2]))
            pages.append([*menu[2:4], *story, *menu[:cut], *prose, *menu[4:], *draw(st.sampled_from([[], menu]))])
    if pages and draw(st.booleans()):
        pages.append([(h, kind) for h, kind in pages[0] if kind == TEXT])  # the same without a link
    return pages


LIMITS = {
    "OTHER_CONTENT": [0.3, 0.5, 1.0],
    "SAME_TEMPLATE": [0.5, 0.75, 1.0],
    "COMPARED": [1, 3, 32],
    "WALKED": [1, 12, 1024],
    "EACH_LINK": [1, 2, 16],
    "FEWEST": [1, 3, 15],
    "UNKNOWN_TEMPLATE": [0.1, 0.25, 0.8],
}


@contextmanager
def limits(values: dict[str, float]) -> Iterator[None]:
    """Run the kernels with other constants, without compiling them."""
    functions = [value for value in vars(kernels).values() if hasattr(value, "py_func")]
    plain = {function.py_func.__name__: function.py_func for function in functions}
    called = {name: plain[name] for name in ("page_features", "remove_templates")}
    with (
        patch.multiple(kernels, **values, **plain),
        patch.multiple(module, **called),
        patch.multiple(naive, **values),
        warnings.catch_warnings(action="ignore", category=RuntimeWarning),
    ):
        yield


def keys(drawn: Signatures) -> list[int]:
    features: list[int] = module.features_of(drawn, module.over_pages())[0].keys.tolist()
    return features


TOKENS = 5040
"""Tokens of each page."""

Known = list[tuple[dict[int, int], int, int]]
"""The counts of each page's signatures, how many are missing, and the tokens of its main content."""


def with_tokens(drawn: Signatures) -> Signatures:
    return replace(drawn, documents=replace(drawn.documents, tokens=np.full(len(drawn), TOKENS, np.int32)))


def known(refined: Signatures) -> Known:
    return list(
        zip(rows(refined), refined.documents.missing.tolist(), refined.documents.main_tokens.tolist(), strict=True)
    )


def expected_of(pages: list[list[naive.Entry]], drawn: Signatures) -> Known:
    """What the reference implementation knows."""
    pages_left = naive.without_templates(pages, keys(drawn))
    return [(page.counts, page.missing, int(TOKENS * page.fraction)) for page in pages_left]


@examples(150)
@given(st.one_of(collections(), sites()), st.integers(1, 3))
def test_any_collection(pages, threads):
    drawn = with_tokens(outlines(pages))
    assert known(SCHEME.refine(drawn, threads=threads)) == expected_of(pages, drawn)


@examples(40)
@given(st.one_of(collections(), sites()), st.fixed_dictionaries({k: st.sampled_from(v) for k, v in LIMITS.items()}))
def test_any_collection_within_other_limits(pages, values):
    drawn = with_tokens(outlines(pages))
    with limits(values):
        assert known(SCHEME.refine(drawn, threads=1)) == expected_of(pages, drawn)


@examples(60)
@given(st.one_of(collections(), sites()))
def test_pages_of_unknown_template_are_in_no_section(pages):
    sections = np.arange(1, len(pages) + 1, dtype=np.uint64)
    plain = outlines(pages)
    drawn = replace(plain, documents=replace(plain.documents, sections=sections))
    expected = np.where(naive.unknown_templates(pages, keys(drawn)), 0, sections).tolist()
    assert SCHEME.refine(drawn).documents.sections.tolist() == expected
    assert len(SCHEME.refine(outlines(pages)).documents.sections) == 0


@examples(60)
@given(st.one_of(collections(), sites()), st.randoms(use_true_random=False))
def test_the_order_of_the_pages_makes_no_difference(pages, random):
    order = list(range(len(pages)))
    random.shuffle(order)
    actual = rows(SCHEME.refine(outlines(pages)))
    assert rows(SCHEME.refine(outlines([pages[k] for k in order]))) == [actual[k] for k in order]


@examples(60)
@given(st.one_of(collections(), sites()), st.integers(0, 20))
def test_exact_copies_have_the_same_siblings(pages, which):
    if pages:
        pages = [*pages, pages[which % len(pages)]]
        actual = rows(SCHEME.refine(outlines(pages)))
        assert actual[-1] == actual[which % (len(pages) - 1)]


def spread(pages: list[list[naive.Entry]]) -> list[list[naive.Entry]]:
    """The same pages with hashes all over their range, as real ones are."""
    return [[(h * 0x9E3779B97F4A7C15 % 2**64, kind) for h, kind in page] for page in pages]


def named_by_site(pages: list[list[naive.Entry]]) -> list[str]:
    """Ids of pages of `sites`, whose links name the site; the others have none."""
    sites = [min((h // 1000 for h, kind in page if kind == LINK), default=None) for page in pages]
    return [f"{k}" if site is None else f"https://site{site}.org/{k}" for k, site in enumerate(sites)]


def on_disk(folder, pages: list[list[naive.Entry]], names: list[str], sets: ExactDuplicates) -> Known:
    """What is known of pages in segments of three."""
    parts = [range(k, min(k + 3, len(pages))) for k in range(0, len(pages), 3)]
    batches = [
        with_tokens(
            replace(outlines([pages[k] for k in part]), documents=DocumentColumns(tuple(names[k] for k in part)))
        )
        for part in parts
    ]
    segments = segments_of(batches, folder / "outlines")
    refined = refine_segments(folder / "refined", segments, SCHEME, Serial(), memory=10**9, exact_duplicates=sets)
    return [row for part in refined.folders for row in known(load_signatures(part))]


TASKS, PASS = "spotsigs.storage.tasks.TASKS", "spotsigs.outofcore.template_pass"
WHOLE: dict[str, int] = {TASKS: 1}
SMALL = {f"{PASS}.LEAST_ENTRIES": 1, f"{PASS}.BLOCK_PAGES": 2, f"{PASS}.NAMED_PAGES": 1}
FEW = {f"{PASS}.GROUPS": 2}


@contextmanager
def constants(values: dict[str, int]) -> Iterator[None]:
    """Set constants of modules in the block."""
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(patch(name, value))
        yield


@examples(15)
@given(sites(), st.booleans(), st.sampled_from([WHOLE, SMALL, SMALL | FEW, SMALL | {TASKS: 2}]))
def test_tasks_make_no_difference(tmp_path_factory, pages, named, limited):
    folder, drawn = tmp_path_factory.mktemp("sites"), spread(pages)
    names = named_by_site(pages) if named else [str(k) for k in range(len(pages))]
    expected = known(SCHEME.refine(with_tokens(outlines(drawn))))
    with constants(limited):
        assert on_disk(folder, drawn, names, ExactDuplicates.none(len(pages))) == expected


@examples(15)
@given(sites(), st.data())
def test_added_pages_change_their_sites_alone(tmp_path_factory, pages, data):
    folder, drawn, names = tmp_path_factory.mktemp("sites"), spread(pages), named_by_site(pages)
    old = data.draw(st.integers(0, len(pages) // 3)) * 3
    alone = ExactDuplicates.none
    on_disk(folder, drawn[:old], names[:old], alone(old))
    before = {path.name for path in (folder / "refined/sites/refined").glob("*")}
    with constants(data.draw(st.sampled_from([WHOLE, SMALL]))):
        actual = on_disk(folder, drawn, names, alone(len(pages)))
    assert actual == known(SCHEME.refine(with_tokens(outlines(drawn))))
    again = {path.name: path.stat().st_mtime_ns for path in (folder / "refined/sites/refined").glob("*")}
    new = {name.rpartition("/")[0] for name in names[old:]}
    if any(name.rpartition("/")[0] not in new for name in names[:old]):
        assert before & again.keys()
    assert on_disk(folder, drawn, names, alone(len(pages))) == actual
    assert {path.name: path.stat().st_mtime_ns for path in (folder / "refined/sites/refined").glob("*")} == again


def test_more_pages_than_are_walked():
    random = np.random.default_rng(3)
    templates = [[(int(h), LINK) for h in random.integers(10_000, 10_900, 12)] for _ in range(100)]
    pages = []
    for k in range(500):
        article = [(int(h), TEXT) for h in random.integers(0, 5000, 6)]
        pages.append([*templates[k % 100], (20_000 + k % 100, TEXT), *article])
    drawn = with_tokens(outlines(pages))
    expected = expected_of(pages, drawn)
    assert known(SCHEME.refine(drawn, threads=2)) == expected
    assert not any(20_000 <= h < 30_000 for counts, _, _ in expected for h in counts)


# --- versions of a text -----------------------------------------------------------------------------------------------


def site(random: np.random.Generator, texts: list[list[int]], prose: list[int], drift: float = 0) -> list:
    """Pages of one site: a text each, amid links and the template's prose; each page may have another part of these."""
    menu = random.integers(1 << 20, 1 << 40, 33).tolist()
    pages = []
    for text in texts:
        parts = [[(h, TEXT) for h in prose[: len(prose) // 2]], [(h, TEXT) for h in prose[len(prose) // 2 :]]]
        blocks = [[(h, LINK) for h in menu[k : k + 11]] for k in (0, 11, 22)]
        for part in [*parts, *blocks]:
            if random.random() < drift:
                part[:] = [(h, kind) for h, (_, kind) in zip(fresh(random, len(part)), part, strict=True)]
        story = [(h, TEXT) for h in text]
        for at in random.integers(0, len(story), 4):  # links within the text
            story.insert(at, (int(random.integers(1 << 20, 1 << 40)), LINK))
        pages.append([*blocks[0], *parts[0], *blocks[1], *story, *blocks[2], *parts[1], *blocks[0][:3]])
    return pages


def fresh(random: np.random.Generator, n: int) -> list[int]:
    return random.integers(1 << 41, 1 << 60, n).tolist()


def edited(random: np.random.Generator, text: list[int], part: float, in_one_block: bool) -> list[int]:
    n = round(part * len(text))
    at = np.arange(n) + random.integers(0, len(text) - n + 1) if in_one_block else random.permutation(len(text))[:n]
    changed = np.array(text)
    changed[at] = fresh(random, n)
    return changed.tolist()


def recall(pages: list[list[naive.Entry]], versions: int, tau: float) -> float:
    """Return the fraction of the pairs of versions that are similar; each `versions` pages are of one text."""
    left = [set(row) for row in rows(SCHEME.refine(outlines(pages)))]
    similar = [
        len(left[a] & left[b]) >= tau * max(1, len(left[a] | left[b]))
        for first in range(0, len(pages), versions)
        for a in range(first, first + versions)
        for b in range(a + 1, first + versions)
    ]
    return sum(similar) / len(similar)


@pytest.mark.parametrize("in_one_block", [True, False], ids=["one block", "scattered"])
@pytest.mark.parametrize("part", [0.05, 0.1, 0.15])
@pytest.mark.parametrize("versions", [2, 4, 8])
def test_versions_of_the_only_text_of_a_site_are_similar(versions, part, in_one_block):
    random = np.random.default_rng(versions)
    pages = []
    for _ in range(20):
        text = fresh(random, 80)
        texts = [edited(random, text, part, in_one_block) for _ in range(versions)]
        pages += site(random, texts, fresh(random, 20))
    assert recall(pages, versions, 0.15) > 0.95


@pytest.mark.parametrize("prose", [20, 40, 60])
@pytest.mark.parametrize("stories", [2, 3, 8])
def test_stories_of_one_template_do_not_match_by_it(stories, prose):
    random = np.random.default_rng(stories)
    pages = []
    for _ in range(20):
        pages += site(random, [fresh(random, 80) for _ in range(stories)], fresh(random, prose))
    assert recall(pages, stories, 0.18) <= 0.1


# --- pages ------------------------------------------------------------------------------------------------------------


MENU = "".join(f'<li><a href="/{k}">Section number {k}</a> ' for k in range(12))
LEGAL = "<p>The site is a service of the publisher and the terms of use are on the page of the legal office."
STORIES = [
    f"<p>The {name} has opened a {thing} near the {place}, and the {name} was proud of the {thing}. "
    f"A {place} is the home of the {name}, who will be a {role} in the {time} when the {thing} has been built."
    for name, thing, place, role, time in zip(
        "mayor bishop doctor farmer sailor judge pilot".split(),
        "bridge school clinic market harbour court airport".split(),
        "river church valley forest island square meadow".split(),
        "guest witness leader teacher captain speaker guide".split(),
        "spring summer autumn winter evening morning weekend".split(),
        strict=True,
    )
]


def in_template(story: str) -> str:
    return f"<ul>{MENU}</ul>{story}<footer>{LEGAL}</footer>"


def spots(*pages: str, **kwargs: str) -> list[set[int]]:
    return [set(row) for row in rows(extract(pages_of(*pages, **kwargs), VisibleText(), SCHEME, Serial()))]


def plain(text: str) -> set[int]:
    return set(SpotSignatures(d=1, c=2)(tokenize_marked(VisibleText().marked(Document(id="", content=text)))).tolist())


def test_a_page_alone_keeps_its_densest_region():
    (left,) = spots(in_template(STORIES[0]))
    tokens = tokenize_marked(VisibleText().marked(Document(id="", content=in_template(STORIES[0]))))
    assert len(left & plain(STORIES[0])) >= len(plain(STORIES[0])) - 2
    assert left == set(SCHEME(tokens).tolist()) == set(MainContent(signature=SCHEME.signature)(tokens).tolist())


@pytest.mark.parametrize(("menus", "lower_bound"), [(1, 20 / 92), (4, 20 / 36)])
def test_pages_of_a_template_that_is_unknown_are_similar_by_more(menus, lower_bound):
    prose = [(h, TEXT) for h in range(1000, 1020)]
    pages = []
    for k in range(4):
        menu = [(100 * (k % menus) + link, LINK) for link in range(6)]
        pages.append([*menu, *prose, *((2000 + 10 * k + h, TEXT) for h in range(8))])
    refined = SCHEME.refine(outlines(pages))
    rule = NO_RULE._replace(missing=refined.documents.missing, lengths=refined.occurrences().astype(np.int32))
    one, other = np.array([0]), np.array([1])
    assert rule.lower_bounds(one, other, np.array([20 / 36])).tolist() == [lower_bound]
    assert rows(refined)[0] == dict.fromkeys([*range(1000, 1020), *range(2000, 2008)], 1)


def test_versions_are_no_siblings():
    rewritten = STORIES[0].replace("mayor", "governor").replace("proud", "glad")
    actual = spots(in_template(STORIES[0]), in_template(rewritten))
    shared = plain(STORIES[0]) & plain(rewritten)
    assert len(shared) > 5
    assert len(shared & actual[0] & actual[1]) >= len(shared) - 2  # the last chains reach into the template


def test_a_stub_has_nothing_of_its_own():
    actual = spots(*map(in_template, STORIES), in_template(""))
    assert actual[-1] == set()


@pytest.mark.parametrize("others", [0, 1, 2])
@pytest.mark.parametrize("digests", [1, 2, 3])
def test_digests_of_articles_do_not_make_them_a_template(digests, others):
    article, news = STORIES[0], STORIES[1 + digests : 1 + digests + others]
    version = article.replace("spring", "summer")
    archive = [in_template(article + story + STORIES[6]) for story in STORIES[1 : 1 + digests]]
    actual = spots(in_template(article), in_template(version), *archive, *map(in_template, news))
    shared = plain(article) & plain(version)
    if digests == 1 or digests <= others:
        assert len(shared & actual[0] & actual[1]) >= len(shared) - 3
    else:  # what more than half of several siblings have is the template
        assert len(shared & actual[0]) < len(shared) / 2


def test_workers_and_shards_make_no_difference(tmp_path):
    collection = Gold(seed=1, pages=60, clusters=12, cache=tmp_path)
    alone = extract(collection, VisibleText(), SCHEME, Serial())
    many = extract(collection, VisibleText(), SCHEME, Processes(workers=2))
    assert alone.documents.clusters == many.documents.clusters
    for name in ("doc_ids", "indptr", "hashes", "counts"):
        assert np.array_equal(getattr(alone, name), getattr(many, name)), name
    everything = extract(collection, VisibleText(), SpotSignatures(d=1, c=2), Serial())
    assert alone.counts.sum() < everything.counts.sum()


def test_the_outline_is_kept_as_it_is():
    given_ = outlines([[(1, TEXT), (9, LINK)], [(2, TEXT), (9, LINK)]])
    copy = replace(given_, hashes=given_.hashes.copy(), counts=given_.counts.copy())
    SCHEME.refine(given_)
    assert np.array_equal(given_.hashes, copy.hashes)
    assert np.array_equal(given_.counts, copy.counts)


# --- on disk ----------------------------------------------------------------------------------------------------------


def matched(folder, collection, **kwargs):
    parts = (VisibleText(), SCHEME, IdfFilter(idf_min=0.0))
    return match_on_disk(folder, collection, *parts, 0.15, Serial(), memory=10**9, **kwargs)


def written(path, numbers):
    pages = [{"id": str(k), "html": in_template(STORIES[k % 7].replace("built", f"built {k // 7} "))} for k in numbers]
    path.write_text("\n".join(map(json.dumps, pages)))
    return Jsonl(path=str(path), shard_bytes=3_000)


def test_on_disk_equals_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_signatures, "BLOCK_PAGES", 5)
    collection = written(tmp_path / "x.jsonl", range(21))
    assert len(collection.shards()) > 3
    actual = matched(tmp_path / "run", collection)
    signatures = extract(collection, VisibleText(), SCHEME, Serial())
    expected = named(BruteForce(tau=0.15)(Corpus(IdfFilter(idf_min=0.0)(signatures))), signatures.doc_ids)
    assert named(actual.pairs, actual.doc_ids) == expected
    assert len(expected) == 21  # each story's three versions, and no two stories for their template
    folder = tmp_path / "run" / "refined"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    matched(tmp_path / "run", collection)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    monkeypatch.setattr(kept_signatures, "RULES", kept_signatures.RULES + 1)
    matched(tmp_path / "run", collection)  # as by a later release, whose rules are others
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} != before


def test_new_against_old_equals_the_full_run(tmp_path):
    old, new = written(tmp_path / "old.jsonl", range(3)), written(tmp_path / "new.jsonl", range(3, 21))
    matched(tmp_path / "store", old)
    added = matched(tmp_path / "store", new, add=True)
    full = matched(tmp_path / "full", written(tmp_path / "all.jsonl", range(21)))
    expected = {pair for pair in named(full.pairs, full.doc_ids) if max(map(int, pair[:2])) >= 3}
    assert named(added.pairs, added.doc_ids) == expected


def test_too_little_memory_for_the_pages(tmp_path):
    segments = segments_of([outlines([[(1, LINK)] * 50] * 20)], tmp_path / "outlines")
    with pytest.raises(InputError, match=r"are needed for 20 pages"):
        refine_segments(
            tmp_path / "refined", segments, SCHEME, Serial(), memory=1_000, exact_duplicates=ExactDuplicates.none(20)
        )


def test_too_little_memory_for_the_links_of_a_site(tmp_path):
    """Pages of one site, which no task has room for; it is refused before the templates of other sites are found."""
    names = tuple(f"https://site.org/{k}" for k in range(20))
    batch = outlines([[(k * 100 + link, LINK) for link in range(50)] for k in range(20)])
    segments = segments_of([replace(batch, documents=DocumentColumns(names))], tmp_path / "outlines")
    none = ExactDuplicates.none(20)
    sentence = r"a site of 20 pages has 1,000 links, which need 0 MB, and there are 0 MB for the data of a task"
    with pytest.raises(InputError, match=sentence):
        refine_segments(tmp_path / "few", segments, SCHEME, Serial(), memory=70_000, exact_duplicates=none)
    enough = refine_segments(tmp_path / "refined", segments, SCHEME, Serial(), memory=80_000, exact_duplicates=none)
    assert int(enough.sizes().sum()) == 20


def test_pages_of_names_are_compared_by_all_of_their_text():
    def page(names: list[str]) -> str:
        listed = "".join(f"<tr><td>{name}</td><td>{name.swapcase()} value</td></tr>" for name in names)
        return f"<p>This is the page of a class that has some members and was generated.</p><table>{listed}</table>"

    names = [f"{first}{second}" for first in ("read", "write", "open") for second in "abcdefghijklmnopqrst"]
    pages = [page(names[at : at + 20]) for at in (0, 20, 40)]
    changed = pages[0].replace("reada", "reader")
    assert spotsigs.dedup([*pages, changed], tau=0.25) == pages
    by_spots = spotsigs.Method.of(signature=SpotSignatures(language="en"), min_contained=0)
    assert spotsigs.dedup(pages, tau=0.25, method=by_spots) == pages[:1]
