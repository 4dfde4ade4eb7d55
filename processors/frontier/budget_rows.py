"""Typed access to the rows of the limits of roots, without decisions: see `budget.py`.

| row | holds |
| --- | --- |
| `b|root` | Budget: the share of this partition |
| `i|root NUL partition` | Share: home's entry for a partition |
| `y|root` | offset of the last event after which refused URLs are found again: the root's limits changed, or it has room again |
| `r|root NUL host NUL digest` | Waiting: a URL that waits for credit, or has been settled by a grant that may be delivered again |
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from processors.frontier.state import Budget, Share, Waiting
from processors.identity import url_digest
from schemas.ports import Rows

_pack = msgspec.msgpack.encode
_budget = msgspec.msgpack.Decoder(Budget).decode
_share = msgspec.msgpack.Decoder(Share).decode
_waiting = msgspec.msgpack.Decoder(Waiting).decode


class BudgetTable:
    """Typed access to the rows of one partition."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def get(self, root: str) -> Budget | None:
        """Return the share of this partition in a root's limit, or None if it never had one."""
        value = self.rows.get(b"b|" + root.encode())
        return _budget(value) if value is not None else None

    def put(self, root: str, budget: Budget) -> None:
        """Write the share of this partition."""
        self.rows.put(b"b|" + root.encode(), _pack(budget))

    def shares(self, root: str) -> dict[int, Share]:
        """Return home's entries by partition."""
        prefix = b"i|" + root.encode() + b"\0"
        return {int(key[len(prefix) :]): _share(value) for key, value in list(self.rows.scan(prefix))}

    def put_share(self, root: str, partition: int, share: Share) -> None:
        """Write home's entry for a partition."""
        self.rows.put(b"i|" + root.encode() + b"\0%08d" % partition, _pack(share))

    def wait(self, root: str, host: str, waiting: Waiting, settled: int) -> None:
        """Store a URL that waits; one that waits already keeps the event that found it first, unless that is settled."""
        key = b"r|" + root.encode() + b"\0" + host.encode() + b"\0" + url_digest(waiting.link.url)
        value = self.rows.get(key)
        before = _waiting(value) if value is not None else None
        if before is not None and before.offset > settled:
            depth, offset = min(before.depth, waiting.depth), min(before.offset, waiting.offset)
            waiting = waiting.but(depth=depth, offset=offset)
        self.rows.put(key, _pack(waiting))

    def waiting(self, root: str) -> Iterator[tuple[bytes, str, Waiting]]:
        """Iterate over the URLs that wait, and over those settled: key, host, row."""
        prefix = b"r|" + root.encode() + b"\0"
        for key, value in list(self.rows.scan(prefix)):
            yield key, key[len(prefix) : -17].decode(), _waiting(value)

    def reopened_at(self, root: str, offset: int | None = None) -> int:
        """Return the offset of the last event that reopened a root, -1 if none did; `offset` sets it first."""
        key = b"y|" + root.encode()
        if offset is not None:
            self.rows.put(key, str(offset).encode())
        return int(self.rows.get(key) or -1)

    def end(self, root: str) -> None:
        """Delete all rows of a root's limit."""
        for prefix in (b"i|" + root.encode() + b"\0", b"r|" + root.encode() + b"\0"):
            for key, _ in list(self.rows.scan(prefix)):
                self.rows.delete(key)
        for key in (b"b|" + root.encode(), b"y|" + root.encode()):
            if self.rows.get(key) is not None:
                self.rows.delete(key)
