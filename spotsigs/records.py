"""Frozen records that stages take and return.

documents -> tokens -> signatures -> vectors (IDF filter) -> pairs -> clusters -> metrics
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import INT32_MAX, normalise_csr, numbers, require_rows, row_starts, row_sums, take_rows
from spotsigs.arrays.row_blocks import spans, tally
from spotsigs.defaults import IDF_MAX, IDF_MIN, TAU
from spotsigs.errors import InputError, as_count, as_number, as_tau, counted, require, shown
from spotsigs.spelling import option

if TYPE_CHECKING:
    import pandas as pd

IntArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.float64]


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
        ``text/html`` or ``text/plain``.
    charset : str, optional
        Encoding declared outside the content, for example in an HTTP header.
    cluster : str, optional
        Truth label: documents of one cluster are duplicates.
    date : str, optional
        ISO 8601 capture time, for ``keep=newest``.
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


def _require_array(name: str, values: Any, kinds: str, length: int | None = None) -> None:
    array = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in kinds
    require(array, f"{name} must be a one-dimensional array of numbers, got {_described(values)}")
    require(length is None or len(values) == length, f"{name} has {len(values)} entries where {length} are needed")


def _described(values: Any) -> str:
    return f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else shown(values)


def _require_between(name: str, values: NDArray[Any], least: int, stop: int) -> None:
    if len(values):
        low, high = int(values.min()), int(values.max())
        require(least <= low and high < stop, f"{name} must be in [{least}, {stop:,}), got {low} to {high:,}")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that could not be read.

    Attributes
    ----------
    id : str
        Id of the record, or its position: ``file@byte`` or ``file#row``.
    reason : str
        One sentence.
    """

    id: str
    reason: str


Shard = Callable[[], Iterator["Document | Skipped"]]
"""A picklable shard of a collection: calling it yields its records, in order."""


class Collection(ABC):
    """Source of documents: a frozen dataclass, with one YAML in ``conf/data/``.

    Attributes
    ----------
    truth_by : str
        How the user can label duplicates if the collection does not: the end of a sentence.
    idf_band : tuple of float
        Band of normalised IDF that its pages are filtered by unless the user gives another.
    """

    truth_by: ClassVar[str] = ""
    idf_band: ClassVar[tuple[float, float]] = (IDF_MIN, IDF_MAX)

    @abstractmethod
    def shards(self) -> Sequence[Shard]:
        """Return the shards in document order; they do not depend on the number of workers."""

    def sources(self) -> Sequence[Any]:
        """Return the files that identify the collection; none if it is generated."""
        return ()


class CopyableCollection(Collection):
    """A collection that can be written again in its own format."""

    @abstractmethod
    def copy(self, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Write the files of the collection below a folder, without the documents that are not kept.

        Records that are no documents or cannot be read are copied, except those after the damage in a truncated file.
        """


class MarkedText(ABC):
    """A text extractor that can also mark links and blocks, for schemes that use them."""

    @abstractmethod
    def marked(self, document: Document) -> str:
        """Return the document's text with its links and blocks marked."""


class VectorCollection(ABC):
    """A collection without pages: vectors that are ready to be matched."""

    @abstractmethod
    def vectors(self) -> Vectors:
        """Return the vectors."""


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
    """

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    links: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def words(self) -> list[str]:
        """Return the tokens as strings."""
        return self.buffer.tobytes().decode().split(":") if len(self) else []


class SignatureScheme(ABC):
    """Function from tokens to signatures: a frozen keyword-only dataclass, with a YAML file in ``conf/signature/``.

    Attributes
    ----------
    label : str
        Name in tables.
    marked : bool
        The scheme uses links: its tokens have them if the text has any.
    """

    label: ClassVar[str]
    marked: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the XXH64 of every signature occurrence, in text order, repeats included."""

    @abstractmethod
    def readable(self, text: str) -> list[str]:
        """Return the same signatures in readable form, in text order."""

    @property
    def name(self) -> str:
        """The label, with what its parameters add to it."""
        return self.label

    @property
    def tells_languages(self) -> bool:
        """Whether hashes distinguish shingles from spots, see `spotsigs.signatures.languages.IN_SHINGLES`."""
        return False

    def chains(self, tokens: Tokens) -> list[list[int]] | None:
        """Return the numbers of the tokens that form each signature, in text order; None if they are not known."""
        return None

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the first token of every signature occurrence, in text order.

        Raises
        ------
        InputError
            If the scheme has no `chains`.
        """
        chains = self.chains(tokens)
        if chains is None:
            raise InputError(
                f"{type(self).__name__} does not locate its signatures; {option('boilerplate', 'keep')} is possible"
            )
        return self(tokens), np.array([chain[0] for chain in chains], np.int32)


class CollectionScheme(SignatureScheme):
    """A marked scheme whose signatures of a document depend on the other documents of the collection.

    Documents are reduced to outlines one by one, on any worker; `refine` gets all outlines at once. Called with the
    tokens of one document, the scheme treats it as a collection of its own.
    """

    marked: ClassVar[bool] = True

    @abstractmethod
    def outline(self, tokens: Tokens, site: str) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the entries that `refine` needs of a document of a site, each a hash and a kind, in text order."""

    @abstractmethod
    def refine(self, outlines: Signatures, *, scratch: Path | None = None) -> Signatures:
        """Turn outlines, entries in place of distinct hashes and kinds in place of counts, into signatures.

        Arrays that do not fit into memory may be written to the scratch folder, which outlives the result.
        """


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signature multisets of a batch of documents, in CSR form, before any filter.

    Attributes
    ----------
    doc_ids : sequence of str
        One per document.
    clusters : sequence of (str or None)
        Truth labels, one per document.
    indptr : ndarray of int64, shape (n + 1,)
        Row ``r`` is ``indptr[r]:indptr[r + 1]``.
    hashes : ndarray of uint64, shape (nnz,)
        Distinct signature hashes, ascending within a row.
    counts : ndarray of int32, shape (nnz,)
        Occurrences of each.
    skipped : tuple of Skipped
        Records that could not be read.
    content_bytes : int
        Bytes of content that were read.
    dates : tuple of (str or None)
        Capture times, one per document; may be empty.
    digests : ndarray of uint64, shape (n, 4)
        Checksums of content and text, see `spotsigs.text.checksums`; may have no rows.
    """

    doc_ids: Sequence[str]
    clusters: Sequence[str | None]
    indptr: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    counts: NDArray[np.int32]
    skipped: tuple[Skipped, ...] = ()
    content_bytes: int = 0
    dates: tuple[str | None, ...] = ()
    digests: NDArray[np.uint64] = field(default_factory=lambda: np.empty((0, 4), np.uint64))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def occurrences(self) -> NDArray[np.int64]:
        """Return the number of signature occurrences of each document."""
        return row_sums(self.indptr, self.counts)

    def only(self, rows: NDArray[np.bool_]) -> Signatures:
        """Return the same documents, with the signatures of some of them; the others become empty rows."""
        if rows.all():
            return self
        sizes = np.diff(self.indptr)
        entries = np.repeat(rows, sizes)
        indptr = row_starts(np.where(rows, sizes, 0))
        return replace(self, indptr=indptr, hashes=self.hashes[entries], counts=self.counts[entries])


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
            _require_array(name, getattr(self, name), "iu")
        n, entries = len(self.indptr) - 1, len(self.ids)
        require(n >= 0 and self.indptr[0] == 0, "indptr must start with 0 (one more entry than there are rows)")
        require(int(self.indptr[-1]) == entries, f"indptr ends at {self.indptr[-1]}, but there are {entries:,} ids")
        _require_array("counts", self.counts, "iu", entries)
        _require_array("lengths", self.lengths, "iu", n)
        sized = hasattr(self.doc_ids, "__len__") and hasattr(self.doc_ids, "__getitem__")
        require(sized and not isinstance(self.doc_ids, str), f"doc_ids must be a sequence, got {shown(self.doc_ids)}")
        require(
            len(self.doc_ids) == n, f"doc_ids has {len(self.doc_ids)} entries for {counted(n, 'row')}; give one per row"
        )
        known = INT32_MAX + 1
        if self.vocabulary is not None:
            _require_array("vocabulary", self.vocabulary, "u")
            known = len(self.vocabulary)
        _require_between("ids", self.ids, 0, known)
        _require_between("counts", self.counts, 1, INT32_MAX + 1)
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

        Features are hashable objects, numbered as they first appear; those of count 0 are left out.

        Raises
        ------
        InputError
            If a row is no mapping, or a count is not a positive integer.
        """
        known: dict[Any, int] = {}
        indptr, ids = [0], list[int]()
        counts: list[int] = []
        _require_rows("counters", counters)
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

        _require_rows("sets", sets)
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
        rows = numbers("rows", rows).astype(np.int64)
        _require_between("rows", rows, 0, len(self))
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


def _require_rows(name: str, rows: Any) -> None:
    listed = isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Mapping)
    require(listed, f"{name} must be an iterable with one entry a row, got {shown(rows)}")


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


@dataclass(frozen=True, kw_only=True)
class Matcher(ABC):
    """Function from a corpus to pairs: the base of every method, each with one YAML in ``conf/matcher/``.

    Attributes
    ----------
    label : str
        Name in tables.
    measure : str
        Similarity of its pairs: a `Measure`, or another name.
    exact : bool
        The pairs equal those of brute force.
    verified : bool
        The similarity of each pair is computed and reaches the threshold.
    reads_texts : bool
        The method compares texts, not signatures.
    """

    label: ClassVar[str]
    measure: ClassVar[str]
    exact: ClassVar[bool] = False
    verified: ClassVar[bool] = False
    reads_texts: ClassVar[bool] = False

    def __post_init__(self) -> None:  # noqa: B027 - a method without fields has nothing to check
        """Check the fields; every base checks its own."""

    @abstractmethod
    def __call__(self, corpus: Corpus) -> Pairs:
        """Return the near-duplicate pairs of the corpus."""

    @property
    def threshold(self) -> float | None:
        """The least similarity that is reported; None if the method has no threshold."""
        return None

    @property
    def hash_tables(self) -> tuple[Any, Any]:
        """The fields k and l, in the paper min-hashes of a key and tables; None for one that the method lacks."""
        return getattr(self, "k", None), getattr(self, "l", None)

    def at(self, tau: float | None) -> Self:
        """Return the method with another threshold; unchanged if it has none, or none is given."""
        return self

    def with_threads(self, threads: int) -> Self:
        """Return the method with that number of threads; unchanged if it runs on one."""
        return self

    def on_store(self) -> ThresholdMatcher | None:
        """Return the method that finds the same pairs among vectors on disk; None if there is none."""
        return None

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's lower bound of the memory (section 5.1): here that of the vectors alone.

        An id of 4 bytes and a frequency of 2 for each entry, 4 bytes for each document.
        """
        return len(vectors.ids) * (4 + 2) + len(vectors) * 4


@dataclass(frozen=True, kw_only=True)
class ThresholdMatcher(Matcher):
    """A method that reports the pairs of at least some similarity.

    Attributes
    ----------
    tau : float
        Similarity threshold in (0, 1].
    """

    tau: float = TAU

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tau", as_tau(self.tau))

    @property
    def threshold(self) -> float | None:  # noqa: D102 - as in the base
        return self.tau

    def at(self, tau: float | None) -> Self:  # noqa: D102 - as in the base
        return self if tau is None else replace(self, tau=tau)


MOST_THREADS = 256
"""Threads of a kernel at most: more take memory and no less time."""


def as_threads(threads: Any) -> int | None:
    """Return a number of threads, at most `MOST_THREADS`; None, for all cores, stays None."""
    return None if threads is None else min(as_count("threads", threads), MOST_THREADS)


@dataclass(frozen=True, kw_only=True)
class ThreadedMatcher(Matcher):
    """A method that works on several threads; their number changes no result.

    Attributes
    ----------
    threads : int or None
        Threads of its kernels; None takes all cores.
    """

    threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threads", as_threads(self.threads))

    def with_threads(self, threads: int) -> Self:  # noqa: D102 - as in the base
        return replace(self, threads=threads)


@dataclass(frozen=True)
class Overlap:
    """Numbers of signatures of which the similarities of pairs are quotients.

    Attributes
    ----------
    lengths : ndarray of int, shape (n,)
        Signature occurrences of each compared document; of an exact duplicate, those of its representative.
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


class PairChunks(Protocol):
    """Pairs in chunks: in memory a single one, on disk chunks that fit a budget."""

    @property
    def n(self) -> int:
        """Number of documents."""

    @property
    def held(self) -> int:
        """Pairs that are in memory at a time, except those of a single document."""

    @property
    def seconds(self) -> Mapping[str, float]:
        """Wall seconds of each stage."""

    @property
    def counters(self) -> Mapping[str, int]:
        """Work done."""

    @property
    def overlap(self) -> Overlap | None:
        """Numbers of signatures of the pairs; None if similarities are no quotients of them."""

    def __len__(self) -> int:
        """Return the number of pairs."""

    def chunks(self) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Iterate over the pairs in ascending order of (i, j)."""

    def in_memory(self) -> Pairs | None:
        """Return all pairs at once, None if they do not fit."""


MOST_PAIRS = 2**31
"""Pairs that can be listed."""


def require_listable(pairs: int) -> None:
    """Refuse more pairs than can be listed."""
    require(
        pairs <= MOST_PAIRS,
        f"{pairs:,} pairs are similar, more than the {MOST_PAIRS:,} that can be listed; "
        "keep one of each set of identical documents, or raise tau",
    )


@dataclass(frozen=True)
class Pairs:
    """Near-duplicate pairs, sorted by (i, j), without repeats, ``i < j``.

    Attributes
    ----------
    i, j : ndarray of int32, shape (n_pairs,)
        Row numbers.
    similarity : ndarray of float64, shape (n_pairs,)
        The matcher's similarity; NaN if the method has none.
    n : int
        Number of documents that were matched against each other.
    seconds : mapping of str to float
        Wall seconds of each stage: ``sort_hash`` and ``cluster`` as in the paper's columns, and finer ones.
    counters : mapping of str to int
        Work done, for example ``lists_opened``, ``candidates``, ``verifications``.
    overlap : Overlap, optional
        Numbers of signatures of the pairs; None if similarities are no quotients of them.
    """

    i: NDArray[np.int32]
    j: NDArray[np.int32]
    similarity: FloatArray
    n: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    overlap: Overlap | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", as_count("n", self.n, 0, INT32_MAX))
        _require_array("i", self.i, "iu")
        _require_array("j", self.j, "iu", len(self.i))
        _require_array("similarity", self.similarity, "f", len(self.i))
        for name in ("seconds", "counters"):
            value = getattr(self, name)
            require(isinstance(value, Mapping), f"{name} must be a mapping, got {shown(value)}")
        known = isinstance(self.overlap, Overlap | None)
        require(known, f"overlap must be an Overlap, got {shown(self.overlap)}")
        for span in spans(len(self.i)):
            self._check(slice(max(span.start - 1, 0), span.stop))

    def _check(self, span: slice) -> None:
        i, j = self.i[span], self.j[span]
        require(int(i.min()) >= 0 and bool((i < j).all()), "pairs need 0 <= i < j; Pairs.build orients them")
        require(int(j.max()) < self.n, f"a pair names row {j.max()} of {self.n:,}")
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
        n, i, j = as_count("n", n, 0, INT32_MAX), numbers("i", i), numbers("j", j)
        similarity = numbers("similarity", similarity, "fiu")
        for name, rows in (("i", i), ("j", j)):
            _require_array(name, rows, "iu", len(similarity))
            _require_between(name, rows, 0, n)
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
        keep = self.similarity >= as_number("tau", tau)
        return replace(self, i=self.i[keep], j=self.j[keep], similarity=self.similarity[keep])

    def chunks(self) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield everything at once."""
        yield self.i, self.j, self.similarity

    @property
    def held(self) -> int:
        """Pairs that are in memory at a time: all."""
        return len(self)

    def in_memory(self) -> Pairs:
        """Return the pairs."""
        return self

    @property
    def shared(self) -> NDArray[np.int64] | None:
        """Signatures that the documents of each pair share: the sum of the lesser counts; None without `overlap`."""
        return None if self.overlap is None else self.overlap(self.i, self.j, self.similarity)[0]

    @property
    def union(self) -> NDArray[np.int64] | None:
        """Signatures that either document of each pair has: the sum of the greater counts; None without `overlap`."""
        return None if self.overlap is None else self.overlap(self.i, self.j, self.similarity)[1]

    def to_pandas(self, doc_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the columns ``doc_a, doc_b, similarity`` and, if known, ``shared, union``; row numbers without ids."""
        import pandas as pd

        a, b = self.i, self.j
        if doc_ids is not None:
            listed = isinstance(doc_ids, Sequence | np.ndarray) and not isinstance(doc_ids, str | bytes)
            require(listed and len(doc_ids) == self.n, f"doc_ids must have {self.n:,} entries, one a document")
            names = np.asarray(doc_ids, dtype=object)
            a, b = names[a], names[b]
        overlap: dict[str, Any] = {} if self.overlap is None else {"shared": self.shared, "union": self.union}
        return pd.DataFrame({"doc_a": a, "doc_b": b, "similarity": self.similarity, **overlap})


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
        _require_array("labels", self.labels, "iu")
        _require_array("representatives", self.representatives, "iu")
        _require_array("similarity_to_representative", self.similarity_to_representative, "f", len(self.labels))
        _require_between("labels", self.labels, 0, len(self.representatives))
        _require_between("representatives", self.representatives, 0, len(self.labels))

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
class Truth:
    """Known duplicates, as cluster labels.

    Attributes
    ----------
    labels : ndarray of int32, shape (n,)
        Cluster number of each row, -1 for none.
    names : sequence of str
        Name of each cluster number.
    """

    labels: NDArray[np.int32]
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        _require_array("labels", self.labels, "iu")
        _require_between("labels", self.labels, -1, INT32_MAX)
        require(isinstance(self.names, Sequence), f"names must be a sequence of str, got {shown(self.names)}")

    @classmethod
    def from_clusters(cls, clusters: Iterable[str | None]) -> Truth | None:
        """Number cluster names by first appearance; return None if no document has one."""
        _require_rows("clusters", clusters)
        clusters = list(clusters)
        named = all(name is None or isinstance(name, str) for name in clusters)
        require(named, "clusters must be names, of type str, or None")
        known: dict[str, int] = {}
        found = (-1 if name is None else known.setdefault(name, len(known)) for name in clusters)
        labels = np.fromiter(found, np.int32)
        return cls(labels, tuple(known)) if known else None
