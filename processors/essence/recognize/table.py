r"""Recognition: what a file is, in rising cost, stopping at the first sure answer (Essence, seed 003, "Type Recognition").

1. what the operator states for a place (a pattern of URLs), then what the source states (Content-Type), where that is specific;
2. the name: whole names, then suffixes;
3. the content: own signatures, own patterns on text, then libmagic (nearly 1 ms: last);
4. programs: predicates on the content, for what neither a name nor a signature can say (a manual page, a tar of 1979).

Laws:
- The rules are data (`types.toml`, before it what an operator adds: `processors/essence/extensions.py`); where several types claim
  a file, the one with the longest signature wins, else the first.
- A name or a stated type never wins over content that contradicts it: every claim is held against the first bytes.
- A name that ends as copies and templates do (`x.c.orig`, `x.rs.in`) says what the name before that says.
- Where several types share a suffix, a mark in the content decides before the order of the file does (`claims`); a text that reads
  as prose is the source of no program, whatever its suffix is (`tutor.es`).
- Nothing raises: what nobody claims is "Unrecognized".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import magic

from processors.essence import types
from processors.essence.recognize.predicates import BINARY_PROGRAMS, PEEK, PROGRAMS, is_prose, is_text
from processors.essence.types import MEDIA, PLAIN, UNRECOGNIZED, TypeRule, cut_media

HEAD = 65_536
"""How many bytes of a file are looked at, at most."""
_GENERIC = (
    "application/octet-stream binary/octet-stream application/unknown application/x-unknown application/download "
    "application/x-download application/force-download application/x-forcedownload unknown/unknown text/plain "
    "application/text inode/x-empty"
)
GENERIC = frozenset(_GENERIC.split())
"""Content types that servers state when they know nothing."""
LANGUAGES = frozenset({"C", "CHeader", "Python", "Perl", "ShellScript", "Makefile"})
"""Types for the source of one language that do not extend SourceCode."""
SOURCES = frozenset({"SourceCode", "Pixmap"})
"""Types of other sources: of any language, and of pictures."""
SHORT = 2
"""Letters of a suffix that may also be a language that people speak, a country, a chapter."""
SENTENCE = 6
"""From so many letters on, a signature is no accident."""
LAYERS = 2
"""Endings of copies that a name may have: `x.in.orig`."""
FAMILIES = {"image": "Image", "audio": "Audio", "video": "Video", "font": "Font"}

_PROSE = re.compile(rb"[A-Za-z0-9 !+.-]*")
_COPY = re.compile(r"(?:~|\.(?:in|tmpl|template|orig|bak|old|new|save|dist|sample|example|dpkg-[a-z]+|rpm[a-z]+|ucf-[a-z]+))$")
_DELIVERED = re.compile(r"\d{9,11}\.(?:m\d+p\d+|\d+_\d+)")
"""How the name of a message of a Maildir begins; it ends with the name of a host, `mail.example.org`."""


class Recognized(NamedTuple):
    """What a file is, and how that was found out."""

    type: str
    """Essence's name of the type; "Unrecognized" if unknown."""
    content_type: str
    """Its media type."""
    evidence: str
    """operator, stated, name, content or program."""


class Signature(NamedTuple):
    """Bytes that must stand at their offsets, all of them."""

    parts: tuple[tuple[int, bytes], ...]
    media: str

    @property
    def word(self) -> bool:
        """Whether it might be the beginning of a sentence: in a text it tells nothing ("MAC ", "GRIB")."""
        return self.length < SENTENCE and all(_PROSE.fullmatch(part) for _, part in self.parts)

    @property
    def length(self) -> int:
        """How many bytes it tells."""
        return sum(len(part) for _, part in self.parts)

    def matches(self, head: bytes) -> bool:
        """Whether a content has all of them."""
        return all(head.startswith(part, at) for at, part in self.parts)


def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode("latin-1"), re.MULTILINE)


Signed = list[tuple[str, Signature]]
"""Signatures with the names of their types."""


def signature(rule: str, default: str) -> Signature:
    """A rule like "RIFF; 8:WAVE=audio/x-wav" as a signature."""
    text, media = cut_media(rule, default)
    parts = []
    for part in text.split("; "):
        at = re.match(r"(\d+):", part)
        parts.append((int(at[1]) if at else 0, part[at.end() if at else 0 :].encode("latin-1")))
    return Signature(tuple(parts), media)


class Table:
    """The rules, arranged for look-up; `places`: patterns of whole URLs with the types that an operator states for them.

    Raises ValueError or re.error for rules that make no sense.
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
        # What a name leaves open: a text may be a message, XML may be a feed.
        self.finer = {kind: [(n, found) for n, found in self.patterns if rules[n].extends == kind] for kind in ("XML", "JSON")}
        self.finer |= {"RawText": plain, "Mail": [(n, found) for n, found in plain if n == "Mailbox"]}
        # News are of a program, or of the world.
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
        """Signatures at the start by their first byte; others by offset and length, then bytes, of their first part."""
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
        """Whether a content has one of a type's signatures."""
        return any(s.matches(head) for s in self.signatures.get(name, ()) if not (text and s.word))

    def sign(self, head: bytes, text: bool) -> tuple[str, str] | None:
        """The type whose signature the content has, with its media type: the longest one, and of these the first."""
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
    """The rules of `types.toml`."""
    return Table(types.shipped())


_in_force: list[Table] = []
"""The rules in force, where an operator has added some."""


def table() -> Table:
    """The rules in force."""
    return _in_force[0] if _in_force else shipped()


def use(rules: Table | None) -> None:
    """Have these rules in force in this process from now on; None: those of `types.toml` alone."""
    _in_force[:] = [rules] if rules else []
    types.use(rules.rules if rules else None)


def placed(url: str) -> str:
    """The type that the operator states for a URL, or ""."""
    return next((name for pattern, name in table().places if pattern.fullmatch(url)), "")


@cache
def _libmagic() -> magic.Magic:
    # One for each process: loading the database costs 20 ms and 8 MB.
    return magic.Magic(mime=True)


def preload() -> None:
    """Load the rules and the database of libmagic now, so that no file needs to be opened later."""
    table()
    _libmagic().from_buffer(b"\x00\x01")


def _agrees(rules: Table, name: str, head: bytes, text: bool) -> bool:
    """Whether the content may be of the type that a name or a source claims."""
    rule = rules.rules[name]
    if rules.signed(name, head, text) or rules.signed(rule.inside, head, text):
        return True
    if _is_code(rules, name) and head[:PEEK].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<?xml "):
        return False
    if rule.program:
        return PROGRAMS[rule.program](head)
    if rule.sure or text != rule.text:
        # What holds nothing, or nothing but white space, is a text: its name says of which kind.
        return False
    signed = rules.sign(head, text)
    return signed is None or rules.rules[signed[0]].text


def _is_code(rules: Table, name: str) -> bool:
    """Whether a type is the source of one language, which no XML is: `x.ts` may be a translation of Qt."""
    return name in LANGUAGES or rules.rules[name].extends == "SourceCode"


def _by_name(rules: Table, name: str, start: bytes) -> list[tuple[str, str]]:
    """The types that a name may stand for, the likeliest first, with their media types. `start`: of the content."""
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
        # The suffix may be that of a language that people speak.
        of_suffix = [t for t in of_suffix if not (t[0] in SOURCES or _is_code(rules, t[0]))]
    exact = [t for t in of_suffix if t in claims or t[0] not in PLAIN]
    return [*proven, *exact, *(t for t in whole if t not in proven), *(t for t in of_suffix if t not in exact)]


def _by_content(rules: Table, head: bytes, text: bool) -> Recognized:
    """What the content alone says."""
    signed = rules.sign(head, text)
    if signed:
        return Recognized(*signed, "content")
    if text:
        return _by_patterns(rules, head[:PEEK])
    for name in BINARY_PROGRAMS:
        if PROGRAMS[rules.rules[name].program](head):
            return Recognized(name, rules.rules[name].media, "program")
    return _by_libmagic(rules, head)


def _by_patterns(rules: Table, start: bytes) -> Recognized:
    """The type of a text; libmagic is not asked, because it takes 1 ms and prose for programs."""
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
    # A text type for what is no text would only mislead those who read the summary.
    binary = MEDIA.fullmatch(media) and not media.startswith("text/")
    return Recognized(name, media if binary else rules.rules[UNRECOGNIZED].media, "content")


def recognize(name: bytes, head: bytes, stated: str = "", told: str = "") -> Recognized:
    """What a file is. `name`: last component of its path; `head`: its first 64 kB at most; `stated`: the source's Content-Type.

    `told`: the type that the operator states for it, as `placed` gives it.
    """
    rules, text = table(), is_text(head)
    if told and _agrees(rules, told, head, text):
        return Recognized(told, rules.rules[told].media, "operator")
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
    return _by_content(rules, head, text)
