from collections import Counter
from functools import partial

import numpy as np
import pytest
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from naive import extract as naive
from naive.extract import ROOT
from omegaconf import OmegaConf
from stores import InMemory
from strategies import examples, rows_of_signatures

from baselines.shingles import Shingles
from spotsigs.errors import InputError
from spotsigs.records import Document, Signatures, Skipped
from spotsigs.signatures.extract import concatenate, count_signatures, extract, extract_shard, read_texts, unique_ids
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.exact_duplicates import ExactDuplicates
from spotsigs.text.visible import VisibleText
from spotsigs.workers.engines import Serial


def page(name, html="<p>The cat sat on the mat and the dog is a friend of the cat.", **kwargs):
    return Document(id=name, content=html, **kwargs)


def assert_equal(a: Signatures, b: Signatures):
    assert (a.doc_ids, a.documents.clusters, a.skipped) == (b.doc_ids, b.documents.clusters, b.skipped)
    for name in ("indptr", "hashes", "counts"):
        assert getattr(a, name).dtype == getattr(b, name).dtype
        assert getattr(a, name).tolist() == getattr(b, name).tolist()


@examples(60)
@given(
    st.lists(st.lists(st.sampled_from(["the", "a", "cat", "dog", "<b>c</b>at", "<p>"]), max_size=25), max_size=7),
    st.integers(1, 4),
)
def test_pages_to_counts(pages, n_shards):
    documents = tuple(page(str(i), " ".join(words).encode()) for i, words in enumerate(pages))
    scheme = Shingles(k=2)
    signatures = extract(InMemory(documents, n_shards), VisibleText(), scheme, Serial())
    assert signatures.doc_ids == tuple(map(str, range(len(pages))))
    expected = [naive.counted(naive.shingles(naive.tokens(naive.visible_text(d.content)), 2)) for d in documents]
    rows = rows_of_signatures(signatures)
    assert rows == expected
    assert all(list(row) == sorted(row) for row in rows)
    types = (signatures.indptr.dtype, signatures.hashes.dtype, signatures.counts.dtype)
    assert types == (np.int64, np.uint64, np.int32)


def fail_on_bad(document):
    if "bad" in document.id:
        raise ZeroDivisionError("no such page")
    if "worse" in document.id:
        raise InputError("this page is empty")
    return str(document.content)


class FailingScheme(SpotSignatures):
    def __call__(self, tokens):
        if "boom" in tokens.words:
            raise MemoryError
        return super().__call__(tokens)


def test_a_failing_document_is_skipped():
    records = (page("a"), page("bad"), Skipped("x.warc", "truncated"), page("worse"), page("b", "boom"), page("c"))
    signatures = extract_shard(partial(iter, records), fail_on_bad, FailingScheme())
    assert signatures.doc_ids == ("a", "c")
    assert signatures.skipped == (
        Skipped("bad", "ZeroDivisionError: no such page"),
        Skipped("x.warc", "truncated"),
        Skipped("worse", "this page is empty"),
        Skipped("b", "MemoryError: "),
    )
    skipped = [isinstance(record, Skipped) for record in read_texts(partial(iter, records), fail_on_bad)]
    assert skipped == [False, True, True, True, False, False]


@pytest.mark.parametrize("n_shards", [0, 1, 3])
def test_empty_collections(n_shards):
    signatures = extract(InMemory((), n_shards), VisibleText(), SpotSignatures(), Serial())
    assert_equal(signatures, concatenate([]))
    assert signatures.indptr.tolist() == [0]


def test_a_wrong_scheme_is_an_error_and_not_every_documents():
    with pytest.raises(InputError, match="not one token"):
        extract(InMemory((page("a"),)), VisibleText(), SpotSignatures(antecedents=["don't"]), Serial())


def test_repeated_ids():
    assert unique_ids(["a", "b", "a", "a#2", "a", "a#2"]) == ("a", "b", "a#3", "a#2", "a#4", "a#2#2")
    assert unique_ids(["a", "b"]) == ("a", "b")
    signatures = extract(InMemory((page("a"),) * 3, 3), VisibleText(), SpotSignatures(), Serial())
    assert signatures.doc_ids == ("a", "a#2", "a#3")


@examples(100)
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 4), max_size=60))
def test_counts(values):
    hashes = np.array(values, np.uint64)
    distinct, counts = count_signatures(hashes)
    assert list(zip(distinct.tolist(), counts.tolist(), strict=True)) == sorted(Counter(values).items())
    assert hashes.tolist() == values


def test_many_batches():
    batch = extract_shard(partial(iter, [page("a"), page("b")]), VisibleText(), Shingles(k=1))
    assert rows_of_signatures(concatenate(iter([batch] * 500))) == rows_of_signatures(batch) * 500


@pytest.mark.parametrize("path", sorted((ROOT / "conf/text").glob("*.yaml")), ids=lambda path: path.stem)
def test_text_configurations(path):
    text = instantiate(OmegaConf.load(path))
    assert text(Document(id="", content="a b", media_type="text/plain")) == "a b"


@pytest.mark.parametrize(
    ("words", "hidden", "media_type", "compared"),
    [
        (8, "<noscript>{}</noscript>", "text/html", False),
        (8, "<img alt='{}'>", "text/html", False),
        (0, "<frameset><noframes>{}</noframes></frameset>", "text/html", False),
        (8, "", "text/html", True),
        (12, "<script>{}</script>", "text/html", True),
        (8, "{}", "text/plain", True),
    ],
)
def test_pages_that_show_hardly_a_word_are_not_compared(words, hidden, media_type, compared):
    shown = " ".join(["is the page"] * words).split()[:words]
    pages = [
        Document(id=str(k), content=" ".join(shown) + hidden.format(f"a secret {k} " * 100), media_type=media_type)
        for k in (1, 2, 2)
    ]
    signatures = extract_shard(lambda: iter(pages), VisibleText(), SpotSignatures(d=1, c=2))
    assert (np.diff(signatures.indptr) > 0).tolist() == 3 * [compared]
    representatives = ExactDuplicates.among(signatures).representatives.tolist()
    assert representatives[1:] == [2, 2]
    assert (representatives[0] == 2) == (compared and media_type == "text/html")
