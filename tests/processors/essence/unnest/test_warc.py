from __future__ import annotations

import gzip
import io
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.container import Budget, Damaged, UnnestError, UnnestLimits
from processors.essence.formats.streams import exact
from processors.essence.unnest import Container, plugins

HTTP = b"application/http; msgtype=response"
SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "unnest" / "warc" / "crawl.warc"


def record(block: bytes, uri: bytes = b"http://example.org/", kind: bytes = b"response", stated: bytes = HTTP) -> bytes:
    """Return a WARC record."""
    fields = (
        b"WARC/1.1",
        b"WARC-Type: " + kind,
        b"WARC-Target-URI: " + uri,
        b"Content-Type: " + stated,
        b"Content-Length: %d" % len(block),
    )
    return b"\r\n".join(fields) + b"\r\n\r\n" + block + b"\r\n\r\n"


def answer(body: bytes, *fields: bytes) -> bytes:
    """Return an HTTP response."""
    return b"\r\n".join((b"HTTP/1.1 200 OK", *fields)) + b"\r\n\r\n" + body


def members(data: bytes) -> tuple[list[tuple[str, bytes | str]], str]:
    """Return the members' names and contents (or why a content is unreadable), and the reason of the end."""
    unnester = plugins()["warc"]
    assert isinstance(unnester, Container)
    found: list[tuple[str, bytes | str]] = []
    try:
        for member in unnester.open(io.BytesIO(data), Budget(UnnestLimits(), len(data))):
            assert member.body is not None
            try:
                found.append((member.name.decode(), exact(member.body, 1 << 20)))
            except UnnestError as error:
                found.append((member.name.decode(), error.reason))
    except UnnestError as error:
        return found, error.reason
    return found, ""


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.integers(0, 3)), max_size=6), st.booleans())
def test_body_is_extracted_as_served(parts: list[tuple[bytes, int]], packed: bool) -> None:
    """A body is extracted as served, in whatever chunks it was sent, compressed or not."""
    served = b"".join(part for part, _ in parts)
    sent = gzip.compress(served) if packed else served
    encoded = (b"Content-Encoding: gzip",) if packed else ()
    cuts = [sent[at : at + 97] for at in range(0, len(sent), 97)]
    chunks = b"".join(b"%x;note\r\n" % len(cut) + cut + b"\r\n" for cut in cuts) + b"0\r\n\r\n"
    data = (
        record(answer(chunks, b"Transfer-Encoding: chunked", *encoded))
        + record(answer(sent, *encoded))
        + record(served, stated=b"text/x")
    )
    assert members(data) == ([("http://example.org/", served)] * 3, "")


@pytest.mark.parametrize(
    "stated", [b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sun Nov  6 08:49:37 1994", b"Sun, 06 Nov 1994 09:49:37 +0100"]
)
def test_times_do_not_depend_on_local_zone(stated: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modification time of a page does not depend on the local time zone."""
    unnester = plugins()["warc"]
    assert isinstance(unnester, Container)
    data = record(answer(b"text", b"Last-Modified: " + stated))
    monkeypatch.setenv("TZ", "XYZ+7")
    time.tzset()
    found = [member.mtime for member in unnester.open(io.BytesIO(data), Budget(UnnestLimits(), len(data)))]
    monkeypatch.undo()
    time.tzset()
    assert found == [784_111_777_000_000_000]


def test_wrongly_declared_encoding_is_ignored() -> None:
    """A body declared as chunked or compressed that is neither is given unchanged."""
    fields = (b"Transfer-Encoding: chunked", b"Content-Encoding: gzip")
    assert members(record(answer(b"plain text\nof two lines", *fields))) == (
        [("http://example.org/", b"plain text\nof two lines")],
        "",
    )


def test_damaged_record_does_not_affect_others() -> None:
    """A response with an invalid header or invalid chunks is unreadable; the records after it are read."""
    bad = answer(b"5\r\nabc\r\nxyz\r\n", b"Transfer-Encoding: chunked")
    endless = b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 2_000 + b"\r\nx"
    found, problem = members(record(bad) + record(endless) + record(b"fine", kind=b"resource", stated=b"text/plain"))
    assert [content for _, content in found] == [
        "damaged: no chunk where one belongs",
        "damaged: a header without an end",
        b"fine",
    ]
    assert problem == ""


def test_truncated_file_gives_members_before_cut() -> None:
    """A truncated file gives the members before the cut, and what can be read of the last one."""
    data = record(answer(b"one")) + record(answer(b"two" * 100))
    found, problem = members(data[:-100])
    assert found[0] == ("http://example.org/", b"one")
    assert found[1] == ("http://example.org/", "truncated: the body ends early")
    assert problem == "truncated: the body ends early"
    for wrong in (
        b"WARC/1.0\r\n\r\n",
        b"WARC/1.0\r\nContent-Length: -1\r\n\r\n",
        b"WARC/1.0\r\nContent-Length: 9" + b"9" * 30 + b"\r\n\r\n",
    ):
        assert members(wrong)[1] == "damaged: a record does not tell its length"


PIECES = [
    b"WARC/1.0\r\n",
    b"\r\n",
    b"\n",
    b"Content-Length: 3\r\n",
    b"Content-Type: application/http\r\n",
    b"HTTP/1.0 200\r\n",
    b"0\r\n",
    b"5\r\n",
]
FIELDS = [
    b"WARC-Type: response\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"\x1f\x8b",
    b"a" * 20_000,
    b"\xff",
]


@given(st.lists(st.sampled_from(PIECES + FIELDS) | st.binary(max_size=5), max_size=40).map(b"".join), st.integers(0, 1_900))
def test_any_bytes_raise_only_unnesting_errors(pieces: bytes, at: int) -> None:
    """Any bytes raise only errors of unnesting, and the output is no larger than the input."""
    for data in (b"WARC/1.0\r\n" + pieces, record(pieces), SAMPLE.read_bytes()[:at] + pieces):
        found, problem = members(data)
        assert len(problem) <= 200
        assert sum(len(content) for _, content in found if isinstance(content, bytes)) <= 1 << 16


def test_line_is_bounded() -> None:
    """An endless line is damage, and is not buffered."""
    unnester = plugins()["warc"]
    assert isinstance(unnester, Container)
    with pytest.raises(Damaged, match="too long"):
        list(unnester.open(io.BytesIO(b"WARC/1.0\r\n" + b"a" * 1_000_000), Budget(UnnestLimits(), 1)))
