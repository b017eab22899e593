"""A warning about decisions that may be wrong, with the option to change."""

from __future__ import annotations

import numpy as np

from spotsigs.clustering.clusters import GIANT, ClusterMethod, Cohesion
from spotsigs.errors import counted, option
from spotsigs.evaluation.text_lost import FEWEST_REMOVED, is_much
from spotsigs.method import Method
from spotsigs.records import Clusters, Pairs
from spotsigs.signatures.boilerplate import Boilerplate

LARGE = 0.05
"""Fraction of all pages above which a group is suspicious."""

FEWEST_PAIRS = 100
"""Least number of pairs with a distribution."""

NEAR = 0.1
"""Part of the range from tau to 1 in which the pairs are near tau."""

MOST_NEAR = 0.25
"""Fraction of pairs near tau above which tau is not in a valley: .03 to .19 were measured if
pages differ in more than their story, .29 to .39 if unrelated pages share a template."""

MOST_REMOVED_LOST = 0.01
"""Fraction of the removed pages that are mostly lost above which a run warns."""


def near_tau(pairs: Pairs, tau: float | None) -> float | None:
    """Return the fraction of pairs that just reach tau, copies left out; None if there are too few pairs.

    Near-duplicates spread over the range from tau to 1. If many pairs are at its lower end, tau is on the slope of the
    unrelated pages, not in a valley between these and the similar ones.
    """
    if tau is None or tau >= 1:
        return None
    near = others = 0
    for _, _, similarity in pairs.chunks():
        others += int(np.count_nonzero(similarity < 1))
        near += int(np.count_nonzero(similarity < tau + NEAR * (1 - tau)))
    return near / others if others >= FEWEST_PAIRS else None


def warning(method: Method, clusters: Clusters, inside: Cohesion, near: float | None, *, listed: bool = True) -> str:
    """Return a sentence that names the option to change if decisions may be wrong, else an empty one.

    The arguments are the method of a run, its clusters with their cohesion, and the result of `near_tau`; if not
    ``listed``, the only known pairs are those with leaders.
    """
    tau = method.tau
    n, largest = len(clusters.labels), int(clusters.sizes.max(initial=0))
    loose = apart = False
    far = "most of which are not similar to each other"
    if len(inside.labels):
        sizes = clusters.sizes[inside.labels].astype(np.int64)
        at = int(np.argmax(sizes))
        loose = 4 * int(inside.pairs[at]) < int(sizes[at]) * (int(sizes[at]) - 1)
        if not listed:
            far = "most of which only just reach tau with the page that is kept"
            loose = tau is not None and bool(inside.mean[at] < tau + MOST_NEAR * (1 - tau))
        apart = 2 * int(inside.apart.sum()) > int(sizes.sum()) - len(sizes)
    large = largest >= GIANT and largest > LARGE * n
    group = f"the largest group has {largest:,} of {n:,} pages"
    if method.clusters is ClusterMethod.components and (apart or (large and loose)):
        unpaired = f"{group}, most of them without a pair" if large and loose else "most removed pages have no pair"
        return f"warning: {unpaired} with the page that is kept; give {option('clusters', 'leaders')}"
    remedies = []
    if method.boilerplate is Boilerplate.keep:
        remedies.append(option("boilerplate", "remove"))
    if tau is not None and tau < 0.9:
        remedies.append(_higher_threshold(tau))
    if not remedies:
        return ""
    if large and loose:
        return f"warning: {group}, {far}; give {' or '.join(remedies)}"
    if near is not None and near > MOST_NEAR:
        some = f"{100 * near:.0f} % of all pairs only just reach tau, as unrelated pages do"
        return f"warning: {some}; give {' or '.join(remedies)}"
    return ""


def text_warning(method: Method, lost: float, mostly_lost: int, removed: int) -> str:
    """Return a sentence that names a higher threshold if much text is lost, else an empty one.

    The arguments are attributes of `spotsigs.evaluation.text_lost.TextLost`, and the number of removed pages.
    """
    if method.tau is None or method.tau >= 0.9 or removed < FEWEST_REMOVED:
        return ""
    if is_much(lost, removed):
        return f"warning: {100 * lost:.1f} % of the text is in no kept page; give {_higher_threshold(method.tau)}"
    if mostly_lost > MOST_REMOVED_LOST * removed:
        some = f"{mostly_lost:,} of {counted(removed, 'removed page')}"
        return f"warning: most of the text of {some} is in no kept page; give {_higher_threshold(method.tau)}"
    return ""


def _higher_threshold(tau: float) -> str:
    return f"a higher threshold, as in {option('tau', f'{min(tau + 0.1, 0.95):.2g}')}"
