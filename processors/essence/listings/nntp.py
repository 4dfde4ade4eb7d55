"""Newsgroups (RFC 3977): the overview of a group's articles (8.3), and the list of a server's groups (7.6.3).

Laws:
- Coverage is complete: an article that the overview no longer has was cancelled, has expired, or is older than the articles that a
  root may have; a group that the list no longer has was removed.
- The mark of an article is its number. An article that was posted to several groups has the number of one of them, the first by
  name in its Xref field (RFC 5536, 3.2.14), so that all groups state the same mark.
- A group has no mark, so it is listed again in every run: the numbers of its first and last article do not show what was cancelled
  between them.
- A line that is none makes the listing not whole. An article without an identifier that a URL may have is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.formats.mail.encoded_words import words
from processors.essence.listings.listing_format import MAX_CHILDREN, ListedChild, ParsedListing
from processors.news_urls import news_name, news_url

MEDIA = "text/x-harvest-nntp-overview"
MAX_LINE = 65_536
"""Maximum bytes of a line."""
MAX_TEXT = 200
"""Characters of a subject that are kept."""
SKIPPED = (b"=", b"j", b"x")
"""First bytes of the status of groups that have no articles of their own: aliases, and groups whose articles are not filed."""

_XREF = re.compile(rb"Xref:[ \t]*\S+[ \t]+(.*)", re.IGNORECASE)
_PLACE = re.compile(rb"([^\s:]+):([0-9]{1,20})(?!\S)")


def parse(body: BinaryIO, url: str) -> ParsedListing:
    """Return the articles of a group, or the groups of a server; `url`: its canonical news URL.

    Raises ValueError for another body.
    """
    server, kind = url.partition("://")[2].partition("/")[0], news_name(url).kind
    children: dict[str, ListedChild] = {}
    lines, reason = 0, ""
    for line in _lines(body):
        child = _group(line, server) if kind == "groups" else _article(line, server)
        lines += isinstance(child, ListedChild | str)
        if child is None:
            reason = reason or "a malformed line"
        elif isinstance(child, ListedChild) and child.url not in children:
            if len(children) == MAX_CHILDREN:
                reason = f"more than {MAX_CHILDREN:,} entries"
                break
            children[child.url] = child
    if reason and not lines:
        raise ValueError("not the overview of a newsgroup")
    return ParsedListing(children=tuple(children.values()), coverage="complete", whole=not reason, reason=reason)


def _lines(body: BinaryIO) -> Iterator[bytes]:
    """Yield the lines; one that was cut, or is too long, is followed by nothing else."""
    while line := body.readline(MAX_LINE):
        if not line.endswith(b"\n"):
            yield b""
            return
        if text := line.rstrip(b"\r\n"):
            yield text


def _article(line: bytes, server: str) -> ListedChild | str | None:
    """Return an article of the overview; "" for one without a URL, None for a malformed line."""
    number, subject, identifier, extra = _overview(line)
    if not number:
        return None
    url = news_url(server, identifier[1:-1]) if identifier.startswith(b"<") and identifier.endswith(b">") else None
    if url is None or news_name(url).kind != "article":
        return ""
    return ListedChild(url=url, mark=_mark(number, extra), text=words(subject.decode("utf-8", "replace"))[:MAX_TEXT].strip())


def _overview(line: bytes) -> tuple[bytes, bytes, bytes, list[bytes]]:
    """Return number, subject, identifier and further fields (RFC 3977, 8.3.2); the number is empty in a malformed line."""
    fields = line.split(b"\t")
    if len(fields) < 8 or not fields[0].isdigit() or len(fields[0]) > 20:
        return b"", b"", b"", []
    return fields[0], fields[1], fields[4].strip(), fields[8:]


def _mark(number: bytes, extra: list[bytes]) -> str:
    xref = next((found[1] for field in extra if (found := _XREF.fullmatch(field))), b"")
    places = sorted(_PLACE.findall(xref))
    return (places[0][1] if places else number).decode("ascii")


def _group(line: bytes, server: str) -> ListedChild | str | None:
    """Return a group of the list; "" for one without articles or a URL, None for a malformed line."""
    fields = line.split()
    if len(fields) < 4 or not fields[1].isdigit() or not fields[2].isdigit():
        return None
    url = news_url(server, fields[0])
    if url is None or news_name(url).kind != "group" or fields[3].startswith(SKIPPED):
        return ""
    return ListedChild(url=url, kind="listing")
