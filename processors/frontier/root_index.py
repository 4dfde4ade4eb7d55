"""The URLs of each root, so that the start of a run reads only those of its root, and in parts.

| row | holds |
| --- | --- |
| `a|root NUL host NUL digest` | a URL of the root (derived) |
| `f|root` | the start of a run of the root is incomplete: a Part |

Laws:
- A row exists for every root of every URL, from before the URL's row names the root. A row without its URL, or for a root that the
  URL no longer has, may remain: readers compare with the URL's row.
- The row `a|` alone marks the index as complete. Rows of an earlier version, or restored from a changelog, have no mark: the index
  is then built from the URLs' rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from schemas.ports import Rows

PREFIX = b"a|"
PARTS = b"f|"
DIGEST = 16
"""Bytes of the digest that ends a key, after a NUL."""


def add(rows: Rows, root: str, host: str, digest: bytes) -> None:
    """Note that a root asks for a URL."""
    rows.put(_key(root, host, digest), b"")


def remove(rows: Rows, root: str, host: str, digest: bytes) -> None:
    """Note that a root no longer asks for a URL."""
    rows.delete(_key(root, host, digest))


def is_complete(rows: Rows) -> bool:
    """Return whether the index has all URLs."""
    return rows.get(PREFIX) is not None


def build(rows: Rows, urls: Iterable[tuple[str, bytes, Iterable[str]]]) -> None:
    """Write the index of all URLs, given as host, digest, roots; the mark comes last."""
    for host, digest, roots in urls:
        for root in roots:
            add(rows, root, host, digest)
    rows.put(PREFIX, b"")


def urls_of(rows: Rows, root: str, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Iterate over the URLs of a root by host and digest: the host as in a key. The rows may be changed meanwhile.

    `after`: host NUL digest of the last URL to leave out.
    """
    prefix = PREFIX + root.encode() + b"\0"
    after = prefix + after
    while batch := [key for key, _ in rows.scan(prefix, after=after, limit=1_000)]:
        for key in batch:
            yield key[len(prefix) : -DIGEST - 1], key[-DIGEST:]
        after = batch[-1]


class Part(msgspec.Struct, frozen=True, array_like=True):
    """How far the start of a run has come."""

    after: bytes
    """Host NUL digest of the last URL of the root that was requested."""
    changed: bool
    """Whether the limits of the root changed with this run."""


def parts(rows: Rows, limit: int = -1) -> list[tuple[bytes, Part]]:
    """Return the roots whose runs have begun in part: URL as in a key, Part."""
    return [(key[len(PARTS) :], msgspec.msgpack.decode(value, type=Part)) for key, value in rows.scan(PARTS, limit=limit)]


def put_part(rows: Rows, root: str, part: Part | None) -> None:
    """Note how far the start of a run has come; None: to its end."""
    key = PARTS + root.encode()
    if part is not None:
        rows.put(key, msgspec.msgpack.encode(part))
    elif rows.get(key) is not None:
        rows.delete(key)


def _key(root: str, host: str, digest: bytes) -> bytes:
    return PREFIX + root.encode() + b"\0" + host.encode() + b"\0" + digest
