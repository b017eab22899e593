"""Clusters, metrics, shingles, min-hashes and visible text against libraries that others wrote.

A difference is corrected, or the test states its reason.
"""

from __future__ import annotations

import random
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path

import lxml.html
import networkx as nx
import numpy as np
import pytest
from datasketch import MinHash, WeightedMinHashGenerator
from hypothesis import given
from hypothesis import strategies as st
from naive.extract import HIDDEN, INLINE
from selectolax.lexbor import LexborHTMLParser
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import precision_recall_fscore_support, recall_score
from sklearn.metrics.cluster import contingency_matrix
from strategies import edges, examples, is_long, pairs_of, vectors_of

from baselines.lsh import Lsh, Scheme
from baselines.shingles import Shingles
from baselines.sketch import Kind, Sketch, common_values
from spotsigs import cluster, evaluate, relative_recall
from spotsigs.clustering.clusters import ClusterMethod, cohesion
from spotsigs.evaluation.documents import b_cubed
from spotsigs.matching.verify import jaccard
from spotsigs.records import Document, Truth
from spotsigs.text.charset import to_utf8
from spotsigs.text.tokens import tokenize
from spotsigs.text.visible import visible_text
from spotsigs.text.xhtml import as_html, is_xhtml

ROOT = Path(__file__).parents[2]
N = 24
EDGES = st.sets(edges(N), max_size=30)


# clusters and metrics


@examples(100)
@given(EDGES, st.permutations(range(N)))
def test_clusters_against_networkx(edges, priority):
    graph = nx.Graph()
    graph.add_nodes_from(range(N))
    graph.add_edges_from(edges)
    pairs = pairs_of(edges, N)
    clusters = cluster(pairs, clusters="components", priority=np.array(priority))
    components = sorted(nx.connected_components(graph), key=min)
    assert [set(np.flatnonzero(clusters.labels == k).tolist()) for k in range(len(clusters.sizes))] == components
    assert clusters.representatives.tolist() == [min(members, key=priority.__getitem__) for members in components]
    cohesions = cohesion(clusters, pairs).of(np.arange(len(clusters.sizes)))
    for k, members in enumerate(components):
        assert cohesions.pairs[k] == graph.subgraph(members).number_of_edges()
        assert cohesions.apart[k] == len(members) - 1 - graph.degree[int(clusters.representatives[k])]
    leaders = cluster(pairs, clusters="leaders", priority=np.array(priority)).representatives.tolist()
    assert nx.is_dominating_set(graph, leaders)
    assert graph.subgraph(leaders).number_of_edges() == 0
    colors = nx.greedy_color(graph, strategy=lambda graph, colors: np.argsort(priority).tolist())
    assert sorted(leaders) == sorted(row for row, color in colors.items() if color == 0)  # the first independent set


@examples(100)
@given(EDGES, st.lists(st.none() | st.integers(0, 5), min_size=N, max_size=N), st.sampled_from(ClusterMethod))
def test_precision_recall_and_f1_against_scikit_learn(edges, labels, method):
    truth = Truth.from_clusters(None if label is None else str(label) for label in labels)
    if truth is None:
        return
    pairs = pairs_of(edges, N)
    every = [(a, b) for a in range(N) for b in range(a + 1, N)]
    wanted = [labels[a] == labels[b] is not None for a, b in every]
    reported = [pair in edges for pair in every]
    groups = cluster(pairs, clusters=method)
    quality = evaluate(pairs, truth, groups, resamples=0)
    by_scikit_learn = precision_recall_fscore_support(wanted, reported, average="binary", zero_division=np.nan)[:3]
    np.testing.assert_allclose([quality.precision, quality.recall, quality.f1], by_scikit_learn)
    counts = sum(a and b for a, b in zip(wanted, reported, strict=True)), sum(reported), sum(wanted)
    assert (quality.pairs.true_pairs, quality.pairs.reported_pairs, quality.pairs.positive_pairs) == counts
    together = groups.labels
    alone = [f"alone {k}" if label is None else str(label) for k, label in enumerate(labels)]
    cells = contingency_matrix(alone, together).astype(float)  # B-cubed, as sums over its cells
    precision, recall = ((cells**2 / cells.sum(axis, keepdims=True)).sum() / N for axis in (0, 1))
    np.testing.assert_allclose(b_cubed(groups, truth), [precision, recall, 2 / (1 / precision + 1 / recall)])
    assert b_cubed(groups, truth) == (quality.bcubed.precision, quality.bcubed.recall, quality.bcubed.f1)
    kept = np.bincount(groups.representatives, minlength=N) > 0
    of_story = contingency_matrix(alone, kept)[:, 1] if not kept.all() else contingency_matrix(alone, kept)[:, 0]
    documents, left = quality.documents, np.maximum(of_story - 1, 0).sum()
    assert (documents.stories, documents.stories_lost) == (len(of_story), np.count_nonzero(of_story == 0))
    assert (documents.duplicates, documents.duplicates_left) == (N - len(of_story), left)
    every = evaluate(pairs, truth, groups, kept=np.ones(N, np.bool_), resamples=0)
    assert (every.documents.stories_lost, every.documents.duplicates_left) == (0, every.documents.duplicates)


@examples(100)
@given(EDGES, EDGES)
def test_relative_recall_against_scikit_learn(edges, base):
    every = [(a, b) for a in range(N) for b in range(a + 1, N)]
    expected = recall_score([p in base for p in every], [p in edges for p in every], zero_division=np.nan)
    np.testing.assert_allclose(relative_recall(pairs_of(edges, N), pairs_of(base, N)), expected)


# shingles and min-hashes

WORDS = st.lists(st.sampled_from("a rose is été İ x1 the ROSE".split()), min_size=1, max_size=25)


@examples(100)
@given(WORDS, st.integers(1, 5))
def test_shingles_against_scikit_learns_n_grams(words, k):
    text = " ".join(words)
    actual = Counter(shingle.replace(":", " ") for shingle in Shingles(k=k).readable(text))
    split = tokenize(text).words
    if len(split) < k:  # a text that is too short is one shingle here, and none there
        assert actual == {" ".join(split): 1}
        return
    counting = CountVectorizer(ngram_range=(k, k), tokenizer=str.split, token_pattern=None, lowercase=False)
    counts = counting.fit_transform([" ".join(split)]).toarray()[0]
    assert actual == dict(zip(counting.get_feature_names_out(), counts.tolist(), strict=True))


MULTISETS = st.dictionaries(st.integers(0, 40), st.integers(1, 3), min_size=1, max_size=30).map(Counter)


def permuted(scheme, documents, values=96):
    rows = vectors_of(documents)
    method = Lsh(k=1, l=values, scheme=scheme)
    return list(method.min_hashes(rows, np.arange(len(documents)))), rows


def within_chance(estimate, truth, values):
    """Six standard deviations, and the step from one value to the next."""
    return abs(estimate - truth) <= 6 * (truth * (1 - truth) / values) ** 0.5 + 3 / values


@examples(60)
@given(MULTISETS, MULTISETS, st.sampled_from(Scheme))
def test_min_hashes_against_datasketch(one, other, scheme):
    """The min-hash of a union is the union of min-hashes; equal positions estimate the multiset Jaccard."""
    (first, second, united), rows = permuted(scheme, [one, other, one | other])
    merged = first.copy()
    merged.merge(second)
    assert merged == united
    exact = float(jaccard(rows, np.array([0]), np.array([1]))[0])
    assert exact == pytest.approx((one & other).total() / (one | other).total())
    assert within_chance(first.jaccard(second), exact, 96)
    named = [MinHash(num_perm=96, seed=3) for _ in range(2)]
    for min_hash, document in zip(named, (one, other), strict=True):
        min_hash.update_batch([f"{name} {number}".encode() for name in document for number in range(document[name])])
    assert within_chance(named[0].jaccard(named[1]), exact, 96)
    weighted = WeightedMinHashGenerator(41, sample_size=96, seed=3)
    counts = [[document[name] for name in range(41)] for document in (one, other)]
    assert within_chance(weighted.minhash(counts[0]).jaccard(weighted.minhash(counts[1])), exact, 96)


@examples(60)
@given(MULTISETS, MULTISETS)
def test_sketches_against_datasketch(one, other):
    """Estimators of the same resemblance, of sets, are within the same distance of it."""
    exact = len(one.keys() & other.keys()) / len(one.keys() | other.keys())
    rows, i, j = vectors_of([one, other]), np.array([0]), np.array([1])
    sketch = Sketch(kind=Kind.permutations, size=96, tau=0.5)
    sketches = sketch.sketches(rows)
    assert within_chance(float(sketch.estimates(sketches, i, j, common_values(sketches, i, j))[0]), exact, 96)
    ours = [MinHash(num_perm=96, seed=5) for _ in range(2)]
    for min_hash, document in zip(ours, (one, other), strict=True):
        min_hash.update_batch([str(name).encode() for name in document])
    assert within_chance(ours[0].jaccard(ours[1]), exact, 96)


# visible text

ARCHIVES = ("article-1.1.2.tgz", "postlight-mercury-parser-1.1.1.tgz")
CODECS = ("utf-8", "utf-16", "utf-16-be", "cp1252", "shift_jis", "koi8-r")


@cache
def pages():
    """Return the pages of the small collection, and pages of real sites where they have been fetched."""
    files = [(path.name, path.read_bytes()) for path in sorted((ROOT / "data/tiny").rglob("*.html"))]
    for name in ARCHIVES:
        if (path := ROOT / "data/cache/npm" / name).exists():
            with tarfile.open(path) as archive:
                members = [member for member in archive if member.name.endswith(".html")]
                files += [(member.name, archive.extractfile(member).read()) for member in members]
    files.sort(key=lambda page: (len(page[1]), page))
    return files if is_long() else files[::12][:30]


def flipped(rng, page):
    """Replace bytes, half of them by such as mean something in markup."""
    damaged = bytearray(page)
    for _ in range(rng.choice((1, 5, 50))):
        damaged[rng.randrange(len(page))] = rng.choice((rng.randrange(256), rng.choice(b"<>/&\"'!-=;#")))
    return bytes(damaged)


def cut(rng, page):
    return page[: rng.randrange(len(page))]


def recoded(rng, page):
    return to_utf8(page).decode().encode(rng.choice(CODECS), "replace")


MUTANTS = {"as they are": lambda rng, page: page, "flipped": flipped, "cut": cut, "recoded": recoded}


def by_selectolax(html):
    """Return the text of the parser's own tree without what browsers hide; scripts are on, as in browsers."""
    tree = LexborHTMLParser(html, scripting=True)
    for element in tree.css(",".join(sorted(HIDDEN))):
        element.decompose()
    return "" if tree.body is None else tree.body.text().replace("\xad", "")


def by_lxml(html):
    """Return the same of libxml2's tree, whose elements are made by other code and other rules of nesting."""
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    try:
        body = lxml.html.document_fromstring(html, parser=parser).find("body")
    except lxml.etree.ParserError:  # nothing in it
        return ""
    parts = []
    for event, element in lxml.etree.iterwalk(body, events=("start", "end")) if body is not None else ():
        parts.append("" if element.tag in INLINE.split() else " ")
        if not any(above.tag in HIDDEN for above in element.iterancestors()):
            inside = element.text if element.tag not in HIDDEN else None
            parts.append((inside if event == "start" else element.tail if element is not body else None) or "")
    return "".join(parts).replace("\xad", "")


def mutants(kind):
    rng = random.Random(f"{kind} 0")
    for name, page in pages():
        content = MUTANTS[kind](rng, page)
        declared = rng.choice((None, "utf-8", "utf-16", "shift_jis", "x")) if kind == "recoded" else None
        html = to_utf8(content, declared)
        html = as_html(html) if is_xhtml(html, "") else html
        yield name, html, visible_text(Document(id=name, content=content, charset=declared))


@pytest.mark.parametrize("kind", MUTANTS)
def test_visible_text_against_selectolax(kind):
    """Every character of the parser's own text is there, in its order; white space, which it does not add, aside."""
    for name, html, text in mutants(kind):
        assert "".join(text.split()) == "".join(by_selectolax(html).split()), name


@pytest.mark.skipif(lxml.etree.LIBXML_VERSION < (2, 14), reason="reads tags by rules of its own before that")
@pytest.mark.parametrize("kind", MUTANTS)
def test_visible_text_against_lxml(kind):
    """The same characters, however often each.

    Their order is another where a table holds text, which HTML moves before it. Damaged tags are the one reason for
    other characters: of a tag in the head that is unknown, HTML begins the body and libxml2 does not; an element of raw
    text that nothing ends hides the rest of the page in HTML and less of it there.
    """
    others = 0
    for name, html, text in mutants(kind):
        same = Counter("".join(text.split())) == Counter("".join(by_lxml(html).split()))
        assert same or kind == "flipped", name
        others += not same
    assert others <= len(pages()) / 10
