"""Defaults of the command ``spotsigs`` and of the functions; ``conf/`` has those of the reproduction."""

TAU = 0.44
"""Similarity threshold."""

IDF_MIN, IDF_MAX = 0.2, 1.0
"""Band of normalised IDF that is kept."""

BOILERPLATE = "keep"
"""Treatment of boilerplate, see `spotsigs.signatures.boilerplate.Boilerplate`."""

CLUSTERS = "leaders"
"""How pairs become clusters, see `spotsigs.clustering.clusters.ClusterMethod`."""

SIGNATURE = "spotsigs"
"""Name of a signature scheme, see `spotsigs.api.SIGNATURES`."""

LANGUAGE = "auto"
"""Language of the pages; ``auto`` detects that of each page."""

KEEP = "first"
"""Order in which documents are kept, see `spotsigs.clustering.decisions.Keep`."""

COPIES = "text"
"""Which documents are exact duplicates, see `spotsigs.exact_duplicates.Sameness`."""

MEASURE = "jaccard"
"""Similarity measure: ``jaccard`` or ``containment``."""
