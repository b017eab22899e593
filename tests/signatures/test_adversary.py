"""An adversary that searches for pages which change what happens to the pages of other sites."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import InMemory, match_on_disk
from strategies import examples, rows_of_signatures

from spotsigs.records import Document, Signatures
from spotsigs.signatures.extract import extract
from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.main_content import LINK, TEXT, heaviest, outline_of, own_gains
from spotsigs.signatures.sites import site_of
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.signatures.template_kernels import FLOOR
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.storage.exact_duplicates import ExactDuplicates, Sameness
from spotsigs.text.tokens import tokenize_marked
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial

SCHEME = TemplateRemoval(signature=SpotSignatures(d=1, c=2))
TAU = 0.25
SPOTS = 40


def sentence(random: np.random.Generator) -> str:
    words = "".join(random.choice(list("bcdfghklmnprst"), 8))
    return f"the {words[:4]} was {words[4:]}{random.integers(1000)}"


def prose(random: np.random.Generator, spots: int) -> list[str]:
    return [sentence(random) for _ in range(spots // 2)]


@dataclass(frozen=True)
class Site:
    """A site's links and the prose of its template."""

    host: str
    links: tuple[str, ...]
    footer: tuple[str, ...]

    def page(self, name: str, story: list[str]) -> tuple[str, str]:
        return f"https://{self.host}/{name}", html(self.links, [*story], self.footer)


def html(links: tuple[str, ...] | list[str], story: list[str], footer: tuple[str, ...] | list[str]) -> str:
    menu = "".join(f"<li><a href=/>{link}</a></li>" for link in links)
    return f"<ul>{menu}</ul><p>{'. '.join(story)}.</p><footer><p>{'. '.join(footer)}.</p></footer>"


def new_site(random: np.random.Generator, host: str, footer: int = 20) -> Site:
    return Site(host, tuple(sentence(random) for _ in range(12)), tuple(prose(random, footer)))


@dataclass(frozen=True)
class World:
    """Honest pages; the first is the victim, the second its mirror on another site."""

    pages: tuple[tuple[str, str], ...]
    sites: tuple[Site, ...]
    article: tuple[str, ...]

    @classmethod
    def made(cls, seed: int) -> World:
        random = np.random.default_rng(seed)
        sites = tuple(new_site(random, f"www.site{k}.org") for k in range(3))
        article = prose(random, SPOTS)
        pages = [sites[0].page("story", article), sites[1].page("story", article)]
        pages += [site.page(str(k), prose(random, SPOTS)) for site in sites for k in range(4)]
        return cls(tuple(pages), sites, tuple(article))


@dataclass(frozen=True)
class Forged:
    """A page of the adversary: whose links, which sentences of the article, others, and a footer."""

    imitated: int
    quoted: tuple[int, ...]
    others: int
    footer: bool

    def html(self, world: World, random: np.random.Generator) -> str:
        site = world.sites[self.imitated]
        text = [world.article[k] for k in self.quoted] + prose(random, 2 * self.others)
        return html(site.links, text, site.footer if self.footer else [])


def drawn(random: np.random.Generator) -> Forged:
    quoted = np.flatnonzero(random.random(SPOTS // 2) < random.choice([0.05, 0.2, 0.5, 0.9]))
    return Forged(int(random.integers(2)), tuple(quoted.tolist()), int(random.integers(0, 25)), random.random() < 0.5)


def attacked(world: World, forged: tuple[Forged, ...], known: bool) -> Signatures:
    """Return the signatures of the pages, with the forged pages first, as they are preferred."""
    random = np.random.default_rng(5)
    bad = [(f"https://evil.org/{k}", page.html(world, random)) for k, page in enumerate(forged)]
    pages = [*bad, *world.pages]
    if not known:
        pages = [(name.partition("://")[2], content) for name, content in pages]
    collection = InMemory(tuple(Document(id=name, content=content) for name, content in pages))
    return extract(collection, VisibleText(), SCHEME, Serial(), sameness=Sameness.text)


def known_of(signatures: Signatures) -> list[tuple[dict[int, int], int]]:
    """Return the signatures of each page, and how many are missing."""
    return list(zip(rows_of_signatures(signatures), signatures.documents.missing.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("forged", [1, 3, 8])
def test_pages_of_one_host_change_no_signature_of_another(seed, forged):
    world, random = World.made(seed), np.random.default_rng(seed)
    alone = known_of(attacked(world, (), known=True))
    for _ in range(10):
        assert known_of(attacked(world, tuple(drawn(random) for _ in range(forged)), known=True))[forged:] == alone


@examples(6)
@given(st.data())
def test_copies_on_other_hosts_change_no_signature_of_a_page_before_them(tmp_path_factory, data):
    world = World.made(data.draw(st.integers(0, 3)))
    own = [page for page in world.pages if "site0" in page[0]]
    own = [*own, (own[1][0] + "?print", own[1][1])]  # an exact duplicate on the same site
    others = [page for page in world.pages if "site0" not in page[0]]
    random = np.random.default_rng(3)
    others += [(f"https://evil.org/{k}", drawn(random).html(world, random)) for k in range(4)]
    others += [(f"https://mirror{k % 2}.org/{k}", content) for k, (_, content) in enumerate(own)]
    some = data.draw(st.lists(st.sampled_from(others), unique=True, max_size=8))
    mixed = [*own]
    for page in some:
        mixed.insert(data.draw(st.integers(0, len(mixed))), page)
    names, contents = zip(*mixed, strict=True)
    expected = compared_by(own)
    for store in (None, tmp_path_factory.mktemp("store")):
        signatures = compared_by(mixed, store)
        for name, content in own:
            first = names[contents.index(content)]
            if "site0" in first:
                assert signatures[name] == expected[name]
            else:  # the page is compared as the first of its copies, by the pages of that site alone
                site = [page for page in mixed if site_of(page[0]) == site_of(first)]
                assert signatures[name] == compared_by(site)[first]


def compared_by(pages: list[tuple[str, str]], store: Path | None = None) -> dict[str, dict[int, int]]:
    """Return the signatures by which each page is compared."""
    collection = InMemory(tuple(Document(id=name, content=content) for name, content in pages))
    if store is None:
        signatures = extract(collection, VisibleText(), SCHEME, Serial(), sameness=Sameness.text)
        sets, rows = ExactDuplicates.among(signatures), rows_of_signatures(signatures)
    else:
        matched = match_on_disk(store, collection, VisibleText(), SCHEME, IdfFilter(), TAU, Serial(), memory=10**9)
        sets = matched.exact_duplicates
        rows = [row for block in matched.signatures.read() for row in rows_of_signatures(block)]
    return {name: rows[sets.representatives[k]] for k, (name, _) in enumerate(pages)}


def n_main(page: tuple[str, str]) -> int:
    tokens = tokenize_marked(VisibleText().marked(Document(id="", content=page[1])))
    kinds = outline_of(SCHEME.signature, tokens)[1]
    start, stop = heaviest(own_gains(kinds))
    return int(np.count_nonzero(kinds[start:stop] == TEXT))


def require_floor(pages: list[dict[int, int]], missing: list[int], sizes: list[int]) -> None:
    """Two pages whose lower bound reaches tau share tau / `FLOOR` as many signatures as the main content of either."""
    for a in range(len(pages)):
        for b in range(a):
            shared = sum(min(count, pages[b].get(h, 0)) for h, count in pages[a].items())
            union = sum(pages[a].values()) + sum(pages[b].values()) - shared + missing[a] + missing[b]
            if union and shared / union >= TAU:
                assert shared >= TAU / FLOOR * max(sizes[a], sizes[b])


def voters(pages: int) -> tuple[Forged, ...]:
    """Pages with the links of the victim or of its mirror, of which three in five quote each sentence of the article.

    A page that quotes more would be a digest.
    """
    quoted = [tuple(n for n in range(2, SPOTS // 2) if (n + 2 * (k // 2)) % 5 < 3) for k in range(pages)]
    return tuple(Forged(k % 2, some, 60, footer=True) for k, some in enumerate(quoted))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("forged", [2, 6, 120])
def test_without_hosts_a_page_is_replaced_only_by_one_like_its_main_content(seed, forged):
    """The pages quote the article on both sites, so that most of it counts as a template; a bait quotes the rest."""
    world = World.made(seed)
    for pages in (voters(forged), (Forged(0, (0, 1), 0, footer=False), *voters(forged))):
        signatures, n = attacked(world, pages, known=False), len(pages)
        rows, forms = rows_of_signatures(signatures), np.random.default_rng(5)
        every = [*(("", page.html(world, forms)) for page in pages), *world.pages]
        require_floor(rows, signatures.documents.missing.tolist(), list(map(n_main, every)))
        whole = rows_of_signatures(attacked(world, (), known=False))[:2]
        left = sum(rows[n + k].get(h, 0) for k in (0, 1) for h in whole[k])
        assert forged < 120 or left < 0.75 * sum(
            sum(page.values()) for page in whole
        )  # the adversary is not a weak one


@pytest.mark.parametrize(
    ("name", "site"),
    [
        ("https://www.Example.org/a?b", "example.org"), ("http://example.org:8080", "example.org"),
        ("http://a@example.org/", "example.org"), ("http://evil.org\\@example.org/", "evil.org"),
        ("warc://x.org#y/../z", "x.org"), ("a/b.html", ""), ("example.org/a", ""), ("", ""),
    ],
)  # fmt: skip
def test_sites(name, site):
    assert site_of(name) == site


def test_links_of_other_hosts_are_other_links():
    tokens = tokenize_marked(VisibleText().marked(Document(id="", content="<a href=/>one</a> the two")))
    outlines = [outline_of(SCHEME.signature, tokens, site) for site in ("", "a.org", "b.org")]
    assert len({hashes[kinds >= LINK].tobytes() for hashes, kinds in outlines}) == 3
    assert len({hashes[kinds < LINK].tobytes() for hashes, kinds in outlines}) == 1
