"""The contract of every matcher and signature scheme, as checks that any package can call on its own methods."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence

import numpy as np
import xxhash

from spotsigs.contracts import Matcher, SignatureScheme
from spotsigs.matching.brute_force import BruteForce
from spotsigs.options import TAU
from spotsigs.records import Corpus, DocumentColumns, Pairs, Signatures, Tokens
from spotsigs.signatures.idf import IdfFilter
from spotsigs.text.tokens import tokenize

TEXTS = (
    "",
    "word",
    "It is said that the council has approved the plan for a new bridge that will be built by the end of the year.",
    "Don't you think it is time? 東京は大きい。 สวัสดี ünïcödé İstanbul ΟΔΟΣ 12½ x² the",
    "the " * 50,
)
"""Texts that every signature scheme must read: empty, short, prose, several scripts, stopwords alone."""

DEGENERATE: tuple[list[str], ...] = ([], ["one page here."], ["", "", ""], ["two pages here.", ""])
"""Collections without a pair."""


def check_matcher(matcher: Matcher, *, any_order: bool = True) -> None:
    """Check that a matcher keeps its contract on small generated collections.

    The pairs are ordered, unique and repeatable; they depend neither on threads nor, with `any_order`, on the order of
    documents; identical documents are found; collections without pairs return none. An exact or verified matcher of
    Jaccard similarity is compared with `BruteForce`.

    Raises
    ------
    AssertionError
        If it breaks a part of the contract; the message names the part.
    """
    label = matcher.label
    assert label, "a matcher has a label"
    assert isinstance(matcher.exact, bool), "exact is True or False"
    assert isinstance(matcher.verified, bool), "verified is True or False"
    assert matcher.measure, f"{label}: a matcher names its measure"
    named = matcher.verified or "unverified" in label
    assert named, f"{label}: the label of a matcher that does not compute similarities says unverified"
    pickle.loads(pickle.dumps(matcher))
    for seed in (1, 2):
        _check_order(matcher, corpus_of(news(seed)))
    _check_independence(matcher, any_order)
    if matcher.measure == "jaccard" and matcher.verified:
        corpus = corpus_of(news(5))
        tau = TAU if matcher.threshold is None else matcher.threshold
        wanted, computed = by_document(BruteForce(tau=tau)(corpus)), by_document(matcher(corpus))
        assert computed.items() <= wanted.items(), f"{label}: a pair or similarity differs from brute force"
        assert not matcher.exact or computed == wanted, f"{label}: exact, but pairs of brute force are missing"
    for few in DEGENERATE:
        pairs = matcher(corpus_of(few))
        assert (len(pairs), pairs.n) == (0, len(few)), f"{label}: pairs in a collection without any"
    _check_duplicates(matcher, any_order)


def _check_independence(matcher: Matcher, any_order: bool) -> None:
    """Check that the pairs depend neither on the order of documents nor on threads."""
    texts = news(3)
    order = np.random.default_rng(0).permutation(len(texts)).tolist()
    permuted = by_document(matcher(corpus_of(texts, order)), order)
    known = not any_order or by_document(matcher(corpus_of(texts))) == permuted
    assert known, f"{matcher.label}: the order of documents changes the pairs"
    corpus = corpus_of(news(4))
    one, three = (matcher.with_threads(threads)(corpus) for threads in (1, 3))
    assert by_document(one) == by_document(three), f"{matcher.label}: the pairs depend on the number of threads"


def _check_duplicates(matcher: Matcher, any_order: bool) -> None:
    """Check that identical documents are found."""
    same = ["the same sentence is here. and then another one follows it."] * 5
    same += [f"page{x} number{x} is{x} all{x} alone{x} here{x}." for x in range(20)]
    identical = {(a, b) for a in range(5) for b in range(a + 1, 5)}
    listed = by_document(matcher(corpus_of(same))).keys()
    complete = {document for pair in listed & identical for document in pair} == set(range(5))
    assert complete, f"{matcher.label}: identical documents are not found"
    assert not any_order or identical <= listed, f"{matcher.label}: pairs of identical documents are missing"


def check_signature_scheme(scheme: SignatureScheme) -> None:
    """Check that a signature scheme keeps its contract.

    Each signature is the XXH64 of its readable form, in text order; a copy in another process returns the same;
    prose has signatures. If the scheme locates them, `located` has the same hashes and ascending tokens, at or before
    the beginnings of `chains`.

    Raises
    ------
    AssertionError
        If it breaks a part of the contract; the message names the part.
    """
    assert scheme.label, "a signature scheme has a label"
    copy = pickle.loads(pickle.dumps(scheme))
    for text in TEXTS:
        tokens = tokenize(text)
        hashes = scheme(tokens).tolist()
        readable = [xxhash.xxh64_intdigest(signature.encode()) for signature in scheme.readable(text)]
        assert hashes == readable, f"{scheme.label}: the hashes of {text!r} are not the hashes of its readable form"
        assert copy(tokens).tolist() == hashes, f"{scheme.label}: a pickled copy returns other signatures"
        _check_positions(scheme, tokens, hashes)
    assert len(scheme(tokenize(TEXTS[2]))) > 0, f"{scheme.label}: prose has no signatures"


def _check_positions(scheme: SignatureScheme, tokens: Tokens, computed: list[int]) -> None:
    """Check `located` and `chains` of a scheme that has them."""
    chains = scheme.chains(tokens)
    if chains is None and type(scheme).located is SignatureScheme.located:
        return
    hashes, firsts = scheme.located(tokens)
    assert hashes.tolist() == computed, f"{scheme.label}: located returns other signatures"
    assert len(firsts) == len(hashes), f"{scheme.label}: located returns {len(firsts)} tokens for {len(hashes)} hashes"
    known = np.all(np.diff(firsts, prepend=0, append=max(len(tokens) - 1, 0)) >= 0)
    assert known, f"{scheme.label}: the first tokens do not ascend, or are no tokens of the text"
    early = [chain[0] < first for chain, first in zip(chains or (), firsts.tolist(), strict=False)]
    assert not any(early), f"{scheme.label}: a chain begins before the token of located"


def news(seed: int, n: int = 60) -> list[str]:
    """Return generated texts of which half are edited copies of earlier ones, some exact, the last empty."""
    rng = np.random.default_rng(seed)
    words = [f"word{w}" for w in range(80)]
    texts: list[str] = []
    for _ in range(n - 1):
        if texts and rng.random() < 0.5:
            copy = texts[rng.integers(len(texts))].split(" ")
            for _ in range(rng.integers(0, 5)):
                copy[rng.integers(len(copy))] = words[rng.integers(80)]
            texts.append(" ".join(copy))
        else:
            sentences = [" ".join(rng.choice(words, rng.integers(3, 8))) + "." for _ in range(rng.integers(1, 9))]
            texts.append(" ".join(sentences))
    return [*texts, ""]


def corpus_of(texts: Sequence[str], order: Sequence[int] | None = None) -> Corpus:
    """Return the corpus of single tokens of the texts, in the given order of rows."""
    rows = range(len(texts)) if order is None else order
    chosen = [texts[row] for row in rows]
    counts = [Counter(xxhash.xxh64_intdigest(word.encode()) for word in tokenize(text).words) for text in chosen]
    signatures = Signatures(
        DocumentColumns(tuple(map(str, rows))),
        np.cumsum([0, *map(len, counts)]),
        np.array([key for row in counts for key in sorted(row)], np.uint64),
        np.array([row[key] for row in counts for key in sorted(row)], np.int32),
    )
    return Corpus(IdfFilter(idf_min=0)(signatures), lambda: iter(chosen))


def by_document(pairs: Pairs, order: Sequence[int] | None = None) -> dict[tuple[int, int], str]:
    """Return similarities as text by pair of documents, for any order of rows; NaN equals NaN as text."""
    documents = np.arange(pairs.n) if order is None else np.asarray(order)
    ends = np.sort(np.stack([documents[pairs.i], documents[pairs.j]], axis=1), axis=1)
    return {(a, b): repr(value) for (a, b), value in zip(ends.tolist(), pairs.similarity.tolist(), strict=True)}


def _check_order(matcher: Matcher, corpus: Corpus) -> None:
    pairs = matcher(corpus)
    assert len(pairs) > 0, f"{matcher.label}: no pair among edited copies"
    assert np.all(pairs.i < pairs.j), f"{matcher.label}: a pair has i >= j"
    keys = pairs.i.astype(np.int64) * pairs.n + pairs.j
    assert np.all(np.diff(keys) > 0), f"{matcher.label}: the pairs are not sorted by (i, j), or repeat"
    known = pairs.similarity[~np.isnan(pairs.similarity)]
    assert np.all((known >= 0) & (known <= 1)), f"{matcher.label}: a similarity is outside of [0, 1]"
    assert {"sort_hash", "cluster"} <= pairs.seconds.keys(), f"{matcher.label}: seconds lacks sort_hash or cluster"
    assert by_document(pairs) == by_document(matcher(corpus)), f"{matcher.label}: a second call returns other pairs"
