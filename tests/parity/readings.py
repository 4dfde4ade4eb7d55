"""What Harvest and a tika-server each say of one document: its text in full, where it leads, what it says of itself.

Laws:
- Both get the same bytes and the same name, and may open what is embedded: the texts of all that came out count as one.
- Tika's text is that of the bodies of its XHTML: without the title, which is metadata, and without the names of embedded files,
  which it sets as headings where it opens them. Links that a page asks not to follow (nofollow) are none.
- What a program wrote where nobody had said anything is no fact, whoever gives it: a title such as `Untitled`, a time of nothing.
- Nothing is taken from an index or a log: Harvest's side is what `essence` gives for the object, with `full_text` on.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple, Self

import ada_url
from lxml import etree

from processors.essence import EssenceSettings, essence
from schemas.records import CrawlEvent, FetchedObject, Root, Summary

FULL = 1 << 20
"""Bytes of text that are asked for."""
SETTINGS = EssenceSettings(gatherer="parity", full_text=FULL, entries=False)
PLACE = "http://documents.example/"
PAGE = re.compile(r"\.x?html?$", re.IGNORECASE)
FAILED = "X-TIKA:EXCEPTION:container_exception"
"""Where the server says, with a status of 200, that it could not read a document."""
TIMEOUT = 300.0
FACTS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "title": (("dc:title",), ("title",)),
    "author": (("dc:creator",), ("author",)),
    "created": (("dcterms:created",), ("creation-date", "date")),
    "modified": (("dcterms:modified",), ("modification-date",)),
    "language": (("dc:language", "Content-Language", "language"), ("language",)),
    "description": (("dc:description", "description"), ("description", "abstract", "title")),
    "subject": (("dc:subject", "meta:keyword", "keywords"), ("keywords", "description", "title")),
}
"""What a document says of itself: the names by which Tika gives it, and those of our attributes."""
NOTHING: Mapping[str, re.Pattern[str]] = {
    "title": re.compile(r"\s*(?:untitled|document|(?:document|presentation)\d+|\S+\.(?:dvi|tex|docx?))\s*", re.IGNORECASE),
    # Zero of the clock of Windows ([MS-DTYP] 2.3.3) is what stands in a property that was never set.
    "created": re.compile(r"1601-01-01T00:00:00Z"),
    "modified": re.compile(r"1601-01-01T00:00:00Z"),
}
"""What is no fact: programs give these titles to what is new, or the name of the file that they made it of."""


class Reading(NamedTuple):
    """What was read of one document."""

    text: str
    links: frozenset[str]
    facts: Mapping[str, tuple[str, ...]]


class TikaError(Exception):
    """The server did not read a document."""


class Tika:
    """A client of a tika-server, with one connection that is kept."""

    def __init__(self, url: str) -> None:
        where = urllib.parse.urlsplit(url)
        self._connection = HTTPConnection(where.hostname or "", where.port or 0, timeout=TIMEOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, name: str, body: bytes, handler: str) -> list[dict[str, Any]]:
        """What the server says of a document and of what is embedded in it. Raises TikaError."""
        quoted = urllib.parse.quote(name)
        headers = {"Accept": "application/json", "Content-Disposition": f"attachment; filename*=UTF-8''{quoted}"}
        try:
            self._connection.request("PUT", f"/rmeta/{handler}", body, headers)
            answer = self._connection.getresponse()
            said = answer.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            raise TikaError(f"{name}: {error}") from error
        if answer.status != 200:
            raise TikaError(f"{name}: {answer.status}")
        found: list[dict[str, Any]] = json.loads(said)
        if problem := found[0].get(FAILED) if found else "nothing":
            raise TikaError(f"{name}: {str(problem).partition(chr(10))[0]}")
        return found

    def read(self, name: str, body: bytes) -> Reading:
        """A document as Tika reads it. Raises TikaError."""
        said = self.ask(name, body, "xml")
        bodies = [found for one in said if (found := _body(one.get("X-TIKA:content") or "")) is not None]
        text = "\n".join("".join(map(str, each.itertext())) for each in bodies)
        links = {address(href, name) for each in bodies for href in _hrefs(each)}
        facts = {kind: _values(said[0], names) for kind, (names, _) in FACTS.items()} if said else {}
        return Reading(text, frozenset(filter(None, links)), stated(facts))


def _body(page: str) -> etree._Element | None:
    """The body of Tika's XHTML, without the names of embedded files."""
    # Attributes that are written twice, and characters that XML has not, come through.
    root = etree.fromstring(page.encode(), etree.XMLParser(recover=True, huge_tree=True, resolve_entities=False)) if page else None
    body = root.find("{*}body") if root is not None else None
    for name in body.iterfind(".//{*}div[@class='package-entry']/{*}h1") if body is not None else ():
        name.text = ""
    return body


def _hrefs(body: etree._Element) -> Iterator[str]:
    """Where the links of a body lead, but those that are not to be followed."""
    for link in body.iterfind(".//{*}a[@href]"):
        if "nofollow" not in link.get("rel", "").lower():
            yield link.get("href", "")


def _values(said: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """The values of the first of some names that has any."""
    for name in names:
        given = said.get(name) or []
        values = tuple(text for text in (given if isinstance(given, list) else [given]) if text.strip())
        if values:
            return values
    return ()


def stated(facts: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Facts without those that say nothing."""
    said = {
        kind: tuple(v for v in values if kind not in NOTHING or not NOTHING[kind].fullmatch(v)) for kind, values in facts.items()
    }
    return {kind: values for kind, values in said.items() if values}


def address(href: str, name: str) -> str:
    """An absolute address without its fragment; "" for what leads to no other document.

    What a page says of its place is held against a place; in all else a relative address leads to a part of the document.
    """
    base = PLACE + urllib.parse.quote(name) if PAGE.search(name) else None
    try:
        found = ada_url.URL(href.strip(), base)
    except ValueError:
        return ""
    found.hash = ""
    target = found.href.rstrip("#")
    return "" if target == base or found.protocol not in ("http:", "https:", "ftp:") else target


def fetched(url: str, body: bytes) -> FetchedObject:
    """A document as it comes to Essence: the root of itself."""
    return FetchedObject(
        url=url,
        version=1,
        time=1,
        outcome="fetched",
        root=Root(url=url, run="1"),
        size=len(body),
        md5=hashlib.md5(body, usedforsecurity=False).hexdigest(),
        sha256=hashlib.sha256(body).hexdigest(),
    )


def harvest(name: str, body: bytes, settings: EssenceSettings = SETTINGS) -> Reading:
    """A document as Harvest reads it."""
    url = PLACE + urllib.parse.quote(name)
    obj = fetched(url, body)
    texts: list[str] = []
    links: set[str] = set()
    facts: dict[str, tuple[str, ...]] = {}
    for record in essence(obj, io.BytesIO(body), settings):
        if isinstance(record, Summary):
            said = {key: tuple(v for v in values if isinstance(v, str)) for key, values in record.attributes.items()}
            texts += said.get("full-text", ())
            links.update(said.get("url-references", ()))
            if record.url == url:
                own = {kind: tuple(v for n in names for v in said.get(n, ())) for kind, (_, names) in FACTS.items()}
                facts = stated(own)
        elif isinstance(record, CrawlEvent):
            links.update(link.url for link in record.links)
    return Reading("\n".join(texts), frozenset(filter(None, (address(link, name) for link in links))), facts)


def both(path: Path, tika: Tika) -> tuple[Reading, Reading]:
    """Harvest's reading of a file, and Tika's. Raises TikaError, OSError."""
    body = path.read_bytes()
    return harvest(path.name, body), tika.read(path.name, body)
