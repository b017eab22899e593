"""Tokenization: lower-cased runs of letters, digits and combining marks; character bigrams in unspaced scripts.

Text is compared in the form NFKC of Unicode and without characters that nobody sees, so that one text has the same
tokens however it is encoded. Most texts have no character that this changes: they are cut as they are. In nearly all
others each character changes by itself, by a table; what is left is normalized by the standard library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import cast

import numpy as np

from spotsigs.arrays.csr import row_starts
from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, Int32s
from spotsigs.errors import InputError, require
from spotsigs.records import Tokens
from spotsigs.text.markup import BLOCK_MARK, LINK_END_MARK, LINK_MARK

# Scripts without spaces between words, and the kana marks that Unicode assigns to no single script: the prolonged sound
# mark, its halfwidth form, and the voiced sound marks, combining and halfwidth.
_LETTERS = r"\p{L}\p{M}\p{Nd}"
_UNSPACED = (
    r"\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}"
    r"\p{Script=Myanmar}\p{Script=Javanese}\u30FC\uFF70\u3099\u309A\uFF9E\uFF9F"
)
TOKEN_PATTERN = rf"(?V1)(?P<unspaced>[[{_LETTERS}]&&[{_UNSPACED}]]+)|(?P<word>[[{_LETTERS}]--[{_UNSPACED}]]+)"
"""Pattern of the ``regex`` package for runs that form tokens; runs in ``unspaced`` are cut into bigrams."""

INVISIBLE_PATTERN = r"\p{Default_Ignorable_Code_Point}+"
"""Pattern of the ``regex`` package for characters that are not shown: zero-width ones and variation selectors."""

# Characters that may form one with the character before them: by property, or because their own form begins so.
_JOINS = (
    r"\P{CCC=0}\p{NFKC_QC=Maybe}\u0F73\u0F75\u0F81\u3133\u3135\u3136\u313A-\u313F\u314F-\u3163\uFF9E\uFF9F"
    r"\uFFA3\uFFA5\uFFA6\uFFAA-\uFFAF\uFFC2-\uFFC7\uFFCA-\uFFCF\uFFD2-\uFFD7\uFFDA-\uFFDC"
)
_MAY_CHANGE = rf"[{_JOINS}\p{{NFKC_QC=No}}\p{{Default_Ignorable_Code_Point}}]+"
_WORD, _BIGRAMS, _CHANGES = 1, 2, 128
_IN_CONTEXT = 255
_SIGMA = "\u03a3"
_SIGN_PATTERN = r"[\p{Sm}\p{Sc}\U0001F300-\U0001FAFF#%--|~\u2212]"
_BY_DIGITS = "-*/^.,:\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
SIGN, BY_DIGITS, DASH = 1, 2, 3
"""Kinds of signs that carry meaning: always, before a digit, and dashes, which are equal, before a digit."""

_PLANES = ((0, 0x40000), (0xE0000, 0xF0000))
"""Planes that have letters or marks; skipping the others, which have none, saves a tenth of a second."""
_COLON = 58
_BLOCK, _LINK, _LINK_END = map(ord, (BLOCK_MARK, LINK_MARK, LINK_END_MARK))
_MARKS = (LINK_MARK + LINK_END_MARK).encode()
MAX_BYTES = 900_000_000  # bigrams need up to 7/3 of the text, and offsets have 32 bits


# The buffer of tokens, with the offsets of each:   t h e : c a t : i s : ...
#                                         starts   ^0      ^4      ^8
#                                         ends           ^3      ^7    ^10        stops: the same in the text


@cache
def character_kinds() -> Bytes:
    """Return the kind of each code point: 0 separates tokens, 1 belongs to words, 2 to an unspaced script; uint8.

    Bit 7 marks the code points beyond ASCII that `normalized` changes, alone or next to others, so that tokens change.
    The ``regex`` package defines the classes, so they are the same for every version of Python.
    """
    import regex

    everything = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    kinds = np.zeros(len(everything), np.uint8)
    for first, last in _PLANES:
        for run in regex.finditer(TOKEN_PATTERN, everything, pos=first, endpos=last):
            kinds[run.start() : run.end()] = _WORD if run["word"] else _BIGRAMS
    lower = everything.replace("\u0130", "i").lower()  # U+0130 alone becomes two code points
    changes = np.frombuffer(lower.encode("utf-32-le", "surrogatepass"), "<u4") != np.arange(len(everything))
    kinds[0x80:] |= changes[0x80:] * np.uint8(_CHANGES)
    for code in _code_points(_MAY_CHANGE, everything):
        forms = unicodedata.normalize("NFKC", everything[code])
        separates = forms != everything[code] and all(kinds[ord(part)] == 0 for part in forms)
        kinds[code] |= np.uint8(0 if separates and kinds[code] == 0 else _CHANGES)
    return kinds


def _code_points(pattern: str, everything: str) -> list[int]:
    """Return the code points whose runs a pattern of the ``regex`` package matches in the text of all of them."""
    import regex

    runs = (run for first, last in _PLANES for run in regex.finditer(pattern, everything, pos=first, endpos=last))
    return [code for run in runs for code in range(run.start(), run.end())]


@cache
def character_forms() -> tuple[Int32s, Int32s, Bytes]:
    """Return what `normalized` makes of each code point: its number, and the offsets and the UTF-8 of all forms.

    A character that changes to the same form in every text has the number of this form. Another one has ``~k`` with a
    class k: 0 if it never changes; the combining class if it is a mark that does not change after an unchanged
    character of no higher class (as in the quick check of Unicode Standard Annex 15); 255 if its form depends on its
    neighbours, as of what may join the character before it, and of a capital sigma. ASCII counts as unchanged: its
    letters are lower-cased when the text is cut.
    """
    everything = np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    classes = np.zeros(len(everything), np.int32)
    forms: list[bytes] = []
    unseen = set(_code_points(INVISIBLE_PATTERN, everything))
    changed = {*_code_points(_MAY_CHANGE, everything), *np.flatnonzero(character_kinds() & _CHANGES).tolist()}
    classes[_code_points(f"[{_JOINS}]+", everything)] = _IN_CONTEXT
    for code in _code_points(r"(?V1)[\P{CCC=0}&&\p{NFKC_QC=Yes}]+", everything):
        classes[code] = unicodedata.combining(everything[code]) or _IN_CONTEXT
    numbers = ~classes
    for code in sorted(changed):
        form = "" if code in unseen else unicodedata.normalize("NFKC", everything[code])
        if form.lower() == everything[code]:
            continue
        if classes[code] or _SIGMA in form:
            numbers[code] = ~_IN_CONTEXT
        else:
            numbers[code] = len(forms)
            forms.append(form.lower().encode())
    return numbers, row_starts([len(form) for form in forms]).astype(np.int32), np.frombuffer(b"".join(forms), np.uint8)


@cache
def sign_kinds() -> Bytes:
    """Return the kind of each code point as a sign: `SIGN`, `BY_DIGITS`, `DASH`, or 0 of one without meaning; uint8.

    Mathematical and currency signs, emoji, ``#`` and ``%`` always carry meaning; ``- * / ^ . , :`` before a digit.
    """
    import regex

    everything = np.arange(0x20000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    kinds = np.zeros(0x110000, np.uint8)
    for match in regex.finditer(f"(?V1){_SIGN_PATTERN}", everything):
        kinds[match.start()] = SIGN
    for sign in _BY_DIGITS:
        kinds[ord(sign)] = BY_DIGITS if sign in "*/^.,:" else DASH
    return kinds


def normalized(text: str) -> str:
    """Return a text as it is compared: without characters that are not shown, in NFKC, in lower case."""
    import regex

    return unicodedata.normalize("NFKC", regex.sub(INVISIBLE_PATTERN, "", text)).lower()


@kernel
def code_point(text: Bytes, at: int) -> tuple[np.int64, int]:
    """Decode the character at a position of valid UTF-8; return its code point and the position after it."""
    lead = np.int64(text[at])
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | _six_bits(text, at + 1), at + 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | _six_bits(text, at + 1) << 6 | _six_bits(text, at + 2), at + 3
    tail = _six_bits(text, at + 1) << 12 | _six_bits(text, at + 2) << 6 | _six_bits(text, at + 3)
    return (lead & 0x07) << 18 | tail, at + 4


@kernel
def _six_bits(text: Bytes, at: int) -> np.int64:
    """Return the six bits of a continuation byte as int64, so that shifts do not overflow without compilation."""
    return np.int64(text[at] & 0x3F)


@kernel
def _append(
    text: Bytes, start: int, end: int, buffer: Bytes, ends: Int32s, stops: Int32s, n: int, size: int
) -> tuple[int, int]:
    """Append ``text[start:end]`` to the open token and end it; return the number of tokens and the size."""
    for at in range(start, end):
        buffer[size] = text[at]
        size += 1
    ends[n], stops[n] = size, end
    buffer[size] = _COLON
    return n + 1, size + 1


@kernel
def _append_bigrams(
    text: Bytes, first: int, kinds: Bytes, buffer: Bytes, ends: Int32s, stops: Int32s, n: int, size: int
) -> tuple[int, int, int]:
    """Write the bigrams of the unspaced run at ``first``; return its end, the number of tokens and the size."""
    _, at = code_point(text, first)
    is_single = True
    while at < len(text):
        code, after = code_point(text, at)
        if kinds[code] != _BIGRAMS:
            break
        n, size = _append(text, first, after, buffer, ends, stops, n, size)
        first, at, is_single = at, after, False
    if is_single:
        n, size = _append(text, first, at, buffer, ends, stops, n, size)
    return at, n, size


@kernel
def _tokenize(text: Bytes, kinds: Bytes, buffer: Bytes, ends: Int32s, stops: Int32s) -> tuple[int, int]:
    """Write the tokens of valid UTF-8, each followed by a colon; return their number and size.

    ASCII letters are lower-cased. The number is -1 if there is a character that the form of the text may change.
    """
    n, size, at = int(np.int64(0)), int(np.int64(0)), int(np.int64(0))  # a literal compiles what is called twice
    is_open = 0
    while at < len(text):
        byte = text[at]
        if byte < 0x80:  # branch-free: word boundaries are unpredictable
            is_word = 1 if kinds[byte] == _WORD else 0
            closes = is_open & (1 - is_word)
            ends[n], stops[n] = size, at
            buffer[size] = (byte | (65 <= byte <= 90) << 5) if is_word else _COLON
            n, size, at = n + closes, size + is_word + closes, at + 1
            is_open = is_word
            continue
        code, after = code_point(text, at)
        kind = kinds[code]
        if kind & _CHANGES:
            return -1, 0
        if kind != _WORD:
            if is_open:
                n, size = _append(text, at, at, buffer, ends, stops, n, size)
            is_open = 0
            if kind == _BIGRAMS:
                after, n, size = _append_bigrams(text, at, kinds, buffer, ends, stops, n, size)
        else:
            for k in range(at, after):
                buffer[size] = text[k]
                size += 1
            is_open = 1
        at = after
    return _append(text, at, at, buffer, ends, stops, n, size) if is_open else (n, size)


@kernel
def _in_form(text: Bytes, numbers: Int32s, offsets: Int32s, forms: Bytes) -> tuple[Bytes, bool]:
    """Replace each character of valid UTF-8 by its form (`character_forms`); false if one depends on its neighbours.

    A mark depends on them, too, if a change or the mark of a link is before it.
    """
    size, at, last = int(np.int64(0)), int(np.int64(0)), int(np.int64(0))
    while at < len(text):
        byte = text[at]
        if byte < 0x80:
            size, at, last = size + 1, at + 1, _IN_CONTEXT if byte in (_LINK, _LINK_END) else 0
            continue
        code, after = code_point(text, at)
        number = int(numbers[code])
        if number >= 0:
            length = int(offsets[number + 1] - offsets[number])
            size, last = size + length, _IN_CONTEXT if length else last
        elif number < -1 and (~number < last or ~number == _IN_CONTEXT):
            return np.empty(0, np.uint8), False
        else:
            size, last = size + after - at, ~number
        at = after
    result, size, at = np.empty(size, np.uint8), 0, 0
    while at < len(text):
        code, after = code_point(text, at)
        number = int(numbers[code])
        if number >= 0:
            for k in range(offsets[number], offsets[number + 1]):
                result[size] = forms[k]
                size += 1
        else:
            for k in range(at, after):
                result[size] = text[k]
                size += 1
        at = after
    return result, True


def _normalized_utf8(text: str, encoded: bytes, normalize: Callable[[str], str]) -> bytes:
    """Return a text, given also in UTF-8, in normal form; where neighbours matter, that is what a function returns."""
    form, is_done = _in_form(np.frombuffer(encoded, np.uint8), *character_forms())
    return form.tobytes() if is_done else normalize(text).encode("utf-8", "replace")


def tokenize(text: str) -> Tokens:
    """Cut a text into tokens.

    The text is normalized as a whole (`normalized`). Tokens are the maximal runs of letters, combining marks and
    decimal digits of Unicode, so the apostrophe separates tokens. Runs of characters of scripts without
    spaces (Chinese, Japanese, Thai, Khmer, Lao, Burmese, Javanese) are cut into overlapping bigrams; a single such
    character is a token. A change between these scripts and others
    ends a token, and so does a lone surrogate.

    Raises
    ------
    InputError
        If the text has more than 900 MB in UTF-8.
    """
    if not isinstance(text, str):
        raise InputError(f"a text must be a str, got an object of type {type(text).__name__}")
    encoded = text.encode("utf-8", "replace")
    tokens = _cut(encoded)
    if tokens is None:
        tokens = cast(Tokens, _cut(_normalized_utf8(text, encoded, normalized), is_normal=True))
    return replace(tokens, text=text)


@cache
def _kinds_of_normal_text() -> Bytes:
    """Return the kinds of code points in a text that is normalized."""
    kinds: Bytes = character_kinds() & ~np.uint8(_CHANGES)
    return kinds


def _cut(encoded: bytes, *, is_normal: bool = False) -> Tokens | None:
    """Return the tokens of UTF-8; None if it must be normalized first."""
    data = np.frombuffer(encoded, np.uint8)
    require(len(data) <= MAX_BYTES, f"a text may have {MAX_BYTES:,} bytes, this one has {len(data):,}")
    buffer = np.empty(len(data) // 3 * 7 + 8, np.uint8)
    ends, stops = np.empty(len(data) // 2 + 2, np.int32), np.empty(len(data) // 2 + 2, np.int32)
    n, size = _tokenize(data, _kinds_of_normal_text() if is_normal else character_kinds(), buffer, ends, stops)
    if n < 0:
        return None
    starts = np.zeros(n, np.int32)
    starts[1:] = ends[: max(n - 1, 0)] + 1
    return Tokens(buffer[: max(size - 1, 0)], starts, ends[:n], source=data, stops=stops[:n])


@kernel
def _links_of(text: Bytes, firsts: Int32s) -> Int32s:
    """Return the number of the link that contains each token's first character, or 0 outside links.

    ``firsts`` are the offsets of these characters in the text without link marks.
    """
    links, n, removed, last, inside = np.zeros(len(firsts), np.int32), 0, 0, 0, False
    for at in range(len(text)):
        byte = text[at]
        if byte > _LINK_END or (byte != _LINK and byte != _LINK_END and byte != _BLOCK):  # the first decides mostly
            continue
        while n < len(firsts) and firsts[n] < at - removed:
            links[n] = last if inside else 0
            n += 1
        if byte == _BLOCK:
            last += inside
        else:
            inside = byte == _LINK
            last += inside
            removed += 1
    links[n:] = last if inside else 0
    return links


def unmarked(text: str) -> str:
    """Return a text without the marks of its links and blocks."""
    return text.replace(LINK_MARK, "").replace(LINK_END_MARK, "")


def tokenize_marked(text: str) -> Tokens:
    """Cut a text of `spotsigs.text.visible.VisibleText.marked` into the tokens of `tokenize`, with their ``links``."""
    data = text.encode("utf-8", "replace")
    tokens = _cut(data.translate(None, _MARKS))
    if tokens is None:
        data = _normalized_utf8(text, data, _normalized_marked)
        tokens = cast(Tokens, _cut(data.translate(None, _MARKS), is_normal=True))
    links = _links_of(np.frombuffer(data, np.uint8), tokens.stops - (tokens.ends - tokens.starts))
    return replace(tokens, links=links, text=unmarked(text))


def _normalized_marked(text: str) -> str:
    """Return a marked text in the form of `normalized`; a mark inside of what becomes one character is moved after it.

    The marks do not change the form of the text between them, though a sigma in lower case depends on its neighbours.
    """
    import regex

    visible = regex.sub(INVISIBLE_PATTERN, "", text)
    marks = f"[{LINK_MARK}{LINK_END_MARK}]"
    between = rf"(?<=[^{LINK_MARK}{LINK_END_MARK}])(?:{marks}++[{_JOINS}]++)+"
    moved = regex.sub(between, lambda run: regex.sub(marks, "", run[0]) + regex.sub(f"[{_JOINS}]", "", run[0]), visible)
    formed = unicodedata.normalize("NFKC", moved)
    lowered, at, pieces = unmarked(formed).lower(), 0, []
    for piece in re.split(f"([{LINK_MARK}{LINK_END_MARK}])", formed):
        if piece in (LINK_MARK, LINK_END_MARK):
            pieces.append(piece)
        else:
            size = len(piece) + piece.count("\u0130")  # the one character that becomes two
            pieces.append(lowered[at : at + size])
            at += size
    return "".join(pieces)
