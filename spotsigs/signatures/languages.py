"""Stopwords of many languages, and detection of a text's language by the number of its stopwords.

The lists are those of the package ``stopwordsiso`` (Stopwords ISO, MIT licence), for English that of the authors'
prototype. They are part of the signatures, which is why the package is pinned.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.contracts import SignatureScheme
from spotsigs.errors import InputError, require, shown
from spotsigs.records import Tokens
from spotsigs.signatures.token_table import WordTable
from spotsigs.text.charset import to_utf8
from spotsigs.text.tokens import tokenize

AUTO, ENGLISH = "auto", "en"
RAREST = 0.05
"""Least fraction of tokens that are stopwords: fewer give too few signatures."""

IN_SHINGLES = np.uint64(1)
"""Bit of a hash that distinguishes shingles (1) from spot signatures (0) if languages are detected."""

_LEFT_OUT = {"ja", "th", "zh", "ms"}  # without spaces tokens are no words; Malay and Indonesian are hard to tell apart
_STOPWORDS = Path(__file__).parent / "stopwords"


def marks_shingles(scheme: SignatureScheme) -> bool:
    """Return whether the hashes of a scheme, or of the scheme inside it, have the bit `IN_SHINGLES`."""
    return getattr(getattr(scheme, "signature", scheme), "language", ENGLISH) == AUTO


def read_stopwords(name: str) -> list[str]:
    """Return the distinct tokens of a list of stopwords, in order: ``don't`` gives ``don`` and ``t``.

    The list is ``prototype`` (363 words, the authors' prototype), ``smart`` (571 words, Cornell's SMART system), or the
    path of a file with one word a line. Raise InputError if there is no such list.
    """
    return _tokens_of(to_utf8(stopword_file(name).read_bytes()).decode())


def stopword_file(name: str) -> Path:
    """Return the path of a list of stopwords."""
    packaged = sorted(path.stem for path in _STOPWORDS.glob("*.txt"))
    path = _STOPWORDS / f"{name}.txt" if name in packaged else Path(name)
    require(path.is_file(), f"no stopword list {name!r}: give one of {', '.join(packaged)}, or the path of a file")
    return path


def _tokens_of(words: str) -> list[str]:
    return list(dict.fromkeys(tokenize(words).words))


@cache
def languages() -> tuple[str, ...]:
    """Return the languages whose stopwords are known.

    Returns
    -------
    tuple of str
        ISO 639-1 codes: English first, then in alphabetical order.
    """
    from stopwordsiso import langs

    return (ENGLISH, *sorted(set(langs()) - _LEFT_OUT - {ENGLISH}))


@cache
def stopwords_of(language: str) -> tuple[str, ...]:
    """Return the stopwords of one of `languages`, as tokens."""
    from stopwordsiso import stopwords

    if language == ENGLISH:
        return tuple(read_stopwords("prototype"))
    return tuple(_tokens_of("\n".join(sorted(stopwords(language)))))


def require_language(language: str) -> None:
    """Raise an InputError unless the argument is ``auto`` or the code of a language with stopwords."""
    if isinstance(language, str) and (language in (AUTO, ENGLISH) or language in languages()):
        return
    raise InputError(
        f"no stopwords for language {shown(language)}: give {AUTO}, which cuts text without known stopwords into "
        f"shingles, or one of {', '.join(languages())}"
    )


class _Listed(NamedTuple):
    words: WordTable
    lists: NDArray[np.bool_]  # whether each word is in the list of each language


@cache
def _listed_languages() -> _Listed:
    rows: dict[str, int] = {}
    rows_of_lists = [[rows.setdefault(word, len(rows)) for word in stopwords_of(language)] for language in languages()]
    lists = np.zeros((len(rows), len(rows_of_lists)), np.bool_)
    for column, listed in enumerate(rows_of_lists):
        lists[listed, column] = True
    return _Listed(WordTable.build({word: row + 1 for word, row in rows.items()}), lists)


def language_of(tokens: Tokens) -> tuple[str, float]:
    """Return the language whose stopwords are most of a document's tokens, the first of equals, and their fraction."""
    words, lists = _listed_languages()
    roles = words.roles_of(tokens)
    counts = lists[roles[roles > 0] - 1].sum(axis=0)
    best = int(counts.argmax())
    return languages()[best], int(counts[best]) / max(len(tokens), 1)


def is_unspaced(tokens: Tokens) -> bool:
    """Return whether most tokens of a text are Chinese or Japanese, which have no spaces and no known stopwords.

    These are U+3000 to U+9FFF, whose first byte in UTF-8 is E3 to E9.
    """
    first = tokens.buffer[tokens.starts]
    return 2 * int(np.count_nonzero((first >= 0xE3) & (first <= 0xE9))) > len(tokens)


def count_in_shingles(indptr: NDArray[np.int64], hashes: NDArray[np.uint64]) -> int:
    """Return how many rows of signatures, cut with ``language=auto``, are shingles."""
    first = hashes[indptr[:-1][indptr[1:] > indptr[:-1]]]
    return int(np.count_nonzero(first & IN_SHINGLES))
