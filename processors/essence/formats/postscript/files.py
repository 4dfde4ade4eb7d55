"""Operators of files and filters (PLRM, 3.8 and 3.13)."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from pdfminer.lzw import lzwdecode

from processors.essence.formats.postscript.machine import Machine, Operators
from processors.essence.formats.postscript.objects import END, LARGEST, MAX_DECODED, Procedure, Text, key
from processors.essence.formats.postscript.scan import Program, Source, base_85, unhex

FILES = Operators()

FILES["currentfile"] = lambda m: m.push(m.files[-1] if m.files else Source(b""))


@FILES.named("file")
def _file(m: Machine) -> None:
    m.text()
    name = m.text()
    m.push(m.files[-1] if m.files and name.data == b"%stdin" else Source(b""))


@FILES.named("read")
def _read(m: Machine) -> None:
    byte = m.source(m.pop()).read(1)
    m.operands += (byte[0], True) if byte else (False,)


def _read_into_string(m: Machine, read: Callable[[Source, int], bytes]) -> None:
    """Fill the string operand from a file; push the part that was filled, and whether that is all of it."""
    text = m.text()
    source = m.source(m.pop())
    size = len(text.data)
    m.pay(size >> 4)
    given = read(source, size)
    text.data[: len(given)] = given
    m.operands += (Text(given) if len(given) < size else text, len(given) == size > 0)


FILES["readstring"] = lambda m: _read_into_string(m, Source.read)
FILES["readhexstring"] = lambda m: _read_into_string(m, Source.digits)


@FILES.named("readline")
def _readline(m: Machine) -> None:
    m.text()
    source = m.source(m.pop())
    more = source.at < len(source.raw)
    line = source.until(b"\n", LARGEST)
    m.pay(len(line) >> 4)
    m.operands += (Text(line.removesuffix(b"\r")), more)


@FILES.named("flushfile")
def _flushfile(m: Machine) -> None:
    source = m.source(m.pop())
    # Skip to the end of a filter's data; at the end of the file itself the program would end.
    if source not in m.files:
        source.skip(MAX_DECODED)


@FILES.named("token")
def _token(m: Machine) -> None:
    of = m.pop()
    source = Source(bytes(of.data)) if isinstance(of, Text) else m.source(of)
    m.pay(len(source.raw) >> 4 if isinstance(of, Text) else 0)
    item = m.read(source)
    if item is END:
        m.push(False)
        return
    if isinstance(of, Text):
        m.push(Text(source.raw[source.at :]))
    m.operands += (item, True)


@FILES.named("filter")
def _filter(m: Machine) -> None:
    name = str(key(m.pop()))
    if m.operands and isinstance(m.operands[-1], dict):
        m.pop()
    if name == "SubFileDecode":
        end, many = m.text(), m.whole()
        m.push(_Filter(m, name, _data(m), bytes(end.data[:127]), many if 0 < many < MAX_DECODED else MAX_DECODED))
    else:
        m.push(_Filter(m, name, _data(m), _ENDED.get(name, b"")))


class _Filter(Source):
    """The decoded output of a filter: decoded at the first read, and not at all for image data, which is skipped."""

    def __init__(self, machine: Machine, name: str, source: Source, end: bytes, size: int = 0) -> None:
        super().__init__(b"")
        self._machine = machine
        self._name = name
        self._source: Source | None = source
        self._end = end
        self._size = size

    @property
    def raw(self) -> bytes:
        """Decoded bytes; empty if the data is damaged. Raises Enough."""
        if source := self._taken():
            begin = source.at
            try:
                self._raw = _DECODED[self._name](source)[:MAX_DECODED] if self._name in _DECODED else b""
            except (LookupError, ValueError, TypeError):
                self._raw = b""
            read = source.at - begin
            self._machine.pay((read >> 4 if self._name == "FlateDecode" else read) + (len(self._raw) >> 6))
        return self._raw

    def skip(self, size: int) -> None:
        """Skip all output of the filter."""
        if self._end or self._size:
            self._taken()
        elif isinstance(self._source, _Filter):
            self._source.skip(size)
        elif self._source:
            self.at = len(self.raw)

    def _taken(self) -> Source | None:
        """Return the input to decode, the first time only: up to the end mark or size, if the filter has one."""
        source, self._source = self._source, None
        if source and self._end:
            return Source(source.until(self._end))
        return Source(source.read(self._size)) if source and self._size else source


class _ProcedureSource(Source):
    """Concatenated strings of a procedure, called until it returns an empty one (PLRM, 3.13.1); it runs at the first read."""

    def __init__(self, machine: Machine, procedure: Procedure) -> None:
        super().__init__(b"")
        self._machine = machine
        self._procedure: Procedure | None = procedure

    @property
    def raw(self) -> bytes:
        """The bytes. Raises Enough."""
        procedure, self._procedure = self._procedure, None
        kept: list[bytes] = []
        while procedure is not None:
            self._machine.call(procedure)
            given = self._machine.pop()
            if not isinstance(given, Text) or not given.data:
                break
            kept.append(bytes(given.data))
            self._machine.pay(len(given.data) >> 4)
        self._raw += b"".join(kept)
        return self._raw


def _data(m: Machine) -> Source:
    """Pop the data source of a filter: a file, a string, or a procedure that returns strings."""
    value = m.pop()
    if isinstance(value, Source | Program):
        return m.source(value)
    if isinstance(value, Procedure):
        return _ProcedureSource(m, value)
    m.pay(len(value.data) >> 4 if isinstance(value, Text) else 0)
    return Source(bytes(value.data) if isinstance(value, Text) else b"")


def _inflated(source: Source) -> bytes:
    inflater = zlib.decompressobj()
    try:
        given = inflater.decompress(source.raw[source.at :], MAX_DECODED)
    except zlib.error:
        given = b""
    source.at = len(source.raw) - len(inflater.unused_data)
    return given


def _run_lengths(source: Source) -> bytes:
    """Decode RunLengthDecode: runs and copies (PLRM, 3.13.3)."""
    kept: list[bytes] = []
    size = 0
    while size < MAX_DECODED and (head := source.read(1)) and head != b"\x80":
        kept.append(source.read(head[0] + 1) if head[0] < 0x80 else source.read(1) * (257 - head[0]))
        size += len(kept[-1])
    return b"".join(kept)


_ENDED = {"ASCIIHexDecode": b">", "ASCII85Decode": b"~>", "DCTDecode": b"\xff\xd9"}
"""End marks of the encoded data, by filter."""
_DECODED: dict[str, Callable[[Source], bytes]] = {
    "ASCIIHexDecode": lambda source: unhex(source.read(MAX_DECODED)),
    "ASCII85Decode": lambda source: base_85(source.read(MAX_DECODED).lstrip().removeprefix(b"<~")),
    "FlateDecode": _inflated,
    "LZWDecode": lambda source: lzwdecode(source.read(MAX_DECODED)),
    "RunLengthDecode": _run_lengths,
    "SubFileDecode": lambda source: source.read(MAX_DECODED),
    "ReusableStreamDecode": lambda source: source.read(MAX_DECODED),
}
"""Decoder by filter. Filters for image data have none: images are skipped."""
