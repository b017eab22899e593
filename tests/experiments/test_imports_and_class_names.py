"""Names in the code of the product: one meaning each."""

import ast
import importlib.util
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


def test_every_import_finds_its_name():
    """Those within functions, too, which no start of a program and no type checker of experiments would miss."""
    missing = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("spotsigs"):
                names = vars(importlib.import_module(node.module))
                missing |= {(path.name, f"{node.module}.{name.name}") for name in node.names if name.name not in names}
    submodules = {name for name in missing if importlib.util.find_spec(name[1])}
    assert missing == submodules


def test_no_class_name_has_two_meanings():
    assert twice(classes()) == {}


def test_one_function_assembles_a_method():
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Method"
    ]
    assert calls == []  # `Method.of` calls its class
