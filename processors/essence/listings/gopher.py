"""Gopher menus (RFC 1436, 3.4 and 3.8): one line an item, with type, display text, selector, host and port.

Laws:
- Coverage is open: menus are written by hand, so an item that is no longer listed is requested again before it counts as gone.
- The line `.` ends a menu. Many servers of today leave it out and close the connection, so a menu without it is whole if its last
  line is; a line that was cut off is not an item.
- Listed are files (0, 4, 5, 6, 9, g, I, h, s, d) and menus (1). An item `h` with the selector `URL:...` is a link to that URL.
- Refused, each with a rule: what asks for input or leads to another protocol (search 7, CSO 2, telnet 8 and T), and items whose
  selector or host has no URL (`processors/gopher_urls.py`). Lines of text (i, 3), redundant servers (+) and unknown types are left
  out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from processors.essence.listings.listing_format import MAX_CHILDREN, ChildKind, ListedChild, ParsedListing
from processors.gopher_urls import MENU, GopherItem, gopher_url
from processors.schemes import scheme_of
from processors.urls import canonical

MEDIA = "text/x-harvest-gopher-menu"
MAX_LINE = 16_384
"""Maximum bytes of a line."""
MAX_TEXT = 200
"""Characters of the display text that are kept of an item."""
MAX_REFUSED = 1_000
"""Refused items that are reported of one menu."""

FILES = frozenset("04569gIhsd")
INFO = frozenset("i3")
REFUSED = {
    "7": "gopher: a search, which asks for input",
    "2": "gopher: a CSO phone book",
    "8": "gopher: a telnet session",
    "T": "gopher: a telnet session (tn3270)",
}
"""Types that are never requested, with the rule of each."""
NO_URL = "gopher: a selector or host without a URL"

_ERROR = re.compile(rb"3([^\t\r\n]{0,200})(?:\t[^\t\r\n]*){2}\t[0-9]{1,5}(?:\t[^\r\n]*)?\r?(?:\n|\Z)")
_PLAIN_ERROR = re.compile(
    rb"(?:<!DOCTYPE HTML[^>]{0,100}>\s{0,4}<HTML>(?s:.{0,300})<TITLE>)?(Error: [A-Z][^\r\n<]{0,100}!(?: [^\r\n<]{0,100})?)"
)
_SIGNED = b"Gophered by Gophernicus"
"""Its last line, unless its operator has turned that off: then an error is one line of text."""
_ERROR_IMAGE = "d4658c2233b15bf92e555b495b65af18de96cb12b6f7cee3cb8ba09fa1c30519"
"""SHA-256 of the picture that Gophernicus sends as an error."""
_MISSING = re.compile(r"not found|no such|does(?: not|n't) exist|unknown selector|not exist", re.IGNORECASE)


class MenuLine(NamedTuple):
    """One line of a menu."""

    type: str
    text: str
    """Display text."""
    selector: bytes
    host: str
    port: int


class ParsedMenu(ParsedListing, frozen=True):
    """A parsed menu."""

    refused: tuple[tuple[str, str], ...] = ()
    """URL and rule of the items that are never requested."""


class Failure(NamedTuple):
    """An error that a server sent in place of an item."""

    text: str
    missing: bool
    """Whether it says that there is no such item."""


class _Reader:
    """Reads the lines of a menu; `whole` and `reason` are valid at the end."""

    def __init__(self, body: BinaryIO) -> None:
        self._body = body
        self.whole = True
        self.reason = ""
        self.malformed = 0

    def cut(self, reason: str) -> None:
        """Record that the menu was not read to its end."""
        self.whole, self.reason = False, reason

    def lines(self) -> Iterator[MenuLine]:
        """Yield the lines up to the one that ends the menu."""
        while line := self._body.readline(MAX_LINE):
            if not line.endswith(b"\n"):
                last = line.rstrip(b"\r") == b"."
                self.whole = self.whole and last
                self.reason = self.reason or ("" if last else "truncated, or a line of more than 16,384 bytes")
                return
            text = line.rstrip(b"\r\n")
            if text == b".":
                return
            if found := _line(text):
                yield found
            elif text:
                self.malformed += 1


def _line(line: bytes) -> MenuLine | None:
    """Return a line of a menu, None if it is malformed; of a line of text, only the text is needed."""
    fields = line.split(b"\t")
    kind = chr(line[0]) if line else ""
    text = _text(fields[0][1:])
    port = fields[3].strip() if len(fields) > 3 else b""
    if port.isdigit() and len(port) <= 5:
        return MenuLine(kind, text, fields[1], fields[2].decode("latin-1").strip(), int(port))
    return MenuLine(kind, text, b"", "", 0) if kind in INFO else None


def _text(raw: bytes) -> str:
    """Return display text: UTF-8, or else Latin-1, which RFC 1436 (3.9) names."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def parse(body: BinaryIO, url: str) -> ParsedMenu:
    """Return the files, menus and links that a menu lists. `url`: its canonical URL. Raises ValueError if it is no menu."""
    reader = _Reader(body)
    children: dict[str, ListedChild] = {}
    refused: dict[str, str] = {}
    lines = 0
    for line in reader.lines():
        lines += 1
        wanted = line.type == MENU or line.type in FILES
        target = _target(line)
        if rule := REFUSED.get(line.type) or (NO_URL if wanted and target is None else ""):
            # Without a URL, an item is reported under that of the root menu of its server, if that has one.
            named = target or _url(line, GopherItem(MENU, b""))
            if named and len(refused) < MAX_REFUSED:
                refused.setdefault(named, rule)
            continue
        if not wanted or target is None or target == url or target in children:
            continue
        if len(children) == MAX_CHILDREN:
            reader.cut(f"more than {MAX_CHILDREN:,} items")
            break
        kind: ChildKind = "listing" if line.type == MENU else "page"
        children[target] = ListedChild(url=target, kind=kind, text=line.text.strip()[:MAX_TEXT])
    if reader.malformed and not lines:
        raise ValueError("not a Gopher menu")
    return ParsedMenu(
        children=tuple(children.values()),
        coverage="open",
        whole=reader.whole,
        reason=reader.reason,
        refused=tuple(refused.items()),
    )


def texts(body: BinaryIO) -> Iterator[MenuLine]:
    """Yield the lines of a menu that have a text to read."""
    return (line for line in _Reader(body).lines() if line.text.strip())


def _target(line: MenuLine) -> str | None:
    """Return the canonical URL of an item, None if it has none."""
    if line.type == "h" and (link := re.match(rb"/?URL:", line.selector)):
        found = canonical(_text(line.selector[link.end() :]))
        return found if found and scheme_of(found).realm == "network" else None
    return _url(line, GopherItem(line.type, line.selector))


def _url(line: MenuLine, item: GopherItem) -> str | None:
    host = f"[{line.host}]" if ":" in line.host and not line.host.startswith("[") else line.host
    if not host or not 0 < line.port < 65_536:
        return None
    # An authority has no user here: what is before an `@` would be dropped from it.
    made = gopher_url(f"{host}:{line.port}", item) if "@" not in host else None
    return canonical(made) if made else None


def failure(answer: bytes, *, menu: bool = True) -> Failure | None:
    """Return the error that a whole answer of a few kilobytes is, None if it is none. `menu`: whether a menu was expected.

    RFC 1436 has no status. By convention, an error is an item of type 3 where a menu is expected. Gophernicus sends its errors in
    the form of what it takes the item for: text, a page, or a picture of its own. In place of a file, an error is a single item: a
    file may be a table whose first line looks like one.
    """
    if (found := _ERROR.match(answer)) and (menu or answer[found.end() :].strip() in (b"", b".")):
        text = _text(found[1]).strip() or "error"
        return Failure(text, bool(_MISSING.search(text)))
    if (found := _PLAIN_ERROR.match(answer)) and (_SIGNED in answer or answer.count(b"\n") == 1):
        text = _text(found[1]).strip()
        return Failure(text, bool(_MISSING.search(text)))
    if answer.startswith(b"GIF89a") and hashlib.sha256(answer).hexdigest() == _ERROR_IMAGE:
        return Failure("an error as a picture", missing=True)
    return None
