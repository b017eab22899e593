"""All that pairs say of documents: clusters, how these hold together, and the nearest partner of each."""

from __future__ import annotations

from dataclasses import dataclass

from spotsigs.clustering.clusters import ClusterMethod, Cohesion, cluster, cohesion
from spotsigs.clustering.decisions import Nearest
from spotsigs.records import Clusters, IntArray, PairChunks


@dataclass(frozen=True)
class Grouped:
    """What pairs say of documents.

    Attributes
    ----------
    clusters : Clusters
        Which documents belong together.
    cohesion : Cohesion
        How well each cluster holds together.
    nearest : Nearest
        The most similar document of each.
    """

    clusters: Clusters
    cohesion: Cohesion
    nearest: Nearest


def group(
    pairs: PairChunks, *, clusters: str | ClusterMethod = ClusterMethod.components, priority: IntArray | None = None
) -> Grouped:
    """Group documents by their pairs, see `spotsigs.clustering.clusters.cluster`.

    Parameters
    ----------
    pairs : Pairs, or spotsigs.outofcore.prefix_partition_join.PairFiles
        Near-duplicate pairs; all passes over them take place in this process.
        `spotsigs.outofcore.cluster_tasks.group_files` gives the same of pairs on disk, on an engine.
    clusters : {"components", "anchored"}
        What a cluster is.
    priority : ndarray of int, shape (n,), optional
        The smallest value of a cluster is its representative.

    Returns
    -------
    Grouped
    """
    found = cluster(pairs, clusters=clusters, priority=priority)
    return Grouped(found, cohesion(found, pairs.chunks()), Nearest.among(pairs.chunks(), pairs.n))
