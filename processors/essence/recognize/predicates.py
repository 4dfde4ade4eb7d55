"""Predicates on content, beyond names and signatures: whether it is text, and tests for single types.

The rules refer to them by name (`program` in `types.toml`). Each gets the first 64 kB at most; none raises.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping

from processors.essence.formats.charsets.ebcdic import page_of
from processors.essence.formats.file_index import INDEX_LINE
from processors.essence.formats.wordperfect4 import is_wordperfect4

PEEK = 4_096
"""Number of bytes of a text that patterns are searched in."""
STRAY = 128
"""Minimum number of bytes per stray control character in text of ASCII or UTF-8."""

_CONTROLS = bytes(sorted({*range(32)} - {7, 8, 9, 10, 12, 13, 27}))
_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\x1b$)C")
"""Starts of UTF-16 and of ISO-2022-KR (RFC 1557), whose shifts are control characters."""

_PROSE_LEAST = 3
"""Minimum number of prose lines in a text that is prose."""
_WORD = re.compile(rb"(?<![^\s(\"\x27])[A-Za-z\x80-\xff][a-z\x80-\xff\x27-]*+(?=[\s,.:!?)\"\x27]|$)")
_WORDS = 4
"""Minimum number of words in a line of prose."""
_RULE = re.compile(rb"([=*_~#.+-])(?:\1|[ \t]|(?!))++\Z")
"""A line of ornament."""
_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?[=~]?[ \t]*+[A-Za-z0-9\x80-\xff](?!.*(?:\w[ \t]*+=[ \t]*+\S|[;{(]\Z))")
"""First line of prose: it starts with a letter or digit, contains no assignment, and does not end in `;`, `{` or `(`."""
_REMARK = re.compile(rb"(?:[Cc]|(?i:rem))(?:[ \t]|$)")
"""Start of a comment in old Fortran or in Basic, which is a letter or a word."""


def is_text(head: bytes) -> bool:
    """Whether bytes look like text in some charset: no NUL or other controls foreign to text (some charsets by their marks).

    ASCII and UTF-8 may have a few stray controls. Info files have control marks between nodes and around indices and images. EBCDIC
    has line ends of its own.
    """
    start = head[:PEEK]
    if start.endswith((b"\0", b"\0\b")):
        # Do not cut a mark of an Info file in two.
        start = head[: PEEK + 2]
    if b"\n\x1f" in start or b"\0\b[" in start:
        start = start.replace(b"\n\x1f", b"\n").replace(b"\0\b[", b"[").replace(b"\0\b]", b"]")
    stray = len(start) - len(start.translate(None, _CONTROLS))
    if not start.isascii() and not _is_utf8(start) and is_wordperfect4(start):
        return False
    if not stray or start.startswith(_BOMS) or (stray * STRAY <= len(start) and b"\0" not in start and _is_utf8(start)):
        return True
    return page_of(start) != ""


def _is_utf8(start: bytes) -> bool:
    """Whether bytes are the start of a UTF-8 or ASCII text; the last character may be cut."""
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(start) - 3 and error.reason == "unexpected end of data"
    return True


def is_prose(head: bytes) -> bool:
    """Whether most lines of a text consist of words with little between them, and the first does not look like program source."""
    told = others = 0
    if b'"""' in head[:PEEK] or b"'''" in head[:PEEK]:
        # Docstrings of programs are prose, too.
        return False
    for line in head[:PEEK].splitlines()[: -1 if len(head) > PEEK else None]:
        bare = line.strip()
        if not bare or _RULE.match(bare):
            continue
        if not (told or others or _BEGINS.match(bare)):
            return False
        words = _WORD.findall(bare)
        prose = len(words) >= _WORDS and sum(map(len, words)) * 4 > 3 * (len(bare) - bare.count(b" "))
        prose = prose and not bare.endswith((b";", b"{", b"}", b"\\")) and not _REMARK.match(bare)
        told, others = told + prose, others + (not prose)
        if others > told + _PROSE_LEAST:
            # Nearly all programs are recognized within their first lines.
            return False
    return told >= _PROSE_LEAST and told > 2 * others


def _manpage(head: bytes) -> bool:
    """Whether it is a -man or -mdoc page: it has a title macro, or is only a reference to another page."""
    if head.startswith((b".TH", b".Dd", b".so ")) or b"\n.TH" in head or b"\n.Dd" in head:
        return True
    return re.match(rb"(?:[.'][ \t]*\\\".*\n|\s)*\.so[ \t]+\S", head[:PEEK]) is not None


def _troff(head: bytes) -> bool:
    """Whether lines begin with requests or macros of troff."""
    return re.search(rb"^\.(?:\\\"|so |de |ds |nr |TL|NH|SH|HU|H |PP|LP|P$|pp|sh |ft )", head[:PEEK], re.MULTILINE) is not None


def _tar(head: bytes) -> bool:
    """Whether it is a tar without magic (V7): the checksum of its first header is correct (POSIX.1-1988, 10.1.1)."""
    if len(head) < 512 or not head[0]:
        return False
    try:
        stated = int(head[148:156].strip(b" \x00") or b"x", 8)
    except ValueError:
        return False
    return stated == sum(head[:148]) + 8 * 32 + sum(head[156:512])


def _debian_control(head: bytes) -> bool:
    """Whether it has the fields of a Debian package: a name, and a maintainer or version."""
    start = head[:PEEK]
    return all(
        re.search(rb"^(?:" + name + rb"):[ \t]*+\S", start, re.MULTILINE) for name in (b"Package|Source", b"Version|Maintainer")
    )


def _index(head: bytes) -> bool:
    """Whether it is a hand-made index of files: most unindented lines name a file, and describe it there or in the lines below."""
    lines = head[:PEEK].splitlines()[: -1 if len(head) > PEEK else None]
    named = told = others = 0
    for line, below in zip(lines, [*lines[1:], b""], strict=False):
        if not line.strip() or line[:1] in (b" ", b"\t"):
            continue
        found = INDEX_LINE.match(line)
        alone = bool(found and not found["said"])
        told += bool(found) and (not alone or below[:1] in (b" ", b"\t"))
        named += bool(found)
        # Rules and ornament do not count.
        others += not found and line.strip(b"=-*#_+| \t\r") != b""
    return told > 0 and told * 10 >= 6 * (named + others)


def _macbinary(head: bytes) -> bool:
    """Whether it has a MacBinary header: II and III by checksum; I by the two Finder codes and zeros after the dates."""
    if len(head) < 128 or head[0] or not 0 < head[1] <= 63 or head[74] or head[82] or 0 in head[2 : 2 + head[1]]:
        return False
    stated = int.from_bytes(head[124:126], "big")
    if stated and stated == binascii.crc_hqx(head[:124], 0):
        return True
    sizes = int.from_bytes(head[83:87], "big"), int.from_bytes(head[87:91], "big")
    return (
        not any(head[101:128]) and head[65:73].isascii() and head[65:73].decode("ascii").isprintable() and 0 < max(sizes) < 1 << 23
    )


def _pdf(head: bytes) -> bool:
    """Whether it is a PDF behind other data: readers look for its mark in the first 1,024 bytes (PDF Reference 1.7, H.3.4.1)."""
    return b"%PDF-" in head[:1024]


def _armor(head: bytes) -> bool:
    """Whether a line begins an armored key, certificate or signature (RFC 7468, RFC 9580), or is an OpenSSH key."""
    return re.search(rb"^(?:-----BEGIN [A-Z]|(?:sk-)?(?:ssh|ecdsa)-[\w@.-]{1,60} AAAA)", head, re.MULTILINE) is not None


PROGRAMS: Mapping[str, Callable[[bytes], bool]] = {
    "manpage": _manpage,
    "troff": _troff,
    "tar": _tar,
    "macbinary": _macbinary,
    "debiancontrol": _debian_control,
    "pdf": _pdf,
    "armor": _armor,
    "fileindex": _index,
    "wordperfect4": lambda head: is_wordperfect4(head[:PEEK]),
}
BINARY_PROGRAMS = ("Tar", "MacBinary", "PDF", "WordPerfect4")
"""Binary types that a predicate recognizes without help from the name."""
