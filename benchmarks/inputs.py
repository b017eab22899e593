"""Collections of the benchmark; see ``docs/wt10g_like.md``."""

from __future__ import annotations

from data.collections.wt10g_like import DOCUMENTS, LONG, Wt10gLike

COLLECTIONS = {
    "short 20k": Wt10gLike(documents=20_000),
    "short 100k": Wt10gLike(documents=100_000),
    "long 20k": Wt10gLike(documents=20_000, mean_length=LONG),
    "long 100k": Wt10gLike(documents=100_000, mean_length=LONG),
    "short 1.17M": Wt10gLike(documents=DOCUMENTS),
}
SMALLER = {"short 100k": "short 20k", "long 20k": "short 20k", "long 100k": "long 20k", "short 1.17M": "short 100k"}
"""Next smaller collection, from whose times those of a collection are forecast."""
