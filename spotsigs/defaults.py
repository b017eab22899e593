"""Defaults of the command ``spotsigs`` and of the functions; ``conf/`` has those of the reproduction."""

import re
from collections.abc import Iterable
from itertools import islice

TAU_PAGES = 0.25
"""Similarity threshold of pages with links, whose templates are removed (docs/boilerplate.md)."""

TAU = 0.44
"""Similarity threshold of matchers, of text, and of pages with their boilerplate: the paper's."""

PROBED = 32
"""Documents at the beginning of the input that decide between the two thresholds."""

_LINK = re.compile(r"<a\s[^<>]{0,1000}?\bhref", re.IGNORECASE)

IDF_MIN, IDF_MAX = 0.0, 1.0
"""Band of normalised IDF that is kept: a lower bound drops the signatures of large clusters, such as error pages."""

BAND = (0.2, 1.0)
"""Band of normalised IDF of experiments, unless the collection is the paper's."""

BOILERPLATE = "auto"
"""Treatment of boilerplate, see `spotsigs.signatures.boilerplate.Boilerplate`."""

CLUSTERS = "leaders"
"""How pairs become clusters, see `spotsigs.clustering.clusters.ClusterMethod`."""

LANGUAGE = "auto"
"""Language of the pages; ``auto`` detects that of each page."""

KEEP = "first"
"""Order in which documents are kept, see `spotsigs.clustering.decisions.Keep`."""

MIN_CONTAINED = 0.3
"""Least fraction of the text of a removed page that the kept one contains, see `spotsigs.signatures.contained`."""

DUPLICATES = "text"
"""Which documents are exact duplicates, see `spotsigs.storage.exact_duplicates.Sameness`."""

MEASURE = "jaccard"
"""Similarity measure: ``jaccard`` or ``containment``."""


def tau(contents: Iterable[object], removes_templates: bool) -> float:
    """Return the threshold for documents with some contents if the user sets none.

    It is `TAU_PAGES` if templates are removed and one of the first `PROBED` contents has a link, `TAU` otherwise.
    Contents that are neither text nor bytes are passed over.
    """
    if not removes_templates:
        return TAU
    for content in islice(contents, PROBED):
        text = content.decode("latin-1") if isinstance(content, bytes) else content
        if isinstance(text, str) and _LINK.search(text):
            return TAU_PAGES
    return TAU
