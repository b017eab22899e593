"""Spelling of options in messages: as keys of ``python run.py``, or as options of the command ``spotsigs``.

`command_spelling` switches the spelling for this process and for the workers that it starts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "SPOTSIGS_SPELLING"

_COMMAND = {
    "html_column": "--html", "text_column": "--text", "id_column": "--id", "cluster_column": "--cluster",
    "date_column": "--date", "hydra.run.dir": "--out", "copy": "--out", "data": "--format",
}  # fmt: skip
"""Options of the command whose names differ from the keys; any other is the key after two hyphens."""

_SWITCHES = ("strict", "add", "overwrite")
"""Options without a value."""

_DEDUP = "`spotsigs dedup INPUT --out FOLDER"
_FUNCTION = "the function has it, as in spotsigs.dedup(pages, {}=...)"
ELSEWHERE = {
    "add": f"{_DEDUP} --store FOLDER --add` adds to a store",
    "against": f"{_DEDUP} --against REFERENCE` compares with a reference",
    "copies": "duplicates= of run.py and the functions takes its place",
    "copy": f"{_DEDUP}` writes a copy",
    "measure": "matcher=containment takes its place",
    "memory": f"{_DEDUP} --memory SIZE` has a budget",
    "out": f"{_DEDUP}` writes a copy",
    "page": "`spotsigs inspect INPUT` shows the clusters",
    "query": "`spotsigs pairs PAGE --against STORE` queries a store",
    "store": f"{_DEDUP} --store FOLDER` keeps a store",
    "strict": f"{_DEDUP} --strict` stops at the first unreadable record",
    "matcher": "`python run.py matcher=lsh` has it",
    "sets": "`python run.py sets=true` has it",
    **dict.fromkeys(("clusters", "keep", "keep_by", "min_contained"), "`spotsigs dedup` and spotsigs.dedup have it"),
    **{name: _FUNCTION.format(name) for name in ("duplicates", "signature", "min_spots", "threads")},
}
"""Where an option is that the command, a function or ``run.py`` lacks, or what takes its place."""

_PLAIN = re.compile(r"[A-Za-z_@/.][\w./@:-]*")
_MEANINGS = ("null", "true", "false", "nan", "inf")


@contextmanager
def command_spelling() -> Iterator[None]:
    """Spell options as the command does, here and in the workers that are started in the block."""
    os.environ[_VARIABLE] = "command"
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def is_command() -> bool:
    """Return whether the command is running."""
    return os.environ.get(_VARIABLE) == "command"


def option(name: str, value: object = None) -> str:
    """Return a key of ``conf/config.yaml``, with its value, as the reader of a message types it.

    Examples
    --------
    >>> option("tau", 0.44)
    'tau=0.44'
    >>> option("strict", "true")
    'strict=true'
    """
    if not is_command():
        return f"{name}={'' if value is None else value}"
    flag = _COMMAND.get(name, f"--{name.replace('_', '-')}")
    return flag if value is None or name in _SWITCHES else f"{flag} {value}".strip()


def flag(name: str) -> str:
    """Return the name of an option alone, as the reader of a message types it."""
    return option(name).removesuffix("=")


def spelled(value: object) -> str:
    """Return a value as ``run.py`` reads it; texts with signs that have a meaning there are quoted.

    Examples
    --------
    >>> spelled(None), spelled(True), spelled(["a", "that(5,2)"])
    ('null', 'true', "[a,'that(5,2)']")
    """
    value = getattr(value, "value", value)
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.lower() not in _MEANINGS
        return value if plain else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(spelled, value))}]"
    return "null" if value is None else str(value).lower()
