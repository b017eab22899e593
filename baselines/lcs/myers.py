"""Myers' difference algorithm in linear space: the longest common subsequence of two sequences."""

from __future__ import annotations

import numpy as np

from spotsigs.arrays.kernel import kernel


@kernel
def align(a, b, limit, out_partner, reach):  # type: ignore[no-untyped-def]
    """Write the partner in ``b`` of each position of ``a``, or -1; return D, or -1 if it exceeds the limit.

    ``D = |a| + |b| - 2 |LCS|`` is the least number of insertions and deletions that turn ``a`` into ``b``. The
    algorithm needs O((|a| + |b|) D) time and linear space (E. W. Myers. An O(ND) difference algorithm and its
    variations. Algorithmica 1(2), 1986, section 4b): it searches from both ends until the two paths overlap, and then
    solves the two parts. The choice among several longest subsequences depends only on the order of the arguments.

    ``reach`` is scratch of shape (2, |a| + |b| + 5) or longer. A box on the stack is ``a[a0:a1]`` against ``b[b0:b1]``.
    It is replaced by two parts with at most half the differences each, so the stack is at most logarithmic in D.
    """
    out_partner[: len(a)] = -1
    stack = np.empty((130, 4), np.int64)
    top = _push(stack, 0, 0, len(a), 0, len(b))
    total = -1
    while top > 0:
        top -= 1
        a0, a1, b0, b1 = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            out_partner[a0] = b0
            a0 += 1
            b0 += 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1 -= 1
            b1 -= 1
            out_partner[a1] = b1
        if a0 == a1 or b0 == b1:
            differences, x, y = a1 - a0 + b1 - b0, a0, b0
        else:
            differences, x, y = middle(a[a0:a1], b[b0:b1], limit, reach)
        if total < 0:  # first box: D of the two sequences
            if differences < 0 or differences > limit:
                return -1
            total = differences
        if a0 < a1 and b0 < b1:
            top = _push(stack, top, a0 + x, a1, b0 + y, b1)
            top = _push(stack, top, a0, a0 + x, b0, b0 + y)
    return total


@kernel
def _push(stack, top, a0, a1, b0, b1):  # type: ignore[no-untyped-def]
    """Push a box; return the new height.

    Elements are assigned one by one, because an assignment of rows takes seconds to compile.
    """
    stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = a0, a1, b0, b1
    return top + 1


@kernel
def middle(a, b, limit, reach):  # type: ignore[no-untyped-def]
    """Return D of two non-empty sequences, and a middle point ``(x, y)`` of a shortest path; D is -1 above the limit.

    ``reach[0, k]`` is the furthest position in ``a`` of a path of d differences from the start on diagonal
    ``k = x - y``, ``reach[1, k]`` the same from the end, on reversed sequences; -1 if no such path is inside the box.
    The point is the start of the last run of equal symbols on the path that completes the overlap.
    """
    n, m = len(a), len(b)
    centre = (n + m) // 2 + 2
    odd = (n - m) % 2 != 0
    reach[:, centre - 1] = -1
    reach[:, centre + 1] = 0
    for d in range((n + m + 1) // 2 + 1):
        for side in range(2):
            if 2 * d - 1 + side > limit:
                return -1, 0, 0
            own, other = reach[side], reach[1 - side]
            if d > 0:
                own[centre - d - 1] = -1
                own[centre + d + 1] = -1
            for k in range(-d + 2 * max(0, d - m), d - 2 * max(0, d - n) + 1, 2):
                x = own[centre + k + 1]  # one step down from the diagonal above ...
                if x - k > m:
                    x = -1
                right = own[centre + k - 1] + 1  # ... or one to the right from the one below
                if right > x and 0 < right <= n:
                    x = right
                if x >= 0:
                    start = x
                    if side == 0:
                        while x < n and x - k < m and a[x] == b[x - k]:
                            x += 1
                    else:
                        while x < n and x - k < m and a[n - 1 - x] == b[m - 1 - x + k]:
                            x += 1
                    facing = n - m - k
                    # The other side has made d - 1 steps before side 0's turn, d steps before side 1's.
                    overlaps = odd == (side == 0) and abs(facing) < d + side and other[centre + facing] >= 0
                    if overlaps and x + other[centre + facing] >= n:
                        if side == 0:
                            return 2 * d - 1, start, start - k
                        return 2 * d, n - start, m - start + k
                own[centre + k] = x
    return -1, 0, 0
