"""A bitmap of key hashes, in one megabyte, which shows that a table does not contain a key (a Bloom filter).

A negative answer is certain. False positives grow with the number of keys (a key takes up to three bits: at a million keys, one in
nine to three in ten); a false positive costs one query to the table, no more.

Stems, the prefixes that stages scan, are added too: those that end in the first NUL of a key (`m|url NUL`), or in its second bar
(`h|content|`). Scans of other prefixes always query the table, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable

BITS = 23
"""Bits of a hash that are used: 8 million places."""
DIVISION = b"\0"
"""Ends a stem: a key belongs to the group of all keys with the same bytes up to the first NUL."""
BAR = b"|"
"""Ends the other kind of stem: a key with two bars also belongs to the group of all keys with the same bytes up to the second."""


class Seen:
    """The added keys and their stems, in a bitmap of 2 to the power of `bits` places; `bits` is at least 3."""

    def __init__(self, bits: int = BITS) -> None:
        self._bits = bytearray(1 << bits - 3)
        self._mask = len(self._bits) - 1

    def add(self, keys: Iterable[bytes]) -> None:
        """Add keys and their stems."""
        bits, mask, stem, barred = self._bits, self._mask, b"", b""
        for key in keys:
            place = hash(key)
            bits[place >> 3 & mask] |= 1 << (place & 7)
            end = key.find(DIVISION) + 1
            # Keys arrive in order, so that keys with the same stem are adjacent.
            if end and key[:end] != stem:
                stem = key[:end]
                place = hash(stem)
                bits[place >> 3 & mask] |= 1 << (place & 7)
            end = _second(key)
            if end and key[:end] != barred:
                barred = key[:end]
                place = hash(barred)
                bits[place >> 3 & mask] |= 1 << (place & 7)

    def may_hold(self, key: bytes) -> bool:
        """Return whether a key, or a stem, was possibly added; False is certain."""
        place = hash(key)
        return bool(self._bits[place >> 3 & self._mask] & 1 << (place & 7))


def is_stem(prefix: bytes) -> bool:
    """Return whether a prefix is a stem, so that all keys with this prefix belong to its group."""
    return len(prefix) in (prefix.find(DIVISION) + 1, _second(prefix)) and prefix != b""


def _second(key: bytes) -> int:
    """Return the position behind the second bar of a key; 0 if there are not two."""
    first = key.find(BAR) + 1
    return key.find(BAR, first) + 1 if first else 0
