"""ar archives: Unix libraries and Debian packages, with the long names of BSD (`#1/LENGTH`) and of GNU (`//`).

Symbol tables are not members. A thin archive (`!<thin>`) contains only names, and is refused. The format has no end mark:
an archive cut off between two members cannot be distinguished from a whole one.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader, Refused
from processors.essence.formats.streams import Slice, exact, need
from processors.essence.unnest import Container

MAGIC = b"!<arch>\n"
THIN = b"!<thin>\n"
HEADER = 60
MAX_NAMES = 1 << 20
"""Maximum bytes of the table of long names (GNU), and of one name (BSD)."""
TABLES = (b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED", b"__.SYMDEF_64", b"__.SYMDEF_64 SORTED")


def _number(field: bytes, base: int = 10) -> int:
    """Parse a numeric field. Raises Damaged."""
    try:
        found = int(field.strip() or b"0", base)
    except ValueError:
        found = -1
    if found < 0:
        raise Damaged("damaged header: no number where one belongs")
    return found


def _long_name(table: bytes, field: bytes) -> bytes:
    """Return the name at an offset in GNU's table. Raises Damaged."""
    at = _number(field)
    end = table.find(b"\n", at)
    if at >= len(table) or end < 0:
        raise Damaged("damaged header: no such name in the table")
    return table[at:end].rstrip(b"/")


def _table(body: Slice) -> bytes:
    """Read GNU's table of names. Raises Damaged."""
    if body.left > MAX_NAMES:
        raise Damaged(f"a table of names of more than {MAX_NAMES} bytes")
    return exact(body, body.left)


def _name(field: bytes, body: Slice, table: bytes) -> bytes:
    """Return the name of a member; a long BSD name is read from the start of its body. Raises Damaged."""
    if field.startswith(b"#1/"):
        size = _number(field[3:])
        if size > min(body.left, MAX_NAMES):
            raise Damaged("damaged header: a name longer than its member")
        return need(body, size, "a name ends early").rstrip(b"\0")
    if field in TABLES:
        return field
    if field.startswith(b"/"):
        return _long_name(table, field[1:])
    return field.removesuffix(b"/")


def open_ar(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of an archive. Raises Damaged, and Refused for a thin archive."""
    magic = exact(body, len(MAGIC))
    if magic == THIN:
        raise Refused("a thin archive holds names only")
    if magic != MAGIC:
        raise Damaged("not an ar archive")
    table = b""
    while head := exact(body, HEADER):
        if len(head) < HEADER or head[58:] != b"`\n":
            # The last member, if of odd length, may lack its padding, or have an extra line feed.
            if head.strip(b"\n\0"):
                raise Damaged("damaged header" if len(head) == HEADER else "truncated: a header ends early")
            return
        size = _number(head[48:58])
        content, field = Slice(body, size), head[:16].rstrip(b" ")
        if field == b"//":
            table = _table(content)
        elif (name := _name(field, content, table)) not in TABLES:
            yield Member(
                name=name,
                size=content.left,
                mtime=_number(head[16:28]) * 1_000_000_000,
                owner=head[28:34].strip().decode("ascii", "replace"),
                group=head[34:40].strip().decode("ascii", "replace"),
                mode=_number(head[40:48], 8) & 0o7777,
                body=content,
            )
        content.drain()
        if size % 2 and content.left == 0:
            exact(body, 1)


UNNESTER = Container(("Archive",), open_ar)
