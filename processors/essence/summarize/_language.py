"""The language of a text, by the model of py3langid: its answer, in less time.

Strategy: the model is an automaton over bytes whose states each stand for what was read last (Aho and Corasick 1975), six bytes at
most. So all positions of a text are walked through at once, six steps from the first state, instead of one after another: numpy
waits for memory once a step, Python for each byte. What is counted, and what is made of it, stays py3langid's.

Laws: the scores are those of py3langid, bit by bit. A text is short (`_prose.SLICE`): memory is a few times its bytes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from py3langid.langid import MODEL_FILE, LanguageIdentifier  # type: ignore[import-untyped]

Numbers = NDArray[np.integer[Any]]
BYTES = 256
_LEAST, _INFINITE = 0x8400, 0xFC00
"""The bits of -2**-14, the least number of float16 with all its digits, and those of -infinity."""
_SHIFT = 13
"""Bits by which a fraction of float32 is longer than one of float16."""
_SCALE = np.float32(-(2.0**80))
"""What is left to multiply by: the shifted sign counts as 32 in the exponent, and the bias of float32 is 127 instead of 15."""


class Identifier(LanguageIdentifier):  # type: ignore[misc]  # py3langid has no types
    """py3langid's identifier, with its model in arrays."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.following: Numbers = np.asarray(self.tk_nextmove)
        self.row: Numbers = np.asarray(self.tk_row, dtype=np.uint32) * BYTES
        self._out: Numbers = np.asarray(self.tk_output, dtype=np.int32)
        letters = np.arange(BYTES)
        self.span = span(self.following, self.row)
        one = self.following[self.row[0] + letters]
        self._two: Numbers = self.following[self.row[one][:, None] + letters].ravel()
        """The state after any two bytes."""
        # Logarithms of what is neither sure nor impossible: below 0, and neither tiny nor infinite.
        bits = self.nb_ptc.view(np.uint16) if self.nb_ptc.dtype == np.float16 else np.zeros(1)
        self._plain = bool(bits.min() >= _LEAST and bits.max() < _INFINITE)

    def _raw_score(self, text: bytes) -> Any:
        features = self.features(text)
        return self._sparse_score(Counter(features), self.nb_ptc) if features else super()._raw_score(text)

    def features(self, text: bytes) -> list[int]:
        """The features at which the bytes of a text end, in order."""
        count, before = len(text), self.span - 1
        letters = np.frombuffer(bytes(before) + text, dtype=np.uint8).astype(np.intp)
        states = self._two.take(letters[:count] * BYTES + letters[1 : count + 1])
        for step in range(2, self.span + 1):
            # Where the bytes before the text end, the walk begins.
            states[: before - step + 1] = 0
            if step < self.span:
                states = self.following.take(self.row.take(states) + letters[step : step + count])
        found = self._out.take(states)
        return list(found[found >= 0].tolist())

    def _sparse_score(self, visits: Counter[int], table: NDArray[np.float16]) -> Any:
        if not self._plain:
            return super()._sparse_score(visits, table)
        index = np.fromiter(visits.keys(), dtype=np.intp, count=len(visits))
        counts = np.fromiter(visits.values(), dtype=np.float32, count=len(visits))
        # As float32, by the bits: numpy takes 2 ns a number for that, three times what all else takes.
        rows = table.view(np.uint16).take(index, axis=0).astype(np.uint32)
        rows <<= _SHIFT
        return np.log1p(counts) @ rows.view(np.float32) * _SCALE + self.nb_pc


def span(following: Numbers, row: Numbers) -> int:
    """Bytes that an automaton remembers: those that it takes to its farthest state, if its states stand for what was read last."""
    seen, front, steps = np.zeros(len(row), dtype=bool), np.zeros(1, dtype=np.intp), 0
    seen[0] = True
    while True:
        met = np.zeros(len(row), dtype=bool)
        met[following.reshape(-1, BYTES)[np.unique(row[front]) // BYTES]] = True
        front = np.flatnonzero(met & ~seen)
        if not len(front):
            return steps
        seen |= met
        steps += 1


def identifier() -> Identifier:
    """The identifier with py3langid's own model, which is read: half a second."""
    return cast("Identifier", Identifier.from_model_file(MODEL_FILE))
