"""Figure 4: Cosine similarity of single words within each cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.claims.facts import Fact
from experiments.config import Experiment, Settings, method_of
from experiments.harness.study import Work
from experiments.resample import resampled_fact, resampled_means
from experiments.show.figures import Mark, Panel, Point, draw_bars
from spotsigs.records import Vectors

CAPTION = "Figure 4: mean Cosine (single words, TF·IDF) of the pages within each cluster"


@dataclass(frozen=True, kw_only=True)
class Figure4(Experiment):
    """Mean Cosine of the pages within each cluster, single words weighted by TF·IDF.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, Figure 4 and section 5.3.
    """

    def __call__(self, settings: Settings) -> str:
        """Draw one bar for each cluster; return a summary."""
        work = Work.begin(self.results, settings)
        method = method_of({"signature": "shingles1"}, settings, **self.fixed)
        stored = work.read(method)
        truth = stored.truth()
        means = cosine_within(stored.prepare_join(method).corpus.vectors, truth.labels)
        sizes = np.bincount(truth.labels[truth.labels >= 0])
        means = means[sizes > 1]
        points = [
            Point(panel="", series="cluster", x=rank, y=float(value))
            for rank, value in enumerate(np.sort(means)[::-1], start=1)
        ]
        panel = Panel(
            name="",
            x_label="cluster, by rank",
            y_label="mean Cosine within the cluster",
            y_range=(0, 1),
            marks=[Mark(label=f"published: .64 on average; here {means.mean():.2f}", y=0.64)],
        )
        drawn = work.figure("figure4", CAPTION, partial(draw_bars, panel=panel, points=points))
        fact = resampled_fact("cosine", means.mean(), resampled_means(means))
        work.facts([fact, Fact(name="clusters", value=len(means)), Fact(name="spread", value=float(means.std()))])
        return f"Figure 4: Cosine within clusters, macro average {fact} over {len(means)} clusters; {drawn}"


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
