from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import hashes as naive
from naive import sets as multisets
from strategies import by_rows, examples, vectors_of

from baselines.lcs.lcs_method import Lcs, Pages, sentence_fingerprints, sentences
from baselines.lcs.myers import align
from baselines.lcs.set_measures import SetComparison, SetMeasure
from spotsigs.errors import InputError
from spotsigs.records import Corpus
from spotsigs.text.hashing import hash_shingles
from spotsigs.text.tokens import tokenize

quick = examples(100)


def corpus(texts):
    return Corpus(vectors_of([{}] * len(texts)), lambda: iter(texts))


def pairs_of(matcher, texts):
    return by_rows(matcher(corpus(texts)))


def symbols(text):
    return np.frombuffer(text.encode(), np.uint8).astype(np.uint64)


def similarity(a, b, matcher):
    """Return the r of two pages of token hashes, the longer one first, or 0 if it is below the matcher's tau."""
    if min(len(a), len(b)) == 0:
        return 0.0
    none = np.empty(0, np.int64)
    indptr = np.cumsum([0, len(a), len(b)])
    pages = Pages(np.concatenate([a, b]), indptr, none, none, none, none)
    return max(matcher.compare(pages, np.zeros(2, np.int64)).similarity.tolist(), default=0.0)


# Myers' algorithm


def longest_common_subsequence(a, b, limit=None):
    """Return the positions of equal symbols of a longest common subsequence, or None if D exceeds the limit."""
    partner, reach = np.empty(len(a), np.int64), np.empty((2, len(a) + len(b) + 5), np.int64)
    if align(a, b, len(a) + len(b) if limit is None else limit, partner, reach) < 0:
        return None
    positions = np.flatnonzero(partner >= 0)
    return positions, partner[positions]


sequences = st.lists(st.integers(0, 5), max_size=25).map(lambda x: np.array(x, dtype=np.uint64))


@quick
@given(sequences, sequences)
def test_lcs_equals_the_textbook_dynamic_programme(a, b):
    x, y = longest_common_subsequence(a, b)
    assert len(x) == naive.lcs_length(a.tolist(), b.tolist())
    assert (a[x] == b[y]).all()
    assert (np.diff(x) > 0).all()
    assert (np.diff(y) > 0).all()


@quick
@given(sequences, sequences, st.integers(0, 50))
def test_lcs_is_given_up_exactly_beyond_the_limit(a, b, limit):
    differences = len(a) + len(b) - 2 * naive.lcs_length(a.tolist(), b.tolist())
    assert (longest_common_subsequence(a, b, limit) is None) == (differences > limit)


def test_lcs_of_long_sequences():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 400, 1500).astype(np.uint64)
    for edits in (0, 10, 300, 1500):
        b = np.delete(a, rng.choice(1500, edits // 3, replace=False))
        b[rng.choice(len(b), edits // 2, replace=False)] = 1000
        x, _ = longest_common_subsequence(a, b)
        assert len(x) == lcs_length_by_rows(a, b)


def lcs_length_by_rows(a, b):
    """Return the length of the LCS by rows as arrays, for lengths that the textbook form is too slow for."""
    row = np.zeros(len(b) + 1, dtype=np.int64)
    for x in a:
        row[1:] = np.maximum.accumulate(np.maximum(row[1:], (row[:-1] + 1) * (b == x)))
    return row[-1]


def test_lcs_of_the_slides():
    a, b = symbols("abcabba"), symbols("cbabac")
    x, _ = longest_common_subsequence(a, b)
    assert len(x) == 4
    assert similarity(a, b, Lcs(tau=0.1, sketch=0, trust=False)) == 4 / (7 + 6 - 4)
    assert similarity(a, b, Lcs(tau=0.1, sketch=1, trust=False)) == 4 / (7 + 6 - 4)
    assert similarity(a, b, Lcs(tau=4 / 9, sketch=0, trust=False)) == 4 / 9
    assert similarity(a, b, Lcs(tau=0.445, sketch=0, trust=False)) == 0


# Stage one


def test_sentences():
    text = 'The U.N. met. "It is 3.14!" he said…  Really?!\nNo end'
    assert sentences(text) == ["the u.n", "met", '"it is 3.14', '" he said', "really?", "no end"]
    assert sentences("你好。今天天气很好！是吗？ 好") == ["你好", "今天天气很好", "是吗", "好"]
    assert sentences(" ... !!! \n") == []


words = st.sampled_from(["a", "bb", "c", "d", "e", "f"])
sentence = st.lists(words, min_size=1, max_size=5).map(lambda ws: " ".join(ws) + ". ")
pages_of_sentences = st.lists(st.lists(sentence, max_size=5).map("".join), max_size=9)


@quick
@given(st.lists(sentence, max_size=12), st.integers(1, 4), st.integers(1, 3))
def test_fingerprints_equal_naive(parts, buckets, smallest):
    text = "".join(parts)
    expected = naive.sentence_fingerprints([s[:-2] for s in parts], buckets, smallest)
    assert sentence_fingerprints(text, buckets, smallest) == expected


@quick
@given(pages_of_sentences, st.integers(2, 6))
def test_perhaps_similar_sets_equal_naive(texts, max_set):
    matcher = Lcs(buckets=2, smallest=1, max_set=max_set)
    pages = matcher.read(corpus(texts))
    labels = matcher.perhaps_similar(pages)
    order = [texts[pages.rows[start]] for start in pages.row_indptr[:-1]]
    expected = naive.perhaps_similar([sentence_fingerprints(t, 2, 1) for t in order], max_set)
    actual = {frozenset(np.flatnonzero(labels == s).tolist()) for s in set(labels.tolist())}
    assert actual == set(map(frozenset, expected))
    assert all(len(s) <= max_set for s in expected)


# Stages two and three


def naive_similarity(a, b, matcher):
    """Return the r of two pages, the longer one first, from their sketches; the alignment is Myers'."""
    places_a, places_b = naive.sketch(a, b, matcher.sketch), naive.sketch(b, a, matcher.sketch)
    kept_a, kept_b = [a[p] for p in places_a], [b[p] for p in places_b]
    if not matcher.trust:
        common = naive.lcs_length(kept_a, kept_b)
        return common / (len(a) + len(b) - common)
    x, y = longest_common_subsequence(*(hash_shingles(tokenize(" ".join(kept)), 1) for kept in (kept_a, kept_b)))
    matches = [(places_a[p], places_b[q]) for p, q in zip(x.tolist(), y.tolist(), strict=True)]
    return naive.trusted_similarity(matches, len(a), len(b), matcher.coherence, matcher.central)


def naive_pairs(texts, matcher):
    """Return the pairs of the whole method on a few pages: sets, order, representatives, members, exact duplicates."""
    tokens = [tokenize(text) for text in texts]
    key = [(-len(t), naive.hashlib.md5(t.buffer.tobytes()).digest()) for t in tokens]
    order = sorted({k for k in key if k[0]})
    first = [key.index(k) for k in order]
    similarities = {(i, j): 1.0 for i, j in combinations(range(len(texts)), 2) if key[i] == key[j] and key[i][0]}
    sets = [set(range(len(order)))]
    if matcher.divide:
        prints = [sentence_fingerprints(texts[r], matcher.buckets, matcher.smallest) for r in first]
        sets = naive.perhaps_similar(prints, matcher.max_set)
    for members in sets:
        free = sorted(members)
        while free:
            group = [free.pop(0)]
            for b in list(free):
                if naive_similarity(tokens[first[group[0]]].words, tokens[first[b]].words, matcher) >= matcher.tau:
                    group.append(b)
                    free.remove(b)
            linked = combinations(group, 2) if matcher.members else ((group[0], b) for b in group[1:])
            for a, b in linked:
                r = naive_similarity(tokens[first[a]].words, tokens[first[b]].words, matcher)
                for i, j in ((i, j) for i in range(len(texts)) for j in range(len(texts))):
                    if r >= matcher.tau and key[i] == order[a] and key[j] == order[b]:
                        similarities[min(i, j), max(i, j)] = r
    return similarities


matchers = st.builds(
    partial(Lcs, buckets=2, smallest=1),
    tau=st.sampled_from([0.2, 1 / 3, 0.5, 0.8, 1.0]),
    divide=st.booleans(),
    max_set=st.sampled_from([3, 100]),
    sketch=st.integers(0, 3),
    trust=st.booleans(),
    members=st.booleans(),
    coherence=st.sampled_from([0.5, 0.75]),  # exact in binary, so that equal scores are equal
    central=st.sampled_from([0.3, 0.5, 1.0]),
)


@quick
@given(pages_of_sentences, matchers)
def test_pairs_equal_naive(texts, matcher):
    assert pairs_of(matcher, texts) == naive_pairs(texts, matcher)


@quick
@given(pages_of_sentences, matchers, st.randoms(use_true_random=False))
def test_order_of_documents_and_threads_do_not_matter(texts, matcher, random):
    order = random.sample(range(len(texts)), len(texts))
    after = replace(matcher, threads=2)(corpus([texts[d] for d in order]))
    assert by_rows(after, order) == pairs_of(matcher, texts)


def text_of(*numbers):
    return " ".join(f"w{n}" for n in numbers) + ". "


def test_templates_do_not_hide_an_article_and_do_not_make_one():
    article, other = text_of(*range(300)), text_of(*range(1000, 1300))
    head, tail = text_of(*range(2000, 2150)), text_of(*range(3000, 3150))
    head2, tail2 = text_of(*range(4000, 4150)), text_of(*range(5000, 5150))
    texts = ["longest " + head + article + tail, head + other + tail, head2 + article + tail2]
    same_template, same_article = (0, 1), (0, 2)
    plain = pairs_of(Lcs(tau=0.3, divide=False, trust=False), texts)
    assert plain == {same_template: 300 / 901, same_article: 300 / 901}
    assert pairs_of(Lcs(tau=0.3, divide=False), texts) == {same_article: 300 / 301}


def test_pages_similar_to_a_representative_are_not_compared_again():
    # In the slides' order A B C D E F: C and D are similar to A, so B is compared with E and F only, and E with F.
    base = [text_of(*range(100 * k, 100 * k + 40)) for k in range(4)]
    a, c, d = base[0] + "x x1 x2 x3 x4", base[0] + "y y1 y2", base[0] + "z z1"
    b, e, f = base[1] + "u u1 u2 u3", base[2] + "v", base[3]
    matcher = Lcs(tau=0.5, divide=False, members=False, sketch=1, trust=False)
    pairs = matcher(corpus([a, b, c, d, e, f]))
    assert (pairs.i.tolist(), pairs.j.tolist()) == ([0, 0], [2, 3])
    assert pairs.counters["candidates"] == 5 + 2 + 1
    assert pairs.counters["comparisons"] == 2
    with_members = replace(matcher, members=True)(corpus([a, b, c, d, e, f]))
    assert (with_members.i.tolist(), with_members.j.tolist()) == ([0, 0, 2], [2, 3, 3])
    assert with_members.counters["candidates"] == 5 + 2 + 1 + 1


@pytest.mark.parametrize("texts", [[], ["one page"], ["", " ", "..."], ["", "alone"]])
def test_nothing_to_pair(texts):
    for matcher in (Lcs(), Lcs(divide=False, sketch=0, trust=False)):
        pairs = matcher(corpus(texts))
        assert (len(pairs), pairs.n) == (0, len(texts))


def test_texts_must_match_the_rows():
    with pytest.raises(InputError, match="3 rows but 1 texts"):
        Lcs()(Corpus(vectors_of([{}] * 3), lambda: iter(["one"])))
    with pytest.raises(InputError, match="reads the documents' text"):
        Lcs()(Corpus(vectors_of([{}] * 3)))


# other measures inside the sets


def hash_of(word):
    return int.from_bytes(word.encode()[:3])


def counted(texts):
    return Corpus(vectors_of([Counter(map(hash_of, tokenize(text).words)) for text in texts]), lambda: iter(texts))


def divergence_similarity(a, b):
    """One minus the mean Kullback-Leibler divergence to the mean distribution, term by term."""
    p, q = ({w: n / sum(page.values()) for w, n in page.items()} for page in (a, b))
    mean = {w: (p.get(w, 0) + q.get(w, 0)) / 2 for w in p | q}
    return 1 - sum(sum(d[w] * np.log2(d[w] / mean[w]) for w in d) for d in (p, q)) / 2


@quick
@given(st.lists(st.text("abcde", max_size=20).map(" ".join), min_size=2, max_size=8), st.sampled_from([0.1, 0.5, 0.9]))
def test_measures_inside_one_set_equal_their_definitions(texts, tau):
    pages = [tokenize(text).words for text in texts]
    counts = [Counter(map(hash_of, page)) for page in pages]
    wanted = {compare: {} for compare in SetComparison}
    cosines = multisets.cosine_pairs(counts, 1e-9)
    for i, j in combinations(range(len(texts)), 2):
        if not pages[i] or not pages[j]:
            continue
        size = len(pages[i]) + len(pages[j])
        wanted[SetComparison.edit][i, j] = 2 * naive.lcs_length(pages[i], pages[j]) / size
        wanted[SetComparison.divergence][i, j] = divergence_similarity(counts[i], counts[j])
        wanted[SetComparison.cosine][i, j] = 1.0 if pages[i] == pages[j] else cosines.get((i, j), 0.0)
    for compare, values in wanted.items():
        matcher = SetMeasure(tau=tau, compare=compare, threads=1)
        with patch.object(Lcs, "perhaps_similar", lambda self, pages: np.zeros(len(pages.indptr) - 1, np.int64)):
            pairs = matcher(counted(texts))
        actual = by_rows(pairs)
        for pair, value in values.items():
            if value > tau + 1e-9:
                assert actual[pair] == pytest.approx(value)
            elif value < tau - 1e-9:
                assert pair not in actual
        assert actual.keys() <= values.keys()


def test_only_pairs_inside_a_set_are_compared():
    texts = ["one two. three four. five six.", "one two. three four. six five.", "six five four three two one"]
    pairs = SetMeasure(tau=0.1, compare=SetComparison.edit)(counted(texts))
    assert list(by_rows(pairs)) == [(0, 1)]
    assert pairs.counters["candidates"] == 1
