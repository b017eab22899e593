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
        in_file = which == number
        with writing(one, "pairs") as out:
            out.put("i", pairs.i[in_file].astype(np.int64))
            out.put("j", pairs.j[in_file].astype(np.int64))
            out.put("similarity", pairs.similarity[in_file])
            out.facts = {"pairs": int(in_file.sum())}
    return PairFiles(tuple(folders), pairs.n)


def random_pairs(rng, n, m):
    i, j = rng.integers(0, n, (2, m))
    some = i != j
    i, j = np.minimum(i, j)[some], np.maximum(i, j)[some]
    return Pairs.build(i, j, (1 + (i * 7 + j * 13) % 9) / 10, n)
