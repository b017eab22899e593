"""Print the size of the project: lines of Python by folder, modules, import arrows, long functions, words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("spotsigs", "baselines", "data", "experiments", "benchmarks")
LINES, PARAMETERS = 60, 8
"""Most lines and parameters of a function that is not a kernel."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(folder: str) -> list[Path]:
    """Return the Python files below a folder, without downloads."""
    return sorted(path for path in (ROOT / folder).rglob("*.py") if "cache" not in path.relative_to(ROOT).parts)


def lines_of(folder: str) -> tuple[int, int]:
    """Return the lines and the number of the Python files below a folder."""
    files = modules(folder)
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files), len(files)


def words_of(*patterns: str) -> int:
    """Return the words of the files that match patterns."""
    return sum(len(path.read_text(encoding="utf-8").split()) for pattern in patterns for path in ROOT.glob(pattern))


def functions(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield the name, first line, lines and parameters of each function of a module that is not a compiled kernel."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        marks = " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
        if isinstance(node, Function) and not re.search("njit|kernel", marks):
            given = node.args
            parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            parameters_of_call = sum(argument.arg not in ("self", "cls") for argument in parameters)
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1, parameters_of_call


def long_functions() -> list[str]:
    """Return a line for each function of the product with more than `LINES` lines or `PARAMETERS` parameters."""
    return [
        f"{path.relative_to(ROOT)}:{line} {name}: {lines} lines, {parameters} parameters"
        for folder in PRODUCT
        for path in modules(folder)
        for name, line, lines, parameters in functions(path)
        if lines > LINES or parameters > PARAMETERS
    ]


def arrows() -> set[tuple[str, str]]:
    """Return the folders of the library of which one imports the other; a module at the top counts as a folder."""
    imports = set()
    for path in modules("spotsigs"):
        folder = path.relative_to(ROOT / "spotsigs").parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "spotsigs":
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            imports |= {(folder, name.split(".")[1]) for name in names if name.startswith("spotsigs.")}
    folders = {path.name for path in (ROOT / "spotsigs").iterdir() if path.is_dir()}
    return {(a, b) for a, b in imports if a != b and {a, b} <= folders}


if __name__ == "__main__":
    sizes = {folder: lines_of(folder) for folder in PRODUCT}
    parts = ", ".join(f"{folder} {lines:,}" for folder, (lines, _) in sizes.items())
    total, files = (sum(values) for values in zip(*sizes.values(), strict=True))
    print(f"lines: {total:,} in {files} modules ({parts}); tests {lines_of('tests')[0]:,}")
    print(f"words: README {words_of('README.md'):,}, documentation {words_of('docs/*.md'):,}")
    print(f"imports between the folders of spotsigs: {len(arrows())}")
    print(
        f"functions over {LINES} lines or {PARAMETERS} parameters, without kernels:",
        *(long_functions() or ["none"]),
        sep="\n  ",
    )
