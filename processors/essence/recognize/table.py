r"""Recognition: the type of a file, by tests in rising cost until the first sure answer (Essence, seed 003, "Type Recognition").

1. the type that the operator states for a place (a pattern of URLs), then the source's Content-Type, if it is specific;
2. the name: whole names, then suffixes;
3. the content: own signatures, own patterns on text, then libmagic (nearly 1 ms: last);
4. programs: predicates on the content, where neither a name nor a signature suffices (a manual page, a tar of 1979).

Laws:
- The rules are data (`types.toml`, preceded by those of an operator: `processors/essence/extensions.py`); where several types claim
  a file, the one with the longest signature wins, else the first.
- A name or a stated type never wins over content that contradicts it: every claim is checked against the first bytes. Unknown
  binary content does not contradict the name of an archive that need not begin at its first byte (zip, 7z, RAR).
- Names of copies and templates (`x.c.orig`, `x.rs.in`) are also tried without that suffix.
- Where several types share a suffix, a mark in the content decides before the order of the file does (`claims`); a text that reads
  as prose is not program source, whatever its suffix is (`tutor.es`).
- Nothing raises: a file that no type claims is "Unrecognized".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import magic

from processors.essence import types
from processors.essence.recognize.packages import packaged
from processors.essence.recognize.predicates import BINARY_PROGRAMS, PEEK, PROGRAMS, is_prose, is_text
from processors.essence.types import MEDIA, PLAIN, UNRECOGNIZED, TypeRule, cut_media

HEAD = 65_536
"""Maximum number of bytes of a file that recognition reads."""
_GENERIC = (
    "application/octet-stream binary/octet-stream application/unknown application/x-unknown application/download "
    "application/x-download application/force-download application/x-forcedownload unknown/unknown text/plain "
    "application/text inode/x-empty"
)
GENERIC = frozenset(_GENERIC.split())
"""Content types that servers state when they do not know the type."""
LANGUAGES = frozenset({"C", "CHeader", "Python", "Perl", "ShellScript", "Makefile"})
"""Types of source code in one language that do not extend SourceCode."""
SOURCES = frozenset({"SourceCode", "Pixmap"})
"""Other types of source: of any language, and of pictures."""
SHORT = 2
"""Maximum length of a suffix that may also be the code of a language or a country, or the number of a chapter."""
SENTENCE = 6
"""Length in bytes from which a signature is not a coincidence in a text."""
LAYERS = 2
"""Maximum number of copy suffixes removed from a name: `x.in.orig`."""
ZIP = "Zip"
PACKAGES = (ZIP, "OfficeDocument")
"""Types of a zip whose first members are looked at: the first member of an Office document may leave the media type open."""
FAMILIES = {"image": "Image", "audio": "Audio", "video": "Video", "font": "Font"}

_PROSE = re.compile(rb"[A-Za-z0-9 !+.-]*")
_COPY = re.compile(r"(?:~|\.(?:in|tmpl|template|orig|bak|old|new|save|dist|sample|example|dpkg-[a-z]+|rpm[a-z]+|ucf-[a-z]+))$")
_DELIVERED = re.compile(r"\d{9,11}\.(?:m\d+p\d+|\d+_\d+)")
"""Start of the name of a message in a Maildir. The name ends with that of a host (`mail.example.org`), which is not a suffix."""


_ARCHIVE = re.compile(r"[^.]\.(?:(zip|7z|rar)(?:\.\d{3})?|z\d\d)\Z")
ARCHIVES = {"zip": "Zip", "7z": "SevenZip", "rar": "Rar"}
"""Archives that need not begin at the first byte, by suffix; each may be followed by the number of a part."""


class Recognized(NamedTuple):
    """The type of a file, and the evidence for it."""

    type: str
    """Name of the type; "Unrecognized" if unknown."""
    content_type: str
    """Its media type."""
    evidence: str
    """One of: operator, stated, name, content, program."""


class Signature(NamedTuple):
    """Bytes that must all be present at their offsets."""

    parts: tuple[tuple[int, bytes], ...]
    media: str

    @property
    def word(self) -> bool:
        """Whether it could be the beginning of a sentence ("MAC ", "GRIB"): it is no evidence in a text."""
        return self.length < SENTENCE and all(_PROSE.fullmatch(part) for _, part in self.parts)

    @property
    def length(self) -> int:
        """Total number of its bytes."""
        return sum(len(part) for _, part in self.parts)

    def matches(self, head: bytes) -> bool:
        """Whether the content has all of its parts."""
        return all(head.startswith(part, at) for at, part in self.parts)


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"), re.MULTILINE)


Signed = list[tuple[str, Signature]]
"""Signatures with the names of their types."""


def signature(rule: str, default: str) -> Signature:
    """Parse a rule like "RIFF; 8:WAVE=audio/x-wav" into a signature."""
    text, media = cut_media(rule, default)
    parts = []
    for part in text.split("; "):
        at = re.match(r"(\d+):", part)
        parts.append((int(at[1]) if at else 0, part[at.end() if at else 0 :].encode("latin-1")))
    return Signature(tuple(parts), media)


class Table:
    """Rules indexed for look-up; `places`: patterns of whole URLs with the types that an operator states for them.

    Raises ValueError or re.error for invalid rules.
    """

    def __init__(self, rules: Mapping[str, TypeRule], places: Iterable[tuple[re.Pattern[str], str]] = ()) -> None:
        self.rules = rules
        self.places = tuple(places)
        self.media: dict[str, list[tuple[str, str]]] = {}
        self.suffixes: dict[str, list[tuple[str, str]]] = {}
        self.claims: dict[str, list[tuple[str, str, list[re.Pattern[bytes]]]]] = {}
        self.signatures = {name: [signature(s, r.media) for s in r.starts] for name, r in rules.items()}
        self.names = [(n, re.compile("|".join(f"(?:{p})" for p in r.names))) for n, r in rules.items() if r.names]
        self.patterns = [(n, [_compiled(p) for p in r.patterns]) for n, r in rules.items() if r.patterns]
        plain = [(n, patterns) for n, patterns in self.patterns if rules[n].plain]
        # More specific types, for names that leave the type open: a text may be a message, XML may be a feed.
        self.finer = {kind: [(n, found) for n, found in self.patterns if rules[n].extends == kind] for kind in ("XML", "JSON")}
        self.finer |= {"RawText": plain, "Mail": [(n, found) for n, found in plain if n == "Mailbox"]}
        # A file of news may be about changes of a program, or hold articles.
        self.finer["ChangeLog"] = [(n, found) for n, found in plain if n in ("Mail", "Mailbox", "News")]
        for name, rule in rules.items():
            for media in (rule.media, *rule.stated):
                self.media.setdefault(media, []).append((name, media))
            for suffix, media in (cut_media(s, rule.media) for s in rule.suffixes):
                self.suffixes.setdefault(suffix, []).append((name, media))
                self.media.setdefault(media, []).append((name, media))
            for many, patterns in rule.claims.items():
                for suffix, media in (cut_media(s, rule.media) for s in many.split()):
                    self.claims.setdefault(suffix, []).append((name, media, [_compiled(p) for p in patterns]))
        self.by_start, self.by_part = self._by_part()
        self.order = {name: at for at, name in enumerate(rules)}

    def _by_part(self) -> tuple[Mapping[int, Signed], Mapping[tuple[int, int], Mapping[bytes, Signed]]]:
        """Index the signatures: those at the start by their first byte; others by offset, length and bytes of their first part."""
        starts: dict[int, Signed] = {}
        found: dict[tuple[int, int], dict[bytes, Signed]] = {}
        for name, signatures in self.signatures.items():
            for signature in signatures:
                at, part = signature.parts[0]
                if at:
                    found.setdefault((at, len(part)), {}).setdefault(part, []).append((name, signature))
                else:
                    starts.setdefault(part[0], []).append((name, signature))
        return starts, found

    def signed(self, name: str, head: bytes, text: bool) -> bool:
        """Whether the content has one of a type's signatures."""
        return any(s.matches(head) for s in self.signatures.get(name, ()) if not (text and s.word))

    def sign(self, head: bytes, text: bool) -> tuple[str, str] | None:
        """Return the type and media type of the longest signature in the content (the first among equals), or None."""
        claims = [*self.by_start.get(head[0], ())] if head else []
        for (at, length), parts in self.by_part.items():
            if claim := parts.get(head[at : at + length]):
                claims += claim
        if not claims:
            return None
        found = [each for each in claims if each[1].matches(head) and not (text and each[1].word)]
        if not found:
            return None
        name, signature = max(found, key=lambda each: (each[1].length, -self.order[each[0]]))
        return name, signature.media


@cache
def shipped() -> Table:
    """Return the rules of `types.toml`."""
    return Table(types.shipped())


_in_force: list[Table] = []
"""Rules in force if an operator has added some, else empty."""


def table() -> Table:
    """Return the rules in force."""
    return _in_force[0] if _in_force else shipped()


def use(rules: Table | None) -> None:
    """Replace the rules in force in this process; None: those of `types.toml` alone."""
    _in_force[:] = [rules] if rules else []
    types.use(rules.rules if rules else None)


def placed(url: str) -> str:
    """Return the type that the operator states for a URL, or ""."""
    return next((name for pattern, name in table().places if pattern.fullmatch(url)), "")


@cache
def _libmagic() -> magic.Magic:
    # One per process: loading the database costs 20 ms and 8 MB.
    return magic.Magic(mime=True)


def preload() -> None:
    """Load the rules and the database of libmagic, so that no file needs to be opened later."""
    table()
    _libmagic().from_buffer(b"\x00\x01")


def _agrees(rules: Table, name: str, head: bytes, text: bool) -> bool:
    """Whether the content is compatible with the type that a name or a source claims."""
    rule = rules.rules[name]
    if rules.signed(name, head, text) or rules.signed(rule.inside, head, text):
        return True
    if _is_code(rules, name) and head[:PEEK].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<?xml "):
        return False
    if rule.program:
        return PROGRAMS[rule.program](head)
    if rule.sure or text != rule.text:
        # An empty or blank file counts as text, and its name decides which kind of text it is.
        return False
    signed = rules.sign(head, text)
    return signed is None or rules.rules[signed[0]].text


def _is_code(rules: Table, name: str) -> bool:
    """Whether a type is source code in one language. XML is not: `x.ts` may be a translation of Qt."""
    return name in LANGUAGES or rules.rules[name].extends == "SourceCode"


def _by_name(rules: Table, name: str, start: bytes) -> list[tuple[str, str]]:
    """Return the types that a name may mean, the likeliest first, with media types. `start`: the first bytes of the content."""
    found = _by_whole_name(rules, name, start)
    for _ in range(LAYERS):
        shorter = _COPY.sub("", name)
        if shorter in ("", name):
            break
        name = shorter
        found += _by_whole_name(rules, name, start)
    return found


def _by_whole_name(rules: Table, name: str, start: bytes) -> list[tuple[str, str]]:
    suffix = name.rpartition(".")[2] if "." in name[1:] and not _DELIVERED.match(name) else ""
    claims = [(n, media) for n, media, marks in rules.claims.get(suffix, ()) if any(m.search(start) for m in marks)]
    of_suffix = claims + [t for t in rules.suffixes.get(suffix, ()) if t not in claims]
    whole = [(n, rules.rules[n].media) for n, pattern in rules.names if pattern.fullmatch(name)]
    proven = [t for t in whole if rules.rules[t[0]].program]
    if of_suffix and len(suffix) <= SHORT and is_prose(start):
        # The suffix may be that of a natural language.
        of_suffix = [t for t in of_suffix if not (t[0] in SOURCES or _is_code(rules, t[0]))]
    exact = [t for t in of_suffix if t in claims or t[0] not in PLAIN]
    return [*proven, *exact, *(t for t in whole if t not in proven), *(t for t in of_suffix if t not in exact)]


def _by_content(rules: Table, head: bytes, text: bool) -> Recognized:
    """Return the type by content alone."""
    signed = rules.sign(head, text)
    if signed:
        return _by_package(rules, head, *signed)
    if text:
        return _by_patterns(rules, head[:PEEK])
    for name in BINARY_PROGRAMS:
        if PROGRAMS[rules.rules[name].program](head):
            return Recognized(name, rules.rules[name].media, "program")
    return _by_libmagic(rules, head)


def _by_package(rules: Table, head: bytes, name: str, media: str) -> Recognized:
    """Return the type of a signed content, more exactly for a zip that may be the package of a document."""
    if name in PACKAGES and (found := packaged(head)):
        kind, stated = found
        if kind in rules.rules and name in (ZIP, kind):
            known = (kind, stated) in rules.media.get(stated, ())
            return Recognized(kind, stated if known else media if kind == name else rules.rules[kind].media, "content")
    return Recognized(name, media, "content")


def _by_patterns(rules: Table, start: bytes) -> Recognized:
    """Return the type of a text. libmagic is not used: it takes 1 ms, and mistakes prose for programs."""
    found = _matching(rules, rules.patterns, start)
    return found or Recognized("RawText", rules.rules["RawText"].media, "content")


def _matching(rules: Table, patterns: Iterable[tuple[str, Sequence[re.Pattern[bytes]]]], start: bytes) -> Recognized | None:
    for name, own in patterns:
        if any(p.search(start) for p in own):
            return Recognized(name, rules.rules[name].media, "content")
    return None


def _by_libmagic(rules: Table, head: bytes) -> Recognized:
    try:
        media = _libmagic().from_buffer(head)
    except magic.MagicException:
        media = ""
    found = [t for t in rules.media.get(media, ()) if not (rules.rules[t[0]].text or rules.rules[t[0]].sure)]
    name = found[0][0] if found else FAMILIES.get(media.partition("/")[0], UNRECOGNIZED)
    # A text type for binary content would only mislead readers of the summary.
    binary = MEDIA.fullmatch(media) and not media.startswith("text/")
    return Recognized(name, media if binary else rules.rules[UNRECOGNIZED].media, "content")


def recognize(name: bytes, head: bytes, stated: str = "", operator_type: str = "") -> Recognized:
    """Return the type of a file.

    `name`: last component of its path; `head`: its first bytes, 64 kB at most; `stated`: Content-Type from the source;
    `operator_type`: the type that the operator states for it, as returned by `placed`.
    """
    rules, text = table(), is_text(head)
    if operator_type and _agrees(rules, operator_type, head, text):
        return Recognized(operator_type, rules.rules[operator_type].media, "operator")
    media = stated.partition(";")[0].strip().lower()
    if media and media not in GENERIC:
        for kind, _ in rules.media.get(media, ()):
            if _agrees(rules, kind, head, text):
                return Recognized(kind, media, "stated")
    for kind, nearer in _by_name(rules, name.decode("latin-1").lower(), head[:PEEK]):
        if _agrees(rules, kind, head, text):
            rule = rules.rules[kind]
            evidence = "program" if rule.program and not rule.sure else "name"
            return _matching(rules, rules.finer.get(kind, ()), head[:PEEK]) or Recognized(kind, nearer, evidence)
    if not head:
        return Recognized(UNRECOGNIZED, "inode/x-empty", "content")
    found = _by_content(rules, head, text)
    return _named_archive(rules, name) or found if found.type == UNRECOGNIZED and not text else found


def _named_archive(rules: Table, name: bytes) -> Recognized | None:
    """Return the type of an archive by its name: its signature may be behind padding, or in another part of the archive."""
    match = _ARCHIVE.search(name.decode("latin-1").lower())
    kind = ARCHIVES.get((match[1] or "zip") if match else "", "")
    return Recognized(kind, rules.rules[kind].media, "name") if kind in rules.rules else None
