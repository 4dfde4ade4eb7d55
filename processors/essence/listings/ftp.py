"""FTP listings: lines of MLSD (RFC 3659, 7) and of LIST, which has no standard, as one normal form, and that form as children.

Strategy: the adapter normalizes what a server sent (`normalize`); the result is the body of the listing's object, of the media type
`MEDIA`, so that it can be parsed again without the network. A line of it is `type=file;size=123;modify=20240102030405; name` or
`type=dir; name`, the name in the server's bytes. Lines are sorted, so that the order of a directory does not change the digest.

LIST is understood as GNU ls, vsftpd, proftpd and most servers on Unix write it, and as IIS does (the DOS form). Its times have no
seconds, and none that is older than six months has hours; a time without a year is the last one before now. So the mark of a file
changes once as it ages, which costs one conditional request.

Laws:
- A line that is no entry is kept as `type=unreadable; line`. A listing with such a line is not whole, since it may be a file.
- Names with a slash, CR, LF or NUL, and `.` and `..`, never become a child. Other bytes are percent-encoded.
- Symbolic links, devices, pipes and sockets are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, Literal, NamedTuple

from processors.essence.listings.listing_format import MAX_CHILDREN, ListedChild, ParsedListing
from processors.ftp_urls import ftp_name
from processors.urls import MAX_PATH

MEDIA = "text/x-harvest-ftp-listing"
MAX_LINE = 16_384
"""Maximum bytes of one line of a body."""
UNREADABLE = b"type=unreadable; "

Form = Literal["MLSD", "LIST"]
EntryType = Literal["file", "dir"]


class ListingEntry(NamedTuple):
    """One file or directory of a listing."""

    type: EntryType
    name: bytes
    size: bytes = b""
    """In decimal digits; "": unknown."""
    modify: bytes = b""
    """Time of the last change, YYYYMMDD[hhmm[ss[.sss]]]; "": unknown. That of MLSD is in UTC (RFC 3659, 2.3)."""

    @property
    def line(self) -> bytes:
        """The entry in the normal form, without its line feed."""
        if self.type == "dir":
            return b"type=dir; " + self.name  # its size and time change with its content, and say nothing of what is below it
        facts = (b"%s=%s;" % fact for fact in ((b"type", b"file"), (b"size", self.size), (b"modify", self.modify)) if fact[1])
        return b"".join(facts) + b" " + self.name


class _UnreadableError(ValueError):
    """A line is no entry."""


def normalize(lines: Iterable[bytes], form: Form, now_ms: int) -> bytes:
    """Return the lines of a server, without their ends, in the normal form; `now_ms`: the time for dates without a year."""
    read = _mlsd if form == "MLSD" else _List(now_ms).read
    found = set()
    for line in lines:
        try:
            entry = read(line)
        except _UnreadableError:
            found.add(UNREADABLE + line.replace(b"\n", b" ").removeprefix(UNREADABLE))
        else:
            found.update([entry.line] if entry else ())
    return b"".join(line + b"\n" for line in sorted(found, key=lambda line: (line.partition(b" ")[2], line)))


def parse(body: BinaryIO, url: str) -> ParsedListing:
    """Return the children of a listing in the normal form. Raises ValueError if the URL is not that of an FTP directory."""
    if not url.startswith("ftp://") or not url.endswith("/"):
        raise ValueError("not the URL of an FTP directory")
    children: dict[str, ListedChild] = {}
    reason = ""
    for line in _lines(body):
        if len(children) == MAX_CHILDREN:
            reason = f"more than {MAX_CHILDREN:,} entries"
            break
        try:
            child = _child(line, url)
        except _UnreadableError as error:
            reason = reason or str(error)
        else:
            if child is not None:
                children.setdefault(child.url, child)
    return ParsedListing(children=tuple(children.values()), coverage="complete", whole=not reason, reason=reason)


def _lines(body: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a body; one that is too long is unreadable."""
    while line := body.readline(MAX_LINE):
        yield line.removesuffix(b"\n") if len(line) < MAX_LINE or line.endswith(b"\n") else UNREADABLE + line


def _child(line: bytes, url: str) -> ListedChild | None:
    entry = _mlsd(line)
    if entry is None:
        return None
    name = ftp_name(entry.name)
    found = f"{url}{name}/" if entry.type == "dir" else url + name
    if not name or len(found) > MAX_PATH:
        raise _UnreadableError(f"a name that no file has: {_shown(entry.name)}")
    if entry.type == "dir":
        return ListedChild(url=found, kind="listing")
    mark = f"{entry.size.decode()} {entry.modify.decode()}" if entry.size and entry.modify else ""
    return ListedChild(url=found, mark=mark)


def _shown(line: bytes) -> str:
    return ascii(line[:60].decode("utf-8", "replace"))


# ---- MLSD ------------------------------------------------------------------------------------------------------------

_FACTS = re.compile(rb"(?:[A-Za-z][\w.-]*=[^;]*;)+ ", re.ASCII)
_MODIFY = re.compile(rb"\d{8}(?:\d{4}(?:\d\d(?:\.\d{1,9})?)?)?")
_SIZE = re.compile(rb"\d{1,19}")


def _mlsd(line: bytes) -> ListingEntry | None:
    """Return the entry of a line with facts (RFC 3659, 7.2), which are case-independent; None: not a file or directory."""
    if not line.strip():
        return None
    found = _FACTS.match(line)
    if found is None or line.startswith(UNREADABLE):
        raise _UnreadableError(f"a line that is no entry: {_shown(line.removeprefix(UNREADABLE))}")
    facts = {name.lower(): value for name, _, value in (fact.partition(b"=") for fact in found[0][:-1].split(b";"))}
    kind, name = facts.get(b"type", b"").lower(), line[found.end() :]
    if kind not in (b"file", b"dir") or name in (b".", b".."):
        if not kind:
            raise _UnreadableError(f"an entry without a type: {_shown(line)}")
        return None
    size, modify = facts.get(b"size", b""), facts.get(b"modify", b"")
    return ListingEntry(
        type="dir" if kind == b"dir" else "file",
        name=name,
        size=size if _SIZE.fullmatch(size) else b"",
        modify=modify if _MODIFY.fullmatch(modify) else b"",
    )


# ---- LIST ------------------------------------------------------------------------------------------------------------

_MONTHS = {name: number for number, name in enumerate(b"jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_PERMISSIONS = re.compile(rb"([-a-zA-Z])[-a-zA-Z]{9}[.+@]?[ \t]")
_DATED = re.compile(
    # What stands before a date is the size, whatever the owner and the group are called; one blank separates the name.
    rb"[ \t](?P<size>\d{1,19})[ \t]+"
    rb"(?:(?P<month>[A-Za-z]{3})[ \t]+(?P<day>\d{1,2})[ \t]+(?:(?P<hour>\d{1,2}):(?P<minute>\d\d)|(?P<year>\d{4}))"
    rb"|(?P<date>\d{4}-\d\d-\d\d)(?:[ \t]+(?P<time>\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?: [+-]\d{4})?)?) (?P<name>.+)",
    re.DOTALL,
)
_DOS = re.compile(
    rb"(\d\d)-(\d\d)-(\d{4}|\d\d)[ \t]+(\d\d):(\d\d)([AaPp][Mm])?[ \t]+"
    rb"(?:(?P<link><JUNCTION>|<SYMLINKD?>)|(?P<dir><DIR>) {0,10}|(?P<size>[\d,]{1,25}) )(?P<name>.+)",
    re.DOTALL,
)
_NOTHING = re.compile(rb"\s*(?:total [\d.]+[KMGT]?)?\s*", re.IGNORECASE)


class _List:
    """Reads lines of LIST."""

    def __init__(self, now_ms: int) -> None:
        # A day ahead may be today in the zone of the server.
        self._latest = datetime.fromtimestamp(now_ms / 1000, UTC) + timedelta(days=1)

    def read(self, line: bytes) -> ListingEntry | None:
        """Return the entry of a line; None: not a file or directory."""
        if _NOTHING.fullmatch(line):
            return None
        if found := _DOS.fullmatch(line):
            return None if found["link"] else _dos(found)
        permissions = _PERMISSIONS.match(line)
        found = _DATED.search(line, permissions.end() - 1) if permissions else None
        if permissions is None or (permissions[1] in b"-d" and found is None):
            raise _UnreadableError
        if found is None or permissions[1] not in b"-d" or found["name"] in (b".", b".."):
            return None
        kind: EntryType = "dir" if permissions[1] == b"d" else "file"
        return ListingEntry(kind, found["name"], found["size"].lstrip(b"0") or b"0", self._moment(found))

    def _moment(self, found: re.Match[bytes]) -> bytes:
        """Return the time of a line, as precise as it is there: YYYYMMDD, with hhmm or hhmmss."""
        if found["date"]:
            return re.sub(rb"\D", b"", found["date"] + (found["time"] or b"").partition(b".")[0])
        month = _MONTHS.get(found["month"].lower())
        if month is None:
            raise _UnreadableError
        day = int(found["day"])
        if found["year"]:
            return b"%s%02d%02d" % (found["year"], month, day)
        year = self._latest.year - ((month, day) > (self._latest.month, self._latest.day))
        return b"%04d%02d%02d%02d%s" % (year, month, day, int(found["hour"]), found["minute"])


def _dos(found: re.Match[bytes]) -> ListingEntry:
    month, day, year, hour, minute, half = found.group(1, 2, 3, 4, 5, 6)
    if len(year) == 2:
        year = (b"19" if year >= b"70" else b"20") + year
    of_day = int(hour) % 12 + 12 * (half.upper() == b"PM") if half else int(hour)
    modify = b"%s%s%s%02d%s" % (year, month, day, of_day, minute)
    if found["dir"]:
        return ListingEntry("dir", found["name"])
    return ListingEntry("file", found["name"], found["size"].replace(b",", b"") or b"0", modify)
