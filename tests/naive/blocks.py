"""Slow twin of the counting of visits."""

from spotsigs.matching.bounds import bounds
from spotsigs.matching.join_kernels import _frequency_class


def visits(a, b, tau):
    """Count, row by row and signature by signature, the rows of `a` that each row of `b` visits; see block_cost."""
    later = a if b is None else b
    rows_a = [dict(zip(*map(list, a.row(r)), strict=True)) for r in range(len(a))]
    rows_b = [dict(zip(*map(list, later.row(r)), strict=True)) for r in range(len(later))]
    frequency = {}
    for row in rows_a if b is None else rows_a + rows_b:
        for signature in row:
            frequency[signature] = frequency.get(signature, 0) + 1
    tables = bounds(tau, max([1, *a.lengths.tolist(), *later.lengths.tolist()]))

    def prefix(row, size):
        chosen = set()
        for signature in sorted(row, key=lambda s: (_frequency_class(frequency[s]), s)):
            if size <= 0:
                break
            chosen.add(signature)
            size -= row[signature]
        return chosen

    found = []
    for r, row in enumerate(rows_b):
        length = int(later.lengths[r])
        looks_up = prefix(row, int(tables.probed[length]))
        total = 0
        for s, other in enumerate(rows_a[:r] if b is None else rows_a):
            shorter = int(a.lengths[s])
            if shorter / max(length, 1) >= tau:
                size = min(shorter, shorter - int(tables.least[2 * shorter]) + int(tables.meetings[shorter]))
                total += len(looks_up & prefix(other, size))
        found.append(total)
    return found
