"""Helpers of tests of stores: segments of signatures in memory, pairs by name, engines that stop or run elsewhere."""

from itertools import count

from loky import get_reusable_executor

from spotsigs.engines import Serial
from spotsigs.outofcore.pipeline import Store, VectorSettings
from spotsigs.outofcore.segments import Segments
from spotsigs.storage.locations import as_path
from spotsigs.storage.store import save_signatures


def match_on_disk(folder, collection, text, scheme, idf_filter, tau, engine, **more):
    """Match a collection by a store."""
    of = {name: more.pop(name) for name in ("memory", "say") if name in more}
    settings = {name: more.pop(name) for name in ("sets", "sameness") if name in more}
    store = Store(folder=as_path(folder), text=text, scheme=scheme, engine=engine, **of)
    return store.match(collection, tau, VectorSettings(idf_filter=idf_filter, **settings), **more)


def query_page(folder, page, text, scheme, tau, memory=10**9):
    """Query a store for a page."""
    return Store(folder=as_path(folder), text=text, scheme=scheme, engine=Serial(), memory=memory).query(page, tau)


def segments_of(batches, folder):
    """Write batches of signatures as segments of a new folder."""
    found = []
    for k, batch in enumerate(batches):
        found.append(as_path(folder) / f"{k:08d}")
        save_signatures(found[-1], batch)
    return Segments(tuple(found))


def named(pairs, ids):
    """Return the pairs as ids and similarity, whatever the order of the documents."""
    return {
        (*sorted((ids[i], ids[j])), s)
        for i, j, s in zip(pairs.i.tolist(), pairs.j.tolist(), pairs.similarity.tolist(), strict=True)
    }


class StopsAt:
    """Runs tasks until one is to begin that shall not."""

    processes = 0

    def __init__(self, last):
        self.begun, self.last = count(), last

    def map(self, function, tasks):
        for task in tasks:
            if next(self.begun) == self.last:
                raise KeyboardInterrupt
            yield function(task)


class Elsewhere:
    """Runs every task in another process."""

    processes = 1

    def map(self, function, tasks):
        with get_reusable_executor(1) as pool:  # a forked one can stand still where threads have run
            for task in tasks:
                yield pool.submit(function, task).result()
