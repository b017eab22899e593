"""Numbers without gaps, against `numpy.unique`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotsigs.arrays.parallel import distinct, renumbered

IDS = st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 200), max_size=60)


@given(parts=st.lists(st.lists(st.integers(0, 5000), max_size=60), min_size=1, max_size=3))
def test_ids_get_their_rank_among_all_that_occur(parts: list[list[int]]) -> None:
    arrays = [np.array(part, np.int32) for part in parts]
    names, ranks = np.unique(np.concatenate(arrays), return_inverse=True)
    numbers, n = renumbered(arrays, 1 + max((max(part, default=-1) for part in parts), default=-1))
    assert n == len(names)
    assert np.concatenate(numbers).tolist() == ranks.tolist()
    assert [len(part) for part in numbers] == [len(part) for part in arrays]


@pytest.mark.parametrize("edge", [0, 63, 64, 65, 127, 128, 10**6])
def test_ids_at_the_edge_of_a_word(edge: int) -> None:
    ids = np.array([edge, 0, edge, max(edge - 1, 0)], np.int32)
    [numbers], n = renumbered([ids], edge + 1)
    assert (n, numbers.tolist()) == (len(set(ids.tolist())), np.unique(ids, return_inverse=True)[1].tolist())


@given(values=IDS)
def test_distinct_values_ascend(values: list[int]) -> None:
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))
