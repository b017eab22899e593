"""Sites of pages: the hosts of ids that are URLs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xxhash
from numpy.typing import NDArray


def site_of(name: str) -> str:
    """Return the host of a document's id, without ``www.``; empty if the id is no URL."""
    _, is_url, rest = name.partition("://")
    host = rest.replace("\\", "/").partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    return host.partition(":")[0].lower().removeprefix("www.") if is_url else ""


def site_hash(site: str) -> int:
    """Return the XXH64 of a host; 0 without one."""
    return xxhash.xxh64_intdigest(site.encode("utf-8", "surrogatepass")) if site else 0


def sites_of(names: Iterable[str]) -> NDArray[np.uint64]:
    """Return the hashes of the sites of documents, by their ids, uint64, shape (n,)."""
    return np.fromiter((site_hash(site_of(name)) for name in names), np.uint64)
