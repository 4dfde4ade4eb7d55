"""Keys, certificates and signatures in armor (PEM, OpenPGP, OpenSSH): kinds of the blocks, and the text around them.

Encoded data is of no use in a search, and in a private key it is secret: no summary contains it. Of certificates (X.509, RFC
5280), subject, issuer and end of validity are decoded.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize._text import plain
from processors.essence.summarize.source._source import add_all
from processors.essence.summarize.text.rawtext import raw_text

MAX_READ = 1 << 20
CERTIFICATES = 200
"""Certificates of one file that are summarized."""

_SIGNED = re.compile(r"^-----BEGIN PGP SIGNED MESSAGE-----[ \t]*\n(?:[A-Z][\w-]{1,40}:[^\n]*\n|(?!))*+", re.MULTILINE)
"""Header of a signed text (RFC 9580, 7). It begins no block: the text is not encoded."""
_DASHED = re.compile(r"^- (?=-)", re.MULTILINE)
_BLOCK = re.compile(r"^[ \t]*+(?:-----|---- )BEGIN ([A-Z0-9 ]{3,60}?)(?:-----| ----)[ \t]*$", re.MULTILINE)
_END = re.compile(r"^[ \t]*+(?:-----|---- )END ", re.MULTILINE)
_FIELD = re.compile(r"^(?:Comment|Subject)[ \t]*+:[ \t]*+\"?([^\n\"]{1,200})", re.MULTILINE)
_KEY_LINE = re.compile(
    r"^(?:[^\n#]{0,200} )??((?:sk-)?(?:ssh|ecdsa)-[\w@.-]{1,60}) AAAA[A-Za-z0-9+/=]+(?:[ \t]([^\n]{1,200}))?$", re.MULTILINE
)
_ENCODED = re.compile(r"^[ \t]*+[A-Za-z0-9+/=_-]{40,}[ \t]*$", re.MULTILINE)

_SET, _VERSION, _OID = 0x31, 0xA0, 0x06
_STRINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
_TIMES = {0x17: 12, 0x18: 14}
"""Digits of a UTCTime and of a GeneralizedTime."""
_NAMES = {b"\x55\x04\x03": "CN", b"\x55\x04\x0b": "OU", b"\x55\x04\x0a": "O"}


class _Certificate(NamedTuple):
    subject: dict[str, str]
    issuer: dict[str, str]
    times: list[str]


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add blocks (their kinds), title, subject, issuer, valid-until, description (comments), and the text that is not encoded."""
    text, blocks = _split(_SIGNED.sub("", plain(read_text(body, facts.charset, MAX_READ))))
    keys = _KEY_LINE.findall(text)
    add_all(found, "blocks", [*(kind.lower() for kind, _ in blocks), *(kind for kind, _ in keys)])
    for one in [c for c in (_certificate(inside) for kind, inside in blocks if "CERTIFICATE" in kind) if c][:CERTIFICATES]:
        found.set("title", _called(one.subject), 300)
        add_all(found, "subject", [", ".join(dict.fromkeys(one.subject.values()))])
        add_all(found, "issuer", [", ".join(dict.fromkeys(one.issuer.values()))])
        add_all(found, "valid-until", one.times[1:])
    add_all(
        found, "description", [*(note for _, inside in blocks for note in _FIELD.findall(inside[:2_000])), *(n for _, n in keys)]
    )
    beside = _DASHED.sub("", _ENCODED.sub("", _KEY_LINE.sub("", text))).strip()
    if beside:
        raw_text(beside, found)
    else:
        found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a text without its blocks, and each block's kind and contents. An unclosed block extends to the end of the text."""
    kept: list[str] = []
    blocks: list[tuple[str, str]] = []
    at = 0
    while at >= 0 and (begin := _BLOCK.search(text, at)):
        kept.append(text[at : begin.start()])
        end = _END.search(text, begin.end())
        blocks.append((begin[1], text[begin.end() : end.start() if end else len(text)]))
        at = text.find("\n", end.end()) if end else -1
    return "".join(kept) + (text[at:] if at >= 0 else ""), blocks


def _certificate(encoded: str) -> _Certificate | None:
    """Decode a certificate (RFC 5280, 4.1); None if it cannot be decoded."""
    try:
        whole = binascii.a2b_base64(encoded)
        parts = list(_elements(next(_elements(next(_elements(whole))[1]))[1]))
        issuer, validity, subject = (value for _, value in parts[3 if parts[0][0] == _VERSION else 2 :][:3])
        return _Certificate(
            _name(subject), _name(issuer), [_time(tag, value) for tag, value in _elements(validity) if tag in _TIMES]
        )
    except (ValueError, StopIteration, IndexError):
        return None


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield consecutive elements as tag and contents (X.690, 8.1). Raises ValueError for malformed data."""
    at = 0
    while at + 2 <= len(data):
        tag, size = data[at], data[at + 1]
        at += 2
        if size & 0x80:
            more = size & 0x7F
            if not 1 <= more <= 4:
                raise ValueError("length")
            size = int.from_bytes(data[at : at + more], "big")
            at += more
        if at + size > len(data):
            raise ValueError("short")
        yield tag, data[at : at + size]
        at += size


def _name(data: bytes) -> dict[str, str]:
    """Return common name, unit and organization of a name, by their abbreviations."""
    found = {}
    for kind, pairs in _elements(data):
        for _, pair in _elements(pairs) if kind == _SET else ():
            both = list(_elements(pair))
            if len(both) == 2 and both[0][0] == _OID and both[0][1] in _NAMES and both[1][0] in _STRINGS:
                found[_NAMES[both[0][1]]] = both[1][1].decode(_STRINGS[both[1][0]], "replace")
    return {kind: found[kind] for kind in ("CN", "OU", "O") if kind in found}


def _called(name: dict[str, str]) -> str:
    """Return the first part of a name, the most specific one; "" if it has none."""
    return next(iter(name.values()), "")


def _time(tag: int, value: bytes) -> str:
    """Return the day of a time; two-digit years from 50 on are of the last century (RFC 5280, 4.1.2.5.1)."""
    digits = value[: _TIMES[tag]].decode("ascii")
    if tag == 0x17:
        digits = ("19" if digits >= "50" else "20") + digits
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"


SUMMARIZER = Summarizer(types=("Certificate",), run=run)
