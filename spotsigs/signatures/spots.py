"""Spot signatures: chains of content words that follow a stopword (the paper's section 3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, Int32s, Int64s, UInt64s
from spotsigs.contracts import SignatureScheme
from spotsigs.errors import InputError, as_count, as_flag, require, shown
from spotsigs.records import Tokens
from spotsigs.signatures.languages import (
    AUTO,
    ENGLISH,
    IN_SHINGLES,
    RAREST,
    fraction_of,
    is_unspaced,
    language_of,
    read_stopwords,
    require_language,
    stopword_file,
    stopwords_of,
)
from spotsigs.signatures.token_table import WordTable
from spotsigs.text.hashing import hash_shingles, hash_signed_shingles, xxh64
from spotsigs.text.tokens import tokenize

ARTICLES = ("a", "an", "the")
FLEXIONS = tuple(
    "am are is was were be been being can could will would have has had having do does did done doing".split()
)
FEWEST = 12
"""With languages detected, a text with fewer spot signatures and no links is short: all of its shingles are compared.

Pages with links keep their spots, by which versions of a page with a few more and a few less are compared."""

SHINGLE_TOKENS = 8
"""Tokens of a shingle of a short text: about the span of a spot signature of the defaults, so that one threshold serves
both."""

_NOTATION = re.compile(r"\s*(?P<word>[^()\s]+)\s*(?:\(\s*(?P<d>\d+)\s*,\s*(?P<c>\d+)\s*\)\s*)?")
_MOST = 1000  # of distance and length
_STOPWORD, _FIRST_ANTECEDENT = 1, 2  # roles of tokens; 0 is a content word


class _Chains(NamedTuple):
    """The chains of antecedent ``a`` are ``first[a]:first[a + 1]`` in the other arrays."""

    first: Int32s
    distances: Int64s
    lengths: Int64s


class _Table(NamedTuple):
    """Lookup tables: roles by token, and the chains that start at each antecedent."""

    words: WordTable
    chains: _Chains


@kernel
def _content_from(roles: Int32s) -> Int32s:
    """Return the first content word at or after each token, and after the last; ``n`` where there is none."""
    content = np.empty(len(roles) + 1, np.int32)
    content[-1] = len(roles)
    for i in range(len(roles) - 1, -1, -1):
        content[i] = i if roles[i] == 0 else content[i + 1]
    return content


@kernel
def _chain(content: Int32s, antecedent: int, distance: int, length: int, out: Int32s) -> int:
    """Write the token numbers of the chain that follows an antecedent; return how many there are."""
    n, size, k = len(content) - 1, 0, antecedent + distance
    while size < length and k < n and content[k] < n:
        out[size] = content[k]
        k = content[k] + distance
        size += 1
    return size


@kernel
def _append(buffer: Bytes, start: int, end: int, out: Bytes, size: int) -> int:
    """Write a token and a colon; return the new size."""
    for at in range(start, end):
        out[size] = buffer[at]
        size += 1
    out[size] = 58
    return size + 1


@kernel
def _hash_spots(
    buffer: Bytes, starts: Int32s, ends: Int32s, roles: Int32s, chains: _Chains, include_antecedent: bool
) -> tuple[UInt64s, Int32s]:
    """Return the XXH64 of each signature's tokens joined by colons, in text order, and its antecedent's token."""
    spots = 0
    for role in roles:
        if role >= _FIRST_ANTECEDENT:
            spots += chains.first[role - _FIRST_ANTECEDENT + 1] - chains.first[role - _FIRST_ANTECEDENT]
    hashes, firsts, n = np.empty(spots, np.uint64), np.empty(spots, np.int32), 0
    content = _content_from(roles)
    members = np.empty(min(chains.lengths.max(), len(roles)), np.int32)
    joined = np.empty(len(buffer) + 1, np.uint8)
    for i in range(len(roles)):
        antecedent = roles[i] - _FIRST_ANTECEDENT
        if antecedent < 0:
            continue
        for chain in range(chains.first[antecedent], chains.first[antecedent + 1]):
            taken = _chain(content, i, chains.distances[chain], chains.lengths[chain], members)
            if taken == 0:
                continue
            size = int(np.int64(0))
            if include_antecedent:
                size = _append(buffer, starts[i], ends[i], joined, size)
            for member in members[:taken]:
                size = _append(buffer, starts[member], ends[member], joined, size)
            hashes[n], firsts[n] = xxh64(joined, int(np.int32(0)), int(np.int32(size - 1))), i
            n += 1
    return hashes[:n], firsts[:n]


@dataclass(frozen=True, kw_only=True)
class SpotSignatures(SignatureScheme):
    """The paper's signatures ``a(d, c)``: at each antecedent, the chain of ``c`` content words at spot distance ``d``.

    From an antecedent at token ``i``, ``k = i + d``; then ``c`` times: ``k`` slides over stopwords, token ``k`` joins
    the chain, ``k`` grows by ``d``. The document's end cuts a chain; an empty one gives no signature. Antecedents
    count as stopwords in chains. The canonical form ``a:w1:w2:w3`` in UTF-8 is hashed by XXH64.

    Attributes
    ----------
    antecedents : list of str
        Words, each with ``d`` and ``c`` below, or in the paper's notation with its own: ``that(5,2)``. A word may
        occur with several. ``@name`` denotes all words of a stopword list. The default is the paper's best set:
        the articles and the flexions of be, can, will, have, do.
    d : int
        Spot distance, 1 to 1000.
    c : int
        Chain length, 1 to 1000.
    stopwords : str or None
        Words that chains slide over besides the antecedents: ``prototype``, ``smart``, or the path of a file with
        one word a line; None for the antecedents alone.
    include_antecedent : bool
        Whether the antecedent is part of the signature, as in the paper; without it, chains alone are, as in the
        authors' prototype.
    language : str
        ``en``, the default: the words above. The code of another language (``de``, ``fr``, …, see `languages`): its
        stopwords are the antecedents. ``auto``: the language of each text, see
        `spotsigs.signatures.languages.language_of`.
    shingles : bool
        A text with fewer than one stopword in twenty tokens, or mostly Chinese or Japanese, is cut into shingles of
        ``c`` tokens instead, and one with fewer than 12 spot signatures and no links into shingles of eight tokens,
        which differ by signs that carry meaning, too: two such texts have similarity 1 if they are the same text. With
        ``language=auto`` this is always so.

    Raises
    ------
    InputError
        If a field is out of range, or an antecedent is not one token (when first used).

    References
    ----------
    M. Theobald, J. Siddharth, A. Paepcke, "SpotSigs: Robust and Efficient Near Duplicate Detection in Large Web
    Collections", SIGIR 2008, section 3.

    Deviations
    ----------
    The paper does not print its stopword list; the default is the list of the authors' prototype. Its section 3.2 lists
    each signature of the example once; here every occurrence counts, as its multiset similarity (section 4.1.2) needs.
    """

    label: ClassVar[str] = "SpotSigs"

    antecedents: list[str] = field(default_factory=lambda: [*ARTICLES, *FLEXIONS])
    d: int = 2
    c: int = 3
    stopwords: str | None = "prototype"
    include_antecedent: bool = True
    language: str = ENGLISH
    shingles: bool = False

    def __post_init__(self) -> None:
        listed = isinstance(self.antecedents, Sequence) and not isinstance(self.antecedents, str | bytes)
        words = listed and all(isinstance(word, str) for word in self.antecedents)
        require(words, f"antecedents must be a list of words, got {shown(self.antecedents)}")
        require(len(self.antecedents) > 0, "antecedents is empty; give at least one word")
        as_count("d, the spot distance,", self.d, most=_MOST)
        as_count("c, the chain length,", self.c, most=_MOST)
        as_flag("include_antecedent", self.include_antecedent)
        as_flag("shingles", self.shingles)
        for word, d, c in map(self._parse, self.antecedents):
            require(
                1 <= d <= _MOST and 1 <= c <= _MOST,
                f"distance and length of antecedent {word!r} must be in [1, {_MOST}], got ({d},{c})",
            )
            if word.startswith("@"):
                stopword_file(word[1:])
        if self.stopwords is not None:
            require(isinstance(self.stopwords, str), f"stopwords must be a name or path, got {shown(self.stopwords)}")
            stopword_file(self.stopwords)
        require_language(self.language)

    def __repr__(self) -> str:
        """Return the constructor's arguments, without the paper's language and without the shingles that it lacks."""
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        plain = {("language", ENGLISH), ("shingles", False)}
        shown = [
            f"{name}={value!r}"
            for name, value in given.items()
            if isinstance(value, list) or (name, value) not in plain
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _parse(self, entry: str) -> tuple[str, int, int]:
        match = _NOTATION.fullmatch(entry)
        if match is None:
            raise InputError(f"antecedent {entry!r} is neither a word nor of the form word(distance,length)")
        return match["word"], int(match["d"] or self.d), int(match["c"] or self.c)

    def _chains_by_antecedent(self) -> dict[str, list[tuple[int, int]]]:
        """Return the (distance, length) pairs of each antecedent, tokenized, without repeats."""
        chains: dict[str, list[tuple[int, int]]] = {}
        for word, d, c in map(self._parse, self.antecedents):
            tokens = read_stopwords(word[1:]) if word.startswith("@") else tokenize(word).words
            require(
                word.startswith("@") or len(tokens) == 1,
                f"antecedent {word!r} is not one token but {len(tokens)}: {', '.join(tokens)}",
            )
            for token in tokens:
                if (d, c) not in chains.setdefault(token, []):
                    chains[token].append((d, c))
        require(len(chains) > 0, f"antecedents gives no word: {', '.join(self.antecedents)}")
        return chains

    @cached_property
    def _tables(self) -> dict[str, _Table]:
        return {}

    def _antecedent_table(self, language: str) -> _Table:
        """Return the table of a language, built on first use."""
        if language not in self._tables:
            slid_over: list[str] = []
            if language == ENGLISH:
                chains = self._chains_by_antecedent()
                slid_over = [] if self.stopwords is None else read_stopwords(self.stopwords)
            else:
                chains = {word: [(self.d, self.c)] for word in stopwords_of(language)}
            roles = dict.fromkeys(slid_over, _STOPWORD)
            roles |= {word: _FIRST_ANTECEDENT + number for number, word in enumerate(chains)}
            first_chain = np.cumsum([0, *map(len, chains.values())], dtype=np.int32)
            distances, lengths = np.array([pair for pairs in chains.values() for pair in pairs], np.int64).T.copy()
            self._tables[language] = _Table(WordTable.build(roles), _Chains(first_chain, distances, lengths))
        return self._tables[language]

    @property
    def has_shingles(self) -> bool:
        """Whether some texts are cut into shingles."""
        return self.shingles or self.language == AUTO

    @cached_property
    def _latest(self) -> list[tuple[Tokens, str | None]]:
        return []

    def language_of(self, tokens: Tokens) -> str | None:
        """Return the language of a text; None if it is cut into shingles for want of stopwords."""
        if not self.has_shingles:
            return self.language
        if not (self._latest and self._latest[0][0] is tokens):
            self._latest[:] = [(tokens, self._detected(tokens))]
        return self._latest[0][1]

    def _detected(self, tokens: Tokens) -> str | None:
        if is_unspaced(tokens):  # stopwords are in its menus or code
            return None
        if self.language == AUTO:
            language, fraction = language_of(tokens)
        else:
            language, fraction = self.language, fraction_of(tokens, self.language)
        return None if fraction < RAREST else language

    def _table_for(self, tokens: Tokens) -> _Table | None:
        """Return the table of a text's language; None if it has too few stopwords of any."""
        language = self.language_of(tokens)
        return None if language is None else self._antecedent_table(language)

    def __call__(self, tokens: Tokens) -> NDArray[np.uint64]:
        """Return the hash of every spot signature, in text order; chains of one antecedent in the order of the list."""
        return self.located(tokens)[0]

    def located(self, tokens: Tokens) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """Return the hash and the antecedent's token of every spot signature, in the same order."""
        table = self._table_for(tokens)
        if table is None:
            shingles = hash_shingles(tokens, self.c) | IN_SHINGLES
            return shingles, np.arange(len(shingles), dtype=np.int32)
        hashes, firsts = _hash_spots(
            tokens.buffer,
            tokens.starts,
            tokens.ends,
            table.words.roles_of(tokens),
            table.chains,
            self.include_antecedent,
        )
        if self._is_short(tokens, len(hashes)):
            shingles = hash_signed_shingles(tokens, SHINGLE_TOKENS) | IN_SHINGLES
            return shingles, np.arange(len(shingles), dtype=np.int32)
        return hashes & ~IN_SHINGLES if self.has_shingles else hashes, firsts

    def readable(self, text: str) -> list[str]:
        """Return every spot signature of a plain text in canonical form, in the same order.

        Examples
        --------
        >>> scheme = SpotSignatures(antecedents=["a", "an", "the", "is"], d=1, c=2)
        >>> scheme.readable("At a rally to kick off a weeklong campaign")
        ['a:rally:kick', 'a:weeklong:campaign']
        """
        tokens = tokenize(text)
        words = tokens.words
        return [":".join(words[k] for k in chain) for chain in self.chains(tokens)]

    def chains(self, tokens: Tokens) -> list[list[int]]:
        """Return the numbers of the tokens of each spot signature, in the same order."""
        table = self._table_for(tokens)
        if table is None:
            return _runs(len(tokens), self.c)
        roles = table.words.roles_of(tokens)
        content, members = _content_from(roles), np.empty(len(roles), np.int32)
        chains = []
        first, distances, lengths = table.chains
        for i in np.flatnonzero(roles >= _FIRST_ANTECEDENT).tolist():
            antecedent = roles[i] - _FIRST_ANTECEDENT
            for chain in range(first[antecedent], first[antecedent + 1]):
                taken = _chain(content, i, distances[chain], lengths[chain], members)
                if taken:
                    chains.append([i] * self.include_antecedent + members[:taken].tolist())
        return _runs(len(tokens), SHINGLE_TOKENS) if self._is_short(tokens, len(chains)) else chains

    def _is_short(self, tokens: Tokens, spots: int) -> bool:
        """Return whether a text with so many spot signatures is compared by its shingles."""
        return self.has_shingles and spots < FEWEST and (tokens.links is None or not tokens.links.any())


def _runs(n: int, size: int) -> list[list[int]]:
    """Return the numbers of the tokens of each shingle of a text of n tokens."""
    size = min(size, n)
    return [list(range(i, i + size)) for i in range(n - size + 1)] if size else []
