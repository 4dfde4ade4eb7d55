"""rpm packages, versions 3 and 4: a lead, a signature, a header of tags, and a compressed cpio archive (rpm's "Package Format").

Metadata in the header becomes attributes of the package's summary. Signatures are not verified.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from processors.essence.formats.container import Budget, Damaged, Member, Reader, Refused
from processors.essence.formats.streams import Counted, Joined, exact, need, skip
from processors.essence.unnest import Container
from processors.essence.unnest.containers.cpio import open_cpio
from processors.essence.unnest.encodings.bzip2 import open_bzip2
from processors.essence.unnest.encodings.gzip import open_gzip
from processors.essence.unnest.encodings.xz import open_xz
from processors.essence.unnest.encodings.zstandard import open_zstandard

LEAD = 96
MAGIC = b"\xed\xab\xee\xdb"
HEADER = b"\x8e\xad\xe8\x01"
MAX_HEADER = 256 << 20
"""Maximum bytes of a header, as in rpm."""
NAME, VERSION, RELEASE, SUMMARY, DESCRIPTION, VENDOR, LICENSE, PACKAGER, URL, ARCH = (
    *(1000, 1001, 1002, 1004, 1005),
    *(1011, 1014, 1015, 1020, 1022),
)
TEXTS = (6, 8, 9)
"""Types of values that are text or lists of text; of a list the first is taken."""
ATTRIBUTES: Mapping[int, str] = {
    NAME: "name",
    SUMMARY: "summary",
    DESCRIPTION: "description",
    LICENSE: "license",
    PACKAGER: "author",
    VENDOR: "publisher",
    ARCH: "architecture",
    URL: "url-references",
}
PAYLOADS: Mapping[bytes, Callable[[Reader, Budget], Reader]] = {
    b"\x1f\x8b": open_gzip,
    b"BZh": open_bzip2,
    b"\xfd7zXZ": open_xz,
    b"\x5d\0\0": open_xz,
    b"\x28\xb5\x2f\xfd": open_zstandard,
}
MAX_VALUE = 4_096


def _sizes(intro: bytes) -> tuple[int, int]:
    """Return the number of entries in a header's index, and the bytes of its store. Raises Damaged."""
    entries, stored = struct.unpack(">II", intro[8:])
    if not intro.startswith(HEADER) or 16 * entries + stored > MAX_HEADER:
        raise Damaged("damaged header")
    return entries, stored


def _pass(body: Reader, *, padded: bool) -> None:
    entries, stored = _sizes(need(body, 16, "a header ends early"))
    skip(body, 16 * entries + stored + (-stored % 8 if padded else 0), "a header ends early")


def open_rpm(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the members of a package. Raises Damaged, and Refused for an unknown payload."""
    if not need(body, LEAD, "the lead ends early").startswith(MAGIC):
        raise Damaged("not an rpm package")
    _pass(body, padded=True)
    _pass(body, padded=False)
    head = exact(body, 6)
    payload = Joined(head, body)
    if head.startswith(b"0707"):
        return open_cpio(payload, budget)
    for magic, decode in PAYLOADS.items():
        if head.startswith(magic):
            return open_cpio(Counted(decode(payload, budget), budget), budget)
    raise Refused("a payload of a compression that is not known") if head else Damaged("truncated: the payload is missing")


def _tags(head: bytes) -> Mapping[int, str]:
    """Return the texts of the header that lie within the first bytes of a package. Raises Damaged, struct.error."""
    entries, stored = _sizes(head[LEAD : LEAD + 16])
    at = LEAD + 16 + 16 * entries + stored + -stored % 8
    entries, _ = _sizes(head[at : at + 16])
    index, store = at + 16, at + 16 + 16 * entries
    found: dict[int, str] = {}
    for where in range(index, min(store, len(head) - 15), 16):
        tag, kind, offset, _ = struct.unpack_from(">IIII", head, where)
        if kind in TEXTS and (tag in ATTRIBUTES or tag in (VERSION, RELEASE)) and tag not in found:
            value = head[store + offset : store + offset + MAX_VALUE].partition(b"\0")[0]
            found[tag] = value.decode("utf-8", "replace")
    return found


def about_rpm(head: bytes) -> Iterator[tuple[str, str]]:
    """Yield attributes from the header: name, version, summary, description, license and the like; only `head` is read."""
    try:
        tags = _tags(head)
    except (Damaged, struct.error):
        return
    if NAME in tags:
        yield "title", ": ".join(t for t in (tags[NAME], tags.get(SUMMARY, "")) if t)
    yield "version", "-".join(tags[t] for t in (VERSION, RELEASE) if t in tags)
    yield from ((ATTRIBUTES[tag], value) for tag, value in tags.items() if tag in ATTRIBUTES)


UNNESTER = Container(("RPM",), open_rpm, about_rpm)
