"""Identities are JSON, distinguish settings, and describe differences."""

import json
from dataclasses import dataclass, field

import pytest

from spotsigs.signatures.idf import IdfFilter
from spotsigs.signatures.spots import SpotSignatures
from spotsigs.storage.exact_duplicates import Sameness
from spotsigs.storage.identity import difference, identity, values_of


@dataclass(frozen=True)
class Wrapped:
    inner: object
    hidden: int = field(default=0, repr=False)


VALUES = [
    None,
    True,
    0.1,
    "a",
    [1, 2],
    {"a": 1},
    Sameness.text,
    IdfFilter(),
    IdfFilter(idf_min=0.1),
    Wrapped(1),
    Wrapped("1"),
    Wrapped(IdfFilter()),
    SpotSignatures(),
    SpotSignatures(c=2),
    json.dumps,
    identity,
]


def test_different_values_have_different_identities_that_are_json():
    actual = [identity(value) for value in VALUES]
    assert [json.loads(json.dumps(one)) for one in actual] == actual
    assert len({json.dumps(one) for one in actual}) == len(VALUES)
    assert identity(Wrapped(1, hidden=1)) == identity(Wrapped(1))
    assert identity((1, 2)) == [1, 2]
    assert identity({2, 1}) == [1, 2]


def test_closures_are_never_the_same():
    def make(k):
        return lambda: k

    assert identity(make(1)) != identity(make(1))


@pytest.mark.parametrize("a", range(len(VALUES)))
def test_a_difference_is_named_where_there_is_one(a):
    for b in range(len(VALUES)):
        assert bool(difference(identity(VALUES[a]), identity(VALUES[b]))) == (a != b)


def test_differences_name_the_field():
    one, other = (identity(Wrapped(SpotSignatures(c=c))) for c in (2, 3))
    assert difference(one, other) == "c=2, not 3"
    assert difference(identity(Wrapped(IdfFilter())), one) == "inner='IdfFilter', not 'SpotSignatures'"
    assert difference(identity(IdfFilter()), identity(SpotSignatures())) == "IdfFilter, not SpotSignatures"


def test_values_are_found_at_any_depth():
    nested = identity(Wrapped([Wrapped(SpotSignatures(language="de"))]))
    assert list(values_of(nested, "language")) == ["de"]
    assert list(values_of(nested, "nothing")) == []
