"""Words: how all text is analysed, by the index, by the predicate on one summary and by snippets.

There is one analysis, in Python, and engines only split its answer at spaces. So the predicate and an index cannot
disagree about what a word is, whatever tables of Unicode an engine was built with.

Laws:
- Folding is NFKC, then case folding, then NFKC again (close to Unicode 3.13, "toNFKC_Casefold"): `ﬁ`, `Straße` and
  full-width letters are found as `fi`, `strasse` and plain letters. Accents are kept.
- A word is a run of letters, marks and numbers; all else divides. Characters that are not seen (soft hyphens, joiners)
  vanish. `foo_bar`, `x-ray` and `don't` are two words each, and a query for one of them is a phrase.
- What a character is, the Unicode of Python says (14 in 3.11, 15.1 in 3.13): letters of a script that is newer divide, and are
  found once a newer Python has made the index anew.
- In scripts that are written without spaces each character is a word: to look for `東京` is to look for 東 followed by 京.
- A word is cut after 128 characters.
- No stemming and no stop words: collections are of many languages and full of names, where a stemmer for one does harm.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter

from processors.identity import file_name, readable
from schemas.query import COPY, DATES, EXACT_FIELDS, LINKS
from schemas.records import Summary

ANALYSIS = 2
"""Raised with every change of the analysis: an index made by another one has to be made anew."""

MAX_WORD = 128
"""Characters of a word that count."""

MAX_NAME = 100
"""Characters of the name of an attribute; the rest of a longer one stands in it as a digest."""

FILE_NAME = "file-name"
DAY = len("2024-03-05")

MAX_EXACT = 2_000
"""Characters of a value that is compared whole; the rest of a longer one stands in it as a digest."""

UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark and zero
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7FF),  # Hangul syllables: particles are written onto the word
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
"""Scripts whose words are not set apart by spaces, as ranges of code points."""

FEW = 40
"""Different characters that are replaced one by one; where there are more, all of a text is looked up."""

_ZERO_WIDTH_SPACE = 0x200B
_ASCII_WORD = re.compile("[a-z0-9]+")
_CHUNK = re.compile("w+|c")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT", re.ASCII)


def kind(code: int) -> str:
    """What a code point is: "w" part of a word, "c" a word by itself, "" not seen, " " a division."""
    category = unicodedata.category(chr(code))
    if category == "Cf" and code != _ZERO_WIDTH_SPACE:
        return ""
    if category[0] not in "LMN":
        return " "
    return "c" if any(low <= code <= high for low, high in UNSPACED) else "w"


class _Spacing(dict[int, str]):
    """For str.translate: what each code point becomes in spaced text; learned as characters come."""

    def __missing__(self, code: int) -> str:
        found = kind(code)
        self[code] = made = {"w": chr(code), "c": f" {chr(code)} "}.get(found, found)
        return made


class _Kinds(dict[int, str]):
    """For str.translate: each code point becomes one letter for its kind, so that offsets stay."""

    def __missing__(self, code: int) -> str:
        self[code] = made = kind(code) or "w"
        return made


class _Lone(dict[str, str | None]):
    """What each character that is not ASCII becomes in spaced text where it does so whatever stands beside it; None for others.

    Those are what composes with a neighbour, or becomes what does: marks, and the vowels and finals of Hangul.
    """

    def __missing__(self, char: str) -> str | None:
        self[char] = made = self._made(char)
        return made

    @classmethod
    def _made(cls, char: str) -> str | None:
        plain = unicodedata.normalize("NFKC", char)
        folded = unicodedata.normalize("NFKC", plain.casefold())
        if not all(map(cls._stands_alone, char + plain + folded)):
            return None
        return "".join(each if each.isascii() else _SPACING[ord(each)] for each in folded)

    @staticmethod
    def _stands_alone(char: str) -> bool:
        mark = unicodedata.combining(char) or unicodedata.category(char)[0] == "M"
        return not mark and not 0x1160 <= ord(char) <= 0x11FF


_SPACING = _Spacing()
_LONE = _Lone()
_ASCII = "".join(_SPACING[code] for code in range(128)).lower().encode() + bytes(range(128, 256))
"""For bytes.translate of UTF-8: spaced text, if all that is not ASCII is so already."""
_PARTING = "\x01"
"""What stands between texts that are spaced together: it divides, in a text of its own."""
_ASCII_PARTED = _ASCII[:1] + _PARTING.encode() + _ASCII[2:]
_SPACING[ord(_PARTING)] = _PARTING  # the tables above have it as it is to be
_ALL_ASCII = bytes(range(128))
_KINDS = _Kinds()


def fold(text: str) -> str:
    """Text as it is compared: NFKC, case folded."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    return spaced(text).split()


def spaced(text: str) -> str:
    """The words of a text in one string, one space between."""
    made = b" ".join(_known(text).encode().translate(_ASCII).split()).decode()
    return " ".join(word[:MAX_WORD] for word in made.split(" ")) if _long(made) else made


def all_spaced(texts: Sequence[str]) -> list[str]:
    """Each text as `spaced` gives it, but for the number of spaces.

    All in one go, since most of what a short text costs does not depend on its length; and no word is taken up by itself, which is
    most of what a long one costs.
    """
    together = f" {_PARTING} ".join(texts)
    if len(texts) < 2 or together.count(_PARTING) >= len(texts):
        return [spaced(text) for text in texts]
    made = _known(together).encode().translate(_ASCII_PARTED).decode()
    if _long(made):
        return [spaced(text) for text in texts]
    return made.split(_PARTING)


def _long(made: str) -> bool:
    """Whether spaced text has a word of more than MAX_WORD characters: found by leaps from space to space, as long as may be."""
    at = 0
    while len(made) - at > MAX_WORD:
        at = made.rfind(" ", at, at + MAX_WORD + 1) + 1
        if not at:
            return True
    return False


def _known(text: str) -> str:
    """A text folded but for its ASCII, and spaced where it is not ASCII.

    Most texts have few characters that are not, and none that depends on its neighbours: each is looked up once, and replaced.
    """
    if text.isascii():
        return text
    beyond = set(text.encode("utf-8", "surrogatepass").translate(None, _ALL_ASCII).decode("utf-8", "surrogatepass"))
    lone = {char: made for char in beyond if (made := _LONE[char]) is not None} if len(beyond) <= FEW else {}
    if len(lone) < len(beyond):
        return fold(text).translate(_SPACING)
    for char, made in lone.items():
        if made != char:
            text = text.replace(char, made)
    return text


def spans(text: str) -> Iterator[tuple[int, int, str]]:
    """The words of a text with where they stand in it: start, end (in code points), word; for showing, not for matching.

    A character that folds into several words or into a division stands where its run of letters stands.
    """
    if text.isascii():
        for found in _ASCII_WORD.finditer(text.lower()):
            yield found.start(), found.end(), found.group()[:MAX_WORD]
        return
    for found in _CHUNK.finditer(text.translate(_KINDS)):
        start, end = found.span()
        for word in words(text[start:end]):
            yield start, end, word


def exact(value: str, bound: int = MAX_EXACT) -> str:
    """A value that is compared whole, as it is compared: folded, without white space around, and bounded."""
    folded = value.lower().strip() if value.isascii() else fold(value).strip().encode("utf-8", "replace").decode()
    if len(folded) <= bound:
        return folded
    return folded[:bound] + hashlib.sha256(folded.encode()).hexdigest()


_GETTERS = {field: attrgetter(field.replace("-", "_")) for field in EXACT_FIELDS}


@lru_cache(4_096)
def attribute(name: str) -> str:
    """The name of an attribute as it is compared: names differ neither by case nor by white space around."""
    return exact(name, MAX_NAME)


def property_of(summary: Summary, field: str) -> str:
    """The value of one of EXACT_FIELDS as it is compared; "" where the summary has none."""
    return exact(_GETTERS[field](summary))


def targets(url: str) -> tuple[str, ...]:
    """What a link of LINKS is found by, each as it is compared: the URL, and its host (with its port) where it has one."""
    whole = exact(url)
    host = whole.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0]
    return (whole, host) if host else (whole,)


def named(summary: Summary) -> dict[str, list[str]]:
    """The values of a summary's attributes, and behind them those of its annotations, by name as it is compared.

    Bytes count as UTF-8 with what is none left out. The EXACT_FIELDS are properties, but an attribute that has
    the name of one counts as text all the same. Of its copies a summary has the names, and under COPY where they are.
    """
    found: dict[str, list[str]] = {}
    for attributes in (summary.attributes, summary.annotations):
        for name, values in attributes.items():
            if values:
                made = [value if isinstance(value, str) else value.decode("utf-8", "replace") for value in values]
                known = attribute(name)
                found[known] = found[known] + made if known in found else made
    for name in DATES & found.keys():
        # The day is no word of a moment, 2024-03-05T09:00:00Z: it runs into the hour.
        found[name] = list(dict.fromkeys([*found[name], *(text[:DAY] for text in found[name] if _MOMENT.match(text))]))
    if summary.copies:
        own = found.get(FILE_NAME, [])
        if others := set(map(file_name, summary.copies)).difference(own, ("",)):
            found[FILE_NAME] = [*own, *sorted(others)]
        found[COPY] = [*found.get(COPY, []), *map(readable, summary.copies)]
    return found


def texts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Every value that a summary has, as (name as it is compared, text)."""
    return ((name, text) for name, values in named(summary).items() for text in values)


def properties(summary: Summary) -> dict[str, str]:
    """Those of EXACT_FIELDS that a summary has, as they are compared."""
    return {field: value for field, getter in _GETTERS.items() if (value := exact(getter(summary)))}


def links(values: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """(name, what it is found by) of each link among the values of a summary, which are `named`."""
    return ((name, target) for name in LINKS for text in values.get(name, ()) for target in targets(text) if target)


def names(summary: Summary) -> set[str]:
    """The attributes and properties that a summary has at all, as `attribute:*` asks."""
    return set(named(summary)).difference(EXACT_FIELDS).union(properties(summary))
