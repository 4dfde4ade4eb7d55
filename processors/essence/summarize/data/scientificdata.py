"""Scientific data: header fields of FITS, netCDF and DICOM, and variables of Stata, SPSS and SAS transport files.

Nothing about the patient in a medical image is kept: neither name nor number, date of birth nor address.
Other formats are summarized like unrecognized files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.binary import unrecognized
from processors.essence.summarize.binary._binary import short_text, unpack

MAX_READ = 1 << 20
CARDS = 2_000
NUMBERS = 2_000
FITS = {
    "OBJECT": "title", "TITLE": "title", "TELESCOP": "instrument", "INSTRUME": "instrument", "OBSERVER": "author",
    "AUTHOR": "author", "ORIGIN": "organization", "DATE-OBS": "date", "DATE": "creation-date", "FILTER": "keywords",
    "REFERENC": "references", "EXTNAME": "headings", "CREATOR": "generator", "PROGRAM": "generator",
    "NAXIS1": "width", "NAXIS2": "height",
}  # fmt: skip
"""Attributes by FITS keyword (FITS Standard 4.0, 4.4.2 and appendix C)."""
NETCDF = {
    "title": "title", "institution": "organization", "source": "source-data", "references": "references", "comment": "description",
    "summary": "description", "creator_name": "author", "project": "project", "history": "comments", "license": "license",
    "keywords": "keywords", "date_created": "creation-date", "Conventions": "conventions", "contact": "contact",
}  # fmt: skip
"""Attributes by global attribute of netCDF (CF Conventions 1.10, 2.6.2; ACDD 1.3)."""
DICOM = {
    0x0008_0060: "modality", 0x0008_0070: "camera", 0x0008_0080: "organization", 0x0008_1030: "title", 0x0008_103E: "description",
    0x0008_1090: "camera", 0x0008_0020: "date", 0x0018_0015: "body-part", 0x0018_1020: "generator", 0x0028_0010: "height",
    0x0028_0011: "width", 0x0028_0008: "frames",
}  # fmt: skip
"""Attributes by DICOM element (PS3.6, 6), as group and number."""
LONG = (b"OB", b"OW", b"OF", b"OD", b"OL", b"SQ", b"UC", b"UR", b"UT", b"UN")
"""Value representations of DICOM whose length takes four bytes (PS3.5, 7.1.2)."""
WIDTHS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}
"""Bytes of a netCDF value by its type."""
_CARD = re.compile(r"([A-Z0-9_-]{1,8})\s*= +(?:'((?:[^']|'')*)'|([^/]*))")
_NAMESTR = re.compile(rb"HEADER RECORD\*{7}NAMESTR HEADER RECORD!{7}\d{6}(\d{4})\d{20}\s*", re.DOTALL)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, organization, instrument, date, columns (variables), width, height and others, depending on the format."""
    raw = body.read(MAX_READ)
    reader = next((reader for start, at, reader in READERS if raw.startswith(start, at)), None)
    if reader is not None:
        reader(raw, found)
    if not found.new() - {"format"}:
        body.seek(0)
        unrecognized.run(facts, body, found)
    found.set("title", facts.name.decode("utf-8", "replace"), 300)


def _fits(raw: bytes, found: Found) -> None:
    """Read cards of 80 characters: a keyword, its value, and a comment after a slash."""
    for number in range(min(len(raw) // 80, CARDS)):
        card = raw[80 * number : 80 * number + 80].decode("latin-1")
        if card.startswith("END "):
            # Numbers follow, up to the next table.
            break
        if card.startswith(("COMMENT ", "HISTORY ")) and card[8:].strip(" *-=/"):
            found.add("comments", card[8:].strip(), 200)
        elif (match := _CARD.match(card)) and match[1] in FITS:
            value = (match[2] or "").replace("''", "'") if match[2] is not None else match[3]
            meant = FITS[match[1]]
            (found.set if meant in ("title", "date", "creation-date") else found.add)(meant, value.strip(), 300)


class _Numbers:
    """The header of a netCDF file of the classic kinds, read from its beginning (NetCDF Classic Format Specification)."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 4
        self.wide = raw[3:4] == b"\x05"

    def number(self) -> int:
        value: int = (unpack(">Q" if self.wide else ">I", self.raw, self.at) or (0,))[0]
        self.at += 8 if self.wide else 4
        return value

    def tag(self) -> int:
        value: int = (unpack(">I", self.raw, self.at) or (0,))[0]
        self.at += 4
        return value

    def take(self, size: int) -> bytes:
        value = self.raw[self.at : self.at + size]
        self.at += size + -size % 4
        return value

    def name(self) -> str:
        return short_text(self.take(self.number()))

    def many(self) -> range:
        """Read the start of a list: a tag and a number of elements, both zero if it is absent. Returns a range of that length."""
        self.tag()
        return range(min(self.number(), NUMBERS))

    def attributes(self) -> Iterator[tuple[str, bytes]]:
        """Yield attributes by name; the value is b"" unless it is text."""
        for _ in self.many():
            name, kind, count = self.name(), self.tag(), self.number()
            value = self.take(count * WIDTHS.get(kind, 8))
            yield name, value if kind == 2 else b""
            if self.at > len(self.raw):
                return


def _netcdf(raw: bytes, found: Found) -> None:
    header = _Numbers(raw)
    header.number()
    for _ in header.many():
        found.add("dimensions", f"{header.name()} {header.number() or 'unlimited'}", 200)
        if header.at > len(raw):
            return
    for name, value in header.attributes():
        if name in NETCDF and value:
            (found.set if NETCDF[name] == "title" else found.add)(NETCDF[name], short_text(value), 1_000)
    for _ in header.many():
        name = header.name()
        for _ in range(min(header.number(), NUMBERS)):
            header.number()
        said = dict(header.attributes())
        long = short_text(said.get("long_name", b"") or said.get("standard_name", b""))
        found.add("columns", f"{name}: {long}" if long else name, 200)
        header.tag()
        header.number()
        # Offset of the values: four bytes in the first kind, eight in the others.
        header.at += 4 if raw[3:4] == b"\x01" else 8
        if header.at > len(raw):
            return


def _dicom(raw: bytes, found: Found) -> None:
    """Read elements after 128 arbitrary bytes and a signature, in little endian; the first group states how the rest is encoded."""
    at, explicit = 132, True
    for _ in range(NUMBERS):
        group, number, kind, length = unpack("<HH2sH", raw, at) or (0, 0, b"", 0)
        if group > 0x0028 or not kind:
            return
        if not (explicit or group == 2):
            length, at = unpack("<I", raw, at + 4)[0], at + 8
        elif kind in LONG:
            length, at = (unpack("<I", raw, at + 8) or (0,))[0], at + 12
        else:
            at += 8
        value = raw[at : at + length]
        if length == 0xFFFF_FFFF:
            # A sequence of unknown length contains no wanted element: skip it.
            end = raw.find(b"\xfe\xff\xdd\xe0\0\0\0\0", at)
            at, length = (end + 8, 0) if end >= 0 else (len(raw), 0)
        elif (group, number) == (2, 0x10):
            explicit = value.rstrip(b"\0 ") != b"1.2.840.10008.1.2"
        elif meant := DICOM.get(group << 16 | number, ""):
            _add(meant, value, found)
        at += length


def _add(meant: str, value: bytes, found: Found) -> None:
    if meant in ("width", "height"):
        found.add(meant, str((unpack("<H", value) or ("",))[0]), 20)
    elif meant == "date":
        text = short_text(value)
        found.add(meant, f"{text[:4]}-{text[4:6]}-{text[6:8]}" if len(text) == 8 and text.isdigit() else "")
    else:
        (found.set if meant == "title" else found.add)(meant, short_text(value), 300)


def _stata(raw: bytes, found: Found) -> None:
    """Read a file of Stata 8 to 12: label and date, then the names of variables, 33 bytes each (Stata, dta_115)."""
    order = "<" if raw[1:2] == b"\x02" else ">"
    count, rows = unpack(f"{order}HI", raw, 4) or (0, 0)
    found.add("format", "Stata")
    found.add("title", short_text(raw[10:91]), 300)
    found.add("rows", str(rows), 20)
    at = 109 + count
    for n in range(min(count, NUMBERS)):
        found.add("columns", short_text(raw[at + 33 * n : at + 33 * n + 33]), 100)


def _stata_marked(raw: bytes, found: Found) -> None:
    """Read a file of Stata 13 or later, whose parts are enclosed in tags (Stata, dta_117 to dta_119)."""
    found.add("format", "Stata")
    release = int((re.search(rb"<release>(\d{3})</release>", raw[:200]) or (b"", b"117"))[1])
    order = ">" if b"<byteorder>MSF" in raw[:200] else "<"
    # The length precedes a label: one byte in release 117, two in later ones.
    if label := re.search(rb"<label>" + (rb"." if release == 117 else rb"..") + rb"([^<]{1,320})</label>", raw[:2_000], re.DOTALL):
        found.add("title", short_text(label[1]), 300)
    if rows := re.search(rb"<N>(.{4,8})</N>", raw[:1_000], re.DOTALL):
        found.add("rows", str(int.from_bytes(rows[1], "little" if order == "<" else "big")), 20)
    at, end = raw.find(b"<varnames>") + 10, raw.find(b"</varnames>")
    width = 33 if release == 117 else 129
    for place in range(at, end if at > 9 else 0, width):
        found.add("columns", short_text(raw[place : place + width]), 100)


def _spss(raw: bytes, found: Found) -> None:
    """Read a system file of SPSS (PSPP, System File Format): product, label, and records of variables; long texts have several."""
    order = "<" if raw[64:65] in (b"\x02", b"\x03") else ">"
    found.add("format", "SPSS")
    found.add("generator", short_text(raw[4:64]).removeprefix("@(#) "), 100)
    found.add("title", short_text(raw[109:173]), 300)
    at = 176
    for _ in range(NUMBERS):
        kind, width, labelled, missing = unpack(f"{order}iiii", raw, at) or (0, 0, 0, 0)
        if kind != 2:
            return
        name, at = short_text(raw[at + 24 : at + 32]), at + 32
        label = b""
        if labelled == 1:
            length = min((unpack(f"{order}I", raw, at) or (0,))[0], 1_000)
            label, at = raw[at + 4 : at + 4 + length], at + 4 + length + -length % 4
        at += 8 * min(abs(missing), 3)
        if width >= 0:
            found.add("columns", f"{name}: {short_text(label)}" if label else name, 200)


def _sas(raw: bytes, found: Found) -> None:
    """Read a transport file of SAS (SAS, TS-140): names and labels of variables, 140 bytes each."""
    found.add("format", "SAS transport")
    table = _NAMESTR.search(raw)
    for n in range(min(int(table[1]), NUMBERS) if table else 0):
        entry = raw[table.end() + 140 * n :][:140] if table else b""
        name, label = short_text(entry[8:16]), short_text(entry[16:56])
        found.add("columns", f"{name}: {label}" if label else name, 200)


READERS = (
    *((b"SIMPLE  =", 0, _fits), (b"CDF\x01", 0, _netcdf), (b"CDF\x02", 0, _netcdf), (b"CDF\x05", 0, _netcdf)),
    *((b"DICM", 128, _dicom), (b"$FL2", 0, _spss), (b"HEADER RECORD*******LIB", 0, _sas)),
    (b"<stata_dta>", 0, _stata_marked),
    *((bytes([version, order, 1]), 0, _stata) for version in (113, 114, 115) for order in (1, 2)),
)
"""Signature, its offset, and the reader of the format."""

SUMMARIZER = Summarizer(types=("ScientificData",), run=run)
