"""Frozen records that stages take and return.

documents -> tokens -> signatures -> vectors (IDF filter) -> pairs -> clusters -> metrics
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.checks import require_array, require_between, require_iterable
from spotsigs.arrays.csr import (
    INT32_MAX,
    as_array,
    normalise_csr,
    require_csr,
    require_rows,
    row_starts,
    row_sums,
    take_rows,
)
from spotsigs.arrays.row_blocks import spans, tally
from spotsigs.errors import InputError, as_count, as_number, counted, require, shown

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]
PairArrays = tuple[IntArray, IntArray, FloatArray]
"""Pairs as first rows, second rows and similarities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One page of the input.

    Attributes
    ----------
    id : str
        Relative path, the jsonl ``id``, or the WARC target URI.
    content : bytes or str
        HTML or plain text; bytes are decoded by the declared or detected encoding.
    media_type : str
        ``text/html``, a type of XHTML, or ``text/plain``; any other type is read as HTML.
    charset : str, optional
        Encoding declared outside the content, for example in an HTTP header.
    cluster : str, optional
        Truth label: documents of one cluster are duplicates.
    date : str, optional
        ISO 8601 capture time, for ``keep=newest``; the score, for ``keep=largest`` and ``keep=smallest``.
    """

    id: str
    content: bytes | str
    media_type: str = "text/html"
    charset: str | None = None
    cluster: str | None = None
    date: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.id, str) and isinstance(self.content, (bytes, str))):
            raise InputError(
                "a document needs an id of type str and content of type str or bytes, got "
                f"{type(self.id).__name__} and {type(self.content).__name__}"
            )


_Record = TypeVar("_Record")


def unchecked(record: type[_Record], **values: Any) -> _Record:
    """Return a `Vectors` or `Clusters` whose arrays are known to be valid, without reading them."""
    made = object.__new__(record)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that could not be read.

    Attributes
    ----------
    id : str
        Id of the record, or its position: ``file@byte`` or ``file#row``.
    reason : str
        One sentence.
    of_reference : bool
        Whether it is a record of a reference.
    """

    id: str
    reason: str
    of_reference: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one document, as spans of a compact buffer.

    Attributes
    ----------
    buffer : ndarray of uint8
        Lower-cased UTF-8 of the tokens, joined by ``:`` (which no token contains), so that the bytes from the start
        of token ``i`` to the end of token ``i + k - 1`` are the canonical form of that k-gram.
    starts, ends : ndarray of int32, shape (n_tokens,)
        Byte offsets of each token in ``buffer``.
    links : ndarray of int32, shape (n_tokens,), optional
        Link of each token, numbered from 1, ascending, 0 outside links; a block in a link begins another one. None if
        the text has no marks.
    text : str
        The text that was cut, without marks of links: with case, punctuation and white space.
    source : ndarray of uint8
        UTF-8 of that text, lower-cased if a character beyond ASCII changes; see `spotsigs.text.hashing.hash_sentences`.
    stops : ndarray of int32, shape (n_tokens,)
        Byte offsets in ``source`` at which the tokens end.
    """

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    links: NDArray[np.int32] | None = None
    text: str = field(default="", repr=False)
    source: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8), repr=False)
    stops: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def words(self) -> list[str]:
        """Return the tokens as strings."""
        return self.buffer.tobytes().decode().split(":") if len(self) else []


@dataclass(frozen=True, slots=True)
class WordGrams:
    """Distinct word 5-grams and sentences of each text of a batch, or a sample of them by their hashes.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` is ``indptr[r]:indptr[r + 1]``.
    hashes : ndarray of uint64, shape (nnz,)
        XXH64 of the 5-grams, made even, and of the sentences, made odd, distinct and ascending within a row.
    bits : int
        The hashes begin with so many zero bits; the others are left out.
    """

    indptr: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    bits: int = 0

    @staticmethod
    def mixed(grams: NDArray[np.uint64], sentences: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return the hashes of 5-grams, made even, and of sentences, made odd."""
        odd = np.uint64(1)
        return np.concatenate([grams & ~odd, sentences | odd])

    @staticmethod
    def are_grams(mixed: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which of the hashes are of 5-grams; the others are of sentences."""
        even: NDArray[np.bool_] = mixed & np.uint64(1) == 0
        return even

    def drawn(self, bits: int) -> WordGrams:
        """Return the hashes that begin with so many zero bits."""
        if bits <= self.bits:
            return self
        drawn = self.hashes >> np.uint64(64 - bits) == 0
        before = np.concatenate([[0], np.cumsum(drawn)])
        return WordGrams(before[self.indptr], self.hashes[drawn], bits)


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases of each text of a batch: the five words from the first word of each signature on.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` is ``indptr[r]:indptr[r + 1]``.
    entries : ndarray of uint64, shape (nnz,)
        The upper halves of two XXH64, of the phrase and of its signature; distinct and ascending within a row.
    """

    indptr: NDArray[np.int64]
    entries: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class DocumentColumns:
    """What is known about the n documents of a block besides their signatures; a column that is unknown is empty.

    Attributes
    ----------
    ids : sequence of str
        Ids of the documents.
    clusters : sequence of (str or None)
        Truth labels.
    dates : sequence of (str or None)
        Capture times.
    digests : ndarray of uint64, shape (n, 4)
        Checksums of content and text, see `spotsigs.text.checksums`.
    tokens : ndarray of int32, shape (n,)
        Number of tokens of each text.
    sections : ndarray of uint64, shape (n,)
        Sections of the documents, see `spotsigs.signatures.sections.sections_of`.
    missing : ndarray of int32, shape (n,)
        Signatures that are missing of each document, see `spotsigs.signatures.template_removal.TemplateRemoval`.
    main_tokens : ndarray of int32, shape (n,)
        Estimated number of tokens of each main content without the template.
    languages : ndarray of uint16, shape (n,)
        Languages of the texts, see `spotsigs.signatures.languages.language_codes`.
    """

    ids: Sequence[str] = ()
    clusters: Sequence[str | None] = ()
    dates: Sequence[str | None] = ()
    digests: NDArray[np.uint64] = field(default_factory=lambda: np.empty((0, 4), np.uint64))
    tokens: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    sections: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    missing: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    main_tokens: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    languages: NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signature multisets of a block of n documents, in CSR form, before any filter.

    The arrays are in memory, or mapped from the files of a store, see `spotsigs.storage.store.load_signatures`. A
    collection has one block in memory and many on disk, see `spotsigs.signatures.blocks.Blocks`.

    Attributes
    ----------
    documents : DocumentColumns
        The documents.
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` is ``indptr[r]:indptr[r + 1]``.
    hashes : ndarray of uint64, shape (nnz,)
        Distinct signature hashes, ascending within a row.
    counts : ndarray of int32, shape (nnz,)
        Occurrences of each.
    skipped : tuple of Skipped
        Records that could not be read.
    n_reference : int
        Number of documents of a reference, which come first; 0 without one.
    grams : WordGrams or None
        Word 5-grams of the texts, if they were requested.
    phrases : Phrases or None
        Phrases of the texts, if they were requested.
    """

    documents: DocumentColumns
    indptr: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int32]
    skipped: tuple[Skipped, ...] = ()
    n_reference: int = 0
    grams: WordGrams | None = None
    phrases: Phrases | None = None

    @property
    def doc_ids(self) -> Sequence[str]:
        """Ids of the documents."""
        return self.documents.ids

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def occurrences(self) -> NDArray[np.int64]:
        """Return the number of signature occurrences of each document."""
        return row_sums(self.indptr, self.counts)

    def keep_rows(self, rows: NDArray[np.bool_]) -> Signatures:
        """Return the same documents, with the signatures of some of them; the others become empty rows."""
        if rows.all():
            return self
        sizes = np.diff(self.indptr)
        entries = np.repeat(rows, sizes)
        indptr = row_starts(np.where(rows, sizes, 0))
        hashes = self.hashes[entries] if len(self.hashes) else self.hashes
        counts = self.counts[entries] if len(self.counts) else self.counts
        return replace(self, indptr=indptr, hashes=hashes, counts=counts)


@dataclass(frozen=True)
class Vectors:
    """Signature multisets of a collection with contiguous ids: the input of every matcher.

    Rows are documents, empty rows included. Build one with `Vectors.from_csr`, which sorts rows and adds up repeated
    ids, or from sets or counters. The constructor checks the arrays, since kernels do not.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` is ``indptr[r]:indptr[r + 1]``.
    ids : ndarray of int32, shape (nnz,)
        Signature ids in ``[0, n_signatures)``, ascending within a row.
    counts : ndarray of int32, shape (nnz,)
        Positive multiplicities.
    lengths : ndarray of int64, shape (n,)
        Sum of the counts of each row: ``|d|`` in the paper.
    doc_ids : sequence of str
        Document ids; row numbers as strings by default.
    vocabulary : ndarray of uint64, shape (n_signatures,), optional
        Signature hash of each id.
    """

    indptr: NDArray[np.int64]
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]
    doc_ids: Sequence[str]
    vocabulary: NDArray[np.uint64] | None = None

    def __post_init__(self) -> None:
        for name in ("indptr", "ids", "counts", "lengths"):
            require_array(name, getattr(self, name), "iu")
        require_csr(self.indptr, self.ids, self.counts)
        n = len(self.indptr) - 1
        require_array("lengths", self.lengths, "iu", n)
        sized = hasattr(self.doc_ids, "__len__") and hasattr(self.doc_ids, "__getitem__")
        require(sized and not isinstance(self.doc_ids, str), f"doc_ids must be a sequence, got {shown(self.doc_ids)}")
        require(
            len(self.doc_ids) == n, f"doc_ids has {len(self.doc_ids)} entries for {counted(n, 'row')}; give one per row"
        )
        if self.vocabulary is not None:
            require_array("vocabulary", self.vocabulary, "u")
            require_between("ids", self.ids, 0, len(self.vocabulary))
        require_rows(self.indptr, self.ids, self.counts, self.lengths)

    @classmethod
    def from_csr(
        cls,
        indptr: Any,
        ids: Any,
        counts: Any = None,
        doc_ids: Sequence[str] | None = None,
        vocabulary: NDArray[np.uint64] | None = None,
    ) -> Vectors:
        """Check and normalise CSR arrays: rows sorted by id, repeated ids added up.

        The arguments are the attributes in any integer type; without counts, every count is 1.

        Raises
        ------
        InputError
            If the arrays do not describe such rows.
        """
        indptr, ids, counts = normalise_csr(indptr, ids, counts)
        doc_ids = RowNumbers(len(indptr) - 1) if doc_ids is None else doc_ids
        return cls(indptr, ids, counts, row_sums(indptr, counts), doc_ids, vocabulary)

    @classmethod
    def from_counters(cls, counters: Iterable[Mapping[Any, int]], doc_ids: Sequence[str] | None = None) -> Vectors:
        """Build vectors from a multiset of features for each document, as `collections.Counter`.

        Features are hashable objects, numbered as they first appear; features of count 0 are left out.

        Raises
        ------
        InputError
            If a row is no mapping, or a count is not a positive integer.
        """
        known: dict[Any, int] = {}
        indptr, ids = [0], list[int]()
        counts: list[int] = []
        require_iterable("counters", counters)
        for row, counter in enumerate(counters):
            require(isinstance(counter, Mapping), f"row {row} is of type {type(counter).__name__}; give a Counter")
            present = {feature: count for feature, count in counter.items() if count != 0}
            ids += [known.setdefault(feature, len(known)) for feature in present]
            counts += present.values()
            indptr.append(len(ids))
        return cls.from_csr(indptr, ids, counts, doc_ids)

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[Any]], doc_ids: Sequence[str] | None = None) -> Vectors:
        """Build vectors from a set of hashable features for each document; repeated ones count once.

        Raises
        ------
        InputError
            If a row is a text or a mapping.
        """

        def ones(row: int, features: Iterable[Any]) -> dict[Any, int]:
            if isinstance(features, str | bytes | Mapping) or not isinstance(features, Iterable):
                kind = type(features).__name__
                raise InputError(f"row {row} is a {kind}; give a set of features, or use Vectors.from_counters")
            return dict.fromkeys(features, 1)

        require_iterable("sets", sets)
        return cls.from_counters((ones(row, features) for row, features in enumerate(sets)), doc_ids)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def n_signatures(self) -> int:
        """Number of distinct signatures: the vocabulary's size, else one more than the largest id."""
        if self.vocabulary is not None:
            return len(self.vocabulary)
        return int(self.ids.max()) + 1 if len(self.ids) else 0

    @property
    def n_occurrences(self) -> int:
        """Sum of all counts."""
        return int(self.lengths.sum())

    @cached_property
    def document_frequencies(self) -> NDArray[np.int64]:
        """Number of rows with each signature, int64, shape (n_signatures,)."""
        return np.bincount(self.ids, minlength=self.n_signatures)

    def row(self, r: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the ids and counts of row ``r``."""
        r = as_count("r", r, 0, len(self) - 1)
        span = slice(self.indptr[r], self.indptr[r + 1])
        return self.ids[span], self.counts[span]

    def as_sets(self) -> Vectors:
        """Return the same rows with every count 1."""
        return replace(self, counts=np.ones_like(self.counts), lengths=np.diff(self.indptr))

    def take(self, rows: IntArray) -> Vectors:
        """Return the given rows, in the given order."""
        rows = as_array("rows", rows).astype(np.int64)
        require_between("rows", rows, 0, len(self))
        indptr, entries = take_rows(self.indptr, rows)
        return replace(
            self,
            indptr=indptr,
            ids=self.ids[entries],
            counts=self.counts[entries],
            lengths=self.lengths[rows],
            doc_ids=tuple(self.doc_ids[r] for r in rows.tolist()),
        )


@dataclass(frozen=True, slots=True)
class RowNumbers(Sequence[str]):
    """Numbers of `n` rows as their document ids."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Any:
        return [str(i) for i in range(self.n)[index]] if isinstance(index, slice) else str(range(self.n)[index])


def _no_texts() -> Iterator[str]:
    raise InputError("this matcher reads the documents' text, and the corpus was built from vectors alone")


@dataclass(frozen=True)
class Corpus:
    """Input of a matcher.

    Attributes
    ----------
    vectors : Vectors
        One row per document.
    texts : callable
        Each call iterates over the visible text of every document in row order; for methods that need sequences.
    """

    vectors: Vectors
    texts: Callable[[], Iterator[str]] = field(default=_no_texts, repr=False)

    def __post_init__(self) -> None:
        require(isinstance(self.vectors, Vectors), f"vectors must be Vectors, got {shown(self.vectors)}")
        require(callable(self.texts), f"texts must be a function without arguments, got {shown(self.texts)}")


class Measure(StrEnum):
    """Similarity measures of pairs."""

    jaccard = "jaccard"
    cosine = "cosine"
    containment = "containment"
    lcs = "lcs"
    resemblance = "estimated resemblance"
    hamming = "hamming"
    fingerprint = "fingerprint"


@dataclass(frozen=True)
class Overlap:
    """Recovers the intersection and the union of each pair from its similarity and the two lengths.

    Attributes
    ----------
    lengths : ndarray of int, shape (n,)
        Signature occurrences of each compared document; an exact duplicate has the number of its representative.
    measure : Measure
        Jaccard similarity, or containment.
    """

    lengths: IntArray
    measure: Measure = Measure.jaccard

    def __call__(self, i: IntArray, j: IntArray, similarity: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sums of the minima and of the maxima of two documents' counts, from their rounded quotients.

        Both are exact for documents of fewer than 2**48 signatures: each of four roundings is off by at most 2**-53 of
        the value. All arrays have shape (m,).
        """
        a, b = self.lengths[i].astype(np.int64), self.lengths[j].astype(np.int64)
        if self.measure is Measure.containment:
            shared = np.rint(similarity * np.minimum(a, b)).astype(np.int64)
        else:
            shared = np.rint((a + b) * (similarity / (1 + similarity))).astype(np.int64)
        return shared, a + b - shared


MOST_PAIRS = 2**31
"""Pairs that can be listed."""


BYTES_A_PAIR = 80
"""Memory for a pair while exact duplicates are added and pairs are sorted: 44 to 81 were measured."""


class TooManyPairsError(InputError):
    """More pairs than the caller of a join can list."""


def require_listable(pairs: int, most: int | None = None, *, on_disk: bool = False) -> None:
    """Refuse more pairs than can be listed, on disk or in the memory that is available.

    Raise `TooManyPairsError` if there are more than ``most``.
    """
    require(most is None or isinstance(most, int), f"most must be a whole number or None, got {shown(most)}")
    if most is not None and pairs > most:
        raise TooManyPairsError(f"{pairs:,} pairs are similar, more than the {most:,} that may be listed")
    most, where = MOST_PAIRS, "can be listed"
    if not on_disk and _ALWAYS < pairs <= MOST_PAIRS:
        import psutil

        available = int(psutil.virtual_memory().available)
        if available // BYTES_A_PAIR < most:
            most = available // BYTES_A_PAIR
            where = f"fit into {available / 1e6:,.0f} MB of memory"
    require(
        pairs <= most,
        f"{pairs:,} pairs are similar, more than the {most:,} that {where}; "
        "keep one of each set of identical documents, raise tau, or use dedup, which lists no pairs",
    )


_ALWAYS = 1 << 20  # pairs for which the memory is not measured


@dataclass(frozen=True)
class Pairs:
    """Near-duplicate pairs, sorted by (i, j), without repeats: within a collection, ``i < j``, or between two.

    Attributes
    ----------
    i, j : ndarray of int32, shape (n_pairs,)
        Row numbers; ``j`` is a row of the right collection if there are two.
    similarity : ndarray of float64, shape (n_pairs,)
        The matcher's similarity; NaN if the method has none.
    n : int
        Number of documents that were matched against each other, or of the left collection.
    seconds : mapping of str to float
        Wall seconds of each stage: ``sort_hash`` and ``cluster`` as in the paper's columns, and finer ones.
    counters : mapping of str to int
        Work done, for example ``lists_opened``, ``candidates``, ``verifications``.
    overlap : Overlap, optional
        Numbers of signatures of the pairs; None if similarities are no quotients of them.
    n_right : int, optional
        Number of documents of the right collection; None for pairs within one collection.
    chunk_size : int, optional
        Pairs that stages read into memory at a time, for arrays that are memory-mapped; None for all.
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    similarity: FloatArray
    n: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    overlap: Overlap | None = field(default=None, repr=False)
    n_right: int | None = None
    chunk_size: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", as_count("n", self.n, 0, INT32_MAX))
        require_array("i", self.i, "iu")
        require_array("j", self.j, "iu", len(self.i))
        require_array("similarity", self.similarity, "f", len(self.i))
        for name in ("seconds", "counters"):
            value = getattr(self, name)
            require(isinstance(value, Mapping), f"{name} must be a mapping, got {shown(value)}")
        if self.n_right is not None:
            object.__setattr__(self, "n_right", as_count("n_right", self.n_right, 0, INT32_MAX))
        if self.chunk_size is not None:
            object.__setattr__(self, "chunk_size", as_count("chunk_size", self.chunk_size))
        known = isinstance(self.overlap, Overlap | None)
        require(known, f"overlap must be an Overlap, got {shown(self.overlap)}")
        for span in spans(len(self.i)):
            self._check(slice(max(span.start - 1, 0), span.stop))

    def _check(self, span: slice) -> None:
        i, j = self.i[span], self.j[span]
        if self.n_right is None:
            require(int(i.min()) >= 0 and bool((i < j).all()), "pairs need 0 <= i < j; Pairs.build orients them")
            require(int(j.max()) < self.n, f"a pair names row {j.max()} of {self.n:,}")
        else:
            require_between("i", i, 0, self.n)
            require_between("j", j, 0, self.n_right)
        ascending = (i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1]))
        require(bool(ascending.all()), "pairs must ascend by (i, j) without repeats; Pairs.build sorts them")

    @classmethod
    def build(
        cls,
        i: IntArray,
        j: IntArray,
        similarity: FloatArray,
        n: int,
        seconds: Mapping[str, float] | None = None,
        counters: Mapping[str, int] | None = None,
        overlap: Overlap | None = None,
    ) -> Pairs:
        """Orient, sort and deduplicate raw pairs; repeats of a pair have equal similarities.

        The arguments are the attributes of the result.
        """
        n, i, j = as_count("n", n, 0, INT32_MAX), as_array("i", i), as_array("j", j)
        similarity = as_array("similarity", similarity, "fiu")
        for name, rows in (("i", i), ("j", j)):
            require_array(name, rows, "iu", len(similarity))
            require_between(name, rows, 0, n)
        key = np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j)
        if not np.all(key[1:] > key[:-1]):
            key, first = np.unique(key, return_index=True)
            similarity = similarity[first]
        low, high = np.divmod(key, max(n, 1))
        return cls(
            low.astype(np.int32),
            high.astype(np.int32),
            np.asarray(similarity, dtype=np.float64),
            n,
            {} if seconds is None else seconds,
            {} if counters is None else counters,
            overlap,
        )

    def __len__(self) -> int:
        return len(self.i)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"({a}, {b}, {s:.3f})" for a, b, s in zip(self.i[:5], self.j[:5], self.similarity[:5], strict=True)
        )
        return f"Pairs({len(self):,} of {self.n:,} documents: {shown}{', ...' if len(self) > 5 else ''})"

    def at(self, tau: float) -> Pairs:
        """Return the pairs of similarity at least ``tau``."""
        return self.where(self.similarity >= as_number("tau", tau))

    def where(self, keep: NDArray[np.bool_]) -> Pairs:
        """Return the pairs for which ``keep``, bool of shape (pairs,), is true; raise InputError for other arrays."""
        require_array("keep", keep, "b", len(self))
        return replace(self, i=self.i[keep], j=self.j[keep], similarity=self.similarity[keep])

    def chunks(self, size: int | None = None) -> Iterator[PairArrays]:
        """Yield the arrays of consecutive pairs, in memory: ``size`` or `chunk_size` at a time, without both all."""
        size = self.chunk_size if size is None else size
        if size is None:
            yield self.i, self.j, self.similarity
            return
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            yield np.array(self.i[part]), np.array(self.j[part]), np.array(self.similarity[part])

    @property
    def fits_memory(self) -> bool:
        """Whether all pairs and as many again may be in memory."""
        return self.chunk_size is None or 2 * len(self) <= self.chunk_size

    @property
    def shared(self) -> NDArray[np.int64] | None:
        """Signatures that the documents of each pair share: the sum of the lesser counts; None without `overlap`."""
        return None if self.overlap is None else self.overlap(self.i, self.j, self.similarity)[0]

    @property
    def union(self) -> NDArray[np.int64] | None:
        """Signatures that either document of each pair has: the sum of the greater counts; None without `overlap`."""
        return None if self.overlap is None else self.overlap(self.i, self.j, self.similarity)[1]

    def to_pandas(self, doc_ids: Sequence[str] | None = None, right: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the columns ``doc_a, doc_b, similarity`` and, if known, ``shared, union``; row numbers without ids.

        `right` has the ids of the right collection, if there are two.
        """
        import pandas as pd

        a: NDArray[Any] = self.i
        b: NDArray[Any] = self.j
        if doc_ids is not None:
            a = _names("doc_ids", doc_ids, self.n)[a]
        others = doc_ids if self.n_right is None else right
        if others is not None:
            b = _names("right", others, self.n if self.n_right is None else self.n_right)[b]
        overlap: dict[str, Any] = {} if self.overlap is None else {"shared": self.shared, "union": self.union}
        return pd.DataFrame({"doc_a": a, "doc_b": b, "similarity": self.similarity, **overlap})


def no_pairs(n: int) -> Pairs:
    """Return no pairs of n documents."""
    return Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), n)


def _names(name: str, ids: Sequence[str], n: int) -> NDArray[np.object_]:
    listed = isinstance(ids, Sequence | np.ndarray) and not isinstance(ids, str | bytes)
    require(listed and len(ids) == n, f"{name} must have {n:,} entries, one a document")
    return np.asarray(ids, dtype=object)


@dataclass(frozen=True)
class Clusters(Sequence[int]):
    """A partition of the documents; as a sequence, the cluster number of each row.

    Attributes
    ----------
    labels : ndarray of int32, shape (n,)
        Cluster number of each row, numbered by first appearance.
    representatives : ndarray of int32, shape (n_clusters,)
        Representative of each cluster.
    similarity_to_representative : ndarray of float64, shape (n,)
        1 for a representative; NaN if that pair was not reported.
    """

    labels: NDArray[np.int32]
    representatives: NDArray[np.int32]
    similarity_to_representative: FloatArray

    def __post_init__(self) -> None:
        require_array("labels", self.labels, "iu")
        require_array("representatives", self.representatives, "iu")
        require_array("similarity_to_representative", self.similarity_to_representative, "f", len(self.labels))
        require_between("labels", self.labels, 0, len(self.representatives))
        require_between("representatives", self.representatives, 0, len(self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: Any) -> Any:
        return self.labels[row] if isinstance(row, slice) else int(self.labels[row])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.labels, dtype=dtype, copy=copy)

    @cached_property
    def sizes(self) -> NDArray[np.int32]:
        """Documents in each cluster, int32, shape (n_clusters,)."""
        return tally(self.labels, len(self.representatives))


@dataclass(frozen=True)
class JudgedPairs:
    """Pairs of documents with a judgement; nothing is known about any other pair.

    Attributes
    ----------
    keys : ndarray of int64, shape (m,)
        ``i * n + j`` of each pair ``i < j`` of n documents, ascending.
    positive : ndarray of bool, shape (m,)
        True for duplicates.
    """

    keys: NDArray[np.int64]
    positive: NDArray[np.bool_]

    def of(self, i: IntArray, j: IntArray, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which pairs are judged positive, and which negative."""
        wanted = np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j)
        at = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        known = self.keys[at] == wanted if len(self.keys) else np.zeros(len(wanted), np.bool_)
        positive = known & (self.positive[at] if len(self.keys) else False)
        return positive, known & ~positive


@dataclass(frozen=True)
class Truth:
    """Known duplicates, as cluster labels or as judged pairs.

    Attributes
    ----------
    labels : ndarray of int32, shape (n,)
        Cluster number of each row, -1 for none. With judged pairs: connected components of the positive ones among the
        documents of any judged pair, -1 for the other documents, about which nothing is known.
    names : sequence of str
        Name of each cluster number.
    judged : JudgedPairs or None
        Judged pairs; None if the labels are the truth.
    """

    labels: NDArray[np.int32]
    names: Sequence[str] = ()
    judged: JudgedPairs | None = None

    def __post_init__(self) -> None:
        require_array("labels", self.labels, "iu")
        require_between("labels", self.labels, -1, INT32_MAX)
        require(isinstance(self.names, Sequence), f"names must be a sequence of str, got {shown(self.names)}")

    @classmethod
    def from_clusters(cls, clusters: Iterable[str | None]) -> Truth | None:
        """Number cluster names by first appearance; return None if no document has one."""
        require_iterable("clusters", clusters)
        clusters = list(clusters)
        named = all(name is None or isinstance(name, str) for name in clusters)
        require(named, "clusters must be names, of type str, or None")
        known: dict[str, int] = {}
        numbers = (-1 if name is None else known.setdefault(name, len(known)) for name in clusters)
        labels = np.fromiter(numbers, np.int32)
        return cls(labels, tuple(known)) if known else None
