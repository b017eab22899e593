"""Calibration of `data.collections.gold.GoldProse`: ``python -m data.collections.gold.calibration``.

The statistics are those of the pages alone. No duplicate detector runs, and no precision, recall or F1 is used.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from data.collections.gold import GoldProse
from data.collections.gold.pages import GoldPage, generate

ARTICLES = frozenset(("a", "an", "the"))
CLOSED_CLASS = """
    a about above according after again against all although am amid an and another any anyone are as at be because
    been before behind being below between both but by can cannot could despite did do does done during each either
    enough even every everyone few for from had has have he her here him his how i if in instead into is it its just
    like many may me might more most much must my neither never no nobody nor not nothing now of off on once one only
    or other our out over own s same she should since so some someone still such t than that the their them then there
    these they this those though through to too under until up us very was we were what when where whether which while
    who whose why will with within without would yet you your"""
WORD = re.compile(r"[^\W_]+")
BAND = (0.2, 0.85)
"""The paper's band of normalised IDF."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Measured statistics.

    Attributes
    ----------
    content_bytes : int
        Bytes of all pages.
    sizes : ndarray of int64, shape (n_clusters,)
        Number of pages in each cluster.
    cosines : ndarray of float64, shape (n_clusters,)
        Mean Cosine of the pairs of each cluster: visible tokens of the whole page, raw counts times ``log(N / df)``.
    tokens : float
        Mean number of visible tokens of a page.
    article_share : float
        Fraction of a page's visible tokens in the article, averaged over pages.
    articles, closed_class : float
        Fraction of *a*, *an*, *the*, and of closed-class words, in the tokens of the articles.
    vocabulary, shingles : int
        Number of distinct tokens, and of distinct 3-shingles, in the paper's IDF band.
    """

    content_bytes: int
    sizes: NDArray[np.int64]
    cosines: NDArray[np.float64]
    tokens: float
    article_share: float
    articles: float
    closed_class: float
    vocabulary: int
    shingles: int


def measure(pages: Iterable[GoldPage]) -> Figures:
    """Measure the statistics of a collection in one pass over its pages.

    Parameters
    ----------
    pages : iterable of GoldPage
        Result of `data.collections.gold.pages.generate`.

    Returns
    -------
    Figures
    """
    clusters: list[str] = []
    counts: list[Counter[str]] = []
    shingle_df: Counter[tuple[str, ...]] = Counter()
    article_words: Counter[str] = Counter()
    shares, content_bytes = [], 0
    for page in pages:
        tokens = visible_tokens(page.html)
        article = visible_tokens("<body>" + " ".join(page.version.paragraphs))
        clusters.append(page.cluster)
        counts.append(Counter(tokens))
        shingle_df.update(set(zip(tokens, tokens[1:], tokens[2:], strict=False)))
        article_words.update(article)
        shares.append(len(article) / len(tokens))
        content_bytes += len(page.content)
    n, n_article = len(counts), article_words.total()
    word_df = Counter(word for count in counts for word in count)
    labels = np.unique(clusters, return_inverse=True)[1]
    return Figures(
        content_bytes=content_bytes,
        sizes=np.bincount(labels),
        cosines=cluster_cosines(counts, word_df, labels),
        tokens=sum(count.total() for count in counts) / n,
        article_share=float(np.mean(shares)),
        articles=sum(article_words[word] for word in ARTICLES) / n_article,
        closed_class=sum(article_words[word] for word in CLOSED_CLASS.split()) / n_article,
        vocabulary=_in_band(np.array(list(word_df.values())), n),
        shingles=_in_band(np.array(list(shingle_df.values())), n),
    )


def visible_tokens(html: str) -> list[str]:
    """Return the lower-cased runs of letters and digits in the text of a page, without scripts and styles."""
    tree = LexborHTMLParser(html)
    tree.strip_tags(["script", "style"])
    return WORD.findall(tree.body.text(separator=" ").lower()) if tree.body else []


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


def _in_band(df: NDArray[np.int64], n: int) -> int:
    idf = np.log(n / df) / np.log(n)
    return int(np.count_nonzero((idf >= BAND[0]) & (idf <= BAND[1])))


def table(figures: Figures) -> str:
    """Return target and measured statistics as a Markdown table."""
    f, low, high = figures, *np.percentile(figures.cosines, [25, 75])
    rows = [
        ("Calibrated on", "target", "measured"),
        ("---", "---", "---"),
        ("pages", "2,160", f"{f.sizes.sum():,}"),
        ("clusters", "68", f"{len(f.sizes)}"),
        ("content, 10⁶ bytes", "102 ± 1 %", f"{f.content_bytes / 1e6:.1f}"),
        ("mean Cosine within a cluster, averaged over clusters", "0.64 ± 0.02", f"{f.cosines.mean():.3f}"),
        ("the same, lowest and highest cluster", "wide (Figure 4)", f"{f.cosines.min():.2f}, {f.cosines.max():.2f}"),
        ("the same, quartiles", "wide (Figure 4)", f"{low:.2f}, {high:.2f}"),
        (
            "pages a cluster: fewest, median, most",
            "uneven",
            f"{f.sizes.min()}, {np.median(f.sizes):g}, {f.sizes.max()}",
        ),
        ("article's share of a page's visible tokens", "a minor fraction", f"{f.article_share:.2f}"),
        ("*a*, *an*, *the* among the articles' tokens", "8–10 %", f"{f.articles:.1%}".replace("%", " %")),
        ("closed-class words among the articles' tokens", "40–50 %", f"{f.closed_class:.1%}".replace("%", " %")),
        ("", "", ""),
        ("Not calibrated on", "published", "measured"),
        ("visible tokens a page", "–", f"{f.tokens:,.0f}"),
        ("distinct tokens within IDF [0.2, 0.85]", "16,097", f"{f.vocabulary:,}"),
        ("distinct 3-shingles within IDF [0.2, 0.85]", "65,453", f"{f.shingles:,}"),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Write the table of a seed to standard output."""
    default = GoldProse()
    parser = argparse.ArgumentParser(prog="python -m data.collections.gold.calibration", description=main.__doc__)
    for name in ("seed", "pages", "clusters"):
        parser.add_argument(f"--{name}", type=int, default=getattr(default, name))
    chosen = vars(parser.parse_args())
    GoldProse(**chosen)  # checks the ranges
    sys.stdout.write(table(measure(generate(**chosen))))


if __name__ == "__main__":
    main()
