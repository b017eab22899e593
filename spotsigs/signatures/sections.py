"""Sections of sites: pages in one folder that begin with the same link, and whose template is known.

Editions and copies of a page are in different folders or on different sites; two pages of one section are rather two
pages. A folder alone is no section, since it may have pages of many sites. Pages of unknown template are in none: they
must be more alike already, see `spotsigs.signatures.contained.lower_bound`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.records import Signatures
from spotsigs.signatures.main_content import LINK

SECTION_TAU = 0.44
"""Least lower bound of the similarity of two pages of one section of which one is removed: the paper's threshold."""


def folder_of(name: str) -> str:
    """Return the folders of a document's id, with the host of a URL; empty if there are none.

    Examples
    --------
    >>> folder_of("https://www.example.org/3.11/os.html?print=1"), folder_of("pages/a.html"), folder_of("a.html")
    ('www.example.org/3.11', 'pages', '')
    """
    path = name.rpartition("://")[2].replace("\\", "/").partition("?")[0].partition("#")[0]
    return path.rpartition("/")[0]


@kernel
def _add_first_links(indptr: Any, hashes: Any, kinds: Any, sections: Any) -> None:
    for r in range(len(sections)):
        k, end = indptr[r], indptr[r + 1]
        while k < end and kinds[k] < LINK:
            k += 1
        sections[r] = sections[r] ^ hashes[k] if k < end and sections[r] != 0 else np.uint64(0)


def sections_of(names: Iterable[str], outlines: Signatures) -> NDArray[np.uint64]:
    """Return the hash of the folder and of the first link of each page, uint64, shape (n,); 0 without either.

    Parameters
    ----------
    names : iterable of str
        Ids of the n documents.
    outlines : Signatures
        Their outlines, see `spotsigs.signatures.template_removal.TemplateRemoval.outline`.
    """
    texts = (folder.encode("utf-8", "surrogatepass") for folder in map(folder_of, names))
    # the seed differs from the seed of hosts, which the hashes of links contain
    sections = np.fromiter((xxhash.xxh64_intdigest(text, 1) if text else 0 for text in texts), np.uint64)
    _add_first_links(outlines.indptr, outlines.hashes, outlines.counts, sections)
    return sections
