"""What a name and a signature cannot say of a content: whether it is a text, and predicates for single types.

They are named by the rules (`program` in `types.toml`). Each sees the first 64 kB at most; nothing raises.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping

from processors.essence.formats.file_index import INDEX_LINE

PEEK = 4_096
"""How many bytes of a text the patterns are searched in."""
STRAY = 128
"""Bytes of ASCII among which one control is no sign of anything else."""

_CONTROLS = bytes(sorted({*range(32)} - {7, 8, 9, 10, 12, 13, 27}))
_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\x1b$)C")
"""How UTF-16 begins, and ISO-2022-KR (RFC 1557), whose shifts are controls."""

_PROSE_LEAST = 3
"""Lines of prose that there are in a text of it."""
_WORD = re.compile(rb"(?<![^\s(\"\x27])[A-Za-z\x80-\xff][a-z\x80-\xff\x27-]*+(?=[\s,.:!?)\"\x27]|$)")
_WORDS = 4
"""Words that a line of prose has."""
_RULE = re.compile(rb"([=*_~#.+-])(?:\1|[ \t]|(?!))++\Z")
"""A line of ornament."""
_BEGINS = re.compile(rb"(?:\xef\xbb\xbf)?[=~]?[ \t]*+[A-Za-z0-9\x80-\xff](?!.*(?:\w[ \t]*+=[ \t]*+\S|[;{(]\Z))")
"""How a text does that is no program: neither with a comment, nor with what sets a value or goes on."""
_REMARK = re.compile(rb"(?:[Cc]|(?i:rem))(?:[ \t]|$)")
"""How comments of old Fortran and of Basic begin: with a letter."""


def is_text(head: bytes) -> bool:
    """Whether bytes look like text in some charset: no NUL or other controls that no text has (of some charsets by their marks).

    ASCII and UTF-8 may have some that strayed there. Info files have marks between their nodes and around indices and images.
    """
    start = head[:PEEK]
    if start.endswith((b"\0", b"\0\b")):
        # A mark is not to be cut.
        start = head[: PEEK + 2]
    if b"\n\x1f" in start or b"\0\b[" in start:
        start = start.replace(b"\n\x1f", b"\n").replace(b"\0\b[", b"[").replace(b"\0\b]", b"]")
    stray = len(start) - len(start.translate(None, _CONTROLS))
    return not stray or start.startswith(_BOMS) or (stray * STRAY <= len(start) and b"\0" not in start and _is_utf8(start))


def _is_utf8(start: bytes) -> bool:
    """Whether bytes are the start of a text in UTF-8, or in ASCII; the last character may be cut."""
    try:
        start.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(start) - 3 and error.reason == "unexpected end of data"
    return True


def is_prose(head: bytes) -> bool:
    """Whether most lines of a text are words with little between them, and it does not begin as a comment of a program does."""
    told = others = 0
    if b'"""' in head[:PEEK] or b"'''" in head[:PEEK]:
        # What a program says of itself.
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
            # Nearly all programs are told by their first lines.
            return False
    return told >= _PROSE_LEAST and told > 2 * others


def _manpage(head: bytes) -> bool:
    """A -man or -mdoc page: its title macro, or nothing but a reference to another page."""
    if head.startswith((b".TH", b".Dd", b".so ")) or b"\n.TH" in head or b"\n.Dd" in head:
        return True
    return re.match(rb"(?:[.'][ \t]*\\\".*\n|\s)*\.so[ \t]+\S", head[:PEEK]) is not None


def _troff(head: bytes) -> bool:
    """Lines that begin with requests or macros of troff."""
    return re.search(rb"^\.(?:\\\"|so |de |ds |nr |TL|NH|SH|HU|H |PP|LP|P$|pp|sh |ft )", head[:PEEK], re.MULTILINE) is not None


def _tar(head: bytes) -> bool:
    """A tar without magic (V7): the checksum of the first header holds (POSIX.1-1988, 10.1.1)."""
    if len(head) < 512 or not head[0]:
        return False
    try:
        stated = int(head[148:156].strip(b" \x00") or b"x", 8)
    except ValueError:
        return False
    return stated == sum(head[:148]) + 8 * 32 + sum(head[156:512])


def _debian_control(head: bytes) -> bool:
    """Fields of a package: its name, and who made it or which version it has."""
    start = head[:PEEK]
    return all(
        re.search(rb"^(?:" + name + rb"):[ \t]*+\S", start, re.MULTILINE) for name in (b"Package|Source", b"Version|Maintainer")
    )


def _index(head: bytes) -> bool:
    """An index of files by hand: of the lines that are not indented, most name one, and each says what it is, there or below."""
    lines = head[:PEEK].splitlines()[: -1 if len(head) > PEEK else None]
    named = told = others = 0
    for line, below in zip(lines, [*lines[1:], b""], strict=False):
        if not line.strip() or line[:1] in (b" ", b"\t"):
            continue
        found = INDEX_LINE.match(line)
        alone = bool(found and not found["said"])
        told += bool(found) and (not alone or below[:1] in (b" ", b"\t"))
        named += bool(found)
        # Rules and ornament are neither.
        others += not found and line.strip(b"=-*#_+| \t\r") != b""
    return told > 0 and told * 10 >= 6 * (named + others)


def _macbinary(head: bytes) -> bool:
    """A header of MacBinary: the checksum of II and III holds; I has the two codes of the Finder, and nothing behind the dates."""
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
    """A PDF behind something else: readers look for its mark in the first 1,024 bytes (PDF Reference 1.7, appendix H.3.4.1)."""
    return b"%PDF-" in head[:1024]


def _armor(head: bytes) -> bool:
    """A line that begins a key, a certificate or a signature in letters (RFC 7468, RFC 9580), or is a key of OpenSSH."""
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
}
BINARY_PROGRAMS = ("Tar", "MacBinary", "PDF")
"""Types that are no text, and that a program tells without a name."""
