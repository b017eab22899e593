"""Figure 4: Cosine similarity of single words within each cluster."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.harness.study import Work
from experiments.resample import resampled_fact, resampled_means
from experiments.studies.computed import RowsAndFacts
from spotsigs.method import Method
from spotsigs.records import Vectors


def cosine_of_clusters(work: Work, methods: Mapping[str, Method]) -> RowsAndFacts:
    """Return the mean Cosine of the pages within each cluster, by rank, and its average over the clusters.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Figure 4 and section 5.3.
    """
    [method] = methods.values()
    stored = work.read(method)
    truth = stored.truth()
    means = cosine_within(stored.prepare_join(method).corpus.vectors, truth.labels)
    sizes = np.bincount(truth.labels[truth.labels >= 0])
    means = means[sizes > 1]
    shared = {"collection": work.settings.names["data"], "average": float(means.mean())}
    rows = [shared | {"rank": rank, "cosine": value} for rank, value in enumerate(np.sort(means)[::-1].tolist(), 1)]
    cosine = resampled_fact("cosine", means.mean(), resampled_means(means))
    spread = Fact(name="spread", value=float(means.std()))
    return RowsAndFacts(rows, [cosine, Fact(name="clusters", value=len(means)), spread])


def cosine_within(vectors: Vectors, labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the mean Cosine over the pairs of each cluster, TF·IDF weights.

    Parameters
    ----------
    vectors : Vectors
        Word counts of all pages.
    labels : ndarray of int32, shape (n,)
        Cluster of each page, or -1.

    Returns
    -------
    ndarray of float64, shape (n_clusters,)
        Mean of each cluster; NaN for a cluster of one page.
    """
    from scipy.sparse import csr_array

    idf = np.log(len(vectors) / np.maximum(vectors.document_frequencies, 1))
    shape = (len(vectors), vectors.n_signatures)
    weights = csr_array((vectors.counts * idf[vectors.ids], vectors.ids, vectors.indptr), shape=shape)
    norms = np.sqrt(weights.multiply(weights).sum(axis=1))
    means = np.full(int(labels.max(initial=-1)) + 1, np.nan)
    for cluster in range(len(means)):
        rows = np.flatnonzero(labels == cluster)
        if len(rows) < 2:
            continue
        # The sum over all ordered pairs is the squared length of the sum of the normalised rows.
        unit = weights[rows].multiply(1 / np.where(norms[rows] > 0, norms[rows], 1)[:, None])
        total = np.asarray(unit.sum(axis=0)).ravel()
        filled = np.count_nonzero(norms[rows] > 0)
        means[cluster] = (float(total @ total) - filled) / (len(rows) * (len(rows) - 1))
    return means
