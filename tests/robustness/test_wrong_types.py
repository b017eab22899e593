"""Every public callable is called with values of every wrong type, generated from its signature."""

from __future__ import annotations

import inspect
import time
import warnings
from datetime import date
from fractions import Fraction

import numpy as np
import pytest

import spotsigs
from spotsigs import Clusters, Corpus, Document, Pairs, Truth, Vectors
from spotsigs.errors import InputError
from spotsigs.method import Method

PAGE = "The council has approved the plan for a new bridge that will be built by the end of the year."
PAGES = [PAGE, "A win for the home side in the rain.", PAGE + " It is late."]
VECTORS = Vectors.from_csr([0, 2, 4, 5], [7, 9, 7, 9, 7], [1, 2, 1, 1, 1])
PAIRS = spotsigs.self_join(VECTORS, 0.5)
ONE = np.array([0], np.int32), np.array([1], np.int32), np.array([1.0])
TRUTH = Truth.from_clusters(["a", "a", None])

WRONG = [
    None,
    True,
    False,
    -1,
    0,
    1.5,
    float("nan"),
    float("inf"),
    10**6,
    10**12,
    2**70,
    Fraction(1, 3),
    1j,
    "",
    "x",
    "best",
    b"x",
    [],
    [None],
    ["a", 1],
    [[0], [1, 2]],
    (),
    {},
    {"a": 1},
    {1, 2},
    object(),
    int,
    len,
    date(2026, 1, 1),
    np.float32(0.5),
    np.int8(-3),
    np.array([]),
    np.array([[1, 2]]),
    np.array([-5, 3]),
    np.array(["a"]),
    np.array([2.5]),
    np.array([2**31], np.int64),
    np.array([2**63], np.uint64),
    PAIRS,
    VECTORS,
]

RIGHT = {
    "dedup": {"pages": PAGES},
    "near_duplicates": {"pages": PAGES},
    "cluster": {"pairs": PAIRS},
    "self_join": {"vectors": VECTORS, "tau": 0.5},
    "join": {"left": VECTORS, "right": VECTORS, "tau": 0.5},
    "evaluate": {"pairs": PAIRS, "truth": TRUTH},
    "relative_recall": {"pairs": PAIRS, "base": PAIRS},
    "partition_boundaries": {"tau": 0.5},
    "tokenize": {"text": PAGE},
    "BruteForce": {},
    "Containment": {},
    "SpotSigs": {},
    "SpotSigsTight": {},
    "IdfFilter": {},
    "Method": {},
    "Method.of": {},
    "SpotSignatures": {},
    "InputError": None,
    "Corpus": {"vectors": VECTORS},
    "Document": {"id": "a", "content": PAGE},
    "Clusters": {
        "labels": np.array([0, 0]),
        "representatives": np.array([0]),
        "similarity_to_representative": np.ones(2),
    },
    "Pairs": {"i": ONE[0], "j": ONE[1], "similarity": ONE[2], "n": 2},
    "Pairs.build": {"i": ONE[0], "j": ONE[1], "similarity": ONE[2], "n": 2},
    "Pairs.at": {"tau": 0.5},
    "Pairs.where": {"keep": np.array([True])},
    "Pairs.to_pandas": {},
    "Pairs.chunks": {},
    "Truth": {"labels": np.array([0, -1])},
    "Truth.from_clusters": {"clusters": ["a", None]},
    "Vectors": {name: getattr(VECTORS, name) for name in ("indptr", "ids", "counts", "lengths", "doc_ids")},
    "Vectors.from_csr": {"indptr": [0, 1], "ids": [0]},
    "Vectors.from_counters": {"counters": [{"a": 1}]},
    "Vectors.from_sets": {"sets": [{"a"}]},
    "Vectors.row": {"r": 0},
    "Vectors.take": {"rows": [0]},
    "Vectors.as_sets": {},
}
OBJECTS = {"Vectors": VECTORS, "Pairs": PAIRS, "Clusters": spotsigs.cluster(PAIRS), "Truth": TRUTH}


def public_callables():
    """Yield the name of each public function and class, and of each public method of the records."""
    for name in spotsigs.__all__:
        value = getattr(spotsigs, name)
        yield name, value
        if value is Method:
            yield "Method.of", Method.of
        if value in (Vectors, Pairs, Clusters, Truth, Corpus, Document):
            for method in (m for m in vars(value) if not m.startswith("_")):
                member = getattr(OBJECTS.get(name, value), method, None)
                if inspect.ismethod(member):
                    yield f"{name}.{method}", member


CALLABLES = dict(public_callables())


def used(name, result):
    """Use a result as a caller would: kernels read what the checks let pass."""
    if isinstance(result, Vectors) and len(result) < 10:
        spotsigs.self_join(result, 0.5)
    elif isinstance(result, Pairs) and result.n < 10:
        spotsigs.cluster(result)
    elif name in ("BruteForce", "Containment", "SpotSigs", "SpotSigsTight"):
        result(Corpus(VECTORS))
    elif name == "IdfFilter":
        band = {name: getattr(result, name) for name in ("idf_min", "idf_max", "min_spots")}
        spotsigs.near_duplicates(PAGES, method=Method.of(**band))
    elif name == "SpotSignatures":
        spotsigs.near_duplicates(PAGES, method=Method.of(signature=result))


def called(name, function, arguments):
    began = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            used(name, function(**arguments))
    except InputError as error:
        sentence = str(error)
        if len(sentence.splitlines()) != 1 or len(sentence) > 700:
            raise AssertionError(f"no sentence: {sentence}") from error
    assert time.monotonic() - began < 20, arguments


def test_every_public_callable_is_known():
    assert set(CALLABLES) == set(RIGHT)


@pytest.mark.parametrize("name", sorted(set(RIGHT) - {"InputError"}))
def test_a_value_of_a_wrong_type_is_one_sentence_or_taken(name):
    """A call returns, or raises `InputError` of one line: no other error, no crash, no minutes of work."""
    function, right = CALLABLES[name], RIGHT[name]
    called(name, function, right)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        for value in WRONG:
            if name == "Truth.from_clusters" and isinstance(value, set):
                continue
            if parameter.name == "counts" and callable(value):  # a function that returns something else
                continue
            called(name, function, {**right, parameter.name: value})


def test_a_segment_violation_is_a_sentence():
    """Ids outside of all tables were read by kernels: the process ended."""
    with pytest.raises(InputError, match="ids must be in"):
        Vectors(
            indptr=np.array([0, 2]),
            ids=np.array([1, -5], np.int32),
            counts=np.ones(2, np.int32),
            lengths=np.array([2]),
            doc_ids=["a"],
        )
    for i, j in ((0, 5), (-3, 1), (1, 0)):
        with pytest.raises(InputError, match="pair"):
            Pairs(np.array([i]), np.array([j]), np.array([1.0]), 2)


def test_threads_are_capped_and_names_are_taken():
    began = time.monotonic()
    spotsigs.self_join(VECTORS, 0.5, threads=10**6)
    assert time.monotonic() - began < 10
    assert len(spotsigs.near_duplicates(PAGES, method=Method.of(signature="spotsigs"))) == 1
    with pytest.raises(InputError, match=r"keep must be .* or 'none' \('largest' .* set by keep_by\), got 'best'"):
        spotsigs.dedup(PAGES, keep="best")
    with pytest.raises(InputError, match="signature must be a SignatureScheme or 'spotsigs', got 'spotsig'"):
        Method.of(signature="spotsig")
