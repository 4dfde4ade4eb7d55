from __future__ import annotations

import base64
import email.policy
import gzip
import io
import mailbox
import random
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.formats.container import Budget, Damaged, UnnestLimits
from processors.essence.formats.inflate import Inflate
from processors.essence.formats.mail.encoded_words import words
from processors.essence.formats.mail.mail_header import Lines
from processors.essence.formats.mail.mime import field, message
from processors.essence.formats.streams import Decoded, exact, partly
from processors.essence.unnest import Container, plugins

Read = Callable[..., tuple[list[dict[str, Any]], str]]
HEAD = b"From: a@example.org\n"


def members(plugin: str, data: bytes) -> list[tuple[str, bytes]]:
    """Return names and contents of the members."""
    unnester = plugins()[plugin]
    assert isinstance(unnester, Container)
    found = unnester.open(io.BytesIO(data), Budget(UnnestLimits(), len(data)))
    return [(m.name.decode(), exact(m.body, 1 << 20) if m.body else b"") for m in found]


@given(st.lists(st.tuples(st.binary(max_size=300), st.sampled_from(["base64", "quoted-printable"])), max_size=4), st.booleans())
def test_attachments_are_extracted_unchanged(attached: list[tuple[bytes, str]], crlf: bool) -> None:
    """Attachments written by the standard library are extracted byte for byte, in order, for any line end and encoding."""
    built = EmailMessage(policy=email.policy.SMTP if crlf else email.policy.default)
    built["From"] = "a@example.org"
    built.set_content("Some text.\n")
    built.add_alternative("<p>Some text.</p>", subtype="html")
    for number, (data, encoding) in enumerate(attached):
        built.add_attachment(data, "application", "x-data", cte=encoding, filename=f"größe {number}.bin")
    found = members("mail", built.as_bytes())
    assert found == [(f"größe {n}.bin", data) for n, (data, _) in enumerate(attached)]


@given(
    st.lists(
        st.lists(st.sampled_from(["text", "From me", ">From", ">>From x", "", "--a", "From a Mon 1:02 1994"]), max_size=6),
        max_size=5,
    )
)
def test_mailbox_messages_are_read_unchanged(tmp_path_factory: pytest.TempPathFactory, bodies: list[list[str]]) -> None:
    """Messages quoted in mboxrd form are read back unchanged, in order."""
    box = b""
    wanted = []
    for number, lines in enumerate(bodies):
        text = HEAD + b"\n" + "".join(f"{line}\n" for line in lines).encode()
        quoted = b"".join(b">" + k if k.lstrip(b">").startswith(b"From ") else k for k in text.splitlines(keepends=True))
        box += b"From a@example.org Fri Jul  1 10:00:00 1994\n" + quoted + b"\n"
        wanted.append((f"message-{number + 1}", text))
    # The newline after the last message may be part of it.
    found = members("mbox", box) if box else []
    assert [(n, t.rstrip(b"\n")) for n, t in found] == [(n, t.rstrip(b"\n")) for n, t in wanted]
    path = tmp_path_factory.mktemp("box") / "box"
    path.write_bytes(box)
    assert len(found) == len(mailbox.mbox(path))


MIME = st.lists(
    st.sampled_from(
        [
            *(
                b"\n",
                b"\r\n",
                b"--a",
                b"--a--",
                b"--b\n",
                b"--b--\n",
                b" ",
                b";",
                b'"',
                b"=?utf-8?b?",
                b"?=",
                b"=",
                b"begin 644 x\n",
            ),
            *(
                b"Content-Type: multipart/mixed; boundary=a\n",
                b"Content-Type: multipart/digest; boundary=b\n",
                b"end\n",
                b"#86)C\n",
            ),
            *(
                b"Content-Transfer-Encoding: base64\n",
                b"Content-Transfer-Encoding: x-uuencode\n",
                b"YWJj",
                b"\n\n",
                b"From ",
                b">From ",
            ),
            *(b"Content-Disposition: attachment; filename*0*=no'such'%ff; filename*1=x\n", b"a@b Mon Jan 1 10:00:00 1994\n"),
            *(b"Content-Type: text/plain; charset*=a\0b''x\n", b"Message-ID: <", b"x>", b"From: \xff\xfe\n", b"x" * 70_000),
        ]
    )
    | st.binary(max_size=9),
    max_size=40,
).map(b"".join)


@given(MIME)
def test_any_bytes_raise_only_damage(data: bytes) -> None:
    """Any bytes raise nothing but Damaged, and the output is no larger than the input."""
    for plugin in ("mail", "mbox"):
        for start in (b"", HEAD, b"From a Fri Jul  1 10:00:00 1994\n"):
            try:
                found = members(plugin, start + data)
            except Damaged:
                continue
            assert sum(len(body) for _, body in found) <= len(start + data)


@given(st.text(max_size=60), st.integers(0, 10))
def test_encoded_words_are_decoded(text: str, at: int) -> None:
    """Encoded words are decoded to the original text, whatever surrounds them; other text is not decoded."""
    from email.header import Header

    plain = " ".join(text.split())
    encoded = Header(plain, "utf-8").encode().replace("\n", "") if plain.isprintable() else plain
    assert words(encoded) == plain or not plain.isprintable()
    assert isinstance(words("=?" * at + text), str)


def test_split_character_is_joined() -> None:
    """A character split between two words is joined; words of different charsets are decoded separately; invalid words are kept."""
    assert words("=?utf-8?B?w7w=?= =?utf-8?Q?=C3?= =?UTF-8?Q?=BC?=") == "üü"
    assert words("=?koi8-r?Q?=D0?= =?iso-8859-1?Q?=FC?= x =?no-such?Q?=FC_?=") == "пü x ü "
    assert words("a =?utf-8?x?y?= =?b") == "a =?utf-8?x?y?= =?b"


def test_long_line_is_read_in_pieces() -> None:
    """A line longer than the buffer is read in pieces, and a boundary inside a line is ignored."""
    long = b"x" * 200_000
    lines = Lines(io.BytesIO(long + b"\n--a\n"))
    pieces = []
    while piece := lines.next():
        pieces.append(piece)
    assert b"".join(pieces) == long + b"\n--a\n"
    assert pieces[-1] == b"--a\n"
    data = HEAD + b"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: x/y\n\n" + b"y" * 65_536 + b"--a\n\n--a--\n"
    ((_, body),) = members("mail", data)
    assert body == b"y" * 65_536 + b"--a\n"


def test_header_is_bounded() -> None:
    """Of an endless header the beginning is kept, and its statements about the parts still hold."""
    head, parts = message(io.BytesIO(b"Subject: long\n" + b" more words\n" * 100_000 + b"\nText.\n"))
    assert field(head, "subject").startswith("long more words")
    assert len(head.raw("subject")) < 70_000
    assert [exact(p.body, 100) for p in parts] == [b"Text.\n"]


def test_truncated_message_gives_its_parts(read: Read) -> None:
    """A truncated message gives the parts that exist; an outer boundary ends the inner parts."""
    begin = b"Content-Type: multipart/mixed; boundary="
    data = (
        HEAD
        + begin
        + b"a\n\n--a\n"
        + begin
        + b"b\n\n--b\nContent-Type: x/y\n\n1\n"
        + b"--a\nContent-Type: x/z\n\n2\n--b\nnot a part"
    )
    found, problem = read("mail", data)
    assert not problem
    assert [(f["stated"], f["text"]) for f in found] == [("x/y", "1"), ("x/z", "2\n--b\nnot a part")]


def test_multipart_without_boundary_is_one_text() -> None:
    """A multipart whose boundary is missing, in its header or in its body, is one text."""
    for boundary in (b"", b"; boundary=a"):
        _, parts = message(io.BytesIO(HEAD + b"Content-Type: multipart/mixed" + boundary + b"\n\nAll of\nit.\n"))
        assert [(p.number > 0, p.type, exact(p.body, 100)) for p in parts] == [(not boundary, "text/plain", b"All of\nit.\n")]


def test_lost_spaces_of_uuencoded_lines_are_restored() -> None:
    """Spaces cut from line ends are restored, and checksums after the data are removed."""
    head = HEAD + b"Content-Type: x/y\nContent-Transfer-Encoding: x-uuencode\n\nbegin 644 x\n"
    ((_, body),) = members("mail", head + b"#86)CX\n#\n\n`\nend\n")
    assert body == b"abc" + bytes(3)


class Slow:
    """A stream that returns a few bytes per read."""

    def __init__(self, data: bytes, most: int) -> None:
        self._file = io.BytesIO(data)
        self._most = most

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, self._most))


@given(MIME, st.booleans(), st.integers(1, 9), st.integers(1, 200))
def test_message_is_the_same_for_any_read_size(data: bytes, outer: bool, most: int, size: int) -> None:
    """Headers, parts and contents are the same whether a stream is read at once or byte by byte."""
    data = HEAD + b"Content-Type: multipart/mixed; boundary=a\n" * outer + data[:3_000]
    told = []
    for reader, piece in ((io.BytesIO(data), 1 << 16), (Slow(data, most), size)):
        head, parts = message(reader)
        found = []
        for part in parts:
            content = b"".join(iter(lambda body=part.body, piece=piece: body.read(piece), b""))  # type: ignore[misc]
            # The bytes after base64 padding are undefined: they may be decoded or not.
            told_apart = b"base64" not in part.header.raw("content-transfer-encoding")
            found.append((part.header.fields, *part[2:6], content if told_apart else b""))
        told.append((head.fields, found))
    assert told[0] == told[1]


def test_base64_in_pieces_is_decoded() -> None:
    """Base64 padded on each line, or restarted within a part, is decoded in full."""
    head = HEAD + b"Content-Type: x/y\nContent-Transfer-Encoding: base64\n\n"
    ((_, body),) = members("mail", head + b"YQ==\nYmM=\r\nZGVm\nZ2hp\n--\namtsbQ==\n")
    assert body == b"abcdefghijklm"
    # An error at the end of a long part costs only the bytes there.
    whole = base64.encodebytes(bytes(range(256)) * 100)
    for tail in (b"QQ\n=\nx\n", b"QQ==\n=\nQ\n", b"QUJDRA\n=\nQ\n"):
        ((_, body),) = members("mail", head + whole + tail)
        assert body.startswith(bytes(range(256)) * 100), tail


def test_stream_failure_keeps_earlier_parts(read: Read) -> None:
    """When the stream of a message or mailbox fails, what could be read is given first."""
    packed = gzip.compress(HEAD + b"Content-Type: x/y\n\n" + b"a line of text\n" * 5_000)[:-30]
    lines = random.Random(1).randbytes(50_000).hex("\n", 20).encode()
    box = gzip.compress(b"From a@b Fri Jul  1 10:00:00 1994\n" + HEAD + b"\n" + lines)[:-9_000]
    for plugin, data in (("mail", packed), ("mbox", box)):
        unnester = plugins()[plugin]
        assert isinstance(unnester, Container)
        stream = Decoded(io.BytesIO(data), Inflate())
        found = unnester.open(stream, Budget(UnnestLimits(), len(data)))
        body = next(found).body
        assert body is not None
        content, damage = partly(body, 1 << 20)
        assert len(content) > 30_000
        assert damage is not None
        with pytest.raises(Damaged):
            next(found)


def test_parts_are_bounded(read: Read) -> None:
    """A message of endless parts is damaged after the last allowed part; one of endless parameters keeps the first."""
    head = HEAD + b"Content-Type: multipart/mixed; boundary=a\n\n"
    found, problem = read("mail", head + b"--a\nContent-Type: x/y\n\n1\n" + b"--a\n" * 20_000)
    assert (len(found), problem) == (1, "more than 10000 parts")
    ((name, _),) = members("mail", HEAD + b"Content-Type: x/y; name=oar;" + b' ;"' * 1_000 + b"\n\ntext")
    assert name == "oar"
