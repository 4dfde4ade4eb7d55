"""Cryptographic messages (CMS): content in pieces of any kind, truncated messages, and structures without content."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from processors.essence.unnest.containers.cms import SIGNED, STAMPED, about

if TYPE_CHECKING:
    from tests.processors.essence.unnest.conftest import Read

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "unnest" / "cms"
DATA = bytes.fromhex("2a864886f70d010701")
END = b"\0\0"
Pieces = bytes | list["Pieces"]
PIECES = st.recursive(st.binary(max_size=300), lambda inner: st.lists(inner, max_size=4), max_leaves=12)


def element(tag: int, *parts: bytes, open_: bool = False) -> bytes:
    """Return a BER element of definite or indefinite length."""
    inside = b"".join(parts)
    if open_:
        return bytes((tag, 0x80)) + inside + END
    size = len(inside).to_bytes(4)
    return bytes((tag,)) + (bytes((len(inside),)) if len(inside) < 0x80 else b"\x84" + size) + inside


def octets(pieces: Pieces, *, open_: bool, mixed: bool = False) -> bytes:
    """Return an octet string, whole or in pieces; `mixed` alternates indefinite and definite lengths."""
    if isinstance(pieces, bytes):
        return element(0x04, pieces)
    return element(0x24, *(octets(piece, open_=open_ != mixed, mixed=mixed) for piece in pieces), open_=open_)


def whole(pieces: Pieces) -> bytes:
    """Return the concatenation of the pieces."""
    return pieces if isinstance(pieces, bytes) else b"".join(map(whole, pieces))


def signed(content: bytes, *, open_: bool = False) -> bytes:
    """Return a signed message with the content."""
    around = element(0x30, element(0x06, DATA), element(0xA0, content, open_=open_), open_=open_)
    algorithms = element(0x31, element(0x30, element(0x06, DATA), b"\5\0", open_=open_), open_=open_)
    inside = element(0x30, element(0x02, b"\1"), algorithms, around, element(0xA0, b"certificates"), open_=open_)
    return element(0x30, element(0x06, SIGNED), element(0xA0, inside, open_=open_), open_=open_)


def member_text(found: list[dict[str, object]]) -> object:
    """Return the text of the only member, or its length."""
    (member,) = found
    return member.get("text", member.get("length"))


@given(PIECES, st.booleans(), st.booleans())
@example([[b"a note ", b"about "], b"quillwort"], False, True)
def test_content_in_any_pieces_is_joined(read: Read, pieces: Pieces, open_: bool, mixed: bool) -> None:
    """However the octets are split, and wherever lengths are indefinite, the content is the concatenation of the pieces."""
    found, problem = read("cms", signed(octets(pieces, open_=open_, mixed=mixed), open_=open_), forward=True)
    content = whole(pieces)
    assert not problem
    assert member_text(found) == (content.decode("utf-8", "replace") if len(content) <= 100 else len(content))


@pytest.mark.parametrize("open_", [False, True])
def test_truncated_message_gives_content_before_cut(read: Read, open_: bool) -> None:
    """A message truncated after its identifier gives the content before the cut, and is reported as damaged."""
    message, text = signed(octets([b"a note ", [b"about ", b"quillwort"]], open_=open_), open_=open_), ""
    for cut in range(message.index(SIGNED) + len(SIGNED), message.index(b"quillwort") + 9):
        found, problem = read("cms", message[:cut])
        text = "".join(str(member["text"]) for member in found)
        assert "a note about quillwort".startswith(text)
        assert problem or any("error" in member for member in found), cut
    assert text == "a note about quillwor"


def test_time_stamped_file_is_found(read: Read) -> None:
    """The file in a time-stamped message (RFC 5544) follows its URI and metadata; it may be absent, whatever the evidence."""
    inside = (element(0x02, b"\1"), element(0x16, b"http://here"), element(0x30, b"\1\1\0"), element(0x04, b"notes"), element(0xA0))
    data = element(0x30, element(0x06, STAMPED), element(0xA0, element(0x30, *inside)))
    assert member_text(read("cms", data)[0]) == "notes"
    for evidence in 0xA0, 0xA1, 0xA2:
        without = element(0x30, element(0x06, STAMPED), element(0xA0, element(0x30, *inside[:3], element(evidence))))
        assert read("cms", without) == ([], "")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        b"no key",
        b"0_key",
        b"0\x84key",
        element(0x30, element(0x02, b"\3"), element(0x30, b"store")),
        element(0x30, element(0x30, b"certificate")),
        signed(element(0x30, b"a catalogue")),
        (SAMPLES / "detached.p7s").read_bytes(),
        (SAMPLES / "secret.p7m").read_bytes(),
    ],
)
def test_structures_without_content_have_no_member(read: Read, data: bytes) -> None:
    """Keys, certificates, detached signatures and other structures give no member and no damage."""
    assert read("cms", data) == ([], "")


def test_piece_longer_than_whole_is_damage(read: Read) -> None:
    """A piece longer than its whole is damage: the bytes after it would be taken for content."""
    data = signed(b"\x24\x04" + element(0x04, b"quillwort"))
    found, problem = read("cms", data)
    assert problem or found[0]["error"]


def test_only_encrypted_content_is_reported() -> None:
    """Only encrypted content is reported as encrypted."""
    assert list(about((SAMPLES / "secret.p7m").read_bytes())) == [("encrypted", "a key is needed")]
    assert not list(about((SAMPLES / "smime.p7m").read_bytes()))
    assert not list(about(b"\x30"))
