"""Generates inputs: files of the corpus, mutated at random, with knowledge of the structure of formats.

Law: the output depends only on the seed, the corpus and the words.
"""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile
from collections.abc import Callable, Sequence

MOST = 1 << 15
"""Maximum bytes of an input, unless the file it is made from is larger."""
STRETCH = 1 << 13
"""Maximum bytes of a repeated fragment."""
EDGES = (
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFE,
    0xFFFFFFFF,
    (1 << 63) - 1,
    (1 << 64) - 1,
)
"""Numbers at which lengths, offsets and counts often go wrong."""
NUMBERS = ("0", "1", "-1", "9", "65536", "4294967295", "99999999999999999999", "1e9", "0x7fffffff", "00")
BLOCK = 512
_NUMBER = re.compile(rb"\d+")

Change = Callable[[bytes], bytes]


class Mutator:
    """Mutates inputs: `words` are the tokens of the format, `corpus` has the files to splice from."""

    def __init__(self, chance: random.Random, words: Sequence[bytes], corpus: Sequence[bytes]) -> None:
        self.chance = chance
        self.words = words or (b"\0",)
        self.corpus = corpus
        self._plain: tuple[Change, ...] = (
            *(self._flip, self._byte, self._edge, self._edge, self._near, self._delete, self._double, self._word, self._word),
            *(self._over, self._splice, self._cut, self._swap, self._number, self._number, self._noise, self._stretch),
            *(self._line, self._exchange),
        )

    def mutate(self, data: bytes) -> bytes:
        """A file with some mutations, most often few."""
        most = max(MOST, len(data))
        inner = self.chance.random() < 0.6 and (self._zip(data) or self._gzip(data))
        if inner:
            return inner
        for _ in range(1 << self.chance.choice((0, 0, 1, 1, 2, 3, 4))):
            data = self.chance.choice(self._plain)(data)[:most]
        return tarred(data) if self.chance.random() < 0.8 else data

    def repeated(self, data: bytes) -> Callable[[int], bytes]:
        """A function from a size in bytes to the file with a fragment repeated to that size: input that must take linear work."""
        low, high = self._slice(data, 64)
        fragment = data[low:high] if self.chance.random() < 0.5 and high > low else self.chance.choice(self.words)
        if self.chance.random() < 0.3:
            fragment += self.chance.choice((b"\n", b" ", b"\0", *self.words))
        head, tail = data[:low], data[high : high + 256] if self.chance.random() < 0.5 else b""
        return lambda size: head + fragment * (size // len(fragment)) + tail

    # ---- inside archives -------------------------------------------------------------------------------------------

    def _zip(self, data: bytes) -> bytes:
        """A zip with one part mutated and its checksum updated; b"" if the data is not a zip."""
        if not data.startswith(b"PK\3\4"):
            return b""
        out = io.BytesIO()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as given, zipfile.ZipFile(out, "w") as made:
                parts = [i for i in given.infolist() if i.file_size <= MOST]
                changed = self.chance.choice(parts)
                for part in parts:
                    content = given.read(part)
                    new = zipfile.ZipInfo(part.filename)
                    how = zipfile.ZIP_STORED if part.filename == "mimetype" else zipfile.ZIP_DEFLATED
                    made.writestr(new, self.mutate(content) if part is changed else content, how)
        except Exception:  # noqa: BLE001 - one that was damaged before is changed as bytes
            return b""
        return out.getvalue()

    def _gzip(self, data: bytes) -> bytes:
        if not data.startswith(b"\x1f\x8b\x08"):
            return b""
        try:
            return gzip.compress(self.mutate(gzip.decompress(data)[:MOST]), 1, mtime=0)
        except Exception:  # noqa: BLE001 - the same
            return b""

    # ---- changes of bytes ------------------------------------------------------------------------------------------

    def _at(self, data: bytes) -> int:
        """A random offset; the first bytes, where headers are, are chosen more often."""
        most = len(data) if self.chance.random() < 0.7 else min(len(data), 128)
        return self.chance.randrange(most + 1)

    def _slice(self, data: bytes, most: int = 4_096) -> tuple[int, int]:
        low = self._at(data)
        return low, min(len(data), low + int(most ** self.chance.random()))

    def _flip(self, data: bytes) -> bytes:
        at = self._at(data[:-1])
        return data[:at] + bytes([data[at] ^ 1 << self.chance.randrange(8)]) + data[at + 1 :] if data else data

    def _byte(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + bytes([self.chance.randrange(256)]) + data[at + 1 :]

    def _edge(self, data: bytes) -> bytes:
        at, size = self._at(data), self.chance.choice((1, 2, 2, 4, 4, 4, 8))
        value = (self.chance.choice(EDGES) + self.chance.choice((0, 0, 0, -1, 1))) % (1 << 8 * size)
        return data[:at] + value.to_bytes(size, self.chance.choice(("little", "big"))) + data[at + size :]

    def _near(self, data: bytes) -> bytes:
        """Make a stored number, or one that equals the length of the data, slightly larger or smaller."""
        at, size, order = self._at(data), self.chance.choice((1, 2, 4)), self.chance.choice(("little", "big"))
        found = int.from_bytes(data[at : at + size], "little" if order == "little" else "big")
        made = len(data) if self.chance.random() < 0.2 else found + self.chance.randrange(-16, 17)
        return data[:at] + (made % (1 << 8 * size)).to_bytes(size, "little" if order == "little" else "big") + data[at + size :]

    def _delete(self, data: bytes) -> bytes:
        low, high = self._slice(data)
        return data[:low] + data[high:]

    def _double(self, data: bytes) -> bytes:
        low, high = self._slice(data)
        return data[:high] + data[low:high] * self.chance.choice((1, 1, 2, 7)) + data[high:]

    def _word(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + self.chance.choice(self.words) + data[at:]

    def _over(self, data: bytes) -> bytes:
        at, word = self._at(data), self.chance.choice(self.words)
        return data[:at] + word + data[at + len(word) :]

    def _splice(self, data: bytes) -> bytes:
        other = self.chance.choice(self.corpus)
        low, high = self._slice(other)
        at = self._at(data)
        return data[:at] + other[low:high] + data[at + (high - low if self.chance.random() < 0.5 else 0) :]

    def _cut(self, data: bytes) -> bytes:
        return data[: self._at(data)]

    def _swap(self, data: bytes) -> bytes:
        low, high = self._slice(data)
        at = self._at(data)
        return data[:low] + data[at : at + high - low] + data[high:]

    def _number(self, data: bytes) -> bytes:
        """Replace digits, which may be a length, by another number."""
        found = list(_NUMBER.finditer(data[: 1 << 14]))
        if not found:
            return data
        one = self.chance.choice(found)
        width = one.end() - one.start()
        near = str(max(0, int(one[0][:18]) + self.chance.randrange(-9, 10))).rjust(width, "0")
        made = self.chance.choice((*NUMBERS, near, near, near)).encode()
        return data[: one.start()] + (made[:width] if self.chance.random() < 0.5 else made) + data[one.end() :]

    def _noise(self, data: bytes) -> bytes:
        at = self._at(data)
        return data[:at] + self.chance.randbytes(self.chance.randrange(1, 32)) + data[at:]

    def _stretch(self, data: bytes) -> bytes:
        return self.repeated(data)(int(STRETCH ** self.chance.random())) if data else data

    def _line(self, data: bytes) -> bytes:
        """Swap, delete or duplicate lines."""
        lines = data[:MOST].split(b"\n")
        at, other = self.chance.randrange(len(lines)), self.chance.randrange(len(lines))
        lines[at : at + 1] = self.chance.choice(([], [lines[other]], [lines[at], lines[other]], [lines[at] + lines[other]]))
        return b"\n".join(lines) + data[MOST:]

    def _exchange(self, data: bytes) -> bytes:
        """Replace a word of the format by another."""
        one = self.chance.choice(self.words)
        at = data.find(one)
        return data if at < 0 else data[:at] + self.chance.choice(self.words) + data[at + len(one) :]


def tarred(data: bytes) -> bytes:
    """Data with the checksums of tar headers corrected; other data is unchanged."""
    if data[257:262] != b"ustar":
        return data
    blocks = bytearray(data)
    for at in range(0, len(data) - BLOCK + 1, BLOCK):
        if blocks[at + 257 : at + 262] == b"ustar":
            blocks[at + 148 : at + 156] = b" " * 8
            blocks[at + 148 : at + 156] = b"%06o\0 " % sum(blocks[at : at + BLOCK])
    return bytes(blocks)
