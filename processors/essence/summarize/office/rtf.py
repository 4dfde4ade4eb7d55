r"""RTF (1.9.1): its information group, and the first text, read control word by control word.

Laws:
- One pass over at most MAX_RTF bytes, in tokens that no pattern scans twice; groups are counted, at most DEPTH deep.
- Groups without text (fonts, styles, pictures, groups marked with \*) are skipped; hexadecimal characters are in the code page of
  \ansicpg, or of \mac, \pc or \pca, and \u replaces the characters behind it.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.line_buffer import Text
from processors.essence.summarize._base import Facts, Found, Summarizer, SummaryError
from processors.essence.summarize.office._links import fields
from processors.essence.summarize.office._package import add_reference

MAX_RTF = 4_000_000
MAX_TEXT = 8_192
INFO_TEXT = 2_000
HEADINGS, LEVELS = 100, 3
"""Maximum headings that are kept, and outline levels that count."""
DEPTH = 1_000

INFO = {
    "title": "title", "subject": "description", "author": "author", "keywords": "keywords", "doccomm": "description",
    "company": "organization", "category": "keywords",
}  # fmt: skip
"""Attribute of the summary by group of the information group."""
FIELD, FONTS = "fldinst", "fonttbl"
TIMES = {"creatim": "creation-date", "revtim": "modification-date"}
TIME = ("yr", "mo", "dy", "hr", "min")
SKIPPED = frozenset(
    [
        "fonttbl",
        "colortbl",
        "stylesheet",
        "pict",
        "object",
        "header",
        "headerl",
        "headerr",
        "headerf",
        "footer",
        "footerl",
        "footerr",
        "footerf",
        "listtable",
        "listoverridetable",
        "rsidtbl",
        "generator",
        "themedata",
        "colorschememapping",
        "datastore",
        "latentstyles",
        "xmlnstbl",
        "filetbl",
        "revtbl",
        "footnote",
        "annotation",
        "operator",
        "vern",
        "printim",
        "buptim",
        "bkmkstart",
        "bkmkend",
        "private1",
        "nonesttables",
        "objdata",
        "shppict",
        "nonshppict",
        "datafield",
        "formfield",
        "mmathPr",
        "tc",
        "xe",
        "template",
        "atnid",
        "atnauthor",
    ]
)
"""Destinations without text of the document's own."""
SIGNS = {
    **dict.fromkeys(("par", "line", "sect", "page", "row", "nestrow"), "\n"), **dict.fromkeys(("cell", "tab", "nestcell"), "\t"),
    **dict.fromkeys(("~", "emspace", "enspace", "qmspace"), " "), "_": "-",
    "emdash": "\u2014", "endash": "\u2013",
    "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d", "bullet": "\u2022",
}  # fmt: skip
"""Text of control words and symbols."""
BESIDE = frozenset(("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf", "footnote", "annotation"))
"""Skipped destinations that belong to the full text."""
CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "cp936", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
"""Code page by the charset number of a font."""
PAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850", "ansi": "cp1252"}

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z'])|([{}])|([^\\{}\r\n]{1,4096}|[\r\n]+)|.", re.DOTALL
)


class _State:
    """State that a group inherits from the enclosing one."""

    __slots__ = ("codepage", "either", "skip", "target", "unicode")

    def __init__(self, target: str = "", *, skip: bool = False, unicode: int = 1, codepage: str | None = None) -> None:
        self.codepage = codepage
        """Code page of the font, "" if it has none; None: that of the document's default font."""
        self.target = target
        """The group that the text belongs to (information, field, font table); "" for the main text."""
        self.skip = skip
        self.either = False
        """Whether the group has its content twice, for readers without and with Unicode."""
        self.unicode = unicode
        """Number of fallback characters behind a \\u."""


class _Reader:
    """Parser state of a document; keeps `room` characters of its text."""

    def __init__(self, room: int, *, whole: bool = False) -> None:
        self.skipped = SKIPPED - BESIDE if whole else SKIPPED
        self.fonts: dict[int, str] = {}
        self.font = self.own = 0
        self.told: list[str] = []
        """Instructions of fields, which may come in several pieces, each field behind a mark."""
        self.state = _State()
        self.stack: list[_State] = []
        self.codepage = "cp1252"
        self.text = Text(room)
        self.info: list[tuple[str, list[str]]] = []
        self.times: dict[str, dict[str, int]] = {}
        self.waiting = 0
        """Fallback characters of a \\u that remain to be skipped."""
        self.bytes = bytearray()
        """Undecoded bytes, since a character may consist of two."""
        self.headings: list[str] = []
        self.outlined = False
        """Whether the paragraph is a heading of the outline."""

    def read(self, raw: bytes) -> bool:
        """Read tokens until there is enough text; return False if the document is truncated."""
        at = 0
        while token := _TOKEN.match(raw, at):
            at = token.end()
            word, number, code, sign, brace, text = token.groups()
            if code is not None:
                self._byte(bytes((int(code, 16),)))
                continue
            if text is not None:
                self._plain(text)
                continue
            self._flush()
            if brace == b"{":
                self._open()
            elif brace:
                if self._close():
                    return True
            elif word is not None:
                # The length of binary picture data precedes it.
                at += max(int(number or 0), 0) if word == b"bin" else 0
                self._word(word.decode("ascii"), number)
            elif sign is not None:
                self._sign(sign)
            if self.text.full:
                return True
        return False

    def _open(self) -> None:
        if len(self.stack) > DEPTH:
            raise SummaryError(f"RTF: groups nested more than {DEPTH} deep")
        self.stack.append(self.state)
        self.state = _State(self.state.target, skip=self.state.skip, unicode=self.state.unicode, codepage=self.state.codepage)
        self.waiting = 0

    def _close(self) -> bool:
        """End a group; return whether the document ends."""
        self.waiting = 0
        if not self.stack:
            return True
        self.state = self.stack.pop()
        return not self.stack

    def _byte(self, data: bytes) -> None:
        if self.waiting:
            self.waiting -= 1
        elif not self.state.skip:
            self.bytes += data

    def _plain(self, data: bytes) -> None:
        if data[:1] in (b"\r", b"\n"):
            # Line breaks of the file have no meaning, even between the two bytes of a character.
            return
        passed = min(self.waiting, len(data))
        self.waiting -= passed
        if not self.state.skip:
            self.bytes += data[passed:]
            self._flush()

    def _flush(self) -> None:
        if self.bytes:
            data, self.bytes = self.bytes, bytearray()
            page = self.fonts.get(self.own) if self.state.codepage is None else self.state.codepage
            try:
                self._put(data.decode(page or self.codepage, "replace"))
            except (LookupError, ValueError):
                self._put(data.decode("cp1252", "replace"))

    def _put(self, text: str) -> None:
        if self.state.skip:
            return
        if self.state.target == FIELD:
            self.told.append(text)
        elif self.state.target:
            if self.info and self.state.target in INFO:
                self.info[-1][1].append(text[:INFO_TEXT])
        elif text == "\n":
            line = self.text.end()
            if self.outlined and len(self.headings) < HEADINGS:
                self.headings.append(line)
        else:
            self.text.add(text)

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            self.state.skip = True
        elif self.waiting:
            self.waiting -= 1
        else:
            # An escaped line break is one; other symbols represent themselves, or a kind of space.
            text = sign.decode("latin-1")
            self._put("\n" if text in "\r\n" else SIGNS.get(text, text if text in "\\{}" else ""))

    def _word(self, word: str, number: bytes | None) -> None:
        value = int(number) if number else 0
        if word == "u" and number:
            # The two halves of a surrogate pair are joined later (`_joined`).
            self._put(chr(value & 0xFFFF))
            self.waiting = self.state.unicode
        elif word == "uc":
            self.state.unicode = max(0, min(value, 100))
        elif word == "ansicpg" and number:
            self.codepage = f"cp{value}" if value != 65001 else "utf-8"
        elif word in PAGES:
            self.codepage = PAGES[word]
        elif word in SIGNS:
            self._put(SIGNS[word])
        elif word in ("f", "fcharset", "deff", "plain"):
            self._font(word, value)
        elif word in ("pard", "outlinelevel"):
            # The level in a style definition does not count.
            self.outlined = word == "outlinelevel" and value < LEVELS and not self.state.skip
        else:
            self._destination(word, value)

    def _font(self, word: str, value: int) -> None:
        """Process a font control: in the font table it sets a font's charset, elsewhere the current code page."""
        if word == "deff":
            self.own = value
        elif word == "plain":
            self.state.codepage = None
        elif self.state.target == FONTS and word == "fcharset":
            self.fonts[self.font] = CHARSETS.get(value, "") if value else ""
        elif self.state.target == FONTS:
            self.font = value
        else:
            self.state.codepage = self.fonts.get(value, "")

    def _destination(self, word: str, value: int) -> None:
        if word == "fldinst":
            self.state.target = FIELD
            self.state.skip = False
            self.told.append("\x13")
        elif word == "annotation" and word not in self.skipped:
            # The group is marked with \\*, so that old programs skip it.
            self.state.skip = False
        elif word in self.skipped:
            self.state.skip = True
            self.state.target = FONTS if word == FONTS else self.state.target
        elif word == "upr" and not self.state.skip:
            self.state.skip = self.state.either = True
        elif word == "ud" and self.stack and self.stack[-1].either:
            self.state.skip = False
        elif word == "info" or (self.state.target == "info" and (word in INFO or word in TIMES)):
            self.state.target = word
            if word in INFO and not self.state.skip:
                self.info.append((word, []))
        elif word in TIME and self.state.target in TIMES:
            self.times.setdefault(self.state.target, {})[word] = abs(value)


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add title, author, description, keywords, creation-date and partial-text. Raises SummaryError for truncated input."""
    reader = _Reader(found.most(MAX_TEXT), whole=bool(found.full))
    try:
        whole = reader.read(body.read(MAX_RTF))
    finally:
        _add(reader, found)
    if not whole and body.tell() < MAX_RTF:
        raise SummaryError("RTF: truncated: a group is not closed")


def rtf_text(raw: bytes, limit: int) -> str:
    """Return the first text of RTF. Raises SummaryError if groups are nested too deep."""
    reader = _Reader(limit)
    reader.read(raw)
    reader.text.end()
    return _joined(["\n".join(reader.text.lines)])


def _joined(pieces: list[str]) -> str:
    """Join pieces of text; surrogate pairs become one character, lone surrogates are replaced."""
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _add(reader: _Reader, found: Found) -> None:
    reader.text.end()
    for url in fields("".join(reader.told)):
        add_reference(url, found)
    for heading in reader.headings:
        found.add("headings", _joined([heading]), 200)
    for name, time in reader.times.items():
        year, *rest = (time.get(word, 0) for word in TIME)
        # Zero values may be missing: the time is then midnight.
        if 1_000 <= year <= 9_999 and all(rest[:2]):
            found.add(TIMES[name], "{}-{:02d}-{:02d}T{:02d}:{:02d}:00".format(year, *rest))
    for word, pieces in reader.info:
        value = _joined(pieces)
        for each in value.replace(";", ",").split(",") if INFO[word] == "keywords" else (value,):
            found.add(INFO[word], " ".join(each.split()), 1_000)
    found.body(_joined(["\n".join(reader.text.lines)]), MAX_TEXT)


SUMMARIZER = Summarizer(types=("RTF",), run=run)
