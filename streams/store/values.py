"""How the values of records and rows are stored: compressed, and what several of them contain only once.

A summary stands in the row of the catalog, in that of each Broker's register, and in three topics. All of these values share one
content, the encoded summary (table `contents`), and store what they have around it. Triggers count the values that share a content
(table `shares`), whoever writes or deletes them; a content that no value shares goes with the transaction that ends its use.

The column `form` of a value: NULL, as it is; 0 or less, compressed (`dictionaries.py`); more, the number of its content.

Laws:
- A value is read with its content by one statement, hence from one state of the file.
- Contents are found by their beginning (the OID), and compared byte by byte; only those are used again that this connection has
  read or written, while no other one has committed.
- Numbers of contents are not used twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apsw
import msgspec

from schemas.codec import HEADER, MAGIC, rabin
from streams.store.dictionaries import Dictionaries, Packed

SUMMARY = MAGIC + rabin("Summary")
REACH = 8 << 10
"""Bytes of a value in which a summary has to begin. A row of a register may have the URLs of copies before it."""
START = slice(HEADER, HEADER + 66)
"""The bytes of a summary by which a content is found: its OID."""
SHARED = 200
"""Minimal bytes of a content."""
PACKED = 2
"""Length of an array that stands for another one, which is compressed: its form, and its bytes."""
MEMORY = 4 << 20
"""Bytes of contents that are remembered, twice."""
CONTENTS = "contents"

COMPRESSED = "value, form, data, packing FROM {table} LEFT JOIN contents ON id=form"
"""The columns of a stored value, and the tables that have them."""
AS_IT_IS = "value, NULL, NULL, NULL FROM {table}"
"""The same for a file that an older version has written."""

NUMBERED = "SELECT seq FROM sqlite_sequence WHERE name='contents'"
ADD = "INSERT INTO contents(id, packing, data) VALUES(?, ?, ?)"
COUNTED = "INSERT INTO shares(id, count) VALUES(?, 0)"
UNSHARED = "DELETE FROM shares WHERE count=0 RETURNING id"
REMOVE = "DELETE FROM contents WHERE id=?"
WATCHED = "SELECT DISTINCT tbl_name FROM sqlite_master WHERE type='trigger'"
LOST = "SELECT 1 FROM {table} WHERE form>0 AND NOT EXISTS (SELECT 1 FROM contents WHERE id=form) LIMIT 1"
WATCH = """
CREATE TRIGGER {table}_added AFTER INSERT ON {table} WHEN new.form>0
    BEGIN UPDATE shares SET count=count+1 WHERE id=new.form; END;
CREATE TRIGGER {table}_gone AFTER DELETE ON {table} WHEN old.form>0
    BEGIN UPDATE shares SET count=count-1 WHERE id=old.form; END;
CREATE TRIGGER {table}_changed AFTER UPDATE OF form ON {table} WHEN old.form IS NOT new.form
    BEGIN UPDATE shares SET count=count-1 WHERE id=old.form; UPDATE shares SET count=count+1 WHERE id=new.form; END;
"""

_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder().decode
Execute = Callable[[str, Sequence[Any]], apsw.Cursor]


class Values:
    """The stored values of one connection. `encode` is for use in a transaction: `write` precedes its writes, `sweep` follows them.

    former: the file is of an older version. writes: the connection may write.
    """

    def __init__(self, connection: apsw.Connection, *, former: bool, writes: bool) -> None:
        self._connection = connection
        self._former, self._writes = former, writes
        self._columns = AS_IT_IS if former else COMPRESSED
        self._packing = Dictionaries(connection)
        self._young: dict[bytes, tuple[int, bytes]] = {}
        self._old: dict[bytes, tuple[int, bytes]] = {}
        self._bytes = 0
        self._last: int | None = None
        self._added: list[tuple[int, int | None, bytes]] = []
        self._watched: set[str] | None = None
        self._watch: set[str] = set()

    def ask(self, execute: Execute, template: str, table: str, bindings: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT, whose last column is a value: `{value}` in it stands for that, and for FROM.

        Raises apsw.Error, also for a damaged value.
        """
        while True:
            found: list[tuple[Any, ...]] = execute(
                template.replace("{value}", self._columns.format(table=table)), bindings
            ).fetchall()
            if not self._former or not self._renewed():
                return [(*row[:-4], self._value(*row[-4:])) for row in found]

    def _renewed(self) -> bool:
        """Return whether a writer has changed the file to the present version meanwhile."""
        if self._connection.pragma("user_version") > 1:
            self._former, self._columns = False, COMPRESSED
        return not self._former

    def _value(self, value: bytes | None, form: int | None, data: bytes | None, packing: int | None) -> bytes | None:
        if form is None or value is None:
            return value
        if form <= 0:
            return self._packing.unpack(value, form)
        if data is None:
            raise apsw.CorruptError(f"a content is missing: {form}")
        before, cut, after = self._around(value)
        content = data if packing is None else self._packing.unpack(data, packing)
        if self._writes and self._young.get(content[START], (0, b""))[0] < form:
            self._remember(form, content)
        return b"".join((before, content[:cut], after))

    def _around(self, value: bytes) -> tuple[bytes, int, bytes]:
        """Return what a value has before its content, the bytes that it has of that, and what it has behind."""
        try:
            found = _decode(value)
            if len(found) == PACKED:
                found = _decode(self._packing.unpack(found[1], found[0]))
            before, cut, after = found
        except (msgspec.DecodeError, TypeError, ValueError) as error:
            raise apsw.CorruptError(f"a value is damaged: {error}") from error
        return before, cut, after

    def encode(self, group: str, table: str, value: bytes | None) -> tuple[bytes | None, int | None]:
        """Return a value as it is stored in a table, and its form."""
        if value is None:
            return None, None
        at = value.find(SUMMARY, 0, REACH)
        if at >= 0 and len(value) - at >= SHARED:
            return self._share(group, table, value, at)
        return self._packing.pack(group, value)

    def pack(self, group: str, value: bytes | None) -> tuple[bytes | None, int | None]:
        """Return a value as it is stored where it shares nothing, and its form."""
        return (None, None) if value is None else self._packing.pack(group, value)

    def write(self, cursor: apsw.Cursor) -> None:
        """Store what the encoded values need: dictionaries, contents, triggers."""
        self._packing.write(cursor)
        for table in self._watch:
            cursor.execute(WATCH.format(table=table))
        cursor.executemany(ADD, self._added)
        cursor.executemany(COUNTED, [(number,) for number, _, _ in self._added])
        if self._watched is not None:
            self._watched |= self._watch
        self._watch, self._added = set(), []

    def sweep(self, cursor: apsw.Cursor) -> None:
        """Delete the contents that no value shares any more."""
        gone: list[tuple[int]] = cursor.execute(UNSHARED).fetchall()  # type: ignore[assignment]
        if not gone:
            return
        cursor.executemany(REMOVE, gone)
        numbers = {number for (number,) in gone}
        self._young = _without(self._young, numbers)
        self._old = _without(self._old, numbers)

    def forget(self) -> None:
        """Drop everything that another connection may have changed, or that comes from a transaction that was undone."""
        self._packing.forget()
        self._young, self._old, self._bytes, self._last, self._added = {}, {}, 0, None, []
        self._watched, self._watch = None, set()

    def damage(self) -> str:
        """Return the name of a table that has a value without its content; "" if there is none."""
        if not self._former:
            for (table,) in self._connection.execute(WATCHED).fetchall():
                if self._connection.execute(LOST.format(table=table)).get:
                    return f"values of {table} have lost their contents"
        return ""

    def _share(self, group: str, table: str, value: bytes, at: int) -> tuple[bytes, int]:
        key = value[at:][START]
        number, content = self._young.get(key) or self._old.get(key) or (0, b"")
        cut = _common(content, value, at)
        if cut < (len(value) - at) // 2:
            number, content = self._add(value[at:])
            cut = len(content)
        self._see(table)
        around = _encode((value[:at], cut, value[at + cut :]))
        packed = self._packing.pack(f"{group} around", around)
        return (around if packed.form is None else _encode((packed.form, packed.data))), number

    def _add(self, content: bytes) -> tuple[int, bytes]:
        if self._last is None:
            self._last = int(self._connection.execute(NUMBERED).get or 0)
        self._last += 1
        packed: Packed = self._packing.pack(CONTENTS, content)
        self._added.append((self._last, packed.form, packed.data))
        self._remember(self._last, content)
        return self._last, content

    def _see(self, table: str) -> None:
        """See to the triggers of a table that gets a value with a content."""
        if self._watched is None:
            self._watched = {name for (name,) in self._connection.execute(WATCHED)}
        if table not in self._watched:
            self._watch.add(table)

    def _remember(self, number: int, content: bytes) -> None:
        self._young[content[START]] = number, content
        self._bytes += len(content)
        if self._bytes > MEMORY:
            self._old, self._young, self._bytes = self._young, {}, 0


def _without(known: dict[bytes, tuple[int, bytes]], numbers: Iterable[int]) -> dict[bytes, tuple[int, bytes]]:
    return {key: entry for key, entry in known.items() if entry[0] not in numbers}


def _common(content: bytes, value: bytes, at: int) -> int:
    """Return the number of bytes that a content has in common with a value from `at` on."""
    if value.startswith(content, at):
        return len(content)
    low, high = 0, min(len(content), len(value) - at)
    while low < high:
        middle = (low + high + 1) // 2
        if content[low:middle] == value[at + low : at + middle]:
            low = middle
        else:
            high = middle - 1
    return low
