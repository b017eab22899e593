"""A hash table of words with the role of each token of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from xxhash import xxh64_intdigest

from spotsigs.arrays.kernel import kernel
from spotsigs.arrays.types import Bytes, Int32s, UInt64s
from spotsigs.records import Tokens
from spotsigs.text.hashing import read64, xxh64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _prefix(buffer: Bytes, start: int, end: int) -> np.uint64:
    """Return the first eight bytes of a token as a number; distinct for distinct tokens of up to eight bytes."""
    if start + 8 <= len(buffer):
        return read64(buffer, start) << np.uint64(8 * max(8 - end + start, 0))
    prefix = np.uint64(0)
    for at in range(start, end):
        prefix = (prefix >> np.uint64(8)) | np.uint64(buffer[at]) << np.uint64(56)
    return prefix


@kernel
def _roles_of(buffer: Bytes, starts: Int32s, ends: Int32s, prefixes: UInt64s, hashes: UInt64s, roles: Int32s) -> Int32s:
    """Look up the role of each token."""
    mask, shift = np.uint64(len(roles) - 1), np.uint64(64)
    while len(roles) >> np.int64(64 - shift) > 1:
        shift -= np.uint64(1)
    of_tokens = np.empty(len(starts), np.int32)
    for i in range(len(starts)):
        prefix = _prefix(buffer, starts[i], ends[i])
        slot = prefix * _GOLDEN >> shift
        is_long = ends[i] - starts[i] > 8
        # One test, which seldom holds: which words are stopwords cannot be predicted.
        if (roles[slot] != 0) & (is_long | (prefixes[slot] != prefix) | (hashes[slot] != 0)):
            key = xxh64(buffer, starts[i], ends[i]) if is_long else np.uint64(0)
            while roles[slot] != 0 and (prefixes[slot] != prefix or hashes[slot] != key):
                slot = (slot + np.uint64(1)) & mask
        of_tokens[i] = roles[slot]
    return of_tokens


class WordTable(NamedTuple):
    """The role of each of some words; open addressing, linear probing."""

    prefixes: UInt64s  # the first eight bytes of each word, as a number. Shape (n_slots,).
    hashes: UInt64s  # XXH64 of words longer than their prefix, else 0. Shape (n_slots,).
    roles: Int32s  # 0 in an empty slot. Shape (n_slots,).

    @classmethod
    def build(cls, role_of: Mapping[str, int]) -> WordTable:
        """Return the table of words, tokens all of them, with their positive roles."""
        bits = (8 * len(role_of)).bit_length()
        prefixes, hashes = np.zeros((2, 1 << bits), np.uint64)
        roles = np.zeros(1 << bits, np.int32)
        for word, role in role_of.items():
            data = word.encode()
            prefix = int.from_bytes(data[:8].rjust(8, b"\0"), "little")
            slot = (prefix * int(_GOLDEN) & (1 << 64) - 1) >> 64 - bits
            while roles[slot]:
                slot = (slot + 1) & (1 << bits) - 1
            prefixes[slot], hashes[slot] = prefix, xxh64_intdigest(data) if len(data) > 8 else 0
            roles[slot] = role
        return cls(prefixes, hashes, roles)

    def roles_of(self, tokens: Tokens) -> Int32s:
        """Return the role of each token, 0 for those that are not in the table."""
        of_tokens: Int32s = _roles_of(tokens.buffer, tokens.starts, tokens.ends, self.prefixes, self.hashes, self.roles)
        return of_tokens
