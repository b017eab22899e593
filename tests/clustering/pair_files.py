"""Pairs on disk, as a join writes them."""

import numpy as np

from spotsigs.outofcore.prefix_partition_join import PairFiles
from spotsigs.records import Pairs
from spotsigs.storage.store import writing


def on_disk(folder, pairs, files, rng):
    """Distribute pairs over files, each sorted."""
    which = rng.integers(0, files, len(pairs))
    folders = [folder / f"{number:08d}" for number in range(files)]
    for number, one in enumerate(folders):
        own = which == number
        with writing(one, "pairs") as out:
            out.put("i", pairs.i[own].astype(np.int64))
            out.put("j", pairs.j[own].astype(np.int64))
            out.put("similarity", pairs.similarity[own])
            out.facts = {"pairs": int(own.sum())}
    return PairFiles(tuple(folders), pairs.n)


def random_pairs(rng, n, m):
    i, j = rng.integers(0, n, (2, m))
    some = i != j
    i, j = np.minimum(i, j)[some], np.maximum(i, j)[some]
    return Pairs.build(i, j, (1 + (i * 7 + j * 13) % 9) / 10, n)
