"""Template removal: a page's signatures without those that belong to the template of its site.

A template is the part of a page that its site repeats: menus, footers, teasers, legal notices. Pages of one template
have similar link texts and different main contents, and the other signatures that they share belong to the template.
All stages that follow, IDF, vectors, matching, work on the multisets that remain, so that matching stays exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.csr import row_starts, take_rows
from spotsigs.arrays.parallel import all_cores, concatenated, over_blocks
from spotsigs.contracts import CollectionScheme
from spotsigs.records import Signatures, Tokens
from spotsigs.signatures.languages import IN_SHINGLES, is_unspaced, marks_shingles
from spotsigs.signatures.main_content import SHINGLE, Located, MainContent, outline_of
from spotsigs.signatures.spots import SHINGLE_TOKENS
from spotsigs.signatures.template_kernels import PageFeatures, PageLinks, page_features, remove_templates
from spotsigs.storage.store import concatenated_on_disk
from spotsigs.text.hashing import hash_shingles, hash_signed_shingles

BLOCK_PAGES = 2048
"""Pages that a kernel reads at a time."""

ONE_IN, SAMPLED = 4, 64
"""Of the shingles of a text with more than so many tokens, one in so many is kept, by hash.

So few that a short text, of which all are kept, is seldom compared with a long one."""


@dataclass(frozen=True, kw_only=True)
class TemplateRemoval(MainContent, CollectionScheme):
    """Signatures of any scheme without the template that a page shares with other pages of its site.

    1. **Siblings** of a page P are pages Q of its site with similar links and other content. Let L be the Jaccard
       similarity of their sets of link texts. Their main contents must have a similarity below L / 2, where a signature
       of one main content counts as shared even if the other page has it outside its main content. The pages of the
       same template have at least 3/4 of the largest L. The pages with the most similar links are compared, at most 32.
       A page that would be the only sibling and has more than 3/4 of the main content of P is a digest, and no sibling.
    2. A signature belongs to the **template** of P if more than half of the siblings have it.
    3. The **main content** (`MainContent`) of P is found with the template's signatures counted -1. Its signatures
       without the template's are the signatures of P.
    4. If these are fewer than 12, the page is compared by shingles of eight tokens of all of its text, of a text with
       more than 64 tokens by one in four of them, by hash. The shingles of the template are left out. The reason is
       that tables, names and code contain few spot signatures. On a page with links, shingles that replace missing
       stopwords are no spots; Chinese and Japanese text is compared by the shingles of its main content.
    5. If a page keeps less than a quarter of the signatures that its main content had, the signatures up to that
       quarter are **missing**.
    6. The template of P is **unknown** if it has no siblings, although another page has similar links (L >= 1/4): what
       those pages share may be template or content. As many signatures are then missing as P has, if that is more.

    Similarities are of the signatures that remain. What is missing lowers `spotsigs.signatures.contained.lower_bound`,
    on which removals depend, too.

    Sites are distinguished by the hosts of the documents' ids if these are URLs: a page's signatures depend on no page
    of another host. The result depends neither on the order of the documents nor on threads. Exact duplicates count
    once on each site, and are compared by the signatures of the first of them. Called with a single page, the scheme
    keeps its main content. Rule 4 applies to signatures whose hashes differ from the hashes of shingles
    (`marks_shingles`), as with ``language=auto``.

    Attributes
    ----------
    signature : SignatureScheme
        Source of the signatures.
    """

    label: ClassVar[str] = "templates removed"

    def outline(
        self, tokens: Tokens, site: str = "", located: Located | None = None
    ) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hashes and kinds of a page's signatures and links, in text order."""
        hashes, kinds = outline_of(self.signature, tokens, site, located)
        if not marks_shingles(self) or is_unspaced(tokens):
            return hashes, kinds
        if len(tokens) <= SAMPLED:
            shingles = hash_signed_shingles(tokens, SHINGLE_TOKENS)
        else:
            shingles = hash_shingles(tokens, SHINGLE_TOKENS)
            shingles = shingles[(shingles >> np.uint64(32)) % np.uint64(ONE_IN) == 0]
        shingles = shingles | IN_SHINGLES
        return np.concatenate([hashes, shingles]), np.concatenate([kinds, np.full(len(shingles), SHINGLE, np.int32)])

    def located_in_outline(self, tokens: Tokens) -> Located:
        """Return the hash and the first token of each signature of a page, of its template, too."""
        return self.signature.located(tokens)

    def index(self, outlines: Signatures, *, threads: int | None = None, scratch: Path | None = None) -> PageIndex:
        """Return what the signatures of pages, rows of `outline`, are found by; for one site or for a collection.

        Without ``threads``, all cores are used. With ``scratch``, arrays of features are files there, memory-mapped.
        """
        columns = over_pages(threads, scratch)
        pages, link_indptr, links_of_pages = features_of(outlines, columns)
        _, rows, distinct_of = np.unique(pages.keys, return_index=True, return_inverse=True)
        return PageIndex(pages, _number_links(rows, link_indptr, links_of_pages), distinct_of)

    def remaining(self, index: PageIndex, first: int, last: int) -> tuple[NDArray[Any], ...]:
        """Return the signatures of a range of distinct pages, see `remove_templates`."""
        signatures: tuple[NDArray[Any], ...] = remove_templates(index.pages, index.links, first, last)
        return signatures

    def refine(self, outlines: Signatures, *, threads: int | None = None) -> Signatures:
        """Turn the outlines of a whole collection, rows of `outline`, into the signatures that remain.

        A page whose template is unknown is in no section. Without ``threads``, all cores are used.
        """
        known = self.index(outlines, threads=threads)
        sizes, unknown, missing, fractions, hashes, counts = over_pages(threads)(
            lambda first, last: self.remaining(known, first, last),
            len(known.links.rows),
            *(np.int64, np.bool_, np.int32, np.float64, np.uint64, np.int32),
        )
        of, documents = known.distinct_of, outlines.documents
        indptr, entries = take_rows(row_starts(sizes), of)
        sections = documents.sections
        documents = replace(
            documents,
            sections=np.where(unknown[of], np.uint64(0), sections) if len(sections) else sections,
            missing=missing[of],
            main_tokens=main_tokens(documents.tokens, fractions[of]),
        )
        return replace(outlines, documents=documents, indptr=indptr, hashes=hashes[entries], counts=counts[entries])


def main_tokens(tokens: NDArray[np.int32], fractions: NDArray[np.float64]) -> NDArray[np.int32]:
    """Estimate the tokens of main contents by the tokens of the pages and the fractions of their signatures."""
    return (tokens * fractions).astype(np.int32) if len(tokens) == len(fractions) else np.empty(0, np.int32)


class PageIndex(NamedTuple):
    """The features of pages, the links of the distinct ones, and which of these each page is."""

    pages: PageFeatures
    links: PageLinks
    distinct_of: NDArray[np.int64]


Columns = Callable[..., list[NDArray[Any]]]
"""Function of a kernel, a number of pages and dtypes; it returns the kernel's results over all pages by column."""


def over_pages(threads: int | None = None, scratch: Path | None = None) -> Columns:
    """Return a function that runs kernels over pages, on threads, or block after block with results on disk."""

    def columns(kernel: Callable[[int, int], tuple[NDArray[Any], ...]], n: int, *dtypes: Any) -> list[NDArray[Any]]:
        if scratch is None:
            cores = all_cores() if threads is None else threads
            parts = over_blocks(kernel, n, cores, blocks_a_thread=max(8, -(-n // (cores * BLOCK_PAGES))))
            return concatenated(parts, dtypes)
        blocks = (kernel(first, min(first + BLOCK_PAGES, n)) for first in range(0, n, BLOCK_PAGES))
        return concatenated_on_disk(blocks, dtypes, scratch)

    return columns


def features_of(outlines: Signatures, columns: Columns) -> tuple[PageFeatures, NDArray[np.int64], NDArray[np.uint64]]:
    """Return the parts of pages that are compared, and their distinct links in CSR form."""
    indptr, hashes, kinds = outlines.indptr, outlines.hashes, outlines.counts
    n_links, sizes, links, ranks, *others = columns(
        lambda first, last: page_features(indptr, hashes, kinds, first, last),
        len(outlines),
        *(np.int64, np.int64, np.uint64, np.int32, np.uint64, np.bool_, np.int32, np.uint64),
    )
    return PageFeatures(indptr, kinds, ranks, row_starts(sizes), *others), row_starts(n_links), links


def _number_links(rows: NDArray[np.int64], indptr: NDArray[np.int64], links: NDArray[np.uint64]) -> PageLinks:
    """Return the links of some pages, numbered by hash, and the inverted index."""
    from spotsigs.signatures.idf import dense_ids

    starts, entries = take_rows(indptr, rows)
    ids, vocabulary = dense_ids(links[entries])
    del entries
    owners = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(starts))
    postings = owners[np.argsort(ids, kind="stable")]
    return PageLinks(rows, starts, ids, row_starts(np.bincount(ids, minlength=len(vocabulary))), postings)
