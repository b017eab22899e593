"""Statistics of a collection without any detector: ``python -m data.collections.statistics gold``.

They are the counts in Table 1 of the paper, and properties in which collections differ: the density of spots in
templates, the similarity of templates within and between sites, the similarity of versions of a story, and the fraction
of words that occur in one story only.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spotsigs.records import Document
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize
from spotsigs.text.visible import visible_text

WORD = re.compile(r"[^\W_]+")
BANDS = {"[.2, .85]": (0.2, 0.85), "[.4, .75]": (0.4, 0.75)}
"""Bands of normalised IDF: the paper's, and that of I-Match."""
PUBLISHED = {
    "distinct spots in [.2, .85]": 6848,
    "distinct words in [.2, .85]": 16097,
    "distinct 3-shingles in [.2, .85]": 65453,
    "distinct words in [.4, .75]": 9473,
    "distinct spots in [.4, .75]": 4575,
    "memory of 1-Shingles by SpotSigs'": 24.8 / 2.5,
    "memory of 3-Shingles by SpotSigs'": 18.6 / 2.5,
    "mean Cosine": 0.64,
}
"""Table 1 and Figure 4 of the paper."""
ENTRY_BYTES, DOCUMENT_BYTES = 10, 4
"""Constants of the paper's formula of memory (section 5.4.1)."""
SAMPLE = 4000
"""Number of sampled pairs of pages for the similarity of templates."""
A_CLUSTER = 60
"""Number of sampled pairs of each cluster for the similarity of articles, drawn with replacement."""


class KnownPage(NamedTuple):
    """Cluster and site of a page, its visible text and that of its article."""

    cluster: str
    site: str
    text: str
    article: str


def measure(pages: Iterable[KnownPage]) -> dict[str, float]:
    """Return the values of the rows of `table`, by label, in one pass over the pages.

    There must be at least two clusters, and at least two pages in each.
    """
    scheme = SpotSignatures()
    articles: dict[str, tuple[Counter[str], Counter[int]]] = {}
    clusters, sites, words, frames, versions = [], [], [], [], []
    spot_df: Counter[int] = Counter()
    shingle_df: Counter[tuple[str, ...]] = Counter()
    words_of: dict[str, set[str]] = defaultdict(set)
    around, dense = 0, 0
    for page in pages:
        tokens = WORD.findall(page.text.lower())
        if page.article not in articles:
            spots = scheme(tokenize(page.article))
            articles[page.article] = Counter(WORD.findall(page.article.lower())), Counter(spots.tolist())
        article, article_spots = articles[page.article]
        count = Counter(tokens)
        rest = count - article
        around += rest.total()
        dense += sum(rest[word] for word in set(scheme.antecedents))
        spot_df.update(set(scheme(tokenize(page.text)).tolist()))
        shingle_df.update(set(zip(tokens, tokens[1:], tokens[2:], strict=False)))
        words_of[page.cluster].update(article)
        clusters.append(page.cluster)
        sites.append(page.site)
        words.append(count)
        frames.append(frozenset(rest))
        versions.append(article_spots)
    n = len(clusters)
    word_df = Counter(word for count in words for word in count)
    counted = {"spots": spot_df.values(), "words": word_df.values(), "3-shingles": shingle_df.values()}
    found = {(name, band): _in_band(df, n, BANDS[band]) for name, df in counted.items() for band in BANDS}
    memory = {name: ENTRY_BYTES * found[name, "[.2, .85]"][1] + DOCUMENT_BYTES * n for name in counted}
    chance = random.Random(0)
    same, other = _frames_shared(clusters, sites, frames, chance)
    return (
        {"pages": n, "clusters": len(words_of), "sites": len(set(sites))}
        | {f"distinct {name} in {band}": found[name, band][0] for name, band in found}
        | {
            "memory of 1-Shingles by SpotSigs'": memory["words"] / memory["spots"],
            "memory of 3-Shingles by SpotSigs'": memory["3-shingles"] / memory["spots"],
            "mean Cosine": float(cluster_cosines(words, word_df, np.unique(clusters, return_inverse=True)[1]).mean()),
            "tokens a page": sum(count.total() for count in words) / n,
            "tokens a frame": around / n,
            "spots per token of frames": dense / around,
            "frames' words shared on one site": same,
            "frames' words shared by two sites": other,
            "articles' spots shared by versions": _versions_shared(clusters, versions, chance),
            "articles' words of one story only": _own_share(words_of.values()),
        }
    )


def cluster_cosines(counts: list[Counter[str]], df: Counter[str], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean Cosine over the pairs of each cluster; 1 for a cluster of one page.

    The squared length of a sum of unit vectors is the sum of all Cosines, including those of each vector with itself.
    """
    column = {word: i for i, word in enumerate(df)}
    idf = np.log(len(counts) / np.array(list(df.values())))
    indptr = np.cumsum([0, *map(len, counts)])
    indices = [column[word] for count in counts for word in count]
    matrix = (
        sp.csr_array(([float(k) for count in counts for k in count.values()], indices, indptr)).multiply(idf).tocsr()
    )
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    unit = matrix.multiply(1 / lengths[:, None]).tocsr()
    member = sp.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    sums = (member @ unit).tocsr()
    sizes = np.bincount(labels)
    pairs = np.maximum(sizes * (sizes - 1), 1)
    return np.where(sizes > 1, (sums.multiply(sums).sum(axis=1) - sizes) / pairs, 1.0)


def _own_share(stories: Iterable[set[str]]) -> float:
    """Return the fraction of words that occur in one story only."""
    counts = Counter(word for story in stories for word in story)
    return sum(count == 1 for count in counts.values()) / len(counts)


def _in_band(df: Iterable[int], n: int, band: tuple[float, float]) -> tuple[int, int]:
    """Return the number of signatures in a band of normalised IDF, and the number of their entries."""
    counts = np.array(list(df))
    idf = np.log(n / counts) / np.log(n)
    inside = counts[(idf >= band[0]) & (idf <= band[1])]
    return len(inside), int(inside.sum())


def _frames_shared(
    clusters: Sequence[str], sites: Sequence[str], frames: Sequence[frozenset[str]], chance: random.Random
) -> tuple[float, float]:
    """Return the mean similarity of templates within a site and between sites, over pages of different clusters."""
    at = defaultdict(list)
    for i, site in enumerate(sites):
        at[site].append(i)
    same: list[float] = []
    other: list[float] = []
    for _ in range(SAMPLE):
        i = chance.randrange(len(sites))
        for j, found in ((chance.choice(at[sites[i]]), same), (chance.randrange(len(sites)), other)):
            if clusters[i] != clusters[j] and (found is same or sites[i] != sites[j]):
                found.append(len(frames[i] & frames[j]) / max(1, len(frames[i] | frames[j])))
    return float(np.mean(same)) if same else float("nan"), float(np.mean(other)) if other else float("nan")


def _versions_shared(clusters: Sequence[str], spots: Sequence[Counter[int]], chance: random.Random) -> float:
    """Return the mean similarity of the spots of two articles of a cluster."""
    of = defaultdict(list)
    for i, cluster in enumerate(clusters):
        of[cluster].append(i)
    found = []
    for members in of.values():
        for _ in range(A_CLUSTER if len(members) > 1 else 0):
            a, b = (spots[i] for i in chance.sample(members, 2))
            if a or b:
                found.append((a & b).total() / (a | b).total())
    return float(np.mean(found))


def known_pages(name: str, seed: int, **choices: object) -> Iterator[KnownPage]:
    """Yield the pages of ``gold``, ``gold_prose`` or ``newsframes``, with its fields as choices, and their articles."""
    if name == "newsframes":
        from data.collections.newsframes import NewsFrames
        from data.collections.newsframes.assembly import printed

        collection = NewsFrames(seed=seed, **choices)  # type: ignore[arg-type]
        stories, frames = collection.parts()
        for page in collection.layout():
            text = stories[page.story].versions[page.version]
            html = printed(frames[page.frame], text)
            yield KnownPage(
                page.cluster, frames[page.frame].site, _text(html), "\n".join((text.headline, *text.paragraphs))
            )
        return
    from data.collections.gold import listed
    from data.collections.gold import pages as prose

    for made in (listed if name == "gold" else prose).generate(seed, 2160, 68):
        article = _text("<body><p>" + "</p><p>".join((made.version.headline, *made.version.paragraphs)))
        yield KnownPage(made.cluster, made.site.key, _text(made.html), article)


def _text(html: str) -> str:
    return visible_text(Document(id="", content=html))


def table(measured: Mapping[str, Mapping[str, float]]) -> str:
    """Return the properties of collections as a Markdown table, with the published values."""

    def shown(value: float | None) -> str:
        if value is None:
            return ""
        return (
            f"{value:,.0f}"
            if value > 50 or value == int(value) > 1
            else f"{value:.3f}"
            if value < 1
            else f"{value:.1f}"
        )

    rows = [("", "published", *measured), ("---", *["---:"] * (len(measured) + 1))]
    for name in next(iter(measured.values())):
        rows.append((name, shown(PUBLISHED.get(name)), *(shown(values[name]) for values in measured.values())))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Write the properties of collections to standard output."""
    parser = argparse.ArgumentParser(prog="python -m data.collections.statistics", description=main.__doc__)
    parser.add_argument("names", nargs="+", choices=("gold", "gold_prose", "newsframes"))
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--path", help="folder of the packages of newsframes")
    chosen = parser.parse_args()
    measured = {}
    for name in chosen.names:
        choices = {"path": chosen.path} if name == "newsframes" and chosen.path else {}
        measured[name] = measure(known_pages(name, chosen.seed, **choices))
    sys.stdout.write(table(measured))


if __name__ == "__main__":
    main()
