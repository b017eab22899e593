"""Signatures in memory as they lie on disk."""

from spotsigs.crawl.segments import Segments
from spotsigs.disk.places import place
from spotsigs.disk.store import save_signatures


def segments_of(batches, folder):
    """Write batches of signatures as segments of a new folder."""
    found = []
    for k, batch in enumerate(batches):
        found.append(place(folder) / f"{k:08d}")
        save_signatures(found[-1], batch)
    return Segments(tuple(found))
