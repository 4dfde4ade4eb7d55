"""Typed access to the rows of time, versions and removals.

| row | holds |
| --- | --- |
| `t`, `k` | time seen, last version minted, last event with rows in `e|`; the last tick |
| `j` | offset of the last event that began a run |
| `e|c offset host NUL digest` | the removal of a URL that this event ended (`e|t`: this tick), until its delivery is certain |
"""

from __future__ import annotations

from typing import cast

import msgspec

from processors.frontier.state import Clock
from schemas.codec import DecodeError, decode, encode
from schemas.ports import Rows
from schemas.records import FetchedObject

_pack = msgspec.msgpack.encode
_clock = msgspec.msgpack.Decoder(Clock).decode


class ClockRows:
    """Rows of time, versions and removals of one partition."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    # ---- time and versions ---------------------------------------------------------------------------------------

    def advance(self, time: int) -> Clock:
        """Advance the partition's clock to `time` if that is later, and return the clock."""
        clock = self._clock()
        if time > clock.seen:
            clock = self._put_clock(clock.but(seen=time))
        return clock

    def tick_once(self, origin: int) -> bool:
        """Return whether a tick (its origin, below 0) is new, and note it."""
        value = self.rows.get(b"k")
        if value is not None and int(value) <= origin:
            return False
        self.rows.put(b"k", str(origin).encode())
        return True

    def begin_once(self, origin: int) -> bool:
        """Return whether an event that begins a run is new, by its offset, and note it."""
        value = self.rows.get(b"j")
        if value is not None and int(value) >= origin:
            return False
        self.rows.put(b"j", str(origin).encode())
        return True

    def mint(self, now: int) -> int:
        """Return a version above all that this partition has minted: max(last + 1, now)."""
        clock = self._clock()
        return self._put_clock(clock.but(minted=max(clock.minted + 1, now))).minted

    def minted(self) -> int:
        """Return the last version that this partition has minted."""
        return self._clock().minted

    def _clock(self) -> Clock:
        value = self.rows.get(b"t")
        return _clock(value) if value is not None else Clock()

    def _put_clock(self, clock: Clock) -> Clock:
        self.rows.put(b"t", _pack(clock))
        return clock

    # ---- removals ------------------------------------------------------------------------------------------------

    def tell(self, origin: int, host: str, digest: bytes, removal: FetchedObject) -> None:
        """Store the removal of a URL before its row is deleted."""
        clock = self._clock()
        if origin > clock.ending:
            self._put_clock(clock.but(ending=origin))
        self.rows.put(_removal_prefix(origin) + host.encode() + b"\0" + digest, encode(removal))

    def stored_removals(self, origin: int) -> list[tuple[str, bytes, FetchedObject]]:
        """Return the removals of an event or a tick: host, digest, removal."""
        prefix = _removal_prefix(origin)
        found = self.rows.scan(prefix)
        return [(decode_text(key[len(prefix) : -17]), key[-16:], cast("FetchedObject", decode(value))) for key, value in found]

    def delivered(self, origin: int, committed: int) -> None:
        """Delete the stored removals of events (or of ticks, if `origin` is one) before `committed`."""
        kind = _removal_prefix(origin)[:3]
        while batch := [key for key, _ in self.rows.scan(kind, limit=64)]:
            for key in batch:
                if int(key[3:23]) >= committed:
                    return
                self.rows.delete(key)
        if origin >= 0:
            self._put_clock(self._clock().but(ending=-1))


def _removal_prefix(origin: int) -> bytes:
    return b"e|c%020d" % origin if origin >= 0 else b"e|t%020d" % (-1 - origin)


def decode_text(part: bytes) -> str:
    """Decode part of a key, or a value, as text. Raises DecodeError if it is not UTF-8: the row was altered from outside."""
    try:
        return part.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a key of the frontier: {error}") from error
