"""The text without a template is the same for every scheme, and has the shingles that template removal keeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from archives import read
from test_newsframes import collection, tarballs  # noqa: F401

from data.collections.gold import Gold
from experiments.harness.template_free import FINDER, TemplateFree, remaining_text
from spotsigs.contracts import Collection
from spotsigs.signatures.extract import extract
from spotsigs.signatures.template_removal import TemplateRemoval
from spotsigs.text.tokens import tokenize, tokenize_marked
from spotsigs.text.visible import VisibleText, visible_text
from spotsigs.workers.engines import Serial


def test_the_text_has_the_shingles_that_remain(tmp_path):
    pages = Gold(seed=1, pages=60, clusters=6, cache=tmp_path)
    signatures = extract(pages, VisibleText(), TemplateRemoval(signature=FINDER), Serial())
    shorter = 0
    for row, page in enumerate(read(TemplateFree(collection=pages))):
        part = slice(*signatures.indptr[row : row + 2])
        kept = dict(zip(signatures.hashes[part].tolist(), signatures.counts[part].tolist(), strict=True))
        text = Counter(FINDER(tokenize(page.content)).tolist())
        assert page.id == signatures.doc_ids[row]
        floor = [key for key in kept if key not in text]  # the signature that makes up for a page of few others
        assert len(floor) <= 1
        assert all(text[key] >= count for key, count in kept.items() if key not in floor)
        shorter += len(page.content) < 0.7 * len(extracted(pages, page.id))
    assert shorter > 30


def extracted(pages, name):
    [page] = [page for page in read(pages) if page.id == name]
    return visible_text(page)


@dataclass(frozen=True)
class Listed(Collection):
    """Pages of a collection with a list among its fields, as PackageDocs has."""

    pages: Gold
    versions: list[str] = field(default_factory=lambda: ["1", "2"])

    def shards(self):
        return self.pages.shards()


def test_a_collection_may_have_lists_among_its_fields(tmp_path):
    pages = Gold(seed=2, pages=30, clusters=4, cache=tmp_path)
    texts, same = (read(TemplateFree(collection=each)) for each in (Listed(pages), pages))
    assert [page.content for page in texts] == [page.content for page in same]


def test_tokens_that_no_remaining_shingle_covers_are_left_out():
    text = "menu one two three article begins here and ends now footer text"
    tokens = tokenize_marked(text)
    hashes = FINDER(tokens)
    assert remaining_text(tokens, hashes) == text
    assert remaining_text(tokens, hashes[4:8]) == "article begins here and ends now"
    assert remaining_text(tokens, np.empty(0, np.uint64)) == ""


def test_an_article_is_the_text_in_the_slots(tarballs):  # noqa: F811
    pages = read(collection(tarballs, seed=5))
    articles = read(collection(tarballs, seed=5, article=True))
    assert [(page.id, page.cluster) for page in pages] == [(page.id, page.cluster) for page in articles]
    for page, article in zip(pages, articles, strict=True):
        _, *paragraphs = article.content.split("\n\n")
        words = visible_text(page).split()
        assert len(article.content.split()) < 0.9 * len(words)
        assert all(set(paragraph.split()) <= set(words) for paragraph in paragraphs)
    drifting = read(collection(tarballs, seed=5, article=True, drift=0.5))
    assert drifting == articles
