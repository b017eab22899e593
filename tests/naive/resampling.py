"""Reference implementation of the crossed bootstrap: the sample is built copy by copy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product


def pairs_of_sample(
    pairs: Sequence[tuple[int, int]],
    stories: Sequence[int],
    sites: Sequence[int],
    story_copies: Sequence[int],
    site_copies: Sequence[int],
) -> int:
    """Count the copies of pairs in a sample with this number of copies of each story and of each site.

    A page has a copy for each copy of its story and of its site. Two pages of one story form a pair only in the same
    copy of that story, and two pages of one site only in the same copy of that site.
    """
    count = 0
    for i, j in pairs:
        copies = (range(story_copies[stories[i]]), range(site_copies[sites[i]]))
        others = (range(story_copies[stories[j]]), range(site_copies[sites[j]]))
        for (story, site), (other_story, other_site) in product(product(*copies), product(*others)):
            same_story = stories[i] != stories[j] or story == other_story
            same_site = sites[i] != sites[j] or site == other_site
            count += same_story and same_site
    return count
