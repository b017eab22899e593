"""The code that results depend on: the modules that a method and a collection use, by their imports."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = ("spotsigs", "baselines", "data", "experiments", "benchmarks")
"""Packages of the checkout whose imports are followed."""
EVERY = ("spotsigs.method", "spotsigs.runs.result", "experiments.resample", "experiments.evaluate")
"""Modules that decide the figures of every cell: from pages to pairs, decisions and quality."""
DOORS = (
    *("spotsigs.workers.engines", "spotsigs.errors", "spotsigs.options", "spotsigs.workers.progress"),
    *("spotsigs.runs.runner", "spotsigs.runs.stages", "spotsigs.runs.provenance", "spotsigs.reports.output_files"),
    *("experiments.config", "experiments.choices", "experiments.run_folders", "experiments.show", "experiments.claims"),
    *("experiments.harness.manifest", "experiments.harness.used_code"),
)
"""Modules and packages that decide no figure: where tasks run, how options are typed and results are shown."""
DATA_SUFFIXES = (".toml", ".txt", ".csv", ".html")


def modules_of(*parts: Any) -> set[str]:
    """Return the modules of the classes of objects, and of the objects in their fields."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, (list, tuple)):
            found |= modules_of(*part)
        elif is_dataclass(part) and not isinstance(part, type):
            found |= {type(part).__module__} | modules_of(*(getattr(part, field.name) for field in fields(part)))
        elif callable(part):
            found.add(getattr(part, "__module__", None) or type(part).__module__)
    return {name for name in found if name not in sys.stdlib_module_names and name != "builtins"}


@cache
def used_files(*modules: str) -> tuple[Path, ...]:
    """Return the files of modules, of all modules of the checkout that they import, and the data files beside them."""
    known: dict[str, Path] = {}
    waiting = [*modules]
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        if name in known or path is None or any(name == door or name.startswith(f"{door}.") for door in DOORS):
            continue
        known[name] = path
        if path.is_relative_to(ROOT):
            waiting += _read(path).imported
    files = {*known.values()}
    for folder in {path.parent for path in known.values() if path.is_relative_to(ROOT)}:
        files |= {path for path in _beside(folder) if path.suffix in DATA_SUFFIXES}
    return tuple(sorted(files))


@cache
def checksum_of(*modules: str) -> str:
    """Return the SHA-256 of what `used_files` decide, see `code_in`."""
    digest = hashlib.sha256()
    for path in used_files(*modules):
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        digest.update(name.encode() + _read(path).code)
    return digest.hexdigest()


def code_in(name: str, content: bytes) -> bytes:
    """Return what a file decides, so that a change of words makes no result old.

    Parameters
    ----------
    name : str
        Name of the file.
    content : bytes
        Its content.

    Returns
    -------
    bytes
        The syntax tree of a module without its docstrings, or the values of a file of the configuration without what
        an experiment takes; comments are in neither. All bytes of any other file, and of one that cannot be parsed.
    """
    try:
        if name.endswith(".py"):
            return _without_docstrings(ast.parse(content))
        if name.endswith(".yaml"):
            return repr(_without_takes(yaml.safe_load(content))).encode()
    except (SyntaxError, ValueError, yaml.YAMLError):
        pass
    return content


def _without_takes(values: Any) -> Any:
    """Return a configuration without the minutes and the memory that are announced before an experiment runs."""
    experiment = values.get("experiment") if isinstance(values, dict) else None
    if not isinstance(experiment, dict):
        return values
    return values | {"experiment": {key: value for key, value in experiment.items() if key != "takes"}}


def _without_docstrings(tree: ast.Module) -> bytes:
    def remove(body: list[ast.stmt]) -> None:
        body[:] = [node for node in body if not _is_text(node)]
        for node in body:
            for inner in _bodies(node):
                remove(inner)

    remove(tree.body)
    return ast.dump(tree).encode()


def _is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a text alone, which documents what is around or before it."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def checksum_of_cell(method: Any, collection: Any) -> str:
    """Return the checksum of the code that decides the figures of a method on a collection."""
    return checksum_of(*sorted({*EVERY, *modules_of(method, collection)}))


def checksum_of_source(*parts: Any) -> str:
    """Return the checksum of the code that extracts signatures, by the collection, the text and the scheme."""
    return checksum_of(*sorted({"spotsigs.signatures.extract", "spotsigs.storage.store", *modules_of(*parts)}))


def _beside(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of its subfolders that are no packages."""
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.name not in ("cache", "__pycache__") and not (path / "__init__.py").exists():
            yield from _beside(path)


def _file_of(name: str) -> Path | None:
    """Return the file of a module; a module of another package has one only if it was imported."""
    if name.partition(".")[0] in PACKAGES:
        return _file_of_checkout(name)
    file = getattr(sys.modules.get(name), "__file__", None)
    return None if file is None else Path(file)


@cache
def _file_of_checkout(name: str) -> Path | None:
    path = ROOT.joinpath(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


class _Module(NamedTuple):
    """What the checksums of several cells need of a file."""

    imported: tuple[str, ...]  # modules that it imports, inside functions as well, but not for types alone
    code: bytes  # checksum of what it decides


@cache
def _read(path: Path) -> _Module:
    content, imported = path.read_bytes(), tuple[str, ...]()
    if path.suffix == ".py" and path.is_relative_to(ROOT):  # parsed once for both: there are many
        tree = ast.parse(content)
        imported, code = _imported(tree), _without_docstrings(tree)
    else:
        code = code_in(path.name, content)
    return _Module(imported, hashlib.sha256(code).digest())


def _imported(tree: ast.Module) -> tuple[str, ...]:
    found: list[str] = []
    for node in _statements(tree.body):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in found if name.partition(".")[0] in PACKAGES)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        for inner in _bodies(node):
            yield from _statements(inner)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements inside a statement."""
    for part in ("body", "orelse", "finalbody"):
        inner = getattr(node, part, None)
        if isinstance(inner, list):
            yield inner
    for part in ("handlers", "cases"):
        for branch in getattr(node, part, ()):
            yield branch.body
