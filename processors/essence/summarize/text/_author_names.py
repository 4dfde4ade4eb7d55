"""Extracts names of people from sentences about who wrote something.

Strategy: a name is a run of capitalized words, with particles between them. It counts if an e-mail address follows, after "by", at
the beginning of a sentence that consists of the name or goes on with what the person did, and in a list with a name that counts.

Law: a doubtful name is left out; a sentence is not a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

PEOPLE = 50
_CAPITALS = "".join(letter for letter in map(chr, range(0x41, 0x530)) if letter.isupper())
_WORD = rf"(?:[dDlO]['\u2019])?[{_CAPITALS}][\w'\u2019-]{{0,30}}+"
_INITIALS = rf"(?:[{_CAPITALS}]\.-?){{1,4}}"
_PARTICLE = r"(?:van|von|de|der|den|di|da|del|della|dos|du|la|le|ten|ter|zu|zur|el|al|bin|d)"
_FURTHER = rf" (?:{_PARTICLE} ){{0,2}}(?:{_INITIALS}{_WORD}|{_INITIALS}|{_WORD})"
_NAME = re.compile(rf"(?<![\w@.'\u2019/-])(?:{_INITIALS} ?)?{_WORD}(?:{_FURTHER}){{1,4}}(?![\w@(/])")
_MAIL = re.compile(
    r"[<(\[]{0,2}(?:mailto:)?([\w.+%=-]{1,64}+(?:@| ?\[at\] ?|\(at\)| at (?=[\w-]{1,30}\.[a-z]))[\w.-]{2,80}+)[>)\]]{0,2}"
)
_BY = re.compile(r"\b[Bb]y:?\s*\Z")
_BEGINS = re.compile(r"(?:\A|[.;:])\s*\Z")
_LISTED = re.compile(r"\s*(?:,|;|&|and|, and|with)\s*")
_AFTER = re.compile(
    r"\s*(?:\Z|[.,;<&]|\((?![1-9A-Z]{1,8}\))|- |and\b|(?:has |have |was |were |originally |also )*"
    r"(?:wrote|[a-z]+ed|did|maintains)\b)"
)
_NAMELESS = (
    "The This That These Written Debian GNU Linux University Foundation Project Free Software Inc Manual Page Original Copyright "
    "License Licence See Please Report Bugs Institute Team Based Maintained Ported Additional Further Manpage Current Unix UNIX X "
    "It In All Some Many Other For From With As Much Most Red Visit Send Mail Email Public General Version AND OR THE BSD FreeBSD "
    "OpenBSD NetBSD Group Department Center Consortium Company Corporation Ltd LLC POSIX"
)
_NO_NAME = frozenset(_NAMELESS.split())
"""Capitalized words that are not part of a person's name."""
_SAID = (
    "a an and are as at be bugs but by contact comments for from he her his in is it mail manpage me my of on or page please "
    "report send she that the their they this to updates version was we were with written you your author authors maintainer see "
    "via email e-mail address questions reports originally currently maintained manual extended modified who also all other others "
    "including patches suggestions mailing list lists has have new most part parts code work contributions"
)
_NO_WORD = frozenset(_SAID.split())
"""Lower-case words that occur before an address, and are not part of a name."""
SHORT = 60
"""Characters; a line up to this length may be a name as a whole."""


def people(paragraph: str) -> list[str]:
    """Return the people that a paragraph on one line names, each with the address that follows the name."""
    found: list[str] = []
    end = -1
    mails = [(m.start(), m) for m in islice(_MAIL.finditer(paragraph), PEOPLE)]
    for start, name_end, name in sorted((*_addressed(paragraph, mails), *_plain(paragraph))):
        if start < end:
            continue
        mail = next((m for at, m in mails if name_end <= at <= name_end + 3 and not paragraph[name_end:at].strip(" ,.-")), None)
        before, after = paragraph[max(end, 0) : start], paragraph[name_end : name_end + 40]
        listed = bool(found) and _LISTED.fullmatch(before) is not None
        if mail or listed or _BY.search(before) or (_BEGINS.search(before) and _AFTER.match(after)):
            found.append(f"{name} <{_address(mail[1])}>" if mail else name)
            end = mail.end() if mail else name_end
    return list(dict.fromkeys(found))[:PEOPLE]


def _plain(paragraph: str) -> Iterator[tuple[int, int, str]]:
    """Yield runs of words that look like names, with their start and end."""
    for match in islice(_NAME.finditer(paragraph), 4 * PEOPLE):
        if not _NO_NAME.intersection(match[0].split()):
            yield match.start(), match.end(), match[0]


def _addressed(paragraph: str, mails: list[tuple[int, re.Match[str]]]) -> Iterator[tuple[int, int, str]]:
    """Yield the words before each address that may be a name, capitalized or not, with their start and end."""
    for at, _ in mails:
        before = paragraph[max(0, at - 80) : at].rstrip(" ,")
        words: list[str] = []
        for word in reversed(before.split(" ")):
            # The last word of another name, an address or a sentence does not begin a name.
            if len(words) == 4 or not _of_name(word, last=not words):
                break
            words.append(word)
        while words and words[-1] in ("d", "de", "et"):
            words.pop()
        name = " ".join(reversed(words))
        if name:
            start = max(0, at - 80) + before.rindex(name)
            yield start, start + len(name), name.rstrip(".") if len(words[0]) > 2 else name


def _of_name(word: str, *, last: bool) -> bool:
    """Whether a word may belong to the name before an address; `last`: it is the last word of the name."""
    bare = word.rstrip(".") if last or len(word) <= 5 else word
    return (
        bool(bare)
        and bare.lower() not in _NO_WORD
        and bare not in _NO_NAME
        and all(part.isalpha() for part in re.split(r"[.'\u2019-]", bare) if part)
        and bare[0].isalpha()
        and not (bare == word and word.endswith("."))
    )


def _address(written: str) -> str:
    """Return an address in the form of RFC 5322, with "@" and without the final period."""
    return re.sub(r" ?\[at\] ?|\(at\)| at ", "@", written).rstrip(".")
