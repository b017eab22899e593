"""Names in the code of the product: one meaning each."""

import ast
import importlib.util
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("spotsigs", "baselines", "data", "experiments", "benchmarks")


@cache
def every_node():
    """Return the nodes of all files, each with its file."""
    paths = [path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py")]
    return [(path, node) for path in paths for node in ast.walk(ast.parse(path.read_bytes()))]


def nodes(*kinds):
    return [(path, node) for path, node in every_node() if isinstance(node, kinds)]


def test_every_import_finds_its_name():
    """Those within functions, too, which no start of a program and no type checker of experiments would miss."""
    missing = set()
    for path, node in nodes(ast.ImportFrom):
        if (node.module or "").startswith("spotsigs"):
            names = vars(importlib.import_module(node.module))
            missing |= {(path.name, f"{node.module}.{name.name}") for name in node.names if name.name not in names}
    submodules = {name for name in missing if importlib.util.find_spec(name[1])}
    assert missing == submodules


def test_no_class_name_has_two_meanings():
    classes = defaultdict(list)
    for path, node in nodes(ast.ClassDef):
        classes[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: places for name, places in classes.items() if len(places) > 1} == {}


def test_one_function_assembles_a_method():
    calls = [(path, node.lineno) for path, node in nodes(ast.Call) if ast.unparse(node.func) == "Method"]
    assert calls == []  # `Method.of` calls its class


def fields(node):
    """Return the names of the annotated attributes of a class that belong to its instances."""
    annotated = (item for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name))
    return [item.target.id for item in annotated if "ClassVar" not in ast.unparse(item.annotation)]


def test_a_record_has_at_most_twelve_fields():
    large = {}
    for _, node in nodes(ast.ClassDef):
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


def parameters(args):
    every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    return [argument.arg for argument in every if argument]


def test_parameters_are_documented_in_the_order_of_the_signature():
    wrong = []
    for path, node in nodes(ast.FunctionDef, ast.ClassDef):
        names = fields(node) if isinstance(node, ast.ClassDef) else parameters(node.args)
        for section in ("Parameters", "Attributes"):
            known = [names.index(name) for name in documented(node, section) if name in names]
            if known != sorted(known):
                wrong.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert wrong == []
