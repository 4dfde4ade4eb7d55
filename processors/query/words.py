"""Text analysis (words, folding) shared by the index, the predicate on one summary and snippets.

There is one analysis, in Python, and engines only split its result at spaces. So the predicate and an index cannot
disagree about what a word is, whatever tables of Unicode an engine was built with.

Laws:
- Folding is NFKC, then case folding, then NFKC again (close to Unicode 3.13, "toNFKC_Casefold"): `ﬁ`, `Straße` and
  full-width letters are found as `fi`, `strasse` and plain letters. Accents are kept: they are left out in the forms of words
  (`processors/query/forms.py`).
- A word is a run of letters, marks and numbers; all other characters separate words, except invisible ones (soft hyphens, joiners),
  which are dropped. `foo_bar`, `x-ray` and `don't` are two words each, and a query for one of them is a phrase.
- Categories of characters are those of Python's Unicode (14 in 3.11, 15.1 in 3.13): letters of a newer script separate words, and
  are found once the index has been rebuilt with a newer Python.
- In scripts without spaces each character is a word: a search for `東京` is one for 東 followed by 京.
- A word is cut after 128 characters.
- No stop words: collections are of many languages and full of names. Stems are forms beside the words.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from processors.identity import file_name, readable
from schemas.query import COPY, DATES, EXACT_FIELDS, LINKS
from schemas.records import Summary

T = TypeVar("T")

ANALYSIS = 3
"""Version of the analysis, raised with every change: an index made by another version must be rebuilt."""

MAX_WORD = 128
"""Maximum length of a word in characters; the rest is cut off."""

MAX_NAME = 100
"""Maximum length of an attribute's name in characters; the rest of a longer one is replaced by a digest."""

FILE_NAME, FILE_SIZE = "file-name", "file-size"
DAY = len("2024-03-05")

MAX_EXACT = 2_000
"""Maximum length in characters of a value compared whole; the rest of a longer one is replaced by a digest."""

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
    (0xAC00, 0xD7FF),  # Hangul syllables: particles are attached to the word
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
"""Scripts without spaces between words, as ranges of code points."""

FEW = 40
"""Maximum number of different characters replaced one by one; a text with more is translated as a whole."""

_ZERO_WIDTH_SPACE = 0x200B
_ASCII_WORD = re.compile("[a-z0-9]+")
_CHUNK = re.compile("w+|c")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT", re.ASCII)


def kind(code: int) -> str:
    """Return the kind of a code point: "w" part of a word, "c" a word by itself, "" invisible, " " a separator."""
    category = unicodedata.category(chr(code))
    if category == "Cf" and code != _ZERO_WIDTH_SPACE:
        return ""
    if category[0] not in "LMN":
        return " "
    return "c" if any(low <= code <= high for low, high in UNSPACED) else "w"


class _Spacing(dict[int, str]):
    """Table for str.translate: code point to its spaced text; filled on demand."""

    def __missing__(self, code: int) -> str:
        found = kind(code)
        self[code] = made = {"w": chr(code), "c": f" {chr(code)} "}.get(found, found)
        return made


class _Kinds(dict[int, str]):
    """Table for str.translate: code point to one letter for its kind, so that offsets are kept."""

    def __missing__(self, code: int) -> str:
        self[code] = made = kind(code) or "w"
        return made


class _Lone(dict[str, str | None]):
    """Table of spaced text for each non-ASCII character whose result does not depend on its neighbours; None for others.

    Those others compose with a neighbour, or fold to characters that do: marks, and the vowels and finals of Hangul.
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
"""Table for bytes.translate of UTF-8: makes spaced text if all non-ASCII characters are spaced already."""
_PARTING = "\x01"
"""Separator between texts that are spaced together; within a text it separates words."""
_ASCII_PARTED = _ASCII[:1] + _PARTING.encode() + _ASCII[2:]
_SPACING[ord(_PARTING)] = _PARTING  # set after the tables above are made, which must treat it as an ordinary separator
_ALL_ASCII = bytes(range(128))
_KINDS = _Kinds()


def fold(text: str) -> str:
    """Return text folded for comparison: NFKC and case folding."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def words(text: str) -> list[str]:
    """Return the words of a text, in order."""
    return spaced(text).split()


def spaced(text: str) -> str:
    """Return the words of a text, joined by single spaces."""
    made = b" ".join(_known(text).encode().translate(_ASCII).split()).decode()
    return " ".join(word[:MAX_WORD] for word in made.split(" ")) if _long(made) else made


def all_spaced(texts: Sequence[str]) -> list[str]:
    """Return `spaced` of each text, except for the number of spaces.

    The texts are analysed together, since most of the cost of a short text does not depend on its length; and words are not split
    off one by one, which is most of the cost of a long text.
    """
    together = f" {_PARTING} ".join(texts)
    if len(texts) < 2 or together.count(_PARTING) >= len(texts):
        return [spaced(text) for text in texts]
    made = _known(together).encode().translate(_ASCII_PARTED).decode()
    if _long(made):
        return [spaced(text) for text in texts]
    return made.split(_PARTING)


def _long(made: str) -> bool:
    """Return whether spaced text has a word of more than MAX_WORD characters, searching in steps of up to MAX_WORD."""
    at = 0
    while len(made) - at > MAX_WORD:
        at = made.rfind(" ", at, at + MAX_WORD + 1) + 1
        if not at:
            return True
    return False


def _known(text: str) -> str:
    """Return a text whose non-ASCII part is folded and spaced, and whose ASCII part is unchanged.

    Most texts have few different non-ASCII characters, none of which depends on its neighbours: each is looked up once, and
    replaced.
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
    """Iterate over words with their positions: start, end (in code points), word; for display, not for matching.

    Words from a character that folds into several words or a separator get the position of their whole run of letters.
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
    """Return a value as it is compared whole: folded, stripped, and limited to `bound` characters plus a digest."""
    folded = value.lower().strip() if value.isascii() else fold(value).strip().encode("utf-8", "replace").decode()
    if len(folded) <= bound:
        return folded
    return folded[:bound] + hashlib.sha256(folded.encode()).hexdigest()


_GETTERS = {field: attrgetter(field.replace("-", "_")) for field in EXACT_FIELDS} | {"url": attrgetter("shown_url")}


@lru_cache(4_096)
def attribute(name: str) -> str:
    """Return an attribute's name for comparison: case and surrounding white space do not matter."""
    return exact(name, MAX_NAME)


def property_of(summary: Summary, field: str) -> str:
    """Return the value of one of EXACT_FIELDS for comparison; "" if the summary has none."""
    return exact(_GETTERS[field](summary))


def targets(url: str) -> tuple[str, ...]:
    """Return the keys by which a link of LINKS is found: the URL, and its host (with its port) if it has one."""
    whole = exact(url)
    host = whole.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0]
    return (whole, host) if host else (whole,)


def searchable_values(summary: Summary) -> dict[str, list[str]]:
    """Return the values of a summary's attributes, followed by those of its annotations, by name for comparison.

    Bytes are decoded as UTF-8 with replacement characters. The EXACT_FIELDS are properties, but an attribute with
    the same name still counts as text. File names of copies are added to the file names, and their URLs under COPY.
    """
    found: dict[str, list[str]] = {}
    for attributes in (summary.attributes, summary.annotations):
        for name, values in attributes.items():
            # Of a registration: data, not text.
            if values and not (name == "statistics" and summary.type == "Server"):
                made = [value if isinstance(value, str) else value.decode("utf-8", "replace") for value in values]
                known = attribute(name)
                found[known] = found[known] + made if known in found else made
    for name in DATES & found.keys():
        # In a timestamp such as 2024-03-05T09:00:00Z the day is not a word of its own: it runs into the hour.
        found[name] = list(dict.fromkeys([*found[name], *(text[:DAY] for text in found[name] if _MOMENT.match(text))]))
    if summary.size and FILE_SIZE not in found:
        found[FILE_SIZE] = [str(summary.size)]
    if summary.copies:
        own = found.get(FILE_NAME, [])
        if others := set(map(file_name, summary.copies)).difference(own, ("",)):
            found[FILE_NAME] = [*own, *sorted(others)]
        found[COPY] = [*found.get(COPY, []), *map(readable, summary.copies)]
    return found


def texts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Iterate over every value of a summary as (name for comparison, text)."""
    return ((name, text) for name, values in searchable_values(summary).items() for text in values)


def properties(summary: Summary) -> dict[str, str]:
    """Return those of EXACT_FIELDS that a summary has, for comparison."""
    return {field: value for field, getter in _GETTERS.items() if (value := exact(getter(summary)))}


def links(values: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Iterate over (name, key) of the links among the values that `searchable_values` returned for a summary."""
    return ((name, target) for name in LINKS for text in values.get(name, ()) for target in targets(text) if target)


def names(summary: Summary) -> set[str]:
    """Return the names of all attributes and properties of a summary, for `attribute:*`."""
    return set(searchable_values(summary)).difference(EXACT_FIELDS).union(properties(summary))


class _Made(NamedTuple, Generic[T]):
    """What was made from a summary."""

    summary: Summary
    made: T

    def fits(self, summary: Summary) -> bool:
        """Return whether a summary has the same values: all that `searchable_values` reads is equal, in the same order."""
        known = self.summary
        return (
            known.attributes == summary.attributes
            and known.annotations == summary.annotations
            and (known.type, known.size, known.copies) == (summary.type, summary.size, summary.copies)
            and list(known.attributes) == list(summary.attributes)
            and list(known.annotations) == list(summary.annotations)
        )


class Recent(Generic[T]):
    """Cache of what is made from the values of recent summaries, by OID.

    The views of a Broker, and several Brokers with their indexes, analyse the same texts. Used from several threads: what it
    returns was made from equal values, and an entry that another thread drops is made again.
    """

    CHARACTERS = 1_000_000
    """Characters and bytes of the present generation; the one before is kept too, for threads that lag behind."""
    LEAST = 500
    """Characters that a summary counts at least."""

    def __init__(self) -> None:
        self._size = 0
        self._present: dict[tuple[str, Hashable], _Made[T]] = {}
        self._before: dict[tuple[str, Hashable], _Made[T]] = {}

    def of(self, summary: Summary, also: Hashable, make: Callable[[dict[str, list[str]]], T]) -> T:
        """Return what `make` returns for the values of a summary (`searchable_values`); `also`: what else that depends on."""
        at = summary.oid, also
        known = self._present.get(at) or self._before.get(at)
        if known is not None and known.fits(summary):
            return known.made
        values = searchable_values(summary)
        made = make(values)
        if self._size >= self.CHARACTERS:
            self._before, self._present, self._size = self._present, {}, 0
        self._size += max(self.LEAST, _length(values), _length(summary.attributes) + _length(summary.annotations))
        self._present[at] = _Made(summary, made)
        return made


def _length(values: Mapping[str, Sequence[str | bytes]]) -> int:
    """Return the length of all values; those of a summary may be more than its text, as the statistics of a server are."""
    return sum(len(value) for found in values.values() for value in found)
