"""Base classes of collections, signature schemes and matchers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.errors import InputError, as_count, as_tau, option
from spotsigs.options import TAU
from spotsigs.records import (
    Corpus,
    Document,
    Pairs,
    Signatures,
    Skipped,
    Tokens,
    Truth,
    Vectors,
)

Shard = Callable[[], Iterator["Document | Skipped"]]
"""A picklable shard of a collection: calling it yields its records, in order."""


class Collection(ABC):
    """Source of documents: a frozen dataclass, with one YAML in ``conf/data/``.

    Attributes
    ----------
    truth_by : str
        How the user can label duplicates if the collection does not: the end of a sentence.
    """

    truth_by: ClassVar[str] = ""

    @property
    def reference_shards(self) -> int:
        """Number of shards, the first ones, whose documents are a reference, see `Referenced`."""
        return 0

    @abstractmethod
    def shards(self) -> Sequence[Shard]:
        """Return the shards in document order; they do not depend on the number of workers."""

    def sources(self) -> Sequence[Any]:
        """Return the files that identify the collection; none if it is generated."""
        return ()

    def truth(self, doc_ids: Sequence[str], clusters: Iterable[str | None], skipped: Iterable[Skipped]) -> Truth | None:
        """Return the known duplicates among documents, by default by their labels; None if nothing is known.

        Parameters
        ----------
        doc_ids, clusters
            Id and label of each document that was read.
        skipped : iterable of Skipped
            Records that could not be read.
        """
        return Truth.from_clusters(clusters)

    def without_pages(self, skipped: Sized) -> str | None:
        """Return the content of an input without a page, and a remedy, as text of an error; None if it is empty.

        Parameters
        ----------
        skipped : Sized
            Records that could not be read, which the error names.
        """
        return "give another input" if skipped else None

    def largest_unit(self, copied: bool, most: int) -> tuple[int, str]:
        """Return the bytes that the format requires to unpack at once, 0 if it can be read in pieces of any size.

        Parameters
        ----------
        copied : bool
            The collection is also copied, for which more may be unpacked.
        most : int
            Bytes that fit into memory; the second value states how the input can be written with units that do.
        """
        return 0, ""


@dataclass(frozen=True)
class Referenced(Collection):
    """The documents of a reference, which are always kept, and the documents that are compared with them.

    Attributes
    ----------
    reference, collection : Collection
        Documents of any two formats.
    """

    reference: Collection
    collection: Collection

    @cached_property
    def _reference(self) -> Sequence[Shard]:
        return self.reference.shards()

    @property
    def reference_shards(self) -> int:  # noqa: D102 - as in the base
        return len(self._reference)

    def shards(self) -> Sequence[Shard]:  # noqa: D102 - as in the base
        return [*self._reference, *self.collection.shards()]

    def sources(self) -> Sequence[Any]:  # noqa: D102 - as in the base
        return [*self.reference.sources(), *self.collection.sources()]

    def without_pages(self, skipped: Sized) -> str | None:  # noqa: D102 - as in the base
        return self.collection.without_pages(skipped)

    def largest_unit(self, copied: bool, most: int) -> tuple[int, str]:  # noqa: D102 - as in the base
        return max(self.reference.largest_unit(False, most), self.collection.largest_unit(copied, most))


class CopyableCollection(Collection):
    """A collection that can be written again in its own format."""

    @abstractmethod
    def copy(self, folder: Path, keep: Callable[[Document], bool]) -> None:
        """Write the files of the collection below a folder, without the documents that are not kept.

        Records that are no documents or cannot be read are copied, except those after the damage in a truncated file.
        """

    def with_lines(self) -> Iterator[tuple[Document, bytes | None]]:
        """Iterate over the documents, each with its line if that is JSON."""
        for shard in self.shards():
            yield from ((record, None) for record in shard() if isinstance(record, Document))


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


_PAIR = ("located", "__call__")
"""Methods of a scheme that return the same signatures."""


class SignatureScheme(ABC):
    """Function from tokens to signatures: a frozen keyword-only dataclass, with a YAML file in ``conf/signature/``.

    A scheme sees one document and depends on nothing else, so that signatures are the same in memory, on disk and in
    every process. `readable` is required. A faster ``__call__`` returns the same signatures; `chains`, or `located`
    alone if it is faster, returns their positions.

    Attributes
    ----------
    label : str
        Name in tables.
    marked : bool
        The scheme uses links: its tokens have them if the text has any.
    """

    label: ClassVar[str]
    marked: ClassVar[bool] = False

    @property
    def locates(self) -> bool:
        """Whether the scheme has `located`, for the signatures of its own ``__call__``, not of a base class."""
        own, base = type(self), SignatureScheme
        if own.located is base.located:
            return own.chains is not base.chains
        defined = {name: next(k for k, each in enumerate(own.__mro__) if name in vars(each)) for name in _PAIR}
        return defined["located"] <= defined["__call__"]

    @abstractmethod
    def readable(self, text: str) -> list[str]:
        """Return every signature occurrence of a text in readable form, in text order, repeats included."""

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the XXH64 of every signature occurrence, in text order, repeats included.

        The tokens have the text, with case and punctuation; by default, its readable signatures are hashed.
        """
        encoded = (signature.encode("utf-8", "replace") for signature in self.readable(tokens.text))
        return np.fromiter(map(xxhash.xxh64_intdigest, encoded), np.uint64)

    def language_of(self, tokens: Tokens) -> str | None:
        """Return the ISO 639-1 code of the language that the signatures of a text depend on; None if they do not."""
        return None

    def chains(self, tokens: Tokens) -> list[list[int]] | None:
        """Return the numbers of the tokens that form each signature, in text order; None if they are not known.

        The list is as long as the array of ``__call__``; `spotsigs.inspect` marks these tokens.
        """
        return None

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the first token of every signature occurrence, in text order.

        The hashes equal the result of ``__call__``, and the tokens ascend. Boilerplate is removed by these positions.

        Raises
        ------
        InputError
            If the scheme has no `chains`.
        """
        chains = self.chains(tokens)
        if chains is None:
            raise InputError(
                f"{type(self).__name__} does not locate its signatures; "
                f"{option('boilerplate', 'keep')} and {option('min_contained', 0)} are possible"
            )
        return self(tokens), np.array([chain[0] for chain in chains], np.int32)


class CollectionScheme(SignatureScheme):
    """A marked scheme whose signatures of a document depend on the other documents of the collection.

    Documents are reduced to outlines one by one, on any worker; `refine` gets all outlines at once. Called with the
    tokens of one document, the scheme treats it as a collection of its own.
    """

    marked: ClassVar[bool] = True

    @abstractmethod
    def located_in_outline(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return what `located` does, for the signatures that `refine` chooses from."""

    @abstractmethod
    def outline(
        self, tokens: Tokens, site: str, located: tuple[NDArray[np.uint64], NDArray[np.int32]] | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the entries that `refine` needs of a document of a site, each a hash and a kind, in text order.

        The result of `located_in_outline` may be given, so that it is not computed again.
        """

    @abstractmethod
    def refine(self, outlines: Signatures) -> Signatures:
        """Turn outlines, entries in place of distinct hashes and kinds in place of counts, into signatures."""

    @abstractmethod
    def index(self, outlines: Signatures, *, threads: int | None = None, scratch: Path | None = None) -> Any:
        """Return what the signatures of documents of some sites are found by, with arrays in files of a folder."""

    @abstractmethod
    def remaining(self, index: Any, first: int, last: int) -> tuple[NDArray[Any], ...]:
        """Return what is known of a range of the distinct documents of an index, and their signatures.

        By document the number of signatures, whether its template is unknown, how many signatures are missing, and the
        fraction of them in the main content; then the hashes and counts of the signatures.
        """


@dataclass(frozen=True, kw_only=True)
class Matcher(ABC):
    """Function from a corpus to pairs: the base of every method, each with one YAML in ``conf/matcher/``.

    Attributes
    ----------
    label : str
        Name in tables. The name of a method that is not `verified` contains ``unverified``.
    measure : str
        Similarity that the threshold limits: a `Measure`, or another name. The pairs of ``jaccard``, the multiset
        Jaccard similarity of the vectors, are compared with brute force.
    exact : bool
        The pairs equal the result of brute force.
    verified : bool
        Each pair has its similarity, which reaches the threshold, so that a lower threshold has all pairs of a higher
        one. A method that is not verified may return NaN, and runs again at each threshold.
    reads_texts : bool
        The method compares `Corpus.texts`, not signatures.
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
    def nested(self) -> bool:
        """Whether the pairs of a lower threshold contain all pairs of a higher one, so that one join serves all."""
        return self.verified

    def at(self, tau: float | None) -> Self:
        """Return the method with another threshold; unchanged if it has none, or none is given."""
        return self

    def with_threads(self, threads: int) -> Self:
        """Return the method with that number of threads; unchanged if it runs on one."""
        return self

    def memory_bytes(self, vectors: Vectors) -> int:
        """Return the paper's lower bound of the memory (section 5.1): here of the vectors alone.

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
