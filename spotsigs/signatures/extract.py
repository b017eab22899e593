"""From collections to signatures: shard by shard, counted per document, without storing any text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Collection as SizedIterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts, take_rows
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.parallel import concatenated
from spotsigs.contracts import Collection, CollectionScheme, MarkedText, Shard, SignatureScheme
from spotsigs.errors import InputError, counted, option, require
from spotsigs.records import Document, DocumentColumns, Phrases, Signatures, Skipped, Tokens, WordGrams
from spotsigs.signatures.contained import phrases_of
from spotsigs.signatures.languages import language_codes
from spotsigs.signatures.sections import sections_of
from spotsigs.signatures.sites import site_of, sites_of
from spotsigs.storage.exact_duplicates import ExactDuplicates, Sameness
from spotsigs.storage.tasks import in_caller, run_tasks
from spotsigs.text.checksums import checksums
from spotsigs.text.hashing import hash_sentences, hash_shingles
from spotsigs.text.tokens import tokenize, tokenize_marked, unmarked
from spotsigs.workers.engines import Engine

GRAM_WORDS = 5
"""Words of a gram of `WordGrams`."""

GRAM_BITS = 4
"""Most zero bits with which the hashes of a sample of grams begin."""

SHELL_WORDS, SHELL_BYTES = 10, 512
"""A page of HTML with fewer words in more bytes is a shell: what it shows is not in its text."""

TextExtractor = Callable[[Document], str]
"""Function from a document to its text, for example `spotsigs.text.visible.VisibleText`."""


@kernel
def _count_runs(ascending: NDArray[np.uint64], counts: NDArray[np.int32]) -> int:
    """Move the distinct values of a sorted array to its front and count each; return how many there are."""
    n = 0
    for k in range(len(ascending)):
        if n > 0 and ascending[k] == ascending[n - 1]:
            counts[n - 1] += 1
        else:
            ascending[n] = ascending[k]
            counts[n] = 1
            n += 1
    return n


def read_texts(shard: Shard, text: TextExtractor) -> Iterator[tuple[Document, str] | Skipped]:
    """Yield a shard's documents with their texts, in order; a document without one is skipped with the reason."""
    for record in shard():
        if isinstance(record, Skipped):
            yield record
            continue
        try:
            content = text(record)
        except Exception as error:  # noqa: BLE001 - one bad page must not end a crawl; the reason is reported
            yield _skipped(record, error)
        else:
            yield record, content


def texts_for(scheme: SignatureScheme, text: TextExtractor) -> TextExtractor:
    """Return the extractor of a scheme's texts, which marks links and blocks if the scheme uses them."""
    return text.marked if scheme.marked and isinstance(text, MarkedText) else text


class _Row(NamedTuple):
    """Document without its content, and its distinct signatures with their counts, or its outline."""

    id: str
    cluster: str | None
    date: str | None
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int32]
    digests: NDArray[np.uint64]
    grams: NDArray[np.uint64]
    phrases: NDArray[np.uint64]
    tokens: int
    language: str | None


CountedText = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.uint64]]
"""Hashes and counts of signatures, or an outline, and the entries of `Phrases`."""


def _counter(scheme: SignatureScheme, phrases: bool) -> Callable[[Tokens, str], CountedText]:
    """Return the function from tokens and a document's id to its signatures, and, if wanted, to its phrases."""
    none = np.empty(0, np.uint64)

    def count_outline(tokens: Tokens, name: str) -> CountedText:
        assert isinstance(scheme, CollectionScheme)
        if not phrases:
            return *scheme.outline(tokens, site_of(name)), none
        located = scheme.located_in_outline(tokens)
        return *scheme.outline(tokens, site_of(name), located), phrases_of(*located, tokens)

    def count_text(tokens: Tokens, name: str) -> CountedText:
        if not phrases:
            return *count_signatures(scheme(tokens)), none
        located = scheme.located(tokens)
        return *count_signatures(located[0]), phrases_of(*located, tokens)

    return count_outline if isinstance(scheme, CollectionScheme) else count_text


def cutter(scheme: SignatureScheme) -> Callable[[str], Tokens]:
    """Return the function from the texts of `texts_for` to tokens."""
    return tokenize_marked if scheme.marked else tokenize


def is_shell(document: Document, words: int) -> bool:
    """Return whether scripts, pictures or frames show what a page contains, by the number of its visible words.

    Such pages have the same few words, as in *Loading, please wait*, and different contents. They have no signatures,
    and only equal content makes them exact duplicates.
    """
    is_text = document.media_type.lower().startswith("text/plain")
    return not is_text and words < SHELL_WORDS and len(document.content) > SHELL_BYTES


def _rows(
    shard: Shard, text: TextExtractor, scheme: SignatureScheme, *, grams: bool = False, phrases: bool = False
) -> Iterator[_Row | Skipped]:
    count, cut, none = _counter(scheme, phrases), cutter(scheme), np.empty(0, np.uint64)
    for record in read_texts(shard, texts_for(scheme, text)):
        if isinstance(record, Skipped):
            yield record
            continue
        document, content = record
        try:
            tokens = cut(content)
            if is_shell(document, len(tokens)):
                tokens, content = cut(""), ""
            hashes, counts, of_signatures = count(tokens, document.id)
            language = scheme.language_of(tokens) if len(hashes) else None
            digests = checksums(document, unmarked(content))
            of_words = _grams(tokens) if grams else none
        except Exception as error:  # noqa: BLE001 - as above
            yield _skipped(document, error)
        else:
            n = len(tokens)
            named = document.id, document.cluster, document.date
            yield _Row(*named, hashes, counts, digests, of_words, of_signatures, n, language)


def _skipped(document: Document, error: Exception) -> Skipped:
    return Skipped(document.id, str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}")


def strict_error(first: Skipped) -> InputError:
    """Return the error of a strict run for its first record that cannot be read."""
    return InputError(f"{first.id}: {first.reason} ({option('strict', 'true')} stops at the first)")


def require_pages(collection: Collection, documents: int, skipped: SizedIterable[Skipped]) -> None:
    """Refuse a collection without a page, unless it is empty."""
    if documents or (rest := collection.without_pages(skipped)) is None:
        return
    first, path = next(iter(skipped), None), getattr(collection, "path", "the input")
    listed = f"{counted(len(skipped), 'record')} skipped, the first {first.id}: {first.reason}; " if first else ""
    raise InputError(f"no page was read from {path}: {listed}{rest}")


def extract_shard(
    shard: Shard,
    text: TextExtractor,
    scheme: SignatureScheme,
    *,
    strict: bool = False,
    grams: int = 0,
    phrases: bool = False,
) -> Signatures:
    """Extract and count the signatures of every document of a shard; if `strict`, to the first unreadable record.

    The result has one row per document, in order; a document that raises an exception is in ``skipped`` instead. The
    rows of a `CollectionScheme` are outlines, for its ``refine``.
    """
    [signatures] = extract_parts(shard, text, scheme, strict=strict, grams=grams, phrases=phrases)
    return signatures


def extract_parts(
    shard: Shard,
    text: TextExtractor,
    scheme: SignatureScheme,
    *,
    strict: bool = False,
    most: int = sys.maxsize,
    grams: int = 0,
    phrases: bool = False,
) -> Iterator[Signatures]:
    """Extract a shard as `extract_shard` does, in parts, at least one, that end after `most` bytes.

    The parts have the word 5-grams of their texts, or a sample of about `grams` at most, though not less than the
    sample of `GRAM_BITS`; none if `grams` is 0. If requested, they have the `Phrases` of their texts.
    """
    rows: list[_Row] = []
    skipped: list[Skipped] = []
    size, sample = 0, _GramSample(grams)
    for record in _rows(shard, text, scheme, grams=grams > 0, phrases=phrases):
        if size > most:
            yield _signatures(rows, skipped, sample, phrases)
            rows, skipped, size = [], [], 0
        size += _BYTES_A_RECORD + len(record.id)
        if isinstance(record, Skipped):
            skipped.append(record)
            size += len(record.reason)
            if strict:
                break
        else:
            rows.append(record)
            size += record.hashes.nbytes + record.counts.nbytes + record.grams.nbytes + record.phrases.nbytes
    yield _signatures(rows, skipped, sample, phrases)


class _GramSample:
    """Word 5-grams of the parts of a shard: all, or one in 2 to 16 by hash once there are more than `most`."""

    def __init__(self, most: int) -> None:
        self.most, self.size, self.bits = most, 0, 0

    def of(self, rows: Sequence[_Row]) -> WordGrams | None:
        if not self.most:
            return None
        [hashes] = concatenated([(row.grams,) for row in rows], (np.uint64,))
        grams = WordGrams(row_starts([len(row.grams) for row in rows]), hashes).drawn(self.bits)
        while self.size + len(grams.hashes) > self.most and self.bits < GRAM_BITS:
            self.bits, self.size = self.bits + 1, self.size // 2
            grams = grams.drawn(self.bits)
        self.size += len(grams.hashes)
        return grams


_BYTES_A_RECORD = 500  # of names and numbers, without signatures
_LEAST_GRAMS = 1 << 14  # of a shard, so that one that is larger than the others is not sampled for that alone
_DTYPES = (np.uint64, np.int32, np.uint64)  # of hashes, counts and checksums


def _signatures(rows: Sequence[_Row], skipped: Sequence[Skipped], sample: _GramSample, phrases: bool) -> Signatures:
    hashes, counts, digests = concatenated([(row.hashes, row.counts, row.digests) for row in rows], _DTYPES)
    [entries] = concatenated([(row.phrases,) for row in rows], (np.uint64,))
    documents = DocumentColumns(
        tuple(row.id for row in rows),
        tuple(row.cluster for row in rows),
        tuple(row.date for row in rows),
        digests.reshape(-1, 4),
        np.array([row.tokens for row in rows], np.int32),
        languages=language_codes(row.language for row in rows),
    )
    return Signatures(
        documents,
        row_starts([len(row.hashes) for row in rows]),
        hashes,
        counts,
        tuple(skipped),
        grams=sample.of(rows),
        phrases=Phrases(row_starts([len(row.phrases) for row in rows]), entries) if phrases else None,
    )


def _grams(tokens: Tokens) -> NDArray[np.uint64]:
    """Return the distinct hashes of the word 5-grams and sentences of a text, ascending."""
    return count_signatures(WordGrams.mixed(hash_shingles(tokens, GRAM_WORDS), hash_sentences(tokens)))[0]


def grams_of(texts: Iterable[str], cut: Callable[[str], Tokens] = tokenize) -> Iterator[WordGrams]:
    """Yield the word 5-grams and sentences of each text; one that cannot be cut has none, and no signatures either."""
    for text in texts:
        try:
            hashes = _grams(cut(text))
        except InputError:
            continue
        yield WordGrams(row_starts([len(hashes)]), hashes)


def texts(collection: Collection, text: TextExtractor) -> Iterator[str]:
    """Yield the text of every readable document of a collection, which is read again, in the row order of `extract`."""
    for shard in collection.shards():
        for record in read_texts(shard, text):
            if not isinstance(record, Skipped):
                yield record[1]


def is_readable(document: Document, text: TextExtractor, scheme: SignatureScheme) -> bool:
    """Whether a document has signatures; otherwise `extract` skips it."""
    return not isinstance(next(_rows(lambda: iter((document,)), text, scheme)), Skipped)


def count_signatures(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return the distinct hashes of a document's signatures, ascending, and the occurrences of each, int32."""
    distinct, counts = np.sort(hashes), np.empty(len(hashes), np.int32)
    n = _count_runs(distinct, counts)
    return distinct[:n], counts[:n]


def concatenate(batches: Iterable[Signatures]) -> Signatures:
    """Concatenate batches of documents."""
    parts = list(batches)
    columns = [part.documents for part in parts]
    hashes, counts, digests = concatenated(
        [(part.hashes, part.counts, part.documents.digests.reshape(-1)) for part in parts], _DTYPES
    )
    documents = DocumentColumns(
        tuple(chain.from_iterable(part.ids for part in columns)),
        tuple(chain.from_iterable(part.clusters for part in columns)),
        tuple(chain.from_iterable(part.dates for part in columns)),
        digests.reshape(-1, 4),
        np.concatenate([np.empty(0, np.int32), *(part.tokens for part in columns)]),
        languages=np.concatenate([np.empty(0, np.uint16), *(part.languages for part in columns)]),
    )
    return Signatures(
        documents,
        row_starts(np.concatenate([np.empty(0, np.int64), *(np.diff(part.indptr) for part in parts)])),
        hashes,
        counts,
        tuple(chain.from_iterable(part.skipped for part in parts)),
        grams=_concatenated_grams([part.grams for part in parts if part.grams is not None]),
        phrases=_concatenated_phrases([part.phrases for part in parts if part.phrases is not None]),
    )


def _concatenated_grams(parts: Sequence[WordGrams]) -> WordGrams | None:
    """Concatenate word 5-grams, all sampled as the part with the smallest sample; None without a part."""
    if not parts:
        return None
    bits = max(part.bits for part in parts)
    parts = [part.drawn(bits) for part in parts]
    sizes = [np.diff(part.indptr) for part in parts]
    [hashes] = concatenated([(part.hashes,) for part in parts], (np.uint64,))
    return WordGrams(row_starts(np.concatenate(sizes)), hashes, bits)


def _concatenated_phrases(parts: Sequence[Phrases]) -> Phrases | None:
    """Concatenate phrases; None without a part."""
    if not parts:
        return None
    sizes = [np.diff(part.indptr) for part in parts]
    return Phrases(row_starts(np.concatenate(sizes)), np.concatenate([part.entries for part in parts]))


def unique_ids(ids: Sequence[str]) -> tuple[str, ...]:
    """Append ``#2``, ``#3``, … to repeated ids but the first, so that all are different."""
    return tuple(ids if len(set(ids)) == len(ids) else unique_names(lambda: iter(ids)))


def unique_names(names: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Yield the names of `unique_ids`, with a hash of each in memory; each call of `names` iterates over all."""
    hashes = np.fromiter(map(name_hash, names()), np.uint64)
    ordered = np.sort(hashes)
    repeated = set(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]).tolist())

    def taken(name: str) -> bool:
        position = int(np.searchsorted(ordered, np.uint64(name_hash(name))))
        return position < len(ordered) and bool(ordered[position] == name_hash(name))

    seen: dict[str, int] = {}
    given: set[str] = set()
    for name in names():
        if not repeated or name_hash(name) not in repeated:
            yield name
            continue
        number = seen[name] = seen.get(name, 0) + 1
        new = name
        while number > 1 and ((new := f"{name}#{number}") in given or taken(new)):
            number = seen[name] = number + 1
        given.add(new)
        yield new


def name_hash(name: str) -> int:
    """Return the XXH64 of a document's id."""
    return xxhash.xxh64_intdigest(name.encode("utf-8", "surrogatepass"))


def extract(
    collection: Collection,
    text: TextExtractor,
    scheme: SignatureScheme,
    engine: Engine,
    *,
    strict: bool = False,
    sameness: Sameness = Sameness.off,
    grams: int = 0,
    phrases: bool = False,
) -> Signatures:
    """Extract and count the signatures of every document of a collection.

    Parameters
    ----------
    collection : Collection
        Documents; its shards are the tasks.
    text, scheme
        Functions from a document to its text, and from tokens to signatures.
    engine : Engine
        Maps over the shards; the result does not depend on it.
    strict : bool
        Stop at the first record that cannot be read.
    sameness : Sameness
        Criterion for exact duplicates, of which a `CollectionScheme` compares one; the other rows become empty.
    grams : int
        The result has the word 5-grams of the texts, or a sample of about so many at most, though not less than the
        sample of `GRAM_BITS`; 0 for none.
    phrases : bool
        The result has the `Phrases` of the texts.

    Returns
    -------
    Signatures
        One row per document, in the collection's order. The ids of a reference, and the ids of other documents, are
        made unique by `unique_ids`.

    Raises
    ------
    InputError
        If the scheme's parameters are wrong, no document can be read, or, with `strict`, a record cannot be read.
    """
    # One page first: a bad parameter is an error, not a skipped document, and workers load compiled kernels.
    trial = Document(id="the first page", content=b"<p>the one")
    _counter(scheme, phrases)(cutter(scheme)(texts_for(scheme, text)(trial)), trial.id)
    shards = collection.shards()
    batches = []
    sampled = grams_a_shard(grams, len(shards))
    task = partial(extract_shard, text=text, scheme=scheme, strict=strict, grams=sampled, phrases=phrases)
    with closing(run_tasks(engine, task, shards, "reading", "shards", arrays=True, rows=len)) as parts:
        for batch in parts:
            if strict and batch.skipped:
                raise strict_error(batch.skipped[0])
            batches.append(batch)
    first = collection.reference_shards
    signatures = concatenate([*map(_of_reference, batches[:first]), *batches[first:]])
    n_reference = sum(map(len, batches[:first]))
    require_reference(n_reference, first)
    skipped = list(chain.from_iterable(batch.skipped for batch in batches[first:]))
    require_pages(collection, len(signatures) - n_reference, skipped)
    names = signatures.doc_ids
    if isinstance(scheme, CollectionScheme):
        documents = replace(signatures.documents, sections=sections_of(names, signatures))
        signatures = replace(signatures, documents=documents)
        with in_caller("templates", len(signatures)):
            signatures = _refined(scheme, signatures, sites_of(names), sameness)
    ids = unique_ids(names[:n_reference]) + unique_ids(names[n_reference:])
    return replace(signatures, documents=replace(signatures.documents, ids=ids), n_reference=n_reference)


def _refined(
    scheme: CollectionScheme, outlines: Signatures, sites: NDArray[np.uint64], sameness: Sameness
) -> Signatures:
    """Return the signatures of outlines; a representative has the signatures of the first of its exact duplicates."""
    exact_duplicates = ExactDuplicates.among(outlines, sameness)
    refined = scheme.refine(outlines.keep_rows(exact_duplicates.first_on_site(sites)))
    if not exact_duplicates.any:
        return refined
    distinct, first = exact_duplicates.distinct, exact_duplicates.first
    _, entries = take_rows(refined.indptr, first[distinct])
    return replace(
        refined,
        indptr=row_starts(np.where(distinct, np.diff(refined.indptr)[first], 0)),
        hashes=refined.hashes[entries],
        counts=refined.counts[entries],
    )


def grams_a_shard(grams: int, shards: int) -> int:
    """Return how many word 5-grams each shard may have if all together may have about so many."""
    return max(grams // max(shards, 1), min(grams, _LEAST_GRAMS))


def _of_reference(batch: Signatures) -> Signatures:
    """Return documents of a reference, whose skipped records are known as such."""
    return replace(batch, skipped=tuple(replace(record, of_reference=True) for record in batch.skipped))


def require_reference(documents: int, parts: int) -> None:
    """Refuse a reference in some parts without a readable document, with which every page would be kept."""
    require(documents > 0 or not parts, "the reference has no readable document; give another one")
