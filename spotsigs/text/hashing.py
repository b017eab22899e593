"""XXH64 (seed 0) of bytes, of runs of tokens (shingles) and of sentences, as kernels that copy nothing."""

from __future__ import annotations

import numpy as np

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, Int32s, UInt64s
from spotsigs.records import Tokens
from spotsigs.text.tokens import DASH, SIGN, code_point, sign_kinds

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@kernel
def _rotate(x: np.uint64, bits: np.uint64) -> np.uint64:
    return (x << bits) | (x >> (np.uint64(64) - bits))


@kernel
def read64(data: Bytes, at: int) -> np.uint64:
    """Read eight bytes, little-endian on every machine; the compiler emits a single load."""
    base = np.uint64(at)  # unsigned: numba checks signed indices for wraparound
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(data[base + np.uint64(k)]) << np.uint64(8 * k)
    return word


@kernel
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotate(lane + word * _P2, np.uint64(31)) * _P1


@kernel
def xxh64(data: Bytes, start: int, end: int) -> np.uint64:
    """Return the XXH64 of ``data[start:end]``."""
    at = int(np.int64(start))
    if end - start >= 32:
        a, b, c, d = _P1 + _P2, _P2, np.uint64(0), np.uint64(0) - _P1
        while at + 32 <= end:
            a = _round(a, read64(data, at))
            b = _round(b, read64(data, at + 8))
            c = _round(c, read64(data, at + 16))
            d = _round(d, read64(data, at + 24))
            at += 32
        h = _rotate(a, np.uint64(1)) + _rotate(b, np.uint64(7))
        h += _rotate(c, np.uint64(12)) + _rotate(d, np.uint64(18))
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        h = _P5
    h += np.uint64(end - start)
    while at + 8 <= end:
        h = _rotate(h ^ _round(np.uint64(0), read64(data, at)), np.uint64(27)) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        word = np.uint64(0)
        for k in range(4):
            word |= np.uint64(data[at + k]) << np.uint64(8 * k)
        h = _rotate(h ^ (word * _P1), np.uint64(23)) * _P2 + _P3
        at += 4
    while at < end:
        h = _rotate(h ^ (np.uint64(data[at]) * _P5), np.uint64(11)) * _P1
        at += 1
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@kernel
def _hash_shingles(buffer: Bytes, starts: Int32s, ends: Int32s, k: int) -> UInt64s:
    """Return the XXH64 of every ``k`` contiguous tokens; the buffer stores the tokens joined by colons."""
    hashes = np.empty(len(starts) - k + 1, np.uint64)
    for i in range(len(hashes)):
        hashes[i] = xxh64(buffer, starts[i], ends[i + k - 1])
    return hashes


def hash_shingles(tokens: Tokens, k: int) -> UInt64s:
    """Return the XXH64 of every ``k`` contiguous tokens joined by colons, in text order.

    Fewer than ``k`` tokens form one shingle, no tokens none: uint64, shape (max(n - k, 0) + 1,) or (0,).
    """
    if len(tokens) == 0:
        return np.empty(0, np.uint64)
    hashes: UInt64s = _hash_shingles(tokens.buffer, tokens.starts, tokens.ends, min(k, len(tokens)))
    return hashes


@kernel
def _is_digit(text: Bytes, at: int) -> bool:
    return at < len(text) and 48 <= text[at] <= 57


@kernel
def _hash_signs(text: Bytes, stops: Int32s, starts: Int32s, ends: Int32s, kinds: Bytes) -> tuple[UInt64s, bool]:
    """Return a hash of the signs before each token and after the last, 0 without one, and whether there is any."""
    hashes, found = np.zeros(len(starts) + 1, np.uint64), False
    for n in range(len(hashes)):
        at = int(stops[n - 1]) if n > 0 else 0
        stop = int(stops[n] - (ends[n] - starts[n])) if n < len(starts) else len(text)
        before_digit = _is_digit(text, stop)
        while at < stop:
            code, at = code_point(text, at)
            kind = kinds[code]
            if kind == SIGN or (kind and before_digit):
                code = np.int64(45) if kind == DASH else code
                hashes[n] = (hashes[n] + np.uint64(code)) * _P1
                found = True
    return hashes, found


@kernel
def _mix_signs(shingles: UInt64s, signs: UInt64s) -> None:
    """Mix the signs before, inside and after each shingle into its hash."""
    k = len(signs) - len(shingles)  # tokens of a shingle
    for i in range(len(shingles)):
        for j in range(k + 1):
            if signs[i + j]:
                h = (shingles[i] ^ signs[i + j]) + np.uint64(j) * _P2
                shingles[i] = (_rotate(h, np.uint64(31)) * _P3) ^ h


def hash_signed_shingles(tokens: Tokens, k: int) -> UInt64s:
    """Return the hashes of `hash_shingles`, which differ if the shingles differ in a sign that carries meaning.

    These are the signs of `spotsigs.text.tokens.sign_kinds` before, between and after the tokens: ``12+4`` and
    ``12-4`` have the same tokens. `hash_shingles` gives a shingle without signs the same hash.
    """
    hashes = hash_shingles(tokens, k)
    if len(tokens.stops) > 0:
        signs, found = _hash_signs(tokens.source, tokens.stops, tokens.starts, tokens.ends, sign_kinds())
        if found:
            _mix_signs(hashes, signs)
    return hashes


_MAY_END = np.isin(np.arange(256), [*b"\n\f!.?", 0xE3, 0xEF])


@kernel
def _ends_sentence(text: Bytes, at: int) -> bool:
    byte, two = text[at], len(text) - at > 1
    if byte == 46 or byte == 33 or byte == 63:  # . ! ?
        after = text[at + 1] if two else np.uint8(0)
        return not (48 <= after <= 57 or 97 <= after | 32 <= 122)
    if byte == 0xE3 or byte == 0xEF:  # 3002, FF01 and FF1F, the same of Chinese and Japanese
        mark = np.int64(text[at]) << 16 | np.int64(text[at + 1]) << 8 | np.int64(text[at + 2])
        return bool(mark == 0xE38082 or mark == 0xEFBC81 or mark == 0xEFBC9F)
    return byte == 12 or (byte == 10 and two and text[at + 1] == 10)


@kernel
def _hash_sentences(text: Bytes, stops: Int32s, buffer: Bytes, starts: Int32s, ends: Int32s) -> UInt64s:
    hashes, size, first = np.empty(len(starts), np.uint64), 0, 0
    for n in range(len(starts)):
        is_end = n + 1 == len(starts)
        if not is_end:
            for at in range(stops[n], stops[n + 1] - (ends[n + 1] - starts[n + 1])):  # up to the next token
                if _MAY_END[text[at]]:
                    is_end |= _ends_sentence(text, at)
        if is_end:
            hashes[size] = xxh64(buffer, starts[first], ends[n])
            size, first = size + 1, n + 1
    return hashes[:size]


def hash_sentences(tokens: Tokens) -> UInt64s:
    """Return the XXH64 of the tokens of each sentence joined by colons, in text order: uint64, shape (n,).

    A sentence ends at a full stop, an exclamation or question mark, unless an ASCII letter or digit follows, at the
    ideographic ones, at an empty line, and at a mark of a block.
    """
    hashes: UInt64s = _hash_sentences(tokens.source, tokens.stops, tokens.buffer, tokens.starts, tokens.ends)
    return hashes
