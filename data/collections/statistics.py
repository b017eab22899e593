"""Statistics of a collection without any detector: ``python -m data.collections.statistics gold``.

They are the counts in Table 1 of the paper, and properties in which collections differ: the density of spots in
templates, the similarity of templates within and between sites, the similarity of versions of a story, and the fraction
of words that occur in one story only.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from data.collections.gold.calibration import WORD, cluster_cosines
from spotsigs.records import Document
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.text.tokens import tokenize
from spotsigs.text.visible import visible_text

BAND = (0.2, 0.85)
"""The paper's band of normalised IDF."""
IMATCH_BAND = (0.4, 0.75)
"""IDF band of I-Match."""
PUBLISHED = {"spots": 6848, "words": 16097, "shingles": 65453, "imatch_words": 9473, "imatch_spots": 4575}
"""Numbers of distinct signatures of the Gold Set in these bands (Table 1 of the paper)."""
PUBLISHED_MEMORY = {"words": 24.8 / 2.5, "shingles": 18.6 / 2.5}
"""Memory of the Gold Set's shingles, divided by that of SpotSigs (Table 1)."""
PUBLISHED_COSINE = 0.64
ENTRY_BYTES, DOCUMENT_BYTES = 10, 4
"""Constants of the paper's formula of memory (section 5.4.1)."""
SAMPLE = 4000
"""Number of sampled pairs of pages for the similarity of templates."""
A_CLUSTER = 60
"""Number of sampled pairs of each cluster for the similarity of articles, drawn with replacement."""


class KnownPage(NamedTuple):
    """Page with a known article.

    Attributes
    ----------
    cluster, site : str
        Cluster and site of the page.
    text, article : str
        Visible text of the page and of its article.
    """

    cluster: str
    site: str
    text: str
    article: str


@dataclass(frozen=True, kw_only=True)
class Properties:
    """Measured properties.

    Attributes
    ----------
    pages, clusters, sites : int
        Numbers of pages, clusters and sites.
    counts : mapping of str to int
        Numbers of distinct signatures in the bands, named as in `PUBLISHED`.
    memory : mapping of str to float
        Memory of shingles divided by that of spots, named as in `PUBLISHED_MEMORY`.
    cosine : float
        Mean Cosine within a cluster, averaged over clusters.
    tokens, frame_tokens : float
        Mean number of tokens of a page, and of its template.
    density : float
        Antecedents per token of the templates.
    same_site, other_site : float
        Mean Jaccard similarity of the templates' words for pages of one site and of two, in different clusters.
    versions : float
        Mean Jaccard similarity of the spots of two articles in a cluster.
    own : float
        Fraction of the articles' words that occur in one cluster only.
    """

    pages: int
    clusters: int
    sites: int
    counts: Mapping[str, int]
    memory: Mapping[str, float]
    cosine: float
    tokens: float
    frame_tokens: float
    density: float
    same_site: float
    other_site: float
    versions: float
    own: float


def measure(pages: Iterable[KnownPage]) -> Properties:
    """Measure a collection in one pass over its pages.

    Parameters
    ----------
    pages : iterable of KnownPage
        Pages of at least two clusters, at least two in each.

    Returns
    -------
    Properties
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
    counted = {"spots": spot_df.values(), "words": word_df.values(), "shingles": shingle_df.values()}
    found = {name: _in_band(df, n, BAND) for name, df in counted.items()}
    memory = {name: ENTRY_BYTES * entries + DOCUMENT_BYTES * n for name, (_, entries) in found.items()}
    chance = random.Random(0)
    same, other = _frames_shared(clusters, sites, frames, chance)
    return Properties(
        pages=n,
        clusters=len(words_of),
        sites=len(set(sites)),
        counts={name: distinct for name, (distinct, _) in found.items()}
        | {f"imatch_{name}": _in_band(counted[name], n, IMATCH_BAND)[0] for name in ("words", "spots")},
        memory={name: memory[name] / memory["spots"] for name in PUBLISHED_MEMORY},
        cosine=float(cluster_cosines(words, word_df, np.unique(clusters, return_inverse=True)[1]).mean()),
        tokens=sum(count.total() for count in words) / n,
        frame_tokens=around / n,
        density=dense / around,
        same_site=same,
        other_site=other,
        versions=_versions_shared(clusters, versions, chance),
        own=_own_share(words_of.values()),
    )


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
    """Yield the pages of a collection whose articles are known.

    Parameters
    ----------
    name : str
        ``gold``, ``gold_prose`` or ``newsframes``.
    seed : int
        Seed of the collection.
    **choices
        Fields of `data.collections.newsframes.NewsFrames`.
    """
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


def table(measured: Mapping[str, Properties]) -> str:
    """Return the properties of collections as a Markdown table, with the published values."""

    def count(value: float) -> str:
        return f"{value:,.0f}"

    def part(value: float) -> str:
        return f"{value:.3f}" if value < 1 else f"{value:.1f}"

    first = next(iter(measured.values()))
    rows = [("", "published", *measured), ("---", *["---:"] * (len(measured) + 1))]
    rows += [
        (name, "", *(count(getattr(axes, name)) for axes in measured.values()))
        for name in ("pages", "clusters", "sites")
    ]
    labels = {
        "spots": "distinct spots in [.2, .85]",
        "words": "distinct words in [.2, .85]",
        "shingles": "distinct 3-shingles in [.2, .85]",
        "imatch_words": "distinct words in [.4, .75]",
        "imatch_spots": "distinct spots in [.4, .75]",
    }
    rows += [
        (labels[name], count(PUBLISHED[name]), *(count(axes.counts[name]) for axes in measured.values()))
        for name in first.counts
    ]
    memory = {"words": "memory of 1-Shingles by SpotSigs'", "shingles": "memory of 3-Shingles by SpotSigs'"}
    rows += [
        (memory[name], part(PUBLISHED_MEMORY[name]), *(part(axes.memory[name]) for axes in measured.values()))
        for name in first.memory
    ]
    rows.append(("mean Cosine", part(PUBLISHED_COSINE), *(part(axes.cosine) for axes in measured.values())))
    names = {
        "tokens": "tokens a page",
        "frame_tokens": "tokens a frame",
        "density": "spots per token of frames",
        "same_site": "frames' words shared on one site",
        "other_site": "frames' words shared by two sites",
        "versions": "articles' spots shared by versions",
        "own": "articles' words of one story only",
    }
    for name, label in names.items():
        form = count if "tokens" in name else part
        rows.append((label, "", *(form(getattr(axes, name)) for axes in measured.values())))
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
