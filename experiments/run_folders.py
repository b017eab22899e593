"""Folders of runs: their names, configurations and finished results."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from spotsigs.errors import require
from spotsigs.storage.manifest import COMPLETE

UNCHANGED_BY = ("debug",)
"""Keys that change nothing of the results of a run."""

OF_COMPARED = ("matcher=", "matcher.", "signature=", "signature.", "tau=")
"""Beginnings of the words that the command after a run sweeps, or that belong to one choice alone."""

LONGEST = 120
"""Characters of a folder's name that stay readable; the rest is a checksum."""

IDENTITY = "cell.json"
"""File of the folder ``.hydra`` of a cell with the dependencies of its results besides the configuration."""


def parameters(folder: Path) -> dict[str, Any]:
    """Return the configuration of a run, a value for each key in its dotted form."""
    path = folder / ".hydra" / "config.yaml"
    return flat(path.read_text(encoding="utf-8")) if path.exists() else {}


def flat(config: str) -> dict[str, Any]:
    """Return the values of a configuration, YAML, by dotted keys, without references to other keys."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is several times faster
    return dict(dotted(loader(config).get_single_data()))


def dotted(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a configuration with their dotted keys, without references to other keys."""
    if not isinstance(node, dict):
        yield prefix, ", ".join(map(str, node)) if isinstance(node, list) else node
        return
    for key, value in node.items():
        refers = isinstance(value, str) and value.startswith("${")
        if key != "_target_" and not refers:
            yield from dotted(value, f"{prefix}.{key}" if prefix else str(key))


def variant(overrides: Iterable[str], leave_out: Iterable[str] = ()) -> str:
    """Return a name for overrides: the same for the same overrides in any order, another for others.

    The keys of `leave_out` are named elsewhere. The name, such as ``idf_max=0.85+signature.d=1``, is valid for a folder
    on every system.
    """
    unnamed = {*UNCHANGED_BY, *leave_out}
    named = (override.lstrip("+") for override in overrides)
    name = "+".join(sorted(_word(override) for override in named if override.partition("=")[0] not in unnamed))
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}-{_checksum(name)}"


def _word(override: str) -> str:
    """Return an override as a part of a name; a checksum distinguishes those whose other characters are replaced."""
    plain = re.sub(r"[^a-z0-9_.=-]+", "-", override.lower()).strip("-")
    return plain if plain == override else f"{plain}-{_checksum(override)}"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


def require_same(folder: Path, config: str) -> None:
    """Refuse to replace a finished run of other defaults: the name of a folder has the overrides alone."""
    if not (folder / COMPLETE).is_file():
        return
    before, now = parameters(folder), flat(config)
    changed = [
        f"{key} was {value}, is {now[key]}"
        for key, value in before.items()
        if now.get(key, value) != value and key not in UNCHANGED_BY
    ]
    require(
        not changed,
        f"{folder} contains a run with other defaults ({'; '.join(changed)}): move it away, or choose another "
        "folder for this run with hydra.run.dir=",
    )


def next_command(evaluated: bool, words: Sequence[str]) -> str:
    """Return a command to try after a finished run of some overrides, of a collection with or without truth."""
    typed = [shlex.quote(word) for word in words if word.partition("=")[0] not in UNCHANGED_BY]
    if not evaluated:
        return "next, to inspect the clusters: spotsigs inspect, with the files of the collection"
    others = [word for word in typed if not word.lstrip("+~").startswith(OF_COMPARED)]
    chosen = dict(word.partition("=")[::2] for word in typed)
    usual = {"matcher": ("spotsigs", "lsh", "imatch"), "signature": ("spotsigs", "shingles3")}
    swept = {key: ",".join(dict.fromkeys([chosen.get(key, names[0]), *names])) for key, names in usual.items()}
    words = [f"{key}={names}" for key, names in swept.items()]
    return " ".join(["next, to compare methods and thresholds: python run.py -m", *words, "tau=0.3,0.44,0.6", *others])


def is_finished(folder: Path, key: str) -> bool:
    """Return whether a folder has the results of the cell with this key, see `experiments.grid.cell_key`."""
    path = folder / ".hydra" / IDENTITY
    return (folder / COMPLETE).is_file() and path.is_file() and path.read_text(encoding="utf-8") == key
