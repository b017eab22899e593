"""Parser of the CSS selectors in a JavaScript source, which is not executed."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)|(?P<mark>[\[\]{},])""",
    re.DOTALL,
)


def selectors(source: str, section: str, key: str) -> list[list[str]]:
    """Return the selectors of a key in a section of a source.

    Parameters
    ----------
    source : str
        JavaScript such as ``content: { selectors: ['.a', ['.b', '.c']], clean: ['.d'] }``.
    section, key : str
        Names, for example ``content`` and ``clean``.

    Returns
    -------
    list of list of str
        Alternatives in order; one with several parts needs all of them. Empty if the source has none.
    """
    start = re.search(rf"^  {section}: \{{", source, re.MULTILINE)
    if start is None:
        return []
    end = re.compile(r"^  \}", re.MULTILINE).search(source, start.end())
    inside = source[start.end() : end.start() if end else None]
    listed = re.search(rf"^    {key}: \[", inside, re.MULTILINE)
    return [] if listed is None else list(_alternatives(inside, listed.end()))


def _alternatives(source: str, start: int) -> Iterator[list[str]]:
    """Iterate over the members of an array of strings and of arrays of strings, up to its end."""
    inner: list[str] | None = None
    for token in _TOKEN.finditer(source, start):
        if token["text"]:
            text = re.sub(r"\\(.)", r"\1", token["text"][1:-1])
            if inner is None:
                yield [text]
            else:
                inner.append(text)
        elif token["mark"] == "[":
            inner = []
        elif token["mark"] == "]":
            if inner is None:
                return
            if inner:
                yield inner
            inner = None
