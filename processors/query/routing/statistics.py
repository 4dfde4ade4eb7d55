"""Statistics of a Broker's words, from which a query is routed (`processors/query/routing/choice.py`), in at most 256 kB.

They are the document frequencies of the most frequent words, and a filter of all others. Words are the forms that an index compares
bare words by, of all text that such a word is looked for in.

Laws:
- Counting takes one pass and bounded memory: beyond ENTRIES words, the rarest are dropped from the table, and are in the filter
  alone (lossy counting: Manku and Motwani, VLDB 2002). A frequency of the table is never too low, and too high by at most `error`.
- A word that a summary has is in the table or in the filter. So a word that is in neither is in no summary.
- The filter has one hash function and is compressed: a sparse bitmap, which for its size as sent errs least (Mitzenmacher,
  "Compressed Bloom filters", PODC 2001). The more words, the smaller the bitmap, and the more words it has by mistake.
- Statistics that come from elsewhere are untrusted: `decode_statistics` raises ValueError, and its work and memory are bounded.
"""

from __future__ import annotations

import hashlib
import heapq
import sys
from array import array
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from processors.query.forms import CACHED, LANGUAGES, Analyzer, language_code, signed_names
from processors.query.words import MAX_WORD, all_spaced, searchable_values
from schemas.query import BY_NAME, LINKS
from schemas.records import Summary

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAX_BYTES = 256_000
"""Maximum length of encoded statistics."""
MOST_WORDS = 20_000
"""Maximum number of words in the table."""
ENTRIES = 250_000
"""Maximum number of words that are counted at once: some 50 MB, with the words of texts that have their forms."""
COLLECTED = 1 << 18
"""Number of forms of summaries that are counted at once: 1 MB."""
COUNTING_BITS = 23
"""Binary logarithm of the bits of the filter while words are counted: 1 MB."""
MOST_BITS, LEAST_BITS = 22, 8
"""Greatest and smallest binary logarithm of the bits of an encoded filter."""

_MAGIC = b"harvest-words 1\n"
_MAX_DECODED = 1 << 23
"""Maximum length of decompressed statistics: 20,000 words of 128 characters, and a filter."""
_TABLE_SHARE = 0.7
"""Greatest part of the statistics that the table takes; if words are long, it has fewer of them."""
_LEVEL = 12
_ESCAPE = 255

Bits = npt.NDArray[np.bool_]


class _Encoded(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Statistics as they are sent; `filter`: the bitmap if it is `plain`, else the distances of its bits.

    Lengths are limits of the type, which refuses a longer list before any of it is made.
    """

    summaries: int
    occurrences: int
    error: int
    languages: Annotated[tuple[str, ...], msgspec.Meta(max_length=len(LANGUAGES))]
    words: Annotated[list[str], msgspec.Meta(max_length=MOST_WORDS)]
    frequencies: Annotated[list[int], msgspec.Meta(max_length=MOST_WORDS)]
    bits: int
    plain: bool
    filter: bytes


class Statistics(msgspec.Struct, frozen=True, dict=True):
    """Statistics of a Broker."""

    summaries: int = 0
    """Number of summaries, without copies."""
    occurrences: int = 0
    """Number of words of all summaries together (CORI's cw)."""
    frequencies: Mapping[str, int] = {}
    """Number of summaries that have a word, by word: the most frequent words."""
    rare: bytes = bytes(1 << (LEAST_BITS - 3))
    """The filter of all other words: a bitmap of a power of two of bits."""
    languages: tuple[str, ...] = ()
    """Languages of the forms."""
    error: int = 0
    """By how much a frequency may be too high."""

    def frequency(self, forms: Iterable[str]) -> int:
        """Return about how many summaries have a word that is found by any of some forms, 1 for a rare one; 0: certainly none."""
        return max((self.frequencies.get(form) or self._rare(form) for form in forms), default=0)

    def _rare(self, form: str) -> int:
        at = _place(form, self._bits)
        return self.rare[at >> 3] >> (7 - (at & 7)) & 1

    @cached_property
    def _bits(self) -> int:
        return (8 * len(self.rare)).bit_length() - 1

    @cached_property
    def analyzer(self) -> Analyzer:
        """Analyzer of queries."""
        return Analyzer(self.languages)


class _Numbers(dict[str, int]):
    """Number of the form of each word, by word; made on demand, and as bounded as the cache of forms is."""

    def __init__(self, forms: Mapping[str, str], numbers: dict[str, int]) -> None:
        """`forms`: the form by word; `numbers`: the number by form, which is extended."""
        self._forms = forms
        self._numbers = numbers

    def __missing__(self, word: str) -> int:
        if len(self) >= CACHED:
            self.clear()
        number = self[word] = self._numbers.setdefault(self._forms[word], len(self._numbers))
        return number


class WordCounts:
    """Counts the words of summaries. `entries`: the maximum number of words counted at once.

    Strategy: each form has a number. A word is mapped to the number of its form in one step, and many numbers are counted at once:
    most of the cost is looking up words in large tables.
    """

    def __init__(self, analyzer: Analyzer, entries: int = ENTRIES) -> None:
        self._analyzer = analyzer
        self._entries = entries
        self._floor = 0
        """Upper limit of the number of summaries with a word that is not counted."""
        self._rare = np.zeros(1 << COUNTING_BITS, np.bool_)
        """The filter of words that were dropped."""
        self.summaries = 0
        self.occurrences = 0
        self._set({})

    def _set(self, counts: Mapping[str, int]) -> None:
        """Replace the table by the numbers of summaries by form: of each at least those that have it."""
        self._numbers = {form: number for number, form in enumerate(counts)}
        self._counts = np.fromiter(counts.values(), np.int64, len(counts))
        self._found = array("I")
        """Numbers of the forms of summaries that are not counted yet, once for each summary."""
        self._tables: dict[int, _Numbers] = {}

    def add(self, summary: Summary) -> None:
        """Count the words of a summary; a copy is not counted, since a search does not show it."""
        if summary.copy_of:
            return
        words, language, names = _words(summary)
        self.summaries += 1
        self.occurrences += len(words) + len(names)
        found = set(map(self._table(language).__getitem__, words))
        found.update(self._numbers.setdefault(name, len(self._numbers)) for name in names)
        self._found.extend(found)
        if len(self._numbers) > self._entries:
            self._drop()
        elif len(self._found) >= COLLECTED:
            self._count()

    def _table(self, language: str) -> _Numbers:
        """Return the numbers of words of texts in a language."""
        forms = self._analyzer.table(language)
        known = self._tables.get(id(forms))
        if known is None:
            known = self._tables[id(forms)] = _Numbers(forms, self._numbers)
        return known

    def _by_form(self) -> dict[str, int]:
        """Return at least the number of summaries with each form."""
        self._count()
        return dict(zip(self._numbers, self._counts.tolist(), strict=True))

    def _count(self) -> None:
        """Count the forms that were found since the last time; a new one may have been dropped from the table before."""
        made = np.bincount(np.frombuffer(self._found, np.uint32), minlength=len(self._numbers))
        made[: len(self._counts)] += self._counts
        made[len(self._counts) :] += self._floor
        self._counts = made
        self._found = array("I")

    def merge(self, other: WordCounts) -> None:
        """Add the counts of another partition, in the same languages."""
        mine, theirs = self._by_form(), other._by_form()
        self._set({form: mine.get(form, self._floor) + theirs.get(form, other._floor) for form in mine.keys() | theirs.keys()})
        self._floor += other._floor
        self._rare |= other._rare
        self.summaries += other.summaries
        self.occurrences += other.occurrences
        if len(self._numbers) > self._entries:
            self._drop()

    def _drop(self) -> None:
        """Move the rarest words, at least a quarter, from the table to the filter."""
        counts = self._by_form()
        lowest = sorted(counts.values())[len(counts) // 4]
        _mark(self._rare, (form for form, count in counts.items() if count <= lowest))
        self._set({form: count for form, count in counts.items() if count > lowest})
        self._floor = max(self._floor, lowest)

    def statistics(self) -> Statistics:
        """Return the statistics, which fit into MAX_BYTES."""
        counts = self._by_form()
        keep = MOST_WORDS
        while True:
            kept = heapq.nsmallest(keep, counts.items(), key=lambda item: (-item[1], item[0]))
            size = len(zstd.compress(_packed([form for form, _ in kept], [count for _, count in kept]), _LEVEL))
            if size <= _TABLE_SHARE * MAX_BYTES:
                break
            keep = min(keep, len(kept)) * 3 // 4
        frequencies = dict(sorted(kept))
        rare = self._rare.copy()
        _mark(rare, (form for form in counts if form not in frequencies))
        known = Statistics(self.summaries, self.occurrences, frequencies, b"", self._analyzer.languages, self._floor)
        return _fitted(known, rare)


def _words(summary: Summary) -> tuple[list[str], str, list[str]]:
    """Return the words of all texts of a summary in which a bare word is looked for, their language, and the names with signs."""
    values = searchable_values(summary)
    texts = [text for name, found in values.items() if name not in BY_NAME and name not in LINKS for text in found]
    names = [name for text in texts for name in signed_names(text)]
    return " ".join(all_spaced(texts)).split(), language_code(values), names


def _place(form: str, bits: int) -> int:
    """Return the bit of a word: the first `bits` bits of its hash, so that a smaller filter joins neighbouring bits."""
    return int.from_bytes(hashlib.blake2b(form.encode("utf-8", "surrogatepass"), digest_size=4).digest()) >> (32 - bits)


def _mark(bitmap: Bits, forms: Iterable[str]) -> None:
    places = np.fromiter((_place(form, COUNTING_BITS) for form in forms), np.int64)
    bitmap[places] = True


def _fitted(known: Statistics, rare: Bits) -> Statistics:
    """Return statistics with the largest filter that leaves them within MAX_BYTES."""
    while True:
        rare = rare[::2] | rare[1::2]
        made = msgspec.structs.replace(known, rare=np.packbits(rare).tobytes())
        bits = len(rare).bit_length() - 1
        if bits <= LEAST_BITS or (bits <= MOST_BITS and len(encode_statistics(made)) <= MAX_BYTES):
            return made


def _packed(words: list[str], frequencies: list[int]) -> bytes:
    return msgspec.msgpack.encode((sorted(words), frequencies))


def encode_statistics(known: Statistics) -> bytes:
    """Return statistics as they are stored and sent."""
    forms = sorted(known.frequencies)
    counts = [known.frequencies[form] for form in forms]
    bits = (8 * len(known.rare)).bit_length() - 1
    facts = known.summaries, known.occurrences, known.error, known.languages
    plain = 3 * int.from_bytes(known.rare).bit_count() > 1 << bits
    made = _Encoded(*facts, forms, counts, bits, plain, known.rare if plain else _gaps(known.rare))
    return _MAGIC + zstd.compress(msgspec.msgpack.encode(made), _LEVEL)


def _gaps(rare: bytes) -> bytes:
    """Return the distances between the bits of a bitmap: a byte each, behind one of 255 for each 255 of a longer one."""
    places = np.flatnonzero(np.unpackbits(np.frombuffer(rare, np.uint8)))
    gaps = np.diff(places, prepend=-1) - 1
    ends = np.cumsum(gaps // _ESCAPE + 1) - 1
    made = np.full(int(ends[-1]) + 1 if len(ends) else 0, _ESCAPE, np.uint8)
    made[ends] = gaps % _ESCAPE
    return made.tobytes()


def decode_statistics(data: bytes) -> Statistics:
    """Return encoded statistics. Raises ValueError with a bounded message, whatever the bytes are."""
    if len(data) > MAX_BYTES or not data.startswith(_MAGIC):
        raise ValueError("these are no statistics of words of this version, or more than 256 kB")
    try:
        unpacking = zstd.ZstdDecompressor()
        unpacked = unpacking.decompress(data[len(_MAGIC) :], _MAX_DECODED)
        found = msgspec.msgpack.decode(unpacked, type=_Encoded) if unpacking.eof else None
    except (zstd.ZstdError, msgspec.DecodeError, UnicodeDecodeError, MemoryError) as error:
        raise ValueError(f"damaged statistics of words: {str(error)[:100]}") from None
    if found is None:
        raise ValueError("damaged statistics of words: they do not end, or are too long")
    _check(found)
    rare = found.filter if found.plain else _bitmap(found.filter, found.bits)
    table = dict(zip(found.words, found.frequencies, strict=True))
    return Statistics(found.summaries, found.occurrences, table, rare, found.languages, found.error)


def _check(found: _Encoded) -> None:
    """Raise ValueError for statistics that cannot be."""
    most = 1 << 53
    if not (0 <= found.summaries <= most and 0 <= found.occurrences <= most and 0 <= found.error <= most):
        raise ValueError("impossible statistics of words: a count is negative or too large")
    if len(found.words) > MOST_WORDS or len(found.words) != len(found.frequencies) or len(set(found.words)) != len(found.words):
        raise ValueError("impossible statistics of words: the table")
    if not all(0 < count <= found.summaries + found.error for count in found.frequencies):
        raise ValueError("impossible statistics of words: a frequency")
    if not all(0 < len(word) <= MAX_WORD for word in found.words):
        raise ValueError("impossible statistics of words: a word")
    if len(found.languages) > len(LANGUAGES) or not all(language in LANGUAGES for language in found.languages):
        raise ValueError("statistics of words in a language that is not known here")
    if not LEAST_BITS <= found.bits <= MOST_BITS:
        raise ValueError("impossible statistics of words: the size of the filter")
    if len(found.filter) > 1 << (found.bits - 1) or (found.plain and len(found.filter) != 1 << (found.bits - 3)):
        raise ValueError("impossible statistics of words: the length of the filter")


def _bitmap(gaps: bytes, bits: int) -> bytes:
    """Return the bitmap with distances as `_gaps` makes them. Raises ValueError."""
    made = np.frombuffer(gaps, np.uint8)
    ends = np.flatnonzero(made != _ESCAPE)
    if len(made) and (not len(ends) or ends[-1] != len(made) - 1):
        raise ValueError("impossible statistics of words: the filter ends too early")
    places = np.cumsum(made, dtype=np.int64)[ends] + np.arange(len(ends))
    if len(places) and places[-1] >= 1 << bits:
        raise ValueError("impossible statistics of words: the filter is too long")
    bitmap = np.zeros(1 << bits, np.bool_)
    bitmap[places] = True
    return np.packbits(bitmap).tobytes()
