"""Comparison of finished runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spotsigs.errors import InputError, printable
from spotsigs.output_files import read_json

COMPLETE = "metrics.json"

UNCHANGED_BY = ("page", "copy", "debug", "overwrite")
"""Keys that change nothing of the results of a run."""

MEASURES = {
    "documents": ("Documents", ",.0f"), "signatures": ("#Spots", ",.0f"), "pairs": ("Pairs", ",.0f"),
    "clusters": ("Clusters", ",.0f"), "largest_cluster": ("Largest", ",.0f"), "precision": ("Prec.", ".3f"),
    "recall": ("Rec.", ".3f"), "f1": ("F1", ".3f"), "macro_f1": ("Macro F1", ".3f"),
    "stories_lost": ("Lost", ",.0f"), "duplicates_left": ("Left", ",.0f"), "bcubed_f1": ("B-cubed F1", ".3f"),
    "total_ms": ("Total (ms)", ",.0f"), "peak_mb": ("Peak MB", ",.0f"),
}  # fmt: skip
"""Title and format of the figures of a run that are printed."""


def parameters(folder: Path) -> dict[str, Any]:
    """Return the configuration of a run, a value for each key in its dotted form."""
    path = folder / ".hydra" / "config.yaml"
    return dict(flat(parsed(path.read_text(encoding="utf-8")))) if path.exists() else {}


def parsed(text: str) -> Any:
    """Return the content of a configuration file: JSON, or YAML, which is empty without PyYAML."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        import yaml
    except ImportError:
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is several times faster
    return loader(text).get_single_data()


def flat(node: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Iterate over the keys of nested mappings in dotted form, without references to other keys."""
    if not isinstance(node, dict):
        yield prefix, ", ".join(map(str, node)) if isinstance(node, list) else node
        return
    for key, value in node.items():
        refers = isinstance(value, str) and value.startswith("${")
        if key != "_target_" and not refers:
            yield from flat(value, f"{prefix}.{key}" if prefix else str(key))


def run_row(folder: Path) -> dict[str, Any]:
    """Return a run as a row: its choices, its configuration, its figures and its folder."""
    if not (folder / COMPLETE).is_file():
        raise InputError(f"{folder} is not the folder of a finished run: it has no {COMPLETE}")
    metrics = read_json(folder / COMPLETE)
    choices = {group: metrics[group] for group in ("data", "text", "signature", "matcher")}
    measured = {name: metrics.get(name) for name in MEASURES}
    tau = {} if metrics["tau"] is None else {"tau": metrics["tau"]}  # a suggested one is not in the configuration
    configured = {key if key not in measured else f"{key}=": value for key, value in parameters(folder).items()}
    return choices | configured | tau | measured | {"folder": str(folder)}


def differing(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys in which the configurations of runs differ, in their order."""
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in MEASURES and key != "folder"]
    keys = [key for key in keys if key.partition(".")[0] not in UNCHANGED_BY]
    return [key for key in keys if len({str(row.get(key)) for row in rows}) > 1]


def compared(runs: Sequence[str]) -> str:
    """Return a comparison of the runs in some folders: different settings, figures, and numbers of common pairs.

    Raises
    ------
    InputError
        If there are fewer than two, or one is not the folder of a finished run.
    """
    if len(runs) < 2:
        raise InputError("name the folders of two or more runs, as in spotsigs compare one/ other/")
    folders = [Path(run) for run in runs]
    rows = [run_row(folder) for folder in folders]
    titles = {key: (key, "") for key in differing(rows)}
    titles |= {name: of for name, of in MEASURES.items() if any(row[name] is not None for row in rows)}
    cells = [["Run", *(title for title, _ in titles.values())]]
    for number, row in enumerate(rows, 1):
        cells.append([str(number), *(_cell(row.get(key), form) for key, (_, form) in titles.items())])
    names = [f"{number}: {folder}" for number, folder in enumerate(folders, 1)]
    return "\n".join(["", aligned(cells), "", *names, "", _in_common(folders)])


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of text in columns, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _cell(value: Any, form: str) -> str:
    if value is None or value != value:
        return "n/a"
    return format(value, form) if form and not isinstance(value, str) else printable(str(value))


def _in_common(folders: Sequence[Path]) -> str:
    """Return how many pairs the runs share with the first, and the largest difference of a similarity."""
    first, *others = (_similarities(folder) for folder in folders)
    lines = []
    for number, other in enumerate(others, 2):
        both = first.keys() & other.keys()
        line = f"pairs of runs 1 and {number}: {len(both):,} in both, {len(first) - len(both):,} only in 1, "
        line += f"{len(other) - len(both):,} only in {number}"
        apart = max((abs(first[pair] - other[pair]) for pair in both), default=0.0)
        lines.append(line + (f"; similarities differ by {apart:.3f} at most" if apart > 0 else ""))
    return "\n".join(lines)


def _similarities(folder: Path) -> dict[tuple[str, str], float]:
    """Return the pairs that a run reported."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "pairs.parquet")
    a, b, similarity = (table[name].to_pylist() for name in ("doc_a", "doc_b", "similarity"))
    return dict(zip(zip(a, b, strict=True), similarity, strict=True))
