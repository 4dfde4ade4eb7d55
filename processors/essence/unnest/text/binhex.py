"""BinHex 4 (RFC 1741): a Macintosh file as text: six bits per character, run-length encoding, and a checksum for each part."""

from __future__ import annotations

import binascii
import re
import struct
from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.streams import Joined, Slice, exact, need
from processors.essence.unnest import Container
from processors.essence.unnest.containers import _mac as mac

ALPHABET = b"!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr"
_TO_BASE64 = bytes.maketrans(ALPHABET, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_MARK = re.compile(rb"\(This file must be converted[^\r\n]*+[\r\n]\s*+:")
MAX_PROSE = 1 << 16
"""Maximum number of bytes skipped before the mark."""
AT_ONCE = 4_096
"""Characters decoded at once: a run of 255 takes three bytes, so they expand to 260 kB at most."""
RUN = b"\x90"
_RUN = re.compile(rb"([^\x90]*+)\x90(.)", re.DOTALL)
BLANKS = b" \t\r\n"


class _Sixbits:
    """Decoded bytes of the characters up to the colon. Raises Damaged."""

    def __init__(self, text: Reader) -> None:
        self._text = text
        self._rest = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        while not self._ended:
            found = self._text.read(AT_ONCE)
            if not found:
                raise Damaged("truncated: the colon at the end is missing")
            data, colon, _ = found.partition(b":")
            self._ended = bool(colon)
            data = self._rest + data.translate(None, BLANKS)
            if data.strip(ALPHABET):
                raise Damaged("a character that BinHex does not have")
            whole = len(data) - len(data) % 4
            self._rest = data[whole:]
            tail = self._rest + b"!" * (-len(self._rest) % 4) if self._ended else b""
            out = binascii.a2b_base64((data[:whole] + tail).translate(_TO_BASE64))
            if tail:
                out = out[: len(out) - 4 + len(self._rest)]
            if out:
                return out
        return b""


class _Runs:
    """Expands runs: a byte, 0x90, and its count; 0x90 0x00 is 0x90 itself."""

    def __init__(self, packed: Reader) -> None:
        self._packed = packed
        self._last = b""
        self._held = b""
        self._data = memoryview(b"")

    def read(self, size: int, /) -> bytes:
        while not self._data:
            found = self._packed.read(AT_ONCE)
            if not found:
                return b""
            self._data = memoryview(self._expand(self._held + found))
        data, self._data = bytes(self._data[:size]), self._data[size:]
        return data

    def _expand(self, data: bytes) -> bytes:
        out, at = [], 0
        for run in _RUN.finditer(data):
            out.append(run[1])
            self._last = run[1][-1:] or self._last
            if run[2] == b"\0":
                out.append(RUN)
                self._last = RUN
            else:
                out.append(self._last * (run[2][0] - 1))
            at = run.end()
        # A run mark at the end waits for its count.
        self._held = RUN if data.endswith(RUN, at) else b""
        rest = data[at:].removesuffix(RUN)
        self._last = rest[-1:] or self._last
        return b"".join((*out, rest))


class _Checked:
    """A part, verified against the checksum that follows it. Raises Damaged."""

    def __init__(self, body: Reader, size: int) -> None:
        self._body = body
        self._part = Slice(body, size)
        self._sum = 0
        self._stated = -1

    def read(self, size: int, /) -> bytes:
        data = self._part.read(size)
        self._sum = binascii.crc_hqx(data, self._sum)
        if not data and self._checksum() != self._sum:
            raise Damaged("its checksum fails")
        return data

    def _checksum(self) -> int:
        if self._stated < 0:
            self._stated = int.from_bytes(need(self._body, 2, "a checksum is missing"), "big")
        return self._stated

    def drain(self) -> None:
        """Skip the unread rest, including the checksum."""
        self._part.drain()
        self._checksum()


def _packed(body: Reader) -> Reader:
    """Return the text after the mark. Raises Damaged."""
    head = exact(body, MAX_PROSE)
    mark = _MARK.search(head)
    if not mark:
        raise Damaged("no BinHex in it")
    return Joined(head[mark.end() :], body)


def open_binhex(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the forks of the file in a text. Raises Damaged."""
    stream = _Runs(_Sixbits(_packed(body)))
    size = need(stream, 1, "no name")
    rest = need(stream, size[0] + 1 + 4 + 4 + 2 + 4 + 4, "a header ends early")
    name, data, resources = rest[: size[0]], *struct.unpack(">II", rest[-8:])
    stated = int.from_bytes(need(stream, 2, "a header ends early"), "big")
    if not name or binascii.crc_hqx(rest, binascii.crc_hqx(size, 0)) != stated:
        raise Damaged("damaged header: its checksum fails")
    called, part = mac.name(name), _Checked(stream, data)
    if data or not resources:
        yield Member(name=called, size=data, body=part)
    part.drain()
    if resources:
        part = _Checked(stream, resources)
        yield Member(name=called + mac.RESOURCES, size=resources, body=part)
        part.drain()


UNNESTER = Container(("BinHex",), open_binhex)
