"""Names in the code of the product: one meaning each."""

import ast
import importlib.util
import re
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
    return {name: places_of_name for name, places_of_name in places.items() if len(places_of_name) > 1}


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


def fields(node):
    """Return the names of the annotated attributes of a class that belong to its instances."""
    annotated = (item for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name))
    return [item.target.id for item in annotated if "ClassVar" not in ast.unparse(item.annotation)]


def test_a_record_has_at_most_twelve_fields():
    large = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ClassDef):
                kinds = " ".join(map(ast.unparse, [*node.decorator_list, *node.bases]))
                if re.search("dataclass|NamedTuple", kinds) and len(fields(node)) > 12:
                    large[node.name] = len(fields(node))
    assert large == {}


def documented(node, section):
    """Return the names that a section of a numpydoc docstring describes, in order."""
    text = ast.get_docstring(node) or ""
    match = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^\S.*$", match[1], re.MULTILINE) if match else []
    return [name.strip("* ") for head in heads for name in head.partition(" : ")[0].split(", ")]


def test_parameters_are_documented_in_the_order_of_the_signature():
    wrong = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef):
                given = node.args
                names = [
                    a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg] if a
                ]
            elif isinstance(node, ast.ClassDef):
                names = fields(node)
            else:
                continue
            for section in ("Parameters", "Attributes"):
                known = [names.index(name) for name in documented(node, section) if name in names]
                if known != sorted(known):
                    wrong.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert wrong == []
