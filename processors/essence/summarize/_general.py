"""Adds the type-independent attributes: title, language, keywords, dates in ISO 8601 (Essence, seed 003).

Language detection uses few characters of a text (`_prose`): it costs more than everything else here.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import cast

from processors.essence.formats.text import squeeze
from processors.essence.summarize._base import Facts, Found
from processors.essence.summarize._dates import iso_date
from processors.essence.summarize._stop import STOP
from processors.essence.summarize._text import is_url, title_line
from processors.essence.summarize._word_counts import word_counter
from processors.essence.summarize.text._prose import told

ENGLISH_TEXT = 4_000
"""Characters in which English function words are counted before the model is used: that takes a third of the model's time."""
LANGUAGE_LEAST = 200
"""Characters; a shorter text gets no language."""
KEYWORD_TEXT = 2_048
KEYWORDS = 10
TERMS = 2_048
"""Bytes of terms: some 300 words."""
TERMS_TEXT = 262_144
"""Characters of a text whose terms are counted."""

_CODE = (
    "C CHeader Python Perl ShellScript Makefile Patch JSON XML SourceCode Configuration Binary Object Unrecognized "
    "Java JavaScript Go Rust CSharp Ruby SQL Lisp Fortran Pascal Tcl Awk YAML CSV RCS"
)
CODE = frozenset(_CODE.split())
"""Types whose text is not prose: their language is not detected."""
BINARY = frozenset(("Binary", "Object", "Unrecognized"))
"""Those types of CODE whose files are not text."""
TEXTUAL = CODE - BINARY | {"Bibliographic", "JSON", "Notebook"}
"""Types whose files are readable text, whatever their media type."""
MARKED = frozenset(("text/html", "text/rtf"))
"""Media types of text with markup: if their summarizer returns no text, the file has none, or it must not be shown."""
DATES = frozenset(("date", "creation-date", "modification-date"))
"""Attributes that are days or moments."""
NO_TERMS = frozenset(("ChangeLog", "DebianCopyright", "License"))
"""Types whose frequent terms are the same in all files."""


ENGLISH = frozenset(("the", "The", "of", "and", "to", "that", "for", "with", "this", "This", "are", "by", "be", "or", "is"))


ENGLISH_LEAST = 200
"""Words; a text of so many or more is English if a tenth of them are ENGLISH words ..."""
ENGLISH_KINDS = 6
"""... and so many different ones are among them."""


_PLAINLY = (
    "the The and And that which with have this This from From you You your would should could been were there their they them "
    "what when it It we has but these those into such than its only also being where how about"
)
PLAINLY = frozenset(_PLAINLY.split())
"""Function words that exist only in English."""
PLAINLY_LEAST, PLAINLY_KINDS = 16, 4
"""A text in ASCII is English if more than one word in PLAINLY_LEAST is PLAINLY, of PLAINLY_KINDS different ones or more: none of
2,795 manual pages in 12 other languages satisfies this, though many quote English.
"""


def _finder(pattern: str) -> Callable[[str], list[str]]:
    """Return a findall for a pattern in which `L` is a letter; it takes half the time on ASCII text."""
    every, ascii_ = re.compile(pattern.replace("L", r"[^\W\d_]")), re.compile(pattern.replace("L", "[A-Za-z]"), re.ASCII)
    return lambda text: (ascii_ if text.isascii() else every).findall(text)


HAN = 4
"""Characters of a Chinese word, at most; longer words are represented by their parts."""
_HAN = re.compile("[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff]{2,}")
_SPACED = re.compile("[a-z][a-z0-9_'+-]{2,29}|[\u30a1-\u30ff]{3,30}")
_letters = _finder(r"L+")
_terms = word_counter()
_words = word_counter("'+-")


def language(text: str) -> str:
    """Return the language of a text (ISO 639-1). The model is loaded at the first use.

    If English function words are dense enough to exclude other languages, the model is not used: it takes several times as long.
    """
    words = _letters(text)
    if words and sum(map(ENGLISH.__contains__, words)) * 6 > len(words):
        return "en"
    if text.isascii():
        plainly = [word for word in words if word in PLAINLY]
        if len(plainly) * PLAINLY_LEAST > len(words) and len(set(plainly)) >= PLAINLY_KINDS:
            return "en"
    return str(_classifier()(text)[0])


def english(text: str) -> bool:
    """Whether English function words are denser in the beginning of a text than in any other language."""
    words = text[:ENGLISH_TEXT].split()
    # Other languages have a few of them: "of" and "is" are Dutch, "for" and "by" are Danish.
    known = len(words) >= ENGLISH_LEAST and len(ENGLISH.intersection(words)) >= ENGLISH_KINDS
    return known and sum(map(ENGLISH.__contains__, words)) * 10 > len(words)


@cache
def _classifier() -> Callable[[str], tuple[str, float]]:
    """Load the language model, once. Loading takes a second, which only processes that summarize spend."""
    return cast(
        "Callable[[str], tuple[str, float]]",
        importlib.import_module("processors.essence.summarize._language").identifier().classify,
    )


def preload() -> None:
    """Load the language model now."""
    _classifier()


def is_text(facts: Facts) -> bool:
    """Whether a file is readable text without conversion, so that it is its own full text."""
    return facts.type in TEXTUAL or (facts.content_type.startswith("text/") and facts.content_type not in MARKED)


def complete(facts: Facts, found: Found) -> None:
    """Add missing attributes (title, language, keywords, terms), and convert unambiguous dates to ISO 8601."""
    for each in DATES.intersection(found.attributes):
        written = (iso_date(value) if isinstance(value, str) else value for value in found.attributes[each])
        found.attributes[each] = list(dict.fromkeys(written))
    _drop_addresses(found)
    text = _prose(found)
    name = facts.name.decode("utf-8", "replace") or facts.url.rstrip("/").rpartition("/")[2]
    found.set("title", _title(facts, found, text, name) or facts.url or facts.type, 300)
    if facts.type in CODE or not text:
        return
    if found.whole and "terms" not in found.attributes:
        found.add("terms", terms(found.whole, text), TERMS)
    if "language" not in found.attributes and len(text) >= LANGUAGE_LEAST:
        found.add("language", "en" if english(text) else told(text, language))
    if "keywords" not in found.attributes and facts.type not in NO_TERMS:
        for word in keywords(text):
            found.add("keywords", word)


def _drop_addresses(found: Found) -> None:
    """Remove authors that are a URL and nothing else: the address of a profile names nobody."""
    stated = found.attributes.get("author", [])
    kept = [value for value in stated if isinstance(value, bytes) or not is_url(value)]
    if len(kept) < len(stated):
        found.attributes["author"] = kept
    if not kept:
        found.attributes.pop("author", None)


def _title(facts: Facts, found: Found, text: str, name: str) -> str:
    """Return a title for a file whose summarizer found none."""
    if facts.type in CODE:
        purpose = found.text("description")
        # Many comments begin with the name of their file.
        if purpose.startswith(name) and purpose.removeprefix(name).lstrip(" \t")[:1] in ("", ":", "-"):
            purpose = purpose.removeprefix(name).lstrip(" \t:-")
        return f"{name}: {purpose}" if name and purpose else name or purpose
    line = title_line(text)
    first = [column for column in found.attributes.get("columns", [])[:2] if isinstance(column, str)]
    # The names of a table's columns are not its title.
    return name if name and len(first) > 1 and line.startswith(squeeze(" ".join(first))) else line or name


def _prose(found: Found) -> str:
    """Return the prose of a summary: title, description, abstract and partial text, even if a full text replaces the latter."""
    values = (found.text(name) for name in ("title", "description", "abstract"))
    return "\n".join(v for v in (*values, found.part or found.said) if v)


def terms(whole: str, known: str) -> str:
    """Return the most frequent words of a text, without those of `known`, the part of it that the summary contains."""
    if len(whole) <= len(known):
        return ""
    counts = _terms(whole[:TERMS_TEXT])
    for word in counts.keys() & (STOP | _terms(known).keys()):
        del counts[word]
    # Enough for TERMS bytes: words have three letters and more, and a space each.
    return " ".join(_ranked(counts, TERMS // 4))


def keywords(text: str) -> list[str]:
    """Return the ten most frequent terms of the start of a text that occur at least twice, the most frequent first."""
    start = text[:KEYWORD_TEXT]
    if not start.isascii() and _HAN.search(start):
        return _ranked(_unspaced(start.lower()), KEYWORDS)
    return _ranked({word: count for word, count in _words(start).items() if count > 1 and word not in STOP}, KEYWORDS)


def _unspaced(text: str) -> dict[str, int]:
    """Return the words that occur at least twice in a text without spaces between words, with their counts.

    They consist of Latin letters, of Katakana, or of Han characters that occur together. A Han word that occurs only within an
    equally frequent longer one is left out.
    """
    counts = Counter(word for word in _SPACED.findall(text) if word not in STOP)
    for run in _HAN.findall(text):
        for length in range(2, HAN + 1):
            counts.update(run[at : at + length] for at in range(len(run) - length + 1))
    several = {word: count for word, count in counts.items() if count > 1}
    for word in sorted(several, key=len, reverse=True):
        for part in (word[:-1], word[1:]) if _HAN.fullmatch(word) else ():
            # A part that only occurs within this word is not a word of its own.
            if several.get(part) == several.get(word, 0):
                del several[part]
    return several


def _ranked(counts: Mapping[str, int], most: int) -> list[str]:
    """Return the most frequent words, at most `most`; equally frequent ones in alphabetical order."""
    if len(counts) > most:
        # Most words of a text occur once or twice: sort only those that can be among the first.
        least = sorted(counts.values(), reverse=True)[most - 1]
        counts = {word: count for word, count in counts.items() if count >= least}
    return sorted(sorted(counts), key=counts.__getitem__, reverse=True)[:most]
