"""Print the size of the project: lines of Python by folder, modules, words of documentation."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("spotsigs", "baselines", "data", "experiments", "benchmarks")


def lines_of(folder: str) -> tuple[int, int]:
    """Return the lines and the number of Python files below a folder, without downloads."""
    files = [path for path in (ROOT / folder).rglob("*.py") if "cache" not in path.relative_to(ROOT).parts]
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files), len(files)


def words_of(*patterns: str) -> int:
    """Return the words of the files that match patterns."""
    return sum(len(path.read_text(encoding="utf-8").split()) for pattern in patterns for path in ROOT.glob(pattern))


if __name__ == "__main__":
    sizes = {folder: lines_of(folder) for folder in PRODUCT}
    parts = ", ".join(f"{folder} {lines:,}" for folder, (lines, _) in sizes.items())
    total, modules = (sum(values) for values in zip(*sizes.values(), strict=True))
    print(f"lines: {total:,} in {modules} modules ({parts}); tests {lines_of('tests')[0]:,}")
    print(f"words: README {words_of('README.md'):,}, documentation {words_of('docs/*.md'):,}")
