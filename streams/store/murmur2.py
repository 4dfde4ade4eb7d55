"""Kafka's default partitioner (law 7): every producer assigns a key to the same partition as Kafka's Java client.

Source: Apache Kafka 4.1, `org.apache.kafka.common.utils.Utils.murmur2` and `toPositive`; MurmurHash 2.0 by Austin Appleby
with Kafka's seed. Results for frequent keys come from a bounded cache.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

SEED = 0x9747B28C
M = 0x5BD1E995
MASK = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF

_WORDS = tuple(Struct(f"<{n}I") for n in range(65))
"""Formats of little-endian words for keys up to 256 bytes; the format of a longer key is built for it."""


def murmur2(data: bytes) -> int:
    """Return the hash of a key as an unsigned 32-bit number (Java's is the same number, signed)."""
    length = len(data)
    count = length >> 2
    words = _WORDS[count] if count < len(_WORDS) else Struct(f"<{count}I")
    h = SEED ^ length
    for word in words.unpack_from(data):
        k = word * M & MASK
        h = h * M & MASK ^ (k ^ k >> 24) * M & MASK
    rest = data[count << 2 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * M & MASK
    h = (h ^ h >> 13) * M & MASK
    return h ^ h >> 15


@lru_cache(maxsize=65_536)
def partition(key: bytes, count: int) -> int:
    """Return the partition, out of `count`, that a key belongs to."""
    return (murmur2(key) & POSITIVE) % count if count > 1 else 0
