"""The original URLs of the members of crawlers' archives: shown and searched, never trusted."""

from __future__ import annotations

import gzip
import io
import zipfile
from typing import Any

import pytest

from processors.essence.object_records import MAX_ORIGINAL
from schemas.records import Summary

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Whales</title>"


def warc(uri: bytes, block: bytes = PAGE, kind: bytes = b"response", stated: bytes = b"application/http") -> bytes:
    """Return a WARC file of one record."""
    head = b"WARC/1.1\r\nWARC-Type: %b\r\nWARC-Target-URI: %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (kind, uri, stated, len(block)) + block + b"\r\n\r\n"


def members(run: Any, data: bytes, url: str = "file:///d/x.warc") -> list[Summary]:
    """Return the summaries of the members of an archive."""
    return [record for record in run(data, url) if isinstance(record, Summary) and record.path]


LOCATIONS = [
    (b"http://example.org/a", "http://example.org/a"),
    (b"<https://Example.ORG:443/a#part>", "https://example.org/a"),
    (b"ftp://example.org/pub/x", "ftp://example.org/pub/x"),
    (b"gopher://example.org/0/x", "gopher://example.org/0/x"),
    *(
        (uri, "")
        for uri in (b"file:///etc/passwd", b"urn:uuid:1", b"dns:example.org", b"javascript:alert(1)", b"http://", b"", b"\xff")
    ),
    (b"http://example.org/" + b"x" * MAX_ORIGINAL, ""),
]


@pytest.mark.parametrize(("uri", "location"), LOCATIONS)
def test_location_is_the_original_url(run: Any, uri: bytes, location: str) -> None:
    """A page of a WARC has its canonical URL as location, if that is one of a server; it stays a member of its archive."""
    (page,) = members(run, warc(uri))
    assert page.location == location
    assert page.url.startswith("file:///d/x.warc#")
    assert page.object_url == "file:///d/x.warc"


def test_resource_has_a_location_and_what_is_in_it_has_none(run: Any) -> None:
    """A resource, and a page in a compressed WARC, have their locations; members of an archive that was fetched have none."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in.txt", "text")
    data = warc(b"http://example.org/x.zip", packed.getvalue(), b"resource", b"application/zip")
    found = {one.path: one.location for one in members(run, gzip.compress(data), "file:///d/x.warc.gz")}
    assert found == {"http://example.org/x.zip": "http://example.org/x.zip", "http://example.org/x.zip#in.txt": ""}


def test_member_of_another_archive_has_no_location(run: Any) -> None:
    """The name of a member of a zip is no URL that it was fetched from, whatever it looks like."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("http://example.org/a", "text")
    (member,) = members(run, packed.getvalue(), "file:///d/x.zip")
    assert member.location == ""
