"""Algorithm 1 with its bounds exactly as printed, in floating-point or rational arithmetic."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Multiset = Counter[int]
Number = float | Fraction


@dataclass(frozen=True, kw_only=True)
class AsPrinted:
    """Result of the printed algorithm."""

    pairs: set[tuple[int, int]]  # similar documents, the smaller number first
    comparisons: list[int]  # number of Jaccard computations for each document


@dataclass(kw_only=True)
class _Partition:
    """Documents of similar length and their inverted lists, longest first."""

    members: list[int] = field(default_factory=list)
    lists: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


def algorithm1(documents: Sequence[Multiset], tau: Number, rho: int = 1000) -> AsPrinted:
    """Run the paper's Algorithm 1 with every bound as ``(1 - tau) * length``.

    All compared documents are marked as checked, as the text states; line 21 marks only similar ones.

    Bounds are rounded with a float `tau` and exact with a Fraction; `rho` is the largest partition boundary.

    References
    ----------
    Theobald, Siddharth, Paepcke: SpotSigs, SIGIR 2008, sections 4.2 and 4.3.1.
    """
    lengths = [sum(document.values()) for document in documents]
    boundaries = [1]
    for length in range(2, rho + 1):
        if length - boundaries[-1] > (1 - tau) * length:
            boundaries.append(length)
    place = [sum(boundary <= length for boundary in boundaries) - 1 for length in lengths]
    partitions = [_Partition() for _ in boundaries]
    for i in sorted(range(len(documents)), key=lambda i: -lengths[i]):
        if lengths[i]:
            partitions[place[i]].members.append(i)
            for signature in documents[i]:
                partitions[place[i]].lists[signature].append(i)
    printed = AsPrinted(pairs=set(), comparisons=[0] * len(documents))
    for i, length in enumerate(lengths):
        if not length:
            continue
        k, checked = place[i], set[int]()
        order = sorted(documents[i], key=lambda s: (len(partitions[k].lists.get(s, ())), s))
        _process(documents, lengths, i, partitions[k], order, checked, tau, printed)
        if k + 1 < len(boundaries) and boundaries[k + 1] - length <= (1 - tau) * boundaries[k + 1]:  # line 29
            _process(documents, lengths, i, partitions[k + 1], order, checked, tau, printed)
    return printed


def _process(
    documents: Sequence[Multiset],
    lengths: Sequence[int],
    i: int,
    partition: _Partition,
    order: Sequence[int],
    checked: set[int],
    tau: Number,
    printed: AsPrinted,
) -> None:
    """Process a document's lists in one partition: lines 8 to 28."""
    delta1 = 0
    for signature in order:
        for j in partition.lists.get(signature, ()):
            delta2 = lengths[i] - lengths[j]
            if j == i or j in checked:
                continue
            if delta2 < 0 and delta1 - delta2 > (1 - tau) * lengths[j]:  # line 15
                continue
            if delta2 >= 0 and delta1 + delta2 > (1 - tau) * lengths[i]:  # line 17
                break
            checked.add(j)
            printed.comparisons[i] += 1
            if similarity(documents[i], documents[j], tau) >= tau:
                printed.pairs.add((min(i, j), max(i, j)))
        delta1 += documents[i][signature]
        unseen = [lengths[j] for j in partition.members if j not in checked]
        if not unseen or delta1 >= (1 - tau) * max(unseen):  # line 26
            break


def similarity(a: Multiset, b: Multiset, like: Number) -> Number:
    """Return the multiset Jaccard in the arithmetic of ``like``."""
    shared, union = sum((a & b).values()), sum((a | b).values())
    return Fraction(shared, union) if isinstance(like, Fraction) else shared / union
