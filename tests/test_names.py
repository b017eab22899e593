"""Names in the code of the product: one meaning each."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    path
    for folder in ("spotsigs", "baselines", "data", "experiments", "benchmarks")
    for path in ROOT.glob(f"{folder}/**/*.py")
]


def twice(names):
    places = defaultdict(list)
    for name, place in names:
        places[name].append(place)
    return {name: found for name, found in places.items() if len(found) > 1}


def classes():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                yield node.name, f"{path.relative_to(ROOT)}:{node.lineno}"


def test_no_class_name_has_two_meanings():
    assert twice(classes()) == {}


@pytest.mark.parametrize("names", [[("Found", "a.py:1"), ("Found", "b.py:9")]])
def test_a_second_meaning_is_seen(names):
    assert twice(names) == {"Found": ["a.py:1", "b.py:9"]}
