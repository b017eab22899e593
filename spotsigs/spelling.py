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
