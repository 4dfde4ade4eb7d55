from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.store.murmur2 import murmur2, partition

# org.apache.kafka.common.utils.UtilsTest.testMurmur2 (Kafka 4.1).
CASES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def plain(data: bytes) -> int:
    """Kafka's loop, word by word and with signed numbers, as an independent implementation."""
    h = 0x9747B28C ^ len(data)
    for i in range(0, len(data) - 3, 4):
        k = int.from_bytes(data[i : i + 4], "little") * 0x5BD1E995 % 2**32
        h = (h * 0x5BD1E995 % 2**32) ^ ((k ^ (k >> 24)) * 0x5BD1E995 % 2**32)
    rest = data[len(data) // 4 * 4 :]
    for i in reversed(range(len(rest))):
        h ^= rest[i] << (8 * i)
    if rest:
        h = h * 0x5BD1E995 % 2**32
    h = (h ^ (h >> 13)) * 0x5BD1E995 % 2**32
    return h ^ (h >> 15)


@pytest.mark.parametrize("key", CASES)
def test_hashes_of_kafkas_own_test(key: bytes) -> None:
    """The hashes of the keys in Kafka's own test are equal."""
    assert murmur2(key) == CASES[key] % 2**32


@given(st.binary(max_size=600))
def test_keys_of_any_length(key: bytes) -> None:
    """Keys of any length have the hash of Kafka's loop."""
    assert murmur2(key) == plain(key)


@given(st.binary(max_size=80), st.integers(1, 64))
def test_partition_is_positive_hash_modulo_count(key: bytes, count: int) -> None:
    """The partition is Kafka's toPositive(hash) modulo the number of partitions."""
    assert partition(key, count) == (plain(key) & 0x7FFFFFFF) % count
