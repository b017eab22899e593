"""One join for several thresholds: the pairs at a threshold are those of a lower one that reach it."""

from __future__ import annotations

import json

from spotsigs.contracts import Matcher
from spotsigs.records import Corpus, Pairs
from spotsigs.storage.identity import identity


class JoinedOnce:
    """The pairs of matchers over one corpus, joined once for matchers that differ in their threshold alone.

    A `nested` matcher, as most verified ones, finds the same candidates at each threshold and reports those that reach
    it. A matcher without a threshold has one set of pairs. Any other matcher runs each time.

    Examples
    --------
    >>> from spotsigs.matching.prefix_join import SpotSigsTight
    >>> from spotsigs.records import Vectors
    >>> joined = JoinedOnce(Corpus(Vectors.from_sets([{1, 2, 3}, {1, 2, 3}, {1, 2, 4}])))
    >>> [len(joined(SpotSigsTight(tau=tau))) for tau in (0.4, 0.9)]
    [3, 1]
    >>> joined.at(SpotSigsTight(tau=0.9))
    0.4
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._found: dict[str, tuple[float | None, Pairs]] = {}

    def at(self, matcher: Matcher) -> float | None:
        """Return the threshold of the join that has the matcher's pairs; None if the matcher has to run."""
        lowest, _ = self._found.get(_method(matcher), (None, None))
        if lowest is None or matcher.threshold is None or not matcher.nested:
            return None
        return lowest if lowest <= matcher.threshold else None

    def __call__(self, matcher: Matcher) -> Pairs:
        """Return the pairs of the matcher at its threshold."""
        method = _method(matcher)
        if self.at(matcher) is not None or (matcher.threshold is None and method in self._found):
            _, pairs = self._found[method]
            return pairs if matcher.threshold is None else pairs.at(matcher.threshold)
        pairs = matcher(self.corpus)
        self._found[method] = matcher.threshold, pairs
        return pairs


def _method(matcher: Matcher) -> str:
    """Return the identity of a matcher without its threshold."""
    return json.dumps(identity(matcher.at(1.0)))
