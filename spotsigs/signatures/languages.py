"""Stopwords of many languages, and detection of a text's language by the number of its stopwords.

The lists are in the package ``stopwordsiso`` (Stopwords ISO, MIT licence); the list of English is from the authors'
prototype. They are part of the signatures, which is why the package is pinned.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Int32s
from spotsigs.contracts import SignatureScheme
from spotsigs.errors import InputError, require, shown
from spotsigs.records import Tokens
from spotsigs.signatures.token_table import WordTable
from spotsigs.text.charset import to_utf8
from spotsigs.text.tokens import tokenize

AUTO, ENGLISH = "auto", "en"
RAREST = 0.05
"""Least fraction of tokens that are stopwords: fewer give too few signatures."""

CLEARLY = 1.5
"""A text is in another language than English if it has so many times as many stopwords of that language.

Two versions of an English page with much code would else be in different languages, and share no signature."""

_WORD, _LETTER = 1, 2
_WORDS_OF_ONE_LETTER = "aeiouy"  # of several languages; other letters are names in code

IN_SHINGLES = np.uint64(1)
"""Bit of a hash that distinguishes shingles (1) from spot signatures (0) if languages are detected."""

_LEFT_OUT = {"ja", "th", "zh", "ms"}  # without spaces tokens are no words; Malay and Indonesian are hard to tell apart
_STOPWORDS = Path(__file__).parent / "stopwords"


def marks_shingles(scheme: SignatureScheme) -> bool:
    """Return whether the hashes of a scheme, or of the scheme inside it, have the bit `IN_SHINGLES`."""
    return bool(getattr(getattr(scheme, "signature", scheme), "has_shingles", False))


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
    kinds: NDArray[np.int8]  # whether each word is evidence of a language: `_WORD`, `_LETTER` or 0


@cache
def _listed_languages() -> _Listed:
    rows: dict[str, int] = {}
    rows_of_lists = [[rows.setdefault(word, len(rows)) for word in stopwords_of(language)] for language in languages()]
    lists = np.zeros((len(rows), len(rows_of_lists)), np.bool_)
    for column, listed in enumerate(rows_of_lists):
        lists[listed, column] = True
    kinds = np.array([_kind(word) for word in rows], np.int8)
    return _Listed(WordTable.build({word: row + 1 for word, row in rows.items()}), lists, kinds)


def _kind(word: str) -> int:
    """Return whether a word of a list is a word, a letter that is one in some languages, or a name in code."""
    if word.isdigit():
        return 0
    if len(word) > 1 or not word.isascii():
        return _WORD
    return _LETTER if word in _WORDS_OF_ONE_LETTER else 0


def language_of(tokens: Tokens) -> tuple[str, float]:
    """Return the language of a document, and the fraction of its tokens that are stopwords of this language.

    It is the language whose stopwords are most of the tokens, the first of equals; English, unless the stopwords of the
    other language are more than `CLEARLY` times as many. Digits and single letters do not count, because some lists
    have all of them, so that a page of code would be Spanish or Breton; a, e, i, o, u and y count up to the number of
    the longer words.
    """
    words, lists, kinds = _listed_languages()
    by_kind = np.zeros((3, lists.shape[1]), np.int64)
    _count_stopwords(words.roles_of(tokens), lists, kinds, by_kind)
    counts = by_kind[_WORD] + np.minimum(by_kind[_LETTER], by_kind[_WORD])
    best = int(counts.argmax())
    best = best if counts[best] > CLEARLY * counts[0] else 0
    return languages()[best], int(by_kind[:, best].sum()) / max(len(tokens), 1)


@kernel
def _count_stopwords(
    roles: Int32s, lists: NDArray[np.bool_], kinds: NDArray[np.int8], counts: NDArray[np.int64]
) -> None:
    """Add the tokens of a text to the counts by kind of word and by language; a role is the row of a word plus 1."""
    for role in roles:
        if role > 0:
            kind = kinds[role - 1]
            for language in range(lists.shape[1]):
                counts[kind, language] += lists[role - 1, language]


def fraction_of(tokens: Tokens, language: str) -> float:
    """Return the fraction of a document's tokens that are stopwords of a language."""
    words, lists, _ = _listed_languages()
    roles = words.roles_of(tokens)
    column = languages().index(language)
    return int(np.count_nonzero(lists[roles[roles > 0] - 1, column])) / max(len(tokens), 1)


def language_codes(languages: Iterable[str | None]) -> NDArray[np.uint16]:
    """Return codes of languages as numbers, two bytes of ASCII each; 0 for none.

    Examples
    --------
    >>> names_of_languages(language_codes(["en", None, "de"]))
    ['en', None, 'de']
    """
    return np.array([int.from_bytes((code or "").encode(), "big") for code in languages], np.uint16)


def names_of_languages(codes: NDArray[np.uint16]) -> list[str | None]:
    """Return the languages of numbers of `language_codes`."""
    names = {code: int(code).to_bytes(2, "big").decode() if code else None for code in np.unique(codes).tolist()}
    return [names[code] for code in codes.tolist()]


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
